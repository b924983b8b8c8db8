/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Registration, the systems, and the sweep, which computes all worlds level by level. transform_walk.c computes only
 * the worlds that have changed, and decides for each frame whether the sweep runs. */

#include "kit/transform_internal.h"

quern_result quern__transform_null(const char *function, const char *argument)
{
    return quern_error_set(QUERN_ERROR_NULL_ARGUMENT, "%s: '%s' is NULL", function, argument);
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

static const quern__transform_kind spatial = {
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

static const quern__transform_kind planar = {
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

/* ----------------------------------------------------------------------------------------- registering */

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

static quern_result make_getters(quern_transform *transform)
{
    const quern_getter_def of_locals = {.component = transform->local};
    const quern_getter_def of_worlds = {.component = transform->world};
    const quern_result result = quern_getter_create(transform->owner, &of_locals, &transform->locals);
    if (result != QUERN_OK) return result;
    return quern_getter_create(transform->owner, &of_worlds, &transform->worlds);
}

/* Registers the disabled tag. quern_world_disabled_tag returns no error code; it fails only if another component
 * has the name, or for lack of memory. */
static quern_result register_disabled_tag(quern_world *world)
{
    if (!quern_component_is_null(quern_world_disabled_tag(world))) return QUERN_OK;
    const bool is_taken = !quern_component_is_null(quern_component_find(world, "disabled"));
    return is_taken ? QUERN_ERROR_DUPLICATE_NAME : QUERN_ERROR_OUT_OF_MEMORY;
}

static quern_result init(quern_transform *transform)
{
    quern_world *world = transform->owner;
    const quern__transform_kind *kind = transform->kind;
    const quern_relation_def hierarchy = {.name = "parent", .levels = true, .ordered = true};
    quern_result result = quern_relation_register(world, &hierarchy, &transform->parent);
    if (result == QUERN_OK) result = register_disabled_tag(world);
    if (result == QUERN_OK) result = quern_component_register(world, &kind->local, &transform->local);
    if (result == QUERN_OK) result = quern_component_register(world, &kind->world, &transform->world);
    if (result == QUERN_OK) result = make_queries(transform);
    if (result == QUERN_OK) result = make_getters(transform);
    return result;
}

quern_result quern_transform_register(quern_world *world, const quern_transform_def *def,
                                      quern_transform **out_transform)
{
    static const char function[] = "quern_transform_register";
    const quern_transform_def plain = {0};
    if (world == NULL) return quern__transform_null(function, "world");
    if (out_transform == NULL) return quern__transform_null(function, "out_transform");
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
    quern__transform_walk_release(transform);
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
    if (transform == NULL) return quern__transform_null(function, "transform");
    if (schedule == NULL) return quern__transform_null(function, "schedule");
    const quern__transform_kind *kind = transform->kind;
    const quern_component disabled = quern_world_disabled_tag(transform->owner);
    const quern_system_def walk = {.name = kind->walk_name,
                                   .phase = phase,
                                   .run = quern__transform_walk,
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

/* ---------------------------------------------------------------------------------- marks and statistics */

quern_result quern_transform_mark(quern_transform *transform, quern_entity entity)
{
    static const char function[] = "quern_transform_mark";
    if (transform == NULL) return quern__transform_null(function, "transform");
    if (!quern__transform_is_node(transform, entity)) {
        /* This call fails with the entity's error, or because it lacks a local. */
        const quern_result result = quern_entity_mark_changed(transform->owner, entity, transform->local);
        if (result != QUERN_OK) return result;
        return quern_error_set(QUERN_ERROR_COMPONENT_ABSENT,
                               "%s: entity %u:%u has a local and no world: add quern_transform_world",
                               function, quern_entity_index(entity), quern_entity_generation(entity));
    }
    quern__transform_list *marks = &transform->marks;
    if (quern__transform_list_reserve(transform, marks, marks->count + 1))
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
    if (transform == NULL) return quern__transform_null(function, "transform");
    if (out_stats == NULL) return quern__transform_null(function, "out_stats");
    *out_stats = transform->stats;
    return QUERN_OK;
}
