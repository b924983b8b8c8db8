/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded, optimised */
#include "kit/grid.h"

#include "tests/support/effort.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Grids over clouds, clusters, lines and heaps. Results are compared with those of a naive search through all entities
 * at 1, 2, 3 and 8 threads. The naive search computes cells by their definition, so the order is compared as well. */

enum { MOST = effort(12000, 6000, 5000), QUESTIONS = effort(60, 30, 12), HITS = 40 };

typedef struct spot {
    float x, y, z;
} spot;

typedef enum shape { CLOUD, CLUSTERS, LINE, HEAP, LATTICE, SHAPES } shape;

typedef struct scene {
    quern_world *world;
    quern_component spot;
    quern_component tags[3];
    quern_grid *grid;
    bool is_planar;
    uint32_t count;
    quern_grid_item *naive; /* in the order that the grid must have */
} scene;

static float unit(random_source *random)
{
    return (float)random_below(random, 1u << 20) / (float)(1u << 20);
}

static spot some_spot(random_source *random, shape kind)
{
    const float x = unit(random), y = unit(random), z = unit(random);
    switch (kind) {
    case CLUSTERS: {
        const float at = (float)random_below(random, 5) * 20 - 50;
        return (spot){at + x, -at + y, z};
    }
    case LINE:
        return (spot){100 * x, 3, 100 * x};
    case HEAP:
        return (spot){0.5f, 0.5f, 0.5f};
    case LATTICE: /* exactly on the borders of cells, and at exactly the radius */
        return (spot){floorf(x * 20), floorf(y * 20), floorf(z * 4)};
    case CLOUD:
    case SHAPES:
        break;
    }
    return (spot){x * 100 - 50, y * 100 - 50, z * 30};
}

static void populate(scene *s, random_source *random, shape kind)
{
    for (uint32_t i = 0; i < s->count; i++) {
        quern_component components[4] = {s->spot};
        uint32_t component_count = 1;
        for (uint32_t tag = 0; tag < 3; tag++)
            if (random_chance(random, 30)) components[component_count++] = s->tags[tag];
        const spot at = some_spot(random, kind);
        const void *const values[4] = {&at};
        quern_entity entity;
        cr_assert_eq(quern_entity_create_with(s->world, components, values, component_count, &entity),
                     QUERN_OK);
        if (random_chance(random, 10)) cr_assert_eq(quern_entity_destroy(s->world, entity), QUERN_OK);
    }
}

/* ------------------------------------------------------------------------------------ the naive search */

static uint64_t cell_number(const quern_grid_cells *cells, const quern_grid_item *item)
{
    uint64_t number = 0;
    for (uint32_t axis = 3; axis-- > 0;)
        number = number * cells->counts[axis] + quern_grid_cell_along(cells, axis, item->position[axis]);
    return number;
}

typedef struct numbered {
    quern_grid_item item;
    uint64_t cell;
    uint32_t row;
} numbered;

static int by_cell_and_row(const void *a, const void *b)
{
    const numbered *left = a, *right = b;
    if (left->cell != right->cell) return left->cell < right->cell ? -1 : 1;
    return left->row < right->row ? -1 : 1;
}

/* Lists all entities in the order of cells and of rows in each cell, by its own query. */
static void list_naively(scene *s)
{
    numbered *list = calloc(s->count + 1, sizeof *list);
    const quern_query_def def = {.terms = {quern_term_read(s->spot),
                                           quern_term_optional(s->tags[0], QUERN_ACCESS_NONE),
                                           quern_term_optional(s->tags[1], QUERN_ACCESS_NONE)}};
    quern_query *query;
    cr_assert_eq(quern_query_create(s->world, &def, &query), QUERN_OK);
    quern_query_iterator it = quern_query_iterate(query);
    uint32_t count = 0;
    while (quern_query_next(&it)) {
        const spot *spots = QUERN_COLUMN(&it.view, 0, const spot);
        for (uint32_t i = 0; i < it.view.count; i++, count++) {
            numbered *one = &list[count];
            one->row = count;
            one->item.entity = it.view.entities[i];
            memcpy(one->item.position, &spots[i], sizeof spots[i]);
            if (s->is_planar) one->item.position[2] = 0;
            one->item.marks = (uint32_t)quern_view_has(&it.view, 1) | (uint32_t)quern_view_has(&it.view, 2)
                                                                          << 1;
            one->cell = cell_number(quern_grid_get_cells(s->grid), &one->item);
        }
    }
    qsort(list, count, sizeof *list, by_cell_and_row);
    for (uint32_t i = 0; i < count; i++)
        s->naive[i] = list[i].item;
    s->count = count;
    quern_query_destroy(query);
    free(list);
}

static float square_from(const quern_grid_item *item, const float *center, bool is_planar)
{
    const float x = item->position[0] - center[0], y = item->position[1] - center[1];
    const float z = is_planar ? 0 : item->position[2] - center[2];
    return x * x + y * y + z * z;
}

