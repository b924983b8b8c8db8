/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_RELATE_STAGE_H
#define QUERN_CORE_PLAYBACK_RELATE_STAGE_H

/* Relating, a stage between gathering and merging, for sync points with commands that relate or name
 * entities, or may destroy related ones. Merging handles each entity separately, but relations connect
 * several entities. So this stage iterates all commands in order and plays those that relate, unrelate, name
 * or destroy on the links and names: each command finds the state that the previous commands left. Nothing
 * else in the world changes. The results:
 *
 *   - Links are as after the sync point, except those between entities that end.
 *   - Changes of rows (targets, tags of levels, destroys by cascade) become follow-up commands (follow_up.h).
 *     Merging, resolving and applying handle them like other commands and do not know relations.
 *   - Merging skips commands that relate, and commands dropped by this stage: a destroy that a relation refuses
 *     has a null entity.
 *
 * Every change of a link is logged. If this or a later stage fails, the log is reverted and the streams are
 * restored. After success, the log is cleared, and entities that have ended lose their links.
 *
 * Creates get their handles when everything is applied, in the order of recording, so this stage can predict
 * them. */

#include "core/base/executor.h"
#include "core/playback/follow_up.h"
#include "core/playback/merge.h"
#include "core/playback/resolve.h"

typedef struct quern__relating quern__relating;

/* Whether the sync point needs this stage. */
static inline bool quern__gathered_relates(const quern__gathered *gathered, const quern__storage *storage)
{
    return (gathered->traits & QUERN__TRAIT_UNRELATED) == 0 ||
           (storage->has_attachments && (gathered->traits & QUERN__TRAIT_NO_DESTROYS) == 0);
}

/* Creates the state of the stage, for all sync points. Returns NULL if out of memory. */
quern__relating *quern__relating_create(quern__storage *storage);
void quern__relating_destroy(quern__relating *relating);

/* Starts a sync point. Call it before any of the functions below. */
void quern__relating_begin(quern__relating *relating);

/* Plays the commands and adds follow-up commands. On failure, everything is unchanged. Errors: OUT_OF_MEMORY;
 * LIMIT if there would be too many entities. */
quern_result quern__commands_relate(quern__relating *relating, quern__gathered *gathered);

/* Adds the commands dropped by this stage to the drops of merging. Call it after merging. Errors:
 * OUT_OF_MEMORY. */
quern_result quern__relating_count_drops(const quern__relating *relating, const quern__merged *merged);

/* Handles entities that resolving has refused (quern__resolved). All commands on a refused entity are dropped,
 * including those that relate it, which may change the effect of other commands. If this stage has changed any
 * of these entities, sets *out_is_again: the caller must then call quern__relating_undo and repeat the stages,
 * in which this stage drops the commands on these entities. Errors: OUT_OF_MEMORY; LIMIT if an entity cannot
 * have the components that follow from commands on other entities. */
quern_result quern__relating_refuse(quern__relating *relating, const quern__gathered *gathered,
                                    const quern__merged *merged, const quern__resolved *resolved,
                                    bool *out_is_again);

/* Reverts all changes of this stage. */
void quern__relating_undo(quern__relating *relating, quern__gathered *gathered);

/* Ends a successful sync point. Adds the number of entities refused in earlier passes through the stages to
 * `resolved`. */
void quern__relating_finish(quern__relating *relating, quern__resolved *resolved);

#endif
