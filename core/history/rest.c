/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The rest of a world in a snapshot, on a tape: what reactions are still to be told, events that wait, and
 * some numbers. */

#include "core/history/history.h"
#include "core/history/waiting.h"

#include "core/world/world_commands.h"

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

static quern_result check_world(const quern_world *world)
{
    if (quern__world_has_commands(world))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "commands of code between frames wait to be applied: flush them first "
                           "(quern_world_flush)");
    const quern_result result = quern__reactions_check_saved(&world->storage);
    return result == QUERN_OK ? quern__events_check_saved(world) : result;
}

quern_result quern__build_rest(quern__history *history, quern__snapshot *snapshot)
{
    const quern_world *world = history->world;
    const quern_result result = check_world(world);
    if (result != QUERN_OK) return result;
    quern__tape tape = {0};
    put_rest(world, &tape);
    snapshot->rest = quern__page_take(&history->store, tape.length_bytes);
    if (snapshot->rest == 0) return quern__history_fail_memory("the state of a world");
    tape = (quern__tape){.bytes = quern__page_memory(&history->store, snapshot->rest)};
    put_rest(world, &tape);
    return QUERN_OK;
}

quern_result quern__prepare_rest(quern__history *history, const quern__snapshot *snapshot,
                                 quern__archetype *const *archetypes)
{
    quern__tape tape = {.bytes = quern__page_memory(&history->store, snapshot->rest)};
    quern_result result = quern__reactions_prepare(&history->world->storage, archetypes, &tape);
    return result == QUERN_OK ? quern__events_prepare(history->world, &history->event_blocks, &tape)
                              : result;
}

void quern__undo_rest(quern__history *history)
{
    quern__events_undo(history->world, &history->event_blocks);
}

void quern__put_back_rest(quern__history *history, const quern__snapshot *snapshot)
{
    quern_world *world = history->world;
    quern__tape tape = {.bytes = quern__page_memory(&history->store, snapshot->rest)};
    quern__reactions_take(&world->storage, &tape);
    quern__events_take(world, &history->event_blocks, &tape);
    take_numbers(world, &tape);
    quern__world_discard_commands(world);
    world->restore_count++;
    for (quern__query *query = world->storage.first_query; query != NULL; query = query->next)
        if (query->world != NULL) query->seen_version = 0;
}
