/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Worlds of entities in a hierarchy. Two systems compute them: the walk computes only those that have changed, and
 * decides for each frame whether the sweep runs instead, which computes all of them level by level.
 *
 * After each frame, this equation holds bit for bit for each node (entity with local and world):
 * world = place(world of the parent, local). Only these changes can break it:
 *
 *   - The local of the node was written, or the node is new or has another parent. The node is then in a chunk that
 *     passes a change filter, or it is marked. The walk tests its equation; if it fails, the node has changed.
 *   - The parent has a world and no local, and its world was written; or the parent has a local and lost its world.
 *     A filter finds the parent, and the walk tests the equation of each of its children.
 *
 * A parent that has lost both is in no chunk that a filter visits: see quern_transform_mark_all.
 *
 * If no equation fails, there is nothing to do. Placing a changed node and then all nodes below it, parents before
 * children, restores all equations that the change could break. So a changed node with another changed node above
 * it, connected by nodes only, needs no work of its own. The remaining changed nodes are the tops. The nodes below
 * one top are below no other top, so tops can be processed in parallel and in any order.
 *
 * A sweep also restores all equations, with the same function on the same input. So the choice between walk and
 * sweep never affects the values of worlds. It does affect change filters on world, since a sweep writes all chunks.
 * The choice depends only on the state of the ECS world (the number of nodes, and how many may have changed), so
 * filters pass the same chunks at every thread count. A walk that exceeds its limit or runs out of memory leaves the
 * work to the sweep. */

#include "kit/transform.h"

#include <stdatomic.h>
#include <string.h>

enum {
    /* A walk tests at most a quarter of the nodes for changes, and places at most a quarter. */
    NODES_PER_STEP = 4,
    LEAST_CAPACITY = 64,
    LOOKUP_BATCH = 32,  /* nodes per lookup of children */
    TOPS_PER_PART = 16, /* smallest number of tops per job, so that a job pays */
    MOST_TRANSFORM_PARTS = 32
};

/* The component types and functions of three or two dimensions. */
typedef struct transform_kind {
    quern_component_def local, world;
    const char *walk_name, *sweep_name; /* names of the systems */
    quern_view_callback *sweep;
    /* Untyped quern_world3_place, _multiply and _split, or the functions of two dimensions; parent may be NULL. */
    void (*place)(const void *parent, const void *local, void *world);
    void (*multiply)(const void *outer, const void *inner, void *out);
    bool (*split)(const void *parent, const void *world, void *local);
} transform_kind;

/* Storage for a local or world of either dimension. */
typedef union transform_value {
    quern_world3 world3;
    quern_world2 world2;
    quern_local3 local3;
    quern_local2 local2;
} transform_value;

/* A list of entities with pointers to their components, in one block of memory. */
typedef struct transform_list {
    quern_entity *entities;
    void **locals, **worlds;
    uint32_t count, capacity;
} transform_list;

/* A node visited by a climber; see find_tops. */
typedef struct transform_visit {
    quern_entity entity;
    uint32_t climber; /* index of the first climber that visited the node */
    uint32_t walk;    /* number of the walk in which the node was visited */
} transform_visit;

/* Steps from a changed node upwards, from parent to parent. */
typedef struct transform_climber {
    quern_entity at;
    /* its own index: no node above it has changed, so far; another climber's index: the same verdict as that climber;
     * or BELOW_ANOTHER */
    uint32_t verdict;
    uint32_t next; /* index of the next active climber */
} transform_climber;

/* A share of a walk, done by one job. `list` holds the entities that the job has reached, parents before children;
 * entries that are not nodes are null. */
typedef struct transform_part {
    quern_transform *transform;
    void *const *parents; /* worlds of the parents of the tops, the first entities; NULL without a parent */
    transform_list list;
    bool is_complete; /* whether the share was completed: it had memory and stayed within the limit */
} transform_part;

struct quern_transform {
    const transform_kind *kind;
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
    bool all_marked;      /* the next frame sweeps; true for the first frame */
    bool needs_sweep;     /* the walk has decided that this frame sweeps, and the sweep has not run yet */
    transform_list marks; /* entities that the next frame tests; only `entities` is used */
    uint64_t node_limit;  /* largest number of nodes that a walk of this frame may test, or place */
    /* First the nodes that have changed; later the changed nodes without a changed ancestor (the tops), with the
     * worlds of their parents. */
    transform_list tops;
    transform_visit *visits;              /* hash table of the nodes visited by the climbers of this walk */
    uint32_t visit_count, visit_capacity; /* capacity: a power of two, or 0 */
    uint32_t walk_number;                 /* never 0; slots with another walk's number are free */
    transform_climber *climbers;          /* one per changed node, by its index in tops */
    uint32_t climber_capacity;
    transform_part parts[MOST_TRANSFORM_PARTS];
    _Atomic uint64_t placed_count; /* entities placed by all shares of the walk so far */
    quern_transform_stats stats;
};

/* -------------------------------------------------------------------------------------------- memory */

/* Bytes per entry of a list. */
#define ENTRY_BYTES (sizeof(quern_entity) + 2 * sizeof(void *))

