/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/required.h"

#include "core/base/bitset.h"
#include "core/base/hash.h"
#include "core/storage/storage.h"

enum { SET_WORDS = QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS) };

static bool is_end_of_required(const void *list, uint32_t i)
{
    return ((const quern_component *)list)[i].bits == 0;
}

static quern_result check_required(const quern__components *components, const quern_component_def *def,
                                   uint32_t i)
{
    const quern_result result = quern__components_check(components, def->required[i]);
    if (result != QUERN_OK) return quern__message_add_element(result, "required", i);
    const uint32_t index = quern__component_index(def->required[i]);
    if (quern__components_is_managed(components, index))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "component '%.63s' cannot require '%s', which the world adds and removes by "
                           "itself: remove it from the list",
                           def->name, quern__components_type(components, index)->name);
    for (uint32_t k = 0; k < i; k++)
        if (def->required[k].bits == def->required[i].bits)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "component '%.63s' requires '%s' twice: list each component once", def->name,
                               quern__components_type(components, index)->name);
    return QUERN_OK;
}

static quern_result store_required(quern__component *component, const quern_allocator *allocator,
                                   const quern__components *components, const quern_component *list,
                                   uint32_t count)
{
    uint64_t set[SET_WORDS] = {0};
    uint16_t indices[QUERN_MAX_COMPONENTS];
    for (uint32_t i = 0; i < count; i++)
        quern__bitset_add(set, quern__component_index(list[i]));
    if (components->has_requirements) quern__components_add_required(components, set, set);
    const uint32_t all_count = quern__bitset_list(set, SET_WORDS, indices);
    if (!quern__array_reserve(allocator, &component->listed_required, count) ||
        !quern__array_reserve(allocator, &component->required, all_count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "'%s': no memory for %u required components",
                           component->type.name, count);
    memcpy(component->listed_required.items, list, count * sizeof *list);
    memcpy(component->required.items, indices, all_count * sizeof *indices);
    component->listed_required.count = count;
    component->required.count = all_count;
    return QUERN_OK;
}

quern_result quern__component_set_required(quern__component *component, const quern_allocator *allocator,
                                           const quern__components *components,
                                           const quern_component_def *def)
{
    uint32_t count = 0;
    quern_result result = quern__list_count(def->required, QUERN_MAX_REQUIRED, is_end_of_required,
                                            "required component", def->name, &count);
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++)
        result = check_required(components, def, i);
    if (result != QUERN_OK || count == 0) return result;
    return store_required(component, allocator, components, def->required, count);
}

void quern__components_add_required(const quern__components *components, const uint64_t *set,
                                    uint64_t *required)
{
    for (uint32_t word = 0; word < SET_WORDS; word++)
        for (uint64_t left = set[word]; left != 0;) {
            const uint32_t index = word * 64 + quern__bitset_pop_lowest(&left);
            const quern__component *component = components->list.items[index];
            for (uint32_t i = 0; i < component->required.count; i++)
                quern__bitset_add(required, component->required.items[i]);
        }
}

uint32_t quern__components_complete(const quern__components *components, uint16_t *set, uint32_t count)
{
    if (QUERN__LIKELY(!components->has_requirements)) return count;
    uint64_t bits[SET_WORDS] = {0};
    for (uint32_t i = 0; i < count; i++)
        quern__bitset_add(bits, set[i]);
    quern__components_add_required(components, bits, bits);
    return quern__bitset_list(bits, SET_WORDS, set);
}

static bool requires(const quern__component *component, uint32_t component_index)
{
    for (uint32_t i = 0; i < component->required.count; i++)
        if (component->required.items[i] == component_index) return true;
    return false;
}

uint32_t quern__components_find_requiring(const quern__components *components, const uint16_t *set,
                                          uint32_t count, uint32_t component_index)
{
    for (uint32_t i = 0; i < count && components->has_requirements; i++)
        if (requires(components->list.items[set[i]], component_index)) return set[i];
    return QUERN__NO_COMPONENT;
}

uint32_t quern__component_required_hash(const quern__component *component)
{
    uint64_t hash = component->required.count;
    if (hash == 0) return 0;
    for (uint32_t i = 0; i < component->required.count; i++)
        hash = quern__hash_word(hash, component->required.items[i]);
    return (uint32_t)(hash >> 32) | 1;
}
