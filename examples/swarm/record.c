/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "record.h"

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void record_create(Record *record, const Simulation *simulation)
{
    *record = (Record){.system_count = quern_schedule_system_count(simulation->schedule)};
    record->systems = check_memory(calloc(record->system_count, sizeof *record->systems));
}

void record_destroy(Record *record)
{
    free(record->frame_ns);
    free(record->systems);
}

static void add_time(Record *record, uint64_t frame_ns)
{
    if (record->frame_count == record->frame_capacity) {
        record->frame_capacity = record->frame_capacity * 2 + 1024;
        size_t bytes = record->frame_capacity * sizeof *record->frame_ns;
        record->frame_ns = check_memory(realloc(record->frame_ns, bytes));
    }
    record->frame_ns[record->frame_count++] = frame_ns;
}

void record_frame(Record *record, const Simulation *simulation, uint64_t frame_ns)
{
    add_time(record, frame_ns);
    quern_frame_stats frame;
    check(quern_schedule_get_frame_stats(simulation->schedule, &frame));
    record->sync_ns += frame.sync_ns;
    record->created_count += frame.created_count;
    record->destroyed_count += frame.destroyed_count;
    for (uint32_t i = 0; i < record->system_count; i++) {
        quern_system_stats stats;
        quern_system system = quern_schedule_system_at(simulation->schedule, i);
        check(quern_schedule_get_system_stats(simulation->schedule, system, &stats));
        snprintf(record->systems[i].name, sizeof record->systems[i].name, "%s", stats.name);
        record->systems[i].time_ns += stats.time_ns;
        record->systems[i].view_count += stats.view_count;
        record->systems[i].entity_count += stats.entity_count;
    }
}

static int compare_times(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

uint64_t record_percentile_ns(const Record *record, uint32_t frame_count, uint32_t percent)
{
    size_t bytes = frame_count * sizeof *record->frame_ns;
    uint64_t *sorted = check_memory(malloc(bytes));
    memcpy(sorted, record->frame_ns, bytes);
    qsort(sorted, frame_count, sizeof *sorted, compare_times);
    uint64_t rank = ((uint64_t)frame_count * percent + 99) / 100;
    uint64_t time_ns = sorted[rank == 0 ? 0 : rank - 1];
    free(sorted);
    return time_ns;
}
