/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The merge stage. Input: streams in order. Output: the edits of creates and of chunks, in order, grouped by
 * sequence. Can fail: memory. The world does not change.
 *
 * On one thread, each stream is iterated once, and each command is added to the edit of its entity immediately.
 *
 * On several threads, merging has two steps. First, threads share the streams: each stream is iterated, and
 * *command spans* record which commands touch which chunk. Then threads share the chunks: each chunk iterates its
 * spans, in the order of streams. Provisional handles are valid only in their own stream, so edits of creates are
 * always made in the first step.
 *
 * Commands for views become view edits as long as that is possible.
 *
 * Parts: the tree of sequences, view edits, chunk edits, merging items, groups, one thread, several threads, the
 * stage. */
#include "core/playback/stages.h"

#include "core/record/spawn.h"

enum {
    ARENA_BLOCK_BYTES = 256 * 1024,
    MERGE_ALIGNMENT_BYTES = 64,
    STREAMS_PER_CALL = 4,
    CHUNKS_PER_CALL = 4
};

/* Consecutive commands of one stream on entities in the same chunk. */
struct quern__command_span {
    quern__chunk *chunk;
    const quern__gathered_stream *stream;
    quern__command_batch *batch; /* first batch */
    uint32_t first_item;         /* index of the first item in that batch */
    uint32_t item_count;         /* number of items, which may be in several batches */
    uint64_t first_item_number;  /* number of the first item in the stream */
    quern__command_span *next;   /* next span of the same chunk */
};

/* ----------------------------------------------------------------------------------------- sequences */

void quern__sequences_release(quern__sequences *sequences)
{
    quern__array_release(sequences->allocator, &sequences->list);
    quern__array_release(sequences->allocator, &sequences->fills);
    quern__array_release(sequences->allocator, &sequences->toggles);
    quern__map_release(&sequences->map, sequences->allocator);
}

static uint64_t key_of(uint32_t parent, uint64_t operation_key)
{
    return quern__hash_word(parent, operation_key) | 1;
}

static uint64_t key_of_sequence(const quern__sequence *sequence)
{
    if (sequence->operation != NULL) return key_of(sequence->parent, sequence->operation->key);
    return key_of(QUERN__SEQUENCE_NONE, (uintptr_t)sequence->source + sequence->is_member);
}

void quern__sequences_clear(quern__sequences *sequences)
{
    if (sequences->list.count == 0) return;
    if (sequences->list.count > sequences->map.capacity / 16)
        quern__map_clear(&sequences->map);
    else
        for (uint32_t i = 0; i < sequences->list.count; i++)
            quern__map_clear_key(&sequences->map, key_of_sequence(&sequences->list.items[i]));
    sequences->list.count = 0;
    sequences->fills.count = 0;
    sequences->toggles.count = 0;
    memset(sequences->edges, 0, sizeof sequences->edges);
}

/* Adds a sequence to the tree. */
static uint32_t add_sequence(quern__sequences *sequences, const quern__sequence *sequence)
{
    uint32_t index = sequences->list.count;
    if (!quern__array_reserve(sequences->allocator, &sequences->list, index + 1) ||
        !quern__map_reserve(&sequences->map, sequences->allocator, index + 1))
        return QUERN__SEQUENCE_NONE;
    quern__sequence *added = &sequences->list.items[sequences->list.count++];
    *added = *sequence;
    uint64_t key = key_of_sequence(added);
    uint64_t *first = quern__map_find(&sequences->map, key);
    added->next_same_key = first != NULL ? (uint32_t)*first : QUERN__SEQUENCE_NONE;
    if (first != NULL)
        *first = index;
    else
        quern__map_put(&sequences->map, key, index);
    return index;
}

static bool is_same(const quern__sequence *a, const quern__sequence *b)
{
    if (a->parent != b->parent) return false;
    if (a->operation == NULL || b->operation == NULL)
        return a->operation == b->operation && a->source == b->source && a->is_member == b->is_member;
    return quern__operation_equal(a->operation, b->operation);
}

/* Finds or adds a sequence equal to `wanted`. by: see quern__sequence_edge. */
static uint32_t find_sequence(quern__sequences *sequences, const quern__sequence *wanted, const void *by)
{
    const uint64_t *first = quern__map_find(&sequences->map, key_of_sequence(wanted));
    uint32_t to = first != NULL ? (uint32_t)*first : QUERN__SEQUENCE_NONE;
    while (to != QUERN__SEQUENCE_NONE && !is_same(&sequences->list.items[to], wanted))
        to = sequences->list.items[to].next_same_key;
    if (to == QUERN__SEQUENCE_NONE) to = add_sequence(sequences, wanted);
    if (to != QUERN__SEQUENCE_NONE)
        *quern__sequences_edge(sequences, wanted->parent, by) =
            (quern__sequence_edge){.by = by, .from = wanted->parent, .to = to};
    return to;
}

uint32_t quern__sequences_find_root(quern__sequences *sequences, quern__archetype *source, bool is_member)
{
    const quern__sequence root = {.source = source, .is_member = is_member, .parent = QUERN__SEQUENCE_NONE};
    return find_sequence(sequences, &root, is_member ? (const char *)source + 1 : (const char *)source);
}

uint32_t quern__sequences_find_extended(quern__sequences *sequences, uint32_t from,
                                        const quern__operation *operation)
{
    const quern__sequence *parent = &sequences->list.items[from];
    const quern__sequence extended = {.operation = operation,
                                      .parent = from,
                                      .depth = parent->depth + 1,
                                      .source = parent->source,
                                      .is_member = parent->is_member,
                                      .is_destroyed = QUERN__MAY(operation->traits, DESTROYS)};
    return find_sequence(sequences, &extended, operation);
}

/* ---------------------------------------------------------------------------------------- view edits */

/* What became of a command for a view. */
typedef enum view_outcome {
    VIEW_MERGED,
    VIEW_DROPPED,  /* an earlier command destroys the entities of the rows */
    VIEW_REJECTED, /* must be merged row by row */
    VIEW_OUT_OF_MEMORY
} view_outcome;

/* Appends a view edit. */
static view_outcome append_view(quern__chunk_edits *edits, quern__command_batch *batch)
{
    quern__scratch *scratch = edits->scratch;
    const uint32_t index = scratch->view_edits.count;
    const uint32_t sequence = quern__sequences_extend(&scratch->sequences, edits->root, batch->operation);
    if (sequence == QUERN__SEQUENCE_NONE ||
        !quern__array_reserve(scratch->sequences.allocator, &scratch->view_edits, index + 1))
        return VIEW_OUT_OF_MEMORY;
    scratch->view_edits.items[scratch->view_edits.count++] =
        (quern__view_edit){.batch = batch,
                           .items = quern__view_items_of(batch),
                           .sequence = sequence,
                           .earlier = QUERN__EARLIER_NONE};
    if (edits->view_count++ > 0)
        quern__view_edit_at(edits, edits->last_view)->next = index;
    else
        edits->first_view = index;
    edits->last_view = edits->current_view = index;
    return VIEW_MERGED;
}

