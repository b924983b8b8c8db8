/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/commands/playback.h"

#include "core/base/bitset.h"

enum {
    ARENA_BLOCK_BYTES = 256 * 1024,
    ARENA_ALIGNMENT_BYTES = 64,
    /* Fewer commands than this are applied before other threads have come. */
    PARALLEL_COMMANDS = 4096
};

void quern__playback_init(quern__playback *playback, quern__storage *storage)
{
    *playback = (quern__playback){.storage = storage, .parallel_command_count = PARALLEL_COMMANDS};
}

static void release_scratch(quern__scratch *scratch, const quern_allocator *allocator)
{
    quern__programs_release(&scratch->programs);
    quern__array_release(allocator, &scratch->links);
    quern__array_release(allocator, &scratch->tallies);
    quern__array_release(allocator, &scratch->runs);
    quern__array_release(allocator, &scratch->pieces);
    quern__array_release(allocator, &scratch->drops);
    quern__release(allocator, scratch, sizeof *scratch, ARENA_ALIGNMENT_BYTES);
}

void quern__playback_release(quern__playback *playback)
{
    const quern_allocator *allocator = &playback->storage->allocator;
    for (uint32_t i = 0; i < playback->scratches.count; i++)
        release_scratch(playback->scratches.items[i], allocator);
    for (uint32_t i = 0; i < playback->arena.count; i++)
        quern__release(allocator, playback->arena.items[i].memory, playback->arena.items[i].size_bytes,
                       ARENA_ALIGNMENT_BYTES);
    quern__array_release(allocator, &playback->order);
    quern__array_release(allocator, &playback->order_scratch);
    quern__array_release(allocator, &playback->streams);
    quern__array_release(allocator, &playback->sheets);
    quern__array_release(allocator, &playback->sorted_sheets);
    quern__array_release(allocator, &playback->create_sheets);
    quern__array_release(allocator, &playback->flows);
    quern__array_release(allocator, &playback->flow_of_archetype);
    quern__array_release(allocator, &playback->gaps);
    quern__array_release(allocator, &playback->tails);
    quern__array_release(allocator, &playback->destroyed);
    quern__array_release(allocator, &playback->created);
    quern__array_release(allocator, &playback->scratches);
    quern__array_release(allocator, &playback->arena);
    quern__array_release(allocator, &playback->drops);
}

/* --------------------------------------------------------------------------------------------- arena */

/* Blocks double, so that sync points that grow a little from one to the next do not leave one behind
 * each. */
static bool arena_add(quern__playback *playback, size_t wanted_bytes)
{
    const quern_allocator *allocator = &playback->storage->allocator;
    size_t size_bytes = ARENA_BLOCK_BYTES;
    while (size_bytes < wanted_bytes)
        size_bytes *= 2;
    if (!quern__array_reserve(allocator, &playback->arena, playback->arena.count + 1)) return false;
    char *memory = quern__allocate(allocator, size_bytes, ARENA_ALIGNMENT_BYTES);
    if (memory == NULL) return false;
    playback->arena.items[playback->arena.count++] =
        (quern__arena_block){.memory = memory, .size_bytes = size_bytes};
    return true;
}

void *quern__playback_allocate(quern__playback *playback, size_t size_bytes, size_t zeroed_bytes)
{
    size_bytes = quern__align_up(size_bytes, ARENA_ALIGNMENT_BYTES);
    while (playback->arena_block < playback->arena.count &&
           playback->arena.items[playback->arena_block].size_bytes - playback->arena_used_bytes <
               size_bytes) {
        playback->arena_block++;
        playback->arena_used_bytes = 0;
    }
    if (playback->arena_block == playback->arena.count && !arena_add(playback, size_bytes)) return NULL;
    char *memory = playback->arena.items[playback->arena_block].memory + playback->arena_used_bytes;
    playback->arena_used_bytes += size_bytes;
    memset(memory, 0, zeroed_bytes);
    return memory;
}

/* -------------------------------------------------------------------------------------------- sheets */

static quern__sheet *sheet_add(quern__playback *playback, uint32_t row_count, bool has_bits)
{
    size_t bits_bytes = has_bits ? QUERN__BITSET_WORDS((size_t)row_count) * sizeof(uint64_t) : 0;
    if (!quern__array_reserve(&playback->storage->allocator, &playback->sheets, playback->sheets.count + 1))
        return NULL;
    char *memory =
        quern__playback_allocate(playback, bits_bytes + row_count * sizeof(quern__edit), bits_bytes);
    if (memory == NULL) return NULL;
    quern__sheet *sheet = &playback->sheets.items[playback->sheets.count++];
    *sheet = (quern__sheet){.row_count = row_count,
                            .touched = has_bits ? (uint64_t *)(void *)memory : NULL,
                            .edits = (quern__edit *)(void *)(memory + bits_bytes)};
    return sheet;
}

