/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/playback.h"
#include "tests/support/flushing.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <stdio.h>
#include <string.h>

/* Sync points whose commands only relate and unrelate (core/playback/stages.h). Each program runs in two equal
 * worlds, one of which has no fast paths. The results must be equal, including the order of rows and the drops. */

enum { ENTITY_COUNT = 900, SYNC_POINTS = 24, SEED_COUNT = 16, MOST_COMMANDS = 500, NAME_COUNT = 12 };
enum { NUMBER, ROW, TAG, TRACKED, COMPONENT_COUNT };
enum { PARENT, CARRIER, LOCK, LIKES, RELATION_COUNT };

typedef struct side {
    failing_allocator *memory;
    quern_world *world;
    quern_component components[COMPONENT_COUNT];
    quern_relation relations[RELATION_COUNT];
    tracked_counts counts;
    quern_query *changed[3]; /* rows whose target changed, in three relations */
    quern_query *changed_rows;
    quern_entity entities[ENTITY_COUNT]; /* alive or dead */
} side;

static side sides[2]; /* the second has no fast paths */
static random_source dice;

static quern_relation add_relation(side *it, const quern_relation_def *def)
{
    quern_relation relation = {0};
    must(quern_relation_register(it->world, def, &relation));
    return relation;
}

static void open_types(side *it)
{
    const quern_component_def row = {
        .name = "row", .size_bytes = 12, .alignment_bytes = 4, .row_changes = true};
    it->components[NUMBER] = setup_component(it->world, "number", 8, 8);
    must(quern_component_register(it->world, &row, &it->components[ROW]));
    it->components[TAG] = setup_tag(it->world, "tag");
    it->components[TRACKED] = tracked_register(it->world, "tracked", &it->counts);
    it->relations[PARENT] = quern_world_parent(it->world);
    it->relations[CARRIER] = add_relation(
        it, &(quern_relation_def){
                .name = "carrier", .on_target_destroyed = QUERN_TARGET_UNRELATES, .levels = true});
    it->relations[LOCK] = add_relation(it, &(quern_relation_def){.name = "lock", .ordered = true});
    it->relations[LIKES] = add_relation(it, &(quern_relation_def){.name = "likes", .many = true});
}

static quern_query *changed_query(const side *it, quern_component component)
{
    return setup_query(it->world, (quern_term[]){quern_term_changed(quern_term_read(component))}, 1);
}

/* Gives the first entities names, the same ones below each of three parents. */
static void name_children(const side *it)
{
    for (uint32_t i = 0; i < NAME_COUNT; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "child %u", i % 4);
        must(quern_entity_relate(it->world, it->entities[i], it->relations[PARENT],
                                 it->entities[NAME_COUNT + i / 4]));
        must(quern_entity_set_name(it->world, it->entities[i], name));
    }
}

/* hooks: some entities have a component with hooks, so that the sync points that concern them take all stages. filters:
 * queries with change filters exist. */
static void open_side(side *it, bool uses_fast_paths, bool hooks, bool filters)
{
    memset((void *)it, 0, sizeof *it);
    it->memory = failing_allocator_create();
    must(quern_world_create(&(quern_world_def){.allocator = failing_allocator_interface(it->memory)},
                            &it->world));
    open_types(it);
    for (uint32_t i = 0; i < ENTITY_COUNT; i++)
        it->entities[i] = setup_entity_with(it->world, it->components,
                                            hooks && i % 50 == 7 ? COMPONENT_COUNT : i % TRACKED);
    name_children(it);
    for (uint32_t i = 0; i < 3 && filters; i++)
        it->changed[i] = changed_query(it, quern_relation_component(it->relations[i]));
    if (filters) it->changed_rows = changed_query(it, it->components[ROW]);
    must(quern__world_reserve_commands(it->world, 0));
    it->world->commands->playback.disable_fast_paths = !uses_fast_paths;
}

static void close_side(side *it)
{
    for (uint32_t i = 0; i < 3; i++)
        quern_query_destroy(it->changed[i]);
    quern_query_destroy(it->changed_rows);
    quern_world_destroy(it->world);
    cr_assert_eq(tracked_live_count(&it->counts), 0u, "values were not destroyed");
    failing_allocator_destroy(it->memory);
}

