/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHEDULE_H
#define QUERN_SCHEDULE_H

/** @file
 * Systems, and the schedule that runs them over a world, frame after frame.
 *
 * A frame gives the same result as running every system one after another on one thread, phase by phase,
 * in the order of before/after and registration. Systems run side by side only where their declared
 * accesses do not conflict. Each phase ends with a sync point, which applies the commands of the phase.
 *
 * Systems that meet only in the rows of their views are *fused* into one pass: a job takes a chunk and
 * calls all of them on it, in order, while it is in the cache. Fusing changes nothing else;
 * docs/passes.md says what prevents it.
 *
 * Threads: where a comment does not say otherwise, main, between frames. */

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

#define QUERN_MAX_SYSTEMS 1024 /**< Systems per schedule. */
#define QUERN_MAX_PHASES  32   /**< Phases per schedule. */
#define QUERN_MAX_ACCESS  32 /**< Lookups, write lookups, resources, and events in each list, per system. */
#define QUERN_MAX_ORDER   32 /**< Names in before, and in after, of a system. */

/** Rounds of reactions after a sync point, where the schedule does not say otherwise. */
#define QUERN_DEFAULT_REACTION_ROUNDS 8

/** Systems in phases, compiled to run over one world. */
typedef struct quern_schedule quern_schedule;

/* ---------------------------------------------------------------------------------------- systems */

/** Called once per run of the system, before its first view (begin) or after its last one (end). The commands and
 * events of a run are in this order: those of the condition, of begin, of the views by ordinal, of end. */
typedef void quern_system_callback(quern_context *context);

/** Returns whether the system runs in this frame. Called before begin, if the system is enabled and its interval
 * has passed. quern_context_delta_seconds returns the time step that the run would get. The callback may use
 * what the system declares; its commands and events count in either case. If it returns false, no other callback
 * is called, events wait, and an interval stays due: the condition is asked again in the next frame. */
typedef bool quern_system_condition(quern_context *context);

/** How a system runs. Combine flags with |. */
typedef enum quern_system_flags {
    QUERN_SYSTEM_DEFAULT = 0, /**< Views run on any worker, several at the same time. */
    /** Its views run one after another, in order, as one job. Writing a resource with QUERN_WRITE implies
     * this, and so do write_lookups. */
    QUERN_SYSTEM_SERIAL = 1,
    /** Serial, and all callbacks run on the thread that called quern_schedule_run (windows, GPUs). That is
     * no order among such systems: where their effects outside of the world need one, they declare a
     * resource that stands for it, with QUERN_WRITE, and run in the order of registration. */
    QUERN_SYSTEM_MAIN_THREAD = 2,
    /** On the main thread, and nothing else runs meanwhile. quern_context_world lets the system change the world
     * immediately. It has no terms.
     *
     * A sync point precedes it, which applies the commands and publishes the events recorded so far in the
     * phase. That sync point takes place in every frame, also if the system is disabled, or held back by its
     * condition or interval: what other systems see does not depend on whether it runs. None follows it: commands
     * that it records are applied, and events that it emits become readable, at the next sync point, that of the
     * next exclusive system or of the end of the phase. quern_world_emit publishes at once. */
    QUERN_SYSTEM_EXCLUSIVE = 4,
    /** A chunk of which terms leave rows out comes as one view with all its rows, and quern_view_next_run
     * tells which are meant; instead of as a view for each run. */
    QUERN_SYSTEM_RUNS = 8
} quern_system_flags;

/** A resource that a system uses. */
typedef struct quern_resource_access {
    quern_resource resource; /**< Required. */
    quern_access access;     /**< QUERN_READ, QUERN_WRITE or QUERN_WRITE_CONCURRENT. */
} quern_resource_access;

/** A component that a system looks up by handle, and of which entities.
 *
 * Each has its own braces: `.lookups = {{.component = health}, {position, .with = turret}}`. Without them,
 * `{health, position}` is one lookup of health, limited to entities with position. */
