/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Public calls on deltas (quern/history.h). */

#include "core/history/delta.h"

#include "sched/history/history_calls.h"

static quern_result create(quern_history *history, uint64_t from, uint64_t to, quern_delta **out_delta)
{
    const quern_result result = quern__world_check_unlocked(history->core.world, "quern_delta_create");
    if (result != QUERN_OK) return result;
    const quern__snapshot *older = quern__history_find(&history->core, from);
    const quern__snapshot *newer = quern__history_find(&history->core, to);
    if (older == NULL) return quern__history_fail_frame(history, from);
    if (newer == NULL) return quern__history_fail_frame(history, to);
    if (older == newer)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "from and to are both frame %llu: nothing differs from itself; save the world under "
            "another number to compare it as it is now",
            (unsigned long long)from);
    return quern__delta_make(&history->core, older, newer, out_delta);
}

quern_result quern_delta_create(quern_history *history, uint64_t from, uint64_t to, quern_delta **out_delta)
{
    static const char function[] = "quern_delta_create";
    if (history == NULL) return quern__fail_null(function, "history");
    if (out_delta == NULL) return quern__fail_null(function, "out_delta");
    return quern__in_call(create(history, from, to, out_delta), function);
}

void quern_delta_destroy(quern_delta *delta)
{
    if (delta == NULL) return;
    if (delta->history->world->locked) {
        quern__report_violation(QUERN_ERROR_WORLD_LOCKED,
                                "quern_delta_destroy: " QUERN__WORLD_LOCKERS
                                " is running on the world of the delta; destroy the delta afterwards");
        return;
    }
    quern__delta_release(delta);
}

const quern_delta_batch *quern_delta_batches(const quern_delta *delta, uint32_t *out_count)
{
    if (out_count != NULL) *out_count = delta != NULL ? delta->count : 0;
    if (delta == NULL) quern__fail_null("quern_delta_batches", "delta");
    if (out_count == NULL) quern__fail_null("quern_delta_batches", "out_count");
    return delta != NULL && out_count != NULL ? delta->batches : NULL;
}

quern_result quern_delta_get_stats(const quern_delta *delta, quern_delta_stats *out_stats)
{
    if (delta == NULL) return quern__fail_null("quern_delta_get_stats", "delta");
    if (out_stats == NULL) return quern__fail_null("quern_delta_get_stats", "out_stats");
    *out_stats = delta->stats;
    return QUERN_OK;
}
