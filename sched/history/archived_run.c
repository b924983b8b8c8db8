/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The state of schedules in an archive: everything outside of rows, links, names and resources that the next frame
 * depends on.
 *
 *   head        the world's clock, numbers of schedules and archetypes
 *   schedules   of each: the names of its phases and systems, then its state
 *   versions    of each archetype: change versions of chunks and rows; none if it keeps none
 *   reactions   of each system that is a reaction: pending rows and copies of removed rows, by archetype
 *   events      of each event type: its schema, its readers, and the batches that wait
 *
 * Unlike a frame of a history, these bytes can be read by another process: they identify systems, events and readers
 * by name, and archetypes by their position in the archive. Handles are those of the saved world; restoring maps them.
 *
 * The bytes may be forged. Each part is read twice: `prepare` checks it completely and reserves memory, `restore`
 * reads it again and relies on that. */

#include "core/archive/archive_internal.h"
#include "core/base/bytes.h"
#include "core/events/event_internal.h"
#include "core/query/query_internal.h"
#include "core/reactions/reaction.h"
#include "core/world/world_internal.h"
#include "sched/frame/schedule_internal.h"
#include "sched/history/saved_schedule.h"

#include <stdio.h>

enum { RUN_NAME_LENGTH_BYTES = 1 }; /* size of the length before a name */

typedef struct archived_run {
    quern_world *world;
    quern_schedule *const *schedules;
    uint32_t schedule_count;
    quern__event_block *event_blocks; /* blocks that prepare has reserved */
} archived_run;

/* The bytes of a state while a part is read, and the archetypes that it refers to. */
typedef struct run_reader {
    const quern__image *image;
    quern__byte_reader bytes;
    /* When restoring: maps handles of the archive to the world. */
    quern__remap_function *remap;
    void *remap_argument;
} run_reader;

/* Fails with BAD_ARCHIVE because a part of the state cannot be read. */
static quern_result run_fail(const char *part)
{
    char text[96];
    snprintf(text, sizeof text, "the %s in the state of its schedules cannot be read", part);
    return quern__image_fail(text);
}

/* ---------------------------------------------------------------------------------------- reactions */

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
                                       subscription->reaction->id);
}

/* Calls `visit` for each system of all schedules, in order, until a call fails. */
typedef quern_result system_visit(const archived_run *run, const quern__system *system, void *argument);

static quern_result visit_systems(const archived_run *run, system_visit *visit, void *argument)
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

/* Whether the subscription has copies, or pending rows. */
static bool is_written(const quern__subscription *subscription)
{
    const quern__archetype *archetype = subscription->archetype;
    if (subscription->removed.count > 0) return true;
    for (uint32_t kind = 0; kind < RUN_KIND_COUNT && subscription->is_pending; kind++) {
        const uint32_t column = find_bit_column(subscription, kind);
        for (uint32_t slot = 0; column != QUERN__NO_BIT_COLUMN && slot < archetype->chunk_count; slot++)
            if (quern__bit_column_count(archetype->row_bits, column, slot) > 0) return true;
    }
    return false;
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
    for (uint32_t kind = 0; kind < RUN_KIND_COUNT; kind++) {
        const quern__archetype *archetype = subscription->archetype;
        const uint32_t column = find_bit_column(subscription, kind);
        for (uint32_t slot = 0; slot < archetype->chunk_count; slot++) {
            const uint32_t count = column != QUERN__NO_BIT_COLUMN
                                       ? quern__bit_column_count(archetype->row_bits, column, slot)
                                       : 0;
            quern__write_u32(writer, count);
            if (count > 0)
                quern__write(writer, quern__bit_column_words(archetype->row_bits, column, slot),
                             word_count(archetype->slots[slot].row_count) * sizeof(uint64_t));
        }
    }
    /* handles and values are written column by column, so that the unused rows of blocks are left out. */
    const uint32_t block_count = quern__removed_used_blocks(removed);
    for (uint32_t i = 0; i < block_count; i++)
        quern__write(writer, removed->blocks.items[i],
                     quern__removed_rows_in(removed, i) * sizeof(quern_entity));
    for (uint32_t column = 0; column < removed->column_count; column++)
        for (uint32_t i = 0; i < block_count; i++)
            quern__write(writer, removed->blocks.items[i] + removed->columns[column].offset_bytes,
                         (size_t)quern__removed_rows_in(removed, i) * removed->columns[column].size_bytes);
    quern__old_values_visit(&subscription->old, subscription->archetype,
                            find_bit_column(subscription, SET_BITS), quern__old_value_write, writer);
    return QUERN_OK;
}

