/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <stdatomic.h>
#include <string.h>

/* Tests systems that run level by level: what each row sees of its target, and that they otherwise
 * behave like any system, at every thread count and in every style. Callbacks exchange values with their
 * targets in an array outside of the world, indexed by slot, without synchronisation. Only the order of
 * levels prevents races, which the thread sanitizer would detect. */

enum { MAX_COUNT = 2000, PLANTED = effort(2000, 1000, 500), FRAMES = 3, SLOTS = 1 << 17 };

static quern_world *world;
static quern_relation parent;
static quern_component number, other, wide;
static quern_schedule *schedule;
static quern_jobs *jobs;
static quern_entity nodes[MAX_COUNT];
static uint32_t node_count;
static uint64_t board[SLOTS], expected_values[SLOTS];
static _Atomic uint32_t wrong_count;

static void expect(bool is_right)
{
    if (!is_right) wrong_count++;
}

static void open_world(void)
{
    world = setup_world();
    parent = quern_world_parent(world);
    number = setup_component(world, "number", 8, 8);
    other = setup_component(world, "other", 8, 8);
    wide = setup_component(world, "wide", 512, 64);
    node_count = 0;
    wrong_count = 0;
    jobs = NULL;
}

static void close_world(void)
{
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
}

/* Creates a node in one of three archetypes. */
static quern_entity add_node(uint64_t value, uint32_t kind)
{
    const quern_component sets[3][3] = {{number, other}, {number}, {number, other, wide}};
    static const uint32_t counts[] = {2, 1, 3};
    const void *values[] = {&value, &value, NULL};
    must(quern_entity_create_with(world, sets[kind], values, counts[kind], &nodes[node_count]));
    return nodes[node_count++];
}

/* Creates random trees. Each node becomes a child of an earlier node, of the previous one with
 * probability depth_percent; some nodes have no parent. */
static void create_forest(uint32_t count, uint32_t depth_percent, uint64_t seed)
{
    random_source random = {seed};
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity node =
            add_node(i, random_below(&random, 20) == 0 ? 2 : random_below(&random, 2));
        if (i == 0 || random_chance(&random, 5)) continue;
        const bool goes_on = random_chance(&random, depth_percent);
        must(quern_entity_relate(world, node, parent, nodes[goes_on ? i - 1 : random_below(&random, i)]));
    }
}

/* ----------------------------------------------------------------------------------------- the board */

enum { UNDONE = 0, FACTOR = 31 };

static void clear(uint64_t *values)
{
    memset(values, 0, world->storage.entities.slot_count * sizeof *values);
}

static uint64_t *place_of(quern_entity entity)
{
    return &board[quern_entity_index(entity)];
}

/* The value of a node, which depends on the values of all its ancestors. */
static uint64_t node_value(uint64_t above, quern_entity node)
{
    return above * FACTOR + quern_entity_index(node) + 1;
}

/* Terms: number (write), relation (optional read). */
static void compute_from_target(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 0);
    const quern_entity *targets = quern_view_read(view, 1);
    for (uint32_t i = 0; i < view->count; i++) {
        const uint64_t above = targets != NULL ? *place_of(targets[i]) : 1;
        expect(above != UNDONE && *place_of(view->entities[i]) == UNDONE);
        numbers[i] = *place_of(view->entities[i]) = node_value(above, view->entities[i]);
    }
}

static quern_system_def follower(const char *name)
{
    return (quern_system_def){
        .name = name,
        .run = compute_from_target,
        .terms = {quern_term_write(number),
                  quern_term_optional(quern_relation_component(parent), QUERN_ACCESS_READ)},
        .levels = parent};
}

/* Computes the value of a node from the root down, or from the last ancestor with a known value. */
static uint64_t expected_of(quern_entity node)
{
    static quern_entity path[MAX_COUNT];
    uint32_t depth = 0;
    while (!quern_entity_is_null(node) && expected_values[quern_entity_index(node)] == UNDONE) {
        path[depth++] = node;
        node = quern_entity_target(world, node, parent);
    }
    uint64_t value = quern_entity_is_null(node) ? 1 : expected_values[quern_entity_index(node)];
    while (depth-- > 0)
        expected_values[quern_entity_index(path[depth])] = value = node_value(value, path[depth]);
    return value;
}

