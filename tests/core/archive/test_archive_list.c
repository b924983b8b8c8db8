/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/archive/scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <string.h>

static scene from, to;
static quern_archive *archive;

static void open_scenes(void)
{
    scene_open(&from, NULL);
    scene_open(&to, NULL);
    scene_fill(&from, 0);
    must(quern_archive_create(from.world, &archive));
}

static void close_scenes(void)
{
    quern_archive_destroy(archive);
    scene_close(&from);
    scene_close(&to);
}

TestSuite(archive_list, .init = open_scenes, .fini = close_scenes);

static quern_byte_buffer save(void)
{
    quern_byte_buffer memory = {0};
    must(quern_archive_save(archive, quern_sink_bytes(&memory), NULL));
    return memory;
}

static void carry(quern_entity *entities, uint32_t capacity)
{
    quern_byte_buffer memory = save();
    quern_load_report report;
    const quern_load_def def = {
        .entities = entities, .entity_capacity = capacity, .drop_taken_names = true};
    must(scene_load(&to, &memory, &def, &report));
    cr_assert_eq(report.entity_count, quern_archive_count(archive));
    assert_valid(to.world);
    quern_byte_buffer_release(&memory);
}

Test(archive_list, a_tree_is_loaded_with_levels_names_and_order)
{
    const quern_entity root = quern_entity_find(from.world, "number 0/same");
    quern_entity loaded[256];
    must(quern_archive_append_tree(archive, root));
    must(quern_entity_create_with(to.world, &to.tag, NULL, 1, NULL));
    carry(loaded, 256);
    cr_assert_str_eq(quern_entity_name(to.world, loaded[0]), "same");
    cr_assert_eq(quern_entity_target(to.world, loaded[0], to.parent).bits, 0,
                 "its parent was not in the list");
    cr_assert_eq(quern_entity_source_count(to.world, loaded[0], to.parent),
                 quern_entity_source_count(from.world, root, from.parent));
    quern_entity a = quern_entity_first_source(from.world, root, from.parent);
    quern_entity b = quern_entity_first_source(to.world, loaded[0], to.parent);
    for (; a.bits != 0; a = quern_entity_next_sibling(from.world, a, from.parent)) {
        const scene_place *x = quern_entity_get(from.world, a, from.place);
        const scene_place *y = quern_entity_get(to.world, b, to.place);
        cr_assert_eq(x->x, y->x);
        cr_assert_eq(quern_entity_is_component_enabled(from.world, a, from.health),
                     quern_entity_is_component_enabled(to.world, b, to.health));
        b = quern_entity_next_sibling(to.world, b, to.parent);
    }
    cr_assert_eq(b.bits, 0);
}

Test(archive_list, equal_lists_in_different_worlds_give_equal_bytes)
{
    must(quern_archive_append_tree(archive, quern_entity_find(from.world, "number 0")));
    scene others;
    scene_open(&others, NULL);
    must(quern_entity_create_with(others.world, &others.raw, NULL, 1, NULL));
    carry(NULL, 0);
    quern_byte_buffer first = save();
    must(scene_load(&others, &first, NULL, NULL));
    assert_valid(others.world);
    cr_assert_eq(stats_of_world(others.world).entity_count, quern_archive_count(archive) + 1);
    scene_close(&others);
    quern_byte_buffer_release(&first);
}

Test(archive_list, handles_outside_of_the_list_become_null)
{
    const quern_entity holder = quern_entity_find(from.world, "number 0");
    quern_entity loaded;
    cr_assert(quern_entity_has(from.world, holder, from.aim));
    must(quern_archive_append(archive, &holder, 1));
    must(quern_archive_append(archive, &holder, 1));
    cr_assert_eq(quern_archive_count(archive), 1);
    carry(&loaded, 1);
    const scene_aim *aim = quern_entity_get(to.world, loaded, to.aim);
    cr_assert_eq(aim->at.bits, 0);
    cr_assert_eq(aim->last[0].bits, 0);
    cr_assert_eq(quern_entity_source_count(to.world, loaded, to.parent), 0);
}

Test(archive_list, an_entity_disabled_through_an_unselected_parent_is_enabled)
{
    const quern_entity top = quern_entity_find(from.world, "number 0");
    must(quern_entity_set_enabled(from.world, top, false));
    const quern_entity child = quern_entity_find(from.world, "number 0/same");
    quern_entity loaded;
    cr_assert_not(quern_entity_is_enabled(from.world, child));
    must(quern_archive_append(archive, &child, 1));
    carry(&loaded, 1);
    cr_assert(quern_entity_is_enabled(to.world, loaded));
}

