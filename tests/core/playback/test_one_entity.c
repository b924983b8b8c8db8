/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/playback.h"
#include "tests/support/flushing.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <string.h>

/* Sync points with few commands, mostly on one entity (core/playback/stages.h). Each program runs in two
 * equal worlds, one of which has no fast paths. The results must be equal. */

enum { ENTITY_COUNT = 40, SYNC_POINTS = 250, SEED_COUNT = 30, MOST_COMMANDS = 20, WIDE_BYTES = 9000 };
enum { NUMBER, TRACKED, TAG, FLAG, ROW, WIDE, OTHER_WIDE, COMPONENT_COUNT };

typedef struct side {
    failing_allocator *memory;
    quern_world *world;
    quern_component components[COMPONENT_COUNT];
    quern_relation parent;
    tracked_counts counts;
    quern_query *changed;
    quern_entity entities[ENTITY_COUNT]; /* alive or dead */
} side;

static side sides[2]; /* the second has no fast paths */
static random_source dice;

static quern_component register_type(side *it, const quern_component_def *def)
{
    quern_component component;
    must(quern_component_register(it->world, def, &component));
    return component;
}

/* relates: entities are related, so destroys go through the relate stage. */
static void open_side(side *it, bool uses_fast_paths, bool relates)
{
    memset((void *)it, 0, sizeof *it);
    it->memory = failing_allocator_create();
    must(quern_world_create(&(quern_world_def){.allocator = failing_allocator_interface(it->memory)},
                            &it->world));
    it->components[NUMBER] = setup_component(it->world, "number", 8, 8);
    it->components[TRACKED] = tracked_register(it->world, "tracked", &it->counts);
    it->components[TAG] = setup_tag(it->world, "tag");
    it->components[FLAG] = register_type(
        it,
        &(quern_component_def){.name = "flag", .size_bytes = 4, .alignment_bytes = 4, .can_disable = true});
    it->components[ROW] = register_type(
        it,
        &(quern_component_def){.name = "row", .size_bytes = 8, .alignment_bytes = 8, .row_changes = true});
    it->components[WIDE] = setup_component(it->world, "wide", WIDE_BYTES, 8);
    it->components[OTHER_WIDE] = setup_component(it->world, "other wide", WIDE_BYTES, 8);
    if (relates)
        must(quern_relation_register(it->world, &(quern_relation_def){.name = "parent"}, &it->parent));
    it->changed =
        setup_query(it->world, (quern_term[]){quern_term_changed(quern_term_read(it->components[ROW]))}, 1);
    for (uint32_t i = 0; i < ENTITY_COUNT; i++)
        it->entities[i] = setup_entity_with(it->world, it->components, i % WIDE);
    for (uint32_t i = 1; i < ENTITY_COUNT && relates; i += 5)
        must(quern_entity_relate(it->world, it->entities[i], it->parent, it->entities[i - 1]));
    must(quern__world_reserve_commands(it->world, 0));
    it->world->commands->playback.disable_fast_paths = !uses_fast_paths;
}

static void close_side(side *it)
{
    quern_query_destroy(it->changed);
    quern_world_destroy(it->world);
    cr_assert_eq(tracked_live_count(&it->counts), 0u, "values were not destroyed");
    cr_assert_eq(it->counts.broken_count, 0u, "hooks were called on dead values");
    failing_allocator_destroy(it->memory);
}

/* Records a command on the entity at the index, which may be dead; both worlds then refuse it. */
static void record(side *it, uint32_t index, uint32_t roll, uint64_t value)
{
    quern_commands *commands = quern_world_commands(it->world);
    const quern_entity entity = it->entities[index];
    const uint32_t kind = roll % 100, which = roll / 100 % COMPONENT_COUNT;
    const quern_component component = it->components[which];
    if (!quern_entity_is_alive(it->world, entity)) return;
    if (kind < 4) {
        must(quern_commands_destroy(commands, entity));
    } else if (kind < 30) {
        must(quern_commands_remove(commands, entity, component));
    } else if (kind < 40) {
        must(quern_commands_set_component_enabled(commands, entity, it->components[FLAG], kind % 2 == 0));
    } else if (kind < 60 || which >= WIDE) {
        must(quern_commands_add(commands, entity, component, NULL));
    } else if (which == TRACKED) {
        tracked given;
        tracked_construct(&given, value, &it->counts);
        must(quern_commands_add(commands, entity, component, &given));
        tracked_destroy(&given, &it->counts);
    } else {
        must(quern_commands_add(commands, entity, component, &value));
    }
}

