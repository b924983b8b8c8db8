/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_REPLAY_REPLAY_FORMAT_H
#define QUERN_SCHED_REPLAY_REPLAY_FORMAT_H

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

#include "core/bytes/schema.h"

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

#endif
