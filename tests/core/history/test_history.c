/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/world/world_internal.h"
#include "tests/core/history/many.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <string.h>

/* -------------------------------------------------------------------------------------------- whole */

Test(history, every_frame_is_restored_and_continues_identically)
{
    many_open_world(NULL);
    many_change(1, 300);
    many_open_history(NULL);
    uint64_t hashes[40], seeds[40];
    uint64_t frame = 0;
    random_source random = {5};
    for (uint32_t turn = 0; turn < 120 && frame < 30; turn++) {
        must(quern_history_save(many_it.history, frame, NULL));
        hashes[frame] = many_hash();
        seeds[frame] = frame * 31 + 7;
        many_change(seeds[frame], MANY_STEPS);
        frame++;
        hashes[frame] = many_hash();
        if (random_below(&random, 2) != 0) continue;
        uint64_t oldest, newest;
        cr_assert(quern_history_get_frames(many_it.history, &oldest, &newest));
        const uint64_t to = oldest + random_below(&random, (uint32_t)(newest - oldest + 1));
        must(quern_history_restore(many_it.history, to, NULL));
        for (uint64_t i = to; i < frame; i++) {
            cr_assert_eq(many_hash(), hashes[i], "frame %llu after %llu was restored",
                         (unsigned long long)i, (unsigned long long)to);
            many_change(seeds[i], MANY_STEPS);
        }
        cr_assert_eq(many_hash(), hashes[frame]);
    }
    const quern_world_stats stats = stats_of_world(many_it.world);
    cr_assert(stats.entity_count > 60);
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
}

Test(history, later_frames_can_be_restored_until_the_next_save)
{
    many_open_world(NULL);
    many_change(1, 300);
    many_open_history(NULL);
    uint64_t hashes[4];
    for (uint64_t frame = 0; frame < 4; frame++) {
        must(quern_history_save(many_it.history, frame, NULL));
        hashes[frame] = many_hash();
        many_change(frame + 2, MANY_STEPS);
    }
    const uint32_t order[] = {1, 3, 0, 2, 3, 3, 0};
    for (uint32_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        must(quern_history_restore(many_it.history, order[i], NULL));
        cr_assert_eq(many_hash(), hashes[order[i]]);
        if (i % 2 == 0) many_change(order[i] + 20, MANY_STEPS);
    }
    must(quern_history_restore(many_it.history, 1, NULL));
    must(quern_history_save(many_it.history, 2, NULL)); /* begins another time line */
    cr_assert_eq(many_hash(), hashes[1]);
    must_refuse(INVALID_ARGUMENT, many_it.world, quern_history_restore(many_it.history, 3, NULL));
    must(quern_history_restore(many_it.history, 0, NULL));
    cr_assert_eq(many_hash(), hashes[0]);
    cr_assert_eq(quern_world_restore_count(many_it.world), 9);
    many_close_world();
}

/* ------------------------------------------------------------------------------------------- sharing */

Test(history, only_written_columns_are_copied)
{
    many_open_world(NULL);
    const amount value = {3};
    for (uint32_t i = 0; i < MANY_MOST; i++)
        must(quern_entity_create_with(many_it.world, (quern_component[]){many_it.amount, many_it.wide},
                                      (const void *const[]){&value, NULL}, 2, &many_entities[i]));
    many_open_history(NULL);
    quern_history_stats first, second, third;
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_history_get_stats(many_it.history, &first));
    cr_assert_geq(first.copied_bytes, MANY_MOST * (sizeof(amount) + 200 + sizeof(quern_entity)));
    must(quern_history_save(many_it.history, 1, NULL));
    must(quern_history_get_stats(many_it.history, &second));
    cr_assert_eq(second.copied_bytes, 0);
    must(quern_entity_set(many_it.world, many_entities[0], many_it.amount, &value));
    must(quern_history_save(many_it.history, 2, NULL));
    must(quern_history_get_stats(many_it.history, &third));
    cr_assert_eq(third.copied_count, 1);
    cr_assert(third.copied_bytes < 1000 && third.copied_bytes >= sizeof value);
    must(quern_history_restore(many_it.history, 1, NULL));
    must(quern_history_get_stats(many_it.history, &third));
    cr_assert_eq(third.copied_count, 1);
    must(quern_history_restore(many_it.history, 0, NULL));
    must(quern_history_get_stats(many_it.history, &third));
    cr_assert_eq(third.copied_count, 0);
    many_close_world();
}

static void set_flags(quern_world *world, quern_component type, const quern_entity *entities,
                      const uint32_t *rows, uint32_t count, unsigned char value)
{
    for (uint32_t i = 0; i < count; i++)
        must(quern_entity_set(world, entities[rows[i]], type, &value));
}

