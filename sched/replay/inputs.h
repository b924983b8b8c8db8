/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_REPLAY_INPUTS_H
#define QUERN_SCHED_REPLAY_INPUTS_H

/* Input resources of a recording and the format of their values in a FRAME block: the described fields one after
 * another, with handles as index and use count, or the plain bytes of a type without described fields. */

#include "core/world/world_internal.h"
#include "sched/replay/replay_block.h"

#include <quern/replay.h>

typedef struct quern__inputs {
    quern_world *world;
    uint32_t count;
    uint32_t indices[QUERN_MAX_REPLAY_INPUTS];
    size_t bytes; /* bytes of all values together */
} quern__inputs;

/* Adds the resource with an index. Fails with INVALID_ARGUMENT if it has hooks or was added already. */
quern_result quern__inputs_add(quern__inputs *inputs, uint32_t index);

void quern__inputs_write(const quern__inputs *inputs, quern__byte_writer *bytes);

/* Sets the values of all inputs from inputs->bytes bytes. */
void quern__inputs_set(const quern__inputs *inputs, const char *at);

#endif
