/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/query/query_internal.h"
#include "core/reactions/reaction.h"
#include "core/storage/change.h"
#include "core/world/world_internal.h"
#include "tests/core/reactions/reaction_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <string.h>

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

/* ---------------------------------------------------------------------------------------- removed rows */

/* Copies of rows, without a reaction. The value of a row is its number, from 0. */

enum { ROWS = 1700, COLUMNS = 2 };

static failing_allocator *memory;
static quern_allocator allocator;
static quern_world *world;
static tracked_counts counts;
static quern_entity entities[ROWS];
static const quern__archetype *archetype;
static quern__removed_column columns[COLUMNS];
static quern__removed copies;

static quern__removed_column column_at(uint32_t i)
{
    const quern__column *column = &archetype->columns[i];
    return (quern__removed_column){.type = quern__hooks_exist(&column->type->hooks) ? column->type : NULL,
                                   .source_offset_bytes = column->offset_bytes,
                                   .size_bytes = (uint16_t)column->size_bytes};
}

/* Creates the rows. has_hooks: they also have a value with hooks, which is copied, too. */
static void open_copies(bool has_hooks)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
    memset((void *)&counts, 0, sizeof counts);
    must(quern_world_create(NULL, &world));
    const quern_component types[COLUMNS] = {setup_component(world, "number", sizeof(uint64_t), 8),
                                            tracked_register(world, "tracked", &counts)};
    const uint32_t count = has_hooks ? 2 : 1;
    uint16_t indices[COLUMNS];
    for (uint64_t i = 0; i < ROWS; i++) {
        tracked value;
        tracked_construct(&value, i, &counts);
        must(quern_entity_create_with(world, types, (const void *[]){&i, &value}, count, &entities[i]));
        tracked_destroy(&value, &counts);
    }
    for (uint32_t i = 0; i < count; i++)
        indices[i] = (uint16_t)quern__component_index(types[i]);
    archetype = quern__storage_find_archetype(&world->storage, indices, count);
    cr_assert_not_null(archetype);
    copies = (quern__removed){.columns = columns, .column_count = count};
    for (uint32_t i = 0; i < count; i++)
        columns[i] = column_at(i);
    quern__removed_lay_out(&copies, archetype);
    cr_assert(archetype->chunk_count > 1 && ROWS > 3 * copies.block_rows, "several chunks and blocks");
}

static void close_copies(void)
{
    quern__removed_release(&copies, &allocator);
    quern_world_destroy(world);
    cr_assert_eq(tracked_live_count(&counts), 0);
    cr_assert_eq(counts.broken_count, 0);
    failing_allocator_close(memory);
}

/* Copies `count` rows from `first` on, chunk by chunk. */
static void copy_rows(uint32_t first, uint32_t count, bool orders_by_row)
{
    while (count > 0) {
        const quern__chunk_slot *slot = &archetype->slots[first / archetype->shape.row_capacity];
        const uint32_t row = first % archetype->shape.row_capacity;
        const uint32_t piece = count < slot->row_count - row ? count : slot->row_count - row;
        quern__removed_copy(&copies, quern__location_make(quern__slot_chunk(slot), row), piece,
                            orders_by_row);
        first += piece;
        count -= piece;
    }
}

static char *block_of(uint32_t i)
{
    return copies.blocks.items[i / copies.block_rows];
}

/* Checks that the i-th copy is that of the row. */
static void expect_copy(uint32_t i, uint32_t row)
{
    const uint32_t place = i % copies.block_rows;
    const quern_entity *handles = (const quern_entity *)(const void *)block_of(i);
    cr_assert_eq(handles[place].bits, entities[row].bits, "copy %u is not of row %u", i, row);
    uint64_t copied;
    memcpy(&copied, block_of(i) + columns[0].offset_bytes + (size_t)place * sizeof copied, sizeof copied);
    cr_assert_eq(copied, row);
    if (copies.column_count == 1) return;
    const tracked *value = &((const tracked *)(const void *)(block_of(i) + columns[1].offset_bytes))[place];
    cr_assert(tracked_is_live(value) && value->payload == row);
}

