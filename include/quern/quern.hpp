/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_QUERN_HPP
#define QUERN_QUERN_HPP

/** @file
 * Quern for C++17 and later: systems and queries from lambdas, types instead of handles, and objects that destroy what
 * they own. The header is optional and keeps no state of its own; it needs neither exceptions nor RTTI. Each class
 * converts to the pointer of the C interface, so all C functions work on it.
 *
 *     struct Position { float x, y; };
 *     struct Velocity { float x, y; };
 *
 *     quern::app app; // or quern::world, quern::schedule and quern::jobs
 *     app.add("move", [](Position &p, const Velocity &v, quern::seconds dt) { p.x += v.x * dt; });
 *     app.create(Position{1, 2}, Velocity{3, 4});
 *     app.run(1.0 / 60);
 *
 * A type is registered in a world when a call on the world first names it, under its C++ name (<quern/type_name.hpp>).
 * Types that are not trivially copyable get hooks that call their constructors and destructors. Static members
 * `on_add(quern_world *, quern_entity, T &)`, on_set and on_remove are entity hooks (quern_entity_hooks). QUERN_DESCRIBE
 * describes the fields of a type. Commands and contexts register nothing: a type that only they name must be
 * registered before, by quern::world::component.
 *
 * Values: a value whose type can be copied is copied. Any other value must be passed by std::move, and is moved into
 * the world; if the call fails, it is moved back. What cannot be done does not compile. Types may be deduced,
 * `set(entity, position)`, or named, `set<Position>(entity, {1, 2})`.
 *
 * Errors: functions return quern_result, or an empty or null value, and quern_error_message has the message. Calls of a
 * quern::app end the program instead. If QUERN_CPP_EXCEPTIONS is defined before the header is included, all throw
 * quern::error. Exceptions must not leave a lambda that Quern calls: the program then ends (std::terminate).
 *
 * Other headers, which a program includes if it needs them: <quern/tasks.hpp> submits jobs, forks and graphs;
 * <quern/prefabs.hpp> describes prefabs; <quern/getters.hpp> has getters and refs; <quern/saves.hpp> has bytes in memory,
 * sessions of archives, deltas and replays.
 *
 * Threads: as the functions of the C interface that have the same names. */

#include <quern/quern.h>
#include <quern/type_name.hpp>

#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef QUERN_CPP_EXCEPTIONS
#include <stdexcept>
#endif

namespace quern {

/* -------------------------------------------------------------------------------------------- errors */

#ifdef QUERN_CPP_EXCEPTIONS

/** A call failed; what() is the message of quern_error_message. */
class error : public std::runtime_error {
  public:
    explicit error(quern_result result) : std::runtime_error(quern_error_message()), code_(result) {}
    /** The result of the call that failed. */
    quern_result code() const noexcept { return code_; }

  private:
    quern_result code_;
};

/** Throws quern::error unless the result is QUERN_OK. */
inline quern_result check(quern_result result)
{
    if (result != QUERN_OK) throw error(result);
    return result;
}

/* A failure cannot be overlooked. */
#define QUERN__CPP_NODISCARD

#else

/** Returns the result. With QUERN_CPP_EXCEPTIONS, throws quern::error unless it is QUERN_OK. */
[[nodiscard]] inline quern_result check(quern_result result) noexcept
{
    return result;
}

#define QUERN__CPP_NODISCARD [[nodiscard]]

#endif

/** Ends the program with the message of quern_error_message unless the result is QUERN_OK, like QUERN_MUST:
 * `quern::must(query.each(...));` With QUERN_CPP_EXCEPTIONS, calls that fail throw before. */
inline void must(quern_result result)
{
    if (result != QUERN_OK) quern__must_end("quern::must", nullptr, 0);
}

/* --------------------------------------------------------------------------------------------- types */

/** Described fields of a type. Specialised by QUERN_DESCRIBE. */
template <typename T> struct description {
    /** Stores the fields in a zeroed list of QUERN_MAX_FIELDS; without a description, there are none. */
    static void list(quern_field *) {}
};

/** Describes the fields of a type, at namespace scope outside of any namespace, before the type is used:
 * `QUERN_DESCRIBE(game::Position, x, y)`. QUERN_FIELDS lists what a field may be. */
#define QUERN_DESCRIBE(type, ...)                                                   \
    template <> struct quern::description<type> {                                   \
        static void list(quern_field *out)                                          \
        {                                                                           \
            const quern__field_list fields = QUERN__FIELD_LIST(type, __VA_ARGS__);  \
            std::memcpy(out, fields.first, sizeof *out *std::size_t{fields.count}); \
        }                                                                           \
    }

/** @cond internal */
namespace detail {

/* The fields of structs in a list, as quern_element has them. */
template <typename T> struct element_fields {
    quern_field fields[QUERN_MAX_FIELDS] = {};
    uint32_t count = 0;
    element_fields()
    {
        description<T>::list(fields);
        while (count < QUERN_MAX_FIELDS && fields[count].name != nullptr)
            count++;
    }
};

template <typename T> quern_element describe_elements()
{
    quern_element element = {};
    if constexpr (quern__is_field<T>()) {
        element.type = quern__field_type<T>();
    } else {
        static const element_fields<T> fields;
        element.size_bytes = static_cast<uint32_t>(sizeof(T));
        element.alignment_bytes = static_cast<uint32_t>(alignof(T));
        element.fields = fields.fields;
        element.field_count = fields.count;
    }
    return element;
}

} // namespace detail
} // namespace quern

template <typename T>
const quern_element quern__element_of<T>::value = quern::detail::describe_elements<T>();

namespace quern {
/** @endcond */

/** Required components of a type. Specialised by QUERN_REQUIRE. */
template <typename T> struct requirements {
    /** Stores the components in a zeroed list of QUERN_MAX_REQUIRED; without a specialisation, there are none. */
    static quern_result list(quern_world *, quern_component *) { return QUERN_OK; }
};

/** A list of types that another type requires. */
template <typename... T> struct required_types {
    /** Registers the types that the world lacks, and stores their components. Errors: as
     * quern_component_register. */
    static quern_result list(quern_world *world, quern_component *out);
};

/** Makes a type require other components, at namespace scope outside of any namespace, before the type is used:
 * `QUERN_REQUIRE(game::Ship, game::Position, game::Hull);` A type whose requirements lead back to it cannot be registered:
 * INVALID_ARGUMENT. See quern_component_def.required. */
#define QUERN_REQUIRE(type, ...)                                                        \
    template <> struct quern::requirements<type> : quern::required_types<__VA_ARGS__> { \
    }

/** @cond internal */
namespace detail {

template <typename T> using bare = std::remove_cv_t<std::remove_reference_t<std::remove_pointer_t<T>>>;

template <typename T>
inline constexpr bool is_plain =
    std::is_same<T, std::remove_cv_t<std::remove_reference_t<std::remove_pointer_t<T>>>>::value;

/* The one object of an empty type. It has no bytes that a call could read, so it needs no constructor. */
template <typename T> T &empty_object()
{
    alignas(T) static unsigned char nothing[sizeof(T)];
    return *reinterpret_cast<T *>(nothing);
}

template <typename T> constexpr uint32_t size_of()
{
    return std::is_empty<T>::value ? 0 : static_cast<uint32_t>(sizeof(T));
}

/* Hooks of types that are not trivially copyable. A type that cannot be copied has no copy hook. */
template <typename T> struct hooks {
    static void construct(void *values, uint32_t count, void *) noexcept
    {
        for (uint32_t i = 0; i < count; i++)
            ::new (static_cast<void *>(static_cast<T *>(values) + i)) T();
    }
    static void copy(void *targets, const void *sources, uint32_t count, void *) noexcept
    {
        for (uint32_t i = 0; i < count; i++)
            ::new (static_cast<void *>(static_cast<T *>(targets) + i))
                T(static_cast<const T *>(sources)[i]);
    }
    static void move(void *targets, void *sources, uint32_t count, void *) noexcept
    {
        for (uint32_t i = 0; i < count; i++) {
            T *source = static_cast<T *>(sources) + i;
            ::new (static_cast<void *>(static_cast<T *>(targets) + i)) T(std::move(*source));
            source->~T();
        }
    }
    static void destroy(void *values, uint32_t count, void *) noexcept
    {
        for (uint32_t i = 0; i < count; i++)
            (static_cast<T *>(values) + i)->~T();
    }
};

/* Entity hooks of a component type: its static members on_add, on_set and on_remove. */
template <typename T> struct entity_hooks {
#define QUERN__ENTITY_HOOK(name)                                                                \
    template <typename U>                                                                       \
    static auto name##_of(int)->decltype(U::name(std::declval<quern_world *>(), quern_entity{}, \
                                                 std::declval<U &>()),                          \
                                         static_cast<quern_entity_hook *>(nullptr))             \
    {                                                                                           \
        return [](quern_world *world, quern_entity entity, void *value, void *) noexcept {      \
            if constexpr (size_of<U>() > 0) {                                                   \
                U::name(world, entity, *static_cast<U *>(value));                               \
            } else {                                                                            \
                U::name(world, entity, detail::empty_object<U>());                              \
            }                                                                                   \
        };                                                                                      \
    }                                                                                           \
    template <typename U> static quern_entity_hook *name##_of(...)                              \
    {                                                                                           \
        return nullptr;                                                                         \
    }
    QUERN__ENTITY_HOOK(on_add)
    QUERN__ENTITY_HOOK(on_set)
    QUERN__ENTITY_HOOK(on_remove)
#undef QUERN__ENTITY_HOOK
};

/* Whether values of a type can be kept in a world. Specialised for objects that refer to one. */
template <typename T> inline constexpr bool can_be_kept = true;
#define QUERN__KEEPS_HANDLES \
    "quern: an object for an entity refers to a world: keep its quern_entity, which handle() returns"

/* Refuses types that are none of a world. A class, so that each type is one error. */
template <typename T> struct type_in_world {
    static_assert(std::is_same<T, std::remove_cv_t<T>>::value,
                  "quern: name the type of the component, resource or event: no const");
    static_assert(can_be_kept<T>, QUERN__KEEPS_HANDLES);
};

/* Fills the members that definitions of components, resources and events share. */
template <typename T, typename Def> Def define()
{
    (void)sizeof(type_in_world<T>);
    Def def{};
    def.name = detail::name_of<T>();
    def.type_name = detail::type_name_of<T>();
    def.type_id = detail::type_id<T>();
    def.size_bytes = size_of<T>();
    def.alignment_bytes = static_cast<uint32_t>(alignof(T));
    description<T>::list(def.fields);
    if constexpr (size_of<T>() > 0) {
        if constexpr (!std::is_trivially_default_constructible<T>::value &&
                      std::is_default_constructible<T>::value)
            def.hooks.construct = hooks<T>::construct;
        if constexpr (!std::is_trivially_copyable<T>::value) {
            static_assert(std::is_move_constructible<T>::value,
                          "Quern moves values: the type needs a move constructor");
            def.hooks.move = hooks<T>::move;
            def.hooks.destroy = hooks<T>::destroy;
            if constexpr (std::is_copy_constructible<T>::value) def.hooks.copy = hooks<T>::copy;
        }
    }
    if constexpr (std::is_same<Def, quern_component_def>::value && std::is_class<T>::value) {
        def.entity_hooks.on_add = entity_hooks<T>::template on_add_of<T>(0);
        if constexpr (size_of<T>() > 0) def.entity_hooks.on_set = entity_hooks<T>::template on_set_of<T>(0);
        def.entity_hooks.on_remove = entity_hooks<T>::template on_remove_of<T>(0);
    }
    return def;
}

/* Finds a type by its identity, or by its name if only C registered it: then the definition of C counts, if values of the
 * type can be its values. *out_bits: the handle; 0 if the world lacks the type, and on failure. */
template <typename T> quern_result find_named(quern_world *world, quern_type_kind kind, uint32_t *out_bits)
{
    const char *const name = detail::name_of<T>();
    *out_bits = kind == QUERN_TYPE_COMPONENT  ? quern_component_find(world, name).bits
                : kind == QUERN_TYPE_RESOURCE ? quern_resource_find(world, name).bits
                                              : quern_event_find(world, name).bits;
    if (*out_bits == 0) return QUERN_OK;
    const auto type = detail::define<T, quern_component_def>();
    const quern_result result = quern__world_use_type(world, kind, *out_bits, &type);
    if (result != QUERN_OK) *out_bits = 0;
    return result;
}
template <typename T> quern_result find_type(quern_world *world, quern_type_kind kind, uint32_t *out_bits)
{
    *out_bits = world != nullptr ? quern__world_find_type(world, kind, detail::type_id<T>()) : 0;
    return *out_bits != 0 || world == nullptr ? QUERN_OK : detail::find_named<T>(world, kind, out_bits);
}

/* These find what a type is in a world, and register it if the world lacks it. */
template <typename T> quern_result find_component(quern_world *world, quern_component *out_component)
{
    quern_result result = detail::find_type<T>(world, QUERN_TYPE_COMPONENT, &out_component->bits);
    if (result != QUERN_OK || out_component->bits != 0) return result;
    quern_component_def def = detail::define<T, quern_component_def>();
    if (world != nullptr) result = requirements<T>::list(world, def.required);
    return result == QUERN_OK ? quern_component_register(world, &def, out_component) : result;
}

template <typename T>
quern_result find_resource(quern_world *world, quern_resource *out_resource, const void *value = nullptr)
{
    static_assert(!std::is_empty<T>::value, "quern: a resource has a value: this struct is empty");
    const quern_result result = detail::find_type<T>(world, QUERN_TYPE_RESOURCE, &out_resource->bits);
    if (result != QUERN_OK || out_resource->bits != 0) return result;
    quern_resource_def def = detail::define<T, quern_resource_def>();
    def.value = value;
    return quern_resource_register(world, &def, out_resource);
}

template <typename T> quern_result find_event(quern_world *world, quern_event *out_event)
{
    const quern_result result = detail::find_type<T>(world, QUERN_TYPE_EVENT, &out_event->bits);
    if (result != QUERN_OK || out_event->bits != 0) return result;
    const quern_event_def def = detail::define<T, quern_event_def>();
    return quern_event_register(world, &def, out_event);
}

/* Give a type of a world the definition that this code has, or register it if the world lacks it. */
template <typename T>
quern_result redefine_component(quern_world *world, const quern_redefine_def *how,
                                quern_redefine_report *out_report, quern_component *out_component)
{
    out_component->bits =
        world != nullptr ? quern__world_find_type(world, QUERN_TYPE_COMPONENT, detail::type_id<T>()) : 0;
    if (out_component->bits == 0 && world != nullptr)
        *out_component = quern_component_find(world, detail::name_of<T>());
    if (out_component->bits == 0) return detail::find_component<T>(world, out_component);
    quern_type_info known;
    quern_component_def def = detail::define<T, quern_component_def>();
    quern_result result = quern_component_get_info(world, *out_component, &known);
    if (result == QUERN_OK) result = requirements<T>::list(world, def.required);
    if (result != QUERN_OK) return result;
    def.name = nullptr;
    def.can_disable = known.can_disable;
    def.row_changes = known.row_changes;
    def.is_hidden = known.is_hidden;
    return quern_component_redefine(world, *out_component, &def, how, out_report);
}

template <typename T>
quern_result redefine_event(quern_world *world, const quern_redefine_def *how,
                            quern_redefine_report *out_report, quern_event *out_event)
{
    out_event->bits =
        world != nullptr ? quern__world_find_type(world, QUERN_TYPE_EVENT, detail::type_id<T>()) : 0;
    if (out_event->bits == 0 && world != nullptr)
        *out_event = quern_event_find(world, detail::name_of<T>());
    if (out_event->bits == 0) return detail::find_event<T>(world, out_event);
    quern_event_def def = detail::define<T, quern_event_def>();
    def.name = nullptr;
    return quern_event_redefine(world, *out_event, &def, how, out_report);
}

template <typename T>
quern_result redefine_resource(quern_world *world, const quern_redefine_def *how,
                               quern_redefine_report *out_report, quern_resource *out_resource)
{
    out_resource->bits =
        world != nullptr ? quern__world_find_type(world, QUERN_TYPE_RESOURCE, detail::type_id<T>()) : 0;
    if (out_resource->bits == 0 && world != nullptr)
        *out_resource = quern_resource_find(world, detail::name_of<T>());
    if (out_resource->bits == 0) return detail::find_resource<T>(world, out_resource);
    quern_resource_def def = detail::define<T, quern_resource_def>();
    def.name = nullptr;
    return quern_resource_redefine(world, *out_resource, &def, how, out_report);
}

/* An argument `T &&value` on its way into a world. The world copies a value that can be copied. It takes over the bytes
 * of any other value, which must not be destroyed afterwards. Such a value is therefore moved into this object first:
 * what the caller has is moved-from, and destroyed as usual. If the world refuses the value, it is moved back. */
template <typename T> class passed {
  public:
    using type = std::remove_cv_t<std::remove_reference_t<T>>;

    explicit passed(T &value) : value_(std::addressof(value))
    {
        if constexpr (is_moved) ::new (static_cast<void *>(moved_)) type(std::move(value));
    }
    passed(const passed &) = delete;
    passed &operator=(const passed &) = delete;
    ~passed()
    {
        if constexpr (is_moved) {
            if (is_taken_) return;
            value_->~type();
            ::new (static_cast<void *>(value_)) type(std::move(*moved()));
            moved()->~type();
        }
    }

    const void *address() const
    {
        if constexpr (size_of<type>() == 0)
            return nullptr;
        else if constexpr (is_moved)
            return moved_;
        else
            return value_;
    }
    /* Notes that the world has the value, unless the result is an error. */
    void end(bool is_taken) { is_taken_ = is_taken; }

  private:
    static constexpr bool can_copy = std::is_copy_constructible<type>::value;
    static constexpr bool can_move = std::is_move_constructible<type>::value &&
                                     !std::is_lvalue_reference<T>::value && !std::is_const<T>::value;
    static_assert(can_be_kept<type>, QUERN__KEEPS_HANDLES);
    static_assert(
        can_copy || can_move,
        "quern: this type cannot be copied, so the world must take the value over: pass it by std::move");
    static constexpr bool is_moved = !can_copy && can_move && size_of<type>() > 0;

    type *moved() { return std::launder(reinterpret_cast<type *>(moved_)); }

    std::remove_reference_t<T> *value_;
    bool is_taken_ = false;
    alignas(type) unsigned char moved_[is_moved ? sizeof(type) : 1];
};

template <typename T> quern_value type_of()
{
    using type = std::remove_const_t<T>;
    return {detail::name_of<type>(), detail::size_of<type>(), static_cast<uint32_t>(alignof(type)),
            std::is_const<T>::value, nullptr};
}

/* Whether no type is in a list twice. */
template <typename... T> inline constexpr bool all_differ = true;
template <typename T, typename... U>
inline constexpr bool all_differ<T, U...> = !(std::is_same<T, U>::value || ...) && all_differ<U...>;

/* Calls a function with the component of each type, until a call fails. */
template <typename... T, typename F> quern_result each_component(quern_world *world, F &&call)
{
    quern_result result = QUERN_OK;
    [[maybe_unused]] quern_component component;
    (void)((result = detail::find_component<T>(world, &component),
            result = result == QUERN_OK ? call(component) : result, result == QUERN_OK) &&
           ...);
    return result;
}
/* Stores the components of types. */
template <typename... T> quern_result list_components(quern_world *world, quern_component *out)
{
    return detail::each_component<T...>(world, [&out](quern_component component) {
        *out++ = component;
        return QUERN_OK;
    });
}

/* Refuses an option with a null handle, such as that of a name that the world does not know. */
inline quern_result fail_null_option(const char *option)
{
    return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern::%s: the handle is null: was it registered?", option);
}

/* Stores an element at the end of a list that ends at its first zero element. Errors: INVALID_ARGUMENT (a zero element),
 * LIMIT. */
template <typename T>
quern_result append(T *list, std::size_t capacity, const T &element, const char *option)
{
    static const T zero{};
    if (std::memcmp(&element, &zero, sizeof zero) == 0) return detail::fail_null_option(option);
    for (std::size_t i = 0; i < capacity; i++)
        if (std::memcmp(&list[i], &zero, sizeof zero) == 0) {
            list[i] = element;
            return QUERN_OK;
        }
    return quern__option_fail(option, static_cast<uint32_t>(capacity));
}
template <typename T, std::size_t capacity>
quern_result append(T (&list)[capacity], const T &element, const char *option)
{
    return detail::append(list, capacity, element, option);
}

} // namespace detail
/** @endcond */

template <typename... T> quern_result required_types<T...>::list(quern_world *world, quern_component *out)
{
    static_assert(sizeof...(T) <= QUERN_MAX_REQUIRED, "quern: too many required components");
    static_assert((std::is_default_constructible<T>::value && ...),
                  "quern: a required type is added without a value, so it needs a default constructor");
    static thread_local bool is_listing; /* registering one of the types lists what that type requires */
    if (is_listing)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "QUERN_REQUIRE: the types that '%s' requires require it: leave one of them out",
            detail::name_of<std::tuple_element_t<0, std::tuple<T...>>>());
    is_listing = true;
    const quern_result result = detail::list_components<T...>(world, out);
    is_listing = false;
    return result;
}

class instances;

/* ------------------------------------------------------------------------------------------ commands */

/** Commands for one entity, also one that a command creates: `commands.create(Hull{}).relate(parent, ship)`. Each call
 * records a command, as that of quern::commands with the same name, and returns the object; a command that fails is
 * logged. An object converts to the handle of the entity. */
