/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The walk finds the entities that have changed and places them and all their descendants. It runs before the
 * sweep of transform.c and decides whether the sweep runs in this frame.
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

#include "kit/transform_internal.h"

#include <string.h>

enum {
    /* A walk tests at most a quarter of the nodes for changes, and places at most a quarter. */
    NODES_PER_STEP = 4,
    LEAST_CAPACITY = 64,
    LOOKUP_BATCH = 32,  /* nodes per lookup of children */
    TOPS_PER_PART = 16, /* smallest number of tops per job, so that a job pays */
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

/* Allocates the three arrays of a list as one block. */
bool quern__transform_list_reserve(const quern_transform *transform, quern__transform_list *list,
                                   uint32_t wanted)
{
    if (wanted <= list->capacity) return true;
    uint32_t capacity = list->capacity > 0 ? list->capacity : LEAST_CAPACITY;
    while (capacity < wanted)
        capacity *= 2;
    quern_entity *entities = allocate_items(transform, capacity, ENTRY_BYTES);
    if (entities == NULL) return false;
    const quern__transform_list old = *list;
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

void quern__transform_walk_release(quern_transform *transform)
{
    release_items(transform, transform->marks.entities, transform->marks.capacity, ENTRY_BYTES);
    release_items(transform, transform->tops.entities, transform->tops.capacity, ENTRY_BYTES);
    release_items(transform, transform->visits, transform->visit_capacity, sizeof *transform->visits);
    release_items(transform, transform->climbers, transform->climber_capacity, sizeof *transform->climbers);
    for (uint32_t i = 0; i < QUERN__TRANSFORM_PARTS; i++) {
        const quern__transform_list *list = &transform->parts[i].list;
        release_items(transform, list->entities, list->capacity, ENTRY_BYTES);
    }
}

/* ---------------------------------------------------------------------------------------- changed nodes */

/* Adds an entity with a failed equation to the changed nodes. Returns false if there is no memory. */
static bool add_changed(quern_transform *transform, quern_entity entity)
{
    quern__transform_list *tops = &transform->tops;
    if (!quern__transform_list_reserve(transform, tops, tops->count + 1)) return false;
    tops->entities[tops->count++] = entity;
    return true;
}

static bool equation_holds(const quern_transform *transform, const void *parent, const void *local,
                           const void *world)
{
    const quern__transform_kind *kind = transform->kind;
    quern__transform_value placed;
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

static bool test_marked(quern_transform *transform)
{
    const quern__transform_list *marks = &transform->marks;
    for (uint32_t i = 0; i < marks->count; i++)
        if (!test_entity(transform, marks->entities[i])) return false;
    return true;
}

/* Tests all nodes of a view of transform->changed. */
static bool test_view(quern_transform *transform, const quern_view *view)
{
    const quern__transform_kind *kind = transform->kind;
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

/* Whether so few nodes may have changed that testing them costs less than a sweep. */
static bool has_few_changes(quern_transform *transform)
{
    quern_transform_stats *stats = &transform->stats;
    stats->changed_count = transform->marks.count;
    quern_query_iterator it = quern_query_iterate(transform->changed_for_counting);
    while (stats->changed_count <= transform->node_limit && quern_query_next(&it))
        stats->changed_count += it.view.count;
    return it.result == QUERN_OK && stats->changed_count <= transform->node_limit;
}

/* Collects the changed nodes in tops. Returns false if the frame needs a sweep. An iteration over each query
 * begins in every frame, also before a sweep: its beginning marks the changes as seen. */
static bool find_changed(quern_transform *transform)
{
    transform->tops.count = 0;
    const bool has_few = has_few_changes(transform) && !transform->all_marked && !transform->no_walk;
    const bool has_changes = transform->stats.changed_count > transform->marks.count;
    quern_query_iterator it = quern_query_iterate(transform->changed);
    bool is_complete = has_few;
    while (is_complete && has_changes && quern_query_next(&it))
        is_complete = test_view(transform, &it.view);
    is_complete = is_complete && it.result == QUERN_OK && create_changed_world_only(transform);
    if (transform->changed_world_only != NULL)
        is_complete = test_children(transform, transform->changed_world_only) && is_complete;
    is_complete = test_children(transform, transform->local_only) && is_complete;
    return is_complete && test_marked(transform);
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

static uint32_t slot_of(const quern_transform *transform, quern_entity entity)
{
    const uint64_t mixed = entity.bits * UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(mixed >> 32) & (transform->visit_capacity - 1);
}

/* Returns the slot of an entity that was visited in this walk, or a free slot. */
static quern__transform_visit *find_visit(const quern_transform *transform, quern_entity entity)
{
    uint32_t slot = slot_of(transform, entity);
    while (transform->visits[slot].walk == transform->walk_number &&
           !quern_entity_equal(transform->visits[slot].entity, entity))
        slot = (slot + 1) & (transform->visit_capacity - 1);
    return &transform->visits[slot];
}

static void visit(quern_transform *transform, quern__transform_visit *slot, quern_entity entity,
                  uint32_t climber)
{
    *slot = (quern__transform_visit){entity, climber, transform->walk_number};
    transform->visit_count++;
}

/* Makes the table large enough for `more` further visits. Returns false if there is no memory; the table stays as
 * it was. */
static bool reserve_visits(quern_transform *transform, uint32_t more)
{
    const uint64_t wanted = 2 * ((uint64_t)transform->visit_count + more);
    if (wanted <= transform->visit_capacity) return true;
    const uint32_t old_capacity = transform->visit_capacity;
    quern__transform_visit *old = transform->visits;
    uint64_t capacity = old_capacity > 0 ? old_capacity : LEAST_CAPACITY;
    while (capacity < wanted)
        capacity *= 2;
    if (capacity > UINT32_MAX) return false;
    quern__transform_visit *visits = allocate_items(transform, (uint32_t)capacity, sizeof *visits);
    if (visits == NULL) return false;
    memset(visits, 0, (size_t)capacity * sizeof *visits);
    transform->visits = visits;
    transform->visit_capacity = (uint32_t)capacity;
    for (uint32_t i = 0; i < old_capacity; i++)
        if (old[i].walk == transform->walk_number) *find_visit(transform, old[i].entity) = old[i];
    release_items(transform, old, old_capacity, sizeof *old);
    return true;
}

/* Discards the visits of the last walk. */
static void clear_visits(quern_transform *transform)
{
    transform->visit_count = 0;
    if (++transform->walk_number != 0) return;
    if (transform->visits != NULL)
        memset(transform->visits, 0, transform->visit_capacity * sizeof *transform->visits);
    transform->walk_number = 1;
}

static bool reserve_climbers(quern_transform *transform)
{
    const uint32_t capacity = transform->tops.capacity;
    if (capacity <= transform->climber_capacity) return true;
    quern__transform_climber *climbers = allocate_items(transform, capacity, sizeof *climbers);
    if (climbers == NULL) return false;
    release_items(transform, transform->climbers, transform->climber_capacity, sizeof *climbers);
    transform->climbers = climbers;
    transform->climber_capacity = capacity;
    return true;
}

/* Starts a climber at each changed node and removes duplicates from tops. Returns false if there is no memory. */
static bool start_climbers(quern_transform *transform)
{
    quern__transform_list *tops = &transform->tops;
    clear_visits(transform);
    if (!reserve_climbers(transform) || !reserve_visits(transform, tops->count)) return false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < tops->count; i++) {
        const quern_entity entity = tops->entities[i];
        quern__transform_visit *slot = find_visit(transform, entity);
        if (slot->walk == transform->walk_number) continue;
        visit(transform, slot, entity, kept);
        transform->climbers[kept] =
            (quern__transform_climber){.at = entity, .verdict = kept, .next = kept + 1};
        tops->entities[kept++] = entity;
    }
    tops->count = kept;
    return true;
}

typedef enum step { STEP_UP, STEP_MET, STEP_ARRIVED, STEP_NO_MEMORY } step;

/* Moves a climber one step up. STEP_MET: its verdict is set. STEP_ARRIVED: there is no node above it. */
static step climb(quern_transform *transform, uint32_t index)
{
    quern__transform_climber *climber = &transform->climbers[index];
    const quern_entity above = quern_entity_target(transform->owner, climber->at, transform->parent);
    if (quern_entity_is_null(above) || !quern__transform_is_node(transform, above)) return STEP_ARRIVED;
    if (!reserve_visits(transform, 1)) return STEP_NO_MEMORY;
    quern__transform_visit *slot = find_visit(transform, above);
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
static uint32_t verdict_of(quern__transform_climber *climbers, uint32_t index)
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
    quern__transform_list *tops = &transform->tops;
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
static void place_list(const quern_transform *transform, quern__transform_list *list, uint32_t first,
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

/* Places the tops; each has a parent of its own. */
static void place_tops(const quern_transform *transform, quern__transform_list *list, void *const *parents)
{
    quern_getter_get_many(transform->locals, list->entities, list->count, (const void **)list->locals);
    quern_getter_get_many_write(transform->worlds, list->entities, list->count, list->worlds);
    for (uint32_t i = 0; i < list->count; i++)
        place_list(transform, list, i, parents + i, &(uint32_t){1}, 1);
}

/* Appends the children of `count` entities of a list, beginning with `first`, and places them. */
static bool place_children(const quern_transform *transform, quern__transform_list *list, uint32_t first,
                           uint32_t count)
{
    uint32_t counts[LOOKUP_BATCH];
    const uint32_t room = list->capacity - list->count;
    const quern_getter_column columns[] = {
        {.getter = transform->locals, .values = list->locals + list->count},
        {.getter = transform->worlds, .values = list->worlds + list->count, .writes = true}};
    const uint64_t child_count =
        quern_getter_list_sources_many(columns, 2, list->entities + first, count, transform->parent,
                                       list->entities + list->count, room, counts);
    if (child_count > room) {
        if (child_count > transform->node_limit) return false;
        if (!quern__transform_list_reserve(transform, list, list->count + (uint32_t)child_count))
            return false;
        return place_children(transform, list, first, count);
    }
    place_list(transform, list, list->count, list->worlds + first, counts, count);
    list->count += (uint32_t)child_count;
    return true;
}

/* Counts entities as placed. Returns false beyond the limit. Relaxed: nothing else is published through the number,
 * and whether the total exceeds the limit does not depend on the order of the additions. */
static bool count_placed(quern_transform *transform, uint32_t placed_count)
{
    const uint64_t before =
        atomic_fetch_add_explicit(&transform->placed_count, placed_count, memory_order_relaxed);
    return before + placed_count <= transform->node_limit;
}

static void walk_part(quern__transform_part *part)
{
    quern__transform_list *list = &part->list;
    part->is_complete = false;
    place_tops(part->transform, list, part->parents);
    for (uint32_t first = 0; first < list->count;) {
        const uint32_t left = list->count - first;
        const uint32_t count = left < LOOKUP_BATCH ? left : LOOKUP_BATCH;
        if (!count_placed(part->transform, count)) return;
        if (!place_children(part->transform, list, first, count)) return;
        first += count;
    }
    part->is_complete = true;
}

static void walk_parts(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    (void)worker_index;
    quern__transform_part *parts = user_data;
    for (uint32_t i = begin; i < end; i++)
        walk_part(&parts[i]);
}

/* Divides the tops (changed nodes without a changed ancestor) into shares for jobs. The number of shares depends
 * only on the number of tops, not on the number of threads. */
static bool divide_tops(quern_transform *transform, uint32_t *out_count)
{
    const quern__transform_list *tops = &transform->tops;
    uint32_t part_count = tops->count / TOPS_PER_PART;
    if (part_count == 0) part_count = 1;
    if (part_count > QUERN__TRANSFORM_PARTS) part_count = QUERN__TRANSFORM_PARTS;
    for (uint32_t i = 0; i < part_count; i++) {
        const uint32_t begin = (uint32_t)((uint64_t)tops->count * i / part_count);
        const uint32_t end = (uint32_t)((uint64_t)tops->count * (i + 1) / part_count);
        quern__transform_part *part = &transform->parts[i];
        part->transform = transform;
        part->parents = tops->worlds + begin;
        part->list.count = 0;
        if (!quern__transform_list_reserve(transform, &part->list, end - begin)) return false;
        part->list.count = end - begin;
        memcpy(part->list.entities, tops->entities + begin, (end - begin) * sizeof *tops->entities);
    }
    *out_count = part_count;
    return true;
}

static bool walk_tops(quern_transform *transform, quern_jobs *jobs)
{
    if (transform->tops.count == 0) return true;
    uint32_t part_count;
    if (!divide_tops(transform, &part_count)) return false;
    /* Relaxed: no job has started. */
    atomic_store_explicit(&transform->placed_count, 0, memory_order_relaxed);
    if (jobs == NULL || part_count == 1 ||
        quern_jobs_parallel_for(jobs, part_count, 1, walk_parts, transform->parts) != QUERN_OK)
        walk_parts(transform->parts, 0, part_count, 0);
    for (uint32_t i = 0; i < part_count; i++)
        if (!transform->parts[i].is_complete) return false;
    /* Relaxed: all jobs have ended. */
    transform->stats.moved_count = atomic_load_explicit(&transform->placed_count, memory_order_relaxed);
    return true;
}

void quern__transform_walk(quern_context *context, const quern_view *view)
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
