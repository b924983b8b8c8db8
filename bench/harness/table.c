/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Results as a table, and as comma-separated values. */
#include "bench/harness/table.h"

#include "bench/harness/results.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* -------------------------------------------------------------------------------------------- table */

void quern__bench_table_write_machine(FILE *file, const quern__bench_machine *machine)
{
    char memory[QUERN__BENCH_SIZE_TEXT_BYTES];
    quern__bench_format_bytes(memory, machine->memory_bytes);
    fprintf(file, "machine   %s, %" PRIu32 " processors", machine->processor, machine->processor_count);
    for (uint32_t i = 0; i < machine->cache_count; i++) {
        char size[QUERN__BENCH_SIZE_TEXT_BYTES];
        const quern__bench_cache *cache = &machine->caches[i];
        const bool has_source = cache->source[0] != '\0';
        quern__bench_format_bytes(size, cache->bytes);
        fprintf(file, ", %s cache %s%s%s%s", cache->name, size, has_source ? " (" : "", cache->source,
                has_source ? ")" : "");
    }
    fprintf(file, ", memory %s\n", memory);
    fprintf(file, "system    %s\n", machine->system);
    fprintf(file, "compiler  %s\n", machine->compiler);
    fprintf(file, "flags     %s\n", machine->flags);
    fprintf(file, "quern     %s, commit %s, measured %s\n", machine->version, machine->commit,
            machine->date);
    if (machine->checks) fputs("WARNING   built with QUERN_CHECKS: not for comparing speed\n", file);
}

void quern__bench_table_write_head(FILE *file)
{
    fprintf(file, "\n%-21s %9s %7s %-8s %-12s %10s %9s %10s %10s %7s  %s\n", "workload", "entities",
            "threads", "subject", "figure", "median", "mad", "min", "max", "ratio", "interval");
}

void quern__bench_format_figure(char text[QUERN__BENCH_FIGURE_BYTES], double figure)
{
    const double size = fabs(figure);
    const int decimals = size < 10 ? 3 : size < 100 ? 2 : size < 1000 ? 1 : 0;
    snprintf(text, QUERN__BENCH_FIGURE_BYTES, "%.*f", decimals, figure);
}

static void write_figure(FILE *file, int width, double figure)
{
    char text[QUERN__BENCH_FIGURE_BYTES];
    quern__bench_format_figure(text, figure);
    fprintf(file, " %*s", width, text);
}

/* Writes the hardware events per unit that were counted. */
static void write_counters(FILE *file, const quern__bench_record *record)
{
    const char *separator = "";
    fprintf(file, "%-21s ", "");
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++) {
        if (isnan(record->counters[i])) continue;
        char text[QUERN__BENCH_FIGURE_BYTES];
        quern__bench_format_figure(text, record->counters[i]);
        fprintf(file, "%s%s %s", separator, text, quern_hardware_event_string((quern_hardware_event)i));
        separator = ", ";
    }
    fputs(" per unit\n", file);
}

static void write_frames(FILE *file, const quern__bench_record *record)
{
    double times_ns[QUERN__BENCH_FRAME_PERCENTILE_COUNT];
    quern__bench_record_frames(record, times_ns);
    fprintf(file, "%-21s of %zu frames", "", record->frame_count);
    for (int i = 0; i < QUERN__BENCH_FRAME_PERCENTILE_COUNT; i++) {
        static const char *const units[] = {"ns", "us", "ms", "s"};
        char text[QUERN__BENCH_FIGURE_BYTES];
        size_t unit = 0;
        double time = times_ns[i];
        for (; time >= 1000 && unit + 1 < sizeof units / sizeof units[0]; unit++)
            time /= 1000;
        quern__bench_format_figure(text, time);
        fprintf(file, "%s %g %% within %s %s", i > 0 ? "," : "", 100 * quern__bench_frame_percentiles[i],
                text, units[unit]);
    }
    fputc('\n', file);
}

/* Writes the ratio, with a question mark if its interval includes 1. */
static void write_ratio(FILE *file, const quern__bench_record *record, const quern__bench_record *control)
{
    const quern__bench_trust trust = quern__bench_judge(record, control);
    fprintf(file, " %7.2f%s", trust.ratio, trust.is_unclear ? "?" : " ");
    if (isfinite(trust.high))
        fprintf(file, " %.2f to %.2f", trust.low, trust.high);
    else
        fputs(" too few samples", file);
}

