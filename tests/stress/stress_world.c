/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: stress */
#include "tests/support/program.h"
#include "tests/support/setup.h"
#include "tests/support/stress.h"

#include <stdio.h>

/* Long random changes of a world. QUERN_STRESS_SECONDS sets the duration, QUERN_STRESS_SEED the first
 * seed. */

enum { DEFAULT_SECONDS = 2 };

/* Each of the two tests may take half of the program's time. */
static double deadline(void)
{
    return stress_deadline(DEFAULT_SECONDS, 2);
}

static uint64_t first_seed(void)
{
    return stress_seed(1000);
}

Test(stress_world, programs_agree_with_the_model, .timeout = 86400)
{
    static program run;
    double end = deadline();
    for (uint64_t seed = first_seed(); stress_seconds_now() < end; seed++) {
        fprintf(stderr, "QUERN_STRESS_SEED=%llu\n", (unsigned long long)seed);
        program_init(&run, seed, NULL, 0);
        for (uint32_t step = 1; step <= 40000; step++) {
            program_step(&run);
            if (step % 10000 == 0) program_check(&run);
        }
        program_release(&run);
    }
}

/* ------------------------------------------------------------------------------------------- crowds */

enum { MAX_CROWD = 200000, TYPE_COUNT = 6 };

typedef struct crowd {
    quern_world *world;
    quern_component types[TYPE_COUNT];
    quern_entity entities[MAX_CROWD];
    uint64_t numbers[MAX_CROWD]; /* the value that every component of the entity has */
    uint32_t count;
    random_source random;
} crowd;

static void crowd_create(crowd *all, uint32_t count)
{
    for (uint32_t i = 0; i < count && all->count < MAX_CROWD; i++) {
        uint64_t number = random_next(&all->random);
        const void *values[] = {&number, &number};
        quern_component chosen[] = {all->types[number % 3], all->types[3 + number % 3]};
        must(quern_entity_create_with(all->world, chosen, values, 2, &all->entities[all->count]));
        all->numbers[all->count++] = number;
    }
}

static void crowd_destroy(crowd *all, uint32_t count)
{
    for (uint32_t i = 0; i < count && all->count > 0; i++) {
        uint32_t chosen = random_below(&all->random, all->count--);
        must(quern_entity_destroy(all->world, all->entities[chosen]));
        all->entities[chosen] = all->entities[all->count];
        all->numbers[chosen] = all->numbers[all->count];
    }
}

static void crowd_toggle(crowd *all, uint32_t count)
{
    for (uint32_t i = 0; i < count && all->count > 0; i++) {
        uint32_t chosen = random_below(&all->random, all->count);
        quern_entity entity = all->entities[chosen];
        quern_component type = all->types[random_below(&all->random, TYPE_COUNT)];
        must(quern_entity_has(all->world, entity, type)
                 ? quern_entity_remove(all->world, entity, type)
                 : quern_entity_add(all->world, entity, type, &all->numbers[chosen]));
    }
}

static void crowd_check(const crowd *all)
{
    assert_valid(all->world);
    cr_assert_eq(stats_of_world(all->world).entity_count, all->count);
    for (uint32_t i = 0; i < all->count; i++)
        for (uint32_t t = 0; t < TYPE_COUNT; t++) {
            const uint64_t *value = quern_entity_get(all->world, all->entities[i], all->types[t]);
            if (value != NULL) cr_assert_eq(*value, all->numbers[i], "entity %u", i);
        }
}

static void crowd_round(crowd *all)
{
    uint32_t amount = random_below(&all->random, MAX_CROWD / 2);
    switch (random_below(&all->random, 4)) {
    case 0:
        crowd_create(all, amount);
        break;
    case 1:
        crowd_destroy(all, amount);
        break;
    case 2:
        crowd_toggle(all, amount);
        break;
    default:
        crowd_destroy(all, all->count);
        break;
    }
}

/* Asserts that the world holds little more memory than its entity records after all entities were
 * destroyed. */
static void assert_memory_released(const crowd *all)
{
    quern_world_stats stats = stats_of_world(all->world);
    uint64_t record_bytes = (uint64_t)MAX_CROWD * 32;
    cr_assert_leq(stats.held_bytes, record_bytes + (8u << 20), "%llu bytes are held without entities",
                  (unsigned long long)stats.held_bytes);
}

Test(stress_world, creating_and_destroying_crowds_releases_memory, .timeout = 86400)
{
    static crowd all;
    double end = deadline();
    all.world = setup_world();
    all.random.state = first_seed();
    for (uint32_t t = 0; t < TYPE_COUNT; t++) {
        char name[] = {'t', (char)('0' + t), '\0'};
        all.types[t] = setup_component(all.world, name, 8, 8);
    }
    crowd_create(&all, MAX_CROWD);
    while (stress_seconds_now() < end) {
        crowd_round(&all);
        crowd_check(&all);
    }
    crowd_destroy(&all, all.count);
    crowd_check(&all);
    assert_memory_released(&all);
    quern_world_destroy(all.world);
}
