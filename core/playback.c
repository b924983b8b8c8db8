/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/playback.h"

#include "core/bitset.h"

#include <stdlib.h>

void quern__playback_init(quern__playback *playback, quern__storage *storage)
{
    *playback = (quern__playback){.storage = storage};
}

void quern__playback_release(quern__playback *playback)
{
    const quern_allocator *allocator = &playback->storage->allocator;
    quern__array_release(allocator, &playback->streams);
    quern__array_release(allocator, &playback->edits);
    quern__array_release(allocator, &playback->changes);
    quern__array_release(allocator, &playback->created);
    quern__map_release(&playback->edit_of_slot, allocator);
}

/* ------------------------------------------------------------------------------------------ gather */

static int compare_streams(const void *a, const void *b)
{
    uint64_t x = (*(quern__stream *const *)a)->key, y = (*(quern__stream *const *)b)->key;
    return (x > y) - (x < y);
}

/* Lists all streams in order and makes room for whatever their commands may turn into. */
static quern_result gather(quern__playback *playback, quern_commands *recorders, uint32_t count,
                           uint64_t *out_command_count)
{
    uint64_t streams = 0, commands = 0, creates = 0;
    for (uint32_t i = 0; i < count; i++) {
        streams += recorders[i].streams.count;
        for (uint32_t k = 0; k < recorders[i].streams.count; k++) {
            commands += recorders[i].streams.items[k].command_count;
            creates += recorders[i].streams.items[k].create_count;
        }
    }
    *out_command_count = commands;
    const quern_allocator *allocator = &playback->storage->allocator;
    if (commands >= QUERN__CHANGE_NONE / 4)
        return quern__fail(QUERN_ERROR_LIMIT, "%llu commands at one sync point",
                           (unsigned long long)commands);
    if (!quern__array_reserve(allocator, &playback->streams, (uint32_t)streams) ||
        !quern__array_reserve(allocator, &playback->edits, (uint32_t)commands) ||
        !quern__array_reserve(allocator, &playback->changes, (uint32_t)commands) ||
        !quern__array_reserve(allocator, &playback->created, (uint32_t)creates) ||
        !quern__map_reserve(&playback->edit_of_slot, allocator, (uint32_t)commands))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to apply %llu commands",
                           (unsigned long long)commands);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < recorders[i].streams.count; k++)
            playback->streams.items[playback->streams.count++] = &recorders[i].streams.items[k];
    if (streams > 1)
        qsort(playback->streams.items, playback->streams.count, sizeof(quern__stream *), compare_streams);
    return QUERN_OK;
}

/* -------------------------------------------------------------------------------------------- fold */

static uint32_t edit_add(quern__playback *playback, quern_entity entity, quern__archetype *source)
{
    playback->edits.items[playback->edits.count] = (quern__edit){.entity = entity,
                                                                 .source = source,
                                                                 .first_change = QUERN__CHANGE_NONE,
                                                                 .last_change = QUERN__CHANGE_NONE};
    return playback->edits.count++;
}

/* The edit of a living entity, or NULL when it does not live any more. */
static quern__edit *find_real(quern__playback *playback, quern_entity entity)
{
    const quern__record *record = quern__entities_find(&playback->storage->entities, entity);
    if (record == NULL) return NULL;
    uint64_t key = (uint64_t)quern_entity_index(entity) + 1;
    const uint64_t *known = quern__map_find(&playback->edit_of_slot, key);
    if (known != NULL) return &playback->edits.items[*known];
    uint32_t index = edit_add(playback, entity, quern__storage_archetype_of(playback->storage, record));
    quern__map_put(&playback->edit_of_slot, key, index);
    return &playback->edits.items[index];
}

/* The edit of a handle that its recorder has let pass: real, or provisional and of this stream. */
static quern__edit *find_edit(quern__playback *playback, const quern__stream *stream, quern_entity entity)
{
    if (!quern_entity_is_provisional(entity)) return find_real(playback, entity);
    uint32_t number = stream->first_created + quern_entity_index(entity);
    return &playback->edits.items[playback->created.items[number]];
}