/* Chunks of 16 rows in runs: the flags of four chunks lie in one cache line. The first chunk and the fifth one are saved
 * together, in pages that are as far apart as their flags, and those between them later. */
Test(history, restored_chunks_leave_the_flags_between_them_as_they_are)
{
    enum { ROWS = 16, CHUNKS = 40, BIG_BYTES = 980 };
    static quern_entity entities[CHUNKS * ROWS];
    static const uint32_t outer[] = {0, 4 * ROWS}, inner[] = {ROWS, 2 * ROWS, 3 * ROWS};
    quern_world *world = setup_world();
    const quern_component types[] = {setup_component(world, "big", BIG_BYTES, 4),
                                     setup_component(world, "flag", 1, 1)};
    quern_history *history;
    must(quern_entity_create_many(world, types, NULL, 2, CHUNKS * ROWS, entities));
    must(quern_history_create(world, NULL, &history));
    must(quern_history_save(history, 1, NULL));
    set_flags(world, types[1], entities, outer, 2, 5);
    must(quern_history_save(history, 2, NULL));
    set_flags(world, types[1], entities, inner, 3, 6);
    must(quern_history_save(history, 3, NULL));
    set_flags(world, types[1], entities, outer, 2, 7);
    must(quern_history_restore(history, 3, NULL));
    for (uint32_t row = 0; row < 5 * ROWS; row++) {
        const unsigned char *found = quern_entity_get(world, entities[row], types[1]);
        cr_assert_eq(*found,
                     row % ROWS != 0         ? 0
                     : row % (4 * ROWS) == 0 ? 5
                                             : 6,
                     "row %u: %u", row, *found);
    }
    quern_history_destroy(history);
    quern_world_destroy(world);
}

Test(history, the_ring_retains_the_newest_frames)
{
    many_open_world(NULL);
    uint64_t oldest = 99, newest = 99;
    many_open_history(NULL);
    cr_assert(!quern_history_get_frames(many_it.history, &oldest, &newest));
    cr_assert(oldest == 99 && newest == 99);
    for (uint64_t frame = 10; frame < 30; frame += 2)
        must(quern_history_save(many_it.history, frame, NULL));
    cr_assert(quern_history_get_frames(many_it.history, &oldest, &newest));
    cr_assert(oldest == 18 && newest == 28);
    must_refuse(INVALID_ARGUMENT, many_it.world, quern_history_restore(many_it.history, 19, NULL));
    must(quern_history_save(many_it.history, 22, NULL));
    cr_assert(quern_history_get_frames(many_it.history, &oldest, &newest));
    cr_assert(oldest == 18 && newest == 22);
    many_close_world();
}

Test(history, kept_frames_are_listed_from_the_oldest)
{
    many_open_world(NULL);
    uint64_t frames[MANY_KEPT + 1] = {0};
    many_open_history(NULL);
    cr_assert_eq(quern_history_list_frames(many_it.history, frames, MANY_KEPT), 0u);
    for (uint64_t frame = 10; frame < 30; frame += 2) { /* more than the ring retains */
        must(quern_history_save(many_it.history, frame, NULL));
        const uint32_t saved = (uint32_t)(frame - 10) / 2 + 1,
                       count = saved < MANY_KEPT ? saved : MANY_KEPT;
        cr_assert_eq(quern_history_list_frames(many_it.history, frames, MANY_KEPT + 1), count);
        for (uint32_t i = 0; i < count; i++)
            cr_assert_eq(frames[i], frame - 2 * (count - 1 - i));
    }
    must(quern_history_save(many_it.history, 23, NULL));
    frames[2] = 99;
    cr_assert_eq(quern_history_list_frames(many_it.history, frames, 2), 4u);
    cr_assert(frames[0] == 18 && frames[1] == 20 && frames[2] == 99);
    cr_assert_eq(quern_history_list_frames(many_it.history, NULL, 0), 4u);
    cr_assert_eq(quern_history_list_frames(many_it.history, frames, 4), 4u);
    cr_assert(frames[2] == 22 && frames[3] == 23);
    for (uint32_t i = 0; i < 4; i++)
        must(quern_history_restore(many_it.history, frames[i], NULL));
    assert_refused_value(NULL, quern_history_list_frames(NULL, frames, 1));
    assert_refused_value(NULL, quern_history_list_frames(many_it.history, NULL, 1));
    many_close_world();
}

/* ------------------------------------------------------------------------------------------- memory */

