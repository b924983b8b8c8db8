/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/queue.h"

#include "sched/jobs/jobs_internal.h"

/* Lists and nodes are accessed only with the mutex locked. Only the counts are also read without it. */

bool quern__queues_init(quern__queues *queues, const quern_allocator *allocator)
{
    for (uint32_t index = 0; index < QUERN__QUEUE_COUNT; index++) {
        queues->queues[index].first = NULL;
        queues->queues[index].last = NULL;
        queues->queues[index].sought_scope = NULL;
        queues->queues[index].sought = NULL;
        atomic_init(&queues->queues[index].count, 0);
    }
    queues->pushed_count = 0;
    queues->free_nodes = NULL;
    queues->blocks = NULL;
    queues->allocator = *allocator;
    return quern__mutex_init(&queues->mutex);
}

void quern__queues_release(quern__queues *queues)
{
    while (queues->blocks != NULL) {
        quern__node_block *block = queues->blocks;
        queues->blocks = block->next;
        quern__release(&queues->allocator, block, sizeof *block, _Alignof(quern__node_block));
    }
}

static bool add_block(quern__queues *queues)
{
    quern__node_block *block =
        quern__allocate(&queues->allocator, sizeof *block, _Alignof(quern__node_block));
    if (block == NULL) return false;
    block->next = queues->blocks;
    queues->blocks = block;
    for (uint32_t i = 0; i < QUERN__NODE_BLOCK_COUNT; i++) {
        block->nodes[i].link_count = 0;
        for (uint32_t k = 0; k < QUERN__OWN_LINKS; k++)
            atomic_init(&block->nodes[i].links[k].counter, NULL);
        block->nodes[i].next = queues->free_nodes;
        queues->free_nodes = &block->nodes[i];
    }
    return true;
}

static void free_locked(quern__queues *queues, quern__node *node)
{
    node->next = queues->free_nodes;
    queues->free_nodes = node;
}

static void free_list_locked(quern__queues *queues, quern__node *list)
{
    while (list != NULL) {
        quern__node *next = list->next;
        free_locked(queues, list);
        list = next;
    }
}

quern__node *quern__queues_take_nodes(quern__queues *queues, uint32_t count)
{
    quern__node *list = NULL;
    quern__mutex_lock(&queues->mutex);
    for (; count != 0; count--) {
        if (queues->free_nodes == NULL && !add_block(queues)) break;
        quern__node *node = queues->free_nodes;
        queues->free_nodes = node->next;
        node->next = list;
        list = node;
    }
    if (count != 0) {
        free_list_locked(queues, list);
        list = NULL;
    }
    quern__mutex_unlock(&queues->mutex);
    return list;
}

quern__node *quern__queues_take_up_to(quern__queues *queues, uint32_t *count)
{
    quern__node *list = NULL;
    uint32_t taken_count = 0;
    quern__mutex_lock(&queues->mutex);
    if (queues->free_nodes == NULL) (void)add_block(queues);
    for (; taken_count < *count && queues->free_nodes != NULL; taken_count++) {
        quern__node *node = queues->free_nodes;
        queues->free_nodes = node->next;
        node->next = list;
        list = node;
    }
    quern__mutex_unlock(&queues->mutex);
    *count = taken_count;
    return list;
}

quern__node *quern__queues_take_node(quern__queues *queues)
{
    return quern__queues_take_nodes(queues, 1);
}

void quern__queues_return_nodes(quern__queues *queues, quern__node *list)
{
    quern__mutex_lock(&queues->mutex);
    free_list_locked(queues, list);
    quern__mutex_unlock(&queues->mutex);
}

void quern__queues_return_node(quern__queues *queues, quern__node *node)
{
    node->next = NULL;
    quern__queues_return_nodes(queues, node);
}

/* Changes a queue's count. The store pairs with the reads of workers that are about to sleep
 * (quern__queue_is_empty). The load is relaxed: the mutex orders it. */
static void add_to_count(quern__queue *queue, uint32_t difference)
{
    uint32_t count = atomic_load_explicit(&queue->count, memory_order_relaxed);
    atomic_store_explicit(&queue->count, count + difference, QUERN__HANDSHAKE_RELEASE);
}

static void push_locked(quern__queues *queues, quern__queue *queue, quern__node *node)
{
    node->next = NULL;
    node->before = queue->last;
    node->number = queues->pushed_count++;
    *(queue->last == NULL ? &queue->first : &queue->last->next) = node;
    queue->last = node;
    if (queue->sought == NULL) queue->sought = node;
    add_to_count(queue, 1);
}

void quern__queues_push(quern__queues *queues, quern__node *node)
{
    quern__mutex_lock(&queues->mutex);
    push_locked(queues, &queues->queues[node->queue], node);
    quern__mutex_unlock(&queues->mutex);
}

bool quern__queues_push_from_outside(quern_jobs *jobs, quern__node *node)
{
    quern__queues *queues = &jobs->queues;
    quern__mutex_lock(&queues->mutex);
    push_locked(queues, &queues->queues[node->queue], node);
    const bool is_visit = quern__jobs_begin_visit(jobs);
    quern__mutex_unlock(&queues->mutex);
    return is_visit;
}

