/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_GAPS_H
#define QUERN_CORE_STORAGE_GAPS_H

/* Closing many gaps of an archetype at once, for changes of many entities. The order of rows that results is part of
 * what a sync point promises (core/playback/resolve.h). */

#include "core/base/executor.h"
#include "core/storage/change.h"

/* Fills the gaps of an archetype, and removes its last `count` rows. The rows after the new end that are no gaps fill
 * the gaps before it, in order. gaps: the locations of `count` raw rows, ascending, each once. tails: memory for
 * `count` locations. executor NULL: runs on the calling thread. */
void quern__rows_close_gaps(quern__storage *storage, quern__archetype *archetype, const uintptr_t *gaps,
                            uint32_t count, uintptr_t *tails, const quern__executor *executor);

#endif
