/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_SORTED_SCENE_H
#define QUERN_TESTS_SORTED_SCENE_H

/* A world of units, with ordered queries and indexes on them, and a naive model: an iteration without an order, whose rows
 * are sorted by insertion, or searched one by one. */

#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct unit {
    float depth;
    int32_t layer;
    quern_entity owner;
    int8_t team;
} unit;

enum { SCENE_ORDERS = 4, SCENE_INDEXES = 3, SCENE_ROWS = 4096 };

typedef struct sorted_scene {
    quern_world *world;
    quern_component unit, other, tag;
    quern_query_def orders[SCENE_ORDERS];
    quern_query *ordered[SCENE_ORDERS], *plain[SCENE_ORDERS];
    quern_index *indexes[SCENE_INDEXES]; /* on team, owner and layer */
} sorted_scene;

/* Rows as the naive model lists them. */
typedef struct scene_rows {
    quern_entity entities[SCENE_ROWS];
    unit units[SCENE_ROWS];
    uint32_t count;
} scene_rows;

static const float scene_depths[] = {0, 1.5f, -1.5f, 2, -2, 1e30f, -1e30f, 1e-40f};

static inline unit scene_unit(random_source *random, const quern_entity *entities, uint32_t entity_count)
{
    unit it = {.depth = scene_depths[random_below(random, 8)],
               .layer = (int32_t)random_below(random, 7) - 3,
               .team = (int8_t)(random_below(random, 5) - 2)};
    const uint32_t kind = random_below(random, 16);
    if (kind == 0) it.depth = -0.0f;
    if (kind == 1) it.depth = NAN;
    if (kind == 2) it.depth = -NAN;
    if (kind == 3) it.depth = INFINITY;
    if (kind == 4) it.depth = -INFINITY;
    if (kind > 11) it.depth = (float)random_below(random, 100000) / 7 - 5000;
    if (kind == 5) it.layer = INT32_MIN;
    if (kind == 6) it.team = INT8_MIN;
    if (kind < 12 && entity_count > 0) it.owner = entities[random_below(random, entity_count)];
    return it;
}

static inline int scene_compare(const void *a, const void *b, void *user_data)
{
    const unit *left = a, *right = b;
    (void)user_data;
    if (left->team != right->team) return left->team < right->team ? -1 : 1;
    return (left->layer > right->layer) - (left->layer < right->layer);
}

