/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_COPY_H
#define QUERN_CORE_STORAGE_COPY_H

/* Copy plans: instructions that copy the values of one row, all plain bytes, to another row. A plan is compiled in
 * advance into steps that fit one or two registers. Steps of columns with equal value sizes form a group, so that
 * the distance from a column's start to the row is computed once per group.
 *
 *   copy plan:  group, its steps, group, its steps, ..., group of 0 steps,  columns that both archetypes have
 *               group, its steps, ..., group of 0 steps                     columns that only the source has
 *
 * A row that leaves its archetype leaves a gap, which the archetype's last row fills. The same pass fills the gap:
 * each step copies a piece of the leaving row to the target, then the same piece of the last row into the gap. For
 * this reason the plan also lists the columns that only the source has, and one reading of the plan is enough.
 *
 * The inline functions call no other function, so that a function that inlines them need not save registers. */

#include "core/storage/chunk.h"

/* A row's location, split into chunk address and row index. */
typedef struct quern__row {
    char *chunk;
    size_t index;
} quern__row;

static inline quern__row quern__row_of(uintptr_t location)
{
    return (quern__row){(char *)quern__chunk_of(location), quern__location_row(location)};
}

static inline uintptr_t quern__row_location(quern__row row)
{
    return (uintptr_t)row.chunk | row.index;
}

/* Largest value size in a copy plan: the size must fit a byte. memcpy copies larger values faster. */
enum { QUERN__COPY_MAX_BYTES = UINT8_MAX };

/* One column: the input for compiling a copy plan. */
typedef struct quern__copy {
    uint16_t source_offset_bytes; /* of the column, from the start of the chunk */
    uint16_t target_offset_bytes; /* of the column in a chunk of the target; 0: the target lacks it */
    uint16_t size_bytes;          /* of one value; at most QUERN__COPY_MAX_BYTES */
} quern__copy;

/* One word of a copy plan. */
typedef union quern__copy_word {
    struct {
        uint8_t value_bytes; /* size of one value in each column of the group */
        uint8_t step_bytes;  /* bytes copied per step: 16, 12, 8, 4 or 1 */
        uint16_t step_count; /* number of step words that follow; 0: end of this half of the plan */
    } group;
    struct {
        uint16_t source_offset_bytes, target_offset_bytes;
    } step;
} quern__copy_word;

/* Compiles a copy plan for `count` columns. Sorts `copies` in place. Returns NULL if out of memory. */
quern__copy_word *quern__copy_compile(const quern_allocator *allocator, quern__copy *copies,
                                      uint32_t count);

/* Frees a copy plan. `plan` may be NULL. */
void quern__copy_release(const quern_allocator *allocator, quern__copy_word *plan);

/* Copies a value of any size. The memory areas must not overlap. The common sizes of three and four 32-bit numbers
 * are tested first. */
static inline void quern__copy_value(char *target, const char *source, size_t size_bytes)
{
    if (size_bytes == 12) {
        memcpy(target, source, 12);
        return;
    }
    if (size_bytes == 16) {
        memcpy(target, source, 16);
        return;
    }
    for (; size_bytes >= 16; size_bytes -= 16, target += 16, source += 16)
        memcpy(target, source, 16);
    if (size_bytes & 8) {
        memcpy(target, source, 8);
        target += 8;
        source += 8;
    }
    if (size_bytes & 4) {
        memcpy(target, source, 4);
        target += 4;
        source += 4;
    }
    if (size_bytes & 2) {
        memcpy(target, source, 2);
        target += 2;
        source += 2;
    }
    if (size_bytes & 1) *target = *source;
}

/* Copies 4, 8, 12 or 16 bytes in steps of 4. */
static inline void quern__copy_few_words(char *target, const char *source, size_t size_bytes)
{
    memcpy(target, source, 4);
    if (size_bytes <= 4) return;
    memcpy(target + 4, source + 4, 4);
    if (size_bytes <= 8) return;
    memcpy(target + 8, source + 8, 4);
    if (size_bytes <= 12) return;
    memcpy(target + 12, source + 12, 4);
}

/* Copies a value of any size that the caller has just written. The memory areas must not overlap. Values of up to 16
 * bytes are copied in steps of 4 bytes, the size of the numbers that most values consist of: a load that spans two
 * recent stores stalls until both stores have reached the cache. */
static inline void quern__copy_new_value(char *target, const char *source, size_t size_bytes)
{
    if (QUERN__UNLIKELY(size_bytes > 16 || size_bytes % 4 != 0))
        quern__copy_value(target, source, size_bytes);
    else
        quern__copy_few_words(target, source, size_bytes);
}

