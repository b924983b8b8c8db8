/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <string.h>

/* Components that can be disabled: calls, commands, and the rows that queries select. */

enum { ENTITIES = 3000 };

static quern_component number, other, tag, solid; /* all but the last can be disabled */
static quern_entity entities[ENTITIES];
static bool is_disabled[ENTITIES]; /* the number */
static captured_reports reports;

static quern_component component_that_can(const char *name, uint32_t size_bytes, bool can_disable)
{
    quern_component component =
        make_component(world, .name = name, .size_bytes = size_bytes,
                       .alignment_bytes = size_bytes > 0 ? 8 : 1, .can_disable = can_disable);
    return component;
}

/* Entity i has the number i. Every other one also has `other`, so there are two archetypes of several chunks. */
static void open_world(void)
{
    world = setup_world();
    number = component_that_can("number", 8, true);
    other = component_that_can("other", 24, true);
    tag = component_that_can("tag", 0, true);
    solid = component_that_can("solid", 8, false);
    for (uint64_t i = 0; i < ENTITIES; i++) {
        entities[i] = setup_entity_with(world, (quern_component[]){number, other}, 1 + i % 2);
        must(quern_entity_set(world, entities[i], number, &i));
        is_disabled[i] = false;
    }
    capture_reports(&reports);
}

TestSuite(toggles, .init = open_world, .fini = close_world);
TestSuite(toggles_refused, .init = open_world, .fini = close_world);

static void disable(uint32_t i)
{
    must(quern_entity_set_component_enabled(world, entities[i], number, false));
    is_disabled[i] = true;
}

/* Disables every tenth at random, and 500 consecutive entities, so that ranges cross words and chunks are disabled as a
 * whole. */
static void disable_some(void)
{
    random_source random = {3};
    for (uint32_t i = 0; i < ENTITIES; i++)
        if (random_chance(&random, 10) || (i >= 1200 && i < 1700)) disable(i);
    for (uint32_t i = 2000; i < ENTITIES; i++)
        disable(i);
    assert_valid(world);
}

static quern_query *query_of(quern_term term, bool whole_chunks)
{
    quern_query *query = make_query(world, .terms = {term}, .whole_chunks = whole_chunks);
    return query;
}

/* Marks the entities of a view in `seen`, by their numbers. Returns the number of entities. */
static uint32_t see(const quern_view *view, bool *seen)
{
    const uint64_t *numbers = QUERN_COLUMN(view, 0, const uint64_t);
    uint32_t count = 0;
    quern_row_range run = {0};
    while (quern_view_next_range(view, &run)) {
        cr_assert_gt(run.count, 0u);
        for (uint32_t i = run.first; i < run.first + run.count; i++, count++) {
            cr_assert(quern_entity_equal(view->entities[i], entities[numbers[i]]));
            cr_assert_not(seen[numbers[i]], "a row came twice");
            seen[numbers[i]] = true;
            cr_assert_eq(quern_view_is_enabled(view, 0, i), !is_disabled[numbers[i]]);
        }
    }
    return count;
}

/* Checks that the query visits and counts exactly the enabled or disabled entities, as requested. */
static void check_query(quern_term term, bool whole_chunks, bool shows_enabled, bool shows_disabled)
{
    quern_query *query = query_of(term, whole_chunks);
    bool seen[ENTITIES] = {false};
    uint32_t count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        count += see(&it.view, seen);
    must(it.result);
    cr_assert_eq(quern_query_count(query), count);
    if (!whole_chunks) assert_matches(query, entities, ENTITIES);
    for (uint32_t i = 0; i < ENTITIES; i++)
        cr_assert_eq(seen[i], is_disabled[i] ? shows_disabled : shows_enabled, "entity %u", i);
    quern_query_destroy(query);
}

/* ------------------------------------------------------------------------------------------- queries */

Test(toggles, terms_select_rows_by_enabled_component)
{
    const quern_term off = quern_term_if_disabled(quern_term_read(number));
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t whole_chunks = 0; whole_chunks < 2; whole_chunks++) {
            check_query(quern_term_read(number), whole_chunks, true, false);
            check_query(quern_term_either(quern_term_read(number)), whole_chunks, true, true);
            check_query(quern_term_optional(number, QUERN_ACCESS_READ), whole_chunks, true, true);
            check_query(off, whole_chunks, false, true);
        }
        disable_some();
    }
}

