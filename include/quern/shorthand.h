/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SHORTHAND_H
#define QUERN_SHORTHAND_H

/** @file
 * Shorter ways to write what the other headers offer: systems with columns as parameters, and calls that name a
 * component by its C type instead of a handle. The macros keep no state of their own. They work with any
 * number of worlds, in C11 and in C++17, and mix with all other functions.
 *
 *     typedef struct Position { float x, y; } Position;
 *     typedef struct Velocity { float x, y; } Velocity;
 *
 *     QUERN_SYSTEM(move, (Position, p), (const Velocity, v))
 *     {
 *         const float dt = (float)quern_context_delta_seconds(context);
 *         QUERN_ROWS(i) p[i].x += v[i].x * dt;
 *     }
 *
 *     QUERN_MUST(QUERN_ADD_SYSTEM(schedule, move));
 *     QUERN_MUST(QUERN_CREATE(world, &entity, QUERN_VALUE(Position, 1, 2), QUERN_VALUE(Velocity, 3, 4)));
 *
 * A component is found by the name of its C type, written as in its registration. A type that the world does
 * not have yet is registered, as a component of plain bytes without described fields, by QUERN_ADD_SYSTEM
 * and by the macros with a world as argument. To give it fields, hooks or flags, register it before: by
 * QUERN_REGISTER, or by any function of <quern/component.h>. The first search from a place in the
 * program compares the names of all components; later ones find the component at once. In long loops, keep the
 * handle and call the function that the macro calls. */

#include <quern/base.h>
#include <quern/commands.h>
#include <quern/component.h>
#include <quern/context.h>
#include <quern/id.h>
#include <quern/query.h>
#include <quern/reflect.h>
#include <quern/schedule.h>
#include <quern/type.h>
#include <quern/world.h>

#include <stddef.h>

