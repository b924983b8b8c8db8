/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_OPERATION_H
#define QUERN_CORE_RECORD_OPERATION_H

/* What a command does, apart from the entity and the values: which components it creates, adds or removes,
 * and where in a recorded item their values stand. A recorder makes each operation once and keeps it, so
 * checking lists of components and computing layouts is not done per command. */

#include "core/base/map.h"
#include "core/record/kinds.h"
#include "core/storage/component_internal.h"

typedef struct quern__operand {
    const quern__type *type;
    quern_component component;
    uint16_t component_index;
    uint16_t size_bytes;
    uint16_t offset_bytes; /* of the value in an item; 0: none is given */
    bool is_plain;         /* the type has no hooks */
    bool is_relation;      /* the component is a relation's */
    uint8_t row_flags;     /* of the component: bits of QUERN__ROW_FLAGS */
    uint8_t plane;         /* kind of the plane that a kind with needed_flag changes; others: 0 */
} quern__operand;

/* What an item begins with. */
typedef struct quern__item {
    quern_entity entity;
    uintptr_t location; /* where it was when the command was recorded; 0 with a provisional handle */
} quern__item;

/* An item is | quern__item | values, each as its type asks | a byte per operand, with has_destroy only |.
 * Such a byte says that the value lives: it is cleared when the value has been moved out. */
typedef struct quern__operation {
    uint64_t key; /* equal for equal operations, whoever made them; seldom for others */
    uint32_t item_bytes;
    uint32_t alignment_bytes; /* of an item; at least 8, and item_bytes is a multiple of it */
    uint32_t command_count;   /* that one item counts as: a create with n components is 1 + n */
    uint16_t operand_count;
    uint16_t living_offset_bytes;
    uint8_t kind;                           /* quern__operation_kind */
    bool has_destroy;                       /* some given value has to be destroyed when nobody wants it */
    bool has_entity_fields;                 /* of a value that is given */
    bool is_copied;                         /* no type has hooks, no given value has handles */
    uint8_t traits;                         /* quern__trait */
    struct quern__operation *next_same_key; /* in the recorder's list */
    union {                                 /* NULL for all others */
        const struct quern__spawn_form *form;           /* of what spawns */
        const struct quern__accumulation *accumulation; /* of what is accumulated */
    };
    quern__operand operands[];
} quern__operation;

/* Both in record.c. */
extern const quern__operation quern__operation_destroy;
extern const quern__operation quern__operation_name;

typedef struct quern__operations {
    /* [component index * QUERN__SINGLE_KIND_COUNT + kind], NULL until asked for */
    QUERN__ARRAY(quern__operation *) singles;
    quern__map creates;            /* key -> first operation with it */
    quern__operation *last_create; /* the last that was asked for */
    /* Components that the world keeps itself are like all others: for commands that follow from those of
     * users. */
    bool is_free;
} quern__operations;

void quern__operations_release(quern__operations *operations, const quern_allocator *allocator);

/* The operation of a single kind on a component, which has been checked. On the component of a relation it is of the
 * kind's relation_kind. Errors: OUT_OF_MEMORY; INVALID_ARGUMENT if the component does not allow the kind. */
quern_result quern__operations_single(quern__operations *operations, const quern__components *components,
                                      const quern_allocator *allocator, uint32_t component_index,
                                      quern__operation_kind kind, const quern__operation **out_operation);

/* The operation that creates entities with this list of components; a value is given where values[i] is not
 * NULL (values itself may be). Errors: UNKNOWN_COMPONENT, DUPLICATE_COMPONENT, TOO_MANY_COMPONENTS,
 * COMPONENT_TOO_LARGE, INVALID_ARGUMENT, OUT_OF_MEMORY. */
quern_result quern__operations_create(quern__operations *operations, const quern__components *components,
                                      const quern_allocator *allocator, const quern_component *list,
                                      const void *const *values, uint32_t count,
                                      const quern__operation **out_operation);

/* An operation that spawns, with an operand for each of these components, of types without hooks; to be
 * given back by the call below. command_count: what one item counts as. NULL: no memory. */
quern__operation *quern__operation_create_spawn(const quern__components *components,
                                                const quern_allocator *allocator,
                                                const uint16_t *component_indices, uint32_t count,
                                                uint32_t command_count);

/* An operation for values that are accumulated, of a component that has some; its items begin with the
 * handle alone. To be given back by the call below. NULL: no memory. */
quern__operation *quern__operation_create_accumulation(const quern__components *components,
                                                       const quern_allocator *allocator,
                                                       uint32_t component_index);

/* NULL is allowed. */
void quern__operation_release(quern__operation *operation, const quern_allocator *allocator);

/* Whether the operation creates entities with this list, of which values are given as above. */
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

/* Whether two operations do the same and lay out their items alike. */
bool quern__operation_equal(const quern__operation *a, const quern__operation *b);

#endif
