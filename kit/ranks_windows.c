/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#if defined(_WIN32)
#include "kit/ranks_internal.h"

#include <io.h>
#include <time.h>
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

uint64_t quern__ranks_processor_ns(void)
{
    return (uint64_t)((double)clock() * (1e9 / CLOCKS_PER_SEC));
}

#else

typedef int quern__no_windows; /* a file has a declaration */

#endif
