/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_ACCESS_H
#define QUERN_SCHED_SCHEDULE_ACCESS_H

/* What systems access: sets of pairs of systems, sets of what each reads and writes, and their conflicts. */

#include "core/base/containers.h"
#include "core/events/event_internal.h"
#include "core/storage/archetype.h"

#include <quern/schedule.h>

/* ----------------------------------------------------------------------------------------- sets of pairs */

/* A set of pairs (earlier, later) of numbers below 65,536. Each later number has a row: the set of its earlier numbers.
 * A row is stored as the shorter of two forms: a sorted list, or a bit set in units of 16 bits. So a row of few pairs
 * takes 2 bytes per pair, and no row takes more than one bit for each smaller number. */

typedef struct quern__pair_row {
    uint32_t first_unit;
    uint16_t unit_count; /* at most 4096: a row of bits has one unit for 16 numbers */
    bool is_bits;
} quern__pair_row;

/* A set with all members zero is empty and has no rows. */
typedef struct quern__pair_set {
    QUERN__ARRAY(uint16_t) units; /* of all rows; also of replaced ones, until the memory is compacted */
    QUERN__ARRAY(quern__pair_row) rows;
    uint32_t unused_count; /* units of replaced rows */
} quern__pair_set;

void quern__pair_set_release(quern__pair_set *set, const quern_allocator *allocator);

/* Removes all pairs, and gives the set row_count empty rows. Returns false if out of memory; the set then has no rows. */
bool quern__pair_set_reset(quern__pair_set *set, const quern_allocator *allocator, uint32_t row_count);

/* Replaces a row. words: bit set of the earlier numbers, of later / 64 + 1 words. Returns false, with the set unchanged,
 * if out of memory. */
bool quern__pair_set_put(quern__pair_set *set, const quern_allocator *allocator, uint32_t later,
                         const uint64_t *words);

/* Adds the earlier numbers of a row to a bit set of later / 64 + 1 words. */
void quern__pair_set_get(const quern__pair_set *set, uint32_t later, uint64_t *words);

/* O(log n). */
bool quern__pair_set_has(const quern__pair_set *set, uint32_t earlier, uint32_t later);

/* An iteration over a row, from the greatest earlier number to the smallest. */
typedef struct quern__pair_walk {
    const uint16_t *units;
    uint32_t left; /* units that have not been read */
    bool is_bits;
    uint32_t bits; /* rest of the current unit of a row of bits, which is units[left] */
} quern__pair_walk;

static inline quern__pair_walk quern__pair_set_walk(const quern__pair_set *set, uint32_t later)
{
    const quern__pair_row *row = &set->rows.items[later];
    return (quern__pair_walk){
        .units = set->units.items + row->first_unit, .left = row->unit_count, .is_bits = row->is_bits};
}

/* Sets *out_earlier to the next earlier number. Returns false if there is none. */
static inline bool quern__pair_walk_next(quern__pair_walk *walk, uint32_t *out_earlier)
{
    if (!walk->is_bits) {
        if (walk->left == 0) return false;
        *out_earlier = walk->units[--walk->left];
        return true;
    }
    while (walk->bits == 0) {
        if (walk->left == 0) return false;
        walk->bits = walk->units[--walk->left];
    }
    const uint32_t bit = quern__highest_bit_32(walk->bits);
    walk->bits &= ~(UINT32_C(1) << bit);
    *out_earlier = 16 * walk->left + bit;
    return true;
}

/* ----------------------------------------------------------------------------------------------- lookups */

/* The components that a system declares to look up on entities that need not be in its views. */

enum { QUERN__COMPONENT_WORDS = QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS) };

typedef struct quern__lookup {
    uint16_t index; /* component index */
    quern__archetype_filter limit;
    bool writes;
} quern__lookup;

typedef struct quern__lookups {
    /* Components that are looked up on any entity, for reading or writing. */
    uint64_t unlimited[QUERN__COMPONENT_WORDS];
    /* Components that are looked up only within a limit, for reading or writing. */
    uint64_t limited[QUERN__COMPONENT_WORDS];
    uint64_t written[QUERN__COMPONENT_WORDS]; /* components that are written by a lookup, limited or not */
    /* read-only lookups, then lookups that write, then those of indexes */
    quern__lookup list[2 * QUERN_MAX_ACCESS + QUERN_MAX_SYSTEM_INDEXES];
    uint32_t count;
} quern__lookups;

