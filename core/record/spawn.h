/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_SPAWN_H
#define QUERN_CORE_RECORD_SPAWN_H

/* Spawning prefabs by command. The members of an instance are numbered among the creates of the stream. An instance
 * is recorded in one of two forms.
 *
 * A *compact* instance is one item with the values of its overrides. The sync point spawns consecutive compact
 * instances of one prefab together (core/playback/spawned.c). A recorder with compact instances retains the prefab
 * until its commands are applied, even if the prefab is destroyed.
 *
 * An *expanded* instance is one create per member, followed by commands that relate and name the members. An
 * instance is expanded from the start if its root has a parent, if members have targets outside of the tree, or if
 * overrides have hooks, contain handles, or exceed 4096 bytes together.
 *
 * The first command that refers to a member of a compact instance expands it. Only the callback that spawned the
 * instance knows its members, and none of its earlier commands refers to one. Recording the creates this late is
 * therefore equivalent.
 *
 * A recorder caches what it needs for each prefab. */

#include "core/prefabs/prefab_internal.h"
#include "core/record/record.h"

struct quern__spawn_variant;

typedef struct quern__spawn_cache {
    quern_prefab handle;
    quern__prefab *prefab;
    struct quern__spawn_variant *variants; /* variants that this recorder has used, latest first */
    struct quern__spawn_cache *next_old;
    bool retains_prefab;    /* the recorder retains the prefab for compact instances */
    uint32_t command_count; /* number of commands that a compact instance counts as */
    uint32_t group_count;
    uint32_t largest_bytes; /* size of the largest batch of an expanded instance */
    uint64_t bytes;         /* total size of the batches of an expanded instance */
    /* operations that create the members, by group; then the one for a root with a parent, or NULL */
    const quern__operation *operations[];
} quern__spawn_cache;

/* Compact instances with the same set of overrides. */
typedef struct quern__spawn_variant {
    quern__spawn_cache *cache;
    quern__operation *operation; /* operation with one operand per override */
    struct quern__spawn_variant *next;
    uint32_t override_count;
    quern__prefab_override overrides[QUERN_MAX_SPAWN_OVERRIDES];
} quern__spawn_variant;

/* Number of members of an instance that the operation spawns. */
static inline uint32_t quern__spawn_member_count(const quern__operation *operation)
{
    return operation->variant->cache->prefab->members.count;
}

void quern__spawns_release(quern_commands *commands);

/* Releases the prefabs retained for compact instances. Called when the recorder's streams are removed. */
void quern__spawns_release_prefabs(quern_commands *commands);

/* Expands the compact instance that the entity belongs to, if any. Call it before recording a command on an
 * entity created by the open stream. Errors: OUT_OF_MEMORY. */
quern_result quern__spawn_expand(quern_commands *commands, quern_entity entity, const char *function);

#endif
