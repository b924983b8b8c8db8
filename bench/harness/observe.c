/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Captures frames and forecasts their duration on other numbers of threads, and profiles and traces frames. */
#include "bench/harness/observe.h"

#include "bench/harness/base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <quern/jobs.h>
#include <quern/profile.h>

/* ------------------------------------------------------------------------------------------ capture */

static bool is_same(const quern__bench_captured *a, const quern__bench_captured *b)
{
    return strcmp(a->workload, b->workload) == 0 && strcmp(a->subject, b->subject) == 0 &&
           a->entity_count == b->entity_count;
}

void quern__bench_forecasts_capture(quern__bench_forecasts *forecasts, const quern__bench_captured *like,
                                    const quern_bench_subject *subject, void *state)
{
    size_t at = 0;
    while (at < forecasts->count && !is_same(&forecasts->items[at], like))
        at++;
    if (at == forecasts->count) {
        forecasts->items = quern__bench_grow(forecasts->items, forecasts->count, &forecasts->capacity,
                                             sizeof *forecasts->items);
        forecasts->items[forecasts->count++] = *like;
    }
    quern__bench_captured *captured = &forecasts->items[at];
    if (captured->thread_count != like->thread_count || captured->capture_count == QUERN__BENCH_CAPTURES)
        return;
    quern_frame_capture **capture = &captured->captures[captured->capture_count++];
    if (quern_frame_capture_create(NULL, capture) != QUERN_OK ||
        subject->capture(state, *capture) != QUERN_OK)
        quern_bench_die("--forecast: a frame of workload '%s' cannot be captured: %s", like->workload,
                        quern_error_message());
}

void quern__bench_forecasts_close(quern__bench_forecasts *forecasts)
{
    for (size_t i = 0; i < forecasts->count; i++)
        for (uint32_t k = 0; k < QUERN__BENCH_CAPTURES; k++)
            quern_frame_capture_destroy(forecasts->items[i].captures[k]);
    free(forecasts->items);
    *forecasts = (quern__bench_forecasts){0};
}

/* -------------------------------------------------------------------------------------------- results */

static int compare_forecasts(const void *a, const void *b)
{
    const double x = ((const quern_forecast *)a)->frame_ns, y = ((const quern_forecast *)b)->frame_ns;
    return (x > y) - (x < y);
}

/* Computes a forecast from each capture and returns the one with the median frame time. */
static bool forecast_median(const quern__bench_captured *captured, const quern_forecast_costs *costs,
                            uint32_t thread_count, quern_forecast *out_forecast)
{
    quern_forecast forecasts[QUERN__BENCH_CAPTURES];
    for (uint32_t i = 0; i < captured->capture_count; i++)
        if (quern_frame_capture_forecast(captured->captures[i], costs, thread_count, &forecasts[i]) !=
            QUERN_OK) {
            quern__bench_note("--forecast: %s", quern_error_message());
            return false;
        }
    qsort(forecasts, captured->capture_count, sizeof forecasts[0], compare_forecasts);
    *out_forecast = forecasts[captured->capture_count / 2];
    return true;
}

static const quern__bench_record *find_measured(const quern__bench_results *results,
                                                const quern__bench_captured *captured,
                                                uint32_t thread_count)
{
    for (size_t i = 0; i < results->record_count; i++) {
        const quern__bench_record *record = &results->records[i];
        if (record->thread_count == thread_count && record->entity_count == captured->entity_count &&
            strcmp(record->workload, captured->workload) == 0 &&
            strcmp(record->subject, captured->subject) == 0)
            return record;
    }
    return NULL;
}

