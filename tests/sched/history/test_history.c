/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"
#include "tests/support/tracked.h"

#include <quern/active.h>
#include <quern/commands.h>
#include <quern/getter.h>
#include <quern/history.h>
#include <quern/name.h>
#include <quern/relation.h>
#include <quern/schedule.h>

#include <criterion/criterion.h>

#include <stdio.h>
#include <string.h>

/* A world with something of everything that a history keeps, changed at random by immediate calls. */

enum { KEPT = 6, MOST = 3000, STEPS = 150 };

typedef struct amount {
    uint64_t value;
} amount;

typedef struct many {
    quern_world *world;
    quern_history *history;
    quern_component amount, tracked, tag, wide;
    quern_relation parent, friend;
    quern_resource counter, held;
    quern_query *all;
    tracked_counts counts;
    random_source random;
} many;

static many it;
static quern_entity entities[MOST + STEPS];

static void open_world(const quern_world_def *def)
{
    memset(&it, 0, sizeof it);
    it.random = (random_source){1};
    must(quern_world_create(def, &it.world));
    must(quern_component_register(it.world, &(quern_component_def){QUERN_TYPE(amount), .can_disable = true},
                                  &it.amount));
    it.tracked = tracked_register(it.world, "tracked", &it.counts);
    it.tag = setup_tag(it.world, "tag");
    it.wide = setup_component(it.world, "wide", 200, 8);
    it.parent = quern_world_parent(it.world);
    must(quern_relation_register(it.world, &(quern_relation_def){.name = "friend"}, &it.friend));
    must(quern_resource_register(
        it.world, &(quern_resource_def){QUERN_TYPE(amount), .fields = QUERN_FIELDS(amount, value)},
        &it.counter));
    it.all = setup_query(it.world, (quern_term[]){quern_term_read(it.amount)}, 1);
}

static void close_world(void)
{
    quern_history_destroy(it.history);
    quern_query_destroy(it.all);
    quern_world_destroy(it.world);
}

static void open_history(const quern_allocator *allocator)
{
    quern_history_def def = {.frame_count = KEPT};
    if (allocator != NULL) def.allocator = *allocator;
    must(quern_history_create(it.world, &def, &it.history));
}

static uint32_t list_all(void)
{
    uint32_t count = 0;
    quern_query_iterator walk = quern_query_iterate(it.all);
    while (quern_query_next(&walk))
        for (uint32_t i = 0; i < walk.view.count && count < MOST; i++)
            entities[count++] = walk.view.entities[i];
    must(walk.result);
    return count;
}

static quern_entity pick(uint32_t count)
{
    return entities[random_below(&it.random, count)];
}

/* Refusals, as of a name that is taken or a cycle, belong to the program. */
static void change_one(quern_entity entity, quern_entity other)
{
    amount value = {random_next(&it.random)};
    char name[16];
    snprintf(name, sizeof name, "n%u", random_below(&it.random, 50));
    switch (random_below(&it.random, 16)) {
    case 0:
        quern_entity_destroy(it.world, entity);
        break;
    case 1:
        quern_entity_relate(it.world, entity, it.parent, other);
        break;
    case 2:
        quern_entity_unrelate(it.world, entity, it.parent);
        break;
    case 3:
        quern_entity_relate(it.world, entity, it.friend, other);
        break;
    case 4:
        quern_entity_set_name(it.world, entity, name);
        break;
    case 5:
        quern_entity_add(it.world, entity, it.tag, NULL);
        break;
    case 6:
        quern_entity_remove(it.world, entity, it.tag);
        break;
    case 7:
        quern_entity_add(it.world, entity, it.tracked, NULL);
        break;
    case 8:
        quern_entity_remove(it.world, entity, it.tracked);
        break;
    case 9:
        quern_entity_enable(it.world, entity, it.amount, false);
        break;
    case 10:
        quern_entity_enable(it.world, entity, it.amount, true);
        break;
    case 11:
        quern_entity_add(it.world, entity, it.wide, NULL);
        break;
    default:
        quern_entity_set(it.world, entity, it.amount, &value);
        break;
    }
}

/* The same program for the same seed and world. */
static void change(uint64_t seed, uint32_t step_count)
{
    it.random = (random_source){seed};
    for (uint32_t i = 0; i < step_count; i++) {
        const uint32_t count = list_all();
        const amount value = {random_next(&it.random)};
        if (count < 60 || (count < MOST && random_below(&it.random, 4) == 0))
            must(quern_entity_create_with(it.world, &it.amount, (const void *const[]){&value}, 1, NULL));
        else
            change_one(pick(count), pick(count));
    }
    amount *counter = quern_resource_get(it.world, it.counter);
    counter->value = random_next(&it.random);
}

