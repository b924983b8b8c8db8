/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_PROGRAM_H
#define QUERN_TESTS_PROGRAM_H

/* Random programs of world calls, right and wrong ones, each of which is compared with what the model says:
 * result code, value, and, at intervals, everything. */

#include "tests/support/failing_allocator.h"
#include "tests/support/model.h"
#include "tests/support/random.h"

typedef struct program {
    model_world model;
    random_source random;
    uint32_t target_count;        /* entities alive that the program steers towards */
    failing_allocator *allocator; /* NULL: memory never runs out */
    uint64_t out_of_memory_count; /* calls that failed for it, each tried again until it passed */
} program;

/* allocator may be NULL; percent is how often it refuses memory. */
void program_init(program *run, uint64_t seed, failing_allocator *allocator, uint32_t percent);

/* Checks everything once more. */
void program_release(program *run);

/* One random call. */
void program_step(program *run);

/* One that creates; and one that neither creates nor destroys. */
void program_grow(program *run);
void program_change(program *run);

/* Everything the model knows, and a few random queries. */
void program_check(program *run);

#endif
