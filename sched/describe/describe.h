/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_DESCRIBE_DESCRIBE_H
#define QUERN_SCHED_DESCRIBE_DESCRIBE_H

/* quern_schedule_describe: facts about a compiled schedule are gathered once and then written in one of the formats.
 * The schedule is not modified.
 *
 * Passes are numbered through all segments of a frame: from 0 in the facts, from 1 in the output. */

#include "core/base/text.h"
#include "sched/frame/schedule_internal.h"
#include "sched/schedule/compile.h"

/* The total work, and the longest chain of work that must run sequentially: work / path is the largest number of
 * threads that could be busy on average. Unit: nanoseconds or calls (facts.is_timed). */
typedef struct quern__load {
    uint64_t work, path;
} quern__load;

typedef struct quern__pass_facts {
    const quern__pass *pass;
    uint32_t archetype_count, chunk_count; /* archetypes and chunks that enabled systems match */
    uint64_t entity_count;
    quern__load load; /* path: from the start of the segment to the end of the pass */
    /* The passes that it waits for, without those that follow from others: a range in quern__facts.waits. */
    uint32_t first_wait, end_wait;
} quern__pass_facts;

typedef struct quern__segment_facts {
    uint32_t first_pass, end_pass; /* pass numbers */
    quern__load load;
} quern__segment_facts;

typedef QUERN__ARRAY(uint64_t) quern__bits;

typedef struct quern__facts {
    const quern_schedule *schedule;
    bool is_timed; /* loads are measured times of the last frame; otherwise they are calls */
    QUERN__ARRAY(quern__segment_facts) segments; /* by segment index of the schedule */
    QUERN__ARRAY(quern__pass_facts) passes;
    QUERN__ARRAY(uint32_t) waits; /* pass numbers, ascending for each pass */
    /* For the system of quern__facts_load_orders, as bit sets of positions. kept_orders: the earlier systems of its phase
     * before which it must not run, because of a conflict or because one of them is exclusive. declared_before: the
     * systems that must run earlier because of declared order (before, after), directly or indirectly. */
    quern__bits kept_orders, declared_before;
    quern__load load;
} quern__facts;

static inline uint32_t quern__facts_number(const quern__segment_facts *segment, const quern__pass *pass)
{
    return segment->first_pass + pass->index;
}

/* Gathers the facts about a compiled schedule; with_loads: also counts of rows, and loads. Fails with OUT_OF_MEMORY;
 * then there is nothing to release. */
quern_result quern__facts_gather(quern__facts *facts, const quern_schedule *schedule, const char *function,
                                 bool with_loads);
void quern__facts_release(quern__facts *facts);

/* Finds which earlier systems come before a system, and why: loads kept_orders and declared_before. */
void quern__facts_load_orders(const quern__facts *facts, const quern__system *later);

/* Why a pass has a single system that no other system can join. */
typedef enum quern__alone_reason {
    QUERN__NOT_ALONE,
    QUERN__ALONE_EXCLUSIVE,
    QUERN__ALONE_MAIN_THREAD,
    QUERN__ALONE_RESOURCE, /* it writes a resource */
    QUERN__ALONE_LOOKUP,   /* it writes through a lookup */
    QUERN__ALONE_QUERY,    /* it writes through a further query */
    QUERN__ALONE_SERIAL,
    QUERN__ALONE_EVENTS, /* it iterates over events */
    QUERN__ALONE_ORDER,  /* it iterates over rows in an order */
    QUERN__ALONE_NO_TERMS,
    QUERN__ALONE_FUSING_OFF
} quern__alone_reason;

/* Returns why no other system can join a pass. *out_index: the resource or component that it writes; set for
 * ALONE_RESOURCE, ALONE_LOOKUP and ALONE_QUERY. */
quern__alone_reason quern__facts_alone_reason(const quern__pass *pass, uint32_t *out_index);

/* Why a system is not in a pass that it could have joined. */
typedef enum quern__apart_kind {
    QUERN__APART_CONFLICT, /* it conflicts with a system of the pass, and not chunk-locally */
    QUERN__APART_ORDER,    /* a system of a later pass must run before it */
    QUERN__APART_LEVELS,   /* the pass follows the levels of another relation */
    QUERN__APART_CHOICE    /* it joined another pass, which shares at least as many components with it */
} quern__apart_kind;

typedef struct quern__apart_reason {
    quern__apart_kind kind;
    const quern__system *other;
    quern__conflict conflict;
} quern__apart_reason;

/* Finds the reason why a system is not in a pass. Returns false if it needs none: a reason is given only if the pass
 * could be joined and the system either started a pass of its own or directly follows a system of this pass. */
bool quern__facts_find_apart_reason(const quern__segment *segment, const quern__system *system,
                                    const quern__pass *pass, quern__apart_reason *out_apart);

/* How the order of two systems of a segment is kept. */
typedef enum quern__route {
    QUERN__ROUTE_PASS,   /* they share a pass, which calls them in order on each chunk */
    QUERN__ROUTE_GRAPH,  /* an edge between their passes */
    QUERN__ROUTE_IMPLIED /* a path of other edges */
} quern__route;

quern__route quern__facts_route(const quern__facts *facts, const quern__segment_facts *segment,
                                const quern__system *earlier, const quern__system *later);

/* All causes that make two systems keep their order, the strongest first. */
typedef struct quern__causes {
    /* Capacity: the first cause, and for each of the two systems its resources, terms, up-terms, lookups, indexes, and
     * the terms of its further queries. */
    quern__conflict items[1 + (9 + 2 * QUERN_MAX_SYSTEM_QUERIES) * QUERN_MAX_ACCESS];
    uint32_t count;
} quern__causes;

_Static_assert(QUERN_MAX_TERMS <= QUERN_MAX_ACCESS, "room for one cause per term");

/* Lists all causes for which the systems must keep their order, the strongest first; none if they may run in
 * any order. */
void quern__facts_causes(const quern__system *earlier, const quern__system *later,
                         quern__causes *out_causes);

/* Whether two systems of one phase must keep their order and only the order of registration determines it.
 * Precondition: the row of the later system is loaded. */
bool quern__facts_has_accidental_order(const quern__facts *facts, const quern__system *earlier,
                                       const quern__system *later);

/* Returns the number of chunks of the archetypes that a system matches. */
uint32_t quern__facts_chunk_count(const quern__system *system);

#endif
