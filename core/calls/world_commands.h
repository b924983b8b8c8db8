/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_WORLD_COMMANDS_H
#define QUERN_CORE_CALLS_WORLD_COMMANDS_H

/* Commands that no frame records: those of code between frames (quern_world_commands), and those of kernels
 * in parallel queries. A world that never has any has none of this. */

#include "core/playback/playback.h"
#include "core/query/query_internal.h"
#include "core/world/world_internal.h"

typedef struct quern__world_commands {
    quern_commands recorder;          /* of code between frames; users keep its address */
    quern_commands *recorder_list[1]; /* the recorder, as a list */
    /* One of each for every worker of a parallel query, as user code may keep the addresses of both: they never
     * move. Streams that could not be applied stay in the recorders. */
    QUERN__ARRAY(quern_commands *) worker_recorders;
    QUERN__ARRAY(quern__plain_context *) worker_contexts;
    quern__accessor accessor; /* of the parallel query that ran last */
    uint64_t flush_count;     /* tells the streams of the recorder apart */
    quern__playback playback;
    quern_flush_stats stats;
} quern__world_commands;

/* What went wrong at a sync point without ending it. */
typedef struct quern__flush_report {
    quern_result record_result;  /* a command could not be recorded */
    quern_result refused_result; /* an entity asked for more than it, or the world, can have */
    uint64_t refused_count;      /* such entities */
} quern__flush_report;

/* Adds what one playback refused. */
static inline void quern__flush_report_add(quern__flush_report *report,
                                           const quern__playback_stats *applied)
{
    report->refused_count += applied->refused_count;
    if (report->refused_result == QUERN_OK) report->refused_result = applied->refused_result;
}

static inline quern__recorders quern__world_recorder_list(const quern__world_commands *commands)
{
    return (quern__recorders){commands->recorder_list, 1};
}

static inline quern__recorders quern__world_worker_recorders(const quern__world_commands *commands)
{
    return (quern__recorders){commands->worker_recorders.items, commands->worker_recorders.count};
}

/* Makes them, with room for so many workers. Errors: OUT_OF_MEMORY, with what there was kept. */
quern_result quern__world_reserve_commands(quern_world *world, uint32_t worker_count);

void quern__world_release_commands(quern_world *world);

/* At the end of an exclusive system: whoever keeps the recorder is refused, until it is asked for again. */
void quern__world_end_recording(const quern_world *world);

/* Whether anything waits to be applied. */
bool quern__world_has_commands(const quern_world *world);

/* Applies what workers have recorded. On failure it stays recorded. executor may be NULL. */
quern_result quern__world_apply_worker_commands(quern_world *world, const quern__executor *executor,
                                                quern__flush_report *report);

/* Applies all: what a parallel query could not apply first. The world may be locked. Whoever keeps the
 * recorder is refused from now on, until it is asked for again. */
quern_result quern__world_apply_commands(quern_world *world, quern__flush_report *report);

/* For a call or frame that has failed with `result` and lost something besides, as there was no memory to record
 * it (lost: not QUERN_OK): one message tells both, since the next call would not tell what this one lost. Returns
 * lost, or result if nothing was lost. where: begins the message. what: "record a command", for example. */
quern_result quern__fail_with_loss(quern_result result, quern_result lost, const char *what,
                                   const char *where);

/* What the report comes to when all is done, as a call gives it. */
quern_result quern__flush_result(const quern__flush_report *report, const char *function);

#endif
