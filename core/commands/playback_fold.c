/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Folding: from streams of commands to one program per entity.
 *
 * On one thread each stream is walked once, and each command goes to the edit of its entity at once. On
 * several threads the walk over a stream (streams are shared out) only notes which chunks its commands
 * touch, in *pieces*; then each sheet (sheets are shared out) walks the pieces that concern it, in the
 * order of streams. Provisional handles are good in their own stream only, so what is created is folded in
 * the first walk in either case. */

#include "core/base/bitset.h"
#include "core/commands/playback.h"

enum { STREAMS_AHEAD = 4, STREAMS_PER_CALL = 4, SHEETS_PER_CALL = 4 };

/* -------------------------------------------------------------------------------------------- edits */

/* What came of handing a command to an edit. */
typedef enum outcome { FOLDED, DROPPED, NO_MEMORY } outcome;

static bool push_link(quern__scratch *scratch, quern__edit *edit)
{
    if (!quern__array_reserve(scratch->programs.allocator, &scratch->links, scratch->links.count + 1))
        return false;
    scratch->links.items[scratch->links.count] =
        (quern__link){.item = edit->item, .earlier = edit->earlier};
    edit->earlier = scratch->links.count++;
    return true;
}

/* Equal ones are the same, for each recorder has its own: programs, and with them the order of hooks, must
 * not tell who recorded. */
static inline bool is_same(const quern__operation *a, const quern__operation *b)
{
    return a == b || (a->key == b->key && quern__operation_equal(a, b));
}

/* A later command on an entity. */
static inline outcome advance(quern__scratch *scratch, quern__edit *edit, const quern__operation *operation,
                              char *item)
{
    const quern__program_node *node = &scratch->programs.nodes.items[edit->node];
    if (node->is_destroyed) return DROPPED;
    if (quern__operation_replaces_itself(operation) && is_same(node->operation, operation)) {
        edit->item = item;
        return FOLDED;
    }
    uint32_t to = quern__programs_step(&scratch->programs, edit->node, operation);
    if (to == QUERN__NODE_NONE || !push_link(scratch, edit)) return NO_MEMORY;
    edit->node = to;
    edit->item = item;
    return FOLDED;
}

/* -------------------------------------------------------------------------------------------- drops */

static bool is_before(uint64_t key, uint64_t number, const quern__drop *drop)
{
    return key < drop->first_key || (key == drop->first_key && number < drop->first_item_number);
}

void quern__scratch_drop(quern__scratch *scratch, const quern__stream *stream, uint64_t item_number,
                         quern_entity entity, uint64_t command_count, quern_drop_reason reason)
{
    scratch->dropped_count += command_count;
    quern__drop fresh = {.source = stream->origin.source,
                         .reason = reason,
                         .count = command_count,
                         .first_key = stream->origin.key,
                         .first_item_number = item_number,
                         .first_entity = entity};
    for (uint32_t i = 0; i < scratch->drops.count; i++) {
        quern__drop *drop = &scratch->drops.items[i];
        if (drop->source != fresh.source || drop->reason != reason) continue;
        uint64_t count = drop->count + command_count;
        if (is_before(fresh.first_key, item_number, drop)) *drop = fresh;
        drop->count = count;
        return;
    }
    if (quern__array_reserve(scratch->programs.allocator, &scratch->drops, scratch->drops.count + 1))
        scratch->drops.items[scratch->drops.count++] = fresh;
    else
        scratch->is_out_of_memory = true;
}

/* ------------------------------------------------------------------------------------- walking items */

/* A walk over a stream, and what it has at hand. */
typedef struct walk {
    quern__playback *playback;
    quern__scratch *scratch;
    quern__sorted_stream *sorted;
    quern__edit *created; /* the edits of what the stream creates */
    uint32_t create_root;
    quern__run *run;
    uint64_t number;       /* of the run's first item in the stream */
    uint64_t piece_number; /* of the first item of the latest piece */
    /* of the chunk that the latest entity was in */
    quern__chunk *chunk; /* or NULL */
    uint64_t *touched;
    quern__edit *edits;
    uint32_t root;
    uint32_t first_node; /* where rows come that begin with first_operation */
    const quern__operation *first_operation;
} walk;

