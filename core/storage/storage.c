/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/storage.h"

#include "core/base/containers.h"
#include "core/storage/type_internal.h"

/* ------------------------------------------------------------------------------------- life cycle */

quern_result quern__storage_init(quern__storage *storage, const quern_allocator *allocator,
                                 uint32_t first_handle_high)
{
    *storage =
        (quern__storage){.allocator = *allocator,
                         .components = {.first_bits = quern__handle_bits(first_handle_high >> 24, 0)},
                         .clock = 1,
                         .disabled_index = QUERN__NO_COMPONENT};
    quern__entities_init(&storage->entities, first_handle_high);
    quern__archetype *empty;
    return quern__storage_ensure_archetype(storage, NULL, 0, &empty);
}

void quern__storage_release(quern__storage *storage)
{
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        quern__archetype_destroy_values(storage->archetypes.items[i]);
        quern__plans_release(storage, storage->archetypes.items[i]);
    }
    for (uint32_t i = 0; i < storage->archetypes.count; i++)
        quern__archetype_release(storage->archetypes.items[i], &storage->allocator);
    quern__array_release(&storage->allocator, &storage->archetypes);
    quern__array_release(&storage->allocator, &storage->numbered);
    quern__array_release(&storage->allocator, &storage->free_numbers);
    quern__map_release(&storage->archetype_by_set, &storage->allocator);
    quern__slabs_release(&storage->slabs, &storage->allocator);
    quern__entities_release(&storage->entities, &storage->allocator);
    quern__components_release(&storage->components, &storage->allocator);
}

/* ------------------------------------------------------------------------------------- archetypes */

/* Hashes a component set. The result is never 0, because 0 is no valid map key. */
static uint64_t hash_set(const uint16_t *component_indices, uint32_t count)
{
    return quern__hash_bytes(count, component_indices, count * sizeof *component_indices) | 1;
}

static bool same_set(const quern__archetype *archetype, const uint16_t *component_indices, uint32_t count)
{
    return archetype->component_count == count &&
           (count == 0 || memcmp(archetype->component_indices, component_indices,
                                 count * sizeof *component_indices) == 0);
}

/* Checks that values of edges are in the set with their relation only: prefabs and waiting commands may be older than the
 * relation. */
static quern_result check_edge_values(const quern__components *components, const uint16_t *set,
                                      uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t owner = components->list.items[set[i]]->edge_owner;
        bool has_owner = owner == 0;
        for (uint32_t k = i + 1; k < count && !has_owner; k++) /* the relation was registered later */
            has_owner = set[k] == owner - 1;
        if (!has_owner) return quern__components_fail_edge_value(components, set[i]);
    }
    return QUERN_OK;
}

static quern_result check_new_archetype(const quern__storage *storage, const uint16_t *set,
                                        uint32_t component_count)
{
    if (component_count > QUERN_MAX_ENTITY_COMPONENTS)
        return quern__fail(
            QUERN_ERROR_TOO_MANY_COMPONENTS,
            "the entity would have %u components; the limit is %d (QUERN_MAX_ENTITY_COMPONENTS)",
            component_count, QUERN_MAX_ENTITY_COMPONENTS);
    if (storage->archetypes.count == QUERN_MAX_ARCHETYPES)
        return quern__fail(QUERN_ERROR_LIMIT,
                           "the world has %d archetypes already (QUERN_MAX_ARCHETYPES): remove empty ones "
                           "(quern_world_remove_empty_archetypes)",
                           QUERN_MAX_ARCHETYPES);
    if (!storage->components.has_requirements) return QUERN_OK;
    return check_edge_values(&storage->components, set, component_count);
}

static bool reserve_positions(quern__position_table *table, const quern_allocator *allocator,
                              uint32_t count, uint32_t number_count)
{
    if (number_count <= table->capacity) return true;
    return quern__array_grow(allocator, &table->positions, &table->capacity, count, number_count,
                             sizeof *table->positions);
}

/* Reserves room in every list that will contain the new archetype, so that registering and appending it cannot
 * fail. */
