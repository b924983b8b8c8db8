/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame.h"

#include "core/hash.h"
#include "sched/compile.h"
#include "sched/context.h"
#include "sched/graph.h"
#include "sched/jobs.h"

enum { WORKER_ALIGNMENT_BYTES = 128, TIMES_PER_LINE = 16 };

/* ---------------------------------------------------------------------------------------- workers */

static const quern_allocator *allocator_of(const quern_schedule *schedule)
{
    return &schedule->world->storage.allocator;
}

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
    quern__release(allocator_of(schedule), schedule->recorders, parts.total_bytes, WORKER_ALIGNMENT_BYTES);
    schedule->recorders = NULL;
    schedule->worker_count = 0;
}

/* Makes sure that there is state for every worker and a time for every system. */
static quern_result prepare_workers(quern_schedule *schedule, uint32_t worker_count)
{
    uint32_t stride = (uint32_t)quern__align_up(schedule->systems.count + 1u, TIMES_PER_LINE);
    if (worker_count <= schedule->worker_count && stride <= schedule->time_stride) return QUERN_OK;
    if (worker_count < schedule->worker_count) worker_count = schedule->worker_count;
    worker_parts parts = parts_of(worker_count, stride);
    char *memory = quern__allocate(allocator_of(schedule), parts.total_bytes, WORKER_ALIGNMENT_BYTES);
    if (memory == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the recorders of %u workers",
                           worker_count);
    memset(memory, 0, parts.total_bytes);
    quern__frame_release(schedule);
    schedule->recorders = (quern_commands *)(void *)memory;
    schedule->contexts = (quern_context *)(void *)(memory + parts.contexts_offset);
    schedule->times_ns = (uint64_t *)(void *)(memory + parts.times_offset);
    schedule->time_stride = stride;
    schedule->worker_count = worker_count;
    for (uint32_t i = 0; i < worker_count; i++) {
        quern__commands_init(&schedule->recorders[i], &schedule->world->storage);
        schedule->contexts[i] =
            (quern_context){.schedule = schedule, .commands = &schedule->recorders[i], .worker_index = i};
    }
    return QUERN_OK;
}

uint64_t quern__frame_time_ns(const quern_schedule *schedule, const quern__system *system)
{
    if (system->index >= schedule->time_stride) return 0; /* added since the latest frame */
    uint64_t time_ns = 0;
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        time_ns += schedule->times_ns[(size_t)i * schedule->time_stride + system->index];
    return time_ns;
}

/* --------------------------------------------------------------------------------------- callbacks */

enum { PART_BEGIN = 0, PART_FIRST_VIEW = 1 };

/* Parts of a system's streams in one step: begin, one per view, end. */
static uint32_t part_count(const quern__system *system)
{
    return system->view_count + 2;
}

static quern_context *enter(quern_schedule *schedule, const quern__system *system, uint32_t worker_index,
                            quern__stage stage, uint32_t part)
{
    quern_context *context = &schedule->contexts[worker_index];
    context->scope = (quern__scope){.system_name = system->name};
    context->system = system;
    context->stage = stage;
    context->ordinal = part - PART_FIRST_VIEW;
    uint32_t serial = (uint32_t)((system->serial_base + part) % QUERN__MAX_SERIAL) + 1;
    quern__commands_begin(context->commands, (uint64_t)system->position << 32 | part, serial);
    return context;
}

static void leave(quern_context *context)
{
    if (QUERN__UNLIKELY(context->scope.refused != QUERN_OK))
        context->refused_system = context->system->name;
}

static uint64_t start_clock(const quern_schedule *schedule)
{
    return schedule->timing ? quern__clock_ns() : 0;
}

static void stop_clock(quern_schedule *schedule, const quern__system *system, uint32_t worker_index,
                       uint64_t start_ns)
{
    if (schedule->timing)
        schedule->times_ns[(size_t)worker_index * schedule->time_stride + system->index] +=
            quern__clock_ns() - start_ns;
}