Test(history, a_warm_history_allocates_nothing)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(allocator);
    many_open_world(NULL);
    many_change(1, 600);
    many_open_history(&interface);
    uint64_t warm_calls = 0;
    for (uint64_t frame = 0; frame < 60; frame++) {
        must(quern_history_save(many_it.history, frame, NULL));
        uint64_t oldest;
        cr_assert(quern_history_get_frames(many_it.history, &oldest, NULL));
        if (frame % 3 == 2) must(quern_history_restore(many_it.history, oldest, NULL));
        many_list_all();
        for (uint32_t i = 0; i < 20; i++) {
            const amount value = {frame * 20 + i};
            must(quern_entity_set(many_it.world, many_entities[i * 3], many_it.amount, &value));
        }
        if (frame == 30) warm_calls = failing_allocator_call_count(allocator);
    }
    cr_assert_eq(failing_allocator_call_count(allocator), warm_calls);
    many_close_world();
    failing_allocator_close(allocator);
}

/* Checks that no component is tracked for a history. */
static void expect_no_filters(void)
{
    const quern__components *components = &many_it.world->storage.components;
    for (uint32_t i = 0; i < components->list.count; i++)
        cr_assert_eq(components->list.items[i]->filter_count, 0);
}

/* One archetype lacks the first component, so that tracking can run out of memory after some components. */
Test(history, a_failed_creation_leaves_no_change_tracking)
{
    failing_allocator *allocator = failing_allocator_create();
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    uint64_t n = 0;
    while (result != QUERN_OK) {
        many_open_world(&(quern_world_def){.allocator = failing_allocator_interface(allocator)});
        many_change(1, 80);
        setup_entity_with(many_it.world, &many_it.wide, 1);
        failing_allocator_fail_at(allocator, ++n);
        result = quern_history_create(many_it.world, NULL, &many_it.history);
        failing_allocator_heal(allocator);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
        if (result != QUERN_OK) expect_no_filters();
        quern_history_destroy(many_it.history);
        many_it.history = NULL;
        expect_no_filters();
        many_close_world();
    }
    cr_assert_gt(n, 5u);
    failing_allocator_close(allocator);
}

Test(history, without_memory_world_and_history_are_unchanged)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(allocator);
    many_open_world(&(quern_world_def){.allocator = interface});
    many_change(1, 400);
    quern_history_def def = {.frame_count = MANY_KEPT, .allocator = interface};
    uint64_t failed_count = 0;
    for (;; failed_count++) {
        if (!runs_out_of_memory(allocator, 1 + failed_count,
                                quern_history_create(many_it.world, &def, &many_it.history)))
            break;
    }
    cr_assert(failed_count > 3);
    uint64_t hashes[8];
    for (uint64_t frame = 0; frame < 8; frame++) {
        hashes[frame] = many_hash();
        for (uint64_t call = 1;; call++) {
            if (!runs_out_of_memory(allocator, call, quern_history_save(many_it.history, frame, NULL)))
                break;
            cr_assert_eq(many_hash(), hashes[frame]);
            failed_count++;
        }
        many_change(frame + 2, MANY_STEPS);
    }
    for (uint64_t frame = 7; frame >= 2; frame--) {
        const uint64_t before = many_hash();
        for (uint64_t call = 1;; call++) {
            if (!runs_out_of_memory(allocator, call, quern_history_restore(many_it.history, frame, NULL)))
                break;
            cr_assert_eq(many_hash(), before);
            failed_count++;
        }
        cr_assert_eq(many_hash(), hashes[frame]);
        must(quern_world_remove_empty_archetypes(many_it.world, NULL));
        must(quern_world_trim(many_it.world));
    }
    cr_assert(failed_count > 20, "%llu", (unsigned long long)failed_count);
    many_close_world();
    failing_allocator_close(allocator);
}

/* The world has released the memory of the rows that the frame needs, which is several slabs. */
Test(history, without_memory_for_rows_the_world_is_unchanged)
{
    enum { LARGE = 25000 };
    failing_allocator *allocator = failing_allocator_create();
    uint32_t failed_count = 0;
    many_open_world(&(quern_world_def){.allocator = failing_allocator_interface(allocator)});
    must(quern_entity_create_many(many_it.world, (const quern_component[]){many_it.amount, many_it.wide},
                                  NULL, 2, LARGE, NULL));
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    const uint64_t before = many_hash();
    must(quern_entity_destroy_matching(many_it.all, NULL));
    must(quern_world_trim(many_it.world));
    const uint64_t emptied = many_hash();
    for (uint64_t call = 1;
         runs_out_of_memory(allocator, call, quern_history_restore(many_it.history, 0, NULL)); call++) {
        cr_assert_eq(many_hash(), emptied);
        must(quern_world_trim(many_it.world));
        failed_count++;
    }
    cr_assert_gt(failed_count, 1u);
    cr_assert_eq(many_hash(), before);
    many_close_world();
    failing_allocator_close(allocator);
}

