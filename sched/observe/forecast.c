/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/base_internal.h"

#include "core/platform/platform.h"
#include "sched/jobs/jobs_internal.h"
#include "sched/observe/profile_internal.h"

#include <quern/jobs.h>
#include <quern/profile.h>

#include <float.h>
#include <stdlib.h>

/* Forecasts: measures the costs of a machine, and simulates a captured frame with another number of threads. */

/* ------------------------------------------------------------------------------------------------- costs */

/* Measurement of the costs that forecasts use. The costs of steals and wake-ups are the time until another
 * worker begins a job that the caller submits and does not run itself. */

enum {
    ROUNDS = 9, /* rounds of the triad */
    MEETINGS = 24,
    WARM_UP_MEETINGS =
        200,            /* The system may put new threads on one processor and needs some time to notice. */
    SLEEP_NS = 3000000, /* longer than workers spin */
    LIMIT_NS = 500000,  /* longest wait for another thread */
    TRIAD_COUNT = 4 * 1024 * 1024, /* elements (double) in each of three arrays; larger than most caches */
    TRIAD_GRAIN = 16384,
};

/* Memory bandwidth is a limit if all threads together reach less than this share of the rate of one thread
 * times their number. */
static const double saturated_share = 0.7;

const quern_forecast_costs quern__typical_costs = {.steal_ns = 1000, .wake_ns = 50000};

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* -------------------------------------------------------------------------------------------- threads */

typedef struct handover {
    _Atomic uint64_t begin_ns;
} handover;

/* Release: pairs with the acquire in time_handover, although only the time is handed over. */
static void note_begin(void *argument, uint32_t worker_index)
{
    (void)worker_index;
    handover *handover_time = *(handover **)argument;
    atomic_store_explicit(&handover_time->begin_ns, quern__clock_ns(), memory_order_release);
}

/* Submits a job and polls until another worker has begun it. Acquire: pairs with the release in note_begin. */
static quern_result time_handover(quern_jobs *jobs, double *out_ns)
{
    handover handover_time = {0};
    handover *payload = &handover_time;
    quern_counter counter = {0};
    quern_job_def def = {
        .function = note_begin, .payload = &payload, .payload_bytes = sizeof payload, .counter = &counter};
    const uint64_t start_ns = quern__clock_ns();
    quern_result result = quern_jobs_submit(jobs, &def);
    while (result == QUERN_OK && atomic_load_explicit(&handover_time.begin_ns, memory_order_acquire) == 0 &&
           quern__clock_ns() - start_ns < LIMIT_NS)
        quern__thread_yield(); /* the system may have put the other worker on this processor */
    if (result == QUERN_OK) result = quern_jobs_wait(jobs, &counter);
    const uint64_t begin_ns = atomic_load_explicit(&handover_time.begin_ns, memory_order_acquire);
    *out_ns = begin_ns > start_ns ? (double)(begin_ns - start_ns) : 0;
    return result;
}

/* Measures a quartile of handovers. Leaves out_ns unchanged if other workers did not start in time, because
 * the processors are busy. */
static quern_result time_meetings(quern_jobs *jobs, bool asleep, double *out_ns)
{
    double times_ns[MEETINGS] = {0};
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < WARM_UP_MEETINGS && result == QUERN_OK; i++)
        result = time_handover(jobs, &times_ns[0]);
    for (uint32_t i = 0; i < MEETINGS && result == QUERN_OK; i++) {
        if (asleep) quern__thread_sleep(SLEEP_NS);
        result = time_handover(jobs, &times_ns[i]);
    }
    /* The lower quartile: an estimate that other programs disturb little. */
    qsort(times_ns, MEETINGS, sizeof *times_ns, compare_times);
    const double quartile_ns = times_ns[MEETINGS / 4];
    if (result == QUERN_OK && quartile_ns < LIMIT_NS) *out_ns = quartile_ns;
    return result;
}

/* --------------------------------------------------------------------------------------------- memory */

typedef struct triad {
    double *a;
    const double *b, *c;
} triad;

static void run_triad(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    const triad *arrays = argument;
    for (uint32_t i = begin; i < end; i++)
        arrays->a[i] = arrays->b[i] + 3 * arrays->c[i];
}

