/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_SPAWN_H
#define QUERN_CORE_RECORD_SPAWN_H

/* Spawning prefabs by command. An instance is one item: its members are numbered among the creates of the stream, from
 * the number of the item's handle on, and its operands are the overrides and the parent. The sync point puts all
 * instances into the world first, consecutive ones of a prefab together (core/playback/spawned.c). Later commands of the
 * callback on members are edits of the rows that then exist.
 *
 * Overrides that instances do not copy as bytes, or that are too large for an item, are recorded as sets of the members
 * after the item.
 *
 * A recorder caches what it needs for each prefab. It retains prefabs until its commands are applied, even if they are
 * destroyed. */

#include "core/prefabs/prefab_internal.h"
#include "core/record/record.h"

struct quern__spawn_variant;

typedef struct quern__spawn_cache {
    quern_prefab handle;
    quern__prefab *prefab;
    struct quern__spawn_variant *variants; /* variants that this recorder has used, latest first */
    struct quern__spawn_cache *next_old;
    bool retains_prefab;    /* the recorder retains the prefab for recorded spawns */
    uint32_t command_count; /* number of commands that an instance without a parent counts as */
} quern__spawn_cache;

/* Instances with the same set of overrides, with or without a parent. */
typedef struct quern__spawn_variant {
    quern__spawn_cache *cache;
    quern__operation *operation; /* one operand per override, then one for the parent */
    struct quern__spawn_variant *next;
    bool has_parent;
    uint32_t override_count;
    quern__prefab_override overrides[QUERN_MAX_SPAWN_OVERRIDES];
} quern__spawn_variant;

/* Number of members of an instance that the operation spawns. */
static inline uint32_t quern__spawn_member_count(const quern__operation *operation)
{
    return operation->variant->cache->prefab->members.count;
}

void quern__spawns_release(quern_commands *commands);

/* Releases the retained prefabs. Called when the recorder's streams are removed. */
void quern__spawns_release_prefabs(quern_commands *commands);

#endif
