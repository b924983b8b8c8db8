/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/reflect/handle_text.h"

#include "core/reflect/number.h"
#include "core/relations/naming.h"
#include "core/world/world_internal.h"

#include <quern/name.h>

#include <inttypes.h>

/* ----------------------------------------------------------------------------------------- writing */

/* Prints the names from the root down to the slot. Precondition: has_path(). */
static void print_path(const quern__storage *storage, uint32_t slot, quern__printer *printer)
{
    uint32_t depth = 0;
    for (uint32_t at = slot; at != QUERN__SLOT_NONE; at = quern__parent_slot(storage, at))
        depth++;
    for (uint32_t level = depth; level-- > 0;) {
        uint32_t at = slot;
        for (uint32_t i = 0; i < level; i++)
            at = quern__parent_slot(storage, at);
        quern__print(printer, "/%s", quern__names_of(storage->names, at)->text);
    }
}

/* Returns whether an entity can be printed as a path: it is alive, and it and all its ancestors have names. Printing
 * walks up from the entity once per name, so deep entities are printed as numbers. */
static bool has_path(const quern__storage *storage, quern_entity entity)
{
    enum { MAX_DEPTH = 64 };
    if (storage->names->count == 0 || quern__entities_find(&storage->entities, entity) == NULL)
        return false;
    uint32_t at = quern_entity_index(entity);
    for (uint32_t depth = 0; at != QUERN__SLOT_NONE; at = quern__parent_slot(storage, at))
        if (++depth > MAX_DEPTH || quern__names_of(storage->names, at) == NULL) return false;
    return true;
}

void quern__handle_print(const quern_world *world, quern_entity entity, bool by_path,
                         quern__printer *printer)
{
    const quern__storage *storage = &world->storage;
    if (entity.bits == 0)
        quern__print(printer, "none");
    else if (quern_entity_world_tag(entity) != storage->entities.first_handle_high >> 24 ||
             quern_entity_generation(entity) == 0)
        quern__print(printer, "0x%016" PRIx64, entity.bits);
    else if (by_path && has_path(storage, entity))
        print_path(storage, quern_entity_index(entity), printer);
    else
        quern__print(printer, "%u:%u", quern_entity_index(entity), quern_entity_generation(entity));
}

/* ----------------------------------------------------------------------------------------- reading */

static bool read_path(const quern__storage *storage, const char *text, size_t bytes,
                      quern_entity *out_entity)
{
    uint32_t slot = QUERN__SLOT_NONE;
    while (bytes > 0) {
        const char *name = text + 1; /* text is at a '/' */
        const char *end = memchr(name, '/', bytes - 1);
        const size_t name_bytes = end != NULL ? (size_t)(end - name) : bytes - 1;
        if (name_bytes == 0 || name_bytes > QUERN_MAX_ENTITY_NAME_BYTES) return false;
        slot = quern__names_find(storage->names, slot, name, (uint32_t)name_bytes);
        if (slot == QUERN__SLOT_NONE) return false;
        text = name + name_bytes;
        bytes -= 1 + name_bytes;
    }
    *out_entity = quern__entity_of_link(storage, slot);
    return true;
}

static bool read_number(const quern__storage *storage, const char *text, size_t bytes,
                        quern_entity *out_entity)
{
    const char *colon = memchr(text, ':', bytes);
    uint64_t index, generation;
    if (colon == NULL ||
        quern__digits_read(text, (size_t)(colon - text), 10, UINT32_MAX, &index) != QUERN__NUMBER_OK ||
        quern__digits_read(colon + 1, (size_t)(text + bytes - colon - 1), 10, QUERN__MAX_GENERATION,
                           &generation) != QUERN__NUMBER_OK ||
        generation == 0)
        return false;
    *out_entity = quern__entity_make(storage->entities.first_handle_high >> 24, (uint32_t)generation,
                                     (uint32_t)index);
    return true;
}

bool quern__handle_read(const quern_world *world, const char *text, size_t bytes, bool by_path,
                        quern_entity *out_entity)
{
    if (bytes == 0) return false;
    if (text[0] == '/') return by_path && read_path(&world->storage, text, bytes, out_entity);
    if (bytes == 4 && memcmp(text, "none", 4) == 0) {
        *out_entity = quern_entity_null();
        return true;
    }
    if (bytes > 2 && text[0] == '0' && text[1] == 'x')
        return quern__digits_read(text + 2, bytes - 2, 16, UINT64_MAX, &out_entity->bits) ==
               QUERN__NUMBER_OK;
    return read_number(&world->storage, text, bytes, out_entity);
}