/* Adds a command on exactly the rows of a view edit, as quern__edit_extend does for one row. */
static view_outcome extend_view(quern__scratch *scratch, quern__view_edit *edit,
                                quern__command_batch *batch)
{
    const quern__operation *operation = batch->operation;
    const quern__sequence *sequence = &scratch->sequences.list.items[edit->sequence];
    const quern__operation *last = sequence->operation;
    const quern__view_items items = quern__view_items_of(batch);
    if (sequence->is_destroyed) return VIEW_DROPPED;
    if (quern__operation_replaces_itself(operation) && quern__operation_equal(last, operation)) {
        edit->items = items;
        return VIEW_MERGED;
    }
    const uint32_t to = quern__sequences_extend(&scratch->sequences, edit->sequence, operation);
    const uint32_t count = scratch->earlier_views.count;
    if (to == QUERN__SEQUENCE_NONE ||
        !quern__array_reserve(scratch->sequences.allocator, &scratch->earlier_views, count + 1))
        return VIEW_OUT_OF_MEMORY;
    scratch->earlier_views.items[scratch->earlier_views.count++] =
        (quern__earlier_view){.items = edit->items, .earlier = edit->earlier};
    edit->items = items;
    edit->sequence = to;
    edit->earlier = count;
    return VIEW_MERGED;
}

/* Whether two batches on the same chunk have the same rows. */
static inline bool view_rows_equal(quern__command_batch *a, quern__command_batch *b)
{
    const quern__view_batch *left = quern__view_of(a), *right = quern__view_of(b);
    return left->location == right->location && a->item_count == b->item_count &&
           left->mask_word_count == right->mask_word_count &&
           memcmp(quern__view_mask(a), quern__view_mask(b), left->mask_word_count * sizeof(uint64_t)) == 0;
}

/* A system that visits the same rows as an earlier one visits them in the same order. Its next command is
 * therefore on the same rows as its latest one, or on those of the view edit after it. */
static view_outcome view_edits_add(quern__chunk_edits *edits, quern__command_batch *batch)
{
    if (edits->view_count == 0) return append_view(edits, batch);
    quern__view_edit *current = quern__view_edit_at(edits, edits->current_view);
    if (view_rows_equal(current->batch, batch)) return extend_view(edits->scratch, current, batch);
    const quern__view_edit *last = quern__view_edit_at(edits, edits->last_view);
    if (quern__view_first_row(batch) > quern__view_of(last->batch)->last_row)
        return append_view(edits, batch);
    edits->current_view = edits->current_view != edits->last_view ? current->next : edits->first_view;
    current = quern__view_edit_at(edits, edits->current_view);
    if (view_rows_equal(current->batch, batch)) return extend_view(edits->scratch, current, batch);
    return VIEW_REJECTED;
}

/* Adds the earlier items of the i-th row of a view edit. Returns the index of the first, or
 * QUERN__EARLIER_NONE. Precondition: memory is reserved. */
static uint32_t add_earlier_items(quern__scratch *scratch, const quern__view_edit *view, uint32_t i)
{
    const uint32_t first = scratch->earlier_items.count;
    if (view->earlier == QUERN__EARLIER_NONE) return QUERN__EARLIER_NONE;
    for (uint32_t at = view->earlier; at != QUERN__EARLIER_NONE;) {
        const quern__earlier_view *earlier = &scratch->earlier_views.items[at];
        at = earlier->earlier;
        const uint32_t index = scratch->earlier_items.count++;
        scratch->earlier_items.items[index] =
            (quern__earlier_item){.item = quern__view_item(earlier->items, i),
                                  .earlier = at != QUERN__EARLIER_NONE ? index + 1 : QUERN__EARLIER_NONE};
    }
    return first;
}

static bool expand_edit(quern__chunk_edits *edits, const quern__view_edit *view)
{
    quern__scratch *scratch = edits->scratch;
    uint32_t earlier_count = 0; /* of each row */
    for (uint32_t at = view->earlier; at != QUERN__EARLIER_NONE;
         at = scratch->earlier_views.items[at].earlier)
        earlier_count++;
    const uint64_t wanted =
        scratch->earlier_items.count + (uint64_t)view->batch->item_count * earlier_count;
    if (wanted > UINT32_MAX ||
        !quern__array_reserve(scratch->sequences.allocator, &scratch->earlier_items, (uint32_t)wanted))
        return false;
    quern__view_range range = {.index = 0};
    while (quern__view_next_range(view->batch, &range))
        for (uint32_t i = 0; i < range.rows.count; i++) {
            const uint32_t row = range.rows.first + i;
            edits->touched[-1] |= 1ull << row / 64;
            quern__bitset_add(edits->touched, row);
            edits->rows[row] = (quern__edit){.item = quern__view_item(view->items, range.index + i),
                                             .sequence = view->sequence,
                                             .earlier = add_earlier_items(scratch, view, range.index + i)};
        }
    return true;
}

/* Turns view edits into edits of single rows. Returns false if out of memory. */
static bool view_edits_expand(quern__chunk_edits *edits)
{
    uint32_t index = edits->first_view;
    for (; edits->view_count > 0; edits->view_count--) {
        const quern__view_edit *view = quern__view_edit_at(edits, index);
        if (!expand_edit(edits, view)) return false;
        index = view->next;
    }
    return true;
}

/* Whether the batch has the row of the chunk. */
static inline bool view_has_row(quern__command_batch *batch, uint32_t row)
{
    const quern__view_batch *view = quern__view_of(batch);
    if (row < quern__view_first_row(batch) || row > view->last_row) return false;
    return view->mask_word_count == 0 || quern__bitset_has(quern__view_mask(batch), row);
}

uint32_t quern__view_edits_sequence(const quern__chunk_edits *edits, uint32_t row)
{
    const quern__view_edit *view = quern__view_edit_at(edits, edits->first_view);
    while (!view_has_row(view->batch, row))
        view = quern__view_edit_at(edits, view->next);
    return view->sequence;
}

/* ------------------------------------------------------------------------------------ chunk edits */

