/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_WORLD_H
#define QUERN_WORLD_H

/** @file
 * The world: entities and their components, and the functions that change them immediately.
 *
 * These functions are for code between frames (set-up, loading, tools) and for exclusive systems. While a
 * frame runs they fail with WORLD_LOCKED: systems use their views, lookups and commands instead.
 *
 * One thread at a time may use a world; several threads may use several worlds. In a build with
 * QUERN_CHECKS, two threads that change one world at the same time are reported to the assert handler, and
 * the second call fails with WORLD_LOCKED.
 *
 * Errors of all functions on entities: NULL_ARGUMENT, WORLD_LOCKED, NULL_ENTITY, STALE_ENTITY,
 * FOREIGN_ENTITY, PROVISIONAL_ENTITY, UNKNOWN_COMPONENT, OUT_OF_MEMORY. A handle of a slot that was never used
 * counts as stale. Pointers to values that are copied may point into the world. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_WORLDS     255 /**< Maximum number of worlds in one process at the same time. */
/** Maximum number of slots per world, including slots retired after 16,777,215 generations. */
#define QUERN_MAX_ENTITIES   0xFFFFFFF0u
/** Maximum number of archetypes (different component sets) per world. At three quarters of it, a warning
 * goes to the log (quern_log_set_handler). The warning is repeated only after the number has been below
 * half. */
#define QUERN_MAX_ARCHETYPES 65536

/* ------------------------------------------------------------------------------------------ world */

/** Definition of a world. */
typedef struct quern_world_def {
    /** Allocator of the world. All zero means quern_allocator_default(). */
    quern_allocator allocator QUERN__ZERO;
    /** Number of archetypes that each sync point of a schedule checks, in turn; 0 means that a sync point
     * removes all empty archetypes, as quern_world_remove_empty_archetypes does, once the world has 256
     * archetypes and more than twice as many as the last removal has left. (Or, close to QUERN_MAX_ARCHETYPES,
     * when half of the rest is in use.) Such a removal costs 1 to 2 microseconds per archetype, so it costs
     * little for each archetype that was created since the last one.
     *
     * A number spreads the work: an archetype is removed if it had no entities at this check and at the
     * previous one, at least eight sync points ago. To keep up, the number must be several times the number
     * of archetypes that become empty for good between two sync points. In addition to the checks, a removal
     * costs some tenths of a microsecond per archetype created after the removed ones, mostly for queries
     * and systems that match them.
     *
     * Which archetypes are removed, and when, depends only on the world and its sync points. */
    uint32_t empty_archetype_checks_per_sync QUERN__ZERO;
    /** Whether sync points remove no archetypes. */
    bool disable_empty_archetype_removal QUERN__ZERO;
} quern_world_def;

/** Creates a world. def may be NULL for the defaults. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (only one
 * function of the allocator is set), LIMIT (QUERN_MAX_WORLDS), OUT_OF_MEMORY. Threads: any. */
QUERN_API quern_result quern_world_create(const quern_world_def *def, quern_world **out_world);

/** Destroys all component values, then all resources, and frees all memory. If components have destroy hooks, entities
 * are destroyed as by quern_entity_destroy_many, children in quern_world_parent before their parents; without memory
 * for that order, in any order.
 *
 * The call is refused, with a message in the log that names one of them, while a frame runs on the world, and while
 * queries, getters, event readers, schedules, a history, lists of entities to save (quern_archive), sessions, appliers
 * of deltas or other users of the world exist. Values whose types have destroy hooks may own queries, getters and
 * readers: their hooks destroy these. So if there are such objects, but none of the others, values with destroy hooks
 * are destroyed first, with their entities, also if the call is refused then because objects remain; the world is
 * valid, and the call can be repeated after they
 * are destroyed. NULL is allowed. */
QUERN_API void quern_world_destroy(quern_world *world);

/** A tool or a binding of the program that refers to a world; see quern_world_add_user. The memory belongs to the
 * caller, and must stay at its address while the user is registered. */
