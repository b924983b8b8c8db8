/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_QUERY_H
#define QUERN_QUERY_H

/** @file
 * Queries find the entities that have some components and lack others. They return these entities as
 * *views*: ranges of rows of one chunk, with a plain array per component, which a compiler can vectorise.
 *
 *     quern_term terms[] = {quern_term_write(position), quern_term_read(velocity)};
 *     ...
 *     quern_query_iterator it = quern_query_iterate(query);
 *     while (quern_query_next(&it)) {
 *         Position *p = QUERN_COLUMN(&it.view, 0, Position);
 *         const Velocity *v = QUERN_COLUMN(&it.view, 1, const Velocity);
 *         const uint32_t count = it.view.count;
 *         for (uint32_t i = 0; i < count; i++) p[i].x += v[i].x;
 *     }
 *
 * Views leave out disabled entities, unless a term names quern_world_disabled_tag (<quern/enabled.h>).
 *
 * Copy view.count to a local variable before the loop, in systems too. If the loop condition reads
 * view.count itself and the loop writes uint32_t values, the compiler must assume that these writes change
 * the count, and does not vectorise the loop. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>
#include <quern/relation.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_TERMS 32 /**< Maximum number of terms per query or system. */

/* ------------------------------------------------------------------------------------------ terms */

/** Condition that a term sets for an entity to match. */
typedef enum quern_match {
    QUERN_MATCH_ALL = 1,  /**< The entity has the component. The value 0 means the same. */
    QUERN_MATCH_NONE,     /**< The entity lacks the component. */
    QUERN_MATCH_OPTIONAL, /**< No condition; quern_view_has returns whether the component is present. */
    /** The entity has at least one component of the query's ANY terms; quern_view_has returns which ones. */
    QUERN_MATCH_ANY
} quern_match;

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

/** Which rows a term selects if its component can be disabled (can_disable in quern_component_def). */
typedef enum quern_term_enabled {
    QUERN_TERM_ENABLED, /**< Rows in which the component is enabled. The default. */
    /** Rows in which it is disabled; see quern_term_disabled, quern_term_if_disabled. */
    QUERN_TERM_DISABLED,
    QUERN_TERM_EITHER /**< All rows that have the component; see quern_term_either. */
} quern_term_enabled;

/** Path from the entity of a row to the entity with the component that a term reads. */
typedef enum quern_term_path {
    QUERN_PATH_ROW,     /**< The entity of the row. The default. */
    QUERN_PATH_TARGET,  /**< The target of the row's entity; see quern_term_up. */
    QUERN_PATH_NEAREST, /**< The nearest ancestor that has the component; see quern_term_up_nearest. */
} quern_term_path;

/** A term of a query: a component, a condition, and an access. The index of the term in the query's list is
 * the index of its column in a view. Creating a query fails if a term has any member set but no component.
 */
typedef struct quern_term {
    quern_component component;  /**< The component. Required. */
    quern_match match;          /**< The condition on the entity. */
    quern_access access;        /**< The access to the values. */
    bool changed;               /**< Whether the term is a change filter; see quern_term_changed. */
    bool old;                   /**< Whether the column has old values; see quern_term_old. */
    quern_term_enabled enabled; /**< The rows that are selected, if the component can be disabled. */
    quern_term_path path;       /**< The path to the entity with the component. */
    /** The relation that leads from the row to that entity; null if path is QUERN_PATH_ROW. */
    quern_relation relation;
    bool by_target; /**< Whether the rows are limited to the sources of `target`; see quern_term_target. */
    quern_entity target; /**< The target of the rows; used only if by_target is set. */
} quern_term;

/** Makes a term with the given component, condition and access. All other members have their defaults. */
static inline quern_term quern_term_make(quern_component component, quern_match match, quern_access access)
{
    quern_term term;
    term.component = component;
    term.match = match;
    term.access = access;
    term.changed = false;
    term.old = false;
    term.enabled = QUERN_TERM_ENABLED;
    term.path = QUERN_PATH_ROW;
    term.relation.bits = 0;
    term.by_target = false;
    term.target = quern_entity_null();
    return term;
}

