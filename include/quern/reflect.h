/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_REFLECT_H
#define QUERN_REFLECT_H

/** @file
 * Reflection: inspection of a world by tools, consoles and files. Component types, resources, events and
 * relations can be listed with their fields. Values can be read and written as text, by path, and
 * components added and removed by name. See docs/reflection.md. <quern/kit/json.h> reads and writes whole
 * worlds.
 *
 *     quern_entity_set_text(world, entity, "Position.x", "3.5");
 *
 * A path is the name of a component or resource, a dot, and the name of a described field: `Position.x`,
 * `Body.place.x`. A suffix `[2]` selects an element of an array or of a list, and `Bag.items[2].count` a field of a
 * struct in a list. If names of components contain dots, the
 * longest one that is a prefix of the path is used.
 *
 * Text of a value, independent of the locale:
 *
 * | field | text |
 * |---|---|
 * | bool | `true` or `false`; `1` and `0` are accepted |
 * | integer | decimal; hexadecimal such as `0x1F` is accepted |
 * | integer with named values | the name; a number for a value without one, and accepted for all |
 * | float, double | the fewest digits that give the same bits again; `inf`, `nan`, `nan(0x7fa00001)` |
 * | entity | `/arena/gun` if names lead to it, otherwise `index:generation`; `none` |
 * | array | `[1, 2, 3]`; entities in an array are neither written nor accepted as a path |
 * | text, string | itself |
 * | list of numbers or entities | `[1, 2, 3]` of any length |
 * | other lists | `3 elements`, `1 string`; only their elements can be set |
 *
 * White space around a value is left out, but white space after a path belongs to its last name.
 * `nan` is the usual NaN; any other NaN is written with its bits. A handle of another world is written as
 * its bits, `0x` and 16 digits. Reading written text gives the same bytes, except after the end of a text.
 * Text that is set must be valid as a whole, within the field's range, and the field must not be
 * read-only; otherwise the call fails, changes nothing, and the message says what is expected.
 *
 * Errors of all functions: NULL_ARGUMENT, and for names UNKNOWN_COMPONENT or UNKNOWN_RESOURCE. Threads:
 * the functions that list, quern_value_get_text, quern_value_set_text, quern_entity_to_text and
 * quern_entity_from_text: any, as long as no thread registers or modifies the world. The others: main, between frames and in exclusive systems. Programs
 * that do not call these functions pay nothing for them. */

#include <quern/base.h>
#include <quern/commands.h>
#include <quern/component.h>
#include <quern/event.h>
#include <quern/id.h>
#include <quern/query.h>
#include <quern/relation.h>
#include <quern/sink.h>
#include <quern/type.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------- lists */

/** What a type is of. Each kind has a list of its own in the order of registration. */
typedef enum quern_type_kind {
    QUERN_TYPE_COMPONENT, /**< Components, including those that the world maintains itself. */
    QUERN_TYPE_RESOURCE,  /**< Resources. */
    QUERN_TYPE_EVENT,     /**< Events. */
    QUERN_TYPE_RELATION   /**< Relations. */
} quern_type_kind;

/** Description of the type of a component, resource or event, or of a relation's component. Its pointers
 * belong to the world and are valid until something is registered. */
typedef struct quern_type_info {
    quern_component component; /**< Of a component and of a relation: the component. Otherwise null. */
    quern_resource resource;   /**< Of a resource: its handle. Otherwise null. */
    quern_event event;         /**< Of an event: its handle. Otherwise null. */
    quern_relation relation;   /**< Of a relation in a list of relations: its handle. Otherwise null. */
    const char *name;          /**< Name, as registered. */
    const char *type_name;     /**< Name of the C type; "" if unknown. */
    uint32_t size_bytes;       /**< Size of a value; 0 for a tag, and for an event that is only counted. */
    uint32_t alignment_bytes;  /**< A power of two. */
    const quern_field *fields; /**< Described fields; each has a count of at least 1. */
    uint32_t field_count;      /**< Number of described fields; 0 if the type has no described fields. */
    quern_hooks hooks;         /**< Hooks; all NULL for plain bytes. */
    /** Whether the hooks are those that a type with lists gets if it is registered without hooks. They are valid until the
     * type is redefined; quern_list_copy and quern_list_free do the same for one list. */
    bool has_list_hooks;
    const void
        *default_value; /**< Value of a newly constructed component; NULL: by the hook, or zero bytes. */
    const quern_component *required; /**< Components that the component requires, as registered. */
    uint32_t required_count;         /**< Number of these. */
    bool can_disable;                /**< Whether the component can be disabled. */
    bool row_changes;                /**< Whether change filters on the component select single rows. */
    quern_relation edges_of; /**< Relation of which edges have the component as value; otherwise null. */
    /** Whether the component belongs to a relation. Relating and unrelating changes its value. */
    bool is_relation;
    /** Whether the world maintains the component itself. Of such components, only those of relations can
     * be set. */
    bool is_managed;
    /** Whether tools should hide the type, because its definition says so or because it is an internal
     * tag. */
    bool is_hidden;
} quern_type_info;

