/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_QUERY_H
#define QUERN_QUERY_H

/* Queries find the entities that have some components and lack others, and hand them out as *views*:
 * runs of rows of one chunk, with one plain array per component, which a compiler can vectorise.
 *
 *     quern_term terms[] = {quern_term_write(position), quern_term_read(velocity)};
 *     ...
 *     quern_query_iterator it = quern_query_iterate(query);
 *     while (quern_query_next(&it)) {
 *         Position *p = quern_view_write(&it.view, 0);
 *         const Velocity *v = quern_view_read(&it.view, 1);
 *         const uint32_t count = it.view.count;
 *         for (uint32_t i = 0; i < count; i++) p[i].x += v[i].x;
 *     }
 *
 * Copy the count, in systems too: a loop that counts to it in place and writes values of uint32_t might
 * write the count, for all that the compiler knows, and is not vectorised. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_TERMS 32 /* per query or system */

/* ------------------------------------------------------------------------------------------ terms */

typedef enum quern_match {
    QUERN_MATCH_ALL = 1,  /* the entity has it; what 0 counts as, too */
    QUERN_MATCH_NONE,     /* the entity does not have it */
    QUERN_MATCH_OPTIONAL, /* either way; the view tells */
    QUERN_MATCH_ANY       /* the entity has at least one of the query's ANY terms; the view tells which */
} quern_match;

typedef enum quern_access {
    QUERN_NO_ACCESS, /* matched only */
    QUERN_READ,
    QUERN_WRITE, /* read and write */
    /* Resources only: chunk jobs of one system write at the same time, each its own part, and the
     * system vouches that the result does not depend on their order. Other systems see a write. */
    QUERN_WRITE_CONCURRENT
} quern_access;

/* One term of a query. Its index is how a view is asked for the column. One that is set and names no component
 * is refused. */
typedef struct quern_term {
    quern_component component;
    quern_match match;
    quern_access access;
    bool changed; /* see quern_term_changed */
} quern_term;

static inline quern_term quern_term_make(quern_component component, quern_match match, quern_access access)
{
    quern_term term;
    term.component = component;
    term.match = match;
    term.access = access;
    term.changed = false;
    return term;
}

static inline quern_term quern_term_read(quern_component component)
{
    return quern_term_make(component, QUERN_MATCH_ALL, QUERN_READ);
}

static inline quern_term quern_term_write(quern_component component)
{
    return quern_term_make(component, QUERN_MATCH_ALL, QUERN_WRITE);
}

/* The entity has it; the values are not touched (tags). */
static inline quern_term quern_term_with(quern_component component)
{
    return quern_term_make(component, QUERN_MATCH_ALL, QUERN_NO_ACCESS);
}

static inline quern_term quern_term_without(quern_component component)
{
    return quern_term_make(component, QUERN_MATCH_NONE, QUERN_NO_ACCESS);
}

static inline quern_term quern_term_optional(quern_component component, quern_access access)
{
    return quern_term_make(component, QUERN_MATCH_OPTIONAL, access);
}

static inline quern_term quern_term_any(quern_component component, quern_access access)
{
    return quern_term_make(component, QUERN_MATCH_ANY, access);
}

/* Makes a term a filter, too: only chunks come to view in which the component may have changed since the
 * system ran latest, or the query was iterated latest; with several such terms, any of these components.
 * The first time, all do.
 *
 * A chunk counts as changed when a view of it was asked for the component by quern_view_write, when
 * quern_entity_set or a command gave it a value, by quern_entity_mark_changed, and when entities came to
 * the chunk or moved within it; not by writing through pointers from quern_entity_get. What a system or a
 * loop over the query itself writes is not new to it (to a loop it may be when other queries with filters
 * were iterated inside it).
 * In a system the filter is a read access: changes that systems before it made in the same frame are
 * there. */
static inline quern_term quern_term_changed(quern_term term)
{
    term.changed = true;
    return term;
}

/* ------------------------------------------------------------------------------------------- view */

