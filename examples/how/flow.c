/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The answers of docs/how.md on states of a game, and on work that takes longer than a frame, as one program: in the
 * menu nothing moves; in the game, miners ask for a way through a maze and walk it when they have it. */
#include <quern/kit/background.h>
#include <quern/kit/states.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------- background work */

enum { WIDTH = 48, HEIGHT = 32, CELLS = WIDTH * HEIGHT };

typedef struct Miner {
    uint32_t cell;
} Miner;

typedef struct WayRequest {
    uint32_t from, to; /* cells */
} WayRequest;

typedef struct Way {
    QUERN_LIST(uint32_t) cells; /* from the goal back to the first step */
} Way;

/* What one search remembers from step to step: a queue of cells, and from where each was reached, plus 1. */
typedef struct Search {
    uint32_t queue[CELLS], first, end, reached_from[CELLS];
} Search;

static bool is_wall(uint32_t cell)
{
    return cell % WIDTH % 4 == 3 && cell / WIDTH % 8 != cell % WIDTH / 4 % 8;
}

static void reach(Search *search, uint32_t cell, uint32_t from)
{
    if (search->reached_from[cell] != 0 || is_wall(cell)) return;
    search->reached_from[cell] = from + 1;
    search->queue[search->end++] = cell;
}

static bool search_way(void *user_data, quern_background_step *step)
{
    const WayRequest *wanted = step->request;
    Search *search = step->state;
    Way *way = step->result;
    (void)user_data;
    if (step->index == 0) reach(search, wanted->from, wanted->from);
    for (uint32_t i = 0; i < 100 && search->reached_from[wanted->to] == 0; i++) {
        if (search->first == search->end) return true; /* there is no way */
        const uint32_t cell = search->queue[search->first++];
        if (cell % WIDTH > 0) reach(search, cell - 1, cell);
        if (cell % WIDTH < WIDTH - 1) reach(search, cell + 1, cell);
        if (cell >= WIDTH) reach(search, cell - WIDTH, cell);
        if (cell < CELLS - WIDTH) reach(search, cell + WIDTH, cell);
    }
    if (search->reached_from[wanted->to] == 0) return false; /* continue at the next step */
    for (uint32_t cell = wanted->to; cell != wanted->from; cell = search->reached_from[cell] - 1)
        QUERN_MUST(QUERN_LIST_PUSH(&way->cells, uint32_t, cell));
    return true;
}

QUERN_SYSTEM(walk, (Miner, miner), (Way, way))
{
    QUERN_ROWS(i)
    if (way[i].cells.list.count > 0)
        QUERN_MUST(quern_list_pop(&way[i].cells.list, sizeof(uint32_t), &miner[i].cell));
}

static quern_background *add_search(quern_world *world, quern_schedule *schedule, quern_jobs *jobs)
{
    quern_background *ways;
    QUERN_MUST(quern_background_create(world,
                                       &(quern_background_def){.name = "ways",
                                                               .jobs = jobs,
                                                               .request = QUERN_ID(world, WayRequest),
                                                               .result = QUERN_ID(world, Way),
                                                               .step = search_way,
                                                               .state_bytes = sizeof(Search),
                                                               .frames = 6},
                                       &ways));
    QUERN_MUST(quern_background_add_systems(ways, schedule, 0));
    return ways;
}

/* --------------------------------------------------------------------------------------------- states */

enum { MENU, PLAYING };

typedef struct Keys {
    bool start, stop;
} Keys;

typedef struct Game {
    quern_states *states;
    quern_resource keys;
} Game;

/* Runs in the first frame of the game. The miners are destroyed when the game is left. */
static void build_level(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    (void)view;
    for (uint32_t i = 0; i < 3; i++) {
        quern_entity miner;
        QUERN_MUST(QUERN_CREATE(commands, &miner, QUERN_VALUE(Miner, i * WIDTH),
                                QUERN_VALUE(WayRequest, i * WIDTH, CELLS - 2 - i)));
        QUERN_MUST(quern_commands_add(commands, miner, quern_states_tag(game->states, PLAYING), NULL));
    }
}

static void press_keys(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const Keys *keys = quern_context_resource(context, game->keys);
    (void)view;
    if (keys->start) QUERN_MUST(quern_context_set_state(context, game->states, PLAYING, false));
    if (keys->stop) QUERN_MUST(quern_context_set_state(context, game->states, MENU, false));
}

static void add_states(quern_world *world, quern_schedule *schedule, Game *game)
{
    QUERN_MUST(quern_states_create(
        world, &(quern_states_def){.name = "screen", .states = {[MENU] = "menu", [PLAYING] = "playing"}},
        &game->states));
    QUERN_MUST(quern_states_add_systems(game->states, schedule, 0));
    QUERN_MUST(quern_schedule_add_system(
        schedule,
        &(quern_system_def){
            .name = "build level", .run = build_level, .sets = {"enter playing"}, .user_data = game},
        NULL));
    QUERN_MUST(quern_schedule_add_system(
        schedule,
        &(quern_system_def){.name = "press keys",
                            .run = press_keys,
                            .resources = {{game->keys, QUERN_ACCESS_READ},
                                          {quern_states_resource(game->states), QUERN_ACCESS_WRITE}},
                            .user_data = game},
        NULL));
    QUERN_MUST(
        quern_schedule_add_system(schedule,
                                  &(quern_system_def){.name = "walk",
                                                      .run = walk,
                                                      .terms = {quern_term_write(QUERN_ID(world, Miner)),
                                                                quern_term_write(QUERN_ID(world, Way))},
                                                      .sets = {"playing"}},
                                  NULL));
}

/* ----------------------------------------------------------------------------------------------- main */

static uint32_t count_miners(quern_world *world)
{
    quern_query *query;
    QUERN_MUST(quern_query_create(
        world, &(quern_query_def){.terms = {quern_term_with(QUERN_ID(world, Miner))}}, &query));
    const uint64_t count = quern_query_count(query);
    quern_query_destroy(query);
    return (uint32_t)count;
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    Game game = {0};
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_jobs_create(NULL, &jobs));
    QUERN_MUST(QUERN_REGISTER(world, Miner, cell));
    QUERN_MUST(QUERN_REGISTER(world, WayRequest, from, to));
    quern_component way;
    QUERN_MUST(quern_component_register(
        world, &(quern_component_def){QUERN_TYPE(Way), .fields = {QUERN_LIST_FIELD(Way, cells, uint32_t)}},
        &way));
    QUERN_MUST(QUERN_RESOURCE_REGISTER_FIELDS(world, &game.keys, Keys, start, stop));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    add_states(world, schedule, &game);
    quern_background *ways = add_search(world, schedule, jobs);

    Keys *keys = quern_resource_get(world, game.keys);
    for (uint32_t frame = 0; frame < 120; frame++) {
        *keys = (Keys){.start = frame == 3, .stop = frame == 110};
        QUERN_MUST(quern_schedule_run(schedule, jobs, 1.0 / 60));
        if (frame % 30 == 0 || frame == 112)
            printf("frame %u: %s, %u miners\n", (unsigned)frame,
                   quern_states_get(game.states) == MENU ? "menu" : "playing",
                   (unsigned)count_miners(world));
    }
    quern_background_stats stats;
    QUERN_MUST(quern_background_get_stats(ways, &stats));
    printf("%llu ways found\n", (unsigned long long)stats.applied_count);

    quern_schedule_destroy(schedule);
    quern_background_destroy(ways);
    quern_states_destroy(game.states);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
