/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_VIEW_H
#include <quern/view.h> /* includes this header behind the type of views */
#elif !defined(QUERN_VIEW_PARTS_H)
#define QUERN_VIEW_PARTS_H

/** @file
 * Internal: what the inline functions and macros of <quern/view.h> and <quern/query.h> consist of. Programs neither
 * include this header nor use its names. */

#ifdef __cplusplus
extern "C" {
#endif

/** Position of a term's column in the chunks of one archetype. */
struct quern_view_column {
    /** Offset in a run of one chunk; 0 if the term has no values here. With a nonzero size_bytes, an
     * offset of 0 denotes an up-term, which has no access. */
    uint16_t offset_bytes;
    uint16_t size_bytes; /**< Size of one value. */
    uint8_t access;      /**< A quern_access. */
    /** Nonzero if the archetype has the component, or for an up-term, the relation. Values from 2 on mean
     * that the component can be disabled; its row bits are then number `present - 2`. */
    uint8_t present;
    /** Index of the column's version in the chunk's versions; for an up-term, its number among the
     * up-terms. */
    uint8_t version_index;
    uint8_t is_checked; /**< In a build with QUERN_CHECKS: whether type names are compared, too. */
};

/* Reports why a column was refused, and returns scratch memory for the rows of the view.
 * size_bytes: size of one value, or 0 for the size of the world's largest component. */
QUERN_API void *quern__view_refuse(const quern_view *view, uint32_t term, quern_access access,
                                   size_t size_bytes, const char *function);

/* Returns the version that writes in an iteration of the query get now. */
QUERN_API uint64_t quern__query_write_version(const quern_query *query);

/* Records that the column was written in the rows of the view, in a chunk that has row versions.
 */
QUERN_API void quern__view_note_rows(const quern_view *view, const quern_view_column *column,
                                     uint64_t version);

/* Returns the version that writes through the view get now. */
static inline uint64_t quern__view_version(const quern_view *view)
{
    return view->version ? view->version : quern__query_write_version(view->query);
}

/* Raises a version that other threads may raise to the same value at the same time: row ranges of one chunk
 * can be in views on several threads. Relaxed, because readers wait for the threads that write. On 32-bit processors,
 * compilers may need a library for atomic operations on 64 bits; volatile accesses store the same halves there. */
static inline void quern__version_raise(uint64_t *version, uint64_t value)
{
#if (defined(__GNUC__) || defined(__clang__)) && UINTPTR_MAX > 0xFFFFFFFFu
    if (__atomic_load_n(version, __ATOMIC_RELAXED) < value)
        __atomic_store_n(version, value, __ATOMIC_RELAXED);
#else
    volatile uint64_t *at = version;
    if (*at < value) *at = value;
#endif
}

/* Records that the column may be written in all rows of the view. Precondition: view->versions.
 */
static inline void quern__view_note(const quern_view *view, const quern_view_column *column)
{
    if (view->row_versions)
        quern__view_note_rows(view, column, quern__view_version(view));
    else
        quern__version_raise(&view->versions[column->version_index], quern__view_version(view));
}

/* Records that the component changed in one row. Precondition: view->versions. */
static inline void quern__view_note_row(const quern_view *view, const quern_view_column *column,
                                        uint32_t row)
{
    const uint64_t version = quern__view_version(view);
    uint64_t *of_chunk = &view->versions[column->version_index];
    quern__version_raise(of_chunk, version);
    if (view->row_versions && view->row_offsets[column->version_index] != 0xFFFFFFFFu) {
        uint64_t *of_rows = view->row_versions + view->row_offsets[column->version_index];
        uint64_t *of_group = of_rows - 1 - (view->first_row + row) / 8;
        of_rows[view->first_row + row] = version;
        quern__version_raise(of_group, version);
    }
}

/* Returns the view's first value in a column. */
static inline void *quern__view_values_at(const quern_view *view, const quern_view_column *column)
{
    return view->memory + (QUERN__CAST(size_t, column->offset_bytes) << view->run_shift) +
           (QUERN__CAST(size_t, view->chunk_row) + view->first_row) * column->size_bytes;
}

static inline void *quern__view_column_at(const quern_view *view, uint32_t term)
{
    const quern_view_column *column = &view->columns[term];
    return column->offset_bytes != 0 ? quern__view_values_at(view, column) : 0;
}

/* Implements QUERN_COLUMN for a term that does not declare the access: returns old values, or refuses
 * the call. */
QUERN_API void *quern__view_typed_refused(const quern_view *view, uint32_t term, size_t size_bytes,
                                          const char *type_name, bool reads);

/* The uncommon cases of QUERN_COLUMN. Compares type names, returns NULL for tags and absent
 * components, and refuses a wrong type. */
QUERN_API void *quern__view_typed_checked(const quern_view *view, uint32_t term, size_t size_bytes,
                                          const char *type_name, bool reads);

/* Implements QUERN_COLUMN. */
static inline void *quern__view_typed(const quern_view *view, uint32_t term, size_t size_bytes,
                                      const char *type_name, bool reads)
{
    const quern_view_column *column;
    if (term >= view->term_count || (reads ? view->columns[term].access == QUERN_ACCESS_NONE
                                           : view->columns[term].access != QUERN_ACCESS_WRITE))
        return quern__view_typed_refused(view, term, size_bytes, type_name, reads);
    column = &view->columns[term];
    if (size_bytes == 0 || column->size_bytes != size_bytes || column->is_checked)
        return quern__view_typed_checked(view, term, size_bytes, type_name, reads);
    if (!reads && view->versions) quern__view_note(view, column);
    return quern__view_values_at(view, column);
}

/* The uncommon cases of the inline functions below. */
QUERN_API void *quern__view_rows_checked(const quern_view *view, uint32_t term, size_t size_bytes,
                                         const char *type_name);
QUERN_API bool quern__view_mark_row(const quern_view *view, uint32_t term, uint32_t row);

/* Implements QUERN_COLUMN_ROWS. */
static inline void *quern__view_rows_typed(const quern_view *view, uint32_t term, size_t size_bytes,
                                           const char *type_name)
{
    const quern_view_column *column;
    if (term >= view->term_count || view->columns[term].access != QUERN_ACCESS_WRITE)
        return quern__view_refuse(view, term, QUERN_ACCESS_WRITE, size_bytes, "QUERN_COLUMN_ROWS");
    column = &view->columns[term];
    if (size_bytes == 0 || column->size_bytes != size_bytes || column->is_checked)
        return quern__view_rows_checked(view, term, size_bytes, type_name);
    return quern__view_values_at(view, column);
}

/* Distance between the addresses of two up-terms, in addresses. It exceeds the number of rows of
 * a chunk, and is no power of two, so that the addresses of several up-terms do not map to the same cache
 * sets. */
#define QUERN__UP_STRIDE 2072

/* Reports why the addresses of an up-term were refused, and returns view.count addresses of one
 * zeroed scratch value. size_bytes: as in quern__view_refuse. */
QUERN_API const void *const *quern__view_refuse_up(const quern_view *view, uint32_t term, size_t size_bytes,
                                                   const char *function);

/* The uncommon cases of QUERN_UP. Compares type names, and refuses a wrong type. */
QUERN_API const void *const *quern__view_up_checked(const quern_view *view, uint32_t term,
                                                    size_t size_bytes, const char *type_name);

/* Returns whether the term is an up-term. */
static inline bool quern__view_is_up(const quern_view *view, uint32_t term)
{
    return term < view->term_count && view->columns[term].offset_bytes == 0 &&
           view->columns[term].size_bytes != 0;
}

/* Implements QUERN_UP. */
static inline const void *quern__view_up_typed(const quern_view *view, uint32_t term, size_t size_bytes,
                                               const char *type_name)
{
    if (!quern__view_is_up(view, term)) return quern__view_refuse_up(view, term, size_bytes, "QUERN_UP");
    if (view->columns[term].size_bytes != size_bytes || view->columns[term].is_checked)
        return quern__view_up_checked(view, term, size_bytes, type_name);
    return view->up + view->columns[term].version_index * QUERN__CAST(size_t, QUERN__UP_STRIDE) +
           view->first_row;
}

/* The uncommon cases of the inline functions below, wrong calls included. */
QUERN_API bool quern__view_set_enabled(const quern_view *view, uint32_t term, uint32_t row, bool enabled);
QUERN_API bool quern__view_is_enabled(const quern_view *view, uint32_t term, uint32_t row);

/* Returns the index of the lowest set bit. Precondition: bits is not 0. */
static inline uint32_t quern__lowest_bit(uint64_t bits)
{
#if defined(__GNUC__) || defined(__clang__)
    return QUERN__CAST(uint32_t, __builtin_ctzll(bits));
#else
    uint32_t number = 0;
    while (!(bits >> number & 1))
        number++;
    return number;
#endif
}

/* ----------------------------------------------------------------------------------------- iterations */

struct quern_query_iterator;

/* A chunk in the list of chunks that an iteration visits. */
typedef struct quern__chunk_entry {
    uint32_t count; /* copied to the view, like the members up to `columns` */
    uint32_t ordinal;
    const quern_entity *entities;
    uint32_t run_shift;
    uint32_t chunk_row;
    char *memory;
    const struct quern__chunk *chunk;
    const quern_view_column *columns;
    /* archetype of the chunk, if it has versions or row bits; otherwise NULL */
    const struct quern__archetype *tracking_archetype;
    uint32_t slot;
    bool fetches_next; /* whether the next entry is prefetched while this one is processed */
    bool is_plain;     /* whether fetches_next is false, and tracking_archetype is NULL in the whole list */
} quern__chunk_entry;

/* A set of rows of one chunk, one bit per row. */
typedef struct quern__row_mask {
    uint64_t words[32]; /* only the first word_count are valid */
    uint32_t word_count;
} quern__row_mask;

/* The part of quern_query_next that finds the next chunk without a list, or the reason why the
 * iteration ends. */
QUERN_API bool quern__query_next(struct quern_query_iterator *iterator);

/* Processes an entry that is not plain: sets the versions and row bits of the view, and
 * prefetches the next entry. */
QUERN_API void quern__query_attend(struct quern_query_iterator *iterator, const quern__chunk_entry *entry);

/* Distance of the prefetch, in entries. The list is padded with this many copies of its last
 * entry. */
#define QUERN__PREFETCH_ENTRIES 4

/* Prefetches the first cache line of each column of an entry. Many small archetypes are visited
 * in an order that a hardware prefetcher cannot predict. */
static inline void quern__query_prefetch(const quern__chunk_entry *entry, uint32_t term_count)
{
#if defined(__GNUC__) || defined(__clang__)
    for (uint32_t i = 0; i < term_count; i++)
        __builtin_prefetch(entry->memory +
                           (QUERN__CAST(size_t, entry->columns[i].offset_bytes) << entry->run_shift) +
                           QUERN__CAST(size_t, entry->chunk_row) * entry->columns[i].size_bytes);
#else
    (void)entry;
    (void)term_count;
#endif
}

#ifdef __cplusplus
}

template <typename T>
inline const T *const *quern__up(const quern_view *view, uint32_t term, const char *type_name)
{
    return static_cast<const T *const *>(
        quern__view_up_typed(view, term, quern__type_of<std::remove_const_t<T>>::size_bytes, type_name));
}

template <typename T>
inline T *quern__column_rows(const quern_view *view, uint32_t term, const char *type_name)
{
    return static_cast<T *>(quern__view_rows_typed(view, term, quern__type_of<T>::size_bytes, type_name));
}

template <typename T> inline T *quern__column(const quern_view *view, uint32_t term, const char *type_name)
{
    return static_cast<T *>(quern__view_typed(view, term,
                                              quern__type_of<std::remove_const_t<T>>::size_bytes, type_name,
                                              std::is_const<T>::value));
}
#endif

#endif
