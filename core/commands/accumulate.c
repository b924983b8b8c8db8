/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* In: streams of accumulated values, and a world to which all commands have been applied. Out: the values
 * that entities have, and what was dropped. Applying may not fail: what it needs is reserved before. */
#include "core/commands/accumulate.h"

#include "core/commands/settle.h"
#include "core/storage/change.h"

enum {
    PART_ITEMS = 4096,
    BATCH_ITEMS = 16, /* whose records and values are asked for together */
    PARTITIONS_PER_THREAD = 8,
    MOST_PARTITIONS = 64,
    PARTITION_SLOTS = 64 /* neighbouring slots that go to one partition: their records share cache lines */
};

quern__accumulating *quern__accumulating_create(quern__storage *storage)
{
    quern__accumulating *it =
        quern__allocate(&storage->allocator, sizeof *it, _Alignof(quern__accumulating));
    if (it != NULL) *it = (quern__accumulating){.storage = storage};
    return it;
}

void quern__accumulating_destroy(quern__accumulating *it)
{
    if (it == NULL) return;
    const quern_allocator *allocator = &it->storage->allocator;
    quern__gathered_release(&it->gathered, allocator);
    quern__array_release(allocator, &it->parts);
    quern__array_release(allocator, &it->counts);
    quern__array_release(allocator, &it->sorted);
    quern__release(allocator, it, sizeof *it, _Alignof(quern__accumulating));
}

/* --------------------------------------------------------------------------------------------- walking */

/* An item of the gathered streams; stream: their count behind the last one. */
typedef struct cursor {
    const quern__gathered *gathered;
    uint32_t stream, run_number;
    quern__run *run;
    uint32_t item; /* in the run */
} cursor;

static cursor cursor_first(const quern__gathered *gathered)
{
    return (cursor){.gathered = gathered, .run = gathered->streams.items[0].stream->first};
}

/* To the next run that there is. */
static void cursor_next_run(cursor *at)
{
    at->item = 0;
    at->run_number++;
    if (at->run_number < at->gathered->streams.items[at->stream].stream->run_count) {
        at->run = quern__run_next(at->run);
        return;
    }
    at->run_number = 0;
    if (++at->stream < at->gathered->streams.count)
        at->run = at->gathered->streams.items[at->stream].stream->first;
}

/* Up to `most` items of one run, neighbours from *out_first on; 0 behind the last. */
static inline uint32_t cursor_take(cursor *at, uint32_t most, quern__item **out_first)
{
    if (at->stream == at->gathered->streams.count) return 0;
    const uint32_t left = at->run->item_count - at->item;
    const uint32_t count = left < most ? left : most;
    *out_first = quern__run_item(at->run, at->item);
    at->item += count;
    if (count == left) cursor_next_run(at);
    return count;
}

/* Up to `count` items, of as many runs as it takes. */
static inline uint32_t cursor_fill(cursor *at, quern__item **items, uint32_t count)
{
    uint32_t filled = 0;
    while (filled < count) {
        quern__item *item;
        const quern__operation *operation =
            at->stream < at->gathered->streams.count ? at->run->operation : NULL;
        const uint32_t taken = cursor_take(at, count - filled, &item);
        if (taken == 0) break;
        for (uint32_t i = 0; i < taken; i++, item = quern__item_next(item, operation))
            items[filled++] = item;
    }
    return filled;
}

/* ------------------------------------------------------------------------------------------- preparing */

/* Entities that were gone before this sync point are told from those that go with it. Where nothing has come
 * or gone since the values were recorded, all live. */
static void mark_dead(const quern__accumulating *it)
{
    for (uint32_t i = 0; i < it->gathered.streams.count; i++) {
        const quern__gathered_stream *sorted = &it->gathered.streams.items[i];
        quern__run *run = sorted->stream->first;
        for (uint32_t k = 0; k < sorted->stream->run_count && !sorted->is_located; k++) {
            if (k > 0) run = quern__run_next(run);
            quern__item *item = quern__run_item(run, 0);
            for (uint32_t n = 0; n < run->item_count; n++, item = quern__item_next(item, run->operation))
                if (!quern_entity_is_provisional(item->entity) &&
                    quern__entities_find(&it->storage->entities, item->entity) == NULL)
                    item->location = QUERN__ACCUMULATED_DEAD;
        }
    }
}

/* One entry for each system and reason, at most; the streams of a system are neighbours. */
static bool reserve_drops(quern__accumulating *it, quern__drops *drops)
{
    uint32_t system_count = 1;
    for (uint32_t i = 1; i < it->gathered.streams.count; i++)
        system_count += it->gathered.streams.items[i].stream->origin.source !=
                        it->gathered.streams.items[i - 1].stream->origin.source;
    it->most_drops = system_count * QUERN__ACCUMULATED_NOWHERE;
    return quern__array_reserve(&it->storage->allocator, drops, drops->count + it->most_drops);
}

