/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SINK_H
#define QUERN_SINK_H

/* Where text goes that the library writes: descriptions, profiles, traces. To a file, to memory, or to a
 * function of your own:
 *
 *     quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(stdout));
 *
 *     char text[4096];
 *     quern_buffer buffer = {text, sizeof text, 0};
 *     quern_jobs_describe(jobs, quern_sink_buffer(&buffer));
 *
 * All text is UTF-8. */

#include <quern/base.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quern_sink {
    /* Takes the next bytes of the text, which no 0 ends. False: they could not be written; the sink gets
     * nothing more then, and the call that writes returns FILE. The last call of a text, with 0 bytes, asks
     * whether all that came before it has arrived. Called on the thread of the call that writes. */
    bool (*write)(void *user_data, const char *text, size_t bytes);
    void *user_data;
} quern_sink;

/* Writes to a file, which stays open; it is flushed at the end of each text. A call that is given the sink
 * of NULL refuses it (NULL_ARGUMENT). */
QUERN_API quern_sink quern_sink_file(FILE *file);

/* Text in memory. What does not fit is cut off, and a 0 stands behind what does. */
typedef struct quern_buffer {
    char *text;            /* capacity_bytes of memory; NULL: the text is only measured */
    size_t capacity_bytes; /* the final 0 included */
    size_t length_bytes;   /* of the whole text, without the final 0, whether it fitted or not */
} quern_buffer;

/* Empties the buffer and writes to it; it must stay where it is meanwhile. Takes no lock and no memory.
 * Several texts may follow each other through one sink. A call that is given the sink of NULL refuses it
 * (NULL_ARGUMENT). */
QUERN_API quern_sink quern_sink_buffer(quern_buffer *buffer);

#ifdef __cplusplus
}
#endif

#endif
