/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_VIEW_H
#define QUERN_VIEW_H

/** @file
 * Views: ranges of rows of one chunk, with a plain array per component, which a compiler can vectorise. Systems get them
 * as the argument of their callback, and iterations of queries (<quern/query.h>) return them one by one.
 *
 *     static void move(quern_context *context, const quern_view *view)
 *     {
 *         Position *p = QUERN_COLUMN(view, 0, Position);
 *         const Velocity *v = QUERN_COLUMN(view, 1, const Velocity);
 *         const uint32_t count = view->count;
 *         for (uint32_t i = 0; i < count; i++) p[i].x += v[i].x;
 *     }
 *
 * Copy view->count to a local variable before the loop, in systems too. If the loop condition reads
 * view->count itself and the loop writes uint32_t values, the compiler must assume that these writes change
 * the count, and does not vectorise the loop. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a query or system uses the values of a component or resource. */
typedef enum quern_access {
    QUERN_ACCESS_NONE,  /**< The values are not accessed; the term only selects entities. */
    QUERN_ACCESS_READ,  /**< The values are read. */
    QUERN_ACCESS_WRITE, /**< The values are read and written. */
    /** For resources only. Jobs of one system write the resource at the same time, each its own part, and
     * the system guarantees that the result does not depend on their order. To other systems this is
     * QUERN_ACCESS_WRITE. */
    QUERN_ACCESS_WRITE_CONCURRENT
} quern_access;

/** What happened to the rows of a reaction's views; see reacts_to in quern_system_def. Combine with |. */
typedef enum quern_reaction_kind {
    QUERN_REACT_ADDED = 1,   /**< The rows match the terms now, and did not before. */
    QUERN_REACT_SET = 2,     /**< The rows match as before, and a command or call assigned a value. */
    QUERN_REACT_REMOVED = 4, /**< The rows no longer match; the view has copies of their values. */
    /** Only with QUERN_REACT_ADDED: rows that match when the system is added count as added. */
    QUERN_REACT_PRESENT = 8
} quern_reaction_kind;

/** What a callback can access in addition to its view; see <quern/context.h>. */
typedef struct quern_context quern_context;
/** A list of terms, and the archetypes that match them. */
typedef struct quern_query quern_query;
/** Position of a term's column in the chunks of one archetype; see <quern/view_parts.h>. */
typedef struct quern_view_column quern_view_column;

/** A range of rows of one chunk. Valid until the callback returns or the iterator moves on. */
typedef struct quern_view {
    /** Number of rows, at least 1; 0 only in a system without terms. Copy it before a loop (see above). */
    uint32_t count;
    /** Index of the view, from 0, in the order of the views of one system run or one iteration. In a
     * system, views that a change filter leaves out are counted. All views of one chunk share one ordinal
     * if terms leave rows out. */
    uint32_t ordinal;
    const quern_entity *entities; /**< The handles of the rows. */
    uint32_t fill_index; /**< In a fill, the index of the view's first row within the call; otherwise 0. */
    uint32_t first_row;  /**< Internal: index of the view's first row in the chunk. */
    uint32_t term_count; /**< Internal: number of terms. */
    uint32_t chunk_row;  /**< Internal: index of the chunk's first row in `memory`. */
    char *memory;        /**< Internal: the columns, of a run of chunks or of copies. */
    const struct quern__chunk
        *chunk; /**< Internal: the chunk; NULL if the view shows no rows of a world. */
    const quern_view_column *columns; /**< Internal: term_count columns. */
    const quern_query *query;         /**< Internal: the query. */
    quern_context *context;           /**< Internal: the context; NULL in a plain iteration. */
    uint64_t *versions; /**< Internal: versions of the chunk's columns; NULL if none are kept. */
    /** Internal: version that writes through this view get. 0 in a plain iteration, where
     * quern__query_write_version returns the version at the time of the write. */
    uint64_t version;
    /** Internal: addresses of the up-terms, by number of the up-term (QUERN__UP_STRIDE apart) and row of
     * the chunk. */
    const void *const *up;
    /** Internal: row bits of the chunk: for each component that can be disabled, the number of disabled
     * rows, and one bit per row, set if disabled. NULL if no component can be disabled. */
    uint64_t *row_bits;
    /** Internal: versions of the chunk's rows, used only with `versions`; NULL if none are kept. */
    uint64_t *row_versions;
    /** Internal, with row_versions: offset of a component's row versions, by version index. */
    const uint32_t *row_offsets;
    /** Internal: bits of the chunk's rows that belong to ranges; NULL if all rows of the view do. */
    const uint64_t *rows;
    /** Internal: in a view of set rows, addresses of the chunk's old values, by term; NULL if no term of the
     * query is old. */
    const void *const *old;
    uint32_t bit_column_words; /**< Internal: 64-bit words per component in `row_bits`. */
    uint16_t row_words;        /**< Internal: 64-bit words in `rows`. */
    /** Internal: nonzero if other views of the chunk may be processed at the same time. */
    uint16_t is_shared;
    uint32_t run_shift; /**< Internal: `memory` is a run of 2^run_shift chunks. */
    /** Internal: the low bits of the version of the structure to which the rows belong. */
    uint32_t structure;
} quern_view;

