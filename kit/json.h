/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_JSON_H
#define QUERN_KIT_JSON_H

/** @file
 * Values, entities, worlds and prefabs as JSON, written and read back. See docs/kit.md.
 *
 *     quern_json_write_world(world, quern_sink_file(file));
 *     quern_json_read_world(other, text, bytes, NULL);
 *
 * A value is an object with a member for each described field; the field `place.x` is the member `x` of an object
 * `place`. Numbers, booleans and arrays keep their JSON types. A field with named values is written as the name.
 * A text field is a string, or an array of its bytes if it is not UTF-8 ending with a 0. Values that other tools
 * would lose are strings, as in <quern/reflect.h>: `"nan"`, `"-inf"`, integers beyond 2^53. A type without described
 * fields is a string of its bytes, two hexadecimal digits each; a tag is `true`. A field without a member in the
 * JSON keeps its value or, in a new value, the one that the type constructs.
 *
 * Numbers are read from their digits. Integers are exact in every notation (`100`, `1e2`). Floats are rounded once
 * to the nearest value, so a number too small for the type becomes 0. A number of more than 128 characters fails
 * for a float.
 *
 * The text must be JSON according to RFC 8259, with nothing but white space after it. A byte order mark before it
 * is skipped. A key that occurs twice in one object, the character U+0000 and unpaired surrogates fail with a
 * message that gives line and column. The content must fit the world: unknown names, unknown members of the world
 * object or of an entity, wrong types and values out of range fail with a message that names the place, with line and
 * column in bytes from 1.
 *
 * A call that fails, also for lack of memory, leaves the world unchanged, with two exceptions:
 * quern_json_read_world may have created entities and destroyed them again, and the waiting commands of
 * quern_world_commands are applied before a world or an entity is read.
 *
 * Errors of all calls: NULL_ARGUMENT, INVALID_ARGUMENT, OUT_OF_MEMORY; of the calls that read also LIMIT (4 GiB of
 * text). Threads: main, between frames. quern_json_write_value and quern_json_read_value may be called by any
 * thread while no thread modifies the world. */

#include <quern/prefab.h>
#include <quern/reflect.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Options for reading JSON. */
typedef struct quern_json_options {
    quern_allocator allocator QUERN__ZERO; /**< All zero: quern_allocator_default(). */
    /** Whether unknown components, fields, resources and relations, and unknown members of the world object or
     * of an entity, are left out. Default: they fail. */
    bool leaves_out_unknown QUERN__ZERO;
    quern_sink left_out QUERN__ZERO; /**< Receives a line for each thing left out; all zero: no report. */
    /** Called by quern_json_read_world for each entity that was read, in the order of the JSON, after all of
     * them exist; may be NULL. */
    void (*loaded)(void *user_data, uint64_t id, quern_entity entity) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to `loaded`. */
} quern_json_options;

/** Writes a value. Entity handles are strings in the format of quern_value_get_text, or `null`. Further errors:
 * IO. */
QUERN_API quern_result quern_json_write_value(const quern_world *world, const quern_type_info *type,
                                              const void *value, quern_sink sink);

/** Reads a value of plain bytes, or of a type with a copy hook, as types with lists have; options may be NULL.
 * Entity handles are in the format that quern_json_write_value writes. If the type has hooks, each described field is replaced as if by assignment. */
QUERN_API quern_result quern_json_read_value(const quern_world *world, const quern_type_info *type,
                                             void *value, const char *text, size_t bytes,
                                             const quern_json_options *options);

/** Writes an entity: its name, its components, and which of them are disabled. Further errors: those of
 * the calls on entities, IO; INVALID_ARGUMENT, naming the type, if a component has hooks and no described
 * fields. */
QUERN_API quern_result quern_json_write_entity(const quern_world *world, quern_entity entity,
                                               quern_sink sink);

