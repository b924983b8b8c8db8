/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Drift: types, systems and entities of the game. */
#include "game.h"

#include <quern/kit/random.h>

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------ systems */

/* The ship obeys the keys. The resource is declared, so frames depend on nothing hidden. */
QUERN_SYSTEM(steer, (Velocity, velocity))
{
    const Keys *keys = QUERN_RESOURCE(context, const Keys);
    QUERN_ROWS(i)
    {
        velocity[i].x = 16 * (float)(keys->right - keys->left);
        velocity[i].y = 8 * (float)(keys->down - keys->up);
    }
}

QUERN_SYSTEM(fire, (Gun, gun), (const Position, position))
{
    const Keys *keys = QUERN_RESOURCE(context, const Keys);
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        gun[i].wait_seconds -= seconds;
        if (!keys->fire || gun[i].wait_seconds > 0) continue;
        gun[i].wait_seconds = 0.25f;
        QUERN_MUST(QUERN_CREATE(quern_context_commands(context), NULL,
                                QUERN_VALUE(Position, position[i].x, position[i].y - 1),
                                QUERN_VALUE(Velocity, 0, -16), QUERN_VALUE(Glyph, '|'),
                                QUERN_VALUE(Lifetime, 0.7f), QUERN_TAG(Bullet)));
    }
}

QUERN_SYSTEM(move, (Position, position), (const Velocity, velocity))
{
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        position[i].x += velocity[i].x * seconds;
        position[i].y += velocity[i].y * seconds;
        if (position[i].x < 0) position[i].x += WIDTH;
        if (position[i].x >= WIDTH) position[i].x -= WIDTH;
        if (position[i].y < 0) position[i].y += HEIGHT;
        if (position[i].y >= HEIGHT) position[i].y -= HEIGHT;
    }
}

static void follow(quern_context *context, const quern_view *view)
{
    Position *positions = QUERN_COLUMN(view, 0, Position);
    const Offset *offsets = QUERN_COLUMN(view, 1, const Offset);
    const Position *const *parents = QUERN_UP(view, 2, Position);
    const uint32_t count = view->count;
    (void)context;
    for (uint32_t i = 0; i < count; i++) {
        positions[i].x = parents[i]->x + offsets[i].x;
        positions[i].y = parents[i]->y + offsets[i].y;
    }
}

/* Bullets break rocks. Several may hit one rock in one step: the sync point adds up the losses. */
QUERN_SYSTEM(hit, (const Position, position))
{
    const Game *game = quern_context_user_data(context);
    const quern_grid *grid = quern_context_grid(context, game->grid_resource);
    quern_commands *commands = quern_context_commands(context);
    QUERN_ROWS(i)
    {
        quern_grid_hit rock;
        if (quern_grid_nearest(grid, &position[i].x, 1, &rock, 1) == 0) continue;
        QUERN_MUST(
            quern_commands_accumulate(commands, rock.item->entity, game->health, &(Health){-1}, QUERN_SUM));
        QUERN_MUST(quern_commands_destroy(commands, view->entities[i]));
    }
}

/* Rocks break the ship, and themselves. */
QUERN_SYSTEM(crash, (const Position, position))
{
    const Game *game = quern_context_user_data(context);
    const quern_grid *grid = quern_context_grid(context, game->grid_resource);
    quern_commands *commands = quern_context_commands(context);
    QUERN_ROWS(i)
    {
        quern_grid_iterator near = quern_grid_radius(grid, &position[i].x, 1);
        while (quern_grid_next(&near)) {
            const quern_entity both[2] = {view->entities[i], near.item->entity};
            for (int k = 0; k < 2; k++)
                QUERN_MUST(
                    quern_commands_accumulate(commands, both[k], game->health, &(Health){-1}, QUERN_SUM));
        }
    }
}

QUERN_SYSTEM(expire, (Lifetime, lifetime))
{
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        lifetime[i].seconds -= seconds;
        if (lifetime[i].seconds <= 0)
            QUERN_MUST(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
    }
}

