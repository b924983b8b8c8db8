/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "forecast.h"

#include "check.h"
#include "record.h"
#include "simulation.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The work of a frame changes with the population, and the speed of a processor changes from second to
 * second. But frame n has the same work in every run. So several worlds run the same frames, in turns of a
 * few frames each. The last frame of a turn is measured in one or two worlds and captured in another:
 *
 *     on N threads       . . M             . . M              M  measured
 *     on 1 thread              . . M             . . M
 *     on 1 thread                    . . C             . . C  C  captured
 *
 * The frames before it bring caches and threads to the state that they have in a run without turns. All
 * worlds measure times like the demo (`timing` in simulation.c), so forecasts include the cost of
 * measuring. */

enum { TURNS_MAX = 20, MEASURED_MAX = 2, LINES_MAX = FORECAST_COUNT_MAX + MEASURED_MAX };

typedef struct Measured {
    uint32_t thread_count;
    quern_jobs *jobs;
    Simulation simulation;
    uint64_t times_ns[TURNS_MAX]; /* duration of the last frame of each turn */
} Measured;

typedef struct Forecast {
    uint32_t frame_count, turn_count;
    Measured measured[MEASURED_MAX];
    uint32_t measured_count;
    quern_jobs *jobs;      /* of one thread */
    Simulation simulation; /* the captured simulation */
    quern_frame_capture *captures[TURNS_MAX];
} Forecast;

static quern_jobs *create_jobs(uint32_t thread_count)
{
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = thread_count};
    check(quern_jobs_create(&def, &jobs));
    return jobs;
}

static void add_measured(Forecast *forecast, const Options *options, uint32_t thread_count)
{
    Measured *measured = &forecast->measured[forecast->measured_count++];
    measured->thread_count = thread_count;
    measured->jobs = create_jobs(thread_count);
    simulation_create(&measured->simulation, options->seed, options->entity_count, NULL);
}

static void open_worlds(Forecast *forecast, const Options *options, uint32_t thread_count,
                        uint32_t frame_count)
{
    forecast->frame_count = frame_count;
    forecast->turn_count = frame_count < TURNS_MAX ? frame_count : TURNS_MAX;
    forecast->measured_count = 0;
    add_measured(forecast, options, thread_count);
    if (options->baseline && thread_count > 1) add_measured(forecast, options, 1);
    forecast->jobs = create_jobs(1);
    simulation_create(&forecast->simulation, options->seed, options->entity_count, NULL);
    for (uint32_t i = 0; i < forecast->turn_count; i++)
        check(quern_frame_capture_create(NULL, &forecast->captures[i]));
}

static void close_worlds(Forecast *forecast)
{
    for (uint32_t i = 0; i < forecast->measured_count; i++) {
        simulation_destroy(&forecast->measured[i].simulation);
        quern_jobs_destroy(forecast->measured[i].jobs);
    }
    simulation_destroy(&forecast->simulation);
    quern_jobs_destroy(forecast->jobs);
    for (uint32_t i = 0; i < forecast->turn_count; i++)
        quern_frame_capture_destroy(forecast->captures[i]);
}

/* ------------------------------------------------------------------------------------------- running */

/* Returns the number of frames before the turn. */
static uint32_t frames_before(const Forecast *forecast, uint32_t turn)
{
    return (uint32_t)((uint64_t)turn * forecast->frame_count / forecast->turn_count);
}

static void run_turn(Forecast *forecast, uint32_t turn)
{
    uint32_t frame_count = frames_before(forecast, turn + 1) - frames_before(forecast, turn);
    for (uint32_t i = 0; i < forecast->measured_count; i++) {
        Measured *measured = &forecast->measured[i];
        for (uint32_t frame = 0; frame + 1 < frame_count; frame++)
            simulation_step(&measured->simulation, measured->jobs);
        uint64_t start_ns = clock_ns();
        simulation_step(&measured->simulation, measured->jobs);
        measured->times_ns[turn] = clock_ns() - start_ns;
    }
    for (uint32_t frame = 0; frame + 1 < frame_count; frame++)
        simulation_step(&forecast->simulation, forecast->jobs);
    simulation_capture(&forecast->simulation, forecast->jobs, forecast->captures[turn]);
}

/* ------------------------------------------------------------------------------------------- medians */

static int compare_forecasts(const void *left, const void *right)
{
    double a = ((const quern_forecast *)left)->frame_ns, b = ((const quern_forecast *)right)->frame_ns;
    return (a > b) - (a < b);
}

