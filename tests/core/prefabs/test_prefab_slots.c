/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "tests/core/prefabs/prefab_scene.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <string.h>

/* Slots: the root of an instance has the handle of a part. */

static void close_this_scene(void)
{
    close_scene(&it);
}

TestSuite(prefab_slots, .init = open_scene, .fini = close_this_scene);

typedef struct tank {
    quern_entity hull, turret, barrel;
    quern_component barrel_slot, turret_slot;
    quern_prefab prefab;
} tank;

static quern_entity child_of(quern_entity parent)
{
    const quern_component list[] = {it.number, quern_relation_component(it.parent)};
    const void *const values[] = {NULL, &parent};
    quern_entity entity;
    must(quern_entity_create_with(it.world, list, values, 2, &entity));
    return entity;
}

static tank build_tank(void)
{
    tank of = {.hull = setup_entity_with(it.world, &it.number, 1)};
    of.turret = child_of(of.hull);
    of.barrel = child_of(of.turret);
    must(quern_prefab_slot_register(it.world, "turret", &of.turret_slot));
    must(quern_prefab_slot_register(it.world, "barrel", &of.barrel_slot));
    must(quern_entity_set(it.world, of.hull, of.barrel_slot, &of.barrel));
    must(quern_entity_set(it.world, of.hull, of.turret_slot, &of.turret));
    must(quern_prefab_capture(it.world, of.hull, &of.prefab));
    return of;
}

Test(prefab_slots, each_instance_knows_its_own_parts)
{
    const tank of = build_tank();
    quern_entity roots[5], members[15];
    must(quern_prefab_spawn_many(it.world, of.prefab, 5, NULL, roots, members));
    for (uint32_t i = 0; i < 5; i++) {
        cr_assert_eq(quern_prefab_part(it.world, roots[i], of.turret_slot).bits, members[3 * i + 1].bits);
        cr_assert_eq(quern_prefab_part(it.world, roots[i], of.barrel_slot).bits, members[3 * i + 2].bits);
    }
    cr_assert_eq(quern_prefab_find_slot(it.world, of.prefab, of.turret_slot), 1);
    cr_assert_eq(quern_prefab_find_slot(it.world, of.prefab, of.barrel_slot), 2);
}

Test(prefab_slots, a_part_stays_when_it_moves_and_is_null_when_it_is_destroyed)
{
    const tank of = build_tank();
    quern_entity root, members[3];
    must(quern_prefab_spawn_many(it.world, of.prefab, 1, NULL, &root, members));
    must(quern_entity_set_name(it.world, members[2], "gun"));
    must(quern_entity_unrelate(it.world, members[2], it.parent));
    cr_assert_eq(quern_prefab_part(it.world, root, of.barrel_slot).bits, members[2].bits);
    must(quern_entity_destroy(it.world, members[2]));
    cr_assert(quern_entity_is_null(quern_prefab_part(it.world, root, of.barrel_slot)));
    cr_assert_eq(quern_prefab_part(it.world, root, of.turret_slot).bits, members[1].bits);
}

Test(prefab_slots, parts_are_found_by_command)
{
    const tank of = build_tank();
    quern_commands *commands = quern_world_commands(it.world);
    quern_entity root;
    must(quern_commands_spawn(commands, of.prefab, NULL, &root));
    const uint32_t number = quern_prefab_find_slot(it.world, of.prefab, of.barrel_slot);
    cr_assert_eq(number, 2);
    const quern_entity barrel = quern_commands_spawned_member(commands, of.prefab, root, number);
    must(quern_commands_add(commands, barrel, it.frozen, NULL));
    must(quern_commands_add(commands, root, it.frozen, NULL));
    must(quern_commands_spawn(commands, of.prefab, NULL, &root)); /* the fast path */
    must(quern_world_flush(it.world));
    const quern_term terms[] = {quern_term_read(of.barrel_slot), quern_term_with(it.frozen)};
    quern_query *query = setup_query(it.world, terms, 2);
    uint32_t count = 0;
    for (quern_query_iterator at = quern_query_iterate(query); quern_query_next(&at);)
        for (uint32_t i = 0; i < at.view.count; i++, count++) {
            const quern_entity *parts = quern_view_read(&at.view, 0);
            cr_assert(quern_entity_has(it.world, parts[i], it.frozen));
            cr_assert_eq(parts[i].bits,
                         quern_prefab_part(it.world, at.view.entities[i], of.barrel_slot).bits);
        }
    cr_assert_eq(count, 1);
    quern_query_destroy(query);
}

