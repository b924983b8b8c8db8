/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_SCHEDULE_ACCESS_INDEX_H
#define QUERN_SCHED_SCHEDULE_ACCESS_INDEX_H

/* The systems that use a component or a resource, by kind of use: sets of positions in the order of execution. With
 * them, the compiler finds the systems that could conflict with a system by a few bit operations per component, without
 * looking at any other system. Memory: a bit per system for each kind of use of each used component and resource. */

#include "sched/schedule/access.h"

typedef struct quern__access_index {
    /* [kind * limit + index]: 1 + number of the set; 0: no system has such a use. */
    QUERN__ARRAY(uint16_t) numbers;
    QUERN__ARRAY(uint64_t) words; /* of all sets, one after another */
    uint32_t words_per_set;
} quern__access_index;

void quern__access_index_release(quern__access_index *index, const quern_allocator *allocator);

/* Empties the index and prepares it for the positions from 0 to system_count - 1. Returns false if out of memory. */
bool quern__access_index_reset(quern__access_index *index, const quern_allocator *allocator,
                               uint32_t system_count);

/* Adds all uses of the system at a position. Returns false if out of memory. */
bool quern__access_index_add(quern__access_index *index, const quern_allocator *allocator,
                             uint32_t position, const quern__access *access);

/* Returns the positions of the systems that use the component or resource in this way, or NULL if there are none. */
const uint64_t *quern__access_index_find(const quern__access_index *index, quern__use_kind kind,
                                         uint32_t of_index);

#endif
