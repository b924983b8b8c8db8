/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/world_internal.h"
#include "tests/core/archive/scene.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

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

/* Makes equal changes to both worlds and checks that the results are equal. */
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
    quern_byte_buffer memory = scene_save(&from);
    quern_load_report report;
    must(scene_load(&to, &memory, NULL, &report));
    cr_assert(report.keeps_handles);
    cr_assert_eq(report.missing_count, 0);
    cr_assert_eq(report.converted_count, 0);
    cr_assert_eq(report.entity_count, stats_of_world(from.world).entity_count);
    quern_byte_buffer_release(&memory);
}

Test(archive, loading_into_an_empty_world_gives_the_same_hash_and_behaviour)
{
    scene_fill(&from, 0);
    load_all();
    assert_same();
}

Test(archive, a_world_of_many_chunks_is_loaded)
{
    scene_fill(&from, 20000);
    load_all();
    assert_same();
}

Test(archive, a_world_without_entities_is_loaded)
{
    load_all();
    cr_assert_eq(quern_world_hash(from.world), quern_world_hash(to.world));
    assert_valid(to.world);
}

Test(archive, slots_of_absent_pages_are_loaded_as_free_slots)
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
        cr_assert_eq(quern_entity_use_count(from.world, a), quern_entity_use_count(to.world, b));
    }
    free(many);
}

Test(archive, bytes_of_a_resource_outside_of_fields_are_unchanged)
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

Test(archive, skip_resources_leaves_resources_unchanged)
{
    scene_fill(&from, 0);
    quern_byte_buffer memory = scene_save(&from);
    must(scene_load(&to, &memory, &(quern_load_def){.skip_resources = true}, NULL));
    cr_assert_eq(((scene_clock *)quern_resource_get(to.world, to.clock))->ticks, 0);
    memory.size_bytes = 0;
    must(
        quern_world_save(from.world, quern_sink_bytes(&memory), &(quern_save_def){.skip_resources = true}));
    scene third;
    scene_open(&third, NULL);
    must(scene_load(&third, &memory, NULL, NULL));
    cr_assert_eq(((scene_clock *)quern_resource_get(third.world, third.clock))->ticks, 0);
    scene_close(&third);
    quern_byte_buffer_release(&memory);
}

Test(archive, a_file_contains_the_same_bytes_as_memory)
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

Test(archive, a_copy_is_the_same_world)
{
    scene_fill(&from, 500);
    quern_load_report report;
    must(quern_world_copy(from.world, to.world, NULL, NULL, &report));
    cr_assert(report.keeps_handles);
    assert_same();
}

Test(archive, copies_that_fail_change_nothing)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    scene source;
    scene_open(&source, &allocator);
    scene_fill(&source, 50);
    must_refuse(INVALID_ARGUMENT, source.world,
                quern_world_copy(source.world, source.world, NULL, NULL, NULL));
    must_refuse(NULL_ARGUMENT, to.world, quern_world_copy(NULL, to.world, NULL, NULL, NULL));
    must_refuse(NULL_ARGUMENT, source.world, quern_world_copy(source.world, NULL, NULL, NULL, NULL));
    const uint64_t hash = quern_world_hash(to.world);
    for (uint64_t call = 1;; call++) {
        if (!runs_out_of_memory(memory, call, quern_world_copy(source.world, to.world, NULL, NULL, NULL)))
            break;
        cr_assert_eq(quern_world_hash(to.world), hash);
    }
    cr_assert_eq(quern_world_hash(to.world), quern_world_hash(source.world));
    scene_close(&source);
    failing_allocator_close(memory);
}

/* ------------------------------------------------------------------------------- worlds with others */

Test(archive, loading_into_a_filled_world_creates_entities_and_remaps_handles)
{
    scene_fill(&from, 0);
    quern_entity stranger, entities[256];
    must(quern_entity_create_with(to.world, &to.tag, NULL, 1, &stranger));
    const uint64_t count = stats_of_world(from.world).entity_count;
    cr_assert_leq(count, 256);
    quern_byte_buffer memory = scene_save(&from);
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
    quern_byte_buffer_release(&memory);
}

