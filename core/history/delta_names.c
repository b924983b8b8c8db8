/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Names in a delta.
 *
 * A name is unique among the children of a parent, so entities that exchange names or parents collide in
 * any order of single steps. Therefore colliding names are cleared before parents change, and set
 * afterwards. A name is cleared if its entity is destroyed, has no name in `to`, or has another parent
 * in `to`, or if another entity has the same parent and name in `to`. The other names that change are
 * replaced in one step. */

#include "core/history/delta.h"

#include "core/base/hash.h"

/* A name in one of the snapshots. */
typedef struct owned_name {
    quern_entity entity; /* entity that has the name; null: there is no such name */
    quern_entity parent; /* null: the entity has no parent */
    const char *text;
} owned_name;

/* ------------------------------------------------------------------------------------------- listing */

static bool list_snapshot(quern__history *history, const quern__snapshot *snapshot,
                          quern__delta_name_list *out_list)
{
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->names);
    const uint32_t count = (uint32_t)quern__read_u64(&reader);
    out_list->page = quern__page_allocate(&history->store, (size_t)count * 2 * sizeof(quern__sort_item));
    if (out_list->page == 0) return false;
    out_list->items = (quern__sort_item *)(void *)quern__page_memory(&history->store, out_list->page);
    for (; out_list->count < count; out_list->count++) {
        char *cursor = (char *)(uintptr_t)reader.at;
        out_list->items[out_list->count] =
            (quern__sort_item){.key = quern__read_saved_name(&reader).slot, .pointer = cursor};
    }
    quern__sort(out_list->items, out_list->items + count, count);
    return true;
}

/* Whether the limit of the delta leaves a name out: the entity is no member, or its parent is not part of the delta, so
 * that the name might not be unique. */
static bool is_left_out(const quern_delta *delta, const quern__snapshot *snapshot, uint32_t slot,
                        uint32_t parent)
{
    const quern__storage *storage = &delta->history->world->storage;
    const uint64_t *members =
        snapshot == &delta->from ? delta->limit->from_members : delta->limit->to_members;
    if (!quern__limit_has(members, slot)) return true;
    if (parent == QUERN__SLOT_NONE) return false;
    return !quern__limit_has(members, parent) ||
           !quern__limit_lists(
               delta->limit,
               quern__component_handle(&storage->components, storage->relations->parent->component_index));
}

/* Returns a name without text if it is left out. */
static owned_name name_at(const quern_delta *delta, const quern__snapshot *snapshot,
                          const quern__sort_item *item)
{
    const quern__history *history = delta->history;
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->names);
    reader.at = item->pointer;
    const quern__saved_name name = quern__read_saved_name(&reader);
    return (owned_name){.entity = quern__saved_entity(history, snapshot, name.slot),
                        .parent = name.parent != QUERN__SLOT_NONE
                                      ? quern__saved_entity(history, snapshot, name.parent)
                                      : quern_entity_null(),
                        .text = is_left_out(delta, snapshot, name.slot, name.parent) ? NULL : name.text};
}

/* Returns the name that the entity has in the snapshot of the list. Call it for entities in ascending
 * order of slots, with *cursor = 0 at first. */
static owned_name name_of(const quern_delta *delta, const quern__snapshot *snapshot,
                          const quern__delta_name_list *list, uint32_t *cursor, quern_entity entity)
{
    const owned_name none = {.text = NULL};
    while (*cursor < list->count && list->items[*cursor].key < quern_entity_index(entity))
        ++*cursor;
    if (*cursor == list->count || list->items[*cursor].key != quern_entity_index(entity)) return none;
    const owned_name found = name_at(delta, snapshot, &list->items[*cursor]);
    return quern_entity_equal(found.entity, entity) ? found : none;
}

/* ---------------------------------------------------------------------------------- names used in `to` */

/* Returns the key of a name in the set of used names. Equal names have equal keys. If different names
 * have equal keys, the delta has one batch more than necessary. */
static uint64_t key_of(const owned_name *name)
{
    const uint64_t hash =
        quern__hash_word(quern__hash_bytes(0, name->text, strlen(name->text)), name->parent.bits);
    return hash != 0 ? hash : 1;
}

