/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The fast paths of a sync point, which stages.h describes: values in place, one entity, destroys and creates, and
 * relating. Each finds commands that it does not support, and fails, before it changes anything. */
#include "core/playback/stages.h"

#include "core/reactions/hook.h"
#include "core/record/spawn.h"
#include "core/storage/change.h"

/* ------------------------------------------------------------------------------------ values in place */

/* Applies an item to the row at a location, or only checks it. Returns false if the entity lacks the component. */
typedef bool set_item(const quern__archetype *archetype, const quern__item *item, uintptr_t location,
                      const quern__operand *operand, bool writes);

static inline bool set_value(const quern__archetype *archetype, const quern__item *item, uintptr_t location,
                             const quern__operand *operand, bool writes)
{
    char *value = quern__storage_value(archetype, location, operand->component_index);
    if (value == NULL) return false;
    if (!writes) return true;
    quern__rows_before_write(archetype, location, 1, operand->component_index);
    quern__copy_value(value, (const char *)item + operand->offset_bytes, operand->size_bytes);
    quern__rows_written(archetype, location, 1, operand->component_index);
    return true;
}

static inline bool change_bit(const quern__archetype *archetype, uintptr_t location,
                              const quern__operand *operand, bool sets, bool writes)
{
    const uint32_t bit_column =
        quern__row_bits_find_column(archetype->row_bits, operand->row_flag, operand->component_index);
    if (bit_column == QUERN__NO_BIT_COLUMN) return false;
    if (writes) quern__row_enable(archetype, location, bit_column, !sets);
    return true;
}

static inline bool clear_bit(const quern__archetype *archetype, const quern__item *item, uintptr_t location,
                             const quern__operand *operand, bool writes)
{
    (void)item;
    return change_bit(archetype, location, operand, false, writes);
}

static inline bool set_bit(const quern__archetype *archetype, const quern__item *item, uintptr_t location,
                           const quern__operand *operand, bool writes)
{
    (void)item;
    return change_bit(archetype, location, operand, true, writes);
}

/* Always inlined, so that `set` is inlined for each kind and the loop over the items has no calls. */
QUERN__ALWAYS_INLINE bool walk_batch(const quern__storage *storage, quern__command_batch *batch,
                                     bool is_located, set_item *set, bool writes)
{
    assert(!batch->is_view);
    const quern__operation *operation = batch->operation;
    const quern__operand *operand = &operation->operands[0];
    quern__item *item = quern__batch_item(batch, 0);
    for (uint32_t i = 0; i < batch->item_count; i++, item = quern__item_next(item, operation)) {
        uintptr_t location = item->location;
        if (QUERN__UNLIKELY(!is_located)) {
            const quern__record *record = quern__entities_find(&storage->entities, item->entity);
            if (record == NULL) return false;
            location = record->location;
        }
        if (!set(quern__archetype_at(location), item, location, operand, writes)) return false;
    }
    return true;
}

/* Sets the values of a command for a view, or only checks it. Returns false if the rows lack the component or are
 * not located. */
static QUERN__SLOW_PATH bool set_view(quern__command_batch *batch, bool is_located, bool writes)
{
    if (!quern__view_is_located(batch, is_located)) return false;
    const quern__operand *operand = &batch->operation->operands[0];
    const quern__chunk *chunk = quern__view_chunk(batch);
    const quern__archetype *archetype = quern__chunk_archetype(chunk);
    const quern__view_items items = quern__view_items_of(batch);
    quern__view_range range = {.index = 0};
    while (quern__view_next_range(batch, &range)) {
        const uintptr_t first = quern__location_make(chunk, range.rows.first);
        char *values = quern__storage_value(archetype, first, operand->component_index);
        if (values == NULL) return false;
        if (!writes) return true; /* all rows have the same components */
        quern__rows_before_write(archetype, first, range.rows.count, operand->component_index);
        quern__view_copy_values(values, items, range.index, range.rows.count, operand->offset_bytes,
                                operand->size_bytes);
        quern__rows_written(archetype, first, range.rows.count, operand->component_index);
    }
    return true;
}