void quern__bench_table_write_record(FILE *file, const quern__bench_record *record,
                                     const quern__bench_record *control)
{
    char figure[QUERN__BENCH_FIGURE_BYTES];
    snprintf(figure, sizeof figure, "%s/%s", quern__bench_record_measure(record), record->unit);
    fprintf(file, "%-21s %9" PRIu32 " %7" PRIu32 " %-8s %-12s", record->workload, record->entity_count,
            record->thread_count, record->subject, figure);
    write_figure(file, 10, record->summary.median);
    write_figure(file, 9, record->summary.mad);
    write_figure(file, 10, record->summary.min);
    write_figure(file, 10, record->summary.max);
    if (!quern__bench_record_agrees(record, control))
        fputs("   WRONG: not the control's checksum", file);
    else if (control != NULL)
        write_ratio(file, record, control);
    else if (quern__bench_record_spread(record) > QUERN__BENCH_SPREAD_LIMIT)
        fputs("   UNSTEADY", file);
    fputc('\n', file);
    if (quern__bench_record_has_counters(record)) write_counters(file, record);
    if (record->frame_count > 0) write_frames(file, record);
    fflush(file);
}

void quern__bench_table_write_trust(FILE *file, const quern__bench_results *results)
{
    char text[QUERN__BENCH_STEADINESS_TEXT_BYTES];
    size_t unclear_count = 0;
    for (size_t i = 0; i < results->record_count; i++)
        unclear_count += quern__bench_judge(&results->records[i],
                                            quern__bench_results_control(results, &results->records[i]))
                             .is_unclear;
    if (unclear_count > 0)
        fprintf(file, "\n? %zu ratios: the %g %% interval includes 1, so the samples show no difference\n",
                unclear_count, 100 * QUERN__BENCH_CONFIDENCE);
    const quern__bench_steadiness steadiness = quern__bench_assess_controls(results);
    quern__bench_format_steadiness(text, &steadiness);
    if (text[0] != '\0') fprintf(file, "\nWARNING   %s\n", text);
}

/* --------------------------------------------------------------------------- comma-separated values */

void quern__bench_csv_write_head(FILE *file)
{
    fputs("workload,subject,control,entities,threads,unit,measure,samples,median,mad,min,max,ratio", file);
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        fprintf(file, ",%s", quern__bench_counter_keys[i]);
    fputs(",checksum,agrees,frames,frame_p50_ns,frame_p90_ns,frame_p95_ns,frame_p99_ns,frame_max_ns,ratio_"
          "low,ratio_"
          "high\n",
          file);
}

/* Writes a field. A text that contains a separator is quoted, and quotation marks in it are doubled. */
static void write_text(FILE *file, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, file);
        return;
    }
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"') fputc('"', file);
        fputc(*text, file);
    }
    fputc('"', file);
}

/* Writes a number; an empty field for NAN. */
static void write_number(FILE *file, double number)
{
    if (isfinite(number))
        fprintf(file, ",%.7g", number);
    else
        fputc(',', file);
}

void quern__bench_csv_write_record(FILE *file, const quern__bench_record *record,
                                   const quern__bench_record *control)
{
    write_text(file, record->workload);
    fputc(',', file);
    write_text(file, record->subject);
    fputc(',', file);
    write_text(file, record->control != NULL ? record->control : "");
    fprintf(file, ",%" PRIu32 ",%" PRIu32 ",", record->entity_count, record->thread_count);
    write_text(file, record->unit);
    fprintf(file, ",%s,%zu", quern__bench_record_measure(record), record->sample_count);
    write_number(file, record->summary.median);
    write_number(file, record->summary.mad);
    write_number(file, record->summary.min);
    write_number(file, record->summary.max);
    write_number(file, quern__bench_record_ratio(record, control));
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        write_number(file, record->counters[i]);
    const bool agrees = quern__bench_record_agrees(record, control);
    fprintf(file, ",%016" PRIx64 ",%s", record->checksum, control == NULL ? "" : agrees ? "yes" : "no");
    double frames_ns[QUERN__BENCH_FRAME_PERCENTILE_COUNT];
    quern__bench_record_frames(record, frames_ns);
    fprintf(file, ",%zu", record->frame_count);
    for (int i = 0; i < QUERN__BENCH_FRAME_PERCENTILE_COUNT; i++)
        write_number(file, frames_ns[i]);
    const quern__bench_trust trust = quern__bench_judge(record, control);
    write_number(file, isfinite(trust.high) ? trust.low : NAN);
    write_number(file, trust.high);
    fputc('\n', file);
    fflush(file);
}
