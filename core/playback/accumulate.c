/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Combining accumulated values, after the stages. Input: streams of accumulated values, and a world with all other
 * commands applied. Output: the values of entities, and dropped items. Applying cannot fail: preparing reserves the
 * memory for it. */
#include "core/playback/stages.h"

#include "core/reactions/reaction.h"
#include "core/storage/change.h"

enum {
    BATCH_ITEMS = 32, /* maximum; the records and values of a batch are prefetched together */
    /* consecutive slots in one partition, so that records in a cache line are not shared */
    PARTITION_SLOTS = 64,
    REASON_COUNT = 3 /* number of reasons to drop an item */
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
    quern__map_release(&it->unmatched, allocator);
    quern__release(allocator, it, sizeof *it, _Alignof(quern__accumulating));
}

/* --------------------------------------------------------------------------------------------- walking */

/* Consecutive items of the streams that are combined in the same way. */
typedef struct item_batch {
    const quern__accumulation *accumulation;
    uint32_t count; /* 0: no items are left */
    quern__accumulated *items[BATCH_ITEMS];
    /* record of each item's slot; is_found tells whether it is that of the item's entity */
    const quern__record *records[BATCH_ITEMS];
} item_batch;

/* A position in the gathered streams. After the last item, stream is the number of streams. */
typedef struct cursor {
    const quern__gathered *gathered;
    uint32_t stream, batch_number;
    quern__command_batch *batch;
    uint32_t item; /* index in the batch */
} cursor;

static cursor cursor_first(const quern__gathered *gathered)
{
    return (cursor){.gathered = gathered, .batch = gathered->streams.items[0].stream->first};
}

/* Advances to the next batch, if any. */
static void cursor_next_batch(cursor *at)
{
    at->item = 0;
    at->batch_number++;
    if (at->batch_number < at->gathered->streams.items[at->stream].stream->batch_count) {
        at->batch = quern__batch_next(at->batch);
        return;
    }
    at->batch_number = 0;
    if (++at->stream < at->gathered->streams.count)
        at->batch = at->gathered->streams.items[at->stream].stream->first;
}

/* Appends items of a command batch until `into` is full. item: the first of left_count items. Returns the
 * number of items read. */
static inline uint32_t append_items(item_batch *into, char *item, uint32_t left_count)
{
    const uint32_t item_bytes = into->accumulation->item_bytes, room = BATCH_ITEMS - into->count;
    const uint32_t count = left_count < room ? left_count : room;
    quern__accumulated **items = into->items + into->count;
    for (uint32_t i = 0; i < count; i++, item += item_bytes)
        items[i] = (quern__accumulated *)(void *)item;
    into->count += count;
    return count;
}

/* Like `append_items`, but appends only the items of the partition. */
static inline uint32_t append_of_partition(item_batch *into, char *item, uint32_t left_count,
                                           uint32_t partition, uint32_t partition_count)
{
    const uint32_t item_bytes = into->accumulation->item_bytes;
    uint32_t count = into->count, i = 0;
    for (; i < left_count && count < BATCH_ITEMS; i++, item += item_bytes) {
        quern__accumulated *next = (quern__accumulated *)(void *)item;
        into->items[count] = next;
        const uint32_t hash = quern_entity_index(next->entity) / PARTITION_SLOTS * 0x9E3779B1u >> 16;
        count += hash * partition_count >> 16 == partition;
    }
    into->count = count;
    return i;
}

/* Fills a batch with the next items of a partition. */
static inline void cursor_fill(cursor *at, uint32_t partition, uint32_t partition_count,
                               item_batch *out_batch)
{
    out_batch->count = 0;
    while (out_batch->count < BATCH_ITEMS && at->stream < at->gathered->streams.count) {
        quern__command_batch *batch = at->batch;
        const quern__accumulation *accumulation = batch->operation->accumulation;
        if (out_batch->count == 0)
            out_batch->accumulation = accumulation;
        else if (out_batch->accumulation->component.bits != accumulation->component.bits ||
                 out_batch->accumulation->combine.bits != accumulation->combine.bits)
            break; /* compared by value, since each recorder has its own accumulations */
        char *item = (char *)quern__batch_item(batch, at->item);
        const uint32_t left_count = batch->item_count - at->item;
        at->item += partition_count == 1
                        ? append_items(out_batch, item, left_count)
                        : append_of_partition(out_batch, item, left_count, partition, partition_count);
        if (at->item == batch->item_count) cursor_next_batch(at);
    }
}