bool quern__set_values(const quern__storage *storage, quern__command_batch *batch, bool is_located,
                       bool writes)
{
    if (QUERN__UNLIKELY(batch->is_view)) return set_view(batch, is_located, writes);
    return writes ? walk_batch(storage, batch, is_located, set_value, true)
                  : walk_batch(storage, batch, is_located, set_value, false);
}

bool quern__clear_bits(const quern__storage *storage, quern__command_batch *batch, bool is_located,
                       bool writes)
{
    return walk_batch(storage, batch, is_located, clear_bit, writes);
}

bool quern__set_bits(const quern__storage *storage, quern__command_batch *batch, bool is_located,
                     bool writes)
{
    return walk_batch(storage, batch, is_located, set_bit, writes);
}

static inline bool walk_streams(const quern__gathered *gathered, const quern__storage *storage, bool writes)
{
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__gathered_stream *sorted = &gathered->streams.items[i];
        quern__command_batch *batch = sorted->stream->first;
        for (uint32_t k = 0; k < sorted->stream->batch_count; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            quern__set_function *set = quern__kind_calls_of[batch->operation->kind].set;
            if (!set(storage, batch, sorted->is_located, writes)) return false;
        }
    }
    return true;
}

bool quern__gathered_is_in_place(const quern__gathered *gathered, const quern__storage *storage)
{
    return walk_streams(gathered, storage, false);
}

void quern__gathered_apply_in_place(const quern__gathered *gathered, const quern__storage *storage)
{
    walk_streams(gathered, storage, true);
}

/* ----------------------------------------------------------------------------------------- one entity */

/* Maximum number of items for which the fast path is tried; more items rarely all concern one entity. */
enum { MOST_ITEMS = 16 };

/* Whether there are few commands, all on one entity, which only change its row. */
static bool are_on_one_entity(const quern__gathered *gathered)
{
    quern__command_batch *first = gathered->streams.items[0].stream->first;
    if (quern__command_kinds[first->operation->kind].merge_kind != QUERN__MERGE_ROW || first->is_view ||
        gathered->item_count > MOST_ITEMS)
        return false;
    if (gathered->item_count == 1) return true;
    const quern_entity entity = quern__batch_item(first, 0)->entity;
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__stream *stream = gathered->streams.items[i].stream;
        quern__command_batch *batch = stream->first;
        for (uint32_t k = 0; k < stream->batch_count; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            if (quern__command_kinds[batch->operation->kind].merge_kind != QUERN__MERGE_ROW ||
                batch->is_view)
                return false;
            const quern__item *item = quern__batch_item(batch, 0);
            for (uint32_t n = 0; n < batch->item_count;
                 n++, item = quern__item_next(item, batch->operation))
                if (!quern_entity_equal(item->entity, entity)) return false;
        }
    }
    return true;
}

/* Adds the items of a batch to the edit. edit->item is NULL before the first command. Returns false if a
 * command follows a destroy, or if out of memory. */
static bool merge_batch(quern__scratch *scratch, quern__command_batch *batch, quern__edit *edit)
{
    const quern__operation *operation = batch->operation;
    quern__item *item = quern__batch_item(batch, 0);
    for (uint32_t i = 0; i < batch->item_count; i++, item = quern__item_next(item, operation)) {
        if (edit->item == NULL) {
            edit->item = (char *)item;
            edit->sequence = quern__sequences_extend(&scratch->sequences, edit->sequence, operation);
            if (edit->sequence == QUERN__SEQUENCE_NONE) return false;
        } else if (scratch->sequences.list.items[edit->sequence].is_destroyed ||
                   !quern__edit_extend(scratch, edit, operation, (char *)item)) {
            return false;
        }
    }
    return true;
}

static bool merge(quern__scratch *scratch, const quern__gathered *gathered, quern__edit *edit)
{
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__stream *stream = gathered->streams.items[i].stream;
        quern__command_batch *batch = stream->first;
        for (uint32_t k = 0; k < stream->batch_count; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            if (!merge_batch(scratch, batch, edit)) return false;
        }
    }
    return true;
}