static uint64_t number_of(quern_entity node)
{
    return *(uint64_t *)quern_entity_get(world, node, number);
}

static void check_nodes(void)
{
    cr_assert_eq(wrong_count, 0u, "%u rows came before their targets, or twice", wrong_count);
    clear(expected_values);
    for (uint32_t i = 0; i < node_count; i++)
        cr_assert_eq(number_of(nodes[i]), expected_of(nodes[i]), "node %u", i);
}

static void run_frame(void)
{
    clear(board);
    must_run(schedule, jobs);
}

/* A test: functions that create the nodes, add the systems, change the world between frames, and check
 * the result. The final hash must be the same in each setting. */
typedef struct scene {
    void (*create_forest)(void);
    void (*make)(void);
    void (*change)(uint32_t frame); /* called between frames; may be NULL */
    void (*check)(void);
} scene;

static uint64_t play_as(const scene *it, frame_setting setting)
{
    open_world();
    it->create_forest();
    schedule = setup_schedule_as(world, schedule_style(setting.style), 2);
    jobs = setup_jobs(setting.thread_count);
    it->make();
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        if (it->change != NULL) it->change(frame);
        run_frame();
        it->check();
    }
    assert_valid(world);
    const uint64_t hash = quern_world_hash(world);
    close_world();
    return hash;
}

static void play(scene it)
{
    static uint32_t turn;
    uint64_t expected = 0;
    for (uint32_t i = 0; i < SETTING_COUNT; i++) {
        const frame_setting setting = frame_setting_at(i, turn);
        const uint64_t hash = play_as(&it, setting);
        if (i == 0) expected = hash;
        cr_assert_eq(hash, expected, "in style %u with %u threads", setting.style, setting.thread_count);
    }
    turn++;
}

static void make_follower(void)
{
    const quern_system_def def = follower("follow");
    setup_system(schedule, &def);
}

/* ---------------------------------------------------------------------------- parents before children */

static void plant_bushes(void)
{
    create_forest(PLANTED, 30, 1);
}

static void plant_poles(void)
{
    create_forest(PLANTED, 97, 2);
}

static void plant_few(void)
{
    create_forest(9, 60, 3);
}

Test(levels, targets_are_visited_before_their_sources, .timeout = 120)
{
    play((scene){plant_bushes, make_follower, NULL, check_nodes});
}

Test(levels, order_holds_in_trees_deeper_than_the_limit, .timeout = 120)
{
    play((scene){plant_poles, make_follower, NULL, check_nodes});
}

Test(levels, order_holds_with_fewer_chunks_than_threads, .timeout = 120)
{
    play((scene){plant_few, make_follower, NULL, check_nodes});
}

static void plant_a_chain(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        add_node(i, i % 3);
        if (i > 0) must(quern_entity_relate(world, nodes[i], parent, nodes[i - 1]));
    }
}

static void plant_a_long_chain(void)
{
    plant_a_chain(1000);
}

Test(levels, chain_of_a_thousand_is_visited_in_order, .timeout = 120)
{
    play((scene){plant_a_long_chain, make_follower, NULL, check_nodes});
}

Test(levels, chain_of_a_hundred_thousand_is_visited_in_order, .timeout = 120)
{
    enum { COUNT = effort(100000, 100000, 20000) };
    open_world();
    quern_entity above = {0};
    uint64_t expected = 1;
    for (uint64_t i = 0; i < COUNT; i++) {
        const void *value = &i;
        quern_entity node;
        must(quern_entity_create_with(world, &number, &value, 1, &node));
        if (i > 0) must(quern_entity_relate(world, node, parent, above));
        above = node;
        expected = node_value(expected, node);
    }
    schedule = setup_schedule(world);
    jobs = setup_jobs(2);
    make_follower();
    run_frame();
    cr_assert_eq(wrong_count, 0u);
    cr_assert_eq(number_of(above), expected);
    close_world();
}

/* ------------------------------------------------------------------------------------------- changes */

