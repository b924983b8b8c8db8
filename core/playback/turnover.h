/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_TURNOVER_H
#define QUERN_CORE_PLAYBACK_TURNOVER_H

/* The short way for entities that only come and go, straight after gathering. Where commands do nothing but
 * destroy entities that were there, in the order of their rows and without destroy hooks, and create others
 * with types without hooks, one command is all that an entity gets: there is nothing to merge. Systems
 * destroy in the order of rows, and in order none is destroyed twice. Commands in another order go through
 * all stages: sorting them was slower. Rows, handles and values that come out are those of all stages
 * (resolve.h). */

#include "core/playback/resolve.h"

/* What creates with one operation come to. */
typedef struct quern__create_kind {
    const quern__operation *operation;
    uint32_t delta; /* in resolved */
    uint32_t first_fill, fill_count;
} quern__create_kind;

/* The values of one column of new rows. */
typedef struct quern__create_fill {
    uint16_t size_bytes;
    uint16_t target_offset_bytes; /* of the column in a chunk */
    uint16_t value_offset_bytes;  /* in the item; 0: none is given */
} quern__create_fill;

/* A create span: some creates of one stream with one operation, one after another but for destroys between
 * them. Instances that are spawned (spawned.h) end it, since their members have handles in between. */
typedef struct quern__create_span {
    quern__run *run;     /* where it begins, */
    uint32_t first_item; /* and at which of the run's items */
    uint32_t count;      /* over as many runs as it takes */
    const quern__operation *operation;
    uint32_t kind;
    uint32_t first_created; /* of the creates of all streams */
    uint32_t stream_first;  /* of which the first of its stream is this one */
    uint32_t rank;          /* of its first among all that come to the same archetype */
} quern__create_span;

typedef struct quern__turnover {
    QUERN__ARRAY(quern__create_kind) kinds;
    QUERN__ARRAY(quern__create_fill) fills;
    QUERN__ARRAY(quern__create_span) spans; /* in the order of streams */
    quern__map kind_of_operation;
} quern__turnover;

void quern__turnover_release(quern__turnover *turnover, const quern_allocator *allocator);

/* Whether entities only come and go, by commands that have QUERN__TRAIT_TURNOVER. If so, `resolved`, which has been cleared, has deltas and gaps
 * afterwards, and there is room for all that comes; if not, it is cleared again. On failure nothing is held
 * that was not before, but for archetypes without rows and records that were absent. Errors: OUT_OF_MEMORY,
 * LIMIT. */
quern_result quern__commands_turn_over(quern__turnover *turnover, quern__resolved *resolved,
                                       const quern__gathered *gathered, quern__storage *storage,
                                       bool *out_is_turnover);

/* Does all commands, at which quern__commands_turn_over has looked. executor NULL: on the caller. */
void quern__turnover_apply(const quern__turnover *turnover, quern__resolved *resolved,
                           const quern__gathered *gathered, quern__storage *storage,
                           const quern__executor *executor);

#endif