/* Does everything that can fail after merging. A sequence that is not completely resolved must not stay in the
 * tree. */
static bool resolve(quern__scratch *scratch, quern__resolved *resolved, quern__storage *storage,
                    quern__sequence *sequence)
{
    quern__archetype *source = sequence->source;
    if (!sequence->is_resolved &&
        quern__sequence_resolve(resolved, storage, &scratch->sequences, sequence) != QUERN_OK) {
        quern__sequences_clear(&scratch->sequences);
        return false;
    }
    if (sequence->is_refused) return false;
    quern__archetype *target = sequence->is_destroyed ? NULL : sequence->target;
    quern__leaving_begin(storage);
    return target == source || (quern__leaving_reserve(storage, source, target, 1) == QUERN_OK &&
                                (target == NULL || quern__rows_reserve(storage, target, 1) == QUERN_OK));
}

/* Fills the gap with the archetype's last row, unless it is the last row, and removes the last row. */
static void close_gap(quern__storage *storage, quern__archetype *archetype, uintptr_t gap)
{
    const quern__chunk_slot *slot = archetype->last_slot;
    const uintptr_t last = quern__row_location(quern__slot_row(slot, slot->row_count - 1));
    if (last != gap) quern__rows_relocate(storage, archetype, gap, last, 1);
    quern__rows_cut(storage, archetype, 1);
}

static QUERN__NO_INLINE bool apply_to_one(quern__merged *merged, quern__resolved *resolved,
                                          const quern__gathered *gathered, quern__storage *storage,
                                          const quern__executor *observer)
{
    const quern_entity entity = quern__batch_item(gathered->streams.items[0].stream->first, 0)->entity;
    const quern__record *record = quern__entities_find(&storage->entities, entity);
    if (record == NULL || merged->scratches.count == 0) return false;
    const uintptr_t location = record->location;
    quern__scratch *scratch = merged->scratches.items[0];
    /* if a later step fails, the end of the sync point clears the scratch */
    merged->used_scratch_count = 1;
    quern__sequences_begin(&scratch->sequences, storage->archetypes_version);
    quern__edit edit = {.sequence = quern__sequences_root(&scratch->sequences,
                                                          quern__storage_archetype_of(storage, record)),
                        .earlier = QUERN__EARLIER_NONE};
    if (edit.sequence == QUERN__SEQUENCE_NONE || !merge(scratch, gathered, &edit)) return false;
    quern__sequence *sequence = &scratch->sequences.list.items[edit.sequence];
    if (!resolve(scratch, resolved, storage, sequence)) return false;
    quern__executor_begin_stage(observer, QUERN__STAGE_APPLY);
    if (sequence->is_destroyed || sequence->target != sequence->source)
        quern__hooks_before_leaving(storage, sequence->source,
                                    sequence->is_destroyed ? NULL : sequence->target, location, 1);
    /* in the order of the stages: the row arrives before the gap closes, and the slot is freed last */
    storage->reactions->orders_by_row = true;
    if (sequence->is_destroyed) {
        const uint32_t slot = quern_entity_index(entity);
        quern__rows_leave(sequence->source, location, 1);
        close_gap(storage, sequence->source, location);
        quern__slots_free(storage, &slot, 1);
    } else if (sequence->target == sequence->source) {
        quern__edits_write(scratch, sequence, location, &edit, 1);
    } else {
        uint32_t count;
        const uintptr_t to = quern__rows_append(storage, sequence->target, 1, &count);
        quern__rows_move(storage, sequence->plan, to, location, 1);
        quern__edits_fill(scratch, sequence, to, &edit, 1);
        close_gap(storage, sequence->source, location);
    }
    storage->reactions->orders_by_row = false;
    quern__structure_changed(storage);
    resolved->destroyed_count = sequence->is_destroyed;
    scratch->sequences.archetypes_version = storage->archetypes_version;
    scratch->earlier_items.count = 0;
    merged->used_scratch_count = 0;
    return true;
}

