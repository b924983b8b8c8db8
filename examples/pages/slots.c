/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Slots of a prefab: the root of each instance knows its own part. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

int main(void)
{
    quern_world *world;
    quern_component muzzle;
    quern_entity tower, barrel, instance;
    quern_prefab prefab;
    check(quern_world_create(NULL, &world));
    check(quern_prefab_slot_register(world, "muzzle", &muzzle));
    check(quern_entity_create(world, &tower));
    check(quern_entity_create(world, &barrel));
    check(quern_entity_relate(world, barrel, quern_world_parent(world), tower));
    check(quern_entity_set(world, tower, muzzle, &barrel));
    check(quern_prefab_capture(world, tower, &prefab));

    check(quern_prefab_spawn(world, prefab, NULL, &instance));
    const quern_entity part = quern_prefab_part(world, instance, muzzle);
    printf("the muzzle of the instance is %s\n",
           quern_entity_equal(part, barrel) ? "that of the original" : "its own");
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
