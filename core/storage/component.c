/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/component_internal.h"

#include "core/base/registry.h"
#include "core/storage/required.h"

static const quern__registry registry = QUERN__REGISTRY_OF_POINTERS(
    "component", "world", QUERN_MAX_COMPONENTS, QUERN_ERROR_UNKNOWN_COMPONENT, quern__component, type.name);

quern_component quern__component_handle(const quern__components *components, uint32_t index)
{
    return (quern_component){.bits = components->first_bits + index};
}

quern_result quern__components_fail_unknown(const quern__components *components, quern_component component)
{
    return quern__registry_fail_unknown(&registry, component.bits, components->first_bits >> 24);
}

quern_component quern__components_find(const quern__components *components, const char *name)
{
    const uint32_t count = components->list.count;
    uint32_t i = quern__registry_find(&registry, components->list.items, 0, count, name);
    while (i < count && components->list.items[i]->managed.is_hidden)
        i = quern__registry_find(&registry, components->list.items, i + 1, count, name);
    return i < count ? quern__component_handle(components, i) : (quern_component){0};
}

quern_result quern__components_check_flag(const quern__components *components, uint32_t index,
                                          uint32_t flag)
{
    if (flag == 0 || quern__components_has_flag(components, index, flag)) return QUERN_OK;
    const quern__column_flag *row = &quern__column_flags[quern__lowest_bit_32(flag)];
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "component '%s' %s: it was registered without %s",
                       quern__components_type(components, index)->name, row->without, row->name);
}

static void component_release(quern__component *component, const quern_allocator *allocator)
{
    quern__type_release(&component->type, allocator);
    quern__array_release(allocator, &component->archetypes);
    quern__array_release(allocator, &component->listed_required);
    quern__array_release(allocator, &component->required);
    quern__release(allocator, component, sizeof *component, _Alignof(quern__component));
}

void quern__components_release(quern__components *components, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < components->list.count; i++)
        component_release(components->list.items[i], allocator);
    quern__array_release(allocator, &components->list);
}

static uint8_t flags_of(const quern_component_def *def)
{
    uint8_t flags = 0;
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++) {
        const quern__column_flag *flag = &quern__column_flags[i];
        bool is_set;
        memcpy(&is_set, (const char *)def + flag->def_offset_bytes, sizeof is_set);
        if (is_set) flags |= flag->bit;
    }
    return flags;
}

static quern_result check_same_flags(const quern__type *known, uint8_t flags)
{
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++) {
        const quern__column_flag *flag = &quern__column_flags[i];
        if (flag->is_layout && ((known->flags ^ flags) & flag->bit) != 0)
            return quern__fail(
                QUERN_ERROR_LAYOUT_MISMATCH,
                "component '%s' is registered as one that %s (%s): register the same definition",
                known->name, (known->flags & flag->bit) != 0 ? flag->with : flag->without, flag->name);
    }
    return QUERN_OK;
}

static quern_result check_same_required(const quern__component *known, const quern__component *definition)
{
    const uint32_t count = known->required.count;
    if (definition->required.count == count &&
        (count == 0 || memcmp(known->required.items, definition->required.items,
                              count * sizeof *known->required.items) == 0))
        return QUERN_OK;
    return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                       "component '%s' is registered with other required components: register the same "
                       "definition",
                       known->type.name);
}

/* Handles the registration of a known name: returns the known component if the definitions agree. The caller releases
 * the new one. Errors: LAYOUT_MISMATCH. */
static quern_result check_known(const quern__components *components, quern_component known,
                                const quern__component *definition, quern_component *out_component)
{
    const quern__type *type = quern__components_type(components, quern__component_index(known));
    if (quern__components_is_managed(components, quern__component_index(known)))
        return quern__fail(QUERN_ERROR_LAYOUT_MISMATCH,
                           "component '%s' exists already and is managed by the world, for a relation or "
                           "internally: use another name",
                           type->name);
    quern_result result = check_same_flags(type, definition->type.flags);
    if (result == QUERN_OK)
        result = check_same_required(components->list.items[quern__component_index(known)], definition);
    if (result != QUERN_OK) return result;
    *out_component = known;
    return quern__type_check_same_layout(type, &definition->type, registry.what);
}

