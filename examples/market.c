/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The market town of cpp/market.cpp in C: the same types, systems and hash. tests/docs/test_counts.py compares their
 * tokens.
 *
 * market [FRAMES] */
#include <quern/quern.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Place {
    int32_t x, y;
} Place;

typedef struct Purse {
    int32_t gold;
} Purse;

typedef struct Grain {
    int32_t sacks;
} Grain;

typedef struct Bread {
    int32_t loaves;
} Bread;

typedef struct Age {
    int32_t days;
} Age;

typedef struct Hunger {
    int32_t level;
} Hunger;

typedef struct Field {
    int32_t fertility;
} Field;

typedef struct Stall {
    quern_entity guard; /* a part of the prefab */
    int32_t sold;
} Stall;

typedef struct Sale {
    quern_entity seller;
    int32_t gold;
} Sale;

typedef struct Death {
    int32_t age;
} Death;

typedef struct Calendar {
    int32_t day, price, newcomers, deaths, taxes;
    int64_t gold;
    int32_t people;
} Calendar;

typedef struct Wealth {
    int64_t gold;
    int32_t people;
} Wealth;

typedef struct Town {
    quern_world *world;
    quern_schedule *schedule;
    quern_relation works_at;
    quern_prefab stall;
    quern_component purse, place, farmer;
    quern_event sale, death;
    quern_resource calendar;
} Town;

/* The day begins, and the price follows the harvest. */
static void begin_day(quern_context *context)
{
    Calendar *calendar = QUERN_RESOURCE(context, Calendar);
    calendar->day++;
    calendar->price = 2 + calendar->day % 5;
}

/* Farmers harvest what the field of their farm gives. */
static void harvest(quern_context *context, const quern_view *view)
{
    Grain *grains = QUERN_COLUMN(view, 0, Grain);
    const Field *const *fields = QUERN_UP(view, 2, Field);
    const uint32_t count = view->count;
    (void)context;
    QUERN_ROWS(i) grains[i].sacks += fields[i]->fertility;
}

/* They walk towards the market. */
QUERN_SYSTEM(walk, (Place, places))
{
    QUERN_ROWS(i)
    {
        places[i].x += places[i].x > 50 ? -1 : 1;
        places[i].y += places[i].y > 50 ? -1 : 1;
    }
}

static bool is_market_day(quern_context *context)
{
    return QUERN_RESOURCE(context, const Calendar)->day % 3 == 0;
}

/* On market days, farmers sell. */
QUERN_SYSTEM(sell, (Grain, grains))
{
    const Town *town = quern_context_user_data(context);
    quern_emitter *sales = quern_context_emitter(context, town->sale);
    const int32_t price = QUERN_RESOURCE(context, const Calendar)->price;
    QUERN_ROWS(i)
    {
        if (grains[i].sacks < 5) continue;
        quern_emit(sales, &(Sale){view->entities[i], grains[i].sacks * price});
        grains[i].sacks = 0;
    }
}

/* The town takes a tax of each sale; the seller gets the rest, added up at the sync point. */
static void pay(quern_context *context, const quern_view *view)
{
    const Town *town = quern_context_user_data(context);
    const Sale *sales = QUERN_EVENTS(view, Sale);
    quern_commands *commands = quern_context_commands(context);
    const uint32_t count = view->count;
    QUERN_ROWS(i)
    {
        const Purse share = {sales[i].gold - sales[i].gold / 10};
        (void)quern_commands_accumulate(commands, sales[i].seller, town->purse, &share, QUERN_SUM);
    }
}

/* And counts it. */
static void tax(quern_context *context, const quern_view *view)
{
    Calendar *calendar = QUERN_RESOURCE(context, Calendar);
    const Sale *sales = QUERN_EVENTS(view, Sale);
    const uint32_t count = view->count;
    QUERN_ROWS(i) calendar->taxes += sales[i].gold / 10;
}

/* Bakers bake for gold. */
QUERN_SYSTEM(bake, (Bread, breads), (Purse, purses))
{
    QUERN_ROWS(i)
    {
        if (purses[i].gold < 2) continue;
        purses[i].gold -= 2;
        breads[i].loaves += 3;
    }
}

QUERN_SYSTEM(hunger, (Hunger, hungers))
{
    QUERN_ROWS(i) hungers[i].level++;
}

