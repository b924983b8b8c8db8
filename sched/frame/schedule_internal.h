/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_SCHEDULE_INTERNAL_H
#define QUERN_SCHED_FRAME_SCHEDULE_INTERNAL_H

/* Guards detect that code writes through a pointer into a chunk that it kept beyond its callback. Only
 * builds with QUERN_CHECKS have guards.
 *
 * While the passes of a segment run, a column may only change through views and lookups that may write it.
 * Each column that a system of the schedule can access has a guard in each chunk of the world: the sum of
 * the hashes of its values. A guard is renewed after each call that may write the column by its view or by a
 * lookup. It is checked before the next call with a view of the column. At the end of a segment all guards
 * are checked, whatever the segment accessed. A guard that does not match was broken while no view of the
 * column existed.
 *
 * If a call was refused an access, the guards of the columns that it may only read are renewed, too: a
 * write to them has been reported already.
 *
 * A view of some rows of a chunk, such as the rows of one depth or one target, may be one of hundreds. So it
 * hashes only its own rows: before the call their hashes are subtracted from the guard, and after the call
 * they are added again. A broken guard is then found by the next view of the whole chunk, or at the end of
 * the segment.
 *
 * Guards remain valid across segments and frames. They are rebuilt where values may change:
 *
 *   - at a sync point with commands: all guards
 *   - between frames and in exclusive systems: all guards if rows were added, removed or moved, or if another
 *     schedule has run a frame. Otherwise the guards of components that a call has written, or for which a call
 *     has returned a pointer for writing that is still valid (quern__outside_writes); all other guards are checked.
 *
 * Threads: the guard of a column is written by calls that may write the column, and read by calls that may
 * read it. The schedule's conflicts keep these calls apart. */

#include "core/base/containers.h"
#include "core/events/event_internal.h"
#include "core/playback/playback.h"
#include "core/storage/archetype.h"
#include "sched/jobs/deque.h"
#include "sched/schedule/schedule_plan.h"

#include <quern/schedule.h>

struct quern_schedule;
struct quern_context;
struct quern_view;

typedef struct quern__guard {
    uint64_t hash;
    /* Last system that could write the column. NULL: none since the guard exists. */
    const struct quern__system *last_writer;
    /* Used while a callback has a pointer to the column that it looked up for writing: the location of the
     * column, and the next guard that the callback keeps open. */
    const quern__archetype *archetype; /* NULL: no callback has a pointer to the column */
    uint32_t slot, column;
    struct quern__guard *next_open;
} quern__guard;

/* The guards of an archetype: guards[chunk index * column count + column]. */
typedef struct quern__guard_table {
    const quern__archetype *archetype;
    uint64_t set_hash; /* set_hash of the archetype: another archetype may reuse the address */
    quern__guard *guards;
    uint32_t capacity; /* number of guards */
} quern__guard_table;

