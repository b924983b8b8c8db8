/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_HISTORY_HISTORY_CALLS_H
#define QUERN_SCHED_HISTORY_HISTORY_CALLS_H

#include "core/history/history_internal.h"

#include <quern/history.h>

struct quern_history {
    quern__history core;
    quern_schedule *schedules[QUERN_MAX_HISTORY_SCHEDULES];
    uint32_t schedule_count;
};

/* Returns INVALID_ARGUMENT, with a message that the history does not contain the frame. */
quern_result quern__history_fail_frame(const quern_history *history, uint64_t frame);

#endif