/** A callback that processes a view: the function of a system (quern_system_def), of a parallel query
 * (quern_query_parallel_for) or of a fill (quern_entity_create_filled).
 *
 * The callback may access the rows of the view through the columns that the terms declare, and what the
 * context offers (<quern/context.h>), but nothing else of the world. In systems and parallel queries it may
 * be called on any worker, and for several views at the same time. */
typedef void quern_view_callback(quern_context *context, const quern_view *view);

#ifdef __cplusplus
}
#endif

#include <quern/view_parts.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Returns the view.count values of a term declared with QUERN_ACCESS_WRITE, to read and write. Returns NULL for
 * tags, and for an optional component that the entities lack.
 *
 * If the term was not declared with QUERN_ACCESS_WRITE, the call is *refused*: the library reports it and returns
 * scratch memory instead of the values, so that the callback can continue; what the callback writes there
 * is lost. Scratch memory is zeroed, has room for view.count values, belongs to this worker alone, shares
 * no byte with the world, and is valid as long as the view. quern_view_write and quern_view_read do not
 * know the requested type, and make room for values of the world's largest component. A refused call
 * returns NULL only if memory is exhausted. <quern/context.h> documents the consequences of a refusal. */
static inline void *quern_view_write(const quern_view *view, uint32_t term)
{
    if (term >= view->term_count || view->columns[term].access != QUERN_ACCESS_WRITE)
        return quern__view_refuse(view, term, QUERN_ACCESS_WRITE, 0, "quern_view_write");
    if (view->columns[term].offset_bytes == 0) return 0;
    if (view->versions) quern__view_note(view, &view->columns[term]);
    return quern__view_column_at(view, term);
}

/** Returns the view.count values of a term declared with QUERN_ACCESS_READ or QUERN_ACCESS_WRITE, to read. Returns NULL
 * for the same terms as quern_view_write, and is refused if the term declares no access. For an old term
 * (quern_term_old), returns the old values, or NULL if the rows were not set. */
static inline const void *quern_view_read(const quern_view *view, uint32_t term)
{
    if (term >= view->term_count || view->columns[term].access == QUERN_ACCESS_NONE)
        return quern__view_refuse(view, term, QUERN_ACCESS_READ, 0, "quern_view_read");
    return quern__view_column_at(view, term);
}

/** Returns the column of a term as an array of a C type. A const type reads, like quern_view_read; a
 * non-const type writes, like quern_view_write.
 *
 *     Position *p = QUERN_COLUMN(view, 0, Position);
 *     const Velocity *v = QUERN_COLUMN(view, 1, const Velocity);
 *
 * The call is also refused if sizeof the type differs from the size of the component, and, in a build with
 * QUERN_CHECKS, if the component was registered with another type (QUERN_TYPE, QUERN_COMPONENT_REGISTER).
 * In C, write the type's name as in the registration; const, struct and namespaces make no difference. In C++,
 * an alias of the type does as well. */
