/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_WORLD_H
#define QUERN_WORLD_H

/** @file
 * The world: entities and their components, and the calls that change them immediately.
 *
 * These calls are for the time between frames (set-up, loading, tools) and for exclusive systems. While a
 * frame runs they are refused with WORLD_LOCKED: systems use their views, lookups and commands.
 *
 * One thread at a time uses a world; several threads may use several worlds. In a build with QUERN_CHECKS,
 * two threads that change one world at the same time are reported to the assert handler; the second is
 * refused with WORLD_LOCKED.
 *
 * Errors of the calls on entities: NULL_ARGUMENT, WORLD_LOCKED, NULL_ENTITY, STALE_ENTITY, FOREIGN_ENTITY,
 * PROVISIONAL_ENTITY, UNKNOWN_COMPONENT, OUT_OF_MEMORY. A handle whose slot was never used counts as stale.
 * A value to copy may lie inside the world. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_WORLDS 255 /**< Worlds in one process at the same time. */
#define QUERN_MAX_ENTITIES \
    0xFFFFFFF0u /**< Slots per world, including those retired after 16,777,215 lives. */
/** Different component sets per world. At three quarters of them a warning goes to the log
 * (quern_log_set_handler): once, and again after their number has been below half. */
#define QUERN_MAX_ARCHETYPES 65536

/* ------------------------------------------------------------------------------------------ world */

/** Describes a world. */
typedef struct quern_world_def {
    quern_allocator allocator QUERN__ZERO; /**< All zero: quern_allocator_default(). */
    /** How many archetypes each sync point of a schedule on the world checks, in turn; 0: none.
     *
     * Those that had no entities at the last check either, at least eight sync points ago, are removed,
     * as by quern_world_remove_empty_archetypes. Which ones depends only on the world and its sync
     * points. To keep up, the number must be several times the number of archetypes that become empty
     * for good between sync points. Besides the check, removing costs some tenths of a microsecond for
     * each archetype made after the removed ones, most for queries and systems that match those. */
    uint32_t empty_archetype_checks_per_sync QUERN__ZERO;
} quern_world_def;

/** Creates a world. def may be NULL for the defaults. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, LIMIT
 * (QUERN_MAX_WORLDS), OUT_OF_MEMORY. Threads: any. */
QUERN_API quern_result quern_world_create(const quern_world_def *def, quern_world **out_world);

/** Destroys every component value, then every resource, and releases all memory. Refused, with a message in
 * the log, while queries, getters or schedules of the world exist. NULL is allowed. */
QUERN_API void quern_world_destroy(quern_world *world);

/** Returns a 64-bit fingerprint of everything the world keeps the same at every thread count: entity
 * handles (index and life, see quern_entity), free slots, row order in every chunk, component bytes,
 * targets and siblings of relations, names, and resources with described fields.
 *
 * Of a component with described fields only these count, otherwise all its bytes. So a plain type with
 * padding should describe its fields, or be zeroed before it is written. Provisional handles and handles of
 * other worlds in described fields count as null. Commands that wait for a sync point do not count. Returns
 * 0, with a message, when the call is wrong. Costs a walk over the whole world. Threads: main, between
 * frames and in exclusive systems. */
QUERN_API uint64_t quern_world_hash(const quern_world *world);

/** Checks every invariant of the storage, and names what is broken. For tests, and for hunting stray
 * writes; costs a walk over the whole world. Errors: CORRUPT, NULL_ARGUMENT, WORLD_LOCKED. Threads:
 * main, between frames and in exclusive systems. */
QUERN_API quern_result quern_world_validate(const quern_world *world);