/* Initialises the lookups from a definition. Errors: INVALID_ARGUMENT, UNKNOWN_COMPONENT,
 * DUPLICATE_COMPONENT. */
quern_result quern__lookups_init(quern__lookups *lookups, const quern_world *world,
                                 const quern_system_def *def);

/* Returns the lookup of the component, or NULL. */
const quern__lookup *quern__lookups_find(const quern__lookups *lookups, uint32_t component_index);

/* Returns whether the component may be looked up on entities of `archetype`. Precondition: the archetype has the
 * component. `archetype` is NULL to test for any archetype. */
static inline bool quern__lookups_include(const quern__lookups *lookups, uint32_t component_index,
                                          const quern__archetype *archetype)
{
    if (quern__bitset_has(lookups->unlimited, component_index)) return true;
    if (!quern__bitset_has(lookups->limited, component_index)) return false;
    return archetype == NULL ||
           quern__archetype_filter_passes(quern__lookups_find(lookups, component_index)->limit, archetype);
}

/* Writes the declared lookups into `text`, for messages: "'position', 'velocity'", or "none". `written`:
 * only lookups that write. */
void quern__lookups_list(const quern__lookups *lookups, const quern_world *world, bool written, char *text,
                         size_t text_bytes);

/* --------------------------------------------------------------------------------------- declared access */

/* The declared access of a system, and the test whether two systems may run at the same time.
 *
 * Two systems conflict if one writes data that the other reads or writes, and both can reach the same data:
 *   resource   Both systems declare the resource, at least one of them for writing.
 *   component  Both systems match an archetype that has the component, and one of them writes it there.
 *   lookup     One system writes the component in an archetype that it matches, and the other reads it from any
 *              entity: by a lookup that reaches that archetype, or by an up-term. Or one system reads the component
 *              in an archetype that it matches, and the other writes it by a lookup that reaches that archetype.
 *   lookups    One system writes the component by a lookup, and the other looks it up or reads it by an up-term.
 *   query      A further query of a system is a lookup of the components that its terms read or write, on the entities that
 *              it matches.
 * Component and lookup conflicts depend on the archetypes that exist. A conflict is kept even if its archetype is
 * removed, so only new archetypes are checked. Two lookups can meet in archetypes that neither system matches:
 * only lookup limits that exclude each other rule out a conflict between lookups; for further queries, their terms do. */

typedef struct quern__resource_use {
    uint16_t index;
    uint8_t access;  /* quern_access */
    bool is_watched; /* the system runs only if the value of a watched resource has changed */
} quern__resource_use;

/* How a system uses a component or a resource, as far as other systems can conflict with the use. */
typedef enum quern__use_kind {
    QUERN__USE_TERM,          /* its terms read or write the component */
    QUERN__USE_TERM_WRITE,    /* its terms write the component */
    QUERN__USE_LOOKUP,        /* it accesses the component by a lookup, an up-term or a further query */
    QUERN__USE_LOOKUP_WRITE,  /* it writes the component by a lookup or a further query */
    QUERN__USE_RESOURCE,      /* it declares the resource */
    QUERN__USE_RESOURCE_WRITE /* it declares the resource for more than reading */
} quern__use_kind;

enum { QUERN__USE_KIND_COUNT = QUERN__USE_RESOURCE_WRITE + 1 };

typedef struct quern__access_use {
    uint16_t index; /* of the component or resource */
    uint16_t kind;  /* quern__use_kind */
} quern__access_use;

