/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_WORLD_WORLD_INTERNAL_H
#define QUERN_CORE_WORLD_WORLD_INTERNAL_H

/* The world as all rooms above storage know it: its storage, registries and resources, the lock of running frames, the
 * claim of one thread, and the gate of its calls.
 *
 * Rooms above keep what they have for a world behind pointers: those of the storage (names, relations, reactions,
 * prefabs, combines) and those below. core/entities/world_life.c creates and destroys all of it. So a room that keeps
 * something for a world can also have the public calls on it. */

#include "core/base/containers.h"
#include "core/base/handle.h"
#include "core/storage/change.h"
#include "core/storage/conversion.h"
#include "core/storage/storage.h"
#include "core/storage/type_internal.h"

#include <quern/getter.h>
#include <quern/redefine.h>
#include <quern/relation.h>
#include <quern/world.h>

#include <stdatomic.h>

/* ---------------------------------------------------------------------------------------- resources */

typedef struct quern__resource {
    quern__type type;
    void *value; /* value of the type; its address never changes */
} quern__resource;

typedef struct quern__resources {
    QUERN__ARRAY(quern__resource) list;
    quern__type_ids type_ids; /* identities of the types */
    uint32_t world_tag;
} quern__resources;

/* Destroys the values, and frees the registry's memory. */
void quern__resources_release(quern__resources *resources, const quern_allocator *allocator);

/* Returns the resource with the given name, or a null handle. */
quern_resource quern__resources_find(const quern__resources *resources, const char *name);

/* Returns the resource that a name of `bytes` bytes, which no resource has, probably stands for. */
quern_suggestion quern__resources_suggest(const quern__resources *resources, const char *name,
                                          size_t bytes);

/* Fails with UNKNOWN_RESOURCE if the handle names no resource of this registry. */
quern_result quern__resources_check(const quern__resources *resources, quern_resource resource);

static inline uint32_t quern__resource_index(quern_resource resource)
{
    return quern__handle_index(resource.bits);
}

/* ------------------------------------------------------------------------------------ lists of creates */

enum { QUERN__CREATE_LIST_COMPONENTS = 16, QUERN__CREATE_LISTS = 4 };

/* A cached list of components passed to quern_entity_create_with, and the archetypes that follow from it. A loop
 * that creates entities with one list, or with a few lists in turn, finds their archetypes here, and need not sort
 * and hash the list each time. */
typedef struct quern__create_list {
    bool is_used;            /* whether the entry is in use; all members are zero if not */
    bool has_handles;        /* whether a component other than a relation has entity fields */
    bool is_special;         /* has_handles, required_count > 0, or a component with entity hooks */
    uint32_t count;          /* number of components, at most QUERN__CREATE_LIST_COMPONENTS */
    uint32_t required_count; /* number of components in `required` */
    quern_component components[QUERN__CREATE_LIST_COMPONENTS];
    const quern__type *types[QUERN__CREATE_LIST_COMPONENTS]; /* NULL if values are copied as plain bytes */
    uint16_t required[QUERN__CREATE_LIST_COMPONENTS]; /* components with values that listed ones require */
    uint32_t relation_position;                      /* index in `components` of the relation's component */
    struct quern__relation *relation;                /* NULL if the list has no relation */
    uint16_t indices[QUERN__CREATE_LIST_COMPONENTS]; /* of the components */
    /* The archetype of the entities by level, [0] without levels; NULL if it has not been looked up yet. */
    quern__archetype *archetypes[QUERN_MAX_RELATION_LEVEL + 1];
} quern__create_list;

/* A cache of the latest lists. It is cleared when archetypes are removed. */
typedef struct quern__create_lists {
    quern__create_list items[QUERN__CREATE_LISTS];
    quern__create_list *latest; /* entry that was used last; NULL if the cache is empty */
    uint32_t next;              /* index of the entry that the next new list replaces */
} quern__create_lists;

/* ------------------------------------------------------------------------------------------ the world */

struct quern_world {
    quern__storage storage;
    quern__resources resources;
    quern__create_lists create_lists;
    uint64_t next_serial; /* next serial number of a command stream; see sched/frame/schedule_internal.h */
    struct quern__world_commands *commands; /* commands recorded outside of frames; NULL until needed */
    struct quern__events *events;           /* NULL until an event is registered */
    uint64_t waiting_event_batch_count;     /* number of waiting batches in all channels */
    /* The history that records the world, or NULL; and the function of its room that returns how many frames it has
     * and, if `drops` is set, drops them. UINT32_MAX: deltas need the frames. See core/history. */
    struct quern__history *history;
    uint32_t (*history_frames)(struct quern__history *history, bool drops);
    uint64_t layout_count;  /* number of redefinitions that have changed a layout */
    uint64_t restore_count; /* number of times that the history has restored the world */
    uint32_t user_count;    /* number of objects that refer to the world, also of those listed below */
    struct quern_schedule *first_schedule; /* list in the order of creation; opaque to this room */
    quern_world_user *first_user;          /* the last one that was registered */
    const struct quern_loader *loader;     /* receives what set-up code registers; NULL: the world does */

