/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "game.h"

#include "check.h"
#include "kinds.h"
#include "systems.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const float plot_size = 2;

/* ---------------------------------------------------------------------------------- names of the level */

static void make_roads(Game *game)
{
    game->roads = check_memory(calloc(game->level.road_count, sizeof *game->roads));
    for (uint32_t i = 0; i < game->level.road_count; i++) {
        const LevelRoad *road = &game->level.roads[i];
        road_make(&game->roads[i], road->width, road->points, road->point_count);
    }
}

/* Creates an entity for each road, so that the road can be found by its name. */
static void name_roads(Game *game)
{
    const Types *types = &game->types;
    quern_entity folder, entity;
    check(quern_entity_create(game->world, &folder));
    check(quern_entity_set_name(game->world, folder, "roads"));
    for (uint32_t i = 0; i < game->level.road_count; i++) {
        const LevelRoad *road = &game->level.roads[i];
        const void *values[] = {&(RoadNumber){i}};
        check(quern_entity_create_with(game->world, &types->road_number, values, 1, &entity));
        check(quern_entity_relate(game->world, entity, types->parent, folder));
        check(quern_entity_set_name(game->world, entity, road->name));
    }
}

/* Returns a component of the entity with a name below a folder; NULL if there is none. */
static const void *find_named(Game *game, const char *folder, const char *name, quern_component component)
{
    const quern_entity parent = quern_entity_find(game->world, folder);
    const quern_entity entity = quern_entity_find_child(game->world, parent, name);
    return quern_entity_is_null(entity) ? NULL : quern_entity_get(game->world, entity, component);
}

static bool resolve_group(Game *game, LevelGroup *group, uint32_t wave, uint32_t i, char *message,
                          size_t bytes)
{
    const Enemy *enemy = find_named(game, "enemies", group->enemy, game->types.enemy);
    const RoadNumber *road = find_named(game, "roads", group->road, game->types.road_number);
    if (enemy == NULL)
        snprintf(message, bytes, "waves[%u].groups[%u]: there is no enemy '%s'", wave, i, group->enemy);
    else if (road == NULL)
        snprintf(message, bytes, "waves[%u].groups[%u]: there is no road '%s'", wave, i, group->road);
    else {
        group->kind = enemy->kind;
        group->road_number = road->number;
    }
    return enemy != NULL && road != NULL;
}

static bool resolve_waves(Game *game, char *message, size_t bytes)
{
    for (uint32_t wave = 0; wave < game->level.wave_count; wave++)
        for (uint32_t i = 0; i < game->level.waves[wave].group_count; i++)
            if (!resolve_group(game, &game->level.waves[wave].groups[i], wave, i, message, bytes))
                return false;
    return true;
}

/* Builds the towers of the level, which cost nothing. */
static bool build_towers(Game *game, char *message, size_t bytes)
{
    Keep *keep = quern_resource_get(game->world, game->types.keep);
    for (uint32_t i = 0; i < game->level.tower_count; i++) {
        const LevelTower *given = &game->level.towers[i];
        const Tower *tower = find_named(game, "towers", given->tower, game->types.tower);
        if (tower == NULL) {
            snprintf(message, bytes, "towers[%u]: there is no tower '%s'", i, given->tower);
            return false;
        }
        keep->gold += tower->cost;
        const char *error = game_act(game, &(Action){ACTION_BUILD, (TowerKind)tower->kind, given->at});
        if (error != NULL) {
            snprintf(message, bytes, "towers[%u], at [%g, %g]: %s", i, (double)given->at.x,
                     (double)given->at.y, error);
            return false;
        }
    }
    return true;
}

/* Returns whether every road is short enough for its table. */
static bool check_roads(const Game *game, char *message, size_t bytes)
{
    for (uint32_t i = 0; i < game->level.road_count; i++)
        if (game->roads[i].step_count == ROAD_STEPS_MAX) {
            snprintf(message, bytes, "roads[%u]: the road is too long", i);
            return false;
        }
    return true;
}

