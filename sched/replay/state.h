/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_REPLAY_STATE_H
#define QUERN_SCHED_REPLAY_STATE_H

/* The state of a world as the bytes of a STATE block (see replay_format.h): writing and reading. */

#include "core/world/world_internal.h"
#include "sched/replay/replay_block.h"

/* The number of types that the states so far have listed. */
typedef struct quern__type_counts {
    uint32_t component_count, resource_count;
} quern__type_counts;

/* Returns how many component and resource types the world has. */
quern__type_counts quern__types_of_world(const quern_world *world);
void quern__types_write(const quern_world *world, quern__type_counts listed, quern__type_counts end,
                        quern__byte_writer *bytes);

/* Reads types and checks that the world has the same types with the same indices. Adds their number to `listed`. Fails
 * with BAD_ARCHIVE, UNKNOWN_COMPONENT, UNKNOWN_RESOURCE or LAYOUT_MISMATCH. */
quern_result quern__types_check(const quern_world *world, quern__byte_reader *reader, uint64_t number,
                                quern__type_counts *listed);

/* Writes a state. flags: quern__state_flag bits. Lists the types from `listed` to `end`. Lack of memory is recorded in
 * `bytes`. */
void quern__state_write(const quern_world *world, uint64_t frame, quern_result result, uint32_t flags,
                        quern__type_counts listed, quern__type_counts end, quern__byte_writer *bytes);

/* ----------------------------------------------------------------------------------------- reading */

typedef struct quern__state {
    uint64_t frame;
    uint32_t result;
    uint32_t flags;
    uint64_t hash;

    /* Members of states with flag QUERN__STATE_HAS_PARTS; otherwise zero. */
    uint64_t slots_hash, names_hash;
    uint32_t relation_count, resource_count, archetype_count;
    const char *relations, *resources; /* pairs of 64-bit words: index, hash */
    quern__byte_reader archetypes;     /* verified: all archetypes can be read */
} quern__state;

enum { QUERN__PAIR_BYTES = 16 };

/* One archetype of a state. Pointers are into the payload, unaligned. */
typedef struct quern__state_archetype {
    uint32_t component_count;
    uint64_t rows;
    uint64_t handles_hash;
    const char *components; /* 32-bit component indices, with QUERN__REPLAY_TAG_BIT */
    const char *values;     /* 64-bit hash per component */
    const char *disabled;   /* 64-bit hash of disabled rows per component; NULL: no row is disabled */
    const char *handles;    /* 64-bit handle per row; NULL: the state has no entities */
    const char *row_hashes; /* 32-bit hash per component that is not a tag, and per row */
} quern__state_archetype;

/* Reads a state and checks its types. Fails with BAD_ARCHIVE, or like quern__types_check. */
quern_result quern__state_read(const quern_world *world, const quern__byte_writer *bytes, uint64_t number,
                               quern__type_counts *listed, quern__state *out_state);

/* Reads the next archetype of a state. Returns false if it cannot be read; then the reader has failed. */
bool quern__state_next(quern__byte_reader *archetypes, uint32_t flags,
                       quern__state_archetype *out_archetype);

#endif
