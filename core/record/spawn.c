/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Recording spawns (spawn.h): what a recorder caches of each prefab, expanded and compact instances, the calls, and the
 * expansion of compact instances. */
#include "core/record/spawn.h"

#include <quern/prefab.h>

/* An instance while it is recorded. */
typedef struct spawning {
    quern_commands *commands;
    const quern__prefab *prefab;
    quern__spawn_cache *cache;
    quern_entity parent; /* null: the root has no parent */
    quern__prefab_override overrides[QUERN_MAX_SPAWN_OVERRIDES];
    uint32_t override_count;
    uint32_t first_number; /* number of the root, among the creates of the stream */
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
    quern__release(allocator, cache,
                   sizeof *cache + (cache->group_count + 1) * sizeof(const quern__operation *),
                   _Alignof(quern__spawn_cache));
}

void quern__spawns_release(quern_commands *commands)
{
    for (uint32_t i = 0; i < commands->spawns.count; i++)
        release_cache(commands, commands->spawns.items[i]);
    quern__array_release(&commands->storage->allocator, &commands->spawns);
    quern__array_release(&commands->storage->allocator, &commands->spawn_batches);
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

/* Components and values of the creates of a group. Targets of relations other than the parent relation are left
 * out: they may be members that are created later. So are the tags of relations with several targets per source, which
 * follow from edges. */
typedef struct create_list {
    quern_component components[QUERN_MAX_ENTITY_COMPONENTS + 1];
    const void *values[QUERN_MAX_ENTITY_COMPONENTS + 1];
    uint32_t count;
} create_list;

static void list_creates(const quern__storage *storage, const quern__prefab *prefab,
                         const quern__prefab_group *group, create_list *out_list)
{
    uint32_t column_index = 0;
    out_list->count = 0;
    for (uint32_t i = 0; i < group->component_count; i++) {
        const uint16_t index = prefab->component_indices.items[group->first_component + i];
        const quern__prefab_column *column =
            column_index < group->column_count ? &prefab->columns.items[group->first_column + column_index]
                                               : NULL;
        const bool has_values = column != NULL && column->component_index == index;
        const quern__relation *relation = storage->components.list.items[index]->managed.relation;
        const bool is_left_out =
            (has_values && column->is_other_target) || (relation != NULL && relation->is_many);
        const void *values = has_values ? column->values : NULL;
        column_index += has_values;
        if (is_left_out) continue;
        out_list->components[out_list->count] = quern__component_handle(&storage->components, index);
        out_list->values[out_list->count++] = values;
    }
}

/* Returns the kind of the commands that give a member the target of a link. */
static quern__operation_kind link_kind(const quern__relation *relation)
{
    return relation->is_many ? QUERN__OPERATION_ADD_EDGE : QUERN__OPERATION_SET;
}

/* Captured members may have tags managed by the world, such as the one for entities disabled through their
 * parent. */
static quern_result find_create(quern_commands *commands, const create_list *list,
                                const quern__operation **out_operation)
{
    commands->operations.allows_managed = true;
    const quern_result result =
        quern__operations_find_create(&commands->operations, commands->storage, list->components,
                                      list->values, list->count, out_operation);
    commands->operations.allows_managed = false;
    return result;
}

/* Adds the size of `count` items of an expanded instance, each in its own batch. */
static void add_room(quern__spawn_cache *cache, const quern__operation *operation, uint64_t count)
{
    const uint32_t bytes = quern__batch_max_bytes(operation);
    cache->bytes += count * bytes;
    if (cache->largest_bytes < bytes) cache->largest_bytes = bytes;
}

static void add_commands(quern__spawn_cache *cache, const quern__operation *operation, uint64_t count)
{
    add_room(cache, operation, count);
    cache->command_count += (uint32_t)count * operation->command_count;
}

static quern_result fill_cache(quern_commands *commands, const quern__prefab *prefab,
                               quern__spawn_cache *cache)
{
    const quern__storage *storage = commands->storage;
    create_list list;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < cache->group_count && result == QUERN_OK; i++) {
        list_creates(storage, prefab, &prefab->groups.items[i], &list);
        result = find_create(commands, &list, &cache->operations[i]);
        if (result == QUERN_OK) add_commands(cache, cache->operations[i], prefab->groups.items[i].width);
    }
    for (uint32_t i = 0; i < prefab->links.count && result == QUERN_OK; i++) {
        const quern__relation *relation = prefab->links.items[i].relation;
        const quern__operation *operation = NULL;
        if (relation == storage->relations->parent) continue;
        result =
            quern__operations_find_single(&commands->operations, &storage->components, &storage->allocator,
                                          relation->component_index, link_kind(relation), &operation);
        if (result == QUERN_OK) add_commands(cache, operation, 1);
    }
    if (prefab->name_count > 0) add_commands(cache, &quern__operation_name, prefab->name_count);
    for (uint32_t i = 0; i < prefab->toggles.count && result == QUERN_OK; i++) {
        const quern__operation *operation = NULL;
        result = quern__operations_find_single(
            &commands->operations, &storage->components, &storage->allocator,
            prefab->toggles.items[i].component_index, QUERN__OPERATION_DISABLE, &operation);
        if (result == QUERN_OK) add_commands(cache, operation, 1);
    }
    return result;
}