/* Returns bytes per nanosecond of the fastest round, which other programs disturbed least. */
static double triad_rate(quern_jobs *jobs, triad *arrays)
{
    double best_ns = 0;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const uint64_t start_ns = quern__clock_ns();
        if (jobs == NULL)
            run_triad(arrays, 0, TRIAD_COUNT, 0);
        else
            (void)quern_jobs_parallel_for(jobs, TRIAD_COUNT, TRIAD_GRAIN, run_triad, arrays);
        const double took_ns = (double)(quern__clock_ns() - start_ns);
        if (best_ns == 0 || took_ns < best_ns) best_ns = took_ns;
    }
    return 3.0 * sizeof(double) * TRIAD_COUNT / best_ns;
}

static quern_result measure_memory(quern_jobs *jobs, quern_forecast_costs *costs)
{
    const quern_allocator *allocator = &jobs->allocator;
    const size_t bytes = 3 * sizeof(double) * TRIAD_COUNT;
    double *memory = quern__allocate(allocator, bytes, _Alignof(double));
    if (memory == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "out of memory for arrays of %zu bytes", bytes);
    for (size_t i = 0; i < (size_t)3 * TRIAD_COUNT; i++)
        memory[i] = 1;
    triad arrays = {.a = memory, .b = memory + TRIAD_COUNT, .c = memory + (size_t)2 * TRIAD_COUNT};
    const double alone = triad_rate(NULL, &arrays);
    const double together = triad_rate(jobs, &arrays);
    if (together < alone * quern_jobs_thread_count(jobs) * saturated_share)
        costs->bytes_per_ns_limit = together > alone ? together : alone;
    quern__release(allocator, memory, bytes, _Alignof(double));
    return QUERN_OK;
}

quern_result quern_forecast_measure_costs(quern_jobs *jobs, quern_forecast_costs *out_costs)
{
    if (jobs == NULL) return quern__fail_null("quern_forecast_measure_costs", "jobs");
    if (out_costs == NULL) return quern__fail_null("quern_forecast_measure_costs", "out_costs");
    quern_forecast_costs costs = quern__typical_costs;
    quern_result result = QUERN_OK;
    if (quern_jobs_thread_count(jobs) > 1) {
        result = time_meetings(jobs, false, &costs.steal_ns);
        if (result == QUERN_OK) result = time_meetings(jobs, true, &costs.wake_ns);
        if (result == QUERN_OK) result = measure_memory(jobs, &costs);
    }
    if (result == QUERN_OK) *out_costs = costs;
    return quern__in_call(result, "quern_forecast_measure_costs");
}

/* ------------------------------------------------------------------------------------- simulated machine */

/* Simulation of a captured frame on a machine with another number of threads.
 *
 * Each worker has a time at which it is free. The worker that can begin earliest takes the next claim of a
 * ready task: a share of its remaining items that shrinks toward the end, as in loop.c.
 *
 *     worker 0   |before| claim | claim |c|c|after|               next task ...
 *     worker 1     ~~~~~~~~|  claim  |c|c|                        ~ delay: steal_ns if the worker spins,
 *     worker 2     ~~~~~~~~| claim | c |c|                          wake_ns if it sleeps,
 *     worker 3     ~~~~~~~~~~~~~~~~| c |c|                          twice that for the next level of the tree
 *
 * Each participant calls two more, as in loop.c, so workers arrive as a growing tree. The worker that
 * finishes the last predecessor of a task begins the task without delay.
 *
 * To find what limits a frame, the simulation runs again without each of the limits, one at a time. The
 * limit with the largest saving is the answer. */

enum { SPIN_NS = 200000, CLAIMS_PER_WORKER = 4, NO_TASK = -1 };

typedef struct task_state {
    double ready_ns;
    double end_ns; /* end of the claimed items */
    uint32_t next_item;
    uint32_t participant_count; /* number of workers that have claimed items */
    bool is_begun, is_finished;
} task_state;

typedef struct simulation {
    const quern_frame_capture *capture;
    const quern_forecast_costs *costs;
    uint32_t thread_count;
    quern_forecast_bottleneck without; /* limit that is removed */
    task_state *tasks;
    double free_ns[QUERN_MAX_THREADS]; /* time at which each worker has finished its claims */
    double memory_free_ns;             /* time at which memory has served the tasks that have ended */
    /* Per worker, the task of this segment that it claimed from last; NO_TASK: none. */
    int64_t latest[QUERN_MAX_THREADS];
} simulation;

/* --------------------------------------------------------------------------------------------- times */

