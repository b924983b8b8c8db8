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
    SPAN_LOOKS = 300,    /* jobs are timed that take longer than so many looks at the clock, */
    MIN_SPANS = 16,      /* but no more than one part in so many of a pass at once */
    SHOW_NS = 30,        /* about what recording an event takes */
    LEARN_INTERVAL = 16, /* frames */
    FADE_SHARE = 2,
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

/* What the jobs of a pass took in a step. */
typedef struct pass_times {
    uint64_t timed_ns;      /* of jobs that were timed */
    uint64_t longest_ns;    /* a chunk of them */
    uint64_t counted_count; /* chunks of jobs that were not */
} pass_times;

static uint64_t take(uint64_t *time)
{
    const uint64_t taken = *time;
    *time = 0;
    return taken;
}

/* Between steps, when no worker adds to it. */
static pass_times take_jobs(const quern_schedule *schedule, const quern__pass *pass)
{
    const uint32_t first = pass->systems.items[0]->index;
    pass_times sum = {0};
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        sum.timed_ns += take(time_of(schedule, i, first, QUERN__TIME_JOBS));
        sum.counted_count += take(time_of(schedule, i, first, QUERN__TIME_COUNTED));
        const uint64_t longest_ns = take(time_of(schedule, i, first, QUERN__TIME_LONGEST));
        if (longest_ns > sum.longest_ns) sum.longest_ns = longest_ns;
    }
    return sum;
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

