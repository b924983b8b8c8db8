/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Entity hooks: their reactions, calls before and after a change, and frames that replace all rows. */
#include "core/reactions/hook.h"

#include "core/storage/change.h"

_Static_assert(offsetof(quern_world, storage) == 0, "the address of a world is that of its storage");

static quern_world *world_of(quern__storage *storage)
{
    return (quern_world *)(void *)storage;
}

static uint32_t component_of(const quern__reaction *reaction)
{
    return quern__component_index(reaction->terms[0].component);
}

static const quern__type *type_of(const quern__storage *storage, const quern__reaction *reaction)
{
    return quern__components_type(&storage->components, component_of(reaction));
}

/* State of the world while hooks run. */
typedef struct hook_call {
    quern_world *world;
    bool was_locked;
} hook_call;

static hook_call begin_calls(quern__storage *storage)
{
    const hook_call it = {.world = world_of(storage), .was_locked = world_of(storage)->locked};
    if (!it.was_locked) quern__world_set_locked(it.world, true);
    it.world->runs_hook = true;
    return it;
}

static void end_calls(hook_call it)
{
    it.world->runs_hook = false;
    if (!it.was_locked) quern__world_set_locked(it.world, false);
}

static void call(hook_call it, const quern_entity_hooks *hooks, quern_entity_hook *hook,
                 quern_entity entity, void *value)
{
    if (hook != NULL) hook(it.world, entity, value, hooks->user_data);
}

static quern_entity entity_at(const quern__archetype *archetype, uintptr_t location)
{
    return *quern__row_handle(archetype, quern__archetype_row(archetype, location));
}

/* ------------------------------------------------------------------------------------------ reactions */

static bool has_reaction(const quern__reactions *reactions, uint32_t component_index)
{
    for (uint32_t i = 0; i < reactions->hooks.count; i++)
        if (component_of(reactions->hooks.items[i]) == component_index) return true;
    return false;
}

static quern_result add_reaction(quern__storage *storage, uint32_t component_index)
{
    quern__reactions *reactions = storage->reactions;
    if (has_reaction(reactions, component_index)) return QUERN_OK;
    if (!quern__array_reserve(&storage->allocator, &reactions->hooks, reactions->hooks.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the entity hooks of '%s'",
                           quern__components_type(&storage->components, component_index)->name);
    const quern_term term = {.component = quern__component_handle(&storage->components, component_index),
                             .access = QUERN_ACCESS_READ};
    const quern__reaction_def def = {
        .kinds = QUERN_REACT_ADDED | QUERN_REACT_SET, .terms = &term, .term_count = 1};
    quern__reaction *reaction;
    const quern_result result = quern__reaction_add(storage, &def, &reaction);
    if (result != QUERN_OK) return result;
    uint32_t at = reactions->hooks.count++;
    for (; at > 0 && component_of(reactions->hooks.items[at - 1]) > component_index; at--)
        reactions->hooks.items[at] = reactions->hooks.items[at - 1];
    reactions->hooks.items[at] = reaction;
    return QUERN_OK;
}

quern_result quern__hooks_ensure(quern__storage *storage, const quern__archetype *archetype)
{
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < archetype->component_count && result == QUERN_OK; i++) {
        const uint32_t index = archetype->component_indices[i];
        if (quern__entity_hooks_exist(&quern__components_type(&storage->components, index)->entity_hooks))
            result = add_reaction(storage, index);
    }
    return result;
}

/* Archetypes without the component may have cached edges to those that have it, and lists of creates as well. */
quern_result quern__hooks_attach(quern_world *world, uint32_t component_index)
{
    quern__storage *storage = &world->storage;
    if (has_reaction(storage->reactions, component_index)) return QUERN_OK;
    const quern_result result = add_reaction(storage, component_index);
    for (uint32_t i = 0; i < storage->archetypes.count && result == QUERN_OK; i++)
        memset(storage->archetypes.items[i]->edges, 0, sizeof storage->archetypes.items[i]->edges);
    if (result == QUERN_OK) world->create_lists = (quern__create_lists){.latest = NULL};
    return result;
}

/* ------------------------------------------------------------------------------------ before a change */

