/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_WORLD_H
#define QUERN_WORLD_H

/* The world: entities and their components, and the calls that change them at once.
 *
 * These calls are for the time between frames (set-up, loading, tools) and for exclusive systems. While
 * a frame runs they are refused with WORLD_LOCKED: systems use their views, lookups and commands.
 *
 * A world is used by one thread at a time; several worlds may be used by several threads. A build with
 * QUERN_CHECKS hands a message to the assert handler when two threads are at once in calls that change a
 * world; the second is refused with WORLD_LOCKED. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_WORLDS     255         /* alive in one process at a time */
#define QUERN_MAX_ENTITIES   0xFFFFFFF0u /* slots per world; those retired after 16,777,215 lives count */
/* Distinct component sets per world. At three quarters of them a warning goes to the log
 * (quern_log_set_handler): once, and again when they were below half meanwhile. */
#define QUERN_MAX_ARCHETYPES 65536

/* ------------------------------------------------------------------------------------------ world */

typedef struct quern_world_def {
    quern_allocator allocator;
    /* At each sync point of a schedule on the world so many archetypes are looked at, in turn, and those that
     * had no entities the last time either, eight sync points ago or more, are taken out, as
     * quern_world_remove_empty_archetypes does; so at most so many at once. Which ones depends on the world and its sync
     * points alone. To keep up it must be several times the number of archetypes that are left for good
     * between sync points; beyond looking it costs some tenths of a microsecond for each archetype that
     * was made after those taken out, and most for queries and systems that match those. 0: none are. */
    uint32_t empty_archetype_checks_per_sync;
} quern_world_def;

/* def may be NULL for the defaults. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, LIMIT (QUERN_MAX_WORLDS),
 * OUT_OF_MEMORY. Any thread. */
QUERN_API quern_result quern_world_create(const quern_world_def *def, quern_world **out_world);

/* Destroys every component value, then every resource, and gives all memory back. While queries or
 * schedules of the world exist the call is refused, with a message in the log. NULL is allowed. */
QUERN_API void quern_world_destroy(quern_world *world);

/* A 64-bit fingerprint of everything the world promises to keep the same at every thread count: entity
 * handles (index and life, see quern_entity), free slots, row order in every chunk, component bytes, and
 * resources with described fields. Where a component's fields are described they alone count; otherwise all
 * its bytes do, so a plain type with padding should describe its fields or be zeroed before it is written.
 * Between frames, or in an exclusive system (commands that wait for a sync point do not count); 0, with a
 * message, when the call is wrong. Costs a walk over the whole world. */
QUERN_API uint64_t quern_world_hash(const quern_world *world);

/* Checks every invariant of the storage. QUERN_OK, or CORRUPT with a message that names what is broken.
 * Between frames, or in an exclusive system. Costs a walk over the whole world; meant for tests and for
 * hunting stray writes. Errors also: NULL_ARGUMENT, WORLD_LOCKED. */
QUERN_API quern_result quern_world_validate(const quern_world *world);

typedef struct quern_world_stats {
    uint64_t entity_count;    /* alive */
    uint64_t retired_count;   /* slots whose generation ran out */
    uint32_t archetype_count; /* empty ones too */
    uint32_t component_count;
    uint64_t chunk_count;      /* chunks that hold at least one row */
    uint64_t chunk_free_count; /* chunks held in slabs and not used */
    uint64_t held_bytes;       /* slabs and entity records */
    uint64_t used_bytes; /* what the rows that exist need: components and handles, and their records */
} quern_world_stats;

/* Walks over all archetypes. Between frames. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_world_get_stats(const quern_world *world, quern_world_stats *out_stats);

/* One archetype: the entities with exactly the same set of components. */
typedef struct quern_archetype_stats {
    uint32_t component_count; /* tags included */
    uint32_t row_bytes;       /* of the values and handle of one entity */
    uint32_t row_capacity;    /* entities that fit a chunk */
    uint32_t chunk_count;     /* with entities */
    uint32_t held_count;      /* chunks it holds, with entities or for entities to come */
    uint64_t entity_count;
    double occupancy; /* bytes of rows that exist / bytes of chunks held; 0 without chunks */
} quern_archetype_stats;

/* The index-th archetype, from 0 to archetype_count - 1; 0 is the one without components.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT. */
QUERN_API quern_result quern_world_get_archetype_stats(const quern_world *world, uint32_t index,
                                                       quern_archetype_stats *out_stats);