typedef struct quern_context quern_context;
typedef struct quern_query quern_query;

/* Where a term's column lies in the chunks of one archetype. Internal; read through quern_view_. */
typedef struct quern_view_column {
    uint16_t offset_bytes; /* from the chunk; 0: the term has no values here */
    uint16_t size_bytes;   /* of one value */
    uint8_t access;        /* quern_access */
    uint8_t present;       /* the archetype has the component */
    uint8_t version_index; /* of the column among the chunk's versions */
} quern_view_column;

/* A run of rows of one chunk. Good until the callback returns or the iterator moves on. */
typedef struct quern_view {
    uint32_t count; /* rows, at least 1 (0 only in a system without terms); loops copy it, see above */
    /* 0, 1, 2 … over the views of one system run or one iteration, in order; in a system, views that its
     * filters leave out are counted */
    uint32_t ordinal;
    const quern_entity *entities; /* count handles */
    uint32_t first; /* in a fill: the number, within the call, of the first row; elsewhere 0 */
    /* internal */
    uint32_t first_row;
    uint32_t term_count;
    char *chunk;
    const quern_view_column *columns; /* term_count */
    const quern_query *query;
    quern_context *context; /* NULL in a plain iteration */
    uint64_t *versions;     /* of the chunk's columns; NULL: not kept */
    uint64_t version;       /* of what is written; 0: in a plain iteration, where it depends on when */
} quern_view;

/* What is done with a view: the function of a system (quern_system_def), a parallel query
 * (quern_query_parallel_for) or a fill (quern_entity_create_filled). It touches the rows of the view
 * through the columns that the terms declare, what else it may have through the context
 * (<quern/context.h>), and nothing more. In systems and parallel queries it may run on any worker, at the
 * same time as on other views. */
typedef void quern_kernel(quern_context *context, const quern_view *view);

/* Says why a column was refused (log, assert handler, error message) and returns NULL. */
QUERN_API void *quern__view_refuse(const quern_view *view, uint32_t term, quern_access access);

/* The version of what is written now in an iteration of the query. */
QUERN_API uint64_t quern__query_write_version(const quern_query *query);

static inline void *quern__view_column_at(const quern_view *view, uint32_t term)
{
    const quern_view_column *column = &view->columns[term];
    if (column->offset_bytes == 0) return 0;
    return view->chunk + column->offset_bytes + (size_t)view->first_row * column->size_bytes;
}

/* The view.count values of a term declared with QUERN_WRITE; NULL when the entities lack an optional
 * component, for tags, and, refused with a message, when the term was not declared so. */
static inline void *quern_view_write(const quern_view *view, uint32_t term)
{
    if (term >= view->term_count || view->columns[term].access != QUERN_WRITE)
        return quern__view_refuse(view, term, QUERN_WRITE);
    if (view->columns[term].offset_bytes == 0) return 0;
    if (view->versions)
        view->versions[view->columns[term].version_index] =
            view->version ? view->version : quern__query_write_version(view->query);
    return quern__view_column_at(view, term);
}

/* The same, to read: for terms declared with QUERN_READ or QUERN_WRITE. */
static inline const void *quern_view_read(const quern_view *view, uint32_t term)
{
    if (term >= view->term_count || view->columns[term].access == QUERN_NO_ACCESS)
        return quern__view_refuse(view, term, QUERN_READ);
    return quern__view_column_at(view, term);
}

/* Whether the entities of this view have the component of a term (optional, any). */
static inline bool quern_view_has(const quern_view *view, uint32_t term)
{
    return term < view->term_count && view->columns[term].present;
}

/* ------------------------------------------------------------------------------------------ query */

typedef struct quern_query_def {
    quern_term terms[QUERN_MAX_TERMS]; /* at least one */
} quern_query_def;

/* Errors: NULL_ARGUMENT, INVALID_ARGUMENT, UNKNOWN_COMPONENT, DUPLICATE_COMPONENT, WORLD_LOCKED,
 * OUT_OF_MEMORY. Main thread, between frames. */