static double later(double a, double b)
{
    return a > b ? a : b;
}

static double items_ns(const quern_frame_capture *capture, const quern__task *task, uint32_t begin,
                       uint32_t end)
{
    double sum_ns = 0;
    for (uint32_t i = begin; i < end; i++)
        sum_ns += (double)capture->items_ns.items[task->first_item + i];
    return sum_ns;
}

/* Returns how much of the single-thread time of the loops in a part of the task this number of threads
 * saves. */
static double saved_ns(const quern_frame_capture *capture, const quern__task *task, quern__task_part part,
                       uint32_t thread_count)
{
    double sum_ns = 0;
    for (uint32_t i = task->first_loop[part]; i != QUERN__NO_LOOP; i = capture->loops.items[i].next) {
        const quern__inner_loop *loop = &capture->loops.items[i];
        const uint32_t count =
            loop->piece_count > 1 && loop->piece_count < thread_count ? loop->piece_count : thread_count;
        sum_ns += (double)loop->took_ns - (double)loop->took_ns / count;
    }
    return sum_ns;
}

static double work_ns(const quern_frame_capture *capture, const quern__task *task)
{
    return (double)task->before_ns + (double)task->after_ns + items_ns(capture, task, 0, task->item_count);
}

/* Whether the simulation treats the task's work as arbitrarily divisible, because it omits the limit that binds
 * the task (run->without). */
static bool is_divided(const simulation *run, const quern__task *task)
{
    if (task->is_sync) return false;
    if (run->without == QUERN_FORECAST_SERIAL) return task->is_serial;
    return run->without == QUERN_FORECAST_CHUNKS && !task->is_serial;
}

static uint32_t piece_count(const simulation *run, const quern__task *task)
{
    return is_divided(run, task) ? CLAIMS_PER_WORKER * run->thread_count : task->item_count;
}

/* Returns the duration of a part of the task that takes alone_ns on one thread, minus what other workers
 * save by helping with its loops. Workers that arrive too late save nothing. */
static double shared_ns(const simulation *run, const quern__task *task, quern__task_part part,
                        double alone_ns)
{
    double coming_ns = 0;
    for (uint32_t i = task->first_loop[part]; i != QUERN__NO_LOOP; i = run->capture->loops.items[i].next)
        coming_ns += run->costs->steal_ns;
    if (run->without == QUERN_FORECAST_SCHEDULING) coming_ns = 0;
    const double gain_ns = saved_ns(run->capture, task, part, run->thread_count) - coming_ns;
    return gain_ns > 0 ? alone_ns - gain_ns : alone_ns;
}

/* Returns the duration of the part before or after the items, which is always serial. */
static double hook_ns(const simulation *run, const quern__task *task, quern__task_part part,
                      uint64_t took_ns)
{
    const bool is_taken_away = run->without == QUERN_FORECAST_SERIAL && !task->is_sync;
    return is_taken_away ? (double)took_ns / run->thread_count
                         : shared_ns(run, task, part, (double)took_ns);
}

/* Returns the duration of the next claim; `out_end` receives the item after it. */
static double claim_ns(const simulation *run, const quern__task *task, uint32_t begin, uint32_t *out_end)
{
    const uint32_t count = piece_count(run, task), left = count - begin;
    uint32_t size = left / (CLAIMS_PER_WORKER * run->thread_count);
    if (size == 0) size = left > 0;
    *out_end = begin + size;
    if (is_divided(run, task)) return items_ns(run->capture, task, 0, task->item_count) * size / count;
    const double alone_ns = items_ns(run->capture, task, begin, *out_end);
    return shared_ns(run, task, QUERN__TASK_ITEM, alone_ns);
}

/* Returns the delay of a worker that has been idle since before the task was ready. */
static double delay_ns(const simulation *run, const task_state *state, uint32_t worker)
{
    if (worker == 0 || run->without == QUERN_FORECAST_SCHEDULING) return 0;
    const bool sleeps = state->ready_ns - run->free_ns[worker] > SPIN_NS;
    /* Returns the level of the next worker in the tree in which workers arrive, from 1: the number of
     * wake-ups or steals that happen one after another before it starts. */
    uint32_t depth = 1;
    while (state->participant_count + 1 >= 4u << (depth - 1))
        depth++;
    return (sleeps ? run->costs->wake_ns : run->costs->steal_ns) * depth;
}