bool quern__commands_apply_to_one(quern__merged *merged, quern__resolved *resolved,
                                  const quern__gathered *gathered, quern__storage *storage,
                                  const quern__executor *observer)
{
    return are_on_one_entity(gathered) && apply_to_one(merged, resolved, gathered, storage, observer);
}

/* ----------------------------------------------------------------- destroys and creates: what is destroyed */

enum {
    SPAN_CREATES = 256,  /* maximum, so that threads can share long streams */
    SPANS_PER_CALL = 32, /* With fewer spans of a few creates each, fetching work would dominate. */
    BATCH_CREATES = 32,  /* maximum number filled together; the next batch is prefetched meanwhile */
};

/* A create span: creates of one stream with the same operation, with only destroys between them. Spawned
 * instances end a span, since their members have handles in between. */
struct quern__create_span {
    quern__command_batch *batch; /* first batch */
    uint32_t first_item;         /* index of the first item in that batch */
    uint32_t count;              /* may extend over several batches */
    const quern__operation *operation;
    uint32_t sequence; /* index in `sequences` of the sequence with only this operation, on a new entity */
    uint32_t first_created; /* index of the first create, among the creates of all streams */
    uint32_t stream_first;  /* index of the stream's first create, among the creates of all streams */
    uint32_t rank;          /* rank of the first create, among all creates in the same archetype */
};

void quern__destroy_and_create_release(quern__destroy_and_create *lists, const quern_allocator *allocator)
{
    quern__array_release(allocator, &lists->spans);
    lists->sequences.allocator = allocator;
    quern__sequences_release(&lists->sequences);
}

/* State of checking all commands. Only lists are written. */
typedef struct command_check {
    quern__destroy_and_create *lists;
    quern__resolved *resolved;
    const quern__storage *storage;
    bool is_applicable;
    bool is_out_of_memory;
    /* Rows that leave, listed so far: */
    uint32_t leaving_count;
    uintptr_t last;  /* latest row; 0: none */
    uintptr_t chunk; /* first row of its chunk, which has chunk_rows rows */
    uint32_t chunk_rows;
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
    if (delta != NULL) {
        delta->first_gap = it->archetype_first;
        delta->leaving_count += count;
    }
    if (quern__leaving_reserve(it->storage, it->archetype, NULL, count) != QUERN_OK)
        it->is_out_of_memory = true;
    it->archetype = NULL;
}

/* Called for a row in another chunk than the latest: checks the order of chunks, and begins a new archetype
 * if necessary. Returns false if the fast path does not apply. */
static QUERN__SLOW_PATH bool enter_chunk(command_check *it, uintptr_t location)
{
    quern__archetype *archetype = quern__archetype_at(location);
    if (it->last != 0) {
        const quern__archetype *before = quern__archetype_at(it->last);
        it->is_applicable &= archetype == before ? quern__chunk_index_at(&archetype->shape, location) >
                                                       quern__chunk_index_at(&archetype->shape, it->last)
                                                 : archetype->index > before->index;
    }
    it->chunk = (uintptr_t)quern__chunk_of(&archetype->shape, location);
    it->chunk_rows = archetype->shape.row_capacity;
    it->is_applicable &= !archetype->has_destroy && !archetype->has_hooks;
    if (!it->is_applicable || archetype == it->archetype) return it->is_applicable;
    count_leaving(it);
    it->archetype = archetype;
    it->archetype_first = it->leaving_count;
    return true;
}

