/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "epidemic.h"

#include <math.h>

enum { PHASE_WARN, PHASE_GRID, PHASE_INFECT, PHASE_MOVE, PHASE_FOLLOW, DAYS_ILL = 14, DAYS_WARNED = 10 };

static uint64_t id_of_household(const Epidemic *epidemic, uint32_t index)
{
    return quern_random(epidemic->seed, index);
}

static uint64_t id_of_person(uint64_t household, uint32_t index)
{
    return quern_random(household, 1 + index);
}

static Spot some_spot(const Epidemic *epidemic, uint64_t bits)
{
    /* Towns are denser than the country between them. */
    const float town = floorf(3 * quern_random_unit(quern_random(bits, 1))) / 3;
    const uint64_t more = quern_random(bits, 2);
    const float x = quern_random_unit(more), y = quern_random_unit(more << 24);
    return (Spot){epidemic->size * (town + x * x / 3), epidemic->size * y};
}

/* ------------------------------------------------------------------------------------------- systems */

static uint64_t day_of(quern_context *context, const Epidemic *epidemic)
{
    const quern_ranks_state *state = quern_context_resource(context, quern_ranks_resource(epidemic->ranks));
    return state->frame;
}

/* A warned person stays at home for some days. */
static void heed(quern_context *context, const quern_view *view)
{
    const Epidemic *epidemic = quern_context_user_data(context);
    const Warning *warnings = QUERN_EVENTS(view, Warning);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        Person *person = quern_context_lookup_write(context, warnings[i].person, epidemic->person);
        if (person != NULL) person->warned = DAYS_WARNED;
    }
}

static uint32_t count_ill_nearby(const quern_grid *grid, Spot spot)
{
    const quern_grid_cells *cells = quern_grid_get_cells(grid);
    const Health *healths = cells->payloads;
    uint32_t count = 0;
    quern_grid_iterator near = quern_grid_radius(grid, &spot.x, 1.0f);
    while (quern_grid_next(&near))
        count += healths[near.item - cells->items].state == ILL;
    return count;
}

static void warn_friend(quern_context *context, const Epidemic *epidemic, uint64_t from, uint64_t to)
{
    const Warning warning = {{0}};
    const quern_ranks_message message = {
        .verb = QUERN_RANKS_EMIT, .from = from, .to = to, .event = epidemic->warning, .value = &warning};
    (void)quern_ranks_send(context, epidemic->ranks, &message);
}

static void infect(quern_context *context, const quern_view *view)
{
    const Epidemic *epidemic = quern_context_user_data(context);
    const Id *ids = QUERN_COLUMN(view, 0, const Id);
    const Spot *spots = QUERN_COLUMN(view, 1, const Spot);
    Health *healths = QUERN_COLUMN(view, 2, Health);
    Person *persons = QUERN_COLUMN(view, 3, Person);
    const quern_grid *grid = quern_context_grid(context, quern_grid_resource(epidemic->grid));
    const uint64_t day = day_of(context, epidemic);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        healths[i].days++;
        if (persons[i].warned > 0) persons[i].warned--;
        if (healths[i].state == ILL && healths[i].days > DAYS_ILL) healths[i] = (Health){IMMUNE, 0};
        if (healths[i].state != HEALTHY) continue;
        const uint32_t ill_count = count_ill_nearby(grid, spots[i]);
        const uint32_t percent = ill_count * (persons[i].warned > 0 ? 1 : 3);
        if (quern_random_below(quern_random(ids[i].value, day), 100) >= percent) continue;
        healths[i] = (Health){ILL, 0};
        warn_friend(context, epidemic, ids[i].value, persons[i].friend);
    }
}

/* One household in two hundred moves to another place each day. */
static void move_house(quern_context *context, const quern_view *view)
{
    const Epidemic *epidemic = quern_context_user_data(context);
    const Id *ids = QUERN_COLUMN(view, 0, const Id);
    Spot *spots = QUERN_COLUMN(view, 1, Spot);
    const uint64_t day = day_of(context, epidemic);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        const uint64_t bits = quern_random(ids[i].value, day);
        if (quern_random_below(bits, 200) == 0) spots[i] = some_spot(epidemic, quern_random(bits, 7));
    }
}

/* Persons walk around their home. */
static void walk(quern_context *context, const quern_view *view)
{
    const Epidemic *epidemic = quern_context_user_data(context);
    const Id *ids = QUERN_COLUMN(view, 0, const Id);
    Spot *spots = QUERN_COLUMN(view, 1, Spot);
    Person *persons = QUERN_COLUMN(view, 2, Person);
    const Spot *const *homes = QUERN_UP(view, 3, Spot);
    const uint64_t day = day_of(context, epidemic);
    for (uint32_t end = view->count, i = 0; i < end; i++) {
        const uint64_t bits = quern_random(ids[i].value, day ^ 1ull << 62);
        persons[i].dx = EPIDEMIC_REACH / 2 * quern_random_signed(bits);
        persons[i].dy = EPIDEMIC_REACH / 2 * quern_random_signed(bits >> 32);
        spots[i] = (Spot){homes[i]->x + persons[i].dx, homes[i]->y + persons[i].dy};
    }
}

