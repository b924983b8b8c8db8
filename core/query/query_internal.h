/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_QUERY_INTERNAL_H
#define QUERN_CORE_QUERY_QUERY_INTERNAL_H

/* Queries: which archetypes match some terms, and where the terms' columns lie in each of them. Matches are
 * cached; refreshing looks only at archetypes that appeared since the last time, of these only at those
 * that have the query's rarest component. */

#include "core/base/array.h"
#include "core/query/scope.h"
#include "core/storage/storage.h"

#include <quern/commands.h>
#include <quern/jobs.h>
#include <quern/query.h>

typedef struct quern_query quern__query;

/* An archetype that matches. */
typedef struct quern__query_match {
    quern__archetype *archetype;
    quern_view_column *columns; /* one per term, in a block of the query */
} quern__query_match;

struct quern_query {
    quern_world *world; /* NULL for a system's own query */
    quern__storage *storage;
    quern_term terms[QUERN_MAX_TERMS];
    uint32_t term_count;
    uint32_t filter_count;              /* terms that are `changed` */
    uint32_t row_term_count;            /* terms that ask for what can be disabled, and not for either */
    uint8_t row_terms[QUERN_MAX_TERMS]; /* which */
    uint64_t row_filters;               /* terms that are filters by row, a bit for each */
    bool picks_rows;              /* row terms, row filters or up-terms let single rows stay, see rows.h */
    bool by_runs;                 /* a view has all rows of its chunk, and tells which are meant */
    bool names_disabled;          /* otherwise entities that are disabled are left out */
    uint32_t up_count;            /* terms that are up-terms */
    struct quern__ups *ups;       /* what these need, see up.h; NULL: there are none */
    struct quern__target *target; /* of its target term, see target.h; NULL: there is none */
    uint64_t seen_version;        /* of the last look of a query with filters */
    uint32_t driver;              /* component index of the rarest ALL term, or QUERN__NO_DRIVER */
    uint32_t scanned_count;       /* candidates looked at: of the driver's archetypes, without one of all */
    QUERN__ARRAY(quern__query_match) matches; /* ascending by archetype */
    /* Columns of QUERN__QUERY_BLOCK_MATCHES matches each: close together, and never moved, since views
     * point at them. */
    QUERN__ARRAY(quern_view_column *) blocks;
    /* The chunks with rows, in order, when the structure's version was entries_version. They are listed
     * when a second walk begins at the same version: so a walk that a change follows costs nothing besides.
     * */
    QUERN__ARRAY(quern__chunk_entry) entries;
    uint64_t entries_version;      /* QUERN__NO_VERSION: never */
    uint64_t walked_version;       /* when the last walk began */
    uint32_t removed_count;        /* how often matches have been taken out: who counts them starts again */
    quern__scope scope;            /* of iterations; a system's and a parallel query's have their own */
    quern__accessor accessor;      /* of the iteration that began last */
    quern__query *previous, *next; /* in the storage's list */
};

#define QUERN__NO_DRIVER  UINT32_MAX
#define QUERN__NO_VERSION UINT64_MAX

enum { QUERN__QUERY_BLOCK_MATCHES = 64 };

/* What a kernel gets as its context from others than systems. */
typedef struct quern__plain_context {
    _Alignas(128) quern__scope scope; /* first: where it is no system's, a quern_context is one of these */
    const quern_world *world;
    void *user_data;
    quern_jobs *jobs;
    const void *thread;       /* that runs the kernel now, or NULL */
    quern_commands *commands; /* NULL: none can be recorded */
    uint32_t worker_index;
    uint32_t ordinal;      /* of the view; the key of its stream */
    uint64_t first_serial; /* the number of the stream of view 0 */
    bool has_stream;       /* the recorder is set to this view's stream */
} quern__plain_context;

/* The scope of a view; NULL for a view that was made by hand. */
static inline quern__scope *quern__scope_of(const quern_view *view)
{
    if (view->context != NULL) return (quern__scope *)view->context;
    return view->query != NULL ? (quern__scope *)(uintptr_t)&view->query->scope : NULL;
}

/* The component that decides whether an archetype matches a term: of an up-term, the relation's. */
static inline uint32_t quern__term_index(const quern_term *term)
{
    return quern__component_index(
        term->reach == QUERN_REACH_ROW ? term->component : quern_relation_component(term->relation));
}

/* Checks and copies the terms, and enters the query into the storage's list. Errors: as quern_query_create.
 * Nothing to release on failure. Filters have seen nothing yet; by_runs is the caller's to set. */
quern_result quern__query_init(quern__query *query, quern__storage *storage, const quern_term *terms,
                               uint32_t term_count);

/* Lets rows stay whether components are enabled or not: what happens to entities happens to them either
 * way.
 * */