typedef struct quern_world_user {
    /** Name of the tool for messages, such as "the inspector". Must outlive the registration. */
    const char *name;
    /** Schedule of the world that the tool refers to as well. NULL: none. */
    const struct quern_schedule *schedule QUERN__ZERO;
    /** History of the world that the tool refers to as well. NULL: none. */
    const struct quern_history *history QUERN__ZERO;
    /** Called if a type is to get another layout while deltas hold frames of the world's history: the tool destroys its
     * deltas (quern_delta_destroy), and nothing else. The type stays as it is if some remain. NULL: it has none. */
    void (*release_deltas)(struct quern_world_user *user) QUERN__ZERO;
    quern_world *world QUERN__ZERO;            /**< Internal: the world, while the user is registered. */
    struct quern_world_user *next QUERN__ZERO; /**< Internal: the next user of the world. */
} quern_world_user;

/** Registers a user of the world. Until the user is removed, destroying the world, and its schedule and history, is
 * refused with a message that names the user. Errors: NULL_ARGUMENT (also the name), INVALID_ARGUMENT (registered
 * already, in any world), WORLD_LOCKED. Allocates nothing. Threads: main, between frames. */
QUERN_API quern_result quern_world_add_user(quern_world *world, quern_world_user *user);

/** Removes a user of the world. NULL is allowed. A user that is not registered in the world is reported in the log,
 * and nothing changes. Threads: main. */
QUERN_API void quern_world_remove_user(quern_world *world, quern_world_user *user);

/** Returns a 64-bit hash of the world's state, which is the same at every number of threads. The state
 * comprises entity handles (index and use count, see quern_entity), free slots, row order in every chunk,
 * component bytes, targets and siblings of relations, names, and resources with described fields.
 *
 * Of a component with described fields only these are hashed, otherwise all its bytes. So describe the
 * fields of a plain type with padding, or zero its values before they are written. Provisional handles and
 * handles of other worlds in described fields count as null. Commands that wait for a sync point are
 * ignored. Returns 0, with a message, if world is NULL or locked. Costs a pass over the whole world.
 * Threads: main, between frames and in exclusive systems. */
QUERN_API uint64_t quern_world_hash(const quern_world *world);

/** Returns a 64-bit hash of the entities with the component `id`, by the values of that component. Use it to compare
 * worlds whose entities have different handles, such as those of two machines. Give each entity that both have the
 * same id: `id` is a component of 8 bytes without an entity field, and all bytes count.
 *
 * The hash does not depend on handles, free slots, the order of rows and archetypes, the order in which types were
 * registered, or the number of threads. It comprises components by name with their values, disabled components,
 * targets of relations, names of entities, and resources with described fields. Handles in described fields,
 * and targets, are hashed as the ids of their entities. Left out are entities without `id`; a handle of such an
 * entity counts as null, and a source with such a target as one without target. Left out are also the order of
 * siblings, values of types with hooks and without described fields, and whether a disabled entity is disabled by itself
 * or through its parent (<quern/enabled.h>): deltas and JSON do not carry that.
 *
 * The hash is a sum over these entities. If several worlds share the entities of one, without handles and targets that
 * lead to another world and without resources with described fields, their hashes add up, modulo 2^64, to the hash of
 * one world with all of the entities. A world with neither entities nor such resources has the hash 0.
 *
 * Ids should be unique: entities with one id are told apart by their other components only. Returns 0, with a
 * message, if world is NULL or locked, or id is no such component of it. Costs a pass over the entities with `id`.
 * Threads: main, between frames and in exclusive systems. */
QUERN_API uint64_t quern_world_hash_by(const quern_world *world, quern_component id);

/** Checks every invariant of the storage; the message names the first broken one. For tests, and to find
 * stray writes. Costs a pass over the whole world. Errors: CORRUPT, NULL_ARGUMENT, WORLD_LOCKED. Threads:
 * main, between frames and in exclusive systems. */
QUERN_API quern_result quern_world_validate(const quern_world *world);

