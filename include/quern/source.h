/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SOURCE_H
#define QUERN_SOURCE_H

/** @file
 * Sources: where the library reads from. The counterpart of sinks (sink.h).
 *
 *     quern_world_load(world, quern_source_file(file), NULL, NULL);
 *     quern_world_load(world, quern_source_memory(bytes, size_bytes), NULL, NULL); */

#include <quern/base.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Gives bytes, piece by piece, or has them in memory. */
typedef struct quern_source {
    /** Writes the next bytes, at most capacity_bytes (> 0), to bytes, and returns how many they are; fewer
     * than were asked for is fine. Returns 0 at the end, and when they could not be read. Runs on the
     * thread of the call that reads. Not used where memory is set. */
    size_t (*read)(void *user_data, void *bytes, size_t capacity_bytes);
    void *user_data;     /**< Passed to read. */
    const void *memory;  /**< The bytes, where they are in memory; NULL: read gives them. */
    size_t memory_bytes; /**< Of memory. */
} quern_source;

/** Returns a source that reads a file from where it stands. The file stays open, and stands behind what was
 * read. For NULL it returns a source that every call refuses (NULL_ARGUMENT). */
QUERN_API quern_source quern_source_file(FILE *file);

/** Returns a source that reads bytes in memory, which must stay as they are meanwhile. For NULL it returns
 * a source that every call refuses (NULL_ARGUMENT). */
QUERN_API quern_source quern_source_memory(const void *bytes, size_t size_bytes);

#ifdef __cplusplus
}
#endif

#endif
