/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_QUERY_INTERNAL_H
#define QUERN_CORE_QUERY_QUERY_INTERNAL_H

/* Queries: the archetypes that match a list of terms, and the positions of the terms' columns in each of
 * them. Matches are cached. A refresh checks only archetypes that were created since the last refresh, and
 * of these only the ones that have the query's driver, its rarest component. */

#include "core/base/array.h"
#include "core/query/scope.h"
#include "core/storage/storage.h"

#include <quern/commands.h>
#include <quern/jobs.h>
#include <quern/query.h>

typedef struct quern_query quern__query;

/* An archetype that matches, and the positions of the terms' columns in its chunks. */
typedef struct quern__query_match {
    quern__archetype *archetype;
    quern_view_column *columns; /* one per term, in one of the query's blocks */
} quern__query_match;

struct quern_query {
    quern_world *world; /* NULL if the query belongs to a system */
    const char *name;   /* behind the query in the same allocation; NULL if it has no name */
    uint32_t number;    /* greater than that of each older query, and less than QUERN_LIST_END */
    quern__storage *storage;
    quern_term terms[QUERN_MAX_TERMS];
    uint32_t term_count;
    uint32_t filter_count;              /* number of change filters (terms with `changed`) */
    uint32_t row_term_count;            /* number of terms that select enabled or disabled rows */
    uint8_t row_terms[QUERN_MAX_TERMS]; /* indices of these terms */
    uint64_t row_filters;               /* change filters that select single rows: bit i for term i */
    bool selects_rows; /* whether row terms, row filters or up-terms can leave out rows; see rows.h */
    bool whole_chunks; /* whether views cover whole chunks, and view.rows marks the selected rows */
    /* Whether a term names quern_world_disabled_tag. If not, no disabled entity matches. */
    bool names_disabled;
    uint32_t up_count;            /* number of up-terms */
    struct quern__ups *ups;       /* state of the up-terms, see up.h; NULL if the query has none */
    struct quern__target *target; /* state of the target term, see target.h; NULL if the query has none */
    uint64_t seen_version;        /* version up to which iterations have seen changes; only with filters */
    /* Index of the component that fewest archetypes had, among the QUERN_MATCH_ALL terms, when the query was
     * created; QUERN__NO_DRIVER if there is no such term. */
    uint32_t driver;
    /* Number of archetypes checked so far: those with the driver, or all archetypes without a driver. */
    uint32_t scanned_count;
    QUERN__ARRAY(quern__query_match) matches; /* ascending by archetype index */
    /* Blocks of columns, each for QUERN__QUERY_BLOCK_MATCHES matches. The columns of a block are contiguous.
     * A block never moves, because views point into it. */
    QUERN__ARRAY(quern_view_column *) blocks;
    /* The chunks with rows, in visiting order, as of the structure version entries_version. The list is built
     * when a second iteration begins at the same structure version. A single iteration between two
     * structural changes therefore never pays for the list. */
    QUERN__ARRAY(quern__chunk_entry) entries;
    uint64_t entries_version;  /* structure version of `entries`; QUERN__NO_VERSION if it was never built */
    uint64_t iterated_version; /* structure version at the start of the last iteration */
    /* Number of removals from `matches`. A change of it invalidates everything that depends on match indices
     * or on the number of matches. */
    uint32_t removed_count;
    quern__scope scope;            /* scope of iterations; systems and parallel queries have their own */
    quern__accessor accessor;      /* accessor of the iteration that began last */
    quern__query *previous, *next; /* adjacent queries in the storage's list */
};

#define QUERN__NO_DRIVER  UINT32_MAX
#define QUERN__NO_VERSION UINT64_MAX

enum { QUERN__QUERY_BLOCK_MATCHES = 64 };

/* Context of callbacks that belong to no system: query functions of parallel queries, and fills. */
typedef struct quern__plain_context {
    /* First member, because scope.caller tells whether a quern_context is this type or that of a system.
     * Aligned to two cache lines, so that the contexts of two workers share none. */
    _Alignas(128) quern__scope scope;
    const quern_world *world;
    void *user_data;
    quern_jobs *jobs;
    const void *thread;       /* thread that runs the callback; NULL while none runs */
    quern_commands *commands; /* recorder; NULL if the callback may not record commands */
    uint32_t worker_index;
    uint32_t ordinal;      /* ordinal of the view, and key of its command stream */
    uint64_t first_serial; /* serial number of the command stream of view 0 */
    bool has_stream;       /* whether the recorder has begun this view's stream */
} quern__plain_context;

/* Returns the scope of a view: that of its context, or of its query in an iteration. Returns NULL if the
 * application assembled the view itself. */
static inline quern__scope *quern__scope_of(const quern_view *view)
{
    if (view->context != NULL) return (quern__scope *)view->context;
    return view->query != NULL ? (quern__scope *)(uintptr_t)&view->query->scope : NULL;
}

/* Returns the index of the component that decides whether an archetype matches the term. For an up-term,
 * this is the component of its relation. */
static inline uint32_t quern__term_index(const quern_term *term)
{
    return quern__component_index(term->path == QUERN_PATH_ROW ? term->component
                                                               : quern_relation_component(term->relation));
}

/* Checks and copies the terms, and links the query into the storage's list. To its change filters, every
 * chunk is new. The caller sets whole_chunks. Fails like quern_query_create; after a failure, the query must not
 * be released. */
quern_result quern__query_init(quern__query *query, quern__storage *storage, const quern_term *terms,
                               uint32_t term_count);

/* Makes all terms select enabled and disabled rows. Reactions need this: what happens to an entity is
 * reported whether or not its components are enabled. */
