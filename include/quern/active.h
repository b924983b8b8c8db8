/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_ACTIVE_H
#define QUERN_ACTIVE_H

/** @file
 * Entities that are disabled: they live on, keep their components and their handles, and are left out.
 *
 * A world has one tag for this. Queries and systems leave out the entities that have it, unless one of
 * their terms names it: quern_term_with for the disabled alone, quern_term_optional for all,
 * quern_term_without for what would come without the term, too. So do all calls that take a query, such as
 * quern_entity_destroy_matching. This is decided when an archetype is matched, and costs nothing per chunk
 * or row. A term of any match and access counts.
 *
 * Calls that are given a handle reach disabled entities as all others: getters, lookups, commands. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Returns the tag of entities that are disabled, which is registered under the name "disabled" when it is
 * first asked for. Add and remove it as any other tag, also by command and for many entities at a time.
 *
 * Returns the null component, with a message, when the call is wrong or the tag cannot be registered: where
 * a component of the program has the name (DUPLICATE_NAME), while a frame runs (WORLD_LOCKED), LIMIT,
 * OUT_OF_MEMORY. Ask for it once before the first frame; from then on threads and frames do not matter. */
QUERN_API quern_component quern_world_disabled(quern_world *world);

#ifdef __cplusplus
}
#endif

#endif
