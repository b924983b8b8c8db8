/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The calls that enable and disable: a component of many entities, then whole entities (enabled.h).
 *
 * Components: if one entity of the list is invalid, none changes. Entities are processed in batches. All bits of a batch
 * are located before the first is changed. Each changed bit is recorded, one bit per entity, and changed back if an
 * entity of a later batch is invalid. This costs less than checking all entities first. Change versions are updated at
 * the end.
 *
 * Entities: a tag says that an entity is off; queries check it when they match archetypes (core/query/query.c). A second
 * tag, which is hidden, is registered right after the first one. An entity with both tags is off because of its parent.
 * An entity with the hidden tag alone is on; quern_entity_remove of the first tag leaves an entity in this state. */
#include "core/storage/change.h"

#include "core/relations/relation_internal.h"
#include "core/world/world_internal.h"

#include <quern/bulk.h>
#include <quern/enabled.h>

enum {
    RECORD_BATCH = 64, /* entities per word of changed bits */
    STACK_WORDS = 128  /* words of changed bits that fit the stack */
};

/* State of one call. The last members cache the bit column of the latest entity's archetype, since consecutive
 * entities mostly have the same archetype. */
typedef struct enable_call {
    const quern__storage *storage;
    const quern_entity *entities;
    uint32_t count;
    uint32_t component_index;
    bool disables;
    /* whether one of the archetypes keeps change versions, the only listeners to enabling */
    bool has_listeners;
    uint32_t cached_number; /* number of the cached archetype; UINT32_MAX: none */
    uint32_t slot_words;
    uint64_t *words; /* bits of the first chunk */
    const quern__run_shape *shape;
} enable_call;

/* Consecutive entities of the list. Since lists are unordered, their records are scattered in memory: those of a
 * batch are prefetched while the previous batch is processed. */
typedef struct record_batch {
    uint32_t first, count; /* index of the first entity in the list, and number of entities */
    const quern__record *records[RECORD_BATCH];
} record_batch;

/* The location of an entity's bit. */
typedef struct row_bit {
    uint64_t *words; /* words of the bit column for the chunk */
    uint32_t row;
} row_bit;

static inline void prefetch_batch(const enable_call *it, uint32_t first, record_batch *out_batch)
{
    static const quern__record absent = {.location = 0};
    const quern__entities *records = &it->storage->entities;
    const quern_entity *entities = it->entities + first;
    const uint32_t left = it->count - first, count = left < RECORD_BATCH ? left : RECORD_BATCH;
    const uint32_t slot_count = records->slot_count;
    quern__record *const *pages = records->pages.items;
    out_batch->first = first;
    out_batch->count = count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t slot = quern_entity_index(entities[i]);
        const quern__record *record =
            QUERN__LIKELY(slot < slot_count) ? quern__entities_record_in(pages, slot) : &absent;
        QUERN__PREFETCH(record);
        out_batch->records[i] = record;
    }
}

/* Caches the bit column of the record's archetype. Returns false if the archetype lacks the component. */
static QUERN__NO_INLINE bool find_bit_column(enable_call *it, const quern__record *record)
{
    const quern__archetype *archetype = quern__storage_archetype_of(it->storage, record);
    const quern__row_bits *row_bits = archetype->row_bits;
    const uint32_t bit_column =
        quern__row_bits_find_column(row_bits, QUERN__BIT_COLUMN_CAN_DISABLE, it->component_index);
    it->cached_number = UINT32_MAX;
    if (bit_column == QUERN__NO_BIT_COLUMN) return false;
    it->cached_number = record->archetype_number;
    it->words = quern__bit_column_words(row_bits, bit_column, 0);
    it->slot_words = row_bits->slot_words;
    it->shape = &archetype->shape;
    it->has_listeners |= archetype->versions.items != NULL;
    return true;
}