static bool reserve_links(quern__storage *storage, const uint16_t *component_indices, uint32_t count)
{
    const quern_allocator *allocator = &storage->allocator;
    for (uint32_t i = 0; i < count; i++) {
        quern__component *component = storage->components.list.items[component_indices[i]];
        if (!quern__array_reserve(allocator, &component->archetypes, component->archetypes.count + 1))
            return false;
    }
    const uint32_t numbers = storage->numbered.count + (storage->free_numbers.count == 0);
    for (quern__position_table *table = storage->first_position_table; table != NULL; table = table->next)
        if (!reserve_positions(table, allocator, storage->numbered.count, numbers)) return false;
    return quern__array_reserve(allocator, &storage->archetypes, storage->archetypes.count + 1) &&
           quern__array_reserve(allocator, &storage->slabs.holders,
                                QUERN__BITSET_WORDS(storage->archetypes.count + 1)) &&
           quern__array_reserve(allocator, &storage->numbered, numbers) &&
           quern__array_reserve(allocator, &storage->free_numbers, numbers) &&
           quern__map_reserve(&storage->archetype_by_set, allocator, storage->archetypes.count + 1);
}

void quern__storage_append_archetype(quern__storage *storage, quern__archetype *archetype)
{
    archetype->index = storage->archetypes.count;
    storage->archetypes.items[storage->archetypes.count++] = archetype;
    while (storage->slabs.holders.count <= archetype->index / 64)
        storage->slabs.holders.items[storage->slabs.holders.count++] = 0;
    if (archetype->held_count > 0)
        quern__bitset_add(storage->slabs.holders.items, archetype->index);
    else
        quern__bitset_remove(storage->slabs.holders.items, archetype->index);
    storage->archetypes_version++;
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        quern__component *component = storage->components.list.items[archetype->component_indices[i]];
        component->archetypes.items[component->archetypes.count++] = archetype->index;
    }
}

/* Counts moves out of the archetype's chunks if refs to values of some of its components exist. */
static void update_move_counts(quern__storage *storage, quern__archetype *archetype)
{
    archetype->move_counts = NULL;
    for (uint32_t i = 0; i < archetype->component_count; i++)
        if (storage->components.list.items[archetype->component_indices[i]]->ref_count > 0)
            archetype->move_counts = &storage->slabs.move_counts;
    quern__archetype_update_tracking(archetype);
}

void quern__storage_register_archetype(quern__storage *storage, quern__archetype *archetype)
{
    archetype->number = storage->free_numbers.count > 0
                            ? storage->free_numbers.items[--storage->free_numbers.count]
                            : storage->numbered.count++;
    storage->numbered.items[archetype->number] = archetype;
    for (quern__position_table *table = storage->first_position_table; table != NULL; table = table->next)
        table->positions[archetype->number] =
            quern__archetype_column_position(archetype, table->component_index);
    update_move_counts(storage, archetype);
    uint64_t *first = quern__map_find(&storage->archetype_by_set, archetype->set_hash);
    if (first == NULL) {
        quern__map_put(&storage->archetype_by_set, archetype->set_hash, (uintptr_t)archetype);
    } else {
        archetype->next_same_hash = (quern__archetype *)(uintptr_t)*first;
        *first = (uintptr_t)archetype;
    }
}

static void forget_set(quern__storage *storage, const quern__archetype *archetype)
{
    uint64_t *first = quern__map_find(&storage->archetype_by_set, archetype->set_hash);
    assert(first != NULL);
    quern__archetype *other = (quern__archetype *)(uintptr_t)*first;
    if (other == archetype) {
        *first = (uintptr_t)archetype->next_same_hash;
        if (*first == 0) quern__map_remove(&storage->archetype_by_set, archetype->set_hash);
        return;
    }
    while (other->next_same_hash != archetype)
        other = other->next_same_hash;
    other->next_same_hash = archetype->next_same_hash;
}

void quern__storage_remove_archetype(quern__storage *storage, quern__archetype *archetype)
{
    forget_set(storage, archetype);
    storage->numbered.items[archetype->number] = NULL;
    for (quern__position_table *table = storage->first_position_table; table != NULL; table = table->next)
        table->positions[archetype->number] = (quern__column_position){0};
    storage->free_numbers.items[storage->free_numbers.count++] = archetype->number;
    storage->archetypes_version++;
    for (quern__archetype_listener *listener = storage->first_archetype_listener; listener != NULL;
         listener = listener->next)
        if (listener->removed != NULL) listener->removed(storage, archetype);
    archetype->asked_count = 0;
    quern__archetype_release_spare_chunks(archetype, &storage->slabs, &storage->allocator);
    quern__row_listeners_release(archetype, &storage->allocator);
    quern__archetype_release(archetype, &storage->allocator);
}

