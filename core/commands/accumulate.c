/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* In: streams of accumulated values, and a world to which all commands have been applied. Out: the values
 * that entities have, and what was dropped. Applying may not fail: what it needs is reserved before. */
#include "core/commands/accumulate.h"

#include "core/commands/settle.h"
#include "core/storage/change.h"

enum {
    BATCH_ITEMS = 16,    /* whose records and values are asked for together */
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
    quern__release(allocator, it, sizeof *it, _Alignof(quern__accumulating));
}

/* --------------------------------------------------------------------------------------------- walking */

/* An item, and the entity that it is about. */
typedef struct entry {
    quern_entity entity;
    quern__item *item;
} entry;

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

/* The partition that an entity's items go to. */
static inline uint32_t partition_of(quern_entity entity, uint32_t partition_count)
{
    const uint32_t hash = quern_entity_index(entity) / PARTITION_SLOTS * 0x9E3779B1u >> 16;
    return hash * partition_count >> 16;
}

/* The next `count` items, at most, of a partition; of one alone, all. */
static inline uint32_t cursor_fill(cursor *at, uint32_t partition, uint32_t partition_count, entry *entries,
                                   uint32_t count)
{
    uint32_t filled = 0;
    while (filled < count && at->stream < at->gathered->streams.count) {
        const quern__operation *operation = at->run->operation;
        quern__item *item = quern__run_item(at->run, at->item);
        const uint32_t item_count = at->run->item_count;
        uint32_t i = at->item;
        for (; i < item_count && filled < count; i++, item = quern__item_next(item, operation)) {
            entries[filled] = (entry){.entity = item->entity, .item = item};
            filled += partition_count == 1 || partition_of(item->entity, partition_count) == partition;
        }
        at->item = i;
        if (i == item_count) cursor_next_run(at);
    }
    return filled;
}

static inline void prefetch_entries(const quern__entities *entities, const entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = quern_entity_index(entries[i].entity);
        if (index < entities->slot_count) __builtin_prefetch(quern__entities_record(entities, index));
    }
}

/* ------------------------------------------------------------------------------------------- preparing */

/* Nothing comes of the item. */
static void mark(quern__item *item, quern__accumulated why)
{
    *item = (quern__item){.entity = item->entity, .location = (uintptr_t)why};
}

/* Entities that were gone before this sync point are told from those that go with it, if any may. */
static void mark_dead(const quern__accumulating *it)
{
    entry entries[BATCH_ITEMS];
    const quern__entities *entities = &it->storage->entities;
    cursor at = cursor_first(&it->gathered);
    for (uint32_t count; (count = cursor_fill(&at, 0, 1, entries, BATCH_ITEMS)) > 0;) {
        prefetch_entries(entities, entries, count);
        for (uint32_t i = 0; i < count; i++)
            if (!quern_entity_is_provisional(entries[i].entity) &&
                quern__entities_find(entities, entries[i].entity) == NULL)
                mark(entries[i].item, QUERN__ACCUMULATED_DEAD);
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

quern_result quern__accumulating_prepare(quern__accumulating *it, const quern_commands *recorders,
                                         uint32_t count, uint32_t stream_count, bool destroys,
                                         quern__drops *drops)
{
    const quern_result result =
        quern__commands_gather(&it->gathered, it->storage, recorders, count, stream_count, true);
    if (result != QUERN_OK) return result;
    if (!reserve_drops(it, drops))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to combine accumulated values");
    it->destroys = destroys;
    if (destroys) mark_dead(it);
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------- provisional handles */

/* Streams of commands and of what was accumulated beside them, in the order of their keys, go together. */
typedef struct creates {
    const quern__gathered *commands; /* NULL: there are none */
    const quern_entity *created;     /* of the stream that is looked at, and of those after it */
    uint32_t stream;
} creates;

/* The creates of the callback with this key, which come after those that were looked at before. Their
 * number, and the first of their handles. */
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
            if (run->operation->has_entity_fields) quern__item_remap(run->operation, (char *)item, created);
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
        if (creates_find(&at, stream->origin.key, &created) > 0 &&
            (stream->create_count > 0 || has_handles))
            remap_stream(stream, (quern_entity *)(uintptr_t)created);
    }
}

/* ------------------------------------------------------------------------------------------- combining */

/* Where the value of an item goes. */
typedef struct goal {
    char *value;   /* NULL: nowhere */
    uintptr_t row; /* where the entity is */
    const quern__archetype *archetype;
} goal;

/* Where it is nowhere, the item says why. */
static inline goal find_goal(const quern__storage *storage, quern__item *item)
{
    goal found = {.value = NULL};
    if (QUERN__UNLIKELY(item->location == QUERN__ACCUMULATED_DEAD)) return found;
    const quern__accumulation *accumulation = (const quern__accumulation *)item->location;
    const quern__record *record = quern__entities_find(&storage->entities, item->entity);
    if (record != NULL) {
        found.row = record->location;
        found.archetype = quern__storage_archetype_of(storage, record);
        found.value = quern__storage_value(found.archetype, found.row, accumulation->component_index);
    }
    if (QUERN__UNLIKELY(found.value == NULL))
        mark(item, record != NULL ? QUERN__ACCUMULATED_NOWHERE : QUERN__ACCUMULATED_DESTROYED);
    return found;
}

/* In order; how many came to nothing. The headers of chunks are left alone: see chunk.h. */
static inline uint32_t combine_batch(const quern__storage *storage, const entry *entries, uint32_t count)
{
    goal goals[BATCH_ITEMS];
    uint32_t dropped_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        goals[i] = find_goal(storage, entries[i].item);
        __builtin_prefetch(goals[i].value, 1);
    }
    for (uint32_t i = 0; i < count; i++) {
        const goal *at = &goals[i];
        if (QUERN__UNLIKELY(at->value == NULL)) {
            dropped_count++;
            continue;
        }
        const quern__accumulation *accumulation = (const quern__accumulation *)entries[i].item->location;
        quern__combine_values(&accumulation->combiner, accumulation->type, at->value,
                              (const char *)entries[i].item + accumulation->offset_bytes);
        quern__rows_written(at->archetype, at->row, 1, accumulation->component_index);
    }
    return dropped_count;
}