/* Whether the worker can continue without delay. A worker that becomes free exactly when the task is ready
 * has finished the task's last predecessor. */
static bool is_at_hand(const simulation *run, uint32_t number, uint32_t worker)
{
    const double ready_ns = run->tasks[number].ready_ns;
    return run->latest[worker] == number || run->free_ns[worker] > ready_ns ||
           (run->free_ns[worker] == ready_ns && run->latest[worker] != NO_TASK);
}

static double start_ns(const simulation *run, uint32_t number, uint32_t worker)
{
    const task_state *state = &run->tasks[number];
    if (is_at_hand(run, number, worker)) return later(run->free_ns[worker], state->ready_ns);
    return state->ready_ns + delay_ns(run, state, worker);
}

/* ------------------------------------------------------------------------------------------ simulation */

static bool update_ready(const simulation *run, uint32_t number)
{
    const quern__task *task = &run->capture->tasks.items[number];
    task_state *state = &run->tasks[number];
    for (uint32_t i = 0; i < task->wait_count; i++) {
        const task_state *before = &run->tasks[run->capture->waits.items[task->first_wait + i]];
        if (!before->is_finished) return false;
        if (!state->is_begun && before->end_ns > state->ready_ns) state->ready_ns = before->end_ns;
    }
    return true;
}

typedef struct choice {
    int64_t task;
    uint32_t worker;
    double start_ns;
} choice;

static choice choose(const simulation *run, const quern__captured_segment *segment)
{
    choice best = {.task = NO_TASK};
    for (uint32_t number = segment->first_task; number < segment->end_task; number++) {
        if (run->tasks[number].is_finished || !update_ready(run, number)) continue;
        const quern__task *task = &run->capture->tasks.items[number];
        const uint32_t worker_count = task->caller_only && !is_divided(run, task) ? 1 : run->thread_count;
        for (uint32_t worker = 0; worker < worker_count; worker++) {
            const double at_ns = start_ns(run, number, worker);
            if (best.task == NO_TASK || at_ns < best.start_ns)
                best = (choice){.task = number, .worker = worker, .start_ns = at_ns};
        }
    }
    return best;
}

/* A task finishes no earlier than the memory transfer of the bytes that its items touch, and the workers
 * that ran the items wait for the transfer. Memory serves one task after another. */
static void wait_for_memory(simulation *run, uint32_t number)
{
    const double limit = run->costs->bytes_per_ns_limit;
    const quern__task *task = &run->capture->tasks.items[number];
    task_state *state = &run->tasks[number];
    if (run->without == QUERN_FORECAST_BANDWIDTH || limit <= 0 || task->bytes == 0) return;
    run->memory_free_ns = later(run->memory_free_ns, state->ready_ns) + (double)task->bytes / limit;
    state->end_ns = later(state->end_ns, run->memory_free_ns);
    for (uint32_t i = 0; i < run->thread_count; i++)
        if (run->latest[i] == number) run->free_ns[i] = later(run->free_ns[i], run->memory_free_ns);
}

/* Makes a claim. After the first one, other workers may claim items as soon as the part before the items
 * has ended. */
static void make_claim(simulation *run, const choice *chosen)
{
    const quern__task *task = &run->capture->tasks.items[chosen->task];
    task_state *state = &run->tasks[chosen->task];
    double now_ns = chosen->start_ns;
    if (!state->is_begun) {
        now_ns += hook_ns(run, task, QUERN__TASK_BEFORE, task->before_ns);
        state->ready_ns = now_ns;
        state->is_begun = true;
    }
    now_ns += claim_ns(run, task, state->next_item, &state->next_item);
    state->end_ns = later(state->end_ns, now_ns);
    state->participant_count += run->latest[chosen->worker] != chosen->task;
    if (state->next_item == piece_count(run, task)) {
        state->is_finished = true;
        wait_for_memory(run, (uint32_t)chosen->task);
        state->end_ns += hook_ns(run, task, QUERN__TASK_AFTER, task->after_ns);
        now_ns = state->end_ns;
    }
    run->free_ns[chosen->worker] = now_ns;
    run->latest[chosen->worker] = chosen->task;
}

static double segment_end_ns(const simulation *run, const quern__captured_segment *segment, double end_ns)
{
    for (uint32_t i = segment->first_task; i < segment->end_task; i++)
        if (run->tasks[i].end_ns > end_ns) end_ns = run->tasks[i].end_ns;
    return end_ns;
}