/* Creates the cached data of a prefab, and retires those of an earlier prefab with the same index. Errors:
 * OUT_OF_MEMORY. */
static quern_result create_cache(quern_commands *commands, quern_prefab handle, quern__prefab *prefab,
                                 quern__spawn_cache **out_cache)
{
    const quern_allocator *allocator = &commands->storage->allocator;
    const uint32_t index = (uint32_t)handle.bits, group_count = prefab->groups.count;
    if (!quern__array_reserve(allocator, &commands->spawns, index + 1))
        return quern__commands_fail_memory(commands);
    while (commands->spawns.count <= index)
        commands->spawns.items[commands->spawns.count++] = NULL;
    quern__spawn_cache *cache =
        quern__allocate(allocator, sizeof *cache + (group_count + 1) * sizeof(const quern__operation *),
                        _Alignof(quern__spawn_cache));
    if (cache == NULL) return quern__commands_fail_memory(commands);
    *cache = (quern__spawn_cache){.handle = handle, .prefab = prefab, .group_count = group_count};
    cache->operations[group_count] = NULL;
    const quern_result result = fill_cache(commands, prefab, cache);
    if (result != QUERN_OK) {
        release_cache(commands, cache);
        return result == QUERN_ERROR_OUT_OF_MEMORY ? quern__commands_fail_memory(commands) : result;
    }
    /* the data of the earlier prefab stay while compact instances refer to them */
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

/* Finds or creates the operation for a root with a parent. It replaces the create without a parent, so
 * cache->command_count does not change; besides, compact instances have no parent. */
static quern_result find_related_root(quern_commands *commands, const quern__prefab *prefab,
                                      quern__spawn_cache *cache)
{
    static const quern_entity any;
    const quern__storage *storage = commands->storage;
    const quern__relation *parent = storage->relations->parent;
    create_list list;
    if (cache->operations[cache->group_count] != NULL) return QUERN_OK;
    if (parent == NULL)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "the world has no parent relation: call quern_world_parent before the frame");
    list_creates(storage, prefab, &prefab->groups.items[0], &list);
    list.components[list.count] = quern__component_handle(&storage->components, parent->component_index);
    list.values[list.count++] = &any;
    const quern_result result = find_create(commands, &list, &cache->operations[cache->group_count]);
    if (result == QUERN_OK) add_room(cache, cache->operations[cache->group_count], 1);
    return result;
}

/* ------------------------------------------------------------------------------------------ recording */

static quern_entity member_handle(const spawning *it, uint32_t member)
{
    return quern__entity_make(0, it->commands->origin.serial, it->first_number + member);
}

static char *open_space(quern_commands *commands, const quern__operation *operation)
{
    char *space = quern__item_space_find(commands, operation);
    return QUERN__LIKELY(space != NULL) ? space : quern__item_space_open(commands, operation);
}

/* Returns NULL if no override applies, so that the captured value is used. */
static const char *overridden_value(const spawning *it, const quern__prefab_member *member, uint32_t column)
{
    for (uint32_t i = 0; i < it->override_count; i++) {
        const quern__prefab_override *override = &it->overrides[i];
        if (override->group == member->group && override->row == member->row && override->column == column)
            return override->values;
    }
    return NULL;
}

/* Writes the values of a member. Columns and operands have the same order, so the search for an operand
 * continues from the previous one. */
static void write_columns(const spawning *it, const quern__prefab_member *member,
                          const quern__operation *operation, char *item)
{
    const quern__prefab_group *group = &it->prefab->groups.items[member->group];
    uint32_t operand = 0;
    quern__item_clear_owned(operation, item);
    for (uint32_t i = 0; i < group->column_count; i++) {
        const quern__prefab_column *column = &it->prefab->columns.items[group->first_column + i];
        if (column->is_other_target) continue;
        while (operation->operands[operand].component_index != column->component_index)
            operand++;
        const char *value = column->values + (size_t)member->row * column->size_bytes;
        if (it->override_count > 0) {
            const char *other = overridden_value(it, member, i);
            if (other != NULL) value = other;
        }
        if (QUERN__LIKELY(column->is_plain && !operation->has_destroy))
            quern__copy_value(item + operation->operands[operand].offset_bytes, value, column->size_bytes);
        else
            quern__item_write_value(operation, item, operand, value);
    }
}

