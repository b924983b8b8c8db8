/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* game: steps of the recorded game of examples/keep, a second of it after its first twenty. Each sample runs the same
 * steps: a history restores the game before it. There is no control. */

#include "bench/pool.h"
#include "bench/workloads.h"

#include "examples/keep/game/inputs.h"

#include <stdlib.h>

enum {
    SKIPPED_STEPS = 20 * STEPS_PER_SECOND,
    ABOUT_ENTITIES = 8000, /* most entities of the measured second */
    MESSAGE_BYTES = 256
};

typedef struct game_scene {
    Game game;
    Inputs inputs;
    quern_history *history; /* with the game after SKIPPED_STEPS */
    quern_jobs *jobs;
    uint32_t next_input;
} game_scene;

static uint32_t pass_count(uint32_t entity_count)
{
    return STEPS_PER_SECOND;
}

static void perform_inputs(game_scene *scene)
{
    char message[MESSAGE_BYTES];
    if (!inputs_replay(&scene->inputs, &scene->next_input, &scene->game, message, sizeof message))
        bench_die("the recorded game: %s", message);
}

static void run_game(void *state, uint32_t step_count)
{
    game_scene *scene = state;
    for (uint32_t step = 0; step < step_count; step++) {
        perform_inputs(scene);
        game_step(&scene->game, scene->jobs);
    }
}

static void *open_game(const bench_case *size)
{
    char message[MESSAGE_BYTES];
    Level level;
    game_scene *scene = bench_allocate(1, sizeof *scene);
    *scene = (game_scene){.next_input = 0};
    if (!level_load(&level, KEEP_LEVELS "/ford.json", message, sizeof message) ||
        !inputs_load(&scene->inputs, KEEP_LEVELS "/ford.txt", message, sizeof message) ||
        !game_create(&scene->game, &level, message, sizeof message))
        bench_die("the recorded game: %s", message);
    quern_bench_set_schedule(scene->game.schedule);
    scene->jobs = bench_jobs_create(size->thread_count);
    bench_jobs_wake(scene->jobs);
    run_game(scene, SKIPPED_STEPS);
    REQUIRE(quern_history_create(
        scene->game.world, &(quern_history_def){.schedules = {scene->game.schedule}, .frame_count = 1},
        &scene->history));
    REQUIRE(quern_history_save(scene->history, 0, scene->jobs));
    return scene;
}

static void enter_game(void *state)
{
    game_scene *scene = state;
    bench_jobs_wake(scene->jobs);
    REQUIRE(quern_history_restore(scene->history, 0, scene->jobs));
    scene->next_input = inputs_before(&scene->inputs, game_state(&scene->game)->step);
}

static quern_result capture_game(void *state, struct quern_frame_capture *capture)
{
    game_scene *scene = state;
    perform_inputs(scene);
    return quern_schedule_run_captured(scene->game.schedule, scene->jobs, 1.0 / STEPS_PER_SECOND, capture);
}

static uint64_t checksum_game(void *state)
{
    const game_scene *scene = state;
    return quern_world_hash(scene->game.world);
}

static void close_game(void *state)
{
    game_scene *scene = state;
    quern_history_destroy(scene->history);
    quern_jobs_destroy(scene->jobs);
    game_destroy(&scene->game);
    inputs_free(&scene->inputs);
    free(scene);
}

const bench_workload workload_game = {
    .name = "game",
    .summary = "steps of a recorded game (examples/keep)",
    .unit = "step",
    .entity_counts = {ABOUT_ENTITIES},
    .fixed_size = true,
    .frames = true,
    .pass_count = pass_count,
    .operation_count = bench_operations_per_frame,
    .subjects = {{open_game, enter_game, run_game, NULL, checksum_game, close_game, capture_game}},
    .subject_names = {"quern"},
};