static quern_result write_system(const archived_run *run, const quern__system *system, void *argument)
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

/* Returns the number of rows that the slot of an archetype will have when its rows are loaded. */
static inline uint32_t run_rows_in(const quern__archived_archetype *archived, uint32_t slot)
{
    const uint32_t left = archived->row_count - slot * archived->archetype->shape.row_capacity;
    return left < archived->archetype->shape.row_capacity ? left : archived->archetype->shape.row_capacity;
}

static inline uint32_t run_slot_count(const quern__archived_archetype *archived)
{
    const uint32_t capacity = archived->archetype->shape.row_capacity;
    return archived->row_count / capacity + (archived->row_count % capacity != 0);
}

/* Returns the archetype of the world for the archetype at a position in the archive, or NULL if the archive has
 * fewer. */
static inline const quern__archived_archetype *run_archetype(const run_reader *reader, uint32_t position)
{
    return position < reader->image->archetypes.count ? &reader->image->archetypes.items[position] : NULL;
}

static quern_result prepare_subscription(const quern__system *system, const quern_allocator *allocator,
                                         run_reader *reader, uint32_t *least_archetype)
{
    run_subscription saved;
    quern__read(&reader->bytes, &saved, sizeof saved);
    const quern__archived_archetype *archived = run_archetype(reader, saved.archetype);
    quern__subscription *subscription =
        archived != NULL ? quern__find_subscription(archived->archetype, system->reaction) : NULL;
    if (reader->bytes.has_failed || subscription == NULL || saved.archetype < *least_archetype)
        return run_fail("pending rows of reactions");
    *least_archetype = saved.archetype + 1;
    uint64_t set_count = 0;
    /* A row may be pending as added or as set, never as both. set_count: rows that are pending as set. */
    quern__byte_reader *bytes = &reader->bytes;
    quern__byte_reader readers[RUN_KIND_COUNT];
    for (uint32_t kind = 0; kind < RUN_KIND_COUNT; kind++) {
        readers[kind] = *bytes;
        for (uint32_t slot = 0; slot < run_slot_count(archived); slot++)
            if (quern__read_u32(bytes) > 0)
                quern__read_in_place(bytes, word_count(run_rows_in(archived, slot)) * sizeof(uint64_t));
    }
    for (uint32_t slot = 0; slot < run_slot_count(archived); slot++) {
        uint64_t words[RUN_KIND_COUNT][QUERN__BIT_COLUMN_ROW_WORDS] = {{0}};
        for (uint32_t kind = 0; kind < RUN_KIND_COUNT; kind++) {
            uint32_t count;
            if (!read_bits(&readers[kind], run_rows_in(archived, slot), words[kind], &count) ||
                (count > 0 && find_bit_column(subscription, kind) == QUERN__NO_BIT_COLUMN))
                return run_fail("pending rows of reactions");
            if (kind == SET_BITS) set_count += count;
        }
        for (uint32_t i = 0; i < QUERN__BIT_COLUMN_ROW_WORDS; i++)
            if ((words[0][i] & words[1][i]) != 0) return run_fail("pending rows of reactions");
    }
    if (bytes->has_failed) return run_fail("pending rows of reactions");
    quern__removed *removed = &subscription->removed;
    if (saved.copy_count > 0) {
        if ((system->reacts_to & QUERN_REACT_REMOVED) == 0 || saved.copy_bytes != copy_bytes_of(removed) ||
            removed->calls_hooks || quern__read_items(bytes, saved.copy_count, saved.copy_bytes) == NULL)
            return run_fail("removed rows of reactions");
        if (!quern__removed_reserve_total(removed, allocator, saved.copy_count))
            return quern__image_fail_memory();
    }
    if (saved.old_bytes != quern__old_values_row_bytes(&subscription->old))
        return run_fail("old values of reactions");
    quern__read_items(&reader->bytes, set_count, saved.old_bytes);
    return reader->bytes.has_failed ? run_fail("old values of reactions") : QUERN_OK;
}