/* Copies one value to `count` adjacent ones, at least one. */
void quern__copy_to_many(char *targets, const char *value, size_t size_bytes, uint32_t count);

/* Executes the steps of one group. `to` and `from`: addresses that the rows would have in a column at offset 0.
 * `step_bytes` must be a compile-time constant. */
static inline void quern__copy_steps(const quern__copy_word *word, const quern__copy_word *end, char *to,
                                     const char *from, size_t step_bytes)
{
    do
        memcpy(to + word->step.target_offset_bytes, from + word->step.source_offset_bytes, step_bytes);
    while (++word < end);
}

/* Executes the first half of a copy plan: copies the source row to the target row. */
static inline void quern__copy_row(const quern__copy_word *plan, quern__row target, quern__row source)
{
    for (const quern__copy_word *group = plan, *end; group->group.step_count > 0; group = end) {
        end = group + 1 + group->group.step_count;
        char *to = target.chunk + target.index * group->group.value_bytes;
        const char *from = source.chunk + source.index * group->group.value_bytes;
        switch (group->group.step_bytes) {
        case 16:
            quern__copy_steps(group + 1, end, to, from, 16);
            break;
        case 12:
            quern__copy_steps(group + 1, end, to, from, 12);
            break;
        case 8:
            quern__copy_steps(group + 1, end, to, from, 8);
            break;
        case 4:
            quern__copy_steps(group + 1, end, to, from, 4);
            break;
        default:
            quern__copy_steps(group + 1, end, to, from, 1);
            break;
        }
    }
}

/* Copies one register of the leaving row from `gap` to `to`, and one register of the last row into the gap. */
#define QUERN__MOVE_REGISTER(type, to, gap, last) \
    do {                                          \
        type leaving, coming;                     \
        memcpy(&leaving, gap, sizeof leaving);    \
        memcpy(&coming, last, sizeof coming);     \
        memcpy(to, &leaving, sizeof leaving);     \
        memcpy(gap, &coming, sizeof coming);      \
    } while (0)

/* Moves one piece of the leaving row from `gap` to `to` and fills the gap from `last`. `step_bytes` must be a
 * compile-time constant. */
QUERN__ALWAYS_INLINE void quern__move_piece(char *to, char *gap, const char *last, size_t step_bytes)
{
    if (step_bytes == 16) QUERN__MOVE_REGISTER(QUERN__SIXTEEN_BYTES, to, gap, last);
    if (step_bytes == 12 || step_bytes == 8) QUERN__MOVE_REGISTER(uint64_t, to, gap, last);
    if (step_bytes == 12) QUERN__MOVE_REGISTER(uint32_t, to + 8, gap + 8, last + 8);
    if (step_bytes == 4) QUERN__MOVE_REGISTER(uint32_t, to, gap, last);
    if (step_bytes == 1) QUERN__MOVE_REGISTER(char, to, gap, last);
}

/* Executes the steps of one group for a leaving row. `to`, `gap` and `last`: addresses that the rows would have in a
 * column at offset 0. `step_bytes` must be a compile-time constant. */
QUERN__ALWAYS_INLINE void quern__move_steps(const quern__copy_word *word, const quern__copy_word *end,
                                            char *to, char *gap, const char *last, size_t step_bytes)
{
    do {
        const size_t offset_bytes = word->step.source_offset_bytes;
        quern__move_piece(to + word->step.target_offset_bytes, gap + offset_bytes, last + offset_bytes,
                          step_bytes);
    } while (++word < end);
}

/* Executes a copy plan for a leaving row: copies the row at `gap` to `target` and fills the gap with the last row.
 * `gap` and `last` must be different rows. */
QUERN__ALWAYS_INLINE void quern__move_row(const quern__copy_word *plan, quern__row target, quern__row gap,
                                          quern__row last)
{
    const quern__copy_word *group = plan, *end;
    for (; group->group.step_count > 0; group = end) {
        end = group + 1 + group->group.step_count;
        char *to = target.chunk + target.index * group->group.value_bytes;
        char *hole = gap.chunk + gap.index * group->group.value_bytes;
        const char *from = last.chunk + last.index * group->group.value_bytes;
        switch (group->group.step_bytes) {
        case 16:
            quern__move_steps(group + 1, end, to, hole, from, 16);
            break;
        case 12:
            quern__move_steps(group + 1, end, to, hole, from, 12);
            break;
        case 8:
            quern__move_steps(group + 1, end, to, hole, from, 8);
            break;
        case 4:
            quern__move_steps(group + 1, end, to, hole, from, 4);
            break;
        default:
            quern__move_steps(group + 1, end, to, hole, from, 1);
            break;
        }
    }
    quern__copy_row(group + 1, gap, last);
}

#endif