class entity_commands {
  public:
    /** Makes an object for a recorder of the C interface. */
    entity_commands(quern_commands *recorder, quern_entity entity) : recorder_(recorder), entity_(entity) {}
    /** Returns the handle. */
    quern_entity handle() const { return entity_; }
    /** Returns the handle. */
    operator quern_entity() const { return entity_; }
    /** Sets a value. */
    template <typename T> entity_commands set(T &&value) const;
    /** Sets a copy of a value, whose type may be named. */
    template <typename T> entity_commands set(const T &value) const;
    /** Adds a component, default constructed. */
    template <typename T> entity_commands add() const;
    /** Removes a component. */
    template <typename T> entity_commands remove() const;
    /** Enables or disables a component. */
    template <typename T> entity_commands set_enabled(bool enabled) const;
    /** Enables or disables the entity. */
    entity_commands set_enabled(bool enabled) const;
    /** Sets the target in a relation, or adds one. */
    entity_commands relate(quern_relation relation, quern_entity target) const;
    /** Sets the target in a relation, or adds one, with the value of the edge. */
    template <typename T>
    entity_commands relate(quern_relation relation, quern_entity target, const T &value) const;
    /** Sets the value of the edge to a target. */
    template <typename T>
    entity_commands set_edge_value(quern_relation relation, quern_entity target, const T &value) const;
    /** Removes all targets in a relation. */
    entity_commands unrelate(quern_relation relation) const;
    /** Removes one target in a relation. */
    entity_commands unrelate(quern_relation relation, quern_entity target) const;
    /** Sets the name. */
    entity_commands set_name(const char *name) const;
    /** Destroys the entity. */
    void destroy() const;

  private:
    quern_commands *recorder_;
    quern_entity entity_;
};

/** The commands of a callback. A copy refers to the same commands. */
class commands {
  public:
    /** Makes an object for a recorder of the C interface. */
    commands(quern_commands *recorder) : recorder_(recorder) {}
    /** Returns the recorder of the C interface. */
    operator quern_commands *() const { return recorder_; }

    /** Records the creation of an entity with values; returns a provisional handle, null on failure. */
    template <typename... T> entity_commands create(T &&...values)
    {
        if constexpr (sizeof...(T) == 0) {
            quern_entity entity;
            (void)quern::check(quern_commands_create(recorder_, &entity));
            return {recorder_, entity};
        } else
            return create_passed(detail::passed<T>(values)...);
    }
    /** Records the creation of an entity with copies of values, whose types may be named. */
    template <typename T, typename... U> entity_commands create(const T &value, const U &...values)
    {
        return create_passed(detail::passed<const T &>(value), detail::passed<const U &>(values)...);
    }
    /** Returns the commands for one entity. */
    entity_commands entity(quern_entity handle) const { return {recorder_, handle}; }
    /** Records that a value is set; see quern_commands_set. */
    template <typename T> quern_result set(quern_entity entity, T &&value)
    {
        return set_passed(entity, detail::passed<T>(value));
    }
    /** Records that a copy of a value, whose type may be named, is set. */
    template <typename T> quern_result set(quern_entity entity, const T &value)
    {
        return set_passed(entity, detail::passed<const T &>(value));
    }
    /** Records that a component is added, default constructed; see quern_commands_add. */
    template <typename T> quern_result add(quern_entity entity)
    {
        static_assert(std::is_default_constructible<T>::value,
                      "quern: this type has no default constructor: use set, with a value");
        return with_component<T>("commands.add", [&](quern_component component) {
            return quern_commands_add(recorder_, entity, component, nullptr);
        });
    }
    /** Records that a component is removed; see quern_commands_remove. */
    template <typename T> quern_result remove(quern_entity entity)
    {
        return with_component<T>("commands.remove", [&](quern_component component) {
            return quern_commands_remove(recorder_, entity, component);
        });
    }
    /** Records that an entity is destroyed; see quern_commands_destroy. */
    quern_result destroy(quern_entity entity)
    {
        return quern::check(quern_commands_destroy(recorder_, entity));
    }

    /** Records that the target of a source is set, or added in a relation with `many`; see quern_commands_relate. */
    quern_result relate(quern_entity source, quern_relation relation, quern_entity target)
    {
        return quern::check(quern_commands_relate(recorder_, source, relation, target));
    }
    /** Records that a source is related, with the value of the edge; see quern_commands_relate_with. Further error:
     * LAYOUT_MISMATCH (values of edges have another size than T). */
    template <typename T>
    quern_result relate(quern_entity source, quern_relation relation, quern_entity target, const T &value)
    {
        const quern_result checked = quern__commands_check_edge(recorder_, relation, sizeof(T), "relate");
        return quern::check(
            checked != QUERN_OK
                ? checked
                : quern_commands_relate_with(recorder_, source, relation, target, std::addressof(value)));
    }
    /** Records that the value of an edge is set; see quern_commands_set_edge_value. Further error: LAYOUT_MISMATCH (values
     * of edges have another size than T). */
    template <typename T>
    quern_result set_edge_value(quern_entity source, quern_relation relation, quern_entity target,
                                const T &value)
    {
        const quern_result checked =
            quern__commands_check_edge(recorder_, relation, sizeof(T), "set_edge_value");
        return quern::check(checked != QUERN_OK
                                ? checked
                                : quern_commands_set_edge_value(recorder_, source, relation, target,
                                                                std::addressof(value)));
    }
    /** Records that all targets of a source are removed; see quern_commands_unrelate. */
    quern_result unrelate(quern_entity source, quern_relation relation)
    {
        return quern::check(quern_commands_unrelate(recorder_, source, relation));
    }
    /** Records that one target of a source is removed; see quern_commands_unrelate_from. */
    quern_result unrelate(quern_entity source, quern_relation relation, quern_entity target)
    {
        return quern::check(quern_commands_unrelate_from(recorder_, source, relation, target));
    }

    /** Records that a component is enabled or disabled; see quern_commands_set_component_enabled. */
    template <typename T> quern_result set_enabled(quern_entity entity, bool enabled)
    {
        return with_component<T>("commands.set_enabled", [&](quern_component component) {
            return quern_commands_set_component_enabled(recorder_, entity, component, enabled);
        });
    }
    /** Records that an entity is enabled or disabled; see quern_commands_set_enabled. */
    quern_result set_enabled(quern_entity entity, bool enabled)
    {
        return quern::check(quern_commands_set_enabled(recorder_, entity, enabled));
    }
    /** Records that an entity gets a name; see quern_commands_set_name. */
    quern_result set_name(quern_entity entity, const char *name)
    {
        return quern::check(quern_commands_set_name(recorder_, entity, name));
    }
    /** Records an instance of a prefab; returns the provisional handle of its root, null on failure. See
     * quern_commands_spawn. */
    entity_commands spawn(quern_prefab prefab, const quern_spawn_def &def = {})
    {
        quern_entity root = quern_entity_null();
        const quern_result result = quern::check(quern_commands_spawn(recorder_, prefab, &def, &root));
        return {recorder_, result == QUERN_OK ? root : quern_entity_null()};
    }
    /** The same with a quern::instances (<quern/prefabs.hpp>), whose failure it returns, if it has one. */
    template <typename How, std::enable_if_t<std::is_same<How, instances>::value, int> = 0>
    entity_commands spawn(quern_prefab prefab, const How &how)
    {
        return quern::check(how.result()) == QUERN_OK
                   ? spawn(prefab, static_cast<const quern_spawn_def &>(how))
                   : entity_commands(recorder_, quern_entity_null());
    }

    /** Records a copy of an entity and its descendants, below the same parent; returns the provisional handle of its root,
     * null on failure. See quern_commands_clone. */
    entity_commands clone(quern_entity entity)
    {
        quern_entity root = quern_entity_null();
        const quern_result result = quern::check(quern_commands_clone(recorder_, entity, nullptr, &root));
        return {recorder_, result == QUERN_OK ? root : quern_entity_null()};
    }
    /** The same with another parent, and values of the root. */
    entity_commands clone(quern_entity entity, const quern_spawn_def &def)
    {
        quern_entity root = quern_entity_null();
        const quern_result result = quern::check(quern_commands_clone(recorder_, entity, &def, &root));
        return {recorder_, result == QUERN_OK ? root : quern_entity_null()};
    }

    /** Records that all entities of a view, or those in the chosen rows, get copies of a value; see
     * quern_commands_set_view. */
    template <typename T>
    quern_result set(const quern_view &view, const T &value, const quern_view_rows *rows = nullptr)
    {
        static_assert(
            std::is_copy_constructible<T>::value,
            "quern: this type cannot be copied to all entities of a view: set it for one entity at a time");
        const void *const address = detail::passed<const T &>(value).address();
        return with_component<T>("commands.set", [&](quern_component component) {
            return quern_commands_set_view(recorder_, &view, rows, component, address);
        });
    }
    /** Records that the entities of a view, or those in the chosen rows, each get a value of their own: that of their row in
     * an array with view.count values. See quern_commands_set_view_values. */
    template <typename T>
    quern_result set_each(const quern_view &view, const T *values, const quern_view_rows *rows = nullptr)
    {
        static_assert(std::is_copy_constructible<T>::value && !std::is_empty<T>::value,
                      "quern: the values are copied: this type is a tag, or has no copy constructor");
        return with_component<T>("commands.set_each", [&](quern_component component) {
            return quern_commands_set_view_values(recorder_, &view, rows, component, values);
        });
    }
    /** Records that a value is combined with that of an entity: by QUERN_SUM, QUERN_MIN, QUERN_MAX, or by
     * quern::world::combine. See quern_commands_accumulate. */
    template <typename T>
    quern_result accumulate(quern_entity entity, const T &value, quern_combine combine = QUERN_SUM)
    {
        static_assert(std::is_copy_constructible<T>::value && !std::is_empty<T>::value,
                      "quern: the value is copied: this type is a tag, or has no copy constructor");
        return with_component<T>("commands.accumulate", [&](quern_component component) {
            return quern_commands_accumulate(recorder_, entity, component, std::addressof(value), combine);
        });
    }
    /** Records the creation of count entities, with an array of count values for each component. out_entities receives
     * their provisional handles, or is nullptr. See quern_commands_create_many. */
    template <typename... T>
    quern_result create_many(uint32_t count, quern_entity *out_entities, const T *...values)
    {
        static_assert(detail::all_differ<T...>, "quern: two arrays have the same type");
        static_assert(
            (std::is_copy_constructible<T>::value && ... && true),
            "quern: the values are copied: a type has no copy constructor: create one entity at a time");
        quern_component components[sizeof...(T) + 1], *component = components;
        const void *const columns[] = {(std::is_empty<T>::value ? nullptr : values)..., nullptr};
        quern_result result = QUERN_OK;
        (void)((result = find<T>("commands.create_many", component++), result == QUERN_OK) && ...);
        if (result == QUERN_OK)
            result = quern_commands_create_many(recorder_, components, columns, sizeof...(T), count,
                                                out_entities);
        return quern::check(result);
    }
    /** Returns the provisional handle of a member of an instance that this callback has spawned; see
     * quern_commands_spawned_member. */
    entity_commands spawned_member(quern_prefab prefab, quern_entity root, uint32_t member) const
    {
        return {recorder_, quern_commands_spawned_member(recorder_, prefab, root, member)};
    }
    /** Records that a component is added to a view; see quern_commands_add_view. */
    template <typename T> quern_result add(const quern_view &view, const quern_view_rows *rows = nullptr)
    {
        static_assert(std::is_default_constructible<T>::value,
                      "quern: this type has no default constructor: use set, with a value");
        return with_component<T>("commands.add", [&](quern_component component) {
            return quern_commands_add_view(recorder_, &view, rows, component, nullptr);
        });
    }
    /** Records that a component is removed from a view; see quern_commands_remove_view. */
    template <typename T> quern_result remove(const quern_view &view, const quern_view_rows *rows = nullptr)
    {
        return with_component<T>("commands.remove", [&](quern_component component) {
            return quern_commands_remove_view(recorder_, &view, rows, component);
        });
    }
    /** Records that the entities of a view are destroyed; see quern_commands_destroy_view. */
    quern_result destroy(const quern_view &view, const quern_view_rows *rows = nullptr)
    {
        return quern::check(quern_commands_destroy_view(recorder_, &view, rows));
    }

  private:
    template <typename T> quern_result find(const char *call, quern_component *out_component)
    {
        *out_component = quern__commands_find_type(recorder_, detail::type_id<T>());
        if (!quern_component_is_null(*out_component)) return QUERN_OK;
        const auto def = detail::define<T, quern_component_def>();
        return quern__commands_use_type(recorder_, &def, call, out_component);
    }
    template <typename T, typename F> quern_result with_component(const char *call, F &&record)
    {
        quern_component component;
        const quern_result result = find<T>(call, &component);
        return quern::check(result == QUERN_OK ? record(component) : result);
    }
    template <typename... T> entity_commands create_passed(detail::passed<T> &&...values)
    {
        static_assert(detail::all_differ<typename detail::passed<T>::type...>,
                      "quern: two values have the same type");
        quern_entity entity = quern_entity_null();
        quern_component components[sizeof...(T)], *component = components;
        const void *const addresses[] = {values.address()...};
        quern_result result = QUERN_OK;
        (void)((result = find<typename detail::passed<T>::type>("commands.create", component++),
                result == QUERN_OK) &&
               ...);
        if (result == QUERN_OK)
            result = quern_commands_create_with(recorder_, components, addresses, sizeof...(T), &entity);
        (values.end(result == QUERN_OK), ...);
        (void)quern::check(result);
        return {recorder_, entity};
    }
    template <typename T> quern_result set_passed(quern_entity entity, detail::passed<T> &&value)
    {
        return with_component<typename detail::passed<T>::type>(
            "commands.set", [&](quern_component component) {
                const quern_result result =
                    quern_commands_set(recorder_, entity, component, value.address());
                value.end(result == QUERN_OK);
                return result;
            });
    }

    quern_commands *recorder_;
};

template <typename T> entity_commands entity_commands::set(T &&value) const
{
    (void)commands(recorder_).set(entity_, std::forward<T>(value));
    return *this;
}
template <typename T> entity_commands entity_commands::set(const T &value) const
{
    (void)commands(recorder_).set<T>(entity_, value);
    return *this;
}
template <typename T> entity_commands entity_commands::add() const
{
    (void)commands(recorder_).add<T>(entity_);
    return *this;
}
template <typename T> entity_commands entity_commands::remove() const
{
    (void)commands(recorder_).remove<T>(entity_);
    return *this;
}
template <typename T> entity_commands entity_commands::set_enabled(bool enabled) const
{
    (void)commands(recorder_).set_enabled<T>(entity_, enabled);
    return *this;
}
inline entity_commands entity_commands::set_enabled(bool enabled) const
{
    (void)commands(recorder_).set_enabled(entity_, enabled);
    return *this;
}
inline entity_commands entity_commands::relate(quern_relation relation, quern_entity target) const
{
    (void)commands(recorder_).relate(entity_, relation, target);
    return *this;
}
template <typename T>
entity_commands entity_commands::relate(quern_relation relation, quern_entity target, const T &value) const
{
    (void)commands(recorder_).relate(entity_, relation, target, value);
    return *this;
}
template <typename T>
entity_commands entity_commands::set_edge_value(quern_relation relation, quern_entity target,
                                                const T &value) const
{
    (void)commands(recorder_).set_edge_value(entity_, relation, target, value);
    return *this;
}
inline entity_commands entity_commands::unrelate(quern_relation relation) const
{
    (void)commands(recorder_).unrelate(entity_, relation);
    return *this;
}
inline entity_commands entity_commands::unrelate(quern_relation relation, quern_entity target) const
{
    (void)commands(recorder_).unrelate(entity_, relation, target);
    return *this;
}
inline entity_commands entity_commands::set_name(const char *name) const
{
    (void)commands(recorder_).set_name(entity_, name);
    return *this;
}
inline void entity_commands::destroy() const
{
    (void)commands(recorder_).destroy(entity_);
}

/* ------------------------------------------------------------------------------------------- context */

/** What a callback can access in addition to its components. Valid until the callback returns. */
class context {
  public:
    /** Makes an object for a context of the C interface. */
    context(quern_context *raw) : raw_(raw) {}
    /** Returns the context of the C interface. */
    operator quern_context *() const { return raw_; }

    /** Returns the time step in seconds; see quern_context_delta_seconds. */
    double delta_seconds() const { return quern_context_delta_seconds(raw_); }
    /** The number of the frame; see quern_context_frame_index. */
    uint64_t frame_index() const { return quern_context_frame_index(raw_); }
    /** The commands of this callback. */
    quern::commands commands() const { return quern_context_commands(raw_); }
    /** Returns whether the entity is alive; see quern_context_is_alive. */
    bool is_alive(quern_entity entity) const { return quern_context_is_alive(raw_, entity); }
    /** A resource, declared by reads_resource or writes_resource; `resource<const T>` reads. */
    template <typename T> T &resource() const
    {
        using type = std::remove_const_t<T>;
        const quern_world *const world = quern__context_world(raw_);
        quern_resource found{};
        if (world != nullptr)
            found.bits = quern__world_find_type(world, QUERN_TYPE_RESOURCE, detail::type_id<type>());
        if (found.bits == 0) {
            const quern_value value = detail::type_of<T>();
            return *static_cast<T *>(quern__context_resource_typed(raw_, &value));
        }
        if constexpr (std::is_const<T>::value)
            return *static_cast<T *>(quern_context_resource(raw_, found));
        else
            return *static_cast<T *>(quern_context_resource_write(raw_, found));
    }
    /** A component of another entity, declared by quern::lookup; nullptr if the entity lacks it or is dead. */
    template <typename T> const T *lookup(quern_entity entity) const
    {
        return static_cast<const T *>(quern_context_lookup(raw_, entity, find<T>()));
    }
    /** A component of another entity, to write, declared by quern::lookup_write; nullptr as for lookup. */
    template <typename T> T *lookup_write(quern_entity entity) const
    {
        return static_cast<T *>(quern_context_lookup_write(raw_, entity, find<T>()));
    }
    /** Returns whether another entity has a component, declared by quern::lookup. */
    template <typename T> bool has(quern_entity entity) const
    {
        return quern_context_has(raw_, entity, find<T>());
    }
    /** Returns whether a component of another entity, declared by quern::lookup, is enabled. */
    template <typename T> bool is_enabled(quern_entity entity) const
    {
        return quern_context_is_component_enabled(raw_, entity, find<T>());
    }
    /** Finds the entities with a value in a quern::index, declared by quern::asks; see quern_context_find. */
    template <typename Index> auto find(const Index &index, const typename Index::value_type &value) const
    {
        return index.find_in(raw_, value);
    }
    /** Returns the target of a source in a relation, declared by quern::reads_relation; see quern_context_target. */
    quern_entity target(quern_entity source, quern_relation relation) const
    {
        return quern_context_target(raw_, source, relation);
    }
    /** Returns an entity or its nearest ancestor that has a component, declared by quern::lookup, in a relation as above;
     * see quern_context_nearest. */
    template <typename T> quern_entity nearest(quern_entity entity, quern_relation relation) const
    {
        return quern_context_nearest(raw_, entity, relation, find<T>());
    }
    /** Calls the lambda with an entity and its ancestors that have a component, upward, until it returns true: the entity
     * has handled the event. Returns that entity, or null. See QUERN_CLIMB. */
    template <typename T, typename F>
    quern_entity climb(quern_entity entity, quern_relation relation, F &&handles) const
    {
        quern_entity at = nearest<T>(entity, relation);
        while (!quern_entity_is_null(at) && !handles(at))
            at = nearest<T>(target(at, relation), relation);
        return at;
    }
    /** Returns whether a source has a target, as above; see quern_context_has_target. */
    bool has_target(quern_entity source, quern_relation relation, quern_entity target) const
    {
        return quern_context_has_target(raw_, source, relation, target);
    }
    /** Returns the value of an edge, or the element in a relation with quern::many; nullptr if there is no such edge. The
     * relation is declared as above, and the component of the values by quern::lookup; see quern_context_edge_value. */
    template <typename T>
    const T *edge_value(quern_entity source, quern_relation relation, quern_entity target) const
    {
        if (quern__world_check_edge(quern__context_world(raw_), relation, sizeof(T), "edge_value") !=
            QUERN_OK)
            return nullptr;
        return static_cast<const T *>(quern_context_edge_value(raw_, source, relation, target));
    }
    /** Returns the number of sources of a target, as above; see quern_context_source_count. */
    uint32_t source_count(quern_entity target, quern_relation relation) const
    {
        return quern_context_source_count(raw_, target, relation);
    }
    /** Calls the lambda with each source of a target in a relation without `many`, as above, in the order of
     * quern_context_next_sibling. In an exclusive system, it may destroy or move the source that it gets. */
    template <typename F> void each_source(quern_entity target, quern_relation relation, F &&call) const
    {
        quern_entity source = quern_context_first_source(raw_, target, relation);
        while (!quern_entity_is_null(source)) {
            const quern_entity next = quern_context_next_sibling(raw_, source, relation);
            call(source);
            source = next;
        }
    }
    /** Returns the number of targets of a source, as above; see quern_context_target_count. */
    uint32_t target_count(quern_entity source, quern_relation relation) const
    {
        return quern_context_target_count(raw_, source, relation);
    }
    /** Calls the lambda with each target of a source, also in a relation with `many`, as above, in the order of
     * quern_context_list_targets. */
    template <typename F> void each_target(quern_entity source, quern_relation relation, F &&call) const
    {
        each_listed(quern_context_list_targets, source, relation, call);
    }
    /** Calls the lambda with each source of a target in a relation with `many`, as above, in the order of
     * quern_context_list_sources. */
    template <typename F>
    void each_source_of_many(quern_entity target, quern_relation relation, F &&call) const
    {
        each_listed(quern_context_list_sources, target, relation, call);
    }
    /** Calls the lambda `f(index, const T &)` for each of count entities that has the component, declared by quern::lookup,
     * in order. The search for all of them costs less than one by one; see quern_context_lookup_many. */
    template <typename T, typename F>
    void lookup_each(const quern_entity *entities, uint32_t count, F &&call) const
    {
        constexpr uint32_t block = 128;
        const void *values[block];
        const quern_component component = find<T>();
        for (uint32_t first = 0; first < count; first += block) {
            const uint32_t in_block = count - first < block ? count - first : block;
            (void)quern_context_lookup_many(raw_, entities + first, in_block, component, values);
            for (uint32_t i = 0; i < in_block; i++)
                if (values[i] != nullptr) call(first + i, *static_cast<const T *>(values[i]));
        }
    }
    /** Calls the lambda with each event, a `const T &`, that was published since the system last ran, in order. The
     * event is declared by quern::reads_events. Refused as quern_context_events. */
    template <typename T, typename F> void each_event(F &&call) const
    {
        quern_event_iterator it{};
        if (!quern_context_events(raw_, find_event<T>(), &it)) return;
        while (quern_event_next(&it)) {
            const T *const values = static_cast<const T *>(it.block.values);
            for (uint32_t i = 0; i < it.block.count; i++)
                call(values[i]);
        }
    }
    /** Returns the number of events that each_event passes; see quern_context_event_count. */
    template <typename T> uint64_t event_count() const
    {
        return quern_context_event_count(raw_, find_event<T>());
    }
    /** Calls the lambda with the partial result of each view, a `const T &`, in the order of views: in
     * quern::at_end, for a system with a parameter quern::reduce<T>. See quern_context_partial_at. */
    template <typename T, typename F> void each_partial(F &&call) const
    {
        const uint32_t count = quern_context_partial_count(raw_);
        for (uint32_t i = 0; i < count; i++)
            if (const void *partial = quern_context_partial_at(raw_, i))
                call(*static_cast<const T *>(partial));
    }
    /** Returns what happened to the rows of a reaction's view; see quern_context_reaction. */
    uint32_t reaction() const { return quern_context_reaction(raw_); }
    /** Returns the index of the thread, from 0; see quern_context_worker_index. */
    uint32_t worker_index() const { return quern_context_worker_index(raw_); }
    /** Returns the pool that runs the frame; nullptr without one. See quern_context_jobs. */
    quern_jobs *jobs() const { return quern_context_jobs(raw_); }
    /** Returns the world, in exclusive systems; see quern_context_world. */
    quern_world *world() const { return quern_context_world(raw_); }
    /** Emits an event, declared by quern::emits. */
    template <typename T> bool emit(T &&value) const { return emit_passed(detail::passed<T>(value)); }
    /** Emits a copy of an event, whose type may be named. */
    template <typename T> bool emit(const T &value) const
    {
        return emit_passed(detail::passed<const T &>(value));
    }

