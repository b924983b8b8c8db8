/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHEDULE_H
#define QUERN_SCHEDULE_H

/** @file
 * Systems, and the schedule that runs them over a world, frame after frame.
 *
 * A frame has the same result as running every system one after another on one thread: phase by phase, in
 * the order of before/after and registration. Systems run in parallel only if their declared accesses do
 * not conflict. Each phase ends with a sync point, which applies the commands of the phase.
 *
 * Systems that share data only within the rows of their views are *fused* into one pass: a job takes one
 * chunk and calls all of these systems on it, in order, while the chunk is in the cache. Fusing changes
 * nothing else; docs/passes.md lists what prevents it.
 *
 * Threads: main, between frames, unless a comment says otherwise. */

#include <quern/base.h>
#include <quern/commands.h>
#include <quern/component.h>
#include <quern/context.h>
#include <quern/event.h>
#include <quern/id.h>
#include <quern/jobs.h>
#include <quern/query.h>
#include <quern/sink.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_SYSTEMS \
    65535 /**< Maximum number of systems per schedule, and of names of its systems ever. */
#define QUERN_MAX_PHASES        32   /**< Maximum number of phases per schedule. */
#define QUERN_MAX_SCHEDULE_SETS 1024 /**< Maximum number of sets per schedule. */
/** Maximum length of each list of lookups, write lookups, relations, resources and events of a system. */
#define QUERN_MAX_ACCESS        32
#define QUERN_ORDER_PIECE_ROWS \
    256 /**< Rows of a piece of a system's order; the last piece may have fewer. */
#define QUERN_MAX_SYSTEM_QUERIES 4 /**< Maximum number of further queries of a system. */
#define QUERN_MAX_SYSTEM_INDEXES 4 /**< Maximum number of indexes of a system. */
#define QUERN_MAX_ORDER          32 /**< Maximum number of names in `before` and in `after` of a system or a set. */
#define QUERN_MAX_SETS           8 /**< Maximum number of sets that a system is in. */
#define QUERN_MAX_CHANGED        8 /**< Maximum number of resources in `if_changed` of a system. */
/** Maximum number of frames from one run to the next of a system with `every`. */
#define QUERN_MAX_EVERY          65536

/** Default maximum number of rounds of reactions after a sync point. */
#define QUERN_DEFAULT_REACTION_ROUNDS 8

/** Systems in phases, compiled to run over one world. */
typedef struct quern_schedule quern_schedule;

/* ---------------------------------------------------------------------------------------- systems */

/** A callback that is called once per run of the system: `begin` before its first view, `end` after its
 * last one. Commands and events of a run are ordered by callback: the condition, begin, the views by
 * ordinal, end. */
typedef void quern_system_callback(quern_context *context);

/** A callback that returns whether the system runs in this frame. It is called before begin, if the system
 * is enabled and its interval has passed. quern_context_delta_seconds returns the time step that the run
 * would have. The callback may use what the system declares; its commands and events are kept whatever it
 * returns. If it returns false, no other callback of the system is called, events continue to wait, and an
 * elapsed interval stays due: the condition is called again in the next frame. */
typedef bool quern_system_condition(quern_context *context);

/** How a system runs. Combine flags with |. */
typedef enum quern_system_flags {
    QUERN_SYSTEM_DEFAULT = 0, /**< Views are processed on any worker, several at the same time. */
    /** The views are processed one after another, in order, in one job. Writing a resource with QUERN_ACCESS_WRITE
     * implies this flag, and so do write_lookups and queries that write. */
    QUERN_SYSTEM_SERIAL = 1,
    /** Serial, and all callbacks run on the thread that called quern_schedule_run, as windows and GPUs
     * require. This flag does not order such systems among each other. If their effects outside of the
     * world need an order, declare a resource for those effects in each system with QUERN_ACCESS_WRITE; the
     * systems then run in the order of registration. */
    QUERN_SYSTEM_MAIN_THREAD = 2,
    /** The system runs on the main thread, and nothing else runs meanwhile. quern_context_world lets it
     * change the world immediately. It has no terms, unless it is a reaction.
     *
     * A sync point precedes the system and applies the commands and publishes the events recorded so far
     * in the phase. That sync point is made in every frame, even if the system is disabled or skipped.
     * What other systems see therefore does not depend on whether it runs. No sync point follows the
     * system. Its commands are applied, and its events become readable, at the next sync point: that of
     * the next exclusive system, or of the end of the phase. quern_world_emit publishes immediately. */
    QUERN_SYSTEM_EXCLUSIVE = 4,
    /** A chunk from which terms leave rows out yields one view with all its rows, in which
     * quern_view_next_range returns the selected ranges. Without this flag, it yields one view per range. */
    QUERN_SYSTEM_WHOLE_CHUNKS = 8
} quern_system_flags;

/** A resource that a system uses, and how. */
typedef struct quern_resource_access {
    quern_resource resource; /**< The resource. Required. */
    quern_access access;     /**< QUERN_ACCESS_READ, QUERN_ACCESS_WRITE or QUERN_ACCESS_WRITE_CONCURRENT. */
} quern_resource_access;

/** A component that a system looks up by handle, and optional limits on the entities.
 *
 * Give each lookup its own braces: `.lookups = {{.component = health}, {position, .with = turret}}`.
 * Without them, `{health, position}` is one lookup of health, limited to entities with position. */
typedef struct quern_lookup {
    quern_component component QUERN__ZERO; /**< The component. Required. */
    /** The lookup finds only entities that also have this component. Null: no limit. */
    quern_component with QUERN__ZERO;
    /** The lookup finds only entities that lack this component. Null: no limit. */
    quern_component without QUERN__ZERO;
} quern_lookup;