/** A flag of component types: a bool member of this name in quern_component_def and in quern_type_info. */
typedef struct quern_flag_info {
    const char *name;    /**< Name of the flag, such as "can_disable". */
    const char *with;    /**< Description of a type with the flag, such as "can be disabled". */
    const char *without; /**< Description of a type without the flag, such as "cannot be disabled". */
    uint32_t info_offset_bytes; /**< Offset of the member in quern_type_info. */
    /** Name of a list of components in the JSON of an entity (quern_json_write_world), such as "disabled".
     * The list contains the components of the entity that are in the state which the flag allows, such as
     * disabled. NULL, like the two functions, if there is no such state. */
    const char *list_name;
    /** Returns whether the component of the entity is in the state. Threads: as quern_entity_is_component_enabled. */
    bool (*is_listed)(const quern_world *world, quern_entity entity, quern_component component);
    /** Records a command that puts the component of the entity into the state. Errors: as
     * quern_commands_set_component_enabled. */
    quern_result (*list)(quern_commands *commands, quern_entity entity, quern_component component);
} quern_flag_info;

/** Returns the number of flags of component types, which is the same for all worlds. */
QUERN_API uint32_t quern_component_flag_count(void);

/** Returns the description of a flag, by number from 0. Errors: INVALID_ARGUMENT (index). */
QUERN_API quern_result quern_component_flag_get_info(uint32_t index, quern_flag_info *out_info);

/** Returns whether a type has a flag. */
static inline bool quern_type_has_flag(const quern_type_info *type, const quern_flag_info *flag)
{
    const void *info = type;
    const void *value = QUERN__CAST(const char *, info) + flag->info_offset_bytes;
    return *QUERN__CAST(const bool *, value);
}

/** Returns the number of types of a kind that the world has. 0, with a message, if world is NULL or kind is
 * no quern_type_kind. */
QUERN_API uint32_t quern_type_count(const quern_world *world, quern_type_kind kind);

/** Returns the description of a type by number, from 0 in the order of registration; its handle is in the
 * description. Of a relation, this is the type of its component. Errors: INVALID_ARGUMENT (kind or index). */
QUERN_API quern_result quern_type_at(const quern_world *world, quern_type_kind kind, uint32_t index,
                                     quern_type_info *out_info);

/** Returns the description of a component type. Errors: UNKNOWN_COMPONENT. */
QUERN_API quern_result quern_component_get_info(const quern_world *world, quern_component component,
                                                quern_type_info *out_info);

/** Returns the description of a resource. Errors: UNKNOWN_RESOURCE. */
QUERN_API quern_result quern_resource_get_info(const quern_world *world, quern_resource resource,
                                               quern_type_info *out_info);

/** Returns the description of an event type. Errors: UNKNOWN_EVENT. */
QUERN_API quern_result quern_event_get_info(const quern_world *world, quern_event event,
                                            quern_type_info *out_info);

/** Returns the definition of a relation. Its name belongs to the world. Errors: INVALID_ARGUMENT (not a
 * relation of this world). */
QUERN_API quern_result quern_relation_get_def(const quern_world *world, quern_relation relation,
                                              quern_relation_def *out_def);

/** Stores up to `capacity` living entities, in the order of their slots, and returns how many there are.
 * out_entities may be NULL if capacity is 0. Costs a pass over all slots;
 * quern_world_list_entities_from lists them in pages. Returns 0, with a message, if the call is wrong. */
QUERN_API uint32_t quern_world_list_entities(const quern_world *world, quern_entity *out_entities,
                                             uint32_t capacity);

