/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/storage.h"
#include "core/world/world_internal.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <stdio.h>

/* Single calls that use one edge repeatedly, and lists of entities that use different edges. Caches of earlier
 * calls must not change results. */

enum { KIND_COUNT = 2 * QUERN__EDGE_COUNT + 1, ROUND_COUNT = 4, MANY = 2000 };

static failing_allocator *memory;
static quern_world *world;
static quern_component kinds[KIND_COUNT]; /* components of several sizes; every third one is a tag */
static tracked_counts counts;
static quern_component hooked;

static uint32_t size_of_kind(uint32_t kind)
{
    static const uint32_t sizes[] = {12, 0, 8, 16, 0, 1, 40};
    return sizes[kind % QUERN__COUNT_OF(sizes)];
}

static void register_kinds(quern_world *in)
{
    for (uint32_t kind = 0; kind < KIND_COUNT; kind++) {
        char name[16];
        snprintf(name, sizeof name, "kind%u", kind);
        kinds[kind] =
            size_of_kind(kind) > 0 ? setup_component(in, name, size_of_kind(kind), 1) : setup_tag(in, name);
    }
    hooked = tracked_register(in, "hooked", &counts);
}

static void open_single(void)
{
    memory = failing_allocator_create();
    world = make_world(.allocator = failing_allocator_interface(memory));
    register_kinds(world);
}

static void close_single(void)
{
    assert_at_end(quern_world_validate(world) == QUERN_OK);
    quern_world_destroy(world);
    failing_allocator_close(memory);
    assert_at_end(tracked_live_count(&counts) == 0u);
    assert_at_end(counts.broken_count == 0u);
}

TestSuite(edges, .init = open_single, .fini = close_single);
TestSuite(set_missing, .init = open_single, .fini = close_single);
TestSuite(destroy_list, .init = open_single, .fini = close_single);

/* Returns the value of a kind that follows from a number. */
static const void *value_of(uint32_t number)
{
    static unsigned char bytes[64];
    for (uint32_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(number * 31 + i);
    return bytes;
}

static void expect_value(quern_entity entity, uint32_t kind, uint32_t number)
{
    cr_assert(quern_entity_has(world, entity, kinds[kind]));
    if (size_of_kind(kind) == 0) return;
    cr_assert_arr_eq(quern_entity_get(world, entity, kinds[kind]), value_of(number), size_of_kind(kind));
}

static quern__archetype *archetype_of(quern_entity entity)
{
    const quern__record *record = quern__entities_find(&world->storage.entities, entity);
    return quern__storage_archetype_of(&world->storage, record);
}

static uint32_t edge_count(const quern__archetype *archetype)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < QUERN__EDGE_COUNT; i++)
        count += archetype->edges[i].key != 0;
    return count;
}

/* ------------------------------------------------------------------------------------------- edges */

/* Adds each kind to an entity of its own and removes it, in several rounds. */
Test(edges, more_edges_than_cache_entries_lead_to_the_right_archetypes)
{
    quern_entity entities[KIND_COUNT];
    for (uint32_t kind = 0; kind < KIND_COUNT; kind++)
        entities[kind] = setup_entity(world);
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        for (uint32_t kind = 0; kind < KIND_COUNT; kind++) {
            must(quern_entity_add(world, entities[kind], kinds[kind], value_of(round + kind)));
            cr_assert_eq(archetype_of(entities[kind])->component_count, 1u);
            expect_value(entities[kind], kind, round + kind);
        }
        for (uint32_t kind = KIND_COUNT; kind-- > 0;) {
            must(quern_entity_remove(world, entities[kind], kinds[kind]));
            cr_assert_eq(archetype_of(entities[kind])->component_count, 0u);
        }
        assert_valid(world);
    }
    cr_assert_eq(edge_count(archetype_of(entities[0])), (uint32_t)QUERN__EDGE_COUNT);
}

