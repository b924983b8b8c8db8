/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_ONE_ENTITY_H
#define QUERN_CORE_PLAYBACK_ONE_ENTITY_H

/* The short way for a few commands that are all on one living entity, straight after gathering. Its row is the
 * only one that leaves or arrives, so there is no order of rows to work out: chunk edits, groups, archetype
 * deltas and lists of gaps are not needed. The edit, its sequence, its resolving, the values and the verbs that
 * change rows are those of all stages, and so is the result. */

#include "core/base/executor.h"
#include "core/playback/resolve.h"

/* Applies the commands, and counts in `resolved` an entity that they destroy. Returns false, and changes nothing,
 * where there are other commands, where some are refused or dropped, or where there is no memory: all stages then
 * apply or report them. watcher: is told of the stage that begins; may be NULL. */
bool quern__commands_apply_to_one(quern__merged *merged, quern__resolved *resolved,
                                  const quern__gathered *gathered, quern__storage *storage,
                                  const quern__executor *watcher);

#endif
