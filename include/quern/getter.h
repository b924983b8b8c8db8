/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_GETTER_H
#define QUERN_GETTER_H

/** @file
 * Getters: repeated random access to the values of one component, by handle, in plain code.
 *
 * A *getter* knows the position of its component's values in every archetype. It returns the value of one
 * entity, or of many at once; with many, it prefetches their memory, so that the cache misses overlap. A
 * *ref* is a handle together with the address at which its value was found. As long as no row has left that
 * chunk, getting the value again costs one comparison.
 *
 *     quern_getter *positions;
 *     quern_getter_create(world, &(quern_getter_def){.component = position, .refs = true}, &positions);
 *     const Position *one = quern_getter_get(positions, entity);
 *
 *     const void *values[64];
 *     quern_getter_get_many(positions, entities, 64, values);
 *
 *     quern_ref target = {.entity = entity};
 *     const Position *p = quern_ref_get(positions, &target);   // each frame
 *
 * Getters remain correct through all changes of the world: entities that move, new and removed archetypes,
 * freed memory. The addresses that they return are valid until the next structural change of the world.
 *
 * Getters are for code between frames and for exclusive systems, and fail while the world is locked (see
 * QUERN_ERROR_WORLD_LOCKED). Systems declare lookups and use quern_context_lookup and
 * quern_context_lookup_many (<quern/context.h>).
 *
 * Threads: reading is thread-safe as long as no thread modifies the world, even through the same getter; a
 * ref must be used by one thread at a time. All other functions: main. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Finds the values of one component; see quern_getter_create. */
typedef struct quern_getter {
    /** Internal: for each chunk, by number, how often rows have moved in it or left it. */
    const uint64_t *move_counts;
    const uint32_t *filter_count; /**< Internal: number of change filters on the component. */
    /** Internal: number of the getter, unique in the process. An extra bit, which no ref has, is set if the
     * getter has no refs, and while the world is locked. */
    uint32_t number;
    bool is_checked;               /**< Internal: whether the build has QUERN_CHECKS. */
    struct quern_getter *previous; /**< Internal: previous getter in the list of those with refs. */
    struct quern_getter *next;     /**< Internal: next getter in the list of those with refs. */
} quern_getter;

/** Definition of a getter. */
typedef struct quern_getter_def {
    quern_component component QUERN__ZERO; /**< The component. It must not be a tag. */
    /** Whether the getter can be used with refs. The world then counts whenever entities with the component
     * move or leave a chunk, which costs one addition per range of consecutive rows. */
    bool refs QUERN__ZERO;
} quern_getter_def;

/** Creates a getter. It uses 8 bytes per archetype of the world. Destroy it before its world. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT (the component is a tag), UNKNOWN_COMPONENT, WORLD_LOCKED, LIMIT
 * (2,147,483,647 getters with refs were created in the process), OUT_OF_MEMORY. Threads: main, between
 * frames. */
QUERN_API quern_result quern_getter_create(quern_world *world, const quern_getter_def *def,
                                           quern_getter **out_getter);

/** Destroys a getter. Refs that were used with it remain usable with other getters, which find their values
 * again. NULL is allowed. Threads: main, between frames. */
QUERN_API void quern_getter_destroy(quern_getter *getter);

/** Returns the address of an entity's value, to read. Returns NULL without a message if the entity lacks
 * the component or is not alive, and for null, foreign and provisional handles. Returns NULL with a message
 * if the getter is NULL or the world is locked. Thread-safe as long as no thread modifies the world.
 *
 * For one entity this costs nearly as much as quern_entity_get (35 and 40 instructions), because both wait for the
 * entity's record and for its value. It saves reading the archetype, which is a cache miss in worlds with hundreds of
 * archetypes. To gain more, find many values per call (quern_getter_get_many), or keep refs. */
QUERN_API const void *quern_getter_get(const quern_getter *getter, quern_entity entity);

/** Returns the address of an entity's value, to read and to write; NULL like quern_getter_get. For change
 * filters, this is a change of the component. Threads: main. */
QUERN_API void *quern_getter_get_write(const quern_getter *getter, quern_entity entity);

/** Finds the values of count entities, to read, and returns how many have one. out_values receives count
 * addresses, in the order of the handles. An entry is NULL if quern_getter_get would return NULL. A handle
 * may occur more than once.
 *
 * Best with some ten to some thousand handles per call: enough for cache misses to overlap, and few enough
 * for all values to be still in the cache when the call returns. If the call is wrong, it returns 0, with a
 * message, and sets all entries to NULL. Thread-safe as long as no thread modifies the world. */
QUERN_API uint32_t quern_getter_get_many(const quern_getter *getter, const quern_entity *entities,
                                         uint32_t count, const void **out_values);

/** Finds the values of count entities, to read and to write, like quern_getter_get_many. For change
 * filters, each value found is a change. Thread-safe as long as no thread modifies the world, and no other
 * thread accesses the values that this thread writes. */
