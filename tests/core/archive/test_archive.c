/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/archive/scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <quern/active.h>
#include <quern/commands.h>
#include <quern/name.h>

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

static scene from, to;

static void open_scenes(void)
{
    scene_open(&from, NULL);
    scene_open(&to, NULL);
}

static void close_scenes(void)
{
    scene_close(&from);
    scene_close(&to);
}

TestSuite(archive, .init = open_scenes, .fini = close_scenes);

/* What is done with both has the same results. */
static void live_on(const scene *it)
{
    quern_entity entity, root = quern_entity_find(it->world, "number 0");
    for (uint32_t i = 0; i < 12; i++) {
        must(quern_entity_create_with(it->world, &it->place, NULL, 1, &entity));
        if (i % 2 == 0) must(quern_entity_relate(it->world, entity, it->parent, root));
        if (i % 3 == 0) must(quern_entity_add(it->world, entity, it->tag, NULL));
    }
    must(quern_entity_destroy(it->world, quern_entity_find(it->world, "number 0/same/same")));
    must(quern_entity_create(it->world, &entity));
    assert_valid(it->world);
}

static void assert_same(void)
{
    cr_assert_eq(quern_world_hash(from.world), quern_world_hash(to.world));
    assert_valid(to.world);
    live_on(&from);
    live_on(&to);
    cr_assert_eq(quern_world_hash(from.world), quern_world_hash(to.world));
}

static void load_all(void)
{
    quern_memory memory = scene_save(&from);
    quern_load_report report;
    must(scene_load(&to, &memory, NULL, &report));
    cr_assert(report.keeps_handles);
    cr_assert_eq(report.missing_count, 0);
    cr_assert_eq(report.converted_count, 0);
    cr_assert_eq(report.entity_count, stats_of_world(from.world).entity_count);
    quern_memory_release(&memory);
}

Test(archive, a_world_comes_back_in_an_empty_one_with_the_same_hash_and_the_same_future)
{
    scene_fill(&from, 0);
    load_all();
    assert_same();
}

Test(archive, a_world_of_many_chunks_comes_back)
{
    scene_fill(&from, 20000);
    load_all();
    assert_same();
}

Test(archive, a_world_without_entities_comes_back)
{
    load_all();
    cr_assert_eq(quern_world_hash(from.world), quern_world_hash(to.world));
    assert_valid(to.world);
}

Test(archive, records_that_a_trimmed_world_gave_back_come_back_as_free_slots)
{
    quern_entity *many = malloc(300000 * sizeof *many);
    for (uint32_t i = 0; i < 300000; i++)
        must(quern_entity_create(from.world, &many[i]));
    for (uint32_t i = 0; i < 299000; i++)
        must(quern_entity_destroy(from.world, many[i]));
    must(quern_world_trim(from.world));
    load_all();
    cr_assert_eq(quern_world_hash(from.world), quern_world_hash(to.world));
    assert_valid(to.world);
    quern_entity a, b;
    for (uint32_t i = 0; i < 1000; i++) {
        must(quern_entity_create(from.world, &a));
        must(quern_entity_create(to.world, &b));
        cr_assert_eq(quern_entity_index(a), quern_entity_index(b));
        cr_assert_eq(quern_entity_life(from.world, a), quern_entity_life(to.world, b));
    }
    free(many);
}

Test(archive, what_a_field_does_not_describe_of_a_resource_stays)
{
    scene_fill(&from, 0);
    scene_clock *clock = quern_resource_get(to.world, to.clock);
    clock->pointer = &to;
    load_all();
    cr_assert_eq(clock->pointer, &to);
    cr_assert_eq(clock->ticks, 77);
    const scene_clock *saved = quern_resource_get(from.world, from.clock);
    cr_assert_eq(quern_entity_index(clock->focus), quern_entity_index(saved->focus));
    cr_assert(quern_entity_is_alive(to.world, clock->focus));
}

Test(archive, resources_are_left_as_they_are_on_request)
{
    scene_fill(&from, 0);
    quern_memory memory = scene_save(&from);
    must(scene_load(&to, &memory, &(quern_load_def){.no_resources = true}, NULL));
    cr_assert_eq(((scene_clock *)quern_resource_get(to.world, to.clock))->ticks, 0);
    memory.size_bytes = 0;
    must(quern_world_save(from.world, quern_sink_memory(&memory), &(quern_save_def){.no_resources = true}));
    scene third;
    scene_open(&third, NULL);
    must(scene_load(&third, &memory, NULL, NULL));
    cr_assert_eq(((scene_clock *)quern_resource_get(third.world, third.clock))->ticks, 0);
    scene_close(&third);
    quern_memory_release(&memory);
}

Test(archive, a_file_is_as_good_as_memory)
{
    scene_fill(&from, 5000);
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    must(quern_world_save(from.world, quern_sink_file(file), NULL));
    rewind(file);
    must(quern_world_load(to.world, quern_source_file(file), NULL, NULL));
    fclose(file);
    assert_same();
}

/* ------------------------------------------------------------------------------- worlds with others */