/* Lists a row that leaves. Returns false if the fast path does not apply. */
static inline bool list_leaving(command_check *it, uintptr_t location, uint32_t slot)
{
    if (location - it->chunk < it->chunk_rows)
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
    const quern__chunk *chunk = quern__view_chunk(batch);
    uintptr_t *gaps = it->resolved->gaps.items + it->leaving_count;
    uint32_t *destroyed = it->resolved->destroyed.items + it->leaving_count;
    uint16_t rows[QUERN__BIT_COLUMN_MAX_ROWS];
    if (view->mask_word_count > 0) quern__view_list_rows(batch, rows);
    for (uint32_t i = 1; i < batch->item_count; i++) {
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): the mask has item_count bits */
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

/* ------------------------------------------------------------------- destroys and creates: what is created */

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

/* ------------------------------------------------------------------------ destroys and creates: checking */

static void list_destroys_and_creates(command_check *it, const quern__gathered *gathered)
{
    for (uint32_t i = 0; i < gathered->streams.count && it->is_applicable && !it->is_out_of_memory; i++) {
        quern__gathered_fetch_ahead(gathered, i);
        const quern__gathered_stream *checked = &gathered->streams.items[i];
        const uint32_t stream_first = it->created_count;
        quern__create_span *span = NULL;
        quern__command_batch *batch = checked->stream->first;
        for (uint32_t k = 0; k < checked->stream->batch_count && it->is_applicable; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            if (batch->operation == &quern__operation_destroy) {
                list_destroys(it, batch, checked->is_located);
            } else if (batch->operation->kind == QUERN__OPERATION_CREATE) {
                span = list_creates(it, batch, span, stream_first);
            } else {
                const bool clones = batch->operation == &quern__operation_clone;
                it->created_count +=
                    batch->item_count * (clones ? 1 : quern__spawn_member_count(batch->operation));
                span = NULL; /* members have handles among the creates, so no span continues across them */
            }
        }
        if (it->is_applicable) /* the other members of copies have the last handles of the stream */
            it->created_count = stream_first + checked->stream->create_count;
    }
    count_leaving(it);
    it->is_applicable &= !it->is_out_of_memory;
}

quern_result quern__destroy_and_create_prepare(quern__destroy_and_create *lists, quern__resolved *resolved,
                                               const quern__gathered *gathered, quern__storage *storage,
                                               bool *out_is_applicable)
{
    const quern_allocator *allocator = &storage->allocator;
    const bool spawns = QUERN__MAY(gathered->traits, SPAWNS);
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
        list_destroys_and_creates(&it, gathered);
    if (it.is_applicable) result = resolve_creates(&it, storage);
    if (it.is_out_of_memory || result != QUERN_OK) quern__sequences_clear(&lists->sequences);
    if (it.is_out_of_memory || result == QUERN_ERROR_OUT_OF_MEMORY)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "no memory to list the destroys and creates of %u streams",
                           gathered->streams.count);
    /* Too many archetypes: the stages refuse the commands per entity. */
    if (!it.is_applicable || result != QUERN_OK) {
        for (uint32_t i = 0; i < resolved->deltas.count; i++)
            resolved->deltas.items[i].leaving_count = resolved->deltas.items[i].created_count = 0;
        resolved->refused_result = QUERN_OK;
        return QUERN_OK;
    }
    resolved->created_count = it.created_count;
    resolved->destroyed_count = it.leaving_count;
    *out_is_applicable = true;
    return quern__resolved_reserve(resolved, gathered, storage, true);
}

/* ------------------------------------------------------------------------ destroys and creates: applying */

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
        const uint32_t row = quern__delta_row_count(delta) + it->rank + i - delta->leaving_count;
        const uintptr_t first = quern__archetype_location(delta->archetype, row);
        const uint32_t left =
            delta->archetype->shape.row_capacity - quern__location_row(&delta->archetype->shape, first);
        for (uint32_t k = 0; k < left && i < it->count; k++)
            it->locations[i++] = first + k;
    }
}

/* size_bytes is a constant in most inlined copies. */
static inline void fill_rows(const create_batch *it, const quern__fill *fill, uint32_t size_bytes)
{
    const quern__run_shape *shape = &it->sequence->target->shape;
    for (uint32_t i = 0; i < it->count; i++)
        quern__fill_plain(
            fill, size_bytes,
            quern__location_value(shape, it->locations[i], fill->target_offset_bytes, size_bytes),
            it->items[i]);
}

static void fill_column(const create_batch *it, const quern__fill *fill)
{
    QUERN__CALL_BY_SIZE(fill->size_bytes, fill_rows, it, fill);
}

/* Prefetches the rows and entity records of the next batch while a batch is written, since gaps are scattered in
 * memory. */
