/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/schedule_internal.h"

#include "core/entities/entities_internal.h"
#include "core/platform/platform.h"
#include "core/query/query_internal.h"
#include "sched/jobs/graph_internal.h"
#include "sched/jobs/jobs_internal.h"
#include "sched/schedule/compile.h"
#include "sched/schedule/schedule_plan.h"

#include <float.h>
#include <stdio.h>

/* Runs frames: the memory of workers, sync points, and the segments, phases and frames themselves. Inner steps come
 * first. */

enum { WORKER_ALIGNMENT_BYTES = 128 };

typedef struct frame_worker {
    quern_commands recorder; /* first member: has the address of the worker */
    quern_context context;
} frame_worker;

_Static_assert(_Alignof(frame_worker) <= WORKER_ALIGNMENT_BYTES, "workers are aligned enough");

/* ----------------------------------------------------------------------------------------- addresses */

static size_t addresses_bytes(uint32_t worker_count, uint32_t up_count)
{
    return worker_count * quern__ups_address_count(up_count) * sizeof(void *);
}

static void release_addresses(const quern_schedule *schedule)
{
    quern__release(quern__plan_allocator(&schedule->plan), schedule->addresses,
                   addresses_bytes(schedule->addressed_worker_count, schedule->up_count),
                   WORKER_ALIGNMENT_BYTES);
}

/* Reserves addresses for all workers and all up-terms of the plan. They are not used between frames, so old
 * addresses are not copied. Returns false if out of memory. */
static bool reserve_addresses(quern_schedule *schedule)
{
    const uint32_t worker_count = schedule->worker_count, up_count = schedule->plan.up_count;
    const size_t bytes = addresses_bytes(worker_count, up_count);
    const void **made = NULL;
    if (bytes > 0) {
        made = quern__allocate(quern__plan_allocator(&schedule->plan), bytes, WORKER_ALIGNMENT_BYTES);
        if (made == NULL) return false;
    }
    release_addresses(schedule);
    schedule->addresses = made;
    schedule->addressed_worker_count = worker_count;
    schedule->up_count = up_count;
    for (uint32_t i = 0; i < worker_count && made != NULL; i++)
        schedule->contexts.items[i]->addresses = made + i * quern__ups_address_count(up_count);
    return true;
}

/* ------------------------------------------------------------------------------------------- workers */

void quern__workers_release(quern_schedule *schedule)
{
    const quern_allocator *allocator = quern__plan_allocator(&schedule->plan);
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        quern__commands_release(schedule->recorders.items[i]);
        quern__scratch_release(&schedule->contexts.items[i]->scope);
        quern__release(allocator, schedule->recorders.items[i], sizeof(frame_worker),
                       WORKER_ALIGNMENT_BYTES);
    }
    quern__array_release(allocator, &schedule->recorders);
    quern__array_release(allocator, &schedule->contexts);
    release_addresses(schedule);
}

/* Returns false if out of memory. */
static bool add_worker(quern_schedule *schedule)
{
    const quern_allocator *allocator = quern__plan_allocator(&schedule->plan);
    const uint32_t count = schedule->worker_count;
    if (!quern__array_reserve(allocator, &schedule->recorders, count + 1) ||
        !quern__array_reserve(allocator, &schedule->contexts, count + 1))
        return false;
    frame_worker *made = quern__allocate(allocator, sizeof *made, WORKER_ALIGNMENT_BYTES);
    if (made == NULL) return false;
    quern__commands_init(&made->recorder, &schedule->plan.world->storage);
    quern__commands_list(&made->recorder);
    made->context = (quern_context){.scope.storage = &schedule->plan.world->storage,
                                    .schedule = schedule,
                                    .commands = &made->recorder,
                                    .worker_index = count};
    schedule->recorders.items[schedule->recorders.count++] = &made->recorder;
    schedule->contexts.items[schedule->contexts.count++] = &made->context;
    schedule->worker_count++;
    return true;
}

/* Ensures that the schedule has at least `worker_count` workers. Existing recorders keep their commands.
 * Errors: OUT_OF_MEMORY. */
static quern_result workers_reserve(quern_schedule *schedule, uint32_t worker_count)
{
    if (worker_count <= schedule->addressed_worker_count && schedule->plan.up_count <= schedule->up_count)
        return QUERN_OK;
    bool has_memory = true;
    while (schedule->worker_count < worker_count && has_memory)
        has_memory = add_worker(schedule);
    quern__plan_invalidate_segments(&schedule->plan); /* further queries are prepared for each worker */
    if (has_memory && reserve_addresses(schedule)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the recorders of %u workers",
                       worker_count);
}

static void count_by_system(const quern_schedule *schedule, const quern_commands *recorder)
{
    for (uint32_t k = 0; k < recorder->streams.count; k++) {
        const quern__stream *stream = &recorder->streams.items[k];
        /* The stream may be one that a failed frame kept, of a system that was removed since. */
        quern__system *system =
            quern__schedule_system(schedule, (quern_system){.bits = stream->origin.system_number});
        if (system != NULL) system->command_count += stream->command_count;
    }
}

/* ------------------------------------------------------------------------------------ loops of a stage */

/* Runs a loop on the pool. Without a pool, the caller runs it in ranges of `grain` items; only an observer that
 * reports each range requests that. */
static void run_in_parts(quern_jobs *jobs, uint32_t count, uint32_t grain,
                         quern__executor_function *function, void *argument)
{
    if (jobs != NULL) {
        quern_jobs_parallel_for(jobs, count, grain, function, argument);
        return;
    }
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        end = count - begin > grain ? begin + grain : count;
        function(argument, begin, end, 0);
    }
}

