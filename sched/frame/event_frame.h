/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_EVENT_FRAME_H
#define QUERN_SCHED_FRAME_EVENT_FRAME_H

/* Events in frames: who emits and who reads while systems run, and what sync points do with it. */

#include "sched/frame/schedule_internal.h"

/* ------------------------------------------------------------------------------------ running systems */

/* Makes the emitters anew, for all workers; what they hold comes along. Errors: OUT_OF_MEMORY. */
quern_result quern__emitters_make(quern_schedule *schedule);

/* Emitters for all workers. Errors: OUT_OF_MEMORY. */
static inline quern_result quern__emitters_reserve(quern_schedule *schedule)
{
    const uint32_t channel_count = schedule->emitter_channel_count;
    const bool are_there = schedule->plan.emitted_channel_count == channel_count &&
                           (channel_count == 0 || schedule->worker_count == schedule->emitter_row_count);
    return QUERN__LIKELY(are_there) ? QUERN_OK : quern__emitters_make(schedule);
}

/* With the values that were not published. */
void quern__emitters_release(quern_schedule *schedule);

/* The callback has returned that has opened emitters. */
void quern__context_close_emitters(struct quern_context *context);

/* Before the systems of a segment run: their readers see what was published up to now. */
void quern__events_start_segment(const quern_schedule *schedule, const quern__segment *segment);

/* When they have run, or could not: those that ran have seen it. */
void quern__events_finish_segment(const quern_schedule *schedule, const quern__segment *segment,
                                  bool has_run);

/* -------------------------------------------------------------------------------------- sync points */

/* Whether a sync point has to do with events: some system emitted, or some wait to be seen. Relaxed: the
 * workers that emitted are waited for. */
static inline bool quern__schedule_has_events(const quern_schedule *schedule)
{
    return (atomic_load_explicit(&schedule->has_emitted, memory_order_relaxed) |
            (schedule->plan.world->waiting_event_batch_count > 0)) != 0;
}

/* Puts in order what was emitted, before commands are applied. Errors: OUT_OF_MEMORY, with everything
 * kept. */
quern_result quern__events_begin_sync(quern_schedule *schedule);

/* When commands have been applied: publishes. */
void quern__events_end_sync(quern_schedule *schedule);

/* For playback: provisional handles in what was emitted become those that the same callbacks created. The
 * argument is the schedule. */
void quern__events_make_real(void *argument, const quern__gathered *gathered, const quern_entity *created);

/* Destroys the events that callbacks emitted and no sync point has published yet, and forgets that an event
 * could not be emitted. No frame runs. Cannot fail. */
void quern__events_discard(quern_schedule *schedule);

/* The creates that they stand for are discarded: provisional handles in what is kept become null. */
void quern__events_forget_handles(const quern_schedule *schedule);

/* Notes, for the end of the frame, whether there was no memory to emit an event. */
void quern__events_note_failed(quern_schedule *schedule);

/* Says which event was lost, or could not be emitted. */
QUERN__SLOW_PATH quern_result quern__events_fail_frame(const quern_schedule *schedule);

/* The frame has run: fails where an event was lost, or could not be emitted. */
static inline quern_result quern__events_finish_frame(const quern_schedule *schedule)
{
    const bool is_whole = schedule->emit_result == QUERN_OK && schedule->event_loss.channel == NULL;
    return QUERN__LIKELY(is_whole) ? QUERN_OK : quern__events_fail_frame(schedule);
}

#endif