typedef struct quern_lookup {
    quern_component component QUERN__ZERO; /**< Required. */
    /** Only of entities that have this component, too. Null: of any. */
    quern_component with QUERN__ZERO;
    /** Only of entities that do not have this one. Null: of any. */
    quern_component without QUERN__ZERO;
} quern_lookup;

/** Describes a system. */
typedef struct quern_system_def {
    const char *name QUERN__ZERO; /**< 1 to QUERN_MAX_NAME_BYTES bytes, unique in the schedule. */
    uint32_t phase QUERN__ZERO;   /**< Index of one of the schedule's phases. */
    /** Per view; once, with an empty view, when there are neither terms nor items. */
    quern_kernel *run QUERN__ZERO;
    quern_system_callback *begin QUERN__ZERO; /**< May be NULL. */
    quern_system_callback *end QUERN__ZERO;   /**< May be NULL. */
    /** Returns false: the system is left out of the frame. May be NULL. */
    quern_system_condition *condition QUERN__ZERO;
    /** Seconds from one run to the next. Finite and at least 0; 0: every frame.
     *
     * The system is due each time when the added delta_seconds of its frames reach a multiple of the interval,
     * and runs in the first frame at or after that. A run covers all multiples that have been reached: after a
     * frame of three intervals the system runs once, and the next multiple comes when it would have come anyway.
     * quern_context_delta_seconds returns all the time since its last run, so that none is lost. A condition
     * that returns false leaves the system due. In a phase with a fixed step, steps count instead of frames.
     * Frames in which the system is disabled do not count, neither here nor in its delta_seconds. */
    double interval_seconds QUERN__ZERO;
    quern_term terms[QUERN_MAX_TERMS] QUERN__ZERO; /**< What its views consist of. */
    /** Components that it reads from any entity by handle, with quern_context_lookup and
     * quern_context_lookup_many, or asks for with quern_context_has, where they may be tags; each once.
     * A zero one ends the list, so register components first: one that was forgotten cannot be told from
     * the end, and lookups of it are refused when they are made.
     *
     * A lookup has to wait for all systems whose views write the component, and they for it. One that is
     * limited (with, without) finds only entities within its limits, and conflicts only with systems that
     * write the component in archetypes within them. What the system's own views write it may look up only
     * where its terms and the limits exclude each other (quern_term_without and with, or the other way
     * round), or when it is serial. */
    quern_lookup lookups[QUERN_MAX_ACCESS] QUERN__ZERO;
    /** Components that it writes of any entity by handle, with quern_context_lookup_write; limited as
     * lookups are. It may read them, too, so each stands in one of the lists. This implies
     * QUERN_SYSTEM_SERIAL, and conflicts with every system whose views or lookups read or write the
     * component, where both can reach the same entity. Not tags, nor components that Quern keeps itself.
     * Change filters see what was written, or could have been. */
    quern_lookup write_lookups[QUERN_MAX_ACCESS] QUERN__ZERO;
    /** Relations whose targets and children it asks for, with quern_context_target, _first_child,
     * _next_sibling and _child_count; each once. Links change only at sync points and in exclusive systems,
     * so these conflict with nothing. A null one ends the list, as with lookups. */
    quern_relation relations[QUERN_MAX_ACCESS] QUERN__ZERO;
    /** Resources that it uses; each once. */
    quern_resource_access resources[QUERN_MAX_ACCESS] QUERN__ZERO;
    /** Events that it emits (<quern/event.h>); each once. Emitting and reading conflict with nothing: what is
     * emitted can be read from the next sync point on. */
    quern_event emits[QUERN_MAX_ACCESS] QUERN__ZERO;
    /** Events that it reads, with quern_context_events; each once. Events wait for it, up to their limit,
     * while it is disabled or held back. */
    quern_event reads_events[QUERN_MAX_ACCESS] QUERN__ZERO;
    /** An event whose blocks are the system's views: run gets each event that the system has not seen, in
     * parallel, and reads them by QUERN_EVENTS. Such views have no entities, and the system no terms. The event
     * counts as one of `reads_events`, and does not stand there, too. Not for exclusive systems. */
    quern_event items QUERN__ZERO;
    /** Names of systems in the same phase that must run after this one. If the terms of both share a
     * component that one of them writes, the earlier has no end, and the later neither begin nor
     * condition, this is an order like that of registration, chunk by chunk. Otherwise all of the
     * earlier system runs before any of the later. */
    const char *before[QUERN_MAX_ORDER] QUERN__ZERO;
    /** Names of systems in the same phase that must run before this one; as before. */
    const char *after[QUERN_MAX_ORDER] QUERN__ZERO;
    /** Makes it a *reaction*: QUERN_ON_ADDED, QUERN_ON_SET, QUERN_ON_REMOVED, combined with |. It is no
     * part of its phase; after each sync point in which something happened that it reacts to, its views
     * are just the rows to which it happened. See docs/reactions.md.
     *
     * ADDED: rows that match the terms now, and did not before. SET: rows that match as before, and to
     * which a command or call gave a value of a component that a term reads or writes; what systems write
     * through views does not count. A row comes once, as ADDED if both are true and both are asked for.
     * REMOVED: what matched and does no longer, moved or destroyed; such views come before the others,
     * have copies of the values that terms read or write, to read, and handles that may be stale. With
     * QUERN_ON_PRESENT, the rows that match when the system is added count as added.
     *
     * The rows of a chunk may come as several views, which share ordinal, partial result and commands, as
     * with up-terms. begin, end and condition are called once for each round in which the system has views.
     * Needs terms, none of them a filter or target term, with REMOVED none an up-term; not with an interval
     * or levels. before and after name other reactions of the phase; those of an earlier phase come first.
     * An exclusive one may have terms: its views have handles alone, and in REMOVED ones copies. */
    uint32_t reacts_to QUERN__ZERO;
    /** A relation with levels: the system goes level by level. All its views of entities without target are
     * done before any of their children, and so on down: parents before children, at any number of threads.
     * So it may write what it reads of the targets by the same relation (quern_term_up and its like), and
     * no other system may. Views of one level run side by side.
     *
     * The level QUERN_MAX_RELATION_LEVEL comes last and serially, in the order of true depth: a view has
     * rows of one depth that are neighbours, often a single one. Null: in any order. Needs terms; not for
     * exclusive systems. */
    quern_relation levels QUERN__ZERO;
    uint32_t flags QUERN__ZERO; /**< quern_system_flags, combined with |. */
    /** Size of each view's partial result, zeroed; see quern_context_partial. */
    uint32_t partial_bytes QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< For quern_context_user_data. */
} quern_system_def;

