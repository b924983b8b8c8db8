/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/history/archived_run.h"

#include "core/query/query_internal.h"
#include "sched/frame/schedule_internal.h"

#include <float.h>

/* The state of a system that persists from frame to frame. */
typedef struct saved_system {
    uint64_t seen_version; /* newest version that its change filters have seen */
    quern_entity target;   /* entity of its target term; null without one */
    double due_seconds, elapsed_seconds, delta_seconds;
    uint64_t enabled;
} saved_system;

typedef struct saved_schedule {
    uint64_t system_count;
    uint64_t frame_index;
} saved_schedule;

static const char *name_of(const quern_schedule *schedule)
{
    return schedule->plan.systems.count > 0 ? schedule->plan.systems.items[0]->name : "none";
}

quern_result quern__schedule_check_published(const quern_schedule *schedule)
{
    /* Relaxed: no frame is running. */
    if (!atomic_load_explicit(&schedule->has_emitted, memory_order_relaxed)) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "the schedule with the system '%s' has events that its last frame could not publish: run "
        "a frame first, or restore one",
        name_of(schedule));
}

quern_result quern__schedule_check_unsaved(const quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        if (quern__commands_count(schedule->recorders.items[i]) > 0 ||
            quern__accumulator_is_used(schedule->recorders.items[i]))
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "the schedule with the system '%s' keeps commands that its last frame could not "
                "apply: run a frame, or discard them (quern_schedule_discard_commands)",
                name_of(schedule));
    return quern__schedule_check_published(schedule);
}

void quern__schedule_save(const quern_schedule *schedule, quern__byte_writer *writer)
{
    const saved_schedule head = {schedule->plan.systems.count, schedule->frame_index};
    quern__write(writer, &head, sizeof head);
    for (uint32_t i = 0; i < schedule->plan.phase_count; i++)
        quern__write(writer, &schedule->plan.phases[i].elapsed_seconds, sizeof(double));
    for (uint32_t i = 0; i < schedule->plan.systems.count; i++) {
        const quern__system *system = schedule->plan.systems.items[i];
        const saved_system saved = {.seen_version = system->query.seen_version,
                                    .target = system->query.target != NULL ? system->query.target->entity
                                                                           : (quern_entity){0},
                                    .due_seconds = system->due_seconds,
                                    .elapsed_seconds = system->elapsed_seconds,
                                    .delta_seconds = system->delta_seconds,
                                    .enabled = system->is_enabled};
        quern__write(writer, &saved, sizeof saved);
    }
}

void quern__schedule_save_members(const quern_schedule *schedule, quern__byte_writer *writer)
{
    const quern__plan *plan = &schedule->plan;
    quern__write_u64(writer, plan->phase_count);
    quern__write_u64(writer, plan->systems.count);
    for (uint32_t i = 0; i < plan->phase_count; i++)
        quern__write_u32(writer, plan->phases[i].id);
    for (uint32_t i = 0; i < plan->systems.count; i++)
        quern__write_u32(writer, plan->systems.items[i]->handle_bits);
}

/* Whether a time can be the result of frames. */
static bool is_time(double seconds)
{
    return seconds >= 0 && seconds <= DBL_MAX; /* also rejects NaN */
}

bool quern__schedule_check_bytes(const quern_schedule *schedule, quern__byte_reader *reader, uint64_t clock)
{
    saved_schedule head;
    quern__read(reader, &head, sizeof head);
    if (head.system_count != schedule->plan.systems.count) return false;
    for (uint32_t i = 0; i < schedule->plan.phase_count; i++) {
        double seconds;
        quern__read(reader, &seconds, sizeof seconds);
        if (!is_time(seconds)) return false;
    }
    for (uint32_t i = 0; i < head.system_count; i++) {
        saved_system saved;
        quern__read(reader, &saved, sizeof saved);
        if (saved.seen_version > clock || saved.enabled > 1 || !is_time(saved.due_seconds) ||
            !is_time(saved.elapsed_seconds) || !is_time(saved.delta_seconds))
            return false;
    }
    return !reader->has_failed;
}

static quern__phase *find_phase(const quern__plan *plan, uint32_t id)
{
    for (uint32_t i = 0; i < plan->phase_count; i++)
        if (plan->phases[i].id == id) return &plan->phases[i];
    return NULL;
}

/* Restores a system. Returns whether it was enabled or disabled. */
static bool restore_system(quern__system *system, const saved_system *saved)
{
    const bool is_toggled = system->is_enabled != (saved->enabled != 0);
    system->query.seen_version = saved->seen_version;
    if (system->query.target != NULL) system->query.target->entity = saved->target;
    system->due_seconds = saved->due_seconds;
    system->elapsed_seconds = saved->elapsed_seconds;
    system->delta_seconds = saved->delta_seconds;
    quern__system_set_enabled(system, saved->enabled != 0);
    return is_toggled;
}

/* members: ids of the saved phases, then handles of the saved systems; NULL: those that the schedule has. */
static void restore(quern_schedule *schedule, uint32_t phase_count, quern__byte_reader *members,
                    quern__byte_reader *reader)
{
    const quern__plan *plan = &schedule->plan;
    saved_schedule head;
    quern__read(reader, &head, sizeof head);
    schedule->frame_index = head.frame_index;
    for (uint32_t i = 0; i < phase_count; i++) {
        quern__phase *phase =
            members != NULL ? find_phase(plan, quern__read_u32(members)) : &plan->phases[i];
        double elapsed_seconds;
        quern__read(reader, &elapsed_seconds, sizeof elapsed_seconds);
        if (phase != NULL) phase->elapsed_seconds = elapsed_seconds;
    }
    bool has_toggled_system = false;
    for (uint32_t i = 0; i < head.system_count; i++) {
        quern__system *system =
            members != NULL
                ? quern__schedule_system(schedule, (quern_system){.bits = quern__read_u32(members)})
                : plan->systems.items[i];
        saved_system saved;
        quern__read(reader, &saved, sizeof saved);
        if (system != NULL) has_toggled_system |= restore_system(system, &saved);
    }
    if (has_toggled_system || plan->world->events != NULL) quern__plan_invalidate_segments(&schedule->plan);
}

void quern__schedule_restore(quern_schedule *schedule, quern__byte_reader *reader)
{
    restore(schedule, schedule->plan.phase_count, NULL, reader);
}

void quern__schedule_restore_members(quern_schedule *schedule, quern__byte_reader *reader)
{
    const quern__plan *plan = &schedule->plan;
    const uint32_t phase_count = (uint32_t)quern__read_u64(reader);
    const uint32_t system_count = (uint32_t)quern__read_u64(reader);
    const size_t bytes = ((size_t)phase_count + system_count) * sizeof(uint32_t);
    quern__byte_reader members = quern__byte_reader_open(quern__read_in_place(reader, bytes), bytes);
    /* the state of members that the frame lacks */
    for (uint32_t i = 0; i < plan->phase_count; i++)
        plan->phases[i].elapsed_seconds = 0;
    for (uint32_t i = 0; i < plan->systems.count; i++) {
        quern__system *system = plan->systems.items[i];
        system->query.seen_version = 0;
        system->due_seconds = system->elapsed_seconds = system->delta_seconds = 0;
    }
    restore(schedule, phase_count, &members, reader);
}
