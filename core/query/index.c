/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Indexes: the entities of each value of a field.
 *
 *   rows     by match and row: entity and key, as they were at the last refresh
 *   groups   the entities of one key, ascending by slot; found by a map from keys
 *
 * A refresh compares the rows of changed chunks (core/query/keys.h) with what they were. Differences are *changes*: an entity
 * leaves a group, or enters one. Sorted by key and slot, the changes of a group are together, and a row that has only moved
 * is two changes that cancel out. So a group is written once, however many changes it has, and its order follows from the
 * entities in it alone. If memory runs out, the index is emptied and filled again at the next refresh. */
#include "core/query/query_internal.h"

#include "core/platform/platform.h"
#include "core/query/keys.h"

#include <stdio.h>

typedef struct index_row {
    quern_entity entity; /* null: none, or one in which the component is disabled */
    uint64_t key;
} index_row;

typedef struct match_rows {
    QUERN__ARRAY(index_row) rows;
} match_rows;

typedef struct index_group {
    uint64_t key;
    uint32_t count;
    uint32_t capacity; /* of `many`; 0: at most one entity, which is `one` */
    union {
        quern_entity one;
        quern_entity *many;
        uint64_t next_free; /* of a group that is not in use: 1 + index of the next one, or 0 */
    } list;
} index_group;

typedef struct index_change {
    uint64_t key;
    quern_entity entity;
    bool enters;
} index_change;

struct quern_index {
    quern_world *world;
    quern__query query; /* the entities that the index has */
    quern__key_field field;
    bool is_unique;
    bool is_destroyed;   /* by the program: the last system that declares the index releases it */
    uint32_t user_count; /* systems that declare the index */
    quern__watch watch;
    QUERN__ARRAY(match_rows) matches;
    QUERN__ARRAY(index_group) groups;
    quern__map group_of; /* by 1 + key -> index in groups */
    uint32_t last_group; /* 1 + the group of the greatest key, for which the map has no place; 0: none */
    uint32_t first_free; /* 1 + the first group that is not in use; 0: none */
    uint32_t group_count;
    uint32_t double_count; /* groups with several entities */
    uint64_t entity_count;
    size_t list_bytes; /* memory of the lists of groups */
    QUERN__ARRAY(index_change) changes;
    QUERN__ARRAY(quern__keyed) sorted;
    uint32_t
        entered_count; /* the first ones of `sorted`, after the changes: keys that entities have entered */
    QUERN__ARRAY(quern__keyed) scratch;
    QUERN__ARRAY(quern_entity) merged; /* scratch memory for one group */
    quern__mutex mutex;                /* held while the index is brought up to date in a frame */
    char name[QUERN_MAX_NAME_BYTES + 1];
};

/* -------------------------------------------------------------------------------------------- groups */

static const quern_entity *entities_of(const index_group *group)
{
    return group->capacity > 0 ? group->list.many : &group->list.one;
}

static index_group *find_group(const quern_index *index, uint64_t key)
{
    if (key == UINT64_MAX)
        return index->last_group > 0 ? &index->groups.items[index->last_group - 1] : NULL;
    const uint64_t *place = quern__map_find(&index->group_of, key + 1);
    return place != NULL ? &index->groups.items[*place] : NULL;
}

/* Returns NULL if out of memory. */
static index_group *add_group(quern_index *index, uint64_t key)
{
    const quern_allocator *allocator = &index->query.storage->allocator;
    if (!quern__map_reserve(&index->group_of, allocator, index->group_of.count + 1)) return NULL;
    if (index->first_free == 0 && !quern__array_reserve(allocator, &index->groups, index->groups.count + 1))
        return NULL;
    uint32_t place = index->first_free;
    if (place > 0)
        index->first_free = (uint32_t)index->groups.items[--place].list.next_free;
    else
        place = index->groups.count++;
    if (key == UINT64_MAX)
        index->last_group = place + 1;
    else
        quern__map_put(&index->group_of, key + 1, place);
    index->groups.items[place] = (index_group){.key = key};
    index->group_count++;
    return &index->groups.items[place];
}