/* A reaction to health that was set. A rock takes its ore with it. */
QUERN_SYSTEM(bury, (const Health, health))
{
    const Game *game = quern_context_user_data(context);
    quern_emitter *broken = quern_context_emitter(context, game->broken);
    QUERN_ROWS(i)
    {
        if (health[i].points > 0) continue;
        QUERN_MUST(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
        quern_emit(broken, &(Broken){view->entities[i]});
    }
}

static void count_broken(quern_context *context, const quern_view *view)
{
    QUERN_RESOURCE(context, Score)->rocks += (int32_t)view->count;
}

/* ------------------------------------------------------------------------------------------- set-up */

static void register_types(Game *game)
{
    quern_world *world = game->world;
    QUERN_MUST(QUERN_REGISTER(world, Position, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Velocity, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Offset, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Glyph, symbol));
    QUERN_MUST(QUERN_REGISTER(world, Lifetime, seconds));
    QUERN_MUST(QUERN_REGISTER(world, Health, points));
    QUERN_MUST(QUERN_REGISTER(world, Gun, wait_seconds));
    QUERN_MUST(QUERN_REGISTER_TAGS(world, Rock, Bullet));
    QUERN_MUST(QUERN_RESOURCE_REGISTER_FIELDS(world, &game->keys, Keys, left, right, up, down, fire));
    QUERN_MUST(QUERN_RESOURCE_REGISTER_FIELDS(world, &game->score, Score, rocks));
    QUERN_MUST(QUERN_EVENT_REGISTER_FIELDS(world, &game->broken, Broken, rock));
    game->health = QUERN_ID(world, Health);
}

static void make_grid(Game *game)
{
    const quern_grid_def def = {.name = "rocks",
                                .position = QUERN_ID(game->world, Position),
                                .planar = true,
                                .cell_size = 2,
                                .with = {quern_component_find(game->world, "Rock")}};
    QUERN_MUST(quern_grid_create(game->world, &def, &game->grid));
    game->grid_resource = quern_grid_resource(game->grid);
}

static void add_follow(Game *game)
{
    const quern_component position = QUERN_ID(game->world, Position);
    const quern_relation parent = quern_world_parent(game->world);
    const quern_system_def def = {.name = "follow",
                                  .run = follow,
                                  .terms = {quern_term_write(position),
                                            quern_term_read(QUERN_ID(game->world, Offset)),
                                            quern_term_up(position, parent)},
                                  .levels = parent};
    QUERN_MUST(quern_schedule_add_system(game->schedule, &def, NULL));
}

static void add_systems(Game *game)
{
    quern_schedule *schedule = game->schedule;
    const quern_term gun = quern_term_with(QUERN_ID(game->world, Gun));
    const quern_term bullet = quern_term_with(quern_component_find(game->world, "Bullet"));
    const quern_system_def counting = {.name = "count_broken",
                                       .run = count_broken,
                                       .items = game->broken,
                                       .resources = {{game->score, QUERN_ACCESS_WRITE}},
                                       .flags = QUERN_SYSTEM_SERIAL};
    QUERN_MUST(
        QUERN_ADD_SYSTEM(schedule, steer, .terms = {gun}, .resources = {{game->keys, QUERN_ACCESS_READ}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, fire, .resources = {{game->keys, QUERN_ACCESS_READ}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, move));
    add_follow(game);
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, hit, .user_data = game, .terms = {bullet},
                                .resources = {{game->grid_resource, QUERN_ACCESS_READ}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, crash, .user_data = game, .terms = {gun},
                                .resources = {{game->grid_resource, QUERN_ACCESS_READ}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, expire));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, bury, .user_data = game, .reacts_to = QUERN_REACT_SET,
                                .emits = {game->broken}));
    QUERN_MUST(quern_schedule_add_system(schedule, &counting, NULL));
}

void game_open(Game *game, uint64_t shuffle_seed)
{
    *game = (Game){0};
    QUERN_MUST(quern_world_create(NULL, &game->world));
    register_types(game);
    make_grid(game);
    const quern_schedule_def def = {.phases = {"simulation"}, .shuffle_seed = shuffle_seed};
    QUERN_MUST(quern_schedule_create(game->world, &def, &game->schedule));
    QUERN_MUST(quern_grid_add_systems(game->grid, game->schedule, 0));
    add_systems(game);
    QUERN_MUST(quern_schedule_set_fixed_step(game->schedule, 0, 1.0 / 64, 8));
    const quern_query_def shown = {.terms = {quern_term_read(QUERN_ID(game->world, Position)),
                                             quern_term_read(QUERN_ID(game->world, Glyph))}};
    QUERN_MUST(quern_query_create(game->world, &shown, &game->glyphs));
    const quern_query_def rocks = {.terms = {quern_term_with(quern_component_find(game->world, "Rock"))}};
    QUERN_MUST(quern_query_create(game->world, &rocks, &game->rocks));
}

void game_close(Game *game)
{
    quern_query_destroy(game->glyphs);
    quern_query_destroy(game->rocks);
    quern_schedule_destroy(game->schedule);
    quern_grid_destroy(game->grid);
    quern_world_destroy(game->world);
}

static quern_prefab make_rock(quern_world *world)
{
    quern_entity rock, ore;
    quern_prefab prefab;
    QUERN_MUST(QUERN_CREATE(world, &rock, QUERN_VALUE(Position, 0, 0), QUERN_VALUE(Velocity, 0, 1),
                            QUERN_VALUE(Glyph, 'O'), QUERN_VALUE(Health, 1), QUERN_TAG(Rock)));
    QUERN_MUST(QUERN_CREATE(world, &ore, QUERN_VALUE(Position, 0, 0), QUERN_VALUE(Offset, 1, 0),
                            QUERN_VALUE(Glyph, '*')));
    QUERN_MUST(quern_entity_relate(world, ore, quern_world_parent(world), rock));
    QUERN_MUST(quern_prefab_capture(world, rock, &prefab));
    QUERN_MUST(quern_entity_destroy(world, rock));
    return prefab;
}

void game_populate(Game *game, int rock_count)
{
    quern_world *world = game->world;
    quern_entity ship;
    const quern_prefab rock = make_rock(world);
    for (int i = 0; i < rock_count; i++) {
        const uint64_t bits = quern_random(1, (uint64_t)i);
        const Position position = {WIDTH * quern_random_unit(bits),
                                   (HEIGHT - 4) * quern_random_unit(quern_random(bits, 1))};
        const Velocity velocity = {4 * quern_random_signed(quern_random(bits, 2)), 0.25f};
        const quern_spawn_def def = {
            .overrides = {{.component = QUERN_ID(world, Position), .column = &position},
                          {.component = QUERN_ID(world, Velocity), .column = &velocity}}};
        QUERN_MUST(quern_prefab_spawn(world, rock, &def, NULL));
    }
    QUERN_MUST(quern_prefab_destroy(world, rock));
    QUERN_MUST(QUERN_CREATE(world, &ship, QUERN_VALUE(Position, WIDTH / 2.0f, HEIGHT - 1),
                            QUERN_VALUE(Velocity, 0, 0), QUERN_VALUE(Glyph, 'A'), QUERN_VALUE(Health, 3),
                            QUERN_VALUE(Gun, 0)));
    QUERN_MUST(quern_entity_set_name(world, ship, "ship"));
}

/* ---------------------------------------------------------------------------------- between frames */

Keys *game_keys(const Game *game)
{
    return quern_resource_get(game->world, game->keys);
}

int game_score(const Game *game)
{
    return ((const Score *)quern_resource_get(game->world, game->score))->rocks;
}

int game_rock_count(const Game *game)
{
    return (int)quern_query_count(game->rocks);
}

bool game_is_on(const Game *game)
{
    return !quern_entity_is_null(quern_entity_find(game->world, "ship"));
}

void game_draw(const Game *game, char field[HEIGHT][WIDTH + 1])
{
    memset(field, ' ', (size_t)HEIGHT * (WIDTH + 1));
    quern_query_iterator it = quern_query_iterate(game->glyphs);
    while (quern_query_next(&it)) {
        const Position *positions = QUERN_COLUMN(&it.view, 0, const Position);
        const Glyph *glyphs = QUERN_COLUMN(&it.view, 1, const Glyph);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++) {
            const int x = (int)positions[i].x, y = (int)positions[i].y;
            if (x >= 0 && x < WIDTH && y >= 0 && y < HEIGHT) field[y][x] = (char)glyphs[i].symbol;
        }
    }
    for (int y = 0; y < HEIGHT; y++)
        field[y][WIDTH] = '\0';
}

void game_print(const Game *game)
{
    char field[HEIGHT][WIDTH + 1];
    game_draw(game, field);
    for (int y = 0; y < HEIGHT; y++)
        printf("|%s|\n", field[y]);
    printf("score %d, %d rocks left\n", game_score(game), game_rock_count(game));
}
