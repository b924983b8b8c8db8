/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_COMMANDS_PROGRAM_H
#define QUERN_CORE_COMMANDS_PROGRAM_H

/* Programs: what the commands of one sync point do to an entity, one operation after the other. Most
 * entities share their program with many others, so programs are kept as a tree: a root for each archetype
 * that entities come from, and below it a node for each sequence of operations. What a program comes to,
 * archetype, plan, where each new value comes from, is found once per node and not once per entity.
 *
 * Each thread that folds has a tree of its own; two nodes of different trees may stand for the same
 * program. */

#include "core/commands/operation.h"
#include "core/storage/plan.h"

#define QUERN__NODE_NONE UINT32_MAX

enum { QUERN__STEP_CACHE = 64 };

/* One value that a row gets at the end of the program: from the item of one of its operations, or
 * constructed. */
typedef struct quern__fill {
    const quern__type *type;
    uint16_t size_bytes;
    uint16_t target_offset_bytes; /* of the column in a chunk */
    uint16_t value_offset_bytes;  /* in the item; 0: there is none, construct */
    uint16_t living_offset_bytes; /* of the byte to clear when the value has been moved out; 0: none */
    uint32_t hop;                 /* the item, counted back from the program's last */
    bool is_plain;
    bool replaces; /* an old value stands there, to be destroyed */
} quern__fill;

typedef struct quern__program_node {
    const quern__operation *operation; /* the program's last; NULL: a root */
    uint32_t parent;
    uint32_t depth;           /* operations in the program */
    uint32_t next_same_key;   /* in the tree's map */
    quern__archetype *source; /* NULL: created at this sync point */
    bool is_destroyed;        /* the program ends the entity */

    /* settled: see playback_settle.c */
    bool is_settled;
    bool is_refused;
    bool is_hooked; /* some hook will be called */
    quern__archetype *target;
    const quern__move_plan *plan; /* where source and target differ and both exist */
    uint32_t first_fill, fill_count;

    /* while a sheet is counted: see playback_fold.c */
    uint32_t counted_sheet, tally;
} quern__program_node;

typedef struct quern__program_step {
    const quern__operation *operation;
    uint32_t from, to;
} quern__program_step;

typedef struct quern__programs {
    const quern_allocator *allocator;
    QUERN__ARRAY(quern__program_node) nodes;
    QUERN__ARRAY(quern__fill) fills;
    quern__map map; /* of parent and operation -> first node */
    quern__program_step steps[QUERN__STEP_CACHE];
} quern__programs;

void quern__programs_release(quern__programs *programs);

/* Forgets all nodes and keeps the memory. */
void quern__programs_clear(quern__programs *programs);

/* The root for entities of an archetype, or for new ones where that is NULL. NODE_NONE: no memory. */
uint32_t quern__programs_root(quern__programs *programs, quern__archetype *source);

uint32_t quern__programs_find_step(quern__programs *programs, uint32_t from,
                                   const quern__operation *operation);

/* The node behind another one by one more operation. NODE_NONE: no memory. */
static inline uint32_t quern__programs_step(quern__programs *programs, uint32_t from,
                                            const quern__operation *operation)
{
    uint32_t place = (from * 7 + (uint32_t)((uintptr_t)operation >> 5)) % QUERN__STEP_CACHE;
    quern__program_step *step = &programs->steps[place];
    if (step->operation == operation && step->from == from) return step->to;
    uint32_t to = quern__programs_find_step(programs, from, operation);
    if (to != QUERN__NODE_NONE)
        *step = (quern__program_step){.operation = operation, .from = from, .to = to};
    return to;
}

/* Whether doing the operation once more, with other values, makes the first time void. */
static inline bool quern__operation_replaces_itself(const quern__operation *operation)
{
    return operation->kind == QUERN__OPERATION_ADD && operation->operands[0].offset_bytes != 0;
}

#endif