/* Writes through a term for disabled components change the numbers of disabled entities and no others. */
Test(toggles, write_access_covers_only_rows_with_the_component_disabled)
{
    disable_some();
    for (uint64_t whole_chunks = 0; whole_chunks < 2; whole_chunks++) {
        quern_query *query = query_of(quern_term_if_disabled(quern_term_write(number)), whole_chunks);
        quern_query_iterator it = quern_query_iterate(query);
        while (quern_query_next(&it)) {
            uint64_t *numbers = QUERN_COLUMN(&it.view, 0, uint64_t);
            quern_row_range run = {0};
            while (quern_view_next_range(&it.view, &run))
                for (uint32_t i = run.first; i < run.first + run.count; i++)
                    numbers[i] += ENTITIES;
        }
        must(it.result);
        for (uint64_t i = 0; i < ENTITIES; i++)
            cr_assert_eq(*(const uint64_t *)quern_entity_get(world, entities[i], number),
                         is_disabled[i] ? i + (whole_chunks + 1) * ENTITIES : i);
        quern_query_destroy(query);
    }
}

Test(toggles, chunk_is_visited_as_one_view_per_range_or_as_one_view)
{
    disable(2);
    disable(6);
    quern_query *split = query_of(quern_term_read(number), false);
    quern_query *whole = query_of(quern_term_read(number), true);
    quern_query_iterator it = quern_query_iterate(split);
    const uint32_t counts[] = {1, 1};
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert(quern_query_next(&it));
        cr_assert_eq(it.view.count, counts[i], "rows of the even entities");
        cr_assert_eq(it.view.ordinal, 0u, "all of one chunk");
    }
    it = quern_query_iterate(whole);
    cr_assert(quern_query_next(&it));
    cr_assert_gt(it.view.count, 100u);
    quern_row_range run = {0};
    cr_assert(quern_view_next_range(&it.view, &run));
    cr_assert_eq(run.first, 0u);
    cr_assert_eq(run.count, 1u);
    cr_assert(quern_view_next_range(&it.view, &run));
    cr_assert_eq(run.first, 2u);
    cr_assert_eq(run.count, 1u);
    cr_assert(quern_view_next_range(&it.view, &run));
    cr_assert_eq(run.first, 4u);
    cr_assert_eq(run.first + run.count, it.view.count);
    cr_assert_not(quern_view_next_range(&it.view, &run));
}

Test(toggles, loop_over_rows_visits_selected_rows_and_can_be_left)
{
    disable(2);
    disable(6);
    quern_query *split = query_of(quern_term_read(number), false);
    quern_query *whole = query_of(quern_term_read(number), true);
    quern_query_iterator it = quern_query_iterate(whole);
    cr_assert(quern_query_next(&it));
    uint32_t visited[4], count = 0;
    QUERN_EACH_ROW(&it.view, row)
    {
        if (row == 4) continue;
        if (count == 4) break;
        visited[count++] = row;
    }
    const uint32_t expected[4] = {0, 2, 5, 6};
    cr_assert_arr_eq(visited, expected, sizeof expected);
    uint32_t selected_count = 0, all_count = 0;
    QUERN_EACH_ROW(&it.view, row)
    selected_count += row < it.view.count;
    cr_assert_eq(selected_count, it.view.count - 2);
    for (it = quern_query_iterate(split); quern_query_next(&it);)
        QUERN_EACH_ROW(&it.view, row)
        {
            cr_assert_lt(row, it.view.count);
            all_count++;
        }
    cr_assert_eq(all_count, quern_query_count(split), "other views have all rows");
}

Test(toggles, several_terms_each_exclude_rows)
{
    random_source random = {5};
    bool other_disabled[ENTITIES] = {false};
    disable_some();
    for (uint32_t i = 1; i < ENTITIES; i += 2)
        if (random_chance(&random, 40)) {
            must(quern_entity_set_component_enabled(world, entities[i], other, false));
            other_disabled[i] = true;
        }
    quern_query *query = setup_query(
        world, (quern_term[]){quern_term_read(number), quern_term_if_disabled(quern_term_with(other))}, 2);
    bool seen[ENTITIES] = {false};
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
        see(&it.view, seen);
    for (uint32_t i = 0; i < ENTITIES; i++)
        cr_assert_eq(seen[i], !is_disabled[i] && other_disabled[i]);
}

