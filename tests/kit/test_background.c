/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include <quern/kit/background.h>

#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Background work: results in their frames at every speed, by histories, archives and replays, and refused calls. The work
 * is a walk: a list of numbers, each made from the one before, one per step. */

typedef struct wish {
    uint32_t seed, length;
} wish;

typedef struct trail {
    uint32_t last;
    QUERN_LIST(uint32_t) numbers;
} trail;

typedef struct walker {
    uint32_t number;
} walker;

static uint32_t next_number(uint32_t number)
{
    return number * 1664525u + 1013904223u;
}

static atomic_uint begun, ended, steps_of_begun;

static bool walk(void *user_data, quern_background_step *step)
{
    const wish *wanted = step->request;
    trail *made = step->result;
    walker *at = step->state;
    (void)user_data;
    if (step->index == 0) {
        atomic_fetch_add(&begun, 1);
        at->number = wanted->seed;
    }
    atomic_fetch_add(&steps_of_begun, 1);
    at->number = made->last = next_number(at->number);
    cr_assert_eq(QUERN_LIST_PUSH(&made->numbers, uint32_t, at->number), QUERN_OK);
    return step->index + 1 >= wanted->length;
}

static void end_walk(void *user_data, void *state)
{
    const walker *at = state;
    (void)user_data;
    cr_assert_neq(at->number, 0);
    atomic_fetch_add(&ended, 1);
}

typedef struct scene {
    quern_world *world;
    quern_schedule *schedule;
    quern_jobs *jobs;
    quern_background *background;
    quern_component wish, trail;
} scene;

/* Opens a world with background work, with frames and limits of `wanted`. */
static scene open_scene(const quern_background_def *wanted, uint32_t thread_count,
                        const quern_world_def *of_world)
{
    scene s = {0};
    must(quern_world_create(of_world, &s.world));
    must(QUERN_COMPONENT_REGISTER_FIELDS(s.world, &s.wish, wish, seed, length));
    s.trail =
        make_component(s.world, QUERN_TYPE(trail),
                       .fields = {QUERN_FIELD(trail, last), QUERN_LIST_FIELD(trail, numbers, uint32_t)});
    if (thread_count > 0) must(quern_jobs_create(&(quern_jobs_def){.thread_count = thread_count}, &s.jobs));
    quern_background_def def = *wanted;
    def.name = "walks";
    def.jobs = s.jobs;
    def.request = s.wish;
    def.result = s.trail;
    if (def.step == NULL) def.step = walk;
    def.end = end_walk;
    def.state_bytes = sizeof(walker);
    must(quern_background_create(s.world, &def, &s.background));
    must(quern_schedule_create(s.world, NULL, &s.schedule));
    must(quern_background_add_systems(s.background, s.schedule, 0));
    return s;
}

static void close_scene(scene *s)
{
    assert_valid(s->world);
    quern_schedule_destroy(s->schedule);
    quern_background_destroy(s->background);
    quern_jobs_destroy(s->jobs);
    quern_world_destroy(s->world);
}

static void frame(const scene *s)
{
    must(quern_schedule_run(s->schedule, s->jobs, 1));
}

static quern_background_stats stats(const scene *s)
{
    quern_background_stats found;
    must(quern_background_get_stats(s->background, &found));
    return found;
}

static quern_entity ask(const scene *s, uint32_t seed, uint32_t length)
{
    quern_entity entity;
    must(quern_entity_create_with(s->world, &s->wish, (const void *const[]){&(wish){seed, length}}, 1,
                                  &entity));
    return entity;
}

static void set_wish(const scene *s, quern_entity entity, uint32_t seed, uint32_t length)
{
    must(quern_entity_set(s->world, entity, s->wish, &(wish){seed, length}));
}

