/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_LIMIT_H
#define QUERN_CORE_STORAGE_LIMIT_H

/* A filter on archetypes: at most one component that entities must have, and at most one that they must lack. */

#include "core/storage/archetype.h"

enum { QUERN__NO_LIMIT = QUERN_MAX_COMPONENTS };

typedef struct quern__limit {
    uint16_t with, without; /* indices of the required and the excluded component; QUERN__NO_LIMIT: none */
} quern__limit;

/* Returns whether an archetype's entities pass the filter. */
static inline bool quern__limit_holds(quern__limit limit, const quern__archetype *archetype)
{
    return (limit.with == QUERN__NO_LIMIT || quern__archetype_has(archetype, limit.with)) &&
           (limit.without == QUERN__NO_LIMIT || !quern__archetype_has(archetype, limit.without));
}

#endif
