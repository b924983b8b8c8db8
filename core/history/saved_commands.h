/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_SAVED_COMMANDS_H
#define QUERN_CORE_HISTORY_SAVED_COMMANDS_H

/* Saves and restores the recorded commands that are not applied yet: those of the world and those of schedules.
 *
 * The streams are stored in one page, item by item as bytes. Values whose types have hooks are copied by those
 * hooks into pages of their own, which a list names in the order of the items. An operation belongs to its
 * recorder and lives as long as the recorder. So each stream is restored into the recorder that it was saved from.
 *
 * Restoring rebuilds the streams in separate recorders, which may fail. Then it swaps these streams with those of
 * the world's recorders, which cannot fail. */

#include "core/history/history_internal.h"

/* Saves the waiting commands into the snapshot. Errors: INVALID_ARGUMENT (a waiting command or value cannot be
 * copied), OUT_OF_MEMORY. */
quern_result quern__build_commands(quern__history *history, quern__snapshot *snapshot);

/* Rebuilds the streams of the snapshot. Errors: OUT_OF_MEMORY. The rebuilt streams exist, also after an error,
 * until quern__undo_commands or quern__restore_commands is called. */
quern_result quern__prepare_commands(quern__history *history, const quern__snapshot *snapshot);
void quern__undo_commands(quern__history *history);
void quern__restore_commands(quern__history *history);

#endif
