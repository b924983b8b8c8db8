/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_PLAN_H
#define QUERN_TESTS_FLOW_PLAN_H

/* A random world and random systems, as a description. flow_subject.h builds and runs it with the
 * library, flow_reference.h with a naive model, and flow_act.h defines the actions of its systems for
 * both. */

#include "tests/support/random.h"

#include <quern/query.h>

enum {
    FLOW_TYPE_COUNT = 8,
    FLOW_WORD_COUNT = 202, /* words of all types together */
    FLOW_MAX_TYPE_WORDS = 128,
    FLOW_RESOURCE_COUNT = 3,
    FLOW_PHASE_COUNT = 3,
    FLOW_MAX_SYSTEMS = 24,
    FLOW_MAX_RULES = 2,
    FLOW_MAX_CALLS = 6,
    FLOW_SPAWN_COUNT = 3,
    /* times are multiples of a tick, which a double represents exactly in seconds */
    FLOW_TICKS_PER_SECOND = 64,
    FLOW_HUB_COUNT = 40,         /* entities at the start that many others link to */
    FLOW_SET_COUNT = 9,          /* number of component sets that entities start with */
    FLOW_MAX_VIEW_WORDS = 4,     /* larger types get no command with a value per row */
    FLOW_VIEW_COMMAND_COUNT = 2, /* commands for views that a system may record per view */
    FLOW_DISABLED_TYPE = 5       /* a tag; it is the library's disabled tag if the plan has_disabled */
};

/* A component made of 64-bit words. The first link_count words are entity handles. */
typedef struct flow_type {
    const char *name;
    uint32_t word_count; /* 0 for a tag */
    uint32_t link_count;
    uint32_t alignment_bytes;
    uint32_t first_word; /* index of its first word among the words of all types */
} flow_type;

extern const flow_type flow_types[FLOW_TYPE_COUNT];

/* How an accumulated value is combined: word by word as numbers, or by flow_mix_in. Types with links are
 * only combined by flow_mix_in. */
typedef enum flow_combine { FLOW_SUM, FLOW_MIN, FLOW_MAX, FLOW_MIX, FLOW_COMBINE_COUNT } flow_combine;

typedef struct flow_term {
    bool used;
    bool changed; /* whether the term is also a filter on changes */
    quern_term_enabled enabled;
    quern_match match;
    quern_access access;
} flow_term;

/* Access by lookup to one type of entities that have type `with` and lack type `without`. */
typedef struct flow_lookup {
    bool used, writes;
    uint32_t with, without; /* FLOW_TYPE_COUNT: no restriction */
} flow_lookup;

/* Kinds of commands for views. */
typedef enum flow_view_kind {
    FLOW_VIEW_ADD, /* with a value or none */
    FLOW_VIEW_SET,
    FLOW_VIEW_SET_VALUES,
    FLOW_VIEW_REMOVE,
    FLOW_VIEW_DESTROY,
    FLOW_VIEW_KIND_COUNT
} flow_view_kind;

typedef struct flow_system {
    char name[16];
    uint32_t phase;
    uint32_t flags; /* quern_system_flags */
    flow_term terms[FLOW_TYPE_COUNT];
    flow_lookup lookups[FLOW_TYPE_COUNT];
    quern_access resources[FLOW_RESOURCE_COUNT];
    uint32_t before[FLOW_MAX_RULES], after[FLOW_MAX_RULES]; /* indices of systems */
    uint32_t before_count, after_count;
    bool destroys_and_creates; /* it records mostly creates and destroys */
    bool only_creates;         /* it records only creates; only with destroys_and_creates */
    bool has_begin, has_end, has_partial;
    /* percentage of evaluations in which its condition is true; 0: no condition */
    uint32_t condition_percent;
    uint32_t interval_ticks;   /* 0: it runs every frame */
    uint32_t disabled_percent; /* percentage of frames in which it is disabled */
    uint32_t change_permille;  /* rate of entities for which it records commands */
    uint32_t spawn_sets[FLOW_SPAWN_COUNT];
    uint64_t salt;
    /* its views exclude disabled entities because no term names the disabled tag */
    bool excludes_disabled;
    bool whole_chunks;    /* QUERN_SYSTEM_WHOLE_CHUNKS, or whole_chunks of the query */
    bool marks_rows;      /* it writes only some rows of its views and marks these as changed */
    uint32_t can_disable; /* copy of the plan's can_disable */
    /* percentage of rows that its commands for views choose; 0: it records none. Its other commands for rows are on
     * the entity of the row, because the reference does not know where its views end. */
    uint32_t view_percent;
} flow_system;

