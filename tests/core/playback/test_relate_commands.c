/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Commands that relate and unrelate entities, and destroy related ones. */

#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <stdio.h>

static quern_relation parent, carrier, lock, ring;
static quern_component number;

static quern_relation add_relation(const quern_relation_def *def)
{
    quern_relation relation = {0};
    must(quern_relation_register(world, def, &relation));
    return relation;
}

static void open_types(void)
{
    number = setup_component(world, "number", 8, 8);
    parent = quern_world_parent(world);
    carrier = add_relation(&(quern_relation_def){
        .name = "carrier", .on_target_destroyed = QUERN_TARGET_UNRELATES, .levels = true});
    lock = add_relation(&(quern_relation_def){
        .name = "lock", .on_target_destroyed = QUERN_TARGET_REFUSES, .ordered = true});
    ring = add_relation(&(quern_relation_def){.name = "ring"});
}

static void open_world(void)
{
    world = setup_world();
    open_types();
}

TestSuite(relate_commands, .init = open_world, .fini = close_world);

static quern_commands *commands(void)
{
    return quern_world_commands(world);
}

static quern_flush_stats flush(void)
{
    quern_flush_stats stats;
    must(quern_world_flush(world));
    must(quern_world_get_flush_stats(world, &stats));
    assert_valid(world);
    return stats;
}

static quern_entity target_of(quern_entity source, quern_relation relation)
{
    return quern_entity_target(world, source, relation);
}

#define assert_target(source, relation, expected) \
    cr_assert_eq(target_of((source), (relation)).bits, (expected).bits)

static bool lives(quern_entity entity)
{
    return quern_entity_is_alive(world, entity);
}

static uint32_t level_of(quern_entity entity, quern_relation relation)
{
    const quern__record *record = quern__entities_find(&world->storage.entities, entity);
    return quern__relation_level(quern__relation_of(&world->storage, relation),
                                 quern__storage_archetype_of(&world->storage, record));
}

/* Returns the handle of the i-th create of the next sync point. No slot may be free. */
static quern_entity later(quern_entity last, uint32_t i)
{
    return (quern_entity){last.bits + i};
}

/* ------------------------------------------------------------------------------------------- relating */

Test(relate_commands, commands_take_effect_at_the_sync_point)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world);
    must(quern_commands_relate(commands(), a, parent, b));
    cr_assert(quern_entity_is_null(target_of(a, parent)));
    cr_assert_eq(flush().command_count, 1u);
    assert_target(a, parent, b);
    cr_assert_eq(level_of(a, parent), 1u);
    must(quern_commands_unrelate(commands(), a, parent));
    must(quern_commands_unrelate(commands(), b, parent));
    cr_assert_eq(flush().dropped_count, 0u, "who has no target needs not lose it");
    cr_assert(quern_entity_is_null(target_of(a, parent)));
    cr_assert_eq(level_of(a, parent), 0u);
    cr_assert_not(quern_entity_has(world, a, quern_relation_component(parent)));
}

Test(relate_commands, set_add_and_remove_of_the_component_relate_and_unrelate)
{
    const quern_component component = quern_relation_component(parent);
    const quern_entity a = setup_entity(world), b = setup_entity(world), c = setup_entity(world);
    must(quern_commands_set(commands(), a, component, &b));
    must(quern_commands_add(commands(), c, component, &a));
    flush();
    assert_target(a, parent, b);
    assert_target(c, parent, a);
    cr_assert_eq(level_of(c, parent), 2u);
    must(quern_commands_remove(commands(), a, component));
    flush();
    cr_assert(quern_entity_is_null(target_of(a, parent)));
    cr_assert_eq(level_of(c, parent), 1u);
}

