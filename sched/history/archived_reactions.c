/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* What is pending for the reactions of schedules, as part of an archive (archived_run.h). */

#include "sched/history/archived_run.h"

static const quern__bit_column_kind bit_column_kinds[] = {QUERN__BIT_COLUMN_ADDED, QUERN__BIT_COLUMN_SET};
enum { ADDED_BITS, SET_BITS, RUN_KIND_COUNT = QUERN__COUNT_OF(bit_column_kinds) };

/* A system. Its subscriptions with something pending follow, in the order of their archetypes. */
typedef struct run_reaction {
    uint32_t kinds; /* bits of quern_reaction_kind; 0: the system is not a reaction */
    uint32_t subscription_count;
} run_reaction;

/* A subscription. For each kind of bits and each chunk, the number of set bits follows and, unless it is 0, the bits
 * of the chunk's rows. Then follow the handles of the copies, and their values, column by column, and at last the old
 * values of each row that was set: by row, and in each row by term. */
typedef struct run_subscription {
    uint32_t archetype; /* position in the archive */
    uint32_t copy_count;
    uint32_t copy_bytes; /* handle and values of one copy */
    uint32_t old_bytes;  /* old values of one row; 0 if the system has no old terms */
} run_subscription;

static uint32_t copy_bytes_of(const quern__removed *removed)
{
    uint32_t bytes = sizeof(quern_entity);
    for (uint32_t i = 0; i < removed->column_count; i++)
        bytes += removed->columns[i].size_bytes;
    return bytes;
}

static uint32_t word_count(uint32_t row_count)
{
    return (row_count + 63) / 64;
}

/* Returns the index of a bit column of the subscription in its archetype, or QUERN__NO_BIT_COLUMN. */
static uint32_t find_bit_column(const quern__subscription *subscription, uint32_t kind)
{
    return quern__row_bits_find_column(subscription->archetype->row_bits, bit_column_kinds[kind],
                                       subscription->reaction->number);
}

/* Calls `visit` for each system of all schedules, in order, until a call fails. */
typedef quern_result system_visit(const quern__archived_run *run, const quern__system *system,
                                  void *argument);

static quern_result visit_systems(const quern__archived_run *run, system_visit *visit, void *argument)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < run->schedule_count; i++) {
        const quern__plan *plan = &run->schedules[i]->plan;
        for (uint32_t k = 0; k < plan->systems.count && result == QUERN_OK; k++)
            result = visit(run, plan->systems.items[k], argument);
    }
    return result;
}

/* ----------------------------------------------------------------------------------------- writing */

static bool has_bits(const quern__subscription *subscription)
{
    const quern__archetype *archetype = subscription->archetype;
    for (uint32_t kind = 0; kind < RUN_KIND_COUNT; kind++) {
        const uint32_t column = find_bit_column(subscription, kind);
        for (uint32_t slot = 0; column != QUERN__NO_BIT_COLUMN && slot < archetype->chunk_count; slot++)
            if (quern__bit_column_count(archetype->row_bits, column, slot) > 0) return true;
    }
    return false;
}

static bool is_written(const quern__subscription *subscription)
{
    return subscription->removed.count > 0 || (subscription->is_pending && has_bits(subscription));
}

static void write_bits(const quern__subscription *subscription, uint32_t kind, quern__byte_writer *writer)
{
    const quern__archetype *archetype = subscription->archetype;
    const uint32_t column = find_bit_column(subscription, kind);
    for (uint32_t slot = 0; slot < archetype->chunk_count; slot++) {
        const uint32_t count =
            column != QUERN__NO_BIT_COLUMN ? quern__bit_column_count(archetype->row_bits, column, slot) : 0;
        quern__write_u32(writer, count);
        if (count > 0)
            quern__write(writer, quern__bit_column_words(archetype->row_bits, column, slot),
                         word_count(archetype->slots[slot].row_count) * sizeof(uint64_t));
    }
}

/* Writes handles and values column by column, so that the unused rows of blocks are left out. */
static void write_copies(const quern__removed *removed, quern__byte_writer *writer)
{
    const uint32_t block_count = quern__removed_used_blocks(removed);
    for (uint32_t i = 0; i < block_count; i++)
        quern__write(writer, removed->blocks.items[i],
                     quern__removed_rows_in(removed, i) * sizeof(quern_entity));
    for (uint32_t column = 0; column < removed->column_count; column++)
        for (uint32_t i = 0; i < block_count; i++)
            quern__write(writer, removed->blocks.items[i] + removed->columns[column].offset_bytes,
                         (size_t)quern__removed_rows_in(removed, i) * removed->columns[column].size_bytes);
}

