/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_CACHE_SIZES_H
#define QUERN_SCHED_JOBS_CACHE_SIZES_H

#include <quern/jobs.h>

/* Returns the cache sizes that `folder` describes, in the layout of Linux's
 * /sys/devices/system/cpu/cpu0/cache. A size that is missing there is read by sysconf, or assumed. NULL: no
 * folder. */
quern_cache_sizes quern__read_cache_sizes(const char *folder);

#endif
