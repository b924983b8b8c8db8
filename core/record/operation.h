/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_OPERATION_H
#define QUERN_CORE_RECORD_OPERATION_H

/* The kinds of commands. Only the tables QUERN__SINGLE_KINDS and QUERN__COMMAND_KINDS list them: recording, the
 * stages of a sync point and the history read them. docs/internals.md lists the steps to add a
 * kind. */

#include "core/base/containers.h"
#include "core/storage/storage.h"
#include "core/storage/type_internal.h"

/* Properties of an operation. A stream and a sync point have the traits that all their commands share, by one AND per
 * batch; each trait lets a sync point skip work. What commands may do is therefore a trait by its absence, which
 * QUERN__MAY asks for: QUERN__MAY(traits, DESTROYS). */
#define QUERN__MAY(traits, what) (((traits)&QUERN__TRAIT_NO_##what) == 0)

typedef enum quern__trait {
    /* sets one component to a value without hooks, or enables or disables it: core/playback/fast_paths.c */
    QUERN__TRAIT_IN_PLACE = 1,
    /* destroys an entity, spawns a prefab, or creates an entity from types without hooks:
     * core/playback/fast_paths.c */
    QUERN__TRAIT_DESTROY_OR_CREATE = 2,
    QUERN__TRAIT_NO_HANDLES = 4, /* no value contains entity handles */
    QUERN__TRAIT_NO_OWNED = 8,   /* no value needs its destroy hook called if the command is dropped */
    /* relates and names nothing: no work for core/playback/relating.c, unless it destroys an entity with links or a name */
    QUERN__TRAIT_NO_RELATES = 16,
    QUERN__TRAIT_NO_DESTROYS = 32,
    QUERN__TRAIT_NO_SPAWNS = 64,
    QUERN__TRAIT_NO_SWITCHES = 128, /* does not disable or enable a tree */
    /* traits that most kinds have */
    QUERN__TRAITS_RELATING = QUERN__TRAIT_NO_DESTROYS | QUERN__TRAIT_NO_SPAWNS | QUERN__TRAIT_NO_SWITCHES,
    QUERN__TRAITS_USUAL = QUERN__TRAITS_RELATING | QUERN__TRAIT_NO_RELATES
} quern__trait;

/* What merging makes of a command, together with the other commands of the sync point. */
typedef enum quern__merge_kind {
    QUERN__MERGE_ROW,    /* part of the one edit that holds all commands on the entity */
    QUERN__MERGE_CREATE, /* start of the edit of a new entity */
    QUERN__MERGE_SPAWN,  /* no edit: core/playback/spawned.c puts the new entities into the world first */
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
    /* a second operand is the value of the edge to the target, which is the value of the first one */
    bool gives_edge_value;
    bool replaces_itself; /* a repetition with another value makes the earlier command ineffective */
    /* what pending commands of the kind do, if a history cannot save them; NULL: it can */
    const char *unsavable_action;
} quern__command_kind;