/* Replaces handles of captured members in the values by handles of the instance's members. Values from
 * overrides stay as they are. */
static void write_fields(const spawning *it, const quern__prefab_member *member,
                         const quern__operation *operation, char *item)
{
    const quern__prefab_group *group = &it->prefab->groups.items[member->group];
    const quern__prefab_column *columns = it->prefab->columns.items + group->first_column;
    const quern__prefab_field *field = it->prefab->fields.items + member->first_field;
    uint32_t operand = 0;
    for (const quern__prefab_field *end = field + member->field_count; field < end; field++) {
        const quern__prefab_column *column = &columns[field->column];
        if (column->is_other_target) continue;
        if (it->override_count > 0 && overridden_value(it, member, field->column) != NULL) continue;
        while (operation->operands[operand].component_index != column->component_index)
            operand++;
        const quern_entity handle = member_handle(it, field->member);
        memcpy(item + operation->operands[operand].offset_bytes + field->offset_bytes, &handle,
               sizeof handle);
    }
}

static void record_create(const spawning *it, uint32_t i)
{
    const quern__prefab_member *member = &it->prefab->members.items[i];
    const bool has_parent = i == 0 && it->parent.bits != 0;
    const quern__operation *operation =
        it->cache->operations[has_parent ? it->cache->group_count : member->group];
    char *space = open_space(it->commands, operation);
    *quern__item_append(it->commands, operation, space) = (quern__item){.entity = member_handle(it, i)};
    write_columns(it, member, operation, space);
    if (member->field_count > 0) write_fields(it, member, operation, space);
    if (has_parent)
        memcpy(space + operation->operands[operation->operand_count - 1].offset_bytes, &it->parent,
               sizeof it->parent);
}

/* The operations exist since the cached data of the prefab was created, so finding them cannot fail. */
static void record_relates(const spawning *it)
{
    quern_commands *commands = it->commands;
    const quern__storage *storage = commands->storage;
    for (uint32_t i = 0; i < it->prefab->links.count; i++) {
        const quern__prefab_link *link = &it->prefab->links.items[i];
        const quern__operation *operation = NULL;
        if (link->relation == storage->relations->parent) continue;
        quern__operations_find_single(&commands->operations, &storage->components, &storage->allocator,
                                      link->relation->component_index, link_kind(link->relation),
                                      &operation);
        assert(operation != NULL);
        const quern_entity target =
            link->target != QUERN_NO_MEMBER ? member_handle(it, link->target) : link->outside;
        char *space = open_space(commands, operation);
        *quern__item_append(commands, operation, space) =
            (quern__item){.entity = member_handle(it, link->source)};
        memcpy(space + operation->operands[0].offset_bytes, &target, sizeof target);
    }
}

static void record_names(const spawning *it)
{
    const quern__operation *operation = &quern__operation_name;
    for (uint32_t i = 0; i < it->prefab->members.count; i++) {
        const uint32_t at = it->prefab->members.items[i].name;
        if (at == QUERN_NO_MEMBER) continue;
        const char *name = it->prefab->names.items + at;
        char *space = open_space(it->commands, operation);
        quern__item *item = quern__item_append(it->commands, operation, space);
        *item = (quern__item){.entity = member_handle(it, i)};
        memcpy(item + 1, name, strlen(name) + 1);
    }
}

static void record_toggles(const spawning *it)
{
    quern_commands *commands = it->commands;
    const quern__storage *storage = commands->storage;
    for (uint32_t i = 0; i < it->prefab->toggles.count; i++) {
        const quern__prefab_toggle *toggle = &it->prefab->toggles.items[i];
        const quern__operation *operation = NULL;
        quern__operations_find_single(&commands->operations, &storage->components, &storage->allocator,
                                      toggle->component_index, QUERN__OPERATION_DISABLE, &operation);
        assert(operation != NULL);
        char *space = open_space(commands, operation);
        *quern__item_append(commands, operation, space) =
            (quern__item){.entity = member_handle(it, toggle->member)};
    }
}

/* Records an expanded instance. Its members have the numbers from first_number on; the caller counts them as
 * creates of the stream. Errors: OUT_OF_MEMORY. */
