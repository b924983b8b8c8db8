/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/change.h"
#include "core/world/world_internal.h"
#include "tests/support/fixture.h"

#include <stdlib.h>
#include <string.h>

/* Tests of single verbs of change.h: their effect on rows, records and versions. */

enum { ROWS = 20 };

static quern__storage *storage;
static quern_component number, other;
static quern__archetype *numbered, *both;
static quern_entity entities[ROWS];

static quern__archetype *archetype_of(quern_entity entity)
{
    return quern__storage_archetype_of(storage, quern__entities_find(&storage->entities, entity));
}

static uintptr_t location_of(quern_entity entity)
{
    const quern__record *record = quern__entities_find(&storage->entities, entity);
    cr_assert_not_null(record);
    return record->location;
}

/* Entities whose value is their index in the list, in two archetypes with change versions. */
static void open_world(void)
{
    world = setup_world();
    storage = &world->storage;
    number = setup_component(world, "number", 8, 8);
    other = setup_component(world, "other", 8, 8);
    for (uint64_t i = 0; i < ROWS; i++) {
        entities[i] = setup_entity_with(world, &number, 1);
        cr_assert_eq(quern_entity_set(world, entities[i], number, &i), QUERN_OK);
    }
    const quern__move_plan *plan;
    numbered = archetype_of(entities[0]);
    cr_assert_eq(quern__plan_add_or_remove(storage, numbered, quern__component_index(other), &plan),
                 QUERN_OK);
    both = plan->target;
    cr_assert_eq(quern__storage_add_change_filter(storage, quern__component_index(number)), QUERN_OK);
    storage->clock++;
}

TestSuite(change, .init = open_world, .fini = close_valid_world);

/* Returns whether a version of the first chunk is current: of its rows, or of the number's column. */
static bool rows_noted(const quern__archetype *archetype)
{
    return quern__versions_of(&archetype->versions, 0)[0] == storage->clock;
}

static bool number_noted(const quern__archetype *archetype)
{
    const uint32_t column = quern__archetype_column(archetype, quern__component_index(number));
    return quern__versions_of(&archetype->versions, 0)[1 + column] == storage->clock;
}

static uint64_t number_of(quern_entity entity)
{
    const uint64_t *value = quern_entity_get(world, entity, number);
    cr_assert_not_null(value);
    return *value;
}

static uintptr_t append(quern__archetype *archetype, uint32_t wanted)
{
    uint32_t count;
    const uintptr_t first = quern__rows_append(storage, archetype, wanted, &count);
    cr_assert_eq(count, wanted);
    return first;
}

/* ------------------------------------------------------------------------------------------- verbs */

Test(change, arrive_turns_raw_rows_into_rows_of_entities)
{
    quern_entity handles[3];
    cr_assert_eq(quern__rows_reserve_new(storage, numbered, 3), QUERN_OK);
    quern__slots_allocate(storage, 3, handles);
    const uintptr_t first = append(numbered, 3);
    cr_assert_not(rows_noted(numbered), "raw rows are nobody's");
    cr_assert_not(quern_entity_is_alive(world, handles[0]));

    quern__rows_arrive(storage, numbered, first, handles, 3);
    cr_assert(rows_noted(numbered));
    cr_assert_not(number_noted(numbered));
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(location_of(handles[i]), first + i);
        cr_assert(quern_entity_equal(
            *quern__row_handle(numbered, quern__archetype_row(numbered, first + i)), handles[i]));
    }
}

Test(change, arrive_new_allocates_handles)
{
    cr_assert_eq(quern__rows_reserve_new(storage, both, 2), QUERN_OK);
    const uintptr_t first = append(both, 2);
    quern__rows_arrive_new(storage, both, first, 2);
    cr_assert(rows_noted(both));
    for (uint32_t i = 0; i < 2; i++) {
        const quern_entity entity = *quern__row_handle(both, quern__archetype_row(both, first + i));
        cr_assert_eq(location_of(entity), first + i);
        cr_assert_eq(archetype_of(entity), both);
    }
}