/* --------------------------------------------------------------------------------------- schedule */

/** What of a chunk is brought into the cache while the chunk before it is worked on. */
typedef enum quern_prefetch {
    QUERN_PREFETCH_AUTOMATIC, /**< What pays for as much as the pass touches, on caches of this size. */
    QUERN_PREFETCH_NOTHING,   /**< The processor is left to foresee it. */
    QUERN_PREFETCH_HEADS,     /**< Where each column begins. */
    QUERN_PREFETCH_CHUNKS /**< All that the pass touches; the heads, where only one of its systems matches. */
} quern_prefetch;

/** Describes a schedule. */
typedef struct quern_schedule_def {
    /** Different names, in order; none: one phase, "update". */
    const char *phases[QUERN_MAX_PHASES] QUERN__ZERO;
    bool timing QUERN__ZERO; /**< Measure each system's time (two clock readings per view). */
    /** Shows frames, jobs of passes with their systems, and sync points while it is running, on track i
     * for worker i. No other schedule may use it at the same time, and it must outlive this one. See
     * <quern/profile.h>. */
    struct quern_trace *trace QUERN__ZERO;
    bool no_fuse QUERN__ZERO; /**< Systems share no passes. For comparisons: results are the same. */
    /** How far its passes fetch ahead. For comparisons: results are the same. */
    quern_prefetch prefetch QUERN__ZERO;
    /** After a sync point, reactions run in rounds: each may cause more, by commands that the round ends
     * with. So many at most, until nothing is left; then what is left is dropped, and the frame returns
     * LIMIT. 0: QUERN_DEFAULT_REACTION_ROUNDS. */
    uint32_t max_reaction_rounds QUERN__ZERO;
    /** For tests: when not 0, whatever may run in any order runs in a random one, chosen by this seed.
     * The result of a frame must not change; if it does, a system touches what it has not declared. */
    uint64_t shuffle_seed QUERN__ZERO;
} quern_schedule_def;

