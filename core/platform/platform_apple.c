/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* What macOS does in another way than POSIX. */
#include "core/platform/platform.h"

#if QUERN__ON_APPLE

#include <sys/sysctl.h>
#include <time.h>

void quern__thread_set_name(const char *name)
{
    pthread_setname_np(name);
}

/* macOS cannot set a condition's clock; it has a wait with a relative timeout instead. */
bool quern__condition_init(quern__condition *condition)
{
    return pthread_cond_init(&condition->handle, NULL) == 0;
}

void quern__condition_wait(quern__condition *condition, quern__mutex *mutex, uint64_t until_ns)
{
    if (until_ns == 0) {
        pthread_cond_wait(&condition->handle, &mutex->handle);
        return;
    }
    const uint64_t now_ns = quern__clock_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    const struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000u),
                                  .tv_nsec = (long)(left_ns % 1000000000u)};
    (void)pthread_cond_timedwait_relative_np(&condition->handle, &mutex->handle, &left);
}

size_t quern__host_cache_bytes(uint32_t level)
{
    uint64_t bytes = 0;
    size_t size = sizeof bytes;
    return sysctlbyname(level == 2 ? "hw.l2cachesize" : "hw.l3cachesize", &bytes, &size, NULL, 0) == 0
               ? (size_t)bytes
               : 0;
}

#endif