/* Warns, once until the count has fallen, that the world approaches QUERN_MAX_ARCHETYPES. */
static void warn_if_crowded(quern__storage *storage)
{
    if (storage->archetypes.count < QUERN__CROWDED_ARCHETYPES || storage->is_crowded) return;
    storage->is_crowded = true;
    quern__log(
        QUERN_LOG_WARNING,
        "world %u has %u archetypes (sets of components that entities have or had); the limit is %d "
        "(QUERN_MAX_ARCHETYPES): run frames, because their sync points remove those without entities, or "
        "call quern_world_remove_empty_archetypes",
        storage->entities.first_handle_high >> 24, storage->archetypes.count, QUERN_MAX_ARCHETYPES);
}

quern_result quern__storage_create_archetype(quern__storage *storage, const uint16_t *component_indices,
                                             uint32_t count, uint32_t layout_index,
                                             quern__archetype **out_archetype)
{
    quern_result result =
        quern__archetype_create(&storage->allocator, &storage->components, component_indices, count,
                                layout_index, &storage->clock, out_archetype);
    if (result != QUERN_OK) return result;
    (*out_archetype)->set_hash = hash_set(component_indices, count);
    (*out_archetype)->identity = ++storage->last_identity;
    for (quern__archetype_listener *listener = storage->first_archetype_listener;
         listener != NULL && result == QUERN_OK; listener = listener->next)
        if (listener->created != NULL) result = listener->created(storage, *out_archetype);
    if (result != QUERN_OK) {
        quern__row_listeners_release(*out_archetype, &storage->allocator);
        quern__archetype_release(*out_archetype, &storage->allocator);
        *out_archetype = NULL; /* loading unreserves the archetypes that it has found or created */
    }
    return result;
}

bool quern__storage_reserve_archetypes(quern__storage *storage, uint32_t count)
{
    const quern_allocator *allocator = &storage->allocator;
    const uint32_t archetypes = storage->archetypes.count + count,
                   numbers = storage->numbered.count + count;
    for (uint32_t i = 0; i < storage->components.list.count; i++) {
        quern__component *component = storage->components.list.items[i];
        if (!quern__array_reserve(allocator, &component->archetypes, component->archetypes.count + count))
            return false;
    }
    for (quern__position_table *table = storage->first_position_table; table != NULL; table = table->next)
        if (!reserve_positions(table, allocator, storage->numbered.count, numbers)) return false;
    return quern__array_reserve(allocator, &storage->archetypes, archetypes) &&
           quern__array_reserve(allocator, &storage->slabs.holders, QUERN__BITSET_WORDS(archetypes)) &&
           quern__array_reserve(allocator, &storage->numbered, numbers) &&
           quern__array_reserve(allocator, &storage->free_numbers, numbers) &&
           quern__map_reserve(&storage->archetype_by_set, allocator, archetypes);
}

quern__archetype *quern__storage_find_archetype(const quern__storage *storage,
                                                const uint16_t *component_indices, uint32_t count)
{
    quern__archetype *archetype =
        quern__map_find_pointer(&storage->archetype_by_set, hash_set(component_indices, count));
    while (archetype != NULL && !same_set(archetype, component_indices, count))
        archetype = archetype->next_same_hash;
    return archetype;
}

