/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/history/saved_schedule.h"

#include "core/query/query_internal.h"

#include <float.h>

/* The state of a system that persists from frame to frame. */
typedef struct saved_system {
    uint64_t seen_version; /* newest version that its change filters have seen */
    quern_entity target;   /* entity of its target term; null without one */
    double due_seconds, elapsed_seconds, delta_seconds;
    uint64_t
        state; /* bit 0: whether it is enabled; the others: hash of the watched resources that it has seen */
} saved_system;

typedef struct saved_schedule {
    uint32_t system_count, set_count;
    uint64_t frame_index;
} saved_schedule;

typedef struct saved_phase {
    double elapsed_seconds;
    uint64_t step_count;
} saved_phase;

static bool is_end_of_schedules(const void *list, uint32_t i)
{
    return ((quern_schedule *const *)list)[i] == NULL;
}

quern_result quern__schedules_check(const quern_world *world, quern_schedule *const *schedules,
                                    uint32_t capacity, uint32_t *out_count)
{
    quern_result result =
        quern__list_count(schedules, capacity, is_end_of_schedules, "schedule", NULL, out_count);
    for (uint32_t i = 0; i < *out_count && result == QUERN_OK; i++) {
        if (schedules[i]->plan.world != world)
            result = quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "schedule %u of the list belongs to another world: list schedules of this world", i);
        else if (schedules[i]->is_running)
            result = quern__fail(QUERN_ERROR_WORLD_LOCKED,
                                 "schedule %u of the list is running a frame: call this between frames", i);
        for (uint32_t k = 0; k < i && result == QUERN_OK; k++)
            if (schedules[k] == schedules[i])
                result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                     "schedule %u is in the list twice: list each schedule once", i);
    }
    return result;
}

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
    const saved_schedule head = {schedule->plan.systems.count, schedule->plan.sets.count,
                                 schedule->frame_index};
    quern__write(writer, &head, sizeof head);
    for (uint32_t i = 0; i < schedule->plan.phase_count; i++) {
        const quern__phase *phase = &schedule->plan.phases[i];
        const saved_phase saved = {phase->elapsed_seconds, phase->step_count};
        quern__write(writer, &saved, sizeof saved);
    }
    for (uint32_t i = 0; i < schedule->plan.sets.count; i++)
        quern__write_u64(writer, schedule->plan.sets.items[i]->is_enabled);
    for (uint32_t i = 0; i < schedule->plan.systems.count; i++) {
        quern__system *system = schedule->plan.systems.items[i];
        const quern__query *aimed = quern__system_target_query(system);
        const saved_system saved = {.seen_version = system->query.seen_version,
                                    .target = aimed != NULL ? aimed->target->entity : (quern_entity){0},
                                    .due_seconds = system->due_seconds,
                                    .elapsed_seconds = system->elapsed_seconds,
                                    .delta_seconds = system->delta_seconds,
                                    .state = (uint64_t)system->wants_enabled | system->seen_resources << 1};
        quern__write(writer, &saved, sizeof saved);
    }
}

void quern__schedule_save_members(const quern_schedule *schedule, quern__byte_writer *writer)
{
    const quern__plan *plan = &schedule->plan;
    quern__write_u64(writer, plan->phase_count);
    quern__write_u64(writer, plan->sets.count);
    quern__write_u64(writer, plan->systems.count);
    for (uint32_t i = 0; i < plan->phase_count; i++)
        quern__write_u32(writer, plan->phases[i].id);
    for (uint32_t i = 0; i < plan->sets.count; i++)
        quern__write_u32(writer, plan->sets.items[i]->id);
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
    if (head.system_count != schedule->plan.systems.count || head.set_count != schedule->plan.sets.count)
        return false;
    for (uint32_t i = 0; i < schedule->plan.phase_count; i++) {
        saved_phase saved;
        quern__read(reader, &saved, sizeof saved);
        if (!is_time(saved.elapsed_seconds)) return false;
    }
    for (uint32_t i = 0; i < head.set_count; i++)
        if (quern__read_u64(reader) > 1) return false;
    for (uint32_t i = 0; i < head.system_count; i++) {
        saved_system saved;
        quern__read(reader, &saved, sizeof saved);
        if (saved.seen_version > clock || !is_time(saved.due_seconds) || !is_time(saved.elapsed_seconds) ||
            !is_time(saved.delta_seconds))
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

static quern__set *find_set(const quern__plan *plan, uint32_t id)
{
    for (uint32_t i = 0; i < plan->sets.count; i++)
        if (plan->sets.items[i]->id == id) return plan->sets.items[i];
    return NULL;
}

/* Restores a system. Returns whether it was enabled or disabled. */
static bool restore_system(quern__system *system, const saved_system *saved)
{
    const bool was_enabled = system->is_enabled;
    system->query.seen_version = saved->seen_version;
    const quern__query *aimed = quern__system_target_query(system);
    if (aimed != NULL) aimed->target->entity = saved->target;
    system->due_seconds = saved->due_seconds;
    system->elapsed_seconds = saved->elapsed_seconds;
    system->delta_seconds = saved->delta_seconds;
    system->wants_enabled = (saved->state & 1) != 0;
    system->seen_resources = saved->state >> 1; /* nothing reads it if the system watches none any more */
    quern__system_set_enabled(system, quern__plan_allows(system->plan, system));
    return system->is_enabled != was_enabled;
}

/* members: ids of the saved phases, then of the sets, then handles of the saved systems; NULL: those that the schedule has. */
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
        saved_phase saved;
        quern__read(reader, &saved, sizeof saved);
        if (phase == NULL) continue;
        phase->elapsed_seconds = saved.elapsed_seconds;
        phase->step_count = saved.step_count;
    }
    for (uint32_t i = 0; i < head.set_count; i++) {
        quern__set *set = members != NULL ? find_set(plan, quern__read_u32(members)) : plan->sets.items[i];
        const bool is_enabled = quern__read_u64(reader) != 0;
        if (set != NULL) set->is_enabled = is_enabled;
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
    const uint64_t other_count = quern__read_u64(reader) + quern__read_u64(reader);
    const size_t bytes = (size_t)(phase_count + other_count) * sizeof(uint32_t);
    quern__byte_reader members = quern__byte_reader_open(quern__read_in_place(reader, bytes), bytes);
    /* the state of members that the frame lacks */
    for (uint32_t i = 0; i < plan->phase_count; i++)
        plan->phases[i].elapsed_seconds = 0, plan->phases[i].step_count = 0;
    for (uint32_t i = 0; i < plan->systems.count; i++) {
        quern__system *system = plan->systems.items[i];
        system->query.seen_version = 0;
        system->seen_resources = 0;
        system->due_seconds = system->elapsed_seconds = system->delta_seconds = 0;
    }
    restore(schedule, phase_count, &members, reader);
    /* a set of the frame may have enabled or disabled a system that the frame lacks */
    for (uint32_t i = 0; i < plan->systems.count; i++)
        quern__system_set_enabled(plan->systems.items[i], quern__plan_allows(plan, plan->systems.items[i]));
    quern__plan_invalidate_segments(&schedule->plan);
}