  private:
    template <typename> friend class emitter;

    template <typename List, typename F>
    void each_listed(List *list, quern_entity entity, quern_relation relation, F &call) const
    {
        quern_entity few[32];
        std::vector<quern_entity> many;
        const quern_entity *found = few;
        const uint32_t count = list(raw_, entity, relation, few, 32);
        if (count > 32) {
            many.resize(count);
            (void)list(raw_, entity, relation, many.data(), count);
            found = many.data();
        }
        for (uint32_t i = 0; i < count; i++)
            call(found[i]);
    }
    template <typename T> quern_event find_event() const
    {
        const quern_world *const world = quern__context_world(raw_);
        quern_event event{};
        if (world != nullptr)
            event.bits = quern__world_find_type(world, QUERN_TYPE_EVENT, detail::type_id<T>());
        return event;
    }
    template <typename T> bool emit_passed(detail::passed<T> &&value) const
    {
        using type = typename detail::passed<T>::type;
        const bool is_emitted = quern_context_emit(raw_, find_event<type>(), value.address(), 1);
        value.end(is_emitted);
        return is_emitted;
    }
    template <typename T> quern_component find() const
    {
        const quern_component component = quern__context_find_type(raw_, detail::type_id<T>());
        return quern_component_is_null(component) ? find_by_name<T>() : component;
    }
    /* The component of a type that C registered, and no call on the world has named. */
    template <typename T> quern_component find_by_name() const
    {
        const quern_world *const world = quern__context_world(raw_);
        const auto def = detail::define<T, quern_component_def>();
        quern_component component =
            world != nullptr ? quern_component_find(world, def.name) : quern_component{};
        if (!quern_component_is_null(component) &&
            quern__world_use_type(world, QUERN_TYPE_COMPONENT, component.bits, &def) != QUERN_OK)
            component = quern_component{};
        return component;
    }

    quern_context *raw_;
};

/** Emits events of one type: a parameter of lambdas. Found once per view, and declared by being a parameter. Valid until
 * the callback returns. */
template <typename E> class emitter {
    static_assert(std::is_trivially_copyable<E>::value,
                  "quern: this event has hooks: declare it by quern::emits, and use context.emit");

  public:
    /** The emitter of a callback; the event is declared by quern::emits. See quern_context_emitter. */
    explicit emitter(context owner) : raw_(quern_context_emitter(owner, owner.find_event<E>())) {}
    /** Emits a copy of an event. Returns whether it was emitted; see quern_emit. */
    bool emit(const E &value) const { return quern_emit(raw_, std::addressof(value)); }

  private:
    quern_emitter *raw_;
};

/** The partial result of a view, a parameter of lambdas: a value of zero bytes before the frame, to which each call adds.
 * `context.each_partial<T>` in quern::at_end passes all of them, in an order that does not depend on threads. See
 * quern_context_partial. */
template <typename T> class reduce {
    static_assert(std::is_trivially_copyable<T>::value && !std::is_empty<T>::value,
                  "quern: a partial result begins as zero bytes, so it is a trivially copyable type");

  public:
    /** Refers to a result. */
    explicit reduce(T *result) : result_(result) {}
    /** Returns the result. */
    T &operator*() const { return *result_; }
    /** Returns the address of the result. */
    T *operator->() const { return result_; }

  private:
    T *result_;
};

/** The time step as a float, a parameter of lambdas. It is read once per view, so that loops over rows vectorise. */
class seconds {
  public:
    /** Makes a time step of this length. */
    seconds(float value) : value_(value) {}
    /** Returns the length in seconds. */
    operator float() const { return value_; }

  private:
    float value_;
};

/** The values of one component in all rows of a view: the parameter of lambdas that are called once per view
 * instead of once per row. `column<const T>` reads. */
template <typename T> class column {
  public:
    /** Makes a column of count values. */
    column(T *first, uint32_t count) : first_(first), count_(count) {}
    /** Returns the address of the first value. */
    T *data() const { return first_; }
    /** Returns the number of rows. */
    uint32_t size() const { return count_; }
    /** Returns the address of the first value, for range-based loops. */
    T *begin() const { return first_; }
    /** Returns the address after the last value. */
    T *end() const { return first_ + count_; }
    /** Returns the value of row i, below size(). */
    T &operator[](std::size_t i) const { return first_[i]; }

  private:
    T *first_;
    uint32_t count_;
};

/** A component of the target of the row in a relation, to read: a parameter of lambdas that are called once per row.
 * Rows whose target lacks the component are left out; with `up<T *>` they are not, and the object is empty for them.
 * The relation is the hierarchy (quern_world_parent), or that of the option quern::along. See quern_term_up. */
template <typename T> class up {
  public:
    /** The type of the component. */
    using type = std::remove_pointer_t<T>;
    /** Makes an object for this value. */
    explicit up(const type *value) : value_(value) {}
    /** Returns whether there is a value; always true unless T is a pointer. */
    explicit operator bool() const { return value_ != nullptr; }
    /** Returns the value. */
    const type &operator*() const { return *value_; }
    /** Returns the address of the value; nullptr if there is none. */
    const type *operator->() const { return value_; }

  private:
    const type *value_;
};

/** Like quern::up, for the nearest ancestor that has the component; see quern_term_up_nearest. */
template <typename T> class up_nearest : public up<T> {
    using up<T>::up;
};

/** The value of a component from before it was set (quern_term_old): a parameter of lambdas of reactions to
 * QUERN_REACT_SET. It has no value in rows that were added or removed. */
template <typename T> class old {
  public:
    /** Refers to a value; nullptr: none. */
    explicit old(const T *value) : value_(value) {}
    /** Returns whether the row was set, so that it has a value from before. */
    explicit operator bool() const { return value_ != nullptr; }
    /** Returns the value. Precondition: the row was set. */
    const T &operator*() const { return *value_; }
    /** Returns the address of the value; nullptr if the row was not set. */
    const T *operator->() const { return value_; }

  private:
    const T *value_;
};

template <typename... T> class others;

/* ------------------------------------------------------------------------------------------- lambdas */

/** @cond internal */
namespace detail {

template <typename> inline constexpr bool is_others = false;
template <typename... T> inline constexpr bool is_others<others<T...>> = true;

template <typename F> struct call_of : call_of<decltype(&F::operator())> {
};
template <typename R, typename... A> struct call_of<R (*)(A...)> {
    using arguments = std::tuple<A...>;
};
template <typename R, typename... A> struct call_of<R (*)(A...) noexcept> : call_of<R (*)(A...)> {
};
template <typename R, typename... A> struct call_of<R(A...)> : call_of<R (*)(A...)> {
};
template <typename R, typename... A> struct call_of<R(A...) noexcept> : call_of<R (*)(A...)> {
};
template <typename R, typename C, typename... A> struct call_of<R (C::*)(A...)> {
    using arguments = std::tuple<A...>;
};
template <typename R, typename C, typename... A>
struct call_of<R (C::*)(A...) const> : call_of<R (C::*)(A...)> {
};
template <typename R, typename C, typename... A>
struct call_of<R (C::*)(A...) noexcept> : call_of<R (C::*)(A...)> {
};
template <typename R, typename C, typename... A>
struct call_of<R (C::*)(A...) const noexcept> : call_of<R (C::*)(A...)> {
};

/* The argument for a parameter of a lambda. `fetch` is called once per view, and makes a `state`; `at` makes the
 * argument of a row from the state. */
template <typename A> struct parameter;

/* T & and const T &: the component of the row. */
template <typename T> struct parameter<T &> {
    static constexpr bool is_term = true, is_whole = false;
    using type = T;
    using state = T *;
    static constexpr quern_match match = QUERN_MATCH_ALL;
    static T *fetch(quern_context *, const quern_view *view, uint32_t term)
    {
        if constexpr (std::is_empty<T>::value) {
            return std::addressof(detail::empty_object<T>()); /* all entities share one */
        } else if constexpr (std::is_const<T>::value) {
            return static_cast<T *>(quern__view_typed(
                view, term, sizeof(T), detail::either_name_of<std::remove_const_t<T>>(), true));
        } else {
            return static_cast<T *>(
                quern__view_typed(view, term, sizeof(T), detail::either_name_of<T>(), false));
        }
    }
    static T &at(state values, uint32_t row)
    {
        if constexpr (std::is_empty<T>::value) return *values;
        return values[row];
    }
};

/* T * and const T *: the component of the row, or nullptr if the entity lacks it. */
template <typename T> struct parameter<T *> {
    static constexpr bool is_term = true, is_whole = false;
    using type = T;
    using state = T *;
    static constexpr quern_match match = QUERN_MATCH_OPTIONAL;
    static_assert(!std::is_empty<T>::value, "quern: use quern::column or a query for an optional tag");
    static T *fetch(quern_context *context, const quern_view *view, uint32_t term)
    {
        return parameter<T &>::fetch(context, view, term);
    }
    static T *at(state values, uint32_t row) { return values != nullptr ? values + row : nullptr; }
};

/* up<T> and up_nearest<T>: the component of the target, or of the nearest ancestor. */
template <typename Up, quern_term_path route> struct up_parameter {
    static constexpr bool is_term = true, is_whole = false;
    using type = const typename Up::type;
    using state = const typename Up::type *const *;
    static constexpr quern_term_path path = route;
    static state fetch(quern_context *, const quern_view *view, uint32_t term)
    {
        return static_cast<state>(static_cast<const void *>(
            quern__view_up_typed(view, term, sizeof(type), detail::either_name_of<typename Up::type>())));
    }
    static Up at(state values, uint32_t row) { return Up(values[row]); }
};
template <typename T> struct parameter<up<T>> : up_parameter<up<T>, QUERN_PATH_TARGET> {
    static constexpr quern_match match = std::is_pointer<T>::value ? QUERN_MATCH_OPTIONAL : QUERN_MATCH_ALL;
};
template <typename T> struct parameter<up_nearest<T>> : up_parameter<up_nearest<T>, QUERN_PATH_NEAREST> {
    static constexpr quern_match match = std::is_pointer<T>::value ? QUERN_MATCH_OPTIONAL : QUERN_MATCH_ALL;
};

/* Where a parameter finds its component. */
template <typename P, typename = void> inline constexpr quern_term_path path_of = QUERN_PATH_ROW;
template <typename P> inline constexpr quern_term_path path_of<P, std::void_t<decltype(P::path)>> = P::path;

/* old<T>: the component of the row before it was set. */
template <typename T> struct parameter<old<T>> {
    static constexpr bool is_term = true, is_whole = false;
    using type = const T;
    using state = const T *;
    static constexpr quern_match match = QUERN_MATCH_ALL;
    static_assert(!std::is_empty<T>::value, "quern: a tag has no old values");
    static const T *fetch(quern_context *context, const quern_view *view, uint32_t term)
    {
        return parameter<const T &>::fetch(context, view, term);
    }
    static old<T> at(state values, uint32_t row)
    {
        return old<T>(values != nullptr ? values + row : nullptr);
    }
};
template <typename> struct is_old : std::false_type {
};
template <typename T> struct is_old<old<T>> : std::true_type {
};

/* column<T>: the component in all rows. */
template <typename T> struct parameter<column<T>> {
    static constexpr bool is_term = true, is_whole = true;
    using type = T;
    using state = T *;
    static constexpr quern_match match = QUERN_MATCH_ALL;
    static column<T> whole(quern_context *context, const quern_view *view, uint32_t term)
    {
        return {parameter<T &>::fetch(context, view, term), view->count};
    }
};

/* quern_entity: the entity of the row. */
template <> struct parameter<quern_entity> {
    static constexpr bool is_term = false, is_whole = false;
    using state = const quern_entity *;
    static state fetch(quern_context *, const quern_view *view, uint32_t) { return view->entities; }
    static quern_entity at(state entities, uint32_t row) { return entities[row]; }
};

/* quern::context and quern::commands, by value, in both kinds of lambdas. */
template <> struct parameter<context> {
    static constexpr bool is_term = false, is_whole = false;
    using state = quern_context *;
    static state fetch(quern_context *raw, const quern_view *, uint32_t) { return raw; }
    static context at(state raw, uint32_t) { return raw; }
    static context whole(quern_context *raw, const quern_view *, uint32_t) { return raw; }
};
template <> struct parameter<commands> {
    static constexpr bool is_term = false, is_whole = false;
    using state = quern_commands *;
    static state fetch(quern_context *raw, const quern_view *, uint32_t)
    {
        return quern_context_commands(raw);
    }
    static commands at(state recorder, uint32_t) { return recorder; }
    static commands whole(quern_context *raw, const quern_view *, uint32_t)
    {
        return quern_context_commands(raw);
    }
};

/* reduce<T>: the partial result of the view. */
template <typename T> struct parameter<reduce<T>> {
    static constexpr bool is_term = false, is_whole = false;
    using state = T *;
    static state fetch(quern_context *raw, const quern_view *, uint32_t)
    {
        return static_cast<T *>(quern_context_partial(raw));
    }
    static reduce<T> at(state result, uint32_t) { return reduce<T>(result); }
    static reduce<T> whole(quern_context *raw, const quern_view *view, uint32_t term)
    {
        return reduce<T>(fetch(raw, view, term));
    }
    static quern_result declare(quern_world *, quern_system_def *def)
    {
        def->partial_bytes = sizeof(T);
        return QUERN_OK;
    }
};

/* emitter<E>: the emitter of the callback. */
template <typename E> struct parameter<emitter<E>> {
    static constexpr bool is_term = false, is_whole = false;
    using state = emitter<E>;
    static state fetch(quern_context *raw, const quern_view *, uint32_t)
    {
        return emitter<E>(context(raw));
    }
    static emitter<E> at(state found, uint32_t) { return found; }
    static emitter<E> whole(quern_context *raw, const quern_view *, uint32_t)
    {
        return emitter<E>(context(raw));
    }
    static quern_result declare(quern_world *world, quern_system_def *def)
    {
        quern_event event{};
        const quern_result result = detail::find_event<E>(world, &event);
        return result == QUERN_OK ? detail::append(def->emits, event, "emitter") : result;
    }
};

/* Whether a parameter declares more than terms, which only a system can. */
template <typename A, typename = void> inline constexpr bool has_declaration = false;
template <typename A>
inline constexpr bool has_declaration<
    A, std::void_t<decltype(parameter<A>::declare(static_cast<quern_world *>(nullptr),
                                                  static_cast<quern_system_def *>(nullptr)))>> = true;

/* quern::seconds: the time step. */
template <> struct parameter<seconds> {
    static constexpr bool is_term = false, is_whole = false;
    using state = float;
    static state fetch(quern_context *raw, const quern_view *, uint32_t)
    {
        return static_cast<float>(quern_context_delta_seconds(raw));
    }
    static seconds at(state value, uint32_t) { return value; }
    static seconds whole(quern_context *raw, const quern_view *view, uint32_t term)
    {
        return fetch(raw, view, term);
    }
};

/* const quern_view &: the view, for lambdas that are called once per view. */
template <> struct parameter<const quern_view &> {
    static constexpr bool is_term = false, is_whole = true;
    using state = const quern_view *;
    static const quern_view &whole(quern_context *, const quern_view *view, uint32_t) { return *view; }
};

/* The component of a parameter; int if it has none. */
template <typename A, bool = parameter<A>::is_term> struct component_of {
    using type = int;
};
template <typename A> struct component_of<A, true> {
    using type = std::remove_const_t<typename parameter<A>::type>;
};

/* Whether the lambda reaches the values of its rows by its parameters alone, so that a compiler may take it that no column
 * overlaps another, or also by a further query, a lookup or the query of a loop that is around it. */
enum class access_to_rows { own, shared };

/* Whether a parameter writes the component T of the row. */
template <typename A, typename T, bool = parameter<A>::is_term> inline constexpr bool writes = false;
template <typename A, typename T>
inline constexpr bool writes<A, T, true> = std::is_same<typename parameter<A>::type, T>::value;

/* Whether a parameter of a lambda with the parameters All may reach values of the rows: a serial system may read by a
 * further query, by lookups of its context, and in the target of a row, which may be another row, what its rows write. */
template <typename A, typename... All>
inline constexpr bool reaches_rows = is_others<A> || std::is_same<A, context>::value ||
                                     (path_of<parameter<A>> != QUERN_PATH_ROW &&
                                      (writes<All, typename component_of<A>::type> || ... || false));

/* The state of a parameter while no other parameter reaches its values. */
template <typename A> struct column_of {
    using type = typename parameter<A>::state;
};
template <typename T> struct column_of<T &> {
    using type = T *QUERN__RESTRICT;
};
template <typename T> struct column_of<T *> {
    using type = T *QUERN__RESTRICT;
};
template <> struct column_of<const quern_view &> {
    using type = const quern_view *;
};

template <typename Arguments> struct lambda;

template <typename... A> struct lambda<std::tuple<A...>> {
    static constexpr bool is_whole = (parameter<A>::is_whole || ... || false);
    static constexpr uint32_t term_count = (static_cast<uint32_t>(parameter<A>::is_term) + ... + 0u);

    /* Whether the lambda is of further queries alone: called once if the system has no terms, and thus no rows. */
    static constexpr bool is_for_queries =
        (is_others<A> || ... || false) && term_count == 0 && !(std::is_same<A, quern_entity>::value || ...);

    static constexpr bool has_shared_rows = (reaches_rows<A, A...> || ... || false);

    /* Whether the components of all terms can be constructed without a value. */
    static constexpr bool can_construct =
        (std::is_default_constructible<typename detail::component_of<A>::type>::value && ...);

    /* Index of the term of the i-th parameter, or of its further query: both are numbered in the order of parameters. */
    template <std::size_t i> static constexpr uint32_t term_of()
    {
        constexpr bool terms[] = {parameter<A>::is_term..., false}, queries[] = {is_others<A>..., false};
        uint32_t number = 0;
        for (std::size_t k = 0; k < i; k++)
            number += queries[i] ? queries[k] : terms[k];
        return number;
    }

    template <typename Item>
    static quern_result add_term(quern_world *world, quern_term *terms, uint32_t *count)
    {
        if constexpr (parameter<Item>::is_term) {
            using type = typename parameter<Item>::type;
            quern_component component;
            const quern_result result =
                detail::find_component<std::remove_const_t<type>>(world, &component);
            if (result != QUERN_OK) return result;
            const quern_access access = std::is_empty<type>::value   ? QUERN_ACCESS_NONE
                                        : std::is_const<type>::value ? QUERN_ACCESS_READ
                                                                     : QUERN_ACCESS_WRITE;
            quern_term &term = terms[(*count)++];
            term = is_old<Item>::value ? quern_term_old(component)
                                       : quern_term_make(component, parameter<Item>::match, access);
            term.path = path_of<parameter<Item>>;
            if (term.path != QUERN_PATH_ROW) term.relation = quern_world_parent(world);
        }
        return QUERN_OK;
    }

    /* Lists the terms of the parameters. `terms` has room for QUERN_MAX_TERMS. */
    static quern_result list_terms(quern_world *world, quern_term *terms)
    {
        static_assert(term_count <= QUERN_MAX_TERMS, "quern: too many components for one lambda");
        uint32_t count = 0;
        quern_result result = QUERN_OK;
        (void)((result = add_term<A>(world, terms, &count), result == QUERN_OK) && ...);
        return result;
    }

    static constexpr bool has_declarations = (has_declaration<A> || ... || false);

    /* Declares what parameters access other than by terms. */
    static quern_result declare([[maybe_unused]] quern_world *world, [[maybe_unused]] quern_system_def *def)
    {
        quern_result result = QUERN_OK;
        (void)((result = declare_parameter<A>(world, def), result == QUERN_OK) && ...);
        return result;
    }
    template <typename Item>
    static quern_result declare_parameter([[maybe_unused]] quern_world *world,
                                          [[maybe_unused]] quern_system_def *def)
    {
        if constexpr (has_declaration<Item>)
            return parameter<Item>::declare(world, def);
        else
            return QUERN_OK;
    }

    template <typename F>
    static void run_rows(F &f, const uint32_t count, typename column_of<A>::type... states)
    {
        for (uint32_t i = 0; i < count; i++)
            f(parameter<A>::at(states, i)...);
    }
    /* The same for columns of which the lambda may reach values in another way. */
    template <typename F>
    static void run_shared_rows(F &f, const uint32_t count, typename parameter<A>::state... states)
    {
        for (uint32_t i = 0; i < count; i++)
            f(parameter<A>::at(states, i)...);
    }

    template <access_to_rows access, typename F, std::size_t... i>
    static void run(F &f, quern_context *raw, const quern_view *view, std::index_sequence<i...>)
    {
        if constexpr (is_whole)
            f(parameter<A>::whole(raw, view, term_of<i>())...);
        else if constexpr (access == access_to_rows::shared || has_shared_rows)
            run_shared_rows(f, is_for_queries && view->term_count == 0 ? 1 : view->count,
                            parameter<A>::fetch(raw, view, term_of<i>())...);
        else
            run_rows(f, view->count, parameter<A>::fetch(raw, view, term_of<i>())...);
    }
};

template <typename F> using lambda_of = lambda<typename call_of<F>::arguments>;

/* Checks of what a program passes. Each mistake is one error, in a sentence: calls assert that there is none, at their
 * beginning, and compile nothing further with what is wrong. */

template <typename F, typename = void> inline constexpr bool has_one_call = false;
template <typename F> inline constexpr bool has_one_call<F, std::void_t<decltype(&F::operator())>> = true;
template <typename R, typename... A> inline constexpr bool has_one_call<R (*)(A...), void> = true;
template <typename R, typename... A> inline constexpr bool has_one_call<R (*)(A...) noexcept, void> = true;

template <typename A, typename = void> inline constexpr bool is_parameter = false;
template <typename A>
inline constexpr bool is_parameter<A, std::void_t<decltype(parameter<A>::is_term)>> = true;

enum class mistake {
    none,
    overloaded,
    number,
    reference,
    value,
    copied,
    option,
    types,
    loop,
    captures,
    order
};

template <typename A> constexpr mistake mistake_of_parameter()
{
    using bare_type = std::remove_cv_t<std::remove_reference_t<A>>;
    if constexpr (std::is_same<A, const quern_view &>::value)
        return mistake::none;
    else if constexpr (std::is_lvalue_reference<A>::value &&
                       (is_parameter<bare_type> || std::is_same<bare_type, quern_view>::value))
        return mistake::reference;
    else if constexpr (is_parameter<A>)
        return mistake::none;
    else
        return std::is_arithmetic<A>::value ? mistake::number : mistake::value;
}
template <typename... A> constexpr mistake mistake_of_parameters(std::tuple<A...> *)
{
    mistake first = mistake::none;
    (void)((first = detail::mistake_of_parameter<A>(), first == mistake::none) && ...);
    return first;
}
/* F: the lambda as it is passed. */
template <typename F> constexpr mistake mistake_of_lambda()
{
    using type = std::decay_t<F>;
    if constexpr (has_one_call<type>)
        return detail::mistake_of_parameters(static_cast<typename call_of<type>::arguments *>(nullptr));
    else
        return mistake::overloaded;
}

/* The same for a lambda that is called outside of systems. */
template <typename F> constexpr mistake mistake_of_loop()
{
    constexpr mistake found = detail::mistake_of_lambda<F>();
    if constexpr (found == mistake::none)
        if (lambda_of<std::decay_t<F>>::has_declarations) return mistake::loop;
    return found;
}

template <mistake found> constexpr void expect_no()
{
    constexpr bool has_types = found != mistake::overloaded, has_seconds = found != mistake::number,
                   takes_helpers_by_value = found != mistake::reference,
                   takes_no_component_by_value = found != mistake::value,
                   can_keep = found != mistake::copied, has_options = found != mistake::option,
                   has_plain_types = found != mistake::types, is_in_system = found != mistake::loop,
                   can_call = found != mistake::captures, has_order = found != mistake::order;
    static_assert(has_types,
                  "quern: pass a lambda or a function whose parameters have types: no `auto`, no "
                  "overloaded operator()");
    static_assert(has_seconds,
                  "quern: a lambda has a number as parameter: write quern::seconds for the time step");
    static_assert(
        takes_helpers_by_value,
        "quern: a lambda takes quern::context, quern::commands, quern::seconds, quern_entity, quern::up, "
        "quern::others and quern::column by value, and a view as `const quern_view &`");
    static_assert(
        takes_no_component_by_value,
        "quern: a lambda takes a component by value: write `T &` to write it, `const T &` to read it, or "
        "a pointer if an entity may lack it");
    static_assert(can_keep, "quern: this lambda cannot be copied: pass it by std::move");
    static_assert(
        has_options,
        "quern: options come last, such as quern::with<T>{}, or quern::after{\"name\"} for systems");
    static_assert(can_call,
                  "quern: run_if, at_begin and at_end take lambdas that capture nothing: keep what "
                  "they need in resources");
    static_assert(
        is_in_system,
        "quern: quern::emitter, quern::reduce and quern::others are parameters of systems: a lambda "
        "of a query captures what it writes, and emits by the world");
    static_assert(
        has_order,
        "quern: the components of a lambda for a query are those of the query, in the same order: const if "
        "they are const there, a pointer if they are pointers there, and quern::up as there");
    static_assert(
        has_plain_types,
        "quern: with, without and changed take types of components: no reference, pointer or const");
}

template <typename Arguments> inline constexpr bool takes_event = false;
template <typename E> inline constexpr bool takes_event<std::tuple<const E &>> = true;
template <typename E> inline constexpr bool takes_event<std::tuple<const E &, context>> = true;

template <access_to_rows access, typename F> void run_view(F &f, quern_context *raw, const quern_view *view)
{
    using arguments = typename call_of<F>::arguments;
    lambda<arguments>::template run<access>(f, raw, view,
                                            std::make_index_sequence<std::tuple_size<arguments>::value>());
}

/* What a callback calls, as an object with an address: a lambda, or a pointer to a function. */
template <typename F> std::conditional_t<std::is_function<F>::value, F *, F &> callable(F &f)
{
    return f;
}
template <typename F> void *address_of_call(F &call)
{
    return const_cast<void *>(static_cast<const void *>(std::addressof(call)));
}

/* The lambda of a callback. A lambda that captures nothing has no bytes that its call could read. */
template <typename F> F &captured(quern_context *raw)
{
    if constexpr (std::is_empty<F>::value) {
        return detail::empty_object<F>();
    } else {
        return *static_cast<F *>(quern_context_user_data(raw));
    }
}

template <typename F> struct callback {
    static void view(quern_context *raw, const quern_view *rows) noexcept
    {
        detail::run_view<access_to_rows::own>(detail::captured<F>(raw), raw, rows);
    }
    static void once(quern_context *raw) noexcept { detail::captured<F>(raw)(context(raw)); }
    static bool condition(quern_context *raw) noexcept { return detail::captured<F>(raw)(context(raw)); }
    static void events(quern_context *raw, const quern_view *rows) noexcept
    {
        using arguments = typename call_of<F>::arguments;
        using event = bare<std::tuple_element_t<0, arguments>>;
        F &f = detail::captured<F>(raw);
        const event *values = static_cast<const event *>(
            quern__view_events_typed(rows, sizeof(event), detail::either_name_of<event>()));
        const uint32_t count = rows->count;
        for (uint32_t i = 0; values != nullptr && i < count; i++) {
            if constexpr (std::tuple_size<arguments>::value > 1)
                f(values[i], context(raw));
            else
                f(values[i]);
        }
    }
};

} // namespace detail
/** @endcond */

