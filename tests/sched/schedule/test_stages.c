/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "sched/frame/schedule_internal.h"
#include "sched/schedule/access.h"
#include "sched/schedule/compile.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

/* The stages of a level-ordered pass. flow/test_levels.c tests what its systems read and write. */

static quern_schedule *schedule;
static quern_relation parent;
static quern_component height, width;
static quern_system climber, other;
static quern_entity last; /* deepest entity of the chain */

static void open_schedule(void)
{
    world = setup_world();
    parent = quern_world_parent(world);
    height = setup_component(world, "height", 8, 8);
    width = setup_component(world, "width", 8, 8);
    last = quern_entity_null();
    schedule = setup_schedule(world);
    climber =
        make_system(schedule, "climb", idle_run, .terms = {quern_term_write(height)}, .levels = parent);
    other = make_system(schedule, "other", idle_run, .terms = {quern_term_write(width)});
}

TestSuite(stages, .init = open_schedule, .fini = close_world);

static void lengthen(quern_component component, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity node = setup_entity_with(world, &component, 1);
        if (!quern_entity_is_null(last)) must(quern_entity_relate(world, node, parent, last));
        last = node;
    }
}

/* Returns the pass of both systems, after a frame. */
static const quern__pass *run_pass(void)
{
    must_run(schedule, NULL);
    cr_assert(quern_schedule_are_fused(schedule, climber, other));
    const quern__segment *segment = schedule->plan.segments.items;
    while (segment->passes.count == 0)
        segment++;
    return segment->passes.items[0];
}

static uint32_t view_count_of(quern_system system)
{
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, system, &stats));
    return (uint32_t)stats.view_count;
}

Test(stages, levels_with_chunks_are_stages)
{
    const quern_component none = setup_component(world, "none", 8, 8);
    lengthen(height, 1);
    lengthen(none, 1);
    lengthen(height, 2);
    const quern__pass *pass = run_pass();
    cr_assert_eq(pass->stage_count, 3u);
    for (uint32_t i = 0; i < pass->stage_count; i++)
        cr_assert(pass->stages[i].chunk_count == 1 && !pass->stages[i].is_deep);
}

Test(stages, first_stage_has_tables_without_level_ordered_systems)
{
    lengthen(height, 2);
    lengthen(width, 2);
    const quern__pass *pass = run_pass();
    cr_assert_eq(pass->stage_count, 2u);
    cr_assert_eq(pass->stages[0].chunk_count, 3u);
    cr_assert_eq(pass->stages[1].chunk_count, 1u);
    must(quern_schedule_set_system_enabled(schedule, climber, false));
    lengthen(width, 1);
    pass = run_pass();
    cr_assert_eq(pass->stage_count, 1u, "no system is ordered by levels");
    cr_assert_eq(pass->stages[0].chunk_count, 3u);
}

/* The result does not depend on the order of siblings. */
Test(stages, adjacent_rows_of_same_depth_are_one_view)
{
    const quern_component both[] = {height, width};
    lengthen(height, QUERN_MAX_RELATION_LEVEL + 1);
    const quern_entity above = last;
    quern_entity leaves[4];
    for (uint32_t i = 0; i < 4; i++)
        leaves[i] = setup_entity_with(world, both, 2);
    for (uint32_t i = 0; i < 4; i++)
        must(quern_entity_relate(world, leaves[i], parent, above));
    must(quern_entity_move_before(world, leaves[3], parent, leaves[0]));
    must(quern_entity_move_before(world, leaves[1], parent, leaves[3]));
    const quern__pass *pass = run_pass();
    cr_assert_eq(pass->stage_count, QUERN_MAX_RELATION_LEVEL + 1u);
    cr_assert(pass->stages[QUERN_MAX_RELATION_LEVEL].is_deep);
    cr_assert_eq(pass->deep_ranges.count, 2u);
    cr_assert(pass->deep_ranges.items[1].first_row == 0 && pass->deep_ranges.items[1].count == 4);
    cr_assert_eq(view_count_of(climber), QUERN_MAX_RELATION_LEVEL + 2u);
    cr_assert_eq(view_count_of(other), 1u);
    cr_assert(quern__levels_depths_are_current(pass), "nothing is sorted again without a change");
    must(quern_entity_relate(world, leaves[1], parent, leaves[0]));
    cr_assert_not(quern__levels_depths_are_current(pass));
    pass = run_pass();
    cr_assert_eq(pass->deep_ranges.count, 4u);
    cr_assert_eq(view_count_of(climber), QUERN_MAX_RELATION_LEVEL + 4u);
    cr_assert_eq(view_count_of(other), 1u);
}