/** Definition of a system. */
typedef struct quern_system_def {
    const char *name QUERN__ZERO; /**< Name of 1 to QUERN_MAX_NAME_BYTES bytes, unique in the schedule. */
    uint32_t phase QUERN__ZERO;   /**< Index of the system's phase in the schedule's phases. */
    /** The system function. It is called once per view; a system with neither terms nor items is called
     * once, with an empty view. May be NULL if there are neither terms nor items, and begin or end is set.
     */
    quern_view_callback *run QUERN__ZERO;
    quern_system_callback *begin QUERN__ZERO; /**< Called before the first view. May be NULL. */
    quern_system_callback *end QUERN__ZERO;   /**< Called after the last view. May be NULL. */
    /** Called to decide whether the system runs in a frame. NULL: it always runs. */
    quern_system_condition *condition QUERN__ZERO;
    /** Seconds from one run to the next. Finite and at least 0; 0 means every frame.
     *
     * The system is due each time the sum of the frames' delta_seconds reaches a multiple of the interval,
     * and runs in the first frame at or after that. One run covers all multiples reached so far: after a
     * frame that is three intervals long, the system runs once, and the next multiple stays where it was.
     * quern_context_delta_seconds returns the whole time since the last run. If the condition returns
     * false, the system stays due. In a phase with a fixed step, steps count instead of frames. Frames in
     * which the system is disabled do not count, neither for the interval nor for delta_seconds. */
    double interval_seconds QUERN__ZERO;
    /** The system runs in one of this many frames; 0 means every frame. At most QUERN_MAX_EVERY. It takes turns with the
     * other systems that have `every`: see offset. In a phase with a fixed step, steps count instead of frames, from the
     * first step of the phase. quern_context_delta_seconds returns the whole time since the last run. If the condition
     * returns false, the system waits for its next turn. Frames in which the system is disabled do not count for
     * delta_seconds. Not together with interval_seconds. */
    uint32_t every QUERN__ZERO;
    /** The frame of `every` in which the system runs, from 1: with `every` 4, an offset of 2 means frames 1, 5, 9. 0 means
     * that the schedule chooses it, so that systems fall into the same frame as rarely as possible. The choice depends on
     * `every` and `offset` of the systems in the order of registration alone: a history or an archive that is restored
     * goes on in the same turns. */
    uint32_t offset QUERN__ZERO;
    /** The terms that select the rows and columns of its views. */
    quern_term terms[QUERN_MAX_TERMS] QUERN__ZERO;
    /** The order of the rows, as that of a query (quern_query_def.order_by); all zero: by archetype, chunk and row. Views are
     * ranges of rows that follow each other in a chunk and in the order, mostly of one row. Pieces of the order, of
     * QUERN_ORDER_PIECE_ROWS rows each, are processed in parallel if the terms only read; the system is QUERN_SYSTEM_SERIAL if
     * one writes. The views of a piece share one ordinal, the number of the piece; one partial result; and one place in the
     * order of commands and events. So partial results and commands are in the order of the rows.
     *
     * Rows are sorted before the condition and `begin`, on one thread, if something has changed. The system shares no pass, so
     * other systems run before or after all of it, or beside it. Not for reactions, not together with levels, and not with
     * QUERN_SYSTEM_WHOLE_CHUNKS, change filters or a target term. */
    quern_order order_by QUERN__ZERO;
    /** Components that the system reads of any entity, by handle, with quern_context_lookup and
     * quern_context_lookup_many, or checks for with quern_context_has (also for tags). List each once. The
     * list ends at its first zero element, so register components first: a component that was not
     * registered looks like the end of the list, and lookups of it are refused at run time.
     *
     * A lookup orders the system against all systems with views that write the component. A limited lookup
     * (with, without) finds only entities within its limits, and conflicts only with systems that write
     * the component in archetypes within these limits. A system may look up a component that its own views
     * write only if its terms and the limits exclude each other (quern_term_without and `with`, or the
     * reverse), or if it is serial. */
    quern_lookup lookups[QUERN_MAX_ACCESS] QUERN__ZERO;
    /** Components that the system writes of any entity, by handle, with quern_context_lookup_write. It may
     * read them, too, so list a component either here or in lookups. Limits work as in lookups. A write
     * lookup implies QUERN_SYSTEM_SERIAL, and conflicts with every system with views or lookups that
     * access the component, if both can reach the same entity. Tags and components that Quern maintains
     * itself, such as relations, are not allowed. For change filters, each quern_context_lookup_write is a
     * change. */
    quern_lookup write_lookups[QUERN_MAX_ACCESS] QUERN__ZERO;
    /** Further queries, besides the terms: the callbacks iterate them with quern_context_query. So a system processes its
     * own rows and reads those of other entities, for example each ghost for each player:
     *
     *     .terms = {quern_term_write(score), quern_term_read(place), quern_term_with(player)},
     *     .queries = {{.terms = {quern_term_read(place), quern_term_with(ghost)}}},
     *
     * The list ends at the first query without members. Terms, names, whole_chunks and order_by are those of quern_query_def.
     * A query with order_by is sorted before the condition and `begin` of the system, if it may run in the frame and
     * something has changed; all callbacks iterate it in that order, which the writes of the system itself do not change.
     * Change filters select what has changed since the last frame in which the system ran, as those of the terms do: with or
     * without a view, but not while it is disabled or its condition is false. At most one of the terms and queries together
     * has a target term.
     *
     * A query that only reads keeps the system parallel. What it reads, also by up-terms, orders the system against all
     * systems that write the component in an archetype that the query matches, like a lookup: they never run at the same
     * time, and share no pass. A query with QUERN_ACCESS_WRITE implies QUERN_SYSTEM_SERIAL: the views of the system are
     * processed one after another, in order, so that what one callback writes, the next one sees.
     *
     * A system may read by a query a component that its own terms write only if their terms exclude each other (one
     * requires a component by QUERN_MATCH_ALL that the other excludes by quern_term_without), or if it is serial. Otherwise
     * quern_schedule_add_system fails with SCHEDULE_CONFLICT. Not for exclusive systems, which iterate queries of the
     * world. */
    quern_query_def queries[QUERN_MAX_SYSTEM_QUERIES] QUERN__ZERO;
    /** Indexes (<quern/index.h>) that the callbacks ask with quern_context_find; each once. The list ends at the first NULL.
     * They are brought up to date before the condition and `begin` of the system, if it may run in the frame. An index is a
     * lookup of its component (quern_lookup) without limits, with the same conflicts: the system runs after all earlier
     * systems that write the component and before all later ones, and must be serial to write it itself. It may look the
     * component up, too. Not for exclusive systems, which use quern_index_find. */
    struct quern_index *indexes[QUERN_MAX_SYSTEM_INDEXES] QUERN__ZERO;
    /** Relations that the system queries with quern_context_target, quern_context_first_source,
     * quern_context_next_sibling and quern_context_source_count. List each once; the list ends at its first
     * null element. Links change only at sync points and in exclusive systems, so these queries conflict
     * with nothing. */
    quern_relation relations[QUERN_MAX_ACCESS] QUERN__ZERO;
    /** Resources that the system uses; each once. */
    quern_resource_access resources[QUERN_MAX_ACCESS] QUERN__ZERO;
    /** Events that the system emits (<quern/event.h>); each once. Emitting and reading events conflict with
     * nothing: an emitted event is readable from the next sync point on. */
    quern_event emits[QUERN_MAX_ACCESS] QUERN__ZERO;
    /** Events that the system reads with quern_context_events; each once. While the system is disabled or
     * skipped, events wait for it, up to their limit. */
    quern_event reads_events[QUERN_MAX_ACCESS] QUERN__ZERO;
    /** An event to process: its blocks are the system's views. `run` is called, in parallel, with all
     * events that the system has not seen yet, and reads them with QUERN_EVENTS. Such views have no
     * entities, and the system has no terms. The event counts as one of reads_events and must not be
     * listed there. Not for exclusive systems. */
    quern_event items QUERN__ZERO;
    /** Resources whose value decides whether the system runs: only in frames in which one of them differs from its value when the
     * system last ran, and in the first one. It is asked after the interval and the sets, and before the condition, which
     * leaves the change due if it returns false. All writes count, also those of the system itself. The described fields
     * are compared by a hash of 63 bits, or all bytes if there are none, so each of these frames costs a pass over the values.
     * Each resource is declared with QUERN_ACCESS_READ, unless `resources` has it. Not for reactions, and not for resources
     * with hooks but no described field: what such values own cannot be compared. */
    quern_resource if_changed[QUERN_MAX_CHANGED] QUERN__ZERO;
    /** Names of the sets that the system is in (quern_schedule_add_set), each once. */
    const char *sets[QUERN_MAX_SETS] QUERN__ZERO;
    /** Names of systems of the same phase that run after this one, or of sets (quern_set_def).
     *
     * Normally the whole earlier system runs before any part of the later one. The order holds chunk by
     * chunk instead, like the order of registration, if three conditions are met: the terms of both
     * systems share a component that one of them writes, the earlier system has no end callback, and the
     * later has neither begin nor condition. */
    const char *before[QUERN_MAX_ORDER] QUERN__ZERO;
    /** Names of systems of the same phase, or of sets, that run before this one, in the same sense as `before`. */
    const char *after[QUERN_MAX_ORDER] QUERN__ZERO;
    /** Names of systems of the same phase, or of sets, that run before this one and whose commands and events this one
     * sees: a sync point is between them. The schedule makes as few sync points for that as its order of systems allows,
     * and counts those before exclusive systems; quern_schedule_describe names each with its reason. They are made in every
     * frame, whether the systems run or not, and reactions run after them as after any other. Not for reactions. */
    const char *after_commands_of[QUERN_MAX_ORDER] QUERN__ZERO;
    /** Makes the system a *reaction* to QUERN_REACT_ADDED, QUERN_REACT_SET and QUERN_REACT_REMOVED, combined with |.
     * A reaction does not run as part of its phase. It runs after each sync point at which one of these
     * happened, and its views contain only the rows to which it happened. See docs/reactions.md.
     *
     *   - ADDED: rows that match the terms now, and did not before.
     *   - SET: rows that match as before, and to which a command or call assigned a value of a component
     *     that a term reads or writes. What systems write through views does not count. A row that is both
     *     ADDED and SET is in one view only, as ADDED, if the system reacts to ADDED.
     *   - REMOVED: entities that matched before and no longer do, because they changed or were destroyed.
     *     These views precede the others. They contain copies of the values that terms read or write, to
     *     read only, and handles that may be stale.
     *   - With QUERN_REACT_PRESENT, rows that match when the system is added count as added.
     *
     * The rows of a chunk may form several views, which share one ordinal, one partial result and one
     * command stream. The condition, begin and end are called once per round in which the system has views.
     *
     * A reaction needs terms, and none of them may be a change filter, a target term or a required up-term
     * (quern_term_up, quern_term_up_nearest): what happens to the target of a row does not happen to the row.
     * With REMOVED, no term may be an up-term. It has no interval and no levels. before and after name other
     * reactions of the phase; reactions of earlier phases run first. An exclusive reaction may have terms: its views
     * then have handles only, and in REMOVED views also the copies. */
    uint32_t reacts_to QUERN__ZERO;
    /** A relation with levels; the system then processes its views level by level. All views of entities
     * without a target are processed before the views of their sources, and so on, at any number of
     * threads. So the system may write the component that it reads from the targets in this relation
     * (quern_term_up and its variants), which no other system may. Views of one level are processed in
     * parallel.
     *
     * The deepest level, QUERN_MAX_RELATION_LEVEL, is processed serially, in the order of true depth: a
     * view then has consecutive rows of one depth, often a single row. Null: no order. Needs terms; not for
     * exclusive systems. */
    quern_relation levels QUERN__ZERO;
    uint32_t flags QUERN__ZERO; /**< A combination of quern_system_flags. */
    /** Size of each view's partial result in bytes, zeroed before the frame; see quern_context_partial. */
    uint32_t partial_bytes QUERN__ZERO;
    /** A pointer for the program's use, returned by quern_context_user_data. NULL: that of the phase, or of
     * the schedule. */
    void *user_data QUERN__ZERO;
} quern_system_def;