Test(relate_commands, sources_and_targets_may_be_created_by_commands)
{
    const quern_entity last = setup_entity(world);
    const quern_entity a = record_entity(commands()), b = record_entity(commands());
    const uint64_t seven = 7;
    const quern_component list[] = {number, quern_relation_component(parent)};
    const quern_entity c = record_entity_with(commands(), list, (const void *[]){&seven, &b}, 2);
    must(quern_commands_relate(commands(), b, parent, a));
    must(quern_commands_relate(commands(), a, parent, last));
    must(quern_commands_relate(commands(), last, carrier, c));
    must(quern_commands_add(commands(), a, number, &seven));
    cr_assert_eq(flush().dropped_count, 0u);
    assert_target(later(last, 1), parent, last);
    assert_target(later(last, 2), parent, later(last, 1));
    assert_target(later(last, 3), parent, later(last, 2));
    assert_target(last, carrier, later(last, 3));
    cr_assert_eq(level_of(later(last, 3), parent), 3u);
    cr_assert_eq(*(const uint64_t *)quern_entity_get(world, later(last, 1), number), 7u);
}

/* The commands of the next callback follow directly in memory. */
static quern_entity shared_root;

static void record_child(quern_context *context)
{
    quern_commands *into = quern_context_commands(context);
    const quern_entity child = record_entity(into), below = record_entity(into);
    must(quern_commands_relate(into, below, parent, child));
    must(quern_commands_relate(into, child, parent, shared_root));
}

Test(relate_commands, commands_of_different_callbacks_are_independent)
{
    enum { SYSTEMS = 300 };
    static char names[SYSTEMS][8];
    shared_root = setup_entity(world);
    quern_schedule *schedule = setup_schedule(world);
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        snprintf(names[i], sizeof names[i], "s%u", i);
        make_system(schedule, names[i], NULL, .begin = record_child);
    }
    for (uint32_t frame = 1; frame <= 20; frame++) {
        must_run(schedule, NULL);
        assert_valid(world);
        cr_assert_eq(quern_entity_source_count(world, shared_root, parent), frame * SYSTEMS);
    }
}

Test(relate_commands, sources_are_ordered_by_their_commands)
{
    const quern_entity target = setup_entity(world), a = setup_entity(world), b = setup_entity(world);
    for (uint32_t i = 0; i < 2; i++) {
        must(quern_commands_relate(commands(), a, i == 0 ? parent : carrier, target));
        must(quern_commands_relate(commands(), b, i == 0 ? parent : carrier, target));
    }
    flush();
    cr_assert_eq(quern_entity_first_source(world, target, parent).bits, a.bits);
    cr_assert_eq(quern_entity_first_source(world, target, carrier).bits, b.bits, "it is not ordered");
    must(quern_commands_relate(commands(), a, parent, target));
    flush();
    cr_assert_eq(quern_entity_first_source(world, target, parent).bits, a.bits, "it keeps its place");
    must(quern_commands_unrelate(commands(), a, parent));
    must(quern_commands_relate(commands(), a, parent, target));
    flush();
    cr_assert_eq(quern_entity_first_source(world, target, parent).bits, b.bits);
}

/* --------------------------------------------------------------------------------------------- dropped */

Test(relate_commands, command_that_closes_a_cycle_is_dropped)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world);
    must(quern_commands_relate(commands(), a, parent, b));
    must(quern_commands_relate(commands(), b, parent, a));
    must(quern_commands_relate(commands(), a, ring, b));
    must(quern_commands_relate(commands(), b, ring, a));
    cr_assert_eq(flush().dropped_count, 1u);
    assert_target(a, parent, b);
    cr_assert(quern_entity_is_null(target_of(b, parent)));
    assert_target(a, ring, b);
    assert_target(b, ring, a);
    must(quern_commands_unrelate(commands(), a, parent));
    must(quern_commands_relate(commands(), b, parent, a));
    cr_assert_eq(flush().dropped_count, 0u, "it is in order");
    assert_target(b, parent, a);
}

