/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_BASE_H
#define QUERN_BASE_H

/** @file
 * The basis of all other headers: results and their messages, the log and assert handlers, the allocator.
 *
 * Failure: a function that can fail returns a quern_result, or NULL if it returns a pointer. After a
 * failure, quern_error_message() describes what happened, to which object, and what to do, and nothing has
 * changed: pointers and handles behind out_ parameters keep their values. If NULL is a valid result
 * instead of a failure, the function's comment says so.
 *
 * Comments list the errors of a function without their prefix: NULL_ARGUMENT means
 * QUERN_ERROR_NULL_ARGUMENT. *Refused* calls are wrong calls that are also reported to the log.
 *
 * Threads: comments state which threads may call a function. "Any" means any thread, at any time. "Main"
 * means the one thread that uses the world at that time, whichever it is.
 *
 * Definitions: objects are created and registered from structs with names that end in _def. Zero is the
 * default of every member that has one, so designated initialisers name only what differs:
 *
 *     quern_schedule_add_system(schedule, &(quern_system_def){.name = "move", .run = move,
 *         .terms = {quern_term_write(position), quern_term_read(velocity)}}, &system);
 *
 * Lists in definitions are arrays that end at their first zero element, or at the end of the array; an
 * element that is set after the end of the list is an error. Everything is copied, including strings,
 * unless a comment says otherwise. C++20 accepts the same initialisers; in C++17, initialise with `= {}`
 * and assign the members. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_VERSION_MAJOR 0 /**< Version of these headers, major part. */
#define QUERN_VERSION_MINOR 1 /**< Version of these headers, minor part. */
#define QUERN_VERSION_PATCH 0 /**< Version of these headers, patch part. */

/* On Windows, cmake/symbols.txt lists what the DLL exports, and functions need no other declaration to be imported. */
#if (defined(__GNUC__) || defined(__clang__)) && !defined(_WIN32)
/** Declares a function that the shared library exports. */
#define QUERN_API __attribute__((visibility("default")))
#else
#define QUERN_API
#endif

/* The formats of C, which gcc for Windows knows by another name. */
#if defined(__MINGW32__) && !defined(__clang__)
#define QUERN__FORMAT(format_index, first_index) \
    __attribute__((format(gnu_printf, format_index, first_index)))
#elif defined(__GNUC__) || defined(__clang__)
#define QUERN__FORMAT(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#else
#define QUERN__FORMAT(format_index, first_index)
#endif

/* A rarely called function that ends the program. */
#if defined(__GNUC__) || defined(__clang__)
#define QUERN__NO_RETURN __attribute__((noreturn, cold))
#elif defined(_MSC_VER)
#define QUERN__NO_RETURN __declspec(noreturn)
#else
#define QUERN__NO_RETURN
#endif

/* Zeroes members of definitions in C++ that no initialiser names, as C does. */
#ifdef __cplusplus
#define QUERN__ZERO = {}
#else
#define QUERN__ZERO
#endif

/** Maximum size of the name of a component, resource, field, phase or system, in bytes. */
#define QUERN_MAX_NAME_BYTES 63

#define QUERN_LIST_END UINT32_MAX /**< Cursor of a list that has no further entries. */

/* ---------------------------------------------------------------------------------------- results */

