/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_GETTER_H
#define QUERN_GETTER_H

/** @file
 * Random access: values of one component by handle, again and again, from plain code.
 *
 * A *getter* is made once for a component and knows where its values lie in every archetype. It gets the
 * value of one entity, or of many at once: then it has the processor fetch all that it will need, so that
 * the waits for memory overlap. A *ref* is a handle and the place where its value was found. As long as
 * nothing has left that place, getting the value again costs a look at one number.
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
 * Getters follow all changes of the world: entities that move, archetypes that come and go, memory that is
 * given back. What they return is valid until the next structural change of the world.
 *
 * Getters are for the time between frames and for exclusive systems; meanwhile, as while anything else
 * named at WORLD_LOCKED runs, they are refused: systems declare lookups and use quern_context_lookup and
 * quern_context_lookup_many (<quern/context.h>).
 *
 * Threads: while nobody changes the world, any number of threads may get values to read, through the same
 * getter, too; a ref is used by one thread at a time. All else: main. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Gets the values of one component; see quern_getter_create. */
typedef struct quern_getter {
    /** Internal: how often rows have left each chunk, by the chunk's number. */
    const uint64_t *departures;
    const uint32_t *filter_count; /**< Internal: filters on changes of the component. */
    /** Internal: different from those of all other getters in the process; with a bit that no ref has
     * where there are no refs, and while the world is locked. */
    uint32_t number;
    bool is_checked;               /**< Internal: in a build with QUERN_CHECKS. */
    struct quern_getter *previous; /**< Internal: in a list of those with refs. */
    struct quern_getter *next;     /**< Internal. */
} quern_getter;

/** Describes a getter. */
typedef struct quern_getter_def {
    quern_component component QUERN__ZERO; /**< Not a tag, which has no values. */
    /** The getter serves refs. Then, whenever entities that have the component leave a chunk or move, the
     * world counts that: an addition for each run of neighbouring rows. */
    bool refs QUERN__ZERO;
} quern_getter_def;

/** Creates a getter. It takes 4 bytes for each archetype of the world, and belongs to the world, which it
 * must not outlive. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (the component is a tag), UNKNOWN_COMPONENT,
 * WORLD_LOCKED, LIMIT (2,147,483,647 getters with refs were created in the process), OUT_OF_MEMORY.
 * Threads: main, between frames. */
QUERN_API quern_result quern_getter_create(quern_world *world, const quern_getter_def *def,
                                           quern_getter **out_getter);

/** Destroys a getter. Its refs are worthless to other getters, which find their values anew. NULL is
 * allowed. Threads: main, between frames. */
QUERN_API void quern_getter_destroy(quern_getter *getter);

/** Returns the value of an entity, to read. Returns NULL without a message when the entity does not have
 * the component or is not alive, as null, foreign and provisional handles are not; NULL with a message when
 * the call is wrong. Threads: any that no change of the world runs beside. */
QUERN_API const void *quern_getter_get(const quern_getter *getter, quern_entity entity);

/** Returns the value of an entity, to read and to write; NULL as quern_getter_get. Change filters count it
 * as a change of the component. Threads: main. */
QUERN_API void *quern_getter_get_write(const quern_getter *getter, quern_entity entity);

/** Gets the values of count entities, to read, and returns how many have one. out_values gets count
 * pointers, in the order of the handles; NULL stands for what quern_getter_get returns NULL for. A handle
 * may come more than once.
 *
 * Some ten to some thousand handles per call are best: enough that the waits overlap, and few enough that
 * all values are still in the cache when the call returns. Returns 0 with a message, and with all pointers
 * NULL, when the call is wrong. Threads: any that no change of the world runs beside. */
QUERN_API uint32_t quern_getter_get_many(const quern_getter *getter, const quern_entity *entities,
                                         uint32_t count, const void **out_values);

/** As quern_getter_get_many, to read and to write; change filters count each as a change. Threads: any that
 * no change of the world runs beside, as long as nobody else reads or writes the values that one writes. */
