/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_APPLY_H
#define QUERN_CORE_PLAYBACK_APPLY_H

/* Applying, the last stage of a sync point, which changes the world and cannot fail. */

#include "core/playback/resolve.h"

/* executor NULL: on the caller. */
void quern__commands_apply(quern__resolved *resolved, quern__merged *merged,
                           const quern__gathered *gathered, quern__storage *storage,
                           const quern__executor *executor);

/* What applying begins and ends with, either after all stages or after turnover.h. The first call takes the
 * handles of creates, which are in resolved->created afterwards, and appends all reserved rows, raw, except
 * those of instances. */
void quern__change_begin(quern__resolved *resolved, const quern__gathered *gathered,
                         quern__storage *storage);

/* Puts instances into their rows, fills the gaps that are left with the last rows of each archetype, cuts these
 * off, and frees the slots of destroyed entities. executor NULL: on the caller. */
void quern__change_end(quern__resolved *resolved, quern__storage *storage, const quern__executor *executor);

/* Replaces provisional handles in the values of an item by real ones. created: the handles of the creates of its
 * stream; the recorder has refused all others. */
void quern__item_remap(const quern__operation *operation, char *item, quern_entity *created);

/* For builds with QUERN_CHECKS: reports provisional handles that no stage will replace, in values that have not
 * been moved yet. */
void quern__gathered_look_for_provisional(const quern__gathered *gathered);

#endif
