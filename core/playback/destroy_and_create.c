/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Input: streams in order. Output: the changed world. Exceeded memory or limits are detected before the world
 * changes, and so are commands that must go through all stages. */
#include "core/playback/destroy_and_create.h"

#include "core/playback/apply.h"
#include "core/record/spawn.h"
#include "core/storage/change.h"

enum {
    SPAN_CREATES = 256,  /* maximum, so that threads can share long streams */
    SPANS_PER_CALL = 32, /* With fewer spans of a few creates each, fetching work would dominate. */
    BATCH_CREATES = 32,  /* maximum number filled together; the next batch is prefetched meanwhile */
};

void quern__destroy_and_create_release(quern__destroy_and_create *lists, const quern_allocator *allocator)
{
    quern__array_release(allocator, &lists->spans);
    lists->sequences.allocator = allocator;
    quern__sequences_release(&lists->sequences);
}

/* ----------------------------------------------------------------------------------- what is destroyed */

/* State of checking all commands. Only lists are written. */
typedef struct command_check {
    quern__destroy_and_create *lists;
    quern__resolved *resolved;
    const quern__storage *storage;
    bool is_applicable;
    bool is_out_of_memory;
    /* Rows that leave, listed so far: */
    uint32_t leaving_count;
    uintptr_t last;              /* latest row; 0: none */
    quern__archetype *archetype; /* archetype of the latest row */
    uint32_t archetype_first;    /* index of its first row that is not yet counted in a delta */
    uint32_t created_count;
} command_check;

/* Called after the last row of an archetype: adds its listed rows to its delta, and reserves the listeners'
 * room for them. */
static void count_leaving(command_check *it)
{
    if (it->archetype == NULL) return;
    quern__archetype_delta *delta = quern__resolved_add(it->resolved, it->storage, it->archetype);
    it->is_out_of_memory |= delta == NULL;
    const uint32_t count = it->leaving_count - it->archetype_first;
    if (delta != NULL) delta->leaving_count += count;
    if (quern__leaving_reserve(it->storage, it->archetype, NULL, count) != QUERN_OK)
        it->is_out_of_memory = true;
    it->archetype = NULL;
}

/* Called for a row in another chunk than the latest: checks the order of chunks, and begins a new archetype
 * if necessary. Returns false if the fast path does not apply. */
static QUERN__SLOW_PATH bool enter_chunk(command_check *it, uintptr_t location)
{
    const quern__chunk *chunk = quern__chunk_of(location);
    if (it->last != 0) {
        const quern__chunk *before = quern__chunk_of(it->last);
        it->is_applicable &= chunk->archetype == before->archetype
                                 ? chunk->index > before->index
                                 : chunk->archetype->index > before->archetype->index;
    }
    it->is_applicable &= !chunk->archetype->has_destroy;
    if (!it->is_applicable || chunk->archetype == it->archetype) return it->is_applicable;
    count_leaving(it);
    it->archetype = chunk->archetype;
    it->archetype_first = it->leaving_count;
    return true;
}

/* Lists a row that leaves. Returns false if the fast path does not apply. */
static inline bool list_leaving(command_check *it, uintptr_t location, uint32_t slot)
{
    if (quern__chunk_of(location) == quern__chunk_of(it->last))
        it->is_applicable &= location > it->last;
    else if (!enter_chunk(it, location))
        return false;
    it->last = location;
    it->resolved->gaps.items[it->leaving_count] = location;
    it->resolved->destroyed.items[it->leaving_count++] = slot;
    return true;
}

/* Lists the rows of a command for a view. They ascend, so only the first one is compared with the latest row. */
static QUERN__SLOW_PATH void list_view(command_check *it, quern__command_batch *batch, bool is_located)
{
    it->is_applicable &= quern__view_is_located(batch, is_located);
    const quern_entity *entities = quern__view_entities(batch);
    const quern__view_batch *view = quern__view_of(batch);
    if (!it->is_applicable || !list_leaving(it, view->location, quern_entity_index(entities[0]))) return;
    const quern__chunk *chunk = quern__chunk_of(view->location);
    uintptr_t *gaps = it->resolved->gaps.items + it->leaving_count;
    uint32_t *destroyed = it->resolved->destroyed.items + it->leaving_count;
    uint16_t rows[QUERN__BIT_COLUMN_MAX_ROWS];
    if (view->mask_word_count > 0) quern__view_list_rows(batch, rows);
    for (uint32_t i = 1; i < batch->item_count; i++) {
        *gaps++ = view->mask_word_count > 0 ? quern__location_make(chunk, rows[i]) : view->location + i;
        *destroyed++ = quern_entity_index(entities[i]);
    }
    it->leaving_count += batch->item_count - 1;
    it->last = quern__location_make(chunk, view->last_row);
}

