/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_SEQUENCE_H
#define QUERN_CORE_PLAYBACK_SEQUENCE_H

/* Edit sequences: what the commands of one sync point do to an entity, one operation after the other.
 * Most entities share their sequence with many others, so sequences form a tree: a root for each archetype
 * that entities come from, and below each sequence those that are longer by one operation. Resolving a
 * sequence finds its target archetype, its move plan and the source of each new value, once for all its
 * entities.
 *
 * The tree outlives the sync point, because most sync points repeat the sequences of earlier ones: a short
 * sync point then neither builds nor resolves sequences. A resolved sequence holds until archetypes come or
 * go, which also covers plans, columns and planes of disabled components; the operations belong to the
 * recorders, which live as long as the playback. quern__sequences_begin clears the tree when it no longer
 * holds or has grown large; sequences that were refused, or not resolved to the end, are never kept.
 *
 * Each thread that merges has a tree of its own; nodes of different trees may represent the same
 * sequence. */

#include "core/record/operation.h"
#include "core/storage/move_plan.h"

#define QUERN__SEQUENCE_NONE UINT32_MAX

enum {
    QUERN__EDGE_CACHE_LOG2 = 6,
    QUERN__KEPT_SEQUENCES = 1024 /* at most, from one sync point to the next */
};

/* One value that a row gets at the end of the sequence: from the item of one of its operations, or
 * constructed. */
typedef struct quern__fill {
    const quern__type *type;
    uint16_t size_bytes;
    uint16_t target_offset_bytes; /* of the column in a chunk */
    uint16_t value_offset_bytes;  /* in the item; 0: there is none, construct */
    uint16_t living_offset_bytes; /* of the byte to clear when the value has been moved out; 0: none */
    uint32_t hop;                 /* the item, counted back from the sequence's last */
    bool is_plain;
    bool replaces; /* an old value stands there, to be destroyed */
} quern__fill;

/* The bit of a row flag that is set at the end of the sequence, or clear and may come set: of a component that is
 * disabled, or enabled. */
typedef struct quern__toggle {
    uint32_t plane; /* of the target */
    bool clears;
} quern__toggle;

typedef struct quern__sequence {
    const quern__operation *operation; /* the sequence's last; NULL: a root */
    uint32_t parent;
    uint32_t depth;           /* operations in the sequence */
    uint32_t next_same_key;   /* in the tree's map */
    quern__archetype *source; /* NULL: created at this sync point */
    bool is_destroyed;        /* the sequence ends the entity */

    /* by resolving: */
    bool is_resolved;
    bool is_refused;
    bool is_hooked; /* some hook will be called */
    quern__archetype *target;
    const quern__move_plan *plan; /* where source and target differ and both exist */
    uint32_t first_fill, fill_count;
    uint32_t first_toggle, toggle_count;

    /* while edits are grouped: the stamp of these edits (quern__merged), and the sequence's group there */
    uint64_t grouped_stamp;
    uint32_t group;
} quern__sequence;

/* A step in the tree that was found before: from a sequence to the one that is longer by an operation, or from
 * QUERN__SEQUENCE_NONE to the root of an archetype. */
typedef struct quern__sequence_edge {
    const void *by; /* the operation or the archetype */
    uint32_t from, to;
} quern__sequence_edge;

typedef struct quern__sequences {
    const quern_allocator *allocator;
    QUERN__ARRAY(quern__sequence) list;
    QUERN__ARRAY(quern__fill) fills;
    QUERN__ARRAY(quern__toggle) toggles;
    quern__map map;              /* of parent and operation -> first sequence */
    uint64_t archetypes_version; /* of the storage when the sequences were resolved */
    quern__sequence_edge edges[1 << QUERN__EDGE_CACHE_LOG2];
} quern__sequences;

void quern__sequences_release(quern__sequences *sequences);

/* Removes all sequences and keeps the memory. */
void quern__sequences_clear(quern__sequences *sequences);

/* At the beginning of a sync point: removes the sequences of earlier ones unless they still hold. */
static inline void quern__sequences_begin(quern__sequences *sequences, uint64_t archetypes_version)
{
    if (sequences->archetypes_version != archetypes_version ||
        sequences->list.count > QUERN__KEPT_SEQUENCES)
        quern__sequences_clear(sequences);
}

/* The slow part of the two calls below: looks the sequence up in the tree, or adds it, and notes the edge. */
uint32_t quern__sequences_find_root(quern__sequences *sequences, quern__archetype *source);
uint32_t quern__sequences_find_extended(quern__sequences *sequences, uint32_t from,
                                        const quern__operation *operation);

static inline quern__sequence_edge *quern__sequences_edge(quern__sequences *sequences, uint32_t from,
                                                          const void *by)
{
    const uint64_t hash = ((uintptr_t)by + from) * 0x9E3779B97F4A7C15ull;
    return &sequences->edges[hash >> (64 - QUERN__EDGE_CACHE_LOG2)];
}

/* The root for entities of an archetype, or for new entities (NULL). SEQUENCE_NONE: no memory. */
static inline uint32_t quern__sequences_root(quern__sequences *sequences, quern__archetype *source)
{
    const quern__sequence_edge *edge = quern__sequences_edge(sequences, QUERN__SEQUENCE_NONE, source);
    if (QUERN__LIKELY(edge->by == source && edge->from == QUERN__SEQUENCE_NONE)) return edge->to;
    return quern__sequences_find_root(sequences, source);
}

/* The sequence that is longer by one more operation. SEQUENCE_NONE: no memory. */
static inline uint32_t quern__sequences_extend(quern__sequences *sequences, uint32_t from,
                                               const quern__operation *operation)
{
    const quern__sequence_edge *edge = quern__sequences_edge(sequences, from, operation);
    if (QUERN__LIKELY(edge->by == operation && edge->from == from)) return edge->to;
    return quern__sequences_find_extended(sequences, from, operation);
}

/* Whether doing the operation once more, with other values, makes the first time void. */
static inline bool quern__operation_replaces_itself(const quern__operation *operation)
{
    return quern__command_kinds[operation->kind].replaces_itself;
}

#endif