/* A command that relates the entity at `source` to the one at `target`, or unrelates it. */
typedef struct order {
    uint32_t source, target, relation;
    bool unrelates;
} order;

static void record(side *it, const order *given)
{
    quern_commands *commands = quern_world_commands(it->world);
    const quern_entity source = it->entities[given->source], target = it->entities[given->target];
    const quern_relation relation = it->relations[given->relation];
    if (!quern_entity_is_alive(it->world, source) || !quern_entity_is_alive(it->world, target)) return;
    if (given->unrelates)
        must(quern_commands_unrelate(commands, source, relation));
    else if (given->source != given->target)
        must(quern_commands_relate(commands, source, relation, target));
}

static order draw_order(uint32_t relation, uint32_t bound)
{
    /* a named entity often gets one of few parents, where the name may be taken */
    const bool is_named = random_chance(&dice, 10);
    return (order){.source = random_below(&dice, is_named ? NAME_COUNT : bound),
                   .target = is_named ? NAME_COUNT + random_below(&dice, 3) : random_below(&dice, bound),
                   .relation = relation,
                   .unrelates = random_chance(&dice, 20)};
}

/* Records the same commands in both worlds: usually in one relation. */
static void record_program(void)
{
    const uint32_t most = random_chance(&dice, 50) ? 12 : MOST_COMMANDS;
    const uint32_t count = 1 + random_below(&dice, most);
    const uint32_t bound = random_chance(&dice, 30) ? 40 : ENTITY_COUNT;
    const uint32_t relation = random_below(&dice, random_chance(&dice, 10) ? RELATION_COUNT : LIKES);
    const bool mixes = random_chance(&dice, 10);
    for (uint32_t i = 0; i < count; i++) {
        const order drawn = draw_order(mixes ? random_below(&dice, RELATION_COUNT) : relation, bound);
        for (uint32_t k = 0; k < 2; k++)
            record(&sides[k], &drawn);
    }
}

/* Destroys entities that the recorded commands may concern, and thereby some that they may relate to. */
static void destroy_some(void)
{
    for (uint32_t i = random_below(&dice, 4); i > 0; i--) {
        const uint32_t index = NAME_COUNT + random_below(&dice, ENTITY_COUNT - NAME_COUNT);
        for (uint32_t k = 0; k < 2; k++)
            if (quern_entity_is_alive(sides[k].world, sides[k].entities[index]))
                must(quern_entity_destroy(sides[k].world, sides[k].entities[index]));
    }
}

static void replace_dead(void)
{
    for (uint32_t i = 0; i < ENTITY_COUNT; i++)
        for (uint32_t k = 0; k < 2; k++)
            if (!quern_entity_is_alive(sides[k].world, sides[k].entities[i]))
                sides[k].entities[i] = setup_entity_with(sides[k].world, sides[k].components, i % TRACKED);
}

static void compare_drops(uint64_t seed, uint32_t point)
{
    const quern__drops *a = &sides[0].world->commands->playback.drops;
    const quern__drops *b = &sides[1].world->commands->playback.drops;
    cr_assert_eq(a->count, b->count, "seed %u, sync point %u", (uint32_t)seed, point);
    for (uint32_t i = 0; i < a->count; i++) {
        cr_assert_eq(a->items[i].reason, b->items[i].reason);
        cr_assert_eq(a->items[i].count, b->items[i].count);
        cr_assert_eq(a->items[i].first_item_number, b->items[i].first_item_number);
        cr_assert_eq(quern_entity_index(a->items[i].first_entity),
                     quern_entity_index(b->items[i].first_entity));
    }
}

static void compare_changes(uint64_t seed, uint32_t point)
{
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(see_changes(sides[0].changed[i]), see_changes(sides[1].changed[i]),
                     "seed %u, sync point %u, relation %u", (uint32_t)seed, point, i);
    cr_assert_eq(see_changes(sides[0].changed_rows), see_changes(sides[1].changed_rows),
                 "seed %u, sync point %u", (uint32_t)seed, point);
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
    compare_drops(seed, point);
    cr_assert_eq(quern_world_hash(sides[0].world), quern_world_hash(sides[1].world),
                 "seed %u, sync point %u", (uint32_t)seed, point);
    if (sides[0].changed_rows != NULL && random_chance(&dice, 60)) compare_changes(seed, point);
}

