/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Recording spawns (spawn.h): what a recorder caches of each prefab, the operations of its spawns, and the calls. Last,
 * recording clones. */
#include "core/record/spawn.h"

#include "core/storage/list_values.h"

#include <quern/prefab.h>

/* An instance while it is recorded. */
typedef struct spawning {
    quern_commands *commands;
    const quern__prefab *prefab;
    quern__spawn_cache *cache;
    quern_entity parent; /* null: the root has no parent */
    /* Values of the item first, then those that are recorded as sets. */
    quern__prefab_override overrides[QUERN_MAX_SPAWN_OVERRIDES];
    uint32_t override_count;
    uint32_t in_item_count;
    const quern__operation
        *sets[QUERN_MAX_SPAWN_OVERRIDES]; /* of the overrides that are recorded as sets */
    uint32_t first_number;                /* number of the root, among the creates of the stream */
} spawning;

/* ---------------------------------------------------------------------------------------------- caches */

/* Frees a cache and its variants, but does not release the prefab. cache may be NULL. */
static void release_cache(const quern_commands *commands, quern__spawn_cache *cache)
{
    const quern_allocator *allocator = &commands->storage->allocator;
    if (cache == NULL) return;
    for (quern__spawn_variant *variant = cache->variants, *next; variant != NULL; variant = next) {
        next = variant->next;
        quern__operation_release(variant->operation, allocator);
        quern__release(allocator, variant, sizeof *variant, _Alignof(quern__spawn_variant));
    }
    quern__release(allocator, cache, sizeof *cache, _Alignof(quern__spawn_cache));
}

void quern__spawns_release(quern_commands *commands)
{
    for (uint32_t i = 0; i < commands->spawns.count; i++)
        release_cache(commands, commands->spawns.items[i]);
    quern__array_release(&commands->storage->allocator, &commands->spawns);
}

void quern__spawns_release_prefabs(quern_commands *commands)
{
    const quern_allocator *allocator = &commands->storage->allocator;
    for (uint32_t i = 0; i < commands->spawns.count; i++) {
        quern__spawn_cache *cache = commands->spawns.items[i];
        if (cache == NULL || !cache->retains_prefab) continue;
        quern__prefab_release(cache->prefab, allocator);
        cache->retains_prefab = false;
    }
    for (quern__spawn_cache *cache = commands->old_spawn_caches, *next; cache != NULL; cache = next) {
        next = cache->next_old;
        quern__prefab_release(cache->prefab, allocator);
        release_cache(commands, cache);
    }
    commands->old_spawn_caches = NULL;
    commands->retains_prefabs = false;
}

/* Returns the number of commands that an instance without a parent counts as: those that would create its members,
 * relate, name and disable them. The parts of the hierarchy belong to the creates; so does any tag but those of
 * relations with several targets per source, which follow from edges. */
static uint32_t count_commands(const quern__storage *storage, const quern__prefab *prefab)
{
    uint32_t count = prefab->members.count + prefab->name_count + prefab->toggles.count;
    for (uint32_t i = 0; i < prefab->groups.count; i++) {
        const quern__prefab_group *group = &prefab->groups.items[i];
        for (uint32_t k = 0; k < group->component_count; k++) {
            const uint16_t index = prefab->component_indices.items[group->first_component + k];
            const quern__relation *relation = storage->components.list.items[index]->managed.relation;
            if (relation == NULL || relation == storage->relations->parent) count += group->width;
        }
    }
    for (uint32_t i = 0; i < prefab->links.count; i++)
        count += prefab->links.items[i].relation != storage->relations->parent;
    return count;
}

/* Creates the cached data of a prefab, and retires those of an earlier prefab with the same index. Errors:
 * OUT_OF_MEMORY. */
