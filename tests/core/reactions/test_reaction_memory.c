/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/query/query_internal.h"
#include "tests/core/reactions/reaction_scene.h"

/* Reactions when out of memory. */

/* A change that may allocate. Half of the world's entities are in archetypes of several chunks. */
typedef quern_result change(void);

static quern_entity listed[MANY];
static quern_query *with_number;

static quern_result destroy_one(void)
{
    return quern_entity_destroy(world, listed[3]);
}

static quern_result remove_one(void)
{
    return quern_entity_remove(world, listed[3], number);
}

static quern_result destroy_listed(void)
{
    return quern_entity_destroy_many(world, listed, MANY);
}

static quern_result destroy_matches(void)
{
    return quern_entity_destroy_matching(with_number, NULL);
}

static quern_result remove_matches(void)
{
    return quern_entity_remove_matching(with_number, number, NULL);
}

static quern_result destroy_tree(void)
{
    return quern_entity_destroy(world, listed[0]);
}

static quern_result unrelate_matches(void)
{
    return quern_entity_remove_matching(with_number, quern_relation_component(quern_world_parent(world)),
                                        NULL);
}

static quern_result switch_off(void)
{
    return quern_entity_set_enabled(world, listed[0], false);
}

static quern_result play_commands(void)
{
    return quern_world_flush(world);
}

/* Creates entities and reports them to the reactions. makes_tree: the first entity is an ancestor of all others. */
static void fill_world(bool makes_tree)
{
    const quern_component components[] = {number, big, tracked_component};
    must(quern_entity_create_many(world, components, NULL, 3, MANY, listed));
    for (uint32_t i = 1; makes_tree && i < MANY; i++)
        must(quern_entity_relate(world, listed[i], quern_world_parent(world), listed[(i - 1) / 4]));
    with_number = setup_query(world, (const quern_term[]){quern_term_with(number)}, 1);
}

static void record_mixed(void)
{
    for (uint32_t i = 0; i < MANY; i++)
        must(i % 2 == 0   ? quern_commands_destroy(commands(), listed[i])
             : i % 4 == 1 ? quern_commands_remove(commands(), listed[i], number)
                          : quern_commands_set(commands(), listed[i], number, &(uint64_t){i}));
}

static void record_destroy_and_create(void)
{
    for (uint32_t i = 0; i < MANY; i += 3)
        must(quern_commands_destroy(commands(), listed[i]));
}

/* Lets the n-th allocation of a change fail, n = 1, 2, 3, ..., until the change succeeds. Each failure must change
 * nothing, and the success everything. */
static void assert_whole_or_not_at_all(change *make, bool makes_tree, void (*record)(void),
                                       uint32_t expected_count)
{
    bool has_failed = true;
    uint64_t tried = 0;
    for (uint64_t n = 1; has_failed; n++, tried++) {
        open_world();
        const quern_term terms[] = {quern_term_read(number),
                                    quern_term_optional(tracked_component, QUERN_ACCESS_READ),
                                    quern_term_old(number)};
        reacting values = reacting_begin(world, ALL_KINDS, terms, 3);
        fill_world(makes_tree);
        if (record != NULL) record();
        reacting_look(&values);
        quern__reaction_finish(&world->storage, values.reaction);
        quern__reaction_drop(&world->storage, told.reaction);
        const uint64_t hash = quern_world_hash(world);
        failing_allocator_fail_at(memory, n);
        const quern_result result = make();
        has_failed = result != QUERN_OK;
        if (has_failed) {
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            cr_assert_eq(quern_world_hash(world), hash);
            assert_valid(world);
            cr_assert_not(quern__reactions_are_pending(world->storage.reactions));
            must(make());
        }
        failing_allocator_fail_at(memory, 1);
        while (quern__reaction_take(&world->storage, values.reaction) != QUERN_OK)
            failing_allocator_fail_at(memory, 2);
        failing_allocator_heal(memory);
        quern__reaction_finish(&world->storage, values.reaction);
        reacting_look(&told);
        cr_assert_eq(told.count, expected_count, "%u of %u rows", told.count, expected_count);
        reacting_end(&values);
        quern_query_destroy(with_number);
        close_world();
    }
    cr_assert_gt(tried, 2u);
}

Test(reaction_memory, single_calls)
{
    assert_whole_or_not_at_all(destroy_one, false, NULL, 1);
    assert_whole_or_not_at_all(remove_one, false, NULL, 1);
}

Test(reaction_memory, calls_for_many)
{
    assert_whole_or_not_at_all(destroy_listed, false, NULL, MANY);
    assert_whole_or_not_at_all(destroy_matches, false, NULL, MANY);
    assert_whole_or_not_at_all(remove_matches, false, NULL, MANY);
}

