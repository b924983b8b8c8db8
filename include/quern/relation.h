/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_RELATION_H
#define QUERN_RELATION_H

/** @file
 * Relations between entities. See docs/relations.md.
 *
 * A relation connects sources to targets: each source has at most one target, and a target has any number
 * of sources. The sources of one target are siblings of each other, and are ordered. (Function names call
 * them children.) A world may have many relations. The built-in hierarchy, quern_world_parent, is the one
 * that names and prefabs use.
 *
 * A relation with `many` has any number of targets per source instead: likes, an inventory, the edges of a
 * graph. Its targets and sources are sets in ascending order of quern_entity_index. The component is a tag
 * without value: sources have it as long as they have a target, so archetypes do not depend on the targets.
 *
 * The target is the value of a component of the source (quern_relation_component), so queries can match
 * sources by it, and callbacks can read it. Never write that value through a pointer: it would contradict
 * the links between siblings, which quern_world_validate reports.
 *
 * A relation with levels is a forest: an entity cannot become its own ancestor. Each archetype, and so each
 * chunk, contains entities of one level: 0 for entities without target, 1 for their sources, and so on up
 * to QUERN_MAX_RELATION_LEVEL, which also contains all deeper entities. Relating an entity costs a move to
 * another archetype for this entity, and for each entity below it that changes its level.
 *
 * Each edge of a relation, a pair of source and target, may have a value (`value` of the definition): a debt,
 * a strength, the offset of a child. It is a component of the source that the world adds and removes with the
 * target, so queries and systems read and write it like any other.
 *
 * When a target is destroyed, the policy of the relation decides what happens to its sources. A call that
 * destroys entities either does all of it or nothing. Sources are destroyed before their targets: in the
 * reverse order of a breadth-first traversal from the entities that the call names.
 *
 * Errors of the functions that change something: those of <quern/world.h>, and INVALID_ARGUMENT (a relation
 * of another world, or a source that is its own target). The functions that query return null or 0 if there
 * is nothing to return, and also, with a message, if the call is wrong. Threads: main, between frames and
 * in exclusive systems. Other systems use quern_context_target and the functions after it in
 * <quern/context.h>, and commands. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>
#include <quern/list.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_RELATION_LEVEL 15 /**< Level of entities with 15 or more ancestors. */
/** Result of quern_entity_sibling_index for an entity without target. */
#define QUERN_NO_SIBLING_INDEX   UINT32_MAX

/** What happens to a source when its target is destroyed. */
typedef enum quern_target_policy {
    QUERN_TARGET_DESTROYS_SOURCE = 0, /**< The source is destroyed, too, with all consequences. */
    QUERN_TARGET_UNRELATES,           /**< The source loses its target. */
    /** The target cannot be destroyed (TARGET_IN_USE), unless the same call destroys all its sources. */
    QUERN_TARGET_REFUSES
} quern_target_policy;

/** Definition of a relation. */
typedef struct quern_relation_def {
    /** Name of 1 to QUERN_MAX_NAME_BYTES bytes. The relation's component has this name, so no other
     * component may. */
    const char *name QUERN__ZERO;
    /** What happens to a source when its target is destroyed. Default: the source is destroyed. */
    quern_target_policy on_target_destroyed QUERN__ZERO;
    /** Whether the relation is a forest with levels. Registers 15 more components. */
    bool levels QUERN__ZERO;
    /** Whether the order of siblings is significant: a new source becomes the last one, and
     * quern_entity_move_before moves it. Otherwise a new source becomes the first one. */
    bool ordered QUERN__ZERO;
    /** Whether a source may have several targets. Excludes `levels` and `ordered`. */
    bool many QUERN__ZERO;
    /** Component with the values of edges; null: edges have no values. No entity may have it yet. From then
     * on, a source has it as long as it has a target, and only relating adds it. With one target per source,
     * it is the value of the edge, of any type. With `many`, its one field is a list of structs, one per edge
     * in the order of targets, of which the first member is a quern_entity, the target; it has neither a
     * default value nor hooks of its own. */
    quern_component value QUERN__ZERO;
} quern_relation_def;

/** Registers a relation and its component. Registering the same name with the same definition again returns
 * the same relation. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, DUPLICATE_NAME (a component or another
 * relation has the name), LIMIT (QUERN_MAX_COMPONENTS), WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between
 * frames. */
QUERN_API quern_result quern_relation_register(quern_world *world, const quern_relation_def *def,
                                               quern_relation *out_relation);

/** Returns the relation with the given name, or null if there is none. Threads: any, while no thread
 * registers. */
QUERN_API quern_relation quern_relation_find(const quern_world *world, const char *name);