/** Makes a term: the entity has the component, and its values are read. */
static inline quern_term quern_term_read(quern_component component)
{
    return quern_term_make(component, QUERN_MATCH_ALL, QUERN_ACCESS_READ);
}

/** Makes a term: the entity has the component, and its values are read and written. */
static inline quern_term quern_term_write(quern_component component)
{
    return quern_term_make(component, QUERN_MATCH_ALL, QUERN_ACCESS_WRITE);
}

/** Makes a term: the entity has the component; its values are not accessed. Use it for tags. */
static inline quern_term quern_term_with(quern_component component)
{
    return quern_term_make(component, QUERN_MATCH_ALL, QUERN_ACCESS_NONE);
}

/** Makes a term: the entity lacks the component. */
static inline quern_term quern_term_without(quern_component component)
{
    return quern_term_make(component, QUERN_MATCH_NONE, QUERN_ACCESS_NONE);
}

/** Makes a term: the entity may have the component or lack it. quern_view_has returns which. */
static inline quern_term quern_term_optional(quern_component component, quern_access access)
{
    return quern_term_make(component, QUERN_MATCH_OPTIONAL, access);
}

/** Makes a term: the entity has at least one component of all ANY terms of the query. quern_view_has
 * returns which ones. */
static inline quern_term quern_term_any(quern_component component, quern_access access)
{
    return quern_term_make(component, QUERN_MATCH_ANY, access);
}

/** Makes a term a change filter. Views then cover only chunks in which the component may have changed since
 * the system last ran, or since the query was last iterated. With several change filters, a change of any
 * of their components is enough. At first, every chunk counts as changed.
 *
 * If the component has row_changes (quern_component_def), the filter selects single rows: those in which
 * the component has changed. A chunk then yields one view per range of selected rows, as with
 * quern_term_disabled, or one view with quern_view_next_range. With several filters, a row is selected if any
 * filter selects it. A filter without row_changes selects all rows of a changed chunk. A changed row that
 * another term leaves out still counts as seen by the filter.
 *
 * These operations count as a change of a chunk:
 *   - requesting the component from one of its views with quern_view_write;
 *   - giving it a value with quern_entity_set or a command;
 *   - quern_entity_mark_changed;
 *   - enabling or disabling the component;
 *   - an entity entering the chunk or moving inside it.
 *
 * Writes through pointers from quern_entity_get do not count. A new value counts even if it equals the old
 * one, and so does enabling a component that is enabled already. A command that sets a tag which the entity
 * already has does not count, because a tag has no value.
 *
 * A row counts as changed if one of the first four operations was applied to it, or if the component was
 * added to its entity, by creating the entity, too. A row that moves, inside its archetype or to another
 * one that has the component, does not count as changed. quern_view_write marks all rows of the view as
 * changed (with quern_view_next_range, those of the view's ranges). quern_view_write_rows marks none; use
 * quern_view_mark_row.
 *
 * A system does not see the changes that it makes itself through views and quern_context_lookup_write, and
 * an iteration does not see those that it makes through its views. (An iteration may see its own changes if
 * other queries with filters are iterated inside it.) A system does see the changes made by its own
 * commands, because a sync point applies them after the system has run. In a system, a filter is a read
 * access: the system sees changes that earlier systems made in the same frame. */
static inline quern_term quern_term_changed(quern_term term)
{
    term.changed = true;
    return term;
}

