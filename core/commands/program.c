/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/commands/program.h"

void quern__programs_release(quern__programs *programs)
{
    quern__array_release(programs->allocator, &programs->nodes);
    quern__array_release(programs->allocator, &programs->fills);
    quern__map_release(&programs->map, programs->allocator);
}

static uint64_t key_of(uint32_t parent, uint64_t operation_key)
{
    return quern__hash_word(parent, operation_key) | 1;
}

static uint64_t key_of_node(const quern__program_node *node)
{
    if (node->operation != NULL) return key_of(node->parent, node->operation->key);
    return key_of(QUERN__NODE_NONE, (uintptr_t)node->source);
}

/* After a large sync point, a small one must not pay for the map of the large one. */
void quern__programs_clear(quern__programs *programs)
{
    if (programs->nodes.count == 0) return;
    if (programs->nodes.count > programs->map.capacity / 16)
        quern__map_clear(&programs->map);
    else
        for (uint32_t i = 0; i < programs->nodes.count; i++)
            quern__map_forget(&programs->map, key_of_node(&programs->nodes.items[i]));
    programs->nodes.count = 0;
    programs->fills.count = 0;
    memset(programs->steps, 0, sizeof programs->steps);
}

/* Adds a node that is not there; *first: the first one under its key, or NULL. */
static uint32_t node_add(quern__programs *programs, const quern__program_node *node)
{
    uint32_t index = programs->nodes.count;
    if (!quern__array_reserve(programs->allocator, &programs->nodes, index + 1) ||
        !quern__map_reserve(&programs->map, programs->allocator, index + 1))
        return QUERN__NODE_NONE;
    quern__program_node *added = &programs->nodes.items[programs->nodes.count++];
    *added = *node;
    added->counted_sheet = UINT32_MAX;
    uint64_t key = key_of_node(added);
    uint64_t *first = quern__map_find(&programs->map, key);
    added->next_same_key = first != NULL ? (uint32_t)*first : QUERN__NODE_NONE;
    if (first != NULL)
        *first = index;
    else
        quern__map_put(&programs->map, key, index);
    return index;
}

uint32_t quern__programs_root(quern__programs *programs, quern__archetype *source)
{
    quern__program_node root = {.source = source, .parent = QUERN__NODE_NONE};
    const uint64_t *first = quern__map_find(&programs->map, key_of_node(&root));
    uint32_t index = first != NULL ? (uint32_t)*first : QUERN__NODE_NONE;
    for (; index != QUERN__NODE_NONE; index = programs->nodes.items[index].next_same_key) {
        const quern__program_node *node = &programs->nodes.items[index];
        if (node->operation == NULL && node->source == source) return index;
    }
    return node_add(programs, &root);
}

uint32_t quern__programs_find_step(quern__programs *programs, uint32_t from,
                                   const quern__operation *operation)
{
    const uint64_t *first = quern__map_find(&programs->map, key_of(from, operation->key));
    uint32_t index = first != NULL ? (uint32_t)*first : QUERN__NODE_NONE;
    for (; index != QUERN__NODE_NONE; index = programs->nodes.items[index].next_same_key) {
        const quern__program_node *node = &programs->nodes.items[index];
        if (node->operation != NULL && node->parent == from &&
            quern__operation_equal(node->operation, operation))
            return index;
    }
    const quern__program_node *parent = &programs->nodes.items[from];
    quern__program_node node = {.operation = operation,
                                .parent = from,
                                .depth = parent->depth + 1,
                                .source = parent->source,
                                .is_destroyed = operation->kind == QUERN__OPERATION_DESTROY};
    return node_add(programs, &node);
}
