/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_QUERY_H
#define QUERN_QUERY_H

/** @file
 * Queries find the entities that have some components and lack others, and provide them as *views*: runs
 * of rows of one chunk, with a plain array per component, which a compiler can vectorise.
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
 * Entities that are disabled come to no view unless a term names quern_world_disabled (<quern/active.h>).
 *
 * Copy the count, in systems too. A loop that reads it in place, and writes values of uint32_t, might
 * write the count as far as the compiler knows, and is not vectorised. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>
#include <quern/relation.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_TERMS 32 /**< Terms per query or system. */

/* ------------------------------------------------------------------------------------------ terms */

/** What a term asks of an entity. */
typedef enum quern_match {
    QUERN_MATCH_ALL = 1,  /**< The entity has the component. 0 counts as this, too. */
    QUERN_MATCH_NONE,     /**< The entity does not have it. */
    QUERN_MATCH_OPTIONAL, /**< Either; the view tells which. */
    QUERN_MATCH_ANY /**< The entity has at least one of the query's ANY terms; the view tells which. */
} quern_match;

/** What is done with a component or resource. */
typedef enum quern_access {
    QUERN_NO_ACCESS, /**< Only matched. */
    QUERN_READ,      /**< Read. */
    QUERN_WRITE,     /**< Read and written. */
    /** Only for resources: jobs of one system write at the same time, each its own part, and the system
     * guarantees that the result does not depend on their order. For other systems this is a write. */
    QUERN_WRITE_CONCURRENT
} quern_access;

/** Which of the entities that have a component a term is about, where the component can be disabled
 * (can_disable in quern_component_def). */
typedef enum quern_term_enabled {
    QUERN_IF_ENABLED,  /**< Those that have it enabled. */
    QUERN_IF_DISABLED, /**< Those that have it disabled; see quern_term_disabled, quern_term_if_disabled. */
    QUERN_IF_EITHER    /**< All; see quern_term_either. */
} quern_term_enabled;

/** Whose component a term is about. */
typedef enum quern_reach {
    QUERN_REACH_ROW,     /**< That of the row itself. */
    QUERN_REACH_UP,      /**< That of the row's target; see quern_term_up. */
    QUERN_REACH_NEAREST, /**< That of the nearest ancestor which has it; see quern_term_up_nearest. */
} quern_reach;

/** A term of a query. Its index in the list names the column of a view. A term that is set and names no
 * component is refused. */
typedef struct quern_term {
    quern_component component;  /**< What the term is about. */
    quern_match match;          /**< What it asks of an entity. */
    quern_access access;        /**< What is done with the values. */
    bool changed;               /**< See quern_term_changed. */
    quern_term_enabled enabled; /**< Of whom, where the component can be disabled. */
    quern_reach reach;          /**< Whose component it is. */
    quern_relation relation;    /**< The way from the row to that entity; null for the row itself. */
    bool by_target;             /**< See quern_term_target. */
    quern_entity target;        /**< The target of the rows, where by_target is set. */
} quern_term;

/** Makes a term of its parts. */
static inline quern_term quern_term_make(quern_component component, quern_match match, quern_access access)
{
    quern_term term;
    term.component = component;
    term.match = match;
    term.access = access;
    term.changed = false;
    term.enabled = QUERN_IF_ENABLED;
    term.reach = QUERN_REACH_ROW;
    term.relation.bits = 0;
    term.by_target = false;
    term.target = quern_entity_null();
    return term;
}

/** Makes a term: the entity has the component, and its values are read. */
static inline quern_term quern_term_read(quern_component component)
{
    return quern_term_make(component, QUERN_MATCH_ALL, QUERN_READ);
}

/** Makes a term: the entity has the component, and its values are read and written. */
static inline quern_term quern_term_write(quern_component component)
{
    return quern_term_make(component, QUERN_MATCH_ALL, QUERN_WRITE);
}

/** Makes a term: the entity has the component; its values are not accessed (tags). */
static inline quern_term quern_term_with(quern_component component)
{
    return quern_term_make(component, QUERN_MATCH_ALL, QUERN_NO_ACCESS);
}

/** Makes a term: the entity does not have the component. */
static inline quern_term quern_term_without(quern_component component)
{
    return quern_term_make(component, QUERN_MATCH_NONE, QUERN_NO_ACCESS);
}

/** Makes a term: the entity may have the component; quern_view_has tells. */
static inline quern_term quern_term_optional(quern_component component, quern_access access)
{
    return quern_term_make(component, QUERN_MATCH_OPTIONAL, access);
}

