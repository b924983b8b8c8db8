/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/deque.h"

#include <stddef.h>

/* Why every item is taken exactly once.
 *
 * Two parties can want the same item: two thieves, or the owner and thieves when one item is left. Whoever
 * takes the oldest item does it by moving top from its index to the next with a compare-and-swap, and top
 * only grows, so of those one wins. The owner may take without it when it knows that the item at its index
 * cannot be the oldest: pop first lowers bottom, then reads top; steal first reads top, then reads bottom.
 * With a seq_cst fence between the two steps on both sides, at least one side sees the other's write:
 *
 *     owner (pop)             thief (steal)
 *     bottom = b              t = top
 *     fence                   fence
 *     t = top                 if (t < bottom) swap top: t -> t + 1
 *
 * Either the thief sees the lowered bottom and leaves item b alone, or the owner sees a top that is as new as
 * the one the thief started from: then t < b means the thief is after an older item, and t == b sends the
 * owner to the same swap as the thief. */

static _Atomic(void *) *slot_of(quern__deque *deque, int64_t index)
{
    return &deque->items[(uint64_t)index % QUERN__DEQUE_CAPACITY];
}

void quern__deque_init(quern__deque *deque)
{
    atomic_init(&deque->top, 0);
    atomic_init(&deque->bottom, 0);
    deque->known_top = 0;
    for (uint32_t index = 0; index < QUERN__DEQUE_CAPACITY; index++)
        atomic_init(&deque->items[index], NULL);
}

/* Acquire pairs with the thief's swap of top: it has read the slot before we write it again. */
static bool is_full(quern__deque *deque, int64_t bottom)
{
    if (bottom - deque->known_top < QUERN__DEQUE_CAPACITY) return false;
    deque->known_top = atomic_load_explicit(&deque->top, memory_order_acquire);
    return bottom - deque->known_top >= QUERN__DEQUE_CAPACITY;
}

bool quern__deque_push(quern__deque *deque, void *item)
{
    int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed);
    if (is_full(deque, bottom)) return false;
    atomic_store_explicit(slot_of(deque, bottom), item, memory_order_relaxed);
    /* Release: publishes the slot and the item's memory; pairs with the acquire of bottom in steal. */
    atomic_store_explicit(&deque->bottom, bottom + 1, QUERN__HANDSHAKE_RELEASE);
    return true;
}

/* Takes the oldest item unless somebody else does. seq_cst: in one order with the other takers' swaps and the
 * fences. It releases, too: see is_full. */
static bool swap_top(quern__deque *deque, int64_t top)
{
    return atomic_compare_exchange_strong_explicit(&deque->top, &top, top + 1, memory_order_seq_cst,
                                                   memory_order_relaxed);
}

void *quern__deque_pop(quern__deque *deque)
{
    int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed) - 1;
    /* Release, although nothing is published: a thief that reads this value for bottom takes an item that
     * an earlier push published, and a relaxed store of the same thread would end that release sequence. */
    atomic_store_explicit(&deque->bottom, bottom, QUERN__HANDSHAKE_RELEASE);
    quern__handshake_fence();
    int64_t top = atomic_load_explicit(&deque->top, QUERN__HANDSHAKE_RELAXED);
    void *item = NULL;
    if (top <= bottom) item = atomic_load_explicit(slot_of(deque, bottom), memory_order_relaxed);
    if (top < bottom) return item;
    if (top == bottom && !swap_top(deque, top)) item = NULL; /* the last one: thieves may be after it */
    /* The deque is empty. Relaxed: a thief that reads this bottom takes nothing, since top stands there, or
     * its swap fails. */
    atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_relaxed);
    return item;
}

void *quern__deque_steal(quern__deque *deque)
{
    /* Acquire: bottom and the slot are read as they were when top had this value, or newer. */
    int64_t top = atomic_load_explicit(&deque->top, QUERN__HANDSHAKE_ACQUIRE);
    quern__handshake_fence();
    /* Acquire pairs with the release stores of bottom in push and pop. */
    int64_t bottom = atomic_load_explicit(&deque->bottom, QUERN__HANDSHAKE_ACQUIRE);
    if (top >= bottom) return NULL;
    /* Read before the swap: after it the owner may use the slot again (see is_full). */
    void *item = atomic_load_explicit(slot_of(deque, top), memory_order_relaxed);
    return swap_top(deque, top) ? item : NULL;
}

bool quern__deque_looks_empty(const quern__deque *deque)
{
    int64_t top = atomic_load_explicit(&deque->top, QUERN__HANDSHAKE_RELAXED);
    return top >= atomic_load_explicit(&deque->bottom, QUERN__HANDSHAKE_RELAXED);
}