typedef struct observed_loop {
    quern__frame_observer *observer;
    quern__executor_function *function;
    void *argument;
} observed_loop;

static void run_observed_part(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const observed_loop *loop = argument;
    const uint64_t begin_ns = quern__clock_ns();
    loop->function(loop->argument, begin, end, worker_index);
    loop->observer->calls->end_part(loop->observer, worker_index, begin_ns);
}

static void run_on_jobs(void *context, uint32_t count, uint32_t grain, quern__executor_function *function,
                        void *argument)
{
    const quern_schedule *schedule = context;
    if (!schedule->is_observed) {
        run_in_parts(schedule->jobs, count, grain, function, argument);
        return;
    }
    quern__frame_observer *observer = schedule->observer;
    observed_loop loop = {.observer = observer, .function = function, .argument = argument};
    observer->calls->begin_loop(observer, (count - 1) / grain + 1);
    run_in_parts(schedule->jobs, count, grain, run_observed_part, &loop);
    observer->calls->end_loop(observer);
}

static void begin_stage(void *context, quern__sync_stage stage)
{
    const quern_schedule *schedule = context;
    schedule->observer->calls->begin_stage(schedule->observer, stage);
}

/* ------------------------------------------------------------------------------------------ sync points */

/* Applies the commands of code between frames and of parallel queries, before the first system of a frame.
 * Errors end the frame. */
static quern_result sync_world(quern_schedule *schedule, quern__flush_report *report)
{
    quern_world *world = schedule->plan.world;
    if (QUERN__LIKELY(world->commands == NULL)) return QUERN_OK;
    quern__world_end_recording(world);
    if (!quern__world_has_commands(world)) return QUERN_OK;
    quern__frame_observer *observer = schedule->observer;
    const uint64_t begin_ns = quern__clock_ns();
    if (QUERN_CHECKS) quern__guards_invalidate(schedule);
    if (schedule->is_observed) observer->calls->begin_sync(observer);
    world->storage.command_listener = schedule->command_listener;
    const quern_result result = quern__world_apply_commands(world, report);
    world->storage.command_listener = NULL;
    if (schedule->is_observed)
        observer->calls->end_sync(observer, begin_ns, (uint32_t)world->commands->stats.command_count);
    schedule->stats.sync_ns += quern__clock_ns() - begin_ns;
    return result;
}

quern_result quern__sync_commands(quern_schedule *schedule, quern__flush_report *report)
{
    quern__frame_observer *observer = schedule->observer;
    const uint64_t begin_ns = quern__clock_ns();
    /* Count the commands by system. Commands that could not be recorded fail the frame; the recorded ones are
     * applied. */
    schedule->has_command_counts = true;
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        quern_commands *recorder = schedule->recorders.items[i];
        quern__commands_close(recorder);
        if (recorder->failed != QUERN_OK) report->record_result = recorder->failed;
        recorder->failed = QUERN_OK;
        count_by_system(schedule, recorder);
        if (quern__accumulator_is_used(recorder))
            count_by_system(schedule, &recorder->accumulator->recorder);
    }
    quern__playback_stats applied = {0};
    if (schedule->is_observed) observer->calls->begin_sync(observer);
    quern__executor executor = {.parallel_for = run_on_jobs,
                                .context = schedule,
                                .thread_count = schedule->jobs ? schedule->jobs->thread_count : 1,
                                .worker_count = schedule->worker_count,
                                .always_divides = observer->wants_loop_parts,
                                .begin_stage = schedule->is_observed ? begin_stage : NULL};
    if (QUERN_CHECKS) quern__guards_invalidate(schedule);
    quern__storage *storage = &schedule->plan.world->storage;
    storage->command_listener = schedule->command_listener;
    const quern_result result = quern__playback_run_recorded(
        &schedule->playback, quern__schedule_recorders(schedule), &executor, &applied);
    storage->command_listener = NULL;
    if (schedule->is_observed)
        observer->calls->end_sync(observer, begin_ns, (uint32_t)applied.command_count);
    schedule->stats.command_count += applied.command_count;
    schedule->stats.dropped_count += applied.dropped_count;
    schedule->stats.created_count += applied.created_count;
    schedule->stats.destroyed_count += applied.destroyed_count;
    quern__flush_report_add(report, &applied);
    schedule->stats.sync_ns += quern__clock_ns() - begin_ns;
    return result;
}

static inline bool schedule_has_commands(const quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        const quern_commands *recorder = schedule->recorders.items[i];
        if ((recorder->streams.count | (uint32_t)recorder->failed) != 0 ||
            quern__accumulator_is_used(recorder))
            return true;
    }
    return false;
}

quern_result quern__sync_events(quern_schedule *schedule, quern__flush_report *report)
{
    const uint64_t begin_ns = quern__clock_ns();
    quern_result result = quern__events_begin_sync(schedule);
    uint64_t events_ns = quern__clock_ns() - begin_ns;
    schedule->playback.on_created = quern__events_resolve_handles;
    schedule->playback.on_created_argument = schedule;
    const bool has_commands = result == QUERN_OK && schedule_has_commands(schedule);
    if (has_commands) result = quern__sync_commands(schedule, report);
    schedule->playback.on_created = NULL;
    quern__command_listener *listener = schedule->command_listener;
    if (QUERN__UNLIKELY(listener != NULL) && result == QUERN_OK)
        listener->list_events(listener, has_commands);
    const uint64_t publish_ns = quern__clock_ns();
    if (result == QUERN_OK) quern__events_end_sync(schedule);
    events_ns += quern__clock_ns() - publish_ns;
    schedule->stats.sync_ns += events_ns;
    return result;
}

