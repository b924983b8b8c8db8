/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The end point "table": a part of the rows of a query, with chosen fields as columns, filtered by conditions and sorted by
 * a field.
 *
 * Without conditions and order, the first step stores the handles of the asked part alone, which is found chunk by chunk.
 * Otherwise it stores those of all matches. Then the rows that the conditions leave out are dropped, and the values
 * to sort by are read, some hundred rows in a step. If the asked part is among the first rows, a heap keeps these; otherwise a
 * merge sort goes on by parts of its passes. At last the asked part is written. Rows keep the order of the query where values
 * are equal. */
#include "inspect/inspect_internal.h"

#include <quern/enabled.h>
#include <quern/name.h>

#include <math.h>
#include <string.h>

enum {
    ROWS_MAX = 1 << 20,
    FILTERED_PER_STEP = 512,
    MERGED_PER_STEP = 2048,
    WRITTEN_PER_STEP = 8,
    HEAP_MAX = 1024 /* rows up to this one are found without sorting all */
};

typedef struct row {
    double key;
    quern_entity entity;
    uint32_t order; /* among the rows that the conditions hold for */
} row;

typedef enum stage { STAGE_FILTERS, STAGE_SORTS, STAGE_WRITES } stage;

typedef struct quern__inspect_table {
    quern__inspect_conditions conditions;
    quern__inspect_field sort; /* closed: not sorted */
    bool is_descending;
    uint32_t column_count;
    const char *columns[QUERN__INSPECT_COLUMNS]; /* paths; not ended by a zero */
    size_t column_bytes[QUERN__INSPECT_COLUMNS];
    row *rows, *other; /* each of `capacity`; `other` only to sort */
    uint32_t capacity;
    uint32_t matching_count; /* rows that were stored */
    uint64_t found_count;    /* rows of the query */
    uint32_t count;          /* rows that the conditions hold for */
    uint32_t offset, end;    /* rows to write */
    uint32_t first_stored;   /* number of the row that rows[0] is, when rows are written */
    uint32_t heap_count;     /* rows in the heap, the last one of them first: the begin of `rows` */
    stage stage;
    uint32_t at;          /* next row of the stage */
    uint32_t run;         /* length of the sorted runs of `rows` */
    uint32_t left, right; /* next rows of the two runs that are being merged */
} quern__inspect_table;

static void release_rows(const quern_allocator *allocator, row *rows, uint32_t capacity)
{
    if (rows != NULL)
        allocator->release(allocator->user_data, rows, capacity * sizeof *rows, _Alignof(row));
}

void quern__inspect_table_destroy(quern__inspect_answer *answer)
{
    quern__inspect_table *table = answer->table;
    const quern_allocator *allocator = &answer->inspector->def.allocator;
    if (table == NULL) return;
    quern__inspect_conditions_close(&table->conditions);
    quern__inspect_field_close(&table->sort);
    release_rows(allocator, table->rows, table->capacity);
    release_rows(allocator, table->other, table->capacity);
    allocator->release(allocator->user_data, table, sizeof *table, _Alignof(quern__inspect_table));
    answer->table = NULL;
}

/* --------------------------------------------------------------------------------------- arguments */

/* Reads the columns, separated by commas. A path that leads to no field is a column without values, so a page may keep its
 * columns while types come and go. */
static bool read_columns(quern__inspect_answer *answer, quern__inspect_table *table)
{
    const char *at = quern__inspect_argument(&answer->arguments, "columns");
    while (at != NULL && *at != '\0') {
        const size_t bytes = strcspn(at, ",");
        if (table->column_count == QUERN__INSPECT_COLUMNS) {
            quern__inspect_fail(answer, 400, "table: there are more than %d columns",
                                QUERN__INSPECT_COLUMNS);
            return false;
        }
        table->columns[table->column_count] = at;
        table->column_bytes[table->column_count++] = bytes;
        at += bytes + (at[bytes] == ',');
    }
    return true;
}

