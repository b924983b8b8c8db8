/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Public functions about dropped commands, and about commands that a failed frame has kept. */

#include "sched/frame/event_frame.h"
#include "sched/frame/schedule_internal.h"

uint32_t quern_schedule_dropped_command_count(const quern_schedule *schedule)
{
    if (schedule != NULL) return schedule->playback.drops.count;
    quern__fail_null("quern_schedule_dropped_command_count", "schedule");
    return 0;
}

quern_result quern_schedule_get_dropped_command(const quern_schedule *schedule, uint32_t i,
                                                quern_dropped_command *out_drop)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_get_dropped_command", "schedule");
    if (out_drop == NULL) return quern__fail_null("quern_schedule_get_dropped_command", "out_drop");
    if (i >= schedule->playback.drops.count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "quern_schedule_get_dropped_command: entry %u; there are %u", i,
                           schedule->playback.drops.count);
    const quern__drop *drop = &schedule->playback.drops.items[i];
    *out_drop =
        (quern_dropped_command){.system = {.bits = drop->system_number + 1},
                                .system_name = schedule->plan.systems.items[drop->system_number]->name,
                                .reason = drop->reason,
                                .count = drop->count,
                                .first = drop->first_entity};
    return QUERN_OK;
}

uint64_t quern_schedule_kept_command_count(const quern_schedule *schedule)
{
    if (schedule == NULL) {
        quern__fail_null("quern_schedule_kept_command_count", "schedule");
        return 0;
    }
    uint64_t count = 0;
    for (uint32_t i = 0; i < schedule->worker_count && !schedule->is_running; i++)
        count += quern__commands_count(schedule->recorders.items[i]);
    return count;
}

void quern__schedule_discard_kept(quern_schedule *schedule)
{
    for (uint32_t i = 0; i < schedule->worker_count; i++)
        quern__commands_reset(schedule->recorders.items[i]);
}

quern_result quern_schedule_discard_commands(quern_schedule *schedule)
{
    if (schedule == NULL) return quern__fail_null("quern_schedule_discard_commands", "schedule");
    quern_result result = quern__schedule_check_idle(schedule, "quern_schedule_discard_commands");
    if (result != QUERN_OK) return result;
    quern__schedule_discard_kept(schedule);
    quern__events_clear_handles(schedule);
    return QUERN_OK;
}
