/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Ordered queries: the rows of all matches, sorted by a field or by a comparison of the program.
 *
 * The list of rows is kept from one iteration to the next. If some chunks have changed since (core/query/keys.h), the rows
 * of these chunks leave the list, are sorted by themselves, and are merged into it. If the changed chunks hold a large
 * part of the rows, all rows are sorted anew, which then costs less. Rows that compare equal are in the order of their
 * positions, so the order depends on the world alone, and on no earlier order. */
#include "core/query/keys.h"

enum {
    FETCHED_TERMS = 2, /* columns of which the memory of later rows is fetched */
    FETCH_AHEAD = 8    /* so many rows ahead: rows that follow each other in the order are anywhere */
};

/* What a view of a chunk consists of. */
typedef struct order_place {
    char *memory;
    const quern__chunk *chunk;
    const quern_entity *entities; /* of the first row */
    const quern_view_column *columns;
    const quern__archetype *tracking_archetype; /* NULL if views need no versions and no bits of rows */
    uint32_t slot, run_shift, chunk_row;
    uint32_t fetch_bytes[FETCHED_TERMS]; /* size of a value */
    const char *fetch[FETCHED_TERMS];    /* values of the first row */
    uint64_t position;                   /* of the first row */
} order_place;

struct quern__order {
    quern__key_field field;
    bool descending;
    quern_compare_function *compare; /* NULL: by keys of the field */
    void *user_data;
    uint32_t term; /* index of the term that reads the component */
    bool writes;   /* whether some term writes: views then need the versions of their chunks */
    uint32_t fetch_count;
    uint8_t fetch_terms[FETCHED_TERMS]; /* the first terms that read or write values */
    QUERN__ARRAY(order_place) places;   /* by chunk, as in watch.chunks */
    uint64_t structure_version;         /* of the world, when `places` was made */
    quern__watch watch;
    /* Sorted. value: position of the row; key: that of the field, or the address of the value for a comparison, which is
     * valid only while the list is sorted. */
    QUERN__ARRAY(quern__keyed) rows;
    QUERN__ARRAY(quern__keyed) scratch;
    uint32_t list_number; /* number of times that `rows` was sorted */
    quern_order_stats stats;
};

typedef struct quern__order order_state;

/* ----------------------------------------------------------------------------------------- definition */

static quern_result find_term(const quern__query *query, const quern_order *def, uint32_t *out_term)
{
    const quern_result result = quern__components_check(&query->storage->components, def->component);
    if (result != QUERN_OK) return quern__message_add_element(result, "order_by", 0);
    for (uint32_t i = 0; i < query->term_count; i++) {
        const quern_term *term = &query->terms[i];
        if (!quern_component_equal(term->component, def->component) || term->path != QUERN_PATH_ROW ||
            term->by_target)
            continue;
        *out_term = i;
        if (term->match == QUERN_MATCH_ALL && term->access != QUERN_ACCESS_NONE) return QUERN_OK;
    }
    return quern__fail(
        QUERN_ERROR_INVALID_ARGUMENT,
        "order_by sorts by '%s', which no term reads of all rows: add quern_term_read of the component",
        quern__components_type(&query->storage->components, quern__component_index(def->component))->name);
}

static quern_result check(const quern__query *query, const quern_order *def, bool whole_chunks)
{
    if (quern_component_is_null(def->component))
        return quern__fail(QUERN_ERROR_UNKNOWN_COMPONENT,
                           "order_by names no component: set the component of which its field is");
    if (query->target != NULL || query->filter_count > 0 || whole_chunks)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "a query with order_by has %s: remove it, or iterate without an order",
                           query->target != NULL     ? "a target term"
                           : query->filter_count > 0 ? "a change filter"
                                                     : "whole_chunks");
    if (def->compare != NULL && (def->field != NULL || def->type != 0))
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "order_by has both a comparison and a field: remove one of them");
    return QUERN_OK;
}