/* ------------------------------------------------------------------------------------------- options */

/** Options of systems and queries, passed after the lambda. */
template <typename... T> struct with {
    /** Adds the terms to a list of QUERN_MAX_TERMS. */
    quern_result apply(quern_world *world, quern_term *terms) const
    {
        return detail::each_component<T...>(world, [terms](quern_component component) {
            return detail::append(terms, QUERN_MAX_TERMS, quern_term_with(component), "with");
        });
    }
};
/** Selects only entities that lack all the components. */
template <typename... T> struct without {
    /** Adds the terms to a list. */
    quern_result apply(quern_world *world, quern_term *terms) const
    {
        return detail::each_component<T...>(world, [terms](quern_component component) {
            return detail::append(terms, QUERN_MAX_TERMS, quern_term_without(component), "without");
        });
    }
};
/** Selects only entities that have at least one of the components of all `any` of a system or query. */
template <typename... T> struct any {
    /** Adds the terms to a list. */
    quern_result apply(quern_world *world, quern_term *terms) const
    {
        return detail::each_component<T...>(world, [terms](quern_component component) {
            return detail::append(terms, QUERN_MAX_TERMS, quern_term_any(component, QUERN_ACCESS_NONE),
                                  "any");
        });
    }
};
/** Selects only rows in which the components, which can be disabled, are disabled; see quern_term_if_disabled. */
template <typename... T> struct disabled {
    /** Adds the terms to a list. */
    quern_result apply(quern_world *world, quern_term *terms) const
    {
        return detail::each_component<T...>(world, [terms](quern_component component) {
            return detail::append(terms, QUERN_MAX_TERMS,
                                  quern_term_if_disabled(quern_term_with(component)), "disabled");
        });
    }
};
/** Limits the rows to those in which one of the components may have changed since the last run; see
 * quern_term_changed. The components are parameters of the lambda as well, or only conditions. */
template <typename... T> struct changed {
    /** Marks the terms of the components in a list as change filters, and adds those that are missing. */
    quern_result apply(quern_world *world, quern_term *terms) const
    {
        return detail::each_component<T...>(world, [terms](quern_component component) {
            for (uint32_t i = 0; i < QUERN_MAX_TERMS; i++)
                if (quern_component_equal(terms[i].component, component) &&
                    terms[i].path == QUERN_PATH_ROW) {
                    terms[i].changed = true;
                    return QUERN_OK;
                }
            return detail::append(terms, QUERN_MAX_TERMS, quern_term_changed(quern_term_with(component)),
                                  "changed");
        });
    }
};
/** A term of the C interface, such as one of a component without a C++ type. A lambda with a view reads its values. It
 * follows the terms of the parameters. */
struct term {
    quern_term value; /**< The term. */
    /** Adds the term to a list. */
    quern_result apply(quern_world *, quern_term *terms) const
    {
        return detail::append(terms, QUERN_MAX_TERMS, value, "term");
    }
};
/** Limits the rows to the sources of one target; see quern_term_target. */
struct target {
    quern_relation relation; /**< The relation. */
    quern_entity entity; /**< The target; null: no row, until quern_query_set_target gives another one. */
    /** Adds the term to a list. */
    quern_result apply(quern_world *, quern_term *terms) const
    {
        return detail::append(terms, QUERN_MAX_TERMS, quern_term_target(relation, entity), "target");
    }
};
/** The relation of all quern::up and quern::up_nearest parameters. */
struct along {
    quern_relation relation; /**< The relation. */
    /** Sets the relation of the up-terms in a list. */
    quern_result apply(quern_world *, quern_term *terms) const
    {
        for (uint32_t i = 0; i < QUERN_MAX_TERMS; i++)
            if (terms[i].path != QUERN_PATH_ROW) terms[i].relation = relation;
        return QUERN_OK;
    }
};
/** The system runs level by level of a relation; see `levels` in quern_system_def. */
struct levels {
    quern_relation relation; /**< The relation. */
};
/** Declares lookups of components of other entities. */
template <typename... T> struct lookup {
};

/** @cond internal */
namespace detail {

template <typename M> struct member_types;
template <typename Owner, typename T> struct member_types<T Owner::*> {
    using owner = Owner;
    using type = T;
};

/* Returns the offset of a member in its class. */
template <auto member> uint32_t offset_of()
{
    using owner = typename member_types<decltype(member)>::owner;
    static_assert(
        std::is_standard_layout<owner>::value,
        "quern: the class of this member has virtual functions or private members among others, so "
        "members have no offset: use the C interface with offsetof");
    alignas(owner) char bytes[sizeof(owner)];
    const char *const at = reinterpret_cast<const char *>(&(reinterpret_cast<owner *>(bytes)->*member));
    return static_cast<uint32_t>(at - bytes);
}

} // namespace detail
/** @endcond */

/** The direction of an order. */
enum class direction { ascending, descending };

/** Sorts the rows of a quern::query, of quern::others, or of a system, by a member of a component that it reads or writes: an
 * option.
 *
 *     quern::query<const Sprite> sprites{world, quern::order_by<&Sprite::depth>{}};
 *     app.add("draw", [](const Sprite &sprite) { ... }, quern::order_by<&Sprite::depth>{});
 *
 * See quern_order, and order_by of quern_system_def. */
template <auto member, direction way = direction::ascending> struct order_by {
    /** Sets the order. */
    quern_result order(quern_world *world, quern_order &out_order) const
    {
        using types = detail::member_types<decltype(member)>;
        out_order = quern_order{};
        out_order.type = quern__field_type<typename types::type>();
        out_order.offset_bytes = detail::offset_of<member>();
        out_order.descending = way == direction::descending;
        return detail::find_component<typename types::owner>(world, &out_order.component);
    }
};

/** Declares that the system asks an index, by quern::context::find: an option. */
struct asks {
    quern_index *raw; /**< The index. */
};

/** Entities that an index has found, ascending by quern_entity_index. A range. */
class found_entities {
  public:
    /** Count entities from the first one. */
    found_entities(const quern_entity *first, uint32_t count) : first_(first), count_(count) {}
    const quern_entity *begin() const { return first_; }        /**< The first entity. */
    const quern_entity *end() const { return first_ + count_; } /**< The end. */
    uint32_t size() const { return count_; }                    /**< Their number. */
    bool empty() const { return count_ == 0; }                  /**< Whether there are none. */
    /** Returns the entity with this index in the range. */
    quern_entity operator[](uint32_t i) const { return first_[i]; }

  private:
    const quern_entity *first_;
    uint32_t count_;
};

/** @cond internal */
namespace detail {

/* The number of a value of a field, for quern_index_find. */
template <typename T> uint64_t index_value(const T &value)
{
    static_assert(std::is_integral<T>::value || std::is_enum<T>::value ||
                      std::is_same<T, quern_entity>::value,
                  "quern: an index is on a bool, integer, enum or quern_entity");
    if constexpr (std::is_same<T, quern_entity>::value)
        return value.bits;
    else if constexpr (std::is_enum<T>::value)
        return static_cast<uint64_t>(static_cast<std::underlying_type_t<T>>(value));
    else
        return static_cast<uint64_t>(value);
}

} // namespace detail
/** @endcond */
/** Declares lookups that write components of other entities. */
template <typename... T> struct lookup_write {
};
/** Declares resources that the system reads. */
template <typename... T> struct reads_resource {
};
/** Declares resources that the system writes. */
template <typename... T> struct writes_resource {
};
/** Declares events that the system emits. */
template <typename... T> struct emits {
};
/** Declares an event that the system emits by its handle, such as one that C registered. */
struct emits_event {
    quern_event event; /**< The event. */
};
/** Declares events that the system reads by context.each_event. */
template <typename... T> struct reads_events {
};
/** Declares a relation that the system reads by context.target, has_target, source_count and each_source. */
struct reads_relation {
    quern_relation relation; /**< The relation. */
};
/** Declares a resource by its handle, such as one that C registered; see quern_resource_access. */
struct uses_resource {
    quern_resource resource; /**< The resource. */
    quern_access access;     /**< The access. */
};
/** Declares lookups of a component by its handle, such as one that C registered. */
struct looks_up {
    quern_component component; /**< The component. */
};
/** A lambda `bool f(quern::context)`: the system runs in frames in which it returns true. It must not capture anything:
 * what it reads is in resources. See quern_system_condition. */
template <typename F> struct run_if {
    F function; /**< The lambda. */
};
/** Deduces the type of the lambda. */
template <typename F> run_if(F) -> run_if<F>;
/** A lambda `f(quern::context)` that is called before the first view of each run. It must not capture anything. */
template <typename F> struct at_begin {
    F function; /**< The lambda. */
};
/** Deduces the type of the lambda. */
template <typename F> at_begin(F) -> at_begin<F>;
/** A lambda `f(quern::context)` that is called after the last view of each run. It must not capture anything. */
template <typename F> struct at_end {
    F function; /**< The lambda. */
};
/** Deduces the type of the lambda. */
template <typename F> at_end(F) -> at_end<F>;
/** The system runs after the systems with these names. */
struct after {
    const char *name; /**< Name of the other system. */
};
/** The system runs before the system with this name. */
struct before {
    const char *name; /**< Name of the other system. */
};
/** The system runs after the system or set with this name, and sees its commands; see
 * quern_system_def.after_commands_of. */
struct after_commands_of {
    const char *name; /**< Name of the other system or set. */
};
/** Index of the system's phase. */
struct phase {
    uint32_t index; /**< Index in quern_schedule_def.phases. */
};
/** Flags of the system: a combination of quern_system_flags. */
struct flags {
    uint32_t bits; /**< The flags. */
};
/** The frames in which a system runs: one of `count`. See quern_system_def.every. */
struct every {
    uint32_t count;  /**< Frames from one run to the next. */
    uint32_t offset; /**< Frame of `count`, from 1; 0: chosen by the schedule. */
    /** Runs in one of `frames`. */
    explicit constexpr every(uint32_t frames, uint32_t of_frames = 0) : count(frames), offset(of_frames) {}
};
/** A set that the system is in; several options add up. See quern_schedule_add_set. */
struct in_set {
    const char *name; /**< Name of the set. */
};
/** The system runs only in frames in which the value of one of these resources has changed; see if_changed of
 * quern_system_def. */
template <typename... T> struct if_changed {
};
/** Makes a system replace the one that has its name, if the schedule has one: `app.add("move", lambda, quern::replaces)`.
 * Otherwise it is added. See quern_schedule_replace_system. */
struct replaces_option {};
inline constexpr replaces_option replaces{}; /**< The option. */
/** Seconds from one run of the system to the next. */
struct interval {
    double seconds; /**< Length of the interval. */
};
/** Makes the system a reaction: a combination of quern_reaction_kind. */
struct reacts_to {
    uint32_t kinds; /**< The kinds. */
};