/* A person with bread eats, one with gold buys. */
QUERN_SYSTEM(eat, (Hunger, hungers), (Bread, breads), (Purse, purses))
{
    QUERN_ROWS(i)
    {
        if (breads[i].loaves == 0 && purses[i].gold > 0) {
            purses[i].gold--;
            breads[i].loaves++;
        }
        if (breads[i].loaves == 0) continue;
        breads[i].loaves--;
        hungers[i].level = 0;
    }
}

/* People age, and die of it or of hunger. */
QUERN_SYSTEM(age, (Age, ages), (const Hunger, hungers))
{
    const Town *town = quern_context_user_data(context);
    quern_emitter *deaths = quern_context_emitter(context, town->death);
    QUERN_ROWS(i)
    {
        ages[i].days += 30;
        if (ages[i].days < 25000 && hungers[i].level < 20) continue;
        quern_emit(deaths, &(Death){ages[i].days});
        QUERN_MUST(quern_commands_destroy(quern_context_commands(context), view->entities[i]));
    }
}

/* Rich farmers of some age have children. The children work at the same farm. */
QUERN_SYSTEM(births, (Purse, purses), (const Place, places), (const Age, ages))
{
    const Town *town = quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    QUERN_ROWS(i)
    {
        if (purses[i].gold < 150 || ages[i].days < 6000 || ages[i].days > 15000) continue;
        purses[i].gold -= 140;
        quern_entity child;
        QUERN_MUST(QUERN_CREATE(commands, &child, QUERN_VALUE_AT(Place, &places[i]), QUERN_VALUE(Purse, 10),
                                QUERN_VALUE(Bread, 5), QUERN_VALUE(Age, 0), QUERN_VALUE(Hunger, 0),
                                QUERN_VALUE(Grain, 0)));
        QUERN_MUST(quern_commands_add(commands, child, town->farmer, NULL));
        QUERN_MUST(quern_commands_relate(commands, child, town->works_at,
                                         quern_context_target(context, view->entities[i], town->works_at)));
    }
}

/* A reaction counts new people. */
static void note_newcomers(quern_context *context, const quern_view *view)
{
    QUERN_RESOURCE(context, Calendar)->newcomers += (int32_t)view->count;
}

/* Partial results, which do not depend on the number of threads, and the deaths of the day. */
QUERN_SYSTEM(count_people, (const Purse, purses))
{
    Wealth *wealth = quern_context_partial(context);
    QUERN_ROWS(i)
    {
        wealth->gold += purses[i].gold;
        wealth->people++;
    }
}

static void end_count(quern_context *context)
{
    const Town *town = quern_context_user_data(context);
    Calendar *calendar = QUERN_RESOURCE(context, Calendar);
    calendar->gold = 0;
    calendar->people = 0;
    for (uint32_t i = 0; i < quern_context_partial_count(context); i++) {
        const Wealth *wealth = quern_context_partial_at(context, i);
        calendar->gold += wealth->gold;
        calendar->people += wealth->people;
    }
    calendar->deaths += (int32_t)quern_context_event_count(context, town->death);
}

static void add_systems(Town *town)
{
    quern_schedule *schedule = town->schedule;
    const quern_term farmer = quern_term_with(town->farmer),
                     baker = quern_term_with(quern_component_find(town->world, "Baker"));
    const quern_resource_access reads = {town->calendar, QUERN_ACCESS_READ},
                                writes = {town->calendar, QUERN_ACCESS_WRITE};
    const quern_system_def day = {.name = "day", .begin = begin_day, .resources = {writes}};
    const quern_system_def harvesting = {
        .name = "harvest",
        .run = harvest,
        .terms = {quern_term_write(QUERN_ID(town->world, Grain)), farmer,
                  quern_term_up(QUERN_ID(town->world, Field), town->works_at)},
        .after = {"day"}};
    const quern_system_def paying = {
        .name = "pay", .run = pay, .items = town->sale, .after = {"sell"}, .user_data = town};
    const quern_system_def taxing = {
        .name = "tax", .run = tax, .items = town->sale, .resources = {writes}, .after = {"sell"}};
    const quern_system_def noting = {.name = "note newcomers",
                                     .run = note_newcomers,
                                     .terms = {quern_term_read(QUERN_ID(town->world, Age))},
                                     .reacts_to = QUERN_REACT_ADDED,
                                     .resources = {writes}};
    QUERN_MUST(quern_schedule_add_system(schedule, &day, NULL));
    QUERN_MUST(quern_schedule_add_system(schedule, &harvesting, NULL));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, walk, .terms = {farmer}, .after = {"harvest"}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, sell, .terms = {farmer}, .resources = {reads},
                                .emits = {town->sale}, .condition = is_market_day, .after = {"walk"},
                                .user_data = town));
    QUERN_MUST(quern_schedule_add_system(schedule, &paying, NULL));
    QUERN_MUST(quern_schedule_add_system(schedule, &taxing, NULL));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, bake, .terms = {baker}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, hunger, .after = {"bake"}));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, eat, .after = {"hunger"}));
    QUERN_MUST(
        QUERN_ADD_SYSTEM(schedule, age, .emits = {town->death}, .after = {"eat"}, .user_data = town));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, births, .terms = {farmer}, .relations = {town->works_at},
                                .after = {"age"}, .user_data = town));
    QUERN_MUST(quern_schedule_add_system(schedule, &noting, NULL));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, count_people, .end = end_count, .partial_bytes = sizeof(Wealth),
                                .reads_events = {town->death}, .resources = {writes}, .after = {"births"},
                                .user_data = town));
}