#ifdef __cplusplus
#include <initializer_list>
#include <type_traits>
extern "C" {
#endif

/** A C type, and a value of it. Made by QUERN_VALUE, QUERN_VALUE_AT and QUERN_TAG. */
typedef struct quern_value {
    const char *type_name; /**< Name of the C type; a leading "const" is ignored. */
    uint32_t
        size_bytes; /**< Size of the type; 0 for an empty one, QUERN__ANY_SIZE if only the name is known. */
    uint32_t alignment_bytes; /**< Alignment of the type. */
    bool is_const;            /**< Whether the type is const: a column of the type is only read. */
    const void *value;        /**< The value to copy; NULL: constructed (zero bytes without a hook). */
} quern_value;

/* Internal: size_bytes of a value that gives only a name. Such a component must be registered already. */
#define QUERN__ANY_SIZE 0xFFFFFFFFu

/* Internal: the functions behind the macros. */
QUERN_API quern_component quern__world_type(quern_world *world, const quern_value *type);
QUERN_API quern_result quern__world_get_type(quern_world *world, const quern_value *type, const char *macro,
                                             quern_component *out_component);
QUERN_API quern_result quern__world_register_tags(quern_world *world, const char *names);
QUERN_API quern_result quern__world_create_typed(quern_world *world, quern_entity *out_entity,
                                                 const quern_value *values, size_t count);
QUERN_API quern_result quern__world_set_typed(quern_world *world, quern_entity entity,
                                              const quern_value *value);
QUERN_API quern_result quern__world_add_named(quern_world *world, quern_entity entity, const char *name);
QUERN_API quern_result quern__world_remove_named(quern_world *world, quern_entity entity, const char *name);
QUERN_API bool quern__world_has_named(const quern_world *world, quern_entity entity, const char *name);
QUERN_API void *quern__world_get_typed(quern_world *world, quern_entity entity, const quern_value *type);
QUERN_API quern_result quern__commands_create_typed(quern_commands *commands, quern_entity *out_entity,
                                                    const quern_value *values, size_t count);
QUERN_API quern_result quern__commands_set_typed(quern_commands *commands, quern_entity entity,
                                                 const quern_value *value);
QUERN_API quern_result quern__commands_add_named(quern_commands *commands, quern_entity entity,
                                                 const char *name);
QUERN_API quern_result quern__commands_remove_named(quern_commands *commands, quern_entity entity,
                                                    const char *name);
QUERN_API quern_result quern__schedule_add_typed(quern_schedule *schedule, const quern_system_def *def,
                                                 const char *name, quern_view_callback *run,
                                                 const quern_value *columns, size_t column_count);
QUERN_API void *quern__context_resource_typed(quern_context *context, const quern_value *type);
QUERN_API const quern_world *quern__context_world(const quern_context *context);

/* Internal: types with identities, for <quern/quern.hpp>. The functions that find a type return the bits of its handle,
 * or 0, in constant time. The functions that use one check that it is the type of a handle or of a name, also if C
 * registered it without an identity. quern__world_use_type gives it the identity if the world is not locked. Errors:
 * LAYOUT_MISMATCH, UNKNOWN_COMPONENT, OUT_OF_MEMORY. */
QUERN_API uint32_t quern__world_find_type(const quern_world *world, quern_type_kind kind, uint64_t type_id);
QUERN_API quern_result quern__world_use_type(const quern_world *world, quern_type_kind kind, uint32_t bits,
                                             const quern_component_def *type);
QUERN_API quern_component quern__commands_find_type(const quern_commands *commands, uint64_t type_id);
QUERN_API quern_result quern__commands_use_type(quern_commands *commands, const quern_component_def *type,
                                                const char *call, quern_component *out_component);
QUERN_API quern_result quern__option_fail(const char *option, uint32_t limit);
/* Check the size of the C++ type of the value of an edge. Other mistakes are left to the call that follows. */
QUERN_API quern_result quern__world_check_edge(const quern_world *world, quern_relation relation,
                                               size_t size_bytes, const char *call);
QUERN_API quern_result quern__commands_check_edge(quern_commands *commands, quern_relation relation,
                                                  size_t size_bytes, const char *call);
QUERN_API quern_component quern__context_find_type(const quern_context *context, uint64_t type_id);
QUERN__NO_RETURN QUERN_API void quern__must_end(const char *call, const char *file, int line);

/* Inline, so that the compiler knows that results are set in the code after the call. */
static inline void quern__must(quern_result result, const char *call, const char *file, int line)
{
    if (result != QUERN_OK) quern__must_end(call, file, line);
}

#ifdef __cplusplus
}
#endif

/* ------------------------------------------------------------------------------------------ systems */

/** Defines a system function with columns as parameters. The first argument is its name. Each further one, up to
 * 8, is `(Type, name)`: a component by its C type, and the name of the parameter, a pointer to `count` values.
 * A const type is read, any other one is written. The block that follows is the body, which sees:
 *
 *   - context: the quern_context of the call,
 *   - view:    the quern_view; its terms 0 and up are the columns in their order,
 *   - count:   the number of rows, a constant,
 *   - the columns, as restrict pointers; QUERN_COLUMN documents refusals. Values that the body writes by one of them,
 *     it reaches by nothing else: a serial system whose further query or lookups read what its own columns write takes
 *     the columns from the view instead, by QUERN_COLUMN.
 *
 * QUERN_ADD_SYSTEM adds the system to a schedule. The name itself is a function of type quern_view_callback. If a
 * column needs another term, such as quern_term_if_disabled, add the system by quern_schedule_add_system, with the
 * name as `.run` and the terms of the columns first in `.terms`. */
#ifdef __cplusplus
#define QUERN_SYSTEM(name, ...)                                                         \
    static_assert(!QUERN__HAS_TOO_MANY_COLUMNS(__VA_ARGS__), QUERN__AT_MOST_8_COLUMNS); \
    static_assert(!QUERN__LACKS_PARENTHESES(__VA_ARGS__), QUERN__WRITE_PARENTHESES);    \
    QUERN__SYSTEM(name, __VA_ARGS__)
