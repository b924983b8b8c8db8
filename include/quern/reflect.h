/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_REFLECT_H
#define QUERN_REFLECT_H

/** @file
 * Reflection: what a world has, for tools, consoles and files. Component types, resources, events and
 * relations are listed with their fields; values are read and written by path, as text; components come and
 * go by name. See docs/reflection.md. <quern/kit/json.h> reads and writes whole worlds.
 *
 *     quern_entity_set_text(world, entity, "Position.x", "3.5");
 *
 * A path names a component or resource, a dot, and a field, as it was described: `Position.x`,
 * `Body.place.x`. With `[2]` behind it, it is the element of an array. Where names of components have
 * dots, the longest that the path begins with counts.
 *
 * Text of a value, which no locale changes:
 *
 * | field | text |
 * |---|---|
 * | bool | `true` or `false`; `1` and `0` are read, too |
 * | integer | decimal; hexadecimal such as `0x1F` is read, too |
 * | integer with named values | the name; for a value without one, and to set any, the number |
 * | float, double | as few digits as lead back to the same bits; `inf`, `nan`, `nan(0x7fa00001)` |
 * | entity | `/arena/gun` where names lead to it, or `index:generation`; `none` |
 * | array | `[1, 2, 3]`; of an entity in an array, the path is not written and not read |
 * | text | itself |
 *
 * `nan` is the usual one, and of another NaN the bits are written; so are those of a handle that is not of
 * this world, as `0x` and 16 digits. What is written is read back as the same bytes, except behind the end
 * of a text. A text that is set must be valid as a whole, in the range of the field where it has one, and
 * not read only; otherwise nothing changes, and the message says what is expected.
 *
 * Errors of all calls: NULL_ARGUMENT; those that name something say UNKNOWN_COMPONENT or UNKNOWN_RESOURCE.
 * Threads: the lists and quern_value_ calls any, while nobody registers and no change of the world runs
 * beside; the others main, between frames and in exclusive systems. Nothing here is of a cost for who does
 * not call it. */

#include <quern/base.h>
#include <quern/commands.h>
#include <quern/component.h>
#include <quern/event.h>
#include <quern/id.h>
#include <quern/relation.h>
#include <quern/sink.h>
#include <quern/type.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------- lists */

/** What is known of the type of a component, resource or event. Pointers are the world's, valid until
 * something is registered. */
typedef struct quern_type_info {
    const char *name;          /**< As registered. */
    const char *type_name;     /**< Of the C type; "": not known. */
    uint32_t size_bytes;       /**< 0: a tag, or an event that is only counted. */
    uint32_t alignment_bytes;  /**< A power of two. */
    const quern_field *fields; /**< Described fields; their counts are at least 1. */
    uint32_t field_count;      /**< 0: nothing is known of the bytes. */
    quern_hooks hooks;         /**< All NULL: plain bytes. */
    bool can_disable;          /**< A component that can be disabled. */
    bool row_changes;          /**< A component whose changes are known by row. */
    bool is_relation;          /**< The component of a relation: its value changes by relating. */
    bool is_managed;           /**< The world keeps it itself; only that of a relation can be set. */
    bool is_hidden;            /**< Tools should not show it: told so, or a mark of the world's own. */
} quern_type_info;

/** A flag of component types: the member of this name of quern_component_def and of quern_type_info. */
typedef struct quern_flag_info {
    const char *name;           /**< Such as "can_disable". */
    const char *with;           /**< What a type with the flag does or is: "can be disabled". */
    const char *without;        /**< What a type without the flag does or is: "cannot be disabled". */
    uint32_t info_offset_bytes; /**< Of the member, a bool, in quern_type_info. */
    /** Name, in the JSON of an entity (quern_json_write_world), of the list of its components that are in the state
     * that the flag allows, such as "disabled". NULL, as the two functions: entities have no state of the flag. */
    const char *list_name;
    /** Whether the component of the entity is in the state. Threads: as quern_entity_is_enabled. */
    bool (*is_listed)(const quern_world *world, quern_entity entity, quern_component component);
    /** Records the command that puts the component into the state. Errors: as quern_commands_enable. */
    quern_result (*list)(quern_commands *commands, quern_entity entity, quern_component component);
} quern_flag_info;

/** Returns how many flags component types have. The number is the same for all worlds. */
QUERN_API uint32_t quern_component_flag_count(void);

/** Tells about the flag of that number. Errors: INVALID_ARGUMENT (no such number). */
QUERN_API quern_result quern_component_flag_get_info(uint32_t index, quern_flag_info *out_info);

/** Returns whether a type has a flag. */
static inline bool quern_type_has_flag(const quern_type_info *type, const quern_flag_info *flag)
{
    return *(const bool *)((const char *)type + flag->info_offset_bytes);
}

/** Returns how many component types the world has, with those that it keeps itself; 0 with a message. */
QUERN_API uint32_t quern_component_count(const quern_world *world);

/** Returns the component of that number, in the order of registration, or null with a message. */
QUERN_API quern_component quern_component_at(const quern_world *world, uint32_t index);

