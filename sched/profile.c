/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/profile.h"

#include "sched/jobs.h"
#include "sched/recording.h"
#include "sched/thread.h"

#include <inttypes.h>

enum {
    FIRST_STRIDE = 16,
    MAX_STRIDE = 4096,
    PROFILE_SHARE = 500, /* samples may cost one part in so many of a pass */
    TRACE_SHARE = 200,
    COUNTED_LOOKS = 100, /* a job that takes less than so many looks at the clock is counted, not timed */
    SHOW_NS = 30,        /* about what recording an event takes */
    MIN_TIMED_JOBS = 64, /* a job of more than one part in so many of a pass is timed anyway */
    FADE_SHARE = 8,
    CLOCK_LOOKS = 32
};

/* -------------------------------------------------------------------------------------------- clock */

/* What two looks at the clock, one after another, tell of as time gone by. */
static uint64_t measure_clock_ns(void)
{
    uint64_t least_ns = UINT64_MAX;
    for (uint32_t i = 0; i < CLOCK_LOOKS; i++) {
        const uint64_t start_ns = quern__clock_ns();
        const uint64_t took_ns = quern__clock_ns() - start_ns;
        if (took_ns < least_ns) least_ns = took_ns;
    }
    return least_ns;
}

/* Relaxed: every thread that measures it comes to about the same, and nothing else depends on it. */
static uint64_t clock_cost_ns(void)
{
    static _Atomic uint64_t known_ns; /* and one, 0 being unknown */
    uint64_t cost_ns = atomic_load_explicit(&known_ns, memory_order_relaxed);
    if (cost_ns == 0) {
        cost_ns = measure_clock_ns() + 1;
        atomic_store_explicit(&known_ns, cost_ns, memory_order_relaxed);
    }
    return cost_ns - 1;
}

static uint64_t *time_of(const quern_schedule *schedule, uint32_t worker_index, uint32_t system_index,
                         uint32_t what)
{
    return &schedule->times_ns[(size_t)worker_index * schedule->time_stride +
                               (size_t)system_index * QUERN__TIME_COUNT + what];
}

/* False for one that was added since the latest frame. */
static bool has_times(const quern_schedule *schedule, const quern__system *system)
{
    return (system->index + 1) * QUERN__TIME_COUNT <= schedule->time_stride;
}

static uint64_t sum_times(const quern_schedule *schedule, const quern__system *system, uint32_t what)
{
    uint64_t time_ns = 0;
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        time_ns += *time_of(schedule, i, system->index, what);
    return time_ns;
}

/* By how much a sum that others add to has grown. It begins again when the workers are made anew. */
static uint64_t growth(uint64_t *seen, uint64_t sum)
{
    const uint64_t before = *seen <= sum ? *seen : 0;
    *seen = sum;
    return sum - before;
}

/* --------------------------------------------------------------------------------------------- names */

/* "move", or "move + 6" when six others share the pass: so that it fits, whatever the names. */
static void describe_pass(const quern__pass *pass, char *name, size_t bytes)
{
    const char *first = pass->systems.items[0]->name;
    if (pass->systems.count == 1)
        snprintf(name, bytes, "%s", first);
    else
        snprintf(name, bytes, "%.*s + %" PRIu32, QUERN_MAX_NAME_BYTES - 13, first, pass->systems.count - 1);
}

quern_result quern__profile_name_pass(quern__pass *pass)
{
    quern_trace *trace = pass->schedule->watch.trace;
    if (trace == NULL || pass->is_named) return QUERN_OK;
    char name[QUERN_MAX_NAME_BYTES + 1];
    describe_pass(pass, name, sizeof name);
    quern_result result = quern_trace_add_name(trace, name, &pass->trace_name);
    for (uint32_t i = 0; i < pass->systems.count && result == QUERN_OK; i++) {
        quern__system *system = pass->systems.items[i];
        result = quern_trace_add_name(trace, system->name, &system->trace_name);
    }
    pass->is_named = result == QUERN_OK;
    return result;
}

