/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_RELATION_H
#define QUERN_RELATION_H

/** @file
 * Relations: entities that belong to other entities. See docs/relations.md.
 *
 * A relation ties sources to targets: each source has one target at most, a target any number of sources,
 * its children. The children of one target are siblings, and have an order. A world may have many relations;
 * quern_world_parent is the one that names and prefabs know, too.
 *
 * The target is the value of a component of the source (quern_relation_component), so queries match sources
 * by it and kernels read it. Never write that value through a pointer: it would no longer be what the links
 * between siblings say, and quern_world_validate reports it.
 *
 * A relation with levels is a forest: who would become his own ancestor is refused. Each archetype, and so
 * each chunk, holds entities of one level: 0 without target, 1 for children of those, up to
 * QUERN_MAX_RELATION_LEVEL, which holds everything that is deeper, too. Relating an entity takes the time
 * of a change of archetype, for it and for all those below it whose level changes.
 *
 * When the target is destroyed, the policy of the relation decides about its children. A call that destroys
 * does all of it or nothing: children end before their parents, in the reverse of the order in which a walk
 * from what was named, level by level, comes to them.
 *
 * Errors of the calls that change something: as those of <quern/world.h>, INVALID_ARGUMENT for a relation
 * that the world does not have and for a source that is its own target. The calls that look return null or 0
 * where there is nothing, and say so in a message where the call is wrong. Threads: main, between frames
 * and in exclusive systems. In other systems: quern_context_target and its neighbours in
 * <quern/context.h>, and commands. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_RELATION_LEVEL 15         /**< The level of entities with 15 ancestors and more. */
#define QUERN_NO_SIBLING_INDEX   UINT32_MAX /**< quern_entity_sibling_index of an entity without target. */

/** What becomes of a source when its target is destroyed. */
typedef enum quern_target_policy {
    QUERN_TARGET_DESTROYS_SOURCE = 0, /**< It is destroyed, too, and all that follows from that. */
    QUERN_TARGET_UNRELATES,           /**< It lives on without a target. */
    /** The target cannot be destroyed (TARGET_IN_USE), unless the same call destroys all its sources. */
    QUERN_TARGET_REFUSES
} quern_target_policy;

/** Describes a relation. */
typedef struct quern_relation_def {
    /** 1 to QUERN_MAX_NAME_BYTES bytes; also the name of its component, so no other component has it. */
    const char *name QUERN__ZERO;
    quern_target_policy on_target_destroyed QUERN__ZERO; /**< Default: the source is destroyed. */
    bool levels QUERN__ZERO; /**< A forest, whose entities lie level by level. Takes 15 more components. */
    /** A new child becomes the last of its siblings, and quern_entity_place moves it among them. Otherwise it
     * becomes the first. */
    bool ordered QUERN__ZERO;
} quern_relation_def;

/** Registers a relation, and its component with it. The same name with the same definition gives the same
 * relation again. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, DUPLICATE_NAME (a component or another relation
 * has the name), LIMIT (QUERN_MAX_COMPONENTS), WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between
 * frames. */
QUERN_API quern_result quern_relation_register(quern_world *world, const quern_relation_def *def,
                                               quern_relation *out_relation);

/** Returns the relation of that name, or null. Threads: any, while nobody registers. */
QUERN_API quern_relation quern_relation_find(const quern_world *world, const char *name);

/** Returns the hierarchy of the world: the relation "parent", with levels, ordered, whose sources are
 * destroyed with their target. It is registered when it is first asked for. Null, with a message, when that
 * fails: there is no memory, or a component has the name. Threads: main, between frames; once it is
 * registered any, while nobody registers. */
QUERN_API quern_relation quern_world_parent(quern_world *world);

/** Returns the component whose value is the target, a quern_entity. Terms may read it and ask for it; its
 * value changes by relating alone. As far as a call takes any component, setting or adding this one
 * relates, and removing it unrelates: quern_entity_set, _add, _remove, _create_with and their commands.
 * Where that is not so the call is refused. */
