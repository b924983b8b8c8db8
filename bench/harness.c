/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness.h"

#include "bench/footprint.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WARM_UP_COUNT = 2, MAX_FRESH_PASSES = 100 };

/* Longer than idle workers of either subject go on spinning, so that a subject is measured with the
 * processors to itself. */
enum { SETTLE_NS = 1000000 };

const char *const bench_subject_names[BENCH_SUBJECT_COUNT] = {
    [BENCH_RAW] = "raw",
    [BENCH_QUERN] = "quern",
};

/* ------------------------------------------------------------------------------------- usual parts */

static uint32_t passes_of(uint32_t total, uint32_t entity_count)
{
    const uint32_t passes = total / entity_count;
    return passes > 0 ? passes : 1;
}

uint32_t bench_passes_of_4m(uint32_t entity_count)
{
    return passes_of(4000000, entity_count);
}

uint32_t bench_passes_of_1m(uint32_t entity_count)
{
    return passes_of(1000000, entity_count);
}

uint32_t bench_passes_fresh(uint32_t entity_count)
{
    const uint32_t passes = bench_passes_of_1m(entity_count);
    return passes < MAX_FRESH_PASSES ? passes : MAX_FRESH_PASSES;
}

uint64_t bench_operations_per_entity(uint32_t entity_count)
{
    return entity_count;
}

uint64_t bench_operations_per_frame(uint32_t entity_count)
{
    (void)entity_count;
    return 1;
}

void *bench_allocate(size_t count, size_t size_bytes)
{
    void *memory = calloc(count > 0 ? count : 1, size_bytes);
    if (memory == NULL) bench_die("out of memory (%zu times %zu bytes)", count, size_bytes);
    return memory;
}

void bench_die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("quern_bench: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

uint32_t *bench_shuffled_indices(uint32_t count)
{
    uint32_t *indices = bench_allocate(count, sizeof *indices);
    for (uint32_t i = 0; i < count; i++)
        indices[i] = i;
    uint64_t state = 88172645463325252u;
    for (uint32_t i = count; i > 1; i--) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        const uint32_t other = (uint32_t)((state >> 16) % i);
        const uint32_t index = indices[i - 1];
        indices[i - 1] = indices[other];
        indices[other] = index;
    }
    return indices;
}

/* --------------------------------------------------------------------------------------- statistics */

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

static void summarise(bench_figures *figures, double *samples, uint32_t count)
{
    qsort(samples, count, sizeof *samples, compare_doubles);
    figures->median = (samples[(count - 1) / 2] + samples[count / 2]) / 2;
    figures->min = samples[0];
    figures->max = samples[count - 1];
}

/* --------------------------------------------------------------------------------------- measuring */

/* One subject of a workload while it is measured. */
typedef struct bench_run {
    const bench_workload *workload;
    const bench_subject *subject;
    void *state;
    uint32_t round_count;
    uint32_t pass_count; /* in each round */
    uint64_t operation_count;
    double *samples;
    uint64_t checksum;
} bench_run;

static void run_open(bench_run *run, const bench_workload *workload, uint32_t subject,
                     const bench_case *scene, uint32_t repeat_count)
{
    const uint32_t passes = workload->pass_count(scene->entity_count);
    *run = (bench_run){
        .workload = workload,
        .subject = &workload->subjects[subject],
        .round_count = workload->fresh ? passes : 1,
        .pass_count = workload->fresh ? 1 : passes,
        .operation_count = workload->operation_count(scene->entity_count) * passes,
        .samples = bench_allocate(repeat_count, sizeof(double)),
    };
    run->state = run->subject->open(scene);
}

static void run_close(bench_run *run)
{
    run->subject->close(run->state);
    free(run->samples);
}

static uint64_t round_ns(bench_run *run, bool last)
{
    const bench_subject *subject = run->subject;
    if (subject->enter != NULL) subject->enter(run->state);
    const uint64_t start_ns = bench_now_ns();
    subject->run(run->state, run->pass_count);
    const uint64_t time_ns = bench_now_ns() - start_ns;
    if (last) run->checksum = subject->checksum(run->state);
    if (subject->leave != NULL) subject->leave(run->state);
    return time_ns;
}

static double sample_ns(bench_run *run, bool last)
{
    uint64_t time_ns = 0;
    for (uint32_t round = 0; round < run->round_count; round++)
        time_ns += round_ns(run, last && round == run->round_count - 1);
    return (double)time_ns / (double)run->operation_count;
}

static void settle(const bench_case *scene)
{
    if (scene->thread_count > 1) nanosleep(&(struct timespec){.tv_nsec = SETTLE_NS}, NULL);
}

static void show_progress(const bench_run *run, const bench_case *scene, uint32_t step, uint32_t step_count)
{
    if (!isatty(STDERR_FILENO)) return;
    const char *clear_line = "\r\033[K";
    fputs(clear_line, stderr);
    if (step < step_count)
        fprintf(stderr, "%s, %u entities, %u threads: %u/%u", run->workload->name, scene->entity_count,
                scene->thread_count, step + 1, step_count);
    fflush(stderr);
}

static void take_samples(bench_run runs[], const bench_case *scene, uint32_t repeat_count)
{
    const uint32_t step_count = WARM_UP_COUNT + repeat_count;
    for (uint32_t step = 0; step < step_count; step++) {
        show_progress(runs, scene, step, step_count);
        for (uint32_t i = 0; i < BENCH_SUBJECT_COUNT; i++) {
            settle(scene);
            const double time_ns = sample_ns(&runs[i], step == step_count - 1);
            if (step >= WARM_UP_COUNT) runs[i].samples[step - WARM_UP_COUNT] = time_ns;
        }
    }
    show_progress(runs, scene, step_count, step_count);
}

bench_result bench_measure(const bench_workload *workload, const bench_case *scene, uint32_t repeat_count)
{
    bench_result result = {.workload = workload, .scene = *scene, .repeat_count = repeat_count};
    if (workload->footprint) {
        result.repeat_count = 1;
        for (uint32_t i = 0; i < BENCH_SUBJECT_COUNT; i++)
            result.figures[i] = bench_footprint_measure(workload, i, scene);
        return result;
    }
    bench_run runs[BENCH_SUBJECT_COUNT];
    for (uint32_t i = 0; i < BENCH_SUBJECT_COUNT; i++)
        run_open(&runs[i], workload, i, scene, repeat_count);
    take_samples(runs, scene, repeat_count);
    for (uint32_t i = 0; i < BENCH_SUBJECT_COUNT; i++) {
        summarise(&result.figures[i], runs[i].samples, repeat_count);
        result.figures[i].checksum = runs[i].checksum;
        run_close(&runs[i]);
    }
    return result;
}

bool bench_result_agrees(const bench_result *result)
{
    return result->figures[BENCH_RAW].checksum == result->figures[BENCH_QUERN].checksum;
}
