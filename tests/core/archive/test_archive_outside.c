/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/archive/reseal.h"
#include "tests/core/archive/scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Targets outside of the list of an archive, which both worlds know by ids. */

enum { UNITS = 40, FIRST_ID = 100 };

static scene from, to;
static quern_entity
    units[UNITS]; /* of `from`; their ids are FIRST_ID + index, except that unit 0 has none */
static quern_entity known[UNITS]; /* of `to`, by the same ids; null or dead: unknown */
static quern_byte_buffer memory;

static void open_scenes(void)
{
    scene_open(&from, NULL);
    scene_open(&to, NULL);
    for (uint32_t i = 0; i < UNITS; i++) {
        units[i] = setup_entity_with(from.world, (quern_component[]){from.place, from.tag}, 1 + i % 2);
        known[i] = setup_entity_with(to.world, &to.raw, 1);
    }
}

static void close_scenes(void)
{
    quern_byte_buffer_release(&memory);
    scene_close(&to);
    scene_close(&from);
}

TestSuite(archive_outside, .init = open_scenes, .fini = close_scenes);

static uint64_t id_of(void *user_data, quern_entity entity)
{
    for (uint32_t i = 1; i < UNITS; i++)
        if (quern_entity_equal(entity, units[i])) return FIRST_ID + i;
    return 0;
}

static quern_entity entity_of(void *user_data, uint64_t id)
{
    return id > FIRST_ID && id < FIRST_ID + UNITS ? known[id - FIRST_ID] : quern_entity_null();
}

static void save(const uint32_t *list, uint32_t count)
{
    quern_archive *archive;
    must(quern_archive_create(from.world, &archive));
    for (uint32_t i = 0; i < count; i++)
        must(quern_archive_append(archive, &units[list[i]], 1));
    memory.size_bytes = 0;
    must(quern_archive_save(archive, quern_sink_bytes(&memory), &(quern_save_def){.outside_id = id_of}));
    quern_archive_destroy(archive);
}

static quern_result load(quern_entity *loaded, quern_load_report *report, bool drops_names)
{
    const quern_load_def def = {.outside_entity = entity_of,
                                .entities = loaded,
                                .entity_capacity = UNITS,
                                .drop_taken_names = drops_names};
    return quern_world_load(to.world, quern_source_bytes(memory.bytes, memory.size_bytes), &def, report);
}

static void assert_target(quern_entity source, quern_relation relation, quern_entity target)
{
    cr_assert(quern_entity_equal(quern_entity_target(to.world, source, relation), target));
}

Test(archive_outside, targets_are_found_by_their_ids)
{
    quern_entity loaded[UNITS];
    must(quern_entity_relate(from.world, units[2], from.parent, units[1]));
    must(quern_entity_relate(from.world, units[3], from.parent, units[2]));
    must(quern_entity_relate(from.world, units[3], from.owner, units[5]));
    must(quern_entity_relate(from.world, units[2], from.owner, units[0]));
    must(quern_entity_relate(from.world, units[2], from.likes, units[3]));
    must(quern_entity_relate(from.world, units[2], from.likes, units[6]));
    must(quern_entity_relate(from.world, units[2], from.likes, units[7]));
    must(quern_entity_relate(from.world, units[3], from.likes, units[6]));
    must(quern_entity_relate(to.world, known[1], to.parent, known[9]));
    must(quern_entity_relate(to.world, known[8], to.parent, known[1]));
    must(quern_entity_destroy(to.world, known[7]));
    save((const uint32_t[]){3, 2}, 2);
    must(load(loaded, NULL, false));
    assert_target(loaded[1], to.parent, known[1]);
    assert_target(loaded[0], to.parent, loaded[1]);
    assert_target(loaded[0], to.owner, known[5]);
    assert_target(loaded[1], to.owner, quern_entity_null()); /* its target has no id */
    cr_assert(quern_entity_equal(quern_entity_next_sibling(to.world, known[8], to.parent), loaded[1]));
    cr_assert_eq(quern_entity_target_count(to.world, loaded[1], to.likes), 2u);
    cr_assert(quern_entity_has_target(to.world, loaded[1], to.likes, loaded[0]));
    cr_assert(quern_entity_has_target(to.world, loaded[1], to.likes, known[6]));
    cr_assert_eq(quern_entity_source_count(to.world, known[6], to.likes), 2u);
    assert_valid(to.world);
    const quern_load_def without = {.entities = loaded, .entity_capacity = UNITS};
    must(quern_world_load(to.world, quern_source_bytes(memory.bytes, memory.size_bytes), &without, NULL));
    assert_target(loaded[1], to.parent, quern_entity_null());
    assert_target(loaded[0], to.owner, quern_entity_null());
    cr_assert_eq(quern_entity_target_count(to.world, loaded[1], to.likes), 1u);
    cr_assert_eq(quern_entity_target_count(to.world, loaded[0], to.likes), 0u);
    assert_valid(to.world);
}

