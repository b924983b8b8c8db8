/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/history/delta.h"

#include "core/base/sort.h"

enum { FIRST_BATCHES = 64 };

bool quern__delta_tell(quern_delta *delta, const quern_delta_batch *batch)
{
    quern__page_store *store = &delta->history->store;
    if (delta->count == delta->capacity) {
        const uint32_t capacity = delta->capacity > 0 ? delta->capacity * 2 : FIRST_BATCHES;
        const quern__page page = quern__page_take(store, capacity * sizeof *batch);
        if (page == 0) return false;
        quern_delta_batch *batches = (quern_delta_batch *)(void *)quern__page_memory(store, page);
        if (delta->count > 0) memcpy(batches, delta->batches, delta->count * sizeof *batches);
        quern__page_let_go(store, delta->batches_page);
        delta->batches_page = page;
        delta->batches = batches;
        delta->capacity = capacity;
    }
    delta->batches[delta->count++] = *batch;
    return true;
}

/* --------------------------------------------------------------------------------------------- names */

/* Names of one snapshot, by slot. */
typedef struct name_list {
    quern__page page; /* scratch */
    quern__sort_item *items;
    uint32_t count;
} name_list;

static bool list_names(quern__history *history, const quern__snapshot *snapshot, name_list *out_list)
{
    quern__tape tape = {.bytes = quern__page_memory(&history->store, snapshot->names)};
    const uint32_t count = (uint32_t)quern__tape_take_word(&tape);
    const quern__page page =
        quern__page_take(&history->store, (size_t)count * 2 * sizeof(quern__sort_item));
    if (page == 0) return false;
    quern__sort_item *items = (quern__sort_item *)(void *)quern__page_memory(&history->store, page);
    for (uint32_t i = 0; i < count; i++) {
        const quern__saved_name name = quern__saved_name_take(&tape);
        items[i] = (quern__sort_item){name.slot, (void *)(uintptr_t)name.text};
    }
    quern__sort(items, items + count, count);
    *out_list = (name_list){page, items, count};
    return true;
}

/* The name of the slot, which is the next one of the list or none. */
static const char *take_name(const name_list *list, uint32_t *place, uint64_t slot)
{
    return *place < list->count && list->items[*place].key == slot ? list->items[(*place)++].pointer : NULL;
}

static bool tell_name(quern_delta *delta, quern_entity *place, quern_entity entity, const char *old_name,
                      const char *name)
{
    *place = entity;
    return quern__delta_tell(
        delta,
        &(quern_delta_batch){
            .kind = QUERN_DELTA_NAMED, .count = 1, .entities = place, .name = name, .old_name = old_name});
}

/* Who has a name in a frame; null where nobody has one, as in a slot that the frame does not know yet. */
static quern_entity named(const quern__history *history, const quern__snapshot *snapshot, uint64_t slot,
                          const char *name)
{
    return name != NULL ? quern__saved_entity(history, snapshot, (uint32_t)slot) : quern_entity_null();
}

/* A slot may have had a name that was another entity's. */
static bool compare_names(quern_delta *delta, const name_list *was, const name_list *is,
                          quern_entity *handles)
{
    const quern__history *history = delta->history;
    bool has_room = true;
    uint32_t a = 0, b = 0;
    while (has_room && (a < was->count || b < is->count)) {
        const uint64_t none = UINT64_MAX, x = a < was->count ? was->items[a].key : none,
                       y = b < is->count ? is->items[b].key : none, slot = x < y ? x : y;
        const char *old_name = take_name(was, &a, slot), *name = take_name(is, &b, slot);
        const quern_entity before = named(history, &delta->from, slot, old_name);
        const quern_entity after = named(history, &delta->to, slot, name);
        if (old_name != NULL && name != NULL && before.bits == after.bits) {
            if (strcmp(old_name, name) != 0) has_room = tell_name(delta, handles++, after, old_name, name);
            continue;
        }
        if (old_name != NULL) has_room = tell_name(delta, handles++, before, old_name, NULL);
        if (has_room && name != NULL) has_room = tell_name(delta, handles++, after, NULL, name);
    }
    return has_room;
}

static bool tell_names(quern_delta *delta)
{
    quern__history *history = delta->history;
    quern__page_store *store = &history->store;
    name_list was = {0}, is = {0};
    if (delta->from.names == delta->to.names) return true;
    bool has_room = list_names(history, &delta->from, &was) && list_names(history, &delta->to, &is);
    if (has_room) {
        delta->handles_page =
            quern__page_take(store, ((size_t)was.count + is.count) * sizeof(quern_entity));
        has_room = delta->handles_page != 0 &&
                   compare_names(delta, &was, &is,
                                 (quern_entity *)(void *)quern__page_memory(store, delta->handles_page));
    }
    quern__page_let_go(store, was.page);
    quern__page_let_go(store, is.page);
    return has_room;
}

/* ----------------------------------------------------------------------------------------- resources */

/* The value of the i-th resource in a snapshot, or NULL. */
static const char *resource_in(const quern__history *history, const quern__snapshot *snapshot, uint32_t i)
{
    if (i >= snapshot->resource_count) return NULL;
    return quern__page_memory(&history->store, quern__pages_in(history, snapshot->resources)[i]);
}

static bool tell_resources(quern_delta *delta)
{
    const quern__resources *resources = &delta->history->world->resources;
    bool has_room = true;
    for (uint32_t i = 0; i < resources->list.count && has_room; i++) {
        const quern__type *type = &resources->list.items[i].type;
        const char *was = resource_in(delta->history, &delta->from, i);
        const char *is = resource_in(delta->history, &delta->to, i);
        if (was == is) continue;
        const bool is_known = type->field_count > 0 || !quern__hooks_any(&type->hooks);
        if (was != NULL && is != NULL && is_known && quern__type_same_value(type, was, is)) continue;
        has_room = quern__delta_tell(
            delta, &(quern_delta_batch){.kind = QUERN_DELTA_RESOURCE,
                                        .resource = {quern__handle_bits(resources->world_tag, i)},
                                        .value_bytes = type->size_bytes,
                                        .values = is,
                                        .old_values = was});
    }
    return has_room;
}

/* ----------------------------------------------------------------------------------------- life cycle */

quern_result quern__delta_make(quern__history *history, const quern__snapshot *from,
                               const quern__snapshot *to, quern_delta **out_delta)
{
    const quern__page page = quern__page_take(&history->store, sizeof(quern_delta));
    if (page == 0) return quern__history_fail_memory("a delta");
    quern_delta *delta = (quern_delta *)(void *)quern__page_memory(&history->store, page);
    *delta = (quern_delta){.history = history, .page = page, .from = *from, .to = *to};
    quern__snapshot_hold(history, from);
    quern__snapshot_hold(history, to);
    history->delta_count++;
    if (quern__delta_list_rows(delta) && quern__delta_tell_rows(delta) && tell_names(delta) &&
        quern__delta_tell_destroyed(delta) && tell_resources(delta)) {
        *out_delta = delta;
        return QUERN_OK;
    }
    quern__delta_release(delta);
    return quern__history_fail_memory("what differs between two frames");
}

void quern__delta_release(quern_delta *delta)
{
    quern__history *history = delta->history;
    quern__snapshot_let_go(history, &delta->from);
    quern__snapshot_let_go(history, &delta->to);
    quern__page_let_go(&history->store, delta->batches_page);
    quern__page_let_go(&history->store, delta->handles_page);
    history->delta_count--;
    quern__page_let_go(&history->store, delta->page);
}