/* --------------------------------------------------------------------------------------- schedule */

/** How much of the next chunk a worker prefetches while it processes the current one. */
typedef enum quern_prefetch {
    /** A choice by the bytes that the pass touches and the cache sizes of the machine. */
    QUERN_PREFETCH_AUTOMATIC,
    QUERN_PREFETCH_NOTHING, /**< Nothing; only the hardware prefetcher works. */
    /** The first 1024 bytes of each column; if only one system of the pass matches the chunk, 128 bytes at
     * both ends of each column, where a run of chunks begins. */
    QUERN_PREFETCH_HEADS,
    /** All values that the pass touches; if only one system of the pass matches the chunk, as with
     * QUERN_PREFETCH_HEADS. */
    QUERN_PREFETCH_CHUNKS
} quern_prefetch;

/** Definition of a schedule. */
typedef struct quern_schedule_def {
    /** Name for tools, 1 to QUERN_MAX_NAME_BYTES bytes; NULL for none. It is copied, and several schedules may have the
     * same name. */
    const char *name QUERN__ZERO;
    /** Names of the phases, in order, without duplicates. An empty list means one phase, "update". */
    const char *phases[QUERN_MAX_PHASES] QUERN__ZERO;
    /** Whether before and after in a phase, by its index in phases, also mean a sync point between the systems, like
     * after_commands_of: each system then sees the commands of those that are ordered before it. */
    bool syncs_between[QUERN_MAX_PHASES] QUERN__ZERO;
    /** Whether to measure each system's time, with two clock readings per view. */
    bool timing QUERN__ZERO;
    /** A trace that records frames, jobs with their systems, and sync points while it is running, on track
     * i for worker i. No other schedule may use it at the same time, and it must outlive this one. May be
     * NULL. See <quern/profile.h>. */
    struct quern_trace *trace QUERN__ZERO;
    /** Whether to run each system in a pass of its own. For comparisons: results do not change. */
    bool disable_fusing QUERN__ZERO;
    /** How far passes prefetch. For comparisons: results do not change. */
    quern_prefetch prefetch QUERN__ZERO;
    /** Maximum number of rounds of reactions after a sync point; 0 means QUERN_DEFAULT_REACTION_ROUNDS. The
     * commands of one round are applied at its end and may cause another round. If changes are left after
     * the last round, they are dropped, and the frame returns LIMIT. */
    uint32_t max_reaction_rounds QUERN__ZERO;
    /** For tests. If not 0, work without a defined order runs in a random order derived from this seed. The
     * result of a frame must not change; if it does, a system accesses something that it has not declared.
     */
    uint64_t shuffle_seed QUERN__ZERO;
    /** A pointer for the program's use: the user_data of systems that have none of their own. */
    void *user_data QUERN__ZERO;
    /** The same for the systems of one phase, by its index in phases; NULL: that of the schedule. */
    void *phase_user_data[QUERN_MAX_PHASES] QUERN__ZERO;
} quern_schedule_def;

