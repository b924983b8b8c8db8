/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_DESTROY_H
#define QUERN_CORE_CALLS_DESTROY_H

/* Destroying in a world whose entities may be attached to each other (storage->has_attachments). */

#include "core/relations/relate.h"
#include "core/world/world_internal.h"

/* Destroys living entities and all that end with them: first those that follow, children before their
 * targets, then the listed ones in their order. An entity may be in the list twice. Errors: TARGET_IN_USE,
 * OUT_OF_MEMORY, those of quern__storage_ensure_archetype; then nothing has changed. */
quern_result quern__world_destroy_attached(quern_world *world, const quern_entity *entities,
                                           uint32_t count);

#endif
