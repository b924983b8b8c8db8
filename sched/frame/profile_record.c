/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/frame/profile.h"

#include "sched/frame/frame.h"
#include "sched/jobs/thread.h"
#include "sched/observe/recording.h"

/* What a frame tells a recording. */

/* What going over the items touches, where that is more than the caches of all threads hold. */
static uint64_t memory_bytes(const quern__pass *pass)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < pass->tables.count && pass->prefetches; i++) {
        const quern__pass_table *table = &pass->tables.items[i];
        for (uint32_t k = table->first_span; k < table->end_span; k++)
            bytes += pass->spans.items[k].size_bytes * quern__archetype_row_count(table->archetype);
    }
    return bytes;
}

static void record_pass(quern_recording *recording, const quern__segment *segment, quern__pass *pass)
{
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern__profile_describe_pass(pass, name, sizeof name);
    pass->task = quern__recording_add_task(recording, name, pass->item_count);
    if (pass->task == UINT32_MAX) return;
    quern__task *task = &recording->tasks.items[pass->task];
    task->bytes = memory_bytes(pass);
    task->is_serial = pass->kind != QUERN__PASS_CHUNKS;
    task->caller_only = quern__system_is(pass->systems.items[0], QUERN_SYSTEM_MAIN_THREAD);
    for (uint32_t i = 0; i < pass->waits_for.count; i++)
        quern__recording_add_wait(recording, segment->passes.items[pass->waits_for.items[i]]->task);
}

void quern__profile_record_segment(quern_recording *recording, const quern__segment *segment)
{
    quern__recording_start_section(recording, false, quern__clock_ns());
    for (uint32_t i = 0; i < segment->passes.count; i++)
        record_pass(recording, segment, segment->passes.items[i]);
}

void quern__profile_record_item(const quern__pass *pass, uint32_t item, uint64_t took_ns)
{
    const quern_recording *recording = pass->plan->schedule->watch.recording;
    if (recording->is_out_of_memory) return;
    const uint64_t cost_ns = quern__clock_cost_ns();
    recording->items_ns.items[recording->tasks.items[pass->task].first_item + item] =
        took_ns > cost_ns ? took_ns - cost_ns : 0;
}

void quern__profile_record_part(quern_recording *recording, uint64_t took_ns)
{
    const uint64_t cost_ns = quern__clock_cost_ns();
    quern__recording_add_part(recording, took_ns > cost_ns ? took_ns - cost_ns : 0);
}

void quern__profile_record_hooks(const quern__pass *pass, const quern_context *context, uint64_t took_ns)
{
    const quern_recording *recording = pass->plan->schedule->watch.recording;
    if (recording == NULL || recording->is_out_of_memory) return;
    quern__task *task = &recording->tasks.items[pass->task];
    if (context->stage == QUERN__STAGE_BEGIN)
        task->before_ns = took_ns;
    else
        task->after_ns = took_ns;
}

void quern__profile_finish_recording(const quern__watch *watch)
{
    quern_recording *recording = watch->recording;
    recording->frame_ns = watch->frame.time_ns;
    if (recording->frame_ns > recording->sections_ns)
        recording->serial_ns = recording->frame_ns - recording->sections_ns;
}

quern_result quern_schedule_run_recorded(quern_schedule *schedule, quern_jobs *jobs, double delta_seconds,
                                         quern_recording *recording)
{
    static const char function[] = "quern_schedule_run_recorded";
    if (schedule == NULL) return quern__fail_null(function, "schedule");
    if (recording == NULL) return quern__fail_null(function, "recording");
    if (schedule->is_running)
        return quern__schedule_run(schedule, jobs, delta_seconds, function); /* which refuses */
    quern__recording_start(recording, jobs != NULL ? quern_jobs_thread_count(jobs) : 1);
    schedule->watch.recording = recording;
    const quern_result result = quern__schedule_run(schedule, jobs, delta_seconds, function);
    schedule->watch.recording = NULL;
    if (result == QUERN_OK && !recording->is_out_of_memory) return QUERN_OK;
    recording->frame_ns = 0; /* nothing that counts */
    if (result != QUERN_OK) return result;
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory to record a frame, which has run",
                       function);
}
