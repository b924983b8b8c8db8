/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/base_internal.h"
#include "core/base/text.h"

#include "core/platform/compiler.h"
#include "core/platform/platform.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 512 };

/* ----------------------------------------------------------------------------------------- results */

static const char *const result_names[] = {
    [QUERN_OK] = "QUERN_OK",
    [QUERN_ERROR_NULL_ARGUMENT] = "QUERN_ERROR_NULL_ARGUMENT",
    [QUERN_ERROR_INVALID_ARGUMENT] = "QUERN_ERROR_INVALID_ARGUMENT",
    [QUERN_ERROR_OUT_OF_MEMORY] = "QUERN_ERROR_OUT_OF_MEMORY",
    [QUERN_ERROR_LIMIT] = "QUERN_ERROR_LIMIT",
    [QUERN_ERROR_NULL_ENTITY] = "QUERN_ERROR_NULL_ENTITY",
    [QUERN_ERROR_STALE_ENTITY] = "QUERN_ERROR_STALE_ENTITY",
    [QUERN_ERROR_FOREIGN_ENTITY] = "QUERN_ERROR_FOREIGN_ENTITY",
    [QUERN_ERROR_PROVISIONAL_ENTITY] = "QUERN_ERROR_PROVISIONAL_ENTITY",
    [QUERN_ERROR_UNKNOWN_COMPONENT] = "QUERN_ERROR_UNKNOWN_COMPONENT",
    [QUERN_ERROR_UNKNOWN_RESOURCE] = "QUERN_ERROR_UNKNOWN_RESOURCE",
    [QUERN_ERROR_UNKNOWN_SYSTEM] = "QUERN_ERROR_UNKNOWN_SYSTEM",
    [QUERN_ERROR_COMPONENT_PRESENT] = "QUERN_ERROR_COMPONENT_PRESENT",
    [QUERN_ERROR_COMPONENT_ABSENT] = "QUERN_ERROR_COMPONENT_ABSENT",
    [QUERN_ERROR_COMPONENT_REQUIRED] = "QUERN_ERROR_COMPONENT_REQUIRED",
    [QUERN_ERROR_DUPLICATE_COMPONENT] = "QUERN_ERROR_DUPLICATE_COMPONENT",
    [QUERN_ERROR_DUPLICATE_NAME] = "QUERN_ERROR_DUPLICATE_NAME",
    [QUERN_ERROR_COMPONENT_TOO_LARGE] = "QUERN_ERROR_COMPONENT_TOO_LARGE",
    [QUERN_ERROR_BAD_ALIGNMENT] = "QUERN_ERROR_BAD_ALIGNMENT",
    [QUERN_ERROR_LAYOUT_MISMATCH] = "QUERN_ERROR_LAYOUT_MISMATCH",
    [QUERN_ERROR_TOO_MANY_COMPONENTS] = "QUERN_ERROR_TOO_MANY_COMPONENTS",
    [QUERN_ERROR_WORLD_LOCKED] = "QUERN_ERROR_WORLD_LOCKED",
    [QUERN_ERROR_STRUCTURE_CHANGED] = "QUERN_ERROR_STRUCTURE_CHANGED",
    [QUERN_ERROR_UNDECLARED_ACCESS] = "QUERN_ERROR_UNDECLARED_ACCESS",
    [QUERN_ERROR_SCHEDULE_CONFLICT] = "QUERN_ERROR_SCHEDULE_CONFLICT",
    [QUERN_ERROR_POOL_BUSY] = "QUERN_ERROR_POOL_BUSY",
    [QUERN_ERROR_THREAD_UNAVAILABLE] = "QUERN_ERROR_THREAD_UNAVAILABLE",
    [QUERN_ERROR_IO] = "QUERN_ERROR_IO",
    [QUERN_ERROR_UNAVAILABLE] = "QUERN_ERROR_UNAVAILABLE",
    [QUERN_ERROR_CANCELLED] = "QUERN_ERROR_CANCELLED",
    [QUERN_ERROR_CORRUPT] = "QUERN_ERROR_CORRUPT",
    [QUERN_ERROR_CYCLE] = "QUERN_ERROR_CYCLE",
    [QUERN_ERROR_TARGET_IN_USE] = "QUERN_ERROR_TARGET_IN_USE",
    [QUERN_ERROR_UNKNOWN_PREFAB] = "QUERN_ERROR_UNKNOWN_PREFAB",
    [QUERN_ERROR_SIBLING_NAME_TAKEN] = "QUERN_ERROR_SIBLING_NAME_TAKEN",
    [QUERN_ERROR_UNKNOWN_EVENT] = "QUERN_ERROR_UNKNOWN_EVENT",
    [QUERN_ERROR_BAD_ARCHIVE] = "QUERN_ERROR_BAD_ARCHIVE",
    [QUERN_ERROR_DIVERGED] = "QUERN_ERROR_DIVERGED",
};