static void change_add(quern__playback *playback, quern__edit *edit, const quern__stream *stream,
                       quern__command *command)
{
    uint32_t index = playback->changes.count++;
    playback->changes.items[index] =
        (quern__change){.command = command, .stream = stream, .next = QUERN__CHANGE_NONE};
    if (edit->first_change == QUERN__CHANGE_NONE)
        edit->first_change = index;
    else
        playback->changes.items[edit->last_change].next = index;
    edit->last_change = index;
}

static void fold_command(quern__playback *playback, const quern__stream *stream, quern__command *command,
                         quern__playback_stats *stats)
{
    if (command->kind == QUERN__COMMAND_CREATE) {
        playback->created.items[playback->created.count++] = edit_add(playback, quern_entity_null(), NULL);
        return;
    }
    quern__edit *edit = find_edit(playback, stream, command->entity);
    if (edit == NULL || edit->destroyed)
        stats->dropped_count++;
    else if (command->kind == QUERN__COMMAND_DESTROY)
        edit->destroyed = true;
    else
        change_add(playback, edit, stream, command);
}

static void fold(quern__playback *playback, quern__playback_stats *stats)
{
    for (uint32_t i = 0; i < playback->streams.count; i++) {
        quern__stream *stream = playback->streams.items[i];
        stream->first_created = playback->created.count;
        quern__stream_cursor cursor = quern__stream_walk(stream);
        for (quern__command *command; (command = quern__stream_take(&cursor)) != NULL;)
            fold_command(playback, stream, command, stats);
    }
}

/* ------------------------------------------------------------------------------------------ settle */

/* One change alone: it is the edge between two archetypes, or nothing. */
static quern_result settle_single(quern__playback *playback, quern__edit *edit)
{
    const quern__command *command = playback->changes.items[edit->first_change].command;
    bool adds = command->kind == QUERN__COMMAND_ADD;
    edit->target = edit->source;
    if (adds == quern__archetype_has(edit->source, command->component_index)) return QUERN_OK;
    quern_result result =
        quern__storage_toggle(playback->storage, edit->source, command->component_index, &edit->plan);
    if (result == QUERN_OK) edit->target = edit->plan->target;
    return result;
}

/* Plays the changes through on a set of bits, notes which adds start anew, and returns the final set, sorted. */
static uint32_t final_set(quern__playback *playback, const quern__edit *edit, uint16_t *out_indices)
{
    uint64_t bits[QUERN__BITSET_WORDS(QUERN_MAX_COMPONENTS)] = {0};
    for (uint32_t i = 0; edit->source != NULL && i < edit->source->component_count; i++)
        quern__bitset_add(bits, edit->source->component_indices[i]);
    for (uint32_t i = edit->first_change; i != QUERN__CHANGE_NONE; i = playback->changes.items[i].next) {
        quern__change *change = &playback->changes.items[i];
        uint32_t component_index = change->command->component_index;
        if (change->command->kind == QUERN__COMMAND_ADD) {
            change->restarts = !quern__bitset_has(bits, component_index);
            quern__bitset_add(bits, component_index);
        } else {
            quern__bitset_remove(bits, component_index);
        }
    }
    uint32_t count = 0;
    for (uint32_t word = 0; word < QUERN__COUNT_OF(bits); word++)
        while (bits[word] != 0)
            out_indices[count++] = (uint16_t)(word * 64 + quern__bitset_take_lowest(&bits[word]));
    return count;
}

static quern_result settle_many(quern__playback *playback, quern__edit *edit)
{
    uint16_t set[QUERN_MAX_COMPONENTS];
    uint32_t count = final_set(playback, edit, set);
    quern_result result = quern__storage_archetype(playback->storage, set, count, &edit->target);
    if (result != QUERN_OK || edit->source == NULL || edit->source == edit->target) return result;
    return quern__storage_plan(playback->storage, edit->source, edit->target, &edit->plan);
}

static quern_result settle_target(quern__playback *playback, quern__edit *edit)
{
    bool is_single = edit->source != NULL && edit->first_change == edit->last_change;
    return is_single ? settle_single(playback, edit) : settle_many(playback, edit);
}