/* Returns how many sync points took the fast path. */
static uint32_t play(uint64_t seed)
{
    dice = (random_source){.state = seed};
    for (uint32_t k = 0; k < 2; k++)
        open_side(&sides[k], k == 0, seed % 3 == 0, seed % 2 == 0);
    for (uint32_t point = 0; point < SYNC_POINTS; point++) {
        record_program();
        if (random_chance(&dice, 30)) destroy_some();
        /* half of the flushes in the first world run out of memory, and are repeated */
        const quern_result result =
            flush_with_failures(sides[0].world, sides[0].memory, seed * SYNC_POINTS + point);
        cr_assert_eq(quern_world_flush(sides[1].world), result, "seed %u, sync point %u", (uint32_t)seed,
                     point);
        compare(seed, point);
        replace_dead();
        for (uint32_t k = 0; k < 2 && point % 9 == 8; k++)
            must(quern_world_remove_empty_archetypes(sides[k].world, NULL));
    }
    cr_assert_eq(sides[1].world->commands->playback.only_relates_count, 0u);
    const uint32_t count = sides[0].world->commands->playback.only_relates_count;
    for (uint32_t k = 0; k < 2; k++)
        close_side(&sides[k]);
    return count;
}

Test(only_relates, fast_path_and_stages_have_the_same_result, .timeout = 120)
{
    uint32_t count = 0;
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++)
        count += play(seed);
    cr_assert_gt(count, SEED_COUNT * SYNC_POINTS / 2, "%u sync points took the fast path", count);
}

Test(only_relates, flush_without_memory_changes_nothing_and_can_be_repeated)
{
    side *it = &sides[0];
    open_side(it, true, false, false);
    /* sources have a source each, whose level changes, too, so that the log needs more entries than commands */
    for (uint32_t i = NAME_COUNT; i + 2 < ENTITY_COUNT; i += 3)
        must(quern_entity_relate(it->world, it->entities[i + 2], it->relations[CARRIER], it->entities[i]));
    for (uint32_t i = NAME_COUNT; i + 2 < ENTITY_COUNT; i += 3)
        must(quern_commands_relate(quern_world_commands(it->world), it->entities[i], it->relations[CARRIER],
                                   it->entities[i + 1]));
    cr_assert_gt(flush_until_memory_suffices(it->world, it->memory), 5u);
    cr_assert_eq(it->world->commands->playback.only_relates_count, 1u);
    cr_assert_eq(quern_entity_target(it->world, it->entities[NAME_COUNT], it->relations[CARRIER]).bits,
                 it->entities[NAME_COUNT + 1].bits);
    close_side(it);
}

/* A row is written only if its target differs in the end, as by all stages. */
Test(only_relates, target_that_returns_is_not_a_change)
{
    side *it = &sides[0];
    open_side(it, true, false, true);
    const quern_entity source = it->entities[20], a = it->entities[21], b = it->entities[22];
    must(quern_entity_relate(it->world, source, it->relations[LOCK], a));
    cr_assert_gt(see_changes(it->changed[LOCK]), 0u);
    must(quern_commands_relate(quern_world_commands(it->world), source, it->relations[LOCK], b));
    must(quern_commands_relate(quern_world_commands(it->world), source, it->relations[LOCK], a));
    must(quern_world_flush(it->world));
    cr_assert_eq(see_changes(it->changed[LOCK]), 0u);
    must(quern_commands_relate(quern_world_commands(it->world), source, it->relations[LOCK], b));
    must(quern_world_flush(it->world));
    cr_assert_gt(see_changes(it->changed[LOCK]), 0u);
    cr_assert_eq(it->world->commands->playback.only_relates_count, 2u);
    close_side(it);
}

