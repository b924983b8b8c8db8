/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/failing_allocator.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"
#include "tests/support/tracked.h"

#include <stdio.h>
#include <string.h>

static void open_world(void)
{
    world = setup_world();
}

TestSuite(storage, .init = open_world, .fini = close_world);

static void must_add_u64(quern_entity entity, quern_component component, uint64_t value)
{
    must(quern_entity_add(world, entity, component, &value));
}

static uint64_t u64_of(quern_entity entity, quern_component component)
{
    const uint64_t *value = quern_entity_get(world, entity, component);
    cr_assert_not_null(value);
    return *value;
}

static quern_component u64_component(const char *name)
{
    return setup_component(world, name, 8, 8);
}

/* -------------------------------------------------------------------------------------- operations */

Test(storage, add_sets_the_value)
{
    quern_component health = u64_component("health");
    quern_entity entity = setup_entity(world);
    cr_assert_not(quern_entity_has(world, entity, health));
    must_add_u64(entity, health, 42);
    cr_assert(quern_entity_has(world, entity, health));
    cr_assert_eq(u64_of(entity, health), 42u);
}

Test(storage, add_without_a_value_zeroes_reused_memory)
{
    quern_component health = u64_component("health");
    quern_entity first = setup_entity(world);
    must_add_u64(first, health, UINT64_MAX);
    must(quern_entity_destroy(world, first));
    quern_entity second = setup_entity(world);
    must(quern_entity_add(world, second, health, NULL));
    cr_assert_eq(u64_of(second, health), 0u);
    quern_entity third = setup_entity_with(world, &health, 1);
    cr_assert_eq(u64_of(third, health), 0u);
}

Test(storage, add_of_a_present_component_fails)
{
    quern_component health = u64_component("health"), frozen = setup_tag(world, "frozen");
    quern_entity entity = setup_entity(world);
    uint64_t other = 7;
    must_add_u64(entity, health, 42);
    must(quern_entity_add(world, entity, frozen, NULL));
    must_refuse(COMPONENT_PRESENT, world, quern_entity_add(world, entity, health, &other));
    must_refuse(COMPONENT_PRESENT, world, quern_entity_add(world, entity, health, NULL));
    must_refuse(COMPONENT_PRESENT, world, quern_entity_add(world, entity, frozen, NULL));
    cr_assert_eq(u64_of(entity, health), 42u);
}

Test(storage, remove_removes_the_value)
{
    quern_component health = u64_component("health"), frozen = setup_tag(world, "frozen");
    quern_entity entity = setup_entity(world);
    must_add_u64(entity, health, 42);
    must(quern_entity_remove(world, entity, health));
    cr_assert_not(quern_entity_has(world, entity, health));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_remove(world, entity, health));
    must_refuse(COMPONENT_ABSENT, world, quern_entity_remove(world, entity, frozen));
    assert_valid(world);
}

/* The archetype caches the last edges. Calls along a cached edge make the same checks as the first call. */
Test(storage, calls_along_cached_edges_are_checked)
{
    quern_component health = u64_component("health");
    quern_entity gone = setup_entity(world), entity = setup_entity(world);
    must(quern_entity_destroy(world, gone));
    uint64_t value = 1;
    for (uint32_t i = 0; i < 3; i++) {
        must(quern_entity_add(world, entity, health, &value));
        must_refuse(COMPONENT_PRESENT, world, quern_entity_add(world, entity, health, &value));
        must_refuse(UNKNOWN_COMPONENT, world,
                    quern_entity_remove(world, entity, component_of_other_world(health)));
        must_refuse(UNKNOWN_COMPONENT, world, quern_entity_remove(world, entity, (quern_component){0}));
        must(quern_entity_remove(world, entity, health));
        must_refuse(COMPONENT_ABSENT, world, quern_entity_remove(world, entity, health));
        must_refuse(UNKNOWN_COMPONENT, world,
                    quern_entity_add(world, entity, component_of_other_world(health), &value));
        must_refuse(STALE_ENTITY, world, quern_entity_add(world, gone, health, &value));
        must_refuse(FOREIGN_ENTITY, world,
                    quern_entity_add(world, entity_of_other_world(entity), health, &value));
    }
}

