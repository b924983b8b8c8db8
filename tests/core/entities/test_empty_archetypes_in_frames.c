/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "core/world/world_internal.h"
#include "tests/core/entities/archetypes_scene.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"

#include <string.h>

/* Removing empty archetypes in worlds with schedules, and at sync points. */

TestSuite(empty_archetypes_in_frames, .init = open_bare, .fini = close_valid_world);

/* --------------------------------------------------------------------------------------- schedules */

/* Adds the number of the system to every row. */
static void count_up(quern_context *context, const quern_view *view)
{
    uint64_t *values = quern_view_write(view, 0);
    const uint64_t *step = quern_context_user_data(context);
    for (uint32_t i = 0; i < view->count; i++)
        values[i] = values[i] * 3 + *step;
}

static quern_system add_counter(quern_schedule *schedule, const char *name, quern_component tag,
                                uint64_t *step)
{
    return make_system(schedule, name, count_up, .terms = {quern_term_write(number), quern_term_with(tag)},
                       .user_data = step);
}

/* Replaces the first tag by the second, and for half of the entities the second by the first. */
static void change_tags(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const uint64_t *values = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        quern_component gone = tags[values[i] % 3], come = tags[3 + values[i] % 4];
        quern_commands_remove(commands, view->entities[i], gone);
        quern_commands_add(commands, view->entities[i], come, NULL);
        if (values[i] % 5 == 0) quern_commands_remove(commands, view->entities[i], tags[values[i] % 7]);
    }
}

static void tidy_up(quern_context *context)
{
    quern_world *own = quern_context_world(context);
    const bool *is_on = quern_context_user_data(context);
    if (!*is_on) return;
    must(quern_world_trim(own));
    must(quern_world_remove_empty_archetypes(own, NULL));
}

static uint64_t steps[7] = {1, 2, 3, 4, 5, 6, 7};

/* Declares systems that conflict only if an archetype has the tags of both, and a system that changes tags. */
static quern_schedule *open_schedule(bool *tidies_in_frame)
{
    static const char *const names[] = {"count0", "count1", "count2", "count3",
                                        "count4", "count5", "count6"};
    quern_schedule *schedule = setup_phases(world, 2);
    for (uint32_t i = 0; i < 5; i++)
        add_counter(schedule, names[i], tags[i], &steps[i]);
    make_system(schedule, "tidy", NULL, .begin = tidy_up, .flags = QUERN_SYSTEM_EXCLUSIVE,
                .user_data = tidies_in_frame);
    for (uint32_t i = 5; i < 7; i++)
        add_counter(schedule, names[i], tags[i], &steps[i]);
    make_system(schedule, "change", change_tags, .terms = {quern_term_read(number)}, .phase = 1);
    return schedule;
}

enum { FRAME_ROWS = 600, FRAME_COUNT = effort(40, 40, 12) };

static void create_frame_rows(void)
{
    for (uint32_t i = 0; i < FRAME_ROWS; i++)
        entities[i] = create_with(tags[i % 7], tags[(i + 1 + i % 3) % 7], i);
}

/* Hashes the values of all entities after some frames. Values must depend only on the frames. */
static void run_frames(uint32_t thread_count, bool tidies_between, bool tidies_in_frame,
                       uint64_t out_values[FRAME_ROWS])
{
    open_bare();
    create_frame_rows();
    quern_jobs *jobs = setup_jobs(thread_count);
    quern_schedule *schedule = open_schedule(&tidies_in_frame);
    for (uint32_t frame = 0; frame < FRAME_COUNT; frame++) {
        if (tidies_between && frame % 3 != 0) remove_empty();
        if (tidies_between && frame % 4 == 2) trim();
        must_run(schedule, jobs);
        assert_valid(world);
    }
    for (uint32_t i = 0; i < FRAME_ROWS; i++)
        out_values[i] = number_of(entities[i]);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    close_valid_world();
}

