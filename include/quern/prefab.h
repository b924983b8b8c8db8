/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_PREFAB_H
#define QUERN_PREFAB_H

/** @file
 * Prefabs: an entity and all its descendants, captured as a blueprint and spawned any number of times.
 *
 *     quern_prefab tower;
 *     quern_prefab_capture(world, built_tower, &tower);
 *     quern_prefab_spawn_many(world, tower, 100, &(quern_spawn_def){
 *         .parent = arena, .overrides = {{.component = position, .member = 0, .column = places}}},
 *         roots, NULL);
 *
 * The entities of a prefab are its *members*. Member 0 is the root; the others follow breadth first, in
 * the order of siblings. Capturing copies the values into the prefab. The prefab uses none of the world's
 * chunks, queries do not match it, and the captured entities may change and be destroyed independently of
 * it. A spawned tree is a normal tree: it may be changed, and captured again, also as a part of a larger
 * one.
 *
 * Entity fields that refer to a member of the captured tree refer to the corresponding member of the new
 * instance; all other values are copied. Targets of relations are treated in the same way, also several
 * targets of one source: a target outside of the tree must be alive when the prefab is spawned. Members
 * other than the root get their captured names. The root's own parent and name are not captured.
 *
 * Errors of all functions: NULL_ARGUMENT; UNKNOWN_PREFAB (the prefab is null, was destroyed, or belongs to
 * another world). The functions on worlds follow the rules of world.h: between frames and in exclusive
 * systems, on one thread. Each one succeeds completely or changes nothing. */

#include <quern/base.h>
#include <quern/commands.h>
#include <quern/context.h>
#include <quern/id.h>
#include <quern/query.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_SPAWN_OVERRIDES 16         /**< Maximum number of overrides of a spawn. */
#define QUERN_NO_MEMBER           UINT32_MAX /**< Result for a member that the prefab does not have. */
#define QUERN_MAX_PREFAB_MEMBERS  65536      /**< Maximum number of entities in a prefab. */

/** Captures an entity and all its descendants in quern_world_parent. Values are copied by their type's
 * copy hook, if any. Errors: NULL_ENTITY, STALE_ENTITY, FOREIGN_ENTITY; PROVISIONAL_ENTITY (root, or a
 * described field in the tree); INVALID_ARGUMENT (a type with a destroy hook but no copy hook, which the
 * message names); LIMIT; OUT_OF_MEMORY; WORLD_LOCKED.
 *
 * Tags are captured like other components: instances of a disabled tree are disabled. The call then writes a line to the
 * log (QUERN_LOG_INFO), and quern_prefab_is_enabled returns false. */
QUERN_API quern_result quern_prefab_capture(quern_world *world, quern_entity root,
                                            quern_prefab *out_prefab);

/** Returns the handle that stands for a member of a description, by its index in the list. It is valid in the values and
 * targets of quern_prefab_create and nowhere else. */
static inline quern_entity quern_prefab_member_handle(uint32_t index)
{
    quern_entity entity = {UINT64_C(1) << 32 | index};
    return entity;
}

/** A component of a described member. */
typedef struct quern_prefab_value {
    quern_component component QUERN__ZERO; /**< The component, or tag; not that of a relation. */
    /** Value of the component, copied by its copy hook, if any. NULL: the value of a newly constructed component. Handles
     * of members (quern_prefab_member_handle) in described fields become those of each instance. NULL for a tag. */
    const void *value QUERN__ZERO;
    bool is_disabled QUERN__ZERO; /**< Whether the component is disabled; the type must have can_disable. */
} quern_prefab_value;

/** A target of a described member. */
typedef struct quern_prefab_target {
    quern_relation relation QUERN__ZERO; /**< The relation; not quern_world_parent. */
    /** The target: a member (quern_prefab_member_handle), or a living entity. */
    quern_entity target QUERN__ZERO;
} quern_prefab_target;

