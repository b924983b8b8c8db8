/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_REPLAY_STATE_H
#define QUERN_SCHED_REPLAY_STATE_H

/* What a world is like, as bytes of a STATE (see replay_format.h): how they are written, and how they are read. */

#include "core/world/world_internal.h"
#include "sched/replay/replay_block.h"

/* How many types states have told of up to now. */
typedef struct quern__told_types {
    uint32_t component_count, resource_count;
} quern__told_types;

/* All types of the world that were not told of, and those up to the given counts. */
quern__told_types quern__told_all(const quern_world *world);
void quern__types_write(const quern_world *world, quern__told_types told, quern__told_types end,
                        quern__byte_writer *bytes);

/* Reads types, and compares them with the world's of the same numbers; told gets how many are known then.
 * Errors: BAD_ARCHIVE, UNKNOWN_COMPONENT, UNKNOWN_RESOURCE, LAYOUT_MISMATCH. */
quern_result quern__types_check(const quern_world *world, quern__byte_reader *reader, uint64_t number,
                                quern__told_types *told);

/* flags: of quern__state_flag. Types from told to end. Whether there was memory, the bytes know. */
void quern__state_write(const quern_world *world, uint64_t frame, quern_result result, uint32_t flags,
                        quern__told_types told, quern__told_types end, quern__byte_writer *bytes);

/* ----------------------------------------------------------------------------------------- reading */

typedef struct quern__state {
    uint64_t frame;
    uint32_t result;
    uint32_t flags;
    uint64_t hash;

    /* parts; zero where there are none */
    uint64_t slots_hash, names_hash;
    uint32_t relation_count, resource_count, archetype_count;
    const char *relations, *resources; /* pairs of words: index, hash */
    quern__byte_reader archetypes;     /* of which all can be read */
} quern__state;

enum { QUERN__PAIR_BYTES = 16 };

/* One archetype of a state. */
typedef struct quern__state_archetype {
    uint32_t component_count;
    uint64_t rows;
    uint64_t handles_hash;
    const char *components; /* numbers of 4 bytes, with QUERN__REPLAY_TAG_BIT */
    const char *values;     /* hashes of 8 bytes, by component */
    const char *disabled;   /* the same; NULL: nothing is */
    const char *handles;    /* of 8 bytes, by row; NULL: without detail */
    const char *row_hashes; /* of 4 bytes, by component that is no tag, then row */
} quern__state_archetype;

/* Reads a state, and its types as quern__types_check. Errors: those, BAD_ARCHIVE. */
quern_result quern__state_read(const quern_world *world, const quern__byte_writer *bytes, uint64_t number,
                               quern__told_types *told, quern__state *out_state);

/* The next archetype of a state. False: it cannot be read, and the reader has failed. */
bool quern__state_next(quern__byte_reader *archetypes, uint32_t flags,
                       quern__state_archetype *out_archetype);

#endif
