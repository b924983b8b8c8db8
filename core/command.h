/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_COMMAND_H
#define QUERN_CORE_COMMAND_H

/* Recording commands. Each worker has one recorder with an arena of its own, so recording takes no lock. What a
 * callback records is one *stream*, known by its key; at the sync point playback.h sorts the streams of all
 * workers by key, and the threads that recorded them no longer matter.
 *
 * A stream is a run of records in the arena's blocks, one behind the other:
 *   | command, 16 bytes | value, aligned as its type asks | command | ... | jump to the next block | */

#include "core/storage.h"

#include <quern/commands.h>

enum { QUERN__RECORDER_ALIGNMENT_BYTES = 128 };

typedef enum quern__command_kind {
    QUERN__COMMAND_JUMP, /* no command: the stream goes on in another block */
    QUERN__COMMAND_CREATE,
    QUERN__COMMAND_DESTROY,
    QUERN__COMMAND_ADD, /* and set */
    QUERN__COMMAND_REMOVE
} quern__command_kind;

typedef struct quern__command {
    union {
        quern_entity entity;
        struct quern__command *next; /* of a JUMP: where the stream goes on */
    };
    uint32_t size_bytes; /* to the record behind it */
    uint16_t component_index;
    uint8_t kind;
    uint8_t has_value; /* a living value of the component's type; cleared when it has been moved out */
} quern__command;

typedef struct quern__stream {
    uint64_t key;
    quern__command *first;
    uint32_t serial; /* the generation of its provisional handles */
    uint32_t command_count;
    uint32_t create_count;
    uint32_t first_created; /* of playback: where its creates begin in the list of all */
} quern__stream;

typedef struct quern__block {
    char *memory;
    uint32_t used_bytes;
} quern__block;

/* Recorders of several workers lie in an array: each has cache lines of its own. */
struct quern_commands {
    _Alignas(QUERN__RECORDER_ALIGNMENT_BYTES) quern__storage *storage;
    uint64_t key; /* of the callback that is running */
    uint32_t serial;
    bool is_open; /* the last stream has this key */
    bool has_hooked_values;
    quern_result failed;  /* the first command that memory was missing for, or QUERN_OK */
    uint32_t block_index; /* the block in use; those behind it wait to be used again */
    QUERN__ARRAY(quern__block) blocks;
    QUERN__ARRAY(quern__stream) streams; /* with at least one command each */
};

/* Provisional handles carry their stream's serial as generation, so serials run from 1 to this. */
#define QUERN__MAX_SERIAL ((uint32_t)QUERN__MAX_GENERATION)

void quern__commands_init(quern_commands *commands, quern__storage *storage);

void quern__commands_release(quern_commands *commands);

/* What is recorded from now on belongs to the stream of this key, which is new. */
void quern__commands_begin(quern_commands *commands, uint64_t key, uint32_t serial);

/* Forgets all streams, destroys values that nobody moved out, and keeps the memory. */
void quern__commands_reset(quern_commands *commands);

/* A walk over the commands of a stream. */
typedef struct quern__stream_cursor {
    quern__command *next;
    uint32_t left_count;
} quern__stream_cursor;

static inline quern__stream_cursor quern__stream_walk(const quern__stream *stream)
{
    return (quern__stream_cursor){.next = stream->first, .left_count = stream->command_count};
}

/* The next command, or NULL at the end. */
quern__command *quern__stream_take(quern__stream_cursor *cursor);

/* Where the value of a command with has_value lies. */
void *quern__command_value(quern__command *command, const quern__type *type);

#endif
