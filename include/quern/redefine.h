/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_REDEFINE_H
#define QUERN_REDEFINE_H

/** @file
 * Changing the definition of a registered type while its world lives: for modules that are reloaded, and for
 * types that tools change. See docs/reflection.md.
 *
 *     quern_component_redefine(world, position, &new_definition, NULL, NULL);
 *
 * Handles, entities, the order of rows, and everything that systems and queries declare stay as they are. After a
 * successful call, the world has no address of the old definition any more: neither of its hooks, nor of its texts,
 * fields, named values and default value. A module whose types all have been redefined by another module can be
 * unloaded. */

#include <quern/archive.h>
#include <quern/base.h>
#include <quern/component.h>
#include <quern/event.h>
#include <quern/id.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Maximum number of names of dropped fields in a report. */
#define QUERN_MAX_DROPPED_FIELDS 16

/** A field with another name in the new definition. */
typedef struct quern_field_rename {
    const char *from QUERN__ZERO; /**< Name in the old definition. */
    const char *to QUERN__ZERO;   /**< Name in the new definition. */
} quern_field_rename;

/** How values of the old definition become values of the new one, if their layouts differ. */
typedef struct quern_redefine_def {
    /** Fields that were renamed. The others are matched by name. The list ends at the first element without `from`. */
    quern_field_rename renames[QUERN_MAX_FIELDS] QUERN__ZERO;
    /** Function that converts the values; NULL: they are converted field by field. Handles are those of the world
     * and stay as they are written. The old values are destroyed by the old hooks afterwards. */
    quern_migrate_function *migrate QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to migrate. */
    /** Whether to check only: the call fails as it would otherwise, and changes nothing. For programs that redefine
     * several types, or none of them. */
    bool only_checks QUERN__ZERO;
} quern_redefine_def;

/** What a redefinition has changed. If it fails, all members are 0. */
typedef struct quern_redefine_report {
    bool is_converted; /**< Whether the layouts differ, so that values were converted. */
    uint64_t
        value_count; /**< Number of converted values: of entities, prefabs, events, reactions, a resource. */
    uint64_t
        shortened_count; /**< Number of texts that were longer than the new field, and end earlier now. */
    uint32_t added_field_count;   /**< Fields that only the new definition has; 0 with `migrate`. */
    uint32_t dropped_field_count; /**< Fields that only the old definition had; 0 with `migrate`. */
    uint32_t
        dropped_frame_count; /**< Frames of a history that were dropped, because they have the old layout. */
    /** Names of the dropped fields, at most the first QUERN_MAX_DROPPED_FIELDS. */
    char dropped_fields[QUERN_MAX_DROPPED_FIELDS][QUERN_MAX_NAME_BYTES + 1];
} quern_redefine_report;

/** Gives a component another definition. def->name is NULL or the component's name; def->required lists the
 * components that it requires already, and can_disable and row_changes are as before. how: how values are
 * converted; NULL for the defaults. out_report may be NULL.
 *
 * With the same size, alignment and fields (names, types, offsets, counts) and the same set of hooks, values stay
 * where they are, byte by byte. What they own must then suit the new hooks: memory from an allocator of an unloaded
 * module does not. The default value of the old definition is destroyed by its hooks; that of the new one is copied.
 *
 * Otherwise all values are converted, by how->migrate or by the rules of quern_world_load, and a change filter sees the
 * component as changed. A list whose elements differ is converted by how->migrate only. A field that only the new
 * definition has is that of its default value, or constructed, or zero. Addresses of values, iterations and views become
 * invalid. Frames of a history are dropped with a warning, and sessions of archives and recorders of replays refuse to go
 * on. A tag stays a tag.
 *
 * The identity of the type (type_id) becomes that of the definition. If that has none, the identity stays unless the layout
 * changes. Code in C++ with the old layout of a struct is refused afterwards, as another type of the same name.
 *
 * Errors, with nothing changed: NULL_ARGUMENT, WORLD_LOCKED (also in exclusive systems), UNKNOWN_COMPONENT,
 * INVALID_ARGUMENT (another name; a component that the world manages; a rename of a missing field; a number that does
 * not fit; waiting commands with values of the component; deltas of a history; a function for values in which a prefab has
 * handles of its members), LAYOUT_MISMATCH (values cannot be converted; a list with other elements without migrate; flags
 * or required components differ; the type_id is that of another component; another layout for the values of edges to
 * several targets), COMPONENT_TOO_LARGE (of an entity), and those of quern_component_register. Threads: main, between
 * frames. */
QUERN_API quern_result quern_component_redefine(quern_world *world, quern_component component,
                                                const quern_component_def *def,
                                                const quern_redefine_def *how,
                                                quern_redefine_report *out_report);

/** Gives a resource another definition. It keeps its value; def->value is ignored. With another layout, the value gets
 * another address, and bytes that no field describes are lost. Otherwise as quern_component_redefine. Errors: as quern_component_redefine, with UNKNOWN_RESOURCE. Threads: main, between
 * frames. */
QUERN_API quern_result quern_resource_redefine(quern_world *world, quern_resource resource,
                                               const quern_resource_def *def, const quern_redefine_def *how,
                                               quern_redefine_report *out_report);

/** Gives an event another definition, also another limit_bytes, which counts from the next publication. Waiting
 * events and readers stay. Otherwise as quern_component_redefine. Errors: as quern_component_redefine, with
 * UNKNOWN_EVENT. Threads: main, between frames. */
QUERN_API quern_result quern_event_redefine(quern_world *world, quern_event event,
                                            const quern_event_def *def, const quern_redefine_def *how,
                                            quern_redefine_report *out_report);

#ifdef __cplusplus
}
#endif

#endif
