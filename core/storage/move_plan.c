/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/move_plan.h"

#include "core/storage/required.h"

static size_t plan_bytes(const quern__move_plan *plan)
{
    size_t steps = (size_t)plan->shared_count + plan->added_count + plan->removed_count;
    return sizeof *plan + steps * sizeof plan->steps[0];
}

static void plan_release(quern__storage *storage, quern__move_plan *plan)
{
    if (plan->place_incoming != NULL) {
        *plan->place_incoming = plan->next_incoming;
        if (plan->next_incoming != NULL) plan->next_incoming->place_incoming = plan->place_incoming;
    }
    quern__copy_release(&storage->allocator, plan->carry);
    quern__release(&storage->allocator, plan, plan_bytes(plan), _Alignof(quern__move_plan));
}

/* A plan may be in the map under several keys. quern__plans_release releases it when it finds the target's key. */
static uint64_t plan_key_of_target(const quern__archetype *target)
{
    return 1ull << 32 | target->number;
}

static uint64_t plan_key_of_component(uint32_t component_index)
{
    return component_index + 1;
}

void quern__plans_release(quern__storage *storage, quern__archetype *archetype)
{
    for (uint32_t i = 0; i < archetype->plans.capacity; i++) {
        const quern__map_slot *slot = &archetype->plans.slots[i];
        if (slot->key < 1ull << 32) continue;
        plan_release(storage, (quern__move_plan *)(uintptr_t)slot->value);
    }
    quern__map_clear(&archetype->plans);
    memset(archetype->edges, 0, sizeof archetype->edges);
}

static const quern__type *hooked_type(const quern__type *type)
{
    return quern__hooks_exist(&type->hooks) ? type : NULL;
}

/* Called for each column that at least one of two archetypes has, in the order of components. The column of an
 * archetype without it is NULL. */
typedef void column_visit(void *argument, const quern__column *source, const quern__column *target);

static void visit_columns(const quern__archetype *source, const quern__archetype *target,
                          column_visit *visit, void *argument)
{
    const quern__column *s = source->columns, *s_end = s + source->column_count;
    const quern__column *t = target->columns, *t_end = t + target->column_count;
    while (s < s_end || t < t_end) {
        if (t == t_end || (s < s_end && s->component_index < t->component_index))
            visit(argument, s++, NULL);
        else if (s == s_end || t->component_index < s->component_index)
            visit(argument, NULL, t++);
        else
            visit(argument, s++, t++);
    }
}

static void count_step(void *argument, const quern__column *source, const quern__column *target)
{
    quern__move_plan *plan = argument;
    if (source != NULL && target != NULL)
        plan->shared_count++;
    else if (target != NULL)
        plan->added_count++;
    else
        plan->removed_count++;
}

/* Addresses of the next steps of each kind while a plan is filled. */
typedef struct plan_cursor {
    quern__move_step *shared, *added, *removed;
} plan_cursor;

static void fill_step(void *argument, const quern__column *source, const quern__column *target)
{
    plan_cursor *cursor = argument;
    quern__move_step **next = source && target ? &cursor->shared
                              : target         ? &cursor->added
                                               : &cursor->removed;
    const quern__column *either = source ? source : target;
    assert(either != NULL);
    *(*next)++ = (quern__move_step){
        .type = hooked_type(either->type),
        .source_offset_bytes = source ? source->offset_bytes : 0,
        .target_offset_bytes = target ? target->offset_bytes : 0,
        .size_bytes = either->size_bytes,
    };
}

/* Compiles the copy plan of a plain move plan. It contains the shared columns, and those that only the source has
 * (see copy.h). Does nothing for other plans. Returns false if out of memory. */
static bool compile_carry(quern__move_plan *plan, const quern_allocator *allocator)
{
    if (!plan->is_plain) return true;
    quern__copy copies[QUERN_MAX_ENTITY_COMPONENTS];
    const uint32_t count = plan->shared_count + plan->removed_count;
    for (uint32_t i = 0; i < count; i++) {
        const quern__move_step *step = &plan->steps[i < plan->shared_count ? i : i + plan->added_count];
        copies[i] = (quern__copy){.source_offset_bytes = step->source_offset_bytes,
                                  .target_offset_bytes = step->target_offset_bytes,
                                  .size_bytes = step->size_bytes};
    }
    plan->carry = quern__copy_compile(allocator, copies, count);
    return plan->carry != NULL;
}

/* Writes the steps of a plan, its is_plain and its added position. Precondition: its counts are final. */
static void fill_plan(quern__move_plan *plan, const quern__archetype *source)
{
    plan_cursor cursor = {.shared = plan->steps,
                          .added = plan->steps + plan->shared_count,
                          .removed = plan->steps + plan->shared_count + plan->added_count};
    visit_columns(source, plan->target, fill_step, &cursor);
    plan->is_plain = true;
    for (const quern__move_step *step = plan->steps; step < cursor.removed; step++)
        plan->is_plain &= step->type == NULL && step->size_bytes <= QUERN__COPY_MAX_BYTES;
    const quern__move_step *added = &plan->steps[plan->shared_count];
    if (plan->added_count > 0)
        plan->added = (quern__column_position){added->target_offset_bytes, added->size_bytes};
}