typedef struct quern__guards {
    QUERN__ARRAY(quern__guard_table) tables; /* by archetype index */
    /* Components that systems can access by terms, up-terms or lookups. */
    uint64_t reachable[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    uint32_t system_count; /* systems, in the order of registration, that `reachable` includes */
    /* Structure version of the storage when the guards were built. */
    uint64_t structure_version;
    const char *when; /* for messages: found changes happened "before" or "in" the frame */
    /* The guards are valid: since they were built, values have changed only in calls that renew guards. */
    bool are_valid;
} quern__guards;

void quern__guards_release(quern__guards *guards, const quern_allocator *allocator);

/* Notes whether the last frame of a schedule has failed: then events may not be published yet. */
void quern__schedule_set_failed(struct quern_schedule *schedule, bool has_failed);

/* Forgets all guards, because they refer to systems that are removed or replaced. */
void quern__guards_forget(struct quern_schedule *schedule);

/* Replaces the name of the refused system if no system is known to have had the column. */
extern const char quern__guard_no_system[];

/* Handles writes by code outside of the schedule's passes, at the beginning of a frame or after an
 * exclusive system. Renews the guards of components that such code may have written, and checks all others.
 * `when`: "before" or "in" the frame, for messages. */
void quern__guards_check_outside_writes(struct quern_schedule *schedule, const char *when);

/* Invalidates all guards, because values may change. The next quern__guards_rebuild rebuilds them. */
void quern__guards_invalidate(struct quern_schedule *schedule);

/* Rebuilds the guards if they are invalid. Called before each segment and at the end of a frame. Returns
 * false if out of memory. */
bool quern__guards_rebuild(struct quern_schedule *schedule);

/* Checks the guards of the view's columns, before each call with a view of rows of a chunk. For a view of
 * some rows of a chunk, subtracts the hashes of the rows that it may write from their guards instead. */
void quern__guards_begin_view(struct quern_context *context, const quern__archetype *archetype,
                              const struct quern_view *view);

/* Renews the guards of the columns that the view may write. Called after the call. was_refused: the call
 * was refused an access, such as a write to a column that it may only read. That has been reported, so
 * the guards of the view's other columns are renewed, too. */
void quern__guards_renew_view(struct quern_context *context, const quern__archetype *archetype,
                              const struct quern_view *view, bool was_refused);

/* Checks the guard of a column to which a callback gets a pointer for writing, and keeps the guard open
 * until the callback returns. */
void quern__guards_open(struct quern_context *context, const quern__archetype *archetype, uint32_t slot,
                        uint32_t column);

/* Renews the guards that the callback kept open. Called after each callback. */
void quern__guards_renew_open(struct quern_context *context);

/* Checks all guards. Called after each segment. */
void quern__guards_check_all(struct quern_schedule *schedule);

/* --------------------------------------------------------------------------------------------- schedules */

/* The schedule: its plan, and the state that frames keep from one to the next. */

struct quern_context;

struct quern_schedule {
    quern__plan plan;
    const char *name; /* behind the phases in the same allocation; NULL if the schedule has no name */
    bool measures_times;
    quern__frame_observer *observer;

    /* frames */
    bool is_running;
    bool is_observed;        /* the observer observes the current frame */
    bool has_command_counts; /* some system's command_count must be cleared for the next frame */
    bool has_history;        /* a history saves the schedule (sched/history) */
    bool has_failed;         /* the last frame has failed */
    uint64_t turn;        /* of the phase: number of the frame, or of its step (quern_system_def.every) */
    uint64_t frame_index; /* index of the current frame, or between frames of the next one */
    double delta_seconds;
    quern_jobs *jobs;
    uint32_t caller_index; /* worker that runs the frame */
    uint64_t serial_base;  /* first serial of the current segment */
    /* Of the current segment: a system's writes have version version_base plus its position. */
    uint64_t version_base;
    QUERN__ARRAY(quern_commands *) recorders; /* one per worker */
    QUERN__ARRAY(struct quern_context *) contexts;
    uint32_t worker_count; /* entries of recorders, and of contexts */
    /* Working memory for up-terms: one array per worker, one after another. */
    const void **addresses;
    uint32_t addressed_worker_count; /* number of workers with an array in `addresses` */
    uint32_t up_count;               /* number of up-terms that each array in `addresses` has room for */

    /* Events: one emitter per worker and channel, ordered by worker. Covers the first
     * emitter_channel_count channels. */
    quern__emitter **emitters;
    uint32_t emitter_row_count, emitter_channel_count;
    _Atomic bool has_emitted;     /* a callback has opened an emitter since the last sync point */
    quern_result emit_result;     /* error of the current frame if an event could not be emitted */
    quern__event_loss event_loss; /* events lost in the current frame */

    quern__playback playback;
    quern__command_listener *command_listener; /* a command log; NULL: none */
    /* Of the sync point that runs, while there is a listener: a SYNC segment; NULL: before the first system. */
    const quern__segment *sync_segment;
    quern__guards guards; /* empty in builds without QUERN_CHECKS */
    quern_frame_stats stats;

    /* rounds of reactions */
    bool has_reacted;             /* in the current frame, or in the last one */
    bool has_reached_round_limit; /* the limit of rounds was reached in the current frame */
    char reaction_trail[512];     /* reactions of the last rounds, for messages: "'a' -> 'b' -> 'a'" */

    quern_schedule *next_schedule; /* in the world's list of schedules */
};

/* Returns the recorders of all workers. */
static inline quern__recorders quern__schedule_recorders(const quern_schedule *schedule)
{
    return (quern__recorders){schedule->recorders.items, schedule->worker_count};
}

/* Creates a schedule with the observer that `create_observer` creates. Arguments and errors: as
 * quern_schedule_create; messages name that function. */
quern_result quern__schedule_create(quern_world *world, const quern_schedule_def *def,
                                    quern__frame_observer_create *create_observer,
                                    quern_schedule **out_schedule);

/* Fails with WORLD_LOCKED while the schedule runs a frame, also in its exclusive systems. Messages name
 * `function`. */
quern_result quern__schedule_check_idle(const quern_schedule *schedule, const char *function);

/* Runs a frame like quern_schedule_run. Messages name `function`. */
quern_result quern__schedule_run(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds,
                                 const char *function);

/* Compiles the schedule like quern_schedule_compile. Messages name `function`. */
quern_result quern__schedule_compile(quern_schedule *schedule, const char *function);

/* Destroys the commands that failed frames have kept. Must not be called while a frame runs. */
void quern__schedule_discard_kept(quern_schedule *schedule);

/* Returns the system of a handle, or NULL if the handle is invalid or its system was removed. */
static inline quern__system *quern__schedule_system(const quern_schedule *schedule, quern_system handle)
{
    const uint32_t number = handle.bits & ((1u << QUERN__SYSTEM_INDEX_BITS) - 1);
    if (number == 0 || number > schedule->plan.slots.count) return NULL;
    quern__system *system = schedule->plan.slots.items[number - 1]->system;
    return system != NULL && system->handle_bits == handle.bits ? system : NULL;
}

/* Fails with INVALID_ARGUMENT for a handle without a system. Messages name `function`. */
quern_result quern__schedule_fail_system(const quern_schedule *schedule, quern_system handle,
                                         const char *function);
#define quern__schedule_fail_system(schedule, handle, function) \
    quern__known_code(QUERN_ERROR_INVALID_ARGUMENT,             \
                      (quern__schedule_fail_system)(schedule, handle, function))

/* ---------------------------------------------------------------------------------------------- contexts */

/* The context of a callback: what it can access besides its view. Each worker has one context, which is set
 * anew for each callback. */

/* Aligned so that the contexts of different workers share no cache line. */
struct quern_context {
    _Alignas(QUERN__APART_BYTES)
        quern__scope scope; /* first member: core converts a context to its scope */
    quern_schedule *schedule;
    const quern__system *system;
    quern_commands *commands;
    /* Working memory for the up-terms of a view (core/query/query_internal.h). NULL if no system has up-terms. */
    const void **addresses;
    uint32_t worker_index;
    quern__callback_kind callback;
    /* Thread that runs callbacks with the context now, or NULL. Only set in builds with QUERN_CHECKS. */
    const void *thread;
    /* Value of the thread's quern__world_of_callback before the pass, which restores it. */
    const quern_world *outer_world;
    /* Number of the callback's command stream within its system. */
    uint32_t call_index;
    uint32_t reaction; /* quern_reaction_kind of the view's rows; 0: not a reaction */
    bool has_stream;   /* the recorder has begun this callback's stream */
    bool has_output;   /* has_stream is true, or open_emitters is not empty */
    bool is_busy;      /* a job of a pass runs callbacks with the context */
    /* Guards of columns that the callback looked up for writing. */
    struct quern__guard *open_guards;
    const char *refused_system;    /* last system of this frame that was refused an access, or NULL */
    quern__emitter *open_emitters; /* emitters that this callback has opened */
};

_Static_assert(offsetof(struct quern_context, scope) == 0, "core takes a context for its scope");

/* Returns whether the callback of a system calls `function`. Otherwise reports the error and returns false.
 * `what`: what the caller asked for, for the message, such as "events". */
bool quern__context_is_system(quern_context *context, const char *function, const char *what);

/* Refuses a call with an invalid handle, most often because the object was never registered. The message
 * repeats the last error message. `what`: kind of the handle, such as "event". */
void quern__context_refuse_handle(quern_context *context, const char *what, const char *function);

/* ------------------------------------------------------------------------------------------------ frames */

/* Runs frames: the segments of a compiled schedule, one after another.
 *
 * Determinism: a command stream is identified by the position of its system and a call index: 0 for the condition and
 * begin,
 * 1 + ordinal for a view, and the last index for end. Its provisional handles contain a serial, which
 * counts the call indices of all systems of the segment in order. Position, call index and serial do not
 * depend on the worker that records the stream. Partial results are stored by ordinal. Nothing else that workers produce
 * outlives the segment. */

struct quern__flush_report;

/* Runs one round of reactions, including its sync points. Errors end the frame. */
quern_result quern__frame_run_round(quern_schedule *schedule, struct quern__flush_report *report);

/* Applies the commands that a failed frame kept, and runs reactions to changes that calls between frames
 * have made. Messages name `function`. Errors: as quern_schedule_run. */
quern_result quern__frame_run_reactions(quern_schedule *schedule, quern_jobs *jobs, const char *function);

enum { QUERN__CALL_BEGIN = 0, QUERN__CALL_FIRST_VIEW = 1 };

/* Returns the remainder of dividing seconds by the interval: at least 0, and less than the interval.
 * Replaces fmod, because the library does not link libm. */
static inline double quern__time_rest(double seconds, double interval_seconds)
{
    const double whole_count = seconds / interval_seconds;
    if (!(whole_count < 0x1p53)) return 0; /* a double this large has no fraction; or the interval is 0 */
    const double rest = seconds - (double)(uint64_t)whole_count * interval_seconds;
    /* The division may round up to the next multiple. */
    return rest > 0 && rest < interval_seconds ? rest : 0;
}

/* ------------------------------------------ events: systems emit and read them, sync points publish them */

/* ------------------------------------------------------------------------------------ running systems */

/* Extends the table of emitters to all workers and all emitted channels. Existing emitters keep their
 * values. Errors: OUT_OF_MEMORY. */
quern_result quern__emitters_extend(quern_schedule *schedule);

/* Frees the emitters, with the values that were not published. */
void quern__emitters_release(quern_schedule *schedule);

/* Closes the emitters that the callback opened. Called after the callback has returned. */
void quern__context_close_emitters(struct quern_context *context);

/* Lets the readers of the segment's systems read all events published until now. Called before the segment
 * runs. */
void quern__events_start_segment(const quern_schedule *schedule, const quern__segment *segment);

/* Marks events as read by those systems of the segment that ran. Called after the segment; has_run is false
 * if it could not run. */
void quern__events_finish_segment(const quern_schedule *schedule, const quern__segment *segment,
                                  bool has_run);

/* -------------------------------------------------------------------------------------- sync points */

/* Gathers the emitted events in a deterministic order. Called before commands are applied. Errors:
 * OUT_OF_MEMORY; all events are retained. */
quern_result quern__events_begin_sync(quern_schedule *schedule);

/* Publishes the gathered events. Called after commands were applied. */
void quern__events_end_sync(quern_schedule *schedule);

/* Replaces the provisional handles in emitted events by the entities that the same callbacks created.
 * Called by playback; `argument` is the schedule. */
void quern__events_resolve_handles(void *argument, const quern__gathered *gathered,
                                   const quern_entity *created);

/* Destroys the events that callbacks emitted and no sync point has published, and clears failures to emit.
 * Must not be called while a frame runs. Cannot fail. */
void quern__events_discard(quern_schedule *schedule);

/* Sets provisional handles in unpublished events to null. Called after the commands that create their
 * entities were discarded. */
void quern__events_clear_handles(const quern_schedule *schedule);

/* Moves failures to emit (out of memory) from the emitters to the schedule, which reports them at the end
 * of the frame. */
void quern__events_collect_failures(quern_schedule *schedule);

/* Fails because events could not be emitted for lack of memory, or were lost. The message names the event in the
 * second case. */
QUERN__SLOW_PATH quern_result quern__events_fail_frame(const quern_schedule *schedule);

/* ------------------------------------------------------------------------------------- applying commands */

/* Applies the commands that systems have recorded, which may create archetypes. Errors end the frame. */
quern_result quern__sync_commands(quern_schedule *schedule, quern__flush_report *report);

/* Runs a sync point with events: applies commands, if there are any, and then publishes the emitted events.
 * Errors end the frame. */
quern_result quern__sync_events(quern_schedule *schedule, quern__flush_report *report);

/* What each worker has in frames: a recorder of commands, the context of its callbacks, and memory for the
 * addresses of up-terms. User code may keep pointers to a recorder or a context beyond its callback; calls
 * with these pointers must be refused. So recorders and contexts keep their addresses as long as the
 * schedule exists, even if workers are added. */

void quern__workers_release(quern_schedule *schedule);

/* ----------------------------------------------------------------------------------- rounds of reactions */

/* Rounds of reactions. They run after each sync point of a frame, and before its first system.
 *
 *     while changes are pending for a reaction of the schedule, at most max_reaction_rounds times:
 *         each segment of the round: takes the changes that are pending by now, and runs like other segments
 *         SYNC, the last segment: applies the commands of the reactions, which may cause another round
 *
 * Without an exclusive reaction, one segment of a round runs systems, so all reactions see the same state
 * of the world. If the limit is reached, pending changes are discarded and the frame continues. The result
 * of the frame then names the reactions of the last rounds. */

/* Runs rounds until no change is pending. Errors end the frame; changes that were not shown to reactions
 * remain pending for the next frame. */
quern_result quern__reaction_rounds_run(quern_schedule *schedule, quern__flush_report *report);

/* Sets the statistics of reactions to zero, after an earlier frame in which reactions ran. */
void quern__reaction_rounds_clear_frame(quern_schedule *schedule);

/* Returns whether changes may be pending for a reaction of the schedule. */
bool quern__reaction_rounds_are_due(const quern_schedule *schedule);

/* Functions that pass_run.c, which runs the jobs of passes, and reaction_rounds.c, which runs the items of
 * reactions, share. */

/* The functions that compiled passes call. */
extern const quern__pass_functions quern__frame_pass_functions;

/* Members of quern__frame_pass_functions. A frame on one thread calls them directly. */
void quern__pass_begin(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);
void quern__pass_run(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);
void quern__pass_end(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);

/* Calls the condition of a set, which records nothing. */
void quern__pass_ask_set(const quern__plan *plan, quern__set *set, uint32_t worker_index);

/* Prepares the context for a call of the system. `call_index` identifies the call's command stream. */
void quern__pass_enter_call(quern_context *context, const quern__system *system, uint32_t call_index);

/* Calls the function on a view of rows outside of chunks: copies of removed rows, or copied handles.
 * is_reported: the call is reported to the observer. */
void quern__pass_call_view(quern_context *context, quern_view_callback *run, const quern_view *view,
                           bool is_reported);

/* Calls the function on a view of rows of a chunk. is_reported: the call is reported to the observer. */
void quern__pass_call_rows(quern_context *context, const quern__archetype *archetype,
                           quern_view_callback *run, const quern_view *view, bool is_reported);

/* Announces a sequence of reported calls to the observer. */
void quern__pass_begin_calls(const quern_context *context);

/* Runs a job of a stage in the ranges into which the observer divides it. Only observers call this, so that a library
 * without them does not contain it. */
void quern__pass_run_observed(const quern__pass_stage *stage, uint32_t begin, uint32_t end,
                              quern_context *context);

/* Runs items of a stage of reactions. In a serial pass, the range counts blocks of copies, or chunks. */
void quern__pass_run_reactions(const quern__pass_stage *stage, uint32_t begin, uint32_t end,
                               quern_context *context, bool is_reported);

/* ------------------------------------------------------------------------------------------- prefetching */

/* Prefetching: while a pass works on one chunk, it fetches the next chunk into the L2 cache, a share of it
 * before each call, if it begins a run: hardware prefetchers cannot follow from one run to the next. Fetching a whole
 * chunk at once would stall on the fetches themselves. */

typedef struct quern__prefetch {
    const quern__pass_column *column, *end_column;
    quern__run_place place;
    uint32_t row_count;
    uint32_t offset_bytes;      /* position in the current column */
    uint32_t fetch_limit_bytes; /* most bytes to prefetch of each column */
    uint32_t fetch_share_bytes; /* number of bytes to prefetch before each call */
    bool fetches_ends;          /* prefetch both ends of each column instead */
} quern__prefetch;

#endif