Test(storage, set_replaces_a_value_and_adds_a_missing_one)
{
    quern_component health = u64_component("health");
    quern_entity entity = setup_entity(world);
    uint64_t values[] = {1, 2};
    must(quern_entity_set(world, entity, health, &values[0]));
    cr_assert_eq(u64_of(entity, health), 1u);
    must(quern_entity_set(world, entity, health, &values[1]));
    cr_assert_eq(u64_of(entity, health), 2u);
}

Test(storage, set_accepts_a_value_inside_the_world)
{
    quern_component health = u64_component("health"), armour = u64_component("armour");
    quern_entity entity = setup_entity(world), other = setup_entity(world);
    must_add_u64(entity, health, 42);
    must_add_u64(other, armour, 5);
    must(quern_entity_set(world, entity, health, quern_entity_get(world, entity, health)));
    must(quern_entity_set(world, other, health, quern_entity_get(world, entity, health)));
    must(quern_entity_set(world, entity, armour, quern_entity_get(world, other, armour)));
    must(quern_entity_add(world, setup_entity(world), health, quern_entity_get(world, entity, health)));
    cr_assert_eq(u64_of(entity, health), 42u);
    cr_assert_eq(u64_of(other, health), 42u);
    cr_assert_eq(u64_of(entity, armour), 5u);
}

Test(storage, get_of_an_absent_component_is_null_without_a_message)
{
    quern_component health = u64_component("health");
    quern_entity entity = setup_entity(world);
    refusal before = refusal_begin(world);
    cr_assert_null(quern_entity_get(world, entity, health));
    cr_assert_not(quern_entity_has(world, entity, health));
    cr_assert_not(refusal_has_message(&before), "an answer is no error");
}

Test(storage, entities_have_tags_without_values)
{
    quern_component frozen = setup_tag(world, "frozen");
    quern_entity entity = setup_entity(world);
    must(quern_entity_set(world, entity, frozen, NULL));
    must(quern_entity_set(world, entity, frozen, NULL));
    cr_assert(quern_entity_has(world, entity, frozen));
    cr_assert_null(quern_entity_get(world, entity, frozen));
    must(quern_entity_remove(world, entity, frozen));
    cr_assert_not(quern_entity_has(world, entity, frozen));
}

Test(storage, writes_through_get_persist)
{
    quern_component health = u64_component("health"), frozen = setup_tag(world, "frozen");
    quern_entity entity = setup_entity_with(world, &health, 1);
    *(uint64_t *)quern_entity_get(world, entity, health) = 99;
    must(quern_entity_add(world, entity, frozen, NULL));
    cr_assert_eq(u64_of(entity, health), 99u);
}

/* ------------------------------------------------------------------------------------- create_with */

Test(storage, create_with_assigns_values_in_the_given_order)
{
    quern_component health = u64_component("health"), armour = u64_component("armour");
    quern_component frozen = setup_tag(world, "frozen");
    quern_component components[] = {armour, frozen, health};
    uint64_t values[] = {1, 2};
    const void *pointers[] = {&values[0], NULL, &values[1]};
    quern_entity entity;
    must(quern_entity_create_with(world, components, pointers, 3, &entity));
    cr_assert_eq(u64_of(entity, armour), 1u);
    cr_assert_eq(u64_of(entity, health), 2u);
    cr_assert(quern_entity_has(world, entity, frozen));
    pointers[0] = NULL;
    must(quern_entity_create_with(world, components, pointers, 3, &entity));
    cr_assert_eq(u64_of(entity, armour), 0u);
    cr_assert_eq(u64_of(entity, health), 2u);
}

Test(storage, create_with_no_components_creates_an_empty_entity)
{
    quern_entity entity;
    must(quern_entity_create_with(world, NULL, NULL, 0, &entity));
    cr_assert(quern_entity_is_alive(world, entity));
    must(quern_entity_create_with(world, NULL, NULL, 0, NULL));
    cr_assert_eq(stats_of_world(world).entity_count, 2u);
}