static void fetch_next_batch(const applying_creates *all, const create_batch *it)
{
    const quern__resolved *resolved = all->resolved;
    const quern__archetype *archetype = it->sequence->target;
    const quern__archetype_delta *delta = quern__resolved_delta(resolved, archetype);
    const quern__fill *fills = fills_of(all, it->sequence);
    uint32_t rank = it->rank + it->count, created = it->first_created + it->count;
    for (uint32_t i = 0;
         i < BATCH_CREATES && rank < delta->leaving_count && created < resolved->created.count;
         i++, rank++, created++) {
        const quern__run_place place =
            quern__run_place_of(&archetype->shape, resolved->gaps.items[delta->first_gap + rank]);
        const uint32_t slot = quern_entity_index(resolved->created.items[created]);
        for (uint32_t k = 0; k < it->sequence->fill_count; k++)
            QUERN__PREFETCH_WRITE(
                quern__run_value(place, fills[k].target_offset_bytes, fills[k].size_bytes));
        QUERN__PREFETCH_WRITE(
            quern__run_value(place, archetype->entities_offset_bytes, (uint32_t)sizeof(quern_entity)));
        QUERN__PREFETCH_WRITE(quern__entities_record(&all->storage->entities, slot));
    }
}

static void apply_batch(const applying_creates *all, create_batch *it)
{
    if (it->count == 0) return;
    const quern__resolved *resolved = all->resolved;
    find_locations(resolved, it);
    fetch_next_batch(all, it);
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

/* ------------------------------------------------------------------------------------------- relating */

/* Returns the component of the batch's relation if it relates or unrelates entities one by one, otherwise
 * UINT32_MAX. */
static uint32_t component_of(const quern__command_batch *batch)
{
    const quern__operation *operation = batch->operation;
    const bool relates =
        operation->kind == QUERN__OPERATION_RELATE || operation->kind == QUERN__OPERATION_UNRELATE;
    return relates && !batch->is_view ? operation->operands[0].component_index : UINT32_MAX;
}

static quern_entity target_of(const quern__item *item, const quern__operation *operation)
{
    quern_entity target;
    memcpy(&target, (const char *)item + operation->operands[0].offset_bytes, sizeof target);
    return target;
}

/* Returns whether the first entity of a batch is in an archetype with listeners, or with hooks that a move of its row
 * would call: the first command would move the row to another archetype if no command preceded it. All stages run then.
 * quern__tier_moves_prepare finds such archetypes of all entities, but only after all links have changed, and these
 * changes would have to be reverted. */
static bool is_observed(quern__command_batch *batch, const quern__relation *relation,
                        const quern__storage *storage)
{
    const quern__item *item = quern__batch_item(batch, 0);
    const quern__record *record = quern__entities_find(&storage->entities, item->entity);
    if (record == NULL) return false;
    const quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    if (archetype->first_listener != NULL) return true;
    if (archetype->is_plain) return false;
    const quern__link_node *link = quern__links_find(&relation->links, quern_entity_index(item->entity));
    uint32_t tier = 0;
    if (batch->operation->kind == QUERN__OPERATION_RELATE) {
        const quern_entity target = target_of(item, batch->operation);
        tier = quern__relation_source_level(relation, quern_entity_index(target)) + 1;
    }
    return tier != (link != NULL ? quern__link_tier(link) : 0);
}

/* Returns the relation of all commands, or NULL if they are not all of the supported kinds and in one relation, or if
 * the first entity of a batch is observed. */
static quern__relation *relation_of_all(const quern__gathered *gathered, const quern__storage *storage)
{
    const uint32_t component = component_of(gathered->streams.items[0].stream->first);
    if (component == UINT32_MAX) return NULL;
    quern__relation *relation = storage->components.list.items[component]->managed.relation;
    if (relation->is_many || quern__relation_has_values(relation)) return NULL;
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__stream *stream = gathered->streams.items[i].stream;
        quern__command_batch *batch = stream->first;
        for (uint32_t k = 0; k < stream->batch_count; k++) {
            if (k > 0) batch = quern__batch_next(batch);
            if (component_of(batch) != component || is_observed(batch, relation, storage)) return NULL;
        }
    }
    return relation;
}