/** Returns the world's hierarchy: the relation "parent", with levels, ordered, in which children are
 * destroyed with their parent. The first call registers it, which callbacks cannot do: call it once before
 * the first frame whose callbacks use it. Returns null, with a message, if registering fails: in a callback,
 * if memory is exhausted, or if a component has the name. Threads: main, between frames; any once it is
 * registered, while no thread registers. */
QUERN_API quern_relation quern_world_parent(quern_world *world);

/** Returns the component that stores the target, a quern_entity. Terms may match and read it. Functions
 * that set, add or create any component also accept this one, and then relate the entity: quern_entity_set,
 * quern_entity_add, quern_entity_create_with and their commands. Removing it unrelates the entity. Any
 * other way to write it is an error. Of a relation with `many`, it is a tag: terms may match it, removing
 * it removes all targets, and adding or setting it is an error. */
static inline quern_component quern_relation_component(quern_relation relation)
{
    quern_component component = {relation.bits};
    return component;
}

/** Returns the component with the values of edges, `value` of the definition; null if edges have none. Threads:
 * any, while no thread registers. */
QUERN_API quern_component quern_relation_value(const quern_world *world, quern_relation relation);

/** Returns whether the handle is null. */
static inline bool quern_relation_is_null(quern_relation relation)
{
    return relation.bits == 0;
}

/** Returns whether both handles are the same. */
static inline bool quern_relation_equal(quern_relation a, quern_relation b)
{
    return a.bits == b.bits;
}

/* ------------------------------------------------------------------------------------------ changing */

/** Sets the target of the source, replacing its current target. The source becomes the last of its
 * siblings, or the first if the relation is not ordered. In a relation with `many`, adds the target to those
 * of the source, in O(log n) of the numbers of its targets and of the target's sources; the source's row
 * moves only with its first target. If the source has this target already, nothing changes.
 * Further errors: CYCLE (only with levels), SIBLING_NAME_TAKEN (in quern_world_parent: a sibling has the source's
 * name), TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_entity_relate(quern_world *world, quern_entity source, quern_relation relation,
                                           quern_entity target);

/** Relates sources[i] to targets[i] for i from 0 to count - 1, as calls of quern_entity_relate would in
 * this order: a source may occur more than once, and each pair sees the result of the pairs before it. All
 * links change first; then the row of each entity with a changed level moves once, in the order of rows, so
 * the row order differs from that after single calls. It is the order that the same commands would produce
 * at a sync point. The entities' memory is prefetched, which is fast for many entities in random order.
 *
 * Relates all or none. Errors: as quern_entity_relate, for the first pair that fails; NULL_ARGUMENT (a list
 * is NULL and count is not 0). */
QUERN_API quern_result quern_entity_relate_many(quern_world *world, const quern_entity *sources,
                                                quern_relation relation, const quern_entity *targets,
                                                uint32_t count);

/** Removes the target of the source, or all its targets in a relation with `many`. Further errors:
 * COMPONENT_ABSENT (the source has no target), SIBLING_NAME_TAKEN (in quern_world_parent: another root has
 * its name). */
QUERN_API quern_result quern_entity_unrelate(quern_world *world, quern_entity source,
                                             quern_relation relation);

/** Removes one target of the source. In a relation with `many`, the row of the source moves only with its
 * last target. Further errors: COMPONENT_ABSENT (the source does not have this target), SIBLING_NAME_TAKEN
 * (as quern_entity_unrelate). */
QUERN_API quern_result quern_entity_unrelate_from(quern_world *world, quern_entity source,
                                                  quern_relation relation, quern_entity target);

/** Moves the source among its siblings: before the sibling `before`, or to the end if that is null. Further
 * errors: INVALID_ARGUMENT (the relation is not ordered, or `before` is no sibling), COMPONENT_ABSENT (the
 * source has no target). */
QUERN_API quern_result quern_entity_move_before(quern_world *world, quern_entity source,
                                                quern_relation relation, quern_entity before);

/* ------------------------------------------------------------------------------------ values of edges */

/* An edge begins with the value that relating gives it, otherwise with the default value of the component, or
 * with zero bytes in a relation with `many`. Relating to the same target again keeps the value; relating to
 * another target makes a new edge. `value` below is of the type of the component. With `many` it is an element
 * of the list instead, and its target member is ignored when it is read. */

/** Relates like quern_entity_relate, and sets the value of the edge, also of an existing one. The value is
 * copied. Further errors: INVALID_ARGUMENT (edges of the relation have no values), PROVISIONAL_ENTITY. */
QUERN_API quern_result quern_entity_relate_with(quern_world *world, quern_entity source,
                                                quern_relation relation, quern_entity target,
                                                const void *value);