static quern_result create_cache(quern_commands *commands, quern_prefab handle, quern__prefab *prefab,
                                 quern__spawn_cache **out_cache)
{
    const quern_allocator *allocator = &commands->storage->allocator;
    const uint32_t index = (uint32_t)handle.bits;
    if (!quern__array_reserve(allocator, &commands->spawns, index + 1))
        return quern__commands_fail_memory(commands);
    while (commands->spawns.count <= index)
        commands->spawns.items[commands->spawns.count++] = NULL;
    quern__spawn_cache *cache = quern__allocate(allocator, sizeof *cache, _Alignof(quern__spawn_cache));
    if (cache == NULL) return quern__commands_fail_memory(commands);
    *cache = (quern__spawn_cache){
        .handle = handle, .prefab = prefab, .command_count = count_commands(commands->storage, prefab)};
    /* the data of the earlier prefab stay while recorded spawns refer to them */
    quern__spawn_cache *earlier = commands->spawns.items[index];
    if (earlier != NULL && earlier->retains_prefab) {
        earlier->next_old = commands->old_spawn_caches;
        commands->old_spawn_caches = earlier;
    } else {
        release_cache(commands, earlier);
    }
    commands->spawns.items[index] = *out_cache = cache;
    return QUERN_OK;
}

static inline quern_result find_cache(quern_commands *commands, quern_prefab handle, quern__prefab *prefab,
                                      quern__spawn_cache **out_cache)
{
    const uint32_t index = (uint32_t)handle.bits;
    if (QUERN__LIKELY(index < commands->spawns.count && commands->spawns.items[index] != NULL &&
                      commands->spawns.items[index]->handle.bits == handle.bits)) {
        *out_cache = commands->spawns.items[index];
        return QUERN_OK;
    }
    return create_cache(commands, handle, prefab, out_cache);
}

/* ----------------------------------------------------------------------------------------- variants */

static const quern__prefab_column *column_of(const quern__prefab *prefab,
                                             const quern__prefab_override *override)
{
    return &prefab->columns.items[prefab->groups.items[override->group].first_column + override->column];
}

static bool overrides_match(const quern__spawn_variant *variant, const spawning *it)
{
    if (variant->override_count != it->in_item_count || variant->has_parent != (it->parent.bits != 0))
        return false;
    for (uint32_t i = 0; i < it->in_item_count; i++)
        if (variant->overrides[i].group != it->overrides[i].group ||
            variant->overrides[i].row != it->overrides[i].row ||
            variant->overrides[i].column != it->overrides[i].column)
            return false;
    return true;
}

/* Creates the variant for this instance. Returns NULL if out of memory. */
static quern__spawn_variant *add_variant(const spawning *it)
{
    const quern__storage *storage = it->commands->storage;
    uint16_t components[QUERN_MAX_SPAWN_OVERRIDES + 1];
    quern__spawn_variant *variant =
        quern__allocate(&storage->allocator, sizeof *variant, _Alignof(quern__spawn_variant));
    if (variant == NULL) return NULL;
    *variant = (quern__spawn_variant){.cache = it->cache,
                                      .next = it->cache->variants,
                                      .override_count = it->in_item_count,
                                      .has_parent = it->parent.bits != 0};
    for (uint32_t i = 0; i < it->in_item_count; i++) {
        variant->overrides[i] = it->overrides[i];
        components[i] = column_of(it->prefab, &it->overrides[i])->component_index;
    }
    if (variant->has_parent)
        components[it->in_item_count] = (uint16_t)storage->relations->parent->component_index;
    variant->operation = quern__operation_create_spawn(
        &storage->components, &storage->allocator, components, it->in_item_count + variant->has_parent,
        it->cache->command_count + variant->has_parent,
        variant->has_parent || it->prefab->has_outside || it->prefab->has_edges);
    if (variant->operation == NULL) {
        quern__release(&storage->allocator, variant, sizeof *variant, _Alignof(quern__spawn_variant));
        return NULL;
    }
    variant->operation->variant = variant;
    it->cache->variants = variant;
    return variant;
}

static inline quern__spawn_variant *find_variant(const spawning *it)
{
    for (quern__spawn_variant *variant = it->cache->variants; variant != NULL; variant = variant->next)
        if (overrides_match(variant, it)) return variant;
    return add_variant(it);
}