static inline void list_destroys(command_check *it, quern__command_batch *batch, bool is_located)
{
    if (QUERN__UNLIKELY(batch->is_view)) {
        list_view(it, batch, is_located);
        return;
    }
    const quern__item *item = quern__batch_item(batch, 0);
    for (const quern__item *end = item + batch->item_count; item < end; item++) {
        uintptr_t location = item->location;
        if (QUERN__UNLIKELY(!is_located && location != 0)) {
            const quern__record *record = quern__entities_find(&it->storage->entities, item->entity);
            location = record != NULL ? record->location : 0;
        }
        if (QUERN__UNLIKELY(location == 0)) { /* created by these commands, or dead */
            it->is_applicable = false;
            return;
        }
        if (!list_leaving(it, location, quern_entity_index(item->entity))) return;
    }
}

/* ------------------------------------------------------------------------------------- what is created */

/* Begins a span at the i-th item of the batch. Returns NULL if out of memory. */
static QUERN__SLOW_PATH quern__create_span *add_span(command_check *it, quern__command_batch *batch,
                                                     uint32_t i, uint32_t stream_first)
{
    quern__destroy_and_create *lists = it->lists;
    const uint32_t root = quern__sequences_root(&lists->sequences, NULL);
    const uint32_t sequence = root != QUERN__SEQUENCE_NONE
                                  ? quern__sequences_extend(&lists->sequences, root, batch->operation)
                                  : QUERN__SEQUENCE_NONE;
    if (sequence == QUERN__SEQUENCE_NONE ||
        !quern__array_reserve(&it->storage->allocator, &lists->spans, lists->spans.count + 1)) {
        it->is_out_of_memory = true;
        return NULL;
    }
    lists->spans.items[lists->spans.count] = (quern__create_span){.batch = batch,
                                                                  .first_item = i,
                                                                  .operation = batch->operation,
                                                                  .sequence = sequence,
                                                                  .first_created = it->created_count,
                                                                  .stream_first = stream_first};
    return &lists->spans.items[lists->spans.count++];
}

/* Adds the creates of a batch to the latest span of the stream (NULL: none), or begins further spans. Returns
 * the latest span, or NULL if out of memory. */
static inline quern__create_span *list_creates(command_check *it, quern__command_batch *batch,
                                               quern__create_span *span, uint32_t stream_first)
{
    for (uint32_t i = 0, count; i < batch->item_count; i += count) {
        if (span == NULL || span->operation != batch->operation || span->count == SPAN_CREATES)
            span = add_span(it, batch, i, stream_first);
        if (span == NULL) return NULL;
        count = batch->item_count - i;
        if (count > SPAN_CREATES - span->count) count = SPAN_CREATES - span->count;
        span->count += count;
        it->created_count += count;
    }
    return span;
}