const char *quern_result_string(quern_result result)
{
    if ((size_t)result >= QUERN__COUNT_OF(result_names)) return "unknown result";
    return result_names[result];
}

/* Removes the bytes of UTF-8 characters that were cut by a precision or by the end of the message. Bytes that are not
 * UTF-8 at all, which names of types may have, stay. */
static void drop_cut_characters(char *message)
{
    size_t from = 0, to;
    while (message[from] != '\0' && (unsigned char)message[from] < 0x80)
        from++;
    for (to = from; message[from] != '\0';) {
        const unsigned char first = (unsigned char)message[from];
        const uint32_t wanted = first < 0xC2 || first > 0xF4 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
        uint32_t present = 1;
        while (present < wanted && quern__utf8_continues(message[from + present]))
            present++;
        if (present == wanted) {
            memmove(message + to, message + from, present);
            to += present;
        }
        from += present;
    }
    message[to] = '\0';
}

static void format_message(char message[MESSAGE_BYTES], const char *format, va_list arguments)
{
    vsnprintf(message, MESSAGE_BYTES, format, arguments);
    drop_cut_characters(message);
}

QUERN__THREAD_LOCAL(char, quern__message_of_thread[MESSAGE_BYTES]);
#define error_message QUERN__OF_THREAD(quern__message_of_thread)

uint64_t quern_clock_ns(void)
{
    return quern__clock_ns();
}

const char *quern_error_message(void)
{
    return error_message;
}

const void *quern__this_thread(void)
{
    return error_message;
}

void quern_error_clear(void)
{
    error_message[0] = '\0';
}

quern_result quern_error_set(quern_result result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    format_message(error_message, format, arguments);
    va_end(arguments);
    return result;
}

bool quern_has_checks(void)
{
    return QUERN_CHECKS != 0;
}

quern_result(quern__fail)(quern_result code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    format_message(error_message, format, arguments);
    va_end(arguments);
    return code;
}

quern_result(quern__fail_null)(const char *function, const char *argument)
{
    return quern__fail(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function, argument);
}

/* Replaces the first `from` bytes of the message by a text. Truncates the end of the message to MESSAGE_BYTES. */
static void replace_start(size_t from, const char *text)
{
    const size_t text_bytes = strlen(text);
    size_t rest_bytes = strlen(error_message + from);
    if (text_bytes + rest_bytes >= MESSAGE_BYTES) rest_bytes = MESSAGE_BYTES - 1 - text_bytes;
    memmove(error_message + text_bytes, error_message + from, rest_bytes);
    memcpy(error_message, text, text_bytes);
    error_message[text_bytes + rest_bytes] = '\0';
    if (text_bytes + rest_bytes == MESSAGE_BYTES - 1) drop_cut_characters(error_message);
}