/* Hooks and listeners are called in the order of all stages, so rows that have them need all stages. */
Test(only_relates, rows_with_hooks_take_all_stages)
{
    side *it = &sides[0];
    open_side(it, true, true, false);
    const quern_entity hooked = it->entities[57], plain = it->entities[58];
    must(quern_commands_relate(quern_world_commands(it->world), hooked, it->relations[LOCK], plain));
    const uint64_t change_number = it->world->storage.change_number;
    must(quern_world_flush(it->world));
    cr_assert_eq(it->world->commands->playback.only_relates_count, 0u);
    cr_assert_eq(it->world->storage.change_number, change_number + 1, "the stages begin the only change");
    cr_assert_eq(quern_entity_target(it->world, hooked, it->relations[LOCK]).bits, plain.bits);
    must(quern_commands_relate(quern_world_commands(it->world), plain, it->relations[CARRIER], hooked));
    must(quern_world_flush(it->world));
    cr_assert_eq(it->world->commands->playback.only_relates_count, 1u);
    /* the hooked row remains in its archetype, so no hook is called */
    must(quern_commands_relate(quern_world_commands(it->world), hooked, it->relations[LOCK],
                               it->entities[59]));
    must(quern_world_flush(it->world));
    cr_assert_eq(it->world->commands->playback.only_relates_count, 2u);
    /* the hooked row moves, but is not the first one */
    must(quern_commands_unrelate(quern_world_commands(it->world), plain, it->relations[LOCK]));
    must(quern_commands_unrelate(quern_world_commands(it->world), hooked, it->relations[LOCK]));
    must(quern_world_flush(it->world));
    cr_assert_eq(it->world->commands->playback.only_relates_count, 2u);
    cr_assert(quern_entity_is_null(quern_entity_target(it->world, hooked, it->relations[LOCK])));
    close_side(it);
}

static void add_tags(const side *it)
{
    for (uint32_t i = 20; i <= 26; i += 3)
        must(quern_commands_add(quern_world_commands(it->world), it->entities[i], it->components[TAG],
                                NULL));
    must(quern_world_flush(it->world));
    assert_valid(it->world);
}

/* Sync points keep what they have resolved until archetypes are added or removed. One that takes the fast path and
 * drops commands must not make outdated results look current. */
Test(only_relates, drops_keep_no_results_for_removed_archetypes)
{
    side *it = &sides[0];
    open_side(it, true, false, false);
    add_tags(it);
    for (uint32_t i = 20; i <= 26; i += 3)
        must(quern_entity_remove(it->world, it->entities[i], it->components[TAG]));
    must(quern_world_remove_empty_archetypes(it->world, NULL));
    must(quern_commands_relate(quern_world_commands(it->world), it->entities[20], it->relations[LOCK],
                               it->entities[30]));
    must(quern_entity_destroy(it->world, it->entities[30]));
    must(quern_world_flush(it->world));
    cr_assert_eq(it->world->commands->playback.only_relates_count, 1u);
    cr_assert_eq(it->world->commands->playback.drops.count, 1u);
    add_tags(it);
    cr_assert(quern_entity_has(it->world, it->entities[20], it->components[TAG]));
    close_side(it);
}

static void ignore_view(quern_context *context, const quern_view *view) {}

/* Rows that reactions observe take all stages, without a vain attempt before: the stages begin the only change. */
Test(only_relates, observed_rows_take_all_stages_at_once)
{
    side *it = &sides[0];
    quern_schedule *schedule;
    open_side(it, true, false, false);
    must(quern_schedule_create(it->world, NULL, &schedule));
    const quern_system_def def = {.name = "reaction",
                                  .run = ignore_view,
                                  .reacts_to = QUERN_REACT_SET,
                                  .terms = {quern_term_read(it->components[ROW])}};
    must(quern_schedule_add_system(schedule, &def, NULL));
    for (uint32_t i = 20; i <= 26; i += 3)
        must(quern_commands_relate(quern_world_commands(it->world), it->entities[i], it->relations[CARRIER],
                                   it->entities[30]));
    const uint64_t change_number = it->world->storage.change_number;
    must(quern_world_flush(it->world));
    cr_assert_eq(it->world->commands->playback.only_relates_count, 0u);
    cr_assert_eq(it->world->storage.change_number, change_number + 1);
    cr_assert(
        quern_entity_has_target(it->world, it->entities[20], it->relations[CARRIER], it->entities[30]));
    quern_schedule_destroy(schedule);
    close_side(it);
}