/* Prefetches the records of a batch. */
static inline void fetch_records(const quern__entities *entities, item_batch *of)
{
    static const quern__record absent_record = {.location = 0};
    for (uint32_t i = 0; i < of->count; i++) {
        const uint32_t index = quern_entity_index(of->items[i]->entity);
        const quern__record *record = QUERN__LIKELY(index < entities->slot_count)
                                          ? quern__entities_record(entities, index)
                                          : &absent_record;
        QUERN__PREFETCH(record);
        of->records[i] = record;
    }
}

/* Whether the record belongs to the item's entity, and the entity is alive. */
static inline bool is_found(const quern__record *record, const quern__accumulated *item)
{
    return record->handle_high == item->entity.bits >> 32 && record->location != 0;
}

/* ------------------------------------------------------------------------------------------- preparing */

/* World tag for handles of entities that were dead before this sync point. It differs from the world's own tag
 * and from 0, the tag of provisional handles. */
static uint32_t tag_of_dead(const quern__storage *storage)
{
    const uint32_t world_tag = storage->components.first_bits >> 24;
    return world_tag == 1 ? 2 : world_tag ^ 1;
}

static quern_entity with_tag(quern_entity entity, uint32_t tag)
{
    return quern__entity_make(tag, quern_entity_generation(entity), quern_entity_index(entity));
}

/* Notes an entity that some reaction to sets does not match. archetype: NULL if it is created at this sync point. */
static bool note_unmatched(quern__accumulating *it, quern_entity entity, const quern__archetype *archetype)
{
    if (quern__map_find(&it->unmatched, entity.bits) != NULL) return true;
    if (!quern__map_reserve(&it->unmatched, &it->storage->allocator, it->unmatched.count + 1)) return false;
    quern__map_put(&it->unmatched, entity.bits, (uintptr_t)archetype);
    return true;
}

/* Notes the entities that some reaction to sets does not match before the commands. If commands make them match,
 * they are new to the reaction, and accumulated values must not count as set. Reserves room for those that commands
 * create. Returns false if out of memory. */
static bool note_all_unmatched(quern__accumulating *it)
{
    item_batch batch;
    const quern__storage *storage = it->storage;
    const quern__reactions *reactions = storage->reactions;
    uint32_t created_count = 0, component_index = UINT32_MAX, known_number = UINT32_MAX;
    bool may_miss = false, misses = false;
    cursor at = cursor_first(&it->gathered);
    for (cursor_fill(&at, 0, 1, &batch); batch.count > 0; cursor_fill(&at, 0, 1, &batch)) {
        if (batch.accumulation->component_index != component_index) {
            component_index = batch.accumulation->component_index;
            may_miss = quern__reactions_miss(reactions, component_index, NULL);
            known_number = UINT32_MAX;
        }
        if (!may_miss) continue;
        fetch_records(&storage->entities, &batch);
        for (uint32_t i = 0; i < batch.count; i++) {
            const quern__record *record = batch.records[i];
            const quern_entity entity = batch.items[i]->entity;
            created_count += quern_entity_is_provisional(entity);
            if (!is_found(record, batch.items[i])) continue;
            if (record->archetype_number != known_number) {
                known_number = record->archetype_number;
                misses = quern__reactions_miss(reactions, component_index,
                                               quern__storage_archetype_of(storage, record));
            }
            if (misses && !note_unmatched(it, entity, quern__storage_archetype_of(storage, record)))
                return false;
        }
    }
    return quern__map_reserve(&it->unmatched, &storage->allocator, it->unmatched.count + created_count);
}

/* Marks the items of entities that are dead now, or removes the marks of all items. */
static void mark_dead(const quern__accumulating *it, bool marks)
{
    item_batch batch;
    const quern__entities *entities = &it->storage->entities;
    const uint32_t world_tag = it->storage->components.first_bits >> 24, tag = tag_of_dead(it->storage);
    cursor at = cursor_first(&it->gathered);
    for (cursor_fill(&at, 0, 1, &batch); batch.count > 0; cursor_fill(&at, 0, 1, &batch)) {
        fetch_records(entities, &batch);
        for (uint32_t i = 0; i < batch.count; i++) {
            quern_entity *entity = &batch.items[i]->entity;
            if (!marks && quern_entity_world_tag(*entity) == tag) *entity = with_tag(*entity, world_tag);
            if (marks && !quern_entity_is_provisional(*entity) &&
                !is_found(batch.records[i], batch.items[i]))
                *entity = with_tag(*entity, tag);
        }
    }
}

