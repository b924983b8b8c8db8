/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/profile.h"
#include "sched/jobs/jobs.h"
#include "sched/jobs/thread.h"

/* What a frame comes to: where the time of workers went, and what of the passes' time is whose. */

enum {
    LEARN_INTERVAL = 16, /* frames */
    FADE_SHARE = 2,
};

/* False for one that was added since the latest frame. */
static bool has_times(const quern_schedule *schedule, const quern__system *system)
{
    return (system->index + 1) * QUERN__TIME_COUNT <= schedule->time_stride;
}

static uint64_t sum_times(const quern_schedule *schedule, const quern__system *system, uint32_t what)
{
    uint64_t time_ns = 0;
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        time_ns += *quern__profile_time_of(schedule, i, system->index, what);
    return time_ns;
}

/* By how much a sum that others add to has grown. It begins again when the workers are made anew. */
static uint64_t growth(uint64_t *seen, uint64_t sum)
{
    const uint64_t before = *seen <= sum ? *seen : 0;
    *seen = sum;
    return sum - before;
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
    for (uint32_t i = 0; i < schedule->plan.segments.count; i++)
        for (uint32_t k = 0; k < schedule->plan.segments.items[i].passes.count; k++)
            schedule->plan.segments.items[i].passes.items[k]->frame_ns = 0;
}

/* Relaxed: a worker that sees it late does not count what it did until then. Most frames only look. */
static void watch_workers(const quern_schedule *schedule)
{
    quern_jobs *jobs = schedule->jobs;
    if (jobs == NULL || jobs->workers[0].again_count > 0) return; /* inside another frame, which decides */
    const bool is_wanted = schedule->watch.is_profiling;
    if (atomic_load_explicit(&jobs->is_watched, memory_order_relaxed) != is_wanted)
        atomic_store_explicit(&jobs->is_watched, is_wanted, memory_order_relaxed);
}

static void start_workers(const quern_schedule *schedule, uint64_t start_ns)
{
    for (uint32_t i = 0; i < schedule->watch.frame.thread_count; i++) {
        schedule->contexts[i].slept_seen_ns = slept_ns(schedule, i, start_ns);
        schedule->contexts[i].dry_seen_ns = quern__profile_dry_ns(schedule, i, start_ns);
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
    const bool was_on = watch->is_on, was_traced = watch->is_traced;
    watch->is_traced = quern__trace_wants(watch->trace);
    watch->is_on = watch->is_profiling || watch->is_traced || watch->capture != NULL;
    if (watch->is_on != was_on) prepare_contexts(schedule);
    watch_workers(schedule);
    if (!watch->is_on) return;
    if (watch->is_traced != was_traced) watch->watched_count = 0; /* a trace takes more samples */
    watch->is_learning = learns(watch);
    watch->watched_count++;
    watch->start_ns = start_ns;
    watch->frame = (quern_frame_profile){.frame_index = schedule->frame_index,
                                         .thread_count = schedule->jobs ? schedule->jobs->thread_count : 1};
    watch->segments_ns = 0;
    if (watch->is_traced) quern__trace_expect_workers(watch->trace, watch->frame.thread_count);
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
    const bool fades = schedule->watch.watched_count % LEARN_INTERVAL == 1; /* counts this frame, too */
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
    for (uint32_t i = 0; i < schedule->plan.segments.count; i++)
        for (uint32_t k = 0; k < schedule->plan.segments.items[i].passes.count; k++)
            divide_pass(schedule, schedule->plan.segments.items[i].passes.items[k]);
}

static uint64_t at_most(uint64_t value, uint64_t limit)
{
    return value < limit ? value : limit;
}

/* Who reads a worker's sums while it changes them may find them to be less for a moment: see watch.c. */
static uint64_t passed(uint64_t before_ns, uint64_t now_ns)
{
    return now_ns > before_ns ? now_ns - before_ns : 0;
}

/* Worker 0 is busy while segments run, others in all of the frame, but for the time without a job. */
static quern_worker_profile worker_profile(const quern_schedule *schedule, uint32_t index, uint64_t now_ns)
{
    quern_context *context = &schedule->contexts[index];
    const quern_frame_profile *frame = &schedule->watch.frame;
    const uint64_t dry_ns = passed(context->dry_seen_ns, quern__profile_dry_ns(schedule, index, now_ns));
    const uint64_t asleep_ns = passed(context->slept_seen_ns, slept_ns(schedule, index, now_ns));
    const uint64_t without_ns = at_most(dry_ns, frame->time_ns);
    const uint64_t helped_ns = growth(&context->sync_seen_ns, context->sync_ns);
    quern_worker_profile worker = {.sync_ns = at_most(helped_ns, frame->time_ns - without_ns)};
    if (index == 0) {
        worker.sync_ns = frame->sync_ns;
        worker.busy_ns = at_most(schedule->watch.segments_ns, frame->time_ns - frame->sync_ns);
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
    quern__counters_forget(&schedule->watch.counters);
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        schedule->contexts[i].profile_total = (quern_worker_profile){0};
    for (uint32_t i = 0; i < schedule->plan.systems.count; i++) {
        quern__system *system = schedule->plan.systems.items[i];
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
    total->merge_ns += frame->merge_ns;
    total->resolve_ns += frame->resolve_ns;
    total->apply_ns += frame->apply_ns;
    total->critical_path_ns += frame->critical_path_ns;
    add_worker(&total->workers, &frame->workers);
}

static void add_systems(const quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->plan.systems.count; i++) {
        quern__system *system = schedule->plan.systems.items[i];
        quern_system_stats stats;
        const quern_system handle = {.bits = system->index + 1};
        if (quern_schedule_get_system_stats(schedule, handle, &stats) != QUERN_OK) continue;
        system->total_ns += stats.time_ns;
        system->total_view_count += stats.view_count;
        system->total_entity_count += stats.entity_count;
        system->total_command_count += stats.command_count;
    }
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
                                      .ordinal = (uint32_t)schedule->frame_index,
                                      .count = watch->trace_number};
    quern__profile_show(schedule, 0, &event);
    if (watch->capture != NULL) quern__profile_finish_capture(watch);
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
    for (uint32_t i = 0; i < schedule->plan.systems.count; i++)
        if (has_times(schedule, schedule->plan.systems.items[i]))
            forget_times(schedule, schedule->plan.systems.items[i]);
    schedule->watch.frame = (quern_frame_profile){0};
    schedule->watch.watched_count = 0; /* to be learnt anew */
    forget_totals(schedule);
}

quern_result quern_schedule_set_profiling(quern_schedule *schedule, bool is_on)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_set_profiling", "schedule");
    const quern_result result = quern__schedule_check_idle(schedule, "quern_schedule_set_profiling");
    if (result != QUERN_OK) return result;
    schedule->watch.is_profiling = is_on;
    forget_all(schedule);
    return QUERN_OK;
}