Test(empty_archetypes_in_frames, removal_does_not_change_results_of_frames)
{
    static uint64_t expected[FRAME_ROWS], found[FRAME_ROWS];
    close_valid_world();
    run_frames(0, false, false, expected);
    for (uint32_t i = 0; i < POOL_COUNT; i++)
        for (uint32_t kind = 1; kind < 8; kind += 1 + kind / 4) {
            empty_archetype_checks_per_sync = (kind & 4) != 0 ? 1 + 7 * i : 0;
            run_frames(pool_threads[i], kind & 1, kind & 2, found);
            cr_assert_eq(memcmp(found, expected, sizeof found), 0, "%u threads, kind %u", pool_threads[i],
                         kind);
        }
}

/* The archetype that makes two systems conflict is removed and created again. */
Test(empty_archetypes_in_frames, conflicts_return_with_their_archetype)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system first = add_counter(schedule, "first", tags[0], &steps[0]);
    quern_system second = add_counter(schedule, "second", tags[1], &steps[1]);
    quern_entity alone = create_with(tags[0], none, 0), other = create_with(tags[1], none, 0);
    must_run(schedule, NULL);
    cr_assert_not(quern_schedule_has_edge(schedule, first, second));
    for (uint32_t round = 0; round < 3; round++) {
        quern_entity both = create_with(tags[0], tags[1], 1);
        must_run(schedule, NULL);
        cr_assert(quern_schedule_has_edge(schedule, first, second), "round %u", round);
        cr_assert_eq(number_of(both), (1 * 3 + 1) * 3 + 2u);
        must_stay_valid(quern_entity_destroy(world, both));
        must_run(schedule, NULL);
        cr_assert_eq(remove_empty(), 1u);
        if (round == 1) must_run(schedule, NULL);
    }
    cr_assert_gt(number_of(alone), 0u);
    cr_assert_gt(number_of(other), 0u);
    quern_schedule_destroy(schedule);
}

/* A new archetype replaces a removed one at the same index. */
Test(empty_archetypes_in_frames, conflicts_over_new_archetypes_are_found)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system first = add_counter(schedule, "first", tags[0], &steps[0]);
    quern_system second = add_counter(schedule, "second", tags[1], &steps[1]);
    quern_system third = add_counter(schedule, "third", tags[2], &steps[2]);
    create_row_of_sets(TAG_COUNT);
    must_run(schedule, NULL);
    must_stay_valid(quern_entity_destroy_many(world, entities, 3));
    remove_empty();
    quern_entity both = create_with(tags[1], tags[2], 1);
    must_run(schedule, NULL);
    cr_assert(quern_schedule_has_edge(schedule, second, third));
    cr_assert_not(quern_schedule_has_edge(schedule, first, second));
    cr_assert_eq(number_of(both), (1 * 3 + 2) * 3 + 3u);
    quern_entity three = create_with(tags[0], tags[1], 1);
    remove_empty();
    must_run(schedule, NULL);
    cr_assert(quern_schedule_has_edge(schedule, first, second));
    cr_assert_eq(number_of(three), (1 * 3 + 1) * 3 + 2u);
    quern_schedule_destroy(schedule);
}

/* After one of two schedules is destroyed, the world must have no pointers to its systems. */
Test(empty_archetypes_in_frames, destroyed_schedule_is_not_updated)
{
    quern_schedule *kept = setup_schedule(world);
    add_counter(kept, "kept", tags[0], &steps[0]);
    for (uint32_t round = 0; round < 5; round++) {
        quern_schedule *passing = setup_schedule(world);
        add_counter(passing, "passing", tags[0], &steps[1]);
        quern_entity entity = create_with(tags[0], tags[1 + round], 0);
        if (round % 2 == 0) must_run(passing, NULL);
        must_run(kept, NULL);
        must_stay_valid(quern_entity_destroy(world, entity));
        if (round % 3 == 0) remove_empty();
        quern_schedule_destroy(passing);
        remove_empty();
        must_run(kept, NULL);
    }
    quern_schedule_destroy(kept);
}

/* ------------------------------------------------------------------------------- at sync points, a few */

/* Creates a schedule with one sync point per frame. */
static quern_schedule *open_syncing(uint32_t per_sync)
{
    close_valid_world();
    empty_archetype_checks_per_sync = per_sync;
    open_bare();
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "idle", idle_run);
    return schedule;
}

static uint32_t next_set; /* bits of the tags of the set that was created last */

