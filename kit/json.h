/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_JSON_H
#define QUERN_KIT_JSON_H

/** @file
 * Values, entities and worlds as JSON, written and read back. See docs/kit.md.
 *
 *     quern_json_write_world(world, quern_sink_file(file));
 *     quern_json_read_world(other, text, bytes, NULL);
 *
 * A value is an object with a member for each described field; the field `place.x` is the member `x` of an object
 * `place`. Numbers and bools are such, and arrays are arrays; a value with a name is its name, a text a string (an
 * array of bytes where it is not UTF-8 that ends with a 0). Strings as in <quern/reflect.h> stand for what other
 * tools would lose: `"nan"`, `"-inf"`, integers beyond 2^53. A type without described fields is a string of its
 * bytes, two hexadecimal digits each; a tag is `true`. Members that are missing leave fields as they are, or as the
 * type constructs them.
 *
 * Numbers are read from their digits: integers exactly, whichever way they are written (`100`, `1e2`), floats
 * rounded once to the nearest value, so that a number too small for the type becomes 0. A number of more than 128
 * characters is refused for a float.
 *
 * The text must be JSON as RFC 8259 has it, with nothing behind it. A byte order mark before it is skipped. The same
 * key twice in one object, the character U+0000 and halves of surrogate pairs are refused; the message says at which
 * line and byte. All of it must fit: unknown names, members that a world or an entity does not have, wrong types
 * and values out of range are refused with a message that says where, and nothing changes. All calls that fail, also
 * for want of memory, leave the world as it was; but where a whole world is read, slots may have been used and
 * freed, and commands of quern_world_commands that wait are applied first.
 *
 * Errors of all calls: NULL_ARGUMENT, INVALID_ARGUMENT, OUT_OF_MEMORY; of those that read, LIMIT (4 GiB of text).
 * Threads: main, between frames; the calls on values any, while no change of the world runs beside. */

#include <quern/reflect.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How JSON is read. */
typedef struct quern_json_options {
    quern_allocator allocator QUERN__ZERO; /**< All zero: quern_allocator_default(). */
    /** Components, fields, resources and relations that the world does not have, and members that an entity or
     * a world does not have, are left out, and not refused. */
    bool leaves_out_unknown QUERN__ZERO;
    quern_sink left_out
        QUERN__ZERO; /**< Gets a line for each time that something is left out; may be none. */
    /** Called for each entity of a world that was read, in order, when all is done; may be NULL. */
    void (*loaded)(void *user_data, uint64_t id, quern_entity entity) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< For loaded. */
} quern_json_options;

/** Writes a value. Handles are strings, as quern_value_get_text writes them, or `null`. Further errors:
 * FILE. */
QUERN_API quern_result quern_json_write_value(const quern_world *world, const quern_type_info *type,
                                              const void *value, quern_sink sink);

/** Reads a value of plain bytes; options may be NULL. Handles as they are written. Where a type has hooks,
 * its described fields are replaced as if by assignment. */
QUERN_API quern_result quern_json_read_value(const quern_world *world, const quern_type_info *type,
                                             void *value, const char *text, size_t bytes,
                                             const quern_json_options *options);

/** Writes an entity: its name, its components, and which of them are disabled. Further errors: those of
 * the calls on entities, FILE; INVALID_ARGUMENT, naming the type, where one has hooks and no described
 * fields. */
QUERN_API quern_result quern_json_write_entity(const quern_world *world, quern_entity entity,
                                               quern_sink sink);

/** Gives an entity what the JSON of an entity has: components are added or changed, those that are not in
 * it stay. All is done or nothing, as one change by command. Targets of relations and the name are not
 * read. Further errors: as of quern_json_read_world; INVALID_ARGUMENT for a component that the entity has
 * and whose hooks cannot copy it. */
QUERN_API quern_result quern_json_read_entity(quern_world *world, quern_entity entity, const char *text,
                                              size_t bytes, const quern_json_options *options);

/** Writes a world: all entities with their names, components, disabled bits and children in their order,
 * and the resources with described fields. Each entity has a number, `id`, which handles in described
 * fields and children are written as; a handle of an entity that does not live is `null`. Who is disabled
 * because of its parent (<quern/enabled.h>) is written as disabled. Events and commands that wait, prefabs
 * and handles themselves are not written. Further errors: as of quern_json_write_entity. */
QUERN_API quern_result quern_json_write_world(const quern_world *world, quern_sink sink);

/** Adds the entities of a world's JSON to a world, with handles of their own, and gives its resources the
 * values there. The components, relations and resources must be registered, by the same names;
 * quern_world_parent and quern_world_disabled_tag are where they are needed. Roots must have names that no
 * root of the world has. options may be NULL. Further errors: WORLD_LOCKED, UNKNOWN_COMPONENT,
 * UNKNOWN_RESOURCE, CYCLE, SIBLING_NAME_TAKEN, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT. */
QUERN_API quern_result quern_json_read_world(quern_world *world, const char *text, size_t bytes,
                                             const quern_json_options *options);

#ifdef __cplusplus
}
#endif

#endif
