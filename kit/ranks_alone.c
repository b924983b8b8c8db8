/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "kit/ranks_internal.h"

#include <math.h>

/* The ranks of one process exchange packets through lists, one for each rank.
 *
 * With a network, time is simulated: each rank has a clock. Processor time between two calls of the transport is that of the
 * rank that makes the second call, as ranks run one after another. A parcel arrives when the sender's link has sent the ones
 * before and then its bytes, and the latency is over. A rank receives what has arrived by its clock, the earliest first.
 * When no rank can go on, the clocks of those move to their next parcel that no parcel still to be sent can overtake: a parcel
 * that is sent after the next arrival of all takes the latency at least. */

typedef struct ranks_parcel {
    struct ranks_parcel *next;
    double arrival;
    uint32_t from;
    size_t size_bytes; /* of what follows */
} ranks_parcel;

typedef struct ranks_mailbox {
    quern_ranks_alone *owner;
    uint32_t rank;
    double clock, link_is_free; /* in seconds */
    double last_arrival;
    ranks_parcel *first, **end; /* in the order of arrivals */
} ranks_mailbox;

struct quern_ranks_alone {
    quern_allocator allocator;
    quern_ranks_network network; /* bytes_per_second is 0 if there is none */
    uint64_t charged_ns;         /* processor time up to which the clocks have been moved */
    uint32_t rank_count;
    bool is_in_use; /* a transport was asked for */
    ranks_mailbox boxes[];
};

static bool has_network(const quern_ranks_alone *alone)
{
    return alone->network.bytes_per_second > 0;
}

/* Moves the clock of the rank that has run. */
static void charge(ranks_mailbox *box)
{
    quern_ranks_alone *alone = box->owner;
    if (!has_network(alone)) return;
    const uint64_t now_ns = quern__ranks_processor_ns();
    box->clock += 1e-9 * (double)(now_ns - alone->charged_ns);
    alone->charged_ns = now_ns;
}

/* Returns when bytes that a rank sends now arrive. */
static double send_over_network(ranks_mailbox *from, size_t size_bytes)
{
    const quern_ranks_network *network = &from->owner->network;
    if (!has_network(from->owner)) return 0;
    if (from->link_is_free < from->clock) from->link_is_free = from->clock;
    from->link_is_free += (double)size_bytes / network->bytes_per_second;
    return from->link_is_free + network->latency_seconds;
}

static void insert(ranks_mailbox *box, ranks_parcel *parcel)
{
    ranks_parcel **at = box->end;
    if (parcel->arrival < box->last_arrival && box->first != NULL)
        for (at = &box->first; (*at)->arrival <= parcel->arrival;)
            at = &(*at)->next;
    parcel->next = *at;
    *at = parcel;
    if (parcel->next != NULL) return;
    box->end = &parcel->next;
    box->last_arrival = parcel->arrival;
}

static bool send(void *user_data, uint32_t to, const void *bytes, size_t size_bytes)
{
    ranks_mailbox *from = user_data;
    const quern_allocator allocator = from->owner->allocator;
    charge(from);
    ranks_parcel *parcel = allocator.allocate(allocator.user_data, sizeof *parcel + size_bytes, 16);
    if (parcel == NULL) return false;
    *parcel = (ranks_parcel){
        .arrival = send_over_network(from, size_bytes), .from = from->rank, .size_bytes = size_bytes};
    memcpy(parcel + 1, bytes, size_bytes);
    insert(&from->owner->boxes[to], parcel);
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
    charge(box);
    const ranks_parcel *parcel = box->first;
    bytes->size_bytes = 0;
    if (parcel == NULL || parcel->arrival > box->clock ||
        quern__ranks_append(bytes, parcel + 1, parcel->size_bytes) == NULL)
        return false;
    *out_from = parcel->from;
    drop_first(box);
    return true;
}

static double tell_time(void *user_data)
{
    ranks_mailbox *box = user_data;
    charge(box);
    return box->clock;
}

void quern__ranks_skip_time(const quern_ranks_transport *transport)
{
    if (transport->now == tell_time)
        ((const ranks_mailbox *)transport->user_data)->owner->charged_ns = quern__ranks_processor_ns();
}

/* No rank can go on: moves the clocks to the next arrivals. */
static void pass_time(void *user_data)
{
    quern_ranks_alone *alone = ((const ranks_mailbox *)user_data)->owner;
    double next = INFINITY;
    for (uint32_t i = 0; i < alone->rank_count; i++)
        /* A parcel that has arrived and was not taken is one of a rank that has failed. */
        if (alone->boxes[i].first != NULL && alone->boxes[i].first->arrival > alone->boxes[i].clock &&
            alone->boxes[i].first->arrival < next)
            next = alone->boxes[i].first->arrival;
    for (uint32_t i = 0; i < alone->rank_count; i++) {
        ranks_mailbox *box = &alone->boxes[i];
        if (box->first == NULL || box->first->arrival > next + alone->network.latency_seconds) continue;
        if (box->clock < box->first->arrival) box->clock = box->first->arrival;
    }
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
    alone->is_in_use = true;
    if (has_network(alone)) {
        out_transport->now = tell_time;
        out_transport->wait = pass_time;
    }
    return QUERN_OK;
}

quern_result quern_ranks_alone_set_network(quern_ranks_alone *alone, const quern_ranks_network *network)
{
    if (alone == NULL || network == NULL)
        return quern__ranks_fail_null("quern_ranks_alone_set_network", alone == NULL ? "alone" : "network");
    if (!(network->latency_seconds >= 0 && network->latency_seconds < INFINITY) ||
        !(network->bytes_per_second > 0 && network->bytes_per_second < INFINITY))
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_ranks_alone_set_network: a latency of %g s and %g bytes per second are "
            "not possible: pass a latency of 0 or more, and a positive number of bytes",
            network->latency_seconds, network->bytes_per_second);
    if (alone->is_in_use)
        return quern_error_set(
            QUERN_ERROR_INVALID_ARGUMENT,
            "quern_ranks_alone_set_network: a transport was given out, which has no clock: call it before "
            "quern_ranks_alone_transport");
    alone->network = *network;
    alone->charged_ns = quern__ranks_processor_ns();
    return QUERN_OK;
}

double quern_ranks_alone_seconds(quern_ranks_alone *alone)
{
    double latest = 0;
    if (alone == NULL) return 0;
    for (uint32_t i = 0; i < alone->rank_count; i++)
        if (alone->boxes[i].clock > latest) latest = alone->boxes[i].clock;
    alone->charged_ns = quern__ranks_processor_ns();
    return latest;
}