static void release_list(quern_index *index, index_group *group)
{
    if (group->capacity == 0) return;
    index->list_bytes -= group->capacity * sizeof *group->list.many;
    quern__release(&index->query.storage->allocator, group->list.many,
                   group->capacity * sizeof *group->list.many, _Alignof(quern_entity));
    group->capacity = 0;
}

static void remove_group(quern_index *index, index_group *group)
{
    const uint32_t place = (uint32_t)(group - index->groups.items);
    if (group->key == UINT64_MAX)
        index->last_group = 0;
    else
        quern__map_remove(&index->group_of, group->key + 1);
    release_list(index, group);
    *group = (index_group){.list.next_free = index->first_free};
    index->first_free = place + 1;
    index->group_count--;
}

/* Makes room for `count` entities in a group, and keeps those in it. Returns false if out of memory. */
static bool reserve_list(quern_index *index, index_group *group, uint32_t count)
{
    if (count <= 1 || count <= group->capacity) return true;
    uint32_t capacity = 4;
    while (capacity < count)
        capacity = capacity < UINT32_MAX / 2 ? 2 * capacity : count;
    quern_entity *many =
        quern__allocate(&index->query.storage->allocator, capacity * sizeof *many, _Alignof(quern_entity));
    if (many == NULL) return false;
    memcpy(many, entities_of(group), group->count * sizeof *many);
    release_list(index, group);
    group->list.many = many;
    group->capacity = capacity;
    index->list_bytes += capacity * sizeof *many;
    return true;
}

/* Returns the place of the first entity with this slot or a greater one. */
static uint32_t find_place(const quern_entity *entities, uint32_t count, uint32_t first, uint32_t slot)
{
    uint32_t low = first, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (quern_entity_index(entities[middle]) < slot)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Writes the entities of a group after its changes, which ascend by slot, to `merged`. Returns their number. */
static uint32_t merge(const quern_index *index, const index_group *group, const quern__keyed *changes,
                      uint32_t change_count)
{
    const quern_entity *entities = entities_of(group);
    quern_entity *out = index->merged.items;
    uint32_t from = 0;
    for (uint32_t i = 0; i < change_count; i++) {
        const index_change *change = &index->changes.items[changes[i].value];
        const uint32_t place = find_place(entities, group->count, from, quern_entity_index(change->entity));
        memcpy(out, entities + from, (place - from) * sizeof *out);
        out += place - from;
        from = place;
        if (change->enters)
            *out++ = change->entity;
        else
            from++; /* what leaves a group is in it */
    }
    memcpy(out, entities + from, (group->count - from) * sizeof *out);
    return (uint32_t)(out - index->merged.items) + (group->count - from);
}

/* Groups with so few changes are changed in place. */
enum { FEW_CHANGES = 8 };

static void change_in_place(index_group *group, const index_change *change)
{
    quern_entity *entities = group->capacity > 0 ? group->list.many : &group->list.one;
    const uint32_t place = find_place(entities, group->count, 0, quern_entity_index(change->entity));
    if (change->enters) {
        memmove(entities + place + 1, entities + place, (group->count - place) * sizeof *entities);
        entities[place] = change->entity;
        group->count++;
    } else {
        group->count--;
        memmove(entities + place, entities + place + 1, (group->count - place) * sizeof *entities);
    }
}

/* Applies the changes of one key. They ascend by slot; of one slot, leaving comes first. Returns false if out of memory. */
static bool change_group(quern_index *index, uint64_t key, const quern__keyed *changes,
                         uint32_t change_count)
{
    const quern_allocator *allocator = &index->query.storage->allocator;
    index_group *group = find_group(index, key);
    if (group == NULL) group = add_group(index, key);
    if (group == NULL) return false;
    const bool was_double = group->count > 1;
    uint32_t most = group->count;
    for (uint32_t i = 0; i < change_count; i++)
        most += index->changes.items[changes[i].value].enters;
    if (!reserve_list(index, group, most)) return false;
    if (change_count <= FEW_CHANGES) {
        for (uint32_t i = 0; i < change_count; i++)
            change_in_place(group, &index->changes.items[changes[i].value]);
    } else {
        if (!quern__array_reserve(allocator, &index->merged, most)) return false;
        group->count = merge(index, group, changes, change_count);
        memcpy(group->capacity > 0 ? group->list.many : &group->list.one, index->merged.items,
               group->count * sizeof *index->merged.items);
    }
    index->double_count += (group->count > 1) - (uint32_t)was_double;
    if (group->count == 0) remove_group(index, group);
    return true;
}

/* -------------------------------------------------------------------------------------------- messages */

typedef struct quoted_name {
    char text[QUERN_MAX_NAME_BYTES + 8];
} quoted_name;

static quoted_name quote(const quern_index *index)
{
    quoted_name quoted = {""};
    if (index->name[0] != '\0') snprintf(quoted.text, sizeof quoted.text, " '%s'", index->name);
    return quoted;
}

typedef struct field_text {
    char text[2 * QUERN_MAX_NAME_BYTES + 32];
} field_text;

static field_text describe_field(const quern_index *index)
{
    field_text described;
    const char *component =
        quern__components_type(&index->query.storage->components, index->field.component_index)->name;
    if (index->field.name[0] != '\0')
        snprintf(described.text, sizeof described.text, "%s.%s", component, index->field.name);
    else
        snprintf(described.text, sizeof described.text, "%s, offset %u", component,
                 index->field.offset_bytes);
    return described;
}

/* The value of a key as text: that of an entity has its index and generation. */
typedef struct value_text {
    char text[48];
} value_text;

static value_text describe_value(const quern_index *index, uint64_t key)
{
    value_text described;
    const quern_field_type type = index->field.type;
    if (type == QUERN_FIELD_ENTITY)
        snprintf(described.text, sizeof described.text, "entity %u:%u",
                 quern_entity_index((quern_entity){key}), quern_entity_generation((quern_entity){key}));
    else if (type == QUERN_FIELD_U64)
        snprintf(described.text, sizeof described.text, "%llu", (unsigned long long)key);
    else
        snprintf(described.text, sizeof described.text, "%lld", (long long)(int64_t)key);
    return described;
}

/* Says that two entities have one value: the first two of the group. */
static quern_result fail_double(const quern_index *index, const index_group *group)
{
    const quern_entity a = entities_of(group)[0], b = entities_of(group)[1];
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "index%s of %s: entities %u:%u and %u:%u both have the value %s: give one of them "
                       "another value, or create the index without is_unique",
                       quote(index).text, describe_field(index).text, quern_entity_index(a),
                       quern_entity_generation(a), quern_entity_index(b), quern_entity_generation(b),
                       describe_value(index, group->key).text);
}

