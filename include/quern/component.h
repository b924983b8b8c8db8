/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_COMPONENT_H
#define QUERN_COMPONENT_H

/** @file
 * Component types and resources (singletons of a world), registered by name at run time, in each world.
 *
 * A type is plain bytes unless it has hooks. A type of size 0 is a tag and uses no space. Describing the
 * fields of a type has three effects: quern_world_hash reads only these fields, so that padding does not
 * matter; provisional handles in these fields are replaced by final ones when commands are applied; and
 * tools can show the value. */

#include <quern/base.h>
#include <quern/id.h>
#include <quern/type.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A world; see <quern/world.h>. */
typedef struct quern_world quern_world;

#define QUERN_MAX_COMPONENTS        1024 /**< Maximum number of component types per world. */
#define QUERN_MAX_RESOURCES         1024 /**< Maximum number of resources per world. */
#define QUERN_MAX_ENTITY_COMPONENTS 250  /**< Maximum number of components of one entity, including tags. */
#define QUERN_MAX_REQUIRED          16 /**< Maximum number of components that a component lists as required. */
#define QUERN_MAX_ALIGNMENT_BYTES   64 /**< Maximum alignment of a component. */
#define QUERN_MAX_COMPONENT_BYTES \
    16256 /**< Maximum size of a component; a row of this size just fits a 16 KiB chunk. */

/** Functions that construct, copy, move and destroy values of a type that is not plain bytes.
 *
 * Each hook may be NULL, and processes an array of count values. A hook must not fail and must not call the
 * world. Without a hook, construct fills with zero bytes, copy and move copy the bytes, and destroy does
 * nothing.
 *
 * If a type has a move or destroy hook but no copy hook, a call that succeeds takes over the value that it
 * is given, by the move hook or as bytes: do not destroy that value afterwards. Hooks run on the thread that
 * makes the change; copy, and move for such types, also run on worker threads that record commands or emit
 * events. */
typedef struct quern_hooks {
    /** Constructs values in uninitialised memory. */
    void (*construct)(void *values, uint32_t count, void *user_data) QUERN__ZERO;
    /** Copies values to uninitialised memory; the sources remain valid. */
    void (*copy)(void *targets, const void *sources, uint32_t count, void *user_data) QUERN__ZERO;
    /** Moves values to uninitialised memory. The sources are uninitialised afterwards; destroy is not
     * called for them. */
    void (*move)(void *targets, void *sources, uint32_t count, void *user_data) QUERN__ZERO;
    /** Releases what the values own; they are uninitialised memory afterwards. */
    void (*destroy)(void *values, uint32_t count, void *user_data) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to each hook. */
} quern_hooks;

/** A function that is called when an entity gets or loses a component, or a new value of it. value: the entity's value;
 * NULL for a tag. user_data: that of the quern_entity_hooks. */
typedef void quern_entity_hook(quern_world *world, quern_entity entity, void *value, void *user_data);

/** Functions that the call or sync point which changes an entity calls for the component. Use them for what cannot wait
 * for a reaction: bodies of a physics engine, sounds, and GPU objects that live exactly as long as the component.
 *
 * Each may be NULL. A call, and a sync point, is one change, the sum of all that it does:
 *
 *   1. on_remove for each value that goes, before any other value changes: all components of entities are as they were.
 *      Targets and names may be those after the change already, among them entities that do not exist yet, of which
 *      quern_entity_is_alive returns false. The components of relations have the targets from before.
 *      Entities with a greater level in a relation come first, so children precede their parents.
 *   2. The change.
 *   3. For each component in the order of registration, and each entity in the order of archetypes and rows: on_add if the
 *      entity did not have the component before the change, then on_set if it is new or was set. The whole change is
 *      visible.
 *
 * A value is set by what reactions call set (QUERN_REACT_SET): calls, commands, and quern_entity_mark_changed, but not
 * writes through views and pointers. A component that is removed and added again at one sync point was set. Moving an
 * entity, and enabling or disabling it calls nothing. Nor does relating it, unless edges have the component as value.
 *
 * All that changes entities calls hooks: single calls, lists, matches, prefabs, clones, commands, deltas as bytes, and
 * loaded archives. quern_history_restore calls on_remove for values that the restored frame lacks, on_add for those that
 * only it has, and on_set for those that differ. quern_world_destroy calls on_remove for all values. A redefinition
 * replaces the functions and calls none.
 *
 * Hooks run on the thread that makes the change, one after another, and in the same order at every thread count. They may
 * read the world: quern_entity_get, quern_entity_has, quern_entity_is_alive, quern_entity_name, and the calls that read
 * relations work also during a frame. on_add and on_set may write the value, which calls nothing. Everything else is
 * refused with WORLD_LOCKED. A hook cannot fail: note an error, and handle it later. */
