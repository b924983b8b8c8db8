/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The answers of docs/how.md on what games are made of, as one program. */
#include <quern/kit/grid.h>
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Place {
    float x, y;
} Place;

typedef struct Health {
    int32_t points;
} Health;

typedef struct Lifetime {
    float seconds;
} Lifetime;

typedef struct Gun {
    float reload_seconds, left_seconds;
} Gun;

typedef enum Mood { MOOD_CALM, MOOD_ANGRY } Mood;

typedef struct Guard {
    Mood mood;
    float seconds; /* in this mood */
} Guard;

typedef struct Wave {
    uint32_t number;
} Wave;

typedef struct Hit {
    quern_entity victim;
    int32_t damage;
} Hit;

QUERN_SYSTEM(expire, (Lifetime, lifetime))
{
    quern_commands *commands = quern_context_commands(context);
    QUERN_ROWS(i)
    {
        lifetime[i].seconds -= (float)quern_context_delta_seconds(context);
        if (lifetime[i].seconds <= 0) QUERN_MUST(quern_commands_destroy(commands, view->entities[i]));
    }
}

/* Gun is registered with .can_disable. A gun that fires is disabled, and another system enables it again. */
static void fire(quern_context *context, const quern_view *view)
{
    Gun *guns = QUERN_COLUMN(view, 0, Gun); /* only rows with an enabled gun */
    const uint32_t count = view->count;
    (void)context;
    for (uint32_t i = 0; i < count; i++) {
        guns[i].left_seconds = guns[i].reload_seconds;
        (void)quern_view_set_enabled(view, 0, i, false);
    }
}

static void reload(quern_context *context, const quern_view *view)
{
    Gun *guns = QUERN_COLUMN(view, 0, Gun); /* only rows with a disabled gun */
    const float seconds = (float)quern_context_delta_seconds(context);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        guns[i].left_seconds -= seconds;
        if (guns[i].left_seconds <= 0) (void)quern_view_set_enabled(view, 0, i, true);
    }
}

static void add_guns(quern_schedule *schedule, quern_component gun)
{
    const quern_term write = quern_term_write(gun);
    const quern_system_def systems[] = {
        {.name = "fire", .run = fire, .terms = {write}},
        {.name = "reload", .run = reload, .terms = {quern_term_if_disabled(write)}}};
    for (int i = 0; i < 2; i++)
        QUERN_MUST(quern_schedule_add_system(schedule, &systems[i], NULL));
}

QUERN_SYSTEM(think, (Guard, guard), (const Health, health))
{
    QUERN_ROWS(i)
    {
        const Mood mood = health[i].points < 5 ? MOOD_ANGRY : MOOD_CALM; /* the transitions */
        guard[i].seconds =
            mood == guard[i].mood ? guard[i].seconds + (float)quern_context_delta_seconds(context) : 0;
        guard[i].mood = mood; /* a tag per state pays off if most systems want one state only */
    }
}

QUERN_SYSTEM(spawn_wave, (Wave, wave))
{
    quern_commands *commands = quern_context_commands(context);
    QUERN_ROWS(i)
    {
        wave[i].number++;
        for (uint32_t k = 0; k < 10 * wave[i].number; k++)
            QUERN_MUST(QUERN_CREATE(commands, NULL, QUERN_VALUE(Place, (float)k, 0),
                                    QUERN_VALUE(Health, 10), QUERN_TAG(Monster)));
    }
}

static void add_waves(quern_world *world, quern_schedule *schedule)
{
    QUERN_MUST(
        QUERN_CREATE(world, NULL, QUERN_VALUE(Wave, 0))); /* each such entity sends waves of its own */
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, spawn_wave, .interval_seconds = 5));
}

static void hit_monsters(quern_context *context, const quern_view *view)
{
    const quern_event hit = *(const quern_event *)quern_context_user_data(context);
    quern_emitter *hits = quern_context_emitter(context, hit);
    for (uint32_t end = view->count, i = 0; i < end; i++)
        quern_emit(hits, &(Hit){.victim = view->entities[i], .damage = 3});
}

static void count_hits(quern_context *context, const quern_view *view)
{
    const Hit *hits = QUERN_EVENTS(view, Hit);
    printf("frame %d: %u hits, the first of %d\n", (int)quern_context_frame_index(context), view->count,
           hits[0].damage);
}

static void add_hits(quern_world *world, quern_schedule *schedule, quern_event *hit)
{
    QUERN_MUST(QUERN_EVENT_REGISTER_FIELDS(world, hit, Hit, victim, damage));
    const quern_system_def systems[] = {
        {.name = "hit monsters",
         .run = hit_monsters,
         .terms = {quern_term_with(quern_component_find(world, "Monster"))},
         .emits = {*hit},
         .user_data = hit},
        {.name = "count hits", .phase = 1, .run = count_hits, .items = *hit, .flags = QUERN_SYSTEM_SERIAL}};
    for (int i = 0; i < 2; i++)
        QUERN_MUST(quern_schedule_add_system(schedule, &systems[i], NULL));
}

static void show_health(quern_context *context, const quern_view *view)
{
    const Health *healths = QUERN_COLUMN(view, 0, const Health);
    (void)context;
    for (uint32_t end = view->count, i = 0; i < end; i++)
        printf("health of %u is now %d\n", quern_entity_index(view->entities[i]), healths[i].points);
}

