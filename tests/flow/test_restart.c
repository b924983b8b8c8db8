/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "core/world/world_internal.h"
#include "sched/history/saved_schedule.h"
#include "tests/core/archive/reseal.h"
#include "tests/flow/flow_setup.h"
#include "tests/flow/restart_scene.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

#include <stdlib.h>
#include <string.h>

/* A world that is loaded with the state of its schedule runs the same frames as the saved one. */

enum { FRAMES = 14, UNITS = 700, FEW = 40 };

static restart_scene from, to;
static quern_byte_buffer points[FRAMES];
static uint64_t hashes[FRAMES + 1];

static void release_points(void)
{
    for (uint32_t i = 0; i < FRAMES; i++)
        quern_byte_buffer_release(&points[i]);
}

TestSuite(restart, .fini = release_points);

/* Plays all frames and saves before each, when changes between frames are pending. */
static void play(uint32_t count, quern_jobs *jobs)
{
    restart_open(&from, NULL);
    restart_fill(&from, count);
    for (uint64_t frame = 0; frame < FRAMES; frame++) {
        restart_disturb(&from, frame);
        points[frame] = restart_save(&from);
        must(restart_run(&from, jobs));
        hashes[frame + 1] = quern_world_hash(from.world);
    }
    restart_close(&from);
}

static void go_on(uint64_t first, uint32_t thread_count)
{
    quern_jobs *jobs = setup_jobs(thread_count);
    restart_open(&to, NULL);
    must(restart_load(&to, points[first].bytes, points[first].size_bytes));
    for (uint64_t frame = first; frame < FRAMES; frame++) {
        if (frame > first) restart_disturb(&to, frame);
        assert_valid(to.world);
        must(restart_run(&to, jobs));
        cr_assert_eq(quern_world_hash(to.world), hashes[frame + 1],
                     "from frame %llu, frame %llu, %u threads", (unsigned long long)first,
                     (unsigned long long)frame, thread_count);
    }
    restart_close(&to);
    quern_jobs_destroy(jobs);
}

Test(restart, every_frame_is_a_start_at_every_thread_count)
{
    play(UNITS, NULL);
    for (uint32_t frame = 0; frame < FRAMES; frame++)
        go_on(frame, pool_threads[frame % POOL_COUNT]);
    for (uint32_t i = 0; i < POOL_COUNT; i++)
        go_on(FRAMES / 2, pool_threads[i]);
}

Test(restart, archive_of_a_loaded_world_is_the_same)
{
    play(UNITS, NULL);
    restart_open(&to, NULL);
    must(restart_load(&to, points[5].bytes, points[5].size_bytes));
    quern_byte_buffer again = restart_save(&to);
    restart_close(&to);
    restart_open(&to, NULL);
    must(restart_load(&to, again.bytes, again.size_bytes));
    must(restart_run(&to, NULL));
    cr_assert_eq(quern_world_hash(to.world), hashes[6]);
    restart_close(&to);
    quern_byte_buffer_release(&again);
}

Test(restart, archive_does_not_depend_on_threads)
{
    quern_byte_buffer kept[FRAMES];
    play(UNITS, NULL);
    memcpy(kept, points, sizeof kept);
    quern_jobs *jobs = setup_jobs(3);
    play(UNITS, jobs);
    quern_jobs_destroy(jobs);
    for (uint32_t i = 0; i < FRAMES; i++)
        cr_assert_eq(points[i].size_bytes, kept[i].size_bytes, "frame %u", i);
    release_points();
    memcpy(points, kept, sizeof kept);
}

/* Records commands between frames that move, create, destroy and relate entities. */
static void record_waiting(const restart_scene *it)
{
    quern_entity units[8];
    uint32_t count = 0;
    quern_query_iterator walk = quern_query_iterate(it->all);
    while (count < 8 && quern_query_next(&walk))
        for (uint32_t i = 0; i < walk.view.count && count < 8; i++)
            units[count++] = walk.view.entities[i];
    cr_assert_eq(count, 8u);
    quern_commands *commands = quern_world_commands(it->world);
    const quern_entity made = record_entity(commands);
    must(quern_commands_add(commands, made, it->unit, &(restart_unit){.number = 5000, .friend = units[1]}));
    must(quern_commands_relate(commands, units[2], it->owner, made));
    must(quern_commands_set(commands, units[3], it->unit, &(restart_unit){.number = 6000, .friend = made}));
    must(quern_commands_remove(commands, units[4], it->heat));
    must(quern_commands_add(commands, units[5], it->heat, NULL));
    must(quern_commands_destroy(commands, units[6]));
}

