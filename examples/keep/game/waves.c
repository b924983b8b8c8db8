/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Phase "waves": the next wave begins, and spawners create enemies. Phase "events": kills and leaks are
 * counted, and the game ends. */

#include "check.h"
#include "kinds.h"
#include "random.h"
#include "systems.h"

#include <math.h>

static const float step_seconds = 1.0f / STEPS_PER_SECOND;

/* ------------------------------------------------------------------------------------------------ lead */

static float wave_seconds(const LevelWave *wave)
{
    float longest = 0;
    for (uint32_t i = 0; i < wave->group_count; i++) {
        const LevelGroup *group = &wave->groups[i];
        longest = fmaxf(longest, group->after_seconds + (float)group->count * group->every_seconds);
    }
    return longest;
}

static void begin_wave(quern_context *context, const Game *game, Keep *keep)
{
    const LevelWave *wave = &game->level.waves[keep->wave];
    for (uint32_t i = 0; i < wave->group_count; i++) {
        const LevelGroup *group = &wave->groups[i];
        const Spawner spawner = {group->kind, group->road_number, group->count, group->after_seconds,
                                 group->every_seconds};
        quern_commands_create_with(quern_context_commands(context), &game->types.spawner,
                                   (const void *const[]){&spawner}, 1, NULL);
    }
    if (keep->is_called) keep->gold += (int32_t)keep->rest_seconds;
    keep->wave++;
    keep->rest_seconds = wave_seconds(wave) + game->level.rest_seconds;
    emit_cue(context, game, CUE_WAVE, game->level.width / 2);
}

/* Begins the next wave when the pause has passed or the player calls the wave. A player who calls a wave
 * gets one gold per remaining second. */
static void begin_waves(quern_context *context, const quern_view *view)
{
    (void)view;
    const Game *game = quern_context_user_data(context);
    Keep *keep = quern_context_resource_write(context, game->types.keep);
    keep->step++;
    if (keep->state != KEEP_PLAYING || keep->wave == game->level.wave_count) return;
    keep->rest_seconds -= step_seconds;
    if (keep->is_called || keep->rest_seconds <= 0) begin_wave(context, game, keep);
    keep->is_called = 0;
}

static void add_waves(Game *game)
{
    const quern_system_def def = {.name = "begin waves",
                                  .phase = PHASE_WAVES,
                                  .run = begin_waves,
                                  .resources = {{game->types.keep, QUERN_ACCESS_WRITE}},
                                  .emits = {game->types.cue}};
    check(quern_schedule_add_system(game->schedule, &def, NULL));
}

/* ----------------------------------------------------------------------------------------------- spawn */

static void create_enemy(quern_context *context, const Game *game, const Spawner *spawner, uint64_t seed)
{
    const Road *road = &game->roads[spawner->road];
    const EnemyRules *rules = &enemy_rules[spawner->kind];
    const uint64_t bits = random_hash(seed, spawner->left);
    const Enemy enemy = {.kind = spawner->kind,
                         .road = spawner->road,
                         .lane = quern_random_signed(bits),
                         .pace = rules->speed * (0.85f + 0.3f * quern_random_unit(bits))};
    const Place place = {road->steps[0].at.x, road->steps[0].at.y};
    const quern_spawn_def def = {.overrides = {{.component = game->types.enemy, .column = &enemy},
                                               {.component = game->types.place, .column = &place}}};
    check(quern_commands_spawn(quern_context_commands(context), game->enemies[spawner->kind], &def, NULL));
}

QUERN_SYSTEM(spawn, (Spawner, spawners))
{
    const Game *game = quern_context_user_data(context);
    QUERN_ROWS(i)
    {
        Spawner *spawner = &spawners[i];
        const uint64_t seed = quern_entity_seed(game->world, view->entities[i]);
        spawner->wait_seconds -= step_seconds;
        for (; spawner->wait_seconds <= 0 && spawner->left > 0; spawner->left--) {
            create_enemy(context, game, spawner, seed);
            spawner->wait_seconds += spawner->every_seconds;
        }
        if (spawner->left == 0)
            check(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
    }
}

/* ----------------------------------------------------------------------------------------------- score */

/* Updates gold and lives by the events of the step. No other system writes them. */
static void score(quern_context *context, const quern_view *view)
{
    (void)view;
    const Game *game = quern_context_user_data(context);
    Keep *keep = quern_context_resource_write(context, game->types.keep);
    QUERN_EACH_EVENT(context, game->types.kill, kill, Kill)
    {
        keep->gold += enemy_rules[kill->kind].bounty;
        keep->score += enemy_rules[kill->kind].bounty * 10;
        keep->kills++;
    }
    QUERN_EACH_EVENT(context, game->types.leak, leak, Leak) keep->lives -= enemy_rules[leak->kind].harm;
    if (keep->lives < 0) keep->lives = 0;
}

static void add_score(Game *game)
{
    const quern_system_def def = {.name = "score",
                                  .phase = PHASE_EVENTS,
                                  .run = score,
                                  .resources = {{game->types.keep, QUERN_ACCESS_WRITE}},
                                  .reads_events = {game->types.kill, game->types.leak}};
    check(quern_schedule_add_system(game->schedule, &def, NULL));
}

/* ---------------------------------------------------------------------------------------------- census */

enum { CENSUS_ENEMY, CENSUS_SPAWNER };

static void count_view(quern_context *context, const quern_view *view)
{
    uint32_t *enemies = quern_context_partial(context);
    const uint32_t count = view->count;
    if (quern_view_has(view, CENSUS_ENEMY)) *enemies += count;
    if (!quern_view_has(view, CENSUS_SPAWNER)) return;
    const Spawner *spawners = QUERN_COLUMN(view, CENSUS_SPAWNER, const Spawner);
    for (uint32_t i = 0; i < count; i++)
        *enemies += spawners[i].left;
}

static void decide(quern_context *context)
{
    const Game *game = quern_context_user_data(context);
    Keep *keep = quern_context_resource_write(context, game->types.keep);
    const uint32_t count = quern_context_partial_count(context);
    keep->enemy_count = 0;
    for (uint32_t i = 0; i < count; i++)
        keep->enemy_count += *(const uint32_t *)quern_context_partial_at(context, i);
    if (keep->state != KEEP_PLAYING) return;
    if (keep->lives == 0)
        keep->state = KEEP_LOST;
    else if (keep->wave == game->level.wave_count && keep->enemy_count == 0)
        keep->state = KEEP_WON;
    else
        return;
    emit_cue(context, game, keep->state == KEEP_WON ? CUE_WON : CUE_LOST, game->level.width / 2);
}

static void add_census(Game *game)
{
    const Types *types = &game->types;
    const quern_system_def def = {
        .name = "census",
        .phase = PHASE_EVENTS,
        .run = count_view,
        .end = decide,
        .partial_bytes = sizeof(uint32_t),
        .terms = {[CENSUS_ENEMY] = quern_term_any(types->enemy, QUERN_ACCESS_NONE),
                  [CENSUS_SPAWNER] = quern_term_any(types->spawner, QUERN_ACCESS_READ)},
        /* Only decide writes the resource, after all views; so views can run at the same time. */
        .resources = {{types->keep, QUERN_ACCESS_WRITE_CONCURRENT}},
        .emits = {types->cue}};
    check(quern_schedule_add_system(game->schedule, &def, NULL));
}

void waves_add(Game *game)
{
    add_waves(game);
    check(QUERN_ADD_SYSTEM(game->schedule, spawn, .phase = PHASE_WAVES));
    add_score(game);
    add_census(game);
}
