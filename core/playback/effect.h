/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_EFFECT_H
#define QUERN_CORE_PLAYBACK_EFFECT_H

/* The effect of a sequence of commands on each component of an entity. The sequence is read backwards, so the
 * first command read that decides about a component is the last one recorded. The function `read` of each kind
 * in QUERN__COMMAND_KINDS reads one operand.
 *
 * Required components are decided at the end, by the components that are present then. A remove of a component that one of
 * these requires has no effect, whether or not a later command adds the component again: if there is such a remove, the
 * sequence is read once more without these removes. What is then still missing is added and constructed. */

#include "core/base/bitset.h"
#include "core/playback/sequence.h"
#include "core/storage/storage.h"

typedef struct quern__effect {
    /* components with a command that decides whether they are present */
    uint64_t decided[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    /* of the decided components: present at the end */
    uint64_t present[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    /* of the present components: with a new value */
    uint64_t fresh[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    /* Present because of an add without a value. An earlier operation, read later, decides about the value. */
    uint64_t pending[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    /* Indexed by row flag, such as CAN_DISABLE. The last command that changes a component's bit counts only if
     * the component is present at that point. So a change is first recorded in `toggled`. An earlier command
     * that adds or sets the component makes it final (`final`); an earlier remove replaces it by a final
     * clear. */
    uint64_t toggled[QUERN__ROW_FLAG_COUNT][QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    /* of the toggled bits: set at the end, otherwise clear */
    uint64_t sets[QUERN__ROW_FLAG_COUNT][QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    uint64_t final[QUERN__ROW_FLAG_COUNT][QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    bool has_toggles;
    /* of all components, NULL if none requires another */
    const quern__components *components;
    /* components that some command removes; valid if `components` is set */
    uint64_t removed[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    /* components of which removes have no effect, because others require them */
    uint64_t kept[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)];
    uint32_t present_count;
    bool removes;           /* some component of the source is removed */
    bool equals_source_set; /* the target has exactly the components of the source */
    /* sources of the values of fresh components; list_fills (resolve.c) sets the remaining members */
    quern__fill fills[QUERN_MAX_COMPONENTS];
} quern__effect;

/* Reads the i-th operand of an operation. hop: distance from the last operation of the sequence. */
typedef void quern__read_function(quern__effect *effect, const quern__operation *operation, uint32_t i,
                                  uint32_t hop);

/* Reads a whole sequence. Components without a deciding command remain as in the source. */
void quern__effect_read(quern__effect *effect, const quern__storage *storage,
                        const quern__sequences *sequences, const quern__sequence *sequence);

/* For read functions. quern__effect_give: the component is present at the end, with the operand's value, or
 * constructed if the operand has none. quern__effect_remove: the component is absent at the end. No later
 * command may have decided about the component. */
void quern__effect_give(quern__effect *effect, const quern__operation *operation, uint32_t i, uint32_t hop);
void quern__effect_remove(quern__effect *effect, uint32_t component_index);

quern__read_function quern__read_add, quern__read_value, quern__read_remove;

/* Change the bit of the row flag that the kind needs (needed_flag). */
quern__read_function quern__read_clear_bit, quern__read_set_bit;

#endif