/** Creates a schedule. def may be NULL for the defaults. The world must outlive the schedule. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT (the name, a phase name, prefetch), DUPLICATE_NAME (of phases),
 * WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_create(quern_world *world, const quern_schedule_def *def,
                                             quern_schedule **out_schedule);

/** Destroys a schedule. The call is refused, with a message in the log, while a history saves the schedule,
 * a user of the world refers to it (quern_world_add_user), or a frame is running on its world. NULL is allowed.
 * Threads: main, between frames. */
QUERN_API void quern_schedule_destroy(quern_schedule *schedule);

/** Adds a system at the end of the registration order. out_system may be NULL. Errors: NULL_ARGUMENT (also
 * if the callbacks that the definition needs are NULL), INVALID_ARGUMENT, UNKNOWN_COMPONENT,
 * UNKNOWN_RESOURCE, UNKNOWN_EVENT, DUPLICATE_COMPONENT, DUPLICATE_NAME, LIMIT (QUERN_MAX_SYSTEMS, also of names that removed systems had),
 * SCHEDULE_CONFLICT (the system looks up, or reads through an up-term or a further query, what its own parallel views write),
 * STALE_ENTITY, FOREIGN_ENTITY and PROVISIONAL_ENTITY (the target of a target term), WORLD_LOCKED,
 * OUT_OF_MEMORY. A reaction to REMOVED also fails with INVALID_ARGUMENT if it reads a component with a
 * destroy hook and no copy hook. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_add_system(quern_schedule *schedule, const quern_system_def *def,
                                                 quern_system *out_system);

/** Removes a system between frames. All that it owned goes: its place in the order, its reading position in events, what
 * its change filters have seen, its times, its part of the profile, and what is pending for it if it is a reaction. The
 * other systems go on unchanged. Commands and events that a failed frame kept are applied and published by the next one.
 *
 * The library keeps no address that came with the definition: callbacks and user_data are gone when the call returns. It
 * keeps the system's name, as a copy: names in reports of the last frame remain valid. Handles of the system are refused
 * from now on. The name may be added again, at the end of the registration order and as a new system. Systems whose
 * before or after names the removed system are refused as if it had never been added: quern_schedule_compile and the
 * next frame fail with UNKNOWN_SYSTEM until it is added or they are replaced.
 *
 * The call needs no memory. Errors, with nothing changed: NULL_ARGUMENT, INVALID_ARGUMENT (unknown or removed system),
 * WORLD_LOCKED (a frame is running). Threads: main, between frames. */
QUERN_API quern_result quern_schedule_remove_system(quern_schedule *schedule, quern_system system);

/** Replaces a system by another definition between frames: other callbacks, terms, phase, order or flags. The name stays;
 * the definition may leave it out, and must not give another one. Kept are:
 *
 *   - the handle, the name, the place in the order of registration, and whether the system is enabled;
 *   - what its change filters have seen, if it had any: what changed since the last run is still to be shown;
 *   - what if_changed has seen, if both definitions list the same resources. Otherwise it is as in a new system;
 *   - the times of interval_seconds, and the time since the last run;
 *   - the reading position in each event that both definitions read;
 *   - the target of its target term, unless the new definition has one;
 *   - what waits for a reaction: all of it, if kinds and terms are the same. Otherwise rows that both definitions match
 *     and that are pending as ADDED or SET; copies of removed rows and old values are dropped, and so is SET if the new
 *     definition has old terms. With PRESENT, rows that the replaced reaction did not match count as added, unless the
 *     system is disabled;
 *   - its statistics of the last frame, and its part of the profile.
 *
 * Everything else is that of the new definition, also user_data. As with quern_schedule_remove_system, no address of the
 * old definition remains. Errors, with nothing changed: those of quern_schedule_add_system except LIMIT and
 * DUPLICATE_NAME, and INVALID_ARGUMENT (unknown or removed system; the definition has another name). Threads: main,
 * between frames. */
QUERN_API quern_result quern_schedule_replace_system(quern_schedule *schedule, quern_system system,
                                                     const quern_system_def *def);

/** Moves a system in the order of registration: directly behind another one, or to the beginning if `previous` is null.
 * Systems that conflict run in this order unless before and after say otherwise. Errors: NULL_ARGUMENT, INVALID_ARGUMENT
 * (unknown or removed system; a system behind itself), WORLD_LOCKED. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_move_system(quern_schedule *schedule, quern_system system,
                                                  quern_system previous);

/** Returns the system before a system in the order of registration; null if it is the first one, and, with a message, if
 * the call is wrong. Threads: any, while no thread modifies the schedule. */
QUERN_API quern_system quern_schedule_previous_system(const quern_schedule *schedule, quern_system system);

/** Replaces the list of phases between frames: adds, removes and reorders phases. Phases are known by name: those that stay
 * keep their systems, fixed step, remainder, syncs_between and user data, and get their new index, which later definitions
 * use. New phases get the user_data of the schedule. A phase that has systems cannot be left out.
 *
 * The call needs no memory. Errors, with nothing changed: NULL_ARGUMENT, INVALID_ARGUMENT (a name, or a phase with systems
 * is missing), DUPLICATE_NAME, LIMIT (count is not 1 to QUERN_MAX_PHASES), WORLD_LOCKED. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_set_phases(quern_schedule *schedule, const char *const *names,
                                                 uint32_t count);

/** Definition of a set of systems: an order, a condition and a switch for all of them. A set may have systems of several
 * phases, and a system may be in several sets. */