static void write_old_value(void *argument, const quern__old_column *column, char *value)
{
    quern__write(argument, value, column->size_bytes);
}

/* Writes a subscription. Copies are sorted first: their order within a sync point depends on timing, and must not reach
 * the archive. */
static quern_result write_subscription(quern__subscription *subscription, const quern_allocator *allocator,
                                       quern__byte_writer *writer)
{
    quern__removed *removed = &subscription->removed;
    if (removed->count > 0 && removed->calls_hooks)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "removed rows are pending for reactions, and their values have hooks, so an archive "
            "cannot save what they own: run the reactions first (quern_world_react, or run a frame)");
    if (!quern__removed_sort(removed, allocator))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "out of memory to sort the removed rows of reactions; nothing was written");
    const run_subscription head = {.archetype = subscription->archetype->index,
                                   .copy_count = removed->count,
                                   .copy_bytes = copy_bytes_of(removed),
                                   .old_bytes = quern__old_values_row_bytes(&subscription->old)};
    quern__write(writer, &head, sizeof head);
    for (uint32_t kind = 0; kind < RUN_KIND_COUNT; kind++)
        write_bits(subscription, kind, writer);
    write_copies(removed, writer);
    quern__old_values_visit(&subscription->old, subscription->archetype,
                            find_bit_column(subscription, SET_BITS), write_old_value, writer);
    return QUERN_OK;
}

static quern_result write_system(const quern__archived_run *run, const quern__system *system,
                                 void *argument)
{
    const quern__reaction *reaction = system->reaction;
    run_reaction head = {.kinds = system->reacts_to};
    const uint32_t count = reaction != NULL && reaction->is_pending ? reaction->subscriptions.count : 0;
    for (uint32_t i = 0; i < count; i++)
        head.subscription_count += is_written(reaction->subscriptions.items[i]);
    quern__write(argument, &head, sizeof head);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        if (is_written(reaction->subscriptions.items[i]))
            result = write_subscription(reaction->subscriptions.items[i], &run->world->storage.allocator,
                                        argument);
    return result;
}

quern_result quern__run_write_reactions(const quern__archived_run *run, quern__byte_writer *writer)
{
    return visit_systems(run, write_system, writer);
}

/* --------------------------------------------------------------------------------------- preparing */

/* Reads the bits of a chunk into words. Returns false if they do not fit the chunk's rows. */
static bool read_bits(quern__byte_reader *bytes, uint32_t row_count, uint64_t *words, uint32_t *out_count)
{
    const uint32_t count = *out_count = quern__read_u32(bytes);
    uint32_t found = 0;
    if (count == 0) return !bytes->has_failed;
    quern__read(bytes, words, word_count(row_count) * sizeof *words);
    for (uint32_t i = 0; i < word_count(row_count); i++)
        found += quern__count_bits_64(words[i]);
    return !bytes->has_failed && found == count &&
           (row_count % 64 == 0 || words[row_count / 64] >> row_count % 64 == 0);
}

/* Checks the bits of all kinds. A row may be pending as added or as set, never as both. Counts the rows that are pending
 * as set. */
static bool check_bits(const quern__subscription *subscription, const quern__archived_archetype *archived,
                       quern__byte_reader *bytes, uint64_t *out_set_count)
{
    *out_set_count = 0;
    quern__byte_reader readers[RUN_KIND_COUNT];
    for (uint32_t kind = 0; kind < RUN_KIND_COUNT; kind++) {
        readers[kind] = *bytes;
        for (uint32_t slot = 0; slot < quern__run_slot_count(archived); slot++)
            if (quern__read_u32(bytes) > 0)
                quern__read_in_place(bytes,
                                     word_count(quern__run_rows_in(archived, slot)) * sizeof(uint64_t));
    }
    for (uint32_t slot = 0; slot < quern__run_slot_count(archived); slot++) {
        uint64_t words[RUN_KIND_COUNT][QUERN__BIT_COLUMN_ROW_WORDS] = {{0}};
        for (uint32_t kind = 0; kind < RUN_KIND_COUNT; kind++) {
            uint32_t count;
            if (!read_bits(&readers[kind], quern__run_rows_in(archived, slot), words[kind], &count) ||
                (count > 0 && find_bit_column(subscription, kind) == QUERN__NO_BIT_COLUMN))
                return false;
            if (kind == SET_BITS) *out_set_count += count;
        }
        for (uint32_t i = 0; i < QUERN__BIT_COLUMN_ROW_WORDS; i++)
            if ((words[0][i] & words[1][i]) != 0) return false;
    }
    return !bytes->has_failed;
}