Test(storage, create_with_a_component_twice_fails)
{
    quern_component health = u64_component("health"), frozen = setup_tag(world, "frozen");
    quern_component first[] = {health, frozen, health}, second[] = {frozen, frozen};
    quern_entity entity;
    must_refuse(DUPLICATE_COMPONENT, world, quern_entity_create_with(world, first, NULL, 3, &entity));
    must_refuse(DUPLICATE_COMPONENT, world, quern_entity_create_with(world, second, NULL, 2, &entity));
}

/* ------------------------------------------------------------------------------------------- moves */

enum { MANY = 3000 };

static quern_entity entities[MANY];

static void create_numbered(quern_component component)
{
    for (uint32_t i = 0; i < MANY; i++) {
        entities[i] = setup_entity(world);
        must_add_u64(entities[i], component, i);
    }
}

static void assert_numbered(quern_component component, uint32_t from, uint32_t step)
{
    for (uint32_t i = from; i < MANY; i += step)
        cr_assert_eq(u64_of(entities[i], component), i, "entity %u", i);
}

Test(storage, values_survive_moves_between_archetypes)
{
    quern_component components[6];
    const char *names[] = {"a", "b", "c", "d", "e", "f"};
    for (uint32_t c = 0; c < 6; c++)
        components[c] = u64_component(names[c]);
    create_numbered(components[0]);
    for (uint32_t c = 1; c < 6; c++)
        for (uint32_t i = 0; i < MANY; i++)
            must_add_u64(entities[i], components[c], i);
    for (uint32_t i = 0; i < MANY; i++)
        must(quern_entity_remove(world, entities[i], components[i % 6]));
    for (uint32_t i = 0; i < MANY; i++)
        for (uint32_t c = 0; c < 6; c++) {
            cr_assert_eq(quern_entity_has(world, entities[i], components[c]), c != i % 6);
            if (c != i % 6) cr_assert_eq(u64_of(entities[i], components[c]), i);
        }
    assert_valid(world);
}

Test(storage, destroying_some_entities_preserves_the_values_of_others)
{
    quern_component number = u64_component("number");
    create_numbered(number);
    for (uint32_t i = 0; i < MANY; i += 2)
        must(quern_entity_destroy(world, entities[i]));
    assert_numbered(number, 1, 2);
    assert_valid(world);
}

Test(storage, destroying_in_any_order_empties_the_chunks)
{
    quern_component number = u64_component("number");
    random_source random = {.state = 1};
    create_numbered(number);
    for (uint32_t left = MANY; left > 0; left--) {
        uint32_t i = random_below(&random, left);
        must(quern_entity_destroy(world, entities[i]));
        entities[i] = entities[left - 1];
        if (left % 500 == 0) assert_valid(world);
    }
    cr_assert_eq(stats_of_world(world).chunk_count, 0u);
    assert_valid(world);
}

static uint32_t count_views(quern_query *query, uint32_t *first_count, uint32_t *last_count)
{
    uint32_t views = 0;
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);) {
        if (views == 0) *first_count = it.view.count;
        if (views > 0) cr_assert_eq(*last_count, *first_count, "a chunk that is not the last is not full");
        *last_count = it.view.count;
        views++;
    }
    return views;
}

Test(storage, chunks_of_destroyed_entities_are_used_by_others)
{
    enum { COUNT = 50000, BYTES = 64 };
    static quern_entity created[COUNT];
    failing_allocator *memory = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(memory)};
    quern_world *other;
    must(quern_world_create(&def, &other));
    const quern_component first = setup_component(other, "first", BYTES, 8),
                          second = setup_component(other, "second", BYTES, 8);
    for (uint32_t i = 0; i < COUNT; i++)
        created[i] = setup_entity_with(other, &first, 1);
    const uint64_t bytes = failing_allocator_outstanding_bytes(memory);
    for (uint32_t i = 0; i < COUNT; i++)
        must(quern_entity_destroy(other, created[i]));
    for (uint32_t i = 0; i < COUNT; i++)
        setup_entity_with(other, &second, 1);
    cr_assert_lt(failing_allocator_outstanding_bytes(memory), bytes + COUNT * BYTES / 2);
    quern_world_destroy(other);
    failing_allocator_close(memory);
}

