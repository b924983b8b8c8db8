/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* In place of sched/observe, if QUERN_WITHOUT names it: the observer of a schedule that observes nothing. */

#include "sched/frame/schedule_internal.h"

static quern_result prepare(quern__frame_observer *observer, uint32_t worker_count)
{
    (void)observer, (void)worker_count;
    return QUERN_OK;
}

static quern_result prepare_pass(quern__frame_observer *observer, quern__pass *pass)
{
    (void)observer, (void)pass;
    return QUERN_OK;
}

static void begin_frame(quern__frame_observer *observer, const quern__observed_frame *frame)
{
    (void)observer, (void)frame;
}

static uint64_t system_time_ns(const quern__frame_observer *observer, const quern__system *system)
{
    (void)observer, (void)system;
    return 0;
}

static void forget_system(quern__frame_observer *observer, const quern__system *system)
{
    (void)observer, (void)system;
}

static void destroy(quern__frame_observer *observer)
{
    (void)observer;
}

/* The functions that frames call if they are not observed. */
static const quern__frame_observer_calls calls = {.prepare = prepare,
                                                  .prepare_pass = prepare_pass,
                                                  .begin_frame = begin_frame,
                                                  .system_time_ns = system_time_ns,
                                                  .forget_system = forget_system,
                                                  .destroy = destroy};

static quern_result create_observer(quern__plan *plan, const quern_schedule_def *def,
                                    quern__frame_observer **out_observer)
{
    static quern__frame_observer observer = {.calls = &calls};
    (void)plan;
    if (def->trace != NULL || def->timing)
        return quern__fail(
            QUERN_ERROR_UNAVAILABLE,
            "quern_schedule_create: this library was built with QUERN_WITHOUT=observe; leave "
            "trace and timing zero, or link a library with that room");
    *out_observer = &observer;
    return QUERN_OK;
}

quern_result quern_schedule_create(quern_world *world, const quern_schedule_def *def,
                                   quern_schedule **out_schedule)
{
    return quern__schedule_create(world, def, create_observer, out_schedule);
}