static void *allocate_items(const quern_transform *transform, uint32_t count, size_t item_bytes)
{
    const quern_allocator *allocator = &transform->allocator;
    if (count > SIZE_MAX / item_bytes) return NULL; /* possible where size_t has 32 bits */
    return allocator->allocate(allocator->user_data, count * item_bytes, _Alignof(max_align_t));
}

static void release_items(const quern_transform *transform, void *items, uint32_t count, size_t item_bytes)
{
    const quern_allocator *allocator = &transform->allocator;
    if (items != NULL)
        allocator->release(allocator->user_data, items, count * item_bytes, _Alignof(max_align_t));
}

/* Allocates the three arrays of a list as one block. Returns false if there is no memory; the list stays as it was. */
static bool reserve_list(const quern_transform *transform, transform_list *list, uint32_t wanted)
{
    if (wanted <= list->capacity) return true;
    uint32_t capacity = list->capacity > 0 ? list->capacity : LEAST_CAPACITY;
    while (capacity < wanted)
        capacity *= 2;
    quern_entity *entities = allocate_items(transform, capacity, ENTRY_BYTES);
    if (entities == NULL) return false;
    const transform_list old = *list;
    list->entities = entities;
    list->locals = (void **)(entities + capacity);
    list->worlds = list->locals + capacity;
    list->capacity = capacity;
    if (old.count > 0) {
        memcpy(list->entities, old.entities, old.count * sizeof *old.entities);
        memcpy(list->locals, old.locals, old.count * sizeof *old.locals);
        memcpy(list->worlds, old.worlds, old.count * sizeof *old.worlds);
    }
    release_items(transform, old.entities, old.capacity, ENTRY_BYTES);
    return true;
}

/* -------------------------------------------------------------------------------------------- kinds */

static void sweep3(quern_context *context, const quern_view *view)
{
    (void)context;
    quern_world3 *worlds = QUERN_COLUMN(view, 0, quern_world3);
    const quern_local3 *locals = QUERN_COLUMN(view, 1, const quern_local3);
    const quern_world3 *const *parents = QUERN_UP(view, 2, quern_world3);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        quern_world3_place(parents[i], &locals[i], &worlds[i]);
}

static void sweep2(quern_context *context, const quern_view *view)
{
    (void)context;
    quern_world2 *worlds = QUERN_COLUMN(view, 0, quern_world2);
    const quern_local2 *locals = QUERN_COLUMN(view, 1, const quern_local2);
    const quern_world2 *const *parents = QUERN_UP(view, 2, quern_world2);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        quern_world2_place(parents[i], &locals[i], &worlds[i]);
}

static void place3(const void *parent, const void *local, void *world)
{
    quern_world3_place(parent, local, world);
}

static void place2(const void *parent, const void *local, void *world)
{
    quern_world2_place(parent, local, world);
}

static void multiply3(const void *outer, const void *inner, void *out)
{
    quern_world3_multiply(outer, inner, out);
}

static void multiply2(const void *outer, const void *inner, void *out)
{
    quern_world2_multiply(outer, inner, out);
}

static bool split3(const void *parent, const void *world, void *local)
{
    return quern_world3_split(parent, world, local);
}

static bool split2(const void *parent, const void *world, void *local)
{
    return quern_world2_split(parent, world, local);
}

static const transform_kind spatial = {
    .local = {QUERN_TYPE(quern_local3), .fields = QUERN_FIELDS(quern_local3, translation, rotation, scale)},
    .world = {QUERN_TYPE(quern_world3),
              .fields = {{"m", QUERN_FIELD_F32, offsetof(quern_world3, m), .count = 12}}},
    .walk_name = "walk_transforms3",
    .sweep_name = "sweep_transforms3",
    .sweep = sweep3,
    .place = place3,
    .multiply = multiply3,
    .split = split3,
};

static const transform_kind planar = {
    .local = {QUERN_TYPE(quern_local2), .fields = QUERN_FIELDS(quern_local2, position, angle, scale)},
    .world = {QUERN_TYPE(quern_world2),
              .fields = {{"m", QUERN_FIELD_F32, offsetof(quern_world2, m), .count = 6}}},
    .walk_name = "walk_transforms2",
    .sweep_name = "sweep_transforms2",
    .sweep = sweep2,
    .place = place2,
    .multiply = multiply2,
    .split = split2,
};

/* Whether the entity is a node: one with local and world, which the systems place. */
static bool is_node(const quern_transform *transform, quern_entity entity)
{
    return quern_getter_get(transform->worlds, entity) != NULL &&
           quern_getter_get(transform->locals, entity) != NULL;
}

/* ---------------------------------------------------------------------------------------- changed nodes */

/* Adds an entity with a failed equation to the changed nodes. Returns false if there is no memory. */
static bool add_changed(quern_transform *transform, quern_entity entity)
{
    transform_list *tops = &transform->tops;
    if (!reserve_list(transform, tops, tops->count + 1)) return false;
    tops->entities[tops->count++] = entity;
    return true;
}