/** Makes a term: the entity has at least one component of all ANY terms; quern_view_has tells which. */
static inline quern_term quern_term_any(quern_component component, quern_access access)
{
    return quern_term_make(component, QUERN_MATCH_ANY, access);
}

/** Makes a term a change filter, too: views come only from chunks in which the component may have changed
 * since the system last ran, or the query was last iterated. With several such terms, any of their
 * components counts. The first time, every chunk counts as changed.
 *
 * On a component with row_changes (quern_component_def) the filter lets single rows pass: those in which it
 * has changed. So a chunk may come as several views, one for each run of such rows, as with
 * quern_term_disabled, or by runs (quern_view_next_run). With several filters, a row passes if any of them
 * lets it: one by row because of the row, any other because of its chunk. Rows that other terms leave out,
 * as those that have a component disabled, do not come; to the filter they have been looked at.
 *
 * A chunk counts as changed when a view of it was asked for the component with quern_view_write, when
 * quern_entity_set or a command gave it a value, by quern_entity_mark_changed, when the component was
 * enabled or disabled, and when entities came to the chunk or moved within it; not by writes through
 * pointers from quern_entity_get. That the value is the same as before makes no difference: enabling an enabled
 * component is a change. But a tag has no value, so a command that sets a tag which the entity has is none. A row
 * has changed when the same was done to it, or the component was
 * added to it, by a create, too. One that moves, in its archetype or to another that has the component, has
 * not. quern_view_write changes all rows of the view (those of its runs, where it comes by runs),
 * quern_view_write_rows those that quern_view_mark_row names.
 *
 * What a system, or a loop over the query, writes itself through views is not new to it (to a loop it may be,
 * when other queries with filters are iterated inside it); nor is what a system writes by
 * quern_context_lookup_write. What the commands of a system change is new to the system itself, since a sync
 * point makes the change after the system has run. In a system the filter is a read access: it sees changes
 * that earlier systems made in the same frame. */
static inline quern_term quern_term_changed(quern_term term)
{
    term.changed = true;
    return term;
}

/** Makes a term: the entity has the component, and has it disabled (quern_entity_enable). The values are
 * not accessed; quern_term_if_disabled has terms that access them.
 *
 * All other terms that ask for a component which can be disabled (quern_term_read, _write and _with) are
 * about entities that have it enabled, unless quern_term_if_disabled or quern_term_either say otherwise. So
 * a chunk may come as several views, one for each run of rows that stay, or as none. Its views have one
 * ordinal, and share partial result and commands: a kernel that computes a partial result adds to it. A
 * chunk where nothing is disabled comes as ever. A system or query may also have all rows in one view, and
 * the runs from it (quern_view_next_run).
 *
 * quern_term_without is about entities that do not have the component at all; an optional or ANY term asks
 * whether they have it, and an up-term whether the target has it, enabled or not (quern_view_is_enabled
 * tells). In a system, a term on such a component is a read access of it, whatever its own access says. */
static inline quern_term quern_term_disabled(quern_component component)
{
    quern_term term = quern_term_with(component);
    term.enabled = QUERN_IF_DISABLED;
    return term;
}

/** Makes a term be about the entities that have the component disabled, with the same access:
 * `quern_term_if_disabled(quern_term_write(loaded))` is about weapons that are being loaded, whose seconds
 * count down. For terms of match QUERN_MATCH_ALL, on the row itself; others are refused.
 *
 * It says which rows the views have, and nothing else. So conflicts, change filters and versions are those
 * of the term that it is made of: a system that writes the enabled rows and one that writes the disabled
 * ones write the same component, and never run at the same time. */
static inline quern_term quern_term_if_disabled(quern_term term)
{
    term.enabled = QUERN_IF_DISABLED;
    return term;
}

/** Makes a term leave out no entity because it has the component disabled. */
static inline quern_term quern_term_either(quern_term term)
{
    term.enabled = QUERN_IF_EITHER;
    return term;
}

/** Makes an *up-term* of its parts; the calls below have the rules. */
static inline quern_term quern_term_up_make(quern_component component, quern_relation relation,
                                            quern_match match, quern_reach reach)
{
    quern_term term = quern_term_make(component, match, QUERN_READ);
    term.reach = reach;
    term.relation = relation;
    return term;
}

/** Makes an up-term: the row has a target by the relation, the target has the component, and its value is
 * read.
 *
 * The addresses of the values are there when a view comes: QUERN_UP has them, one per row. The processor
 * was asked for what they point at, and neighbours with the same target share one search. Rows whose target
 * lacks the component are left out, so that a chunk may come as several views, one for each run of rows
 * that stay, or as none. Its views have one ordinal, and share partial result and commands: a kernel that
 * computes a partial result adds to it.
 *
 * An up-term is read only, is no change filter, and takes no tags. In a system it is a lookup of the
 * component: the system runs before or after those that write it, never at the same time. A system or a
 * parallel query that writes the component in its own rows is refused, unless the system goes by the levels
 * of the relation (quern_system_def) or is QUERN_SYSTEM_SERIAL. The same component may also stand in a term
 * on the row itself. */
