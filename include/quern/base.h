/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BASE_H
#define QUERN_BASE_H

/* What every other header needs: results and their messages, the log and assert handlers, the allocator.
 *
 * How a call fails: functions that can fail return a quern_result, or NULL where they return a pointer.
 * Whichever it is, quern_error_message() then says in words what happened, to whom, and what to do, and
 * nothing has been changed. Where NULL is an answer and no failure, the comment of the function says so. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_VERSION_MAJOR 0
#define QUERN_VERSION_MINOR 1
#define QUERN_VERSION_PATCH 0

#if defined(__GNUC__) || defined(__clang__)
#define QUERN_API __attribute__((visibility("default")))
#else
#define QUERN_API
#endif

#define QUERN_MAX_NAME_BYTES 63 /* of a component, resource, field, phase or system */

/* ---------------------------------------------------------------------------------------- results */

typedef enum quern_result {
    QUERN_OK = 0,
    QUERN_ERROR_NULL_ARGUMENT,       /* a pointer that must not be NULL was */
    QUERN_ERROR_INVALID_ARGUMENT,    /* a value out of range, or a list with a gap */
    QUERN_ERROR_OUT_OF_MEMORY,       /* the allocator returned NULL */
    QUERN_ERROR_LIMIT,               /* one of the QUERN_MAX_ constants was reached */
    QUERN_ERROR_NULL_ENTITY,         /* the all-zero handle was given */
    QUERN_ERROR_STALE_ENTITY,        /* the entity was destroyed */
    QUERN_ERROR_FOREIGN_ENTITY,      /* the handle belongs to another world */
    QUERN_ERROR_PROVISIONAL_ENTITY,  /* a handle from a deferred create was used outside its stream */
    QUERN_ERROR_UNKNOWN_COMPONENT,   /* the component is not registered in this world */
    QUERN_ERROR_UNKNOWN_RESOURCE,    /* the resource is not registered in this world */
    QUERN_ERROR_UNKNOWN_SYSTEM,      /* before/after names a system that the schedule does not have */
    QUERN_ERROR_COMPONENT_PRESENT,   /* add: the entity has the component already */
    QUERN_ERROR_COMPONENT_ABSENT,    /* remove: the entity does not have the component */
    QUERN_ERROR_DUPLICATE_COMPONENT, /* the same component stands twice in one list */
    QUERN_ERROR_DUPLICATE_NAME,      /* the schedule already has a system of this name */
    QUERN_ERROR_COMPONENT_TOO_LARGE, /* one row does not fit a chunk */
    QUERN_ERROR_BAD_ALIGNMENT,       /* not a power of two, or above QUERN_MAX_ALIGNMENT_BYTES */
    QUERN_ERROR_LAYOUT_MISMATCH,     /* the name is registered with another layout */
    QUERN_ERROR_TOO_MANY_COMPONENTS, /* more than QUERN_MAX_ENTITY_COMPONENTS on one entity */
    QUERN_ERROR_WORLD_LOCKED, /* a frame, quern_query_parallel_for or a fill callback runs on the world */
    QUERN_ERROR_STRUCTURE_CHANGED, /* the world changed its structure while a query was iterated */
    QUERN_ERROR_UNDECLARED_ACCESS, /* a system touched what it had not declared */
    QUERN_ERROR_SCHEDULE_CONFLICT, /* systems whose declarations contradict each other (cycle, lookup) */
    QUERN_ERROR_POOL_BUSY,         /* another thread is running work on this job pool */
    QUERN_ERROR_THREAD,      /* the system refused to start a thread, or they are in another process */
    QUERN_ERROR_FILE,        /* a file, or the sink of a text, could not be written */
    QUERN_ERROR_UNAVAILABLE, /* the system does not have, or does not allow, what was asked for */
    QUERN_ERROR_CORRUPT      /* validation found a broken invariant: a bug in Quern or a stray write */
} quern_result;

/* The name of a result, such as "QUERN_ERROR_STALE_ENTITY"; "unknown result" for other numbers. Never NULL.
 * Any thread. */
QUERN_API const char *quern_result_string(quern_result result);

/* What the latest failed call on this thread had to say, or "" when none failed yet. The text stays
 * valid until the next failing call on this thread. Any thread. */
QUERN_API const char *quern_error_message(void);

/* True when the library was built with QUERN_CHECKS: declared access, invariants and misuse are checked,
 * and a violation goes to the assert handler. Any thread. */
QUERN_API bool quern_has_checks(void);

/* ------------------------------------------------------------------------------------ definitions */

/* What is made or registered is described by a definition, a struct called quern_..._def. Zero is the default
 * of every field that has one, so designated initialisers name only what is different:
 *
 *     quern_schedule_add_system(schedule, &(quern_system_def){.name = "move", .run = move,
 *         .terms = {quern_term_write(position), quern_term_read(velocity)}}, &system);
 *
 * Lists in definitions are arrays that end at their first zero element, or when they are full; an element
 * that is set after the end is refused. Everything is copied, strings too, unless a comment says otherwise.
 * C++20 reads the same initialisers; in C++17 set field by field what begins as `= {}`. */

/* --------------------------------------------------------------------------------------- handlers */

typedef enum quern_log_level { QUERN_LOG_INFO, QUERN_LOG_WARNING, QUERN_LOG_ERROR } quern_log_level;

typedef void quern_log_handler(void *user_data, quern_log_level level, const char *message);

/* Where the library's messages go, for the whole process. NULL restores the default (warnings and errors
 * to stderr). The handler may be called from any worker thread. Set it while no frame runs. */
QUERN_API void quern_log_set_handler(quern_log_handler *handler, void *user_data);

typedef void quern_assert_handler(void *user_data, const char *message);

/* What happens when a check finds misuse in a build with QUERN_CHECKS, for the whole process. NULL
 * restores the default (print the message and abort). When the handler returns, the offending call is
 * refused, as it would be in a build without checks. Set it while no frame runs. */
QUERN_API void quern_assert_set_handler(quern_assert_handler *handler, void *user_data);

/* -------------------------------------------------------------------------------------- allocator */

/* Where memory comes from. Both functions are given together, and may be called from several threads at once;
 * all zero stands for quern_allocator_default(). */
typedef struct quern_allocator {
    /* At least size_bytes (> 0), aligned to alignment_bytes (a power of two, 8 up to 2 MiB), or NULL. */
    void *(*allocate)(void *user_data, size_t size_bytes, size_t alignment_bytes);
    /* Takes back what allocate returned for the same size and alignment. pointer is not NULL. */
    void (*release)(void *user_data, void *pointer, size_t size_bytes, size_t alignment_bytes);
    void *user_data;
} quern_allocator;

/* aligned_alloc and free: what a definition without an allocator gets, for allocators that pass requests on
 * to it. Any thread. */
QUERN_API quern_allocator quern_allocator_default(void);

#ifdef __cplusplus
}
#endif

#endif
