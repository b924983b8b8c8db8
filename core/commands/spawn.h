/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_COMMANDS_SPAWN_H
#define QUERN_CORE_COMMANDS_SPAWN_H

/* Spawning by command is creating by command: an instance is recorded as one create per member, with the
 * values that it is to have. So whatever else is recorded of its members has its place among these, and a
 * prefab may go before its commands are applied.
 *
 * What a recorder needs for a prefab it makes once. */

#include "core/commands/record.h"
#include "core/storage/prefab.h"

typedef struct quern__spawn_kind {
    quern_prefab prefab;
    uint32_t group_count;
    uint32_t largest_bytes; /* of a run of one item, and of the items of an instance together */
    uint64_t bytes;
    const quern__operation *operations[]; /* by group; and the root's with a parent */
} quern__spawn_kind;

void quern__spawns_release(quern_commands *commands);

#endif