static bool equation_holds(const quern_transform *transform, const void *parent, const void *local,
                           const void *world)
{
    const transform_kind *kind = transform->kind;
    transform_value placed;
    kind->place(parent, local, &placed);
    return memcmp(&placed, world, kind->world.size_bytes) == 0;
}

static const void *world_of_parent(const quern_transform *transform, quern_entity entity)
{
    const quern_entity parent = quern_entity_target(transform->owner, entity, transform->parent);
    return quern_entity_is_null(parent) ? NULL : quern_getter_get(transform->worlds, parent);
}

/* Tests an entity that may have stopped being a node. */
static bool test_entity(quern_transform *transform, quern_entity entity)
{
    const void *world = quern_getter_get(transform->worlds, entity);
    const void *local = quern_getter_get(transform->locals, entity);
    if (world == NULL || local == NULL) return true;
    if (equation_holds(transform, world_of_parent(transform, entity), local, world)) return true;
    return add_changed(transform, entity);
}

/* Tests all nodes of a view of transform->changed. */
static bool test_view(quern_transform *transform, const quern_view *view)
{
    const transform_kind *kind = transform->kind;
    const char *locals = quern_view_read(view, 0), *worlds = quern_view_read(view, 1);
    const void *const *parents = quern_view_up(view, 2);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++, locals += kind->local.size_bytes, worlds += kind->world.size_bytes)
        if (!equation_holds(transform, parents[i], locals, worlds) &&
            !add_changed(transform, view->entities[i]))
            return false;
    return true;
}

/* Tests the children of all entities that a query finds. The entities themselves are not nodes. */
static bool test_children(quern_transform *transform, quern_query *query)
{
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        for (uint32_t i = 0; i < it.view.count; i++) {
            quern_world *owner = transform->owner;
            quern_entity child = quern_entity_first_source(owner, it.view.entities[i], transform->parent);
            for (; !quern_entity_is_null(child);
                 child = quern_entity_next_sibling(owner, child, transform->parent)) {
                if (++transform->stats.changed_count > transform->node_limit) return false;
                if (!test_entity(transform, child)) return false;
            }
        }
    return it.result == QUERN_OK;
}

/* Creates the query of written worlds for the first entity that has a world and no local. Such entities are rare,
 * and a change filter on world adds a cost to each write of a world. */
static bool create_changed_world_only(quern_transform *transform)
{
    if (transform->changed_world_only != NULL || quern_query_count(transform->world_only) == 0) return true;
    const quern_query_def def = {
        .terms = {
            quern_term_changed(quern_term_read(transform->world)),
            quern_term_without(transform->local),
            quern_term_optional(quern_world_disabled_tag(transform->owner), QUERN_ACCESS_NONE),
        }};
    return quern_query_create(transform->owner, &def, &transform->changed_world_only) == QUERN_OK;
}

/* Collects the changed nodes in tops. Returns false if the frame needs a sweep: testing must cost less than a sweep, so
 * only few nodes may have changed. An iteration over each query begins in every frame, also before a sweep: its
 * beginning marks the changes as seen. */
static bool find_changed(quern_transform *transform)
{
    quern_transform_stats *stats = &transform->stats;
    const transform_list *marks = &transform->marks;
    transform->tops.count = 0;
    stats->changed_count = marks->count;
    quern_query_iterator counted = quern_query_iterate(transform->changed_for_counting);
    while (stats->changed_count <= transform->node_limit && quern_query_next(&counted))
        stats->changed_count += counted.view.count;
    const bool has_changes = stats->changed_count > marks->count;
    bool is_complete = counted.result == QUERN_OK && stats->changed_count <= transform->node_limit &&
                       !transform->all_marked && !transform->no_walk;
    quern_query_iterator it = quern_query_iterate(transform->changed);
    while (is_complete && has_changes && quern_query_next(&it))
        is_complete = test_view(transform, &it.view);
    is_complete = is_complete && it.result == QUERN_OK && create_changed_world_only(transform);
    if (transform->changed_world_only != NULL)
        is_complete = test_children(transform, transform->changed_world_only) && is_complete;
    is_complete = test_children(transform, transform->local_only) && is_complete;
    for (uint32_t i = 0; i < marks->count && is_complete; i++)
        is_complete = test_entity(transform, marks->entities[i]);
    return is_complete;
}

/* ----------------------------------------------------------------------------------------------- tops */

/* Climbing finds the tops among the changed nodes: one climber starts at each changed node, and in each round all
 * active climbers take one step to the parent. A climber ends
 *
 *   - at a changed node: its own node is below that node, and is no top;
 *   - at a node that another climber has visited: both climbers have the same nodes above them, so the second one
 *     gets the verdict of the first;
 *   - where there is no node above: its own node is a top.
 *
 * So each node is visited at most once. Climbing also ends when one climber is left and none has ended in the third
 * way. Then no changed node is above the last climber's node: the climber of the highest changed node could only
 * have ended in the third way. So a single changed node takes no step, and changed nodes close to each other take
 * few steps, at any depth. */

#define BELOW_ANOTHER UINT32_MAX /* a verdict; all other verdicts are indices of changed nodes */

