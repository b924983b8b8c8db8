/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Place {
    float x, y;
} Place;

typedef struct Gun {
    quern_entity base; /* a described handle: each instance gets its own base here */
} Gun;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

/* Builds a tower of a base and a gun, captures it, and destroys the original. */
static quern_prefab make_tower(quern_world *world, quern_component place, quern_component gun)
{
    quern_entity base, barrel;
    quern_prefab tower;
    check(quern_entity_create_with(world, &place, NULL, 1, &base));
    check(quern_entity_create_with(world, &gun, (const void *[]){&(Gun){.base = base}}, 1, &barrel));
    check(quern_entity_relate(world, barrel, quern_world_parent(world), base));
    check(quern_entity_set_name(world, barrel, "gun"));
    check(quern_prefab_capture(world, base, &tower));
    check(quern_entity_destroy(world, base));
    return tower;
}

int main(void)
{
    quern_world *world;
    quern_component place, gun;
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &place, Place, x, y));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &gun, Gun, base));
    const quern_prefab tower = make_tower(world, place, gun);

    const Place places[3] = {{1, 5}, {2, 6}, {3, 7}};
    const quern_spawn_def def = {.overrides = {{.component = place, .member = 0, .column = places}}};
    quern_entity members[3 * 2]; /* base and gun of each instance */
    check(quern_prefab_spawn_many(world, tower, 3, &def, NULL, members));
    const uint32_t member_count = quern_prefab_member_count(world, tower);
    const uint32_t gun_member = quern_prefab_find_member(world, tower, "gun");
    for (uint32_t i = 0; i < 3; i++) {
        const Gun *barrel = quern_entity_get(world, members[i * member_count + gun_member], gun);
        const Place *base = quern_entity_get(world, barrel->base, place);
        printf("gun %u is on the base at %g, %g\n", i, (double)base->x, (double)base->y);
    }
    check(quern_prefab_destroy(world, tower)); /* the instances remain */
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
