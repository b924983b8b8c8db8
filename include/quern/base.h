/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BASE_H
#define QUERN_BASE_H

/** @file
 * What every other header needs: results and their messages, the log and assert handlers, the allocator.
 *
 * Failure: a function that can fail returns a quern_result, or NULL where it returns a pointer. In both
 * cases quern_error_message() says in words what happened, to whom, and what to do, and nothing has
 * changed. Where NULL is an answer and not a failure, the function's comment says so. A pointer or
 * handle that it would have returned through out_... is as it was.
 *
 * Comments list the errors of a function without their prefix: NULL_ARGUMENT stands for
 * QUERN_ERROR_NULL_ARGUMENT. They say which threads may call it: any means any, at any time; main means
 * the one thread that uses the world at that time, whichever it is.
 *
 * Definitions: what is created or registered is described by a struct whose name ends in _def. Zero is
 * the default of every field that has one, so designated initialisers name only what differs:
 *
 *     quern_schedule_add_system(schedule, &(quern_system_def){.name = "move", .run = move,
 *         .terms = {quern_term_write(position), quern_term_read(velocity)}}, &system);
 *
 * Lists in definitions are arrays that end at their first zero element, or when they are full; an
 * element that is set after the end is refused. Everything is copied, strings too, unless a comment says
 * otherwise. C++20 reads the same initialisers; in C++17, begin with `= {}` and set field by field. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_VERSION_MAJOR 0 /**< Version of these headers, major part. */
#define QUERN_VERSION_MINOR 1 /**< Version of these headers, minor part. */
#define QUERN_VERSION_PATCH 0 /**< Version of these headers, patch part. */

#if defined(__GNUC__) || defined(__clang__)
/** Marks what the shared library exports. */
#define QUERN_API                                __attribute__((visibility("default")))
#define QUERN__FORMAT(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#else
#define QUERN_API
#define QUERN__FORMAT(format_index, first_index)
#endif

/* Members of definitions are zero in C++ where no initialiser names them, as they are in C. */
#ifdef __cplusplus
#define QUERN__ZERO = {}
#else
#define QUERN__ZERO
#endif

/** Bytes in the name of a component, resource, field, phase or system. */
#define QUERN_MAX_NAME_BYTES 63

/* ---------------------------------------------------------------------------------------- results */

/** How a call ended. */
typedef enum quern_result {
    QUERN_OK = 0,                    /**< It succeeded. */
    QUERN_ERROR_NULL_ARGUMENT,       /**< A pointer is NULL and must not be. */
    QUERN_ERROR_INVALID_ARGUMENT,    /**< A value is out of range, or a list has a gap. */
    QUERN_ERROR_OUT_OF_MEMORY,       /**< The allocator returned NULL. */
    QUERN_ERROR_LIMIT,               /**< One of the QUERN_MAX_ constants is reached. */
    QUERN_ERROR_NULL_ENTITY,         /**< The entity is null. */
    QUERN_ERROR_STALE_ENTITY,        /**< The entity was destroyed. */
    QUERN_ERROR_FOREIGN_ENTITY,      /**< The entity belongs to another world. */
    QUERN_ERROR_PROVISIONAL_ENTITY,  /**< The handle of a deferred create was used outside its stream. */
    QUERN_ERROR_UNKNOWN_COMPONENT,   /**< The component is not registered in this world. */
    QUERN_ERROR_UNKNOWN_RESOURCE,    /**< The resource is not registered in this world. */
    QUERN_ERROR_UNKNOWN_SYSTEM,      /**< before/after names a system that the schedule does not have. */
    QUERN_ERROR_COMPONENT_PRESENT,   /**< Add: the entity already has the component. */
    QUERN_ERROR_COMPONENT_ABSENT,    /**< Remove: the entity does not have the component. */
    QUERN_ERROR_DUPLICATE_COMPONENT, /**< A list names a component twice. */
    QUERN_ERROR_DUPLICATE_NAME,      /**< The name is taken. */
    QUERN_ERROR_COMPONENT_TOO_LARGE, /**< One row does not fit a chunk. */
    QUERN_ERROR_BAD_ALIGNMENT,       /**< Not a power of two, or above QUERN_MAX_ALIGNMENT_BYTES. */
    QUERN_ERROR_LAYOUT_MISMATCH,     /**< The name is registered with another layout. */
    QUERN_ERROR_TOO_MANY_COMPONENTS, /**< More than QUERN_MAX_ENTITY_COMPONENTS on one entity. */
    /** A frame, quern_query_parallel_for, quern_world_flush or a fill callback is running on the world. */
    QUERN_ERROR_WORLD_LOCKED,
    QUERN_ERROR_STRUCTURE_CHANGED, /**< The world changed its structure while a query was iterated. */
    QUERN_ERROR_UNDECLARED_ACCESS, /**< A system touched what it had not declared. */
    QUERN_ERROR_SCHEDULE_CONFLICT, /**< Declarations of systems contradict each other (cycle, lookup). */
    QUERN_ERROR_POOL_BUSY,         /**< Other threads are running work on this job pool. */
    QUERN_ERROR_THREAD, /**< The system refused to start a thread, or threads belong to another process. */
    QUERN_ERROR_FILE,   /**< A file or a sink could not be written. */
    QUERN_ERROR_UNAVAILABLE,   /**< The system does not have, or does not allow, what was asked for. */
    QUERN_ERROR_CANCELLED,     /**< It was asked to stop, and not all of it was done. */
    QUERN_ERROR_CORRUPT,       /**< Validation found a broken invariant: a bug in Quern or a stray write. */
    QUERN_ERROR_CYCLE,         /**< Relate: the target is the source itself or lies below it. */
    QUERN_ERROR_TARGET_IN_USE, /**< Destroy: entities are related to it by a relation that refuses that. */
    QUERN_ERROR_UNKNOWN_PREFAB, /**< The prefab is null, was destroyed, or belongs to another world. */
    QUERN_ERROR_NAME_TAKEN,     /**< Set name, relate, unrelate: a sibling has the name. */
    QUERN_ERROR_UNKNOWN_EVENT,  /**< The event is not registered in this world. */
    QUERN_ERROR_BAD_ARCHIVE,    /**< An archive or a recording is damaged, cut off, or none. */
    QUERN_ERROR_PARTED          /**< A replay did something else than its recording. */
} quern_result;