Test(archive_outside, a_world_without_entities_knows_no_ids)
{
    scene empty;
    quern_entity loaded[2];
    must(quern_entity_relate(from.world, units[2], from.parent, units[1]));
    must(quern_entity_relate(from.world, units[2], from.likes, units[6]));
    save((const uint32_t[]){2}, 1);
    scene_open(&empty, NULL);
    const quern_load_def def = {.outside_entity = entity_of, .entities = loaded, .entity_capacity = 2};
    must(scene_load(&empty, &memory, &def, NULL));
    cr_assert(quern_entity_is_null(quern_entity_target(empty.world, loaded[0], empty.parent)));
    cr_assert_eq(quern_entity_target_count(empty.world, loaded[0], empty.likes), 0u);
    assert_valid(empty.world);
    scene_close(&empty);
}

/* One section has less than 3,000 of them. */
Test(archive_outside, many_targets_need_several_sections)
{
    enum { COUNT = 6000 };
    static quern_entity made[COUNT], loaded[COUNT];
    quern_archive *archive;
    must(quern_entity_create_many(from.world, &from.tag, NULL, 1, COUNT, made));
    for (uint32_t i = 0; i < COUNT; i++)
        must(quern_entity_relate(from.world, made[i], from.owner, units[1 + i % (UNITS - 1)]));
    must(quern_archive_create(from.world, &archive));
    must(quern_archive_append(archive, made, COUNT));
    memory.size_bytes = 0;
    must(quern_archive_save(archive, quern_sink_bytes(&memory), &(quern_save_def){.outside_id = id_of}));
    quern_archive_destroy(archive);
    const quern_load_def def = {.outside_entity = entity_of, .entities = loaded, .entity_capacity = COUNT};
    must(quern_world_load(to.world, quern_source_bytes(memory.bytes, memory.size_bytes), &def, NULL));
    for (uint32_t i = 0; i < COUNT; i++)
        assert_target(loaded[i], to.owner, known[1 + i % (UNITS - 1)]);
    assert_valid(to.world);
}

Test(archive_outside, levels_rise_up_to_the_highest)
{
    quern_entity loaded[UNITS];
    uint32_t list[UNITS];
    for (uint32_t i = 1; i < 20; i++) {
        must(quern_entity_relate(from.world, units[i + 1], from.parent, units[i]));
        must(quern_entity_relate(to.world, known[i + 1], to.parent, known[i]));
        list[i - 1] = i + 10;
    }
    save(list, 10);
    must(load(loaded, NULL, false));
    assert_target(loaded[0], to.parent, known[10]);
    for (uint32_t i = 1; i < 10; i++)
        assert_target(loaded[i], to.parent, loaded[i - 1]);
    assert_valid(to.world);
}

/* Two ids may belong to one entity. */
Test(archive_outside, edges_to_one_entity_are_loaded_once)
{
    quern_entity loaded[UNITS];
    must(quern_entity_relate(from.world, units[2], from.likes, units[6]));
    must(quern_entity_relate(from.world, units[2], from.likes, units[7]));
    known[7] = known[6];
    save((const uint32_t[]){2}, 1);
    must(load(loaded, NULL, false));
    cr_assert_eq(quern_entity_target_count(to.world, loaded[0], to.likes), 1u);
    assert_valid(to.world);
}

Test(archive_outside, a_relation_with_outside_targets_is_not_loaded_as_a_component)
{
    quern_load_def def = {.outside_entity = entity_of,
                          .migrations = {{.name = "owner", .component = to.aim}}};
    must(quern_entity_relate(from.world, units[2], from.owner, units[3]));
    must(quern_entity_relate(from.world, units[3], from.owner, units[4]));
    save((const uint32_t[]){2, 3}, 2);
    const uint64_t hash = quern_world_hash(to.world);
    const quern_source source = quern_source_bytes(memory.bytes, memory.size_bytes);
    must_refuse(LAYOUT_MISMATCH, NULL, quern_world_load(to.world, source, &def, NULL));
    cr_assert_not_null(strstr(quern_error_message(), "owner"));
    cr_assert_eq(quern_world_hash(to.world), hash);
    def.outside_entity = NULL;
    must(quern_world_load(to.world, source, &def, NULL)); /* without the outside target */
    def.outside_entity = entity_of;
    def.migrations[0].component = (quern_component){0};
    must(quern_world_load(to.world, source, &def, NULL));
    save((const uint32_t[]){2, 3, 4}, 3);
    def.migrations[0].component = to.aim;
    must(quern_world_load(to.world, quern_source_bytes(memory.bytes, memory.size_bytes), &def, NULL));
    assert_valid(to.world);
}