Test(prefab_slots, only_components_with_one_handle_are_slots)
{
    const tank of = build_tank();
    const quern_component wrong[] = {it.pair, it.frozen, quern_relation_component(it.parent)};
    for (uint32_t i = 0; i < 3; i++) {
        assert_refused_value(it.world,
                             !quern_entity_is_null(quern_prefab_part(it.world, of.hull, wrong[i])));
        assert_refused_value(it.world,
                             quern_prefab_find_slot(it.world, of.prefab, wrong[i]) != QUERN_NO_MEMBER);
    }
    quern_type_info info;
    must(quern_component_get_info(it.world, of.barrel_slot, &info));
    cr_assert(info.is_hidden);
}

Test(prefab_slots, members_are_found_behind_unnamed_ones)
{
    const quern_prefab_member_def members[] = {{0}, {.parent = 0}, {.parent = 0, .name = "seat"}};
    quern_prefab prefab;
    must(quern_prefab_create(it.world, members, 3, &prefab));
    cr_assert_eq(quern_prefab_find_member(it.world, prefab, "seat"), 2u);
}

Test(prefab_slots, wrong_calls_are_refused)
{
    const tank of = build_tank();
    quern_component slot, again;
    quern_commands *commands = quern_world_commands(it.world);
    quern_entity root;
    must(quern_prefab_slot_register(it.world, "seat", &slot));
    must(quern_prefab_slot_register(it.world, "seat", &again));
    cr_assert_eq(slot.bits, again.bits);
    must_refuse(LAYOUT_MISMATCH, it.world, quern_prefab_slot_register(it.world, "frozen", &again));
    assert_refused_value(it.world, !quern_entity_is_null(quern_prefab_part(it.world, of.hull, it.number)));
    assert_refused_value(it.world,
                         !quern_entity_is_null(quern_prefab_part(it.world, quern_entity_null(), slot)));
    assert_refused_value(it.world, !quern_entity_is_null(quern_prefab_part(NULL, of.hull, slot)));
    cr_assert(quern_entity_is_null(quern_prefab_part(it.world, of.hull, slot))); /* it has no seat */
    cr_assert_eq(quern_prefab_find_slot(it.world, of.prefab, slot), QUERN_NO_MEMBER);
    assert_refused_value(it.world,
                         quern_prefab_find_slot(it.world, of.prefab, it.number) != QUERN_NO_MEMBER);
    assert_refused_value(it.world,
                         quern_prefab_find_slot(it.world, (quern_prefab){0}, slot) != QUERN_NO_MEMBER);
    must(quern_commands_spawn(commands, of.prefab, NULL, &root));
    assert_refused_value(NULL, !quern_entity_is_null(quern_commands_spawned_member(commands, of.prefab,
                                                                                   root, QUERN_NO_MEMBER)));
    assert_refused_value(
        NULL, !quern_entity_is_null(quern_commands_spawned_member(commands, of.prefab, of.hull, 2)));
    assert_refused_value(NULL,
                         !quern_entity_is_null(quern_commands_spawned_member(NULL, of.prefab, root, 2)));
    must(quern_world_discard_commands(it.world));
}

Test(prefab_slots, archives_and_histories_keep_them)
{
    const tank of = build_tank();
    quern_byte_buffer archive = {0};
    quern_history *history;
    must(quern_history_create(it.world, &(quern_history_def){.frame_count = 2}, &history));
    must(quern_history_save(history, 1, NULL));
    must(quern_entity_destroy(it.world, of.barrel));
    must(quern_history_restore(history, 1, NULL));
    cr_assert_eq(quern_prefab_part(it.world, of.hull, of.barrel_slot).bits, of.barrel.bits);
    quern_history_destroy(history);
    must(quern_world_save(it.world, quern_sink_bytes(&archive), NULL));
    scene other;
    quern_component slot;
    open_scene_with(&other, NULL);
    must(quern_prefab_slot_register(other.world, "turret", &slot));
    must(quern_prefab_slot_register(other.world, "barrel", &slot));
    setup_entity(other.world); /* so that handles differ */
    must(quern_world_load(other.world, quern_source_bytes(archive.bytes, archive.size_bytes), NULL, NULL));
    const quern_term with_slot = quern_term_with(slot);
    quern_query *query = setup_query(other.world, &with_slot, 1);
    quern_query_iterator at = quern_query_iterate(query);
    cr_assert(quern_query_next(&at));
    const quern_entity root = at.view.entities[0], barrel = quern_prefab_part(other.world, root, slot);
    cr_assert_not(quern_entity_is_null(barrel));
    cr_assert_eq(quern_entity_target(other.world, quern_entity_target(other.world, barrel, other.parent),
                                     other.parent)
                     .bits,
                 root.bits);
    quern_query_destroy(query);
    close_scene(&other);
    quern_byte_buffer_release(&archive);
}

static char logged[512];

static void note_log(void *user_data, quern_log_level level, const char *message)
{
    if (level == QUERN_LOG_INFO) snprintf(logged, sizeof logged, "%s", message);
}

