/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_HISTORY_SAVED_PENDING_H
#define QUERN_CORE_HISTORY_SAVED_PENDING_H

/* What waits in a world to be seen, as bytes: what reactions are to be told, and events. Of each: whether
 * it can be saved (errors: INVALID_ARGUMENT, with what to do); writing it; making room for what
 * the reader has, which is moved on (errors: INVALID_ARGUMENT, OUT_OF_MEMORY); and taking it from there in
 * the place of what waits now. */

#include "core/events/event_internal.h"
#include "core/history/history_internal.h"

quern_result quern__reactions_check_savable(const quern__storage *storage);
void quern__reactions_write(const quern__storage *storage, quern__byte_writer *writer);

/* archetypes: of the snapshot, in its order. Room that was made is kept. */
quern_result quern__reactions_prepare(quern__storage *storage, quern__archetype *const *archetypes,
                                      quern__byte_reader *reader);
void quern__reactions_restore(quern__storage *storage, quern__byte_reader *reader);

/* Values with hooks are copied by these into pages. Errors: INVALID_ARGUMENT (they have no copy hook),
 * OUT_OF_MEMORY. */
quern_result quern__events_save_values(quern__history *history, quern__value_pages *out_pages);
void quern__events_write(const quern_world *world, quern__byte_writer *writer);

/* Blocks for values come into the list, also where it fails. */
quern_result quern__events_prepare(quern_world *world, quern__event_block **blocks,
                                   quern__byte_reader *reader);
void quern__events_undo(quern_world *world, quern__event_block **blocks);
void quern__events_restore(quern__history *history, const quern__value_pages *pages,
                           quern__byte_reader *reader);

#endif
