/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_LIST_H
#define QUERN_LIST_H

/** @file
 * Lists and strings of any length, as members of components, resources and events.
 *
 *     typedef struct Item {
 *         uint32_t kind, count;
 *     } Item;
 *     typedef struct Bag {
 *         QUERN_LIST(Item) items;
 *         quern_string label;
 *     } Bag;
 *
 *     .fields = {QUERN_LIST_FIELD(Bag, items, Item, kind, count), QUERN_FIELD(Bag, label)}
 *
 *     QUERN_LIST_PUSH(&bag->items, Item, {.kind = 3, .count = 1});
 *     for (uint32_t i = 0; i < bag->items.list.count; i++)
 *         total += bag->items.items[i].count;
 *
 * A list is 16 bytes in the row. Its elements are in a block outside, which several lists may share: a copy of a list
 * is O(1) and cannot fail. The first change of a list copies a block that others share, so a list behaves like a value
 * of its own. Zero bytes are an empty list.
 *
 * The world copies and destroys lists by itself if the fields of the type describe them. A list in a variable is
 * yours: end it by quern_list_free. A call that gets a value with lists, such as quern_entity_set, copies it, and the
 * variable keeps its own. An assignment in C copies no list: both variables then have the same one, of which only one
 * may be used; use quern_list_copy.
 *
 * `element` in the calls is the size of an element in bytes, or QUERN_LIST_STRINGS. It must be the same in all calls on
 * a list. The macros pass it. Elements are plain bytes, or strings, and are aligned to 16 bytes at most.
 *
 * Threads: one thread per list that is changed; any number of threads may read. Lists that share a block count as
 * different ones, so systems may change the lists of their rows in parallel. */

#include <quern/base.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_LIST_BYTES   0x40000000  /**< Maximum size of the elements of a list: 1 GiB. */
#define QUERN_LIST_ALIGNMENT   16          /**< Alignment of the first element of a list. */
#define QUERN_LIST_STRINGS     0xFFFFFFFFu /**< `element` of a list of quern_string. */
#define QUERN_LIST_END_OF_LIST 0xFFFFFFFFu /**< index of quern_list_insert: after the last element. */

/** A list of elements that all have the same size. Zero bytes are an empty list. */
typedef struct quern_list {
    /** The elements, for reading. NULL if the list was always empty. */
    union {
        const void *items;    /**< First element. */
        uint64_t quern__bits; /**< The member is as large on all platforms. */
    };
    uint32_t count;       /**< Number of elements. Only the calls below change it. */
    uint32_t quern__room; /**< How far quern_list_push may append in place. */
} quern_list;

/** A text of any length, in UTF-8. Zero bytes are an empty text. */
typedef struct quern_string {
    quern_list list; /**< The bytes; a zero byte follows them. */
} quern_string;

/** Declares the type of a member that is a list of elements of a type: `QUERN_LIST(Item) items;`. The member `list` is
 * the quern_list, and `items` the elements, for reading. Only in C; C++ has quern::list<T>. */
#ifndef __cplusplus
#define QUERN_LIST(...)           \
    union {                       \
        quern_list list;          \
        const __VA_ARGS__ *items; \
    }
#endif

/** Sets the allocator of all lists and strings of the process; NULL restores quern_allocator_default(). Call it
 * before any list has elements: blocks are released by the allocator that is set then. Errors: INVALID_ARGUMENT (one of
 * the functions is missing). Threads: main, while no other thread uses lists. */
QUERN_API quern_result quern_lists_set_allocator(const quern_allocator *allocator);

/** Inserts `count` elements before the one at `index`. index: 0 to the number of elements, or QUERN_LIST_END_OF_LIST to
 * append. items: the elements, which are copied, also strings; NULL for zero bytes. They may be elements of the list
 * itself. O(count + elements after the index); appending is amortised O(count). Errors, with the list unchanged:
 * NULL_ARGUMENT, INVALID_ARGUMENT (index, element or size), OUT_OF_MEMORY. */