/* ------------------------------------------------------------------------------------------ recording */

static quern_entity member_handle(const spawning *it, uint32_t member)
{
    return quern__entity_make(0, it->commands->origin.serial, it->first_number + member);
}

/* Largest number of bytes of override values in an item. */
enum { MOST_OVERRIDE_BYTES = 4096 };

/* Moves the overrides that an item cannot have to the end of the list, and finds their operations: values with hooks or
 * handles, which instances do not copy as bytes, and those that exceed the size. Errors: OUT_OF_MEMORY. */
static quern_result separate_sets(spawning *it)
{
    const quern__storage *storage = it->commands->storage;
    size_t bytes = 0;
    uint32_t end = it->override_count;
    for (uint32_t i = 0; i < end;) {
        const quern__prefab_column *column = column_of(it->prefab, &it->overrides[i]);
        const bool is_copied =
            !quern__hooks_exist(&column->type->hooks) && !column->type->has_entity_fields;
        bytes += column->type->size_bytes + column->type->alignment_bytes;
        if (QUERN__LIKELY(is_copied && bytes <= MOST_OVERRIDE_BYTES)) {
            i++;
            continue;
        }
        const quern__prefab_override moved = it->overrides[i];
        it->overrides[i] = it->overrides[--end];
        it->overrides[end] = moved;
        const quern_result result = quern__operations_find_single(
            &it->commands->operations, &storage->components, &storage->allocator, column->component_index,
            QUERN__OPERATION_SET, &it->sets[end]);
        if (result != QUERN_OK) return quern__commands_fail_memory(it->commands);
    }
    it->in_item_count = end;
    return QUERN_OK;
}

/* Records an override as a set of the member. Precondition: space is reserved. */
static void record_set(quern_commands *commands, const quern__operation *set, quern_entity member,
                       const void *value)
{
    const quern__operand *operand = &set->operands[0];
    char *space = quern__item_space_find(commands, set);
    if (space == NULL) space = quern__item_space_open(commands, set);
    *quern__item_append(commands, set, space) = (quern__item){.entity = member};
    quern__item_write_value(set, space, 0, value);
    if (QUERN__UNLIKELY(!quern__type_own_provisional(operand->type, space + operand->offset_bytes)))
        quern__commands_fail_memory(commands);
}

/* Records the overrides that the item does not have. */
static void record_sets(const spawning *it)
{
    for (uint32_t i = it->in_item_count; i < it->override_count; i++) {
        const quern__prefab_override *override = &it->overrides[i];
        const quern__prefab_group *group = &it->prefab->groups.items[override->group];
        const uint32_t member = it->prefab->row_members.items[group->first_row + override->row];
        record_set(it->commands, it->sets[i], member_handle(it, member), override->values);
    }
}

/* Finds space for the item, after reserving it for the item and the sets. */
static quern_result reserve_with_sets(const spawning *it, const quern__operation *operation,
                                      const char *function, char **out_space)
{
    uint32_t largest = quern__batch_max_bytes(operation);
    uint64_t bytes = largest;
    for (uint32_t i = it->in_item_count; i < it->override_count; i++) {
        const uint32_t size = quern__batch_max_bytes(it->sets[i]);
        bytes += size;
        if (largest < size) largest = size;
    }
    const quern_result result = quern__item_space_reserve_mixed(it->commands, bytes, largest, function);
    if (result != QUERN_OK) return result;
    *out_space = quern__item_space_find(it->commands, operation);
    if (*out_space == NULL) *out_space = quern__item_space_open(it->commands, operation);
    return QUERN_OK;
}

