/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_RELATE_STAGE_H
#define QUERN_CORE_PLAYBACK_RELATE_STAGE_H

/* Relating, a stage between gathering and merging, for sync points at which commands relate, or may destroy
 * what is related. Merging takes each entity by itself; relations are about several. So this stage walks
 * all commands in order, before, and plays those that relate, unrelate and destroy on the links
 * themselves: what a command finds is what all before it have left. Nothing else of the world changes. What
 * comes out:
 *
 *   - The links are as after the sync point, but for those between entities that end.
 *   - What follows for rows (targets, tags of levels, ends by cascade) stands as plain commands behind the
 *     streams (follow.h). All that is done by merging, resolving and applying, which know no relations.
 *   - Commands that relate are skipped by merging, and so are those that were dropped here: a destroy that
 *     a relation refuses has no entity any more.
 *
 * Each change of a link stands in a log. When this or a later stage fails, the log is played backwards and
 * streams are as they were recorded. When all is done the log is forgotten, and entities that have ended
 * lose their links.
 *
 * Creates get their handles when everything is applied, and in the order in which they are recorded; so
 * they are known before. */

#include "core/base/executor.h"
#include "core/playback/follow.h"
#include "core/playback/merge.h"
#include "core/playback/resolve.h"

typedef struct quern__relating quern__relating;

/* Whether there is anything to do here. */
static inline bool quern__gathered_relates(const quern__gathered *gathered, const quern__storage *storage)
{
    return (gathered->traits & QUERN__TRAIT_UNRELATED) == 0 ||
           (storage->has_attachments && (gathered->traits & QUERN__TRAIT_NO_DESTROYS) == 0);
}

/* NULL: no memory. */
quern__relating *quern__relating_create(quern__storage *storage);
void quern__relating_destroy(quern__relating *relating);

/* At the beginning of a sync point, before the first of the calls below. */
void quern__relating_begin(quern__relating *relating);

/* Plays the commands. On failure everything is as before. Errors: OUT_OF_MEMORY, LIMIT (of entities). */
quern_result quern__commands_relate(quern__relating *relating, quern__gathered *gathered);

/* After merging: what was dropped is counted with the rest. Errors: OUT_OF_MEMORY. */
quern_result quern__relating_count_drops(const quern__relating *relating, const quern__merged *merged);

/* After resolving has refused entities (quern__resolved): all commands on them are to be dropped, also
 * those that relate, and what others do then is another thing. So where some of them have been touched here
 * the stages are to begin again, after quern__relating_undo, and the commands on these are dropped here.
 * Errors: OUT_OF_MEMORY; LIMIT for an entity that is refused what follows from commands on others. */
quern_result quern__relating_refuse(quern__relating *relating, const quern__gathered *gathered,
                                    const quern__merged *merged, const quern__resolved *resolved,
                                    bool *out_is_again);

/* Takes everything back. */
void quern__relating_undo(quern__relating *relating, quern__gathered *gathered);

/* All is done. `resolved` gets to know who was refused on the way. */
void quern__relating_keep(quern__relating *relating, quern__resolved *resolved);

#endif