static void show(const quern_schedule *schedule, uint32_t track, const quern__trace_event *event)
{
    if (schedule->watch.is_traced) quern__trace_show(schedule->watch.trace, track, event);
}

/* ----------------------------------------------------------------------------------------- recording */

/* What going over the items touches, where that is more than the caches of all threads hold. */
static uint64_t memory_bytes(const quern__pass *pass)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < pass->tables.count && pass->prefetches; i++) {
        const quern__pass_table *table = &pass->tables.items[i];
        for (uint32_t k = table->first_span; k < table->end_span; k++)
            bytes += pass->spans.items[k].size_bytes * quern__archetype_row_count(table->archetype);
    }
    return bytes;
}

static void record_pass(quern_recording *recording, const quern__step *step, quern__pass *pass)
{
    char name[QUERN_MAX_NAME_BYTES + 1];
    describe_pass(pass, name, sizeof name);
    pass->task = quern__recording_add_task(recording, name, pass->item_count);
    if (pass->task == UINT32_MAX) return;
    quern__task *task = &recording->tasks.items[pass->task];
    task->bytes = memory_bytes(pass);
    task->is_serial = pass->kind != QUERN__PASS_CHUNKS;
    task->caller_only = quern__system_is(pass->systems.items[0], QUERN_SYSTEM_MAIN_THREAD);
    for (uint32_t i = 0; i < pass->waits_for.count; i++)
        quern__recording_add_wait(recording, step->passes.items[pass->waits_for.items[i]]->task);
}

static void record_step(quern_recording *recording, const quern__step *step)
{
    quern__recording_start_section(recording, false, quern__clock_ns());
    for (uint32_t i = 0; i < step->passes.count; i++)
        record_pass(recording, step, step->passes.items[i]);
}

void quern__profile_record_item(const quern__pass *pass, uint32_t item, uint64_t took_ns)
{
    const quern_recording *recording = pass->schedule->watch.recording;
    if (recording->is_out_of_memory) return;
    const uint64_t cost_ns = clock_cost_ns();
    recording->items_ns.items[recording->tasks.items[pass->task].first_item + item] =
        took_ns > cost_ns ? took_ns - cost_ns : 0;
}

static void record_hooks(const quern__pass *pass, const quern_context *context, uint64_t took_ns)
{
    const quern_recording *recording = pass->schedule->watch.recording;
    if (recording == NULL || recording->is_out_of_memory) return;
    quern__task *task = &recording->tasks.items[pass->task];
    if (context->stage == QUERN__STAGE_BEGIN)
        task->before_ns = took_ns;
    else
        task->after_ns = took_ns;
}

/* ------------------------------------------------------------------------------------ jobs and calls */

uint64_t quern__profile_start_job(const quern__pass *pass, quern_context *context, uint32_t count)
{
    const uint32_t stride = pass->sample_stride != 0 ? pass->sample_stride : FIRST_STRIDE;
    if (context->sample_countdown == 0 || context->sample_countdown > stride)
        context->sample_countdown = stride;
    return count < pass->timed_count && !context->schedule->watch.is_traced ? 0 : quern__clock_ns();
}

void quern__profile_next_chunk(const quern__pass *pass, quern_context *context)
{
    const quern_schedule *schedule = context->schedule;
    const bool is_sampled = --context->sample_countdown == 0;
    if (is_sampled)
        context->sample_countdown = pass->sample_stride != 0 ? pass->sample_stride : FIRST_STRIDE;
    context->is_timed = is_sampled || schedule->timing;
    context->is_shown = is_sampled && schedule->watch.is_traced;
}

void quern__profile_add_call(quern_context *context, uint64_t start_ns, uint32_t row_count)
{
    const quern_schedule *schedule = context->schedule;
    const quern__system *system = context->system;
    const uint64_t took_ns = quern__clock_ns() - start_ns;
    const uint32_t what = context->stage == QUERN__STAGE_RUN ? QUERN__TIME_VIEWS : QUERN__TIME_HOOKS;
    const uint64_t cost_ns = schedule->timing ? 0 : clock_cost_ns();
    *time_of(schedule, context->worker_index, system->index, what) +=
        took_ns > cost_ns ? took_ns - cost_ns : 0;
    if (!context->is_shown) return;
    const quern__trace_event event = {.begin_ns = start_ns,
                                      .duration_ns = took_ns,
                                      .kind = QUERN__TRACE_SYSTEM,
                                      .name = system->trace_name,
                                      .ordinal = context->part,
                                      .count = row_count};
    show(schedule, context->worker_index, &event);
}