QUERN_API quern_result quern_query_create(quern_world *world, const quern_query_def *def,
                                          quern_query **out_query);

/* Between frames; not while it is iterated. NULL is allowed. */
QUERN_API void quern_query_destroy(quern_query *query);

/* How many entities match now. Between frames; 0, with a message, when memory for new matches is
 * missing. */
QUERN_API uint64_t quern_query_count(quern_query *query);

/* Internal: a chunk that a walk comes to. */
typedef struct quern__chunk_entry {
    char *chunk;
    const quern_view_column *columns;
    uint32_t count;
    uint32_t entities_offset_bytes;
    const struct quern__versions *versions; /* of its archetype; NULL: not kept */
    uint32_t slot;
} quern__chunk_entry;

/* Walks the matches in order of archetype, chunk and row. */
typedef struct quern_query_iterator {
    quern_view view;
    quern_result result; /* QUERN_OK, or why the iteration ended early */
    /* internal */
    quern_query *query;
    const quern__chunk_entry *next_entry, *end_entry; /* both NULL: the entries are not known beforehand */
    const uint64_t *current_version;                  /* of the world's structure, */
    uint64_t expected_version;                        /* and what it must be */
    const bool *is_locked;                            /* whether a frame runs on the world */
    uint64_t seen_version;                            /* filters let pass what is newer */
    uint32_t view_count;                              /* how many were handed out */
    uint32_t match_index;
    uint32_t chunk_index;
} quern_query_iterator;

/* Starts an iteration on the thread that owns the world, between frames. Filters on changes take it for a
 * look at everything, even when it is left early; but not when it is refused. */
QUERN_API quern_query_iterator quern_query_iterate(quern_query *query);

/* The part of quern_query_next that finds the next entry, or says why there is none. */
QUERN_API bool quern__query_next(quern_query_iterator *iterator);

/* Lets the view tell filters what is written, at an entry whose archetype keeps change versions. */
QUERN_API void quern__query_track(quern_query_iterator *iterator, const quern__chunk_entry *entry);

#define QUERN__PREFETCH_ENTRIES 4 /* how far ahead */

/* Asks for the first line of each column of a chunk that will be come to soon: between many small
 * archetypes there is no order in which the processor could foresee them. */
static inline void quern__query_prefetch(const quern__chunk_entry *entry, uint32_t term_count)
{
#if defined(__GNUC__) || defined(__clang__)
    for (uint32_t i = 0; i < term_count; i++)
        __builtin_prefetch(entry->chunk + entry->columns[i].offset_bytes);
#else
    (void)entry;
    (void)term_count;
#endif
}

/* Moves to the next view; false at the end. When entities were created, destroyed or changed their
 * components meanwhile, the iteration ends with result STRUCTURE_CHANGED: collect first, change after.
 * Walking a query again while the structure stays as it is is cheapest. */
static inline bool quern_query_next(quern_query_iterator *iterator)
{
    const quern__chunk_entry *entry;
    if (iterator == 0 || iterator->next_entry == iterator->end_entry || *iterator->is_locked ||
        *iterator->current_version != iterator->expected_version)
        return quern__query_next(iterator);
    entry = iterator->next_entry++;
    if (iterator->end_entry - entry > QUERN__PREFETCH_ENTRIES)
        quern__query_prefetch(entry + QUERN__PREFETCH_ENTRIES, iterator->view.term_count);
    iterator->view.count = entry->count;
    iterator->view.ordinal = iterator->view_count++;
    iterator->view.entities =
        (const quern_entity *)(const void *)(entry->chunk + entry->entities_offset_bytes);
    iterator->view.first_row = 0;
    iterator->view.chunk = entry->chunk;
    iterator->view.columns = entry->columns;
    iterator->view.versions = 0;
    if (entry->versions) quern__query_track(iterator, entry);
    return true;
}

#ifdef __cplusplus
}
#endif

#endif
