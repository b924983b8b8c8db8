/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Jobs for a given worker.
 *
 * Each worker has a queue that it alone takes from: between two jobs, before anything else, and in its
 * waits. Whoever pushes there calls that worker, and needs none of what search.c does to wake just anybody:
 *
 *     pusher                                  worker
 *     push                                    takes the permit, if there is one
 *     clear its bit in idle; give a permit    look at the queue
 *                                             sleep until there is a permit
 *
 * A thread that sleeps does so on its permit, wherever it is, and looks at its queue after each permit and
 * before it sleeps again: either it takes this permit, and then it sees the job, or the permit is still
 * there when it wants to sleep. A lent worker has no thread that could sleep. It goes idle by setting its
 * bit, then looks once more; the two swaps of the bit have an order. If clearing comes second it finds the
 * bit, and the host is asked for a thread; if it comes first, then setting the bit acquires it, and the
 * last look sees the job. A permit left over costs one round without a result.
 *
 * A worker that was woken searches (search.c) for what is assigned to it as well. So when the wake-up was
 * meant for another job, too, it still wakes somebody for that before it begins.
 *
 * The queue is open as long as there is somebody to take from it. The lock decides: a job is pushed before
 * it is closed, and then closing it fails; or after, and then any worker gets the job.
 *
 * A pool that ends keeps its threads until none of them has anything to do, for it may be assigned to any:
 * see rest in jobs.c. */

bool quern__node_assign(quern__node *node)
{
    quern_jobs *jobs = node->jobs;
    const uint32_t index = (uint32_t)node->queue - QUERN__QUEUE_WORKERS;
    if (index >= jobs->worker_count) return false;
    quern__worker *worker = &jobs->workers[index];
    if (!quern__queues_push_to(&jobs->queues, &worker->assigned, node)) return false;
    quern__worker_wake(worker);
    return true;
}

quern_result quern__jobs_check_assigned(const quern_jobs *jobs, uint32_t on_worker, const char *function)
{
    const uint32_t index = on_worker - 1;
    const uint32_t thread_count = quern_jobs_thread_count(jobs);
    const uint32_t worker_count = quern_jobs_worker_count(jobs);
    if (index >= worker_count)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: on_worker %u is worker %u, and pool '%s' has workers 0 to %u", function,
                           (unsigned)on_worker, (unsigned)index, jobs->name, (unsigned)worker_count - 1);
    if (index != 0 && index < thread_count) return QUERN_OK;
    if (quern__jobs_is_slot_registered(jobs, index == 0 ? 0 : index + 1 - thread_count)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "%s: on_worker %u is worker %u of pool '%s', which is whatever thread comes from "
                       "outside; register one (quern_jobs_register_thread), or set caller_only for any",
                       function, (unsigned)on_worker, (unsigned)index, jobs->name);
}