static quern_result set_field(quern__query *query, const quern_order *def, quern__key_field *field)
{
    *field = (quern__key_field){.component_index = quern__component_index(def->component),
                                .offset_bytes = def->offset_bytes,
                                .type = def->type};
    if (def->compare != NULL) {
        if (quern__components_type(&query->storage->components, field->component_index)->size_bytes > 0)
            return QUERN_OK;
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "order_by compares '%s', a tag, which has no value to compare: "
            "name another component",
            quern__components_type(&query->storage->components, field->component_index)->name);
    }
    if (def->field != NULL) {
        const quern_result result = quern__check_name(def->field, "field");
        if (result != QUERN_OK) return result;
        memcpy(field->name, def->field, strlen(def->field) + 1);
    }
    return quern__in_call(quern__key_field_resolve(field, query->storage), "order_by");
}

bool quern__order_is_empty(const quern_order *def)
{
    return quern_component_is_null(def->component) && def->field == NULL && def->type == 0 &&
           def->offset_bytes == 0 && !def->descending && def->compare == NULL && def->user_data == NULL;
}

quern_result quern__order_create(quern__query *query, const quern_query_def *def)
{
    const quern_allocator *allocator = &query->storage->allocator;
    if (quern__order_is_empty(&def->order_by)) return QUERN_OK;
    order_state fresh = {.descending = def->order_by.descending,
                         .compare = def->order_by.compare,
                         .user_data = def->order_by.user_data};
    quern_result result = check(query, &def->order_by, def->whole_chunks);
    if (result == QUERN_OK) result = find_term(query, &def->order_by, &fresh.term);
    if (result == QUERN_OK) result = set_field(query, &def->order_by, &fresh.field);
    if (result != QUERN_OK) return result;
    fresh.watch.component_index = fresh.field.component_index;
    order_state *order = quern__allocate(allocator, sizeof *order, _Alignof(order_state));
    if (order == NULL) return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the order of a query");
    *order = fresh;
    for (uint32_t i = 0; i < query->term_count; i++) {
        if (query->terms[i].access == QUERN_ACCESS_NONE || query->terms[i].path != QUERN_PATH_ROW) continue;
        order->writes |= query->terms[i].access == QUERN_ACCESS_WRITE;
        if (order->fetch_count < QUERN__COUNT_OF(order->fetch_terms))
            order->fetch_terms[order->fetch_count++] = (uint8_t)i;
    }
    result = quern__query_watch(query->storage, fresh.field.component_index);
    if (result == QUERN_OK)
        query->order = order;
    else
        quern__release(allocator, order, sizeof *order, _Alignof(order_state));
    return result;
}

void quern__order_destroy(quern__query *query)
{
    const quern_allocator *allocator = &query->storage->allocator;
    order_state *order = query->order;
    if (order == NULL) return;
    quern__storage_remove_change_filter(query->storage, order->field.component_index);
    quern__watch_release(&order->watch, allocator);
    quern__array_release(allocator, &order->rows);
    quern__array_release(allocator, &order->scratch);
    quern__array_release(allocator, &order->places);
    quern__release(allocator, order, sizeof *order, _Alignof(order_state));
    query->order = NULL;
}

quern_order quern__order_get_def(const quern__query *query)
{
    const order_state *order = query->order;
    if (order == NULL) return (quern_order){0};
    return (quern_order){.component = query->terms[order->term].component,
                         .field = order->field.name[0] != '\0' ? order->field.name : NULL,
                         .type =
                             order->compare == NULL && order->field.name[0] == '\0' ? order->field.type : 0,
                         .offset_bytes = order->field.name[0] == '\0' ? order->field.offset_bytes : 0,
                         .descending = order->descending,
                         .compare = order->compare,
                         .user_data = order->user_data};
}

quern_order_stats quern__order_get_stats(const quern__query *query)
{
    return query->order != NULL ? query->order->stats : (quern_order_stats){0};
}

/* -------------------------------------------------------------------------------------------- sorting */

