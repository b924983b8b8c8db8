/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of quern/list.h. Each change of a list either happens in its block, if no other list shares it and it has
 * room, or makes a new one (rebuild). */
#include "core/base/list_internal.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    FIRST_BYTES = 48, /* with the head of the block, a line of the cache */
    MAX_ROOM = UINT16_MAX
};

static quern_allocator lists_allocator; /* all zero: the default */

static quern_allocator current_allocator(void)
{
    return lists_allocator.allocate != NULL ? lists_allocator : quern_allocator_default();
}

quern_result quern_lists_set_allocator(const quern_allocator *allocator)
{
    return quern__choose_allocator(allocator, __func__, &lists_allocator);
}

/* ------------------------------------------------------------------------------------------ blocks */

static char *items_of(quern__list_block *block)
{
    return (char *)(block + 1);
}

/* Adds shares of strings that were copied as bytes. */
static void retain_strings(char *items, uint32_t count)
{
    quern_string *strings = (quern_string *)(void *)items;
    for (uint32_t i = 0; i < count; i++)
        quern__list_share(&strings[i].list);
}

static void release_strings(char *items, uint32_t count)
{
    quern_string *strings = (quern_string *)(void *)items;
    for (uint32_t i = 0; i < count; i++)
        quern_list_free(&strings[i].list);
}

/* Returns a block with one share, or NULL if out of memory or beyond the limit. */
static quern__list_block *allocate_block(uint32_t element, uint64_t capacity)
{
    const uint64_t bytes = capacity * quern__list_element_bytes(element);
    if (bytes > QUERN_MAX_LIST_BYTES) return NULL;
    const uint32_t allocated_bytes =
        (uint32_t)(sizeof(quern__list_block) + bytes + (element == QUERN__LIST_TEXT));
    const quern_allocator allocator = current_allocator();
    quern__list_block *block = quern__allocate(&allocator, allocated_bytes, QUERN_LIST_ALIGNMENT);
    if (block == NULL) return NULL;
    atomic_init(&block->share_count, 1);
    block->capacity = (uint32_t)capacity;
    block->element = element;
    block->allocated_bytes = allocated_bytes;
    return block;
}

/* Returns the room of a list that is alone in its block: the size of an element above 16 bits of the capacity. A larger
 * element has none, and a larger capacity counts as the largest; lists beyond it read their block at each push. */
static uint32_t room_of(const quern__list_block *block)
{
    const uint32_t capacity = block->capacity < MAX_ROOM ? block->capacity : MAX_ROOM;
    return block->element <= UINT16_MAX ? block->element << 16 | capacity : 0;
}

bool quern__list_allocate(quern_list *list, uint32_t element, uint32_t count)
{
    if (count == 0) return true;
    quern__list_block *block = allocate_block(element, count);
    if (block == NULL) return false;
    if (element == QUERN__LIST_TEXT) items_of(block)[count] = '\0';
    *list = (quern_list){.count = count};
    list->items = items_of(block);
    return true;
}

/* Returns whether no other list shares the block. Acquire: pairs with the release of the share that was given up last, so
 * that writing to the block comes after what other threads have read. */
static inline bool list_is_alone(const quern__list_block *block)
{
    return atomic_load_explicit(&block->share_count, memory_order_acquire) == 1;
}

void quern_list_free(quern_list *list)
{
    quern__list_block *block = list != NULL ? quern__list_block_of(list) : NULL;
    if (block == NULL) return;
    /* Release: a share is given up after all reads of the block. Pairs with the acquire of the one that gives up the last
     * share, and with list_is_alone. */
    if (list_is_alone(block) ||
        atomic_fetch_sub_explicit(&block->share_count, 1, memory_order_acq_rel) == 1) {
        if (block->element == QUERN_LIST_STRINGS) release_strings(items_of(block), list->count);
        const quern_allocator allocator = current_allocator();
        quern__release(&allocator, block, block->allocated_bytes, QUERN_LIST_ALIGNMENT);
    }
    *list = (quern_list){.count = 0};
}