static row *allocate_rows(quern__inspect_answer *answer, uint32_t capacity)
{
    const quern_allocator *allocator = &answer->inspector->def.allocator;
    row *rows = allocator->allocate(allocator->user_data, capacity * sizeof *rows, _Alignof(row));
    if (rows == NULL) quern__inspect_fail(answer, 503, "table: no memory for %u rows", capacity);
    return rows;
}

static bool has_heap(const quern__inspect_table *table)
{
    return table->sort.getter != NULL && table->end <= HEAP_MAX;
}

/* Stores the handles of the part to write. */
static bool store_part(quern__inspect_answer *answer, quern__inspect_table *table, quern_query *query)
{
    uint32_t passed = 0;
    table->count = table->found_count > ROWS_MAX ? ROWS_MAX : (uint32_t)table->found_count;
    table->first_stored = table->offset < table->count ? table->offset : table->count;
    if (table->end > table->count) table->end = table->count;
    table->capacity = table->end > table->first_stored ? table->end - table->first_stored : 1;
    table->rows = allocate_rows(answer, table->capacity);
    if (table->rows == NULL) return false;
    quern_query_iterator iterator = quern_query_iterate(query);
    while (passed < table->end && quern_query_next(&iterator)) {
        const uint32_t count = iterator.view.count;
        uint32_t i = table->first_stored > passed ? table->first_stored - passed : 0;
        for (; i < count && passed + i < table->end; i++)
            table->rows[passed + i - table->first_stored].entity = iterator.view.entities[i];
        passed += count;
    }
    quern_query_iterator_end(&iterator);
    table->stage = STAGE_WRITES;
    return true;
}

/* Stores the handles of the matches. */
static bool store_matches(quern__inspect_answer *answer, quern__inspect_table *table, quern_query *query)
{
    const uint64_t count = table->found_count;
    table->capacity = count > ROWS_MAX ? ROWS_MAX : count > 0 ? (uint32_t)count : 1;
    table->rows = allocate_rows(answer, table->capacity);
    if (table->rows != NULL && table->sort.getter != NULL && !has_heap(table))
        table->other = allocate_rows(answer, table->capacity);
    if (table->rows == NULL || (table->sort.getter != NULL && !has_heap(table) && table->other == NULL))
        return false;
    quern_query_iterator iterator = quern_query_iterate(query);
    while (table->matching_count < table->capacity && quern_query_next(&iterator)) {
        const uint32_t room = table->capacity - table->matching_count;
        for (uint32_t i = 0; i < iterator.view.count && i < room; i++)
            table->rows[table->matching_count++].entity = iterator.view.entities[i];
    }
    quern_query_iterator_end(&iterator);
    return true;
}

static bool read_arguments(quern__inspect_answer *answer, quern__inspect_table *table)
{
    const char *where = quern__inspect_argument(&answer->arguments, "where"),
               *sort = quern__inspect_argument(&answer->arguments, "sort");
    uint64_t offset, limit, descending;
    if (!quern__inspect_read_count(answer, "offset", 0, UINT32_MAX, &offset) ||
        !quern__inspect_read_count(answer, "limit", 100, QUERN_INSPECT_MAX_LIST, &limit) ||
        !quern__inspect_read_count(answer, "descending", 0, 1, &descending) || !read_columns(answer, table))
        return false;
    table->offset = (uint32_t)offset;
    table->end = offset + limit < UINT32_MAX ? (uint32_t)(offset + limit) : UINT32_MAX;
    table->is_descending = descending != 0;
    return (where == NULL || quern__inspect_conditions_open(answer, where, &table->conditions)) &&
           (sort == NULL || sort[0] == '\0' ||
            quern__inspect_field_open(answer, sort, strlen(sort), &table->sort));
}

static void open_rows(quern__inspect_answer *answer, quern__inspect_table *table)
{
    quern__inspect_text *text = &answer->text;
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_count(text, "frame", answer->inspector->frame);
    quern__inspect_put_count(text, "found_count", table->found_count);
    quern__inspect_put_count(text, "count", table->count);
    quern__inspect_put_count(text, "offset", table->offset);
    quern__inspect_open(text, "rows", '[');
    if (table->end > table->count) table->end = table->count;
    table->at = table->offset;
}

