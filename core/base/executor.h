/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_BASE_EXECUTOR_H
#define QUERN_CORE_BASE_EXECUTOR_H

/* Parallel loops for the core, which knows no threads. The owner of the threads passes an executor. */

#include "core/base/base_internal.h"

/* The body of a loop. Processes the items [begin, end). worker_index: below worker_count. */
typedef void quern__executor_function(void *argument, uint32_t begin, uint32_t end, uint32_t worker_index);

/* The stages of a sync point, in order. */
typedef enum quern__sync_stage {
    QUERN__STAGE_SYNC, /* the whole sync point */
    QUERN__STAGE_GATHER,
    QUERN__STAGE_MERGE,
    QUERN__STAGE_RESOLVE,
    QUERN__STAGE_APPLY
} quern__sync_stage;

typedef struct quern__executor {
    uint32_t thread_count; /* number of threads that usually share a loop; at least 1 */
    uint32_t worker_count; /* number of worker indices; at least thread_count */
    bool always_divides;   /* divide loops on one thread, too: an observer records the division */
    void *context;
    /* Calls the function for ranges of at most `grain` items that cover each item of [0, count) exactly once. Returns
     * when all calls have returned; their writes are then visible to the caller. Calls with the same worker index
     * never overlap. */
    void (*parallel_for)(void *context, uint32_t count, uint32_t grain, quern__executor_function *function,
                         void *argument);
    /* Called on the thread of the sync point when a stage begins; NULL: not called. */
    void (*begin_stage)(void *context, quern__sync_stage stage);
} quern__executor;

static inline uint32_t quern__executor_worker_count(const quern__executor *executor)
{
    return executor != NULL ? executor->worker_count : 1;
}

/* Returns whether loops should be divided for several threads. A NULL executor runs loops on the calling thread. */
static inline bool quern__executor_is_shared(const quern__executor *executor)
{
    return executor != NULL && (executor->thread_count > 1 || executor->always_divides);
}

static inline void quern__executor_begin_stage(const quern__executor *executor, quern__sync_stage stage)
{
    if (executor != NULL && executor->begin_stage != NULL) executor->begin_stage(executor->context, stage);
}

/* Runs a parallel loop, as quern__executor.parallel_for does. A loop of at most `grain` items, or with a NULL executor,
 * is one call on the calling thread. */
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
