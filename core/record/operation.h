/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_OPERATION_H
#define QUERN_CORE_RECORD_OPERATION_H

/* An operation is what a command does, without the entity and the values: its kind, its components, and the
 * offsets of their values in a recorded item. A recorder creates each operation once and reuses it, so that
 * commands do not check lists of components or compute layouts again. */

#include "core/base/map.h"
#include "core/record/kinds.h"
#include "core/storage/component_internal.h"

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

/* An item has the layout | quern__item | values, each aligned for its type | one byte per operand |. The bytes
 * exist only if has_destroy is true. A byte is nonzero while the item owns its value: moving the value out
 * clears the byte. */
typedef struct quern__operation {
    /* hash: equal for equal operations of all recorders, rarely equal for others; 0 if it spawns or
     * accumulates */
    uint64_t key;
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

/* Operations without operands, shared by all recorders. Defined in record.c. */
extern const quern__operation quern__operation_destroy;
extern const quern__operation quern__operation_name;
extern const quern__operation quern__operation_enable_tree;
extern const quern__operation quern__operation_disable_tree;

typedef struct quern__operations {
    /* Indexed by component index * QUERN__SINGLE_KIND_COUNT + kind; NULL until first used. */
    QUERN__ARRAY(quern__operation *) singles;
    quern__map creates;            /* key -> first operation with the key */
    quern__operation *last_create; /* result of the latest search */
    /* Operations may also use components managed by the world. Set for follow-up commands, which a sync point
     * adds to those of callbacks, and for the creates of prefab members. */
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
quern_result quern__operations_find_create(quern__operations *operations,
                                           const quern__components *components,
                                           const quern_allocator *allocator, const quern_component *list,
                                           const void *const *values, uint32_t count,
                                           const quern__operation **out_operation);

/* Creates an operation that spawns, with one operand per listed component. The types must have no hooks. Each
 * item counts as command_count commands. Release with quern__operation_release. Returns NULL if out of memory. */
quern__operation *quern__operation_create_spawn(const quern__components *components,
                                                const quern_allocator *allocator,
                                                const uint16_t *component_indices, uint32_t count,
                                                uint32_t command_count);

/* Creates an operation that accumulates values of a component with values. The head of its items is the handle
 * alone (quern__accumulated). Release with quern__operation_release. Returns NULL if out of memory. */
quern__operation *quern__operation_create_accumulation(const quern__components *components,
                                                       const quern_allocator *allocator,
                                                       uint32_t component_index);

/* Frees an operation. operation may be NULL. */
void quern__operation_release(quern__operation *operation, const quern_allocator *allocator);

/* Whether the operation creates entities with the listed components, with values exactly where values[i] is not
 * NULL. */
static inline bool quern__operation_has_list(const quern__operation *operation, const quern_component *list,
                                             const void *const *values, uint32_t count)
{
    if (operation->operand_count != count) return false;
    const quern__operand *operand = operation->operands;
    for (uint32_t i = 0; i < count; i++, operand++) {
        const bool is_given = values != NULL && values[i] != NULL;
        if (operand->component.bits != list[i].bits) return false;
        if ((operand->offset_bytes != 0) != is_given && operand->size_bytes > 0) return false;
    }
    return true;
}

/* Whether both operations have the same effect and the same item layout. */
bool quern__operation_equal(const quern__operation *a, const quern__operation *b);

#endif