/** Creates a schedule. def may be NULL for the defaults. The world must outlive the schedule. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT, DUPLICATE_NAME, WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between
 * frames. */
QUERN_API quern_result quern_schedule_create(quern_world *world, const quern_schedule_def *def,
                                             quern_schedule **out_schedule);

/** Destroys a schedule. Refused, with a message in the log, while a history saves it. NULL is allowed.
 * Threads: main, between frames. */
QUERN_API void quern_schedule_destroy(quern_schedule *schedule);

/** Adds a system at the end of the registration order. out_system may be NULL. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT, UNKNOWN_COMPONENT, UNKNOWN_RESOURCE, DUPLICATE_COMPONENT, DUPLICATE_NAME, LIMIT,
 * SCHEDULE_CONFLICT (it looks up, or reads upward, what its own parallel views write), WORLD_LOCKED,
 * OUT_OF_MEMORY. Of a reaction to REMOVED, INVALID_ARGUMENT also for components that it reads and that can
 * be destroyed but not copied. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_add_system(quern_schedule *schedule, const quern_system_def *def,
                                                 quern_system *out_system);

/** Enables or disables a system. Frames leave a disabled system out, and their time does not count for its
 * interval; events wait for it; a reaction misses what happens meanwhile. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT, WORLD_LOCKED. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_set_enabled(quern_schedule *schedule, quern_system system,
                                                  bool enabled);

/** Gives the target term of a system (quern_term_target) another target; null: no rows. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT (no such system, or it has no such term), STALE_ENTITY, FOREIGN_ENTITY,
 * PROVISIONAL_ENTITY, WORLD_LOCKED. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_set_target(quern_schedule *schedule, quern_system system,
                                                 quern_entity target);

/** Gives a phase a fixed step: each frame runs the phase, sync point included, once for each whole step
 * of step_seconds that fits the elapsed time. The rest, less than a step, counts for the next frame.
 *
 * At most max_step_count steps run per frame. Whole steps beyond that are dropped; the rest is kept, so that
 * steps stay on their grid. The systems of the phase get step_seconds, finite and at least 0, as
 * quern_context_delta_seconds. 0 seconds: once per frame again, and the rest is dropped. Another step keeps the
 * rest, so the call may be repeated each frame.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT, WORLD_LOCKED. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_set_fixed_step(quern_schedule *schedule, uint32_t phase,
                                                     double step_seconds, uint32_t max_step_count);

/** Returns the system of that name, or null. Threads: main. */
QUERN_API quern_system quern_schedule_find_system(const quern_schedule *schedule, const char *name);