/* Returns the number of frames after which at most archetype_count archetypes are left. */
static uint32_t frames_until(quern_schedule *schedule, uint32_t archetype_count)
{
    for (uint32_t frame = 0; frame < 1000; frame++) {
        if (stats().archetype_count <= archetype_count) return frame;
        must_run(schedule, NULL);
    }
    return UINT32_MAX;
}

Test(empty_archetypes_in_frames, small_world_keeps_empty_archetypes)
{
    quern_schedule *schedule = open_syncing(0);
    create_row_of_sets(TAG_COUNT);
    must_stay_valid(quern_entity_destroy_many(world, entities, TAG_COUNT));
    uint32_t count = stats().archetype_count;
    for (uint32_t frame = 0; frame < 50; frame++)
        must_run(schedule, NULL);
    cr_assert_eq(stats().archetype_count, count);
    quern_schedule_destroy(schedule);
}

/* Creates archetypes until the world has `archetype_count`. Those after the first kept_count have no rows. */
static void grow(uint32_t archetype_count, uint32_t kept_count)
{
    while (stats().archetype_count < archetype_count) {
        quern_component chosen[TAG_COUNT];
        uint32_t count = 0;
        next_set++;
        for (uint32_t i = 0; i < TAG_COUNT; i++)
            if (next_set >> i & 1) chosen[count++] = tags[i];
        const quern_entity entity = setup_entity_with(world, chosen, count);
        if (stats().archetype_count > kept_count) must_stay_valid(quern_entity_destroy(world, entity));
    }
}

Test(empty_archetypes_in_frames, default_world_removes_them_when_it_has_doubled)
{
    quern_schedule *schedule = open_syncing(0);
    grow(255, 150);
    must_run(schedule, NULL);
    cr_assert_eq(stats().archetype_count, 255u);
    grow(256, 150);
    must_stay_valid(quern_schedule_run(schedule, NULL, 0));
    cr_assert_eq(stats().archetype_count, 150u);
    grow(300, 150);
    must_run(schedule, NULL);
    cr_assert_eq(stats().archetype_count, 300u, "twice as many as were left");
    grow(301, 150);
    must_stay_valid(quern_schedule_run(schedule, NULL, 0));
    cr_assert_eq(stats().archetype_count, 150u);
    /* A removal by a call counts, too: 200 are left. */
    grow(240, 200);
    cr_assert_eq(remove_empty(), 40u);
    grow(301, 200);
    must_run(schedule, NULL);
    cr_assert_eq(stats().archetype_count, 301u);
    grow(401, 200);
    must_run(schedule, NULL);
    cr_assert_eq(stats().archetype_count, 200u);
    quern_schedule_destroy(schedule);
}

/* The number of archetypes that were left is restored with a frame and loaded with an archive. Of a world with checks,
 * another number is loaded; it counts as no more than the archetypes of the world. */
Test(empty_archetypes_in_frames, what_the_last_removal_has_left_is_part_of_the_world)
{
    quern_schedule *schedule = open_syncing(0);
    grow(256, 130);
    must_run(schedule, NULL);
    quern_history *history;
    must_stay_valid(quern_history_create(world, &(quern_history_def){.frame_count = 2}, &history));
    must_stay_valid(quern_history_save(history, 0, NULL));
    grow(600, 500);
    must_run(schedule, NULL);
    cr_assert_eq(stats().archetype_count, 500u);
    must_stay_valid(quern_history_restore(history, 0, NULL));
    next_set = 1000; /* sets that the restored world lacks */
    grow(261, 130);
    must_run(schedule, NULL);
    cr_assert_eq(stats().archetype_count, 130u);
    quern_history_destroy(history);

    grow(200, 150);
    quern_byte_buffer archive = {0};
    must_stay_valid(quern_world_save(world, quern_sink_bytes(&archive), NULL));
    quern_schedule_destroy(schedule);
    for (uint32_t saved_count = 130; saved_count < 5000; saved_count += 4000) {
        schedule = open_syncing(0);
        must_stay_valid(
            quern_world_load(world, quern_source_bytes(archive.bytes, archive.size_bytes), NULL, NULL));
        cr_assert_eq(stats().archetype_count, 200u);
        cr_assert_eq(world->visit_count, 130u);
        world->visit_count = saved_count;
        next_set = 2000;
        grow(260, 150);
        must_run(schedule, NULL);
        cr_assert_eq(stats().archetype_count, 260u);
        grow(261, 150);
        must_run(schedule, NULL);
        cr_assert_eq(stats().archetype_count, saved_count == 130 ? 150u : 261u);
        grow(521, 150);
        must_run(schedule, NULL);
        cr_assert_eq(stats().archetype_count, 150u);
        quern_schedule_destroy(schedule);
    }
    quern_byte_buffer_release(&archive);
}

