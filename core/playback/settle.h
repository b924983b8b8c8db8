/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_SETTLE_H
#define QUERN_CORE_PLAYBACK_SETTLE_H

/* What applying begins and ends with, on either way to it: all stages (apply.h), or the short one for
 * entities that only come and go (turnover.h). Between the two stands what the commands do to single
 * rows. */

#include "core/playback/resolve.h"

/* Creates take their handles, which stand in resolved->created then, and each archetype gets all the rows
 * that were reserved, raw, but for those of instances. */
void quern__change_begin(quern__resolved *resolved, const quern__gathered *gathered,
                         quern__storage *storage);

/* Instances come to their rows. The last rows of each archetype fill the gaps that are left, the archetype
 * ends there, and the slots of destroyed entities are freed. executor NULL: on the caller. */
void quern__change_end(quern__resolved *resolved, quern__storage *storage, const quern__executor *executor);

/* Provisional handles in the values of an item become real. created: the handles of its stream's creates;
 * the recorder has let no others pass. */
void quern__item_remap(const quern__operation *operation, char *item, quern_entity *created);

/* For builds with QUERN_CHECKS: reports provisional handles that nobody will replace, in values that have
 * not been moved yet. */
void quern__gathered_look_for_provisional(const quern__gathered *gathered);

#endif
