/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Loads the bytes as an archive with the state of a schedule: unchanged, and with corrected checksums. If they are
 * accepted, the world is valid, and its frames run. */

#include "tests/core/archive/reseal.h"
#include "tests/fuzz/fuzz.h"

#include <quern/quern.h>

typedef struct unit {
    uint64_t number;
    quern_entity friend;
} unit;

typedef struct game {
    quern_world *world;
    quern_schedule *schedule;
    quern_component unit, heat;
    quern_event hit;
} game;

static void act(quern_context *context, const quern_view *view)
{
    const game *it = quern_context_user_data(context);
    unit *units = QUERN_COLUMN(view, 0, unit);
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < view->count; i++) {
        units[i].number = units[i].number * 5 + 1;
        if (units[i].number % 3 == 0) quern_commands_destroy(commands, view->entities[i]);
        if (units[i].number % 3 == 1)
            quern_commands_set(commands, view->entities[i], it->heat, &units[i].number);
        quern_context_emit(context, it->hit, &units[i], 1);
    }
}

static void read_hits(quern_context *context)
{
    const game *it = quern_context_user_data(context);
    quern_event_iterator hits;
    quern_context_events(context, it->hit, &hits);
    while (quern_event_next(&hits))
        for (uint32_t i = 0; i < hits.block.count; i++)
            quern_commands_set(quern_context_commands(context), ((const unit *)hits.block.values)[i].friend,
                               it->heat, &((const unit *)hits.block.values)[i].number);
}

static void see(quern_context *context, const quern_view *view)
{
    (void)context;
    (void)quern_view_read(view, 0);
}

static void open_game(game *it)
{
    must(quern_world_create(NULL, &it->world));
    must(QUERN_COMPONENT_REGISTER_FIELDS(it->world, &it->unit, unit, number, friend));
    must(quern_component_register(
        it->world,
        &(quern_component_def){.name = "heat", .size_bytes = 8, .alignment_bytes = 8, .row_changes = true},
        &it->heat));
    must(QUERN_EVENT_REGISTER_FIELDS(it->world, &it->hit, unit, number, friend));
    must(quern_schedule_create(it->world, &(quern_schedule_def){.phases = {"a", "b"}}, &it->schedule));
    must(quern_schedule_set_fixed_step(it->schedule, 0, 0.03, 4));
    const quern_system_def defs[] = {
        {.name = "act", .run = act, .terms = {quern_term_write(it->unit)}, .emits = {it->hit}},
        {.name = "read",
         .begin = read_hits,
         .phase = 1,
         .interval_seconds = 0.05,
         .reads_events = {it->hit}},
        {.name = "changed",
         .run = see,
         .phase = 1,
         .terms = {quern_term_changed(quern_term_read(it->heat))}},
        {.name = "react",
         .run = see,
         .phase = 1,
         .terms = {quern_term_read(it->unit)},
         .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED}};
    for (uint32_t i = 0; i < sizeof defs / sizeof defs[0]; i++) {
        quern_system_def def = defs[i];
        def.user_data = it;
        must(quern_schedule_add_system(it->schedule, &def, NULL));
    }
}

static void play(const void *bytes, size_t size)
{
    game it;
    open_game(&it);
    const uint64_t hash = quern_world_hash(it.world);
    const quern_load_def def = {.schedules = {it.schedule}};
    if (quern_world_load(it.world, quern_source_bytes(bytes, size), &def, NULL) != QUERN_OK)
        require(quern_world_hash(it.world) == hash);
    must(quern_world_validate(it.world));
    for (uint32_t i = 0; i < 3; i++)
        must(quern_schedule_run(it.schedule, NULL, 0.02));
    must(quern_world_validate(it.world));
    quern_schedule_destroy(it.schedule);
    quern_world_destroy(it.world);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char nothing[] = "";
    char *copy = fuzz_copy(bytes, size);
    play(size > 0 ? copy : nothing, size);
    reseal(copy, size);
    play(size > 0 ? copy : nothing, size);
    free(copy);
    return 0;
}