/* How a walk treats entities that live. */
typedef enum walk_mode {
    WALK_FOLD, /* any chunk: finds its sheet */
    WALK_NOTE, /* notes pieces */
    WALK_PIECE /* of one sheet: provisional handles have been folded, and dead ones counted */
} walk_mode;

static void drop_item(const walk *it, const quern__item *item, uint32_t i, quern_drop_reason reason)
{
    quern__scratch_drop(it->scratch, it->sorted->stream, it->number + i, item->entity,
                        it->run->operation->command_count, reason);
}

static void use_sheet(walk *it, const quern__sheet *sheet)
{
    it->chunk = sheet->chunk;
    it->touched = sheet->touched;
    it->edits = sheet->edits;
    it->root = sheet->root;
    it->first_operation = NULL;
}

/* Sets the sheet's tree; false: no memory. */
static bool root_sheet(quern__sheet *sheet, quern__scratch *scratch)
{
    sheet->scratch = scratch;
    sheet->root = quern__programs_root(&scratch->programs, sheet->archetype);
    scratch->is_out_of_memory |= sheet->root == QUERN__NODE_NONE;
    return sheet->root != QUERN__NODE_NONE;
}

static bool enter_chunk(walk *it, quern__chunk *chunk)
{
    quern__sheet *sheet = quern__playback_sheet(it->playback, chunk);
    if (sheet == NULL || (sheet->scratch == NULL && !root_sheet(sheet, it->scratch))) {
        it->scratch->is_out_of_memory = true;
        return false;
    }
    use_sheet(it, sheet);
    return true;
}

/* The first command on a row. */
static inline outcome begin_edit(walk *it, quern__edit *edit, uint32_t row, quern__item *item)
{
    if (it->run->operation != it->first_operation) {
        it->first_node = quern__programs_step(&it->scratch->programs, it->root, it->run->operation);
        it->first_operation = it->run->operation;
    }
    quern__bitset_add(it->touched, row);
    *edit = (quern__edit){.item = (char *)item, .node = it->first_node, .earlier = QUERN__LINK_NONE};
    return it->first_node != QUERN__NODE_NONE ? FOLDED : NO_MEMORY;
}

static inline outcome fold_row(walk *it, uint32_t row, quern__item *item)
{
    quern__edit *edit = &it->edits[row];
    if (!quern__bitset_has(it->touched, row)) return begin_edit(it, edit, row, item);
    return advance(it->scratch, edit, it->run->operation, (char *)item);
}

static void finish_item(const walk *it, outcome result, const quern__item *item, uint32_t i)
{
    if (result == NO_MEMORY) it->scratch->is_out_of_memory = true;
    if (result == DROPPED) drop_item(it, item, i, QUERN_DROP_DESTROYED);
}

/* Begins a piece at the i-th item of the run. */
static void begin_piece(walk *it, quern__chunk *chunk, uint32_t i)
{
    quern__scratch *scratch = it->scratch;
    if (!quern__array_reserve(scratch->programs.allocator, &scratch->pieces, scratch->pieces.count + 1)) {
        scratch->is_out_of_memory = true;
        return;
    }
    it->chunk = chunk;
    it->piece_number = it->number + i;
    scratch->pieces.items[scratch->pieces.count++] = (quern__piece){.chunk = chunk,
                                                                    .run = it->run,
                                                                    .first_item = i,
                                                                    .stream = it->sorted,
                                                                    .first_item_number = it->piece_number};
    it->sorted->piece_count++;
}

static inline void note_row(walk *it, quern__chunk *chunk, uint32_t i)
{
    if (chunk != it->chunk) begin_piece(it, chunk, i);
    if (chunk == it->chunk)
        it->scratch->pieces.items[it->scratch->pieces.count - 1].item_count =
            (uint32_t)(it->number + i + 1 - it->piece_number);
}

/* An item whose entity had a location when it was recorded. */
static inline void fold_real(walk *it, quern__item *item, uint32_t i, walk_mode mode)
{
    uintptr_t location = item->location;
    if (QUERN__UNLIKELY(!it->sorted->is_located)) {
        const quern__record *record = quern__entities_find(&it->playback->storage->entities, item->entity);
        if (record == NULL && mode != WALK_PIECE) drop_item(it, item, i, QUERN_DROP_DEAD);
        if (record == NULL) return;
        location = record->location;
    }
    quern__chunk *chunk = quern__chunk_of(location);
    if (mode == WALK_NOTE) {
        note_row(it, chunk, i);
        return;
    }
    if (mode == WALK_FOLD && chunk != it->chunk && !enter_chunk(it, chunk)) return;
    outcome result = fold_row(it, quern__location_row(location), item);
    if (QUERN__UNLIKELY(result != FOLDED)) finish_item(it, result, item, i);
}