void quern__hooks_call_remove(quern__storage *storage, const quern__archetype *archetype,
                              const quern__archetype *target, uintptr_t first, uint32_t count)
{
    const quern__reactions *reactions = storage->reactions;
    const hook_call it = begin_calls(storage);
    for (uint32_t row = 0; row < count; row++)
        for (uint32_t i = 0; i < reactions->hooks.count; i++) {
            const uint32_t index = component_of(reactions->hooks.items[i]);
            if (!quern__archetype_has(archetype, index)) continue;
            if (target != NULL && quern__archetype_has(target, index)) continue;
            const quern_entity_hooks *hooks = &type_of(storage, reactions->hooks.items[i])->entity_hooks;
            call(it, hooks, hooks->on_remove, entity_at(archetype, first + row),
                 quern__storage_value(archetype, first + row, index));
        }
    end_calls(it);
}

void quern__hooks_before_all_leave(quern__storage *storage, const quern__archetype *archetype,
                                   const quern__archetype *target)
{
    for (uint32_t i = 0; i < archetype->chunk_count && archetype->has_hooks; i++) {
        const quern__chunk_slot *slot = &archetype->slots[i];
        quern__hooks_call_remove(storage, archetype, target,
                                 quern__location_make(quern__slot_chunk(slot), 0), slot->row_count);
    }
}

uint32_t quern__hooks_level(const quern__storage *storage, const quern__archetype *archetype)
{
    uint32_t level = 0;
    for (uint32_t i = 0; i < archetype->component_count; i++) {
        const quern__component *component = storage->components.list.items[archetype->component_indices[i]];
        if (component->is_managed && component->managed.level > level) level = component->managed.level;
    }
    return level;
}

void quern__hooks_before_end(quern__storage *storage)
{
    for (uint32_t level = QUERN_MAX_RELATION_LEVEL + 1; level-- > 0 && quern__hooks_are_used(storage);)
        for (uint32_t i = 0; i < storage->archetypes.count; i++)
            if (storage->archetypes.items[i]->has_hooks &&
                quern__hooks_level(storage, storage->archetypes.items[i]) == level)
                quern__hooks_before_all_leave(storage, storage->archetypes.items[i], NULL);
}

/* ------------------------------------------------------------------------------------- after a change */

/* Returns the bits of the chunk's rows in a bit column; NULL if none is set. */
static const uint64_t *pending_words(const quern__archetype *archetype, uint32_t bit_column, uint32_t slot)
{
    if (quern__bit_column_count(archetype->row_bits, bit_column, slot) == 0) return NULL;
    return quern__bit_column_words(archetype->row_bits, bit_column, slot);
}

static void call_rows(hook_call it, const quern_entity_hooks *hooks,
                      const quern__subscription *subscription, uint32_t component_index, uint32_t slot)
{
    const quern__archetype *archetype = subscription->archetype;
    const uint64_t *added = pending_words(archetype, subscription->added_column, slot);
    const uint64_t *set = pending_words(archetype, subscription->set_column, slot);
    const quern__chunk *chunk = quern__slot_chunk(&archetype->slots[slot]);
    const uint32_t word_count = (archetype->slots[slot].row_count + 63) / 64;
    for (uint32_t i = 0; i < word_count && (added != NULL || set != NULL); i++) {
        const uint64_t new_rows = added != NULL ? added[i] : 0;
        for (uint64_t rows = new_rows | (set != NULL ? set[i] : 0); rows != 0; rows &= rows - 1) {
            const uint32_t bit = quern__lowest_bit_64(rows);
            const uintptr_t location = quern__location_make(chunk, i * 64 + bit);
            const quern_entity entity = entity_at(archetype, location);
            void *value = quern__storage_value(archetype, location, component_index);
            if ((new_rows >> bit & 1) != 0) call(it, hooks, hooks->on_add, entity, value);
            call(it, hooks, hooks->on_set, entity, value);
        }
    }
}