/* ------------------------------------------------------------------------------------------------ frames */

/* A frame. Functions of inner steps precede those of outer ones.
 *
 *     prepare           compiles changes, reserves memory for workers, asks if the observer observes
 *     sync point        applies commands that an earlier frame could not apply, and runs reactions
 *     each phase, once, or as often as its fixed step fits; each segment of the phase:
 *         RUN           runs passes as a graph, on all threads
 *         EXCLUSIVE     runs one system, alone, on the caller
 *         SYNC          applies commands, and then runs reactions as segments, too (schedule_internal.h)
 *     finish            reports failures that did not end the frame */

/* ----------------------------------------------------------------------------------------- segments */

static void number_streams(const quern_schedule *schedule, quern__segment *segment)
{
    segment->serial_count = 0;
    for (uint32_t i = segment->first; i < segment->end; i++) {
        quern__system *system = schedule->plan.order.items[i];
        system->serial_offset = segment->serial_count;
        segment->serial_count +=
            system->view_count + 2; /* one for condition and begin, one per view, one for end */
    }
}

/* Returns whether the segment has nothing to do in any frame, until it is prepared again. A frame in which a change filter
 * had nothing to look at counts as a run for it. */
static bool is_idle(const quern__segment *segment)
{
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        const quern__pass *pass = segment->passes.items[i];
        if (pass->item_count > 0 || pass->has_begin || pass->has_end || pass->has_filters) return false;
    }
    return true;
}

/* Returns whether some pass of the segment has items. Reactions are only called if they have views. */
static bool has_items(const quern__segment *segment)
{
    for (uint32_t i = 0; i < segment->passes.count; i++)
        if (segment->passes.items[i]->item_count > 0) return true;
    return false;
}

/* Returns whether the depths of entities on the last level of relations are unchanged since the segment was
 * prepared. Relating other entities can change depths without moving rows. */
static bool depths_are_current(const quern__segment *segment)
{
    for (uint32_t i = 0; i < segment->passes.count && segment->has_depths; i++)
        if (!quern__levels_depths_are_current(segment->passes.items[i])) return false;
    return true;
}

/* Returns whether the rows of systems with a target term are unchanged since the segment was prepared. */
static bool targets_are_current(const quern_schedule *schedule, const quern__segment *segment)
{
    for (uint32_t i = segment->first; i < segment->end && segment->has_targets; i++) {
        quern__system *system = schedule->plan.order.items[i];
        const quern__query *query = quern__system_target_query(system);
        if (query != NULL && system->is_enabled && !quern__target_is_listed(query)) return false;
    }
    return true;
}

/* Counts the views of systems with items again, if other events wait than those counted. Precondition: the
 * rest of the segment is prepared. */
static quern_result prepare_items(const quern_schedule *schedule, quern__segment *segment)
{
    bool is_new = false;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < segment->passes.count && result == QUERN_OK; i++) {
        quern__pass *pass = segment->passes.items[i];
        const quern__event_use *use = &pass->systems.items[0]->events;
        if (use->items == NULL || (use->prepared_begin == use->items->cursor &&
                                   use->prepared_end == quern__channel_end(use->items->channel) &&
                                   use->prepared_last_count == quern__event_use_last_count(use)))
            continue;
        is_new = true;
        result = quern__pass_prepare(pass, segment->prepared_threads);
        if (result == QUERN_OK) result = schedule->observer->calls->prepare_pass(schedule->observer, pass);
    }
    if (!is_new) return QUERN_OK;
    if (result == QUERN_OK && segment->graph != NULL) result = quern__compile_prepare(segment);
    number_streams(schedule, segment);
    segment->is_idle = is_idle(segment);
    if (result != QUERN_OK) segment->prepared_version = 0;
    return result;
}

/* Counts the items and views of the segment. The result holds for later frames until rows are added,
 * removed or moved. A segment of reactions is prepared each time, because its pending changes differ. */
static quern_result prepare_segment(const quern_schedule *schedule, quern__segment *segment)
{
    uint64_t version = schedule->plan.world->storage.structure_version + 1;
    uint32_t thread_count = schedule->jobs != NULL ? schedule->jobs->thread_count : 1;
    if (segment->prepared_version == version && segment->prepared_threads == thread_count &&
        !segment->runs_reactions && depths_are_current(segment) && targets_are_current(schedule, segment))
        return QUERN__LIKELY(!segment->has_items) ? QUERN_OK : prepare_items(schedule, segment);
    segment->prepared_version = 0;
    segment->has_targets = false;
    segment->has_refreshes = false;
    segment->has_depths = false;
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        quern_result result = segment->runs_reactions ? quern__reaction_pass_prepare(pass)
                                                      : quern__pass_prepare(pass, thread_count);
        if (result == QUERN_OK) result = schedule->observer->calls->prepare_pass(schedule->observer, pass);
        if (result != QUERN_OK) return result;
        segment->has_depths |= !segment->runs_reactions && quern__levels_has_depths(pass);
    }
    if (segment->graph != NULL) {
        quern_result result = quern__compile_prepare(segment);
        if (result != QUERN_OK) return result;
    }
    number_streams(schedule, segment);
    segment->has_readers = segment->has_items = false;
    for (uint32_t i = segment->first; i < segment->end; i++) {
        quern__system *system = schedule->plan.order.items[i];
        const quern__event_use *use = &system->events;
        segment->has_readers |= use->readers.count > 0;
        segment->has_items |= use->items != NULL;
        segment->has_targets |= quern__system_target_query(system) != NULL;
        segment->has_refreshes |= system->has_refreshes;
        if (system->query_count == 0 || !system->is_enabled) continue;
        const quern_result result = quern__system_prepare_queries(system, schedule->worker_count);
        if (result != QUERN_OK) return result;
    }
    segment->is_idle = segment->runs_reactions ? !has_items(segment) : is_idle(segment);
    segment->prepared_version = version;
    segment->prepared_threads = thread_count;
    return QUERN_OK;
}