/** Makes an *old term*, for reactions to QUERN_REACT_SET (reacts_to in quern_system_def): the entity has the
 * component, and the column has the values from before they were set, to read (QUERN_COLUMN with a const
 * type, quern_view_read). Another term may name the same component for its current values.
 *
 *     .terms = {quern_term_old(health), quern_term_read(health)}, .reacts_to = QUERN_REACT_SET
 *
 * The old value of a row is the one that the entity had when, for the first time since the reaction last
 * ran, some component was set that the reaction's terms read, write or name as old. Later values, of the same
 * round, too, do not replace it; nor does the entity's move to another archetype. If only another component
 * was set, the old value is the value at that time. quern_entity_mark_changed reports a write that has
 * happened already, so the old value is then the written one. Without QUERN_REACT_ADDED, an entity that was
 * created and then set in a later call has the created value as its old value.
 *
 * In views of added and removed rows, the column is NULL: such rows have no value from before.
 *
 * The term makes the system react when the component is set, like a term that reads. It is no access for
 * conflicts between systems. Errors, when the system is added: INVALID_ARGUMENT if the system is no reaction
 * to QUERN_REACT_SET or is exclusive, if the component is a tag or its type has a copy, move or destroy hook,
 * or if another member of the term except `enabled` is not as this function sets it. A query cannot have the
 * term.
 *
 * Costs: the archetypes that such a reaction matches keep one more value per row, and copy the value at the
 * first set. Other archetypes pay nothing. */
static inline quern_term quern_term_old(quern_component component)
{
    quern_term term = quern_term_make(component, QUERN_MATCH_ALL, QUERN_ACCESS_NONE);
    term.old = true;
    return term;
}

/** Makes a term: the entity has the component, and the component is disabled (quern_entity_set_component_enabled). The
 * values are not accessed; use quern_term_if_disabled to access them.
 *
 * All other terms that require a component which can be disabled (quern_term_read, quern_term_write and
 * quern_term_with) select only rows in which it is enabled, unless they are changed by
 * quern_term_if_disabled or quern_term_either. A chunk therefore yields one view per range of selected
 * rows, or none. The views of a chunk share one ordinal, one partial result and one command stream, so a
 * callback must add to its partial result instead of assigning it. A chunk in which nothing is disabled
 * yields one view. With QUERN_SYSTEM_WHOLE_CHUNKS or whole_chunks, the chunk yields one view with all rows, and
 * quern_view_next_range returns the ranges.
 *
 * quern_term_without selects entities that lack the component altogether. Optional, ANY and up-terms check
 * only presence, not whether the component is enabled; quern_view_is_enabled returns that for the row
 * itself. In a system, each term on a component that can be disabled is at least a read access of it. */
static inline quern_term quern_term_disabled(quern_component component)
{
    quern_term term = quern_term_with(component);
    term.enabled = QUERN_TERM_DISABLED;
    return term;
}

/** Makes a term select the entities in which the component is disabled, and keeps the term's access. For
 * example, `quern_term_if_disabled(quern_term_write(loaded))` selects the weapons that are being reloaded,
 * to count down their remaining seconds. Only for terms with QUERN_MATCH_ALL on the row itself; creating a
 * query with any other such term fails.
 *
 * The call changes only which rows are selected. Conflicts, change filters and versions are those of the
 * original term: a system that writes the enabled rows and one that writes the disabled rows write the same
 * component, and never run at the same time. */
static inline quern_term quern_term_if_disabled(quern_term term)
{
    term.enabled = QUERN_TERM_DISABLED;
    return term;
}

/** Makes a term select rows in which the component is enabled as well as rows in which it is disabled. */
static inline quern_term quern_term_either(quern_term term)
{
    term.enabled = QUERN_TERM_EITHER;
    return term;
}

/** Makes an *up-term* with the given component, relation, condition and path. quern_term_up and the
 * functions after it document the rules. */
static inline quern_term quern_term_up_make(quern_component component, quern_relation relation,
                                            quern_match match, quern_term_path path)
{
    quern_term term = quern_term_make(component, match, QUERN_ACCESS_READ);
    term.path = path;
    term.relation = relation;
    return term;
}