void quern__merged_release(quern__merged *merged, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < merged->scratches.count; i++) {
        quern__scratch *scratch = merged->scratches.items[i];
        quern__sequences_release(&scratch->sequences);
        quern__array_release(allocator, &scratch->earlier_items);
        quern__array_release(allocator, &scratch->view_edits);
        quern__array_release(allocator, &scratch->earlier_views);
        quern__array_release(allocator, &scratch->groups);
        quern__array_release(allocator, &scratch->row_ranges);
        quern__array_release(allocator, &scratch->spans);
        quern__array_release(allocator, &scratch->drops);
        quern__release(allocator, scratch, sizeof *scratch, MERGE_ALIGNMENT_BYTES);
    }
    for (uint32_t i = 0; i < merged->arena.count; i++)
        quern__release(allocator, merged->arena.items[i].memory, merged->arena.items[i].size_bytes,
                       MERGE_ALIGNMENT_BYTES);
    quern__array_release(allocator, &merged->edits);
    quern__array_release(allocator, &merged->chunk_edits);
    quern__array_release(allocator, &merged->streams);
    quern__array_release(allocator, &merged->scratches);
    quern__array_release(allocator, &merged->edits_of_chunk);
    quern__array_release(allocator, &merged->order);
    quern__array_release(allocator, &merged->order_scratch);
    quern__array_release(allocator, &merged->arena);
}

/* Allocates memory that is valid until the next sync point. Block sizes are powers of two, so that sync points
 * of slightly growing size reuse blocks. Returns NULL if out of memory. */
static void *arena_allocate(quern__merged *merged, const quern_allocator *allocator, size_t size_bytes)
{
    size_bytes = quern__align_up(size_bytes, MERGE_ALIGNMENT_BYTES);
    while (merged->arena_block < merged->arena.count &&
           merged->arena.items[merged->arena_block].size_bytes - merged->arena_used_bytes < size_bytes) {
        merged->arena_block++;
        merged->arena_used_bytes = 0;
    }
    if (merged->arena_block == merged->arena.count) {
        size_t block_bytes = ARENA_BLOCK_BYTES;
        while (block_bytes < size_bytes)
            block_bytes *= 2;
        if (!quern__array_reserve(allocator, &merged->arena, merged->arena.count + 1)) return NULL;
        char *block = quern__allocate(allocator, block_bytes, MERGE_ALIGNMENT_BYTES);
        if (block == NULL) return NULL;
        merged->arena.items[merged->arena.count++] =
            (quern__arena_block){.memory = block, .size_bytes = block_bytes};
    }
    char *memory = merged->arena.items[merged->arena_block].memory + merged->arena_used_bytes;
    merged->arena_used_bytes += size_bytes;
    return memory;
}

/* Adds edits for the rows of a chunk, none of them edited yet, or (NULL) for creates. Returns NULL if out of
 * memory. */
static quern__chunk_edits *add_edits(quern__merged *merged, const quern_allocator *allocator,
                                     quern__chunk *chunk, uint32_t row_count)
{
    size_t bits_bytes = chunk != NULL ? (1 + QUERN__BITSET_WORDS((size_t)row_count)) * sizeof(uint64_t) : 0;
    if (!quern__array_reserve(allocator, &merged->edits, merged->edits.count + 1)) return NULL;
    char *memory = arena_allocate(merged, allocator, bits_bytes + row_count * sizeof(quern__edit));
    if (memory == NULL) return NULL;
    memset(memory, 0, bits_bytes);
    quern__chunk_edits *edits = &merged->edits.items[merged->edits.count++];
    *edits = (quern__chunk_edits){.chunk = chunk,
                                  .archetype = chunk != NULL ? quern__chunk_archetype(chunk) : NULL,
                                  .row_count = row_count,
                                  .touched = chunk != NULL ? (uint64_t *)(void *)memory + 1 : NULL,
                                  .rows = (quern__edit *)(void *)(memory + bits_bytes)};
    return edits;
}

/* Returns the edits of a chunk, and adds them if there are none. Returns NULL if out of memory. */
static inline quern__chunk_edits *edits_of_chunk(quern__merged *merged, const quern_allocator *allocator,
                                                 quern__chunk *chunk)
{
    quern__chunk_edits *edits = quern__merged_find(merged, chunk);
    if (edits != NULL) return edits;
    const quern__archetype *archetype = quern__chunk_archetype(chunk);
    const uintptr_t first = (uintptr_t)chunk;
    merged->edits_of_chunk.items[quern__chunk_number(&archetype->shape, first)] = merged->edits.count;
    return add_edits(merged, allocator, chunk,
                     merged->spawned != NULL
                         ? archetype->shape.row_capacity
                         : archetype->slots[quern__chunk_index_at(&archetype->shape, first)].row_count);
}

/* ------------------------------------------------------------------------------------- walking items */

/* State of iterating a stream. */
typedef struct walk {
    quern__merged *merged;
    const quern__storage *storage;
    quern__scratch *scratch;
    const quern__gathered_stream *gathered;
    quern__edit *created;   /* edits of the entities that the stream creates */
    uint32_t first_created; /* number of the stream's first create among the creates of all streams */
    uint32_t create_root;
    quern__command_batch *batch;
    uint64_t number;      /* number of the batch's first item in the stream */
    uint64_t span_number; /* number of the latest span's first item in the stream */
    /* Of the chunk of the previous entity, which has no view edits: */
    quern__chunk *chunk; /* NULL: no chunk yet */
    uint32_t chunk_rows; /* rows of the chunk */
    uint64_t *touched;
    quern__edit *rows;
    uint32_t root;
    uint32_t first_sequence; /* sequence that consists of first_operation */
    const quern__operation *first_operation;
    uint32_t spawned_hint;    /* of quern__spawned_find */
    uint32_t member_sequence; /* as first_sequence, for members of instances */
    const quern__operation *member_operation;
} walk;

/* What iterating does with commands on living entities. */
typedef enum walk_mode {
    WALK_MERGE, /* adds them to edits, in any chunk */
    WALK_NOTE,  /* records spans */
    /* adds the commands of one chunk to edits; a first pass has handled provisional handles and dead entities */
    WALK_SPAN
} walk_mode;

void quern__scratch_drop(quern__scratch *scratch, const quern__stream *stream, uint64_t item_number,
                         quern_entity entity, uint64_t command_count, quern_drop_reason reason)
{
    const quern__drop drop = {.system_number = stream->origin.system_number,
                              .reason = reason,
                              .count = command_count,
                              .first_key = stream->origin.key,
                              .first_item_number = item_number,
                              .first_entity = entity};
    if (!quern__drops_add(&scratch->drops, scratch->sequences.allocator, 0, &drop))
        scratch->is_out_of_memory = true;
}

/* Drops `count` items of the batch, from the i-th on, which is on the entity. */
static void drop_items(const walk *it, quern_entity entity, uint32_t i, uint32_t count,
                       quern_drop_reason reason)
{
    const uint32_t command_count = it->batch->operation->command_count;
    quern__scratch_drop(it->scratch, it->gathered->stream, it->number + i, entity,
                        (uint64_t)command_count * count, reason);
    quern__listener_drop(it->storage, &(quern__dropped_items){.key = it->gathered->stream->origin.key,
                                                              .first_number = it->number + i,
                                                              .count = count,
                                                              .command_count = command_count,
                                                              .reason = reason});
}