quern_result quern__accumulating_prepare(quern__accumulating *it, quern__recorders recorders,
                                         const quern__gathered *commands, quern__drops *drops)
{
    const quern_result result = quern__commands_gather(&it->gathered, it->storage, recorders, true);
    if (result != QUERN_OK) return result;
    quern__command_listener *listener = it->storage->command_listener;
    if (QUERN__UNLIKELY(listener != NULL))
        listener->list(listener, &it->gathered, QUERN__KEY_AFTER_COMMANDS);
    const bool has_commands = commands->streams.count > 0;
    /* One entry per system and reason. Streams of one system are consecutive. */
    uint32_t system_count = 1;
    for (uint32_t i = 1; i < it->gathered.streams.count; i++)
        system_count += it->gathered.streams.items[i].stream->origin.system_number !=
                        it->gathered.streams.items[i - 1].stream->origin.system_number;
    it->max_drops = system_count * REASON_COUNT;
    quern__map_clear(&it->unmatched);
    if (!quern__array_reserve(&it->storage->allocator, drops, drops->count + it->max_drops) ||
        (has_commands && it->storage->reactions->count > 0 && !note_all_unmatched(it)))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to combine accumulated values");
    it->destroys = QUERN__MAY(commands->traits, DESTROYS);
    /* Items of entities that are dead now are marked: their drops are reported as DEAD, not DESTROYED. */
    if (it->destroys) mark_dead(it, true);
    return QUERN_OK;
}

void quern__accumulating_undo(const quern__accumulating *it)
{
    if (it->destroys) mark_dead(it, false);
}

/* --------------------------------------------------------------------------------- provisional handles */

/* Matches streams of commands with streams of accumulated values; both are in the order of keys. */
typedef struct creates {
    const quern__gathered *commands; /* NULL: no commands */
    const quern_entity *created;     /* handles of the creates of the current stream and all later ones */
    uint32_t stream;
} creates;

/* Finds the creates of the callback with this key, which must be higher than those of previous calls. Returns
 * their number and sets *out_created to their first handle. */
static uint32_t find_creates(creates *at, uint64_t key, const quern_entity **out_created)
{
    while (at->commands != NULL && at->stream < at->commands->streams.count) {
        const quern__stream *stream = at->commands->streams.items[at->stream].stream;
        if (stream->origin.key > key) break;
        *out_created = at->created;
        if (stream->origin.key == key) return stream->create_count;
        if (stream->create_count > 0) at->created += stream->create_count; /* NULL if nothing is created */
        at->stream++;
    }
    return 0;
}

static void remap_stream(quern__accumulating *it, const quern__stream *stream, quern_entity *created)
{
    quern__command_batch *batch = stream->first;
    for (uint32_t i = 0; i < stream->batch_count; i++) {
        if (i > 0) batch = quern__batch_next(batch);
        const bool is_missed = quern__reactions_miss(it->storage->reactions,
                                                     batch->operation->accumulation->component_index, NULL);
        quern__item *item = quern__batch_item(batch, 0);
        for (uint32_t k = 0; k < batch->item_count; k++, item = quern__item_next(item, batch->operation)) {
            if (quern_entity_is_provisional(item->entity)) {
                item->entity = created[quern_entity_index(item->entity)];
                if (QUERN__UNLIKELY(is_missed)) note_unmatched(it, item->entity, NULL); /* was reserved */
            }
            if (batch->operation->has_entity_fields)
                quern__item_remap(batch->operation, (char *)item, created);
        }
    }
}

/* ------------------------------------------------------------------------------------------- combining */

/* Offset of a component's values, cached for the archetype of the last entity. */
typedef struct value_position {
    const quern__storage *storage;
    uint32_t component_index;
    uint32_t known_number;           /* number of the last entity's archetype; UINT32_MAX: none */
    quern__column_position position; /* offset 0: the archetype lacks the component */
    bool has_listener;               /* some archetype of these entities tracks changes */
} value_position;

static QUERN__NO_INLINE void find_position(value_position *it, const quern__record *record)
{
    const quern__archetype *archetype = quern__storage_archetype_of(it->storage, record);
    it->known_number = record->archetype_number;
    it->position = quern__archetype_column_position(archetype, it->component_index);
    it->has_listener |= archetype->tracks_changes;
}

/* Finds the values to combine with the items of a batch, and prefetches them. Skips items without a value.
 * Returns the number of pairs. */