/* Asserts that the entity has the whole walk of the request, and that nothing is pending for it. */
static void assert_walked(const scene *s, quern_entity entity, uint32_t seed, uint32_t length)
{
    const trail *made = quern_entity_get(s->world, entity, s->trail);
    cr_assert_not_null(made);
    cr_assert_eq(made->numbers.list.count, length);
    for (uint32_t i = 0, number = seed; i < length; i++) {
        number = next_number(number);
        cr_assert_eq(made->numbers.items[i], number);
        if (i + 1 == length) cr_assert_eq(made->last, number);
    }
    cr_assert_not(quern_entity_has(s->world, entity, s->wish));
    cr_assert_not(quern_entity_has(s->world, entity, quern_background_due(s->background)));
}

TestSuite(background, .timeout = 120);

/* ------------------------------------------------------------------------------------------- results */

Test(background, a_result_is_set_in_its_frame)
{
    for (uint32_t threads = 0; threads <= 3; threads++) {
        scene s = open_scene(&(quern_background_def){.frames = 3}, threads, NULL);
        const quern_entity entity = ask(&s, 7, 20);
        for (uint32_t i = 0; i < 3; i++) {
            frame(&s);
            cr_assert(quern_entity_has(s.world, entity, s.wish));
            cr_assert_not(quern_entity_has(s.world, entity, s.trail));
            cr_assert_eq(stats(&s).pending_count, 1);
        }
        frame(&s);
        assert_walked(&s, entity, 7, 20);
        cr_assert_eq(stats(&s).pending_count, 0);
        cr_assert_eq(stats(&s).applied_count, 1);
        close_scene(&s);
    }
}

Test(background, each_state_is_ended_once)
{
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    scene s = open_scene(&(quern_background_def){.frames = 2, .keep_frames = 1}, 2, NULL);
    for (uint32_t i = 0; i < 50; i++)
        (void)ask(&s, i + 1, 1 + i % 5 * 1000);
    for (uint32_t i = 0; i < 2; i++)
        frame(&s);
    close_scene(&s);
    cr_assert_eq(atomic_load(&begun), atomic_load(&ended));
}

Test(background, a_changed_request_gives_the_new_result_in_the_same_frame)
{
    scene s = open_scene(&(quern_background_def){.frames = 3}, 2, NULL);
    const quern_entity entity = ask(&s, 7, 20);
    frame(&s);
    frame(&s);
    set_wish(&s, entity, 9, 5);
    frame(&s);
    frame(&s);
    assert_walked(&s, entity, 9, 5);
    cr_assert_eq(stats(&s).started_count, 2);
    close_scene(&s);
}

Test(background, a_removed_request_ends_the_work)
{
    scene s = open_scene(&(quern_background_def){.frames = 3, .keep_frames = 2}, 2, NULL);
    const quern_entity entity = ask(&s, 7, 20), other = ask(&s, 8, 20);
    frame(&s);
    must(quern_entity_remove(s.world, entity, s.wish));
    must(quern_entity_destroy(s.world, other));
    for (uint32_t i = 0; i < 6; i++)
        frame(&s);
    cr_assert_not(quern_entity_has(s.world, entity, s.trail));
    cr_assert_not(quern_entity_has(s.world, entity, quern_background_due(s.background)));
    cr_assert_eq(stats(&s).applied_count, 0);
    while (stats(&s).kept_count != 0)
        frame(&s); /* until the worker has seen that its jobs are cancelled */
    close_scene(&s);
}

Test(background, results_are_kept_for_the_frames_of_the_definition)
{
    scene s = open_scene(&(quern_background_def){.frames = 1, .keep_frames = 2}, 0, NULL);
    const quern_entity entity = ask(&s, 7, 20);
    frame(&s);
    frame(&s);
    assert_walked(&s, entity, 7, 20);
    for (uint32_t kept = 0; kept < 2; kept++) {
        frame(&s);
        cr_assert_eq(stats(&s).kept_count, 1);
    }
    frame(&s);
    cr_assert_eq(stats(&s).kept_count, 0);
    close_scene(&s);
}

