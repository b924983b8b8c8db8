/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "link_mpi.h"

#include <mpi.h>

#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_MAIL = 1, TAG_REPORT, TAG_STOP };

/* -------------------------------------------------------------------------------------------- waiting */

/* MPI calls that wait would wait for ever for a rank that has died. So the calls here only test, until a deadline. */
typedef struct Wait {
    double deadline;
    bool is_lost; /* a rank does not answer, or another rank has said so */
} Wait;

static Wait begin_wait(const Link *link)
{
    return (Wait){.deadline = MPI_Wtime() + link->timeout_seconds};
}

/* Notes the result of an MPI call. */
static void note(Wait *wait, int result)
{
    wait->is_lost = wait->is_lost || result != MPI_SUCCESS;
}

/* Lets other processes run. Returns false when waiting has no purpose any more. */
static bool go_on_waiting(Wait *wait)
{
    int is_stopped = 0;
    note(wait, MPI_Iprobe(MPI_ANY_SOURCE, TAG_STOP, MPI_COMM_WORLD, &is_stopped, MPI_STATUS_IGNORE));
    wait->is_lost = wait->is_lost || is_stopped || MPI_Wtime() > wait->deadline;
    if (!wait->is_lost) sched_yield();
    return !wait->is_lost;
}

static bool are_done(Wait *wait, MPI_Request *requests, int count)
{
    int is_done = 0;
    note(wait, MPI_Testall(count, requests, &is_done, MPI_STATUSES_IGNORE));
    return is_done;
}

/* ----------------------------------------------------------------------------------------------- mail */

/* The exchange of a rank with its neighbours. */
typedef struct Exchange {
    Wait wait;
    MPI_Request requests[2 * SIDE_COUNT]; /* sends, then receives */
    bool is_expected[SIDE_COUNT];         /* a message has yet to be seen */
} Exchange;

static bool has_neighbour(const Rank *rank, int side)
{
    return side == SIDE_LEFT ? rank->index > 0 : rank->index + 1 < rank->stripes.count;
}

static int neighbour_of(const Rank *rank, int side)
{
    return (int)rank->index + (side == SIDE_LEFT ? -1 : 1);
}

static void send_mail(Exchange *it, const Rank *rank, int side)
{
    const quern_byte_buffer *out = &rank->mail.out[side];
    if (out->size_bytes > INT_MAX) {
        fprintf(stderr, "ranks: a message of %zu bytes is too large for MPI\n", out->size_bytes);
        abort();
    }
    note(&it->wait, MPI_Isend(out->bytes, (int)out->size_bytes, MPI_BYTE, neighbour_of(rank, side),
                              TAG_MAIL, MPI_COMM_WORLD, &it->requests[side]));
    it->is_expected[side] = true;
}

static void make_room(quern_byte_buffer *in, size_t size_bytes)
{
    static const char zeros[4096];
    const quern_sink sink = quern_sink_bytes(in);
    in->size_bytes = 0;
    while (in->size_bytes < size_bytes) {
        const size_t left = size_bytes - in->size_bytes;
        if (sink.write(sink.user_data, zeros, left < sizeof zeros ? left : sizeof zeros)) continue;
        fprintf(stderr, "ranks: out of memory for a message of %zu bytes\n", size_bytes);
        abort();
    }
}

/* Begins to receive the message of a neighbour, once its size is known. */
static void expect_mail(Exchange *it, Rank *rank, int side)
{
    const int from = neighbour_of(rank, side);
    MPI_Status status;
    int is_there = 0, size_bytes = 0;
    note(&it->wait, MPI_Iprobe(from, TAG_MAIL, MPI_COMM_WORLD, &is_there, &status));
    if (!is_there) return;
    MPI_Get_count(&status, MPI_BYTE, &size_bytes);
    make_room(&rank->mail.in[side], (size_t)size_bytes);
    note(&it->wait, MPI_Irecv(rank->mail.in[side].bytes, size_bytes, MPI_BYTE, from, TAG_MAIL,
                              MPI_COMM_WORLD, &it->requests[SIDE_COUNT + side]));
    it->is_expected[side] = false;
}

