/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_PROGRAM_H
#define QUERN_TESTS_PROGRAM_H

/* Random programs of valid and invalid calls on a world. Each call is compared with a model: its result
 * and value, and at intervals the whole world. */

#include "tests/support/failing_allocator.h"
#include "tests/support/model.h"
#include "tests/support/random.h"

typedef struct program {
    model_world model;
    random_source random;
    uint32_t target_count;        /* number of living entities that the program tends towards */
    failing_allocator *allocator; /* NULL: allocations never fail */
    uint64_t out_of_memory_count; /* calls that ran out of memory; each was repeated until it succeeded */
} program;

/* allocator may be NULL. percent is the probability of an allocation to fail. */
void program_init(program *run, uint64_t seed, failing_allocator *allocator, uint32_t percent);

/* Checks the whole world once more and destroys it. */
void program_release(program *run);

/* Makes one random call. */
void program_step(program *run);

/* program_grow makes a call that creates; program_change makes one that neither creates nor destroys. */
void program_grow(program *run);
void program_change(program *run);

/* Compares the whole world with the model, and a few random queries. */
void program_check(program *run);

#endif