/* Relaxed: read when the step is over, which orders it. */
static void raise_to(_Atomic uint64_t *largest, uint64_t value)
{
    uint64_t known = atomic_load_explicit(largest, memory_order_relaxed);
    while (known < value && !atomic_compare_exchange_weak_explicit(
                                largest, &known, value, memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* Jobs that were not timed take what its chunks took in the latest frame. */
static uint64_t job_time_ns(quern__pass *pass, uint64_t start_ns, uint32_t count)
{
    if (start_ns == 0) return pass->chunk_ns * count;
    const uint64_t took_ns = quern__clock_ns() - start_ns;
    raise_to(&pass->longest_ns, took_ns / count);
    return took_ns;
}

void quern__profile_finish_job(quern__pass *pass, quern_context *context, uint64_t start_ns, uint32_t begin,
                               uint32_t end)
{
    const uint64_t took_ns = job_time_ns(pass, start_ns, end - begin);
    context->busy_ns += took_ns;
    context->is_timed = context->schedule->timing;
    context->is_shown = false;
    *time_of(context->schedule, context->worker_index, pass->systems.items[0]->index, QUERN__TIME_JOBS) +=
        took_ns;
    const quern__trace_event event = {.begin_ns = start_ns,
                                      .duration_ns = took_ns,
                                      .kind = QUERN__TRACE_PASS,
                                      .name = pass->trace_name,
                                      .ordinal = begin,
                                      .count = end - begin};
    show(context->schedule, context->worker_index, &event);
}

uint64_t quern__profile_start_hooks(quern_context *context)
{
    const quern__watch *watch = &context->schedule->watch;
    if (!watch->is_on) return 0;
    context->is_timed = true;
    context->is_shown = watch->is_traced;
    return quern__clock_ns();
}

void quern__profile_finish_hooks(quern__pass *pass, quern_context *context, uint64_t start_ns)
{
    if (start_ns == 0) return;
    const uint64_t took_ns = quern__clock_ns() - start_ns;
    context->busy_ns += took_ns;
    context->is_timed = context->schedule->timing;
    context->is_shown = false;
    pass->hooks_ns += took_ns;
    record_hooks(pass, context, took_ns);
}

/* --------------------------------------------------------------------------------------------- steps */

void quern__profile_start_step(const quern_schedule *schedule, const quern__step *step)
{
    if (!schedule->watch.is_on) return;
    for (uint32_t i = 0; i < step->passes.count; i++) {
        quern__pass *pass = step->passes.items[i];
        atomic_store_explicit(&pass->longest_ns, 0, memory_order_relaxed);
        if (pass->chunk_ns == 0) /* its first run: its system may have been in another pass before */
            pass->busy_seen_ns = sum_times(schedule, pass->systems.items[0], QUERN__TIME_JOBS);
        pass->hooks_ns = 0;
    }
    if (schedule->watch.recording != NULL) record_step(schedule->watch.recording, step);
}

static uint32_t choose_stride(const quern__pass *pass, uint64_t busy_ns, bool is_traced)
{
    const uint64_t call_ns = 2 * clock_cost_ns() + (is_traced ? SHOW_NS : 0);
    const uint64_t sample_ns = pass->systems.count * call_ns * (is_traced ? TRACE_SHARE : PROFILE_SHARE);
    const uint64_t stride = sample_ns * pass->chunk_count / busy_ns;
    return stride < 1 ? 1 : stride > MAX_STRIDE ? MAX_STRIDE : (uint32_t)stride;
}

/* What the next frame times follows from what chunks took in this one. */
static void learn(quern__pass *pass, bool is_traced)
{
    const uint64_t busy_ns = pass->busy_ns;
    if (busy_ns == 0 || pass->item_count == 0) return;
    pass->chunk_ns = busy_ns / pass->item_count;
    pass->timed_count = (uint32_t)(COUNTED_LOOKS * clock_cost_ns() / (pass->chunk_ns + 1));
    const uint32_t most = pass->item_count / MIN_TIMED_JOBS;
    if (pass->timed_count > most) pass->timed_count = most;
    if (pass->chunk_count > 0) pass->sample_stride = choose_stride(pass, busy_ns, is_traced);
}

/* The longest chain of passes that wait for each other, each as long as if it had a thread for every chunk. Passes
 * stand in an order that respects what they wait for. */
static uint64_t longest_path_ns(const quern__step *step)
{
    uint64_t longest_ns = 0;
    for (uint32_t i = 0; i < step->passes.count; i++) {
        quern__pass *pass = step->passes.items[i];
        uint64_t start_ns = 0;
        for (uint32_t k = 0; k < pass->waits_for.count; k++) {
            const quern__pass *before = step->passes.items[pass->waits_for.items[k]];
            if (before->path_ns > start_ns) start_ns = before->path_ns;
        }
        pass->path_ns =
            start_ns + pass->hooks_ns + atomic_load_explicit(&pass->longest_ns, memory_order_relaxed);
        if (pass->path_ns > longest_ns) longest_ns = pass->path_ns;
    }
    return longest_ns;
}

void quern__profile_finish_step(quern_schedule *schedule, const quern__step *step)
{
    quern__watch *watch = &schedule->watch;
    if (!watch->is_on) return;
    for (uint32_t i = 0; i < step->passes.count; i++) {
        quern__pass *pass = step->passes.items[i];
        pass->busy_ns =
            growth(&pass->busy_seen_ns, sum_times(schedule, pass->systems.items[0], QUERN__TIME_JOBS));
        pass->frame_ns += pass->busy_ns;
        learn(pass, watch->is_traced);
    }
    watch->frame.critical_path_ns += longest_path_ns(step);
    if (watch->recording != NULL) quern__recording_finish_section(watch->recording, quern__clock_ns());
}

/* --------------------------------------------------------------------------------------- sync points */

static void show_stage(const quern_schedule *schedule, quern__sync_stage stage, uint32_t track,
                       uint64_t start_ns, uint64_t end_ns, uint32_t count)
{
    const quern__trace_event event = {.begin_ns = start_ns,
                                      .duration_ns = end_ns - start_ns,
                                      .kind = QUERN__TRACE_SYNC,
                                      .name = QUERN__TRACE_NO_NAME,
                                      .ordinal = stage,
                                      .count = count};
    show(schedule, track, &event);
}

static uint64_t *stage_time(quern_frame_profile *frame, quern__sync_stage stage)
{
    switch (stage) {
    case QUERN__STAGE_GATHER:
        return &frame->gather_ns;
    case QUERN__STAGE_FOLD:
        return &frame->fold_ns;
    case QUERN__STAGE_SETTLE:
        return &frame->settle_ns;
    default:
        return &frame->commit_ns;
    }
}

/* The stage that runs ends now. */
static void end_stage(quern_schedule *schedule, uint64_t now_ns)
{
    quern__watch *watch = &schedule->watch;
    if (watch->stage == QUERN__STAGE_SYNC) return;
    *stage_time(&watch->frame, watch->stage) += now_ns - watch->stage_start_ns;
    show_stage(schedule, watch->stage, 0, watch->stage_start_ns, now_ns, 0);
}

void quern__profile_start_sync(quern_schedule *schedule, uint64_t start_ns)
{
    schedule->watch.stage = QUERN__STAGE_SYNC;
    if (schedule->watch.recording != NULL)
        quern__recording_start_section(schedule->watch.recording, true, start_ns);
}

void quern__profile_begin_stage(quern_schedule *schedule, quern__sync_stage stage)
{
    quern__watch *watch = &schedule->watch;
    const uint64_t now_ns = quern__clock_ns();
    end_stage(schedule, now_ns);
    watch->stage = stage;
    watch->stage_start_ns = now_ns;
}

void quern__profile_finish_sync(quern_schedule *schedule, uint64_t start_ns, uint32_t command_count)
{
    quern__watch *watch = &schedule->watch;
    if (!watch->is_on) return;
    const uint64_t now_ns = quern__clock_ns();
    end_stage(schedule, now_ns);
    watch->frame.sync_ns += now_ns - start_ns;
    watch->frame.critical_path_ns += now_ns - start_ns;
    show_stage(schedule, QUERN__STAGE_SYNC, 0, start_ns, now_ns, command_count);
    if (watch->recording == NULL) return;
    quern__recording_add_gap(watch->recording, now_ns);
    quern__recording_finish_section(watch->recording, now_ns);
}

void quern__profile_start_loop(const quern_schedule *schedule, uint32_t part_count)
{
    if (schedule->watch.recording == NULL) return;
    quern__recording_add_gap(schedule->watch.recording, quern__clock_ns());
    quern__recording_start_loop(schedule->watch.recording, part_count);
}

void quern__profile_finish_loop(const quern_schedule *schedule)
{
    if (schedule->watch.recording != NULL)
        quern__recording_finish_loop(schedule->watch.recording, quern__clock_ns());
}

/* Worker 0 leads the sync point, so all of that is its time already. */
void quern__profile_add_sync_part(quern_context *context, uint64_t start_ns)
{
    const quern_schedule *schedule = context->schedule;
    const uint64_t now_ns = quern__clock_ns();
    if (schedule->watch.recording != NULL)
        quern__recording_add_part(schedule->watch.recording, now_ns - start_ns);
    if (context->worker_index == 0) return;
    context->sync_ns += now_ns - start_ns;
    show_stage(schedule, schedule->watch.stage, context->worker_index, start_ns, now_ns, 0);
}

/* -------------------------------------------------------------------------------------------- frames */

static uint64_t slept_ns(const quern_schedule *schedule, uint32_t index, uint64_t now_ns)
{
    const quern_jobs *jobs = schedule->jobs;
    return jobs != NULL && index < jobs->thread_count
               ? quern__worker_slept_ns(&jobs->workers[index], now_ns)
               : 0;
}

/* When it has changed whether frames are watched. */
static void prepare_contexts(const quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        quern_context *context = &schedule->contexts[i];
        context->is_timed = schedule->timing;
        context->is_shown = false;
        context->sample_countdown = 0;
    }
}

static void start_passes(const quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->steps.count; i++)
        for (uint32_t k = 0; k < schedule->steps.items[i].passes.count; k++) {
            quern__pass *pass = schedule->steps.items[i].passes.items[k];
            pass->frame_ns = 0;
            if (schedule->timing) pass->busy_seen_ns = 0; /* as the times, that are of one frame then */
        }
}

void quern__profile_start_frame(quern_schedule *schedule, uint64_t start_ns)
{
    quern__watch *watch = &schedule->watch;
    const bool was_on = watch->is_on;
    watch->is_traced = quern__trace_wants(watch->trace);
    watch->is_on = watch->is_profiling || watch->is_traced || watch->recording != NULL;
    if (watch->is_on != was_on) prepare_contexts(schedule);
    if (!watch->is_on) return;
    watch->start_ns = start_ns;
    watch->frame = (quern_frame_profile){.frame_index = schedule->frame_index,
                                         .thread_count = schedule->jobs ? schedule->jobs->thread_count : 1};
    for (uint32_t i = 0; i < watch->frame.thread_count && watch->is_profiling; i++)
        schedule->contexts[i].slept_seen_ns = slept_ns(schedule, i, start_ns);
    start_passes(schedule);
}

/* With timing the times are of this frame alone; without, they go on from frame to frame. */
static uint64_t take_times(const quern_schedule *schedule, const quern__system *system, uint32_t what,
                           uint64_t *seen_ns)
{
    if (schedule->timing) *seen_ns = 0;
    return growth(seen_ns, sum_times(schedule, system, what));
}

static void take_samples(const quern_schedule *schedule, quern__system *system)
{
    const uint64_t views_ns = take_times(schedule, system, QUERN__TIME_VIEWS, &system->views_seen_ns);
    system->sampled_ns -= system->sampled_ns / FADE_SHARE;
    system->sampled_ns += views_ns;
    system->profile_ns = take_times(schedule, system, QUERN__TIME_HOOKS, &system->hooks_seen_ns);
}

/* Divides what the jobs took by the samples; by rows where there are none yet. */
static void divide_pass(const quern_schedule *schedule, const quern__pass *pass)
{
    double sampled_ns = 0, rows = 0;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        take_samples(schedule, system);
        if (!system->is_active) continue;
        sampled_ns += (double)system->sampled_ns;
        rows += (double)system->entity_count + 1;
    }
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        if (!system->is_active) continue;
        const double share = sampled_ns > 0 ? (double)system->sampled_ns / sampled_ns
                                            : ((double)system->entity_count + 1) / rows;
        system->profile_ns += (uint64_t)((double)pass->frame_ns * share);
    }
}