QUERN_API quern_result quern_list_insert(quern_list *list, uint32_t element, uint32_t index,
                                         const void *items, uint32_t count);

/** Appends one element, as quern_list_insert does. */
QUERN_API quern_result quern_list_push(quern_list *list, uint32_t element, const void *item);

/** Removes `count` elements from the one at `index` on. Keeps the order of the others. Errors, with the list unchanged:
 * NULL_ARGUMENT, INVALID_ARGUMENT (there are no such elements), OUT_OF_MEMORY (the block was shared). */
QUERN_API quern_result quern_list_remove(quern_list *list, uint32_t element, uint32_t index,
                                         uint32_t count);

/** Removes an element and puts the last one in its place: O(1). Errors: as quern_list_remove. */
QUERN_API quern_result quern_list_remove_swap(quern_list *list, uint32_t element, uint32_t index);

/** Removes the last element, after copying it to *out_item, unless that is NULL. A string is moved there, and is yours
 * then. Errors: as quern_list_remove. */
QUERN_API quern_result quern_list_pop(quern_list *list, uint32_t element, void *out_item);

/** Sets the number of elements. New elements are zero bytes. Errors: as quern_list_insert. */
QUERN_API quern_result quern_list_resize(quern_list *list, uint32_t element, uint32_t count);

/** Makes room for a total of `count` elements, so that the calls that follow need no memory up to there, as long as the
 * list is not copied. Errors: as quern_list_insert. */
QUERN_API quern_result quern_list_reserve(quern_list *list, uint32_t element, uint32_t count);

/** Returns the elements for writing, after copying the block if it is shared. The pointer is valid until the list is
 * changed or copied, which also happens at each sync point; do not keep it. NULL if the list is empty, and with a
 * message if out of memory. */
QUERN_API void *quern_list_write(quern_list *list, uint32_t element);

/** Makes the list empty. Keeps its memory, unless that is shared. Threads and NULL: as quern_list_free. */
QUERN_API void quern_list_clear(quern_list *list);

/** Makes the list empty and releases its memory, or its share. Nothing if `list` is NULL. */
QUERN_API void quern_list_free(quern_list *list);

/** Replaces the list by a copy of another one, which shares its block. O(1); cannot fail. Nothing if one is NULL. */
QUERN_API void quern_list_copy(quern_list *list, const quern_list *source);

/** Returns the text of a string, which ends with a zero byte, for reading. "" if it is empty or NULL. */
static inline const char *quern_string_text(const quern_string *string)
{
    return string != NULL && string->list.count > 0 ? QUERN__CAST(const char *, string->list.items) : "";
}

/** Returns the number of bytes of a string. */
static inline uint32_t quern_string_bytes(const quern_string *string)
{
    return string != NULL ? string->list.count : 0;
}

/** Sets the text of a string. `text` may be a part of the string itself. Errors, with the string unchanged:
 * NULL_ARGUMENT, INVALID_ARGUMENT (more than QUERN_MAX_LIST_BYTES), OUT_OF_MEMORY. */
QUERN_API quern_result quern_string_set(quern_string *string, const char *text);

/** Sets the text of a string to `count` bytes, none of which is zero. Errors: as quern_string_set, and
 * INVALID_ARGUMENT (a zero byte). */
QUERN_API quern_result quern_string_set_bytes(quern_string *string, const char *bytes, uint32_t count);

/** Appends a text to a string. Errors: as quern_string_set. */
QUERN_API quern_result quern_string_append(quern_string *string, const char *text);

/** Appends `count` bytes to a string. Errors: as quern_string_set_bytes. */
QUERN_API quern_result quern_string_append_bytes(quern_string *string, const char *bytes, uint32_t count);

/** Appends a text that is formatted as by printf. The arguments may be parts of the string itself. Errors: as
 * quern_string_set, and INVALID_ARGUMENT (the format, or a zero byte in the text). */
QUERN_API quern_result quern_string_append_print(quern_string *string, const char *format, ...)
    QUERN__FORMAT(2, 3);

