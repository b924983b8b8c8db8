/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "report.h"

#include <inttypes.h>
#include <stdio.h>

static double milliseconds(double ns)
{
    return ns / 1e6;
}

static uint64_t total_ns(const Record *record)
{
    uint64_t total = record->sync_ns;
    for (uint32_t i = 0; i < record->system_count; i++)
        total += record->systems[i].time_ns;
    return total;
}

static void print_row(const char *name, uint64_t time_ns, double frame_count, double total)
{
    printf("  %-22s %10.3f %6.1f %%", name, milliseconds((double)time_ns / frame_count),
           100.0 * (double)time_ns / total);
}

/* Durations are sums over the threads, so they may exceed the duration of a frame. */
static void print_systems(const Record *record)
{
    double frame_count = record->frame_count, total = (double)total_ns(record) + 1.0;
    printf("  %-22s %10s %8s %8s %10s\n", "system, per frame", "ms", "share", "views", "agents");
    for (uint32_t i = 0; i < record->system_count; i++) {
        const SystemRecord *system = &record->systems[i];
        print_row(system->name, system->time_ns, frame_count, total);
        printf(" %8.0f %10.0f\n", (double)system->view_count / frame_count,
               (double)system->entity_count / frame_count);
    }
    print_row("sync points", record->sync_ns, frame_count, total);
    printf("\n\n");
}

static void print_population(const Record *record, const Outcome *outcome)
{
    const Census *census = &outcome->census;
    printf("  alive        %" PRIu64 ": %" PRIu64 " prey (energy %.2f), %" PRIu64
           " hunters (energy %.2f)\n",
           census->prey_count + census->hunter_count, census->prey_count, census->prey_energy,
           census->hunter_count, census->hunter_energy);
    printf("  commands     %" PRIu64 " agents created, %" PRIu64 " destroyed\n", record->created_count,
           record->destroyed_count);
}

static void print_comparison(const Comparison *comparison)
{
    if (!comparison->made) return;
    printf("  speed-up     %.2f against 1 thread (medians of the first %" PRIu32 " frames)\n",
           comparison->speedup, comparison->frame_count);
    printf("  same hash as on 1 thread: %s\n", comparison->same_hash ? "yes" : "NO");
}

void report_print(const Options *options, const Record *record, const Outcome *outcome)
{
    printf("\nswarm: %" PRIu32 " agents, %" PRIu32 " frames, %" PRIu32 " threads, seed %" PRIu64 "\n\n",
           options->entity_count, record->frame_count, outcome->thread_count, options->seed);
    if (record->frame_count > 0) {
        print_systems(record);
        printf("  frame        %.2f ms median, %.2f ms 99th percentile\n",
               milliseconds((double)record_percentile_ns(record, record->frame_count, 50)),
               milliseconds((double)record_percentile_ns(record, record->frame_count, 99)));
    }
    print_population(record, outcome);
    print_comparison(&outcome->comparison);
    printf("  world hash: 0x%016" PRIx64 "\n", outcome->hash);
}

static uint64_t percentile_or_zero(const Record *record, uint32_t percent)
{
    return record->frame_count == 0 ? 0 : record_percentile_ns(record, record->frame_count, percent);
}

void report_print_json(const Options *options, const Record *record, const Outcome *outcome)
{
    const Census *census = &outcome->census;
    char speedup[32] = "null";
    if (outcome->comparison.made) snprintf(speedup, sizeof speedup, "%.3f", outcome->comparison.speedup);
    printf("{\"hash\": \"0x%016" PRIx64 "\", \"threads\": %" PRIu32 ", \"entities\": %" PRIu32
           ", \"frames\": %" PRIu32 ", \"seed\": %" PRIu64,
           outcome->hash, outcome->thread_count, options->entity_count, record->frame_count, options->seed);
    printf(", \"frame_ns_median\": %" PRIu64 ", \"frame_ns_p99\": %" PRIu64, percentile_or_zero(record, 50),
           percentile_or_zero(record, 99));
    printf(", \"alive\": %" PRIu64 ", \"prey\": %" PRIu64 ", \"hunters\": %" PRIu64
           ", \"created\": %" PRIu64 ", \"destroyed\": %" PRIu64 ", \"speedup\": %s}\n",
           census->prey_count + census->hunter_count, census->prey_count, census->hunter_count,
           record->created_count, record->destroyed_count, speedup);
}