/* The components of the index-th archetype: writes at most capacity of them (components may be NULL when
 * that is 0) and returns how many there are. 0, with a message, for an index out of range. */
QUERN_API uint32_t quern_world_archetype_components(const quern_world *world, uint32_t index,
                                                    quern_component *components, uint32_t capacity);

/* Gives memory that holds no rows back to the allocator: spare chunks, and slabs that are empty then.
 * Without this call a world keeps a little of it for the next rows (see docs/design.md).
 * Errors: NULL_ARGUMENT, WORLD_LOCKED. */
QUERN_API quern_result quern_world_trim(quern_world *world);

/* Takes out the archetypes that have no rows; they come back when they are needed. Queries and schedules
 * stay right, and the order of the others stays. Indices of archetypes change. out_count, how many were
 * taken out, may be NULL. Errors: NULL_ARGUMENT, WORLD_LOCKED, OUT_OF_MEMORY (then nothing has changed). */
QUERN_API quern_result quern_world_remove_empty_archetypes(quern_world *world, uint32_t *out_count);

/* --------------------------------------------------------------------------------------- entities */

/* Common errors of the calls below: NULL_ARGUMENT, WORLD_LOCKED, NULL_ENTITY, STALE_ENTITY, FOREIGN_ENTITY,
 * PROVISIONAL_ENTITY, UNKNOWN_COMPONENT, OUT_OF_MEMORY. Each leaves the world as it was. A handle whose
 * slot was never used counts as stale. A value given to be copied may lie inside the world. */

/* An entity without components. out_entity must not be NULL. Errors also: LIMIT. */
QUERN_API quern_result quern_entity_create(quern_world *world, quern_entity *out_entity);

/* An entity with count components in one go. values may be NULL (all constructed), and so may each of
 * values[i] (that one is constructed, or zero bytes). out_entity may be NULL.
 * Errors also: DUPLICATE_COMPONENT, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE (a row of all of them does
 * not fit a chunk), LIMIT. */
QUERN_API quern_result quern_entity_create_with(quern_world *world, const quern_component *components,
                                                const void *const *values, uint32_t count,
                                                quern_entity *out_entity);

/* Destroys the entity and its components. Its handle is stale from now on. */
QUERN_API quern_result quern_entity_destroy(quern_world *world, quern_entity entity);

/* Whether the handle stands for a living entity of this world. False for null, stale, foreign and
 * provisional handles. */
QUERN_API bool quern_entity_is_alive(const quern_world *world, quern_entity entity);

/* Which life of its slot a handle of this world stands for: 1 for the first entity there, 2 for the next,
 * up to 16,777,215; whether or not it is alive. With the index it is what is the same in every world with
 * the same history: for comparing worlds, and for numbers that must not depend on the process. 0, with a
 * message, for null, foreign and provisional handles. Any thread, also in frames. */
QUERN_API uint32_t quern_entity_life(const quern_world *world, quern_entity entity);

/* Adds a component. value: size_bytes to copy, or NULL to construct (zero bytes without a hook).
 * Errors also: COMPONENT_PRESENT, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_entity_add(quern_world *world, quern_entity entity, quern_component component,
                                        const void *value);

/* Removes and destroys a component. Errors also: COMPONENT_ABSENT. */
QUERN_API quern_result quern_entity_remove(quern_world *world, quern_entity entity,
                                           quern_component component);

/* Gives a component a new value, and adds it first when it is not there. value must not be NULL (unless
 * the component is a tag). Errors also: as quern_entity_add, less COMPONENT_PRESENT. */
QUERN_API quern_result quern_entity_set(quern_world *world, quern_entity entity, quern_component component,
                                        const void *value);

/* The value, to read or to write, or NULL when the entity does not have the component (no message: that
 * is an answer) or the call is wrong (with a message); so it is for a tag, which has no value: use
 * quern_entity_has.
 * The pointer is good until the next structural change of the world. */
QUERN_API void *quern_entity_get(quern_world *world, quern_entity entity, quern_component component);

/* Tells filters on changes (quern_term_changed) that the component has changed, after writing through a
 * pointer from quern_entity_get. A tag has no value that could change: nothing is done. Errors also:
 * COMPONENT_ABSENT. */
QUERN_API quern_result quern_entity_mark_changed(quern_world *world, quern_entity entity,
                                                 quern_component component);

/* Whether the entity has the component. False, with a message, when the call is wrong. */
QUERN_API bool quern_entity_has(const quern_world *world, quern_entity entity, quern_component component);

#ifdef __cplusplus
}
#endif

#endif