Test(archive_list, a_query_appends_its_entities)
{
    quern_query *query = setup_query(from.world, (quern_term[]){quern_term_read(from.raw)}, 1);
    must(quern_archive_append_query(archive, query));
    cr_assert_eq(quern_archive_count(archive), quern_query_count(query));
    carry(NULL, 0);
    quern_query *other = setup_query(to.world, (quern_term[]){quern_term_read(to.raw)}, 1);
    cr_assert_eq(quern_query_count(query), quern_query_count(other));
    must_refuse(INVALID_ARGUMENT, from.world, quern_archive_append_query(archive, other));
    quern_query_destroy(query);
    quern_query_destroy(other);
}

/* Builds a tower that aims at its own muzzle. Its gun is identified by its points. */
static quern_entity build_tower(const scene *it, int32_t points)
{
    quern_entity tower, gun, muzzle;
    const scene_health health = {.points = points};
    const void *values[] = {&health};
    must(quern_entity_create_with(it->world, &it->aim, NULL, 1, &tower));
    must(quern_entity_create_with(it->world, &it->health, values, 1, &gun));
    must(quern_entity_create_with(it->world, &it->place, NULL, 1, &muzzle));
    must(quern_entity_relate(it->world, gun, it->parent, tower));
    must(quern_entity_relate(it->world, muzzle, it->parent, gun));
    must(quern_entity_set_name(it->world, tower, "tower"));
    must(quern_entity_set_name(it->world, gun, "gun"));
    must(quern_entity_set_name(it->world, muzzle, "muzzle"));
    must(quern_entity_set(it->world, tower, it->aim, &(scene_aim){.at = muzzle, .range = 5}));
    return tower;
}

static void check_tower(const scene *it, quern_prefab prefab, int32_t points)
{
    quern_entity root, members[3];
    cr_assert_eq(quern_prefab_member_count(it->world, prefab), 3);
    cr_assert_eq(quern_prefab_find_member(it->world, prefab, "gun/muzzle"), 2);
    must(quern_prefab_spawn_many(it->world, prefab, 1, NULL, &root, members));
    const scene_aim *aim = quern_entity_get(it->world, root, it->aim);
    const scene_health *health = quern_entity_get(it->world, members[1], it->health);
    cr_assert_eq(aim->at.bits, members[2].bits);
    cr_assert_eq(aim->range, 5);
    cr_assert_eq(health->points, points);
    assert_valid(it->world);
}

/* Moves a prefab to another world: saves the tree of an instance, loads it, and captures it there. */
static quern_prefab carry_prefab(quern_prefab prefab)
{
    quern_entity instance, loaded[3];
    quern_prefab carried;
    must(quern_prefab_spawn(from.world, prefab, NULL, &instance));
    must(quern_archive_append_tree(archive, instance));
    carry(loaded, 3);
    must(quern_entity_destroy(from.world, instance));
    must(quern_prefab_capture(to.world, loaded[0], &carried));
    must(quern_entity_destroy(to.world, loaded[0]));
    return carried;
}

static quern_prefab capture_tower(int32_t points)
{
    quern_prefab prefab;
    const quern_entity tower = build_tower(&from, points);
    must(quern_prefab_capture(from.world, tower, &prefab));
    must(quern_entity_destroy(from.world, tower));
    return prefab;
}

Test(archive_list, a_prefab_is_captured_again_from_its_tree_in_an_empty_world)
{
    const quern_prefab prefab = carry_prefab(capture_tower(7));
    cr_assert_eq(stats_of_world(to.world).entity_count, 0);
    check_tower(&to, prefab, 7);
}

Test(archive_list, a_prefab_is_captured_again_beside_entities_of_the_same_name)
{
    const quern_entity other = build_tower(&to, 3);
    const quern_prefab prefab = carry_prefab(capture_tower(8));
    cr_assert_eq(stats_of_world(to.world).entity_count, 3);
    check_tower(&to, prefab, 8);
    cr_assert_eq(quern_entity_find(to.world, "tower").bits, other.bits);
}

/* A world stores such trees by name. The trees may be disabled, but not while they are captured, because
 * instances would be disabled too. */