Test(archive_outside, names_are_unique_below_outside_parents)
{
    quern_entity loaded[UNITS];
    quern_load_report report;
    must(quern_entity_set_name(to.world, known[1], "house"));
    must(quern_entity_relate(to.world, known[8], to.parent, known[1]));
    must(quern_entity_set_name(to.world, known[8], "cat"));
    must(quern_entity_set_name(to.world, known[9], "dog"));
    for (uint32_t i = 2; i < 5; i++)
        must(quern_entity_relate(from.world, units[i], from.parent, units[i < 4 ? 1 : 10]));
    must(quern_entity_set_name(from.world, units[2], "cat"));
    must(quern_entity_set_name(from.world, units[3], "dog"));
    must(quern_entity_set_name(from.world, units[4], "dog"));
    save((const uint32_t[]){2, 3}, 2);
    const uint64_t hash = quern_world_hash(to.world);
    cr_assert_eq(load(loaded, &report, false), QUERN_ERROR_SIBLING_NAME_TAKEN);
    cr_assert_not_null(strstr(quern_error_message(), "child of its parent"));
    cr_assert_eq(quern_world_hash(to.world), hash);
    must(load(loaded, &report, true));
    cr_assert_eq(report.dropped_name_count, 1u);
    cr_assert(quern_entity_equal(quern_entity_find(to.world, "house/dog"), loaded[1]));
    cr_assert(quern_entity_equal(quern_entity_find(to.world, "house/cat"), known[8]));
    must(quern_entity_destroy(to.world, loaded[1]));
    known[10] = known[1]; /* the parents of units 3 and 4 are one entity here */
    save((const uint32_t[]){3, 4}, 2);
    must(load(loaded, &report, true));
    cr_assert_eq(report.dropped_name_count, 1u);
    cr_assert(quern_entity_equal(quern_entity_find(to.world, "house/dog"), loaded[0]));
    must(quern_entity_destroy(to.world, known[1]));
    cr_assert_eq(load(loaded, &report, false), QUERN_ERROR_SIBLING_NAME_TAKEN); /* now roots */
    assert_valid(to.world);
}

Test(archive_outside, names_below_outside_parents_and_others_find_room_together)
{
    uint32_t list[UNITS], count = 0;
    char name[16];
    for (uint32_t i = 2; i < UNITS; i++) {
        if (i % 2 == 0) must(quern_entity_relate(from.world, units[i], from.parent, units[1]));
        snprintf(name, sizeof name, "unit %u", i);
        must(quern_entity_set_name(from.world, units[i], name));
        list[count++] = i;
    }
    save(list, count);
    quern_entity loaded[UNITS];
    must(load(loaded, NULL, false));
    for (uint32_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "unit %u", list[i]);
        cr_assert_str_eq(quern_entity_name(to.world, loaded[i]), name);
    }
    assert_valid(to.world);
}

/* ------------------------------------------------------------------------------------- the program */

static random_source source;

/* Gives the entities of a world random targets. Forests have edges to smaller indices only, so none is a cycle. */
static void relate_randomly(const scene *it, const quern_entity *entities)
{
    for (uint32_t i = 1; i < UNITS; i++) {
        const quern_entity above =
            entities[random_below(&source, 3) == 0 ? random_below(&source, i) : i - 1];
        if (random_below(&source, 4) != 0)
            must(quern_entity_relate(it->world, entities[i], it->parent, above));
        if (random_below(&source, 2) == 0)
            must(
                quern_entity_relate(it->world, entities[i], it->owner, entities[random_below(&source, i)]));
        for (uint32_t k = random_below(&source, 6); k > 0; k--) {
            const uint32_t to_index = random_below(&source, UNITS);
            if (to_index == i) continue;
            must(quern_entity_relate(it->world, entities[i], it->likes, entities[to_index]));
        }
    }
}

/* Returns what an entity of `from` is in `to`: loaded, known by its id, or null. */
static quern_entity in_world(quern_entity entity, const uint32_t *position, const quern_entity *loaded)
{
    for (uint32_t i = 0; i < UNITS; i++) {
        if (!quern_entity_equal(entity, units[i])) continue;
        if (position[i] != UINT32_MAX) return loaded[position[i]];
        return i > 0 && quern_entity_is_alive(to.world, known[i]) ? known[i] : quern_entity_null();
    }
    return quern_entity_null();
}

