/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/query/row_changes_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

/* Random programs with change filters by row, compared with a model, also when out of memory. */

TestSuite(row_changes_random, .init = open_world, .fini = close_world);

/* ------------------------------------------------------------------------------------ random programs */

enum { QUERIES = 6, LANES = 4 };

/* The model: state by index in the list. Its time advances with each operation and each iteration. */
static struct {
    bool is_alive, has[LANES], has_tag, is_off[LANES]; /* number, other, flag, plain */
    uint64_t changed[LANES];
} model[ROWS];
static uint32_t place_of[2 * ROWS]; /* index in the list, by slot */
static uint64_t now;
static quern_query *queries[QUERIES];
static uint64_t seen[QUERIES];
static quern_component lanes[LANES];
static quern_getter *getter;

/* Terms of the queries by lane: with a change filter, or only required. */
static const struct {
    bool wants[LANES], filters[LANES], is_optional[LANES], is_either, no_tag, whole_chunks;
} asks[QUERIES] = {
    {.wants = {true}, .filters = {true}},
    {.wants = {true, false},
     .filters = {true, true},
     .is_optional = {false, true},
     .is_either = true,
     .whole_chunks = true},
    {.wants = {false, false, true}, .filters = {false, false, true}},
    {.wants = {false, true, true}, .filters = {false, true, false}, .whole_chunks = true},
    {.wants = {true, true}, .filters = {true, true}, .no_tag = true},
    {.wants = {false, true}, .filters = {false, true, true}, .is_optional = {false, false, true}},
};

static void open_queries(void)
{
    lanes[0] = number;
    lanes[1] = other;
    lanes[2] = flag;
    lanes[3] = plain;
    for (uint32_t q = 0; q < QUERIES; q++) {
        quern_query_def def = {.whole_chunks = asks[q].whole_chunks};
        uint32_t count = 0;
        for (uint32_t k = 0; k < LANES; k++) {
            if (!asks[q].wants[k] && !asks[q].is_optional[k]) continue;
            quern_term term = asks[q].is_optional[k] ? quern_term_optional(lanes[k], QUERN_ACCESS_NONE)
                                                     : quern_term_with(lanes[k]);
            if (asks[q].is_either && !asks[q].is_optional[k]) term = quern_term_either(term);
            def.terms[count++] = asks[q].filters[k] ? quern_term_changed(term) : term;
        }
        if (asks[q].no_tag) def.terms[count++] = quern_term_without(tag);
        must(quern_query_create(world, &def, &queries[q]));
        seen[q] = 0;
    }
    const quern_getter_def def = {.component = number};
    must(quern_getter_create(world, &def, &getter));
}

static void close_queries(void)
{
    for (uint32_t q = 0; q < QUERIES; q++)
        quern_query_destroy(queries[q]);
    quern_getter_destroy(getter);
}

static bool is_to_be_shown(uint32_t q, uint32_t i)
{
    bool is_new = false;
    if (!model[i].is_alive || (asks[q].no_tag && model[i].has_tag)) return false;
    for (uint32_t k = 0; k < LANES; k++) {
        if (asks[q].wants[k] && !model[i].has[k]) return false;
        if (asks[q].wants[k] && !asks[q].is_either && model[i].is_off[k]) return false;
        is_new |= asks[q].filters[k] && model[i].has[k] && model[i].changed[k] > seen[q];
    }
    return is_new;
}

/* Checks that the query visits exactly the changed entities, once each. */
static uint32_t check_look(uint32_t q)
{
    static quern_entity shown[MAX_ROWS];
    static bool is_shown[ROWS];
    const uint32_t count = list_shown(queries[q], shown);
    memset(is_shown, 0, sizeof is_shown);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = place_of[quern_entity_index(shown[i])];
        cr_assert_eq(shown[i].bits, entities[at].bits);
        cr_assert_not(is_shown[at]);
        is_shown[at] = true;
    }
    for (uint32_t i = 0; i < ROWS; i++)
        cr_assert_eq(is_shown[i], is_to_be_shown(q, i), "query %u, entity %u", q, i);
    seen[q] = now++;
    return count;
}

