/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool path_of(char *out, const char *folder, uint32_t rank, uint32_t slot, const char *ending)
{
    const int length =
        snprintf(out, PATH_MAX_BYTES, "%s/rank-%" PRIu32 "-%c%s", folder, rank, 'a' + (int)slot, ending);
    return length > 0 && length < PATH_MAX_BYTES;
}

static bool complain(const char *what, const char *path, const char *why)
{
    fprintf(stderr, "ranks: %s '%s': %s\n", what, path, why);
    return false;
}

/* -------------------------------------------------------------------------------------------- saving */

static bool write_line(const Rank *rank, uint32_t agent_count, FILE *file)
{
    fprintf(file,
            "quern-ranks 1 frame %" PRIu64 " ranks %" PRIu32 " seed %" PRIu64 " agents %" PRIu32 " borders",
            rank->report.frame, rank->stripes.count, rank->flock.field.seed, agent_count);
    for (uint32_t i = 0; i <= rank->stripes.count; i++)
        fprintf(file, " %" PRId32, rank->stripes.borders[i]);
    return fputc('\n', file) != EOF;
}

bool store_save(const Rank *rank, const char *folder, uint32_t slot, uint32_t agent_count)
{
    char path[PATH_MAX_BYTES], unfinished[PATH_MAX_BYTES];
    const quern_save_def with_schedule = {.schedules = {rank->flock.schedule}};
    if (!path_of(path, folder, rank->index, slot, ".quern") ||
        !path_of(unfinished, folder, rank->index, slot, ".tmp"))
        return complain("cannot save to", folder, "the path is too long");
    FILE *file = fopen(unfinished, "wb");
    if (file == NULL) return complain("cannot create", unfinished, strerror(errno));
    const bool is_written =
        write_line(rank, agent_count, file) &&
        quern_world_save(rank->flock.world, quern_sink_file(file), &with_schedule) == QUERN_OK;
    if (!is_written) complain("cannot save to", unfinished, quern_error_message());
    if (fclose(file) != 0 || !is_written) return false;
    if (rename(unfinished, path) != 0) return complain("cannot create", path, strerror(errno));
    return true;
}

/* ------------------------------------------------------------------------------------------- loading */

/* Reads the line at the beginning. Returns whether it is as it should be. */
static bool read_line(FILE *file, Stored *out)
{
    int length = 0;
    *out = (Stored){.exists = 1};
    if (fscanf(file,
               "quern-ranks 1 frame %" SCNu64 " ranks %" SCNu32 " seed %" SCNu64 " agents %" SCNu32
               " borders",
               &out->frame, &out->rank_count, &out->seed, &out->agent_count) != 4 ||
        out->rank_count == 0 || out->rank_count > RANKS_MAX)
        return false;
    for (uint32_t i = 0; i <= out->rank_count; i++)
        length += fscanf(file, " %" SCNd32, &out->borders[i]) == 1;
    return length == (int)out->rank_count + 1 && fgetc(file) == '\n';
}

Stored store_look(const char *folder, uint32_t rank, uint32_t slot)
{
    char path[PATH_MAX_BYTES];
    Stored stored = {0};
    FILE *file = path_of(path, folder, rank, slot, ".quern") ? fopen(path, "rb") : NULL;
    if (file == NULL) return stored;
    if (!read_line(file, &stored)) stored = (Stored){0};
    fclose(file);
    return stored;
}

bool store_load(Rank *rank, const char *folder, uint32_t slot)
{
    char path[PATH_MAX_BYTES];
    Stored stored;
    const quern_load_def with_schedule = {.schedules = {rank->flock.schedule}};
    if (!path_of(path, folder, rank->index, slot, ".quern"))
        return complain("cannot load from", folder, "the path is too long");
    FILE *file = fopen(path, "rb");
    if (file == NULL) return complain("cannot open", path, strerror(errno));
    const bool is_loaded =
        read_line(file, &stored) &&
        quern_world_load(rank->flock.world, quern_source_file(file), &with_schedule, NULL) == QUERN_OK;
    if (!is_loaded) complain("cannot load", path, quern_error_message());
    fclose(file);
    rank->report.frame = stored.frame;
    return is_loaded;
}
