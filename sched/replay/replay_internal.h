/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_REPLAY_REPLAY_INTERNAL_H
#define QUERN_SCHED_REPLAY_REPLAY_INTERNAL_H

/* The byte format of a recording. All numbers are little-endian and unaligned.
 *
 *   recording:  | "QUERNRPL" | version | 0 | block | block | ...
 *   block:      | kind | bytes | checksum | payload |       the checksum covers the rest and the block's number
 *
 *   BEGIN   number of inputs, then the resource index of each
 *   START   the state before the first frame
 *   FRAME   frame number, time step, inputs: written before the frame runs
 *   STATE   the state after the frame
 *   END     number of frames
 *
 * The order is BEGIN START (FRAME STATE)* END. A FRAME that is followed by END, or by a FRAME with the same number,
 * did not run.
 *
 *   state:      | frame | result | flags | hash | types | parts, unless the detail is WHOLE |
 *   types:      | count | the types registered since the last state ...
 *   type:       | kind | size | alignment | flags | field count | name | fields ... |
 *   field:      | type | offset | count | name |
 *   name:       | bytes | text |
 *   parts:      | slots | names | relation count | component, hash | ...
 *               | resource count | index, hash | ... | archetype count | archetype | ...
 *   archetype:  | component count | flags | rows | hash of handles | components | hashes of values
 *               | hashes of disabled rows, if any are disabled | entities, if the detail includes them |
 *   entities:   | handle of each row | for each component that is not a tag: a hash of each row's value |
 *
 * The bytes of a state depend on the world alone, so two states are compared byte by byte. A handle is written as
 * index and use count (quern__entity_to_relative). */

#include "core/base/bytes.h"
#include "core/world/world_internal.h"

#include <quern/replay.h>

#define QUERN__REPLAY_MAGIC     "QUERNRPL"
#define QUERN__REPLAY_IS_NATIVE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

enum { QUERN__REPLAY_VERSION = 1 };

/* Flag of a component in an archetype: it is a tag and has no values. */
#define QUERN__REPLAY_TAG_BIT 0x40000000u

typedef enum quern__replay_kind {
    QUERN__REPLAY_BEGIN = 1,
    QUERN__REPLAY_START,
    QUERN__REPLAY_FRAME,
    QUERN__REPLAY_STATE,
    QUERN__REPLAY_END
} quern__replay_kind;

typedef enum quern__state_flag {
    QUERN__STATE_HAS_PARTS = 1,
    QUERN__STATE_HAS_ENTITIES = 2 /* only together with HAS_PARTS */
} quern__state_flag;

typedef enum quern__replay_type_kind {
    QUERN__REPLAY_COMPONENT = 1,
    QUERN__REPLAY_RESOURCE
} quern__replay_type_kind;

/* Bits in the `flags` of a recorded type. Its other bits are flags of the component, the replay_bit of each entry of
 * QUERN__COLUMN_FLAGS. */
typedef enum quern__replay_type_flag {
    QUERN__REPLAY_IS_RELATION = 2, /* the component of a relation, or the tag of one of its levels */
    /* the bits from this one on: quern__component_required_hash; 0 if the component requires no others */
    QUERN__REPLAY_REQUIRED_SHIFT = 8
} quern__replay_type_flag;

enum {
    QUERN__REPLAY_HEAD_BYTES = 16,
    QUERN__REPLAY_BLOCK_BYTES = 16,
    QUERN__REPLAY_SOME_DISABLED = 1 /* archetype flag: hashes of disabled rows are present */
};

static const quern__schema_form quern__replay_schema = {.name_length_bytes = 4,
                                                        .has_field_names_last = true};

/* Blocks of a recording, written to a sink and read from a source. */

/* Fails with BAD_ARCHIVE: a block has a valid checksum, but contents that no recorder writes. */
quern_result quern__replay_fail_invalid(uint64_t number, const char *what);

static inline quern__byte_reader quern__replay_payload(const quern__byte_writer *payload)
{
    return quern__byte_reader_open(payload->bytes, payload->count);
}

/* Input resources of a recording and the format of their values in a FRAME block: the described fields one after
 * another, with handles as index and use count, or the plain bytes of a type without described fields. */

typedef struct quern__inputs {
    quern_world *world;
    uint32_t count;
    uint32_t indices[QUERN_MAX_REPLAY_INPUTS];
    size_t bytes; /* bytes of all values together */
} quern__inputs;

/* The state of a world as the bytes of a STATE block: writing and reading. */

/* The number of types that the states so far have listed. */
typedef struct quern__type_counts {
    uint32_t component_count, resource_count;
} quern__type_counts;

/* Returns how many component and resource types the world has. */
static inline quern__type_counts quern__types_of_world(const quern_world *world)
{
    return (quern__type_counts){.component_count = world->storage.components.list.count,
                                .resource_count = world->resources.list.count};
}

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

/* Writes the state of the world after a frame. head: its frame, result and flags. Lists the types from `listed` to `end`;
 * relations and resources from `end` on are left out. Lack of memory is recorded in `bytes`. */
void quern__state_write(const quern_world *world, const quern__state *head, quern__type_counts listed,
                        quern__type_counts end, quern__byte_writer *bytes);

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

/* Reads a state and checks its types. Fails with BAD_ARCHIVE, UNKNOWN_COMPONENT, UNKNOWN_RESOURCE or LAYOUT_MISMATCH. */
quern_result quern__state_read(const quern_world *world, const quern__byte_writer *bytes, uint64_t number,
                               quern__type_counts *listed, quern__state *out_state);

/* Finding the first difference between two states. */

/* Fills in the report from `difference` on; its frame and hashes must be set. Precondition: both states have the same
 * flags, and `actual` is the current state of the world. */
void quern__replay_compare(const quern_world *world, const quern__state *expected,
                           const quern__state *actual, quern_replay_report *report);

#endif
