/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"
#include "tests/support/fixture.h"

/* Memory that is reserved ahead (quern_world_reserve). */

enum { ROWS = 3000 };

static failing_allocator *memory;
static quern_component number, other;
static quern_entity entities[ROWS];

static void open_world(void)
{
    memory = open_failing_world();
    number = setup_component(world, "number", 8, 8);
    other = setup_component(world, "other", 8, 8);
}

TestSuite(reserve, .init = open_world, .fini = close_valid_world);

static quern_reserve_def rows_of_number(void)
{
    return (quern_reserve_def){.entity_count = ROWS, .components = {number}, .row_count = ROWS};
}

static void create_all(void)
{
    for (uint64_t i = 0; i < ROWS; i++)
        must(quern_entity_create_with(world, &number, (const void *const[]){&i}, 1, &entities[i]));
}

static void destroy_all(void)
{
    for (uint32_t i = 0; i < ROWS; i++)
        must(quern_entity_destroy(world, entities[i]));
}

Test(reserve, rows_need_no_memory_until_a_trim)
{
    const quern_reserve_def def = rows_of_number();
    const uint64_t hash = quern_world_hash(world);
    must(quern_world_reserve(world, &def));
    cr_assert_eq(quern_world_hash(world), hash);
    assert_valid(world);
    const uint64_t calls = failing_allocator_call_count(memory);
    create_all();
    destroy_all();
    create_all();
    cr_assert_eq(failing_allocator_call_count(memory), calls);
    destroy_all();
    must(quern_world_trim(world));
    const uint64_t trimmed_calls = failing_allocator_call_count(memory);
    create_all();
    cr_assert_gt(failing_allocator_call_count(memory), trimmed_calls);
}

Test(reserve, rows_are_added_to_those_that_exist)
{
    create_all();
    const quern_reserve_def def = rows_of_number();
    must(quern_world_reserve(world, &def));
    const uint64_t calls = failing_allocator_call_count(memory);
    create_all();
    cr_assert_eq(failing_allocator_call_count(memory), calls);
}

Test(reserve, links_and_commands_need_no_memory)
{
    quern_reserve_def def = rows_of_number();
    def.relations[0] = quern_world_parent(world);
    def.command_bytes = 2 * 64 * 1024;
    must(quern_world_reserve(world, &def));
    create_all();
    quern_commands *commands = quern_world_commands(world);
    must(quern_commands_set(commands, entities[0], number, &(uint64_t){1})); /* prepares the command */
    const uint64_t calls = failing_allocator_call_count(memory);
    for (uint64_t i = 0; i < ROWS; i++)
        must(quern_commands_set(commands, entities[i], number, &i));
    cr_assert_eq(failing_allocator_call_count(memory), calls);
    must(quern_world_flush(world));
    const quern__relation *parent = quern__relation_of(&world->storage, quern_world_parent(world));
    cr_assert(quern__links_has_page(&parent->links, quern_entity_index(entities[ROWS - 1])));
}

/* Their links are edges; a page of links would hide them. */
Test(reserve, relations_with_several_targets_have_edges)
{
    quern_reserve_def def = rows_of_number();
    must(quern_relation_register(world, &(quern_relation_def){.name = "likes", .many = true},
                                 &def.relations[0]));
    const quern_relation likes = def.relations[0];
    must(quern_world_reserve(world, &def));
    const quern__relation *relation = quern__relation_of(&world->storage, likes);
    cr_assert(quern__edges_has_page(&relation->edges, ROWS - 1));
    cr_assert_eq(relation->links.pages.count, 0);
    create_all();
    must(quern_entity_relate(world, entities[0], likes, entities[1]));
    cr_assert(quern_entity_equal(quern_entity_target(world, entities[0], likes), entities[1]));
    cr_assert_eq(quern_entity_source_count(world, entities[1], likes), 1);
}

Test(reserve, failed_allocations_are_reported_and_change_nothing)
{
    quern_reserve_def def = rows_of_number();
    def.relations[0] = quern_world_parent(world);
    def.command_bytes = 64 * 1024;
    const uint64_t hash = quern_world_hash(world);
    uint64_t n = 1;
    for (bool has_failed = true; has_failed; n++) {
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + n);
        const quern_result result = quern_world_reserve(world, &def);
        failing_allocator_heal(memory);
        has_failed = result != QUERN_OK;
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
        cr_assert_eq(quern_world_hash(world), hash);
        assert_valid(world);
    }
    cr_assert_gt(n, 3u);
}

Test(reserve, wrong_definitions_are_refused)
{
    quern_reserve_def def = {.components = {number}};
    must_refuse(INVALID_ARGUMENT, world, quern_world_reserve(world, &def));
    def = (quern_reserve_def){.components = {number, number}, .row_count = 1};
    must_refuse(DUPLICATE_COMPONENT, world, quern_world_reserve(world, &def));
    def = (quern_reserve_def){.entity_count = UINT32_MAX};
    must_refuse(LIMIT, world, quern_world_reserve(world, &def));
    def = (quern_reserve_def){.relations = {{12345}}};
    must_refuse(INVALID_ARGUMENT, world, quern_world_reserve(world, &def));
    must_refuse(NULL_ARGUMENT, world, quern_world_reserve(world, NULL));
    def = (quern_reserve_def){.entity_count = 0};
    must(quern_world_reserve(world, &def));
}