/* Finds the archetype of each span, and the ranks of its creates there. */
static quern_result resolve_creates(command_check *it, quern__storage *storage)
{
    quern__sequences *sequences = &it->lists->sequences;
    for (uint32_t i = 0; i < it->lists->spans.count; i++) {
        quern__create_span *span = &it->lists->spans.items[i];
        quern__sequence *sequence = &sequences->list.items[span->sequence];
        if (!sequence->is_resolved) {
            const quern_result result = quern__sequence_resolve(it->resolved, storage, sequences, sequence);
            if (result != QUERN_OK) return result;
        }
        if (sequence->is_refused) return it->resolved->refused_result;
        it->is_applicable &= !sequence->is_hooked; /* required components may have hooks */
        assert(sequence->toggle_count == 0);
        quern__archetype_delta *delta = quern__resolved_add(it->resolved, storage, sequence->target);
        if (delta == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
        span->rank = delta->created_count;
        delta->created_count += span->count;
    }
    sequences->archetypes_version = storage->archetypes_version;
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------------- looking */

static void check_stream(command_check *it, const quern__gathered_stream *gathered)
{
    const uint32_t stream_first = it->created_count;
    quern__create_span *span = NULL;
    quern__command_batch *batch = gathered->stream->first;
    for (uint32_t i = 0; i < gathered->stream->batch_count && it->is_applicable; i++) {
        if (i > 0) batch = quern__batch_next(batch);
        if (batch->operation == &quern__operation_destroy) {
            list_destroys(it, batch, gathered->is_located);
        } else if (QUERN__LIKELY(batch->operation->kind != QUERN__OPERATION_SPAWN)) {
            span = list_creates(it, batch, span, stream_first);
        } else {
            it->created_count += batch->item_count * quern__spawn_member_count(batch->operation);
            span = NULL; /* members have handles among the creates, so no span continues across them */
        }
    }
}

static void check_streams(command_check *it, const quern__gathered *gathered)
{
    for (uint32_t i = 0; i < gathered->streams.count && it->is_applicable && !it->is_out_of_memory; i++) {
        quern__gathered_fetch_ahead(gathered, i);
        check_stream(it, &gathered->streams.items[i]);
    }
    count_leaving(it);
    it->is_applicable &= !it->is_out_of_memory;
}

quern_result quern__destroy_and_create_prepare(quern__destroy_and_create *lists, quern__resolved *resolved,
                                               const quern__gathered *gathered, quern__storage *storage,
                                               bool *out_is_applicable)
{
    const quern_allocator *allocator = &storage->allocator;
    const bool spawns = (gathered->traits & QUERN__TRAIT_NO_SPAWNS) == 0;
    /* An upper bound. If a batch spawns, one item is several creates, so creates cannot be subtracted from
     * items. */
    const uint64_t destroy_count = gathered->item_count - (spawns ? 0 : gathered->create_count);
    command_check it = {.lists = lists,
                        .resolved = resolved,
                        .storage = storage,
                        .is_applicable = gathered->item_count <= UINT32_MAX};
    *out_is_applicable = false;
    if (!it.is_applicable) return QUERN_OK;
    lists->spans.count = 0;
    lists->sequences.allocator = allocator;
    quern__sequences_begin(&lists->sequences, storage->archetypes_version);
    quern__leaving_begin(storage);
    quern_result result = QUERN_OK;
    if (!quern__array_reserve(allocator, &resolved->gaps, (uint32_t)destroy_count) ||
        !quern__array_reserve(allocator, &resolved->destroyed, (uint32_t)destroy_count))
        it.is_out_of_memory = true;
    else
        check_streams(&it, gathered);
    if (it.is_applicable) result = resolve_creates(&it, storage);
    if (it.is_out_of_memory || result != QUERN_OK) quern__sequences_clear(&lists->sequences);
    if (it.is_out_of_memory || result == QUERN_ERROR_OUT_OF_MEMORY)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "no memory to list the destroys and creates of %u streams",
                           gathered->streams.count);
    /* Too many archetypes: the stages refuse the commands per entity. */
    if (!it.is_applicable || result != QUERN_OK) {
        quern__resolved_clear(resolved);
        return QUERN_OK;
    }
    resolved->created_count = it.created_count;
    resolved->destroyed_count = it.leaving_count;
    *out_is_applicable = true;
    return quern__resolved_reserve(resolved, gathered, storage);
}

/* -------------------------------------------------------------------------------------------- applying */

/* Consecutive new rows with the same sequence, in the order of creates. */
typedef struct create_batch {
    const quern__sequence *sequence;
    uint32_t first_created, rank, count;
    char *items[BATCH_CREATES];
    uintptr_t locations[BATCH_CREATES];
} create_batch;

typedef struct applying_creates {
    const quern__destroy_and_create *lists;
    quern__resolved *resolved;
    const quern__storage *storage;
} applying_creates;

/* Returns the fills of the sequence. NULL for an empty list, which may have no memory. */
static const quern__fill *fills_of(const applying_creates *all, const quern__sequence *sequence)
{
    return sequence->fill_count > 0 ? all->lists->sequences.fills.items + sequence->first_fill : NULL;
}

/* Finds the locations of new rows: first the gaps in order, then rows after the last one. */
static void find_locations(const quern__resolved *resolved, create_batch *it)
{
    const quern__archetype_delta *delta = quern__resolved_delta(resolved, it->sequence->target);
    uint32_t i = 0;
    for (; i < it->count && it->rank + i < delta->leaving_count; i++)
        it->locations[i] = resolved->gaps.items[delta->first_gap + it->rank + i];
    while (i < it->count) {
        const uint32_t row = delta->row_count + it->rank + i - delta->leaving_count;
        const uintptr_t first = quern__archetype_location(delta->archetype, row);
        const uint32_t left = delta->archetype->row_capacity - quern__location_row(first);
        for (uint32_t k = 0; k < left && i < it->count; k++)
            it->locations[i++] = first + k;
    }
}

/* size_bytes is a constant in most inlined copies. */
static inline void fill_rows(const create_batch *it, const quern__fill *fill, uint32_t size_bytes)
{
    for (uint32_t i = 0; i < it->count; i++)
        quern__fill_plain(fill, size_bytes,
                          quern__location_value(it->locations[i], fill->target_offset_bytes, size_bytes),
                          it->items[i]);
}

static void fill_column(const create_batch *it, const quern__fill *fill)
{
    switch (fill->size_bytes) {
    case 4:
        fill_rows(it, fill, 4);
        break;
    case 8:
        fill_rows(it, fill, 8);
        break;
    case 12:
        fill_rows(it, fill, 12);
        break;
    case 16:
        fill_rows(it, fill, 16);
        break;
    default:
        fill_rows(it, fill, fill->size_bytes);
        break;
    }
}

/* Prefetches the memory that a new row in this gap and its entity record will use. */
static inline void fetch_row(const applying_creates *all, const quern__sequence *sequence, uintptr_t place,
                             quern_entity handle)
{
    const quern__archetype *archetype = sequence->target;
    const quern__fill *fills = fills_of(all, sequence);
    for (uint32_t i = 0; i < sequence->fill_count; i++)
        QUERN__PREFETCH_WRITE(
            quern__location_value(place, fills[i].target_offset_bytes, fills[i].size_bytes));
    QUERN__PREFETCH_WRITE(
        quern__location_value(place, archetype->entities_offset_bytes, (uint32_t)sizeof(quern_entity)));
    QUERN__PREFETCH_WRITE(quern__entities_record(&all->storage->entities, quern_entity_index(handle)));
}

/* Prefetches the rows of the next batch while a batch is written, since gaps are scattered in memory. */
static void fetch_ahead(const applying_creates *all, const create_batch *it)
{
    const quern__resolved *resolved = all->resolved;
    const quern__archetype_delta *delta = quern__resolved_delta(resolved, it->sequence->target);
    uint32_t rank = it->rank + it->count, created = it->first_created + it->count;
    for (uint32_t i = 0;
         i < BATCH_CREATES && rank < delta->leaving_count && created < resolved->created.count;
         i++, rank++, created++)
        fetch_row(all, it->sequence, resolved->gaps.items[delta->first_gap + rank],
                  resolved->created.items[created]);
}

static void apply_batch(const applying_creates *all, create_batch *it)
{
    if (it->count == 0) return;
    const quern__resolved *resolved = all->resolved;
    find_locations(resolved, it);
    fetch_ahead(all, it);
    quern__rows_arrive_scattered(all->storage, it->sequence->target, it->locations,
                                 resolved->created.items + it->first_created, it->count);
    const quern__fill *fills = fills_of(all, it->sequence);
    for (uint32_t i = 0; i < it->sequence->fill_count; i++)
        fill_column(it, &fills[i]);
    it->first_created += it->count;
    it->rank += it->count;
    it->count = 0;
}

/* Adds the creates of a span to the batch, which has the same sequence. */
static void add_span_to_batch(const applying_creates *all, const quern__create_span *span, create_batch *it)
{
    assert(it->sequence != NULL);
    const quern__operation *operation = span->operation;
    quern_entity *created = all->resolved->created.items + span->stream_first;
    quern__command_batch *batch = span->batch;
    uint32_t left = span->count;
    for (uint32_t first = span->first_item;; first = 0) {
        const bool creates = batch->operation == operation;
        for (uint32_t i = first; creates && i < batch->item_count && left > 0; i++, left--) {
            char *item = (char *)quern__batch_item(batch, i);
            if (QUERN__UNLIKELY(operation->has_entity_fields)) quern__item_remap(operation, item, created);
            it->items[it->count++] = item;
            if (it->count == BATCH_CREATES) apply_batch(all, it);
        }
        if (left == 0) return;
        batch = quern__batch_next(batch);
    }
}

static void apply_spans(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const applying_creates *all = argument;
    create_batch it; /* Not initialised as a whole: most members are arrays that start empty. */
    it.sequence = NULL;
    it.count = it.first_created = it.rank = 0;
    for (uint32_t i = begin; i < end; i++) {
        const quern__create_span *span = &all->lists->spans.items[i];
        const quern__sequence *sequence = &all->lists->sequences.list.items[span->sequence];
        if (sequence != it.sequence || span->first_created != it.first_created + it.count) {
            apply_batch(all, &it);
            it.sequence = sequence;
            it.first_created = span->first_created;
            it.rank = span->rank;
        }
        add_span_to_batch(all, span, &it);
    }
    apply_batch(all, &it);
}

void quern__destroy_and_create_apply(const quern__destroy_and_create *lists, quern__resolved *resolved,
                                     const quern__gathered *gathered, quern__storage *storage,
                                     const quern__executor *executor)
{
    applying_creates all = {.lists = lists, .resolved = resolved, .storage = storage};
    quern__change_begin(resolved, gathered, storage);
    for (uint32_t i = 0; i < resolved->deltas.count; i++) {
        const quern__archetype_delta *delta = &resolved->deltas.items[i];
        if (delta->leaving_count > 0)
            quern__rows_leave_scattered(delta->archetype, resolved->gaps.items + delta->first_gap,
                                        delta->leaving_count);
    }
    quern__executor_run(executor, lists->spans.count, SPANS_PER_CALL, apply_spans, &all);
    quern__change_end(resolved, storage, executor);
}
