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

enum { WALK_ENEMY, WALK_PLACE, WALK_CHILL };

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
    quern_emit(quern_context_emitter(context, types->cue), &(Cue){CUE_LEAK, place.x});
    quern_emit(quern_context_emitter(context, types->burst), &(Burst){.x = place.x,
                                                                      .y = place.y,
                                                                      .speed = 5,
                                                                      .span = 0.9f,
                                                                      .size = 0.3f,
                                                                      .count = 24,
                                                                      .color = 0xFF5040FF,
                                                                      .kind = PARTICLE_SPARK});
}

static void walk(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    Enemy *enemies = QUERN_COLUMN(view, WALK_ENEMY, Enemy);
    Place *places = QUERN_COLUMN(view, WALK_PLACE, Place);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
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

static void add_walk(Game *game)
{
    const Types *types = &game->types;
    const quern_system_def def = {
        .name = "walk",
        .phase = PHASE_MOVE,
        .run = walk,
        .user_data = game,
        .terms = {[WALK_ENEMY] = quern_term_write(types->enemy),
                  [WALK_PLACE] = quern_term_write(types->place),
                  [WALK_CHILL] = quern_term_optional(types->chill, QUERN_ACCESS_READ)},
        .emits = {types->leak, types->cue, types->burst}};
    check(quern_schedule_add_system(game->schedule, &def, NULL));
}

/* ------------------------------------------------------------------------------------------------ thaw */

/* Counts down the chill of slow enemies and disables it at zero. The ranges contain only rows in which
 * the chill is enabled. */
static void thaw(quern_context *context, const quern_view *view)
{
    (void)context;
    Chill *chills = QUERN_COLUMN(view, 0, Chill);
    quern_row_range run = {0};
    while (quern_view_next_range(view, &run))
        for (uint32_t i = run.first; i < run.first + run.count; i++) {
            chills[i].seconds -= step_seconds;
            if (chills[i].seconds > 0) continue;
            chills[i].seconds = 0;
            quern_view_set_enabled(view, 0, i, false);
        }
}

static void add_thaw(Game *game)
{
    const quern_system_def def = {.name = "thaw",
                                  .phase = PHASE_MOVE,
                                  .run = thaw,
                                  .user_data = game,
                                  .terms = {quern_term_write(game->types.chill)},
                                  .flags = QUERN_SYSTEM_WHOLE_CHUNKS};
    check(quern_schedule_add_system(game->schedule, &def, NULL));
}

/* ------------------------------------------------------------------------------------------------- die */

enum { DIE_HEALTH, DIE_ENEMY, DIE_PLACE };

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
    quern_emit(quern_context_emitter(context, types->cue), &(Cue){CUE_DEATH, place.x});
    if (enemy->kind == ENEMY_WITCH)
        quern_emit(quern_context_emitter(context, types->curse), &(Curse){place.x, place.y});
}

static void die(quern_context *context, const quern_view *view)
{
    const Game *game = quern_context_user_data(context);
    const Health *healths = QUERN_COLUMN(view, DIE_HEALTH, const Health);
    const Enemy *enemies = QUERN_COLUMN(view, DIE_ENEMY, const Enemy);
    const Place *places = QUERN_COLUMN(view, DIE_PLACE, const Place);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        if (healths[i].points > 0) continue;
        emit_death_events(context, game, &enemies[i], places[i]);
        check(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
    }
}

static void add_die(Game *game)
{
    const Types *types = &game->types;
    const quern_system_def def = {.name = "die",
                                  .phase = PHASE_FIRE,
                                  .run = die,
                                  .reacts_to = QUERN_REACT_SET,
                                  .user_data = game,
                                  .terms = {[DIE_HEALTH] = quern_term_read(types->health),
                                            [DIE_ENEMY] = quern_term_read(types->enemy),
                                            [DIE_PLACE] = quern_term_read(types->place)},
                                  .emits = {types->kill, types->burst, types->cue, types->curse}};
    check(quern_schedule_add_system(game->schedule, &def, NULL));
}

void enemies_add(Game *game)
{
    add_walk(game);
    add_thaw(game);
    add_die(game);
}