/* ------------------------------------------------------------------------------------- begin and end */

/* Creates the grid of enemies, with the payload that turrets need to aim. */
static void create_grid(Game *game)
{
    Types *types = &game->types;
    const quern_grid_def def = {.name = "enemies",
                                .position = types->place,
                                .planar = true,
                                .cell_size = 1.5f,
                                .max = {game->level.width, game->level.height},
                                .payload = types->enemy};
    check(quern_grid_create(game->world, &def, &game->grid));
    types->grid = quern_grid_resource(game->grid);
}

static void create_query(Game *game)
{
    const quern_query_def def = {
        .terms = {quern_term_read(game->types.local), quern_term_with(game->types.tower)}};
    check(quern_query_create(game->world, &def, &game->bases));
}

static void create_schedule(Game *game)
{
    const quern_schedule_def def = {.trace = game->trace,
                                    .user_data = game,
                                    .phases = {[PHASE_WAVES] = "waves",
                                               [PHASE_MOVE] = "move",
                                               [PHASE_AIM] = "aim",
                                               [PHASE_FIRE] = "fire",
                                               [PHASE_EVENTS] = "events",
                                               [PHASE_SHOW] = "show"}};
    check(quern_schedule_create(game->world, &def, &game->schedule));
    orders_add(game);
    enemies_add(game);
    bullets_add(game);
    particles_add(game);
    check(quern_grid_add_systems(game->grid, game->schedule, PHASE_AIM));
    towers_add(game);
    check(quern_transform_add_systems(game->transform, game->schedule, PHASE_AIM));
    weapons_add(game);
    waves_add(game);
    check(quern_schedule_compile(game->schedule));
}

static void init_state(Game *game)
{
    Keep *keep = quern_resource_get(game->world, game->types.keep);
    *keep = (Keep){.gold = (int32_t)game->level.gold,
                   .lives = (int32_t)game->level.lives,
                   .rest_seconds = game->level.rest_seconds};
}

void game_create_to_load(Game *game, const Level *level, uint32_t player_count)
{
    *game = (Game){.level = *level, .player_count = player_count, .trace = game->trace};
    check(quern_world_create(NULL, &game->world));
    check(quern_transform_register(game->world, &(quern_transform_def){.planar = true}, &game->transform));
    types_register(&game->types, game->world, game->transform);
    create_grid(game);
    create_query(game);
    make_roads(game);
    create_schedule(game);
}

bool game_finish_loading(Game *game, char *message, size_t message_bytes)
{
    return blueprints_capture(game, message, message_bytes) && resolve_waves(game, message, message_bytes);
}

bool game_create(Game *game, const Level *level, char *message, size_t message_bytes)
{
    return game_create_shared(game, level, 0, message, message_bytes);
}

bool game_create_shared(Game *game, const Level *level, uint32_t player_count, char *message,
                        size_t message_bytes)
{
    game_create_to_load(game, level, player_count);
    name_roads(game);
    blueprints_make(game);
    init_state(game);
    fireflies_make(game);
    if (check_roads(game, message, message_bytes) && resolve_waves(game, message, message_bytes) &&
        build_towers(game, message, message_bytes))
        return true;
    game_destroy(game);
    return false;
}

void game_destroy(Game *game)
{
    quern_schedule_destroy(game->schedule);
    quern_query_destroy(game->bases);
    quern_grid_destroy(game->grid);
    quern_transform_release(game->transform);
    quern_world_destroy(game->world);
    free(game->roads);
}

void game_step(Game *game, quern_jobs *jobs)
{
    check(quern_schedule_run(game->schedule, jobs, 1.0 / STEPS_PER_SECOND));
}

const Keep *game_state(Game *game)
{
    return quern_resource_get(game->world, game->types.keep);
}

/* --------------------------------------------------------------------------------- actions of players */

Point game_plot(Point point)
{
    return (Point){(floorf(point.x / plot_size) + 0.5f) * plot_size,
                   (floorf(point.y / plot_size) + 0.5f) * plot_size};
}

