/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_PLAN_H
#define QUERN_TESTS_FLOW_PLAN_H

/* A random world and random systems, as a description. flow_subject.h makes it real with the library,
 * flow_reference.h plays it in the most naive way, and flow_act.h is what its systems do in both. */

#include "tests/support/random.h"

#include <quern/query.h>

enum {
    FLOW_TYPE_COUNT = 8,
    FLOW_WORD_COUNT = 202, /* of all types together */
    FLOW_MAX_TYPE_WORDS = 128,
    FLOW_RESOURCE_COUNT = 3,
    FLOW_PHASE_COUNT = 3,
    FLOW_MAX_SYSTEMS = 24,
    FLOW_MAX_RULES = 2,
    FLOW_MAX_CALLS = 6,
    FLOW_SPAWN_COUNT = 3,
    FLOW_TICKS_PER_SECOND = 64, /* times are whole ticks, which seconds as double hold exactly */
    FLOW_HUB_COUNT = 40,        /* entities that many others link to at the start */
    FLOW_SET_COUNT = 9,         /* component sets that entities start with */
    FLOW_DISABLED_TYPE = 5      /* a tag that stands for the built-in one where the plan has_disabled */
};

/* A component of 64-bit words, of which the first link_count are handles of entities. */
typedef struct flow_type {
    const char *name;
    uint32_t word_count; /* 0: a tag */
    uint32_t link_count;
    uint32_t alignment_bytes;
    uint32_t first_word; /* among the words of an entity that has all types */
} flow_type;

extern const flow_type flow_types[FLOW_TYPE_COUNT];

/* How a value is accumulated: words as numbers, or by flow_mix_in. Types with links only the latter way. */
typedef enum flow_way { FLOW_SUM, FLOW_MIN, FLOW_MAX, FLOW_MIX, FLOW_WAY_COUNT } flow_way;

typedef struct flow_term {
    bool used;
    bool changed; /* a filter, too */
    quern_term_enabled enabled;
    quern_match match;
    quern_access access;
} flow_term;

/* A type that a system looks up: of entities with the type `with`, and without the other one. */
typedef struct flow_lookup {
    bool used, writes;
    uint32_t with, without; /* FLOW_TYPE_COUNT: no limit */
} flow_lookup;

typedef struct flow_system {
    char name[16];
    uint32_t phase;
    uint32_t flags; /* quern_system_flags */
    flow_term terms[FLOW_TYPE_COUNT];
    flow_lookup lookups[FLOW_TYPE_COUNT];
    quern_access resources[FLOW_RESOURCE_COUNT];
    uint32_t before[FLOW_MAX_RULES], after[FLOW_MAX_RULES]; /* systems */
    uint32_t before_count, after_count;
    bool turns_over;   /* its commands only create and destroy, */
    bool only_creates; /* or not even that */
    bool has_begin, has_end, has_partial;
    uint32_t condition_percent; /* how often its condition is true; 0: it has none */
    uint32_t interval_ticks;    /* 0: every frame */
    uint32_t disabled_percent;  /* of the frames */
    uint32_t change_permille;   /* how many entities it records commands for */
    uint32_t spawn_sets[FLOW_SPAWN_COUNT];
    uint64_t salt;
    bool leaves_out_disabled; /* no term names them */
    bool whole_chunks;        /* QUERN_SYSTEM_WHOLE_CHUNKS, or whole_chunks of the query */
    bool marks_rows;          /* writes some rows of its views, and marks these */
    uint32_t can_disable;     /* that of the plan */
} flow_system;

typedef enum flow_call_kind {
    FLOW_CALL_LOOP,      /* walks a query, and records commands on the world */
    FLOW_CALL_PARALLEL,  /* the same as a parallel query, whose kernels record */
    FLOW_CALL_IMMEDIATE, /* changes the world at once, and records on it as well */
    FLOW_CALL_KIND_COUNT
} flow_call_kind;

/* What the program does itself, between frames. */
typedef struct flow_call {
    flow_call_kind kind;
    flow_system system;     /* its terms are the query's */
    uint32_t run_percent;   /* of the frames it comes before */
    uint32_t flush_percent; /* how often a flush follows */
} flow_call;

typedef struct flow_phase {
    uint32_t step_ticks; /* of a fixed step; 0: once per frame */
    uint32_t max_step_count;
} flow_phase;

typedef struct flow_plan {
    uint64_t seed;
    uint32_t entity_count;         /* at the start */
    uint32_t sets[FLOW_SET_COUNT]; /* bit per type */
    bool has_disabled;             /* FLOW_DISABLED_TYPE keeps entities out of views */
    uint32_t can_disable;          /* bit per type */
    uint32_t row_changes;          /* likewise */
    uint32_t plain_percent;        /* how many systems have terms only, so that they may share passes */
    flow_phase phases[FLOW_PHASE_COUNT];
    uint32_t system_count;
    flow_system systems[FLOW_MAX_SYSTEMS];
    uint32_t call_count;
    flow_call calls[FLOW_MAX_CALLS];
} flow_plan;

void flow_plan_make(flow_plan *plan, uint64_t seed, uint32_t entity_count);

/* Makes some terms filters on changes, by chunk and by row. The reference knows no chunks, so it cannot
 * play such a plan. */
void flow_plan_add_filters(flow_plan *plan);

/* Makes some terms filters by row, and no other ones. */
void flow_plan_add_row_filters(flow_plan *plan);

/* Lets all systems and calls record nothing but creates and destroys; mostly one system of a phase
 * destroys, so that it does so in the order of rows. */
void flow_plan_turn_over(flow_plan *plan);

bool flow_system_has_terms(const flow_system *system);

/* What differs from frame to frame. */
uint32_t flow_plan_delta_ticks(const flow_plan *plan, uint64_t frame);
bool flow_plan_enables(const flow_plan *plan, uint32_t system, uint64_t frame);
bool flow_call_runs(const flow_call *call, uint64_t frame);
bool flow_call_flushes(const flow_call *call, uint64_t frame);

static inline double flow_seconds(uint64_t ticks)
{
    return (double)ticks / FLOW_TICKS_PER_SECOND;
}

/* Whether entities with that set of types (a bit each) come to its views, if these have enabled what they
 * should; and whether one that has disabled these types has. */
bool flow_system_matches(const flow_system *system, uint32_t set);
bool flow_system_lets_stay(const flow_system *system, uint32_t disabled);

/* Whether an entity with that set may be looked up. */
bool flow_lookup_reaches(const flow_lookup *lookup, uint32_t set);

/* Whether before and after, directly, want the first to run before the second. */
bool flow_plan_must_precede(const flow_plan *plan, uint32_t first, uint32_t second);

static inline bool flow_system_is(const flow_system *system, quern_access access, uint32_t resource)
{
    return system->resources[resource] == access;
}

/* The i-th entity at the start: its set, and the words of all types. `first` is the handle of the 0th; the
 * others are in the slots behind it. */
uint32_t flow_plan_entity(const flow_plan *plan, uint32_t i, quern_entity first,
                          uint64_t words[FLOW_WORD_COUNT]);

/* Links become those of the other value, and each other word depends on both, and on the order. */
void flow_mix_in(const flow_type *type, uint64_t *words, const uint64_t *others);

/* A well mixed number; what everything random in a running plan is made of. */
static inline uint64_t flow_mix(uint64_t x)
{
    random_source source = {x};
    return random_next(&source);
}

#endif
