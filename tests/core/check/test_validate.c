/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/world_internal.h"
#include "tests/support/fixture.h"

#include <string.h>

/* quern_world_validate detects each kind of damage. Also states that only internal functions can produce. */

static quern_component number;
static quern_entity entities[3000];

enum { COUNT = sizeof entities / sizeof entities[0] };

static void open_world(void)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    for (uint32_t i = 0; i < COUNT; i++)
        entities[i] = setup_entity_with(world, &number, 1);
    for (uint32_t i = COUNT - 10; i < COUNT; i++)
        must(quern_entity_destroy(world, entities[i]));
    assert_valid(world);
}

TestSuite(validate, .init = open_world, .fini = close_world);

static quern__archetype *archetype_of_numbers(void)
{
    quern__record *record = quern__entities_find(&world->storage.entities, entities[0]);
    return quern__storage_archetype_of(&world->storage, record);
}

/* Damages size_bytes at `at`, checks that validation detects it, and repairs the damage. */
static void assert_seen(void *at, size_t size_bytes, const char *what)
{
    unsigned char saved[16];
    memcpy(saved, at, size_bytes);
    for (size_t i = 0; i < size_bytes; i++)
        ((unsigned char *)at)[i] ^= 1;
    refusal before = refusal_begin(NULL);
    quern_result result = quern_world_validate(world);
    memcpy(at, saved, size_bytes);
    cr_assert_eq(result, QUERN_ERROR_CORRUPT, "damage to %s is not seen", what);
    cr_assert(refusal_has_message(&before));
    assert_valid(world);
}

#define assert_damage_seen(object) assert_seen(&(object), sizeof(object), #object)

Test(validate, detects_damaged_chunks)
{
    quern__archetype *archetype = archetype_of_numbers();
    cr_assert_gt(archetype->chunk_count, 2u);
    const quern__chunk *chunk = quern__slot_chunk(&archetype->slots[1]);
    quern__slab_tables *tables = quern__slab_tables_of((uintptr_t)chunk);
    assert_damage_seen(tables->archetypes[quern__location_in_slab((uintptr_t)chunk)]);
    assert_damage_seen(tables->indices[quern__location_in_slab((uintptr_t)chunk)]);
    assert_damage_seen(archetype->slots[0].row_count);
    assert_damage_seen(archetype->slots[archetype->chunk_count - 1].row_count);
    assert_damage_seen(archetype->chunk_count);
    assert_damage_seen(archetype->last_slot);
    assert_damage_seen(archetype->index);
    quern_entity *handles = quern__archetype_entities(archetype, chunk);
    assert_damage_seen(handles[0]);
    assert_damage_seen(handles[archetype->shape.row_capacity - 1]);
}

Test(validate, detects_damaged_records)
{
    quern__entities *slots = &world->storage.entities;
    quern__record *alive = quern__entities_record(slots, 5),
                  *dead = quern__entities_record(slots, COUNT - 1);
    assert_damage_seen(alive->location);
    assert_damage_seen(alive->handle_high);
    assert_damage_seen(alive->archetype_number);
    assert_damage_seen(dead->location);
    assert_damage_seen(dead->archetype_number);
}

Test(validate, detects_damaged_counts_of_absent_records)
{
    for (uint32_t i = 0; i < COUNT; i++)
        if (quern_entity_is_alive(world, entities[i])) (void)quern_entity_destroy(world, entities[i]);
    quern__entities *slots = &world->storage.entities;
    must(quern_world_trim(world));
    cr_assert_eq(slots->absent_count, slots->slot_count);
    assert_damage_seen(slots->absent_count);
    assert_damage_seen(slots->slot_count);
    assert_damage_seen(slots->first_free);
    assert_damage_seen(slots->absent_highs.items[0]);
}

Test(validate, detects_damaged_counts)
{
    quern__entities *slots = &world->storage.entities;
    assert_damage_seen(slots->free_count);
    assert_damage_seen(slots->retired_count);
    assert_damage_seen(slots->slot_count);
    assert_damage_seen(slots->first_free);
    assert_damage_seen(world->storage.slabs.free_count);
    assert_damage_seen(world->storage.slabs.holders.items[0]);
    assert_damage_seen(world->storage.slabs.slab_count);
}

/* ------------------------------------------------------------------------------------------- states */

Test(validate, world_with_retired_slots_is_valid)
{
    uint32_t slot = quern_entity_index(entities[0]);
    must(quern_entity_destroy(world, entities[0]));
    quern__entities_record(&world->storage.entities, slot)->handle_high |= QUERN__MAX_GENERATION;
    quern_entity last_life = setup_entity_with(world, &number, 1);
    cr_assert_eq(quern_entity_generation(last_life), 0xFFFFFFu);
    uint64_t before = quern_world_hash(world);
    must(quern_entity_destroy(world, last_life));
    cr_assert_eq(stats_of_world(world).retired_count, 1u);
    cr_assert_neq(quern_world_hash(world), before);
    cr_assert_not(quern_entity_is_alive(world, last_life));
    for (uint32_t i = 0; i < 20; i++)
        cr_assert_neq(quern_entity_index(setup_entity(world)), slot);
    must_refuse(STALE_ENTITY, world, quern_entity_destroy(world, last_life));
}