/* Moves random subtrees, including the deepest ones. */
static void move_some(uint32_t frame)
{
    random_source random = {frame + 5};
    for (uint32_t i = 0; i < 60; i++) {
        const quern_entity node = nodes[1 + random_below(&random, node_count - 1)];
        const quern_result result =
            quern_entity_relate(world, node, parent, nodes[random_below(&random, node_count)]);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_CYCLE ||
                  result == QUERN_ERROR_INVALID_ARGUMENT);
        if (!random_chance(&random, 20)) continue;
        if (!quern_entity_is_null(quern_entity_target(world, node, parent)))
            must(quern_entity_unrelate(world, node, parent));
    }
}

Test(levels, nodes_moved_between_frames_are_visited_in_new_order, .timeout = 120)
{
    play((scene){plant_bushes, make_follower, move_some, check_nodes});
    play((scene){plant_poles, make_follower, move_some, check_nodes});
}

static void move_in_a_frame(quern_context *context)
{
    move_some((uint32_t)quern_context_frame_index(context));
}

static void make_mover(void)
{
    make_system(schedule, "move", NULL, .begin = move_in_a_frame, .flags = QUERN_SYSTEM_EXCLUSIVE);
    make_follower();
}

Test(levels, nodes_moved_by_an_exclusive_system_are_visited_in_new_order, .timeout = 120)
{
    play((scene){plant_poles, make_mover, NULL, check_nodes});
}

/* Terms: number (read). Records relate and unrelate commands. Commands that would create a cycle are
 * dropped. */
static void move_by_commands(quern_context *context, const quern_view *view)
{
    const uint64_t *numbers = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        random_source random = {numbers[i] + quern_context_frame_index(context)};
        quern_commands *commands = quern_context_commands(context);
        if (random_chance(&random, 5))
            quern_commands_relate(commands, view->entities[i], parent,
                                  nodes[random_below(&random, node_count)]);
        else if (random_chance(&random, 1))
            quern_commands_unrelate(commands, view->entities[i], parent);
    }
}

static void make_command_mover(void)
{
    make_system(schedule, "move", move_by_commands, .terms = {quern_term_read(number)});
    quern_system_def def = follower("follow");
    def.phase = 1;
    setup_system(schedule, &def);
}

Test(levels, nodes_moved_by_commands_are_visited_in_new_order, .timeout = 120)
{
    play((scene){plant_bushes, make_command_mover, NULL, check_nodes});
    play((scene){plant_poles, make_command_mover, NULL, check_nodes});
}

/* A change of targets that moves no row and changes no archetype must still be noticed by the order of
 * the last level. */
Test(levels, new_targets_on_the_last_level_change_its_order)
{
    open_world();
    plant_a_chain(40);
    for (uint32_t i = 20; i < 39; i++) { /* the parent of the following nodes is node 18 */
        quern_entity leaf = add_node(100 + i, i % 3);
        must(quern_entity_relate(world, leaf, parent, nodes[18]));
    }
    schedule = setup_schedule(world);
    make_follower();
    run_frame();
    check_nodes();
    const uint64_t version = world->storage.structure_version;
    for (uint32_t i = 58; i > 41; i--)
        must(quern_entity_relate(world, nodes[i - 1], parent, nodes[i]));
    cr_assert_eq(world->storage.structure_version, version);
    run_frame();
    check_nodes();
    close_world();
}

/* The forest has one level at first. The graph of passes gets nodes for further levels when they are
 * needed. */
static void plant_one(void)
{
    add_node(0, 0);
}

static void grow_deeper(uint32_t frame)
{
    for (uint32_t i = 0; i < (frame + 1) * 3; i++) {
        const quern_entity above = nodes[node_count - 1];
        must(quern_entity_relate(world, add_node(frame, i % 3), parent, above));
    }
}

Test(levels, trees_may_grow_deeper_from_frame_to_frame, .timeout = 120)
{
    play((scene){plant_one, make_follower, grow_deeper, check_nodes});
}

/* ----------------------------------------------------------------------------------- as every system */

/* The views of a frame: hash over the rows of each, by ordinal. */
typedef struct seen_views {
    uint64_t rows[1 << 14];
    _Atomic uint32_t count;
    uint32_t begun, ended;
} seen_views;

