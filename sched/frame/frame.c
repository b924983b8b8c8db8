/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/frame.h"

#include "sched/frame/context.h"
#include "sched/frame/profile.h"
#include "sched/jobs/graph.h"
#include "sched/jobs/jobs.h"
#include "sched/schedule/compile.h"

#include <float.h>

enum { WORKER_ALIGNMENT_BYTES = 128, TIMES_PER_LINE = 16 };

/* ---------------------------------------------------------------------------------------- workers */

/* Recorders, contexts and times of all workers lie in one block of memory. */
typedef struct worker_parts {
    size_t contexts_offset, times_offset, total_bytes;
} worker_parts;

static worker_parts parts_of(uint32_t worker_count, uint32_t time_stride)
{
    worker_parts parts;
    parts.contexts_offset = quern__align_up(worker_count * sizeof(quern_commands), WORKER_ALIGNMENT_BYTES);
    parts.times_offset = quern__align_up(parts.contexts_offset + worker_count * sizeof(quern_context),
                                         WORKER_ALIGNMENT_BYTES);
    parts.total_bytes = parts.times_offset + (size_t)worker_count * time_stride * sizeof(uint64_t);
    return parts;
}

void quern__frame_release(quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        quern__commands_release(&schedule->recorders[i]);
    worker_parts parts = parts_of(schedule->worker_count, schedule->time_stride);
    quern__release(quern__plan_allocator(&schedule->plan), schedule->recorders, parts.total_bytes,
                   WORKER_ALIGNMENT_BYTES);
    schedule->recorders = NULL;
    schedule->worker_count = 0;
}

/* What recorders hold may still have to be applied, so they come along. */
static void move_recorders(quern_schedule *schedule, quern_commands *target, uint32_t worker_count)
{
    if (schedule->worker_count > 0)
        memcpy((void *)target, schedule->recorders, schedule->worker_count * sizeof *target);
    for (uint32_t i = schedule->worker_count; i < worker_count; i++)
        quern__commands_init(&target[i], &schedule->plan.world->storage);
    worker_parts parts = parts_of(schedule->worker_count, schedule->time_stride);
    quern__release(quern__plan_allocator(&schedule->plan), schedule->recorders, parts.total_bytes,
                   WORKER_ALIGNMENT_BYTES);
}

/* Without a recorder. What the profile keeps of the worker comes along. */
static quern_context make_context(quern_schedule *schedule, uint32_t index)
{
    quern_context made = {.schedule = schedule, .worker_index = index, .is_timed = schedule->timing};
    if (index >= schedule->worker_count) return made;
    made.profile = schedule->contexts[index].profile;
    made.profile_total = schedule->contexts[index].profile_total;
    return made;
}

/* Makes sure that there is state for every worker and a time for every system. */
static quern_result prepare_workers(quern_schedule *schedule, uint32_t worker_count)
{
    uint32_t stride = (uint32_t)quern__align_up(
        (size_t)(schedule->plan.systems.count + 1) * QUERN__TIME_COUNT, TIMES_PER_LINE);
    if (worker_count <= schedule->worker_count && stride <= schedule->time_stride) return QUERN_OK;
    if (worker_count < schedule->worker_count) worker_count = schedule->worker_count;
    worker_parts parts = parts_of(worker_count, stride);
    char *memory =
        quern__allocate(quern__plan_allocator(&schedule->plan), parts.total_bytes, WORKER_ALIGNMENT_BYTES);
    if (memory == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the recorders of %u workers",
                           worker_count);
    memset(memory, 0, parts.total_bytes);
    quern_context *contexts = (quern_context *)(void *)(memory + parts.contexts_offset);
    for (uint32_t i = 0; i < worker_count; i++)
        contexts[i] = make_context(schedule, i);
    move_recorders(schedule, (quern_commands *)(void *)memory, worker_count);
    schedule->recorders = (quern_commands *)(void *)memory;
    schedule->contexts = contexts;
    schedule->times_ns = (uint64_t *)(void *)(memory + parts.times_offset);
    schedule->time_stride = stride;
    schedule->worker_count = worker_count;
    for (uint32_t i = 0; i < worker_count; i++)
        contexts[i].commands = &schedule->recorders[i];
    return QUERN_OK;
}