/** Statistics of a world. */
typedef struct quern_world_stats {
    uint64_t entity_count;     /**< Living entities. */
    uint64_t retired_count;    /**< Slots without unused generations. */
    uint32_t archetype_count;  /**< Archetypes, including empty ones. */
    uint32_t component_count;  /**< Registered component types. */
    uint32_t name_count;       /**< Entities that have a name. */
    uint64_t chunk_count;      /**< Chunks with at least one row. */
    uint64_t chunk_free_count; /**< Unused chunks in slabs. */
    /** Bytes of slabs, entity records, links, names, prefabs, events, and row versions (row_changes). */
    uint64_t held_bytes;
    uint64_t used_bytes;     /**< Bytes that the existing rows need for components, handles and records. */
    uint32_t relation_count; /**< Registered relations. */
    uint64_t link_bytes;     /**< Bytes of the links between siblings and targets; part of held_bytes. */
    uint32_t prefab_count;   /**< Captured prefabs that were not destroyed. */
    uint64_t edge_count;     /**< Pairs of source and target in all relations with several targets. */
    /** Bytes of waiting events and of memory reserved for events; part of held_bytes. */
    uint64_t event_bytes;
} quern_world_stats;

/** Returns the statistics of a world. Costs a pass over all archetypes. Errors: NULL_ARGUMENT. Threads:
 * main, between frames. */
QUERN_API quern_result quern_world_get_stats(const quern_world *world, quern_world_stats *out_stats);

/** Statistics of an archetype: the entities with exactly the same set of components. */
typedef struct quern_archetype_stats {
    uint32_t component_count; /**< Components, including tags. */
    uint32_t row_bytes;       /**< Bytes of one row: values and handle of one entity. */
    uint32_t row_capacity;    /**< Maximum number of rows per chunk. */
    uint32_t chunk_count;     /**< Chunks with entities. */
    uint32_t
        held_count; /**< All chunks, including those reserved for future entities. A large archetype holds a
                                   multiple of 16, which lie together. */
    uint64_t entity_count; /**< Entities. */
    double occupancy; /**< Bytes of existing rows divided by the bytes of all chunks; 0 without chunks. */
} quern_archetype_stats;

/** Returns the statistics of an archetype. index: 0 to archetype_count - 1; 0 is the archetype without
 * components. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (index). */
QUERN_API quern_result quern_world_get_archetype_stats(const quern_world *world, uint32_t index,
                                                       quern_archetype_stats *out_stats);

/** Stores up to `capacity` components of an archetype, and returns how many it has. components may be NULL
 * if capacity is 0. Returns 0, with a message, if index is out of range. */
QUERN_API uint32_t quern_world_list_archetype_components(const quern_world *world, uint32_t index,
                                                         quern_component *components, uint32_t capacity);

/** Returns unused memory to the allocator; the default allocator returns it to the system. Frees spare
 * chunks, slabs that become empty, pages of links without links, memory reserved for events, and entity
 * records, in pages of 131,072, if no entity of the page is alive. Without this call, a world keeps a
 * little memory for future rows, and all entity records (see docs/design.md). Rows of archetypes that have
 * become much smaller may move, so addresses of values become invalid.
 *
 * Freeing records changes which handles are given out next: the slots of a freed page are used after all
 * other free slots, in ascending order. All of them continue with the highest use count of the page, so
 * that no old handle becomes valid again. This depends only on the world's state, but it changes that
 * state: trim worlds that must stay identical at the same point. As long as each page has a living entity,
 * quern_world_hash does not change. Costs a pass over all slots. Errors: NULL_ARGUMENT, WORLD_LOCKED. */
QUERN_API quern_result quern_world_trim(quern_world *world);

#define QUERN_MAX_RESERVED_RELATIONS 8 /**< Maximum number of relations in a quern_reserve_def. */

