/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_SCHED_FRAME_REACTIONS_SCENE_H
#define QUERN_TESTS_SCHED_FRAME_REACTIONS_SCENE_H

/* A world, a schedule, and reactions that record what they are shown, for tests of reactions in frames. */

#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <stdatomic.h>

enum { MOST = 8192 };

static quern_schedule *schedule;
static quern_component health, damage, dead;
static captured_reports reports;

static inline void open_as(quern_schedule_def def, uint32_t phase_count)
{
    world = setup_world();
    health = setup_component(world, "health", 8, 8);
    damage = setup_component(world, "damage", 8, 8);
    dead = setup_tag(world, "dead");
    schedule = setup_schedule_as(world, def, phase_count);
    capture_reports(&reports);
}

static inline void open_world(void)
{
    open_as((quern_schedule_def){.timing = false}, 2);
}

static inline quern_entity with_health(uint64_t value)
{
    quern_entity entity;
    must(quern_entity_create_with(world, &health, (const void *const[]){&value}, 1, &entity));
    return entity;
}

/* The rows that a reaction was shown. */
typedef struct shown {
    uint32_t kind;
    quern_entity entity;
    uint64_t value;
    const char *name;
} shown;

static shown list[MOST];
static uint32_t list_count;

static inline const char *name_of(quern_context *context)
{
    const char *name = quern_context_user_data(context);
    return name;
}

/* Records the view of a serial reaction. Its first term is the health. */
static inline void note(quern_context *context, const quern_view *view)
{
    const uint64_t *values = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        cr_assert_lt(list_count, (uint32_t)MOST);
        list[list_count++] = (shown){.kind = quern_context_reaction(context),
                                     .entity = view->entities[i],
                                     .value = values != NULL ? values[i] : 0,
                                     .name = name_of(context)};
    }
}

static inline quern_system_def note_def(const char *name, uint32_t reacts_to)
{
    return (quern_system_def){.name = name,
                              .run = note,
                              .terms = {quern_term_read(health)},
                              .reacts_to = reacts_to,
                              .flags = QUERN_SYSTEM_SERIAL,
                              .user_data = (void *)(uintptr_t)name};
}

static inline quern_system add_note(const char *name, uint32_t reacts_to)
{
    list_count = 0;
    const quern_system_def def = note_def(name, reacts_to);
    return setup_system(schedule, &def);
}

static inline void assert_shown(uint32_t i, uint32_t kind, quern_entity entity, uint64_t value)
{
    cr_assert_lt(i, list_count, "only %u rows were shown", list_count);
    cr_assert_eq(list[i].kind, kind, "row %u: kind %u", i, list[i].kind);
    cr_assert(quern_entity_equal(list[i].entity, entity));
    cr_assert_eq(list[i].value, value, "row %u: %llu", i, (unsigned long long)list[i].value);
}

static inline void frame(void)
{
    list_count = 0;
    must_run(schedule, NULL);
}

static inline void create_with_health(quern_context *context)
{
    const uint64_t value = 7;
    (void)record_entity_with(quern_context_commands(context), &health, (const void *const[]){&value}, 1);
}

static inline void heal_all(quern_context *context, const quern_view *view)
{
    uint64_t *values = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        values[i] += 100;
}

static _Atomic uint64_t parallel_sum;
static _Atomic uint32_t parallel_views;

static inline void add_up(quern_context *context, const quern_view *view)
{
    const uint64_t *values = quern_view_read(view, 0);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < view->count; i++)
        sum += values[i];
    *(uint64_t *)quern_context_partial(context) += sum;
    atomic_fetch_add(&parallel_sum, sum);
    atomic_fetch_add(&parallel_views, 1);
}

static inline void create_values(uint32_t count)
{
    static uint64_t values[20000];
    cr_assert_leq(count, 20000u);
    for (uint32_t i = 0; i < count; i++)
        values[i] = i;
    must(quern_entity_create_many(world, &health, (const void *const[]){values}, 1, count, NULL));
}

#endif