/* ----------------------------------------------------------------------------------------- segments */

/* Parts of a system's streams in one segment: begin, one per view, end. */
static uint32_t part_count(const quern__system *system)
{
    return system->view_count + 2;
}

static void number_streams(const quern_schedule *schedule, quern__segment *segment)
{
    segment->serial_count = 0;
    for (uint32_t i = segment->first; i < segment->end; i++) {
        schedule->plan.order.items[i]->serial_offset = segment->serial_count;
        segment->serial_count += part_count(schedule->plan.order.items[i]);
    }
}

/* Whether no frame has anything to call, until something is prepared anew. */
static bool is_idle(const quern__segment *segment)
{
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        const quern__pass *pass = segment->passes.items[i];
        if (pass->item_count > 0 || pass->has_begin || pass->has_end) return false;
    }
    return true;
}

/* Counts what there is to do. Holds for later frames, too, until rows come, go or move. */
static quern_result prepare_segment(const quern_schedule *schedule, quern__segment *segment)
{
    uint64_t version = schedule->plan.world->storage.structure_version + 1;
    uint32_t thread_count = schedule->jobs != NULL ? schedule->jobs->thread_count : 1;
    if (segment->prepared_version == version && segment->prepared_threads == thread_count) return QUERN_OK;
    segment->prepared_version = 0;
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        quern_result result = quern__pass_prepare(pass, thread_count);
        if (result == QUERN_OK) result = quern__profile_name_pass(pass);
        if (result == QUERN_OK && segment->graph != NULL)
            result = quern_graph_set_count(segment->graph, pass->run_node, pass->item_count);
        if (result != QUERN_OK) return result;
    }
    number_streams(schedule, segment);
    segment->is_idle = is_idle(segment);
    segment->prepared_version = version;
    segment->prepared_threads = thread_count;
    return QUERN_OK;
}

/* The segment's passes on the caller, in order. */
static void run_passes(const quern__segment *segment)
{
    for (uint32_t i = 0; i < segment->passes.count; i++) {
        quern__pass *pass = segment->passes.items[i];
        if (pass->has_begin) quern__pass_begin(pass, 0, 1, 0);
        quern__pass_run(pass, 0, pass->item_count, 0);
        if (pass->has_end) quern__pass_end(pass, 0, 1, 0);
    }
}

static quern_result start_segment(quern_schedule *schedule, quern__segment *segment)
{
    quern_result result = quern__compile(&schedule->plan);
    if (result == QUERN_OK) result = prepare_segment(schedule, segment);
    if (result != QUERN_OK || segment->is_idle) return result;
    schedule->serial_base = schedule->plan.world->next_serial;
    schedule->plan.world->next_serial += segment->serial_count;
    quern__storage *storage = &schedule->plan.world->storage;
    schedule->version_base = storage->clock - segment->first;
    storage->clock += segment->end - segment->first;
    for (uint32_t i = 0; i < segment->passes.count; i++)
        quern__pass_start(segment->passes.items[i]);
    return QUERN_OK;
}

/* A phase with a fixed step adds up; of others, what was prepared tells. */
static void count_views(const quern_schedule *schedule, const quern__segment *segment)
{
    for (uint32_t i = segment->first; i < segment->end; i++) {
        quern__system *system = schedule->plan.order.items[i];
        if (!system->is_active) continue;
        system->step_view_count += system->view_count;
        system->step_entity_count += system->entity_count;
    }
}

static void finish_segment(quern_schedule *schedule, const quern__segment *segment)
{
    if (schedule->plan.phases[segment->phase].step_seconds > 0) count_views(schedule, segment);
    for (uint32_t i = 0; i < segment->passes.count; i++)
        quern__pass_finish(segment->passes.items[i], schedule->version_base);
}

