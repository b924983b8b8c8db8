/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_ATOMIC_H
#define QUERN_SCHED_JOBS_ATOMIC_H

/* Memory orders for "I write mine, then read yours" handshakes between two threads, of which at least one
 * must see the other's write. Two spellings of the same thing:
 *
 *   with fences:     write (relaxed or stronger), seq_cst fence, read (relaxed or stronger)
 *   without fences:  write seq_cst, read seq_cst
 *
 * The first is the product. The second is for ThreadSanitizer, which does not model fences. Code names the
 * role of an access and gets the order of the spelling in use. */

#include <stdatomic.h>

#if defined(__SANITIZE_THREAD__)
#define QUERN__FENCE_FREE 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QUERN__FENCE_FREE 1
#endif
#endif
#ifndef QUERN__FENCE_FREE
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

/* Stands between the write and the read of a handshake. Pairs with the same fence, or
 * quern__fence_all_threads, on the other side. */
static inline void quern__handshake_fence(void)
{
#if !QUERN__FENCE_FREE
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Apart by this much, two fields do not disturb each other: processors fetch lines in pairs. */
#define QUERN__APART_BYTES 128

/* In a spinning loop: gives way to the other hardware thread of the core. */
static inline void quern__relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