/* Simulates a segment that begins at now_ns. Returns the time of its end. */
static double run_segment(simulation *run, const quern__captured_segment *segment, double now_ns)
{
    if (segment->is_sync && run->without == QUERN_FORECAST_SYNC) {
        /* The segment's work could be divided at will. */
        double sum_ns = 0;
        for (uint32_t i = segment->first_task; i < segment->end_task; i++)
            sum_ns += work_ns(run->capture, &run->capture->tasks.items[i]);
        return now_ns + sum_ns / run->thread_count;
    }
    for (uint32_t i = segment->first_task; i < segment->end_task; i++)
        run->tasks[i] = (task_state){.ready_ns = now_ns, .end_ns = now_ns};
    for (uint32_t i = 0; i < run->thread_count; i++)
        run->latest[i] = NO_TASK;
    run->free_ns[0] = now_ns;
    for (;;) {
        const choice next = choose(run, segment);
        if (next.task == NO_TASK) return segment_end_ns(run, segment, now_ns);
        make_claim(run, &next);
    }
}

static double run_frame(simulation *run)
{
    double now_ns = (double)run->capture->serial_ns;
    run->memory_free_ns = 0;
    for (uint32_t i = 0; i < run->thread_count; i++)
        run->free_ns[i] = 0;
    for (uint32_t i = 0; i < run->capture->segments.count; i++) {
        const quern__captured_segment *segment = &run->capture->segments.items[i];
        now_ns = run_segment(run, segment, now_ns);
    }
    return now_ns;
}

/* ------------------------------------------------------------------------------------------- results */

static double longest_item_ns(const quern_frame_capture *capture, const quern__task *task)
{
    double longest_ns = 0;
    for (uint32_t i = 0; i < task->item_count; i++)
        longest_ns = later(longest_ns, (double)capture->items_ns.items[task->first_item + i]);
    return longest_ns - saved_ns(capture, task, QUERN__TASK_ITEM, UINT32_MAX);
}

static double hooks_path_ns(const quern_frame_capture *capture, const quern__task *task)
{
    return (double)task->before_ns - saved_ns(capture, task, QUERN__TASK_BEFORE, UINT32_MAX) +
           (double)task->after_ns - saved_ns(capture, task, QUERN__TASK_AFTER, UINT32_MAX);
}

/* Returns the end of the longest chain of tasks that wait for each other. Uses the tasks' states as scratch
 * memory. */
static double path_ns(const simulation *run)
{
    const quern_frame_capture *capture = run->capture;
    double now_ns = (double)capture->serial_ns;
    for (uint32_t s = 0; s < capture->segments.count; s++) {
        const quern__captured_segment *segment = &capture->segments.items[s];
        for (uint32_t i = segment->first_task; i < segment->end_task; i++) {
            const quern__task *task = &capture->tasks.items[i];
            double begin_ns = now_ns;
            for (uint32_t k = 0; k < task->wait_count; k++)
                begin_ns = later(begin_ns, run->tasks[capture->waits.items[task->first_wait + k]].end_ns);
            run->tasks[i].end_ns = begin_ns + longest_item_ns(capture, task) + hooks_path_ns(capture, task);
        }
        now_ns = segment_end_ns(run, segment, now_ns);
    }
    return now_ns;
}

/* A limit is reported only if its removal saves more than five percent. */
static void find_limit(simulation *run, quern_forecast *forecast)
{
    double least_ns = forecast->frame_ns * 0.95;
    forecast->bottleneck = QUERN_FORECAST_NONE;
    for (int limit = QUERN_FORECAST_NONE + 1; limit < QUERN_FORECAST_BOTTLENECK_COUNT; limit++) {
        run->without = (quern_forecast_bottleneck)limit;
        const double without_ns = run_frame(run);
        if (without_ns >= least_ns) continue;
        least_ns = without_ns;
        forecast->bottleneck = run->without;
        forecast->without_limit_ns = without_ns;
    }
}