Test(background, a_copy_has_work_of_its_own)
{
    scene s = open_scene(&(quern_background_def){.frames = 4}, 2, NULL);
    const quern_entity entity = ask(&s, 7, 20);
    frame(&s);
    quern_entity twin;
    must(quern_entity_clone(s.world, entity, NULL, &twin));
    for (uint32_t i = 0; i < 4; i++)
        frame(&s);
    assert_walked(&s, entity, 7, 20);
    assert_walked(&s, twin, 7, 20);
    cr_assert_eq(stats(&s).started_count, 2);
    close_scene(&s);
}

/* ------------------------------------------------------------------------------------------- budgets */

static uint32_t steps_in_frame(const scene *s)
{
    const uint32_t before = atomic_load(&steps_of_begun);
    frame(s);
    return atomic_load(&steps_of_begun) - before;
}

/* A walk of this length takes longer than a budget of 1 us, however fast the machine is. */
enum { LONG_WALK = 20000 };

Test(background, without_workers_nothing_is_computed_early_unless_there_is_a_budget)
{
    for (uint32_t threads = 0; threads <= 1; threads++) {
        scene s = open_scene(&(quern_background_def){.frames = 3}, threads, NULL);
        (void)ask(&s, 7, LONG_WALK);
        for (uint32_t i = 0; i < 3; i++)
            cr_assert_eq(steps_in_frame(&s), 0);
        cr_assert_eq(steps_in_frame(&s), LONG_WALK);
        cr_assert_eq(stats(&s).waited_count, 1);
        cr_assert_gt(stats(&s).longest_wait_ns, 0);
        cr_assert_eq(stats(&s).longest_wait_ns, stats(&s).waited_ns);
        close_scene(&s);
    }
}

Test(background, a_budget_spreads_work_over_frames_in_the_order_of_requests)
{
    scene s = open_scene(&(quern_background_def){.frames = 3, .budget_us = 1}, 0, NULL);
    const quern_entity first = ask(&s, 7, LONG_WALK), second = ask(&s, 8, LONG_WALK);
    uint32_t early = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t steps = steps_in_frame(&s);
        cr_assert_gt(steps, 0);
        cr_assert_lt(steps, LONG_WALK);
        early += steps;
    }
    cr_assert_eq(steps_in_frame(&s), 2 * LONG_WALK - early);
    cr_assert_eq(stats(&s).waited_count, 2);
    assert_walked(&s, first, 7, LONG_WALK);
    assert_walked(&s, second, 8, LONG_WALK);
    close_scene(&s);
}

Test(background, workers_stop_at_the_budget_and_continue_in_the_next_frame)
{
    scene s = open_scene(&(quern_background_def){.frames = 1000, .budget_us = 1}, 2, NULL);
    (void)ask(&s, 7, 1000000);
    frame(&s);
    uint32_t before = atomic_load(&steps_of_begun), rounds = 0;
    for (uint32_t i = 0; i < 200 && rounds < 3; i++) {
        frame(&s);
        const uint32_t now = atomic_load(&steps_of_begun);
        rounds += now != before;
        before = now;
    }
    cr_assert_lt(before, 1000000);
    close_scene(&s);
}

/* ------------------------------------------------------------------------------------------ saved worlds */

static atomic_bool may_end, has_begun, has_met[2];

/* A computation that never ends by itself. */
static bool walk_on(void *user_data, quern_background_step *step)
{
    walker *at = step->state;
    (void)user_data;
    at->number = 1;
    atomic_store(&has_begun, true);
    return atomic_load(&may_end);
}

/* Waits for the other system, which runs on the other thread. */
static void meet(quern_context *context, const quern_view *view)
{
    const uintptr_t own = (uintptr_t)quern_context_user_data(context);
    const uint64_t start_ns = quern_clock_ns();
    (void)view;
    atomic_store(&has_met[own], true);
    while (!atomic_load(&has_met[1 - own]))
        cr_assert_lt(quern_clock_ns() - start_ns, 10000000000u, "the worker stays at its computation");
}

