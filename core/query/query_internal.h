/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_QUERY_INTERNAL_H
#define QUERN_CORE_QUERY_QUERY_INTERNAL_H

/* Refused accesses: the system that made them, their number, and the scratch memory returned instead of values.
 *
 * A callback that accesses something it has not declared continues with scratch memory, so that a wrong
 * declaration causes an error instead of a crash. Scratch memory is zeroed, belongs to one scope (one worker's
 * context, or one query that is iterated) and contains no row of the world. It is allocated when an access is
 * refused; accesses that succeed do not use this file.
 *
 * A callback may use its view in the jobs of a parallel loop, so several threads may be refused in one scope
 * at the same time. While callbacks run, the list of blocks therefore only grows, by compare-and-swap. */

#include "core/base/containers.h"
#include "core/relations/relation_internal.h"
#include "core/storage/archetype.h"
#include "core/storage/row_bits.h"
#include "core/storage/storage.h"
#include "core/world/world_internal.h"

#include <quern/commands.h>
#include <quern/index.h>
#include <quern/jobs.h>
#include <quern/query.h>

#include <stdatomic.h>

typedef enum quern__caller {
    QUERN__CALLER_SYSTEM,
    QUERN__CALLER_PARALLEL,
    QUERN__CALLER_FILL,
    QUERN__CALLER_ITERATION
} quern__caller;

/* The source of accesses: a system during one frame, one parallel query, one fill, or one iteration. All
 * workers that run its callbacks share it. */
typedef struct quern__accessor {
    const char *name;               /* name of the system; NULL otherwise */
    _Atomic uint32_t refusal_count; /* only the first refusal is logged */
} quern__accessor;

struct quern__scratch_block;

/* First member of every quern_context; a query has one for its iterations. */
typedef struct quern__scope {
    quern__accessor *accessor;
    const quern__storage *storage;
    /* List of scratch blocks; NULL if nothing was refused since the last release. */
    _Atomic(struct quern__scratch_block *) scratch;
    _Atomic(quern_result) refused; /* last refusal of the callback, or QUERN_OK */
    quern__caller caller;
} quern__scope;

/* Returns the last refusal of the callback, or QUERN_OK. Relaxed: other threads set it only in parallel loops,
 * which have ended when the callback returns. Earlier reads only decide whether a message is formatted again. */
static inline quern_result quern__scope_refused(const quern__scope *scope)
{
    return atomic_load_explicit(&scope->refused, memory_order_relaxed);
}

/* Counts a refusal that the last quern__fail described, and returns `code`. The accessor's first refusal is
 * logged and, in builds with QUERN_CHECKS, passed to the assert handler. scope: NULL if the access has none;
 * then every refusal is reported in this way. */
QUERN__SLOW_PATH quern_result quern__scope_refuse(quern__scope *scope, quern_result code);

/* Describes a refusal, formatted as by printf, and counts it (quern__scope_refuse). */
#define quern__refuse(scope, code, ...) quern__scope_refuse((scope), quern__fail((code), __VA_ARGS__))

/* Counts a refusal if the callback already has one with a message. Returns false, without counting, if it has
 * none yet; the caller must then write the message. */
bool quern__scope_count_repeated(quern__scope *scope);

/* Appends a description of the caller to `text`: "system 'x'", "a parallel query", ... */
void quern__scope_describe(const quern__scope *scope, char *text, size_t text_bytes);

/* The functions below return zeroed scratch memory, or NULL if out of memory. It is valid until the scope is
 * reset; in an iteration, until the same view is refused at other rows. size_bytes: size of one value, or 0 for
 * the size of the world's largest component. */

/* Returns memory for one column of the rows of a view. Within a callback, repeated calls for one column and
 * the same rows return the same memory, with what was written to it, as a real column would. Thread-safe for
 * the jobs of a parallel loop in one callback. */
QUERN__SLOW_PATH void *quern__scratch_column(const quern_view *view, uint32_t term, size_t size_bytes);

/* Returns one value for a lookup. All lookups of a callback with one size share it; each call zeroes it again.
 * Precondition: size_bytes > 0. */