Test(archive, drop_taken_names_allows_repeated_loading)
{
    scene_fill(&from, 0);
    quern_byte_buffer memory = scene_save(&from);
    quern_load_report report;
    must(scene_load(&to, &memory, NULL, NULL));
    must_refuse(SIBLING_NAME_TAKEN, to.world, scene_load(&to, &memory, NULL, NULL));
    must(scene_load(&to, &memory, &(quern_load_def){.drop_taken_names = true}, &report));
    cr_assert_gt(report.dropped_name_count, 0);
    assert_valid(to.world);
    quern_byte_buffer_release(&memory);
}

/* --------------------------------------------------------------------------------------- refusals */

Test(archive, null_arguments_are_rejected)
{
    quern_byte_buffer memory = {0};
    const quern_source nothing = quern_source_bytes(NULL, 0);
    must_refuse(NULL_ARGUMENT, to.world, quern_world_save(NULL, quern_sink_bytes(&memory), NULL));
    must_refuse(NULL_ARGUMENT, to.world, quern_world_save(to.world, (quern_sink){0}, NULL));
    must_refuse(NULL_ARGUMENT, to.world, quern_world_load(to.world, nothing, NULL, NULL));
    must_refuse(NULL_ARGUMENT, to.world, quern_world_load(NULL, quern_source_bytes("x", 1), NULL, NULL));
    must_refuse(BAD_ARCHIVE, to.world, quern_world_load(to.world, quern_source_bytes("x", 1), NULL, NULL));
    must_refuse(NULL_ARGUMENT, to.world,
                quern_world_load(to.world, quern_source_bytes("x", 1),
                                 &(quern_load_def){.entity_capacity = 1}, NULL));
}

static bool write_nothing(void *user_data, const char *text, size_t bytes)
{
    return false;
}

Test(archive, a_failing_sink_is_reported)
{
    scene_fill(&from, 0);
    must_refuse(IO, from.world, quern_world_save(from.world, (quern_sink){.write = write_nothing}, NULL));
}

Test(archive, saving_with_waiting_commands_is_rejected)
{
    quern_commands *commands = quern_world_commands(from.world);
    cr_assert_neq(record_entity(commands).bits, 0);
    quern_byte_buffer memory = {0};
    must_refuse(INVALID_ARGUMENT, from.world,
                quern_world_save(from.world, quern_sink_bytes(&memory), NULL));
    must(quern_world_flush(from.world));
    must(quern_world_save(from.world, quern_sink_bytes(&memory), NULL));
    quern_byte_buffer_release(&memory);
}

/* ----------------------------------------------------------------------------------------- memory */

Test(archive, a_load_without_memory_changes_nothing)
{
    scene_fill(&from, 300);
    quern_byte_buffer memory = scene_save(&from);
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
            failing_allocator_fail_at(failing, i);
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
    quern_byte_buffer_release(&memory);
}

Test(archive, a_save_without_memory_fails)
{
    failing_allocator *failing = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(failing);
    scene it;
    scene_open(&it, &interface);
    scene_fill(&it, 0);
    const uint64_t hash = quern_world_hash(it.world);
    quern_byte_buffer memory = {0};
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 1; result != QUERN_OK; i++) {
        cr_assert_lt(i, 100, "%s", quern_error_message());
        memory.size_bytes = 0;
        failing_allocator_fail_at(failing, i);
        result = quern_world_save(it.world, quern_sink_bytes(&memory), NULL);
        failing_allocator_heal(failing);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        cr_assert_eq(quern_world_hash(it.world), hash);
    }
    must(scene_load(&to, &memory, NULL, NULL));
    cr_assert_eq(quern_world_hash(to.world), hash);
    scene_close(&it);
    failing_allocator_close(failing);
    quern_byte_buffer_release(&memory);
}

/* ------------------------------------------------------------------------------------------ chunks */

