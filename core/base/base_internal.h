/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_BASE_INTERNAL_H
#define QUERN_CORE_BASE_BASE_INTERNAL_H

/* The floor everything stands on: how a call fails, how misuse is reported, where memory comes from. */

#include <quern/base.h>

#include <assert.h>
#include <string.h>

#ifndef QUERN_CHECKS
#define QUERN_CHECKS 0
#endif

#define QUERN__PRINTF(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#define QUERN__COUNT_OF(array)                   (sizeof(array) / sizeof((array)[0]))
#define QUERN__LIKELY(condition)                 __builtin_expect(!!(condition), 1)
#define QUERN__UNLIKELY(condition)               __builtin_expect(!!(condition), 0)

#define QUERN__CACHE_LINE_BYTES 64

/* A function that would only be in the way of the instructions around its calls. */
#define QUERN__SLOW_PATH     __attribute__((noinline, cold))
#define QUERN__ALWAYS_INLINE static inline __attribute__((always_inline))

/* Remembers the message for quern_error_message() and gives the code back:
 *     return quern__fail(QUERN_ERROR_LIMIT, "component '%s': ...", name);  */
quern_result quern__fail(quern_result code, const char *format, ...) QUERN__PRINTF(2, 3);

/* A call with a NULL where it must not be. */
quern_result quern__fail_null(const char *function, const char *argument);

/* Both give back the code they are given; said here, where the compiler can see it. */
static inline quern_result quern__first(quern_result code, quern_result same)
{
    (void)same;
    return code;
}
#define quern__fail(code, ...) quern__first((code), (quern__fail)((code), __VA_ARGS__))
#define quern__fail_null(function, argument) \
    quern__first(QUERN_ERROR_NULL_ARGUMENT, (quern__fail_null)((function), (argument)))

/* Puts the call in which something failed deep inside before what was said of it, and the system that made
 * the call, where that is not NULL: "quern_entity_add: entity 1:1 does not live any more". A message that
 * names a call already keeps it. Returns code. */
QUERN__SLOW_PATH quern_result quern__name_failure(quern_result code, const char *function,
                                                  const char *system);

/* Puts before a message which element of a list it is about: "term 2: ". Returns code. */
QUERN__SLOW_PATH quern_result quern__name_element(quern_result code, const char *what, uint32_t i);

/* For the end of a public function: names it when it fails. */
static inline quern_result quern__in_call(quern_result result, const char *function)
{
    if (QUERN__UNLIKELY(result != QUERN_OK)) quern__name_failure(result, function, NULL);
    return result;
}

/* Whether the i-th element of a list is zero, and so ends it. */
typedef bool quern__is_end_function(const void *list, uint32_t i);

/* How many elements a list of a definition has: it ends at the first zero one, or when it is full. What an
 * element is, and whose the list is, is said when one is set after the end; owner may be NULL. Errors:
 * INVALID_ARGUMENT. */
quern_result quern__list_count(const void *list, uint32_t capacity, quern__is_end_function *is_end,
                               const char *what, const char *owner, uint32_t *out_count);

/* For a list of names. */
bool quern__is_end_of_names(const void *list, uint32_t i);

/* 1 to QUERN_MAX_NAME_BYTES bytes. `what` names the kind of thing in the message. */
quern_result quern__check_name(const char *name, const char *what);

/* Appends to a text in a buffer of text_bytes bytes, and cuts off what does not fit. For lists in
 * messages. */
void quern__append(char *text, size_t text_bytes, const char *format, ...) QUERN__PRINTF(3, 4);

void quern__log(quern_log_level level, const char *format, ...) QUERN__PRINTF(2, 3);

/* The fastest thread-local storage that the library may use. With initial-exec an access is one load, but dlopen
 * needs room for such a library in memory that was set aside when the program started: glibc keeps some, others
 * refuse. A static library gets the model of the program that it is linked into, whatever stands here. */
#if defined(QUERN__TLS_MODEL)
#define QUERN__FAST_THREAD_LOCAL _Thread_local __attribute__((tls_model(QUERN__TLS_MODEL)))
#elif defined(__linux__) && defined(__GLIBC__)
#define QUERN__FAST_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define QUERN__FAST_THREAD_LOCAL _Thread_local
#endif

/* An address that stands for the calling thread as long as it lives. */
const void *quern__this_thread(void);

/* Misuse by a running system: it is logged as an error, becomes the error message, and in a build with
 * QUERN_CHECKS goes to the assert handler. The caller then refuses the access. Returns code. */
quern_result quern__violation(quern_result code, const char *format, ...) QUERN__PRINTF(2, 3);

/* The part of quern__violation after the message: logs the last message of this thread as an error, and
 * hands it to the assert handler in a build with QUERN_CHECKS. */
void quern__report_failure(void);

/* ------------------------------------------------------------------------------------------ memory */

/* NULL when there is none; size 0 is not asked for. Sets no message. */
void *quern__allocate(const quern_allocator *allocator, size_t size_bytes, size_t alignment_bytes);

/* pointer may be NULL. */
void quern__release(const quern_allocator *allocator, void *pointer, size_t size_bytes,
                    size_t alignment_bytes);

/* The one that a definition gives, or the default where that is NULL or all zero. Errors: INVALID_ARGUMENT,
 * when one function is missing. */
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

#endif
