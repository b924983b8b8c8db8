/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/observe/capture.h"

#include <stdio.h>

_Static_assert(offsetof(struct quern_frame_capture, loop_observer) == 0,
               "an observer of loops is a capture");

static void add_inner_loop(quern__loop_observer *watch, uint32_t piece_count, uint64_t took_ns)
{
    quern_frame_capture *capture = (quern_frame_capture *)(void *)watch;
    if (capture->is_out_of_memory ||
        !quern__array_reserve(&capture->allocator, &capture->loops, capture->loops.count + 1)) {
        capture->is_out_of_memory = true;
        return;
    }
    uint32_t *first = &capture->tasks.items[capture->looping_task].first_loop[capture->looping_part];
    capture->loops.items[capture->loops.count] =
        (quern__inner_loop){.took_ns = took_ns, .piece_count = piece_count, .next = *first};
    *first = capture->loops.count++;
}

quern_result quern_frame_capture_create(const quern_allocator *allocator, quern_frame_capture **out_capture)
{
    if (out_capture == NULL) return quern__fail_null("quern_frame_capture_create", "out_capture");
    quern_allocator chosen;
    const quern_result result = quern__choose_allocator(allocator, "quern_frame_capture_create", &chosen);
    if (result != QUERN_OK) return result;
    quern_frame_capture *capture = quern__allocate(&chosen, sizeof *capture, _Alignof(quern_frame_capture));
    if (capture == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "quern_frame_capture_create: out of memory for the capture");
    *capture = (quern_frame_capture){.loop_observer.report = add_inner_loop, .allocator = chosen};
    *out_capture = capture;
    return QUERN_OK;
}

void quern_frame_capture_destroy(quern_frame_capture *capture)
{
    if (capture == NULL) return;
    if (capture->is_in_use) {
        quern__report_violation(
            QUERN_ERROR_WORLD_LOCKED,
            "quern_frame_capture_destroy: a frame that uses the capture is running; destroy "
            "the capture after the frame");
        return;
    }
    const quern_allocator allocator = capture->allocator;
    quern__array_release(&allocator, &capture->segments);
    quern__array_release(&allocator, &capture->tasks);
    quern__array_release(&allocator, &capture->items_ns);
    quern__array_release(&allocator, &capture->waits);
    quern__array_release(&allocator, &capture->loops);
    quern__release(&allocator, capture, sizeof *capture, _Alignof(quern_frame_capture));
}

void quern__capture_start(quern_frame_capture *capture, uint32_t thread_count)
{
    capture->segments.count = capture->tasks.count = 0;
    capture->items_ns.count = capture->waits.count = capture->loops.count = 0;
    capture->thread_count = thread_count;
    capture->frame_ns = capture->serial_ns = capture->segments_ns = 0;
    capture->is_out_of_memory = false;
}

void quern__capture_start_segment(quern_frame_capture *capture, bool is_sync, uint64_t now_ns)
{
    capture->segment_start_ns = capture->mark_ns = now_ns;
    if (!quern__array_reserve(&capture->allocator, &capture->segments, capture->segments.count + 1)) {
        capture->is_out_of_memory = true;
        return;
    }
    capture->segments.items[capture->segments.count++] = (quern__captured_segment){
        .first_task = capture->tasks.count, .end_task = capture->tasks.count, .is_sync = is_sync};
}

void quern__capture_finish_segment(quern_frame_capture *capture, uint64_t now_ns)
{
    capture->segments_ns += now_ns - capture->segment_start_ns;
}

static bool reserve_task(quern_frame_capture *capture, uint32_t item_count)
{
    return !capture->is_out_of_memory &&
           quern__array_reserve(&capture->allocator, &capture->tasks, capture->tasks.count + 1) &&
           quern__array_reserve(&capture->allocator, &capture->items_ns,
                                capture->items_ns.count + item_count);
}

uint32_t quern__capture_add_task(quern_frame_capture *capture, const char *name, uint32_t item_count)
{
    if (!reserve_task(capture, item_count)) {
        capture->is_out_of_memory = true;
        return UINT32_MAX;
    }
    quern__task *task = &capture->tasks.items[capture->tasks.count];
    *task = (quern__task){.first_item = capture->items_ns.count,
                          .item_count = item_count,
                          .first_wait = capture->waits.count,
                          .first_loop = {QUERN__NO_LOOP, QUERN__NO_LOOP, QUERN__NO_LOOP}};
    snprintf(task->name, sizeof task->name, "%s", name);
    for (uint32_t i = 0; i < item_count; i++)
        capture->items_ns.items[capture->items_ns.count++] = 0;
    capture->segments.items[capture->segments.count - 1].end_task++;
    return capture->tasks.count++;
}

void quern__capture_add_wait(quern_frame_capture *capture, uint32_t before)
{
    if (capture->is_out_of_memory ||
        !quern__array_reserve(&capture->allocator, &capture->waits, capture->waits.count + 1)) {
        capture->is_out_of_memory = true;
        return;
    }
    capture->waits.items[capture->waits.count++] = before;
    capture->tasks.items[capture->tasks.count - 1].wait_count++;
}

void quern__capture_set_loop_owner(quern_frame_capture *capture, uint32_t task, quern__task_part part)
{
    capture->looping_task = task;
    capture->looping_part = part;
}

/* Adds a task to a sync point. It waits for the previous one. */
static quern__task *add_link(quern_frame_capture *capture, uint32_t item_count)
{
    const uint32_t number = quern__capture_add_task(capture, "sync point", item_count);
    if (number == UINT32_MAX) return NULL;
    const uint32_t first = capture->segments.items[capture->segments.count - 1].first_task;
    capture->tasks.items[number].is_sync = true;
    if (number > first) quern__capture_add_wait(capture, number - 1);
    return &capture->tasks.items[number];
}

void quern__capture_add_gap(quern_frame_capture *capture, uint64_t now_ns)
{
    quern__task *gap = add_link(capture, 1);
    if (gap == NULL) return;
    gap->caller_only = true;
    capture->items_ns.items[gap->first_item] = now_ns - capture->mark_ns;
}

/* Relaxed: parts are added by a loop that begins later, and the pool publishes this write to it. */
void quern__capture_start_loop(quern_frame_capture *capture, uint32_t part_count)
{
    atomic_store_explicit(&capture->part_count, 0, memory_order_relaxed);
    (void)add_link(capture, part_count);
}

/* Relaxed: each part has an element of its own, and the end of the loop orders these elements. */
void quern__capture_add_part(quern_frame_capture *capture, uint64_t took_ns)
{
    if (capture->is_out_of_memory) return;
    const quern__task *loop = &capture->tasks.items[capture->tasks.count - 1];
    const uint32_t part = atomic_fetch_add_explicit(&capture->part_count, 1, memory_order_relaxed);
    if (part < loop->item_count) capture->items_ns.items[loop->first_item + part] = took_ns;
}

void quern__capture_finish_loop(quern_frame_capture *capture, uint64_t now_ns)
{
    capture->mark_ns = now_ns;
}