/** A member of a described prefab. All zero: an entity without components, below the root. */
typedef struct quern_prefab_member_def {
    /** Index of the parent, which precedes the member in the list; 0 for the root itself. */
    uint32_t parent QUERN__ZERO;
    /** Name, unique among the children of the parent; NULL: none. NULL for the root. */
    const char *name QUERN__ZERO;
    /** Slot in which the root of each instance has this member as its part (quern_prefab_slot_register); null: none. */
    quern_component slot QUERN__ZERO;
    /** Components, each at most once; NULL if value_count is 0. */
    const quern_prefab_value *values QUERN__ZERO;
    uint32_t value_count QUERN__ZERO;               /**< Number of components. */
    const quern_prefab_target *targets QUERN__ZERO; /**< Targets in relations; NULL if target_count is 0. */
    uint32_t target_count QUERN__ZERO;              /**< Number of targets. */
    /** Entity with the values that all instances of the member share (quern_shared_create); null: none. The same as a
     * target in quern_world_shared. */
    quern_entity shared QUERN__ZERO;
} quern_prefab_member_def;

/** Creates a prefab from a list of members, without entities in the world. Member 0 is the root, and members keep their
 * index in the list: in overrides, fills and handles of instances. The children of a member have the order of the list.
 * Components that others require are added. Afterwards the prefab is the same as one that was captured from such a tree.
 *
 *     const quern_prefab_value base[] = {{place, &(Place){0, 0}}};
 *     const quern_prefab_value barrel[] = {{gun, &(Gun){.base = quern_prefab_member_handle(0)}}};
 *     const quern_prefab_member_def members[] = {
 *         {.values = base, .value_count = 1},
 *         {.parent = 0, .name = "gun", .slot = muzzle, .values = barrel, .value_count = 1}};
 *     quern_prefab_create(world, members, 2, &tower);
 *
 * quern_world_disabled_tag among the components disables that member by itself, and none below it. The list and all
 * that it points to may be freed after the call. Messages name the member by its index. The call registers
 * quern_world_parent if there are several members, and the world does not have it yet.
 *
 * Errors: NULL_ARGUMENT; INVALID_ARGUMENT (no members; a parent that does not precede its member; a name or slot of the
 * root; an invalid name; a component that is no slot; the component of a relation; a value of a tag; is_disabled without
 * can_disable; quern_world_parent as the relation of a target; a member that is its own target; a handle of a member that
 * the list does not have; a type with a destroy hook but no copy hook; the value of an edge without its target among the
 * targets); UNKNOWN_COMPONENT; DUPLICATE_COMPONENT (a
 * component, slot, target or relation with one target, twice); SIBLING_NAME_TAKEN; CYCLE (members that are targets of one
 * another, in a relation with levels); NULL_ENTITY, STALE_ENTITY, FOREIGN_ENTITY, PROVISIONAL_ENTITY (a target, and the
 * last also in a described field); TOO_MANY_COMPONENTS; LIMIT (QUERN_MAX_PREFAB_MEMBERS); OUT_OF_MEMORY; WORLD_LOCKED. */
QUERN_API quern_result quern_prefab_create(quern_world *world, const quern_prefab_member_def *members,
                                           uint32_t member_count, quern_prefab *out_prefab);

/** Destroys a prefab and its values. If waiting commands spawn the prefab, only the handle becomes invalid
 * now, and the values are destroyed when these commands have been applied. Spawned instances remain, and
 * waiting commands still spawn theirs. Destroying the world destroys its prefabs. Errors: WORLD_LOCKED. */
QUERN_API quern_result quern_prefab_destroy(quern_world *world, quern_prefab prefab);

/** Stores up to `capacity` prefabs of the world, in the order of their index (the low 32 bits of the handle), and
 * returns how many there are. The index of a destroyed prefab is used again. out_prefabs may be NULL if capacity is 0.
 * Returns 0, with a message, if the call is wrong. Costs O(largest number of prefabs that existed at one time).
 * Threads: any, as long as no thread captures or destroys prefabs. */
QUERN_API uint32_t quern_world_list_prefabs(const quern_world *world, quern_prefab *out_prefabs,
                                            uint32_t capacity);

/** Returns the number of members of a prefab, at least 1. Returns 0, with a message, if the call is wrong.
 * Threads: any, as long as no thread captures or destroys prefabs. */
QUERN_API uint32_t quern_prefab_member_count(const quern_world *world, quern_prefab prefab);

/** Returns the index of the member at a path of captured names below the root, such as "gun/muzzle"; 0 for
 * "". Returns QUERN_NO_MEMBER if there is none, and with a message if the call is wrong. Threads: any, as
 * long as no thread captures or destroys prefabs. */