static void list_parts(quern__accumulating *it)
{
    cursor at = cursor_first(&it->gathered);
    it->parts.count = 0;
    while (at.stream < it->gathered.streams.count) {
        quern__accumulated_part *part = &it->parts.items[it->parts.count++];
        *part = (quern__accumulated_part){
            .stream = at.stream, .run_number = at.run_number, .run = at.run, .item = at.item};
        quern__item *ignored;
        while (part->count < PART_ITEMS && at.stream < it->gathered.streams.count)
            part->count += cursor_take(&at, PART_ITEMS - part->count, &ignored);
    }
}

static bool reserve_shares(quern__accumulating *it, const quern__executor *executor)
{
    const quern_allocator *allocator = &it->storage->allocator;
    const uint32_t part_count = (uint32_t)((it->gathered.item_count + PART_ITEMS - 1) / PART_ITEMS);
    it->partition_count = executor->thread_count * PARTITIONS_PER_THREAD;
    if (it->partition_count > MOST_PARTITIONS) it->partition_count = MOST_PARTITIONS;
    if (!quern__array_reserve(allocator, &it->parts, part_count) ||
        !quern__array_reserve(allocator, &it->counts, part_count * it->partition_count) ||
        !quern__array_reserve(allocator, &it->sorted, (uint32_t)it->gathered.item_count))
        return false;
    list_parts(it);
    assert(it->parts.count == part_count);
    return true;
}

quern_result quern__accumulating_prepare(quern__accumulating *it, const quern_commands *recorders,
                                         uint32_t count, uint32_t stream_count, quern__drops *drops,
                                         const quern__executor *executor)
{
    const quern_result result =
        quern__commands_gather(&it->gathered, it->storage, recorders, count, stream_count, true);
    if (result != QUERN_OK) return result;
    it->is_shared = executor != NULL && it->gathered.item_count <= UINT32_MAX / 2;
    if (!reserve_drops(it, drops) || (it->is_shared && !reserve_shares(it, executor)))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to combine %llu accumulated values",
                           (unsigned long long)it->gathered.item_count);
    mark_dead(it);
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------- provisional handles */

/* Streams of commands and of what was accumulated beside them, in the order of their keys, go together. */
typedef struct creates {
    const quern__gathered *commands; /* NULL: there are none */
    const quern_entity *created;     /* of the stream that is looked at, and of those after it */
    uint32_t stream;
} creates;

/* The creates of the callback with this key, which come after those that were looked at before. Their number,
 * and the first of their handles. */
static uint32_t creates_find(creates *at, uint64_t key, const quern_entity **out_created)
{
    while (at->commands != NULL && at->stream < at->commands->streams.count) {
        const quern__stream *stream = at->commands->streams.items[at->stream].stream;
        if (stream->origin.key > key) break;
        *out_created = at->created;
        if (stream->origin.key == key) return stream->create_count;
        at->created += stream->create_count;
        at->stream++;
    }
    return 0;
}

static void remap_stream(const quern__stream *stream, quern_entity *created)
{
    quern__run *run = stream->first;
    for (uint32_t i = 0; i < stream->run_count; i++) {
        if (i > 0) run = quern__run_next(run);
        quern__item *item = quern__run_item(run, 0);
        for (uint32_t k = 0; k < run->item_count; k++, item = quern__item_next(item, run->operation)) {
            if (quern_entity_is_provisional(item->entity))
                item->entity = created[quern_entity_index(item->entity)];
            if (run->operation->has_entity_fields)
                quern__item_remap(run->operation, (char *)item, created);
        }
    }
}

static void remap_streams(const quern__accumulating *it, const quern__gathered *commands,
                          const quern_entity *all_created)
{
    creates at = {.commands = commands, .created = all_created};
    for (uint32_t i = 0; i < it->gathered.streams.count; i++) {
        const quern__stream *stream = it->gathered.streams.items[i].stream;
        const bool has_handles = (stream->traits & QUERN__TRAIT_NO_HANDLES) == 0;
        const quern_entity *created = NULL;
        if (creates_find(&at, stream->origin.key, &created) > 0 && (stream->create_count > 0 || has_handles))
            remap_stream(stream, (quern_entity *)(uintptr_t)created);
    }
}

/* ------------------------------------------------------------------------------------------- combining */

static inline void prefetch_records(const quern__entities *entities, quern__item *const *items,
                                    uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = quern_entity_index(items[i]->entity);
        if (index < entities->slot_count) __builtin_prefetch(quern__entities_record(entities, index));
    }
}

