/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Accumulating commands: turrets that run on all threads lower the health of any enemies. docs/commands.md
 * explains it. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

enum { ENEMIES = 50, TURRETS = 1000, FRAMES = 3 };

typedef struct Health {
    int32_t points;
} Health;

typedef struct Turret {
    quern_entity enemy;
    int32_t damage;
} Turret;

typedef struct Types {
    quern_component health, turret;
} Types;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

/* Several turrets may hit one enemy, on several threads. The sync point adds up the hits. */
static void shoot(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const Turret *turrets = QUERN_COLUMN(view, 0, const Turret);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        const Health loss = {.points = -turrets[i].damage};
        check(quern_commands_accumulate(commands, turrets[i].enemy, types->health, &loss, QUERN_SUM));
    }
}

/* Reacts to the sums: destroys enemies without points. */
static void die(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const Health *healths = QUERN_COLUMN(view, 0, const Health);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        if (healths[i].points <= 0) check(quern_commands_destroy(commands, view->entities[i]));
}

static Types register_types(quern_world *world)
{
    Types types;
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types.health, Health, points));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types.turret, Turret, enemy, damage));
    return types;
}

static void add_systems(quern_schedule *schedule, Types *types)
{
    const quern_system_def turrets = {
        .name = "shoot", .run = shoot, .terms = {quern_term_read(types->turret)}, .user_data = types};
    const quern_system_def deaths = {.name = "die",
                                     .run = die,
                                     .terms = {quern_term_read(types->health)},
                                     .reacts_to = QUERN_REACT_SET,
                                     .user_data = types};
    check(quern_schedule_add_system(schedule, &turrets, NULL));
    check(quern_schedule_add_system(schedule, &deaths, NULL));
}

/* Enemy i has 100 + 10 * i points. Turret i aims at enemy i % ENEMIES, so 20 turrets aim at each enemy. */
static void populate(quern_world *world, const Types *types)
{
    quern_entity enemies[ENEMIES];
    Health healths[ENEMIES];
    Turret turrets[TURRETS];
    for (int32_t i = 0; i < ENEMIES; i++)
        healths[i].points = 100 + 10 * i;
    check(quern_entity_create_many(world, &types->health, (const void *const[]){healths}, 1, ENEMIES,
                                   enemies));
    for (uint32_t i = 0; i < TURRETS; i++)
        turrets[i] = (Turret){.enemy = enemies[i % ENEMIES], .damage = 10};
    check(
        quern_entity_create_many(world, &types->turret, (const void *const[]){turrets}, 1, TURRETS, NULL));
}

int main(void)
{
    quern_world *world;
    quern_jobs *jobs;
    quern_schedule *schedule;
    check(quern_world_create(NULL, &world));
    check(quern_jobs_create(NULL, &jobs));
    check(quern_schedule_create(world, NULL, &schedule));
    Types types = register_types(world);
    add_systems(schedule, &types);
    populate(world, &types);
    for (int frame = 0; frame < FRAMES; frame++) {
        check(quern_schedule_run(schedule, jobs, 1.0 / 60));
        quern_frame_stats stats;
        check(quern_schedule_get_frame_stats(schedule, &stats));
        printf("frame %d: %llu enemies destroyed, %llu hits in vain\n", frame,
               (unsigned long long)stats.destroyed_count, (unsigned long long)stats.dropped_count);
    }
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
