/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_SCHED_FRAME_EVENT_SCENE_H
#define QUERN_TESTS_SCHED_FRAME_EVENT_SCENE_H

/* A world with a schedule and two readers of one event, for tests of events in frames. */

#include "tests/flow/flow_setup.h"
#include "tests/support/tracked.h"

#include <stdlib.h>
#include <string.h>

typedef struct Hit {
    quern_entity target;
    uint64_t number;
} Hit;

enum { MOST_SEEN = 200000 };

/* All events that a reader has read. Only for systems that do not run at the same time. */
typedef struct seen {
    uint32_t count, run_count;
    Hit hits[MOST_SEEN];
} seen;

static quern_world *world;
static quern_event hit, other;
static quern_component number;
static quern_schedule *schedule;
static seen *a_seen, *b_seen;

static inline void open_world(void)
{
    world = setup_world();
    must(QUERN_EVENT_REGISTER_FIELDS(world, &hit, Hit, target, number));
    must(quern_event_register(world, &(quern_event_def){.name = "other", .size_bytes = 8}, &other));
    number = setup_component(world, "number", 8, 8);
    a_seen = calloc(1, sizeof *a_seen);
    b_seen = calloc(1, sizeof *b_seen);
}

static inline void close_world(void)
{
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    quern_schedule_destroy(schedule);
    schedule = NULL;
    quern_world_destroy(world);
    free(a_seen);
    free(b_seen);
}

/* Creates entities with the numbers 0, 1, 2 ... */
static inline void add_rows(uint32_t count)
{
    for (uint64_t i = 0; i < count; i++)
        must(quern_entity_create_with(world, &number, (const void *const[]){&i}, 1, NULL));
}

/* Emits one event per entity, with the entity's number. */
static inline void emit_rows(quern_context *context, const quern_view *view)
{
    enum { SOME = 5 };
    const uint64_t *numbers = quern_view_read(view, 0);
    quern_emitter *emitter = quern_context_emitter(context, hit);
    for (uint32_t i = 0, count = 1; i < view->count; i += count, count = 1) {
        const Hit value = {.target = view->entities[i], .number = numbers[i]};
        if (numbers[i] % 3 == 0) {
            cr_assert(quern_emit(emitter, &value));
        } else if (numbers[i] % 3 == 1) {
            Hit *place = QUERN_EMIT(emitter, Hit);
            cr_assert_not_null(place);
            *place = value;
        } else {
            const uint32_t left = view->count - i, most = left < SOME ? left : SOME;
            Hit *places = QUERN_EMIT_SOME(emitter, most, &count, Hit);
            cr_assert_not_null(places);
            cr_assert(count > 0 && count <= most);
            for (uint32_t k = 0; k < count; k++)
                places[k] = (Hit){.target = view->entities[i + k], .number = numbers[i + k]};
        }
    }
}

static inline quern_system_def emitter_def(const char *name)
{
    quern_system_def def = system_def(name, emit_rows);
    def.terms[0] = quern_term_read(number);
    def.emits[0] = hit;
    return def;
}

static inline void see(seen *all, const Hit *hits, uint32_t count)
{
    cr_assert_leq(all->count + count, (uint32_t)MOST_SEEN);
    memcpy(all->hits + all->count, hits, count * sizeof *hits);
    all->count += count;
}

/* The callback of a system that reads events. */
static inline void read_all(quern_context *context, const quern_view *view)
{
    seen *all = quern_context_user_data(context);
    quern_event_iterator it;
    uint64_t count = quern_context_event_count(context, hit);
    cr_assert(quern_context_events(context, hit, &it));
    while (quern_event_next(&it)) {
        see(all, it.block.values, it.block.count);
        count -= it.block.count;
    }
    cr_assert_eq(count, 0u);
    cr_assert_not(quern_event_next(&it));
    all->run_count++;
}

static inline quern_system_def reader_def(const char *name, seen *all)
{
    quern_system_def def = system_def(name, read_all);
    def.reads_events[0] = hit;
    def.user_data = all;
    return def;
}

static inline void expect_numbers(const seen *all, uint32_t first, uint32_t count, uint64_t number_of_first)
{
    cr_assert_geq(all->count, first + count);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_eq(all->hits[first + i].number, number_of_first + i, "at %u", first + i);
}

static tracked_counts counts;

static inline void read_tracked(quern_context *context, const quern_view *view)
{
    const tracked *values = QUERN_EVENTS(view, tracked);
    for (uint32_t i = 0; i < view->count; i++)
        if (!tracked_is_live(&values[i])) counts.broken_count++;
}

#endif
