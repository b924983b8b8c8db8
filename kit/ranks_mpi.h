/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_RANKS_MPI_H
#define QUERN_KIT_RANKS_MPI_H

/** @file
 * The transport of MPI for <quern/kit/ranks.h>. A header, since every MPI has a binary interface of its own: include it in one
 * source file of the program, and link the MPI of the machine (find_package(MPI), mpicc).
 *
 * No call waits in MPI, which would wait for ever for a rank that has died. Start mpirun with --enable-recovery: otherwise Open MPI
 * ends all ranks when one dies, before they can say which. */

#include <quern/kit/ranks_main.h>

#include <mpi.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#if !defined(_WIN32)
#include <sched.h>
#endif

/* Internal: a pointer of another type, without a cast that C++ calls old. */
#ifdef __cplusplus
#define QUERN__RANKS_MPI_POINTER(type, pointer) static_cast<type *>(pointer)
#else
#define QUERN__RANKS_MPI_POINTER(type, pointer) ((type *)(pointer))
#endif

/** Internal: a message that MPI still sends. */
typedef struct quern__ranks_mpi_sent {
    struct quern__ranks_mpi_sent *next;
    MPI_Request request;
} quern__ranks_mpi_sent;

/** The connection of one process; all zero before quern_ranks_mpi_open. */
typedef struct quern_ranks_mpi {
    MPI_Comm comm;                /**< A duplicate of MPI_COMM_WORLD. */
    quern__ranks_mpi_sent *first; /**< Internal. */
} quern_ranks_mpi;

/* Internal: frees the messages that are sent. */
static inline void quern__ranks_mpi_sweep(quern_ranks_mpi *mpi)
{
    for (quern__ranks_mpi_sent **link = &mpi->first; *link != NULL;) {
        quern__ranks_mpi_sent *sent = *link;
        int is_done = 0;
        if (MPI_Test(&sent->request, &is_done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !is_done) {
            link = &sent->next;
            continue;
        }
        *link = sent->next;
        free(sent);
    }
}

/* Internal. */
static inline bool quern__ranks_mpi_send(void *user_data, uint32_t to, const void *bytes, size_t size_bytes)
{
    quern_ranks_mpi *mpi = QUERN__RANKS_MPI_POINTER(quern_ranks_mpi, user_data);
    quern__ranks_mpi_sent *sent = NULL;
    if (size_bytes <= INT_MAX)
        sent = QUERN__RANKS_MPI_POINTER(quern__ranks_mpi_sent, malloc(sizeof *sent + size_bytes));
    quern__ranks_mpi_sweep(mpi);
    if (sent == NULL) return false;
    memcpy(sent + 1, bytes, size_bytes);
    if (MPI_Isend(sent + 1, QUERN__RANDOM_CAST(int, size_bytes), MPI_BYTE, QUERN__RANDOM_CAST(int, to), 1,
                  mpi->comm, &sent->request) != MPI_SUCCESS) {
        free(sent);
        return true; /* the rank is gone, which its silence will tell */
    }
    sent->next = mpi->first;
    mpi->first = sent;
    return true;
}

/* Internal. */
static inline bool quern__ranks_mpi_receive(void *user_data, quern_byte_buffer *bytes, uint32_t *out_from)
{
    static const char zeros[4096] = {0};
    quern_ranks_mpi *mpi = QUERN__RANKS_MPI_POINTER(quern_ranks_mpi, user_data);
    MPI_Message message;
    MPI_Status status;
    int is_there = 0, size_bytes = 0;
    if (MPI_Improbe(MPI_ANY_SOURCE, 1, mpi->comm, &is_there, &message, &status) != MPI_SUCCESS || !is_there)
        return false;
    MPI_Get_count(&status, MPI_BYTE, &size_bytes);
    const quern_sink sink = quern_sink_bytes(bytes);
    bytes->size_bytes = 0;
    while (bytes->size_bytes < QUERN__RANDOM_CAST(size_t, size_bytes)) {
        const size_t rest = QUERN__RANDOM_CAST(size_t, size_bytes) - bytes->size_bytes;
        if (!sink.write(sink.user_data, zeros, rest < sizeof zeros ? rest : sizeof zeros)) return false;
    }
    *out_from = QUERN__RANDOM_CAST(uint32_t, status.MPI_SOURCE);
    return MPI_Mrecv(bytes->bytes, size_bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

/* Internal. */
static inline void quern__ranks_mpi_wait(void *user_data)
{
    (void)user_data;
#if !defined(_WIN32)
    sched_yield();
#endif
}

/* Internal. */
static inline double quern__ranks_mpi_now(void *user_data)
{
    (void)user_data;
    return MPI_Wtime();
}

/** Returns the transport of this process, after MPI_Init. mpi must outlive it. */
static inline quern_ranks_transport quern_ranks_mpi_open(quern_ranks_mpi *mpi)
{
    int rank = 0, rank_count = 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &mpi->comm);
    MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(mpi->comm, &rank);
    MPI_Comm_size(mpi->comm, &rank_count);
    const quern_ranks_transport transport = {QUERN__RANDOM_CAST(uint32_t, rank),
                                             QUERN__RANDOM_CAST(uint32_t, rank_count),
                                             quern__ranks_mpi_send,
                                             quern__ranks_mpi_receive,
                                             quern__ranks_mpi_wait,
                                             quern__ranks_mpi_now,
                                             mpi};
    return transport;
}

/** Waits until all messages are sent, and frees the connection. Call it before MPI_Finalize, and not after a rank was lost. */
static inline void quern_ranks_mpi_close(quern_ranks_mpi *mpi)
{
    while (mpi->first != NULL)
        quern__ranks_mpi_sweep(mpi);
    MPI_Comm_free(&mpi->comm);
}

/** Runs a program as quern_ranks_main does, over MPI: initialises MPI, and ends it. If a rank was lost, the process ends at once
 * with QUERN_RANKS_EXIT_LOST, since MPI would wait for it. */
static inline int quern_ranks_mpi_main(int argc, char **argv, const quern_ranks_program *program)
{
    static quern_ranks_mpi mpi;
    int level;
    if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level) != MPI_SUCCESS) return EXIT_FAILURE;
    const quern_ranks_transport transport = quern_ranks_mpi_open(&mpi);
    const int status = quern_ranks_main(argc, argv, program, &transport);
    if (status == QUERN_RANKS_EXIT_LOST) _Exit(status);
    quern_ranks_mpi_close(&mpi);
    MPI_Finalize();
    return status;
}

#endif
