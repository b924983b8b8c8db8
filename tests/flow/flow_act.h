/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_ACT_H
#define QUERN_TESTS_FLOW_ACT_H

/* What the systems of a plan, and its calls between frames, do to one entity. Everything follows from the
 * system's salt, the moment, the entity's handle, and the data within reach; so any difference in what a
 * system gets to see spreads. */

#include "tests/flow/flow_plan.h"

#include <quern/id.h>

/* The ways out of a system, for the library and for the reference. value and each of values may be NULL. */
typedef struct flow_hands {
    void *self;
    quern_entity (*create)(void *self, uint32_t set, const uint64_t *words); /* words of all types */
    void (*destroy)(void *self, quern_entity entity);
    void (*add)(void *self, quern_entity entity, uint32_t type, const uint64_t *value);
    void (*set)(void *self, quern_entity entity, uint32_t type, const uint64_t *value);
    void (*remove)(void *self, quern_entity entity, uint32_t type);
    void (*enable)(void *self, quern_entity entity, uint32_t type, bool enabled);
    bool (*is_enabled)(void *self, quern_entity entity, const flow_system *system, uint32_t type);
    void (*accumulate)(void *self, quern_entity entity, uint32_t type, const uint64_t *value, flow_way way);
    const uint64_t *(*lookup)(void *self, quern_entity entity, const flow_system *system, uint32_t type);
    uint64_t *(*lookup_write)(void *self, quern_entity entity, const flow_system *system, uint32_t type);
    bool (*is_alive)(void *self, quern_entity entity);
    uint64_t *(*resource)(void *self, uint32_t index, bool writes);
    void (*flush)(void *self); /* NULL where there is none */
    uint64_t first_bits;       /* the handle of index 0 in its first life */
} flow_hands;

/* Resources: two words, an entity and a number. */
typedef struct flow_resource {
    quern_entity entity;
    uint64_t number;
} flow_resource;

/* An entity as a system's view shows it; only columns with access are there. */
typedef struct flow_row {
    quern_entity entity;
    uint64_t *columns[FLOW_TYPE_COUNT];
    bool has[FLOW_TYPE_COUNT];         /* as far as there is a term */
    bool is_disabled[FLOW_TYPE_COUNT]; /* likewise; write_row changes it */
    bool is_written;                   /* it was, as far as the system writes; write_row tells */
} flow_row;

/* A sum over rows in which their order shows, and which parts of the rows add up to. */
typedef struct flow_digest {
    uint64_t hash, power; /* power 0: nothing yet */
} flow_digest;

void flow_digest_add(flow_digest *sum, flow_digest part);

/* The frame, and the time that a system is told has gone by, as one number. */
uint64_t flow_moment(uint64_t frame, double delta_seconds);

/* The frame that comes, and what the calls since the last one have seen, as one number. */
uint64_t flow_moment_between(uint64_t frame, uint64_t seen);

/* Returns what is to be added to the digest of the system's rows. */
flow_digest flow_act_row(const flow_system *system, uint64_t moment, const flow_hands *hands,
                         flow_row *row);

void flow_act_begin(const flow_system *system, uint64_t moment, const flow_hands *hands);
void flow_act_end(const flow_system *system, uint64_t moment, const flow_hands *hands, flow_digest sum);

/* Whether it is to run. */
bool flow_act_condition(const flow_system *system, uint64_t moment, const flow_hands *hands);

/* Of a program that records on the world: more commands on what it created since commands were last applied
 * (null: nothing yet), and another create, whose provisional handle it returns. */
quern_entity flow_act_on_recent(const flow_system *system, uint64_t moment, const flow_hands *hands,
                                quern_entity recent);

/* An exclusive system, or a program between frames: `now` changes the world at once, `hands` records, and
 * so does `later`, whose flush may follow. */
void flow_act_exclusive(const flow_system *system, uint64_t moment, const flow_hands *hands,
                        const flow_hands *now, const flow_hands *later);

#endif
