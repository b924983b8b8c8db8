/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHEDULE_H
#define QUERN_SCHEDULE_H

/* Systems, and the schedule that runs them over a world, frame after frame.
 *
 * A frame gives the result that running every system one after another would give, phase by phase and
 * in the order of before/after and registration, on one thread. Systems run side by side only where their
 * declared accesses do not meet. At the end of each phase stands a sync point, where the phase's
 * commands are applied.
 *
 * Systems that meet only in the rows of their views are *fused* into one pass: a job takes a chunk and
 * calls all of them on it, in order, while it is in the cache. Systems are called in fewer, longer streams
 * through memory, and nothing else about them changes; docs/passes.md says what prevents it. */

#include <quern/base.h>
#include <quern/commands.h>
#include <quern/component.h>
#include <quern/context.h>
#include <quern/id.h>
#include <quern/jobs.h>
#include <quern/query.h>
#include <quern/sink.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_SYSTEMS 1024 /* per schedule */
#define QUERN_MAX_PHASES  32   /* per schedule */
#define QUERN_MAX_ACCESS  32   /* lookups, and resources, per system */
#define QUERN_MAX_ORDER   32   /* names in before, and in after, of a system */

typedef struct quern_schedule quern_schedule;

/* ---------------------------------------------------------------------------------------- systems */

/* Called once per frame, before the first or after the last view of the system. */
typedef void quern_system_hook(quern_context *context);

/* Whether the system is to run in this frame, asked before begin. It may look at what the system declared;
 * commands that it records count whatever it says. */
typedef bool quern_system_condition(quern_context *context);

typedef enum quern_system_flags {
    QUERN_SYSTEM_DEFAULT = 0,
    /* Its views run one after another, in order, as one job. Implied by writing a resource with
     * QUERN_WRITE. */
    QUERN_SYSTEM_SERIAL = 1,
    /* As serial, and all callbacks run on the thread that called quern_schedule_run (windows, GPUs). */
    QUERN_SYSTEM_MAIN_THREAD = 2,
    /* As main thread, and nothing else runs meanwhile: commands recorded so far in the phase are applied
     * first, and quern_context_world lets it change the world at once. It takes no terms. */
    QUERN_SYSTEM_EXCLUSIVE = 4
} quern_system_flags;

typedef struct quern_resource_access {
    quern_resource resource;
    quern_access access; /* QUERN_READ, QUERN_WRITE or QUERN_WRITE_CONCURRENT */
} quern_resource_access;

typedef struct quern_system_def {
    const char *name;                  /* 1 to QUERN_MAX_NAME_BYTES bytes, unique in the schedule */
    uint32_t phase;                    /* index into the schedule's phases */
    quern_kernel *run;                 /* per view; once, with an empty view, when there are no terms */
    quern_system_hook *begin;          /* may be NULL */
    quern_system_hook *end;            /* may be NULL */
    quern_system_condition *condition; /* false: it is left out of the frame; may be NULL */
    /* It runs only in frames by which at least so much time (of delta_seconds) has gone by for each run;
     * then quern_context_delta_seconds is the time since the latest run. Frames in which it is disabled do
     * not count. Finite and at least 0; 0: every frame. */
    double interval_seconds;
    quern_term terms[QUERN_MAX_TERMS]; /* what its views are made of */
    /* Components it reads from any entity by handle, through quern_context_lookup; each once. */
    quern_component lookups[QUERN_MAX_ACCESS];
    quern_resource_access resources[QUERN_MAX_ACCESS]; /* each once */
    /* Names of systems of the same phase that must run after this one (before) or before it (after). Where
     * their terms share a component, one of them writes it, and the earlier has no end and the later
     * neither begin nor condition, it is an order like that of registration, chunk by chunk. Elsewhere all
     * of the earlier one comes before any of the later. */
    const char *before[QUERN_MAX_ORDER];
    const char *after[QUERN_MAX_ORDER];
    uint32_t flags;         /* quern_system_flags, or-ed */
    uint32_t partial_bytes; /* zeroed scratch for each view's partial result */
    void *user_data;        /* quern_context_user_data */
} quern_system_def;

/* --------------------------------------------------------------------------------------- schedule */

