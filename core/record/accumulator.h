/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_ACCUMULATOR_H
#define QUERN_CORE_RECORD_ACCUMULATOR_H

/* Recording values that are to be combined with those of entities (core/playback/accumulate.h applies them).
 *
 * Each recorder has a second one beside it for them, with blocks and streams of its own, which is made when it is
 * first needed. So neither interrupts the other's runs, and a sync point at which only one of them holds anything
 * does only its work. A stream has the key and the serial of the commands of its callback.
 *
 * What is recorded is a handle with a value: how values are combined is the same for a whole run, and is a member of
 * its operation. The location of an entity is not recorded, as commands that are applied first may move it. */

#include "core/record/combine.h"
#include "core/record/record.h"

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

#endif
