/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_ATOMIC_H
#define QUERN_SCHED_JOBS_ATOMIC_H

/* Memory orders for handshakes in which each of two threads writes its own variable and then reads the
 * other's. At least one of the two must see the other's write. There are two equivalent implementations:
 *
 *   with fences:     write (relaxed or stronger), seq_cst fence, read (relaxed or stronger)
 *   without fences:  write seq_cst, read seq_cst
 *
 * The product uses fences. ThreadSanitizer does not model fences and therefore needs the second form. Code
 * names the role of an access by QUERN__HANDSHAKE_* and gets the order of the form in use. */

#include "core/platform/compiler.h"

#include <stdatomic.h>

#if QUERN__IS_THREAD_SANITIZED
#define QUERN__FENCE_FREE 1
#else
#define QUERN__FENCE_FREE 0
#endif

#if QUERN__FENCE_FREE
#define QUERN__HANDSHAKE_RELAXED memory_order_seq_cst
#define QUERN__HANDSHAKE_ACQUIRE memory_order_seq_cst
#define QUERN__HANDSHAKE_RELEASE memory_order_seq_cst
#else
#define QUERN__HANDSHAKE_RELAXED memory_order_relaxed
#define QUERN__HANDSHAKE_ACQUIRE memory_order_acquire
#define QUERN__HANDSHAKE_RELEASE memory_order_release
#endif

/* Fence between the write and the read of a handshake. Pairs with the same fence, or with
 * quern__fence_all_threads, in the other thread. */
static inline void quern__handshake_fence(void)
{
#if !QUERN__FENCE_FREE
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Distance that prevents false sharing of two members: processors prefetch cache lines in pairs. */
#define QUERN__APART_BYTES 128

#endif