/* In other builds a pool runs short systems on one thread if that was as fast before, or if the machine is crowded. */
Test(background, a_worker_leaves_a_computation_for_a_frame)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS, which always shares systems");
    scene s = open_scene(&(quern_background_def){.frames = 1000, .step = walk_on}, 2, NULL);
    for (uintptr_t i = 0; i < 2; i++)
        must(quern_schedule_add_system(
            s.schedule,
            &(quern_system_def){.name = i == 0 ? "left" : "right", .run = meet, .user_data = (void *)i},
            NULL));
    atomic_store(&may_end, false);
    atomic_store(&has_begun, false);
    (void)ask(&s, 1, 1);
    for (uint32_t i = 0; i < 20; i++) {
        atomic_store(&has_met[0], false);
        atomic_store(&has_met[1], false);
        frame(&s);
        while (!atomic_load(&has_begun))
            continue;
    }
    cr_assert_eq(stats(&s).applied_count, 0);
    atomic_store(&may_end, true);
    close_scene(&s);
}

Test(background, a_restored_frame_repeats_without_computing_again)
{
    scene s = open_scene(&(quern_background_def){.frames = 3}, 2, NULL);
    quern_history *history;
    must(quern_history_create(s.world, &(quern_history_def){.schedules = {s.schedule}, .frame_count = 16},
                              &history));
    const quern_entity entity = ask(&s, 7, 20);
    uint64_t hashes[8];
    for (uint32_t i = 0; i < 8; i++) {
        must(quern_history_save(history, i, s.jobs));
        frame(&s);
        hashes[i] = quern_world_hash(s.world);
    }
    assert_walked(&s, entity, 7, 20);
    must(quern_history_restore(history, 2, s.jobs));
    cr_assert(quern_entity_has(s.world, entity, s.wish));
    for (uint32_t i = 2; i < 8; i++) {
        frame(&s);
        cr_assert_eq(quern_world_hash(s.world), hashes[i]);
    }
    cr_assert_eq(stats(&s).started_count, 1);
    cr_assert_eq(stats(&s).applied_count, 2);
    quern_history_destroy(history);
    close_scene(&s);
}

Test(background, a_loaded_world_goes_on_with_pending_work)
{
    quern_byte_buffer memory = {0};
    scene s = open_scene(&(quern_background_def){.frames = 5}, 2, NULL);
    const quern_entity entity = ask(&s, 7, 20);
    frame(&s);
    frame(&s);
    must(quern_world_save(s.world, quern_sink_bytes(&memory), NULL));
    scene t = open_scene(&(quern_background_def){.frames = 5}, 0, NULL);
    must(quern_world_load(t.world, quern_source_bytes(memory.bytes, memory.size_bytes), NULL, NULL));
    for (uint32_t i = 0; i < 4; i++) {
        frame(&s);
        frame(&t);
        cr_assert_eq(quern_world_hash(s.world), quern_world_hash(t.world));
    }
    assert_walked(&s, entity, 7, 20);
    quern_byte_buffer_release(&memory);
    close_scene(&t);
    close_scene(&s);
}

Test(background, a_result_of_another_layout_needs_a_new_object)
{
    const quern_background_def def = {.frames = 3};
    scene s = open_scene(&def, 2, NULL);
    const quern_entity entity = ask(&s, 7, 20);
    frame(&s);
    /* As many bytes, and the list is where it was. */
    const quern_component_def other = {
        .name = "trail",
        .size_bytes = sizeof(trail),
        .alignment_bytes = _Alignof(trail),
        .fields = {{.name = "last", .type = QUERN_FIELD_F32, .offset_bytes = offsetof(trail, last)},
                   QUERN_LIST_FIELD(trail, numbers, uint32_t)}};
    must(quern_component_redefine(s.world, s.trail, &other, NULL, NULL));
    for (uint32_t i = 0; i < 4; i++)
        frame(&s);
    cr_assert_eq(stats(&s).last_result, QUERN_ERROR_LAYOUT_MISMATCH);
    cr_assert_eq(stats(&s).applied_count, 0);
    cr_assert(quern_entity_has(s.world, entity, s.wish));
    close_scene(&s);
}