/* Where the value of an item goes, or NULL; then the item says why. */
static inline char *find_value(const quern__storage *storage, quern__item *item, uintptr_t *out_location)
{
    if (QUERN__UNLIKELY(item->location == QUERN__ACCUMULATED_DEAD)) return NULL;
    const quern__accumulation *accumulation = (const quern__accumulation *)item->location;
    const quern__record *record = quern__entities_find(&storage->entities, item->entity);
    char *value = NULL;
    if (record != NULL) {
        *out_location = record->location;
        value = quern__storage_value(quern__storage_archetype_of(storage, record), record->location,
                                     accumulation->component_index);
    }
    if (QUERN__UNLIKELY(value == NULL))
        item->location = record != NULL ? QUERN__ACCUMULATED_NOWHERE : QUERN__ACCUMULATED_DESTROYED;
    return value;
}

/* In order; how many came to nothing. */
static inline uint32_t combine_batch(const quern__storage *storage, quern__item *const *items,
                                     uint32_t count)
{
    char *values[BATCH_ITEMS];
    uintptr_t locations[BATCH_ITEMS];
    uint32_t dropped_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        values[i] = find_value(storage, items[i], &locations[i]);
        __builtin_prefetch(values[i], 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (QUERN__UNLIKELY(values[i] == NULL)) {
            dropped_count++;
            continue;
        }
        const quern__accumulation *accumulation = (const quern__accumulation *)items[i]->location;
        quern__combine_values(&accumulation->combiner, accumulation->type, values[i],
                              (const char *)items[i] + accumulation->offset_bytes);
        quern__rows_written(quern__chunk_of(locations[i])->archetype, locations[i], 1,
                            accumulation->component_index);
    }
    return dropped_count;
}

/* The records of a batch are asked for while the batch before it is combined. */
static uint64_t combine_all(const quern__accumulating *it)
{
    quern__item *batches[2][BATCH_ITEMS];
    const quern__entities *entities = &it->storage->entities;
    cursor at = cursor_first(&it->gathered);
    uint64_t dropped_count = 0;
    uint32_t count = cursor_fill(&at, batches[0], BATCH_ITEMS);
    prefetch_records(entities, batches[0], count);
    for (uint32_t turn = 0; count > 0; turn ^= 1) {
        const uint32_t next = cursor_fill(&at, batches[turn ^ 1], BATCH_ITEMS);
        prefetch_records(entities, batches[turn ^ 1], next);
        dropped_count += combine_batch(it->storage, batches[turn], count);
        count = next;
    }
    return dropped_count;
}

/* ---------------------------------------------------------------------------------------- sharing out */

static inline uint32_t partition_of(const quern__accumulating *it, const quern__item *item)
{
    return quern_entity_index(item->entity) / PARTITION_SLOTS % it->partition_count;
}

/* Counts the items of a part by partition; or, when `sorts`, puts each to its place. */
static inline void walk_part(const quern__accumulating *it, uint32_t number, bool sorts)
{
    const quern__accumulated_part *part = &it->parts.items[number];
    uint32_t *counts = it->counts.items + (size_t)number * it->partition_count;
    cursor at = {&it->gathered, part->stream, part->run_number, part->run, part->item};
    for (uint32_t left = part->count; left > 0;) {
        const quern__operation *operation = at.run->operation;
        quern__item *item;
        const uint32_t taken = cursor_take(&at, left, &item);
        left -= taken;
        for (uint32_t i = 0; i < taken; i++, item = quern__item_next(item, operation)) {
            uint32_t *count = &counts[partition_of(it, item)];
            if (sorts) it->sorted.items[*count] = item;
            ++*count;
        }
    }
}

static void count_parts(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const quern__accumulating *it = argument;
    for (uint32_t i = begin; i < end; i++) {
        memset(it->counts.items + (size_t)i * it->partition_count, 0,
               it->partition_count * sizeof *it->counts.items);
        walk_part(it, i, false);
    }
}

static void sort_parts(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const quern__accumulating *it = argument;
    for (uint32_t i = begin; i < end; i++)
        walk_part(it, i, true);
}

/* Counts become places: by partition, and within one by part. Returns in ends where each partition ends. */
static void place_parts(const quern__accumulating *it, uint32_t *ends)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < it->partition_count; i++) {
        for (uint32_t part = 0; part < it->parts.count; part++) {
            uint32_t *count = &it->counts.items[(size_t)part * it->partition_count + i];
            const uint32_t first = place;
            place += *count;
            *count = first;
        }
        ends[i] = place;
    }
}

typedef struct combining {
    const quern__accumulating *it;
    uint32_t ends[MOST_PARTITIONS];
    uint64_t dropped_counts[MOST_PARTITIONS];
} combining;