/* What one entity asks for and cannot have must not stop all others: its changes are dropped, and it stays as it
 * was or, if it was to be created, ends at once. */
static void refuse_edit(quern__playback *playback, quern__edit *edit, quern_result result,
                        quern__playback_stats *stats)
{
    for (uint32_t i = edit->first_change; i != QUERN__CHANGE_NONE; i = playback->changes.items[i].next)
        stats->dropped_count++;
    edit->first_change = QUERN__CHANGE_NONE;
    edit->target = edit->source;
    edit->destroyed = edit->source == NULL;
    if (stats->refused_result == QUERN_OK) stats->refused_result = result;
    stats->refused_count++;
}

static quern_result settle_edit(quern__playback *playback, quern__edit *edit, quern__playback_stats *stats)
{
    if (edit->destroyed) return QUERN_OK;
    quern_result result = settle_target(playback, edit);
    if (result == QUERN_ERROR_OUT_OF_MEMORY) return result;
    if (result != QUERN_OK) refuse_edit(playback, edit, result, stats);
    if (edit->target == edit->source) return QUERN_OK;
    return quern__storage_reserve_rows(playback->storage, edit->target, 1);
}

static void unreserve(quern__playback *playback)
{
    for (uint32_t i = 0; i < playback->edits.count; i++)
        if (playback->edits.items[i].target != NULL)
            quern__storage_unreserve_rows(playback->storage, playback->edits.items[i].target);
    quern__entities_trim(&playback->storage->entities, &playback->storage->allocator);
}

static quern_result settle(quern__playback *playback, quern__playback_stats *stats)
{
    quern__storage *storage = playback->storage;
    quern_result result =
        quern__entities_reserve(&storage->entities, &storage->allocator, playback->created.count);
    for (uint32_t i = 0; result == QUERN_OK && i < playback->edits.count; i++)
        result = settle_edit(playback, &playback->edits.items[i], stats);
    if (result != QUERN_OK) unreserve(playback);
    return result;
}

/* ------------------------------------------------------------------------------------------ commit */

typedef struct remap_scope {
    const quern__playback *playback;
    const quern__stream *stream;
} remap_scope;

/* Provisional handles of the stream become real; the recorder has let no others pass. */
static quern_entity remap(void *argument, quern_entity entity)
{
    const remap_scope *scope = argument;
    if (!quern_entity_is_provisional(entity)) return entity;
    uint32_t number = scope->stream->first_created + quern_entity_index(entity);
    return scope->playback->edits.items[scope->playback->created.items[number]].entity;
}

/* Columns of a row, by number. */
typedef uint64_t column_bits[QUERN__BITSET_WORDS(QUERN_MAX_ENTITY_COMPONENTS)];

/* Gives a value to a column: moved in from the command, or constructed where it has none. */
static void give_value(quern__playback *playback, const quern__change *change, const quern__type *type,
                       void *target)
{
    quern__command *command = change->command;
    if (!command->has_value) {
        quern__type_construct(type, target, 1);
        return;
    }
    void *value = quern__command_value(command, type);
    remap_scope scope = {.playback = playback, .stream = change->stream};
    quern__type_remap(type, value, remap, &scope);
    quern__type_move(type, target, value, 1);
    command->has_value = false;
}

/* An add without a value leaves a value that is there, unless the component was absent just before. */
static void apply_change(quern__playback *playback, const quern__change *change, const quern__edit *edit,
                         uintptr_t location, uint64_t *raw)
{
    const quern__command *command = change->command;
    if (command->kind != QUERN__COMMAND_ADD) return;
    uint32_t column_index = quern__archetype_column(edit->target, command->component_index);
    if (column_index >= QUERN__COLUMN_TAG) return; /* or removed again later */
    bool is_raw = quern__bitset_has(raw, column_index);
    if (!is_raw && !command->has_value && !change->restarts) return;
    const quern__column *column = &edit->target->columns[column_index];
    void *target = quern__column_value(column, quern__chunk_of(location), quern__location_row(location));
    if (is_raw)
        quern__bitset_remove(raw, column_index);
    else
        quern__type_destroy(column->type, target, 1);
    give_value(playback, change, column->type, target);
}