Test(storage, all_chunks_but_the_last_stay_full)
{
    quern_component number = u64_component("number");
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    create_numbered(number);
    for (uint32_t left = MANY; left > 1; left--) {
        uint32_t first = 0, last = 0, views = count_views(query, &first, &last);
        cr_assert_eq((views - 1) * first + last, left);
        cr_assert_eq(stats_of_world(world).chunk_count, views);
        must(quern_entity_destroy(world, entities[(left - 1) / 2]));
        memmove(&entities[(left - 1) / 2], &entities[(left - 1) / 2 + 1],
                (left - 1 - (left - 1) / 2) * sizeof *entities);
    }
}

Test(storage, chunks_are_filled_to_the_last_byte_but_a_row_and_some_alignment)
{
    quern_component number = u64_component("number");
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    create_numbered(number);
    uint32_t first = 0, last = 0;
    count_views(query, &first, &last);
    cr_assert_geq(first, 16384u * 98 / 100 / 16, "only %u rows of 16 bytes in a chunk", first);
}

/* --------------------------------------------------------------------------------- sizes, alignment */

/* Returns the largest alignment that a size allows. */
static uint32_t alignment_of_size(uint32_t size_bytes)
{
    uint32_t lowest_bit = size_bytes & (0u - size_bytes);
    return lowest_bit < 64 ? lowest_bit : 64;
}

static void fill(unsigned char *bytes, uint32_t size_bytes, uint32_t seed)
{
    for (uint32_t i = 0; i < size_bytes; i++)
        bytes[i] = (unsigned char)(seed * 31 + i);
}

static void assert_filled(quern_world *sized, quern_entity entity, quern_component component,
                          uint32_t size_bytes, uint32_t seed)
{
    static unsigned char expected[QUERN_MAX_COMPONENT_BYTES];
    fill(expected, size_bytes, seed);
    const unsigned char *value = quern_entity_get(sized, entity, component);
    cr_assert_eq((uintptr_t)value % alignment_of_size(size_bytes), 0u, "%u bytes", size_bytes);
    cr_assert_eq(memcmp(value, expected, size_bytes), 0, "%u bytes", size_bytes);
}

/* Creates three entities with one component of this size and destroys the first, so that a row moves. */
static void check_size(quern_world *sized, uint32_t size_bytes)
{
    static unsigned char value[QUERN_MAX_COMPONENT_BYTES];
    char name[16];
    snprintf(name, sizeof name, "size%u", size_bytes);
    quern_component component = setup_component(sized, name, size_bytes, alignment_of_size(size_bytes));
    quern_entity rows[3];
    const void *pointer = value;
    for (uint32_t i = 0; i < 3; i++) {
        fill(value, size_bytes, i);
        must(quern_entity_create_with(sized, &component, &pointer, 1, &rows[i]));
    }
    must(quern_entity_destroy(sized, rows[0]));
    assert_filled(sized, rows[1], component, size_bytes, 1);
    assert_filled(sized, rows[2], component, size_bytes, 2);
}

Test(storage, components_of_all_sizes_keep_their_bytes)
{
    uint32_t size_bytes = 1;
    while (size_bytes <= QUERN_MAX_COMPONENT_BYTES) {
        quern_world *sized = setup_world();
        for (uint32_t i = 0; i < 256 && size_bytes <= QUERN_MAX_COMPONENT_BYTES; i++) {
            check_size(sized, size_bytes);
            size_bytes += size_bytes < 300 || size_bytes >= QUERN_MAX_COMPONENT_BYTES - 70 ? 1 : 17;
        }
        assert_valid(sized);
        quern_world_destroy(sized);
    }
}

