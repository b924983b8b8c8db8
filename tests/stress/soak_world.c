/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: stress */
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/stress.h"

#include <stdio.h>

/* A small world in which entities are created and destroyed for a very long time must not hold more
 * memory in the end than soon after its start. The tests create up to a hundred million entities, or as
 * many as a few seconds allow. QUERN_STRESS_SECONDS sets the duration, QUERN_STRESS_SEED the first seed. */

enum {
    DEFAULT_SECONDS = 4,
    ENTITY_COUNT = 1000, /* number of entities alive at a time */
    TAG_COUNT = 14,
    CREATES_PER_CHECK = 200000,
    SETS_PER_CHECK = 2000,
    WARM_UP_CHECKS = 3
};

#define MAX_CREATED 100000000u

/* Each of the two tests may take half of the program's time. */
static double deadline(void)
{
    return stress_deadline(DEFAULT_SECONDS, 2);
}

typedef struct soak {
    failing_allocator *allocator;
    quern_world *world;
    quern_component number;
    quern_component tags[TAG_COUNT];
    quern_entity entities[ENTITY_COUNT]; /* the living entities */
    uint64_t numbers[ENTITY_COUNT];      /* the expected value of each entity */
    random_source random;
    uint64_t created_count;
    uint32_t check_count;
    uint64_t steady_bytes; /* maximum memory held at the checks during warm-up */
} soak;

static soak state;

/* Creates an entity with a number and with one tag per bit of `set`. */
static void create_at(soak *s, uint32_t index, uint32_t set)
{
    quern_component components[1 + TAG_COUNT] = {s->number};
    const void *values[1 + TAG_COUNT] = {&s->numbers[index]};
    uint32_t count = 1;
    for (uint32_t t = 0; t < TAG_COUNT; t++)
        if (set >> t & 1) components[count++] = s->tags[t];
    s->numbers[index] = random_next(&s->random);
    must(quern_entity_create_with(s->world, components, values, count, &s->entities[index]));
    s->created_count++;
}

static void destroy_at(soak *s, uint32_t index)
{
    const uint64_t *value = quern_entity_get(s->world, s->entities[index], s->number);
    cr_assert_not_null(value, "%s", quern_error_message());
    cr_assert_eq(*value, s->numbers[index]);
    must(quern_entity_destroy(s->world, s->entities[index]));
}

static void open_soak(soak *s)
{
    quern_world_def def = {0};
    *s = (soak){.random.state = stress_seed(1)};
    s->allocator = failing_allocator_create();
    def.allocator = failing_allocator_interface(s->allocator);
    must(quern_world_create(&def, &s->world));
    s->number = setup_component(s->world, "number", 8, 8);
    for (uint32_t t = 0; t < TAG_COUNT; t++) {
        char name[16];
        snprintf(name, sizeof name, "tag%u", t);
        s->tags[t] = setup_tag(s->world, name);
    }
    for (uint32_t index = 0; index < ENTITY_COUNT; index++)
        create_at(s, index, 0);
}

static void close_soak(soak *s)
{
    fprintf(stderr, "%llu entities, %u checks\n", (unsigned long long)s->created_count, s->check_count);
    cr_assert_gt(s->check_count, (uint32_t)WARM_UP_CHECKS, "the time was too short to tell anything");
    quern_world_destroy(s->world);
    failing_allocator_close(s->allocator);
}

static void check_memory(soak *s)
{
    uint64_t held_bytes = failing_allocator_outstanding_bytes(s->allocator);
    assert_valid(s->world);
    cr_assert_eq(stats_of_world(s->world).entity_count, (uint64_t)ENTITY_COUNT);
    if (s->check_count++ < WARM_UP_CHECKS) {
        if (held_bytes > s->steady_bytes) s->steady_bytes = held_bytes;
        return;
    }
    cr_assert_leq(held_bytes, s->steady_bytes,
                  "%llu bytes are held after %llu entities, %llu soon after the start",
                  (unsigned long long)held_bytes, (unsigned long long)s->created_count,
                  (unsigned long long)s->steady_bytes);
}

static bool has_time(const soak *s, double end)
{
    return s->check_count <= WARM_UP_CHECKS ||
           (s->created_count < MAX_CREATED && stress_seconds_now() < end);
}

Test(soak_world, replacing_entities_does_not_grow_memory, .timeout = 86400)
{
    soak *s = &state;
    double end = deadline();
    open_soak(s);
    while (has_time(s, end)) {
        for (uint32_t i = 0; i < CREATES_PER_CHECK; i++) {
            uint32_t index = random_below(&s->random, ENTITY_COUNT);
            destroy_at(s, index);
            create_at(s, index, 0);
        }
        check_memory(s);
    }
    close_soak(s);
}

/* Creates entities in many random archetypes, then leaves all archetypes but one empty; the next round
 * uses other archetypes. Warm-up rounds use twice as many, so that no later round makes a list grow by
 * chance. */
static void use_random_archetypes(soak *s)
{
    uint32_t count = s->check_count < WARM_UP_CHECKS ? 2 * SETS_PER_CHECK : SETS_PER_CHECK;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = random_below(&s->random, ENTITY_COUNT);
        destroy_at(s, index);
        create_at(s, index, random_below(&s->random, 1u << TAG_COUNT));
    }
    for (uint32_t index = 0; index < ENTITY_COUNT; index++) {
        destroy_at(s, index);
        create_at(s, index, 0);
    }
}

Test(soak_world, replacing_archetypes_does_not_grow_memory, .timeout = 86400)
{
    soak *s = &state;
    double end = deadline();
    open_soak(s);
    while (has_time(s, end)) {
        use_random_archetypes(s);
        must(quern_world_remove_empty_archetypes(s->world, NULL));
        must(quern_world_trim(s->world));
        cr_assert_leq(stats_of_world(s->world).archetype_count, 2u);
        check_memory(s);
    }
    close_soak(s);
}