Test(empty_archetypes_in_frames, removal_can_be_disabled)
{
    for (uint32_t per_sync = 0; per_sync < 2; per_sync++) {
        quern_world *own = make_world(.empty_archetype_checks_per_sync = 1000 * per_sync,
                                      .disable_empty_archetype_removal = true);
        quern_component components[9];
        for (uint32_t i = 0; i < 9; i++)
            components[i] = setup_tag(own, (char[]){(char)('a' + i), '\0'});
        quern_schedule *schedule = setup_schedule(own);
        for (uint32_t set = 1; set < 512; set++) {
            quern_component chosen[9];
            uint32_t count = 0;
            for (uint32_t i = 0; i < 9; i++)
                if (set >> i & 1) chosen[count++] = components[i];
            must(quern_entity_destroy(own, setup_entity_with(own, chosen, count)));
        }
        for (uint32_t frame = 0; frame < 20; frame++)
            must_run(schedule, NULL);
        cr_assert_eq(stats_of_world(own).archetype_count, 512u);
        quern_schedule_destroy(schedule);
        quern_world_destroy(own);
    }
}

/* A pass keeps its tables when an archetype is removed that none of its systems matches, and the positions of its
 * archetypes change. */
static void count_rows(quern_context *context, const quern_view *view)
{
    uint64_t *count = quern_context_user_data(context);
    *count += view->count;
}

Test(empty_archetypes_in_frames, passes_find_their_rows_after_other_archetypes_are_removed)
{
    quern_schedule *schedule = open_syncing(0);
    uint64_t count = 0;
    make_system(schedule, "count", count_rows, .terms = {quern_term_read(number)},
                .flags = QUERN_SYSTEM_SERIAL, .user_data = &count);
    grow(200, 0);
    quern_entity own[3];
    for (uint32_t i = 0; i < 3; i++)
        own[i] = create_with(tags[i], none, i);
    must_run(schedule, NULL);
    cr_assert_eq(count, 3u);
    cr_assert_eq(remove_empty(), 199u);
    must_stay_valid(quern_entity_destroy(world, own[1]));
    (void)create_with(tags[5], none, 5);
    (void)create_with(tags[6], none, 6);
    count = 0;
    must_run(schedule, NULL);
    cr_assert_eq(count, 4u);
    grow(150, 0);
    const quern_entity last = create_with(tags[7], none, 7);
    count = 0;
    must_run(schedule, NULL);
    cr_assert_eq(count, 5u);
    must_stay_valid(quern_entity_destroy(world, last));
    count = 0;
    must_run(schedule, NULL);
    cr_assert_eq(count, 4u);
    quern_schedule_destroy(schedule);
}

Test(empty_archetypes_in_frames, sync_points_remove_a_few_at_a_time)
{
    quern_schedule *schedule = open_syncing(3);
    create_row_of_sets(TAG_COUNT);
    must_stay_valid(quern_entity_destroy_many(world, entities, TAG_COUNT - 2));
    quern_term term = quern_term_read(number);
    quern_query *query = setup_query(world, &term, 1);
    uint64_t hash = quern_world_hash(world);
    uint32_t before = stats().archetype_count;
    for (uint32_t frame = 0; frame < 60; frame++) {
        must_run(schedule, NULL);
        uint32_t now = stats().archetype_count;
        cr_assert(now <= before && before - now <= 3, "%u archetypes after %u", now, before);
        cr_assert(frame >= 8 || now == before, "gone in frame %u", frame);
        cr_assert_eq(quern_query_count(query), 2u);
        cr_assert_eq(quern_world_hash(world), hash);
        assert_valid(world);
        before = now;
    }
    cr_assert_eq(before, 3u, "the one without components and two with entities");
    quern_query_destroy(query);
    quern_schedule_destroy(schedule);
}

