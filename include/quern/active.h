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
 * Calls that are given a handle reach disabled entities as all others: getters, lookups, commands.
 *
 * quern_entity_set_active switches whole trees under quern_world_parent off and on. An entity without the tag
 * is on. An entity with it is off for one of two reasons, which the world tells apart by a hidden tag: it is
 * off by itself if it was switched off or got the tag by another call, and off because of its parent if a
 * switch of a tree above it gave it the tag. Switching a tree off and on again restores what was off by itself
 * before, because only the second reason follows from the parent. */

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

/** Switches an entity and all entities below it under quern_world_parent off or on.
 *
 * `false` makes the entity off by itself. `true` ends that: the entity is on, or off because of its parent if
 * its parent is off. Then all entities below follow, parents first. One that is off by itself stays so; each
 * other one is on if its parent is on, and off because of its parent otherwise.
 *
 * Only this call looks at parents. An entity that is related to or created under one that is off, or that gets
 * or loses the tag by another call, keeps the state that it has until a tree that contains it is switched. An
 * entity that was off because of its parent, and loses the tag and gets it back by other calls before that, is
 * off because of its parent again.
 *
 * All of it is done or nothing. Rows change in the order of a walk from the entity, children in their order,
 * each before its next sibling. Errors: as those of the calls in <quern/world.h> on entities,
 * TOO_MANY_COMPONENTS, LIMIT, and as quern_world_disabled where the tag is not registered yet. Threads: main,
 * between frames and in exclusive systems. */
QUERN_API quern_result quern_entity_set_active(quern_world *world, quern_entity entity, bool active);

/** Returns whether the entity is on: it does not have the tag. False, with a message, for a wrong handle.
 * Threads: main, between frames and in exclusive systems. */
QUERN_API bool quern_entity_is_active(const quern_world *world, quern_entity entity);

#ifdef __cplusplus
}
#endif

#endif