Test(archive, in_a_world_with_others_all_are_new_and_know_each_other_as_before)
{
    scene_fill(&from, 0);
    quern_entity stranger, entities[256];
    must(quern_entity_create_with(to.world, &to.tag, NULL, 1, &stranger));
    const uint64_t count = stats_of_world(from.world).entity_count;
    cr_assert_leq(count, 256);
    quern_memory memory = scene_save(&from);
    quern_load_report report;
    must(
        scene_load(&to, &memory, &(quern_load_def){.entities = entities, .entity_capacity = 256}, &report));
    cr_assert_not(report.keeps_handles);
    cr_assert_eq(report.entity_count, count);
    cr_assert_eq(stats_of_world(to.world).entity_count, count + 1);
    cr_assert(quern_entity_is_alive(to.world, stranger));
    assert_valid(to.world);
    const quern_entity root = quern_entity_find(to.world, "number 0");
    const quern_entity same = quern_entity_find(to.world, "number 0/same");
    cr_assert(quern_entity_is_alive(to.world, root));
    cr_assert(quern_entity_equal(quern_entity_target(to.world, same, to.parent), root));
    const scene_aim *aim = quern_entity_get(to.world, root, to.aim);
    cr_assert_eq(aim->last[0].bits, 0, "the dead are nobody here");
    cr_assert(quern_entity_is_alive(to.world, aim->at));
    for (uint32_t i = 0; i < count; i++)
        cr_assert(quern_entity_is_alive(to.world, entities[i]));
    quern_memory_release(&memory);
}

Test(archive, it_can_be_loaded_several_times_if_names_may_be_dropped)
{
    scene_fill(&from, 0);
    quern_memory memory = scene_save(&from);
    quern_load_report report;
    must(scene_load(&to, &memory, NULL, NULL));
    assert_refused(to.world, QUERN_ERROR_NAME_TAKEN, scene_load(&to, &memory, NULL, NULL));
    must(scene_load(&to, &memory, &(quern_load_def){.drop_taken_names = true}, &report));
    cr_assert_gt(report.dropped_name_count, 0);
    assert_valid(to.world);
    quern_memory_release(&memory);
}

/* --------------------------------------------------------------------------------------- refusals */

Test(archive, calls_without_what_they_need_are_refused)
{
    quern_memory memory = {0};
    const quern_source nothing = quern_source_memory(NULL, 0);
    assert_refused(to.world, QUERN_ERROR_NULL_ARGUMENT,
                   quern_world_save(NULL, quern_sink_memory(&memory), NULL));
    assert_refused(to.world, QUERN_ERROR_NULL_ARGUMENT, quern_world_save(to.world, (quern_sink){0}, NULL));
    assert_refused(to.world, QUERN_ERROR_NULL_ARGUMENT, quern_world_load(to.world, nothing, NULL, NULL));
    assert_refused(to.world, QUERN_ERROR_NULL_ARGUMENT,
                   quern_world_load(NULL, quern_source_memory("x", 1), NULL, NULL));
    assert_refused(to.world, QUERN_ERROR_BAD_ARCHIVE,
                   quern_world_load(to.world, quern_source_memory("x", 1), NULL, NULL));
    assert_refused(to.world, QUERN_ERROR_NULL_ARGUMENT,
                   quern_world_load(to.world, quern_source_memory("x", 1),
                                    &(quern_load_def){.entity_capacity = 1}, NULL));
}

static bool write_nothing(void *user_data, const char *text, size_t bytes)
{
    (void)user_data, (void)text, (void)bytes;
    return false;
}

Test(archive, a_sink_that_writes_nothing_is_told_of)
{
    scene_fill(&from, 0);
    assert_refused(from.world, QUERN_ERROR_FILE,
                   quern_world_save(from.world, (quern_sink){.write = write_nothing}, NULL));
}

Test(archive, commands_that_wait_are_not_lost_silently)
{
    quern_commands *commands = quern_world_commands(from.world);
    cr_assert_neq(quern_commands_create(commands).bits, 0);
    quern_memory memory = {0};
    assert_refused(from.world, QUERN_ERROR_INVALID_ARGUMENT,
                   quern_world_save(from.world, quern_sink_memory(&memory), NULL));
    must(quern_world_flush(from.world));
    must(quern_world_save(from.world, quern_sink_memory(&memory), NULL));
    quern_memory_release(&memory);
}

/* ----------------------------------------------------------------------------------------- memory */

Test(archive, a_load_without_memory_changes_nothing)
{
    scene_fill(&from, 300);
    quern_memory memory = scene_save(&from);
    failing_allocator *failing = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(failing);
    for (uint32_t others = 0; others < 2; others++) {
        scene it;
        scene_open(&it, &interface);
        if (others > 0) must(quern_entity_create_with(it.world, &it.tag, NULL, 1, NULL));
        const uint64_t hash = quern_world_hash(it.world);
        quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
        for (uint32_t i = 1; result != QUERN_OK; i++) {
            cr_assert_lt(i, 2000);
            failing_allocator_fail_at(failing, failing_allocator_call_count(failing) + i);
            result = scene_load(&it, &memory, NULL, NULL);
            failing_allocator_heal(failing);
            if (result == QUERN_OK) break;
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
            cr_assert_eq(quern_world_hash(it.world), hash);
            assert_valid(it.world);
        }
        assert_valid(it.world);
        if (others == 0) cr_assert_eq(quern_world_hash(it.world), quern_world_hash(from.world));
        scene_close(&it);
    }
    failing_allocator_close(failing);
    quern_memory_release(&memory);
}

Test(archive, a_save_without_memory_says_so)
{
    failing_allocator *failing = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(failing);
    scene it;
    scene_open(&it, &interface);
    scene_fill(&it, 0);
    const uint64_t hash = quern_world_hash(it.world);
    quern_memory memory = {0};
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 1; result != QUERN_OK; i++) {
        cr_assert_lt(i, 100, "%s", quern_error_message());
        memory.size_bytes = 0;
        failing_allocator_fail_at(failing, failing_allocator_call_count(failing) + i);
        result = quern_world_save(it.world, quern_sink_memory(&memory), NULL);
        failing_allocator_heal(failing);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        cr_assert_eq(quern_world_hash(it.world), hash);
    }
    must(scene_load(&to, &memory, NULL, NULL));
    cr_assert_eq(quern_world_hash(to.world), hash);
    scene_close(&it);
    failing_allocator_close(failing);
    quern_memory_release(&memory);
}
