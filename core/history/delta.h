/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_DELTA_H
#define QUERN_CORE_HISTORY_DELTA_H

/* What differs between two snapshots. It holds both, so that its batches may point into their pages, and
 * lies in pages itself: a history that has made one like it allocates nothing. */

#include "core/history/history_internal.h"

#include <quern/history.h>

struct quern_delta {
    quern__history *history;
    quern__page page;         /* where this is */
    quern__snapshot from, to; /* held */
    quern_delta_batch *batches;
    quern__page batches_page;
    quern__page handles_page; /* of entities that are named otherwise */
    uint32_t count, capacity; /* of batches */
    quern_delta_stats stats;
};

/* Errors: OUT_OF_MEMORY. */
quern_result quern__delta_make(quern__history *history, const quern__snapshot *from,
                               const quern__snapshot *to, quern_delta **out_delta);
void quern__delta_release(quern_delta *delta);

/* One more batch. False when there is no memory. */
bool quern__delta_tell(quern_delta *delta, const quern_delta_batch *batch);

/* Finds which rows stand where in both; then tells, with rows that come, stay and move, and with those that
 * went. False when there is no memory. */
bool quern__delta_list_rows(quern_delta *delta);
bool quern__delta_tell_rows(quern_delta *delta);
bool quern__delta_tell_destroyed(quern_delta *delta);

#endif
