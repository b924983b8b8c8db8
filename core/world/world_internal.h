/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_WORLD_WORLD_INTERNAL_H
#define QUERN_CORE_WORLD_WORLD_INTERNAL_H

/* The world: storage, resources, and whether a frame is running on it. */

#include "core/names/name_internal.h"
#include "core/reactions/reaction.h"
#include "core/record/combine.h"
#include "core/relations/relation_internal.h"
#include "core/storage/storage.h"
#include "core/world/resource.h"

#include <quern/world.h>

#include <stdatomic.h>

enum { QUERN__CREATE_LIST_COMPONENTS = 16, QUERN__CREATE_LISTS = 4 };

/* Where entities of a list go. */
typedef struct quern__create_place {
    quern__archetype *archetype; /* NULL: not known yet */
    quern__place columns[QUERN__CREATE_LIST_COMPONENTS];
} quern__create_place;

/* A list of components that quern_entity_create_with was given, and what came of it. A loop that makes many
 * entities of one kind, or of a few kinds in turn, finds their archetypes here, without sorting and hashing
 * the list each time. */
typedef struct quern__create_list {
    bool is_known;    /* otherwise the rest is zero */
    bool has_handles; /* a component that is no relation has entity fields */
    uint32_t count;   /* at most QUERN__CREATE_LIST_COMPONENTS */
    quern_component components[QUERN__CREATE_LIST_COMPONENTS];
    const quern__type *types[QUERN__CREATE_LIST_COMPONENTS]; /* NULL: copied as plain bytes */
    uint32_t relation_position;                              /* of the component of a relation */
    quern__relation *relation;                               /* NULL: none in the list */
    quern__create_place places[QUERN__LEVEL_COUNT]; /* by the level of the relation, otherwise the first */
} quern__create_list;

/* The last few lists. Taking archetypes out forgets them. */
typedef struct quern__create_lists {
    quern__create_list items[QUERN__CREATE_LISTS];
    quern__create_list *latest; /* the one that was used last; NULL before the first */
    uint32_t next;              /* where the next one is noted */
} quern__create_lists;

struct quern_world {
    quern__storage storage;
    quern__names names; /* the storage carries the addresses of these four */
    quern__relations relations;
    quern__reactions reactions;
    quern__combines combines;
    quern__resources resources;
    quern__create_lists create_lists;
    uint64_t next_serial; /* of command streams, over all schedules: see sched/frame/frame.h */
    struct quern__world_commands *commands; /* that no frame records; NULL: there were none yet */
    struct quern__events *events;           /* NULL: no event was registered yet */
    uint64_t waiting_event_batch_count;     /* in all channels: see core/events/event_internal.h */
    bool has_history;                       /* one saves it: see core/history */
    uint64_t restore_count;                 /* how often that has taken it back */
    uint32_t user_count; /* queries, getters, readers and schedules that hold on to the world */
    struct quern_schedule *first_schedule; /* in the order of creation; not looked into here */

    /* Archetypes taken out at sync points: see core/calls/reclaim.c. */
    uint32_t empty_archetype_checks_per_sync; /* of the definition */
    uint32_t next_visit;  /* the archetype to be looked at next, in the order; 0: a new round begins */
    uint64_t visit_count; /* sync points that have looked */

    bool locked; /* a frame runs, or what else QUERN__WORLD_LOCKERS names: calls are refused */

    /* The claim: one thread runs a frame or, in builds with QUERN_CHECKS, changes the world at once. */
    _Atomic(const void *) owner;          /* the thread, or NULL */
    _Atomic(const char *) owner_function; /* its outermost call */
    uint32_t claim_depth; /* nested calls of the owner, since hooks may call in; the owner's own */
};

/* What may have locked a world, for messages. */
#define QUERN__WORLD_LOCKERS \
    "a frame, quern_query_parallel_for, quern_world_flush, a save, a load or a fill callback"

quern_result quern__world_fail_locked(const char *function);

/* WORLD_LOCKED, naming the call, while the world is locked. */
static inline quern_result quern__world_check_unlocked(const quern_world *world, const char *function)
{
    return QUERN__UNLIKELY(world->locked) ? quern__world_fail_locked(function) : QUERN_OK;
}

/* The bit of a getter's number that no ref has: its refs are good for nothing now. */
#define QUERN__GETTER_CLOSED 0x80000000u

/* Refs are looked at without a call, so they are told by the number of their getter. */
static inline void quern__world_set_locked(quern_world *world, bool locked)
{
    world->locked = locked;
    for (quern_getter *getter = world->storage.slabs.departures.first_reader;
         QUERN__UNLIKELY(getter != NULL); getter = getter->next)
        getter->number =
            locked ? getter->number | QUERN__GETTER_CLOSED : getter->number & ~QUERN__GETTER_CLOSED;
}

/* --------------------------------------------------------------------------------- one thread at a time */

/* The world whose frame or parallel query runs a callback on this thread and is locked meanwhile; NULL outside
 * such callbacks. Innermost, since a callback that waits may run jobs of other worlds. */
extern QUERN__FAST_THREAD_LOCAL const quern_world *quern__world_of_callback;

/* Claims the world for the calling thread, until quern__world_unclaim; claims of one thread nest. Returns false
 * and reports a violation that names both calls if another thread holds the claim: the call then fails with
 * WORLD_LOCKED. Callbacks of a frame or parallel query of this world pass without a claim: the world is locked, so
 * quern__world_check_unlocked refuses their call. */
bool quern__world_claim(quern_world *world, const char *function);
void quern__world_unclaim(quern_world *world);

/* A claim that was given up for a while. */
typedef struct quern__world_claim_state {
    const char *function;
    uint32_t depth;
} quern__world_claim_state;

/* For exclusive callbacks of a frame: gives the owner's claim up, so that they may use the world on any thread,
 * and claims the world again. resume returns false and reports a violation if another thread holds the claim. */
quern__world_claim_state quern__world_suspend_claim(quern_world *world);
bool quern__world_resume_claim(quern_world *world, const quern__world_claim_state *state);

/* Whether the calling thread holds the claim. */
bool quern__world_is_claimed(const quern_world *world);

/* Every call that changes a world at once begins with this. In builds with QUERN_CHECKS it claims the world. world
 * may be NULL. */
static inline bool quern__world_enter(quern_world *world, const char *function)
{
    return !QUERN_CHECKS || world == NULL || quern__world_claim(world, function);
}

/* The end of such a call, with what it returns. */
static inline quern_result quern__world_left(quern_world *world, quern_result result)
{
    if (QUERN_CHECKS && world != NULL) quern__world_unclaim(world);
    return result;
}

#endif
