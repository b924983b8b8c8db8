/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_QUEUE_H
#define QUERN_SCHED_JOBS_QUEUE_H

/* Unbounded first-in-first-out queues that all workers of a pool share. They hold the jobs that are in no
 * deque: those with a priority, those that only external threads or one worker may run, and those submitted
 * by outside threads. Nodes are recycled in a store, which allocates only if more jobs wait than ever
 * before. One mutex protects all queues; reading whether a queue is empty does not lock it. */

#include "core/base/base_internal.h"
#include "core/platform/platform.h"
#include "sched/jobs/deque.h"

#include <quern/jobs.h>

typedef enum quern__queue_index {
    QUERN__QUEUE_HIGH,
    QUERN__QUEUE_NORMAL,
    QUERN__QUEUE_LOW,
    QUERN__QUEUE_CALLER, /* caller-only jobs, which only external threads may run */
    QUERN__QUEUE_COUNT,
    QUERN__QUEUE_WORKERS = QUERN__QUEUE_COUNT /* from here on: the assigned jobs of worker 0, 1, ... */
} quern__queue_index;

/* One counter that a node waits for: an element of the counter's list. */
typedef struct quern__link {
    struct quern__link *next;
    _Atomic(quern_counter *) counter;   /* counter with the link in its list; NULL if none */
    _Atomic(struct quern__node *) node; /* node that waits; of a sleeper, NULL once the link has fired */
} quern__link;

enum { QUERN__OWN_LINKS = 3 }; /* number of links inside a node; submit.c adds more */

/* Value of link_count for a node that the caller of push owns. The queue does not return it to the store,
 * and its owner finds out by itself when the node was removed. */
#define QUERN__CALLER_OWNED_NODE UINT16_MAX

/* A job in a queue, a job that waits for counters, or a thread that sleeps until a counter reaches zero. */
typedef struct quern__node {
    /* Of a sleeper, run is NULL, and target is its worker, or NULL for an outside thread. */
    _Alignas(QUERN__CACHE_LINE_BYTES) quern__job job;
    quern_jobs *jobs;               /* pool of the job, or pool at which an outside thread sleeps */
    quern__queue_index queue;       /* queue for the job */
    _Atomic uint16_t waiting_count; /* of a job: number of counters that it still waits for */
    /* number of counters that it has waited for, or QUERN__CALLER_OWNED_NODE */
    uint16_t link_count;
    struct quern__node *next;            /* next in the queue or in the list of free nodes */
    struct quern__node *before;          /* previous in the queue */
    uint64_t number;                     /* number of earlier pushes into any queue of the pool */
    quern__link links[QUERN__OWN_LINKS]; /* used while the job waits for counters */
} quern__node;

/* Number of nodes per allocation. */
#ifndef QUERN__NODE_BLOCK_COUNT
#define QUERN__NODE_BLOCK_COUNT 63
#endif

typedef struct quern__node_block {
    struct quern__node_block *next;
    quern__node nodes[QUERN__NODE_BLOCK_COUNT];
} quern__node_block;

typedef struct quern__queue {
    quern__node *first;
    quern__node *last;
    /* Where a search for jobs of the last scope goes on: no node before it has a job of this scope. NULL: none has. So a
     * thread that waits for many jobs does not pass those of others again for each of its own. */
    const void *sought_scope;
    quern__node *sought;
    bool is_open; /* of a worker's queue: whether jobs may be pushed */
    /* Number of nodes. Written with the mutex locked; read without it, as the read of a handshake. */
    _Alignas(QUERN__CACHE_LINE_BYTES) _Atomic uint32_t count;
} quern__queue;

typedef struct quern__queues {
    quern__queue queues[QUERN__QUEUE_COUNT];
    quern__mutex mutex;
    uint64_t pushed_count;
    quern__node *free_nodes;
    quern__node_block *blocks;
    quern_allocator allocator;
} quern__queues;

/* Initializes empty queues. Returns false if the system refuses the mutex. */
bool quern__queues_init(quern__queues *queues, const quern_allocator *allocator);

/* Frees the memory. The caller destroys the mutex when no thread can hold it. */
void quern__queues_release(quern__queues *queues);

/* Take a node from the store (NULL if there is no memory), and put one back. */
quern__node *quern__queues_take_node(quern__queues *queues);
void quern__queues_return_node(quern__queues *queues, quern__node *node);

/* Take several nodes at once, in a list linked by next, and put them back. Taking yields all nodes or NULL. */
quern__node *quern__queues_take_nodes(quern__queues *queues, uint32_t count);
void quern__queues_return_nodes(quern__queues *queues, quern__node *list);