static void check_locked_entities(void)
{
    uint64_t value = 1;
    quern_entity entity = entities[0], created;
    quern_result expected = QUERN_ERROR_WORLD_LOCKED;
    assert_refused(world, expected, quern_entity_create(world, &created));
    assert_refused(world, expected, quern_entity_create_with(world, &number, NULL, 1, &created));
    assert_refused(world, expected, quern_entity_destroy(world, entity));
    assert_refused(world, expected, quern_entity_add(world, entity, number, &value));
    assert_refused(world, expected, quern_entity_remove(world, entity, number));
    assert_refused(world, expected, quern_entity_set(world, entity, number, &value));
    assert_refused_value(world, quern_entity_get(world, entity, number));
    assert_refused_value(world, quern_entity_has(world, entity, number));
}

static void check_locked_definitions(quern_query *query)
{
    quern_component_def component_def = {.name = "late"};
    quern_resource_def resource_def = {.name = "late", .size_bytes = 4};
    quern_query_def query_def = {.terms = {quern_term_read(number)}};
    quern_component component;
    quern_resource resource;
    quern_query *created;
    quern_result expected = QUERN_ERROR_WORLD_LOCKED;
    assert_refused(world, expected, quern_component_register(world, &component_def, &component));
    assert_refused(world, expected, quern_resource_register(world, &resource_def, &resource));
    assert_refused(world, expected, quern_query_create(world, &query_def, &created));
    assert_refused_value(world, quern_query_count(query));
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert_eq(it.result, expected);
    cr_assert_not(quern_query_next(&it));
}

Test(validate, locked_world_refuses_calls_that_modify_it)
{
    captured_reports reports;
    capture_reports(&reports);
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    world->locked = true;
    check_locked_entities();
    check_locked_definitions(query);
    quern_world_destroy(world);
    cr_assert_eq(reports.log_count, 1u, "destroying it must be refused, and said");
    world->locked = false;
}

static void make_tags(quern_component *out_tags)
{
    char name[] = "a";
    for (uint32_t i = 0; i < 17; i++, name[0]++)
        out_tags[i] = setup_tag(world, name);
}

/* Creates the archetype of a set of the first 16 tags by an internal function, so that it gets no chunk. */
static quern_result make_archetype(const quern_component *tags, uint32_t mask)
{
    uint16_t set[16];
    uint32_t count = 0;
    for (uint32_t i = 0; i < 16; i++)
        if (mask & 1u << i) set[count++] = (uint16_t)quern__component_index(tags[i]);
    quern__archetype *archetype;
    return quern__storage_ensure_archetype(&world->storage, set, count, &archetype);
}

static void make_all_archetypes(quern_component *out_tags)
{
    make_tags(out_tags);
    for (uint32_t mask = 1; mask < 1u << 16; mask++) {
        quern_result result = make_archetype(out_tags, mask);
        if (result == QUERN_OK) continue;
        cr_assert_eq(result, QUERN_ERROR_LIMIT, "%s", quern_error_message());
    }
    cr_assert_eq(stats_of_world(world).archetype_count, (uint32_t)QUERN_MAX_ARCHETYPES);
}

/* Creates archetypes from `mask` on until the world has `count`. Returns the next mask. */
static uint32_t make_archetypes_up_to(const quern_component *tags, uint32_t mask, uint32_t count)
{
    for (; world->storage.archetypes.count < count; mask++)
        must(make_archetype(tags, mask));
    return mask;
}

Test(validate, many_archetypes_are_logged_once, .timeout = 300)
{
    captured_reports reports;
    quern_component tags[17];
    uint32_t removed_count;
    make_tags(tags);
    capture_reports(&reports);
    for (uint32_t round = 1; round <= 2; round++) {
        uint32_t mask = make_archetypes_up_to(tags, 1, QUERN_MAX_ARCHETYPES / 4 * 3 - 1);
        cr_assert_eq(reports.log_count, round - 1);
        mask = make_archetypes_up_to(tags, mask, QUERN_MAX_ARCHETYPES / 4 * 3);
        cr_assert_eq(reports.log_count, round);
        cr_assert_not_null(strstr(reports.last, "49152 archetypes"));
        cr_assert_not_null(strstr(reports.last, "QUERN_MAX_ARCHETYPES"));
        cr_assert_not_null(strstr(reports.last, "quern_world_remove_empty_archetypes"));
        make_archetypes_up_to(tags, mask, QUERN_MAX_ARCHETYPES / 4 * 3 + 100);
        cr_assert_eq(reports.log_count, round, "once");
        must(quern_world_remove_empty_archetypes(world, &removed_count));
    }
    cr_assert_eq(reports.assert_count, 0u, "a warning is no violation");
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
}

Test(validate, sixty_five_thousand_archetypes_are_the_limit)
{
    quern_component tags[17];
    quern_entity created;
    make_all_archetypes(tags);
    quern_result expected = QUERN_ERROR_LIMIT;
    assert_refused(world, expected, quern_entity_add(world, entities[0], tags[16], NULL));
    assert_refused(world, expected, quern_entity_create_with(world, &tags[16], NULL, 1, &created));
    cr_assert_not_null(strstr(quern_error_message(), "QUERN_MAX_ARCHETYPES"));
    setup_entity_with(world, &tags[3], 1);
    quern_query *query = setup_query(world, (quern_term[]){quern_term_with(tags[3])}, 1);
    cr_assert_eq(quern_query_count(query), 1u);
}