static seen_views seen;

static void note_begin(quern_context *context)
{
    expect(seen.count == 0 && seen.ended == 0);
    seen.begun++;
}

/* Terms as for `compute_from_target`. Records creates; the handles of created entities depend on the
 * ordinals of views. */
static void note_view(quern_context *context, const quern_view *view)
{
    compute_from_target(context, view);
    expect(seen.begun == 1 && seen.rows[view->ordinal] == 0);
    for (uint32_t i = 0; i < view->count; i++)
        seen.rows[view->ordinal] =
            seen.rows[view->ordinal] * FACTOR + quern_entity_index(view->entities[i]);
    seen.count++;
    *(uint64_t *)quern_context_partial(context) += view->count;
    const quern_component component = other;
    const uint64_t value = seen.rows[view->ordinal];
    const void *values = &value;
    record_entity_with(quern_context_commands(context), &component, &values, 1);
}

static void note_end(quern_context *context)
{
    uint64_t row_count = 0;
    for (uint32_t i = 0; i < quern_context_partial_count(context); i++)
        row_count += *(const uint64_t *)quern_context_partial_at(context, i);
    expect(row_count == node_count && seen.count == quern_context_partial_count(context));
    seen.ended++;
}

static void make_noter(void)
{
    quern_system_def def = follower("note");
    def.run = note_view;
    def.begin = note_begin;
    def.end = note_end;
    def.partial_bytes = sizeof(uint64_t);
    setup_system(schedule, &def);
    memset(&seen, 0, sizeof seen);
}

static uint64_t seen_hash; /* hash in the first style on one thread */

static void check_views(void)
{
    uint64_t hash = seen.count;
    for (uint32_t i = 0; i < seen.count; i++)
        hash = hash * FACTOR + seen.rows[i];
    expect(seen.ended == 1);
    check_nodes();
    if (seen_hash == 0) seen_hash = hash;
    cr_assert_eq(hash, seen_hash, "views have other numbers");
    memset(&seen, 0, sizeof seen);
}

Test(levels, ordinals_partials_and_commands_are_equal_at_every_thread_count, .timeout = 120)
{
    play((scene){plant_bushes, make_noter, NULL, check_views});
    seen_hash = 0;
    play((scene){plant_poles, make_noter, NULL, check_views});
}

/* Terms: other (write), number (read). Runs chunk by chunk, after the system that runs by level. */
static void copy_number(quern_context *context, const quern_view *view)
{
    uint64_t *others = quern_view_write(view, 0);
    const uint64_t *numbers = quern_view_read(view, 1);
    for (uint32_t i = 0; i < view->count; i++) {
        expect(numbers[i] == *place_of(view->entities[i]));
        others[i] = others[i] % 7 + numbers[i];
    }
}

/* Runs before the system that runs by level: no row may have been visited yet. */
static void spoil_number(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        expect(*place_of(view->entities[i]) == UNDONE);
        numbers[i] = 0;
    }
}