static quern_result append(quern__components *components, const quern_allocator *allocator,
                           quern__component *component, quern_component *out_component)
{
    const quern_result result =
        quern__registry_reserve(&registry, allocator, &components->list, component->type.name);
    if (result != QUERN_OK) return result;
    components->list.items[components->list.count++] = component;
    components->has_requirements |= component->required.count > 0;
    if (components->largest_bytes < component->type.size_bytes)
        components->largest_bytes = component->type.size_bytes;
    *out_component = quern__component_handle(components, components->list.count - 1);
    return QUERN_OK;
}

/* Copies the default value of a definition. Errors: INVALID_ARGUMENT, PROVISIONAL_ENTITY, OUT_OF_MEMORY. */
static quern_result set_default(quern__component *component, const quern_allocator *allocator,
                                const void *value)
{
    quern__type *type = &component->type;
    if (value == NULL) return QUERN_OK;
    if (type->size_bytes == 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%s' is a tag (0 bytes) with a default value: set default_value to NULL",
            type->name);
    if (type->hooks.destroy != NULL && type->hooks.copy == NULL)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%s' has a destroy hook and no copy hook, so its default value cannot "
            "be copied to entities: give the type a copy hook",
            type->name);
    const quern_result result =
        quern__type_check_provisional(type, value, 1, "a command for each entity instead");
    return result == QUERN_OK ? quern__type_set_default(type, allocator, value) : result;
}

static quern_result init(quern__component *component, const quern_allocator *allocator,
                         const quern_component_def *def, uint32_t filter_count)
{
    *component = (quern__component){.filter_count = filter_count};
    if (def->name != NULL && def->size_bytes > QUERN_MAX_COMPONENT_BYTES)
        return quern__fail(
            QUERN_ERROR_COMPONENT_TOO_LARGE,
            "component '%.63s' has %u bytes; the limit is %d (QUERN_MAX_COMPONENT_BYTES): keep "
            "large data elsewhere and a pointer or index in the component",
            def->name, def->size_bytes, QUERN_MAX_COMPONENT_BYTES);
    if (def->size_bytes == 0 && quern__hooks_exist(&def->hooks))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%.63s' is a tag (0 bytes) with hooks, which would never run: remove the "
            "hooks, or give the component a size",
            def->name ? def->name : "");
    quern_result result = quern__type_init(
        &component->type, allocator, "component", def->name, def->type_name, def->size_bytes,
        def->alignment_bytes ? def->alignment_bytes : 1, &def->hooks, def->fields);
    if (result == QUERN_OK && def->size_bytes % component->type.alignment_bytes != 0)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "component '%s' has %u bytes, which is not a multiple of its alignment %u: pad it", def->name,
            def->size_bytes, def->alignment_bytes);
    component->type.flags = flags_of(def);
    return result == QUERN_OK ? set_default(component, allocator, def->default_value) : result;
}

quern_result quern__components_register(quern__components *components, const quern_allocator *allocator,
                                        const quern_component_def *def, quern_component *out_component)
{
    quern__component *component = quern__allocate(allocator, sizeof *component, _Alignof(quern__component));
    if (component == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to register a component");
    quern_result result = init(component, allocator, def, components->first_filter_count);
    if (result == QUERN_OK) result = quern__component_set_required(component, allocator, components, def);
    if (result == QUERN_OK) {
        quern_component known = quern__components_find(components, component->type.name);
        if (known.bits == 0) {
            result = append(components, allocator, component, out_component);
            if (result == QUERN_OK) return QUERN_OK;
        } else {
            result = check_known(components, known, component, out_component);
        }
    }
    component_release(component, allocator);
    return result;
}

quern_result quern__components_add_managed(quern__components *components, const quern_allocator *allocator,
                                           const quern_component_def *def, const quern__managed *managed)
{
    quern__component *component = quern__allocate(allocator, sizeof *component, _Alignof(quern__component));
    if (component == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "component '%s': no memory to register it",
                           def->name);
    quern_component ignored;
    quern_result result = init(component, allocator, def, components->first_filter_count);
    if (result == QUERN_OK) result = append(components, allocator, component, &ignored);
    if (result != QUERN_OK) {
        component_release(component, allocator);
        return result;
    }
    component->is_managed = true;
    component->managed = *managed;
    return QUERN_OK;
}

void quern__components_drop_last(quern__components *components, const quern_allocator *allocator,
                                 uint32_t count)
{
    while (components->list.count > count)
        component_release(components->list.items[--components->list.count], allocator);
}
