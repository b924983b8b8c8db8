/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_KINDS_H
#define QUERN_CORE_RECORD_KINDS_H

/* The kinds of commands. Only the tables QUERN__SINGLE_KINDS and QUERN__COMMAND_KINDS list them: recording, the
 * stages of a sync point and the history read them. docs/internals.md lists the steps to add a
 * kind. */

#include "core/storage/column_flags.h"

/* Properties of an operation. A stream and a sync point have the traits that all their commands share; each
 * trait lets a sync point skip work. */
typedef enum quern__trait {
    /* sets one component to a value without hooks, or enables or disables it: in_place.h */
    QUERN__TRAIT_IN_PLACE = 1,
    /* destroys an entity, spawns a prefab, or creates an entity from types without hooks:
     * destroy_and_create.h */
    QUERN__TRAIT_DESTROY_OR_CREATE = 2,
    QUERN__TRAIT_NO_HANDLES = 4, /* no value contains entity handles */
    QUERN__TRAIT_NO_OWNED = 8,   /* no value needs its destroy hook called if the command is dropped */
    /* needs no work by relate_stage.h, unless it destroys an entity with links or a name */
    QUERN__TRAIT_UNRELATED = 16,
    QUERN__TRAIT_NO_DESTROYS = 32,
    QUERN__TRAIT_NO_SPAWNS = 64,
    QUERN__TRAIT_NO_SWITCHES = 128, /* does not disable or enable a tree */
    /* traits that most kinds have */
    QUERN__TRAITS_RELATING = QUERN__TRAIT_NO_DESTROYS | QUERN__TRAIT_NO_SPAWNS | QUERN__TRAIT_NO_SWITCHES,
    QUERN__TRAITS_USUAL = QUERN__TRAITS_RELATING | QUERN__TRAIT_UNRELATED
} quern__trait;

/* What merging makes of a command, together with the other commands of the sync point. */
typedef enum quern__merge_kind {
    QUERN__MERGE_ROW,    /* part of the one edit that holds all commands on the entity */
    QUERN__MERGE_CREATE, /* start of the edit of a new entity */
    QUERN__MERGE_SPAWN,  /* no edit: spawned.h adds the new entities to the world */
    QUERN__MERGE_NONE    /* nothing: the function `play` of the kind has done all the command does */
} quern__merge_kind;

typedef struct quern__command_kind {
    /* quern__trait of every operation of the kind; the layout of an operation adds NO_HANDLES and NO_OWNED */
    uint8_t traits;
    uint8_t merge_kind;   /* quern__merge_kind */
    uint8_t plain_traits; /* further traits of an operation on types without hooks */
    /* row flag that the component must have; the command changes its bit. 0: none */
    uint8_t needed_flag;
    /* kind of the command if its component belongs to a relation; 0: the command fails there */
    uint8_t relation_kind;
    bool gives_value; /* kinds with one component: a value follows the head of each item */
    /* the component may be the tag of a relation with several targets per source */
    bool allows_many;
    bool replaces_itself; /* a repetition with another value makes the earlier command ineffective */
    /* what pending commands of the kind do, if a history cannot save them; NULL: it can */
    const char *unsavable_action;
} quern__command_kind;

/* The columns of a row:
 *
 *   name    last part of the enumerator's name: QUERN__OPERATION_name
 *   traits  member of quern__command_kind
 *   read    function that reads the effect of the command on one component of its operation (playback/effect.h);
 *           NULL: the kind has no components, or merging adds it to no edit
 *   set     function that applies the commands of a batch to existing rows (playback/in_place.h); NULL: the kind
 *           never has the trait IN_PLACE
 *   play    function that applies the commands of a batch to links and names, in order, before merging
 *           (playback/play.h); NULL: nothing is applied before merging
 *
 * The remaining arguments are further members of quern__command_kind. The functions are defined in
 * core/playback, and only playback/kind_calls.c expands them.
 *
 * The kinds with exactly one component come first, since QUERN__SINGLE_KINDS numbers the operations of a
 * component. */