/* Returns the name of the task that loses most time to the bottleneck; "" if no task loses any. */
static const char *find_culprit(const quern_frame_capture *capture, quern_forecast_bottleneck bottleneck)
{
    const quern__task *culprit = NULL;
    double most_ns = 0;
    for (uint32_t s = 0; s < capture->segments.count; s++) {
        const quern__captured_segment *segment = &capture->segments.items[s];
        for (uint32_t i = segment->first_task; i < segment->end_task && !segment->is_sync; i++) {
            const quern__task *task = &capture->tasks.items[i];
            const double item_ns = longest_item_ns(capture, task);
            /* The part of the task's duration that the bottleneck may determine. */
            const double task_ns = bottleneck == QUERN_FORECAST_CHUNKS
                                       ? (task->is_serial ? 0 : item_ns)
                                       : hooks_path_ns(capture, task) + (task->is_serial ? item_ns : 0);
            if (task_ns <= most_ns) continue;
            most_ns = task_ns;
            culprit = task;
        }
    }
    return culprit != NULL ? culprit->name : "";
}

static quern_result check_cost(const char *name, double value)
{
    if (value >= 0 && value <= DBL_MAX) return QUERN_OK; /* also false for NaN */
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "quern_frame_capture_forecast: costs->%s is %g; pass a finite number of at least 0",
                       name, value);
}

static quern_result check_forecast(const quern_frame_capture *capture, const quern_forecast_costs *costs,
                                   uint32_t thread_count, const quern_forecast *out_forecast)
{
    if (capture == NULL) return quern__fail_null("quern_frame_capture_forecast", "capture");
    if (out_forecast == NULL) return quern__fail_null("quern_frame_capture_forecast", "out_forecast");
    if (thread_count == 0 || thread_count > QUERN_MAX_THREADS)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_frame_capture_forecast: thread_count is %u; pass 1 to %d (QUERN_MAX_THREADS)",
            thread_count, QUERN_MAX_THREADS);
    if (capture->frame_ns == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_frame_capture_forecast: the capture has no frame; run one with "
                           "quern_schedule_run_captured");
    quern_result result = check_cost("steal_ns", costs->steal_ns);
    if (result == QUERN_OK) result = check_cost("wake_ns", costs->wake_ns);
    if (result == QUERN_OK) result = check_cost("bytes_per_ns_limit", costs->bytes_per_ns_limit);
    return result;
}

quern_result quern_frame_capture_forecast(const quern_frame_capture *capture,
                                          const quern_forecast_costs *costs, uint32_t thread_count,
                                          quern_forecast *out_forecast)
{
    if (costs == NULL) costs = &quern__typical_costs;
    quern_result result = check_forecast(capture, costs, thread_count, out_forecast);
    if (result != QUERN_OK) return result;
    const size_t bytes = (capture->tasks.count + 1u) * sizeof(task_state);
    simulation run = {.capture = capture, .costs = costs, .thread_count = thread_count};
    run.tasks = quern__allocate(&capture->allocator, bytes, _Alignof(task_state));
    if (run.tasks == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "quern_frame_capture_forecast: out of memory for %u tasks",
                           capture->tasks.count);
    quern_forecast forecast = {.thread_count = thread_count, .frame_ns = run_frame(&run)};
    double all_work_ns = (double)capture->serial_ns;
    for (uint32_t i = 0; i < capture->tasks.count; i++)
        all_work_ns += work_ns(capture, &capture->tasks.items[i]);
    forecast.speedup = all_work_ns / forecast.frame_ns;
    find_limit(&run, &forecast);
    forecast.critical_path_ns = path_ns(&run);
    if (forecast.bottleneck == QUERN_FORECAST_SERIAL || forecast.bottleneck == QUERN_FORECAST_CHUNKS)
        forecast.bottleneck_system = find_culprit(capture, forecast.bottleneck);
    quern__release(&capture->allocator, run.tasks, bytes, _Alignof(task_state));
    *out_forecast = forecast;
    return QUERN_OK;
}

const char *quern_forecast_bottleneck_string(quern_forecast_bottleneck bottleneck)
{
    static const char *const texts[QUERN_FORECAST_BOTTLENECK_COUNT] = {
        [QUERN_FORECAST_NONE] = "nothing",
        [QUERN_FORECAST_CHUNKS] = "too few chunks",
        [QUERN_FORECAST_SERIAL] = "a serial system",
        [QUERN_FORECAST_SYNC] = "sync points",
        [QUERN_FORECAST_BANDWIDTH] = "memory bandwidth",
        [QUERN_FORECAST_SCHEDULING] = "stealing and waking",
    };
    return (unsigned)bottleneck < QUERN_FORECAST_BOTTLENECK_COUNT ? texts[bottleneck] : "unknown";
}
