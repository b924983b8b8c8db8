/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A tower defence: foes walk along a road, and towers shoot at the first one that they reach. Towers of a kind share their
 * values, look at all foes in the order of their way, and find those in a cell by an index. A hook of the foes'
 * sprites stands for a renderer whose objects live as long as a foe. The result is the same on any number of threads, which
 * is the argument of the program. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 40, HEIGHT = 12, FRAMES = 900 };

typedef struct Point {
    float x, y;
} Point;

typedef struct Road {
    QUERN_LIST(Point) points; /* one list, which all foes share until one changes its own */
} Road;

typedef struct Foe {
    float walked, speed;
    int32_t cell;
} Foe;

typedef struct Health {
    int32_t points;
} Health;

typedef struct Sprite {
    uint32_t number; /* of the renderer's object */
} Sprite;

typedef struct Tower {
    uint32_t rest; /* frames until it may shoot */
} Tower;

/* What all towers of a kind have once. */
typedef struct Kind {
    float reach;
    int32_t damage;
    uint32_t rest;
    bool hits_cell; /* all foes in the cell of the target */
    char letter;
} Kind;

typedef struct Score {
    int32_t killed, escaped;
} Score;

typedef struct Game {
    quern_world *world;
    quern_schedule *schedule;
    quern_component health;
    quern_resource score;
    quern_index *cells;
    quern_prefab foe;
    uint32_t sprite_count, last_sprite; /* of the renderer */
} Game;

/* ---------------------------------------------------------------------------------------- the renderer */

static void get_sprite(quern_world *world, quern_entity entity, void *value, void *user_data)
{
    Game *game = user_data;
    Sprite *sprite = value;
    (void)world, (void)entity;
    sprite->number = ++game->last_sprite;
    game->sprite_count++;
}

static void return_sprite(quern_world *world, quern_entity entity, void *value, void *user_data)
{
    (void)world, (void)entity, (void)value;
    ((Game *)user_data)->sprite_count--;
}

/* --------------------------------------------------------------------------------------------- systems */

static void send_foe(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    (void)view;
    QUERN_MUST(quern_commands_spawn(quern_context_commands(context), game->foe, NULL, NULL));
}

static Point point_on(const Road *road, float walked)
{
    const Point *at = road->points.items;
    for (uint32_t i = 1; i < road->points.list.count; i++, at++) {
        const float dx = at[1].x - at[0].x, dy = at[1].y - at[0].y; /* one of them is 0 */
        const float length = (dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy);
        if (walked < length) return (Point){at->x + dx / length * walked, at->y + dy / length * walked};
        walked -= length;
    }
    return *at;
}

/* Moves the foes, also those that `send_foe` has created in this frame. */
QUERN_SYSTEM(walk, (Foe, foe), (Point, place), (const Road, road))
{
    QUERN_ROWS(i)
    {
        foe[i].walked += foe[i].speed;
        place[i] = point_on(&road[i], foe[i].walked);
        foe[i].cell = (int32_t)place[i].y * WIDTH + (int32_t)place[i].x;
    }
}

/* Adds up the damage that a tower does to a foe; other towers hit it in the same frame. */
static void hit(quern_context *context, quern_entity foe, int32_t damage)
{
    const Game *game = quern_context_user_data(context);
    QUERN_MUST(quern_commands_accumulate(quern_context_commands(context), foe, game->health,
                                         &(Health){-damage}, QUERN_SUM));
}

static bool shoot_at_first(quern_context *context, Point from, const Kind *kind)
{
    const Game *game = quern_context_user_data(context);
    QUERN_EACH_VIEW(context, 0, it) /* the foe that has walked farthest is the first */
    {
        const Foe *foes = QUERN_COLUMN(&it.view, 0, const Foe);
        const Point *places = QUERN_COLUMN(&it.view, 1, const Point);
        for (uint32_t foe_count = it.view.count, k = 0; k < foe_count; k++) {
            const float dx = places[k].x - from.x, dy = places[k].y - from.y;
            if (dx * dx + dy * dy > kind->reach * kind->reach) continue;
            const quern_entity *targets = &it.view.entities[k];
            uint32_t count = 1;
            if (kind->hits_cell)
                count = quern_context_find(context, game->cells, (uint64_t)foes[k].cell, &targets);
            for (uint32_t t = 0; t < count; t++)
                hit(context, targets[t], kind->damage);
            return true;
        }
    }
    return false;
}

