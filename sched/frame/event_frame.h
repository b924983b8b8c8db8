/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_FRAME_EVENT_FRAME_H
#define QUERN_SCHED_FRAME_EVENT_FRAME_H

/* Events in frames: systems emit and read events while they run, and sync points publish them. */

#include "sched/frame/schedule_internal.h"

/* ------------------------------------------------------------------------------------ running systems */

/* Extends the table of emitters to all workers and all emitted channels. Existing emitters keep their
 * values. Errors: OUT_OF_MEMORY. */
quern_result quern__emitters_extend(quern_schedule *schedule);

/* Ensures that each worker has an emitter for each emitted channel. Errors: OUT_OF_MEMORY. */
static inline quern_result quern__emitters_reserve(quern_schedule *schedule)
{
    const uint32_t channel_count = schedule->emitter_channel_count;
    const bool has_all = schedule->plan.emitted_channel_count == channel_count &&
                         (channel_count == 0 || schedule->worker_count == schedule->emitter_row_count);
    return QUERN__LIKELY(has_all) ? QUERN_OK : quern__emitters_extend(schedule);
}

/* Frees the emitters, with the values that were not published. */
void quern__emitters_release(quern_schedule *schedule);

/* Closes the emitters that the callback opened. Called after the callback has returned. */
void quern__context_close_emitters(struct quern_context *context);

/* Lets the readers of the segment's systems read all events published until now. Called before the segment
 * runs. */
void quern__events_start_segment(const quern_schedule *schedule, const quern__segment *segment);

/* Marks events as read by those systems of the segment that ran. Called after the segment; has_run is false
 * if it could not run. */
void quern__events_finish_segment(const quern_schedule *schedule, const quern__segment *segment,
                                  bool has_run);

/* -------------------------------------------------------------------------------------- sync points */

/* Returns whether a sync point has to process events: a system emitted, or published events wait for
 * readers. The load is relaxed. It pairs with the store in note_emitted: waiting for the workers orders
 * that store before this load. */
static inline bool quern__schedule_has_events(const quern_schedule *schedule)
{
    return (atomic_load_explicit(&schedule->has_emitted, memory_order_relaxed) |
            (schedule->plan.world->waiting_event_batch_count > 0)) != 0;
}

/* Gathers the emitted events in a deterministic order. Called before commands are applied. Errors:
 * OUT_OF_MEMORY; all events are retained. */
quern_result quern__events_begin_sync(quern_schedule *schedule);

/* Publishes the gathered events. Called after commands were applied. */
void quern__events_end_sync(quern_schedule *schedule);

/* Replaces the provisional handles in emitted events by the entities that the same callbacks created.
 * Called by playback; `argument` is the schedule. */
void quern__events_resolve_handles(void *argument, const quern__gathered *gathered,
                                   const quern_entity *created);

/* Destroys the events that callbacks emitted and no sync point has published, and clears failures to emit.
 * Must not be called while a frame runs. Cannot fail. */
void quern__events_discard(quern_schedule *schedule);

/* Sets provisional handles in unpublished events to null. Called after the commands that create their
 * entities were discarded. */
void quern__events_clear_handles(const quern_schedule *schedule);

/* Moves failures to emit (out of memory) from the emitters to the schedule, which reports them at the end
 * of the frame. */
void quern__events_collect_failures(quern_schedule *schedule);

/* Fails because events could not be emitted for lack of memory, or were lost. The message names the event in the
 * second case. */
QUERN__SLOW_PATH quern_result quern__events_fail_frame(const quern_schedule *schedule);

/* Fails if an event was lost or could not be emitted in the frame. Called after the frame has run. */
static inline quern_result quern__events_finish_frame(const quern_schedule *schedule)
{
    const bool is_whole = schedule->emit_result == QUERN_OK && schedule->event_loss.channel == NULL;
    return QUERN__LIKELY(is_whole) ? QUERN_OK : quern__events_fail_frame(schedule);
}

#endif
