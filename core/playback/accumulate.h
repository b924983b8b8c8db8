/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_ACCUMULATE_H
#define QUERN_CORE_PLAYBACK_ACCUMULATE_H

/* Applying accumulated values (core/record/accumulator.h): they are combined with those of entities when all other
 * commands of a sync point have been applied.
 *
 * All items are gone through in order. Where several threads share the work, entities are partitioned by their
 * slots, and each thread goes through all items and combines those of its partition: reading on is cheap beside
 * looking for entities all over memory, and lists of which thread has what would be as long as the items.
 *
 * The items of one entity are in one partition, so one thread combines them in the order of streams, and values are
 * the same at every number of threads. */

#include "core/base/executor.h"
#include "core/playback/drop.h"
#include "core/playback/gather.h"
#include "core/record/accumulator.h"

typedef struct quern__accumulating {
    quern__storage *storage;
    quern__gathered gathered;
    bool destroys;       /* some command of the sync point does */
    uint32_t most_drops; /* entries of drops that it may come to */
    uint64_t dropped_count;
} quern__accumulating;

quern__accumulating *quern__accumulating_create(quern__storage *storage);

/* NULL is allowed. */
void quern__accumulating_destroy(quern__accumulating *it);

/* Before the sync point changes anything: gathers the streams, at least one, notes which entities are dead
 * already, and reserves entries of drops. destroys: some command destroys. Errors: OUT_OF_MEMORY. */
quern_result quern__accumulating_prepare(quern__accumulating *it, quern__recorders recorders, bool destroys,
                                         quern__drops *drops);

/* commands: the streams of commands that have been applied, or NULL; created: the handles that their
 * creates took, in order. Adds to drops, whose entries from first_drop on are of this sync point.
 * Nothing may fail. executor NULL: on the caller. */
void quern__accumulating_apply(quern__accumulating *it, const quern__gathered *commands,
                               const quern_entity *created, quern__drops *drops, uint32_t first_drop,
                               const quern__executor *executor);

#endif