Test(background, lists_of_a_redefined_type_are_freed)
{
    scene s = open_scene(&(quern_background_def){.frames = 1}, 0, NULL);
    const quern_entity entity = ask(&s, 7, 20);
    frame(&s);
    frame(&s);
    assert_walked(&s, entity, 7, 20);
    const quern_component_def other = {.name = "trail",
                                       .size_bytes = sizeof(uint32_t),
                                       .alignment_bytes = _Alignof(uint32_t),
                                       .fields = {{.name = "last", .type = QUERN_FIELD_U32}}};
    must(quern_component_redefine(s.world, s.trail, &other, NULL, NULL));
    cr_assert_eq(stats(&s).kept_count, 1);
    close_scene(&s); /* a sanitizer finds a list that is freed by hooks that are gone, or not at all */
}

Test(background, a_disabled_entity_waits)
{
    scene s = open_scene(&(quern_background_def){.frames = 1}, 0, NULL);
    const quern_entity entity = ask(&s, 7, 20);
    must(quern_entity_set_enabled(s.world, entity, false));
    frame(&s);
    frame(&s);
    cr_assert_not(quern_entity_has(s.world, entity, quern_background_due(s.background)));
    must(quern_entity_set_enabled(s.world, entity, true));
    frame(&s);
    frame(&s);
    assert_walked(&s, entity, 7, 20);
    close_scene(&s);
}

static void poll_inside(quern_context *context, const quern_view *view)
{
    quern_background *background = quern_context_user_data(context);
    (void)view;
    assert_refused(quern_context_world(context), QUERN_ERROR_WORLD_LOCKED,
                   quern_background_poll(background));
}

/* A recording would not have what an exclusive system lists. */
Test(background, results_are_listed_between_frames_alone)
{
    scene s = open_scene(&(quern_background_def){.frames = 0}, 0, NULL);
    const quern_system_def def = {
        .name = "poll inside",
        .run = poll_inside,
        .flags = QUERN_SYSTEM_EXCLUSIVE,
        .resources = {{quern_background_resource(s.background), QUERN_ACCESS_WRITE}},
        .user_data = s.background};
    must(quern_schedule_add_system(s.schedule, &def, NULL));
    frame(&s);
    must(quern_background_poll(s.background));
    close_scene(&s);
}

Test(background, a_replay_repeats_polled_results)
{
    quern_byte_buffer memory = {0};
    {
        scene s = open_scene(&(quern_background_def){.frames = 0}, 2, NULL);
        quern_replay_recorder *recorder;
        for (uint32_t i = 0; i < 5; i++)
            (void)ask(&s, i, 1 + 500 * i);
        must(quern_replay_recorder_create(
            s.schedule, quern_sink_bytes(&memory),
            &(quern_replay_recorder_def){.inputs = {quern_background_resource(s.background)}}, &recorder));
        uint32_t frames = 0;
        for (; frames < 100000 && stats(&s).applied_count < 5; frames++) {
            must(quern_background_poll(s.background));
            must(quern_replay_record(recorder, s.jobs, 1));
        }
        cr_assert_eq(stats(&s).applied_count, 5);
        must(quern_replay_finish(recorder));
        close_scene(&s);
    }
    for (uint32_t threads = 0; threads <= 3; threads++) {
        scene s = open_scene(&(quern_background_def){.frames = 0}, threads, NULL);
        for (uint32_t i = 0; i < 5; i++)
            (void)ask(&s, i, 1 + 500 * i);
        quern_replay_report report;
        const quern_result result = quern_replay_run(
            s.schedule, s.jobs, quern_source_bytes(memory.bytes, memory.size_bytes), NULL, &report);
        cr_assert_eq(result, QUERN_OK, "%s", report.text);
        cr_assert_eq(stats(&s).applied_count, 5);
        close_scene(&s);
    }
    quern_byte_buffer_release(&memory);
}

