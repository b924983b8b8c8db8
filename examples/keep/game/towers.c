/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Towers: barrels are loaded and recover from recoil, turrets recover from stuns (phase "move"), choose
 * targets and turn to them (phase "aim"), and are stunned by curses (phase "events"). */

#include "check.h"
#include "systems.h"

#include <math.h>
#include <quern/kit/angle.h>

static const float step_seconds = 1.0f / STEPS_PER_SECOND;
static const float curse_radius = 4.5f, stun_seconds = 3.5f;
static const float locked_angle = 0.15f;
static const float circle = 6.2831853f;

/* -------------------------------------------------------------------------------------------- barrels */

/* Loads barrels. While a barrel is being loaded, its component Loaded is disabled: this system matches such
 * barrels, and systems that fire do not. */
QUERN_SYSTEM(reload, (Loaded, loaded))
{
    QUERN_EACH_ROW(view, i)
    {
        loaded[i].seconds -= step_seconds;
        if (loaded[i].seconds <= 0) quern_view_set_enabled(view, 0, i, true);
    }
}

/* Moves barrels back to their positions after recoil. */
QUERN_SYSTEM(return_barrels, (Barrel, barrels), (quern_local2, locals))
{
    QUERN_ROWS(i)
    {
        barrels[i].recoil *= 0.82f;
        locals[i].position[0] = barrels[i].rest - barrels[i].recoil;
    }
}

static void add_barrels(Game *game)
{
    const Types *types = &game->types;
    const quern_system_def reloading = {.name = "reload",
                                        .phase = PHASE_MOVE,
                                        .run = reload,
                                        .terms = {quern_term_if_disabled(quern_term_write(types->loaded))},
                                        .flags = QUERN_SYSTEM_WHOLE_CHUNKS};
    check(quern_schedule_add_system(game->schedule, &reloading, NULL));
    check(QUERN_ADD_SYSTEM(game->schedule, return_barrels, .phase = PHASE_MOVE));
}

/* ------------------------------------------------------------------------------------------------ stun */

enum { STUN_TURRET, STUN_STUN, STUN_SPOT };

static bool has_curses(quern_context *context)
{
    const Game *game = quern_context_user_data(context);
    return quern_context_event_count(context, game->types.curse) > 0;
}

static bool is_cursed(quern_context *context, const Game *game, const quern_world2 *spot)
{
    QUERN_EACH_EVENT(context, game->types.curse, curse, Curse)
    {
        const float x = curse->x - spot->m[0][2], y = curse->y - spot->m[1][2];
        if (x * x + y * y < curse_radius * curse_radius) return true;
    }
    return false;
}

QUERN_SYSTEM(stun, (Turret, turrets), (Stun, stuns), (const quern_world2, spots))
{
    const Game *game = quern_context_user_data(context);
    QUERN_ROWS(i)
    {
        if (!is_cursed(context, game, &spots[i])) continue;
        stuns[i].seconds = stun_seconds;
        turrets[i].is_locked = 0;
        quern_view_set_enabled(view, STUN_TURRET, i, false);
        emit_cue(context, game, CUE_CURSE, spots[i].m[0][2]);
    }
}

QUERN_SYSTEM(recover, (Turret, turrets), (Stun, stuns))
{
    QUERN_ROWS(i)
    {
        stuns[i].seconds -= step_seconds;
        if (stuns[i].seconds <= 0) quern_view_set_enabled(view, STUN_TURRET, i, true);
    }
}

static void add_stun(Game *game)
{
    const Types *types = &game->types;
    const quern_system_def stunning = {
        .name = "stun",
        .phase = PHASE_EVENTS,
        .run = stun,
        .condition = has_curses,
        .terms = {[STUN_TURRET] = quern_term_either(quern_term_write(types->turret)),
                  [STUN_STUN] = quern_term_write(types->stun),
                  [STUN_SPOT] = quern_term_read(types->spot)},
        .reads_events = {types->curse},
        .emits = {types->cue}};
    const quern_system_def recovering = {
        .name = "recover",
        .phase = PHASE_MOVE,
        .run = recover,
        .terms = {[STUN_TURRET] = quern_term_if_disabled(quern_term_write(types->turret)),
                  [STUN_STUN] = quern_term_write(types->stun)}};
    check(quern_schedule_add_system(game->schedule, &stunning, NULL));
    check(quern_schedule_add_system(game->schedule, &recovering, NULL));
}

