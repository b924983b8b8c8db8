/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/world_internal.h"
#include "tests/core/history/many.h"
#include "tests/support/failing_allocator.h"

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
        failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + ++n);
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
        failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + 1 + failed_count);
        const quern_result result = quern_history_create(many_it.world, &def, &many_it.history);
        failing_allocator_heal(allocator);
        if (result == QUERN_OK) break;
        cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
    }
    cr_assert(failed_count > 3);
    uint64_t hashes[8];
    for (uint64_t frame = 0; frame < 8; frame++) {
        hashes[frame] = many_hash();
        for (uint64_t call = 1;; call++) {
            failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + call);
            const quern_result result = quern_history_save(many_it.history, frame, NULL);
            failing_allocator_heal(allocator);
            if (result == QUERN_OK) break;
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            cr_assert_eq(many_hash(), hashes[frame]);
            failed_count++;
        }
        many_change(frame + 2, MANY_STEPS);
    }
    for (uint64_t frame = 7; frame >= 2; frame--) {
        const uint64_t before = many_hash();
        for (uint64_t call = 1;; call++) {
            failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + call);
            const quern_result result = quern_history_restore(many_it.history, frame, NULL);
            failing_allocator_heal(allocator);
            if (result == QUERN_OK) break;
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
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
    for (uint64_t call = 1;; call++) {
        failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + call);
        const quern_result result = quern_history_restore(many_it.history, 0, NULL);
        failing_allocator_heal(allocator);
        if (result == QUERN_OK) break;
        cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
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