/* Columns of these alignments, after a column with a size that shifts their offsets. */
static void check_alignments(uint32_t shift_bytes)
{
    static const uint32_t alignments[] = {64, 32, 16, 8, 64};
    quern_component components[6];
    char name[32];
    for (uint32_t c = 0; c < 6; c++) {
        snprintf(name, sizeof name, "shift%u_%u", shift_bytes, c);
        uint32_t alignment = c == 0 ? 1 : alignments[c - 1];
        uint32_t size_bytes = c == 0 ? shift_bytes : alignment * c;
        components[c] = setup_component(world, name, size_bytes, alignment);
    }
    for (uint32_t i = 0; i < 100; i++) {
        quern_entity entity = setup_entity_with(world, components, 6);
        for (uint32_t c = 1; c < 6; c++)
            cr_assert_eq((uintptr_t)quern_entity_get(world, entity, components[c]) % alignments[c - 1], 0u);
    }
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(components[5])}, 1);
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
        cr_assert_eq((uintptr_t)quern_view_read(&it.view, 0) % 64, 0u);
    quern_query_destroy(query);
}

Test(storage, over_aligned_columns_are_aligned_in_every_chunk)
{
    for (uint32_t shift_bytes = 1; shift_bytes < 100; shift_bytes += 7)
        check_alignments(shift_bytes);
}

/* ------------------------------------------------------------------------------------------ limits */

static quern_component many[QUERN_MAX_ENTITY_COMPONENTS + 1];

static void register_many(uint32_t size_bytes)
{
    char name[16];
    for (uint32_t i = 0; i <= QUERN_MAX_ENTITY_COMPONENTS; i++) {
        snprintf(name, sizeof name, "c%u", i);
        many[i] = setup_component(world, name, size_bytes, 1);
    }
}

/* Adds 250 components one by one and checks that every call that could add the 251st fails. */
static void check_component_limit(uint32_t size_bytes)
{
    register_many(size_bytes);
    quern_entity entity = setup_entity(world), created;
    unsigned char value = 5;
    for (uint32_t i = 0; i < QUERN_MAX_ENTITY_COMPONENTS; i++)
        must(quern_entity_add(world, entity, many[i], &value));
    for (uint32_t i = 0; i <= QUERN_MAX_ENTITY_COMPONENTS; i++)
        cr_assert_eq(quern_entity_has(world, entity, many[i]), i < QUERN_MAX_ENTITY_COMPONENTS);
    quern_result expected = QUERN_ERROR_TOO_MANY_COMPONENTS;
    quern_component last = many[QUERN_MAX_ENTITY_COMPONENTS];
    assert_refused(world, expected, quern_entity_add(world, entity, last, &value));
    cr_assert_not_null(strstr(quern_error_message(), "QUERN_MAX_ENTITY_COMPONENTS"));
    assert_refused(world, expected, quern_entity_set(world, entity, last, &value));
    assert_refused(world, expected,
                   quern_entity_create_with(world, many, NULL, QUERN_MAX_ENTITY_COMPONENTS + 1, &created));
    must(quern_entity_create_with(world, many, NULL, QUERN_MAX_ENTITY_COMPONENTS, &created));
    must(quern_entity_remove(world, entity, many[0]));
    must(quern_entity_add(world, entity, last, &value));
    assert_valid(world);
}

Test(storage, the_251st_value_of_an_entity_fails)
{
    check_component_limit(1);
}

Test(storage, the_251st_tag_of_an_entity_fails)
{
    check_component_limit(0);
}

Test(storage, a_count_far_beyond_the_limit_fails)
{
    static quern_component components[70000];
    quern_component tag = setup_tag(world, "tag");
    for (uint32_t i = 0; i < 70000; i++)
        components[i] = tag;
    quern_entity entity;
    refusal before = refusal_begin(world);
    quern_result result = quern_entity_create_with(world, components, NULL, 70000, &entity);
    refusal_end_value(&before, result != QUERN_OK, __LINE__, "create_with");
}

Test(storage, a_row_larger_than_a_chunk_fails)
{
    quern_component first = setup_component(world, "first", 9000, 8);
    quern_component second = setup_component(world, "second", 9000, 8);
    quern_component both[] = {first, second};
    static unsigned char value[9000];
    quern_entity entity = setup_entity_with(world, &first, 1), created;
    quern_result expected = QUERN_ERROR_COMPONENT_TOO_LARGE;
    assert_refused(world, expected, quern_entity_add(world, entity, second, value));
    assert_refused(world, expected, quern_entity_set(world, entity, second, value));
    assert_refused(world, expected, quern_entity_create_with(world, both, NULL, 2, &created));
    assert_refused(world, expected, quern_entity_create_with(world, both, NULL, 2, NULL));
}