static uint64_t hash(void)
{
    must(quern_world_validate(it.world));
    cr_assert_eq(it.counts.broken_count, 0);
    return quern_world_hash(it.world);
}

/* -------------------------------------------------------------------------------------------- whole */

Test(history, every_frame_comes_back_and_has_the_same_future)
{
    open_world(NULL);
    change(1, 300);
    open_history(NULL);
    uint64_t hashes[40], seeds[40];
    uint64_t frame = 0;
    random_source random = {5};
    for (uint32_t turn = 0; turn < 120 && frame < 30; turn++) {
        must(quern_history_save(it.history, frame, NULL));
        hashes[frame] = hash();
        seeds[frame] = frame * 31 + 7;
        change(seeds[frame], STEPS);
        frame++;
        hashes[frame] = hash();
        if (random_below(&random, 2) != 0) continue;
        uint64_t oldest, newest;
        cr_assert(quern_history_frames(it.history, &oldest, &newest));
        const uint64_t to = oldest + random_below(&random, (uint32_t)(newest - oldest + 1));
        must(quern_history_restore(it.history, to, NULL));
        for (uint64_t i = to; i < frame; i++) {
            cr_assert_eq(hash(), hashes[i], "frame %llu after %llu was restored", (unsigned long long)i,
                         (unsigned long long)to);
            change(seeds[i], STEPS);
        }
        cr_assert_eq(hash(), hashes[frame]);
    }
    const quern_world_stats stats = stats_of_world(it.world);
    cr_assert(stats.entity_count > 60);
    close_world();
    cr_assert_eq(tracked_live_count(&it.counts), 0);
}

Test(history, a_restored_frame_can_be_left_forwards_until_the_next_save)
{
    open_world(NULL);
    change(1, 300);
    open_history(NULL);
    uint64_t hashes[4];
    for (uint64_t frame = 0; frame < 4; frame++) {
        must(quern_history_save(it.history, frame, NULL));
        hashes[frame] = hash();
        change(frame + 2, STEPS);
    }
    const uint32_t order[] = {1, 3, 0, 2, 3, 3, 0};
    for (uint32_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        must(quern_history_restore(it.history, order[i], NULL));
        cr_assert_eq(hash(), hashes[order[i]]);
        if (i % 2 == 0) change(order[i] + 20, STEPS);
    }
    must(quern_history_restore(it.history, 1, NULL));
    must(quern_history_save(it.history, 2, NULL)); /* another time line */
    cr_assert_eq(hash(), hashes[1]);
    assert_refused(it.world, QUERN_ERROR_INVALID_ARGUMENT, quern_history_restore(it.history, 3, NULL));
    must(quern_history_restore(it.history, 0, NULL));
    cr_assert_eq(hash(), hashes[0]);
    cr_assert_eq(quern_world_restore_count(it.world), 9);
    close_world();
}

/* ------------------------------------------------------------------------------------------- sharing */

Test(history, only_what_was_written_is_copied)
{
    open_world(NULL);
    const amount value = {3};
    for (uint32_t i = 0; i < MOST; i++)
        must(quern_entity_create_with(it.world, (quern_component[]){it.amount, it.wide},
                                      (const void *const[]){&value, NULL}, 2, &entities[i]));
    open_history(NULL);
    quern_history_stats first, second, third;
    must(quern_history_save(it.history, 0, NULL));
    must(quern_history_get_stats(it.history, &first));
    cr_assert_geq(first.copied_bytes, MOST * (sizeof(amount) + 200 + sizeof(quern_entity)));
    must(quern_history_save(it.history, 1, NULL));
    must(quern_history_get_stats(it.history, &second));
    cr_assert_eq(second.copied_bytes, 0);
    must(quern_entity_set(it.world, entities[0], it.amount, &value));
    must(quern_history_save(it.history, 2, NULL));
    must(quern_history_get_stats(it.history, &third));
    cr_assert_eq(third.copied_count, 1);
    cr_assert(third.copied_bytes < 1000 && third.copied_bytes >= sizeof value);
    must(quern_history_restore(it.history, 1, NULL));
    must(quern_history_get_stats(it.history, &third));
    cr_assert_eq(third.copied_count, 1);
    must(quern_history_restore(it.history, 0, NULL));
    must(quern_history_get_stats(it.history, &third));
    cr_assert_eq(third.copied_count, 0);
    close_world();
}