/* Waiting commands cannot be saved. The next frame would apply them first; applying them before saving gives the same
 * frames. */
Test(restart, flushed_commands_give_the_frames_that_would_have_applied_them)
{
    uint64_t expected[3];
    for (uint32_t saves = 0; saves < 2; saves++) {
        restart_open(&from, NULL);
        restart_fill(&from, UNITS);
        for (uint64_t frame = 0; frame < 6; frame++) {
            restart_disturb(&from, frame);
            if (frame == 3) record_waiting(&from);
            if (frame == 3 && saves) {
                quern_byte_buffer memory = {0};
                cr_assert_eq(quern_world_save(from.world, quern_sink_bytes(&memory),
                                              &(quern_save_def){.schedules = {from.schedule}}),
                             QUERN_ERROR_INVALID_ARGUMENT);
                cr_assert_not_null(strstr(quern_error_message(), "quern_world_flush"));
                must(quern_world_flush(from.world));
                memory = restart_save(&from);
                restart_close(&from);
                restart_open(&from, NULL);
                must(restart_load(&from, memory.bytes, memory.size_bytes));
                quern_byte_buffer_release(&memory);
            }
            must(restart_run(&from, NULL));
            if (frame < 3) continue;
            if (saves) cr_assert_eq(quern_world_hash(from.world), expected[frame - 3]);
            expected[frame - 3] = quern_world_hash(from.world);
        }
        restart_close(&from);
    }
}

/* Without schedules the state is ignored: frames start anew. */
Test(restart, state_is_ignored_without_schedules)
{
    play(FEW, NULL);
    restart_open(&to, NULL);
    must(quern_world_load(to.world, quern_source_bytes(points[5].bytes, points[5].size_bytes), NULL, NULL));
    assert_valid(to.world);
    must(restart_run(&to, NULL));
    cr_assert_neq(quern_world_hash(to.world), hashes[6]);
    restart_close(&to);
}

/* The clock of the loading world is later than that of the archive, so rows get versions that the query has seen. */
Test(restart, filters_outside_of_the_schedules_see_everything_as_changed)
{
    play(FEW, NULL);
    restart_open(&to, NULL);
    quern_query *query =
        setup_query(to.world, (quern_term[]){quern_term_changed(quern_term_read(to.unit))}, 1);
    for (uint32_t i = 0; i < 10 * FRAMES; i++)
        must(restart_run(&to, NULL));
    cr_assert_eq(iterate_rows(query), 0u);
    must(restart_load(&to, points[FRAMES / 2].bytes, points[FRAMES / 2].size_bytes));
    cr_assert_eq(iterate_rows(query), quern_query_count(to.all));
    quern_query_destroy(query);
    restart_close(&to);
}

/* ----------------------------------------------------------------------------------------- errors */

static quern_result save_with(const restart_scene *it, const quern_save_def *def)
{
    quern_byte_buffer memory = {0};
    const quern_result result = quern_world_save(it->world, quern_sink_bytes(&memory), def);
    cr_assert(result == QUERN_OK || memory.size_bytes == 0);
    quern_byte_buffer_release(&memory);
    return result;
}

Test(restart, wrong_saves_are_rejected)
{
    restart_open(&from, NULL);
    restart_open(&to, NULL);
    restart_fill(&from, FEW);
    must_refuse(INVALID_ARGUMENT, from.world,
                save_with(&from, &(quern_save_def){.schedules = {to.schedule}}));
    must_refuse(INVALID_ARGUMENT, from.world,
                save_with(&from, &(quern_save_def){.schedules = {from.schedule, from.schedule}}));
    assert_refused(
        from.world, QUERN_ERROR_INVALID_ARGUMENT,
        save_with(&from, &(quern_save_def){.leave_out = {from.heat}, .schedules = {from.schedule}}));
    quern_archive *list;
    must(quern_archive_create(from.world, &list));
    quern_byte_buffer memory = {0};
    must_refuse(INVALID_ARGUMENT, from.world,
                quern_archive_save(list, quern_sink_bytes(&memory),
                                   &(quern_save_def){.schedules = {from.schedule}}));
    quern_archive_destroy(list);
    restart_close(&to);
    restart_close(&from);
}

static quern_result load_point(uint32_t frame, const quern_load_def *def)
{
    return quern_world_load(to.world, quern_source_bytes(points[frame].bytes, points[frame].size_bytes),
                            def, NULL);
}