static void expect_copies(uint32_t first, uint32_t first_row, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        expect_copy(first + i, first_row + i);
}

static void reserve(uint64_t change, uint32_t count)
{
    cr_assert(quern__removed_reserve(&copies, &allocator, change, count));
}

/* ------------------------------------------------------------------------------------------- order */

/* Copies pieces of the rows from `first` on in random order, as several threads would. */
static void copy_shuffled(uint32_t first, uint32_t count, random_source *random)
{
    uint32_t begins[ROWS], lengths[ROWS], piece_count = 0;
    for (uint32_t done = 0; done < count; done += lengths[piece_count++]) {
        lengths[piece_count] = 1 + random_below(random, 200);
        if (lengths[piece_count] > count - done) lengths[piece_count] = count - done;
        begins[piece_count] = first + done;
    }
    for (; piece_count > 0; piece_count--) {
        const uint32_t pick = random_below(random, piece_count);
        copy_rows(begins[pick], lengths[pick], true);
        begins[pick] = begins[piece_count - 1];
        lengths[pick] = lengths[piece_count - 1];
    }
}

static void try_order(bool has_hooks, uint64_t seed)
{
    random_source random = {seed};
    const uint32_t part = 700 + random_below(&random, 200);
    open_copies(has_hooks);
    reserve(1, part);
    reserve(1, ROWS - part);
    copy_shuffled(0, ROWS, &random);
    cr_assert_eq(copies.count, (uint32_t)ROWS);
    cr_assert(quern__removed_sort(&copies, &allocator));
    expect_copies(0, 0, ROWS);
    reserve(2, 300); /* calls: in the order of copying */
    copy_rows(200, 100, false);
    copy_rows(0, 200, false);
    reserve(3, 500);
    copy_shuffled(100, 500, &random);
    cr_assert(quern__removed_sort(&copies, &allocator));
    expect_copies(0, 0, ROWS);
    expect_copies(ROWS, 200, 100);
    expect_copies(ROWS + 100, 0, 200);
    expect_copies(ROWS + 300, 100, 500);
    close_copies();
}

Test(removed, copies_are_sorted_by_change_and_row)
{
    for (uint64_t seed = 1; seed < 5; seed++) {
        try_order(false, seed);
        try_order(true, seed);
    }
}

Test(removed, copies_in_order_are_not_moved)
{
    open_copies(false);
    reserve(1, ROWS);
    copy_rows(0, ROWS, true);
    const char *first_block = copies.blocks.items[0];
    const uint64_t calls = failing_allocator_call_count(memory);
    cr_assert(quern__removed_sort(&copies, &allocator));
    cr_assert(copies.blocks.items[0] == first_block && failing_allocator_call_count(memory) == calls);
    expect_copies(0, 0, ROWS);
    close_copies();
}

/* The copy is in the last block, whose remaining rows are uninitialised. */
Test(removed, one_copy_out_of_order_is_sorted)
{
    open_copies(false);
    reserve(1, 3);
    copy_rows(0, 1, true);
    copy_rows(5, 1, true);
    copy_rows(2, 1, true);
    cr_assert(quern__removed_sort(&copies, &allocator));
    expect_copy(0, 0);
    expect_copy(1, 2);
    expect_copy(2, 5);
    close_copies();
}

/* The memory after the last copy contains the key of the row that would follow. */
Test(removed, cleared_copies_do_not_join_sequences)
{
    open_copies(false);
    reserve(1, 4);
    copy_rows(7, 3, true);
    copy_rows(2, 1, true);
    quern__removed_clear(&copies);
    reserve(2, 3);
    copy_rows(5, 1, true);
    copy_rows(0, 2, true);
    cr_assert(quern__removed_sort(&copies, &allocator));
    expect_copies(0, 0, 2);
    expect_copy(2, 5);
    close_copies();
}

/* ------------------------------------------------------------------------------------------- blocks */