/* ------------------------------------------------------------------------------------ what was removed */

Test(history, released_archetypes_and_records_are_restored)
{
    many_open_world(NULL);
    many_change(1, 500);
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    const uint64_t before = many_hash();
    for (uint32_t count = many_list_all(); count > 0; count = many_list_all())
        quern_entity_destroy(many_it.world, many_entities[0]);
    must(quern_world_remove_empty_archetypes(many_it.world, NULL));
    must(quern_world_trim(many_it.world));
    must(quern_history_save(many_it.history, 1, NULL));
    const uint64_t emptied = many_hash();
    many_change(4, 200);
    must(quern_history_restore(many_it.history, 0, NULL));
    cr_assert_eq(many_hash(), before);
    must(quern_history_restore(many_it.history, 1, NULL));
    cr_assert_eq(many_hash(), emptied);
    must(quern_history_restore(many_it.history, 0, NULL));
    cr_assert_eq(many_hash(), before);
    many_close_world();
}

Test(history, a_ref_finds_its_value_after_a_restore)
{
    many_open_world(NULL);
    many_open_history(NULL);
    const amount one = {1}, two = {2};
    quern_entity a, b;
    must(quern_entity_create_with(many_it.world, &many_it.amount, (const void *const[]){&one}, 1, &a));
    must(quern_entity_create_with(many_it.world, &many_it.amount, (const void *const[]){&two}, 1, &b));
    quern_getter *getter;
    must(quern_getter_create(many_it.world, &(quern_getter_def){.component = many_it.amount, .refs = true},
                             &getter));
    must(quern_history_save(many_it.history, 0, NULL));
    must(quern_entity_destroy(many_it.world, a)); /* moves the row of `b` */
    quern_ref ref = {.entity = b};
    cr_assert_eq(((const amount *)quern_ref_get(getter, &ref))->value, 2);
    must(quern_history_restore(many_it.history, 0, NULL));
    cr_assert_eq(((const amount *)quern_ref_get(getter, &ref))->value, 2);
    quern_ref first = {.entity = a};
    cr_assert_eq(((const amount *)quern_ref_get(getter, &first))->value, 1);
    quern_getter_destroy(getter);
    many_close_world();
}

/* A query must not use its cached sources of a target after a restore. Changing a target moves no rows
 * here. */
Test(history, a_target_term_finds_the_sources_of_each_time_line)
{
    enum { SOURCES = 3 };
    quern_entity list[SOURCES], targets[2];
    many_open_world(NULL);
    for (uint32_t i = 0; i < 2; i++)
        targets[i] = setup_entity_with(many_it.world, &many_it.amount, 1);
    for (uint32_t i = 0; i < SOURCES; i++) {
        list[i] = setup_entity_with(many_it.world, &many_it.amount, 1);
        must(quern_entity_relate(many_it.world, list[i], many_it.friend, targets[0]));
    }
    quern_query *query = setup_query(
        many_it.world,
        (quern_term[]){quern_term_read(many_it.amount), quern_term_target(many_it.friend, targets[1])}, 2);
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    for (uint32_t i = 0; i < SOURCES; i++) {
        must(quern_entity_relate(many_it.world, list[i], many_it.friend, targets[1]));
        quern_query_iterator walk = quern_query_iterate(query);
        cr_assert(quern_query_next(&walk));
        cr_assert_eq(walk.view.count, 1);
        cr_assert(quern_entity_equal(walk.view.entities[0], list[i]));
        cr_assert_not(quern_query_next(&walk));
        must(quern_history_restore(many_it.history, 0, NULL));
        walk = quern_query_iterate(query);
        cr_assert_not(quern_query_next(&walk), "the source of the frame that was left is found");
    }
    quern_query_destroy(query);
    many_close_world();
}

/* ------------------------------------------------------------------------------------------- refusals */