/* Ends reading in the segment: active systems have read their events, even if they had no view. */
static void finish_readers(const quern_schedule *schedule, const quern__segment *segment,
                           quern_result result)
{
    if (QUERN__UNLIKELY(segment->has_readers))
        quern__events_finish_segment(schedule, segment, result == QUERN_OK);
}

static quern_result start_segment(quern_schedule *schedule, quern__segment *segment)
{
    quern_result result = quern__compile(&schedule->plan);
    if (result == QUERN_OK) result = prepare_segment(schedule, segment);
    if (result != QUERN_OK) return result;
    if (QUERN__UNLIKELY(segment->has_readers)) quern__events_start_segment(schedule, segment);
    if (segment->is_idle) {
        finish_readers(schedule, segment, QUERN_OK);
        return QUERN_OK;
    }
    schedule->serial_base = schedule->plan.world->next_serial;
    schedule->plan.world->next_serial += segment->serial_count;
    quern__storage *storage = &schedule->plan.world->storage;
    /* The first system may refresh and write: its writes need another version than what was written before. */
    storage->clock += segment->has_refreshes;
    for (uint32_t i = segment->first; i < segment->end && segment->has_refreshes; i++)
        schedule->plan.order.items[i]->refresh_result = QUERN_OK;
    schedule->version_base = storage->clock - segment->first;
    storage->clock += segment->end - segment->first;
    for (uint32_t i = 0; i < segment->passes.count; i++)
        quern__pass_start(segment->passes.items[i]);
    return QUERN_OK;
}

static void finish_segment(quern_schedule *schedule, const quern__segment *segment)
{
    if (segment->runs_reactions || schedule->plan.phases[segment->phase].step_seconds > 0) {
        /* Sum up views and entities over fixed steps or rounds of reactions. The statistics of other systems
         * follow from the prepared counts. */
        for (uint32_t i = segment->first; i < segment->end; i++) {
            quern__system *system = schedule->plan.order.items[i];
            if (!system->is_active) continue;
            system->step_view_count += system->view_count;
            system->step_entity_count += system->entity_count;
        }
    }
    for (uint32_t i = 0; i < segment->passes.count; i++)
        quern__pass_finish(segment->passes.items[i], schedule->version_base);
}

/* Calls the passes on the threads of the pool, or in order on the caller. */
static quern_result run_passes(const quern_schedule *schedule, quern__segment *segment)
{
    quern__frame_observer *observer = schedule->observer;
    if (schedule->is_observed) observer->calls->begin_segment(observer, segment);
    quern_result result = QUERN_OK;
    if (segment->kind == QUERN__SEGMENT_RUN && segment->prepared_threads > 1) {
        result = quern__graph_run_inside(segment->graph, schedule->jobs);
    } else
        for (uint32_t i = 0; i < segment->passes.count; i++) {
            quern__pass *pass = segment->passes.items[i];
            if (pass->has_begin) quern__pass_begin(pass, 0, 1, schedule->caller_index);
            for (uint32_t k = 0; k < pass->stage_count; k++)
                quern__pass_run(&pass->stages[k], 0, pass->stages[k].item_count, schedule->caller_index);
            if (pass->has_end) quern__pass_end(pass, 0, 1, schedule->caller_index);
        }
    if (schedule->is_observed && result == QUERN_OK) observer->calls->end_segment(observer, segment);
    return result;
}

/* Fails if the indexes or ordered queries of a system could not be brought up to date: the system did not run. */
static QUERN__NO_INLINE quern_result check_refreshes(const quern_schedule *schedule,
                                                     const quern__segment *segment)
{
    for (uint32_t i = segment->first; i < segment->end; i++) {
        quern__system *system = schedule->plan.order.items[i];
        const quern_result result = system->refresh_result;
        if (result == QUERN_OK) continue;
        if (result == QUERN_ERROR_OUT_OF_MEMORY)
            return quern__fail(result,
                               "system '%s': no memory to sort the rows of its queries or to bring its "
                               "indexes up to date, so it was not called: free memory, and run the next "
                               "frame",
                               system->name);
        (void)quern__system_refresh(system); /* fails again, with the message on this thread */
        return quern__message_add_call(result, system->name, NULL);
    }
    return QUERN_OK;
}