static void link_incoming(quern__move_plan *plan)
{
    plan->next_incoming = plan->target->incoming;
    plan->place_incoming = &plan->target->incoming;
    if (plan->next_incoming != NULL) plan->next_incoming->place_incoming = &plan->next_incoming;
    plan->target->incoming = plan;
}

static quern__move_plan *plan_create(quern__storage *storage, quern__archetype *source,
                                     quern__archetype *target)
{
    quern__move_plan counts = {.source = source, .target = target};
    visit_columns(source, target, count_step, &counts);
    quern__move_plan *plan =
        quern__allocate(&storage->allocator, plan_bytes(&counts), _Alignof(quern__move_plan));
    if (plan == NULL) return NULL;
    *plan = counts;
    fill_plan(plan, source);
    if (!compile_carry(plan, &storage->allocator)) {
        plan_release(storage, plan);
        return NULL;
    }
    link_incoming(plan);
    return plan;
}

quern_result quern__plan_between(quern__storage *storage, quern__archetype *source,
                                 quern__archetype *target, const quern__move_plan **out_plan)
{
    uint64_t key = plan_key_of_target(target);
    quern__move_plan *plan = quern__map_find_pointer(&source->plans, key);
    if (plan == NULL) {
        if (quern__map_reserve(&source->plans, &storage->allocator, source->plans.count + 1))
            plan = plan_create(storage, source, target);
        if (plan == NULL)
            return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                               "no memory for the plan to move between archetypes");
        quern__map_put(&source->plans, key, (uintptr_t)plan);
    }
    *out_plan = plan;
    return QUERN_OK;
}

/* Writes the source's component set without the component, or, if the source lacks it, with the component and what it
 * requires. Returns the set's size. */
static uint32_t set_with_or_without(const quern__components *components, const quern__archetype *source,
                                    uint16_t component_index, uint16_t *out_indices)
{
    uint32_t count = 0, i = 0;
    for (; i < source->component_count && source->component_indices[i] < component_index; i++)
        out_indices[count++] = source->component_indices[i];
    if (i < source->component_count && source->component_indices[i] == component_index)
        i++;
    else
        out_indices[count++] = component_index;
    for (; i < source->component_count; i++)
        out_indices[count++] = source->component_indices[i];
    return quern__components_complete(components, out_indices, count);
}

/* Fails with COMPONENT_REQUIRED if the source has the component and another one that requires it. */
static quern_result check_not_required(const quern__components *components, const quern__archetype *source,
                                       uint32_t component_index)
{
    if (!quern__archetype_has(source, component_index)) return QUERN_OK;
    const uint32_t requiring = quern__components_find_requiring(components, source->component_indices,
                                                                source->component_count, component_index);
    if (QUERN__LIKELY(requiring == QUERN__NO_COMPONENT)) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_COMPONENT_REQUIRED,
        "'%s' of the entity requires '%s', which therefore cannot be removed: remove '%s' first",
        quern__components_type(components, requiring)->name,
        quern__components_type(components, component_index)->name,
        quern__components_type(components, requiring)->name);
}

/* Finds or creates the target archetype and the plan, and stores the plan under its component. */
static quern_result add_plan_of_component(quern__storage *storage, quern__archetype *source,
                                          uint32_t component_index, const quern__move_plan **out_plan)
{
    uint16_t set[QUERN_MAX_COMPONENTS];
    quern__archetype *target;
    quern_result result = check_not_required(&storage->components, source, component_index);
    if (result != QUERN_OK) return result;
    const uint32_t count =
        set_with_or_without(&storage->components, source, (uint16_t)component_index, set);
    result = quern__storage_ensure_archetype(storage, set, count, &target);
    if (result == QUERN_OK) result = quern__plan_between(storage, source, target, out_plan);
    if (result != QUERN_OK) return result;
    if (!quern__map_reserve(&source->plans, &storage->allocator, source->plans.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for an edge between archetypes");
    quern__map_put(&source->plans, plan_key_of_component(component_index), (uintptr_t)*out_plan);
    return QUERN_OK;
}

quern_result quern__plan_add_or_remove(quern__storage *storage, quern__archetype *source,
                                       uint32_t component_index, const quern__move_plan **out_plan)
{
    *out_plan = quern__map_find_pointer(&source->plans, plan_key_of_component(component_index));
    return *out_plan != NULL ? QUERN_OK : add_plan_of_component(storage, source, component_index, out_plan);
}

const quern__edge *quern__plan_find_edge(const quern__storage *storage, quern__archetype *source,
                                         uint64_t key)
{
    const quern_component component = quern__edge_component(key);
    const uint32_t index = quern__components_unchecked_index(&storage->components, component);
    if (index >= storage->components.list.count) return NULL;
    if (quern__archetype_has(source, index) == (key == quern__edge_key(component, true))) return NULL;
    const quern__move_plan *plan = quern__map_find_pointer(&source->plans, plan_key_of_component(index));
    if (plan == NULL || !plan->is_plain || !source->is_plain) return NULL;
    if (quern__plan_adds_required(plan)) return NULL; /* an edge has one added value */
    quern__edge *edge = quern__archetype_edge(source, key);
    *edge = quern__plan_edge(plan, source->has_fast_leave ? key : key | QUERN__EDGE_NEEDS_ROOM);
    return edge;
}