static void assert_same(const quern_grid_item *found, const quern_grid_item *expected, const char *where)
{
    cr_assert_eq(found->entity.bits, expected->entity.bits, "%s", where);
    cr_assert_eq(memcmp(found->position, expected->position, sizeof found->position), 0, "%s", where);
    cr_assert_eq(found->marks, expected->marks, "%s", where);
}

/* ------------------------------------------------------------------------------------------- questions */

static void ask_radius(const scene *s, const float *center, float radius)
{
    quern_grid_iterator it = quern_grid_radius(s->grid, center, radius);
    for (uint32_t i = 0; i < s->count; i++) {
        const float square = square_from(&s->naive[i], center, s->is_planar);
        if (square > radius * radius) continue;
        cr_assert(quern_grid_next(&it), "radius");
        assert_same(it.item, &s->naive[i], "radius");
        cr_assert_eq(it.square, square);
    }
    cr_assert_not(quern_grid_next(&it), "radius: too many");
}

static bool is_in(const quern_grid_item *item, const float *min, const float *max, uint32_t axes)
{
    for (uint32_t axis = 0; axis < axes; axis++)
        if (item->position[axis] < min[axis] || item->position[axis] > max[axis]) return false;
    return true;
}

static void ask_box(const scene *s, const float *min, const float *max)
{
    quern_grid_iterator it = quern_grid_box(s->grid, min, max);
    for (uint32_t i = 0; i < s->count; i++) {
        if (!is_in(&s->naive[i], min, max, s->is_planar ? 2 : 3)) continue;
        cr_assert(quern_grid_next(&it), "box");
        assert_same(it.item, &s->naive[i], "box");
    }
    cr_assert_not(quern_grid_next(&it), "box: too many");
}

/* Keys of all results by index in the naive order. The results are taken out in the order of keys. */
static float keys[MOST];

static void compare_hits(const scene *s, const quern_grid_hit *hits, uint32_t hit_count, uint32_t capacity,
                         const char *where)
{
    for (uint32_t place = 0; place < capacity; place++) {
        uint32_t least = s->count;
        for (uint32_t i = 0; i < s->count; i++)
            if (keys[i] >= 0 && (least == s->count || keys[i] < keys[least])) least = i;
        if (least == s->count) {
            cr_assert_eq(hit_count, place, "%s", where);
            return;
        }
        cr_assert_lt(place, hit_count, "%s", where);
        cr_assert_eq(hits[place].key, keys[least], "%s", where);
        assert_same(hits[place].item, &s->naive[least], where);
        keys[least] = -1;
    }
    cr_assert_eq(hit_count, capacity, "%s", where);
}

static void ask_nearest(const scene *s, const float *center, float radius, uint32_t capacity)
{
    quern_grid_hit hits[HITS];
    const uint32_t count = quern_grid_nearest(s->grid, center, radius, hits, capacity);
    for (uint32_t i = 0; i < s->count; i++) {
        const float square = square_from(&s->naive[i], center, s->is_planar);
        keys[i] = square <= radius * radius ? square : -1;
    }
    compare_hits(s, hits, count, capacity, "nearest");
}

static void ask_ray(const scene *s, const float *origin, const float *direction, float length, float radius,
                    uint32_t capacity)
{
    quern_grid_hit hits[HITS];
    const uint32_t count = quern_grid_ray(s->grid, origin, direction, length, radius, hits, capacity);
    const uint32_t axes = s->is_planar ? 2 : 3;
    double size = 0;
    for (uint32_t axis = 0; axis < axes; axis++)
        size += (double)direction[axis] * (double)direction[axis];
    for (uint32_t i = 0; i < s->count; i++) {
        double along = 0, square = 0;
        for (uint32_t axis = 0; axis < axes; axis++)
            along += ((double)s->naive[i].position[axis] - (double)origin[axis]) *
                     ((double)direction[axis] / sqrt(size));
        along = fmin(fmax(along, 0), (double)length);
        for (uint32_t axis = 0; axis < axes; axis++) {
            const double at = (double)origin[axis] + along * ((double)direction[axis] / sqrt(size));
            square += ((double)s->naive[i].position[axis] - at) * ((double)s->naive[i].position[axis] - at);
        }
        keys[i] = square <= (double)radius * (double)radius ? (float)along : -1;
    }
    compare_hits(s, hits, count, capacity, "ray");
}

/* ----------------------------------------------------------------------------------------------- pairs */

typedef struct seen_pairs {
    const scene *scene;
    uint32_t *counts;  /* pairs of each part */
    uint64_t *digests; /* hash of the pairs of each part, in order */
} seen_pairs;

static void see_pairs(void *user_data, uint32_t part, const quern_grid_pair *pairs, uint32_t count)
{
    const seen_pairs *seen = user_data;
    cr_assert(count > 0 && count <= 256);
    seen->counts[part] += count;
    for (uint32_t i = 0; i < count; i++)
        seen->digests[part] =
            (seen->digests[part] * 31 + pairs[i].first->entity.bits) * 31 + pairs[i].second->entity.bits;
}