static inline quern_term quern_term_up(quern_component component, quern_relation relation)
{
    return quern_term_up_make(component, relation, QUERN_MATCH_ALL, QUERN_REACH_UP);
}

/** Makes an up-term that leaves no row out: the address is NULL where the row has no target, or the target
 * lacks the component. */
static inline quern_term quern_term_up_optional(quern_component component, quern_relation relation)
{
    return quern_term_up_make(component, relation, QUERN_MATCH_OPTIONAL, QUERN_REACH_UP);
}

/** Makes an up-term whose value is that of the nearest ancestor which has the component: the target, or its
 * target, and so on; not the row itself. Rows without such an ancestor are left out. Each search takes a
 * step per ancestor. Where the relation lets targets go round in a circle, a search ends when it has been
 * round; what it finds may then be the row itself. */
static inline quern_term quern_term_up_nearest(quern_component component, quern_relation relation)
{
    return quern_term_up_make(component, relation, QUERN_MATCH_ALL, QUERN_REACH_NEAREST);
}

/** Makes an up-term as quern_term_up_nearest that leaves no row out: the address is NULL where no ancestor
 * has the component. */
static inline quern_term quern_term_up_nearest_optional(quern_component component, quern_relation relation)
{
    return quern_term_up_make(component, relation, QUERN_MATCH_OPTIONAL, QUERN_REACH_NEAREST);
}

/** Makes a *target term*: the row's target by the relation is this very entity. A null target, or one that
 * has died, has no rows; quern_query_set_target and quern_schedule_set_target give another one.
 *
 * The rows are found by walking the children of the target, and come in the order of archetype, chunk and
 * row: a view is a run of neighbours of one chunk, often a single row. So a walk takes the time of a look
 * at each child, however many other rows there are. The list of them is kept until rows move or entities
 * are related. A query or system has one such term at most; a system with one runs as one job, its views in
 * order. Who relates entities during an iteration ends it, as by a change of structure. Calls that change
 * all that match a query refuse one with a target term. */
static inline quern_term quern_term_target(quern_relation relation, quern_entity target)
{
    quern_term term = quern_term_make(quern_relation_component(relation), QUERN_MATCH_ALL, QUERN_NO_ACCESS);
    term.by_target = true;
    term.target = target;
    return term;
}

/* ------------------------------------------------------------------------------------------- view */

/** What happened to the rows of a reaction's views; see reacts_to in quern_system_def. Combine with |. */
typedef enum quern_reaction_kind {
    QUERN_ON_ADDED = 1,   /**< They match now, and did not before. */
    QUERN_ON_SET = 2,     /**< They match as before, and a command or call gave a value. */
    QUERN_ON_REMOVED = 4, /**< They match no longer; the view has copies of what they had. */
    QUERN_ON_PRESENT = 8  /**< With QUERN_ON_ADDED: those that match when the system is added, too. */
} quern_reaction_kind;

/** What a callback can reach besides its view; see <quern/context.h>. */
typedef struct quern_context quern_context;
/** A list of terms and the archetypes that match them. */
typedef struct quern_query quern_query;

/** Internal: where a term's column lies in the chunks of one archetype. */
typedef struct quern_view_column {
    /** From the chunk; 0: the term has no values here. With a size, it is an up-term, without access. */
    uint16_t offset_bytes;
    uint16_t size_bytes; /**< Of one value. */
    uint8_t access;      /**< A quern_access. */
    /** Not 0: the archetype has the component; of an up-term, the relation. From 2 on the component can be
     * disabled, and this is 2 + the number of its plane. */
    uint8_t present;
    /** Of the column, among the chunk's versions; of an up-term, which of the query's it is. */
    uint8_t version_index;
    uint8_t is_checked; /**< In a build with QUERN_CHECKS: names of types are compared, too. */
} quern_view_column;

