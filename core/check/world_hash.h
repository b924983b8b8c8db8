/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CHECK_WORLD_HASH_H
#define QUERN_CORE_CHECK_WORLD_HASH_H

/* Parts of quern_world_hash, for who wants to know in which of them two worlds differ. Each goes on from a
 * hash. */

#include "core/world/world_internal.h"

/* How often each slot has lived and whether it does, and which are taken next. */
uint64_t quern__hash_slots(const quern__entities *entities, uint64_t hash);

/* The same hash for a world without names. */
uint64_t quern__hash_entity_names(const quern__storage *storage, uint64_t hash);

/* Who has which target, and the order of siblings. name: a hash of the relation's. */
uint64_t quern__hash_links(const quern__links *links, uint64_t name, uint64_t hash);

#endif