/* ------------------------------------------------------------------------------------------- hooks */

static tracked_counts counts;
static quern_component tracked_type, plain_type;

static void open_tracked(void)
{
    open_world();
    counts = (tracked_counts){0};
    tracked_type = tracked_register(world, "tracked", &counts);
    cr_assert_not(quern_component_is_null(tracked_type));
    plain_type = u64_component("plain");
}

static void close_tracked(void)
{
    close_world();
    assert_at_end(counts.broken_count == 0u);
    assert_at_end(tracked_live_count(&counts) == 0u);
}

TestSuite(hooks, .init = open_tracked, .fini = close_tracked);

static quern_entity add_tracked(uint64_t payload)
{
    quern_entity entity = setup_entity(world);
    tracked value;
    tracked_construct(&value, payload, &counts);
    must(quern_entity_add(world, entity, tracked_type, &value));
    tracked_destroy(&value, &counts);
    return entity;
}

static void assert_payload(quern_entity entity, uint64_t payload)
{
    const tracked *value = quern_entity_get(world, entity, tracked_type);
    cr_assert_not_null(value);
    cr_assert(tracked_is_live(value), "the value was moved as bytes");
    cr_assert_eq(value->payload, payload);
}

Test(hooks, an_added_value_is_copied_and_a_removed_one_destroyed)
{
    quern_entity entity = add_tracked(5);
    cr_assert_eq(counts.copied_count, 1u);
    assert_payload(entity, 5);
    must(quern_entity_remove(world, entity, tracked_type));
    cr_assert_eq(tracked_live_count(&counts), 0u);
}

Test(hooks, an_omitted_value_is_constructed)
{
    quern_entity entity = setup_entity(world);
    must(quern_entity_add(world, entity, tracked_type, NULL));
    assert_payload(entity, TRACKED_DEFAULT);
    assert_payload(setup_entity_with(world, &tracked_type, 1), TRACKED_DEFAULT);
    cr_assert_eq(counts.constructed_count, 2u);
}

Test(hooks, set_destroys_the_value_that_was_there)
{
    quern_entity entity = add_tracked(5);
    tracked value;
    tracked_construct(&value, 6, &counts);
    must(quern_entity_set(world, entity, tracked_type, &value));
    tracked_destroy(&value, &counts);
    assert_payload(entity, 6);
    cr_assert_eq(tracked_live_count(&counts), 1u);
}

Test(hooks, set_to_its_own_value_keeps_it)
{
    quern_entity entity = add_tracked(5);
    must(quern_entity_set(world, entity, tracked_type, quern_entity_get(world, entity, tracked_type)));
    assert_payload(entity, 5);
    cr_assert_eq(tracked_live_count(&counts), 1u);
}

Test(hooks, values_are_moved_when_their_entity_changes_archetype)
{
    quern_entity entity = add_tracked(5);
    uint64_t plain = 1;
    must(quern_entity_add(world, entity, plain_type, &plain));
    assert_payload(entity, 5);
    must(quern_entity_remove(world, entity, plain_type));
    assert_payload(entity, 5);
    cr_assert_geq(counts.moved_count, 2u);
    cr_assert_eq(counts.copied_count, 1u);
}

Test(hooks, values_are_moved_when_their_row_fills_a_gap)
{
    quern_entity rows[100];
    for (uint32_t i = 0; i < 100; i++)
        rows[i] = add_tracked(i);
    for (uint32_t i = 0; i < 50; i++)
        must(quern_entity_destroy(world, rows[i]));
    for (uint32_t i = 50; i < 100; i++)
        assert_payload(rows[i], i);
    cr_assert_eq(tracked_live_count(&counts), 50u);
}