static quern_result run_graph(quern_schedule *schedule, quern__segment *segment)
{
    quern_result result = start_segment(schedule, segment);
    if (result != QUERN_OK || segment->is_idle) return result;
    if (QUERN_CHECKS && !quern__guards_close(schedule))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to check who keeps pointers "
                                                      "(QUERN_CHECKS)");
    quern__profile_start_segment(schedule, segment);
    if (segment->prepared_threads > 1)
        result = quern__graph_run(segment->graph, schedule->jobs);
    else
        run_passes(segment);
    if (result != QUERN_OK) return result;
    quern__profile_finish_segment(schedule, segment);
    if (QUERN_CHECKS) quern__guards_look(schedule);
    finish_segment(schedule, segment);
    return result;
}

/* Alone on the caller, with the world open to changes, which may make archetypes, and the pool at rest, so
 * that the system may run graphs, and frames of other schedules. */
static quern_result run_exclusive(quern_schedule *schedule, quern__segment *segment)
{
    quern_result result = start_segment(schedule, segment);
    if (result != QUERN_OK || segment->is_idle) return result;
    schedule->plan.world->locked = false;
    if (schedule->jobs != NULL) schedule->jobs->workers[0].is_resting = true;
    quern__profile_start_segment(schedule, segment);
    run_passes(segment);
    quern__profile_finish_segment(schedule, segment);
    if (schedule->jobs != NULL) schedule->jobs->workers[0].is_resting = false;
    schedule->plan.world->locked = true;
    if (QUERN_CHECKS) quern__guards_resume(schedule, "in");
    finish_segment(schedule, segment);
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------- sync points */

/* What goes wrong in a frame without ending it. */
typedef struct frame_report {
    quern_result record_result;  /* a command could not be recorded */
    quern_result refused_result; /* an entity asked for more than it, or the world, can have */
    uint64_t refused_count;      /* such entities */
} frame_report;

/* Commands that could not be recorded fail the frame, but not the commands that were. */
static void count_streams(quern_schedule *schedule, frame_report *report)
{
    schedule->has_command_counts = true;
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        quern_commands *recorder = &schedule->recorders[i];
        quern__commands_close(recorder);
        if (recorder->failed != QUERN_OK) report->record_result = recorder->failed;
        recorder->failed = QUERN_OK;
        for (uint32_t k = 0; k < recorder->streams.count; k++) {
            const quern__stream *stream = &recorder->streams.items[k];
            schedule->plan.systems.items[stream->origin.source]->command_count += stream->command_count;
        }
    }
}

static bool has_commands(const quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        if (schedule->recorders[i].streams.count > 0 || schedule->recorders[i].failed != QUERN_OK)
            return true;
    return false;
}

/* A loop of a sync point in a frame that is watched. */
typedef struct watched_loop {
    quern_schedule *schedule;
    quern__executor_function *function;
    void *argument;
} watched_loop;

static void run_watched_part(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const watched_loop *loop = argument;
    uint64_t start_ns = quern__clock_ns();
    loop->function(loop->argument, begin, end, worker_index);
    quern__profile_add_sync_part(&loop->schedule->contexts[worker_index], start_ns);
}

/* Without a pool only where parts are to be seen. */
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

static void run_on_jobs(void *context, uint32_t count, uint32_t grain, quern__executor_function *function,
                        void *argument)
{
    quern_schedule *schedule = context;
    if (!schedule->watch.is_on) {
        run_in_parts(schedule->jobs, count, grain, function, argument);
        return;
    }
    watched_loop loop = {.schedule = schedule, .function = function, .argument = argument};
    quern__profile_start_loop(schedule, (count - 1) / grain + 1);
    run_in_parts(schedule->jobs, count, grain, run_watched_part, &loop);
    quern__profile_finish_loop(schedule);
}

static void begin_stage(void *context, quern__sync_stage stage)
{
    quern__profile_begin_stage(context, stage);
}

static quern_result play_back(quern_schedule *schedule, quern__playback_stats *applied)
{
    quern__executor executor = {.parallel_for = run_on_jobs,
                                .context = schedule,
                                .thread_count = schedule->jobs ? schedule->jobs->thread_count : 1,
                                .shows_parts = schedule->watch.capture != NULL,
                                .begin_stage = schedule->watch.is_on ? begin_stage : NULL};
    quern__profile_start_sync(schedule);
    if (QUERN_CHECKS) quern__guards_break(schedule);
    return quern__playback_run(&schedule->playback, schedule->recorders, schedule->worker_count, &executor,
                               applied);
}