static inline void quern__query_select_either(quern__query *query)
{
    query->row_term_count = 0;
    query->selects_rows = query->up_count > 0 || query->row_filters != 0;
}

/* Counts the terms of a definition. Fails with INVALID_ARGUMENT if a term follows the first empty one. */
quern_result quern__terms_count(const quern_term *terms, uint32_t *out_count);

/* Unlinks the query from the storage and frees its memory, but not *query itself. */
void quern__query_release(quern__query *query);

/* Returns the number of archetypes that a refresh has to have checked: those with the driver, or all without one. */
static inline uint32_t quern__query_candidate_count(const quern__query *query)
{
    return query->driver != QUERN__NO_DRIVER
               ? query->storage->components.list.items[query->driver]->archetypes.count
               : query->storage->archetypes.count;
}

/* Removes the matches of archetypes with is_removed. first: lowest index of such an archetype. Does not change
 * scanned_count. */
void quern__query_forget_removed(quern__query *query, uint32_t first);

/* Removes all matches. The next refresh checks all archetypes again. */
void quern__query_forget_all(quern__query *query);

/* Returns whether an archetype matches the terms. */
bool quern__query_matches(const quern__query *query, const quern__archetype *archetype);

/* Returns whether an archetype with these components, in ascending order of their indices, would match the terms. */
bool quern__query_matches_set(const quern__query *query, const uint16_t *component_indices, uint32_t count);

/* Builds the list of views for the current structure, unless it is built already: `entries`, or the ranges of
 * the target term. Precondition: the query has been refreshed. Fails with OUT_OF_MEMORY. */
quern_result quern__query_list(quern__query *query);

/* Rebuilds `entries` if it is valid, because archetypes have begun to keep change versions. Iterations under
 * way continue: the list keeps its length and its address. */
void quern__query_relist(quern__query *query);

/* Adds the matches among the archetypes that were created since the last refresh. Fails with OUT_OF_MEMORY;
 * the matches found so far are kept, and the next call continues after them. */
quern_result quern__query_refresh(quern__query *query);

/* Writes the declared accesses into `text`: "read Velocity, write Position". */
void quern__query_describe(const quern__query *query, char *text, size_t text_bytes);

/* Sets the members of a view that only archetypes with tracks_changes have: versions, row versions and row bits.
 * slot: index of the chunk in the archetype. */
static inline void quern__view_load_change_data(quern_view *view, const quern__archetype *archetype,
                                                uint32_t slot)
{
    const quern__row_bits *row_bits = archetype->row_bits;
    const quern__row_versions *row_versions = archetype->row_versions;
    view->versions = quern__versions_of(&archetype->versions, slot);
    view->row_versions = NULL;
    if (row_versions != NULL) {
        view->row_versions = quern__row_versions_of(row_versions, slot);
        view->row_offsets = row_versions->offsets;
    }
    if (row_bits == NULL) return;
    view->row_bits = quern__bit_column_words(row_bits, 0, slot) - 1;
    view->bit_column_words = row_bits->bit_column_words;
}

/* Sets or clears the versions and row bits of a view. archetype: NULL if it does not track
 * changes. */
static inline void quern__view_set_change_data(quern_view *view, const quern__archetype *archetype,
                                               uint32_t slot)
{
    view->versions = NULL;
    view->row_bits = NULL;
    if (QUERN__UNLIKELY(archetype != NULL)) quern__view_load_change_data(view, archetype, slot);
}

/* Points a view at all rows of a chunk. The caller sets ordinal, query and context. */
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
    quern__view_set_change_data(view, match->archetype->tracks_changes ? match->archetype : NULL,
                                (uint32_t)(slot - match->archetype->slots));
}

/* Points a view at `count` rows of its chunk, from first_row on. */
static inline void quern__view_point(quern_view *view, uint32_t first_row, uint32_t count)
{
    view->entities += (ptrdiff_t)first_row - (ptrdiff_t)view->first_row;
    view->first_row = first_row;
    view->count = count;
}

/* Prefetches both ends of each accessed column of the chunk that the iteration visits next. */
static inline void quern__query_prefetch_columns(const quern__query *query,
                                                 const quern_view_column *columns,
                                                 const quern__chunk *chunk, uint32_t row_count)
{
    for (uint32_t i = 0; i < query->term_count; i++)
        if (columns[i].access != QUERN_ACCESS_NONE)
            quern__chunk_prefetch_ends(chunk, columns[i].offset_bytes, columns[i].size_bytes * row_count);
}

/* Prefetches the chunk of the following entry. Precondition: entry->fetches_next. */
static inline void quern__query_prefetch_next(const quern__query *query, const quern__chunk_entry *entry)
{
    const quern__chunk_entry *next = entry + 1;
    quern__query_prefetch_columns(query, next->columns, (const quern__chunk *)(const void *)next->chunk,
                                  next->count);
}

/* Returns whether a change filter selects the chunk: one of the filtered components is newer than
 * seen_version. versions: those of the chunk; NULL if the archetype keeps none. Precondition: the query has
 * filters. */
bool quern__query_passes_filters(const quern__query *query, const quern_view_column *columns,
                                 const uint64_t *versions, uint64_t seen_version);

/* As quern__query_passes_filters, but selects every chunk if the query has no filters. */
static inline bool quern__query_passes(const quern__query *query, const quern_view_column *columns,
                                       const uint64_t *versions, uint64_t seen_version)
{
    return query->filter_count == 0 || quern__query_passes_filters(query, columns, versions, seen_version);
}

#endif