typedef struct shared_look {
    bool seen[ENTITIES];
    _Atomic uint32_t count;
} shared_look;

static void look_in_parallel(quern_context *context, const quern_view *view)
{
    shared_look *look = quern_context_user_data(context);
    look->count += see(view, look->seen);
}

Test(toggles, parallel_queries_select_the_same_rows)
{
    disable_some();
    for (uint32_t whole_chunks = 0; whole_chunks < 2; whole_chunks++) {
        quern_query *query = query_of(quern_term_read(number), whole_chunks);
        shared_look look = {.count = 0};
        must(quern_query_parallel_for(query, NULL, look_in_parallel, &look));
        for (uint32_t i = 0; i < ENTITIES; i++)
            cr_assert_eq(look.seen[i], !is_disabled[i]);
        quern_query_destroy(query);
    }
}

Test(toggles, combine_with_up_terms)
{
    quern_relation parent = make_relation(world, .name = "parent");
    bool has_value[ENTITIES] = {false};
    for (uint32_t i = 10; i < ENTITIES; i++) {
        must(quern_entity_relate(world, entities[i], parent, entities[i % 10]));
        has_value[i] = i % 2 == 1; /* entities with odd numbers have `other` */
    }
    disable_some();
    for (uint32_t whole_chunks = 0; whole_chunks < 2; whole_chunks++) {
        quern_query *query =
            make_query(world, .terms = {quern_term_read(number), quern_term_up(other, parent)},
                       .whole_chunks = whole_chunks);
        bool seen[ENTITIES] = {false};
        uint32_t count = 0;
        quern_query_iterator it = quern_query_iterate(query);
        while (quern_query_next(&it))
            count += see(&it.view, seen);
        must(it.result);
        cr_assert_eq(quern_query_count(query), count);
        if (whole_chunks == 0) assert_matches(query, entities, ENTITIES);
        for (uint32_t i = 0; i < ENTITIES; i++)
            cr_assert_eq(seen[i], has_value[i] && !is_disabled[i], "entity %u", i);
        shared_look look = {.count = 0};
        must(quern_query_parallel_for(query, NULL, look_in_parallel, &look));
        cr_assert_arr_eq(look.seen, seen, sizeof seen);
        quern_query_destroy(query);
    }
}

Test(toggles, tags_can_be_disabled_too)
{
    for (uint32_t i = 0; i < ENTITIES; i++)
        must(quern_entity_add(world, entities[i], tag, NULL));
    for (uint32_t i = 0; i < ENTITIES; i += 3) {
        must(quern_entity_set_component_enabled(world, entities[i], tag, false));
        is_disabled[i] = true;
    }
    quern_query *query =
        setup_query(world, (quern_term[]){quern_term_read(number), quern_term_with(tag)}, 2);
    uint32_t count = 0;
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
        for (uint32_t i = 0; i < it.view.count; i++, count++)
            cr_assert_neq(QUERN_COLUMN(&it.view, 0, const uint64_t)[i] % 3, 0u);
    cr_assert_eq(count, ENTITIES - ENTITIES / 3u);
}

/* --------------------------------------------------------------------------------------------- views */

Test(toggles, toggling_rows_of_a_view_keeps_its_ranges)
{
    disable_some();
    for (uint32_t whole_chunks = 0; whole_chunks < 2; whole_chunks++) {
        quern_query *query = query_of(quern_term_write(number), whole_chunks);
        bool seen[ENTITIES] = {false}, expected[ENTITIES];
        for (uint32_t i = 0; i < ENTITIES; i++)
            expected[i] = !is_disabled[i];
        for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);) {
            const uint64_t *numbers = QUERN_COLUMN(&it.view, 0, const uint64_t);
            quern_row_range run = {0};
            while (quern_view_next_range(&it.view, &run))
                for (uint32_t i = run.first; i < run.first + run.count; i++) {
                    seen[numbers[i]] = true;
                    if (numbers[i] % 5 > 1) continue;
                    cr_assert(quern_view_set_enabled(&it.view, 0, i, false));
                    is_disabled[numbers[i]] = true;
                    if (i + 1 < it.view.count && numbers[i] % 5 == 1) {
                        const bool was = quern_view_is_enabled(&it.view, 0, i + 1);
                        /* the row is still visited */
                        cr_assert(quern_view_set_enabled(&it.view, 0, i + 1, false));
                        cr_assert(quern_view_set_enabled(&it.view, 0, i + 1, was));
                    }
                }
        }
        cr_assert_arr_eq(seen, expected, sizeof seen);
        assert_valid(world);
        check_query(quern_term_read(number), whole_chunks, true, false);
        quern_query_destroy(query);
    }
}

