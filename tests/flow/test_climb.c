/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
/* Events that climb: quern_context_nearest and QUERN_CLIMB against a model that walks parents, in random forests and at
 * every number of threads; quern_entity_nearest; refusals. */
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/random.h"

#include <string.h>

enum { ENTITIES = 900, CLICKS = 700, SEEDS = effort(20, 6, 4) };

typedef struct Click {
    quern_entity target;
    uint64_t strength;
} Click;

/* Handles clicks below its limit; others climb on. */
typedef struct Button {
    uint64_t limit;
} Button;

typedef struct Press {
    quern_entity entity;
    uint64_t passed; /* buttons that did not handle the click */
} Press;

static quern_world *world;
static quern_component button, closed;
static quern_relation parent, loop;
static quern_event click, press;
static quern_entity entities[ENTITIES];
static int parents[ENTITIES]; /* index, or -1 */
static bool has_button[ENTITIES], is_closed[ENTITIES];
static uint64_t limits[ENTITIES];
static Click clicks[CLICKS];

static void handle(quern_context *context, const quern_view *view)
{
    const Click *list = QUERN_EVENTS(view, Click);
    quern_emitter *presses = quern_context_emitter(context, press);
    for (uint32_t i = 0; i < view->count; i++) {
        Press result = {.passed = 0};
        QUERN_CLIMB(context, at, list[i].target, parent, button)
        {
            const Button *found = quern_context_lookup(context, at, button);
            cr_assert_not_null(found);
            if (list[i].strength < found->limit) {
                result.entity = at;
                break;
            }
            result.passed++;
        }
        cr_assert(quern_emit(presses, &result));
    }
}

static void open_world(void)
{
    world = setup_world();
    button = setup_component(world, "Button", sizeof(Button), 8);
    closed = setup_tag(world, "closed");
    parent = quern_world_parent(world);
    loop = make_relation(world, .name = "loop");
    must(QUERN_EVENT_REGISTER_FIELDS(world, &click, Click, target, strength));
    must(QUERN_EVENT_REGISTER_FIELDS(world, &press, Press, entity, passed));
}

static void close_world(void)
{
    quern_world_destroy(world);
}

TestSuite(climb, .init = open_world, .fini = close_world);

static void build_forest(random_source *random)
{
    for (int i = 0; i < ENTITIES; i++) {
        entities[i] = setup_entity(world);
        parents[i] = i > 0 && random_chance(random, 90) ? (int)random_below(random, (uint32_t)i) : -1;
        if (i % 3 == 0 && i > 0) parents[i] = i - 1; /* deep chains, beyond the greatest level */
        if (parents[i] >= 0) must(quern_entity_relate(world, entities[i], parent, entities[parents[i]]));
        has_button[i] = random_chance(random, 30);
        is_closed[i] = random_chance(random, 20);
        limits[i] = random_below(random, 100);
        if (has_button[i]) must(quern_entity_add(world, entities[i], button, &(Button){limits[i]}));
        if (is_closed[i]) must(quern_entity_add(world, entities[i], closed, NULL));
    }
    for (int i = 0; i < CLICKS; i++)
        clicks[i] = (Click){i % 50 == 0 ? quern_entity_null() : entities[random_below(random, ENTITIES)],
                            random_below(random, 100)};
}

/* The button above an entity, or of itself; -1: none. skips_closed: closed ones count as none. */
static int nearest(int at, bool skips_closed)
{
    while (at >= 0 && (!has_button[at] || (skips_closed && is_closed[at])))
        at = parents[at];
    return at;
}

static int find(quern_entity entity)
{
    for (int i = 0; i < ENTITIES; i++)
        if (entities[i].bits == entity.bits) return i;
    return -1;
}

static Press model(const Click *given, bool skips_closed)
{
    Press result = {.passed = 0};
    for (int at = nearest(find(given->target), skips_closed); at >= 0;
         at = nearest(parents[at], skips_closed)) {
        if (given->strength < limits[at]) {
            result.entity = entities[at];
            break;
        }
        result.passed++;
    }
    return result;
}

static void run(uint32_t threads, bool skips_closed)
{
    quern_jobs *jobs = setup_jobs(threads);
    quern_schedule *schedule = setup_schedule(world);
    quern_event_reader *reader;
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = press}, &reader));
    make_system(
        schedule, "handle", handle, .items = click, .emits = {press}, .relations = {parent},
        .lookups = {{.component = button, .without = skips_closed ? closed : (quern_component){0}}});
    for (uint32_t i = 0; i < CLICKS; i++)
        must(quern_world_emit(world, click, &clicks[i], 1));
    must_run(schedule, jobs);
    quern_event_block block;
    uint32_t count = 0;
    while (quern_event_reader_next(reader, &block)) {
        const Press *list = block.values;
        for (uint32_t i = 0; i < block.count; i++, count++) {
            const Press expected = model(&clicks[count], skips_closed);
            cr_assert_eq(list[i].entity.bits, expected.entity.bits, "click %u", count);
            cr_assert_eq(list[i].passed, expected.passed, "click %u", count);
        }
    }
    cr_assert_eq(count, (uint32_t)CLICKS);
    quern_event_reader_destroy(reader);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
}

Test(climb, finds_the_handler_that_a_model_finds_at_every_thread_count)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        random_source random = {seed};
        build_forest(&random);
        for (uint32_t i = 0; i < POOL_COUNT; i++)
            run(pool_threads[i], i % 2 == 1);
        for (int i = 0; i < ENTITIES; i++) {
            const int above = nearest(i, false);
            cr_assert_eq(quern_entity_nearest(world, entities[i], parent, button).bits,
                         above >= 0 ? entities[above].bits : 0u);
        }
        close_world();
        open_world();
    }
}

static void climb_loop(quern_context *context, const quern_view *view)
{
    cr_assert(quern_entity_is_null(quern_context_nearest(context, entities[0], loop, button)));
}

static void climb_undeclared(quern_context *context, const quern_view *view)
{
    cr_assert(quern_entity_is_null(quern_context_nearest(context, entities[0], parent, button)));
}

static void refuse(quern_view_callback *callback, quern_relation declared, const char *message)
{
    captured_reports reports;
    capture_reports(&reports);
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "refused", callback, .relations = {declared},
                .lookups = {{.component = callback == climb_loop ? button : (quern_component){0}}});
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_not_null(strstr(reports.last, message), "%s", reports.last);
    quern_schedule_destroy(schedule);
}

Test(climb, refuses_what_it_cannot_climb)
{
    entities[0] = setup_entity(world);
    const quern_entity dead = setup_entity(world);
    must(quern_entity_destroy(world, dead));
    assert_refused_value(world,
                         !quern_entity_is_null(quern_entity_nearest(NULL, entities[0], parent, button)));
    assert_refused_value(world, !quern_entity_is_null(quern_entity_nearest(world, dead, parent, button)));
    assert_refused_value(world,
                         !quern_entity_is_null(quern_entity_nearest(world, entities[0], loop, button)));
    assert_refused_value(world, !quern_entity_is_null(quern_entity_nearest(
                                    world, entities[0], parent, component_unregistered(button))));
    refuse(climb_loop, loop, "has no levels");
    refuse(climb_undeclared, parent, "Button");
}
