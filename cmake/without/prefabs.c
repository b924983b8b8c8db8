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

void quern__play_spawns(const quern__play_walk *walk)
{
    (void)walk;
}

void quern__play_clones(const quern__play_walk *walk)
{
    (void)walk;
}

quern_result quern__clones_begin(quern__resolved *resolved, quern__gathered *gathered,
                                 quern__storage *storage)
{
    (void)resolved, (void)gathered, (void)storage;
    return QUERN_OK;
}

void quern__clones_end(quern__resolved *resolved, const quern__storage *storage)
{
    (void)resolved, (void)storage;
}

void quern__clones_release(quern__resolved *resolved, const quern_allocator *allocator)
{
    (void)resolved, (void)allocator;
}

bool quern__spawned_is_not_copied(const quern__resolved *resolved, uint32_t created)
{
    (void)resolved, (void)created;
    return false;
}

quern_result quern__spawned_list(quern__resolved *resolved, const quern__gathered *gathered,
                                 quern__storage *storage)
{
    (void)resolved, (void)gathered, (void)storage;
    return QUERN_OK;
}

quern_result quern__spawned_reserve_rows(quern__resolved *resolved, quern__storage *storage)
{
    (void)resolved, (void)storage;
    return QUERN_OK;
}

bool quern__spawned_find(const quern__resolved *resolved, uint32_t created, uint32_t *hint,
                         uintptr_t *out_location)
{
    (void)resolved, (void)created, (void)hint, (void)out_location;
    return false;
}

const quern__archetype *quern__spawned_archetype(const quern__resolved *resolved, uint32_t created)
{
    (void)resolved, (void)created;
    return NULL;
}

uint32_t quern__spawned_at(const quern__resolved *resolved, uintptr_t location)
{
    (void)resolved, (void)location;
    return UINT32_MAX;
}

quern_result quern__spawned_reserve(quern__resolved *resolved, quern__storage *storage)
{
    (void)resolved, (void)storage;
    return QUERN_OK;
}

void quern__spawned_put(quern__resolved *resolved, quern__storage *storage)
{
    (void)resolved, (void)storage;
}

/* No world has a prefab to convert. */
quern_result quern__prefab_check_conversion(const quern__prefab *prefab, quern__type_change *change,
                                            size_t *out_bytes)
{
    (void)prefab, (void)change;
    *out_bytes = 0;
    return QUERN_OK;
}

void quern__prefab_convert(quern__prefab *prefab, const quern_allocator *allocator,
                           const quern__type_change *change, char *values, size_t values_bytes)
{
    (void)prefab, (void)allocator, (void)change, (void)values, (void)values_bytes;
}
