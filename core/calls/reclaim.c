/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Releases unused memory (quern_world_trim) and archetypes without rows (quern_world_remove_empty_archetypes).
 * Visible effects are only the number of archetypes and, if trim releases pages of records, the handles of later
 * entities. */

#include "core/calls/calls_internal.h"
#include "core/events/event_internal.h"
#include "core/storage/change.h"

/* -------------------------------------------------------------------------------------------- trim */

static quern_result check_world(const quern_world *world, const char *function)
{
    if (world == NULL) return quern__fail_null(function, "world");
    return quern__world_check_unlocked(world, function);
}

static quern_result trim(quern_world *world)
{
    quern_result result = check_world(world, "quern_world_trim");
    if (result != QUERN_OK) return result;
    quern__storage *storage = &world->storage;
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        quern__archetype *archetype = storage->archetypes.items[i];
        archetype->may_retain_chunk = false;
        archetype->asked_count = 0;
        quern__archetype_release_spare_chunks(archetype, &storage->slabs, &storage->allocator);
        quern__row_versions_trim(archetype->row_versions, &storage->allocator, archetype->held_count);
    }
    memset(storage->spares, 0, sizeof storage->spares);
    quern__relations_trim(storage);
    quern__reactions_trim(storage);
    quern__slabs_trim(&storage->slabs, &storage->allocator);
    quern__entities_drop_pages(&storage->entities, &storage->allocator);
    quern__names_trim(storage->names, &storage->allocator);
    quern__events_trim(world);
    return QUERN_OK;
}

quern_result quern_world_trim(quern_world *world)
{
    if (!quern__world_enter(world, "quern_world_trim")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, trim(world));
}

/* ----------------------------------------------------------------------------- archetypes without rows */

/* Marks all archetypes without rows, and without copies of removed rows, as removed. Returns their number;
 * *out_first becomes the index of the first. The archetype without components is never removed, since new
 * entities start there. */
static uint32_t mark_removed(const quern__storage *storage, uint32_t *out_first)
{
    uint32_t count = 0;
    for (uint32_t i = storage->archetypes.count; i-- > 1;) {
        quern__archetype *archetype = storage->archetypes.items[i];
        archetype->is_removed =
            archetype->chunk_count == 0 && !quern__archetype_has_removed_copies(archetype);
        if (!archetype->is_removed) continue;
        *out_first = i;
        count++;
    }
    return count;
}

/* Releases the plans of the archetype, and those of all archetypes with plans to it. They are recreated when
 * needed. */
static void forget_plans_around(quern__storage *storage, quern__archetype *archetype)
{
    while (archetype->incoming != NULL)
        quern__plans_release(storage, archetype->incoming->source);
    quern__plans_release(storage, archetype);
}

/* Removes the marked archetypes from everything that has pointers to archetypes. The caller then gives other indices to
 * the archetypes from `first` on. */
static void forget_removed(quern_world *world, uint32_t first)
{
    quern__storage *storage = &world->storage;
    storage->order_version++;
    for (quern__query *query = storage->first_query; query != NULL; query = query->next)
        quern__query_forget_removed(query, first);
    quern__reactions_forget_removed(storage);
    for (uint32_t i = 0; i < QUERN__SPARE_ARCHETYPES; i++)
        if (storage->spares[i] != NULL && storage->spares[i]->is_removed) storage->spares[i] = NULL;
    world->create_lists = (quern__create_lists){0};
    for (uint32_t i = first; i < storage->archetypes.count; i++)
        if (storage->archetypes.items[i]->is_removed)
            forget_plans_around(storage, storage->archetypes.items[i]);
}

/* Releases the marked archetypes and appends the others from `first` on again, in their order. No list has to grow,
 * since all lists contained these archetypes before. */
static void relink(quern__storage *storage, uint32_t first)
{
    const uint32_t count = storage->archetypes.count;
    for (uint32_t i = 0; i < storage->components.list.count; i++) {
        quern__component *component = storage->components.list.items[i];
        while (component->archetypes.count > 0 &&
               component->archetypes.items[component->archetypes.count - 1] >= first)
            component->archetypes.count--;
    }
    storage->archetypes.count = first;
    for (uint32_t i = first; i < count; i++) {
        quern__archetype *archetype = storage->archetypes.items[i];
        if (archetype->is_removed)
            quern__storage_remove_archetype(storage, archetype);
        else
            quern__storage_append_archetype(storage, archetype);
    }
}

/* Replaces scanned_count of each query by the number of archetypes that the query has not checked yet and that are not
 * marked; 0 for the query of a system without terms, which checks none. These are the last ones of the list that a
 * refresh checks, also after the marked ones have left it. So
 * removing needs no refresh, which could run out of memory. */
static void count_unscanned(quern__storage *storage)
{
    for (quern__query *query = storage->first_query; query != NULL; query = query->next) {
        const uint32_t *driven = query->driver != QUERN__NO_DRIVER
                                     ? storage->components.list.items[query->driver]->archetypes.items
                                     : NULL;
        const uint32_t count = query->term_count > 0 ? quern__query_candidate_count(query) : 0;
        uint32_t unscanned_count = 0;
        for (uint32_t i = query->scanned_count; i < count; i++)
            unscanned_count += !storage->archetypes.items[driven != NULL ? driven[i] : i]->is_removed;
        query->scanned_count = unscanned_count;
    }
}

