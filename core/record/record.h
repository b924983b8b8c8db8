/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_RECORD_RECORD_H
#define QUERN_CORE_RECORD_RECORD_H

/* Recording commands. Each worker has its own recorder with its own memory blocks, so recording needs no lock.
 * The commands of one callback form a *stream*, identified by its key. At the sync point, gather.h sorts the
 * streams of all recorders by key; from then on, the recording threads are irrelevant.
 *
 * A stream is a list of *command batches*. Consecutive commands with the same operation (operation.h) share one
 * batch and its header:
 *
 *   | batch header, 16 bytes | item | item | ... | batch header | item | ... | jump to the next block |
 *
 * All items of a batch have the same size, so a loop over a batch is a loop over an array. A command for the
 * rows of a view is a batch of its own, without items (view_batch.h); the number of its rows counts as the
 * number of items. */

#include "core/record/operation.h"
#include "core/storage/storage.h"

#include <quern/commands.h>

enum { QUERN__RECORDER_ALIGNMENT_BYTES = 128 };

typedef struct quern__command_batch {
    /* NULL: a jump. The alignment makes the header 16 bytes on every platform, so that items, which contain
     * 64-bit values, follow it aligned. */
    _Alignas(8) const quern__operation *operation;
    union {
        struct quern__command_batch *next; /* jump: where the stream continues, in another block */
        struct {
            uint32_t item_count;
            uint16_t first_item_bytes; /* offset of the first item from the header */
            bool is_view;              /* one command for many rows instead of items: view_batch.h */
        };
    };
} quern__command_batch;

/* The callback that recorded a stream. */
typedef struct quern__origin {
    uint64_t key;           /* position of the stream in the order of application; unique */
    uint32_t serial;        /* generation of the stream's provisional handles */
    uint32_t system_number; /* number of the system in reports of dropped commands */
    const char *name;       /* name of the system, for messages; must outlive the stream. NULL: no system */
} quern__origin;

typedef struct quern__stream {
    quern__origin origin;
    quern__command_batch *first;
    uint32_t batch_count;
    uint32_t create_count;
    uint64_t command_count; /* valid once the stream is closed */
    uint32_t item_count;    /* valid once the stream is closed */
    /* structure version of the storage at the first command. Locations in the items are valid while the
     * storage's version is unchanged. */
    uint64_t structure_version;
    uint8_t traits; /* quern__trait shared by all commands of the stream */
} quern__stream;

/* A batch that spawns. */
typedef struct quern__spawn_batch {
    quern__command_batch *batch;
    uint32_t first_number; /* number of the first instance's root, among the creates of the stream */
} quern__spawn_batch;

typedef struct quern__block {
    char *memory;
} quern__block;

/* A recorder. Aligned so that the recorders of different workers share no cache line. Its address never
 * changes: user code may keep a pointer beyond the callback, and commands recorded through it must fail. */
struct quern_commands {
    /* Free space in the current block, and the open batch, which the next command may join. */
    _Alignas(QUERN__RECORDER_ALIGNMENT_BYTES) char *next;
    char *end;                         /* end of the space for items; a jump fits after it */
    const quern__operation *operation; /* operation of the open batch; NULL: no batch is open */
    quern__command_batch *batch;
    quern__storage *storage;
    quern__origin origin; /* origin of the running callback */
    /* Functions that apply the commands at a sync point: playback.h. NULL until a callback may record. */
    const struct quern__playback_calls *playback_calls;
    const void *callback_thread; /* thread of the running callback; NULL: no callback is running */
    /* stream of the running callback, always the last of streams; NULL: it has no commands yet */
    quern__stream *open;
    /* QUERN_OK, or OUT_OF_MEMORY if a command could not be recorded for lack of memory */
    quern_result failed;
    uint32_t failed_count; /* failed calls since the owner of the recorder last reset the number */
    /* Whether a failed call of the running callback's system or query has been logged. All threads that run its callbacks
     * share the flag. NULL: failures are not logged. */
    _Atomic bool *has_logged_failure;
    uint32_t block_index; /* index of the current block; later blocks are unused and kept for reuse */
    QUERN__ARRAY(quern__block) blocks;
    QUERN__ARRAY(quern__stream) streams; /* each with at least one command */
    quern__operations operations;
    /* NULL until the first accumulated value; see accumulator.h */
    struct quern__accumulator *accumulator;
    /* State for spawning; see spawn.h. */
    QUERN__ARRAY(struct quern__spawn_cache *) spawns; /* indexed by the prefab's index */
    /* caches of destroyed prefabs that pending commands may refer to */
    struct quern__spawn_cache *old_spawn_caches;
    QUERN__ARRAY(struct quern__spawn_batch) spawn_batches; /* batches of the open stream that spawn */
    bool retains_prefabs;
};