typedef struct quern_set_def {
    const char *name
        QUERN__ZERO; /**< Name of 1 to QUERN_MAX_NAME_BYTES bytes; no system or other set has it. */
    /** Names of systems and sets that run after the systems of this set. For each pair of systems of one phase this is a
     * rule as by `before` of a system; a pair of different phases must agree with the order of the phases. Pairs of a
     * reaction and another system are left out. */
    const char *before[QUERN_MAX_ORDER] QUERN__ZERO;
    /** Names of systems and sets that run before the systems of this set. */
    const char *after[QUERN_MAX_ORDER] QUERN__ZERO;
    /** Names of systems and sets that run before the systems of this set, with a sync point between, as by
     * `after_commands_of` of a system. */
    const char *after_commands_of[QUERN_MAX_ORDER] QUERN__ZERO;
    /** Called once before each phase that has systems of the set, or before each step of it, on the thread that runs the
     * frame. If it returns false, these systems do not run in the phase, as if their own conditions had returned false.
     * It may read `resources`, and records nothing. NULL: they run. A set with reactions has no condition. */
    quern_system_condition *condition QUERN__ZERO;
    /** Resources that the condition reads, with QUERN_ACCESS_READ. */
    quern_resource_access resources[QUERN_MAX_ACCESS] QUERN__ZERO;
    void *user_data
        QUERN__ZERO; /**< Returned by quern_context_user_data in the condition; NULL: that of the schedule. */
} quern_set_def;

/** Adds a set. Systems name it in their definitions, before or after it is added; a system whose set is missing is refused
 * by quern_schedule_compile and frames, with UNKNOWN_SYSTEM. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, UNKNOWN_RESOURCE,
 * DUPLICATE_NAME (of a set or a system), LIMIT (QUERN_MAX_SCHEDULE_SETS), WORLD_LOCKED, OUT_OF_MEMORY. Threads: main,
 * between frames. */
QUERN_API quern_result quern_schedule_add_set(quern_schedule *schedule, const quern_set_def *def);

/** Replaces the set with the name of the definition. Its systems stay, and so does whether it is enabled. Errors: those of
 * quern_schedule_add_set, and INVALID_ARGUMENT (no such set). Threads: main, between frames. */
QUERN_API quern_result quern_schedule_replace_set(quern_schedule *schedule, const quern_set_def *def);

/** Removes a set. Systems and rules that name it are then refused as if it had never been added. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT (no such set), WORLD_LOCKED. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_remove_set(quern_schedule *schedule, const char *name);

/** Enables or disables all systems of a set, also those that are added later. A system runs if it is enabled and all its
 * sets are; quern_schedule_set_system_enabled switches only the system. Sets are enabled when they are added. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT (no such set), WORLD_LOCKED. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_enable_set(quern_schedule *schedule, const char *name, bool enabled);

/** Returns whether a set is enabled. False, with a message, if the schedule is NULL or does not have the set. Threads: any,
 * while no thread modifies the schedule. */
QUERN_API bool quern_schedule_is_set_enabled(const quern_schedule *schedule, const char *name);

/** Stores the names of up to `capacity` sets, in the order in which they were added, and returns how many there are. The
 * names belong to the sets. out_names may be NULL if capacity is 0. Returns 0, with a message, if the call is wrong.
 * Threads: any, while no thread modifies the schedule. */
QUERN_API uint32_t quern_schedule_list_sets(const quern_schedule *schedule, const char **out_names,
                                            uint32_t capacity);

/** Enables or disables a system. Frames skip a disabled system, and their time does not count for its
 * interval. Events wait for it. A disabled reaction misses what happens meanwhile; disabling it also discards
 * what it has not been shown yet. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (unknown system), WORLD_LOCKED (the
 * schedule is running a frame; for a reaction also: another schedule of the world is). Threads: main, between
 * frames. */
QUERN_API quern_result quern_schedule_set_system_enabled(quern_schedule *schedule, quern_system system,
                                                         bool enabled);

/** Returns whether a system is enabled, whatever its sets are; systems are enabled when they are added. False, with a message, if
 * the schedule is NULL or does not have the system. Threads: any, while no thread modifies the schedule. */
QUERN_API bool quern_schedule_is_system_enabled(const quern_schedule *schedule, quern_system system);

/** Sets the target of a system's target term (quern_term_target), which may be one of a further query. With a null target, no
 * row matches.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT (unknown system, or the system has no target term), STALE_ENTITY,
 * FOREIGN_ENTITY, PROVISIONAL_ENTITY, WORLD_LOCKED. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_set_target(quern_schedule *schedule, quern_system system,
                                                 quern_entity target);

/** Sets a fixed time step for a phase. Each frame then runs the phase, sync point included, once per whole
 * step of step_seconds in the elapsed time. The remainder, less than a step, is carried to the next frame.
 *
 * At most max_step_count steps run per frame. Whole steps beyond that are dropped, but the remainder is
 * kept, so that steps stay aligned. quern_context_delta_seconds returns step_seconds in the systems of the
 * phase. step_seconds must be finite and at least 0; 0 restores one run per frame and drops the remainder.
 * Another step length keeps the remainder, so the call may be repeated each frame. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT (phase, step_seconds, or max_step_count 0 with a step), WORLD_LOCKED. Threads: main,
 * between frames. */
QUERN_API quern_result quern_schedule_set_fixed_step(quern_schedule *schedule, uint32_t phase,
                                                     double step_seconds, uint32_t max_step_count);

/** Returns the system with the given name, or null if there is none. Threads: main. */
QUERN_API quern_system quern_schedule_find_system(const quern_schedule *schedule, const char *name);

