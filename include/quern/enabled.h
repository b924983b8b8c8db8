/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_ENABLED_H
#define QUERN_ENABLED_H

/** @file
 * Disabled entities: they remain alive with their components and handles, but queries and systems leave
 * them out.
 *
 * A world has one tag for this. Queries and systems leave out the entities that have the tag, unless one
 * of their terms names it: quern_term_with selects only disabled entities, quern_term_optional selects
 * all, quern_term_without is the default. Functions with a query, such as quern_entity_destroy_matching,
 * follow the same rule. It is applied when an archetype is matched, and costs nothing per chunk or row.
 * The match and access of the term do not matter.
 *
 * Functions with a handle work on disabled entities as on all others: getters, lookups, commands. Up-terms (quern_term_up,
 * quern_term_up_nearest) find values of disabled entities, too: only the entities of rows are left out.
 *
 * quern_entity_set_enabled disables and enables whole trees of quern_world_parent. An entity with the tag
 * is disabled for one of two reasons, which a hidden second tag distinguishes. It is disabled *by itself*
 * if this function was called on it, or another function added the tag. It is disabled *through its
 * parent* if disabling a tree above it added the tag. Disabling a tree and enabling it again therefore
 * restores which entities were disabled by themselves before. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Returns the tag of disabled entities. The first call registers it under the name "disabled". Add and
 * remove it like any other tag, also by commands and for many entities at a time.
 *
 * Returns null, with a message, if the call is wrong or the tag cannot be registered: DUPLICATE_NAME (a
 * component of the program has the name), WORLD_LOCKED (a frame is running), LIMIT, OUT_OF_MEMORY. Call it
 * once before the first frame; afterwards it may be called at any time, on any thread. */
QUERN_API quern_component quern_world_disabled_tag(quern_world *world);

/** Disables or enables an entity and all its descendants in quern_world_parent.
 *
 * `false` disables the entity by itself. `true` ends that: the entity is then enabled, or disabled through
 * its parent if the parent is disabled. Then all descendants are updated, parents first. A descendant that
 * is disabled by itself remains so; any other one is enabled if its parent is enabled, and otherwise
 * disabled through its parent.
 *
 * Only this function considers parents, and quern_commands_set_enabled, which does the same by command.
 * Relating an entity to a disabled parent, or creating it there, does not disable it. Its state, and that of
 * an entity to which another function adds the tag, remains until a tree that contains it is disabled or
 * enabled. If an entity was disabled through its parent, and other functions remove the tag and add it again
 * before that, it is disabled through its parent again.
 *
 * The call succeeds completely or changes nothing. Rows move in depth-first order, siblings in their
 * order. Errors: those of the functions on entities in <quern/world.h>, TOO_MANY_COMPONENTS, LIMIT, and
 * those of quern_world_disabled_tag if the tag is not registered yet. Threads: main, between frames and in
 * exclusive systems. */
QUERN_API quern_result quern_entity_set_enabled(quern_world *world, quern_entity entity, bool active);

/** Returns whether the entity is enabled: it does not have the tag. False, with a message, if the handle
 * is wrong. Threads: main, between frames and in exclusive systems. */
QUERN_API bool quern_entity_is_enabled(const quern_world *world, quern_entity entity);

#ifdef __cplusplus
}
#endif

#endif
