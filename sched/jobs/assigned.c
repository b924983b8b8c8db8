/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Jobs that are assigned to one worker.
 *
 * Each worker has a queue from which it alone takes jobs: between two jobs before all others, and in its
 * waits. A thread that pushes to the queue wakes that worker, without the search protocol of search.c,
 * which wakes any worker:
 *
 *     pusher                                  worker
 *     push                                    takes the permit, if there is one
 *     clear its bit in idle; give a permit    reads the queue
 *                                             sleeps until there is a permit
 *
 * A thread always sleeps on its permit, and reads its queue after each permit and before each sleep. So
 * either it takes this permit and then sees the job, or the permit is still there when it tries to sleep.
 * A worker on a host thread has no thread while it is idle. It becomes idle by setting its bit, then reads
 * the queue once more; the two read-modify-write operations on the bit have an order. If clearing is
 * second, the pusher finds the bit and requests a host thread. If clearing is first, setting the bit
 * acquires it, and the last read sees the job. A left-over permit costs one needless round.
 *
 * A woken worker searches (search.c) for jobs including its assigned ones. So if its wake-up was meant for
 * another job, too, it still wakes a worker for that job before it begins.
 *
 * The queue is open while a thread takes jobs from it. Its lock decides: a job pushed before closing makes
 * closing fail, and a job pushed after closing goes to any worker.
 *
 * A pool that ends keeps its threads until none of them has a job, because a job may be assigned to any of
 * them; see rest in jobs.c. */

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
        return quern__fail(
            QUERN_ERROR_INVALID_ARGUMENT,
            "%s: on_worker %u is worker %u, and pool '%s' has workers 0 to %u: name one of them", function,
            (unsigned)on_worker, (unsigned)index, jobs->name, (unsigned)worker_count - 1);
    if (index != 0 && index < thread_count) return QUERN_OK;
    if (quern__jobs_is_slot_registered(jobs, index == 0 ? 0 : index + 1 - thread_count)) return QUERN_OK;
    return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                       "%s: on_worker %u is worker %u of pool '%s', an external slot without a registered "
                       "thread; register one (quern_jobs_register_thread), or set caller_only for any",
                       function, (unsigned)on_worker, (unsigned)index, jobs->name);
}
