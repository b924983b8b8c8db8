/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_EVENTS_EVENT_INTERNAL_H
#define QUERN_CORE_EVENTS_EVENT_INTERNAL_H

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

#include "core/base/bytes.h"
#include "core/base/containers.h"
#include "core/query/query_internal.h"
#include "core/world/world_internal.h"

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

/* Claims a block and puts it in front of a list. Precondition: no callback emits. Returns false if out of memory. */
bool quern__pool_get_block(quern__event_pool *pool, const quern_allocator *allocator,
                           quern__event_block **list);

/* Events: channels, the batches that wait in them, and their readers.
 *
 *   block     64 KiB of memory for values of one event, filled by one emitter
 *   batch     consecutive values in a block, emitted by one callback, or by consecutive calls outside of frames. Readers
 *             get whole batches
 *   channel   an event type and its waiting batches in order; each batch has a number, and numbers only grow
 *   reader    a position in a channel: the number of the first batch that the reader has not seen
 *
 * Publishing sorts the batches of all emitters by the keys of the callbacks and appends them to the channel; values
 * are not moved. Where batches are cut depends only on what the callback emitted, so nothing that readers
 * see depends on threads. A batch is dropped when all readers have passed it; a block is free when it has no batch and
 * no emitter fills it.
 *
 * Threads: emitters claim blocks while systems run. Everything else happens on one thread while no callback emits: at
 * sync points, between frames and in exclusive systems. */

struct quern_event_reader {
    quern__channel *channel;
    char name[QUERN_MAX_NAME_BYTES + 1];
    uint64_t identity; /* unique among all readers that the world has or had */
    uint64_t cursor;   /* number of the first batch that was not seen */
    uint64_t end; /* while is_running: number of the first batch that the system does not see in this run */
    bool is_running; /* whether a system is reading with it; none of its unseen batches is dropped then */
    /* Whether code between frames uses the batch at the cursor; cleared by the next publication. */
    bool has_batch;
    uint64_t lost_count;                 /* number of events that were dropped before the reader saw them */
    quern_event_reader *previous, *next; /* adjacent readers in the channel's list */
};

struct quern__channel {
    quern__type type;
    quern_world *world;
    uint32_t index;
    uint32_t stride_bytes; /* distance of values in a block; 1 for events of 0 bytes, to count them */
    uint32_t batch_bytes;  /* size of a full batch */
    uint64_t limit_bytes;
    /* Whether each emission calls the library: true with a copy hook, QUERN_CHECKS, or 0 bytes. */
    bool needs_checks;

    QUERN__ARRAY(quern__event_batch) batches;
    uint32_t head;         /* index of the first waiting batch; those before it were dropped */
    uint64_t first_number; /* number of the first waiting batch */
    uint64_t waiting_count, waiting_bytes;
    quern_event_reader *readers;
    uint64_t lost_count;

    quern__emitter emitter; /* emitter of code between frames */
    /* Scratch memory of a publication. */
    QUERN__ARRAY(quern__sort_item) order;
    QUERN__ARRAY(quern__sort_item) sort_scratch;
};

/* All events of a world. Created when the first event is registered. */
typedef struct quern__events {
    QUERN__ARRAY(quern__channel *) channels;
    quern__type_ids type_ids; /* identities of the types */
    quern__event_pool pool;
    uint64_t last_identity; /* identity of the reader created last */
} quern__events;

/* Events that a publication dropped: details of the first reader that lost events, and a count of the others. */
typedef struct quern__event_loss {
    const quern__channel *channel; /* NULL: no reader lost events; the other members have no meaning then */
    char reader_name[QUERN_MAX_NAME_BYTES + 1];
    uint64_t count;
    uint32_t other_count; /* number of times that other readers, of any event, lost events */
} quern__event_loss;

void quern__events_release(quern_world *world);

/* Drops all waiting events of types with destroy hooks. */
void quern__events_drop_hooked(quern_world *world);

/* Writes which reader the world has, the newest of the first event with readers; nothing if there is none. */
void quern__events_name_reader(const quern_world *world, char *text, size_t bytes);

static inline uint32_t quern__events_channel_count(const quern_world *world)
{
    return world->events != NULL ? world->events->channels.count : 0;
}

