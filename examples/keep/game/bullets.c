/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Bullets fly straight (phase "move") and hit the first enemy that they touch. Shells burst where they
 * land, and hit everything around (phase "fire"). */

#include "check.h"
#include "kinds.h"
#include "systems.h"

#include <math.h>

static const float step_seconds = 1.0f / STEPS_PER_SECOND;
static const float bullet_radius = 0.14f;

/* ------------------------------------------------------------------------------------------------- fly */

QUERN_SYSTEM(fly, (Place, places), (const Velocity, velocities), (Bullet, bullets))
{
    const Game *game = quern_context_user_data(context);
    quern_emitter *bursts = quern_context_emitter(context, game->types.burst);
    QUERN_ROWS(i)
    {
        const Burst trail = {.x = places[i].x,
                             .y = places[i].y,
                             .speed = 0.3f,
                             .span = 0.6f,
                             .size = 0.1f,
                             .count = 2,
                             .color = 0xFFC870FF,
                             .kind = PARTICLE_EMBER};
        quern_emit(bursts, &trail);
        places[i].x += velocities[i].x * step_seconds;
        places[i].y += velocities[i].y * step_seconds;
        bullets[i].seconds -= step_seconds;
        if (bullets[i].seconds <= 0)
            check(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
    }
}

/* ----------------------------------------------------------------------------------------------- strike */

/* Returns the nearest enemy that the bullet touches, or NULL. */
static const quern_grid_item *find_touched_enemy(const quern_grid *grid, Place at)
{
    const quern_grid_item *nearest = NULL;
    const float largest = enemy_rules[ENEMY_GIANT].radius + bullet_radius;
    float least = INFINITY;
    quern_grid_iterator near = quern_grid_radius(grid, &at.x, largest);
    while (quern_grid_next(&near)) {
        const Enemy *enemy = quern_grid_payload(grid, near.item);
        const float reach = enemy_rules[enemy->kind].radius + bullet_radius;
        if (near.square > reach * reach || near.square >= least) continue;
        least = near.square;
        nearest = near.item;
    }
    return nearest;
}

QUERN_SYSTEM(strike, (const Place, places), (const Bullet, bullets))
{
    const Game *game = quern_context_user_data(context);
    const Types *types = &game->types;
    quern_commands *commands = quern_context_commands(context);
    const quern_grid *grid = quern_context_grid(context, types->grid);
    QUERN_ROWS(i)
    {
        const quern_grid_item *hit = find_touched_enemy(grid, places[i]);
        if (hit == NULL) continue;
        const Health loss = {-bullets[i].damage};
        check(quern_commands_accumulate(commands, hit->entity, types->health, &loss, QUERN_SUM));
        check(quern_commands_destroy(commands, view->entities[i]));
        emit_burst(context, game,
                   (Burst){.x = places[i].x,
                           .y = places[i].y,
                           .speed = 5,
                           .span = 0.9f,
                           .size = 0.12f,
                           .count = 16,
                           .color = 0xFFD890FF,
                           .kind = PARTICLE_SPARK});
    }
}

/* --------------------------------------------------------------------------------------------- shells */

QUERN_SYSTEM(glide, (Place, places), (Shell, shells))
{
    QUERN_ROWS(i)
    {
        shells[i].seconds += step_seconds;
        const float part = fminf(shells[i].seconds / shells[i].span, 1);
        places[i].x = shells[i].from_x + (shells[i].to_x - shells[i].from_x) * part;
        places[i].y = shells[i].from_y + (shells[i].to_y - shells[i].from_y) * part;
    }
}

/* Damages all enemies in the radius; the damage at the edge is half of that in the centre. */
static void splash(quern_context *context, const Game *game, const Shell *shell)
{
    const float center[2] = {shell->to_x, shell->to_y}, square = shell->radius * shell->radius;
    quern_grid_iterator near =
        quern_grid_radius(quern_context_grid(context, game->types.grid), center, shell->radius);
    while (quern_grid_next(&near)) {
        const Health loss = {-shell->damage * (1 - 0.5f * near.square / square)};
        check(quern_commands_accumulate(quern_context_commands(context), near.item->entity,
                                        game->types.health, &loss, QUERN_SUM));
    }
}

static void emit_blast_effects(quern_context *context, const Game *game, const Shell *shell)
{
    const Burst fire = {.x = shell->to_x,
                        .y = shell->to_y,
                        .speed = 6,
                        .span = 0.8f,
                        .size = 0.28f,
                        .count = 120,
                        .color = 0xFF8C3CFF,
                        .kind = PARTICLE_SPARK};
    Burst smoke = fire, ring = fire;
    smoke.speed = 1.4f;
    smoke.span = 1.6f;
    smoke.size = 1.0f;
    smoke.count = 16;
    smoke.color = 0x2A2428FF;
    smoke.kind = PARTICLE_SMOKE;
    ring.count = 1;
    ring.span = 0.45f;
    ring.size = shell->radius * 2.4f;
    ring.kind = PARTICLE_RING;
    quern_emitter *bursts = quern_context_emitter(context, game->types.burst);
    quern_emit(bursts, &smoke);
    quern_emit(bursts, &fire);
    quern_emit(bursts, &ring);
    emit_cue(context, game, CUE_BLAST, shell->to_x);
}

QUERN_SYSTEM(land, (const Shell, shells))
{
    const Game *game = quern_context_user_data(context);
    QUERN_ROWS(i)
    {
        if (shells[i].seconds < shells[i].span) continue;
        splash(context, game, &shells[i]);
        emit_blast_effects(context, game, &shells[i]);
        check(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
    }
}

void bullets_add(Game *game)
{
    const Types *types = &game->types;
    check(QUERN_ADD_SYSTEM(game->schedule, fly, .phase = PHASE_MOVE, .emits = {types->burst}));
    check(QUERN_ADD_SYSTEM(game->schedule, strike, .phase = PHASE_FIRE,
                           .resources = {{types->grid, QUERN_ACCESS_READ}}, .emits = {types->burst}));
    check(QUERN_ADD_SYSTEM(game->schedule, glide, .phase = PHASE_MOVE));
    check(QUERN_ADD_SYSTEM(game->schedule, land, .phase = PHASE_FIRE,
                           .resources = {{types->grid, QUERN_ACCESS_READ}},
                           .emits = {types->burst, types->cue}));
}
