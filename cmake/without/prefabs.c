/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* In place of prefabs, if QUERN_WITHOUT names them: no world has any, and no recorder spawns. */

#include "core/playback/stages.h"
#include "core/record/spawn.h"

void quern__prefabs_release(quern__storage *storage)
{
    (void)storage;
}

uint64_t quern__prefabs_held_bytes(const quern__storage *storage)
{
    (void)storage;
    return 0;
}

void quern__spawns_release(quern_commands *commands)
{
    (void)commands;
}

void quern__spawns_release_prefabs(quern_commands *commands)
{
    (void)commands;
}

quern_result quern__spawn_expand(quern_commands *commands, quern_entity entity, const char *function)
{
    (void)commands, (void)entity, (void)function;
    return QUERN_OK;
}

quern_result quern__spawned_plan(quern__resolved *resolved, const quern__gathered *gathered,
                                 quern__storage *storage)
{
    (void)resolved, (void)gathered, (void)storage;
    return QUERN_OK;
}

quern_result quern__spawned_reserve(quern__resolved *resolved, quern__storage *storage)
{
    (void)resolved, (void)storage;
    return QUERN_OK;
}

void quern__spawned_put(const quern__resolved *resolved, quern__storage *storage)
{
    (void)resolved, (void)storage;
}