/* ------------------------------------------------------------------------------------------------- aim */

static bool is_in_range(const Turret *turret, float square)
{
    return square <= turret->range * turret->range && square >= turret->least_range * turret->least_range;
}

/* Aims at the position of the target when a shot arrives. */
static void lead_target(Turret *turret, Point from, Point at, const Enemy *enemy)
{
    const float x = at.x - from.x, y = at.y - from.y;
    const float seconds = turret->shot_speed > 0 ? sqrtf(x * x + y * y) / turret->shot_speed : 0;
    turret->aim_x = at.x + enemy->drift_x * seconds;
    turret->aim_y = at.y + enemy->drift_y * seconds;
}

/* Returns whether a turret keeps its target: while that is alive and within range. */
static bool keep_target(quern_context *context, const Game *game, Turret *turret, Point from)
{
    if (quern_entity_is_null(turret->target)) return false;
    const Place *place = quern_context_lookup(context, turret->target, game->types.place);
    const Enemy *enemy = quern_context_lookup(context, turret->target, game->types.enemy);
    if (place == NULL || enemy == NULL) return false;
    const float x = place->x - from.x, y = place->y - from.y;
    if (!is_in_range(turret, x * x + y * y)) return false;
    lead_target(turret, from, (Point){place->x, place->y}, enemy);
    return true;
}

/* Chooses the enemy within range with the shortest remaining distance to the end of its road. */
static bool choose_target(quern_context *context, const Game *game, Turret *turret, Point from)
{
    const quern_grid *grid = quern_context_grid(context, game->types.grid);
    quern_grid_iterator near = quern_grid_radius(grid, &from.x, turret->range);
    float least = INFINITY;
    turret->target = quern_entity_null();
    while (quern_grid_next(&near)) {
        const Enemy *enemy = quern_grid_payload(grid, near.item);
        const float left = game->roads[enemy->road].length - enemy->along;
        if (left >= least || !is_in_range(turret, near.square)) continue;
        least = left;
        turret->target = near.item->entity;
        lead_target(turret, from, (Point){near.item->position[0], near.item->position[1]}, enemy);
    }
    return least < INFINITY;
}

/* Turns by at most one step of turn_speed. Returns the remaining angle. */
static float turn(quern_local2 *local, float turn_speed, float angle)
{
    const float most = turn_speed * step_seconds;
    float left = remainderf(angle - local->angle, circle);
    const float turned = fminf(fmaxf(left, -most), most);
    local->angle = remainderf(local->angle + turned, circle);
    return left - turned;
}

QUERN_SYSTEM(aim, (Turret, turrets), (quern_local2, locals), (const quern_world2, spots))
{
    const Game *game = quern_context_user_data(context);
    QUERN_ROWS(i)
    {
        Turret *turret = &turrets[i];
        const Point from = {spots[i].m[0][2], spots[i].m[1][2]};
        turret->is_locked = 0;
        if (!keep_target(context, game, turret, from) && !choose_target(context, game, turret, from))
            continue;
        const float angle = quern_angle_of(turret->aim_y - from.y, turret->aim_x - from.x);
        turret->is_locked = fabsf(turn(&locals[i], turret->turn_speed, angle)) < locked_angle;
    }
}

void towers_add(Game *game)
{
    const Types *types = &game->types;
    add_barrels(game);
    add_stun(game);
    check(QUERN_ADD_SYSTEM(game->schedule, aim, .phase = PHASE_AIM,
                           .lookups = {{.component = types->place}, {.component = types->enemy}},
                           .resources = {{types->grid, QUERN_ACCESS_READ}}));
}