static quern_result run_graph(quern_schedule *schedule, quern__segment *segment)
{
    segment->has_run = false;
    quern_result result = start_segment(schedule, segment);
    if (result != QUERN_OK || segment->is_idle) return result;
    if (QUERN_CHECKS && !quern__guards_rebuild(schedule))
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to check for writes through "
                                                        "kept pointers (QUERN_CHECKS)");
    if (result == QUERN_OK) result = run_passes(schedule, segment);
    finish_readers(schedule, segment, result);
    if (result != QUERN_OK) return result;
    segment->has_run = true;
    if (QUERN_CHECKS) quern__guards_check_all(schedule);
    finish_segment(schedule, segment);
    return QUERN__UNLIKELY(segment->has_refreshes) ? check_refreshes(schedule, segment) : QUERN_OK;
}

/* Runs an exclusive system on the caller, alone, with the world unlocked and unclaimed: the system may change
 * the world, also in jobs on other threads, and run frames of other schedules of this world. If another thread
 * still holds the claim when the system returns, the frame ends without touching the world again. */
static quern_result run_exclusive(quern_schedule *schedule, quern__segment *segment)
{
    quern_result result = start_segment(schedule, segment);
    if (result != QUERN_OK || segment->is_idle) return result;
    quern_world *world = schedule->plan.world;
    quern__world_set_locked(world, false);
    const quern__world_claim_state claim = quern__world_suspend_claim(world);
    result = run_passes(schedule, segment);
    if (!quern__world_resume_claim(world, &claim)) return QUERN_ERROR_WORLD_LOCKED;
    quern__world_set_locked(world, true);
    quern__world_end_recording(world);
    finish_readers(schedule, segment, result);
    if (QUERN_CHECKS) quern__guards_check_outside_writes(schedule, "in");
    finish_segment(schedule, segment);
    return result;
}

/* Runs a sync point. Most sync points have no commands, which costs a check of each recorder. A sync point
 * without events costs one branch for them. */
static inline quern_result sync(quern_schedule *schedule, quern__flush_report *report)
{
    /* Events need a sync point if a system emitted one, or if published ones wait for readers. The load is relaxed.
     * It pairs with the store in note_emitted: waiting for the workers orders that store before this load. */
    const bool has_events = (atomic_load_explicit(&schedule->has_emitted, memory_order_relaxed) |
                             (schedule->plan.world->waiting_event_batch_count > 0)) != 0;
    if (QUERN__UNLIKELY(has_events)) return quern__sync_events(schedule, report);
    return schedule_has_commands(schedule) ? quern__sync_commands(schedule, report) : QUERN_OK;
}

/* Runs a sync point, then the world's maintenance: the removal of empty archetypes. */
static quern_result run_sync(quern_schedule *schedule, const quern__segment *segment,
                             quern__flush_report *report)
{
    schedule->sync_segment = segment;
    const quern_result result = sync(schedule, report);
    quern_world *world = schedule->plan.world;
    if (world->storage.archetypes.count >= world->removal_count && result == QUERN_OK)
        quern__world_reclaim_archetypes(world);
    return result;
}

quern_result quern__frame_run_round(quern_schedule *schedule, quern__flush_report *report)
{
    const quern__plan *plan = &schedule->plan;
    quern_result result = QUERN_OK;
    for (uint32_t i = plan->first_reaction_segment; i < plan->segments.count && result == QUERN_OK; i++) {
        quern__segment *segment = &plan->segments.items[i];
        if (segment->kind == QUERN__SEGMENT_SYNC) {
            result = run_sync(schedule, segment, report);
            continue;
        }
        if (!quern__reaction_pass_is_due(plan, segment)) continue;
        result = segment->kind == QUERN__SEGMENT_RUN ? run_graph(schedule, segment)
                                                     : run_exclusive(schedule, segment);
        if (result != QUERN_OK && !quern__world_is_claimed(plan->world)) return result;
        /* If the segment could not run, the taken changes become pending again, so that none is lost. */
        quern__reaction_pass_finish(
            plan, segment, result == QUERN_OK || (segment->kind == QUERN__SEGMENT_RUN && segment->has_run));
    }
    return result;
}

/* Runs reactions at the end of a sync point. Costs one branch if no reaction of the world has pending
 * changes. */
static inline quern_result run_pending_reactions(quern_schedule *schedule, quern__flush_report *report)
{
    if (QUERN__LIKELY(!quern__reactions_are_pending(schedule->plan.world->storage.reactions)))
        return QUERN_OK;
    return quern__reaction_rounds_run(schedule, report);
}

/* ------------------------------------------------------------------------------------------- phases */

/* Asks the conditions of the sets that have systems in the phase. */
static void ask_sets(const quern_schedule *schedule, uint32_t phase)
{
    for (uint32_t i = 0; i < schedule->plan.sets.count; i++) {
        quern__set *set = schedule->plan.sets.items[i];
        if (set->asker != NULL && quern__set_is_in_phase(set, phase))
            quern__pass_ask_set(&schedule->plan, set, schedule->caller_index);
    }
}

static quern_result run_phase(quern_schedule *schedule, const quern__phase *phase,
                              quern__flush_report *report)
{
    quern_result result = QUERN_OK;
    if (QUERN__UNLIKELY(schedule->plan.asked_phases != 0)) {
        const uint32_t index = (uint32_t)(phase - schedule->plan.phases);
        if ((schedule->plan.asked_phases >> index & 1) != 0) ask_sets(schedule, index);
    }
    for (uint32_t i = phase->first_segment; i < phase->end_segment && result == QUERN_OK; i++) {
        quern__segment *segment = &schedule->plan.segments.items[i];
        if (segment->kind == QUERN__SEGMENT_RUN)
            result = run_graph(schedule, segment);
        else if (segment->kind == QUERN__SEGMENT_EXCLUSIVE)
            result = run_exclusive(schedule, segment);
        else {
            result = run_sync(schedule, segment, report);
            if (result == QUERN_OK) result = run_pending_reactions(schedule, report);
        }
    }
    return result;
}

