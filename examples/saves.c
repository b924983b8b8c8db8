/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Archives: a world is saved, and a newer program loads it. Then a tower is copied to another world.
 * docs/archives.md explains it. */
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

/* The component "Health" in the old program. */
typedef struct OldHealth {
    int32_t points;
} OldHealth;

/* The same component in the new program. Loading converts old values by the names of their fields. */
typedef struct Health {
    float points, maximum;
} Health;

typedef struct Place {
    float x, y;
} Place;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    fprintf(stderr, "%s: %s\n", quern_result_string(result), quern_error_message());
    exit(EXIT_FAILURE);
}

/* --------------------------------------------------------------------------------- the old program */

static void build_old_world(quern_world *world)
{
    quern_component health, place;
    const quern_component_def def = {.name = "Health",
                                     .size_bytes = sizeof(OldHealth),
                                     .alignment_bytes = _Alignof(OldHealth),
                                     .fields = QUERN_FIELDS(OldHealth, points)};
    check(quern_component_register(world, &def, &health));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &place, Place, x, y));
    const quern_relation parent = quern_world_parent(world);
    quern_entity tower, gun;
    const quern_component components[] = {health, place};
    check(quern_entity_create_with(world, components, (const void *[]){&(OldHealth){40}, &(Place){3, 4}}, 2,
                                   &tower));
    check(quern_entity_create_with(world, &place, (const void *[]){&(Place){0, 1}}, 1, &gun));
    check(quern_entity_relate(world, gun, parent, tower));
    check(quern_entity_set_name(world, tower, "tower"));
    check(quern_entity_set_name(world, gun, "gun"));
}

/* --------------------------------------------------------------------------------- the new program */

typedef struct Types {
    quern_component health, place;
} Types;

static quern_world *open_world(Types *types)
{
    quern_world *world;
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->health, Health, points, maximum));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &types->place, Place, x, y));
    return world;
}

static void load_old_world(quern_world *world, const quern_byte_buffer *archive)
{
    quern_load_report report;
    check(quern_world_load(world, quern_source_bytes(archive->bytes, archive->size_bytes), NULL, &report));
    printf("loaded %u entities, %u component converted\n", report.entity_count, report.converted_count);
}

static void show(quern_world *world, const Types *types, const char *path)
{
    const quern_entity entity = quern_entity_find(world, path);
    const Place *place = quern_entity_get(world, entity, types->place);
    const Health *health = quern_entity_has(world, entity, types->health)
                               ? quern_entity_get(world, entity, types->health)
                               : NULL;
    printf("%s at %g, %g", path, place->x, place->y);
    if (health != NULL) printf(" with %g points", health->points);
    printf("\n");
}

/* An archive contains no prefabs: the loaded tree is captured again. */
static void spawn_more(quern_world *world)
{
    quern_prefab prefab;
    quern_entity towers[3];
    check(quern_prefab_capture(world, quern_entity_find(world, "tower"), &prefab));
    check(quern_prefab_spawn_many(world, prefab, 3, NULL, towers, NULL));
    printf("spawned %u children each\n",
           quern_entity_source_count(world, towers[2], quern_world_parent(world)));
    check(quern_entity_destroy_many(world, towers, 3));
    check(quern_prefab_destroy(world, prefab));
}

/* Copies the tower and its descendants to another world. */
static void carry_tower(quern_world *from, quern_world *to)
{
    quern_archive *list;
    quern_byte_buffer archive = {0};
    check(quern_archive_create(from, &list));
    check(quern_archive_append_tree(list, quern_entity_find(from, "tower")));
    check(quern_archive_save(list, quern_sink_bytes(&archive), NULL));
    quern_entity carried[2];
    const quern_load_def def = {.entities = carried, .entity_capacity = 2};
    check(quern_world_load(to, quern_source_bytes(archive.bytes, archive.size_bytes), &def, NULL));
    printf("carried %u entities; '%s' comes first\n", quern_archive_count(list),
           quern_entity_name(to, carried[0]));
    quern_archive_destroy(list);
    quern_byte_buffer_release(&archive);
}

int main(void)
{
    quern_world *old;
    quern_byte_buffer archive = {0};
    check(quern_world_create(NULL, &old));
    build_old_world(old);
    check(quern_world_save(old, quern_sink_bytes(&archive), NULL));
    quern_world_destroy(old);

    Types types, other_types;
    quern_world *world = open_world(&types);
    load_old_world(world, &archive);
    quern_byte_buffer_release(&archive);
    show(world, &types, "tower");
    show(world, &types, "tower/gun");
    spawn_more(world);

    quern_world *other = open_world(&other_types);
    check(quern_entity_create(other, &(quern_entity){0}));
    carry_tower(world, other);
    show(other, &other_types, "tower/gun");
    quern_world_destroy(world);
    quern_world_destroy(other);
    return EXIT_SUCCESS;
}
