/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Phase "move", for enemies: they walk along their roads, and slow ones thaw. Enemies without health
 * die, in a reaction to all hits of the phase. */

#include "check.h"
#include "kinds.h"
#include "systems.h"

#include <math.h>
#include <quern/kit/angle.h>

static const float step_seconds = 1.0f / STEPS_PER_SECOND;
static const float chilled_pace = 0.45f;

/* ------------------------------------------------------------------------------------------------ walk */

enum { WALK_CHILL = 2 }; /* the term after the columns */

/* Returns the position of an enemy in its lane, with a slight sway. */
static Place place_in_lane(const Road *road, RoadStep step, const Enemy *enemy)
{
    const float sway = 0.25f * quern_angle_sin(enemy->along * 1.7f + enemy->lane * 9);
    const float aside = (enemy->lane * 0.42f * road->width) + sway;
    return (Place){step.at.x - step.ahead.y * aside, step.at.y + step.ahead.x * aside};
}

static void arrive(quern_context *context, const Game *game, quern_entity entity, uint32_t kind,
                   Place place)
{
    const Types *types = &game->types;
    check(quern_commands_destroy(quern_context_commands(context), entity));
    quern_emit(quern_context_emitter(context, types->leak), &(Leak){kind});
    emit_cue(context, game, CUE_LEAK, place.x);
    emit_burst(context, game,
               (Burst){.x = place.x,
                       .y = place.y,
                       .speed = 5,
                       .span = 0.9f,
                       .size = 0.3f,
                       .count = 24,
                       .color = 0xFF5040FF,
                       .kind = PARTICLE_SPARK});
}

QUERN_SYSTEM(walk, (Enemy, enemies), (Place, places))
{
    const Game *game = quern_context_user_data(context);
    QUERN_ROWS(i)
    {
        Enemy *enemy = &enemies[i];
        const Road *road = &game->roads[enemy->road];
        const float pace = enemy->pace * (quern_view_is_enabled(view, WALK_CHILL, i) ? chilled_pace : 1);
        enemy->along += pace * step_seconds;
        const RoadStep step = road_at(road, enemy->along);
        places[i] = place_in_lane(road, step, enemy);
        enemy->drift_x = step.ahead.x * pace;
        enemy->drift_y = step.ahead.y * pace;
        if (enemy->along >= road->length) arrive(context, game, view->entities[i], enemy->kind, places[i]);
    }
}

/* ------------------------------------------------------------------------------------------------ thaw */

/* Counts down the chill of slow enemies and disables it at zero. The loop visits only rows in which the chill is
 * enabled. */
QUERN_SYSTEM(thaw, (Chill, chills))
{
    QUERN_EACH_ROW(view, i)
    {
        chills[i].seconds -= step_seconds;
        if (chills[i].seconds > 0) continue;
        chills[i].seconds = 0;
        quern_view_set_enabled(view, 0, i, false);
    }
}

/* ------------------------------------------------------------------------------------------------- die */

static void emit_death_events(quern_context *context, const Game *game, const Enemy *enemy, Place place)
{
    const Types *types = &game->types;
    const EnemyRules *rules = &enemy_rules[enemy->kind];
    quern_emitter *bursts = quern_context_emitter(context, types->burst);
    const Burst sparks = {.x = place.x,
                          .y = place.y,
                          .push_x = enemy->drift_x * 0.4f,
                          .push_y = enemy->drift_y * 0.4f,
                          .speed = 4.5f + rules->radius * 5,
                          .span = 2.2f,
                          .size = 0.11f + rules->radius * 0.12f,
                          .count = (uint32_t)(48 + 160 * rules->radius),
                          .color = rules->color,
                          .kind = PARTICLE_SPARK};
    const Burst ring = {.x = place.x,
                        .y = place.y,
                        .span = 0.35f,
                        .size = rules->radius * 3,
                        .count = 1,
                        .color = rules->color,
                        .kind = PARTICLE_RING};
    quern_emit(bursts, &sparks);
    quern_emit(bursts, &ring);
    quern_emit(quern_context_emitter(context, types->kill), &(Kill){enemy->kind});
    emit_cue(context, game, CUE_DEATH, place.x);
    if (enemy->kind == ENEMY_WITCH)
        quern_emit(quern_context_emitter(context, types->curse), &(Curse){place.x, place.y});
}

QUERN_SYSTEM(die, (const Health, healths), (const Enemy, enemies), (const Place, places))
{
    const Game *game = quern_context_user_data(context);
    QUERN_ROWS(i)
    {
        if (healths[i].points > 0) continue;
        emit_death_events(context, game, &enemies[i], places[i]);
        check(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
    }
}

void enemies_add(Game *game)
{
    const Types *types = &game->types;
    check(QUERN_ADD_SYSTEM(game->schedule, walk, .phase = PHASE_MOVE,
                           .terms = {quern_term_optional(types->chill, QUERN_ACCESS_READ)},
                           .emits = {types->leak, types->cue, types->burst}));
    check(QUERN_ADD_SYSTEM(game->schedule, thaw, .phase = PHASE_MOVE, .flags = QUERN_SYSTEM_WHOLE_CHUNKS));
    check(QUERN_ADD_SYSTEM(game->schedule, die, .phase = PHASE_FIRE, .reacts_to = QUERN_REACT_SET,
                           .emits = {types->kill, types->burst, types->cue, types->curse}));
}
