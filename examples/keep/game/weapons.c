/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Phase "fire": loaded barrels fire when their turret points at its target. Damage and chill are
 * accumulated, because many weapons hit one enemy in the same step, on several threads. */

#include "check.h"
#include "kinds.h"
#include "random.h"
#include "systems.h"

#include <math.h>

static const float step_seconds = 1.0f / STEPS_PER_SECOND;

enum { FIRE_SPOT, FIRE_BARREL, FIRE_LOADED, FIRE_TURRET, FIRE_WEAPON };

static Point muzzle_of(const quern_world2 *spot, const Barrel *barrel)
{
    const float tip[2] = {barrel->length, 0};
    float out[2];
    quern_world2_point(spot, tip, out);
    return (Point){out[0], out[1]};
}

/* Returns the direction of the barrel, of length 1. */
static Point direction_of(const quern_world2 *spot)
{
    return (Point){spot->m[0][0], spot->m[1][0]};
}

static void unload(const quern_view *view, uint32_t row, float recoil)
{
    Barrel *barrel = &QUERN_COLUMN(view, FIRE_BARREL, Barrel)[row];
    Loaded *loaded = &QUERN_COLUMN(view, FIRE_LOADED, Loaded)[row];
    barrel->recoil = recoil;
    loaded->seconds = loaded->load_seconds;
    quern_view_set_enabled(view, FIRE_LOADED, row, false);
}

static void emit_shot_effects(quern_context *context, const Game *game, Point at, Point ahead, CueKind cue,
                              uint32_t color)
{
    quern_emit(quern_context_emitter(context, game->types.cue), &(Cue){cue, at.x});
    quern_emit(quern_context_emitter(context, game->types.burst), &(Burst){.x = at.x,
                                                                           .y = at.y,
                                                                           .push_x = ahead.x * 4,
                                                                           .push_y = ahead.y * 4,
                                                                           .speed = 1.5f,
                                                                           .span = 0.22f,
                                                                           .size = 0.14f,
                                                                           .count = 5,
                                                                           .color = color,
                                                                           .kind = PARTICLE_SPARK});
}

/* Returns a definition with the terms that all weapons share. */
static quern_system_def weapon_def(Game *game, const char *name, quern_view_callback *run,
                                   quern_component weapon)
{
    const Types *types = &game->types;
    return (quern_system_def){.name = name,
                              .phase = PHASE_FIRE,
                              .run = run,
                              .user_data = game,
                              .terms = {[FIRE_SPOT] = quern_term_read(types->spot),
                                        [FIRE_BARREL] = quern_term_write(types->barrel),
                                        [FIRE_LOADED] = quern_term_write(types->loaded),
                                        [FIRE_TURRET] = quern_term_up(types->turret, types->parent),
                                        [FIRE_WEAPON] = quern_term_read(weapon)},
                              .emits = {types->cue, types->burst}};
}

/* ------------------------------------------------------------------------------------------------- gun */

static void shoot(quern_context *context, const Game *game, const Gun *gun, Point at, Point ahead,
                  uint64_t bits)
{
    const Types *types = &game->types;
    const float aside = gun->spread * quern_random_signed(bits);
    const Place place = {at.x, at.y};
    const Velocity velocity = {(ahead.x - ahead.y * aside) * gun->speed,
                               (ahead.y + ahead.x * aside) * gun->speed};
    const Bullet bullet = {gun->damage, gun->range / gun->speed};
    const quern_component components[] = {types->place, types->velocity, types->bullet};
    const void *values[] = {&place, &velocity, &bullet};
    quern_commands_create_with(quern_context_commands(context), components, values, 3);
    emit_shot_effects(context, game, at, ahead, CUE_SHOT, 0xFFE2A0FF);
}

static void fire_guns(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const quern_world2 *spots = QUERN_COLUMN(view, FIRE_SPOT, const quern_world2);
    const Barrel *barrels = QUERN_COLUMN(view, FIRE_BARREL, const Barrel);
    const Turret *const *turrets = QUERN_UP(view, FIRE_TURRET, Turret);
    const Gun *guns = QUERN_COLUMN(view, FIRE_WEAPON, const Gun);
    const Keep *keep = quern_context_resource(context, game->types.keep);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        if (!turrets[i]->is_locked) continue;
        const uint64_t bits = random_hash(quern_entity_seed(game->world, view->entities[i]), keep->step);
        shoot(context, game, &guns[i], muzzle_of(&spots[i], &barrels[i]), direction_of(&spots[i]), bits);
        unload(view, i, 0.22f);
    }
}

/* ---------------------------------------------------------------------------------------------- mortar */

static void lob(quern_context *context, const Game *game, const Mortar *mortar, Point at,
                const Turret *turret)
{
    const Types *types = &game->types;
    const float x = turret->aim_x - at.x, y = turret->aim_y - at.y;
    const Shell shell = {.from_x = at.x,
                         .from_y = at.y,
                         .to_x = turret->aim_x,
                         .to_y = turret->aim_y,
                         .span = fmaxf(sqrtf(x * x + y * y) / mortar->speed, 0.2f),
                         .damage = mortar->damage,
                         .radius = mortar->radius};
    const Place place = {at.x, at.y};
    const quern_component components[] = {types->place, types->shell};
    const void *values[] = {&place, &shell};
    quern_commands_create_with(quern_context_commands(context), components, values, 2);
}

