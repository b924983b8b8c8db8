/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_DROP_H
#define QUERN_CORE_PLAYBACK_DROP_H

/* Counts of dropped commands by system and reason. Each merging thread has its own list. The lists are then
 * merged into one, which does not depend on how the threads shared the work. */

#include "core/base/array.h"

#include <quern/commands.h>

/* Commands of one system that were dropped for one reason. */
typedef struct quern__drop {
    uint32_t system_number;
    quern_drop_reason reason;
    uint64_t count;
    uint64_t first_key;         /* key of the stream of the first dropped command */
    uint64_t first_item_number; /* number of its item in the stream */
    quern_entity first_entity;
} quern__drop;

typedef QUERN__ARRAY(quern__drop) quern__drops;

/* Adds to the entry with the same system and reason, or appends an entry. Entries before `first` belong to
 * earlier sync points: their counts may grow, but their first command stays. Returns false if out of memory. */
bool quern__drops_add(quern__drops *drops, const quern_allocator *allocator, uint32_t first,
                      const quern__drop *drop);

/* Sorts the entries from `first` on by their first command. */
void quern__drops_sort(quern__drops *drops, uint32_t first);

#endif
