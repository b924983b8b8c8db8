/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/reactions/reaction_scene.h"

/* The changes reported to reactions, one by one. */

TestSuite(reaction, .init = open_world, .fini = close_world);

Test(reaction, created_entity_is_reported_once_as_added)
{
    const quern_entity entity = create(1);
    cr_assert(quern__reactions_are_pending(world->storage.reactions));
    expect_one(QUERN_REACT_ADDED, entity);
    cr_assert_not(quern__reactions_are_pending(world->storage.reactions));
    expect(0);
}

Test(reaction, entities_that_do_not_match_are_not_reported)
{
    const quern_entity entity = setup_entity_with(world, &other, 1);
    must(quern_entity_add(world, entity, tag, NULL));
    must(quern_entity_set(world, entity, other, &(uint64_t){4}));
    must(quern_entity_destroy(world, entity));
    cr_assert_not(quern__reactions_are_pending(world->storage.reactions));
    expect(0);
}

Test(reaction, entity_added_and_removed_between_runs_is_not_reported)
{
    must(quern_entity_destroy(world, create(1)));
    expect(0);
    const quern_entity entity = create(2);
    must(quern_entity_remove(world, entity, number));
    expect(0);
}

Test(reaction, entity_removed_and_added_again_is_reported_twice)
{
    const quern_entity entity = create_old(3);
    must(quern_entity_remove(world, entity, number));
    must(quern_entity_add(world, entity, number, &(uint64_t){4}));
    expect(2);
    cr_assert_eq(told.rows[0].kind, QUERN_REACT_REMOVED);
    cr_assert_eq(*(const uint64_t *)told.rows[0].values[0], 3u);
    cr_assert_eq(told.rows[1].kind, QUERN_REACT_ADDED);
    cr_assert(quern_entity_equal(told.rows[1].entity, entity));
    reacting_done(&told);

    must(quern_entity_remove(world, entity, number));
    must(quern_entity_add(world, entity, number, &(uint64_t){5}));
    must(quern_entity_destroy(world, entity)); /* its second addition was not reported */
    expect_gone(entity, 4);
}

Test(reaction, set_value_is_reported_once)
{
    const quern_entity entity = create_old(1), still = create_old(2);
    must(quern_entity_set(world, entity, number, &(uint64_t){7}));
    must(quern_entity_set(world, entity, number, &(uint64_t){8}));
    expect_one(QUERN_REACT_SET, entity);
    must(quern_entity_mark_changed(world, still, number));
    expect_one(QUERN_REACT_SET, still);
}

Test(reaction, values_of_an_added_entity_are_not_reported_as_set)
{
    const quern_entity entity = create(1);
    must(quern_entity_set(world, entity, number, &(uint64_t){7}));
    expect_one(QUERN_REACT_ADDED, entity);
}

Test(reaction, values_that_no_term_reads_are_not_reported)
{
    reacting with = react(ALL_KINDS, quern_term_with(number));
    const quern_entity entity = create_old(1);
    reacting_look(&with);
    cr_assert_eq(with.count, 1u);
    must(quern_entity_set(world, entity, number, &(uint64_t){7}));
    must(quern_entity_add(world, entity, other, NULL));
    reacting_look(&with);
    cr_assert_eq(with.count, 0u);
    must(quern_entity_destroy(world, entity));
    reacting_look(&with);
    cr_assert_eq(with.count, 1u, "it is told of, without values");
    cr_assert_null(with.rows[0].values[0]);
    reacting_end(&with);
}

Test(reaction, pending_bits_move_with_their_row)
{
    const quern_entity set = create_old(1), filler = create_old(2), added = create(3);
    must(quern_entity_set(world, set, number, &(uint64_t){9}));
    must(quern_entity_add(world, set, other, NULL));
    must(quern_entity_add(world, added, other, NULL));
    must(quern_entity_add(world, added, tag, NULL));
    must(quern_entity_destroy(world, filler));
    expect(3);
    cr_assert_not_null(reacting_find(&told, QUERN_REACT_SET, set));
    cr_assert_not_null(reacting_find(&told, QUERN_REACT_ADDED, added));
    cr_assert_not_null(reacting_find(&told, QUERN_REACT_REMOVED, filler));
}

Test(reaction, optional_value_that_is_added_is_reported_as_set)
{
    const quern_term terms[] = {quern_term_read(number), quern_term_optional(other, QUERN_ACCESS_READ)};
    reacting both = reacting_begin(world, ALL_KINDS, terms, 2);
    const quern_entity entity = create(1);
    reacting_look(&both);
    must(quern_entity_add(world, entity, other, NULL));
    reacting_look(&both);
    cr_assert_eq(both.count, 1u);
    cr_assert_eq(both.rows[0].kind, QUERN_REACT_SET);
    must(quern_entity_remove(world, entity, other));
    reacting_look(&both);
    cr_assert_eq(both.count, 0u, "nothing was given");
    reacting_end(&both);
}