Test(history, the_ring_keeps_the_last_frames)
{
    open_world(NULL);
    uint64_t oldest = 99, newest = 99;
    open_history(NULL);
    cr_assert(!quern_history_frames(it.history, &oldest, &newest));
    cr_assert(oldest == 99 && newest == 99);
    for (uint64_t frame = 10; frame < 30; frame += 2)
        must(quern_history_save(it.history, frame, NULL));
    cr_assert(quern_history_frames(it.history, &oldest, &newest));
    cr_assert(oldest == 18 && newest == 28);
    assert_refused(it.world, QUERN_ERROR_INVALID_ARGUMENT, quern_history_restore(it.history, 19, NULL));
    must(quern_history_save(it.history, 22, NULL));
    cr_assert(quern_history_frames(it.history, &oldest, &newest));
    cr_assert(oldest == 18 && newest == 22);
    close_world();
}

/* ------------------------------------------------------------------------------------------- memory */

Test(history, a_warm_history_takes_no_memory)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(allocator);
    open_world(NULL);
    change(1, 600);
    open_history(&interface);
    uint64_t warm_calls = 0;
    for (uint64_t frame = 0; frame < 60; frame++) {
        must(quern_history_save(it.history, frame, NULL));
        uint64_t oldest;
        cr_assert(quern_history_frames(it.history, &oldest, NULL));
        if (frame % 3 == 2) must(quern_history_restore(it.history, oldest, NULL));
        list_all();
        for (uint32_t i = 0; i < 20; i++) {
            const amount value = {frame * 20 + i};
            must(quern_entity_set(it.world, entities[i * 3], it.amount, &value));
        }
        if (frame == 30) warm_calls = failing_allocator_call_count(allocator);
    }
    cr_assert_eq(failing_allocator_call_count(allocator), warm_calls);
    close_world();
    failing_allocator_close(allocator);
}

Test(history, without_memory_world_and_history_stay_as_they_were)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(allocator);
    open_world(&(quern_world_def){.allocator = interface});
    change(1, 400);
    quern_history_def def = {.frame_count = KEPT, .allocator = interface};
    uint64_t failed_count = 0;
    for (;; failed_count++) {
        failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + 1 + failed_count);
        const quern_result result = quern_history_create(it.world, &def, &it.history);
        failing_allocator_heal(allocator);
        if (result == QUERN_OK) break;
        cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
    }
    cr_assert(failed_count > 3);
    uint64_t hashes[8];
    for (uint64_t frame = 0; frame < 8; frame++) {
        hashes[frame] = hash();
        for (uint64_t call = 1;; call++) {
            failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + call);
            const quern_result result = quern_history_save(it.history, frame, NULL);
            failing_allocator_heal(allocator);
            if (result == QUERN_OK) break;
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            cr_assert_eq(hash(), hashes[frame]);
            failed_count++;
        }
        change(frame + 2, STEPS);
    }
    for (uint64_t frame = 7; frame >= 2; frame--) {
        const uint64_t before = hash();
        for (uint64_t call = 1;; call++) {
            failing_allocator_fail_at(allocator, failing_allocator_call_count(allocator) + call);
            const quern_result result = quern_history_restore(it.history, frame, NULL);
            failing_allocator_heal(allocator);
            if (result == QUERN_OK) break;
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            cr_assert_eq(hash(), before);
            failed_count++;
        }
        cr_assert_eq(hash(), hashes[frame]);
        must(quern_world_remove_empty_archetypes(it.world, NULL));
        must(quern_world_trim(it.world));
    }
    cr_assert(failed_count > 20, "%llu", (unsigned long long)failed_count);
    close_world();
    failing_allocator_close(allocator);
}

/* ------------------------------------------------------------------------------------ what was removed */

Test(history, archetypes_and_records_that_were_given_back_come_again)
{
    open_world(NULL);
    change(1, 500);
    open_history(NULL);
    must(quern_history_save(it.history, 0, NULL));
    const uint64_t before = hash();
    for (uint32_t count = list_all(); count > 0; count = list_all())
        quern_entity_destroy(it.world, entities[0]);
    must(quern_world_remove_empty_archetypes(it.world, NULL));
    must(quern_world_trim(it.world));
    must(quern_history_save(it.history, 1, NULL));
    const uint64_t emptied = hash();
    change(4, 200);
    must(quern_history_restore(it.history, 0, NULL));
    cr_assert_eq(hash(), before);
    must(quern_history_restore(it.history, 1, NULL));
    cr_assert_eq(hash(), emptied);
    must(quern_history_restore(it.history, 0, NULL));
    cr_assert_eq(hash(), before);
    close_world();
}