/* Runs by level after `compute_from_target`, which must have visited all higher levels and this one. */
static void check_follower(quern_context *context, const quern_view *view)
{
    const uint64_t *numbers = quern_view_read(view, 0);
    const quern_entity *targets = quern_view_read(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        expect(numbers[i] == node_value(targets != NULL ? *place_of(targets[i]) : 1, view->entities[i]));
}

static void make_company(void)
{
    quern_system_def spoil = system_def("spoil", spoil_number), copy = system_def("copy", copy_number);
    quern_system_def first = follower("follow"), second = follower("check");
    spoil.terms[0] = quern_term_write(number);
    copy.terms[0] = quern_term_write(other);
    copy.terms[1] = quern_term_read(number);
    second.run = check_follower;
    second.terms[0] = quern_term_read(number);
    const quern_system systems[] = {setup_system(schedule, &spoil), setup_system(schedule, &first),
                                    setup_system(schedule, &second), setup_system(schedule, &copy)};
    must(quern_schedule_compile(schedule));
    for (uint32_t i = 1; i < COUNT_OF(systems); i++)
        cr_assert_eq(quern_schedule_are_fused(schedule, systems[0], systems[i]),
                     schedule->plan.fuses_systems);
}

Test(levels, systems_by_level_share_passes_with_each_other_and_with_others, .timeout = 120)
{
    play((scene){plant_bushes, make_company, NULL, check_nodes});
    play((scene){plant_poles, make_company, NULL, check_nodes});
    play((scene){plant_few, make_company, NULL, check_nodes});
}

static void increment_other(quern_context *context, const quern_view *view)
{
    uint64_t *others = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        others[i]++;
}

/* Adds two independent systems. Levels have fewer chunks than there are threads. */
static void make_lanes(void)
{
    make_system(schedule, "lane", increment_other, .terms = {quern_term_write(other)});
    make_follower();
}

Test(levels, lanes_finish_a_level_before_the_next, .timeout = 120)
{
    play((scene){plant_few, make_lanes, NULL, check_nodes});
    play((scene){plant_a_long_chain, make_lanes, NULL, check_nodes});
}

static void make_serial(void)
{
    quern_system_def def = follower("follow");
    def.flags = QUERN_SYSTEM_SERIAL;
    setup_system(schedule, &def);
}

static void make_main(void)
{
    quern_system_def def = follower("follow");
    def.flags = QUERN_SYSTEM_MAIN_THREAD;
    setup_system(schedule, &def);
}

Test(levels, serial_systems_run_by_level, .timeout = 120)
{
    play((scene){plant_poles, make_serial, NULL, check_nodes});
    play((scene){plant_poles, make_main, NULL, check_nodes});
}

/* ------------------------------------------------------------------------------------------- up-terms */

/* Terms: number (write), number of the target (optional). */
static void sum_up(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = QUERN_COLUMN(view, 0, uint64_t);
    const uint64_t *const *above = QUERN_UP(view, 1, uint64_t);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i] = node_value(above[i] != NULL ? *above[i] : 1, view->entities[i]);
}

static quern_system_def summer(const char *name)
{
    return (quern_system_def){.name = name,
                              .run = sum_up,
                              .terms = {quern_term_write(number), quern_term_up_optional(number, parent)},
                              .levels = parent};
}

/* Terms: other (write), number (read), number of the target. Roots do not match. */
static void compare_up(quern_context *context, const quern_view *view)
{
    uint64_t *others = QUERN_COLUMN(view, 0, uint64_t);
    const uint64_t *numbers = QUERN_COLUMN(view, 1, const uint64_t);
    const uint64_t *const *above = QUERN_UP(view, 2, uint64_t);
    for (uint32_t i = 0; i < view->count; i++) {
        expect(numbers[i] == node_value(*above[i], view->entities[i]));
        others[i] += *above[i];
    }
}

static quern_system_def comparer(const char *name)
{
    return (quern_system_def){
        .name = name,
        .run = compare_up,
        .terms = {quern_term_write(other), quern_term_read(number), quern_term_up(number, parent)},
        .levels = parent};
}

static void make_summers(void)
{
    const quern_system_def write = summer("sum"), read = comparer("compare");
    const quern_system first = setup_system(schedule, &write), second = setup_system(schedule, &read);
    must(quern_schedule_compile(schedule));
    cr_assert_eq(quern_schedule_are_fused(schedule, first, second), schedule->plan.fuses_systems);
}

Test(levels, system_reads_current_values_of_targets, .timeout = 120)
{
    play((scene){plant_bushes, make_summers, NULL, check_nodes});
    play((scene){plant_poles, make_summers, move_some, check_nodes});
    play((scene){plant_few, make_summers, grow_deeper, check_nodes});
}

/* Like sum_up, with values that change from frame to frame. */
static void sum_up_anew(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = QUERN_COLUMN(view, 0, uint64_t);
    const uint64_t *const *above = QUERN_UP(view, 1, uint64_t);
    const uint64_t start = quern_context_frame_index(context) + 1;
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i] = node_value(above[i] != NULL ? *above[i] : start, view->entities[i]);
}

/* Terms as for compare_up. Runs before sum_up, so it sees the values of the frame before. */
static void compare_old(quern_context *context, const quern_view *view)
{
    if (quern_context_frame_index(context) > 0) compare_up(context, view);
}