/* Change filters see rows, which are the same as before. */
Test(relate_commands, relating_back_to_the_same_target_is_no_change)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world), c = setup_entity(world);
    must(quern_entity_relate(world, c, parent, a));
    const quern_term changed = quern_term_changed(quern_term_read(quern_relation_component(parent)));
    quern_query *query = setup_query(world, &changed, 1);
    for (uint32_t look = 0; look < 2; look++) {
        quern_query_iterator it = quern_query_iterate(query);
        cr_assert_eq(quern_query_next(&it), look == 0);
        cr_assert_eq(quern_query_next(&it), false);
        must(quern_commands_relate(commands(), c, parent, b));
        must(quern_commands_relate(commands(), c, parent, a));
        cr_assert_eq(flush().dropped_count, 0u);
        assert_target(c, parent, a);
    }
}

Test(relate_commands, relating_to_a_destroyed_target_is_dropped)
{
    const quern_entity last = setup_entity(world), a = setup_entity(world), b = setup_entity(world);
    const quern_component list[] = {quern_relation_component(parent)};
    (void)last;
    must(quern_commands_destroy(commands(), b));
    must(quern_commands_relate(commands(), a, parent, b));
    must(quern_commands_relate(commands(), b, parent, a));
    const quern_entity c = record_entity_with(commands(), list, (const void *[]){&b}, 1);
    must(quern_commands_relate(commands(), a, carrier, c));
    cr_assert_eq(flush().dropped_count, 3u);
    cr_assert(quern_entity_is_null(target_of(a, parent)));
    cr_assert(quern_entity_is_null(target_of(later(b, 1), parent)));
    cr_assert_not(quern_entity_has(world, later(b, 1), list[0]));
    assert_target(a, carrier, later(b, 1));
}

/* Recorded before the exclusive system destroys the entities. */
Test(relate_commands, commands_on_entities_destroyed_before_are_dropped)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world);
    must(quern_commands_relate(commands(), a, parent, b));
    must(quern_commands_relate(commands(), b, parent, a));
    const quern_component list[] = {quern_relation_component(parent)};
    cr_assert_not(quern_entity_is_null(record_entity_with(commands(), list, (const void *[]){&b}, 1)));
    must(quern_entity_destroy(world, b));
    const quern_flush_stats stats = flush();
    cr_assert_eq(stats.dropped_count, 3u);
    cr_assert_eq(stats.created_count, 1u);
    cr_assert(quern_entity_is_null(target_of(a, parent)));
    const quern_entity created = {b.bits + (1ull << 32)}; /* reuses the slot */
    cr_assert(lives(created));
    cr_assert_not(quern_entity_has(world, created, list[0]));
}

/* ------------------------------------------------------------------------------------------ destroying */

Test(relate_commands, destroy_cascades_to_descendants)
{
    quern_entity chain[30];
    for (uint32_t i = 0; i < 30; i++) {
        chain[i] = setup_entity(world);
        if (i > 0) must(quern_entity_relate(world, chain[i], i % 2 != 0 ? parent : ring, chain[i - 1]));
    }
    const quern_entity loose = setup_entity(world);
    must(quern_entity_relate(world, loose, carrier, chain[20]));
    must(quern_commands_set(commands(), chain[25], number, &(uint64_t){1}));
    must(quern_commands_destroy(commands(), chain[10]));
    must(quern_commands_set(commands(), chain[15], number, &(uint64_t){1}));
    must(quern_commands_destroy(commands(), chain[28]));
    const quern_flush_stats stats = flush();
    cr_assert_eq(stats.destroyed_count, 20u);
    cr_assert_eq(stats.dropped_count, 0u);
    for (uint32_t i = 0; i < 30; i++)
        cr_assert_eq(lives(chain[i]), i < 10);
    cr_assert(quern_entity_is_null(target_of(loose, carrier)));
    cr_assert_eq(quern_entity_source_count(world, chain[9], ring), 0u);
}

Test(relate_commands, destroy_cascades_to_sources_of_earlier_commands)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world), c = setup_entity(world);
    must(quern_entity_relate(world, a, parent, b));
    must(quern_commands_relate(commands(), a, parent, c));
    must(quern_commands_relate(commands(), record_entity(commands()), parent, b));
    must(quern_commands_destroy(commands(), b));
    const quern_flush_stats stats = flush();
    cr_assert_eq(stats.created_count, 1u);
    cr_assert_eq(stats.destroyed_count, 2u, "what was created below it goes with it");
    assert_target(a, parent, c);
    cr_assert_not(lives(later(c, 1)));
}