/** Result of a function. */
typedef enum quern_result {
    QUERN_OK = 0,                 /**< Success. */
    QUERN_ERROR_NULL_ARGUMENT,    /**< A required pointer is NULL. */
    QUERN_ERROR_INVALID_ARGUMENT, /**< A value is out of range, or a list has a gap. */
    QUERN_ERROR_OUT_OF_MEMORY,    /**< The allocator returned NULL. */
    QUERN_ERROR_LIMIT,            /**< A limit is reached, mostly one of the QUERN_MAX_ constants. */
    QUERN_ERROR_NULL_ENTITY,      /**< The entity is null. */
    QUERN_ERROR_STALE_ENTITY,     /**< The entity was destroyed. */
    QUERN_ERROR_FOREIGN_ENTITY,   /**< The entity belongs to another world. */
    /** The handle of a deferred create was used outside of its command stream. */
    QUERN_ERROR_PROVISIONAL_ENTITY,
    QUERN_ERROR_UNKNOWN_COMPONENT,   /**< The component is not registered in this world. */
    QUERN_ERROR_UNKNOWN_RESOURCE,    /**< The resource is not registered in this world. */
    QUERN_ERROR_UNKNOWN_SYSTEM,      /**< before or after names a system that the schedule does not have. */
    QUERN_ERROR_COMPONENT_PRESENT,   /**< Add: the entity already has the component. */
    QUERN_ERROR_COMPONENT_ABSENT,    /**< Remove: the entity does not have the component. */
    QUERN_ERROR_COMPONENT_REQUIRED,  /**< Remove: another component of the entity requires it. */
    QUERN_ERROR_DUPLICATE_COMPONENT, /**< A list names a component twice. */
    QUERN_ERROR_DUPLICATE_NAME,      /**< The name is in use. */
    QUERN_ERROR_COMPONENT_TOO_LARGE, /**< One row does not fit a chunk. */
    QUERN_ERROR_BAD_ALIGNMENT,       /**< Not a power of two, or above QUERN_MAX_ALIGNMENT_BYTES. */
    QUERN_ERROR_LAYOUT_MISMATCH,     /**< The name is registered with another layout. */
    QUERN_ERROR_TOO_MANY_COMPONENTS, /**< More than QUERN_MAX_ENTITY_COMPONENTS on one entity. */
    /** A frame, quern_query_parallel_for, quern_world_flush or a fill callback is running on the world. */
    QUERN_ERROR_WORLD_LOCKED,
    QUERN_ERROR_STRUCTURE_CHANGED, /**< The structure of the world changed while a query was iterated. */
    QUERN_ERROR_UNDECLARED_ACCESS, /**< A system accessed what it had not declared. */
    /** Declarations of systems contradict each other (a cycle, a lookup). */
    QUERN_ERROR_SCHEDULE_CONFLICT,
    QUERN_ERROR_POOL_BUSY, /**< Other threads are running work on the job pool. */
    /** The operating system refused to start a thread, or the threads belong to another process. */
    QUERN_ERROR_THREAD_UNAVAILABLE,
    QUERN_ERROR_IO, /**< A file or a sink could not be written. */
    /** The operating system or the library does not support or permit the operation. */
    QUERN_ERROR_UNAVAILABLE,
    QUERN_ERROR_CANCELLED, /**< The operation was cancelled, and was not completed. */
    QUERN_ERROR_CORRUPT,   /**< Validation found a broken invariant: a defect of Quern, or a stray write. */
    QUERN_ERROR_CYCLE,     /**< Relate, in a relation with levels: the target is below the source. */
    /** Destroy: the entity is the target in a relation that refuses its destruction. */
    QUERN_ERROR_TARGET_IN_USE,
    QUERN_ERROR_UNKNOWN_PREFAB,     /**< The prefab is null, was destroyed, or belongs to another world. */
    QUERN_ERROR_SIBLING_NAME_TAKEN, /**< Set a name, relate, unrelate: a sibling has the name. */
    QUERN_ERROR_UNKNOWN_EVENT,      /**< The event is not registered in this world. */
    QUERN_ERROR_BAD_ARCHIVE,        /**< An archive or a recording is damaged, truncated, or not one. */
    QUERN_ERROR_DIVERGED            /**< A replay differs from its recording. */
} quern_result;

/** Returns the name of a result, such as "QUERN_ERROR_STALE_ENTITY"; "unknown result" for other numbers.
 * Never NULL. Threads: any. */
QUERN_API const char *quern_result_string(quern_result result);

/** Returns the message of the last failed call on this thread, or "" if none has failed yet. The text is
 * valid until the next call on this thread fails. Threads: any. */
QUERN_API const char *quern_error_message(void);

