/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_BASE_INTERNAL_H
#define QUERN_CORE_BASE_BASE_INTERNAL_H

/* Shared by all rooms: failing with a message, reporting misuse, and allocating memory. */

#include "core/platform/compiler.h"

#include <quern/base.h>

#include <assert.h>
#include <string.h>

#ifndef QUERN_CHECKS
#define QUERN_CHECKS 0
#endif

#define QUERN__COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#define QUERN__CACHE_LINE_BYTES 64

/* Sets the message of quern_error_message() and returns `code`:
 *     return quern__fail(QUERN_ERROR_LIMIT, "component '%s': ...", name);  */
quern_result quern__fail(quern_result code, const char *format, ...) QUERN__PRINTF(2, 3);

/* Fails with NULL_ARGUMENT. function: name of the call. argument: name of the argument that is NULL. */
quern_result quern__fail_null(const char *function, const char *argument);

/* Returns `code`. The macros below call it so that the compiler knows which code the two functions above return. */
static inline quern_result quern__known_code(quern_result code, quern_result same)
{
    (void)same;
    return code;
}
#define quern__fail(code, ...) quern__known_code((code), (quern__fail)((code), __VA_ARGS__))
#define quern__fail_null(function, argument) \
    quern__known_code(QUERN_ERROR_NULL_ARGUMENT, (quern__fail_null)((function), (argument)))