/* --------------------------------------------------------------------------------------- random programs */

enum { MODEL_ENTITIES = 24, MODEL_FRAMES = 60, DELAY = 3 };

typedef struct model_entity {
    quern_entity entity;
    bool is_alive, has_wish, has_due, has_trail;
    wish wanted;
    uint32_t frames_left;
    wish walked; /* whose trail it has */
} model_entity;

typedef struct model {
    model_entity entities[MODEL_ENTITIES];
} model;

/* One frame as background.h describes it: entities with pending work first, then new requests. */
static void model_frame(model *m)
{
    for (uint32_t i = 0; i < MODEL_ENTITIES; i++) {
        model_entity *e = &m->entities[i];
        if (!e->is_alive) continue;
        const bool was_pending = e->has_due;
        if (was_pending && !e->has_wish) e->has_due = false;
        if (was_pending && e->has_wish && --e->frames_left == 0) {
            e->walked = e->wanted;
            e->has_trail = true;
            e->has_due = e->has_wish = false;
        }
        if (!was_pending && e->has_wish) {
            e->has_due = true;
            e->frames_left = DELAY;
        }
    }
}

static void change(const scene *s, model *m, random_source *random)
{
    model_entity *e = &m->entities[random_below(random, MODEL_ENTITIES)];
    const wish wanted = {1 + random_below(random, 1000), 1 + random_below(random, 30)};
    if (!e->is_alive) {
        *e = (model_entity){
            .entity = ask(s, wanted.seed, wanted.length), .is_alive = true, .has_wish = true};
        e->wanted = wanted;
        return;
    }
    switch (random_below(random, 4)) {
    case 0:
        must(quern_entity_destroy(s->world, e->entity));
        e->is_alive = false;
        return;
    case 1:
        if (e->has_wish) must(quern_entity_remove(s->world, e->entity, s->wish));
        e->has_wish = false;
        return;
    default:
        set_wish(s, e->entity, wanted.seed, wanted.length);
        e->has_wish = true;
        e->wanted = wanted;
    }
}

static void compare(const scene *s, const model *m)
{
    for (uint32_t i = 0; i < MODEL_ENTITIES; i++) {
        const model_entity *e = &m->entities[i];
        if (!e->is_alive) continue;
        cr_assert_eq(quern_entity_has(s->world, e->entity, s->wish), e->has_wish);
        cr_assert_eq(quern_entity_has(s->world, e->entity, quern_background_due(s->background)),
                     e->has_due);
        cr_assert_eq(quern_entity_has(s->world, e->entity, s->trail), e->has_trail);
        if (e->has_trail) {
            const trail *made = quern_entity_get(s->world, e->entity, s->trail);
            uint32_t number = e->walked.seed;
            for (uint32_t n = 0; n < e->walked.length; n++)
                number = next_number(number);
            cr_assert_eq(made->last, number);
            cr_assert_eq(made->numbers.list.count, e->walked.length);
        }
        if (e->has_due) {
            const uint32_t *left =
                quern_entity_get(s->world, e->entity, quern_background_due(s->background));
            cr_assert_eq(*left, e->frames_left);
        }
    }
}