void quern_list_clear(quern_list *list)
{
    quern__list_block *block = list != NULL ? quern__list_block_of(list) : NULL;
    if (block == NULL) return;
    if (!list_is_alone(block)) {
        quern_list_free(list);
        return;
    }
    if (block->element == QUERN_LIST_STRINGS) release_strings(items_of(block), list->count);
    list->count = 0;
}

void quern_list_copy(quern_list *list, const quern_list *source)
{
    if (list == NULL || source == NULL || list == source) return;
    quern_list copy = {.count = 0};
    if (source->count > 0) {
        copy = *source;
        quern__list_share(&copy);
    }
    quern_list_free(list);
    *list = copy;
}

/* ----------------------------------------------------------------------------------------- changes */

/* A change of a list: elements are removed, and others inserted in their place. */
typedef struct list_change {
    uint32_t element;
    uint32_t index, removed_count;
    const char *items; /* inserted elements; NULL: zero bytes */
    uint32_t inserted_count;
    uint64_t capacity; /* least capacity afterwards */
} list_change;

static quern_result fail_memory(uint64_t count, uint32_t size_bytes, const char *function)
{
    if (count * size_bytes > QUERN_MAX_LIST_BYTES)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: %llu elements of %u bytes are more than the %d bytes that a list may have "
                           "(QUERN_MAX_LIST_BYTES): use several lists",
                           function, (unsigned long long)count, size_bytes, QUERN_MAX_LIST_BYTES);
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "%s: out of memory for a list of %llu elements of %u bytes; the list is unchanged",
                       function, (unsigned long long)count, size_bytes);
}

static void put_items(const list_change *change, char *to, size_t size_bytes)
{
    const size_t bytes = change->inserted_count * size_bytes;
    if (change->items == NULL) {
        memset(to, 0, bytes);
        return;
    }
    memcpy(to, change->items, bytes);
    if (change->element == QUERN_LIST_STRINGS) retain_strings(to, change->inserted_count);
}

/* Makes the change in a new block, into which the elements that stay are moved, or copied if the old one is shared. */
static QUERN__NO_INLINE quern_result rebuild(quern_list *list, const list_change *change,
                                             const char *function)
{
    const size_t size_bytes = quern__list_element_bytes(change->element);
    quern__list_block *old = quern__list_block_of(list);
    const uint32_t after = change->index + change->removed_count;
    const uint64_t count = (uint64_t)list->count - change->removed_count + change->inserted_count;
    const bool appends = change->inserted_count > 0 && change->removed_count == 0;
    uint64_t grown = appends ? 2 * (uint64_t)list->count : 0;
    /* the first block of a list that is pushed to */
    if (appends && old == NULL && change->inserted_count == 1 && size_bytes < FIRST_BYTES)
        grown = FIRST_BYTES / size_bytes;
    uint64_t capacity = change->capacity > count ? change->capacity : count;
    if (capacity == 0) {
        quern_list_free(list);
        return QUERN_OK;
    }
    if (capacity < grown && grown * size_bytes <= QUERN_MAX_LIST_BYTES) capacity = grown;
    quern__list_block *block = allocate_block(change->element, capacity);
    if (block == NULL) return fail_memory(capacity, (uint32_t)size_bytes, function);
    char *to = items_of(block);
    const size_t head_bytes = change->index * size_bytes;
    const size_t tail_bytes = (list->count - after) * size_bytes;
    if (head_bytes > 0) memcpy(to, list->items, head_bytes);
    if (tail_bytes > 0)
        memcpy(to + head_bytes + change->inserted_count * size_bytes,
               (const char *)list->items + after * size_bytes, tail_bytes);
    put_items(change, to + head_bytes, size_bytes);
    if (change->element == QUERN_LIST_STRINGS && old != NULL) {
        /* the strings that stay get a share of the copies, which the release of the old block gives up if it is alone */
        retain_strings(to, change->index);
        retain_strings(to + head_bytes + change->inserted_count * size_bytes, list->count - after);
    }
    quern_list_free(list);
    *list = (quern_list){.count = (uint32_t)count, .quern__room = room_of(block)};
    list->items = to;
    return QUERN_OK;
}