/* The index in a chunk's header is a guess: it counts when the sheet that it names is the chunk's. */
quern__sheet *quern__playback_sheet(quern__playback *playback, quern__chunk *chunk)
{
    if (chunk->sheet_index < playback->sheets.count &&
        playback->sheets.items[chunk->sheet_index].chunk == chunk)
        return &playback->sheets.items[chunk->sheet_index];
    uint32_t row_count = chunk->archetype->slots[chunk->index].row_count;
    quern__sheet *sheet = sheet_add(playback, row_count, true);
    if (sheet == NULL) return NULL;
    sheet->chunk = chunk;
    sheet->archetype = chunk->archetype;
    chunk->sheet_index = (uint32_t)(sheet - playback->sheets.items);
    return sheet;
}

/* -------------------------------------------------------------------------------------------- gather */

static bool scratch_add(quern__playback *playback)
{
    const quern_allocator *allocator = &playback->storage->allocator;
    if (!quern__array_reserve(allocator, &playback->scratches, playback->scratches.count + 1)) return false;
    quern__scratch *scratch = quern__allocate(allocator, sizeof *scratch, ARENA_ALIGNMENT_BYTES);
    if (scratch == NULL) return false;
    *scratch = (quern__scratch){.programs = {.allocator = allocator}};
    playback->scratches.items[playback->scratches.count++] = scratch;
    return true;
}

static bool reserve_lists(quern__playback *playback, uint32_t stream_count)
{
    const quern_allocator *allocator = &playback->storage->allocator;
    while (playback->scratches.count < quern__executor_thread_count(playback->executor))
        if (!scratch_add(playback)) return false;
    return quern__array_reserve(allocator, &playback->order, stream_count) &&
           quern__array_reserve(allocator, &playback->order_scratch, stream_count) &&
           quern__array_reserve(allocator, &playback->streams, stream_count);
}

static bool list_stream(quern__playback *playback, quern__stream *stream)
{
    quern__sorted_stream *sorted = &playback->streams.items[playback->streams.count++];
    *sorted = (quern__sorted_stream){
        .stream = stream,
        .create_sheet = QUERN__SHEET_NONE,
        .is_located = stream->structure_version == playback->storage->structure_version,
    };
    if (stream->create_count == 0) return true;
    sorted->create_sheet = playback->sheets.count;
    return sheet_add(playback, stream->create_count, false) != NULL;
}

/* Lists all streams in order, each with a sheet for what it creates. */
static quern_result gather(quern__playback *playback, const quern_commands *recorders, uint32_t count,
                           uint32_t stream_count)
{
    bool done = reserve_lists(playback, stream_count);
    uint32_t listed = 0;
    for (uint32_t i = 0; done && i < count; i++)
        for (uint32_t k = 0; k < recorders[i].streams.count; k++) {
            quern__stream *stream = &recorders[i].streams.items[k];
            playback->order.items[listed++] =
                (quern__sort_item){.key = stream->origin.key, .pointer = stream};
        }
    if (done) quern__sort(playback->order.items, playback->order_scratch.items, stream_count);
    for (uint32_t i = 0; done && i < stream_count; i++)
        done = list_stream(playback, playback->order.items[i].pointer);
    if (done) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to gather %u command streams", stream_count);
}

/* --------------------------------------------------------------------------------------------- drops */

static bool is_drop_before(const quern__drop *a, const quern__drop *b)
{
    if (a->first_key != b->first_key) return a->first_key < b->first_key;
    return a->first_item_number < b->first_item_number;
}

/* One entry for each pair of source and reason; those before `first` are of earlier sync points. */
static void add_drop(quern__playback *playback, uint32_t first, const quern__drop *drop)
{
    for (uint32_t i = 0; i < playback->drops.count; i++) {
        quern__drop *known = &playback->drops.items[i];
        if (known->source != drop->source || known->reason != drop->reason) continue;
        uint64_t count = known->count + drop->count;
        if (i >= first && is_drop_before(drop, known)) *known = *drop;
        known->count = count;
        return;
    }
    playback->drops.items[playback->drops.count++] = *drop;
}

/* Moves the last entry before those, from `first` on, whose first drop came later. */
static void sort_in_last_drop(quern__playback *playback, uint32_t first, uint32_t last)
{
    quern__drop *drops = playback->drops.items;
    for (; last > first && is_drop_before(&drops[last], &drops[last - 1]); last--) {
        quern__drop drop = drops[last];
        drops[last] = drops[last - 1];
        drops[last - 1] = drop;
    }
}

