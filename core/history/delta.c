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

static uint64_t name_count(quern__history *history, const quern__snapshot *snapshot)
{
    quern__byte_reader reader = quern__page_reader(&history->store, snapshot->names);
    return quern__read_u64(&reader);
}

static void add_members(const quern__delta_limit *limit, const quern__history *history,
                        const quern__snapshot *snapshot, uint64_t *members)
{
    for (uint32_t i = 0; i < snapshot->archetype_count; i++) {
        const quern__saved_archetype *saved = quern__saved_archetype_at(history, snapshot, i);
        if (!quern__limit_matches(limit, saved)) continue;
        for (uint32_t slot = 0; slot < saved->chunk_count; slot++) {
            const quern__page page = quern__saved_pages(saved, slot)[saved->column_count];
            const quern_entity *handles =
                (const quern_entity *)(const void *)quern__page_memory(&history->store, page);
            for (uint32_t row = 0; row < quern__saved_row_count(saved, slot); row++)
                quern__bitset_add(members, quern_entity_index(handles[row]));
        }
    }
}

/* Whether one of these members of a snapshot is alive in the other one, of which it is no member. */
static bool is_any_alive(const quern__history *history, const quern__snapshot *snapshot,
                         const quern__snapshot *other, uint32_t first_slot, uint64_t members)
{
    while (members != 0) {
        const uint32_t slot = first_slot + quern__bitset_pop_lowest(&members);
        if (quern__saved_is_alive(history, other, quern__saved_entity(history, snapshot, slot)))
            return true;
    }
    return false;
}

static bool any_crosses(const quern__history *history, const quern__snapshot *from,
                        const quern__snapshot *to, const uint64_t *from_members, const uint64_t *to_members,
                        size_t word_count)
{
    for (size_t i = 0; i < word_count; i++)
        if (is_any_alive(history, from, to, (uint32_t)i * 64, from_members[i] & ~to_members[i]) ||
            is_any_alive(history, to, from, (uint32_t)i * 64, to_members[i] & ~from_members[i]))
            return true;
    return false;
}

/* Builds the sets if links or names may need them. Returns false if out of memory. delta_limit_release must be
 * called in any case. */
static bool delta_limit_init(quern__delta_limit *limit, quern__history *history, const quern_delta_def *def,
                             const quern__snapshot *from, const quern__snapshot *to)
{
    const quern__relations *relations = history->world->storage.relations;
    *limit = (quern__delta_limit){.def = def, .relations = relations};
    const bool has_names =
        !def->skip_names && (name_count(history, from) > 0 || name_count(history, to) > 0);
    if (def->query == NULL || (relations->list.count == 0 && !has_names)) return true;
    const uint32_t slot_count =
        from->slots.slot_count > to->slots.slot_count ? from->slots.slot_count : to->slots.slot_count;
    const size_t word_count = QUERN__BITSET_WORDS((size_t)slot_count);
    limit->members_page = quern__page_allocate(&history->store, 2 * word_count * sizeof(uint64_t));
    if (limit->members_page == 0) return false;
    uint64_t *members = (uint64_t *)(void *)quern__page_memory(&history->store, limit->members_page);
    memset(members, 0, 2 * word_count * sizeof *members);
    add_members(limit, history, from, members);
    add_members(limit, history, to, members + word_count);
    limit->from_members = members;
    limit->to_members = members + word_count;
    limit->crosses = any_crosses(history, from, to, members, members + word_count, word_count);
    return true;
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
    const bool is_done = delta_limit_init(&limit, history, def, from, to) && append_all(delta);
    quern__page_release(&history->store, limit.members_page);
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

enum { UNNUMBERED = 0 }; /* numbers are stored plus 1 */

typedef struct delta_writing {
    const quern_delta *delta;
    const quern_delta_write_def *def;
    const quern_world *world;
    uint32_t first_handle_high;
    uint32_t *component_numbers, *resource_numbers; /* by index */
    quern__delta_head head;
    quern__byte_writer components, resources, batches;
} delta_writing;

/* ------------------------------------------------------------------------------------------- types */

static quern_result check_savable(const quern__type *type, bool is_component)
{
    if (!quern__type_owns_unknown(type) || (type->field_count > 0 && !is_component)) return QUERN_OK;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "values of '%s' have hooks, so bytes cannot contain what they own: list the components to "
        "write without it, or set skip_resources for a resource",
        type->name);
}

