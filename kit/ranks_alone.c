/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/ranks_internal.h"

/* The ranks of one process exchange packets through lists, one for each rank. */

typedef struct ranks_parcel {
    struct ranks_parcel *next;
    uint32_t from;
    size_t size_bytes; /* of what follows */
} ranks_parcel;

typedef struct ranks_mailbox {
    quern_ranks_alone *owner;
    uint32_t rank;
    ranks_parcel *first, **end;
} ranks_mailbox;

struct quern_ranks_alone {
    quern_allocator allocator;
    uint32_t rank_count;
    ranks_mailbox boxes[];
};

static bool send(void *user_data, uint32_t to, const void *bytes, size_t size_bytes)
{
    const ranks_mailbox *from = user_data;
    ranks_mailbox *box = &from->owner->boxes[to];
    const quern_allocator allocator = from->owner->allocator;
    ranks_parcel *parcel = allocator.allocate(allocator.user_data, sizeof *parcel + size_bytes, 16);
    if (parcel == NULL) return false;
    *parcel = (ranks_parcel){.from = from->rank, .size_bytes = size_bytes};
    memcpy(parcel + 1, bytes, size_bytes);
    *box->end = parcel;
    box->end = &parcel->next;
    return true;
}

/* Takes the first parcel out of a box. */
static void drop_first(ranks_mailbox *box)
{
    const quern_allocator allocator = box->owner->allocator;
    ranks_parcel *parcel = box->first;
    box->first = parcel->next;
    if (box->first == NULL) box->end = &box->first;
    allocator.release(allocator.user_data, parcel, sizeof *parcel + parcel->size_bytes, 16);
}

static bool receive(void *user_data, quern_byte_buffer *bytes, uint32_t *out_from)
{
    ranks_mailbox *box = user_data;
    const ranks_parcel *parcel = box->first;
    bytes->size_bytes = 0;
    if (parcel == NULL || quern__ranks_append(bytes, parcel + 1, parcel->size_bytes) == NULL) return false;
    *out_from = parcel->from;
    drop_first(box);
    return true;
}

quern_result quern_ranks_alone_create(uint32_t rank_count, const quern_allocator *allocator,
                                      quern_ranks_alone **out_alone)
{
    const quern_allocator used = allocator != NULL ? *allocator : quern_allocator_default();
    const size_t size_bytes = sizeof(quern_ranks_alone) + rank_count * sizeof(ranks_mailbox);
    if (out_alone == NULL) return quern__ranks_fail_null("quern_ranks_alone_create", "out_alone");
    *out_alone = NULL;
    if (rank_count == 0 || rank_count > QUERN_RANKS_MAX)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "quern_ranks_alone_create: %u ranks are not possible: pass 1 to %d",
                               (unsigned)rank_count, QUERN_RANKS_MAX);
    quern_ranks_alone *alone = used.allocate(used.user_data, size_bytes, 16);
    if (alone == NULL)
        return quern_error_set(QUERN_ERROR_OUT_OF_MEMORY,
                               "quern_ranks_alone_create: out of memory for %u ranks",
                               (unsigned)rank_count);
    *alone = (quern_ranks_alone){.allocator = used, .rank_count = rank_count};
    for (uint32_t i = 0; i < rank_count; i++)
        alone->boxes[i] = (ranks_mailbox){.owner = alone, .rank = i, .end = &alone->boxes[i].first};
    *out_alone = alone;
    return QUERN_OK;
}

void quern_ranks_alone_destroy(quern_ranks_alone *alone)
{
    if (alone == NULL) return;
    for (uint32_t i = 0; i < alone->rank_count; i++)
        while (alone->boxes[i].first != NULL)
            drop_first(&alone->boxes[i]);
    alone->allocator.release(alone->allocator.user_data, alone,
                             sizeof *alone + alone->rank_count * sizeof(ranks_mailbox), 16);
}

quern_result quern_ranks_alone_transport(quern_ranks_alone *alone, uint32_t rank,
                                         quern_ranks_transport *out_transport)
{
    if (alone == NULL || out_transport == NULL)
        return quern__ranks_fail_null("quern_ranks_alone_transport",
                                      alone == NULL ? "alone" : "out_transport");
    if (rank >= alone->rank_count)
        return quern_error_set(QUERN_ERROR_INVALID_ARGUMENT,
                               "quern_ranks_alone_transport: there is no rank %u: pass 0 to %u",
                               (unsigned)rank, (unsigned)(alone->rank_count - 1));
    *out_transport = (quern_ranks_transport){.rank = rank,
                                             .rank_count = alone->rank_count,
                                             .send = send,
                                             .receive = receive,
                                             .user_data = &alone->boxes[rank]};
    return QUERN_OK;
}
