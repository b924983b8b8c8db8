/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/ranks_internal.h"

#include <inttypes.h>
#include <math.h>

/* The list of all ranks on each rank: their boxes, which all ranks compute, and numbers of the last call of quern_ranks_run,
 * which come with the sums at its end. */

void quern__ranks_put_own(quern_ranks *ranks, int64_t *numbers)
{
    const quern_ranks_stats *own = &ranks->own, *before = &ranks->listed;
    const uint64_t values[RANKS_LISTED] = {quern_query_count(ranks->all_owned),
                                           ranks->all_ghosts != NULL ? quern_query_count(ranks->all_ghosts)
                                                                     : 0,
                                           own->run_ns - before->run_ns,
                                           own->own_ns - before->own_ns,
                                           own->wait_ns - before->wait_ns,
                                           own->sent_bytes - before->sent_bytes,
                                           own->packet_count - before->packet_count};
    memset(numbers, 0, (size_t)ranks->rank_count * RANKS_LISTED * sizeof *numbers);
    memcpy(numbers + (size_t)ranks->rank * RANKS_LISTED, values, sizeof values);
    ranks->listed = ranks->own;
}

quern_result quern__ranks_take_list(quern_ranks *ranks, const int64_t *numbers)
{
    ranks->list_numbers.size_bytes = 0;
    return quern__ranks_append(&ranks->list_numbers, numbers,
                               (size_t)ranks->rank_count * RANKS_LISTED * sizeof *numbers) != NULL
               ? QUERN_OK
               : QUERN_ERROR_OUT_OF_MEMORY;
}

static float length_of(const quern_ranks *ranks, int64_t units)
{
    if (units < -RANKS_LIMIT_UNITS) return -INFINITY;
    return units > RANKS_LIMIT_UNITS ? INFINITY : (float)((double)units / ranks->units_per_length);
}

static quern_ranks_place place_of(const quern_ranks *ranks, uint32_t rank)
{
    const uint64_t *numbers = (const uint64_t *)ranks->list_numbers.bytes + (size_t)rank * RANKS_LISTED;
    const ranks_node *nodes = ranks->nodes.bytes;
    quern_ranks_place place = {.owned_count = numbers[0],
                               .ghost_count = numbers[1],
                               .run_ns = numbers[2],
                               .own_ns = numbers[3],
                               .wait_ns = numbers[4],
                               .sent_bytes = numbers[5],
                               .packet_count = numbers[6]};
    for (uint32_t k = 0; k < 3; k++) {
        const bool is_part = ranks->rank_count > 1 && k < ranks->dimensions;
        place.least[k] = is_part ? length_of(ranks, nodes[ranks->peers[rank].node].box.min[k]) : -INFINITY;
        place.most[k] = is_part ? length_of(ranks, nodes[ranks->peers[rank].node].box.max[k]) : INFINITY;
    }
    return place;
}

uint32_t quern_ranks_list(const quern_ranks *ranks, quern_ranks_place *out_places, uint32_t capacity)
{
    if (ranks == NULL || ranks->list_numbers.size_bytes == 0) return 0;
    for (uint32_t i = 0; i < capacity && i < ranks->rank_count; i++)
        out_places[i] = place_of(ranks, i);
    return ranks->rank_count;
}

/* -------------------------------------------------------------------------------------------- text */

static bool write_text(quern_sink sink, const char *text)
{
    return sink.write(sink.user_data, text, strlen(text));
}

static quern_result check_sink(const char *function, const quern_ranks *ranks, quern_sink sink)
{
    if (ranks == NULL) return quern__ranks_fail_null(function, "ranks");
    return sink.write == NULL ? quern__ranks_fail_null(function, "the function of the sink") : QUERN_OK;
}

static quern_result end_of_text(const char *function, quern_sink sink, bool is_written)
{
    if (is_written && sink.write(sink.user_data, "", 0)) return QUERN_OK;
    return quern_error_set(QUERN_ERROR_IO, "%s: the sink could not write: a part may be written", function);
}

/* Writes where a box is along an axis, such as "-3 to 4.5", or "below 2". */
static void describe_range(char out[64], float least, float most)
{
    const bool has_least = least > -INFINITY, has_most = most < INFINITY;
    if (has_least && has_most)
        snprintf(out, 64, "%g to %g", (double)least, (double)most);
    else if (has_least || has_most)
        snprintf(out, 64, "%s %g", has_least ? "from" : "below", (double)(has_least ? least : most));
    else
        snprintf(out, 64, "all");
}

quern_result quern_ranks_write_json(const quern_ranks *ranks, quern_sink sink)
{
    static const char function[] = "quern_ranks_write_json";
    const quern_result result = check_sink(function, ranks, sink);
    if (result != QUERN_OK) return result;
    const uint32_t count = quern_ranks_list(ranks, NULL, 0);
    bool is_written = write_text(sink, "[");
    for (uint32_t i = 0; i < count && is_written; i++) {
        const quern_ranks_place place = place_of(ranks, i);
        char text[512], ranges[3][64];
        for (uint32_t k = 0; k < 3; k++)
            describe_range(ranges[k], place.least[k], place.most[k]);
        snprintf(text, sizeof text,
                 "%s{\"rank\":%u,\"entities\":%" PRIu64 ",\"ghosts\":%" PRIu64
                 ",\"frame ms\":%.3f,\"exchange ms\":%.3f,"
                 "\"wait ms\":%.3f,\"sent bytes\":%" PRIu64 ",\"packets\":%" PRIu64
                 ",\"x\":\"%s\",\"y\":\"%s\",\"z\":\"%s\"}",
                 i > 0 ? "," : "", (unsigned)i, place.owned_count, place.ghost_count,
                 1e-6 * (double)place.run_ns, 1e-6 * (double)place.own_ns, 1e-6 * (double)place.wait_ns,
                 place.sent_bytes, place.packet_count, ranges[0], ranges[1], ranges[2]);
        is_written = write_text(sink, text);
    }
    return end_of_text(function, sink, is_written && write_text(sink, "]"));
}

quern_result quern_ranks_draw(const quern_ranks *ranks, uint32_t columns, uint32_t rows, quern_sink sink)
{
    static const char function[] = "quern_ranks_draw",
                      marks[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char line[QUERN_RANKS_MAX_COLUMNS + 1];
    const quern_result result = check_sink(function, ranks, sink);
    if (result != QUERN_OK) return result;
    if (columns == 0 || columns > QUERN_RANKS_MAX_COLUMNS || rows == 0 || rows > QUERN_RANKS_MAX_COLUMNS)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "%s: %u columns and %u rows are not possible: pass 1 to %d", function,
                               (unsigned)columns, (unsigned)rows, QUERN_RANKS_MAX_COLUMNS);
    const ranks_box *extent = &ranks->extent;
    const int64_t width = extent->max[0] - extent->min[0], height = extent->max[1] - extent->min[1];
    bool is_written = true;
    for (uint32_t row = 0; row < rows && is_written; row++) {
        for (uint32_t column = 0; column < columns; column++) {
            const int64_t units[3] = {
                extent->min[0] + width * ((int64_t)column * 2 + 1) / ((int64_t)columns * 2),
                extent->max[1] - 1 - height * ((int64_t)row * 2 + 1) / ((int64_t)rows * 2),
                (extent->min[2] + extent->max[2]) / 2};
            line[column] =
                marks[ranks->is_divided ? quern__ranks_find(ranks, units) % (sizeof marks - 1) : 0];
        }
        line[columns] = '\n';
        is_written = sink.write(sink.user_data, line, columns + 1);
    }
    return end_of_text(function, sink, is_written);
}
