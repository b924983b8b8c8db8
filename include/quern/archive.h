/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_ARCHIVE_H
#define QUERN_ARCHIVE_H

/** @file
 * Archives: worlds, or some of their entities, as bytes that another process can load.
 *
 *     quern_world_save(world, quern_sink_file(file), NULL);
 *     quern_world_load(other, quern_source_file(file), NULL, NULL);
 *
 * An archive identifies components and fields by name. Loading uses the components that the world has under
 * these names. If a component now has other fields, its values are converted field by field, or by a
 * migration that the program provides. A world must therefore register its components, relations and
 * resources before it loads.
 *
 * Saved: entities with their components and their disabled state, relations with levels and the order of
 * siblings, names, and the described fields of resources. Not saved: prefabs and queries. To save a prefab, save the
 * tree from which it was captured, or an instance, and capture it again after loading. Saved only with the
 * schedules that they belong to (`schedules` of quern_save_def): waiting events, changes that reactions have not
 * seen, and the state of schedules.
 *
 * A component without described fields is saved as bytes, and must have the same size where it is loaded.
 * If both sides have the same fields, whole values are copied, including bytes that no field describes. A
 * pointer in a component is therefore loaded as the old address: leave such components out, or describe the
 * fields that are worth saving.
 *
 * Handles in described fields that refer to entities of this world keep their meaning. Provisional handles
 * and handles of other worlds have no meaning after loading, so they are saved as null; quern_world_hash
 * always counts them as null. Such handles can occur because fields are written through pointers.
 *
 * Loading either succeeds completely or changes nothing. A damaged, truncated or forged archive is rejected
 * with QUERN_ERROR_BAD_ARCHIVE.
 *
 * All functions are for code between frames, and fail with WORLD_LOCKED otherwise. The world is locked
 * while it is saved or loaded: functions called on it by sinks, sources, migrations and construct hooks
 * fail with WORLD_LOCKED. */

#include <quern/base.h>
#include <quern/component.h>
#include <quern/id.h>
#include <quern/query.h>
#include <quern/sink.h>
#include <quern/source.h>
#include <quern/world.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_MAX_LEFT_OUT          32 /**< Maximum number of components that one save leaves out. */
#define QUERN_MAX_ARCHIVE_SCHEDULES 8 /**< Maximum number of schedules that one archive has the state of. */
#define QUERN_MAX_MIGRATIONS        32 /**< Maximum number of migrations of one load. */
#define QUERN_MAX_EXTRA_COMPONENTS  8  /**< Maximum number of extra components of one load. */
#define QUERN_MAX_MISSING           32 /**< Maximum number of names in a report; further ones are only counted. */

/** A schedule; see <quern/schedule.h>. */
typedef struct quern_schedule quern_schedule;

/* ------------------------------------------------------------------------------------------ saving */

/** Options for saving. */
typedef struct quern_save_def {
    /** Components to leave out of all entities, such as those with hooks. Relations cannot be left out. */
    quern_component leave_out[QUERN_MAX_LEFT_OUT] QUERN__ZERO;
    bool skip_resources QUERN__ZERO; /**< Whether to leave out all resources. */
    bool compress QUERN__ZERO; /**< Whether to compress the archive; needs a library built with zstd. */
    /** Schedules whose state is saved with the world, so that a loaded world runs the same frames: numbers of
     * frames, times, what change filters and reactions have seen, and waiting events. The list ends at its first
     * NULL. leave_out must be empty. Only for quern_world_save. */
    quern_schedule *schedules[QUERN_MAX_ARCHIVE_SCHEDULES] QUERN__ZERO;
    /** Returns the id of an entity outside of the list that a listed entity has as target, or refers to in a described
     * field; 0 if it has none: then the target is removed, and the handle becomes null. Called at least once for each
     * such entity, which is alive, with user_data. The world is locked. NULL: no such entity has an id. Only for lists of
     * entities. */
    uint64_t (*outside_id)(void *user_data, quern_entity entity) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to outside_id. */
} quern_save_def;

/** Saves a world. def may be NULL for the defaults.
 *
 * Loaded into a world that never had an entity and that registered the same components in the same order,
 * the archive gives the same world: the same handles (index and use count, see quern_entity), the same row
 * order and chunks, and the same quern_world_hash. The same operations on both worlds then have the same
 * results. This holds only if leave_out is empty.
 *
 * Data owned by hooks cannot be saved: a component with a copy, move or destroy hook is an error, unless it
 * is left out or no entity has it. Waiting commands cannot be saved, because they may spawn prefabs and contain values
 * with hooks: call quern_world_flush before. The next frame would apply them first, so it has the same results.
 *
 * Errors: NULL_ARGUMENT, WORLD_LOCKED, INVALID_ARGUMENT (hooks; waiting commands; a schedule that cannot be saved),
 * UNKNOWN_COMPONENT, UNAVAILABLE (compress, without zstd; a big-endian machine), OUT_OF_MEMORY, IO. Threads: main,
 * between frames. */