/* Columns that the row did not have before. Each is there because of an add, which will give it its value. */
static void mark_raw(const quern__edit *edit, uint64_t *raw)
{
    for (uint32_t i = 0; i < edit->target->column_count; i++) {
        uint16_t component_index = edit->target->columns[i].component_index;
        if (edit->source == NULL || !quern__archetype_has(edit->source, component_index))
            quern__bitset_add(raw, i);
    }
}

/* Brings the entity's row to its final archetype. Columns it did not have are raw memory. */
static uintptr_t place_row(quern__storage *storage, const quern__edit *edit, uint64_t *raw)
{
    if (edit->source == edit->target)
        return quern__entities_record(&storage->entities, quern_entity_index(edit->entity))->location;
    mark_raw(edit, raw);
    if (edit->source == NULL) return quern__storage_insert(storage, edit->entity, edit->target);
    quern__record *record = quern__entities_record(&storage->entities, quern_entity_index(edit->entity));
    uintptr_t location = quern__archetype_append(edit->target);
    quern__storage_move(storage, edit->entity, record, edit->plan, location);
    return location;
}

static void commit_edit(quern__playback *playback, const quern__edit *edit, quern__playback_stats *stats)
{
    quern__storage *storage = playback->storage;
    if (edit->destroyed) {
        stats->destroyed_count++;
        if (edit->source != NULL)
            quern__storage_erase(storage, edit->entity);
        else /* created and destroyed at the same sync point: it had a handle, but never a row */
            quern__entities_give(&storage->entities, quern_entity_index(edit->entity));
        return;
    }
    column_bits raw = {0};
    uintptr_t location = place_row(storage, edit, raw);
    for (uint32_t i = edit->first_change; i != QUERN__CHANGE_NONE; i = playback->changes.items[i].next)
        apply_change(playback, &playback->changes.items[i], edit, location, raw);
}

static void commit(quern__playback *playback, quern__playback_stats *stats)
{
    for (uint32_t i = 0; i < playback->created.count; i++)
        playback->edits.items[playback->created.items[i]].entity =
            quern__entities_take(&playback->storage->entities);
    stats->created_count += playback->created.count;
    for (uint32_t i = 0; i < playback->edits.count; i++)
        commit_edit(playback, &playback->edits.items[i], stats);
}

/* --------------------------------------------------------------------------------------------- run */

/* A small sync point after a large one must not pay for the table of the large one. */
static void clear_map(quern__playback *playback)
{
    quern__map *map = &playback->edit_of_slot;
    if (map->count > map->capacity / 16) {
        quern__map_clear(map);
        return;
    }
    for (uint32_t i = 0; i < playback->edits.count; i++)
        if (playback->edits.items[i].source != NULL)
            quern__map_forget(map, (uint64_t)quern_entity_index(playback->edits.items[i].entity) + 1);
}

static void clear(quern__playback *playback)
{
    clear_map(playback);
    playback->streams.count = 0;
    playback->edits.count = 0;
    playback->changes.count = 0;
    playback->created.count = 0;
}

static bool any_recorded(const quern_commands *recorders, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (recorders[i].streams.count > 0) return true;
    return false;
}

quern_result quern__playback_run(quern__playback *playback, quern_commands *recorders, uint32_t count,
                                 quern__playback_stats *stats)
{
    if (!any_recorded(recorders, count)) return QUERN_OK;
    quern__playback_stats found = {0};
    quern_result result = gather(playback, recorders, count, &found.command_count);
    if (result == QUERN_OK) {
        fold(playback, &found);
        result = settle(playback, &found);
    }
    if (result == QUERN_OK) {
        commit(playback, &found);
        stats->command_count += found.command_count;
        stats->dropped_count += found.dropped_count;
        stats->created_count += found.created_count;
        stats->destroyed_count += found.destroyed_count;
        stats->refused_count += found.refused_count;
        if (stats->refused_result == QUERN_OK) stats->refused_result = found.refused_result;
    }
    clear(playback);
    for (uint32_t i = 0; i < count; i++)
        quern__commands_reset(&recorders[i]);
    return result;
}