/** Makes an up-term: the row has a target in the relation, and the target's component is read.
 *
 * QUERN_UP returns the addresses of the values, one per row. They are found, and the values are
 * prefetched, before the callback is called. Consecutive rows with the same target share one search. Rows
 * are left out if their target lacks the component, so a chunk yields one view per range of remaining
 * rows, or none. The views of a chunk share one ordinal, one partial result and one command stream, so a
 * callback must add to its partial result instead of assigning it.
 *
 * An up-term is read-only, cannot be a change filter, and cannot name a tag. In a system it is a lookup of
 * the component: the system runs before or after the systems that write the component, never at the same
 * time. A system or parallel query that also writes this component in its own rows is an error, unless the
 * system runs by the levels of the relation (`levels` in quern_system_def) or is QUERN_SYSTEM_SERIAL. A
 * term on the row itself may name the same component. */
static inline quern_term quern_term_up(quern_component component, quern_relation relation)
{
    return quern_term_up_make(component, relation, QUERN_MATCH_ALL, QUERN_PATH_TARGET);
}

/** Makes an up-term that leaves no row out: the address is NULL if the row has no target, or if the target
 * lacks the component. */
static inline quern_term quern_term_up_optional(quern_component component, quern_relation relation)
{
    return quern_term_up_make(component, relation, QUERN_MATCH_OPTIONAL, QUERN_PATH_TARGET);
}

/** Makes an up-term that reads the nearest ancestor which has the component. The ancestors are the target,
 * the target's target, and so on, but not the row itself. Rows without such an ancestor are left out. Each
 * search costs one step per ancestor. If the relation allows cycles, a search ends after one round of the
 * cycle; it may then find the row itself. Disabled entities are searched like all others, as by quern_term_up: disable a
 * tree to leave out its rows, too. */
static inline quern_term quern_term_up_nearest(quern_component component, quern_relation relation)
{
    return quern_term_up_make(component, relation, QUERN_MATCH_ALL, QUERN_PATH_NEAREST);
}

/** Makes an up-term like quern_term_up_nearest that leaves no row out: the address is NULL if no ancestor
 * has the component. */
static inline quern_term quern_term_up_nearest_optional(quern_component component, quern_relation relation)
{
    return quern_term_up_make(component, relation, QUERN_MATCH_OPTIONAL, QUERN_PATH_NEAREST);
}

/** Makes a *target term*: the row's target in the relation is the given entity. If the target is null or
 * was destroyed, no row matches. quern_query_set_target and quern_schedule_set_target change the target.
 *
 * The rows are found through the target's list of sources, and are visited by archetype, chunk and row. A
 * view is a range of consecutive rows of one chunk, often a single row. An iteration costs one check per
 * source, regardless of how many other rows match. The list of rows is cached until rows move or entities
 * are related. A query or system has at most one target term; a system with one runs as one job, its views
 * in order. Relating an entity while iterating invalidates the iterator, like any structural change.
 * Functions that change all entities matching a query reject a query with a target term. */
static inline quern_term quern_term_target(quern_relation relation, quern_entity target)
{
    quern_term term =
        quern_term_make(quern_relation_component(relation), QUERN_MATCH_ALL, QUERN_ACCESS_NONE);
    term.by_target = true;
    term.target = target;
    return term;
}

/* ------------------------------------------------------------------------------------------- view */

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

/** Internal: position of a term's column in the chunks of one archetype. */
typedef struct quern_view_column {
    /** Offset from the chunk's start; 0 if the term has no values here. With a nonzero size_bytes, an
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
} quern_view_column;

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
    char *chunk;         /**< Internal: the chunk. */
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
} quern_view;

/** A callback that processes a view: the function of a system (quern_system_def), of a parallel query
 * (quern_query_parallel_for) or of a fill (quern_entity_create_filled).
 *
 * The callback may access the rows of the view through the columns that the terms declare, and what the
 * context offers (<quern/context.h>), but nothing else of the world. In systems and parallel queries it may
 * be called on any worker, and for several views at the same time. */
typedef void quern_view_callback(quern_context *context, const quern_view *view);

/* Internal: reports why a column was refused, and returns scratch memory for the rows of the view.
 * size_bytes: size of one value, or 0 for the size of the world's largest component. */
