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

/* The terms of all weapons: the first columns, then that of the weapon, then the turret. */
enum { FIRE_SPOT, FIRE_BARREL, FIRE_LOADED, FIRE_WEAPON, FIRE_TURRET };

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

static void unload(const quern_view *view, uint32_t row, Loaded *loaded)
{
    loaded->seconds = loaded->load_seconds;
    quern_view_set_enabled(view, FIRE_LOADED, row, false);
}

static void emit_shot_effects(quern_context *context, const Game *game, Point at, Point ahead, CueKind cue,
                              uint32_t color)
{
    emit_cue(context, game, cue, at.x);
    emit_burst(context, game,
               (Burst){.x = at.x,
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
    quern_commands_create_with(quern_context_commands(context), components, values, 3, NULL);
    emit_shot_effects(context, game, at, ahead, CUE_SHOT, 0xFFE2A0FF);
}

QUERN_SYSTEM(fire_guns, (const quern_world2, spots), (Barrel, barrels), (Loaded, loaded), (const Gun, guns))
{
    const Game *game = quern_context_user_data(context);
    const Turret *const *turrets = QUERN_UP(view, FIRE_TURRET, Turret);
    const Keep *keep = quern_context_resource(context, game->types.keep);
    QUERN_ROWS(i)
    {
        if (!turrets[i]->is_locked) continue;
        const uint64_t bits = random_hash(quern_entity_seed(game->world, view->entities[i]), keep->step);
        shoot(context, game, &guns[i], muzzle_of(&spots[i], &barrels[i]), direction_of(&spots[i]), bits);
        barrels[i].recoil = 0.22f;
        unload(view, i, &loaded[i]);
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
    quern_commands_create_with(quern_context_commands(context), components, values, 2, NULL);
}

QUERN_SYSTEM(fire_mortars, (const quern_world2, spots), (Barrel, barrels), (Loaded, loaded),
             (const Mortar, mortars))
{
    const Game *game = quern_context_user_data(context);
    const Turret *const *turrets = QUERN_UP(view, FIRE_TURRET, Turret);
    QUERN_ROWS(i)
    {
        if (!turrets[i]->is_locked) continue;
        const Point at = muzzle_of(&spots[i], &barrels[i]);
        lob(context, game, &mortars[i], at, turrets[i]);
        emit_shot_effects(context, game, at, direction_of(&spots[i]), CUE_MORTAR, 0xFFB070FF);
        barrels[i].recoil = 0.35f;
        unload(view, i, &loaded[i]);
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

QUERN_SYSTEM(ring_bells, (const quern_world2, spots), (Barrel, barrels), (Loaded, loaded),
             (const Bell, bells))
{
    const Game *game = quern_context_user_data(context);
    const Turret *const *turrets = QUERN_UP(view, FIRE_TURRET, Turret);
    QUERN_ROWS(i)
    {
        const Point at = {spots[i].m[0][2], spots[i].m[1][2]};
        if (!turrets[i]->is_locked || !ring(context, game, &bells[i], at)) continue;
        const Burst wave = {.x = at.x,
                            .y = at.y,
                            .span = 0.7f,
                            .size = bells[i].radius * 2,
                            .count = 1,
                            .color = tower_rules[TOWER_BELL].color,
                            .kind = PARTICLE_RING};
        emit_burst(context, game, wave);
        emit_cue(context, game, CUE_BELL, at.x);
        barrels[i].recoil = 0;
        unload(view, i, &loaded[i]);
    }
}

/* ----------------------------------------------------------------------------------------------- prism */

enum { PRISM_SPOT, PRISM_BARREL, PRISM_BEAM, PRISM_PRISM, PRISM_TURRET };

/* Lets a prism shine: its beam is enabled while it has a target. */
QUERN_SYSTEM(shine, (const quern_world2, spots), (const Barrel, barrels), (Beam, beams),
             (const Prism, prisms))
{
    const Game *game = quern_context_user_data(context);
    const Types *types = &game->types;
    const Turret *const *turrets = QUERN_UP(view, PRISM_TURRET, Turret);
    QUERN_ROWS(i)
    {
        const Turret *turret = turrets[i];
        quern_view_set_enabled(view, PRISM_BEAM, i, turret->is_locked != 0);
        if (!turret->is_locked) continue;
        const Point from = muzzle_of(&spots[i], &barrels[i]);
        const Health loss = {-prisms[i].damage_per_second * step_seconds};
        beams[i] = (Beam){from.x, from.y, turret->aim_x, turret->aim_y};
        check(quern_commands_accumulate(quern_context_commands(context), turret->target, types->health,
                                        &loss, QUERN_SUM));
        emit_burst(context, game,
                   (Burst){.x = turret->aim_x,
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
    const Types *types = &game->types;
    const quern_term turret = quern_term_up(types->turret, types->parent);
    check(QUERN_ADD_SYSTEM(game->schedule, fire_guns, .phase = PHASE_FIRE, .terms = {turret},
                           .resources = {{types->keep, QUERN_ACCESS_READ}},
                           .emits = {types->cue, types->burst}));
    check(QUERN_ADD_SYSTEM(game->schedule, fire_mortars, .phase = PHASE_FIRE, .terms = {turret},
                           .emits = {types->cue, types->burst}));
    check(QUERN_ADD_SYSTEM(game->schedule, ring_bells, .phase = PHASE_FIRE, .terms = {turret},
                           .resources = {{types->grid, QUERN_ACCESS_READ}},
                           .emits = {types->cue, types->burst}));
    add_prisms(game);
}