static void check_edges(uint32_t unit, const uint32_t *position, const quern_entity *loaded)
{
    quern_entity targets[UNITS];
    uint32_t expected = 0;
    const uint32_t count = quern_entity_list_targets(from.world, units[unit], from.likes, targets, UNITS);
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity target = in_world(targets[i], position, loaded);
        if (quern_entity_is_null(target)) continue;
        expected++;
        cr_assert(quern_entity_has_target(to.world, loaded[position[unit]], to.likes, target));
    }
    cr_assert_eq(quern_entity_target_count(to.world, loaded[position[unit]], to.likes), expected);
}

/* The sources that a known entity gets follow those that it has, in the order of the list. */
static void check_order(quern_relation relation, quern_entity target, const quern_entity *loaded,
                        uint32_t count)
{
    uint32_t next = 0;
    bool is_behind = false;
    for (quern_entity at = quern_entity_first_source(to.world, target, relation); !quern_entity_is_null(at);
         at = quern_entity_next_sibling(to.world, at, relation)) {
        uint32_t i = 0;
        while (i < count && !quern_entity_equal(loaded[i], at))
            i++;
        cr_assert(i < count || !is_behind, "a source of before follows a loaded one");
        cr_assert(i == count || i >= next);
        is_behind |= i < count;
        if (i < count) next = i;
    }
}

static void load_random_list(bool through_session)
{
    uint32_t list[UNITS], position[UNITS], count = 0;
    quern_entity loaded[UNITS];
    memset(position, 0xFF, sizeof position);
    for (uint32_t i = 0; i < UNITS; i++) {
        const uint32_t at = random_below(&source, UNITS);
        if (position[at] != UINT32_MAX) continue;
        position[at] = count;
        list[count++] = at;
    }
    for (uint32_t i = 0; i < UNITS; i++)
        if (random_below(&source, 12) == 0 && quern_entity_is_alive(to.world, known[i]))
            must(quern_entity_destroy(to.world, known[i]));
    if (through_session) {
        memset(position, 0xFF, sizeof position);
        quern_archive *archive;
        quern_save_session *out;
        quern_load_session *in;
        must(quern_archive_create(from.world, &archive));
        must(quern_save_session_create(from.world, &(quern_save_def){.outside_id = id_of}, &out));
        must(quern_load_session_create(to.world, &(quern_load_def){.outside_entity = entity_of}, &in));
        for (uint32_t i = 0; i < count; i++) {
            quern_archive_clear(archive); /* one entity for each message: all targets are outside */
            memory.size_bytes = 0;
            must(quern_archive_append(archive, &units[list[i]], 1));
            must(quern_save_session_write(out, archive, quern_sink_bytes(&memory)));
            must(quern_load_session_read(in, quern_source_bytes(memory.bytes, memory.size_bytes),
                                         &loaded[i], 1, NULL));
            cr_assert(quern_entity_equal(
                quern_entity_target(to.world, loaded[i], to.parent),
                in_world(quern_entity_target(from.world, units[list[i]], from.parent), position, loaded)));
        }
        quern_save_session_destroy(out);
        quern_load_session_destroy(in);
        quern_archive_destroy(archive);
        assert_valid(to.world);
        return;
    }
    save(list, count);
    must(load(loaded, NULL, false));
    for (uint32_t i = 0; i < count; i++) {
        const quern_entity unit = units[list[i]];
        assert_target(loaded[i], to.parent,
                      in_world(quern_entity_target(from.world, unit, from.parent), position, loaded));
        assert_target(loaded[i], to.owner,
                      in_world(quern_entity_target(from.world, unit, from.owner), position, loaded));
        check_edges(list[i], position, loaded);
    }
    for (uint32_t i = 0; i < UNITS; i++)
        if (quern_entity_is_alive(to.world, known[i])) check_order(to.parent, known[i], loaded, count);
    assert_valid(to.world); /* levels, among others */
}

Test(archive_outside, random_lists_keep_all_targets)
{
    source = (random_source){5};
    for (uint32_t round = 0; round < 30; round++) {
        relate_randomly(&from, units);
        relate_randomly(&to, known);
        for (uint32_t i = 0; i < 3; i++)
            load_random_list(i == 2);
        close_scenes();
        memory = (quern_byte_buffer){0};
        open_scenes();
    }
}

/* --------------------------------------------------------------------------------- failure and damage */