/* Returns the edits of a chunk with their scratch and root, or NULL if out of memory. */
static inline quern__chunk_edits *begin_edits(const walk *it, quern__chunk_edits *edits)
{
    if (edits != NULL && edits->scratch == NULL) {
        edits->scratch = it->scratch;
        edits->root = quern__sequences_root(&it->scratch->sequences, edits->archetype);
    }
    if (edits != NULL && edits->root != QUERN__SEQUENCE_NONE) return edits;
    it->scratch->is_out_of_memory = true;
    return NULL;
}

/* Makes the chunk of these edits the current one, for edits of single rows. edits may be NULL if out of memory.
 * Returns false if out of memory. */
static bool enter_chunk(walk *it, quern__chunk_edits *edits)
{
    edits = begin_edits(it, edits);
    if (edits == NULL) return false;
    if (QUERN__UNLIKELY(edits->view_count > 0) && !view_edits_expand(edits)) {
        it->scratch->is_out_of_memory = true;
        return false;
    }
    it->chunk = edits->chunk;
    it->chunk_rows = edits->archetype->shape.row_capacity;
    it->touched = edits->touched;
    it->rows = edits->rows;
    it->root = edits->root;
    it->first_operation = it->member_operation = NULL;
    return true;
}

/* Adds the i-th item of the batch, which is on the entity, to an existing edit. */
static inline void extend_edit(const walk *it, quern__edit *edit, quern_entity entity, char *item,
                               uint32_t i)
{
    if (it->scratch->sequences.list.items[edit->sequence].is_destroyed)
        drop_items(it, entity, i, 1, QUERN_DROP_DESTROYED);
    else if (!quern__edit_extend(it->scratch, edit, it->batch->operation, item))
        it->scratch->is_out_of_memory = true;
}

/* Adds `count` items of the batch, from the i-th on, to the latest span if that is of the same chunk, otherwise
 * begins a span. */
static void note_span(walk *it, quern__chunk *chunk, uint32_t i, uint32_t count)
{
    quern__scratch *scratch = it->scratch;
    if (chunk != it->chunk) {
        if (!quern__array_reserve(scratch->sequences.allocator, &scratch->spans,
                                  scratch->spans.count + 1)) {
            scratch->is_out_of_memory = true;
            return;
        }
        it->chunk = chunk;
        it->chunk_rows = quern__chunk_archetype(chunk)->shape.row_capacity;
        it->span_number = it->number + i;
        scratch->spans.items[scratch->spans.count++] =
            (quern__command_span){.chunk = chunk,
                                  .batch = it->batch,
                                  .first_item = i,
                                  .stream = it->gathered,
                                  .first_item_number = it->span_number};
    }
    scratch->spans.items[scratch->spans.count - 1].item_count =
        (uint32_t)(it->number + i + count - it->span_number);
}

/* Returns the edits of a chunk while commands are merged, or NULL if out of memory. In mode WALK_SPAN they
 * exist. */
static quern__chunk_edits *find_edits(const walk *it, quern__chunk *chunk, walk_mode mode)
{
    return mode == WALK_SPAN ? quern__merged_find(it->merged, chunk)
                             : edits_of_chunk(it->merged, &it->storage->allocator, chunk);
}

/* Notes the i-th item of the batch, which is on the entity at the location, or extends the edit of its row. Returns the
 * row if this is its first item: the caller must write its edit. Otherwise returns NULL. */
QUERN__ALWAYS_INLINE quern__edit *begin_edit(walk *it, uintptr_t location, quern_entity entity, char *item,
                                             uint32_t i, walk_mode mode)
{
    uintptr_t row = location - (uintptr_t)it->chunk;
    if (mode == WALK_NOTE) {
        note_span(it, row < it->chunk_rows ? it->chunk : quern__chunk_at(location), i, 1);
        return NULL;
    }
    if (QUERN__UNLIKELY(row >= it->chunk_rows)) {
        if (!enter_chunk(it, find_edits(it, quern__chunk_at(location), mode))) return NULL;
        row = location - (uintptr_t)it->chunk;
    }
    assert(it->touched != NULL && it->rows != NULL);
    uint64_t *word = &it->touched[row / 64];
    if ((*word >> row % 64 & 1) != 0) {
        extend_edit(it, &it->rows[row], entity, item, i);
        return NULL;
    }
    if (*word == 0) it->touched[-1] |= 1ull << row / 64;
    *word |= 1ull << row % 64;
    return &it->rows[row];
}

/* Merges the i-th item of the batch, which is on the entity at the location. Most rows of a chunk begin with the same
 * operation, so its sequence is cached. */
static inline void merge_at(walk *it, uintptr_t location, quern_entity entity, char *item, uint32_t i,
                            walk_mode mode)
{
    quern__edit *edit = begin_edit(it, location, entity, item, i, mode);
    if (edit == NULL) return;
    if (it->batch->operation != it->first_operation) {
        it->first_sequence =
            quern__sequences_extend(&it->scratch->sequences, it->root, it->batch->operation);
        it->first_operation = it->batch->operation;
        if (it->first_sequence == QUERN__SEQUENCE_NONE) it->scratch->is_out_of_memory = true;
    }
    *edit = (quern__edit){.item = item, .sequence = it->first_sequence, .earlier = QUERN__EARLIER_NONE};
}

/* Does what merge_at does for the next `count` items of the batch, as long as each one is the first of a row of the current
 * chunk. Returns how many it has merged. Precondition: the first of them is on a row of the chunk, the stream is located,
 * and the operation of the batch is the first operation. Most commands are merged here. They often come in the order of
 * rows, so the bits of 64 rows are in a register. */
static QUERN__NO_INLINE uint32_t merge_first_edits(const walk *it, const quern__item *item, uint32_t count)
{
    const size_t item_bytes = it->batch->operation->item_bytes;
    const quern__edit added = {.sequence = it->first_sequence, .earlier = QUERN__EARLIER_NONE};
    uintptr_t first = 0, row_count = 0; /* location of the first of these rows, and their number */
    uint64_t *word = it->touched, bits = *word;
    quern__edit *rows = it->rows;
    char *at = (char *)(uintptr_t)item;
    uint32_t i = 0;
    for (; i < count; i++, at += item_bytes) {
        const uintptr_t location = ((const quern__item *)(const void *)at)->location;
        uintptr_t row = location - first;
        if (row >= row_count) {
            *word = bits;
            row = location - (uintptr_t)it->chunk;
            if (row >= it->chunk_rows) return i;
            const uintptr_t index = row / 64;
            first = (uintptr_t)it->chunk + index * 64;
            row_count = it->chunk_rows - index * 64 < 64 ? it->chunk_rows - index * 64 : 64;
            rows = it->rows + index * 64;
            word = it->touched + index;
            bits = *word;
            it->touched[-1] |= 1ull << index;
            row %= 64;
        }
        if ((bits >> row & 1) != 0) break;
        bits |= 1ull << row;
        rows[row] = added;
        rows[row].item = at;
    }
    *word = bits;
    return i;
}

