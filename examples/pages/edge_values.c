/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The program of the section on values of edges in docs/relations.md. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Debt {
    int32_t coins;
} Debt;

typedef struct Like {
    quern_entity target; /* first member: the target of the edge */
    float strength;
} Like;

typedef struct Likes {
    QUERN_LIST(Like) edges;
} Likes;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

/* Terms: Debt (write). The value of the row's edge is a component like any other. */
static void add_interest(quern_context *context, const quern_view *view)
{
    (void)context;
    Debt *debts = QUERN_COLUMN(view, 0, Debt);
    for (uint32_t end = view->count, i = 0; i < end; i++)
        debts[i].coins += debts[i].coins / 10;
}

static void print_likes(quern_world *world, quern_entity source, quern_component likes)
{
    const Likes *values = quern_entity_get(world, source, likes);
    for (uint32_t i = 0; values != NULL && i < values->edges.list.count; i++)
        printf("likes %s by %g\n", quern_entity_name(world, values->edges.items[i].target),
               (double)values->edges.items[i].strength);
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_component debt, like_values;
    quern_relation owes, likes;
    quern_entity ant, bank, pear, plum;
    quern_system interest;
    check(quern_world_create(NULL, &world));
    const quern_component_def debt_def = {QUERN_TYPE(Debt), .fields = {QUERN_FIELD(Debt, coins)}};
    const quern_component_def likes_def = {
        QUERN_TYPE(Likes), .fields = {QUERN_LIST_FIELD(Likes, edges, Like, target, strength)}};
    check(quern_component_register(world, &debt_def, &debt));
    check(quern_component_register(world, &likes_def, &like_values));
    const quern_relation_def owes_def = {
        .name = "owes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .value = debt};
    const quern_relation_def rates_def = {
        .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true, .value = like_values};
    check(quern_relation_register(world, &owes_def, &owes));
    check(quern_relation_register(world, &rates_def, &likes));
    check(quern_schedule_create(world, NULL, &schedule));
    const quern_system_def def = {
        .name = "interest", .run = add_interest, .terms = {quern_term_write(debt)}};
    check(quern_schedule_add_system(schedule, &def, &interest));

    check(quern_entity_create(world, &ant));
    check(quern_entity_create(world, &bank));
    check(quern_entity_create(world, &pear));
    check(quern_entity_create(world, &plum));
    check(quern_entity_set_name(world, pear, "pear"));
    check(quern_entity_set_name(world, plum, "plum"));
    check(quern_entity_relate_with(world, ant, owes, bank, &(Debt){30}));
    check(quern_schedule_run(schedule, NULL, 0));
    const Debt *owed = quern_entity_edge_value(world, ant, owes, bank);
    printf("the ant owes %d coins\n", (int)owed->coins);

    check(quern_entity_relate_with(world, ant, likes, plum, &(Like){.strength = 0.75f}));
    check(quern_entity_relate(world, ant, likes, pear)); /* an edge begins with zero bytes */
    print_likes(world, ant, like_values);
    quern_commands *commands = quern_world_commands(world);
    check(quern_commands_set_edge_value(commands, ant, likes, pear, &(Like){.strength = 0.5f}));
    check(quern_world_flush(world));
    check(quern_entity_destroy(world, plum)); /* the edge ends, and its value with it */
    print_likes(world, ant, like_values);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
