/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CHECK_VALIDATE_H
#define QUERN_CORE_CHECK_VALIDATE_H

/* The parts of quern_world_validate. Each fails with CORRUPT at the first broken invariant. */

#include "core/world/world_internal.h"

/* Makes the calling function fail with CORRUPT and a formatted message if the condition is false. */
#define REQUIRE(condition, ...)                                                 \
    do {                                                                        \
        if (!(condition)) return quern__fail(QUERN_ERROR_CORRUPT, __VA_ARGS__); \
    } while (0)

#endif
