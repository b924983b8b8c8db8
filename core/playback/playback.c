/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A sync point from its recorders to its report: drops, gathering, and the order of all stages (playback.h). */
#include "core/playback/playback.h"

#include "core/reactions/hook.h"

/* --------------------------------------------------------------------------------------------- drops */

static bool is_before(const quern__drop *a, const quern__drop *b)
{
    if (a->first_key != b->first_key) return a->first_key < b->first_key;
    return a->first_item_number < b->first_item_number;
}

bool quern__drops_add(quern__drops *drops, const quern_allocator *allocator, uint32_t first,
                      const quern__drop *drop)
{
    for (uint32_t i = 0; i < drops->count; i++) {
        quern__drop *known = &drops->items[i];
        if (known->system_number != drop->system_number || known->reason != drop->reason) continue;
        uint64_t count = known->count + drop->count;
        if (i >= first && is_before(drop, known)) *known = *drop;
        known->count = count;
        return true;
    }
    if (!quern__array_reserve(allocator, drops, drops->count + 1)) return false;
    drops->items[drops->count++] = *drop;
    return true;
}

/* ----------------------------------------------------------------------------------------- gathering */

/* Input: the recorders. Output: their streams in order. Can fail: memory for the lists. */

void quern__gathered_release(quern__gathered *gathered, const quern_allocator *allocator)
{
    quern__array_release(allocator, &gathered->streams);
    quern__array_release(allocator, &gathered->order);
    quern__array_release(allocator, &gathered->order_scratch);
}

/* Closes a recorder and appends its streams. Updates is_sorted. Returns false if out of memory. */
static bool list_streams(quern__gathered *gathered, const quern__storage *storage, quern_commands *recorder)
{
    quern__commands_close(recorder);
    const uint32_t stream_count = recorder->streams.count;
    if (stream_count == 0) return true;
    if (!quern__array_reserve(&storage->allocator, &gathered->streams,
                              gathered->streams.count + stream_count))
        return false;
    quern__gathered_stream *next = gathered->streams.items + gathered->streams.count;
    const uint64_t structure_version = storage->structure_version;
    quern__stream *stream = recorder->streams.items;
    for (const quern__stream *end = stream + stream_count; stream < end; stream++, next++) {
        gathered->is_sorted &= stream->origin.key >= gathered->last_key;
        gathered->last_key = stream->origin.key;
        gathered->item_count += stream->item_count;
        gathered->create_count += stream->create_count;
        gathered->command_count += stream->command_count;
        gathered->traits &= stream->traits;
        next->stream = stream;
        next->is_located = stream->structure_version == structure_version;
    }
    gathered->streams.count += stream_count;
    return true;
}

/* Sorts the listed streams by their keys. Returns false if out of memory. */
static bool sort_streams(quern__gathered *gathered, const quern__storage *storage)
{
    const quern_allocator *allocator = &storage->allocator;
    const uint32_t count = gathered->streams.count;
    if (!quern__array_reserve(allocator, &gathered->order, count) ||
        !quern__array_reserve(allocator, &gathered->order_scratch, count))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        quern__stream *stream = gathered->streams.items[i].stream;
        gathered->order.items[i] = (quern__sort_item){.key = stream->origin.key, .pointer = stream};
    }
    quern__sort(gathered->order.items, gathered->order_scratch.items, count);
    for (uint32_t i = 0; i < count; i++) {
        quern__stream *stream = gathered->order.items[i].pointer;
        gathered->streams.items[i] = (quern__gathered_stream){
            .stream = stream, .is_located = stream->structure_version == storage->structure_version};
    }
    return true;
}

quern_result quern__commands_gather(quern__gathered *gathered, const quern__storage *storage,
                                    quern__recorders recorders, bool accumulated)
{
    gathered->streams.count = 0;
    gathered->item_count = gathered->create_count = gathered->command_count = 0;
    gathered->traits = UINT8_MAX;
    gathered->is_sorted = true;
    gathered->last_key = 0;
    bool has_memory = true;
    for (uint32_t i = 0; i < recorders.count && has_memory; i++) {
        quern_commands *recorder = recorders.items[i];
        if (!accumulated)
            has_memory = list_streams(gathered, storage, recorder);
        else if (recorder->accumulator != NULL)
            has_memory = list_streams(gathered, storage, &recorder->accumulator->recorder);
    }
    if (has_memory && (gathered->is_sorted || sort_streams(gathered, storage))) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to gather command streams");
}

/* -------------------------------------------------------------------------------------- the sync point */