/* Rows 4 to 8 leave; the last rows, 19 to 15, fill the gap. */
Test(change, a_row_range_moves_and_the_last_rows_fill_its_gap)
{
    const quern__move_plan *plan;
    cr_assert_eq(quern__plan_between(storage, numbered, both, &plan), QUERN_OK);
    cr_assert_eq(quern__rows_reserve(storage, both, 5), QUERN_OK);
    const uintptr_t to = append(both, 5), from = location_of(entities[4]);
    quern__rows_move(storage, plan, to, from, 5);
    cr_assert(rows_noted(both));
    cr_assert_not(rows_noted(numbered), "nothing came there");
    quern__rows_relocate(storage, numbered, from, location_of(entities[15]), 5);
    cr_assert(rows_noted(numbered));
    quern__rows_cut(storage, numbered, 5);

    cr_assert_eq(quern__archetype_row_count(numbered), ROWS - 5u);
    cr_assert_eq(location_of(entities[15]), from);
    for (uint32_t i = 0; i < ROWS; i++) {
        cr_assert_eq(number_of(entities[i]), i);
        cr_assert_eq(archetype_of(entities[i]), i >= 4 && i < 9 ? both : numbered);
    }
}

/* Gaps in the first half, some of them consecutive: so are the rows that fill them. */
Test(change, the_last_rows_fill_many_gaps_in_order)
{
    enum { MANY = 2000 };
    static quern_entity many[MANY];
    uint32_t count = MANY;
    for (uint64_t i = 0; i < MANY; i++) {
        many[i] = setup_entity_with(world, (quern_component[]){number, other}, 2);
        cr_assert_eq(quern_entity_set(world, many[i], number, &i), QUERN_OK);
    }
    cr_assert_eq(quern__archetype_row_count(both), MANY);
    for (uint32_t i = 0; i < MANY / 2; i++)
        if (i % 3 == 0 || i % 50 < 10) {
            must(quern_commands_destroy(quern_world_commands(world), many[i]));
            many[i] = quern_entity_null();
            count--;
        }
    must(quern_world_flush(world));
    for (uint32_t i = 0, tail = count; i < count; i++) {
        const uint32_t from = many[i].bits != 0 ? i : tail++;
        cr_assert_eq(location_of(many[from]), quern__archetype_location(both, i), "row %u", i);
        cr_assert_eq(number_of(many[from]), from);
    }
}

Test(change, removing_the_last_rows_notes_no_change)
{
    uint32_t slots[3];
    const uintptr_t first = location_of(entities[ROWS - 3]);
    for (uint32_t i = 0; i < 3; i++)
        slots[i] = quern_entity_index(entities[ROWS - 3 + i]);
    quern__rows_leave(numbered, first, 3);
    cr_assert(quern_entity_is_alive(world, entities[ROWS - 1]), "its slot is still to be freed");
    quern__rows_cut(storage, numbered, 3);
    quern__slots_free(storage, slots, 3);
    cr_assert_not(rows_noted(numbered));
    cr_assert_not(quern_entity_is_alive(world, entities[ROWS - 1]));
    cr_assert(quern_entity_is_alive(world, entities[ROWS - 4]));
    cr_assert_eq(quern_entity_index(setup_entity(world)), slots[2], "the last one is taken first");
}

Test(change, a_write_is_noted_for_its_column_only)
{
    cr_assert(quern__writes_are_tracked(numbered));
    quern__rows_written(numbered, location_of(entities[2]), 3, quern__component_index(other));
    cr_assert_not(number_noted(numbered), "it has no such component");
    quern__rows_written(numbered, location_of(entities[2]), 3, quern__component_index(number));
    cr_assert(number_noted(numbered));
    cr_assert_not(rows_noted(numbered));
}

Test(change, verbs_for_one_row_perform_complete_changes)
{
    const uint64_t before = storage->structure_version;
    quern__row_leave(storage, entities[3]);
    cr_assert_neq(storage->structure_version, before);
    cr_assert(rows_noted(numbered), "the last row came to the gap");
    cr_assert_eq(quern__location_row(&numbered->shape, location_of(entities[ROWS - 1])), 3u);
    assert_valid(world);

    cr_assert_eq(quern__rows_reserve_new(storage, both, 1), QUERN_OK);
    uintptr_t location;
    const quern_entity entity = quern__row_arrive(storage, both, &location);
    cr_assert_eq(location_of(entity), location);
    cr_assert(rows_noted(both));
}