QUERN_API uint32_t quern_getter_get_many_write(const quern_getter *getter, const quern_entity *entities,
                                               uint32_t count, void **out_values);

/* ---------------------------------------------------------------------------------- going down trees */

#define QUERN_MAX_GETTER_COLUMNS 8 /**< Components that one call gets the values of. */

/** A component of several that quern_getter_get_children_many gets the values of. */
typedef struct quern_getter_column {
    const quern_getter *getter; /**< Of the component. */
    /** Gets a pointer for each entity: NULL where it does not have the component. */
    void **values;
    /** The values may be written: change filters count each as a change. Without it they must not be. */
    bool writes QUERN__ZERO;
} quern_getter_column;

/** Writes the children of count targets as quern_entity_get_children_many does, and into each column a
 * pointer to the value of each child, in the same order; returns how many children there are. What one
 * child has is looked up once for all columns: so this is the fast way down trees, level by level.
 *
 * At most capacity children, and as many pointers per column, are written. There are 1 to
 * QUERN_MAX_GETTER_COLUMNS columns, of getters of one world, which has the relation. A target that is null
 * or not alive has no children. out_counts is NULL or gets how many each target has; out_children, and the
 * values of columns, may be NULL when capacity is 0.
 *
 * Returns 0 with a message when the call is wrong. Threads: any that no change of the world runs beside; of
 * columns with writes, as long as nobody else reads or writes these values. */
QUERN_API uint64_t quern_getter_get_children_many(const quern_getter_column *columns, uint32_t column_count,
                                                  const quern_entity *targets, uint32_t count,
                                                  quern_relation relation, quern_entity *out_children,
                                                  uint32_t capacity, uint32_t *out_counts);

/* ------------------------------------------------------------------------------------------- refs */

/** A handle, and where its value was found. Set entity, and leave the rest zero; a ref may be copied, and
 * needs no release. It is the same whether the entity lives, is destroyed, or loses the component and gets
 * it again. To point it at another entity, assign a new ref as a whole: one of which only the entity was
 * changed goes on with the value of the former.
 *
 * It has an address in it, so it does not belong into components: described fields and quern_world_hash see
 * the same at every run only in handles. Keep refs beside the world. */
typedef struct quern_ref {
    quern_entity entity QUERN__ZERO; /**< Whose value. */
    void *value QUERN__ZERO;         /**< Internal. */
    uint64_t departures QUERN__ZERO; /**< Internal: of its chunk, when the value was found. */
    uint32_t chunk QUERN__ZERO;      /**< Internal: its number. */
    uint32_t getter QUERN__ZERO;     /**< Internal: the number of the getter that found the value. */
} quern_ref;

/* The value is to be found anew, or the call is wrong. */
QUERN_API const void *quern__ref_find(const quern_getter *getter, quern_ref *ref);
QUERN_API void *quern__ref_find_write(const quern_getter *getter, quern_ref *ref);

/* Whether the value is still where it was found: nothing has left its chunk since. */
static inline bool quern__ref_is_good(const quern_getter *getter, const quern_ref *ref)
{
    const bool is_good = ref->getter == getter->number && getter->departures[ref->chunk] == ref->departures;
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_expect(is_good, 1);
#else
    return is_good;
#endif
}

/** Returns the value of the ref's entity, to read. The getter must have been made with refs; neither may be
 * NULL, for which there is no check. Any getter of the world may be used with a ref, but one that changes
 * its getter is found anew each time. NULL as quern_getter_get. Threads: any that no change of the world
 * runs beside, one at a time for each ref. */
static inline const void *quern_ref_get(const quern_getter *getter, quern_ref *ref)
{
    return quern__ref_is_good(getter, ref) ? ref->value : quern__ref_find(getter, ref);
}

/** Returns the value of the ref's entity, to read and to write; change filters count it as a change of the
 * component. Otherwise as quern_ref_get. Threads: main. */
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
