/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls of active.h. Queries look at the tag when they match archetypes: see core/world/query.c. */

#include <quern/active.h>

#include "core/world/world.h"

/* A component of that name which the program has registered may stand in archetypes that queries have
 * matched already; so it cannot become the one that keeps entities out. */
static quern_result register_disabled(quern_world *world)
{
    quern__storage *storage = &world->storage;
    quern_result result = quern__world_check_unlocked(world, "quern_world_disabled");
    if (result != QUERN_OK) return result;
    const quern_component_def def = {.name = "disabled"};
    if (quern__components_find(&storage->components, def.name).bits != 0)
        return quern__fail(
            QUERN_ERROR_DUPLICATE_NAME,
            "quern_world_disabled: the world has a component 'disabled' already, which is the "
            "name of the built-in tag: give it another name, or call this first");
    quern_component component;
    result = quern__components_register(&storage->components, &storage->allocator, &def, &component);
    if (result != QUERN_OK) return quern__in_call(result, "quern_world_disabled");
    storage->disabled_index = quern__component_index(component);
    return QUERN_OK;
}

quern_component quern_world_disabled(quern_world *world)
{
    const quern_component none = {0};
    if (world == NULL) {
        quern__fail_null("quern_world_disabled", "world");
        return none;
    }
    if (world->storage.disabled_index == QUERN__NO_COMPONENT) {
        if (!quern__world_enter(world, "quern_world_disabled")) return none;
        if (quern__world_left(world, register_disabled(world)) != QUERN_OK) return none;
    }
    return quern__component_handle(&world->storage.components, world->storage.disabled_index);
}
