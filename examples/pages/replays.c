/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Keys {
    int32_t jump;
} Keys;

typedef struct Game {
    quern_world *world;
    quern_schedule *schedule;
    quern_component height;
    quern_resource keys;
} Game;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

static void jump(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const Keys *keys = quern_context_resource(context, game->keys);
    int32_t *heights = QUERN_COLUMN(view, 0, int32_t);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        heights[i] += keys->jump;
}

static void open_game(Game *game)
{
    check(quern_world_create(NULL, &game->world));
    check(QUERN_COMPONENT_REGISTER(game->world, &game->height, int32_t));
    check(QUERN_RESOURCE_REGISTER(game->world, &game->keys, Keys));
    check(quern_entity_create_with(game->world, &game->height, NULL, 1, NULL));
    check(quern_schedule_create(game->world, NULL, &game->schedule));
    const quern_system_def system = {.name = "jump",
                                     .run = jump,
                                     .terms = {quern_term_write(game->height)},
                                     .resources = {{game->keys, QUERN_ACCESS_READ}},
                                     .user_data = game};
    check(quern_schedule_add_system(game->schedule, &system, NULL));
}

static void close_game(Game *game)
{
    quern_schedule_destroy(game->schedule);
    quern_world_destroy(game->world);
}

static void play(quern_sink recording)
{
    Game game;
    quern_replay_recorder *recorder;
    open_game(&game);
    const quern_replay_recorder_def def = {.inputs = {game.keys}};
    check(quern_replay_recorder_create(game.schedule, recording, &def, &recorder));
    for (int frame = 0; frame < 10; frame++) {
        ((Keys *)quern_resource_get(game.world, game.keys))->jump = frame % 3;
        check(quern_replay_record(recorder, NULL, 1.0 / 60)); /* instead of quern_schedule_run */
    }
    check(quern_replay_finish(recorder));
    close_game(&game);
}

int main(void)
{
    Game game;
    quern_byte_buffer recording = {0};
    quern_replay_report report;
    play(quern_sink_bytes(&recording));
    open_game(&game);
    check(quern_replay_run(game.schedule, NULL, quern_source_bytes(recording.bytes, recording.size_bytes),
                           NULL, &report));
    printf("%u frames agree\n", (unsigned)report.frame_count);
    close_game(&game);
    quern_byte_buffer_release(&recording);
    return EXIT_SUCCESS;
}