static bool is_part_of(const char *items, const quern_list *list, size_t size_bytes)
{
    const uintptr_t at = (uintptr_t)items, begin = (uintptr_t)list->items;
    return items != NULL && at >= begin && at < begin + list->count * size_bytes;
}

/* Makes a change whose numbers are valid. */
static quern_result change_list(quern_list *list, const list_change *change, const char *function)
{
    const size_t size_bytes = quern__list_element_bytes(change->element);
    quern__list_block *block = quern__list_block_of(list);
    const uint64_t count = (uint64_t)list->count - change->removed_count + change->inserted_count;
    const uint64_t capacity = change->capacity > count ? change->capacity : count;
    if (block == NULL || capacity > block->capacity || !list_is_alone(block) ||
        (change->inserted_count > 0 && is_part_of(change->items, list, size_bytes)))
        return rebuild(list, change, function);
    char *at = items_of(block) + change->index * size_bytes;
    const uint32_t after = change->index + change->removed_count;
    if (change->element == QUERN_LIST_STRINGS) release_strings(at, change->removed_count);
    if (after < list->count && change->removed_count != change->inserted_count)
        memmove(at + change->inserted_count * size_bytes, at + change->removed_count * size_bytes,
                (list->count - after) * size_bytes);
    if (change->inserted_count > 0) put_items(change, at, size_bytes);
    list->count = (uint32_t)count;
    return QUERN_OK;
}

/* Checks that the calls on a list agree about its elements. */
static quern_result check_element(const quern_list *list, uint32_t element, const char *function)
{
    const quern__list_block *block = list != NULL ? quern__list_block_of(list) : NULL;
    if (list == NULL) return quern__fail_null(function, "list");
    if (element == 0 || (element > QUERN_MAX_LIST_BYTES && element < QUERN__LIST_TEXT))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: element is %u bytes; elements have 1 to %d bytes (QUERN_MAX_LIST_BYTES)",
                           function, element, QUERN_MAX_LIST_BYTES);
    if (block == NULL || block->element == element) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "%s: element is %u bytes, but the list has elements of another type, of %u bytes: "
                       "pass the size with which it was filled",
                       function, quern__list_element_bytes(element),
                       quern__list_element_bytes(block->element));
}

static quern_result check_range(const quern_list *list, uint32_t index, uint32_t count,
                                const char *function)
{
    if (index <= list->count && count <= list->count - index) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "%s: index %u with %u elements is out of range: the list has %u elements", function,
                       index, count, list->count);
}

static quern_result insert(quern_list *list, uint32_t element, uint32_t index, const void *items,
                           uint32_t count, const char *function)
{
    const quern_result result = check_element(list, element, function);
    if (result != QUERN_OK) return result;
    const uint32_t at = index == QUERN_LIST_END_OF_LIST ? list->count : index;
    const quern_result range = check_range(list, at, 0, function);
    if (range != QUERN_OK || count == 0) return range;
    return change_list(
        list, &(list_change){.element = element, .index = at, .items = items, .inserted_count = count},
        function);
}

quern_result quern_list_insert(quern_list *list, uint32_t element, uint32_t index, const void *items,
                               uint32_t count)
{
    return insert(list, element, index, items, count, __func__);
}

quern_result quern_list_push(quern_list *list, uint32_t element, const void *item)
{
    QUERN__NEED(list);
    QUERN__NEED(item);
    if (QUERN__UNLIKELY(list->count >= (list->quern__room & MAX_ROOM) ||
                        element != list->quern__room >> 16)) {
        const quern__list_block *block = quern__list_block_of(list);
        const bool is_string = element == QUERN_LIST_STRINGS;
        if (block == NULL || list->count >= block->capacity || block->element != element ||
            (element > UINT16_MAX && !is_string) || !list_is_alone(block))
            return insert(list, element, QUERN_LIST_END_OF_LIST, item, 1, __func__);
        if (is_string) {
            quern_string *string = (quern_string *)(uintptr_t)list->items + list->count++;
            memcpy(string, item, sizeof *string);
            quern__list_share(&string->list);
            return QUERN_OK;
        }
        list->quern__room = room_of(block);
    }
    char *to = (char *)(uintptr_t)list->items + (size_t)list->count * element;
    /* the sizes of most elements, without a call */
    if (element == 8)
        memcpy(to, item, 8);
    else if (element == 4)
        memcpy(to, item, 4);
    else
        memcpy(to, item, element);
    list->count++;
    return QUERN_OK;
}

