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

/* Writes the values of neighbouring rows with one sequence, which stay in their archetype, or move to raw rows
 * of its target. rows: their edits. */
void quern__edits_stay(const quern__scratch *scratch, const quern__sequence *sequence, uintptr_t location,
                       const quern__edit *rows, uint32_t count);
void quern__edits_move(const quern__storage *storage, const quern__scratch *scratch,
                       const quern__sequence *sequence, uintptr_t to, uintptr_t from,
                       const quern__edit *rows, uint32_t count);

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
