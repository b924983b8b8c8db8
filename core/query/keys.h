/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_KEYS_H
#define QUERN_CORE_QUERY_KEYS_H

/* What ordered queries and indexes have in common: keys of a field, sorting by keys, and which chunks have changed since
 * they were last read.
 *
 * A *watch* remembers the versions that each chunk of a query had, and does not compare times: a chunk is new if it has
 * other versions, or another number of rows. This needs one thing: no two contents of a chunk have the same version.
 *
 *   - A system writes with a version of its own, and a reader runs before or after all of it. It may be the system itself,
 *     before its writes: a segment with readers begins with a version that nothing was written with.
 *   - A sync point writes with the time of the first system after it. A reader in between would have to be in a segment
 *     of its own, whose start advances the clock.
 *   - Calls outside of frames write with the current time. So a reader there that has found a new chunk advances the clock
 *     (quern__watch_update), as saving a frame of a history does.
 *   - A history puts versions back together with the contents that they stand for, and the clock goes on. So what a
 *     restored frame shares with the state before is not read again. */

#include "core/query/query_internal.h"

/* A key, and what it leads to. */
typedef struct quern__keyed {
    uint64_t key, value;
} quern__keyed;

/* Sorts items ascending by key, by the digits in which keys differ. Items with equal keys keep their order. scratch:
 * memory for `count` items. */
void quern__keyed_sort(quern__keyed *items, quern__keyed *scratch, uint32_t count);

/* Sorts words ascending by their high 32 bits. Words in which these are equal keep their order. Twice as fast for many words
 * as quern__keyed_sort for as many items. scratch: memory for `count` words. Returns the array that has the result: either
 * of the two. */
uint64_t *quern__words_sort(uint64_t *words, uint64_t *scratch, uint32_t count);

/* A number, bool, enum or entity handle in the values of a component. */
typedef struct quern__key_field {
    uint32_t component_index;
    uint32_t offset_bytes;
    quern_field_type type;
    char name[QUERN_MAX_NAME_BYTES + 1]; /* of a described field; "" if offset and type are the program's */
    /* If offset and type are those of a described field, its name, by which it is found after a redefinition. */
    char known_name[QUERN_MAX_NAME_BYTES + 1];
} quern__key_field;

/* Finds the field again after its component may have got another layout. Errors: INVALID_ARGUMENT. */
quern_result quern__key_field_resolve(quern__key_field *field, const quern__storage *storage);

/* Writes the keys of `count` values into the keys of items: numbers in the order of the values. Those of types with 32 bits
 * or less have 32 bits. Zeros are equal. All NaN are equal, and after all other numbers. first: the first value;
 * stride_bytes: from one to the next. */
void quern__keys_read(const quern__key_field *field, const char *first, uint32_t stride_bytes,
                      uint32_t count, quern__keyed *items);

/* The position of a row in the matches of a query: match, chunk and row, from the highest bits to the lowest. Positions
 * ascend in the order of an iteration. */
enum { QUERN__POSITION_ROW_BITS = 14, QUERN__POSITION_MATCH_SHIFT = 32 + QUERN__POSITION_ROW_BITS };
_Static_assert(QUERN__MAX_CHUNK_ROWS <= 1 << QUERN__POSITION_ROW_BITS, "rows of a chunk");
_Static_assert(QUERN_MAX_ARCHETYPES <= 1 << (63 - QUERN__POSITION_MATCH_SHIFT), "matches of a query");

static inline uint64_t quern__position_make(uint32_t match, uint32_t chunk, uint32_t row)
{
    return (uint64_t)match << QUERN__POSITION_MATCH_SHIFT | (uint64_t)chunk << QUERN__POSITION_ROW_BITS |
           row;
}
static inline uint32_t quern__position_match(uint64_t position)
{
    return (uint32_t)(position >> QUERN__POSITION_MATCH_SHIFT);
}
static inline uint32_t quern__position_chunk(uint64_t position)
{
    return (uint32_t)(position >> QUERN__POSITION_ROW_BITS);
}
static inline uint32_t quern__position_row(uint64_t position)
{
    return (uint32_t)position & ((1u << QUERN__POSITION_ROW_BITS) - 1);
}

typedef struct quern__watched_chunk {
    uint64_t rows_version, value_version;
    uint32_t row_count;
    bool is_new; /* it has changed since the update before the last one */
} quern__watched_chunk;

typedef struct quern__watch {
    uint32_t component_index;
    QUERN__ARRAY(quern__watched_chunk) chunks; /* of all matches, in the order of an iteration */
    QUERN__ARRAY(quern__watched_chunk) spare;  /* the memory of the next list */
    QUERN__ARRAY(uint32_t) first_chunks;       /* by match; then the number of chunks */
    QUERN__ARRAY(uint32_t) spare_first_chunks;
    uint32_t removed_count; /* removed_count of the query at the last update */
    bool is_valid;          /* whether all that was new at the last update was read */
    bool is_fresh;     /* whether the last update took all chunks as new, and nothing of before is of use */
    uint64_t all_rows; /* number of rows of all chunks */
    uint64_t new_rows; /* number of rows of new chunks */
} quern__watch;

/* Returns whether nothing has changed since the last update. Reads two versions of each chunk, and changes nothing.
 * Precondition: the query has been refreshed. */
bool quern__watch_is_current(const quern__watch *watch, const quern__query *query);

/* Lists the chunks anew and marks the new ones. The caller then reads them and sets is_valid. is_outside: whether no frame
 * runs; the clock then advances. Precondition: as for quern__watch_is_current. Errors: OUT_OF_MEMORY; the next update
 * takes all chunks as new. */
quern_result quern__watch_update(quern__watch *watch, quern__query *query, bool is_outside);

void quern__watch_release(quern__watch *watch, const quern_allocator *allocator);

#endif