static quern_result prepare_system(const archived_run *run, const quern__system *system, void *argument)
{
    run_reader *reader = argument;
    run_reaction head;
    quern__read(&reader->bytes, &head, sizeof head);
    if (reader->bytes.has_failed || (head.kinds == 0 && head.subscription_count > 0))
        return run_fail("reactions");
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

/* --------------------------------------------------------------------------------------- restoring */

static void restore_old_value(void *argument, const quern__old_column *column, char *value)
{
    run_reader *reader = argument;
    quern__read(&reader->bytes, value, column->size_bytes);
    quern__type_remap(column->type, value, reader->remap, reader->remap_argument);
}

static void restore_subscription(const quern__system *system, run_reader *reader)
{
    run_subscription saved;
    quern__read(&reader->bytes, &saved, sizeof saved);
    const quern__archived_archetype *archived = run_archetype(reader, saved.archetype);
    quern__subscription *subscription = quern__find_subscription(archived->archetype, system->reaction);
    quern__removed *removed = &subscription->removed;
    for (uint32_t kind = 0; kind < RUN_KIND_COUNT; kind++) {
        const uint32_t column = find_bit_column(subscription, kind);
        for (uint32_t slot = 0; slot < run_slot_count(archived); slot++) {
            uint64_t words[QUERN__BIT_COLUMN_ROW_WORDS] = {0};
            uint32_t count;
            const uint32_t rows = run_rows_in(archived, slot);
            read_bits(&reader->bytes, rows, words, &count);
            if (count == 0) continue;
            uint64_t *target = quern__bit_column_words(archived->archetype->row_bits, column, slot);
            memcpy(target, words, word_count(rows) * sizeof *words);
            target[-1] = count;
        }
    }
    subscription->is_pending = true;
    removed->count = saved.copy_count;
    removed->change = 0; /* no change has the number 0, so the next change sets change_first */
    for (uint32_t i = 0; i < removed->count; i++) {
        char *block = removed->blocks.items[i / removed->block_rows];
        const uint32_t row = i % removed->block_rows;
        const quern_entity handle = {quern__read_u64(&reader->bytes)};
        ((quern_entity *)(void *)block)[row] = reader->remap(reader->remap_argument, handle);
        /* as many changes of one copy each: later changes have greater keys */
        ((uint64_t *)(void *)(block + removed->keys_offset_bytes))[row] = (uint64_t)i << 32;
    }
    for (uint32_t i = 0; i < removed->column_count && saved.copy_count > 0; i++) {
        const quern__removed_column *column = &removed->columns[i];
        const quern__archetype *archetype = removed->archetype;
        uint32_t k = 0;
        while (archetype->columns[k].offset_bytes != column->source_offset_bytes)
            k++;
        const quern__type *type = archetype->columns[k].type;
        for (uint32_t n = 0; n < removed->count; n++) {
            char *value = removed->blocks.items[n / removed->block_rows] + column->offset_bytes +
                          (size_t)(n % removed->block_rows) * column->size_bytes;
            quern__read(&reader->bytes, value, column->size_bytes);
            quern__type_remap(type, value, reader->remap, reader->remap_argument);
        }
    }
    quern__old_values_visit(&subscription->old, archived->archetype,
                            find_bit_column(subscription, SET_BITS), restore_old_value, reader);
}

static quern_result restore_system(const archived_run *run, const quern__system *system, void *argument)
{
    (void)run;
    run_reader *reader = argument;
    run_reaction head;
    quern__read(&reader->bytes, &head, sizeof head);
    if (system->reaction == NULL) return QUERN_OK;
    /* For the reaction, loading has created all entities: the bits that say so are cleared. It has no
     * copies of removed rows, as the world never had an entity. */
    for (uint32_t k = 0; k < system->reaction->subscriptions.count; k++) {
        quern__subscription *subscription = system->reaction->subscriptions.items[k];
        for (uint32_t kind = 0; kind < RUN_KIND_COUNT && subscription->is_pending; kind++) {
            const uint32_t column = find_bit_column(subscription, kind);
            for (uint32_t slot = 0;
                 column != QUERN__NO_BIT_COLUMN && slot < subscription->archetype->chunk_count; slot++)
                quern__bit_column_clear_slot(subscription->archetype->row_bits, column, slot);
        }
        subscription->is_pending = false;
    }
    for (uint32_t i = 0; i < head.subscription_count; i++)
        restore_subscription(system, reader);
    system->reaction->is_pending = head.subscription_count > 0;
    return QUERN_OK;
}

/* Greater clocks do not occur: a world would need centuries to reach it. The limit keeps later versions from
 * overflowing. */
#define MAX_CLOCK (UINT64_MAX / 4)

typedef struct run_head {
    uint64_t clock;
    uint32_t schedule_count;
    uint32_t archetype_count;
} run_head;

/* Version of the state of a schedule. Version 0 had neither sets nor the numbers of steps. */
enum { RUN_SCHEDULE_VERSION = 1 };

typedef struct run_schedule {
    uint8_t phase_count, version;
    uint16_t set_count;
    uint32_t system_count;
} run_schedule;

typedef struct run_versions {
    uint32_t stride;     /* versions of each chunk; 0: none are kept */
    uint32_t lane_count; /* components with row versions */
} run_versions;

/* --------------------------------------------------------------------------------------- schedules */

static quern_result check_name(quern__byte_reader *bytes, const char *what, const char *name)
{
    char saved[QUERN_MAX_NAME_BYTES + 1];
    quern__read_text(bytes, RUN_NAME_LENGTH_BYTES, QUERN_MAX_NAME_BYTES, saved);
    if (bytes->has_failed) return run_fail("names");
    if (strcmp(saved, name) == 0) return QUERN_OK;
    return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                       "%s '%s' of a schedule was '%s' when the archive was saved: add the same phases and "
                       "systems in the same order, or load without schedules",
                       what, name, saved);
}

