/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_PREFAB_H
#define QUERN_PREFAB_H

/** @file
 * Prefabs: an entity, with all that hangs below it, captured as a blueprint, to be spawned again and again.
 *
 *     quern_prefab tower;
 *     quern_prefab_capture(world, built_tower, &tower);
 *     quern_prefab_spawn_many(world, tower, 100, &(quern_spawn_def){
 *         .parent = arena, .overrides = {{.component = position, .member = 0, .column = places}}},
 *         roots, NULL);
 *
 * A prefab has *members*: member 0 is the root, the others follow breadth first, each parent's children in
 * their order. What was captured is copied into the prefab, which holds nothing of the world's chunks and
 * which no query sees; the entities that it was captured from live on, change and die without it. A spawned
 * tree is one like any other: it may be changed, and captured again, also as a part of a larger one.
 *
 * Described entity fields whose value is a member of the tree name the member of the new instance in its
 * place; others keep their value. So do targets of relations: a target outside of the tree must be alive
 * when the prefab is spawned. Members other than the root get the names that were captured. The root's own
 * parent and name are not captured.
 *
 * Errors of all calls: NULL_ARGUMENT; UNKNOWN_PREFAB, when the prefab is null, was destroyed or belongs to
 * another world. World calls follow the rules of world.h: between frames and in exclusive systems, on one
 * thread, and each does all or nothing. */

#include <quern/base.h>
#include <quern/commands.h>
#include <quern/context.h>
#include <quern/id.h>
#include <quern/query.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_SPAWN_OVERRIDES 16         /**< Components that a spawn gives values of its own. */
#define QUERN_NO_MEMBER           UINT32_MAX /**< No member of the prefab. */
#define QUERN_MAX_PREFAB_MEMBERS  65536      /**< Entities in a prefab. */

/** A prefab of one world. Bits, from the lowest: 32 index, 24 generation, 8 world tag. */
typedef struct quern_prefab {
    uint64_t bits; /**< 0: null. */
} quern_prefab;

/** Captures an entity and all that is below it by quern_world_parent. Values are copied, by the type's copy
 * hook where it has one. Errors: NULL_ENTITY, STALE_ENTITY, FOREIGN_ENTITY; PROVISIONAL_ENTITY, also where
 * a described field in the tree holds such a handle; INVALID_ARGUMENT, naming the type, where one has a
 * destroy hook and no copy hook; LIMIT; OUT_OF_MEMORY; WORLD_LOCKED. */
QUERN_API quern_result quern_prefab_capture(quern_world *world, quern_entity root,
                                            quern_prefab *out_prefab);

/** Destroys a prefab and its values. Where commands that wait spawn it, the handle ends now, and the rest
 * when they have been applied. What was spawned from it, and what these will spawn, stays. Prefabs that are
 * left go with the world. Errors: WORLD_LOCKED. */
QUERN_API quern_result quern_prefab_destroy(quern_world *world, quern_prefab prefab);

/** Returns how many members the prefab has, at least 1; 0 with a message. Threads: any, as long as no call
 * captures or destroys. */
QUERN_API uint32_t quern_prefab_member_count(const quern_world *world, quern_prefab prefab);

/** Returns the number of the member at a path of names below the root, as they were captured, such as
 * "gun/muzzle"; 0 for "". QUERN_NO_MEMBER where there is none, with a message only when the call is wrong.
 * Threads: any, as long as no call captures or destroys. */
QUERN_API uint32_t quern_prefab_find_member(const quern_world *world, quern_prefab prefab,
                                            const char *path);

/* ------------------------------------------------------------------------------------------ spawning */

/** Values of one member's component that take the place of what was captured. */
typedef struct quern_spawn_override {
    quern_component component QUERN__ZERO; /**< One that the member has, and no tag or relation. */
    uint32_t member QUERN__ZERO;           /**< Of the prefab; 0 is the root. */
    /** One value per instance, one after the other, to be copied. Handles in it are kept as they are. */
    const void *column QUERN__ZERO;
} quern_spawn_override;

