/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_DESTROY_H
#define QUERN_CORE_CALLS_DESTROY_H

/* Destroys entities in a world with links or names (storage->has_attachments). */

#include "core/relations/relate.h"
#include "core/world/world_internal.h"

/* Destroys living entities and the sources that the policies of relations destroy with them. These sources end
 * first, sources before their targets; then the listed entities end in their order. The list may contain an entity
 * twice. Errors, with nothing changed: TARGET_IN_USE, OUT_OF_MEMORY, those of quern__storage_ensure_archetype. */
quern_result quern__world_destroy_cascade(quern_world *world, const quern_entity *entities, uint32_t count);

#endif