static void begin_table(quern__inspect_answer *answer)
{
    const quern_allocator *allocator = &answer->inspector->def.allocator;
    const char *text;
    quern_query *query;
    if (!quern__inspect_read_text(answer, "query", &text)) return;
    quern__inspect_table *table =
        allocator->allocate(allocator->user_data, sizeof *table, _Alignof(quern__inspect_table));
    if (table == NULL) {
        quern__inspect_fail(answer, 503, "table: no memory for its state");
        return;
    }
    memset(table, 0, sizeof *table);
    answer->table = table;
    if (!read_arguments(answer, table)) return;
    const quern_result result = quern__inspect_query_create(answer->inspector->def.world, text, &query);
    if (result != QUERN_OK) {
        quern__inspect_fail_result(answer, result);
        return;
    }
    table->found_count = quern_query_count(query);
    if (table->conditions.count > 0 || table->sort.getter != NULL)
        store_matches(answer, table, query);
    else if (store_part(answer, table, query))
        open_rows(answer, table);
    quern_query_destroy(query);
}

/* --------------------------------------------------------------------------------- filters and order */

static bool is_before(const quern__inspect_table *table, const row *a, const row *b)
{
    if (a->key != b->key) return table->is_descending ? a->key > b->key : a->key < b->key;
    return a->order < b->order;
}

/* Places a row below `at` or its descendants in the heap of `count` rows. */
static void sift_down(quern__inspect_table *table, uint32_t count, uint32_t at, row next)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= count) break;
        child += child + 1 < count && is_before(table, &table->rows[child], &table->rows[child + 1]);
        if (!is_before(table, &next, &table->rows[child])) break;
        table->rows[at] = table->rows[child];
        at = child;
    }
    table->rows[at] = next;
}

/* Keeps a row if it is among the first `end`. The heap lies where rows were that have been read. */
static void keep_in_heap(quern__inspect_table *table, row next)
{
    if (table->heap_count < table->end) {
        uint32_t at = table->heap_count++;
        for (; at > 0 && is_before(table, &table->rows[(at - 1) / 2], &next); at = (at - 1) / 2)
            table->rows[at] = table->rows[(at - 1) / 2];
        table->rows[at] = next;
    } else if (table->end > 0 && is_before(table, &next, &table->rows[0])) {
        sift_down(table, table->heap_count, 0, next);
    }
}

static void sort_heap(quern__inspect_table *table)
{
    for (uint32_t count = table->heap_count; count > 1; count--) {
        const row last = table->rows[count - 1];
        table->rows[count - 1] = table->rows[0];
        sift_down(table, count - 1, 0, last);
    }
}

/* Reads the values of some rows, and drops rows that are dead or left out. A row without the value to sort by is the last. */
static void filter(quern__inspect_answer *answer, quern__inspect_table *table)
{
    const quern_world *world = answer->inspector->def.world;
    for (uint32_t i = 0; i < FILTERED_PER_STEP && table->at < table->matching_count; i++) {
        row next = table->rows[table->at++];
        if (!quern_entity_is_alive(world, next.entity) ||
            !quern__inspect_conditions_hold(&table->conditions, next.entity))
            continue;
        next.key = 0;
        /* Not a number comes after all numbers, as a missing value does. */
        if (table->sort.getter != NULL &&
            (!quern__inspect_field_number(&table->sort, next.entity, &next.key) || next.key != next.key))
            next.key = table->is_descending ? -INFINITY : INFINITY;
        next.order = table->count;
        if (has_heap(table))
            keep_in_heap(table, next);
        else
            table->rows[table->count] = next;
        table->count++;
    }
    if (table->at < table->matching_count) return;
    if (has_heap(table)) {
        sort_heap(table);
        table->stage = STAGE_WRITES;
        return;
    }
    table->stage = table->sort.getter != NULL && table->count > 1 ? STAGE_SORTS : STAGE_WRITES;
    table->at = 0;
    table->run = 1;
    table->left = 0;
    table->right = 1;
}