/* Two edges leave one archetype: one adds a component, the other removes another component. */
Test(edges, add_and_remove_edges_are_cached_together)
{
    quern_entity entity = setup_entity(world);
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        must(quern_entity_add(world, entity, kinds[2], value_of(round)));
        const quern__archetype *between = archetype_of(entity);
        must(quern_entity_add(world, entity, kinds[3], value_of(round + 1)));
        expect_value(entity, 2, round);
        expect_value(entity, 3, round + 1);
        must(quern_entity_remove(world, entity, kinds[3]));
        expect_value(entity, 2, round);
        must(quern_entity_remove(world, entity, kinds[2]));
        cr_assert_eq(edge_count(between), round == 0 ? 0u : 2u,
                     "an edge has its place from the second time");
    }
}

Test(edges, cached_edges_do_not_hide_errors)
{
    quern_entity entity = setup_entity(world);
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        must(quern_entity_add(world, entity, kinds[0], value_of(round)));
        must_refuse(COMPONENT_PRESENT, world, quern_entity_add(world, entity, kinds[0], value_of(9)));
        must_refuse(COMPONENT_ABSENT, world, quern_entity_remove(world, entity, kinds[4]));
        must_refuse(UNKNOWN_COMPONENT, world,
                    quern_entity_add(world, entity, component_unregistered(kinds[0]), value_of(9)));
        must_refuse(UNKNOWN_COMPONENT, world,
                    quern_entity_remove(world, entity, component_of_other_world(kinds[0])));
        expect_value(entity, 0, round);
        must(quern_entity_remove(world, entity, kinds[0]));
    }
}

Test(edges, hooks_are_called_every_time)
{
    quern_entity entity = setup_entity(world);
    tracked value;
    tracked_construct(&value, 5, &counts);
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        must(quern_entity_add(world, entity, kinds[0], value_of(round)));
        if (round % 2 == 0)
            must(quern_entity_add(world, entity, hooked, &value));
        else
            must(quern_entity_set(world, entity, hooked, &value));
        const tracked *held = quern_entity_get(world, entity, hooked);
        cr_assert(tracked_is_live(held));
        cr_assert_eq(held->payload, 5u);
        must(quern_entity_remove(world, entity, kinds[0]));
        must(quern_entity_remove(world, entity, hooked));
        cr_assert_eq(tracked_live_count(&counts), 1u);
    }
    cr_assert_eq(edge_count(archetype_of(entity)), 1u, "the one without hooks");
    tracked_destroy(&value, &counts);
}

Test(edges, a_missing_value_is_zero_bytes_every_time)
{
    quern_entity entity = setup_entity(world);
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        must(quern_entity_add(world, entity, kinds[0], value_of(1)));
        must(quern_entity_remove(world, entity, kinds[0]));
        must(quern_entity_add(world, entity, kinds[0], NULL));
        const unsigned char *bytes = quern_entity_get(world, entity, kinds[0]);
        for (uint32_t i = 0; i < size_of_kind(0); i++)
            cr_assert_eq(bytes[i], 0u);
        must(quern_entity_remove(world, entity, kinds[0]));
    }
}

/* Uses every edge, removes the target archetypes, and creates others, which reuse their numbers and probably their
 * memory. */
Test(edges, edges_to_removed_archetypes_are_forgotten)
{
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        quern_entity entity = setup_entity(world);
        for (uint32_t repeat = 0; repeat < 3; repeat++)
            for (uint32_t kind = 0; kind < KIND_COUNT; kind++) {
                must(quern_entity_add(world, entity, kinds[kind], value_of(kind)));
                must(quern_entity_remove(world, entity, kinds[kind]));
            }
        const quern__archetype *empty = archetype_of(entity);
        cr_assert_eq(edge_count(empty), (uint32_t)QUERN__EDGE_COUNT);
        uint32_t removed_count;
        must(quern_world_remove_empty_archetypes(world, &removed_count));
        cr_assert_geq(removed_count, (uint32_t)KIND_COUNT);
        cr_assert_eq(edge_count(empty), 0u);
        quern_component two[] = {kinds[(round + 3) % KIND_COUNT], kinds[(round + 5) % KIND_COUNT]};
        must(quern_entity_destroy(world, setup_entity_with(world, two, 2)));
        for (uint32_t kind = KIND_COUNT; kind-- > 0;) {
            must(quern_entity_set(world, entity, kinds[kind], value_of(kind + round)));
            expect_value(entity, kind, kind + round);
        }
        assert_valid(world);
        must(quern_entity_destroy(world, entity));
    }
}