/* Returns the group with several entities of which one has the lowest index, or NULL if there is none. */
static const index_group *first_double(const quern_index *index)
{
    const index_group *found = NULL;
    for (uint32_t i = 0; index->double_count > 0 && i < index->groups.count; i++) {
        const index_group *group = &index->groups.items[i];
        if (group->count > 1 && (found == NULL || quern_entity_index(entities_of(group)[0]) <
                                                      quern_entity_index(entities_of(found)[0])))
            found = group;
    }
    return found;
}

/* ------------------------------------------------------------------------------------------- refreshing */

/* Removes everything from the index, and keeps memory. */
static void clear(quern_index *index)
{
    for (uint32_t i = 0; i < index->groups.count; i++)
        release_list(index, &index->groups.items[i]);
    for (uint32_t i = 0; i < index->matches.count; i++)
        index->matches.items[i].rows.count = 0;
    index->groups.count = index->group_count = index->first_free = index->last_group = 0;
    index->double_count = 0;
    index->entity_count = 0;
    quern__map_clear(&index->group_of);
}

static bool note_change(quern_index *index, const index_row *row, bool enters)
{
    if (quern_entity_is_null(row->entity)) return true;
    if (!quern__array_reserve(&index->query.storage->allocator, &index->changes, index->changes.count + 1))
        return false;
    index->changes.items[index->changes.count++] =
        (index_change){.key = row->key, .entity = row->entity, .enters = enters};
    return true;
}

/* The rows of a chunk as they are. */
typedef struct chunk_rows {
    const quern_entity *entities;
    const char *values; /* the field of the first row */
    uint32_t stride_bytes;
    quern_field_type type;
    const quern__row_bits *row_bits; /* NULL if the component cannot be disabled */
    uint32_t bit_column;
    uintptr_t first;
} chunk_rows;

