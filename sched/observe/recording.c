/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/observe/recording.h"

#include <stdio.h>

quern_result quern_recording_create(const quern_allocator *allocator, quern_recording **out_recording)
{
    if (out_recording == NULL) return quern__fail_null("quern_recording_create", "out_recording");
    const quern_allocator chosen = allocator != NULL ? *allocator : quern_allocator_default();
    const quern_result result = quern__check_allocator(&chosen, "quern_recording_create");
    if (result != QUERN_OK) return result;
    quern_recording *recording = quern__allocate(&chosen, sizeof *recording, _Alignof(quern_recording));
    if (recording == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_recording_create: no memory for a recording");
    *recording = (quern_recording){.allocator = chosen};
    *out_recording = recording;
    return QUERN_OK;
}

void quern_recording_destroy(quern_recording *recording)
{
    if (recording == NULL) return;
    const quern_allocator allocator = recording->allocator;
    quern__array_release(&allocator, &recording->sections);
    quern__array_release(&allocator, &recording->tasks);
    quern__array_release(&allocator, &recording->items_ns);
    quern__array_release(&allocator, &recording->waits);
    quern__release(&allocator, recording, sizeof *recording, _Alignof(quern_recording));
}

void quern__recording_start(quern_recording *recording, uint32_t thread_count)
{
    recording->sections.count = recording->tasks.count = 0;
    recording->items_ns.count = recording->waits.count = 0;
    recording->thread_count = thread_count;
    recording->frame_ns = recording->serial_ns = recording->sections_ns = 0;
    recording->is_out_of_memory = false;
}

void quern__recording_start_section(quern_recording *recording, bool is_sync, uint64_t now_ns)
{
    recording->section_start_ns = recording->mark_ns = now_ns;
    if (!quern__array_reserve(&recording->allocator, &recording->sections, recording->sections.count + 1)) {
        recording->is_out_of_memory = true;
        return;
    }
    recording->sections.items[recording->sections.count++] = (quern__section){
        .first_task = recording->tasks.count, .end_task = recording->tasks.count, .is_sync = is_sync};
}

void quern__recording_finish_section(quern_recording *recording, uint64_t now_ns)
{
    recording->sections_ns += now_ns - recording->section_start_ns;
}

static bool reserve_task(quern_recording *recording, uint32_t item_count)
{
    return !recording->is_out_of_memory &&
           quern__array_reserve(&recording->allocator, &recording->tasks, recording->tasks.count + 1) &&
           quern__array_reserve(&recording->allocator, &recording->items_ns,
                                recording->items_ns.count + item_count);
}

uint32_t quern__recording_add_task(quern_recording *recording, const char *name, uint32_t item_count)
{
    if (!reserve_task(recording, item_count)) {
        recording->is_out_of_memory = true;
        return UINT32_MAX;
    }
    quern__task *task = &recording->tasks.items[recording->tasks.count];
    *task = (quern__task){.first_item = recording->items_ns.count,
                          .item_count = item_count,
                          .first_wait = recording->waits.count};
    snprintf(task->name, sizeof task->name, "%s", name);
    for (uint32_t i = 0; i < item_count; i++)
        recording->items_ns.items[recording->items_ns.count++] = 0;
    recording->sections.items[recording->sections.count - 1].end_task++;
    return recording->tasks.count++;
}

void quern__recording_add_wait(quern_recording *recording, uint32_t before)
{
    if (recording->is_out_of_memory ||
        !quern__array_reserve(&recording->allocator, &recording->waits, recording->waits.count + 1)) {
        recording->is_out_of_memory = true;
        return;
    }
    recording->waits.items[recording->waits.count++] = before;
    recording->tasks.items[recording->tasks.count - 1].wait_count++;
}

/* Tasks of a sync point follow each other. */
static quern__task *add_link(quern_recording *recording, uint32_t item_count)
{
    const uint32_t number = quern__recording_add_task(recording, "sync point", item_count);
    if (number == UINT32_MAX) return NULL;
    const uint32_t first = recording->sections.items[recording->sections.count - 1].first_task;
    recording->tasks.items[number].is_sync = true;
    if (number > first) quern__recording_add_wait(recording, number - 1);
    return &recording->tasks.items[number];
}

void quern__recording_add_gap(quern_recording *recording, uint64_t now_ns)
{
    quern__task *gap = add_link(recording, 1);
    if (gap == NULL) return;
    gap->caller_only = true;
    recording->items_ns.items[gap->first_item] = now_ns - recording->mark_ns;
}

void quern__recording_start_loop(quern_recording *recording, uint32_t part_count)
{
    atomic_store_explicit(&recording->part_count, 0, memory_order_relaxed);
    (void)add_link(recording, part_count);
}

/* Relaxed: each part gets a place of its own, and the end of the loop orders what is in them. */
void quern__recording_add_part(quern_recording *recording, uint64_t took_ns)
{
    if (recording->is_out_of_memory) return;
    const quern__task *loop = &recording->tasks.items[recording->tasks.count - 1];
    const uint32_t part = atomic_fetch_add_explicit(&recording->part_count, 1, memory_order_relaxed);
    if (part < loop->item_count) recording->items_ns.items[loop->first_item + part] = took_ns;
}

void quern__recording_finish_loop(quern_recording *recording, uint64_t now_ns)
{
    recording->mark_ns = now_ns;
}
