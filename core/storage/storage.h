/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_STORAGE_H
#define QUERN_CORE_STORAGE_STORAGE_H

/* The storage of a world: all its archetypes, components and entities. This file holds the registry of archetypes
 * and the transitions between them, change.h all changes of rows, and archetype.h the
 * notification of rooms above storage.
 *
 * Invariants (checked by quern_world_validate):
 *   record of an alive slot -> chunk and row; handle in that row = slot index and generation
 *   chunk -> archetype and index; archetype->slots[index] -> chunk
 *   sum of the row counts of all archetypes = number of alive entities */

#include "core/storage/archetype.h"
#include "core/storage/entity.h"
#include "core/storage/type_internal.h"

#include <quern/world.h>

/* Maximum number of archetypes without rows that retain a run, in case a row is added soon. The archetypes that
 * became empty last retain one. */
enum { QUERN__SPARE_ARCHETYPES = 8 };

/* Positions of one component's values, by archetype number; offset 0 for free numbers. Storage updates the tables
 * when archetypes are created or removed. */
typedef struct quern__position_table {
    quern__column_position *positions;
    uint32_t capacity; /* at least the storage's numbered.count */
    uint32_t component_index;
    struct quern__position_table *previous, *next; /* links of the storage's list */
} quern__position_table;

typedef struct quern__storage {
    quern_allocator allocator;
    quern__components components;
    quern__entities entities;
    quern__slabs slabs;
    QUERN__ARRAY(quern__archetype *) archetypes; /* in order of creation; [0] has no components */
    /* Archetypes by number. A number stays constant when an archetype's index in the order changes, so that records
     * need no update. */
    QUERN__ARRAY(quern__archetype *) numbered;
    QUERN__ARRAY(uint32_t) free_numbers; /* a stack: the last one is reused first */
    quern__map archetype_by_set;         /* hash of the set -> first archetype with it */
    quern__archetype
        *spares[QUERN__SPARE_ARCHETYPES]; /* ring of those with may_retain_chunk; unused: NULL */
    uint32_t next_spare;

    /* State of rooms above storage for this world. Storage holds these pointers but never dereferences them; it
     * calls the rooms' listeners. prefabs is NULL until a prefab is captured. */
    struct quern__names *names;
    struct quern__relations *relations;
    struct quern__prefabs *prefabs;
    struct quern__reactions *reactions;
    struct quern__combines *combines;
    struct quern_commands
        *first_recorder; /* list of all recorders but those of accumulated values; may be NULL */
    /* what lists the commands of the sync point that runs (core/playback/stages.h); NULL if nothing does */
    struct quern__command_listener *command_listener;
    struct quern_query *first_query; /* list of all queries, including those of systems; may be NULL */
    quern__archetype_listener *first_archetype_listener;
    /* Entities may have links or names, which must be removed when an entity is destroyed. */
    bool has_attachments;
    /* Number of the last change that reserved room for rows that leave: quern__leaving_begin. */
    uint64_t change_number;

    quern__position_table *first_position_table;
    uint64_t structure_version;  /* changes whenever rows are added, removed or moved */
    uint64_t archetypes_version; /* changes whenever archetypes are created or removed */
    uint64_t order_version;      /* changes whenever archetypes get other indices */
    uint64_t last_identity;      /* last identity assigned to an archetype */
    uint64_t clock;              /* clock of change versions, from 1: see chunk.h */
    /* Index of the component that excludes entities from queries, or QUERN__NO_COMPONENT. */
    uint32_t disabled_index;
    bool is_crowded; /* the warning that archetypes run out was logged */
    bool may_gather; /* an archetype has become large: see quern__rows_gather */
    /* For builds with QUERN_CHECKS (sched/frame/schedule_internal.h). A guard period lasts from the start of a frame, or the
     * return of an exclusive system, to the next of these events. At its end, the schedule checks that all values
     * that changed outside of systems were written by calls in the period, or through pointers that are still
     * valid. */
    const void *last_frame_schedule; /* schedule that ran the last frame, or runs the current one */
    uint64_t guard_period;           /* number of the current period */
} quern__storage;

/* A component index that no component has, so no archetype contains it. */
#define QUERN__NO_COMPONENT UINT32_MAX

/* Archetype counts at which a world becomes crowded, with a log message, and stops being crowded. The distance
 * between the limits prevents repeated messages while the archetype count fluctuates. */
enum {
    QUERN__CROWDED_ARCHETYPES = QUERN_MAX_ARCHETYPES / 4 * 3,
    QUERN__UNCROWDED_ARCHETYPES = QUERN_MAX_ARCHETYPES / 2
};

/* Initialises the storage without rooms above it; those are attached afterwards. `first_handle_high`: handle_high
 * of slots that were never used; see handle.h. */