static void change_lane(uint32_t i, uint32_t k)
{
    model[i].changed[k] = now;
}

static void create_one(uint32_t i)
{
    entities[i] = setup_entity_with(world, (quern_component[]){number, other}, 2);
    place_of[quern_entity_index(entities[i])] = i;
    memset((void *)&model[i], 0, sizeof model[i]);
    model[i].is_alive = model[i].has[0] = model[i].has[1] = true;
    change_lane(i, 0);
    change_lane(i, 1);
}

/* Adds or removes a component, by a call or by a command. */
static void switch_lane(random_source *random, uint32_t i, uint32_t k)
{
    const bool adds = !model[i].has[k];
    if (random_chance(random, 50)) {
        must(adds ? quern_entity_add(world, entities[i], lanes[k], NULL)
                  : quern_entity_remove(world, entities[i], lanes[k]));
    } else {
        quern_commands *commands = quern_world_commands(world);
        must(adds ? quern_commands_add(commands, entities[i], lanes[k], NULL)
                  : quern_commands_remove(commands, entities[i], lanes[k]));
        must(quern_world_flush(world));
    }
    model[i].has[k] = adds;
    model[i].is_off[k] = false;
    if (adds) change_lane(i, k);
}

static void set_lane(random_source *random, uint32_t i, uint32_t k)
{
    const uint64_t value = random_next(random);
    if (random_chance(random, 30)) {
        must(quern_commands_set(quern_world_commands(world), entities[i], lanes[k], &value));
        must(quern_world_flush(world));
        if (!model[i].has[k]) model[i].is_off[k] = false;
        model[i].has[k] = true;
    } else if (!model[i].has[k]) {
        return;
    } else if (random_chance(random, 50)) {
        must(quern_entity_set(world, entities[i], lanes[k], &value));
    } else if (k == 0 && random_chance(random, 50)) {
        cr_assert_not_null(quern_getter_get_write(getter, entities[i]));
    } else {
        must(quern_entity_mark_changed(world, entities[i], lanes[k]));
    }
    change_lane(i, k);
}

static void enable_lane(random_source *random, uint32_t i, uint32_t k)
{
    if (!model[i].has[k]) return;
    model[i].is_off[k] = random_chance(random, 60);
    if (random_chance(random, 50)) {
        must(quern_entity_set_component_enabled(world, entities[i], lanes[k], !model[i].is_off[k]));
    } else {
        must(quern_commands_set_component_enabled(quern_world_commands(world), entities[i], lanes[k],
                                                  !model[i].is_off[k]));
        must(quern_world_flush(world));
    }
    change_lane(i, k);
}

static void switch_tag(uint32_t i)
{
    must(model[i].has_tag ? quern_entity_remove(world, entities[i], tag)
                          : quern_entity_add(world, entities[i], tag, NULL));
    model[i].has_tag = !model[i].has_tag;
}

/* The loop over rows visits the rows of all ranges, in their order. */
static void assert_rows_of_ranges(const quern_view *view)
{
    quern_row_range run = {0};
    quern_row_iterator rows = quern_view_iterate_rows(view);
    uint32_t row;
    while (quern_view_next_range(view, &run))
        for (uint32_t i = run.first; i < run.first + run.count; i++)
            cr_assert(quern_view_next_row(&rows, &row) && row == i);
    cr_assert_not(quern_view_next_row(&rows, &row));
}

/* Writes to one view of an iteration, to the whole column or to single rows. */
static void write_view(random_source *random)
{
    const bool whole_chunks = random_chance(random, 50), by_rows = random_chance(random, 50);
    quern_query *query =
        make_query(world, .terms = {quern_term_write(number)}, .whole_chunks = whole_chunks);
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        if (!random_chance(random, 3)) continue;
        cr_assert_not_null(by_rows ? quern_view_write_rows(&it.view, 0) : quern_view_write(&it.view, 0));
        assert_rows_of_ranges(&it.view);
        QUERN_EACH_ROW(&it.view, i)
        {
            if (by_rows && !random_chance(random, 10)) continue;
            if (by_rows) cr_assert(quern_view_mark_row(&it.view, 0, i));
            change_lane(place_of[quern_entity_index(it.view.entities[i])], 0);
        }
    }
    must(it.result);
    quern_query_destroy(query);
}

