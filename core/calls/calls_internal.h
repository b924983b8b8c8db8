/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_CALLS_CALLS_INTERNAL_H
#define QUERN_CORE_CALLS_CALLS_INTERNAL_H

/* Functions that several calls share, also those of rooms above. `function` is the public function that messages
 * name. */

#include "core/playback/playback.h"
#include "core/prefabs/prefab_internal.h"
#include "core/query/query_internal.h"
#include "core/relations/relation_internal.h"
#include "core/storage/change.h"
#include "core/world/world_internal.h"

#include <quern/getter.h>

/* Finds or creates the archetype of a list of components, in any order. Managed components are refused. Errors:
 * UNKNOWN_COMPONENT, DUPLICATE_COMPONENT, INVALID_ARGUMENT, TOO_MANY_COMPONENTS, COMPONENT_TOO_LARGE, LIMIT,
 * OUT_OF_MEMORY. */
quern_result quern__world_ensure_archetype(quern_world *world, const quern_component *components,
                                           uint32_t count, quern__archetype **out_archetype);

/* Adds a component with a constructed value, or removes it. Errors: those of quern_entity_add and
 * quern_entity_remove. */
quern_result quern__world_add(quern_world *world, quern_entity entity, quern_component component,
                              const char *function);
quern_result quern__world_remove(quern_world *world, quern_entity entity, quern_component component,
                                 const char *function);

/* Relates and unrelates an entity. Errors: those of quern_entity_relate and quern_entity_unrelate. */
quern_result quern__world_relate(quern_world *world, quern_entity source, quern_relation relation,
                                 quern_entity target, const char *function);
quern_result quern__world_unrelate(quern_world *world, quern_entity source, quern_relation relation,
                                   const char *function);

/* Fails with PROVISIONAL_ENTITY, naming the component, if a described field of the values has a provisional handle.
 * values[i]: `count` values of the i-th component; values and its elements may be NULL. commands: the command
 * function that the message recommends instead. */
quern_result quern__world_check_provisional(const quern_world *world, const quern_component *components,
                                            const void *const *values, uint32_t component_count,
                                            uint32_t count, const char *commands);

/* Fails with INVALID_ARGUMENT for a managed component. The message says how the component changes instead. */
quern_result quern__world_fail_managed(const quern_world *world, quern_component component);

/* Makes `list` the archetypes of the world, in its order; histories call this. Archetypes that are not in the list
 * must have no rows and is_removed set. Archetypes that the storage does not have yet must have been created by
 * quern__storage_create_archetype, with room for them reserved. */
void quern__world_set_archetypes(quern_world *world, quern__archetype *const *list, uint32_t count);

/* Removes empty archetypes, as the settings of the world say (world_calls.c). Sync points call this after applying commands
 * if the world has at least removal_count archetypes. */
void quern__world_reclaim_archetypes(quern_world *world);

/* The functions of quern_flag_info, for each row flag (core/storage/type_internal.h) and named after its member. The
 * first returns whether the bit of a component is set for an entity; the second records the command that sets it. */
#define QUERN__FLAG_FUNCTIONS(flag, member, ...)                                       \
    bool quern__##member##_is_listed(const quern_world *world, quern_entity entity,    \
                                     quern_component component);                       \
    quern_result quern__##member##_list(quern_commands *commands, quern_entity entity, \
                                        quern_component component);
QUERN__ROW_FLAGS(QUERN__FLAG_FUNCTIONS)

/* Destroys entities in a world with links or names (storage->has_attachments). */

/* Destroys living entities and the sources that the policies of relations destroy with them. These sources end
 * first, sources before their targets; then the listed entities end in their order. The list may contain an entity
 * twice. Errors, with nothing changed: TARGET_IN_USE, OUT_OF_MEMORY, those of quern__storage_ensure_archetype. */
quern_result quern__world_destroy_cascade(quern_world *world, const quern_entity *entities, uint32_t count);

/* Getters. A getter finds the position of its component's column in a table, by the archetype number in the entity's
 * record. A lookup therefore reads only the record and the table. */

typedef struct quern__getter {
    quern_getter base; /* public part, first: the caller has its address */
    quern_world *world;
    quern__position_table table;
    bool has_refs;
} quern__getter;

