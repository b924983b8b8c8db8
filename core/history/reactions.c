/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* What reactions are still to be told. Bits of rows are with the planes of archetypes; here are the flags
 * of reactions and watches, and copies of what went. */

#include "core/history/history_internal.h"
#include "core/history/waiting.h"

/* Of a watch; copies follow, block by block. */
typedef struct saved_watch {
    uint32_t number; /* of its reaction */
    uint32_t archetype;
    uint32_t copy_count;
    uint32_t is_pending;
} saved_watch;

static quern_result check_watch(const quern__watch *watch)
{
    if (watch->handed_count == 0 && (watch->removed.count == 0 || !watch->removed.calls_hooks))
        return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "reactions are to be told of entities that went, whose values have hooks and cannot be "
        "kept twice: run them first (quern_world_react, or a frame)");
}

quern_result quern__reactions_check_saved(const quern__storage *storage)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        for (const quern__watch *watch = quern__first_watch(storage->archetypes.items[i]);
             watch != NULL && result == QUERN_OK; watch = quern__next_watch(watch))
            result = check_watch(watch);
    return result;
}

/* ------------------------------------------------------------------------------------------- putting */

static void put_watch(const quern__watch *watch, quern__tape *tape)
{
    const quern__removed *removed = &watch->removed;
    const saved_watch saved = {.number = watch->reaction->number,
                               .archetype = watch->archetype->index,
                               .copy_count = removed->count,
                               .is_pending = watch->is_pending};
    quern__tape_put(tape, &saved, sizeof saved);
    for (uint32_t i = 0; i < quern__removed_used_blocks(removed); i++)
        quern__tape_put(tape, removed->blocks.items[i], removed->block_bytes);
}

static uint32_t watch_count(const quern__storage *storage)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < storage->reactions->list.count; i++)
        if (storage->reactions->list.items[i] != NULL)
            count += storage->reactions->list.items[i]->watches.count;
    return count;
}

/* Of each reaction: 0 where the number is free, 2 where it is pending, otherwise 1. */
void quern__reactions_put(const quern__storage *storage, quern__tape *tape)
{
    const quern__reactions *reactions = storage->reactions;
    quern__tape_put_word(tape, reactions->list.count);
    for (uint32_t i = 0; i < reactions->list.count; i++) {
        const quern__reaction *reaction = reactions->list.items[i];
        const uint8_t state = (uint8_t)(reaction == NULL ? 0 : 1 + reaction->is_pending);
        quern__tape_put(tape, &state, sizeof state);
    }
    quern__tape_put_word(tape, watch_count(storage));
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        for (const quern__watch *watch = quern__first_watch(storage->archetypes.items[i]); watch != NULL;
             watch = quern__next_watch(watch))
            put_watch(watch, tape);
}

/* ----------------------------------------------------------------------------------------- making room */

static quern_result check_reactions(const quern__storage *storage, quern__tape *tape)
{
    const quern__reactions *reactions = storage->reactions;
    const uint64_t count = quern__tape_take_word(tape);
    bool is_same = count == reactions->list.count;
    for (uint32_t i = 0; i < count && is_same; i++) {
        uint8_t state;
        quern__tape_take(tape, &state, sizeof state);
        is_same = (state != 0) == (reactions->list.items[i] != NULL);
    }
    if (is_same) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "systems with reactions were added, or their schedules destroyed, since the frame was "
        "saved: add all systems before the first save");
}

static quern__watch *watch_of(const quern__storage *storage, const quern__archetype *archetype,
                              const saved_watch *saved)
{
    return quern__watch_of(archetype, storage->reactions->list.items[saved->number]);
}

quern_result quern__reactions_prepare(quern__storage *storage, quern__archetype *const *archetypes,
                                      quern__tape *tape)
{
    const quern_result result = check_reactions(storage, tape);
    if (result != QUERN_OK) return result;
    for (uint64_t left = quern__tape_take_word(tape); left > 0; left--) {
        saved_watch saved;
        quern__tape_take(tape, &saved, sizeof saved);
        quern__watch *watch = watch_of(storage, archetypes[saved.archetype], &saved);
        quern__removed *removed = &watch->removed;
        if (saved.copy_count == 0) continue;
        if (!quern__removed_hold(removed, &storage->allocator, saved.copy_count))
            return quern__history_fail_memory("copies for reactions");
        tape->length_bytes += (size_t)removed->block_bytes *
                              ((saved.copy_count + (size_t)removed->block_rows - 1) / removed->block_rows);
    }
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- taking */

static void take_watch(const quern__storage *storage, quern__tape *tape)
{
    saved_watch saved;
    quern__tape_take(tape, &saved, sizeof saved);
    quern__watch *watch = watch_of(storage, storage->archetypes.items[saved.archetype], &saved);
    quern__removed *removed = &watch->removed;
    quern__removed_clear(removed);
    watch->is_pending = saved.is_pending != 0;
    removed->count = saved.copy_count;
    removed->change = 0; /* no change has this number */
    for (uint32_t i = 0; i < quern__removed_used_blocks(removed); i++)
        quern__tape_take(tape, removed->blocks.items[i], removed->block_bytes);
}

void quern__reactions_take(quern__storage *storage, quern__tape *tape)
{
    quern__reactions *reactions = storage->reactions;
    (void)quern__tape_take_word(tape);
    reactions->is_pending = false;
    for (uint32_t i = 0; i < reactions->list.count; i++) {
        uint8_t state;
        quern__tape_take(tape, &state, sizeof state);
        if (state == 0) continue;
        reactions->list.items[i]->is_pending = state == 2;
        reactions->is_pending |= state == 2;
    }
    for (uint64_t left = quern__tape_take_word(tape); left > 0; left--)
        take_watch(storage, tape);
}