QUERN_API uint32_t quern_prefab_find_member(const quern_world *world, quern_prefab prefab,
                                            const char *path);

/** Returns whether the roots of instances are enabled (<quern/enabled.h>): false if the captured root was disabled. False,
 * with a message, if the call is wrong. Threads: any, as long as no thread captures or destroys prefabs. */
QUERN_API bool quern_prefab_is_enabled(const quern_world *world, quern_prefab prefab);

/* ------------------------------------------------------------------------------------- shared values */

/** Returns the relation in which entities share values: the target has the values that its sources read. It is named
 * "shared"; sources lose it if the target is destroyed. The first call registers it: make it before the first frame, and
 * before loading an archive that has it. Returns null, with a message, if registering fails: in a callback, if memory is
 * exhausted, or if another relation or a component has the name. Threads: as quern_world_parent. */
QUERN_API quern_relation quern_world_shared(quern_world *world);

/** Makes a term that reads a component which the row's entity shares: an up-term in quern_world_shared. QUERN_UP returns
 * the addresses, one per row; those of instances with the same shared values are the same. See quern_term_up. */
static inline quern_term quern_term_shared(quern_world *world, quern_component component)
{
    return quern_term_up(component, quern_world_shared(world));
}

/** Creates an entity with values that other entities share: meshes, statistics, and all that each kind has once.
 *
 *     const quern_prefab_value values[] = {{mesh, &(Mesh){7}}, {stats, &(Stats){.speed = 2}}};
 *     quern_shared_create(world, values, 2, &orc_values);
 *     const quern_prefab_member_def members[] = {{.values = orc, .value_count = 1, .shared = orc_values}};
 *     quern_prefab_create(world, members, 1, &orc_prefab);
 *
 * Instances have no component for these values, and read them by quern_term_shared or quern_entity_get_shared. Setting a
 * value of the entity changes it for all of them. The entity is disabled (quern_world_disabled_tag), so queries leave it
 * out unless they name that tag: a system with the tag as a term, and the component as a change filter, learns which
 * shared values have changed. Values are copied by their copy hook, if any; NULL: constructed.
 *
 * Errors: NULL_ARGUMENT; INVALID_ARGUMENT (no values; is_disabled; quern_world_disabled_tag); UNKNOWN_COMPONENT,
 * DUPLICATE_COMPONENT, PROVISIONAL_ENTITY, TOO_MANY_COMPONENTS, those of quern_world_disabled_tag, LIMIT, OUT_OF_MEMORY,
 * WORLD_LOCKED. */
QUERN_API quern_result quern_shared_create(quern_world *world, const quern_prefab_value *values,
                                           uint32_t value_count, quern_entity *out_shared);

/** Returns the address of a value that an entity shares, to read: NULL, without a message, if it shares no such value.
 * With a message if the call is wrong. Threads: as quern_entity_get. */
QUERN_API const void *quern_entity_get_shared(quern_world *world, quern_entity entity,
                                              quern_component component);

/** Gives one entity a value of its own for a component that it shares. The entity then shares values with a copy, made as by
 * quern_entity_clone, so with its children. The copy is a disabled child of the entity and is destroyed with it; clones and
 * prefabs of the entity get copies of their own. A second call changes the copy. Relating the entity in quern_world_shared
 * again ends that. The other shared values are copied as they are now. value: as in quern_entity_set.
 *
 * Errors: those of a wrong handle; NULL_ARGUMENT; UNKNOWN_COMPONENT; COMPONENT_ABSENT (the entity does not share the
 * component); INVALID_ARGUMENT (a tag; a type with a destroy hook but no copy hook); PROVISIONAL_ENTITY; LIMIT,
 * OUT_OF_MEMORY, WORLD_LOCKED. */
QUERN_API quern_result quern_entity_override_shared(quern_world *world, quern_entity entity,
                                                    quern_component component, const void *value);

/* --------------------------------------------------------------------------------------------- slots */

/** Registers a prefab slot: a part that roots of instances know, such as "muzzle". A slot is a component with one entity
 * handle, `part`, and is hidden from tools. Set it on the root of a tree before capturing it:
 *
 *     quern_entity_set(world, tower, muzzle, &barrel_end);
 *
 * The root of each instance then has the handle of its own part. Instances without slots pay nothing. Hashes, archives,
 * histories and prefabs treat the component like any other with a described handle, and systems read it by a term. The
 * name must differ from those of other components; registering it again returns the same slot. Errors and threads: as
 * quern_component_register. */