/* Records the same commands in both worlds. In four of five programs, all are on one entity. */
static void record_program(void)
{
    const uint32_t count = 1 + random_below(&dice, random_chance(&dice, 90) ? 4 : MOST_COMMANDS);
    const bool stays = random_chance(&dice, 80);
    uint32_t index = random_below(&dice, ENTITY_COUNT);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t roll = random_below(&dice, UINT32_MAX);
        if (!stays) index = random_below(&dice, ENTITY_COUNT);
        for (uint32_t k = 0; k < 2; k++)
            record(&sides[k], index, roll, i + 1);
    }
    /* the entity may be dead when the commands are applied */
    if (random_chance(&dice, 3))
        for (uint32_t k = 0; k < 2; k++)
            if (quern_entity_is_alive(sides[k].world, sides[k].entities[index]))
                must(quern_entity_destroy(sides[k].world, sides[k].entities[index]));
}

/* Creates entities in the slots of destroyed ones. Equal handles show that slots were freed in the same order. */
static void replace_dead(void)
{
    for (uint32_t i = 0; i < ENTITY_COUNT; i++)
        for (uint32_t k = 0; k < 2; k++)
            if (!quern_entity_is_alive(sides[k].world, sides[k].entities[i]))
                sides[k].entities[i] = setup_entity_with(sides[k].world, sides[k].components, i % WIDE);
}

static void compare(uint64_t seed, uint32_t point)
{
    quern_flush_stats stats[2];
    for (uint32_t k = 0; k < 2; k++) {
        assert_valid(sides[k].world);
        must(quern_world_get_flush_stats(sides[k].world, &stats[k]));
    }
    cr_assert_eq(memcmp(&stats[0], &stats[1], sizeof stats[0]), 0, "seed %u, sync point %u", (uint32_t)seed,
                 point);
    cr_assert_eq(quern_world_hash(sides[0].world), quern_world_hash(sides[1].world),
                 "seed %u, sync point %u", (uint32_t)seed, point);
    if (point % 3 == 0)
        cr_assert_eq(see_changes(sides[0].changed), see_changes(sides[1].changed), "seed %u, sync point %u",
                     (uint32_t)seed, point);
    cr_assert_eq(sides[0].counts.moved_count, sides[1].counts.moved_count);
    cr_assert_eq(sides[0].counts.constructed_count, sides[1].counts.constructed_count);
}

static void play(uint64_t seed)
{
    dice = (random_source){.state = seed};
    for (uint32_t k = 0; k < 2; k++)
        open_side(&sides[k], k == 0, seed % 3 == 0);
    for (uint32_t point = 0; point < SYNC_POINTS; point++) {
        record_program();
        /* half of the flushes in the first world run out of memory, and are repeated */
        const quern_result result =
            flush_with_failures(sides[0].world, sides[0].memory, seed * SYNC_POINTS + point);
        cr_assert_eq(quern_world_flush(sides[1].world), result, "seed %u, sync point %u", (uint32_t)seed,
                     point);
        compare(seed, point);
        replace_dead();
        for (uint32_t k = 0; k < 2 && point % 20 == 0; k++)
            must(quern_world_remove_empty_archetypes(sides[k].world, NULL));
    }
    for (uint32_t k = 0; k < 2; k++)
        close_side(&sides[k]);
}

Test(one_entity, fast_path_and_stages_have_the_same_result)
{
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++)
        play(seed);
}

/* The archetypes are new each time, so that the sync point allocates memory. */
Test(one_entity, flush_without_memory_changes_nothing_and_can_be_repeated)
{
    side *it = &sides[0];
    open_side(it, true, false);
    record(it, 0, 60, 1); /* the first sync point goes through all stages */
    must(quern_world_flush(it->world));
    must(quern_commands_add(quern_world_commands(it->world), it->entities[3], it->components[WIDE], NULL));
    cr_assert_gt(flush_until_memory_suffices(it->world, it->memory), 2u);
    cr_assert(quern_entity_has(it->world, it->entities[3], it->components[WIDE]));
    close_side(it);
}
