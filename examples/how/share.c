/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The answers of docs/how.md on entity hooks, events that climb, and shared values, as one program. */
#include <quern/quern.h>

#include <stdio.h>

/* ---------------------------------------------------------------------------------------- a sound library */

enum { MOST_LOOPS = 8 };

/* Stands for a library for sound. */
typedef struct Mixer {
    quern_entity owners[MOST_LOOPS]; /* null: the loop is free */
    float volumes[MOST_LOOPS];
} Mixer;

static uint32_t find_loop(const Mixer *mixer, quern_entity owner)
{
    uint32_t i = 0;
    while (i + 1 < MOST_LOOPS && !quern_entity_equal(mixer->owners[i], owner))
        i++;
    return i;
}

static void mixer_start(Mixer *mixer, quern_entity owner)
{
    mixer->owners[find_loop(mixer, quern_entity_null())] = owner;
}

static void mixer_set_volume(Mixer *mixer, quern_entity owner, float volume)
{
    mixer->volumes[find_loop(mixer, owner)] = volume;
}

static void mixer_stop(Mixer *mixer, quern_entity owner)
{
    mixer->owners[find_loop(mixer, owner)] = quern_entity_null();
}

static int count_loops(const Mixer *mixer)
{
    int count = 0;
    for (int i = 0; i < MOST_LOOPS; i++)
        count += !quern_entity_is_null(mixer->owners[i]);
    return count;
}

/* ------------------------------------------------------------------------------------------ entity hooks */

typedef struct Hum {
    float volume;
} Hum;

static void start_hum(quern_world *world, quern_entity entity, void *value, void *mixer)
{
    (void)world, (void)value;
    mixer_start(mixer, entity);
}

static void change_hum(quern_world *world, quern_entity entity, void *value, void *mixer)
{
    (void)world;
    mixer_set_volume(mixer, entity, ((const Hum *)value)->volume);
}

static void stop_hum(quern_world *world, quern_entity entity, void *value, void *mixer)
{
    (void)world, (void)value;
    mixer_stop(mixer, entity);
}

static void register_hum(quern_world *world, Mixer *mixer, quern_component *hum)
{
    const quern_component_def def = {QUERN_TYPE(Hum), .entity_hooks = {.on_add = start_hum,
                                                                       .on_set = change_hum,
                                                                       .on_remove = stop_hum,
                                                                       .user_data = mixer}};
    QUERN_MUST(quern_component_register(world, &def, hum));
}

static void try_hooks(void)
{
    Mixer mixer = {.volumes = {0}};
    quern_world *world;
    quern_component hum;
    quern_entity lamp, fridge;
    QUERN_MUST(quern_world_create(NULL, &world));
    register_hum(world, &mixer, &hum);
    QUERN_MUST(quern_entity_create_with(world, &hum, (const void *[]){&(Hum){0.5f}}, 1, &lamp));
    QUERN_MUST(quern_entity_create_with(world, &hum, (const void *[]){&(Hum){1}}, 1, &fridge));
    printf("loops: %d\n", count_loops(&mixer));
    QUERN_MUST(quern_entity_set(world, lamp, hum, &(Hum){0.2f}));
    QUERN_MUST(quern_entity_destroy(world, fridge));
    printf("loops: %d, volume %.1f\n", count_loops(&mixer), (double)mixer.volumes[find_loop(&mixer, lamp)]);
    quern_world_destroy(world);
    printf("loops: %d\n", count_loops(&mixer));
}

/* --------------------------------------------------------------------------------- events that climb */

typedef struct Click {
    quern_entity target;
} Click;

typedef struct Button {
    const char *label;
    bool is_locked; /* clicks climb on */
} Button;

typedef struct Screen {
    quern_component button;
    quern_relation parent;
} Screen;

static void press(quern_context *context, const quern_view *view)
{
    const Screen *screen = quern_context_user_data(context);
    const Click *clicks = QUERN_EVENTS(view, Click);
    for (uint32_t end = view->count, i = 0; i < end; i++)
        QUERN_CLIMB(context, at, clicks[i].target, screen->parent, screen->button)
        {
            const Button *button = quern_context_lookup(context, at, screen->button);
            if (button->is_locked) continue; /* not handled: the next button above gets the click */
            printf("pressed %s\n", button->label);
            break; /* handled */
        }
}

