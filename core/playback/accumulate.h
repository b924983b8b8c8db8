/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_ACCUMULATE_H
#define QUERN_CORE_PLAYBACK_ACCUMULATE_H

/* Applying accumulated values (core/record/accumulator.h): the sync point combines them with the values of
 * entities after it has applied all other commands.
 *
 * All items are processed in order. If several threads share the work, entities are partitioned by slot. Each
 * thread reads all items and combines those of its partition. Reading past the other items is cheap compared
 * with the random accesses to entities, and a list of the items of each thread would be as long as the items
 * themselves.
 *
 * All items of an entity are in one partition, so one thread combines them in the order of streams. Values are
 * therefore the same with every number of threads. */

#include "core/base/executor.h"
#include "core/base/map.h"
#include "core/playback/drop.h"
#include "core/playback/gather.h"
#include "core/record/accumulator.h"

typedef struct quern__accumulating {
    quern__storage *storage;
    quern__gathered gathered;
    bool destroys;      /* some command of the sync point destroys entities */
    uint32_t max_drops; /* upper bound on the entries of drops that the items may add */
    uint64_t dropped_count;
    /* Archetypes, before the commands, of entities that some reaction to sets did not match then
     * (quern__reactions_miss), by handle. 0: the entity is created at this sync point. */
    quern__map unmatched;
} quern__accumulating;

quern__accumulating *quern__accumulating_create(quern__storage *storage);

/* Frees the state. it may be NULL. */
void quern__accumulating_destroy(quern__accumulating *it);

/* Prepares the sync point before it changes anything: gathers the streams, of which there must be at least one,
 * and reserves entries of drops. commands: gathered streams of commands, which will be applied first. If some
 * command destroys entities, items of entities that are already dead are marked, to tell the two reasons
 * apart. Errors: OUT_OF_MEMORY. */
quern_result quern__accumulating_prepare(quern__accumulating *it, quern__recorders recorders,
                                         const quern__gathered *commands, quern__drops *drops);

/* Combines all values. Cannot fail. commands: the streams of commands that have been applied, or NULL. created:
 * the handles of their creates, in order. Adds dropped items to drops; entries from first_drop on belong
 * to this sync point. executor NULL: runs on the calling thread. */
void quern__accumulating_apply(quern__accumulating *it, const quern__gathered *commands,
                               const quern_entity *created, quern__drops *drops, uint32_t first_drop,
                               const quern__executor *executor);

#endif