quern_result quern_list_remove(quern_list *list, uint32_t element, uint32_t index, uint32_t count)
{
    quern_result result = check_element(list, element, __func__);
    if (result == QUERN_OK) result = check_range(list, index, count, __func__);
    if (result != QUERN_OK || count == 0) return result;
    return change_list(list, &(list_change){.element = element, .index = index, .removed_count = count},
                       __func__);
}

/* Gives the list a block of its own. */
static quern_result own_alone(quern_list *list, uint32_t element, const char *function)
{
    return list->count > 0 ? change_list(list, &(list_change){.element = element}, function) : QUERN_OK;
}

quern_result quern_list_remove_swap(quern_list *list, uint32_t element, uint32_t index)
{
    quern_result result = check_element(list, element, __func__);
    if (result == QUERN_OK) result = check_range(list, index, 1, __func__);
    if (result == QUERN_OK) result = own_alone(list, element, __func__);
    if (result != QUERN_OK) return result;
    const size_t size_bytes = quern__list_element_bytes(element);
    char *items = items_of(quern__list_block_of(list));
    if (element == QUERN_LIST_STRINGS) release_strings(items + index * size_bytes, 1);
    list->count--;
    if (index < list->count)
        memcpy(items + index * size_bytes, items + list->count * size_bytes, size_bytes);
    return QUERN_OK;
}

quern_result quern_list_pop(quern_list *list, uint32_t element, void *out_item)
{
    quern_result result = check_element(list, element, __func__);
    if (result == QUERN_OK && list->count == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "%s: the list is empty: test its count before",
                           __func__);
    if (result == QUERN_OK) result = own_alone(list, element, __func__);
    if (result != QUERN_OK) return result;
    const size_t size_bytes = quern__list_element_bytes(element);
    char *last = items_of(quern__list_block_of(list)) + (list->count - 1) * size_bytes;
    if (out_item != NULL)
        memcpy(out_item, last, size_bytes);
    else if (element == QUERN_LIST_STRINGS)
        release_strings(last, 1);
    list->count--;
    return QUERN_OK;
}

quern_result quern_list_resize(quern_list *list, uint32_t element, uint32_t count)
{
    const quern_result result = check_element(list, element, __func__);
    if (result != QUERN_OK) return result;
    list_change change = {.element = element, .index = list->count};
    if (count < list->count) {
        change.index = count;
        change.removed_count = list->count - count;
    } else {
        change.inserted_count = count - list->count;
    }
    return count != list->count ? change_list(list, &change, __func__) : QUERN_OK;
}

quern_result quern_list_reserve(quern_list *list, uint32_t element, uint32_t count)
{
    const quern_result result = check_element(list, element, __func__);
    if (result != QUERN_OK || count == 0) return result;
    return change_list(list, &(list_change){.element = element, .capacity = count}, __func__);
}

void *quern_list_write(quern_list *list, uint32_t element)
{
    if (check_element(list, element, __func__) != QUERN_OK || list->count == 0 ||
        own_alone(list, element, __func__) != QUERN_OK)
        return NULL;
    return items_of(quern__list_block_of(list));
}

/* ----------------------------------------------------------------------------------------- strings */

