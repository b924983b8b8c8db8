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
 * <quern/view.h> says how to read and write the rows of a view. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>
#include <quern/relation.h>
#include <quern/type.h>
#include <quern/view.h>

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

/** Which rows a term selects if its component can be disabled (can_disable in quern_component_def). */
typedef enum quern_term_enabled {
    QUERN_TERM_ENABLED, /**< Rows in which the component is enabled. The default. */
    /** Rows in which it is disabled; see quern_term_if_disabled. */
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
 * quern_term_if_disabled, or one view with quern_view_next_range. With several filters, a row is selected if any
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

/** Makes a term select the entities in which the component is disabled (quern_entity_set_component_enabled),
 * and keeps the term's access. For example, `quern_term_if_disabled(quern_term_write(loaded))` selects the
 * weapons that are being reloaded, to count down their remaining seconds, and
 * `quern_term_if_disabled(quern_term_with(loaded))` does not access their values. Only for terms with
 * QUERN_MATCH_ALL on the row itself; creating a query with any other such term fails.
 *
 * All other terms that require a component which can be disabled (quern_term_read, quern_term_write and
 * quern_term_with) select only rows in which it is enabled, unless they are changed by this function or by
 * quern_term_either. A chunk therefore yields one view per range of selected rows, or none. The views of a
 * chunk share one ordinal, one partial result and one command stream, so a callback must add to its partial
 * result instead of assigning it. A chunk in which nothing is disabled yields one view. With
 * QUERN_SYSTEM_WHOLE_CHUNKS or whole_chunks, the chunk yields one view with all rows, and
 * quern_view_next_range returns the ranges.
 *
 * quern_term_without selects entities that lack the component altogether. Optional, ANY and up-terms check
 * only presence, not whether the component is enabled; quern_view_is_enabled returns that for the row
 * itself. In a system, each term on a component that can be disabled is at least a read access of it.
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
 * search costs one step per ancestor. With QUERN_MATCH_OPTIONAL (quern_term_up_make), no row is left out: the
 * address is NULL if no ancestor has the component. If the relation allows cycles, a search ends after one round of the
 * cycle; it may then find the row itself. Disabled entities are searched like all others, as by quern_term_up: disable a
 * tree to leave out its rows, too. */
static inline quern_term quern_term_up_nearest(quern_component component, quern_relation relation)
{
    return quern_term_up_make(component, relation, QUERN_MATCH_ALL, QUERN_PATH_NEAREST);
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

/* ------------------------------------------------------------------------------------------ query */

/** Compares two values of a component for quern_order. Returns a number below 0 if `a` belongs before `b`, above 0 if `b`
 * belongs before `a`, and 0 if neither does. The result must depend on the two values alone (and on what user_data leads
 * to, if that never changes), and the function must not call functions of the world. In a system it runs on any worker. */
typedef int quern_compare_function(const void *a, const void *b, void *user_data);

/** The order in which a query visits its rows: by a field of a component, or by a comparison.
 *
 *     .terms = {quern_term_read(sprite)}, .order_by = {.component = sprite, .field = "depth"}
 *
 * Numbers ascend, false is before true, and enums are in the order of their numbers. Entities ascend by
 * quern_entity_index, then by quern_entity_use_count, which are the same in every process; null is first. -0 equals 0. NaN equals NaN, whatever its bits, and is greater than every other number. Rows that compare
 * equal are visited by archetype, chunk and row, as without an order, also if `descending` is set. So the order depends on
 * the world alone: it is the same at any number of threads, and after restoring a frame of a history. */
typedef struct quern_order {
    /** The component that has the field. A term of the query must read or write it, with QUERN_MATCH_ALL and on the row
     * itself. Null: the query has no order; then no other member may be set. */
    quern_component component QUERN__ZERO;
    /** Name of a described field of the component (quern_component_def), such as "place.x", of any type but an array,
     * a text, a string or a list. It is copied. NULL: `type` and `offset_bytes` say what to sort by, unless `compare` is set. */
    const char *field QUERN__ZERO;
    quern_field_type type QUERN__ZERO; /**< Type of the field, if `field` is NULL; not QUERN_FIELD_TEXT. */
    uint32_t offset_bytes
        QUERN__ZERO; /**< Offset of the field from the start of the value, if `field` is NULL. */
    bool descending QUERN__ZERO; /**< Whether greater values come first. */
    /** Compares whole values of the component, instead of a field; then `field` and `type` are not set. */
    quern_compare_function *compare QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to `compare`. */
} quern_order;

/** Definition of a query. */
typedef struct quern_query_def {
    /** Name for tools, 1 to QUERN_MAX_NAME_BYTES bytes; NULL for none. It is copied, and several queries may have the
     * same name. */
    const char *name QUERN__ZERO;
    quern_term terms[QUERN_MAX_TERMS] QUERN__ZERO; /**< The terms; at least one. */
    /** Whether a chunk from which terms leave rows out yields one view with all its rows, in which
     * quern_view_next_range returns the selected ranges. If false, the chunk yields one view per range. */
    bool whole_chunks QUERN__ZERO;
    /** The order of the rows. The default is none: by archetype, chunk and row.
     *
     * A query with an order has one view for each range of rows that follow each other in a chunk and in the order: mostly
     * single rows. They are sorted when an iteration starts, if something has changed since the last one: values by writes
     * that change filters notice too (quern_term_changed), or rows. Only the rows of changed chunks are then sorted and
     * merged into the others, unless these are more than a quarter of all. What a loop writes moves no row of the same loop.
     * An iteration ends with STRUCTURE_CHANGED if another one of the same query begins in it after such a write.
     *
     * Such a query has no target term, no change filter and no whole_chunks, and quern_query_parallel_for refuses it. A
     * system has it among its further queries (queries in quern_system_def), or for its own rows (order_by there). */
    quern_order order_by QUERN__ZERO;
} quern_query_def;

/** Creates a query, and matches it against all archetypes. Destroy it before its world. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT (the name, no terms, contradictory members of a term, order_by), UNKNOWN_COMPONENT,
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

/** Returns whether an entity matches. Change filters are not applied. The cost does not grow with the number of entities,
 * but with the logarithm of the number of matching archetypes. False, with a message, for NULL, for an entity that is not
 * alive, if memory for new matches is exhausted, or the world is locked. Threads: main, between frames. */
QUERN_API bool quern_query_matches(quern_query *query, quern_entity entity);

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
 * Errors: NULL_ARGUMENT, INVALID_ARGUMENT (the component of order_by was redefined without its field), WORLD_LOCKED,
 * OUT_OF_MEMORY. Threads: main, between frames and in exclusive systems. */
QUERN_API quern_query_iterator quern_query_iterate(quern_query *query);

/** Numbers of an order (order_by): what it cost to sort, last and in all. */
typedef struct quern_order_stats {
    uint64_t row_count; /**< Rows in the order, when it was last sorted. */
    uint64_t
        sorted_row_count; /**< Rows that the last sort has read: all, or those of chunks that had changed. */
    uint64_t sort_count;  /**< How often something was sorted. */
    uint64_t
        all_sorted_count; /**< How often all rows were sorted, since more than a quarter of them had changed. */
} quern_order_stats;

/** Stores the numbers of a query's order as it is, without sorting; all zero if the query has no order. Those of systems are
 * in quern_schedule_describe. Errors: NULL_ARGUMENT. Threads: any, as long as no thread iterates the query. */
QUERN_API quern_result quern_query_get_order_stats(const quern_query *query, quern_order_stats *out_stats);

/** Ends an iteration before its last view. The view becomes invalid, and quern_query_next returns false
 * from then on. Needed only for queries with up-terms, if more than eight iterations are nested or left
 * early. Has no effect on an iteration that has ended, and on NULL. Call it before the query is destroyed.
 * Threads: the thread of the iteration. */
QUERN_API void quern_query_iterator_end(quern_query_iterator *iterator);

/** Advances to the next view. Returns false at the end.
 *
 * If an entity is created or destroyed, a component added or removed, or rows are moved by
 * quern_world_reserve or quern_world_trim, during the iteration, the next call returns false with result
 * STRUCTURE_CHANGED. Collect the entities first, and change them after the loop. Iterating a query again
 * costs least if the structure has not changed since. */
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
    iterator->view.run_shift = entry->run_shift;
    iterator->view.chunk_row = entry->chunk_row;
    iterator->view.memory = entry->memory;
    iterator->view.chunk = entry->chunk;
    iterator->view.columns = entry->columns;
    if (!entry->is_plain) quern__query_attend(iterator, entry);
    return true;
}

#ifdef __cplusplus
}
#endif

#endif