QUERN_API quern_result quern_prefab_slot_register(quern_world *world, const char *name,
                                                  quern_component *out_slot);

/** Returns the part in a slot of an instance, given its root. O(1). Null if the instance does not have the slot, or if the
 * part was destroyed. A part that was renamed or got another parent remains the part. Null, with a message, if the call
 * is wrong: the errors of functions on entities, and INVALID_ARGUMENT (the component is no slot). Threads: main, between
 * frames and in exclusive systems. */
QUERN_API quern_entity quern_prefab_part(const quern_world *world, quern_entity root, quern_component slot);

/** Returns the index of the member that is the part in a slot. QUERN_NO_MEMBER if the captured root does not have the
 * slot, or if its part was not in the tree, and with a message if the call is wrong. Threads: any, as long as no thread
 * captures or destroys prefabs. */
QUERN_API uint32_t quern_prefab_find_slot(const quern_world *world, quern_prefab prefab,
                                          quern_component slot);

/* ------------------------------------------------------------------------------------------ spawning */

/** Values that replace the captured values of one component of one member. */
typedef struct quern_spawn_override {
    /** A component that the member has; not a tag, and not that of a relation. */
    quern_component component QUERN__ZERO;
    uint32_t member QUERN__ZERO; /**< Index of the member; 0 is the root. */
    /** Array of one value per instance, which is copied. Handles in it are kept as they are. */
    const void *column QUERN__ZERO;
} quern_spawn_override;

/** How instances differ from the captured tree. All zero: not at all. */
typedef struct quern_spawn_def {
    quern_entity parent QUERN__ZERO; /**< Parent of the roots in quern_world_parent; null: none. */
    /** Captured values to replace. The list ends at the first element without a component. */
    quern_spawn_override overrides[QUERN_MAX_SPAWN_OVERRIDES] QUERN__ZERO;
    /** Callback that writes values of one member of each instance after everything else has been spawned;
     * NULL for none. It is called on this thread, for one view after another, in the order of instances;
     * view->fill_index is the number of the view's first instance. A view covers consecutive rows of the
     * member; if other members have the same components and depth, that is one row. The world is locked
     * meanwhile, and commands are not available, as in quern_entity_create_filled. Must be NULL in
     * quern_commands_spawn. */
    quern_view_callback *fill QUERN__ZERO;
    uint32_t fill_member QUERN__ZERO; /**< Index of the member to write. */
    /** Components that fill writes: term i of the views is fill_components[i]. No relations. */
    quern_component fill_components[QUERN_MAX_SPAWN_OVERRIDES] QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Returned by quern_context_user_data in fill. */
} quern_spawn_def;

/** Spawns one instance. def and out_root may be NULL. Errors: those of quern_prefab_spawn_many. */
QUERN_API quern_result quern_prefab_spawn(quern_world *world, quern_prefab prefab,
                                          const quern_spawn_def *def, quern_entity *out_root);

/** Spawns count instances. The resulting handles and rows are those of count single spawns, but the call
 * is faster. Handles are assigned by instance, then by member. def may be NULL. out_roots is NULL or has
 * room for count handles. out_members is NULL or has room for count * member_count handles: member i of an
 * instance is out_members[instance * member_count + i]. With count 0 nothing is spawned, but the arguments
 * are checked: a dead parent, or a dead target outside of the tree, is an error.
 *
 * Errors: those of the parent's handle; STALE_ENTITY (a target outside of the tree is dead);
 * UNKNOWN_COMPONENT, COMPONENT_ABSENT and INVALID_ARGUMENT for overrides and fill (a member out of range,
 * a tag, a column that is NULL); PROVISIONAL_ENTITY for overrides (as quern_entity_set);
 * TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT, OUT_OF_MEMORY, WORLD_LOCKED. */
QUERN_API quern_result quern_prefab_spawn_many(quern_world *world, quern_prefab prefab, uint32_t count,
                                               const quern_spawn_def *def, quern_entity *out_roots,
                                               quern_entity *out_members);

