/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_KINDS_H
#define QUERN_CORE_RECORD_KINDS_H

/* The kinds of commands. The tables QUERN__SINGLE_KINDS and QUERN__COMMAND_KINDS are the only place that lists them:
 * recording, the stages of a sync point and the history read the row of a kind. docs/internals.md goes through the steps of a new kind. */

#include "core/storage/column_flags.h"

/* What spares a sync point work where it is true of all that was recorded. */
typedef enum quern__trait {
    QUERN__TRAIT_IN_PLACE = 1,   /* gives one component a value without hooks, or enables it: in_place.h */
    QUERN__TRAIT_TURNOVER = 2,   /* destroys, or creates with types without hooks: turnover.h */
    QUERN__TRAIT_NO_HANDLES = 4, /* no value has handles in it */
    QUERN__TRAIT_NO_OWNED = 8,   /* no value has to be destroyed when nobody wants it */
    QUERN__TRAIT_UNRELATED = 16, /* asks nothing of relate_stage.h itself */
    QUERN__TRAIT_NO_DESTROYS = 32,
    QUERN__TRAIT_NO_SPAWNS = 64,
    /* of most kinds */
    QUERN__TRAITS_USUAL = QUERN__TRAIT_UNRELATED | QUERN__TRAIT_NO_DESTROYS | QUERN__TRAIT_NO_SPAWNS
} quern__trait;

/* How merging folds a command with the others of a sync point. */
typedef enum quern__fold {
    QUERN__FOLD_ROW,    /* into one edit with all commands on its entity */
    QUERN__FOLD_CREATE, /* begins the edit of a new entity */
    QUERN__FOLD_SPAWN,  /* begins no edit: spawned.h puts the new entities into the world */
    QUERN__FOLD_NONE    /* not at all: `play` has done what the command does */
} quern__fold;

typedef struct quern__command_kind {
    uint8_t traits; /* quern__trait, of each operation of the kind; layouts add NO_HANDLES, NO_OWNED */
    uint8_t fold;   /* quern__fold */
    uint8_t plain_traits; /* further traits of an operation whose types have no hooks */
    uint8_t needed_flag; /* row flag that the component must have, whose bit the command changes; 0: none */
    uint8_t relation_kind; /* that the command has on the component of a relation; 0: it is refused there */
    bool gives_value;      /* of a single kind: a value follows the head of an item */
    bool replaces_itself;  /* doing it once more, with another value, makes the first time void */
    const char *not_kept;  /* what waiting commands do that a history cannot keep; NULL: it keeps them */
} quern__command_kind;

/* A row:
 *
 *   name    ends the name of the enumerator, QUERN__OPERATION_...
 *   traits  member of quern__command_kind
 *   read    what the command comes to for one component of its operation (playback/effect.h); NULL: the kind has no
 *           components, or is not folded
 *   set     does the commands of a run where the rows are (playback/in_place.h); NULL: no trait of the kind is
 *           IN_PLACE
 *   play    does the commands of a run on links and names, in order and before merging (playback/play.h); NULL:
 *           they have nothing to do there
 *
 * and further members of quern__command_kind. The functions belong to the playback, which alone expands them
 * (playback/kind_calls.c).
 *
 * The kinds on one component come first, since the operations on a component are numbered by them. */