/* Returns the slot of an entity that was visited in this walk, or a free slot. */
static transform_visit *find_visit(const quern_transform *transform, quern_entity entity)
{
    const uint64_t mixed = entity.bits * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t slot = (uint32_t)(mixed >> 32) & (transform->visit_capacity - 1);
    while (transform->visits[slot].walk == transform->walk_number &&
           !quern_entity_equal(transform->visits[slot].entity, entity))
        slot = (slot + 1) & (transform->visit_capacity - 1);
    return &transform->visits[slot];
}

static void visit(quern_transform *transform, transform_visit *slot, quern_entity entity, uint32_t climber)
{
    *slot = (transform_visit){entity, climber, transform->walk_number};
    transform->visit_count++;
}

/* Makes the table large enough for `more` further visits. Returns false if there is no memory; the table stays as
 * it was. */
static bool reserve_visits(quern_transform *transform, uint32_t more)
{
    const uint64_t wanted = 2 * ((uint64_t)transform->visit_count + more);
    if (wanted <= transform->visit_capacity) return true;
    const uint32_t old_capacity = transform->visit_capacity;
    transform_visit *old = transform->visits;
    uint64_t capacity = old_capacity > 0 ? old_capacity : LEAST_CAPACITY;
    while (capacity < wanted)
        capacity *= 2;
    if (capacity > UINT32_MAX) return false;
    transform_visit *visits = allocate_items(transform, (uint32_t)capacity, sizeof *visits);
    if (visits == NULL) return false;
    memset(visits, 0, (size_t)capacity * sizeof *visits);
    transform->visits = visits;
    transform->visit_capacity = (uint32_t)capacity;
    for (uint32_t i = 0; i < old_capacity; i++)
        if (old[i].walk == transform->walk_number) *find_visit(transform, old[i].entity) = old[i];
    release_items(transform, old, old_capacity, sizeof *old);
    return true;
}

/* Starts a climber at each changed node and removes duplicates from tops. Returns false if there is no memory. */
static bool start_climbers(quern_transform *transform)
{
    transform_list *tops = &transform->tops;
    transform->visit_count = 0;
    if (++transform->walk_number == 0) { /* otherwise, the new number makes all slots free */
        if (transform->visit_capacity > 0)
            memset(transform->visits, 0, transform->visit_capacity * sizeof *transform->visits);
        transform->walk_number = 1;
    }
    if (tops->capacity > transform->climber_capacity) {
        transform_climber *climbers = allocate_items(transform, tops->capacity, sizeof *climbers);
        if (climbers == NULL) return false;
        release_items(transform, transform->climbers, transform->climber_capacity, sizeof *climbers);
        transform->climbers = climbers;
        transform->climber_capacity = tops->capacity;
    }
    if (!reserve_visits(transform, tops->count)) return false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < tops->count; i++) {
        const quern_entity entity = tops->entities[i];
        transform_visit *slot = find_visit(transform, entity);
        if (slot->walk == transform->walk_number) continue;
        visit(transform, slot, entity, kept);
        transform->climbers[kept] = (transform_climber){.at = entity, .verdict = kept, .next = kept + 1};
        tops->entities[kept++] = entity;
    }
    tops->count = kept;
    return true;
}

typedef enum step { STEP_UP, STEP_MET, STEP_ARRIVED, STEP_NO_MEMORY } step;

/* Moves a climber one step up. STEP_MET: its verdict is set. STEP_ARRIVED: there is no node above it. */
static step climb(quern_transform *transform, uint32_t index)
{
    transform_climber *climber = &transform->climbers[index];
    const quern_entity above = quern_entity_target(transform->owner, climber->at, transform->parent);
    if (quern_entity_is_null(above) || !is_node(transform, above)) return STEP_ARRIVED;
    if (!reserve_visits(transform, 1)) return STEP_NO_MEMORY;
    transform_visit *slot = find_visit(transform, above);
    if (slot->walk == transform->walk_number) {
        const bool is_changed = quern_entity_equal(transform->tops.entities[slot->climber], above);
        climber->verdict = is_changed ? BELOW_ANOTHER : slot->climber;
        return STEP_MET;
    }
    visit(transform, slot, above, index);
    transform->stats.climbed_count++;
    climber->at = above;
    return STEP_UP;
}

/* Gives each climber its verdict. Returns false if there is no memory. */
static bool climb_all(quern_transform *transform)
{
    const uint32_t count = transform->tops.count;
    uint32_t first = 0, left = count;
    bool has_arrived = false;
    while (left > 1 || (left == 1 && has_arrived)) {
        uint32_t *link = &first;
        for (uint32_t i = first; i < count; i = transform->climbers[i].next) {
            const step taken = climb(transform, i);
            if (taken == STEP_NO_MEMORY) return false;
            has_arrived |= taken == STEP_ARRIVED;
            if (taken == STEP_UP)
                link = &transform->climbers[i].next;
            else
                *link = transform->climbers[i].next, left--;
        }
    }
    return true;
}