/** How instances differ from what was captured. All zero: not at all. */
typedef struct quern_spawn_def {
    quern_entity parent QUERN__ZERO; /**< Of the roots, by quern_world_parent; null: they have none. */
    quern_spawn_override overrides[QUERN_MAX_SPAWN_OVERRIDES] QUERN__ZERO; /**< Of different values. */
    /** Writes values of one member of each instance when all is in place otherwise; NULL: none. It is
     * called for one run of rows after another, in the order of instances, on this thread; view->first is
     * the number of the first instance. Runs are as long as rows of the member lie next to each other:
     * where other members have the same components and depth, that is one row. The world is locked
     * meanwhile, and there are no commands, as in quern_entity_create_filled. Not for commands. */
    quern_kernel *fill QUERN__ZERO;
    uint32_t fill_member QUERN__ZERO; /**< Whose rows the views are. */
    /** Term i of the views is fill_components[i], to write. Not relations. */
    quern_component fill_components[QUERN_MAX_SPAWN_OVERRIDES] QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< For fill: quern_context_user_data. */
} quern_spawn_def;

/** Spawns one instance. def and out_root may be NULL. Errors: those of quern_prefab_spawn_many. */
QUERN_API quern_result quern_prefab_spawn(quern_world *world, quern_prefab prefab,
                                          const quern_spawn_def *def, quern_entity *out_root);

/** Spawns count instances: the same as count times one, in handles and rows, but faster. Handles are taken
 * in the order of instances, in each in the order of members. def may be NULL. out_roots is NULL or has
 * room for count handles. out_members is NULL or has room for count * members: member i of an instance is
 * out_members[instance * member_count + i]. With count 0 the call spawns nothing, but it checks its arguments
 * as with any other count: a dead parent, or a dead target outside of the tree, is an error.
 *
 * Errors: those of the parent's handle; STALE_ENTITY where a target outside of the tree is dead;
 * UNKNOWN_COMPONENT, COMPONENT_ABSENT and INVALID_ARGUMENT of overrides and fill (a member out of range, a
 * tag, a column that is NULL); PROVISIONAL_ENTITY of overrides (as quern_entity_set); TOO_MANY_COMPONENTS,
 * COMPONENT_TOO_LARGE, LIMIT, OUT_OF_MEMORY, WORLD_LOCKED. */
QUERN_API quern_result quern_prefab_spawn_many(quern_world *world, quern_prefab prefab, uint32_t count,
                                               const quern_spawn_def *def, quern_entity *out_roots,
                                               quern_entity *out_members);

/* --------------------------------------------------------------------------------------- by command */

/** Records the spawning of one instance, for the next sync point. Members get handles as if each was
 * created by command, in their order. Later commands of the same callback may change, destroy and relate
 * the root and the other members, and it makes no difference what becomes of the prefab. out_root gets the
 * provisional handle of the root, and may be NULL. def may be NULL; it has no fill; the parent may be
 * provisional.
 *
 * An instance without parent whose members no other command names, without targets outside of the tree, and
 * with no hooks or handles in its overrides, takes least: such ones are put into the world together, after
 * what others create, and captured values with hooks are copied then. Otherwise each member is a create of
 * its own.
 *
 * Errors: those of the calls in commands.h; UNKNOWN_PREFAB; STALE_ENTITY, for a target outside of the tree;
 * those of overrides; LIMIT; OUT_OF_MEMORY, and then the sync point fails. Threads: the callback's. */
QUERN_API quern_result quern_commands_spawn(quern_commands *commands, quern_prefab prefab,
                                            const quern_spawn_def *def, quern_entity *out_root);

/** Returns the provisional handle of a member of an instance that this callback has spawned by command,
 * from that of its root; null with a message: INVALID_ARGUMENT (the prefab has no such member),
 * PROVISIONAL_ENTITY (the root is none of this callback). Takes no walk. Threads: the callback's. */
QUERN_API quern_entity quern_commands_spawned_member(const quern_commands *commands, quern_prefab prefab,
                                                     quern_entity root, uint32_t member);

#ifdef __cplusplus
}
#endif

#endif
