/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_MANY_H
#define QUERN_TESTS_MANY_H

/* A world with something of everything that a history keeps, changed at random by immediate calls. */

#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <quern/enabled.h>
#include <quern/history.h>
#include <quern/name.h>
#include <quern/relation.h>

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
    quern_query *all; /* who has an amount, disabled or not */
    tracked_counts counts;
    random_source random;
} many;

extern many many_it;
extern quern_entity many_entities[MANY_MOST + MANY_STEPS];

void many_open_world(const quern_world_def *def);
void many_close_world(void);

/* NULL: the default allocator. */
void many_open_history(const quern_allocator *allocator);

/* Lists them in many_entities; returns how many. */
uint32_t many_list_all(void);

/* The same program for the same seed and world. */
void many_change(uint64_t seed, uint32_t step_count);

/* Of a world that is valid, and whose hooks were called as they must be. */
uint64_t many_hash(void);

#endif