quern_result quern__storage_ensure_archetype_with_layout(quern__storage *storage,
                                                         const uint16_t *component_indices, uint32_t count,
                                                         uint32_t layout_index,
                                                         quern__archetype **out_archetype)
{
    quern__archetype *archetype = quern__storage_find_archetype(storage, component_indices, count);
    if (archetype == NULL) {
        quern_result result = check_new_archetype(storage, component_indices, count);
        if (result != QUERN_OK) return result;
        if (!reserve_links(storage, component_indices, count))
            return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for archetype number %u",
                               storage->archetypes.count);
        assert(layout_index >= storage->archetypes.count);
        result =
            quern__storage_create_archetype(storage, component_indices, count, layout_index, out_archetype);
        if (result != QUERN_OK) return result;
        quern__storage_register_archetype(storage, *out_archetype);
        quern__storage_append_archetype(storage, *out_archetype);
        warn_if_crowded(storage);
        return QUERN_OK;
    }
    *out_archetype = archetype;
    return QUERN_OK;
}

quern_result quern__storage_ensure_archetype(quern__storage *storage, const uint16_t *component_indices,
                                             uint32_t count, quern__archetype **out_archetype)
{
    return quern__storage_ensure_archetype_with_layout(storage, component_indices, count,
                                                       storage->archetypes.count, out_archetype);
}

/* --------------------------------------------------------------------------------- position tables */

quern_result quern__storage_add_position_table(quern__storage *storage, uint32_t component_index,
                                               quern__position_table *table)
{
    *table =
        (quern__position_table){.component_index = component_index, .next = storage->first_position_table};
    if (!reserve_positions(table, &storage->allocator, 0, storage->numbered.count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "no memory for the places of a component in %u archetypes",
                           storage->numbered.count);
    for (uint32_t i = 0; i < storage->numbered.count; i++)
        table->positions[i] =
            storage->numbered.items[i] != NULL
                ? quern__archetype_column_position(storage->numbered.items[i], component_index)
                : (quern__column_position){0};
    if (table->next != NULL) table->next->previous = table;
    storage->first_position_table = table;
    return QUERN_OK;
}

void quern__storage_remove_position_table(quern__storage *storage, quern__position_table *table)
{
    quern__release(&storage->allocator, table->positions, table->capacity * sizeof *table->positions,
                   QUERN__ARRAY_ALIGNMENT_BYTES);
    if (table->next != NULL) table->next->previous = table->previous;
    if (table->previous != NULL) table->previous->next = table->next;
    if (storage->first_position_table == table) storage->first_position_table = table->next;
}

/* ------------------------------------------------------------------------------------- move counts */

static void update_move_counts_of(quern__storage *storage, const quern__component *component)
{
    for (uint32_t i = 0; i < component->archetypes.count; i++)
        update_move_counts(storage, storage->archetypes.items[component->archetypes.items[i]]);
}

quern_result quern__storage_start_move_counts(quern__storage *storage, uint32_t component_index,
                                              quern_getter *reader)
{
    quern__component *component = storage->components.list.items[component_index];
    const uint32_t chunk_count = storage->slabs.list.count * QUERN__SLAB_CHUNKS;
    if (!quern__move_counts_add_reader(&storage->slabs.move_counts, &storage->allocator, chunk_count,
                                       reader))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the move counts of %u chunks",
                           chunk_count);
    if (component->ref_count++ == 0) update_move_counts_of(storage, component);
    return QUERN_OK;
}

void quern__storage_stop_move_counts(quern__storage *storage, uint32_t component_index,
                                     quern_getter *reader)
{
    quern__component *component = storage->components.list.items[component_index];
    if (--component->ref_count == 0) update_move_counts_of(storage, component);
    quern__move_counts_remove_reader(&storage->slabs.move_counts, &storage->allocator, reader);
}

/* --------------------------------------------------------------------------------- change versions */

quern_result quern__storage_add_change_filter(quern__storage *storage, uint32_t component_index)
{
    quern__component *component = storage->components.list.items[component_index];
    for (uint32_t i = 0; i < component->archetypes.count; i++) {
        quern__archetype *archetype = storage->archetypes.items[component->archetypes.items[i]];
        quern_result result =
            quern__archetype_start_versions(archetype, &storage->allocator, &storage->components);
        if (result != QUERN_OK) return result;
    }
    component->filter_count++;
    return QUERN_OK;
}

/* Archetypes that keep versions continue to do so. */
void quern__storage_remove_change_filter(quern__storage *storage, uint32_t component_index)
{
    storage->components.list.items[component_index]->filter_count--;
}

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
        .source_offset_bytes = source ? source->run_offset_bytes : 0,
        .target_offset_bytes = target ? target->run_offset_bytes : 0,
        .size_bytes = either->size_bytes,
    };
}