static void make_reader_before_writer(void)
{
    quern_system_def read = comparer("compare"), write = summer("sum");
    read.run = compare_old;
    write.run = sum_up_anew;
    const quern_system first = setup_system(schedule, &read), second = setup_system(schedule, &write);
    must(quern_schedule_compile(schedule));
    cr_assert_not(quern_schedule_are_fused(schedule, first, second));
}

static void check_none_wrong(void)
{
    cr_assert_eq(wrong_count, 0u);
}

Test(levels, earlier_system_reads_values_of_targets_before_the_write, .timeout = 120)
{
    play((scene){plant_bushes, make_reader_before_writer, NULL, check_none_wrong});
    play((scene){plant_poles, make_reader_before_writer, NULL, check_none_wrong});
}

/* -------------------------------------------------------------------------------- filters, conditions */

static uint32_t row_count;

static void count_rows(quern_context *context, const quern_view *view)
{
    (void)quern_view_write(view, 0);
    row_count += view->count;
}

static uint32_t rows_of_frame(void)
{
    row_count = 0;
    must_run(schedule, NULL);
    return row_count;
}

Test(levels, filters_pass_changed_chunks_but_not_own_writes)
{
    open_world();
    plant_a_chain(60);
    schedule = setup_schedule(world);
    make_system(schedule, "count", count_rows, .levels = parent,
                .terms = {quern_term_changed(quern_term_write(number))});
    cr_assert_eq(rows_of_frame(), 60u);
    cr_assert_eq(rows_of_frame(), 0u);
    const uint64_t value = 5;
    must(quern_entity_set(world, nodes[3], number, &value));
    cr_assert_eq(rows_of_frame(), 1u, "alone in its chunk");
    must(quern_entity_set(world, nodes[30], number, &value));
    cr_assert_eq(rows_of_frame(), 15u, "a third of those from 15 on is in its chunk");
    cr_assert_eq(rows_of_frame(), 0u);
    close_world();
}

Test(levels, filters_by_row_pass_changed_rows)
{
    open_world();
    plant_a_chain(60);
    quern_component state =
        make_component(world, .name = "state", .size_bytes = 8, .alignment_bytes = 8, .row_changes = true);
    for (uint32_t i = 0; i < 60; i++)
        must(quern_entity_add(world, nodes[i], state, NULL));
    schedule = setup_schedule(world);
    make_system(schedule, "count", count_rows, .levels = parent,
                .terms = {quern_term_changed(quern_term_write(state))});
    cr_assert_eq(rows_of_frame(), 60u);
    cr_assert_eq(rows_of_frame(), 0u);
    const uint64_t value = 5;
    must(quern_entity_set(world, nodes[3], state, &value));
    must(quern_entity_set(world, nodes[30], state, &value));
    must(quern_entity_set(world, nodes[31], state, &value));
    cr_assert_eq(rows_of_frame(), 3u);
    cr_assert_eq(rows_of_frame(), 0u, "it has written them itself");
    close_world();
}

static bool is_open;

static bool is_wanted(quern_context *context)
{
    return is_open;
}

Test(levels, conditions_and_disabling_apply_to_all_levels)
{
    open_world();
    plant_a_chain(60);
    schedule = setup_schedule(world);
    const quern_system system = make_system(schedule, "count", count_rows, .levels = parent,
                                            .condition = is_wanted, .terms = {quern_term_write(number)});
    is_open = false;
    cr_assert_eq(rows_of_frame(), 0u);
    is_open = true;
    cr_assert_eq(rows_of_frame(), 60u);
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, system, &stats));
    cr_assert_eq(stats.entity_count, 60u);
    cr_assert_eq(stats.view_count, 60u);
    must(quern_schedule_set_system_enabled(schedule, system, false));
    cr_assert_eq(rows_of_frame(), 0u);
    must(quern_schedule_set_system_enabled(schedule, system, true));
    cr_assert_eq(rows_of_frame(), 60u);
    close_world();
}

/* ---------------------------------------------------------------------------------------------- bad use */

static void refuse(const quern_system_def *def, const char *message)
{
    quern_system system;
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, def, &system));
    assert_message_has(message);
}