/* Merges the i-th item of the batch, which is on an entity that the stream creates and that is no member of an
 * instance. */
static void merge_created(const walk *it, const quern__item *item, uint32_t i)
{
    assert(it->created != NULL);
    extend_edit(it, &it->created[quern_entity_index(item->entity)], item->entity, (char *)(uintptr_t)item,
                i);
}

/* Finds the sequence that consists of the batch's operation, on members of instances in the archetype. */
static QUERN__NO_INLINE void begin_member_sequence(walk *it, quern__archetype *archetype)
{
    quern__sequences *sequences = &it->scratch->sequences;
    it->member_operation = it->batch->operation;
    it->member_sequence = quern__sequences_member_root(sequences, archetype);
    if (it->member_sequence != QUERN__SEQUENCE_NONE)
        it->member_sequence = quern__sequences_extend(sequences, it->member_sequence, it->member_operation);
    if (it->member_sequence == QUERN__SEQUENCE_NONE) it->scratch->is_out_of_memory = true;
}

/* Merges the i-th item of the batch, which is on an entity that the stream creates, if the sync point spawns. Commands
 * on a member of an instance are edits of its row. */
static QUERN__NO_INLINE void merge_spawned(walk *it, quern__item *item, uint32_t i, walk_mode mode)
{
    uintptr_t location;
    if (!quern__spawned_find(it->merged->spawned, it->first_created + quern_entity_index(item->entity),
                             &it->spawned_hint, &location)) {
        if (mode != WALK_SPAN) merge_created(it, item, i);
        return;
    }
    if (QUERN__UNLIKELY(location == 0)) {
        const uint32_t created = it->first_created + quern_entity_index(item->entity);
        const bool is_not_copied = quern__spawned_is_not_copied(it->merged->spawned, created);
        if (mode != WALK_SPAN)
            drop_items(it, item->entity, i, 1, is_not_copied ? QUERN_DROP_NOT_COPIED : QUERN_DROP_REFUSED);
        return;
    }
    quern__edit *edit = begin_edit(it, location, item->entity, (char *)item, i, mode);
    if (edit == NULL) return;
    if (it->batch->operation != it->member_operation)
        begin_member_sequence(it, quern__chunk_archetype(it->chunk));
    *edit = (quern__edit){
        .item = (char *)item, .sequence = it->member_sequence, .earlier = QUERN__EARLIER_NONE};
}

/* Merges the i-th item of the batch after its entity may have moved. */
static void merge_moved(walk *it, quern_entity entity, char *item, uint32_t i, walk_mode mode)
{
    const quern__record *record = quern__entities_find(&it->storage->entities, entity);
    if (record != NULL)
        merge_at(it, record->location, entity, item, i, mode);
    else if (mode != WALK_SPAN)
        drop_items(it, entity, i, 1, QUERN_DROP_DEAD);
}

/* Tries to make view edits of the batch. Returns false if it must be merged row by row. */
static bool merge_view_whole(walk *it, quern__chunk_edits *edits)
{
    if (edits->touched[-1] != 0) return false; /* some rows have edits of their own */
    it->chunk = NULL;
    it->chunk_rows = 0; /* as at the begin: no location, not even that of a new entity, is in the chunk */
    switch (view_edits_add(edits, it->batch)) {
    case VIEW_MERGED:
        return true;
    case VIEW_DROPPED:
        drop_items(it, *quern__view_entities(it->batch), 0, it->batch->item_count, QUERN_DROP_DESTROYED);
        return true;
    case VIEW_OUT_OF_MEMORY:
        it->scratch->is_out_of_memory = true;
        return true;
    case VIEW_REJECTED:
        break;
    }
    return false;
}

/* Merges the rows [begin, end) of a command for a view. Spans of a located one are never parts of it. */
static void merge_view(walk *it, uint32_t begin, uint32_t end, walk_mode mode)
{
    quern__command_batch *batch = it->batch;
    const quern__view_items items = quern__view_items_of(batch);
    const quern_entity *entities = quern__view_entities(batch);
    if (!quern__view_is_located(batch, it->gathered->is_located)) {
        for (uint32_t i = begin; i < end && !it->scratch->is_out_of_memory; i++)
            if (!quern_entity_is_null(
                    entities[i])) /* a null entity: the relate stage has dropped the row */
                merge_moved(it, entities[i], quern__view_item(items, i), i, mode);
        return;
    }
    assert(begin == 0 && end == batch->item_count);
    quern__chunk *chunk = quern__view_chunk(batch);
    if (mode == WALK_NOTE) {
        note_span(it, chunk, 0, end);
        return;
    }
    quern__chunk_edits *edits = begin_edits(it, find_edits(it, chunk, mode));
    if (edits == NULL || merge_view_whole(it, edits)) return;
    quern__view_range range = {.index = 0};
    while (quern__view_next_range(batch, &range) && !it->scratch->is_out_of_memory)
        for (uint32_t k = 0; k < range.rows.count; k++) {
            const uint32_t i = range.index + k;
            merge_at(it, quern__location_make(chunk, range.rows.first + k), entities[i],
                     quern__view_item(items, i), i, mode);
        }
}

/* Returns the edit of a new entity, which no command has written yet. */
static inline quern__edit *begin_created(const walk *it, uint32_t number)
{
    assert(it->created != NULL && number < it->gathered->stream->create_count);
    quern__edit *edit = &it->created[number];
    assert(!QUERN_CHECKS || edit->item == NULL);
    return edit;
}

/* Among the edits of creates, members of instances get edits without operations. Commands on them are edits of their
 * rows (merge_spawned). */
static void merge_spawns(const walk *it)
{
    const quern__operation *operation = it->batch->operation;
    const uint32_t member_count = quern__spawn_member_count(operation), root = it->create_root;
    quern__item *item = quern__batch_item(it->batch, 0);
    for (uint32_t i = 0; i < it->batch->item_count; i++, item = quern__item_next(item, operation)) {
        quern__edit *edit = begin_created(it, quern_entity_index(item->entity));
        for (quern__edit *end = edit + member_count; edit < end; edit++) {
            assert(!QUERN_CHECKS || edit->item == NULL);
            *edit = (quern__edit){.item = (char *)item, .sequence = root, .earlier = QUERN__EARLIER_NONE};
        }
    }
}

/* Does the same for copies, whose other members have their handles after all creates of the stream. Drops clones without
 * a copy. */
