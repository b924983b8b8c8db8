/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SINK_H
#define QUERN_SINK_H

/** @file
 * Sinks: where the library writes descriptions, profiles, traces and archives.
 *
 * A sink writes to a file, to memory, or to a function of your own:
 *
 *     quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(stdout));
 *
 *     char text[4096];
 *     quern_buffer buffer = {text, sizeof text, 0};
 *     quern_jobs_describe(jobs, quern_sink_buffer(&buffer));
 *
 * All text is UTF-8. Archives (archive.h) go through sinks, too: they are bytes, and some of them zero. */

#include <quern/base.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Takes text or other bytes, piece by piece. */
typedef struct quern_sink {
    /** Takes the next bytes of the text, which do not end with a 0. Returns false when they could not be
     * written: the sink then gets nothing more, and the call that writes returns FILE. The last call of
     * a text has 0 bytes and asks whether everything before it has arrived. Runs on the thread of the
     * call that writes. */
    bool (*write)(void *user_data, const char *text, size_t bytes);
    void *user_data; /**< Passed to write. */
} quern_sink;

/** Returns a sink that writes to a file. The file stays open, and is flushed at the end of each text. For
 * NULL it returns a sink that every call refuses (NULL_ARGUMENT). */
QUERN_API quern_sink quern_sink_file(FILE *file);

/** Text in memory. What does not fit is cut off; a 0 always follows what does. */
typedef struct quern_buffer {
    char *text;            /**< capacity_bytes of memory; NULL: the text is only measured. */
    size_t capacity_bytes; /**< Including the final 0. */
    size_t length_bytes;   /**< Of the whole text without the final 0, whether it fitted or not. */
} quern_buffer;

/** Empties the buffer and returns a sink that writes to it. The buffer must not move meanwhile. The sink
 * takes no lock and no memory, and several texts may follow each other through it. For NULL it returns a
 * sink that every call refuses (NULL_ARGUMENT). */
QUERN_API quern_sink quern_sink_buffer(quern_buffer *buffer);

/** Bytes in memory that grows. All zero is empty, and takes memory from quern_allocator_default(). */
typedef struct quern_memory {
    void *bytes;               /**< NULL while there is no memory. */
    size_t size_bytes;         /**< What was written. */
    size_t capacity_bytes;     /**< Of bytes. */
    quern_allocator allocator; /**< All zero: quern_allocator_default(). */
} quern_memory;

/** Returns a sink that appends to the memory, which must not move meanwhile. Where there is none left, the
 * call that writes returns FILE, and the memory keeps what it had. Setting size_bytes to 0 begins anew with
 * the memory that is there. For NULL it returns a sink that every call refuses (NULL_ARGUMENT). */
QUERN_API quern_sink quern_sink_memory(quern_memory *memory);

/** Gives the memory back. NULL is allowed. */
QUERN_API void quern_memory_release(quern_memory *memory);

#ifdef __cplusplus
}
#endif

#endif