/* Fewer commands are applied before other threads would start. */
enum { PARALLEL_COMMANDS = 4096 };

void quern__playback_init(quern__playback *playback, quern__storage *storage)
{
    *playback = (quern__playback){
        .storage = storage, .parallel_command_count = PARALLEL_COMMANDS, .merged = {.first_stamp = 1}};
}

void quern__playback_release(quern__playback *playback)
{
    const quern_allocator *allocator = &playback->storage->allocator;
    quern__gathered_release(&playback->gathered, allocator);
    quern__merged_release(&playback->merged, allocator);
    quern__resolved_release(&playback->resolved, allocator);
    quern__destroy_and_create_release(&playback->destroy_and_create, allocator);
    quern__relating_destroy(playback->relating);
    quern__accumulating_destroy(playback->accumulating);
    quern__array_release(allocator, &playback->drops);
}

/* Runs the stages after relating, or a fast path instead. relating: NULL if the relate stage did not run; it may
 * ask for a repetition in *out_is_again. */
static quern_result change_rows(quern__playback *playback, quern__relating *relating,
                                const quern__executor *shared, const quern__executor *observer,
                                bool *out_is_again)
{
    quern__gathered *gathered = &playback->gathered;
    quern__merged *merged = &playback->merged;
    quern__resolved *resolved = &playback->resolved;
    *out_is_again = false;
    if ((gathered->traits & QUERN__TRAIT_IN_PLACE) != 0 && shared == NULL &&
        quern__gathered_is_in_place(gathered, playback->storage)) {
        quern__executor_begin_stage(observer, QUERN__STAGE_APPLY);
        quern__gathered_apply_in_place(gathered, playback->storage);
        return QUERN_OK;
    }
    if (relating == NULL && shared == NULL && !playback->disable_fast_paths &&
        quern__commands_apply_to_one(merged, resolved, gathered, playback->storage, observer))
        return QUERN_OK;
    bool is_applicable = false;
    quern_result result = QUERN_OK;
    if (QUERN__UNLIKELY(QUERN__MAY(gathered->traits, SPAWNS)))
        result = relating != NULL ? quern__spawned_reserve_rows(resolved, playback->storage)
                                  : quern__spawned_list(resolved, gathered, playback->storage);
    if (result != QUERN_OK) return result;
    /* merging counts the drops of the relate stage */
    if ((gathered->traits & QUERN__TRAIT_DESTROY_OR_CREATE) != 0 &&
        (relating == NULL || relating->drops.count == 0))
        result = quern__destroy_and_create_prepare(&playback->destroy_and_create, resolved, gathered,
                                                   playback->storage, &is_applicable);
    if (result != QUERN_OK) return result;
    if (is_applicable) {
        quern__executor_begin_stage(observer, QUERN__STAGE_APPLY);
        quern__destroy_and_create_apply(&playback->destroy_and_create, resolved, gathered,
                                        playback->storage, shared);
        playback->destroy_and_create_count++;
        return QUERN_OK;
    }
    quern__executor_begin_stage(observer, QUERN__STAGE_MERGE);
    result = quern__commands_merge(merged, resolved, gathered, playback->storage, shared);
    if (result == QUERN_OK && relating != NULL) result = quern__relating_count_drops(relating, merged);
    if (result != QUERN_OK) return result;
    quern__executor_begin_stage(observer, QUERN__STAGE_RESOLVE);
    result = quern__commands_resolve(resolved, merged, gathered, playback->storage, &playback->drops);
    if (result == QUERN_OK && relating != NULL && resolved->refused_count > 0)
        result = quern__relating_refuse(relating, gathered, merged, resolved, out_is_again);
    if (result != QUERN_OK || *out_is_again) return result;
    result = quern__resolved_reserve(resolved, gathered, playback->storage, false);
    if (result != QUERN_OK) return result;
    quern__executor_begin_stage(observer, QUERN__STAGE_APPLY);
    if (quern__hooks_are_used(playback->storage)) quern__merged_call_hooks(merged, playback->storage);
    quern__commands_apply(resolved, merged, gathered, playback->storage, shared);
    return QUERN_OK;
}

/* Runs the stages including relating, or a fast path instead. Repeats them without refused entities until none is
 * refused. */