QUERN_API quern_result quern_world_save(quern_world *world, quern_sink sink, const quern_save_def *def);

/** A list of entities of a world to save together. */
typedef struct quern_archive quern_archive;

/** Creates an empty list. The world must outlive it. Errors: NULL_ARGUMENT, WORLD_LOCKED, OUT_OF_MEMORY.
 * Threads: main, between frames. */
QUERN_API quern_result quern_archive_create(quern_world *world, quern_archive **out_archive);

/** Destroys a list. NULL is allowed. Threads: main, between frames. */
QUERN_API void quern_archive_destroy(quern_archive *archive);

/** Appends entities to a list. An entity that is in the list already keeps its position. Values are read
 * when the list is saved. Errors, with nothing appended: NULL_ARGUMENT, WORLD_LOCKED, NULL_ENTITY,
 * STALE_ENTITY, FOREIGN_ENTITY, PROVISIONAL_ENTITY, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_archive_append(quern_archive *archive, const quern_entity *entities,
                                            uint32_t count);

/** Appends all entities that match a query of the same world, in the order of the query. Errors, with
 * nothing appended: NULL_ARGUMENT, WORLD_LOCKED, INVALID_ARGUMENT (a query of another world),
 * OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_archive_append_query(quern_archive *archive, quern_query *query);

/** Appends an entity and all its descendants in the built-in hierarchy (quern_world_parent), parents before
 * children. Errors and threads: as quern_archive_append. */
QUERN_API quern_result quern_archive_append_tree(quern_archive *archive, quern_entity root);

/** Removes all entities from a list and keeps its memory, so that the list can be filled again. Rejects NULL with a
 * message. Threads: main, between frames. */
QUERN_API void quern_archive_clear(quern_archive *archive);

/** Returns the number of entities in the list; 0 for NULL. Threads: main, between frames. */
QUERN_API uint32_t quern_archive_count(const quern_archive *archive);

/** Saves the entities of the list, without resources. quern_world_load adds them to a world. def may be
 * NULL for the defaults.
 *
 * References between entities of the list are kept: targets, the order of siblings, and handles in
 * described fields. References to other entities are not: such a target is removed, together with the
 * level that resulted from it, and such a handle becomes null. An entity with a parent outside of the list
 * becomes a root. If two roots then have the same name, loading needs drop_taken_names. An entity that was disabled
 * through a parent outside of the list is enabled, also if outside_id has an id for the parent.
 *
 * With outside_id of the definition, targets and handles of other entities are saved as ids of yours, and
 * outside_entity of quern_load_def finds their entities in the loading world.
 *
 * Errors: as quern_world_save, and STALE_ENTITY (an entity of the list has been destroyed). Threads: main,
 * between frames. */
QUERN_API quern_result quern_archive_save(const quern_archive *archive, quern_sink sink,
                                          const quern_save_def *def);

/** Writes many lists of entities, one after another, for one reader. Only the first message with a component describes
 * it; so small lists stay small. See quern_load_session for the other side. */
typedef struct quern_save_session quern_save_session;

/** Creates a session. def applies to all messages and may be NULL; it is copied, without what it points to. Destroy the
 * session before its world. Errors: NULL_ARGUMENT, WORLD_LOCKED, INVALID_ARGUMENT (schedules; a component that cannot
 * be left out), UNKNOWN_COMPONENT, UNAVAILABLE, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_save_session_create(quern_world *world, const quern_save_def *def,
                                                 quern_save_session **out_session);

/** Destroys a session. NULL is allowed. Threads: main, between frames. */
QUERN_API void quern_save_session_destroy(quern_save_session *session);

/** Saves the entities of a list as the next message, like quern_archive_save. The reader must read all messages, each
 * once, in this order: messages are numbered. A message of which writing has failed does not count, the next one gets
 * its number, and its bytes must not reach the reader.
 * Errors: as quern_archive_save. Threads: main, between frames. */
QUERN_API quern_result quern_save_session_write(quern_save_session *session, const quern_archive *archive,
                                                quern_sink sink);

/* ----------------------------------------------------------------------------------------- loading */

/** Converts values of an archive to values of a world. targets: uninitialised memory for `count` values of
 * the world's component, to be written completely. sources: `count` values as they were in the saved world,
 * with the same alignment. Handles in sources are those of the saved world; handles written to described
 * fields are mapped afterwards, like all others. Called on the calling thread, when no error can occur any
 * more. The world is locked. */
typedef void quern_migrate_function(void *user_data, void *targets, const void *sources, uint32_t count);