static bool precedes(const quern__inspect_table *table, const row *a, const row *b)
{
    return table->is_descending ? a->key > b->key : a->key < b->key;
}

/* Merges runs of `rows` into `other`, then exchanges the two. */
static void sort(quern__inspect_table *table)
{
    const uint32_t count = table->count;
    for (uint32_t i = 0; i < MERGED_PER_STEP && table->at < count; i++) {
        const uint32_t first = table->at & ~(2 * table->run - 1); /* the length of runs is a power of two */
        const uint32_t middle = first + table->run < count ? first + table->run : count;
        const uint32_t end = middle + table->run < count ? middle + table->run : count;
        if (table->at == first) {
            table->left = first;
            table->right = middle;
        }
        const bool takes_right =
            table->left == middle ||
            (table->right < end && precedes(table, &table->rows[table->right], &table->rows[table->left]));
        table->other[table->at++] = table->rows[takes_right ? table->right++ : table->left++];
    }
    if (table->at < count) return;
    row *const merged = table->other;
    table->other = table->rows;
    table->rows = merged;
    table->at = 0;
    if (2 * (uint64_t)table->run >= count)
        table->stage = STAGE_WRITES;
    else
        table->run *= 2;
}

/* -------------------------------------------------------------------------------------------- rows */

static void write_row(quern__inspect_answer *answer, const quern__inspect_table *table, quern_entity entity)
{
    const quern_world *world = answer->inspector->def.world;
    quern__inspect_text *text = &answer->text;
    const bool is_alive = quern_entity_is_alive(world, entity);
    quern__inspect_open(text, NULL, '{');
    quern__inspect_put_entity(text, "entity", entity);
    quern__inspect_put_text(text, "name", is_alive ? quern_entity_name(world, entity) : NULL);
    quern__inspect_put_flag(text, "enabled", is_alive && quern_entity_is_enabled(world, entity));
    quern__inspect_open(text, "values", '[');
    for (uint32_t i = 0; i < table->column_count; i++) {
        char path[256], value[256];
        quern_text_buffer buffer = {value, sizeof value, 0};
        const size_t bytes = table->column_bytes[i];
        bool has_value = is_alive && bytes < sizeof path;
        if (has_value) {
            memcpy(path, table->columns[i], bytes);
            path[bytes] = '\0';
            has_value = quern_entity_get_text(world, entity, path, quern_sink_text(&buffer)) == QUERN_OK;
        }
        quern__inspect_put_text(text, NULL, has_value ? value : NULL);
    }
    quern__inspect_close(text, ']');
    quern__inspect_close(text, '}');
}

static bool step_table(quern__inspect_answer *answer)
{
    quern__inspect_table *table = answer->table;
    const quern_world *world = answer->inspector->def.world;
    switch (table->stage) {
    case STAGE_FILTERS:
        quern__inspect_field_renew(world, &table->sort);
        quern__inspect_conditions_renew(world, &table->conditions);
        filter(answer, table);
        if (table->stage == STAGE_WRITES) open_rows(answer, table);
        return false;
    case STAGE_SORTS:
        sort(table);
        if (table->stage == STAGE_WRITES) open_rows(answer, table);
        return false;
    case STAGE_WRITES:
        break;
    }
    for (uint32_t i = 0; i < WRITTEN_PER_STEP && table->at < table->end; i++)
        write_row(answer, table, table->rows[table->at++ - table->first_stored].entity);
    if (table->at < table->end) return false;
    quern__inspect_close(&answer->text, ']');
    quern__inspect_close(&answer->text, '}');
    return true;
}

/* ------------------------------------------------------------------------------------------- routes */

const quern__inspect_route quern__inspect_table_routes[] = {
    {"table", false, false, begin_table, step_table, "query columns where sort descending offset limit"},
    {NULL, false, false, NULL, NULL, NULL},
};