static void call_hook(const quern__system *system, quern_system_hook *hook, quern__stage stage,
                      uint32_t part, uint32_t worker_index)
{
    quern_schedule *schedule = system->schedule;
    quern_context *context = enter(schedule, system, worker_index, stage, part);
    uint64_t start_ns = start_clock(schedule);
    hook(context);
    stop_clock(schedule, system, worker_index, start_ns);
    leave(context);
}

void quern__frame_begin_node(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)begin;
    (void)end;
    const quern__system *system = argument;
    call_hook(system, system->begin, QUERN__STAGE_BEGIN, PART_BEGIN, worker_index);
}

void quern__frame_end_node(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)begin;
    (void)end;
    const quern__system *system = argument;
    call_hook(system, system->end, QUERN__STAGE_END, PART_FIRST_VIEW + system->view_count, worker_index);
}

/* A build with checks notices a write through a column declared read, const cast away: nobody may write those
 * while the view is worked on, so their bytes must be the same afterwards. */
static uint64_t hash_read_column(const quern_view *view, uint32_t term)
{
    const quern_view_column *column = &view->columns[term];
    if (column->access != QUERN_READ || column->offset_bytes == 0) return 0;
    return quern__hash_bytes(0, quern__view_column_at(view, term),
                             (size_t)view->count * column->size_bytes);
}

static void report_write(quern_context *context, uint32_t term)
{
    const quern__query *query = &context->system->query;
    char declared[256];
    quern__query_declared(query, declared, sizeof declared);
    context->scope.refused = quern__violation(
        QUERN_ERROR_UNDECLARED_ACCESS, "system '%s' wrote '%s' (declared: %s)", context->system->name,
        quern_component_name(context->schedule->world, query->terms[term].component), declared);
}

static void call_run(quern_context *context, const quern_view *view)
{
    if (!QUERN_CHECKS) {
        context->system->run(context, view);
        return;
    }
    const uint32_t term_count = view->term_count;
    uint64_t before[QUERN_MAX_TERMS];
    for (uint32_t i = 0; i < term_count; i++)
        before[i] = hash_read_column(view, i);
    context->system->run(context, view);
    for (uint32_t i = 0; i < term_count; i++)
        if (before[i] != hash_read_column(view, i)) report_write(context, i);
}

/* Runs one view of the system: ordinal counts over matches and their chunks. */
static void run_view(const quern__system *system, quern_view *view, const quern__query_match *match,
                     uint32_t chunk_index, uint32_t worker_index)
{
    quern_schedule *schedule = system->schedule;
    quern_context *context =
        enter(schedule, system, worker_index, QUERN__STAGE_RUN, PART_FIRST_VIEW + view->ordinal);
    if (match != NULL) quern__view_set(view, &system->query, match, &match->archetype->slots[chunk_index]);
    view->context = context;
    uint64_t start_ns = start_clock(schedule);
    call_run(context, view);
    stop_clock(schedule, system, worker_index, start_ns);
    leave(context);
}

/* The last match whose first view is not behind the ordinal; it has the view, since matches without chunks
 * have the same first view as the one behind them. */
