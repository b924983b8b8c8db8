/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Saving and loading worlds (quern/archive.h), also together with the state of their schedules. */

#include "core/world/world_internal.h"
#include "sched/history/archived_run.h"

static bool is_end_of_schedules(const void *list, uint32_t i)
{
    return ((quern_schedule *const *)list)[i] == NULL;
}

/* Checks a list of schedules, and counts them. */
static quern_result check_schedules(quern_world *world, quern_schedule *const *schedules,
                                    quern__archived_run *out_run)
{
    *out_run = (quern__archived_run){.world = world, .schedules = schedules};
    quern_result result = quern__list_count(schedules, QUERN_MAX_ARCHIVE_SCHEDULES, is_end_of_schedules,
                                            "schedule", NULL, &out_run->schedule_count);
    for (uint32_t i = 0; i < out_run->schedule_count && result == QUERN_OK; i++) {
        if (schedules[i]->plan.world != world)
            result =
                quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                            "schedule %u of the list belongs to another world: list schedules of the world "
                            "that is saved or loaded",
                            i);
        for (uint32_t k = 0; k < i && result == QUERN_OK; k++)
            if (schedules[k] == schedules[i])
                result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                                     "schedule %u is in the list twice: list each schedule once", i);
    }
    return result;
}

/* ------------------------------------------------------------------------------------------ saving */

static quern_result save_with_schedules(const quern__archived_run *run, quern_sink sink,
                                        const quern_save_def *def)
{
    if (def->leave_out[0].bits != 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "leave_out and schedules are both set: frames after loading could not be the same without "
            "some components; set only one of them");
    quern__byte_writer bytes = {.allocator = &run->world->storage.allocator};
    quern_result result = quern__run_write(run, &bytes);
    if (result == QUERN_OK) result = quern__world_save(run->world, sink, def, &bytes);
    quern__byte_writer_release(&bytes);
    return result;
}

static quern_result save(quern_world *world, quern_sink sink, const quern_save_def *def)
{
    static const quern_save_def zero;
    static const quern__byte_writer no_state;
    quern__archived_run run;
    if (def == NULL) def = &zero;
    quern_result result = quern__world_check_unlocked(world, "quern_world_save");
    if (result == QUERN_OK && def->outside_id != NULL)
        result = quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "outside_id is set, but no entity is outside of a whole world: set it to NULL, or save "
            "a list of entities");
    if (result == QUERN_OK) result = check_schedules(world, def->schedules, &run);
    if (result != QUERN_OK) return result;
    return run.schedule_count > 0 ? save_with_schedules(&run, sink, def)
                                  : quern__world_save(world, sink, def, &no_state);
}

quern_result quern_world_save(quern_world *world, quern_sink sink, const quern_save_def *def)
{
    static const char function[] = "quern_world_save";
    if (world == NULL) return quern__fail_null(function, "world");
    const quern_result result = quern__check_sink(sink, function);
    if (result != QUERN_OK) return result;
    if (!quern__world_enter(world, function)) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, quern__in_call(save(world, sink, def), function));
}

/* ----------------------------------------------------------------------------------------- loading */

static quern_result load(quern_world *world, quern_source source, const quern_load_def *def,
                         quern_load_report *report)
{
    static const quern_load_def zero;
    quern__archived_run run;
    if (def == NULL) def = &zero;
    quern_result result = quern__world_check_unlocked(world, "quern_world_load");
    if (result == QUERN_OK) result = check_schedules(world, def->schedules, &run);
    if (result != QUERN_OK) return result;
    const quern__run_restorer restorer = {&run, quern__run_prepare, quern__run_restore};
    return quern__world_load(world, source, def, run.schedule_count > 0 ? &restorer : NULL, report);
}

quern_result quern_world_load(quern_world *world, quern_source source, const quern_load_def *def,
                              quern_load_report *out_report)
{
    static const char function[] = "quern_world_load";
    quern_load_report ignored, *report = out_report != NULL ? out_report : &ignored;
    *report = (quern_load_report){0};
    if (world == NULL) return quern__fail_null(function, "world");
    const quern_result result = quern__check_source(source, function);
    if (result != QUERN_OK) return result;
    if (!quern__world_enter(world, function)) return QUERN_ERROR_WORLD_LOCKED;
    return quern__world_leave(world, quern__in_call(load(world, source, def, report), function));
}
