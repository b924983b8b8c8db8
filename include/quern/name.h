/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_NAME_H
#define QUERN_NAME_H

/** @file
 * Names of entities, and finding entities by path.
 *
 * A name is 1 to QUERN_MAX_ENTITY_NAME_BYTES bytes of UTF-8 without '/'. Names are unique among siblings
 * under quern_world_parent; entities without parent are siblings of each other. So a path, the names from a
 * root down, separated by '/', leads to one entity at most: "arena/tower/gun". Names lie beside the
 * components, and cost nothing where there are none. They stay when an entity moves or gets another parent,
 * which is refused where a new sibling has its name (NAME_TAKEN), and go when it is destroyed.
 *
 * Finding takes one look into a hash table for each name of the path, however many siblings there are. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>
#include <quern/sink.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_ENTITY_NAME_BYTES 63 /**< Bytes in the name of an entity. */

/** Gives an entity a name, instead of the one that it may have; NULL or "" takes its name away. The name is
 * copied; it may be one that the world has lent. Errors: NULL_ARGUMENT, WORLD_LOCKED, those of a wrong
 * handle, INVALID_ARGUMENT (too long, not UTF-8, or with '/'), NAME_TAKEN (by a sibling, which the message
 * names), OUT_OF_MEMORY. Threads: main, between frames and in exclusive systems. */
QUERN_API quern_result quern_entity_set_name(quern_world *world, quern_entity entity, const char *name);

/** Returns the name of an entity, or NULL if it has none; also NULL, with a message, for a wrong handle.
 * Valid until the entity gets another name or dies. Threads: any, also in frames, where names change at
 * sync points alone. */
QUERN_API const char *quern_entity_name(const quern_world *world, quern_entity entity);

/** Returns the entity at the end of a path that begins at a root, or null if there is none. Also null, with
 * a message, when an argument is NULL. Threads: as quern_entity_name. */
QUERN_API quern_entity quern_entity_find(const quern_world *world, const char *path);

/** Returns the entity at the end of a path that begins at a child of the parent, or null if there is none:
 * for a path of one name, the child of that name. Also null, with a message, for a wrong handle and when an
 * argument is NULL. Threads: as quern_entity_name. */
QUERN_API quern_entity quern_entity_find_child(const quern_world *world, quern_entity parent,
                                               const char *path);

/** Writes the path of an entity from its root down. For an entity on the way that has no name, '#' and the
 * index of its slot stand there; such a path cannot be found. Errors: NULL_ARGUMENT, those of a wrong
 * handle, OUT_OF_MEMORY (only below more than 64 ancestors), FILE. Threads: as quern_entity_name. */
QUERN_API quern_result quern_entity_get_path(const quern_world *world, quern_entity entity,
                                             quern_sink sink);

#ifdef __cplusplus
}
#endif

#endif
