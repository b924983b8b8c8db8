/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/record/kinds.h"

#include <stddef.h>

#define KIND_ROW(name, kind_traits, read, set, play, ...) \
    [QUERN__OPERATION_##name] = {.traits = (uint8_t)(kind_traits), __VA_ARGS__},
const quern__command_kind quern__command_kinds[QUERN__OPERATION_COUNT] = {QUERN__COMMAND_KINDS(KIND_ROW)};