QUERN_SYSTEM(shoot, (Tower, tower), (const Point, place))
{
    const Kind *const *kinds = QUERN_UP(view, 2, Kind);
    QUERN_ROWS(i)
    {
        if (tower[i].rest > 0)
            tower[i].rest--;
        else if (shoot_at_first(context, place[i], kinds[i]))
            tower[i].rest = kinds[i]->rest;
    }
}

/* A reaction to health that was set. */
QUERN_SYSTEM(die, (const Health, health))
{
    Score *score = QUERN_RESOURCE(context, Score);
    QUERN_ROWS(i)
    {
        if (health[i].points > 0) continue;
        QUERN_MUST(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
        score->killed++;
    }
}

QUERN_SYSTEM(escape, (const Foe, foe), (const Point, place))
{
    Score *score = QUERN_RESOURCE(context, Score);
    QUERN_ROWS(i)
    {
        if (place[i].x < WIDTH - 1 || foe[i].walked == 0) continue;
        QUERN_MUST(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
        score->escaped++;
    }
}

/* ---------------------------------------------------------------------------------------------- world */

static void register_types(Game *game)
{
    quern_world *world = game->world;
    quern_component road, sprite;
    QUERN_MUST(QUERN_REGISTER(world, Point, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Foe, walked, speed, cell));
    QUERN_MUST(QUERN_REGISTER(world, Health, points));
    QUERN_MUST(QUERN_REGISTER(world, Tower, rest));
    QUERN_MUST(QUERN_REGISTER(world, Kind, reach, damage, rest, hits_cell, letter));
    QUERN_MUST(quern_component_register(
        world,
        &(quern_component_def){QUERN_TYPE(Road), .fields = {QUERN_LIST_FIELD(Road, points, Point, x, y)}},
        &road));
    QUERN_MUST(quern_component_register(
        world,
        &(quern_component_def){
            QUERN_TYPE(Sprite), .fields = QUERN_FIELDS(Sprite, number),
            .entity_hooks = {.on_add = get_sprite, .on_remove = return_sprite, .user_data = game}},
        &sprite));
    QUERN_MUST(QUERN_RESOURCE_REGISTER_FIELDS(world, &game->score, Score, killed, escaped));
    game->health = QUERN_ID(world, Health);
}

static void make_foe(Game *game)
{
    static const Point corners[] = {{0, 2}, {30, 2}, {30, 6}, {5, 6}, {5, 10}, {WIDTH - 1, 10}};
    quern_world *world = game->world;
    Road road = {.points.list.count = 0};
    quern_entity foe;
    for (uint32_t i = 0; i < sizeof corners / sizeof *corners; i++)
        QUERN_MUST(QUERN_LIST_PUSH(&road.points, Point, corners[i]));
    QUERN_MUST(QUERN_CREATE(world, &foe, QUERN_VALUE(Foe, 0, .125f, 0), QUERN_VALUE(Point, 0, 2),
                            QUERN_VALUE(Health, 30), QUERN_VALUE(Sprite, 0)));
    QUERN_MUST(quern_entity_set(world, foe, quern_component_find(world, "Road"), &road));
    QUERN_MUST(quern_prefab_capture(world, foe, &game->foe));
    QUERN_MUST(quern_entity_destroy(world, foe));
    quern_list_free(&road.points.list);
}

static void build_towers(Game *game)
{
    static const Kind kinds[3] = {{4, 3, 5, false, 'a'}, {6, 8, 25, true, 'c'}, {9, 20, 60, false, 's'}};
    static const Point places[] = {{8, 4},  {16, 4}, {24, 4}, {33, 4}, {12, 8},
                                   {20, 8}, {28, 8}, {36, 8}, {3, 8}};
    quern_entity shared[3];
    for (int k = 0; k < 3; k++) {
        const quern_prefab_value value = {.component = QUERN_ID(game->world, Kind), .value = &kinds[k]};
        QUERN_MUST(quern_shared_create(game->world, &value, 1, &shared[k]));
    }
    for (uint32_t i = 0; i < sizeof places / sizeof *places; i++) {
        quern_entity tower;
        QUERN_MUST(QUERN_CREATE(game->world, &tower, QUERN_VALUE(Tower, 0),
                                QUERN_VALUE(Point, places[i].x, places[i].y)));
        QUERN_MUST(quern_entity_relate(game->world, tower, quern_world_shared(game->world), shared[i % 3]));
    }
}

static void add_systems(Game *game)
{
    quern_world *world = game->world;
    quern_schedule *schedule = game->schedule;
    const quern_term foes = quern_term_read(QUERN_ID(world, Foe)),
                     places = quern_term_read(QUERN_ID(world, Point));
    QUERN_MUST(quern_schedule_add_system(
        schedule, &(quern_system_def){.name = "send_foe", .run = send_foe, .every = 7}, NULL));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, walk, .after_commands_of = {"send_foe"}));
    QUERN_MUST(QUERN_ADD_SYSTEM(
        schedule, shoot, .terms = {quern_term_shared(world, QUERN_ID(world, Kind))},
        .indexes = {game->cells},
        .queries = {
            {.terms = {foes, places},
             .order_by = {.component = QUERN_ID(world, Foe), .field = "walked", .descending = true}}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, die, .reacts_to = QUERN_REACT_SET,
                                .resources = {{game->score, QUERN_ACCESS_WRITE}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, escape, .resources = {{game->score, QUERN_ACCESS_WRITE}}));
}

static void open_game(Game *game)
{
    memset(game, 0, sizeof *game);
    QUERN_MUST(quern_world_create(NULL, &game->world));
    QUERN_MUST(
        quern_schedule_create(game->world, &(quern_schedule_def){.user_data = game}, &game->schedule));
    register_types(game);
    QUERN_MUST(quern_index_create(game->world,
                                  &(quern_index_def){.name = "foes by cell",
                                                     .component = QUERN_ID(game->world, Foe),
                                                     .field = "cell"},
                                  &game->cells));
    make_foe(game);
    build_towers(game);
    add_systems(game);
}

static void draw(const Game *game)
{
    char picture[HEIGHT][WIDTH + 1];
    quern_query *query;
    memset(picture, '.', sizeof picture);
    QUERN_MUST(quern_query_create(
        game->world,
        &(quern_query_def){.terms = {quern_term_read(QUERN_ID(game->world, Point)),
                                     quern_term_optional(QUERN_ID(game->world, Tower), QUERN_ACCESS_NONE)}},
        &query));
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);) {
        const Point *places = QUERN_COLUMN(&it.view, 0, const Point);
        for (uint32_t count = it.view.count, i = 0; i < count; i++) {
            const Kind *kind =
                quern_entity_get_shared(game->world, it.view.entities[i], QUERN_ID(game->world, Kind));
            char letter = 'o';
            if (kind != NULL) letter = kind->letter;
            picture[(int)places[i].y][(int)places[i].x] = letter;
        }
    }
    quern_query_destroy(query);
    for (int y = 0; y < HEIGHT; y++)
        printf("%.*s\n", WIDTH, picture[y]);
}

int main(int argc, char **argv)
{
    static Game game;
    quern_jobs *jobs;
    open_game(&game);
    QUERN_MUST(quern_jobs_create(
        &(quern_jobs_def){.thread_count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0}, &jobs));
    for (int frame = 0; frame < FRAMES; frame++)
        QUERN_MUST(quern_schedule_run(game.schedule, jobs, 1.0 / 60));
    draw(&game);
    const Score *score = quern_resource_get(game.world, game.score);
    printf("%d killed, %d escaped, %u sprites\n", (int)score->killed, (int)score->escaped,
           (unsigned)game.sprite_count);
    printf("hash 0x%016llx\n", (unsigned long long)quern_world_hash(game.world));
    quern_schedule_destroy(game.schedule);
    quern_index_destroy(game.cells);
    quern_jobs_destroy(jobs);
    quern_world_destroy(game.world);
    printf("%u sprites at the end\n", (unsigned)game.sprite_count);
    return EXIT_SUCCESS;
}