/** Returns the name of a result, such as "QUERN_ERROR_STALE_ENTITY"; "unknown result" for other numbers.
 * Never NULL. Threads: any. */
QUERN_API const char *quern_result_string(quern_result result);

/** Returns the message of the last failed call on this thread, or "" if none has failed yet. The text is
 * valid until the next call on this thread fails. Threads: any. */
QUERN_API const char *quern_error_message(void);

/** Makes quern_error_message return "" on this thread. Threads: any. */
QUERN_API void quern_error_clear(void);

/** Makes quern_error_message return this text on this thread, written as by printf, and returns result: for
 * libraries on top of this one, whose calls fail as those of this one do. Threads: any. */
QUERN_API quern_result quern_error_set(quern_result result, const char *format, ...) QUERN__FORMAT(2, 3);

/** Returns whether the library was built with QUERN_CHECKS: declared access, invariants and misuse are
 * checked, and each violation goes to the assert handler. Threads: any. */
QUERN_API bool quern_has_checks(void);

/* --------------------------------------------------------------------------------------- handlers */

/** How serious a message is. */
typedef enum quern_log_level {
    QUERN_LOG_INFO,    /**< Nothing is wrong. */
    QUERN_LOG_WARNING, /**< Something may soon be wrong. */
    QUERN_LOG_ERROR    /**< A call was refused or has failed. */
} quern_log_level;

/** Receives the library's messages. Threads: any worker. */
typedef void quern_log_handler(void *user_data, quern_log_level level, const char *message);

/** Sets where the library's messages go, for the whole process. NULL restores the default: warnings and
 * errors go to stderr. Call it while no frame runs. */
QUERN_API void quern_log_set_handler(quern_log_handler *handler, void *user_data);

/** Receives what a check has found. */
typedef void quern_assert_handler(void *user_data, const char *message);

/** Sets what happens when a check finds misuse in a build with QUERN_CHECKS, for the whole process. NULL
 * restores the default: print the message and abort. When the handler returns, the offending call is
 * refused, as in a build without checks. Call it while no frame runs. */
QUERN_API void quern_assert_set_handler(quern_assert_handler *handler, void *user_data);

/* -------------------------------------------------------------------------------------- allocator */

/** Where memory comes from. Set both functions or neither; all zero stands for quern_allocator_default().
 * Several threads may call them at once. */
typedef struct quern_allocator {
    /** Returns at least size_bytes (> 0), aligned to alignment_bytes (a power of two, 8 to 2 MiB), or
     * NULL. */
    void *(*allocate)(void *user_data, size_t size_bytes, size_t alignment_bytes);
    /** Takes back what allocate returned for the same size and alignment. pointer is not NULL. */
    void (*release)(void *user_data, void *pointer, size_t size_bytes, size_t alignment_bytes);
    void *user_data; /**< Passed to both. */
} quern_allocator;

/** Returns the default allocator, to which your own may pass requests on: aligned_alloc and free. Blocks
 * aligned to 2 MiB or more come from the system, where it has mmap, and go back to it the moment they are
 * released; so release must get size and alignment as they were asked for. Threads: any. */
QUERN_API quern_allocator quern_allocator_default(void);

#ifdef __cplusplus
}
#endif

#endif