Test(relate_commands, destroy_is_refused_by_living_sources)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world), c = setup_entity(world);
    must(quern_entity_relate(world, b, parent, a));
    must(quern_entity_relate(world, c, lock, b));
    must(quern_commands_destroy(commands(), a));
    must(quern_commands_set(commands(), a, number, &(uint64_t){1}));
    quern_flush_stats stats = flush();
    cr_assert_eq(stats.dropped_count, 1u);
    cr_assert_eq(stats.destroyed_count, 0u);
    cr_assert(lives(a) && lives(b) && quern_entity_has(world, a, number));
    must(quern_commands_relate(commands(), c, parent, b));
    must(quern_commands_destroy(commands(), a));
    stats = flush();
    cr_assert_eq(stats.destroyed_count, 3u, "now it ends, too");
}

Test(relate_commands, destroy_of_a_new_entity_may_be_refused)
{
    const quern_entity last = setup_entity(world);
    const quern_entity fresh = record_entity(commands());
    must(quern_commands_relate(commands(), last, lock, fresh));
    must(quern_commands_destroy(commands(), fresh));
    must(quern_commands_set(commands(), fresh, number, &(uint64_t){3}));
    cr_assert_eq(flush().dropped_count, 1u);
    assert_target(last, lock, later(last, 1));
    cr_assert_eq(*(const uint64_t *)quern_entity_get(world, later(last, 1), number), 3u);
}

Test(relate_commands, chain_of_a_hundred_thousand_is_related)
{
    enum { DEPTH = 100000 };
    const quern_entity root = setup_entity(world);
    quern_entity before = root;
    for (uint32_t i = 0; i < DEPTH; i++) {
        const quern_component list[] = {quern_relation_component(parent)};
        before = record_entity_with(commands(), list, (const void *[]){&before}, 1);
    }
    flush();
    cr_assert_eq(level_of(later(root, DEPTH), parent), (uint32_t)QUERN_MAX_RELATION_LEVEL);
    must(quern_commands_unrelate(commands(), later(root, 5), parent));
    flush();
    cr_assert_eq(level_of(later(root, 5), parent), 0u);
    cr_assert_eq(level_of(later(root, 15), parent), 10u);
    must(quern_commands_relate(commands(), later(root, 5), parent, root));
    must(quern_commands_destroy(commands(), root));
    cr_assert_eq(flush().destroyed_count, DEPTH + 1u);
    cr_assert_eq(stats_of_world(world).entity_count, 0u);
}

/* ------------------------------------------------------------------------------------------- refusals */

static quern_component many[QUERN_MAX_ENTITY_COMPONENTS];

static void open_many(void)
{
    static char names[QUERN_MAX_ENTITY_COMPONENTS][8];
    for (uint32_t i = 0; i < QUERN_MAX_ENTITY_COMPONENTS; i++) {
        snprintf(names[i], sizeof names[i], "m%u", i);
        many[i] = setup_tag(world, names[i]);
    }
}

