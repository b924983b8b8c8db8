/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* All atomic operations are relaxed; the head of planes.h gives the reason. */

#include "core/storage/planes.h"

enum { PLANE_ALIGNMENT_BYTES = 64 };

/* ------------------------------------------------------------------------------------ which planes */

static bool is_before(quern__plane a, quern__plane b)
{
    return a.kind != b.kind ? a.kind < b.kind : a.id < b.id;
}

static size_t list_bytes(uint32_t count)
{
    return quern__align_up(sizeof(quern__planes) + count * sizeof(quern__plane), PLANE_ALIGNMENT_BYTES);
}

/* Allocates planes with all bits clear. The caller must write the list. Returns NULL if out of memory. */
static quern__planes *allocate(const quern_allocator *allocator, uint32_t count, uint32_t row_capacity,
                               uint32_t slot_capacity)
{
    const uint32_t plane_words = 1 + (row_capacity + 63) / 64;
    const size_t words_bytes = sizeof(uint64_t) * plane_words * count * slot_capacity;
    const size_t bytes = list_bytes(count) + words_bytes;
    char *memory = quern__allocate(allocator, bytes, PLANE_ALIGNMENT_BYTES);
    if (memory == NULL) return NULL;
    memset(memory + list_bytes(count), 0, words_bytes);
    quern__planes *planes = (quern__planes *)(void *)memory;
    *planes = (quern__planes){.list = (quern__plane *)(void *)(planes + 1),
                              .words = (uint64_t *)(void *)(memory + list_bytes(count)),
                              .count = count,
                              .row_capacity = row_capacity,
                              .plane_words = plane_words,
                              .slot_words = plane_words * count,
                              .slot_capacity = slot_capacity,
                              .bytes = bytes};
    return planes;
}

/* Copies `count` planes of all slots of `source`, from index `from` on, to `target` from index `to` on. */
static void copy_planes(quern__planes *target, uint32_t to, const quern__planes *source, uint32_t from,
                        uint32_t count)
{
    memcpy(target->list + to, source->list + from, count * sizeof *target->list);
    for (uint32_t slot = 0; slot < source->slot_capacity; slot++)
        memcpy(target->words + (size_t)slot * target->slot_words + (size_t)to * target->plane_words,
               source->words + (size_t)slot * source->slot_words + (size_t)from * source->plane_words,
               sizeof(uint64_t) * source->plane_words * count);
}

static void replace(quern__planes **planes, const quern_allocator *allocator, quern__planes *other)
{
    quern__planes_release(planes, allocator);
    *planes = other;
}

bool quern__planes_add(quern__planes **planes, const quern_allocator *allocator, quern__plane plane,
                       uint32_t row_capacity, uint32_t slot_capacity)
{
    const quern__planes *old = *planes;
    const uint32_t count = old != NULL ? old->count : 0;
    assert(quern__planes_find(old, plane.kind, plane.id) == QUERN__NO_PLANE);
    quern__planes *larger = allocate(allocator, count + 1, row_capacity, slot_capacity);
    if (larger == NULL) return false;
    uint32_t place = 0;
    while (place < count && is_before(old->list[place], plane))
        place++;
    larger->list[place] = plane;
    if (old != NULL) {
        copy_planes(larger, 0, old, 0, place);
        copy_planes(larger, place + 1, old, place, count - place);
    }
    replace(planes, allocator, larger);
    return true;
}

/* Removes the plane in place, slot by slot, without allocating: the call must not fail. */
void quern__planes_remove(quern__planes **planes, const quern_allocator *allocator, quern__plane plane)
{
    quern__planes *old = *planes;
    const uint32_t place = quern__planes_find(old, plane.kind, plane.id);
    assert(place != QUERN__NO_PLANE);
    if (old->count == 1) {
        quern__planes_release(planes, allocator);
        return;
    }
    const uint32_t before = place * old->plane_words, after = before + old->plane_words;
    const uint32_t slot_words = old->slot_words - old->plane_words;
    for (uint32_t slot = 0; slot < old->slot_capacity; slot++) {
        uint64_t *to = old->words + (size_t)slot * slot_words;
        const uint64_t *from = old->words + (size_t)slot * old->slot_words;
        memmove(to, from, sizeof *to * before);
        memmove(to + before, from + after, sizeof *to * (old->slot_words - after));
    }
    old->count--;
    old->slot_words = slot_words;
    memmove(old->list + place, old->list + place + 1, (old->count - place) * sizeof *old->list);
}

bool quern__planes_grow(quern__planes **planes, const quern_allocator *allocator, uint32_t slot_capacity)
{
    const quern__planes *old = *planes;
    if (old == NULL || slot_capacity <= old->slot_capacity) return true;
    quern__planes *larger = allocate(allocator, old->count, old->row_capacity, slot_capacity);
    if (larger == NULL) return false;
    copy_planes(larger, 0, old, 0, old->count);
    replace(planes, allocator, larger);
    return true;
}

void quern__planes_release(quern__planes **planes, const quern_allocator *allocator)
{
    if (*planes != NULL) quern__release(allocator, *planes, (*planes)->bytes, PLANE_ALIGNMENT_BYTES);
    *planes = NULL;
}