QUERN_API uint32_t quern_getter_get_many_write(const quern_getter *getter, const quern_entity *entities,
                                               uint32_t count, void **out_values);

/* ---------------------------------------------------------------------------------- going down trees */

/** Maximum number of columns in one call of quern_entity_list_sources_many. */
#define QUERN_MAX_GETTER_COLUMNS 8

/** One of the components whose values quern_entity_list_sources_many finds. */
typedef struct quern_getter_column {
    const quern_getter *getter; /**< Getter of the component. */
    /** Receives one address per entity; NULL if the entity lacks the component. */
    void **values;
    /** Whether the caller writes the values; for change filters, each is then a change. Otherwise the
     * values must not be written. */
    bool writes QUERN__ZERO;
} quern_getter_column;

/** The targets whose sources quern_entity_list_sources_many lists, and where it stores them. */
typedef struct quern_source_list {
    quern_relation relation;     /**< Relation of the same world. */
    const quern_entity *targets; /**< A target that is null or not alive has no sources. */
    uint32_t target_count;       /**< Number of targets. */
    /** Number of sources, and of addresses per column, for which there is room. 0: only count them. */
    uint32_t capacity QUERN__ZERO;
    /** Receives the sources, one list after the other in the order of the targets. NULL: only count them. */
    quern_entity *sources QUERN__ZERO;
    uint32_t *counts QUERN__ZERO; /**< Receives the number of sources of each target; NULL: not wanted. */
    /** The components whose values are looked up, with room for `capacity` addresses each. */
    const quern_getter_column *columns QUERN__ZERO;
    uint32_t column_count QUERN__ZERO; /**< Number of columns, at most QUERN_MAX_GETTER_COLUMNS; 0: none. */
} quern_source_list;

/** Stores the sources of many targets, and for each column the address of each source's value, in the same
 * order. Returns the number of sources in all, which may exceed the capacity; then the first ones are stored.
 * Each source is looked up once for all columns, so this is the fastest way to traverse trees: one call for
 * each level of all trees. Returns 0, with a message, if the call is wrong. Thread-safe as long as no thread
 * modifies the world, and no other thread accesses the values of columns with `writes`. */
QUERN_API uint64_t quern_entity_list_sources_many(const quern_world *world, const quern_source_list *list);

/* ------------------------------------------------------------------------------------------- refs */

/** A handle, and the address at which its value was found. Set `entity` and zero the rest. A ref may be
 * copied and needs no release. It remains usable when the entity is destroyed, or loses the component and
 * gets it again. To use a ref for another entity, assign a whole new ref: if only `entity` is changed, the
 * ref still returns the value of the old entity.
 *
 * Do not store refs in components: they contain addresses, which differ from run to run, and
 * quern_world_hash and described fields support handles only. Store refs outside of the world. */
typedef struct quern_ref {
    quern_entity entity QUERN__ZERO; /**< The entity. */
    void *value QUERN__ZERO;         /**< Internal: address of the value. */
    /** Internal: the chunk's entry in `move_counts` when the value was found. */
    uint64_t move_count QUERN__ZERO;
    uint32_t chunk QUERN__ZERO;  /**< Internal: number of the chunk. */
    uint32_t getter QUERN__ZERO; /**< Internal: number of the getter that found the value. */
} quern_ref;

/* Internal: the uncommon cases of quern_ref_get and quern_ref_get_write. They find the value again, or
 * report a wrong call. */
QUERN_API const void *quern__ref_find(const quern_getter *getter, quern_ref *ref);
QUERN_API void *quern__ref_find_write(const quern_getter *getter, quern_ref *ref);

/* Internal: returns whether the address is still valid, because no row has moved in its chunk or left it.
 */
static inline bool quern__ref_is_good(const quern_getter *getter, const quern_ref *ref)
{
    const bool is_good =
        ref->getter == getter->number && getter->move_counts[ref->chunk] == ref->move_count;
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_expect(is_good, 1);
#else
    return is_good;
#endif
}

/** Returns the address of the value of a ref's entity, to read; NULL like quern_getter_get. The getter must
 * have been created with `refs`. Neither argument may be NULL; this is not checked. Any getter of the world
 * may be used with a ref, but after a change of the getter the value is found anew. Thread-safe as long as
 * no thread modifies the world; one thread at a time for each ref. */
static inline const void *quern_ref_get(const quern_getter *getter, quern_ref *ref)
{
    return quern__ref_is_good(getter, ref) ? ref->value : quern__ref_find(getter, ref);
}

/** Returns the address of the value of a ref's entity, to read and to write, like quern_ref_get. For change
 * filters, this is a change of the component. Threads: main. */
static inline void *quern_ref_get_write(const quern_getter *getter, quern_ref *ref)
{
    return quern__ref_is_good(getter, ref) && *getter->filter_count == 0 && !getter->is_checked
               ? ref->value
               : quern__ref_find_write(getter, ref);
}

#ifdef __cplusplus
}
#endif

#endif
