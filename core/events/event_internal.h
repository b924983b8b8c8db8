/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_EVENTS_EVENT_INTERNAL_H
#define QUERN_CORE_EVENTS_EVENT_INTERNAL_H

/* Events: channels, the batches that wait in them, and their readers.
 *
 *   block     64 KiB of memory for values of one event, filled by one emitter (emitter.h)
 *   batch     consecutive values in a block, emitted by one callback, or by consecutive calls outside of frames. Readers
 *             get whole batches
 *   channel   an event type and its waiting batches in order; each batch has a number, and numbers only grow
 *   reader    a position in a channel: the number of the first batch that the reader has not seen
 *
 * Publishing sorts the batches of all emitters by the keys of the callbacks and appends them to the channel; values
 * are not moved. Where batches are cut depends only on what the callback emitted (emitter.h), so nothing that readers
 * see depends on threads. A batch is dropped when all readers have passed it; a block is free when it has no batch and
 * no emitter fills it.
 *
 * Threads: emitters claim blocks while systems run. Everything else happens on one thread while no callback emits: at
 * sync points, between frames and in exclusive systems. */

#include "core/base/array.h"
#include "core/base/sort.h"
#include "core/events/emitter.h"
#include "core/world/world_internal.h"

#include <quern/event.h>

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

/* Publish the batches of one emitter outside of frames. The first function reserves memory for the batches; it returns
 * false if out of memory. The second publishes the batches and cannot fail. */
bool quern__channel_reserve(quern__channel *channel, uint32_t batch_count);
void quern__channel_publish(quern__channel *channel, quern__emitter *emitter, quern__event_loss *loss);

/* Returns whether events that are emitted outside of frames would be dropped at once, without a call of a hook: the
 * channel has no reader, and nothing waits. */
static inline bool quern__channel_would_drop(const quern__channel *channel)
{
    return channel->readers == NULL && channel->head == channel->batches.count &&
           !quern__hooks_own_resources(&channel->type.hooks);
}

/* Drops the first waiting batch. */
void quern__channel_drop_first(quern__channel *channel);

/* Appends a batch, for which room was reserved. Returns its number of events. */
uint64_t quern__channel_append(quern__channel *channel, const quern__event_batch *batch);

/* Returns the error of a call or frame that has lost events, with a message; QUERN_OK if it has lost none. */
quern_result quern__event_loss_fail(const quern__event_loss *loss, const char *call);

#endif
