/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_WORLD_COMMANDS_H
#define QUERN_CORE_CALLS_WORLD_COMMANDS_H

/* Commands recorded outside of frames: by code between frames and exclusive systems (quern_world_commands), and by
 * the callbacks of parallel queries. The state is allocated when the first recorder is requested. */

#include "core/playback/playback.h"
#include "core/query/query_internal.h"
#include "core/world/world_internal.h"

typedef struct quern__world_commands {
    quern_commands recorder;          /* for quern_world_commands; callers keep its address */
    quern_commands *recorder_list[1]; /* the recorder, as a list */
    /* By worker of a parallel query. Callbacks may keep the addresses, so elements never move. Streams that
     * could not be applied stay in the recorders. */
    QUERN__ARRAY(quern_commands *) worker_recorders;
    QUERN__ARRAY(quern__plain_context *) worker_contexts;
    quern__accessor accessor;               /* of the latest parallel query */
    _Atomic bool has_logged_failed_command; /* of the latest parallel query */
    uint64_t flush_count;                   /* key of the next stream of `recorder` */
    quern__playback playback;
    quern_flush_stats stats;
} quern__world_commands;

/* Errors of a sync point that processed all commands. */
typedef struct quern__flush_report {
    quern_result record_result;  /* error if a command could not be recorded */
    quern_result refused_result; /* error if an entity exceeded a limit of entities or of the world */
    uint64_t refused_count;      /* number of entities that exceeded a limit */
} quern__flush_report;

/* Adds the refused entities of one playback. */
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

/* Creates the state if there is none, with recorders and contexts for worker_count workers. Errors: OUT_OF_MEMORY,
 * with existing state unchanged. */
quern_result quern__world_reserve_commands(quern_world *world, uint32_t worker_count);

void quern__world_release_commands(quern_world *world);

/* Ends the recording of an exclusive system: calls on the recorder fail until it is requested again. */
void quern__world_end_recording(const quern_world *world);

/* Returns whether any recorder has commands, values or a recording error. */
bool quern__world_has_commands(const quern_world *world);

/* Applies the commands of workers. On failure they stay recorded. executor may be NULL. */
quern_result quern__world_apply_worker_commands(quern_world *world, const quern__executor *executor,
                                                quern__flush_report *report);

/* Applies all commands, first those that a parallel query could not apply. The world may be locked. Calls on the
 * recorder fail from now on until it is requested again. */
quern_result quern__world_apply_commands(quern_world *world, quern__flush_report *report);

/* Reports two errors of a call or frame in one message: `result`, and `lost`, the error of something that could not
 * be recorded. The next call would not report the loss. Returns lost, or result if nothing was lost (QUERN_OK).
 * where: call or system, begins the message. what: for example "record a command". */
quern_result quern__fail_with_loss(quern_result result, quern_result lost, const char *what,
                                   const char *where);

/* Returns the first error of the report, with a message that names the function, or QUERN_OK. */
quern_result quern__flush_result(const quern__flush_report *report, const char *function);

#endif