/** Copies an entity and all its descendants, by the rules of prefabs: links and described handles within the tree lead to the
 * corresponding copies, others stay as they are, and only the root has no name. def may change the copies as those of a
 * prefab, in which the entity is member 0; its parent is that of the copy. With def NULL the copy gets the parent of the
 * entity. out_root may be NULL. To make many copies, capture a prefab. Errors: those of quern_prefab_capture and
 * quern_prefab_spawn. See quern_commands_clone for systems. */
QUERN_API quern_result quern_entity_clone(quern_world *world, quern_entity entity,
                                          const quern_spawn_def *def, quern_entity *out_root);

/* --------------------------------------------------------------------------------------- by command */

/** Records a command that spawns one instance. Members get handles as if each was created by a command, in
 * their order. Later commands of the same callback may change, destroy and relate all members. The prefab
 * may be destroyed before the command is applied. out_root, which may be NULL, receives the provisional
 * handle of the root. def may be NULL; it must have no fill; its parent may be provisional.
 *
 * The sync point spawns all instances before it changes other rows, consecutive ones of a prefab together.
 * Later commands then change the rows of the members that they concern, as those of any entity. An instance
 * counts as the commands that would create its members, and an override with hooks or described handles, or
 * beyond 4 KiB of override values, as one more: it is recorded as quern_commands_set of the member. If the
 * world has no archetype left for a member, the instance is refused: it is not spawned, and commands on its
 * members are dropped. If the parent or a target outside of the tree has been destroyed by then, the
 * instance is spawned without that link, and one command counts as dropped (QUERN_DROP_TARGET_DEAD).
 *
 * Errors: those of the functions in commands.h; UNKNOWN_PREFAB; STALE_ENTITY (a target outside of the
 * tree); those of overrides; LIMIT; OUT_OF_MEMORY, and then the sync point fails. Threads: the callback's
 * thread. */
QUERN_API quern_result quern_commands_spawn(quern_commands *commands, quern_prefab prefab,
                                            const quern_spawn_def *def, quern_entity *out_root);

/** Records a command that copies an entity and all its descendants, by the rules of quern_entity_clone. The copy is of
 * what exists when the sync point begins: it has what systems have written to views until then, but not what commands of
 * the same sync point change, whether recorded before or after. An entity that such a command destroys is still copied.
 *
 * out_root, which may be NULL, receives the provisional handle of the copy of the entity. Later commands of this callback
 * may change, destroy and relate it, and values may have its handle. Handles are assigned to the other copies after all else
 * that the callback creates. def may be NULL: the copy then gets the parent that the entity has when the sync point begins.
 * Otherwise its parent, which may be provisional or null, is that of the copy, and its overrides, which must be of member 0,
 * are recorded as quern_commands_set of the copy. It must have no fill.
 *
 * The command counts as one. It is dropped if the entity has been destroyed before the sync point (QUERN_DROP_DEAD), or if it
 * cannot be copied: a type in the tree has a destroy hook and no copy hook, a described field has a provisional handle, or
 * the tree is too large (QUERN_DROP_NOT_COPIED, and a line in the log). Later commands on the copy are then dropped, too. If
 * the parent or a target outside of the tree has been destroyed by then, the copy is made without that link, and one
 * command counts as dropped (QUERN_DROP_TARGET_DEAD).
 *
 * Errors: those of the functions in commands.h, for entity, parent and overrides; INVALID_ARGUMENT (a fill; a column that is
 * NULL; the override of another member, of a tag, of the value of an edge, or of a component that the world manages); COMPONENT_ABSENT (an override of a component that the
 * entity does not have); DUPLICATE_COMPONENT; LIMIT; OUT_OF_MEMORY, and then the sync point fails. Threads: the callback's
 * thread. */
QUERN_API quern_result quern_commands_clone(quern_commands *commands, quern_entity entity,
                                            const quern_spawn_def *def, quern_entity *out_root);

/** Returns the provisional handle of a member of an instance that this callback has spawned by command,
 * given the handle of the instance's root. quern_prefab_find_slot and quern_prefab_find_member return the
 * number of a member, for example before the first frame. O(1). Returns null, with a message, on failure:
 * INVALID_ARGUMENT (the prefab has no such member), PROVISIONAL_ENTITY (root was not spawned by this
 * callback). Threads: the callback's thread. */
QUERN_API quern_entity quern_commands_spawned_member(const quern_commands *commands, quern_prefab prefab,
                                                     quern_entity root, uint32_t member);

#ifdef __cplusplus
}
#endif

#endif