static const void *value_at(const quern__query *query, uint64_t position)
{
    const quern__query_match *match = &query->matches.items[quern__position_match(position)];
    const quern__chunk_slot *slot = &match->archetype->slots[quern__position_chunk(position)];
    const quern_view_column *column = &match->columns[query->order->term];
    const quern__run_place place = {slot->run, match->archetype->shape.shift,
                                    slot->first_row + quern__position_row(position)};
    return quern__run_value(place, column->offset_bytes, column->size_bytes);
}

/* Writes the rows of a chunk in ascending order of their positions. Returns their number. */
static uint32_t read_chunk(const quern__query *query, uint32_t match, uint32_t chunk,
                           quern__keyed *out_rows)
{
    const order_state *order = query->order;
    const uint64_t first = quern__position_make(match, chunk, 0);
    const uint32_t count = query->matches.items[match].archetype->slots[chunk].row_count;
    const uint32_t size_bytes = query->matches.items[match].columns[order->term].size_bytes;
    const char *values = value_at(query, first);
    for (uint32_t i = 0; i < count; i++)
        out_rows[i].value = first + i;
    if (order->compare != NULL) {
        for (uint32_t i = 0; i < count; i++)
            out_rows[i].key = (uintptr_t)(values + (size_t)i * size_bytes);
        return count;
    }
    quern__keys_read(&order->field, values, size_bytes, count, out_rows);
    if (order->field.type == QUERN_FIELD_ENTITY) {
        /* generations depend on the process, use counts do not */
        const uint32_t first_high = query->storage->entities.first_handle_high;
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t relative =
                quern__entity_to_relative((quern_entity){out_rows[i].key}, first_high);
            out_rows[i].key = relative << 32 | relative >> 32;
        }
    }
    for (uint32_t i = 0; i < count && order->descending; i++)
        out_rows[i].key = ~out_rows[i].key;
    return count;
}

/* Returns whether `a` belongs before `b`. Rows that compare equal are in the order of their positions. */
static inline bool is_before(const order_state *order, const quern__keyed *a, const quern__keyed *b)
{
    if (order->compare == NULL) return a->key < b->key || (a->key == b->key && a->value < b->value);
    int difference =
        order->compare((const void *)(uintptr_t)a->key, (const void *)(uintptr_t)b->key, order->user_data);
    if (order->descending) difference = difference < 0 ? 1 : -(difference > 0);
    return difference != 0 ? difference < 0 : a->value < b->value;
}

/* Merges neighbouring sorted parts of the rows until one is left. With a comparison that contradicts itself, the order is
 * any, and all rows are in it. */
static void sort_by_comparison(const order_state *order, quern__keyed *rows, quern__keyed *scratch,
                               uint32_t count)
{
    quern__keyed *from = rows, *to = scratch;
    for (uint64_t width = 1; width < count; width *= 2) {
        for (uint64_t begin = 0; begin < count; begin += 2 * width) {
            const uint64_t middle = begin + width < count ? begin + width : count;
            const uint64_t end = begin + 2 * width < count ? begin + 2 * width : count;
            uint64_t left = begin, right = middle, at = begin;
            if (middle == end || is_before(order, &from[middle - 1], &from[middle])) {
                memcpy(to + begin, from + begin, (size_t)(end - begin) * sizeof *to);
                continue;
            }
            while (at < end) {
                const bool takes_right =
                    left == middle || (right < end && is_before(order, &from[right], &from[left]));
                to[at++] = takes_right ? from[right++] : from[left++];
            }
        }
        quern__keyed *merged = to;
        to = from;
        from = merged;
    }
    if (from != rows) memcpy(rows, from, count * sizeof *rows);
}

static void sort(const order_state *order, quern__keyed *rows, quern__keyed *scratch, uint32_t count)
{
    if (order->compare != NULL)
        sort_by_comparison(order, rows, scratch, count);
    else
        quern__keyed_sort(rows, scratch, count);
}