enum { TAG_COUNT = 9 };

/* A world with a very large component, so that the layout index of an archetype decides how many rows
 * fit a chunk. */
typedef struct wide_world {
    quern_world *world;
    quern_component components[TAG_COUNT + 1]; /* tags, then the large component */
} wide_world;

static wide_world open_wide(void)
{
    wide_world it = {.world = setup_world()};
    char name[] = "tag 0";
    for (uint32_t i = 0; i < TAG_COUNT; i++, name[4]++)
        it.components[i] = setup_tag(it.world, name);
    it.components[TAG_COUNT] = setup_component(it.world, "wide", 3000, 4);
    return it;
}

static void make_many_archetypes(const wide_world *it, uint32_t count)
{
    for (uint32_t set = 1; set <= count; set++) {
        quern_component list[TAG_COUNT];
        uint32_t list_count = 0;
        for (uint32_t i = 0; i < TAG_COUNT; i++)
            if ((set >> i & 1) != 0) list[list_count++] = it->components[i];
        must(quern_entity_destroy(it->world, setup_entity_with(it->world, list, list_count)));
    }
}

/* Returns the row counts of the first chunks as decimal digits. */
static uint64_t list_views(const wide_world *it)
{
    quern_query *query =
        setup_query(it->world, (quern_term[]){quern_term_with(it->components[TAG_COUNT])}, 1);
    quern_query_iterator iterator = quern_query_iterate(query);
    uint64_t digits = 0;
    while (quern_query_next(&iterator))
        digits = digits * 10 + iterator.view.count;
    quern_query_destroy(query);
    return digits;
}

static void fill_wide(const wide_world *it, uint32_t tag, uint32_t count)
{
    const quern_component list[] = {it->components[tag], it->components[TAG_COUNT]};
    for (uint32_t i = 0; i < count; i++)
        setup_entity_with(it->world, list, 2);
}

static wide_world reload(const wide_world *saved)
{
    const wide_world loaded = open_wide();
    quern_byte_buffer memory = {0};
    must(quern_world_save(saved->world, quern_sink_bytes(&memory), NULL));
    must(quern_world_load(loaded.world, quern_source_bytes(memory.bytes, memory.size_bytes), NULL, NULL));
    quern_byte_buffer_release(&memory);
    return loaded;
}

static void assert_same_chunks(const wide_world *saved, const wide_world *loaded)
{
    assert_valid(loaded->world);
    cr_assert_eq(list_views(loaded), list_views(saved));
    cr_assert_eq(quern_world_hash(loaded->world), quern_world_hash(saved->world));
}

Test(archive, chunk_layouts_do_not_depend_on_removed_archetypes)
{
    for (uint32_t count = 1; count < 512; count += 73) {
        wide_world saved = open_wide();
        make_many_archetypes(&saved, count);
        fill_wide(&saved, 0, 22);
        must(quern_world_remove_empty_archetypes(saved.world, NULL));
        wide_world loaded = reload(&saved), again = reload(&loaded);
        assert_same_chunks(&saved, &loaded);
        assert_same_chunks(&saved, &again);
        /* archetypes created later get equal layout indices */
        make_many_archetypes(&saved, 300);
        make_many_archetypes(&loaded, 300);
        fill_wide(&saved, 1, 22);
        fill_wide(&loaded, 1, 22);
        assert_same_chunks(&saved, &loaded);
        quern_world_destroy(saved.world);
        quern_world_destroy(loaded.world);
        quern_world_destroy(again.world);
    }
}

static void forget_values(void *values, uint32_t count, void *user_data) {}

/* Creates eight archetypes without rows that have a component with hooks. */
static void make_owners(const wide_world *it)
{
    quern_component owner = make_component(it->world, .name = "owner", .size_bytes = 8,
                                           .alignment_bytes = 8, .hooks = {.destroy = forget_values});
    for (uint32_t i = 0; i < 8; i++)
        must(quern_entity_destroy(
            it->world, setup_entity_with(it->world, (quern_component[]){owner, it->components[i]}, 2)));
}

