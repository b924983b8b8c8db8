/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SOURCE_H
#define QUERN_SOURCE_H

/** @file
 * Sources: origins from which the library reads; the counterpart of sinks (sink.h).
 *
 *     quern_world_load(world, quern_source_file(file), NULL, NULL);
 *     quern_world_load(world, quern_source_bytes(bytes, size_bytes), NULL, NULL); */

#include <quern/base.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Provides bytes, either through a function or in memory. */
typedef struct quern_source {
    /** Stores the next bytes, at most capacity_bytes (> 0), in `bytes`, and returns their number, which
     * may be less than capacity_bytes. Returns 0 at the end, and if reading fails. Called on the thread of
     * the library function. Not called if `memory` is set. */
    size_t (*read)(void *user_data, void *bytes, size_t capacity_bytes);
    void *user_data;     /**< Passed to read. */
    const void *memory;  /**< Address of the bytes, if they are in memory; NULL to call read. */
    size_t memory_bytes; /**< Number of bytes at `memory`. */
} quern_source;

/** Returns a source that reads a file from its current position. The file remains open, positioned after
 * the bytes that were read. For NULL it returns a source with which every function fails (NULL_ARGUMENT).
 */
QUERN_API quern_source quern_source_file(FILE *file);

/** Returns a source that reads bytes in memory, which must not change while the source is used. For NULL
 * it returns a source with which every function fails (NULL_ARGUMENT). */
QUERN_API quern_source quern_source_bytes(const void *bytes, size_t size_bytes);

#ifdef __cplusplus
}
#endif

#endif