/* Applies what has been recorded; that may make archetypes. */
static quern_result sync(quern_schedule *schedule, frame_report *report)
{
    if (!has_commands(schedule)) return QUERN_OK;
    uint64_t start_ns = quern__clock_ns();
    count_streams(schedule, report);
    quern__playback_stats applied = {0};
    quern_result result = play_back(schedule, &applied);
    schedule->stats.command_count += applied.command_count;
    schedule->stats.dropped_count += applied.dropped_count;
    schedule->stats.created_count += applied.created_count;
    schedule->stats.destroyed_count += applied.destroyed_count;
    report->refused_count += applied.refused_count;
    if (report->refused_result == QUERN_OK) report->refused_result = applied.refused_result;
    quern__profile_finish_sync(schedule, start_ns, (uint32_t)applied.command_count);
    schedule->stats.sync_ns += quern__clock_ns() - start_ns;
    return result;
}

/* ------------------------------------------------------------------------------------------- frame */

/* Costs nothing for each system, but where it was asked to time them, or the latest frame had commands. */
static void start_frame(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds, uint64_t start_ns)
{
    schedule->jobs = jobs;
    schedule->delta_seconds = delta_seconds;
    schedule->stats = (quern_frame_stats){.frame_index = schedule->frame_index};
    quern__playback_start_frame(&schedule->playback);
    if (schedule->timing)
        memset(schedule->times_ns, 0,
               (size_t)schedule->worker_count * schedule->time_stride * sizeof(uint64_t));
    quern__profile_start_frame(schedule, start_ns);
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        schedule->contexts[i].refused_system = NULL;
    for (uint32_t i = 0; i < schedule->plan.systems.count && schedule->has_command_counts; i++)
        schedule->plan.systems.items[i]->command_count = 0;
    schedule->has_command_counts = false;
}

/* A sync point; with what worlds are asked to do at each of them besides. */
static quern_result run_sync(quern_schedule *schedule, frame_report *report)
{
    const quern_result result = sync(schedule, report);
    quern_world *world = schedule->plan.world;
    if (world->empty_archetype_checks_per_sync > 0 && result == QUERN_OK)
        quern__world_remove_some_archetypes(world);
    return result;
}

static quern_result run_segment(quern_schedule *schedule, quern__segment *segment, frame_report *report)
{
    switch (segment->kind) {
    case QUERN__SEGMENT_RUN:
        return run_graph(schedule, segment);
    case QUERN__SEGMENT_EXCLUSIVE:
        return run_exclusive(schedule, segment);
    case QUERN__SEGMENT_SYNC:
        break;
    }
    return run_sync(schedule, report);
}

/* How often the phase is to run in this frame. Steps that are too many for one frame are dropped. */
static uint32_t take_steps(quern__phase *phase, double delta_seconds)
{
    if (phase->step_seconds == 0) return 1;
    phase->elapsed_seconds += delta_seconds;
    uint32_t count = 0;
    while (phase->elapsed_seconds >= phase->step_seconds && count < phase->max_step_count) {
        phase->elapsed_seconds -= phase->step_seconds;
        count++;
    }
    if (phase->elapsed_seconds >= phase->step_seconds) phase->elapsed_seconds = 0;
    return count;
}

static void start_steps(const quern_schedule *schedule, const quern__phase *phase)
{
    for (uint32_t i = 0; i < schedule->plan.systems.count; i++) {
        quern__system *system = schedule->plan.systems.items[i];
        if (&schedule->plan.phases[system->phase] != phase) continue;
        system->step_view_count = 0;
        system->step_entity_count = 0;
    }
}

static quern_result run_phase(quern_schedule *schedule, quern__phase *phase, frame_report *report)
{
    quern_result result = QUERN_OK;
    double frame_seconds = schedule->delta_seconds;
    uint32_t times = take_steps(phase, frame_seconds);
    if (phase->step_seconds > 0) {
        schedule->delta_seconds = phase->step_seconds;
        start_steps(schedule, phase);
    }
    for (; times > 0 && result == QUERN_OK; times--)
        for (uint32_t i = phase->first_segment; i < phase->end_segment && result == QUERN_OK; i++)
            result = run_segment(schedule, &schedule->plan.segments.items[i], report);
    schedule->delta_seconds = frame_seconds;
    return result;
}