/** A run of rows of one chunk. Valid until the callback returns or the iterator moves on. */
typedef struct quern_view {
    uint32_t count; /**< Rows, at least 1 (0 only in a system without terms). Loops copy it, see above. */
    /** 0, 1, 2 ... over the views of one system run or one iteration, in order. In a system, views that
     * its filters leave out count. With up-terms it counts chunks, whose views share it. */
    uint32_t ordinal;
    const quern_entity *entities; /**< The handles of the rows. */
    uint32_t first;      /**< In a fill, the number of the first row within the call; otherwise 0. */
    uint32_t first_row;  /**< Internal. */
    uint32_t term_count; /**< Internal. */
    char *chunk;         /**< Internal. */
    const quern_view_column *columns; /**< Internal: term_count of them. */
    const quern_query *query;         /**< Internal. */
    quern_context *context;           /**< Internal: NULL in a plain iteration. */
    uint64_t *versions;               /**< Internal: of the chunk's columns; NULL: not kept. */
    /** Internal: of what is written; 0: in a plain iteration, where it depends on when. */
    uint64_t version;
    const void *const *up;  /**< Internal: addresses of up-terms, by number and row of the chunk. */
    uint64_t *planes;       /**< Internal: of the chunk: who has what disabled; NULL: nothing can be. */
    uint64_t *row_versions; /**< Internal, with versions: of the chunk's rows; NULL: none are kept. */
    const uint32_t *row_offsets; /**< Internal, with row_versions: by version index. */
    const uint64_t *rows; /**< Internal: rows of the chunk that are in runs; NULL: all of the view's. */
    uint32_t plane_words; /**< Internal: of one plane. */
    uint16_t row_words;   /**< Internal: of rows. */
    uint16_t is_shared;   /**< Internal: the chunk may have rows in other views at the same time. */
} quern_view;

/** Called with a view: the function of a system (quern_system_def), a parallel query
 * (quern_query_parallel_for) or a fill (quern_entity_create_filled).
 *
 * A kernel touches the rows of the view through the columns that the terms declare, what it may reach
 * through the context (<quern/context.h>), and nothing else. In systems and parallel queries it may run
 * on any worker, on several views at the same time. */
typedef void quern_kernel(quern_context *context, const quern_view *view);

/* Internal: reports why a column was refused and returns scratch memory for the rows of the view. size_bytes:
 * of one value; 0 stands for the size of the world's largest component. */
QUERN_API void *quern__view_refuse(const quern_view *view, uint32_t term, quern_access access,
                                   size_t size_bytes, const char *function);

/* The version of what is written now in an iteration of the query. */
QUERN_API uint64_t quern__query_write_version(const quern_query *query);

/* The column has been written in the rows of the view: notes that in a chunk whose rows have versions. */
QUERN_API void quern__view_note_rows(const quern_view *view, const quern_view_column *column,
                                     uint64_t version);

/* Internal: the version of what is written in the view now. */
static inline uint64_t quern__view_version(const quern_view *view)
{
    return view->version ? view->version : quern__query_write_version(view->query);
}

/* Internal: the column may be written in all rows of a view with versions. */
static inline void quern__view_note(const quern_view *view, const quern_view_column *column)
{
    if (view->row_versions)
        quern__view_note_rows(view, column, quern__view_version(view));
    else
        view->versions[column->version_index] = quern__view_version(view);
}

/* Internal: the component changes in one row of a view with versions. */
static inline void quern__view_note_row(const quern_view *view, const quern_view_column *column,
                                        uint32_t row)
{
    const uint64_t version = quern__view_version(view);
    uint64_t *of_chunk = &view->versions[column->version_index];
    if (!view->row_versions || *of_chunk < version) *of_chunk = version;
    if (view->row_versions && view->row_offsets[column->version_index] != 0xFFFFFFFFu)
        view->row_versions[view->row_offsets[column->version_index] + view->first_row + row] = version;
}

static inline void *quern__view_column_at(const quern_view *view, uint32_t term)
{
    const quern_view_column *column = &view->columns[term];
    if (column->offset_bytes == 0) return 0;
    return view->chunk + column->offset_bytes + (size_t)view->first_row * column->size_bytes;
}

/** Returns the view.count values of a term declared with QUERN_WRITE, to read and write. Returns NULL for
 * tags and where the entities lack an optional component.
 *
 * If the term is not declared so, the call is *refused*: it is reported, and the column is scratch memory
 * instead of values. Scratch memory has room for view.count values of the requested type, is zeroed, is used
 * by no other worker, shares no byte with the world, and is valid as long as the view. So the callback
 * can go on; what it writes there is lost. quern_view_write and quern_view_read do not know the requested
 * type and make room for the largest component of the world. A refused call returns NULL only if there is no
 * memory. <quern/context.h> says what follows. */