typedef struct quern__access {
    /* All that follows, as a list; compiling reads only this list of most systems. */
    QUERN__ARRAY(quern__access_use) uses;
    /* Some component in `reads` may be absent from archetypes that the terms match. */
    bool has_optional_terms;
    bool looks_elsewhere; /* it has lookups, up-terms or further queries */
    /* Components read by terms, including written and filtered components. */
    uint64_t reads[QUERN__COMPONENT_WORDS];
    uint64_t writes[QUERN__COMPONENT_WORDS];    /* components written by terms */
    uint64_t relations[QUERN__COMPONENT_WORDS]; /* declared relations, as component indices */
    /* Components read by up-terms over relations other than `levels`, also by those of further queries. */
    uint64_t upward_by_others[QUERN__COMPONENT_WORDS];
    /* Components read by up-terms over the relation `levels`. */
    uint64_t upward_by_levels[QUERN__COMPONENT_WORDS];
    quern_relation levels; /* relation that orders the views by level, or the null relation */
    quern__lookups lookups;
    const struct quern_query *queries; /* the further queries */
    uint32_t query_count;
    /* Components that terms of further queries read, including written and filtered components, on their own rows. */
    uint64_t query_reads[QUERN__COMPONENT_WORDS];
    uint64_t query_writes[QUERN__COMPONENT_WORDS]; /* components written by further queries */
    quern__resource_use resources[QUERN_MAX_ACCESS];
    uint32_t resource_count;
    bool watches_resources;
} quern__access;

/* Reasons why two systems must keep their order, from the weakest to the strongest. The first three reasons are
 * *local*: they only require that the earlier system processes a chunk before the later system processes the same
 * chunk. A LEVEL conflict additionally requires that both systems run level by level. All other reasons require that
 * the earlier system finishes before the later one starts. */
typedef enum quern__conflict_kind {
    QUERN__NO_CONFLICT,
    QUERN__CONFLICT_ORDER, /* before/after rule; the terms of both systems conflict over components */
    QUERN__CONFLICT_COMPONENT,
    QUERN__CONFLICT_LEVEL,
    QUERN__CONFLICT_LOOKUP,
    QUERN__CONFLICT_RESOURCE,
    QUERN__CONFLICT_DECLARED /* any other before/after rule: its purpose is unknown to the schedule */
} quern__conflict_kind;

static inline bool quern__conflict_is_local(quern__conflict_kind kind)
{
    return kind >= QUERN__CONFLICT_ORDER && kind <= QUERN__CONFLICT_LEVEL;
}

/* The strongest reason found so far why two systems must keep their order. */
typedef struct quern__conflict {
    uint8_t kind;
    uint16_t index; /* index of the resource or component over which the systems conflict */
} quern__conflict;

/* Initialises the access from a definition and its further queries, which the access refers to. Precondition: the
 * definition's terms have been checked. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, UNKNOWN_COMPONENT, UNKNOWN_RESOURCE,
 * DUPLICATE_COMPONENT, OUT_OF_MEMORY; after an error, the access must still be released. */
quern_result quern__access_init(quern__access *access, const quern_world *world,
                                const quern_system_def *def, uint32_t term_count,
                                const struct quern_query *queries, uint32_t query_count);

/* Returns whether the term reads the values, the versions or the enabled bits of the component on the row itself. Matching a
 * component that can be disabled reads its enabled bits, which counts as reading the component. */
bool quern__access_reads_row(const quern__components *components, const quern_term *term);

void quern__access_release(quern__access *access, const quern_allocator *allocator);

/* Returns the declared access to a resource, or QUERN_ACCESS_NONE. */
quern_access quern__access_to_resource(const quern__access *access, uint32_t resource_index);

/* Write the declared relations or resources into `text`, for messages: "'position', 'velocity'",
 * "read 'score', write 'grid'", or "none". */
void quern__access_list_relations(const quern__access *access, const quern_world *world, char *text,
                                  size_t text_bytes);

void quern__access_list_resources(const quern__access *access, const quern_world *world, char *text,
                                  size_t text_bytes);

/* Returns a component that the system writes through its own terms (`terms`) and also looks up on entities that it
 * may match itself. Returns QUERN_MAX_COMPONENTS if there is none. */
uint32_t quern__access_self_conflict(const quern__access *access, const quern_term *terms,
                                     uint32_t term_count);

/* Returns a component that the system writes through its own terms (`query`) and also reads by a further query, on entities
 * that may be the same. Returns QUERN_MAX_COMPONENTS if there is none. *out_number: index of the further query. */
uint32_t quern__access_query_conflict(const quern__access *access, const struct quern_query *query,
                                      uint32_t *out_number);

