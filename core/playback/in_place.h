/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_IN_PLACE_H
#define QUERN_CORE_PLAYBACK_IN_PLACE_H

/* Fast path of a sync point, tried right after gathering. It applies if all commands only set values without
 * hooks, or enable or disable components, and their entities have these components. Rows then neither appear,
 * disappear nor move, and applying the commands in order makes the last one win. Merging and resolving are not
 * needed. */

#include "core/playback/gather.h"

/* Whether all entities are alive and have the components of the commands, all of which must have
 * QUERN__TRAIT_IN_PLACE. */
bool quern__gathered_is_in_place(const quern__gathered *gathered, const quern__storage *storage);

/* Applies all commands in order. Precondition: quern__gathered_is_in_place. */
void quern__gathered_apply_in_place(const quern__gathered *gathered, const quern__storage *storage);

/* The column `set` of QUERN__COMMAND_KINDS. Applies the items of a batch if `writes` is true, otherwise only
 * checks them. Returns false if an entity is dead or lacks the component; the caller must have checked the
 * batch before it writes. */
typedef bool quern__set_function(const quern__storage *storage, quern__command_batch *batch,
                                 bool is_located, bool writes);

quern__set_function quern__set_values;

/* Change the bit of the row flag that the kind needs (needed_flag). */
quern__set_function quern__clear_bits, quern__set_bits;

#endif