/* Checks the copies of removed rows, and reserves memory for them. */
static quern_result prepare_copies(const quern__system *system, const quern_allocator *allocator,
                                   quern__run_reader *reader, quern__subscription *subscription,
                                   const run_subscription *saved)
{
    quern__removed *removed = &subscription->removed;
    if (saved->copy_count == 0) return QUERN_OK;
    if ((system->reacts_to & QUERN_REACT_REMOVED) == 0 || saved->copy_bytes != copy_bytes_of(removed) ||
        removed->calls_hooks ||
        quern__read_items(&reader->bytes, saved->copy_count, saved->copy_bytes) == NULL)
        return quern__run_fail("removed rows of reactions");
    if (quern__removed_reserve_total(removed, allocator, saved->copy_count)) return QUERN_OK;
    return quern__image_fail_memory();
}

static quern_result prepare_subscription(const quern__system *system, const quern_allocator *allocator,
                                         quern__run_reader *reader, uint32_t *least_archetype)
{
    run_subscription saved;
    quern__read(&reader->bytes, &saved, sizeof saved);
    const quern__archived_archetype *archived = quern__run_archetype(reader, saved.archetype);
    quern__subscription *subscription =
        archived != NULL ? quern__find_subscription(archived->archetype, system->reaction) : NULL;
    if (reader->bytes.has_failed || subscription == NULL || saved.archetype < *least_archetype)
        return quern__run_fail("pending rows of reactions");
    *least_archetype = saved.archetype + 1;
    uint64_t set_count;
    if (!check_bits(subscription, archived, &reader->bytes, &set_count))
        return quern__run_fail("pending rows of reactions");
    const quern_result result = prepare_copies(system, allocator, reader, subscription, &saved);
    if (result != QUERN_OK) return result;
    if (saved.old_bytes != quern__old_values_row_bytes(&subscription->old))
        return quern__run_fail("old values of reactions");
    quern__read_items(&reader->bytes, set_count, saved.old_bytes);
    return reader->bytes.has_failed ? quern__run_fail("old values of reactions") : QUERN_OK;
}

static quern_result prepare_system(const quern__archived_run *run, const quern__system *system,
                                   void *argument)
{
    quern__run_reader *reader = argument;
    run_reaction head;
    quern__read(&reader->bytes, &head, sizeof head);
    if (reader->bytes.has_failed || (head.kinds == 0 && head.subscription_count > 0))
        return quern__run_fail("reactions");
    if (head.kinds != system->reacts_to)
        return quern__fail(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "system '%s' reacts to other changes than when the archive was saved: define it as "
            "in the saved world, or load without schedules",
            system->name);
    uint32_t least_archetype = 0;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < head.subscription_count && result == QUERN_OK; i++)
        result = prepare_subscription(system, &run->world->storage.allocator, reader, &least_archetype);
    return result;
}

quern_result quern__run_prepare_reactions(const quern__archived_run *run, quern__run_reader *reader)
{
    return visit_systems(run, prepare_system, reader);
}

/* --------------------------------------------------------------------------------------- restoring */

static void restore_bits(const quern__subscription *subscription, const quern__archived_archetype *archived,
                         uint32_t kind, quern__byte_reader *bytes)
{
    const uint32_t column = find_bit_column(subscription, kind);
    for (uint32_t slot = 0; slot < quern__run_slot_count(archived); slot++) {
        uint64_t words[QUERN__BIT_COLUMN_ROW_WORDS];
        uint32_t count;
        const uint32_t rows = quern__run_rows_in(archived, slot);
        read_bits(bytes, rows, words, &count);
        if (count == 0) continue;
        uint64_t *target = quern__bit_column_words(archived->archetype->row_bits, column, slot);
        memcpy(target, words, word_count(rows) * sizeof *words);
        target[-1] = count;
    }
}