static quern_result prepare_schedule(const quern_schedule *schedule, quern__byte_reader *bytes,
                                     uint64_t clock)
{
    const quern__plan *plan = &schedule->plan;
    run_schedule head;
    quern__read(bytes, &head, sizeof head);
    if (bytes->has_failed) return run_fail("schedules");
    if (head.version != RUN_SCHEDULE_VERSION)
        return quern__fail(
            QUERN_ERROR_BAD_ARCHIVE,
            "the state of schedules has version %u, and this Quern reads version %d: load the "
            "world without schedules, or with the Quern that saved it",
            head.version, RUN_SCHEDULE_VERSION);
    if (head.phase_count != plan->phase_count || head.set_count != plan->sets.count ||
        head.system_count != plan->systems.count)
        return quern__fail(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "a schedule has %u phases, %u sets and %u systems, but %u, %u and %u when the archive was "
            "saved: "
            "list the same schedules in the same order, with the same systems, or load without "
            "schedules",
            plan->phase_count, plan->sets.count, plan->systems.count, head.phase_count, head.set_count,
            head.system_count);
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < head.phase_count && result == QUERN_OK; i++)
        result = check_name(bytes, "phase", plan->phases[i].name);
    for (uint32_t i = 0; i < head.set_count && result == QUERN_OK; i++)
        result = check_name(bytes, "set", plan->sets.items[i]->name);
    for (uint32_t i = 0; i < head.system_count && result == QUERN_OK; i++)
        result = check_name(bytes, "system", plan->systems.items[i]->name);
    if (result != QUERN_OK) return result;
    return quern__schedule_check_bytes(schedule, bytes, clock) ? QUERN_OK : run_fail("schedules");
}

