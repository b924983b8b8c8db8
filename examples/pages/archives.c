/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Place {
    float x, y;
} Place;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

/* Makes an empty world with the types of the program. */
static quern_world *open_world(quern_component *place)
{
    quern_world *world;
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, place, Place, x, y));
    return world;
}

int main(void)
{
    quern_component place;
    quern_entity hero;
    quern_byte_buffer archive = {0};
    quern_world *world = open_world(&place);
    check(quern_entity_create_with(world, &place, (const void *[]){&(Place){3, 4}}, 1, &hero));
    check(quern_entity_set_name(world, hero, "hero"));
    check(quern_world_save(world, quern_sink_bytes(&archive), NULL));
    quern_world_destroy(world);

    world = open_world(&place);
    check(quern_world_load(world, quern_source_bytes(archive.bytes, archive.size_bytes), NULL, NULL));
    const Place *at = quern_entity_get(world, quern_entity_find(world, "hero"), place);
    printf("the hero is at %g, %g\n", (double)at->x, (double)at->y);
    quern_world_destroy(world);
    quern_byte_buffer_release(&archive);
    return EXIT_SUCCESS;
}