static quern_result run_steps(quern_schedule *schedule, quern__phase *phase, quern__flush_report *report)
{
    quern_result result = QUERN_OK;
    const double frame_seconds = schedule->delta_seconds;
    schedule->delta_seconds = phase->step_seconds;
    for (uint32_t i = 0; i < schedule->plan.systems.count; i++) {
        quern__system *system = schedule->plan.systems.items[i];
        if (&schedule->plan.phases[system->phase] != phase) continue;
        system->step_view_count = 0;
        system->step_entity_count = 0;
    }
    /* Count the steps of this frame. Whole steps beyond the limit are dropped. */
    phase->elapsed_seconds += frame_seconds;
    uint32_t step_count = 0;
    while (phase->elapsed_seconds >= phase->step_seconds && step_count < phase->max_step_count) {
        phase->elapsed_seconds -= phase->step_seconds;
        step_count++;
    }
    if (phase->elapsed_seconds >= phase->step_seconds)
        phase->elapsed_seconds = quern__time_rest(phase->elapsed_seconds, phase->step_seconds);
    for (uint32_t left = step_count; left > 0 && result == QUERN_OK; left--) {
        schedule->turn = phase->step_count++;
        result = run_phase(schedule, phase, report);
    }
    schedule->turn = schedule->frame_index;
    schedule->delta_seconds = frame_seconds;
    return result;
}

/* Applies the commands that an earlier frame could not apply, and then runs reactions. */
static quern_result apply_kept_and_react(quern_schedule *schedule, quern__flush_report *report)
{
    /* A frame that has lost the world to another thread has left the rows that its exclusive reaction was shown. */
    for (uint32_t i = 0; QUERN__UNLIKELY(schedule->has_failed) && i < schedule->plan.systems.count; i++) {
        const quern__system *system = schedule->plan.systems.items[i];
        if (system->reaction != NULL) quern__reaction_finish(system->query.storage, system->reaction);
    }
    schedule->sync_segment = NULL;
    const quern_result result = sync(schedule, report);
    return result == QUERN_OK ? run_pending_reactions(schedule, report) : result;
}

/* Runs all phases. An error ends the frame; `report` collects failures that do not. */
static quern_result run_phases(quern_schedule *schedule, quern__flush_report *report)
{
    quern_result result = sync_world(schedule, report);
    if (result == QUERN_OK) result = apply_kept_and_react(schedule, report);
    for (uint32_t i = 0; i < schedule->plan.phase_count && result == QUERN_OK; i++) {
        quern__phase *phase = &schedule->plan.phases[i];
        result = phase->step_seconds > 0 ? run_steps(schedule, phase, report)
                                         : run_phase(schedule, phase, report);
    }
    return result;
}

/* ------------------------------------------------------------------------------------------- frame */

/* Resets the schedule's state before a frame, or before reactions that run between frames. */
static void start_run(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds)
{
    schedule->jobs = jobs;
    schedule->caller_index = jobs != NULL ? quern__jobs_current_worker(jobs)->index : 0;
    schedule->delta_seconds = delta_seconds;
    schedule->turn = schedule->frame_index;
    schedule->is_observed = false;
    schedule->emit_result = QUERN_OK;
    schedule->event_loss.channel = NULL;
    schedule->has_reached_round_limit = false;
}

/* Returns how often the system was refused an access in this frame. Relaxed: pairs with the increments in
 * callbacks, and waiting for the workers has ordered these before the load. */
static uint32_t refusals_of(const quern__system *system)
{
    return atomic_load_explicit(&system->accessor.refusal_count, memory_order_relaxed);
}

/* Fails with the systems that were refused an access. If there are none, fails with `name`: the system that
 * a guard found, or quern__guard_no_system. */
static quern_result fail_refused(const quern_schedule *schedule, const char *name)
{
    const unsigned long long frame = schedule->frame_index;
    uint32_t other_count = 0;
    const quern__system *system = NULL;

    for (uint32_t i = 0; i < schedule->plan.order.count; i++) {
        const quern__system *other = schedule->plan.order.items[i];
        if (refusals_of(other) == 0) continue;
        other_count += system != NULL;
        if (system == NULL) system = other;
    }
    for (uint32_t i = 0; i < schedule->plan.sets.count && system == NULL; i++) {
        const quern__system *asker = schedule->plan.sets.items[i]->asker;
        if (asker != NULL && refusals_of(asker) > 0) system = asker;
    }
    char others[64] = "";
    if (system == NULL && name == quern__guard_no_system)
        return quern__fail(QUERN_ERROR_UNDECLARED_ACCESS,
                           "frame %llu: values were changed through a pointer into the world that code "
                           "outside of systems kept (see the log)",
                           frame);
    if (system == NULL)
        return quern__fail(
            QUERN_ERROR_UNDECLARED_ACCESS,
            "frame %llu: values that system '%s' could write were changed through a pointer that code "
            "kept (see the log)",
            frame, name);
    if (other_count > 0) snprintf(others, sizeof others, ", as were %u other systems", other_count);
    return quern__fail(QUERN_ERROR_UNDECLARED_ACCESS,
                       "frame %llu: system '%s' was refused an access (%u in this frame)%s: it worked on "
                       "scratch memory instead (see the log)",
                       frame, system->name, refusals_of(system), others);
}