/** Tells about a component type. Errors: UNKNOWN_COMPONENT. */
QUERN_API quern_result quern_component_get_info(const quern_world *world, quern_component component,
                                                quern_type_info *out_info);

/** Returns how many resources the world has; 0 with a message. */
QUERN_API uint32_t quern_resource_count(const quern_world *world);

/** Returns the resource of that number, in the order of registration, or null with a message. */
QUERN_API quern_resource quern_resource_at(const quern_world *world, uint32_t index);

/** Tells about a resource. Errors: UNKNOWN_RESOURCE. */
QUERN_API quern_result quern_resource_get_info(const quern_world *world, quern_resource resource,
                                               quern_type_info *out_info);

/** Returns how many event types the world has; 0 with a message. */
QUERN_API uint32_t quern_event_count(const quern_world *world);

/** Returns the event of that number, in the order of registration, or null with a message. */
QUERN_API quern_event quern_event_at(const quern_world *world, uint32_t index);

/** Tells about an event type. Errors: UNKNOWN_EVENT. */
QUERN_API quern_result quern_event_get_info(const quern_world *world, quern_event event,
                                            quern_type_info *out_info);

/** Returns how many relations the world has; 0 with a message. */
QUERN_API uint32_t quern_relation_count(const quern_world *world);

/** Returns the relation of that number, in the order of registration, or null with a message. */
QUERN_API quern_relation quern_relation_at(const quern_world *world, uint32_t index);

/** Gives the definition of a relation; its name is the world's. Errors: INVALID_ARGUMENT (none of this
 * world). */
QUERN_API quern_result quern_relation_get_def(const quern_world *world, quern_relation relation,
                                              quern_relation_def *out_def);

/** Writes all living entities in the order of their slots, at most capacity of them, and returns how many
 * there are. out_entities may be NULL when capacity is 0. Costs a walk over all slots. Returns 0 with a
 * message when the call is wrong. */
QUERN_API uint32_t quern_world_entities(const quern_world *world, quern_entity *out_entities,
                                        uint32_t capacity);

/** Returns how many components an entity has, with tags and those that the world keeps itself; 0 with a
 * message for a wrong handle. */
QUERN_API uint32_t quern_entity_component_count(const quern_world *world, quern_entity entity);

/** Writes the components of an entity in the order of registration, at most capacity of them, and returns
 * how many it has. out_components may be NULL when capacity is 0. Returns 0 with a message when the call is
 * wrong. */
QUERN_API uint32_t quern_entity_components(const quern_world *world, quern_entity entity,
                                           quern_component *out_components, uint32_t capacity);

/* ------------------------------------------------------------------------------------ values as text */

/** Writes a field of a value. type is what a get_info call gave; path is the field alone, without the name
 * of the component. world is the one whose entities the value may name. Errors: INVALID_ARGUMENT (no such
 * field), FILE. */
QUERN_API quern_result quern_value_get_text(const quern_world *world, const quern_type_info *type,
                                            const void *value, const char *path, quern_sink sink);

/** Gives a field of a value what a text says. The value may be anywhere; that it has changed nobody hears.
 * Errors: INVALID_ARGUMENT (no such field, no such value, out of range, read only). */
QUERN_API quern_result quern_value_set_text(const quern_world *world, const quern_type_info *type,
                                            void *value, const char *path, const char *text);

/** Writes a field of a component of an entity. Errors: as quern_value_get_text, those of the calls on
 * entities, COMPONENT_ABSENT. */
QUERN_API quern_result quern_entity_get_text(const quern_world *world, quern_entity entity,
                                             const char *path, quern_sink sink);

/** Gives a field of a component, which the entity must have, what a text says. Change filters and reactions
 * count it as setting the component. The component of a relation, whose field is `target`, relates, and
 * unrelates with `none`. Errors: as quern_value_set_text, those of the calls on entities, COMPONENT_ABSENT;
 * those of quern_entity_relate. */
QUERN_API quern_result quern_entity_set_text(quern_world *world, quern_entity entity, const char *path,
                                             const char *text);

/** Writes a field of a resource. Errors: as quern_value_get_text. */
QUERN_API quern_result quern_resource_get_text(const quern_world *world, const char *path, quern_sink sink);

/** Gives a field of a resource what a text says. Errors: as quern_value_set_text, WORLD_LOCKED. */
QUERN_API quern_result quern_resource_set_text(quern_world *world, const char *path, const char *text);

/* ----------------------------------------------------------------------------------------- by name */

/** Adds a component, constructed, as quern_entity_add does. Errors: as there, and INVALID_ARGUMENT for the
 * name of a relation, which needs a target. */
QUERN_API quern_result quern_entity_add_by_name(quern_world *world, quern_entity entity, const char *name);

/** Removes a component, as quern_entity_remove does; that of a relation unrelates. Errors: as there. */
QUERN_API quern_result quern_entity_remove_by_name(quern_world *world, quern_entity entity,
                                                   const char *name);

#ifdef __cplusplus
}
#endif

#endif