/* ------------------------------------------------------------------------------------ relating: links */

/* Adds a page of links for the slot, unless the slot belongs to an entity that no longer exists. */
static bool reserve_page(const quern__play_walk *it, quern__relation *relation, quern_entity entity)
{
    const quern__storage *storage = it->relating->storage;
    const uint32_t slot = quern_entity_index(entity);
    return slot >= storage->entities.slot_count ||
           quern__links_reserve(&relation->links, &storage->allocator, slot);
}

/* Reserves pages of links for all items of a batch. Returns false if out of memory. */
static bool reserve_pages(const quern__play_walk *it, quern__relation *relation)
{
    const quern__operation *operation = it->batch->operation;
    const bool relates = operation->kind == QUERN__OPERATION_RELATE;
    const quern__item *item = quern__batch_item(it->batch, 0);
    bool has_room = true;
    for (uint32_t i = 0; i < it->batch->item_count && has_room; i++) {
        has_room = reserve_page(it, relation, item->entity) &&
                   (!relates || reserve_page(it, relation, target_of(item, operation)));
        item = quern__item_next(item, operation);
    }
    return has_room;
}

/* Prefetches what playing relate commands soon after the i-th one reads. The slots of entities that no longer exist may
 * have no records. */
static inline void fetch_next_relate(const quern__play_walk *it, const quern__relation *relation,
                                     uint32_t i)
{
    const quern__operation *operation = it->batch->operation;
    const quern__entities *entities = &it->relating->storage->entities;
    if (it->batch->item_count - i <= QUERN__LINKS_AHEAD) return;
    const quern__item *item = quern__batch_item(it->batch, i + QUERN__LINKS_AHEAD);
    uint32_t source = quern_entity_index(item->entity),
             target = quern_entity_index(target_of(item, operation));
    if (source < entities->slot_count && target < entities->slot_count) {
        QUERN__PREFETCH(quern__entities_record(entities, source));
        QUERN__PREFETCH(quern__entities_record(entities, target));
        quern__links_fetch_pair(&relation->links, source, target);
    }
    item = quern__batch_item(it->batch, i + QUERN__LINKS_AROUND_AHEAD);
    source = quern_entity_index(item->entity);
    target = quern_entity_index(target_of(item, operation));
    if (source < entities->slot_count && target < entities->slot_count)
        quern__links_fetch_around(&relation->links, relation->is_ordered, source, target);
}

/* Sets or removes (QUERN__SLOT_NONE) the target of the i-th item's entity, or drops the command. */
static void change_target(const quern__play_walk *it, quern__relation *relation, const quern__item *item,
                          uint32_t i, uint32_t source, uint32_t target)
{
    quern__relating *relating = it->relating;
    quern__storage *storage = relating->storage;
    const uint64_t count = it->batch->operation->command_count;
    if (quern__links_at(&relation->links, source)->target == target) return;
    if (target != QUERN__SLOT_NONE && quern__would_be_cycle(relation, source, target))
        quern__play_drop(it, item, i, QUERN_DROP_CYCLE, count);
    else if (!quern__naming_allows_target(storage, relation, source, target))
        quern__play_drop(it, item, i, QUERN_DROP_SIBLING_NAME_TAKEN, count);
    else if (quern__link_log_set_target(storage, relation, source, target, NULL) != QUERN_OK)
        relating->is_out_of_memory = true;
}

