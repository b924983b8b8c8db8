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
 * An archive knows components by name and fields by name. Loading looks for the components that the world
 * has under these names; where one has other fields now, values are converted field by field, and
 * definitions of migrations say what else is to be done. A world must therefore register its components,
 * relations and resources before it loads.
 *
 * Saved are entities with their components, which of them are disabled, relations with levels and the order
 * of siblings, names, and the described fields of resources. Not saved is what is no entity: prefabs,
 * queries, events that wait, what reactions still have to be told, and schedules. A prefab travels as the
 * tree that it was captured from, or as an instance, and is captured again where that was loaded.
 *
 * A component without described fields is saved as bytes, and needs the same size where it is loaded. Where
 * the fields are the same as well, whole values are copied, with the bytes that no field describes. So a
 * pointer in a component is as good afterwards as its address is: leave such components out, or describe
 * what is worth saving.
 *
 * A described field may hold any handle, because it is written through a pointer. Handles of this world
 * keep their meaning. A provisional handle and a handle of another world mean nothing after loading, so
 * they become null, and quern_world_hash counts them as null from the start.
 *
 * Loading does all of it or nothing. An archive that is damaged, cut off or made up is refused
 * (QUERN_ERROR_BAD_ARCHIVE), and the world is as it was.
 *
 * All calls are for the time between frames: WORLD_LOCKED otherwise. While a world is saved or loaded it is
 * locked: calls on it by sinks, sources, migrations and construct hooks fail with WORLD_LOCKED. */

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

#define QUERN_MAX_LEFT_OUT   32 /**< Components that one save leaves out. */
#define QUERN_MAX_MIGRATIONS 32 /**< Migrations of one load. */
#define QUERN_MAX_MISSING    32 /**< Names in a report; more are counted, but not named. */

/* ------------------------------------------------------------------------------------------ saving */

/** Says how to save. */
typedef struct quern_save_def {
    /** Components that entities are saved without, such as those with hooks. No relations. */
    quern_component leave_out[QUERN_MAX_LEFT_OUT] QUERN__ZERO;
    bool no_resources QUERN__ZERO; /**< Do not save resources. */
    bool compress QUERN__ZERO;     /**< Compress, if the library was built with zstd. */
} quern_save_def;

/** Saves a world. def may be NULL for the defaults.
 *
 * Load it into a world that never had an entity and registered the same components in the same order, and
 * you get the same world: the same handles (index and life, see quern_entity), the same row order and
 * chunks, the same quern_world_hash; whatever is done with both has the same results. This holds as long as
 * leave_out is empty. What hooks own cannot be saved: a component with a copy, move or destroy hook is
 * refused, unless it is left out or no entity has it.
 *
 * Errors: NULL_ARGUMENT, WORLD_LOCKED, INVALID_ARGUMENT (hooks; commands wait to be applied by
 * quern_world_flush), UNKNOWN_COMPONENT, UNAVAILABLE (compress, without zstd), OUT_OF_MEMORY, FILE.
 * Threads: main, between frames. */
QUERN_API quern_result quern_world_save(quern_world *world, quern_sink sink, const quern_save_def *def);

/** Entities of a world that are to be saved together. */
typedef struct quern_archive quern_archive;

/** Creates a list without entities. The world must outlive it. Errors: NULL_ARGUMENT, WORLD_LOCKED,
 * OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_archive_create(quern_world *world, quern_archive **out_archive);

/** Destroys the list. NULL is allowed. Threads: main, between frames. */
QUERN_API void quern_archive_destroy(quern_archive *archive);

/** Appends entities; one that is in the list already stays where it is. Their values are read when the list
 * is saved. Errors: NULL_ARGUMENT, WORLD_LOCKED, those of handles, OUT_OF_MEMORY; then none is appended.
 * Threads: main, between frames. */
QUERN_API quern_result quern_archive_append(quern_archive *archive, const quern_entity *entities,
                                            uint32_t count);

/** Appends all entities that a query of the same world finds, in its order. Errors: NULL_ARGUMENT,
 * WORLD_LOCKED, INVALID_ARGUMENT (a query of another world), OUT_OF_MEMORY; then none is appended. Threads:
 * main, between frames. */
QUERN_API quern_result quern_archive_append_query(quern_archive *archive, quern_query *query);

/** Appends an entity and all that are below it in the built-in hierarchy (quern_world_parent), parents
 * before children. Errors and threads: as quern_archive_append. */
QUERN_API quern_result quern_archive_append_tree(quern_archive *archive, quern_entity root);

/** Returns how many entities are in the list; 0 for NULL. Threads: main, between frames. */
QUERN_API uint32_t quern_archive_count(const quern_archive *archive);

/** Saves the entities of the list, without resources: quern_world_load adds them to a world. def may be
 * NULL.
 *
 * What they know of each other stays: parents and other targets, siblings in their order, handles in
 * described fields. What they know of entities that are not in the list does not: a target there is taken
 * away, with the level that came of it, and a handle becomes null. An entity whose parent is not in the
 * list becomes a root; if two roots have one name then, loading needs drop_taken_names. Errors: as
 * quern_world_save, and STALE_ENTITY, when one of them has been destroyed. Threads: main, between frames.
 * */
