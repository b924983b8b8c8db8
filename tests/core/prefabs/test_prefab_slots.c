/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/prefabs/prefab_scene.h"

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