Test(history, types_that_cannot_be_saved_are_rejected_by_name)
{
    many_open_world(NULL);
    many_open_history(NULL);
    quern_history *other;
    must_refuse(LIMIT, many_it.world, quern_history_create(many_it.world, NULL, &other));
    cr_assert(strstr(quern_error_message(), "has a history already") != NULL);
    must_refuse(NULL_ARGUMENT, many_it.world, quern_history_create(NULL, NULL, &other));
    must_refuse(NULL_ARGUMENT, many_it.world, quern_history_save(NULL, 0, NULL));
    must_refuse(INVALID_ARGUMENT, many_it.world, quern_history_restore(many_it.history, 0, NULL));
    must(quern_history_save(many_it.history, 0, NULL));
    atomic_llong live_count = 0;
    const quern_component owned_type = owned_register(many_it.world, "owned", &live_count);
    owned value;
    owned_construct(&value, 5, &live_count);
    must(quern_entity_create_with(many_it.world, &owned_type, (const void *const[]){&value}, 1, NULL));
    must_refuse(INVALID_ARGUMENT, many_it.world, quern_history_save(many_it.history, 1, NULL));
    cr_assert(strstr(quern_error_message(), "'owned'") != NULL);
    must(quern_history_restore(many_it.history, 0, NULL));
    cr_assert_eq(live_count, 0);
    many_close_world();
}

Test(history, the_number_of_frames_has_a_limit)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(allocator);
    quern_history_def def = {.frame_count = QUERN_MAX_HISTORY_FRAMES + 1, .allocator = interface};
    many_open_world(NULL);
    must_refuse(LIMIT, many_it.world, quern_history_create(many_it.world, &def, &many_it.history));
    cr_assert(strstr(quern_error_message(), "QUERN_MAX_HISTORY_FRAMES") != NULL);
    def.frame_count = UINT32_MAX;
    must_refuse(LIMIT, many_it.world, quern_history_create(many_it.world, &def, &many_it.history));
    cr_assert_eq(failing_allocator_call_count(allocator), 0);
    def.frame_count = QUERN_MAX_HISTORY_FRAMES;
    must(quern_history_create(many_it.world, &def, &many_it.history));
    for (uint64_t frame = 0; frame < 40; frame++)
        must(quern_history_save(many_it.history, frame, NULL));
    must(quern_history_restore(many_it.history, 0, NULL));
    many_close_world();
    failing_allocator_close(allocator);
}

Test(history, writing_through_an_outdated_pointer_is_detected)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    many_open_world(NULL);
    many_open_history(NULL);
    const quern_entity entity = setup_entity_with(many_it.world, &many_it.amount, 1);
    amount *kept = quern_entity_get(many_it.world, entity, many_it.amount);
    must(quern_history_save(many_it.history, 0, NULL));
    kept->value = 7;
    cr_assert_eq(quern_history_save(many_it.history, 1, NULL), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert(strstr(quern_error_message(), "'amount'") != NULL);
    many_close_world();
}

Test(history, a_schedule_of_a_history_is_not_destroyed)
{
    captured_reports reports;
    many_open_world(NULL);
    quern_schedule *schedule;
    must(quern_schedule_create(many_it.world, NULL, &schedule));
    const quern_history_def def = {.schedules = {schedule}};
    must(quern_history_create(many_it.world, &def, &many_it.history));
    must(quern_history_save(many_it.history, 0, NULL));
    capture_reports(&reports);
    quern_schedule_destroy(schedule);
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    cr_assert(strstr(quern_error_message(), "a history still saves") != NULL);
    must(quern_schedule_run(schedule, NULL, 0.1));
    must(quern_history_restore(many_it.history, 0, NULL));
    quern_history_destroy(many_it.history);
    many_it.history = NULL;
    quern_schedule_destroy(schedule);
    many_close_world();
}

/* ----------------------------------------------------------------------------------------------- edges */

/* Histories of worlds with several targets per source: every restored frame has the hash that it had when it was saved,
 * also after trimming, with large sets and when out of memory. test_delta_calls applies deltas of edges. */

enum { ENTITIES = 400, KEPT = 8, FRAMES = 80 };

static failing_allocator *memory;
static quern_world *world;
static quern_relation likes, owns, late;
static quern_history *history;
static quern_entity entities[ENTITIES];
static uint64_t hashes[FRAMES], edge_counts[FRAMES];
static random_source dice;

static quern_relation register_many(const char *name, quern_target_policy policy)
{
    quern_relation relation = {0};
    relation = make_relation(world, .name = name, .on_target_destroyed = policy, .many = true);
    return relation;
}

static void open_history(void)
{
    memory = failing_allocator_create();
    dice = (random_source){5};
    world = make_world(.allocator = failing_allocator_interface(memory));
    likes = register_many("likes", QUERN_TARGET_UNRELATES);
    owns = register_many("owns", QUERN_TARGET_DESTROYS_SOURCE);
    late = likes;
    must(quern_history_create(
        world, &(quern_history_def){.frame_count = KEPT, .allocator = failing_allocator_interface(memory)},
        &history));
    for (uint32_t i = 0; i < ENTITIES; i++)
        entities[i] = setup_entity(world);
}