Test(change, whole_archetypes_move_and_leave)
{
    const quern__move_plan *plan;
    const uint64_t value = 9;
    cr_assert_eq(quern__plan_between(storage, numbered, both, &plan), QUERN_OK);
    cr_assert_eq(quern__rows_reserve(storage, both, ROWS), QUERN_OK);
    quern__rows_append_all(storage, plan, quern__component_index(other), &value);
    quern__rows_move_all(storage, plan);
    quern__rows_cut_all(storage, numbered);
    assert_valid(world);
    for (uint32_t i = 0; i < ROWS; i++) {
        cr_assert_eq(number_of(entities[i]), i);
        cr_assert_eq(*(const uint64_t *)quern_entity_get(world, entities[i], other), value);
    }
    quern__rows_leave_all(storage, both);
    for (uint32_t i = 0; i < ROWS; i++)
        cr_assert_not(quern_entity_is_alive(world, entities[i]));
}

/* ------------------------------------------------------------------------------------------- bit columns */

static const quern__bit_column marked = {QUERN__BIT_COLUMN_ADDED, 7};

static void mark_bit_columns(quern__archetype *archetype)
{
    cr_assert_eq(quern__archetype_add_bit_column(archetype, &storage->allocator, marked), QUERN_OK);
    cr_assert(archetype->tracks_changes);
}

static void mark(quern_entity entity)
{
    quern__bit_column_set_rows(archetype_of(entity)->row_bits, 0, location_of(entity), 1);
}

static bool is_marked(quern_entity entity)
{
    const quern__row_bits *row_bits = archetype_of(entity)->row_bits;
    return row_bits != NULL && quern__bit_column_test(row_bits, 0, location_of(entity));
}

Test(change, bits_move_with_their_rows_in_every_verb)
{
    const quern__move_plan *plan;
    mark_bit_columns(numbered);
    mark_bit_columns(both);
    for (uint32_t i = 0; i < ROWS; i += 2)
        mark(entities[i]);
    assert_valid(world);
    quern__row_leave(storage, entities[3]);
    assert_valid(world);
    quern__row_leave(storage, entities[4]);
    assert_valid(world);
    cr_assert_eq(quern_entity_add(world, entities[6], other, NULL), QUERN_OK);
    cr_assert_eq(quern_entity_add(world, entities[7], other, NULL), QUERN_OK);
    assert_valid(world);
    cr_assert_eq(quern__plan_between(storage, numbered, both, &plan), QUERN_OK);
    cr_assert_eq(quern__rows_reserve(storage, both, (uint32_t)quern__archetype_row_count(numbered)),
                 QUERN_OK);
    quern__rows_append_all(storage, plan, quern__component_index(other), NULL);
    quern__rows_move_all(storage, plan);
    quern__rows_cut_all(storage, numbered);
    assert_valid(world);
    for (uint32_t i = 0; i < ROWS; i++) {
        if (i == 3 || i == 4) continue;
        cr_assert_eq(archetype_of(entities[i]), both);
        cr_assert_eq(is_marked(entities[i]), i % 2 == 0, "entity %u", i);
    }
    quern__rows_leave_all(storage, both);
    assert_valid(world);
}

Test(change, bits_are_dropped_if_the_target_lacks_their_bit_column)
{
    mark_bit_columns(numbered);
    mark(entities[0]);
    cr_assert_eq(quern_entity_add(world, entities[0], other, NULL), QUERN_OK);
    assert_valid(world);
    cr_assert_eq(quern_entity_remove(world, entities[0], other), QUERN_OK);
    cr_assert_not(is_marked(entities[0]));
    assert_valid(world);
}

/* Adds more rows than fit in a chunk, so that the bit columns grow with the slots. */
Test(change, bit_columns_grow_with_the_chunks)
{
    const quern__bit_column second = {QUERN__BIT_COLUMN_SET, 7};
    const uint32_t count = 5 * numbered->shape.row_capacity;
    mark_bit_columns(numbered);
    mark(entities[1]);
    quern_entity *many = calloc(count, sizeof *many);
    for (uint32_t i = 0; i < count; i++) {
        many[i] = setup_entity_with(world, &number, 1);
        if (i % 3 == 0) mark(many[i]);
    }
    cr_assert_eq(quern__archetype_add_bit_column(numbered, &storage->allocator, second), QUERN_OK);
    assert_valid(world);
    cr_assert(is_marked(entities[1]));
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(is_marked(many[i]), i % 3 == 0);
    quern__archetype_remove_bit_column(numbered, &storage->allocator, marked);
    cr_assert_not(is_marked(entities[1]));
    quern__archetype_remove_bit_column(numbered, &storage->allocator, second);
    cr_assert_null(numbered->row_bits);
    assert_valid(world);
    free(many);
}