/* Replaces the bytes from `index` on. */
static quern_result set_bytes(quern_string *string, uint32_t index, const char *bytes, size_t count,
                              const char *function)
{
    if (bytes == NULL) return quern__fail_null(function, "text");
    if (count > QUERN_MAX_LIST_BYTES - index) return fail_memory((uint64_t)count + index, 1, function);
    const list_change change = {.element = QUERN__LIST_TEXT,
                                .index = index,
                                .removed_count = string->list.count - index,
                                .items = bytes,
                                .inserted_count = (uint32_t)count};
    if (count == 0 && change.removed_count == 0) return QUERN_OK;
    const quern_result result = change_list(&string->list, &change, function);
    if (result == QUERN_OK && string->list.count > 0)
        items_of(quern__list_block_of(&string->list))[string->list.count] = '\0';
    return result;
}

static quern_result check_bytes(const quern_string *string, const char *bytes, uint32_t count,
                                const char *function)
{
    if (string == NULL) return quern__fail_null(function, "string");
    const bool is_searched = bytes != NULL && count > 0 && count <= QUERN_MAX_LIST_BYTES;
    const char *zero = is_searched ? memchr(bytes, '\0', count) : NULL;
    if (zero == NULL) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "%s: byte %zu is zero, which ends a string: use a list of bytes for other data",
                       function, (size_t)(zero - bytes));
}

quern_result quern_string_set(quern_string *string, const char *text)
{
    QUERN__NEED(string);
    QUERN__NEED(text);
    return set_bytes(string, 0, text, strlen(text), __func__);
}

quern_result quern_string_set_bytes(quern_string *string, const char *bytes, uint32_t count)
{
    const quern_result result = check_bytes(string, bytes, count, __func__);
    return result == QUERN_OK ? set_bytes(string, 0, bytes, count, __func__) : result;
}

quern_result quern_string_append(quern_string *string, const char *text)
{
    QUERN__NEED(string);
    QUERN__NEED(text);
    return set_bytes(string, string->list.count, text, strlen(text), __func__);
}

quern_result quern_string_append_bytes(quern_string *string, const char *bytes, uint32_t count)
{
    const quern_result result = check_bytes(string, bytes, count, __func__);
    return result == QUERN_OK ? set_bytes(string, string->list.count, bytes, count, __func__) : result;
}

/* Puts a formatted text, in which no byte is zero, at `index`. */
static quern_result set_printed(quern_string *string, uint32_t index, const char *text, size_t count,
                                const char *function)
{
    if (memchr(text, '\0', count) == NULL) return set_bytes(string, index, text, count, function);
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "%s: the formatted text has a zero byte, which ends a string: print no character "
                       "0 by %%c",
                       function);
}

/* Formats a text into a buffer, or into a temporary string if it is longer, and then puts it at `index`. */
static QUERN__PRINTF(4, 0) quern_result print_at(quern_string *string, uint32_t index, const char *function,
                                                 const char *format, va_list arguments)
{
    char buffer[256];
    quern_list longer = {.count = 0};
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(buffer, sizeof buffer, format, arguments);
    quern_result result = QUERN_OK;
    if (length < 0)
        result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                             "%s: the format '%.60s' cannot be printed: correct it or its arguments",
                             function, format);
    else if ((size_t)length < sizeof buffer)
        result = set_printed(string, index, buffer, (size_t)length, function);
    else if (!quern__list_allocate(&longer, QUERN__LIST_TEXT, (uint32_t)length))
        result = fail_memory((uint64_t)length, 1, function);
    if (longer.items != NULL) {
        vsnprintf(items_of(quern__list_block_of(&longer)), (size_t)length + 1, format, again);
        result = set_printed(string, index, longer.items, (size_t)length, function);
    }
    va_end(again);
    quern_list_free(&longer);
    return result;
}

quern_result quern_string_append_print(quern_string *string, const char *format, ...)
{
    QUERN__NEED(string);
    QUERN__NEED(format);
    va_list arguments;
    va_start(arguments, format);
    const quern_result result = print_at(string, string->list.count, __func__, format, arguments);
    va_end(arguments);
    return result;
}

quern_result quern_string_print(quern_string *string, const char *format, ...)
{
    QUERN__NEED(string);
    QUERN__NEED(format);
    va_list arguments;
    va_start(arguments, format);
    const quern_result result = print_at(string, 0, __func__, format, arguments);
    va_end(arguments);
    return result;
}