Test(archive, archetypes_without_rows_are_saved_even_with_hooks)
{
    wide_world saved = open_wide();
    make_many_archetypes(&saved, 120);
    make_owners(&saved);
    wide_world loaded = open_wide(), without = reload(&saved);
    make_component(loaded.world, .name = "owner", .size_bytes = 8, .alignment_bytes = 8,
                   .hooks = {.destroy = forget_values});
    quern_byte_buffer memory = {0};
    must(quern_world_save(saved.world, quern_sink_bytes(&memory), NULL));
    must(quern_world_load(loaded.world, quern_source_bytes(memory.bytes, memory.size_bytes), NULL, NULL));
    cr_assert_eq(stats_of_world(loaded.world).archetype_count, stats_of_world(saved.world).archetype_count);
    for (uint32_t tag = 0; tag < TAG_COUNT; tag++) {
        fill_wide(&saved, tag, 11);
        fill_wide(&loaded, tag, 11);
    }
    assert_same_chunks(&saved, &loaded);
    assert_valid(without.world);
    quern_byte_buffer_release(&memory);
    quern_world_destroy(saved.world);
    quern_world_destroy(loaded.world);
    quern_world_destroy(without.world);
}

/* ----------------------------------------------------------------------------------------- handles */

static quern_entity find_aim(const scene *it)
{
    quern_query *query = setup_query(it->world, (quern_term[]){quern_term_read(it->aim)}, 1);
    quern_query_iterator iterator = quern_query_iterate(query);
    cr_assert(quern_query_next(&iterator));
    const quern_entity found = iterator.view.entities[0];
    quern_query_destroy(query);
    return found;
}

/* Writes a handle that is not of this world into a field, through a pointer, and checks that it loads as
 * null. */
static void assert_loaded_as_null(quern_entity stranger)
{
    const quern_entity holder = setup_entity_with(from.world, &from.aim, 1);
    scene_aim *aim = quern_entity_get(from.world, holder, from.aim);
    const uint64_t hash = quern_world_hash(from.world);
    aim->at = stranger;
    cr_assert_eq(quern_world_hash(from.world), hash, "it counts as null");
    ((scene_clock *)quern_resource_get(from.world, from.clock))->focus = stranger;
    cr_assert_eq(quern_world_hash(from.world), hash, "it counts as null");
    load_all();
    cr_assert_eq(quern_world_hash(to.world), hash);
    aim = quern_entity_get(to.world, find_aim(&to), to.aim);
    cr_assert_eq(aim->at.bits, 0);
    cr_assert_eq(((scene_clock *)quern_resource_get(to.world, to.clock))->focus.bits, 0);
}

Test(archive, a_provisional_handle_becomes_null)
{
    assert_loaded_as_null(entity_provisional(3));
}

Test(archive, a_handle_of_another_world_becomes_null)
{
    scene third;
    scene_open(&third, NULL);
    const quern_entity stranger = setup_entity(third.world);
    assert_loaded_as_null(stranger);
    scene_close(&third);
}

Test(archive, a_handle_of_the_loading_world_becomes_null)
{
    const uint64_t tags = from.clock.bits ^ to.clock.bits;
    assert_loaded_as_null((quern_entity){setup_entity(from.world).bits ^ tags << 32});
}

/* ---------------------------------------------------------------------------------- callbacks */

/* Functions that read and write memory, and try to change the world meanwhile. */
typedef struct meddler {
    quern_world *world;
    const quern_byte_buffer *memory;
    size_t position;
    uint32_t refused_count;
} meddler;

static void meddle(meddler *it)
{
    quern_entity entity;
    it->refused_count += quern_entity_create(it->world, &entity) == QUERN_ERROR_WORLD_LOCKED;
}