static void fire_mortars(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const quern_world2 *spots = QUERN_COLUMN(view, FIRE_SPOT, const quern_world2);
    const Barrel *barrels = QUERN_COLUMN(view, FIRE_BARREL, const Barrel);
    const Turret *const *turrets = QUERN_UP(view, FIRE_TURRET, Turret);
    const Mortar *mortars = QUERN_COLUMN(view, FIRE_WEAPON, const Mortar);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        if (!turrets[i]->is_locked) continue;
        const Point at = muzzle_of(&spots[i], &barrels[i]);
        lob(context, game, &mortars[i], at, turrets[i]);
        emit_shot_effects(context, game, at, direction_of(&spots[i]), CUE_MORTAR, 0xFFB070FF);
        unload(view, i, 0.35f);
    }
}

/* ------------------------------------------------------------------------------------------------ bell */

/* Damages and chills all enemies in its radius. Chills do not add up; the longest counts. */
static bool ring(quern_context *context, const Game *game, const Bell *bell, Point at)
{
    const Types *types = &game->types;
    quern_commands *commands = quern_context_commands(context);
    const quern_grid *grid = quern_context_grid(context, types->grid);
    const Health loss = {-bell->damage};
    const Chill chill = {bell->chill_seconds};
    quern_grid_iterator near = quern_grid_radius(grid, &at.x, bell->radius);
    bool has_hit = false;
    for (; quern_grid_next(&near); has_hit = true) {
        const quern_entity enemy = near.item->entity;
        if (!quern_context_is_alive(context, enemy)) continue;
        check(quern_commands_accumulate(commands, enemy, types->health, &loss, QUERN_SUM));
        check(quern_commands_accumulate(commands, enemy, types->chill, &chill, QUERN_MAX));
        check(quern_commands_set_component_enabled(commands, enemy, types->chill, true));
    }
    return has_hit;
}

static void ring_bells(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const quern_world2 *spots = QUERN_COLUMN(view, FIRE_SPOT, const quern_world2);
    const Turret *const *turrets = QUERN_UP(view, FIRE_TURRET, Turret);
    const Bell *bells = QUERN_COLUMN(view, FIRE_WEAPON, const Bell);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        const Point at = {spots[i].m[0][2], spots[i].m[1][2]};
        if (!turrets[i]->is_locked || !ring(context, game, &bells[i], at)) continue;
        const Burst wave = {.x = at.x,
                            .y = at.y,
                            .span = 0.7f,
                            .size = bells[i].radius * 2,
                            .count = 1,
                            .color = tower_rules[TOWER_BELL].color,
                            .kind = PARTICLE_RING};
        quern_emit(quern_context_emitter(context, game->types.burst), &wave);
        quern_emit(quern_context_emitter(context, game->types.cue), &(Cue){CUE_BELL, at.x});
        unload(view, i, 0);
    }
}

/* ----------------------------------------------------------------------------------------------- prism */

enum { PRISM_SPOT, PRISM_BARREL, PRISM_BEAM, PRISM_TURRET, PRISM_PRISM };

/* Lets a prism shine: its beam is enabled while it has a target. */
static void shine(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const Types *types = &game->types;
    const quern_world2 *spots = QUERN_COLUMN(view, PRISM_SPOT, const quern_world2);
    const Barrel *barrels = QUERN_COLUMN(view, PRISM_BARREL, const Barrel);
    Beam *beams = QUERN_COLUMN(view, PRISM_BEAM, Beam);
    const Turret *const *turrets = QUERN_UP(view, PRISM_TURRET, Turret);
    const Prism *prisms = QUERN_COLUMN(view, PRISM_PRISM, const Prism);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        const Turret *turret = turrets[i];
        quern_view_set_enabled(view, PRISM_BEAM, i, turret->is_locked != 0);
        if (!turret->is_locked) continue;
        const Point from = muzzle_of(&spots[i], &barrels[i]);
        const Health loss = {-prisms[i].damage_per_second * step_seconds};
        beams[i] = (Beam){from.x, from.y, turret->aim_x, turret->aim_y};
        check(quern_commands_accumulate(quern_context_commands(context), turret->target, types->health,
                                        &loss, QUERN_SUM));
        quern_emit(quern_context_emitter(context, types->burst), &(Burst){.x = turret->aim_x,
                                                                          .y = turret->aim_y,
                                                                          .speed = 3.5f,
                                                                          .span = 0.5f,
                                                                          .size = 0.13f,
                                                                          .count = 4,
                                                                          .color = 0x8CF0FFFF,
                                                                          .kind = PARTICLE_SPARK});
    }
}

static void add_prisms(Game *game)
{
    const Types *types = &game->types;
    const quern_system_def def = {.name = "shine",
                                  .phase = PHASE_FIRE,
                                  .run = shine,
                                  .user_data = game,
                                  .terms = {[PRISM_SPOT] = quern_term_read(types->spot),
                                            [PRISM_BARREL] = quern_term_read(types->barrel),
                                            [PRISM_BEAM] = quern_term_either(quern_term_write(types->beam)),
                                            [PRISM_TURRET] = quern_term_up(types->turret, types->parent),
                                            [PRISM_PRISM] = quern_term_read(types->prism)},
                                  .emits = {types->burst}};
    check(quern_schedule_add_system(game->schedule, &def, NULL));
}

void weapons_add(Game *game)
{
    quern_system_def guns = weapon_def(game, "fire guns", fire_guns, game->types.gun);
    const quern_system_def mortars = weapon_def(game, "fire mortars", fire_mortars, game->types.mortar);
    quern_system_def bells = weapon_def(game, "ring bells", ring_bells, game->types.bell);
    guns.resources[0] = (quern_resource_access){game->types.keep, QUERN_ACCESS_READ};
    bells.resources[0] = (quern_resource_access){game->types.grid, QUERN_ACCESS_READ};
    check(quern_schedule_add_system(game->schedule, &guns, NULL));
    check(quern_schedule_add_system(game->schedule, &mortars, NULL));
    check(quern_schedule_add_system(game->schedule, &bells, NULL));
    add_prisms(game);
}
