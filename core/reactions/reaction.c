/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Reactions, their watches, and what these hear of changes. core/reactions/reaction_take.c tells reactions.
 */

#include "core/reactions/reaction.h"

#include "core/storage/storage.h"

enum { REACTION_ALIGNMENT_BYTES = 64 };

static bool asks_for(const quern__reaction *reaction, quern_reaction_kind kind)
{
    return (reaction->kinds & (uint32_t)kind) != 0;
}

static quern__plane plane_of(const quern__reaction *reaction, quern__plane_kind kind)
{
    return (quern__plane){.kind = kind, .id = reaction->number};
}

/* The place of a plane of the watch, or QUERN__NO_PLANE. */
static uint32_t find_plane(const quern__watch *watch, quern__plane_kind kind)
{
    return quern__planes_find(watch->archetype->planes, kind, watch->reaction->number);
}

/* Whether values are looked at by the term. */
static bool has_access(const quern_term *term)
{
    return term->access != QUERN_NO_ACCESS && term->reach == QUERN_REACH_ROW && !term->by_target;
}

/* ------------------------------------------------------------------------------------------- watches */

/* The parts of one allocation. */
typedef struct watch_parts {
    size_t columns_offset, removed_offset, total_bytes;
} watch_parts;

static watch_parts parts_of(uint32_t term_count)
{
    watch_parts parts;
    parts.columns_offset = quern__align_up(sizeof(quern__watch), _Alignof(quern_view_column));
    parts.removed_offset = quern__align_up(parts.columns_offset + term_count * sizeof(quern_view_column),
                                           _Alignof(quern__removed_column));
    parts.total_bytes = parts.removed_offset + term_count * sizeof(quern__removed_column);
    return parts;
}

/* Which columns are copied, and where a view finds them. */
static void lay_out_copies(quern__watch *watch)
{
    const quern__archetype *archetype = watch->archetype;
    const quern__reaction *reaction = watch->reaction;
    quern__removed *removed = &watch->removed;
    for (uint32_t i = 0; i < reaction->term_count; i++) {
        const quern_term *term = &reaction->terms[i];
        const uint32_t index = quern__component_index(term->component);
        const uint32_t column = quern__archetype_column(archetype, index);
        watch->columns[i] =
            (quern_view_column){.access = (uint8_t)(has_access(term) ? QUERN_READ : QUERN_NO_ACCESS),
                                .present = column != QUERN__COLUMN_NONE,
                                .is_checked = QUERN_CHECKS};
        if (!has_access(term) || column >= QUERN__COLUMN_TAG) continue;
        const quern__type *type = archetype->columns[column].type;
        removed->columns[removed->column_count++] = (quern__removed_column){
            .type = quern__hooks_any(&type->hooks) ? type : NULL,
            .source_offset_bytes = archetype->columns[column].offset_bytes,
            .size_bytes = archetype->columns[column].size_bytes,
        };
        removed->calls_hooks |= quern__hooks_any(&type->hooks);
    }
    quern__removed_lay_out(removed, archetype);
    for (uint32_t i = 0, k = 0; i < reaction->term_count; i++) {
        const quern_term *term = &reaction->terms[i];
        const uint32_t column = quern__archetype_column(archetype, quern__component_index(term->component));
        if (!has_access(term) || column >= QUERN__COLUMN_TAG) continue;
        watch->columns[i].offset_bytes = removed->columns[k].offset_bytes;
        watch->columns[i].size_bytes = removed->columns[k++].size_bytes;
    }
}

static quern__watch *watch_create(quern__reaction *reaction, quern__archetype *archetype,
                                  const quern_allocator *allocator)
{
    const watch_parts parts = parts_of(reaction->term_count);
    char *memory = quern__allocate(allocator, parts.total_bytes, REACTION_ALIGNMENT_BYTES);
    if (memory == NULL) return NULL;
    quern__watch *watch = (quern__watch *)(void *)memory;
    *watch = (quern__watch){
        .listener = {.events = &quern__watch_events,
                     .archetype = archetype,
                     .position = reaction->number,
                     .needs_room = asks_for(reaction, QUERN_ON_REMOVED)},
        .reaction = reaction,
        .archetype = archetype,
        .columns = (quern_view_column *)(void *)(memory + parts.columns_offset),
        .removed.columns = (quern__removed_column *)(void *)(memory + parts.removed_offset),
    };
    lay_out_copies(watch);
    watch->listener.calls_hooks = watch->removed.calls_hooks;
    return watch;
}

