/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* What test_debugger.sh looks at: stops in `look_here` with a world, its handles, a query and a view on the stack. */

#include <quern/quern.h>

#include <stdlib.h>

typedef struct Place {
    float x, y;
} Place;

typedef struct Mood {
    int32_t anger;
    char title[8];
} Mood;

/* Has no C type that debuggers know by this name. */
typedef struct Hidden {
    uint32_t count;
    uint16_t levels[2];
    quern_entity owner;
} HiddenFields;

typedef struct Scene {
    quern_world *world;
    quern_entity tower, plain, dead, null, provisional, foreign;
    quern_component place;
    quern_resource none;
    quern_query *query;
    quern_result result;
} Scene;

static void check(quern_result result)
{
    if (result != QUERN_OK) abort();
}

static volatile int looked;

/* The debugger stops here. */
void look_here(const Scene *scene, const quern_view *view)
{
    looked += scene->world != NULL && view->count > 0;
}

static void create(Scene *scene, quern_component place)
{
    quern_component hidden, raw;
    const quern_component_def described = {.name = "Counts",
                                           .size_bytes = sizeof(HiddenFields),
                                           .alignment_bytes = 8,
                                           .fields = {QUERN_FIELD(HiddenFields, count),
                                                      QUERN_FIELD(HiddenFields, levels),
                                                      QUERN_FIELD(HiddenFields, owner)}};
    check(quern_component_register(scene->world, &described, &hidden));
    check(quern_component_register(
        scene->world, &(quern_component_def){.name = "Raw", .size_bytes = 4, .alignment_bytes = 4}, &raw));
    check(QUERN_CREATE(scene->world, &scene->dead, QUERN_VALUE(Place, 9, 9)));
    check(QUERN_CREATE(scene->world, &scene->plain, QUERN_VALUE(Place, 1, 2)));
    check(QUERN_CREATE(scene->world, &scene->tower, QUERN_VALUE(Place, 3, 4), QUERN_VALUE(Mood, 5, "calm"),
                       QUERN_TAG(Tall)));
    const HiddenFields counts = {.count = 7, .levels = {1, 2}, .owner = scene->tower}; /* a circle of one */
    check(quern_entity_add(scene->world, scene->tower, hidden, &counts));
    check(quern_entity_add(scene->world, scene->tower, raw, "\x01\x02\x03\x04"));
    check(quern_entity_set_name(scene->world, scene->tower, "tower"));
    check(quern_entity_destroy(scene->world, scene->dead));
    scene->place = place;
}

int main(void)
{
    Scene scene = {
        .null = quern_entity_null(), .provisional = {.bits = 5}, .result = QUERN_ERROR_STALE_ENTITY};
    quern_world *other;
    check(quern_world_create(NULL, &scene.world));
    check(quern_world_create(NULL, &other));
    check(quern_entity_create(other, &scene.foreign));
    check(QUERN_REGISTER(scene.world, Place, x, y));
    check(QUERN_REGISTER(scene.world, Mood, anger, title));
    check(QUERN_REGISTER_TAGS(scene.world, Tall));
    create(&scene, quern_component_find(scene.world, "Place"));
    quern_world_destroy(other);
    other = NULL; /* the memory behind it may still look like a world */
    const quern_query_def def = {
        .name = "places",
        .terms = {quern_term_write(scene.place),
                  quern_term_without(quern_component_find(scene.world, "Tall")),
                  quern_term_optional(quern_component_find(scene.world, "Mood"), QUERN_ACCESS_READ)}};
    check(quern_query_create(scene.world, &def, &scene.query));
    quern_query_iterator it = quern_query_iterate(scene.query);
    while (quern_query_next(&it))
        look_here(&scene, &it.view);
    quern_query_destroy(scene.query);
    quern_world_destroy(scene.world);
    return looked == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