/* ---------------------------------------------------------------------------------------- versions */

static void write_versions(const quern__archetype *archetype, quern__byte_writer *writer)
{
    run_versions head = {0};
    if (archetype->versions.items != NULL)
        head = (run_versions){archetype->versions.stride,
                              archetype->row_versions != NULL ? archetype->row_versions->lane_count : 0};
    quern__write(writer, &head, sizeof head);
    quern__write(writer, archetype->versions.items,
                 (size_t)archetype->chunk_count * head.stride * sizeof(uint64_t));
    for (uint32_t lane = 0; lane < head.lane_count; lane++) {
        quern__write_u32(writer, archetype->row_versions->lanes[lane].version_index);
        for (uint32_t slot = 0; slot < archetype->chunk_count; slot++)
            quern__write(writer, quern__row_versions_lane(archetype->row_versions, lane, slot),
                         archetype->slots[slot].row_count * sizeof(uint64_t));
    }
}

/* Whether all versions are times up to `latest`, which begin at 1. */
static bool are_versions(const char *versions, uint64_t count, uint64_t latest)
{
    bool are_valid = true;
    for (uint64_t i = 0; i < count; i++)
        are_valid &= quern__load_u64(versions, i) - 1 < latest; /* 0 becomes the largest number */
    return are_valid;
}

/* Checks the row versions of one component. A row may not be newer than both its chunk and the component in it: filters
 * skip chunks by the versions of chunks. */
static bool check_lane(const quern__archived_archetype *archived, uint32_t stride, const char *versions,
                       quern__byte_reader *bytes)
{
    const uint32_t version_index = quern__read_u32(bytes);
    if (bytes->has_failed || version_index == 0 || version_index >= stride) return false;
    for (uint32_t slot = 0; slot < run_slot_count(archived); slot++) {
        const uint32_t rows = run_rows_in(archived, slot);
        const char *lane = quern__read_items(bytes, rows, sizeof(uint64_t));
        const uint64_t of_rows = quern__load_u64(versions, (uint64_t)slot * stride);
        const uint64_t of_component = quern__load_u64(versions, (uint64_t)slot * stride + version_index);
        if (lane == NULL || !are_versions(lane, rows, of_rows > of_component ? of_rows : of_component))
            return false;
    }
    return true;
}

static bool check_versions(const quern__archived_archetype *archived, quern__byte_reader *bytes,
                           uint64_t clock)
{
    run_versions head;
    quern__read(bytes, &head, sizeof head);
    if (head.stride != 0 && head.stride != archived->archetype->component_count + 1) return false;
    const uint64_t count = (uint64_t)run_slot_count(archived) * head.stride;
    const char *versions = quern__read_items(bytes, count, sizeof(uint64_t));
    if (versions == NULL || !are_versions(versions, count, clock) || head.lane_count > head.stride)
        return false;
    for (uint32_t lane = 0; lane < head.lane_count; lane++)
        if (!check_lane(archived, head.stride, versions, bytes)) return false;
    return !bytes->has_failed;
}

/* Restores the row versions of the next component, unless the archetype keeps none of it. */
static void restore_lane(const quern__archived_archetype *archived, quern__byte_reader *bytes)
{
    const quern__row_versions *row_versions = archived->archetype->row_versions;
    const uint32_t version_index = quern__read_u32(bytes);
    uint32_t lane = 0;
    while (row_versions != NULL && lane < row_versions->lane_count &&
           row_versions->lanes[lane].version_index != version_index)
        lane++;
    for (uint32_t slot = 0; slot < run_slot_count(archived); slot++) {
        const size_t lane_bytes = run_rows_in(archived, slot) * sizeof(uint64_t);
        const char *versions = quern__read_in_place(bytes, lane_bytes);
        if (row_versions == NULL || lane >= row_versions->lane_count) continue;
        uint64_t *rows = quern__row_versions_lane(row_versions, lane, slot);
        memcpy(rows, versions, lane_bytes);
        quern__row_groups_raise_to(rows, rows, run_rows_in(archived, slot));
    }
}