/* A word for sorting all rows by keys of 32 bits: the key, the number of the chunk among those of the watch, and the row. */
enum { WORD_ROW_BITS = 11, WORD_CHUNKS = 1 << (32 - WORD_ROW_BITS) };
_Static_assert(QUERN__MAX_CHUNK_ROWS <= 1 << WORD_ROW_BITS, "rows of a chunk");

/* Sorts all rows as words, of which a cache line holds twice as many as of rows with keys. */
static void sort_all_words(quern__query *query)
{
    order_state *order = query->order;
    const uint32_t *first_chunks = order->watch.first_chunks.items;
    const uint32_t count = (uint32_t)order->watch.all_rows, row_mask = (1u << WORD_ROW_BITS) - 1;
    uint64_t *words = (uint64_t *)(void *)order->scratch.items, *next = words;
    quern__keyed *rows = order->rows.items; /* its beginning holds the rows of one chunk */
    const uint64_t high_bits = order->descending ? UINT64_MAX << 32 : 0;
    for (uint32_t i = 0; i < query->matches.count; i++)
        for (uint32_t chunk = first_chunks[i]; chunk < first_chunks[i + 1]; chunk++) {
            const uint32_t row_count = read_chunk(query, i, chunk - first_chunks[i], rows);
            for (uint32_t row = 0; row < row_count; row++)
                *next++ = rows[row].key << 32 | chunk << WORD_ROW_BITS | row;
        }
    assert(next == words + count);
    words = quern__words_sort(words, next, count);
    order->rows.count = count;
    for (uint32_t i = 0; i < count; i++) {
        const order_place *place = &order->places.items[(uint32_t)words[i] >> WORD_ROW_BITS];
        rows[i] = (quern__keyed){high_bits | words[i] >> 32, place->position + (words[i] & row_mask)};
    }
}

static void sort_all(quern__query *query)
{
    order_state *order = query->order;
    uint32_t count = 0;
    if (order->compare == NULL && quern__field_bytes(order->field.type) <= 4 &&
        order->watch.chunks.count <= WORD_CHUNKS) {
        sort_all_words(query);
        return;
    }
    for (uint32_t i = 0; i < query->matches.count; i++)
        for (uint32_t chunk = 0; chunk < query->matches.items[i].archetype->chunk_count; chunk++)
            count += read_chunk(query, i, chunk, order->rows.items + count);
    order->rows.count = count;
    sort(order, order->rows.items, order->scratch.items, count);
}

/* Removes the rows of chunks that are new or gone. Addresses of values are found again: the others may have moved. */
static void keep_old_rows(quern__query *query)
{
    order_state *order = query->order;
    const quern__watch *watch = &order->watch;
    uint32_t kept_count = 0;
    for (uint32_t i = 0; i < order->rows.count; i++) {
        const quern__keyed row = order->rows.items[i];
        const uint32_t *first = &watch->first_chunks.items[quern__position_match(row.value)];
        const uint32_t chunk = first[0] + quern__position_chunk(row.value);
        order->rows.items[kept_count] = row;
        kept_count += chunk < first[1] && !watch->chunks.items[chunk].is_new;
    }
    order->rows.count = kept_count;
    for (uint32_t i = 0; i < kept_count && order->compare != NULL; i++)
        order->rows.items[i].key = (uintptr_t)value_at(query, order->rows.items[i].value);
}

/* Merges sorted rows into the list, from the last one down. Most rows of the list move in ranges between those. */
static void merge_rows(order_state *order, const quern__keyed *fresh, uint32_t fresh_count)
{
    quern__keyed *rows = order->rows.items;
    uint32_t end = order->rows.count; /* rows of the list that were not moved */
    order->rows.count += fresh_count;
    for (uint32_t left = fresh_count; left > 0; left--) {
        const quern__keyed *row = &fresh[left - 1];
        /* the first row of the list that belongs after this one: steps that double, then a binary search */
        uint32_t high = end, step = 1;
        while (step <= high && is_before(order, row, &rows[high - step])) {
            high -= step;
            step *= 2;
        }
        uint32_t low = step <= high ? high - step : 0;
        while (low < high) {
            const uint32_t middle = low + (high - low) / 2;
            if (is_before(order, row, &rows[middle]))
                high = middle;
            else
                low = middle + 1;
        }
        memmove(rows + high + left, rows + high, (end - high) * sizeof *rows);
        rows[high + left - 1] = *row;
        end = high;
    }
}