/** @cond internal */
namespace detail {

/* The options that queries have, too. */
template <typename O>
auto apply(const O &option, quern_world *world, quern_system_def *def)
    -> decltype(option.apply(world, def->terms))
{
    return option.apply(world, def->terms);
}
inline quern_result apply(const levels &option, quern_world *, quern_system_def *def)
{
    if (option.relation.bits == 0) return detail::fail_null_option("levels");
    def->levels = option.relation;
    return QUERN_OK;
}
template <typename... T>
quern_result add_lookups(quern_world *world, quern_lookup (&list)[QUERN_MAX_ACCESS])
{
    return detail::each_component<T...>(world, [&list](quern_component component) {
        quern_lookup lookup{};
        lookup.component = component;
        return detail::append(list, lookup, "lookup");
    });
}
template <typename... T> quern_result apply(const lookup<T...> &, quern_world *world, quern_system_def *def)
{
    return detail::add_lookups<T...>(world, def->lookups);
}
template <typename... T>
quern_result apply(const lookup_write<T...> &, quern_world *world, quern_system_def *def)
{
    return detail::add_lookups<T...>(world, def->write_lookups);
}
template <typename T>
quern_result add_resource(quern_world *world, quern_system_def *def, quern_access access)
{
    quern_resource_access resource{};
    const quern_result result = detail::find_resource<T>(world, &resource.resource);
    resource.access = access;
    return result == QUERN_OK ? detail::append(def->resources, resource, "resource") : result;
}
template <typename... T>
quern_result apply(const reads_resource<T...> &, quern_world *world, quern_system_def *def)
{
    quern_result result = QUERN_OK;
    (void)((result = detail::add_resource<T>(world, def, QUERN_ACCESS_READ), result == QUERN_OK) && ...);
    return result;
}
template <typename... T>
quern_result apply(const writes_resource<T...> &, quern_world *world, quern_system_def *def)
{
    quern_result result = QUERN_OK;
    (void)((result = detail::add_resource<T>(world, def, QUERN_ACCESS_WRITE), result == QUERN_OK) && ...);
    return result;
}
template <typename T> quern_result add_event(quern_world *world, quern_system_def *def)
{
    quern_event event{};
    const quern_result result = detail::find_event<T>(world, &event);
    return result == QUERN_OK ? detail::append(def->emits, event, "emits") : result;
}
template <typename... T> quern_result apply(const emits<T...> &, quern_world *world, quern_system_def *def)
{
    quern_result result = QUERN_OK;
    (void)((result = detail::add_event<T>(world, def), result == QUERN_OK) && ...);
    return result;
}
inline quern_result apply(const emits_event &option, quern_world *, quern_system_def *def)
{
    return detail::append(def->emits, option.event, "emits_event");
}
template <typename T> quern_result add_read_event(quern_world *world, quern_system_def *def)
{
    quern_event event{};
    const quern_result result = detail::find_event<T>(world, &event);
    return result == QUERN_OK ? detail::append(def->reads_events, event, "reads_events") : result;
}
template <typename... T>
quern_result apply(const reads_events<T...> &, quern_world *world, quern_system_def *def)
{
    quern_result result = QUERN_OK;
    (void)((result = detail::add_read_event<T>(world, def), result == QUERN_OK) && ...);
    return result;
}
inline quern_result apply(const reads_relation &option, quern_world *, quern_system_def *def)
{
    return detail::append(def->relations, option.relation, "reads_relation");
}
inline quern_result apply(const uses_resource &option, quern_world *, quern_system_def *def)
{
    return detail::append(def->resources, quern_resource_access{option.resource, option.access},
                          "uses_resource");
}
inline quern_result apply(const asks &option, quern_world *, quern_system_def *def)
{
    return detail::append(def->indexes, option.raw, "asks");
}
inline quern_result apply(const looks_up &option, quern_world *, quern_system_def *def)
{
    quern_lookup lookup{};
    lookup.component = option.component;
    return detail::append(def->lookups, lookup, "looks_up");
}
template <typename F> quern_result apply(const run_if<F> &, quern_world *, quern_system_def *def)
{
    def->condition = callback<F>::condition;
    return QUERN_OK;
}
template <typename F> quern_result apply(const at_begin<F> &, quern_world *, quern_system_def *def)
{
    def->begin = callback<F>::once;
    return QUERN_OK;
}
template <typename F> quern_result apply(const at_end<F> &, quern_world *, quern_system_def *def)
{
    def->end = callback<F>::once;
    return QUERN_OK;
}
/* An empty name is refused, and a null pointer would end the list. */
inline const char *name_or_empty(const char *name)
{
    return name != nullptr ? name : "";
}
inline quern_result apply(const after &option, quern_world *, quern_system_def *def)
{
    return detail::append(def->after, detail::name_or_empty(option.name), "after");
}
inline quern_result apply(const before &option, quern_world *, quern_system_def *def)
{
    return detail::append(def->before, detail::name_or_empty(option.name), "before");
}
inline quern_result apply(const after_commands_of &option, quern_world *, quern_system_def *def)
{
    return detail::append(def->after_commands_of, detail::name_or_empty(option.name), "after_commands_of");
}
inline quern_result apply(const phase &option, quern_world *, quern_system_def *def)
{
    def->phase = option.index;
    return QUERN_OK;
}
inline quern_result apply(const flags &option, quern_world *, quern_system_def *def)
{
    def->flags |= option.bits;
    return QUERN_OK;
}
inline quern_result apply(const every &option, quern_world *, quern_system_def *def)
{
    def->every = option.count;
    def->offset = option.offset;
    return QUERN_OK;
}
template <typename... T>
quern_result apply(const if_changed<T...> &, quern_world *world, quern_system_def *def)
{
    uint32_t count = 0;
    while (count < QUERN_MAX_CHANGED && def->if_changed[count].bits != 0)
        count++;
    quern_result result = QUERN_OK;
    const auto add = [&](quern_result found, quern_resource resource) {
        result = found;
        if (found == QUERN_OK && count == QUERN_MAX_CHANGED)
            result = quern__option_fail("quern::if_changed", QUERN_MAX_CHANGED);
        if (result == QUERN_OK) def->if_changed[count++] = resource;
        return result == QUERN_OK;
    };
    quern_resource resource{};
    (void)(add(detail::find_resource<T>(world, &resource), resource) && ...);
    return result;
}
inline quern_result apply(const in_set &option, quern_world *, quern_system_def *def)
{
    return detail::append(def->sets, detail::name_or_empty(option.name), "sets");
}
inline quern_result apply(const replaces_option &, quern_world *, quern_system_def *)
{
    return QUERN_OK; /* schedule::finish looks for it */
}
inline quern_result apply(const interval &option, quern_world *, quern_system_def *def)
{
    def->interval_seconds = option.seconds;
    return QUERN_OK;
}
inline quern_result apply(const reacts_to &option, quern_world *, quern_system_def *def)
{
    def->reacts_to |= option.kinds;
    return QUERN_OK;
}

template <auto member, direction way>
quern_result apply(const order_by<member, way> &option, quern_world *world, quern_system_def *def)
{
    return option.order(world, def->order_by);
}

template <typename O, typename = void> inline constexpr bool is_option = false;
template <typename O>
inline constexpr bool is_option<
    O, std::void_t<decltype(detail::apply(std::declval<const O &>(), static_cast<quern_world *>(nullptr),
                                          static_cast<quern_system_def *>(nullptr)))>> = true;
template <typename O, typename = void> inline constexpr bool is_query_option = false;
template <typename O>
inline constexpr bool
    is_query_option<O, std::void_t<decltype(std::declval<const O &>().apply(
                           static_cast<quern_world *>(nullptr), static_cast<quern_term *>(nullptr)))>> =
        true;

template <typename O> inline constexpr bool is_order_option = false;
template <auto member, direction way> inline constexpr bool is_order_option<order_by<member, way>> = true;

/* Sets the order of a query by the option, if it is one for that. */
template <typename O> quern_result set_order(const O &option, quern_world *world, quern_query_def &def)
{
    if constexpr (is_order_option<O>)
        return option.order(world, def.order_by);
    else
        return QUERN_OK;
}
template <typename O> quern_result set_terms(const O &option, quern_world *world, quern_term *terms)
{
    if constexpr (is_order_option<O>)
        return QUERN_OK;
    else
        return option.apply(world, terms);
}

template <typename O> inline constexpr bool has_plain_types = true;
template <typename... T> inline constexpr bool has_plain_types<with<T...>> = (is_plain<T> && ... && true);
template <typename... T> inline constexpr bool has_plain_types<without<T...>> = has_plain_types<with<T...>>;
template <typename... T> inline constexpr bool has_plain_types<changed<T...>> = has_plain_types<with<T...>>;
template <typename... T> inline constexpr bool has_plain_types<any<T...>> = has_plain_types<with<T...>>;
template <typename... T>
inline constexpr bool has_plain_types<disabled<T...>> = has_plain_types<with<T...>>;

/* The functions of options have no object: that of the system is its own. */
template <typename O> inline constexpr bool captures_nothing = true;
template <typename F> inline constexpr bool captures_nothing<run_if<F>> = std::is_empty<F>::value;
template <typename F> inline constexpr bool captures_nothing<at_begin<F>> = std::is_empty<F>::value;
template <typename F> inline constexpr bool captures_nothing<at_end<F>> = std::is_empty<F>::value;

/* The mistake in what is passed to a schedule. F: the lambda as it is passed, with this mistake in its parameters. */
template <typename F, typename... Options> constexpr mistake mistake_of_system(mistake of_lambda)
{
    if (of_lambda != mistake::none) return of_lambda;
    if (!std::is_constructible<std::decay_t<F>, F>::value) return mistake::copied;
    if (!(has_plain_types<Options> && ... && true)) return mistake::types;
    if (!(captures_nothing<Options> && ... && true)) return mistake::captures;
    return (is_option<Options> && ... && true) ? mistake::none : mistake::option;
}

/* Returns the result. Throws if it is a failure; or ends the program, if `ends`. */
inline quern_result check_for(quern_result result, [[maybe_unused]] bool ends)
{
#ifndef QUERN_CPP_EXCEPTIONS
    if (ends && result != QUERN_OK) quern__must_end("quern::app", nullptr, 0);
#endif
    return quern::check(result);
}

/* Owns what a C interface creates. */
template <typename T, void destroy(T *)> class owner {
  public:
    owner() = default;
    owner(owner &&other) noexcept : raw_(std::exchange(other.raw_, nullptr)), ends_(other.ends_) {}
    owner &operator=(owner &&other) noexcept
    {
        if (this != &other) {
            destroy(raw_);
            raw_ = std::exchange(other.raw_, nullptr);
            ends_ = other.ends_;
        }
        return *this;
    }
    ~owner() { destroy(raw_); }
    /** The pointer of the C interface; nullptr if the constructor failed, or the object was moved from. */
    operator T *() const { return raw_; }
    /** Whether a call that fails ends the program, as with a quern::app. */
    bool ends_on_failure() const { return ends_; }

  protected:
    explicit owner(bool ends) : ends_(ends) {}
    explicit owner(T *raw) : raw_(raw) {}
    quern_result check(quern_result result) const { return detail::check_for(result, ends_); }

    T *raw_ = nullptr;
    bool ends_ = false;
};

} // namespace detail
/** @endcond */

} // namespace quern

#include <quern/entity.hpp>

namespace quern {

/* --------------------------------------------------------------------------------------------- world */

/** Lets sources of a relation have several targets: an option of quern::world::relation. */
struct many_option {
    /** Sets the member of the definition. */
    void apply(quern_relation_def &def) const { def.many = true; }
};
inline constexpr many_option many{}; /**< The option. */
/** Keeps the order of the sources of a target. */
struct ordered_option {
    /** Sets the member of the definition. */
    void apply(quern_relation_def &def) const { def.ordered = true; }
};
inline constexpr ordered_option ordered{}; /**< The option. */
/** Makes a relation a forest with levels. */
struct levels_option {
    /** Sets the member of the definition. */
    void apply(quern_relation_def &def) const { def.levels = true; }
};
inline constexpr levels_option with_levels{}; /**< The option. */
/** Gives edges values of a component, `quern::edges_hold{app.component<Debt>()}`; see quern_relation_def.value. */
struct edges_hold {
    quern_component
        value; /**< The component. With quern::many, its one field is a quern::list with the elements. */
    /** Sets the member of the definition. */
    void apply(quern_relation_def &def) const { def.value = value; }
};
/** What happens to a source when its target is destroyed. */
struct on_target_destroyed {
    quern_target_policy policy; /**< The policy. */
    /** Sets the member of the definition. */
    void apply(quern_relation_def &def) const { def.on_target_destroyed = policy; }
};

/** @cond internal */
namespace detail {

template <typename O, typename = void> inline constexpr bool is_relation_option = false;
template <typename O>
inline constexpr bool is_relation_option<
    O, std::void_t<decltype(std::declval<const O &>().apply(std::declval<quern_relation_def &>()))>> = true;

/* A lambda that captures nothing as the function of a combine. */
template <typename T, typename F> quern_combine_def define_combine(const char *name)
{
    static_assert(
        std::is_empty<F>::value && std::is_invocable<F &, T &, const T &>::value,
        "quern: a combine is a lambda that captures nothing, with (T &value, const T &accumulated)");
    quern_combine_def def{};
    def.name = name;
    def.function = [](void *value, const void *accumulated, void *) noexcept {
        detail::empty_object<F>()(*static_cast<T *>(value), *static_cast<const T *>(accumulated));
    };
    return def;
}

} // namespace detail
/** @endcond */

/** A world, destroyed with the object. Destroy queries, schedules and histories of the world before it: declare them
 * after it. */
class world : public detail::owner<quern_world, quern_world_destroy> {
  public:
    /** Creates a world. */
    world() : world(quern_world_def{}, false) {}
    /** Creates a world by its definition; see quern_world_create. */
    explicit world(const quern_world_def &def) : world(def, false) {}
    /** Takes over a world of the C interface, and destroys it with the object. */
    explicit world(quern_world *raw) : owner(raw) {}

    /** Returns the component of a type; registers it on first use. Null on failure. */
    template <typename T> quern_component component()
    {
        quern_component found;
        return check(detail::find_component<T>(raw_, &found)) == QUERN_OK ? found : quern_component{};
    }
    /** Returns the event of a type; registers it on first use. Null on failure. */
    template <typename T> quern_event event()
    {
        quern_event found;
        return check(detail::find_event<T>(raw_, &found)) == QUERN_OK ? found : quern_event{};
    }
    /** Returns the resource of a type; registers it on first use, default constructed. nullptr on failure. */
    template <typename T> T *resource()
    {
        static_assert(std::is_default_constructible<T>::value,
                      "quern: this type has no default constructor: use resource(value)");
        quern_resource found;
        if (check(detail::find_resource<T>(raw_, &found)) != QUERN_OK) return nullptr;
        return static_cast<T *>(quern_resource_get(raw_, found));
    }
    /** Registers the resource of a type with a value, and returns it. A resource that the world has keeps its value.
     * nullptr on failure. */
    template <typename T> std::remove_cv_t<std::remove_reference_t<T>> *resource(T &&value)
    {
        using type = std::remove_cv_t<std::remove_reference_t<T>>;
        const uint32_t count = raw_ != nullptr ? quern_type_count(raw_, QUERN_TYPE_RESOURCE) : 0;
        quern_resource found;
        detail::passed<T> passed(value);
        const quern_result result = detail::find_resource<type>(raw_, &found, passed.address());
        passed.end(result == QUERN_OK && quern_type_count(raw_, QUERN_TYPE_RESOURCE) > count);
        if (check(result) != QUERN_OK) return nullptr;
        return static_cast<type *>(quern_resource_get(raw_, found));
    }

    /** Gives the component of a type the definition that this code has, with its hooks, fields and requirements and
     * without a default value, or registers it. Code that is loaded again calls it before the library that had the
     * type is unloaded. how and out_report may be nullptr; see quern_component_redefine. Null on failure. */
    template <typename T>
    quern_component redefine_component(const quern_redefine_def *how = nullptr,
                                       quern_redefine_report *out_report = nullptr)
    {
        quern_component found;
        const quern_result result = detail::redefine_component<T>(raw_, how, out_report, &found);
        return check(result) == QUERN_OK ? found : quern_component{};
    }
    /** Gives the event of a type the definition that this code has, or registers it; see quern_event_redefine. Null on
     * failure. */
    template <typename T>
    quern_event redefine_event(const quern_redefine_def *how = nullptr,
                               quern_redefine_report *out_report = nullptr)
    {
        quern_event found;
        const quern_result result = detail::redefine_event<T>(raw_, how, out_report, &found);
        return check(result) == QUERN_OK ? found : quern_event{};
    }
    /** Gives the resource of a type the definition that this code has, or registers it, default constructed; see
     * quern_resource_redefine. nullptr on failure. */
    template <typename T>
    T *redefine_resource(const quern_redefine_def *how = nullptr,
                         quern_redefine_report *out_report = nullptr)
    {
        static_assert(std::is_default_constructible<T>::value,
                      "quern: this type has no default constructor: register it by resource(value) before");
        quern_resource found;
        if (check(detail::redefine_resource<T>(raw_, how, out_report, &found)) != QUERN_OK) return nullptr;
        return static_cast<T *>(quern_resource_get(raw_, found));
    }

    /** Creates an entity with the values; null on failure. */
    template <typename... T> entity_ref create(T &&...values)
    {
        if constexpr (sizeof...(T) == 0) {
            quern_entity entity = quern_entity_null();
            (void)check(quern_entity_create(raw_, &entity));
            return this->entity(entity);
        } else {
            return create_passed(detail::passed<T>(values)...);
        }
    }
    /** Creates an entity with copies of the values, whose types may be named; null on failure. */
    template <typename T, typename... U> entity_ref create(const T &value, const U &...values)
    {
        return create_passed(detail::passed<const T &>(value), detail::passed<const U &>(values)...);
    }
    /** Returns an object for an entity of the world. */
    entity_ref entity(quern_entity handle) const { return {raw_, handle, ends_}; }
    /** Creates count entities. The lambda's parameters are `T &` of the components, already constructed; it is
     * called once per entity, in order. See quern_entity_create_filled. */
    template <typename F> QUERN__CPP_NODISCARD quern_result create_many(uint32_t count, F &&fill)
    {
        using type = std::decay_t<F>;
        quern_term terms[QUERN_MAX_TERMS] = {};
        quern_component components[QUERN_MAX_TERMS] = {};
        constexpr uint32_t term_count = detail::lambda_of<type>::term_count;
        static_assert(detail::lambda_of<type>::can_construct,
                      "quern: create_many constructs values, so the types need default constructors");
        const quern_result result = check(detail::lambda_of<type>::list_terms(raw_, terms));
        if (result != QUERN_OK) return result;
        for (uint32_t i = 0; i < term_count; i++)
            components[i] = terms[i].component;
        auto &&call = detail::callable(fill);
        return check(quern_entity_create_filled(raw_, components, term_count, count,
                                                detail::callback<type>::view, detail::address_of_call(call),
                                                nullptr));
    }
    /** Destroys an entity; see quern_entity_destroy. */
    QUERN__CPP_NODISCARD quern_result destroy(quern_entity entity)
    {
        return check(quern_entity_destroy(raw_, entity));
    }
    /** Returns whether the entity is alive. */
    bool is_alive(quern_entity entity) const { return quern_entity_is_alive(raw_, entity); }