/* Returns NULL_ARGUMENT from a public call if its argument of this name is NULL. */
#define QUERN__NEED(argument)                                                 \
    do {                                                                      \
        if ((argument) == NULL) return quern__fail_null(__func__, #argument); \
    } while (0)

/* The same for an argument with `count` elements, which may be NULL if there are none. */
#define QUERN__NEED_LIST(argument, count)                                                    \
    do {                                                                                     \
        if ((count) > 0 && (argument) == NULL) return quern__fail_null(__func__, #argument); \
    } while (0)

/* The same in calls that return something else than a result: after the message, they return `value`. */
#define QUERN__NEED_OR(argument, value)            \
    do {                                           \
        if ((argument) == NULL) {                  \
            quern__fail_null(__func__, #argument); \
            return value;                          \
        }                                          \
    } while (0)
#define QUERN__NEED_LIST_OR(argument, count, value)       \
    do {                                                  \
        if ((count) > 0) QUERN__NEED_OR(argument, value); \
    } while (0)

/* Puts the name of the public call in front of the current message, and the name of the calling system if `system`
 * is not NULL: "quern_entity_add: system 'x': entity 1:1 is dead". Parts that the message has already are not
 * repeated. A message that begins with the name of another call does not change. Returns `code`. */
QUERN__SLOW_PATH quern_result quern__message_add_call(quern_result code, const char *function,
                                                      const char *system);

/* Puts an element of a list in front of the current message: "term 2: ". Returns `code`. */
QUERN__SLOW_PATH quern_result quern__message_add_element(quern_result code, const char *what, uint32_t i);

/* Returns the result of a public function. If it is an error, puts the function's name in front of the message. */
static inline quern_result quern__in_call(quern_result result, const char *function)
{
    if (QUERN__UNLIKELY(result != QUERN_OK)) quern__message_add_call(result, function, NULL);
    return result;
}

/* Returns whether the i-th element of a list is zero. The first such element ends the list. */
typedef bool quern__is_end_function(const void *list, uint32_t i);

/* Counts the elements of a list in a definition. The list ends at its first zero element or at `capacity`. what:
 * word for an element, for messages. owner: name of the object with the list, for messages; may be NULL. Errors:
 * INVALID_ARGUMENT if an element after the end is not zero. */
quern_result quern__list_count(const void *list, uint32_t capacity, quern__is_end_function *is_end,
                               const char *what, const char *owner, uint32_t *out_count);

/* A quern__is_end_function for arrays of strings, which end at NULL. */
bool quern__is_end_of_names(const void *list, uint32_t i);

/* A quern__is_end_function for arrays of quern_component, quern_relation, quern_resource or quern_event. */
bool quern__is_end_of_handles(const void *list, uint32_t i);

/* Checks that a name has 1 to QUERN_MAX_NAME_BYTES bytes. what: the kind of named object, for messages: "component".
 * Errors: INVALID_ARGUMENT. */
quern_result quern__check_name(const char *name, const char *what);

/* Checks the arguments of a public call that lists a page of a world. If one is wrong, sets the error message, sets
 * *cursor to QUERN_LIST_END and returns false. page_name: name of the argument `page`. */
bool quern__check_page(const void *world, uint32_t *cursor, const void *page, const char *page_name,
                       uint32_t capacity, const char *function);

/* Appends to the zero-terminated text in a buffer of text_bytes bytes, and truncates the result to the buffer. */
void quern__append(char *text, size_t text_bytes, const char *format, ...) QUERN__PRINTF(3, 4);

void quern__log(quern_log_level level, const char *format, ...) QUERN__PRINTF(2, 3);

/* Returns an address that identifies the calling thread among all running threads. */
const void *quern__this_thread(void);

/* Reports misuse of the library: sets the error message, logs it as an error, and passes it to the assert handler in
 * builds with QUERN_CHECKS. Returns `code`; the caller then refuses the access. */
quern_result quern__report_violation(quern_result code, const char *format, ...) QUERN__PRINTF(2, 3);

/* Logs the current message of this thread as an error, and passes it to the assert handler in builds with
 * QUERN_CHECKS. */
void quern__report_failure(void);

/* ------------------------------------------------------------------------------------------ memory */

/* Returns uninitialised memory, or NULL, without a message, if out of memory. Precondition: size_bytes > 0. */
void *quern__allocate(const quern_allocator *allocator, size_t size_bytes, size_t alignment_bytes);

/* Releases memory of quern__allocate, with the same size and alignment. pointer may be NULL. */
void quern__release(const quern_allocator *allocator, void *pointer, size_t size_bytes,
                    size_t alignment_bytes);

/* Returns the allocator of a definition, or the default one if `given` is NULL or all zero. Errors: INVALID_ARGUMENT if
 * one of its functions is missing. */
quern_result quern__choose_allocator(const quern_allocator *given, const char *function,
                                     quern_allocator *out_allocator);

static inline size_t quern__align_up(size_t value, size_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static inline bool quern__is_power_of_two(size_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* Reads and writes a byte of each page of memory that this thread owns, so that later accesses cause no page faults. */
static inline void quern__touch_pages(void *memory, size_t bytes)
{
    enum { SMALLEST_PAGE_BYTES = 4096 };
    volatile char *byte = memory;
    for (size_t i = 0; i < bytes; i += SMALLEST_PAGE_BYTES)
        byte[i] = byte[i];
}

/* An allocator for the temporary memory of a call that is repeated often. It hands out parts of one block, one after
 * another, and begins again when all of them were released. What does not fit into the block is allocated by the
 * allocator behind it, so a large call costs as much as without a block, and leaves nothing behind. Builds with the
 * address sanitizer allocate everything there, since the sanitizer does not check the parts of a block. */

typedef struct quern__call_memory {
    quern_allocator backing;
    char *block;         /* QUERN__CALL_MEMORY_BYTES bytes; NULL: not initialised */
    size_t used;         /* parts begin below this offset */
    uint32_t live_count; /* number of parts that were not released */
} quern__call_memory;

enum { QUERN__CALL_MEMORY_BYTES = 32 * 1024 };

/* Allocates the block. Returns false if out of memory. */
bool quern__call_memory_init(quern__call_memory *memory, const quern_allocator *backing);

/* Releases the block. Precondition: all allocated memory was released. */
void quern__call_memory_release(quern__call_memory *memory);

/* Returns the allocator, which is not thread-safe and refers to `memory`. */
quern_allocator quern__call_memory_allocator(quern__call_memory *memory);

/* Parallel loops for the core, which knows no threads. The owner of the threads passes an executor. */

/* The body of a loop. Processes the items [begin, end). worker_index: below worker_count. */
typedef void quern__executor_function(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);

/* The stages of a sync point, in order. */
typedef enum quern__sync_stage {
    QUERN__STAGE_SYNC, /* the whole sync point */
    QUERN__STAGE_GATHER,
    QUERN__STAGE_MERGE,
    QUERN__STAGE_RESOLVE,
    QUERN__STAGE_APPLY
} quern__sync_stage;

typedef struct quern__executor {
    uint32_t thread_count; /* number of threads that usually share a loop; at least 1 */
    uint32_t worker_count; /* number of worker indices; at least thread_count */
    bool always_divides;   /* divide loops on one thread, too: an observer records the division */
    void *context;
    /* Calls the function for ranges of at most `grain` items that cover each item of [0, count) exactly once. Returns
     * when all calls have returned; their writes are then visible to the caller. Calls with the same worker index
     * never overlap. */
    void (*parallel_for)(void *context, uint32_t count, uint32_t grain, quern__executor_function *function,
                         void *argument);
    /* Called on the thread of the sync point when a stage begins; NULL: not called. */
    void (*begin_stage)(void *context, quern__sync_stage stage);
} quern__executor;

static inline void quern__executor_begin_stage(const quern__executor *executor, quern__sync_stage stage)
{
    if (executor != NULL && executor->begin_stage != NULL) executor->begin_stage(executor->context, stage);
}

/* Runs a parallel loop, as quern__executor.parallel_for does. A loop of at most `grain` items, or with a NULL executor,
 * is one call on the calling thread. */
static inline void quern__executor_run(const quern__executor *executor, uint32_t count, uint32_t grain,
                                       quern__executor_function *function, void *argument)
{
    if (count == 0) return;
    if (executor == NULL || count <= grain)
        function(argument, 0, count, 0);
    else
        executor->parallel_for(executor->context, count, grain, function, argument);
}

#endif