/** Defines how one component or relation of an archive is loaded.
 *
 * A relation can become another relation (quern_relation_component), with a different policy or order, and
 * with levels only if the old one had levels. It can also become a component; the component's entity field
 * "target" then receives the target. Loading such a relation with targets outside of a list is an error if
 * outside_entity is set. If the built-in hierarchy is left out, all entities are roots, and
 * entities that were disabled through their parents are disabled by themselves. */
typedef struct quern_migration {
    const char *name QUERN__ZERO; /**< Name in the archive. Required; at most one migration per name. */
    /** Component of the world that receives the values; null leaves the component out. */
    quern_component component QUERN__ZERO;
    /** Function that converts the values; NULL: fields are matched by name. */
    quern_migrate_function *migrate QUERN__ZERO;
    /** With `migrate`: size of a value in the archive, checked when loading. */
    uint32_t source_bytes QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to migrate. */
} quern_migration;

/** Options for loading. */
typedef struct quern_load_def {
    /** Migrations by name of component. The list ends at the first one without a name. */
    quern_migration migrations[QUERN_MAX_MIGRATIONS] QUERN__ZERO;
    /** Whether components, relations and resources that the world does not have are skipped. Otherwise they
     * are an error. */
    bool leave_out_missing QUERN__ZERO;
    bool skip_resources QUERN__ZERO; /**< Whether the world's resources remain unchanged. */
    /** Whether a root is loaded without a name if a root of the world, or an earlier one of the archive, has its name; the
     * same applies to the children of a parent outside of a list. Otherwise that is an error. */
    bool drop_taken_names QUERN__ZERO;
    /** Receives the loaded entities, up to entity_capacity, in the order of their slots or of the list that
     * was saved. May be NULL if entity_capacity is 0. */
    quern_entity *entities QUERN__ZERO;
    uint32_t entity_capacity QUERN__ZERO; /**< Capacity of `entities`. */
    /** Schedules whose state is restored from an archive that was saved with schedules: as many, in the same order,
     * with the same phases and systems. The world must never have had an entity and must have the types of the
     * archive in the same order, and migrations must be empty. Waiting events of the world are dropped. The list
     * ends at its first NULL; if it is empty, the state in an archive is ignored. */
    quern_schedule *schedules[QUERN_MAX_ARCHIVE_SCHEDULES] QUERN__ZERO;
    /** Components that each loaded entity also gets, such as a tag "ghost". Values of them in the archive are not
     * loaded. The list ends at its first null. Relations and the tag of disabled entities are not allowed. */
    quern_component extra[QUERN_MAX_EXTRA_COMPONENTS] QUERN__ZERO;
    /** Values of the extra components, copied for each entity; NULL: constructed, or zero. */
    const void *extra_values[QUERN_MAX_EXTRA_COMPONENTS] QUERN__ZERO;
    /** Returns the entity of the world with an id that outside_id of quern_save_def has returned. Handles then refer to
     * it, and entities that had it as target are created with it as target, after its present sources, in the order of
     * the list. If it is null or not alive, handles become null, and targets are removed. Called once for each such
     * entity, before anything is changed, with user_data. The world is locked. NULL: as if each call returned null. */
    quern_entity (*outside_entity)(void *user_data, uint64_t id) QUERN__ZERO;
    void *user_data QUERN__ZERO; /**< Passed to outside_entity. */
} quern_load_def;

/** Result of loading. If loading fails, it contains what was found up to that point. */
typedef struct quern_load_report {
    uint32_t entity_count; /**< Loaded entities. */
    /** Whether the entities have their saved handles (index and use count, see quern_entity). */
    bool keeps_handles;
    uint32_t missing_count;   /**< Components, relations and resources that the world does not have. */
    uint32_t converted_count; /**< Components and resources with values that were converted or migrated. */
    /** Fields of converted components and resources that exist in the archive, but not in the world. */
    uint32_t dropped_field_count;
    uint32_t dropped_name_count; /**< Names dropped because they were in use. */
    /** Names of the missing types, at most the first QUERN_MAX_MISSING. */
    char missing[QUERN_MAX_MISSING][QUERN_MAX_NAME_BYTES + 1];
} quern_load_report;

