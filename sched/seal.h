/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SEAL_H
#define QUERN_SCHED_SEAL_H

/* For builds with QUERN_CHECKS: who keeps a pointer into a chunk beyond its call, and writes there, is
 * found out.
 *
 * While the passes of a step run, a column changes only under views that may write it. So each column of
 * each chunk that the step touches is sealed with a hash of its bytes: when the step starts, and after each
 * call that may write it. A seal is looked at before the next call that has the column, and when the step
 * ends; one that does not fit was broken while nobody had a view.
 *
 * Threads: a seal is written by calls that may write its column, and read by calls that have it; conflicts
 * keep these apart. */

#include "core/archetype.h"
#include "core/array.h"

struct quern_schedule;
struct quern_context;
struct quern__step;
struct quern_view;

typedef struct quern__seal {
    uint64_t hash;
    const struct quern__system
        *holder; /* the latest that might write; NULL: none since the archetype is known */
} quern__seal;

/* Of one archetype, by chunk and column. */
typedef struct quern__seal_table {
    const quern__archetype *archetype;
    quern__seal *seals;
    uint32_t capacity; /* seals */
} quern__seal_table;

typedef struct quern__seals {
    QUERN__ARRAY(quern__seal_table) tables; /* by archetype index */
} quern__seals;

void quern__seals_release(quern__seals *seals, const quern_allocator *allocator);

/* Stands for the system that was refused something where no system is known to have had the column. */
extern const char quern__seal_nobody[];

/* Seals all that the step's passes touch. Errors: OUT_OF_MEMORY. */
quern_result quern__seals_start(struct quern_schedule *schedule, const struct quern__step *step);

/* Before and after a call with a view of a chunk. was_refused: it has written what it may only read, and
 * that has been told already. */
void quern__seals_check(struct quern_context *context, const quern__archetype *archetype,
                        const struct quern_view *view);
void quern__seals_renew(struct quern_context *context, const quern__archetype *archetype,
                        const struct quern_view *view, bool was_refused);

/* Looks at all seals of the step. */
void quern__seals_finish(struct quern_schedule *schedule, const struct quern__step *step);

#endif
