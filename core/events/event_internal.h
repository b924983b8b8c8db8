/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_EVENTS_EVENT_INTERNAL_H
#define QUERN_CORE_EVENTS_EVENT_INTERNAL_H

/* Events: channels, what waits in them, and who reads it.
 *
 *   block     64 KiB of values of one event, filled by one emitter (emitter.h)
 *   run       values of one callback that are neighbours in a block. What readers get
 *   channel   an event type and its runs that wait, in order; each has a number that goes up for ever
 *   reader    the number of the first run that it has not seen
 *
 * Publishing sorts the runs of all emitters by the keys of the callbacks and appends them to the channel:
 * values stay where they are. Where runs are cut follows from what the callback emitted (emitter.h), so
 * nothing that readers can see depends on the threads. Runs go when all readers have passed them; a block,
 * when it has no run left and no emitter fills it.
 *
 * Threads: emitters take blocks while systems run. All else happens on one thread while nothing emits: at
 * sync points, between frames and in exclusive systems. */

#include "core/base/array.h"
#include "core/base/sort.h"
#include "core/events/emitter.h"
#include "core/world/world_internal.h"

#include <quern/event.h>

struct quern_event_reader {
    quern__channel *channel;
    char name[QUERN_MAX_NAME_BYTES + 1];
    uint64_t identity; /* that no other reader of the world has or had */
    uint64_t cursor;   /* the number of the first run that it has not seen */
    uint64_t end;      /* of a system that runs: it sees the runs before this one */
    bool is_running;   /* a system that runs: nothing is dropped for it meanwhile */
    bool is_given; /* of code between frames: it holds the run at the cursor until the next publication */
    uint64_t lost_count;
    quern_event_reader *previous, *next; /* in the channel's list */
};

/* typedef in emitter.h */
struct quern__channel {
    quern__type type;
    quern_world *world;
    uint32_t index;
    uint32_t stride_bytes; /* of values in a block; events of 0 bytes take 1, so that they can be counted */
    uint32_t run_bytes;    /* of a run of full length */
    uint64_t limit_bytes;
    bool has_long_way; /* each emission takes the way through the library: hooks, checks, no bytes */

    QUERN__ARRAY(quern__event_run) runs;
    uint32_t head;         /* of the runs: those before it are gone */
    uint64_t first_number; /* of the one at the head */
    uint64_t waiting_count, waiting_bytes;
    quern_event_reader *readers;
    uint64_t lost_count;

    quern__emitter emitter; /* of code between frames */
    /* scratch of a publication */
    QUERN__ARRAY(quern__sort_item) order;
    QUERN__ARRAY(quern__sort_item) sort_scratch;
};

/* Of a world; made when the first event is registered. */
typedef struct quern__events {
    QUERN__ARRAY(quern__channel *) channels;
    quern__event_pool pool;
    uint64_t last_identity; /* that a reader was given */
} quern__events;

/* What a publication has dropped: for the first reader that lost something. */
typedef struct quern__event_loss {
    const quern__channel *channel; /* NULL: nothing was dropped, and the rest says nothing */
    char reader_name[QUERN_MAX_NAME_BYTES + 1];
    uint64_t count;
    uint32_t other_count; /* other readers, of this and other events, that lost some, each time counted */
} quern__event_loss;

void quern__events_release(quern_world *world);

/* The channel of a handle. Errors: UNKNOWN_EVENT. */
quern_result quern__events_check(const quern_world *world, quern_event event, quern__channel **out_channel);

/* The memory that events hold. */
uint64_t quern__events_held_bytes(const quern_world *world);

/* Gives blocks back that hold nothing. */
void quern__events_trim(quern_world *world);

/* ------------------------------------------------------------------------------------------ readers */

/* Sees what is published from now on. The name is copied. NULL: no memory. */
quern_event_reader *quern__reader_create(quern__channel *channel, const char *name);

void quern__reader_destroy(quern_event_reader *reader);

static inline uint64_t quern__channel_end(const quern__channel *channel)
{
    return channel->first_number + (channel->runs.count - channel->head);
}

/* One that waits, by its number. */
static inline const quern__event_run *quern__channel_run(const quern__channel *channel, uint64_t number)
{
    return &channel->runs.items[channel->head + (uint32_t)(number - channel->first_number)];
}

/* How many events the runs [number, end) have; runs that are gone have none. */
uint64_t quern__channel_count(const quern__channel *channel, uint64_t number, uint64_t end);

/* ------------------------------------------------------------------------------------- publication */

/* The emitters of some workers: a row of them for each worker, with one emitter for each of the first
 * channels. */
typedef struct quern__emitter_rows {
    quern__emitter **emitters;
    uint32_t row_count, channel_count;
} quern__emitter_rows;

/* Puts what was emitted in order, and makes room to publish it. Errors: OUT_OF_MEMORY, with what was
 * emitted kept. */
quern_result quern__events_gather(quern_world *world, const quern__emitter_rows *rows);

/* Calls visit for each gathered run of events with described handles, channel by channel, in the order of
 * keys within each. */
typedef void quern__event_visit(void *argument, const quern__type *type,
                                const quern__event_segment *segment);
void quern__events_visit_entities(const quern_world *world, const quern__emitter_rows *rows,
                                  quern__event_visit *visit, void *argument);

/* Frees what all readers have seen; then publishes what was gathered, drops what is over the limits, and
 * adds that to the loss. Cannot fail. Returns how many events were published. */
uint64_t quern__events_publish(quern_world *world, const quern__emitter_rows *rows,
                               quern__event_loss *loss);

/* The same for what one emitter has emitted, which no frame knows of: room for so many runs, and publishing
 * them. False: no memory. */
bool quern__channel_reserve(quern__channel *channel, uint32_t run_count);
void quern__channel_publish(quern__channel *channel, quern__emitter *emitter, quern__event_loss *loss);

/* Parts of that: the first run goes; one comes last, for which there is room, and its events are counted.
 */
void quern__channel_drop_first(quern__channel *channel);
uint64_t quern__channel_append(quern__channel *channel, const quern__event_run *run);

/* For the end of a call or frame that has lost events. */
quern_result quern__event_loss_fail(const quern__event_loss *loss, const char *call);

#endif
