/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The rest of a world in a snapshot, in one page: changes not yet reported to reactions, waiting events, and some
 * numbers. Waiting commands have a page of their own: see kept.h. */

#include "core/history/kept.h"
#include "core/history/waiting.h"
#include "core/query/query_internal.h"

/* ------------------------------------------------------------------------------------------- numbers */

static void put_numbers(const quern_world *world, quern__byte_writer *writer)
{
    quern__write_u64(writer, world->next_serial);
    quern__write_u64(writer, world->next_visit);
    quern__write_u64(writer, world->visit_count);
}

static void take_numbers(quern_world *world, quern__byte_reader *reader)
{
    world->next_serial = quern__read_u64(reader);
    world->next_visit = (uint32_t)quern__read_u64(reader);
    world->visit_count = quern__read_u64(reader);
}

/* ------------------------------------------------------------------------------------------- all of it */

static void put_rest(const quern_world *world, quern__byte_writer *writer)
{
    quern__reactions_put(&world->storage, writer);
    quern__events_put(world, writer);
    put_numbers(world, writer);
}

quern_result quern__build_rest(quern__history *history, quern__snapshot *snapshot)
{
    const quern_world *world = history->world;
    quern_result result = quern__reactions_check_saved(&world->storage);
    if (result == QUERN_OK) result = quern__events_copy_values(history, &snapshot->event_values);
    if (result != QUERN_OK) return result;
    quern__byte_writer measure = {.capacity = SIZE_MAX};
    put_rest(world, &measure);
    snapshot->rest = quern__page_take(&history->store, measure.count);
    if (snapshot->rest == 0) return quern__history_fail_memory("the state of a world");
    quern__byte_writer writer = quern__page_writer(&history->store, snapshot->rest);
    put_rest(world, &writer);
    assert(!writer.has_failed);
    return quern__build_kept(history, snapshot);
}

quern_result quern__prepare_rest(quern__history *history, const quern__snapshot *snapshot,
                                 quern__archetype *const *archetypes)
{
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->rest);
    quern_result result = quern__reactions_prepare(&history->world->storage, archetypes, &reader);
    if (result == QUERN_OK) result = quern__events_prepare(history->world, &history->event_blocks, &reader);
    return result == QUERN_OK ? quern__prepare_kept(history, snapshot) : result;
}

void quern__undo_rest(quern__history *history)
{
    quern__events_undo(history->world, &history->event_blocks);
    quern__undo_kept(history);
}

void quern__put_back_rest(quern__history *history, const quern__snapshot *snapshot)
{
    quern_world *world = history->world;
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->rest);
    quern__reactions_take(&world->storage, &reader);
    quern__events_take(history, &snapshot->event_values, &reader);
    take_numbers(world, &reader);
    assert(!reader.has_failed);
    quern__put_back_kept(history);
    world->restore_count++;
    for (quern__query *query = world->storage.first_query; query != NULL; query = query->next)
        if (query->world != NULL) query->seen_version = 0;
}