static void fold_provisional(const walk *it, quern__item *item, uint32_t i)
{
    quern__edit *edit = &it->created[quern_entity_index(item->entity)];
    outcome result = advance(it->scratch, edit, it->run->operation, (char *)item);
    if (result != FOLDED) finish_item(it, result, item, i);
}

static void fold_creates(const walk *it)
{
    const quern__operation *operation = it->run->operation;
    quern__item *item = quern__run_item(it->run, 0);
    uint32_t node = quern__programs_step(&it->scratch->programs, it->create_root, operation);
    if (node == QUERN__NODE_NONE) it->scratch->is_out_of_memory = true;
    uint32_t first = quern_entity_index(item->entity);
    for (uint32_t i = 0; i < it->run->item_count; i++, item = quern__item_next(item, operation))
        it->created[first + i] =
            (quern__edit){.item = (char *)item, .node = node, .earlier = QUERN__LINK_NONE};
}

/* The items [begin, end) of the run. */
static inline void fold_items(walk *it, uint32_t begin, uint32_t end, walk_mode mode)
{
    const quern__operation *operation = it->run->operation;
    if (operation->kind == QUERN__OPERATION_CREATE) {
        if (mode != WALK_PIECE) fold_creates(it);
        return;
    }
    quern__item *item = quern__run_item(it->run, begin);
    for (uint32_t i = begin; i < end && !it->scratch->is_out_of_memory; i++) {
        if (item->location != 0)
            fold_real(it, item, i, mode);
        else if (mode != WALK_PIECE)
            fold_provisional(it, item, i);
        item = quern__item_next(item, operation);
    }
}

static inline void fold_stream(walk *it, walk_mode mode)
{
    const quern__stream *stream = it->sorted->stream;
    it->run = stream->first;
    it->number = 0;
    for (uint32_t i = 0; i < stream->run_count && !it->scratch->is_out_of_memory; i++) {
        if (i > 0) {
            it->number += it->run->item_count;
            it->run = quern__run_next(it->run);
        }
        fold_items(it, 0, it->run->item_count, mode);
    }
}

/* -------------------------------------------------------------------------------------------- sheets */

static bool is_touched(const quern__sheet *sheet, uint32_t row)
{
    return row < sheet->row_count && (sheet->touched == NULL || quern__bitset_has(sheet->touched, row));
}