/* Returns the type of a copied column; removed rows note only types with hooks. */
static const quern__type *type_of(const quern__removed *removed, const quern__removed_column *column)
{
    const quern__archetype *archetype = removed->archetype;
    uint32_t i = 0;
    while (archetype->columns[i].offset_bytes != column->source_offset_bytes)
        i++;
    return archetype->columns[i].type;
}

static void restore_handles(const quern__removed *removed, quern__run_reader *reader)
{
    for (uint32_t i = 0; i < removed->count; i++) {
        char *block = removed->blocks.items[i / removed->block_rows];
        const uint32_t row = i % removed->block_rows;
        const quern_entity saved = {quern__read_u64(&reader->bytes)};
        ((quern_entity *)(void *)block)[row] = reader->remap(reader->remap_argument, saved);
        /* as many changes of one copy each: later changes have greater keys */
        ((uint64_t *)(void *)(block + removed->keys_offset_bytes))[row] = (uint64_t)i << 32;
    }
}

static void restore_column(const quern__removed *removed, const quern__removed_column *column,
                           quern__run_reader *reader)
{
    const quern__type *type = type_of(removed, column);
    for (uint32_t i = 0; i < removed->count; i++) {
        char *value = removed->blocks.items[i / removed->block_rows] + column->offset_bytes +
                      (size_t)(i % removed->block_rows) * column->size_bytes;
        quern__read(&reader->bytes, value, column->size_bytes);
        quern__type_remap(type, value, reader->remap, reader->remap_argument);
    }
}

static void restore_old_value(void *argument, const quern__old_column *column, char *value)
{
    quern__run_reader *reader = argument;
    quern__read(&reader->bytes, value, column->size_bytes);
    quern__type_remap(column->type, value, reader->remap, reader->remap_argument);
}

static void restore_subscription(const quern__system *system, quern__run_reader *reader)
{
    run_subscription saved;
    quern__read(&reader->bytes, &saved, sizeof saved);
    const quern__archived_archetype *archived = quern__run_archetype(reader, saved.archetype);
    quern__subscription *subscription = quern__find_subscription(archived->archetype, system->reaction);
    quern__removed *removed = &subscription->removed;
    for (uint32_t kind = 0; kind < RUN_KIND_COUNT; kind++)
        restore_bits(subscription, archived, kind, &reader->bytes);
    subscription->is_pending = true;
    removed->count = saved.copy_count;
    removed->change = 0; /* no change has the number 0, so the next change sets change_first */
    if (saved.copy_count > 0) restore_handles(removed, reader);
    for (uint32_t i = 0; i < removed->column_count && saved.copy_count > 0; i++)
        restore_column(removed, &removed->columns[i], reader);
    quern__old_values_visit(&subscription->old, archived->archetype,
                            find_bit_column(subscription, SET_BITS), restore_old_value, reader);
}

/* For the reaction, loading has created all entities. Clears the bits that say so. It has no copies of removed rows, as
 * the world never had an entity. */
static void clear_bits(quern__reaction *reaction)
{
    for (uint32_t i = 0; i < reaction->subscriptions.count; i++) {
        quern__subscription *subscription = reaction->subscriptions.items[i];
        for (uint32_t kind = 0; kind < RUN_KIND_COUNT && subscription->is_pending; kind++) {
            const uint32_t column = find_bit_column(subscription, kind);
            for (uint32_t slot = 0;
                 column != QUERN__NO_BIT_COLUMN && slot < subscription->archetype->chunk_count; slot++)
                quern__bit_column_clear_slot(subscription->archetype->row_bits, column, slot);
        }
        subscription->is_pending = false;
    }
}

static quern_result restore_system(const quern__archived_run *run, const quern__system *system,
                                   void *argument)
{
    (void)run;
    quern__run_reader *reader = argument;
    run_reaction head;
    quern__read(&reader->bytes, &head, sizeof head);
    if (system->reaction == NULL) return QUERN_OK;
    clear_bits(system->reaction);
    for (uint32_t i = 0; i < head.subscription_count; i++)
        restore_subscription(system, reader);
    system->reaction->is_pending = head.subscription_count > 0;
    return QUERN_OK;
}

void quern__run_restore_reactions(const quern__archived_run *run, quern__run_reader *reader)
{
    quern__reactions *reactions = run->world->storage.reactions;
    (void)visit_systems(run, restore_system, reader);
    reactions->is_pending = false;
    for (uint32_t i = 0; i < reactions->list.count; i++)
        reactions->is_pending |= reactions->list.items[i] != NULL && reactions->list.items[i]->is_pending;
}