/* Clears the refusals, so that the next frame counts its own. Relaxed: the next increments are in callbacks
 * of the next frame, and the start of that frame's jobs orders these stores before them. */
static void forget_refusals(quern_schedule *schedule)
{
    bool has_refusals = false;
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        has_refusals |= schedule->contexts.items[i]->refused_system != NULL;
        schedule->contexts.items[i]->refused_system = NULL;
    }
    for (uint32_t i = 0; i < schedule->plan.systems.count && has_refusals; i++)
        atomic_store_explicit(&schedule->plan.systems.items[i]->accessor.refusal_count, 0,
                              memory_order_relaxed);
    for (uint32_t i = 0; i < schedule->plan.sets.count && has_refusals; i++) {
        quern__system *asker = schedule->plan.sets.items[i]->asker;
        if (asker != NULL) atomic_store_explicit(&asker->accessor.refusal_count, 0, memory_order_relaxed);
    }
}

/* Adds the failed calls of recorders to the statistics, and lets the next frame log its own. Relaxed: see
 * forget_refusals. */
static void collect_failed_commands(quern_schedule *schedule)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        count += schedule->recorders.items[i]->failed_count;
        schedule->recorders.items[i]->failed_count = 0;
    }
    schedule->stats.failed_command_count += count;
    for (uint32_t i = 0; i < schedule->plan.systems.count && count > 0; i++)
        atomic_store_explicit(&schedule->plan.systems.items[i]->has_logged_failed_command, false,
                              memory_order_relaxed);
}

static quern_result finish_frame(const quern_schedule *schedule, const quern__flush_report *report)
{
    unsigned long long frame = schedule->frame_index;
    if (report->record_result != QUERN_OK)
        return quern__fail(report->record_result,
                           "frame %llu: no memory to record a command; the others were applied", frame);
    if (report->refused_result != QUERN_OK)
        return quern__fail(
            report->refused_result,
            "frame %llu: the commands on %llu entities ask for %s, and were dropped; the others "
            "were applied",
            frame, (unsigned long long)report->refused_count,
            report->refused_result == QUERN_ERROR_LIMIT
                ? "more archetypes than the world can have (QUERN_MAX_ARCHETYPES)"
                : "more components or bytes than one entity can have");
    if (schedule->has_reached_round_limit)
        return quern__fail(
            QUERN_ERROR_LIMIT,
            "frame %llu: reactions caused each other for %u rounds, and the pending changes were dropped: "
            "%s. Break the cycle, or raise max_reaction_rounds of the schedule",
            frame, schedule->plan.max_reaction_rounds, schedule->reaction_trail);
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        if (schedule->contexts.items[i]->refused_system != NULL)
            return fail_refused(schedule, schedule->contexts.items[i]->refused_system);
    const bool is_whole = schedule->emit_result == QUERN_OK && schedule->event_loss.channel == NULL;
    return QUERN__LIKELY(is_whole) ? QUERN_OK : quern__events_fail_frame(schedule);
}

/* Adds commands and events that the frame lost to the error that ended it: otherwise the next frame would
 * report them as its own loss. Closes the recorders, so that kept commands can be counted. */
static quern_result fail_frame(quern_schedule *schedule, const quern__flush_report *report,
                               quern_result result)
{
    char frame[32];
    quern_result lost = report->record_result;
    snprintf(frame, sizeof frame, "frame %llu", (unsigned long long)schedule->frame_index);
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        quern_commands *recorder = schedule->recorders.items[i];
        quern__commands_close(recorder);
        if (recorder->failed != QUERN_OK) lost = recorder->failed;
        recorder->failed = QUERN_OK;
    }
    quern__events_collect_failures(schedule);
    if (lost != QUERN_OK) return quern__fail_with_loss(result, lost, "record a command", frame);
    return quern__fail_with_loss(result, schedule->emit_result, "emit an event", frame);
}

static quern_result check_run(const quern_schedule *schedule, double delta_seconds, const char *function)
{
    if (!(delta_seconds >= 0 && delta_seconds <= DBL_MAX)) /* also rejects NaN */
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: delta_seconds is %g; give a finite number, 0 or more", function,
                           delta_seconds);
    quern_result result = quern__world_check_unlocked(schedule->plan.world, function);
    if (result != QUERN_OK || !schedule->is_running) return result;
    return quern__fail(QUERN_ERROR_WORLD_LOCKED,
                       "%s: this schedule is running a frame; call it between frames", function);
}

/* Adds to the number of running frames of the world. Relaxed: see running_frame_count. */
static void count_frame(const quern_schedule *schedule, uint32_t change)
{
    atomic_fetch_add_explicit(&schedule->plan.world->running_frame_count, change, memory_order_relaxed);
}

/* Relaxed, as for running_frame_count. */
void quern__schedule_set_failed(quern_schedule *schedule, bool has_failed)
{
    if (schedule->has_failed == has_failed) return;
    schedule->has_failed = has_failed;
    atomic_fetch_add_explicit(&schedule->plan.world->failed_schedule_count, has_failed ? 1 : UINT32_MAX,
                              memory_order_relaxed);
}

typedef quern_result locked_function(quern_schedule *schedule, quern__flush_report *report);