static void watch_release(quern__watch *watch, const quern_allocator *allocator)
{
    quern__removed_release(&watch->removed, allocator);
    quern__release(allocator, watch, parts_of(watch->reaction->term_count).total_bytes,
                   REACTION_ALIGNMENT_BYTES);
}

/* Takes the last planes of a watch that asks for these kinds out of its archetype. */
static void remove_planes(const quern__watch *watch, uint32_t kinds, const quern_allocator *allocator)
{
    if ((kinds & QUERN_ON_ADDED) != 0)
        quern__archetype_remove_plane(watch->archetype, allocator,
                                      plane_of(watch->reaction, QUERN__PLANE_ADDED));
    if ((kinds & QUERN_ON_SET) != 0)
        quern__archetype_remove_plane(watch->archetype, allocator,
                                      plane_of(watch->reaction, QUERN__PLANE_SET));
}

static quern_result add_planes(const quern__watch *watch, const quern_allocator *allocator)
{
    const quern__reaction *reaction = watch->reaction;
    quern_result result = QUERN_OK;
    if (asks_for(reaction, QUERN_ON_ADDED))
        result =
            quern__archetype_add_plane(watch->archetype, allocator, plane_of(reaction, QUERN__PLANE_ADDED));
    if (result != QUERN_OK || !asks_for(reaction, QUERN_ON_SET)) return result;
    result = quern__archetype_add_plane(watch->archetype, allocator, plane_of(reaction, QUERN__PLANE_SET));
    if (result != QUERN_OK) remove_planes(watch, reaction->kinds & QUERN_ON_ADDED, allocator);
    return result;
}

static quern_result fail_watch(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for what a reaction keeps of an archetype");
}

/* The archetype comes after all others that the reaction watches. */
static quern_result begin_watch(quern__reaction *reaction, quern__archetype *archetype,
                                const quern_allocator *allocator)
{
    if (!quern__array_reserve(allocator, &reaction->watches, reaction->watches.count + 1))
        return fail_watch();
    quern__watch *watch = watch_create(reaction, archetype, allocator);
    if (watch == NULL) return fail_watch();
    const quern_result result = add_planes(watch, allocator);
    if (result != QUERN_OK) {
        watch_release(watch, allocator);
        return result;
    }
    quern__row_listener_add(&watch->listener);
    reaction->watches.items[reaction->watches.count++] = watch;
    return QUERN_OK;
}

static void end_last_watch(quern__reaction *reaction, const quern_allocator *allocator)
{
    quern__watch *watch = reaction->watches.items[--reaction->watches.count];
    quern__row_listener_remove(&watch->listener);
    remove_planes(watch, reaction->kinds, allocator);
    watch_release(watch, allocator);
}

bool quern__watches_have_copies(const quern__archetype *archetype)
{
    for (const quern__watch *watch = quern__first_watch(archetype); watch != NULL;
         watch = quern__next_watch(watch))
        if (watch->removed.count > 0 || watch->handed_count > 0) return true;
    return false;
}

/* --------------------------------------------------------------------------------------- the registry */

static size_t reaction_bytes(uint32_t term_count)
{
    return sizeof(quern__reaction) + term_count * sizeof(quern_term);
}

/* Old values are shown after the entities have gone, so they are copies. */
static quern_result check_copies(const quern__storage *storage, const quern__reaction_def *def)
{
    if ((def->kinds & QUERN_ON_REMOVED) == 0) return QUERN_OK;
    for (uint32_t i = 0; i < def->term_count; i++) {
        if (!has_access(&def->terms[i])) continue;
        const quern__type *type =
            quern__components_type(&storage->components, quern__component_index(def->terms[i].component));
        if (type->hooks.destroy != NULL && type->hooks.copy == NULL)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "term %u reads '%s' of entities that are removed, which takes a copy; it has a "
                "destroy hook and no copy hook: give it one, or match without access",
                i, type->name);
    }
    return QUERN_OK;
}

