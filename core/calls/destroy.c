/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls that destroy many entities, and the destruction of entities with targets, sources or names. */

#include "core/calls/destroy.h"

#include "core/query/matching.h"
#include "core/storage/change.h"

#include <quern/bulk.h>

/* ------------------------------------------------------------------------------------ prefetching
 *
 * In an unordered list, the record and the row of each entity are far in memory from those of the entity before. They
 * are prefetched a number of entities ahead: first the record, then the row, which the record locates. Entities
 * in the order of slots need no prefetching, since the processor predicts these accesses. */
enum { DESTROY_RECORDS_AHEAD = 16, DESTROY_ROWS_AHEAD = 8, NEAR_SLOTS = 4 };

static inline bool is_far(uint32_t slot, uint32_t slot_before)
{
    return slot - slot_before + NEAR_SLOTS > 2 * NEAR_SLOTS;
}

static inline void prefetch_record(const quern__storage *storage, uint32_t slot)
{
    QUERN__PREFETCH_WRITE(quern__entities_record(&storage->entities, slot));
}

/* Prefetches the handle and all values of a row. Destroying the entity overwrites them with the last row. */
static inline void prefetch_row(const quern__storage *storage, uint32_t slot)
{
    const quern__record *record = quern__entities_record(&storage->entities, slot);
    if (record->location == 0) return; /* destroyed already: the list contains it twice */
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    const quern__row row = quern__row_of(record->location);
    QUERN__PREFETCH_WRITE(quern__row_handle(archetype, row));
    for (uint32_t i = 0; i < archetype->column_count; i++) {
        const quern__column *column = &archetype->columns[i];
        QUERN__PREFETCH_WRITE(
            quern__column_value(column, quern__chunk_of(record->location), (uint32_t)row.index));
    }
}

/* -------------------------------------------------------------------------------- lists of entities */

static QUERN__SLOW_PATH quern_result fail_listed(const quern__storage *storage,
                                                 const quern_entity *entities, uint32_t i)
{
    const quern_result result = quern__entities_check(&storage->entities, entities[i]);
    return quern__in_call(quern__message_add_element(result, "element", i), "quern_entity_destroy_many");
}

/* Prefetches for entities later in the list; the first of `count` entities is destroyed next. */
static inline void prefetch_later(const quern__storage *storage, const quern_entity *entities,
                                  uint32_t count)
{
    const uint32_t record = quern_entity_index(
                       entities[count > DESTROY_RECORDS_AHEAD ? DESTROY_RECORDS_AHEAD : 0]),
                   row = quern_entity_index(entities[count > DESTROY_ROWS_AHEAD ? DESTROY_ROWS_AHEAD : 0]);
    if (count > DESTROY_RECORDS_AHEAD &&
        is_far(record, quern_entity_index(entities[DESTROY_RECORDS_AHEAD - 1])))
        prefetch_record(storage, record);
    if (count > DESTROY_ROWS_AHEAD && is_far(row, quern_entity_index(entities[DESTROY_ROWS_AHEAD - 1])))
        prefetch_row(storage, row);
}

static inline void destroy_living(quern__storage *storage, quern_entity entity, quern__record *record)
{
    quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    if (QUERN__LIKELY(archetype->is_plain && !quern__record_may_retire_or_wrap(record)))
        quern__row_leave_plain(storage, archetype, entity, record);
    else
        quern__row_leave(storage, entity);
}

/* Reserves copies of the removed entities for reactions. Entities that are in the list twice count twice. */
static quern_result reserve_listed(quern__storage *storage, const quern_entity *entities, uint32_t count)
{
    quern_result result = QUERN_OK;
    quern__leaving_begin(storage);
    for (uint32_t i = 0; i < count && result == QUERN_OK && storage->reactions->removed_count > 0; i++) {
        const quern__record *record =
            quern__entities_record(&storage->entities, quern_entity_index(entities[i]));
        result = quern__leaving_reserve(storage, quern__storage_archetype_of(storage, record), NULL, 1);
    }
    return result;
}