/** Stores the next living entities of a list, at most `capacity`, and returns how many it stored. Use it to show a
 * large world in pages:
 *
 *     quern_entity page[256];
 *     uint32_t cursor = 0;
 *     while (cursor != QUERN_LIST_END) {
 *         const uint32_t count = quern_world_list_entities_from(world, &cursor, page, 256);
 *         show(page, count);
 *     }
 *
 * The order is that of quern_world_list_entities: ascending quern_entity_index. *cursor is the slot at which the call
 * starts: 0, the cursor of an earlier call, or the index of any entity. The call sets it to the slot after the last
 * visited one, or to QUERN_LIST_END if no slots are left. The world may change between two calls. An entity that
 * lives throughout is listed exactly once; an entity that is created meanwhile is listed if its slot was not visited
 * yet.
 *
 * Costs O(capacity): the call visits at most 64 slots per entity of the capacity. So after many entities were
 * destroyed it may store fewer, or none, before the end. Errors, by which the call returns 0 and sets *cursor to
 * QUERN_LIST_END: NULL_ARGUMENT, INVALID_ARGUMENT (capacity is 0). */
QUERN_API uint32_t quern_world_list_entities_from(const quern_world *world, uint32_t *cursor,
                                                  quern_entity *out_entities, uint32_t capacity);

/** Stores up to `capacity` entities with names that begin with a prefix, and returns how many there are. Use it to
 * complete what a user types. If more entities match than are stored, the first ones in the order are stored.
 *
 * A prefix without '/' matches the names of all entities, and "" matches every named entity. A prefix with '/' is the
 * beginning of a path, such as "/arena/gu": all names but the last must lead to an entity, of which the children with
 * matching names are listed. "/gu" lists roots. With a '/' elsewhere but not at the beginning, nothing matches. The order is that of the bytes of the names, as by strcmp;
 * entities of the same name are in the order of quern_entity_index.
 *
 * out_entities may be NULL if capacity is 0. Costs a pass over all names of the world, and O(log capacity) per match;
 * allocates nothing. Returns 0 without a message if nothing matches, and 0 with a message if an argument is NULL. */
QUERN_API uint32_t quern_world_list_named(const quern_world *world, const char *prefix,
                                          quern_entity *out_entities, uint32_t capacity);

/** Stores up to `capacity` components of an entity, in the order of registration, and returns how many it
 * has, including tags and components that the world maintains itself. out_components may be NULL if capacity
 * is 0, to count them. Returns 0, with a message, if the call is wrong. */
QUERN_API uint32_t quern_entity_list_components(const quern_world *world, quern_entity entity,
                                                quern_component *out_components, uint32_t capacity);

/* ------------------------------------------------------------------------------------ values as text */

/** Writes an entity as text, in the form of fields of type QUERN_FIELD_ENTITY (see the table above): its path, such
 * as `/arena/gun`, if the entity is alive, has at most 63 ancestors, and all of them and the entity itself have names;
 * `index:generation` for every other handle of this world; `none` for null; `0x` and 16 digits for a handle of another
 * world and for a provisional one. Errors: NULL_ARGUMENT, IO. Costs a walk up to the root; allocates nothing. */
QUERN_API quern_result quern_entity_to_text(const quern_world *world, quern_entity entity, quern_sink sink);

/** Reads an entity from text that quern_entity_to_text has written. As long as the entity, its ancestors and their
 * names are the same, the result has the same bits. Only a path is looked up, with one hash table look-up per name. A
 * handle in another form may be stale or belong to another world; check it with quern_entity_is_alive. Errors, with
 * *out_entity unchanged: NULL_ARGUMENT, INVALID_ARGUMENT (no entity has this path, or the text is no entity). Allocates
 * nothing. */
QUERN_API quern_result quern_entity_from_text(const quern_world *world, const char *text,
                                              quern_entity *out_entity);

/** Writes a field of a value as text. type is what a function quern_*_get_info returned. path is the path of the
 * field only, without the name of the component. world is the one to which entities in the value belong.
 * Errors: INVALID_ARGUMENT (no such field), IO. */
QUERN_API quern_result quern_value_get_text(const quern_world *world, const quern_type_info *type,
                                            const void *value, const char *path, quern_sink sink);

/** Sets a field of a value from text. The value may be anywhere in memory; the call marks nothing as
 * changed. Errors: INVALID_ARGUMENT (no such field, invalid text, out of range, read-only). */
QUERN_API quern_result quern_value_set_text(const quern_world *world, const quern_type_info *type,
                                            void *value, const char *path, const char *text);