static uint64_t combine_sorted(const quern__accumulating *it, uint32_t begin, uint32_t end)
{
    const quern__entities *entities = &it->storage->entities;
    uint64_t dropped_count = 0;
    for (uint32_t first = begin; first < end; first += BATCH_ITEMS) {
        quern__item *const *items = it->sorted.items + first;
        const uint32_t left = end - first, count = left < BATCH_ITEMS ? left : BATCH_ITEMS;
        const uint32_t further = left - count;
        prefetch_records(entities, items + count, further < BATCH_ITEMS ? further : BATCH_ITEMS);
        dropped_count += combine_batch(it->storage, items, count);
    }
    return dropped_count;
}

static void combine_partitions(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    combining *all = argument;
    for (uint32_t i = begin; i < end; i++)
        all->dropped_counts[i] = combine_sorted(all->it, i > 0 ? all->ends[i - 1] : 0, all->ends[i]);
}

static uint64_t combine_shared(quern__accumulating *it, const quern__executor *executor)
{
    combining all = {.it = it};
    quern__executor_run(executor, it->parts.count, 1, count_parts, it);
    place_parts(it, all.ends);
    quern__executor_run(executor, it->parts.count, 1, sort_parts, it);
    quern__executor_run(executor, it->partition_count, 1, combine_partitions, &all);
    uint64_t dropped_count = 0;
    for (uint32_t i = 0; i < it->partition_count; i++)
        dropped_count += all.dropped_counts[i];
    return dropped_count;
}

/* ------------------------------------------------------------------------------------------- drops */

/* As it was recorded: of an entity that was created and went, the provisional handle. */
static quern_entity recorded_entity(const quern__stream *stream, quern_entity entity,
                                    const quern_entity *created, uint32_t created_count)
{
    for (uint32_t i = 0; i < created_count; i++)
        if (quern_entity_equal(created[i], entity)) return quern__entity_make(0, stream->origin.serial, i);
    return entity;
}

/* In the keys of streams, which are less: they were dropped after all commands. */
#define AFTER_COMMANDS (1ull << 63)

static void add_drop(quern__drops *drops, const quern_allocator *allocator, uint32_t first_drop,
                     const quern__stream *stream, uint64_t item_number, const quern__item *item,
                     quern_entity entity)
{
    static const quern_drop_reason reasons[] = {[QUERN__ACCUMULATED_DEAD] = QUERN_DROP_DEAD,
                                                [QUERN__ACCUMULATED_DESTROYED] = QUERN_DROP_DESTROYED,
                                                [QUERN__ACCUMULATED_NOWHERE] = QUERN_DROP_NO_COMPONENT};
    const quern__drop drop = {.source = stream->origin.source,
                              .reason = reasons[item->location],
                              .count = 1,
                              .first_key = stream->origin.key | AFTER_COMMANDS,
                              .first_item_number = item_number,
                              .first_entity = entity};
    quern__drops_add(drops, allocator, first_drop, &drop); /* there is room */
}

/* In the order of streams, by the marks that items bear. */
static void report_drops(const quern__accumulating *it, const quern__gathered *commands,
                         const quern_entity *all_created, quern__drops *drops, uint32_t first_drop)
{
    creates at = {.commands = commands, .created = all_created};
    for (uint32_t i = 0; i < it->gathered.streams.count; i++) {
        const quern__stream *stream = it->gathered.streams.items[i].stream;
        const quern_entity *created = NULL;
        uint32_t created_count = creates_find(&at, stream->origin.key, &created);
        if (stream->create_count == 0) created_count = 0;
        quern__run *run = stream->first;
        uint64_t item_number = 0;
        for (uint32_t k = 0; k < stream->run_count; k++) {
            if (k > 0) run = quern__run_next(run);
            const quern__item *item = quern__run_item(run, 0);
            for (uint32_t n = 0; n < run->item_count; n++, item_number++) {
                if (item->location <= QUERN__ACCUMULATED_NOWHERE)
                    add_drop(drops, &it->storage->allocator, first_drop, stream, item_number, item,
                             recorded_entity(stream, item->entity, created, created_count));
                item = quern__item_next(item, run->operation);
            }
        }
    }
}

/* ---------------------------------------------------------------------------------------------- all */

void quern__accumulating_apply(quern__accumulating *it, const quern__gathered *commands,
                               const quern_entity *created, quern__drops *drops, uint32_t first_drop,
                               const quern__executor *executor)
{
    remap_streams(it, commands, created);
    it->dropped_count = it->is_shared ? combine_shared(it, executor) : combine_all(it);
    if (it->dropped_count > 0) report_drops(it, commands, created, drops, first_drop);
}