_Static_assert(offsetof(quern__getter, base) == 0, "a getter begins with its public part");

/* Whether values that the caller will write have to be noted: change filters exist, or checks are on. */
static inline bool quern__getter_notes_writes(const quern__getter *getter)
{
    return QUERN_CHECKS || *getter->base.filter_count > 0;
}

/* Notes that the caller is about to write the value at this location. */
static inline void quern__getter_note_written(const quern__getter *getter, uintptr_t location)
{
    const uint32_t index = getter->table.component_index;
    quern__row_note_pointer_given(quern__chunk_of(location)->archetype, location, index);
    quern__storage_note_pointer_given(&getter->world->storage, index);
}

/* Commands recorded outside of frames: by code between frames and exclusive systems (quern_world_commands), and by
 * the callbacks of parallel queries. The state is allocated when the first recorder is requested. */

typedef struct quern__world_commands {
    quern_commands recorder;          /* for quern_world_commands; callers keep its address */
    quern_commands *recorder_list[1]; /* the recorder, as a list */
    /* By worker of a parallel query. Callbacks may keep the addresses, so elements never move. Streams that
     * could not be applied stay in the recorders. */
    QUERN__ARRAY(quern_commands *) worker_recorders;
    QUERN__ARRAY(quern__plain_context *) worker_contexts;
    quern__accessor accessor;               /* of the latest parallel query */
    _Atomic bool has_logged_failed_command; /* of the latest parallel query */
    uint64_t flush_count;                   /* key of the next stream of `recorder` */
    quern__playback playback;
    quern_flush_stats stats;
} quern__world_commands;

/* Errors of a sync point that processed all commands. */
typedef struct quern__flush_report {
    quern_result record_result;  /* error if a command could not be recorded */
    quern_result refused_result; /* error if an entity exceeded a limit of entities or of the world */
    uint64_t refused_count;      /* number of entities that exceeded a limit */
} quern__flush_report;

/* Adds the refused entities of one playback. */
static inline void quern__flush_report_add(quern__flush_report *report,
                                           const quern__playback_stats *applied)
{
    report->refused_count += applied->refused_count;
    if (report->refused_result == QUERN_OK) report->refused_result = applied->refused_result;
}

static inline quern__recorders quern__world_recorder_list(const quern__world_commands *commands)
{
    return (quern__recorders){commands->recorder_list, 1};
}

static inline quern__recorders quern__world_worker_recorders(const quern__world_commands *commands)
{
    return (quern__recorders){commands->worker_recorders.items, commands->worker_recorders.count};
}

/* Creates the state if there is none, with recorders and contexts for worker_count workers. Errors: OUT_OF_MEMORY,
 * with existing state unchanged. */
quern_result quern__world_reserve_commands(quern_world *world, uint32_t worker_count);

/* Ends the recording of an exclusive system: calls on the recorder fail until it is requested again. */
void quern__world_end_recording(const quern_world *world);

/* Returns whether any recorder has commands, values or a recording error. */
bool quern__world_has_commands(const quern_world *world);

/* Applies the commands of workers. On failure they stay recorded. executor may be NULL. */
quern_result quern__world_apply_worker_commands(quern_world *world, const quern__executor *executor,
                                                quern__flush_report *report);

/* Applies all commands, first those that a parallel query could not apply. The world may be locked. Calls on the
 * recorder fail from now on until it is requested again. */
quern_result quern__world_apply_commands(quern_world *world, quern__flush_report *report);

/* Reports two errors of a call or frame in one message: `result`, and `lost`, the error of something that could not
 * be recorded. The next call would not report the loss. Returns lost, or result if nothing was lost (QUERN_OK).
 * where: call or system, begins the message. what: for example "record a command". */
quern_result quern__fail_with_loss(quern_result result, quern_result lost, const char *what,
                                   const char *where);

/* Returns the first error of the report, with a message that names the function, or QUERN_OK. */
quern_result quern__flush_result(const quern__flush_report *report, const char *function);

/* Fails with INVALID_ARGUMENT if the component does not have the layout of a slot, or is none of the world. */
quern_result quern__prefab_check_slot(const quern_world *world, quern_component slot);

#endif