typedef enum flow_call_kind {
    FLOW_CALL_LOOP,      /* iterates over a query and records commands on the world */
    FLOW_CALL_PARALLEL,  /* runs a parallel query with callbacks that record commands */
    FLOW_CALL_IMMEDIATE, /* changes the world immediately, and records on it as well */
    FLOW_CALL_KIND_COUNT
} flow_call_kind;

/* A call of the program between two frames. */
typedef struct flow_call {
    flow_call_kind kind;
    flow_system system;     /* its terms are those of the query */
    uint32_t run_percent;   /* percentage of frames before which the call happens */
    uint32_t flush_percent; /* percentage of calls that are followed by a flush */
} flow_call;

typedef struct flow_phase {
    uint32_t step_ticks; /* fixed step of the phase; 0: it runs once per frame */
    uint32_t max_step_count;
} flow_phase;

typedef struct flow_plan {
    uint64_t seed;
    uint32_t entity_count;         /* number of entities at the start */
    uint32_t sets[FLOW_SET_COUNT]; /* types of each set, one bit each */
    /* FLOW_DISABLED_TYPE is the library's disabled tag, which excludes entities from views */
    bool has_disabled;
    uint32_t can_disable; /* types that can be disabled, one bit each */
    uint32_t row_changes; /* types with change tracking by row, one bit each */
    /* for each type, the types that it lists as required, and all that it requires, one bit each */
    uint32_t listed_required[FLOW_TYPE_COUNT], required[FLOW_TYPE_COUNT];
    uint32_t has_default; /* types with a default value, one bit each */
    uint64_t
        defaults[FLOW_WORD_COUNT]; /* words of newly constructed values; zero for types without default */
    /* percentage of systems that access components by terms only, so that they may share passes */
    uint32_t plain_percent;
    flow_phase phases[FLOW_PHASE_COUNT];
    uint32_t system_count;
    flow_system systems[FLOW_MAX_SYSTEMS];
    uint32_t call_count;
    flow_call calls[FLOW_MAX_CALLS];
} flow_plan;

void flow_plan_make(flow_plan *plan, uint64_t seed, uint32_t entity_count);

/* Makes some terms filters on changes, by chunk and by row. The reference does not model chunks, so it
 * cannot play such a plan. */
void flow_plan_add_filters(flow_plan *plan);

/* Makes some terms filters on changes by row, which the reference can play. No filter is by chunk. */
void flow_plan_add_row_filters(flow_plan *plan);

/* Restricts all systems and calls to creates and destroys, apart from a few other commands. In most
 * cases only one system of a phase destroys, so that entities are destroyed in row order. */
void flow_plan_destroy_and_create(flow_plan *plan);

bool flow_system_has_terms(const flow_system *system);

/* The following four functions derive from the seed what differs from frame to frame. */
uint32_t flow_plan_delta_ticks(const flow_plan *plan, uint64_t frame);
bool flow_plan_enables(const flow_plan *plan, uint32_t system, uint64_t frame);
bool flow_call_runs(const flow_call *call, uint64_t frame);
bool flow_call_flushes(const flow_call *call, uint64_t frame);

static inline double flow_seconds(uint64_t ticks)
{
    return (double)ticks / FLOW_TICKS_PER_SECOND;
}

/* flow_system_matches: whether the terms match an entity with this set of types (one bit each),
 * regardless of disabled components. flow_system_matches_disabled: whether the system's views include
 * rows in which these types are disabled. */
bool flow_system_matches(const flow_system *system, uint32_t set);
bool flow_system_matches_disabled(const flow_system *system, uint32_t disabled);

/* Returns a set of types with all that its types require. required: as in a plan. */
uint32_t flow_complete(const uint32_t required[FLOW_TYPE_COUNT], uint32_t set);

/* Whether the lookup's restrictions admit an entity with this set of types. */
bool flow_lookup_matches(const flow_lookup *lookup, uint32_t set);

/* Whether a `before` or `after` rule of one of the two systems orders the first before the second. */
bool flow_plan_must_precede(const flow_plan *plan, uint32_t first, uint32_t second);

static inline bool flow_system_is(const flow_system *system, quern_access access, uint32_t resource)
{
    return system->resources[resource] == access;
}

/* Fills in the words of all types of the i-th entity at the start and returns its set of types. `first`
 * is the handle of entity 0; the following entities are in the following slots. */
uint32_t flow_plan_entity(const flow_plan *plan, uint32_t i, quern_entity first,
                          uint64_t words[FLOW_WORD_COUNT]);

/* Combines `others` into `words`: links become those of `others`, and every other word depends on both
 * values and on the order of combining. */
void flow_mix_in(const flow_type *type, uint64_t *words, const uint64_t *others);

/* Hashes a number. All random decisions while a plan runs are made with it. */
static inline uint64_t flow_mix(uint64_t x)
{
    random_source source = {x};
    return random_next(&source);
}

#endif