/* The first touched row from this one on; row_count when there is none. */
static uint32_t find_touched(const quern__sheet *sheet, uint32_t row)
{
    if (sheet->touched == NULL || row >= sheet->row_count) return row;
    uint32_t word = row / 64;
    uint64_t bits = sheet->touched[word] & ~0ull << row % 64;
    uint32_t word_count = (sheet->row_count + 63) / 64;
    while (bits == 0) {
        if (++word == word_count) return sheet->row_count;
        bits = sheet->touched[word];
    }
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* The tally of a program in this sheet. NULL: no memory. */
static quern__tally *find_tally(quern__sheet *sheet, uint32_t sheet_number, uint32_t node_index)
{
    quern__scratch *scratch = sheet->scratch;
    quern__program_node *node = &scratch->programs.nodes.items[node_index];
    if (node->counted_sheet == sheet_number) return &scratch->tallies.items[node->tally];
    if (!quern__array_reserve(scratch->programs.allocator, &scratch->tallies, scratch->tallies.count + 1))
        return NULL;
    node->counted_sheet = sheet_number;
    node->tally = scratch->tallies.count++;
    scratch->tallies.items[node->tally] = (quern__tally){.node = node_index};
    return &scratch->tallies.items[node->tally];
}

/* One more run of rows with the same program, from this row on. False: no memory. */
static bool count_run(quern__sheet *sheet, uint32_t sheet_number, uint32_t row, uint32_t *out_end)
{
    quern__scratch *scratch = sheet->scratch;
    uint32_t node = sheet->edits[row].node, end = row + 1;
    while (is_touched(sheet, end) && sheet->edits[end].node == node)
        end++;
    quern__tally *tally = find_tally(sheet, sheet_number, node);
    if (tally == NULL ||
        !quern__array_reserve(scratch->programs.allocator, &scratch->runs, scratch->runs.count + 1))
        return false;
    tally->count += end - row;
    scratch->runs.items[scratch->runs.count++] = (quern__row_run){
        .row = row, .count = end - row, .tally = (uint32_t)(tally - scratch->tallies.items)};
    *out_end = end;
    return true;
}

/* Lists the sheet's runs of rows, and counts how many rows have each program, in the order of their first
 * rows. */
static void count_sheet(const quern__playback *playback, quern__sheet *sheet)
{
    quern__scratch *scratch = sheet->scratch;
    uint32_t number = (uint32_t)(sheet - playback->sheets.items);
    sheet->first_tally = scratch->tallies.count;
    sheet->first_run = scratch->runs.count;
    uint32_t row = find_touched(sheet, 0);
    while (row < sheet->row_count && !scratch->is_out_of_memory) {
        if (!count_run(sheet, number, row, &row)) scratch->is_out_of_memory = true;
        row = find_touched(sheet, row);
    }
    sheet->tally_count = scratch->tallies.count - sheet->first_tally;
    sheet->run_count = scratch->runs.count - sheet->first_run;
}

/* -------------------------------------------------------------------------------------------- streams */

static void walk_stream(quern__playback *playback, quern__scratch *scratch, quern__sorted_stream *sorted,
                        walk_mode mode)
{
    walk it = {.playback = playback, .scratch = scratch, .sorted = sorted};
    sorted->scratch = scratch;
    sorted->first_piece = scratch->pieces.count;
    if (sorted->create_sheet != QUERN__SHEET_NONE) {
        quern__sheet *sheet = &playback->sheets.items[sorted->create_sheet];
        sheet->scratch = scratch;
        it.created = sheet->edits;
        it.create_root = quern__programs_root(&scratch->programs, NULL);
        if (it.create_root == QUERN__NODE_NONE) scratch->is_out_of_memory = true;
    }
    if (scratch->is_out_of_memory) return;
    if (mode == WALK_NOTE)
        fold_stream(&it, WALK_NOTE);
    else
        fold_stream(&it, WALK_FOLD);
}

static void count_created(quern__playback *playback, const quern__sorted_stream *sorted)
{
    if (sorted->create_sheet != QUERN__SHEET_NONE && !sorted->scratch->is_out_of_memory)
        count_sheet(playback, &playback->sheets.items[sorted->create_sheet]);
}

static bool any_out_of_memory(const quern__playback *playback)
{
    for (uint32_t i = 0; i < playback->scratches.count; i++)
        if (playback->scratches.items[i]->is_out_of_memory) return true;
    return false;
}

/* Lists the sheets of chunks in their order, and those of creates in that of streams. */
static bool sort_sheets(quern__playback *playback)
{
    const quern_allocator *allocator = &playback->storage->allocator;
    uint32_t count = playback->sheets.count;
    if (!quern__array_reserve(allocator, &playback->order, count) ||
        !quern__array_reserve(allocator, &playback->order_scratch, count) ||
        !quern__array_reserve(allocator, &playback->sorted_sheets, count) ||
        !quern__array_reserve(allocator, &playback->create_sheets, count))
        return false;
    uint32_t chunks = 0;
    for (uint32_t i = 0; i < count; i++) {
        quern__sheet *sheet = &playback->sheets.items[i];
        if (sheet->chunk == NULL)
            playback->create_sheets.items[playback->create_sheets.count++] = sheet;
        else
            playback->order.items[chunks++] = (quern__sort_item){
                .key = (uint64_t)sheet->archetype->index << 32 | sheet->chunk->index, .pointer = sheet};
    }
    quern__sort(playback->order.items, playback->order_scratch.items, chunks);
    for (uint32_t i = 0; i < chunks; i++)
        playback->sorted_sheets.items[playback->sorted_sheets.count++] = playback->order.items[i].pointer;
    return true;
}

/* --------------------------------------------------------------------------------------- on one thread */

/* Headers of chunks all fall on the same few sets of the caches, so each is waited for unless it is
 * fetched ahead. */
static void fetch_first_chunk(const quern__sorted_stream *sorted)
{
    const quern__item *item = quern__run_item(sorted->stream->first, 0);
    if (item->location != 0 && sorted->is_located) __builtin_prefetch(quern__chunk_of(item->location));
}

static bool fold_serially(quern__playback *playback)
{
    quern__scratch *scratch = playback->scratches.items[0];
    for (uint32_t i = 0; i < playback->streams.count; i++) {
        if (i + STREAMS_AHEAD < playback->streams.count)
            fetch_first_chunk(&playback->streams.items[i + STREAMS_AHEAD]);
        walk_stream(playback, scratch, &playback->streams.items[i], WALK_FOLD);
    }
    if (scratch->is_out_of_memory || !sort_sheets(playback)) return false;
    for (uint32_t i = 0; i < playback->streams.count; i++)
        count_created(playback, &playback->streams.items[i]);
    for (uint32_t i = 0; i < playback->sorted_sheets.count; i++)
        count_sheet(playback, playback->sorted_sheets.items[i]);
    return !scratch->is_out_of_memory;
}

/* ----------------------------------------------------------------------------------- on several threads */

static void note_streams(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    quern__playback *playback = argument;
    quern__scratch *scratch = playback->scratches.items[worker_index];
    for (uint32_t i = begin; i < end; i++) {
        walk_stream(playback, scratch, &playback->streams.items[i], WALK_NOTE);
        count_created(playback, &playback->streams.items[i]);
    }
}

/* Hands a piece to the sheet of its chunk, behind those that the sheet has. */
static bool link_piece(quern__playback *playback, quern__piece *piece)
{
    quern__sheet *sheet = quern__playback_sheet(playback, piece->chunk);
    if (sheet == NULL) return false;
    if (sheet->last_piece != NULL)
        sheet->last_piece->next = piece;
    else
        sheet->first_piece = piece;
    sheet->last_piece = piece;
    return true;
}

static bool link_pieces(quern__playback *playback)
{
    for (uint32_t i = 0; i < playback->streams.count; i++) {
        const quern__sorted_stream *sorted = &playback->streams.items[i];
        for (uint32_t k = 0; k < sorted->piece_count; k++)
            if (!link_piece(playback, &sorted->scratch->pieces.items[sorted->first_piece + k]))
                return false;
    }
    return true;
}

static void fold_piece(walk *it, const quern__piece *piece)
{
    it->sorted = piece->stream;
    it->run = piece->run;
    uint32_t begin = piece->first_item, left = piece->item_count;
    it->number = piece->first_item_number - begin;
    while (true) {
        uint32_t in_run = it->run->item_count - begin;
        uint32_t count = left < in_run ? left : in_run;
        fold_items(it, begin, begin + count, WALK_PIECE);
        left -= count;
        if (left == 0) return;
        it->number += it->run->item_count;
        it->run = quern__run_next(it->run);
        begin = 0;
    }
}

static void fold_sheets(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    quern__playback *playback = argument;
    walk it = {.playback = playback, .scratch = playback->scratches.items[worker_index]};
    for (uint32_t i = begin; i < end && !it.scratch->is_out_of_memory; i++) {
        quern__sheet *sheet = playback->sorted_sheets.items[i];
        if (!root_sheet(sheet, it.scratch)) return;
        use_sheet(&it, sheet);
        for (quern__piece *piece = sheet->first_piece; piece != NULL; piece = piece->next)
            fold_piece(&it, piece);
        if (!it.scratch->is_out_of_memory) count_sheet(playback, sheet);
    }
}

static bool fold_in_parallel(quern__playback *playback)
{
    quern__executor_run(playback->executor, playback->streams.count, STREAMS_PER_CALL, note_streams,
                        playback);
    if (any_out_of_memory(playback) || !link_pieces(playback) || !sort_sheets(playback)) return false;
    quern__executor_run(playback->executor, playback->sorted_sheets.count, SHEETS_PER_CALL, fold_sheets,
                        playback);
    return !any_out_of_memory(playback);
}

quern_result quern__playback_fold(quern__playback *playback, uint64_t command_count)
{
    bool done = playback->executor != NULL ? fold_in_parallel(playback) : fold_serially(playback);
    if (done) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to fold %llu commands",
                       (unsigned long long)command_count);
}