Test(archive_list, prefab_trees_of_a_saved_world_are_found_by_name)
{
    const quern_entity tower = build_tower(&from, 9);
    must(quern_entity_set_enabled(from.world, tower, false));
    quern_byte_buffer memory = scene_save(&from);
    must(scene_load(&to, &memory, NULL, NULL));
    quern_byte_buffer_release(&memory);
    const quern_entity loaded = quern_entity_find(to.world, "tower");
    cr_assert_neq(loaded.bits, 0);
    cr_assert_not(quern_entity_is_enabled(to.world, loaded));
    quern_prefab prefab, prefab_off;
    quern_entity spawned_off;
    must(quern_prefab_capture(to.world, loaded, &prefab_off));
    must(quern_prefab_spawn(to.world, prefab_off, NULL, &spawned_off));
    cr_assert_not(quern_entity_is_enabled(to.world, spawned_off));
    must(quern_entity_set_enabled(to.world, loaded, true));
    must(quern_prefab_capture(to.world, loaded, &prefab));
    must(quern_entity_set_enabled(to.world, loaded, false));
    check_tower(&to, prefab, 9);
}

Test(archive_list, a_used_name_is_reported_and_nothing_is_loaded)
{
    build_tower(&to, 1);
    must(quern_archive_append_tree(archive, build_tower(&from, 2)));
    quern_byte_buffer memory = save();
    must_refuse(SIBLING_NAME_TAKEN, to.world, scene_load(&to, &memory, NULL, NULL));
    cr_assert_not_null(strstr(quern_error_message(), "'tower'"), "%s", quern_error_message());
    quern_byte_buffer_release(&memory);
}

Test(archive_list, dead_entities_are_rejected)
{
    const quern_entity entity = quern_entity_find(from.world, "number 0");
    must(quern_archive_append(archive, &entity, 1));
    must(quern_entity_destroy(from.world, entity));
    quern_byte_buffer memory = {0};
    must_refuse(STALE_ENTITY, from.world, quern_archive_save(archive, quern_sink_bytes(&memory), NULL));
    must_refuse(STALE_ENTITY, from.world, quern_archive_append(archive, &entity, 1));
    must_refuse(STALE_ENTITY, from.world, quern_archive_append_tree(archive, entity));
    must_refuse(NULL_ARGUMENT, from.world, quern_archive_append(archive, NULL, 1));
    must_refuse(NULL_ARGUMENT, from.world, quern_archive_append(NULL, &entity, 1));
    quern_byte_buffer_release(&memory);
}

Test(archive_list, an_empty_list_gives_an_archive)
{
    carry(NULL, 0);
    cr_assert_eq(stats_of_world(to.world).entity_count, 0);
}

Test(archive_list, a_list_without_memory_is_unchanged)
{
    failing_allocator *failing = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(failing);
    scene it;
    scene_open(&it, &interface);
    scene_fill(&it, 0);
    const quern_entity root = quern_entity_find(it.world, "number 0");
    quern_archive *list;
    must(quern_archive_create(it.world, &list));
    quern_byte_buffer memory = {0};
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 1; result != QUERN_OK; i++) {
        cr_assert_lt(i, 1000, "%s", quern_error_message());
        memory.size_bytes = 0;
        failing_allocator_fail_at(failing, i);
        result = quern_archive_append_tree(list, root);
        if (result != QUERN_OK) cr_assert_eq(quern_archive_count(list), 0);
        if (result == QUERN_OK) result = quern_archive_save(list, quern_sink_bytes(&memory), NULL);
        failing_allocator_heal(failing);
        if (result != QUERN_OK) {
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
            quern_archive_destroy(list);
            must(quern_archive_create(it.world, &list));
        }
    }
    must(scene_load(&to, &memory, NULL, NULL));
    quern_archive_destroy(list);
    scene_close(&it);
    failing_allocator_close(failing);
    quern_byte_buffer_release(&memory);
}

/* Appends children with equal names without their parents, so that they become roots with equal names. */
static void append_guns(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const scene_health health = {.points = (int32_t)i};
        const void *values[] = {&health};
        quern_entity parent, gun;
        must(quern_entity_create(from.world, &parent));
        must(quern_entity_create_with(from.world, &from.health, values, 1, &gun));
        must(quern_entity_relate(from.world, gun, from.parent, parent));
        must(quern_entity_set_name(from.world, gun, "gun"));
        must(quern_archive_append(archive, &gun, 1));
    }
}