bool quern__queues_push_job(quern_jobs *jobs, const quern__job *job, quern__queue_index index,
                            bool *out_is_visit)
{
    quern__queues *queues = &jobs->queues;
    quern__mutex_lock(&queues->mutex);
    const bool has_node = queues->free_nodes != NULL || add_block(queues);
    if (has_node) {
        quern__node *node = queues->free_nodes;
        queues->free_nodes = node->next;
        quern__job_copy(&node->job, job);
        node->queue = index;
        node->jobs = jobs;
        quern__job_count(job);
        push_locked(queues, &queues->queues[index], node);
        *out_is_visit = quern__jobs_begin_visit(jobs);
    }
    quern__mutex_unlock(&queues->mutex);
    return has_node;
}

bool quern__queues_push_to(quern__queues *queues, quern__queue *queue, quern__node *node)
{
    quern__mutex_lock(&queues->mutex);
    bool is_open = queue->is_open;
    if (is_open) push_locked(queues, queue, node);
    quern__mutex_unlock(&queues->mutex);
    return is_open;
}

static void unlink_locked(quern__queue *queue, quern__node *node)
{
    *(node->before == NULL ? &queue->first : &node->before->next) = node->next;
    *(node->next == NULL ? &queue->last : &node->next->before) = node->before;
    if (queue->sought == node) queue->sought = node->next;
    add_to_count(queue, (uint32_t)-1);
}

static void take_locked(quern__queues *queues, quern__queue *queue, quern__node *node, quern__job *out_job)
{
    unlink_locked(queue, node);
    quern__job_copy(out_job, &node->job);
    if (node->link_count != QUERN__CALLER_OWNED_NODE) free_locked(queues, node);
}

/* Returns the first node with a job of this scope, or NULL. */
static quern__node *find_of_scope(quern__queue *queue, const void *scope)
{
    if (!quern__scope_matches(queue->sought_scope, scope)) queue->sought = queue->first;
    queue->sought_scope = scope;
    while (queue->sought != NULL && !quern__scope_matches(queue->sought->job.scope, scope))
        queue->sought = queue->sought->next;
    return queue->sought;
}

bool quern__queues_take_from(quern__queues *queues, quern__queue *queue, const void *scope,
                             quern__job *out_job)
{
    if (quern__queue_is_empty(queue)) return false;
    quern__mutex_lock(&queues->mutex);
    quern__node *node = scope != NULL ? find_of_scope(queue, scope) : queue->first;
    if (node != NULL) take_locked(queues, queue, node, out_job);
    quern__mutex_unlock(&queues->mutex);
    return node != NULL;
}

bool quern__queues_peek(quern__queues *queues, const quern__queue *queue, quern__job *out_job)
{
    if (quern__queue_is_empty(queue)) return false;
    quern__mutex_lock(&queues->mutex);
    const quern__node *node = queue->first;
    if (node != NULL) quern__job_copy(out_job, &node->job);
    quern__mutex_unlock(&queues->mutex);
    return node != NULL;
}

bool quern__queues_take(quern__queues *queues, quern__queue_index index, const void *scope,
                        quern__job *out_job)
{
    return quern__queues_take_from(queues, &queues->queues[index], scope, out_job);
}

bool quern__queues_take_allowed(quern__queues *queues, quern__queue_index index, const void *awaited,
                                quern__job *out_job)
{
    quern__queue *queue = &queues->queues[index];
    if (quern__queue_is_empty(queue)) return false;
    quern__mutex_lock(&queues->mutex);
    quern__node *node = queue->first;
    while (node != NULL && !quern__scope_allows(node->job.scope, awaited))
        node = node->next;
    if (node != NULL) take_locked(queues, queue, node, out_job);
    quern__mutex_unlock(&queues->mutex);
    return node != NULL;
}

bool quern__queues_take_newest(quern__queues *queues, const void *awaited, quern__job *out_job)
{
    quern__node *newest = NULL;
    if (quern__queues_look_empty(queues)) return false;
    quern__mutex_lock(&queues->mutex);
    for (uint32_t index = QUERN__QUEUE_HIGH; index <= QUERN__QUEUE_LOW; index++) {
        quern__node *node = queues->queues[index].last;
        while (node != NULL && !quern__scope_allows(node->job.scope, awaited))
            node = node->before;
        if (node != NULL && (newest == NULL || node->number > newest->number)) newest = node;
    }
    if (newest != NULL) take_locked(queues, &queues->queues[newest->queue], newest, out_job);
    quern__mutex_unlock(&queues->mutex);
    return newest != NULL;
}

void quern__queues_open(quern__queues *queues, quern__queue *queue)
{
    quern__mutex_lock(&queues->mutex);
    queue->is_open = true;
    quern__mutex_unlock(&queues->mutex);
}

bool quern__queues_close(quern__queues *queues, quern__queue *queue)
{
    quern__mutex_lock(&queues->mutex);
    bool is_empty = queue->first == NULL;
    if (is_empty) queue->is_open = false;
    quern__mutex_unlock(&queues->mutex);
    return is_empty;
}

bool quern__queues_disown(quern__queues *queues, quern__queue *queue, const void **out_scope)
{
    quern__mutex_lock(&queues->mutex);
    quern__node *node = queue->first;
    queue->is_open = false;
    if (node != NULL) {
        unlink_locked(queue, node);
        *out_scope = node->job.scope;
        node->queue = QUERN__QUEUE_NORMAL;
        push_locked(queues, &queues->queues[QUERN__QUEUE_NORMAL], node);
    }
    quern__mutex_unlock(&queues->mutex);
    return node != NULL;
}