/** Orders the systems and finds their conflicts now instead of in the next quern_schedule_run. Errors:
 * NULL_ARGUMENT, UNKNOWN_SYSTEM, SCHEDULE_CONFLICT (a cycle, with its systems), WORLD_LOCKED,
 * OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_compile(quern_schedule *schedule);

/** Runs one frame on the world, with the threads of jobs (NULL: only the caller). Systems get
 * delta_seconds, finite and at least 0. The result is the same for every number of threads.
 *
 * Frames of other worlds may run on the same pool at the same time: from several threads, if the pool has
 * places for as many guests (quern_jobs_def), and from inside jobs. None takes part in another's frame.
 *
 * One world runs one frame at a time. While a frame runs, the same call on another thread with any schedule of the
 * world fails with WORLD_LOCKED; the message names both calls, is logged as an error, and in a build with
 * QUERN_CHECKS goes to the assert handler, as do calls on other threads that change the world. A callback of the
 * frame that calls quern_schedule_run gets WORLD_LOCKED without a report. Exclusive systems may run frames of other
 * schedules, also in jobs, one at a time; these must end before the system returns, otherwise its own frame ends
 * there with WORLD_LOCKED and a report.
 *
 * Errors before the first system, with the world as it was: NULL_ARGUMENT, INVALID_ARGUMENT,
 * WORLD_LOCKED (called while a frame of the world runs), POOL_BUSY, those of quern_schedule_compile,
 * OUT_OF_MEMORY.
 *
 * Errors that end the frame at a sync point: OUT_OF_MEMORY, LIMIT (of entities). The world is as it was
 * before the sync point, and later systems do not run. Commands and events are kept: the next frame tries
 * them again before its first system, as a sync point of its own, and ends there if it fails again.
 * quern_schedule_discard_commands drops them. When memory is missing for what follows a sync point, the
 * frame ends after it.
 *
 * Errors after the whole frame has run: OUT_OF_MEMORY, when a command could not be recorded;
 * TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE or LIMIT, when the commands on an entity add up to more than
 * it can have (its commands were dropped; a new entity was not created); LIMIT, when reactions caused each
 * other for more rounds than max_reaction_rounds; OUT_OF_MEMORY, when an event could not be emitted; LIMIT,
 * when events were dropped for a reader that had not seen them (quern_event_def); UNDECLARED_ACCESS, when a
 * system was refused something (see the log).
 *
 * Threads: main. */
QUERN_API quern_result quern_schedule_run(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds);

/** Runs the reactions of all schedules of the world to what calls between frames have done, as the next
 * frame would before its first system: schedule by schedule, in the order of their creation, until nothing
 * is left to react to. With the threads of jobs (NULL: only the caller). Costs nothing else when nothing
 * happened.
 *
 * What it does adds to the statistics of the schedules' last frames; profiles, traces and captures do not
 * show it. The time step is 0. Errors: NULL_ARGUMENT, WORLD_LOCKED (called while a frame of the world runs, see
 * quern_schedule_run), POOL_BUSY, those of quern_schedule_run for sync points; LIMIT also when reactions of several
 * schedules cause each other for more rounds than any of them may have. Threads: main, between frames. */
QUERN_API quern_result quern_world_react(quern_world *world, quern_jobs *jobs);

/* ------------------------------------------------------------------------------------- what it did */

/** What the last frame did. */
typedef struct quern_frame_stats {
    uint64_t frame_index;   /**< 0 for the first frame. */
    uint64_t time_ns;       /**< Time of quern_schedule_run. */
    uint64_t sync_ns;       /**< The part of it at sync points. */
    uint64_t command_count; /**< Applied or dropped; a create with n components counts as 1 + n. */
    uint64_t dropped_count; /**< Those whose entity had been destroyed, or asked for too much. */
    /** Entities created by commands, including refused ones, which are destroyed. */
    uint64_t created_count;
    uint64_t destroyed_count; /**< Entities destroyed by commands. */
    uint64_t event_count;     /**< Events of its systems that were published. */
} quern_frame_stats;