/* ------------------------------------------------------------------------------------ one plane */

/* Returns how many of `count` rows from `row` on have their bits in the word of `row`. */
static uint32_t piece_of(uint32_t row, uint32_t count)
{
    const uint32_t left = 64 - row % 64;
    return count < left ? count : left;
}

static uint64_t mask_of(uint32_t row, uint32_t count)
{
    return (count < 64 ? (UINT64_C(1) << count) - 1 : ~UINT64_C(0)) << row % 64;
}

static void add_to_count(uint64_t *words, uint64_t difference)
{
    if (difference != 0) __atomic_fetch_add(words - 1, difference, __ATOMIC_RELAXED);
}

/* Sets the masked bits. Returns how many of them were clear. */
static uint32_t set_bits(uint64_t *word, uint64_t mask)
{
    const uint64_t old = __atomic_fetch_or(word, mask, __ATOMIC_RELAXED);
    return (uint32_t)__builtin_popcountll(mask & ~old);
}

/* Clears the masked bits and returns those that were set. Usually none is set, and then the word is not written. */
static uint64_t take_bits(uint64_t *word, uint64_t mask)
{
    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & mask) == 0) return 0;
    return __atomic_fetch_and(word, ~mask, __ATOMIC_RELAXED) & mask;
}

void quern__plane_set_run(const quern__planes *planes, uint32_t index, uintptr_t first, uint32_t count)
{
    uint64_t *words = quern__plane_words(planes, index, quern__chunk_of(first)->index);
    uint32_t set_count = 0;
    for (uint32_t row = quern__location_row(first), piece; count > 0; row += piece, count -= piece) {
        piece = piece_of(row, count);
        set_count += set_bits(&words[row / 64], mask_of(row, piece));
    }
    add_to_count(words, set_count);
}

/* Clears the bits of `count` rows. Subtracts from the plane's count by adding a negative difference modulo 2^64. */
static void clear_run(uint64_t *words, uint32_t row, uint32_t count)
{
    uint64_t cleared_count = 0;
    for (uint32_t piece; count > 0; row += piece, count -= piece) {
        piece = piece_of(row, count);
        cleared_count += (uint64_t)__builtin_popcountll(take_bits(&words[row / 64], mask_of(row, piece)));
    }
    add_to_count(words, 0 - cleared_count);
}

void quern__plane_clear_run(const quern__planes *planes, uint32_t index, uintptr_t first, uint32_t count)
{
    clear_run(quern__plane_words(planes, index, quern__chunk_of(first)->index), quern__location_row(first),
              count);
}

void quern__plane_clear_slot(const quern__planes *planes, uint32_t index, uint32_t slot)
{
    uint64_t *count = quern__plane_words(planes, index, slot) - 1;
    if (*count != 0) memset(count, 0, planes->plane_words * sizeof *count);
}

/* ------------------------------------------------------------------------------------ all planes */

void quern__planes_clear_rows(const quern__planes *planes, uintptr_t first, uint32_t count)
{
    const uint32_t slot = quern__chunk_of(first)->index;
    for (uint32_t i = 0; i < planes->count; i++)
        if (quern__plane_count(planes, i, slot) != 0)
            clear_run(quern__plane_words(planes, i, slot), quern__location_row(first), count);
}

/* Moves the bits of `count` rows and updates the counts. Each step moves the bits that share one word in both the source
 * and the target. */
static void move_bits(uint64_t *target, uint32_t to, uint64_t *source, uint32_t from, uint32_t count)
{
    uint64_t moved_count = 0;
    for (uint32_t piece; count > 0; to += piece, from += piece, count -= piece) {
        piece = piece_of(to, piece_of(from, count));
        const uint64_t bits = take_bits(&source[from / 64], mask_of(from, piece)) >> from % 64;
        if (bits == 0) continue;
        moved_count += (uint64_t)__builtin_popcountll(bits);
        __atomic_fetch_or(&target[to / 64], bits << to % 64, __ATOMIC_RELAXED);
    }
    if (source == target) return;
    add_to_count(source, 0 - moved_count);
    add_to_count(target, moved_count);
}

void quern__planes_move_rows(const quern__planes *target, uintptr_t to, const quern__planes *source,
                             uintptr_t from, uint32_t count)
{
    const uint32_t to_slot = quern__chunk_of(to)->index, from_slot = quern__chunk_of(from)->index;
    const uint32_t target_count = target != NULL ? target->count : 0;
    for (uint32_t i = 0, k = 0; i < source->count; i++) {
        if (quern__plane_count(source, i, from_slot) == 0) continue;
        while (k < target_count && is_before(target->list[k], source->list[i]))
            k++;
        uint64_t *words = quern__plane_words(source, i, from_slot);
        if (k < target_count && !is_before(source->list[i], target->list[k]))
            move_bits(quern__plane_words(target, k, to_slot), quern__location_row(to), words,
                      quern__location_row(from), count);
        else
            clear_run(words, quern__location_row(from), count);
    }
}
