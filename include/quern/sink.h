/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SINK_H
#define QUERN_SINK_H

/** @file
 * Sinks: destinations to which the library writes descriptions, profiles, traces and archives.
 *
 * A sink writes to a file, to memory, or to a function of the program:
 *
 *     quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(stdout));
 *
 *     char text[4096];
 *     quern_text_buffer buffer = {text, sizeof text, 0};
 *     quern_jobs_describe(jobs, quern_sink_text(&buffer));
 *
 * All text is UTF-8. Archives (archive.h) are written to sinks, too; they are bytes, including zero bytes.
 */

#include <quern/base.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Receives text or other bytes, piece by piece. */
typedef struct quern_sink {
    /** Writes the next bytes, which are not terminated by a 0. Returns false if they could not be written:
     * the sink is then not called again, and the library function returns IO. The last call for a text
     * has 0 bytes, and returns whether all bytes before it were written. Called on the thread of the
     * library function. */
    bool (*write)(void *user_data, const char *text, size_t bytes);
    void *user_data; /**< Passed to write. */
} quern_sink;

/** Returns a sink that writes to a file. The file remains open, and is flushed at the end of each text.
 * For NULL it returns a sink with which every function fails (NULL_ARGUMENT). */
QUERN_API quern_sink quern_sink_file(FILE *file);

/** A text in memory of fixed size. Text that does not fit is cut off. The text is always terminated by a
 * 0. */
typedef struct quern_text_buffer {
    char *text;            /**< Memory of capacity_bytes; NULL to measure the text only. */
    size_t capacity_bytes; /**< Size of the memory, including room for the final 0. */
    /** Length of the whole text without the final 0, including text that was cut off. */
    size_t length_bytes;
} quern_text_buffer;

/** Empties the buffer and returns a sink that writes to it. The buffer must not move while the sink is
 * used. The sink takes no lock and allocates nothing, and several texts may be written to it one after
 * another. For NULL it returns a sink with which every function fails (NULL_ARGUMENT). */
QUERN_API quern_sink quern_sink_text(quern_text_buffer *buffer);

/** Bytes in memory that grows. All zero is empty, with quern_allocator_default(). */
typedef struct quern_byte_buffer {
    void *bytes;               /**< The bytes; NULL while nothing is allocated. */
    size_t size_bytes;         /**< Number of bytes written. */
    size_t capacity_bytes;     /**< Size of the allocation. */
    quern_allocator allocator; /**< Allocator. All zero means quern_allocator_default(). */
} quern_byte_buffer;

/** Returns a sink that appends to the memory object, which must not move while the sink is used. If
 * allocation fails, the library function returns IO, and the memory keeps its contents. Set size_bytes
 * to 0 to reuse the allocation. For NULL it returns a sink with which every function fails
 * (NULL_ARGUMENT). */
QUERN_API quern_sink quern_sink_bytes(quern_byte_buffer *memory);

/** Frees the bytes. NULL is allowed. */
QUERN_API void quern_byte_buffer_release(quern_byte_buffer *memory);

#ifdef __cplusplus
}
#endif

#endif