typedef struct quern_entity_hooks {
    quern_entity_hook *on_add
        QUERN__ZERO; /**< The entity got the component; the value is constructed or given. */
    quern_entity_hook *on_set
        QUERN__ZERO; /**< The entity got a value, also with on_add. Must be NULL for a tag. */
    quern_entity_hook *on_remove
        QUERN__ZERO;             /**< The entity is about to lose the component, or to be destroyed. */
    void *user_data QUERN__ZERO; /**< Passed to each hook. */
} quern_entity_hooks;

/** Definition of a component type. */
typedef struct quern_component_def {
    const char *name QUERN__ZERO; /**< Name of 1 to QUERN_MAX_NAME_BYTES bytes, unique in the world. */
    /** Size of a value, 0 (a tag) to QUERN_MAX_COMPONENT_BYTES; a multiple of the alignment. */
    uint32_t size_bytes QUERN__ZERO;
    uint32_t alignment_bytes QUERN__ZERO; /**< A power of two up to QUERN_MAX_ALIGNMENT_BYTES; 0 means 1. */
    const char *type_name QUERN__ZERO; /**< Name of the C type, checked by QUERN_COLUMN; NULL if unknown. */
    /** Described fields. Without any, the value is all of its bytes. */
    quern_field fields[QUERN_MAX_FIELDS] QUERN__ZERO;
    quern_hooks hooks QUERN__ZERO; /**< Hooks; none for plain bytes. A tag must have none. */
    /** Value that the component gets wherever it is constructed without a value; size_bytes long and copied when
     * the component is registered. NULL: constructed by the hook, or zero bytes. Handles in it are copied as they
     * are, and must not be provisional. A type with a destroy hook needs a copy hook for it. */
    const void *default_value QUERN__ZERO;
    /** Required components: an entity with the component has all of them, and all that they require. Whatever
     * adds the component to an entity also adds those that the entity lacks, constructed without a value.
     * Removing a required component is refused (COMPONENT_REQUIRED); by a command, it has no effect. A
     * required component must be registered before, so requirements have no cycles; it must not belong to a
     * relation or be the tag of quern_world_disabled_tag. */
    quern_component required[QUERN_MAX_REQUIRED] QUERN__ZERO;
    /** Whether the component can be disabled per entity. Terms leave out an entity in which it is disabled,
     * as if the entity lacked the component, but the value is kept, and enabling or disabling costs almost
     * nothing. See quern_entity_set_component_enabled. */
    bool can_disable QUERN__ZERO;
    /** Whether change filters on the component (quern_term_changed) select single rows instead of whole
     * chunks. While such a filter exists, each entity with the component uses 8 bytes more, and requesting
     * the column for writing also updates these row versions; see quern_view_write_rows. A tag changes when
     * it is added. */
    bool row_changes QUERN__ZERO;
    bool is_hidden QUERN__ZERO; /**< Whether tools should hide the component. Not part of the layout. */
    /** Identity of the type in a language whose types have one: <quern/quern.hpp> sets it for C++ types. Types of one
     * name with different identities are refused. Types with the same identity are the same, even if the addresses
     * of their hooks differ, as in shared libraries. 0: none. */
    uint64_t type_id QUERN__ZERO;
    /** Functions that are called for entities that get or lose the component. Not part of the layout. */
    quern_entity_hooks entity_hooks QUERN__ZERO;
} quern_component_def;