#else
#define QUERN_SYSTEM(name, ...)                                                          \
    _Static_assert(!QUERN__HAS_TOO_MANY_COLUMNS(__VA_ARGS__), QUERN__AT_MOST_8_COLUMNS); \
    _Static_assert(!QUERN__LACKS_PARENTHESES(__VA_ARGS__), QUERN__WRITE_PARENTHESES);    \
    QUERN__SYSTEM(name, __VA_ARGS__)
#endif

/** Loops over the rows of a system's view: `i` runs from 0 to count - 1. */
/* NOLINTNEXTLINE(bugprone-macro-parentheses): the argument is a declarator */
#define QUERN_ROWS(i) for (uint32_t i = 0; i < count; i++)

/** Loops over the views of a further query of the system (quern_context_query), with an iterator of the given name:
 *
 *     QUERN_EACH_VIEW(context, 0, it) {
 *         const Place *ghosts = QUERN_COLUMN(&it.view, 0, const Place);
 *         const uint32_t ghost_count = it.view.count;
 *         ...
 *     }
 *
 * break and continue work as in any loop. A serial system whose query reads what its own columns write, or the other way
 * round, is a function with a view and QUERN_COLUMN: the columns of QUERN_SYSTEM are restrict pointers, so that a compiler
 * could keep an old value. QUERN_ADD_SYSTEM declares the query, such as
 * `.queries = {{.terms = {quern_term_read(QUERN_ID(world, Place)), quern_term_with(QUERN_ID(world, Ghost))}}}`. */
/* NOLINTBEGIN(bugprone-macro-parentheses): the argument is a declarator */
#define QUERN_EACH_VIEW(context, query, it) \
    for (quern_query_iterator it = quern_context_query((context), (query)); quern_query_next(&it);)
/* NOLINTEND(bugprone-macro-parentheses) */

/** Adds a system that QUERN_SYSTEM defined, with its name as the system's name. Further arguments are designated
 * initialisers of quern_system_def (in C++ they need C++20): `.phase`, `.after`, `.flags`, and so on. Terms
 * in `.terms` follow those of the columns. Registers the columns' types that the world lacks, also if the
 * call then fails.
 *
 *     quern_result result = QUERN_ADD_SYSTEM(schedule, move, .after = {"steer"});
 *
 * Errors and threads: as quern_schedule_add_system, and LAYOUT_MISMATCH (the world's component has another
 * size than the type). */
#define QUERN_ADD_SYSTEM(schedule, ...) QUERN__ADD_SYSTEM(schedule, __VA_ARGS__, )

/* ------------------------------------------------------------------------------------------- types */

/** Returns the component of a C type; registers the type if the world lacks it. Null, with a message, if
 * that fails, or if the component has another size. Threads: any for a type that is registered, while no
 * thread registers; otherwise main, between frames. */
#define QUERN_ID(world, ...) (quern__world_type((world), QUERN__TYPE_AT(__VA_ARGS__)))

/** Registers a C type with described fields, like QUERN_COMPONENT_REGISTER_FIELDS, without returning the handle:
 * `QUERN_REGISTER(world, Position, x, y)`. */
#ifdef __cplusplus
#define QUERN_REGISTER(world, type, ...)                                       \
    (quern__component_register<type>((world), &quern__ignored_handle(), #type, \
                                     QUERN__FIELD_LIST(type, __VA_ARGS__)))
#else
#define QUERN_REGISTER(world, type, ...) \
    QUERN_COMPONENT_REGISTER_FIELDS(world, &(quern_component){0}, type, __VA_ARGS__)
#endif

/** Registers tags by their names: `QUERN_REGISTER_TAGS(world, Enemy, Burning)`. Errors and threads: as
 * quern_component_register; the tags before the one that fails are registered. */
#define QUERN_REGISTER_TAGS(world, ...) (quern__world_register_tags((world), #__VA_ARGS__))

/* ------------------------------------------------------------------------------------------ values */

/** Makes a quern_value from initialisers of the type: `QUERN_VALUE(Position, 1, 2)` or
 * `QUERN_VALUE(Position, .x = 1)`. Valid as long as a compound literal at the same place; in C++ until the
 * end of the full expression. */
#define QUERN_VALUE(type, ...) QUERN__VALUE(type, __VA_ARGS__)