static void make_stall(Town *town)
{
    quern_world *world = town->world;
    const Stall sells = {quern_prefab_member_handle(1), 0};
    const quern_prefab_value stall[] = {{.component = QUERN_ID(world, Place), .value = &(Place){0, 0}},
                                        {.component = QUERN_ID(world, Stall), .value = &sells},
                                        {.component = QUERN_ID(world, Grain), .value = &(Grain){0}}};
    const quern_prefab_value guard[] = {{.component = QUERN_ID(world, Age), .value = &(Age){7000}},
                                        {.component = QUERN_ID(world, Hunger), .value = &(Hunger){0}},
                                        {.component = QUERN_ID(world, Purse), .value = &(Purse){5}},
                                        {.component = QUERN_ID(world, Bread), .value = &(Bread){9}}};
    const quern_prefab_member_def members[] = {{.values = stall, .value_count = 3},
                                               {.name = "guard", .values = guard, .value_count = 4}};
    QUERN_MUST(quern_prefab_create(world, members, 2, &town->stall));
}

/* Registers what the town consists of, in one order, so that a save fits another town. */
static void open_town(Town *town)
{
    QUERN_MUST(quern_world_create(NULL, &town->world));
    quern_world *world = town->world;
    const quern_relation_def works_at = {.name = "works at", .on_target_destroyed = QUERN_TARGET_UNRELATES};
    const Calendar first = {.price = 3};
    quern_resource_def calendar = {
        QUERN_TYPE(Calendar),
        .fields = QUERN_FIELDS(Calendar, day, price, newcomers, deaths, taxes, gold, people),
        .value = &first};
    QUERN_MUST(quern_relation_register(world, &works_at, &town->works_at));
    QUERN_MUST(quern_resource_register(world, &calendar, &town->calendar));
    QUERN_MUST(QUERN_REGISTER(world, Age, days));
    QUERN_MUST(QUERN_REGISTER(world, Hunger, level));
    QUERN_MUST(QUERN_REGISTER(world, Purse, gold));
    QUERN_MUST(QUERN_REGISTER(world, Bread, loaves));
    QUERN_MUST(QUERN_REGISTER(world, Place, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Stall, guard, sold));
    QUERN_MUST(QUERN_REGISTER(world, Grain, sacks));
    QUERN_MUST(QUERN_REGISTER_TAGS(world, Farmer));
    QUERN_MUST(QUERN_REGISTER(world, Field, fertility));
    QUERN_MUST(QUERN_REGISTER_TAGS(world, Baker));
    QUERN_MUST(QUERN_EVENT_REGISTER_FIELDS(world, &town->sale, Sale, seller, gold));
    QUERN_MUST(QUERN_EVENT_REGISTER_FIELDS(world, &town->death, Death, age));
    town->purse = QUERN_ID(world, Purse);
    town->place = QUERN_ID(world, Place);
    town->farmer = quern_component_find(world, "Farmer");
    make_stall(town);
    QUERN_MUST(quern_schedule_create(world, NULL, &town->schedule));
    add_systems(town);
}

static void close_town(Town *town)
{
    quern_schedule_destroy(town->schedule);
    quern_world_destroy(town->world);
}