QUERN_API void *quern__view_refuse(const quern_view *view, uint32_t term, quern_access access,
                                   size_t size_bytes, const char *function);

/* Internal: returns the version that writes in an iteration of the query get now. */
QUERN_API uint64_t quern__query_write_version(const quern_query *query);

/* Internal: records that the column was written in the rows of the view, in a chunk that has row versions.
 */
QUERN_API void quern__view_note_rows(const quern_view *view, const quern_view_column *column,
                                     uint64_t version);

/* Internal: returns the version that writes through the view get now. */
static inline uint64_t quern__view_version(const quern_view *view)
{
    return view->version ? view->version : quern__query_write_version(view->query);
}

/* Internal: raises a version that other threads may raise to the same value at the same time: row ranges of one chunk
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

/* Internal: records that the column may be written in all rows of the view. Precondition: view->versions.
 */
static inline void quern__view_note(const quern_view *view, const quern_view_column *column)
{
    if (view->row_versions)
        quern__view_note_rows(view, column, quern__view_version(view));
    else
        quern__version_raise(&view->versions[column->version_index], quern__view_version(view));
}

/* Internal: records that the component changed in one row. Precondition: view->versions. */
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

static inline void *quern__view_column_at(const quern_view *view, uint32_t term)
{
    const quern_view_column *column = &view->columns[term];
    if (column->offset_bytes == 0) return 0;
    return view->chunk + column->offset_bytes + QUERN__CAST(size_t, view->first_row) * column->size_bytes;
}

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

/* Internal: implements QUERN_COLUMN for a term that does not declare the access: returns old values, or refuses
 * the call. */
QUERN_API void *quern__view_typed_refused(const quern_view *view, uint32_t term, size_t size_bytes,
                                          const char *type_name, bool reads);

/* Internal: the uncommon cases of QUERN_COLUMN. Compares type names, returns NULL for tags and absent
 * components, and refuses a wrong type. */
QUERN_API void *quern__view_typed_checked(const quern_view *view, uint32_t term, size_t size_bytes,
                                          const char *type_name, bool reads);

/* Internal: implements QUERN_COLUMN. */
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
    return view->chunk + column->offset_bytes + QUERN__CAST(size_t, view->first_row) * size_bytes;
}

/** Returns the column of a term as an array of a C type. A const type reads, like quern_view_read; a
 * non-const type writes, like quern_view_write.
 *
 *     Position *p = QUERN_COLUMN(view, 0, Position);
 *     const Velocity *v = QUERN_COLUMN(view, 1, const Velocity);
 *
 * The call is also refused if sizeof the type differs from the size of the component, and, in a build with
 * QUERN_CHECKS, if the component was registered with another type (QUERN_TYPE, QUERN_COMPONENT_REGISTER).
 * Write the type's name as in the registration; const, struct and namespaces make no difference. */
#ifdef __cplusplus
#define QUERN_COLUMN(view, term, ...) (quern__column<__VA_ARGS__>((view), (term), #__VA_ARGS__))
#else
#define QUERN_COLUMN(view, term, ...)                      \
    ((__VA_ARGS__ *)quern__view_typed(                     \
        (view), (term), sizeof(__VA_ARGS__), #__VA_ARGS__, \
        _Generic(1 ? (__VA_ARGS__ *)0 : (void *)1, const void * : 1, void * : 0)))
#endif

/* ---------------------------------------------------------------------------------- rows that change */

/* Internal: the uncommon cases of the inline functions below. */
QUERN_API void *quern__view_rows_checked(const quern_view *view, uint32_t term, size_t size_bytes,
                                         const char *type_name);
QUERN_API bool quern__view_mark_row(const quern_view *view, uint32_t term, uint32_t row);

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

