/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_COMMANDS_ACCUMULATE_H
#define QUERN_CORE_COMMANDS_ACCUMULATE_H

/* Values that are combined with those of entities when all other commands of a sync point have been
 * applied.
 *
 * Each recorder has a second one beside it for them, with blocks and streams of its own, which is made
 * when it is first needed. So neither gets in the way of the other's runs, and sync points at which only
 * one of them holds anything do only its work. A stream has the key and the serial of the commands of
 * its callback.
 *
 * What is recorded is a handle with a value: how they are combined is the same for a whole run, and stands
 * with its operation. Where an entity is would be no use, for commands come first.
 *
 * Applying goes through all items in order. Where several threads share the work, entities are
 * partitioned by their slots, and each thread goes through all items and combines those of its
 * partition: reading on is cheap beside looking for entities all over memory, and lists of who has what
 * would be as long as the items.
 *
 * The items of one entity are in one partition, so they are combined in the order of streams by whoever
 * has it, and values are the same however many threads there are. */

#include "core/base/executor.h"
#include "core/commands/drop.h"
#include "core/commands/gather.h"
#include "core/storage/combine.h"

/* How values of a component are accumulated in one way. */
typedef struct quern__accumulation {
    const quern__operation *quick_operation; /* that of values which are copied in steps of 4 bytes, 16 at
                                              * most, and have no handles; of others one that no run has */
    quern_component component;
    quern_combine combine;
    uint32_t world_tag; /* of the handles that may be given */
    uint32_t item_bytes;
    uint16_t offset_bytes; /* of the value in an item */
    uint16_t size_bytes;
    uint16_t component_index;
    quern__operation *operation; /* its own: of all runs of what is accumulated so */
    const quern__type *type;
    quern__combiner combiner;
} quern__accumulation;

typedef struct quern__accumulator {
    quern_commands recorder; /* create_count of its streams: of items with provisional handles */
    QUERN__ARRAY(quern__accumulation *) list;
    const quern__accumulation *last; /* the one that was asked for last, or one that is nobody's */
} quern__accumulator;

/* What an item begins with; behind it stands the value, as its type asks. */
typedef struct quern__accumulated {
    quern_entity entity;
} quern__accumulated;

void quern__accumulator_release(quern_commands *commands);

/* Whether anything was accumulated with a recorder. */
static inline bool quern__accumulator_is_used(const quern_commands *commands)
{
    return QUERN__UNLIKELY(commands->accumulator != NULL) &&
           commands->accumulator->recorder.streams.count > 0;
}

/* All that a closed recorder holds. */
static inline uint64_t quern__commands_count(const quern_commands *commands)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < commands->streams.count; i++)
        count += commands->streams.items[i].command_count;
    return count + (quern__accumulator_is_used(commands)
                        ? quern__commands_count(&commands->accumulator->recorder)
                        : 0);
}

/* ------------------------------------------------------------------------------------------ applying */

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

/* Before the sync point changes anything: gathers the streams, stream_count in all, notes which entities
 * are gone already, and makes room in drops. destroys: some command does. Errors: OUT_OF_MEMORY. */
quern_result quern__accumulating_prepare(quern__accumulating *it, quern__recorders recorders,
                                         uint32_t stream_count, bool destroys, quern__drops *drops);

/* commands: the streams of commands that have been applied, or NULL; created: the handles that their
 * creates took, in order. Adds to drops, whose entries from first_drop on are of this sync point.
 * Nothing may fail. executor NULL: on the caller. */
void quern__accumulating_apply(quern__accumulating *it, const quern__gathered *commands,
                               const quern_entity *created, quern__drops *drops, uint32_t first_drop,
                               const quern__executor *executor);

#endif