/* Errors: OUT_OF_MEMORY. */
static quern_result record_instance(const spawning *it, const quern__spawn_variant *variant,
                                    const char *function)
{
    quern_commands *commands = it->commands;
    const quern__operation *operation = variant->operation;
    char *space;
    const quern_result result = QUERN__LIKELY(it->in_item_count == it->override_count)
                                    ? quern__item_space_get(commands, operation, function, &space)
                                    : reserve_with_sets(it, operation, function, &space);
    if (result != QUERN_OK) return result;
    quern__item *item = quern__item_append(commands, operation, space);
    assert(commands->open != NULL);
    *item = (quern__item){.entity = member_handle(it, 0)};
    for (uint32_t i = 0; i < it->in_item_count; i++)
        quern__item_write_value(operation, space, i, it->overrides[i].values);
    if (variant->has_parent) quern__item_write_value(operation, space, it->in_item_count, &it->parent);
    commands->open->create_count += it->prefab->members.count;
    commands->open->member_count += it->prefab->members.count;
    record_sets(it);
    if (QUERN__LIKELY(it->cache->retains_prefab)) return QUERN_OK;
    it->cache->retains_prefab = true; /* until its commands are applied */
    commands->retains_prefabs = true;
    quern__prefab_retain(it->cache->prefab);
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------------- the calls */

/* Checks the definition and copies its overrides and parent to `it`. */
static quern_result check_def(spawning *it, const quern_spawn_def *def, const char *function)
{
    quern_commands *commands = it->commands;
    if (def->fill != NULL || def->fill_components[0].bits != 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "fill is set, but rows do not exist before the sync point: use overrides");
    quern_result result = quern__prefab_resolve_overrides(commands->storage, it->prefab, def, it->overrides,
                                                          &it->override_count);
    for (uint32_t i = 0; i < it->override_count && result == QUERN_OK; i++) {
        const quern__operand operand = {.type = column_of(it->prefab, &it->overrides[i])->type};
        if (operand.type->has_entity_fields)
            result = quern__commands_check_value(commands, &operand, quern_entity_null(),
                                                 it->overrides[i].values, function);
    }
    it->parent = def->parent;
    if (result != QUERN_OK || it->parent.bits == 0) return result;
    if (commands->storage->relations->parent == NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "the world has no parent relation: call quern_world_parent before the frame");
    const quern_result is_alive = quern__commands_check_entity(commands, it->parent, function);
    return is_alive == QUERN_OK ? QUERN_OK : quern__message_add_call(is_alive, "the target", NULL);
}

static quern_result check_outside(const spawning *it)
{
    for (uint32_t i = 0; i < it->prefab->links.count && it->prefab->has_outside; i++) {
        const quern__prefab_link *link = &it->prefab->links.items[i];
        if (link->target != QUERN_NO_MEMBER) continue;
        const quern_result result = quern__entities_check(&it->commands->storage->entities, link->outside);
        if (result != QUERN_OK) return quern__message_add_call(result, "the target of a member", NULL);
    }
    return QUERN_OK;
}

static quern_result record_spawn(spawning *it, quern_prefab handle, const quern_spawn_def *def,
                                 const char *function)
{
    quern_commands *commands = it->commands;
    if (!quern__commands_can_record(commands)) return quern__commands_fail_foreign_use(commands, function);
    quern__prefab *prefab = quern__prefabs_find(commands->storage, handle);
    if (prefab == NULL) return quern__prefabs_fail(commands->storage, handle);
    it->prefab = prefab;
    quern_result result = find_cache(commands, handle, prefab, &it->cache);
    if (result == QUERN_OK) result = check_outside(it);
    if (result == QUERN_OK && def != NULL) result = check_def(it, def, function);
    if (result == QUERN_OK) result = separate_sets(it);
    if (result != QUERN_OK) return result;
    it->first_number = commands->open != NULL ? commands->open->create_count : 0;
    if (prefab->members.count > QUERN_MAX_ENTITIES - it->first_number)
        return quern__fail(QUERN_ERROR_LIMIT,
                           "one callback cannot create more than %u entities: spawn fewer",
                           QUERN_MAX_ENTITIES);
    const quern__spawn_variant *variant = find_variant(it);
    if (variant == NULL) return quern__commands_fail_memory(commands);
    return record_instance(it, variant, function);
}

quern_result quern_commands_spawn(quern_commands *commands, quern_prefab prefab, const quern_spawn_def *def,
                                  quern_entity *out_root)
{
    QUERN__NEED(commands);
    spawning it;
    it.commands = commands;
    it.parent = quern_entity_null();
    it.override_count = it.in_item_count = 0;
    it.first_number = 0;
    const quern_result result = record_spawn(&it, prefab, def, __func__);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return quern__commands_fail(commands, result, __func__);
    if (out_root != NULL) *out_root = member_handle(&it, 0);
    return QUERN_OK;
}

quern_entity quern_commands_spawned_member(const quern_commands *commands, quern_prefab prefab,
                                           quern_entity root, uint32_t member)
{
    QUERN__NEED_OR(commands, quern_entity_null());
    const quern__prefab *found = quern__prefabs_find(commands->storage, prefab);
    const quern_entity entity = {root.bits + member};
    quern_result result = QUERN_OK;
    if (found == NULL)
        result = quern__prefabs_fail(commands->storage, prefab);
    else if (member >= found->members.count)
        result = quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "the prefab has no member %u: it has %u members",
                             member, found->members.count);
    else if (!quern_entity_is_provisional(root) || !quern__commands_have_created(commands, root) ||
             !quern__commands_have_created(commands, entity))
        result = quern__fail(QUERN_ERROR_PROVISIONAL_ENTITY,
                             "the root was not spawned by a command of this callback: pass the handle from "
                             "quern_commands_spawn");
    if (result == QUERN_OK) return entity;
    quern__message_add_call(result, __func__, commands->origin.name);
    return quern_entity_null();
}