/** What quern_world_reserve prepares. */
typedef struct quern_reserve_def {
    /** Number of entities to be created, in addition to the existing ones: their records. */
    uint32_t entity_count QUERN__ZERO;
    /** Relations in which the existing and these entities will have links; each once. */
    quern_relation relations[QUERN_MAX_RESERVED_RELATIONS] QUERN__ZERO;
    /** Components of entities whose rows are to be reserved. An empty list with a row_count: entities
     * without components. */
    quern_component components[QUERN_MAX_ENTITY_COMPONENTS] QUERN__ZERO;
    /** Number of rows with exactly these components, in addition to the existing ones. */
    uint32_t row_count QUERN__ZERO;
    /** Bytes of commands that are recorded between frames and in exclusive systems (quern_world_commands). A
     * command needs 16 bytes, and its values. */
    uint64_t command_bytes QUERN__ZERO;
} quern_reserve_def;

/** Reserves memory and touches it, so that no later call or frame pays for first uses: a fresh page costs up
 * to 10 milliseconds, in the middle of a call. The rows stay reserved when entities are destroyed, until
 * quern_world_trim or the removal of their archetype, while it is empty; call this for each combination of
 * components. Entities, handles and hashes do not change; an archetype with the components is created if there is
 * none. Rows of archetypes that become large may move, so addresses of values become invalid. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT (components without row_count, a relation of another world),
 * UNKNOWN_COMPONENT, DUPLICATE_COMPONENT, COMPONENT_TOO_LARGE, LIMIT, WORLD_LOCKED, OUT_OF_MEMORY; what was
 * reserved until then stays reserved.
 * Threads: main, between frames. */
QUERN_API quern_result quern_world_reserve(quern_world *world, const quern_reserve_def *def);

/** Removes the archetypes that have no rows; they are created again when needed. Queries and schedules
 * remain valid. The other archetypes keep their order, but their indices change. out_count, which may be
 * NULL, is set to the number of removed archetypes. Needs no memory. Errors, with nothing changed:
 * NULL_ARGUMENT, WORLD_LOCKED. */
QUERN_API quern_result quern_world_remove_empty_archetypes(quern_world *world, uint32_t *out_count);

/* --------------------------------------------------------------------------------------- entities */

/** Creates an entity without components. out_entity must not be NULL. Further errors: LIMIT
 * (QUERN_MAX_ENTITIES). */
QUERN_API quern_result quern_entity_create(quern_world *world, quern_entity *out_entity);

/** Creates an entity with count components. values may be NULL, and so may each of its elements; the
 * components concerned are constructed (zero bytes without a hook). out_entity may be NULL. Further errors:
 * DUPLICATE_COMPONENT, PROVISIONAL_ENTITY (as quern_entity_set), TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE
 * (a row of all of them does not fit a chunk), LIMIT. */
QUERN_API quern_result quern_entity_create_with(quern_world *world, const quern_component *components,
                                                const void *const *values, uint32_t count,
                                                quern_entity *out_entity);

/** Destroys an entity and its components. Its handle is stale from then on. Sources of the entity are
 * destroyed, lose their target, or prevent the destruction, as their relation's policy says
 * (<quern/relation.h>). Further errors: TARGET_IN_USE. */
QUERN_API quern_result quern_entity_destroy(quern_world *world, quern_entity entity);

/** Returns whether the handle refers to a living entity of this world. False for null, stale, foreign and
 * provisional handles. */
QUERN_API bool quern_entity_is_alive(const quern_world *world, quern_entity entity);

/** Returns the use count of a handle of this world, alive or stale: 1 for the first entity of its slot, 2
 * for the next, up to 16,777,215. quern_world_trim may skip some use counts.
 *
 * Unlike the generation, the use count does not depend on the process: index and use count together are the
 * same in every world with the same history. Use them to compare worlds, and for numbers that must be
 * reproducible. Returns 0, with a message, for null, foreign and provisional handles. Threads: any, also in
 * frames. */
QUERN_API uint32_t quern_entity_use_count(const quern_world *world, quern_entity entity);

/** Returns a well-mixed number made of index and use count (quern_entity_use_count) of a handle of this world,
 * alive or stale: a seed for random numbers of the entity that are the same in every process and at every
 * number of threads. Never 0, except for null, foreign and provisional handles, with a message. The mixer
 * is the finaliser of SplitMix64 (Steele, Lea, Flood 2014). Threads: any, also in frames. */