static quern_result relate_and_change_rows(quern__playback *playback, const quern__executor *shared,
                                           const quern__executor *observer)
{
    if (playback->relating == NULL) playback->relating = quern__relating_create(playback->storage);
    quern__relating *relating = playback->relating;
    if (relating == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to relate entities");
    quern__relating_begin(relating, &playback->resolved);
    if (QUERN__LIKELY(!playback->disable_fast_paths) &&
        quern__commands_only_relate(relating, &playback->gathered, &playback->merged, &playback->resolved,
                                    &playback->drops, observer)) {
        playback->only_relates_count++;
        return QUERN_OK;
    }
    while (true) {
        bool is_again;
        quern_result result = quern__commands_relate(relating, &playback->gathered);
        if (result != QUERN_OK) return result;
        result = change_rows(playback, relating, shared, observer, &is_again);
        if (result == QUERN_OK && !is_again) {
            quern__relating_finish(relating, &playback->resolved);
            return QUERN_OK;
        }
        quern__relating_undo(relating, &playback->gathered);
        if (result != QUERN_OK) return result;
        quern__merged_clear(&playback->merged, playback->storage, false);
        quern__resolved_unreserve(&playback->resolved, playback->storage);
        quern__resolved_clear(&playback->resolved);
    }
}

/* The executor if there are enough commands to share, otherwise NULL. */
static const quern__executor *shared_executor(const quern__playback *playback,
                                              const quern__executor *executor, uint64_t command_count)
{
    const bool has_threads = executor != NULL && (executor->thread_count > 1 || executor->always_divides);
    return has_threads && command_count >= playback->parallel_command_count ? executor : NULL;
}

/* Runs all stages after gathering. */
static quern_result apply_commands(quern__playback *playback, const quern__executor *executor)
{
    quern__gathered *gathered = &playback->gathered;
    if (gathered->streams.count == 0) return QUERN_OK;
    const quern__executor *shared = shared_executor(playback, executor, gathered->command_count);
    if (QUERN__UNLIKELY(playback->disable_fast_paths))
        gathered->traits &= (uint8_t) ~(QUERN__TRAIT_IN_PLACE | QUERN__TRAIT_DESTROY_OR_CREATE);
    const bool relates = QUERN__MAY(gathered->traits, RELATES),
               destroys = QUERN__MAY(gathered->traits, DESTROYS);
    if (QUERN__UNLIKELY(relates || (playback->storage->has_attachments && destroys)))
        return relate_and_change_rows(playback, shared, executor);
    bool is_again;
    return change_rows(playback, NULL, shared, executor, &is_again);
}

/* Destroys the values that items still own, in the order of streams. */
static inline void destroy_values(const quern__gathered *gathered)
{
    if (QUERN__LIKELY(!QUERN__MAY(gathered->traits, OWNED))) return;
    for (uint32_t i = 0; i < gathered->streams.count; i++)
        quern__stream_destroy_values(gathered->streams.items[i].stream);
}

/* Applies commands, if any, and then accumulated values. */
static QUERN__SLOW_PATH quern_result apply_with_values(quern__playback *playback,
                                                       quern__recorders recorders,
                                                       const quern__executor *executor,
                                                       quern__playback_stats *stats)
{
    const quern__gathered *gathered = &playback->gathered;
    const uint32_t first = playback->drops.count;
    if (playback->accumulating == NULL)
        playback->accumulating = quern__accumulating_create(playback->storage);
    quern__accumulating *it = playback->accumulating;
    if (it == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to accumulate values");
    quern_result result = quern__accumulating_prepare(it, recorders, gathered, &playback->drops);
    playback->resolved.further_drop_count = it->max_drops;
    if (result == QUERN_OK) {
        result = apply_commands(playback, executor);
        if (result != QUERN_OK) quern__accumulating_undo(it);
    }
    playback->resolved.further_drop_count = 0;
    if (result != QUERN_OK) return result;
    quern__executor_begin_stage(executor, QUERN__STAGE_APPLY);
    quern__accumulating_apply(it, gathered->streams.count > 0 ? gathered : NULL,
                              playback->resolved.created.items, &playback->drops, first,
                              shared_executor(playback, executor, it->gathered.command_count));
    stats->command_count += it->gathered.command_count;
    stats->dropped_count += it->dropped_count;
    destroy_values(&it->gathered);
    return QUERN_OK;
}

/* Adds the counts and drops of a successful sync point. first: index of its first entry among the drops. */
static void report(quern__playback *playback, uint32_t first, quern__playback_stats *stats)
{
    const quern__resolved *resolved = &playback->resolved;
    stats->command_count += playback->gathered.command_count;
    stats->created_count += resolved->created_count;
    stats->destroyed_count += resolved->destroyed_count;
    stats->refused_count += resolved->refused_count;
    if (stats->refused_result == QUERN_OK) stats->refused_result = resolved->refused_result;
    for (uint32_t i = 0; i < playback->merged.used_scratch_count; i++) {
        const quern__drops *drops = &playback->merged.scratches.items[i]->drops;
        for (uint32_t k = 0; k < drops->count; k++) {
            stats->dropped_count += drops->items[k].count;
            quern__drops_add(&playback->drops, &playback->storage->allocator, first, &drops->items[k]);
        }
    }
    /* Insertion sort: the list is short, with one entry per reason and system that lost commands. */
    for (uint32_t i = first + 1; QUERN__UNLIKELY(i < playback->drops.count); i++) {
        const quern__drop drop = playback->drops.items[i];
        uint32_t at = i;
        for (; at > first && is_before(&drop, &playback->drops.items[at - 1]); at--)
            playback->drops.items[at] = playback->drops.items[at - 1];
        playback->drops.items[at] = drop;
    }
}

/* Values that items still own are destroyed in the order of streams, so that the order of hooks does not depend
 * on which recorder a stream is from. */
quern_result quern__playback_run(quern__playback *playback, quern__recorders recorders,
                                 const quern__executor *executor, quern__playback_stats *stats)
{
    const uint32_t first_drop = playback->drops.count;
    bool has_values = false;
    quern__executor_begin_stage(executor, QUERN__STAGE_GATHER);
    quern_result result = quern__commands_gather(&playback->gathered, playback->storage, recorders, false);
    for (uint32_t i = 0; i < recorders.count && !has_values; i++)
        has_values = quern__accumulator_is_used(recorders.items[i]);
    /* what could not be gathered is not listed, and its list does not end */
    quern__command_listener *listener = result == QUERN_OK ? playback->storage->command_listener : NULL;
    if (QUERN__UNLIKELY(listener != NULL)) listener->list(listener, &playback->gathered, 0);
    if (result == QUERN_OK && QUERN__MAY(playback->gathered.traits, SPAWNS))
        result = quern__clones_begin(&playback->resolved, &playback->gathered, playback->storage);
    if (result == QUERN_OK)
        result = QUERN__LIKELY(!has_values) ? apply_commands(playback, executor)
                                            : apply_with_values(playback, recorders, executor, stats);
    if (result == QUERN_OK) {
        report(playback, first_drop, stats);
        if (playback->on_created != NULL && playback->resolved.created_count > 0)
            playback->on_created(playback->on_created_argument, &playback->gathered,
                                 playback->resolved.created.items);
        if (QUERN__UNLIKELY(listener != NULL))
            listener->end(listener, &playback->gathered,
                          playback->resolved.created_count > 0 ? playback->resolved.created.items : NULL,
                          true);
        destroy_values(&playback->gathered);
        for (uint32_t i = 0; i < recorders.count; i++)
            quern__commands_reset(recorders.items[i]);
    }
    if (QUERN__UNLIKELY(result != QUERN_OK)) {
        if (listener != NULL) listener->end(listener, &playback->gathered, NULL, false);
        quern__resolved_unreserve(&playback->resolved, playback->storage);
    }
    quern__merged_clear(&playback->merged, playback->storage,
                        result == QUERN_OK && playback->resolved.refused_count == 0);
    quern__resolved_clear(&playback->resolved);
    if (QUERN__UNLIKELY(playback->resolved.cloned_streams.count > 0))
        quern__clones_end(&playback->resolved, playback->storage);
    if (QUERN__LIKELY(result == QUERN_OK)) {
        quern__rows_gather_if_large(playback->storage);
        quern__hooks_after(playback->storage);
    }
    return result;
}

const quern__playback_calls quern__playback_calls_of_recorders = {.run = quern__playback_run};

/* ---------------------------------------------------------------------------------- kinds of commands */

#define CALLS(name, traits, read, set, play, ...) [QUERN__OPERATION_##name] = {read, set, play},
const quern__kind_calls quern__kind_calls_of[QUERN__OPERATION_COUNT] = {QUERN__COMMAND_KINDS(CALLS)};

/* A kind with the trait IN_PLACE must have a function `set`. */
#define HAS_FUNCTION(function) QUERN__TYPES_DIFFER(function, void *)
#define CHECK_SET(name, traits, read, set, ...)                                \
    _Static_assert(HAS_FUNCTION(set) || ((traits)&QUERN__TRAIT_IN_PLACE) == 0, \
                   #name " is IN_PLACE and has no function `set`");
QUERN__COMMAND_KINDS(CHECK_SET)
