/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_ACCESS_H
#define QUERN_SCHED_SCHEDULE_ACCESS_H

/* The declared access of a system, and the test whether two systems may run at the same time.
 *
 * Two systems conflict if one writes data that the other reads or writes, and both can reach the same data:
 *   resource   Both systems declare the resource, at least one of them for writing.
 *   component  Both systems match an archetype that has the component, and one of them writes it there.
 *   lookup     One system writes the component in an archetype that it matches, and the other reads it from any
 *              entity: by a lookup that reaches that archetype, or by an up-term. Or one system reads the component
 *              in an archetype that it matches, and the other writes it by a lookup that reaches that archetype.
 *   lookups    One system writes the component by a lookup, and the other looks it up or reads it by an up-term.
 * Component and lookup conflicts depend on the archetypes that exist. A conflict is kept even if its archetype is
 * removed, so only new archetypes are checked. Two lookups can meet in archetypes that neither system matches:
 * only lookup limits that exclude each other rule out a conflict between lookups. */

#include "core/base/array.h"
#include "sched/schedule/lookup.h"

typedef struct quern__resource_use {
    uint16_t index;
    uint8_t access; /* quern_access */
} quern__resource_use;

/* How a system uses a component or a resource, as far as other systems can conflict with the use. */
typedef enum quern__use_kind {
    QUERN__USE_TERM,          /* its terms read or write the component */
    QUERN__USE_TERM_WRITE,    /* its terms write the component */
    QUERN__USE_LOOKUP,        /* it reads or writes the component by a lookup, or reads it by an up-term */
    QUERN__USE_LOOKUP_WRITE,  /* it writes the component by a lookup */
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
    bool looks_elsewhere; /* it has lookups or up-terms */
    /* Components read by terms, including written and filtered components. */
    uint64_t reads[QUERN__COMPONENT_WORDS];
    uint64_t writes[QUERN__COMPONENT_WORDS];    /* components written by terms */
    uint64_t relations[QUERN__COMPONENT_WORDS]; /* declared relations, as component indices */
    /* Components read by up-terms over relations other than `levels`. */
    uint64_t upward_by_others[QUERN__COMPONENT_WORDS];
    /* Components read by up-terms over the relation `levels`. */
    uint64_t upward_by_levels[QUERN__COMPONENT_WORDS];
    quern_relation levels; /* relation that orders the views by level, or the null relation */
    quern__lookups lookups;
    quern__resource_use resources[QUERN_MAX_ACCESS];
    uint32_t resource_count;
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

/* Initialises the access from a definition. Precondition: the definition's terms have been checked. Errors:
 * NULL_ARGUMENT, INVALID_ARGUMENT, UNKNOWN_COMPONENT, UNKNOWN_RESOURCE, DUPLICATE_COMPONENT, OUT_OF_MEMORY; after an
 * error, the access must still be released. */
quern_result quern__access_init(quern__access *access, const quern_world *world,
                                const quern_system_def *def, uint32_t term_count);

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

/* Returns the conflict that does not depend on archetypes: over a resource, or between lookups (or a lookup and an
 * up-term) of both systems. */
quern__conflict quern__access_find_fixed_conflict(const quern__access *a, const quern__access *b);

/* Returns whether the terms of one system write a component that the terms of the other read or write. */
bool quern__access_terms_may_conflict(const quern__access *a, const quern__access *b);

/* Returns whether the terms of one system write a component of the archetype that the terms of the other read or
 * write. */
bool quern__access_terms_conflict_in(const quern__access *a, const quern__access *b,
                                     const quern__archetype *archetype);

/* Returns whether some archetype could make the systems conflict over a component that one accesses through its terms
 * and the other through a lookup or an up-term. */
bool quern__access_may_conflict_by_lookup(const quern__access *a, const quern__access *b);

/* Returns the conflict over component `index` if `a` accesses it through its terms in `archetype`, and `b` accesses it
 * on other entities by lookups or up-terms: LOOKUP, LEVEL, or no conflict. `a_is_first`: `a` precedes `b` in the order
 * of execution. `archetype` is NULL to test for any archetype. */
quern__conflict_kind quern__access_lookup_conflict(const quern__access *a, const quern__access *b,
                                                   uint32_t index, bool a_is_first,
                                                   const quern__archetype *archetype);

/* Returns the first component from index `first` on that one system writes by a lookup, and that the other system looks
 * up or reads by an up-term, possibly on the same entity. Returns QUERN_MAX_COMPONENTS if there is none. */
uint32_t quern__access_find_common_lookup(const quern__access *a, const quern__access *b, uint32_t first);

/* Returns the strongest conflict that results from `a` matching `archetype`: between the terms of `a` and the lookups
 * and up-terms of `b`, and, if `b_matches`, between the terms of both systems. */
quern__conflict quern__access_find_conflict_in(const quern__access *a, const quern__access *b,
                                               bool a_is_first, const quern__archetype *archetype,
                                               bool b_matches);

/* Returns the strongest conflict, or the strongest local one, that some archetype could cause between `a` and `b`,
 * which is later, over the first such component. */
quern__conflict quern__access_find_possible_conflict(const quern__access *a, const quern__access *b,
                                                     bool is_local);

#endif