Test(archive_list, the_first_of_roots_with_equal_names_keeps_it)
{
    append_guns(3);
    quern_byte_buffer memory = save();
    quern_entity loaded[3];
    quern_load_report report;
    for (uint32_t others = 0; others < 2; others++) {
        must_refuse(SIBLING_NAME_TAKEN, to.world, scene_load(&to, &memory, NULL, NULL));
        cr_assert_not_null(strstr(quern_error_message(), "'gun'"), "%s", quern_error_message());
        const quern_load_def def = {.entities = loaded, .entity_capacity = 3, .drop_taken_names = true};
        must(scene_load(&to, &memory, &def, &report));
        cr_assert_eq(report.keeps_handles, others == 0);
        cr_assert_eq(report.dropped_name_count, others == 0 ? 2 : 3);
        assert_valid(to.world);
        if (others > 0) break;
        cr_assert(quern_entity_equal(quern_entity_find(to.world, "gun"), loaded[0]));
        cr_assert_eq(((scene_health *)quern_entity_get(to.world, loaded[0], to.health))->points, 0);
        cr_assert_null(quern_entity_name(to.world, loaded[1]));
    }
    quern_byte_buffer_release(&memory);
}

/* ----------------------------------------------------------------------------- changes after selecting */

Test(archive_list, an_entity_in_the_slot_of_a_dead_one_replaces_it_in_the_list)
{
    const scene_place place = {7, 8};
    const void *values[] = {&place};
    quern_entity entities[3], loaded[3];
    for (uint32_t i = 0; i < 3; i++)
        must(quern_entity_create(from.world, &entities[i]));
    must(quern_archive_append(archive, entities, 3));
    must(quern_entity_destroy(from.world, entities[1]));
    must(quern_entity_create_with(from.world, &from.place, values, 1, &entities[1]));
    cr_assert_eq(quern_archive_count(archive), 3);
    must(quern_archive_append(archive, &entities[1], 1));
    cr_assert_eq(quern_archive_count(archive), 3, "the slot is in the list already");
    carry(loaded, 3);
    cr_assert_eq(((scene_place *)quern_entity_get(to.world, loaded[1], to.place))->x, 7);
    cr_assert_not(quern_entity_has(to.world, loaded[0], to.place));
}

Test(archive_list, handles_in_fields_are_remapped_or_null)
{
    quern_entity holder, dead, heir, loaded[2];
    must(quern_entity_create_with(from.world, &from.aim, NULL, 1, &holder));
    must(quern_entity_create(from.world, &dead));
    must(quern_entity_destroy(from.world, dead));
    must(quern_entity_create(from.world, &heir));
    cr_assert_eq(quern_entity_index(heir), quern_entity_index(dead));
    scene_aim *aim = quern_entity_get(from.world, holder, from.aim);
    aim->at = dead;
    aim->last[0] = heir;
    aim->last[1] = entity_provisional(quern_entity_index(heir));
    must(quern_archive_append(archive, (quern_entity[]){holder, heir}, 2));
    carry(loaded, 2);
    aim = quern_entity_get(to.world, loaded[0], to.aim);
    cr_assert_eq(aim->at.bits, 0, "its slot has another entity now");
    cr_assert(quern_entity_equal(aim->last[0], loaded[1]));
    cr_assert_eq(aim->last[1].bits, 0);
}

/* Builds a chain of entities. The first one is the root. */
static void build_chain(quern_entity *entities, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        must(quern_entity_create_with(from.world, &from.place, NULL, 1, &entities[i]));
        if (i > 0) must(quern_entity_relate(from.world, entities[i], from.parent, entities[i - 1]));
    }
}

/* The parent of the list's root is disabled, and with it the tree of the list. */
Test(archive_list, a_tree_disabled_from_outside_is_enabled_but_for_what_was_disabled_by_itself)
{
    quern_entity chain[5], loaded[4];
    build_chain(chain, 5);
    must(quern_entity_set_enabled(from.world, chain[3], false));
    must(quern_entity_set_enabled(from.world, chain[0], false));
    must(quern_archive_append_tree(archive, chain[1]));
    carry(loaded, 4);
    for (uint32_t i = 0; i < 4; i++)
        cr_assert_eq(quern_entity_is_enabled(to.world, loaded[i]), i < 2, "entity %u", i);
    must(quern_entity_set_enabled(to.world, loaded[2], true));
    cr_assert(quern_entity_is_enabled(to.world, loaded[3]),
              "it was disabled through its parent in the list");
}