static void record_part(quern_recording *recording, uint64_t took_ns)
{
    const uint64_t cost_ns = clock_cost_ns();
    quern__recording_add_part(recording, took_ns > cost_ns ? took_ns - cost_ns : 0);
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

static uint32_t stride_of(const quern__pass *pass)
{
    return pass->sample_stride != 0 ? pass->sample_stride : FIRST_STRIDE;
}

static uint32_t run_count_of(const quern_context *context)
{
    const quern_jobs *jobs = context->schedule->jobs;
    return jobs != NULL ? jobs->workers[context->worker_index].run_count : 0;
}

/* A span goes on while the worker runs one job of the pass after the other, for which it does not even look at the clock. In
 * a trace each is shown by itself. */
void quern__profile_start_job(const quern__pass *pass, quern_context *context)
{
    const quern__watch *watch = &context->schedule->watch;
    const bool samples = watch->is_profiling || watch->is_traced;
    if (samples && (context->sample_countdown == 0 || context->sample_countdown > stride_of(pass)))
        context->sample_countdown = stride_of(pass);
    const uint32_t run_count = run_count_of(context);
    if (context->span.pass == pass && context->span.run_count == run_count && !watch->is_traced) return;
    context->span = (quern__span){.pass = pass, .run_count = run_count, .start_ns = quern__clock_ns()};
}

uint32_t quern__profile_next_sample(quern_context *context, uint32_t begin, uint32_t end)
{
    if (context->sample_countdown <= end - begin) return begin + context->sample_countdown - 1;
    context->sample_countdown -= end - begin;
    return end;
}

void quern__profile_start_sample(const quern__pass *pass, quern_context *context)
{
    context->sample_countdown = stride_of(pass);
    context->is_timed = true;
    context->is_shown = context->schedule->watch.is_traced;
}

void quern__profile_finish_sample(quern_context *context)
{
    context->is_timed = context->schedule->timing;
    context->is_shown = false;
}

void quern__profile_start_laps(quern_context *context)
{
    context->lap_start_ns = quern__clock_ns();
}

static void show_call(const quern_context *context, uint64_t took_ns, uint32_t row_count)
{
    const quern__trace_event event = {.begin_ns = context->lap_start_ns,
                                      .duration_ns = took_ns,
                                      .kind = QUERN__TRACE_SYSTEM,
                                      .name = context->system->trace_name,
                                      .ordinal = context->part,
                                      .count = row_count};
    show(context->schedule, context->worker_index, &event);
}

void quern__profile_end_lap(quern_context *context, uint32_t row_count)
{
    const quern_schedule *schedule = context->schedule;
    const uint64_t now_ns = quern__clock_ns(), took_ns = now_ns - context->lap_start_ns;
    const uint32_t what = context->stage == QUERN__STAGE_RUN ? QUERN__TIME_VIEWS : QUERN__TIME_HOOKS;
    const uint64_t cost_ns = schedule->timing ? 0 : clock_cost_ns();
    *time_of(schedule, context->worker_index, context->system->index, what) +=
        took_ns > cost_ns ? took_ns - cost_ns : 0;
    if (context->is_shown) show_call(context, took_ns, row_count);
    context->lap_start_ns = now_ns;
}

static void show_job(const quern__pass *pass, const quern_context *context, uint64_t took_ns,
                     uint32_t begin, uint32_t end)
{
    const quern__trace_event event = {.begin_ns = context->span.start_ns,
                                      .duration_ns = took_ns,
                                      .kind = QUERN__TRACE_PASS,
                                      .name = pass->trace_name,
                                      .ordinal = begin,
                                      .count = end - begin};
    show(context->schedule, context->worker_index, &event);
}

static uint32_t span_count_of(const quern__pass *pass)
{
    const quern__watch *watch = &pass->schedule->watch;
    return watch->is_learning || watch->is_traced ? 1 : pass->span_count;
}

void quern__profile_finish_job(const quern__pass *pass, quern_context *context, uint32_t begin,
                               uint32_t end)
{
    const uint32_t first = pass->systems.items[0]->index;
    uint64_t *times = time_of(pass->schedule, context->worker_index, first, 0);
    quern__span *span = &context->span;
    span->chunk_count += end - begin;
    times[QUERN__TIME_COUNTED] += end - begin;
    if (span->chunk_count < span_count_of(pass)) return;
    const uint64_t now_ns = quern__clock_ns(), took_ns = now_ns - span->start_ns;
    const uint64_t chunk_ns = took_ns / span->chunk_count;
    times[QUERN__TIME_JOBS] += took_ns;
    times[QUERN__TIME_COUNTED] -= span->chunk_count;
    if (chunk_ns > times[QUERN__TIME_LONGEST]) times[QUERN__TIME_LONGEST] = chunk_ns;
    show_job(pass, context, took_ns, begin, end);
    span->start_ns = now_ns;
    span->chunk_count = 0;
}

uint64_t quern__profile_start_hooks(quern_context *context)
{
    const quern__watch *watch = &context->schedule->watch;
    if (watch->is_on) {
        context->is_timed = true;
        context->is_shown = watch->is_traced;
    }
    if (context->is_timed) quern__profile_start_laps(context);
    return watch->is_on ? context->lap_start_ns : 0;
}

void quern__profile_finish_hooks(quern__pass *pass, quern_context *context, uint64_t start_ns)
{
    if (start_ns == 0) return;
    const uint64_t took_ns = quern__clock_ns() - start_ns;
    context->is_timed = context->schedule->timing;
    context->is_shown = false;
    pass->hooks_ns += took_ns;
    record_hooks(pass, context, took_ns);
}

/* --------------------------------------------------------------------------------------------- steps */

static uint64_t dry_ns(const quern_schedule *schedule, uint32_t index, uint64_t now_ns)
{
    const quern_jobs *jobs = schedule->jobs;
    return jobs != NULL && index < jobs->thread_count ? quern__worker_dry_ns(&jobs->workers[index], now_ns)
                                                      : 0;
}

void quern__profile_start_step(quern_schedule *schedule, const quern__step *step)
{
    quern__watch *watch = &schedule->watch;
    if (!watch->is_on) return;
    watch->step_start_ns = quern__clock_ns();
    watch->step_dry_ns = dry_ns(schedule, 0, watch->step_start_ns);
    schedule->contexts[0].span.pass = NULL; /* nothing that it did before this step belongs to a span */
    for (uint32_t i = 0; i < step->passes.count; i++)
        step->passes.items[i]->hooks_ns = 0;
    if (schedule->watch.recording != NULL) record_step(schedule->watch.recording, step);
}

static uint32_t choose_stride(const quern__pass *pass, uint64_t busy_ns, bool is_traced)
{
    const uint64_t call_ns = clock_cost_ns() + (is_traced ? SHOW_NS : 0);
    const uint64_t sample_ns =
        (pass->systems.count + 1) * call_ns * (is_traced ? TRACE_SHARE : PROFILE_SHARE);
    const uint32_t chunk_count = pass->kind == QUERN__PASS_ONCE ? 1 : pass->chunk_count;
    const uint64_t stride = sample_ns * chunk_count / busy_ns;
    return stride < 1 ? 1 : stride > MAX_STRIDE ? MAX_STRIDE : (uint32_t)stride;
}

/* What later frames time follows from what chunks took in this one. Workers look at it in each job, so it is written now
 * and then only: a line that worker 0 has written has to come to them anew. */
static void learn(quern__pass *pass, const pass_times *times, bool is_traced)
{
    if (times->timed_ns == 0 || pass->item_count <= times->counted_count) return;
    pass->chunk_ns = times->timed_ns / (pass->item_count - times->counted_count);
    const uint64_t most = pass->item_count / MIN_SPANS;
    const uint64_t wanted = SPAN_LOOKS * clock_cost_ns() / (pass->chunk_ns + 1);
    pass->span_count = (uint32_t)(wanted < most ? wanted : most);
    pass->sample_stride = choose_stride(pass, pass->chunk_ns * pass->item_count + 1, is_traced);
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
        pass->path_ns = start_ns + pass->hooks_ns + pass->longest_ns;
        if (pass->path_ns > longest_ns) longest_ns = pass->path_ns;
    }
    return longest_ns;
}