#ifdef __cplusplus
#define QUERN_COLUMN(view, term, ...) \
    (quern__column<__VA_ARGS__>((view), (term), QUERN__SPELLED(__VA_ARGS__)))
#else
#define QUERN_COLUMN(view, term, ...)                      \
    ((__VA_ARGS__ *)quern__view_typed(                     \
        (view), (term), sizeof(__VA_ARGS__), #__VA_ARGS__, \
        _Generic(1 ? (__VA_ARGS__ *)0 : (void *)1, const void * : 1, void * : 0)))
#endif

/* ---------------------------------------------------------------------------------- rows that change */

/** Returns the values of a term, like quern_view_write, but marks no row as changed for change filters and
 * histories. Call quern_view_mark_row for each row that changes. Use it for components with row_changes
 * (quern_component_def) of which few rows change. For any other component, one marked row marks its chunk.
 */
static inline void *quern_view_write_rows(const quern_view *view, uint32_t term)
{
    if (term >= view->term_count || view->columns[term].access != QUERN_ACCESS_WRITE)
        return quern__view_refuse(view, term, QUERN_ACCESS_WRITE, 0, "quern_view_write_rows");
    return view->columns[term].offset_bytes != 0 ? quern__view_column_at(view, term) : 0;
}

/** Returns the column of a term as an array of a C type, like quern_view_write_rows, with the checks of
 * QUERN_COLUMN. Call quern_view_mark_row for each row that changes. */
#ifdef __cplusplus
#define QUERN_COLUMN_ROWS(view, term, ...) \
    (quern__column_rows<__VA_ARGS__>((view), (term), QUERN__SPELLED(__VA_ARGS__)))
