/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_WORLD_RESOURCE_H
#define QUERN_CORE_WORLD_RESOURCE_H

/* The registry of a world's resources (singletons), and their values. */

#include "core/base/array.h"
#include "core/base/handle.h"
#include "core/storage/type_internal.h"

typedef struct quern__resource {
    quern__type type;
    void *value; /* value of the type; its address never changes */
} quern__resource;

typedef struct quern__resources {
    QUERN__ARRAY(quern__resource) list;
    uint32_t world_tag;
} quern__resources;

/* Destroys the values, and frees the registry's memory. */
void quern__resources_release(quern__resources *resources, const quern_allocator *allocator);

/* Registers a resource; returns the existing one if its name is registered with the same layout. Fails like
 * quern_resource_register. */
quern_result quern__resources_register(quern__resources *resources, const quern_allocator *allocator,
                                       const quern_resource_def *def, quern_resource *out_resource);

/* Returns the resource with the given name, or a null handle. */
quern_resource quern__resources_find(const quern__resources *resources, const char *name);

/* Fails with UNKNOWN_RESOURCE if the handle names no resource of this registry. */
quern_result quern__resources_check(const quern__resources *resources, quern_resource resource);

static inline uint32_t quern__resource_index(quern_resource resource)
{
    return quern__handle_index(resource.bits);
}

#endif