static inline uint32_t find_values(value_position *it, const item_batch *of, quern__pair *out_pairs)
{
    const uint32_t offset_bytes = of->accumulation->offset_bytes, batch_count = of->count;
    quern__column_position position = it->position;
    uint32_t known_number = it->known_number;
    quern__pair *next = out_pairs;
    for (uint32_t i = 0; i < batch_count; i++) {
        const quern__record *record = of->records[i];
        const quern__accumulated *item = of->items[i];
        if (QUERN__UNLIKELY(!is_found(record, item))) continue;
        if (QUERN__UNLIKELY(record->archetype_number != known_number)) {
            find_position(it, record);
            position = it->position;
            known_number = it->known_number;
        }
        if (QUERN__UNLIKELY(position.offset_lines == 0)) continue;
        next->value = quern__position_value(position, record->location);
        next->accumulated = (const char *)item + offset_bytes;
        QUERN__PREFETCH_WRITE(next++->value);
    }
    return (uint32_t)(next - out_pairs);
}

/* Reports to listeners that the values of these items are about to be written, or, if is_written, that they were.
 * unmatched: see quern__accumulating. */
static QUERN__SLOW_PATH void report_to_listeners(const value_position *it, const item_batch *of,
                                                 const quern__map *unmatched, bool is_written)
{
    for (uint32_t i = 0; i < of->count; i++) {
        const quern__record *record = of->records[i];
        if (!is_found(record, of->items[i])) continue;
        const quern__archetype *archetype = quern__storage_archetype_of(it->storage, record);
        if (!quern__archetype_has(archetype, it->component_index)) continue;
        const quern__archetype *source = archetype;
        const uint64_t *before =
            unmatched->count > 0 ? quern__map_find(unmatched, of->items[i]->entity.bits) : NULL;
        if (before != NULL) source = (const quern__archetype *)(uintptr_t)*before;
        if (is_written)
            quern__rows_written_from(archetype, source, record->location, 1, it->component_index);
        else
            quern__rows_before_write_from(archetype, source, record->location, 1, it->component_index);
    }
}

/* Combines the items in order. Returns the number of dropped items. */
static inline uint32_t combine_batch(value_position *it, const item_batch *of, const quern__map *unmatched)
{
    quern__pair pairs[BATCH_ITEMS];
    const quern__accumulation *accumulation = of->accumulation;
    if (QUERN__UNLIKELY(it->component_index != accumulation->component_index))
        *it = (value_position){.storage = it->storage,
                               .component_index = accumulation->component_index,
                               .known_number = UINT32_MAX};
    const uint32_t count = find_values(it, of, pairs);
    if (QUERN__UNLIKELY(it->has_listener)) report_to_listeners(it, of, unmatched, false);
    quern__combine_pairs(&accumulation->combiner, accumulation->type, pairs, count);
    if (QUERN__UNLIKELY(it->has_listener)) report_to_listeners(it, of, unmatched, true);
    return of->count - count;
}

/* Combines the items of a partition. The records of the next batch are prefetched while a batch is combined. */
static inline uint64_t combine_partition(const quern__accumulating *it, uint32_t partition,
                                         uint32_t partition_count)
{
    item_batch batches[2];
    const quern__entities *entities = &it->storage->entities;
    value_position position = {.storage = it->storage, .component_index = UINT32_MAX};
    cursor at = cursor_first(&it->gathered);
    uint64_t dropped_count = 0;
    cursor_fill(&at, partition, partition_count, &batches[0]);
    fetch_records(entities, &batches[0]);
    for (uint32_t turn = 0; batches[turn].count > 0; turn ^= 1) {
        item_batch *next = &batches[turn ^ 1];
        cursor_fill(&at, partition, partition_count, next);
        fetch_records(entities, next);
        dropped_count += combine_batch(&position, &batches[turn], &it->unmatched);
    }
    return dropped_count;
}

typedef struct combining {
    const quern__accumulating *it;
    uint32_t partition_count;
    uint64_t dropped_count;
} combining;

/* Relaxed: the sum is read only after all threads have finished. */
static void combine_partitions(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    combining *all = argument;
    for (uint32_t i = begin; i < end; i++) {
        const uint64_t dropped_count = combine_partition(all->it, i, all->partition_count);
        if (dropped_count > 0) __atomic_fetch_add(&all->dropped_count, dropped_count, __ATOMIC_RELAXED);
    }
}