quern_result quern__storage_init(quern__storage *storage, const quern_allocator *allocator,
                                 uint32_t first_handle_high);

/* Registers a listener to archetypes until the storage is released. */
static inline void quern__storage_listen(quern__storage *storage, quern__archetype_listener *listener)
{
    listener->next = storage->first_archetype_listener;
    storage->first_archetype_listener = listener;
}

/* Destroys all values and releases all memory. May be called after a failed init. Precondition: no
 * archetype has listeners any more. */
void quern__storage_release(quern__storage *storage);

/* ------------------------------------------------------------------------------------- archetypes */

/* Finds or creates the archetype of a sorted set without duplicates. A created archetype has no rows and may remain
 * if the caller fails later. Errors: TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT, OUT_OF_MEMORY. */
quern_result quern__storage_ensure_archetype(quern__storage *storage, const uint16_t *component_indices,
                                             uint32_t count, quern__archetype **out_archetype);

/* Performs quern__storage_ensure_archetype, but a created archetype gets the layout of layout_index. Precondition:
 * layout_index is not below the number of archetypes. */
quern_result quern__storage_ensure_archetype_with_layout(quern__storage *storage,
                                                         const uint16_t *component_indices, uint32_t count,
                                                         uint32_t layout_index,
                                                         quern__archetype **out_archetype);

/* Appends an archetype to the order of archetypes and to every list in that order. Precondition: the lists have
 * room. */
void quern__storage_append_archetype(quern__storage *storage, quern__archetype *archetype);

/* Returns the archetype of a sorted set without duplicates, or NULL. */
quern__archetype *quern__storage_find_archetype(const quern__storage *storage,
                                                const uint16_t *component_indices, uint32_t count);

/* Create archetypes that are appended to the order of archetypes later. quern__storage_reserve_archetypes reserves
 * room in all lists for `count` archetypes. quern__storage_create_archetype creates one with the layout of
 * layout_index. It may have change versions and listeners, but is in no list. quern__storage_register_archetype
 * assigns a number to it and registers it by its set. Errors: OUT_OF_MEMORY, or false; nothing remains then. */
bool quern__storage_reserve_archetypes(quern__storage *storage, uint32_t count);
quern_result quern__storage_create_archetype(quern__storage *storage, const uint16_t *component_indices,
                                             uint32_t count, uint32_t layout_index,
                                             quern__archetype **out_archetype);
void quern__storage_register_archetype(quern__storage *storage, quern__archetype *archetype);

/* Unregisters an archetype from the tables by number and by set, and releases it. Preconditions: it has no rows,
 * and no plan leads to or from it. The caller must remove it from lists in order. */
void quern__storage_remove_archetype(quern__storage *storage, quern__archetype *archetype);

/* Sets the shape of an archetype without chunks, or of one whose rows are about to be in runs of that shape, to runs of
 * 2^shift chunks, with everything that knows offsets in its runs: plans, edges and position tables. */
void quern__storage_set_shift(quern__storage *storage, quern__archetype *archetype, uint32_t shift);

/* --------------------------------------------------------------------------------- position tables */

/* Fills a table for a component and keeps it up to date until quern__storage_remove_position_table. The table must
 * not move in memory. Errors: OUT_OF_MEMORY; then the table is not registered. */
quern_result quern__storage_add_position_table(quern__storage *storage, uint32_t component_index,
                                               quern__position_table *table);
void quern__storage_remove_position_table(quern__storage *storage, quern__position_table *table);

/* ------------------------------------------------------------------------------------- move counts */

/* Counts moves of rows out of chunks for the reader, in all present and future archetypes that have the component,
 * until quern__storage_stop_move_counts. Errors: OUT_OF_MEMORY. */
quern_result quern__storage_start_move_counts(quern__storage *storage, uint32_t component_index,
                                              quern_getter *reader);
void quern__storage_stop_move_counts(quern__storage *storage, uint32_t component_index,
                                     quern_getter *reader);

/* --------------------------------------------------------------------------------- change versions */

/* Keeps change versions in all present and future archetypes that have the component. Each call needs a matching
 * call of quern__storage_remove_change_filter. Errors: OUT_OF_MEMORY. */
quern_result quern__storage_add_change_filter(quern__storage *storage, uint32_t component_index);
void quern__storage_remove_change_filter(quern__storage *storage, uint32_t component_index);

/* Notes, in builds with QUERN_CHECKS, that a pointer for writing values of the component was given out. The pointer
 * is valid until the structure changes. Relaxed: threads that get values at the same time store the same version, and
 * the guards load it only when those calls have ended, because calls on a world and a frame must not overlap. */
