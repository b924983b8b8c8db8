/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/query/query_internal.h"
#include "core/storage/change.h"
#include "tests/core/reactions/reaction_scene.h"

/* Copies of values of removed rows, blocks that are taken and put back, archetypes with subscriptions. */

TestSuite(reaction_values, .init = open_world, .fini = close_world);

/* ---------------------------------------------------------------------------------------- values */

Test(reaction_values, removed_values_with_hooks_are_copied_and_destroyed_after_the_run)
{
    const quern_term terms[] = {quern_term_read(tracked_component), quern_term_read(number)};
    reacting values = reacting_begin(world, ALL_KINDS, terms, 2);
    quern_entity entities[MANY];
    create_many_old(entities, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        tracked value;
        tracked_construct(&value, i, &counts);
        must(quern_entity_add(world, entities[i], tracked_component, &value));
        tracked_destroy(&value, &counts);
    }
    reacting_look(&values);
    cr_assert_eq(values.count, MANY);
    for (uint32_t i = MANY; i-- > 0;)
        must(i % 3 == 0 ? quern_commands_remove(commands(), entities[i], number)
                        : quern_commands_destroy(commands(), entities[i]));
    flush();
    reacting_look(&values);
    cr_assert_eq(values.count, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert(quern_entity_equal(values.rows[i].entity, entities[i]));
        cr_assert(tracked_is_live(values.rows[i].values[0]));
        cr_assert_eq(((const tracked *)values.rows[i].values[0])->payload, i);
        cr_assert_eq(*(const uint64_t *)values.rows[i].values[1], i);
    }
    const uint64_t living = (MANY + 2) / 3;
    cr_assert_eq(tracked_live_count(&counts), living + MANY);
    reacting_done(&values);
    cr_assert_eq(tracked_live_count(&counts), living);
    must(quern_entity_remove(world, entities[0], tracked_component));
    must(quern_entity_add(world, entities[3], number, NULL));
    must(quern_entity_destroy(world, entities[3]));
    reacting_look(&values);
    cr_assert_eq(values.count, 0u, "neither matched when they were looked at");
    reacting_end(&values);
}

Test(reaction_values, types_without_copy_hook_are_refused)
{
    atomic_llong live_count = 0;
    const quern_component boxed = owned_register(world, "boxed", &live_count);
    quern_query *query = setup_query(world, (const quern_term[]){quern_term_read(boxed)}, 1);
    quern__reaction_def def = {.kinds = QUERN_REACT_REMOVED,
                               .terms = query->terms,
                               .term_count = 1,
                               .matches = quern__query_matches,
                               .query = query};
    quern__reaction *reaction;
    must_refuse(INVALID_ARGUMENT, world, quern__reaction_add(&world->storage, &def, &reaction));
    cr_assert_not_null(strstr(quern_error_message(), "boxed"));
    def.kinds = QUERN_REACT_ADDED | QUERN_REACT_SET;
    must(quern__reaction_add(&world->storage, &def, &reaction));
    quern__reaction_remove(&world->storage, reaction);
    quern_query_destroy(query);
    reacting with = react(ALL_KINDS, quern_term_with(boxed));
    reacting_end(&with);
}

/* ------------------------------------------------------------------------------- what is taken, and back */

enum { GONE = 1300 }; /* number of removed entities: more than two blocks of copies */

static quern_entity gone[GONE];
static reacting_row rows_before[4 * GONE];

/* Creates the entities to remove. Half of them have another component, so they are in two archetypes. */
static void create_gone(void)
{
    for (uint64_t i = 0; i < GONE; i++)
        must(quern_entity_create_with(world, (quern_component[]){number, other}, (const void *[]){&i, NULL},
                                      1 + i % 2, &gone[i]));
    reacting_look(&told);
    cr_assert_eq(told.count, (uint32_t)GONE);
    reacting_done(&told);
}

static void destroy_gone(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++)
        must(quern_entity_destroy(world, gone[i]));
}

/* Takes the pending changes, puts them back, and checks that the same changes are reported again. */
static void expect_again(uint32_t count)
{
    expect(count);
    cr_assert_not(told.reaction->is_pending);
    memcpy(rows_before, told.rows, count * sizeof rows_before[0]);
    quern__reaction_put_back(&world->storage, told.reaction);
    cr_assert(told.reaction->is_pending && quern__reactions_are_pending(world->storage.reactions));
    expect(count);
    for (uint32_t i = 0; i < count; i++) {
        const reacting_row *was = &rows_before[i], *is = &told.rows[i];
        cr_assert(was->kind == is->kind && was->archetype == is->archetype &&
                  quern_entity_equal(was->entity, is->entity) && was->values[0] == is->values[0]);
    }
}

static uint32_t block_count(uint32_t i)
{
    return told.reaction->subscriptions.items[i]->removed.blocks.count;
}

