/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The answers of docs/how.md on systems, order and time, as one program. */
#include <quern/kit/random.h>
#include <quern/quern.h>

#include <stdio.h>
#include <stdlib.h>

typedef struct Place {
    float x, y;
} Place;

typedef struct Health {
    int32_t points;
} Health;

typedef struct Bomb {
    float seconds; /* until it explodes */
    quern_entity target;
} Bomb;

typedef struct Keys {
    bool fire, pause;
} Keys;

QUERN_SYSTEM(explode, (Bomb, bomb))
{
    quern_commands *commands = quern_context_commands(context);
    QUERN_ROWS(i)
    {
        bomb[i].seconds -= (float)quern_context_delta_seconds(context);
        if (bomb[i].seconds > 0) continue;
        QUERN_MUST(QUERN_ADD(commands, bomb[i].target, Burning));
        QUERN_MUST(quern_commands_destroy(commands, view->entities[i]));
    }
}

QUERN_SYSTEM(throw_bombs, (const Place, place))
{
    const Keys *keys = QUERN_RESOURCE(context, const Keys);
    quern_commands *commands = quern_context_commands(context);
    (void)place;
    if (!keys->fire) return;
    QUERN_ROWS(i)
    {
        quern_entity bomb; /* a provisional handle: later commands of this callback may use it */
        QUERN_MUST(
            QUERN_CREATE(commands, &bomb, QUERN_VALUE(Bomb, .seconds = 1, .target = view->entities[i])));
    }
}

static void look(quern_context *context, const quern_view *view)
{
    const quern_component health = *(const quern_component *)quern_context_user_data(context);
    const Bomb *bombs = QUERN_COLUMN(view, 0, const Bomb);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) {
        const Health *target = quern_context_lookup(context, bombs[i].target, health);
        if (target != NULL)
            printf("a bomb aims at %d points\n", target->points); /* NULL: dead, or without it */
    }
}

static void add_look(quern_schedule *schedule, quern_world *world, quern_component *health)
{
    *health = QUERN_ID(world, Health);
    const quern_system_def def = {.name = "look",
                                  .run = look,
                                  .terms = {quern_term_read(QUERN_ID(world, Bomb))},
                                  .lookups = {{.component = *health}},
                                  .flags = QUERN_SYSTEM_SERIAL,
                                  .user_data = health};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

typedef struct Ghost {
    float reach;
} Ghost;

QUERN_SYSTEM(haunt, (const Place, place), (Health, health))
{
    QUERN_EACH_VIEW(context, 0, it)
    {
        const Place *ghosts = QUERN_COLUMN(&it.view, 0, const Place);
        const Ghost *kinds = QUERN_COLUMN(&it.view, 1, const Ghost);
        const uint32_t ghost_count = it.view.count;
        for (uint32_t k = 0; k < ghost_count; k++)
            QUERN_ROWS(i)
            {
                const float x = place[i].x - ghosts[k].x, y = place[i].y - ghosts[k].y;
                health[i].points -= x * x + y * y < kinds[k].reach * kinds[k].reach;
            }
    }
}

static void add_haunt(quern_schedule *schedule, quern_world *world)
{
    const quern_term place = quern_term_read(QUERN_ID(world, Place));
    const quern_term ghost = quern_term_read(QUERN_ID(world, Ghost));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, haunt, .queries = {{.terms = {place, ghost}}}));
}

static void hurt(quern_context *context, const quern_view *view)
{
    const quern_component health = *(const quern_component *)quern_context_user_data(context);
    const Bomb *bombs = QUERN_COLUMN(view, 0, const Bomb);
    const Health loss = {.points = -1};
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) /* the sync point adds up all losses, in a fixed order */
        QUERN_MUST(quern_commands_accumulate(quern_context_commands(context), bombs[i].target, health,
                                             &loss, QUERN_SUM));
}

QUERN_SYSTEM(wander, (Place, place))
{
    const uint64_t frame = quern_context_frame_index(context);
    QUERN_ROWS(i)
    {
        const uint64_t bits = quern_random(view->entities[i].bits & 0xFFFFFFFFu, frame); /* key: the slot */
        place[i].x += quern_random_signed(bits);
        place[i].y += 2 * quern_random_unit(bits) - 1;
    }
}

static void add_up(quern_context *context, const quern_view *view)
{
    const Health *healths = QUERN_COLUMN(view, 0, const Health);
    int64_t *sum = quern_context_partial(context); /* zero before the frame */
    for (uint32_t end = view->count, i = 0; i < end; i++)
        *sum += healths[i].points;
}

