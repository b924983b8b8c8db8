/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_PLAYBACK_KIND_CALLS_H
#define QUERN_CORE_PLAYBACK_KIND_CALLS_H

/* The functions `read`, `set` and `play` of each kind in QUERN__COMMAND_KINDS. */

#include "core/playback/effect.h"
#include "core/playback/in_place.h"
#include "core/playback/play.h"

typedef struct quern__kind_calls {
    quern__read_function *read;
    quern__set_function *set;
    quern__play_function *play;
} quern__kind_calls;

/* Indexed by quern__operation_kind. */
extern const quern__kind_calls quern__kind_calls_of[QUERN__OPERATION_COUNT];

#endif
