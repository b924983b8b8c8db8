/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Required components: a ship needs a position and a hull. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Position {
    float x, y;
} Position;

typedef struct Hull {
    int32_t strength;
} Hull;

typedef struct Ship {
    int32_t crew;
} Ship;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

int main(void)
{
    quern_world *world;
    quern_component position, hull, ship;
    quern_entity entity;
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER(world, &position, Position));
    const quern_component_def hull_def = {QUERN_TYPE(Hull), .default_value = &(Hull){.strength = 100}};
    check(quern_component_register(world, &hull_def, &hull));
    const quern_component_def ship_def = {QUERN_TYPE(Ship), .required = {position, hull}};
    check(quern_component_register(world, &ship_def, &ship));

    check(quern_entity_create(world, &entity));
    check(quern_entity_set(world, entity, position, &(Position){3, 4}));
    check(quern_entity_set(world, entity, ship, &(Ship){.crew = 7})); /* adds the hull as well */
    printf("a hull of strength %d\n", ((Hull *)quern_entity_get(world, entity, hull))->strength);
    if (quern_entity_remove(world, entity, hull) != QUERN_OK) printf("%s\n", quern_error_message());
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