void quern__hooks_call_after(quern__storage *storage)
{
    const quern__reactions *reactions = storage->reactions;
    const hook_call it = begin_calls(storage);
    for (uint32_t i = 0; i < reactions->hooks.count; i++) {
        quern__reaction *reaction = reactions->hooks.items[i];
        if (!reaction->is_pending) continue;
        quern__storage_note_written(storage, component_of(reaction)); /* hooks may write the values */
        for (uint32_t k = 0; k < reaction->subscriptions.count; k++) {
            const quern__subscription *subscription = reaction->subscriptions.items[k];
            for (uint32_t slot = 0; slot < subscription->archetype->chunk_count && subscription->is_pending;
                 slot++)
                call_rows(it, &type_of(storage, reaction)->entity_hooks, subscription,
                          component_of(reaction), slot);
        }
        quern__reaction_drop(storage, reaction);
    }
    end_calls(it);
}

/* --------------------------------------------------------------------- frames that replace all rows */

static uint64_t count_rows(const quern__reaction *reaction)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < reaction->subscriptions.count; i++)
        count += quern__archetype_row_count(reaction->subscriptions.items[i]->archetype);
    return count;
}

quern_result quern__hooked_frame_begin(quern__hooked_frame *frame, quern__storage *storage,
                                       uint32_t slot_count)
{
    const quern__reactions *reactions = storage->reactions;
    const quern_allocator *allocator = &storage->allocator;
    *frame = (quern__hooked_frame){.storage = storage};
    if (!quern__hooks_are_used(storage)) return QUERN_OK;
    if (slot_count < storage->entities.slot_count) slot_count = storage->entities.slot_count;
    if (slot_count == 0) return QUERN_OK; /* neither the world nor the frame has entities */
    const size_t bytes = reactions->hooks.count * sizeof *frame->items;
    frame->items = quern__allocate(allocator, bytes, _Alignof(quern__hooked_values));
    bool has_memory = frame->items != NULL;
    for (uint32_t i = 0; i < reactions->hooks.count && has_memory; i++) {
        quern__hooked_values *it = &frame->items[i];
        *it = (quern__hooked_values){.type = type_of(storage, reactions->hooks.items[i]),
                                     .slot_count = slot_count,
                                     .value_capacity = (uint32_t)count_rows(reactions->hooks.items[i])};
        frame->count++;
        const size_t value_bytes = (size_t)it->value_capacity * it->type->size_bytes;
        it->kept = quern__allocate(allocator, slot_count * sizeof *it->kept, _Alignof(quern_entity));
        it->numbers = quern__allocate(allocator, slot_count * sizeof *it->numbers, sizeof(uint32_t));
        if (value_bytes > 0)
            it->values = quern__allocate(allocator, value_bytes, QUERN_MAX_ALIGNMENT_BYTES);
        has_memory = it->kept != NULL && it->numbers != NULL && (value_bytes == 0 || it->values != NULL);
        if (!has_memory) continue;
        memset(it->kept, 0, slot_count * sizeof *it->kept);
        memset(it->numbers, 0, slot_count * sizeof *it->numbers);
    }
    if (has_memory) return QUERN_OK;
    quern__hooked_frame_release(frame);
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "no memory to compare the values of components with entity hooks");
}

void quern__hooked_frame_release(quern__hooked_frame *frame)
{
    const quern_allocator *allocator = &frame->storage->allocator;
    for (uint32_t i = 0; i < frame->count && frame->items != NULL; i++) {
        quern__hooked_values *it = &frame->items[i];
        if (it->value_count > 0 && it->values != NULL)
            quern__type_destroy(it->type, it->values, it->value_count);
        quern__release(allocator, it->kept, it->slot_count * sizeof *it->kept, _Alignof(quern_entity));
        quern__release(allocator, it->numbers, it->slot_count * sizeof *it->numbers, sizeof(uint32_t));
        quern__release(allocator, it->values, (size_t)it->value_capacity * it->type->size_bytes,
                       QUERN_MAX_ALIGNMENT_BYTES);
    }
    if (frame->items != NULL)
        quern__release(allocator, frame->items,
                       frame->storage->reactions->hooks.count * sizeof *frame->items,
                       _Alignof(quern__hooked_values));
    *frame = (quern__hooked_frame){.storage = frame->storage};
}