/** Makes a quern_value from an address: `QUERN_VALUE_AT(Position, &start)`. */
#define QUERN_VALUE_AT(type, address) QUERN__VALUE_AT(type, address)

/** Makes a quern_value of a tag, or of a component to construct. The name must be registered; it need not be
 * a C type. */
#define QUERN_TAG(name) QUERN__NAMED(name)

/* ---------------------------------------------------------------------------------------- entities */

/** Creates an entity from values. The first argument is a quern_world, or the quern_commands of a callback,
 * which record the creation; then out_entity is set to a provisional handle. out_entity may be NULL.
 *
 *     quern_entity tower;
 *     quern_result result = QUERN_CREATE(world, &tower, QUERN_VALUE(Position, 1, 2), QUERN_TAG(Burning));
 *
 * Errors and threads: as quern_entity_create_with and quern_commands_create_many; UNKNOWN_COMPONENT (commands, and
 * QUERN_TAG, register nothing), LAYOUT_MISMATCH (the world's component has another size). */
#define QUERN_CREATE(world_or_commands, out_entity, ...) \
    QUERN__CREATE(world_or_commands, out_entity, __VA_ARGS__)

/** Sets a value, and adds the component if it is missing: `QUERN_SET(world, tower, Position, 1, 2)`. The first
 * argument is a quern_world, or the quern_commands of a callback. Errors and threads: as quern_entity_set and
 * quern_commands_set; UNKNOWN_COMPONENT and LAYOUT_MISMATCH as QUERN_CREATE. */
#define QUERN_SET(world_or_commands, entity, type, ...) \
    QUERN__SET(world_or_commands, entity, type, __VA_ARGS__)

/** Adds a tag, or a component to construct, by its name: `QUERN_ADD(world, tower, Burning)`. Errors and threads:
 * as quern_entity_add and quern_commands_add; UNKNOWN_COMPONENT. */