static chunk_rows rows_of(const quern_index *index, const quern__query_match *match, uint32_t chunk)
{
    const quern__archetype *archetype = match->archetype;
    const quern__chunk_slot *slot = &archetype->slots[chunk];
    const quern_view_column *column = &match->columns[0];
    const quern__run_place place = {slot->run, archetype->shape.shift, slot->first_row};
    const uint32_t bit_column = quern__row_bits_find_column(
        archetype->row_bits, QUERN__BIT_COLUMN_CAN_DISABLE, index->field.component_index);
    return (chunk_rows){.entities = quern__row_handle(archetype, quern__slot_row(slot, 0)),
                        .values = quern__run_value(place, column->offset_bytes, column->size_bytes) +
                                  index->field.offset_bytes,
                        .stride_bytes = column->size_bytes,
                        .type = index->field.type,
                        .row_bits = bit_column != QUERN__NO_BIT_COLUMN ? archetype->row_bits : NULL,
                        .bit_column = bit_column,
                        .first = quern__location_make(quern__slot_chunk(slot), 0)};
}

static inline index_row row_at(const chunk_rows *rows, uint32_t row)
{
    const char *value = rows->values + (size_t)row * rows->stride_bytes;
    const bool is_disabled = rows->row_bits != NULL &&
                             quern__bit_column_test(rows->row_bits, rows->bit_column, rows->first + row);
    return (index_row){.entity = is_disabled ? quern_entity_null() : rows->entities[row],
                       .key = quern__field_load(rows->type, value)};
}

/* Notes how the rows of the new chunks of a match differ from what they were. Returns false if out of memory. */
static bool compare_match(quern_index *index, uint32_t match_index)
{
    const quern__query_match *match = &index->query.matches.items[match_index];
    match_rows *known = &index->matches.items[match_index];
    const uint32_t row_capacity = match->archetype->shape.row_capacity;
    const uint32_t first = index->watch.first_chunks.items[match_index];
    const uint32_t end = index->watch.first_chunks.items[match_index + 1];
    const uint64_t row_count = quern__archetype_row_count(match->archetype);
    if (row_count > UINT32_MAX ||
        !quern__array_reserve(&index->query.storage->allocator, &known->rows, (uint32_t)row_count))
        return false;
    for (uint32_t i = first; i < end; i++) {
        if (!index->watch.chunks.items[i].is_new) continue;
        const uint32_t row_end = index->watch.chunks.items[i].row_count;
        index_row *before = known->rows.items + (size_t)(i - first) * row_capacity;
        const uint32_t begin = (i - first) * row_capacity;
        const uint32_t known_count = known->rows.count > begin ? known->rows.count - begin : 0;
        const chunk_rows rows = rows_of(index, match, i - first);
        for (uint32_t k = 0; k < row_end; k++) {
            const bool is_known = k < known_count;
            const index_row now = row_at(&rows, k);
            if (is_known && before[k].entity.bits == now.entity.bits && before[k].key == now.key) continue;
            if ((is_known && !note_change(index, &before[k], false)) || !note_change(index, &now, true))
                return false;
            before[k] = now;
        }
    }
    for (uint32_t k = (uint32_t)row_count; k < known->rows.count; k++)
        if (!note_change(index, &known->rows.items[k], false)) return false;
    known->rows.count = (uint32_t)row_count;
    return true;
}

/* Sorts the changes by key, then by slot, then leaving before entering. Returns false if out of memory. */
static bool sort_changes(quern_index *index)
{
    const quern_allocator *allocator = &index->query.storage->allocator;
    const uint32_t count = index->changes.count;
    if (!quern__array_reserve(allocator, &index->sorted, count) ||
        !quern__array_reserve(allocator, &index->scratch, count))
        return false;
    quern__keyed *sorted = index->sorted.items;
    for (uint32_t i = 0; i < count; i++) {
        const index_change *change = &index->changes.items[i];
        sorted[i] = (quern__keyed){
            .key = (uint64_t)quern_entity_index(change->entity) << 1 | change->enters, .value = i};
    }
    quern__keyed_sort(sorted, index->scratch.items, count);
    for (uint32_t i = 0; i < count; i++)
        sorted[i].key = index->changes.items[sorted[i].value].key;
    quern__keyed_sort(sorted, index->scratch.items, count);
    index->sorted.count = count;
    return true;
}