/* Runs `function` with the world locked. Precondition: the caller has claimed the world. */
static quern_result run_locked(quern_schedule *schedule, locked_function *function)
{
    quern__flush_report report = {0};
    schedule->is_running = true;
    count_frame(schedule, 1);
    quern__world_set_locked(schedule->plan.world, true);
    if (QUERN_CHECKS) quern__guards_check_outside_writes(schedule, "before");
    quern_result result = function(schedule, &report);
    if (QUERN__UNLIKELY(result != QUERN_OK) && !quern__world_is_claimed(schedule->plan.world)) {
        /* An exclusive system has lost the world to another thread, which was reported. The lock of the world now
         * belongs to that thread. */
        if (QUERN_CHECKS) quern__guards_invalidate(schedule);
        schedule->is_running = false;
        count_frame(schedule, UINT32_MAX);
        quern__schedule_set_failed(schedule, true);
        forget_refusals(schedule);
        return result;
    }
    if (QUERN__UNLIKELY(result != QUERN_OK)) result = fail_frame(schedule, &report, result);
    collect_failed_commands(schedule);
    if (QUERN_CHECKS && (result != QUERN_OK || !quern__guards_rebuild(schedule)))
        quern__guards_invalidate(schedule);
    quern__world_set_locked(schedule->plan.world, false);
    schedule->is_running = false;
    count_frame(schedule, UINT32_MAX);
    quern__schedule_set_failed(schedule, result != QUERN_OK);
    const quern_result end = result == QUERN_OK ? finish_frame(schedule, &report) : result;
    forget_refusals(schedule);
    return end;
}

static quern_result prepare_run(quern_schedule *schedule, const quern_jobs *jobs)
{
    quern_result result = quern__compile(&schedule->plan);
    if (result == QUERN_OK) result = workers_reserve(schedule, jobs ? jobs->worker_count : 1);
    if (result != QUERN_OK) return result;
    /* Each worker has an emitter for each emitted channel. */
    const uint32_t channel_count = schedule->emitter_channel_count;
    const bool has_all = schedule->plan.emitted_channel_count == channel_count &&
                         (channel_count == 0 || schedule->worker_count == schedule->emitter_row_count);
    return QUERN__LIKELY(has_all) ? QUERN_OK : quern__emitters_extend(schedule);
}

static quern_result run_frame(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds,
                              uint64_t start_ns, const char *function)
{
    quern_result result = prepare_run(schedule, jobs);
    if (result == QUERN_OK)
        result = schedule->observer->calls->prepare(schedule->observer, schedule->worker_count);
    const bool is_outside = jobs != NULL && quern__jobs_current_worker(jobs) == NULL;
    if (result == QUERN_OK && is_outside) result = quern__jobs_enter(jobs, function);
    if (result != QUERN_OK) return result;
    start_run(schedule, jobs, delta_seconds);
    const quern__observed_frame frame = {.jobs = jobs,
                                         .thread_count = jobs != NULL ? jobs->thread_count : 1,
                                         .worker_count = jobs != NULL ? jobs->worker_count : 1,
                                         .caller_index = schedule->caller_index,
                                         .frame_index = schedule->frame_index,
                                         .begin_ns = start_ns};
    /* Reset the statistics. This visits the systems only if the last frame had commands. */
    schedule->stats = (quern_frame_stats){.frame_index = schedule->frame_index};
    quern__playback_start_frame(&schedule->playback);
    schedule->sync_segment = NULL;
    if (QUERN__UNLIKELY(schedule->command_listener != NULL))
        schedule->command_listener->begin_frame(schedule->command_listener);
    schedule->observer->calls->begin_frame(schedule->observer, &frame);
    schedule->is_observed = schedule->observer->is_observing;
    for (uint32_t i = 0; i < schedule->plan.systems.count && schedule->has_command_counts; i++)
        schedule->plan.systems.items[i]->command_count = 0;
    schedule->has_command_counts = false;
    if (QUERN__UNLIKELY(schedule->has_reacted)) quern__reaction_rounds_clear_frame(schedule);
    result = run_locked(schedule, run_phases);
    if (schedule->is_observed) schedule->observer->calls->end_frame(schedule->observer);
    if (is_outside)
        quern__jobs_leave(jobs); /* from here on, the worker and its track may belong to another thread */
    schedule->frame_index++;
    schedule->stats.time_ns = quern__clock_ns() - start_ns;
    return result;
}

quern_result quern__frame_run_reactions(quern_schedule *schedule, quern_jobs *jobs, const char *function)
{
    quern_result result = prepare_run(schedule, jobs);
    const bool is_outside = jobs != NULL && quern__jobs_current_worker(jobs) == NULL;
    if (result == QUERN_OK && is_outside) result = quern__jobs_enter(jobs, function);
    if (result != QUERN_OK) return result;
    start_run(schedule, jobs, 0);
    result = run_locked(schedule, apply_kept_and_react);
    if (is_outside) quern__jobs_leave(jobs);
    return result;
}

quern_result quern__schedule_run(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds,
                                 const char *function)
{
    if (schedule == NULL) return quern__fail_null(function, "schedule");
    quern_world *world = schedule->plan.world;
    if (!quern__world_claim(world, function)) return QUERN_ERROR_WORLD_LOCKED;
    quern_result result = check_run(schedule, delta_seconds, function);
    if (result == QUERN_OK) {
        const uint64_t start_ns = quern__clock_ns();
        result = run_frame(schedule, jobs, delta_seconds, start_ns, function);
        quern__in_call(result, function);
    }
    quern__world_unclaim(world);
    return result;
}

quern_result quern_schedule_run(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds)
{
    return quern__schedule_run(schedule, jobs, delta_seconds, __func__);
}