static void merge_clones(const walk *it)
{
    const quern__resolved *resolved = it->merged->spawned; /* there are clones */
    assert(resolved != NULL);
    for (uint32_t i = 0; i < it->batch->item_count; i++) {
        quern__clone_item *item = (quern__clone_item *)(void *)quern__batch_item(it->batch, i);
        const quern__clone *clone = &resolved->clones.items[item->index];
        const uint32_t other_count = clone->prefab != NULL ? clone->prefab->members.count - 1 : 0;
        if (clone->is_not_copied)
            drop_items(it, clone->entity, i, 1, clone->is_dead ? QUERN_DROP_DEAD : QUERN_DROP_NOT_COPIED);
        if (it->created == NULL) continue;
        const quern__edit edit = {
            .item = (char *)item, .sequence = it->create_root, .earlier = QUERN__EARLIER_NONE};
        *begin_created(it, quern_entity_index(item->head.entity)) = edit;
        for (uint32_t k = 0; k < other_count; k++)
            *begin_created(it, clone->first_other + k) = edit;
    }
}

static void merge_creates(const walk *it)
{
    const quern__operation *operation = it->batch->operation;
    quern__item *item = quern__batch_item(it->batch, 0);
    uint32_t sequence = quern__sequences_extend(&it->scratch->sequences, it->create_root, operation);
    if (sequence == QUERN__SEQUENCE_NONE) it->scratch->is_out_of_memory = true;
    for (uint32_t i = 0; i < it->batch->item_count; i++, item = quern__item_next(item, operation))
        *begin_created(it, quern_entity_index(item->entity)) =
            (quern__edit){.item = (char *)item, .sequence = sequence, .earlier = QUERN__EARLIER_NONE};
}

/* Merges the items [begin, end) of the batch. */
static inline void merge_items(walk *it, uint32_t begin, uint32_t end, walk_mode mode)
{
    const quern__operation *operation = it->batch->operation;
    const uint8_t merge_kind = quern__command_kinds[operation->kind].merge_kind;
    if (merge_kind != QUERN__MERGE_ROW) {
        if (mode != WALK_SPAN && merge_kind == QUERN__MERGE_CREATE) merge_creates(it);
        if (mode != WALK_SPAN && operation == &quern__operation_clone)
            merge_clones(it);
        else if (mode != WALK_SPAN && merge_kind == QUERN__MERGE_SPAWN && it->created != NULL)
            merge_spawns(it);
        return;
    }
    if (QUERN__UNLIKELY(it->batch->is_view)) {
        merge_view(it, begin, end, mode);
        return;
    }
    const bool is_located = it->gathered->is_located;
    quern__item *item = quern__batch_item(it->batch, begin);
    for (uint32_t i = begin; i < end && !it->scratch->is_out_of_memory;
         i++, item = quern__item_next(item, operation)) {
        if (mode != WALK_NOTE && is_located && item->location - (uintptr_t)it->chunk < it->chunk_rows &&
            operation == it->first_operation) {
            i += merge_first_edits(it, item, end - i);
            if (i == end) return;
            item = quern__batch_item(it->batch, i);
        }
        if (item->location != 0 && QUERN__LIKELY(is_located)) {
            merge_at(it, item->location, item->entity, (char *)item, i, mode);
        } else if (item->location != 0) {
            merge_moved(it, item->entity, (char *)item, i, mode);
            /* a null entity: the relate stage has dropped the item */
        } else if (item->entity.bits != 0 && QUERN__UNLIKELY(it->merged->spawned != NULL)) {
            merge_spawned(it, item, i, mode);
        } else if (mode != WALK_SPAN && item->entity.bits != 0) {
            merge_created(it, item, i);
        }
    }
}

/* Iterates the stream at the index. */
static inline void walk_stream(quern__merged *merged, const quern__storage *storage,
                               quern__scratch *scratch, const quern__gathered *gathered, uint32_t index,
                               walk_mode mode)
{
    walk it = {.merged = merged,
               .storage = storage,
               .scratch = scratch,
               .gathered = &gathered->streams.items[index]};
    quern__merged_stream *walked = index < merged->streams.count ? &merged->streams.items[index] : NULL;
    const uint32_t first_span = scratch->spans.count;
    if (walked != NULL) it.first_created = walked->first_created;
    if (walked != NULL && walked->create_edits != QUERN__EDITS_NONE) {
        quern__chunk_edits *edits = &merged->edits.items[walked->create_edits];
        edits->scratch = scratch;
        it.created = edits->rows;
        it.create_root = quern__sequences_root(&scratch->sequences, NULL);
        if (it.create_root == QUERN__SEQUENCE_NONE) scratch->is_out_of_memory = true;
    }
    const quern__stream *stream = it.gathered->stream;
    it.batch = stream->first;
    for (uint32_t i = 0; i < stream->batch_count && !scratch->is_out_of_memory; i++) {
        if (i > 0) {
            it.number += it.batch->item_count;
            it.batch = quern__batch_next(it.batch);
        }
        merge_items(&it, 0, it.batch->item_count, mode);
    }
    if (mode != WALK_NOTE || walked == NULL) return;
    walked->scratch = scratch;
    walked->first_span = first_span;
    walked->span_count = scratch->spans.count - first_span;
}

/* -------------------------------------------------------------------------------------------- groups */

_Static_assert(QUERN__CHUNK_BYTES / sizeof(quern_entity) / 64 <= 64, "one word has a bit per word of rows");

/* Returns the first edited row at or after `row`, or row_count. */
static uint32_t find_touched(const quern__chunk_edits *edits, uint32_t row)
{
    if (edits->touched == NULL || row >= edits->row_count) return row;
    uint32_t word = row / 64;
    uint64_t bits = edits->touched[word] & ~0ull << row % 64;
    if (bits == 0) {
        const uint64_t words = edits->touched[-1] & ~1ull << word;
        if (words == 0) return edits->row_count;
        word = quern__lowest_bit_64(words);
        bits = edits->touched[word];
    }
    return word * 64 + quern__lowest_bit_64(bits);
}

/* Returns the first row after `row`, which is edited, that is not edited, or row_count. */
static uint32_t find_untouched(const quern__chunk_edits *edits, uint32_t row)
{
    if (edits->touched == NULL) return edits->row_count;
    uint32_t word = row / 64;
    uint64_t bits = ~edits->touched[word] & ~0ull << row % 64;
    while (bits == 0 && ++word < QUERN__BITSET_WORDS(edits->row_count))
        bits = ~edits->touched[word];
    const uint32_t end = bits != 0 ? word * 64 + quern__lowest_bit_64(bits) : edits->row_count;
    return end < edits->row_count ? end : edits->row_count;
}

