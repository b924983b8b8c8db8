/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Reactions: systems that run on the rows that a sync point has changed. docs/reactions.md explains it. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Health {
    int32_t points;
} Health;

typedef struct Damage {
    int32_t points;
} Damage;

typedef struct Bounty {
    int32_t coins;
} Bounty;

typedef struct Score {
    int32_t coins, kills;
} Score;

typedef struct Types {
    quern_component health, damage, bounty, dead;
    quern_resource score;
} Types;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

/* Damages every entity with health. The commands are applied at the sync point. */
static void shoot(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    const Damage damage = {.points = 4};
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        check(
            quern_commands_set(quern_context_commands(context), view->entities[i], types->damage, &damage));
}

/* Reacts to damage: subtracts it, and tags entities without points as dead. */
static void hurt(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    const Damage *damages = QUERN_COLUMN(view, 0, const Damage);
    Health *healths = QUERN_COLUMN(view, 1, Health);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        healths[i].points -= damages[i].points;
        check(quern_commands_remove(commands, view->entities[i], types->damage));
        if (healths[i].points <= 0)
            check(quern_commands_add(commands, view->entities[i], types->dead, NULL));
    }
}

/* Reacts to the tag "dead", one round later. */
static void bury(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        check(quern_commands_destroy(commands, view->entities[i]));
}

/* Reacts to the removal of bounties, another round later. The entities no longer exist then: the view
 * contains copies of their values. */
static void reward(quern_context *context, const quern_view *view)
{
    const Types *types = quern_context_user_data(context);
    const Bounty *bounties = QUERN_COLUMN(view, 0, const Bounty);
    Score *score = quern_context_resource_write(context, types->score);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        score->coins += bounties[i].coins;
    score->kills += (int32_t)view->count;
}

static void add_systems(quern_schedule *schedule, Types *types)
{
    quern_system_def def = {
        .name = "shoot", .run = shoot, .terms = {quern_term_with(types->health)}, .user_data = types};
    check(quern_schedule_add_system(schedule, &def, NULL));
    def = (quern_system_def){.name = "hurt",
                             .run = hurt,
                             .terms = {quern_term_read(types->damage), quern_term_write(types->health)},
                             .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET,
                             .user_data = types};
    check(quern_schedule_add_system(schedule, &def, NULL));
    def = (quern_system_def){.name = "bury",
                             .run = bury,
                             .terms = {quern_term_with(types->dead)},
                             .reacts_to = QUERN_REACT_ADDED,
                             .user_data = types};
    check(quern_schedule_add_system(schedule, &def, NULL));
    def = (quern_system_def){.name = "reward",
                             .run = reward,
                             .terms = {quern_term_read(types->bounty)},
                             .resources = {{types->score, QUERN_ACCESS_WRITE}},
                             .reacts_to = QUERN_REACT_REMOVED,
                             .user_data = types};
    check(quern_schedule_add_system(schedule, &def, NULL));
}

static void create_monsters(quern_world *world, const Types *types)
{
    for (int32_t i = 1; i <= 5; i++) {
        const Health health = {.points = 3 * i};
        const Bounty bounty = {.coins = 10 * i};
        const quern_component components[] = {types->health, types->bounty};
        const void *values[] = {&health, &bounty};
        check(quern_entity_create_with(world, components, values, 2, NULL));
    }
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    Types types;
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER(world, &types.health, Health));
    check(QUERN_COMPONENT_REGISTER(world, &types.damage, Damage));
    check(QUERN_COMPONENT_REGISTER(world, &types.bounty, Bounty));
    check(quern_component_register(world, &(quern_component_def){.name = "dead"}, &types.dead));
    check(QUERN_RESOURCE_REGISTER(world, &types.score, Score));
    check(quern_schedule_create(world, NULL, &schedule));
    add_systems(schedule, &types);
    create_monsters(world, &types);
    for (int frame = 1; frame <= 4; frame++) {
        check(quern_schedule_run(schedule, NULL, 0));
        const Score *score = quern_resource_get(world, types.score);
        printf("frame %d: %d kills, %d coins\n", frame, score->kills, score->coins);
    }
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
