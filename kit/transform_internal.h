/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_TRANSFORM_INTERNAL_H
#define QUERN_KIT_TRANSFORM_INTERNAL_H

/* What the files of this library share. */

#include "kit/transform.h"

#include <stdatomic.h>

/* Three dimensions, or two. */
typedef struct quern__transform_kind {
    quern_component_def local, world;
    const char *walk_name, *sweep_name; /* of its systems */
    quern_view_callback *sweep;
    /* quern_world3_place and the matching types of other dimensions; parent may be NULL */
    void (*place)(const void *parent, const void *local, void *world);
    void (*multiply)(const void *outer, const void *inner, void *out);
    bool (*split)(const void *parent, const void *world, void *local);
} quern__transform_kind;

/* Room for a local or world of either kind. */
typedef union quern__transform_value {
    quern_world3 world3;
    quern_world2 world2;
    quern_local3 local3;
    quern_local2 local2;
} quern__transform_value;

/* Entities, and pointers to values of each. */
typedef struct quern__transform_list {
    quern_entity *entities;
    void **locals, **worlds;
    uint32_t count, capacity;
} quern__transform_list;

/* A node that a climber has visited; see the climbers in transform_walk.c. */
typedef struct quern__transform_visit {
    quern_entity entity;
    uint32_t climber; /* index of the first climber at the node */
    uint32_t walk;    /* number of the walk that visited it */
} quern__transform_visit;

/* Climbs from a changed node. */
typedef struct quern__transform_climber {
    quern_entity at;
    uint32_t verdict; /* its own index: a top, so far; the index of another climber, or BELOW_ANOTHER */
    uint32_t next;    /* index of the next climber that has not ended */
} quern__transform_climber;

/* A part of a walk, which one job does: the entities that it has come to, in order; null for what is no
 * node. */
typedef struct quern__transform_part {
    quern_transform *transform;
    void *const *parents; /* the worlds of the parents of the first ones, the tops; NULL: none */
    quern__transform_list list;
    bool is_whole; /* it did not end for want of memory, or since it took too long */
} quern__transform_part;

enum { QUERN__TRANSFORM_PARTS = 32 };

struct quern_transform {
    const quern__transform_kind *kind;
    quern_allocator allocator;
    quern_world *owner;
    quern_component local, world;
    quern_relation parent;
    quern_query *nodes;    /* all that the systems place: entities with local and world */
    quern_query *counting; /* of those, what may have changed: to count it, */
    quern_query *changed;  /* and to look at it */
    quern_query *alone;    /* world without local: not placed, but others may hang on it */
    quern_query *fixed;    /* of those, what has changed; NULL until there are some */
    quern_query *bare;     /* local without world; changed, since it may have lost it */
    quern_getter *locals, *worlds;
    bool no_walk;
    bool all_marked;             /* the next frame sweeps; the first one does */
    bool sweeps;                 /* this frame does, and has not yet; the walk decides */
    quern__transform_list marks; /* entities that the next frame looks at; no values */
    uint64_t limit;              /* of what a walk of this frame may look at or place */
    /* what has changed in this frame; then those with nothing changed above, and worlds of their parents */
    quern__transform_list tops;
    quern__transform_visit *visits; /* hash table of the nodes that climbers of this walk have visited */
    uint32_t visit_count, visit_capacity; /* capacity: a power of two, or 0 */
    uint32_t walk_number;                 /* of this walk, never 0: visits of other walks are free slots */
    quern__transform_climber *climbers;   /* of the changed nodes in tops, by index */
    uint32_t climber_capacity;
    quern__transform_part parts[QUERN__TRANSFORM_PARTS];
    _Atomic uint64_t placed_count; /* by all parts of the walk so far */
    quern_transform_stats stats;
};

/* The exclusive system of quern_transform_add_systems. */
void quern__transform_walk(quern_context *context, const quern_view *view);
void quern__transform_walk_release(quern_transform *transform);

/* False when there is no memory, with the list as it was. */
bool quern__transform_list_reserve(const quern_transform *transform, quern__transform_list *list,
                                   uint32_t capacity);

/* Whether the entity is one that the systems place. */
static inline bool quern__transform_is_node(const quern_transform *transform, quern_entity entity)
{
    return quern_getter_get(transform->worlds, entity) != NULL &&
           quern_getter_get(transform->locals, entity) != NULL;
}

quern_result quern__transform_null(const char *function, const char *argument);

#endif