Test(history, a_ref_finds_its_value_again)
{
    open_world(NULL);
    open_history(NULL);
    const amount one = {1}, two = {2};
    quern_entity a, b;
    must(quern_entity_create_with(it.world, &it.amount, (const void *const[]){&one}, 1, &a));
    must(quern_entity_create_with(it.world, &it.amount, (const void *const[]){&two}, 1, &b));
    quern_getter *getter;
    must(quern_getter_create(it.world, &(quern_getter_def){.component = it.amount, .refs = true}, &getter));
    must(quern_history_save(it.history, 0, NULL));
    must(quern_entity_destroy(it.world, a)); /* b moves */
    quern_ref ref = {.entity = b};
    cr_assert_eq(((const amount *)quern_ref_get(getter, &ref))->value, 2);
    must(quern_history_restore(it.history, 0, NULL));
    cr_assert_eq(((const amount *)quern_ref_get(getter, &ref))->value, 2);
    quern_ref first = {.entity = a};
    cr_assert_eq(((const amount *)quern_ref_get(getter, &first))->value, 1);
    quern_getter_destroy(getter);
    close_world();
}

/* ------------------------------------------------------------------------------------------- refusals */

Test(history, what_cannot_be_saved_is_refused_by_name)
{
    open_world(NULL);
    open_history(NULL);
    quern_history *other;
    assert_refused(it.world, QUERN_ERROR_LIMIT, quern_history_create(it.world, NULL, &other));
    assert_refused(it.world, QUERN_ERROR_NULL_ARGUMENT, quern_history_create(NULL, NULL, &other));
    assert_refused(it.world, QUERN_ERROR_NULL_ARGUMENT, quern_history_save(NULL, 0, NULL));
    assert_refused(it.world, QUERN_ERROR_INVALID_ARGUMENT, quern_history_restore(it.history, 0, NULL));
    quern_commands *commands = quern_world_commands(it.world);
    cr_assert(quern_commands_create(commands).bits != 0);
    assert_refused(it.world, QUERN_ERROR_INVALID_ARGUMENT, quern_history_save(it.history, 0, NULL));
    cr_assert(strstr(quern_error_message(), "quern_world_flush") != NULL);
    must(quern_world_flush(it.world));
    must(quern_history_save(it.history, 0, NULL));
    atomic_llong live_count = 0;
    const quern_component owned_type = owned_register(it.world, "owned", &live_count);
    owned value;
    owned_construct(&value, 5, &live_count);
    must(quern_entity_create_with(it.world, &owned_type, (const void *const[]){&value}, 1, NULL));
    assert_refused(it.world, QUERN_ERROR_INVALID_ARGUMENT, quern_history_save(it.history, 1, NULL));
    cr_assert(strstr(quern_error_message(), "'owned'") != NULL);
    must(quern_history_restore(it.history, 0, NULL));
    cr_assert_eq(live_count, 0);
    close_world();
}

Test(history, a_pointer_that_was_kept_is_found)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    open_world(NULL);
    open_history(NULL);
    const quern_entity entity = setup_entity_with(it.world, &it.amount, 1);
    amount *kept = quern_entity_get(it.world, entity, it.amount);
    must(quern_history_save(it.history, 0, NULL));
    kept->value = 7;
    cr_assert_eq(quern_history_save(it.history, 1, NULL), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert(strstr(quern_error_message(), "'amount'") != NULL);
    close_world();
}

Test(history, a_schedule_that_is_saved_is_not_destroyed)
{
    captured_reports reports;
    open_world(NULL);
    quern_schedule *schedule;
    must(quern_schedule_create(it.world, NULL, &schedule));
    const quern_history_def def = {.schedules = {schedule}};
    must(quern_history_create(it.world, &def, &it.history));
    must(quern_history_save(it.history, 0, NULL));
    capture_reports(&reports);
    quern_schedule_destroy(schedule);
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    cr_assert(strstr(quern_error_message(), "a history still saves") != NULL);
    must(quern_schedule_run(schedule, NULL, 0.1));
    must(quern_history_restore(it.history, 0, NULL));
    quern_history_destroy(it.history);
    it.history = NULL;
    quern_schedule_destroy(schedule);
    close_world();
}
