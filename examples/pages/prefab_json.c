/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/kit/json.h>
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Health {
    int32_t now, max;
} Health;

typedef struct Aim {
    quern_entity tower; /* the root of the instance */
    float range;
} Aim;

/* The text of a file, for example. */
static const char tower_text[] =
    "{\"quern\": 1, \"prefab\": {\n"
    "  \"id\": 1, \"components\": {\"Health\": {\"now\": 100, \"max\": 100}},\n"
    "  \"children\": [\n"
    "    {\"name\": \"turret\", \"children\": [\n"
    "      {\"name\": \"barrel\", \"slot\": \"muzzle\",\n"
    "       \"components\": {\"Aim\": {\"tower\": 1, \"range\": 7.5}}}]},\n"
    "    {\"name\": \"flag\", \"components\": {\"disabled\": true}}]}}\n";

int main(void)
{
    quern_world *world;
    quern_component muzzle;
    quern_prefab tower;
    quern_entity instance;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(QUERN_REGISTER(world, Health, now, max));
    QUERN_MUST(QUERN_REGISTER(world, Aim, tower, range));
    QUERN_MUST(quern_prefab_slot_register(world, "muzzle", &muzzle));

    QUERN_MUST(quern_json_read_prefab(world, tower_text, strlen(tower_text), NULL, &tower));
    QUERN_MUST(quern_prefab_spawn(world, tower, NULL, &instance));
    const Aim *aim = QUERN_GET(world, quern_prefab_part(world, instance, muzzle), Aim);
    printf("%u members; the barrel reaches %g and knows %s tower\n",
           quern_prefab_member_count(world, tower), (double)aim->range,
           quern_entity_equal(aim->tower, instance) ? "its" : "another");

    /* A designer edits the instance and saves it as a prefab. */
    QUERN_MUST(QUERN_SET(world, instance, Health, 60, 100));
    QUERN_MUST(quern_json_write_prefab(world, instance, quern_sink_file(stdout)));

    static const char wrong[] = "{\"quern\": 1, \"prefab\": {\n"
                                "  \"components\": {\"Health\": {\"maximum\": 100}}}}";
    if (quern_json_read_prefab(world, wrong, strlen(wrong), NULL, &tower) != QUERN_OK)
        printf("%s\n", quern_error_message());
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