Test(levels, invalid_levels_are_refused)
{
    open_world();
    schedule = setup_schedule(world);
    quern_relation flat = make_relation(world, .name = "owner");
    quern_system_def def = follower("follow");
    def.levels = flat;
    refuse(&def, "'follow' is ordered by the levels of relation 'owner', which has none");
    def.levels = (quern_relation){quern_relation_component(parent).bits + 1};
    refuse(&def, "none of this world");
    def.levels = (quern_relation){number.bits};
    refuse(&def, "none of this world");
    quern_world *foreign = setup_world();
    def.levels = quern_world_parent(foreign);
    refuse(&def, "none of this world");
    quern_world_destroy(foreign);
    def = (quern_system_def){.name = "once", .run = idle_run, .levels = parent};
    refuse(&def, "'once' is to be ordered by levels and has no terms");
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    refuse(&def, "'once' is to be ordered by levels and has no terms");
    close_world();
}

Test(levels, writing_a_component_read_from_targets_requires_its_levels)
{
    open_world();
    schedule = setup_schedule(world);
    quern_relation second = make_relation(world, .name = "second", .levels = true);
    quern_system_def def = summer("sum");
    def.levels = second;
    quern_system system;
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_add_system(schedule, &def, &system));
    assert_message_has("set .levels to the relation");
    def.levels = (quern_relation){0};
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_add_system(schedule, &def, &system));
    def.levels = parent;
    def.lookups[0].component = number;
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_add_system(schedule, &def, &system));
    assert_message_has("looks up 'number'");
    def.lookups[0].component = (quern_component){0};
    def.terms[2] = quern_term_up_nearest(number, parent);
    setup_system(schedule, &def);
    close_world();
}

/* ----------------------------------------------------------------------------------------------- memory */

Test(levels, frame_without_memory_for_levels_fails_and_the_next_succeeds, .timeout = 120)
{
    bool has_failed = true;
    for (uint64_t call = 1; has_failed; call++) {
        failing_allocator *memory = failing_allocator_create();
        const quern_allocator allocator = failing_allocator_interface(memory);
        open_world();
        quern_world_destroy(world);
        world = make_world(.allocator = allocator);
        parent = quern_world_parent(world);
        number = setup_component(world, "number", 8, 8);
        other = setup_component(world, "other", 8, 8);
        wide = setup_component(world, "wide", 512, 64);
        plant_a_chain(40);
        schedule = setup_schedule(world);
        jobs = setup_jobs(2);
        make_follower();
        run_frame();
        grow_deeper(3);
        failing_allocator_fail_at(memory, call);
        clear(board);
        const quern_result result = quern_schedule_run(schedule, jobs, 0.25);
        has_failed = failing_allocator_failed_count(memory) > 0;
        cr_assert_eq(result, has_failed ? QUERN_ERROR_OUT_OF_MEMORY : QUERN_OK);
        failing_allocator_heal(memory);
        run_frame();
        check_nodes();
        close_world();
        failing_allocator_close(memory);
    }
}

/* --------------------------------------------------------------------- observing does not change frames */

Test(levels, captured_frames_visit_levels_in_order_and_report_whole_systems, .timeout = 120)
{
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        open_world();
        plant_poles();
        const quern_schedule_def def = {.timing = true};
        schedule = setup_schedule_as(world, def, 1);
        jobs = setup_jobs(pool_threads[i]);
        make_company();
        quern_frame_capture *capture;
        must(quern_frame_capture_create(NULL, &capture));
        clear(board);
        must(quern_schedule_run_captured(schedule, jobs, 0.25, capture));
        check_nodes();
        quern_forecast forecast;
        must(quern_frame_capture_forecast(capture, NULL, 4, &forecast));
        cr_assert_gt(forecast.frame_ns, 0);
        cr_assert_geq(forecast.frame_ns, forecast.critical_path_ns);
        quern_frame_capture_destroy(capture);
        quern_system_stats stats;
        must(quern_schedule_get_system_stats(schedule, quern_schedule_system_at(schedule, 1), &stats));
        cr_assert_eq(stats.entity_count, node_count);
        cr_assert_gt(stats.time_ns, 0u);
        close_world();
    }
}