/** Orders the systems and finds their conflicts now, instead of at the start of the next
 * quern_schedule_run. Errors: NULL_ARGUMENT, UNKNOWN_SYSTEM (in before or after), SCHEDULE_CONFLICT (a
 * cycle; the message names its systems), LIMIT (rules between sets order more than 2^26 pairs of systems), WORLD_LOCKED,
 * OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_compile(quern_schedule *schedule);

/** Runs one frame on the world, with the threads of `jobs`, or on the calling thread only if `jobs` is
 * NULL. The frame's time step is delta_seconds, finite and at least 0. The result is the same for every
 * number of threads.
 *
 * Frames of other worlds may run on the same pool at the same time: from several threads, if the pool
 * admits that many external threads (external_thread_count in quern_jobs_def), and from inside jobs. A thread that
 * runs one frame does not help with the others.
 *
 * A world runs one frame at a time. While a frame runs, a call on another thread, with any schedule of the
 * world, fails with WORLD_LOCKED. The message names both calls and is logged as an error; in a build with
 * QUERN_CHECKS it also goes to the assert handler, like calls on other threads that change the world. A
 * callback of the frame that calls quern_schedule_run gets WORLD_LOCKED without a report. Exclusive systems
 * may run frames of other schedules, also inside jobs, one at a time. These frames must end before the
 * system returns; otherwise the system's own frame ends there with WORLD_LOCKED and a report.
 *
 * Errors before the first system, with the world unchanged: NULL_ARGUMENT, INVALID_ARGUMENT
 * (delta_seconds), WORLD_LOCKED (a frame of the world is running), POOL_BUSY, THREAD_UNAVAILABLE, those of
 * quern_schedule_compile, OUT_OF_MEMORY.
 *
 * Errors that end the frame at a sync point: OUT_OF_MEMORY, LIMIT (number of entities). The world is as it
 * was before the sync point, and later systems do not run. Commands and events are kept. The next frame
 * retries them before its first system, at a sync point of their own, and ends there if that fails again.
 * quern_schedule_discard_commands drops them. If memory is exhausted after a sync point, the frame ends
 * after it.
 *
 * Errors that end the frame after a group of systems between two sync points: OUT_OF_MEMORY and INVALID_ARGUMENT, if the
 * indexes or ordered queries of a system could not be brought up to date. The system was not called, the others were.
 * INVALID_ARGUMENT: the component was redefined without the field.
 *
 * Errors after the whole frame has run:
 *   - OUT_OF_MEMORY: a command could not be recorded, or an event could not be emitted.
 *   - TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT: the commands on one entity add up to more than an
 *     entity can have. Its commands were dropped, and a new entity was not created.
 *   - LIMIT: reactions caused each other for more than max_reaction_rounds rounds, or events were dropped
 *     for a reader that had not seen them (quern_event_def).
 *   - UNDECLARED_ACCESS: a call of a system was refused (see the log).
 *
 * Threads: main. */
QUERN_API quern_result quern_schedule_run(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds);

/** Runs the reactions of all schedules of the world to changes made between frames, as the next frame
 * would before its first system. Schedules run in the order of their creation, in rounds, until nothing is
 * left to react to. Uses the threads of `jobs`, or the calling thread only if `jobs` is NULL. If nothing
 * happened, the call costs a check only.
 *
 * The work is added to the statistics of the schedules' last frames; profiles, traces and captures do not
 * contain it. The time step is 0. Errors: NULL_ARGUMENT, WORLD_LOCKED (a frame of the world is running;
 * see quern_schedule_run), POOL_BUSY, THREAD_UNAVAILABLE, those of quern_schedule_run at sync points. Also LIMIT if
 * reactions of several schedules cause each other for more rounds than any of the schedules allows.
 * Threads: main, between frames. */
QUERN_API quern_result quern_world_react(quern_world *world, quern_jobs *jobs);

/* ------------------------------------------------------------------------------------- what it did */

/** Statistics of the last frame. */
typedef struct quern_frame_stats {
    uint64_t frame_index; /**< Number of the frame, from 0. */
    uint64_t time_ns;     /**< Duration of quern_schedule_run. */
    uint64_t sync_ns;     /**< Part of time_ns spent at sync points. */
    /** Commands applied or dropped. Creating an entity with n components counts as 1 + n. */
    uint64_t command_count;
    /** Commands dropped because their entity had been destroyed, or because they exceeded a limit. */
    uint64_t dropped_count;
    /** Entities created by commands. Includes those that were rejected and destroyed again. */
    uint64_t created_count;
    uint64_t destroyed_count; /**< Entities destroyed by commands. */
    uint64_t event_count;     /**< Published events of the schedule's systems. */
    /** Failed calls of <quern/commands.h> in callbacks, which recorded nothing, except for lack of memory. */
    uint64_t failed_command_count;
} quern_frame_stats;

/** Returns the statistics of the last frame; all 0 before the first frame. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_schedule_get_frame_stats(const quern_schedule *schedule,
                                                      quern_frame_stats *out_stats);

/** Commands of one system that the last frame dropped for one reason. */
typedef struct quern_dropped_command {
    quern_system system;      /**< The system that recorded the commands; null if it was removed since. */
    const char *system_name;  /**< The system's name. Valid as long as the schedule. */
    quern_drop_reason reason; /**< The reason why they were dropped. */
    /** Number of dropped commands. The sum over all entries is dropped_count of quern_frame_stats. */
    uint64_t count;
    /** Entity of the first dropped command; provisional if it was created at the same sync point. */
    quern_entity first;
} quern_dropped_command;

/** Returns the number of entries in the report of dropped commands: one per pair of system and reason. 0,
 * with a message, if schedule is NULL. */
QUERN_API uint32_t quern_schedule_dropped_command_count(const quern_schedule *schedule);

/** Returns entry i of the report, from 0. Entries are ordered by sync point and first dropped command.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT (i). */
QUERN_API quern_result quern_schedule_get_dropped_command(const quern_schedule *schedule, uint32_t i,
                                                          quern_dropped_command *out_drop);

/* ------------------------------------------------------------------------------------ command logs */

/** Maximum number of commands that a log keeps. */
#define QUERN_MAX_LOGGED_COMMANDS (1u << 24)
/** Number of sync points of a frame that a log keeps. */
#define QUERN_MAX_LOGGED_SYNCS    256

/** What a command does. */
typedef enum quern_command_kind {
    QUERN_COMMAND_CREATE,         /**< Create an entity. */
    QUERN_COMMAND_SPAWN,          /**< Spawn an instance of a prefab; the entity is its root. */
    QUERN_COMMAND_CLONE,          /**< Copy `other`; the entity is the copy. */
    QUERN_COMMAND_DESTROY,        /**< Destroy the entity. */
    QUERN_COMMAND_ADD,            /**< Add a component without a value. */
    QUERN_COMMAND_SET,            /**< Set the value of a component. */
    QUERN_COMMAND_REMOVE,         /**< Remove a component. */
    QUERN_COMMAND_ACCUMULATE,     /**< Combine a value with that of the entity. */
    QUERN_COMMAND_RELATE,         /**< Relate the entity to `other`, with or without a value of the edge. */
    QUERN_COMMAND_UNRELATE,       /**< Unrelate the entity from `other`; null: from all targets. */
    QUERN_COMMAND_SET_EDGE_VALUE, /**< Set the value of the edge to `other`. */
    QUERN_COMMAND_SET_NAME,       /**< Set or remove the name of the entity. */
    QUERN_COMMAND_ENABLE,         /**< Enable a component, or the entity and its descendants. */
    QUERN_COMMAND_DISABLE,        /**< Disable a component, or the entity and its descendants. */
    QUERN_COMMAND_EMIT,           /**< No command: the events of one type that a callback emitted. */
    QUERN_COMMAND_KIND_COUNT      /**< Number of enumerators above. */
} quern_command_kind;