static inline int compare_depths(float a, float b)
{
    if (isnan(a) || isnan(b)) return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

static const quern_world *scene_world; /* of the rows that are compared */

static inline uint64_t scene_number(quern_entity entity)
{
    if (quern_entity_is_null(entity)) return 0;
    return (uint64_t)quern_entity_index(entity) << 32 | quern_entity_use_count(scene_world, entity);
}

static inline int compare_entities(quern_entity a, quern_entity b)
{
    return (scene_number(a) > scene_number(b)) - (scene_number(a) < scene_number(b));
}

/* The order of a query, as said in its definition. */
static inline int scene_order(uint32_t order, const unit *a, const unit *b)
{
    switch (order) {
    case 0:
        return compare_depths(a->depth, b->depth);
    case 1:
        return (a->layer < b->layer) - (a->layer > b->layer);
    case 2:
        return -scene_compare(a, b, NULL);
    default:
        return compare_entities(a->owner, b->owner);
    }
}

static inline void scene_open(sorted_scene *scene, quern_world *in, bool can_disable)
{
    const quern_component_def def = {QUERN_TYPE(unit), .can_disable = can_disable,
                                     .row_changes = can_disable,
                                     .fields = QUERN_FIELDS(unit, depth, layer, owner, team)};
    scene->world = in;
    scene_world = in;
    must(quern_component_register(in, &def, &scene->unit));
    scene->other = setup_component(in, "other", 8, 8);
    scene->tag = setup_tag(in, "tag");
    const quern_component type = scene->unit;
    scene->orders[0] = (quern_query_def){.terms = {quern_term_write(type)},
                                         .order_by = {.component = type, .field = "depth"}};
    scene->orders[1] =
        (quern_query_def){.terms = {quern_term_without(scene->tag), quern_term_read(type)},
                          .order_by = {.component = type, .field = "layer", .descending = true}};
    scene->orders[2] = (quern_query_def){
        .terms = {quern_term_read(type), quern_term_optional(scene->other, QUERN_ACCESS_READ)},
        .order_by = {.component = type, .compare = scene_compare, .descending = true}};
    scene->orders[3] = (quern_query_def){
        .terms = {quern_term_either(quern_term_read(type))},
        .order_by = {.component = type, .type = QUERN_FIELD_ENTITY, .offset_bytes = offsetof(unit, owner)}};
    for (uint32_t i = 0; i < SCENE_ORDERS; i++) {
        quern_query_def plain = scene->orders[i];
        plain.order_by = (quern_order){.field = NULL};
        must(quern_query_create(in, &plain, &scene->plain[i]));
        must(quern_query_create(in, &scene->orders[i], &scene->ordered[i]));
    }
    const char *const fields[SCENE_INDEXES] = {"team", "owner", "layer"};
    for (uint32_t i = 0; i < SCENE_INDEXES; i++)
        must(quern_index_create(in, &(quern_index_def){.component = type, .field = fields[i]},
                                &scene->indexes[i]));
}

static inline void scene_close(sorted_scene *scene)
{
    for (uint32_t i = 0; i < SCENE_ORDERS; i++) {
        quern_query_destroy(scene->plain[i]);
        quern_query_destroy(scene->ordered[i]);
    }
    for (uint32_t i = 0; i < SCENE_INDEXES; i++)
        quern_index_destroy(scene->indexes[i]);
}

static inline uint64_t scene_value(uint32_t index, const unit *it)
{
    if (index == 1) return it->owner.bits;
    return index == 0 ? (uint64_t)it->team : (uint64_t)it->layer;
}

static inline void rows_append(scene_rows *rows, const quern_view *view, const unit *units)
{
    for (uint32_t i = 0; i < view->count && rows->count < SCENE_ROWS; i++) {
        rows->entities[rows->count] = view->entities[i];
        rows->units[rows->count++] = units[i];
    }
}

/* Lists the rows of an iteration. term: the one that reads units. */
static inline void rows_list(scene_rows *rows, quern_query_iterator *it, uint32_t term)
{
    rows->count = 0;
    while (quern_query_next(it))
        rows_append(rows, &it->view, quern_view_read(&it->view, term));
}

/* Sorts by insertion: rows that compare equal keep their order. */
static inline void rows_sort(scene_rows *rows, uint32_t order)
{
    for (uint32_t i = 1; i < rows->count; i++) {
        const quern_entity entity = rows->entities[i];
        const unit moved = rows->units[i];
        uint32_t k = i;
        for (; k > 0 && scene_order(order, &moved, &rows->units[k - 1]) < 0; k--) {
            rows->entities[k] = rows->entities[k - 1];
            rows->units[k] = rows->units[k - 1];
        }
        rows->entities[k] = entity;
        rows->units[k] = moved;
    }
}

/* Sorts by slots. */
static inline void rows_sort_by_slot(scene_rows *rows)
{
    for (uint32_t i = 1; i < rows->count; i++) {
        const quern_entity entity = rows->entities[i];
        const unit moved = rows->units[i];
        uint32_t k = i;
        for (; k > 0 && quern_entity_index(entity) < quern_entity_index(rows->entities[k - 1]); k--) {
            rows->entities[k] = rows->entities[k - 1];
            rows->units[k] = rows->units[k - 1];
        }
        rows->entities[k] = entity;
        rows->units[k] = moved;
    }
}

static inline bool rows_equal(const scene_rows *a, const scene_rows *b)
{
    return a->count == b->count && memcmp(a->entities, b->entities, a->count * sizeof *a->entities) == 0;
}

/* Returns whether `count` entities are those of the rows, which are sorted by slot, that have the value. */
static inline bool rows_have(const scene_rows *rows, uint32_t index, uint64_t value,
                             const quern_entity *entities, uint32_t count)
{
    uint32_t found_count = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        if (scene_value(index, &rows->units[i]) != value) continue;
        if (found_count >= count || entities[found_count++].bits != rows->entities[i].bits) return false;
    }
    return found_count == count;
}

static scene_rows scene_expected, scene_found;

/* Compares all orders and all indexes with the model, outside of frames. */
static inline void scene_check(sorted_scene *scene, const char *when)
{
    scene_world = scene->world;
    for (uint32_t i = 0; i < SCENE_ORDERS; i++) {
        const uint32_t term = i == 1;
        quern_query_iterator it = quern_query_iterate(scene->plain[i]);
        rows_list(&scene_expected, &it, term);
        cr_assert(scene_expected.count < SCENE_ROWS);
        rows_sort(&scene_expected, i);
        it = quern_query_iterate(scene->ordered[i]);
        must(it.result);
        rows_list(&scene_found, &it, term);
        must(it.result);
        cr_assert(rows_equal(&scene_expected, &scene_found), "%s: order %u has %u rows, not %u, or others",
                  when, i, scene_found.count, scene_expected.count);
    }
    quern_query_iterator it = quern_query_iterate(scene->plain[0]);
    rows_list(&scene_expected, &it, 0);
    rows_sort_by_slot(&scene_expected);
    for (uint32_t i = 0; i < SCENE_INDEXES; i++) {
        quern_index_stats stats;
        const quern_entity *entities;
        uint32_t count, total = 0, values = 0, doubles = 0;
        for (uint32_t k = 0; k < scene_expected.count; k++) {
            const uint64_t value = scene_value(i, &scene_expected.units[k]);
            bool is_first = true;
            for (uint32_t n = 0; n < k && is_first; n++)
                is_first = scene_value(i, &scene_expected.units[n]) != value;
            if (!is_first) continue;
            must(quern_index_find(scene->indexes[i], value, &entities, &count));
            cr_assert(rows_have(&scene_expected, i, value, entities, count),
                      "%s: index %u has %u entities of value %lld", when, i, count, (long long)value);
            total += count;
            values++;
            doubles += count > 1;
        }
        must(quern_index_find(scene->indexes[i], 1000, &entities, &count));
        cr_assert(count == 0 && entities == NULL);
        must(quern_index_get_stats(scene->indexes[i], &stats));
        cr_assert(stats.entity_count == total && stats.value_count == values &&
                      stats.double_count == doubles && total == scene_expected.count,
                  "%s: index %u has %llu entities of %u values", when, i,
                  (unsigned long long)stats.entity_count, stats.value_count);
    }
}

#endif
