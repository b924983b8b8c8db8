/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/deque.h"

/* Why each job is removed exactly once.
 *
 * Two threads can compete for one job: two thieves, or the owner and a thief if one job is left. The
 * oldest job is claimed by a compare-and-swap that increments top from the job's index. top only grows, so
 * one thread wins. The owner may pop a job without the swap if that job cannot be the oldest one. To find
 * out, pop first lowers bottom, then reads top; steal first reads top, then reads bottom. All four
 * accesses are seq_cst. So they have one order, and at least one thread sees the other's write:
 *
 *     owner (pop)             thief (steal)
 *     bottom = b              t = top
 *     t = top                 if (t < bottom) swap top: t -> t + 1
 *
 * Either the thief sees the lowered bottom and leaves job b to the owner, or the owner reads a top at
 * least as new as the thief's. In the second case, t < b means that the thief wants an older job, and t ==
 * b makes the owner use the same swap as the thief.
 *
 * take_at removes a job from the middle in the same way: it lowers bottom to the job's index b, then reads
 * top. If t < b, all jobs from b on belong to the owner until it raises bottom again, and no thief has read
 * their slots to take them: it would have read a top of at least b before, and the owner would see that top.
 * If t == b, the swap decides. If t > b, a thief was faster.
 *
 * It does no harm that push stores bottom with release order only: a seq_cst load that follows pop's store
 * in the one order reads that store or a later one, and the owner makes all stores of bottom.
 *
 * The usual implementation has a seq_cst fence between the two steps in both threads. It is equally
 * correct, but its pop is 1.5 times as slow on x86 (a locked instruction and a store instead of one
 * exchange), and ThreadSanitizer cannot check it. On AArch64 the implementation here is one store-release
 * and one load-acquire. */

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

/* Reads top and copies the oldest job; returns false if the deque is empty. Acquire (part of seq_cst):
 * bottom and the slot are at least as new as this value of top; the load of bottom pairs with the stores in
 * push and pop. */
static bool read_oldest(quern__deque *deque, int64_t *out_top, quern__job *out_job)
{
    *out_top = atomic_load_explicit(&deque->top, memory_order_seq_cst);
    int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_seq_cst);
    if (*out_top >= bottom) return false;
    /* Prefetches the next job, which arrives while this one runs; not near the bottom, where the owner is
     * about to write. */
    if (bottom - *out_top > FAR_FROM_OWNER) QUERN__PREFETCH(quern__deque_slot_of(deque, *out_top + 1));
    /* Read before the swap: afterwards the owner may reuse the slot (see quern__deque_is_full). */
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

/* The scope and top are read before the swap; they are valid if the swap succeeds. */
bool quern__deque_steal_for(quern__deque *deque, const void *scope, int64_t from_index, const void *awaited,
                            quern__job *out_job)
{
    int64_t top;
    if (!read_oldest(deque, &top, out_job)) return false;
    if (!quern__scope_matches(out_job->scope, scope) && top < from_index) return false;
    return quern__scope_allows(out_job->scope, awaited) && quern__deque_claim_top(deque, top);
}

/* The seq_cst store and load are those of pop: each pairs with the two loads in read_oldest. Release at the end:
 * pairs with the load of bottom there, and publishes the placeholder and, again, the slots above it. It is
 * also the write of a handshake with workers that fall asleep, which may have found the deque empty. */
bool quern__deque_take_at(quern__deque *deque, int64_t index, const quern__job *placeholder,
                          quern__job *out_job)
{
    const int64_t bottom = quern__deque_bottom(deque);
    atomic_store_explicit(&deque->bottom, index, memory_order_seq_cst);
    const int64_t top = atomic_load_explicit(&deque->top, memory_order_seq_cst);
    quern__deque_slot *slot = quern__deque_slot_of(deque, index);
    bool is_taken = top < index;
    if (is_taken || top == index) quern__deque_read_slot(slot, out_job);
    if (is_taken)
        quern__deque_write_slot(slot, placeholder, 0);
    else if (top == index)
        is_taken = quern__deque_claim_top(deque, top);
    atomic_store_explicit(&deque->bottom, bottom, QUERN__HANDSHAKE_RELEASE);
    return is_taken;
}
