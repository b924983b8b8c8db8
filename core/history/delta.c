/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/history/delta.h"

enum { FIRST_BATCHES = 64 };

bool quern__delta_append(quern_delta *delta, const quern_delta_batch *batch)
{
    quern__page_store *store = &delta->history->store;
    if (delta->count == delta->capacity) {
        const uint32_t capacity = delta->capacity > 0 ? delta->capacity * 2 : FIRST_BATCHES;
        const quern__page page = quern__page_allocate(store, capacity * sizeof *batch);
        if (page == 0) return false;
        quern_delta_batch *batches = (quern_delta_batch *)(void *)quern__page_memory(store, page);
        if (delta->count > 0) memcpy(batches, delta->batches, delta->count * sizeof *batches);
        quern__page_release(store, delta->batches_page);
        delta->batches_page = page;
        delta->batches = batches;
        delta->capacity = capacity;
    }
    delta->batches[delta->count++] = *batch;
    return true;
}

/* ----------------------------------------------------------------------------------------- resources */

/* Returns the value of the i-th resource in the snapshot, or NULL. */
static const char *resource_in(const quern__history *history, const quern__snapshot *snapshot, uint32_t i)
{
    if (i >= snapshot->resource_count) return NULL;
    return quern__page_memory(&history->store, quern__pages_in(history, snapshot->resources)[i]);
}

static bool append_resources(quern_delta *delta)
{
    const quern__resources *resources = &delta->history->world->resources;
    bool has_room = true;
    for (uint32_t i = 0; i < resources->list.count && has_room; i++) {
        const quern__type *type = &resources->list.items[i].type;
        const char *old_value = resource_in(delta->history, &delta->from, i);
        const char *new_value = resource_in(delta->history, &delta->to, i);
        if (old_value == new_value) continue;
        const bool is_known = type->field_count > 0 || !quern__hooks_exist(&type->hooks);
        if (old_value != NULL && new_value != NULL && is_known &&
            quern__type_same_value(type, old_value, new_value))
            continue;
        has_room = quern__delta_append(
            delta, &(quern_delta_batch){.kind = QUERN_DELTA_RESOURCE,
                                        .resource = {quern__handle_bits(resources->world_tag, i)},
                                        .value_bytes = type->size_bytes,
                                        .values = new_value,
                                        .old_values = old_value});
    }
    return has_room;
}

/* ----------------------------------------------------------------------------------------- life cycle */

/* Appends all batches, in the order that delta.h explains. */
static bool append_all(quern_delta *delta)
{
    quern__delta_names names;
    const bool has_room =
        quern__delta_names_list(delta, &names) && quern__delta_list_rows(delta) &&
        quern__delta_names_append_cleared(delta, &names) && quern__delta_append_removed(delta) &&
        quern__delta_append_edges(delta, QUERN_DELTA_UNRELATED) && quern__delta_append_destroyed(delta) &&
        quern__delta_append_added(delta) && quern__delta_append_edges(delta, QUERN_DELTA_RELATED) &&
        quern__delta_names_append_given(delta, &names) &&
        (delta->limit->def->skip_resources || append_resources(delta));
    quern__delta_names_release(delta, &names);
    return has_room;
}

quern_result quern__delta_make(quern__history *history, const quern__snapshot *from,
                               const quern__snapshot *to, const quern_delta_def *def,
                               quern_delta **out_delta)
{
    quern__delta_limit limit;
    const quern__page page = quern__page_allocate(&history->store, sizeof(quern_delta));
    if (page == 0) return quern__history_fail_memory("a delta");
    quern_delta *delta = (quern_delta *)(void *)quern__page_memory(&history->store, page);
    *delta = (quern_delta){.history = history, .page = page, .from = *from, .to = *to};
    quern__snapshot_acquire(history, from);
    quern__snapshot_acquire(history, to);
    history->delta_count++;
    delta->limit = &limit;
    const bool is_done = quern__delta_limit_init(&limit, history, def, from, to) && append_all(delta);
    quern__delta_limit_release(&limit, history);
    delta->limit = NULL;
    if (is_done) {
        *out_delta = delta;
        return QUERN_OK;
    }
    quern__delta_release(delta);
    return quern__history_fail_memory("the differences between two frames");
}

void quern__delta_release(quern_delta *delta)
{
    quern__history *history = delta->history;
    quern__snapshot_release(history, &delta->from);
    quern__snapshot_release(history, &delta->to);
    quern__page_release(&history->store, delta->batches_page);
    quern__page_release(&history->store, delta->handles_page);
    for (uint32_t i = 0; i < delta->edge_page_count; i++)
        quern__page_release(&history->store, quern__pages_in(history, delta->edge_pages)[i]);
    quern__page_release(&history->store, delta->edge_pages);
    history->delta_count--;
    quern__page_release(&history->store, delta->page);
}