static void add_display(quern_world *world, quern_schedule *schedule)
{
    const quern_system_def def = {.name = "show health",
                                  .run = show_health,
                                  .terms = {quern_term_read(QUERN_ID(world, Health)),
                                            quern_term_without(quern_component_find(world, "Monster"))},
                                  .reacts_to =
                                      QUERN_REACT_ADDED | QUERN_REACT_SET, /* set, not written by columns */
                                  .flags = QUERN_SYSTEM_MAIN_THREAD};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

static void build_vehicle(quern_world *world)
{
    quern_entity vehicle, gun, copies[3];
    quern_prefab prefab;
    QUERN_MUST(QUERN_CREATE(world, &vehicle, QUERN_VALUE(Place, 1, 1)));
    QUERN_MUST(QUERN_CREATE(world, &gun, QUERN_VALUE(Place, 0, 1)));
    QUERN_MUST(quern_entity_relate(world, gun, quern_world_parent(world), vehicle)); /* destroyed with it */
    QUERN_MUST(quern_entity_set_name(world, vehicle, "vehicle"));
    QUERN_MUST(quern_entity_set_name(world, gun, "gun"));
    const quern_entity found = quern_entity_find(world, "vehicle/gun");
    for (quern_entity child = quern_entity_first_source(world, vehicle, quern_world_parent(world));
         !quern_entity_is_null(child);
         child = quern_entity_next_sibling(world, child, quern_world_parent(world)))
        printf("child: %s\n", quern_entity_name(world, child));
    QUERN_MUST(
        quern_prefab_capture(world, vehicle, &prefab)); /* once; systems then use quern_commands_spawn */
    for (int i = 0; i < 3; i++)
        QUERN_MUST(quern_prefab_spawn(
            world, prefab, &(quern_spawn_def){.parent = quern_entity_find(world, "park")}, NULL));
    QUERN_MUST(quern_prefab_spawn_many(world, prefab, 3, NULL, copies, NULL));
    QUERN_MUST(quern_entity_set_enabled(world, copies[0], false)); /* queries and systems leave it out */
    QUERN_MUST(quern_entity_set_enabled(world, copies[0], true));
    printf("found: %s\n", quern_entity_equal(found, gun) ? "yes" : "no");
}

static void follow_parent(quern_context *context, const quern_view *view)
{
    Place *places = QUERN_COLUMN(view, 0, Place);
    const Place *const *parents = QUERN_UP(view, 1, Place); /* rows whose parent lacks it are left out */
    (void)context;
    for (uint32_t end = view->count, i = 0; i < end; i++)
        places[i].x = parents[i]->x;
}

static void add_following(quern_world *world, quern_schedule *schedule)
{
    const quern_component place = QUERN_ID(world, Place);
    const quern_relation parent = quern_world_parent(world);
    const quern_system_def def = {.name = "follow parent",
                                  .run = follow_parent,
                                  .terms = {quern_term_write(place), quern_term_up(place, parent)},
                                  .levels =
                                      parent}; /* parents first, so that values pass down in one frame */
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

static uint32_t count_near(quern_world *world)
{
    quern_grid *grid;
    uint32_t count = 0;
    const float center[2] = {1, 1};
    const quern_grid_def def = {
        .name = "places", .position = QUERN_ID(world, Place), .planar = true, .cell_size = 2};
    QUERN_MUST(quern_grid_create(world, &def, &grid));
    QUERN_MUST(quern_grid_build(grid, NULL)); /* with systems: quern_grid_add_systems, once */
    quern_grid_iterator near = quern_grid_radius(grid, center, 1.5f);
    while (quern_grid_next(&near))
        count++; /* near.item->entity, near.square */
    quern_grid_destroy(grid);
    return count;
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_component gun;
    quern_event hit;
    quern_entity guard, park, spark;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(QUERN_REGISTER(world, Place, x, y));
    QUERN_MUST(QUERN_REGISTER_TAGS(world, Monster));
    QUERN_MUST(quern_component_register(world, &(quern_component_def){QUERN_TYPE(Gun), .can_disable = true},
                                        &gun));
    const quern_schedule_def def = {.phases = {"simulation", "display"}};
    QUERN_MUST(quern_schedule_create(world, &def, &schedule));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, expire));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, think));
    add_guns(schedule, gun);
    add_waves(world, schedule);
    add_hits(world, schedule, &hit);
    add_display(world, schedule);
    QUERN_MUST(quern_entity_create(world, &park));
    QUERN_MUST(quern_entity_set_name(world, park, "park"));
    QUERN_MUST(QUERN_ADD(world, park, Place));
    QUERN_MUST(QUERN_CREATE(world, &guard, QUERN_VALUE(Guard, MOOD_CALM, 0), QUERN_VALUE(Health, 10),
                            QUERN_VALUE(Gun, .reload_seconds = 2)));
    QUERN_MUST(QUERN_CREATE(world, &spark, QUERN_VALUE(Lifetime, 3)));
    build_vehicle(world);
    add_following(world, schedule);
    for (int second = 1; second <= 6; second++) {
        if (second == 5) QUERN_MUST(QUERN_SET(world, guard, Health, 4));
        QUERN_MUST(quern_schedule_run(schedule, NULL, 1));
        printf("second %d: spark %s, guard %s, gun %s\n", second,
               quern_entity_is_alive(world, spark) ? "glows" : "is gone",
               QUERN_GET(world, guard, Guard)->mood == MOOD_CALM ? "calm" : "angry",
               quern_entity_is_component_enabled(world, guard, gun) ? "loaded" : "empty");
    }
    printf("near: %u\n", count_near(world));
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}