static void destroy_listed(quern__storage *storage, const quern_entity *entities, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        prefetch_later(storage, entities + i, count - i);
        quern__record *record = quern__entities_find(&storage->entities, entities[i]);
        if (QUERN__LIKELY(record != NULL)) /* NULL: the list contains the entity twice */
            destroy_living(storage, entities[i], record);
    }
}

/* ------------------------------------------------------------------------------- with cascades */

/* Destroys living entities, given by slots. */
static void destroy_slots(quern__storage *storage, const uint32_t *slots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (i + DESTROY_RECORDS_AHEAD < count &&
            is_far(slots[i + DESTROY_RECORDS_AHEAD], slots[i + DESTROY_RECORDS_AHEAD - 1]))
            prefetch_record(storage, slots[i + DESTROY_RECORDS_AHEAD]);
        if (i + DESTROY_ROWS_AHEAD < count &&
            is_far(slots[i + DESTROY_ROWS_AHEAD], slots[i + DESTROY_ROWS_AHEAD - 1]))
            prefetch_row(storage, slots[i + DESTROY_ROWS_AHEAD]);
        destroy_living(storage, quern__entity_of_slot(storage, slots[i]),
                       quern__entities_record(&storage->entities, slots[i]));
    }
}

/* Destroys the entities of a cascade that were not requested, in reverse order: sources before targets. */
static void destroy_cascaded(quern__storage *storage, quern__cascade *cascade)
{
    uint32_t *slots = cascade->slots.items + cascade->requested_count;
    const uint32_t count = cascade->slots.count - cascade->requested_count;
    for (uint32_t i = 0; i < count / 2; i++) {
        const uint32_t other = slots[count - 1 - i];
        slots[count - 1 - i] = slots[i];
        slots[i] = other;
    }
    destroy_slots(storage, slots, count);
}

/* Reserves copies of all entities of the cascade for reactions. */
static quern_result reserve_slots(quern__storage *storage, const quern__cascade *cascade)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0;
         i < cascade->slots.count && result == QUERN_OK && storage->reactions->removed_count > 0; i++) {
        const quern__record *record = quern__entities_record(&storage->entities, cascade->slots.items[i]);
        result = quern__leaving_reserve(storage, quern__storage_archetype_of(storage, record), NULL, 1);
    }
    return result;
}

/* Completes a cascade that lists the requested entities: finds the others, reserves all memory, detaches sources that
 * survive and removes all links. Rows are reserved last, since only they would have to be unreserved on failure. */
static quern_result close_and_unlink(quern__storage *storage, quern__cascade *cascade)
{
    quern__leaving_begin(storage);
    quern_result result = quern__cascade_close(cascade, storage);
    if (result == QUERN_OK) result = reserve_slots(storage, cascade);
    if (result == QUERN_OK) result = quern__cascade_detach(cascade, storage);
    if (result == QUERN_OK) quern__cascade_unlink(cascade, storage);
    return result;
}

quern_result quern__world_destroy_cascade(quern_world *world, const quern_entity *entities, uint32_t count)
{
    quern__storage *storage = &world->storage;
    quern__cascade *cascade = &storage->relations->cascade;
    quern_result result = quern__cascade_begin(cascade, storage);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        result = quern__cascade_add(cascade, storage, quern_entity_index(entities[i]));
    if (result == QUERN_OK) result = close_and_unlink(storage, cascade);
    if (result == QUERN_OK) {
        destroy_cascaded(storage, cascade);
        destroy_slots(storage, cascade->slots.items, cascade->requested_count);
    }
    quern__cascade_end(cascade);
    return result;
}