/* ---------------------------------------------------------------------------------------------- clones */

/* A clone while it is recorded, with its overrides, which become sets of the copy. */
typedef struct cloning {
    quern_commands *commands;
    const quern_spawn_def *def; /* or NULL */
    const quern__operation *sets[QUERN_MAX_SPAWN_OVERRIDES];
    uint32_t set_count;
} cloning;

static quern_result check_override(cloning *it, const quern__archetype *archetype, uint32_t i,
                                   const char *function)
{
    const quern__storage *storage = it->commands->storage;
    const quern__components *components = &storage->components;
    const quern_spawn_override *given = &it->def->overrides[i];
    quern_result result = quern__components_check(components, given->component);
    if (result != QUERN_OK) return result;
    const uint32_t index = quern__component_index(given->component);
    const quern__type *type = quern__components_type(components, index);
    if (given->member != 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "it is of member %u, but only the root, member 0, is known before the sync point: "
            "capture a prefab and spawn it, to change other members",
            given->member);
    if (type->size_bytes == 0 || quern__components_is_managed(components, index))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "'%s' is a tag or is maintained by the world: override a component with values, "
                           "and set .parent or relate the copy instead",
                           type->name);
    if (given->column == NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "its column is NULL: it must have one value");
    if (!quern__archetype_has(archetype, index))
        return quern__fail(QUERN_ERROR_COMPONENT_ABSENT,
                           "the entity has no '%s': add it to the copy by quern_commands_add", type->name);
    for (uint32_t k = 0; k < i; k++)
        if (it->def->overrides[k].component.bits == given->component.bits)
            return quern__fail(QUERN_ERROR_DUPLICATE_COMPONENT,
                               "override %u is for the same component: keep one", k);
    result = quern__operations_find_single(&it->commands->operations, components, &storage->allocator,
                                           index, QUERN__OPERATION_SET, &it->sets[i]);
    if (result == QUERN_ERROR_OUT_OF_MEMORY) return quern__commands_fail_memory(it->commands);
    if (result != QUERN_OK) return result;
    return quern__commands_check_value(it->commands, &it->sets[i]->operands[0], quern_entity_null(),
                                       given->column, function);
}