/* Frames of random changes, with histories that go back at random. */
static void run_program(uint64_t seed, uint32_t threads, uint64_t *hashes)
{
    random_source random = {seed};
    const uint32_t budget_us = random_chance(&random, 50) ? 0 : 1 + random_below(&random, 50);
    scene s = open_scene(&(quern_background_def){.frames = DELAY, .budget_us = budget_us, .keep_frames = 4},
                         threads, NULL);
    quern_history *history;
    must(quern_history_create(s.world, &(quern_history_def){.schedules = {s.schedule}, .frame_count = 8},
                              &history));
    static model models[MODEL_FRAMES];
    model m = {0};
    for (uint32_t i = 0; i < MODEL_FRAMES; i++) {
        must(quern_history_save(history, i, s.jobs));
        models[i] = m;
        if (i >= 7 && random_chance(&random, 10)) {
            const uint32_t back = i - random_below(&random, 7);
            must(quern_history_restore(history, back, s.jobs));
            m = models[back];
            for (uint32_t k = back; k <= i; k++) {
                must(quern_history_save(history, k, s.jobs));
                models[k] = m;
            }
        }
        const uint32_t changes = random_below(&random, 6);
        for (uint32_t k = 0; k < changes; k++)
            change(&s, &m, &random);
        frame(&s);
        model_frame(&m);
        compare(&s, &m);
        hashes[i] = quern_world_hash(s.world);
    }
    quern_history_destroy(history);
    close_scene(&s);
}

Test(background, random_programs_agree_with_the_model_at_every_thread_count)
{
    static const uint32_t thread_counts[] = {1, 2, 3, 8};
    const uint64_t seeds = effort(30, 8, 5);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        uint64_t expected[MODEL_FRAMES], actual[MODEL_FRAMES];
        run_program(seed, 0, expected);
        for (uint32_t i = 0; i < sizeof thread_counts / sizeof *thread_counts; i++) {
            run_program(seed, thread_counts[i], actual);
            for (uint32_t f = 0; f < MODEL_FRAMES; f++)
                cr_assert_eq(actual[f], expected[f], "seed %llu, %u threads, frame %u",
                             (unsigned long long)seed, (unsigned)thread_counts[i], (unsigned)f);
        }
    }
}

/* --------------------------------------------------------------------------------------------- memory */

Test(background, without_memory_results_are_late_and_not_lost)
{
    for (uint64_t fail_after = 1; fail_after <= 3; fail_after++) {
        failing_allocator *memory = failing_allocator_create();
        scene s = open_scene(
            &(quern_background_def){.frames = 2, .allocator = failing_allocator_interface(memory)}, 0,
            NULL);
        const quern_entity entity = ask(&s, 7, 20);
        failing_allocator_fail_at(memory, 1);
        frame(&s);
        cr_assert_eq(stats(&s).last_result, QUERN_ERROR_OUT_OF_MEMORY);
        frame(&s);
        if (fail_after > 1) {
            must(quern_entity_set(s.world, entity, s.wish, &(wish){8, 20}));
            failing_allocator_fail_at(memory, 1);
            frame(&s);
            cr_assert_eq(stats(&s).last_result, QUERN_ERROR_OUT_OF_MEMORY);
            cr_assert_not(quern_entity_has(s.world, entity, s.trail));
        }
        frame(&s);
        cr_assert_eq(stats(&s).last_result, QUERN_OK);
        assert_walked(&s, entity, fail_after > 1 ? 8 : 7, 20);
        close_scene(&s);
        failing_allocator_close(memory);
    }
}

Test(background, creating_without_memory_is_refused)
{
    scene s = open_scene(&(quern_background_def){.frames = 1}, 0, NULL);
    for (uint64_t call = 1; call <= 2; call++) {
        failing_allocator *memory = failing_allocator_create();
        failing_allocator_fail_at(memory, call);
        quern_background_def def = {.name = "other", .request = s.wish, .result = s.trail, .step = walk};
        def.allocator = failing_allocator_interface(memory);
        quern_background *background;
        must_refuse(OUT_OF_MEMORY, s.world, quern_background_create(s.world, &def, &background));
        failing_allocator_close(memory);
    }
    close_scene(&s);
}

/* ------------------------------------------------------------------------------------------ refused calls */

static void copy_nothing(void *targets, const void *sources, uint32_t count, void *user_data)
{
    (void)targets, (void)sources, (void)count, (void)user_data;
}

static void destroy_nothing(void *values, uint32_t count, void *user_data)
{
    (void)values, (void)count, (void)user_data;
}