static uint32_t find_match(const quern__system *system, uint32_t ordinal)
{
    uint32_t low = 0, high = system->query.matches.count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (system->first_views.items[middle] <= ordinal)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static void run_views(const quern__system *system, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    if (begin == end) return;
    quern_view view = {.query = &system->query, .ordinal = begin};
    uint32_t i = find_match(system, begin);
    while (view.ordinal < end) {
        const quern__query_match *match = &system->query.matches.items[i];
        uint32_t chunk_index = view.ordinal - system->first_views.items[i];
        if (chunk_index == match->archetype->chunk_count) {
            i++;
            continue;
        }
        run_view(system, &view, match, chunk_index, worker_index);
        view.ordinal++;
    }
}

void quern__frame_run_node(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    const quern__system *system = argument;
    if (system->run == NULL) return;
    if (system->query.term_count == 0) {
        quern_view view = {.query = &system->query};
        run_view(system, &view, NULL, 0, worker_index);
    } else if (quern__system_is(system, QUERN_SYSTEM_SERIAL)) {
        run_views(system, 0, system->view_count, worker_index);
    } else {
        run_views(system, begin, end, worker_index);
    }
}

/* ------------------------------------------------------------------------------------------- steps */

/* How many items a system's run node has: one per view, but a serial system is one job. */
static uint32_t run_item_count(const quern__system *system)
{
    if (!system->enabled || system->view_count == 0) return 0;
    return quern__system_is(system, QUERN_SYSTEM_SERIAL) ? 1 : system->view_count;
}

static quern_result prepare_system(quern_schedule *schedule, const quern__step *step, quern__system *system)
{
    quern_result result = quern__system_prepare(system);
    if (result != QUERN_OK) return result;
    if (!system->enabled) {
        system->view_count = 0;
        system->entity_count = 0;
    }
    system->serial_base = schedule->world->next_serial;
    schedule->world->next_serial += part_count(system);
    uint32_t hook_count = system->enabled ? 1 : 0;
    if (system->begin != NULL) quern_graph_set_count(step->graph, system->begin_node, hook_count);
    if (system->end != NULL) quern_graph_set_count(step->graph, system->end_node, hook_count);
    return quern_graph_set_count(step->graph, system->run_node, run_item_count(system));
}

static quern_result run_graph(quern_schedule *schedule, const quern__step *step)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = step->first; i < step->end && result == QUERN_OK; i++)
        result = prepare_system(schedule, step, schedule->order.items[i]);
    return result == QUERN_OK ? quern__graph_run(step->graph, schedule->jobs) : result;
}

static void call_exclusive(quern__system *system)
{
    if (system->begin != NULL) quern__frame_begin_node(system, 0, 1, 0);
    quern__frame_run_node(system, 0, 1, 0);
    if (system->end != NULL) quern__frame_end_node(system, 0, 1, 0);
}

/* Alone on the caller, with the world open to changes, which may make archetypes, and the pool at rest, so that
 * the system may run graphs, and frames of other schedules. */
static quern_result run_exclusive(quern_schedule *schedule, const quern__step *step)
{
    quern__system *system = schedule->order.items[step->first];
    system->view_count = system->enabled ? 1 : 0;
    if (!system->enabled) return QUERN_OK;
    system->serial_base = schedule->world->next_serial;
    schedule->world->next_serial += part_count(system);
    schedule->world->locked = false;
    if (schedule->jobs != NULL) schedule->jobs->workers[0].is_resting = true;
    call_exclusive(system);
    if (schedule->jobs != NULL) schedule->jobs->workers[0].is_resting = false;
    schedule->world->locked = true;
    return quern__compile(schedule);
}

/* What goes wrong in a frame without ending it. */
typedef struct frame_report {
    quern_result record_result;  /* a command could not be recorded */
    quern_result refused_result; /* an entity asked for more than it can have */
    uint64_t refused_count;      /* such entities */
} frame_report;

/* Commands that could not be recorded fail the frame, but not the commands that were. */
static void count_streams(quern_schedule *schedule, frame_report *report)
{
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        const quern_commands *recorder = &schedule->recorders[i];
        if (recorder->failed != QUERN_OK) report->record_result = recorder->failed;
        for (uint32_t k = 0; k < recorder->streams.count; k++) {
            const quern__stream *stream = &recorder->streams.items[k];
            schedule->order.items[stream->key >> 32]->command_count += stream->command_count;
        }
    }
}