Test(prefab_slots, captures_of_disabled_trees_say_so)
{
    const tank of = build_tank();
    quern_prefab disabled;
    quern_entity root;
    cr_assert(quern_prefab_is_enabled(it.world, of.prefab));
    must(quern_entity_set_enabled(it.world, of.turret, false));
    quern_log_set_handler(note_log, NULL);
    must(quern_prefab_capture(it.world, of.hull, &disabled));
    cr_assert_str_eq(logged, ""); /* its root is enabled */
    must(quern_entity_set_enabled(it.world, of.hull, false));
    must(quern_prefab_capture(it.world, of.hull, &disabled));
    quern_log_set_handler(NULL, NULL);
    cr_assert_not_null(strstr(logged, "is disabled"));
    cr_assert_not(quern_prefab_is_enabled(it.world, disabled));
    must(quern_prefab_spawn(it.world, disabled, NULL, &root));
    cr_assert_not(quern_entity_is_enabled(it.world, root));
    assert_refused_value(it.world, quern_prefab_is_enabled(it.world, (quern_prefab){0}));
    assert_refused_value(it.world, quern_prefab_is_enabled(NULL, disabled));
}

/* ------------------------------------------------------------------------------- edges between members */

/* Prefabs of trees with edges: each instance has the edges of the captured tree, between its own members and to the
 * same entities outside, whether it is spawned by a call or by a command. */

enum { MEMBERS = 9, OUTSIDE = 4, INSTANCES = 7, RELATIONS = 2 };

static failing_allocator *memory;
static quern_component number;
static quern_relation parent, relations[RELATIONS];
static quern_entity members[MEMBERS], outside[OUTSIDE];
static bool inner[RELATIONS][MEMBERS][MEMBERS], outer[RELATIONS][MEMBERS][OUTSIDE];
static quern_prefab prefab;

static void open_world(void)
{
    memory = open_failing_world();
    number = setup_component(world, "number", 4, 4);
    parent = quern_world_parent(world);
    relations[0] =
        make_relation(world, .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true);
    relations[1] =
        make_relation(world, .name = "needs", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true);
}

TestSuite(prefab_edges, .init = open_world, .fini = close_valid_world);

/* Makes a tree with random edges, captures it, and leaves some slots to be used again. */
static void capture_tree(uint64_t seed)
{
    random_source dice = {seed};
    quern_entity gone[10];
    for (uint32_t i = 0; i < 10; i++)
        gone[i] = setup_entity(world);
    for (uint32_t i = 0; i < OUTSIDE; i++)
        outside[i] = setup_entity(world);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        members[i] = setup_entity_with(world, &number, i % 3 > 0);
        if (i > 0) must(quern_entity_relate(world, members[i], parent, members[(i - 1) / 2]));
    }
    for (uint32_t r = 0; r < RELATIONS; r++)
        for (uint32_t i = 0; i < MEMBERS; i++) {
            for (uint32_t k = 0; k < MEMBERS; k++) {
                inner[r][i][k] = i != k && random_chance(&dice, 30);
                if (inner[r][i][k]) must(quern_entity_relate(world, members[i], relations[r], members[k]));
            }
            for (uint32_t k = 0; k < OUTSIDE; k++) {
                outer[r][i][k] = random_chance(&dice, 25);
                if (outer[r][i][k]) must(quern_entity_relate(world, members[i], relations[r], outside[k]));
            }
            must(quern_entity_relate(world, outside[0], relations[r], members[i])); /* not captured */
        }
    must(quern_prefab_capture(world, members[0], &prefab));
    for (uint32_t i = 0; i < 10; i += 2)
        must(quern_entity_destroy(world, gone[i]));
}

/* Checks the edges of an instance. Members are in the order of the captured entities, which is breadth first. */
static void check_instance(const quern_entity *instance)
{
    for (uint32_t r = 0; r < RELATIONS; r++)
        for (uint32_t i = 0; i < MEMBERS; i++) {
            uint32_t expected = 0;
            for (uint32_t k = 0; k < MEMBERS; k++) {
                expected += inner[r][i][k];
                cr_assert_eq(quern_entity_has_target(world, instance[i], relations[r], instance[k]),
                             inner[r][i][k]);
            }
            for (uint32_t k = 0; k < OUTSIDE; k++) {
                expected += outer[r][i][k];
                cr_assert_eq(quern_entity_has_target(world, instance[i], relations[r], outside[k]),
                             outer[r][i][k]);
            }
            cr_assert_eq(quern_entity_target_count(world, instance[i], relations[r]), expected);
            cr_assert_not(quern_entity_has_target(world, outside[0], relations[r], instance[i]));
        }
}

