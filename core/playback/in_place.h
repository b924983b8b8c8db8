/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_IN_PLACE_H
#define QUERN_CORE_PLAYBACK_IN_PLACE_H

/* The short way through a sync point, straight after gathering. Where commands do nothing but set plain
 * values that their entities have, no row comes, goes or moves, and the last set wins if they are done in
 * order: there is nothing to merge and nothing to resolve. */

#include "core/playback/gather.h"

/* Whether all entities live and have the components that the commands, which have QUERN__TRAIT_IN_PLACE, set
 * or enable. */
bool quern__gathered_is_in_place(const quern__gathered *gathered, const quern__storage *storage);

/* Applies all commands in order. Precondition: quern__gathered_is_in_place. */
void quern__gathered_apply_in_place(const quern__gathered *gathered, const quern__storage *storage);

/* The column `set` of QUERN__COMMAND_KINDS: looks at the rows of a run's items, or writes what the items say. False:
 * an entity is gone, or lacks the component; nothing has been written then. */
typedef bool quern__set_function(const quern__storage *storage, quern__run *run, bool is_located,
                                 bool writes);

quern__set_function quern__set_values;

/* The bit of the row flag that the kind needs (needed_flag). */
quern__set_function quern__clear_bits, quern__set_bits;

#endif