static void add_pressing(quern_schedule *schedule, Screen *screen, quern_event click)
{
    const quern_system_def def = {.name = "press",
                                  .run = press,
                                  .items = click,
                                  .lookups = {{.component = screen->button}},
                                  .relations = {screen->parent},
                                  .flags = QUERN_SYSTEM_SERIAL, /* it prints */
                                  .user_data = screen};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

static void try_climbing(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_event click;
    quern_entity window, list, row;
    Screen screen;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(QUERN_COMPONENT_REGISTER(world, &screen.button, Button));
    QUERN_MUST(QUERN_EVENT_REGISTER_FIELDS(world, &click, Click, target));
    screen.parent = quern_world_parent(world);
    add_pressing(schedule, &screen, click);
    QUERN_MUST(quern_entity_create_with(world, &screen.button, (const void *[]){&(Button){"window", false}},
                                        1, &window));
    QUERN_MUST(quern_entity_create_with(world, &screen.button, (const void *[]){&(Button){"list", false}},
                                        1, &list));
    QUERN_MUST(quern_entity_create(world, &row)); /* no button */
    QUERN_MUST(quern_entity_relate(world, list, screen.parent, window));
    QUERN_MUST(quern_entity_relate(world, row, screen.parent, list));
    QUERN_MUST(quern_world_emit(world, click, &(Click){row}, 1));
    QUERN_MUST(quern_schedule_run(schedule, NULL, 0));
    QUERN_MUST(quern_entity_set(world, list, screen.button, &(Button){"list", true}));
    QUERN_MUST(quern_world_emit(world, click, &(Click){row}, 1));
    QUERN_MUST(quern_schedule_run(schedule, NULL, 0));
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

/* ----------------------------------------------------------------------------------------- shared values */

typedef struct Place {
    float x;
} Place;

typedef struct Stats {
    float speed;
} Stats;

static quern_prefab make_orcs(quern_world *world, quern_component place, quern_component stats,
                              quern_entity *shared)
{
    const quern_prefab_value once[] = {{.component = stats, .value = &(Stats){2}}};
    const quern_prefab_value own[] = {{.component = place}};
    quern_prefab prefab;
    QUERN_MUST(quern_shared_create(world, once, 1, shared));
    const quern_prefab_member_def members[] = {{.values = own, .value_count = 1, .shared = *shared}};
    QUERN_MUST(quern_prefab_create(world, members, 1, &prefab));
    return prefab;
}

static void walk(quern_context *context, const quern_view *view)
{
    Place *places = QUERN_COLUMN(view, 0, Place);
    const Stats *const *stats = QUERN_UP(view, 1, Stats); /* for each row the address of the shared value */
    (void)context;
    for (uint32_t end = view->count, i = 0; i < end; i++)
        places[i].x += stats[i]->speed;
}

static void add_walking(quern_world *world, quern_schedule *schedule, quern_component place,
                        quern_component stats)
{
    const quern_system_def def = {
        .name = "walk", .run = walk, .terms = {quern_term_write(place), quern_term_shared(world, stats)}};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

static void try_sharing(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_component place, stats;
    quern_entity shared, orcs[2];
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(world, &place, Place, x));
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(world, &stats, Stats, speed));
    const quern_prefab prefab = make_orcs(world, place, stats, &shared);
    QUERN_MUST(quern_prefab_spawn_many(world, prefab, 2, NULL, orcs, NULL));
    add_walking(world, schedule, place, stats);
    QUERN_MUST(quern_schedule_run(schedule, NULL, 0));
    QUERN_MUST(quern_entity_set(world, shared, stats, &(Stats){3}));               /* of all orcs */
    QUERN_MUST(quern_entity_override_shared(world, orcs[1], stats, &(Stats){10})); /* of one */
    QUERN_MUST(quern_schedule_run(schedule, NULL, 0));
    for (int i = 0; i < 2; i++)
        printf("orc %d at %g\n", i, (double)((const Place *)quern_entity_get(world, orcs[i], place))->x);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

int main(void)
{
    try_hooks();
    try_climbing();
    try_sharing();
}