/* ----------------------------------------------------------------------------------------------- pairs */

/* Sets of pairs against a naive table. */

enum { ROWS = 700, WORDS = QUERN__BITSET_WORDS(ROWS), PUTS = 3000 };

static bool table[ROWS][ROWS]; /* [later][earlier] */

static void assert_row(const quern__pair_set *set, uint32_t later)
{
    uint64_t words[WORDS] = {0};
    quern__pair_set_get(set, later, words);
    quern__pair_walk walk = quern__pair_set_walk(set, later);
    for (uint32_t earlier = later; earlier-- > 0;) {
        cr_assert_eq(quern__pair_set_has(set, earlier, later), table[later][earlier]);
        cr_assert_eq(quern__bitset_has(words, earlier), table[later][earlier]);
        uint32_t next = UINT32_MAX;
        if (!table[later][earlier]) continue;
        cr_assert(quern__pair_walk_next(&walk, &next));
        cr_assert_eq(next, earlier);
    }
    uint32_t none;
    cr_assert_not(quern__pair_walk_next(&walk, &none));
}

/* Replaces a row by one in which about `percent` of the pairs exist. */
static bool put_random_row(quern__pair_set *set, const quern_allocator *allocator, random_source *random,
                           uint32_t later, uint32_t percent)
{
    uint64_t words[WORDS] = {0};
    for (uint32_t earlier = 0; earlier < later; earlier++)
        if (random_chance(random, percent)) quern__bitset_add(words, earlier);
    if (!quern__pair_set_put(set, allocator, later, words)) return false;
    for (uint32_t earlier = 0; earlier < later; earlier++)
        table[later][earlier] = quern__bitset_has(words, earlier);
    return true;
}

/* Rows grow, shrink and change their form; the memory of replaced rows is used again. */
Test(pair_set, rows_are_like_those_of_a_table)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    random_source random = {7};
    quern__pair_set set = {.unused_count = 0};
    cr_assert(quern__pair_set_reset(&set, &allocator, ROWS));
    for (uint32_t i = 0; i < ROWS; i++)
        assert_row(&set, i);
    static const uint32_t percents[] = {0, 1, 4, 30, 100};
    for (uint32_t i = 0; i < PUTS; i++) {
        const uint32_t later = random_below(&random, ROWS);
        cr_assert(put_random_row(&set, &allocator, &random, later, percents[random_below(&random, 5)]));
        assert_row(&set, later);
        cr_assert_leq(set.rows.items[later].unit_count, later / 16 + 1);
    }
    for (uint32_t i = 0; i < ROWS; i++)
        assert_row(&set, i);
    uint32_t used_count = 0;
    for (uint32_t i = 0; i < ROWS; i++)
        used_count += set.rows.items[i].unit_count;
    cr_assert_eq(set.units.count, used_count + set.unused_count);
    cr_assert(quern__pair_set_reset(&set, &allocator, 3));
    cr_assert_not(quern__pair_set_has(&set, 0, 2));
    quern__pair_set_release(&set, &allocator);
    failing_allocator_close(memory);
}

Test(pair_set, replaced_rows_do_not_pile_up)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    random_source random = {8};
    quern__pair_set set = {.unused_count = 0};
    cr_assert(quern__pair_set_reset(&set, &allocator, ROWS));
    uint32_t most = 0;
    for (uint32_t turn = 0; turn < 20; turn++)
        for (uint32_t later = 0; later < ROWS; later++) {
            cr_assert(put_random_row(&set, &allocator, &random, later, turn % 2 == 0 ? 0 : 50));
            if (set.units.count > most) most = set.units.count;
        }
    cr_assert_lt(most, 2 * 65536 + 2 * ROWS * ROWS / 32);
    for (uint32_t i = 0; i < ROWS; i++)
        assert_row(&set, i);
    quern__pair_set_release(&set, &allocator);
    failing_allocator_close(memory);
}

Test(pair_set, missing_memory_changes_nothing)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    random_source random = {9};
    quern__pair_set set = {.unused_count = 0};
    cr_assert(quern__pair_set_reset(&set, &allocator, ROWS));
    uint32_t failed_count = 0;
    for (uint32_t i = 0; i < PUTS; i++) {
        const uint32_t later = random_below(&random, ROWS);
        failing_allocator_fail_at(memory, i % 2);
        failed_count += !put_random_row(&set, &allocator, &random, later, i % 2 * 60);
        failing_allocator_heal(memory);
        assert_row(&set, later);
    }
    cr_assert_gt(failed_count, 2u);
    quern__pair_set_release(&set, &allocator);
    failing_allocator_close(memory);
}