static void close_history(void)
{
    quern_history_destroy(history);
    quern_world_destroy(world);
    failing_allocator_close(memory);
}

TestSuite(history_edges, .init = open_history, .fini = close_history);

static quern_entity *pick(void)
{
    return &entities[random_below(&dice, ENTITIES)];
}

/* Replaces entities that frames or cascades have destroyed. */
static void revive(void)
{
    for (uint32_t i = 0; i < ENTITIES; i++)
        if (!quern_entity_is_alive(world, entities[i])) must(quern_entity_create(world, &entities[i]));
}

static void change_one(void)
{
    quern_entity *source = pick(), *target = pick();
    const quern_relation relation =
        random_chance(&dice, 80) ? (random_chance(&dice, 80) ? likes : late) : owns;
    if (quern_entity_equal(*source, *target)) return;
    switch (random_below(&dice, 12)) {
    case 0:
        if (random_chance(&dice, 20)) must(quern_entity_destroy(world, *source));
        revive();
        break;
    case 1:
        (void)quern_entity_unrelate(world, *source, relation);
        break;
    case 2:
    case 3:
        (void)quern_entity_unrelate_from(world, *source, relation,
                                         quern_entity_target(world, *source, relation));
        break;
    default:
        must(quern_entity_relate(world, *source, relation, *target));
        break;
    }
}

static void save(uint64_t frame)
{
    must(quern_history_save(history, frame, NULL));
    hashes[frame] = quern_world_hash(world);
    edge_counts[frame] = stats_of_world(world).edge_count;
}

static void expect_frame(uint64_t frame)
{
    assert_valid(world);
    cr_assert_eq(quern_world_hash(world), hashes[frame]);
    cr_assert_eq(stats_of_world(world).edge_count, edge_counts[frame]);
}

/* Restores a random kept frame while allocations fail. A failed restore changes nothing. */
static void restore_one(uint64_t newest)
{
    uint64_t oldest;
    quern_result result;
    cr_assert(quern_history_get_frames(history, &oldest, NULL));
    const uint64_t frame = oldest + random_below(&dice, (uint32_t)(newest - oldest + 1));
    failing_allocator_fail_often(memory, random_below(&dice, 2) * 30, frame);
    do {
        const uint64_t hash = quern_world_hash(world);
        result = quern_history_restore(history, frame, NULL);
        if (result != QUERN_OK) cr_assert_eq(quern_world_hash(world), hash);
    } while (result == QUERN_ERROR_OUT_OF_MEMORY);
    failing_allocator_heal(memory);
    must(result);
    expect_frame(frame);
}

Test(history_edges, restored_frames_have_their_edges)
{
    for (uint64_t frame = 0; frame < FRAMES; frame++) {
        revive();
        for (uint32_t i = random_below(&dice, 200); i > 0; i--)
            change_one();
        if (random_chance(&dice, 20)) must(quern_world_trim(world));
        if (frame == 20) late = register_many("late", QUERN_TARGET_UNRELATES);
        save(frame);
        for (uint32_t i = random_below(&dice, 3); i > 0; i--) {
            revive();
            for (uint32_t k = random_below(&dice, 30); k > 0; k--)
                change_one();
            restore_one(frame);
        }
        must(quern_history_restore(history, frame, NULL));
    }
}

/* Sets with directories, and the memory of a history that changes no edge. */
Test(history_edges, unchanged_edges_are_shared)
{
    enum { FANS = 3000 };
    static quern_entity fans[FANS];
    quern_history_stats before, after;
    for (uint32_t i = 0; i < FANS; i++) {
        fans[i] = setup_entity(world);
        must(quern_entity_relate(world, fans[i], likes, entities[0]));
    }
    save(0);
    must(quern_history_get_stats(history, &before));
    save(1);
    must(quern_history_get_stats(history, &after));
    cr_assert_lt(after.used_bytes - before.used_bytes, 4096u);
    for (uint32_t i = 0; i < FANS; i += 2)
        must(quern_entity_unrelate(world, fans[i], likes));
    save(2);
    must(quern_entity_destroy(world, entities[0]));
    for (uint64_t i = 0; i < 3; i++) {
        must(quern_history_restore(history, i, NULL));
        expect_frame(i);
        cr_assert_eq(quern_entity_source_count(world, entities[0], likes), i < 2 ? FANS : FANS / 2);
    }
}

