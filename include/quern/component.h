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
    16256                   /**< Size of the largest component, which just fits a 16 KiB chunk. */
#define QUERN_MAX_FIELDS 64 /**< Described fields per type. */

/** The type of a described field. */
typedef enum quern_field_type {
    QUERN_FIELD_BOOL = 1, /**< bool */
    QUERN_FIELD_I8,       /**< int8_t */
    QUERN_FIELD_U8,       /**< uint8_t */
    QUERN_FIELD_I16,      /**< int16_t */
    QUERN_FIELD_U16,      /**< uint16_t */
    QUERN_FIELD_I32,      /**< int32_t */
    QUERN_FIELD_U32,      /**< uint32_t */
    QUERN_FIELD_I64,      /**< int64_t */
    QUERN_FIELD_U64,      /**< uint64_t */
    QUERN_FIELD_F32,      /**< float */
    QUERN_FIELD_F64,      /**< double */
    QUERN_FIELD_ENTITY    /**< quern_entity */
} quern_field_type;

/** A field, or a fixed array of fields, of a component or resource. */
typedef struct quern_field {
    const char *name;      /**< 1 to QUERN_MAX_NAME_BYTES bytes. */
    quern_field_type type; /**< Required. */
    uint32_t offset_bytes; /**< From the start of the value. */
    uint32_t count;        /**< Elements of an array; 0 means 1. */
} quern_field;

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
    void (*construct)(void *values, uint32_t count, void *user_data);
    /** Copies to raw memory; the sources stay alive. */
    void (*copy)(void *targets, const void *sources, uint32_t count, void *user_data);
    /** Moves to raw memory; the sources are raw memory afterwards, and destroy is not called for them. */
    void (*move)(void *targets, void *sources, uint32_t count, void *user_data);
    /** Releases what the values own; they are raw memory afterwards. */
    void (*destroy)(void *values, uint32_t count, void *user_data);
    void *user_data; /**< Passed to each hook. */
} quern_hooks;

/** Describes a component type. */
typedef struct quern_component_def {
    const char *name;         /**< 1 to QUERN_MAX_NAME_BYTES bytes, unique in the world. */
    uint32_t size_bytes;      /**< 0 (a tag) to QUERN_MAX_COMPONENT_BYTES; a multiple of the alignment. */
    uint32_t alignment_bytes; /**< A power of two up to QUERN_MAX_ALIGNMENT_BYTES; 0 means 1. */
    quern_field fields[QUERN_MAX_FIELDS]; /**< Described fields; none: all bytes count as they are. */
    quern_hooks hooks;                    /**< None: plain bytes. A tag has none. */
} quern_component_def;

/** Registers a type. The same name with the same layout (size, alignment, fields, hooks) gives the same
 * component again. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, BAD_ALIGNMENT, COMPONENT_TOO_LARGE,
 * LAYOUT_MISMATCH (the name has another layout), LIMIT, WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between
 * frames. */
QUERN_API quern_result quern_component_register(quern_world *world, const quern_component_def *def,
                                                quern_component *out_component);

/** Returns the component of that name, or null. Threads: any, while nobody registers. */
QUERN_API quern_component quern_component_find(const quern_world *world, const char *name);

/** Returns the name of a component, or NULL if the world does not have it. Valid as long as the world. */
QUERN_API const char *quern_component_name(const quern_world *world, quern_component component);

/** Registers a plain C type as plain bytes:
 *
 *     quern_component position;
 *     quern_result result = QUERN_COMPONENT_REGISTER(world, Position, &position);
 *
 * Errors and threads: as quern_component_register. */
#define QUERN_COMPONENT_REGISTER(world, type, out_component) \
    quern__component_register_plain((world), #type, sizeof(type), QUERN__ALIGNOF(type), (out_component))

#ifdef __cplusplus
#define QUERN__ALIGNOF(type) alignof(type)
#else
#define QUERN__ALIGNOF(type) _Alignof(type)
#endif

/* For QUERN_COMPONENT_REGISTER. */
QUERN_API quern_result quern__component_register_plain(quern_world *world, const char *name,
                                                       size_t size_bytes, size_t alignment_bytes,
                                                       quern_component *out_component);

/* -------------------------------------------------------------------------------------- resources */

/** Describes a singleton of the world: a grid, a score, the input. Systems reach it by declaring it.
 * quern_world_hash includes it exactly when its fields are described. */
typedef struct quern_resource_def {
    const char *name;         /**< As in quern_component_def; a component may have the same name. */
    uint32_t size_bytes;      /**< 1 and more. */
    uint32_t alignment_bytes; /**< A power of two up to 64; 0 means 16. */
    quern_field fields[QUERN_MAX_FIELDS]; /**< Described fields. */
    const void *value; /**< size_bytes to start with; NULL: constructed, or zero bytes. */
    quern_hooks hooks; /**< destroy runs when the world is destroyed. */
} quern_resource_def;

/** Registers a resource. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, BAD_ALIGNMENT, DUPLICATE_NAME, LIMIT,
 * WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_resource_register(quern_world *world, const quern_resource_def *def,
                                               quern_resource *out_resource);

/** Returns the resource of that name, or null. */
QUERN_API quern_resource quern_resource_find(const quern_world *world, const char *name);

/** Returns the value, whose address never changes. Returns NULL, with a message, when the world does not
 * have the resource or a frame is running (systems use quern_context_resource). Threads: main, between
 * frames. */
QUERN_API void *quern_resource_get(quern_world *world, quern_resource resource);

#ifdef __cplusplus
}
#endif

#endif