/* --------------------------------------------------------------------------------------------- world */

int64_t epidemic_is_ill(const void *health)
{
    return ((const Health *)health)->state == ILL;
}

int64_t epidemic_is_immune(const void *health)
{
    return ((const Health *)health)->state == IMMUNE;
}

void epidemic_open(Epidemic *epidemic, uint64_t seed, uint32_t household_count)
{
    quern_world *world;
    *epidemic =
        (Epidemic){.seed = seed, .household_count = household_count, .size = sqrtf((float)household_count)};
    QUERN_MUST(quern_world_create(NULL, &world));
    epidemic->world = world;
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(world, &epidemic->id, Id, value));
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(world, &epidemic->spot, Spot, x, y));
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(world, &epidemic->health, Health, state, days));
    QUERN_MUST(QUERN_COMPONENT_REGISTER_FIELDS(world, &epidemic->person, Person, friend, dx, dy, warned,
                                               reserved));
    QUERN_MUST(QUERN_EVENT_REGISTER_FIELDS(world, &epidemic->warning, Warning, person));
    epidemic->household = quern_world_parent(world);
    const quern_grid_def grid = {
        .position = epidemic->spot, .planar = true, .cell_size = 1, .payload = epidemic->health};
    QUERN_MUST(quern_grid_create(world, &grid, &epidemic->grid));
}

void epidemic_add_systems(Epidemic *epidemic)
{
    const quern_schedule_def phases = {.phases = {"warn", "grid", "infect", "move", "follow"},
                                       .user_data = epidemic};
    const quern_term id = quern_term_read(epidemic->id), spot = quern_term_write(epidemic->spot);
    const quern_resource_access state = {quern_ranks_resource(epidemic->ranks), QUERN_ACCESS_READ};
    const quern_system_def systems[] = {
        {.name = "heed",
         .phase = PHASE_WARN,
         .run = heed,
         .items = epidemic->warning,
         .write_lookups = {{.component = epidemic->person}}},
        {.name = "infect",
         .phase = PHASE_INFECT,
         .run = infect,
         .terms = {id, quern_term_read(epidemic->spot), quern_term_write(epidemic->health),
                   quern_term_write(epidemic->person)},
         .resources = {state, {quern_grid_resource(epidemic->grid), QUERN_ACCESS_READ}},
         .emits = {quern_ranks_messages(epidemic->ranks)}},
        {.name = "move house",
         .phase = PHASE_MOVE,
         .run = move_house,
         .terms = {id, spot, quern_term_without(epidemic->person)},
         .resources = {state}},
        {.name = "walk",
         .phase = PHASE_FOLLOW,
         .run = walk,
         .terms = {id, spot, quern_term_write(epidemic->person),
                   quern_term_up(epidemic->spot, epidemic->household)},
         .resources = {state},
         .levels = epidemic->household}};
    QUERN_MUST(quern_schedule_create(epidemic->world, &phases, &epidemic->schedule));
    QUERN_MUST(quern_grid_add_systems(epidemic->grid, epidemic->schedule, PHASE_GRID));
    for (uint32_t i = 0; i < sizeof systems / sizeof systems[0]; i++)
        QUERN_MUST(quern_schedule_add_system(epidemic->schedule, &systems[i], NULL));
}

void epidemic_create_household(const Epidemic *epidemic, uint32_t index)
{
    const Id id = {id_of_household(epidemic, index)};
    const Spot home = some_spot(epidemic, id.value);
    quern_entity household;
    QUERN_MUST(quern_entity_create_with(epidemic->world, (quern_component[]){epidemic->id, epidemic->spot},
                                        (const void *[]){&id, &home}, 2, &household));
    for (uint32_t i = 0; i < PERSONS_PER_HOUSEHOLD; i++) {
        const Id person_id = {id_of_person(id.value, i)};
        const uint64_t bits = quern_random(person_id.value, 9);
        const Health health = {i == 0 && index % 50 == 0 ? ILL : HEALTHY, 0};
        const Person person = {
            .friend =
                id_of_person(id_of_household(epidemic, quern_random_below(bits, epidemic->household_count)),
                             quern_random_below(bits << 32, PERSONS_PER_HOUSEHOLD))};
        quern_entity entity;
        QUERN_MUST(quern_entity_create_with(
            epidemic->world,
            (quern_component[]){epidemic->id, epidemic->spot, epidemic->health, epidemic->person},
            (const void *[]){&person_id, &home, &health, &person}, 4, &entity));
        QUERN_MUST(quern_entity_relate(epidemic->world, entity, epidemic->household, household));
    }
}

void epidemic_close(Epidemic *epidemic)
{
    quern_schedule_destroy(epidemic->schedule);
    quern_grid_destroy(epidemic->grid);
    quern_world_destroy(epidemic->world);
}