    /** Sets a value, and adds the component if it is missing. */
    template <typename T> QUERN__CPP_NODISCARD quern_result set(quern_entity entity, T &&value)
    {
        return set_passed(entity, detail::passed<T>(value));
    }
    /** Sets a copy of a value, whose type may be named, and adds the component if it is missing. */
    template <typename T> QUERN__CPP_NODISCARD quern_result set(quern_entity entity, const T &value)
    {
        return set_passed(entity, detail::passed<const T &>(value));
    }
    /** Adds a component, default constructed. */
    template <typename T> QUERN__CPP_NODISCARD quern_result add(quern_entity entity)
    {
        static_assert(std::is_default_constructible<T>::value,
                      "quern: this type has no default constructor: use set, with a value");
        return check(quern_entity_add(raw_, entity, component<T>(), nullptr));
    }
    /** Removes a component; see quern_entity_remove. */
    template <typename T> QUERN__CPP_NODISCARD quern_result remove(quern_entity entity)
    {
        return check(quern_entity_remove(raw_, entity, component<T>()));
    }
    /** Returns whether the entity has the component. */
    template <typename T> bool has(quern_entity entity)
    {
        return quern_entity_has(raw_, entity, component<T>());
    }
    /** Returns the value; nullptr if the entity lacks the component. Valid until the next structural change. */
    template <typename T> T *get(quern_entity entity)
    {
        return static_cast<T *>(quern_entity_get(raw_, entity, component<std::remove_const_t<T>>()));
    }
    /** Enables or disables a component of an entity; see quern_entity_set_component_enabled. */
    template <typename T> QUERN__CPP_NODISCARD quern_result set_enabled(quern_entity entity, bool enabled)
    {
        return check(quern_entity_set_component_enabled(raw_, entity, component<T>(), enabled));
    }
    /** Returns whether the entity has the component, and it is enabled. */
    template <typename T> bool is_enabled(quern_entity entity)
    {
        return quern_entity_is_component_enabled(raw_, entity, component<T>());
    }
    /** Enables or disables an entity; see quern_entity_set_enabled. */
    QUERN__CPP_NODISCARD quern_result set_enabled(quern_entity entity, bool enabled)
    {
        return check(quern_entity_set_enabled(raw_, entity, enabled));
    }
    /** Returns whether the entity is alive and enabled; see quern_entity_is_enabled. */
    bool is_enabled(quern_entity entity) const { return quern_entity_is_enabled(raw_, entity); }
    /** Returns the tag of disabled entities; see quern_world_disabled_tag. Call it once before commands disable entities. */
    quern_component disabled_tag() { return quern_world_disabled_tag(raw_); }
    /** Tells change filters that a value was changed through its address; see quern_entity_mark_changed. */
    template <typename T> QUERN__CPP_NODISCARD quern_result mark_changed(quern_entity entity)
    {
        return check(quern_entity_mark_changed(raw_, entity, component<T>()));
    }
    /** Sets the name of an entity; see quern_entity_set_name. */
    QUERN__CPP_NODISCARD quern_result set_name(quern_entity entity, const char *name)
    {
        return check(quern_entity_set_name(raw_, entity, name));
    }
    /** Returns the name of an entity; nullptr if it has none. See quern_entity_name. */
    const char *name(quern_entity entity) const { return quern_entity_name(raw_, entity); }
    /** Returns the entity at a path of names; null if there is none. See quern_entity_find. */
    entity_ref find(const char *path) const { return entity(quern_entity_find(raw_, path)); }
    /** Returns the entity at a path below a parent; null if there is none. See quern_entity_find_child. */
    entity_ref find(quern_entity parent, const char *path) const
    {
        return entity(quern_entity_find_child(raw_, parent, path));
    }
    /** Returns the relation of the hierarchy; see quern_world_parent. */
    quern_relation parent() { return quern_world_parent(raw_); }
    /** Returns an entity or its nearest ancestor that has a component; see quern_entity_nearest. */
    template <typename T> entity_ref nearest(quern_entity entity_below, quern_relation relation)
    {
        return entity(quern_entity_nearest(raw_, entity_below, relation, component<T>()));
    }
    /** Returns the relation in which entities share values; see quern_world_shared. */
    quern_relation shared() { return quern_world_shared(raw_); }
    /** Creates an entity with values that others share; null on failure. See quern_shared_create. */
    template <typename... T> entity_ref create_shared(const T &...values)
    {
        const quern_prefab_value list[] = {
            {component<T>(),
             std::is_empty<T>::value ? nullptr : static_cast<const void *>(std::addressof(values)),
             false}...};
        quern_entity made{};
        const quern_result result =
            check(quern_shared_create(raw_, list, static_cast<uint32_t>(sizeof...(T)), &made));
        return entity(result == QUERN_OK ? made : quern_entity{});
    }
    /** Returns a value that an entity shares; nullptr if there is none. See quern_entity_get_shared. */
    template <typename T> const T *get_shared(quern_entity entity)
    {
        return static_cast<const T *>(quern_entity_get_shared(raw_, entity, component<T>()));
    }
    /** Gives an entity a value of its own for one that it shares; see quern_entity_override_shared. */
    template <typename T>
    QUERN__CPP_NODISCARD quern_result override_shared(quern_entity entity, const T &value)
    {
        return check(quern_entity_override_shared(raw_, entity, component<T>(), std::addressof(value)));
    }
    /** Returns the target of a source; null if there is none. See quern_entity_target. */
    entity_ref target(quern_entity source, quern_relation relation) const
    {
        return entity(quern_entity_target(raw_, source, relation));
    }
    /** Returns the number of targets of a source; see quern_entity_target_count. */
    uint32_t target_count(quern_entity source, quern_relation relation) const
    {
        return quern_entity_target_count(raw_, source, relation);
    }
    /** Returns the number of sources of a target; see quern_entity_source_count. */
    uint32_t source_count(quern_entity target, quern_relation relation) const
    {
        return quern_entity_source_count(raw_, target, relation);
    }
    /** Returns the hash of the world; see quern_world_hash. */
    uint64_t hash() const { return quern_world_hash(raw_); }
    /** Checks the world's data; see quern_world_validate. */
    QUERN__CPP_NODISCARD quern_result validate() const { return check(quern_world_validate(raw_)); }
    /** Frees memory that holds no entities; see quern_world_trim. */
    QUERN__CPP_NODISCARD quern_result trim() { return check(quern_world_trim(raw_)); }
    /** Allocates memory in advance; see quern_world_reserve. */
    QUERN__CPP_NODISCARD quern_result reserve(const quern_reserve_def &def)
    {
        return check(quern_world_reserve(raw_, &def));
    }
    /** Runs the reactions to changes made between frames; see quern_world_react. */
    QUERN__CPP_NODISCARD quern_result react(quern_jobs *jobs = nullptr)
    {
        return check(quern_world_react(raw_, jobs));
    }
    /** Writes the world to an archive; see quern_world_save. */
    QUERN__CPP_NODISCARD quern_result save(const quern_sink &sink, const quern_save_def &def = {})
    {
        return check(quern_world_save(raw_, sink, &def));
    }
    /** Adds the entities of an archive; see quern_world_load. out_report may be nullptr. */
    QUERN__CPP_NODISCARD quern_result load(const quern_source &source, const quern_load_def &def = {},
                                           quern_load_report *out_report = nullptr)
    {
        return check(quern_world_load(raw_, source, &def, out_report));
    }
    /** Registers the types of an archive that the world lacks; see quern_world_register_archived. out_count may be nullptr. */
    QUERN__CPP_NODISCARD quern_result register_archived(const quern_source &source,
                                                        uint32_t *out_count = nullptr)
    {
        return check(quern_world_register_archived(raw_, source, out_count));
    }
    /** Copies the world into another one; see quern_world_copy. */
    QUERN__CPP_NODISCARD quern_result copy_to(world &target)
    {
        return check(quern_world_copy(raw_, target.raw_, nullptr, nullptr, nullptr));
    }
    /** Makes a prefab of an entity and all below it; null on failure. See quern_prefab_capture. */
    quern_prefab prefab(quern_entity root)
    {
        quern_prefab captured{};
        return check(quern_prefab_capture(raw_, root, &captured)) == QUERN_OK ? captured : quern_prefab{};
    }
    /** Spawns an instance of a prefab, and returns its root; null on failure. See quern_prefab_spawn. */
    entity_ref spawn(quern_prefab prefab, const quern_spawn_def &def = {})
    {
        quern_entity root = quern_entity_null();
        const quern_result result = check(quern_prefab_spawn(raw_, prefab, &def, &root));
        return entity(result == QUERN_OK ? root : quern_entity_null());
    }
    /** The same with a quern::instances (<quern/prefabs.hpp>), whose failure it returns, if it has one. */
    template <typename How, std::enable_if_t<std::is_same<How, instances>::value, int> = 0>
    entity_ref spawn(quern_prefab prefab, const How &how)
    {
        return check(how.result()) == QUERN_OK ? spawn(prefab, static_cast<const quern_spawn_def &>(how))
                                               : entity(quern_entity_null());
    }
    /** Registers a relation; see quern_relation_register. Null on failure. */
    quern_relation relation(const quern_relation_def &def)
    {
        quern_relation registered{};
        return check(quern_relation_register(raw_, &def, &registered)) == QUERN_OK ? registered
                                                                                   : quern_relation{};
    }
    /** Sets the target of a source, or adds one in a relation with `many`; see quern_entity_relate. */
    QUERN__CPP_NODISCARD quern_result relate(quern_entity source, quern_relation relation,
                                             quern_entity target)
    {
        return check(quern_entity_relate(raw_, source, relation, target));
    }
    /** Relates, and sets the value of the edge; see quern_entity_relate_with. Further error: LAYOUT_MISMATCH (values of
     * edges have another size than T). */
    template <typename T>
    QUERN__CPP_NODISCARD quern_result relate(quern_entity source, quern_relation relation,
                                             quern_entity target, const T &value)
    {
        return check(detail::relate_with(raw_, source, relation, target, value));
    }
    /** Sets the value of an edge; see quern_entity_set_edge_value. Further error: LAYOUT_MISMATCH (values of edges have
     * another size than T). */
    template <typename T>
    QUERN__CPP_NODISCARD quern_result set_edge_value(quern_entity source, quern_relation relation,
                                                     quern_entity target, const T &value)
    {
        return check(detail::set_edge_value(raw_, source, relation, target, value));
    }
    /** Returns the value of an edge, or the element in a relation with quern::many; nullptr if there is no such edge, or,
     * with a message, if values of edges have another size than T. See quern_entity_edge_value. */
    template <typename T>
    const T *edge_value(quern_entity source, quern_relation relation, quern_entity target) const
    {
        return detail::edge_value<T>(raw_, source, relation, target);
    }
    /** Removes all targets of a source; see quern_entity_unrelate. */
    QUERN__CPP_NODISCARD quern_result unrelate(quern_entity source, quern_relation relation)
    {
        return check(quern_entity_unrelate(raw_, source, relation));
    }
    /** Removes one target of a source; see quern_entity_unrelate_from. */
    QUERN__CPP_NODISCARD quern_result unrelate(quern_entity source, quern_relation relation,
                                               quern_entity target)
    {
        return check(quern_entity_unrelate_from(raw_, source, relation, target));
    }
    /** Returns whether the source has the target; see quern_entity_has_target. */
    bool has_target(quern_entity source, quern_relation relation, quern_entity target) const
    {
        return quern_entity_has_target(raw_, source, relation, target);
    }
    /** Calls the lambda with each target of a source, in the order of quern_entity_next_target. What it may change: as the
     * body of a loop over quern::basic_entity_ref::targets. */
    template <typename F> void each_target(quern_entity source, quern_relation relation, F &&call) const
    {
        for (const entity_ref target : entity(source).targets(relation))
            call(target.handle());
    }
    /** Calls the lambda with each source of a target, in the order of quern_entity_next_source. What it may change: as the
     * body of a loop over quern::basic_entity_ref::sources, such as the current source. */
    template <typename F> void each_source(quern_entity target, quern_relation relation, F &&call) const
    {
        for (const entity_ref source : entity(target).sources(relation))
            call(source.handle());
    }
    /** Registers a relation by its name and options: quern::many, quern::ordered, quern::with_levels,
     * quern::on_target_destroyed, quern::edges_hold. Null on failure. */
    template <typename... Options> quern_relation relation(const char *name, const Options &...options)
    {
        static_assert(
            (detail::is_relation_option<Options> && ... && true),
            "quern: the options of relations are quern::many, quern::ordered, quern::with_levels, "
            "quern::on_target_destroyed and quern::edges_hold");
        quern_relation_def def{};
        def.name = name;
        if constexpr ((detail::is_relation_option<Options> && ... && true)) (options.apply(def), ...);
        return relation(def);
    }
    /** Returns the relation with a name; null if there is none. See quern_relation_find. */
    quern_relation find_relation(const char *name) const { return quern_relation_find(raw_, name); }
    /** Relates sources[i] to targets[i], for count of them; see quern_entity_relate_many. */
    QUERN__CPP_NODISCARD quern_result relate_many(const quern_entity *sources, quern_relation relation,
                                                  const quern_entity *targets, uint32_t count)
    {
        return check(quern_entity_relate_many(raw_, sources, relation, targets, count));
    }
    /** Destroys entities; see quern_entity_destroy_many. */
    QUERN__CPP_NODISCARD quern_result destroy_many(const quern_entity *entities, uint32_t count)
    {
        return check(quern_entity_destroy_many(raw_, entities, count));
    }
    /** Enables or disables a component of entities; see quern_entity_set_component_enabled_many. */
    template <typename T>
    QUERN__CPP_NODISCARD quern_result set_enabled_many(const quern_entity *entities, uint32_t count,
                                                       bool enabled)
    {
        return check(
            quern_entity_set_component_enabled_many(raw_, entities, count, component<T>(), enabled));
    }
    /** Spawns instances of a prefab; out_roots has room for their roots, and out_members for all members, or is nullptr.
     * See quern_prefab_spawn_many. */
    QUERN__CPP_NODISCARD quern_result spawn_many(quern_prefab prefab, uint32_t count,
                                                 const quern_spawn_def &def = {},
                                                 quern_entity *out_roots = nullptr,
                                                 quern_entity *out_members = nullptr)
    {
        return check(quern_prefab_spawn_many(raw_, prefab, count, &def, out_roots, out_members));
    }
    /** The same with a quern::instances (<quern/prefabs.hpp>), whose failure it returns, if it has one. */
    template <typename How, std::enable_if_t<std::is_same<How, instances>::value, int> = 0>
    QUERN__CPP_NODISCARD quern_result spawn_many(quern_prefab prefab, uint32_t count, const How &how,
                                                 quern_entity *out_roots = nullptr,
                                                 quern_entity *out_members = nullptr)
    {
        if (how.result() != QUERN_OK) return check(how.result());
        return spawn_many(prefab, count, static_cast<const quern_spawn_def &>(how), out_roots, out_members);
    }
    /** Destroys a prefab; see quern_prefab_destroy. */
    QUERN__CPP_NODISCARD quern_result destroy_prefab(quern_prefab prefab)
    {
        return check(quern_prefab_destroy(raw_, prefab));
    }
    /** Returns the number of members of a prefab; see quern_prefab_member_count. */
    uint32_t member_count(quern_prefab prefab) const { return quern_prefab_member_count(raw_, prefab); }
    /** Returns the index of the member at a path of names; QUERN_NO_MEMBER if there is none. See
     * quern_prefab_find_member. */
    uint32_t find_member(quern_prefab prefab, const char *path) const
    {
        return quern_prefab_find_member(raw_, prefab, path);
    }
    /** Returns the index of the member in a slot; QUERN_NO_MEMBER if there is none. See quern_prefab_find_slot. */
    uint32_t find_member(quern_prefab prefab, quern_component slot) const
    {
        return quern_prefab_find_slot(raw_, prefab, slot);
    }
    /** Returns whether the roots of instances are enabled; see quern_prefab_is_enabled. */
    bool is_enabled(quern_prefab prefab) const { return quern_prefab_is_enabled(raw_, prefab); }
    /** Registers a slot of prefabs; null on failure. See quern_prefab_slot_register. */
    quern_component prefab_slot(const char *name)
    {
        quern_component slot{};
        return check(quern_prefab_slot_register(raw_, name, &slot)) == QUERN_OK ? slot : quern_component{};
    }
    /** Registers how accumulated values are combined, for quern::commands::accumulate, by a lambda
     * `f(T &value, const T &accumulated)` that captures nothing. Null on failure. See quern_combine_register. */
    template <typename T, typename F> quern_combine combine(const char *name, F)
    {
        quern_combine found{};
        const quern_combine_def def = detail::define_combine<T, F>(name);
        return check(quern_combine_register(raw_, &def, &found)) == QUERN_OK ? found : quern_combine{};
    }
    /** Gives a registered combine another lambda; see quern_combine_redefine. */
    template <typename T, typename F> quern_combine redefine_combine(const char *name, F)
    {
        quern_combine found{};
        const quern_combine_def def = detail::define_combine<T, F>(name);
        return check(quern_combine_redefine(raw_, &def, &found)) == QUERN_OK ? found : quern_combine{};
    }
    /** Returns the hash of the entities with ids in a component, which does not depend on handles; see
     * quern_world_hash_by. */
    template <typename T> uint64_t hash_by() { return quern_world_hash_by(raw_, component<T>()); }
    /** Returns a number that changes with each restore; see quern_world_restore_count. */
    uint64_t restore_count() const { return quern_world_restore_count(raw_); }
    /** Removes archetypes without rows; see quern_world_remove_empty_archetypes. out_count may be nullptr. */
    QUERN__CPP_NODISCARD quern_result remove_empty_archetypes(uint32_t *out_count = nullptr)
    {
        return check(quern_world_remove_empty_archetypes(raw_, out_count));
    }
    /** Publishes an event immediately. */
    template <typename T> QUERN__CPP_NODISCARD quern_result emit(T &&value)
    {
        return emit_passed(detail::passed<T>(value));
    }
    /** Publishes a copy of an event, whose type may be named, immediately. */
    template <typename T> QUERN__CPP_NODISCARD quern_result emit(const T &value)
    {
        return emit_passed(detail::passed<const T &>(value));
    }
    /** The commands of code between frames; see quern_world_commands. */
    quern::commands commands() { return quern_world_commands(raw_); }
    /** Drops the commands of code between frames; see quern_world_discard_commands. */
    QUERN__CPP_NODISCARD quern_result discard_commands()
    {
        return check(quern_world_discard_commands(raw_));
    }
    /** Returns what the last flush did; see quern_world_get_flush_stats. */
    quern_flush_stats flush_stats() const
    {
        quern_flush_stats stats{};
        (void)check(quern_world_get_flush_stats(raw_, &stats));
        return stats;
    }
    /** Applies the commands of code between frames; see quern_world_flush. */
    QUERN__CPP_NODISCARD quern_result flush() { return check(quern_world_flush(raw_)); }

  protected:
    /** Creates the world of an app. ends: whether a failed call ends the program. */
    world(const quern_world_def &def, bool ends) : owner(ends)
    {
        (void)check(quern_world_create(&def, &raw_));
    }

  private:
    template <typename T> quern_result set_passed(quern_entity entity, detail::passed<T> &&value)
    {
        quern_component component;
        quern_result result = detail::find_component<typename detail::passed<T>::type>(raw_, &component);
        if (result == QUERN_OK) result = quern_entity_set(raw_, entity, component, value.address());
        value.end(result == QUERN_OK);
        return check(result);
    }
    template <typename T> quern_result emit_passed(detail::passed<T> &&value)
    {
        quern_event event;
        quern_result result = detail::find_event<typename detail::passed<T>::type>(raw_, &event);
        if (result == QUERN_OK) result = quern_world_emit(raw_, event, value.address(), 1);
        value.end(result == QUERN_OK || result == QUERN_ERROR_LIMIT); /* LIMIT: published, then dropped */
        return check(result);
    }
    template <typename... T> entity_ref create_passed(detail::passed<T> &&...values)
    {
        static_assert(detail::all_differ<typename detail::passed<T>::type...>,
                      "quern: two values have the same type");
        quern_entity entity = quern_entity_null();
        quern_component components[sizeof...(T)];
        const void *const addresses[] = {values.address()...};
        quern_result result =
            detail::list_components<typename detail::passed<T>::type...>(raw_, components);
        if (result == QUERN_OK)
            result = quern_entity_create_with(raw_, components, addresses, sizeof...(T), &entity);
        (values.end(result == QUERN_OK), ...);
        (void)check(result);
        return this->entity(entity);
    }
};

/* ------------------------------------------------------------------------------------------ schedule */

/** @cond internal */
namespace detail {

/* The definition of a pool with this many threads. */
inline quern_jobs_def with_threads(uint32_t thread_count)
{
    quern_jobs_def def{};
    def.thread_count = thread_count;
    return def;
}

} // namespace detail
/** @endcond */

/** Worker threads that run frames; see quern_jobs. */
class jobs : public detail::owner<quern_jobs, quern_jobs_destroy> {
  public:
    /** A thread for each processor. */
    jobs() : jobs(quern_jobs_def{}) {}
    /** Creates a pool by its definition; see quern_jobs_create. */
    explicit jobs(const quern_jobs_def &def) : jobs(def, false) {}
    /** Creates a pool of this many threads. */
    explicit jobs(uint32_t thread_count) : jobs(detail::with_threads(thread_count)) {}
    /** Number of threads; see quern_jobs_thread_count. */
    uint32_t thread_count() const { return quern_jobs_thread_count(raw_); }
    /** Returns the number of workers; see quern_jobs_worker_count. */
    uint32_t worker_count() const { return quern_jobs_worker_count(raw_); }
    /** Changes the number of threads; see quern_jobs_resize. */
    QUERN__CPP_NODISCARD quern_result resize(uint32_t thread_count)
    {
        return check(quern_jobs_resize(raw_, thread_count));
    }
    /** Wakes idle workers; see quern_jobs_wake. */
    void wake() { quern_jobs_wake(raw_); }
    /** Runs the queued jobs that only this thread may run; see quern_jobs_run_caller_jobs. out_count may be nullptr. */
    QUERN__CPP_NODISCARD quern_result run_caller_jobs(uint32_t *out_count = nullptr)
    {
        return check(quern_jobs_run_caller_jobs(raw_, out_count));
    }
    /** Makes this thread a worker; see quern_jobs_register_thread. out_worker_index may be nullptr. */
    QUERN__CPP_NODISCARD quern_result register_thread(uint32_t *out_worker_index = nullptr)
    {
        return check(quern_jobs_register_thread(raw_, out_worker_index));
    }
    /** Ends that this thread is a worker; see quern_jobs_unregister_thread. */
    QUERN__CPP_NODISCARD quern_result unregister_thread()
    {
        return check(quern_jobs_unregister_thread(raw_));
    }
    /** Writes what the workers do; see quern_jobs_describe. */
    QUERN__CPP_NODISCARD quern_result describe(const quern_sink &sink) const
    {
        return check(quern_jobs_describe(raw_, sink));
    }
    /** Calls the lambda `f(begin, end)`, or `f(begin, end, worker_index)`, for ranges of 0 to count - 1, on several threads,
     * and waits. It must not change what it captures, except at its own indices. See quern_jobs_parallel_for. */
    template <typename F>
    QUERN__CPP_NODISCARD quern_result parallel_for(uint32_t count, uint32_t grain, F &&f)
    {
        auto &&call = detail::callable(f);
        using type = std::remove_reference_t<decltype(call)>;
        return check(quern_jobs_parallel_for(
            raw_, count, grain,
            [](void *user_data, uint32_t begin, uint32_t end,
               [[maybe_unused]] uint32_t worker_index) noexcept {
                if constexpr (std::is_invocable<type &, uint32_t, uint32_t, uint32_t>::value)
                    (*static_cast<type *>(user_data))(begin, end, worker_index);
                else
                    (*static_cast<type *>(user_data))(begin, end);
            },
            detail::address_of_call(call)));
    }
    /** Calls the lambda `f()` as a job of the pool, on this thread; see quern_jobs_run. */
    template <typename F> QUERN__CPP_NODISCARD quern_result run(F &&f)
    {
        auto &&call = detail::callable(f);
        using type = std::remove_reference_t<decltype(call)>;
        return check(quern_jobs_run(
            raw_, [](void *user_data, uint32_t) noexcept { (*static_cast<type *>(user_data))(); },
            detail::address_of_call(call)));
    }

  private:
    friend class app;
    jobs(const quern_jobs_def &def, bool ends) : owner(ends)
    {
        (void)check(quern_jobs_create(&def, &raw_));
    }
};

/** A schedule, destroyed with the object. It owns copies of the lambdas of its systems. Declare it after its world. */
class schedule : public detail::owner<quern_schedule, quern_schedule_destroy> {
  public:
    /** Creates a schedule with one phase, "update". */
    explicit schedule(quern::world &world) : schedule(world, quern_schedule_def{}) {}
    /** Creates a schedule by its definition; see quern_schedule_create. */
    schedule(quern::world &world, const quern_schedule_def &def)
        : owner(world.ends_on_failure()), world_(world)
    {
        (void)check(quern_schedule_create(world, &def, &raw_));
    }
    /** Takes over a schedule of the C interface, and destroys it with the object. */
    schedule(quern_world *world, quern_schedule *raw) : owner(raw), world_(world) {}