#else
#define QUERN_COLUMN_ROWS(view, term, ...) \
    ((__VA_ARGS__ *)quern__view_rows_typed((view), (term), sizeof(__VA_ARGS__), #__VA_ARGS__))
#endif

/** Marks a row of the view as changed in the component of a term, for change filters and histories. The
 * term must be declared with QUERN_ACCESS_WRITE. Call it before or after the write. If the component has
 * row_changes, the row is marked, otherwise its chunk. The ranges of the view do not change. Returns true
 * if the row was marked; returns false and reports a message if `term` or `row` is out of range, the term
 * is not writable, or the entities lack the component. */
static inline bool quern_view_mark_row(const quern_view *view, uint32_t term, uint32_t row)
{
    if (term >= view->term_count || row >= view->count ||
        view->columns[term].access != QUERN_ACCESS_WRITE || !view->columns[term].present)
        return quern__view_mark_row(view, term, row);
    if (view->versions) quern__view_note_row(view, &view->columns[term], row);
    return true;
}

/** Returns the view.count addresses of an up-term's values (quern_term_up), valid as long as the view. An
 * address is NULL only if the term is optional. If the term is no up-term, the call is refused, and all
 * addresses are those of one zeroed scratch value (see quern_view_write). */
static inline const void *const *quern_view_up(const quern_view *view, uint32_t term)
{
    if (!quern__view_is_up(view, term)) return quern__view_refuse_up(view, term, 0, "quern_view_up");
    return view->up + view->columns[term].version_index * QUERN__CAST(size_t, QUERN__UP_STRIDE) +
           view->first_row;
}

/** Returns the addresses of an up-term's values, like quern_view_up, as pointers to a C type:
 *
 *     const World *const *parents = QUERN_UP(view, 2, World);
 *
 * Refused like QUERN_COLUMN if the type is not that of the component. */
#ifdef __cplusplus
#define QUERN_UP(view, term, ...) (quern__up<__VA_ARGS__>((view), (term), QUERN__SPELLED(__VA_ARGS__)))
#else
#define QUERN_UP(view, term, ...) \
    ((const __VA_ARGS__ *const *)quern__view_up_typed((view), (term), sizeof(__VA_ARGS__), #__VA_ARGS__))
#endif

/** Returns whether the entities of the view have the component of an optional or ANY term; for an up-term,
 * whether they have a target in its relation. */
static inline bool quern_view_has(const quern_view *view, uint32_t term)
{
    return term < view->term_count && view->columns[term].present;
}

/* ---------------------------------------------------------------------------------------- enabled */

/** Enables or disables a component in one row of the view. The change applies immediately to later
 * systems and views; the ranges of this view, and the other views of its chunk, stay as they are. The term
 * must be declared with QUERN_ACCESS_WRITE, and the component must be registered with can_disable
 * (quern_component_def). For change filters the call is a change of the row (of the chunk, if the component
 * has no row_changes), even if the row was in that state already. Returns true on success; returns false
 * and reports a message if the call is wrong. */
static inline bool quern_view_set_enabled(const quern_view *view, uint32_t term, uint32_t row, bool enabled)
{
    const quern_view_column *column;
    uint64_t *bit_column, *word, change;
    uint32_t at;
    if (term >= view->term_count || row >= view->count || view->is_shared)
        return quern__view_set_enabled(view, term, row, enabled);
    column = &view->columns[term];
    if (column->access != QUERN_ACCESS_WRITE || column->present < 2 || !view->row_bits)
        return quern__view_set_enabled(view, term, row, enabled);
    at = view->first_row + row;
    bit_column = view->row_bits + (column->present - 2u) * QUERN__CAST(size_t, view->bit_column_words);
    word = bit_column + 1 + at / 64;
    change = (*word >> at % 64 & 1) ^ QUERN__CAST(uint64_t, !enabled);
    *word ^= change << at % 64;
    *bit_column += enabled ? 0 - change : change;
    if (view->versions) quern__view_note_row(view, column, row);
    return true;
}

/** Returns whether a row of the view has the component of a term and has it enabled. A component that
 * cannot be disabled is always enabled. The term must be on the row itself. Returns false and reports a
 * message if the call is wrong. */
static inline bool quern_view_is_enabled(const quern_view *view, uint32_t term, uint32_t row)
{
    const quern_view_column *column;
    uint32_t at;
    if (term >= view->term_count || row >= view->count || view->columns[term].present < 2 ||
        !view->row_bits || view->is_shared)
        return quern__view_is_enabled(view, term, row);
    column = &view->columns[term];
    at = view->first_row + row;
    return !(view->row_bits[(column->present - 2u) * QUERN__CAST(size_t, view->bit_column_words) + 1 +
                            at / 64] >>
                 at % 64 &
             1);
}

/** A range of consecutive rows of a view; see quern_view_next_range. Must be zeroed before the first call. */
typedef struct quern_row_range {
    uint32_t first QUERN__ZERO; /**< Index of the first row, in the view. */
    uint32_t count QUERN__ZERO; /**< Number of rows, at least 1. */
    uint64_t bits QUERN__ZERO; /**< Internal: bits of the current word's rows that were not returned yet. */
    uint32_t word QUERN__ZERO; /**< Internal: index of the next word of view.rows. */
} quern_row_range;

/** Finds the next range of rows that the terms select, in a view that has all rows of its chunk
 * (QUERN_SYSTEM_WHOLE_CHUNKS, whole_chunks in quern_query_def). Returns false if there are no more.
 *
 *     quern_row_range run = {0};
 *     while (quern_view_next_range(view, &run))
 *         for (uint32_t i = run.first; i < run.first + run.count; i++) p[i].x += v[i].x;
 *
 * Ranges are in ascending order and maximal: no two of them are adjacent. In a view of any other kind, the
 * only range is the whole view. */
static inline bool quern_view_next_range(const quern_view *view, quern_row_range *run)
{
    uint64_t bits = run->bits, rest;
    uint32_t first, end;
    if (!view->rows) {
        run->first = 0;
        run->count = run->word ? 0 : view->count;
        run->word = 1;
        return run->count > 0;
    }
    for (; bits == 0; bits = view->rows[run->word++])
        if (run->word == view->row_words) return false;
    first = (run->word - 1) * 64 + quern__lowest_bit(bits);
    rest =
        /* the carry clears the bits of the range and sets the first bit after it */
        bits + (bits & (0 - bits));
    if (rest != 0) {
        end = (run->word - 1) * 64 + quern__lowest_bit(rest);
        bits &= rest;
    } else {
        end = run->word * 64;
        for (bits = ~UINT64_C(0); ~bits == 0 && run->word < view->row_words;) {
            bits = view->rows[run->word++];
            end += ~bits != 0 ? quern__lowest_bit(~bits) : 64;
        }
        /* clears the bits that belong to the range; no bit is left if the word had none but these */
        bits &= bits + 1;
    }
    run->bits = bits;
    run->first = first - view->first_row;
    run->count = end - first;
    return true;
}

/** The rows of a view that the terms select, one at a time; see QUERN_EACH_ROW. */
typedef struct quern_row_iterator {
    uint64_t bits;         /**< Internal: bits of 64 rows that were not returned yet. */
    const uint64_t *words; /**< Internal: next word of view.rows; NULL: all rows are selected. */
    uint32_t base;         /**< Internal: row of the lowest of these bits. */
    uint32_t left;         /**< Internal: number of words left, or without words, of rows. */
    bool is_running;       /**< Internal: false after the loop of QUERN_EACH_ROW. */
} quern_row_iterator;

/** Starts iterating the rows that the terms select, in a view that has all rows of its chunk
 * (QUERN_SYSTEM_WHOLE_CHUNKS, whole_chunks in quern_query_def). In any other view, all rows. */
static inline quern_row_iterator quern_view_iterate_rows(const quern_view *view)
{
    quern_row_iterator it;
    it.bits = 0;
    it.words = view->rows;
    it.base = (view->rows ? 0 - view->first_row : 0) - 64;
    it.left = view->rows ? view->row_words : view->count;
    it.is_running = true;
    return it;
}

/** Sets *out_row to the index of the next row, in ascending order. Returns false if there are no more. */
static inline bool quern_view_next_row(quern_row_iterator *iterator, uint32_t *out_row)
{
    while (iterator->bits == 0) {
        uint32_t rows = iterator->left < 64 ? iterator->left : 64;
        if (iterator->left == 0) return false;
        iterator->base += 64;
        iterator->bits = iterator->words ? *iterator->words++ : ~UINT64_C(0) >> (64 - rows);
        iterator->left -= iterator->words ? 1 : rows;
    }
    *out_row = iterator->base + quern__lowest_bit(iterator->bits);
    iterator->bits &= iterator->bits - 1;
    return true;
}

/** A loop over the selected rows of a view, by the bits of its row mask; `row` is a uint32_t:
 *
 *     QUERN_EACH_ROW(view, i) p[i].x += v[i].x;
 *
 * Use it if few or scattered rows are selected, as by a change filter with row_changes: a range costs more
 * than a bit. If most rows are, quern_view_next_range is faster, because a compiler vectorises its loops.
 * break and continue work as in any loop. */
/* NOLINTBEGIN(bugprone-macro-parentheses): the argument is a declarator */
#define QUERN_EACH_ROW(view, row)                                              \
    for (quern_row_iterator quern__rows_##row = quern_view_iterate_rows(view); \
         quern__rows_##row.is_running; quern__rows_##row.is_running = false)   \
        for (uint32_t row; quern_view_next_row(&quern__rows_##row, &row);)
/* NOLINTEND(bugprone-macro-parentheses) */

#ifdef __cplusplus
}
#endif

#endif
