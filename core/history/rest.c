/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The rest of a world in a snapshot: numbers, and what reactions are still to be told. On a tape, in the
 * order in which the functions below put it. */

#include "core/history/history.h"

#include "core/world/event.h"
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

/* ------------------------------------------------------------------------------------------ reactions */

/* Which there are; of each, whether it is pending; and of each watch, by archetype. Bits are with the planes
 * of archetypes. */
static void put_reactions(const quern__storage *storage, quern__tape *tape)
{
    const quern__reactions *reactions = &storage->reactions;
    quern__tape_put_word(tape, reactions->list.count);
    for (uint32_t i = 0; i < reactions->list.count; i++) {
        const quern__reaction *reaction = reactions->list.items[i];
        const uint8_t state = (uint8_t)(reaction == NULL ? 0 : 1 + reaction->is_pending);
        quern__tape_put(tape, &state, sizeof state);
    }
    for (uint32_t i = 0; i < reactions->list.count; i++) {
        const quern__reaction *reaction = reactions->list.items[i];
        for (uint32_t k = 0; reaction != NULL && k < reaction->watches.count; k++)
            quern__tape_put(tape, &reaction->watches.items[k]->is_pending, sizeof(bool));
    }
}

static quern_result check_reactions(const quern__storage *storage, quern__tape *tape)
{
    const quern__reactions *reactions = &storage->reactions;
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

static void take_reactions(quern__storage *storage, quern__tape *tape)
{
    quern__reactions *reactions = &storage->reactions;
    (void)quern__tape_take_word(tape);
    reactions->is_pending = false;
    for (uint32_t i = 0; i < reactions->list.count; i++) {
        uint8_t state;
        quern__tape_take(tape, &state, sizeof state);
        if (state == 0) continue;
        reactions->list.items[i]->is_pending = state == 2;
        reactions->is_pending |= state == 2;
    }
    for (uint32_t i = 0; i < reactions->list.count; i++) {
        const quern__reaction *reaction = reactions->list.items[i];
        for (uint32_t k = 0; reaction != NULL && k < reaction->watches.count; k++) {
            quern__watch *watch = reaction->watches.items[k];
            quern__removed_clear(&watch->removed);
            quern__tape_take(tape, &watch->is_pending, sizeof(bool));
        }
    }
}

/* ------------------------------------------------------------------------------------------- all of it */

static void put_rest(const quern_world *world, quern__tape *tape)
{
    put_reactions(&world->storage, tape);
    put_numbers(world, tape);
}

static quern_result check_copies(const quern__storage *storage)
{
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        if (quern__watches_have_copies(storage->archetypes.items[i]))
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "a reaction has not been told yet which entities went: run quern_world_react "
                "or a frame first");
    return QUERN_OK;
}

static quern_result check_world(const quern_world *world)
{
    if (quern__world_has_commands(world))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "commands of code between frames wait to be applied: flush them first "
                           "(quern_world_flush)");
    if (world->waiting_event_run_count > 0) return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "events wait");
    return check_copies(&world->storage);
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

quern_result quern__prepare_rest(quern__history *history, const quern__snapshot *snapshot)
{
    quern__tape tape = {.bytes = quern__page_memory(&history->store, snapshot->rest)};
    return check_reactions(&history->world->storage, &tape);
}

void quern__put_back_rest(quern__history *history, const quern__snapshot *snapshot)
{
    quern_world *world = history->world;
    quern__tape tape = {.bytes = quern__page_memory(&history->store, snapshot->rest)};
    take_reactions(&world->storage, &tape);
    take_numbers(world, &tape);
    quern__world_discard_commands(world);
    world->restore_count++;
    for (quern__query *query = world->storage.first_query; query != NULL; query = query->next)
        if (query->world != NULL) query->seen_version = 0;
}