static void divide_passes(const quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->steps.count; i++)
        for (uint32_t k = 0; k < schedule->steps.items[i].passes.count; k++)
            divide_pass(schedule, schedule->steps.items[i].passes.items[k]);
}

static quern_worker_profile worker_profile(const quern_schedule *schedule, uint32_t index, uint64_t now_ns)
{
    quern_context *context = &schedule->contexts[index];
    const quern_frame_profile *frame = &schedule->watch.frame;
    quern_worker_profile worker = {.busy_ns = growth(&context->busy_seen_ns, context->busy_ns),
                                   .sync_ns = growth(&context->sync_seen_ns, context->sync_ns)};
    if (index == 0) worker.sync_ns = frame->sync_ns;
    const uint64_t worked_ns = worker.busy_ns + worker.sync_ns;
    const uint64_t left_ns = frame->time_ns > worked_ns ? frame->time_ns - worked_ns : 0;
    worker.idle_ns = growth(&context->slept_seen_ns, slept_ns(schedule, index, now_ns));
    if (worker.idle_ns > left_ns) worker.idle_ns = left_ns; /* it slept inside a job, too */
    worker.stealing_ns = left_ns - worker.idle_ns;
    return worker;
}

static void add_worker(quern_worker_profile *sum, const quern_worker_profile *worker)
{
    sum->busy_ns += worker->busy_ns;
    sum->stealing_ns += worker->stealing_ns;
    sum->idle_ns += worker->idle_ns;
    sum->sync_ns += worker->sync_ns;
}