/** What a world holds. */
typedef struct quern_world_stats {
    uint64_t entity_count;     /**< Living entities. */
    uint64_t retired_count;    /**< Slots whose generations are used up. */
    uint32_t archetype_count;  /**< Including empty ones. */
    uint32_t component_count;  /**< Registered component types. */
    uint32_t name_count;       /**< Entities that have a name. */
    uint64_t chunk_count;      /**< Chunks with at least one row. */
    uint64_t chunk_free_count; /**< Unused chunks in slabs. */
    /** Slabs, entity records, links, names, prefabs, events, and versions of rows (row_changes). */
    uint64_t held_bytes;
    uint64_t used_bytes;     /**< What the existing rows need: components, handles and records. */
    uint32_t relation_count; /**< Registered relations. */
    uint64_t link_bytes;     /**< Memory of the links between siblings and targets; part of held_bytes. */
    uint32_t prefab_count;   /**< Captured prefabs that were not destroyed. */
    uint64_t event_bytes;    /**< Memory of events that wait, and for events to come; part of held_bytes. */
} quern_world_stats;

/** Counts what a world holds, in a walk over all archetypes. Errors: NULL_ARGUMENT. Threads: main, between
 * frames. */
QUERN_API quern_result quern_world_get_stats(const quern_world *world, quern_world_stats *out_stats);

/** What an archetype holds: the entities with exactly the same set of components. */
typedef struct quern_archetype_stats {
    uint32_t component_count; /**< Including tags. */
    uint32_t row_bytes;       /**< Values and handle of one entity. */
    uint32_t row_capacity;    /**< Entities that fit a chunk. */
    uint32_t chunk_count;     /**< Chunks with entities. */
    uint32_t held_count;      /**< All its chunks, including those for future entities. */
    uint64_t entity_count;    /**< Its entities. */
    double occupancy;         /**< Bytes of existing rows / bytes of its chunks; 0 without chunks. */
} quern_archetype_stats;

/** Counts what an archetype holds. index: 0 to archetype_count - 1; 0 is the archetype without components.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT. */
QUERN_API quern_result quern_world_get_archetype_stats(const quern_world *world, uint32_t index,
                                                       quern_archetype_stats *out_stats);

/** Writes the components of an archetype, at most capacity of them, and returns how many it has. components
 * may be NULL when capacity is 0. Returns 0, with a message, for an index out of range. */
QUERN_API uint32_t quern_world_archetype_components(const quern_world *world, uint32_t index,
                                                    quern_component *components, uint32_t capacity);

/** Gives memory that holds nothing back to the allocator, and with the default one to the system: spare
 * chunks, slabs that become empty, pages of links without links, memory for events, and records of slots of
 * which none is alive, in pages of 131,072. A world that is not trimmed keeps a little of the former for
 * future rows, and all records (see docs/design.md).
 *
 * Where records go, other handles come next: the slots of such a page are used after all other free ones,
 * in ascending order, and all go on with the life of the one that has lived most often, so that no old
 * handle comes alive. That follows from the world alone, but counts as a change: of worlds that must stay
 * the same, trim all at the same point. As long as some slot of each page is alive, nothing shows, and
 * quern_world_hash stays as it is. Costs a walk over all slots. Errors: NULL_ARGUMENT, WORLD_LOCKED. */
QUERN_API quern_result quern_world_trim(quern_world *world);

/** Removes the archetypes that have no rows; they come back when needed. Queries and schedules stay
 * valid. The other archetypes keep their order, but their indices change. out_count gets how many were
 * removed, and may be NULL. Errors: NULL_ARGUMENT, WORLD_LOCKED, OUT_OF_MEMORY (nothing has changed). */
QUERN_API quern_result quern_world_remove_empty_archetypes(quern_world *world, uint32_t *out_count);

/* --------------------------------------------------------------------------------------- entities */

/** Creates an entity without components. out_entity must not be NULL. Further errors: LIMIT. */
QUERN_API quern_result quern_entity_create(quern_world *world, quern_entity *out_entity);

/** Creates an entity with count components. values may be NULL, and so may each of its elements; those
 * components are constructed (zero bytes without a hook). out_entity may be NULL. Further errors:
 * DUPLICATE_COMPONENT, PROVISIONAL_ENTITY (as quern_entity_set), TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE
 * (a row of all of them does not fit a chunk), LIMIT. */
QUERN_API quern_result quern_entity_create_with(quern_world *world, const quern_component *components,
                                                const void *const *values, uint32_t count,
                                                quern_entity *out_entity);