static void write_line(FILE *file, const quern_forecast *forecast, double measured_ns)
{
    fprintf(file, "%8" PRIu32 " %12.1f", forecast->thread_count, forecast->frame_ns / 1000);
    if (measured_ns > 0)
        fprintf(file, " %12.1f %+7.1f %%", measured_ns / 1000,
                (forecast->frame_ns / measured_ns - 1) * 100);
    else
        fprintf(file, " %12s %9s", "-", "-");
    fprintf(file, " %9.2f %12.1f  %s", forecast->speedup, forecast->critical_path_ns / 1000,
            quern_forecast_bottleneck_string(forecast->bottleneck));
    if (forecast->bottleneck_system != NULL) fprintf(file, ": %s", forecast->bottleneck_system);
    if (forecast->bottleneck != QUERN_FORECAST_NONE)
        fprintf(file, " (without: %.1f us)", forecast->without_limit_ns / 1000);
    fputc('\n', file);
}

static void write_captured(FILE *file, const quern__bench_captured *captured,
                           const quern__bench_results *results)
{
    fprintf(file,
            "\nForecast of %s, %" PRIu32 " entities, %s; frames captured on %" PRIu32 " thread%s\n"
            "%8s %12s %12s %9s %9s %12s  %s\n",
            captured->workload, captured->entity_count, captured->subject, captured->thread_count,
            captured->thread_count == 1 ? "" : "s", "threads", "frame us", "measured us", "error",
            "speed-up", "crit.path us", "limited by");
    for (uint32_t i = 0; i < captured->forecast_count; i++) {
        const quern_forecast *forecast = &captured->forecasts[i];
        const quern__bench_record *record = find_measured(results, captured, forecast->thread_count);
        write_line(file, forecast, record != NULL ? record->summary.median * captured->operations : 0);
    }
}

/* ---------------------------------------------------------------------------------------------- costs */

static bool measure_costs(quern_forecast_costs *costs)
{
    quern_jobs *jobs;
    quern_result result = quern_jobs_create(NULL, &jobs);
    if (result == QUERN_OK) {
        result = quern_forecast_measure_costs(jobs, costs);
        quern_jobs_destroy(jobs);
    }
    if (result != QUERN_OK) quern__bench_note("--forecast: %s", quern_error_message());
    return result == QUERN_OK;
}

static void write_costs(FILE *file, const quern_forecast_costs *costs)
{
    fprintf(file,
            "\nMeasured for forecasts: an awake thread starts to help after %.1f us, a sleeping one after "
            "%.1f us;\n",
            costs->steal_ns / 1000, costs->wake_ns / 1000);
    if (costs->bytes_per_ns_limit > 0)
        fprintf(file,
                "a triad on %" PRIu32
                " threads reaches %.1f GB/s, and more threads are assumed to reach no more\n",
                quern_processor_count(), costs->bytes_per_ns_limit);
    else
        fprintf(file,
                "a triad on %" PRIu32
                " threads does not saturate memory, and more threads are assumed not to\n",
                quern_processor_count());
}

static void add_count(quern__bench_numbers *counts, uint32_t count)
{
    uint32_t index = 0;
    while (index < counts->count && counts->values[index] < count)
        index++;
    if (index < counts->count && counts->values[index] == count) return;
    if (counts->count == QUERN__BENCH_MAX_LIST) return;
    memmove(&counts->values[index + 1], &counts->values[index],
            (counts->count - index) * sizeof counts->values[0]);
    counts->values[index] = count;
    counts->count++;
}

bool quern__bench_forecasts_compute(quern__bench_forecasts *forecasts, const quern__bench_options *options)
{
    quern__bench_numbers counts = {.count = 0};
    if (forecasts->count == 0) {
        quern__bench_note("--forecast: no forecast, because no measured subject can capture frames");
        return true;
    }
    for (uint32_t i = 0; i < options->forecast_counts.count; i++)
        add_count(&counts, options->forecast_counts.values[i]);
    for (uint32_t i = 0; i < options->thread_counts.count; i++)
        add_count(&counts, options->thread_counts.values[i]);
    if (!measure_costs(&forecasts->costs)) return false;
    for (size_t i = 0; i < forecasts->count; i++) {
        quern__bench_captured *captured = &forecasts->items[i];
        for (uint32_t k = 0; k < counts.count; k++)
            if (!forecast_median(captured, &forecasts->costs, counts.values[k],
                                 &captured->forecasts[captured->forecast_count++]))
                return false;
    }
    return true;
}

