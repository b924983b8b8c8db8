/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/base_internal.h"
#include "core/platform/platform.h"
#include "sched/jobs/jobs_internal.h"

#include <quern/jobs.h>
#include <quern/profile.h>

#include <stdlib.h>

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

/* Returns the lower quartile: an estimate that other programs disturb little. */
static double lower_quartile(double *times_ns, size_t count)
{
    qsort(times_ns, count, sizeof *times_ns, compare_times);
    return times_ns[count / 4];
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
    const double quartile_ns = lower_quartile(times_ns, MEETINGS);
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