Test(hooks, failed_calls_call_no_hooks)
{
    quern_entity entity = add_tracked(5), created;
    tracked value;
    tracked_construct(&value, 6, &counts);
    tracked_counts before = counts;
    quern_component twice[] = {tracked_type, tracked_type};
    const void *values[] = {&value, &value};
    must_refuse(COMPONENT_PRESENT, world, quern_entity_add(world, entity, tracked_type, &value));
    must_refuse(DUPLICATE_COMPONENT, world, quern_entity_create_with(world, twice, values, 2, &created));
    must_refuse(NULL_ENTITY, world, quern_entity_set(world, quern_entity_null(), tracked_type, &value));
    cr_assert_eq(counts.copied_count, before.copied_count);
    cr_assert_eq(counts.constructed_count, before.constructed_count);
    cr_assert_eq(counts.destroyed_count, before.destroyed_count);
    tracked_destroy(&value, &counts);
}

Test(hooks, destroying_the_world_destroys_every_value)
{
    for (uint32_t i = 0; i < MANY; i++) {
        quern_entity entity = add_tracked(i);
        if (i % 3 == 0) must(quern_entity_add(world, entity, plain_type, NULL));
    }
    cr_assert_eq(tracked_live_count(&counts), (uint64_t)MANY);
}

static void destroy_payload(void *values, uint32_t count, void *user_data)
{
    uint64_t *value = values;
    uint64_t *sum = user_data;
    for (uint32_t i = 0; i < count; i++)
        *sum += value[i];
}

static void construct_payload(void *values, uint32_t count, void *user_data)
{
    uint64_t *value = values;
    for (uint32_t i = 0; i < count; i++)
        value[i] = 100;
}

Test(hooks, a_resource_is_constructed_and_destroyed_with_the_world)
{
    quern_world *other = setup_world();
    uint64_t sum = 0, given = 5;
    quern_resource constructed, copied;
    quern_resource_def def = {
        .name = "constructed",
        .size_bytes = sizeof(uint64_t),
        .hooks =
            (quern_hooks){.construct = construct_payload, .destroy = destroy_payload, .user_data = &sum}};
    must(quern_resource_register(other, &def, &constructed));
    def.name = "given";
    def.value = &given;
    must(quern_resource_register(other, &def, &copied));
    cr_assert_eq(*(uint64_t *)quern_resource_get(other, constructed), 100u);
    cr_assert_eq(*(uint64_t *)quern_resource_get(other, copied), 5u);
    cr_assert_eq(sum, 0u);
    quern_world_destroy(other);
    cr_assert_eq(sum, 105u);
}

/* --------------------------------------------------------------------------------- handed-over values */

static atomic_llong owned_live;
static quern_component owned_type;

static void open_owned(void)
{
    open_world();
    owned_live = 0;
    owned_type = owned_register(world, "owned", &owned_live);
    plain_type = u64_component("plain");
}

static void close_owned(void)
{
    close_world();
    assert_at_end(owned_live == 0);
}

TestSuite(handed_over, .init = open_owned, .fini = close_owned);

static void set_owned(quern_entity entity, uint64_t payload)
{
    owned value;
    owned_construct(&value, payload, &owned_live);
    must(quern_entity_set(world, entity, owned_type, &value));
}

static void assert_owned(quern_entity entity, uint64_t payload)
{
    const owned *value = quern_entity_get(world, entity, owned_type);
    cr_assert_not_null(value);
    cr_assert(owned_is_intact(value));
    cr_assert_eq(value->payload, payload);
}

Test(handed_over, the_world_becomes_owner_of_resources)
{
    quern_entity entity = setup_entity(world);
    set_owned(entity, 1);
    assert_owned(entity, 1);
    set_owned(entity, 2);
    assert_owned(entity, 2);
    cr_assert_eq(owned_live, 1);
    must(quern_entity_add(world, entity, plain_type, NULL));
    assert_owned(entity, 2);
    must(quern_entity_remove(world, entity, owned_type));
    cr_assert_eq(owned_live, 0);
}

Test(handed_over, after_a_failure_the_caller_remains_owner)
{
    quern_entity entity = setup_entity(world);
    set_owned(entity, 1);
    owned value;
    owned_construct(&value, 2, &owned_live);
    must_refuse(COMPONENT_PRESENT, world, quern_entity_add(world, entity, owned_type, &value));
    cr_assert_eq(*value.box, 2u);
    owned_destroy(&value, &owned_live);
    assert_owned(entity, 1);
}