Test(archive_outside, every_failed_allocation_changes_nothing)
{
    must(quern_entity_relate(from.world, units[2], from.parent, units[1]));
    must(quern_entity_relate(from.world, units[3], from.parent, units[2]));
    must(quern_entity_relate(from.world, units[3], from.owner, units[5]));
    for (uint32_t i = 6; i < 30; i++)
        must(quern_entity_relate(from.world, units[2], from.likes, units[i]));
    must(quern_entity_set_name(from.world, units[2], "two"));
    failing_allocator *allocator = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(allocator);
    bool has_succeeded = false;
    const quern_allocator before = interface;
    for (uint64_t call = 1; !has_succeeded; call++) {
        quern_entity loaded[UNITS];
        scene_close(&to);
        scene_open(&to, &before);
        for (uint32_t i = 0; i < UNITS; i++)
            known[i] = setup_entity_with(to.world, &to.raw, 1);
        must(quern_entity_relate(to.world, known[1], to.parent, known[8]));
        must(quern_entity_relate(to.world, known[7], to.likes, known[6]));
        save((const uint32_t[]){2, 3}, 2);
        const uint64_t hash = quern_world_hash(to.world);
        has_succeeded = !runs_out_of_memory(allocator, call, load(loaded, NULL, false));
        assert_valid(to.world);
        if (has_succeeded) continue;
        cr_assert_eq(quern_world_hash(to.world), hash);
        cr_assert_eq(quern_entity_source_count(to.world, known[6], to.likes), 1u);
        must(load(loaded, NULL, false));
        cr_assert_eq(quern_entity_target_count(to.world, loaded[0], to.likes), 24u);
        assert_valid(to.world);
    }
    scene_close(&to);
    failing_allocator_close(allocator);
    scene_open(&to, NULL);
}

Test(archive_outside, saving_reports_failed_allocations)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(allocator);
    scene_close(&from);
    scene_open(&from, &interface);
    for (uint32_t i = 0; i < UNITS; i++)
        units[i] = setup_entity_with(from.world, &from.place, 1);
    for (uint32_t i = 6; i < 30; i++)
        must(quern_entity_relate(from.world, units[2], from.likes, units[i]));
    quern_archive *archive;
    must(quern_archive_create(from.world, &archive));
    must(quern_archive_append(archive, &units[2], 1));
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    uint32_t failed_count = 0;
    for (uint64_t call = 1; result != QUERN_OK; call++, failed_count++) {
        memory.size_bytes = 0;
        failing_allocator_fail_at(allocator, call);
        result =
            quern_archive_save(archive, quern_sink_bytes(&memory), &(quern_save_def){.outside_id = id_of});
        failing_allocator_heal(allocator);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
    }
    cr_assert_gt(failed_count, 8u);
    quern_entity loaded[UNITS];
    must(load(loaded, NULL, false));
    cr_assert_eq(quern_entity_target_count(to.world, loaded[0], to.likes), 24u);
    quern_archive_destroy(archive);
    scene_close(&from);
    failing_allocator_close(allocator);
    scene_open(&from, NULL);
}

/* Each byte is changed in two ways, behind correct checksums. */
Test(archive_outside, damaged_archives_are_rejected_or_give_a_valid_world)
{
    quern_entity loaded[UNITS];
    uint32_t rejected_count = 0;
    must(quern_entity_relate(from.world, units[2], from.parent, units[1]));
    must(quern_entity_relate(from.world, units[3], from.parent, units[2]));
    must(quern_entity_relate(from.world, units[3], from.likes, units[5]));
    must(quern_entity_relate(from.world, units[2], from.likes, units[3]));
    must(quern_entity_set_name(from.world, units[2], "two"));
    save((const uint32_t[]){2, 3}, 2);
    char *bytes = malloc(memory.size_bytes + 1);
    for (size_t i = 0; i < 2 * memory.size_bytes; i++) {
        memcpy(bytes, memory.bytes, memory.size_bytes);
        bytes[i / 2] = (char)(bytes[i / 2] ^ (i % 2 == 0 ? 1 : 0x86));
        reseal(bytes, memory.size_bytes);
        const uint64_t hash = quern_world_hash(to.world);
        const quern_load_def def = {.outside_entity = entity_of,
                                    .entities = loaded,
                                    .entity_capacity = UNITS,
                                    .drop_taken_names = true};
        if (quern_world_load(to.world, quern_source_bytes(bytes, memory.size_bytes), &def, NULL) ==
            QUERN_OK)
            continue;
        rejected_count++;
        cr_assert_eq(quern_world_hash(to.world), hash);
    }
    cr_assert_gt(rejected_count, 100u);
    assert_valid(to.world);
    free(bytes);
}