Test(empty_archetypes_in_frames, briefly_empty_archetype_stays)
{
    quern_schedule *schedule = open_syncing(UINT32_MAX);
    quern_entity entity = create_with(tags[0], none, 1);
    uint32_t index = index_of((quern_component[]){number, tags[0]}, 2);
    for (uint32_t round = 0; round < 10; round++) {
        must_stay_valid(quern_entity_destroy(world, entity));
        for (uint32_t frame = 0; frame < 7; frame++)
            must_run(schedule, NULL);
        cr_assert_eq(index_of((quern_component[]){number, tags[0]}, 2), index, "round %u", round);
        entity = create_with(tags[0], none, 1);
        must_run(schedule, NULL);
    }
    must_stay_valid(quern_entity_destroy(world, entity));
    cr_assert_leq(frames_until(schedule, 1), 10u);
    quern_schedule_destroy(schedule);
}

/* Creates some entities with new component sets in every frame. */
enum { NEW_PER_FRAME = 256, CHANGING_FRAMES = 280, SET_BITS = 17 };

static quern_component set_tags[SET_BITS];

static void create_new_sets(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < NEW_PER_FRAME; i++) {
        quern_component chosen[SET_BITS + 1] = {number};
        uint32_t count = 1;
        next_set++;
        for (uint32_t t = 0; t < SET_BITS; t++)
            if (next_set >> t & 1) chosen[count++] = set_tags[t];
        cr_assert(record_entity_with(commands, chosen, NULL, count).bits, "%s", quern_error_message());
    }
}

static void destroy_old(quern_context *context, const quern_view *view)
{
    for (uint32_t i = 0; i < view->count; i++)
        quern_commands_destroy(quern_context_commands(context), view->entities[i]);
}

Test(empty_archetypes_in_frames, world_with_ever_new_archetypes_stays_below_the_limit, .timeout = 600)
{
    runs_on_one_thread();
    close_valid_world();
    empty_archetype_checks_per_sync = 4 * NEW_PER_FRAME;
    open_bare();
    for (uint32_t t = 0; t < SET_BITS; t++)
        set_tags[t] = setup_tag(world, (char[]){'s', (char)('a' + t), '\0'});
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "destroy", destroy_old, .terms = {quern_term_read(number)},
                .begin = create_new_sets);
    uint32_t most = 0;
    for (uint32_t frame = 0; frame < CHANGING_FRAMES; frame++) {
        must_run(schedule, NULL);
        if (stats().archetype_count > most) most = stats().archetype_count;
        cr_assert_eq(stats().entity_count, (uint64_t)NEW_PER_FRAME);
        if (frame % 40 == 0) assert_valid(world);
    }
    cr_assert_gt(next_set, (uint32_t)QUERN_MAX_ARCHETYPES, "there would have been too many");
    cr_assert_lt(most, 30u * NEW_PER_FRAME, "%u at a time", most);
    quern_schedule_destroy(schedule);
}

/* The queries have not checked the archetypes that are removed. */
Test(empty_archetypes_in_frames, sync_points_need_no_memory_to_remove)
{
    quern_schedule *schedule = open_syncing(UINT32_MAX);
    quern_query *queries[QUERY_COUNT];
    open_queries(queries);
    create_row_of_sets(TAG_COUNT);
    must_stay_valid(quern_entity_destroy_many(world, entities, TAG_COUNT / 2));
    for (uint32_t frame = 0; frame < 8; frame++)
        must_run(schedule, NULL);
    const uint32_t count = stats().archetype_count;
    failing_allocator_fail_from(allocator, 1);
    must_run(schedule, NULL);
    failing_allocator_heal(allocator);
    cr_assert_eq(stats().archetype_count, count - TAG_COUNT / 2);
    assert_valid(world);
    check_queries(queries);
    close_queries(queries);
    quern_schedule_destroy(schedule);
}
