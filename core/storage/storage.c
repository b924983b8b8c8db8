/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/storage.h"

#include "core/storage/storage_move.h"

/* ------------------------------------------------------------------------------------- life cycle */

quern_result quern__storage_init(quern__storage *storage, const quern_allocator *allocator,
                                 uint32_t first_stamp)
{
    *storage = (quern__storage){.allocator = *allocator,
                                .components = {.first_bits = quern__handle_bits(first_stamp >> 24, 0)},
                                .clock = 1};
    quern__entities_init(&storage->entities, first_stamp);
    quern__archetype *empty;
    return quern__storage_archetype(storage, NULL, 0, &empty);
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

/* Plans are known under several keys; each is released under its target's. */
static uint64_t plan_key_of_target(const quern__archetype *target)
{
    return 1ull << 32 | target->number;
}

static uint64_t plan_key_of_component(uint32_t component_index)
{
    return component_index + 1;
}

void quern__storage_forget_plans(quern__storage *storage, quern__archetype *archetype)
{
    for (uint32_t i = 0; i < archetype->plans.capacity; i++) {
        const quern__map_slot *slot = &archetype->plans.slots[i];
        if (slot->key < 1ull << 32) continue;
        plan_release(storage, (quern__move_plan *)(uintptr_t)slot->value);
    }
    quern__map_clear(&archetype->plans);
    archetype->latest_edge = (quern__edge){0};
}

void quern__storage_release(quern__storage *storage)
{
    for (uint32_t i = 0; i < storage->archetypes.count; i++) {
        quern__archetype_destroy_values(storage->archetypes.items[i]);
        quern__storage_forget_plans(storage, storage->archetypes.items[i]);
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

/* Never 0, which a map cannot hold as a key. */
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

static quern_result check_new_archetype(const quern__storage *storage, uint32_t component_count)
{
    if (component_count > QUERN_MAX_ENTITY_COMPONENTS)
        return quern__fail(
            QUERN_ERROR_TOO_MANY_COMPONENTS,
            "the entity would have %u components; the limit is %d (QUERN_MAX_ENTITY_COMPONENTS)",
            component_count, QUERN_MAX_ENTITY_COMPONENTS);
    if (storage->archetypes.count == QUERN_MAX_ARCHETYPES)
        return quern__fail(QUERN_ERROR_LIMIT, "the world has %d archetypes already (QUERN_MAX_ARCHETYPES)",
                           QUERN_MAX_ARCHETYPES);
    return QUERN_OK;
}

/* Room in every list that will name the new archetype, so that linking it cannot fail half way. */
static bool reserve_links(quern__storage *storage, const uint16_t *component_indices, uint32_t count)
{
    const quern_allocator *allocator = &storage->allocator;
    for (uint32_t i = 0; i < count; i++) {
        quern__component *component = storage->components.list.items[component_indices[i]];
        if (!quern__array_reserve(allocator, &component->archetypes, component->archetypes.count + 1))
            return false;
    }
    const uint32_t numbers = storage->numbered.count + (storage->free_numbers.count == 0);
    return quern__array_reserve(allocator, &storage->archetypes, storage->archetypes.count + 1) &&
           quern__array_reserve(allocator, &storage->numbered, numbers) &&
           quern__array_reserve(allocator, &storage->free_numbers, numbers) &&
           quern__map_reserve(&storage->archetype_by_set, allocator, storage->archetypes.count + 1);
}

void quern__storage_link(quern__storage *storage, quern__archetype *archetype)
{
    archetype->index = storage->archetypes.count;
    storage->archetypes.items[storage->archetypes.count++] = archetype;
    storage->archetypes_version++;
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        quern__component *component = storage->components.list.items[archetype->component_indices[i]];
        component->archetypes.items[component->archetypes.count++] = archetype->index;
    }
}

/* Gives a new archetype a number, and lets it be found by its set. */
static void enter(quern__storage *storage, quern__archetype *archetype)
{
    archetype->number = storage->free_numbers.count > 0
                            ? storage->free_numbers.items[--storage->free_numbers.count]
                            : storage->numbered.count++;
    storage->numbered.items[archetype->number] = archetype;
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

void quern__storage_unlink(quern__storage *storage, quern__archetype *archetype)
{
    forget_set(storage, archetype);
    storage->numbered.items[archetype->number] = NULL;
    storage->free_numbers.items[storage->free_numbers.count++] = archetype->number;
    storage->archetypes_version++;
    quern__archetype_drop_spare(archetype, &storage->slabs, &storage->allocator);
    quern__archetype_release(archetype, &storage->allocator);
}

/* While there is time to do something about it. */
static void warn_if_crowded(quern__storage *storage)
{
    if (storage->archetypes.count < QUERN__CROWDED_ARCHETYPES || storage->is_crowded) return;
    storage->is_crowded = true;
    quern__log(QUERN_LOG_WARNING,
               "world %u has %u archetypes, sets of components that entities have or had, of at most %d "
               "(QUERN_MAX_ARCHETYPES); those without entities are taken out by "
               "quern_world_remove_empty_archetypes, or at "
               "sync points with "
               "empty_archetype_checks_per_sync of quern_world_def",
               storage->entities.first_stamp >> 24, storage->archetypes.count, QUERN_MAX_ARCHETYPES);
}

static quern_result archetype_add(quern__storage *storage, const uint16_t *component_indices,
                                  uint32_t count, uint64_t set_hash, quern__archetype **out_archetype)
{
    quern_result result = check_new_archetype(storage, count);
    if (result != QUERN_OK) return result;
    if (!reserve_links(storage, component_indices, count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for archetype number %u",
                           storage->archetypes.count);
    result = quern__archetype_create(&storage->allocator, &storage->components, component_indices, count,
                                     storage->archetypes.count, &storage->clock, out_archetype);
    if (result != QUERN_OK) return result;
    (*out_archetype)->set_hash = set_hash;
    enter(storage, *out_archetype);
    quern__storage_link(storage, *out_archetype);
    warn_if_crowded(storage);
    return QUERN_OK;
}

quern_result quern__storage_archetype(quern__storage *storage, const uint16_t *component_indices,
                                      uint32_t count, quern__archetype **out_archetype)
{
    uint64_t set_hash = hash_set(component_indices, count);
    quern__archetype *archetype = quern__map_find_pointer(&storage->archetype_by_set, set_hash);
    while (archetype != NULL && !same_set(archetype, component_indices, count))
        archetype = archetype->next_same_hash;
    if (archetype == NULL) return archetype_add(storage, component_indices, count, set_hash, out_archetype);
    *out_archetype = archetype;
    return QUERN_OK;
}

/* --------------------------------------------------------------------------------- change versions */

quern_result quern__storage_filter(quern__storage *storage, uint32_t component_index)
{
    quern__component *component = storage->components.list.items[component_index];
    for (uint32_t i = 0; i < component->archetypes.count; i++) {
        quern__archetype *archetype = storage->archetypes.items[component->archetypes.items[i]];
        quern_result result = quern__archetype_track(archetype, &storage->allocator);
        if (result != QUERN_OK) return result;
    }
    component->filter_count++;
    return QUERN_OK;
}

/* Archetypes that keep versions go on doing so. */
void quern__storage_unfilter(quern__storage *storage, uint32_t component_index)
{
    storage->components.list.items[component_index]->filter_count--;
}

void quern__storage_note_write(const quern__archetype *archetype, uintptr_t location,
                               uint32_t component_index)
{
    uint32_t column = quern__archetype_column(archetype, component_index);
    if (column < QUERN__COLUMN_TAG)
        quern__versions_note_column(&archetype->versions, quern__chunk_of(location)->index, column);
}

/* ------------------------------------------------------------------------------------------ plans */

static const quern__type *hooked_type(const quern__type *type)
{
    return quern__hooks_any(&type->hooks) ? type : NULL;
}

/* Calls for each column of either archetype, in the order of components, with NULL for the side that lacks
 * it. */
typedef void plan_visit(void *argument, const quern__column *source, const quern__column *target);

static void walk_columns(const quern__archetype *source, const quern__archetype *target, plan_visit *visit,
                         void *argument)
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

/* Where the next step of each kind goes while a plan is filled. */
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

/* The program for the shared steps, unless hooks or large values are among the plan's. */
static bool compile_carry(quern__move_plan *plan, const quern_allocator *allocator)
{
    if (!plan->is_plain) return true;
    quern__copy copies[QUERN_MAX_ENTITY_COMPONENTS];
    for (uint32_t i = 0; i < plan->shared_count; i++) {
        const quern__move_step *step = &plan->steps[i];
        copies[i] = (quern__copy){.source_offset_bytes = step->source_offset_bytes,
                                  .target_offset_bytes = step->target_offset_bytes,
                                  .size_bytes = step->size_bytes};
    }
    plan->carry = quern__copy_compile(allocator, copies, plan->shared_count);
    return plan->carry != NULL;
}

/* Writes the steps of a plan whose counts stand. */
static void fill_plan(quern__move_plan *plan, const quern__archetype *source)
{
    plan_cursor cursor = {.shared = plan->steps,
                          .added = plan->steps + plan->shared_count,
                          .removed = plan->steps + plan->shared_count + plan->added_count};
    walk_columns(source, plan->target, fill_step, &cursor);
    plan->is_plain = true;
    for (const quern__move_step *step = plan->steps; step < cursor.removed; step++)
        plan->is_plain &= step->type == NULL && step->size_bytes <= QUERN__COPY_MAX_BYTES;
    const quern__move_step *added = &plan->steps[plan->shared_count];
    if (plan->added_count > 0) plan->added = (quern__place){added->target_offset_bytes, added->size_bytes};
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
    walk_columns(source, target, count_step, &counts);
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

quern_result quern__storage_plan(quern__storage *storage, quern__archetype *source,
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

/* The source's set with one component put in or taken out. Returns its size. */
static uint32_t toggled_set(const quern__archetype *source, uint16_t component_index, uint16_t *out_indices)
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
    return count;
}

/* Looks the edge up, or makes it, and the archetype behind it. */
static quern_result find_edge(quern__storage *storage, quern__archetype *source, uint32_t component_index,
                              const quern__move_plan **out_plan)
{
    uint64_t key = plan_key_of_component(component_index);
    *out_plan = quern__map_find_pointer(&source->plans, key);
    if (*out_plan != NULL) return QUERN_OK;

    uint16_t set[QUERN_MAX_ENTITY_COMPONENTS + 1];
    uint32_t count = toggled_set(source, (uint16_t)component_index, set);
    quern__archetype *target;
    quern_result result = quern__storage_archetype(storage, set, count, &target);
    if (result == QUERN_OK) result = quern__storage_plan(storage, source, target, out_plan);
    if (result != QUERN_OK) return result;
    if (!quern__map_reserve(&source->plans, &storage->allocator, source->plans.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for an edge between archetypes");
    quern__map_put(&source->plans, key, (uintptr_t)*out_plan);
    return QUERN_OK;
}

quern_result quern__storage_toggle(quern__storage *storage, quern__archetype *source,
                                   uint32_t component_index, const quern__move_plan **out_plan)
{
    bool adds = !quern__archetype_has(source, component_index);
    quern_component component = quern__component_handle(&storage->components, component_index);
    uint64_t key = quern__edge_key(component.bits, adds);
    quern_result result = QUERN_OK;
    if (source->latest_edge.key == key)
        *out_plan = source->latest_edge.plan;
    else
        result = find_edge(storage, source, component_index, out_plan);
    if (result == QUERN_OK) source->latest_edge = (quern__edge){.key = key, .plan = *out_plan};
    return result;
}

/* ------------------------------------------------------------------------------------------- rows */

static void place(quern__storage *storage, quern_entity entity, const quern__archetype *archetype,
                  uintptr_t location)
{
    quern__archetype_entities(archetype, quern__chunk_of(location))[quern__location_row(location)] = entity;
    quern__record *record = quern__entities_record(&storage->entities, quern_entity_index(entity));
    record->location = location;
    record->archetype_number = archetype->number;
}

uintptr_t quern__storage_insert(quern__storage *storage, quern_entity entity, quern__archetype *archetype)
{
    uintptr_t location = quern__archetype_append(archetype);
    place(storage, entity, archetype, location);
    storage->structure_version++;
    return location;
}

void quern__storage_relocate_hooked(const quern__archetype *archetype, quern__row target, quern__row source)
{
    for (uint32_t i = 0; i < archetype->column_count; i++) {
        const quern__column *column = &archetype->columns[i];
        quern__type_move(column->type,
                         target.chunk + column->offset_bytes + target.index * column->size_bytes,
                         source.chunk + column->offset_bytes + source.index * column->size_bytes, 1);
    }
}

/* Lets an archetype without rows keep a chunk, and takes it from the one that had the privilege longest. */
static void note_spare(quern__storage *storage, quern__archetype *archetype)
{
    if (archetype->is_spare) return;
    quern__archetype **place = &storage->spares[storage->next_spare++ % QUERN__SPARE_ARCHETYPES];
    if (*place != NULL) {
        (*place)->is_spare = false;
        if ((*place)->chunk_count == 0 && (*place)->reserved_count == 0)
            quern__archetype_drop_spare(*place, &storage->slabs, &storage->allocator);
    }
    archetype->is_spare = true;
    *place = archetype;
}

void quern__storage_unreserve_rows(quern__storage *storage, quern__archetype *archetype)
{
    quern__archetype_unreserve(archetype, &storage->slabs, &storage->allocator);
    if (archetype->chunk_count == 0) note_spare(storage, archetype);
}

quern_result quern__storage_trim_rows(quern__storage *storage, quern__archetype *archetype)
{
    quern__archetype_trim(archetype, &storage->slabs, &storage->allocator);
    if (archetype->chunk_count == 0) note_spare(storage, archetype);
    return QUERN_OK;
}

static void move_slowly(quern__storage *storage, quern__archetype *source, quern_entity entity,
                        const quern__record *record, const quern__move_plan *plan, uintptr_t to)
{
    uintptr_t from = record->location;
    quern__storage_carry(plan, to, from, 1);
    place(storage, entity, plan->target, to);
    storage->structure_version++;
    quern__storage_close_gap(storage, source, quern__row_of(from), false);
}

void quern__storage_move(quern__storage *storage, quern_entity entity, quern__record *record,
                         const quern__move_plan *plan, uintptr_t to)
{
    quern__archetype *source = quern__storage_archetype_of(storage, record);
    if (plan->is_plain)
        quern__storage_move_plain(storage, source, entity, record, plan, quern__row_of(to));
    else
        move_slowly(storage, source, entity, record, plan, to);
}

static void erase_slowly(quern__storage *storage, quern__archetype *archetype, quern_entity entity,
                         const quern__record *record)
{
    uintptr_t gap = record->location;
    quern__storage_destroy_values(archetype, gap, 1);
    quern__entities_give(&storage->entities, quern_entity_index(entity));
    storage->structure_version++;
    quern__storage_close_gap(storage, archetype, quern__row_of(gap), false);
}

void quern__storage_erase(quern__storage *storage, quern_entity entity)
{
    quern__record *record = quern__entities_record(&storage->entities, quern_entity_index(entity));
    quern__archetype *archetype = quern__storage_archetype_of(storage, record);
    if (archetype->is_plain && !quern__record_ends_stretch(record))
        quern__storage_erase_plain(storage, archetype, entity, record);
    else
        erase_slowly(storage, archetype, entity, record);
}

/* ------------------------------------------------------------------------------------------- bulk */

void quern__storage_insert_run(quern__storage *storage, quern__archetype *archetype, uintptr_t first,
                               uint32_t count)
{
    quern_entity *handles =
        quern__archetype_entities(archetype, quern__chunk_of(first)) + quern__location_row(first);
    for (uint32_t i = 0; i < count; i++) {
        handles[i] = quern__entities_take(&storage->entities);
        quern__record *record = quern__entities_record(&storage->entities, quern_entity_index(handles[i]));
        record->location = first + i;
        record->archetype_number = archetype->number;
    }
    storage->structure_version++;
}

/* Rows of one chunk to rows of one chunk. */
static void move_run(const quern__storage *storage, const quern__archetype *source,
                     const quern__move_plan *plan, uintptr_t from, uintptr_t to, uint32_t count)
{
    quern__storage_carry(plan, to, from, count);
    const quern_entity *handles =
        quern__archetype_entities(source, quern__chunk_of(from)) + quern__location_row(from);
    quern__storage_place(storage, plan->target, to, handles, count);
}

static void copy_value(const quern__move_step *step, void *target, const void *value)
{
    if (step->type != NULL)
        quern__type_copy(step->type, target, value, 1);
    else
        quern__copy_value(target, value, step->size_bytes);
}

/* Values for those columns that rows did not have before. */
static void fill_added(const quern__move_plan *plan, uintptr_t to, uint32_t count, const void *value)
{
    const quern__move_step *step = plan->steps + plan->shared_count;
    for (const quern__move_step *end = step + plan->added_count; step < end; step++) {
        char *targets = quern__location_value(to, step->target_offset_bytes, step->size_bytes);
        for (uint32_t i = 0; value != NULL && i < count; i++)
            copy_value(step, targets + (size_t)i * step->size_bytes, value);
        if (value != NULL) continue;
        if (step->type != NULL)
            quern__type_construct(step->type, targets, count);
        else
            memset(targets, 0, (size_t)step->size_bytes * count);
    }
}

void quern__storage_append_all(const quern__archetype *source, const quern__move_plan *plan,
                               const void *value)
{
    uint32_t count;
    for (uint64_t left = quern__archetype_row_count(source); left > 0; left -= count) {
        uint32_t wanted = left < plan->target->row_capacity ? (uint32_t)left : plan->target->row_capacity;
        uintptr_t first = quern__archetype_append_run(plan->target, wanted, &count);
        fill_added(plan, first, count, value);
    }
}

void quern__storage_move_all(quern__storage *storage, const quern__archetype *source,
                             const quern__move_plan *plan)
{
    const quern__archetype *target = plan->target;
    uint64_t to = quern__archetype_row_count(target) - quern__archetype_row_count(source);
    for (uint32_t i = 0; i < source->chunk_count; i++) {
        const quern__chunk_slot *slot = &source->slots[i];
        for (uint32_t row = 0, count; row < slot->row_count; row += count, to += count) {
            uint32_t to_row = (uint32_t)(to % target->row_capacity);
            count = target->row_capacity - to_row;
            if (count > slot->row_count - row) count = slot->row_count - row;
            move_run(storage, source, plan, quern__location_make(slot->chunk, row),
                     quern__location_make(target->slots[to / target->row_capacity].chunk, to_row), count);
        }
    }
    storage->structure_version++;
}

void quern__storage_drop_rows(quern__storage *storage, quern__archetype *archetype)
{
    if (archetype->chunk_count == 0) return;
    quern__archetype_drop_all(archetype, &storage->slabs, &storage->allocator);
    note_spare(storage, archetype);
    storage->structure_version++;
}

void quern__storage_erase_all(quern__storage *storage, quern__archetype *archetype)
{
    quern__archetype_destroy_values(archetype);
    for (uint32_t i = 0; i < archetype->chunk_count; i++) {
        const quern__chunk_slot *slot = &archetype->slots[i];
        const quern_entity *handles = quern__archetype_entities(archetype, slot->chunk);
        for (uint32_t row = 0; row < slot->row_count; row++)
            quern__entities_give(&storage->entities, quern_entity_index(handles[row]));
    }
    quern__storage_drop_rows(storage, archetype);
}