static void sort_new(quern__query *query)
{
    order_state *order = query->order;
    quern__keyed *fresh = order->scratch.items;
    const uint32_t fresh_count = (uint32_t)order->watch.new_rows;
    uint32_t count = 0;
    keep_old_rows(query);
    for (uint32_t i = 0; i < query->matches.count; i++) {
        const uint32_t first = order->watch.first_chunks.items[i];
        for (uint32_t k = first; k < order->watch.first_chunks.items[i + 1]; k++)
            if (order->watch.chunks.items[k].is_new)
                count += read_chunk(query, i, k - first, fresh + count);
    }
    assert(count == fresh_count);
    sort(order, fresh, fresh + fresh_count, fresh_count);
    merge_rows(order, fresh, fresh_count);
}

/* New rows up to this part of all rows are merged. Above it, sorting all costs less. */
enum { MERGED_PART = 4 };

/* Lists what views consist of: addresses change with the structure of the world. */
static quern_result list_places(quern__query *query)
{
    order_state *order = query->order;
    if (!quern__array_reserve(&query->storage->allocator, &order->places, order->watch.chunks.count)) {
        order->watch.is_valid = false;
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory for the %u chunks of a query",
                           order->watch.chunks.count);
    }
    order->places.count = 0;
    for (uint32_t i = 0; i < query->matches.count; i++) {
        const quern__query_match *match = &query->matches.items[i];
        const quern__archetype *archetype = match->archetype;
        for (uint32_t k = 0; k < archetype->chunk_count; k++) {
            const quern__chunk_slot *slot = &archetype->slots[k];
            const quern__run_place first = {slot->run, archetype->shape.shift, slot->first_row};
            order_place place = {.memory = slot->run,
                                 .chunk = quern__slot_chunk(slot),
                                 .entities = quern__row_handle(archetype, quern__slot_row(slot, 0)),
                                 .columns = match->columns,
                                 .tracking_archetype =
                                     order->writes || archetype->row_bits != NULL ? archetype : NULL,
                                 .slot = k,
                                 .run_shift = first.shift,
                                 .chunk_row = first.row,
                                 .position = quern__position_make(i, k, 0)};
            for (uint32_t n = 0; n < order->fetch_count; n++) {
                const quern_view_column *column = &match->columns[order->fetch_terms[n]];
                place.fetch_bytes[n] = column->size_bytes;
                place.fetch[n] = quern__run_value(first, column->offset_bytes, column->size_bytes);
            }
            order->places.items[order->places.count++] = place;
        }
    }
    order->structure_version = query->storage->structure_version;
    return QUERN_OK;
}

quern_result quern__order_refresh(quern__query *query, bool is_outside)
{
    order_state *order = query->order;
    const quern_allocator *allocator = &query->storage->allocator;
    if (quern__watch_is_current(&order->watch, query))
        return order->structure_version == query->storage->structure_version ? QUERN_OK
                                                                             : list_places(query);
    quern_result result = quern__watch_update(&order->watch, query, is_outside);
    if (result == QUERN_OK && order->watch.is_fresh && order->compare == NULL)
        result = quern__key_field_resolve(&order->field, query->storage);
    if (result != QUERN_OK) return result;
    const uint64_t count = order->watch.all_rows;
    order->list_number++;
    if (count > UINT32_MAX || !quern__array_reserve(allocator, &order->rows, (uint32_t)count) ||
        !quern__array_reserve(allocator, &order->scratch, (uint32_t)count))
        return quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "no memory to sort the %llu rows of a query",
                           (unsigned long long)count);
    result = list_places(query);
    if (result != QUERN_OK) return result;
    const bool sorts_all = order->watch.is_fresh || order->watch.new_rows * MERGED_PART > count;
    if (sorts_all)
        sort_all(query);
    else
        sort_new(query);
    order->stats =
        (quern_order_stats){count, sorts_all ? count : order->watch.new_rows, order->stats.sort_count + 1,
                            order->stats.all_sorted_count + sorts_all};
    order->watch.is_valid = true;
    return QUERN_OK;
}

