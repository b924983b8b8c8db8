/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_QUEUE_H
#define QUERN_SCHED_JOBS_QUEUE_H

/* Queues that a whole pool shares, first in first out, each with no limit: for jobs that are not in a
 * deque, because of their priority, because they are for the caller alone, or because no worker submitted
 * them. Nodes come from a store that keeps them, so that memory is taken only when more jobs wait than ever
 * before. One lock for all; whoever only looks does not take it. */

#include "core/base/base_internal.h"
#include "sched/jobs/deque.h"

#include <quern/jobs.h>

#include <pthread.h>

typedef enum quern__queue_index {
    QUERN__QUEUE_HIGH,
    QUERN__QUEUE_NORMAL,
    QUERN__QUEUE_LOW,
    QUERN__QUEUE_CALLER, /* what guests alone may run */
    QUERN__QUEUE_COUNT,
    QUERN__QUEUE_WORKERS = QUERN__QUEUE_COUNT /* from here on: what worker 0, 1, ... alone may run */
} quern__queue_index;

/* One counter that a node waits for: an element of the counter's list. */
typedef struct quern__link {
    struct quern__link *next;
    _Atomic(quern_counter *) counter;   /* whose list has the link; NULL: none */
    _Atomic(struct quern__node *) node; /* whose it is; of a sleeper NULL when it has fired */
} quern__link;

enum { QUERN__OWN_LINKS = 3 }; /* a node has room for so many; see after.c for more */

/* In place of a count: the node belongs to who pushes it, not to the store, and he knows when it was taken
 * out. */
#define QUERN__CALLER_OWNED_NODE UINT16_MAX

/* A job in a queue or, waiting for counters, in their lists; or a sleeper in such lists. */
typedef struct quern__node {
    _Alignas(QUERN__CACHE_LINE_BYTES) quern__job job; /* of a sleeper run is NULL, and target its worker,
                                                         or NULL: a thread from outside */
    quern_jobs *jobs;                    /* the pool of the job, or that an outside sleeper waits at */
    quern__queue_index queue;            /* where the job goes */
    _Atomic uint16_t waiting_count;      /* of a job: counters that it still waits for */
    uint16_t link_count;                 /* those that it has waited for; or QUERN__CALLER_OWNED_NODE */
    struct quern__node *next;            /* in a queue, or free */
    struct quern__node *before;          /* in a queue */
    uint64_t number;                     /* in a queue: how many were pushed before, into any */
    quern__link links[QUERN__OWN_LINKS]; /* while the job waits for counters */
} quern__node;

/* Nodes stand in blocks of this many. */
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
    bool is_open; /* of a worker's */
    /* Written under the lock; read by those who only look, as the read of a handshake. */
    _Alignas(QUERN__CACHE_LINE_BYTES) _Atomic uint32_t count;
} quern__queue;

typedef struct quern__queues {
    quern__queue queues[QUERN__QUEUE_COUNT];
    pthread_mutex_t mutex;
    uint64_t pushed_count;
    quern__node *free_nodes;
    quern__node_block *blocks;
    quern_allocator allocator;
} quern__queues;

/* False when the system refuses. */
bool quern__queues_init(quern__queues *queues, const quern_allocator *allocator);

/* The memory; the mutex is the caller's to destroy, where nobody can hold it. */
void quern__queues_release(quern__queues *queues);

/* NULL when there is no memory. */
quern__node *quern__queues_take_node(quern__queues *queues);
void quern__queues_return_node(quern__queues *queues, quern__node *node);

/* The same for so many at a time, in a list by next: all of them or none. */
quern__node *quern__queues_take_nodes(quern__queues *queues, uint32_t count);
void quern__queues_return_nodes(quern__queues *queues, quern__node *list);

/* At least one, unless there is no memory, and for that no more memory than one needs; count says how many
 * it may be at most, and then how many it is. */
quern__node *quern__queues_take_up_to(quern__queues *queues, uint32_t *count);

/* At the end of the queue that the node names, which is one of the pool's. */
void quern__queues_push(quern__queues *queues, quern__node *node);

/* The same for a queue of a worker. False, with nothing done, when it is closed. */
bool quern__queues_push_to(quern__queues *queues, quern__queue *queue, quern__node *node);
bool quern__queues_take_from(quern__queues *queues, quern__queue *queue, const void *scope,
                             quern__job *out_job);

/* Copies the oldest job of a queue and leaves it there. */
bool quern__queues_peek(quern__queues *queues, const quern__queue *queue, quern__job *out_job);

/* A queue is closed as long as nobody would take its jobs. False when it cannot be closed: it has some. */
void quern__queues_open(quern__queues *queues, quern__queue *queue);
bool quern__queues_close(quern__queues *queues, quern__queue *queue);

/* Closes it in any case, and makes its first job one for any worker: out_scope is that of the job. False
 * when there is none. */
bool quern__queues_disown(quern__queues *queues, quern__queue *queue, const void **out_scope);

/* The first job of a queue; with a scope that is not NULL the first one of this scope. */
bool quern__queues_take(quern__queues *queues, quern__queue_index index, const void *scope,
                        quern__job *out_job);

/* The first job of a queue that may run where somebody waits for `awaited`. */
bool quern__queues_take_allowed(quern__queues *queues, quern__queue_index index, const void *awaited,
                                quern__job *out_job);

/* The newest job, in whichever queue but the caller's, that may run where somebody waits for `awaited`. */
bool quern__queues_take_newest(quern__queues *queues, const void *awaited, quern__job *out_job);

/* Where a job of this priority waits. */
static inline quern__queue_index quern__queue_of_priority(quern_priority priority)
{
    static const quern__queue_index queues[] = {
        [QUERN_PRIORITY_NORMAL] = QUERN__QUEUE_NORMAL,
        [QUERN_PRIORITY_HIGH] = QUERN__QUEUE_HIGH,
        [QUERN_PRIORITY_LOW] = QUERN__QUEUE_LOW,
    };
    return queues[priority];
}

/* Pairs with add_to_count in queue.c, as the read of a handshake. */
static inline bool quern__queue_is_empty(const quern__queue *queue)
{
    return atomic_load_explicit(&queue->count, QUERN__HANDSHAKE_RELAXED) == 0;
}

static inline bool quern__queue_looks_empty(const quern__queues *queues, quern__queue_index index)
{
    return quern__queue_is_empty(&queues->queues[index]);
}

/* All but the caller's. */
static inline bool quern__queues_look_empty(const quern__queues *queues)
{
    for (uint32_t index = QUERN__QUEUE_HIGH; index <= QUERN__QUEUE_LOW; index++)
        if (!quern__queue_looks_empty(queues, (quern__queue_index)index)) return false;
    return true;
}

#endif
