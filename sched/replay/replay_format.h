/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_REPLAY_REPLAY_FORMAT_H
#define QUERN_SCHED_REPLAY_REPLAY_FORMAT_H

/* What a recording is, byte by byte. All numbers are little-endian, and none is aligned.
 *
 *   recording:  | "QUERNRPL" | version | 0 | block | block | ...
 *   block:      | kind | bytes | checksum | payload |       the checksum is of all this and its number
 *
 *   BEGIN   input count, then for each the index of the resource
 *   START   the state before the first frame
 *   FRAME   number, time step, inputs: written before the frame runs
 *   STATE   the state after it
 *   END     how many frames there are
 *
 * BEGIN START (FRAME STATE)* END. A FRAME that another one with the same number follows, or END, did not
 * run.
 *
 *   state:      | frame | result | flags | hash | types | parts, unless it is WHOLE |
 *   types:      | count | those that were registered since the last state ...
 *   type:       | kind | size | alignment | flags | field count | name | fields ... |
 *   field:      | type | offset | count | name |
 *   name:       | bytes | text |
 *   parts:      | slots | names | relation count | component, hash | ...
 *               | resource count | index, hash | ... | archetype count | archetype | ...
 *   archetype:  | component count | flags | rows | hash of handles | components | hashes of values
 *               | hashes of what is disabled, if something is | entities, if there is detail |
 *   entities:   | handle of each row | for each component that is no tag: a hash of each row's value |
 *
 * The bytes of a state follow from the world, so two of them are compared as they are. A handle is index
 * and life (quern__entity_to_relative). */

#include "core/bytes/schema.h"

#define QUERN__REPLAY_MAGIC     "QUERNRPL"
#define QUERN__REPLAY_IS_NATIVE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

enum { QUERN__REPLAY_VERSION = 1 };

/* Of a component in an archetype: it has no values. */
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
    QUERN__STATE_HAS_ENTITIES = 2 /* and parts */
} quern__state_flag;

typedef enum quern__replay_type_kind {
    QUERN__REPLAY_COMPONENT = 1,
    QUERN__REPLAY_RESOURCE
} quern__replay_type_kind;

/* The other bits are flags of the component: replay_bit of QUERN__COLUMN_FLAGS. */
typedef enum quern__replay_type_flag {
    QUERN__REPLAY_IS_RELATION = 2 /* its component, or the tag of a level */
} quern__replay_type_flag;

enum {
    QUERN__REPLAY_HEAD_BYTES = 16,
    QUERN__REPLAY_BLOCK_BYTES = 16,
    QUERN__REPLAY_SOME_DISABLED = 1 /* of an archetype */
};

static const quern__schema_form quern__replay_schema = {.name_length_bytes = 4,
                                                        .has_field_names_last = true};

#endif
