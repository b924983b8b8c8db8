/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_ARCHIVE_LOAD_OUTSIDE_H
#define QUERN_CORE_ARCHIVE_LOAD_OUTSIDE_H

/* Loading entities that have targets outside of their list. The archive describes their rows as if they had no such
 * target; in the world they also have the component of the relation, and they and all entities below them have levels
 * that follow from the target's. So rows of one archived archetype may belong to several archetypes. */

#include "core/archive/image.h"

/* Returns whether any entity of the image has a target outside of the list. */
bool quern__image_leads_outside(const quern__image *image);

/* Computes the levels that the entities have in the world. Errors: OUT_OF_MEMORY. */
quern_result quern__image_raise_levels(const quern__image *image);

/* Reserves a row for each entity in the archetype that it has in the world. out_archetypes: by slot of the archive.
 * Errors: OUT_OF_MEMORY, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
quern_result quern__load_outside_reserve(const quern__image *image, quern__archetype **out_archetypes);

#endif