/* Locates the bits of a batch. Returns the number of entities before the first invalid one. */
static inline uint32_t locate_bits(enable_call *it, const record_batch *from, row_bit *out_bits)
{
    const quern_entity *entity = it->entities + from->first;
    const uint32_t count = from->count;
    uint32_t cached_number = it->cached_number;
    size_t slot_words = it->slot_words;
    uint64_t *words = it->words;
    const quern__run_shape *shape = it->shape;
    row_bit *next = out_bits;
    for (const quern__record *const *at = from->records; next < out_bits + count; at++, entity++, next++) {
        const quern__record *record = *at;
        const uintptr_t location = record->location;
        if (QUERN__UNLIKELY(record->handle_high != entity->bits >> 32 || location == 0)) break;
        if (QUERN__UNLIKELY(record->archetype_number != cached_number)) {
            if (!find_bit_column(it, record)) break;
            cached_number = it->cached_number;
            slot_words = it->slot_words;
            words = it->words;
            shape = it->shape;
        }
        assert(shape != NULL); /* no archetype has the number that stands for none */
        next->words = words + quern__chunk_index_at(shape, location) * slot_words;
        next->row = quern__location_row(shape, location);
    }
    return (uint32_t)(next - out_bits);
}

/* Writes bits. Returns a mask of those that changed; the highest bit is that of the first entity. */
QUERN__ALWAYS_INLINE uint64_t write_bits(const row_bit *bits, uint32_t count, bool bit)
{
    uint64_t changed = 0;
    for (const row_bit *at = bits; at < bits + count; at++)
        changed = changed << 1 | quern__row_set_disabled_bit(at->words, at->row, bit);
    return changed << (RECORD_BATCH - count);
}

/* Changes the bits of all entities, or of the batches before the first invalid entity. Returns the number of these
 * entities. */
static uint32_t write_all(enable_call *it, uint64_t *changed)
{
    record_batch batches[2];
    row_bit bits[RECORD_BATCH];
    prefetch_batch(it, 0, &batches[0]);
    for (uint32_t first = 0, turn = 0; first < it->count; turn ^= 1) {
        const record_batch *now = &batches[turn];
        assert(now->count > 0);
        prefetch_batch(it, first + now->count, &batches[turn ^ 1]);
        if (locate_bits(it, now, bits) < now->count) return first;
        changed[first / RECORD_BATCH] =
            it->disables ? write_bits(bits, now->count, true) : write_bits(bits, now->count, false);
        first += now->count;
    }
    return it->count;
}

/* Changes the bits of the first `count` entities back. */
static void change_back(enable_call *it, uint32_t count, const uint64_t *changed)
{
    record_batch again;
    row_bit bits[RECORD_BATCH];
    for (uint32_t first = 0; first < count; first += RECORD_BATCH) {
        prefetch_batch(it, first, &again);
        locate_bits(it, &again, bits);
        for (uint32_t i = 0; i < RECORD_BATCH; i++)
            if ((changed[first / RECORD_BATCH] << i >> (RECORD_BATCH - 1)) != 0)
                quern__row_set_disabled_bit(bits[i].words, bits[i].row, !it->disables);
    }
}

/* Fails for the first entity, from index `first` on, that is not alive or lacks the component. */
static QUERN__SLOW_PATH quern_result fail_listed(enable_call *it, uint32_t first)
{
    record_batch refused;
    row_bit bits[RECORD_BATCH];
    prefetch_batch(it, first, &refused);
    const uint32_t i = first + locate_bits(it, &refused, bits);
    const quern_entity entity = it->entities[i];
    quern_result result = quern__entities_check(&it->storage->entities, entity);
    if (result == QUERN_OK)
        result = quern__fail(QUERN_ERROR_COMPONENT_ABSENT, "entity %u:%u does not have '%s'",
                             quern_entity_index(entity), quern_entity_generation(entity),
                             quern__components_type(&it->storage->components, it->component_index)->name);
    return quern__message_add_element(result, "element", i);
}