static bool is_same(const owned_name *from, const owned_name *to)
{
    return from->text != NULL && quern_entity_equal(from->parent, to->parent) &&
           strcmp(from->text, to->text) == 0;
}

/* Fills the set with the names that entities have in `to` but not in `from`. */
static bool list_used_names(const quern_delta *delta, const quern__delta_names *names)
{
    quern__history *history = delta->history;
    quern__map *used = &history->delta_scratch.used_names;
    uint32_t cursor = 0;
    quern__map_clear(used);
    if (!quern__map_reserve(used, &history->store.allocator, names->to.count)) return false;
    for (uint32_t i = 0; i < names->to.count; i++) {
        const owned_name to = name_at(delta, &delta->to, &names->to.items[i]);
        const owned_name from = name_of(delta, &delta->from, &names->from, &cursor, to.entity);
        if (to.text != NULL && !is_same(&from, &to) && quern__map_find(used, key_of(&to)) == NULL)
            quern__map_put(used, key_of(&to), 1);
    }
    return true;
}

/* Whether the name is cleared before it is set again. `from` and `to` are the names of one entity in
 * both snapshots. */
static bool is_cleared(const quern_delta *delta, const owned_name *from, const owned_name *to)
{
    if (to->text == NULL || !quern_entity_equal(from->parent, to->parent)) return true;
    return !is_same(from, to) &&
           quern__map_find(&delta->history->delta_scratch.used_names, key_of(from)) != NULL;
}

/* ------------------------------------------------------------------------------------------- batches */

static bool append(quern_delta *delta, quern__delta_names *names, quern_entity entity, const char *old_name,
                   const char *name)
{
    quern_entity *handle = names->next_handle++;
    *handle = entity;
    return quern__delta_append(
        delta,
        &(quern_delta_batch){
            .kind = QUERN_DELTA_NAMED, .count = 1, .entities = handle, .name = name, .old_name = old_name});
}

bool quern__delta_names_list(quern_delta *delta, quern__delta_names *out_names)
{
    quern__history *history = delta->history;
    *out_names = (quern__delta_names){.next_handle = NULL};
    if (delta->limit->def->skip_names || (delta->from.names == delta->to.names && !delta->limit->crosses))
        return true;
    if (!list_snapshot(history, &delta->from, &out_names->from) ||
        !list_snapshot(history, &delta->to, &out_names->to) || !list_used_names(delta, out_names))
        return false;
    delta->handles_page = quern__page_allocate(
        &history->store, ((size_t)out_names->from.count + out_names->to.count) * sizeof(quern_entity));
    out_names->next_handle =
        (quern_entity *)(void *)quern__page_memory(&history->store, delta->handles_page);
    return delta->handles_page != 0;
}

bool quern__delta_names_append_cleared(quern_delta *delta, quern__delta_names *names)
{
    uint32_t cursor = 0;
    bool has_room = true;
    for (uint32_t i = 0; i < names->from.count && has_room; i++) {
        const owned_name from = name_at(delta, &delta->from, &names->from.items[i]);
        const owned_name to = name_of(delta, &delta->to, &names->to, &cursor, from.entity);
        if (from.text != NULL && is_cleared(delta, &from, &to))
            has_room = append(delta, names, from.entity, from.text, NULL);
    }
    return has_room;
}

bool quern__delta_names_append_given(quern_delta *delta, quern__delta_names *names)
{
    uint32_t cursor = 0;
    bool has_room = true;
    for (uint32_t i = 0; i < names->to.count && has_room; i++) {
        const owned_name to = name_at(delta, &delta->to, &names->to.items[i]);
        const owned_name from = name_of(delta, &delta->from, &names->from, &cursor, to.entity);
        if (to.text == NULL || is_same(&from, &to)) continue;
        const bool has_old = from.text != NULL && !is_cleared(delta, &from, &to);
        has_room = append(delta, names, to.entity, has_old ? from.text : NULL, to.text);
    }
    return has_room;
}

void quern__delta_names_release(quern_delta *delta, const quern__delta_names *names)
{
    quern__page_release(&delta->history->store, names->from.page);
    quern__page_release(&delta->history->store, names->to.page);
}
