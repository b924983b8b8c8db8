/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/models/pool.h"

/* quern_jobs_resize replaces the workers and starts threads while an outside thread submits a job. Checked: no thread
 * accesses a worker that was released, or a new one before it is complete; the job runs, or a thread that runs it was
 * woken. end.c has the end of the old threads. */

static quern__worker new_workers[MAX_WORKERS];
static _Atomic int run_count;
static quern__node node;
static pthread_t submitter;

bool quern__thread_start(quern__thread *thread, size_t stack_bytes, void *(*entry)(void *argument),
                         void *argument)
{
    (void)stack_bytes;
    return pthread_create(&thread->handle, NULL, entry, argument) == 0;
}

uint32_t quern_processor_count(void)
{
    return MAX_WORKERS;
}

uint32_t quern__count_processors_with_caller(const quern_processors *processors)
{
    (void)processors;
    return MAX_WORKERS;
}

/* Not atomic, unlike all other accesses: a race shows that another thread still uses the parker. */
void quern__parker_deinit(quern__parker *parker)
{
    *(int *)&parker->state = 0;
}

void quern__release(const quern_allocator *allocator, void *pointer, size_t size_bytes,
                    size_t alignment_bytes)
{
    (void)allocator, (void)pointer, (void)size_bytes, (void)alignment_bytes;
}

static void count_run(quern__job *job, quern__worker *worker)
{
    (void)job, (void)worker;
    atomic_fetch_add_explicit(&run_count, 1, memory_order_relaxed);
}

static void *submit_node(void *argument)
{
    quern__current_worker = NULL;
    quern__node_submit(&node, NULL);
    return argument;
}

/* The caller alone is inside. */
static void begin_resize(void)
{
    sleep_is_the_end = true;
    set_up(1);
    pool.worker_capacity = 1;
    node.job.run = count_run;
    node.queue = QUERN__QUEUE_NORMAL;
    node.jobs = &pool;
    node.link_count = QUERN__CALLER_OWNED_NODE;
    bool is_alone = quern__jobs_try_enter_exclusive(&pool);
    assert(is_alone);
    pthread_create(&submitter, NULL, submit_node, NULL);
}

/* Like replace_workers, without the allocation of the new workers. */
static void resize_to(uint32_t thread_count)
{
    for (uint32_t index = 0; index < thread_count; index++) {
        new_workers[index].jobs = &pool;
        new_workers[index].index = index;
    }
    do
        end_workers(&pool);
    while (!close_to_visitors(&pool));
    quern_result result = install_workers(&pool, new_workers, thread_count);
    assert(result == QUERN_OK);
    open_to_visitors(&pool);
    quern__jobs_leave_exclusive(&pool);
}

/* The caller may run the job, which stays in the queue if it comes later: no thread exists that could run it. */
void resize_without_threads(void)
{
    begin_resize();
    resize_to(1);
    pthread_join(submitter, NULL);
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) + quern__jobs_has_any_job(&pool) == 1);
}

/* The new thread ends when it falls asleep. */
void resize_to_more(void)
{
    begin_resize();
    resize_to(2);
    pthread_join(submitter, NULL);
    pthread_join(new_workers[1].thread.handle, NULL);
    assert(atomic_load_explicit(&run_count, memory_order_relaxed) == 1 ||
           quern__parker_has_permit(&new_workers[1].parker));
}