#define QUERN_ADD(world_or_commands, entity, name) \
    QUERN__CHOOSE(world_or_commands, add_named)((world_or_commands), (entity), #name)

/** Removes a component or tag by its name. Errors and threads: as quern_entity_remove and
 * quern_commands_remove; UNKNOWN_COMPONENT. */
#define QUERN_REMOVE(world_or_commands, entity, name) \
    QUERN__CHOOSE(world_or_commands, remove_named)((world_or_commands), (entity), #name)

/** Returns whether the entity has the component or tag with the name, as quern_entity_has. */
#define QUERN_HAS(world, entity, name) (quern__world_has_named((world), (entity), #name))

/** Returns the address of a value, as quern_entity_get: `QUERN_GET(world, tower, Position)->x`. NULL, with a
 * message, if the world does not have the type, or the component has another size. */
#define QUERN_GET(world, entity, ...) \
    (QUERN__POINTER_TO(__VA_ARGS__)(quern__world_get_typed((world), (entity), QUERN__TYPE_AT(__VA_ARGS__))))

/** Returns the address of a resource, found by the name of its C type: to read for a const type, as
 * quern_context_resource; otherwise to write, as quern_context_resource_write.
 *
 *     const Input *input = QUERN_RESOURCE(context, const Input); */
#define QUERN_RESOURCE(context, ...) \
    (QUERN__POINTER_TO(__VA_ARGS__)(quern__context_resource_typed((context), QUERN__TYPE_AT(__VA_ARGS__))))

/** Checks a result. If it is not QUERN_OK, the macro passes the message of quern_error_message to the log, with the
 * call, file and line, and calls abort. For programs that cannot go on after a failure. */
#define QUERN_MUST(...) (quern__must((__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__))

/** Returns a result from the function that contains the macro, unless it is QUERN_OK. For functions that return a
 * quern_result. */
#define QUERN_TRY(...)                                     \
    do {                                                   \
        const quern_result quern__tried = (__VA_ARGS__);   \
        if (quern__tried != QUERN_OK) return quern__tried; \
    } while (0)

/* ---------------------------------------------------------------------------------------- internal */

/* Expands macro(0, Type, name) macro(1, Type, name) ... for tuples (Type, name). */
/* clang-format off */
#define QUERN__UNPACK(...) __VA_ARGS__
/* Leaves out arguments that are no such tuples. */
#define QUERN__CALL(macro, arguments) QUERN__CALL_COUNTED(QUERN__COUNT arguments, macro, arguments)
#define QUERN__CALL_COUNTED(count, macro, arguments) QUERN__CALL_OF(count, macro, arguments)
#define QUERN__CALL_OF(count, macro, arguments) QUERN__CALL_##count(macro, arguments)
#define QUERN__CALL_2(macro, arguments)
#define QUERN__CALL_3(macro, arguments) macro arguments
#define QUERN__CALL_4(macro, arguments)
#define QUERN__CALL_5(macro, arguments)
#define QUERN__CALL_6(macro, arguments)
#define QUERN__CALL_7(macro, arguments)
#define QUERN__CALL_8(macro, arguments)
#define QUERN__EACH(macro, ...) QUERN__JOIN(QUERN__EACH_, QUERN__COUNT(__VA_ARGS__))(macro, __VA_ARGS__)
#define QUERN__EACH_1(m, a) QUERN__CALL(m, (0, QUERN__UNPACK a))
#define QUERN__EACH_2(m, a, b) QUERN__EACH_1(m, a) QUERN__CALL(m, (1, QUERN__UNPACK b))
#define QUERN__EACH_3(m, a, b, c) QUERN__EACH_2(m, a, b) QUERN__CALL(m, (2, QUERN__UNPACK c))
#define QUERN__EACH_4(m, a, b, c, d) QUERN__EACH_3(m, a, b, c) QUERN__CALL(m, (3, QUERN__UNPACK d))
#define QUERN__EACH_5(m, a, b, c, d, e) QUERN__EACH_4(m, a, b, c, d) QUERN__CALL(m, (4, QUERN__UNPACK e))
#define QUERN__EACH_6(m, a, b, c, d, e, f) QUERN__EACH_5(m, a, b, c, d, e) QUERN__CALL(m, (5, QUERN__UNPACK f))
#define QUERN__EACH_7(m, a, b, c, d, e, f, g) \
    QUERN__EACH_6(m, a, b, c, d, e, f) QUERN__CALL(m, (6, QUERN__UNPACK g))
#define QUERN__EACH_8(m, a, b, c, d, e, f, g, h) \
    QUERN__EACH_7(m, a, b, c, d, e, f, g) QUERN__CALL(m, (7, QUERN__UNPACK h))
/* Columns beyond the limit are left out. */
#define QUERN__EACH_9(m, a, b, c, d, e, f, g, h, ...) QUERN__EACH_8(m, a, b, c, d, e, f, g, h)
#define QUERN__EACH_10 QUERN__EACH_9
#define QUERN__EACH_11 QUERN__EACH_9
#define QUERN__EACH_12 QUERN__EACH_9
#define QUERN__EACH_13 QUERN__EACH_9
#define QUERN__EACH_14 QUERN__EACH_9
#define QUERN__EACH_15 QUERN__EACH_9
#define QUERN__EACH_16 QUERN__EACH_9
/* clang-format on */

#if defined(__GNUC__)
#define QUERN__UNUSED   __attribute__((unused))
#define QUERN__RESTRICT __restrict__
#elif defined(_MSC_VER)
#define QUERN__UNUSED
#define QUERN__RESTRICT __restrict
#else
#define QUERN__UNUSED
#define QUERN__RESTRICT
#endif

/* NOLINTBEGIN(bugprone-macro-parentheses): the arguments are types and declarator parts */
#define QUERN__ONE_MORE(i, type, name)         +1
#define QUERN__COLUMN_PARAMETER(i, type, name) , type *QUERN__RESTRICT name
#define QUERN__UNUSED_PARAMETER(i, type, name) , QUERN__UNUSED type *QUERN__RESTRICT name
#define QUERN__COLUMN_ARGUMENT(i, type, name)  , QUERN_COLUMN(view, i, type)

#define QUERN__SYSTEM(name, ...)                                                                  \
    static void name##_rows(quern_context *context, const quern_view *view,                       \
                            uint32_t count QUERN__EACH(QUERN__COLUMN_PARAMETER, __VA_ARGS__));    \
    static void name(quern_context *context, const quern_view *view)                              \
    {                                                                                             \
        name##_rows(context, view, view->count QUERN__EACH(QUERN__COLUMN_ARGUMENT, __VA_ARGS__)); \
    }                                                                                             \
    QUERN__UNUSED static const quern_value name##_columns[] = {                                   \
        QUERN__EACH(QUERN__COLUMN_VALUE, __VA_ARGS__)};                                           \
    static void name##_rows(                                                                      \
        QUERN__UNUSED quern_context *context, QUERN__UNUSED const quern_view *view,               \
        QUERN__UNUSED const uint32_t count QUERN__EACH(QUERN__UNUSED_PARAMETER, __VA_ARGS__))