/* Finds the channel of a handle. Errors: UNKNOWN_EVENT. */
quern_result quern__events_check(const quern_world *world, quern_event event, quern__channel **out_channel);

/* Returns the bytes of all event blocks. */
uint64_t quern__events_held_bytes(const quern_world *world);

/* Drops the batches that all readers have seen, then releases all blocks without batches. */
void quern__events_trim(quern_world *world);

/* ------------------------------------------------------------------------------------------ readers */

/* Creates a reader of the events that are published from now on. The name is copied. Returns NULL if out of memory. */
quern_event_reader *quern__reader_create(quern__channel *channel, const char *name);

void quern__reader_destroy(quern_event_reader *reader);

/* Returns the number that the next batch will get. */
static inline uint64_t quern__channel_end(const quern__channel *channel)
{
    return channel->first_number + (channel->batches.count - channel->head);
}

/* Returns a waiting batch by its number. */
static inline const quern__event_batch *quern__channel_batch(const quern__channel *channel, uint64_t number)
{
    return &channel->batches.items[channel->head + (uint32_t)(number - channel->first_number)];
}

/* Returns the number of events in the batches [number, end). Batches that were dropped count as empty. */
uint64_t quern__channel_count(const quern__channel *channel, uint64_t number, uint64_t end);

/* ------------------------------------------------------------------------------------- publication */

/* The emitters of some workers: row_count arrays, one per worker, each with an emitter for each of the first
 * channel_count channels. */
typedef struct quern__emitter_rows {
    quern__emitter **emitters;
    uint32_t row_count, channel_count;
} quern__emitter_rows;

/* Sorts the emitted batches by key and reserves room to publish them. Errors: OUT_OF_MEMORY; then all batches stay in
 * their emitters. */
quern_result quern__events_gather(quern_world *world, const quern__emitter_rows *rows);

/* Calls visit for each gathered batch of a type with described handles: channel by channel, and by key within each. */
typedef void quern__event_visit(void *argument, const quern__type *type, const quern__keyed_batch *keyed);
void quern__events_visit_entities(const quern_world *world, const quern__emitter_rows *rows,
                                  quern__event_visit *visit, void *argument);

/* Drops the batches that all readers have seen, publishes what was gathered, then drops the oldest batches of channels
 * over their limits and adds these to the loss. Cannot fail. Returns how many events were published. */
uint64_t quern__events_publish(quern_world *world, const quern__emitter_rows *rows,
                               quern__event_loss *loss);

/* Returns the error of a call or frame that has lost events, with a message; QUERN_OK if it has lost none. */
quern_result quern__event_loss_fail(const quern__event_loss *loss, const char *call);

/* Frees blocks that were reserved and not used. They are not put into the pool, because its list may have no room for
 * new blocks. */
void quern__packing_undo(quern_world *world, quern__event_block **blocks);

/* The waiting events of a world and the positions of their readers, as bytes. There are two forms. A frame of a history
 * identifies types by order and readers by identity; its bytes lack the values that hooks copy, which the caller keeps. The
 * portable form of archives identifies both by name, and its bytes may be forged. Batches keep their sizes. Bytes are read
 * twice: quern__events_prepare checks them and reserves memory, quern__events_restore relies on that. */
typedef struct quern__event_reading {
    quern_world *world;
    bool is_portable;
    quern__byte_reader *bytes;
    quern__event_block **blocks; /* blocks that prepare reserves, also before an error */
    /* Maps handles of the saved world; NULL: handles stay as they are. Used by restore alone. */
    quern__remap_function *remap;
    void *remap_argument;
} quern__event_reading;

/* Errors: INVALID_ARGUMENT (portable form: values that own resources are waiting). */
quern_result quern__events_write(const quern_world *world, bool is_portable, quern__byte_writer *writer);

/* Errors: UNKNOWN_EVENT, LAYOUT_MISMATCH; BAD_ARCHIVE and OUT_OF_MEMORY without a message. */
quern_result quern__events_prepare(const quern__event_reading *it);

/* Cannot fail. In a frame, the values that hooks copy are uninitialised afterwards. */
void quern__events_restore(const quern__event_reading *it);

#endif