Test(change, validation_finds_a_lost_bit)
{
    mark_bit_columns(numbered);
    quern__bit_column_words(numbered->row_bits, 0, 0)[0] |= 4;
    cr_assert_eq(quern_world_validate(world), QUERN_ERROR_CORRUPT);
    cr_assert_not_null(strstr(quern_error_message(), "1 rows"), "%s", quern_error_message());
    quern__bit_column_words(numbered->row_bits, 0, 0)[0] = 0;
    quern__bit_column_set_rows(numbered->row_bits, 0, location_of(entities[ROWS - 1]) + 1, 1);
    cr_assert_eq(quern_world_validate(world), QUERN_ERROR_CORRUPT);
    cr_assert_not_null(strstr(quern_error_message(), "does not have"), "%s", quern_error_message());
    quern__bit_column_clear_slot(numbered->row_bits, 0, 0);
}

/* ------------------------------------------------------------------------------------------- gathering */

/* Creates entities that fill `chunk_count` chunks and a half, with their index as number. */
static quern_entity *fill_chunks(uint32_t chunk_count, uint32_t *out_count)
{
    const uint32_t capacity = numbered->shape.row_capacity, count = chunk_count * capacity + capacity / 2;
    quern_entity *many = calloc(count, sizeof *many);
    for (uint64_t i = 0; i < count; i++) {
        many[i] = setup_entity_with(world, &number, 1);
        cr_assert_eq(quern_entity_set(world, many[i], number, &i), QUERN_OK);
    }
    *out_count = count;
    return many;
}

static const quern__chunk_policy never = {UINT32_MAX, UINT32_MAX, UINT32_MAX};

/* Fills chunks in runs of one shape, and gathers them to runs of another. */
static void gather_from(quern__chunk_policy filling, quern__chunk_policy gathering, uint32_t shift)
{
    quern_getter *getter;
    uint32_t count;
    quern__chunk_policies = filling;
    cr_assert_eq(
        quern_getter_create(world, &(quern_getter_def){.component = number, .refs = true}, &getter),
        QUERN_OK);
    mark_bit_columns(numbered);
    quern_entity *many = fill_chunks(18, &count);
    quern_ref ref = {.entity = many[count / 2]};
    for (uint32_t i = 0; i < count; i += 3)
        mark(many[i]);
    const uint64_t *before = quern_ref_get(getter, &ref);
    const uint32_t slot = quern__chunk_index_at(&numbered->shape, location_of(ref.entity)),
                   row = quern__location_row(&numbered->shape, location_of(ref.entity));
    const uint64_t version = quern__versions_of(&numbered->versions, 3)[0],
                   structure = storage->structure_version;
    storage->clock++;

    quern__chunk_policies = gathering;
    storage->may_gather = true;
    quern__rows_gather(storage);
    cr_assert_eq(numbered->shape.shift, shift);
    cr_assert_eq(both->shape.shift, 0u, "it has no rows");
    cr_assert_eq(numbered->held_count, (18u + (1u << shift)) >> shift << shift);
    cr_assert_neq(storage->structure_version, structure);
    cr_assert_eq(quern__versions_of(&numbered->versions, 3)[0], version, "no value has changed");
    assert_valid(world);
    cr_assert_eq(quern__chunk_index_at(&numbered->shape, location_of(ref.entity)), slot);
    cr_assert_eq(quern__location_row(&numbered->shape, location_of(ref.entity)), row);
    const uint64_t *after = quern_ref_get(getter, &ref);
    cr_assert_neq(after, before);
    cr_assert_eq(*after, count / 2);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(number_of(many[i]), i);
        cr_assert_eq(is_marked(many[i]), i % 3 == 0, "entity %u", i);
    }

    /* the plans to and from the archetype know its new shape */
    for (uint32_t i = 0; i < count; i += 7)
        cr_assert_eq(quern_entity_add(world, many[i], other, &(uint64_t){i + 1}), QUERN_OK);
    for (uint32_t i = 0; i < count; i += 14)
        cr_assert_eq(quern_entity_remove(world, many[i], other), QUERN_OK);
    assert_valid(world);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_eq(number_of(many[i]), i);
        const uint64_t *value = quern_entity_get(world, many[i], other);
        cr_assert_eq(value != NULL, i % 14 == 7);
        if (value != NULL) cr_assert_eq(*value, i + 1);
    }
    quern_getter_destroy(getter);

    /* with fewer rows, trimming gives it smaller runs again */
    for (uint32_t i = 0; i < count; i++)
        if (i % 20 > 0) cr_assert_eq(quern_entity_destroy(world, many[i]), QUERN_OK);
    quern__chunk_policies = never;
    const uint64_t hash = quern_world_hash(world);
    cr_assert_eq(quern_world_trim(world), QUERN_OK);
    cr_assert_eq(numbered->shape.shift, 0u);
    cr_assert_eq(numbered->held_count, numbered->chunk_count);
    cr_assert_eq(quern_world_hash(world), hash);
    assert_valid(world);
    for (uint32_t i = 0; i < count; i += 20)
        cr_assert_eq(number_of(many[i]), i);
    free(many);
}

