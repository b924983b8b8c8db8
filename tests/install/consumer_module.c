/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/kit/live.h>
#include <quern/quern.h>

typedef struct Apples {
    int32_t count;
} Apples;

QUERN_SYSTEM(pick, (Apples, apples))
{
    (void)context;
    QUERN_ROWS(i) apples[i].count++;
}

static quern_result load(quern_live_module *module)
{
    QUERN_TRY(QUERN_REGISTER(module->world, Apples, count));
    return QUERN_ADD_SYSTEM(module->schedule, pick);
}

QUERN_LIVE_MODULE(load, NULL)