void quern__hooked_frame_keep(const quern__hooked_frame *frame, const quern__archetype *archetype,
                              const quern_entity *handles, uint32_t count)
{
    for (uint32_t i = 0; i < frame->count && archetype->has_hooks; i++) {
        if (!quern__archetype_has(archetype, component_of(frame->storage->reactions->hooks.items[i])))
            continue;
        for (uint32_t row = 0; row < count; row++)
            frame->items[i].kept[quern_entity_index(handles[row])] = handles[row];
    }
}

/* Calls a function for each row with the i-th component that has hooks. Entities with a greater level come first. */
typedef void row_function(hook_call it, quern__hooked_values *values, const quern_entity_hooks *hooks,
                          const quern__archetype *archetype, uint32_t component_index, uintptr_t location);

static void visit_rows(quern__hooked_frame *frame, uint32_t i, uint32_t level, row_function *visit,
                       hook_call it)
{
    const quern__storage *storage = frame->storage;
    const quern__reaction *reaction = storage->reactions->hooks.items[i];
    for (uint32_t k = 0; k < reaction->subscriptions.count; k++) {
        const quern__archetype *archetype = reaction->subscriptions.items[k]->archetype;
        if (level != UINT32_MAX && quern__hooks_level(storage, archetype) != level) continue;
        for (uint32_t slot = 0; slot < archetype->chunk_count; slot++)
            for (uint32_t row = 0; row < archetype->slots[slot].row_count; row++)
                visit(it, &frame->items[i], &type_of(storage, reaction)->entity_hooks, archetype,
                      component_of(reaction),
                      quern__location_make(quern__slot_chunk(&archetype->slots[slot]), row));
    }
}

static void remove_or_note(hook_call it, quern__hooked_values *values, const quern_entity_hooks *hooks,
                           const quern__archetype *archetype, uint32_t component_index, uintptr_t location)
{
    const quern_entity entity = entity_at(archetype, location);
    void *value = quern__storage_value(archetype, location, component_index);
    if (!quern_entity_equal(values->kept[quern_entity_index(entity)], entity)) {
        call(it, hooks, hooks->on_remove, entity, value);
        return;
    }
    if (value != NULL)
        quern__type_copy(values->type,
                         values->values + (size_t)values->value_count * values->type->size_bytes, value, 1);
    values->numbers[quern_entity_index(entity)] = ++values->value_count;
}

void quern__hooked_frame_before(quern__hooked_frame *frame)
{
    if (frame->count == 0) return;
    const hook_call it = begin_calls(frame->storage);
    for (uint32_t level = QUERN_MAX_RELATION_LEVEL + 1; level-- > 0;)
        for (uint32_t i = 0; i < frame->count; i++)
            visit_rows(frame, i, level, remove_or_note, it);
    end_calls(it);
}

/* Versions are those of the frame, so that nothing counts as changed by the restore but what hooks write. */
static void add_or_set(hook_call it, quern__hooked_values *values, const quern_entity_hooks *hooks,
                       const quern__archetype *archetype, uint32_t component_index, uintptr_t location)
{
    const quern_entity entity = entity_at(archetype, location);
    void *value = quern__storage_value(archetype, location, component_index);
    const uint32_t number = values->numbers[quern_entity_index(entity)];
    const size_t size_bytes = values->type->size_bytes;
    if (number > 0 && value == NULL) return;
    if (number > 0 &&
        quern__type_same_value(values->type, value, values->values + (number - 1) * size_bytes))
        return;
    const uint64_t hash = value != NULL ? quern__hash_bytes(0, value, size_bytes) : 0;
    if (number == 0) call(it, hooks, hooks->on_add, entity, value);
    call(it, hooks, hooks->on_set, entity, value);
    if (value != NULL && quern__hash_bytes(0, value, size_bytes) != hash) {
        quern__note_component(archetype, location, 1, component_index);
        quern__storage_note_written(&it.world->storage, component_index);
    }
}

void quern__hooked_frame_after(quern__hooked_frame *frame)
{
    if (frame->count == 0) return;
    const hook_call it = begin_calls(frame->storage);
    for (uint32_t i = 0; i < frame->count; i++)
        visit_rows(frame, i, UINT32_MAX, add_or_set, it);
    end_calls(it);
}
