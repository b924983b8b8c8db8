/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_COMPONENT_H
#define QUERN_COMPONENT_H

/** @file
 * Component types and resources (singletons of a world), registered by name at run time, in each world.
 *
 * A type is plain bytes unless it has hooks. A type of size 0 is a tag: it takes no space. Describing the
 * fields of a type has three effects: quern_world_hash looks at the fields only (so padding never matters),
 * handles inside values become real when a deferred create does, and tools can show the value. */

#include <quern/base.h>
#include <quern/id.h>
#include <quern/type.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A world; see <quern/world.h>. */
typedef struct quern_world quern_world;

#define QUERN_MAX_COMPONENTS        1024 /**< Component types per world. */
#define QUERN_MAX_RESOURCES         1024 /**< Resources per world. */
#define QUERN_MAX_ENTITY_COMPONENTS 250  /**< Components of one entity, including tags. */
#define QUERN_MAX_ALIGNMENT_BYTES   64   /**< Alignment of a component. */
#define QUERN_MAX_COMPONENT_BYTES \
    16256 /**< Size of the largest component, which just fits a 16 KiB chunk. */

/** What a type needs that is not plain bytes.
 *
 * Each hook may be NULL and works on count values that lie next to each other. A hook must not fail and
 * must not call into the world. Without a hook, construct fills with zero bytes, copy and move copy the
 * bytes, and destroy does nothing.
 *
 * Values of a type with destroy and without copy are handed over: the world takes over what an added or
 * set value owns. Hooks run on the thread that makes the change; copy also runs on worker threads when a
 * command is recorded. */
typedef struct quern_hooks {
    /** Makes values of raw memory. */
    void (*construct)(void *values, uint32_t count, void *user_data) QUERN__ZERO;
    /** Copies to raw memory; the sources stay alive. */
    void (*copy)(void *targets, const void *sources, uint32_t count, void *user_data) QUERN__ZERO;
    /** Moves to raw memory; the sources are raw memory afterwards, and destroy is not called for them. */
    void (*move)(void *targets, void *sources, uint32_t count, void *user_data) QUERN__ZERO;
    /** Releases what the values own; they are raw memory afterwards. */
    void (*destroy)(void *values, uint32_t count, void *user_data) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to each hook. */
} quern_hooks;

/** Describes a component type. */
typedef struct quern_component_def {
    const char *name QUERN__ZERO; /**< 1 to QUERN_MAX_NAME_BYTES bytes, unique in the world. */
    /** 0 (a tag) to QUERN_MAX_COMPONENT_BYTES; a multiple of the alignment. */
    uint32_t size_bytes QUERN__ZERO;
    uint32_t alignment_bytes QUERN__ZERO; /**< A power of two up to QUERN_MAX_ALIGNMENT_BYTES; 0 means 1. */
    const char *type_name QUERN__ZERO;    /**< Name of the C type, for QUERN_COLUMN; NULL: not known. */
    /** Described fields; none: all bytes count as they are. */
    quern_field fields[QUERN_MAX_FIELDS] QUERN__ZERO;
    quern_hooks hooks QUERN__ZERO; /**< None: plain bytes. A tag has none. */
    /** Each entity that has it may have it disabled: then terms leave the entity out, as if it did not have
     * the component, but the value stays, and switching costs next to nothing. See quern_entity_enable. */
    bool can_disable QUERN__ZERO;
    /** Filters on changes of it (quern_term_changed) let single rows pass instead of whole chunks. While
     * there are such filters, each entity that has it takes 8 bytes more, and who asks for the column to
     * write writes these, too; see quern_view_write_rows. For a tag, to be added is to change. */
    bool row_changes QUERN__ZERO;
    bool is_hidden QUERN__ZERO; /**< Tools should not show it. Not part of the layout. */
} quern_component_def;

/** Registers a type. The same name with the same layout (size, alignment, fields, hooks, can_disable,
 * row_changes) gives the same component again. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, BAD_ALIGNMENT,
 * COMPONENT_TOO_LARGE, LAYOUT_MISMATCH (the name has another layout), LIMIT, WORLD_LOCKED, OUT_OF_MEMORY.
 * Threads: main, between frames. */
QUERN_API quern_result quern_component_register(quern_world *world, const quern_component_def *def,
                                                quern_component *out_component);

/** Returns the component of that name, or null. Threads: any, while nobody registers. */
QUERN_API quern_component quern_component_find(const quern_world *world, const char *name);

/** Returns the name of a component, valid as long as the world. NULL, with a message, if the world does not
 * have it. Threads: any, while nobody registers. */
QUERN_API const char *quern_component_name(const quern_world *world, quern_component component);

/** Gives the size of one value, 0 for a tag. Errors: NULL_ARGUMENT, UNKNOWN_COMPONENT. Threads: any, while
 * nobody registers. */
QUERN_API quern_result quern_component_get_size(const quern_world *world, quern_component component,
                                                uint32_t *out_size_bytes);

/** Registers a C type as plain bytes, under its own name. The type comes last, so that a type of C++ may
 * have commas in it; one that is not trivially copyable does not compile.
 *
 *     quern_component position;
 *     quern_result result = QUERN_COMPONENT_REGISTER(world, &position, Position);
 *
 * Errors and threads: as quern_component_register. */