/** Returns the name of a kind, such as "destroy"; "unknown kind" for other numbers. Never NULL. Threads: any. */
QUERN_API const char *quern_command_kind_string(quern_command_kind kind);

/** A single command of a sync point. */
typedef struct quern_logged_command {
    quern_command_kind kind; /**< What the command does. */
    /** The system that recorded the command. Null: code outside of systems. Of events that a failed frame has kept, it is the
     * system that now has the place of theirs in the order, if systems were added or moved since. */
    quern_system system;
    /** Number of the callback within the system: 0 is the condition or the begin callback, n the n-th view,
     * and the number after the last view the end callback. */
    uint32_t callback;
    bool is_end;     /**< That number is that of the end callback. */
    bool is_of_view; /**< One row of a command for a view. */
    bool is_new;     /**< The command is on an entity that was created at the same sync point. */
    bool is_dropped; /**< At least a part of the command was dropped: dropped_count is not 0. */
    /** Why the command was dropped, if is_dropped is true. */
    quern_drop_reason reason;
    /** The entity. That of a create that was refused is null; an instance or copy that was refused, and events, have
     * none either. */
    quern_entity entity;
    quern_entity other;  /**< Target of a relation, or copied entity; otherwise null. */
    quern_prefab prefab; /**< Prefab of a spawn; otherwise null. */
    quern_event event;   /**< Type of the events; otherwise null. */
    /** The component, or the components of a create and the overrides of a spawn. Of a relation, the component that
     * stands for it. NULL if there are none. Valid until the next frame. */
    const quern_component *components;
    uint32_t component_count; /**< Number of components. */
    /** Number of commands that it counts as in statistics: 1 + n for a create with n components. Of events,
     * their number. */
    uint64_t command_count;
    /** The part of them that was dropped. A clone counts one for each target of the copy that has ended, which may be more than
     * its command_count. */
    uint64_t dropped_count;
} quern_logged_command;

/** Where in the frame a sync point was. */
typedef enum quern_sync_place {
    /** Before the first system: commands of code between frames, and those that a failed frame has kept. */
    QUERN_SYNC_FRAME_START,
    QUERN_SYNC_PHASE,    /**< In a phase, or at its end. */
    QUERN_SYNC_REACTIONS /**< In a round of reactions. */
} quern_sync_place;

/** A sync point of the last frame. */
typedef struct quern_logged_sync {
    quern_sync_place place; /**< Where it was. */
    uint32_t phase;         /**< Index of its phase. 0 if it was in none. */
    /** Name of its phase; NULL if it was in none. Valid until the next frame or the end of the log. */
    const char *phase_name;
    quern_system
        before; /**< The system that it precedes in its phase. Null: none, such as at the end of a phase. */
    uint32_t first; /**< Index of its first command in the log. */
    uint32_t count; /**< Number of its commands in the log. */
    uint64_t
        left_out_count; /**< Number of its commands that are not listed, since the log had no room for them or for ones before. */
} quern_logged_sync;

/** Figures of a command log. */
typedef struct quern_command_log_stats {
    uint64_t frame_index;    /**< Number of the frame that was listed, as in quern_frame_stats. */
    bool has_frame;          /**< A frame was listed since the log was created. */
    uint32_t sync_count;     /**< Number of sync points that are listed. */
    uint32_t count;          /**< Number of commands that are listed. */
    uint64_t left_out_count; /**< Number of commands of the frame that are not listed: the last ones. */
    uint32_t left_out_sync_count; /**< Number of sync points beyond QUERN_MAX_LOGGED_SYNCS. */
} quern_command_log_stats;

/** A list of the single commands of the last frame. */
typedef struct quern_command_log quern_command_log;

/** Definition of a command log. */
typedef struct quern_command_log_def {
    /** Number of commands that the log keeps, at most QUERN_MAX_LOGGED_COMMANDS; 0 means 16384. Each takes 112 bytes, which
     * are allocated by quern_command_log_create. */
    uint32_t max_command_count QUERN__ZERO;
    /** Allocator of the log. All zero means quern_allocator_default(). */
    quern_allocator allocator QUERN__ZERO;
} quern_command_log_def;

/** Creates an empty log. def may be NULL for the defaults. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, OUT_OF_MEMORY.
 * Threads: any. */
QUERN_API quern_result quern_command_log_create(const quern_command_log_def *def,
                                                quern_command_log **out_log);

/** Destroys a log, and takes it from its schedule. The call is refused, with a message in the log of messages, while a frame
 * of the schedule runs. NULL is allowed. */
QUERN_API void quern_command_log_destroy(quern_command_log *log);

/** Lists the commands of the following frames in the log, which holds those of the last frame; NULL ends that. The log
 * keeps what it has until the next frame that lists in it.
 *
 * The log has the commands of each sync point in the order in which they apply: system, callback, record; then the
 * accumulated values, in the same order; then events, by type, system and callback. The order and the content do not depend
 * on the number of threads. A command for a view is listed row by row. Values and names are not kept. Sync points of
 * quern_world_flush and parallel queries are not listed, unless they are those before the first system. A sync point that
 * fails is not listed: its commands are kept, and the frame that applies them lists them. Calls of quern_world_react between
 * frames add their sync points to the list of the last frame.
 *
 * Without a log, a sync point costs one branch more. A frame with a log allocates nothing more and cannot fail by it:
 * commands beyond the size of the log are counted. Errors, with nothing changed: NULL_ARGUMENT (schedule), INVALID_ARGUMENT
 * (the log belongs to another schedule), WORLD_LOCKED. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_set_command_log(quern_schedule *schedule, quern_command_log *log);

/** Returns the figures of a log. Errors: NULL_ARGUMENT. Threads: main, between frames, as for the next two calls. */
QUERN_API quern_result quern_command_log_get_stats(const quern_command_log *log,
                                                   quern_command_log_stats *out_stats);

/** Returns sync point i of the last frame, from 0, in the order of the frame. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (i). */
QUERN_API quern_result quern_command_log_get_sync(const quern_command_log *log, uint32_t i,
                                                  quern_logged_sync *out_sync);

