/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_EVENTS_EMITTER_H
#define QUERN_CORE_EVENTS_EMITTER_H

/* Emitting events: each worker has an emitter for each event, which fills blocks of its own, so emitting
 * takes no lock.
 *
 * What a callback emits is cut into runs of equal length, the last of which may be shorter. Each is in
 * one block: where it does not fit what the emitter's block has left, a new one is taken. So the cuts
 * depend on nothing but the number of events that the callback has emitted, while callbacks that emit
 * little share blocks: what its last run does not need is the next callback's. A block goes on being
 * filled after its runs were published, so that few events take little memory.
 *
 * Blocks are four times as long as runs. What a run may leave unused at the end of a block is then an
 * eighth of the memory; with runs as long as blocks it was a third, and a million events of 16 bytes
 * took half as long again to be read. */

#include "core/base/array.h"
#include "core/query/query_internal.h"

#include <quern/event.h>

#include <stdatomic.h>

typedef struct quern__channel quern__channel;

enum {
    QUERN__EVENT_BLOCK_BYTES = 64 * 1024,
    QUERN__EVENT_BLOCK_ALIGNMENT_BYTES = 64,
    QUERN__EVENT_VALUES_BYTES = QUERN__EVENT_BLOCK_BYTES - QUERN__EVENT_BLOCK_ALIGNMENT_BYTES,
    QUERN__EVENT_RUN_BYTES = QUERN__EVENT_VALUES_BYTES / 4 /* and less, where values do not fill it */
};

/* The values follow, aligned as the block is. */
typedef struct quern__event_block {
    struct quern__event_block *next; /* in an emitter's hand */
    uint32_t use_count;              /* runs in it, and 1 while an emitter fills it */
} quern__event_block;

_Static_assert(sizeof(quern__event_block) <= QUERN__EVENT_BLOCK_ALIGNMENT_BYTES, "room for the head");
_Static_assert(QUERN_MAX_COMPONENT_BYTES <= QUERN__EVENT_RUN_BYTES, "one event fits a run");
_Static_assert(QUERN_MAX_ALIGNMENT_BYTES <= QUERN__EVENT_BLOCK_ALIGNMENT_BYTES, "values are aligned");

typedef struct quern__event_run {
    char *values;
    uint32_t count;
    quern__event_block *block;
} quern__event_run;

/* A run that is not published. */
typedef struct quern__event_segment {
    uint64_t key; /* of the callback: as the streams of its commands */
    quern__event_run run;
} quern__event_segment;

/* Blocks of a world that hold nothing. Workers take the first ones, by counting how many are taken; new ones
 * come from the allocator when there is none. */
typedef struct quern__event_pool {
    QUERN__ARRAY(quern__event_block *)
    free;                         /* with room for all blocks there are, where they are given back */
    _Atomic uint32_t taken_count; /* of those, since quern__pool_settle */
    _Atomic uint32_t block_count; /* all that there are */
} quern__event_pool;

/* In an array of several workers': each has cache lines of its own. */
typedef struct quern__emitter {
    _Alignas(128) quern_emitter face; /* first: users have its address */
    char *first;                      /* where the open run begins; NULL: none is open */
    char *cursor;                     /* the place of the next value, where face does not tell */
    char *run_end;                    /* so far the open run may go */
    char *block_end;
    quern__channel *channel; /* NULL: it was never opened */
    quern__event_block *block;
    quern__event_block *spares;
    uint64_t key;
    quern_result failed;
    bool is_open;
    const void *thread;               /* of the callback; in builds with checks */
    const char *system_name;          /* or NULL */
    quern__scope *scope;              /* of the callback, which is refused what is wrong; or NULL */
    struct quern__emitter *next_open; /* of the callback */
    QUERN__ARRAY(quern__event_segment) segments;
} quern__emitter;

/* What is emitted from now on belongs to the callback of this key. */
void quern__emitter_open(quern__emitter *emitter, quern__channel *channel, uint64_t key,
                         const char *system_name, quern__scope *scope);

/* The callback has returned: who goes on emitting is refused. */
void quern__emitter_close(quern__emitter *emitter);

/* Makes room for so many more. False: no memory, and the emitter as it was. */
bool quern__emitter_reserve(quern__emitter *emitter, uint32_t count);

/* Emits values for which there is room. */
void quern__emitter_put(quern__emitter *emitter, const void *values, uint32_t count);

/* Gives all back, with the values that were not published. */
void quern__emitter_release(quern__emitter *emitter);

/* Where the emitter's block holds no run any more, and what it has in hand: back to the pool. */
void quern__emitter_settle(quern__emitter *emitter);

/* To be called before anything is given back: what workers have taken is not there any more. */
void quern__pool_settle(quern__event_pool *pool);

/* Room for all blocks to be given back. False: no memory. */
bool quern__pool_reserve(quern__event_pool *pool, const quern_allocator *allocator);

/* The run's values are destroyed, or were moved on: one that goes. */
void quern__pool_drop_run(quern__event_pool *pool, const quern__event_run *run);

void quern__pool_give(quern__event_pool *pool, quern__event_block *block);

/* Takes one more block before those of a list; nobody emits. False: no memory. */
bool quern__pool_take(quern__event_pool *pool, const quern_allocator *allocator, quern__event_block **list);

/* A block that was taken and holds nothing: back to the allocator. */
void quern__pool_return(quern__event_pool *pool, const quern_allocator *allocator,
                        quern__event_block *block);

#endif
