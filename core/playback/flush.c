/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Commands recorded outside of frames: the recorders of a world, and the sync point that applies what they recorded, by a
 * flush or at the next frame.
 *
 * In order: recorders, applying, the public calls, messages. */
#include "core/playback/playback.h"

#include <stdio.h>

enum { COMMANDS_ALIGNMENT_BYTES = 128 };

/* Recorder and context of one worker of parallel queries. */
typedef struct query_worker {
    quern_commands recorder; /* first member: its address is that of the struct */
    quern__plain_context context;
} query_worker;

_Static_assert(_Alignof(quern__world_commands) <= COMMANDS_ALIGNMENT_BYTES, "commands are aligned enough");
_Static_assert(_Alignof(quern__plain_context) <= COMMANDS_ALIGNMENT_BYTES, "contexts are aligned enough");

static quern_result create_commands(quern_world *world)
{
    quern__world_commands *made =
        quern__allocate(&world->storage.allocator, sizeof *made, COMMANDS_ALIGNMENT_BYTES);
    if (made == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the recorder of a world");
    *made = (quern__world_commands){0};
    made->recorder_list[0] = &made->recorder;
    quern__commands_init(&made->recorder, &world->storage);
    quern__commands_list(&made->recorder);
    quern__playback_init(&made->playback, &world->storage);
    world->commands = made;
    return QUERN_OK;
}

static bool add_worker(quern_world *world)
{
    const quern_allocator *allocator = &world->storage.allocator;
    quern__world_commands *commands = world->commands;
    const uint32_t count = commands->worker_recorders.count;
    if (!quern__array_reserve(allocator, &commands->worker_recorders, count + 1) ||
        !quern__array_reserve(allocator, &commands->worker_contexts, count + 1))
        return false;
    query_worker *made = quern__allocate(allocator, sizeof *made, COMMANDS_ALIGNMENT_BYTES);
    if (made == NULL) return false;
    quern__commands_init(&made->recorder, &world->storage);
    quern__commands_list(&made->recorder);
    made->context = (quern__plain_context){.thread = NULL};
    commands->worker_recorders.items[commands->worker_recorders.count++] = &made->recorder;
    commands->worker_contexts.items[commands->worker_contexts.count++] = &made->context;
    return true;
}

void quern__world_release_commands(quern_world *world)
{
    quern__world_commands *commands = world->commands;
    if (commands == NULL) return;
    const quern_allocator *allocator = &world->storage.allocator;
    quern__commands_release(&commands->recorder);
    for (uint32_t i = 0; i < commands->worker_recorders.count; i++) {
        quern__commands_release(commands->worker_recorders.items[i]);
        quern__release(allocator, commands->worker_recorders.items[i], sizeof(query_worker),
                       COMMANDS_ALIGNMENT_BYTES);
    }
    quern__playback_release(&commands->playback);
    quern__array_release(allocator, &commands->worker_recorders);
    quern__array_release(allocator, &commands->worker_contexts);
    quern__release(allocator, commands, sizeof *commands, COMMANDS_ALIGNMENT_BYTES);
    world->commands = NULL;
}

quern_result quern__world_reserve_commands(quern_world *world, uint32_t worker_count)
{
    const quern_result result = world->commands != NULL ? QUERN_OK : create_commands(world);
    if (result != QUERN_OK) return result;
    while (world->commands->worker_recorders.count < worker_count)
        if (!add_worker(world))
            return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the recorders of %u workers",
                               worker_count);
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------ applying */

static bool holds_commands(const quern_commands *recorder)
{
    return recorder->streams.count > 0 || recorder->failed != QUERN_OK ||
           quern__accumulator_is_used(recorder);
}

void quern__world_end_recording(const quern_world *world)
{
    if (world->commands != NULL) quern__commands_end(&world->commands->recorder);
}

bool quern__world_has_commands(const quern_world *world)
{
    const quern__world_commands *commands = world->commands;
    if (commands == NULL) return false;
    for (uint32_t i = 0; i < commands->worker_recorders.count; i++)
        if (holds_commands(commands->worker_recorders.items[i])) return true;
    return holds_commands(&commands->recorder);
}

/* Applies the commands of the recorders. Commands that could not be recorded are reported; the others are applied. */
static quern_result apply(quern_world *world, quern__recorders recorders, const quern__executor *executor,
                          quern__flush_report *report)
{
    quern__world_commands *commands = world->commands;
    bool has_streams = false;
    for (uint32_t i = 0; i < recorders.count; i++) {
        quern_commands *recorder = recorders.items[i];
        has_streams |= recorder->streams.count > 0 || quern__accumulator_is_used(recorder);
        if (QUERN__LIKELY(recorder->failed == QUERN_OK)) continue;
        report->record_result = recorder->failed;
        recorder->failed = QUERN_OK;
    }
    if (!has_streams) return QUERN_OK;
    quern__playback_stats applied = {0};
    quern__playback_start_frame(&commands->playback);
    const bool was_locked = world->locked;
    quern__world_set_locked(
        world, true); /* as at sync points of frames: hooks must not call functions on the world */
    const quern_result result =
        quern__playback_run_recorded(&commands->playback, recorders, executor, &applied);
    quern__world_set_locked(world, was_locked);
    if (result != QUERN_OK) return result;
    for (uint32_t i = 0; QUERN_CHECKS && i < world->storage.components.list.count; i++)
        quern__storage_note_written(&world->storage, i); /* commands may have changed values of any */
    commands->stats.command_count += applied.command_count;
    commands->stats.dropped_count += applied.dropped_count;
    commands->stats.created_count += applied.created_count;
    commands->stats.destroyed_count += applied.destroyed_count;
    quern__flush_report_add(report, &applied);
    return QUERN_OK;
}

quern_result quern__world_apply_worker_commands(quern_world *world, const quern__executor *executor,
                                                quern__flush_report *report)
{
    quern__world_commands *commands = world->commands;
    commands->stats = (quern_flush_stats){0};
    if (commands->worker_recorders.count == 0) return QUERN_OK;
    return apply(world, quern__world_worker_recorders(commands), executor, report);
}

quern_result quern__world_apply_commands(quern_world *world, quern__flush_report *report)
{
    quern__world_commands *commands = world->commands;
    quern__commands_end(&commands->recorder);
    quern_result result = quern__world_apply_worker_commands(world, NULL, report);
    if (result == QUERN_OK) result = apply(world, quern__world_recorder_list(commands), NULL, report);
    return result;
}

/* -------------------------------------------------------------------------------------- public calls */

/* Returns the recorder with an open stream. The stream stays open until it is applied, so that its provisional
 * handles stay valid, even if another thread takes over the world. A new stream begins if an exclusive system or a
 * failed sync point has ended the latest one. */
static quern_result find_recorder(quern_world *world, quern_commands **out_recorder)
{
    QUERN__ENTER_AS(world, "quern_world_commands");
    quern_result result = quern__world_check_unlocked(world, "quern_world_commands");
    if (result == QUERN_OK && world->commands == NULL) result = create_commands(world);
    if (result != QUERN_OK) return quern__in_call(result, "quern_world_commands");
    quern__world_commands *commands = world->commands;
    if (commands->recorder.callback_thread == NULL) {
        const quern__origin origin = {.key = commands->flush_count++,
                                      .serial = quern__serial_of(world->next_serial++)};
        quern__playback_begin(&commands->recorder, &origin);
    }
    commands->recorder.callback_thread = quern__this_thread();
    *out_recorder = &commands->recorder;
    return QUERN_OK;
}

quern_commands *quern_world_commands(quern_world *world)
{
    quern_commands *recorder = NULL;
    QUERN__NEED_OR(world, NULL);
    return find_recorder(world, &recorder) == QUERN_OK ? recorder : NULL;
}

quern_result quern_world_flush(quern_world *world)
{
    QUERN__ENTER_UNLOCKED(world);
    if (world->commands == NULL) return QUERN_OK;
    quern__flush_report report = {0};
    quern_result result = quern__world_apply_commands(world, &report);
    if (result == QUERN_OK) return quern__flush_result(&report, __func__);
    result = quern__fail_with_loss(result, report.record_result, "record a command", __func__);
    return quern__in_call(result, __func__);
}

quern_result quern_world_discard_commands(quern_world *world)
{
    QUERN__ENTER_UNLOCKED(world);
    if (world->commands == NULL) return QUERN_OK;
    quern__world_end_recording(world);
    quern__commands_reset(&world->commands->recorder);
    for (uint32_t i = 0; i < world->commands->worker_recorders.count; i++)
        quern__commands_reset(world->commands->worker_recorders.items[i]);
    return QUERN_OK;
}

quern_result quern_world_get_flush_stats(const quern_world *world, quern_flush_stats *out_stats)
{
    QUERN__NEED(world);
    QUERN__NEED(out_stats);
    *out_stats = world->commands != NULL ? world->commands->stats : (quern_flush_stats){0};
    return QUERN_OK;
}

quern_result quern__fail_with_loss(quern_result result, quern_result lost, const char *what,
                                   const char *where)
{
    if (lost == QUERN_OK) return result;
    char why[256];
    snprintf(why, sizeof why, "%.255s", quern_error_message());
    return quern__fail(lost, "%s: no memory to %s, which is lost; all others are kept, since %s failed: %s",
                       where, what, where, why);
}

quern_result quern__flush_result(const quern__flush_report *report, const char *function)
{
    if (report->record_result != QUERN_OK)
        return quern__fail(report->record_result,
                           "%s: no memory to record a command; the others were applied", function);
    if (report->refused_result == QUERN_OK) return QUERN_OK;
    return quern__fail(report->refused_result,
                       "%s: the commands on %llu entities need %s and were dropped; the others were "
                       "applied",
                       function, (unsigned long long)report->refused_count,
                       report->refused_result == QUERN_ERROR_LIMIT
                           ? "more archetypes than the world can have (QUERN_MAX_ARCHETYPES)"
                           : "more components or bytes than one entity can have");
}
