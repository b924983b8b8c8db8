/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Slots of a prefab: the root of each instance knows its own part. The second prefab is made from a list of members. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

/* Makes the prefab from a list: a tower with the health 100, whose muzzle knows it. No entity is created. */
static quern_prefab describe_tower(quern_world *world, quern_component health, quern_component aim,
                                   quern_component muzzle)
{
    const quern_prefab_value tower[] = {{.component = health, .value = &(int32_t){100}}};
    const quern_entity handle_of_tower = quern_prefab_member_handle(0);
    const quern_prefab_value barrel[] = {{.component = aim, .value = &handle_of_tower}};
    const quern_prefab_member_def members[] = {
        {.values = tower, .value_count = 1},
        {.parent = 0, .name = "barrel", .slot = muzzle, .values = barrel, .value_count = 1}};
    quern_prefab prefab;
    check(quern_prefab_create(world, members, 2, &prefab));
    return prefab;
}

int main(void)
{
    quern_world *world;
    quern_component muzzle, health, aim;
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

    const quern_component_def health_def = {
        .name = "Health", .size_bytes = sizeof(int32_t), .alignment_bytes = _Alignof(int32_t)};
    const quern_component_def aim_def = {.name = "Aim",
                                         .size_bytes = sizeof(quern_entity),
                                         .alignment_bytes = _Alignof(quern_entity),
                                         .fields = {{.name = "tower", .type = QUERN_FIELD_ENTITY}}};
    check(quern_component_register(world, &health_def, &health));
    check(quern_component_register(world, &aim_def, &aim));
    const quern_prefab described = describe_tower(world, health, aim, muzzle);
    check(quern_prefab_spawn(world, described, NULL, &instance));
    const quern_entity own_barrel = quern_prefab_part(world, instance, muzzle);
    const quern_entity *aimed_by = quern_entity_get(world, own_barrel, aim);
    printf("the barrel knows %s\n",
           quern_entity_equal(*aimed_by, instance) ? "its tower" : "another tower");
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