/* Enters a reaction without watches into the list. NULL: no memory. */
static quern__reaction *reaction_create(quern__reactions *registry, const quern_allocator *allocator,
                                        const quern__reaction_def *def)
{
    uint32_t number = 0;
    while (number < registry->list.count && registry->list.items[number] != NULL)
        number++;
    if (!quern__array_reserve(allocator, &registry->list, number + 1)) return NULL;
    quern__reaction *reaction =
        quern__allocate(allocator, reaction_bytes(def->term_count), REACTION_ALIGNMENT_BYTES);
    if (reaction == NULL) return NULL;
    *reaction = (quern__reaction){.registry = registry,
                                  .number = number,
                                  .kinds = def->kinds,
                                  .term_count = def->term_count,
                                  .matches = def->matches,
                                  .query = def->query};
    memcpy(reaction->terms, def->terms, def->term_count * sizeof *def->terms);
    if (number == registry->list.count) registry->list.count++;
    registry->list.items[number] = reaction;
    registry->count++;
    registry->removed_count += asks_for(reaction, QUERN_ON_REMOVED);
    return reaction;
}

/* Flags that several threads may raise at a time. Relaxed: who lowers them has waited for the threads. */
static bool is_raised(const bool *flag)
{
    return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

/* Relaxed: as above. */
static void raise(bool *flag)
{
    if (!is_raised(flag)) __atomic_store_n(flag, true, __ATOMIC_RELAXED);
}

static void note_pending(quern__reaction *reaction)
{
    raise(&reaction->is_pending);
    raise(&reaction->registry->is_pending);
}

static void set_added(quern__watch *watch, uintptr_t first, uint32_t count)
{
    quern__plane_set_run(watch->archetype->planes, find_plane(watch, QUERN__PLANE_ADDED), first, count);
    raise(&watch->is_pending);
    note_pending(watch->reaction);
}

/* All rows that are there count as rows that came. */
static void note_present(const quern__reaction *reaction)
{
    for (uint32_t i = 0; i < reaction->watches.count; i++) {
        quern__watch *watch = reaction->watches.items[i];
        for (uint32_t k = 0; k < watch->archetype->chunk_count; k++) {
            const quern__chunk_slot *slot = &watch->archetype->slots[k];
            set_added(watch, quern__location_make(slot->chunk, 0), slot->row_count);
        }
    }
}

quern_result quern__reaction_add(quern__storage *storage, const quern__reaction_def *def,
                                 quern__reaction **out_reaction)
{
    quern_result result = check_copies(storage, def);
    if (result != QUERN_OK) return result;
    quern__reaction *reaction = reaction_create(storage->reactions, &storage->allocator, def);
    if (reaction == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for a reaction");
    for (uint32_t i = 0; i < storage->archetypes.count && result == QUERN_OK; i++)
        if (def->matches(def->query, storage->archetypes.items[i]))
            result = begin_watch(reaction, storage->archetypes.items[i], &storage->allocator);
    if (result != QUERN_OK) {
        quern__reaction_remove(storage, reaction);
        return result;
    }
    if (asks_for(reaction, QUERN_ON_PRESENT) && asks_for(reaction, QUERN_ON_ADDED)) note_present(reaction);
    *out_reaction = reaction;
    return QUERN_OK;
}

void quern__reaction_remove(quern__storage *storage, quern__reaction *reaction)
{
    if (reaction == NULL) return;
    quern__reactions *registry = storage->reactions;
    const quern_allocator *allocator = &storage->allocator;
    quern__reaction_done(storage, reaction);
    quern__reaction_drop(storage, reaction);
    while (reaction->watches.count > 0)
        end_last_watch(reaction, allocator);
    quern__array_release(allocator, &reaction->watches);
    quern__array_release(allocator, &reaction->taken.removed);
    quern__array_release(allocator, &reaction->taken.rows);
    quern__array_release(allocator, &reaction->taken.words);
    registry->removed_count -= asks_for(reaction, QUERN_ON_REMOVED);
    registry->list.items[reaction->number] = NULL;
    quern__release(allocator, reaction, reaction_bytes(reaction->term_count), REACTION_ALIGNMENT_BYTES);
    if (--registry->count == 0) {
        quern__array_release(allocator, &registry->list);
        registry->list.items = NULL;
        registry->list.count = registry->list.capacity = 0;
    }
}

/* Where one cannot be begun, storage releases those that were: release_watch. */
static quern_result watch_archetype(quern__storage *storage, quern__archetype *archetype)
{
    const quern__reactions *registry = storage->reactions;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < registry->list.count && result == QUERN_OK; i++) {
        quern__reaction *reaction = registry->list.items[i];
        if (reaction != NULL && reaction->matches(reaction->query, archetype))
            result = begin_watch(reaction, archetype, &storage->allocator);
    }
    return result;
}

void quern__reactions_init(quern__reactions *reactions, quern__storage *storage)
{
    *reactions = (quern__reactions){.listener = {.made = watch_archetype}};
    storage->reactions = reactions;
    quern__storage_listen(storage, &reactions->listener);
}

void quern__reactions_release(quern__storage *storage)
{
    for (uint32_t i = 0; i < storage->reactions->list.count; i++)
        quern__reaction_remove(storage, storage->reactions->list.items[i]);
}

/* By insertion: mostly they are in order. */
static void order_watches(quern__reaction *reaction)
{
    for (uint32_t i = 1; i < reaction->watches.count; i++) {
        quern__watch *watch = reaction->watches.items[i];
        uint32_t at = i;
        for (; at > 0 && watch->archetype->index < reaction->watches.items[at - 1]->archetype->index; at--)
            reaction->watches.items[at] = reaction->watches.items[at - 1];
        reaction->watches.items[at] = watch;
    }
}

void quern__reactions_order_watches(quern__storage *storage)
{
    for (uint32_t i = 0; i < storage->reactions->list.count; i++)
        if (storage->reactions->list.items[i] != NULL) order_watches(storage->reactions->list.items[i]);
}

void quern__reactions_forget_removed(quern__storage *storage)
{
    const quern__reactions *registry = storage->reactions;
    for (uint32_t i = 0; i < registry->list.count; i++) {
        quern__reaction *reaction = registry->list.items[i];
        uint32_t kept_count = 0;
        for (uint32_t k = 0; reaction != NULL && k < reaction->watches.count; k++)
            if (!reaction->watches.items[k]->archetype->is_removed)
                reaction->watches.items[kept_count++] = reaction->watches.items[k];
        if (reaction != NULL) reaction->watches.count = kept_count;
    }
}

void quern__reactions_trim(quern__storage *storage)
{
    const quern__reactions *registry = storage->reactions;
    for (uint32_t i = 0; i < registry->list.count; i++) {
        const quern__reaction *reaction = registry->list.items[i];
        for (uint32_t k = 0; reaction != NULL && k < reaction->watches.count; k++)
            quern__removed_trim(&reaction->watches.items[k]->removed, &storage->allocator, 0);
    }
}

/* ------------------------------------------------------------------------------------------- listeners */

/* Finds the next of these rows of which the reaction was told that they came, or does not ask. Steps over
 * the others. False: there is none. added: the plane, or QUERN__NO_PLANE. */
static bool find_told(const quern__planes *planes, uint32_t added, uintptr_t *first, uint32_t *count,
                      uint32_t *out_count)
{
    *out_count = *count;
    if (added == QUERN__NO_PLANE || quern__plane_count(planes, added, quern__chunk_of(*first)->index) == 0)
        return *count > 0;
    while (*count > 0 && quern__plane_test(planes, added, *first)) {
        ++*first;
        --*count;
    }
    *out_count = 0;
    while (*out_count < *count && !quern__plane_test(planes, added, *first + *out_count))
        ++*out_count;
    return *out_count > 0;
}

static void copy_told(quern__watch *watch, uintptr_t first, uint32_t count)
{
    const uint32_t added = find_plane(watch, QUERN__PLANE_ADDED);
    for (uint32_t told; find_told(watch->archetype->planes, added, &first, &count, &told);
         first += told, count -= told) {
        quern__removed_copy(&watch->removed, first, told, watch->reaction->registry->orders_by_row);
        note_pending(watch->reaction);
    }
}

static void set_told(quern__watch *watch, uintptr_t first, uint32_t count)
{
    const quern__planes *planes = watch->archetype->planes;
    const uint32_t added = find_plane(watch, QUERN__PLANE_ADDED);
    const uint32_t set = find_plane(watch, QUERN__PLANE_SET);
    for (uint32_t told; find_told(planes, added, &first, &count, &told); first += told, count -= told) {
        quern__plane_set_run(planes, set, first, told);
        raise(&watch->is_pending);
        note_pending(watch->reaction);
    }
}

static void on_arrive(quern__row_listener *listener, uintptr_t first, uint32_t count)
{
    quern__watch *watch = (quern__watch *)listener;
    if (asks_for(watch->reaction, QUERN_ON_ADDED)) set_added(watch, first, count);
}

static void on_leave(quern__row_listener *listener, uintptr_t first, uint32_t count)
{
    quern__watch *watch = (quern__watch *)listener;
    if (asks_for(watch->reaction, QUERN_ON_REMOVED)) copy_told(watch, first, count);
}

static void on_move_out(quern__row_listener *listener, uintptr_t from, const quern__archetype *target,
                        uint32_t count)
{
    quern__watch *watch = (quern__watch *)listener;
    if (asks_for(watch->reaction, QUERN_ON_REMOVED) && quern__watch_of(target, watch->reaction) == NULL)
        copy_told(watch, from, count);
}

/* Whether the target has a value that the reaction looks at and the source has not. */
static bool gains_value(const quern__reaction *reaction, const quern__archetype *target,
                        const quern__archetype *source)
{
    for (uint32_t i = 0; i < reaction->term_count; i++) {
        const uint32_t index = quern__component_index(reaction->terms[i].component);
        if (has_access(&reaction->terms[i]) && quern__archetype_place(target, index).offset_bytes != 0 &&
            !quern__archetype_has(source, index))
            return true;
    }
    return false;
}

static void on_move_in(quern__row_listener *listener, uintptr_t to, const quern__archetype *source,
                       uint32_t count)
{
    quern__watch *watch = (quern__watch *)listener;
    const quern__reaction *reaction = watch->reaction;
    const quern__watch *other = quern__watch_of(source, reaction);
    if (other == NULL) {
        if (asks_for(reaction, QUERN_ON_ADDED)) set_added(watch, to, count);
        return;
    }
    if (is_raised(&other->is_pending)) raise(&watch->is_pending); /* bits may have come along */
    if (asks_for(reaction, QUERN_ON_SET) && gains_value(reaction, watch->archetype, source))
        set_told(watch, to, count);
}

static void on_written(quern__row_listener *listener, const quern__archetype *source, uintptr_t first,
                       uint32_t count, uint32_t component_index)
{
    quern__watch *watch = (quern__watch *)listener;
    const quern__reaction *reaction = watch->reaction;
    if (!asks_for(reaction, QUERN_ON_SET)) return;
    if (source != watch->archetype && quern__watch_of(source, reaction) == NULL) return; /* it came */
    for (uint32_t i = 0; i < reaction->term_count; i++)
        if (has_access(&reaction->terms[i]) &&
            quern__component_index(reaction->terms[i].component) == component_index)
            set_told(watch, first, count);
}

static quern_result reserve_copies(quern__row_listener *listener, const quern_allocator *allocator,
                                   uint64_t change, const quern__archetype *target, uint32_t count)
{
    quern__watch *watch = (quern__watch *)listener;
    if (target != NULL && quern__watch_of(target, watch->reaction) != NULL) return QUERN_OK;
    if (quern__removed_reserve(&watch->removed, allocator, change, count)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "no memory to copy %u rows for a reaction to what is removed", count);
}

/* A new archetype that is given up is the last one of the reaction; one that is removed has been taken out of its
 * list already (quern__reactions_forget_removed). */
static void release_watch(quern__row_listener *listener, const quern_allocator *allocator)
{
    quern__watch *watch = (quern__watch *)listener;
    quern__reaction *reaction = watch->reaction;
    if (reaction->watches.count > 0 && reaction->watches.items[reaction->watches.count - 1] == watch)
        reaction->watches.count--;
    watch_release(watch, allocator);
}

const quern__row_events quern__watch_events = {.arrive = on_arrive,
                                               .leave = on_leave,
                                               .move_out = on_move_out,
                                               .move_in = on_move_in,
                                               .written = on_written,
                                               .reserve = reserve_copies,
                                               .release = release_watch};
