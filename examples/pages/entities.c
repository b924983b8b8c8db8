/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Position {
    float x, y;
} Position;

typedef struct Score {
    int32_t points;
} Score;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

int main(void)
{
    quern_world *world;
    quern_component position, burning;
    quern_resource score;
    quern_entity tree;
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER(world, &position, Position));
    check(quern_component_register(world, &(quern_component_def){.name = "burning"}, &burning)); /* a tag */
    check(QUERN_RESOURCE_REGISTER(world, &score, Score));

    check(quern_entity_create(world, &tree));
    check(quern_entity_set(world, tree, position, &(Position){3, 4}));
    check(quern_entity_add(world, tree, burning, NULL));
    const Position *at = quern_entity_get(world, tree, position);
    printf("the tree at %g, %g %s\n", (double)at->x, (double)at->y,
           quern_entity_has(world, tree, burning) ? "burns" : "does not burn");

    check(quern_entity_destroy(world, tree));
    Score *total = quern_resource_get(world, score);
    total->points += 10;
    printf("score %d\n", total->points);
    if (quern_entity_remove(world, tree, burning) != QUERN_OK) printf("%s\n", quern_error_message());
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