Test(restart, wrong_loads_are_rejected)
{
    play(FEW, NULL);
    restart_open(&to, NULL);
    const quern_load_def twice = {.schedules = {to.schedule, to.schedule}};
    must_refuse(INVALID_ARGUMENT, to.world, load_point(1, &twice));
    quern_schedule *second = setup_schedule(to.world);
    const quern_load_def both = {.schedules = {to.schedule, second}};
    must_refuse(LAYOUT_MISMATCH, to.world, load_point(1, &both));
    quern_schedule_destroy(second);
    const quern_load_def migrates = {.schedules = {to.schedule}, .migrations = {{.name = "heat"}}};
    must_refuse(LAYOUT_MISMATCH, to.world, load_point(1, &migrates));
    const quern_load_def def = {.schedules = {to.schedule}};
    must(load_point(1, &def));
    must_refuse(INVALID_ARGUMENT, to.world, load_point(1, &def));
    restart_close(&to);
}

Test(restart, schedule_with_other_systems_is_rejected)
{
    play(FEW, NULL);
    restart_open(&to, NULL);
    setup_reader(to.schedule, "new", to.unit);
    const quern_load_def def = {.schedules = {to.schedule}};
    must_refuse(LAYOUT_MISMATCH, to.world, load_point(1, &def));
    restart_close(&to);
}

Test(restart, archive_without_state_is_rejected)
{
    restart_open(&from, NULL);
    restart_fill(&from, FEW);
    quern_byte_buffer memory = {0};
    must(quern_world_save(from.world, quern_sink_bytes(&memory), NULL));
    restart_open(&to, NULL);
    must_refuse(INVALID_ARGUMENT, to.world, restart_load(&to, memory.bytes, memory.size_bytes));
    restart_close(&to);
    restart_close(&from);
    quern_byte_buffer_release(&memory);
}

/* Types in another order give another order of columns, and so another hash. */
Test(restart, another_order_of_types_is_rejected)
{
    quern_world *world;
    quern_component unit;
    play(FEW, NULL);
    must(quern_world_create(NULL, &world));
    make_component(world, .name = "heat", .size_bytes = sizeof(uint64_t),
                   .alignment_bytes = _Alignof(uint64_t), .row_changes = true, .can_disable = true);
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &unit, restart_unit, number, sum, friend));
    setup_tag(world, "small");
    make_relation(world, .name = "owner");
    quern_schedule *schedule = setup_phases(world, 2);
    const quern_load_def def = {.schedules = {schedule}, .skip_resources = true};
    assert_refused(
        world, QUERN_ERROR_LAYOUT_MISMATCH,
        quern_world_load(world, quern_source_bytes(points[1].bytes, points[1].size_bytes), &def, NULL));
    cr_assert(strstr(quern_error_message(), "order") != NULL, "%s", quern_error_message());
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

/* ----------------------------------------------------------------------------------------- damage */

/* Loads bytes that may be forged. If they are accepted, the world must be valid and its frames must run. */
static void load_forged(const char *bytes, size_t size)
{
    const uint64_t hash = quern_world_hash(to.world);
    if (restart_load(&to, bytes, size) != QUERN_OK) {
        cr_assert_eq(quern_world_hash(to.world), hash);
        return;
    }
    assert_valid(to.world);
    must(restart_run(&to, NULL));
    restart_close(&to);
    restart_open(&to, NULL);
}

/* Changes bytes of the archive behind repaired checksums. */
Test(restart, forged_state_is_rejected_or_gives_a_valid_world, .timeout = 600)
{
    static const uint8_t patterns[] = {1, 0x10, 0x80};
    play(FEW, NULL);
    const quern_byte_buffer *memory = &points[5];
    char *bytes = malloc(memory->size_bytes);
    restart_open(&to, NULL);
    for (size_t i = 0; i < memory->size_bytes; i += effort(1, 5, 5)) {
        memcpy(bytes, memory->bytes, memory->size_bytes);
        ((uint8_t *)bytes)[i] ^= patterns[i % sizeof patterns];
        reseal(bytes, memory->size_bytes);
        load_forged(bytes, memory->size_bytes);
    }
    for (size_t i = 0; i + 4 <= memory->size_bytes; i += effort(4, 20, 20)) {
        memcpy(bytes, memory->bytes, memory->size_bytes);
        memset(bytes + i, 0xFF, 4);
        reseal(bytes, memory->size_bytes);
        load_forged(bytes, memory->size_bytes);
    }
    restart_close(&to);
    free(bytes);
}

/* The words of the last system, from its end: whether it is enabled and a hash, three times, its target and a version. Any hash
 * is possible, also if the system watches no resource any more. */
