/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_SETUP_H
#define QUERN_TESTS_FLOW_SETUP_H

/* Schedules, systems and pools in one line each. What is created here fails the test when it fails. */

#include "tests/support/setup.h"

#include <quern/schedule.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* A pool of so many threads; NULL for 0: frames run on the caller alone. */
quern_jobs *setup_jobs(uint32_t thread_count);

/* The thread counts that a result must not depend on; 0 stands for no pool. */
enum { POOL_COUNT = 5 };
extern const uint32_t pool_threads[POOL_COUNT];

quern_schedule *setup_schedule(quern_world *world);
quern_schedule *setup_phases(quern_world *world, uint32_t phase_count); /* "p0", "p1", ... */

/* As the definition says, but for the phases. */
quern_schedule *setup_schedule_as(quern_world *world, quern_schedule_def def, uint32_t phase_count);

/* What else a result must not depend on: whether passes are fused, and the order of what is open. */
enum { STYLE_COUNT = 6 };
quern_schedule_def schedule_style(uint32_t i);

/* Both: each number of threads, and each style. Which of these meet is another from turn to turn, since all of
 * them, for each test, would take long and find no more. */
typedef struct frame_setting {
    uint32_t style, thread_count;
} frame_setting;

enum { SETTING_COUNT = POOL_COUNT + STYLE_COUNT - 1 };
frame_setting frame_setting_at(uint32_t i, uint32_t turn);

/* Definitions to be changed further, and the systems made of them. */
quern_system_def system_def(const char *name, quern_view_callback *run);
quern_system setup_system(quern_schedule *schedule, const quern_system_def *def);

/* A system that only reads or writes one component. */
quern_system setup_reader(quern_schedule *schedule, const char *name, quern_component component);
quern_system setup_writer(quern_schedule *schedule, const char *name, quern_component component);

/* Does nothing. */
void idle_run(quern_context *context, const quern_view *view);
void idle_callback(quern_context *context);

/* One uint64_t that is part of the world's hash. */
quern_resource setup_counter(quern_world *world, const char *name);
uint64_t counter_value(quern_world *world, quern_resource resource);

/* A component of one handle, or an array of them, and a number behind it, all described. */
typedef struct link3 {
    quern_entity targets[3];
    uint64_t number;
} link3;

quern_component setup_links(quern_world *world, const char *name);

/* Frames that must succeed, and one that must fail with a message. */
void must_run(quern_schedule *schedule, quern_jobs *jobs);
void must_not_run(quern_schedule *schedule, quern_jobs *jobs, quern_result expected);

/* One frame, without a pool, of a system made of one begin callback. What it did. */
quern_frame_stats run_once(quern_world *world, quern_system_callback *callback);

/* What quern_schedule_describe prints. Valid until the next call. */
const char *described(quern_schedule *schedule);

void assert_message_has(const char *text);

#endif