/** Adds or changes the components that the JSON of an entity names; other components of the entity stay.
 * All changes are made together or none is. Targets of relations and the name are not read. Further errors:
 * those of quern_json_read_world; INVALID_ARGUMENT for a component that the entity already has and that has a
 * destroy hook but no copy hook; COMPONENT_ABSENT for the value of an edge that the entity does not have. */
QUERN_API quern_result quern_json_read_entity(quern_world *world, quern_entity entity, const char *text,
                                              size_t bytes, const quern_json_options *options);

/** Writes a world: all entities with their names, components, disabled components and ordered children,
 * and the resources with described fields. Each entity gets a number, `id`; lists of children and handles in
 * described fields refer to it. The handle of a dead entity is `null`. An entity that is disabled through its
 * parent (<quern/enabled.h>) is written as disabled itself. Waiting events and commands, prefabs and the values of
 * handles are not written. Further errors: those of quern_json_write_entity. */
QUERN_API quern_result quern_json_write_world(const quern_world *world, quern_sink sink);

/** Adds the entities of a world's JSON to a world, with new handles, and sets its resources to the values in
 * the JSON. Components, relations and resources must be registered under the same names, except those of
 * quern_world_parent and quern_world_disabled_tag, which are registered if the JSON uses them. The name of a root
 * must differ from the names of all roots of the world. options may be NULL. Further errors: WORLD_LOCKED,
 * UNKNOWN_COMPONENT, UNKNOWN_RESOURCE, CYCLE, SIBLING_NAME_TAKEN, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_json_read_world(quern_world *world, const char *text, size_t bytes,
                                             const quern_json_options *options);

/** Makes a prefab from JSON, without entities in the world (quern_prefab_create):
 *
 *     {"quern": 1, "prefab": {
 *         "id": 1, "components": {"Health": {"max": 100}},
 *         "children": [{"name": "barrel", "slot": "muzzle", "components": {"Aim": {"tower": 1}, "Heat": {}},
 *                       "disabled": ["Heat"], "targets": {"likes": [1, "/arena"]}}]}}
 *
 * `prefab` is the root, and `children` of a member are its children in quern_world_parent. All keys of a member are
 * optional. Members are numbered in the order of the text, from 0, the root: in overrides, in fills and in messages.
 * Values and `disabled`, the list of disabled components, are as in the JSON of an entity. The component `disabled`
 * disables its member alone, and registers quern_world_disabled_tag if the world does not have it, even if the call
 * then fails. `name` is unique among siblings; the root has none. `slot` names a slot of the root
 * (quern_prefab_slot_register). `targets` has one target, or an array of them, for each relation but the hierarchy.
 *
 * A handle is the `id` of a member, a whole number from 0 to 2^53 - 1; or the text of a living entity, such as
 * "/arena" (quern_entity_from_text); or, in a field, `null`. options may be NULL; `loaded` is not called. Nothing of
 * the text is needed after the call.
 *
 * Messages name line and column, the member by number and name, and the component or field. Further errors:
 * STALE_ENTITY, if a text is that of an entity that is not alive; those of quern_prefab_create. */
QUERN_API quern_result quern_json_read_prefab(quern_world *world, const char *text, size_t bytes,
                                              const quern_json_options *options, quern_prefab *out_prefab);

/** Writes a living entity and all its descendants as the JSON of a prefab. Reading it makes the prefab that capturing
 * the entity makes, with members in the order of the text, and with the described fields of types with hooks. To write
 * a prefab, spawn an instance and write that. Each member gets its number as `id`. Handles of other living entities
 * are written as text, so give these entities names; those of dead ones become null. An entity that is disabled
 * through its parent is written as disabled itself. A slot is written as a component of the root, with the id of its
 * part. Further errors: LIMIT (QUERN_MAX_PREFAB_MEMBERS); those of quern_json_write_entity. */
QUERN_API quern_result quern_json_write_prefab(const quern_world *world, quern_entity root,
                                               quern_sink sink);

#ifdef __cplusplus
}
#endif

#endif