/* Internal: implements QUERN_COLUMN_ROWS. */
static inline void *quern__view_rows_typed(const quern_view *view, uint32_t term, size_t size_bytes,
                                           const char *type_name)
{
    const quern_view_column *column;
    if (term >= view->term_count || view->columns[term].access != QUERN_ACCESS_WRITE)
        return quern__view_refuse(view, term, QUERN_ACCESS_WRITE, size_bytes, "QUERN_COLUMN_ROWS");
    column = &view->columns[term];
    if (size_bytes == 0 || column->size_bytes != size_bytes || column->is_checked)
        return quern__view_rows_checked(view, term, size_bytes, type_name);
    return view->chunk + column->offset_bytes + QUERN__CAST(size_t, view->first_row) * size_bytes;
}

/** Returns the column of a term as an array of a C type, like quern_view_write_rows, with the checks of
 * QUERN_COLUMN. Call quern_view_mark_row for each row that changes. */
#ifdef __cplusplus
#define QUERN_COLUMN_ROWS(view, term, ...) (quern__column_rows<__VA_ARGS__>((view), (term), #__VA_ARGS__))
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

/* Internal: distance between the addresses of two up-terms, in addresses. It exceeds the number of rows of
 * a chunk, and is no power of two, so that the addresses of several up-terms do not map to the same cache
 * sets. */
#define QUERN__UP_STRIDE 2072

/* Internal: reports why the addresses of an up-term were refused, and returns view.count addresses of one
 * zeroed scratch value. size_bytes: as in quern__view_refuse. */
QUERN_API const void *const *quern__view_refuse_up(const quern_view *view, uint32_t term, size_t size_bytes,
                                                   const char *function);

/* Internal: the uncommon cases of QUERN_UP. Compares type names, and refuses a wrong type. */
QUERN_API const void *const *quern__view_up_checked(const quern_view *view, uint32_t term,
                                                    size_t size_bytes, const char *type_name);

