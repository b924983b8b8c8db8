/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#if defined(_WIN32)
#include "kit/ranks_internal.h"

#include <io.h>
#include <windows.h>

/* What ranks need of Windows, where folders are not forced to disk. */

bool quern__ranks_force(FILE *file)
{
    return fflush(file) == 0 && _commit(_fileno(file)) == 0;
}

void quern__ranks_force_folder(const char *path)
{
    (void)path;
}

bool quern__ranks_replace(const char *from, const char *to)
{
    return MoveFileExA(from, to, MOVEFILE_REPLACE_EXISTING) != 0;
}

static uint64_t ns_of(const FILETIME *time)
{
    return ((uint64_t)time->dwHighDateTime << 32 | time->dwLowDateTime) * 100;
}

/* Not by clock(), which measures the time that has passed. */
uint64_t quern__ranks_processor_ns(void)
{
    FILETIME start, end, kernel, user;
    if (!GetProcessTimes(GetCurrentProcess(), &start, &end, &kernel, &user)) return 0;
    return ns_of(&kernel) + ns_of(&user);
}

#else

typedef int quern__no_windows; /* a file has a declaration */

#endif