/* Errors stop the frame; the report collects what does not. */
static quern_result run_phases(quern_schedule *schedule, frame_report *report)
{
    quern_result result = sync(schedule, report); /* what an earlier frame could not apply */
    for (uint32_t i = 0; i < schedule->plan.phase_count && result == QUERN_OK; i++)
        result = run_phase(schedule, &schedule->plan.phases[i], report);
    for (uint32_t i = 0; i < schedule->worker_count && result != QUERN_OK; i++)
        quern__commands_close(&schedule->recorders[i]); /* what is kept is counted */
    return result;
}

static quern_result fail_refused(unsigned long long frame, const char *system_name)
{
    if (system_name == quern__guard_nobody)
        return quern__fail(QUERN_ERROR_UNDECLARED_ACCESS,
                           "frame %llu: values were changed through a pointer into the world that somebody "
                           "keeps (see the log)",
                           frame);
    return quern__fail(
        QUERN_ERROR_UNDECLARED_ACCESS,
        "frame %llu: system '%s' was refused an access, or wrote what it may not (see the log)", frame,
        system_name);
}

static quern_result finish_frame(const quern_schedule *schedule, const frame_report *report)
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
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        if (schedule->contexts[i].refused_system != NULL)
            return fail_refused(frame, schedule->contexts[i].refused_system);
    return QUERN_OK;
}

static quern_result check_run(const quern_schedule *schedule, double delta_seconds, const char *function)
{
    if (!(delta_seconds >= 0 && delta_seconds <= DBL_MAX)) /* nor NaN */
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: delta_seconds is %g; give a finite number, 0 or more", function,
                           delta_seconds);
    quern_result result = quern__world_check_unlocked(schedule->plan.world, function);
    if (result != QUERN_OK || !schedule->is_running) return result;
    return quern__fail(QUERN_ERROR_WORLD_LOCKED, "%s: this schedule is running a frame", function);
}

static quern_result run_frame(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds,
                              uint64_t start_ns, const char *function)
{
    quern_result result = quern__compile(&schedule->plan);
    if (result == QUERN_OK) result = prepare_workers(schedule, jobs ? jobs->thread_count : 1);
    if (result == QUERN_OK)
        result =
            quern__counters_reserve(&schedule->watch.counters, schedule->worker_count,
                                    schedule->plan.systems.count, quern__plan_allocator(&schedule->plan));
    if (result == QUERN_OK && jobs != NULL) result = quern__jobs_enter(jobs, function);
    if (result != QUERN_OK) return result;
    start_frame(schedule, jobs, delta_seconds, start_ns);
    schedule->is_running = true;
    schedule->plan.world->locked = true;
    frame_report report = {0};
    if (QUERN_CHECKS) quern__guards_resume(schedule, "before");
    result = run_phases(schedule, &report);
    if (QUERN_CHECKS && (result != QUERN_OK || !quern__guards_close(schedule)))
        quern__guards_break(schedule);
    schedule->plan.world->locked = false;
    schedule->is_running = false;
    if (result == QUERN_OK) result = finish_frame(schedule, &report);
    quern__profile_finish_frame(schedule);
    if (jobs != NULL)
        quern__jobs_leave(jobs); /* worker 0, and its track, may be another thread's from here */
    schedule->frame_index++;
    schedule->stats.time_ns = quern__clock_ns() - start_ns;
    return result;
}

quern_result quern__schedule_run(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds,
                                 const char *function)
{
    if (schedule == NULL) return quern__fail_null(function, "schedule");
    quern_result result = check_run(schedule, delta_seconds, function);
    if (result != QUERN_OK) return result;
    uint64_t start_ns = quern__clock_ns();
    return quern__in_call(run_frame(schedule, jobs, delta_seconds, start_ns, function), function);
}

quern_result quern_schedule_run(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds)
{
    return quern__schedule_run(schedule, jobs, delta_seconds, "quern_schedule_run");
}