Test(toggles, count_as_changes_of_the_component)
{
    quern_query *changed = setup_query(
        world, (quern_term[]){quern_term_changed(quern_term_either(quern_term_read(number)))}, 1);
    quern_query *writer = setup_query(world, (quern_term[]){quern_term_write(number)}, 1);
    quern_query_iterator it = quern_query_iterate(changed);
    while (quern_query_next(&it)) {
    }
    it = quern_query_iterate(changed);
    cr_assert_not(quern_query_next(&it));
    disable(4);
    it = quern_query_iterate(changed);
    cr_assert(quern_query_next(&it));
    cr_assert_not(quern_query_next(&it));
    it = quern_query_iterate(writer);
    cr_assert(quern_query_next(&it));
    cr_assert(quern_view_set_enabled(&it.view, 0, 0, false));
    it = quern_query_iterate(changed);
    cr_assert(quern_query_next(&it));
    must(quern_commands_set_component_enabled(quern_world_commands(world), entities[1], number, false));
    must(quern_world_flush(world));
    it = quern_query_iterate(changed);
    cr_assert(quern_query_next(&it));
}

/* -------------------------------------------------------------------------------------------- entities */

Test(toggles, disabled_state_moves_with_the_entity_and_resets_with_the_component)
{
    disable(7);
    must(quern_entity_add(world, entities[7], solid, NULL));
    cr_assert_not(quern_entity_is_component_enabled(world, entities[7], number));
    cr_assert_eq(*(const uint64_t *)quern_entity_get(world, entities[7], number), 7u);
    must(quern_entity_set(world, entities[7], number, &(uint64_t){8}));
    cr_assert_not(quern_entity_is_component_enabled(world, entities[7], number), "a value is no switch");
    must(quern_entity_remove(world, entities[7], number));
    cr_assert_not(quern_entity_is_component_enabled(world, entities[7], number), "it has none");
    must(quern_entity_add(world, entities[7], number, NULL));
    cr_assert(quern_entity_is_component_enabled(world, entities[7], number));
    cr_assert(quern_entity_is_component_enabled(world, entities[7], solid));
    cr_assert(quern_entity_has(world, entities[7], number));
    assert_valid(world);
}

Test(toggles, affect_the_world_hash_only_where_a_component_is_disabled)
{
    const uint64_t before = quern_world_hash(world);
    disable(3);
    const uint64_t with_one = quern_world_hash(world);
    cr_assert_neq(with_one, before);
    must(quern_entity_set_component_enabled(world, entities[3], number, true));
    cr_assert_eq(quern_world_hash(world), before);
    must(quern_entity_set_component_enabled(world, entities[1], number, false));
    cr_assert_neq(quern_world_hash(world), with_one);
}

/* -------------------------------------------------------------------------------------------- commands */

/* The result of a few commands on one entity that has no number, an enabled one, or a disabled one. */
typedef enum step { ADD, SET, REMOVE, ENABLE, DISABLE, STEPS } step;

static void record_step(quern_commands *commands, quern_entity entity, step what)
{
    const uint64_t value = 5;
    switch (what) {
    case ADD:
        must(quern_commands_add(commands, entity, number, NULL));
        break;
    case SET:
        must(quern_commands_set(commands, entity, number, &value));
        break;
    case REMOVE:
        must(quern_commands_remove(commands, entity, number));
        break;
    case ENABLE:
    case DISABLE:
    case STEPS:
        must(quern_commands_set_component_enabled(commands, entity, number, what == ENABLE));
        break;
    }
}