static void found(const Town *town)
{
    quern_world *world = town->world;
    quern_entity farms[8];
    Place places[4];
    for (int32_t i = 0; i < 4; i++)
        places[i] = (Place){i * 30, i * 20};
    const quern_spawn_def def = {.overrides = {{.component = town->place, .column = places}}};
    QUERN_MUST(quern_prefab_spawn_many(world, town->stall, 4, &def, NULL, NULL));
    for (int32_t i = 0; i < 8; i++)
        QUERN_MUST(QUERN_CREATE(world, &farms[i], QUERN_VALUE(Place, i * 17 % 100, i * 29 % 100),
                                QUERN_VALUE(Field, 2 + i % 3)));
    for (int32_t i = 0; i < 2000; i++) {
        quern_entity person;
        QUERN_MUST(QUERN_CREATE(world, &person, QUERN_VALUE(Place, i % 100, i / 20), QUERN_VALUE(Purse, 10),
                                QUERN_VALUE(Bread, 5), QUERN_VALUE(Age, i * 13 % 20000),
                                QUERN_VALUE(Hunger, 0), QUERN_VALUE(Grain, 0)));
        if (i % 3 == 0) {
            QUERN_MUST(QUERN_ADD(world, person, Baker));
        } else {
            QUERN_MUST(QUERN_ADD(world, person, Farmer));
            QUERN_MUST(quern_entity_relate(world, person, town->works_at, farms[i % 8]));
        }
    }
}

static void run_frames(const Town *town, quern_jobs *jobs, uint64_t frame_count)
{
    for (uint64_t frame = 0; frame < frame_count; frame++)
        QUERN_MUST(quern_schedule_run(town->schedule, jobs, 1));
}

/* Goes on in another town. */
static void move_by_save(const Town *first, const Town *second)
{
    quern_byte_buffer bytes = {0};
    const quern_save_def save = {.schedules = {first->schedule}};
    const quern_load_def load = {.schedules = {second->schedule}};
    QUERN_MUST(quern_world_flush(first->world));
    QUERN_MUST(quern_world_save(first->world, quern_sink_bytes(&bytes), &save));
    QUERN_MUST(
        quern_world_load(second->world, quern_source_bytes(bytes.bytes, bytes.size_bytes), &load, NULL));
    quern_byte_buffer_release(&bytes);
}

static int count_guards(quern_world *world)
{
    int guards = 0;
    quern_query *query;
    const quern_query_def def = {.terms = {quern_term_read(QUERN_ID(world, Stall))}};
    QUERN_MUST(quern_query_create(world, &def, &query));
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        const Stall *stalls = QUERN_COLUMN(&it.view, 0, const Stall);
        for (uint32_t count = it.view.count, i = 0; i < count; i++)
            guards +=
                quern_entity_is_alive(world, stalls[i].guard) &&
                quern_entity_equal(quern_entity_target(world, stalls[i].guard, quern_world_parent(world)),
                                   it.view.entities[i]);
    }
    quern_query_destroy(query);
    return guards;
}

/* Runs a town; with a save, in another town from the middle on. Returns the hash at the end. */
static uint64_t run(uint32_t thread_count, uint64_t frame_count, bool saves, bool prints)
{
    Town first, second;
    quern_jobs *jobs;
    const Town *town = &first;
    open_town(&first);
    open_town(&second);
    QUERN_MUST(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_count}, &jobs));
    found(&first);
    run_frames(&first, jobs, frame_count / 2);
    if (saves) {
        move_by_save(&first, &second);
        town = &second;
    }
    run_frames(town, jobs, frame_count - frame_count / 2);
    const Calendar *calendar = quern_resource_get(town->world, town->calendar);
    if (prints)
        printf("day %d: %d people with %" PRId64 " gold, %d newcomers, %d deaths, %d taxes\n",
               calendar->day, calendar->people, calendar->gold, calendar->newcomers, calendar->deaths,
               calendar->taxes);
    const int guards = count_guards(town->world);
    const uint64_t hash = quern_world_hash(town->world) + (uint64_t)guards;
    close_town(&first);
    close_town(&second);
    quern_jobs_destroy(jobs);
    return hash;
}

int main(int argc, char **argv)
{
    const uint64_t frame_count = argc > 1 ? strtoull(argv[1], NULL, 10) : 100;
    const uint64_t hash = run(1, frame_count, false, true);
    for (uint32_t thread_count = 1; thread_count <= 3; thread_count++)
        for (int saves = 0; saves < 2; saves++)
            if (run(thread_count, frame_count, saves != 0, false) != hash) {
                printf("%u threads%s: another hash\n", thread_count, saves ? " and a save" : "");
                return EXIT_FAILURE;
            }
    printf("1, 2 and 3 threads, with and without a save: hash %" PRIx64 "\n", hash);
    return EXIT_SUCCESS;
}