/* Combines all items. executor NULL: on the calling thread. Returns the number of dropped items. */
static uint64_t combine(const quern__accumulating *it, const quern__executor *executor)
{
    if (executor == NULL) return combine_partition(it, 0, 1);
    combining all = {.it = it, .partition_count = executor->thread_count};
    it->storage->reactions->combines_values = true;
    quern__executor_run(executor, all.partition_count, 1, combine_partitions, &all);
    it->storage->reactions->combines_values = false;
    return all.dropped_count;
}

/* ------------------------------------------------------------------------------------------- drops */

/* Returns the handle that was recorded: the provisional one if the entity was created at this sync point. */
static quern_entity recorded_entity(const quern__stream *stream, quern_entity entity,
                                    const quern_entity *created, uint32_t created_count)
{
    for (uint32_t i = 0; i < created_count; i++)
        if (quern_entity_equal(created[i], entity)) return quern__entity_make(0, stream->origin.serial, i);
    return entity;
}

/* Whether the item was dropped, and why. Nothing has changed since combining, so the reason still holds. */
static bool was_dropped(const quern__accumulating *it, quern_entity entity, uint32_t component_index,
                        quern_drop_reason *out_reason)
{
    const quern__record *record = quern__entities_find(&it->storage->entities, entity);
    *out_reason = QUERN_DROP_NO_COMPONENT;
    if (record != NULL)
        return !quern__archetype_has(quern__storage_archetype_of(it->storage, record), component_index);
    *out_reason =
        quern_entity_world_tag(entity) == tag_of_dead(it->storage) ? QUERN_DROP_DEAD : QUERN_DROP_DESTROYED;
    return true;
}

/* Reports dropped items, in the order of streams. */
static void report_drops(const quern__accumulating *it, const quern__gathered *commands,
                         const quern_entity *all_created, quern__drops *drops, uint32_t first_drop)
{
    const uint32_t world_tag = it->storage->components.first_bits >> 24;
    creates at = {.commands = commands, .created = all_created};
    for (uint32_t i = 0; i < it->gathered.streams.count; i++) {
        const quern__stream *stream = it->gathered.streams.items[i].stream;
        const quern_entity *created = NULL;
        uint32_t created_count = find_creates(&at, stream->origin.key, &created);
        if (stream->create_count == 0) created_count = 0;
        quern__command_batch *batch = stream->first;
        uint64_t item_number = 0;
        for (uint32_t k = 0; k < stream->batch_count; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            const uint32_t component_index = batch->operation->accumulation->component_index;
            for (uint32_t n = 0; n < batch->item_count; n++, item_number++) {
                quern_entity entity = quern__batch_item(batch, n)->entity;
                quern_drop_reason reason;
                if (!was_dropped(it, entity, component_index, &reason)) continue;
                entity = reason == QUERN_DROP_DEAD
                             ? with_tag(entity, world_tag)
                             : recorded_entity(stream, entity, created, created_count);
                /* Without destroy commands, only new entities that were refused end at this sync point. */
                if (reason == QUERN_DROP_DESTROYED && !it->destroys && !quern_entity_is_provisional(entity))
                    reason = QUERN_DROP_DEAD;
                const quern__drop drop = {.system_number = stream->origin.system_number,
                                          .reason = reason,
                                          .count = 1,
                                          .first_key = stream->origin.key | QUERN__KEY_AFTER_COMMANDS,
                                          .first_item_number = item_number,
                                          .first_entity = entity};
                /* entries were reserved */
                quern__drops_add(drops, &it->storage->allocator, first_drop, &drop);
                quern__listener_drop(it->storage, &(quern__dropped_items){.key = drop.first_key,
                                                                          .first_number = item_number,
                                                                          .count = 1,
                                                                          .command_count = 1,
                                                                          .reason = reason});
            }
        }
    }
}

/* ---------------------------------------------------------------------------------------------- all */

void quern__accumulating_apply(quern__accumulating *it, const quern__gathered *commands,
                               const quern_entity *created, quern__drops *drops, uint32_t first_drop,
                               const quern__executor *executor)
{
    creates at = {.commands = commands, .created = created};
    for (uint32_t i = 0; i < it->gathered.streams.count; i++) {
        const quern__stream *stream = it->gathered.streams.items[i].stream;
        const bool has_handles = QUERN__MAY(stream->traits, HANDLES);
        const quern_entity *of_stream = NULL;
        if (find_creates(&at, stream->origin.key, &of_stream) > 0 &&
            (stream->create_count > 0 || has_handles))
            remap_stream(it, stream, (quern_entity *)(uintptr_t)of_stream);
    }
    it->dropped_count = combine(it, executor);
    if (it->dropped_count > 0) report_drops(it, commands, created, drops, first_drop);
}
