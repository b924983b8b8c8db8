/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/printer.h"
#include "sched/observe/profile_internal.h"

#include <inttypes.h>
#include <math.h>

/* Writes the profile as a table. */

typedef struct profile_writer {
    const quern_schedule *schedule;
    const quern__profiler *profiler;
    quern__printer *printer;
    double frames;
} profile_writer;

static double mean_us(const profile_writer *writer, uint64_t total_ns)
{
    return (double)total_ns / writer->frames / 1000;
}

static double share_of(uint64_t part_ns, uint64_t all_ns)
{
    return all_ns > 0 ? 100 * (double)part_ns / (double)all_ns : 0;
}

static void write_frame(const profile_writer *writer)
{
    const quern_frame_profile *total = &writer->profiler->total;
    const uint32_t thread_count = total->thread_count;
    quern__print(writer->printer,
                 "frame %.1f us on %" PRIu32
                 " thread%s, mean of %.0f; critical path %.1f us; efficiency %.0f %%\n",
                 mean_us(writer, total->time_ns), thread_count, thread_count == 1 ? "" : "s",
                 writer->frames, mean_us(writer, total->critical_path_ns),
                 share_of(total->workers.busy_ns, total->time_ns * thread_count));
    quern__print(writer->printer,
                 "sync points %.1f us: gather %.1f, merge %.1f, resolve %.1f, apply %.1f\n\n",
                 mean_us(writer, total->sync_ns), mean_us(writer, total->gather_ns),
                 mean_us(writer, total->merge_ns), mean_us(writer, total->resolve_ns),
                 mean_us(writer, total->apply_ns));
}

static void write_system(const profile_writer *writer, const quern__system *system)
{
    const quern__system_profile profile = quern__profile_copy_of(writer->profiler, system);
    quern__print(writer->printer, "%-24s %10.1f %6.1f %8.0f %10.0f %8.0f\n", system->name,
                 mean_us(writer, profile.total_ns),
                 share_of(profile.total_ns, writer->profiler->total.workers.busy_ns),
                 (double)profile.total_view_count / writer->frames,
                 (double)profile.total_entity_count / writer->frames,
                 (double)profile.total_command_count / writer->frames);
}

static void write_systems(const profile_writer *writer)
{
    const quern__profiler *profiler = writer->profiler;
    quern__print(writer->printer, "%-24s %10s %6s %8s %10s %8s\n", "system", "us", "%", "views", "entities",
                 "commands");
    for (uint32_t i = 0; i < profiler->plan->order.count; i++)
        write_system(writer, profiler->plan->order.items[i]);
}

static void write_count(const profile_writer *writer, double count)
{
    if (isnan(count))
        quern__print(writer->printer, " %12s", "-");
    else
        quern__print(writer->printer, " %12.2f", count);
}

/* Writes the counts per entity, or per frame if the system has no entities. */
static void write_counts_of(const profile_writer *writer, const quern__system *system)
{
    double counts[QUERN_HARDWARE_EVENT_COUNT];
    const quern_system handle = {.bits = system->index + 1};
    if (quern_schedule_get_system_counts(writer->schedule, handle, counts) != QUERN_OK) return;
    const uint64_t entity_count = quern__profile_copy_of(writer->profiler, system).total_entity_count;
    const bool has_entities = entity_count > 0;
    const double share = has_entities ? (double)entity_count / writer->frames : 1;
    quern__print(writer->printer, "%-24s %-6s", system->name, has_entities ? "entity" : "frame");
    write_count(writer, counts[QUERN_HARDWARE_INSTRUCTIONS] / counts[QUERN_HARDWARE_CYCLES]);
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        write_count(writer, counts[i] / share);
    quern__print(writer->printer, "\n");
}

static void write_counts(const profile_writer *writer)
{
    const quern__profiler *profiler = writer->profiler;
    if (!profiler->counters.is_on) return;
    quern__print(writer->printer, "\n%-24s %-6s %12s", "system, events", "by", "instr/cycle");
    for (int i = 0; i < QUERN_HARDWARE_EVENT_COUNT; i++)
        quern__print(writer->printer, " %12s", quern_hardware_event_string((quern_hardware_event)i));
    quern__print(writer->printer, "\n");
    for (uint32_t i = 0; i < profiler->plan->order.count; i++)
        write_counts_of(writer, profiler->plan->order.items[i]);
}

static void write_workers(const profile_writer *writer)
{
    const quern__profiler *profiler = writer->profiler;
    quern__print(writer->printer, "\n%-24s %10s %10s %10s %10s\n", "worker, us", "busy", "stealing", "idle",
                 "sync");
    for (uint32_t i = 0; i < profiler->frame_worker_count; i++) {
        const quern_worker_profile *worker = &profiler->workers[i].profile_total;
        quern__print(writer->printer, "%-24" PRIu32 " %10.1f %10.1f %10.1f %10.1f\n", i,
                     mean_us(writer, worker->busy_ns), mean_us(writer, worker->stealing_ns),
                     mean_us(writer, worker->idle_ns), mean_us(writer, worker->sync_ns));
    }
}

quern_result quern_schedule_write_profile(const quern_schedule *schedule, quern_sink sink)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_write_profile", "schedule");
    quern_result result = quern__check_sink(sink, "quern_schedule_write_profile");
    if (result != QUERN_OK) return result;
    const quern__profiler *profiler = quern__schedule_profiler(schedule);
    if (profiler->frame_count == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_schedule_write_profile: no frame has been profiled yet; call "
                           "quern_schedule_set_profiling(schedule, true) and run frames first");
    quern__printer printer;
    quern__printer_open(&printer, sink);
    const profile_writer writer = {.schedule = schedule,
                                   .profiler = profiler,
                                   .printer = &printer,
                                   .frames = (double)profiler->frame_count};
    write_frame(&writer);
    write_systems(&writer);
    write_counts(&writer);
    write_workers(&writer);
    return quern__printer_close(&printer, "quern_schedule_write_profile");
}