void quern__bench_forecasts_write(FILE *file, const quern__bench_forecasts *forecasts,
                                  const quern__bench_results *results)
{
    if (forecasts->count == 0) return;
    write_costs(file, &forecasts->costs);
    for (size_t i = 0; i < forecasts->count; i++)
        write_captured(file, &forecasts->items[i], results);
}

/* ------------------------------------------------------------------------------------------ profile */

static struct quern_schedule *subject_schedule;

void quern_bench_set_schedule(struct quern_schedule *schedule)
{
    subject_schedule = schedule;
}

struct quern_schedule *quern__bench_take_schedule(void)
{
    struct quern_schedule *schedule = subject_schedule;
    subject_schedule = NULL;
    return schedule;
}

bool quern__bench_profiles_open(quern__bench_profiles *profiles, const quern_hardware_source *source)
{
    *profiles = (quern__bench_profiles){.source = source};
    profiles->file = open_memstream(&profiles->text, &profiles->bytes);
    if (profiles->file == NULL) quern__bench_note("--profile: out of memory; no profile is recorded");
    return profiles->file != NULL;
}

static void require(quern_result result)
{
    if (result != QUERN_OK) quern_bench_die("--profile: %s", quern_error_message());
}

void quern__bench_profiles_start(const quern__bench_profiles *profiles, struct quern_schedule *schedule)
{
    require(quern_schedule_set_counting(schedule, profiles->source));
    require(quern_schedule_set_profiling(schedule, true));
}

void quern__bench_profiles_finish(const quern__bench_profiles *profiles, struct quern_schedule *schedule,
                                  const char *workload, const char *subject, const quern_bench_case *scene)
{
    fprintf(profiles->file, "\nProfile of %s, %" PRIu32 " entities, %" PRIu32 " thread%s, %s\n", workload,
            scene->entity_count, scene->thread_count, scene->thread_count == 1 ? "" : "s", subject);
    require(quern_schedule_write_profile(schedule, quern_sink_file(profiles->file)));
    require(quern_schedule_set_profiling(schedule, false));
    require(quern_schedule_set_counting(schedule, NULL));
}

void quern__bench_profiles_write(quern__bench_profiles *profiles, FILE *file)
{
    fflush(profiles->file);
    if (profiles->bytes == 0)
        quern__bench_note(
            "--profile: no profile, because no measured subject has called quern_bench_set_schedule");
    else
        fwrite(profiles->text, 1, profiles->bytes, file);
}

void quern__bench_profiles_close(quern__bench_profiles *profiles)
{
    if (profiles->file != NULL) fclose(profiles->file);
    free(profiles->text);
    *profiles = (quern__bench_profiles){0};
}

/* -------------------------------------------------------------------------------------------- trace */

static quern_trace *trace;

struct quern_trace *quern_bench_trace(void)
{
    return trace;
}

bool quern__bench_tracing_open(uint32_t thread_count)
{
    quern_trace_def def = {.track_count = thread_count};
    if (quern_trace_create(&def, &trace) == QUERN_OK) return true;
    quern__bench_note("--trace: %s", quern_error_message());
    return false;
}

void quern__bench_tracing_close(void)
{
    quern_trace_destroy(trace);
    trace = NULL;
}

void quern__bench_tracing_start(void)
{
    quern_trace_start(trace);
}

void quern__bench_tracing_stop(void)
{
    quern_trace_stop(trace);
}

bool quern__bench_tracing_write(const char *path)
{
    quern_trace_stats stats;
    if (quern_trace_get_stats(trace, &stats) == QUERN_OK && stats.event_count == 0)
        quern__bench_note("--trace: the trace has no events, because no subject of the last case passes "
                          "quern_bench_trace() to its pools and schedules");
    if (quern_trace_save(trace, path) == QUERN_OK) return true;
    quern__bench_note("--trace: %s", quern_error_message());
    return false;
}