/* Drops pairs of changes that cancel out, of `count` changes of one key. Returns how many are left. */
static uint32_t drop_pairs(const quern_index *index, quern__keyed *changes, uint32_t count)
{
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i + 1 < count && index->changes.items[changes[i].value].entity.bits ==
                                 index->changes.items[changes[i + 1].value].entity.bits) {
            i++;
            continue;
        }
        changes[kept_count++] = changes[i];
    }
    return kept_count;
}

/* Applies the changes. Returns false if out of memory. */
static bool apply_changes(quern_index *index)
{
    index->entered_count = 0;
    if (!sort_changes(index)) return false;
    quern__keyed *sorted = index->sorted.items;
    const uint32_t count = index->sorted.count;
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        const uint64_t key = sorted[begin].key;
        end = begin + 1;
        while (end < count && sorted[end].key == key)
            end++;
        const uint32_t kept_count = drop_pairs(index, sorted + begin, end - begin);
        uint32_t entered_count = 0;
        for (uint32_t i = begin; i < begin + kept_count; i++)
            entered_count += index->changes.items[sorted[i].value].enters;
        index->entity_count += entered_count;
        index->entity_count -= kept_count - entered_count;
        if (kept_count > 0 && !change_group(index, key, sorted + begin, kept_count)) return false;
        /* the beginning of the list becomes the keys that entities have entered */
        if (entered_count > 0) sorted[index->entered_count++].key = key;
    }
    return true;
}

/* Reports the doubles of a unique index that entities have entered, in the order of their first entities: that of keys may
 * depend on the process. */
static void report_doubles(const quern_index *index)
{
    quern__keyed *doubles = index->scratch.items;
    uint32_t count = 0;
    for (uint32_t i = 0; i < index->entered_count; i++) {
        const index_group *group = find_group(index, index->sorted.items[i].key);
        if (group == NULL || group->count < 2) continue;
        doubles[count++] =
            (quern__keyed){quern_entity_index(entities_of(group)[0]), index->sorted.items[i].key};
    }
    if (count > 1) quern__keyed_sort(doubles, index->sorted.items, count);
    for (uint32_t i = 0; i < count; i++) {
        (void)fail_double(index, find_group(index, doubles[i].value));
        quern__log(QUERN_LOG_ERROR, "%s", quern_error_message());
    }
}

static quern_result refresh(quern_index *index, bool is_outside)
{
    quern__query *query = &index->query;
    const quern_allocator *allocator = &query->storage->allocator;
    quern_result result = quern__query_refresh(query);
    if (result != QUERN_OK) return result;
    if (quern__watch_is_current(&index->watch, query)) return QUERN_OK;
    result = quern__watch_update(&index->watch, query, is_outside);
    if (result == QUERN_OK && index->watch.is_fresh) {
        clear(index);
        result = quern__key_field_resolve(&index->field, query->storage);
    }
    if (result != QUERN_OK) return result;
    bool has_memory = quern__array_reserve(allocator, &index->matches, query->matches.count);
    while (has_memory && index->matches.count < query->matches.count)
        index->matches.items[index->matches.count++] = (match_rows){{0}};
    index->changes.count = 0;
    for (uint32_t i = 0; has_memory && i < query->matches.count; i++)
        has_memory = compare_match(index, i);
    if (has_memory) has_memory = apply_changes(index);
    if (!has_memory)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the %llu entities of index%s of %s",
                           (unsigned long long)index->watch.all_rows, quote(index).text,
                           describe_field(index).text);
    index->watch.is_valid = true;
    if (index->is_unique && index->double_count > 0) report_doubles(index);
    return QUERN_OK;
}

