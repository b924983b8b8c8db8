/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback/kind_calls.h"

#define CALLS(name, traits, read, set, play, ...) [QUERN__OPERATION_##name] = {read, set, play},
const quern__kind_calls quern__kind_calls_of[QUERN__OPERATION_COUNT] = {QUERN__COMMAND_KINDS(CALLS)};

/* A kind with the trait IN_PLACE must have a function `set`. */
#define HAS_FUNCTION(function) QUERN__TYPES_DIFFER(function, void *)
#define CHECK_SET(name, traits, read, set, ...)                                \
    _Static_assert(HAS_FUNCTION(set) || ((traits)&QUERN__TRAIT_IN_PLACE) == 0, \
                   #name " is IN_PLACE and has no function `set`");
QUERN__COMMAND_KINDS(CHECK_SET)