    /* Removal of empty archetypes at sync points; see core/entities/world_life.c. */
    uint32_t removal_count; /* archetypes that the world must have for it; UINT32_MAX: it is disabled */
    uint32_t empty_archetype_checks_per_sync; /* setting of this name in quern_world_def */
    /* index of the archetype to be checked next; 0 if a new round over all archetypes begins */
    uint32_t next_visit;
    /* Number of sync points that have checked archetypes. Without checks: archetypes left by the last removal. */
    uint64_t visit_count;

    /* Whether a frame, or another operation of QUERN__WORLD_LOCKERS, is running. Calls are refused meanwhile. */
    bool locked;
    bool runs_hook; /* an entity hook is running, which may read the locked world: core/reactions/hook.h */
    /* Frames that are running, also while an exclusive system has the world unlocked. Relaxed: one thread has the world;
     * a frame that lost it to another thread, which was reported, still counts itself out. */
    _Atomic uint32_t running_frame_count;
    /* Schedules of which the last frame has failed: they may have events that were not published. */
    _Atomic uint32_t failed_schedule_count;

    /* The claim of the thread that runs a frame or, in builds with QUERN_CHECKS, is in a call that modifies the
     * world immediately. */
    _Atomic(const void *) owner;          /* the thread, or NULL */
    _Atomic(const char *) owner_function; /* name of its outermost call */
    /* Number of nested calls, because hooks may call the library. Only the owner accesses it. */
    uint32_t claim_depth;
};

/* The operations that lock a world, for messages. */
#define QUERN__WORLD_LOCKERS                                                                              \
    "a frame, quern_query_parallel_for, quern_world_flush, a save, a load, a fill callback or an entity " \
    "hook"

/* Fails with WORLD_LOCKED. function: name of the call, for the message. */
quern_result quern__world_fail_locked(const char *function);

/* Fails with WORLD_LOCKED if the world is locked. */
static inline quern_result quern__world_check_unlocked(const quern_world *world, const char *function)
{
    return QUERN__UNLIKELY(world->locked) ? quern__world_fail_locked(function) : QUERN_OK;
}

/* Fails with PROVISIONAL_ENTITY, naming the component, if a described field of the values has a provisional handle.
 * values[i]: `count` values of the i-th component; values and its elements may be NULL. commands: the command
 * function that the message recommends instead. */
quern_result quern__world_check_provisional(const quern_world *world, const quern_component *components,
                                            const void *const *values, uint32_t component_count,
                                            uint32_t count, const char *commands);

/* Performs quern__world_check_unlocked for a call that reads entities and that entity hooks may make. */
static inline quern_result quern__world_check_readable(const quern_world *world, const char *function)
{
    return QUERN__UNLIKELY(world->locked && !world->runs_hook) ? quern__world_fail_locked(function)
                                                               : QUERN_OK;
}

/* Bit that is set in a getter's number while its world is locked. No ref has it, so all refs of the getter fail. */
#define QUERN__GETTER_CLOSED 0x80000000u

/* Locks or unlocks the world. The inline check of a ref compares its number with that of its getter and does not
 * read `locked`, so the number of each getter changes, too. */
static inline void quern__world_set_locked(quern_world *world, bool locked)
{
    world->locked = locked;
    for (quern_getter *getter = world->storage.slabs.move_counts.first_reader;
         QUERN__UNLIKELY(getter != NULL); getter = getter->next)
        getter->number =
            locked ? getter->number | QUERN__GETTER_CLOSED : getter->number & ~QUERN__GETTER_CLOSED;
}

/* --------------------------------------------------------------------------------- one thread at a time */

/* The locked world with the frame or parallel query that runs a callback on this thread; NULL outside such
 * callbacks. A callback that waits may run jobs of other worlds; this is the world of the innermost callback. */
extern QUERN__THREAD_LOCAL(const quern_world *, quern__thread_callback_world);
#define quern__world_of_callback QUERN__OF_THREAD(quern__thread_callback_world)

/* Claims the world for the calling thread until quern__world_unclaim; claims of one thread nest. If another thread
 * holds the claim, reports a violation that names both calls and returns false; the call must then fail with
 * WORLD_LOCKED. Returns true without a claim in callbacks of a frame or parallel query of this world: the world is
 * locked, so quern__world_check_unlocked refuses the call. */
bool quern__world_claim(quern_world *world, const char *function);
void quern__world_unclaim(quern_world *world);

/* State of a suspended claim. */
typedef struct quern__world_claim_state {
    const char *function;
    uint32_t depth;
} quern__world_claim_state;

/* Releases the owner's claim while exclusive callbacks of a frame run, so that they may use the world on any
 * thread, and claims the world again. Resuming reports a violation and returns false if another thread holds the
 * claim. */
quern__world_claim_state quern__world_suspend_claim(quern_world *world);
bool quern__world_resume_claim(quern_world *world, const quern__world_claim_state *state);