static inline void quern__storage_note_pointer_given(const quern__storage *storage,
                                                     uint32_t component_index)
{
    if (!QUERN_CHECKS) return;
    atomic_store_explicit(
        &storage->components.list.items[component_index]->outside_writes.pointer_structure,
        storage->structure_version + 1, memory_order_relaxed);
}

/* Notes, in builds with QUERN_CHECKS, that a call wrote values of the component and gave out no pointer. Relaxed for
 * the reason given at quern__storage_note_pointer_given. */
static inline void quern__storage_note_written(const quern__storage *storage, uint32_t component_index)
{
    if (!QUERN_CHECKS) return;
    atomic_store_explicit(
        &storage->components.list.items[component_index]->outside_writes.written_in_period,
        storage->guard_period + 1, memory_order_relaxed);
}

/* ---------------------------------------------------------------------------------------- lookups */

static inline quern__archetype *quern__storage_archetype_of(const quern__storage *storage,
                                                            const quern__record *record)
{
    return storage->numbered.items[record->archetype_number];
}

/* Returns the address of a component's value in a row, or NULL if the archetype has no such column. */
static inline void *quern__storage_value(const quern__archetype *archetype, uintptr_t location,
                                         uint32_t component_index)
{
    const quern__column_position position = quern__archetype_column_position(archetype, component_index);
    return position.offset_lines != 0 ? quern__position_value(position, location) : NULL;
}

/* Move plans: the steps that move a row from one archetype to another. Each archetype caches the plans that lead away
 * from it: by the target's number, and also by component if the two sets differ by one component. A plan is compiled
 * once, so that a move reads offsets and sizes, and no component sets. */

/* What happens to one value of a row that moves to another archetype. */
typedef struct quern__move_step {
    const quern__type *type;      /* NULL: the type has no hooks */
    uint32_t source_offset_bytes; /* of the column in the source's runs; 0 if the value is added */
    uint32_t target_offset_bytes; /* of the column in the target's runs; 0 if the value is removed */
    uint16_t size_bytes;          /* of one value */
} quern__move_step;

/* A plan for all moves from one archetype to another.
 *
 *   steps[0 .. shared_count)                           move a value
 *   steps[shared_count .. shared_count + added_count)  create a value
 *   the remaining removed_count steps                  destroy a value
 *
 * A plan is in the map `plans` of its source, and in the list `incoming` of its target. */
typedef struct quern__move_plan {
    quern__archetype *source, *target;
    struct quern__move_plan *next_incoming,
        **place_incoming; /* links in the target's list of incoming plans */
    /* copy plan of the shared and the removed steps (see archetype.h); NULL unless is_plain */
    quern__copy_word *carry;
    quern__column_position added; /* column of the first added step; size 0 if there is none */
    bool is_plain;                /* no step has a type or a value larger than QUERN__COPY_MAX_BYTES */
    uint32_t shared_count, added_count, removed_count;
    quern__move_step steps[];
} quern__move_plan;

/* Whether a plan that adds a component also adds components that it requires. */
static inline bool quern__plan_adds_required(const quern__move_plan *plan)
{
    return plan->target->component_count > plan->source->component_count + 1;
}

/* Returns the edge of a plan. Precondition: plan->is_plain. */
static inline quern__edge quern__plan_edge(const quern__move_plan *plan, uint64_t key)
{
    return (quern__edge){.key = key,
                         .target = plan->target,
                         .carry = plan->carry,
                         .target_number = plan->target->number,
                         .added = plan->added};
}

/* Finds or compiles the plan from `source` to `target`. Errors: OUT_OF_MEMORY. */
quern_result quern__plan_between(quern__storage *storage, quern__archetype *source,
                                 quern__archetype *target, const quern__move_plan **out_plan);

/* Finds or compiles the plan that removes one component if the source has it, and otherwise adds it, with the components
 * that it requires. Creates the target archetype if it does not exist. Errors: those of quern__plan_between and
 * quern__storage_ensure_archetype; COMPONENT_REQUIRED. */
quern_result quern__plan_add_or_remove(quern__storage *storage, quern__archetype *source,
                                       uint32_t component_index, const quern__move_plan **out_plan);

/* Returns the edge for a key of quern__edge_key if its plan was compiled before, and caches the edge in
 * source->edges, with QUERN__EDGE_NEEDS_ROOM if moves along it need it. Returns NULL if there is no such plan,
 * or if plan or source are not plain. */
const quern__edge *quern__plan_find_edge(const quern__storage *storage, quern__archetype *source,
                                         uint64_t key);

/* Releases all plans and edges that lead away from an archetype. They are compiled again when needed. */
void quern__plans_release(quern__storage *storage, quern__archetype *archetype);

#endif