static bool exchange(Link *link, Rank *ranks)
{
    Rank *rank = &ranks[0];
    Exchange it = {.wait = begin_wait(link)};
    for (int i = 0; i < 2 * SIDE_COUNT; i++)
        it.requests[i] = MPI_REQUEST_NULL;
    for (int side = 0; side < SIDE_COUNT; side++) {
        rank->mail.in[side].size_bytes = 0;
        if (has_neighbour(rank, side)) send_mail(&it, rank, side);
    }
    do {
        bool is_expecting = false;
        for (int side = 0; side < SIDE_COUNT; side++) {
            if (it.is_expected[side]) expect_mail(&it, rank, side);
            is_expecting = is_expecting || it.is_expected[side];
        }
        if (are_done(&it.wait, it.requests, 2 * SIDE_COUNT) && !is_expecting) return !it.wait.is_lost;
    } while (go_on_waiting(&it.wait));
    return false;
}

/* -------------------------------------------------------------------------------------------- reports */

/* Sends the same bytes to all other ranks, and begins to receive theirs. requests: sends, then receives, by rank. */
static void tell_all(const Link *link, Wait *wait, const void *own, size_t size_bytes, void *all, int tag,
                     MPI_Request *requests)
{
    for (uint32_t i = 0; i < link->rank_count; i++) {
        MPI_Request *sent = &requests[i], *received = &requests[link->rank_count + i];
        *sent = *received = MPI_REQUEST_NULL;
        if (i == link->first_rank) continue;
        note(wait, MPI_Irecv((char *)all + i * size_bytes, (int)size_bytes, MPI_BYTE, (int)i, tag,
                             MPI_COMM_WORLD, received));
        note(wait, MPI_Isend(own, (int)size_bytes, MPI_BYTE, (int)i, tag, MPI_COMM_WORLD, sent));
    }
    memcpy((char *)all + link->first_rank * size_bytes, own, size_bytes);
}

static bool share(Link *link, const void *own, size_t size_bytes, void *all)
{
    MPI_Request requests[2 * RANKS_MAX];
    Wait wait = begin_wait(link);
    tell_all(link, &wait, own, size_bytes, all, TAG_REPORT, requests);
    do
        if (are_done(&wait, requests, 2 * (int)link->rank_count)) return !wait.is_lost;
    while (go_on_waiting(&wait));
    return false;
}

/* The ranks that remain tell each other how many frames they have run, which differs by at most one: a rank that dies may
 * have reported its last frame to some of them only. Ranks that do not tell it in time are lost. The process ends after
 * this, so requests are left as they are, and memory of messages is static. */
static Loss agree_on_loss(Link *link, uint64_t frame)
{
    static uint64_t own, frames[RANKS_MAX];
    static MPI_Request requests[2 * RANKS_MAX];
    MPI_Request *received = &requests[link->rank_count];
    Wait wait = begin_wait(link);
    Loss loss = {.frame = frame};
    own = frame;
    tell_all(link, &wait, &own, sizeof own, frames, TAG_STOP, requests);
    while (!are_done(&wait, received, (int)link->rank_count) && MPI_Wtime() < wait.deadline)
        sched_yield();
    for (uint32_t i = 0; i < link->rank_count; i++) {
        int is_done = 0;
        if (i != link->first_rank && MPI_Test(&received[i], &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
            !is_done)
            loss.lost |= (uint64_t)1 << i;
        else if (frames[i] < loss.frame)
            loss.frame = frames[i];
    }
    return loss;
}

Link link_open_mpi(void)
{
    int rank, count;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    return (Link){.first_rank = (uint32_t)rank,
                  .here_count = 1,
                  .rank_count = (uint32_t)count,
                  .exchange = exchange,
                  .share = share,
                  .agree_on_loss = agree_on_loss};
}
