/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_SAVED_PENDING_H
#define QUERN_CORE_HISTORY_SAVED_PENDING_H

/* Saves and restores what is pending in a world: changes that are not yet reported to reactions, and
 * waiting events. Both kinds have these functions:
 *
 *   write    writes the state as bytes
 *   prepare  reserves memory for the state in the reader. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY
 *   restore  replaces the state of the world by the state in the reader. Cannot fail
 *
 * quern__reactions_check_savable and quern__events_save_values are called before writing. They fail with
 * INVALID_ARGUMENT, and a remedy in the message, if the state cannot be saved.
 *
 * Prepare and restore advance the reader past the state. */

#include "core/events/event_internal.h"
#include "core/history/history_internal.h"

quern_result quern__reactions_check_savable(const quern__storage *storage);
void quern__reactions_write(const quern__storage *storage, quern__byte_writer *writer);

/* archetypes: the archetypes of the world in the order of the snapshot. Reserved memory is not released
 * by an error. */
quern_result quern__reactions_prepare(quern__storage *storage, quern__archetype *const *archetypes,
                                      quern__byte_reader *reader);
void quern__reactions_restore(quern__storage *storage, quern__byte_reader *reader);

/* Copies the waiting values that have hooks into pages. Errors: INVALID_ARGUMENT (a type has no copy
 * hook), OUT_OF_MEMORY. */
quern_result quern__events_save_values(quern__history *history, quern__value_pages *out_pages);
void quern__events_write(const quern_world *world, quern__byte_writer *writer);

/* quern__events_prepare adds blocks for the values to `blocks`, also if it fails later.
 * quern__packing_undo releases these blocks. */
quern_result quern__events_prepare(quern_world *world, quern__event_block **blocks,
                                   quern__byte_reader *reader);
void quern__events_restore(quern__history *history, const quern__value_pages *pages,
                           quern__byte_reader *reader);

#endif
