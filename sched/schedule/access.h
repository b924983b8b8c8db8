/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_ACCESS_H
#define QUERN_SCHED_SCHEDULE_ACCESS_H

/* What a system may touch, and whether two systems may run at the same time.
 *
 * Two systems conflict when one writes what the other touches *and the two can meet*:
 *   resource   both declare it, one of them to write
 *   component  both match some archetype that has it, and one of them writes it there
 *   lookup     one writes it in some archetype that it matches, and the other reads it from any entity, by
 *              a lookup that reaches that archetype or by an up-term; or the other writes it by a lookup,
 *              and the first reads it there
 *   lookups    one writes it by a lookup, and the other looks it up or reads it by an up-term
 * The second and the third depend on the archetypes there are. A conflict once found stays, though its
 * archetype may be removed, so only new archetypes have to be looked at. What two lookups reach they reach
 * in archetypes that neither system matches: there, only limits that exclude each other count. */

#include "sched/schedule/lookup.h"

typedef struct quern__resource_use {
    uint16_t index;
    uint8_t access; /* quern_access */
} quern__resource_use;

typedef struct quern__access {
    uint64_t reads[QUERN__COMPONENT_WORDS];     /* through terms; written and filtered ones, too */
    uint64_t writes[QUERN__COMPONENT_WORDS];    /* through terms */
    uint64_t relations[QUERN__COMPONENT_WORDS]; /* declared, by their components */
    uint64_t upward[QUERN__COMPONENT_WORDS];    /* read by up-terms, */
    uint64_t above[QUERN__COMPONENT_WORDS];     /* but for those by the relation whose levels it goes by */
    quern_relation levels;                      /* that one, or null */
    quern__lookups lookups;
    quern__resource_use resources[QUERN_MAX_ACCESS];
    uint32_t resource_count;
} quern__access;

/* Why two systems must keep their order, from the weakest to the strongest. The first three are *local*:
 * what one system does to a chunk must come before what the other does to the same chunk, and nothing
 * more, where both go level by level if the conflict is over that. All others ask for the whole of one
 * system before any of the other. */
typedef enum quern__conflict_kind {
    QUERN__NO_CONFLICT,
    QUERN__CONFLICT_ORDER, /* before/after of systems whose terms share components */
    QUERN__CONFLICT_COMPONENT,
    QUERN__CONFLICT_LEVEL,
    QUERN__CONFLICT_LOOKUP,
    QUERN__CONFLICT_RESOURCE,
    QUERN__CONFLICT_DECLARED /* before/after of others: the schedule cannot see what it is for */
} quern__conflict_kind;

static inline bool quern__conflict_is_local(quern__conflict_kind kind)
{
    return kind >= QUERN__CONFLICT_ORDER && kind <= QUERN__CONFLICT_LEVEL;
}

/* The strongest reason found for two systems to keep their order. */
typedef struct quern__conflict {
    uint8_t kind;
    bool may_look_up; /* of a pair: an archetype might make it a conflict over a lookup */
    uint16_t index;   /* of the resource or component */
} quern__conflict;

/* Reads the access out of a definition whose terms have been checked. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT, UNKNOWN_COMPONENT, UNKNOWN_RESOURCE, DUPLICATE_COMPONENT. */
quern_result quern__access_init(quern__access *access, const quern_world *world,
                                const quern_system_def *def, uint32_t term_count);

/* The access declared to a resource, or QUERN_NO_ACCESS. */
quern_access quern__access_to_resource(const quern__access *access, uint32_t resource_index);

/* What is declared, for messages: "'position', 'velocity'", "read 'score', write 'grid'", or "none". */
void quern__access_list_relations(const quern__access *access, const quern_world *world, char *text,
                                  size_t text_bytes);

void quern__access_list_resources(const quern__access *access, const quern_world *world, char *text,
                                  size_t text_bytes);

/* A component that the system writes through its own terms, def's, and looks up of entities that may be
 * among those that it matches, or QUERN_MAX_COMPONENTS. */
uint32_t quern__access_self_conflict(const quern__access *access, const quern_term *terms,
                                     uint32_t term_count);

/* What does not depend on archetypes: resources, and lookups of both. */
quern__conflict quern__access_meet(const quern__access *a, const quern__access *b);

/* Whether there is an archetype on which they might meet: one writes a component that the other touches. */
bool quern__access_may_meet(const quern__access *a, const quern__access *b);

/* The same, through the terms of both. */
bool quern__access_terms_may_meet(const quern__access *a, const quern__access *b);

/* Whether there is an archetype on which one would write what the other looks up. */
bool quern__access_may_look_up(const quern__access *a, const quern__access *b);

/* Over a component that `a` touches through its terms in an archetype, and `b` reads or writes of other
 * entities: LOOKUP or LEVEL; or there is no conflict. a_is_first: in the order of systems. archetype
 * NULL: in some archetype. */
quern__conflict_kind quern__access_reaches(const quern__access *a, const quern__access *b, uint32_t index,
                                           bool a_is_first, const quern__archetype *archetype);

/* The first component from `first` on that one of them writes by a lookup, and the other reads or writes of
 * other entities that may be the same; or QUERN_MAX_COMPONENTS. */
uint32_t quern__access_meet_elsewhere(const quern__access *a, const quern__access *b, uint32_t first);

/* What arises when `a` matches an archetype: b's lookups and, if b matches it as well, both one's terms. */
quern__conflict quern__access_meet_on(const quern__access *a, const quern__access *b, bool a_is_first,
                                      const quern__archetype *archetype, bool b_matches);

#endif