/* A frame may drop many commands on dead entities, so the message is extended in place and not formatted again. */
quern_result quern__message_add_call(quern_result code, const char *function, const char *system)
{
    static const char any_call[] = "quern_", any_system[] = "system '";
    const size_t bytes = strlen(function);
    const bool is_named = strncmp(error_message, function, bytes) == 0 && error_message[bytes] == ':';
    if (!is_named && strncmp(error_message, any_call, sizeof any_call - 1) == 0) return code;
    size_t from = is_named ? bytes + sizeof ": " - 1 : 0;
    if (system != NULL && strncmp(error_message + from, any_system, sizeof any_system - 1) != 0) {
        replace_start(from, "': ");
        replace_start(0, system);
        replace_start(0, any_system);
        from = 0;
    }
    replace_start(from, ": ");
    replace_start(0, function);
    return code;
}

quern_result quern__message_add_element(quern_result code, const char *what, uint32_t i)
{
    char element[32];
    snprintf(element, sizeof element, "%s %u", what, i);
    return quern__message_add_call(code, element, NULL);
}

quern_result quern__list_count(const void *list, uint32_t capacity, quern__is_end_function *is_end,
                               const char *what, const char *owner, uint32_t *out_count)
{
    uint32_t count = 0;
    while (count < capacity && !is_end(list, count))
        count++;
    for (uint32_t i = count; i < capacity; i++)
        if (!is_end(list, i))
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s%s%s%s %u is zero, which ends the list, but %s %u is set: leave no gap",
                               owner ? "'" : "", owner ? owner : "", owner ? "': " : "", what, count, what,
                               i);
    *out_count = count;
    return QUERN_OK;
}

bool quern__is_end_of_names(const void *list, uint32_t i)
{
    return ((const char *const *)list)[i] == NULL;
}

_Static_assert(sizeof(quern_component) == sizeof(uint32_t) && sizeof(quern_relation) == sizeof(uint32_t) &&
                   sizeof(quern_resource) == sizeof(uint32_t) && sizeof(quern_event) == sizeof(uint32_t),
               "each is 32 bits, of which 0 is null");

bool quern__is_end_of_handles(const void *list, uint32_t i)
{
    uint32_t bits;
    memcpy(&bits, (const char *)list + i * sizeof bits, sizeof bits);
    return bits == 0;
}

quern_result quern__check_name(const char *name, const char *what)
{
    if (name == NULL || name[0] == '\0')
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "a %s needs a name, and this one is %s: set a name", what,
                           name == NULL ? "NULL" : "empty");
    if (strlen(name) > QUERN_MAX_NAME_BYTES)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s name '%.20s...' has %zu bytes; the limit is %d (QUERN_MAX_NAME_BYTES)", what,
                           name, strlen(name), QUERN_MAX_NAME_BYTES);
    return QUERN_OK;
}

bool quern__check_page(const void *world, uint32_t *cursor, const void *page, const char *page_name,
                       uint32_t capacity, const char *function)
{
    if (cursor != NULL && world != NULL && page != NULL && capacity > 0) return true;
    if (cursor != NULL) *cursor = QUERN_LIST_END;
    if (cursor == NULL || world == NULL || page == NULL)
        quern__fail_null(function, cursor == NULL ? "cursor" : world == NULL ? "world" : page_name);
    else
        quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                    "%s: capacity is 0, so the list would never end: pass an array of at least one element",
                    function);
    return false;
}

void quern__append(char *text, size_t text_bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, text_bytes - used, format, arguments);
    va_end(arguments);
}

/* -------------------------------------------------------------------------------------- suggestions */