static void finish_workers(const quern_schedule *schedule, quern_frame_profile *frame, uint64_t now_ns)
{
    for (uint32_t i = 0; i < frame->thread_count; i++) {
        quern_context *context = &schedule->contexts[i];
        context->profile = worker_profile(schedule, i, now_ns);
        add_worker(&frame->workers, &context->profile);
        add_worker(&context->profile_total, &context->profile);
    }
    const double all_ns = (double)frame->time_ns * frame->thread_count;
    frame->efficiency = all_ns > 0 ? (double)frame->workers.busy_ns / all_ns : 0;
}

static void add_frame(quern__watch *watch)
{
    const quern_frame_profile *frame = &watch->frame;
    quern_frame_profile *total = &watch->total;
    watch->frame_count++;
    total->time_ns += frame->time_ns;
    total->sync_ns += frame->sync_ns;
    total->gather_ns += frame->gather_ns;
    total->fold_ns += frame->fold_ns;
    total->settle_ns += frame->settle_ns;
    total->commit_ns += frame->commit_ns;
    total->critical_path_ns += frame->critical_path_ns;
    add_worker(&total->workers, &frame->workers);
}

static void add_systems(const quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->systems.count; i++) {
        quern__system *system = schedule->systems.items[i];
        quern_system_stats stats;
        const quern_system handle = {.bits = system->index + 1};
        if (quern_schedule_system_stats(schedule, handle, &stats) != QUERN_OK) continue;
        system->total_ns += stats.time_ns;
        system->total_view_count += stats.view_count;
        system->total_entity_count += stats.entity_count;
        system->total_command_count += stats.command_count;
    }
}

