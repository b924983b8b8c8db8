/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_NAME_H
#define QUERN_NAME_H

/** @file
 * Names of entities, and searching for entities by path.
 *
 * A name consists of 1 to QUERN_MAX_ENTITY_NAME_BYTES bytes of UTF-8 without '/'. Names are unique among
 * siblings in quern_world_parent; entities without parent count as siblings of each other. A path consists
 * of the names from a root down, separated by '/', and identifies at most one entity: "arena/tower/gun".
 *
 * Names are stored outside of the components, and cost nothing for entities without a name. An entity
 * keeps its name when it moves or gets another parent; getting a parent fails if a new sibling has the
 * name (SIBLING_NAME_TAKEN). Destroying an entity removes its name.
 *
 * A search costs one hash table look-up per name of the path, regardless of the number of siblings. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>
#include <quern/sink.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_ENTITY_NAME_BYTES 63 /**< Maximum size of an entity's name in bytes. */

/** Sets the name of an entity, replacing its current name; NULL or "" removes it. The name is copied, and
 * may be a pointer from quern_entity_name. Errors: NULL_ARGUMENT, WORLD_LOCKED, those of a wrong handle,
 * INVALID_ARGUMENT (too long, not UTF-8, or contains '/'), SIBLING_NAME_TAKEN (a sibling has the name; the message
 * identifies it), OUT_OF_MEMORY. Threads: main, between frames and in exclusive systems. */
QUERN_API quern_result quern_entity_set_name(quern_world *world, quern_entity entity, const char *name);

/** Returns the name of an entity, or NULL if it has none; also NULL, with a message, if the handle is
 * wrong. Valid until the entity's name changes or the entity is destroyed. Threads: any, also in frames,
 * in which names change at sync points only. */
QUERN_API const char *quern_entity_name(const quern_world *world, quern_entity entity);

/** Returns the entity with the given path from a root, or null if there is none; also null, with a
 * message, if an argument is NULL. Threads: as quern_entity_name. */
QUERN_API quern_entity quern_entity_find(const quern_world *world, const char *path);

/** Returns the entity with the given path from a child of the parent, or null if there is none. A path of
 * one name finds the child with that name. Also null, with a message, if the handle is wrong or an
 * argument is NULL. Threads: as quern_entity_name. */
QUERN_API quern_entity quern_entity_find_child(const quern_world *world, quern_entity parent,
                                               const char *path);

/** Writes the path of an entity from its root. An ancestor without a name is written as '#' and the index
 * of its slot; such a path is for people, and does not lead back to the entity: quern_entity_to_text does. Errors:
 * NULL_ARGUMENT, those of a wrong handle,
 * OUT_OF_MEMORY (only with more than 64 ancestors), IO. Threads: as quern_entity_name. */
QUERN_API quern_result quern_entity_get_path(const quern_world *world, quern_entity entity,
                                             quern_sink sink);

#ifdef __cplusplus
}
#endif

#endif