/* A save that fails leaves nothing behind: close_history counts the memory. */
Test(history_edges, saves_without_memory_change_nothing)
{
    for (uint32_t i = 1; i < ENTITIES; i++)
        must(quern_entity_relate(world, entities[i], likes, entities[i / 2]));
    const uint64_t hash = quern_world_hash(world);
    quern_result result;
    uint32_t failures = 0;
    do {
        failing_allocator_fail_at(memory, 1 + failures);
        result = quern_history_save(history, 0, NULL);
        failing_allocator_heal(memory);
        cr_assert_eq(quern_world_hash(world), hash);
        failures += result == QUERN_ERROR_OUT_OF_MEMORY;
    } while (result == QUERN_ERROR_OUT_OF_MEMORY);
    must(result);
    cr_assert_gt(failures, 0u);
    must(quern_entity_unrelate(world, entities[1], likes));
    must(quern_history_restore(history, 0, NULL));
    cr_assert_eq(quern_world_hash(world), hash);
}

/* Sets need memory again after all of it was given back. */
Test(history_edges, restores_without_memory_change_nothing)
{
    enum { MANY = 1100 }; /* more than a block */
    static quern_entity targets[MANY];
    uint32_t failures = 0;
    for (uint32_t i = 0; i < MANY; i++)
        targets[i] = setup_entity(world);
    for (quern_result result = QUERN_ERROR_OUT_OF_MEMORY; result != QUERN_OK; failures++) {
        for (uint32_t i = 0; i < MANY; i++)
            must(quern_entity_relate(world, entities[0], likes, targets[i]));
        must(quern_history_save(history, 1, NULL));
        const uint64_t saved = quern_world_hash(world);
        must(quern_entity_unrelate(world, entities[0], likes));
        must(quern_world_trim(world));
        const uint64_t hash = quern_world_hash(world);
        failing_allocator_fail_at(memory, 1 + failures);
        result = quern_history_restore(history, 1, NULL);
        failing_allocator_heal(memory);
        cr_assert_eq(quern_world_hash(world), result == QUERN_OK ? saved : hash);
        assert_valid(world);
    }
    cr_assert_gt(failures, 2u);
}

/* --------------------------------------------------------------------------------------------- prefabs */

/* Histories together with prefabs and archives: entities that these create are removed by a restore, and
 * restored by another one. */

enum { INSTANCES = 12 };

static uint64_t step(uint64_t seed)
{
    many_change(seed, 150);
    return many_hash();
}

/* ------------------------------------------------------------------------------------------ prefabs */

static quern_prefab capture_tree(void)
{
    const amount value = {7};
    quern_entity root, child;
    quern_prefab prefab;
    must(quern_entity_create_with(many_it.world, (quern_component[]){many_it.amount, many_it.tracked},
                                  (const void *const[]){&value, NULL}, 2, &root));
    for (uint32_t i = 0; i < 3; i++) {
        must(quern_entity_create_with(many_it.world, (quern_component[]){many_it.amount, many_it.wide},
                                      (const void *const[]){&value, NULL}, 2, &child));
        must(quern_entity_relate(many_it.world, child, many_it.parent, root));
    }
    must(quern_entity_set_name(many_it.world, child, "last"));
    must(quern_entity_set_component_enabled(many_it.world, child, many_it.amount, false));
    must(quern_prefab_capture(many_it.world, root, &prefab));
    return prefab;
}

/* Spawns instances by a call and by commands. */
static uint64_t spawn(quern_prefab prefab)
{
    must(quern_prefab_spawn_many(many_it.world, prefab, INSTANCES, NULL, NULL, NULL));
    quern_commands *commands = quern_world_commands(many_it.world);
    for (uint32_t i = 0; i < INSTANCES; i++)
        must(quern_commands_spawn(commands, prefab, NULL, NULL));
    must(quern_world_flush(many_it.world));
    return many_hash();
}

Test(history_prefabs, instances_of_prefabs_are_removed_and_restored)
{
    many_open_world(NULL);
    many_change(1, 200);
    const quern_prefab prefab = capture_tree();
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    const uint64_t before = many_hash();
    const uint64_t spawned = spawn(prefab);
    must(quern_history_save(many_it.history, 1, NULL));
    const uint64_t changed = step(4);
    must(quern_history_save(many_it.history, 2, NULL));
    for (uint32_t turn = 0; turn < 2; turn++) {
        must(quern_history_restore(many_it.history, 0, NULL));
        cr_assert_eq(many_hash(), before);
        cr_assert_eq(spawn(prefab), spawned);
        cr_assert_eq(step(4), changed);
        must(quern_history_restore(many_it.history, 1, NULL));
        cr_assert_eq(many_hash(), spawned);
        cr_assert_eq(step(4), changed);
        must(quern_history_restore(many_it.history, 2, NULL));
        cr_assert_eq(many_hash(), changed);
    }
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
}

