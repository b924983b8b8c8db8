/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Saves and restores the rest of a world, in one page: changes not yet reported to reactions, waiting
 * events, and some numbers. Waiting commands have a page of their own: see saved_commands.h. */

#include "core/events/event_pack.h"
#include "core/history/saved_commands.h"
#include "core/history/saved_pending.h"
#include "core/query/query_internal.h"

/* ------------------------------------------------------------------------------------------- numbers */

static void write_numbers(const quern_world *world, quern__byte_writer *writer)
{
    quern__write_u64(writer, world->next_serial);
    quern__write_u64(writer, world->next_visit);
    quern__write_u64(writer, world->visit_count);
}

static void restore_numbers(quern_world *world, quern__byte_reader *reader)
{
    world->next_serial = quern__read_u64(reader);
    world->next_visit = (uint32_t)quern__read_u64(reader);
    world->visit_count = quern__read_u64(reader);
}

/* ------------------------------------------------------------------------------------------- interface */

static void write_world_state(const quern_world *world, quern__byte_writer *writer)
{
    quern__reactions_write(&world->storage, writer);
    quern__events_write(world, writer);
    write_numbers(world, writer);
}

quern_result quern__build_world_state(quern__history *history, quern__snapshot *snapshot)
{
    const quern_world *world = history->world;
    quern_result result = quern__reactions_check_savable(&world->storage);
    if (result == QUERN_OK) result = quern__events_save_values(history, &snapshot->event_values);
    if (result != QUERN_OK) return result;
    quern__byte_writer measure = {.capacity = SIZE_MAX};
    write_world_state(world, &measure);
    snapshot->world_state = quern__page_allocate(&history->store, measure.count);
    if (snapshot->world_state == 0) return quern__history_fail_memory("pending reactions and events");
    quern__byte_writer writer = quern__page_writer(&history->store, snapshot->world_state);
    write_world_state(world, &writer);
    assert(!writer.has_failed);
    return quern__build_commands(history, snapshot);
}

quern_result quern__prepare_world_state(quern__history *history, const quern__snapshot *snapshot,
                                        quern__archetype *const *archetypes)
{
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->world_state);
    quern_result result = quern__reactions_prepare(&history->world->storage, archetypes, &reader);
    if (result == QUERN_OK) result = quern__events_prepare(history->world, &history->event_blocks, &reader);
    return result == QUERN_OK ? quern__prepare_commands(history, snapshot) : result;
}

void quern__undo_world_state(quern__history *history)
{
    quern__packing_undo(history->world, &history->event_blocks);
    quern__undo_commands(history);
}

void quern__restore_world_state(quern__history *history, const quern__snapshot *snapshot)
{
    quern_world *world = history->world;
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->world_state);
    quern__reactions_restore(&world->storage, &reader);
    quern__events_restore(history, &snapshot->event_values, &reader);
    restore_numbers(world, &reader);
    assert(!reader.has_failed);
    quern__restore_commands(history);
    world->restore_count++;
    for (quern__query *query = world->storage.first_query; query != NULL; query = query->next)
        if (query->world != NULL) query->seen_version = 0;
}