static quern_result destroy_many(quern_world *world, const quern_entity *entities, uint32_t count)
{
    static const char function[] = "quern_entity_destroy_many";
    if (world == NULL) return quern__fail_null(function, "world");
    if (count > 0 && entities == NULL) return quern__fail_null(function, "entities");
    quern_result result = quern__world_check_unlocked(world, function);
    if (result != QUERN_OK) return result;
    quern__storage *storage = &world->storage;
    for (uint32_t i = 0; i < count; i++)
        if (QUERN__UNLIKELY(quern__entities_find(&storage->entities, entities[i]) == NULL))
            return fail_listed(storage, entities, i);
    if (storage->has_attachments)
        return quern__in_call(quern__world_destroy_cascade(world, entities, count), function);
    result = reserve_listed(storage, entities, count);
    if (result != QUERN_OK) return quern__in_call(result, function);
    destroy_listed(storage, entities, count);
    return QUERN_OK;
}

quern_result quern_entity_destroy_many(quern_world *world, const quern_entity *entities, uint32_t count)
{
    if (!quern__world_enter(world, "quern_entity_destroy_many")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, destroy_many(world, entities, count));
}

/* ------------------------------------------------------------------------------------- whole matches */

static quern_result add_rows(quern__cascade *cascade, const quern__storage *storage,
                             const quern__archetype *archetype)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < archetype->chunk_count; i++) {
        const quern_entity *handles = quern__archetype_entities(archetype, archetype->slots[i].chunk);
        for (uint32_t row = 0; row < archetype->slots[i].row_count && result == QUERN_OK; row++)
            result = quern__cascade_add(cascade, storage, quern_entity_index(handles[row]));
    }
    return result;
}

/* Reserves copies of all rows of all matches for reactions. */
static quern_result reserve_matches(const quern_query *query)
{
    quern_result result = QUERN_OK;
    quern__leaving_begin(query->storage);
    for (uint32_t i = 0; i < query->matches.count && result == QUERN_OK; i++) {
        const quern__archetype *archetype = query->matches.items[i].archetype;
        result = quern__leaving_reserve(query->storage, archetype, NULL,
                                        (uint32_t)quern__archetype_row_count(archetype));
    }
    return result;
}

/* Destroys the entities of all matches. Returns their number. */
static uint64_t destroy_matches(const quern_query *query)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < query->matches.count; i++) {
        quern__archetype *archetype = query->matches.items[i].archetype;
        count += quern__archetype_row_count(archetype);
        quern__rows_leave_all(query->storage, archetype);
    }
    return count;
}

/* Destroys all matches and their cascade. If sources lost their target and survived, they may have moved to an
 * archetype that matches. The requested entities are then destroyed one by one instead of whole archetypes. */
static quern_result destroy_matches_and_cascade(const quern_query *query, uint64_t *out_count)
{
    quern__storage *storage = query->storage;
    quern__cascade *cascade = &storage->relations->cascade;
    quern_result result = quern__cascade_begin(cascade, storage);
    for (uint32_t i = 0; i < query->matches.count && result == QUERN_OK; i++)
        result = add_rows(cascade, storage, query->matches.items[i].archetype);
    if (result == QUERN_OK) result = close_and_unlink(storage, cascade);
    if (result == QUERN_OK) {
        *out_count = cascade->slots.count;
        destroy_cascaded(storage, cascade);
        if (cascade->detached.count > 0)
            destroy_slots(storage, cascade->slots.items, cascade->requested_count);
        else
            destroy_matches(query);
    }
    quern__cascade_end(cascade);
    return result;
}

static quern_result destroy_matching(quern_query *query, uint64_t *out_count)
{
    static const char function[] = "quern_entity_destroy_matching";
    uint64_t count = 0;
    quern_result result = quern__query_prepare(query, function);
    if (result != QUERN_OK) return result;
    if (query->storage->has_attachments)
        result = destroy_matches_and_cascade(query, &count);
    else
        result = reserve_matches(query);
    if (result == QUERN_OK && !query->storage->has_attachments) count = destroy_matches(query);
    if (result == QUERN_OK && out_count != NULL) *out_count = count;
    return quern__in_call(result, function);
}

quern_result quern_entity_destroy_matching(quern_query *query, uint64_t *out_count)
{
    quern_world *world = query != NULL ? query->world : NULL;
    if (!quern__world_enter(world, "quern_entity_destroy_matching")) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, destroy_matching(query, out_count));
}