/* Returns the verdict of a climber, following the chain of shared verdicts. Each climber on the path gets
 * the verdict of its successor's successor (path halving), so all paths together stay short. */
static uint32_t verdict_of(transform_climber *climbers, uint32_t index)
{
    while (index != BELOW_ANOTHER && climbers[index].verdict != index) {
        const uint32_t next = climbers[index].verdict;
        if (next != BELOW_ANOTHER) climbers[index].verdict = climbers[next].verdict;
        index = next;
    }
    return index;
}

/* Removes the changed nodes that are below other changed nodes from tops, and adds the worlds of the parents of the
 * others. Returns false if there is no memory. */
static bool find_tops(quern_transform *transform)
{
    transform_list *tops = &transform->tops;
    if (!start_climbers(transform) || !climb_all(transform)) return false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < tops->count; i++) {
        if (verdict_of(transform->climbers, i) == BELOW_ANOTHER) continue;
        const quern_entity entity = tops->entities[i];
        tops->entities[kept] = entity;
        tops->worlds[kept++] = (void *)world_of_parent(transform, entity);
    }
    tops->count = kept;
    return true;
}

/* ----------------------------------------------------------------------------------------------- walk */

/* Places list entries from `first` on: counts[i] entries have the parent world parents[i]. */
static void place_list(const quern_transform *transform, transform_list *list, uint32_t first,
                       void *const *parents, const uint32_t *counts, uint32_t parent_count)
{
    void (*place)(const void *, const void *, void *) = transform->kind->place;
    for (uint32_t i = 0, k = first; i < parent_count; i++)
        for (const uint32_t end = k + counts[i]; k < end; k++)
            if (list->locals[k] != NULL && list->worlds[k] != NULL)
                place(parents[i], list->locals[k], list->worlds[k]);
            else
                list->entities[k] = quern_entity_null(); /* not a node, so the walk ends here */
}

/* Appends the children of `count` entities of a list, beginning with `first`, and places them. */
static bool place_children(const quern_transform *transform, transform_list *list, uint32_t first,
                           uint32_t count)
{
    uint32_t counts[LOOKUP_BATCH];
    const uint32_t room = list->capacity - list->count;
    const quern_getter_column columns[] = {
        {.getter = transform->locals, .values = list->locals + list->count},
        {.getter = transform->worlds, .values = list->worlds + list->count, .writes = true}};
    const quern_source_list children = {.relation = transform->parent,
                                        .targets = list->entities + first,
                                        .target_count = count,
                                        .capacity = room,
                                        .sources = list->entities + list->count,
                                        .counts = counts,
                                        .columns = columns,
                                        .column_count = 2};
    const uint64_t child_count = quern_entity_list_sources_many(transform->owner, &children);
    if (child_count > room) {
        if (child_count > transform->node_limit) return false;
        if (!reserve_list(transform, list, list->count + (uint32_t)child_count)) return false;
        return place_children(transform, list, first, count);
    }
    place_list(transform, list, list->count, list->worlds + first, counts, count);
    list->count += (uint32_t)child_count;
    return true;
}

/* Places the tops of a share, each of which has a parent of its own, and then the nodes below them. */
static void walk_part(transform_part *part)
{
    quern_transform *transform = part->transform;
    transform_list *list = &part->list;
    part->is_complete = false;
    quern_getter_get_many(transform->locals, list->entities, list->count, (const void **)list->locals);
    quern_getter_get_many_write(transform->worlds, list->entities, list->count, list->worlds);
    for (uint32_t i = 0; i < list->count; i++)
        place_list(transform, list, i, part->parents + i, &(uint32_t){1}, 1);
    for (uint32_t first = 0; first < list->count;) {
        const uint32_t left = list->count - first;
        const uint32_t count = left < LOOKUP_BATCH ? left : LOOKUP_BATCH;
        /* Relaxed: nothing else is published through the number, and whether the total exceeds the limit does not
         * depend on the order of the additions. */
        const uint64_t before =
            atomic_fetch_add_explicit(&transform->placed_count, count, memory_order_relaxed);
        if (before + count > transform->node_limit) return;
        if (!place_children(transform, list, first, count)) return;
        first += count;
    }
    part->is_complete = true;
}

static void walk_parts(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    transform_part *parts = user_data;
    for (uint32_t i = begin; i < end; i++)
        walk_part(&parts[i]);
}

/* Walks from the tops (changed nodes without a changed ancestor) downwards, in shares for jobs. The number of shares
 * depends only on the number of tops, not on the number of threads. */