/* What QUERN_SYSTEM refuses, and the sentences of the errors. QUERN__SYSTEM leaves out such columns, so that only their use
 * causes further errors. */
#define QUERN__HAS_TOO_MANY_COLUMNS(...) (QUERN__COUNT(__VA_ARGS__) > 8)
#define QUERN__LACKS_PARENTHESES(...)  \
    (QUERN__COUNT(__VA_ARGS__) <= 8 && \
     (0 QUERN__EACH(QUERN__ONE_MORE, __VA_ARGS__)) < QUERN__COUNT(__VA_ARGS__))
#define QUERN__AT_MOST_8_COLUMNS                                           \
    "QUERN_SYSTEM has at most 8 columns: list further terms in .terms of " \
    "QUERN_ADD_SYSTEM, and fetch their values by QUERN_COLUMN"
#define QUERN__WRITE_PARENTHESES                                                \
    "QUERN_SYSTEM: write each column in parentheses, as in QUERN_SYSTEM(move, " \
    "(Position, p), (const Velocity, v))"

#ifdef __cplusplus

#define QUERN__COLUMN_VALUE(i, type, name)                                                               \
    {#type, quern__type_of<std::remove_const_t<type>>::size_bytes, static_cast<uint32_t>(alignof(type)), \
     std::is_const<type>::value, nullptr},

template <typename T> quern_value quern__value_of(const char *name, const T *address)
{
    return {name, quern__type_of<std::remove_const_t<T>>::size_bytes, static_cast<uint32_t>(alignof(T)),
            std::is_const<T>::value, address};
}
template <typename T> quern_value quern__value_of(const char *name, const T &value)
{
    return quern__value_of<T>(name, &value);
}
/* Where a call stores a handle that the program does not ask for. */
inline quern_component &quern__ignored_handle(quern_component &&handle = {})
{
    return static_cast<quern_component &>(handle);
}
/* Keeps a quern_value while a call uses it. */
struct quern__value_keeper {
    quern_value value;
    operator const quern_value *() const { return &value; }
};
inline quern_result quern__create_of(quern_world *world, quern_entity *out_entity,
                                     std::initializer_list<quern_value> values)
{
    return quern__world_create_typed(world, out_entity, values.begin(), values.size());
}
inline quern_result quern__create_of(quern_commands *commands, quern_entity *out_entity,
                                     std::initializer_list<quern_value> values)
{
    return quern__commands_create_typed(commands, out_entity, values.begin(), values.size());
}
inline quern_result quern__set_typed_of(quern_world *world, quern_entity entity, const quern_value &value)
{
    return quern__world_set_typed(world, entity, &value);
}
inline quern_result quern__set_typed_of(quern_commands *commands, quern_entity entity,
                                        const quern_value &value)
{
    return quern__commands_set_typed(commands, entity, &value);
}
inline quern_result quern__add_named_of(quern_world *world, quern_entity entity, const char *name)
{
    return quern__world_add_named(world, entity, name);
}
inline quern_result quern__add_named_of(quern_commands *commands, quern_entity entity, const char *name)
{
    return quern__commands_add_named(commands, entity, name);
}
inline quern_result quern__remove_named_of(quern_world *world, quern_entity entity, const char *name)
{
    return quern__world_remove_named(world, entity, name);
}
inline quern_result quern__remove_named_of(quern_commands *commands, quern_entity entity, const char *name)
{
    return quern__commands_remove_named(commands, entity, name);
}
inline quern_result quern__add_system_of(quern_schedule *schedule, const quern_system_def &def,
                                         const char *name, quern_view_callback *run,
                                         const quern_value *columns, size_t column_count)
{
    return quern__schedule_add_typed(schedule, &def, name, run, columns, column_count);
}