static void release(quern_index *index)
{
    const quern_allocator *allocator = &index->query.storage->allocator;
    clear(index);
    for (uint32_t i = 0; i < index->matches.count; i++)
        quern__array_release(allocator, &index->matches.items[i].rows);
    quern__array_release(allocator, &index->matches);
    quern__array_release(allocator, &index->groups);
    quern__array_release(allocator, &index->changes);
    quern__array_release(allocator, &index->sorted);
    quern__array_release(allocator, &index->scratch);
    quern__array_release(allocator, &index->merged);
    quern__map_release(&index->group_of, allocator);
    quern__watch_release(&index->watch, allocator);
    quern__mutex_deinit(&index->mutex);
    quern__query_release(&index->query);
    quern__release(allocator, index, sizeof *index, _Alignof(quern_index));
}

/* Releases an index of which the world knows. */
static void end(quern_index *index)
{
    index->world->user_count--;
    quern__storage_remove_change_filter(index->query.storage, index->field.component_index);
    release(index);
}

/* --------------------------------------------------------------------------------------------- frames */

quern_result quern__index_check_world(const quern_index *index, const quern_world *world)
{
    if (index->world == world) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "index%s of %s belongs to another world: create one in the world of the schedule",
                       quote(index).text, describe_field(index).text);
}

void quern__index_add_user(quern_index *index)
{
    index->user_count++;
}

void quern__index_remove_user(quern_index *index)
{
    index->user_count--;
    if (index->user_count == 0 && index->is_destroyed) end(index);
}

quern_component quern__index_component(const quern_index *index)
{
    return index->query.terms[0].component;
}

quern_result quern__index_refresh_inside(quern_index *index)
{
    quern__mutex_lock(&index->mutex);
    const quern_result result = refresh(index, false);
    quern__mutex_unlock(&index->mutex);
    return result;
}

uint32_t quern__index_find(const quern_index *index, uint64_t value, const quern_entity **out_entities)
{
    const index_group *group = find_group(index, value);
    *out_entities = group != NULL ? entities_of(group) : NULL;
    return group != NULL ? group->count : 0;
}

/* --------------------------------------------------------------------------------------- public calls */

static quern_result check_def(const quern_world *world, const quern_index_def *def,
                              quern__key_field *out_field)
{
    quern_result result = def->name != NULL ? quern__check_name(def->name, "index") : QUERN_OK;
    if (result == QUERN_OK) result = quern__components_check(&world->storage.components, def->component);
    if (result == QUERN_OK && def->field != NULL) result = quern__check_name(def->field, "field");
    if (result != QUERN_OK) return result;
    *out_field = (quern__key_field){.component_index = quern__component_index(def->component),
                                    .type = def->type,
                                    .offset_bytes = def->offset_bytes};
    if (def->field != NULL) memcpy(out_field->name, def->field, strlen(def->field) + 1);
    result = quern__key_field_resolve(out_field, &world->storage);
    if (result != QUERN_OK || (out_field->type != QUERN_FIELD_F32 && out_field->type != QUERN_FIELD_F64))
        return result;
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "the field of component '%s' is a floating-point number, of which hardly two are "
        "equal: sort by it (order_by in quern_query_def), or index an integer that is made "
        "of it",
        quern__components_type(&world->storage.components, out_field->component_index)->name);
}

/* Initialises an index in memory that is not. After a failure, nothing is left to release. */
static quern_result init(quern_index *index, quern_world *world, const quern_index_def *def,
                         const quern__key_field *field)
{
    const quern_term term = quern_term_with(def->component);
    *index = (quern_index){.world = world,
                           .field = *field,
                           .is_unique = def->is_unique,
                           .watch = {.component_index = field->component_index}};
    if (def->name != NULL) memcpy(index->name, def->name, strlen(def->name) + 1);
    if (!quern__mutex_init(&index->mutex))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the mutex of an index");
    quern_result result = quern__query_init(&index->query, &world->storage, &term, 1);
    if (result == QUERN_OK) {
        result = quern__query_watch(&world->storage, field->component_index);
        if (result != QUERN_OK) quern__query_release(&index->query);
    }
    if (result != QUERN_OK) quern__mutex_deinit(&index->mutex);
    return result;
}