static size_t read_and_meddle(void *user_data, void *bytes, size_t count)
{
    meddler *it = user_data;
    const size_t left = it->memory->size_bytes - it->position, taken = left < count ? left : count;
    meddle(it);
    memcpy(bytes, (const char *)it->memory->bytes + it->position, taken);
    it->position += taken;
    return taken;
}

static bool write_and_meddle(void *user_data, const char *text, size_t bytes)
{
    meddle(user_data);
    return true;
}

Test(archive, sources_and_sinks_must_not_change_the_world)
{
    scene_fill(&from, 0);
    const uint64_t hash = quern_world_hash(from.world);
    quern_byte_buffer memory = scene_save(&from);
    meddler reader = {.world = to.world, .memory = &memory}, writer = {.world = from.world};
    must(quern_world_load(to.world, (quern_source){.read = read_and_meddle, .user_data = &reader}, NULL,
                          NULL));
    cr_assert_gt(reader.refused_count, 0);
    cr_assert_eq(quern_world_hash(to.world), hash);
    must(quern_world_save(from.world, (quern_sink){.write = write_and_meddle, .user_data = &writer}, NULL));
    const uint32_t refused_count = writer.refused_count;
    cr_assert_gt(refused_count, 0);
    quern_archive *list;
    must(quern_archive_create(from.world, &list));
    must(quern_archive_save(list, (quern_sink){.write = write_and_meddle, .user_data = &writer}, NULL));
    quern_archive_destroy(list);
    cr_assert_gt(writer.refused_count, refused_count);
    cr_assert_eq(quern_world_hash(from.world), hash);
    assert_same(); /* both worlds are unlocked again */
    quern_byte_buffer_release(&memory);
}

/* -------------------------------------------------------------------------------------- what comes next */

Test(archive, a_query_finds_loaded_entities_and_an_open_iteration_ends)
{
    scene_fill(&from, 0);
    quern_query *query = setup_query(to.world, (quern_term[]){quern_term_read(to.place)}, 1);
    cr_assert_eq(quern_query_count(query), 0);
    load_all();
    quern_query *saved = setup_query(from.world, (quern_term[]){quern_term_read(from.place)}, 1);
    cr_assert_eq(quern_query_count(query), quern_query_count(saved));
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    quern_byte_buffer memory = scene_save(&from);
    must(scene_load(&to, &memory, &(quern_load_def){.drop_taken_names = true}, NULL));
    cr_assert_not(quern_query_next(&it));
    cr_assert_neq(it.result, QUERN_OK, "it was under way when entities came");
    cr_assert_eq(quern_query_count(query), 2 * quern_query_count(saved));
    quern_byte_buffer_release(&memory);
    quern_query_destroy(query);
    quern_query_destroy(saved);
}

Test(archive, destroying_a_loaded_entity_frees_its_name)
{
    scene names;
    scene_open(&names, NULL);
    must(quern_entity_set_name(from.world, setup_entity(from.world), "only"));
    quern_byte_buffer memory = scene_save(&from);
    must(scene_load(&names, &memory, NULL, NULL));
    must(quern_entity_destroy(names.world, quern_entity_find(names.world, "only")));
    cr_assert_eq(quern_entity_find(names.world, "only").bits, 0);
    must(scene_load(&names, &memory, NULL, NULL));
    assert_valid(names.world);
    quern_byte_buffer_release(&memory);
    scene_close(&names);
}

/* Creates a world that removes archetypes at sync points, with one component for each archetype. */
static quern_world *open_reclaiming(quern_component tags[6])
{
    char name[] = "tag 0";
    quern_world *world = make_world(.empty_archetype_checks_per_sync = 2);
    for (uint32_t i = 0; i < 6; i++, name[4]++)
        tags[i] = setup_tag(world, name);
    return world;
}

static void sync(quern_schedule *schedule)
{
    must(quern_schedule_run(schedule, NULL, 0.5f));
}

