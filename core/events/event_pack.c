/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/events/event_pack.h"

char *quern__packing_append(quern__event_packing *packing, quern__channel *channel, uint32_t count)
{
    const size_t bytes = (size_t)count * channel->stride_bytes;
    if (packing->left_bytes < bytes) {
        packing->block = *packing->blocks;
        *packing->blocks = packing->block->next;
        packing->left_bytes = QUERN__EVENT_VALUES_BYTES;
    }
    assert(packing->block != NULL);
    const quern__event_batch batch = {.values = (char *)packing->block + QUERN__EVENT_BLOCK_BYTES -
                                                packing->left_bytes,
                                      .count = count,
                                      .block = packing->block};
    packing->left_bytes -= bytes;
    packing->block->use_count++;
    quern__channel_append(channel, &batch);
    return batch.values;
}

void quern__channel_drop_all(quern__channel *channel)
{
    while (channel->head < channel->batches.count)
        quern__channel_drop_first(channel);
    channel->head = channel->batches.count = 0;
}

void quern__packing_undo(quern_world *world, quern__event_block **blocks)
{
    while (*blocks != NULL) {
        quern__event_block *block = *blocks;
        *blocks = block->next;
        quern__pool_release_block(&world->events->pool, &world->storage.allocator, block);
    }
}