void quern__profile_finish_step(quern_schedule *schedule, const quern__step *step)
{
    quern__watch *watch = &schedule->watch;
    if (!watch->is_on) return;
    const uint64_t now_ns = quern__clock_ns();
    watch->steps_ns += now_ns - watch->step_start_ns - (dry_ns(schedule, 0, now_ns) - watch->step_dry_ns);
    for (uint32_t i = 0; i < step->passes.count; i++) {
        quern__pass *pass = step->passes.items[i];
        const pass_times times = take_jobs(schedule, pass);
        pass->frame_ns += times.timed_ns + times.counted_count * pass->chunk_ns;
        pass->longest_ns = times.longest_ns;
        if (watch->is_learning || pass->chunk_ns == 0) learn(pass, &times, watch->is_traced);
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
    if (schedule->watch.recording != NULL) record_part(schedule->watch.recording, now_ns - start_ns);
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
        for (uint32_t k = 0; k < schedule->steps.items[i].passes.count; k++)
            schedule->steps.items[i].passes.items[k]->frame_ns = 0;
}

static void start_workers(const quern_schedule *schedule, uint64_t start_ns)
{
    if (schedule->jobs != NULL)
        atomic_store_explicit(&schedule->jobs->is_watched, true, memory_order_relaxed);
    for (uint32_t i = 0; i < schedule->watch.frame.thread_count; i++) {
        schedule->contexts[i].slept_seen_ns = slept_ns(schedule, i, start_ns);
        schedule->contexts[i].dry_seen_ns = dry_ns(schedule, i, start_ns);
    }
}

/* In the beginning there is nothing to go by, so each frame teaches. */
static bool learns(const quern__watch *watch)
{
    return watch->watched_count < LEARN_INTERVAL || watch->watched_count % LEARN_INTERVAL == 0;
}

void quern__profile_start_frame(quern_schedule *schedule, uint64_t start_ns)
{
    quern__watch *watch = &schedule->watch;
    const bool was_on = watch->is_on;
    watch->is_traced = quern__trace_wants(watch->trace);
    watch->is_on = watch->is_profiling || watch->is_traced || watch->recording != NULL;
    if (watch->is_on != was_on) prepare_contexts(schedule);
    if (!watch->is_on) return;
    watch->is_learning = learns(watch);
    watch->watched_count++;
    watch->start_ns = start_ns;
    watch->frame = (quern_frame_profile){.frame_index = schedule->frame_index,
                                         .thread_count = schedule->jobs ? schedule->jobs->thread_count : 1};
    watch->steps_ns = 0;
    if (watch->is_profiling) start_workers(schedule, start_ns);
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
    const bool fades = schedule->watch.watched_count % LEARN_INTERVAL == 0;
    if (fades) system->sampled_ns -= system->sampled_ns / FADE_SHARE;
    system->sampled_ns += take_times(schedule, system, QUERN__TIME_VIEWS, &system->views_seen_ns);
}

/* Divides what the jobs took by the samples; by rows where there are none yet. */
static void divide_pass(const quern_schedule *schedule, const quern__pass *pass)
{
    const bool has_hooks = pass->has_begin || pass->has_end;
    double sampled_ns = 0, rows = 0;
    for (uint32_t i = 0; i < pass->systems.count; i++) {
        quern__system *system = pass->systems.items[i];
        if (schedule->watch.is_learning) take_samples(schedule, system);
        system->profile_ns =
            has_hooks ? take_times(schedule, system, QUERN__TIME_HOOKS, &system->hooks_seen_ns) : 0;
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

static uint64_t at_most(uint64_t value, uint64_t limit)
{
    return value < limit ? value : limit;
}

/* Worker 0 is busy while steps run, others in all of the frame, but for the time without a job. */
static quern_worker_profile worker_profile(const quern_schedule *schedule, uint32_t index, uint64_t now_ns)
{
    quern_context *context = &schedule->contexts[index];
    const quern_frame_profile *frame = &schedule->watch.frame;
    const uint64_t without_ns =
        at_most(growth(&context->dry_seen_ns, dry_ns(schedule, index, now_ns)), frame->time_ns);
    const uint64_t asleep_ns = growth(&context->slept_seen_ns, slept_ns(schedule, index, now_ns));
    const uint64_t helped_ns = growth(&context->sync_seen_ns, context->sync_ns);
    quern_worker_profile worker = {.sync_ns = at_most(helped_ns, frame->time_ns - without_ns)};
    if (index == 0) {
        worker.sync_ns = frame->sync_ns;
        worker.busy_ns = at_most(schedule->watch.steps_ns, frame->time_ns - frame->sync_ns);
    } else {
        worker.busy_ns = frame->time_ns - without_ns - worker.sync_ns;
    }
    const uint64_t left_ns = frame->time_ns - worker.busy_ns - worker.sync_ns;
    worker.idle_ns = at_most(asleep_ns, left_ns);
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

static void forget_totals(quern_schedule *schedule)
{
    schedule->watch.total = (quern_frame_profile){0};
    schedule->watch.frame_count = 0;
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        schedule->contexts[i].profile_total = (quern_worker_profile){0};
    for (uint32_t i = 0; i < schedule->systems.count; i++) {
        quern__system *system = schedule->systems.items[i];
        system->total_ns = 0;
        system->total_view_count = system->total_entity_count = system->total_command_count = 0;
    }
}

static void add_frame(quern__watch *watch)
{
    const quern_frame_profile *frame = &watch->frame;
    quern_frame_profile *total = &watch->total;
    watch->frame_count++;
    total->thread_count = frame->thread_count;
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
    if (watch->total.thread_count != watch->frame.thread_count) forget_totals(schedule);
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

static void forget_times(const quern_schedule *schedule, quern__system *system)
{
    (void)take_times(schedule, system, QUERN__TIME_VIEWS, &system->views_seen_ns);
    (void)take_times(schedule, system, QUERN__TIME_HOOKS, &system->hooks_seen_ns);
    system->sampled_ns = system->profile_ns = 0;
}

static void forget_all(quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->worker_count; i++) {
        schedule->contexts[i].sync_seen_ns = schedule->contexts[i].sync_ns;
        schedule->contexts[i].profile = (quern_worker_profile){0};
    }
    for (uint32_t i = 0; i < schedule->systems.count; i++)
        if (has_times(schedule, schedule->systems.items[i]))
            forget_times(schedule, schedule->systems.items[i]);
    schedule->watch.frame = (quern_frame_profile){0};
    forget_totals(schedule);
}

quern_result quern_schedule_set_profiling(quern_schedule *schedule, bool is_on)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_set_profiling", "schedule");
    if (schedule->is_running)
        return quern__fail(QUERN_ERROR_WORLD_LOCKED,
                           "quern_schedule_set_profiling: the schedule is running a frame");
    schedule->watch.is_profiling = is_on;
    forget_all(schedule);
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
    if (result == QUERN_OK && !recording->is_out_of_memory) return QUERN_OK;
    recording->frame_ns = 0; /* nothing that counts */
    if (result != QUERN_OK) return result;
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
            " thread%s, mean of %.0f; critical path %.1f us; efficiency %.0f %%\n",
            mean_us(writer, total->time_ns), thread_count, thread_count == 1 ? "" : "s", writer->frames,
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
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_schedule_write_profile: no frame has been profiled yet; call "
                           "quern_schedule_set_profiling(schedule, true) and run frames first");
    const profile_writer writer = {
        .schedule = schedule, .file = file, .frames = (double)schedule->watch.frame_count};
    write_frame(&writer);
    write_systems(&writer);
    write_workers(&writer);
    if (fflush(file) == 0 && ferror(file) == 0) return QUERN_OK;
    return quern__fail(QUERN_ERROR_FILE, "quern_schedule_write_profile: the file could not be written");
}