/* Restores the versions that the archetype keeps. Those that only the saved world kept are skipped. */
static void restore_versions(const quern__archived_archetype *archived, quern__byte_reader *bytes)
{
    run_versions head;
    quern__read(bytes, &head, sizeof head);
    const size_t count = (size_t)run_slot_count(archived) * head.stride;
    const char *versions = quern__read_items(bytes, count, sizeof(uint64_t));
    if (archived->archetype->versions.items != NULL && count > 0)
        memcpy(archived->archetype->versions.items, versions, count * sizeof(uint64_t));
    for (uint32_t lane = 0; lane < head.lane_count; lane++)
        restore_lane(archived, bytes);
}

/* ----------------------------------------------------------------------------------------- writing */

/* Commands that failed frames have kept, and events that they could not publish, cannot be saved. */
static quern_result check_unsaved(const archived_run *run)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < run->schedule_count && result == QUERN_OK; i++)
        result = quern__schedule_check_unsaved(run->schedules[i]);
    return result;
}

/* Writes the state of the schedules. Errors: INVALID_ARGUMENT (something waits that cannot be saved), OUT_OF_MEMORY. */
static quern_result run_write(const archived_run *run, quern__byte_writer *writer)
{
    const quern__storage *storage = &run->world->storage;
    quern_result result = check_unsaved(run);
    if (result != QUERN_OK) return result;
    const run_head head = {storage->clock, run->schedule_count, storage->archetypes.count};
    quern__write(writer, &head, sizeof head);
    for (uint32_t i = 0; i < run->schedule_count; i++) {
        const quern__plan *plan = &run->schedules[i]->plan;
        const run_schedule schedule = {(uint8_t)plan->phase_count, RUN_SCHEDULE_VERSION,
                                       (uint16_t)plan->sets.count, plan->systems.count};
        quern__write(writer, &schedule, sizeof schedule);
        for (uint32_t n = 0; n < plan->phase_count; n++)
            quern__write_text(writer, RUN_NAME_LENGTH_BYTES, plan->phases[n].name);
        for (uint32_t n = 0; n < plan->sets.count; n++)
            quern__write_text(writer, RUN_NAME_LENGTH_BYTES, plan->sets.items[n]->name);
        for (uint32_t n = 0; n < plan->systems.count; n++)
            quern__write_text(writer, RUN_NAME_LENGTH_BYTES, plan->systems.items[n]->name);
        quern__schedule_save(run->schedules[i], writer);
    }
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        write_versions(storage->archetypes.items[i], writer);
    result = visit_systems(run, write_system, writer);
    if (result == QUERN_OK) result = quern__events_write(run->world, true, writer);
    if (result == QUERN_OK && writer->has_failed)
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                             "out of memory for the state of %u schedules; nothing was written",
                             run->schedule_count);
    return result;
}

/* ----------------------------------------------------------------------------------------- loading */

static run_reader open_reader(const quern__image *image, run_head *out_head)
{
    run_reader reader = {.image = image,
                         .bytes = quern__byte_reader_open(image->run.bytes, image->run.count)};
    quern__read(&reader.bytes, out_head, sizeof *out_head);
    return reader;
}

