/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RELATIONS_TIER_MOVES_H
#define QUERN_CORE_RELATIONS_TIER_MOVES_H

/* Makes many rows agree with their links, after links of one relation have changed. The row of each entity in the link
 * log (link_log.h) moves to the archetype for the tier that its link has now, and receives the target that its link has
 * now. It moves at most once, no matter how many entries of the log are about it.
 *
 * Rows are processed in the order of archetypes and rows, and the resulting order is the one that a sync point
 * produces: first, rows from other archetypes are appended, in the order of their source archetype and row; then the
 * last rows of each archetype fill its gaps, in order. Rows are marked in a bit set per archetype, which needs no
 * sorting, and neighbours move together.
 *
 *   quern__tier_moves_prepare   determines all moves and reserves rows; may fail
 *   quern__tier_moves_apply     moves the rows; cannot fail
 *   quern__tier_moves_cancel    cancels the reservations instead */

#include "core/base/array.h"

#include <quern/base.h>

struct quern__archetype;
struct quern__move_plan;
struct quern__relation;
struct quern__storage;

/* An archetype that has marked rows. */
typedef struct quern__tier_source {
    struct quern__archetype *archetype;
    uint32_t tier; /* the tier of its entities before the change */
    uint32_t words_per_chunk;
    uint32_t first_word;       /* of its marks; words_per_chunk for each chunk */
    uint32_t first_chunk_word; /* of a bit set of the chunks that have marked rows */
    uint32_t first_departure, departure_count;
    uint32_t leaving_count; /* rows that leave for another archetype */
} quern__tier_source;

/* Rows that leave one archetype for one tier. */
typedef struct quern__tier_departure {
    const struct quern__move_plan *plan;
    uint32_t tier;
    uint32_t count;
} quern__tier_departure;

/* A marked row, and the tier of its entity after the change. */
typedef struct quern__tier_row {
    uint16_t row;
    uint16_t tier;
} quern__tier_row;

/* The marked rows of one chunk: consecutive entries of the list of rows. */
typedef struct quern__tier_chunk {
    uint32_t index; /* index of the chunk in its archetype */
    uint32_t source;
    uint32_t row_count;
} quern__tier_chunk;

/* Scratch memory, kept between calls. */
typedef struct quern__tier_moves {
    QUERN__ARRAY(quern__tier_source) sources; /* prepared: in the order of archetypes */
    QUERN__ARRAY(uint32_t) source_of_number; /* by archetype number: index + 1, or 0; all 0 between calls */
    QUERN__ARRAY(uint64_t) words;            /* marks of rows and of chunks; all 0 between calls */
    uint32_t used_word_count;
    QUERN__ARRAY(quern__tier_departure) departures;
    QUERN__ARRAY(quern__tier_row) rows;
    QUERN__ARRAY(quern__tier_chunk) chunks;
    QUERN__ARRAY(uintptr_t) gaps, tails;
    /* Whether a move or a write would call hooks or listeners. */
    bool is_observed;
} quern__tier_moves;

void quern__tier_moves_release(quern__tier_moves *moves, const quern_allocator *allocator);

/* Determines the moves of all entities in the log, and reserves rows. Precondition: all entries of the log are of this
 * relation, which has a single target per source. On failure nothing is reserved. Errors: OUT_OF_MEMORY, and those of
 * quern__storage_ensure_archetype. */
quern_result quern__tier_moves_prepare(struct quern__storage *storage, struct quern__relation *relation);

void quern__tier_moves_apply(struct quern__storage *storage, const struct quern__relation *relation);

void quern__tier_moves_cancel(struct quern__storage *storage);

#endif