    /** Adds a system from a lambda. Its parameters say what it accesses:
     *
     *   - `T &` writes, `const T &` reads the component T of the row; `T *` and `const T *` do so if the entity has
     *     it, and are nullptr otherwise; an empty T is a tag,
     *   - `quern::up<T>` and `quern::up_nearest<T>` read a component of the target, or of the nearest ancestor,
     *   - `quern::old<T>` reads the component T of the row before it was set, in reactions to QUERN_REACT_SET,
     *   - `quern_entity` is the entity of the row,
     *   - `quern::seconds` is the time step, `quern::context` and `quern::commands` belong to the callback,
     *   - `quern::others<T...>` iterates other entities, which its list selects: a further query. A lambda of such
     *     parameters without components is called once per frame,
     *   - `quern::emitter<E>` emits events, and `quern::reduce<T>` is the partial result of the view,
     *   - `quern::column<T>`, `quern::column<const T>` and `const quern_view &` have all rows of a view: the lambda
     *     is then called once per view, and has no parameters for single rows.
     *
     * Copies of the lambda are not made per thread: it is called by several threads at a time, so it must not
     * change what it captures, unless flags contain QUERN_SYSTEM_SERIAL. Options: with, without, any, disabled,
     * changed, term, target, along, levels, lookup, lookup_write, looks_up, reads_resource, writes_resource,
     * uses_resource, reads_relation, reads_events, emits, run_if, at_begin, at_end, after, before,
     * after_commands_of, phase, flags,
     * interval, every, if_changed, in_set, reacts_to, replaces.
     * Errors: as quern_schedule_add_system. */
    template <typename F, typename... Options>
    QUERN__CPP_NODISCARD quern_result add(const char *name, F &&f, const Options &...options)
    {
        using type = std::decay_t<F>;
        constexpr auto mistake = detail::mistake_of_system<F, Options...>(detail::mistake_of_lambda<F>());
        detail::expect_no<mistake>();
        if constexpr (mistake == detail::mistake::none) {
            quern_system_def def{};
            def.run = detail::callback<type>::view;
            quern_result result = detail::lambda_of<type>::list_terms(world_, def.terms);
            if (result == QUERN_OK) result = detail::lambda_of<type>::declare(world_, &def);
            return result == QUERN_OK ? finish(name, &def, std::forward<F>(f), options...) : check(result);
        } else {
            return QUERN_ERROR_INVALID_ARGUMENT; /* does not compile */
        }
    }
    /** Adds a system without components, called once per frame as `f(quern::context)`. */
    template <typename F, typename... Options>
    QUERN__CPP_NODISCARD quern_result add_once(const char *name, F &&f, const Options &...options)
    {
        constexpr bool is_right = std::is_invocable<std::decay_t<F> &, quern::context>::value;
        static_assert(is_right, "quern: the function of add_once has one parameter, a quern::context");
        constexpr auto mistake = detail::mistake_of_system<F, Options...>(detail::mistake::none);
        detail::expect_no<mistake>();
        if constexpr (mistake == detail::mistake::none && is_right) {
            quern_system_def def{};
            def.begin = detail::callback<std::decay_t<F>>::once;
            return finish(name, &def, std::forward<F>(f), options...);
        } else {
            return QUERN_ERROR_INVALID_ARGUMENT; /* does not compile */
        }
    }
    /** Adds a system that processes events, each once: `f(const Event &)` or `f(const Event &, quern::context)`. */
    template <typename F, typename... Options>
    QUERN__CPP_NODISCARD quern_result add_events(const char *name, F &&f, const Options &...options)
    {
        using type = std::decay_t<F>;
        constexpr auto mistake = detail::mistake_of_system<F, Options...>(
            detail::has_one_call<type> ? detail::mistake::none : detail::mistake::overloaded);
        detail::expect_no<mistake>();
        if constexpr (mistake == detail::mistake::none) {
            using arguments = typename detail::call_of<type>::arguments;
            constexpr bool is_right = detail::takes_event<arguments>;
            static_assert(is_right,
                          "quern: the function of add_events has a `const Event &` as parameter, and a "
                          "quern::context behind it, if you like");
            if constexpr (is_right) {
                quern_system_def def{};
                def.run = detail::callback<type>::events;
                const quern_result result =
                    detail::find_event<detail::bare<std::tuple_element_t<0, arguments>>>(world_,
                                                                                         &def.items);
                return result == QUERN_OK ? finish(name, &def, std::forward<F>(f), options...)
                                          : check(result);
            }
        }
        return QUERN_ERROR_INVALID_ARGUMENT; /* does not compile */
    }
    /** Returns the system with a name; null if there is none. See quern_schedule_find_system. */
    quern_system find(const char *name) const { return quern_schedule_find_system(raw_, name); }
    /** Enables or disables a system; see quern_schedule_set_system_enabled. */
    QUERN__CPP_NODISCARD quern_result set_enabled(quern_system system, bool enabled)
    {
        return check(quern_schedule_set_system_enabled(raw_, system, enabled));
    }
    /** Returns the pointer of the C interface, and leaves the schedule to the caller. The lambdas of its systems still
     * belong to the object. */
    quern_schedule *release() { return std::exchange(raw_, nullptr); }
    /** Returns whether a system is enabled. */
    bool is_enabled(quern_system system) const { return quern_schedule_is_system_enabled(raw_, system); }
    /** Removes a system, and destroys its lambda; see quern_schedule_remove_system. The option quern::replaces replaces
     * one. */
    QUERN__CPP_NODISCARD quern_result remove_system(quern_system system)
    {
        const quern_result result = quern_schedule_remove_system(raw_, system);
        if (result == QUERN_OK) forget_callback(system, callbacks_.size());
        return check(result);
    }
    /** Moves a system behind another in the order of registration; see quern_schedule_move_system. */
    QUERN__CPP_NODISCARD quern_result move_system(quern_system system, quern_system previous)
    {
        return check(quern_schedule_move_system(raw_, system, previous));
    }
    /** Returns the system before another in the order of registration; null for the first. See
     * quern_schedule_previous_system. */
    quern_system previous_system(quern_system system) const
    {
        return quern_schedule_previous_system(raw_, system);
    }
    /** Returns the number of commands that the last frame dropped; see quern_schedule_dropped_command_count. */
    uint32_t dropped_command_count() const { return quern_schedule_dropped_command_count(raw_); }
    /** Returns the number of commands of a failed frame that wait; see quern_schedule_kept_command_count. */
    uint64_t kept_command_count() const { return quern_schedule_kept_command_count(raw_); }
    /** Drops the commands of a failed frame; see quern_schedule_discard_commands. */
    QUERN__CPP_NODISCARD quern_result discard_commands()
    {
        return check(quern_schedule_discard_commands(raw_));
    }
    /** Adds a set of systems; see quern_schedule_add_set. */
    QUERN__CPP_NODISCARD quern_result add_set(const quern_set_def &def)
    {
        return check(quern_schedule_add_set(raw_, &def));
    }
    /** Replaces the set with the name of the definition; see quern_schedule_replace_set. */
    QUERN__CPP_NODISCARD quern_result replace_set(const quern_set_def &def)
    {
        return check(quern_schedule_replace_set(raw_, &def));
    }
    /** Removes a set; see quern_schedule_remove_set. */
    QUERN__CPP_NODISCARD quern_result remove_set(const char *name)
    {
        return check(quern_schedule_remove_set(raw_, name));
    }
    /** Enables or disables all systems of a set; see quern_schedule_enable_set. */
    QUERN__CPP_NODISCARD quern_result enable_set(const char *name, bool enabled)
    {
        return check(quern_schedule_enable_set(raw_, name, enabled));
    }
    /** Returns whether a set is enabled. */
    bool is_set_enabled(const char *name) const { return quern_schedule_is_set_enabled(raw_, name); }
    /** Replaces the list of phases; see quern_schedule_set_phases. */
    QUERN__CPP_NODISCARD quern_result set_phases(std::initializer_list<const char *> names)
    {
        return check(quern_schedule_set_phases(raw_, names.begin(), static_cast<uint32_t>(names.size())));
    }
    /** Sets the target of the option quern::target of a system; see quern_schedule_set_target. */
    QUERN__CPP_NODISCARD quern_result set_target(quern_system system, quern_entity target)
    {
        return check(quern_schedule_set_target(raw_, system, target));
    }
    /** Runs a phase in steps of one length; see quern_schedule_set_fixed_step. */
    QUERN__CPP_NODISCARD quern_result set_fixed_step(uint32_t phase, double step_seconds,
                                                     uint32_t max_step_count)
    {
        return check(quern_schedule_set_fixed_step(raw_, phase, step_seconds, max_step_count));
    }
    /** Orders the systems now; see quern_schedule_compile. */
    QUERN__CPP_NODISCARD quern_result compile() { return check(quern_schedule_compile(raw_)); }
    /** Runs frames of delta_seconds each, up to the first that fails; see quern_schedule_run. jobs may be nullptr. */
    QUERN__CPP_NODISCARD quern_result run(quern_jobs *jobs, double delta_seconds, uint64_t frame_count = 1)
    {
        quern_result result = QUERN_OK;
        for (uint64_t frame = 0; frame < frame_count && result == QUERN_OK; frame++)
            result = quern_schedule_run(raw_, jobs, delta_seconds);
        return check(result);
    }

  private:
    friend class app;
    using holder = std::unique_ptr<void, void (*)(void *)>;

    schedule() = default;

    template <typename F, typename... Options>
    quern_result finish(const char *name, quern_system_def *def, F &&f, const Options &...options)
    {
        using type = std::decay_t<F>;
        quern_result result = QUERN_OK;
        def->name = name;
        (void)((result = detail::apply(options, world_, def), result == QUERN_OK) && ...);
        if (result != QUERN_OK) return check(result);
        constexpr bool is_replacing = (std::is_same<Options, replaces_option>::value || ... || false);
        const std::size_t count = callbacks_.size();
        if constexpr (!std::is_empty<type>::value) {
            callbacks_.push_back(
                {holder(new type(std::forward<F>(f)), [](void *held) { delete static_cast<type *>(held); }),
                 quern_system{}});
            def->user_data = callbacks_.back().lambda.get();
        }
        quern_system system{};
        if (is_replacing && name != nullptr) system = find(name);
        const bool is_known = system.bits != 0;
        result = is_known ? quern_schedule_replace_system(raw_, system, def)
                          : quern_schedule_add_system(raw_, def, &system);
        if constexpr (!std::is_empty<type>::value) {
            callbacks_.back().system = system;
            if (result != QUERN_OK) callbacks_.pop_back();
        }
        if (result == QUERN_OK && is_known) forget_callback(system, count);
        return check(result);
    }

    /* Destroys the lambda of a system among the first `count`. */
    void forget_callback(quern_system system, std::size_t count)
    {
        for (std::size_t i = 0; i < count; i++)
            if (callbacks_[i].system.bits == system.bits) {
                callbacks_.erase(callbacks_.begin() + static_cast<std::ptrdiff_t>(i));
                return;
            }
    }

    quern_world *world_ = nullptr;
    struct owned_callback {
        holder lambda;
        quern_system system;
    };
    std::vector<owned_callback> callbacks_; /* lambdas that capture something */
};

/* ----------------------------------------------------------------------------------------------- app */

/** Makes a quern::app whose calls return failures; see quern::app. */
struct returns_failures_option {};
inline constexpr returns_failures_option returns_failures{}; /**< The option. */

/** A world with one schedule and one pool of worker threads, all destroyed with the object, for programs that need no
 * more than one of each:
 *
 *     quern::app app;
 *     app.add("move", [](Position &p, const Velocity &v, quern::seconds dt) { p.x += v.x * dt; });
 *     app.create(Position{1, 2}, Velocity{3, 4});
 *     app.run(1.0 / 60);
 *
 * A call of an app that fails throws, or, without exceptions, ends the program with the message, like QUERN_MUST; so do
 * those of queries and histories of the app. Results need not be read. An app made with quern::returns_failures returns
 * failures instead: schedule() and jobs() then convert to nullptr if they could not be created, and the app converts to
 * nullptr if its world could not.
 *
 * Destroy queries and histories of the world before the app: declare them after it. Move an app only into another app: a
 * quern::world would take the world and leave the schedule. */
class app : public world {
  public:
    /** Creates a world, a schedule with one phase, "update", and a thread for each processor. */
    app() : app(quern_world_def{}) {}
    /** The same with this many threads. */
    explicit app(uint32_t thread_count)
        : app(quern_world_def{}, quern_schedule_def{}, detail::with_threads(thread_count))
    {
    }
    /** Creates the three by their definitions; see quern_world_create, quern_schedule_create and quern_jobs_create. */
    explicit app(const quern_world_def &world_def, const quern_schedule_def &schedule_def = {},
                 const quern_jobs_def &jobs_def = {})
        : app(world_def, schedule_def, jobs_def, true)
    {
    }
    /** Creates an app whose calls return failures. */
    explicit app(returns_failures_option, const quern_world_def &world_def = {},
                 const quern_schedule_def &schedule_def = {}, const quern_jobs_def &jobs_def = {})
        : app(world_def, schedule_def, jobs_def, false)
    {
    }
    /** Takes over what another object owns. */
    app(app &&other) = default;
    /** Destroys what the object had: the schedule before its world. */
    app &operator=(app &&other) noexcept
    {
        if (this != &other) {
            schedule_ = std::move(other.schedule_);
            jobs_ = std::move(other.jobs_);
            world::operator=(std::move(other));
        }
        return *this;
    }

    /** Adds a system from a lambda; see quern::schedule::add. */
    template <typename F, typename... Options>
    quern_result add(const char *name, F &&f, const Options &...options)
    {
        return schedule_.add(name, std::forward<F>(f), options...);
    }
    /** Adds a system without components; see quern::schedule::add_once. */
    template <typename F, typename... Options>
    quern_result add_once(const char *name, F &&f, const Options &...options)
    {
        return schedule_.add_once(name, std::forward<F>(f), options...);
    }
    /** Adds a system that processes events; see quern::schedule::add_events. */
    template <typename F, typename... Options>
    quern_result add_events(const char *name, F &&f, const Options &...options)
    {
        return schedule_.add_events(name, std::forward<F>(f), options...);
    }
    /** Removes a system; see quern::schedule::remove_system. */
    quern_result remove_system(quern_system system) { return schedule_.remove_system(system); }
    /** Runs frames of delta_seconds each on all threads, up to the first that fails; see quern_schedule_run. Without a
     * pool, if it could not be created, frames run on the calling thread. */
    quern_result run(double delta_seconds, uint64_t frame_count = 1)
    {
        return schedule_.run(jobs_, delta_seconds, frame_count);
    }
    /** Returns the schedule. */
    quern::schedule &schedule() { return schedule_; }
    /** Returns the worker threads. */
    quern::jobs &jobs() { return jobs_; }

    /** @name Calls of the world, whose results need not be read
     * @{ */
    /** See quern::world::create. */
    template <typename... T> app_entity_ref create(T &&...values)
    {
        return of_app(world::create(std::forward<T>(values)...));
    }
    /** See quern::world::create. */
    template <typename T, typename... U> app_entity_ref create(const T &value, const U &...values)
    {
        return of_app(world::create<T, U...>(value, values...));
    }
    /** See quern::world::entity. */
    app_entity_ref entity(quern_entity handle) const { return of_app(world::entity(handle)); }
    /** See quern::world::find. */
    app_entity_ref find(const char *path) const { return of_app(world::find(path)); }
    /** See quern::world::find. */
    app_entity_ref find(quern_entity parent, const char *path) const
    {
        return of_app(world::find(parent, path));
    }
    /** See quern::world::target. */
    app_entity_ref target(quern_entity source, quern_relation relation) const
    {
        return of_app(world::target(source, relation));
    }
    /** See quern::world::spawn. */
    app_entity_ref spawn(quern_prefab prefab, const quern_spawn_def &def = {})
    {
        return of_app(world::spawn(prefab, def));
    }
    /** See quern::world::spawn. */
    template <typename How, std::enable_if_t<std::is_same<How, instances>::value, int> = 0>
    app_entity_ref spawn(quern_prefab prefab, const How &how)
    {
        return of_app(world::spawn(prefab, how));
    }
    /** See quern::world::create_many. */
    template <typename F> quern_result create_many(uint32_t count, F &&fill)
    {
        return world::create_many(count, std::forward<F>(fill));
    }
    /** See quern::world::destroy. */
    quern_result destroy(quern_entity entity) { return world::destroy(entity); }
    /** See quern::world::set. */
    template <typename T> quern_result set(quern_entity entity, T &&value)
    {
        return world::set(entity, std::forward<T>(value));
    }
    /** See quern::world::set. */
    template <typename T> quern_result set(quern_entity entity, const T &value)
    {
        return world::set<T>(entity, value);
    }
    /** See quern::world::add. */
    template <typename T> quern_result add(quern_entity entity) { return world::add<T>(entity); }
    /** See quern::world::remove. */
    template <typename T> quern_result remove(quern_entity entity) { return world::remove<T>(entity); }
    /** See quern::world::relate. */
    quern_result relate(quern_entity source, quern_relation relation, quern_entity target)
    {
        return world::relate(source, relation, target);
    }
    /** See quern::world::relate. */
    template <typename T>
    quern_result relate(quern_entity source, quern_relation relation, quern_entity target, const T &value)
    {
        return world::relate(source, relation, target, value);
    }
    /** See quern::world::set_edge_value. */
    template <typename T>
    quern_result set_edge_value(quern_entity source, quern_relation relation, quern_entity target,
                                const T &value)
    {
        return world::set_edge_value(source, relation, target, value);
    }
    /** See quern::world::unrelate. */
    quern_result unrelate(quern_entity source, quern_relation relation)
    {
        return world::unrelate(source, relation);
    }
    /** See quern::world::unrelate. */
    quern_result unrelate(quern_entity source, quern_relation relation, quern_entity target)
    {
        return world::unrelate(source, relation, target);
    }
    /** See quern::world::emit. */
    template <typename T> quern_result emit(T &&value) { return world::emit(std::forward<T>(value)); }
    /** See quern::world::emit. */
    template <typename T> quern_result emit(const T &value) { return world::emit<T>(value); }
    /** See quern::world::set_enabled. */
    template <typename T> quern_result set_enabled(quern_entity entity, bool enabled)
    {
        return world::set_enabled<T>(entity, enabled);
    }
    /** See quern::world::set_enabled. */
    quern_result set_enabled(quern_entity entity, bool enabled)
    {
        return world::set_enabled(entity, enabled);
    }
    /** See quern::world::mark_changed. */
    template <typename T> quern_result mark_changed(quern_entity entity)
    {
        return world::mark_changed<T>(entity);
    }
    /** See quern::world::set_name. */
    quern_result set_name(quern_entity entity, const char *name) { return world::set_name(entity, name); }
    /** See quern::world::relate_many. */
    quern_result relate_many(const quern_entity *sources, quern_relation relation,
                             const quern_entity *targets, uint32_t count)
    {
        return world::relate_many(sources, relation, targets, count);
    }
    /** See quern::world::destroy_many. */
    quern_result destroy_many(const quern_entity *entities, uint32_t count)
    {
        return world::destroy_many(entities, count);
    }
    /** See quern::world::set_enabled_many. */
    template <typename T>
    quern_result set_enabled_many(const quern_entity *entities, uint32_t count, bool enabled)
    {
        return world::set_enabled_many<T>(entities, count, enabled);
    }
    /** See quern::world::spawn_many. */
    quern_result spawn_many(quern_prefab prefab, uint32_t count, const quern_spawn_def &def = {},
                            quern_entity *out_roots = nullptr, quern_entity *out_members = nullptr)
    {
        return world::spawn_many(prefab, count, def, out_roots, out_members);
    }
    /** See quern::world::spawn_many. */
    template <typename How, std::enable_if_t<std::is_same<How, instances>::value, int> = 0>
    quern_result spawn_many(quern_prefab prefab, uint32_t count, const How &how,
                            quern_entity *out_roots = nullptr, quern_entity *out_members = nullptr)
    {
        return world::spawn_many(prefab, count, how, out_roots, out_members);
    }
    /** See quern::world::destroy_prefab. */
    quern_result destroy_prefab(quern_prefab prefab) { return world::destroy_prefab(prefab); }
    /** See quern::world::discard_commands. */
    quern_result discard_commands() { return world::discard_commands(); }
    /** See quern::world::save. */
    quern_result save(const quern_sink &sink, const quern_save_def &def = {})
    {
        return world::save(sink, def);
    }
    /** See quern::world::load. */
    quern_result load(const quern_source &source, const quern_load_def &def = {},
                      quern_load_report *out_report = nullptr)
    {
        return world::load(source, def, out_report);
    }
    /** See quern::world::register_archived. */
    quern_result register_archived(const quern_source &source, uint32_t *out_count = nullptr)
    {
        return world::register_archived(source, out_count);
    }
    /** See quern::world::validate. */
    quern_result validate() const { return world::validate(); }
    /** See quern::world::trim. */
    quern_result trim() { return world::trim(); }
    /** See quern::world::reserve. */
    quern_result reserve(const quern_reserve_def &def) { return world::reserve(def); }
    /** See quern::world::remove_empty_archetypes. */
    quern_result remove_empty_archetypes(uint32_t *out_count = nullptr)
    {
        return world::remove_empty_archetypes(out_count);
    }
    /** Runs the reactions to changes made between frames, on all threads; see quern_world_react. */
    quern_result react() { return world::react(jobs_); }
    /** See quern::world::flush. */
    quern_result flush() { return world::flush(); }
    /** @} */

  private:
    app(const quern_world_def &world_def, const quern_schedule_def &schedule_def,
        const quern_jobs_def &jobs_def, bool ends)
        : world(world_def, ends), jobs_(jobs_def, ends)
    {
        /* Without a world there is no schedule: the message that quern_error_message returns remains that of the world. */
        if (raw_ != nullptr) schedule_ = quern::schedule(*this, schedule_def);
    }

    static app_entity_ref of_app(entity_ref entity)
    {
        return {entity.world(), entity.handle(), entity.ends_on_failure()};
    }

    quern::jobs jobs_;
    quern::schedule schedule_; /* destroyed first */
};

/** @cond internal */
namespace detail {

/* The systems that an object of the kit has added to an app. They refer to the object, so they end with it. */
class app_systems {
  public:
    app_systems() = default;
    app_systems(const app_systems &) = delete;
    app_systems &operator=(const app_systems &) = delete;
    ~app_systems()
    {
        for (const quern_system system : systems_)
            (void)quern_schedule_remove_system(schedule_, system);
    }
    /* Notes a system by its name, if the schedule has it. */
    void note(quern_schedule *schedule, const char *name)
    {
        const quern_system system = quern_schedule_find_system(schedule, name);
        schedule_ = schedule;
        if (system.bits != 0) systems_.push_back(system);
    }

  private:
    quern_schedule *schedule_ = nullptr;
    std::vector<quern_system> systems_;
};

} // namespace detail
/** @endcond */

/* --------------------------------------------------------------------------------------------- query */

} // namespace quern

#include <quern/list.hpp>
#include <quern/rows.hpp>