quern_entity game_tower_at(Game *game, Point at)
{
    const Point plot = game_plot(at);
    quern_entity found = quern_entity_null();
    quern_query_iterator it = quern_query_iterate(game->bases);
    while (quern_query_next(&it)) {
        const quern_local2 *locals = QUERN_COLUMN(&it.view, 0, const quern_local2);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            if (locals[i].position[0] == plot.x && locals[i].position[1] == plot.y)
                found = it.view.entities[i];
    }
    return found;
}

const char *game_build_error(Game *game, TowerKind tower, Point at)
{
    const Point plot = game_plot(at);
    const float half = plot_size / 2;
    if (game_state(game)->state != KEEP_PLAYING) return "the game is over";
    if (plot.x < half || plot.y < half || plot.x > game->level.width - half ||
        plot.y > game->level.height - half)
        return "that is outside of the field";
    for (uint32_t i = 0; i < game->level.road_count; i++)
        if (road_distance(&game->roads[i], plot) < game->roads[i].width / 2 + half * 0.9f)
            return "that is too near to a road";
    if (!quern_entity_is_null(game_tower_at(game, plot))) return "a tower stands there";
    if (game_state(game)->gold < tower_rules[tower].cost) return "that takes more gold";
    return NULL;
}

/* Emits a burst of particles and a sound. Called between steps. */
static void emit_effects(Game *game, Point at, CueKind cue, uint32_t color)
{
    const Burst dust = {.x = at.x,
                        .y = at.y,
                        .speed = 4,
                        .span = 0.7f,
                        .size = 0.2f,
                        .count = 40,
                        .color = color,
                        .kind = PARTICLE_SPARK};
    const Burst ring = {
        .x = at.x, .y = at.y, .span = 0.4f, .size = 3, .count = 1, .color = color, .kind = PARTICLE_RING};
    check(quern_world_emit(game->world, game->types.burst, (const Burst[]){dust, ring}, 2));
    check(quern_world_emit(game->world, game->types.cue, &(Cue){cue, at.x}, 1));
}

static const char *build(Game *game, TowerKind tower, Point at)
{
    const char *error = game_build_error(game, tower, at);
    if (error != NULL) return error;
    const Point plot = game_plot(at);
    quern_local2 local = quern_local2_identity();
    local.position[0] = plot.x;
    local.position[1] = plot.y;
    const quern_spawn_def def = {.overrides = {{.component = game->types.local, .column = &local}}};
    check(quern_prefab_spawn(game->world, game->towers[tower], &def, NULL));
    ((Keep *)quern_resource_get(game->world, game->types.keep))->gold -= tower_rules[tower].cost;
    emit_effects(game, plot, CUE_BUILD, tower_rules[tower].color);
    return NULL;
}

/* Sells a tower. Destroying the base also destroys its descendants, the turret and the barrels. */
static const char *sell(Game *game, Point at)
{
    const quern_entity base = game_tower_at(game, at);
    if (quern_entity_is_null(base)) return "there is no tower to sell";
    const Tower *tower = quern_entity_get(game->world, base, game->types.tower);
    ((Keep *)quern_resource_get(game->world, game->types.keep))->gold += tower->cost / 2;
    check(quern_entity_destroy(game->world, base));
    emit_effects(game, game_plot(at), CUE_SELL, 0xC8B890FF);
    return NULL;
}

static const char *call_wave(Game *game)
{
    Keep *keep = quern_resource_get(game->world, game->types.keep);
    if (keep->state != KEEP_PLAYING) return "the game is over";
    if (keep->wave == game->level.wave_count) return "that was the last wave";
    keep->is_called = 1;
    return NULL;
}

const char *game_act(Game *game, const Action *action)
{
    if (action->kind == ACTION_BUILD) return build(game, action->tower, action->at);
    return action->kind == ACTION_SELL ? sell(game, action->at) : call_wave(game);
}
