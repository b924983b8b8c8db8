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
            quern__map_forget(&sequences->map, key_of_sequence(&sequences->list.items[i]));
    sequences->list.count = 0;
    sequences->fills.count = 0;
    sequences->toggles.count = 0;
    memset(sequences->edges, 0, sizeof sequences->edges);
}

/* Adds a sequence that is not there. */
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

uint32_t quern__sequences_root(quern__sequences *sequences, quern__archetype *source)
{
    quern__sequence root = {.source = source, .parent = QUERN__SEQUENCE_NONE};
    const uint64_t *first = quern__map_find(&sequences->map, key_of_sequence(&root));
    uint32_t index = first != NULL ? (uint32_t)*first : QUERN__SEQUENCE_NONE;
    for (; index != QUERN__SEQUENCE_NONE; index = sequences->list.items[index].next_same_key) {
        const quern__sequence *sequence = &sequences->list.items[index];
        if (sequence->operation == NULL && sequence->source == source) return index;
    }
    return sequence_add(sequences, &root);
}

uint32_t quern__sequences_find_extended(quern__sequences *sequences, uint32_t from,
                                        const quern__operation *operation)
{
    const uint64_t *first = quern__map_find(&sequences->map, key_of(from, operation->key));
    uint32_t index = first != NULL ? (uint32_t)*first : QUERN__SEQUENCE_NONE;
    for (; index != QUERN__SEQUENCE_NONE; index = sequences->list.items[index].next_same_key) {
        const quern__sequence *sequence = &sequences->list.items[index];
        if (sequence->operation != NULL && sequence->parent == from &&
            quern__operation_equal(sequence->operation, operation))
            return index;
    }
    const quern__sequence *parent = &sequences->list.items[from];
    quern__sequence sequence = {.operation = operation,
                                .parent = from,
                                .depth = parent->depth + 1,
                                .source = parent->source,
                                .is_destroyed = operation->kind == QUERN__OPERATION_DESTROY};
    return sequence_add(sequences, &sequence);
}