static void play_step(step what, bool *has, bool *disabled)
{
    if (what == ADD || what == SET) *has = true;
    if (what == REMOVE) *has = *disabled = false;
    if (what == ENABLE || what == DISABLE) *disabled = *has && what == DISABLE;
}

/* All sequences of four commands, each on three existing entities and one that is created. */
Test(toggles, commands_have_the_same_result_as_single_calls)
{
    enum { LENGTH = 4, COUNT = STEPS * STEPS * STEPS * STEPS, STATES = 4 };
    static quern_entity subjects[COUNT][STATES];
    for (uint32_t i = 0; i < COUNT; i++)
        for (uint32_t state = 0; state < STATES - 1; state++) {
            subjects[i][state] =
                setup_entity_with(world, (quern_component[]){solid, number}, 1 + (state > 0));
            if (state == 2) must(quern_entity_set_component_enabled(world, subjects[i][2], number, false));
        }
    quern_commands *commands = quern_world_commands(world);
    for (uint32_t i = 0; i < COUNT; i++) {
        const quern_entity made = record_entity_with(commands, &solid, NULL, 1);
        uint32_t rest = i;
        for (uint32_t k = 0; k < LENGTH; k++, rest /= STEPS) {
            for (uint32_t state = 0; state < STATES - 1; state++)
                record_step(commands, subjects[i][state], (step)(rest % STEPS));
            record_step(commands, made, (step)(rest % STEPS));
        }
    }
    /* created entities get the slots after all others, in order */
    const uint32_t first_slot = quern_entity_index(subjects[COUNT - 1][2]) + 1;
    must(quern_world_flush(world));
    assert_valid(world);
    quern_query *all = setup_query(world, (quern_term[]){quern_term_with(solid)}, 1);
    for (quern_query_iterator it = quern_query_iterate(all); quern_query_next(&it);)
        for (uint32_t i = 0; i < it.view.count; i++) {
            const uint32_t slot = quern_entity_index(it.view.entities[i]);
            if (slot >= first_slot) subjects[slot - first_slot][3] = it.view.entities[i];
        }
    for (uint32_t i = 0; i < COUNT; i++)
        for (uint32_t state = 0; state < STATES; state++) {
            bool has = state == 1 || state == 2, disabled = state == 2;
            uint32_t rest = i;
            for (uint32_t k = 0; k < LENGTH; k++, rest /= STEPS)
                play_step((step)(rest % STEPS), &has, &disabled);
            cr_assert_eq(quern_entity_has(world, subjects[i][state], number), has);
            cr_assert_eq(quern_entity_is_component_enabled(world, subjects[i][state], number),
                         has && !disabled, "sequence %u, state %u", i, state);
        }
}

/* --------------------------------------------------------------------------------------------- prefabs */

/* The child has the tag disabled, and the root another component. */
Test(toggles, are_captured_with_a_tree_and_spawned_by_calls_and_commands)
{
    const quern_component both[] = {number, tag};
    const quern_entity root = setup_entity_with(world, both, 2), child = setup_entity_with(world, both, 2);
    must(quern_entity_relate(world, child, quern_world_parent(world), root));
    must(quern_entity_set_component_enabled(world, root, number, false));
    must(quern_entity_set_component_enabled(world, child, tag, false));
    quern_prefab prefab;
    must(quern_prefab_capture(world, root, &prefab));
    must(quern_entity_destroy(world, root));
    enum { CALLS = 300 };
    for (uint32_t i = 0; i < CALLS; i++)
        must(quern_prefab_spawn(world, prefab, NULL, NULL));
    must(quern_commands_spawn(quern_world_commands(world), prefab, NULL, NULL));
    must(quern_world_flush(world));
    assert_valid(world);
    quern_query *roots = setup_query(
        world, (quern_term[]){quern_term_if_disabled(quern_term_with(number)), quern_term_with(tag)}, 2);
    quern_query *children = setup_query(
        world, (quern_term[]){quern_term_with(number), quern_term_if_disabled(quern_term_with(tag))}, 2);
    cr_assert_eq(quern_query_count(roots), CALLS + 1u);
    cr_assert_eq(quern_query_count(children), CALLS + 1u);
}

/* ---------------------------------------------------------------------------------------------- refused */

Test(toggles_refused, registering_with_another_toggle_flag)
{
    quern_component component;
    const quern_component_def def = {.name = "number", .size_bytes = 8, .alignment_bytes = 8};
    must_refuse(LAYOUT_MISMATCH, world, quern_component_register(world, &def, &component));
}