/** Writes a field of a component of an entity as text. Errors: as quern_value_get_text, those of the
 * functions on entities, COMPONENT_ABSENT. */
QUERN_API quern_result quern_entity_get_text(const quern_world *world, quern_entity entity,
                                             const char *path, quern_sink sink);

/** Sets a field of a component of an entity from text. The entity must have the component. For change
 * filters and reactions, the call sets the component. Setting the field `target` of a relation's component
 * relates the entity, or unrelates it with `none`. Errors: as quern_value_set_text, those of the functions
 * on entities, COMPONENT_ABSENT, those of quern_entity_relate. */
QUERN_API quern_result quern_entity_set_text(quern_world *world, quern_entity entity, const char *path,
                                             const char *text);

/** Writes a field of a resource as text. Errors: as quern_value_get_text. */
QUERN_API quern_result quern_resource_get_text(const quern_world *world, const char *path, quern_sink sink);

/** Sets a field of a resource from text. Errors: as quern_value_set_text, WORLD_LOCKED. */
QUERN_API quern_result quern_resource_set_text(quern_world *world, const char *path, const char *text);

/* ----------------------------------------------------------------------------------------- by name */

/** Adds a component by name and constructs its value, like quern_entity_add. Errors: as quern_entity_add,
 * and INVALID_ARGUMENT (the name of a relation, which needs a target). */
QUERN_API quern_result quern_entity_add_by_name(quern_world *world, quern_entity entity, const char *name);

/** Removes a component by name, like quern_entity_remove. For the component of a relation, this unrelates
 * the entity. Errors: as quern_entity_remove. */
QUERN_API quern_result quern_entity_remove_by_name(quern_world *world, quern_entity entity,
                                                   const char *name);

/* ------------------------------------------------------------------------------------ queries as text */

/** Reads the terms of a query from text, for tools and consoles. Terms are separated by commas:
 *
 * | term | meaning |
 * |---|---|
 * | `Position` | the entity has the component; its values are read |
 * | `mut Position` | the same; its values are read and written |
 * | `with Position` | the same; its values are not accessed |
 * | `!Hunter` | the entity lacks the component |
 * | `?Velocity`, `?mut Velocity` | no condition; the values are read or written where they exist |
 * | `Hunter \| Prey` | the entity has at least one of them; one such group per query |
 * | `\| Wolf` | a further alternative of the group, after other terms; or the only one |
 * | `changed Position` | a change filter, see quern_term_changed |
 * | `disabled Shield`, `either Shield` | rows in which the component is disabled, or in either state |
 * | `Position of parent` | the component of the target in the relation, see quern_term_up |
 * | `Position of nearest parent` | that of the nearest ancestor that has it, see quern_term_up_nearest |
 * | `parent(/arena)` | the rows with the entity as their target in the relation, see quern_term_target |
 *
 * mut, with, changed, disabled and either may be combined. Values of tags are never accessed. A name with spaces, or one of
 * the characters `, | ( ) ! ? "`, is written in quotes, and so is a name that would be read as one of these words. In
 * quotes, a backslash precedes a quote or a backslash. An entity is written as in fields of type
 * QUERN_FIELD_ENTITY.
 *
 * Stores the definition, with terms in the order of the text, for quern_query_create; its whole_chunks is false. Errors, with
 * *out_def unchanged: NULL_ARGUMENT, INVALID_ARGUMENT (the text is no query; the message names the column, in bytes from 1),
 * UNKNOWN_COMPONENT (the world has no component or relation with the name), LIMIT (QUERN_MAX_TERMS). Allocates nothing.
 * Threads: any, as long as no thread registers or modifies the world. */
QUERN_API quern_result quern_query_parse(const quern_world *world, const char *text,
                                         quern_query_def *out_def);

/** Writes the terms of a query as text that quern_query_parse reads as the same terms. Left out is only quern_term_either
 * of a term that excludes a component or has a target: it has no effect there. Errors: NULL_ARGUMENT, INVALID_ARGUMENT (a
 * term has no text: it combines members that no query may combine, or reads old values), UNKNOWN_COMPONENT, IO (the sink
 * failed). Threads: as quern_query_parse. */
QUERN_API quern_result quern_query_to_text(const quern_world *world, const quern_query_def *def,
                                           quern_sink sink);

#ifdef __cplusplus
}
#endif

#endif
