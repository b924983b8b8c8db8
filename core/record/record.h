/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_RECORD_H
#define QUERN_CORE_RECORD_RECORD_H

/* Recording commands. Each worker has one recorder with an arena of its own, so recording takes no lock.
 * What a callback records is one *stream*, known by its key; at the sync point gather.h sorts the streams
 * of all workers by key, and the threads that recorded them no longer matter.
 *
 * A stream is a list of *runs*: commands one after the other that do the same (see operation.h) share one
 * head.
 *   | run, 16 bytes | item | item | ... | run | item | ... | jump to the next block |
 * Items of one run have one size, so a loop over them is as tight as one over an array. */

#include "core/record/operation.h"
#include "core/storage/storage.h"

#include <quern/commands.h>

enum { QUERN__RECORDER_ALIGNMENT_BYTES = 128 };

typedef struct quern__run {
    /* NULL: a jump. Items behind the run hold 64-bit values: 16 bytes with alignment 8 on every platform. */
    _Alignas(8) const quern__operation *operation;
    union {
        struct quern__run *next; /* of a jump: where the stream goes on */
        struct {
            uint32_t item_count;
            uint32_t first_item_bytes; /* from here to the first item */
        };
    };
} quern__run;

/* Whose commands a stream holds. */
typedef struct quern__origin {
    uint64_t key;     /* streams are applied in the order of their keys; no two have the same */
    uint32_t serial;  /* the generation of the stream's provisional handles */
    uint32_t source;  /* a number that reports of dropped commands bear */
    const char *name; /* of the system, for messages; it must outlive the streams. NULL: it is no system */
} quern__origin;

typedef struct quern__stream {
    quern__origin origin;
    quern__run *first;
    uint32_t run_count;
    uint32_t create_count;
    uint64_t command_count;     /* known once the stream has been closed, */
    uint32_t item_count;        /* as is this */
    uint64_t structure_version; /* of the storage; while it is the same, locations in items hold */
    uint8_t traits;             /* quern__trait, those of all its commands */
} quern__stream;

/* A run of spawns. */
typedef struct quern__spawn_run {
    quern__run *run;
    uint32_t first_number; /* of the first member of its first item, among the creates of the stream */
} quern__spawn_run;

typedef struct quern__block {
    char *memory;
} quern__block;

/* Recorders of several workers are aligned, so that each has cache lines of its own. A recorder that was handed
 * out never moves: user code may keep its address beyond the callback, and commands must then be refused. */
struct quern_commands {
    /* room in the block in use, and the run that the next command may join */
    _Alignas(QUERN__RECORDER_ALIGNMENT_BYTES) char *next;
    char *end;                         /* after it there is room for a jump */
    const quern__operation *operation; /* of the open run; NULL: none is open */
    quern__run *run;
    quern__storage *storage;
    quern__origin origin; /* of the callback that is running */
    const void *holder;   /* the thread of that callback; NULL: none is running */
    quern__stream *open;  /* its stream: the last; NULL: it has recorded nothing */
    quern_result failed;  /* the first command that memory was missing for, or QUERN_OK */
    uint32_t block_index; /* the block in use; those after it wait to be used again */
    QUERN__ARRAY(quern__block) blocks;
    QUERN__ARRAY(quern__stream) streams; /* with at least one command each */
    quern__operations operations;
    struct quern__accumulator *accumulator; /* NULL: nothing was accumulated yet; see accumulator.h */
    /* what spawning needs: see spawn.h */
    QUERN__ARRAY(struct quern__spawn_kind *) spawns; /* by the index of the prefab */
    struct quern__spawn_kind *old_spawns;            /* of prefabs that have gone; commands may know them */
    QUERN__ARRAY(struct quern__spawn_run) spawn_runs; /* of the open stream, if it spawns */
    bool holds_prefabs;
};

/* The recorders of several workers. */
typedef struct quern__recorders {
    quern_commands *const *items;
    uint32_t count;
} quern__recorders;

/* Provisional handles carry their stream's serial as generation, so serials run from 1 to this. */
#define QUERN__MAX_SERIAL ((uint32_t)QUERN__MAX_GENERATION)

static inline uint32_t quern__serial_of(uint64_t stream_number)
{
    return (uint32_t)(stream_number % QUERN__MAX_SERIAL) + 1;
}

void quern__commands_init(quern_commands *commands, quern__storage *storage);

void quern__commands_release(quern_commands *commands);

/* What is recorded from now on belongs to the stream of this origin, which is new. */
void quern__commands_begin(quern_commands *commands, const quern__origin *origin);

/* The callback has returned: who goes on recording is refused. No run is open then, so a command finds none
 * to join, and the way that it takes then looks whether it may record; others need not ask. */
void quern__commands_end(quern_commands *commands);

/* Ends the last stream; all streams know their command_count now. The second is the call where one may be
 * open. */
void quern__commands_close_stream(quern_commands *commands);

static inline void quern__commands_close(quern_commands *commands)
{
    if (commands->open != NULL || QUERN__UNLIKELY(commands->accumulator != NULL))
        quern__commands_close_stream(commands);
}

/* Destroys the values of a stream that no sync point has moved out. The first is the call where there may be
 * some. */
void quern__stream_destroy_owned(const quern__stream *stream);

static inline void quern__stream_destroy_values(const quern__stream *stream)
{
    if (QUERN__UNLIKELY((stream->traits & QUERN__TRAIT_NO_OWNED) == 0)) quern__stream_destroy_owned(stream);
}

/* Forgets all streams, destroys values that nobody moved out, and keeps the memory. */
void quern__commands_reset(quern_commands *commands);

/* ------------------------------------------------------------------------------------ walking streams */

/* The run that begins here, or at the end of the jumps from here. */
static inline quern__run *quern__run_here(quern__run *run)
{
    while (run->operation == NULL)
        run = run->next;
    return run;
}

static inline char *quern__run_items(quern__run *run)
{
    return (char *)run + run->first_item_bytes;
}

/* The run after this one, which is not the last of its stream. */
static inline quern__run *quern__run_next(quern__run *run)
{
    size_t bytes = (size_t)run->operation->item_bytes * run->item_count;
    return quern__run_here((quern__run *)(void *)(quern__run_items(run) + bytes));
}

static inline quern__item *quern__run_item(quern__run *run, uint32_t i)
{
    return (quern__item *)(void *)(quern__run_items(run) + (size_t)i * run->operation->item_bytes);
}

/* The item after this one in its run. */
static inline quern__item *quern__item_next(const quern__item *item, const quern__operation *operation)
{
    return (quern__item *)(void *)((char *)(uintptr_t)item + operation->item_bytes);
}

#endif
