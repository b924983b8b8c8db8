/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Replays the bytes as a recording: unchanged, and with corrected checksums, so that the code behind the
 * checksums is reached. The world must stay valid, and reports must name existing objects of the world. */

#include "tests/fuzz/fuzz.h"
#include "tests/sched/replay/reseal.h"

#include <quern/quern.h>

typedef struct health {
    int32_t points;
} health;

typedef struct input {
    int32_t push;
    quern_entity victim;
} input;

typedef struct game {
    quern_world *world;
    quern_schedule *schedule;
    quern_component health, tag;
    quern_resource input, raw;
} game;

static void act(quern_context *context, const quern_view *view)
{
    const game *it = quern_context_user_data(context);
    const input *in = quern_context_resource(context, it->input);
    quern_commands *commands = quern_context_commands(context);
    health *all = QUERN_COLUMN(view, 0, health);
    for (uint32_t i = 0; i < view->count; i++)
        all[i].points = (int32_t)((uint32_t)all[i].points * 3 + (uint32_t)in->push);
    if (in->push % 2 != 0) quern_commands_create_many(commands, &it->health, NULL, 1, 1, NULL);
    if (!quern_entity_is_null(in->victim)) quern_commands_destroy(commands, in->victim);
}

static void open_game(game *it)
{
    quern_relation leader;
    quern_entity first, entity;
    const quern_schedule_def def = {.phases = {"act"}};
    must(quern_world_create(NULL, &it->world));
    must(quern_component_register(it->world,
                                  &(quern_component_def){QUERN_TYPE(health),
                                                         .fields = QUERN_FIELDS(health, points),
                                                         .can_disable = true},
                                  &it->health));
    must(quern_component_register(it->world, &(quern_component_def){.name = "tag"}, &it->tag));
    must(quern_relation_register(it->world, &(quern_relation_def){.name = "leader"}, &leader));
    must(QUERN_RESOURCE_REGISTER_FIELDS(it->world, &it->input, input, push, victim));
    must(quern_resource_register(it->world, &(quern_resource_def){.name = "raw", .size_bytes = 3},
                                 &it->raw));
    const quern_component components[] = {it->health, it->tag};
    must(quern_entity_create_with(it->world, components, NULL, 2, &first));
    for (uint32_t i = 0; i < 3; i++)
        must(quern_entity_create_with(it->world, components, NULL, 1, &entity));
    must(quern_entity_relate(it->world, entity, leader, first));
    must(quern_entity_set_component_enabled(it->world, entity, it->health, false));
    must(quern_schedule_create(it->world, &def, &it->schedule));
    must(quern_schedule_add_system(it->schedule,
                                   &(quern_system_def){.name = "act",
                                                       .run = act,
                                                       .terms = {quern_term_write(it->health)},
                                                       .resources = {{it->input, QUERN_ACCESS_READ}},
                                                       .user_data = it},
                                   NULL));
}

static void play(const void *bytes, size_t size)
{
    game it;
    quern_replay_report report;
    open_game(&it);
    const quern_result result =
        quern_replay_run(it.schedule, NULL, quern_source_bytes(bytes, size), NULL, &report);
    require((result == QUERN_ERROR_DIVERGED) == (report.difference != QUERN_REPLAY_NONE));
    require((report.text[0] != '\0') == (report.difference != QUERN_REPLAY_NONE));
    if (!quern_entity_is_null(report.entity)) require(quern_entity_is_alive(it.world, report.entity));
    if (!quern_component_is_null(report.component))
        require(quern_component_name(it.world, report.component) != NULL);
    must(quern_world_validate(it.world));
    quern_schedule_destroy(it.schedule);
    quern_world_destroy(it.world);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char nothing[] = "";
    char *copy = fuzz_copy(bytes, size);
    play(size > 0 ? copy : nothing, size);
    replay_reseal((unsigned char *)copy, size);
    play(size > 0 ? copy : nothing, size);
    free(copy);
    return 0;
}