static void show_sum(quern_context *context)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < quern_context_partial_count(context); i++)
        sum += *(const int64_t *)quern_context_partial_at(context, i);
    printf("all points: %d\n", (int)sum);
}

static void add_sum(quern_schedule *schedule, quern_world *world)
{
    const quern_system_def def = {.name = "sum",
                                  .phase = 1,
                                  .run = add_up,
                                  .end = show_sum,
                                  .terms = {quern_term_read(QUERN_ID(world, Health))},
                                  .partial_bytes = sizeof(int64_t)};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

typedef struct Settings {
    int32_t volume;
} Settings;

static void apply_volume(quern_context *context, const quern_view *view)
{
    (void)view;
    printf("frame %d: volume %d\n", (int)quern_context_frame_index(context),
           (int)QUERN_RESOURCE(context, const Settings)->volume);
}

static void add_volume(quern_schedule *schedule, quern_resource settings)
{
    const quern_system_def def = {.name = "volume", .run = apply_volume, .if_changed = {settings}};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

static bool is_fire_pressed(quern_context *context)
{
    return QUERN_RESOURCE(context, const Keys)->fire;
}

static void ring(quern_context *context)
{
    printf("frame %d: alarm\n", (int)quern_context_frame_index(context));
}

static void add_alarm(quern_schedule *schedule, quern_resource keys)
{
    const quern_system_def def = {.name = "alarm",
                                  .begin = ring, /* a system without terms is called once per frame */
                                  .condition = is_fire_pressed,
                                  .resources = {{keys, QUERN_ACCESS_READ}}};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

QUERN_SYSTEM(draw, (const Place, place))
{
    QUERN_ROWS(i)
    printf("at %.1f, %.1f\n", (double)place[i].x, (double)place[i].y); /* your renderer here */
    (void)context;
}

static void add_draw(quern_schedule *schedule)
{
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, draw, .phase = 1, .flags = QUERN_SYSTEM_MAIN_THREAD));
}

static void build_level(quern_context *context)
{
    quern_world *world = quern_context_world(context); /* all other systems wait */
    if (quern_context_frame_index(context) == 0)
        QUERN_MUST(QUERN_CREATE(world, NULL, QUERN_VALUE(Place, 5, 5), QUERN_VALUE(Health, 3)));
}

static void add_level(quern_schedule *schedule)
{
    const quern_system_def def = {.name = "level", .begin = build_level, .flags = QUERN_SYSTEM_EXCLUSIVE};
    QUERN_MUST(quern_schedule_add_system(schedule, &def, NULL));
}

static quern_schedule *create_schedule(quern_world *world)
{
    quern_schedule *schedule;
    const quern_schedule_def def = {.phases = {"simulation", "display"}};
    QUERN_MUST(quern_schedule_create(world, &def, &schedule));
    return schedule;
}

QUERN_SYSTEM(burn, (Health, health))
{
    QUERN_ROWS(i) health[i].points--;
}

QUERN_SYSTEM(grow, (Health, health))
{
    QUERN_ROWS(i) health[i].points++;
}

QUERN_SYSTEM(shrink, (Health, health))
{
    QUERN_ROWS(i) health[i].points--;
}

static void flee(quern_context *context, const quern_view *view)
{
    Place *places = QUERN_COLUMN(view, 0, Place);
    const uint32_t count = view->count;
    (void)context;
    for (uint32_t i = 0; i < count; i++)
        places[i].x += 1;
}

static void order(quern_schedule *schedule, quern_resource keys)
{
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, explode, .after = {"throw_bombs"}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, throw_bombs, .resources = {{keys, QUERN_ACCESS_READ}}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, wander, .interval_seconds = 2));
    QUERN_MUST(
        quern_schedule_set_fixed_step(schedule, 0, 1.0 / 60, 8)); /* phase 0, at most 8 steps a frame */
}

static void add_burning(quern_schedule *schedule)
{
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, burn, .after_commands_of = {"explode"}));
}

static void add_sets(quern_schedule *schedule)
{
    const quern_set_def world_of_game = {.name = "the game", .before = {"draw"}};
    QUERN_MUST(quern_schedule_add_set(schedule, &world_of_game));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, grow, .sets = {"the game"}, .every = 4));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, shrink, .sets = {"the game"}, .every = 4)); /* another frame */
    QUERN_MUST(quern_schedule_enable_set(schedule, "the game", true));
}

static void pause(quern_schedule *schedule, bool is_paused)
{
    const quern_system wandering = quern_schedule_find_system(schedule, "wander");
    QUERN_MUST(quern_schedule_set_system_enabled(schedule, wandering, !is_paused));
}