static void act(random_source *random)
{
    const uint32_t i = random_below(random, ROWS), k = random_below(random, 3);
    now++;
    if (!model[i].is_alive) {
        create_one(i);
        return;
    }
    switch (random_below(random, 10)) {
    case 0:
        must(quern_entity_destroy(world, entities[i]));
        model[i].is_alive = false;
        break;
    case 1:
    case 2:
        switch_lane(random, i, k);
        break;
    case 3:
    case 4:
        enable_lane(random, i, k % 2 * 2);
        break;
    case 5:
        switch_tag(i);
        break;
    case 6:
        if (random_chance(random, 20)) write_view(random);
        break;
    default:
        set_lane(random, i, k % 2);
        break;
    }
}

static void play(uint64_t seed)
{
    random_source random = {seed};
    now = 1;
    open_queries();
    for (uint32_t i = 0; i < ROWS; i++) {
        memset((void *)&model[i], 0, sizeof model[i]);
        model[i].is_alive = model[i].has[0] = model[i].has[1] = model[i].has[3] = true;
        place_of[quern_entity_index(entities[i])] = i;
        for (uint32_t k = 0; k < LANES; k++)
            change_lane(i, k);
    }
    uint64_t shown = 0, looks = 0;
    for (uint32_t round = 0; round < 60; round++) {
        const uint32_t count = random_below(&random, 40);
        for (uint32_t k = 0; k < count; k++)
            act(&random);
        assert_valid(world);
        for (uint32_t q = 0; q < QUERIES; q++)
            if (random_chance(&random, 60)) {
                shown += check_look(q);
                looks++;
            }
    }
    cr_assert_lt(shown, looks * ROWS / 4, "most of the world was shown each time");
    close_queries();
}

Test(row_changes_random, random_programs_visit_exactly_the_changed_rows)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        close_world();
        open_world();
        play(seed);
    }
}

/* ----------------------------------------------------------------------------------------- memory */

/* Creates filters and rows while one allocation fails. Returns whether all calls succeeded. */
static bool survives(failing_allocator *memory, uint64_t call)
{
    failing_allocator_fail_at(memory, call);
    const quern_query_def def = {
        .terms = {quern_term_changed(quern_term_read(number)), quern_term_changed(quern_term_with(flag))}};
    quern_query *query = NULL;
    const quern_component set[] = {number, flag};
    const quern_result created = quern_query_create(world, &def, &query);
    const quern_result added = quern_entity_create_many(world, set, NULL, 2, MAX_ROWS - 10, NULL);
    const quern_result trimmed = quern_world_trim(world);
    const bool reached = failing_allocator_failed_count(memory) > 0;
    cr_assert_eq(trimmed, QUERN_OK);
    assert_valid(world);
    if (created == QUERN_OK) {
        cr_assert_eq(look(query), added == QUERN_OK ? MAX_ROWS : 10u);
        quern_query_destroy(query);
    }
    return reached;
}

Test(row_changes_random, out_of_memory_is_reported_and_loses_no_change)
{
    quern_world_destroy(world);
    uint64_t call = 1;
    for (bool goes_on = true; goes_on; call++) {
        failing_allocator *memory = failing_allocator_create();
        world = make_world(.allocator = failing_allocator_interface(memory));
        register_components();
        must(quern_entity_create_many(world, (quern_component[]){number, flag}, NULL, 2, 10, NULL));
        goes_on = survives(memory, call);
        quern_world_destroy(world);
        failing_allocator_close(memory);
    }
    cr_assert_gt(call, 8u);
    world = setup_world();
}
