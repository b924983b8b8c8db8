/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Saves and restores names and resources. All names are copied if any name has changed since the base.
 * Resources are always copied, each into a page of its own. */

#include "core/history/history_internal.h"

/* ------------------------------------------------------------------------------------------- names */

/* Writes the number of names, then for each name its slot, its parent's slot, its length and its text
 * with the terminating 0. */
static void write_names(const quern__names *names, quern__byte_writer *writer)
{
    quern__write_u64(writer, names->count);
    for (uint32_t block = 0; block < names->blocks.count; block++)
        for (uint32_t i = 0; names->blocks.items[block] != NULL && i < QUERN__NAME_BLOCK_NAMES; i++) {
            const quern__name *name = &names->blocks.items[block][i];
            if (name->slot == QUERN__SLOT_NONE) continue;
            const uint32_t length = (uint32_t)strlen(name->text);
            quern__write_u64(writer, (uint64_t)name->parent << 32 | name->slot);
            quern__write_u64(writer, length);
            quern__write(writer, name->text, (size_t)length + 1);
        }
}

quern__saved_name quern__read_saved_name(quern__byte_reader *reader)
{
    const uint64_t slots = quern__read_u64(reader);
    const uint32_t length = (uint32_t)quern__read_u64(reader);
    const char *text = quern__read_in_place(reader, (size_t)length + 1);
    assert(text != NULL);
    return (quern__saved_name){(uint32_t)slots, (uint32_t)(slots >> 32), length, text};
}

quern_result quern__build_names(quern__history *history, quern__snapshot *snapshot)
{
    const quern__names *names = history->world->storage.names;
    snapshot->names_version = names->version;
    if (history->base.names != 0 && history->base.names_version == names->version) {
        snapshot->names = quern__page_acquire(&history->store, history->base.names);
        return QUERN_OK;
    }
    quern__byte_writer measure = {.capacity = SIZE_MAX};
    write_names(names, &measure);
    snapshot->names = quern__page_allocate(&history->store, measure.count);
    if (snapshot->names == 0) return quern__history_fail_memory("the names of entities");
    quern__byte_writer writer = quern__page_writer(&history->store, snapshot->names);
    write_names(names, &writer);
    return QUERN_OK;
}

static bool has_names(const quern__history *history, const quern__snapshot *snapshot)
{
    return snapshot->names == history->base.names &&
           history->world->storage.names->version == history->base.names_version;
}

quern_result quern__prepare_names(quern__history *history, const quern__snapshot *snapshot)
{
    if (has_names(history, snapshot)) return QUERN_OK;
    quern__storage *storage = &history->world->storage;
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->names);
    const uint32_t count = (uint32_t)quern__read_u64(&reader);
    bool has_room = quern__names_reserve_count(storage->names, &storage->allocator, count);
    for (uint32_t i = 0; i < count && has_room; i++)
        has_room = quern__names_reserve_page(storage->names, &storage->allocator,
                                             quern__read_saved_name(&reader).slot);
    return has_room ? QUERN_OK : quern__history_fail_memory("the names of entities");
}

static void remove_names(quern__names *names)
{
    for (uint32_t block = 0; block < names->blocks.count; block++)
        for (uint32_t i = 0; names->blocks.items[block] != NULL && i < QUERN__NAME_BLOCK_NAMES; i++)
            if (names->blocks.items[block][i].slot != QUERN__SLOT_NONE)
                quern__names_drop(names, names->blocks.items[block][i].slot);
}

void quern__restore_names(quern__history *history, const quern__snapshot *snapshot)
{
    if (has_names(history, snapshot)) return;
    quern__names *names = history->world->storage.names;
    remove_names(names);
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->names);
    for (uint64_t left = quern__read_u64(&reader); left > 0; left--) {
        const quern__saved_name name = quern__read_saved_name(&reader);
        quern__names_put(names, name.slot, name.parent, name.text, name.length);
    }
}

/* --------------------------------------------------------------------------------------- resources */

static quern_result build_resource(quern__history *history, const quern__resource *resource,
                                   quern__page *out_page)
{
    const quern__type *type = &resource->type;
    if (type->hooks.copy == NULL && (type->hooks.move != NULL || type->hooks.destroy != NULL))
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "resource '%s' has a move or destroy hook and no copy hook, so a snapshot cannot copy its "
            "value: add a copy hook, or store the value outside of the world",
            type->name);
    *out_page = quern__page_allocate(&history->store, type->size_bytes);
    if (*out_page == 0) return quern__history_fail_memory("a resource");
    quern__page_entry *entry = &history->store.pages.items[*out_page];
    quern__type_copy(type, entry->memory, resource->value, 1);
    if (quern__hooks_exist(&type->hooks)) {
        entry->type = type;
        entry->value_count = 1;
    }
    return QUERN_OK;
}

quern_result quern__build_resources(quern__history *history, quern__snapshot *snapshot)
{
    const quern__resources *resources = &history->world->resources;
    const uint32_t count = resources->list.count;
    snapshot->resources = quern__page_allocate(&history->store, count * sizeof(quern__page));
    if (snapshot->resources == 0) return quern__history_fail_memory("a list of resources");
    memset(quern__pages_in(history, snapshot->resources), 0, count * sizeof(quern__page));
    snapshot->resource_count = count;
    quern_result result = QUERN_OK;
    for (uint32_t i = 0; i < count && result == QUERN_OK; i++) {
        quern__page page = 0;
        result = build_resource(history, &resources->list.items[i], &page);
        quern__pages_in(history, snapshot->resources)[i] = page;
    }
    return result;
}

void quern__release_saved_resources(quern__history *history, const quern__snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->resource_count; i++)
        quern__page_release(&history->store, quern__pages_in(history, snapshot->resources)[i]);
}

void quern__restore_resources(quern__history *history, const quern__snapshot *snapshot)
{
    const quern__resources *resources = &history->world->resources;
    for (uint32_t i = 0; i < snapshot->resource_count; i++) {
        const quern__resource *resource = &resources->list.items[i];
        const quern__page page = quern__pages_in(history, snapshot->resources)[i];
        quern__type_destroy(&resource->type, resource->value, 1);
        quern__type_copy(&resource->type, resource->value, quern__page_memory(&history->store, page), 1);
    }
}