static void finish_recording(const quern__watch *watch)
{
    quern_recording *recording = watch->recording;
    recording->frame_ns = watch->frame.time_ns;
    if (recording->frame_ns > recording->sections_ns)
        recording->serial_ns = recording->frame_ns - recording->sections_ns;
}

void quern__profile_finish_frame(quern_schedule *schedule)
{
    quern__watch *watch = &schedule->watch;
    if (!watch->is_on) return;
    const uint64_t now_ns = quern__clock_ns();
    watch->frame.time_ns = now_ns - watch->start_ns;
    const quern__trace_event event = {.begin_ns = watch->start_ns,
                                      .duration_ns = watch->frame.time_ns,
                                      .kind = QUERN__TRACE_FRAME,
                                      .name = QUERN__TRACE_NO_NAME,
                                      .ordinal = (uint32_t)schedule->frame_index};
    show(schedule, 0, &event);
    if (watch->recording != NULL) finish_recording(watch);
    if (!watch->is_profiling) return;
    finish_workers(schedule, &watch->frame, now_ns);
    divide_passes(schedule);
    add_frame(watch);
    add_systems(schedule);
}

uint64_t quern__profile_time_ns(const quern_schedule *schedule, const quern__system *system)
{
    if (!has_times(schedule, system)) return 0;
    if (schedule->timing)
        return sum_times(schedule, system, QUERN__TIME_VIEWS) +
               sum_times(schedule, system, QUERN__TIME_HOOKS);
    return schedule->watch.is_profiling ? system->profile_ns : 0;
}