/* The records of a batch are asked for while the batch before it is combined. */
static inline uint64_t combine_partition(const quern__accumulating *it, uint32_t partition,
                                         uint32_t partition_count)
{
    entry batches[2][BATCH_ITEMS];
    const quern__entities *entities = &it->storage->entities;
    cursor at = cursor_first(&it->gathered);
    uint64_t dropped_count = 0;
    uint32_t count = cursor_fill(&at, partition, partition_count, batches[0], BATCH_ITEMS);
    prefetch_entries(entities, batches[0], count);
    for (uint32_t turn = 0; count > 0; turn ^= 1) {
        entry *next = batches[turn ^ 1];
        const uint32_t next_count = cursor_fill(&at, partition, partition_count, next, BATCH_ITEMS);
        prefetch_entries(entities, next, next_count);
        dropped_count += combine_batch(it->storage, batches[turn], count);
        count = next_count;
    }
    return dropped_count;
}

typedef struct combining {
    const quern__accumulating *it;
    uint32_t partition_count;
    uint64_t dropped_count;
} combining;

/* Relaxed: a sum, which is read when all threads have been waited for. */
static void combine_partitions(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    combining *all = argument;
    for (uint32_t i = begin; i < end; i++) {
        const uint64_t dropped_count = combine_partition(all->it, i, all->partition_count);
        if (dropped_count > 0) __atomic_fetch_add(&all->dropped_count, dropped_count, __ATOMIC_RELAXED);
    }
}

/* executor NULL: on the caller. */
static uint64_t combine(const quern__accumulating *it, const quern__executor *executor)
{
    if (executor == NULL) return combine_partition(it, 0, 1);
    combining all = {.it = it, .partition_count = executor->thread_count};
    quern__executor_run(executor, all.partition_count, 1, combine_partitions, &all);
    return all.dropped_count;
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

static void add_drop(const quern__accumulating *it, quern__drops *drops, uint32_t first_drop,
                     const quern__stream *stream, uint64_t item_number, quern__accumulated why,
                     quern_entity entity)
{
    static const quern_drop_reason reasons[] = {[QUERN__ACCUMULATED_DEAD] = QUERN_DROP_DEAD,
                                                [QUERN__ACCUMULATED_DESTROYED] = QUERN_DROP_DESTROYED,
                                                [QUERN__ACCUMULATED_NOWHERE] = QUERN_DROP_NO_COMPONENT};
    /* where nothing is destroyed, only entities go that were created and refused */
    if (why == QUERN__ACCUMULATED_DESTROYED && !it->destroys && !quern_entity_is_provisional(entity))
        why = QUERN__ACCUMULATED_DEAD;
    const quern__drop drop = {.source = stream->origin.source,
                              .reason = reasons[why],
                              .count = 1,
                              .first_key = stream->origin.key | AFTER_COMMANDS,
                              .first_item_number = item_number,
                              .first_entity = entity};
    quern__drops_add(drops, &it->storage->allocator, first_drop, &drop); /* there is room */
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
                    add_drop(it, drops, first_drop, stream, item_number, (quern__accumulated)item->location,
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
    it->dropped_count = combine(it, executor);
    if (it->dropped_count > 0) report_drops(it, commands, created, drops, first_drop);
}
