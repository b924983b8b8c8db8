/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/ranks_internal.h"

#include <math.h>

/* How space is divided: by recursive bisection, computed identically by all ranks from whole numbers. Each inner node of the
 * tree cuts its box along its longest axis, so that both sides cost as much as they have ranks. For each level of the tree, the
 * ranks add up a histogram of costs per node: a root costs the time of the last frame on its rank, divided by the roots there. */

/* ------------------------------------------------------------------------------------------ finding */

void quern__ranks_units(const quern_ranks *ranks, const float *position, int64_t units[3])
{
    units[0] = units[1] = units[2] = 0;
    for (uint32_t i = 0; i < ranks->dimensions; i++) {
        double unit = floor((double)position[i] * ranks->units_per_length);
        if (!(unit > -RANKS_LIMIT_UNITS)) unit = -RANKS_LIMIT_UNITS; /* also NaN */
        if (unit > RANKS_LIMIT_UNITS) unit = RANKS_LIMIT_UNITS;
        units[i] = (int64_t)unit;
    }
}

uint32_t quern__ranks_find(const quern_ranks *ranks, const int64_t units[3])
{
    const ranks_node *nodes = ranks->nodes.bytes;
    const ranks_node *node = nodes;
    while (node->left != 0)
        node = &nodes[node->left + (units[node->axis] >= node->cut)];
    return node->first_rank;
}

bool quern__ranks_is_near(const quern_ranks *ranks, const ranks_box *box, const int64_t units[3])
{
    int64_t square = 0;
    for (uint32_t i = 0; i < ranks->dimensions; i++) {
        const int64_t below = box->min[i] - units[i], above = units[i] - (box->max[i] - 1);
        const int64_t distance = below > above ? below : above;
        if (distance > ranks->margin_units) return false;
        if (distance > 0) square += distance * distance;
    }
    return square <= ranks->margin_units * ranks->margin_units;
}

/* ----------------------------------------------------------------------------------------- dividing */

static int64_t *numbers(quern_ranks *ranks, uint32_t count)
{
    ranks->numbers.size_bytes = 0;
    return quern__ranks_append(&ranks->numbers, NULL, count * sizeof(int64_t));
}

quern_result quern__ranks_measure_extent(quern_ranks *ranks)
{
    int64_t *extent = numbers(ranks, 6); /* minima, then maxima */
    if (extent == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < 3; i++) {
        extent[i] = RANKS_LIMIT_UNITS;
        extent[3 + i] = -RANKS_LIMIT_UNITS;
    }
    quern_query_iterator it = quern_query_iterate(ranks->roots);
    while (quern_query_next(&it)) {
        uint32_t stride;
        quern_component_get_size(ranks->world, ranks->def.position, &stride);
        const char *positions = quern_view_read(&it.view, 1);
        for (uint32_t end = it.view.count, i = 0; i < end; i++) {
            int64_t units[3];
            quern__ranks_units(ranks, (const float *)(const void *)(positions + (size_t)i * stride), units);
            for (uint32_t k = 0; k < 3; k++) {
                if (units[k] < extent[k]) extent[k] = units[k];
                if (units[k] > extent[3 + k]) extent[3 + k] = units[k];
            }
        }
    }
    return quern__ranks_begin_reduce(ranks, 0, 3);
}

quern_result quern__ranks_begin_division(quern_ranks *ranks)
{
    const int64_t *extent = ranks->numbers.bytes;
    ranks_node root = {.rank_count = ranks->rank_count};
    for (uint32_t i = 0; i < 3; i++) {
        const bool is_extent = extent[i] >= -RANKS_LIMIT_UNITS && extent[i] <= extent[3 + i] &&
                               extent[3 + i] <= RANKS_LIMIT_UNITS;
        root.box.min[i] = is_extent ? extent[i] : 0;
        root.box.max[i] = is_extent ? extent[3 + i] + 1 : 1;
    }
    ranks->extent = root.box;
    ranks->nodes.size_bytes = 0;
    ranks->level_begin = 0;
    return quern__ranks_append(&ranks->nodes, &root, sizeof root) != NULL ? QUERN_OK
                                                                          : QUERN_ERROR_OUT_OF_MEMORY;
}