#define QUERN__CHOOSE(target, call)    quern__##call##_of
#define QUERN__NAMED(name)             (quern_value{#name, QUERN__ANY_SIZE, 1, false, nullptr})
#define QUERN__VALUE(type, ...)        (quern__value_of<type>(#type, type{__VA_ARGS__}))
#define QUERN__VALUE_AT(type, address) (quern__value_of<type>(#type, static_cast<const type *>(address)))
#define QUERN__TYPE_AT(...) \
    (quern__value_keeper{quern__value_of<__VA_ARGS__>(#__VA_ARGS__, static_cast<__VA_ARGS__ *>(nullptr))})
#define QUERN__CREATE(target, out_entity, ...) (quern__create_of((target), (out_entity), {__VA_ARGS__}))
#define QUERN__POINTER_TO(...)                 static_cast<__VA_ARGS__ *>
#define QUERN__SET(target, entity, type, ...) \
    (quern__set_typed_of((target), (entity), QUERN__VALUE(type, __VA_ARGS__)))
#define QUERN__ADD_SYSTEM(schedule, name, ...)                                                    \
    (quern__add_system_of((schedule), quern_system_def{__VA_ARGS__}, #name, name, name##_columns, \
                          sizeof name##_columns / sizeof name##_columns[0]))

#else

#define QUERN__POINTER_TO(...)             (__VA_ARGS__ *)
#define QUERN__IS_CONST(...)               _Generic(1 ? (__VA_ARGS__ *)0 : (void *)1, const void * : true, void * : false)
#define QUERN__COLUMN_VALUE(i, type, name) {#type, sizeof(type), _Alignof(type), QUERN__IS_CONST(type), 0},

#define QUERN__CHOOSE(target, call) \
    _Generic((target), quern_world * : quern__world_##call, quern_commands * : quern__commands_##call)
#define QUERN__NAMED(name) ((quern_value){#name, QUERN__ANY_SIZE, 1, false, 0})
#define QUERN__VALUE(type, ...) \
    ((quern_value){#type, sizeof(type), _Alignof(type), false, &(type){__VA_ARGS__}})
#define QUERN__VALUE_AT(type, address) \
    ((quern_value){#type, sizeof(type), _Alignof(type), false, 1 ? (address) : (const type *)0})
#define QUERN__TYPE_AT(...)                                                         \
    (&(const quern_value){#__VA_ARGS__, sizeof(__VA_ARGS__), _Alignof(__VA_ARGS__), \
                          QUERN__IS_CONST(__VA_ARGS__), 0})
#define QUERN__CREATE(target, out_entity, ...)                   \
    QUERN__CHOOSE(target, create_typed)                          \
    ((target), (out_entity), (const quern_value[]){__VA_ARGS__}, \
     sizeof((const quern_value[]){__VA_ARGS__}) / sizeof(quern_value))
#define QUERN__SET(target, entity, type, ...) \
    QUERN__CHOOSE(target, set_typed)((target), (entity), &QUERN__VALUE(type, __VA_ARGS__))
#define QUERN__ADD_SYSTEM(schedule, name_, ...)                                                            \
    (quern__schedule_add_typed((schedule), &(const quern_system_def){.name = #name_, __VA_ARGS__}, #name_, \
                               name_, name_##_columns,                                                     \
                               sizeof name_##_columns / sizeof name_##_columns[0]))

#endif
/* NOLINTEND(bugprone-macro-parentheses) */

#endif
