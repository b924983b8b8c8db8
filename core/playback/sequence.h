/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_SEQUENCE_H
#define QUERN_CORE_PLAYBACK_SEQUENCE_H

/* Edit sequences: the operations that one sync point applies to an entity, in order. Many entities share a
 * sequence, so sequences form a tree. It has a root for each source archetype, and the children of a sequence
 * extend it by one operation. Resolving a sequence finds its target archetype, its move plan and the source of
 * each new value, once for all its entities.
 *
 * The tree is kept between sync points, since most sync points repeat the sequences of earlier ones; a short
 * sync point then neither adds nor resolves sequences. A resolved sequence is valid until archetypes are added
 * or removed; this covers plans, columns and row bits of components. The operations belong to recorders, which
 * live as long as the playback. quern__sequences_begin clears an invalid or large tree. A tree with refused or
 * partly resolved sequences is cleared at the end of the sync point.
 *
 * Each merging thread has its own tree. Nodes of different trees may represent the same sequence. */

#include "core/record/operation.h"
#include "core/storage/move_plan.h"

#define QUERN__SEQUENCE_NONE UINT32_MAX

enum {
    QUERN__EDGE_CACHE_LOG2 = 6,
    QUERN__MAX_RETAINED_SEQUENCES = 1024 /* maximum number that a tree keeps for later sync points */
};

/* A value that a row gets at the end of the sequence: from the item of one of its operations, or constructed. */
typedef struct quern__fill {
    const quern__type *type;
    uint16_t size_bytes;
    uint16_t target_offset_bytes; /* offset of the component's column in a chunk */
    uint16_t value_offset_bytes;  /* offset of the value in the item; 0: no value, construct one */
    /* offset of the byte to clear once the value is moved out; 0: none */
    uint16_t owned_offset_bytes;
    uint32_t hop; /* position of the item, counted backwards from the sequence's last item */
    bool is_plain;
    bool replaces; /* the row has an old value, which must be destroyed */
} quern__fill;

/* Writes a plain value to a row. size_bytes: fill->size_bytes, as a constant if the caller
 * knows it. */
static inline void quern__fill_plain(const quern__fill *fill, uint32_t size_bytes, char *target,
                                     const char *item)
{
    if (fill->value_offset_bytes != 0)
        quern__copy_value(target, item + fill->value_offset_bytes, size_bytes);
    else if (fill->type->default_value != NULL)
        quern__copy_value(target, fill->type->default_value, size_bytes);
    else
        memset(target, 0, size_bytes);
}

/* A row bit that the sequence changes: sets it if the component is disabled at the end, and clears it if
 * enabled. */
typedef struct quern__toggle {
    uint32_t bit_column; /* index in the target's row bits */
    bool clears;
} quern__toggle;

typedef struct quern__sequence {
    const quern__operation *operation; /* last operation of the sequence; NULL for a root */
    uint32_t parent;
    uint32_t depth;           /* number of operations in the sequence */
    uint32_t next_same_key;   /* next sequence with the same key in the tree's map */
    quern__archetype *source; /* archetype before the first operation; NULL: created at this sync point */
    /* the last operation destroys the entity, or (set by resolving) the entity is new and refused */
    bool is_destroyed;

    /* set by resolving: */
    bool is_resolved;
    bool is_refused;
    bool is_hooked; /* applying the sequence calls hooks */
    quern__archetype *target;
    const quern__move_plan *plan; /* set if source and target differ and both exist */
    uint32_t first_fill, fill_count;
    uint32_t first_toggle, toggle_count;

    /* Set while edits are grouped: the stamp of the latest edits with this sequence (quern__merged), and the
     * sequence's group in them. */
    uint64_t grouped_stamp;
    uint32_t group;
} quern__sequence;

/* A cached edge of the tree: from a sequence to its extension by an operation, or from QUERN__SEQUENCE_NONE to
 * the root of an archetype. */
typedef struct quern__sequence_edge {
    const void *by; /* the operation or the archetype */
    uint32_t from, to;
} quern__sequence_edge;

typedef struct quern__sequences {
    const quern_allocator *allocator;
    QUERN__ARRAY(quern__sequence) list;
    QUERN__ARRAY(quern__fill) fills;
    QUERN__ARRAY(quern__toggle) toggles;
    quern__map map;              /* key of parent and operation -> first sequence */
    uint64_t archetypes_version; /* archetypes version of the storage when the sequences were resolved */
    quern__sequence_edge edges[1 << QUERN__EDGE_CACHE_LOG2];
} quern__sequences;

void quern__sequences_release(quern__sequences *sequences);

/* Removes all sequences and keeps the memory. */
void quern__sequences_clear(quern__sequences *sequences);

/* Starts a sync point: clears the tree if its sequences are no longer valid or too many. */
static inline void quern__sequences_begin(quern__sequences *sequences, uint64_t archetypes_version)
{
    if (sequences->archetypes_version != archetypes_version ||
        sequences->list.count > QUERN__MAX_RETAINED_SEQUENCES)
        quern__sequences_clear(sequences);
}

/* Slow paths of the two functions below: search the tree, add the sequence if necessary, and cache the edge. */
uint32_t quern__sequences_find_root(quern__sequences *sequences, quern__archetype *source);
uint32_t quern__sequences_find_extended(quern__sequences *sequences, uint32_t from,
                                        const quern__operation *operation);

static inline quern__sequence_edge *quern__sequences_edge(quern__sequences *sequences, uint32_t from,
                                                          const void *by)
{
    const uint64_t hash = ((uintptr_t)by + from) * 0x9E3779B97F4A7C15ull;
    return &sequences->edges[hash >> (64 - QUERN__EDGE_CACHE_LOG2)];
}

/* Returns the root for entities of an archetype, or for new entities (NULL). Returns QUERN__SEQUENCE_NONE if
 * out of memory. */
static inline uint32_t quern__sequences_root(quern__sequences *sequences, quern__archetype *source)
{
    const quern__sequence_edge *edge = quern__sequences_edge(sequences, QUERN__SEQUENCE_NONE, source);
    if (QUERN__LIKELY(edge->by == source && edge->from == QUERN__SEQUENCE_NONE)) return edge->to;
    return quern__sequences_find_root(sequences, source);
}

/* Returns the sequence `from` extended by one operation. Returns QUERN__SEQUENCE_NONE if out of memory. */
static inline uint32_t quern__sequences_extend(quern__sequences *sequences, uint32_t from,
                                               const quern__operation *operation)
{
    const quern__sequence_edge *edge = quern__sequences_edge(sequences, from, operation);
    if (QUERN__LIKELY(edge->by == operation && edge->from == from)) return edge->to;
    return quern__sequences_find_extended(sequences, from, operation);
}

/* Whether a repetition of the operation with other values makes the earlier one ineffective. */
static inline bool quern__operation_replaces_itself(const quern__operation *operation)
{
    return quern__command_kinds[operation->kind].replaces_itself;
}

#endif