typedef struct quern_schedule_def {
    const char *phases[QUERN_MAX_PHASES]; /* names, in order, all different; none: one phase, "update" */
    bool timing;                          /* measure each system's time (two clock readings per view) */
    /* Shows frames, the jobs of passes with their systems, and sync points while it runs, on track i for
     * worker i; of no other schedule that runs meanwhile, and destroyed after this one. See
     * <quern/profile.h>. */
    struct quern_trace *trace;
    bool no_fuse; /* systems share no passes. For comparing: results are the same */
    /* For tests: when not 0, what may be in any order is in a random one, by this seed. The result of a
     * frame must not change; if it does, a system touches what it has not declared. */
    uint64_t shuffle_seed;
} quern_schedule_def;

/* def may be NULL for the defaults. The world must outlive the schedule. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT, DUPLICATE_NAME, WORLD_LOCKED, OUT_OF_MEMORY. */
QUERN_API quern_result quern_schedule_create(quern_world *world, const quern_schedule_def *def,
                                             quern_schedule **out_schedule);

/* NULL is allowed. Between frames. */
QUERN_API void quern_schedule_destroy(quern_schedule *schedule);

/* Adds a system at the end of the registration order. out_system may be NULL. Between frames.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT, UNKNOWN_COMPONENT, UNKNOWN_RESOURCE, DUPLICATE_COMPONENT,
 * DUPLICATE_NAME, LIMIT, SCHEDULE_CONFLICT (it looks up what its own parallel views write),
 * WORLD_LOCKED, OUT_OF_MEMORY. */
QUERN_API quern_result quern_schedule_add_system(quern_schedule *schedule, const quern_system_def *def,
                                                 quern_system *out_system);

/* A disabled system is left out of the frames until it is enabled again. Between frames.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT, WORLD_LOCKED. */
QUERN_API quern_result quern_schedule_set_enabled(quern_schedule *schedule, quern_system system,
                                                  bool enabled);

/* Gives a phase a fixed step: in each frame it runs, sync point included, as often as whole steps of
 * step_seconds fit the time that has gone by, at most max_step_count times; time beyond that is dropped.
 * Its systems get step_seconds, finite and at least 0, as quern_context_delta_seconds. 0 seconds: once per
 * frame again. Between frames. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, WORLD_LOCKED. */
QUERN_API quern_result quern_schedule_set_fixed_step(quern_schedule *schedule, uint32_t phase,
                                                     double step_seconds, uint32_t max_step_count);

/* The system of that name, or null. */
QUERN_API quern_system quern_schedule_find_system(const quern_schedule *schedule, const char *name);

/* Orders the systems and finds their conflicts now rather than in the next quern_schedule_run.
 * Between frames.
 * Errors: NULL_ARGUMENT, UNKNOWN_SYSTEM, SCHEDULE_CONFLICT (a cycle, named), WORLD_LOCKED,
 * OUT_OF_MEMORY. */
QUERN_API quern_result quern_schedule_compile(quern_schedule *schedule);

/* Runs one frame on the world with the threads of jobs (NULL: on the caller alone). delta_seconds, finite
 * and at least 0, is handed to the systems. The result is the same whatever the number of threads.
 *
 * Errors before the first system, with the world as it was: NULL_ARGUMENT, INVALID_ARGUMENT, WORLD_LOCKED
 * (called from inside a frame), POOL_BUSY, those of quern_schedule_compile, OUT_OF_MEMORY.
 * Errors that end the frame at a sync point, with the world as it was before that sync point and later
 * systems not run: OUT_OF_MEMORY, LIMIT (of entities). The commands are kept: the next frame tries them
 * again before its first system, as a sync point of its own, and ends there when it fails again.
 * quern_schedule_discard_commands gives them up. When memory is missing for what follows a sync point, the
 * frame ends behind it.
 * Errors reported when the whole frame has run: OUT_OF_MEMORY, when a command could not be recorded;
 * TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE or LIMIT, when the commands on an entity add up to more than it
 * can have: its commands were dropped, one to be created lived for no moment; UNDECLARED_ACCESS, when a
 * system was refused something (see the log). */
QUERN_API quern_result quern_schedule_run(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds);

/* ------------------------------------------------------------------------------------- what it did */

