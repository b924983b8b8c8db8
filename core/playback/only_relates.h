/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_ONLY_RELATES_H
#define QUERN_CORE_PLAYBACK_ONLY_RELATES_H

/* A fast path for sync points whose commands all relate or unrelate existing entities, in one relation with a single
 * target per source. The commands change links one after the other, as the relate stage does (relate_stage.h). Then
 * the rows move as after quern_entity_relate_many (core/relations/tier_moves.h), instead of by follow-up commands
 * that go through all stages. The result is the same, including the order of rows.
 *
 * All stages run instead if the commands are of other kinds, if a row that changes has hooks or listeners, or if
 * something fails: then they report the error, or refuse the entity. */

#include "core/playback/merge.h"
#include "core/playback/relate_stage.h"
#include "core/playback/resolve.h"

/* Applies all commands and finishes the relate stage. Returns false if all stages must run; then nothing has changed.
 * Precondition: quern__relating_begin. drops: list to reserve entries in, for the drops that end up in `merged`. */
bool quern__commands_only_relate(quern__relating *relating, quern__gathered *gathered,
                                 quern__merged *merged, quern__resolved *resolved, quern__drops *drops,
                                 const quern__executor *observer);

#endif