Test(prefab_edges, spawned_instances_have_the_captured_edges)
{
    quern_entity made[INSTANCES * MEMBERS];
    for (uint64_t seed = 1; seed < 4; seed++) {
        capture_tree(seed);
        must(quern_prefab_spawn_many(world, prefab, INSTANCES, NULL, NULL, made));
        assert_valid(world);
        for (uint32_t i = 0; i < INSTANCES; i++)
            check_instance(made + i * MEMBERS);
        must(quern_entity_destroy(world, made[0])); /* and its tree */
        const quern_spawn_def def = {.parent = outside[1]};
        must(quern_prefab_spawn_many(world, prefab, 1, &def, NULL, made));
        check_instance(made);
        assert_valid(world);
    }
}

/* Finds the members of an instance, breadth first. */
static void list_instance(quern_entity root, quern_entity *out_members)
{
    uint32_t count = 1;
    out_members[0] = root;
    for (uint32_t i = 0; i < count; i++) {
        quern_entity children[MEMBERS];
        const uint32_t child_count =
            quern_entity_list_sources(world, out_members[i], parent, children, MEMBERS);
        cr_assert_leq(count + child_count, (uint32_t)MEMBERS);
        for (uint32_t k = 0; k < child_count; k++)
            out_members[count++] = children[k];
    }
    cr_assert_eq(count, (uint32_t)MEMBERS);
}

/* Spawns by commands, and adds and removes edges of members in the same callback. */
Test(prefab_edges, commands_spawn_the_captured_edges)
{
    capture_tree(7);
    quern_commands *commands = quern_world_commands(world);
    quern_entity root, members_of_root[MEMBERS];
    must(quern_entity_unrelate(world, outside[0], relations[0]));
    for (uint32_t i = 0; i < 3; i++)
        must(quern_commands_spawn(commands, prefab, NULL, &root));
    const quern_entity child = quern_commands_spawned_member(commands, prefab, root, 3);
    must(quern_commands_relate(commands, outside[0], relations[0], root));
    must(quern_commands_unrelate(commands, child, relations[0]));
    must(quern_world_flush(world));
    assert_valid(world);
    const quern_entity last = quern_entity_target(world, outside[0], relations[0]);
    cr_assert_not(quern_entity_is_null(last));
    must(quern_entity_unrelate(world, outside[0], relations[0]));
    list_instance(last, members_of_root);
    cr_assert_eq(quern_entity_target_count(world, members_of_root[3], relations[0]), 0u);
    for (uint32_t k = 0; k < MEMBERS; k++)
        inner[0][3][k] = false;
    for (uint32_t k = 0; k < OUTSIDE; k++)
        outer[0][3][k] = false;
    check_instance(members_of_root);
}

Test(prefab_edges, dead_targets_outside_are_refused_or_dropped)
{
    capture_tree(9);
    memset(outer, 0, sizeof outer);
    must(quern_prefab_destroy(world, prefab));
    for (uint32_t i = 0; i < MEMBERS; i++)
        for (uint32_t r = 0; r < RELATIONS; r++)
            (void)quern_entity_unrelate(world, members[i], relations[r]);
    for (uint32_t r = 0; r < RELATIONS; r++)
        must(quern_entity_unrelate(world, outside[0], relations[r]));
    must(quern_entity_relate(world, members[2], relations[0], outside[1]));
    must(quern_prefab_capture(world, members[0], &prefab));
    must(quern_commands_spawn(quern_world_commands(world), prefab, NULL, NULL));
    must(quern_entity_destroy(world, outside[1]));
    must(quern_world_flush(world)); /* the edge is dropped, and the member gets no tag */
    assert_valid(world);
    quern_flush_stats stats;
    must(quern_world_get_flush_stats(world, &stats));
    cr_assert_eq(stats.dropped_count, 1u);
    cr_assert_eq(stats_of_world(world).edge_count, 0u);
    must_refuse(STALE_ENTITY, world, quern_prefab_spawn(world, prefab, NULL, NULL));
}

Test(prefab_edges, spawns_without_memory_leave_no_edge)
{
    enum { SPAWNED = 2000 };
    static quern_entity made[SPAWNED * MEMBERS];
    uint32_t failures = 0;
    capture_tree(11);
    must(quern_world_trim(world));
    const uint64_t hash = quern_world_hash(world), edge_count = stats_of_world(world).edge_count;
    quern_result result;
    do {
        failing_allocator_fail_at(memory, 1 + failures);
        result = quern_prefab_spawn_many(world, prefab, SPAWNED, NULL, NULL, made);
        failing_allocator_heal(memory);
        assert_valid(world);
        if (result == QUERN_OK) break;
        cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
        cr_assert_eq(quern_world_hash(world), hash);
        cr_assert_eq(stats_of_world(world).edge_count, edge_count);
        must(quern_world_trim(world));
        failures++;
    } while (result != QUERN_OK);
    cr_assert_gt(failures, 5u);
    for (uint32_t i = 0; i < SPAWNED; i++)
        check_instance(made + i * MEMBERS);
}
