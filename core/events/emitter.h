/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_EVENTS_EMITTER_H
#define QUERN_CORE_EVENTS_EMITTER_H

/* Emitting events. Each worker has an emitter for each event, which fills blocks of its own, so emitting needs no lock.
 *
 * The values of one callback are cut into batches of equal length, the last of which may be shorter. A batch is in one
 * block: if a full batch does not fit the rest of the emitter's block, the emitter begins a new block. The cuts therefore
 * depend only on the number of events that the callback has emitted. Callbacks that emit few events share blocks: the
 * next callback uses the space after a short last batch. A block is still filled after its batches were published, so
 * that few events need little memory.
 *
 * A block is as long as four batches, so a batch that does not fit wastes an eighth of the memory on average. With
 * blocks of one batch it was a third, and reading a million events of 16 bytes took half as long again. */

#include "core/base/array.h"
#include "core/query/query_internal.h"

#include <quern/event.h>

#include <stdatomic.h>

typedef struct quern__channel quern__channel;

enum {
    QUERN__EVENT_BLOCK_BYTES = 64 * 1024,
    QUERN__EVENT_BLOCK_ALIGNMENT_BYTES = 64,
    QUERN__EVENT_VALUES_BYTES = QUERN__EVENT_BLOCK_BYTES - QUERN__EVENT_BLOCK_ALIGNMENT_BYTES,
    QUERN__EVENT_BATCH_BYTES = QUERN__EVENT_VALUES_BYTES / 4 /* maximum size of a batch */
};

/* The head of a block. Values follow, aligned to the block's alignment. */
typedef struct quern__event_block {
    struct quern__event_block *next; /* next block in an emitter's list of spares */
    uint32_t use_count;              /* number of batches, plus 1 while an emitter fills the block */
} quern__event_block;

_Static_assert(sizeof(quern__event_block) <= QUERN__EVENT_BLOCK_ALIGNMENT_BYTES, "room for the head");
_Static_assert(QUERN_MAX_COMPONENT_BYTES <= QUERN__EVENT_BATCH_BYTES, "one event fits a batch");
_Static_assert(QUERN_MAX_ALIGNMENT_BYTES <= QUERN__EVENT_BLOCK_ALIGNMENT_BYTES, "values are aligned");

typedef struct quern__event_batch {
    char *values;
    uint32_t count;
    quern__event_block *block;
} quern__event_batch;

/* A batch that was not published yet. */
typedef struct quern__keyed_batch {
    uint64_t key; /* key of the callback, which is also the key of its commands */
    quern__event_batch batch;
} quern__keyed_batch;

/* The free blocks of a world. Workers claim the first ones by counting up taken_count; without free blocks they
 * allocate. */
typedef struct quern__event_pool {
    /* The free blocks. Before blocks are returned, it has capacity for all blocks of the world. */
    QUERN__ARRAY(quern__event_block *) free;
    _Atomic uint32_t taken_count; /* claims since quern__pool_forget_taken; may exceed free.count */
    _Atomic uint32_t block_count; /* number of all blocks of the world, free or not */
} quern__event_pool;

/* Emitters of several workers are in one array; the alignment keeps them in different cache lines. */
typedef struct quern__emitter {
    _Alignas(128) quern_emitter public_part; /* first member: users have its address */
    char *first;                             /* first value of the open batch; NULL: none is open */
    /* Address of the next value, or of the next batch if none is open. While a batch is open and the channel lacks
     * needs_checks, public_part.next is the address of the next value instead. */
    char *cursor;
    char *batch_end; /* end of the memory that the open batch may use */
    char *block_end;
    quern__channel *channel;    /* NULL: never opened */
    quern__event_block *block;  /* the block that is filled, or NULL */
    quern__event_block *spares; /* list of claimed blocks that hold nothing */
    uint64_t key;               /* key of the running callback */
    quern_result failed;        /* error of the last event without memory; QUERN_OK: none */
    bool is_open;               /* whether the callback that may emit is running */
    const void *thread;         /* thread of the callback; compared only in builds with QUERN_CHECKS */
    const char *system_name;    /* name of the system, for messages; NULL if there is none */
    quern__scope *scope;        /* scope of the callback, which counts refusals; or NULL */
    struct quern__emitter *next_open; /* next emitter that the callback has opened */
    QUERN__ARRAY(quern__keyed_batch) batches;
} quern__emitter;

/* Opens the emitter for the callback with this key. */
void quern__emitter_open(quern__emitter *emitter, quern__channel *channel, uint64_t key,
                         const char *system_name, quern__scope *scope);

/* Closes the emitter when the callback has returned. Later attempts to emit fail. */
void quern__emitter_close(quern__emitter *emitter);

/* Reserves memory for `count` more values. Returns false if out of memory; blocks that were claimed until then stay
 * in `spares`. */
bool quern__emitter_reserve(quern__emitter *emitter, uint32_t count);

/* Emits values. Precondition: room was reserved. */
void quern__emitter_put(quern__emitter *emitter, const void *values, uint32_t count);

/* Destroys the values that were not published and releases all memory. */
void quern__emitter_release(quern__emitter *emitter);

/* Returns the spares to the pool, and the block that is filled if it has no batches. */
void quern__emitter_reclaim(quern__emitter *emitter);

/* Removes the claimed blocks from the list of free ones. Must be called before blocks are returned. */
void quern__pool_forget_taken(quern__event_pool *pool);

/* Reserves capacity in the list of free blocks for all blocks of the world. Returns false if out of memory. */
bool quern__pool_reserve(quern__event_pool *pool, const quern_allocator *allocator);

/* Releases the block of a batch after its values were destroyed or moved. Returns the block to the pool if it has no
 * other batch and no emitter fills it. */
void quern__pool_drop_batch(quern__event_pool *pool, const quern__event_batch *batch);

/* Returns a block without batches to the list of free ones. */
void quern__pool_give(quern__event_pool *pool, quern__event_block *block);

/* Claims a block and puts it in front of a list. Precondition: no callback emits. Returns false if out of memory. */
bool quern__pool_take(quern__event_pool *pool, const quern_allocator *allocator, quern__event_block **list);

/* Releases a claimed block without batches to the allocator. */
void quern__pool_release_block(quern__event_pool *pool, const quern_allocator *allocator,
                               quern__event_block *block);

#endif
