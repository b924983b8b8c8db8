/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_APPLY_H
#define QUERN_CORE_PLAYBACK_APPLY_H

/* Applying, the last stage of a sync point. It changes the world and cannot fail. */

#include "core/playback/resolve.h"

/* Applies all edits. executor NULL: runs on the calling thread. */
void quern__commands_apply(quern__resolved *resolved, quern__merged *merged,
                           const quern__gathered *gathered, quern__storage *storage,
                           const quern__executor *executor);

/* Apply the edits of consecutive rows with the same sequence. The rows stay in their archetype, or move to
 * uninitialised rows of the target archetype. rows: the edits of these rows. */
void quern__edits_write(const quern__scratch *scratch, const quern__sequence *sequence, uintptr_t location,
                        const quern__edit *rows, uint32_t count);
void quern__edits_move(const quern__storage *storage, const quern__scratch *scratch,
                       const quern__sequence *sequence, uintptr_t to, uintptr_t from,
                       const quern__edit *rows, uint32_t count);

/* The first and the last step of applying; the last stage and the fast path destroy_and_create.h share them.
 * quern__change_begin allocates the handles of creates, stores them in resolved->created, and appends all
 * reserved rows, uninitialised, except those of prefab instances. */
void quern__change_begin(quern__resolved *resolved, const quern__gathered *gathered,
                         quern__storage *storage);

/* Spawns prefab instances, fills the remaining gaps with the last rows of each archetype, removes these rows,
 * and frees the slots of destroyed entities. executor NULL: runs on the calling thread. */
void quern__change_end(quern__resolved *resolved, quern__storage *storage, const quern__executor *executor);

/* Replaces provisional handles in the values of an item. created: the handles of the creates of the item's
 * stream; recording has rejected provisional handles of other streams. */
void quern__item_remap(const quern__operation *operation, char *item, quern_entity *created);

/* Builds with QUERN_CHECKS only: reports provisional handles that no stage will replace. Must be called before
 * values are moved out of the items. */
void quern__gathered_report_provisional(const quern__gathered *gathered);

#endif
