/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The rest of a world in a snapshot, on a tape: what reactions are still to be told, events that wait, and
 * some numbers. And commands that wait: see kept.h. */

#include "core/history/kept.h"
#include "core/history/waiting.h"
#include "core/query/query_internal.h"

/* ------------------------------------------------------------------------------------------- numbers */

static void put_numbers(const quern_world *world, quern__tape *tape)
{
    quern__tape_put_word(tape, world->next_serial);
    quern__tape_put_word(tape, world->next_visit);
    quern__tape_put_word(tape, world->visit_count);
}

static void take_numbers(quern_world *world, quern__tape *tape)
{
    world->next_serial = quern__tape_take_word(tape);
    world->next_visit = (uint32_t)quern__tape_take_word(tape);
    world->visit_count = quern__tape_take_word(tape);
}

/* ------------------------------------------------------------------------------------------- all of it */

static void put_rest(const quern_world *world, quern__tape *tape)
{
    quern__reactions_put(&world->storage, tape);
    quern__events_put(world, tape);
    put_numbers(world, tape);
}

quern_result quern__build_rest(quern__history *history, quern__snapshot *snapshot)
{
    const quern_world *world = history->world;
    quern_result result = quern__reactions_check_saved(&world->storage);
    if (result == QUERN_OK) result = quern__events_copy_values(history, &snapshot->event_values);
    if (result != QUERN_OK) return result;
    quern__tape tape = {0};
    put_rest(world, &tape);
    snapshot->rest = quern__page_take(&history->store, tape.length_bytes);
    if (snapshot->rest == 0) return quern__history_fail_memory("the state of a world");
    tape = (quern__tape){.bytes = quern__page_memory(&history->store, snapshot->rest)};
    put_rest(world, &tape);
    return quern__build_kept(history, snapshot);
}

quern_result quern__prepare_rest(quern__history *history, const quern__snapshot *snapshot,
                                 quern__archetype *const *archetypes)
{
    quern__tape tape = {.bytes = quern__page_memory(&history->store, snapshot->rest)};
    quern_result result = quern__reactions_prepare(&history->world->storage, archetypes, &tape);
    if (result == QUERN_OK) result = quern__events_prepare(history->world, &history->event_blocks, &tape);
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
    quern__tape tape = {.bytes = quern__page_memory(&history->store, snapshot->rest)};
    quern__reactions_take(&world->storage, &tape);
    quern__events_take(history, &snapshot->event_values, &tape);
    take_numbers(world, &tape);
    quern__put_back_kept(history);
    world->restore_count++;
    for (quern__query *query = world->storage.first_query; query != NULL; query = query->next)
        if (query->world != NULL) query->seen_version = 0;
}