static inline quern_component quern_relation_component(quern_relation relation)
{
    quern_component component = {relation.bits};
    return component;
}

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

/** Gives the source a target, instead of the one that it may have. It becomes the last of its siblings, or
 * the first where the relation is not ordered; if the target is its target already, nothing changes.
 * Further errors: CYCLE (only with levels), NAME_TAKEN (a sibling under quern_world_parent would have the
 * name of the source), TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_entity_relate(quern_world *world, quern_entity source, quern_relation relation,
                                           quern_entity target);

/** Relates count sources, the i-th to the i-th target, as quern_entity_relate would one after the other: a
 * source may come more than once, and a pair finds what those before it have left. Links change first, and
 * then the row of each entity whose level changes moves once, so the order of rows is another than after
 * single calls. Memory is asked for ahead, which pays where they are many and lie anywhere.
 *
 * All is done or nothing. Errors: as quern_entity_relate, about the first pair that cannot be; NULL_ARGUMENT
 * where a list is NULL and count is not 0. */
QUERN_API quern_result quern_entity_relate_many(quern_world *world, const quern_entity *sources,
                                                quern_relation relation, const quern_entity *targets,
                                                uint32_t count);

/** Takes the target from the source. Further errors: COMPONENT_ABSENT (it has none), NAME_TAKEN (by an entity
 * without parent). */
QUERN_API quern_result quern_entity_unrelate(quern_world *world, quern_entity source,
                                             quern_relation relation);

/** Moves the source among its siblings, before the one given, or to the end where that is null. Further
 * errors: INVALID_ARGUMENT (the relation is not ordered, or the other is no sibling), COMPONENT_ABSENT (the
 * source has no target). */
QUERN_API quern_result quern_entity_place(quern_world *world, quern_entity source, quern_relation relation,
                                          quern_entity before);

/* ------------------------------------------------------------------------------------------- looking */

/** Returns the target of the source; null if it has none. */
QUERN_API quern_entity quern_entity_target(const quern_world *world, quern_entity source,
                                           quern_relation relation);

/** Returns the first child of the target; null if it has none. */
QUERN_API quern_entity quern_entity_first_child(const quern_world *world, quern_entity target,
                                                quern_relation relation);

/** Returns the sibling after the source; null after the last. */
QUERN_API quern_entity quern_entity_next_sibling(const quern_world *world, quern_entity source,
                                                 quern_relation relation);

/** Returns the sibling before the source; null before the first. */
QUERN_API quern_entity quern_entity_previous_sibling(const quern_world *world, quern_entity source,
                                                     quern_relation relation);

/** Returns how many children the target has. Takes no walk. */
QUERN_API uint32_t quern_entity_child_count(const quern_world *world, quern_entity target,
                                            quern_relation relation);

/** Writes the children of the target in their order, at most capacity of them, and returns how many it has.
 * out_children may be NULL when capacity is 0. */
QUERN_API uint32_t quern_entity_get_children(const quern_world *world, quern_entity target,
                                             quern_relation relation, quern_entity *out_children,
                                             uint32_t capacity);

/** Writes the children of count targets, one list after the other in the order of the targets, at most
 * capacity children in all, and returns how many there are. out_counts is NULL or gets how many each target
 * has. A target that is null or not alive has none. out_children may be NULL when capacity is 0.
 *
 * Asks for the memory of the next targets while it looks at one; for walks that go down trees level by level.
 * Returns 0 with a message when the call is wrong. Threads: any that no change of the world runs beside. */
QUERN_API uint64_t quern_entity_get_children_many(const quern_world *world, const quern_entity *targets,
                                                  uint32_t count, quern_relation relation,
                                                  quern_entity *out_children, uint32_t capacity,
                                                  uint32_t *out_counts);

/** Returns how many siblings are before the source, in a walk over them; QUERN_NO_SIBLING_INDEX if it has no
 * target. */
QUERN_API uint32_t quern_entity_sibling_index(const quern_world *world, quern_entity source,
                                              quern_relation relation);

#ifdef __cplusplus
}
#endif

#endif
