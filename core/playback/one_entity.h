/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_ONE_ENTITY_H
#define QUERN_CORE_PLAYBACK_ONE_ENTITY_H

/* Fast path of a sync point, tried right after gathering. It applies if there are only a few commands, all on
 * one living entity. At most one row leaves or arrives then, so no order of rows has to be determined: chunk
 * edits, groups, archetype deltas and lists of gaps are not needed. Merging and resolving the edit, and
 * changing rows, use the same functions as the stages, with the same result. */

#include "core/base/executor.h"
#include "core/playback/resolve.h"

/* Applies the commands. If they destroy the entity, counts it in `resolved`. Returns false without changes if
 * the fast path does not apply, if a command is refused or dropped, or if out of memory; the stages must then
 * run. observer: the executor that is notified when the stage APPLY begins; may be NULL. */
bool quern__commands_apply_to_one(quern__merged *merged, quern__resolved *resolved,
                                  const quern__gathered *gathered, quern__storage *storage,
                                  const quern__executor *observer);

#endif