/** Clears the message of this thread: quern_error_message then returns "". Threads: any. */
QUERN_API void quern_error_clear(void);

/** Returns the time of the system's monotonic clock in nanoseconds, from an unspecified start. Results of frames must not
 * depend on it. Threads: any. */
QUERN_API uint64_t quern_clock_ns(void);

/** Sets the message of this thread, formatted as by printf, and returns `result`. For libraries that are
 * built on Quern and report failures in the same way. Threads: any. */
QUERN_API quern_result quern_error_set(quern_result result, const char *format, ...) QUERN__FORMAT(2, 3);

/** The known name that an unknown name probably stands for, as the end of a message. All zero is none. */
typedef struct quern_suggestion {
    char
        text[QUERN_MAX_NAME_BYTES + 32]; /**< "; did you mean 'NAME'?", or "" if no name is close enough. */
    uint32_t cost;                       /**< Internal: 1 + the edits from the wanted name to NAME. */
} quern_suggestion;

/** Offers a known name to a suggestion, which keeps the closest one, and of equally close ones the first. A name is
 * close enough if at most a third of the wanted bytes have to be replaced, inserted, removed or swapped with the next;
 * small and capital letters of ASCII are equal. `wanted` need not end after wanted_bytes. Names of more than
 * QUERN_MAX_NAME_BYTES bytes are never close. For messages of libraries and tools. Threads: any. */
QUERN_API void quern_suggestion_offer(quern_suggestion *suggestion, const char *wanted, size_t wanted_bytes,
                                      const char *name);

/** Returns whether the library was built with QUERN_CHECKS. Such a build checks declared access,
 * invariants and usage, and passes each violation to the assert handler. Threads: any. */
QUERN_API bool quern_has_checks(void);

/* --------------------------------------------------------------------------------------- handlers */

/** Severity of a message. */
typedef enum quern_log_level {
    QUERN_LOG_INFO,    /**< Information; nothing is wrong. */
    QUERN_LOG_WARNING, /**< A problem is likely soon. */
    QUERN_LOG_ERROR    /**< A call failed or was refused. */
} quern_log_level;

/** A function that receives the library's messages. Called on any thread, including workers. */
typedef void quern_log_handler(void *user_data, quern_log_level level, const char *message);

/** Sets the handler of the library's messages, for the whole process. NULL restores the default, which
 * prints warnings and errors to stderr. Must not be called while a frame runs. */
QUERN_API void quern_log_set_handler(quern_log_handler *handler, void *user_data);

/** A function that receives the violations found by checks. */
typedef void quern_assert_handler(void *user_data, const char *message);

/** Sets the handler of violations found by checks in a build with QUERN_CHECKS, for the whole process.
 * NULL restores the default, which prints the message and aborts. If the handler returns, the offending
 * call is refused, as in a build without checks. Must not be called while a frame runs. */
QUERN_API void quern_assert_set_handler(quern_assert_handler *handler, void *user_data);

/* -------------------------------------------------------------------------------------- allocator */

/** A memory allocator. Set both functions or neither; all zero means quern_allocator_default(). Several
 * threads may call the functions at the same time. */
typedef struct quern_allocator {
    /** Returns at least size_bytes (> 0), aligned to alignment_bytes (a power of two, 8 to 2 MiB), or NULL
     * if memory is exhausted. */
    void *(*allocate)(void *user_data, size_t size_bytes, size_t alignment_bytes);
    /** Frees a block from allocate, given the size and alignment of its allocation. pointer is not NULL. */
    void (*release)(void *user_data, void *pointer, size_t size_bytes, size_t alignment_bytes);
    void *user_data; /**< Passed to both functions. */
} quern_allocator;

/** Returns the default allocator: aligned_alloc and free. Other allocators may forward requests to it.
 * Blocks with an alignment of 2 MiB or more are mapped directly from systems that have mmap, and unmapped
 * when they are released; release therefore needs the original size and alignment. Threads: any. */
QUERN_API quern_allocator quern_allocator_default(void);

#ifdef __cplusplus
}
#endif

#endif
