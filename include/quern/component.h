/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_COMPONENT_H
#define QUERN_COMPONENT_H

/* Component types and resources (world singletons) are registered at run time, by name, in each world.
 *
 * A type is plain bytes unless it brings hooks. One whose size is 0 is a tag: it takes no space.
 * Describing the fields of a type buys three things: quern_world_hash looks at the fields alone (so
 * padding never matters), handles inside values are remapped when a deferred create becomes real, and
 * tools can show the value. */

#include <quern/base.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_world quern_world;

#define QUERN_MAX_COMPONENTS        1024  /* component types per world */
#define QUERN_MAX_RESOURCES         1024  /* resources per world */
#define QUERN_MAX_ENTITY_COMPONENTS 250   /* components, tags included, on one entity */
#define QUERN_MAX_ALIGNMENT_BYTES   64    /* of a component */
#define QUERN_MAX_COMPONENT_BYTES   16256 /* the largest component that fits a 16 KiB chunk */
#define QUERN_MAX_FIELDS            64    /* described fields per type */

typedef enum quern_field_type {
    QUERN_FIELD_BOOL = 1,
    QUERN_FIELD_I8,
    QUERN_FIELD_U8,
    QUERN_FIELD_I16,
    QUERN_FIELD_U16,
    QUERN_FIELD_I32,
    QUERN_FIELD_U32,
    QUERN_FIELD_I64,
    QUERN_FIELD_U64,
    QUERN_FIELD_F32,
    QUERN_FIELD_F64,
    QUERN_FIELD_ENTITY /* a quern_entity */
} quern_field_type;

/* One field, or a fixed array of fields, of a component or resource. */
typedef struct quern_field {
    const char *name;
    quern_field_type type;
    uint32_t offset_bytes; /* from the start of the value */
    uint32_t count;        /* array elements; 0 means 1 */
} quern_field;

/* What a type that is not plain bytes needs. Each hook may be NULL, works on count values that lie
 * next to each other, and must not fail nor call into the world. Those that replace a missing one:
 * construct fills with zero bytes, copy and move copy the bytes, destroy does nothing.
 *
 * A type with destroy and without copy is handed over: the world takes over what an added or set
 * value owns. Hooks run on the thread that makes the change; copy also runs on worker threads when a
 * command is recorded. */
typedef struct quern_hooks {
    void (*construct)(void *values, uint32_t count, void *user_data);
    /* target is raw memory, source stays alive */
    void (*copy)(void *targets, const void *sources, uint32_t count, void *user_data);
    /* target is raw memory, source is raw memory afterwards: destroy is not called for it */
    void (*move)(void *targets, void *sources, uint32_t count, void *user_data);
    void (*destroy)(void *values, uint32_t count, void *user_data);
    void *user_data; /* passed to each hook */
} quern_hooks;

typedef struct quern_component_def {
    const char *name;         /* 1 to QUERN_MAX_NAME_BYTES bytes, unique in the world */
    uint32_t size_bytes;      /* 0 (a tag) to QUERN_MAX_COMPONENT_BYTES; a multiple of the alignment */
    uint32_t alignment_bytes; /* a power of two up to QUERN_MAX_ALIGNMENT_BYTES; 0 means 1 */
    quern_field fields[QUERN_MAX_FIELDS];
    quern_hooks hooks; /* none: plain bytes; a tag has none */
} quern_component_def;

/* Registers a type. Registering the same name with the same layout (size, alignment, fields, hooks)
 * again gives the same component; with another layout it is refused (LAYOUT_MISMATCH).
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT, BAD_ALIGNMENT, COMPONENT_TOO_LARGE, LAYOUT_MISMATCH, LIMIT,
 * WORLD_LOCKED, OUT_OF_MEMORY. Main thread, between frames. */
QUERN_API quern_result quern_component_register(quern_world *world, const quern_component_def *def,
                                                quern_component *out_component);

/* The component of that name, or null when there is none. Any thread while nobody registers. */
QUERN_API quern_component quern_component_find(const quern_world *world, const char *name);

/* The name of a component of this world, or NULL when it has none such. Valid as long as the world. */
QUERN_API const char *quern_component_name(const quern_world *world, quern_component component);

/* Registers a plain C type as plain bytes:
 *     quern_component position;
 *     quern_result result = QUERN_COMPONENT_REGISTER(world, Position, &position);  */
#define QUERN_COMPONENT_REGISTER(world, type, out_component) \
    quern__component_register_plain((world), #type, sizeof(type), QUERN__ALIGNOF(type), (out_component))

#ifdef __cplusplus
#define QUERN__ALIGNOF(type) alignof(type)
#else
#define QUERN__ALIGNOF(type) _Alignof(type)
#endif

QUERN_API quern_result quern__component_register_plain(quern_world *world, const char *name,
                                                       size_t size_bytes, size_t alignment_bytes,
                                                       quern_component *out_component);

/* -------------------------------------------------------------------------------------- resources */

/* A singleton of the world: a grid, a score, the input. Systems reach it by declaring it. It is part of
 * quern_world_hash exactly when its fields are described. */
typedef struct quern_resource_def {
    const char *name;         /* as in quern_component_def; resources have names of their own */
    uint32_t size_bytes;      /* 1 and up */
    uint32_t alignment_bytes; /* a power of two up to 64; 0 means 16 */
    quern_field fields[QUERN_MAX_FIELDS];
    const void *value; /* size_bytes to start from; NULL: constructed, or zero bytes */
    quern_hooks hooks; /* destroy runs when the world is destroyed */
} quern_resource_def;

/* Errors: NULL_ARGUMENT, INVALID_ARGUMENT, BAD_ALIGNMENT, DUPLICATE_NAME, LIMIT, WORLD_LOCKED,
 * OUT_OF_MEMORY. Main thread, between frames. */
QUERN_API quern_result quern_resource_register(quern_world *world, const quern_resource_def *def,
                                               quern_resource *out_resource);

/* The resource of that name, or null. */
QUERN_API quern_resource quern_resource_find(const quern_world *world, const char *name);

/* The value, whose address never changes, or NULL with a message when the resource is not of this world
 * or a frame is running (systems use quern_context_resource). Main thread, between frames. */
QUERN_API void *quern_resource_get(quern_world *world, quern_resource resource);

#ifdef __cplusplus
}
#endif

#endif