Test(history_prefabs, prefabs_themselves_are_not_removed)
{
    many_open_world(NULL);
    many_change(1, 200);
    const quern_prefab first = capture_tree();
    spawn(first);
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    const uint64_t before = many_hash();
    const quern_prefab second = capture_tree();
    const uint32_t member_count = quern_prefab_member_count(many_it.world, second);
    must(quern_prefab_destroy(many_it.world, first));
    step(5);
    must(quern_history_restore(many_it.history, 0, NULL));
    cr_assert_eq(many_hash(), before); /* with the instances of the destroyed prefab */
    must_refuse(UNKNOWN_PREFAB, many_it.world, quern_prefab_spawn(many_it.world, first, NULL, NULL));
    cr_assert_eq(quern_prefab_member_count(many_it.world, second), member_count);
    const uint64_t count = stats_of_world(many_it.world).entity_count;
    spawn(second);
    cr_assert_eq(stats_of_world(many_it.world).entity_count,
                 count + 2 * (uint64_t)INSTANCES * member_count);
    must(quern_history_restore(many_it.history, 0, NULL));
    cr_assert_eq(many_hash(), before);
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
}

/* ----------------------------------------------------------------------------------------- archives */

/* Saves an archive without the components that only hooks can copy. */
static void archive(quern_byte_buffer *out_bytes)
{
    *out_bytes = (quern_byte_buffer){0};
    must(quern_world_save(many_it.world, quern_sink_bytes(out_bytes),
                          &(quern_save_def){.leave_out = {many_it.tracked}}));
}

static uint64_t load(const quern_byte_buffer *bytes)
{
    must(quern_world_load(many_it.world, quern_source_bytes(bytes->bytes, bytes->size_bytes),
                          &(quern_load_def){.drop_taken_names = true}, NULL));
    return many_hash();
}

/* Loads the archive, restores the frame before, loads it again, and restores the frame with the loaded
 * entities. */
static void load_and_take_back(const quern_byte_buffer *bytes)
{
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    const uint64_t before = many_hash();
    const uint64_t loaded = load(bytes);
    cr_assert_neq(loaded, before);
    must(quern_history_save(many_it.history, 1, NULL));
    const uint64_t changed = step(9);
    for (uint32_t turn = 0; turn < 2; turn++) {
        must(quern_history_restore(many_it.history, 0, NULL));
        cr_assert_eq(many_hash(), before);
        cr_assert_eq(load(bytes), loaded);
        cr_assert_eq(step(9), changed);
        must(quern_history_restore(many_it.history, 1, NULL));
        cr_assert_eq(many_hash(), loaded);
        cr_assert_eq(step(9), changed);
    }
}

Test(history_prefabs, loaded_entities_are_removed_by_a_restore)
{
    quern_byte_buffer bytes;
    many_open_world(NULL);
    many_change(2, 500);
    archive(&bytes);
    many_change(3, 100);
    load_and_take_back(&bytes);
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
    quern_byte_buffer_release(&bytes);
}

Test(history_prefabs, loading_into_an_empty_world_is_undone_by_a_restore)
{
    quern_byte_buffer bytes;
    many_open_world(NULL);
    many_change(2, 500);
    archive(&bytes);
    many_close_world();
    many_open_world(NULL);
    load_and_take_back(&bytes);
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
    quern_byte_buffer_release(&bytes);
}

Test(history_prefabs, a_delta_contains_the_loaded_entities)
{
    quern_byte_buffer bytes;
    quern_delta *delta;
    uint32_t count;
    uint64_t created_count = 0, destroyed_count = 0;
    many_open_world(NULL);
    many_change(2, 300);
    archive(&bytes);
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    const uint64_t entity_count = stats_of_world(many_it.world).entity_count;
    load(&bytes);
    must(quern_history_save(many_it.history, 1, NULL));
    must(quern_delta_create(many_it.history, 0, 1, &delta));
    const quern_delta_batch *batches = quern_delta_batches(delta, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (batches[i].kind == QUERN_DELTA_CREATED) created_count += batches[i].count;
        destroyed_count += batches[i].kind == QUERN_DELTA_DESTROYED;
    }
    cr_assert(created_count == entity_count && destroyed_count == 0);
    quern_delta_destroy(delta);
    many_close_world();
    quern_byte_buffer_release(&bytes);
}