Test(reaction, matching_by_exclusion_and_by_any)
{
    const quern_term terms[] = {quern_term_any(number, QUERN_ACCESS_READ),
                                quern_term_any(other, QUERN_ACCESS_READ), quern_term_without(tag)};
    reacting any = reacting_begin(world, ALL_KINDS, terms, 3);
    const quern_entity entity = create(1);
    reacting_look(&any);
    cr_assert_not_null(reacting_find(&any, QUERN_REACT_ADDED, entity));
    must(quern_entity_add(world, entity, tag, NULL));
    reacting_look(&any);
    cr_assert_eq(*(const uint64_t *)reacting_find(&any, QUERN_REACT_REMOVED, entity)->values[0], 1u);
    cr_assert_null(any.rows[0].values[1]);
    reacting_done(&any);
    must(quern_entity_add(world, entity, other, &(uint64_t){2}));
    must(quern_entity_remove(world, entity, number));
    must(quern_entity_remove(world, entity, tag));
    reacting_look(&any);
    cr_assert_eq(any.count, 1u);
    cr_assert_not_null(reacting_find(&any, QUERN_REACT_ADDED, entity));
    reacting_end(&any);
}

Test(reaction, each_kind_is_reported_to_reactions_that_request_it)
{
    reacting removed = react(QUERN_REACT_REMOVED, quern_term_read(number));
    reacting set = react(QUERN_REACT_SET, quern_term_read(number));
    reacting added = react(QUERN_REACT_ADDED, quern_term_read(number));
    const quern_entity entity = create(1);
    must(quern_entity_set(world, entity, number, &(uint64_t){2}));
    reacting_look(&added);
    cr_assert_eq(added.count, 1u);
    cr_assert_eq(added.rows[0].kind, QUERN_REACT_ADDED);
    reacting_look(&set);
    cr_assert_eq(set.count, 1u, "it matched before that call");
    cr_assert_eq(set.rows[0].kind, QUERN_REACT_SET);
    must(quern_entity_destroy(world, entity));
    reacting_look(&removed);
    cr_assert_eq(removed.count, 1u, "who does not ask for additions is told of each that goes");
    cr_assert_eq(removed.rows[0].kind, QUERN_REACT_REMOVED);
    reacting_look(&added);
    cr_assert_eq(added.count, 0u);
    reacting_end(&added);
    reacting_end(&set);
    reacting_end(&removed);
}

Test(reaction, present_entities_count_as_added_only_on_request)
{
    quern_entity entities[MANY];
    must(quern_entity_create_many(world, (const quern_component[]){number, big}, NULL, 2, MANY, entities));
    reacting late = react(ALL_KINDS, quern_term_read(number));
    reacting_look(&late);
    cr_assert_eq(late.count, 0u);
    must(quern_entity_destroy(world, entities[0]));
    reacting_look(&late);
    cr_assert_eq(late.count, 1u, "it has been there");
    reacting present = react(ALL_KINDS | QUERN_REACT_PRESENT, quern_term_read(number));
    reacting_look(&present);
    cr_assert_eq(present.count, MANY - 1u);
    for (uint32_t i = 1; i < MANY; i++)
        cr_assert_not_null(reacting_find(&present, QUERN_REACT_ADDED, entities[i]));
    reacting_end(&present);
    reacting_end(&late);
}

Test(reaction, removing_a_reaction_does_not_affect_others)
{
    reacting second = react(ALL_KINDS, quern_term_read(number));
    reacting third = react(ALL_KINDS, quern_term_read(number));
    const quern_entity entity = create(1);
    must(quern_entity_set(world, create_old(2), number, &(uint64_t){3}));
    must(quern_entity_destroy(world, create_old(4)));
    reacting_end(&second);
    reacting_look(&third);
    cr_assert_not_null(reacting_find(&third, QUERN_REACT_ADDED, entity));
    reacting fourth = react(ALL_KINDS, quern_term_read(number));
    cr_assert_eq(fourth.reaction->number, 1u, "the number of the one that went");
    reacting_look(&fourth);
    cr_assert_eq(fourth.count, 0u);
    reacting_end(&third);
    reacting_end(&fourth);
}

Test(reaction, dropped_changes_are_not_reported)
{
    const quern_entity old = create_old(1), set = create_old(2);
    create(3);
    must(quern_entity_set(world, set, number, &(uint64_t){3}));
    must(quern_entity_destroy(world, old));
    quern__reaction_drop(&world->storage, told.reaction);
    cr_assert_not(quern__reactions_are_pending(world->storage.reactions));
    expect(0);
}

Test(reaction, world_can_be_destroyed_with_pending_reactions)
{
    reacting values = react(ALL_KINDS, quern_term_read(tracked_component));
    const quern_entity entity = setup_entity_with(world, &tracked_component, 1);
    reacting_look(&values);
    must(quern_entity_destroy(world, entity));
    setup_entity_with(world, &tracked_component, 1);
    cr_assert_eq(tracked_live_count(&counts), 2u);
    quern__reaction_drop(&world->storage, values.reaction);
    reacting_end(&values);
}