/* All commands on a refused entity are dropped, including those that relate it or relate others to it. */
Test(relate_commands, relating_a_refused_entity_is_dropped)
{
    open_many();
    const quern_entity a = setup_entity(world), last = setup_entity(world);
    quern_commands *into = commands();
    const quern_entity full = record_entity_with(into, many, (const void *[QUERN_MAX_ENTITY_COMPONENTS]){0},
                                                 QUERN_MAX_ENTITY_COMPONENTS);
    const quern_entity child = record_entity(into);
    must(quern_commands_relate(into, child, parent, full));
    must(quern_commands_relate(into, child, carrier, a));
    must(quern_commands_relate(into, full, parent, a)); /* one component too many */
    must(quern_commands_relate(into, last, parent, full));
    cr_assert_eq(quern_world_flush(world), QUERN_ERROR_TOO_MANY_COMPONENTS);
    assert_valid(world);
    quern_flush_stats stats;
    must(quern_world_get_flush_stats(world, &stats));
    cr_assert_eq(stats.dropped_count, QUERN_MAX_ENTITY_COMPONENTS + 3u);
    cr_assert_not(lives(later(last, 1)));
    cr_assert(lives(later(last, 2)));
    cr_assert(quern_entity_is_null(target_of(later(last, 2), parent)));
    assert_target(later(last, 2), carrier, a);
    cr_assert(quern_entity_is_null(target_of(last, parent)));
    cr_assert_eq(quern_entity_source_count(world, a, parent), 0u);
}

Test(relate_commands, refused_entity_still_gets_a_new_level)
{
    open_many();
    const quern_entity above = setup_entity(world), top = setup_entity(world);
    const quern_entity full = setup_entity_with(world, many, QUERN_MAX_ENTITY_COMPONENTS - 2);
    must(quern_entity_relate(world, full, parent, above));
    must(quern_commands_relate(commands(), full, parent, top));
    must(quern_commands_add(commands(), full, number, NULL)); /* one component too many */
    must(quern_commands_relate(commands(), above, parent, top));
    cr_assert_eq(quern_world_flush(world), QUERN_ERROR_TOO_MANY_COMPONENTS);
    assert_valid(world);
    assert_target(full, parent, above);
    assert_target(above, parent, top);
    cr_assert_eq(level_of(full, parent), 2u);
    cr_assert_not(quern_entity_has(world, full, number));
}

/* -------------------------------------------------------------------------------------------- misuse */

