/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "ping.h"

#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

enum { LARGEST_BYTES = 1 << 22, REPEATS = 5 };

/* Returns the seconds of a message in one direction: the least of several series. */
static double one_way_seconds(char *bytes, int size_bytes, int rank)
{
    const int count = size_bytes < 65536 ? 1000 : 50;
    double least = 1e9;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int i = 0; i < count && rank < 2; i++) {
            if (rank == 0) MPI_Send(bytes, size_bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(bytes, size_bytes, MPI_BYTE, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank == 1) MPI_Send(bytes, size_bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
        const double seconds = (MPI_Wtime() - begin) / count / 2;
        if (seconds < least) least = seconds;
    }
    return least;
}

int ping_run(bool json)
{
    int rank, count;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    if (count < 2) {
        fprintf(stderr, "ranks: --ping needs two ranks\n");
        return 2;
    }
    char *bytes = calloc(LARGEST_BYTES, 1);
    if (bytes == NULL) {
        fprintf(stderr, "ranks: out of memory for messages of %d bytes\n", LARGEST_BYTES);
        return EXIT_FAILURE;
    }
    const double latency = one_way_seconds(bytes, 8, rank);
    const double largest = one_way_seconds(bytes, LARGEST_BYTES, rank);
    const double bandwidth = LARGEST_BYTES / (largest - latency);
    if (rank == 0 && json)
        printf("{\"latency_seconds\": %.9f, \"bytes_per_second\": %.0f}\n", latency, bandwidth);
    else if (rank == 0)
        printf("latency: %.2f us; bandwidth: %.0f MB/s\n", 1e6 * latency, bandwidth / 1e6);
    free(bytes);
    return EXIT_SUCCESS;
}