/* ------------------------------------------------------------------------------------------- asking */

static void forget_totals(quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        schedule->contexts[i].busy_seen_ns = schedule->contexts[i].busy_ns;
        schedule->contexts[i].sync_seen_ns = schedule->contexts[i].sync_ns;
    }
    schedule->watch.total = (quern_frame_profile){0};
    schedule->watch.frame_count = 0;
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        schedule->contexts[i].profile = schedule->contexts[i].profile_total = (quern_worker_profile){0};
    for (uint32_t i = 0; i < schedule->systems.count; i++) {
        quern__system *system = schedule->systems.items[i];
        if (has_times(schedule, system)) take_samples(schedule, system);
        system->sampled_ns = system->profile_ns = system->total_ns = 0;
        system->total_view_count = system->total_entity_count = system->total_command_count = 0;
    }
}

quern_result quern_schedule_set_profiling(quern_schedule *schedule, bool is_on)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_set_profiling", "schedule");
    if (schedule->is_running)
        return quern__fail(QUERN_ERROR_WORLD_LOCKED,
                           "quern_schedule_set_profiling: the schedule is running a frame");
    schedule->watch.is_profiling = is_on;
    schedule->watch.frame = (quern_frame_profile){0};
    forget_totals(schedule);
    return QUERN_OK;
}

quern_frame_profile quern_schedule_frame_profile(const quern_schedule *schedule)
{
    if (schedule != NULL) return schedule->watch.frame;
    quern__fail_null("quern_schedule_frame_profile", "schedule");
    return (quern_frame_profile){0};
}

quern_result quern_schedule_worker_profile(const quern_schedule *schedule, uint32_t worker_index,
                                           quern_worker_profile *out_profile)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_worker_profile", "schedule");
    if (out_profile == NULL) return quern__fail_null("quern_schedule_worker_profile", "out_profile");
    if (worker_index >= schedule->watch.frame.thread_count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_schedule_worker_profile: worker %u; the latest profile has %u",
                           worker_index, schedule->watch.frame.thread_count);
    *out_profile = schedule->contexts[worker_index].profile;
    return QUERN_OK;
}

