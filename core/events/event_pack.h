/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_EVENTS_EVENT_PACK_H
#define QUERN_CORE_EVENTS_EVENT_PACK_H

/* Restores the waiting batches of a channel into blocks that were reserved before. Batches keep their sizes. Their
 * values may be in other blocks than before, because no caller can see blocks; so the batches of a channel are packed
 * in order. Counting and packing divide the same batches in the same way. */

#include "core/events/event_internal.h"

typedef struct quern__event_packing {
    quern__event_block **blocks; /* list of reserved blocks; packing takes them from the front */
    quern__event_block *block;   /* the block that is filled */
    size_t left_bytes;           /* free bytes of that block */
} quern__event_packing;

/* Reserves a block for a batch of this size, unless the previous batches leave enough room. Returns false if out of
 * memory. Precondition: the batch fits in a block. */
static inline bool quern__packing_reserve(quern__event_packing *packing, quern_world *world, size_t bytes)
{
    if (packing->left_bytes < bytes) {
        if (!quern__pool_take(&world->events->pool, &world->storage.allocator, packing->blocks))
            return false;
        packing->left_bytes = QUERN__EVENT_VALUES_BYTES;
    }
    packing->left_bytes -= bytes;
    return true;
}

/* Appends a batch of `count` values to the channel and returns the memory for its values, which the caller must fill.
 * Preconditions: blocks were reserved for all batches in this order, and channel->batches has room. */
char *quern__packing_append(quern__event_packing *packing, quern__channel *channel, uint32_t count);

/* Drops all waiting batches of a channel. */
void quern__channel_drop_all(quern__channel *channel);

/* Frees blocks that were reserved and not used. They are not put into the pool, because its list may have no room for
 * new blocks. */
void quern__packing_undo(quern_world *world, quern__event_block **blocks);

#endif
