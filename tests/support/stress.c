/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/stress.h"

#include "core/platform/platform.h"

#include <stdlib.h>

double stress_seconds_now(void)
{
    return (double)quern__clock_ns() * 1e-9;
}

double stress_deadline(double default_seconds, double share)
{
    const char *text = getenv("QUERN_STRESS_SECONDS");
    double seconds = text != NULL ? strtod(text, NULL) : 0;
    return stress_seconds_now() + (seconds > 0 ? seconds : default_seconds) / share;
}

uint64_t stress_seed(uint64_t default_seed)
{
    const char *text = getenv("QUERN_STRESS_SEED");
    return text != NULL ? strtoull(text, NULL, 10) : default_seed;
}