Test(edges, other_edges_stay_valid)
{
    quern_entity stays = setup_entity_with(world, &kinds[0], 1), entity = setup_entity(world);
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        must(quern_entity_add(world, entity, kinds[0], value_of(round)));
        cr_assert_eq(archetype_of(entity), archetype_of(stays));
        must(quern_entity_add(world, entity, kinds[6], value_of(round)));
        must(quern_entity_remove(world, entity, kinds[6]));
        must(quern_world_remove_empty_archetypes(world, NULL));
        expect_value(entity, 0, round);
        must(quern_entity_remove(world, entity, kinds[0]));
    }
}

/* The edge is cached, but each new chunk that it needs is refused. */
Test(edges, missing_memory_moves_nothing)
{
    static quern_entity entities[MANY];
    for (uint32_t i = 0; i < MANY; i++)
        entities[i] = setup_entity_with(world, &kinds[6], 1);
    uint32_t refused_count = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        if (i > 2) failing_allocator_fail_from(memory, 1);
        refusal before = refusal_begin(world);
        const quern_result result = i % 2 == 0
                                        ? quern_entity_add(world, entities[i], kinds[3], value_of(i))
                                        : quern_entity_set(world, entities[i], kinds[3], value_of(i));
        failing_allocator_heal(memory);
        if (result == QUERN_OK) continue;
        refusal_end_code(&before, result, QUERN_ERROR_OUT_OF_MEMORY, __LINE__, "add or set");
        cr_assert_not(quern_entity_has(world, entities[i], kinds[3]));
        refused_count++;
        must(quern_entity_set(world, entities[i], kinds[3], value_of(i)));
    }
    cr_assert_gt(refused_count, 0u);
    for (uint32_t i = 0; i < MANY; i++)
        expect_value(entities[i], 3, i);
}

/* ------------------------------------------------------------------------------------- set, missing */

Test(set_missing, adds_what_is_missing_and_replaces_what_is_not)
{
    static quern_entity entities[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        must(quern_entity_create(world, &entities[i]));
        must(quern_entity_set(world, entities[i], kinds[0], value_of(i)));
        must(quern_entity_set(world, entities[i], kinds[2], value_of(i + 1)));
        must(quern_entity_set(world, entities[i], kinds[0], value_of(i + 2)));
    }
    for (uint32_t i = 0; i < MANY; i++) {
        expect_value(entities[i], 0, i + 2);
        expect_value(entities[i], 2, i + 1);
    }
}

Test(set_missing, adds_tags_with_and_without_value)
{
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        quern_entity entity = setup_entity_with(world, &kinds[0], 1);
        for (uint32_t repeat = 0; repeat < 2; repeat++)
            must(quern_entity_set(world, entity, kinds[1], round % 2 == 0 ? NULL : value_of(1)));
        cr_assert(quern_entity_has(world, entity, kinds[1]));
        cr_assert_eq(archetype_of(entity)->component_count, 2u);
    }
}

Test(set_missing, passes_change_filters)
{
    quern_query *query = make_query(world, .terms = {quern_term_changed(quern_term_read(kinds[2]))});
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        quern_entity entity = setup_entity_with(world, &kinds[0], 1);
        must(quern_entity_set(world, entity, kinds[2], value_of(round)));
        uint32_t shown_count = 0;
        for (uint32_t look = 0; look < 2; look++) {
            quern_query_iterator it = quern_query_iterate(query);
            while (quern_query_next(&it))
                shown_count += it.view.count;
            must(it.result);
        }
        cr_assert_eq(shown_count, round + 1, "the chunk with all that came so far, and once");
    }
    quern_query_destroy(query);
}