Test(reaction_values, changes_that_are_put_back_are_reported_again)
{
    create_gone();
    for (uint64_t i = 0; i < 10; i++)
        must(quern_entity_set(world, gone[i], number, &i));
    for (uint64_t i = 0; i < MANY; i++)
        create(i);
    destroy_gone(100, GONE - 100);
    expect_again(GONE - 100 + MANY + 10);
    for (uint32_t i = 0; i < GONE - 100; i++) {
        const uint64_t value = *(const uint64_t *)told.rows[i].values[0];
        cr_assert(told.rows[i].kind == QUERN_REACT_REMOVED && value >= 100 && value < GONE);
        cr_assert(quern_entity_equal(told.rows[i].entity, gone[value]));
    }
    reacting_done(&told);
    quern__reaction_put_back(&world->storage, told.reaction);
    cr_assert_not(told.reaction->is_pending, "nothing is left to put back");
    expect(0);
}

Test(reaction_values, later_copies_are_reported_after_those_put_back)
{
    create_gone();
    destroy_gone(0, 50);
    expect(50);
    quern__reaction_put_back(&world->storage, told.reaction);
    destroy_gone(50, GONE - 50);
    expect(GONE);
    uint64_t last[2] = {0};
    for (uint32_t i = 0; i < GONE; i++) {
        const uint64_t value = *(const uint64_t *)told.rows[i].values[0];
        cr_assert(value >= last[value % 2], "in the order in which they went");
        last[value % 2] = value;
    }
    reacting_done(&told);
}

Test(reaction_values, number_of_kept_blocks_is_that_of_the_last_run)
{
    create_gone();
    destroy_gone(0, GONE - 20);
    expect(GONE - 20);
    cr_assert(block_count(0) == 0 && told.reaction->subscriptions.items[0]->taken_block_count >= 2);
    reacting_done(&told);
    cr_assert(block_count(0) >= 2 && told.reaction->subscriptions.items[0]->taken_block_count == 0);
    const uint64_t calls = failing_allocator_call_count(memory);
    destroy_gone(GONE - 20, 10);
    expect(10);
    reacting_done(&told);
    cr_assert_eq(failing_allocator_call_count(memory), calls, "old blocks are used again");
    cr_assert(block_count(0) == 1 && block_count(1) == 1);
}

Test(reaction_values, dropping_destroys_copies_of_one_reaction_only)
{
    reacting beside = react(ALL_KINDS, quern_term_read(number));
    create_gone();
    destroy_gone(0, GONE - 20);
    for (uint64_t i = GONE - 20; i < GONE; i++)
        must(quern_entity_set(world, gone[i], number, &i));
    quern__reaction_drop(&world->storage, told.reaction);
    cr_assert_not(told.reaction->is_pending);
    cr_assert(quern__reactions_are_pending(world->storage.reactions), "the other one still is");
    expect(0);
    cr_assert_eq(told.reaction->subscriptions.items[0]->removed.count, 0);
    reacting_look(&beside);
    cr_assert_eq(beside.count, 20u, "those that came and went before a look were never told of");
    reacting_done(&beside);
    cr_assert_not(quern__reactions_are_pending(world->storage.reactions));
    reacting_end(&beside);
}

/* ------------------------------------------------------------------------------------ archetypes */

Test(reaction_values, archetype_is_kept_until_its_removed_rows_were_reported)
{
    const quern_entity entity = create_old(6);
    must(quern_entity_destroy(world, entity));
    must(quern_world_remove_empty_archetypes(world, NULL));
    expect_one(QUERN_REACT_REMOVED, entity);
    must(quern_world_remove_empty_archetypes(world, NULL));
    cr_assert_eq(*(const uint64_t *)told.rows[0].values[0], 6u, "they are being looked at");
    reacting_done(&told);
    uint32_t count;
    must(quern_world_remove_empty_archetypes(world, &count));
    cr_assert_eq(count, 1u);
    cr_assert_eq(told.reaction->subscriptions.count, 0u);
    expect_one(QUERN_REACT_ADDED, create(1));
}

Test(reaction_values, single_calls_use_the_fast_path_again_without_removed_reactions)
{
    const quern_entity entity = create_old(1);
    const quern__archetype *archetype = quern__storage_archetype_of(
        &world->storage, quern__entities_find(&world->storage.entities, entity));
    cr_assert_not(archetype->has_fast_leave);
    reacting_end(&told);
    cr_assert(archetype->has_fast_leave);
    cr_assert_not(archetype->tracks_changes);
    reacting added = react(QUERN_REACT_ADDED | QUERN_REACT_SET, quern_term_read(number));
    cr_assert(archetype->has_fast_leave);
    cr_assert(archetype->tracks_changes);
    must(quern_entity_add(world, entity, other, NULL)); /* creates an edge */
    must(quern_entity_remove(world, entity, other));
    must(quern_entity_add(world, entity, other, NULL));
    must(quern_entity_remove(world, entity, other));
    told = react(ALL_KINDS, quern_term_without(other)); /* removes the old edges */
    must(quern_entity_add(world, entity, other, NULL));
    expect(1);
    cr_assert_not_null(reacting_find(&told, QUERN_REACT_REMOVED, entity));
    reacting_end(&added);
}
