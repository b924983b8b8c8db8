/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* In place of events, if QUERN_WITHOUT names them: no world has any, and no system emits or reads one. */

#include "sched/frame/schedule_internal.h"

#include "core/base/base_internal.h"

/* --------------------------------------------------------------------------------------- core/events */

static quern_result fail(const char *what)
{
    return quern__fail(
        QUERN_ERROR_UNAVAILABLE,
        "%s: this library was built with QUERN_WITHOUT=events; link a library with that room", what);
}

quern_result quern__events_check(const quern_world *world, quern_event event, quern__channel **out_channel)
{
    (void)world, (void)event, (void)out_channel;
    return fail("there are no events");
}

uint64_t quern__channel_count(const quern__channel *channel, uint64_t number, uint64_t end)
{
    (void)channel, (void)number, (void)end;
    return 0;
}

void quern__events_release(quern_world *world)
{
    (void)world;
}

void quern__events_drop_hooked(quern_world *world)
{
    (void)world;
}

void quern__events_name_reader(const quern_world *world, char *text, size_t bytes)
{
    (void)world, (void)text, (void)bytes;
}

uint64_t quern__events_held_bytes(const quern_world *world)
{
    (void)world;
    return 0;
}

void quern__events_trim(quern_world *world)
{
    (void)world;
}

/* ------------------------------------------------------------------------------------------ systems */

quern_result quern__event_use_init(quern__event_use *use, const quern_world *world,
                                   const quern_system_def *def, uint32_t term_count)
{
    (void)use, (void)world, (void)term_count;
    if (def->emits[0].bits == 0 && def->reads_events[0].bits == 0 && def->items.bits == 0) return QUERN_OK;
    return fail("the system declares events");
}

void quern__event_use_release(quern__event_use *use, const quern_allocator *allocator)
{
    (void)use, (void)allocator;
}

/* ------------------------------------------------------------------------------------------- frames */

quern_result quern__emitters_extend(quern_schedule *schedule)
{
    (void)schedule;
    return QUERN_OK;
}

void quern__emitters_release(quern_schedule *schedule)
{
    (void)schedule;
}

void quern__context_close_emitters(struct quern_context *context)
{
    (void)context;
}

void quern__events_start_segment(const quern_schedule *schedule, const quern__segment *segment)
{
    (void)schedule, (void)segment;
}

void quern__events_finish_segment(const quern_schedule *schedule, const quern__segment *segment,
                                  bool has_run)
{
    (void)schedule, (void)segment, (void)has_run;
}

quern_result quern__events_begin_sync(quern_schedule *schedule)
{
    (void)schedule;
    return QUERN_OK;
}

void quern__events_end_sync(quern_schedule *schedule)
{
    (void)schedule;
}

void quern__events_resolve_handles(void *argument, const quern__gathered *gathered,
                                   const quern_entity *created)
{
    (void)argument, (void)gathered, (void)created;
}

void quern__events_clear_handles(const quern_schedule *schedule)
{
    (void)schedule;
}

void quern__events_collect_failures(quern_schedule *schedule)
{
    (void)schedule;
}

quern_result quern__events_fail_frame(const quern_schedule *schedule)
{
    (void)schedule;
    return QUERN_OK;
}