namespace quern {

/** @cond internal */
namespace detail {

/* The components of a lambda, as parameters. */
template <typename... A> using joined = decltype(std::tuple_cat(std::declval<A>()...));
template <typename A>
using term_or_none = std::conditional_t<parameter<A>::is_term, std::tuple<parameter<A>>, std::tuple<>>;
template <typename Arguments> struct terms_of;
template <typename... A> struct terms_of<std::tuple<A...>> {
    using type = joined<std::tuple<>, term_or_none<A>...>;
};
template <typename F>
using terms_of_lambda = typename terms_of<typename call_of<std::decay_t<F>>::arguments>::type;

/* Whether a parameter may be that for an item of a list: the component is the same, read if the list reads it, that of the
 * same entity, and optional if it is optional there. A column of a component that is absent has no address. */
template <typename Item, typename Wanted>
inline constexpr bool
    fits = std::is_same<std::remove_const_t<typename Item::type>,
                        std::remove_const_t<typename Wanted::type>>::value &&
           (std::is_const<typename Wanted::type>::value || !std::is_const<typename Item::type>::value) &&
           path_of<Item> == path_of<Wanted> && (Item::match == Wanted::match || Wanted::is_whole);
template <typename Items, typename Wanted, std::size_t... i>
constexpr bool all_fit(std::index_sequence<i...>)
{
    return (fits<std::tuple_element_t<i, Items>, std::tuple_element_t<i, Wanted>> && ... && true);
}
/* Whether parameters fit the items before the end of either list. */
template <typename Items, typename Wanted> constexpr bool fit_as_far_as_both()
{
    constexpr std::size_t items = std::tuple_size<Items>::value, wanted = std::tuple_size<Wanted>::value;
    return all_fit<Items, Wanted>(std::make_index_sequence<(items < wanted ? items : wanted)>());
}

/* The mistake in a lambda for a query of these types. Parameters behind them are for terms of its options. */
template <typename F, typename... T> constexpr mistake mistake_of_query()
{
    constexpr mistake found = detail::mistake_of_loop<F>();
    if constexpr (found == mistake::none)
        if (!detail::fit_as_far_as_both<std::tuple<parameter<query_item<T>>...>, terms_of_lambda<F>>())
            return mistake::order;
    return found;
}

} // namespace detail
/** @endcond */

/** A query, destroyed with the object. T are the components, as for lambdas: const reads, otherwise writes, a
 * pointer is optional, and up<T> is that of the target. Declare it after its world. */
template <typename... T> class query : public detail::owner<quern_query, quern_query_destroy> {
    using row_iterator = detail::row_iterator<std::tuple<T...>, std::index_sequence_for<T...>>;
    using chunk_iterator = detail::chunk_iterator<std::tuple<T...>, std::index_sequence_for<T...>>;

  public:
    /** Options: with, without, any, disabled, changed, term, target, along, order_by. */
    template <typename... Options>
    explicit query(quern::world &world, const Options &...options) : query::owner(world.ends_on_failure())
    {
        constexpr auto mistake =
            !(detail::has_plain_types<Options> && ... && true) ? detail::mistake::types
            : !((detail::is_query_option<Options> || detail::is_order_option<Options>)&&... && true)
                ? detail::mistake::option
                : detail::mistake::none;
        detail::expect_no<mistake>();
        if constexpr (mistake == detail::mistake::none) {
            quern_query_def def{};
            quern_result result =
                detail::lambda<std::tuple<detail::query_item<T>...>>::list_terms(world, def.terms);
            if (result == QUERN_OK)
                (void)((result = detail::set_terms(options, world, def.terms), result == QUERN_OK) && ...);
            if (result == QUERN_OK)
                (void)((result = detail::set_order(options, world, def), result == QUERN_OK) && ...);
            if (result == QUERN_OK) result = quern_query_create(world, &def, &raw_);
            (void)check(result);
            world_ = world;
        }
    }
    /** Number of entities; see quern_query_count. */
    uint64_t count() const { return quern_query_count(raw_); }
    /** Returns what the order has cost to sort; see quern_query_get_order_stats. */
    quern_order_stats order_stats() const
    {
        quern_order_stats numbers{};
        (void)check(quern_query_get_order_stats(raw_, &numbers));
        return numbers;
    }
    /** Returns whether an entity matches; see quern_query_matches. */
    bool matches(quern_entity entity) const { return quern_query_matches(raw_, entity); }
    /** Sets the target of the option quern::target; see quern_query_set_target. */
    QUERN__CPP_NODISCARD quern_result set_target(quern_entity target)
    {
        return check(quern_query_set_target(raw_, target));
    }
    /** Adds a component, default constructed, to all entities of the query that lack it; see quern_entity_add_matching.
     * out_count may be nullptr. */
    template <typename A> QUERN__CPP_NODISCARD quern_result add_to_all(uint64_t *out_count = nullptr)
    {
        static_assert(std::is_default_constructible<A>::value,
                      "quern: this type has no default constructor: pass a value");
        return check(with_component<A>([&](quern_component component) {
            return quern_entity_add_matching(raw_, component, nullptr, out_count);
        }));
    }
    /** Adds a component with copies of a value to all entities of the query that lack it. */
    template <typename A>
    QUERN__CPP_NODISCARD quern_result add_to_all(const A &value, uint64_t *out_count = nullptr)
    {
        static_assert(
            std::is_copy_constructible<A>::value && !std::is_empty<A>::value,
            "quern: the value is copied to all entities, so its type has a copy constructor and is no tag");
        return check(with_component<A>([&](quern_component component) {
            return quern_entity_add_matching(raw_, component, std::addressof(value), out_count);
        }));
    }
    /** Removes a component of all entities of the query; see quern_entity_remove_matching. */
    template <typename A> QUERN__CPP_NODISCARD quern_result remove_from_all(uint64_t *out_count = nullptr)
    {
        return check(with_component<A>([&](quern_component component) {
            return quern_entity_remove_matching(raw_, component, out_count);
        }));
    }
    /** Returns the number of views; see quern_query_view_count. */
    uint32_t view_count() const { return quern_query_view_count(raw_); }
    /** Destroys all entities of the query; see quern_entity_destroy_matching. out_count may be nullptr. */
    QUERN__CPP_NODISCARD quern_result destroy_all(uint64_t *out_count = nullptr)
    {
        return check(quern_entity_destroy_matching(raw_, out_count));
    }
    /** Calls the lambda for each entity, or for each view if it has columns. Its component parameters are those of
     * the query, in the same order. The lambda must not create or destroy entities, nor add or remove components: the
     * loop would end after the view, with STRUCTURE_CHANGED. Errors: as quern_query_iterate and quern_query_next. */
    template <typename F> QUERN__CPP_NODISCARD quern_result each(F &&f) const
    {
        constexpr auto mistake = detail::mistake_of_query<F, T...>();
        detail::expect_no<mistake>();
        if constexpr (mistake == detail::mistake::none) {
            quern_query_iterator it = quern_query_iterate(raw_);
            while (quern_query_next(&it))
                detail::run_view<detail::access_to_rows::shared>(f, nullptr, &it.view);
            return check(it.result);
        } else {
            return QUERN_ERROR_INVALID_ARGUMENT; /* does not compile */
        }
    }
    /** @name Range-based loops
     * A loop goes through the same rows as `each`, in the same order, with the same restrictions. It has no result: if it
     * cannot begin, or ends early because the structure has changed, it throws, or ends the program with the message. A
     * loop over rows(result) or chunks(result) stores the result instead.
     *
     * The elements are tuples: `for (auto [entity, position] : query)`. Components are references, optional ones
     * pointers. The loop of a row is not vectorised, unlike that of `each` or of a chunk.
     * @{ */
    /** Begins a loop over rows. */
    auto begin() const { return row_iterator(raw_, nullptr); }
    /** Returns the end of all loops. */
    detail::loop_end end() const { return {}; }
    /** Returns a loop over rows that stores its result. */
    detail::loop_range<row_iterator> rows(quern_result &out_result) const & { return {raw_, &out_result}; }
    /** Refuses a query without a name, which would end before the loop. */
    template <typename Q = query> detail::loop_range<row_iterator> rows(quern_result &out_result) const &&
    {
        expect_name<Q>();
        return {raw_, &out_result};
    }
    /** Returns a loop over views. Its elements have the columns of the entities and components: quern::column with an
     * element per row, or none for an optional component that the entities lack. Those of up<T> are pointers. */
    detail::loop_range<chunk_iterator> chunks() const & { return {raw_, nullptr}; }
    /** Refuses a query without a name, which would end before the loop. */
    template <typename Q = query> detail::loop_range<chunk_iterator> chunks() const &&
    {
        expect_name<Q>();
        return {raw_, nullptr};
    }
    /** Returns a loop over views that stores its result. */
    detail::loop_range<chunk_iterator> chunks(quern_result &out_result) const &
    {
        return {raw_, &out_result};
    }
    /** Refuses a query without a name, which would end before the loop. */
    template <typename Q = query>
    detail::loop_range<chunk_iterator> chunks(quern_result &out_result) const &&
    {
        expect_name<Q>();
        return {raw_, &out_result};
    }
    /** @} */

    /** The same on several threads; see quern_query_parallel_for. The lambda must not change what it captures. */
    template <typename F> QUERN__CPP_NODISCARD quern_result each(quern_jobs *jobs, F &&f) const
    {
        constexpr auto mistake = detail::mistake_of_query<F, T...>();
        detail::expect_no<mistake>();
        if constexpr (mistake == detail::mistake::none) {
            auto &&call = detail::callable(f);
            return check(quern_query_parallel_for(raw_, jobs, detail::callback<std::decay_t<F>>::view,
                                                  detail::address_of_call(call)));
        } else {
            return QUERN_ERROR_INVALID_ARGUMENT; /* does not compile */
        }
    }

  private:
    template <typename Q> static void expect_name()
    {
        static_assert(!std::is_same<Q, query>::value,
                      "quern: this query ends before the loop over it: give it a name");
    }
    template <typename A, typename F> quern_result with_component(F &&call)
    {
        quern_component component;
        const quern_result result = detail::find_component<A>(world_, &component);
        return result == QUERN_OK ? call(component) : result;
    }

    quern_world *world_ = nullptr;
};

/** An index on a member of a component, destroyed with the object. Declare it after its world. Systems may outlive it.
 *
 *     quern::index<&Unit::team> teams{world};
 *     for (const quern_entity unit : teams.find(3)) ...
 *
 * See <quern/index.h>. */
template <auto member> class index : public detail::owner<quern_index, quern_index_destroy> {
    using types = detail::member_types<decltype(member)>;

  public:
    using value_type = typename types::type; /**< Type of the member. */
    static_assert(!std::is_floating_point<value_type>::value,
                  "quern: an index is on a bool, integer, enum or quern_entity: sort by a floating-point "
                  "number, by quern::order_by");

    /** Creates the index; see quern_index_create. name may be nullptr. */
    explicit index(quern::world &world, bool is_unique = false, const char *name = nullptr)
        : index::owner(world.ends_on_failure())
    {
        quern_index_def def{};
        def.name = name;
        def.type = quern__field_type<value_type>();
        def.offset_bytes = detail::offset_of<member>();
        def.is_unique = is_unique;
        quern_result result = detail::find_component<typename types::owner>(world, &def.component);
        if (result == QUERN_OK) result = quern_index_create(world, &def, &raw_);
        (void)check(result);
    }
    /** Finds the entities with a value; none if that fails. See quern_index_find. */
    found_entities find(const value_type &value)
    {
        const quern_entity *first = nullptr;
        uint32_t count = 0;
        const quern_result result = quern_index_find(raw_, detail::index_value(value), &first, &count);
        return check(result) == QUERN_OK ? found_entities{first, count} : found_entities{nullptr, 0};
    }
    /** Finds the entities in a callback; see quern::context::find. */
    found_entities find_in(quern_context *context, const value_type &value) const
    {
        const quern_entity *first = nullptr;
        const uint32_t count = quern_context_find(context, raw_, detail::index_value(value), &first);
        return {first, count};
    }
    /** Checks that each value is that of one entity only; see quern_index_check. */
    QUERN__CPP_NODISCARD quern_result check_unique() { return check(quern_index_check(raw_)); }
    /** Returns the numbers of the index; see quern_index_get_stats. */
    quern_index_stats stats() const
    {
        quern_index_stats numbers{};
        (void)check(quern_index_get_stats(raw_, &numbers));
        return numbers;
    }
};

/** @cond internal */
namespace detail {

/* Options that a list of types can have: those without members. */
template <typename T>
inline constexpr bool
    is_list_option = (is_query_option<T> && std::is_empty<T>::value) || is_order_option<T>;

/* The terms of a list of components and options, such as `const Place, with<Ghost>`: the components first. */
template <typename... T> struct others_list {
    template <typename Item>
    static quern_result add_item(quern_world *world, quern_term *terms, uint32_t *count)
    {
        if constexpr (is_list_option<Item>)
            return QUERN_OK;
        else
            return lambda<std::tuple<>>::add_term<query_item<Item>>(world, terms, count);
    }
    template <typename Item> static quern_result add_option(quern_world *world, quern_term *terms)
    {
        if constexpr (is_list_option<Item>)
            return detail::set_terms(Item{}, world, terms);
        else
            return QUERN_OK;
    }
    template <typename Item> static quern_result add_order(quern_world *world, quern_query_def &def)
    {
        if constexpr (is_order_option<Item>)
            return Item{}.order(world, def.order_by);
        else
            return QUERN_OK;
    }
    static quern_result define(quern_world *world, quern_query_def &def)
    {
        quern_result result = list(world, def.terms);
        if (result == QUERN_OK) (void)((result = add_order<T>(world, def), result == QUERN_OK) && ...);
        return result;
    }
    static quern_result list(quern_world *world, quern_term *terms)
    {
        static_assert(sizeof...(T) <= QUERN_MAX_TERMS, "quern: too many components for quern::others");
        uint32_t count = 0;
        quern_result result = QUERN_OK;
        (void)((result = add_item<T>(world, terms, &count), result == QUERN_OK) && ...);
        if (result == QUERN_OK) (void)((result = add_option<T>(world, terms), result == QUERN_OK) && ...);
        return result;
    }
};

/* The components of a list of components and options, as parameters. */
template <typename T>
using item_or_none =
    std::conditional_t<is_list_option<T>, std::tuple<>, std::tuple<parameter<query_item<T>>>>;

} // namespace detail
/** @endcond */

/** A further query of a system, a parameter of its lambda: the entities besides its own rows that it iterates, such as each
 * ghost for each player. T are the components, as of quern::query: const reads, otherwise writes, a pointer is optional, and
 * up<T> is that of the target. Options follow them: with, without, any, disabled, changed, order_by.
 *
 *     app.add("catch", [](const Place &at, Player &player, quern::others<const Place, quern::with<Ghost>> ghosts) {
 *         ghosts.each([&](const Place &ghost) { player.caught += near(at, ghost); });
 *     });
 *
 * Several parameters of this kind are several queries. See queries in quern_system_def. */
template <typename... T> class others {
    static_assert(
        sizeof...(T) > 0 && ((!detail::is_option<T> || detail::is_list_option<T>)&&...),
        "quern: quern::others has a list of components, and the options with, without, any, disabled, "
        "changed and order_by");
    static_assert(
        (detail::has_plain_types<T> && ... && true),
        "quern: with, without and changed take types of components: no reference, pointer or const");

  public:
    /** The further query with this index of a callback. */
    others(quern_context *raw, uint32_t number) : raw_(raw), number_(number) {}
    /** Starts an iteration of the C interface, which a loop can leave early; see quern_context_query. */
    quern_query_iterator iterate() const { return quern_context_query(raw_, number_); }
    /** Calls the lambda for each entity, or for each view if it has columns. Its component parameters are those of the
     * list, in the same order; later ones may be left out. It may have quern::context and quern::commands, too. */
    template <typename F> void each(F &&f) const
    {
        constexpr auto mistake = detail::mistake_of_loop<F>();
        detail::expect_no<mistake>();
        if constexpr (mistake == detail::mistake::none) {
            using items = detail::joined<std::tuple<>, detail::item_or_none<T>...>;
            using wanted = detail::terms_of_lambda<F>;
            constexpr bool has_same_components =
                std::tuple_size<wanted>::value <= std::tuple_size<items>::value &&
                detail::fit_as_far_as_both<items, wanted>();
            static_assert(has_same_components,
                          "quern: the components of a lambda for quern::others are those of its list, in "
                          "the same order: const if they "
                          "are const there, a pointer if they are pointers there, and quern::up as there");
            if constexpr (has_same_components) {
                quern_query_iterator it = iterate();
                while (quern_query_next(&it))
                    detail::run_view<detail::access_to_rows::shared>(f, raw_, &it.view);
            }
        }
    }

  private:
    quern_context *raw_;
    uint32_t number_;
};

/** @cond internal */
namespace detail {

template <typename... T> struct parameter<others<T...>> {
    static constexpr bool is_term = false, is_whole = false;
    using state = others<T...>;
    static state fetch(quern_context *raw, const quern_view *, uint32_t number) { return {raw, number}; }
    static state at(state found, uint32_t) { return found; }
    static state whole(quern_context *raw, const quern_view *, uint32_t number) { return {raw, number}; }
    static quern_result declare(quern_world *world, quern_system_def *def)
    {
        for (quern_query_def &query : def->queries)
            if (quern_component_is_null(query.terms[0].component))
                return others_list<T...>::define(world, query);
        return quern__option_fail("others", QUERN_MAX_SYSTEM_QUERIES);
    }
};

} // namespace detail
/** @endcond */

/** Reads events of one type outside of systems; destroyed with the object. It sees the events that are published after its
 * creation, and events wait for it. Declare it after its world. */
template <typename E>
class event_reader : public detail::owner<quern_event_reader, quern_event_reader_destroy> {
  public:
    /** Creates a reader; see quern_event_reader_create. name, for messages, may be nullptr. */
    explicit event_reader(quern::world &world, const char *name = nullptr)
        : event_reader::owner(world.ends_on_failure())
    {
        quern_event_reader_def def{};
        def.event = world.event<E>();
        def.name = name;
        (void)check(quern_event_reader_create(world, &def, &raw_));
    }
    /** Calls the lambda with each event, a `const E &`, that the reader has not seen, in order. The lambda must not publish
     * events of the type nor run frames: the values are valid until then. */
    template <typename F> void each(F &&call)
    {
        quern_event_block block{};
        while (quern_event_reader_next(raw_, &block)) {
            const E *const values = static_cast<const E *>(block.values);
            for (uint32_t i = 0; i < block.count; i++)
                call(values[i]);
        }
    }
    /** Number of events that were dropped before the reader saw them; see quern_event_reader_lost_count. */
    uint64_t lost_count() const { return quern_event_reader_lost_count(raw_); }
};

/** A list of entities to be saved, as a part of a world; destroyed with the object. Declare it after its world. */
class archive : public detail::owner<quern_archive, quern_archive_destroy> {
  public:
    /** Creates an empty list; see quern_archive_create. */
    explicit archive(quern::world &world) : owner(world.ends_on_failure())
    {
        (void)check(quern_archive_create(world, &raw_));
    }
    /** Appends an entity; see quern_archive_append. */
    QUERN__CPP_NODISCARD quern_result append(quern_entity entity) { return append(&entity, 1); }
    /** Appends entities; see quern_archive_append. */
    QUERN__CPP_NODISCARD quern_result append(const quern_entity *entities, uint32_t count)
    {
        return check(quern_archive_append(raw_, entities, count));
    }
    /** Appends the entities of a query; see quern_archive_append_query. */
    QUERN__CPP_NODISCARD quern_result append(quern_query *query)
    {
        return check(quern_archive_append_query(raw_, query));
    }
    /** Appends an entity and all below it; see quern_archive_append_tree. */
    QUERN__CPP_NODISCARD quern_result append_tree(quern_entity root)
    {
        return check(quern_archive_append_tree(raw_, root));
    }
    /** Empties the list; see quern_archive_clear. */
    void clear() { quern_archive_clear(raw_); }
    /** Number of entities in the list; see quern_archive_count. */
    uint32_t count() const { return quern_archive_count(raw_); }
    /** Writes the entities; see quern_archive_save. quern::world::load adds them to a world. */
    QUERN__CPP_NODISCARD quern_result save(const quern_sink &sink, const quern_save_def &def = {}) const
    {
        return check(quern_archive_save(raw_, sink, &def));
    }
};

/** The last frames of a world, destroyed with the object. Declare it after the schedules that it saves. */
class history : public detail::owner<quern_history, quern_history_destroy> {
  public:
    /** Creates a history of the world; see quern_history_create. */
    explicit history(quern::world &world, const quern_history_def &def = {})
        : owner(world.ends_on_failure())
    {
        (void)check(quern_history_create(world, &def, &raw_));
    }
    /** Saves the world as a frame; see quern_history_save. */
    QUERN__CPP_NODISCARD quern_result save(uint64_t frame, quern_jobs *jobs = nullptr)
    {
        return check(quern_history_save(raw_, frame, jobs));
    }
    /** Stores the numbers of the oldest and the newest kept frame, and returns whether there is one; see
     * quern_history_get_frames. */
    bool frames(uint64_t &out_oldest, uint64_t &out_newest) const
    {
        return quern_history_get_frames(raw_, &out_oldest, &out_newest);
    }
    /** Returns the numbers of the kept frames in ascending order; see quern_history_list_frames. */
    template <typename Number = uint64_t> std::vector<Number> list_frames() const
    {
        std::vector<Number> frames(quern_history_list_frames(raw_, nullptr, 0));
        (void)quern_history_list_frames(raw_, frames.data(), static_cast<uint32_t>(frames.size()));
        return frames;
    }
    /** Returns the statistics; see quern_history_get_stats. */
    quern_history_stats stats() const
    {
        quern_history_stats stats{};
        (void)check(quern_history_get_stats(raw_, &stats));
        return stats;
    }
    /** Restores a frame; see quern_history_restore. */
    QUERN__CPP_NODISCARD quern_result restore(uint64_t frame, quern_jobs *jobs = nullptr)
    {
        return check(quern_history_restore(raw_, frame, jobs));
    }
};

} // namespace quern

#endif