quern_result quern_index_create(quern_world *world, const quern_index_def *def, quern_index **out_index)
{
    QUERN__ENTER_UNLOCKED(world);
    QUERN__NEED(def);
    QUERN__NEED(out_index);
    quern__key_field field;
    quern_result result = check_def(world, def, &field);
    if (result != QUERN_OK) return quern__in_call(result, __func__);
    const quern_allocator *allocator = &world->storage.allocator;
    quern_index *index = quern__allocate(allocator, sizeof *index, _Alignof(quern_index));
    if (index == NULL)
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "quern_index_create: no memory for an index");
    result = init(index, world, def, &field);
    if (result != QUERN_OK) {
        quern__release(allocator, index, sizeof *index, _Alignof(quern_index));
        return quern__in_call(result, __func__);
    }
    index->is_unique = false; /* a double is an error of this call, and not reported */
    result = refresh(index, true);
    index->is_unique = def->is_unique;
    const index_group *found = result == QUERN_OK && def->is_unique ? first_double(index) : NULL;
    if (found != NULL) result = fail_double(index, found);
    if (result != QUERN_OK) {
        quern__storage_remove_change_filter(&world->storage, field.component_index);
        release(index);
        return quern__in_call(result, __func__);
    }
    world->user_count++;
    *out_index = index;
    return QUERN_OK;
}

void quern_index_destroy(quern_index *index)
{
    if (index == NULL) return;
    if (index->world->locked) {
        quern__report_violation(QUERN_ERROR_WORLD_LOCKED,
                                "quern_index_destroy: " QUERN__WORLD_LOCKERS
                                " is running on the world of the index; destroy the index afterwards");
        return;
    }
    index->is_destroyed = true;
    if (index->user_count == 0) end(index);
}

quern_result quern_index_find(quern_index *index, uint64_t value, const quern_entity **out_entities,
                              uint32_t *out_count)
{
    const quern_entity *entities;
    QUERN__NEED(index);
    QUERN__NEED(out_count);
    QUERN__ENTER_UNLOCKED(index->world);
    const quern_result result = quern__in_call(refresh(index, true), __func__);
    if (result != QUERN_OK) return result;
    *out_count = quern__index_find(index, value, &entities);
    if (out_entities != NULL) *out_entities = entities;
    return QUERN_OK;
}

quern_result quern_index_check(quern_index *index)
{
    QUERN__NEED(index);
    QUERN__ENTER_UNLOCKED(index->world);
    quern_result result = refresh(index, true);
    const index_group *found = result == QUERN_OK ? first_double(index) : NULL;
    if (found != NULL) result = fail_double(index, found);
    return quern__in_call(result, __func__);
}

quern_result quern_index_get_stats(const quern_index *index, quern_index_stats *out_stats)
{
    QUERN__NEED(index);
    QUERN__NEED(out_stats);
    *out_stats = (quern_index_stats){.entity_count = index->entity_count,
                                     .value_count = index->group_count,
                                     .double_count = index->double_count};
    size_t bytes = sizeof *index + index->list_bytes;
    for (uint32_t i = 0; i < index->matches.count; i++)
        bytes += index->matches.items[i].rows.capacity * sizeof(index_row);
    bytes += index->matches.capacity * sizeof *index->matches.items;
    bytes += index->groups.capacity * sizeof *index->groups.items;
    bytes += index->group_of.capacity * sizeof *index->group_of.slots;
    bytes += index->changes.capacity * sizeof *index->changes.items;
    bytes += ((size_t)index->sorted.capacity + index->scratch.capacity) * sizeof *index->sorted.items;
    bytes += index->merged.capacity * sizeof *index->merged.items;
    bytes += ((size_t)index->watch.chunks.capacity + index->watch.spare.capacity) *
             sizeof *index->watch.chunks.items;
    out_stats->bytes = bytes;
    return QUERN_OK;
}

quern_result quern_index_get_def(const quern_index *index, quern_index_def *out_def)
{
    QUERN__NEED(index);
    QUERN__NEED(out_def);
    const bool has_name = index->field.name[0] != '\0';
    *out_def = (quern_index_def){.name = index->name[0] != '\0' ? index->name : NULL,
                                 .component = quern__index_component(index),
                                 .field = has_name ? index->field.name : NULL,
                                 .type = has_name ? 0 : index->field.type,
                                 .offset_bytes = has_name ? 0 : index->field.offset_bytes,
                                 .is_unique = index->is_unique};
    return QUERN_OK;
}
