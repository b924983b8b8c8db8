/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_ACCUMULATOR_H
#define QUERN_CORE_RECORD_ACCUMULATOR_H

/* Recording accumulated values, which the sync point combines with the values of entities
 * (core/playback/accumulate.h).
 *
 * A recorder has a second recorder for them, with its own blocks and streams, created on first use. As a
 * result, accumulated values do not interrupt batches of commands, and a sync point skips whichever recorder is
 * empty. A stream of accumulated values has the key and serial of the commands of its callback.
 *
 * An item is a handle and a value. The combine function belongs to the operation, so it is the same for a whole
 * batch. Items have no location, since commands, which are applied first, may move the entity. */

#include "core/record/combine.h"
#include "core/record/record.h"

/* One way to accumulate values of one component. */
typedef struct quern__accumulation {
    /* The accumulation's operation if the fast path of quern_commands_accumulate handles its values: 4, 8, 12
     * or 16 bytes, without hooks and without handles. Otherwise an operation that no batch has. */
    const quern__operation *quick_operation;
    quern_component component;
    quern_combine combine;
    uint32_t world_tag; /* world tag of valid handles */
    uint32_t item_bytes;
    uint16_t offset_bytes; /* offset of the value in an item */
    uint16_t size_bytes;
    uint16_t component_index;
    quern__operation *operation; /* operation of all batches of this accumulation, which owns it */
    const quern__type *type;
    quern__combiner combiner;
} quern__accumulation;

typedef struct quern__accumulator {
    /* create_count of its streams: number of items with provisional handles */
    quern_commands recorder;
    QUERN__ARRAY(quern__accumulation *) list;
    /* result of the latest search; initially one that matches no component */
    const quern__accumulation *last;
} quern__accumulator;

/* The head of an item. The value follows, aligned for its type. */
typedef struct quern__accumulated {
    quern_entity entity;
} quern__accumulated;

void quern__accumulator_release(quern_commands *commands);

/* Whether the recorder contains accumulated values. */
static inline bool quern__accumulator_is_used(const quern_commands *commands)
{
    return QUERN__UNLIKELY(commands->accumulator != NULL) &&
           commands->accumulator->recorder.streams.count > 0;
}

/* Number of commands and accumulated values in a closed recorder. */
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