/* Applies what has been recorded; that may make archetypes. */
static quern_result sync(quern_schedule *schedule, frame_report *report)
{
    uint64_t start_ns = quern__clock_ns();
    count_streams(schedule, report);
    quern__playback_stats applied = {0};
    quern_result result =
        quern__playback_run(&schedule->playback, schedule->recorders, schedule->worker_count, &applied);
    schedule->stats.command_count += applied.command_count;
    schedule->stats.dropped_count += applied.dropped_count;
    schedule->stats.created_count += applied.created_count;
    schedule->stats.destroyed_count += applied.destroyed_count;
    report->refused_count += applied.refused_count;
    if (report->refused_result == QUERN_OK) report->refused_result = applied.refused_result;
    if (result == QUERN_OK) result = quern__compile(schedule);
    schedule->stats.sync_ns += quern__clock_ns() - start_ns;
    return result;
}

/* ------------------------------------------------------------------------------------------- frame */

static void start_frame(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds)
{
    schedule->jobs = jobs;
    schedule->delta_seconds = delta_seconds;
    schedule->stats = (quern_frame_stats){.frame_index = schedule->frame_index};
    memset(schedule->times_ns, 0,
           (size_t)schedule->worker_count * schedule->time_stride * sizeof(uint64_t));
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        schedule->contexts[i].refused_system = NULL;
    for (uint32_t i = 0; i < schedule->systems.count; i++)
        schedule->systems.items[i]->command_count = 0;
}

/* Errors stop the frame; the report collects what does not. */
static quern_result run_steps(quern_schedule *schedule, frame_report *report)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < schedule->steps.count && result == QUERN_OK; i++) {
        const quern__step *step = &schedule->steps.items[i];
        switch (step->kind) {
        case QUERN__STEP_RUN:
            result = run_graph(schedule, step);
            break;
        case QUERN__STEP_EXCLUSIVE:
            result = run_exclusive(schedule, step);
            break;
        case QUERN__STEP_SYNC:
            result = sync(schedule, report);
            break;
        }
    }
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        quern__commands_reset(&schedule->recorders[i]); /* not empty only when a step failed */
    return result;
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
            "frame %llu: the commands on %llu entities ask for more components or bytes than one "
            "entity can have, and were dropped; the others were applied",
            frame, (unsigned long long)report->refused_count);
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        if (schedule->contexts[i].refused_system != NULL)
            return quern__fail(
                QUERN_ERROR_UNDECLARED_ACCESS,
                "frame %llu: system '%s' was refused an access that it had not declared (see the "
                "log)",
                frame, schedule->contexts[i].refused_system);
    return QUERN_OK;
}

static quern_result check_run(const quern_schedule *schedule)
{
    quern_result result = quern__world_check_unlocked(schedule->world, "quern_schedule_run");
    if (result != QUERN_OK || !schedule->is_running) return result;
    return quern__fail(QUERN_ERROR_WORLD_LOCKED, "quern_schedule_run: this schedule is running a frame");
}

static quern_result run_frame(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds,
                              uint64_t start_ns)
{
    quern_result result = quern__compile(schedule);
    if (result == QUERN_OK) result = prepare_workers(schedule, jobs ? quern_jobs_thread_count(jobs) : 1);
    if (result == QUERN_OK && jobs != NULL) result = quern__jobs_enter(jobs, "quern_schedule_run");
    if (result != QUERN_OK) return result;
    start_frame(schedule, jobs, delta_seconds);
    schedule->is_running = true;
    schedule->world->locked = true;
    frame_report report = {0};
    result = run_steps(schedule, &report);
    if (schedule->jobs != NULL) quern__jobs_leave(schedule->jobs);
    schedule->world->locked = false;
    schedule->is_running = false;
    if (result == QUERN_OK) result = finish_frame(schedule, &report);
    schedule->frame_index++;
    schedule->stats.time_ns = quern__clock_ns() - start_ns;
    return result;
}

quern_result quern_schedule_run(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_run", "schedule");
    quern_result result = check_run(schedule);
    if (result != QUERN_OK) return result;
    uint64_t start_ns = quern__clock_ns();
    return run_frame(schedule, jobs, delta_seconds, start_ns);
}
