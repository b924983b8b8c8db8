/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/csv.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "bench/harness/trust.h"

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

static void write_case(FILE *file, const quern__bench_record *record)
{
    write_text(file, record->workload);
    fputc(',', file);
    write_text(file, record->subject);
    fputc(',', file);
    write_text(file, record->control != NULL ? record->control : "");
    fprintf(file, ",%" PRIu32 ",%" PRIu32 ",", record->entity_count, record->thread_count);
    write_text(file, record->unit);
    fprintf(file, ",%s", quern__bench_record_measure(record));
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
    write_case(file, record);
    fprintf(file, ",%zu", record->sample_count);
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
