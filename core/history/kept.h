/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_KEPT_H
#define QUERN_CORE_HISTORY_KEPT_H

/* Commands that wait to be applied, in a snapshot: those of the world, and those that schedules keep.
 *
 * Their streams are in a page, item by item as bytes. Values whose types have hooks are copied by these
 * into pages of their own, which stand in a list in the same order. Operations belong to their
 * recorder, which has them as long as it lives; so each stream goes back to the recorder that it came from.
 *
 * Restoring builds the streams anew in recorders beside those of the world, which may fail, and lets them
 * change places then. */

#include "core/history/history_internal.h"

/* Errors: INVALID_ARGUMENT (what cannot be kept twice waits), OUT_OF_MEMORY. */
quern_result quern__build_kept(quern__history *history, quern__snapshot *snapshot);

/* Errors: OUT_OF_MEMORY; what was made is there until it is undone or put back. */
quern_result quern__prepare_kept(quern__history *history, const quern__snapshot *snapshot);
void quern__undo_kept(quern__history *history);
void quern__put_back_kept(quern__history *history);

#endif