/* Of the latest frame. */
typedef struct quern_frame_stats {
    uint64_t frame_index;   /* 0 for the first */
    uint64_t time_ns;       /* of quern_schedule_run */
    uint64_t sync_ns;       /* of it, spent at sync points */
    uint64_t command_count; /* applied or dropped; a create with n components counts as 1 + n */
    uint64_t dropped_count; /* of them: their entity had been destroyed, or asked for too much */
    uint64_t created_count; /* entities, by commands; one that was refused is destroyed, too */
    uint64_t destroyed_count;
} quern_frame_stats;

/* All 0 before the first frame. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_schedule_get_frame_stats(const quern_schedule *schedule,
                                                      quern_frame_stats *out_stats);

/* Commands of one system that the latest frame dropped for one reason. */
typedef struct quern_drop {
    quern_system system;
    const char *system_name; /* valid as long as the schedule */
    quern_drop_reason reason;
    uint64_t count; /* commands; they add up to dropped_count of quern_frame_stats */
    /* The entity of the first of them; provisional where it was created at the same sync point. */
    quern_entity first;
} quern_drop;

/* How many entries the report of dropped commands has: one for each pair of system and reason. */
QUERN_API uint32_t quern_schedule_drop_count(const quern_schedule *schedule);

/* The i-th of them, in the order of sync points and of the first command that was dropped. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT. */
QUERN_API quern_result quern_schedule_get_drop(const quern_schedule *schedule, uint32_t i,
                                               quern_drop *out_drop);

/* Commands that a frame has recorded and could not apply: see quern_schedule_run. */
QUERN_API uint64_t quern_schedule_kept_command_count(const quern_schedule *schedule);

/* Gives up the commands that are kept. Between frames. Errors: NULL_ARGUMENT, WORLD_LOCKED. */
QUERN_API quern_result quern_schedule_discard_commands(quern_schedule *schedule);

/* One system in the latest frame. */
typedef struct quern_system_stats {
    const char *name; /* valid as long as the schedule */
    uint32_t phase;
    uint32_t view_count;   /* runs of rows it was called on, or left out by its filters on changes */
    uint64_t entity_count; /* their rows */
    /* In its callbacks, added up over the threads: of every call with timing; with profiling from samples,
     * see <quern/profile.h>; 0 without both. */
    uint64_t time_ns;
    uint64_t command_count; /* it recorded */
} quern_system_stats;

/* Errors: NULL_ARGUMENT, INVALID_ARGUMENT. */
QUERN_API quern_result quern_schedule_get_system_stats(const quern_schedule *schedule, quern_system system,
                                                       quern_system_stats *out_stats);

QUERN_API uint32_t quern_schedule_system_count(const quern_schedule *schedule);

/* The i-th system in the order of execution, i from 0; null beyond the last or before it is compiled. */
QUERN_API quern_system quern_schedule_system_at(const quern_schedule *schedule, uint32_t i);

/* Whether a conflict or before/after makes `after` wait for `before`, directly. Not told here: everything
 * waits at sync points, and for exclusive systems. In the compiled state. */
QUERN_API bool quern_schedule_has_edge(const quern_schedule *schedule, quern_system before,
                                       quern_system after);

/* Whether both systems are in one pass: called on each chunk in turn. In the compiled state. */
QUERN_API bool quern_schedule_are_fused(const quern_schedule *schedule, quern_system a, quern_system b);

typedef enum quern_describe_format {
    QUERN_DESCRIBE_TEXT, /* to be read */
    QUERN_DESCRIBE_JSON  /* for programs, such as scripts/schedule_dot.py; keys as in docs/passes.md */
} quern_describe_format;

/* Writes the compiled schedule down, in UTF-8: phases, segments, passes and their systems in order, why
 * systems do not share a pass, every edge with what causes it, which order rests on registration alone,
 * and how many threads could be busy at most. Compiles first. Between frames.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT, those of quern_schedule_compile, OUT_OF_MEMORY, WORLD_LOCKED
 * (with nothing written); FILE (with less written than there is). */
QUERN_API quern_result quern_schedule_describe(quern_schedule *schedule, quern_describe_format format,
                                               quern_sink sink);

#ifdef __cplusplus
}
#endif

#endif