Test(set_missing, cached_edges_do_not_hide_errors)
{
    quern_entity entities[ROUND_COUNT], dead = setup_entity(world);
    must(quern_entity_destroy(world, dead));
    for (uint32_t round = 0; round < ROUND_COUNT; round++) {
        entities[round] = setup_entity(world);
        must_refuse(NULL_ARGUMENT, world, quern_entity_set(world, entities[round], kinds[0], NULL));
        must_refuse(STALE_ENTITY, world, quern_entity_set(world, dead, kinds[0], value_of(1)));
        assert_refused(
            world, QUERN_ERROR_UNKNOWN_COMPONENT,
            quern_entity_set(world, entities[round], component_of_other_world(kinds[0]), value_of(1)));
        must_refuse(UNKNOWN_COMPONENT, world,
                    quern_entity_set(world, entities[round], (quern_component){0}, value_of(1)));
        must(quern_entity_set(world, entities[round], kinds[0], value_of(round)));
    }
}

/* ------------------------------------------------------------------------------------ destroy many */

/* Creates entities of three archetypes; the third has hooks. */
static void create_listed(quern_world *in, quern_entity *entities)
{
    for (uint32_t i = 0; i < MANY; i++) {
        const quern_component *components[] = {&kinds[0], &kinds[2], &hooked};
        entities[i] = setup_entity_with(in, components[i % 3], 1);
    }
}

/* Lists all numbers below MANY in mixed order, every seventh one twice, near or far apart. */
static uint32_t list_shuffled(uint32_t *numbers)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        numbers[count++] = i * 773 % MANY; /* 773 and MANY have no common factor */
        if (i % 7 == 0) {
            numbers[count] = numbers[count - 1 - (i % 2 == 0 ? 0 : i / 2)];
            count++;
        }
    }
    return count;
}

/* The list must leave the same rows and the same free slots, in the same order, as single calls. */
Test(destroy_list, agrees_with_single_calls)
{
    static quern_entity entities[MANY], twins[MANY], list[2 * MANY];
    static uint32_t numbers[2 * MANY];
    create_listed(world, entities);
    const quern_component own = kinds[0];
    quern_world *twin = setup_world();
    register_kinds(twin);
    create_listed(twin, twins);
    const uint32_t count = list_shuffled(numbers) - MANY / 3; /* some entities stay alive */
    for (uint32_t i = 0; i < count; i++) {
        list[i] = entities[numbers[i]];
        if (quern_entity_is_alive(twin, twins[numbers[i]]))
            must(quern_entity_destroy(twin, twins[numbers[i]]));
    }
    must(quern_entity_destroy_many(world, list, count));
    assert_valid(world);
    cr_assert_eq(quern_world_hash(world), quern_world_hash(twin));
    for (uint32_t i = 0; i < MANY; i++) {
        const quern_entity one = setup_entity_with(world, &own, 1);
        const quern_entity other = setup_entity_with(twin, &kinds[0], 1);
        cr_assert_eq(quern_entity_index(one), quern_entity_index(other));
    }
    quern_world_destroy(twin);
}

Test(destroy_list, wrong_handle_destroys_nothing)
{
    static quern_entity entities[MANY];
    create_listed(world, entities);
    const uint32_t places[] = {0, 7, 8, 15, 16, 17, MANY - 1};
    for (uint32_t i = 0; i < QUERN__COUNT_OF(places); i++) {
        const quern_entity good = entities[places[i]];
        const quern_entity bad[] = {quern_entity_null(), entity_of_other_world(good),
                                    entity_provisional(1)};
        const quern_result codes[] = {QUERN_ERROR_NULL_ENTITY, QUERN_ERROR_FOREIGN_ENTITY,
                                      QUERN_ERROR_PROVISIONAL_ENTITY};
        for (uint32_t k = 0; k < QUERN__COUNT_OF(bad); k++) {
            entities[places[i]] = bad[k];
            assert_refused(world, codes[k], quern_entity_destroy_many(world, entities, MANY));
        }
        entities[places[i]] = good;
    }
    must(quern_entity_destroy_many(world, entities, MANY));
}

Test(destroy_list, needs_no_memory)
{
    static quern_entity entities[MANY];
    create_listed(world, entities);
    failing_allocator_fail_from(memory, 1);
    must(quern_entity_destroy_many(world, entities, MANY));
    failing_allocator_heal(memory);
    cr_assert_eq(stats_of_world(world).entity_count, 0u);
}