/** Returns what the last frame did; all 0 before the first. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_schedule_get_frame_stats(const quern_schedule *schedule,
                                                      quern_frame_stats *out_stats);

/** Commands of one system that the last frame dropped for one reason. */
typedef struct quern_drop {
    quern_system system;      /**< Who recorded them. */
    const char *system_name;  /**< Valid as long as the schedule. */
    quern_drop_reason reason; /**< Why they were dropped. */
    uint64_t count;           /**< How many; all entries add up to dropped_count of quern_frame_stats. */
    /** The entity of the first of them; provisional if it was created at the same sync point. */
    quern_entity first;
} quern_drop;

/** Returns how many entries the report of dropped commands has: one for each pair of system and reason. */
QUERN_API uint32_t quern_schedule_drop_count(const quern_schedule *schedule);

/** Returns the i-th entry of the report, in the order of sync points and of the first dropped command.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT. */
QUERN_API quern_result quern_schedule_get_drop(const quern_schedule *schedule, uint32_t i,
                                               quern_drop *out_drop);

/** Returns how many commands a frame has recorded and could not apply; see quern_schedule_run. */
QUERN_API uint64_t quern_schedule_kept_command_count(const quern_schedule *schedule);

/** Drops the commands that are kept. Events that are kept with them stay, and their provisional handles
 * become null. Errors: NULL_ARGUMENT, WORLD_LOCKED. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_discard_commands(quern_schedule *schedule);

/** What one system did in the last frame; of a reaction, in all rounds. */
typedef struct quern_system_stats {
    const char *name;      /**< Valid as long as the schedule. */
    uint32_t phase;        /**< Index of its phase. */
    uint32_t view_count;   /**< Views that it was called with, or that its change filters left out. */
    uint64_t entity_count; /**< Their rows. */
    /** Time in its callbacks, added up over threads: of every call with timing, estimated from samples with
     * profiling (see <quern/profile.h>), 0 without both. */
    uint64_t time_ns;
    uint64_t command_count; /**< Commands that it recorded. */
} quern_system_stats;

/** Returns what a system did in the last frame. Errors: NULL_ARGUMENT, INVALID_ARGUMENT. */
QUERN_API quern_result quern_schedule_get_system_stats(const quern_schedule *schedule, quern_system system,
                                                       quern_system_stats *out_stats);

/** Returns the number of systems. */
QUERN_API uint32_t quern_schedule_system_count(const quern_schedule *schedule);

/** Returns the i-th system in the order of execution, i from 0; null after the last, or before the
 * schedule is compiled. */
QUERN_API quern_system quern_schedule_system_at(const quern_schedule *schedule, uint32_t i);

/** Returns whether a conflict or before/after makes `after` wait for `before` directly. Sync points and
 * exclusive systems, for which everything waits, do not count. Call it in the compiled state. */
QUERN_API bool quern_schedule_has_edge(const quern_schedule *schedule, quern_system before,
                                       quern_system after);

/** Returns whether both systems are in one pass, where each chunk goes from one to the other. Call it in
 * the compiled state. */
QUERN_API bool quern_schedule_are_fused(const quern_schedule *schedule, quern_system a, quern_system b);

/** How a schedule is described. */
typedef enum quern_describe_format {
    QUERN_DESCRIBE_TEXT, /**< For people. */
    /** For programs, such as scripts/schedule_dot.py; docs/passes.md has the keys. */
    QUERN_DESCRIBE_JSON
} quern_describe_format;

/** Describes the compiled schedule: phases, segments, passes and their systems in order, why systems do
 * not share a pass, every edge with its causes, which order rests on registration alone, and how many
 * threads could be busy at most. Compiles first. Errors, with nothing written: NULL_ARGUMENT,
 * INVALID_ARGUMENT, those of quern_schedule_compile, OUT_OF_MEMORY, WORLD_LOCKED; with a part written:
 * FILE. Threads: main, between frames. */
QUERN_API quern_result quern_schedule_describe(quern_schedule *schedule, quern_describe_format format,
                                               quern_sink sink);

#ifdef __cplusplus
}
#endif

#endif