/* Finds or adds the group of a sequence, in the edits with this stamp. Returns false if out of memory. */
static bool find_group(const quern__chunk_edits *edits, uint64_t stamp, uint32_t sequence_index,
                       uint32_t *out_group)
{
    quern__scratch *scratch = edits->scratch;
    quern__sequence *sequence = &scratch->sequences.list.items[sequence_index];
    if (sequence->grouped_stamp != stamp) {
        if (!quern__array_reserve(scratch->sequences.allocator, &scratch->groups,
                                  scratch->groups.count + 1))
            return false;
        sequence->grouped_stamp = stamp;
        sequence->group = scratch->groups.count++;
        scratch->groups.items[sequence->group] = (quern__edit_group){.sequence = sequence_index};
    }
    *out_group = sequence->group;
    return true;
}

/* Lists the groups of view edits, in the order of their first rows. Returns false if out of memory. */
static bool group_view_edits(const quern__chunk_edits *edits, uint64_t stamp)
{
    uint32_t index = edits->first_view;
    for (uint32_t i = 0; i < edits->view_count; i++) {
        quern__view_edit *view = quern__view_edit_at(edits, index);
        if (!find_group(edits, stamp, view->sequence, &view->group)) return false;
        edits->scratch->groups.items[view->group].count += view->batch->item_count;
        index = view->next;
    }
    return true;
}

/* Lists ranges of consecutive rows with the same sequence, and groups in the order of their first rows. */
static void group_edits(const quern__merged *merged, uint32_t index)
{
    quern__chunk_edits *edits = &merged->edits.items[index];
    quern__scratch *scratch = edits->scratch;
    const uint64_t stamp = merged->first_stamp + index;
    for (uint32_t i = 0; QUERN_CHECKS && i < edits->row_count && edits->chunk == NULL; i++)
        assert(edits->rows[i].item != NULL); /* each created entity has an edit */
    edits->first_group = scratch->groups.count;
    edits->first_range = scratch->row_ranges.count;
    if (!group_view_edits(edits, stamp)) scratch->is_out_of_memory = true;
    uint32_t edited_end = 0; /* end of the consecutive edited rows that include `row` */
    for (uint32_t row = find_touched(edits, 0), end; row < edits->row_count;
         row = find_touched(edits, end)) {
        const uint32_t sequence = edits->rows[row].sequence;
        if (row >= edited_end) edited_end = find_untouched(edits, row);
        end = row + 1;
        while (end < edited_end && edits->rows[end].sequence == sequence)
            end++;
        uint32_t group;
        if (!find_group(edits, stamp, sequence, &group) ||
            !quern__array_reserve(scratch->sequences.allocator, &scratch->row_ranges,
                                  scratch->row_ranges.count + 1)) {
            scratch->is_out_of_memory = true;
            return;
        }
        scratch->groups.items[group].count += end - row;
        scratch->row_ranges.items[scratch->row_ranges.count++] =
            (quern__row_range){.row = row, .count = end - row, .group = group};
    }
    edits->group_count = scratch->groups.count - edits->first_group;
    edits->range_count = scratch->row_ranges.count - edits->first_range;
}

/* Sort key: archetype first, then chunk. */
static uint64_t key_of_chunk(const quern__chunk_edits *edits)
{
    return (uint64_t)edits->archetype->index << 32 |
           quern__chunk_index_at(&edits->archetype->shape, (uintptr_t)edits->chunk);
}

/* Lists the edits of chunks in order. Commands recorded in the order of rows create chunk edits in order, which
 * need no sorting. */
static bool list_chunk_edits(quern__merged *merged, const quern_allocator *allocator)
{
    const uint32_t count = merged->edits.count - merged->create_edits_count;
    if (!quern__array_reserve(allocator, &merged->chunk_edits, count)) return false;
    merged->chunk_edits.count = count;
    if (count == 0) return true; /* the list of edits may be NULL */
    quern__chunk_edits *edits = merged->edits.items + merged->create_edits_count;
    uint64_t last_key = 0;
    bool is_sorted = true;
    for (uint32_t i = 0; i < count; i++, edits++) {
        const uint64_t key = key_of_chunk(edits);
        is_sorted &= key >= last_key;
        last_key = key;
        merged->chunk_edits.items[i] = edits;
    }
    if (is_sorted) return true;
    if (!quern__array_reserve(allocator, &merged->order, count) ||
        !quern__array_reserve(allocator, &merged->order_scratch, count))
        return false;
    for (uint32_t i = 0; i < count; i++)
        merged->order.items[i] = (quern__sort_item){.key = key_of_chunk(merged->chunk_edits.items[i]),
                                                    .pointer = merged->chunk_edits.items[i]};
    quern__sort(merged->order.items, merged->order_scratch.items, count);
    for (uint32_t i = 0; i < count; i++)
        merged->chunk_edits.items[i] = merged->order.items[i].pointer;
    return true;
}

/* --------------------------------------------------------------------------------------- on one thread */

static bool merge_serially(quern__merged *merged, const quern__gathered *gathered,
                           const quern__storage *storage)
{
    quern__scratch *scratch = merged->scratches.items[0];
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        quern__gathered_fetch_ahead(gathered, i);
        walk_stream(merged, storage, scratch, gathered, i, WALK_MERGE);
    }
    for (uint32_t i = 0; i < merged->edits.count && !scratch->is_out_of_memory; i++)
        group_edits(merged, i);
    return !scratch->is_out_of_memory && list_chunk_edits(merged, &storage->allocator);
}

/* ----------------------------------------------------------------------------------- on several threads */

typedef struct merging {
    quern__merged *merged;
    const quern__gathered *gathered;
    const quern__storage *storage;
} merging;

static void note_streams(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const merging *it = argument;
    quern__scratch *scratch = it->merged->scratches.items[worker_index];
    for (uint32_t i = begin; i < end; i++) {
        walk_stream(it->merged, it->storage, scratch, it->gathered, i, WALK_NOTE);
        const uint32_t created = it->merged->streams.items[i].create_edits;
        if (created != QUERN__EDITS_NONE && !scratch->is_out_of_memory) group_edits(it->merged, created);
    }
}

/* Appends each span to the list of its chunk's edits. */
static bool link_spans(quern__merged *merged, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < merged->streams.count; i++) {
        const quern__merged_stream *walked = &merged->streams.items[i];
        for (uint32_t k = 0; k < walked->span_count; k++) {
            quern__command_span *span = &walked->scratch->spans.items[walked->first_span + k];
            quern__chunk_edits *edits = edits_of_chunk(merged, allocator, span->chunk);
            if (edits == NULL) return false;
            if (edits->last_span != NULL)
                edits->last_span->next = span;
            else
                edits->first_span = span;
            edits->last_span = span;
        }
    }
    return true;
}

