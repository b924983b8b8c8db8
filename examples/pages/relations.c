/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Place {
    float x;
} Place;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

/* Each wheel reads the place of the car that it belongs to. */
static void print_wheels(quern_query *wheels)
{
    quern_query_iterator it = quern_query_iterate(wheels);
    while (quern_query_next(&it)) {
        const Place *offsets = QUERN_COLUMN(&it.view, 0, const Place);
        const Place *const *cars = QUERN_UP(&it.view, 1, Place);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            printf("wheel at %g\n", (double)(cars[i]->x + offsets[i].x));
    }
}

int main(void)
{
    quern_world *world;
    quern_component place;
    quern_entity car, wheels[2];
    quern_query *query;
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER(world, &place, Place));
    const quern_relation parent = quern_world_parent(world);
    const quern_query_def def = {.terms = {quern_term_read(place), quern_term_up(place, parent)}};
    check(quern_query_create(world, &def, &query));

    check(quern_entity_create_with(world, &place, (const void *[]){&(Place){10}}, 1, &car));
    check(quern_entity_set_name(world, car, "car"));
    for (int i = 0; i < 2; i++) {
        const Place offset = {(float)(2 * i - 1)};
        check(quern_entity_create_with(world, &place, (const void *[]){&offset}, 1, &wheels[i]));
        check(quern_entity_relate(world, wheels[i], parent, car));
    }
    check(quern_entity_set_name(world, wheels[0], "left"));
    print_wheels(query);
    const quern_entity found = quern_entity_find(world, "car/left");
    printf("found: %s\n", quern_entity_equal(found, wheels[0]) ? "yes" : "no");

    check(quern_entity_destroy(world, car)); /* destroys the wheels as well */
    printf("the wheel is %s\n", quern_entity_is_alive(world, wheels[0]) ? "alive" : "gone");
    quern_query_destroy(query);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