static quern_result enable_listed(enable_call *it, uint64_t *changed)
{
    const uint32_t count = write_all(it, changed);
    if (count < it->count) {
        change_back(it, count, changed);
        return fail_listed(it, count);
    }
    for (uint32_t i = 0; it->has_listeners && i < count; i++) {
        const quern__record *record =
            quern__entities_record(&it->storage->entities, quern_entity_index(it->entities[i]));
        quern__row_note_enabled(quern__storage_archetype_of(it->storage, record), record->location,
                                it->component_index);
    }
    return QUERN_OK;
}

static quern_result enable_with_memory(enable_call *it)
{
    uint64_t on_stack[STACK_WORDS];
    const size_t word_count = ((size_t)it->count + RECORD_BATCH - 1) / RECORD_BATCH;
    if (word_count <= STACK_WORDS) return enable_listed(it, on_stack);
    const quern_allocator *allocator = &it->storage->allocator;
    uint64_t *allocated = quern__allocate(allocator, word_count * sizeof *allocated, _Alignof(uint64_t));
    if (allocated == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "no memory to record the changes of %u entities; nothing was changed",
                           it->count);
    const quern_result result = enable_listed(it, allocated);
    quern__release(allocator, allocated, word_count * sizeof *allocated, _Alignof(uint64_t));
    return result;
}

quern_result quern_entity_set_component_enabled_many(quern_world *world, const quern_entity *entities,
                                                     uint32_t count, quern_component component,
                                                     bool enabled)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED_LIST(entities, count);
    const quern__components *components = &world->storage.components;
    quern_result result = quern__components_check(components, component);
    const uint32_t component_index = quern__component_index(component);
    if (result == QUERN_OK)
        result = quern__components_check_flag(components, component_index, QUERN__FLAG_CAN_DISABLE);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    if (count == 0) return QUERN_OK;
    enable_call it = {.storage = &world->storage,
                      .entities = entities,
                      .count = count,
                      .component_index = component_index,
                      .disables = !enabled,
                      .cached_number = UINT32_MAX};
    return quern__in_call(enable_with_memory(&it), __func__);
}

/* -------------------------------------------------------------------------------------- for the flag */

bool quern__can_disable_is_listed(const quern_world *world, quern_entity entity, quern_component component)
{
    return !quern_entity_is_component_enabled(world, entity, component);
}

quern_result quern__can_disable_list(quern_commands *commands, quern_entity entity,
                                     quern_component component)
{
    return quern_commands_set_component_enabled(commands, entity, component, false);
}

/* ------------------------------------------------------------------------------------------ the tags */

/* A component with the tag's name that the program has registered cannot become the tag: queries may already have matched
 * archetypes with it. */
quern_result quern__world_register_disabled(quern_world *world)
{
    if (world->storage.disabled_index != QUERN__NO_COMPONENT) return QUERN_OK;
    QUERN__ENTER_AS(world, "quern_world_disabled_tag");
    quern__components *components = &world->storage.components;
    const quern_allocator *allocator = &world->storage.allocator;
    quern_result result = quern__world_check_unlocked(world, "quern_world_disabled_tag");
    if (result != QUERN_OK) return result;
    const uint32_t component_count = components->list.count;
    const quern_component_def disabled = {.name = "disabled"}, by_parent = {.name = "disabled by parent"};
    if (quern__components_find(components, disabled.name).bits != 0)
        return quern__fail(
            QUERN_ERROR_DUPLICATE_NAME,
            "quern_world_disabled_tag: the world already has a component 'disabled', the name of the "
            "built-in "
            "tag; give the component another name, or call quern_world_disabled_tag before registering it");
    quern_component component;
    result = quern__components_register(components, allocator, &disabled, &component);
    if (result == QUERN_OK)
        result = quern__components_add_managed(components, allocator, &by_parent,
                                               &(quern__managed){.is_hidden = true});
    if (result == QUERN_OK)
        world->storage.disabled_index = component_count;
    else
        quern__components_drop_last(components, allocator, component_count);
    return quern__in_call(result, "quern_world_disabled_tag");
}