#define QUERN__SINGLE_KINDS(KIND)                                                                          \
    KIND(ADD, QUERN__TRAITS_USUAL, quern__read_add, NULL, NULL, .merge_kind = QUERN__MERGE_ROW)            \
    KIND(SET, QUERN__TRAITS_USUAL, quern__read_value, quern__set_values, NULL,                             \
         .merge_kind = QUERN__MERGE_ROW, .plain_traits = QUERN__TRAIT_IN_PLACE, .gives_value = true,       \
         .replaces_itself = true, .relation_kind = QUERN__OPERATION_RELATE)                                \
    KIND(REMOVE, QUERN__TRAITS_USUAL, quern__read_remove, NULL, NULL, .merge_kind = QUERN__MERGE_ROW,      \
         .relation_kind = QUERN__OPERATION_UNRELATE, .allows_many = true)                                  \
    KIND(ADD_EDGE, QUERN__TRAITS_RELATING, NULL, NULL, quern__play_adds_edges,                             \
         .merge_kind = QUERN__MERGE_NONE, .gives_value = true, .relation_kind = QUERN__OPERATION_ADD_EDGE, \
         .allows_many = true)                                                                              \
    KIND(UNRELATE_FROM, QUERN__TRAITS_RELATING, NULL, NULL, quern__play_unrelates_from,                    \
         .merge_kind = QUERN__MERGE_NONE, .gives_value = true,                                             \
         .relation_kind = QUERN__OPERATION_UNRELATE_FROM, .allows_many = true)                             \
    KIND(ENABLE, QUERN__TRAITS_USUAL | QUERN__TRAIT_IN_PLACE, quern__read_clear_bit, quern__clear_bits,    \
         NULL, .merge_kind = QUERN__MERGE_ROW, .needed_flag = QUERN__FLAG_CAN_DISABLE,                     \
         .replaces_itself = true)                                                                          \
    KIND(DISABLE, QUERN__TRAITS_USUAL | QUERN__TRAIT_IN_PLACE, quern__read_set_bit, quern__set_bits, NULL, \
         .merge_kind = QUERN__MERGE_ROW, .needed_flag = QUERN__FLAG_CAN_DISABLE, .replaces_itself = true)

/* CREATE has any number of operands, each with or without a value. It lacks UNRELATED if an operand is the
 * component of a relation. RELATE and UNRELATE have the relation's component as operand; its value is the
 * target. So have ADD_EDGE, for relations with several targets per source, and UNRELATE_FROM. NAME has no
 * operand: the name follows the head of the item, and "" removes the name. ENABLE_TREE and DISABLE_TREE have no
 * operand and no value. The operands of SPAWN are the overrides of the prefab. */
#define QUERN__COMMAND_KINDS(KIND)                                                                         \
    QUERN__SINGLE_KINDS(KIND)                                                                              \
    KIND(DESTROY, (QUERN__TRAITS_USUAL & ~QUERN__TRAIT_NO_DESTROYS) | QUERN__TRAIT_DESTROY_OR_CREATE,      \
         NULL, NULL, quern__play_destroys, .merge_kind = QUERN__MERGE_ROW)                                 \
    KIND(CREATE, QUERN__TRAITS_USUAL, quern__read_value, NULL, quern__play_creates,                        \
         .merge_kind = QUERN__MERGE_CREATE, .plain_traits = QUERN__TRAIT_DESTROY_OR_CREATE)                \
    KIND(RELATE, QUERN__TRAITS_RELATING, NULL, NULL, quern__play_relates, .merge_kind = QUERN__MERGE_NONE) \
    KIND(UNRELATE, QUERN__TRAITS_RELATING, NULL, NULL, quern__play_unrelates,                              \
         .merge_kind = QUERN__MERGE_NONE)                                                                  \
    KIND(NAME, QUERN__TRAITS_RELATING, NULL, NULL, quern__play_names, .merge_kind = QUERN__MERGE_NONE)     \
    KIND(ENABLE_TREE, QUERN__TRAITS_RELATING & ~QUERN__TRAIT_NO_SWITCHES, NULL, NULL,                      \
         quern__play_switches, .merge_kind = QUERN__MERGE_NONE)                                            \
    KIND(DISABLE_TREE, QUERN__TRAITS_RELATING & ~QUERN__TRAIT_NO_SWITCHES, NULL, NULL,                     \
         quern__play_switches, .merge_kind = QUERN__MERGE_NONE)                                            \
    KIND(SPAWN, (QUERN__TRAITS_USUAL & ~QUERN__TRAIT_NO_SPAWNS) | QUERN__TRAIT_DESTROY_OR_CREATE, NULL,    \
         NULL, NULL, .merge_kind = QUERN__MERGE_SPAWN, .unsavable_action = "spawn a prefab")

#define QUERN__KIND_NUMBER(name, ...) QUERN__OPERATION_##name,
typedef enum quern__operation_kind {
    QUERN__COMMAND_KINDS(QUERN__KIND_NUMBER) QUERN__OPERATION_COUNT
} quern__operation_kind;

#define QUERN__SINGLE_NUMBER(name, ...) QUERN__SINGLE_##name,
enum { QUERN__SINGLE_KINDS(QUERN__SINGLE_NUMBER) QUERN__SINGLE_KIND_COUNT };

/* The traits of each kind as constants, for the operations that are defined as constants in record.c. */
#define QUERN__KIND_TRAITS(name, kind_traits, ...) QUERN__TRAITS_OF_##name = (kind_traits),
enum { QUERN__COMMAND_KINDS(QUERN__KIND_TRAITS) QUERN__TRAITS_OF_NONE = 0 };

/* Indexed by quern__operation_kind. */
extern const quern__command_kind quern__command_kinds[QUERN__OPERATION_COUNT];

#endif