#define QUERN__SINGLE_KINDS(KIND)                                                                          \
    KIND(ADD, QUERN__TRAITS_USUAL, quern__read_add, NULL, NULL, .fold = QUERN__FOLD_ROW)                   \
    KIND(SET, QUERN__TRAITS_USUAL, quern__read_value, quern__set_values, NULL, .fold = QUERN__FOLD_ROW,    \
         .plain_traits = QUERN__TRAIT_IN_PLACE, .gives_value = true, .replaces_itself = true,              \
         .relation_kind = QUERN__OPERATION_RELATE)                                                         \
    KIND(REMOVE, QUERN__TRAITS_USUAL, quern__read_remove, NULL, NULL, .fold = QUERN__FOLD_ROW,             \
         .relation_kind = QUERN__OPERATION_UNRELATE)                                                       \
    KIND(ENABLE, QUERN__TRAITS_USUAL | QUERN__TRAIT_IN_PLACE, quern__read_clear_bit, quern__clear_bits,    \
         NULL, .fold = QUERN__FOLD_ROW, .needed_flag = QUERN__FLAG_CAN_DISABLE, .replaces_itself = true)   \
    KIND(DISABLE, QUERN__TRAITS_USUAL | QUERN__TRAIT_IN_PLACE, quern__read_set_bit, quern__set_bits, NULL, \
         .fold = QUERN__FOLD_ROW, .needed_flag = QUERN__FLAG_CAN_DISABLE, .replaces_itself = true)

/* CREATE has any number of operands, with values or without; it is not UNRELATED if one is a relation's component.
 * The operand of RELATE and UNRELATE is the relation's component, and the target is its value. NAME has no operand:
 * the name follows the head of the item, "" to remove it. The operands of SPAWN are overrides of the prefab. */
#define QUERN__COMMAND_KINDS(KIND)                                                                       \
    QUERN__SINGLE_KINDS(KIND)                                                                            \
    KIND(DESTROY, QUERN__TRAIT_TURNOVER | QUERN__TRAIT_UNRELATED | QUERN__TRAIT_NO_SPAWNS, NULL, NULL,   \
         quern__play_destroys, .fold = QUERN__FOLD_ROW)                                                  \
    KIND(CREATE, QUERN__TRAITS_USUAL, quern__read_value, NULL, quern__play_creates,                      \
         .fold = QUERN__FOLD_CREATE, .plain_traits = QUERN__TRAIT_TURNOVER)                              \
    KIND(RELATE, QUERN__TRAIT_NO_DESTROYS | QUERN__TRAIT_NO_SPAWNS, NULL, NULL, quern__play_relates,     \
         .fold = QUERN__FOLD_NONE)                                                                       \
    KIND(UNRELATE, QUERN__TRAIT_NO_DESTROYS | QUERN__TRAIT_NO_SPAWNS, NULL, NULL, quern__play_unrelates, \
         .fold = QUERN__FOLD_NONE)                                                                       \
    KIND(NAME, QUERN__TRAIT_NO_DESTROYS | QUERN__TRAIT_NO_SPAWNS, NULL, NULL, quern__play_names,         \
         .fold = QUERN__FOLD_NONE)                                                                       \
    KIND(SPAWN, QUERN__TRAIT_TURNOVER | QUERN__TRAIT_UNRELATED | QUERN__TRAIT_NO_DESTROYS, NULL, NULL,   \
         NULL, .fold = QUERN__FOLD_SPAWN, .not_kept = "spawn a prefab")

#define QUERN__KIND_NUMBER(name, ...) QUERN__OPERATION_##name,
typedef enum quern__operation_kind {
    QUERN__COMMAND_KINDS(QUERN__KIND_NUMBER) QUERN__OPERATION_COUNT
} quern__operation_kind;

#define QUERN__SINGLE_NUMBER(name, ...) QUERN__SINGLE_##name,
enum { QUERN__SINGLE_KINDS(QUERN__SINGLE_NUMBER) QUERN__SINGLE_KIND_COUNT };

/* The traits as constants: those of operations that are constants themselves. */
#define QUERN__KIND_TRAITS(name, kind_traits, ...) QUERN__TRAITS_OF_##name = (kind_traits),
enum { QUERN__COMMAND_KINDS(QUERN__KIND_TRAITS) QUERN__TRAITS_OF_NONE = 0 };

/* By quern__operation_kind. */
extern const quern__command_kind quern__command_kinds[QUERN__OPERATION_COUNT];

#endif
