/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_EFFECT_H
#define QUERN_CORE_PLAYBACK_EFFECT_H

/* What a sequence of commands comes to for each component of its entity. The sequence is read backwards, so that the
 * last command that decides about a component is the first one to be read: each kind has a function for that, the
 * column `read` of QUERN__COMMAND_KINDS. */

#include "core/base/bitset.h"
#include "core/playback/sequence.h"
#include "core/storage/storage.h"

typedef struct quern__effect {
    uint64_t decided[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    uint64_t present[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)]; /* of those decided */
    uint64_t fresh[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];   /* present, with a new value */
    /* present because of an add without a value, which leaves the value that an earlier operation decides
     * on */
    uint64_t pending[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    /* By row flag, such as CAN_DISABLE. The last command that changes the bit of a component counts if the component
     * was there then: so it is noted, and settled by what the command before it does to the component. */
    uint64_t toggled[QUERN__ROW_FLAG_COUNT][QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    uint64_t sets[QUERN__ROW_FLAG_COUNT][QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)]; /* of those toggled */
    uint64_t settled[QUERN__ROW_FLAG_COUNT][QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    bool has_toggles;
    uint32_t present_count;
    bool removes;                            /* a component that the source has */
    bool keeps_set;                          /* what comes out has the components of the source */
    quern__fill fills[QUERN_MAX_COMPONENTS]; /* of components with a fresh value, half filled in */
} quern__effect;

/* Reads the i-th operand of an operation, `hop` operations before the last one of the sequence. */
typedef void quern__read_function(quern__effect *effect, const quern__operation *operation, uint32_t i,
                                  uint32_t hop);

/* Reads a whole sequence. Components that no command decides about are as in the source. */
void quern__effect_read(quern__effect *effect, const quern__storage *storage,
                        const quern__sequences *sequences, const quern__sequence *sequence);

/* For read functions: the component is there at the end, with the value of the operand, or constructed if the operand
 * has none; or it is not there. Nothing later may have decided about it. */
void quern__effect_give(quern__effect *effect, const quern__operation *operation, uint32_t i, uint32_t hop);
void quern__effect_remove(quern__effect *effect, uint32_t component_index);

quern__read_function quern__read_add, quern__read_value, quern__read_remove;

/* The bit of the row flag that the kind needs (needed_flag). */
quern__read_function quern__read_clear_bit, quern__read_set_bit;

#endif
