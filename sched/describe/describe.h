/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_DESCRIBE_DESCRIBE_H
#define QUERN_SCHED_DESCRIBE_DESCRIBE_H

/* quern_schedule_describe: what can be said of a compiled schedule is gathered once, as facts, and then
 * written in one of the formats. Everything here only looks at the schedule.
 *
 * Passes have numbers that count through the segments of a frame: from 0 in the facts, from 1 in what is
 * written. */

#include "core/base/printer.h"
#include "sched/frame/schedule_internal.h"

/* ------------------------------------------------------------------------------------------ facts */

/* What is to be done, and the longest part of it that has to happen one after another: work / path is how
 * many threads could be busy at most. In nanoseconds or in calls (facts.is_timed). */
typedef struct quern__load {
    uint64_t work, path;
} quern__load;

typedef struct quern__pass_facts {
    const quern__pass *pass;
    uint32_t archetype_count, chunk_count; /* that some enabled system matches */
    uint64_t entity_count;
    quern__load load; /* path: from the start of the segment to the end of the pass */
} quern__pass_facts;

typedef struct quern__segment_facts {
    uint32_t first_pass, end_pass; /* numbers */
    quern__load load;
} quern__segment_facts;

typedef QUERN__ARRAY(uint64_t) quern__bits;

typedef struct quern__facts {
    const quern_schedule *schedule;
    bool is_timed; /* loads come from the times of the last frame */
    uint32_t system_words, pass_words;
    QUERN__ARRAY(quern__segment_facts) segments; /* as the schedule's */
    QUERN__ARRAY(quern__pass_facts) passes;
    /* [later * system_words]: bits, by position, of the systems that before and after put in front of it,
     * directly or through others. */
    quern__bits ruled;
    /* [later * pass_words]: bits, by number, of the passes that it waits for; all, and those of them that
     * do not follow from others, which are the edges of the graph. */
    quern__bits reached, waits;
    quern__load load;
} quern__facts;

/* Of a compiled schedule. Errors: OUT_OF_MEMORY, with nothing to release. */
quern_result quern__facts_gather(quern__facts *facts, const quern_schedule *schedule);

void quern__facts_release(quern__facts *facts);

static inline uint32_t quern__facts_number(const quern__segment_facts *segment, const quern__pass *pass)
{
    return segment->first_pass + pass->index;
}

static inline bool quern__facts_waits(const quern__facts *facts, uint32_t later, uint32_t earlier)
{
    return quern__bitset_has(facts->waits.items + (size_t)later * facts->pass_words, earlier);
}

/* Whether some pass of the segment waits for this one. */
bool quern__facts_is_awaited(const quern__facts *facts, const quern__segment_facts *segment,
                             uint32_t number);

/* Why a pass has one system that no other can join. */
typedef enum quern__alone {
    QUERN__NOT_ALONE,
    QUERN__ALONE_EXCLUSIVE,
    QUERN__ALONE_MAIN_THREAD,
    QUERN__ALONE_RESOURCE, /* it writes one */
    QUERN__ALONE_LOOKUP,   /* it writes by one */
    QUERN__ALONE_SERIAL,
    QUERN__ALONE_EVENTS, /* they are its items */
    QUERN__ALONE_NO_TERMS,
    QUERN__ALONE_FUSING_OFF
} quern__alone;

/* out_index: the resource, or component, that it writes; set for ALONE_RESOURCE and ALONE_LOOKUP. */
quern__alone quern__facts_alone(const quern__pass *pass, uint32_t *out_index);

/* Why a system is not in a pass that was there for it to join. */
typedef enum quern__apart_kind {
    QUERN__APART_CONFLICT, /* with a system of the pass, and not a local one */
    QUERN__APART_ORDER,    /* a system of a later pass must come first */
    QUERN__APART_LEVELS,   /* the pass goes by the levels of another relation */
    QUERN__APART_CHOICE    /* nothing: it joined another, which shares as many components or more */
} quern__apart_kind;

typedef struct quern__apart {
    quern__apart_kind kind;
    const quern__system *other;
    quern__conflict conflict;
} quern__apart;

/* Whether it is worth a reason that the system is not in the pass: it could have been, but for other
 * systems, and it started a pass of its own, or the system in front of it is there. */
bool quern__facts_is_apart(const quern__segment *segment, const quern__system *system,
                           const quern__pass *pass, quern__apart *out_apart);

/* How an edge between two systems of a segment is kept. */
typedef enum quern__route {
    QUERN__ROUTE_PASS,   /* they share a pass: by the order of calls on each chunk */
    QUERN__ROUTE_GRAPH,  /* by an edge between their passes */
    QUERN__ROUTE_IMPLIED /* by other edges */
} quern__route;

quern__route quern__facts_route(const quern__facts *facts, const quern__segment_facts *segment,
                                const quern__system *earlier, const quern__system *later);

/* All that makes two systems keep their order, the strongest first. */
typedef struct quern__causes {
    /* and of both: resources, terms, up-terms, lookups, write lookups */
    quern__conflict items[1 + 8 * QUERN_MAX_ACCESS];
    uint32_t count;
} quern__causes;

_Static_assert(QUERN_MAX_TERMS <= QUERN_MAX_ACCESS, "room for one cause per term");

/* None when they are free to run in any order. */
void quern__facts_causes(const quern__system *earlier, const quern__system *later,
                         quern__causes *out_causes);

/* Two systems of one phase that must keep their order, with nothing but the order of registration to decide
 * which one it is. */
bool quern__facts_is_accidental(const quern__facts *facts, const quern__system *earlier,
                                const quern__system *later);

/* Archetypes that match, and their chunks. */
uint32_t quern__facts_chunk_count(const quern__system *system);

/* ----------------------------------------------------------------------------------------- writing */

/* A name in text: without quotation marks around it. */
void quern__write_name(quern__printer *printer, const char *name);

/* before, then the name in single quotation marks. */
void quern__write_quoted(quern__printer *printer, const char *before, const char *name);

/* What a reaction may react to. */
enum { QUERN__REACTION_WORDS = 4 };
typedef struct quern__reaction_word {
    quern_reaction_kind kind;
    const char *word;
} quern__reaction_word;

extern const quern__reaction_word quern__reaction_words[QUERN__REACTION_WORDS];

/* In whole nanoseconds; at most 1e9 seconds. */
uint64_t quern__seconds_to_ns(double seconds);

/* "component 'position'". The systems are those of the conflict, in their order. */
void quern__write_cause(quern__printer *printer, const quern__system *earlier, const quern__system *later,
                        quern__conflict conflict);

/* The type over which there is a conflict, or NULL. */
const quern__type *quern__conflict_type(const quern_schedule *schedule, quern__conflict conflict);

void quern__describe_text(quern__printer *printer, const quern__facts *facts);
void quern__describe_json(quern__printer *printer, const quern__facts *facts);

#endif
