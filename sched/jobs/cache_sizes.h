/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_CACHE_SIZES_H
#define QUERN_SCHED_JOBS_CACHE_SIZES_H

#include <quern/jobs.h>

/* Returns the cache sizes that `folder` describes, laid out as Linux lays out
 * /sys/devices/system/cpu/cpu0/cache; each size that the folder does not tell comes from sysconf, or is
 * assumed. NULL means that there is no such folder. */
quern_cache_sizes quern__read_cache_sizes(const char *folder);

#endif