/* Reverses count_unscanned, after the marked archetypes have left all lists. */
static void set_scanned_counts(quern__storage *storage)
{
    for (quern__query *query = storage->first_query; query != NULL; query = query->next)
        query->scanned_count = quern__query_candidate_count(query) - query->scanned_count;
}

/* Removes the marked archetypes from the world. */
static void remove_marked(quern_world *world, uint32_t first)
{
    quern__storage *storage = &world->storage;
    forget_removed(world, first);
    count_unscanned(storage);
    relink(storage, first);
    set_scanned_counts(storage);
    if (storage->archetypes.count < QUERN__UNCROWDED_ARCHETYPES) storage->is_crowded = false;
    quern__structure_changed(storage); /* invalidates iterators, since matches have moved */
}

/* Removes all empty archetypes and returns their number. */
static uint32_t remove_all(quern_world *world)
{
    uint32_t first = 0;
    const uint32_t count = mark_removed(&world->storage, &first);
    if (count > 0) remove_marked(world, first);
    if (world->empty_archetype_checks_per_sync == 0) world->visit_count = world->storage.archetypes.count;
    return count;
}

static quern_result remove_empty(quern_world *world, uint32_t *out_count)
{
    const quern_result result = check_world(world, "quern_world_remove_empty_archetypes");
    if (result != QUERN_OK) return result;
    const uint32_t count = remove_all(world);
    if (out_count != NULL) *out_count = count;
    return QUERN_OK;
}

quern_result quern_world_remove_empty_archetypes(quern_world *world, uint32_t *out_count)
{
    if (!quern__world_enter(world, "quern_world_remove_empty_archetypes")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, remove_empty(world, out_count));
}

/* ------------------------------------------------------------------------------- setting all archetypes */

/* Lets all queries match again later, since archetypes and their order change. */
static void forget_matches(quern__storage *storage)
{
    for (quern__query *query = storage->first_query; query != NULL; query = query->next)
        quern__query_forget_all(query);
    for (uint32_t i = 0; i < storage->components.list.count; i++)
        storage->components.list.items[i]->archetypes.count = 0;
}

void quern__world_set_archetypes(quern_world *world, quern__archetype *const *list, uint32_t count)
{
    quern__storage *storage = &world->storage;
    forget_removed(world, 0);
    forget_matches(storage);
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        if (storage->archetypes.items[i]->is_removed)
            quern__storage_remove_archetype(storage, storage->archetypes.items[i]);
    storage->archetypes.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (storage->numbered.items[list[i]->number] != list[i])
            quern__storage_register_archetype(storage, list[i]);
        quern__storage_append_archetype(storage, list[i]);
    }
    quern__reactions_sort_subscriptions(storage);
    if (count < QUERN__UNCROWDED_ARCHETYPES) storage->is_crowded = false;
    quern__structure_changed(storage);
}

/* --------------------------------------------------------------------------------------- at sync points */

/* An archetype is removed if it has been empty at two visits, at least this number of sync points apart. It may
 * have had rows in between, and is created again when needed. */
enum { LEAST_EMPTY_SYNCS = 8 };

static bool is_abandoned(quern__archetype *archetype, uint64_t now)
{
    if (archetype->chunk_count > 0 || quern__archetype_has_removed_copies(archetype)) {
        archetype->empty_since = 0;
        return false;
    }
    if (archetype->empty_since == 0) archetype->empty_since = now;
    return now - archetype->empty_since >= LEAST_EMPTY_SYNCS;
}

/* Visits the archetypes up to `end` and marks those to remove. Returns their number; *out_first: index of the
 * first. */
static uint32_t mark_abandoned(quern_world *world, uint32_t end, uint32_t *out_first)
{
    uint32_t count = 0;
    for (uint32_t i = end; i-- > world->next_visit;) {
        quern__archetype *archetype = world->storage.archetypes.items[i];
        archetype->is_removed = is_abandoned(archetype, world->visit_count);
        if (!archetype->is_removed) continue;
        *out_first = i;
        count++;
    }
    return count;
}

static void remove_next(quern_world *world)
{
    quern__storage *storage = &world->storage;
    world->visit_count++;
    /* A round ends at the last archetype. Archetypes that are appended later belong to the next round. */
    if (world->next_visit == 0 || world->next_visit >= storage->archetypes.count) world->next_visit = 1;
    const uint32_t left = storage->archetypes.count - world->next_visit;
    const bool is_last = world->empty_archetype_checks_per_sync >= left;
    uint32_t end = world->next_visit + (is_last ? left : world->empty_archetype_checks_per_sync);
    uint32_t first = 0;
    const uint32_t count = mark_abandoned(world, end, &first);
    if (count > 0) remove_marked(world, first);
    end -= count;
    world->next_visit = is_last ? 0 : end;
}

/* Removes all empty archetypes once there are more than twice as many archetypes as the last removal has left, or more
 * than half of those that were then possible. A removal takes time for every archetype, so this is a constant for each
 * one that was created in between. A world that was restored or loaded may have fewer than were left: they count as left
 * then. */
static void remove_after_growth(quern_world *world)
{
    const uint32_t count = world->storage.archetypes.count;
    if (world->visit_count > count) world->visit_count = count;
    const uint32_t left = (uint32_t)world->visit_count, half_free = (QUERN_MAX_ARCHETYPES - left) / 2;
    if (count - left > (left < half_free ? left : half_free)) (void)remove_all(world);
}

void quern__world_reclaim_archetypes(quern_world *world)
{
    if (world->empty_archetype_checks_per_sync > 0)
        remove_next(world);
    else
        remove_after_growth(world);
}