/* Removes up to *count nodes, in a list linked by next, and sets *count to their number. Allocates at most
 * one block, and only if the store is empty. Returns NULL if there is no memory. */
quern__node *quern__queues_take_up_to(quern__queues *queues, uint32_t *count);

/* Increments a submitted job's counter. Relaxed: a thread that sees the counter above zero learns nothing else from it.
 * Cast: the scope of a submitted job is its counter. */
static inline void quern__job_count(const quern__job *job)
{
    quern_counter *counter = (quern_counter *)(uintptr_t)job->scope;
    if (counter != NULL) atomic_fetch_add_explicit(&counter->pending, 1, memory_order_relaxed);
}

/* Appends a node to the shared queue that node->queue names. */
void quern__queues_push(quern__queues *queues, quern__node *node);

/* Appends a node as an outside thread, and begins a visit of the workers, which the caller ends after it has woken one.
 * Returns whether the visit began. It is tried before the queues are unlocked. Therefore a thread that replaces the
 * workers either refuses the visit and then finds the node (open_to_visitors in jobs.c), or lets it begin. And a thread
 * that ends the pool, which the job itself may allow, waits for the visit. */
bool quern__queues_push_from_outside(quern_jobs *jobs, quern__node *node);

/* Takes a node from the store, and appends it with a copy of a submitted job to a shared queue, like
 * quern__queues_push_from_outside. The job is counted before it can run. Returns false, with nothing counted and no
 * visit, if there is no memory. */
bool quern__queues_push_job(quern_jobs *jobs, const quern__job *job, quern__queue_index index,
                            bool *out_is_visit);

/* Append to and remove from a worker's queue. The push returns false, with nothing done, if the queue is
 * closed. */
bool quern__queues_push_to(quern__queues *queues, quern__queue *queue, quern__node *node);
bool quern__queues_take_from(quern__queues *queues, quern__queue *queue, const void *scope,
                             quern__job *out_job);

/* Copies the oldest job of a queue and leaves it there. */
bool quern__queues_peek(quern__queues *queues, const quern__queue *queue, quern__job *out_job);

/* Open and close a worker's queue. A queue is open while a thread runs its jobs. Closing returns false,
 * with nothing done, if the queue has jobs. */
void quern__queues_open(quern__queues *queues, quern__queue *queue);
bool quern__queues_close(quern__queues *queues, quern__queue *queue);

/* Closes a worker's queue in any case and moves its first job to the normal queue, for any worker. Sets
 * out_scope to the job's scope. Returns false if there is no job. */
bool quern__queues_disown(quern__queues *queues, quern__queue *queue, const void **out_scope);

/* Removes the first job of a shared queue; if scope is not NULL, the first one of this scope. */
bool quern__queues_take(quern__queues *queues, quern__queue_index index, const void *scope,
                        quern__job *out_job);

/* Removes the first job of a shared queue that a worker waiting for `awaited` may run. */
bool quern__queues_take_allowed(quern__queues *queues, quern__queue_index index, const void *awaited,
                                quern__job *out_job);

/* Removes the newest job that a worker waiting for `awaited` may run, from all shared queues except the
 * caller-only queue. Returns false if there is none. */
bool quern__queues_take_newest(quern__queues *queues, const void *awaited, quern__job *out_job);

/* Returns the shared queue for a priority. */
static inline quern__queue_index quern__queue_of_priority(quern_priority priority)
{
    static const quern__queue_index queues[] = {
        [QUERN_PRIORITY_NORMAL] = QUERN__QUEUE_NORMAL,
        [QUERN_PRIORITY_HIGH] = QUERN__QUEUE_HIGH,
        [QUERN_PRIORITY_LOW] = QUERN__QUEUE_LOW,
    };
    return queues[priority];
}

/* Returns whether a queue is empty. The load is the reading side of a handshake (deque.h). It pairs with
 * add_to_count in queue.c, the writing side. */
static inline bool quern__queue_is_empty(const quern__queue *queue)
{
    return atomic_load_explicit(&queue->count, QUERN__HANDSHAKE_RELAXED) == 0;
}

static inline bool quern__queue_looks_empty(const quern__queues *queues, quern__queue_index index)
{
    return quern__queue_is_empty(&queues->queues[index]);
}

/* Returns whether all shared queues are empty; ignores the caller-only queue. */
static inline bool quern__queues_look_empty(const quern__queues *queues)
{
    for (uint32_t index = QUERN__QUEUE_HIGH; index <= QUERN__QUEUE_LOW; index++)
        if (!quern__queue_looks_empty(queues, (quern__queue_index)index)) return false;
    return true;
}

#endif