/* Lists what the copy plan of a plain move plan copies: the shared columns, and those that only the source has (see
 * archetype.h). Returns their number. */
static uint32_t list_carried(const quern__move_plan *plan, quern__copy *out_copies)
{
    const uint32_t count = plan->shared_count + plan->removed_count;
    for (uint32_t i = 0; i < count; i++) {
        const quern__move_step *step = &plan->steps[i < plan->shared_count ? i : i + plan->added_count];
        out_copies[i] = (quern__copy){.source_offset_bytes = step->source_offset_bytes,
                                      .target_offset_bytes = step->target_offset_bytes,
                                      .size_bytes = step->size_bytes};
    }
    return count;
}

/* Writes the steps of a plan, its is_plain and its added position. Precondition: its counts are final. */
static void fill_plan(quern__move_plan *plan)
{
    plan_cursor cursor = {.shared = plan->steps,
                          .added = plan->steps + plan->shared_count,
                          .removed = plan->steps + plan->shared_count + plan->added_count};
    visit_columns(plan->source, plan->target, fill_step, &cursor);
    plan->is_plain = true;
    for (const quern__move_step *step = plan->steps; step < cursor.removed; step++)
        plan->is_plain &= step->type == NULL && step->size_bytes <= QUERN__COPY_MAX_BYTES;
    const quern__move_step *added = &plan->steps[plan->shared_count];
    if (plan->added_count > 0)
        plan->added = quern__column_position_make(plan->target->shape.row_mask, added->target_offset_bytes,
                                                  added->size_bytes);
}

/* Writes a plan again after the offsets in the runs of its source or target have changed. */
static void update_plan(quern__move_plan *plan)
{
    quern__copy copies[QUERN_MAX_ENTITY_COMPONENTS];
    fill_plan(plan);
    if (plan->carry != NULL) quern__copy_rewrite(plan->carry, copies, list_carried(plan, copies));
    for (uint32_t i = 0; i < QUERN__EDGE_COUNT; i++)
        if (plan->source->edges[i].target == plan->target) plan->source->edges[i].added = plan->added;
}

void quern__storage_set_shift(quern__storage *storage, quern__archetype *archetype, uint32_t shift)
{
    quern__archetype_set_shift(archetype, shift);
    for (uint32_t i = 0; i < archetype->plans.capacity; i++)
        if (archetype->plans.slots[i].key >= 1ull << 32)
            update_plan((quern__move_plan *)(uintptr_t)archetype->plans.slots[i].value);
    for (quern__move_plan *plan = archetype->incoming; plan != NULL; plan = plan->next_incoming)
        update_plan(plan);
    /* a new archetype has no number before it is registered, and then its positions are entered */
    const bool is_registered = archetype->number < storage->numbered.count &&
                               storage->numbered.items[archetype->number] == archetype;
    quern__position_table *table = is_registered ? storage->first_position_table : NULL;
    for (; table != NULL; table = table->next)
        table->positions[archetype->number] =
            quern__archetype_column_position(archetype, table->component_index);
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
    fill_plan(plan);
    if (plan->is_plain) {
        quern__copy copies[QUERN_MAX_ENTITY_COMPONENTS];
        const uint32_t count = list_carried(plan, copies);
        plan->carry = quern__copy_compile(&storage->allocator, copies, count);
    }
    if (plan->is_plain && plan->carry == NULL) {
        plan_release(storage, plan);
        return NULL;
    }
    plan->next_incoming = plan->target->incoming;
    plan->place_incoming = &plan->target->incoming;
    if (plan->next_incoming != NULL) plan->next_incoming->place_incoming = &plan->next_incoming;
    plan->target->incoming = plan;
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
    if (quern__components_is_edge_value(&storage->components, component_index) &&
        !quern__archetype_has(source, component_index))
        return quern__components_fail_edge_value(&storage->components, component_index);
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
    const bool is_fast = source->has_fast_leave && !plan->target->has_hooks;
    *edge = quern__plan_edge(plan, is_fast ? key : key | QUERN__EDGE_NEEDS_ROOM);
    return edge;
}
