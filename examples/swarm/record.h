/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_RECORD_H
#define SWARM_RECORD_H

/* Durations and counts of a run, frame by frame. */

#include "simulation.h"

/* Sums of the values of a system over all frames. */
typedef struct SystemRecord {
    char name[QUERN_MAX_NAME_BYTES + 1]; /* copied, because it is read after the schedule is destroyed */
    uint64_t time_ns;
    uint64_t view_count;
    uint64_t entity_count;
} SystemRecord;

typedef struct Record {
    uint64_t *frame_ns; /* array of the durations of frame_count frames */
    uint32_t frame_count;
    uint32_t frame_capacity;
    uint64_t sync_ns;
    uint64_t created_count, destroyed_count;
    uint32_t system_count;
    SystemRecord *systems; /* in the order of execution */
} Record;

uint64_t clock_ns(void);

void record_create(Record *record, const Simulation *simulation);
void record_destroy(Record *record);

/* Adds a frame. frame_ns: its duration, measured by the caller. */
void record_frame(Record *record, const Simulation *simulation, uint64_t frame_ns);

/* Returns the percentile of the durations of the first frame_count frames, at least 1: `percent` of them
 * do not exceed it. */
uint64_t record_percentile_ns(const Record *record, uint32_t frame_count, uint32_t percent);

#endif
