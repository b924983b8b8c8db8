/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_ACT_H
#define QUERN_TESTS_FLOW_ACT_H

/* The actions of a plan's systems, and of its calls between frames, on one entity. They are a function
 * of the system's salt, the moment, the entity's handle and the data that the system can read. So any
 * difference in what a system sees changes all later frames. */

#include "tests/flow/flow_plan.h"

#include <quern/id.h>

/* A command for a view. It is a function of the system and the moment, so it is the same for all rows. */
typedef struct flow_view_command {
    flow_view_kind kind;
    uint32_t type;
    uint32_t index; /* below FLOW_VIEW_COMMAND_COUNT: commands of a view are in this order */
    bool has_value; /* of FLOW_VIEW_ADD */
} flow_view_command;

/* The operations that a system or call may use, implemented by the library and by the reference. `value`
 * and each element of `values` may be NULL. */
typedef struct flow_operations {
    void *self;
    /* `words` holds words for all types */
    quern_entity (*create)(void *self, uint32_t set, const uint64_t *words);
    void (*destroy)(void *self, quern_entity entity);
    void (*add)(void *self, quern_entity entity, uint32_t type, const uint64_t *value);
    void (*set)(void *self, quern_entity entity, uint32_t type, const uint64_t *value);
    void (*remove)(void *self, quern_entity entity, uint32_t type);
    void (*enable)(void *self, quern_entity entity, uint32_t type, bool enabled);
    bool (*is_enabled)(void *self, quern_entity entity, const flow_system *system, uint32_t type);
    void (*accumulate)(void *self, quern_entity entity, uint32_t type, const uint64_t *value,
                       flow_combine combine);
    /* chooses the entity of a row for a command for the view. value: NULL if the command has none */
    void (*choose_row)(void *self, const flow_view_command *command, quern_entity entity,
                       const uint64_t *value);
    const uint64_t *(*lookup)(void *self, quern_entity entity, const flow_system *system, uint32_t type);
    uint64_t *(*lookup_write)(void *self, quern_entity entity, const flow_system *system, uint32_t type);
    bool (*is_alive)(void *self, quern_entity entity);
    uint64_t *(*resource)(void *self, uint32_t index, bool writes);
    void (*flush)(void *self); /* NULL if the operations cannot flush */
    uint64_t first_bits;       /* handle of the entity with index 0 in its first generation */
} flow_operations;

/* The value of a resource. */
typedef struct flow_resource {
    quern_entity entity;
    uint64_t number;
} flow_resource;

/* An entity as a view of the system shows it. Columns to which the system has no access are NULL. */
typedef struct flow_row {
    quern_entity entity;
    uint64_t *columns[FLOW_TYPE_COUNT];
    bool has[FLOW_TYPE_COUNT];         /* false for types without a term */
    bool is_disabled[FLOW_TYPE_COUNT]; /* false for types without a term; write_row may change it */
    bool is_written;                   /* set by write_row: whether the row was written to */
} flow_row;

/* A hash over rows that depends on their order. The digests of consecutive parts can be combined to that
 * of the whole. */
typedef struct flow_digest {
    uint64_t hash, power; /* 0: empty */
} flow_digest;

void flow_digest_add(flow_digest *sum, flow_digest part);

/* Mixes the frame index and the seconds that a system receives as elapsed time into one number. */
uint64_t flow_moment(uint64_t frame, double delta_seconds);

/* Mixes the index of the next frame and the results of calls since the last frame into one number. */
uint64_t flow_moment_between(uint64_t frame, uint64_t seen);

/* Acts on one row. Returns its contribution to the digest of the system's rows. */
flow_digest flow_act_row(const flow_system *system, uint64_t moment, const flow_operations *operations,
                         flow_row *row);

void flow_act_begin(const flow_system *system, uint64_t moment, const flow_operations *operations);
void flow_act_end(const flow_system *system, uint64_t moment, const flow_operations *operations,
                  flow_digest sum);

/* Returns the result of the system's condition. */
bool flow_act_condition(const flow_system *system, uint64_t moment, const flow_operations *operations);

/* Used by calls that record on the world: issues commands for `recent`, the entity that was created last
 * (null if none was since commands were last applied), and creates another entity. Returns its
 * provisional handle. */
quern_entity flow_act_on_recent(const flow_system *system, uint64_t moment,
                                const flow_operations *operations, quern_entity recent);

/* Acts as an exclusive system or as a call between frames. `now` changes the world at once. `operations`
 * and `later` record; `later` may flush as well. */
void flow_act_exclusive(const flow_system *system, uint64_t moment, const flow_operations *operations,
                        const flow_operations *now, const flow_operations *later);

#endif