/** Sets the value of an edge. The value is copied. O(log n) in a relation with `many`, but O(n) if a saved
 * state shares the values of the source. Further errors: COMPONENT_ABSENT (the source does not have this
 * target), INVALID_ARGUMENT (edges of the relation have no values), PROVISIONAL_ENTITY. */
QUERN_API quern_result quern_entity_set_edge_value(quern_world *world, quern_entity source,
                                                   quern_relation relation, quern_entity target,
                                                   const void *value);

/** Returns the value of an edge for reading, until the world changes; NULL if the source does not have the
 * target, and, with a message, if edges of the relation have no values. O(log n) in a relation with `many`. */
QUERN_API const void *quern_entity_edge_value(const quern_world *world, quern_entity source,
                                              quern_relation relation, quern_entity target);

/** Returns the index of a target's element in a list with values of edges of a relation with `many`, such as a
 * system reads by a term; the number of elements if there is none, or if `list` is NULL. element_bytes: size of an
 * element. O(log n). Change the other members of elements, but neither their targets nor their number, which
 * quern_world_validate reports. Threads: as reading the list. */
QUERN_API uint32_t quern_edge_values_find(const quern_list *list, uint32_t element_bytes,
                                          quern_entity target);

/* ------------------------------------------------------------------------------------------- looking */

/** Returns the target of the source, or its first target; null if it has none. */
QUERN_API quern_entity quern_entity_target(const quern_world *world, quern_entity source,
                                           quern_relation relation);

/** Returns the entity itself, if it has the component, or else its nearest ancestor in the relation that has it; null if
 * there is none. The component may be a tag, and may be disabled. Systems use quern_context_nearest. Further errors, with
 * a message and null: UNKNOWN_COMPONENT, INVALID_ARGUMENT (the relation has no levels). */
QUERN_API quern_entity quern_entity_nearest(const quern_world *world, quern_entity entity,
                                            quern_relation relation, quern_component component);

/** Returns whether the source has the target. O(log n) in a relation with `many`. Returns false, with a
 * message, if one of them is not alive. */
QUERN_API bool quern_entity_has_target(const quern_world *world, quern_entity source,
                                       quern_relation relation, quern_entity target);

/** Returns the number of targets of the source. O(1). */
QUERN_API uint32_t quern_entity_target_count(const quern_world *world, quern_entity source,
                                             quern_relation relation);

/** Returns the target of the source after the given one, or the first target if that is null; null after
 * the last. In a relation with `many`, the given entity need not be a target any more: the next target is
 * the one with the next larger index, found in O(log n). So targets may be added and removed between the
 * calls. */
QUERN_API quern_entity quern_entity_next_target(const quern_world *world, quern_entity source,
                                                quern_relation relation, quern_entity target);

/** Stores up to `capacity` targets of the source, in their order, and returns how many it has. out_targets
 * may be NULL if capacity is 0. */
QUERN_API uint32_t quern_entity_list_targets(const quern_world *world, quern_entity source,
                                             quern_relation relation, quern_entity *out_targets,
                                             uint32_t capacity);

/** Returns the first source of the target; null if it has none. */
QUERN_API quern_entity quern_entity_first_source(const quern_world *world, quern_entity target,
                                                 quern_relation relation);

/** Returns the source of the target after the given one, or the first source if that is null; null after
 * the last. In a relation with `many`, as quern_entity_next_target; otherwise the given entity must be a
 * source of the target. */
QUERN_API quern_entity quern_entity_next_source(const quern_world *world, quern_entity target,
                                                quern_relation relation, quern_entity source);

/** Returns the sibling after the source; null after the last. This function and the others on siblings are
 * for relations without `many`: a source with several targets has siblings for each of them. */
QUERN_API quern_entity quern_entity_next_sibling(const quern_world *world, quern_entity source,
                                                 quern_relation relation);

/** Returns the sibling before the source; null before the first. */
QUERN_API quern_entity quern_entity_previous_sibling(const quern_world *world, quern_entity source,
                                                     quern_relation relation);

/** Returns the number of sources of the target. O(1). */
QUERN_API uint32_t quern_entity_source_count(const quern_world *world, quern_entity target,
                                             quern_relation relation);

/** Stores up to `capacity` sources of the target, in their order, and returns how many it has. out_sources
 * may be NULL if capacity is 0. For many targets at once: quern_entity_list_sources_many (<quern/getter.h>). */
QUERN_API uint32_t quern_entity_list_sources(const quern_world *world, quern_entity target,
                                             quern_relation relation, quern_entity *out_sources,
                                             uint32_t capacity);

/** Returns the number of siblings before the source; QUERN_NO_SIBLING_INDEX if it has no target. O(number
 * of siblings). */
QUERN_API uint32_t quern_entity_sibling_index(const quern_world *world, quern_entity source,
                                              quern_relation relation);

#ifdef __cplusplus
}
#endif

#endif