/* Writes a type if it is new, and stores its number. */
static void number_type(uint32_t *numbers, uint32_t index, uint32_t *count, const quern__type *type,
                        quern__byte_writer *writer, uint32_t *out_number)
{
    if (numbers[index] == UNNUMBERED) {
        numbers[index] = ++*count;
        quern__write_text(writer, QUERN__DELTA_NAME_LENGTH_BYTES, type->name);
        quern__write_u32(writer, type->size_bytes);
        quern__write_u64(writer, quern__delta_layout_hash(type));
    }
    *out_number = numbers[index] - 1;
}

/* ----------------------------------------------------------------------------------------- batches */

static quern_entity key_of(void *argument, quern_entity entity)
{
    const delta_writing *it = argument;
    return (quern_entity){quern__entity_to_relative(entity, it->first_handle_high)};
}

static void write_values(delta_writing *it, const quern__type *type, const char *values, uint32_t count)
{
    char *room = quern__write_room(&it->batches, (size_t)count * type->size_bytes);
    if (room == NULL || type->size_bytes == 0) return;
    memcpy(room, values, (size_t)count * type->size_bytes);
    for (uint32_t i = 0; i < count && type->lists != NULL; i++)
        quern__type_clear_lists(type, room + (size_t)i * type->size_bytes);
    for (uint32_t i = 0; i < count && type->has_entity_fields; i++)
        quern__type_remap(type, room + (size_t)i * type->size_bytes, key_of, it);
    for (uint32_t i = 0; i < count && type->lists != NULL; i++)
        quern__type_write_lists(type, values + (size_t)i * type->size_bytes, &it->batches, key_of, it);
}

static bool is_listed(const quern_delta_write_def *def, quern_component component)
{
    if (def->components[0].bits == 0) return true;
    for (uint32_t i = 0; i < QUERN_MAX_DELTA_COMPONENTS && def->components[i].bits != 0; i++)
        if (def->components[i].bits == component.bits) return true;
    return false;
}

static bool is_written(const quern_delta_write_def *def, const quern_delta_batch *batch)
{
    if (batch->kind == QUERN_DELTA_NAMED) return !def->skip_names;
    if (batch->kind == QUERN_DELTA_RESOURCE) return !def->skip_resources;
    return !quern__delta_has_component(batch->kind) || is_listed(def, batch->component);
}

static void write_head_and_keys(delta_writing *it, const quern_delta_batch *batch, uint32_t number)
{
    const quern__delta_batch_head head = {batch->kind, number, batch->count};
    quern__write(&it->batches, &head, sizeof head);
    for (uint32_t i = 0; i < batch->count; i++)
        quern__write_u64(&it->batches, key_of(it, batch->entities[i]).bits);
    it->head.batch_count++;
}

static quern_result write_batch(delta_writing *it, const quern_delta_batch *batch)
{
    if (!is_written(it->def, batch)) return QUERN_OK;
    if (batch->kind == QUERN_DELTA_RESOURCE) {
        const uint32_t index = quern__resource_index(batch->resource);
        const quern__type *type = &it->world->resources.list.items[index].type;
        const quern_result result = check_savable(type, false);
        if (result != QUERN_OK || batch->values == NULL) return result;
        uint32_t number;
        number_type(it->resource_numbers, index, &it->head.resource_count, type, &it->resources, &number);
        write_head_and_keys(it, batch, number);
        write_values(it, type, batch->values, 1);
        return QUERN_OK;
    }
    if (quern__delta_has_component(batch->kind)) {
        const uint32_t index = quern__component_index(batch->component);
        const quern__type *type = quern__components_type(&it->world->storage.components, index);
        const bool has_values = quern__delta_has_values(batch->kind);
        const quern_result result = has_values ? check_savable(type, true) : QUERN_OK;
        if (result != QUERN_OK) return result;
        uint32_t number;
        number_type(it->component_numbers, index, &it->head.component_count, type, &it->components,
                    &number);
        write_head_and_keys(it, batch, number);
        if (has_values) write_values(it, type, batch->values, batch->count);
        const quern_entity *targets =
            batch->kind == QUERN_DELTA_RELATED ? batch->values : batch->old_values;
        for (uint32_t i = 0; quern__delta_has_targets(batch->kind) && i < batch->count; i++)
            quern__write_u64(&it->batches, key_of(it, targets[i]).bits);
        return QUERN_OK;
    }
    write_head_and_keys(it, batch, 0);
    if (batch->kind == QUERN_DELTA_NAMED)
        quern__write_text(&it->batches, QUERN__DELTA_NAME_LENGTH_BYTES,
                          batch->name != NULL ? batch->name : "");
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------ sinking */

static quern_result fail_memory(void)
{
    return quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                       "out of memory for the bytes of a delta; nothing was written");
}

