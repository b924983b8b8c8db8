/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A game loop with a profile and a trace. docs/profiling.md explains it. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Ball {
    float height, speed;
    int32_t frames_left;
} Ball;

typedef struct Game {
    quern_world *world;
    quern_jobs *jobs;
    quern_schedule *schedule;
    quern_component ball;
    quern_trace *trace;
    uint32_t draw_zone, bounce_zone;
} Game;

enum { FRAMES = 300, TRACE_BEGIN = 200, TRACE_END = 220, OVERLAY_FRAMES = 60, BALLS_PER_FRAME = 200 };

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

/* This system has no terms, so it is called once per frame. */
static void spawn(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    Ball balls[BALLS_PER_FRAME];
    const void *columns[] = {balls};
    (void)view;
    for (int32_t i = 0; i < BALLS_PER_FRAME; i++)
        balls[i] = (Ball){.height = (float)i, .frames_left = 60 + i};
    check(quern_commands_create_many(quern_context_commands(context), &game->ball, columns, 1,
                                     BALLS_PER_FRAME, NULL));
}

/* Runs on several threads at a time. Each worker records its zones on its own track. */
static void fall(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const float dt = (float)quern_context_delta_seconds(context);
    Ball *balls = QUERN_COLUMN(view, 0, Ball);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        balls[i].speed -= 9.81f * dt;
        balls[i].height += balls[i].speed * dt;
        if (--balls[i].frames_left == 0)
            check(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
    }
    const quern_trace_zone zone =
        quern_trace_zone_begin(game->trace, quern_context_worker_index(context), game->bounce_zone);
    for (uint32_t i = 0; i < count; i++)
        if (balls[i].height < 0 && balls[i].speed < 0) balls[i].speed = -balls[i].speed;
    quern_trace_zone_end(&zone);
}

/* Creates a trace with one track per worker: the pool has at most one thread per processor. */
static void open_trace(Game *game)
{
    const quern_trace_def def = {.track_count = quern_processor_count()};
    check(quern_trace_create(&def, &game->trace));
    check(quern_trace_add_name(game->trace, "draw", &game->draw_zone));
    check(quern_trace_add_name(game->trace, "bounce", &game->bounce_zone));
}

/* The pool and the schedule write to the same trace: the pool records steals and sleeps, the schedule
 * records frames and systems. */
static void open_schedule(Game *game)
{
    quern_jobs_def jobs_def = {.trace = game->trace};
    check(quern_jobs_create(&jobs_def, &game->jobs));
    const quern_schedule_def schedule_def = {.trace = game->trace};
    check(quern_schedule_create(game->world, &schedule_def, &game->schedule));

    check(quern_schedule_set_profiling(game->schedule, true));
    const quern_hardware_source source = quern_hardware_source_default();
    if (quern_schedule_set_counting(game->schedule, &source) != QUERN_OK) puts(quern_error_message());
}

static void add_systems(Game *game)
{
    const quern_system_def systems[] = {
        {.name = "spawn", .run = spawn, .user_data = game},
        {.name = "fall", .run = fall, .terms = {quern_term_write(game->ball)}, .user_data = game},
    };
    for (uint32_t i = 0; i < 2; i++)
        check(quern_schedule_add_system(game->schedule, &systems[i], NULL));
}

/* The thread that runs frames is worker 0, so track 0 belongs to it, between frames as well. */
static void draw(const Game *game)
{
    const quern_trace_zone zone = quern_trace_zone_begin(game->trace, 0, game->draw_zone);
    quern_frame_profile frame;
    check(quern_schedule_get_frame_profile(game->schedule, &frame));
    if (frame.frame_index % OVERLAY_FRAMES == OVERLAY_FRAMES - 1)
        printf("frame %d: %.3f ms, of that sync points %.3f ms; %u threads busy for %.0f %%\n",
               (int)frame.frame_index, (double)frame.time_ns / 1e6, (double)frame.sync_ns / 1e6,
               frame.thread_count, 100 * frame.efficiency);
    quern_trace_zone_end(&zone);
}

/* usage: watch [FILE], which writes the trace of some frames to FILE */
int main(int argc, char **argv)
{
    Game game = {0};
    check(quern_world_create(NULL, &game.world));
    check(QUERN_COMPONENT_REGISTER(game.world, &game.ball, Ball));
    open_trace(&game);
    open_schedule(&game);
    add_systems(&game);
    for (int frame = 0; frame < FRAMES; frame++) {
        if (frame == TRACE_BEGIN) quern_trace_start(game.trace);
        if (frame == TRACE_END) quern_trace_stop(game.trace);
        check(quern_schedule_run(game.schedule, game.jobs, 1.0 / 60));
        draw(&game);
    }
    check(quern_schedule_write_profile(game.schedule, quern_sink_file(stdout)));
    if (argc > 1) check(quern_trace_save(game.trace, argv[1]));
    quern_trace_stats traced;
    check(quern_trace_get_stats(game.trace, &traced));
    printf("%d events traced\n", (int)traced.event_count);

    quern_schedule_destroy(game.schedule);
    quern_jobs_destroy(game.jobs);
    quern_trace_destroy(game.trace); /* after the pool and the schedule, which record on it */
    quern_world_destroy(game.world);
    return EXIT_SUCCESS;
}