Test(reaction_memory, trees)
{
    assert_whole_or_not_at_all(destroy_tree, true, NULL, MANY);
    assert_whole_or_not_at_all(destroy_matches, true, NULL, MANY);
    assert_whole_or_not_at_all(switch_off, true, NULL, MANY);
    assert_whole_or_not_at_all(unrelate_matches, true, NULL, 0);
}

Test(reaction_memory, sync_points)
{
    assert_whole_or_not_at_all(play_commands, false, record_mixed, MANY);
    assert_whole_or_not_at_all(play_commands, false, record_destroy_and_create, (MANY + 2) / 3);
}

Test(reaction_memory, adding_a_reaction)
{
    bool has_failed = true;
    uint64_t n = 1;
    open_world();
    fill_world(false);
    setup_entity_with(world, (const quern_component[]){number, tag}, 2);
    quern_query *query = setup_query(world, (const quern_term[]){quern_term_read(number)}, 1);
    const quern_term terms[] = {query->terms[0], quern_term_old(number)};
    const quern__reaction_def def = {.kinds = ALL_KINDS | QUERN_REACT_PRESENT,
                                     .terms = terms,
                                     .term_count = 2,
                                     .matches = quern__query_matches,
                                     .query = query};
    for (; has_failed; n++) {
        quern__reaction *reaction;
        failing_allocator_fail_at(memory, n);
        has_failed = quern__reaction_add(&world->storage, &def, &reaction) != QUERN_OK;
        failing_allocator_heal(memory);
        assert_valid(world);
        cr_assert_eq(world->storage.reactions->count, has_failed ? 1u : 2u);
        if (!has_failed) quern__reaction_remove(&world->storage, reaction);
    }
    cr_assert_gt(n, 5u);
    quern_query_destroy(query);
    quern_query_destroy(with_number);
    close_world();
}

Test(reaction_memory, creating_an_archetype)
{
    bool has_failed = true;
    uint64_t n = 1;
    open_world();
    const quern_entity entity = create_old(1);
    reacting old = react(QUERN_REACT_SET, quern_term_old(number));
    for (; has_failed; n++) {
        failing_allocator_fail_at(memory, n);
        has_failed = quern_entity_add(world, entity, other, NULL) != QUERN_OK;
        failing_allocator_heal(memory);
        assert_valid(world);
        cr_assert_eq(told.reaction->subscriptions.count, world->storage.archetypes.count - 1);
    }
    cr_assert_gt(n, 5u);
    expect(0);
    reacting_end(&old);
    close_world();
}

Test(reaction_memory, creating_rows_with_old_values)
{
    bool has_failed = true;
    uint64_t n = 1;
    quern_entity entities[MANY];
    open_world();
    reacting old = react(QUERN_REACT_SET, quern_term_old(number));
    for (; has_failed; n++) {
        failing_allocator_fail_at(memory, n);
        has_failed = quern_entity_create_many(world, (const quern_component[]){number, big}, NULL, 2, MANY,
                                              entities) != QUERN_OK;
        failing_allocator_heal(memory);
        assert_valid(world);
    }
    cr_assert_gt(n, 5u);
    for (uint64_t i = 0; i < MANY; i++)
        must(quern_entity_set(world, entities[i], number, &i));
    reacting_look(&old);
    cr_assert_eq(old.count, (uint32_t)MANY);
    reacting_end(&old);
    close_world();
}

/* The bits of rows grow before the slots of chunks do, and keep the larger size if the slots find no memory. */
Test(reaction_memory, adding_a_reaction_after_rows_found_no_memory)
{
    bool has_failed = true;
    uint32_t larger_count = 0;
    for (uint64_t n = 1; has_failed; n++) {
        quern_entity entities[MANY];
        open_world();
        must(quern_entity_create_with(world, (const quern_component[]){number, big}, NULL, 2, NULL));
        const quern__archetype *archetype =
            world->storage.archetypes.items[world->storage.archetypes.count - 1];
        failing_allocator_fail_at(memory, n);
        has_failed = quern_entity_create_many(world, (const quern_component[]){number, big}, NULL, 2, MANY,
                                              entities) != QUERN_OK;
        failing_allocator_heal(memory);
        const uint32_t capacity = archetype->row_bits->slot_capacity;
        larger_count += capacity > archetype->slot_capacity;
        reacting added = react(QUERN_REACT_ADDED, quern_term_read(big));
        cr_assert_geq(archetype->row_bits->slot_capacity, capacity);
        assert_valid(world);
        expect(has_failed ? 1 : 1 + MANY);
        reacting_end(&added);
        close_world();
    }
    cr_assert_gt(larger_count, 0u);
}
