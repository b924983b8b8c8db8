/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/record/item_write.h"
#include "core/record/spawn.h"

/* Instances with larger override values are expanded. */
enum { MOST_OVERRIDE_BYTES = 4096 };

/* --------------------------------------------------------------------------------------------- variants */

static const quern__prefab_column *column_of(const quern__prefab *prefab,
                                             const quern__prefab_override *override)
{
    return &prefab->columns.items[prefab->groups.items[override->group].first_column + override->column];
}

void quern__spawn_cache_release(const quern_commands *commands, quern__spawn_cache *cache)
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

static bool overrides_match(const quern__spawn_variant *variant, const quern__spawning *it)
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
static quern__spawn_variant *add_variant(const quern__spawning *it)
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

static inline quern__spawn_variant *find_variant(const quern__spawning *it)
{
    for (quern__spawn_variant *variant = it->cache->variants; variant != NULL; variant = variant->next)
        if (overrides_match(variant, it)) return variant;
    return add_variant(it);
}

/* ------------------------------------------------------------------------------------------- compact instances */

bool quern__spawn_can_be_compact(const quern__spawning *it)
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

/* Retains the prefab until its commands are applied. */
static inline void retain_prefab(const quern__spawning *it)
{
    if (QUERN__LIKELY(it->cache->retains_prefab)) return;
    it->cache->retains_prefab = true;
    it->commands->retains_prefabs = true;
    quern__prefab_retain(it->cache->prefab);
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
        quern__spawn_cache_release(commands, cache);
    }
    commands->old_spawn_caches = NULL;
    commands->retains_prefabs = false;
}

quern_result quern__spawn_record_compact(const quern__spawning *it, const char *function)
{
    quern_commands *commands = it->commands;
    const quern__spawn_variant *variant = find_variant(it);
    if (variant == NULL) return quern__commands_fail_memory(commands);
    const quern__operation *operation = variant->operation;
    const bool is_first = commands->open == NULL || (commands->open->traits & QUERN__TRAIT_NO_SPAWNS) != 0;
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
    retain_prefab(it);
    return QUERN_OK;
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
    quern__spawning it = {.commands = commands,
                          .prefab = variant->cache->prefab,
                          .cache = variant->cache,
                          .override_count = variant->override_count,
                          .first_number = quern_entity_index(item->entity)};
    for (uint32_t i = 0; i < variant->override_count; i++) {
        it.overrides[i] = variant->overrides[i];
        it.overrides[i].values = (const char *)item + operation->operands[i].offset_bytes;
    }
    const quern_result result = quern__spawn_record_expanded(&it, function);
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