/* The recorders of all workers. */
typedef struct quern__recorders {
    quern_commands *const *items;
    uint32_t count;
} quern__recorders;

/* Largest serial. Serials start at 1. A provisional handle has the serial of its stream as generation, so a
 * serial must fit there. */
#define QUERN__MAX_SERIAL ((uint32_t)QUERN__MAX_GENERATION)

static inline uint32_t quern__serial_of(uint64_t stream_number)
{
    return (uint32_t)(stream_number % QUERN__MAX_SERIAL) + 1;
}

void quern__commands_init(quern_commands *commands, quern__storage *storage);

void quern__commands_release(quern_commands *commands);

/* Begins a callback: the following commands go to a new stream with this origin. */
void quern__commands_begin(quern_commands *commands, const quern__origin *origin);

/* Lets failed calls of the running callback be logged until the flag is set. Call it after quern__commands_begin. */
static inline void quern__commands_log_failures(quern_commands *commands, _Atomic bool *has_logged)
{
    commands->has_logged_failure = has_logged;
}

/* Ends the callback: further commands fail until quern__commands_begin. A batch is never open between
 * callbacks, so a command must first reserve space, and reserving checks for a running callback. Commands that
 * join an open batch skip that check. */
void quern__commands_end(quern_commands *commands);

/* Closes the open stream; afterwards the command counts of all streams are valid. quern__commands_close skips
 * the call if there is nothing to close. */
void quern__commands_close_stream(quern_commands *commands);

static inline void quern__commands_close(quern_commands *commands)
{
    if (commands->open != NULL || QUERN__UNLIKELY(commands->accumulator != NULL))
        quern__commands_close_stream(commands);
}

/* Destroys the values that items of the stream still own. quern__stream_destroy_values skips the call if no
 * value has a destroy hook. */
void quern__stream_destroy_owned(const quern__stream *stream);

static inline void quern__stream_destroy_values(const quern__stream *stream)
{
    if (QUERN__UNLIKELY((stream->traits & QUERN__TRAIT_NO_OWNED) == 0)) quern__stream_destroy_owned(stream);
}

/* Removes all streams, destroys the values that their items still own, and keeps the memory for reuse. */
void quern__commands_reset(quern_commands *commands);

/* ------------------------------------------------------------------------------------ iterating streams */

/* Returns the batch at this address, or the batch that the jumps at this address lead to. */
static inline quern__command_batch *quern__batch_skip_jumps(quern__command_batch *batch)
{
    while (batch->operation == NULL)
        batch = batch->next;
    return batch;
}

static inline char *quern__batch_items(quern__command_batch *batch)
{
    return (char *)batch + batch->first_item_bytes;
}

/* A command for rows of one chunk, stored at the position of the first item. view_batch.h has the functions. */
typedef struct quern__view_batch {
    uintptr_t location;       /* location of the first row when the command was recorded */
    uint32_t last_row;        /* index of the last row in the chunk */
    uint32_t bytes;           /* size of this struct and of the three lists that follow it */
    uint32_t mask_word_count; /* 0: the rows are consecutive */
    uint32_t value_bytes;     /* distance between the values of two rows; 0: one value, or none, for all */
    bool has_skipped;         /* some handles are null: the relate stage has dropped these rows */
    _Alignas(8) char entities[]; /* a handle per row; then the mask; then the values */
} quern__view_batch;

/* Returns the address after the batch. */
static inline char *quern__batch_end(quern__command_batch *batch)
{
    char *items = quern__batch_items(batch);
    if (QUERN__UNLIKELY(batch->is_view))
        return items + ((const quern__view_batch *)(const void *)items)->bytes;
    return items + (size_t)batch->operation->item_bytes * batch->item_count;
}

/* Returns the next batch. The batch must not be the last of its stream. */
static inline quern__command_batch *quern__batch_next(quern__command_batch *batch)
{
    return quern__batch_skip_jumps((quern__command_batch *)(void *)quern__batch_end(batch));
}

/* Returns the i-th item. Precondition: the batch is no command for a view. */
static inline quern__item *quern__batch_item(quern__command_batch *batch, uint32_t i)
{
    return (quern__item *)(void *)(quern__batch_items(batch) + (size_t)i * batch->operation->item_bytes);
}

/* Returns the address of the next item of a batch. */
static inline quern__item *quern__item_next(const quern__item *item, const quern__operation *operation)
{
    return (quern__item *)(void *)((char *)(uintptr_t)item + operation->item_bytes);
}

#endif
