/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_FUSED_SCENE_H
#define QUERN_TESTS_FLOW_FUSED_SCENE_H

/* Entities, and systems that a schedule may fuse into passes, for tests of passes. */

#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <stdatomic.h>

enum { CROWD = 3000, FRAMES = 3 };

static quern_component number, copy, wide, tag;
static quern_resource score;
static quern_schedule *schedule;
static quern_jobs *jobs;
static quern_entity crowd[CROWD];
static quern_entity one; /* the entity of the crowd that is looked up for all others */
static _Atomic uint32_t wrong_count;

/* Creates entities in three archetypes. The first archetype has three of them, the others fill many
 * chunks. */
static inline void open_crowd(uint32_t count)
{
    world = setup_world();
    number = setup_component(world, "number", 8, 8);
    copy = setup_component(world, "copy", 8, 8);
    wide = setup_component(world, "wide", 512, 64);
    tag = setup_tag(world, "tag");
    score = setup_counter(world, "score");
    quern_component sets[3][3] = {{number, copy, tag}, {number, copy}, {number, copy, wide}};
    for (uint64_t i = 0; i < count; i++) {
        const void *values[] = {&i, &i, NULL};
        uint32_t set = i < 3 ? 0 : 1 + i % 2;
        must(quern_entity_create_with(world, sets[set], values, set == 1 ? 2 : 3, &crowd[i]));
    }
    one = crowd[count / 2];
    wrong_count = 0;
}

static inline void expect(bool is_right)
{
    if (!is_right) wrong_count++;
}

static inline void run_frames(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        must_run(schedule, jobs);
    assert_valid(world);
}

/* A test: a function that adds systems to the schedule, and one that checks the world after the frames. */
typedef struct scene {
    void (*make)(void);
    void (*check)(void); /* NULL: wrong_count is the only check */
    uint32_t crowd_count;
} scene;

static inline void play_as(const scene *it, frame_setting setting)
{
    jobs = setup_jobs(setting.thread_count);
    open_crowd(it->crowd_count);
    schedule = setup_schedule_as(world, schedule_style(setting.style), 2);
    it->make();
    run_frames(FRAMES);
    cr_assert_eq(wrong_count, 0u, "%u times, in style %u with %u threads", wrong_count, setting.style,
                 setting.thread_count);
    if (it->check != NULL) it->check();
    close_world();
    quern_jobs_destroy(jobs);
}

static inline void play(scene it)
{
    static uint32_t turn;
    for (uint32_t i = 0; i < SETTING_COUNT; i++)
        play_as(&it, frame_setting_at(i, turn));
    turn++;
}

static inline quern_system add(const char *name, quern_view_callback *run, const quern_term *terms,
                               uint32_t count)
{
    quern_system_def def = system_def(name, run);
    for (uint32_t i = 0; i < count; i++)
        def.terms[i] = terms[i];
    return setup_system(schedule, &def);
}

static inline void increment(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i]++;
}

/* Reads what `increment`, the system before it, wrote. */
static inline void triple_into_copy(quern_context *context, const quern_view *view)
{
    const uint64_t *numbers = quern_view_read(view, 0);
    uint64_t *copies = quern_view_write(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        copies[i] = 3 * numbers[i] + copies[i] % 2;
}

static inline void set_to_frame(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i] = 1000 + quern_context_frame_index(context);
}

static inline void add_rows(quern_context *context, const quern_view *view)
{
    _Atomic uint64_t *value = quern_context_resource_write(context, score);
    atomic_fetch_add_explicit(value, view->count, memory_order_relaxed);
}

static inline void add_user(const char *name, quern_view_callback *run, quern_access access)
{
    make_system(schedule, name, run, .terms = {quern_term_read(number)}, .resources = {{score, access}});
}

enum { MAX_VIEWS = 1024, WATCHERS = 4 };

#endif
