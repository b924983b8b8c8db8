/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#if !defined(_WIN32)
#define _POSIX_C_SOURCE 200809L
#include "kit/ranks_internal.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

/* What ranks need of POSIX systems. */

bool quern__ranks_force(FILE *file)
{
    return fflush(file) == 0 && fsync(fileno(file)) == 0;
}

void quern__ranks_force_folder(const char *path)
{
    const int folder = open(path, O_RDONLY);
    if (folder < 0) return;
    (void)fsync(folder);
    (void)close(folder);
}

bool quern__ranks_replace(const char *from, const char *to)
{
    return rename(from, to) == 0;
}

uint64_t quern__ranks_processor_ns(void)
{
    struct timespec time = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#else

typedef int quern__no_posix; /* a file has a declaration */

#endif