/** Loads an archive of a world, or of a list of entities, into a world. def and out_report may be NULL.
 *
 * In a world that never had an entity, the entities keep their handles. A handle of the saved world in a
 * described field then refers to the same entity as before, or is stale as before. In any other world the
 * entities are created anew: handles of loaded entities in described fields are mapped to the new handles,
 * and all others become null. Provisional handles and handles of third worlds become null in both cases.
 *
 * Fields are matched by name. A field that the archive does not have is constructed, or zero; handles
 * written by a construct hook are kept. Conversions of numbers:
 *   - to a floating-point type: the nearest value;
 *   - to an integer: without the fraction; an error if the value does not fit;
 *   - to bool: whether the value is not 0.
 *
 * Of arrays, the elements that both sides have are converted. Text is truncated to a shorter field, never
 * inside a UTF-8 character, and a longer field is filled with zeros. Numbers are not converted to entities,
 * nor entities to numbers. If only one side describes its fields, values are copied as bytes; this is an
 * error if the sizes differ, or if the world describes an entity field.
 *
 * For reactions, the entities are created. Values of resources are replaced field by field; bytes that no
 * field describes are kept.
 *
 * Errors, with the world unchanged: NULL_ARGUMENT, WORLD_LOCKED, BAD_ARCHIVE, INVALID_ARGUMENT (a
 * migration; a number that does not fit; schedules for an archive without their state, or for a world that had
 * entities), UNKNOWN_COMPONENT, UNKNOWN_RESOURCE and UNKNOWN_EVENT (missing ones), LAYOUT_MISMATCH (values cannot be
 * converted; hooks, or a relation with another policy, levels or order, without a migration; types or schedules that
 * differ from those of the archive), SIBLING_NAME_TAKEN, LIMIT, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, UNAVAILABLE
 * (compressed, without zstd; a big-endian machine), OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_world_load(quern_world *world, quern_source source, const quern_load_def *def,
                                        quern_load_report *out_report);

/** Registers the types that an archive has and the world lacks, as the archive describes them. Then quern_world_load loads the
 * archive into a world of a program that does not know these types, such as a tool, which reads them by reflection
 * (<quern/reflect.h>). The types are registered in the order of the archive:
 *
 *   - plain components, with size, alignment, described fields and lists, and whether they can be disabled;
 *   - relations, without the components with the values of their edges: these become plain components;
 *   - resources, of zero bytes.
 *
 * An archive has neither hooks, default values and required components, nor units, limits and names of values. Components
 * whose values had hooks are left out: no entity of an archive has them. A type that the world has by name stays as it is.
 * A message of a session has only the types that no message before it had.
 *
 * out_count, which may be NULL, receives how many components, relations and resources were registered. The source is read to
 * its end, so quern_world_load needs it again. Errors: NULL_ARGUMENT, WORLD_LOCKED, BAD_ARCHIVE, UNAVAILABLE (compressed,
 * without zstd; a big-endian machine), with nothing registered; DUPLICATE_NAME, LIMIT, OUT_OF_MEMORY: what was registered until
 * then, *out_count types, stays. Threads: main, between frames. */
QUERN_API quern_result quern_world_register_archived(quern_world *world, quern_source source,
                                                     uint32_t *out_count);

/** Copies a world into another one, which has registered its types: quern_world_save to memory, and quern_world_load. So what
 * cannot be saved cannot be copied. A target that never had an entity becomes the same world, with the same handles. The
 * definitions and the report may be NULL. Errors: those of both calls, with both worlds unchanged; INVALID_ARGUMENT (one
 * world is given twice). Threads: main, between frames. */
QUERN_API quern_result quern_world_copy(quern_world *world, quern_world *target,
                                        const quern_save_def *save_def, const quern_load_def *load_def,
                                        quern_load_report *out_report);

/** Reads the messages of one quern_save_session into a world. */
typedef struct quern_load_session quern_load_session;

/** Creates a session. def applies to all messages and may be NULL; it is copied, without what it points to, such as
 * names of migrations. Its members schedules, entities and entity_capacity must be zero. Destroy the session before its
 * world. Errors: NULL_ARGUMENT, WORLD_LOCKED, INVALID_ARGUMENT, UNKNOWN_COMPONENT, DUPLICATE_COMPONENT,
 * PROVISIONAL_ENTITY, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_load_session_create(quern_world *world, const quern_load_def *def,
                                                 quern_load_session **out_session);

/** Destroys a session. NULL is allowed. Threads: main, between frames. */
QUERN_API void quern_load_session_destroy(quern_load_session *session);

/** Loads the next message, like quern_world_load. entities receives the loaded entities, up to capacity, in the order
 * of the list; it may be NULL if capacity is 0. Types that a message has for the first time are matched and reported
 * as those of an archive. If the call fails, neither the world nor the session has changed. out_report may be NULL.
 * Errors: as quern_world_load; BAD_ARCHIVE also if it is not the next message of the session: one before it is missing,
 * it was read before, or the messages before it were others. Threads: main, between frames. */
QUERN_API quern_result quern_load_session_read(quern_load_session *session, quern_source source,
                                               quern_entity *entities, uint32_t capacity,
                                               quern_load_report *out_report);

#ifdef __cplusplus
}
#endif

#endif