quern_result quern_schedule_run_recorded(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds,
                                         quern_recording *recording)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_run_recorded", "schedule");
    if (recording == NULL) return quern__fail_null("quern_schedule_run_recorded", "recording");
    if (schedule->is_running) return quern_schedule_run(schedule, jobs, delta_seconds); /* which refuses */
    quern__recording_start(recording, jobs != NULL ? quern_jobs_thread_count(jobs) : 1);
    schedule->watch.recording = recording;
    const quern_result result = quern_schedule_run(schedule, jobs, delta_seconds);
    schedule->watch.recording = NULL;
    if (!recording->is_out_of_memory) return result;
    recording->frame_ns = 0;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to record a frame, which has run");
}

/* ------------------------------------------------------------------------------------------- writing */

typedef struct profile_writer {
    const quern_schedule *schedule;
    FILE *file;
    double frames;
} profile_writer;

static double mean_us(const profile_writer *writer, uint64_t total_ns)
{
    return (double)total_ns / writer->frames / 1000;
}

static double share_of(uint64_t part_ns, uint64_t all_ns)
{
    return all_ns > 0 ? 100 * (double)part_ns / (double)all_ns : 0;
}

static void write_frame(const profile_writer *writer)
{
    const quern_frame_profile *total = &writer->schedule->watch.total;
    const uint32_t thread_count = writer->schedule->watch.frame.thread_count;
    fprintf(writer->file,
            "frame %.1f us on %" PRIu32
            " threads, mean of %.0f; critical path %.1f us; efficiency %.0f %%\n",
            mean_us(writer, total->time_ns), thread_count, writer->frames,
            mean_us(writer, total->critical_path_ns),
            share_of(total->workers.busy_ns, total->time_ns * thread_count));
    fprintf(writer->file, "sync points %.1f us: gather %.1f, fold %.1f, settle %.1f, commit %.1f\n\n",
            mean_us(writer, total->sync_ns), mean_us(writer, total->gather_ns),
            mean_us(writer, total->fold_ns), mean_us(writer, total->settle_ns),
            mean_us(writer, total->commit_ns));
}

static void write_system(const profile_writer *writer, const quern__system *system)
{
    fprintf(writer->file, "%-24s %10.1f %6.1f %8.0f %10.0f %8.0f\n", system->name,
            mean_us(writer, system->total_ns),
            share_of(system->total_ns, writer->schedule->watch.total.workers.busy_ns),
            (double)system->total_view_count / writer->frames,
            (double)system->total_entity_count / writer->frames,
            (double)system->total_command_count / writer->frames);
}

static void write_systems(const profile_writer *writer)
{
    const quern_schedule *schedule = writer->schedule;
    fprintf(writer->file, "%-24s %10s %6s %8s %10s %8s\n", "system", "us", "%", "views", "entities",
            "commands");
    for (uint32_t i = 0; i < schedule->order.count; i++)
        write_system(writer, schedule->order.items[i]);
}

static void write_workers(const profile_writer *writer)
{
    const quern_schedule *schedule = writer->schedule;
    fprintf(writer->file, "\n%-24s %10s %10s %10s %10s\n", "worker, us", "busy", "stealing", "idle",
            "sync");
    for (uint32_t i = 0; i < schedule->watch.frame.thread_count; i++) {
        const quern_worker_profile *worker = &schedule->contexts[i].profile_total;
        fprintf(writer->file, "%-24" PRIu32 " %10.1f %10.1f %10.1f %10.1f\n", i,
                mean_us(writer, worker->busy_ns), mean_us(writer, worker->stealing_ns),
                mean_us(writer, worker->idle_ns), mean_us(writer, worker->sync_ns));
    }
}

quern_result quern_schedule_write_profile(const quern_schedule *schedule, FILE *file)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_write_profile", "schedule");
    if (file == NULL) return quern__fail_null("quern_schedule_write_profile", "file");
    if (schedule->watch.frame_count == 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_schedule_write_profile: no frame was profiled; quern_schedule_set_profiling "
            "says that frames are");
    const profile_writer writer = {
        .schedule = schedule, .file = file, .frames = (double)schedule->watch.frame_count};
    write_frame(&writer);
    write_systems(&writer);
    write_workers(&writer);
    if (fflush(file) == 0 && ferror(file) == 0) return QUERN_OK;
    return quern__fail(QUERN_ERROR_FILE, "quern_schedule_write_profile: the file could not be written");
}