/* Returns whether the calling thread holds the claim. */
bool quern__world_is_claimed(const quern_world *world);

/* The gate of public calls that change a world immediately: the first line of such a call. It enters the world, and
 * leaves it where the function returns. A call that another thread's claim refuses returns WORLD_LOCKED.
 *     QUERN__ENTER(world)               world may be NULL; the call checks it, and the lock, itself
 *     QUERN__ENTER_UNLOCKED(world)      fails if the world is NULL or locked
 *     QUERN__ENTER_AS(world, function)  QUERN__ENTER for a part of a call; function: name of the call
 * In builds with QUERN_CHECKS, the gate claims the world, which finds two threads that change it at once. Compilers
 * without QUERN__HAS_CLEANUP cannot leave in this way, so there the gate claims nothing, and builds with QUERN_CHECKS
 * find only calls that meet a running frame. */
#if QUERN_CHECKS && QUERN__HAS_CLEANUP
static inline void quern__world_leave_entered(quern_world *const *world)
{
    if (*world != NULL) quern__world_unclaim(*world);
}
#define QUERN__ENTER_AS(world, function)                                                              \
    if ((world) != NULL && !quern__world_claim((world), (function))) return QUERN_ERROR_WORLD_LOCKED; \
    quern_world *const quern__entered QUERN__CLEANUP(quern__world_leave_entered) = (world)
#else
#define QUERN__ENTER_AS(world, function) ((void)(world))
#endif
#define QUERN__ENTER(world) QUERN__ENTER_AS(world, __func__)
#define QUERN__ENTER_UNLOCKED(world) \
    QUERN__NEED(world);              \
    QUERN__ENTER(world);             \
    if (QUERN__UNLIKELY((world)->locked)) return quern__world_fail_locked(__func__)

/* ------------------------------------------------------------------------------------------ redefinition
 *
 * Rooms keep the addresses of types, never copies of their hooks, texts or fields, and types never move in memory. So a
 * redefinition replaces the contents of a type, and no other place has an address of the old definition. */

/* A redefinition of a component, resource or event. The caller sets all members up to `fresh`: the type that the new
 * definition gives. */
typedef struct quern__redefinition {
    quern_world *world;
    const char *what;     /* "component", "resource" or "event", for messages */
    quern__type *type;    /* type of the world */
    quern__type_ids *ids; /* table with its identity */
    uint32_t handle_bits;
    quern__type fresh;
    bool is_converted;         /* the layouts differ, so that the caller converts all values */
    bool only_checks;          /* nothing is to change; see QUERN__CHECKED */
    quern__type_change change; /* its `old` is what the type of the world was */
} quern__redefinition;

/* Checks that no frame is running on an unlocked world, also none that runs an exclusive system. Errors: WORLD_LOCKED. */
quern_result quern__redefine_check_frames(const quern_world *world, const char *function);

/* Checks the name of a new definition, and stores the type's own in *name if it is NULL. Errors: INVALID_ARGUMENT. */
quern_result quern__redefine_check_name(const quern__type *type, const char **name, const char *what);

/* Gives the type of the world the new definition, or releases that after an error. result: that of creating it, which is
 * returned if it is an error. component_index: QUERN__NO_COMPONENT for resources and events. If is_converted is set
 * afterwards, the caller checks and converts all values. Errors, with nothing changed: LAYOUT_MISMATCH,
 * INVALID_ARGUMENT, OUT_OF_MEMORY. */
quern_result quern__redefine_begin(quern__redefinition *it, quern_result result, uint32_t component_index,
                                   const quern_redefine_def *how, quern_redefine_report *report);

/* The result of a conversion that was only to be checked and would succeed: what it has prepared is undone as after an
 * error. */
#define QUERN__CHECKED QUERN_ERROR_CANCELLED

/* Ends a redefinition: releases the old definition or, after an error or a check, gives it back to the type of the world.
 * Returns `result`, for QUERN__CHECKED QUERN_OK. report may be NULL. */
quern_result quern__redefine_end(quern__redefinition *it, quern_result result,
                                 quern_redefine_report *report);

/* Checks that no layout has changed since an object was created that has described types to a reader or keeps
 * conversions to them. layout_count: that of the world then; what: "the session" or the like. Errors: INVALID_ARGUMENT. */
quern_result quern__redefine_check_since(const quern_world *world, uint64_t layout_count, const char *what);

/* Drops what histories keep of the world, which has the old layout. Before a conversion, while the type of the world is
 * the old one; the first call checks. Errors of the first: INVALID_ARGUMENT. */
quern_result quern__redefine_check_history(const quern_world *world, bool only_checks);
uint32_t quern__redefine_drop_frames(quern__redefinition *it);

/* ------------------------------------------------------------------------------------------- getters */

/* A getter finds the position of its component's column in a table, by the archetype number in the entity's
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
    quern__row_note_pointer_given(quern__archetype_at(location), location, index);
    quern__storage_note_pointer_given(&getter->world->storage, index);
}

#endif
