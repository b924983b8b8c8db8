/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Jobs that start after several counters.
 *
 * A node that waits for counters has one link in the list of each counter and the number of links that have
 * not fired yet. The thread that fires the last link submits the job. An added link may fire at once, on
 * another thread. The number starts with all counters, so the node exists as long as its submitter has
 * links to add; the submitter does not access the node after it added the last one. A counter that is at
 * zero gets no link: the submitter subtracts all such counters at the end, in one step.
 *
 *     node:  | job | count | link | link | link |        node:  | job | count | link | link | more |
 *     up to three counters: no further nodes                                                   |
 *                                                        further nodes: | next | link | link | link |
 *
 * Each counter is subtracted once, when it first reaches zero. Afterwards it may be reused or freed. */

/* A node may still wait when its pool ends. Its job is dropped, and its links are removed from the lists of
 * their counters, so these counters must exist until then. A counter is not accessed after
 * its link has fired. */
void quern__jobs_drop_links(quern_jobs *jobs)
{
    quern__mutex_lock(&jobs->queues.mutex);
    quern__node_block *block = jobs->queues.blocks;
    quern__mutex_unlock(&jobs->queues.mutex);
    for (; block != NULL; block = block->next)
        for (uint32_t i = 0; i < QUERN__NODE_BLOCK_COUNT * QUERN__OWN_LINKS; i++) {
            quern__link *link = &block->nodes[i / QUERN__OWN_LINKS].links[i % QUERN__OWN_LINKS];
            /* Acquire: pairs with the release in announce_calls (job_counter.c). */
            quern_counter *counter = atomic_load_explicit(&link->counter, memory_order_acquire);
            if (counter != NULL) (void)quern__counter_remove_link(counter, link, &jobs->workers[0]);
        }
}

quern_result quern__check_after_list(quern_counter *const *after, uint32_t count,
                                     const quern_counter *counter, const char *function)
{
    if (count > QUERN_MAX_AFTER)
        return quern__fail(QUERN_ERROR_INVALID_ARGUMENT,
                           "%s: def->after_count is %u; the maximum is %d (QUERN_MAX_AFTER). Wait for more "
                           "counters by jobs in between",
                           function, (unsigned)count, QUERN_MAX_AFTER);
    if (count != 0 && after == NULL) return quern__fail_null(function, "def->after");
    for (uint32_t i = 0; i < count; i++) {
        if (after[i] == NULL)
            return quern__fail(QUERN_ERROR_NULL_ARGUMENT,
                               "%s: def->after[%u] is NULL; def->after_count is %u", function, (unsigned)i,
                               (unsigned)count);
        if (after[i] == counter)
            return quern__fail(
                QUERN_ERROR_INVALID_ARGUMENT,
                "%s: def->after[%u] is def->counter, so it would wait for its own end; use another "
                "counter",
                function, (unsigned)i);
    }
    return QUERN_OK;
}

static uint32_t own_count(uint32_t count)
{
    return count <= QUERN__OWN_LINKS ? count : QUERN__OWN_LINKS - 1;
}

/* Returns the last link of a node with further nodes; its `node` member is the first of these. A further
 * node has no job: its job.target is the next further node. */
static quern__link *more_of(quern__node *node)
{
    return &node->links[QUERN__OWN_LINKS - 1];
}

/* Relaxed: no other thread has the node before it has links, and afterwards no thread writes this member.
 * */
bool quern__node_reserve_links(quern__node *node, uint32_t count)
{
    uint32_t more_count = count - own_count(count);
    node->link_count = (uint16_t)count;
    if (more_count == 0) return true;
    uint32_t node_count = (more_count + QUERN__OWN_LINKS - 1) / QUERN__OWN_LINKS;
    quern__node *list = quern__queues_take_nodes(&node->jobs->queues, node_count);
    if (list == NULL) return false;
    atomic_store_explicit(&more_of(node)->node, list, memory_order_relaxed);
    for (; list != NULL; list = list->next)
        list->job.target = list->next;
    return true;
}

/* Relaxed: see quern__node_reserve_links. */
static void give_room(quern__node *node)
{
    if (node->link_count <= QUERN__OWN_LINKS) return;
    quern__node *list = atomic_load_explicit(&more_of(node)->node, memory_order_relaxed);
    for (quern__node *each = list; each != NULL; each = each->next)
        each->next = each->job.target;
    quern__queues_return_nodes(&node->jobs->queues, list);
}

/* Subtracts `count` counters and submits the job after the last one. Acquire and release: everything that
 * happened before one of the counters reached zero happens before the job; each subtraction pairs with the
 * others of the node. If the first load returns exactly `count`, all other counters are subtracted already,
 * and no atomic subtraction is needed. */
void quern__node_count_down(quern__node *node, uint32_t count, quern__worker *worker)
{
    uint16_t difference = (uint16_t)count;
    if (atomic_load_explicit(&node->waiting_count, memory_order_acquire) != difference &&
        atomic_fetch_sub_explicit(&node->waiting_count, difference, memory_order_acq_rel) != difference)
        return;
    give_room(node);
    quern__node_submit(node, worker);
}

/* Relaxed: the counter's lock publishes the link. */
static bool add_link(quern_counter *counter, quern__link *link, quern__node *node, quern__worker *worker)
{
    atomic_store_explicit(&link->node, node, memory_order_relaxed);
    return quern__counter_add_link(counter, link, worker);
}

/* Returns the next link to add and advances `holder` and `index` past it; there must be one. Relaxed: see
 * quern__node_reserve_links. */
static quern__link *next_link(quern__node *node, quern__node **holder, uint32_t *index)
{
    uint32_t end = *holder == node ? own_count(node->link_count) : QUERN__OWN_LINKS;
    if (*index == end) {
        *holder = *holder == node ? atomic_load_explicit(&more_of(node)->node, memory_order_relaxed)
                                  : (*holder)->job.target;
        *index = 0;
    }
    return &(*holder)->links[(*index)++];
}

/* Relaxed: adding the links publishes the node. */
void quern__node_add_links(quern__node *node, quern_counter *const *after, quern__worker *worker)
{
    uint32_t index = 0, done_count = 0, count = node->link_count;
    quern__node *holder = node;
    atomic_store_explicit(&node->waiting_count, (uint16_t)count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        done_count += !add_link(after[i], next_link(node, &holder, &index), node, worker);
    if (done_count != 0 || count == 0) quern__node_count_down(node, done_count, worker);
}