/** Sets the text of a string, formatted as by printf. The arguments may be parts of the string itself. Errors: as
 * quern_string_append_print. */
QUERN_API quern_result quern_string_print(quern_string *string, const char *format, ...)
    QUERN__FORMAT(2, 3);

/** Makes a string empty and releases its memory, or its share. Nothing if `string` is NULL. */
static inline void quern_string_free(quern_string *string)
{
    if (string != NULL) quern_list_free(&string->list);
}

/** Replaces the string by a copy of another one. O(1); cannot fail. */
static inline void quern_string_copy(quern_string *string, const quern_string *source)
{
    if (string != NULL && source != NULL) quern_list_copy(&string->list, &source->list);
}

/* ------------------------------------------------------------------------------------ typed calls in C */

#ifndef __cplusplus

/** Appends elements to a QUERN_LIST: `QUERN_LIST_PUSH(&bag->items, Item, {.kind = 3}, other)`. Returns a quern_result;
 * see quern_list_insert. Warns if the list has elements of another type. */
#define QUERN_LIST_PUSH(typed, type, ...)                                                  \
    (sizeof((const type[]){__VA_ARGS__}) == sizeof(type)                                   \
         ? quern_list_push(&(typed)->list, QUERN__LIST_ELEMENT(typed),                     \
                           1 ? (const type *)(const type[]){__VA_ARGS__} : (typed)->items) \
         : QUERN_LIST_INSERT(typed, QUERN_LIST_END_OF_LIST, type, __VA_ARGS__))

/** Inserts elements into a QUERN_LIST before an index; see quern_list_insert. */
#define QUERN_LIST_INSERT(typed, index, type, ...)                                    \
    quern_list_insert(&(typed)->list, QUERN__LIST_ELEMENT(typed), (index),            \
                      1 ? (const type *)(const type[]){__VA_ARGS__} : (typed)->items, \
                      (uint32_t)(sizeof((const type[]){__VA_ARGS__}) / sizeof(type)))

/** Removes elements of a QUERN_LIST and keeps the order of the others; see quern_list_remove. */
#define QUERN_LIST_REMOVE(typed, index, count) \
    quern_list_remove(&(typed)->list, QUERN__LIST_ELEMENT(typed), (index), (count))

/** Removes an element of a QUERN_LIST and puts the last one in its place; see quern_list_remove_swap. */
#define QUERN_LIST_REMOVE_SWAP(typed, index) \
    quern_list_remove_swap(&(typed)->list, QUERN__LIST_ELEMENT(typed), (index))

/** Removes the last element of a QUERN_LIST, and copies it to *out_item unless that is NULL; see quern_list_pop. */
#define QUERN_LIST_POP(typed, out_item) \
    quern_list_pop(&(typed)->list, QUERN__LIST_ELEMENT(typed), (out_item))

/** Sets the number of elements of a QUERN_LIST; see quern_list_resize. */
#define QUERN_LIST_RESIZE(typed, count) \
    quern_list_resize(&(typed)->list, QUERN__LIST_ELEMENT(typed), (count))

/** Makes room for elements of a QUERN_LIST; see quern_list_reserve. */
#define QUERN_LIST_RESERVE(typed, count) \
    quern_list_reserve(&(typed)->list, QUERN__LIST_ELEMENT(typed), (count))

/** Returns the elements of a QUERN_LIST for writing, as a pointer to `type`; see quern_list_write. */
#define QUERN_LIST_WRITE(typed, type)                       \
    ((void)sizeof(1 ? (const type *)NULL : (typed)->items), \
     (type *)quern_list_write(&(typed)->list, QUERN__LIST_ELEMENT(typed)))

#define QUERN__LIST_ELEMENT(typed) \
    _Generic((typed)->items, const quern_string *: QUERN_LIST_STRINGS, default: (uint32_t)sizeof *(typed)->items)

#endif

#ifdef __cplusplus
}
#endif

#endif