#ifdef __cplusplus
#define QUERN_COMPONENT_REGISTER(world, out_component, ...) \
    quern__component_register<__VA_ARGS__>((world), (out_component), #__VA_ARGS__, {})
#else
#define QUERN_COMPONENT_REGISTER(world, out_component, ...) \
    quern_component_register((world), &(quern_component_def){QUERN_TYPE(__VA_ARGS__)}, (out_component))
#endif

/** Registers a C type with described fields, given as to QUERN_FIELDS:
 *
 *     quern_result result = QUERN_COMPONENT_REGISTER_FIELDS(world, &position, Position, x, y);
 *
 * Errors and threads: as quern_component_register. */
#ifdef __cplusplus
#define QUERN_COMPONENT_REGISTER_FIELDS(world, out_component, type, ...) \
    quern__component_register<type>((world), (out_component), #type, QUERN_FIELDS(type, __VA_ARGS__))
#else
#define QUERN_COMPONENT_REGISTER_FIELDS(world, out_component, type, ...)                              \
    quern_component_register(                                                                         \
        (world), &(quern_component_def){QUERN_TYPE(type), .fields = QUERN_FIELDS(type, __VA_ARGS__)}, \
        (out_component))
#endif

/* -------------------------------------------------------------------------------------- resources */

/** Describes a singleton of the world: a grid, a score, the input. Systems reach it by declaring it.
 * quern_world_hash includes it exactly when its fields are described. */
typedef struct quern_resource_def {
    const char *name QUERN__ZERO;    /**< As in quern_component_def; a component may have the same name. */
    uint32_t size_bytes QUERN__ZERO; /**< 1 and more. */
    uint32_t alignment_bytes QUERN__ZERO;             /**< A power of two up to 64; 0 means 16. */
    const char *type_name QUERN__ZERO;                /**< Name of the C type; NULL: not known. */
    quern_field fields[QUERN_MAX_FIELDS] QUERN__ZERO; /**< Described fields. */
    const void *value QUERN__ZERO; /**< size_bytes to start with; NULL: constructed, or zero bytes. */
    quern_hooks hooks QUERN__ZERO; /**< destroy runs when the world is destroyed. */
    bool is_hidden QUERN__ZERO;    /**< Tools should not show it. */
} quern_resource_def;

/** Registers a resource. The same name with the same layout (size, alignment, fields, hooks) gives the same
 * resource again, which keeps its value: `value` is ignored then. Errors: NULL_ARGUMENT, INVALID_ARGUMENT,
 * BAD_ALIGNMENT, LAYOUT_MISMATCH (the name has another layout), LIMIT, WORLD_LOCKED, OUT_OF_MEMORY. Threads:
 * main, between frames. */
QUERN_API quern_result quern_resource_register(quern_world *world, const quern_resource_def *def,
                                               quern_resource *out_resource);

/** Registers a C type as a resource, as QUERN_COMPONENT_REGISTER does for a component; the value begins as
 * zero bytes. Errors and threads: as quern_resource_register. */
#ifdef __cplusplus
#define QUERN_RESOURCE_REGISTER(world, out_resource, ...) \
    quern__resource_register<__VA_ARGS__>((world), (out_resource), #__VA_ARGS__, {})
#else
#define QUERN_RESOURCE_REGISTER(world, out_resource, ...) \
    quern_resource_register((world), &(quern_resource_def){QUERN_TYPE(__VA_ARGS__)}, (out_resource))
#endif

/** Registers a C type with described fields as a resource, as QUERN_COMPONENT_REGISTER_FIELDS does for a
 * component; the value begins as zero bytes. Errors and threads: as quern_resource_register. */
#ifdef __cplusplus
#define QUERN_RESOURCE_REGISTER_FIELDS(world, out_resource, type, ...) \
    quern__resource_register<type>((world), (out_resource), #type, QUERN_FIELDS(type, __VA_ARGS__))
#else
#define QUERN_RESOURCE_REGISTER_FIELDS(world, out_resource, type, ...)                               \
    quern_resource_register(                                                                         \
        (world), &(quern_resource_def){QUERN_TYPE(type), .fields = QUERN_FIELDS(type, __VA_ARGS__)}, \
        (out_resource))
#endif

/** Returns the resource of that name, or null. Threads: any, while nobody registers. */
QUERN_API quern_resource quern_resource_find(const quern_world *world, const char *name);

/** Gives the size of the value. Errors: NULL_ARGUMENT, UNKNOWN_RESOURCE. Threads: any, while nobody
 * registers. */
QUERN_API quern_result quern_resource_get_size(const quern_world *world, quern_resource resource,
                                               uint32_t *out_size_bytes);

/** Returns the value, whose address never changes. Returns NULL, with a message, when the world does not
 * have the resource or a frame is running (systems use quern_context_resource). Threads: main, between
 * frames. */
QUERN_API void *quern_resource_get(quern_world *world, quern_resource resource);

#ifdef __cplusplus
}

template <typename T, typename Def>
inline Def quern__def_of(const char *name, std::initializer_list<quern_field> fields)
{
    Def def = {};
    def.name = def.type_name = name;
    def.size_bytes = quern__type_of<T>::size_bytes;
    def.alignment_bytes = quern__type_of<T>::alignment_bytes;
    quern_field *field = def.fields;
    for (const quern_field &given : fields)
        *field++ = given;
    return def;
}

template <typename T>
inline quern_result quern__component_register(quern_world *world, quern_component *out_component,
                                              const char *name, std::initializer_list<quern_field> fields)
{
    const auto def = quern__def_of<T, quern_component_def>(name, fields);
    return quern_component_register(world, &def, out_component);
}

template <typename T>
inline quern_result quern__resource_register(quern_world *world, quern_resource *out_resource,
                                             const char *name, std::initializer_list<quern_field> fields)
{
    const auto def = quern__def_of<T, quern_resource_def>(name, fields);
    return quern_resource_register(world, &def, out_resource);
}
#endif

#endif