/** Returns command i of the last frame, from 0. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (i). */
QUERN_API quern_result quern_command_log_get(const quern_command_log *log, uint32_t i,
                                             quern_logged_command *out_command);

/* ------------------------------------------------------------------------------------ kept commands */

/** Returns the number of commands that a failed frame has kept because it could not apply them; see
 * quern_schedule_run. */
QUERN_API uint64_t quern_schedule_kept_command_count(const quern_schedule *schedule);

/** Drops the kept commands. Events that were kept with them remain, and the provisional handles in these
 * events become null. Errors: NULL_ARGUMENT, WORLD_LOCKED. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_discard_commands(quern_schedule *schedule);

/** Statistics of one system in the last frame; for a reaction, the sums over all rounds. */
typedef struct quern_system_stats {
    const char *name; /**< The system's name. Valid as long as the schedule. */
    uint32_t phase;   /**< Index of the system's phase. */
    /** Views that the system function was called with, or that its change filters left out. */
    uint32_t view_count;
    uint64_t entity_count; /**< Rows of these views. */
    /** Time in the system's callbacks, added up over threads. Measured for every call with `timing`,
     * estimated from samples while profiling (<quern/profile.h>), otherwise 0. */
    uint64_t time_ns;
    uint64_t command_count; /**< Commands that the system recorded. */
} quern_system_stats;

/** Returns the statistics of a system in the last frame. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (unknown
 * system). */
QUERN_API quern_result quern_schedule_get_system_stats(const quern_schedule *schedule, quern_system system,
                                                       quern_system_stats *out_stats);

/** Returns the terms of a system, with its current target (quern_schedule_set_target), as the definition of a query. Its
 * name is that of the system, and belongs to it. A match of 0 was replaced by QUERN_MATCH_ALL, which means the same. The terms
 * of a reaction, but those that exclude a component, have QUERN_TERM_EITHER: it gets rows in which a component is disabled,
 * too. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (unknown system). Threads: any, as long as no thread modifies the schedule. */
QUERN_API quern_result quern_schedule_get_system_query(const quern_schedule *schedule, quern_system system,
                                                       quern_query_def *out_def);

/** Description of a schedule. Its pointers belong to the schedule. */
typedef struct quern_schedule_info {
    const char *name;                     /**< Name, or NULL. */
    const char *phases[QUERN_MAX_PHASES]; /**< Names of the phases, in order; NULL after the last one. */
    uint32_t phase_count;                 /**< Number of phases, at least 1. */
    double phase_steps_seconds[QUERN_MAX_PHASES];   /**< Fixed step of each phase in seconds; 0: none. */
    uint32_t phase_system_counts[QUERN_MAX_PHASES]; /**< Number of systems in each phase. */
    uint32_t system_count;                          /**< Number of systems. */
    uint64_t frame_index; /**< Number of the next frame; in a frame, that of the frame. */
} quern_schedule_info;

/** Returns the description of a schedule. Errors: NULL_ARGUMENT. Threads: any, as long as no thread modifies or runs the
 * schedule. */
QUERN_API quern_result quern_schedule_get_info(const quern_schedule *schedule,
                                               quern_schedule_info *out_info);

/** Stores up to `capacity` schedules of the world, in the order of their creation, and returns how many there are.
 * out_schedules may be NULL if capacity is 0. Returns 0, with a message, if the call is wrong. Threads: any, as long as no
 * thread creates or destroys schedules of the world. */
QUERN_API uint32_t quern_world_list_schedules(const quern_world *world, quern_schedule **out_schedules,
                                              uint32_t capacity);

/** Returns the number of systems; 0 if schedule is NULL. */
QUERN_API uint32_t quern_schedule_system_count(const quern_schedule *schedule);

/** Returns the i-th system in the order of execution, from 0. Returns null after the last one, and if the
 * schedule is not compiled. */
QUERN_API quern_system quern_schedule_system_at(const quern_schedule *schedule, uint32_t i);

/** Returns whether a conflict or before/after makes system `after` wait for system `before` directly. Sync
 * points and exclusive systems, which order everything around them, do not count. Returns false if the
 * schedule is not compiled. */
QUERN_API bool quern_schedule_has_edge(const quern_schedule *schedule, quern_system before,
                                       quern_system after);

/** Returns whether both systems are in one pass, which runs them one after the other on each chunk. Returns
 * false if the schedule is not compiled. */
QUERN_API bool quern_schedule_are_fused(const quern_schedule *schedule, quern_system a, quern_system b);

/** Output format of quern_schedule_describe. */
typedef enum quern_describe_format {
    QUERN_DESCRIBE_TEXT, /**< Text for people. */
    /** JSON for programs, such as scripts/schedule_dot.py; docs/passes.md lists the keys. */
    QUERN_DESCRIBE_JSON,
    /** The same JSON without edges and without what follows from registration alone, and of each system only `name` and
     * `enabled`. For tools that show large schedules; quern_schedule_describe_edges gives the edges. */
    QUERN_DESCRIBE_PASSES
} quern_describe_format;

/** Writes a description of the compiled schedule: phases, segments, passes and their systems in order, why
 * systems do not share a pass, every edge with its causes, which order follows from registration alone, and
 * the maximum number of busy threads. Compiles the schedule first. Errors, with nothing written:
 * NULL_ARGUMENT, INVALID_ARGUMENT (format), those of quern_schedule_compile, OUT_OF_MEMORY, WORLD_LOCKED.
 * IO means that a part was written. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_describe(quern_schedule *schedule, quern_describe_format format,
                                               quern_sink sink);

/** Writes one system as a JSON object of QUERN_DESCRIBE_JSON, without `not_in`: its terms, what else it accesses, its sets
 * and its turns. Compiles the schedule first. Errors, with nothing written: NULL_ARGUMENT, INVALID_ARGUMENT (no such
 * system), those of quern_schedule_compile. IO means that a part was written. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_describe_system(quern_schedule *schedule, quern_system system,
                                                      quern_sink sink);

/** Writes the edges that lead to a system from earlier systems of its segment, as a JSON array of edges as in
 * QUERN_DESCRIBE_JSON. direct_only: without edges that follow from others. Compiles the schedule first. The cost grows
 * with the number of edges written. Errors, with nothing written: NULL_ARGUMENT, INVALID_ARGUMENT (no such system), those
 * of quern_schedule_compile, OUT_OF_MEMORY, WORLD_LOCKED. IO means that a part was written. Threads: main, between
 * frames. */
QUERN_API quern_result quern_schedule_describe_edges(quern_schedule *schedule, quern_system system,
                                                     bool direct_only, quern_sink sink);

#ifdef __cplusplus
}
#endif

#endif
