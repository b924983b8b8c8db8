/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_DROP_H
#define QUERN_CORE_PLAYBACK_DROP_H

/* Commands that were dropped, counted by who recorded them and why. Each thread that merges counts in a
 * list of its own; afterwards the lists become one, which does not tell who counted. */

#include "core/base/array.h"

#include <quern/commands.h>

/* Commands of one system that were dropped for one reason. */
typedef struct quern__drop {
    uint32_t source;
    quern_drop_reason reason;
    uint64_t count;
    uint64_t first_key;         /* of the first of them: its stream's key, */
    uint64_t first_item_number; /* and the item's number in it */
    quern_entity first_entity;
} quern__drop;

typedef QUERN__ARRAY(quern__drop) quern__drops;

/* Adds to the entry with the same source and reason, or makes one. Entries before `first` are of earlier
 * sync points: what comes to them was not their first. False: no memory. */
bool quern__drops_add(quern__drops *drops, const quern_allocator *allocator, uint32_t first,
                      const quern__drop *drop);

/* Sorts the entries from `first` on by their first command. */
void quern__drops_sort(quern__drops *drops, uint32_t first);

#endif
