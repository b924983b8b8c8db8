/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_SAVED_COMMANDS_H
#define QUERN_CORE_HISTORY_SAVED_COMMANDS_H

/* Saves and restores the recorded commands that are not applied yet: those of the world and those of the
 * caller's recorders.
 *
 * One page stores the streams, item by item as bytes. Values of types with hooks are copied by those
 * hooks into pages of their own, listed in the order of the items. An operation belongs to its recorder
 * and exists as long as the recorder. So each stream is restored into the recorder that it was saved
 * from.
 *
 * Restoring rebuilds the streams in separate recorders, which may fail. Then it swaps these streams with
 * those of the target recorders, which cannot fail. */

#include "core/history/history_internal.h"

/* Saves the waiting commands into the snapshot. Errors: INVALID_ARGUMENT (a waiting command or value
 * cannot be copied), OUT_OF_MEMORY. */
quern_result quern__build_commands(quern__history *history, quern__snapshot *snapshot);

/* quern__prepare_commands rebuilds the streams of the snapshot. Errors: OUT_OF_MEMORY.
 * quern__restore_commands moves them to their recorders; quern__undo_commands destroys them. One of the
 * two must be called, also after an error. */
quern_result quern__prepare_commands(quern__history *history, const quern__snapshot *snapshot);
void quern__undo_commands(quern__history *history);
void quern__restore_commands(quern__history *history);

#endif