/* The functions of a quern__run_restorer, whose argument is an archived_run. */
static quern_result check_and_reserve_run(void *argument, const quern__image *image)
{
    archived_run *run = argument;
    run_head head;
    run_reader reader = open_reader(image, &head);
    if (reader.bytes.has_failed || head.clock > MAX_CLOCK ||
        head.archetype_count != image->archetypes.count)
        return run_fail("head");
    if (head.schedule_count != run->schedule_count)
        return quern__fail(
            QUERN_ERROR_LAYOUT_MISMATCH,
            "%u schedules are listed, but the archive was saved with %u: list the same schedules in "
            "the same order, or load without schedules",
            run->schedule_count, head.schedule_count);
    quern_result result = check_unsaved(run);
    for (uint32_t i = 0; i < run->schedule_count && result == QUERN_OK; i++)
        result = prepare_schedule(run->schedules[i], &reader.bytes, head.clock);
    for (uint32_t i = 0; i < head.archetype_count && result == QUERN_OK; i++)
        if (!check_versions(&image->archetypes.items[i], &reader.bytes, head.clock))
            result = run_fail("change versions");
    if (result == QUERN_OK) result = visit_systems(run, prepare_system, &reader);
    if (result == QUERN_OK) {
        result = quern__events_prepare(&(quern__event_reading){.world = run->world,
                                                               .is_portable = true,
                                                               .bytes = &reader.bytes,
                                                               .blocks = &run->event_blocks});
        if (result == QUERN_ERROR_BAD_ARCHIVE) result = run_fail("events");
        if (result == QUERN_ERROR_OUT_OF_MEMORY) result = quern__image_fail_memory();
    }
    if (result == QUERN_OK && !quern__is_fully_read(&reader.bytes)) result = run_fail("end");
    if (result != QUERN_OK) quern__packing_undo(run->world, &run->event_blocks);
    return result;
}

static void run_restore(void *argument, const quern__image *image, quern__remap_function *remap,
                        void *remap_argument)
{
    archived_run *run = argument;
    quern__storage *storage = &run->world->storage;
    run_head head;
    run_reader reader = open_reader(image, &head);
    reader.remap = remap;
    reader.remap_argument = remap_argument;
    if (head.clock > storage->clock) storage->clock = head.clock;
    /* Versions in chunks are set back, so a filter that has seen the present clock would miss changes.
     * All filters see everything as changed once, except those of the schedules, which are restored
     * afterwards. */
    for (quern__query *query = storage->first_query; query != NULL; query = query->next)
        query->seen_version = 0;
    for (uint32_t i = 0; i < run->schedule_count; i++) {
        quern_schedule *schedule = run->schedules[i];
        const quern__plan *plan = &schedule->plan;
        char name[QUERN_MAX_NAME_BYTES + 1];
        quern__read_in_place(&reader.bytes, sizeof(run_schedule));
        for (uint32_t n = 0; n < plan->phase_count + plan->sets.count + plan->systems.count; n++)
            quern__read_text(&reader.bytes, RUN_NAME_LENGTH_BYTES, QUERN_MAX_NAME_BYTES, name);
        quern__schedule_restore(schedule, &reader.bytes);
        for (uint32_t n = 0; n < plan->systems.count; n++) {
            const quern__query *query = quern__system_target_query(plan->systems.items[n]);
            if (query == NULL) continue;
            query->target->entity = reader.remap(reader.remap_argument, query->target->entity);
        }
        if (QUERN_CHECKS) quern__guards_invalidate(schedule);
    }
    for (uint32_t i = 0; i < head.archetype_count; i++)
        restore_versions(&image->archetypes.items[i], &reader.bytes);
    quern__reactions *reactions = run->world->storage.reactions;
    (void)visit_systems(run, restore_system, &reader);
    reactions->is_pending = false;
    for (uint32_t k = 0; k < reactions->list.count; k++)
        reactions->is_pending |= reactions->list.items[k] != NULL && reactions->list.items[k]->is_pending;
    quern__events_restore(&(quern__event_reading){.world = run->world,
                                                  .is_portable = true,
                                                  .bytes = &reader.bytes,
                                                  .blocks = &run->event_blocks,
                                                  .remap = remap,
                                                  .remap_argument = remap_argument});
    assert(quern__is_fully_read(&reader.bytes));
}

