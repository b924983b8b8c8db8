/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_REPLAY_INPUTS_H
#define QUERN_SCHED_REPLAY_INPUTS_H

/* Resources that are inputs, and their values as bytes of a FRAME: described fields one after another, with
 * handles as index and life, or the bytes as they are. */

#include "core/world/world_internal.h"
#include "sched/replay/replay_block.h"

#include <quern/replay.h>

typedef struct quern__inputs {
    quern_world *world;
    uint32_t count;
    uint32_t indices[QUERN_MAX_REPLAY_INPUTS];
    size_t bytes; /* of all values */
} quern__inputs;

/* Appends the resource of that index. Errors: INVALID_ARGUMENT (hooks, or it is there already). */
quern_result quern__inputs_add(quern__inputs *inputs, uint32_t index);

void quern__inputs_write(const quern__inputs *inputs, quern__byte_writer *bytes);

/* Sets the values; at has as many bytes as the inputs say. */
void quern__inputs_set(const quern__inputs *inputs, const char *at);

#endif