static inline void *quern_view_write(const quern_view *view, uint32_t term)
{
    if (term >= view->term_count || view->columns[term].access != QUERN_WRITE)
        return quern__view_refuse(view, term, QUERN_WRITE, 0, "quern_view_write");
    if (view->columns[term].offset_bytes == 0) return 0;
    if (view->versions) quern__view_note(view, &view->columns[term]);
    return quern__view_column_at(view, term);
}

/** Returns the view.count values of a term declared with QUERN_READ or QUERN_WRITE, to read. NULL, and
 * refused, as in quern_view_write. */
static inline const void *quern_view_read(const quern_view *view, uint32_t term)
{
    if (term >= view->term_count || view->columns[term].access == QUERN_NO_ACCESS)
        return quern__view_refuse(view, term, QUERN_READ, 0, "quern_view_read");
    return quern__view_column_at(view, term);
}

/* Internal: the part of QUERN_COLUMN that compares types by name, returns NULL for tags and absent components,
 * and refuses a wrong type. */
QUERN_API void *quern__view_typed_checked(const quern_view *view, uint32_t term, size_t size_bytes,
                                          const char *type_name, bool reads);

/* For QUERN_COLUMN. */
static inline void *quern__view_typed(const quern_view *view, uint32_t term, size_t size_bytes,
                                      const char *type_name, bool reads)
{
    const quern_view_column *column;
    if (term >= view->term_count ||
        (reads ? view->columns[term].access == QUERN_NO_ACCESS : view->columns[term].access != QUERN_WRITE))
        return quern__view_refuse(view, term, reads ? QUERN_READ : QUERN_WRITE, size_bytes, "QUERN_COLUMN");
    column = &view->columns[term];
    if (size_bytes == 0 || column->size_bytes != size_bytes || column->is_checked)
        return quern__view_typed_checked(view, term, size_bytes, type_name, reads);
    if (!reads && view->versions) quern__view_note(view, column);
    return view->chunk + column->offset_bytes + (size_t)view->first_row * size_bytes;
}

/** Returns the column of a term as an array of a C type: with const to read, as quern_view_read; without to
 * write, as quern_view_write.
 *
 *     Position *p = QUERN_COLUMN(view, 0, Position);
 *     const Velocity *v = QUERN_COLUMN(view, 1, const Velocity);
 *
 * It is refused, too, when a value of the component has another size; and in a build with QUERN_CHECKS when
 * the component was registered as another type (QUERN_TYPE, QUERN_COMPONENT_REGISTER). Name the type as
 * there; const, struct and namespaces make no difference. */
#ifdef __cplusplus
#define QUERN_COLUMN(view, term, ...) (quern__column<__VA_ARGS__>((view), (term), #__VA_ARGS__))
#else
#define QUERN_COLUMN(view, term, ...)                      \
    ((__VA_ARGS__ *)quern__view_typed(                     \
        (view), (term), sizeof(__VA_ARGS__), #__VA_ARGS__, \
        _Generic(1 ? (__VA_ARGS__ *)0 : (void *)1, const void * : 1, void * : 0)))
#endif

/* ---------------------------------------------------------------------------------- rows that change */

/* Internal: the uncommon cases of the inline calls below. */
QUERN_API void *quern__view_rows_checked(const quern_view *view, uint32_t term, size_t size_bytes,
                                         const char *type_name);
QUERN_API bool quern__view_mark_row(const quern_view *view, uint32_t term, uint32_t row);

/** Returns the values of a term as quern_view_write, but tells no change filter, and no history, that they
 * change: call quern_view_mark_row for each row that does. Meant for components with row_changes
 * (quern_component_def), of which few rows are written; in any other, one marked row marks its chunk. */
static inline void *quern_view_write_rows(const quern_view *view, uint32_t term)
{
    if (term >= view->term_count || view->columns[term].access != QUERN_WRITE)
        return quern__view_refuse(view, term, QUERN_WRITE, 0, "quern_view_write_rows");
    return view->columns[term].offset_bytes != 0 ? quern__view_column_at(view, term) : 0;
}

/* For QUERN_COLUMN_ROWS. */
static inline void *quern__view_rows_typed(const quern_view *view, uint32_t term, size_t size_bytes,
                                           const char *type_name)
{
    const quern_view_column *column;
    if (term >= view->term_count || view->columns[term].access != QUERN_WRITE)
        return quern__view_refuse(view, term, QUERN_WRITE, size_bytes, "QUERN_COLUMN_ROWS");
    column = &view->columns[term];
    if (size_bytes == 0 || column->size_bytes != size_bytes || column->is_checked)
        return quern__view_rows_checked(view, term, size_bytes, type_name);
    return view->chunk + column->offset_bytes + (size_t)view->first_row * size_bytes;
}

