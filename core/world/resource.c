/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/resource.h"

#include "core/base/registry.h"
#include "core/storage/fill.h"

enum { DEFAULT_ALIGNMENT_BYTES = 16 };

static const quern__registry registry = QUERN__REGISTRY_OF_ITEMS(
    "resource", "world", QUERN_MAX_RESOURCES, QUERN_ERROR_UNKNOWN_RESOURCE, quern__resource, type.name);

static quern_resource handle_of(const quern__resources *resources, uint32_t index)
{
    return (quern_resource){.bits = quern__handle_bits(resources->world_tag, index)};
}

quern_result quern__resources_check(const quern__resources *resources, quern_resource resource)
{
    if (quern__handle_is_valid(resource.bits, resources->world_tag, resources->list.count)) return QUERN_OK;
    return quern__registry_fail_unknown(&registry, resource.bits, resources->world_tag);
}

quern_resource quern__resources_find(const quern__resources *resources, const char *name)
{
    const uint32_t count = resources->list.count;
    const uint32_t i = quern__registry_find(&registry, resources->list.items, 0, count, name);
    return i < count ? handle_of(resources, i) : (quern_resource){0};
}

static size_t value_bytes(const quern__type *type)
{
    return quern__align_up(type->size_bytes, QUERN_MAX_ALIGNMENT_BYTES);
}

static void resource_release(quern__resource *resource, const quern_allocator *allocator)
{
    quern__release(allocator, resource->value, value_bytes(&resource->type), QUERN_MAX_ALIGNMENT_BYTES);
    quern__type_release(&resource->type, allocator);
}

void quern__resources_release(quern__resources *resources, const quern_allocator *allocator)
{
    for (uint32_t i = 0; i < resources->list.count; i++) {
        quern__resource *resource = &resources->list.items[i];
        quern__type_destroy(&resource->type, resource->value, 1);
        resource_release(resource, allocator);
    }
    quern__array_release(allocator, &resources->list);
}

static quern_result init_type(quern__type *type, const quern_allocator *allocator,
                              const quern_resource_def *def)
{
    const uint32_t alignment_bytes = def->alignment_bytes ? def->alignment_bytes : DEFAULT_ALIGNMENT_BYTES;
    const quern_result result =
        quern__type_init(type, allocator, "resource", def->name, def->type_name, def->size_bytes,
                         alignment_bytes, &def->hooks, def->fields);
    if (result == QUERN_OK) type->flags = def->is_hidden ? QUERN__FLAG_IS_HIDDEN : 0;
    return result;
}

/* Checks a definition against the registered resource of the same name. Fails with LAYOUT_MISMATCH. */
static quern_result check_known(const quern__type *known, const quern_allocator *allocator,
                                const quern_resource_def *def)
{
    quern__type type;
    quern_result result = init_type(&type, allocator, def);
    if (result != QUERN_OK) return result;
    result = quern__type_check_same_layout(known, &type, registry.what);
    quern__type_release(&type, allocator);
    return result;
}

static quern_result append(quern__resources *resources, const quern_allocator *allocator,
                           const quern_resource_def *def)
{
    quern__resource resource = {0};
    if (def->size_bytes == 0)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT, "resource '%s' has 0 bytes: set size_bytes",
                           def->name);
    quern_result result = quern__registry_reserve(&registry, allocator, &resources->list, def->name);
    if (result == QUERN_OK) result = init_type(&resource.type, allocator, def);
    if (result != QUERN_OK) return result;
    resource.value = quern__allocate(allocator, value_bytes(&resource.type), QUERN_MAX_ALIGNMENT_BYTES);
    if (resource.value == NULL) {
        resource_release(&resource, allocator);
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "resource '%s': no memory for its %u bytes",
                           def->name, def->size_bytes);
    }
    quern__fill_values(&resource.type, resource.value, def->value, 1);
    resources->list.items[resources->list.count++] = resource;
    return QUERN_OK;
}

quern_result quern__resources_register(quern__resources *resources, const quern_allocator *allocator,
                                       const quern_resource_def *def, quern_resource *out_resource)
{
    quern_result result = quern__check_name(def->name, "resource");
    if (result != QUERN_OK) return result;
    const quern_resource known = quern__resources_find(resources, def->name);
    if (known.bits == 0) {
        result = append(resources, allocator, def);
        if (result == QUERN_OK) *out_resource = handle_of(resources, resources->list.count - 1);
        return result;
    }
    result = check_known(&resources->list.items[quern__resource_index(known)].type, allocator, def);
    if (result == QUERN_OK) *out_resource = known;
    return result;
}