quern_component quern_world_disabled_tag(quern_world *world)
{
    const quern_component none = {0};
    QUERN__NEED_OR(world, none);
    if (quern__world_register_disabled(world) != QUERN_OK) return none;
    return quern__component_handle(&world->storage.components, world->storage.disabled_index);
}

/* ----------------------------------------------------------------------------------------- switching */

typedef enum state { ON, OFF_BY_PARENT, OFF_BY_ITSELF } state;

/* A change of the state of one entity. */
typedef struct state_change {
    quern_entity entity;
    const quern__move_plan *plan;
} state_change;

typedef struct switch_list {
    quern__storage *storage;
    QUERN__ARRAY(state_change) entities;
} switch_list;

static uint32_t by_parent_index(const quern__storage *storage)
{
    return storage->disabled_index + 1;
}

static quern__archetype *archetype_of(const quern__storage *storage, uint32_t slot)
{
    return quern__storage_archetype_of(storage, quern__entities_record(&storage->entities, slot));
}

static state state_of(const quern__storage *storage, uint32_t slot)
{
    const quern__archetype *archetype = archetype_of(storage, slot);
    if (!quern__archetype_has(archetype, storage->disabled_index)) return ON;
    return quern__archetype_has(archetype, by_parent_index(storage)) ? OFF_BY_PARENT : OFF_BY_ITSELF;
}

/* Lists an entity for a change to the wanted state, with its move plan and a reserved row. Lists nothing if the
 * entity has that state. */
static quern_result list_change(switch_list *changes, uint32_t slot, state wanted)
{
    quern__storage *storage = changes->storage;
    quern__archetype *source = archetype_of(storage, slot), *target;
    const quern__move_plan *plan;
    /* both tags count: an entity that is on may have the hidden one left */
    if (quern__archetype_has(source, storage->disabled_index) == (wanted != ON) &&
        quern__archetype_has(source, by_parent_index(storage)) == (wanted == OFF_BY_PARENT))
        return QUERN_OK;
    /* the components of `source`, with the tags of the wanted state in their places */
    uint16_t set[QUERN_MAX_ENTITY_COMPONENTS + 2];
    const uint32_t tag = storage->disabled_index;
    uint32_t count = 0, i = 0;
    for (; i < source->component_count && source->component_indices[i] < tag; i++)
        set[count++] = source->component_indices[i];
    if (wanted != ON) set[count++] = (uint16_t)tag;
    if (wanted == OFF_BY_PARENT) set[count++] = (uint16_t)by_parent_index(storage);
    for (; i < source->component_count; i++)
        if (source->component_indices[i] > by_parent_index(storage))
            set[count++] = source->component_indices[i];
    quern_result result = quern__storage_ensure_archetype(storage, set, count, &target);
    if (result != QUERN_OK) return result;
    result = quern__plan_between(storage, source, target, &plan);
    if (result != QUERN_OK) return result;
    if (!quern__array_reserve(&storage->allocator, &changes->entities, changes->entities.count + 1))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                           "no memory to list %u entities that change; nothing was changed",
                           changes->entities.count + 1);
    result = quern__leaving_reserve(storage, source, target, 1);
    if (result == QUERN_OK) result = quern__rows_reserve(storage, target, 1);
    if (result == QUERN_OK)
        changes->entities.items[changes->entities.count++] =
            (state_change){.entity = quern__entity_of_slot(storage, slot), .plan = plan};
    return result;
}

/* Returns the slot after `slot` in a preorder walk of the tree below `root`, or QUERN__SLOT_NONE at the end.
 * *off_top is a slot, or QUERN__SLOT_NONE; it becomes QUERN__SLOT_NONE when the walk leaves the tree below
 * *off_top. */