/** Destroys an entity and its components. Its handle is stale from then on. Entities that are related to it
 * are destroyed, too, lose their target, or keep it from being destroyed, as their relation says
 * (<quern/relation.h>). Further errors: TARGET_IN_USE. */
QUERN_API quern_result quern_entity_destroy(quern_world *world, quern_entity entity);

/** Returns whether the handle names a living entity of this world. False for null, stale, foreign and
 * provisional handles. */
QUERN_API bool quern_entity_is_alive(const quern_world *world, quern_entity entity);

/** Returns which life of its slot a handle of this world stands for, alive or not: 1 for the slot's first
 * entity, 2 for the next, up to 16,777,215. quern_world_trim may leave some out.
 *
 * Together with the index, this is the same in every world with the same history. Use it to compare worlds,
 * and for numbers that must not depend on the process. Returns 0, with a message, for null, foreign and
 * provisional handles. Threads: any, also in frames. */
QUERN_API uint32_t quern_entity_life(const quern_world *world, quern_entity entity);

/** Returns a well mixed number made of index and life of a handle of this world, alive or not: a seed for
 * random numbers of the entity that are the same in every process and at every thread count. Never 0, but
 * for null, foreign and provisional handles, with a message. The mixer is the finaliser of SplitMix64
 * (Steele, Lea, Flood 2014). Threads: any, also in frames. */
QUERN_API uint64_t quern_entity_seed(const quern_world *world, quern_entity entity);

/** Adds a component. value points to size_bytes to copy; NULL constructs the component (zero bytes
 * without a hook). Further errors: COMPONENT_PRESENT, PROVISIONAL_ENTITY (as quern_entity_set),
 * TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_entity_add(quern_world *world, quern_entity entity, quern_component component,
                                        const void *value);

/** Removes a component and destroys its value. Further errors: COMPONENT_ABSENT. */
QUERN_API quern_result quern_entity_remove(quern_world *world, quern_entity entity,
                                           quern_component component);

/** Gives a component a new value, and adds the component if it is missing. value must not be NULL unless
 * the component is a tag. The value is copied as it is: entity handles inside it are not checked for
 * liveness. Further errors: PROVISIONAL_ENTITY (a described field has a provisional handle, which only a
 * command such as quern_commands_set makes real), TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_entity_set(quern_world *world, quern_entity entity, quern_component component,
                                        const void *value);

/** Returns the value, to read or to write; valid until the next structural change of the world. Returns
 * NULL without a message when the entity does not have the component; NULL with a message when the call
 * is wrong, and for a tag, which has no value (use quern_entity_has). */
QUERN_API void *quern_entity_get(quern_world *world, quern_entity entity, quern_component component);

/** Tells change filters (quern_term_changed) that the component has changed; call it after writing
 * through a pointer from quern_entity_get. Does nothing for a tag. Further errors: COMPONENT_ABSENT. */
QUERN_API quern_result quern_entity_mark_changed(quern_world *world, quern_entity entity,
                                                 quern_component component);

/** Enables or disables a component that can be disabled (can_disable in quern_component_def). Terms on it
 * leave entities out that have it disabled; the value stays and can be read and set as ever. It moves with
 * the entity; a component that is added is enabled. Change filters count it as a change of the component.
 * Further errors: COMPONENT_ABSENT, INVALID_ARGUMENT (it cannot be disabled). */
QUERN_API quern_result quern_entity_enable(quern_world *world, quern_entity entity,
                                           quern_component component, bool enabled);

/** Returns whether the entity has the component, and has it enabled, as one that cannot be disabled always
 * is. False, with a message, when the call is wrong. */
QUERN_API bool quern_entity_is_enabled(const quern_world *world, quern_entity entity,
                                       quern_component component);

/** Returns whether the entity has the component. False, with a message, when the call is wrong. */
QUERN_API bool quern_entity_has(const quern_world *world, quern_entity entity, quern_component component);

#ifdef __cplusplus
}
#endif

#endif
