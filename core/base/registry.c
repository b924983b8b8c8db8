/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/registry.h"

static const char *name_at(const quern__registry *registry, const void *items, uint32_t i)
{
    const void *item = (const char *)items + (size_t)i * registry->item_bytes;
    if (registry->holds_pointers) memcpy(&item, item, sizeof item);
    return (const char *)item + registry->name_offset_bytes;
}

uint32_t quern__registry_find(const quern__registry *registry, const void *items, uint32_t first,
                              uint32_t count, const char *name)
{
    uint32_t i = first;
    while (i < count && strcmp(name_at(registry, items, i), name) != 0)
        i++;
    return i;
}

quern_result quern__registry_check_new(const quern__registry *registry, const void *items, uint32_t count,
                                       const char *name)
{
    const quern_result result = quern__check_name(name, registry->what);
    if (result != QUERN_OK || quern__registry_find(registry, items, 0, count, name) == count) return result;
    return quern__fail(QUERN_ERROR_DUPLICATE_NAME, "the %s already has a %s '%s': choose another name",
                       registry->owner, registry->what, name);
}

quern_result quern__registry_fail_full(const quern__registry *registry, const char *name)
{
    return quern__fail(QUERN_ERROR_LIMIT, "%s '%s': the %s has %u already (%s): register fewer",
                       registry->what, name, registry->owner, registry->limit, registry->limit_name);
}

quern_result quern__registry_fail_memory(const quern__registry *registry, const char *name)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s '%s': no memory to register it", registry->what,
                       name);
}

quern_result(quern__registry_fail_unknown)(const quern__registry *registry, uint32_t handle_bits,
                                           uint32_t world_tag)
{
    if (handle_bits == 0)
        return quern__fail(registry->unknown_error, "the %s handle is null: register it first",
                           registry->what);
    return quern__fail(registry->unknown_error,
                       "%s handle %#x is not of this world (tag %u): register the %s in this world",
                       registry->what, handle_bits, world_tag, registry->what);
}