static bool are_same_letter(char a, char b)
{
    const int small_a = a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a;
    const int small_b = b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b;
    return small_a == small_b;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Returns the number of edits between two names of at most QUERN_MAX_NAME_BYTES bytes (optimal string alignment). */
static uint32_t count_edits(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    uint32_t rows[3][QUERN_MAX_NAME_BYTES + 1]; /* the rows of i - 2, i - 1 and i bytes of `a` take turns */
    for (uint32_t k = 0; k <= b_bytes; k++)
        rows[0][k] = k;
    for (uint32_t i = 1; i <= a_bytes; i++) {
        uint32_t *row = rows[i % 3];
        const uint32_t *above = rows[(i - 1) % 3];
        row[0] = i;
        for (uint32_t k = 1; k <= b_bytes; k++) {
            row[k] = least(least(above[k], row[k - 1]) + 1,
                           above[k - 1] + (are_same_letter(a[i - 1], b[k - 1]) ? 0 : 1));
            if (i > 1 && k > 1 && are_same_letter(a[i - 1], b[k - 2]) &&
                are_same_letter(a[i - 2], b[k - 1]))
                row[k] = least(row[k], rows[(i - 2) % 3][k - 2] + 1);
        }
    }
    return rows[a_bytes % 3][b_bytes];
}

void quern_suggestion_offer(quern_suggestion *suggestion, const char *wanted, size_t wanted_bytes,
                            const char *name)
{
    if (suggestion == NULL || wanted == NULL || name == NULL) return;
    const size_t name_bytes = strlen(name);
    if (wanted_bytes > QUERN_MAX_NAME_BYTES || name_bytes > QUERN_MAX_NAME_BYTES) return;
    const uint32_t cost = 1 + count_edits(wanted, wanted_bytes, name, name_bytes);
    if ((size_t)3 * (cost - 1) > wanted_bytes || (suggestion->cost != 0 && suggestion->cost <= cost))
        return;
    suggestion->cost = cost;
    snprintf(suggestion->text, sizeof suggestion->text, "; did you mean '%s'?", name);
}

/* ---------------------------------------------------------------------------------------- handlers */

static void log_default(void *user_data, quern_log_level level, const char *message)
{
    (void)user_data;
    if (level == QUERN_LOG_INFO) return;
    fprintf(stderr, "quern: %s: %s\n", level == QUERN_LOG_ERROR ? "error" : "warning", message);
}

/* The handlers change only while no frame runs (see quern_log_set_handler), and starting a frame synchronises with the
 * workers. Workers may therefore read them without atomics. */
static quern_log_handler *log_handler = log_default;
static void *log_user_data;

void quern_log_set_handler(quern_log_handler *handler, void *user_data)
{
    log_handler = handler ? handler : log_default;
    log_user_data = handler ? user_data : NULL;
}

void quern__log(quern_log_level level, const char *format, ...)
{
    char message[MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    format_message(message, format, arguments);
    va_end(arguments);
    log_handler(log_user_data, level, message);
}

static void abort_with_message(void *user_data, const char *message)
{
    (void)user_data;
    fprintf(stderr, "quern: check failed: %s\n", message);
    abort();
}

static quern_assert_handler *assert_handler = abort_with_message;
static void *assert_user_data;

void quern_assert_set_handler(quern_assert_handler *handler, void *user_data)
{
    assert_handler = handler ? handler : abort_with_message;
    assert_user_data = handler ? user_data : NULL;
}

void quern__report_failure(void)
{
    quern__log(QUERN_LOG_ERROR, "%s", error_message);
    if (QUERN_CHECKS) assert_handler(assert_user_data, error_message);
}

quern_result quern__report_violation(quern_result code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    format_message(error_message, format, arguments);
    va_end(arguments);
    quern__report_failure();
    return code;
}

/* ------------------------------------------------------------------------------------------ memory */

/* Memory aligned to QUERN__PAGES_ALIGNMENT_BYTES or more is mapped from the operating system, because free() would
 * keep it. */
static void *allocate_default(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    (void)user_data;
    size_bytes = quern__align_up(size_bytes, alignment_bytes);
#if QUERN__HAS_PAGES
    if (alignment_bytes >= QUERN__PAGES_ALIGNMENT_BYTES)
        return quern__pages_map(size_bytes, alignment_bytes);
#endif
    return quern__heap_allocate(size_bytes, alignment_bytes);
}

static void release_default(void *user_data, void *pointer, size_t size_bytes, size_t alignment_bytes)
{
    (void)user_data;
#if QUERN__HAS_PAGES
    if (alignment_bytes >= QUERN__PAGES_ALIGNMENT_BYTES) {
        quern__pages_unmap(pointer, quern__align_up(size_bytes, alignment_bytes));
        return;
    }
#else
    (void)size_bytes;
    (void)alignment_bytes;
#endif
    quern__heap_release(pointer);
}

quern_allocator quern_allocator_default(void)
{
    return (quern_allocator){.allocate = allocate_default, .release = release_default, .user_data = NULL};
}

/* Users' allocators are promised alignments of at least 8 bytes. On 32-bit machines many structs are aligned to 4. */
static size_t raise_alignment(size_t alignment_bytes)
{
    return alignment_bytes < 8 ? 8 : alignment_bytes;
}

void *quern__allocate(const quern_allocator *allocator, size_t size_bytes, size_t alignment_bytes)
{
    assert(size_bytes > 0 && quern__is_power_of_two(alignment_bytes));
    return allocator->allocate(allocator->user_data, size_bytes, raise_alignment(alignment_bytes));
}

void quern__release(const quern_allocator *allocator, void *pointer, size_t size_bytes,
                    size_t alignment_bytes)
{
    if (pointer != NULL)
        allocator->release(allocator->user_data, pointer, size_bytes, raise_alignment(alignment_bytes));
}

quern_result quern__choose_allocator(const quern_allocator *given, const char *function,
                                     quern_allocator *out_allocator)
{
    const bool is_given =
        given != NULL && (given->allocate != NULL || given->release != NULL || given->user_data != NULL);
    if (is_given && (given->allocate == NULL || given->release == NULL))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: the allocator lacks its %s function: set both, or neither for the default",
                           function, given->allocate ? "release" : "allocate");
    *out_allocator = is_given ? *given : quern_allocator_default();
    return QUERN_OK;
}

enum { BLOCK_ALIGNMENT_BYTES = 64 };

bool quern__call_memory_init(quern__call_memory *memory, const quern_allocator *backing)
{
    *memory = (quern__call_memory){.backing = *backing};
    memory->block = quern__allocate(backing, QUERN__CALL_MEMORY_BYTES, BLOCK_ALIGNMENT_BYTES);
    return memory->block != NULL;
}

void quern__call_memory_release(quern__call_memory *memory)
{
    assert(memory->live_count == 0);
    quern__release(&memory->backing, memory->block, QUERN__CALL_MEMORY_BYTES, BLOCK_ALIGNMENT_BYTES);
    memory->block = NULL;
}

static void *allocate(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    quern__call_memory *memory = user_data;
    const size_t at = quern__align_up(memory->used, alignment_bytes);
    if (QUERN__IS_ADDRESS_SANITIZED || alignment_bytes > BLOCK_ALIGNMENT_BYTES ||
        at > QUERN__CALL_MEMORY_BYTES || size_bytes > QUERN__CALL_MEMORY_BYTES - at)
        return memory->backing.allocate(memory->backing.user_data, size_bytes, alignment_bytes);
    memory->used = at + size_bytes;
    memory->live_count++;
    return memory->block + at;
}

/* Releases memory. The last part of the block makes room for others at once, so the last size of a growing array leaves
 * no gap. */
static void release(void *user_data, void *pointer, size_t size_bytes, size_t alignment_bytes)
{
    quern__call_memory *memory = user_data;
    const uintptr_t at = (uintptr_t)pointer - (uintptr_t)memory->block;
    if (at >= QUERN__CALL_MEMORY_BYTES) {
        memory->backing.release(memory->backing.user_data, pointer, size_bytes, alignment_bytes);
        return;
    }
    assert(memory->live_count > 0 && size_bytes <= memory->used);
    if (--memory->live_count == 0)
        memory->used = 0;
    else if (at + size_bytes == memory->used)
        memory->used = at;
}

quern_allocator quern__call_memory_allocator(quern__call_memory *memory)
{
    return (quern_allocator){allocate, release, memory};
}
