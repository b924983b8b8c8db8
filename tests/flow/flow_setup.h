/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_SETUP_H
#define QUERN_TESTS_FLOW_SETUP_H

/* Setup of schedules, systems and pools in one call each. The test fails if anything cannot be created. */

#include "tests/support/setup.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Creates a pool with this number of threads. Returns NULL for 0: frames then run on the caller alone. */
quern_jobs *setup_jobs(uint32_t thread_count);

/* The thread counts at which results must be equal; 0 stands for no pool. */
enum { POOL_COUNT = 5 };
extern const uint32_t pool_threads[POOL_COUNT];

quern_schedule *setup_schedule(quern_world *world);
quern_schedule *setup_phases(quern_world *world, uint32_t phase_count); /* phases "p0", "p1", ... */

/* Creates a schedule with this definition, but with phase_count phases. */
quern_schedule *setup_schedule_as(quern_world *world, quern_schedule_def def, uint32_t phase_count);

/* The schedule styles in which results must be equal. They differ in fusing of passes and in shuffling
 * of the order that rules leave open. */
enum { STYLE_COUNT = 6 };
quern_schedule_def schedule_style(uint32_t i);

/* Settings cover each thread count and each style once. `turn` selects which of them are combined;
 * testing all combinations would take long and find no more. */
typedef struct frame_setting {
    uint32_t style, thread_count;
} frame_setting;

enum { SETTING_COUNT = POOL_COUNT + STYLE_COUNT - 1 };
frame_setting frame_setting_at(uint32_t i, uint32_t turn);

/* system_def returns a definition to be extended; setup_system registers the system. */
quern_system_def system_def(const char *name, quern_view_callback *run);
quern_system setup_system(quern_schedule *schedule, const quern_system_def *def);

/* Registers a system with this name, this run callback, and further members of its definition:
 *     make_system(schedule, "move", move, .terms = {quern_term_write(position)}, .phase = 1); */
#define make_system(in_schedule, with_name, callback, ...) \
    setup_system(in_schedule, &(quern_system_def){.name = (with_name), .run = (callback), __VA_ARGS__})

/* Registers a system that only reads (or writes) one component. */
quern_system setup_reader(quern_schedule *schedule, const char *name, quern_component component);
quern_system setup_writer(quern_schedule *schedule, const char *name, quern_component component);

/* Callbacks that do nothing. */
void idle_run(quern_context *context, const quern_view *view);
void idle_callback(quern_context *context);

/* Registers a resource of one uint64_t that is part of the world's hash. */
quern_resource setup_counter(quern_world *world, const char *name);
uint64_t counter_value(quern_world *world, quern_resource resource);

/* A component of three handles, a relation to one or more entities, and a number. All fields are
 * described. */
typedef struct link3 {
    quern_entity targets[3];
    uint64_t number;
} link3;

quern_component setup_links(quern_world *world, const char *name);

/* Run a frame that must succeed, or one that must fail with a message. */
void must_run(quern_schedule *schedule, quern_jobs *jobs);
void must_not_run(quern_schedule *schedule, quern_jobs *jobs, quern_result expected);

/* Runs one frame without a pool, in which a single system calls `callback` as its begin callback.
 * Returns the frame's statistics. */
quern_frame_stats run_once(quern_world *world, quern_system_callback *callback);

/* Returns the text that quern_schedule_describe writes. Valid until the next call. */
const char *described(quern_schedule *schedule);

void assert_message_has(const char *text);

#endif