static quern_result check_source(const quern_hardware_source *source)
{
    if (source == NULL || (source->open != NULL && source->read != NULL && source->close != NULL))
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "quern_schedule_set_counting: a source needs open, read and close");
}

quern_result quern_schedule_set_counting(quern_schedule *schedule, const quern_hardware_source *source)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_set_counting", "schedule");
    quern_result result = quern__schedule_check_idle(schedule, "quern_schedule_set_counting");
    if (result == QUERN_OK) result = check_source(source);
    const quern_allocator *allocator = quern__plan_allocator(&schedule->plan);
    if (result == QUERN_OK && source != NULL)
        result = quern__counters_start(&schedule->watch.counters, source, allocator);
    if (result != QUERN_OK) return result;
    if (source == NULL) quern__counters_release(&schedule->watch.counters, allocator);
    schedule->watch.watched_count = 0; /* strides are learnt anew */
    forget_totals(schedule);
    return QUERN_OK;
}

quern_result quern_schedule_get_system_counts(const quern_schedule *schedule, quern_system system,
                                              double out_counts[QUERN_HARDWARE_EVENT_COUNT])
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_get_system_counts", "schedule");
    if (out_counts == NULL) return quern__fail_null("quern_schedule_get_system_counts", "out_counts");
    const quern__system *counted = quern__schedule_system(schedule, system);
    if (counted == NULL)
        return quern__fail(QUERN_ERROR_UNKNOWN_SYSTEM,
                           "quern_schedule_get_system_counts: the schedule has no such system");
    const double frames = (double)schedule->watch.frame_count;
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        out_counts[i] =
            quern__counters_rate(&schedule->watch.counters, counted->index, (quern_hardware_event)i) *
            (double)counted->total_ns / frames;
    return QUERN_OK;
}

quern_result quern_schedule_get_frame_profile(const quern_schedule *schedule,
                                              quern_frame_profile *out_profile)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_get_frame_profile", "schedule");
    if (out_profile == NULL) return quern__fail_null("quern_schedule_get_frame_profile", "out_profile");
    *out_profile = schedule->watch.is_profiling ? schedule->watch.frame : (quern_frame_profile){0};
    return QUERN_OK;
}

quern_result quern_schedule_get_worker_profile(const quern_schedule *schedule, uint32_t worker_index,
                                               quern_worker_profile *out_profile)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_get_worker_profile", "schedule");
    if (out_profile == NULL) return quern__fail_null("quern_schedule_get_worker_profile", "out_profile");
    const uint32_t worker_count = schedule->watch.is_profiling ? schedule->watch.frame.thread_count : 0;
    if (worker_index >= worker_count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_schedule_get_worker_profile: worker %u; the latest profile has %u",
                           worker_index, worker_count);
    *out_profile = schedule->contexts[worker_index].profile;
    return QUERN_OK;
}