/** Registers a component type. Registering the same name with the same layout (size, alignment, fields,
 * hooks, type_id, can_disable, row_changes, required) again returns the same component; default_value is then ignored.
 * entity_hooks must then be those that the component has, or all NULL, unless the component has none yet and no entity
 * has had it. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, BAD_ALIGNMENT, COMPONENT_TOO_LARGE, LAYOUT_MISMATCH (the name has
 * another layout), UNKNOWN_COMPONENT (required), PROVISIONAL_ENTITY (default_value), LIMIT
 * (QUERN_MAX_COMPONENTS), WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_component_register(quern_world *world, const quern_component_def *def,
                                                quern_component *out_component);

/** Returns the component with the given name, or null if there is none. Threads: any, while no thread
 * registers. */
QUERN_API quern_component quern_component_find(const quern_world *world, const char *name);

/** Returns the name of a component, valid as long as the world. NULL, with a message, if the component is
 * not of this world. Threads: any, while no thread registers. */
QUERN_API const char *quern_component_name(const quern_world *world, quern_component component);

/** Returns the size of a component's value; 0 for a tag. Errors: NULL_ARGUMENT, UNKNOWN_COMPONENT. Threads:
 * any, while no thread registers. */
QUERN_API quern_result quern_component_get_size(const quern_world *world, quern_component component,
                                                uint32_t *out_size_bytes);

/** Registers a C type as a component of plain bytes, named after the type. The type is the last argument,
 * so that a C++ type may contain commas. A C++ type that is not trivially copyable does not compile.
 *
 *     quern_component position;
 *     quern_result result = QUERN_COMPONENT_REGISTER(world, &position, Position);
 *
 * Errors and threads: as quern_component_register. */