/* The columns of a row:
 *
 *   name    last part of the enumerator's name, behind QUERN__OPERATION_
 *   traits  member of quern__command_kind
 *   read    function that reads the effect of the command on one component of its operation (playback/stages.h);
 *           NULL: the kind has no components, or merging adds it to no edit
 *   set     function that applies the commands of a batch to existing rows (playback/stages.h); NULL: the kind
 *           never has the trait IN_PLACE
 *   play    function that applies the commands of a batch to links and names, in order, before merging
 *           (playback/stages.h); NULL: nothing is applied before merging
 *
 * The remaining arguments are further members of quern__command_kind. The functions are defined in
 * core/playback, and only playback/playback.c expands them.
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
    KIND(RELATE_WITH, QUERN__TRAITS_RELATING, NULL, NULL, quern__play_edge_values,                         \
         .merge_kind = QUERN__MERGE_NONE, .gives_value = true, .gives_edge_value = true,                   \
         .relation_kind = QUERN__OPERATION_RELATE_WITH, .allows_many = true)                               \
    KIND(SET_EDGE_VALUE, QUERN__TRAITS_RELATING, NULL, NULL, quern__play_edge_values,                      \
         .merge_kind = QUERN__MERGE_NONE, .gives_value = true, .gives_edge_value = true,                   \
         .relation_kind = QUERN__OPERATION_SET_EDGE_VALUE, .allows_many = true)                            \
    KIND(ENABLE, QUERN__TRAITS_USUAL | QUERN__TRAIT_IN_PLACE, quern__read_clear_bit, quern__clear_bits,    \
         NULL, .merge_kind = QUERN__MERGE_ROW, .needed_flag = QUERN__FLAG_CAN_DISABLE,                     \
         .replaces_itself = true)                                                                          \
    KIND(DISABLE, QUERN__TRAITS_USUAL | QUERN__TRAIT_IN_PLACE, quern__read_set_bit, quern__set_bits, NULL, \
         .merge_kind = QUERN__MERGE_ROW, .needed_flag = QUERN__FLAG_CAN_DISABLE, .replaces_itself = true)

/* CREATE has any number of operands, each with or without a value. It lacks NO_RELATES if an operand is the
 * component of a relation. RELATE and UNRELATE have the relation's component as operand; its value is the
 * target. So have ADD_EDGE, for relations with several targets per source, and UNRELATE_FROM, and RELATE_WITH and
 * SET_EDGE_VALUE, which have a second operand, the value of the edge or the element of a list of such. NAME has no
 * operand: the name follows the head of the item, and "" removes the name. ENABLE_TREE and DISABLE_TREE have no
 * operand and no value. The operands of SPAWN are the overrides of the prefab, then the parent of the root; it lacks
 * NO_RELATES if entities outside of the instance are among its targets. CLONE has no operand: quern__clone_item has what
 * it needs, and the sync point removes NO_RELATES from the streams of clones that have links (core/playback/cloned.c). */
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
         NULL, quern__play_spawns, .merge_kind = QUERN__MERGE_SPAWN, .unsavable_action = "spawn a prefab") \
    KIND(CLONE, (QUERN__TRAITS_USUAL & ~QUERN__TRAIT_NO_SPAWNS) | QUERN__TRAIT_DESTROY_OR_CREATE, NULL,    \
         NULL, quern__play_clones, .merge_kind = QUERN__MERGE_SPAWN)

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

/* An operation is what a command does, without the entity and the values: its kind, its components, and the
 * offsets of their values in a recorded item. A recorder creates each operation once and reuses it, so that
 * commands do not check lists of components or compute layouts again. */

typedef struct quern__operand {
    const quern__type *type; /* of the value; for the tag of a relation, that of an entity handle */
    quern_component component;
    uint16_t component_index;
    uint16_t size_bytes;
    uint16_t offset_bytes; /* offset of the value in an item; 0: the operand has no value */
    bool is_plain;         /* the type has no hooks */
    bool is_relation;      /* the component belongs to a relation, and the value is a target */
    uint8_t row_flags;     /* row flags of the component: bits of QUERN__ROW_FLAGS */
    uint8_t row_flag; /* index of the row flag that the command changes; 0 for kinds without needed_flag */
} quern__operand;

/* The head of an item. The alignment makes its size a multiple of 8 on every platform, as that of every item is. */
typedef struct quern__item {
    _Alignas(8) quern_entity entity;
    /* location of the entity when the command was recorded; 0 if the handle is provisional */
    uintptr_t location;
} quern__item;

/* An item of quern__operation_clone. */
typedef struct quern__clone_item {
    quern__item head;    /* the handle of the copy of the root, which is provisional */
    quern_entity entity; /* the one to copy */
    quern_entity parent; /* of the copy; may be null or provisional */
    uint32_t has_parent; /* `parent` counts, otherwise the copy gets the parent of the entity */
    uint32_t index;      /* in quern__resolved.clones, while a sync point runs */
} quern__clone_item;

/* An item has the layout | quern__item | values, each aligned for its type | one byte per operand |. The bytes
 * exist only if has_destroy is true. A byte is nonzero while the item owns its value: moving the value out
 * clears the byte. */