static uint32_t longest_axis(const ranks_node *node)
{
    uint32_t axis = 0;
    for (uint32_t i = 1; i < 3; i++)
        if (node->box.max[i] - node->box.min[i] > node->box.max[axis] - node->box.min[axis]) axis = i;
    return axis;
}

static uint32_t bin_of(const ranks_node *node, int64_t unit)
{
    const int64_t min = node->box.min[node->axis], length = node->box.max[node->axis] - min;
    const int64_t at = unit < min ? 0 : unit - min >= length ? length - 1 : unit - min;
    return (uint32_t)(at * RANKS_BINS / length);
}

/* Begins to add up the histograms of the nodes of the present level. Stores whether the tree is complete instead. */
quern_result quern__ranks_measure_level(quern_ranks *ranks, uint64_t weight, bool *out_complete)
{
    ranks_node *nodes = ranks->nodes.bytes;
    const uint32_t node_count = RANKS_COUNT(ranks->nodes, ranks_node);
    *out_complete = true;
    for (uint32_t i = ranks->level_begin; i < node_count; i++) {
        nodes[i].axis = longest_axis(&nodes[i]);
        if (nodes[i].rank_count > 1) *out_complete = false;
    }
    if (*out_complete) return QUERN_OK;
    const uint32_t count = (node_count - ranks->level_begin) * RANKS_BINS;
    int64_t *bins = numbers(ranks, count);
    if (bins == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    memset(bins, 0, count * sizeof *bins);
    uint32_t stride;
    quern_component_get_size(ranks->world, ranks->def.position, &stride);
    quern_query_iterator it = quern_query_iterate(ranks->roots);
    while (quern_query_next(&it)) {
        const char *positions = quern_view_read(&it.view, 1);
        for (uint32_t end = it.view.count, i = 0; i < end; i++) {
            int64_t units[3];
            uint32_t at = 0;
            quern__ranks_units(ranks, (const float *)(const void *)(positions + (size_t)i * stride), units);
            while (nodes[at].left != 0)
                at = nodes[at].left + (units[nodes[at].axis] >= nodes[at].cut);
            if (at >= ranks->level_begin)
                bins[(at - ranks->level_begin) * RANKS_BINS + bin_of(&nodes[at], units[nodes[at].axis])] +=
                    (int64_t)weight;
        }
    }
    return quern__ranks_begin_reduce(ranks, count, 0);
}

/* Returns the first unit of a bin. */
static int64_t begin_of_bin(const ranks_node *node, uint32_t bin)
{
    const int64_t min = node->box.min[node->axis], length = node->box.max[node->axis] - min;
    return min + (bin * length + RANKS_BINS - 1) / RANKS_BINS;
}

/* Returns the cut at which the left ranks get their part of the cost: the border of bins that is nearest to it. */
static int64_t find_cut(const ranks_node *node, const int64_t *bins)
{
    const uint32_t left_count = node->rank_count / 2;
    uint64_t total = 0, sum = 0;
    uint32_t bin = 0;
    for (uint32_t i = 0; i < RANKS_BINS; i++)
        total += (uint64_t)bins[i];
    const uint64_t wanted =
        total / node->rank_count * left_count + total % node->rank_count * left_count / node->rank_count;
    if (total == 0) return begin_of_bin(node, RANKS_BINS / 2);
    while (bin + 1 < RANKS_BINS && sum + (uint64_t)bins[bin] <= wanted)
        sum += (uint64_t)bins[bin++];
    if (wanted - sum > (uint64_t)bins[bin] / 2 && bin + 1 < RANKS_BINS) bin++;
    return begin_of_bin(node, bin);
}

quern_result quern__ranks_divide_level(quern_ranks *ranks)
{
    const int64_t *bins = ranks->numbers.bytes;
    const uint32_t begin = ranks->level_begin, end = RANKS_COUNT(ranks->nodes, ranks_node);
    ranks->level_begin = end;
    for (uint32_t i = begin; i < end; i++) {
        ranks_node node = ((const ranks_node *)ranks->nodes.bytes)[i];
        if (node.rank_count == 1) continue;
        ranks_node left = node, right = node;
        node.cut = find_cut(&node, &bins[(size_t)(i - begin) * RANKS_BINS]);
        node.left = RANKS_COUNT(ranks->nodes, ranks_node);
        left.rank_count = node.rank_count / 2;
        right.rank_count -= left.rank_count;
        right.first_rank += left.rank_count;
        left.box.max[node.axis] = right.box.min[node.axis] = node.cut;
        if (left.box.max[node.axis] <= left.box.min[node.axis])
            left.box.max[node.axis] = left.box.min[node.axis] + 1;
        if (right.box.max[node.axis] <= node.cut) right.box.max[node.axis] = node.cut + 1;
        ((ranks_node *)ranks->nodes.bytes)[i] = node;
        if (quern__ranks_append(&ranks->nodes, &left, sizeof left) == NULL ||
            quern__ranks_append(&ranks->nodes, &right, sizeof right) == NULL)
            return QUERN_ERROR_OUT_OF_MEMORY;
    }
    return QUERN_OK;
}

/* Extends a box that cuts have limited to what an entity of it sees. */
static bool are_near(const quern_ranks *ranks, const ranks_box *a, const ranks_box *b)
{
    for (uint32_t i = 0; i < ranks->dimensions; i++)
        if (a->min[i] - b->max[i] >= ranks->margin_units || b->min[i] - a->max[i] >= ranks->margin_units)
            return false;
    return true;
}

/* Returns the lengths of a box without `units` at each side; unlimited where the box is. */
static ranks_lengths shrink(const quern_ranks *ranks, double units)
{
    ranks_lengths lengths;
    for (uint32_t k = 0; k < 3; k++) {
        const double min = (double)ranks->box.min[k] + units, max = (double)ranks->box.max[k] - units;
        lengths.min[k] = ranks->box.min[k] < -RANKS_LIMIT_UNITS ? -HUGE_VAL : min / ranks->units_per_length;
        lengths.max[k] = ranks->box.max[k] > RANKS_LIMIT_UNITS ? HUGE_VAL : max / ranks->units_per_length;
    }
    return lengths;
}

/* Replaces the boxes, which ended at the outermost roots, by unlimited ones, and finds the neighbours: the ranks with a box that
 * is not farther away than entities see. */
quern_result quern__ranks_end_division(quern_ranks *ranks)
{
    ranks_node *nodes = ranks->nodes.bytes;
    const uint32_t count = RANKS_COUNT(ranks->nodes, ranks_node);
    for (uint32_t k = 0; k < 3; k++) {
        nodes[0].box.min[k] = -2 * (int64_t)RANKS_LIMIT_UNITS;
        nodes[0].box.max[k] = 2 * (int64_t)RANKS_LIMIT_UNITS;
    }
    for (uint32_t i = 0; i < count; i++) {
        const ranks_node *node = &nodes[i];
        if (node->left == 0) continue;
        nodes[node->left].box = nodes[node->left + 1].box = node->box;
        nodes[node->left].box.max[node->axis] = nodes[node->left + 1].box.min[node->axis] = node->cut;
    }
    for (uint32_t i = 0; i < count; i++)
        if (nodes[i].left == 0 && nodes[i].first_rank == ranks->rank) ranks->box = nodes[i].box;
    ranks->surely_own = shrink(ranks, 1);
    ranks->surely_inner = shrink(ranks, ranks->sight_units + 6);
    ranks->neighbours.size_bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t rank = nodes[i].first_rank;
        if (nodes[i].left != 0) continue;
        ranks->peers[rank].node = i;
        ranks->peers[rank].is_neighbour =
            rank != ranks->rank && are_near(ranks, &ranks->box, &nodes[i].box);
    }
    for (uint32_t i = 0; i < ranks->rank_count; i++)
        if (ranks->peers[i].is_neighbour && quern__ranks_append(&ranks->neighbours, &i, sizeof i) == NULL)
            return QUERN_ERROR_OUT_OF_MEMORY;
    ranks->own.neighbour_count = RANKS_COUNT(ranks->neighbours, uint32_t);
    ranks->own.bisection_count++;
    ranks->is_divided = true;
    return QUERN_OK;
}
