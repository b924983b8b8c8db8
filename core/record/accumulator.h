/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_ACCUMULATOR_H
#define QUERN_CORE_RECORD_ACCUMULATOR_H

/* Functions that combine a value with an accumulated one. Built-in: sum, minimum and maximum, for types with
 * all bytes described as numbers. Others are registered by the program. */

#include "core/base/containers.h"
#include "core/record/record.h"
#include "core/storage/type_internal.h"

#include <quern/commands.h>

typedef struct quern__combine {
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern_combine_function *function;
    void *user_data;
} quern__combine;

typedef struct quern__combines {
    QUERN__ARRAY(quern__combine) list;
} quern__combines;

/* A value and the accumulated value to combine it with. Both are aligned for their type. */
typedef struct quern__pair {
    char *value;
    const char *accumulated;
} quern__pair;

/* Combines consecutive numbers of one type, for each pair. The numbers start offset_bytes after the beginning
 * of both values. A call handles many pairs, so that memory accesses of different pairs overlap. */
typedef void quern__number_combiner(const quern__pair *pairs, uint32_t pair_count, uint32_t offset_bytes,
                                    uint32_t number_count);

/* How values of one type are combined: by `numbers` if it is not NULL, otherwise by a function of the program if
 * `registered` is not NULL, otherwise by `by_number`, field by field. */
typedef struct quern__combiner {
    quern__number_combiner *numbers; /* the value is an array of number_count numbers of one type */
    uint32_t number_count;
    /* the value has fields of several types; indexed by quern_field_type */
    quern__number_combiner *const *by_number;
    /* The registry with the program's function, and its number there. The function itself may be redefined. */
    const quern__combines *registered;
    uint32_t registered_number;
} quern__combiner;

/* Registers a function of the program. Errors: INVALID_ARGUMENT, NULL_ARGUMENT, DUPLICATE_NAME, LIMIT,
 * OUT_OF_MEMORY. */
quern_result quern__combines_register(quern__combines *combines, const quern_allocator *allocator,
                                      uint32_t world_tag, const quern_combine_def *def,
                                      quern_combine *out_combine);

/* Combines all pairs in order. Several pairs may have the same value. */
void quern__combine_pairs(const quern__combiner *combiner, const quern__type *type,
                          const quern__pair *pairs, uint32_t count);

/* Recording accumulated values, which the sync point combines with the values of entities
 * (core/playback/stages.h).
 *
 * A recorder has a second recorder for them, with its own blocks and streams, created on first use. As a
 * result, accumulated values do not interrupt batches of commands, and a sync point skips whichever recorder is
 * empty. A stream of accumulated values has the key and serial of the commands of its callback.
 *
 * An item is a handle and a value. The combine function belongs to the operation, so it is the same for a whole
 * batch. Items have no location, since commands, which are applied first, may move the entity. */

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

/* Forgets the result of the latest search. */
void quern__accumulator_forget_last(quern__accumulator *accumulator);

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
