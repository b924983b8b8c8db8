/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_MANY_H
#define QUERN_TESTS_MANY_H

/* A world with all kinds of state that a history saves, changed at random by immediate calls. */

#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

enum { MANY_KEPT = 6, MANY_MOST = 3000, MANY_STEPS = 150 };

typedef struct amount {
    uint64_t value;
} amount;

typedef struct many {
    quern_world *world;
    quern_history *history;
    quern_component amount, tracked, tag, wide;
    quern_relation parent, friend;
    quern_resource counter;
    quern_query *all; /* finds all entities with an amount, enabled or not */
    tracked_counts counts;
    random_source random;
} many;

extern many many_it;
extern quern_entity many_entities[MANY_MOST + MANY_STEPS];

void many_open_world(const quern_world_def *def);
void many_close_world(void);

/* `allocator` may be NULL for the default allocator. */
void many_open_history(const quern_allocator *allocator);

/* Lists all entities in many_entities. Returns their number. */
uint32_t many_list_all(void);

/* Makes step_count random changes. Equal seeds and equal worlds give equal changes. */
void many_change(uint64_t seed, uint32_t step_count);

/* Returns the hash of the world. Checks that the world is valid and that its hooks were called in pairs. */
uint64_t many_hash(void);

#endif