/* ------------------------------------------------------------------------------------------- iteration */

uint32_t quern__order_list_number(const quern__query *query)
{
    return query->order->list_number;
}

static inline const order_place *place_of(const order_state *order, uint64_t position)
{
    return &order->places.items[order->watch.first_chunks.items[quern__position_match(position)] +
                                quern__position_chunk(position)];
}

/* Shows the rows from number `at` on, before number `end`. Returns how many. Precondition: at < end. */
static inline uint32_t show_rows(const order_state *order, uint32_t at, uint32_t end, quern_view *view)
{
    const uint32_t left = end - at;
    const quern__keyed *row = &order->rows.items[at];
    const uint64_t position = row->value;
    if (QUERN__LIKELY(left > FETCH_AHEAD)) {
        const order_place *later = place_of(order, row[FETCH_AHEAD].value);
        const size_t later_row = quern__position_row(row[FETCH_AHEAD].value);
        for (uint32_t i = 0; i < order->fetch_count; i++)
            QUERN__PREFETCH(later->fetch[i] + later_row * later->fetch_bytes[i]);
    }
    uint32_t row_count = 1;
    /* the row after the last one of a chunk is no position, so a range stays in its chunk */
    while (row_count < left && row[row_count].value == position + row_count)
        row_count++;
    const order_place *place = place_of(order, position);
    const uint32_t first_row = quern__position_row(position);
    view->count = row_count;
    view->entities = place->entities + first_row;
    view->first_row = first_row;
    view->chunk_row = place->chunk_row;
    view->memory = place->memory;
    view->chunk = place->chunk;
    view->columns = place->columns;
    view->run_shift = place->run_shift;
    if (QUERN__UNLIKELY(place->tracking_archetype != NULL)) {
        view->row_bits = NULL;
        quern__view_load_change_data(view, place->tracking_archetype, place->slot);
    }
    return row_count;
}

static inline bool next_rows(quern_query_iterator *iterator, const order_state *order)
{
    const uint32_t at = iterator->match_index;
    if (QUERN__UNLIKELY(at >= order->rows.count)) return false;
    iterator->match_index = at + show_rows(order, at, order->rows.count, &iterator->view);
    iterator->view.ordinal = iterator->view_count++;
    return true;
}

bool quern__order_writes(const quern__query *query)
{
    return query->order->writes;
}

bool quern__order_next_of_piece(const quern__query *query, uint32_t *at, uint32_t end, quern_view *view,
                                const quern__archetype **out_archetype)
{
    const order_state *order = query->order;
    if (end > order->rows.count) end = order->rows.count;
    if (*at >= end) return false;
    view->rows = NULL;
    view->versions = NULL;
    view->row_bits = NULL;
    *out_archetype = query->matches.items[quern__position_match(order->rows.items[*at].value)].archetype;
    *at += show_rows(order, *at, end, view);
    return true;
}

bool quern__order_next(quern_query_iterator *iterator)
{
    iterator->view.rows = NULL;
    iterator->view.versions = NULL;
    iterator->view.row_bits = NULL;
    return next_rows(iterator, iterator->query->order);
}

bool quern__order_next_plain(quern_query_iterator *iterator)
{
    const quern__query *query = iterator->query;
    const order_state *order = query->order;
    if (query->selects_rows || iterator->result != QUERN_OK || *iterator->is_locked ||
        *iterator->current_version != iterator->expected_version ||
        iterator->chunk_index != order->list_number)
        return quern__query_next_any(iterator);
    return next_rows(iterator, order);
}