/* The threads' drops become one list, which does not tell any more who counted. */
static void report_drops(quern__playback *playback, uint32_t first, quern__playback_stats *stats)
{
    for (uint32_t i = 0; i < playback->scratches.count; i++) {
        const quern__scratch *scratch = playback->scratches.items[i];
        stats->dropped_count += scratch->dropped_count;
        for (uint32_t k = 0; k < scratch->drops.count; k++)
            add_drop(playback, first, &scratch->drops.items[k]);
    }
    for (uint32_t i = first + 1; i < playback->drops.count; i++)
        sort_in_last_drop(playback, first, i);
}

void quern__playback_start_frame(quern__playback *playback)
{
    playback->drops.count = 0;
}

/* --------------------------------------------------------------------------------------------- run */

static void clear_scratch(quern__scratch *scratch)
{
    quern__programs_clear(&scratch->programs);
    scratch->links.count = 0;
    scratch->tallies.count = 0;
    scratch->runs.count = 0;
    scratch->pieces.count = 0;
    scratch->drops.count = 0;
    scratch->dropped_count = 0;
    scratch->is_out_of_memory = false;
}

static void clear(quern__playback *playback)
{
    for (uint32_t i = 0; i < playback->scratches.count; i++)
        clear_scratch(playback->scratches.items[i]);
    playback->streams.count = 0;
    playback->sheets.count = 0;
    playback->sorted_sheets.count = 0;
    playback->create_sheets.count = 0;
    playback->flows.count = 0;
    playback->destroyed.count = 0;
    playback->created.count = 0;
    playback->arena_block = 0;
    playback->arena_used_bytes = 0;
}

static void add_stats(quern__playback_stats *stats, const quern__playback_stats *found)
{
    stats->command_count += found->command_count;
    stats->dropped_count += found->dropped_count;
    stats->created_count += found->created_count;
    stats->destroyed_count += found->destroyed_count;
    stats->refused_count += found->refused_count;
    if (stats->refused_result == QUERN_OK) stats->refused_result = found->refused_result;
}

static quern_result apply(quern__playback *playback, const quern_commands *recorders, uint32_t count,
                          uint32_t stream_count, const quern__executor *watcher,
                          quern__playback_stats *found)
{
    quern__executor_begin_stage(watcher, QUERN__STAGE_GATHER);
    quern_result result = gather(playback, recorders, count, stream_count);
    quern__executor_begin_stage(watcher, QUERN__STAGE_MERGE);
    if (result == QUERN_OK) result = quern__playback_fold(playback, found->command_count);
    if (result != QUERN_OK) return result;
    quern__executor_begin_stage(watcher, QUERN__STAGE_RESOLVE);
    result = quern__playback_settle(playback, found);
    quern__executor_begin_stage(watcher, QUERN__STAGE_APPLY);
    if (result == QUERN_OK)
        quern__playback_commit(playback);
    else
        quern__playback_unsettle(playback);
    return result;
}

/* Values that nobody wanted go in the order of streams, and not by who recorded them. */
static void reset(const quern__playback *playback, quern_commands *recorders, uint32_t count)
{
    for (uint32_t i = 0; i < playback->streams.count; i++)
        quern__stream_destroy_values(playback->streams.items[i].stream);
    for (uint32_t i = 0; i < count; i++)
        quern__commands_reset(&recorders[i]);
}

quern_result quern__playback_run(quern__playback *playback, quern_commands *recorders, uint32_t count,
                                 const quern__executor *executor, quern__playback_stats *stats)
{
    quern__playback_stats found = {0};
    uint32_t stream_count = 0, first_drop = playback->drops.count;
    for (uint32_t i = 0; i < count; i++) {
        quern__commands_close(&recorders[i]);
        stream_count += recorders[i].streams.count;
        for (uint32_t k = 0; k < recorders[i].streams.count; k++)
            found.command_count += recorders[i].streams.items[k].command_count;
    }
    if (stream_count == 0) return QUERN_OK;
    bool is_parallel =
        quern__executor_is_shared(executor) && found.command_count >= playback->parallel_command_count;
    playback->executor = is_parallel ? executor : NULL;
    quern_result result = apply(playback, recorders, count, stream_count, executor, &found);
    if (result == QUERN_OK) {
        report_drops(playback, first_drop, &found);
        add_stats(stats, &found);
        reset(playback, recorders, count);
    }
    clear(playback);
    playback->executor = NULL;
    return result;
}