#ifdef __cplusplus
#define QUERN_COMPONENT_REGISTER(world, out_component, ...) \
    quern__component_register<__VA_ARGS__>((world), (out_component), #__VA_ARGS__, {})
#else
#define QUERN_COMPONENT_REGISTER(world, out_component, ...) \
    quern_component_register((world), &(quern_component_def){QUERN_TYPE(__VA_ARGS__)}, (out_component))
#endif

/** Registers a C type with described fields as a component, named after the type; see QUERN_FIELDS for the
 * fields.
 *
 *     quern_result result = QUERN_COMPONENT_REGISTER_FIELDS(world, &position, Position, x, y);
 *
 * Errors and threads: as quern_component_register. */
#ifdef __cplusplus
#define QUERN_COMPONENT_REGISTER_FIELDS(world, out_component, type, ...) \
    quern__component_register<type>((world), (out_component), #type, QUERN__FIELD_LIST(type, __VA_ARGS__))
#else
#define QUERN_COMPONENT_REGISTER_FIELDS(world, out_component, type, ...)                              \
    quern_component_register(                                                                         \
        (world), &(quern_component_def){QUERN_TYPE(type), .fields = QUERN_FIELDS(type, __VA_ARGS__)}, \
        (out_component))
#endif

/* -------------------------------------------------------------------------------------- resources */

/** Definition of a resource: a singleton of the world, such as a grid, a score, or the input. Systems
 * declare the resources that they access. quern_world_hash includes the resource if and only if it has
 * described fields. */
typedef struct quern_resource_def {
    /** Name as in quern_component_def; a component may have the same name. */
    const char *name QUERN__ZERO;
    uint32_t size_bytes QUERN__ZERO;                  /**< Size of the value, at least 1. */
    uint32_t alignment_bytes QUERN__ZERO;             /**< A power of two up to 64; 0 means 16. */
    const char *type_name QUERN__ZERO;                /**< Name of the C type; NULL if unknown. */
    quern_field fields[QUERN_MAX_FIELDS] QUERN__ZERO; /**< Described fields. */
    /** Initial value, size_bytes long; NULL: constructed by the hook, or zero bytes. */
    const void *value QUERN__ZERO;
    quern_hooks hooks QUERN__ZERO; /**< Hooks. destroy is called when the world is destroyed. */
    uint64_t type_id QUERN__ZERO;  /**< Identity of the type; see quern_component_def. */
    bool is_hidden QUERN__ZERO;    /**< Whether tools should hide the resource. */
} quern_resource_def;

/** Registers a resource. Registering the same name with the same layout (size, alignment, fields, hooks, type_id)
 * again returns the same resource, which keeps its value; `value` is then ignored. Errors: NULL_ARGUMENT,
 * INVALID_ARGUMENT, BAD_ALIGNMENT, LAYOUT_MISMATCH (the name has another layout), LIMIT
 * (QUERN_MAX_RESOURCES), WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_resource_register(quern_world *world, const quern_resource_def *def,
                                               quern_resource *out_resource);

/** Registers a C type as a resource of zero bytes, named after the type; see QUERN_COMPONENT_REGISTER.
 * Errors and threads: as quern_resource_register. */
#ifdef __cplusplus
#define QUERN_RESOURCE_REGISTER(world, out_resource, ...) \
    quern__resource_register<__VA_ARGS__>((world), (out_resource), #__VA_ARGS__, {})
#else
#define QUERN_RESOURCE_REGISTER(world, out_resource, ...) \
    quern_resource_register((world), &(quern_resource_def){QUERN_TYPE(__VA_ARGS__)}, (out_resource))
#endif

/** Registers a C type with described fields as a resource of zero bytes, named after the type; see
 * QUERN_COMPONENT_REGISTER_FIELDS. Errors and threads: as quern_resource_register. */
#ifdef __cplusplus
#define QUERN_RESOURCE_REGISTER_FIELDS(world, out_resource, type, ...) \
    quern__resource_register<type>((world), (out_resource), #type, QUERN__FIELD_LIST(type, __VA_ARGS__))
#else
#define QUERN_RESOURCE_REGISTER_FIELDS(world, out_resource, type, ...)                               \
    quern_resource_register(                                                                         \
        (world), &(quern_resource_def){QUERN_TYPE(type), .fields = QUERN_FIELDS(type, __VA_ARGS__)}, \
        (out_resource))
#endif

/** Returns the resource with the given name, or null if there is none. Threads: any, while no thread
 * registers. */
QUERN_API quern_resource quern_resource_find(const quern_world *world, const char *name);

/** Returns the size of a resource's value. Errors: NULL_ARGUMENT, UNKNOWN_RESOURCE. Threads: any, while no
 * thread registers. */
QUERN_API quern_result quern_resource_get_size(const quern_world *world, quern_resource resource,
                                               uint32_t *out_size_bytes);

/** Returns the address of a resource's value, valid as long as the world. Returns NULL, with a message, if
 * the resource is not of this world, or while a frame is running (systems use quern_context_resource).
 * Threads: main, between frames and in exclusive systems. */
QUERN_API void *quern_resource_get(quern_world *world, quern_resource resource);

#ifdef __cplusplus
}

template <typename T, typename Def>
inline Def quern__def_of(const char *name, const quern__field_list &fields)
{
    Def def = {};
    def.name = name;
    def.type_name = quern::detail::type_name_of<T>();
    def.size_bytes = quern__type_of<T>::size_bytes;
    def.alignment_bytes = quern__type_of<T>::alignment_bytes;
    for (uint32_t i = 0; i < fields.count; i++)
        def.fields[i] = fields.first[i];
    return def;
}

template <typename T>
inline quern_result quern__component_register(quern_world *world, quern_component *out_component,
                                              const char *name, const quern__field_list &fields)
{
    const auto def = quern__def_of<T, quern_component_def>(name, fields);
    return quern_component_register(world, &def, out_component);
}

template <typename T>
inline quern_result quern__resource_register(quern_world *world, quern_resource *out_resource,
                                             const char *name, const quern__field_list &fields)
{
    const auto def = quern__def_of<T, quern_resource_def>(name, fields);
    return quern_resource_register(world, &def, out_resource);
}
#endif

#endif
