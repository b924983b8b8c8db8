/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/reflect/handle_text.h"

#include "core/reflect/number.h"
#include "core/relations/naming.h"
#include "core/world/world_internal.h"

#include <quern/name.h>
#include <quern/reflect.h>

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

bool quern__handle_find_path(const quern__storage *storage, const char *text, size_t bytes,
                             uint32_t *out_slot)
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
    *out_slot = slot;
    return true;
}

static bool read_path(const quern__storage *storage, const char *text, size_t bytes,
                      quern_entity *out_entity)
{
    uint32_t slot;
    if (!quern__handle_find_path(storage, text, bytes, &slot)) return false;
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
    if (bytes > 2 && text[0] == '0' && text[1] == 'x') {
        uint64_t bits;
        if (quern__digits_read(text + 2, bytes - 2, 16, UINT64_MAX, &bits) != QUERN__NUMBER_OK)
            return false;
        *out_entity = (quern_entity){bits};
        return true;
    }
    return read_number(&world->storage, text, bytes, out_entity);
}

/* ------------------------------------------------------------------------------------ public functions */

quern_result quern_entity_to_text(const quern_world *world, quern_entity entity, quern_sink sink)
{
    static const char function[] = "quern_entity_to_text";
    if (world == NULL) return quern__fail_null(function, "world");
    const quern_result result = quern__check_sink(sink, function);
    if (result != QUERN_OK) return result;
    quern__printer printer;
    quern__printer_open(&printer, sink);
    quern__handle_print(world, entity, true, &printer);
    return quern__printer_close(&printer, function);
}

quern_result quern_entity_from_text(const quern_world *world, const char *text, quern_entity *out_entity)
{
    static const char function[] = "quern_entity_from_text";
    if (world == NULL) return quern__fail_null(function, "world");
    if (text == NULL) return quern__fail_null(function, "text");
    if (out_entity == NULL) return quern__fail_null(function, "out_entity");
    if (quern__handle_read(world, text, strlen(text), true, out_entity)) return QUERN_OK;
    if (text[0] == '/')
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: no entity has the path '%.255s': check the names, from the root down",
                           function, text);
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "%s: '%.127s' is not an entity: write a path such as '/arena/gun', "
                       "'index:generation', 'none', or '0x' and the bits of a handle",
                       function, text);
}
