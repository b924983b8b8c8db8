/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/copy.h"

enum { COPY_PLAN_ALIGNMENT_BYTES = 8 };

static bool target_lacks(const quern__copy *copy)
{
    return copy->target_offset_bytes == 0;
}

static bool is_before(const quern__copy *a, const quern__copy *b)
{
    return target_lacks(a) != target_lacks(b) ? target_lacks(b) : a->size_bytes < b->size_bytes;
}

/* Sorts by value size, with the columns that the target lacks at the end. */
static void sort_by_size(quern__copy *copies, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const quern__copy copy = copies[i];
        uint32_t index = i;
        for (; index > 0 && is_before(&copy, &copies[index - 1]); index--)
            copies[index] = copies[index - 1];
        copies[index] = copy;
    }
}

/* Output state while a plan is written, or while its words are only counted. */
typedef struct plan_writer {
    quern__copy_word *out; /* NULL: words are only counted */
    uint32_t count;
} plan_writer;

static void put(plan_writer *to, quern__copy_word word)
{
    if (to->out != NULL) to->out[to->count] = word;
    to->count++;
}

/* Consecutive columns with equal value sizes. */
typedef struct column_set {
    const quern__copy *copies;
    uint32_t count;
} column_set;

/* Writes a group that copies the values from byte `begin_bytes` on, in as many steps of `step_bytes` as fit. Writes
 * nothing if no step fits. Returns the offset of the first byte that the group does not copy. */
static uint32_t put_steps(plan_writer *to, const column_set *columns, uint32_t begin_bytes,
                          uint32_t step_bytes)
{
    const uint32_t step_count = (columns->copies->size_bytes - begin_bytes) / step_bytes;
    const uint32_t end_bytes = begin_bytes + step_count * step_bytes;
    if (step_count == 0) return end_bytes;
    put(to, (quern__copy_word){.group = {.value_bytes = (uint8_t)columns->copies->size_bytes,
                                         .step_bytes = (uint8_t)step_bytes,
                                         .step_count = (uint16_t)(columns->count * step_count)}});
    for (uint32_t i = 0; i < columns->count; i++)
        for (uint32_t at = begin_bytes; at < end_bytes; at += step_bytes) {
            const quern__copy *copy = &columns->copies[i];
            const uint32_t target_offset_bytes =
                target_lacks(copy) ? copy->source_offset_bytes : copy->target_offset_bytes;
            put(to, (quern__copy_word){
                        .step = {.source_offset_bytes = (uint16_t)(copy->source_offset_bytes + at),
                                 .target_offset_bytes = (uint16_t)(target_offset_bytes + at)}});
        }
    return end_bytes;
}

static void put_columns(plan_writer *to, const column_set *columns)
{
    static const uint32_t steps_bytes[] = {16, 12, 8, 4, 1};
    uint32_t begin_bytes = 0;
    for (uint32_t i = 0; i < QUERN__COUNT_OF(steps_bytes); i++)
        begin_bytes = put_steps(to, columns, begin_bytes, steps_bytes[i]);
}

static void put_half(plan_writer *to, const quern__copy *copies, uint32_t count)
{
    for (uint32_t i = 0, group_count; i < count; i += group_count) {
        for (group_count = 1; i + group_count < count; group_count++)
            if (copies[i + group_count].size_bytes != copies[i].size_bytes) break;
        put_columns(to, &(column_set){.copies = copies + i, .count = group_count});
    }
    put(to, (quern__copy_word){.group = {.step_count = 0}});
}

/* Writes the plan to `out`, or only counts its words if `out` is NULL. Returns the number of words. */
static uint32_t write_plan(const quern__copy *copies, uint32_t count, quern__copy_word *out)
{
    plan_writer writer = {.out = out};
    uint32_t leaving_count = 0;
    while (leaving_count < count && !target_lacks(&copies[leaving_count]))
        leaving_count++;
    put_half(&writer, copies, leaving_count);
    put_half(&writer, copies + leaving_count, count - leaving_count);
    return writer.count;
}

quern__copy_word *quern__copy_compile(const quern_allocator *allocator, quern__copy *copies, uint32_t count)
{
    sort_by_size(copies, count);
    const uint32_t word_count = write_plan(copies, count, NULL);
    quern__copy_word *plan =
        quern__allocate(allocator, word_count * sizeof *plan, COPY_PLAN_ALIGNMENT_BYTES);
    if (plan != NULL) write_plan(copies, count, plan);
    return plan;
}

void quern__copy_release(const quern_allocator *allocator, quern__copy_word *plan)
{
    if (plan == NULL) return;
    uint32_t word_count = 0;
    for (uint32_t ends = 0; ends < 2; word_count++) {
        ends += plan[word_count].group.step_count == 0;
        word_count += plan[word_count].group.step_count;
    }
    quern__release(allocator, plan, word_count * sizeof *plan, COPY_PLAN_ALIGNMENT_BYTES);
}

/* Each copy repeats all values written so far, which is faster than one copy per value. */
void quern__copy_to_many(char *targets, const char *value, size_t size_bytes, uint32_t count)
{
    const size_t bytes = size_bytes * count;
    memcpy(targets, value, size_bytes);
    for (size_t written = size_bytes, more; written < bytes; written += more) {
        more = written < bytes - written ? written : bytes - written;
        memcpy(targets + written, targets, more);
    }
}