QUERN_API uint64_t quern_entity_seed(const quern_world *world, quern_entity entity);

/** Adds a component. value points to the value to copy; with NULL, the component is constructed (zero bytes
 * without a hook). Further errors: COMPONENT_PRESENT, PROVISIONAL_ENTITY (as quern_entity_set),
 * TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT (QUERN_MAX_ARCHETYPES). */
QUERN_API quern_result quern_entity_add(quern_world *world, quern_entity entity, quern_component component,
                                        const void *value);

/** Removes a component and destroys its value. Further errors: COMPONENT_ABSENT. */
QUERN_API quern_result quern_entity_remove(quern_world *world, quern_entity entity,
                                           quern_component component);

/** Sets the value of a component, and adds the component if it is missing. value must not be NULL unless
 * the component is a tag. Entity handles inside the value are copied as they are, without a liveness check.
 * Further errors: PROVISIONAL_ENTITY (a described field has a provisional handle, which only a command such
 * as quern_commands_set can replace), TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_entity_set(quern_world *world, quern_entity entity, quern_component component,
                                        const void *value);

/** Sets the value of a component if it differs from the present one, or adds the component if it is missing. With an equal
 * value nothing changes: no version for change filters, nothing for reactions. out_changed, which may be NULL, is set to
 * whether the value was set. Values are compared by their described fields, or by all bytes, padding included, if no field
 * is described. Errors: those of quern_entity_set. */
QUERN_API quern_result quern_entity_set_if_different(quern_world *world, quern_entity entity,
                                                     quern_component component, const void *value,
                                                     bool *out_changed);

/** Adds a component with a constructed value unless the entity has it. out_value, which may be NULL, is set to the address
 * of the value, as from quern_entity_get; NULL for a tag. out_added, which may be NULL, is set to whether the component
 * was added. Refuses components of relations. Further errors: TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT,
 * INVALID_ARGUMENT (a relation). */
QUERN_API quern_result quern_entity_ensure(quern_world *world, quern_entity entity,
                                           quern_component component, void **out_value, bool *out_added);

/** Removes all components and tags of an entity at once, in one move. It stays alive, and keeps its name, its relations, and
 * whether it is disabled. Further errors: LIMIT (QUERN_MAX_ARCHETYPES). */
QUERN_API quern_result quern_entity_clear(quern_world *world, quern_entity entity);

/** Returns the address of a component's value, to read or to write. It is valid until the next structural
 * change of the world. Returns NULL without a message if the entity does not have the component. Returns
 * NULL with a message if the call is wrong, and for a tag, which has no value (use quern_entity_has). */
QUERN_API void *quern_entity_get(quern_world *world, quern_entity entity, quern_component component);

/** Marks a component as changed for change filters (quern_term_changed). Call it after writing through a
 * pointer from quern_entity_get. No effect on a tag. Further errors: COMPONENT_ABSENT. */
QUERN_API quern_result quern_entity_mark_changed(quern_world *world, quern_entity entity,
                                                 quern_component component);

/** Enables or disables a component that can be disabled (can_disable in quern_component_def). Terms leave
 * out the entities in which the component is disabled. The value is kept, and can be read and set as
 * before. The state moves with the entity; a component that is added is enabled. For change filters, this
 * is a change of the component. Further errors: COMPONENT_ABSENT, INVALID_ARGUMENT (the component cannot be
 * disabled). */
QUERN_API quern_result quern_entity_set_component_enabled(quern_world *world, quern_entity entity,
                                                          quern_component component, bool enabled);

/** Returns whether the entity has the component and has it enabled. A component that cannot be disabled is
 * always enabled. False, with a message, if the call is wrong. */
QUERN_API bool quern_entity_is_component_enabled(const quern_world *world, quern_entity entity,
                                                 quern_component component);

/** Returns whether the entity has the component. False, with a message, if the call is wrong. */
QUERN_API bool quern_entity_has(const quern_world *world, quern_entity entity, quern_component component);

#ifdef __cplusplus
}
#endif

#endif