/* Returns whether a further query of the system reads or writes the component in the archetype; `archetype` is NULL for any.
 * writes: whether it must write it. */
bool quern__access_queries_reach(const quern__access *access, uint32_t index, bool writes,
                                 const quern__archetype *archetype);

/* Returns the conflict over component `index` if `a` accesses it through its terms in `archetype`, and `b` accesses it
 * on other entities by lookups or up-terms: LOOKUP, LEVEL, or no conflict. `a_is_first`: `a` precedes `b` in the order
 * of execution. `archetype` is NULL to test for any archetype. */
quern__conflict_kind quern__access_lookup_conflict(const quern__access *a, const quern__access *b,
                                                   uint32_t index, bool a_is_first,
                                                   const quern__archetype *archetype);

/* Returns the first component from index `first` on that one system writes by a lookup, and that the other system looks
 * up or reads by an up-term, possibly on the same entity. Returns QUERN_MAX_COMPONENTS if there is none. */
uint32_t quern__access_find_common_lookup(const quern__access *a, const quern__access *b, uint32_t first);

/* ----------------------------------------------------------------------------------------- index of uses */

/* The systems that use a component or a resource, by kind of use: sets of positions in the order of execution. With
 * them, the compiler finds the systems that could conflict with a system by a few bit operations per component, without
 * looking at any other system. Memory: a bit per system for each kind of use of each used component and resource. */

typedef struct quern__access_index {
    /* [kind * limit + index]: 1 + number of the set; 0: no system has such a use. */
    QUERN__ARRAY(uint16_t) numbers;
    QUERN__ARRAY(uint64_t) words; /* of all sets, one after another */
    uint32_t words_per_set;
} quern__access_index;

/* ------------------------------------------------------------------------------------------------ events */

/* The events that a system emits and reads. Events create no conflicts between systems: an emitted event is readable
 * only from the next sync point on. */

typedef struct quern__event_use {
    QUERN__ARRAY(quern__channel *) emits; /* channels of the declared emits, in their order */
    /* Readers of reads_events in their order, then `items` if not NULL. */
    QUERN__ARRAY(quern_event_reader *) readers;
    quern_event_reader *items; /* reader of the event that the views show, or NULL */
    /* Range of batches of `items` that was counted as the system's views, and the number of events in its last batch. */
    uint64_t prepared_begin, prepared_end;
    uint32_t prepared_last_count;
} quern__event_use;

/* Checks the declared events and creates the readers. Errors: UNKNOWN_EVENT, INVALID_ARGUMENT, NULL_ARGUMENT,
 * OUT_OF_MEMORY; after an error, `use` must still be released. */
quern_result quern__event_use_init(quern__event_use *use, const quern_world *world,
                                   const quern_system_def *def, uint32_t term_count);

void quern__event_use_release(quern__event_use *use, const quern_allocator *allocator);

static inline bool quern__event_use_emits(const quern__event_use *use, const quern__channel *channel)
{
    for (uint32_t i = 0; i < use->emits.count; i++)
        if (use->emits.items[i] == channel) return true;
    return false;
}

/* Returns the system's reader of the event, or NULL if the system does not declare that it reads the event. */
static inline quern_event_reader *quern__event_use_reader(const quern__event_use *use,
                                                          const quern__channel *channel)
{
    for (uint32_t i = 0; i < use->readers.count; i++)
        if (use->readers.items[i]->channel == channel) return use->readers.items[i];
    return NULL;
}

/* Returns the number of events in the last waiting batch of `items`, which calls between frames may extend; 0: none waits.
 * Precondition: the use has items. */
static inline uint32_t quern__event_use_last_count(const quern__event_use *use)
{
    const quern__channel *channel = use->items->channel;
    const uint32_t count = channel->batches.count;
    return count > channel->head ? channel->batches.items[count - 1].count : 0;
}

/* Write the declared events into `text`, for messages: "'hit', 'spark'", or "none". */
void quern__event_use_list_emits(const quern__event_use *use, char *text, size_t text_bytes);
void quern__event_use_list_reads(const quern__event_use *use, char *text, size_t text_bytes);

#endif