/* Joins the parts in the first of them. */
static quern_result join(delta_writing *it)
{
    quern__byte_writer *all = &it->components;
    quern__write(all, it->resources.bytes, it->resources.count);
    quern__write(all, it->batches.bytes, it->batches.count);
    if (all->has_failed || it->resources.has_failed || it->batches.has_failed) return fail_memory();
    memcpy(it->head.magic, QUERN__DELTA_MAGIC, sizeof it->head.magic);
    it->head.version = QUERN__DELTA_VERSION;
    it->head.bytes = all->count;
    it->head.checksum = quern__delta_checksum(&it->head, all->bytes);
    return QUERN_OK;
}

static quern_result write_all(delta_writing *it, quern_sink sink)
{
    const uint32_t count = it->delta->count;
    const uint32_t first = it->def->first_batch < count ? it->def->first_batch : count;
    const uint32_t most = it->def->batch_count > 0 ? it->def->batch_count : count;
    const uint32_t end = most < count - first ? first + most : count;
    quern_result result = QUERN_OK;
    for (uint32_t i = first; i < end && result == QUERN_OK; i++)
        result = write_batch(it, &it->delta->batches[i]);
    if (result == QUERN_OK) result = join(it);
    if (result != QUERN_OK) return result;
    quern__sink_writer writer = {.sink = sink};
    quern__sink_write(&writer, &it->head, sizeof it->head);
    quern__sink_write(&writer, it->components.bytes, it->components.count);
    quern__sink_write(&writer, "", 0);
    return quern__sink_check(&writer, "the delta");
}

static quern_result allocate_and_write(delta_writing *it, quern_sink sink)
{
    const quern_allocator *allocator = &it->delta->history->store.allocator;
    const uint32_t component_count = it->world->storage.components.list.count;
    const uint32_t count = component_count + it->world->resources.list.count;
    const size_t numbers_bytes = (count + 1) * sizeof(uint32_t);
    it->components.allocator = it->resources.allocator = it->batches.allocator = allocator;
    it->component_numbers = quern__allocate(allocator, numbers_bytes, QUERN__ARRAY_ALIGNMENT_BYTES);
    if (it->component_numbers == NULL) return fail_memory();
    memset(it->component_numbers, 0, numbers_bytes);
    it->resource_numbers = it->component_numbers + component_count;
    const quern_result result = write_all(it, sink);
    quern__release(allocator, it->component_numbers, numbers_bytes, QUERN__ARRAY_ALIGNMENT_BYTES);
    quern__byte_writer_release(&it->components);
    quern__byte_writer_release(&it->resources);
    quern__byte_writer_release(&it->batches);
    return result;
}

static bool is_component_end(const void *list, uint32_t i)
{
    return ((const quern_component *)list)[i].bits == 0;
}

static quern_result check_and_write(const quern_delta *delta, const quern_delta_write_def *def,
                                    quern_sink sink)
{
    static const quern_delta_write_def zero;
    delta_writing it = {.delta = delta,
                        .def = def != NULL ? def : &zero,
                        .world = delta->history->world,
                        .first_handle_high = delta->history->world->storage.entities.first_handle_high};
    uint32_t count;
    quern_result result = quern__world_check_unlocked(it.world, "quern_delta_write");
    if (result == QUERN_OK)
        result = quern__list_count(it.def->components, QUERN_MAX_DELTA_COMPONENTS, is_component_end,
                                   "component", NULL, &count);
    for (uint32_t i = 0; result == QUERN_OK && i < count; i++) {
        result = quern__components_check(&it.world->storage.components, it.def->components[i]);
        if (result != QUERN_OK) quern__message_add_element(result, "component", i);
    }
    if (result == QUERN_OK && !QUERN__DELTA_IS_NATIVE)
        result = quern__fail(
            QUERN_ERROR_UNAVAILABLE,
            "deltas are little-endian, but this machine is big-endian: write them on a little-endian "
            "machine");
    return result == QUERN_OK ? allocate_and_write(&it, sink) : result;
}

quern_result quern_delta_write(const quern_delta *delta, const quern_delta_write_def *def, quern_sink sink)
{
    QUERN__NEED(delta);
    const quern_result result = quern__check_sink(sink, __func__);
    if (result != QUERN_OK) return result;
    return quern__in_call(check_and_write(delta, def, sink), __func__);
}