Test(archive_list, a_disabled_tree_is_enabled_with_its_root)
{
    quern_entity chain[4], loaded[3];
    build_chain(chain, 4);
    must(quern_entity_set_enabled(from.world, chain[3], false));
    must(quern_entity_set_enabled(from.world, chain[1], false));
    must(quern_entity_set_enabled(from.world, chain[0], false));
    must(quern_archive_append_tree(archive, chain[1]));
    carry(loaded, 3);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_not(quern_entity_is_enabled(to.world, loaded[i]), "entity %u", i);
    must(quern_entity_set_enabled(to.world, loaded[0], true));
    cr_assert(quern_entity_is_enabled(to.world, loaded[1]), "it was disabled through its parent");
    cr_assert_not(quern_entity_is_enabled(to.world, loaded[2]), "it was disabled by itself");
}

/* It keeps its state until a tree that contains it is enabled or disabled: also without a parent, or below another. */
Test(archive_list, an_entity_that_left_its_disabled_parent_stays_disabled)
{
    quern_entity chain[3], loaded[3];
    build_chain(chain, 3);
    const quern_entity other = setup_entity(from.world);
    must(quern_entity_set_enabled(from.world, chain[0], false));
    must(quern_entity_unrelate(from.world, chain[1], from.parent));
    must(quern_entity_relate(from.world, chain[2], from.parent, other));
    must(quern_archive_append(archive, (const quern_entity[]){chain[1], chain[2], other}, 3));
    carry(loaded, 3);
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(quern_entity_is_enabled(to.world, loaded[i]), i == 2, "entity %u", i);
}

Test(archive_list, levels_restart_at_the_list_and_stop_at_the_highest)
{
    enum { COUNT = 40 };
    quern_entity chain[COUNT], loaded[COUNT];
    build_chain(chain, COUNT);
    for (uint32_t first = 1; first < COUNT; first += 12) {
        quern_archive_destroy(archive);
        must(quern_archive_create(from.world, &archive));
        must(quern_archive_append_tree(archive, chain[first]));
        cr_assert_eq(quern_archive_count(archive), COUNT - first);
        carry(loaded, COUNT);
        for (uint32_t i = 1; i < COUNT - first; i++)
            cr_assert(
                quern_entity_equal(quern_entity_target(to.world, loaded[i], to.parent), loaded[i - 1]));
        must(quern_entity_relate(to.world, loaded[0], to.parent, setup_entity(to.world)));
        assert_valid(to.world);
    }
}

Test(archive_list, an_unselected_entity_divides_a_chain)
{
    quern_entity chain[6], loaded[4];
    build_chain(chain, 6);
    must(quern_archive_append(archive, (quern_entity[]){chain[5], chain[1], chain[4], chain[2]}, 4));
    carry(loaded, 4);
    cr_assert(quern_entity_equal(quern_entity_target(to.world, loaded[3], to.parent), loaded[1]));
    cr_assert(quern_entity_equal(quern_entity_target(to.world, loaded[0], to.parent), loaded[2]));
    cr_assert_eq(quern_entity_target(to.world, loaded[1], to.parent).bits, 0);
    cr_assert_eq(quern_entity_target(to.world, loaded[2], to.parent).bits, 0);
}

Test(archive_list, entities_equal_without_left_out_components_are_saved_together)
{
    quern_entity entities[4], loaded[4];
    const quern_component both[] = {from.place, from.raw};
    for (uint32_t i = 0; i < 4; i++)
        must(quern_entity_create_with(from.world, both, NULL, 1 + i % 2, &entities[i]));
    must(quern_archive_append(archive, entities, 4));
    quern_byte_buffer memory = {0};
    must(
        quern_archive_save(archive, quern_sink_bytes(&memory), &(quern_save_def){.leave_out = {from.raw}}));
    must(scene_load(&to, &memory, &(quern_load_def){.entities = loaded, .entity_capacity = 4}, NULL));
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert(quern_entity_has(to.world, loaded[i], to.place));
        cr_assert_not(quern_entity_has(to.world, loaded[i], to.raw));
    }
    quern_byte_buffer_release(&memory);
}

Test(archive_list, many_entities_keep_their_order_and_disabled_components)
{
    enum { COUNT = 3000 };
    static quern_entity entities[COUNT], loaded[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        const scene_health health = {.points = (int32_t)i};
        const void *values[] = {&health};
        must(quern_entity_create_with(from.world, &from.health, values, 1, &entities[i]));
        if (i % 7 == 0)
            must(quern_entity_set_component_enabled(from.world, entities[i], from.health, false));
    }
    must(quern_archive_append(archive, entities, COUNT));
    carry(loaded, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        const scene_health *health = quern_entity_get(to.world, loaded[i], to.health);
        cr_assert_eq(health->points, (int32_t)i);
        cr_assert_eq(quern_entity_is_component_enabled(to.world, loaded[i], to.health), i % 7 != 0);
    }
}
