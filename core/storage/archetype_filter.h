/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_STORAGE_ARCHETYPE_FILTER_H
#define QUERN_CORE_STORAGE_ARCHETYPE_FILTER_H

/* A filter on archetypes: at most one component that entities must have, and at most one that they must lack. */

#include "core/storage/archetype.h"

enum { QUERN__FILTER_NONE = QUERN_MAX_COMPONENTS };

typedef struct quern__archetype_filter {
    uint16_t with;    /* index of the required component, or QUERN__FILTER_NONE */
    uint16_t without; /* index of the excluded component, or QUERN__FILTER_NONE */
} quern__archetype_filter;

/* Returns whether an archetype's entities pass the filter. */
static inline bool quern__archetype_filter_passes(quern__archetype_filter filter,
                                                  const quern__archetype *archetype)
{
    return (filter.with == QUERN__FILTER_NONE || quern__archetype_has(archetype, filter.with)) &&
           (filter.without == QUERN__FILTER_NONE || !quern__archetype_has(archetype, filter.without));
}

#endif