Test(background, wrong_definitions_are_refused)
{
    scene s = open_scene(&(quern_background_def){.frames = 1}, 0, NULL);
    quern_component tag = setup_tag(s.world, "tag"), copied, unique;
    copied = make_component(s.world, .name = "copied", .size_bytes = 4, .hooks = {.copy = copy_nothing});
    unique =
        make_component(s.world, .name = "unique", .size_bytes = 4, .hooks = {.destroy = destroy_nothing});
    quern_background *background;
    const quern_background_def good = {
        .name = "other", .request = s.wish, .result = s.trail, .step = walk, .frames = 1};
    static const char long_name[] = "a name that has more than thirty-two bytes";
    const struct {
        quern_result expected;
        quern_background_def def;
    } wrong[] = {
        {QUERN_ERROR_NULL_ARGUMENT, {.request = s.wish, .result = s.trail, .step = walk}},
        {QUERN_ERROR_NULL_ARGUMENT, {.name = "other", .request = s.wish, .result = s.trail}},
        {QUERN_ERROR_INVALID_ARGUMENT, {.name = "", .request = s.wish, .result = s.trail, .step = walk}},
        {QUERN_ERROR_INVALID_ARGUMENT,
         {.name = long_name, .request = s.wish, .result = s.trail, .step = walk}},
        {QUERN_ERROR_INVALID_ARGUMENT,
         {.name = "other", .request = s.wish, .result = s.trail, .step = walk, .frames = 65537}},
        {QUERN_ERROR_INVALID_ARGUMENT,
         {.name = "other", .request = s.wish, .result = s.trail, .step = walk, .state_bytes = 1048577}},
        {QUERN_ERROR_INVALID_ARGUMENT,
         {.name = "other", .request = s.wish, .result = s.wish, .step = walk}},
        {QUERN_ERROR_INVALID_ARGUMENT, {.name = "other", .request = tag, .result = s.trail, .step = walk}},
        {QUERN_ERROR_INVALID_ARGUMENT, {.name = "other", .request = s.wish, .result = tag, .step = walk}},
        {QUERN_ERROR_INVALID_ARGUMENT,
         {.name = "other", .request = copied, .result = s.trail, .step = walk}},
        {QUERN_ERROR_INVALID_ARGUMENT,
         {.name = "other", .request = s.wish, .result = unique, .step = walk}},
        {QUERN_ERROR_UNKNOWN_COMPONENT, {.name = "other", .result = s.trail, .step = walk}},
        {QUERN_ERROR_DUPLICATE_NAME, {.name = "taken", .request = s.wish, .result = s.trail, .step = walk}},
    };
    make_resource(s.world, .name = "taken", .size_bytes = 4);
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refused(s.world, wrong[i].expected,
                       quern_background_create(s.world, &wrong[i].def, &background));
    must_refuse(NULL_ARGUMENT, s.world, quern_background_create(NULL, &good, &background));
    must_refuse(NULL_ARGUMENT, s.world, quern_background_create(s.world, NULL, &background));
    must_refuse(NULL_ARGUMENT, s.world, quern_background_create(s.world, &good, NULL));
    must_refuse(NULL_ARGUMENT, s.world, quern_background_add_systems(NULL, s.schedule, 0));
    must_refuse(NULL_ARGUMENT, s.world, quern_background_add_systems(s.background, NULL, 0));
    must_refuse(DUPLICATE_NAME, s.world, quern_background_add_systems(s.background, s.schedule, 0));
    must_refuse(NULL_ARGUMENT, s.world, quern_background_get_stats(NULL, &(quern_background_stats){0}));
    must_refuse(NULL_ARGUMENT, s.world, quern_background_get_stats(s.background, NULL));
    must_refuse(NULL_ARGUMENT, s.world, quern_background_poll(NULL));
    must_refuse(INVALID_ARGUMENT, s.world, quern_background_poll(s.background));
    close_scene(&s);
}