static bool walk_tops(quern_transform *transform, quern_jobs *jobs)
{
    const transform_list *tops = &transform->tops;
    transform_part *parts = transform->parts;
    if (tops->count == 0) return true;
    uint32_t part_count = tops->count / TOPS_PER_PART;
    if (part_count == 0) part_count = 1;
    if (part_count > MOST_TRANSFORM_PARTS) part_count = MOST_TRANSFORM_PARTS;
    for (uint32_t i = 0; i < part_count; i++) {
        const uint32_t begin = (uint32_t)((uint64_t)tops->count * i / part_count);
        const uint32_t end = (uint32_t)((uint64_t)tops->count * (i + 1) / part_count);
        parts[i].transform = transform;
        parts[i].parents = tops->worlds + begin;
        parts[i].list.count = 0;
        if (!reserve_list(transform, &parts[i].list, end - begin)) return false;
        parts[i].list.count = end - begin;
        memcpy(parts[i].list.entities, tops->entities + begin, (end - begin) * sizeof *tops->entities);
    }
    /* Relaxed: no job has started. */
    atomic_store_explicit(&transform->placed_count, 0, memory_order_relaxed);
    if (jobs == NULL || part_count == 1 ||
        quern_jobs_parallel_for(jobs, part_count, 1, walk_parts, parts) != QUERN_OK)
        walk_parts(parts, 0, part_count, 0);
    for (uint32_t i = 0; i < part_count; i++)
        if (!parts[i].is_complete) return false;
    /* Relaxed: all jobs have ended. */
    transform->stats.moved_count = atomic_load_explicit(&transform->placed_count, memory_order_relaxed);
    return true;
}

/* The exclusive system of quern_transform_add_systems. */
static void run_walk(quern_context *context, const quern_view *view)
{
    (void)view;
    quern_transform *transform = quern_context_user_data(context);
    const uint64_t node_count = quern_query_count(transform->nodes);
    transform->stats = (quern_transform_stats){.node_count = node_count};
    transform->node_limit = node_count / NODES_PER_STEP;
    if (transform->needs_sweep)
        transform->all_marked = true; /* the sweep of a frame that ended with an error is pending */
    const bool is_done = find_changed(transform) && find_tops(transform) &&
                         walk_tops(transform, quern_context_jobs(context));
    transform->needs_sweep = transform->stats.swept = !is_done;
    transform->marks.count = 0;
    transform->all_marked = false;
}

/* ----------------------------------------------------------------------------------------- registering */

static quern_result fail_null(const char *function, const char *argument)
{
    return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function, argument);
}

static quern_result make_queries(quern_transform *transform)
{
    const quern_term any_state =
        quern_term_optional(quern_world_disabled_tag(transform->owner), QUERN_ACCESS_NONE);
    const quern_component parent = quern_relation_component(transform->parent);
    const quern_component local = transform->local, world = transform->world;
    const quern_query_def nodes = {.terms = {quern_term_with(local), quern_term_with(world), any_state}};
    const quern_query_def changed = {
        .terms = {quern_term_changed(quern_term_read(local)), quern_term_read(world),
                  quern_term_up_optional(world, transform->parent),
                  quern_term_changed(quern_term_optional(parent, QUERN_ACCESS_READ)), any_state}};
    const quern_query_def world_only = {
        .terms = {quern_term_with(world), quern_term_without(local), any_state}};
    const quern_query_def local_only = {
        .terms = {quern_term_changed(quern_term_read(local)), quern_term_without(world), any_state}};
    quern_result result = quern_query_create(transform->owner, &nodes, &transform->nodes);
    if (result == QUERN_OK)
        result = quern_query_create(transform->owner, &changed, &transform->changed_for_counting);
    if (result == QUERN_OK) result = quern_query_create(transform->owner, &changed, &transform->changed);
    if (result == QUERN_OK)
        result = quern_query_create(transform->owner, &world_only, &transform->world_only);
    if (result == QUERN_OK)
        result = quern_query_create(transform->owner, &local_only, &transform->local_only);
    return result;
}

static quern_result init(quern_transform *transform)
{
    quern_world *world = transform->owner;
    const quern_relation_def hierarchy = {.name = "parent", .levels = true, .ordered = true};
    quern_result result = quern_relation_register(world, &hierarchy, &transform->parent);
    /* quern_world_disabled_tag returns no error code; it fails only if another component has the name, or for lack of
     * memory. */
    if (result == QUERN_OK && quern_component_is_null(quern_world_disabled_tag(world)))
        return quern_component_is_null(quern_component_find(world, "disabled"))
                   ? QUERN_ERROR_OUT_OF_MEMORY
                   : QUERN_ERROR_DUPLICATE_NAME;
    if (result == QUERN_OK)
        result = quern_component_register(world, &transform->kind->local, &transform->local);
    if (result == QUERN_OK)
        result = quern_component_register(world, &transform->kind->world, &transform->world);
    if (result == QUERN_OK) result = make_queries(transform);
    const quern_getter_def locals = {.component = transform->local},
                           worlds = {.component = transform->world};
    if (result == QUERN_OK) result = quern_getter_create(world, &locals, &transform->locals);
    if (result == QUERN_OK) result = quern_getter_create(world, &worlds, &transform->worlds);
    return result;
}

