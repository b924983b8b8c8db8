/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/archive/scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <quern/active.h>
#include <quern/name.h>

#include <criterion/criterion.h>

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

static quern_memory save(void)
{
    quern_memory memory = {0};
    must(quern_archive_save(archive, quern_sink_memory(&memory), NULL));
    return memory;
}

static void carry(quern_entity *entities, uint32_t capacity)
{
    quern_memory memory = save();
    quern_load_report report;
    const quern_load_def def = {
        .entities = entities, .entity_capacity = capacity, .drop_taken_names = true};
    must(scene_load(&to, &memory, &def, &report));
    cr_assert_eq(report.entity_count, quern_archive_count(archive));
    assert_valid(to.world);
    quern_memory_release(&memory);
}

Test(archive_list, a_tree_comes_with_its_levels_names_and_order_wherever_it_was)
{
    const quern_entity root = quern_entity_find(from.world, "number 0/same");
    quern_entity loaded[256];
    must(quern_archive_append_tree(archive, root));
    must(quern_entity_create_with(to.world, &to.tag, NULL, 1, NULL));
    carry(loaded, 256);
    cr_assert_str_eq(quern_entity_name(to.world, loaded[0]), "same");
    cr_assert_eq(quern_entity_target(to.world, loaded[0], to.parent).bits, 0,
                 "its parent was not in the list");
    cr_assert_eq(quern_entity_child_count(to.world, loaded[0], to.parent),
                 quern_entity_child_count(from.world, root, from.parent));
    quern_entity a = quern_entity_first_child(from.world, root, from.parent);
    quern_entity b = quern_entity_first_child(to.world, loaded[0], to.parent);
    for (; a.bits != 0; a = quern_entity_next_sibling(from.world, a, from.parent)) {
        const scene_place *x = quern_entity_get(from.world, a, from.place);
        const scene_place *y = quern_entity_get(to.world, b, to.place);
        cr_assert_eq(x->x, y->x);
        cr_assert_eq(quern_entity_is_enabled(from.world, a, from.health),
                     quern_entity_is_enabled(to.world, b, to.health));
        b = quern_entity_next_sibling(to.world, b, to.parent);
    }
    cr_assert_eq(b.bits, 0);
}

Test(archive_list, the_same_list_comes_out_the_same_in_whatever_world)
{
    must(quern_archive_append_tree(archive, quern_entity_find(from.world, "number 0")));
    scene others;
    scene_open(&others, NULL);
    must(quern_entity_create_with(others.world, &others.raw, NULL, 1, NULL));
    carry(NULL, 0);
    quern_memory first = save();
    must(scene_load(&others, &first, NULL, NULL));
    assert_valid(others.world);
    cr_assert_eq(stats_of_world(others.world).entity_count, quern_archive_count(archive) + 1);
    scene_close(&others);
    quern_memory_release(&first);
}

Test(archive_list, who_is_not_in_the_list_is_nobody_in_it)
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
    cr_assert_eq(quern_entity_child_count(to.world, loaded, to.parent), 0);
}

Test(archive_list, who_was_off_by_a_parent_that_stays_is_off_by_itself)
{
    const quern_entity top = quern_entity_find(from.world, "number 0");
    must(quern_entity_set_active(from.world, top, false));
    const quern_entity child = quern_entity_find(from.world, "number 0/same");
    quern_entity loaded;
    must(quern_archive_append(archive, &child, 1));
    carry(&loaded, 1);
    cr_assert_not(quern_entity_is_active(to.world, loaded));
    must(quern_entity_set_active(to.world, loaded, true));
    cr_assert(quern_entity_is_active(to.world, loaded));
}

Test(archive_list, a_query_appends_what_it_finds)
{
    quern_query *query = setup_query(from.world, (quern_term[]){quern_term_read(from.raw)}, 1);
    must(quern_archive_append_query(archive, query));
    cr_assert_eq(quern_archive_count(archive), quern_query_count(query));
    carry(NULL, 0);
    quern_query *other = setup_query(to.world, (quern_term[]){quern_term_read(to.raw)}, 1);
    cr_assert_eq(quern_query_count(query), quern_query_count(other));
    assert_refused(from.world, QUERN_ERROR_INVALID_ARGUMENT, quern_archive_append_query(archive, other));
    quern_query_destroy(query);
    quern_query_destroy(other);
}

Test(archive_list, the_dead_are_refused)
{
    const quern_entity entity = quern_entity_find(from.world, "number 0");
    must(quern_archive_append(archive, &entity, 1));
    must(quern_entity_destroy(from.world, entity));
    quern_memory memory = {0};
    assert_refused(from.world, QUERN_ERROR_STALE_ENTITY,
                   quern_archive_save(archive, quern_sink_memory(&memory), NULL));
    assert_refused(from.world, QUERN_ERROR_STALE_ENTITY, quern_archive_append(archive, &entity, 1));
    assert_refused(from.world, QUERN_ERROR_STALE_ENTITY, quern_archive_append_tree(archive, entity));
    assert_refused(from.world, QUERN_ERROR_NULL_ARGUMENT, quern_archive_append(archive, NULL, 1));
    assert_refused(from.world, QUERN_ERROR_NULL_ARGUMENT, quern_archive_append(NULL, &entity, 1));
    quern_memory_release(&memory);
}

Test(archive_list, an_empty_list_is_an_archive)
{
    carry(NULL, 0);
    cr_assert_eq(stats_of_world(to.world).entity_count, 0);
}

Test(archive_list, a_list_without_memory_is_as_it_was)
{
    failing_allocator *failing = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(failing);
    scene it;
    scene_open(&it, &interface);
    scene_fill(&it, 0);
    const quern_entity root = quern_entity_find(it.world, "number 0");
    quern_archive *list;
    must(quern_archive_create(it.world, &list));
    quern_memory memory = {0};
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 1; result != QUERN_OK; i++) {
        cr_assert_lt(i, 1000, "%s", quern_error_message());
        memory.size_bytes = 0;
        failing_allocator_fail_at(failing, failing_allocator_call_count(failing) + i);
        result = quern_archive_append_tree(list, root);
        if (result != QUERN_OK) cr_assert_eq(quern_archive_count(list), 0);
        if (result == QUERN_OK) result = quern_archive_save(list, quern_sink_memory(&memory), NULL);
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
    quern_memory_release(&memory);
}