/* Changes the links by the commands of a batch, in order. */
static void play_items(const quern__play_walk *it, quern__relation *relation)
{
    const quern__operation *operation = it->batch->operation;
    const bool relates = operation->kind == QUERN__OPERATION_RELATE;
    const quern__item *item = quern__batch_item(it->batch, 0);
    for (uint32_t i = 0; i < it->batch->item_count && !it->relating->is_out_of_memory; i++) {
        if (relates) fetch_next_relate(it, relation, i);
        const uint32_t source = quern__play_find_slot(it, item->entity);
        const uint32_t target =
            relates ? quern__play_find_slot(it, target_of(item, operation)) : QUERN__SLOT_NONE;
        if (source == QUERN__NOTE_NONE)
            quern__play_drop(it, item, i, QUERN_DROP_DEAD, operation->command_count);
        else if (relates && target == QUERN__NOTE_NONE)
            quern__play_drop(it, item, i, QUERN_DROP_TARGET_DEAD, operation->command_count);
        else
            change_target(it, relation, item, i, source, target);
        item = quern__item_next(item, operation);
    }
}

/* Changes the links by the commands of one stream. Returns false if out of memory. */
static bool play_stream(quern__relating *relating, quern__relation *relation,
                        const quern__gathered_stream *gathered, uint32_t index)
{
    const quern__stream *stream = gathered->stream;
    quern__play_walk it = {
        .relating = relating, .gathered = gathered, .stream = index, .batch = stream->first};
    for (uint32_t i = 0; i < stream->batch_count; i++) {
        if (i > 0) {
            it.number += it.batch->item_count;
            it.batch = quern__batch_next(it.batch);
        }
        if (!reserve_pages(&it, relation)) return false;
        play_items(&it, relation);
        if (relating->is_out_of_memory) return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------- relating: path */

/* Adds the dropped commands to the drops of merging, and reserves entries for them. The end of the sync point marks the
 * sequences of a used scratch as current, so outdated ones are cleared first. Returns false if out of memory, or if no
 * sync point has made a scratch for drops yet. */
static bool reserve_and_count_drops(const quern__relating *relating, quern__merged *merged,
                                    const quern__resolved *resolved, quern__drops *drops)
{
    const quern_allocator *allocator = &relating->storage->allocator;
    const uint32_t count = relating->drops.count;
    if (!quern__array_reserve(allocator, drops, drops->count + resolved->further_drop_count + count))
        return false;
    if (count == 0) return true;
    if (merged->scratches.count == 0) return false;
    quern__sequences_begin(&merged->scratches.items[0]->sequences, relating->storage->archetypes_version);
    merged->used_scratch_count = 1;
    if (quern__relating_count_drops(relating, merged) == QUERN_OK) return true;
    quern__merged_clear(merged, relating->storage, false);
    return false;
}

/* Changes all links and reserves what the rest needs. Returns false if that fails, or if all stages must run. */
static bool prepare(quern__relating *relating, quern__relation *relation, const quern__gathered *gathered,
                    quern__merged *merged, const quern__resolved *resolved, quern__drops *drops)
{
    quern__storage *storage = relating->storage;
    const uint32_t item_count = gathered->item_count < UINT32_MAX ? (uint32_t)gathered->item_count : 0;
    if (!quern__array_reserve(&storage->allocator, &storage->relations->log.changes, item_count))
        return false;
    for (uint32_t i = 0; i < gathered->streams.count; i++)
        if (!play_stream(relating, relation, &gathered->streams.items[i], i)) return false;
    if (quern__tier_moves_prepare(storage, relation) != QUERN_OK) return false;
    if (!storage->relations->tier_moves.is_observed &&
        reserve_and_count_drops(relating, merged, resolved, drops))
        return true;
    quern__tier_moves_cancel(storage);
    return false;
}

bool quern__commands_only_relate(quern__relating *relating, quern__gathered *gathered,
                                 quern__merged *merged, quern__resolved *resolved, quern__drops *drops,
                                 const quern__executor *observer)
{
    quern__relation *relation = relation_of_all(gathered, relating->storage);
    if (relation == NULL) return false;
    quern__follow_ups_begin(&relating->follow_ups, gathered);
    if (!prepare(relating, relation, gathered, merged, resolved, drops)) {
        quern__relating_undo(relating, gathered);
        return false;
    }
    quern__executor_begin_stage(observer, QUERN__STAGE_APPLY);
    quern__tier_moves_apply(relating->storage, relation);
    quern__relating_finish(relating, resolved);
    return true;
}