static inline void quern__query_take_either(quern__query *query)
{
    query->row_term_count = 0;
    query->picks_rows = query->up_count > 0 || query->row_filters != 0;
}

/* Of those of a definition. Errors: INVALID_ARGUMENT (one stands after the end). */
quern_result quern__terms_count(const quern_term *terms, uint32_t *out_count);

void quern__query_release(quern__query *query);

/* Forgets the matches whose archetype is_removed, none of which comes before `first` in the order. All
 * matches must have been taken up before. */
void quern__query_forget_removed(quern__query *query, uint32_t first);

/* Forgets all matches, whether taken up before or not. */
void quern__query_forget_all(quern__query *query);

/* Whether an archetype matches the terms. */
bool quern__query_matches(const quern__query *query, const quern__archetype *archetype);

/* Makes the list of entries be there. The query has been refreshed. Errors: OUT_OF_MEMORY. */
quern_result quern__query_list(quern__query *query);

/* For all queries, when archetypes begin to keep change versions. */
void quern__query_list_again(quern__query *query);

/* Takes up the archetypes that are new. Errors: OUT_OF_MEMORY, with the matches found so far kept. */
quern_result quern__query_refresh(quern__query *query);

/* Writes "read Velocity, write Position" into text. */
void quern__query_declared(const quern__query *query, char *text, size_t text_bytes);

/* What only archetypes have in which somebody listens. */
static inline void quern__view_set_watched(quern_view *view, const quern__archetype *archetype,
                                           uint32_t slot)
{
    const quern__planes *planes = archetype->planes;
    const quern__row_versions *row_versions = archetype->row_versions;
    view->versions = quern__versions_of(&archetype->versions, slot);
    view->row_versions = NULL;
    if (row_versions != NULL) {
        view->row_versions = quern__row_versions_of(row_versions, slot);
        view->row_offsets = row_versions->offsets;
    }
    if (planes == NULL) return;
    view->planes = quern__plane_words(planes, 0, slot) - 1;
    view->plane_words = planes->plane_words;
}

/* archetype: NULL where nobody listens. */
static inline void quern__view_set_listeners(quern_view *view, const quern__archetype *archetype,
                                             uint32_t slot)
{
    view->versions = NULL;
    view->planes = NULL;
    if (QUERN__UNLIKELY(archetype != NULL)) quern__view_set_watched(view, archetype, slot);
}

/* Points a view at row_count rows of a chunk. ordinal, query and context are the caller's. */
static inline void quern__view_set(quern_view *view, const quern__query *query,
                                   const quern__query_match *match, const quern__chunk_slot *slot)
{
    view->count = slot->row_count;
    view->entities = quern__archetype_entities(match->archetype, slot->chunk);
    view->first_row = 0;
    view->term_count = query->term_count;
    view->chunk = (char *)slot->chunk;
    view->columns = match->columns;
    view->rows = NULL;
    quern__view_set_listeners(view, match->archetype->is_watched ? match->archetype : NULL,
                              (uint32_t)(slot - match->archetype->slots));
}

/* Points a view at so many rows of its chunk. */
static inline void quern__view_point(quern_view *view, uint32_t first_row, uint32_t count)
{
    view->entities += (ptrdiff_t)first_row - (ptrdiff_t)view->first_row;
    view->first_row = first_row;
    view->count = count;
}

/* Fetches what a walk will read first of a chunk that it comes to next. */
static inline void quern__query_fetch_heads(const quern__query *query, const quern_view_column *columns,
                                            const quern__chunk *chunk, uint32_t row_count)
{
    for (uint32_t i = 0; i < query->term_count; i++)
        if (columns[i].access != QUERN_NO_ACCESS)
            quern__chunk_fetch_head(chunk, columns[i].offset_bytes, columns[i].size_bytes * row_count);
}

/* At an entry that fetches_next. */
static inline void quern__query_fetch_next(const quern__query *query, const quern__chunk_entry *entry)
{
    const quern__chunk_entry *next = entry + 1;
    quern__query_fetch_heads(query, next->columns, (const quern__chunk *)(const void *)next->chunk,
                             next->count);
}

/* Whether a chunk is to come to view: filters let it, or there are none. versions: of the chunk, NULL where
 * the archetype has none of the components that are filtered. */
bool quern__query_passes_filters(const quern__query *query, const quern_view_column *columns,
                                 const uint64_t *versions, uint64_t seen_version);

static inline bool quern__query_passes(const quern__query *query, const quern_view_column *columns,
                                       const uint64_t *versions, uint64_t seen_version)
{
    return query->filter_count == 0 || quern__query_passes_filters(query, columns, versions, seen_version);
}

#endif