QUERN__SLOW_PATH void *quern__scratch_value(quern__scope *scope, size_t size_bytes);

/* Frees the scratch memory. No callback of the scope may run. */
QUERN__SLOW_PATH void quern__scratch_release(quern__scope *scope);

/* Prepares the scope for the next callback: clears the refusal and frees the scratch memory. Must be called
 * after the callback has returned. Relaxed: see quern__scope_refused. */
static inline void quern__scope_reset(quern__scope *scope)
{
    if (QUERN__LIKELY(quern__scope_refused(scope) == QUERN_OK)) return;
    atomic_store_explicit(&scope->refused, QUERN_OK, memory_order_relaxed);
    quern__scratch_release(scope);
}

/* Queries: the archetypes that match a list of terms, and the positions of the terms' columns in each of
 * them. Matches are cached. A refresh checks only archetypes that were created since the last refresh, and
 * of these only the ones that have the query's driver, its rarest component. */

typedef struct quern_query quern__query;

/* An archetype that matches, and the positions of the terms' columns in its chunks. */
typedef struct quern__query_match {
    quern__archetype *archetype;
    quern_view_column *columns; /* one per term, in one of the query's blocks */
} quern__query_match;

struct quern_query {
    quern_world *world;      /* NULL if the query belongs to a system */
    const char *name;        /* behind the query in the same allocation; NULL if it has no name */
    uint32_t number;         /* greater than that of each older query, and less than QUERN_LIST_END */
    uint32_t further_number; /* 1 + index among the further queries of its system; 0: it is none of them */
    quern__storage *storage;
    quern_term terms[QUERN_MAX_TERMS];
    uint32_t term_count;
    uint32_t filter_count;              /* number of change filters (terms with `changed`) */
    uint32_t row_term_count;            /* number of terms that select enabled or disabled rows */
    uint8_t row_terms[QUERN_MAX_TERMS]; /* indices of these terms */
    uint64_t row_filters;               /* change filters that select single rows: bit i for term i */
    bool selects_rows;                  /* whether row terms, row filters or up-terms can leave out rows */
    bool whole_chunks; /* whether views cover whole chunks, and view.rows marks the selected rows */
    /* Whether a term names quern_world_disabled_tag. If not, no disabled entity matches. */
    bool names_disabled;
    uint32_t up_count;            /* number of up-terms */
    struct quern__ups *ups;       /* state of the up-terms; NULL if the query has none */
    struct quern__target *target; /* state of the target term; NULL if the query has none */
    struct quern__order *order;   /* the sorted rows; NULL if the query has no order */
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

/* Returns whether no member of the i-th term of a list is set: a quern__is_end_function. */
bool quern__term_is_empty(const void *list, uint32_t i);

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

/* Prepares a further query of a system, so that the callbacks of worker_count workers may iterate it at the same time until
 * the structure changes: lists its views if it can, and reserves the pools of its up-terms. Precondition: the query has been
 * refreshed. Fails with OUT_OF_MEMORY. */
quern_result quern__query_prepare_inside(quern__query *query, uint32_t worker_count);

/* The callback that iterates a further query of its system. */
typedef struct quern__inside {
    quern_context *context;
    uint32_t worker_index;
    uint64_t seen_version;  /* change filters select what has a greater version */
    uint64_t write_version; /* version of what the callback writes */
} quern__inside;

/* Starts an iteration in a callback. Precondition: the query is prepared for the worker (quern__query_prepare_inside). Changes
 * nothing that another worker reads, and allocates nothing. */
void quern__query_iterate_inside(quern__query *query, const quern__inside *inside,
                                 quern_query_iterator *out_iterator);

/* Returns whether the terms of the two queries exclude each other: whatever the archetypes, no entity matches both. */
bool quern__query_excludes(const quern__query *query, const quern__query *other);

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

/* Points a view at the memory of a chunk's rows. */
static inline void quern__view_set_chunk(quern_view *view, const quern__archetype *archetype,
                                         const quern__chunk_slot *slot)
{
    view->entities = quern__row_handle(archetype, quern__slot_row(slot, 0));
    view->memory = slot->run;
    view->run_shift = archetype->shape.shift;
    view->chunk_row = slot->first_row;
    view->chunk = quern__slot_chunk(slot);
}

/* Returns the column of a view by which a callback fills new rows of an archetype that has the component. */
static inline quern_view_column quern__view_fill_column(const quern__archetype *archetype,
                                                        quern_component component)
{
    const quern__column *column =
        quern__archetype_find_column(archetype, quern__component_index(component));
    return (quern_view_column){.offset_bytes = column != NULL ? column->offset_bytes : 0,
                               .size_bytes = column != NULL ? column->size_bytes : 0,
                               .access = QUERN_ACCESS_WRITE,
                               .present = true,
                               .is_checked = QUERN_CHECKS};
}

/* Points a view at `count` rows of one chunk. */
static inline void quern__view_set_rows(quern_view *view, const quern__archetype *archetype,
                                        uintptr_t first, uint32_t count)
{
    const quern__row row = quern__archetype_row(archetype, first);
    const uint32_t first_row = quern__location_row(&archetype->shape, first);
    view->entities = quern__row_handle(archetype, row);
    view->memory = row.run;
    view->run_shift = archetype->shape.shift;
    view->chunk_row = (uint32_t)row.index - first_row;
    view->chunk = (const quern__chunk *)(first - first_row);
    view->first_row = first_row;
    view->count = count;
}

/* Points a view at all rows of a chunk. The caller sets ordinal, query and context. */
static inline void quern__view_set(quern_view *view, const quern__query *query,
                                   const quern__query_match *match, const quern__chunk_slot *slot)
{
    view->count = slot->row_count;
    quern__view_set_chunk(view, match->archetype, slot);
    view->first_row = 0;
    view->term_count = query->term_count;
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
                                                 const quern_view_column *columns, quern__run_place place,
                                                 uint32_t row_count)
{
    for (uint32_t i = 0; i < query->term_count; i++)
        if (columns[i].access != QUERN_ACCESS_NONE)
            quern__prefetch_ends(quern__run_value(place, columns[i].offset_bytes, columns[i].size_bytes),
                                 columns[i].size_bytes * row_count);
}

/* Prefetches the chunk of the following entry. Precondition: entry->fetches_next. */
static inline void quern__query_prefetch_next(const quern__query *query, const quern__chunk_entry *entry)
{
    const quern__chunk_entry *next = entry + 1;
    quern__query_prefetch_columns(query, next->columns,
                                  (quern__run_place){next->memory, next->run_shift, next->chunk_row},
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

/* Up-terms: terms that read a component of the row's target or of another ancestor. Before a callback gets a
 * view, the addresses of the values are looked up for all rows of the view:
 *
 *   target, in the row's own column -> record of the target -> position of the component -> address
 *
 * The records of a batch are prefetched while the previous batch is looked up, and each value as soon as its
 * address is known. Consecutive rows with one target share one search. Relations guarantee that targets are
 * alive. If an application overwrites a target through a pointer, the value is most likely no valid handle;
 * the target then counts as one without the component.
 *
 * The caller that makes the views provides the memory for addresses: an array of QUERN__UP_STRIDE addresses
 * per up-term, indexed by row of the chunk. No value moves while views are valid, so the addresses stay valid
 * as long as the views. */

/* An up-term of a query. */
typedef struct quern__up {
    quern__position_table values;  /* positions of the component, by archetype number */
    quern__position_table targets; /* positions of the relation's component; only with is_nearest */
    uint32_t relation_index;       /* component index of the relation */
    bool is_optional;              /* whether rows without a value are selected, too */
    bool is_nearest;               /* whether the search continues at the target's target, and so on */
} quern__up;

/* The remaining rows of a view: those that no callback or iteration has visited yet. */
typedef struct quern__up_rows {
    uint32_t next, end;   /* range of rows in the chunk */
    bool leaves_some_out; /* whether some row of the view lacks the value of a required up-term */
} quern__up_rows;

/* Addresses for one iteration of a query. A loop that is left early does not end its iteration, so a query has
 * several of these. When all are in use, a new iteration reuses one: preferably one with an iterator object
 * in which a later iteration runs by now, as for an inner loop that is left early again and again; otherwise
 * the least recently used one. */
typedef struct quern__up_buffer {
    const void **addresses;
    quern__up_rows rows;
    /* Number of the last step of the iteration that uses the addresses. The iterator has a copy, up_number. Numbers
     * grow with each view of any iteration, so they order the buffers by their last use. 0: not in use. */
    uint32_t number;
    /* Structure version at the start of the iteration. The iteration is over once the world has another. */
    uint64_t structure_version;
    /* Object that made the last step, only to be compared; it may not exist any more. NULL before a step. */
    const quern_query_iterator *iterator;
    struct quern__up_pool *pool; /* the pool that has the buffer */
} quern__up_buffer;

/* QUERN__UP_WORKER_BUFFERS: of an iteration in the callback of a system. */
enum { QUERN__UP_BUFFERS = 8, QUERN__UP_WORKER_BUFFERS = 4 };

/* The buffers for the iterations of one thread. Aligned so that the pools of two workers share no cache line. */
typedef struct quern__up_pool {
    _Alignas(128) uint32_t step_number; /* number of the last step of any iteration, see quern__up_buffer */
    uint32_t buffer_count;              /* number of buffers that may be used */
    quern__up_buffer buffers[QUERN__UP_BUFFERS];
} quern__up_pool;

/* State of a query's up-terms. */
typedef struct quern__ups {
    uint32_t count;
    bool has_required;             /* whether some up-term is required (not optional) */
    quern__up_pool pool;           /* of iterations between frames; addresses are allocated at first use */
    const void **worker_addresses; /* addresses for the workers of parallel queries, one block per worker */
    uint32_t worker_count;         /* number of workers for which there are addresses */
    /* Of a system's further query: one pool per worker, which have all addresses from the beginning. */
    quern__up_pool *worker_pools;
    uint32_t pool_count; /* number of entries in worker_pools */
    quern__up items[];   /* `count` up-terms, in the order of the terms */
} quern__ups;

_Static_assert(QUERN__UP_STRIDE > (QUERN__CHUNK_BYTES - QUERN__CHUNK_UNUSED_BYTES) / sizeof(quern_entity),
               "a chunk has fewer rows than an up-term has addresses");

/* Checks the i-th term, an up-term that has passed the checks common to all terms. Fails with
 * INVALID_ARGUMENT, or with the error of an invalid relation. */
quern_result quern__up_check(const quern__storage *storage, const quern_term *term, uint32_t i);

/* Allocates query->ups for the query's up-terms. Fails with OUT_OF_MEMORY, and then leaves nothing allocated. */
quern_result quern__ups_create(quern__query *query);
void quern__ups_destroy(quern__query *query);

/* Returns the number of addresses that one worker or iteration needs. */
static inline size_t quern__ups_address_count(uint32_t up_count)
{
    return (size_t)up_count * QUERN__UP_STRIDE;
}

/* Reserves addresses for the workers of a parallel query. Fails with OUT_OF_MEMORY. */
quern_result quern__ups_reserve_workers(const quern__query *query, uint32_t worker_count);

/* Reserves pools for the workers whose callbacks iterate the query. Fails with OUT_OF_MEMORY. */
quern_result quern__ups_reserve_pools(const quern__query *query, uint32_t worker_count);

/* Assigns addresses to a new iteration between frames. Precondition: the query has up-terms. Fails with OUT_OF_MEMORY. */
quern_result quern__ups_begin_iteration(quern_query_iterator *iterator);

/* Assigns addresses of a worker to a new iteration in a callback. Precondition: they are reserved
 * (quern__ups_reserve_pools). */
void quern__ups_begin_inside(quern_query_iterator *iterator, uint32_t worker_index);

/* Marks the addresses of the iteration as the most recently used ones. */
static inline void quern__ups_mark_used(quern_query_iterator *iterator)
{
    quern__up_pool *pool = iterator->up_buffer->pool;
    pool->step_number += pool->step_number == UINT32_MAX ? 2 : 1; /* never 0 */
    iterator->up_buffer->number = iterator->up_number = pool->step_number;
}

/* Looks up the addresses for all rows of a view, and stores them in `addresses` and the view's `up`. Returns
 * the rows to visit. The view still contains rows that the up-terms leave out; quern__up_next or
 * rows_apply_ups removes them. */
quern__up_rows quern__up_find(const quern__query *query, const void **addresses, quern_view *view);

/* Points the view at the next range of rows that the up-terms select. Returns false if there is none. */
bool quern__up_next(const quern__query *query, quern__up_rows *rows, quern_view *view);

/* Returns the index of the first up-term that reads a component which another term writes in the rows themselves,
 * or term_count if there is none. levels: relation that orders the system by levels, or null. Up-terms by it are no
 * conflict, because the system processes all targets before their sources. */
uint32_t quern__query_up_conflict(const quern__query *query, quern_relation levels);

/* Returns whether the up-terms select a row of a match. */
bool quern__up_selects(const quern__query *query, const quern__archetype *archetype, uintptr_t location);

/* Common checks of the calls that change all entities matching a query. */

/* Refreshes the query, and checks that its world is not locked and that no term can leave out single rows of
 * a match. Fails with NULL_ARGUMENT, WORLD_LOCKED, INVALID_ARGUMENT or OUT_OF_MEMORY; messages begin with the
 * name of the call, `function`. */
static inline quern_result quern__query_prepare(quern_query *query, const char *function)
{
    if (query == NULL) return quern__fail_null(function, "query");
    quern_result result = quern__world_check_unlocked(query->world, function);
    if (result == QUERN_OK && (query->target != NULL || (query->ups != NULL && query->ups->has_required)))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: the query has a target term or up-terms, which leave single rows out: collect the "
            "entities in a loop over it, or use a query without them",
            function);
    if (result == QUERN_OK && query->row_term_count > 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: term %u leaves out single rows, those with '%s' %sabled: collect the "
                           "entities in a loop over the query, or use quern_term_either",
                           function, query->row_terms[0],
                           quern_component_name(query->world, query->terms[query->row_terms[0]].component),
                           query->terms[query->row_terms[0]].enabled == QUERN_TERM_DISABLED ? "en" : "dis");
    return result != QUERN_OK ? result : quern__in_call(quern__query_refresh(query), function);
}

/* Lookup of one component in many entities. Single lookups would miss the cache twice each, at the record and
 * at the value. Here the records of a batch are prefetched while the previous batch is looked up, and each
 * value is prefetched as soon as its address is known. The lookup itself reads no value. */

enum { QUERN__FIND_BATCH = 16 };

/* Returns the position of the component's values in the chunks of the entity's archetype; its offset_bytes is
 * 0 if the archetype lacks the component. table: the component's position table, or NULL if there is none. */
static inline quern__column_position quern__find_place(const quern__storage *storage,
                                                       const quern__position_table *table,
                                                       uint32_t component_index,
                                                       const quern__record *record)
{
    if (table != NULL) return table->positions[record->archetype_number];
    return quern__archetype_column_position(quern__storage_archetype_of(storage, record), component_index);
}

/* Writes the address of the component of handles[i], or NULL, into out_values[i]. Returns the number of values
 * found. table: the component's position table, or NULL. limit: components that an entity must have or lack,
 * or NULL. Each call site passes NULL for `table` always or never, and for `limit` likewise, so that the
 * compiler can drop a branch. */
static inline uint32_t quern__find_many(const quern__storage *storage, const quern__position_table *table,
                                        uint32_t component_index, const quern__archetype_filter *limit,
                                        const quern_entity *handles, uint32_t count,
                                        const void **out_values)
{
    const quern__entities *entities = &storage->entities;
    uint32_t found_count = 0;
    uint32_t next = count < QUERN__FIND_BATCH ? count : QUERN__FIND_BATCH;
    quern__prefetch_records(entities, handles, next);
    for (uint32_t first = 0, end = next; first < count; first = end, end += next) {
        next = count - end < QUERN__FIND_BATCH ? count - end : QUERN__FIND_BATCH;
        quern__prefetch_records(entities, handles + end, next);
        for (uint32_t i = first; i < end; i++) {
            const quern__record *record = quern__entities_find(entities, handles[i]);
            out_values[i] = NULL;
            if (QUERN__UNLIKELY(record == NULL)) continue;
            if (limit != NULL &&
                !quern__archetype_filter_passes(*limit, quern__storage_archetype_of(storage, record)))
                continue;
            const quern__column_position position =
                quern__find_place(storage, table, component_index, record);
            if (QUERN__UNLIKELY(position.offset_lines == 0)) continue;
            out_values[i] = quern__position_value(position, record->location);
            QUERN__PREFETCH(out_values[i]);
            found_count++;
        }
    }
    return found_count;
}

/* Selection of single rows of a chunk, in three steps: row filters (core/storage/chunk.h), then terms on
 * components that can be disabled (core/storage/row_bits.h), then required up-terms. A row must pass all
 * three.
 *
 * Rows are selected immediately before a callback gets the view, so the changes of earlier systems count. What
 * the callback does to the rows of its view does not change the selection. */

/* The rows of a view that terms select. */
typedef enum quern__selection {
    QUERN__SELECT_NONE,
    QUERN__SELECT_ALL,
    QUERN__SELECT_SOME /* the rows of a mask */
} quern__selection;

/* A seen_version for which change filters select all rows. */
#define QUERN__SEEN_NOTHING 0

/* Calls a callback for each range of rows that the query selects in a view. Precondition: selects_rows of the
 * query. addresses: memory for the addresses of up-terms; may be NULL without up-terms. */
void quern__rows_call(const quern_view *chunk_view, uint64_t seen_version, const void **addresses,
                      quern_view_callback *callback);

/* Returns the number of selected rows among `count` rows of a chunk. Change filters are not applied. */
uint64_t quern__rows_count_range(const quern__query *query, const quern__query_match *match,
                                 uint32_t chunk_index, uint32_t first_row, uint32_t count);

/* Target terms: a query with one visits the sources of a given entity. It finds them through the entity's list of
 * sources, so archetypes are not split by target. Sources in matching archetypes are
 * sorted into the order of any iteration: by match, chunk and row. Rows that are consecutive in a chunk are
 * joined into a range; each range is a view.
 *
 * The list of ranges is valid until a row moves, an entity is related or unrelated, or the query's target is
 * set to another entity. It is then rebuilt in the same memory, so repeated iterations do not allocate. */

/* Consecutive rows of one chunk. */
typedef struct quern__target_range {
    uint32_t match; /* index of the match in the query */
    uint32_t chunk_index;
    uint16_t first_row, count;
} quern__target_range;

/* State of a query's target term. */
typedef struct quern__target {
    quern__relation *relation;
    quern_entity entity; /* target of the selected rows; null selects none */
    QUERN__ARRAY(quern__target_range) ranges;
    uint32_t list_number; /* number of times that `ranges` was built */
    bool is_listed;       /* whether the last build succeeded; the members below describe it */
    quern_entity listed;  /* target for which `ranges` was built */
    uint64_t structure_version;
    uint64_t archetypes_version; /* guards the match indices in `ranges` */
    uint64_t links_version;
    QUERN__ARRAY(quern__sort_item) rows; /* sort keys of the rows of all ranges, ascending */
    QUERN__ARRAY(quern__sort_item) sort_scratch;
} quern__target;

/* Checks the i-th term, a target term that has passed the checks common to all terms. Fails with
 * INVALID_ARGUMENT, or with the error of an invalid target handle. */
quern_result quern__target_check(const quern__storage *storage, const quern_term *terms, uint32_t i);

/* Allocates query->target if one of the query's terms is a target term. Fails with OUT_OF_MEMORY, and then
 * leaves nothing allocated. */
quern_result quern__target_create(quern__query *query);
void quern__target_destroy(const quern__query *query);

/* Sets the entity of the query's target term; null selects no rows. Fails with INVALID_ARGUMENT if the query
 * has no target term, or with the error of an invalid handle. */
quern_result quern__target_set(const quern__query *query, quern_entity target);

/* Returns whether the list of ranges is up to date. */
bool quern__target_is_listed(const quern__query *query);

/* Brings the list of ranges up to date. Precondition: the query has been refreshed. Fails with OUT_OF_MEMORY. */
quern_result quern__target_list(const quern__query *query);

/* Points a view at the i-th range. The caller sets ordinal, query and context. */
void quern__target_get_view(const quern__query *query, uint32_t i, quern_view *view);

/* Brings the list up to date, and notes its number in the iterator. Fails with OUT_OF_MEMORY. */
quern_result quern__target_begin(quern_query_iterator *iterator);

/* Returns whether the list of ranges is the one with which the iterator began, and is up to date. */
bool quern__target_is_valid(const quern_query_iterator *iterator);

/* Advances an iteration to the next range in a chunk that the change filters select. Returns false at the
 * end. Of the iterator, it uses two members in another sense: match_index is the index of the next range, and
 * chunk_index is the list_number of the ranges with which the iteration began. */
bool quern__target_next(quern_query_iterator *iterator);

/* Ordered queries (core/query/query_order.c). */

/* Returns whether no member of the definition is set. */
bool quern__order_is_empty(const quern_order *def);

/* Allocates query->order if the definition has an order. The other members of the query are set. Fails like
 * quern_query_create, and then leaves nothing allocated. */
quern_result quern__order_create(quern__query *query, const quern_query_def *def);
void quern__order_destroy(quern__query *query);

/* Returns the numbers of the order; all zero if there is none. */
quern_order_stats quern__order_get_stats(const quern__query *query);

/* Whether some term of an ordered query writes. */
bool quern__order_writes(const quern__query *query);

/* Shows the next rows of the order: a view of rows that follow each other in a chunk and in the order, from number *at to
 * before number `end`. Advances *at. Returns false if *at is `end`, or beyond the last row. The view has change data if a
 * term writes or the archetype has bits of rows. *out_archetype: the archetype of the rows. Threads: any, while the order
 * and the world do not change. */
bool quern__order_next_of_piece(const quern__query *query, uint32_t *at, uint32_t end, quern_view *view,
                                const quern__archetype **out_archetype);

/* Returns the order as it was defined. The name of a field belongs to the query. */
quern_order quern__order_get_def(const quern__query *query);

/* Sorts what has changed since the last call. is_outside: whether no frame runs. Precondition: the query has an order and
 * has been refreshed. Fails with OUT_OF_MEMORY, or with INVALID_ARGUMENT if the component has lost the field. */
quern_result quern__order_refresh(quern__query *query, bool is_outside);

/* Returns how often the rows were sorted. An iteration is valid until they are sorted again. */
uint32_t quern__order_list_number(const quern__query *query);

/* Advances an iteration: at once if it is valid and no term leaves out single rows, otherwise by quern__query_next_any, which
 * does all that quern_query_next does. */
bool quern__order_next_plain(quern_query_iterator *iterator);
bool quern__query_next_any(quern_query_iterator *iterator);

/* Advances an iteration to the next rows in the order. Returns false at the end. As in quern__target_next, match_index is
 * the index of the next row, and chunk_index the list_number with which the iteration began. */
bool quern__order_next(quern_query_iterator *iterator);

/* Lets archetypes with the component keep change versions, as for a change filter, and lists chunks again. Each call needs
 * a matching quern__storage_remove_change_filter. Fails with OUT_OF_MEMORY. */
quern_result quern__query_watch(quern__storage *storage, uint32_t component_index);

/* ------------------------------------------------------------------------------- indexes in schedules */

/* Checks an index that a system of the world declares. Errors: INVALID_ARGUMENT. */
quern_result quern__index_check_world(const quern_index *index, const quern_world *world);

/* Count the systems that declare the index. An index that the program has destroyed goes with the last one. */
void quern__index_add_user(quern_index *index);
void quern__index_remove_user(quern_index *index);

quern_component quern__index_component(const quern_index *index);

/* Brings the index up to date in a frame. Thread-safe: no system writes the component meanwhile, so of several systems that
 * declare the index and begin at the same time, one changes it, and before any of them reads it. Errors: those of
 * quern_index_find. */
quern_result quern__index_refresh_inside(quern_index *index);

/* Finds the entities of a value, as of the last refresh. Returns their number. */
uint32_t quern__index_find(const quern_index *index, uint64_t value, const quern_entity **out_entities);

#endif