static void merge_span(walk *it, const quern__command_span *span)
{
    it->gathered = span->stream;
    it->batch = span->batch;
    uint32_t begin = span->first_item, left = span->item_count;
    it->number = span->first_item_number - begin;
    while (true) {
        uint32_t in_batch = it->batch->item_count - begin;
        uint32_t count = left < in_batch ? left : in_batch;
        merge_items(it, begin, begin + count, WALK_SPAN);
        left -= count;
        if (left == 0) return;
        it->number += it->batch->item_count;
        it->batch = quern__batch_next(it->batch);
        begin = 0;
    }
}

static void merge_chunks(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const merging *task = argument;
    const quern__gathered_stream *first_stream = task->gathered->streams.items;
    walk it = {.merged = task->merged,
               .storage = task->storage,
               .scratch = task->merged->scratches.items[worker_index]};
    for (uint32_t i = begin; i < end && !it.scratch->is_out_of_memory; i++) {
        quern__chunk_edits *edits = task->merged->chunk_edits.items[i];
        if (!enter_chunk(&it, edits)) return;
        for (quern__command_span *span = edits->first_span; span != NULL; span = span->next) {
            it.first_created = task->merged->streams.items[span->stream - first_stream].first_created;
            merge_span(&it, span);
        }
        if (!it.scratch->is_out_of_memory)
            group_edits(task->merged, (uint32_t)(edits - task->merged->edits.items));
    }
}

static bool any_out_of_memory(const quern__merged *merged)
{
    for (uint32_t i = 0; i < merged->used_scratch_count; i++)
        if (merged->scratches.items[i]->is_out_of_memory) return true;
    return false;
}

static bool merge_in_parallel(quern__merged *merged, const quern__gathered *gathered,
                              const quern__storage *storage, const quern__executor *executor)
{
    merging it = {.merged = merged, .gathered = gathered, .storage = storage};
    quern__executor_run(executor, gathered->streams.count, STREAMS_PER_CALL, note_streams, &it);
    if (any_out_of_memory(merged) || !link_spans(merged, &storage->allocator) ||
        !list_chunk_edits(merged, &storage->allocator))
        return false;
    quern__executor_run(executor, merged->chunk_edits.count, CHUNKS_PER_CALL, merge_chunks, &it);
    return !any_out_of_memory(merged);
}

/* ---------------------------------------------------------------------------------------------- merge */

void quern__merged_clear_used(quern__merged *merged, const quern__storage *storage, bool holds_sequences)
{
    merged->first_stamp += merged->edits.count;
    merged->edits.count = 0;
    merged->chunk_edits.count = 0;
    merged->arena_block = 0;
    merged->arena_used_bytes = 0;
    for (uint32_t i = 0; i < merged->used_scratch_count; i++) {
        quern__scratch *scratch = merged->scratches.items[i];
        scratch->sequences.archetypes_version = storage->archetypes_version;
        if (QUERN__UNLIKELY(!holds_sequences)) quern__sequences_clear(&scratch->sequences);
        scratch->earlier_items.count = 0;
        scratch->view_edits.count = 0;
        scratch->earlier_views.count = 0;
        scratch->groups.count = 0;
        scratch->row_ranges.count = 0;
        scratch->spans.count = 0;
        scratch->drops.count = 0;
        scratch->is_out_of_memory = false;
    }
    merged->used_scratch_count = 0;
}

/* Grows the lists that depend on the numbers of chunks and workers. Returns false if out of memory. */
static QUERN__SLOW_PATH bool grow(quern__merged *merged, const quern_allocator *allocator,
                                  uint32_t chunk_count, uint32_t worker_count)
{
    if (!quern__array_reserve(allocator, &merged->scratches, worker_count) ||
        !quern__array_reserve(allocator, &merged->edits_of_chunk, chunk_count))
        return false;
    while (merged->edits_of_chunk.count < chunk_count)
        merged->edits_of_chunk.items[merged->edits_of_chunk.count++] = 0;
    while (merged->scratches.count < worker_count) {
        quern__scratch *scratch = quern__allocate(allocator, sizeof *scratch, MERGE_ALIGNMENT_BYTES);
        if (scratch == NULL) return false;
        *scratch = (quern__scratch){.sequences = {.allocator = allocator}};
        merged->scratches.items[merged->scratches.count++] = scratch;
    }
    return true;
}

/* Prepares the lists and the scratch of each worker. Returns false if out of memory. */
static bool begin(quern__merged *merged, const quern__storage *storage, uint32_t worker_count)
{
    const uint32_t chunk_count = storage->slabs.list.count * QUERN__SLAB_CHUNKS;
    if ((merged->edits_of_chunk.count < chunk_count || merged->scratches.count < worker_count) &&
        !grow(merged, &storage->allocator, chunk_count, worker_count))
        return false;
    for (uint32_t i = 0; i < worker_count; i++)
        quern__sequences_begin(&merged->scratches.items[i]->sequences, storage->archetypes_version);
    merged->used_scratch_count = worker_count;
    return true;
}

/* Lists the streams and reserves edits for the entities that they create. Builds with QUERN_CHECKS clear these
 * edits, to check that each is written exactly once. Returns false if out of memory. */
static bool list_streams(quern__merged *merged, const quern_allocator *allocator,
                         const quern__gathered *gathered)
{
    uint32_t first_created = 0;
    if (!quern__array_reserve(allocator, &merged->streams, gathered->streams.count)) return false;
    for (uint32_t i = 0; i < gathered->streams.count; i++) {
        const quern__stream *stream = gathered->streams.items[i].stream;
        const uint32_t create_count = stream->create_count;
        const bool has_edits = create_count > stream->member_count;
        merged->streams.items[merged->streams.count++] =
            (quern__merged_stream){.create_edits = has_edits ? merged->edits.count : QUERN__EDITS_NONE,
                                   .first_created = first_created};
        first_created += create_count;
        if (!has_edits) continue;
        quern__chunk_edits *edits = add_edits(merged, allocator, NULL, create_count);
        if (edits == NULL) return false;
        edits->first_created = first_created - create_count;
        if (QUERN_CHECKS) memset(edits->rows, 0, create_count * sizeof *edits->rows);
    }
    return true;
}

quern_result quern__commands_merge(quern__merged *merged, const quern__resolved *resolved,
                                   const quern__gathered *gathered, const quern__storage *storage,
                                   const quern__executor *executor)
{
    merged->spawned = resolved->spawned.count > 0 ? resolved : NULL;
    const bool lists_streams = executor != NULL || gathered->create_count > 0;
    merged->streams.count = 0;
    bool has_memory = begin(merged, storage, executor != NULL ? executor->worker_count : 1) &&
                      (!lists_streams || list_streams(merged, &storage->allocator, gathered));
    merged->create_edits_count = merged->edits.count;
    if (has_memory)
        has_memory = executor != NULL ? merge_in_parallel(merged, gathered, storage, executor)
                                      : merge_serially(merged, gathered, storage);
    if (has_memory) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to merge the commands of %u streams",
                       gathered->streams.count);
}