/* The state of archetypes without rows continues as in the saved world. */
Test(archive, archetypes_are_removed_at_the_same_sync_points)
{
    uint32_t removed_count = 0;
    for (uint32_t wait = 0; wait < 40; wait++) {
        quern_component tags[6], others[6];
        quern_world *saved = open_reclaiming(tags), *loaded = open_reclaiming(others);
        quern_schedule *frames = setup_schedule(saved), *loaded_frames = setup_schedule(loaded);
        quern_byte_buffer memory = {0};
        for (uint32_t i = 0; i < 6; i++) {
            const quern_entity entity = setup_entity_with(saved, &tags[i], 1);
            if (i % 2 == 0) must(quern_entity_destroy(saved, entity));
        }
        for (uint32_t i = 0; i < wait; i++)
            sync(frames);
        must(quern_world_save(saved, quern_sink_bytes(&memory), NULL));
        must(quern_world_load(loaded, quern_source_bytes(memory.bytes, memory.size_bytes), NULL, NULL));
        for (uint32_t i = 0; i < 45; i++) {
            const uint32_t count = stats_of_world(saved).archetype_count;
            cr_assert_eq(stats_of_world(loaded).archetype_count, count, "%u + %u sync points", wait, i);
            sync(frames);
            sync(loaded_frames);
            removed_count += stats_of_world(saved).archetype_count < count;
        }
        quern_byte_buffer_release(&memory);
        quern_schedule_destroy(frames);
        quern_schedule_destroy(loaded_frames);
        quern_world_destroy(saved);
        quern_world_destroy(loaded);
    }
    cr_assert_gt(removed_count, 0);
}

Test(archive, at_most_entity_capacity_handles_are_returned)
{
    scene_fill(&from, 0);
    quern_entity entities[4] = {{1}, {2}, {3}, {4}};
    quern_byte_buffer memory = scene_save(&from);
    must(scene_load(&to, &memory, &(quern_load_def){.entities = entities, .entity_capacity = 3}, NULL));
    for (uint32_t i = 0; i < 3; i++)
        cr_assert(quern_entity_is_alive(to.world, entities[i]));
    cr_assert_eq(entities[3].bits, 4);
    quern_byte_buffer_release(&memory);
}

/* Destroys an entity so that the next one in its slot is the last. */
static void destroy_before_last_use(quern_entity entity)
{
    const quern__entities *entities = &from.world->storage.entities;
    const uint32_t slot = quern_entity_index(entity);
    const uint64_t last = (uint64_t)QUERN__MAX_GENERATION << 32 | slot;
    must(quern_entity_destroy(from.world, entity));
    quern__entities_record(entities, slot)->handle_high =
        (uint32_t)(quern__entity_from_relative(last, entities->first_handle_high).bits >> 32);
}

Test(archive, retired_slots_and_slots_before_their_last_use_are_loaded)
{
    quern_entity entities[8];
    for (uint32_t i = 0; i < 8; i++)
        entities[i] = setup_entity(from.world);
    for (uint32_t i = 1; i < 6; i += 2)
        destroy_before_last_use(entities[i]);
    for (uint32_t i = 0; i < 2; i++) /* the two last freed slots are reused first */
        entities[i] = setup_entity(from.world);
    must(quern_entity_destroy(from.world, entities[0]));
    must(quern_entity_destroy(from.world, entities[1]));
    cr_assert_eq(stats_of_world(from.world).retired_count, 2);
    load_all();
    cr_assert_eq(stats_of_world(to.world).retired_count, 2);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(quern_world_hash(to.world), quern_world_hash(from.world));
        assert_valid(to.world);
        cr_assert_eq(quern_entity_index(setup_entity(to.world)),
                     quern_entity_index(setup_entity(from.world)));
    }
}

Test(archive, children_can_exceed_one_section)
{
    enum { COUNT = 5000 };
    const quern_entity root = setup_entity(from.world);
    for (uint32_t i = 0; i < COUNT; i++)
        must(quern_entity_relate(from.world, setup_entity(from.world), from.owner, root));
    load_all();
    cr_assert_eq(quern_world_hash(to.world), quern_world_hash(from.world));
    assert_valid(to.world);
}