Test(restart, state_of_a_system_out_of_range_is_rejected)
{
    enum { SYSTEM_WORDS = 6, STATE = 1, TARGET = 5, WORD_BYTES = 8 };
    const uint64_t clock = 1000;
    restart_open(&to, NULL);
    quern__byte_writer writer = {.allocator = &to.world->storage.allocator};
    quern__schedule_save(to.schedule, &writer);
    for (uint32_t i = 1; i <= SYSTEM_WORDS; i++) {
        char *word = writer.bytes + writer.count - i * WORD_BYTES, kept[WORD_BYTES];
        memcpy(kept, word, WORD_BYTES);
        memset(word, 0xFF, WORD_BYTES);
        quern__byte_reader reader = quern__byte_reader_open(writer.bytes, writer.count);
        cr_assert_eq(quern__schedule_check_bytes(to.schedule, &reader, clock), i == STATE || i == TARGET,
                     "word %u", i);
        memcpy(word, kept, WORD_BYTES);
    }
    quern__byte_writer_release(&writer);
    restart_close(&to);
}

/* The state of schedules was shorter before sets and steps were saved. */
Test(restart, state_of_an_older_version_is_refused)
{
    play(FEW, NULL);
    const quern_byte_buffer *memory = &points[5];
    char *bytes = malloc(memory->size_bytes);
    restart_open(&to, NULL);
    bool is_refused = false;
    for (size_t i = 0; i < memory->size_bytes && !is_refused; i++) {
        memcpy(bytes, memory->bytes, memory->size_bytes);
        if (bytes[i] != 1) continue;
        bytes[i] = 0;
        reseal(bytes, memory->size_bytes);
        if (restart_load(&to, bytes, memory->size_bytes) == QUERN_ERROR_BAD_ARCHIVE)
            is_refused = strstr(quern_error_message(), "the state of schedules has version 0") != NULL;
        if (!is_refused) {
            restart_close(&to);
            restart_open(&to, NULL);
        }
    }
    cr_assert(is_refused);
    restart_close(&to);
    free(bytes);
}

Test(restart, every_truncation_is_rejected)
{
    play(FEW, NULL);
    restart_open(&to, NULL);
    const uint64_t hash = quern_world_hash(to.world);
    for (size_t size = 0; size < points[5].size_bytes; size += effort(1, 5, 5)) {
        char *cut = malloc(size + 1);
        memcpy(cut, points[5].bytes, size);
        cr_assert_eq(restart_load(&to, cut, size), QUERN_ERROR_BAD_ARCHIVE, "%zu bytes", size);
        free(cut);
    }
    cr_assert_eq(quern_world_hash(to.world), hash);
    must(restart_load(&to, points[5].bytes, points[5].size_bytes));
    must(restart_run(&to, NULL));
    cr_assert_eq(quern_world_hash(to.world), hashes[6]);
    restart_close(&to);
}

Test(restart, every_failed_allocation_leaves_the_world_unchanged)
{
    play(FEW, NULL);
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    bool has_loaded = false;
    for (uint64_t call = 1; !has_loaded; call++) {
        restart_open(&to, &allocator);
        const uint64_t hash = quern_world_hash(to.world);
        failing_allocator_fail_at(memory, call);
        const quern_result result = restart_load(&to, points[5].bytes, points[5].size_bytes);
        has_loaded = result == QUERN_OK;
        failing_allocator_heal(memory);
        if (!has_loaded) {
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "call %llu: %s", (unsigned long long)call,
                         quern_error_message());
            cr_assert_eq(quern_world_hash(to.world), hash);
            must(restart_load(&to, points[5].bytes, points[5].size_bytes));
        }
        assert_valid(to.world);
        must(restart_run(&to, NULL));
        cr_assert_eq(quern_world_hash(to.world), hashes[6], "call %llu", (unsigned long long)call);
        restart_close(&to);
    }
    failing_allocator_close(memory);
}

Test(restart, every_failed_allocation_of_a_save_writes_nothing_wrong)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    restart_open(&from, &allocator);
    restart_fill(&from, FEW);
    for (uint64_t frame = 0; frame < 5; frame++) {
        restart_disturb(&from, frame);
        must(restart_run(&from, NULL));
    }
    restart_disturb(&from, 5);
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint64_t call = 1; result != QUERN_OK; call++) {
        quern_byte_buffer bytes = {0};
        failing_allocator_fail_at(memory, call);
        result = quern_world_save(from.world, quern_sink_bytes(&bytes),
                                  &(quern_save_def){.schedules = {from.schedule}});
        failing_allocator_heal(memory);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        quern_byte_buffer_release(&bytes);
    }
    assert_valid(from.world);
    restart_close(&from);
    failing_allocator_close(memory);
}
