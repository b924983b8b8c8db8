/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_PLAYBACK_H
#define QUERN_CORE_PLAYBACK_PLAYBACK_H

/* Playback: applying recorded commands (record.h) at a sync point, in stages. stages.h
 * describes what each stage hands to the next. All stages but the last may fail and then change nothing; relate reverts
 * its changes. The last stage cannot fail.
 *
 *   gather    lists the streams of all recorders, sorted by key
 *   relate    only if commands relate or name entities, or may destroy related ones: changes links and names, and
 *             adds follow-up commands on rows
 *   merge     combines all commands on one entity to one edit, and edits with the same effect to groups
 *   resolve   finds the final archetype, move plan and new values of each sequence of commands; counts the rows that
 *             leave and arrive in each archetype, and reserves memory
 *   apply     allocates the handles of creates, in order, and then changes rows, chunk by chunk
 *
 * Three fast paths replace merge, resolve and apply: if all commands set existing values, if a few commands are all on
 * one entity, and if all commands destroy or create entities. A fourth replaces all stages after gather: if all commands
 * relate entities in one relation.
 *
 * Accumulated values are gathered before the first stage and combined after the last.
 *
 * At the end, values that items still own are destroyed and the recorders are reset. */

#include "core/playback/stages.h"
#include "core/query/query_internal.h"
#include "core/world/world_internal.h"

typedef struct quern__playback {
    quern__storage *storage;
    uint64_t parallel_command_count; /* sync points with fewer commands run on the calling thread */
    /* For tests: */
    bool disable_fast_paths;
    uint32_t
        destroy_and_create_count; /* number of sync points that used the path of destroys and creates */
    uint32_t only_relates_count;  /* number of sync points that used the path of relating */
    /* Scratch memory, reused at every sync point: */
    quern__gathered gathered;
    quern__merged merged;
    quern__resolved resolved;
    quern__destroy_and_create destroy_and_create;
    quern__relating *relating;         /* NULL until first used */
    quern__accumulating *accumulating; /* NULL until first used */
    quern__drops drops;                /* dropped commands since quern__playback_start_frame */
    /* Called at the end of a successful sync point with creates. created: their handles, in the order of
     * streams. May be NULL. */
    void (*on_created)(void *argument, const quern__gathered *gathered, const quern_entity *created);
    void *on_created_argument;
} quern__playback;

typedef struct quern__playback_stats {
    uint64_t command_count;
    uint64_t dropped_count; /* commands that were not applied; quern_drop_reason lists the reasons */
    uint64_t created_count;
    uint64_t destroyed_count;
    uint64_t refused_count; /* entities with refused commands: see quern__resolved */
    quern_result refused_result;
} quern__playback_stats;

void quern__playback_init(quern__playback *playback, quern__storage *storage);

void quern__playback_release(quern__playback *playback);

/* Removes the drops reported so far. */
static inline void quern__playback_start_frame(quern__playback *playback)
{
    playback->drops.count = 0;
}

/* Playback as the recorders know it. A sync point reaches playback only through recorders whose callbacks may have
 * recorded something: a program without such callbacks links the sync point, but not the stages of playback. */
typedef struct quern__playback_calls {
    quern_result (*run)(quern__playback *playback, quern__recorders recorders,
                        const quern__executor *executor, quern__playback_stats *stats);
} quern__playback_calls;

extern const quern__playback_calls quern__playback_calls_of_recorders;

/* quern__commands_begin for recorders whose commands a sync point applies by quern__playback_run_recorded. */
static inline void quern__playback_begin(quern_commands *recorder, const quern__origin *origin)
{
    recorder->playback_calls = &quern__playback_calls_of_recorders;
    quern__commands_begin(recorder, origin);
}

/* Calls quern__playback_run by the recorders. Does nothing if quern__playback_begin was called for none of them. */
static inline quern_result quern__playback_run_recorded(quern__playback *playback,
                                                        quern__recorders recorders,
                                                        const quern__executor *executor,
                                                        quern__playback_stats *stats)
{
    for (uint32_t i = 0; i < recorders.count; i++) {
        const quern__playback_calls *calls = recorders.items[i]->playback_calls;
        if (calls != NULL) return calls->run(playback, recorders, executor, stats);
    }
    return QUERN_OK;
}

/* Applies all commands of the recorders and resets them. Adds to stats and to the drops. executor may be NULL.
 * On failure, the world and the recorders are unchanged, so the call can be repeated. Errors: OUT_OF_MEMORY,
 * LIMIT. */
quern_result quern__playback_run(quern__playback *playback, quern__recorders recorders,
                                 const quern__executor *executor, quern__playback_stats *stats);

/* ------------------------------------------------------------------------------------ outside of frames */

/* Commands recorded outside of frames: by code between frames and exclusive systems (quern_world_commands), and by
 * the callbacks of parallel queries. The state is allocated when the first recorder is requested. */

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

/* Drops all commands, and frees the state. */
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