static quern_result record_expanded(const spawning *it, const char *function)
{
    const quern_result result =
        quern__item_space_reserve_mixed(it->commands, it->cache->bytes, it->cache->largest_bytes, function);
    if (result != QUERN_OK) return result;
    for (uint32_t i = 0; i < it->prefab->members.count; i++)
        record_create(it, i);
    if (it->prefab->has_other_links) record_relates(it);
    if (it->prefab->name_count > 0) record_names(it);
    if (it->prefab->toggles.count > 0) record_toggles(it);
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
        const quern__prefab_override *override = &it->overrides[i];
        const quern__prefab_group *group = &it->prefab->groups.items[override->group];
        const quern__operand operand = {
            .type = it->prefab->columns.items[group->first_column + override->column].type};
        result = quern__commands_check_value(commands, &operand, quern_entity_null(), override->values,
                                             function);
    }
    it->parent = def->parent;
    if (result != QUERN_OK || it->parent.bits == 0) return result;
    result = find_related_root(commands, it->prefab, it->cache);
    if (result != QUERN_OK) return result;
    const quern__operation *root = it->cache->operations[it->cache->group_count];
    return quern__commands_check_value(commands, &root->operands[root->operand_count - 1],
                                       quern_entity_null(), &it->parent, function);
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

/* Instances with larger override values are expanded. */
enum { MOST_OVERRIDE_BYTES = 4096 };

static const quern__prefab_column *column_of(const quern__prefab *prefab,
                                             const quern__prefab_override *override)
{
    return &prefab->columns.items[prefab->groups.items[override->group].first_column + override->column];
}

/* Whether the instance can have the compact form, which record_compact requires. */
static bool can_be_compact(const spawning *it)
{
    size_t bytes = 0;
    if (it->parent.bits != 0 || it->prefab->has_outside || it->prefab->has_edges) return false;
    for (uint32_t i = 0; i < it->override_count; i++) {
        const quern__type *type = column_of(it->prefab, &it->overrides[i])->type;
        if (quern__hooks_exist(&type->hooks) || type->has_entity_fields) return false;
        bytes += type->size_bytes + type->alignment_bytes;
    }
    return bytes <= MOST_OVERRIDE_BYTES;
}

static bool overrides_match(const quern__spawn_variant *variant, const spawning *it)
{
    if (variant->override_count != it->override_count) return false;
    for (uint32_t i = 0; i < it->override_count; i++)
        if (variant->overrides[i].group != it->overrides[i].group ||
            variant->overrides[i].row != it->overrides[i].row ||
            variant->overrides[i].column != it->overrides[i].column)
            return false;
    return true;
}