static uint32_t next_below(const quern__links *links, uint32_t root, uint32_t slot, uint32_t *off_top)
{
    const uint32_t child = quern__links_first(links, slot);
    if (child != QUERN__SLOT_NONE) return child;
    for (; slot != root; slot = quern__links_target(links, slot)) {
        if (slot == *off_top) *off_top = QUERN__SLOT_NONE;
        if (quern__links_at(links, slot)->next != QUERN__SLOT_NONE)
            return quern__links_at(links, slot)->next;
    }
    return QUERN__SLOT_NONE;
}

/* Lists each entity below root if its state differs from that which the entities above it require. root_state is the
 * state that root will have. The states above an entity fold into one value: off_top, the highest entity
 * above it that is off. */
static quern_result list_below(switch_list *changes, uint32_t root, state root_state)
{
    const quern__relation *parent = changes->storage->relations->parent;
    if (parent == NULL) return QUERN_OK;
    quern_result result = QUERN_OK;
    uint32_t off_top = root_state == ON ? QUERN__SLOT_NONE : root;
    uint32_t slot = next_below(&parent->links, root, root, &off_top);
    while (slot != QUERN__SLOT_NONE && result == QUERN_OK) {
        const bool is_off_by_itself = state_of(changes->storage, slot) == OFF_BY_ITSELF;
        if (!is_off_by_itself)
            result = list_change(changes, slot, off_top == QUERN__SLOT_NONE ? ON : OFF_BY_PARENT);
        else if (off_top == QUERN__SLOT_NONE)
            off_top = slot;
        slot = next_below(&parent->links, root, slot, &off_top);
    }
    return result;
}

static quern_result check_entity(const quern_world *world, quern_entity entity, const char *function)
{
    if (world == NULL) return quern__fail_null(function, "world");
    quern_result result = quern__world_check_unlocked(world, function);
    if (result == QUERN_OK && quern__entities_find(&world->storage.entities, entity) == NULL)
        result = quern__in_call(quern__entities_check(&world->storage.entities, entity), function);
    return result;
}

quern_result quern_entity_set_enabled(quern_world *world, quern_entity entity, bool enabled)
{
    QUERN__ENTER(world);
    quern_result result = check_entity(world, entity, __func__);
    if (result != QUERN_OK) return result;
    if (world->storage.disabled_index == QUERN__NO_COMPONENT) {
        if (enabled) return QUERN_OK; /* without the tag, no entity of the world can be off */
        result = quern__world_register_disabled(world);
        if (result != QUERN_OK) return result;
    }
    quern__storage *storage = &world->storage;
    switch_list changes = {.storage = storage};
    const uint32_t root = quern_entity_index(entity), parent = quern__parent_slot(storage, root);
    const bool parent_is_on = parent == QUERN__SLOT_NONE || state_of(storage, parent) == ON;
    const state wanted = !enabled ? OFF_BY_ITSELF : parent_is_on ? ON : OFF_BY_PARENT;
    quern__leaving_begin(storage);
    result = list_change(&changes, root, wanted);
    if (result == QUERN_OK) result = list_below(&changes, root, wanted);
    for (uint32_t i = 0; i < changes.entities.count; i++) {
        const state_change *change = &changes.entities.items[i];
        if (result == QUERN_OK)
            quern__row_move_reserved(
                storage, change->entity,
                quern__entities_record(&storage->entities, quern_entity_index(change->entity)),
                change->plan);
        else
            quern__rows_unreserve(storage, change->plan->target);
    }
    quern__array_release(&storage->allocator, &changes.entities);
    return quern__in_call(result, __func__);
}

bool quern_entity_is_enabled(const quern_world *world, quern_entity entity)
{
    if (check_entity(world, entity, __func__) != QUERN_OK) return false;
    return state_of(&world->storage, quern_entity_index(entity)) == ON;
}