typedef struct quern__operation {
    /* hash: equal for equal operations of all recorders, rarely equal for others; 0 if it spawns or
     * accumulates */
    uint64_t key;
    uint64_t
        join_key; /* of an operation on one component whose value is copied: quern__join_key; otherwise 0 */
    uint32_t item_bytes;
    uint32_t alignment_bytes; /* alignment of an item: at least 8, and a divisor of item_bytes */
    /* number of commands an item counts as: 1 + n for a create with n components */
    uint32_t command_count;
    uint16_t operand_count;
    uint16_t owned_offset_bytes;
    uint8_t kind;           /* quern__operation_kind */
    bool has_destroy;       /* the type of some value has a destroy hook */
    bool has_entity_fields; /* the type of some value contains entity handles */
    /* values are copied byte by byte: no type has hooks, and no value contains handles */
    bool is_copied;
    uint8_t traits;                         /* quern__trait */
    struct quern__operation *next_same_key; /* next operation in the recorder's list for this key */
    union { /* owner of an operation that spawns or accumulates; otherwise NULL */
        /* owner of an operation that spawns */
        const struct quern__spawn_variant *variant;
        /* owner of an operation that accumulates values */
        const struct quern__accumulation *accumulation;
    };
    quern__operand operands[];
} quern__operation;

/* Returns a number that tells operations on one component apart, and is not 0. */
static inline uint64_t quern__join_key(quern__operation_kind kind, quern_component component)
{
    return (uint64_t)component.bits << 8 | ((uint64_t)kind + 1);
}

/* Operations without operands, shared by all recorders. Defined in record.c. */
extern const quern__operation quern__operation_destroy;
extern const quern__operation quern__operation_name;
extern const quern__operation quern__operation_enable_tree;
extern const quern__operation quern__operation_disable_tree;
extern const quern__operation quern__operation_clone;

typedef struct quern__operations {
    /* Indexed by component index * QUERN__SINGLE_KIND_COUNT + kind; NULL until first used. */
    QUERN__ARRAY(quern__operation *) singles;
    quern__map creates;            /* key -> first operation with the key */
    quern__operation *last_create; /* result of the latest search */
    /* Operations may also use components managed by the world. Set for follow-up commands, which a sync point
     * adds to those of callbacks. */
    bool allows_managed;
} quern__operations;

void quern__operations_release(quern__operations *operations, const quern_allocator *allocator);

/* Finds or creates the operation of a single kind on a valid component. If the component belongs to a relation,
 * the operation has the kind's relation_kind. Errors: OUT_OF_MEMORY; INVALID_ARGUMENT if the component does not
 * allow the kind. */
quern_result quern__operations_find_single(quern__operations *operations,
                                           const quern__components *components,
                                           const quern_allocator *allocator, uint32_t component_index,
                                           quern__operation_kind kind,
                                           const quern__operation **out_operation);

/* Finds or creates the operation that creates entities with the listed components. A component gets a value if
 * values[i] is not NULL; values may be NULL. Errors: UNKNOWN_COMPONENT, DUPLICATE_COMPONENT,
 * TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, INVALID_ARGUMENT, OUT_OF_MEMORY. */
quern_result quern__operations_find_create(quern__operations *operations, const quern__storage *storage,
                                           const quern_component *list, const void *const *values,
                                           uint32_t count, const quern__operation **out_operation);

/* Creates an operation that spawns, with one operand per listed component. The types must have no hooks. Each
 * item counts as command_count commands. relates: instances have targets outside of them. Release with
 * quern__operation_release. Returns NULL if out of memory. */
quern__operation *quern__operation_create_spawn(const quern__components *components,
                                                const quern_allocator *allocator,
                                                const uint16_t *component_indices, uint32_t count,
                                                uint32_t command_count, bool relates);

/* Creates an operation that accumulates values of a component with values. The head of its items is the handle
 * alone (quern__accumulated). Release with quern__operation_release. Returns NULL if out of memory. */
quern__operation *quern__operation_create_accumulation(const quern__components *components,
                                                       const quern_allocator *allocator,
                                                       uint32_t component_index);

/* Whether the operation gives values of the component. */
bool quern__operation_has_value(const quern__operation *operation, uint32_t component_index);

/* Gives the operation the layout that the types of its components have by now, if one of them has the index.
 * Preconditions: no batch has it, and it does not accumulate. */
void quern__operation_change_layout(quern__operation *operation, const quern__components *components,
                                    uint32_t component_index);

/* Frees an operation. operation may be NULL. */
void quern__operation_release(quern__operation *operation, const quern_allocator *allocator);

/* Whether both operations have the same effect and the same item layout. */
bool quern__operation_equal(const quern__operation *a, const quern__operation *b);

#endif
