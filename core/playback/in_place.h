/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_IN_PLACE_H
#define QUERN_CORE_PLAYBACK_IN_PLACE_H

/* The short way through a sync point, straight after gathering. Where commands do nothing but set plain
 * values that their entities have, no row comes, goes or moves, and the last set wins if they are done in
 * order: there is nothing to merge and nothing to resolve. */

#include "core/playback/gather.h"

/* Whether that is so. Streams say at once when they hold other commands; then nothing else is looked at. */
bool quern__gathered_is_in_place(const quern__gathered *gathered, const quern__storage *storage);

/* Does all commands, which are so. */
void quern__gathered_apply_in_place(const quern__gathered *gathered, const quern__storage *storage);

#endif
