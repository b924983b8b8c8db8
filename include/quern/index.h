/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_INDEX_H
#define QUERN_INDEX_H

/** @file
 * Indexes find the entities that have a value in a field of a component: all units of a team, all bodies in a cell, the
 * one player with a number.
 *
 *     quern_index *teams;
 *     quern_index_create(world, &(quern_index_def){.component = member, .field = "team"}, &teams);
 *     ...
 *     const quern_entity *units;
 *     uint32_t count;
 *     quern_index_find(teams, 3, &units, &count);
 *     for (uint32_t i = 0; i < count; i++) ... units[i] ...
 *
 * An index finds what a query with quern_term_with of the component would visit: neither disabled entities nor entities in
 * which the component is disabled. The entities of a value ascend by quern_entity_index. So their order depends on the
 * world alone: on no number of threads, and on nothing that the index has held before.
 *
 * **When it is up to date.** An index is brought up to date at these points, and only if something has changed:
 *
 *   - outside of frames and in exclusive systems, by each call of this file that reads the index;
 *   - in a frame, before a system that declares the index (`indexes` in quern_system_def). The system runs after all
 *     earlier systems that write the component, and before all later ones, so it finds what they have written. What the
 *     system itself writes is found from the next point on, as are commands after their sync point.
 *
 * Which chunks have changed is known from the change versions that change filters use (quern_term_changed), so the same
 * writes count: by views, by quern_entity_set and commands, by moves of rows, and by quern_entity_mark_changed. Writes
 * through pointers from quern_entity_get do not, unless quern_entity_mark_changed follows. Histories, archives and deltas
 * that set the state of the world count, too.
 *
 * Costs: a point at which nothing has changed reads two versions for each chunk with the component. One at which something
 * has changed reads the rows of the changed chunks, and moves entities whose values have changed. An index needs 100 to
 * 200 bytes for each entity, with four entities for each value. A world without indexes pays nothing. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>
#include <quern/type.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An index; see quern_index_create. */
typedef struct quern_index quern_index;

/** Definition of an index. */
typedef struct quern_index_def {
    /** Name for tools and messages, 1 to QUERN_MAX_NAME_BYTES bytes; NULL for none. It is copied, and several indexes may
     * have the same name. */
    const char *name QUERN__ZERO;
    quern_component component QUERN__ZERO; /**< The component that has the field. Required. */
    /** Name of a described field of the component (quern_component_def), such as "place.cell": a bool, integer, enum or
     * entity, and no array. It is copied. NULL: `type` and `offset_bytes` say what the index is on. */
    const char *field QUERN__ZERO;
    quern_field_type type QUERN__ZERO; /**< Type of the field, if `field` is NULL. */
    uint32_t offset_bytes
        QUERN__ZERO; /**< Offset of the field from the start of the value, if `field` is NULL. */
    /** Whether each value is to be that of one entity only. quern_index_create fails if two entities have one value. If that
     * happens later, the next point at which the index is brought up to date reports it to the log, with both entities. The
     * index then finds both, and quern_index_check fails until one of them has another value. */
    bool is_unique QUERN__ZERO;
} quern_index_def;

/** Creates an index, and fills it. Destroy it before its world.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT (the name, no such field, a field that is no integer, two entities with one value
 * in a unique index), UNKNOWN_COMPONENT, WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_index_create(quern_world *world, const quern_index_def *def,
                                          quern_index **out_index);

/** Destroys an index. NULL is allowed. While systems declare the index, it serves them, and goes with the last of them; the
 * program must not pass it to any call of this file afterwards. The call is refused, with a message in the log, while a
 * frame is running on the world. Threads: main, between frames. */
QUERN_API void quern_index_destroy(quern_index *index);

/** Brings the index up to date, and finds the entities with a value. O(1) for the value itself.
 *
 * value: the number of an integer or enum, of which a negative one is converted to uint64_t, as C does; 0 or 1 for a bool;
 * `bits` of an entity. A value that does not fit the field is that of no entity. *out_entities receives the first of
 * *out_count entities, ascending by quern_entity_index, or NULL if there is none. The list is valid until the next call that
 * reads the index, or frame. out_entities may be NULL, to count only. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (the component
 * was redefined without the field), WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames and in exclusive systems. */
QUERN_API quern_result quern_index_find(quern_index *index, uint64_t value,
                                        const quern_entity **out_entities, uint32_t *out_count);

/** Brings the index up to date, and checks that each value is that of one entity only, whether or not the index is unique.
 * The message of a failure names two entities with one value, those with the lowest indices. Errors: INVALID_ARGUMENT, and
 * those of quern_index_find. O(number of values). Threads: as for quern_index_find. */
QUERN_API quern_result quern_index_check(quern_index *index);

/** Numbers of an index. */
typedef struct quern_index_stats {
    uint64_t entity_count; /**< Entities in the index. */
    uint32_t value_count;  /**< Different values. */
    uint32_t double_count; /**< Values that several entities have. */
    size_t bytes;          /**< Memory that the index has allocated. */
} quern_index_stats;

/** Stores the numbers of an index as it is, without bringing it up to date. Errors: NULL_ARGUMENT. Threads: any, as long as
 * no thread brings it up to date. */
QUERN_API quern_result quern_index_get_stats(const quern_index *index, quern_index_stats *out_stats);

/** Returns the definition of an index. The names belong to the index. Errors: NULL_ARGUMENT. Threads: any, as long as no
 * thread destroys the index. */
QUERN_API quern_result quern_index_get_def(const quern_index *index, quern_index_def *out_def);

#ifdef __cplusplus
}
#endif

#endif
