/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_DEQUE_H
#define QUERN_SCHED_DEQUE_H

/* A bounded work-stealing deque (Chase and Lev 2005, in the C11 orders of Lê and others 2013): its owner
 * pushes and pops at the bottom, last in first out; thieves take from the top, first in first out. It holds
 * pointers and knows nothing of what they point to. */

#include "sched/atomic.h"

#include <stdbool.h>
#include <stdint.h>

#define QUERN__DEQUE_CAPACITY 1024 /* items; a power of two */

/* Items stand at top <= index < bottom, each in slot index % capacity; bottom - top <= capacity.
 * Only pop makes bottom < top, by one, for as long as it takes to find the deque empty. Indices are signed
 * and 64 bits wide: they never wrap. */
typedef struct quern__deque {
    _Alignas(
        QUERN__APART_BYTES) _Atomic int64_t top; /* only grows; moved by whoever takes the oldest item */
    _Alignas(QUERN__APART_BYTES) _Atomic int64_t bottom; /* written by the owner alone */
    int64_t known_top;                                   /* the owner's latest look at top; <= top */
    _Alignas(QUERN__APART_BYTES) _Atomic(void *) items[QUERN__DEQUE_CAPACITY];
} quern__deque;

void quern__deque_init(quern__deque *deque);

/* Owner. False when full. What the owner wrote before is visible to whoever takes the item. */
bool quern__deque_push(quern__deque *deque, void *item);

/* Owner. The newest item, NULL when empty. */
void *quern__deque_pop(quern__deque *deque);

/* Any thread. The oldest item; NULL when empty or when somebody else was quicker. */
void *quern__deque_steal(quern__deque *deque);

/* Any thread: whether an item was there a moment ago. As the read of a handshake (sched/atomic.h), it does
 * not miss an item pushed before the other side's fence, unless somebody took it. */
bool quern__deque_looks_empty(const quern__deque *deque);

#endif
