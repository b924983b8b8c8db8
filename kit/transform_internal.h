/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_TRANSFORM_INTERNAL_H
#define QUERN_KIT_TRANSFORM_INTERNAL_H

/* Declarations shared by the sources of the transform library. */

#include "kit/transform.h"

#include <stdatomic.h>

/* The component types and functions of three or two dimensions. */
typedef struct quern__transform_kind {
    quern_component_def local, world;
    const char *walk_name, *sweep_name; /* names of the systems */
    quern_view_callback *sweep;
    /* Untyped quern_world3_place, _multiply and _split, or the functions of two dimensions; parent may be NULL. */
    void (*place)(const void *parent, const void *local, void *world);
    void (*multiply)(const void *outer, const void *inner, void *out);
    bool (*split)(const void *parent, const void *world, void *local);
} quern__transform_kind;

/* Storage for a local or world of either dimension. */
typedef union quern__transform_value {
    quern_world3 world3;
    quern_world2 world2;
    quern_local3 local3;
    quern_local2 local2;
} quern__transform_value;

/* A list of entities with pointers to their components, in one block of memory. */
typedef struct quern__transform_list {
    quern_entity *entities;
    void **locals, **worlds;
    uint32_t count, capacity;
} quern__transform_list;

/* A node visited by a climber; see the climbers in transform_walk.c. */
typedef struct quern__transform_visit {
    quern_entity entity;
    uint32_t climber; /* index of the first climber that visited the node */
    uint32_t walk;    /* number of the walk in which the node was visited */
} quern__transform_visit;

/* Steps from a changed node upwards, from parent to parent. */
typedef struct quern__transform_climber {
    quern_entity at;
    uint32_t
        verdict;   /* its own index: no node above it has changed, so far; another climber's index: the same
                         verdict as that climber; or BELOW_ANOTHER */
    uint32_t next; /* index of the next active climber */
} quern__transform_climber;

/* A share of a walk, done by one job. `list` holds the entities that the job has reached, parents before children;
 * entries that are not nodes are null. */
typedef struct quern__transform_part {
    quern_transform *transform;
    void *const *
        parents; /* worlds of the parents of the first entities, the tops; an entry is NULL without a parent */
    quern__transform_list list;
    bool is_complete; /* whether the share was completed: it had memory and stayed within the limit */
} quern__transform_part;

enum { QUERN__TRANSFORM_PARTS = 32 };

struct quern_transform {
    const quern__transform_kind *kind;
    quern_allocator allocator;
    quern_world *owner;
    quern_component local, world;
    quern_relation parent;
    quern_query *nodes;                /* entities with local and world: the systems place them */
    quern_query *changed_for_counting; /* nodes that may have changed, for counting them */
    quern_query *changed;              /* nodes that may have changed, for testing them */
    /* entities with world and no local: never placed, but may be parents of nodes */
    quern_query *world_only;
    /* entities of `world_only` with a written world; NULL until `world_only` has entities */
    quern_query *changed_world_only;
    quern_query *local_only; /* entities with a changed local and no world: they may have lost it */
    quern_getter *locals, *worlds;
    bool no_walk;
    bool all_marked;  /* the next frame sweeps; true for the first frame */
    bool needs_sweep; /* the walk has decided that this frame sweeps, and the sweep has not run yet */
    quern__transform_list marks; /* entities that the next frame tests; only `entities` is used */
    uint64_t node_limit;         /* largest number of nodes that a walk of this frame may test, or place */
    /* First the nodes that have changed; later the changed nodes without a changed ancestor (the tops), with the
     * worlds of their parents. */
    quern__transform_list tops;
    quern__transform_visit *visits;       /* hash table of the nodes visited by the climbers of this walk */
    uint32_t visit_count, visit_capacity; /* capacity: a power of two, or 0 */
    uint32_t walk_number;                 /* never 0; slots with another walk's number are free */
    quern__transform_climber *climbers;   /* one per changed node, by its index in tops */
    uint32_t climber_capacity;
    quern__transform_part parts[QUERN__TRANSFORM_PARTS];
    _Atomic uint64_t placed_count; /* entities placed by all shares of the walk so far */
    quern_transform_stats stats;
};

/* The exclusive system of quern_transform_add_systems. */
void quern__transform_walk(quern_context *context, const quern_view *view);
void quern__transform_walk_release(quern_transform *transform);

/* Returns false if there is no memory; the list stays as it was. */
bool quern__transform_list_reserve(const quern_transform *transform, quern__transform_list *list,
                                   uint32_t capacity);

/* Whether the entity is a node: one with local and world, which the systems place. */
static inline bool quern__transform_is_node(const quern_transform *transform, quern_entity entity)
{
    return quern_getter_get(transform->worlds, entity) != NULL &&
           quern_getter_get(transform->locals, entity) != NULL;
}

quern_result quern__transform_null(const char *function, const char *argument);

#endif
