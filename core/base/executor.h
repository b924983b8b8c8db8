/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_EXECUTOR_H
#define QUERN_CORE_BASE_EXECUTOR_H

/* How this room gets its loops run on several threads without knowing any: whoever owns the threads lends
 * them as an executor. */

#include "core/base/base_internal.h"

/* Works on the items begin to end - 1, as worker 0 to worker_count - 1. */
typedef void quern__executor_function(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);

/* What a sync point does, one after another. */
typedef enum quern__sync_stage {
    QUERN__STAGE_SYNC, /* all of it */
    QUERN__STAGE_GATHER,
    QUERN__STAGE_MERGE,
    QUERN__STAGE_RESOLVE,
    QUERN__STAGE_APPLY
} quern__sync_stage;

typedef struct quern__executor {
    uint32_t thread_count; /* that usually share a loop; at least 1 */
    uint32_t worker_count; /* that may come; at least thread_count */
    bool shows_parts; /* somebody looks at how loops are shared: they are in parts on one thread, too */
    void *context;
    /* Covers every item from 0 to count - 1 exactly once, at most grain of them per call, and returns when
     * all calls have returned; what they wrote is then visible to the caller. Calls with the same worker
     * index never run at the same time. */
    void (*parallel_for)(void *context, uint32_t count, uint32_t grain, quern__executor_function *function,
                         void *argument);
    /* Hears, on the caller, of each stage of a sync point that begins. NULL: nobody asks. */
    void (*begin_stage)(void *context, quern__sync_stage stage);
} quern__executor;

static inline uint32_t quern__executor_worker_count(const quern__executor *executor)
{
    return executor != NULL ? executor->worker_count : 1;
}

/* Whether loops are made for several threads. */
static inline bool quern__executor_is_shared(const quern__executor *executor)
{
    return executor != NULL && (executor->thread_count > 1 || executor->shows_parts);
}

static inline void quern__executor_begin_stage(const quern__executor *executor, quern__sync_stage stage)
{
    if (executor != NULL && executor->begin_stage != NULL) executor->begin_stage(executor->context, stage);
}

/* executor NULL: on the caller. */
static inline void quern__executor_run(const quern__executor *executor, uint32_t count, uint32_t grain,
                                       quern__executor_function *function, void *argument)
{
    if (count == 0) return;
    if (executor == NULL || count <= grain)
        function(argument, 0, count, 0);
    else
        executor->parallel_for(executor->context, count, grain, function, argument);
}

#endif