Test(change, gathering_keeps_all_that_is_known_of_rows)
{
    gather_from(never, (quern__chunk_policy){18, UINT32_MAX, UINT32_MAX}, QUERN__RUN_SHIFT);
}

Test(change, gathering_to_slabs_keeps_all_that_is_known_of_rows)
{
    gather_from(never, (quern__chunk_policy){18, 18, UINT32_MAX}, QUERN__SLAB_SHIFT);
}

Test(change, runs_are_gathered_to_slabs)
{
    gather_from((quern__chunk_policy){1, UINT32_MAX, UINT32_MAX}, (quern__chunk_policy){1, 18, UINT32_MAX},
                QUERN__SLAB_SHIFT);
}

Test(change, archetypes_that_grow_are_gathered_and_become_small_again_when_empty)
{
    uint32_t count;
    quern_entity *many = fill_chunks(QUERN__RUN_CHUNKS, &count);
    cr_assert_eq(numbered->shape.shift, (uint32_t)QUERN__RUN_SHIFT);
    cr_assert_eq(quern_entity_create_many(world, &other, NULL, 1, 9 * numbered->shape.row_capacity, NULL),
                 QUERN_OK);
    const quern__archetype *at_once = storage->archetypes.items[storage->archetypes.count - 1];
    cr_assert_eq(at_once->shape.shift, (uint32_t)QUERN__RUN_SHIFT, "many rows at once need no gathering");
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(quern_entity_destroy(world, many[i]), QUERN_OK);
    for (uint32_t i = 0; i < ROWS; i++)
        cr_assert_eq(quern_entity_destroy(world, entities[i]), QUERN_OK);
    cr_assert_eq(quern_world_trim(world), QUERN_OK);
    assert_valid(world);
    cr_assert_eq(numbered->held_count, 0u);
    setup_entity_with(world, &number, 1);
    cr_assert_eq(numbered->held_count, 1u);
    cr_assert_eq(numbered->shape.shift, 0u);
    assert_valid(world);
    free(many);
}

Test(change, without_memory_rows_stay_where_they_are)
{
    close_valid_world();
    failing_allocator *memory = open_failing_world();
    storage = &world->storage;
    number = setup_component(world, "number", 8, 8);
    quern__chunk_policies.gathered_chunks = UINT32_MAX;
    numbered = archetype_of(setup_entity_with(world, &number, 1));
    uint32_t count;
    quern_entity *many = fill_chunks(3, &count);
    quern__chunk_policies.gathered_chunks = 1;
    for (uint64_t k = 1; numbered->shape.shift == 0; k++) {
        cr_assert_lt(k, 20u);
        const uint64_t hash = quern_world_hash(world);
        failing_allocator_fail_at(memory, k);
        storage->may_gather = true;
        quern__rows_gather(storage);
        failing_allocator_heal(memory);
        assert_valid(world);
        cr_assert_eq(quern_world_hash(world), hash);
    }
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(number_of(many[i]), i);
    free(many);
}

/* The value that a call is given may be in a chunk of the archetype that the call makes large. */
Test(change, a_value_in_the_storage_is_copied_before_rows_are_gathered)
{
    uint32_t count;
    quern__chunk_policies.gathered_chunks = 2;
    quern_entity *many = fill_chunks(1, &count);
    while (numbered->shape.shift == 0) {
        quern_entity entity;
        const void *value = quern_entity_get(world, many[5], number);
        cr_assert_eq(quern_entity_create_with(world, &number, &value, 1, &entity), QUERN_OK);
        cr_assert_eq(number_of(entity), 5u);
    }
    assert_valid(world);
    free(many);
}
