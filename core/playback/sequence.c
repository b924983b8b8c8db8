/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/sequence.h"

void quern__sequences_release(quern__sequences *sequences)
{
    quern__array_release(sequences->allocator, &sequences->list);
    quern__array_release(sequences->allocator, &sequences->fills);
    quern__array_release(sequences->allocator, &sequences->toggles);
    quern__map_release(&sequences->map, sequences->allocator);
}

static uint64_t key_of(uint32_t parent, uint64_t operation_key)
{
    return quern__hash_word(parent, operation_key) | 1;
}

static uint64_t key_of_sequence(const quern__sequence *sequence)
{
    if (sequence->operation != NULL) return key_of(sequence->parent, sequence->operation->key);
    return key_of(QUERN__SEQUENCE_NONE, (uintptr_t)sequence->source);
}

void quern__sequences_clear(quern__sequences *sequences)
{
    if (sequences->list.count == 0) return;
    if (sequences->list.count > sequences->map.capacity / 16)
        quern__map_clear(&sequences->map);
    else
        for (uint32_t i = 0; i < sequences->list.count; i++)
            quern__map_clear_key(&sequences->map, key_of_sequence(&sequences->list.items[i]));
    sequences->list.count = 0;
    sequences->fills.count = 0;
    sequences->toggles.count = 0;
    memset(sequences->edges, 0, sizeof sequences->edges);
}

/* Adds a sequence to the tree. */
static uint32_t sequence_add(quern__sequences *sequences, const quern__sequence *sequence)
{
    uint32_t index = sequences->list.count;
    if (!quern__array_reserve(sequences->allocator, &sequences->list, index + 1) ||
        !quern__map_reserve(&sequences->map, sequences->allocator, index + 1))
        return QUERN__SEQUENCE_NONE;
    quern__sequence *added = &sequences->list.items[sequences->list.count++];
    *added = *sequence;
    uint64_t key = key_of_sequence(added);
    uint64_t *first = quern__map_find(&sequences->map, key);
    added->next_same_key = first != NULL ? (uint32_t)*first : QUERN__SEQUENCE_NONE;
    if (first != NULL)
        *first = index;
    else
        quern__map_put(&sequences->map, key, index);
    return index;
}

static bool is_same(const quern__sequence *a, const quern__sequence *b)
{
    if (a->parent != b->parent) return false;
    if (a->operation == NULL || b->operation == NULL)
        return a->operation == b->operation && a->source == b->source;
    return quern__operation_equal(a->operation, b->operation);
}

/* Finds or adds a sequence equal to `wanted`. by: see quern__sequence_edge. */
static uint32_t find(quern__sequences *sequences, const quern__sequence *wanted, const void *by)
{
    const uint64_t *first = quern__map_find(&sequences->map, key_of_sequence(wanted));
    uint32_t to = first != NULL ? (uint32_t)*first : QUERN__SEQUENCE_NONE;
    while (to != QUERN__SEQUENCE_NONE && !is_same(&sequences->list.items[to], wanted))
        to = sequences->list.items[to].next_same_key;
    if (to == QUERN__SEQUENCE_NONE) to = sequence_add(sequences, wanted);
    if (to != QUERN__SEQUENCE_NONE)
        *quern__sequences_edge(sequences, wanted->parent, by) =
            (quern__sequence_edge){.by = by, .from = wanted->parent, .to = to};
    return to;
}

uint32_t quern__sequences_find_root(quern__sequences *sequences, quern__archetype *source)
{
    const quern__sequence root = {.source = source, .parent = QUERN__SEQUENCE_NONE};
    return find(sequences, &root, source);
}

uint32_t quern__sequences_find_extended(quern__sequences *sequences, uint32_t from,
                                        const quern__operation *operation)
{
    const quern__sequence *parent = &sequences->list.items[from];
    const quern__sequence extended = {.operation = operation,
                                      .parent = from,
                                      .depth = parent->depth + 1,
                                      .source = parent->source,
                                      .is_destroyed = (operation->traits & QUERN__TRAIT_NO_DESTROYS) == 0};
    return find(sequences, &extended, operation);
}