Test(relate_commands, invalid_commands_are_refused_when_recorded)
{
    const quern_entity a = setup_entity(world), dead = setup_entity(world);
    must(quern_entity_destroy(world, dead));
    captured_reports reports;
    capture_reports(&reports);
    quern_commands *into = commands();
    const quern_component component = quern_relation_component(parent);
    const quern_component tag = {component.bits + 1};
    const quern_entity null = quern_entity_null();
    must_refuse(NULL_ARGUMENT, world, quern_commands_relate(NULL, a, parent, a));
    must_refuse(NULL_ARGUMENT, world, quern_commands_unrelate(NULL, a, parent));
    must_refuse(INVALID_ARGUMENT, world, quern_commands_relate(into, a, parent, a));
    must_refuse(NULL_ENTITY, world, quern_commands_relate(into, a, parent, null));
    must_refuse(NULL_ENTITY, world, quern_commands_relate(into, null, parent, a));
    must_refuse(STALE_ENTITY, world, quern_commands_relate(into, a, parent, dead));
    must_refuse(STALE_ENTITY, world, quern_commands_unrelate(into, dead, parent));
    must_refuse(FOREIGN_ENTITY, world, quern_commands_relate(into, a, parent, entity_of_other_world(a)));
    must_refuse(PROVISIONAL_ENTITY, world, quern_commands_relate(into, a, parent, entity_provisional(3)));
    const quern_relation no_relations[] = {{0}, {number.bits}, {tag.bits}};
    for (uint32_t i = 0; i < COUNT_OF(no_relations); i++) {
        must_refuse(INVALID_ARGUMENT, world, quern_commands_relate(into, a, no_relations[i], a));
        must_refuse(INVALID_ARGUMENT, world, quern_commands_unrelate(into, a, no_relations[i]));
    }
    must_refuse(INVALID_ARGUMENT, world, quern_commands_add(into, a, component, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_commands_add(into, a, tag, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_commands_remove(into, a, tag));
    const void *const none[] = {NULL}, *const gone[] = {&dead};
    assert_refused_value(world, !quern_entity_is_null(record_entity_with(into, &component, none, 1)));
    assert_refused_value(world, !quern_entity_is_null(record_entity_with(into, &component, gone, 1)));
    cr_assert_eq(flush().command_count, 0u, "nothing was recorded");
}

/* ------------------------------------------------------------------------------------- out of memory */

/* Records commands of all kinds, in an early stream that was retained and in a later one. */
static void record_much(const quern_entity *living, uint32_t round)
{
    quern_commands *into = commands();
    quern_entity before = living[round];
    for (uint32_t i = 0; i < 60; i++) {
        const quern_component list[] = {quern_relation_component(i % 3 == 0 ? parent : ring), number};
        before = record_entity_with(into, list, (const void *[]){&before, &(uint64_t){i}}, 2);
        cr_assert_not(quern_entity_is_null(before));
        must(quern_commands_relate(into, before, carrier, living[10 + i % 8]));
        must(quern_commands_relate(into, living[20 + i], parent, before));
    }
    must(quern_commands_unrelate(into, living[90 + round], parent));
    must(quern_commands_destroy(into, living[12 + round]));
    must(quern_commands_destroy(into, living[95]));
    must(quern_commands_destroy(into, living[98]));
    must(quern_commands_destroy(into, living[30 + round]));
}

static void open_failing(failing_allocator *memory, quern_entity *living, uint32_t count)
{
    world = NULL;
    must(quern_world_create(&(quern_world_def){.allocator = failing_allocator_interface(memory)}, &world));
    open_types();
    for (uint32_t i = 0; i < count; i++)
        living[i] = setup_entity(world);
    for (uint32_t i = 91; i < count; i++)
        must(quern_entity_relate(world, living[i], parent, living[i - 1]));
    must(quern_entity_relate(world, living[1], lock, living[98]));
}

/* The first sync point fails at each allocation in turn. Its retained commands are applied with later ones. */
Test(relate_commands, commands_without_memory_are_retained_and_change_nothing, .timeout = 300)
{
    enum { LIVING = 120 };
    quern_entity living[LIVING];
    uint64_t expected = 0, failed_count = 0, failing = 0;
    quern_world *const own = world;
    for (; failing == 0 || failed_count > 0; failing++) {
        failing_allocator *memory = failing_allocator_create();
        open_failing(memory, living, LIVING);
        record_much(living, 0);
        const uint64_t before = quern_world_hash(world);
        if (failing > 0)
            failing_allocator_fail_at(memory, failing);
        else
            failing_allocator_fail_from(memory, 1);
        const quern_result result = quern_world_flush(world);
        failed_count = failing_allocator_failed_count(memory);
        failing_allocator_heal(memory);
        cr_assert_eq(result, failed_count > 0 ? QUERN_ERROR_OUT_OF_MEMORY : QUERN_OK);
        assert_valid(world);
        if (result != QUERN_OK) {
            cr_assert_eq(quern_world_hash(world), before, "allocation %llu", (unsigned long long)failing);
            record_much(living, 1);
            flush();
            if (expected == 0) expected = quern_world_hash(world);
            cr_assert_eq(quern_world_hash(world), expected, "allocation %llu", (unsigned long long)failing);
        }
        quern_world_destroy(world);
        failing_allocator_close(memory);
        failed_count += failing == 0;
    }
    cr_assert_gt(failing, 30u, "%llu allocations", (unsigned long long)failing);
    world = own;
}

/* ------------------------------------------------------------------------------ several targets per source */

static quern_relation add_many(const char *name, quern_target_policy policy)
{
    return add_relation(&(quern_relation_def){.name = name, .on_target_destroyed = policy, .many = true});
}

static uint32_t target_count(quern_entity source, quern_relation relation)
{
    cr_assert_eq(quern_entity_has(world, source, quern_relation_component(relation)),
                 quern_entity_target_count(world, source, relation) > 0);
    return quern_entity_target_count(world, source, relation);
}

Test(relate_commands, edges_are_added_and_removed_in_order)
{
    const quern_relation likes = add_many("likes", QUERN_TARGET_UNRELATES);
    const quern_entity a = setup_entity(world), b = setup_entity(world);
    must(quern_commands_relate(commands(), a, likes, b));
    const quern_entity made = record_entity(commands());
    must(quern_commands_relate(commands(), made, likes, a));
    must(quern_commands_relate(commands(), made, likes, b));
    must(quern_commands_relate(commands(), a, likes, made));
    must(quern_commands_unrelate_from(commands(), made, likes, a));
    must(quern_commands_unrelate_from(commands(), b, likes, a)); /* no effect */
    cr_assert_eq(flush().dropped_count, 0u);
    cr_assert_eq(target_count(a, likes), 2u);
    cr_assert_eq(target_count(b, likes), 0u);
    cr_assert_eq(quern_entity_source_count(world, b, likes), 2u);
    cr_assert_eq(quern_entity_source_count(world, a, likes), 0u);
    must(quern_commands_unrelate(commands(), a, likes));
    must(quern_commands_relate(commands(), a, likes, b));
    must(quern_commands_unrelate(commands(), b, likes));
    flush();
    cr_assert_eq(target_count(a, likes), 1u);
    must(quern_commands_remove(commands(), a, quern_relation_component(likes)));
    flush();
    cr_assert_eq(target_count(a, likes), 0u);
    cr_assert_eq(stats_of_world(world).edge_count, 1u);
}

Test(relate_commands, one_target_of_a_single_relation_is_removed_if_the_source_has_it)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world), c = setup_entity(world);
    must(quern_entity_relate(world, a, ring, b));
    must(quern_commands_unrelate_from(commands(), a, ring, c));
    flush();
    assert_target(a, ring, b);
    must(quern_commands_unrelate_from(commands(), a, ring, b));
    flush();
    assert_target(a, ring, quern_entity_null());
}