/* The first items must be in order, 1024 of them per part. */
static void ask_pairs(const scene *s, quern_jobs *jobs, float radius)
{
    const uint32_t part_count = quern_grid_part_count(s->grid);
    cr_assert_eq(part_count, (s->count + 1023) / 1024);
    seen_pairs seen = {.scene = s,
                       .counts = calloc(part_count + 1, sizeof *seen.counts),
                       .digests = calloc(part_count + 1, sizeof *seen.digests)};
    cr_assert_eq(quern_grid_pairs(s->grid, jobs, radius, see_pairs, &seen), QUERN_OK);
    for (uint32_t part = 0; part < part_count; part++) {
        uint64_t digest = 0;
        uint32_t count = 0;
        for (uint32_t i = part * 1024; i < s->count && i < (part + 1) * 1024; i++)
            for (uint32_t k = i + 1; k < s->count; k++) {
                if (square_from(&s->naive[k], s->naive[i].position, s->is_planar) > radius * radius)
                    continue;
                digest = (digest * 31 + s->naive[i].entity.bits) * 31 + s->naive[k].entity.bits;
                count++;
            }
        cr_assert_eq(seen.counts[part], count, "pairs");
        cr_assert_eq(seen.digests[part], digest, "pairs");
    }
    free(seen.counts);
    free(seen.digests);
}

/* ------------------------------------------------------------------------------------------- the tests */

static void ask_all(scene *s, random_source *random, shape kind, quern_jobs *jobs)
{
    static const float radii[] = {0, 0.5f, 1, 2, 5, 11, 200};
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        const spot a = some_spot(random, kind),
                   b = some_spot(random, random_chance(random, 50) ? kind : CLOUD);
        const float from[3] = {a.x, a.y, a.z}, to[3] = {b.x, b.y, b.z};
        const float radius = radii[random_below(random, 7)];
        float min[3], max[3];
        for (uint32_t axis = 0; axis < 3; axis++) {
            min[axis] = fminf(from[axis], to[axis]);
            max[axis] = fmaxf(from[axis], to[axis]);
        }
        ask_radius(s, i % 2 ? from : to, radius);
        ask_box(s, min, max);
        ask_nearest(s, i % 2 ? from : to, i % 3 ? INFINITY : radius, 1 + random_below(random, HITS));
        const float direction[3] = {to[0] - from[0], i % 5 ? to[1] - from[1] : 0, to[2] - from[2]};
        if (direction[0] != 0 || direction[1] != 0)
            ask_ray(s, from, direction, (float)random_below(random, 150), radius > 5 ? 1 : radius,
                    1 + random_below(random, HITS));
    }
    if (kind != HEAP || s->count < 2000) ask_pairs(s, jobs, kind == LINE ? 0.1f : 1);
}

static void compare(uint64_t seed, shape kind, bool is_planar, uint32_t count, uint32_t thread_count)
{
    random_source random = {seed * SHAPES + kind};
    scene s = {.world = setup_world(), .is_planar = is_planar, .count = count};
    s.naive = calloc(count + 1, sizeof *s.naive);
    cr_assert_eq(QUERN_COMPONENT_REGISTER(s.world, &s.spot, spot), QUERN_OK);
    static const char *const names[] = {"red", "green", "blue"};
    for (uint32_t tag = 0; tag < 3; tag++)
        s.tags[tag] = setup_tag(s.world, names[tag]);
    static const float sizes[] = {0, 1, 0.7f, 3};
    quern_grid_def def = {.position = s.spot,
                          .planar = is_planar,
                          .cell_size = sizes[seed % 4],
                          .marks = {s.tags[0], s.tags[1]}};
    if (seed % 3 == 0) /* a box smaller than the bounds of the positions */
        for (uint32_t axis = 0; axis < 3; axis++)
            def.min[axis] = -10, def.max[axis] = 10;
    cr_assert_eq(quern_grid_create(s.world, &def, &s.grid), QUERN_OK);
    quern_jobs *jobs = NULL;
    const quern_jobs_def pool = {.thread_count = thread_count};
    if (thread_count > 0) cr_assert_eq(quern_jobs_create(&pool, &jobs), QUERN_OK);
    populate(&s, &random, kind);
    cr_assert_eq(quern_grid_build(s.grid, jobs), QUERN_OK);
    list_naively(&s);
    ask_all(&s, &random, kind, jobs);
    quern_grid_destroy(s.grid);
    quern_jobs_destroy(jobs);
    quern_world_destroy(s.world);
    free(s.naive);
}

Test(grid_random, results_equal_those_of_a_naive_search)
{
    runs_on_one_thread();
    for (uint64_t seed = 0; seed < 12; seed++)
        for (uint32_t kind = 0; kind < SHAPES; kind++)
            compare(seed, (shape)kind, seed % 2 == 0, 1 + (uint32_t)seed * 60, 0);
}

Test(grid_random, sorting_gives_the_same_order_at_every_thread_count)
{
    static const uint32_t thread_counts[] = {1, 2, 3, 8};
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t kind = 0; kind < SHAPES; kind++)
            compare(7 + i % 2, (shape)kind, i % 2 == 0, kind == HEAP ? effort(1900, 1300, 700) : MOST,
                    thread_counts[i]);
}