static quern_result check_clone_def(cloning *it, const quern__archetype *archetype, const char *function)
{
    const quern_spawn_def *def = it->def;
    const quern__storage *storage = it->commands->storage;
    if (def->fill != NULL || def->fill_components[0].bits != 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "fill is set, but rows do not exist before the sync point: use overrides");
    quern_result result = quern__list_count(def->overrides, QUERN_MAX_SPAWN_OVERRIDES,
                                            quern__is_end_of_overrides, "override", NULL, &it->set_count);
    for (uint32_t i = 0; i < it->set_count && result == QUERN_OK; i++) {
        result = check_override(it, archetype, i, function);
        if (result != QUERN_OK) return quern__message_add_element(result, "override", i);
    }
    if (result != QUERN_OK || def->parent.bits == 0) return result;
    if (storage->relations->parent == NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "the world has no parent relation: call quern_world_parent before the frame");
    result = quern__commands_check_entity(it->commands, def->parent, function);
    return result == QUERN_OK ? QUERN_OK : quern__message_add_call(result, "the target", NULL);
}

/* Records the item and the sets. Nothing is recorded if it fails. Errors: OUT_OF_MEMORY. */
static quern_result record_clone(const cloning *it, const quern__clone_item *item, quern_entity *out_root,
                                 const char *function)
{
    quern_commands *commands = it->commands;
    const quern__operation *operation = &quern__operation_clone;
    uint32_t largest = quern__batch_max_bytes(operation);
    uint64_t bytes = largest;
    char *space = it->set_count == 0 ? quern__item_space_find(commands, operation) : NULL;
    if (space == NULL) {
        for (uint32_t i = 0; i < it->set_count; i++) {
            const uint32_t size = quern__batch_max_bytes(it->sets[i]);
            bytes += size;
            if (largest < size) largest = size;
        }
        const quern_result result = quern__item_space_reserve_mixed(commands, bytes, largest, function);
        if (result != QUERN_OK) return result;
        space = quern__item_space_find(commands, operation);
        if (space == NULL) space = quern__item_space_open(commands, operation);
    }
    quern__clone_item *added = (quern__clone_item *)(void *)quern__item_append(commands, operation, space);
    assert(commands->open != NULL);
    const quern_entity root =
        quern__entity_make(0, commands->origin.serial, commands->open->create_count++);
    *added = *item;
    added->head = (quern__item){.entity = root};
    for (uint32_t i = 0; i < it->set_count; i++)
        record_set(commands, it->sets[i], root, it->def->overrides[i].column);
    *out_root = root;
    return QUERN_OK;
}

quern_result quern_commands_clone(quern_commands *commands, quern_entity entity, const quern_spawn_def *def,
                                  quern_entity *out_root)
{
    QUERN__NEED(commands);
    cloning it = {.commands = commands, .def = def};
    const quern__storage *storage = commands->storage;
    quern__clone_item item = {.entity = entity};
    quern_entity root = quern_entity_null();
    quern_result result = QUERN_OK;
    if (!quern__commands_can_record(commands))
        result = quern__commands_fail_foreign_use(commands, __func__);
    else if (quern__commands_have_created(commands, entity))
        result =
            quern__fail(QUERN_ERROR_PROVISIONAL_ENTITY,
                        "the entity is created by this callback and does not exist before the sync point: "
                        "create it twice, or spawn a prefab twice");
    else
        result = quern__commands_check_entity(commands, entity, __func__);
    if (result == QUERN_OK && commands->open != NULL && commands->open->create_count >= QUERN_MAX_ENTITIES)
        result =
            quern__fail(QUERN_ERROR_LIMIT, "one callback cannot create more than %u entities: clone fewer",
                        QUERN_MAX_ENTITIES);
    if (result == QUERN_OK && def != NULL) {
        const quern__record *record =
            quern__entities_record(&storage->entities, quern_entity_index(entity));
        item.parent = def->parent;
        item.has_parent = 1;
        result = check_clone_def(&it, quern__storage_archetype_of(storage, record), __func__);
    }
    if (result == QUERN_OK) result = record_clone(&it, &item, &root, __func__);
    if (QUERN__UNLIKELY(result != QUERN_OK)) return quern__commands_fail(commands, result, __func__);
    if (out_root != NULL) *out_root = root;
    return QUERN_OK;
}
