/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/deque.h"

/* Why every job is taken exactly once.
 *
 * Two parties can want the same job: two thieves, or the owner and thieves when one job is left. Whoever
 * takes the oldest job does it by moving top from its index to the next with a compare-and-swap, and top
 * only grows, so of those one wins. The owner may take without it when it knows that the job at its index
 * cannot be the oldest: pop first lowers bottom, then reads top; steal first reads top, then reads bottom.
 * All four are seq_cst, so they have one order, and at least one side sees the other's write:
 *
 *     owner (pop)             thief (steal)
 *     bottom = b              t = top
 *     t = top                 if (t < bottom) swap top: t -> t + 1
 *
 * Either the thief sees the lowered bottom and leaves job b alone, or the owner sees a top that is as new
 * as the one the thief started from: then t < b means the thief is after an older job, and t == b sends the
 * owner to the same swap as the thief.
 *
 * That push writes bottom with release order only takes nothing from this: a seq_cst load that comes after
 * pop's store in the one order reads that store or a later one, and all stores of bottom are the owner's.
 * The usual spelling has a seq_cst fence between the two steps on both sides. It says the same, costs half
 * as much again in pop on x86 (a locked instruction and a store, where this is one exchange), and cannot be
 * checked by ThreadSanitizer. On AArch64 this is one store-release and one load-acquire. */

enum { FAR_FROM_OWNER = 8 };

void quern__deque_init(quern__deque *deque, bool has_no_thieves)
{
    atomic_init(&deque->top, 0);
    atomic_init(&deque->bottom, 0);
    deque->known_top = 0;
    deque->has_no_thieves = has_no_thieves;
    for (uint32_t index = 0; index < QUERN__DEQUE_CAPACITY; index++) {
        quern__deque_slot *slot = &deque->slots[index];
        atomic_init(&slot->run, NULL);
        atomic_init(&slot->scope, NULL);
        atomic_init(&slot->target, NULL);
        for (uint32_t word = 0; word < QUERN__JOB_DATA_WORDS; word++)
            atomic_init(&slot->data[word], 0);
    }
}

/* The job at top, and top. Acquire (in seq_cst): bottom and the slot are read as they were when top had
 * this value, or newer; and bottom pairs with the stores in push and pop. */
static bool read_oldest(quern__deque *deque, int64_t *out_top, quern__job *out_job)
{
    *out_top = atomic_load_explicit(&deque->top, memory_order_seq_cst);
    int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_seq_cst);
    if (*out_top >= bottom) return false;
    /* Where the owner is not about to write: it comes while the job runs. */
    if (bottom - *out_top > FAR_FROM_OWNER)
        __builtin_prefetch(quern__deque_slot_of(deque, *out_top + 1), 0);
    /* Before the swap: after it the owner may use the slot again (see is_full). */
    quern__deque_read_slot(quern__deque_slot_of(deque, *out_top), out_job);
    return true;
}

bool quern__deque_peek(quern__deque *deque, quern__job *out_job)
{
    int64_t top;
    return read_oldest(deque, &top, out_job);
}

bool quern__deque_steal(quern__deque *deque, quern__job *out_job)
{
    int64_t top;
    return read_oldest(deque, &top, out_job) && quern__deque_claim_top(deque, top);
}

/* What was read of the slot counts only when the swap succeeds: then it was this job's. */
bool quern__deque_steal_for(quern__deque *deque, const void *scope, int64_t from_index, const void *awaited,
                            quern__job *out_job)
{
    int64_t top;
    if (!read_oldest(deque, &top, out_job)) return false;
    if (!quern__scope_matches(out_job->scope, scope) && top < from_index) return false;
    return quern__scope_allows(out_job->scope, awaited) && quern__deque_claim_top(deque, top);
}
