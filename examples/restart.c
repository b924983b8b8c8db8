/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A run that stops, and goes on in another process: the archive has the state of the schedule, so the frames after
 * loading are those that the first run would have had. docs/archives.md explains it. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Height {
    double metres, speed;
} Height;

typedef struct Game {
    quern_world *world;
    quern_schedule *schedule;
    quern_component height;
} Game;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

static void fall(quern_context *context, const quern_view *view)
{
    Height *heights = QUERN_COLUMN(view, 0, Height);
    const double seconds = quern_context_delta_seconds(context);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        heights[i].speed -= 9.81 * seconds;
        heights[i].metres += heights[i].speed * seconds;
    }
}

static void bounce(quern_context *context, const quern_view *view)
{
    Height *heights = QUERN_COLUMN(view, 0, Height);
    (void)context;
    for (uint32_t end = view->count, i = 0; i < end; i++)
        if (heights[i].metres < 0) heights[i].speed = -0.9 * heights[i].speed;
}

/* Types and systems are the program's part: it creates them before it loads. */
static void open_game(Game *game)
{
    check(quern_world_create(NULL, &game->world));
    check(QUERN_COMPONENT_REGISTER_FIELDS(game->world, &game->height, Height, metres, speed));
    check(quern_schedule_create(game->world, &(quern_schedule_def){.phases = {"physics", "rules"}},
                                &game->schedule));
    check(quern_schedule_set_fixed_step(game->schedule, 0, 1.0 / 90, 8));
    check(quern_schedule_add_system(
        game->schedule,
        &(quern_system_def){.name = "fall", .run = fall, .terms = {quern_term_write(game->height)}}, NULL));
    check(quern_schedule_add_system(game->schedule,
                                    &(quern_system_def){.name = "bounce",
                                                        .run = bounce,
                                                        .terms = {quern_term_write(game->height)},
                                                        .phase = 1,
                                                        .interval_seconds = 0.05},
                                    NULL));
}

static void close_game(const Game *game)
{
    quern_schedule_destroy(game->schedule);
    quern_world_destroy(game->world);
}

static void run(const Game *game, uint32_t frame_count)
{
    for (uint32_t i = 0; i < frame_count; i++)
        check(quern_schedule_run(game->schedule, NULL, 0.02));
}

/* Runs the first frames and saves. Returns the hash after all frames. */
static uint64_t play(quern_byte_buffer *archive)
{
    Game game;
    open_game(&game);
    for (uint32_t i = 0; i < 100; i++)
        check(quern_entity_create_with(game.world, &game.height, (const void *[]){&(Height){1 + i % 7, 0}},
                                       1, NULL));
    run(&game, 7);
    const quern_save_def with_schedule = {.schedules = {game.schedule}};
    check(quern_world_save(game.world, quern_sink_bytes(archive), &with_schedule));
    run(&game, 50);
    const uint64_t hash = quern_world_hash(game.world);
    close_game(&game);
    return hash;
}

static uint64_t go_on(const quern_byte_buffer *archive)
{
    Game game;
    open_game(&game);
    const quern_load_def with_schedule = {.schedules = {game.schedule}};
    check(quern_world_load(game.world, quern_source_bytes(archive->bytes, archive->size_bytes),
                           &with_schedule, NULL));
    run(&game, 50);
    const uint64_t hash = quern_world_hash(game.world);
    close_game(&game);
    return hash;
}

int main(void)
{
    quern_byte_buffer archive = {0};
    const uint64_t straight = play(&archive), restarted = go_on(&archive);
    printf("the restarted run %s\n", restarted == straight ? "is the same" : "differs");
    quern_byte_buffer_release(&archive);
    return restarted == straight ? EXIT_SUCCESS : EXIT_FAILURE;
}
