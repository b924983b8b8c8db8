/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_WORLD_H
#define QUERN_CORE_WORLD_H

/* The world: storage, resources, and whether a frame is running on it. */

#include "core/resource.h"
#include "core/storage.h"

#include <quern/world.h>

struct quern_world {
    quern__storage storage;
    quern__resources resources;
    bool locked; /* a frame runs: the calls of world.h are refused */
};

/* WORLD_LOCKED, naming the call, while a frame is running. */
quern_result quern__world_check_unlocked(const quern_world *world, const char *function);

#endif
