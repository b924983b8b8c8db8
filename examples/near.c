/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The grid of the kit: each bee flies to the nearest flower within sight and drinks its nectar. A flower
 * without nectar is destroyed. docs/kit.md explains it. */
#include <quern/kit/grid.h>

#include <stdio.h>
#include <stdlib.h>

enum { FLOWERS = 40, BEES = 8, FRAMES = 300 };

static const float sight = 6.0f;
static const float speed = 4.0f;
static const float size = 24.0f; /* size of the meadow */

typedef struct Place {
    float x, y;
} Place;

typedef struct Bee {
    quern_entity flower; /* the flower that it flies to; null while it sees none */
    uint32_t nectar;     /* number of flowers that it has emptied */
} Bee;

typedef struct Meadow {
    quern_component place, bee, flower;
    quern_grid *grid;
    quern_resource flowers; /* the grid as a resource, which the systems that read the grid declare */
} Meadow;

static void check(quern_result result)
{
    if (result == QUERN_OK) return;
    (void)fprintf(stderr, "near: %s\n", quern_error_message());
    exit(EXIT_FAILURE);
}

/* Creates a grid of flowers. Its cells are as wide as the radius of the queries. */
static void make_grid(quern_world *world, Meadow *meadow)
{
    const quern_grid_def def = {.name = "flowers",
                                .position = meadow->place,
                                .planar = true,
                                .cell_size = sight,
                                .with = {meadow->flower}};
    check(quern_grid_create(world, &def, &meadow->grid));
    meadow->flowers = quern_grid_resource(meadow->grid);
}

/* Finds the nearest flower within sight of each bee. */
static void look_out(quern_context *context, const quern_view *view)
{
    const Meadow *meadow = quern_context_user_data(context);
    const quern_grid *flowers = quern_context_grid(context, meadow->flowers);
    const Place *places = QUERN_COLUMN(view, 0, const Place);
    Bee *bees = QUERN_COLUMN(view, 1, Bee);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        quern_grid_hit nearest;
        const uint32_t found = quern_grid_nearest(flowers, &places[i].x, sight, &nearest, 1);
        bees[i].flower = found > 0 ? nearest.item->entity : quern_entity_null();
    }
}

static void fly(quern_context *context, const quern_view *view)
{
    const Meadow *meadow = quern_context_user_data(context);
    Place *places = QUERN_COLUMN(view, 0, Place);
    Bee *bees = QUERN_COLUMN(view, 1, Bee);
    const float step = speed * (float)quern_context_delta_seconds(context);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        const Place *flower = quern_context_lookup(context, bees[i].flower, meadow->place);
        if (flower == NULL) continue;
        const float dx = flower->x - places[i].x, dy = flower->y - places[i].y;
        const float far = (dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy);
        if (far <= step) {
            bees[i].nectar++;
            quern_commands_destroy(quern_context_commands(context), bees[i].flower);
            continue;
        }
        places[i].x += step * dx / far;
        places[i].y += step * dy / far;
    }
}

static void add_systems(quern_schedule *schedule, Meadow *meadow)
{
    check(quern_grid_add_systems(meadow->grid, schedule, 0));
    const quern_system_def look = {.name = "look out",
                                   .run = look_out,
                                   .user_data = meadow,
                                   .terms = {quern_term_read(meadow->place), quern_term_write(meadow->bee)},
                                   .resources = {{meadow->flowers, QUERN_ACCESS_READ}}};
    check(quern_schedule_add_system(schedule, &look, NULL));
    /* The system writes only places of entities that are not flowers, and looks up only places of
     * flowers. So the lookup does not conflict with the writes, and views can run at the same time. */
    const quern_system_def flight = {.name = "fly",
                                     .run = fly,
                                     .user_data = meadow,
                                     .terms = {quern_term_write(meadow->place),
                                               quern_term_write(meadow->bee),
                                               quern_term_without(meadow->flower)},
                                     .lookups = {{meadow->place, .with = meadow->flower}}};
    check(quern_schedule_add_system(schedule, &flight, NULL));
}

/* Returns a scattered place, the same in every run. */
static Place scattered_place(uint32_t i)
{
    return (Place){(float)(i * 2654435761u >> 16) / 65536.0f * size,
                   (float)(i * 40503u * 65537u >> 16) / 65536.0f * size};
}

static void populate(quern_world *world, const Meadow *meadow)
{
    for (uint32_t i = 1; i <= FLOWERS + BEES; i++) {
        const Place place = scattered_place(i);
        const quern_component components[] = {meadow->place, i <= FLOWERS ? meadow->flower : meadow->bee};
        const void *const values[] = {&place, NULL};
        quern_entity entity;
        check(quern_entity_create_with(world, components, values, 2, &entity));
    }
}

/* Prints the nectar of each bee, and the number of flowers. */
static void report(quern_world *world, const Meadow *meadow)
{
    const quern_query_def def = {.terms = {quern_term_read(meadow->bee)}};
    quern_query *query;
    check(quern_query_create(world, &def, &query));
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const Bee *bees = QUERN_COLUMN(&it.view, 0, const Bee);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            printf("bee %u: nectar of %u flowers\n", i + 1, bees[i].nectar);
    }
    quern_query_destroy(query);
    /* The grid still contains the flowers that the last frame destroyed, so it is built again. The radius
     * covers the whole meadow. */
    const float middle[] = {size / 2, size / 2};
    uint32_t left = 0;
    check(quern_grid_build(meadow->grid, NULL));
    quern_grid_iterator flowers = quern_grid_radius(meadow->grid, middle, size);
    while (quern_grid_next(&flowers))
        left++;
    printf("%u flowers are left\n", left);
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    Meadow meadow = {0};
    check(quern_world_create(NULL, &world));
    check(QUERN_COMPONENT_REGISTER(world, &meadow.place, Place));
    check(QUERN_COMPONENT_REGISTER_FIELDS(world, &meadow.bee, Bee, flower, nectar));
    check(quern_component_register(world, &(quern_component_def){.name = "flower"}, &meadow.flower));
    make_grid(world, &meadow);
    check(quern_schedule_create(world, NULL, &schedule));
    add_systems(schedule, &meadow);
    populate(world, &meadow);
    for (uint32_t frame = 0; frame < FRAMES; frame++)
        check(quern_schedule_run(schedule, NULL, 1.0 / 60));
    report(world, &meadow);
    quern_schedule_destroy(schedule);
    quern_grid_destroy(meadow.grid);
    quern_world_destroy(world);
    return EXIT_SUCCESS;
}
