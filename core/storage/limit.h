/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_LIMIT_H
#define QUERN_CORE_STORAGE_LIMIT_H

/* A limit to the entities that count, by what else they have. */

#include "core/storage/archetype.h"

enum { QUERN__NO_LIMIT = QUERN_MAX_COMPONENTS };

typedef struct quern__limit {
    uint16_t with, without; /* indices of components, or QUERN__NO_LIMIT */
} quern__limit;

static inline bool quern__limit_holds(quern__limit limit, const quern__archetype *archetype)
{
    return (limit.with == QUERN__NO_LIMIT || quern__archetype_has(archetype, limit.with)) &&
           (limit.without == QUERN__NO_LIMIT || !quern__archetype_has(archetype, limit.without));
}

#endif