static uint32_t middle(const Forecast *forecast)
{
    return (forecast->turn_count - 1) / 2;
}

/* Returns the forecast with the median duration. */
static quern_forecast median_forecast(const Forecast *forecast, const quern_forecast_costs *costs,
                                      uint32_t thread_count)
{
    quern_forecast all[TURNS_MAX];
    for (uint32_t i = 0; i < forecast->turn_count; i++)
        check(quern_frame_capture_forecast(forecast->captures[i], costs, thread_count, &all[i]));
    qsort(all, forecast->turn_count, sizeof all[0], compare_forecasts);
    return all[middle(forecast)];
}

static int compare_times(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* Returns the measured duration; 0 if that number of threads was not measured. */
static double median_measured_ns(Forecast *forecast, uint32_t thread_count)
{
    for (uint32_t i = 0; i < forecast->measured_count; i++) {
        Measured *measured = &forecast->measured[i];
        if (measured->thread_count != thread_count) continue;
        qsort(measured->times_ns, forecast->turn_count, sizeof measured->times_ns[0], compare_times);
        return (double)measured->times_ns[middle(forecast)];
    }
    return 0;
}

/* -------------------------------------------------------------------------------------------- output */

static void print_head(const Forecast *forecast, const quern_forecast_costs *costs)
{
    printf("\nforecast from %" PRIu32 " of the first %" PRIu32 " frames, captured on 1 thread\n",
           forecast->turn_count, forecast->frame_count);
    printf("a thread that is awake takes part after %.1f us, one that sleeps after %.1f us\n\n",
           costs->steal_ns / 1000, costs->wake_ns / 1000);
    printf("%8s %10s %12s %9s %9s %13s  %s\n", "threads", "frame ms", "measured ms", "error", "speed-up",
           "crit.path ms", "limited by");
}

static void print_line(const quern_forecast *line, double measured_ns)
{
    printf("%8" PRIu32 " %10.2f", line->thread_count, line->frame_ns / 1e6);
    if (measured_ns > 0)
        printf(" %12.2f %+7.1f %%", measured_ns / 1e6, (line->frame_ns / measured_ns - 1) * 100);
    else
        printf(" %12s %9s", "-", "-");
    printf(" %9.2f %13.2f  %s", line->speedup, line->critical_path_ns / 1e6,
           quern_forecast_bottleneck_string(line->bottleneck));
    if (line->bottleneck_system != NULL) printf(": %s", line->bottleneck_system);
    if (line->bottleneck != QUERN_FORECAST_NONE)
        printf(" (without: %.2f ms)", line->without_limit_ns / 1e6);
    printf("\n");
}

static int compare_counts(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* Stores the requested and the measured numbers of threads, in order. Returns how many there are. */
static uint32_t list_counts(const Forecast *forecast, const Options *options, uint32_t *counts)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < options->forecast_count; i++)
        counts[count++] = options->forecasts[i];
    for (uint32_t i = 0; i < forecast->measured_count; i++)
        counts[count++] = forecast->measured[i].thread_count;
    qsort(counts, count, sizeof counts[0], compare_counts);
    return count;
}

static void print(Forecast *forecast, const Options *options)
{
    uint32_t counts[LINES_MAX];
    uint32_t count = list_counts(forecast, options, counts);
    quern_forecast_costs costs;
    quern_jobs *jobs = create_jobs(0); /* a thread per processor */
    check(quern_forecast_measure_costs(jobs, &costs));
    quern_jobs_destroy(jobs);
    print_head(forecast, &costs);
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0 && counts[i] == counts[i - 1]) continue;
        quern_forecast line = median_forecast(forecast, &costs, counts[i]);
        print_line(&line, median_measured_ns(forecast, counts[i]));
    }
}

void forecast_print(const Options *options, uint32_t thread_count, uint32_t frame_count,
                    const volatile sig_atomic_t *is_interrupted)
{
    Forecast forecast;
    printf("again, %" PRIu32 " frames for the forecast ...\n", frame_count);
    fflush(stdout);
    open_worlds(&forecast, options, thread_count, frame_count);
    for (uint32_t turn = 0; turn < forecast.turn_count && !*is_interrupted; turn++)
        run_turn(&forecast, turn);
    if (!*is_interrupted) print(&forecast, options);
    close_worlds(&forecast);
}