/* Creates the variant for the overrides of this instance. Returns NULL if out of memory. */
static quern__spawn_variant *add_variant(const spawning *it)
{
    const quern__storage *storage = it->commands->storage;
    uint16_t components[QUERN_MAX_SPAWN_OVERRIDES];
    quern__spawn_variant *variant =
        quern__allocate(&storage->allocator, sizeof *variant, _Alignof(quern__spawn_variant));
    if (variant == NULL) return NULL;
    *variant = (quern__spawn_variant){
        .cache = it->cache, .next = it->cache->variants, .override_count = it->override_count};
    for (uint32_t i = 0; i < it->override_count; i++) {
        variant->overrides[i] = it->overrides[i];
        components[i] = column_of(it->prefab, &it->overrides[i])->component_index;
    }
    variant->operation =
        quern__operation_create_spawn(&storage->components, &storage->allocator, components,
                                      it->override_count, it->cache->command_count);
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

/* Records an instance in the compact form. Errors: OUT_OF_MEMORY. */
static quern_result record_compact(const spawning *it, const char *function)
{
    quern_commands *commands = it->commands;
    const quern__spawn_variant *variant = find_variant(it);
    if (variant == NULL) return quern__commands_fail_memory(commands);
    const quern__operation *operation = variant->operation;
    const bool is_first = commands->open == NULL || !QUERN__MAY(commands->open->traits, SPAWNS);
    if (is_first) commands->spawn_batches.count = 0;
    const uint32_t batch_count = commands->spawn_batches.count;
    if (!quern__array_reserve(&commands->storage->allocator, &commands->spawn_batches, batch_count + 1))
        return quern__commands_fail_memory(commands);
    char *space;
    const quern_result result = quern__item_space_get(commands, operation, function, &space);
    if (result != QUERN_OK) return result;
    quern__item *item = quern__item_append(commands, operation, space);
    assert(commands->open != NULL);
    *item = (quern__item){.entity = quern__entity_make(0, commands->origin.serial, it->first_number)};
    for (uint32_t i = 0; i < it->override_count; i++)
        quern__item_write_value(operation, space, i, it->overrides[i].values);
    if (commands->batch->item_count == 1)
        commands->spawn_batches.items[commands->spawn_batches.count++] =
            (quern__spawn_batch){.batch = commands->batch, .first_number = it->first_number};
    commands->open->create_count += it->prefab->members.count;
    if (QUERN__LIKELY(it->cache->retains_prefab)) return QUERN_OK;
    it->cache->retains_prefab = true; /* until its commands are applied */
    commands->retains_prefabs = true;
    quern__prefab_retain(it->cache->prefab);
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
    if (result != QUERN_OK) return result;
    const uint32_t count = prefab->members.count;
    it->first_number = commands->open != NULL ? commands->open->create_count : 0;
    if (count > QUERN_MAX_ENTITIES - it->first_number)
        return quern__fail(QUERN_ERROR_LIMIT,
                           "one callback cannot create more than %u entities: spawn fewer",
                           QUERN_MAX_ENTITIES);
    if (can_be_compact(it)) return record_compact(it, function);
    result = record_expanded(it, function);
    if (result != QUERN_OK) return result;
    assert(commands->open != NULL);
    commands->open->create_count += count;
    return QUERN_OK;
}

quern_result quern_commands_spawn(quern_commands *commands, quern_prefab prefab, const quern_spawn_def *def,
                                  quern_entity *out_root)
{
    QUERN__NEED(commands);
    spawning it;
    it.commands = commands;
    it.parent = quern_entity_null();
    it.override_count = 0;
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

quern_entity quern_commands_spawned_part(const quern_commands *commands, quern_prefab prefab,
                                         quern_entity root, quern_component slot)
{
    QUERN__NEED_OR(commands, quern_entity_null());
    const quern__components *components = &commands->storage->components;
    const quern__prefab *found = quern__prefabs_find(commands->storage, prefab);
    quern_result result = found != NULL ? quern__components_check(components, slot)
                                        : quern__prefabs_fail(commands->storage, prefab);
    if (result == QUERN_OK) {
        const uint32_t member = quern__prefab_find_slot(found, quern__component_index(slot));
        if (member != QUERN_NO_MEMBER) return quern_commands_spawned_member(commands, prefab, root, member);
        result =
            quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                        "the prefab has no part in slot '%s': set the slot of the root before capturing",
                        quern__components_type(components, quern__component_index(slot))->name);
    }
    quern__message_add_call(result, __func__, commands->origin.name);
    return quern_entity_null();
}

/* ------------------------------------------------------------------------------------------- expanding */

/* Returns the last batch that starts at this number or a lower one, or NULL. */
static const quern__spawn_batch *find_batch(const quern_commands *commands, uint32_t number)
{
    uint32_t begin = 0, end = commands->spawn_batches.count;
    while (begin < end) {
        const uint32_t middle = begin + (end - begin) / 2;
        if (commands->spawn_batches.items[middle].first_number <= number)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin > 0 ? &commands->spawn_batches.items[begin - 1] : NULL;
}

static quern_result expand_item(quern_commands *commands, const quern__operation *operation,
                                quern__item *item, const char *function)
{
    const quern__spawn_variant *variant = operation->variant;
    spawning it = {.commands = commands,
                   .prefab = variant->cache->prefab,
                   .cache = variant->cache,
                   .override_count = variant->override_count,
                   .first_number = quern_entity_index(item->entity)};
    for (uint32_t i = 0; i < variant->override_count; i++) {
        it.overrides[i] = variant->overrides[i];
        it.overrides[i].values = (const char *)item + operation->operands[i].offset_bytes;
    }
    const quern_result result = record_expanded(&it, function);
    if (result != QUERN_OK) return result;
    item->entity = quern_entity_null();
    /* The expanded creates count as commands of their own. */
    commands->open->command_count -= operation->command_count;
    /* Creates are no longer in the order of their numbers. */
    commands->open->traits &= (uint8_t)~QUERN__TRAIT_DESTROY_OR_CREATE;
    return QUERN_OK;
}

quern_result quern__spawn_expand(quern_commands *commands, quern_entity entity, const char *function)
{
    const uint32_t number = quern_entity_index(entity);
    const quern__spawn_batch *found = find_batch(commands, number);
    if (found == NULL) return QUERN_OK;
    const quern__operation *operation = found->batch->operation;
    const uint32_t i = (number - found->first_number) / quern__spawn_member_count(operation);
    /* an entity created after the instances of this batch */
    if (i >= found->batch->item_count) return QUERN_OK;
    quern__item *item = quern__batch_item(found->batch, i);
    return quern_entity_is_null(item->entity) ? QUERN_OK : expand_item(commands, operation, item, function);
}