/** Returns the column of a term as an array of a C type, to write rows of which each is marked by itself:
 * quern_view_write_rows, with the checks of QUERN_COLUMN. */
#ifdef __cplusplus
#define QUERN_COLUMN_ROWS(view, term, ...) (quern__column_rows<__VA_ARGS__>((view), (term), #__VA_ARGS__))
#else
#define QUERN_COLUMN_ROWS(view, term, ...) \
    ((__VA_ARGS__ *)quern__view_rows_typed((view), (term), sizeof(__VA_ARGS__), #__VA_ARGS__))
#endif

/** Tells change filters, and histories, that a row of the view has changed in the component of a term,
 * which is declared with QUERN_WRITE; before or after it is written. Filters on a component with
 * row_changes see this row, others its chunk. The runs of the view stay as they were. Returns whether it
 * was done; false, with a message, when the call is wrong. */
static inline bool quern_view_mark_row(const quern_view *view, uint32_t term, uint32_t row)
{
    if (term >= view->term_count || row >= view->count || view->columns[term].access != QUERN_WRITE ||
        !view->columns[term].present)
        return quern__view_mark_row(view, term, row);
    if (view->versions) quern__view_note_row(view, &view->columns[term], row);
    return true;
}

/* Internal: addresses of one up-term. A chunk has fewer rows; and no power of two, so that those of
 * several up-terms do not meet in the same cache sets. */
#define QUERN__UP_STRIDE 2072

/* Internal: reports why the addresses of an up-term were refused, and returns as many addresses of one zeroed
 * scratch value. size_bytes: as in quern__view_refuse. */
QUERN_API const void *const *quern__view_refuse_up(const quern_view *view, uint32_t term, size_t size_bytes,
                                                   const char *function);

/* Internal: the part of QUERN_UP that compares types by name, and refuses a wrong type. */
QUERN_API const void *const *quern__view_up_checked(const quern_view *view, uint32_t term,
                                                    size_t size_bytes, const char *type_name);

/* Whether the term is an up-term. */
static inline bool quern__view_is_up(const quern_view *view, uint32_t term)
{
    return term < view->term_count && view->columns[term].offset_bytes == 0 &&
           view->columns[term].size_bytes != 0;
}

/** Returns the view.count addresses of an up-term's values (quern_term_up). None is NULL, unless the term
 * is optional. Valid as long as the view. Refused when the term is not an up-term: then each address is that
 * of one zeroed scratch value (see quern_view_write). */
static inline const void *const *quern_view_up(const quern_view *view, uint32_t term)
{
    if (!quern__view_is_up(view, term)) return quern__view_refuse_up(view, term, 0, "quern_view_up");
    return view->up + view->columns[term].version_index * (size_t)QUERN__UP_STRIDE + view->first_row;
}

/* For QUERN_UP. */
static inline const void *quern__view_up_typed(const quern_view *view, uint32_t term, size_t size_bytes,
                                               const char *type_name)
{
    if (!quern__view_is_up(view, term)) return quern__view_refuse_up(view, term, size_bytes, "QUERN_UP");
    if (view->columns[term].size_bytes != size_bytes || view->columns[term].is_checked)
        return quern__view_up_checked(view, term, size_bytes, type_name);
    return view->up + view->columns[term].version_index * (size_t)QUERN__UP_STRIDE + view->first_row;
}

/** Returns the addresses of an up-term's values, as quern_view_up, as pointers to a C type:
 *
 *     const World *const *parents = QUERN_UP(view, 2, World);
 *
 * Refused as in QUERN_COLUMN when the type is another one. */
#ifdef __cplusplus
#define QUERN_UP(view, term, ...) (quern__up<__VA_ARGS__>((view), (term), #__VA_ARGS__))
#else
#define QUERN_UP(view, term, ...) \
    ((const __VA_ARGS__ *const *)quern__view_up_typed((view), (term), sizeof(__VA_ARGS__), #__VA_ARGS__))
#endif

/** Returns whether the entities of this view have the component of a term (optional, any); of an up-term,
 * whether they have targets. */
static inline bool quern_view_has(const quern_view *view, uint32_t term)
{
    return term < view->term_count && view->columns[term].present;
}

/* ---------------------------------------------------------------------------------------- enabled */

/* Say why it was refused, or do it: what the inline calls below leave to them. */
QUERN_API bool quern__view_enable(const quern_view *view, uint32_t term, uint32_t row, bool enabled);
QUERN_API bool quern__view_is_enabled(const quern_view *view, uint32_t term, uint32_t row);

/** Enables or disables a component of a row of the view, at once: later systems and views see it; the runs
 * of this view, and the views that its chunk comes as, stay as they are. The term is declared with
 * QUERN_WRITE, and the component can be disabled (can_disable in quern_component_def). Change filters count
 * it as a change of this row, also if the row was so before: of its chunk, where the component has no
 * row_changes. Returns whether it was done; false, with a message, when the call is wrong. */
static inline bool quern_view_enable(const quern_view *view, uint32_t term, uint32_t row, bool enabled)
{
    const quern_view_column *column;
    uint64_t *plane, *word, change;
    uint32_t at;
    if (term >= view->term_count || row >= view->count || view->is_shared)
        return quern__view_enable(view, term, row, enabled);
    column = &view->columns[term];
    if (column->access != QUERN_WRITE || column->present < 2 || !view->planes)
        return quern__view_enable(view, term, row, enabled);
    at = view->first_row + row;
    plane = view->planes + (column->present - 2u) * (size_t)view->plane_words;
    word = plane + 1 + at / 64;
    change = (*word >> at % 64 & 1) ^ (uint64_t)!enabled;
    *word ^= change << at % 64;
    *plane += enabled ? 0 - change : change;
    if (view->versions) quern__view_note_row(view, column, row);
    return true;
}

/** Returns whether a row of the view has the component of a term, and has it enabled, as one that cannot be
 * disabled always is. The term is one on the row itself. False, with a message, when the call is wrong. */
static inline bool quern_view_is_enabled(const quern_view *view, uint32_t term, uint32_t row)
{
    const quern_view_column *column;
    uint32_t at;
    if (term >= view->term_count || row >= view->count || view->columns[term].present < 2 ||
        !view->planes || view->is_shared)
        return quern__view_is_enabled(view, term, row);
    column = &view->columns[term];
    at = view->first_row + row;
    return !(view->planes[(column->present - 2u) * (size_t)view->plane_words + 1 + at / 64] >> at % 64 & 1);
}

/** Neighbouring rows of a view; see quern_view_next_run. Begins as zero. */
typedef struct quern_run {
    uint32_t first QUERN__ZERO; /**< The first row, counted in the view. */
    uint32_t count QUERN__ZERO; /**< How many there are, at least 1. */
    uint64_t bits QUERN__ZERO;  /**< Internal: rows of the word before that are still to come. */
    uint32_t word QUERN__ZERO;  /**< Internal: the next word of the view's rows. */
} quern_run;

/* Internal: the number of the lowest bit that is set; there is one. */
static inline uint32_t quern__lowest_bit(uint64_t bits)
{
#if defined(__GNUC__) || defined(__clang__)
    return (uint32_t)__builtin_ctzll(bits);
#else
    uint32_t number = 0;
    while (!(bits >> number & 1))
        number++;
    return number;
#endif
}

/** Finds the next run of rows that the terms are about, in a view that comes with all rows of its chunk
 * (QUERN_SYSTEM_RUNS, by_runs in quern_query_def). Returns false when there is none.
 *
 *     quern_run run = {0};
 *     while (quern_view_next_run(view, &run))
 *         for (uint32_t i = run.first; i < run.first + run.count; i++) p[i].x += v[i].x;
 *
 * Runs are in order and as long as they can be. In any other view there is one run, of all rows. */
static inline bool quern_view_next_run(const quern_view *view, quern_run *run)
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
        bits + (bits & (0 - bits)); /* the first bit behind the run is set, and those of the run are not */
    if (rest != 0) {
        end = (run->word - 1) * 64 + quern__lowest_bit(rest);
        bits &= rest;
    } else {
        end = run->word * 64;
        for (bits = ~(uint64_t)0; ~bits == 0 && run->word < view->row_words;) {
            bits = view->rows[run->word++];
            end += ~bits != 0 ? quern__lowest_bit(~bits) : 64;
        }
        bits &= bits + 1; /* without those that end the run; none of a word of them */
    }
    run->bits = bits;
    run->first = first - view->first_row;
    run->count = end - first;
    return true;
}

/* ------------------------------------------------------------------------------------------ query */

/** Describes a query. */
typedef struct quern_query_def {
    quern_term terms[QUERN_MAX_TERMS] QUERN__ZERO; /**< At least one. */
    /** A chunk of which terms leave rows out comes as one view with all its rows, and quern_view_next_run
     * tells which are meant; instead of as a view for each run. */
    bool by_runs QUERN__ZERO;
} quern_query_def;

/** Creates a query. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, UNKNOWN_COMPONENT, DUPLICATE_COMPONENT,
 * WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_query_create(quern_world *world, const quern_query_def *def,
                                          quern_query **out_query);

/** Destroys a query, which must not be iterated meanwhile. NULL is allowed. Threads: main, between
 * frames. */
QUERN_API void quern_query_destroy(quern_query *query);

/** Gives the target term of a query (quern_term_target) another target; null: no rows. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT (the query has no such term), STALE_ENTITY, FOREIGN_ENTITY,
 * PROVISIONAL_ENTITY, WORLD_LOCKED. Threads: main, between frames and in exclusive systems. */
QUERN_API quern_result quern_query_set_target(quern_query *query, quern_entity target);

/** Returns how many entities match now; where up-terms leave rows out, it looks at each. 0, with a message,
 * when memory for new matches is missing. Threads: main, between frames. */
QUERN_API uint64_t quern_query_count(quern_query *query);

/* Internal: a chunk that a walk comes to. */
typedef struct quern__chunk_entry {
    uint32_t count; /* here and below, as they come to stand in the view */
    uint32_t ordinal;
    const quern_entity *entities;
    char *chunk;
    const quern_view_column *columns;
    const struct quern__archetype *watched; /* its archetype, if that has versions or planes; or NULL */
    uint32_t slot;
    bool fetches_next; /* the next entry, while this one is worked on */
    bool is_plain;     /* no fetching, and no entry of the list is watched */
} quern__chunk_entry;

/* Internal: some rows of a chunk, a bit for each. */
typedef struct quern__row_mask {
    uint64_t words[32]; /* only the first word_count */
    uint32_t word_count;
} quern__row_mask;

/** Walks the matches in order of archetype, chunk and row. */
typedef struct quern_query_iterator {
    quern_view view;                      /**< The current view. */
    quern_result result;                  /**< QUERN_OK, or why the iteration ended early. */
    quern_query *query;                   /**< Internal. */
    const quern__chunk_entry *next_entry; /**< Internal; NULL: the entries are not known in advance. */
    const quern__chunk_entry *end_entry;  /**< Internal; NULL with next_entry. */
    /** Internal: of the world's structure. */
    const uint64_t *current_version;
    /** Internal: what current_version must be. */
    uint64_t expected_version;
    /** Internal: whether a frame is running on the world. */
    const bool *is_locked;
    /** Internal: filters let pass what is newer. */
    uint64_t seen_version;
    struct quern__up_walk *up_walk; /**< Internal: where up-terms keep addresses; NULL: there are none. */
    uint32_t view_count;            /**< Internal: views so far. */
    uint32_t match_index;           /**< Internal. */
    uint32_t chunk_index;           /**< Internal. */
    uint32_t up_number;             /**< Internal: by which up_walk knows the iteration. */
    uint32_t next_row;              /**< Internal: from here on rows are still to come; for mask. */
    quern__row_mask mask;           /**< Internal: rows that terms let stay; only with next_row. */
} quern_query_iterator;

/** Starts an iteration. Change filters count it as a look at everything, even if it ends early, but not
 * if it is refused: then there are no views, and result says why. Of a query with up-terms, eight
 * iterations may be under way at a time; one that is left early is under way until it is ended
 * (quern_query_end) or the structure changes. A ninth takes the place of one whose iterator object a later
 * iteration has used again, as that of an inner loop that is left early in each turn of an outer one; if there is
 * none, of the one that has not moved for longest. That one ends with INVALID_ARGUMENT when it moves on, which is
 * reported in the log and to the assert handler, and its addresses are no longer good.
 * Errors: NULL_ARGUMENT, WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames and in exclusive
 * systems. */
QUERN_API quern_query_iterator quern_query_iterate(quern_query *query);

/** Ends an iteration before its last view: quern_query_next returns false from then on, and the view is no
 * longer good. Needed only where loops over queries with up-terms are left early while more than eight such
 * iterations are nested or left. Without effect on one that has ended, and on NULL. Call it before the
 * query is destroyed. Threads: that of the iteration. */
QUERN_API void quern_query_end(quern_query_iterator *iterator);

/* The part of quern_query_next that finds the next entry, or says why there is none. */
QUERN_API bool quern__query_next(quern_query_iterator *iterator);

/* At an entry that is not plain: lets the view tell filters what is written, and fetches ahead. */
QUERN_API void quern__query_attend(quern_query_iterator *iterator, const quern__chunk_entry *entry);

/* How far ahead; behind the last entry there are as many more like it. */
#define QUERN__PREFETCH_ENTRIES 4

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

/** Moves to the next view; returns false at the end.
 *
 * If entities were created or destroyed, or their components added or removed meanwhile, the iteration
 * ends with result STRUCTURE_CHANGED: note first what to change, and change it afterwards. Walking a query
 * again is cheapest while the structure stays the same. */
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