quern_result quern_transform_register(quern_world *world, const quern_transform_def *def,
                                      quern_transform **out_transform)
{
    static const char function[] = "quern_transform_register";
    const quern_transform_def plain = {0};
    if (world == NULL) return fail_null(function, "world");
    if (out_transform == NULL) return fail_null(function, "out_transform");
    if (def == NULL) def = &plain;
    quern_allocator allocator = def->allocator;
    if ((allocator.allocate == NULL) != (allocator.release == NULL))
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: the allocator has only one of allocate and release: set both, or neither", function);
    if (allocator.allocate == NULL) allocator = quern_allocator_default();
    quern_transform *transform =
        allocator.allocate(allocator.user_data, sizeof *transform, _Alignof(max_align_t));
    if (transform == NULL)
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY, "%s: no memory for the transforms of a world",
                               function);
    *transform = (quern_transform){.kind = def->planar ? &planar : &spatial,
                                   .allocator = allocator,
                                   .owner = world,
                                   .no_walk = def->no_walk,
                                   .all_marked = true};
    const quern_result result = init(transform);
    if (result != QUERN_OK) {
        quern_transform_release(transform);
        return result;
    }
    *out_transform = transform;
    return QUERN_OK;
}

void quern_transform_release(quern_transform *transform)
{
    if (transform == NULL) return;
    const quern_allocator allocator = transform->allocator;
    quern_getter_destroy(transform->locals);
    quern_getter_destroy(transform->worlds);
    quern_query_destroy(transform->nodes);
    quern_query_destroy(transform->changed_for_counting);
    quern_query_destroy(transform->changed);
    quern_query_destroy(transform->world_only);
    quern_query_destroy(transform->changed_world_only);
    quern_query_destroy(transform->local_only);
    release_items(transform, transform->marks.entities, transform->marks.capacity, ENTRY_BYTES);
    release_items(transform, transform->tops.entities, transform->tops.capacity, ENTRY_BYTES);
    release_items(transform, transform->visits, transform->visit_capacity, sizeof *transform->visits);
    release_items(transform, transform->climbers, transform->climber_capacity, sizeof *transform->climbers);
    for (uint32_t i = 0; i < MOST_TRANSFORM_PARTS; i++) {
        const transform_list *list = &transform->parts[i].list;
        release_items(transform, list->entities, list->capacity, ENTRY_BYTES);
    }
    allocator.release(allocator.user_data, transform, sizeof *transform, _Alignof(max_align_t));
}

quern_component quern_transform_local(const quern_transform *transform)
{
    return transform->local;
}

quern_component quern_transform_world(const quern_transform *transform)
{
    return transform->world;
}

/* ------------------------------------------------------------------------------------------- systems */

/* Whether the walk has requested a sweep. Until this condition is evaluated, the request stays pending, since an
 * error may end the frame first. */
static bool needs_sweep(quern_context *context)
{
    quern_transform *transform = quern_context_user_data(context);
    const bool is_wanted = transform->needs_sweep;
    transform->needs_sweep = false;
    return is_wanted;
}

quern_result quern_transform_add_systems(quern_transform *transform, quern_schedule *schedule,
                                         uint32_t phase)
{
    static const char function[] = "quern_transform_add_systems";
    if (transform == NULL) return fail_null(function, "transform");
    if (schedule == NULL) return fail_null(function, "schedule");
    const transform_kind *kind = transform->kind;
    const quern_component disabled = quern_world_disabled_tag(transform->owner);
    const quern_system_def walk = {.name = kind->walk_name,
                                   .phase = phase,
                                   .run = run_walk,
                                   .flags = QUERN_SYSTEM_EXCLUSIVE,
                                   .user_data = transform};
    const quern_system_def sweep = {.name = kind->sweep_name,
                                    .phase = phase,
                                    .run = kind->sweep,
                                    .condition = needs_sweep,
                                    .terms = {quern_term_write(transform->world),
                                              quern_term_read(transform->local),
                                              quern_term_up_optional(transform->world, transform->parent),
                                              quern_term_optional(disabled, QUERN_ACCESS_NONE)},
                                    .levels = transform->parent,
                                    .after = {kind->walk_name},
                                    .user_data = transform};
    /* If an earlier call added the walk and failed on the sweep, this call adds the sweep alone. */
    const bool has_walk = quern_schedule_find_system(schedule, kind->walk_name).bits != 0;
    const bool has_sweep = quern_schedule_find_system(schedule, kind->sweep_name).bits != 0;
    quern_result result = QUERN_OK;
    if (!has_walk || has_sweep) result = quern_schedule_add_system(schedule, &walk, NULL);
    return result == QUERN_OK ? quern_schedule_add_system(schedule, &sweep, NULL) : result;
}

/* -------------------------------------------------------------------------------------- parents */

/* Returns the world transform that applies to children of an entity: computed from the current locals if the entity
 * has a local, otherwise its stored world. NULL if the entity is null or has no world. */
static const void *world_for_children(const quern_transform *transform, quern_entity entity,
                                      transform_value *out_world)
{
    if (quern_entity_is_null(entity)) return NULL;
    const void *world = quern_getter_get(transform->worlds, entity);
    if (world == NULL || quern_getter_get(transform->locals, entity) == NULL) return world;
    return quern_transform_compute(transform, entity, out_world) == QUERN_OK ? out_world : NULL;
}

/* Multiplies locals from the entity upwards. Ends at a root, below a parent without a world, or with the world of a
 * parent without a local. */