Test(removed, reserved_memory_adds_up_within_a_change_and_is_reused_by_the_next)
{
    open_copies(false);
    const uint32_t rows = copies.block_rows;
    reserve(1, rows - 1);
    cr_assert_eq(copies.blocks.count, 1);
    reserve(1, 1);
    cr_assert_eq(copies.blocks.count, 1);
    reserve(1, 1);
    cr_assert_eq(copies.blocks.count, 2);
    copy_rows(0, 10, true);
    reserve(2, 2 * rows - 10); /* reuses the memory that the first change has not used */
    cr_assert_eq(copies.blocks.count, 2);
    reserve(2, 1);
    cr_assert_eq(copies.blocks.count, 3);
    cr_assert_eq(quern__removed_used_blocks(&copies), 1);
    cr_assert(!quern__removed_reserve(&copies, &allocator, 3, UINT32_MAX),
              "numbers of copies have 32 bits");
    close_copies();
}

Test(removed, blocks_are_reserved_for_a_total_of_copies)
{
    open_copies(false);
    const uint32_t rows = copies.block_rows;
    cr_assert(quern__removed_reserve_total(&copies, &allocator, 0));
    cr_assert_eq(copies.blocks.count, 0);
    cr_assert(quern__removed_reserve_total(&copies, &allocator, rows));
    cr_assert_eq(copies.blocks.count, 1);
    cr_assert(quern__removed_reserve_total(&copies, &allocator, rows + 1));
    cr_assert_eq(copies.blocks.count, 2);
    cr_assert(quern__removed_reserve_total(&copies, &allocator, 1));
    cr_assert_eq(copies.blocks.count, 2);
    close_copies();
}

Test(removed, blocks_without_copies_are_trimmed)
{
    open_copies(true);
    const uint32_t rows = copies.block_rows;
    reserve(1, 3 * rows);
    copy_rows(0, rows + 1, true);
    quern__removed_trim(&copies, &allocator, 1);
    cr_assert_eq(copies.blocks.count, 3);
    quern__removed_trim(&copies, &allocator, 0);
    cr_assert_eq(copies.blocks.count, 2);
    expect_copies(0, 0, rows + 1);
    quern__removed_clear(&copies);
    cr_assert_eq(tracked_live_count(&counts), (uint64_t)ROWS);
    cr_assert(copies.count == 0 && copies.blocks.count == 2);
    quern__removed_trim(&copies, &allocator, 0);
    cr_assert_eq(copies.blocks.count, 0);
    reserve(2, 5);
    copy_rows(20, 5, true);
    cr_assert_eq(tracked_live_count(&counts), (uint64_t)ROWS + 5);
    expect_copies(0, 20, 5);
    close_copies(); /* with copies */
}

/* ------------------------------------------------------------------------------------------- memory */

Test(removed, without_memory_the_copies_stay_as_they_were)
{
    open_copies(true);
    const uint32_t rows = copies.block_rows, part = 2 * rows + 7;
    uint32_t failed_count = 0;
    for (bool is_done = false; !is_done; failed_count += !is_done) {
        failing_allocator_fail_at(memory, 1);
        is_done = quern__removed_reserve(&copies, &allocator, 1, part);
        failing_allocator_heal(memory);
        cr_assert(quern__removed_reserve_total(&copies, &allocator, rows * (failed_count + 1)));
    }
    cr_assert_eq(failed_count, 3);
    cr_assert_eq(copies.promised_count, part);
    copy_rows(part - 5, 5, true);
    copy_rows(0, part - 5, true);
    for (uint64_t n = 1;; n++) {
        failing_allocator_fail_at(memory, n);
        const uint64_t outstanding_bytes = failing_allocator_outstanding_bytes(memory);
        const bool is_done = quern__removed_sort(&copies, &allocator);
        failing_allocator_heal(memory);
        if (is_done) break;
        cr_assert_eq(failing_allocator_outstanding_bytes(memory), outstanding_bytes);
        expect_copies(0, part - 5, 5);
        expect_copies(5, 0, part - 5);
        cr_assert_lt(n, 6u);
    }
    expect_copies(0, 0, part);
    close_copies();
}