/* ------------------------------------------------------------------------------------- public calls */

static quern_result save(quern_world *world, quern_sink sink, const quern_save_def *def)
{
    static const quern_save_def zero;
    if (def == NULL) def = &zero;
    archived_run run = {.world = world, .schedules = def->schedules};
    quern_result result = quern__world_check_unlocked(world, "quern_world_save");
    if (result == QUERN_OK && def->outside_id != NULL)
        result = quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "outside_id is set, but no entity is outside of a whole world: set it to NULL, or save "
            "a list of entities");
    if (result == QUERN_OK)
        result =
            quern__schedules_check(world, def->schedules, QUERN_MAX_ARCHIVE_SCHEDULES, &run.schedule_count);
    if (result == QUERN_OK && run.schedule_count > 0 && def->leave_out[0].bits != 0)
        result = quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "leave_out and schedules are both set: frames after loading could not be the same without "
            "some components; set only one of them");
    quern__byte_writer bytes = {.allocator = &world->storage.allocator};
    if (result == QUERN_OK && run.schedule_count > 0) result = run_write(&run, &bytes);
    if (result == QUERN_OK) result = quern__world_save(world, sink, def, &bytes);
    quern__byte_writer_release(&bytes);
    return result;
}

quern_result quern_world_save(quern_world *world, quern_sink sink, const quern_save_def *def)
{
    QUERN__NEED(world);
    const quern_result result = quern__check_sink(sink, __func__);
    if (result != QUERN_OK) return result;
    QUERN__ENTER(world);
    return quern__in_call(save(world, sink, def), __func__);
}

/* ----------------------------------------------------------------------------------------- loading */

static quern_result load(quern_world *world, quern_source source, const quern_load_def *def,
                         quern_load_report *report)
{
    static const quern_load_def zero;
    if (def == NULL) def = &zero;
    archived_run run = {.world = world, .schedules = def->schedules};
    quern_result result = quern__world_check_unlocked(world, "quern_world_load");
    if (result == QUERN_OK)
        result =
            quern__schedules_check(world, def->schedules, QUERN_MAX_ARCHIVE_SCHEDULES, &run.schedule_count);
    if (result != QUERN_OK) return result;
    const quern__run_restorer restorer = {&run, check_and_reserve_run, run_restore};
    return quern__world_load(world, source, def, run.schedule_count > 0 ? &restorer : NULL, report);
}

quern_result quern_world_load(quern_world *world, quern_source source, const quern_load_def *def,
                              quern_load_report *out_report)
{
    quern_load_report ignored, *report = out_report != NULL ? out_report : &ignored;
    *report = (quern_load_report){0};
    QUERN__NEED(world);
    const quern_result result = quern__check_source(source, __func__);
    if (result != QUERN_OK) return result;
    QUERN__ENTER(world);
    return quern__in_call(load(world, source, def, report), __func__);
}

/* ----------------------------------------------------------------------------------------- copying */

quern_result quern_world_copy(quern_world *world, quern_world *target, const quern_save_def *save_def,
                              const quern_load_def *load_def, quern_load_report *out_report)
{
    quern_load_report ignored, *report = out_report != NULL ? out_report : &ignored;
    *report = (quern_load_report){0};
    QUERN__NEED(world);
    QUERN__NEED(target);
    if (world == target)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: 'world' and 'target' are one world; to copy entities within it, use quern_entity_clone",
            __func__);
    quern_byte_buffer memory = {.allocator = world->storage.allocator};
    quern_result result = quern_world_save(world, quern_sink_bytes(&memory), save_def);
    if (result == QUERN_ERROR_IO)
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                             "%s: no memory for a copy of more than %zu bytes; nothing was copied",
                             __func__, memory.size_bytes);
    if (result == QUERN_OK)
        result =
            quern_world_load(target, quern_source_bytes(memory.bytes, memory.size_bytes), load_def, report);
    quern_byte_buffer_release(&memory);
    return result;
}
