/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Saves and restores what is pending for reactions: the flags of reactions and subscriptions, copies of
 * removed rows, and old values of rows that were set. Row bits are saved with their archetypes. */

#include "core/history/history_internal.h"
#include "core/history/saved_pending.h"

/* A subscription as saved in the page. The blocks of its copies follow, then the old values of each row that was set:
 * by row, and for each by term. */
typedef struct saved_subscription {
    uint32_t number;    /* number of the reaction */
    uint32_t archetype; /* index of the archetype */
    uint32_t copy_count;
    uint32_t old_count; /* rows with old values */
    uint64_t is_pending;
} saved_subscription;

static quern_result check_subscription(const quern__subscription *subscription)
{
    if (subscription->taken_block_count == 0 &&
        (subscription->removed.count == 0 || !subscription->removed.calls_hooks))
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "removed rows are pending for reactions, and their values have hooks, so a snapshot "
                       "cannot copy them: run the reactions first (quern_world_react, or run a frame)");
}

quern_result quern__reactions_check_savable(const quern__storage *storage)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        for (const quern__subscription *subscription =
                 quern__first_subscription(storage->archetypes.items[i]);
             subscription != NULL && result == QUERN_OK;
             subscription = quern__next_subscription(subscription))
            result = check_subscription(subscription);
    return result;
}

/* ---------------------------------------------------------------------------------------- old values */

/* Visits the old values of all rows that are pending as set. Returns the number of rows. */
static uint32_t visit_old_values(const quern__subscription *subscription, quern__old_visit *visit,
                                 void *argument)
{
    if (subscription->old.column_count == 0 || !subscription->is_pending) return 0;
    const uint32_t set = quern__row_bits_find_column(subscription->archetype->row_bits,
                                                     QUERN__BIT_COLUMN_SET, subscription->reaction->number);
    return quern__old_values_visit(&subscription->old, subscription->archetype, set, visit, argument);
}

static void write_old_value(void *argument, const quern__old_column *column, char *value)
{
    quern__write(argument, value, column->size_bytes);
}

static void read_old_value(void *argument, const quern__old_column *column, char *value)
{
    quern__read(argument, value, column->size_bytes);
}

/* -------------------------------------------------------------------------------------------- saving */

static void write_subscription(const quern__subscription *subscription, quern__byte_writer *writer)
{
    const quern__removed *removed = &subscription->removed;
    const saved_subscription saved = {.number = subscription->reaction->number,
                                      .archetype = subscription->archetype->index,
                                      .copy_count = removed->count,
                                      .old_count = visit_old_values(subscription, NULL, NULL),
                                      .is_pending = subscription->is_pending};
    quern__write(writer, &saved, sizeof saved);
    for (uint32_t i = 0; i < quern__removed_used_blocks(removed); i++)
        quern__write(writer, removed->blocks.items[i], removed->block_bytes);
    visit_old_values(subscription, write_old_value, writer);
}

static uint32_t subscription_count(const quern__storage *storage)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < storage->reactions->list.count; i++)
        if (storage->reactions->list.items[i] != NULL)
            count += storage->reactions->list.items[i]->subscriptions.count;
    return count;
}

/* Writes one byte for each number of a reaction: 0 if the number is free, 1 if its reaction is not
 * pending, 2 if it is pending. Then writes all subscriptions. */
void quern__reactions_write(const quern__storage *storage, quern__byte_writer *writer)
{
    const quern__reactions *reactions = storage->reactions;
    quern__write_u64(writer, reactions->list.count);
    for (uint32_t i = 0; i < reactions->list.count; i++) {
        const quern__reaction *reaction = reactions->list.items[i];
        const uint8_t state = (uint8_t)(reaction == NULL ? 0 : 1 + reaction->is_pending);
        quern__write(writer, &state, sizeof state);
    }
    quern__write_u64(writer, subscription_count(storage));
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        for (const quern__subscription *subscription =
                 quern__first_subscription(storage->archetypes.items[i]);
             subscription != NULL; subscription = quern__next_subscription(subscription))
            write_subscription(subscription, writer);
}

/* ------------------------------------------------------------------------------------------- reserving */

static quern_result check_reactions(const quern__storage *storage, quern__byte_reader *reader)
{
    const quern__reactions *reactions = storage->reactions;
    const uint64_t count = quern__read_u64(reader);
    bool is_same = count == reactions->list.count;
    for (uint32_t i = 0; i < count && is_same; i++) {
        uint8_t state;
        quern__read(reader, &state, sizeof state);
        is_same = (state != 0) == (reactions->list.items[i] != NULL);
    }
    if (is_same) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "systems with reactions were added, or their schedules destroyed, since the frame "
                       "was saved: add all systems before the first save, and keep their schedules");
}

static quern__subscription *subscription_of(const quern__storage *storage,
                                            const quern__archetype *archetype,
                                            const saved_subscription *saved)
{
    return quern__find_subscription(archetype, storage->reactions->list.items[saved->number]);
}

quern_result quern__reactions_prepare(quern__storage *storage, quern__archetype *const *archetypes,
                                      quern__byte_reader *reader)
{
    const quern_result result = check_reactions(storage, reader);
    if (result != QUERN_OK) return result;
    for (uint64_t left = quern__read_u64(reader); left > 0; left--) {
        saved_subscription saved;
        quern__read(reader, &saved, sizeof saved);
        quern__subscription *subscription = subscription_of(storage, archetypes[saved.archetype], &saved);
        quern__removed *removed = &subscription->removed;
        if (!quern__removed_reserve_total(removed, &storage->allocator, saved.copy_count))
            return quern__history_fail_memory("copies of removed rows");
        quern__read_items(reader,
                          (saved.copy_count + (size_t)removed->block_rows - 1) / removed->block_rows,
                          removed->block_bytes);
        quern__read_items(reader, saved.old_count, quern__old_values_row_bytes(&subscription->old));
    }
    return QUERN_OK;
}

/* ---------------------------------------------------------------------------------------- restoring */

static void restore_subscription(const quern__storage *storage, quern__byte_reader *reader)
{
    saved_subscription saved;
    quern__read(reader, &saved, sizeof saved);
    quern__subscription *subscription =
        subscription_of(storage, storage->archetypes.items[saved.archetype], &saved);
    quern__removed *removed = &subscription->removed;
    quern__removed_clear(removed);
    subscription->is_pending = saved.is_pending != 0;
    removed->count = saved.copy_count;
    removed->change = 0; /* no change has the number 0, so the next change sets change_first */
    for (uint32_t i = 0; i < quern__removed_used_blocks(removed); i++)
        quern__read(reader, removed->blocks.items[i], removed->block_bytes);
    visit_old_values(subscription, read_old_value, reader);
}

void quern__reactions_restore(quern__storage *storage, quern__byte_reader *reader)
{
    quern__reactions *reactions = storage->reactions;
    (void)quern__read_u64(reader);
    reactions->is_pending = false;
    for (uint32_t i = 0; i < reactions->list.count; i++) {
        uint8_t state;
        quern__read(reader, &state, sizeof state);
        if (state == 0) continue;
        reactions->list.items[i]->is_pending = state == 2;
        reactions->is_pending |= state == 2;
    }
    for (uint64_t left = quern__read_u64(reader); left > 0; left--)
        restore_subscription(storage, reader);
}
