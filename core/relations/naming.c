/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/relations/naming.h"

#include "core/base/utf8.h"

#include <stdio.h>

/* Returns the length of a name in bytes, but at most QUERN_MAX_ENTITY_NAME_BYTES + 1. */
static uint32_t count_bytes(const char *name)
{
    uint32_t bytes = 0;
    while (name[bytes] != '\0' && bytes <= QUERN_MAX_ENTITY_NAME_BYTES)
        bytes++;
    return bytes;
}

quern_result quern__entity_check_name(const char *name)
{
    const uint32_t bytes = count_bytes(name);
    if (bytes > QUERN_MAX_ENTITY_NAME_BYTES)
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "the name '%.32s...' has more than %d bytes (QUERN_MAX_ENTITY_NAME_BYTES): use a shorter name",
            name, QUERN_MAX_ENTITY_NAME_BYTES);
    for (uint32_t i = 0; i < bytes;) {
        const uint32_t step = quern__utf8_bytes(name + i);
        if (step == 0)
            return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                               "the name is not UTF-8: its byte %u (%#x) begins no character", i,
                               (unsigned)(unsigned char)name[i]);
        if (name[i] == '/')
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "the name '%s' has a '/', which separates the names of a path: use another character",
                name);
        i += step;
    }
    return QUERN_OK;
}

static quern_result fail_taken(const quern__storage *storage, quern_entity entity, const char *text,
                               uint32_t parent, uint32_t owner)
{
    const quern_entity other = quern__entity_of_slot(storage, owner);
    char siblings[64] = "roots";
    if (parent != QUERN__SLOT_NONE)
        snprintf(siblings, sizeof siblings, "children of entity %u:%u", parent,
                 quern_entity_generation(quern__entity_of_slot(storage, parent)));
    return quern__fail(QUERN_ERROR_SIBLING_NAME_TAKEN,
                       "entity %u:%u cannot be named '%s': among the %s, entity %u:%u has this name",
                       quern_entity_index(entity), quern_entity_generation(entity), text, siblings,
                       quern_entity_index(other), quern_entity_generation(other));
}

quern_result quern__entity_set_name(quern__storage *storage, quern_entity entity, const char *name)
{
    quern__names *names = storage->names;
    const uint32_t slot = quern_entity_index(entity), parent = quern__parent_slot(storage, slot);
    if (name == NULL || name[0] == '\0') {
        quern__names_drop(names, slot);
        return QUERN_OK;
    }
    quern_result result = quern__entity_check_name(name);
    if (result != QUERN_OK) return result;
    const uint32_t bytes = count_bytes(name);
    const uint32_t owner = quern__names_find(names, parent, name, bytes);
    if (owner == slot) return QUERN_OK;
    if (owner != QUERN__SLOT_NONE) return fail_taken(storage, entity, name, parent, owner);
    if (!quern__names_reserve(names, &storage->allocator, slot))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the name of entity %u:%u",
                           quern_entity_index(entity), quern_entity_generation(entity));
    char text[QUERN_MAX_ENTITY_NAME_BYTES + 1]; /* a copy, because `name` may point into the old name */
    memcpy(text, name, bytes + 1);
    quern__names_drop(names, slot);
    quern__names_put(names, slot, parent, text, bytes);
    storage->has_attachments = true;
    return QUERN_OK;
}

quern_result quern__naming_fail_taken(const quern__storage *storage, quern_entity source, uint32_t target)
{
    const quern__name *name = quern__names_of(storage->names, quern_entity_index(source));
    assert(name != NULL);
    return fail_taken(storage, source, name->text, target,
                      quern__names_find(storage->names, target, name->text, (uint32_t)strlen(name->text)));
}
