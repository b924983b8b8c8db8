/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CHECK_WORLD_HASH_H
#define QUERN_CORE_CHECK_WORLD_HASH_H

/* The parts of quern_world_hash, which replays use to find the part in which two worlds differ. Each part adds to a given
 * hash and returns the result. */

#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"

/* Returns quern_world_hash of the world, of which only the first resource_count resources count. */
uint64_t quern__hash_world(const quern_world *world, uint32_t resource_count);

/* Adds the relative generation of each slot, whether it is alive, and the order in which free slots are reused. */
uint64_t quern__hash_slots(const quern__entities *entities, uint64_t hash);

/* Adds the names of entities. Leaves the hash unchanged if the world has no names. */
uint64_t quern__hash_entity_names(const quern__storage *storage, uint64_t hash);

/* Adds the target of each source, and the order of sources with one target. name: hash of the relation's name. */
uint64_t quern__hash_links(const quern__links *links, uint64_t name, uint64_t hash);

/* Adds the targets of each source with edges. name: hash of the relation's name. */
uint64_t quern__hash_edges(const quern__edges *edges, uint64_t name, uint64_t hash);

#endif