static void load_mod(quern_schedule *schedule, quern_world *world)
{
    const quern_system_def other = {.run = flee, .terms = {quern_term_write(QUERN_ID(world, Place))}};
    const quern_system wandering = quern_schedule_find_system(schedule, "wander");
    QUERN_MUST(quern_schedule_replace_system(schedule, wandering, &other)); /* keeps its place */
    QUERN_MUST(quern_schedule_remove_system(schedule, quern_schedule_find_system(schedule, "hurt")));
}

static void play(quern_world *world, quern_schedule *schedule, quern_resource keys)
{
    for (int frame = 0; frame < 3; frame++) {
        Keys *pressed = quern_resource_get(world, keys);          /* between frames the program writes */
        pressed->fire = frame == 1;                               /* ask your window library here */
        QUERN_MUST(quern_schedule_run(schedule, NULL, 1.0 / 60)); /* inside frames systems read */
    }
}

static int test_explode(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_entity wall, bomb;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(quern_entity_create(world, &wall));
    QUERN_MUST(QUERN_REGISTER_TAGS(world, Burning));
    QUERN_MUST(QUERN_REGISTER(world, Bomb, seconds, target));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, explode));
    QUERN_MUST(QUERN_CREATE(world, &bomb, QUERN_VALUE(Bomb, .seconds = 0.5f, .target = wall)));
    QUERN_MUST(quern_schedule_run(schedule, NULL, 0.4));
    const bool waits = quern_entity_is_alive(world, bomb);
    QUERN_MUST(quern_schedule_run(schedule, NULL, 0.2));
    const bool explodes = !quern_entity_is_alive(world, bomb) && QUERN_HAS(world, wall, Burning);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return waits && explodes ? 0 : 1;
}

static uint64_t run_shuffled(uint64_t seed)
{
    quern_world *world;
    quern_schedule *schedule;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_schedule_create(world, &(quern_schedule_def){.shuffle_seed = seed}, &schedule));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, wander));
    for (int i = 0; i < 500; i++)
        QUERN_MUST(QUERN_CREATE(world, NULL, QUERN_VALUE(Place, 0, 0)));
    for (int frame = 0; frame < 10; frame++)
        QUERN_MUST(quern_schedule_run(schedule, NULL, 1.0 / 60));
    const uint64_t hash =
        quern_world_hash(world); /* equal for all seeds, unless a system hides an access */
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return hash;
}

static int points_after_haunt(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_entity player;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    add_haunt(schedule, world);
    QUERN_MUST(QUERN_CREATE(world, &player, QUERN_VALUE(Place, 0, 0), QUERN_VALUE(Health, 9)));
    for (int x = 0; x < 6; x += 2)
        QUERN_MUST(QUERN_CREATE(world, NULL, QUERN_VALUE(Place, (float)x, 0), QUERN_VALUE(Ghost, 3)));
    QUERN_MUST(quern_schedule_run(schedule, NULL, 1));
    const int points = QUERN_GET(world, player, Health)->points;
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return points;
}

int main(void)
{
    quern_world *world;
    quern_resource keys, settings;
    quern_component health;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(QUERN_REGISTER(world, Bomb, seconds, target));
    QUERN_MUST(QUERN_REGISTER(world, Health, points)); /* QUERN_SUM needs described numbers */
    QUERN_MUST(QUERN_REGISTER_TAGS(world, Burning));
    QUERN_MUST(QUERN_RESOURCE_REGISTER(world, &keys, Keys));
    quern_schedule *schedule = create_schedule(world);
    add_level(schedule);
    order(schedule, keys);
    add_look(schedule, world, &health);
    const quern_system_def hurts = {.name = "hurt",
                                    .run = hurt,
                                    .terms = {quern_term_read(QUERN_ID(world, Bomb))},
                                    .user_data = &health};
    QUERN_MUST(quern_schedule_add_system(schedule, &hurts, NULL));
    add_alarm(schedule, keys);
    QUERN_MUST(QUERN_RESOURCE_REGISTER_FIELDS(world, &settings, Settings, volume));
    add_volume(schedule, settings);
    add_sum(schedule, world);
    add_draw(schedule);
    pause(schedule, true);
    play(world, schedule, keys);
    add_sets(schedule);
    add_burning(schedule);
    load_mod(schedule, world);
    QUERN_MUST(quern_schedule_compile(schedule));
    printf("two of three ghosts are near: %d points\n", points_after_haunt());
    printf("the test of explode: %s\n", test_explode() == 0 ? "passed" : "failed");
    printf("shuffled runs: %s\n", run_shuffled(0) == run_shuffled(7) ? "equal" : "different");
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}