/* Internal: returns whether the term is an up-term. */
static inline bool quern__view_is_up(const quern_view *view, uint32_t term)
{
    return term < view->term_count && view->columns[term].offset_bytes == 0 &&
           view->columns[term].size_bytes != 0;
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

/* Internal: implements QUERN_UP. */
static inline const void *quern__view_up_typed(const quern_view *view, uint32_t term, size_t size_bytes,
                                               const char *type_name)
{
    if (!quern__view_is_up(view, term)) return quern__view_refuse_up(view, term, size_bytes, "QUERN_UP");
    if (view->columns[term].size_bytes != size_bytes || view->columns[term].is_checked)
        return quern__view_up_checked(view, term, size_bytes, type_name);
    return view->up + view->columns[term].version_index * QUERN__CAST(size_t, QUERN__UP_STRIDE) +
           view->first_row;
}

/** Returns the addresses of an up-term's values, like quern_view_up, as pointers to a C type:
 *
 *     const World *const *parents = QUERN_UP(view, 2, World);
 *
 * Refused like QUERN_COLUMN if the type is not that of the component. */
#ifdef __cplusplus
#define QUERN_UP(view, term, ...) (quern__up<__VA_ARGS__>((view), (term), #__VA_ARGS__))
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

/* Internal: the uncommon cases of the inline functions below, wrong calls included. */
QUERN_API bool quern__view_set_enabled(const quern_view *view, uint32_t term, uint32_t row, bool enabled);
QUERN_API bool quern__view_is_enabled(const quern_view *view, uint32_t term, uint32_t row);

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

/* Internal: returns the index of the lowest set bit. Precondition: bits is not 0. */
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

/* ------------------------------------------------------------------------------------------ query */

/** Definition of a query. */
typedef struct quern_query_def {
    /** Name for tools, 1 to QUERN_MAX_NAME_BYTES bytes; NULL for none. It is copied, and several queries may have the
     * same name. */
    const char *name QUERN__ZERO;
    quern_term terms[QUERN_MAX_TERMS] QUERN__ZERO; /**< The terms; at least one. */
    /** Whether a chunk from which terms leave rows out yields one view with all its rows, in which
     * quern_view_next_range returns the selected ranges. If false, the chunk yields one view per range. */
    bool whole_chunks QUERN__ZERO;
} quern_query_def;

/** Creates a query, and matches it against all archetypes. Destroy it before its world. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT (the name, no terms, contradictory members of a term), UNKNOWN_COMPONENT,
 * DUPLICATE_COMPONENT (two terms on the row itself name one component), WORLD_LOCKED, OUT_OF_MEMORY.
 * Threads: main, between frames. */
QUERN_API quern_result quern_query_create(quern_world *world, const quern_query_def *def,
                                          quern_query **out_query);

/** Destroys a query. No iteration of it may be in progress. NULL is allowed. Threads: main, between frames.
 */
QUERN_API void quern_query_destroy(quern_query *query);

/** Returns the definition of a query, with its current target (quern_query_set_target). A match of 0 was replaced by
 * QUERN_MATCH_ALL, which means the same. The name belongs to the query. Errors: NULL_ARGUMENT. Threads: any, as long as
 * no thread destroys the query or sets its target. */
QUERN_API quern_result quern_query_get_def(const quern_query *query, quern_query_def *out_def);

/** Stores the next queries of a list, at most `capacity`, and returns how many it stored. The list has the queries of
 * the world that quern_query_create has created, in the order of creation. Queries of systems belong to their schedules
 * (quern_world_list_schedules).
 *
 * *cursor is 0 for the first page; the call sets it to the next query, or to QUERN_LIST_END after the last one. Queries
 * may be created and destroyed between two calls. A query that exists during all calls is stored exactly once, unless
 * the world has created more than 4 billion queries. Costs O(number of queries and systems); allocates nothing.
 * Returns 0, with a message and *cursor set to QUERN_LIST_END: NULL_ARGUMENT, INVALID_ARGUMENT (capacity is 0).
 * Threads: any, as long as no thread creates or destroys queries, schedules or systems of the world. */
QUERN_API uint32_t quern_world_list_queries_from(const quern_world *world, uint32_t *cursor,
                                                 quern_query **out_queries, uint32_t capacity);

/** Sets the target of a query's target term (quern_term_target). With a null target, no row matches.
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT (the query has no target term), STALE_ENTITY, FOREIGN_ENTITY,
 * PROVISIONAL_ENTITY, WORLD_LOCKED. Threads: main, between frames and in exclusive systems. */
QUERN_API quern_result quern_query_set_target(quern_query *query, quern_entity target);

/** Returns the number of entities that match. Costs one addition per matching archetype; if terms leave
 * rows out, every candidate row is checked. Returns 0 with a message if memory for new matches is
 * exhausted, or the world is locked. Threads: main, between frames. */
QUERN_API uint64_t quern_query_count(quern_query *query);

/* Internal: a chunk in the list of chunks that an iteration visits. */
typedef struct quern__chunk_entry {
    uint32_t count; /* copied to the view, like the members up to `columns` */
    uint32_t ordinal;
    const quern_entity *entities;
    char *chunk;
    const quern_view_column *columns;
    /* archetype of the chunk, if it has versions or row bits; otherwise NULL */
    const struct quern__archetype *tracking_archetype;
    uint32_t slot;
    bool fetches_next; /* whether the next entry is prefetched while this one is processed */
    bool is_plain;     /* whether fetches_next is false, and tracking_archetype is NULL in the whole list */
} quern__chunk_entry;

/* Internal: a set of rows of one chunk, one bit per row. */
typedef struct quern__row_mask {
    uint64_t words[32]; /* only the first word_count are valid */
    uint32_t word_count;
} quern__row_mask;

/** Visits the matches by archetype, chunk and row. */
typedef struct quern_query_iterator {
    quern_view view;     /**< The current view. */
    quern_result result; /**< QUERN_OK, or the reason why the iteration ended early. */
    quern_query *query;  /**< Internal: the query. */
    /** Internal: next chunk to visit; NULL if there is no list of chunks. */
    const quern__chunk_entry *next_entry;
    const quern__chunk_entry *end_entry; /**< Internal: end of the list of chunks; NULL if there is none. */
    /** Internal: points to the world's structure version. */
    const uint64_t *current_version;
    /** Internal: the structure version at the start of the iteration. */
    uint64_t expected_version;
    /** Internal: points to whether the world is locked, by a running frame for example. */
    const bool *is_locked;
    /** Internal: change filters select what has a greater version. */
    uint64_t seen_version;
    struct quern__up_buffer *up_buffer; /**< Internal: addresses of the up-terms; NULL if none. */
    uint32_t view_count;                /**< Internal: ordinal of the next view. */
    uint32_t match_index;               /**< Internal: index of the current match. */
    uint32_t chunk_index;               /**< Internal: index of the next chunk of the match. */
    uint32_t up_number;                 /**< Internal: number that identifies the iteration in up_buffer. */
    /** Internal: row from which `mask` still has rows to visit; UINT32_MAX if it has none. */
    uint32_t next_row;
    /** Internal: rows of the current chunk that terms select; valid only with next_row. */
    quern__row_mask mask;
} quern_query_iterator;

/** Starts an iteration. If the call fails, `result` of the iterator is the error, and there are no views.
 *
 * A successful call counts for change filters as having seen all changes so far, even if the iteration
 * ends early.
 *
 * A query with up-terms supports eight iterations at a time. An iteration that was left early counts until
 * quern_query_iterator_end is called or the structure changes. A ninth iteration ends one of the others.
 * Preferably, it ends one with an iterator object that a later iteration has reused, as happens if an
 * inner loop is left early on each round of an outer loop. If there is none, it ends the one that has not
 * advanced for the longest time. The next quern_query_next of the ended iteration returns false with
 * result INVALID_ARGUMENT, which is also reported to the log and to the assert handler; its addresses are
 * invalid.
 *
 * Errors: NULL_ARGUMENT, WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames and in exclusive
 * systems. */
QUERN_API quern_query_iterator quern_query_iterate(quern_query *query);

/** Ends an iteration before its last view. The view becomes invalid, and quern_query_next returns false
 * from then on. Needed only for queries with up-terms, if more than eight iterations are nested or left
 * early. Has no effect on an iteration that has ended, and on NULL. Call it before the query is destroyed.
 * Threads: the thread of the iteration. */
QUERN_API void quern_query_iterator_end(quern_query_iterator *iterator);

/* Internal: the part of quern_query_next that finds the next chunk without a list, or the reason why the
 * iteration ends. */
QUERN_API bool quern__query_next(quern_query_iterator *iterator);

/* Internal: processes an entry that is not plain: sets the versions and row bits of the view, and
 * prefetches the next entry. */
QUERN_API void quern__query_attend(quern_query_iterator *iterator, const quern__chunk_entry *entry);

/* Internal: distance of the prefetch, in entries. The list is padded with this many copies of its last
 * entry. */
#define QUERN__PREFETCH_ENTRIES 4

/* Internal: prefetches the first cache line of each column of an entry. Many small archetypes are visited
 * in an order that a hardware prefetcher cannot predict. */
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

/** Advances to the next view. Returns false at the end.
 *
 * If an entity is created or destroyed, or a component added or removed, during the iteration, the next
 * call returns false with result STRUCTURE_CHANGED. Collect the entities first, and change them after the
 * loop. Iterating a query again costs least if the structure has not changed since. */
static inline bool quern_query_next(quern_query_iterator *iterator)
{
    const quern__chunk_entry *entry;
    if (iterator == 0 || iterator->next_entry == iterator->end_entry || *iterator->is_locked ||
        *iterator->current_version != iterator->expected_version)
        return quern__query_next(iterator);
    entry = iterator->next_entry++;
    quern__query_prefetch(entry + QUERN__PREFETCH_ENTRIES, iterator->view.term_count);
    iterator->view.count = entry->count;
    iterator->view.ordinal = entry->ordinal;
    iterator->view.entities = entry->entities;
    iterator->view.chunk = entry->chunk;
    iterator->view.columns = entry->columns;
    if (!entry->is_plain) quern__query_attend(iterator, entry);
    return true;
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