Test(relate_commands, tags_of_edges_are_not_added_by_commands)
{
    const quern_relation likes = add_many("likes", QUERN_TARGET_UNRELATES);
    const quern_component tag = quern_relation_component(likes);
    const quern_entity a = setup_entity(world), b = setup_entity(world);
    const void *const values[] = {&b};
    must_refuse(INVALID_ARGUMENT, world, quern_commands_set(commands(), a, tag, &b));
    must_refuse(INVALID_ARGUMENT, world, quern_commands_add(commands(), a, tag, NULL));
    must_refuse(INVALID_ARGUMENT, world, quern_commands_add(commands(), a, tag, &b));
    assert_refused_value(world, record_entity_with(commands(), &tag, values, 1).bits != 0);
    must_refuse(INVALID_ARGUMENT, world, quern_commands_relate(commands(), a, likes, a));
    must_refuse(INVALID_ARGUMENT, world,
                quern_commands_unrelate_from(commands(), a, (quern_relation){0}, b));
    flush();
    cr_assert_eq(target_count(a, likes), 0u);
}

Test(relate_commands, edges_to_ended_entities_are_dropped)
{
    const quern_relation likes = add_many("likes", QUERN_TARGET_UNRELATES);
    const quern_relation needs = add_many("needs", QUERN_TARGET_REFUSES);
    const quern_relation part = add_many("part", QUERN_TARGET_DESTROYS_SOURCE);
    const quern_entity a = setup_entity(world), b = setup_entity(world), c = setup_entity(world);
    must(quern_commands_relate(commands(), a, needs, c));
    must(quern_commands_destroy(commands(), c)); /* refused */
    must(quern_commands_relate(commands(), a, likes, b));
    must(quern_commands_relate(commands(), c, part, b));
    must(quern_commands_unrelate(commands(), a, needs));
    must(quern_commands_destroy(commands(), b)); /* and c */
    must(quern_commands_relate(commands(), a, likes, b));
    must(quern_commands_relate(commands(), b, likes, a));
    cr_assert_eq(flush().dropped_count, 3u);
    cr_assert(lives(a) && !lives(b) && !lives(c));
    cr_assert_eq(target_count(a, likes), 0u);
    cr_assert_eq(stats_of_world(world).edge_count, 0u);
}