quern_result quern_transform_compute(const quern_transform *transform, quern_entity entity, void *out_world)
{
    static const char function[] = "quern_transform_compute";
    if (transform == NULL) return fail_null(function, "transform");
    if (out_world == NULL) return fail_null(function, "out_world");
    const transform_kind *kind = transform->kind;
    const void *local = quern_getter_get(transform->locals, entity);
    if (local == NULL) /* fails with the entity's error, or because it lacks a local */
        return quern_entity_mark_changed(transform->owner, entity, transform->local);
    transform_value product, outer;
    kind->place(NULL, local, &product);
    while (local != NULL) {
        entity = quern_entity_target(transform->owner, entity, transform->parent);
        const void *world =
            quern_entity_is_null(entity) ? NULL : quern_getter_get(transform->worlds, entity);
        if (world == NULL) break;
        local = quern_getter_get(transform->locals, entity);
        if (local != NULL) kind->place(NULL, local, &outer);
        kind->multiply(local != NULL ? &outer : world, &product, &product);
    }
    memcpy(out_world, &product, kind->world.size_bytes);
    return QUERN_OK;
}

/* Computes the local that keeps an entity at its place in the world. parent_world may be NULL. */
static quern_result find_local(const quern_transform *transform, const void *parent_world,
                               const void *world, transform_value *out_local, const char *function)
{
    if (transform->kind->split(parent_world, world, out_local)) return QUERN_OK;
    return quern_error_set(
        QUERN_ERROR_INVALID_ARGUMENT,
        "%s: no local keeps the entity in place: its new parent is flat (a scale of 0 of its own or of an "
        "ancestor), or a number is not finite; correct that, or let the entity move",
        function);
}

quern_result quern_transform_set_parent(quern_transform *transform, quern_entity entity,
                                        quern_entity parent, bool keep_world)
{
    static const char function[] = "quern_transform_set_parent";
    if (transform == NULL) return fail_null(function, "transform");
    quern_world *owner = transform->owner;
    transform_value world, parent_world, local;
    quern_result result = QUERN_OK;
    if (keep_world) {
        result = quern_transform_compute(transform, entity, &world);
        if (result != QUERN_OK) return result;
        result = find_local(transform, world_for_children(transform, parent, &parent_world), &world, &local,
                            function);
        if (result != QUERN_OK) return result;
    }
    if (!quern_entity_is_null(parent))
        result = quern_entity_relate(owner, entity, transform->parent, parent);
    else
        result = quern_entity_unrelate(owner, entity, transform->parent);
    if (result == QUERN_ERROR_COMPONENT_ABSENT && quern_entity_is_null(parent)) result = QUERN_OK;
    /* Setting cannot fail: the component is present, and its values are plain bytes. */
    return result == QUERN_OK && keep_world ? quern_entity_set(owner, entity, transform->local, &local)
                                            : result;
}

quern_result quern_transform_record_parent(const quern_transform *transform, quern_commands *commands,
                                           quern_entity entity, quern_entity parent, const void *world,
                                           const void *parent_world)
{
    static const char function[] = "quern_transform_record_parent";
    if (transform == NULL) return fail_null(function, "transform");
    transform_value local;
    quern_result result = QUERN_OK;
    if (world != NULL) result = find_local(transform, parent_world, world, &local, function);
    if (result != QUERN_OK) return result;
    result = quern_entity_is_null(parent)
                 ? quern_commands_unrelate(commands, entity, transform->parent)
                 : quern_commands_relate(commands, entity, transform->parent, parent);
    if (result != QUERN_OK || world == NULL) return result;
    return quern_commands_set(commands, entity, transform->local, &local);
}

/* ---------------------------------------------------------------------------------- marks and statistics */

quern_result quern_transform_mark(quern_transform *transform, quern_entity entity)
{
    static const char function[] = "quern_transform_mark";
    if (transform == NULL) return fail_null(function, "transform");
    if (!is_node(transform, entity)) {
        /* This call fails with the entity's error, or because it lacks a local. */
        const quern_result result = quern_entity_mark_changed(transform->owner, entity, transform->local);
        if (result != QUERN_OK) return result;
        return quern_error_set(QUERN_ERROR_COMPONENT_ABSENT,
                               "%s: entity %u:%u has a local and no world: add quern_transform_world",
                               function, quern_entity_index(entity), quern_entity_generation(entity));
    }
    transform_list *marks = &transform->marks;
    if (reserve_list(transform, marks, marks->count + 1))
        marks->entities[marks->count++] = entity;
    else
        transform->all_marked = true;
    return QUERN_OK;
}

void quern_transform_mark_all(quern_transform *transform)
{
    if (transform != NULL) transform->all_marked = true;
}

quern_result quern_transform_get_stats(const quern_transform *transform, quern_transform_stats *out_stats)
{
    static const char function[] = "quern_transform_get_stats";
    if (transform == NULL) return fail_null(function, "transform");
    if (out_stats == NULL) return fail_null(function, "out_stats");
    *out_stats = transform->stats;
    return QUERN_OK;
}