QUERN_API quern_result quern_archive_save(const quern_archive *archive, quern_sink sink,
                                          const quern_save_def *def);

/* ----------------------------------------------------------------------------------------- loading */

/** Makes values of a world from values of an archive. targets: raw memory for `count` values of the world's
 * component; all of it is to be written. sources: `count` values as they were in the world that was saved,
 * as aligned as there. Handles among them are those of that world; where they are written to described
 * fields, they are mapped afterwards as all others are. Runs on the calling thread, when nothing can fail
 * any more; the world is locked. */
typedef void quern_migrate_function(void *user_data, void *targets, const void *sources, uint32_t count);

/** Says what becomes of one component or relation of an archive.
 *
 * A relation becomes another one (quern_relation_component), whose policy and order may differ, and which
 * may lack the levels that it had; or a component, which gets the target in its entity field "target". A
 * relation that had no levels cannot become one with levels. Without the built-in hierarchy all entities
 * are roots, and those that were off by their parents are off by themselves. */
typedef struct quern_migration {
    const char *name QUERN__ZERO;          /**< In the archive. Required; at most one migration for each. */
    quern_component component QUERN__ZERO; /**< Of the world; null: it is left out. */
    /** Makes the values; NULL: fields are found by name. */
    quern_migrate_function *migrate QUERN__ZERO;
    uint32_t source_bytes QUERN__ZERO; /**< With migrate: of a value in the archive, which must agree. */
    void *user_data QUERN__ZERO;       /**< Passed to migrate. */
} quern_migration;

/** Says how to load. */
typedef struct quern_load_def {
    quern_migration migrations[QUERN_MAX_MIGRATIONS] QUERN__ZERO; /**< For components by name. */
    /** Components, relations and resources that the world does not have are left out; they are refused
     * otherwise. */
    bool leave_out_missing QUERN__ZERO;
    bool no_resources QUERN__ZERO; /**< Leave the world's resources as they are. */
    /** Roots whose names are taken, by roots of the world or by earlier ones of the archive, come without a
     * name; they are refused otherwise. */
    bool drop_taken_names QUERN__ZERO;
    /** Gets the loaded entities, in the order of their slots or of the list that was saved; as many as
     * there is room for. */
    quern_entity *entities QUERN__ZERO;
    uint32_t entity_capacity QUERN__ZERO; /**< Of entities. */
} quern_load_def;

/** What loading found. Also written when it is refused, as far as it came. */
typedef struct quern_load_report {
    uint32_t entity_count;        /**< Entities that were loaded. */
    bool keeps_handles;           /**< They have the handles that they had, in index and life. */
    uint32_t missing_count;       /**< Components, relations and resources that the world does not have. */
    uint32_t converted_count;     /**< Components and resources whose values were converted or migrated. */
    uint32_t dropped_field_count; /**< Fields that these have in the archive and not in the world. */
    uint32_t dropped_name_count;  /**< Names that were taken. */
    char missing[QUERN_MAX_MISSING][QUERN_MAX_NAME_BYTES + 1]; /**< Names of the first of missing_count. */
} quern_load_report;

/** Loads an archive of a world, or of some entities, into a world. def and out_report may be NULL.
 *
 * In a world that never had an entity they keep their handles; a handle of the saved world in a described
 * field then means the same entity as before, also where that is dead. In any other world they are new
 * entities: handles in described fields follow them, and those of others become null. A provisional handle
 * or one into a third world becomes null in both.
 *
 * Fields are matched by name. One that the archive does not have is constructed, or zero; handles that a
 * construct hook puts there stay. Numbers are converted: to a floating-point number the nearest; to an
 * integer the same without its fraction, refused where it does not fit; to a bool whether it is not 0. Of
 * arrays, as many elements are taken as both have. Text is cut off at the end of a shorter field, never
 * within a character, and a longer field is filled with zeros. An entity is never made of a number, nor the
 * other way round. If fields are described on one side only, values are copied as bytes, which needs the
 * same size and is refused if the world describes an entity field.
 *
 * Reactions are told of the entities as of any that are created. Values of resources are replaced, each as
 * fields of an entity are; what no field describes stays.
 *
 * Errors: NULL_ARGUMENT, WORLD_LOCKED, BAD_ARCHIVE, INVALID_ARGUMENT (a migration; a number that does not
 * fit), UNKNOWN_COMPONENT and UNKNOWN_RESOURCE (missing ones), LAYOUT_MISMATCH (values cannot be converted;
 * hooks without a migration; a relation with another policy, levels or order without one), NAME_TAKEN,
 * LIMIT, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, UNAVAILABLE (compressed, without zstd), OUT_OF_MEMORY.
 * Threads: main, between frames. */
QUERN_API quern_result quern_world_load(quern_world *world, quern_source source, const quern_load_def *def,
                                        quern_load_report *out_report);

#ifdef __cplusplus
}
#endif

#endif