Test(toggles_refused, calls_on_components_that_cannot_be_disabled)
{
    const quern_entity entity = entities[0];
    must(quern_entity_add(world, entity, solid, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_set_component_enabled(world, entity, solid, false));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_set_component_enabled(world, entity, other, false));
    must_refuse(NULL_ENTITY, world,
                quern_entity_set_component_enabled(world, quern_entity_null(), number, false));
    assert_refused(
        world, QUERN_ERROR_UNKNOWN_COMPONENT,
        quern_entity_set_component_enabled(world, entity, component_unregistered(number), false));
    must_refuse(NULL_ARGUMENT, world, quern_entity_set_component_enabled(NULL, entity, number, false));
    assert_refused_value(world, quern_entity_is_component_enabled(world, quern_entity_null(), number));
    quern_commands *commands = quern_world_commands(world);
    must_refuse(INVALID_ARGUMENT, world,
                quern_commands_set_component_enabled(commands, entity, solid, false));
    must_refuse(NULL_ARGUMENT, world, quern_commands_set_component_enabled(NULL, entity, number, false));
}

static void refuse_term(quern_term term, quern_result expected)
{
    quern_query *query;
    const quern_query_def def = {.terms = {term}};
    assert_refused(world, expected, quern_query_create(world, &def, &query));
}

Test(toggles_refused, terms_for_components_that_cannot_be_disabled)
{
    refuse_term(quern_term_if_disabled(quern_term_with(solid)), QUERN_ERROR_INVALID_ARGUMENT);
    refuse_term(quern_term_if_disabled(quern_term_write(solid)), QUERN_ERROR_INVALID_ARGUMENT);
    refuse_term(quern_term_if_disabled(quern_term_optional(number, QUERN_ACCESS_READ)),
                QUERN_ERROR_INVALID_ARGUMENT);
    refuse_term(quern_term_if_disabled(quern_term_up(number, quern_world_parent(world))),
                QUERN_ERROR_INVALID_ARGUMENT);
    quern_term term = quern_term_read(number);
    term.enabled = (quern_term_enabled)7;
    refuse_term(term, QUERN_ERROR_INVALID_ARGUMENT);
}

Test(toggles_refused, bulk_calls_on_queries_that_select_single_rows)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    must_refuse(INVALID_ARGUMENT, world, quern_entity_destroy_matching(query, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_entity_add_matching(query, solid, NULL, NULL));
    quern_query *either = setup_query(world, (quern_term[]){quern_term_either(quern_term_read(number))}, 1);
    disable(0);
    must(quern_entity_add_matching(either, solid, NULL, NULL));
    cr_assert_not(quern_entity_is_component_enabled(world, entities[0], number));
    assert_valid(world);
    must(quern_entity_destroy_matching(either, NULL));
    assert_valid(world);
}

Test(toggles_refused, rows_and_terms_out_of_range)
{
    must(quern_entity_add(world, entities[0], solid, NULL));
    quern_query *query = setup_query(world,
                                     (quern_term[]){quern_term_read(number), quern_term_write(solid),
                                                    quern_term_optional(other, QUERN_ACCESS_WRITE)},
                                     3);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    assert_refused_value(world, quern_view_set_enabled(&it.view, 0, 0, false));
    assert_refused_value(world, quern_view_set_enabled(&it.view, 1, 0, false));
    assert_refused_value(world, quern_view_set_enabled(&it.view, 2, 0, false));
    assert_refused_value(world, quern_view_set_enabled(&it.view, 1, it.view.count, false));
    assert_refused_value(world, quern_view_set_enabled(&it.view, 3, 0, false));
    assert_refused_value(world, quern_view_is_enabled(&it.view, 3, 0));
    assert_refused_value(world, quern_view_is_enabled(&it.view, UINT32_MAX, 0));
    assert_refused_value(world, quern_view_is_enabled(&it.view, 0, it.view.count));
    cr_assert(quern_view_is_enabled(&it.view, 0, 0));
    cr_assert(quern_view_is_enabled(&it.view, 1, 0));
    cr_assert_not(quern_view_is_enabled(&it.view, 2, 0));
}
