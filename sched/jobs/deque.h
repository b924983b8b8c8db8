/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_DEQUE_H
#define QUERN_SCHED_JOBS_DEQUE_H

/* Memory orders for handshakes in which each of two threads writes its own variable and then reads the
 * other's. At least one of the two must see the other's write. There are two equivalent implementations:
 *
 *   with fences:     write (relaxed or stronger), seq_cst fence, read (relaxed or stronger)
 *   without fences:  write seq_cst, read seq_cst
 *
 * The product uses fences. ThreadSanitizer does not model fences and therefore needs the second form. Code
 * names the role of an access by QUERN__HANDSHAKE_* and gets the order of the form in use. */

#include "core/base/base_internal.h"
#include "core/platform/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* A bounded work-stealing deque (Chase and Lev 2005, in C11 atomics as by Lê and others 2013). Its owner
 * pushes and pops at the bottom, last in first out; thieves steal from the top, first in first out. Jobs
 * are copied in and out, one cache line each. The deque allocates nothing, and a slot is free again once
 * its job was removed. Of a job, the deque reads only the scope. deque.c explains why each job is removed
 * exactly once. */

struct quern__worker;
typedef struct quern__job quern__job;

/* The build may override sizes, here and in the other files of the scheduler: models (tests/models) and
 * tests of full containers use small ones. */
#ifndef QUERN__JOB_DATA_WORDS
#define QUERN__JOB_DATA_WORDS (40 / (uint32_t)sizeof(uintptr_t)) /* at least QUERN_JOB_PAYLOAD_BYTES */
#endif

/* At most 64 bytes: one cache line. */
struct quern__job {
    /* Runs the job. `job` is a copy on the running thread's stack. */
    void (*run)(quern__job *job, struct quern__worker *worker);
    /* waitable object that the job belongs to, such as a counter or graph; may be NULL */
    const void *scope;
    void *target; /* context of run */
    /* Arguments of run. Aligned to 8 bytes for payloads, also if words have 4 bytes. */
    _Alignas(8) uintptr_t data[QUERN__JOB_DATA_WORDS];
};

/* Copies member by member, because the model checker needs it; compilers generate the same code as for an
 * assignment. */
static inline void quern__job_copy(quern__job *to, const quern__job *from)
{
    to->run = from->run;
    to->scope = from->scope;
    to->target = from->target;
    for (uint32_t i = 0; i < QUERN__JOB_DATA_WORDS; i++)
        to->data[i] = from->data[i];
}

/* Scopes may be *closed*. A worker that waits inside a job runs a job of a closed scope only if it waits
 * for that scope. Graphs have closed scopes: otherwise a node that waits could find that its worker had run
 * another node and changed the data that nodes keep per worker. A closed scope is marked by an odd
 * address. */
static inline const void *quern__scope_close(const void *scope)
{
    return (const char *)scope + 1;
}

static inline bool quern__scope_is_closed(const void *scope)
{
    return ((uintptr_t)scope & 1) != 0;
}

/* Returns whether two scopes are equal, closed or not: a wait for a counter is also a wait for a graph that
 * the counter counts. */
static inline bool quern__scope_matches(const void *scope, const void *other)
{
    return (((uintptr_t)scope ^ (uintptr_t)other) & ~(uintptr_t)1) == 0;
}

/* Value of `awaited` for a worker without a closed job on its stack: all scopes are allowed. */
#define QUERN__ANY_SCOPE ((const void *)UINTPTR_MAX)

/* Returns whether a worker that waits for `awaited` may run a job of this scope. */
static inline bool quern__scope_allows(const void *scope, const void *awaited)
{
    return !quern__scope_is_closed(scope) || quern__scope_matches(scope, awaited) ||
           awaited == QUERN__ANY_SCOPE;
}

#ifndef QUERN__DEQUE_CAPACITY
#define QUERN__DEQUE_CAPACITY 512 /* jobs; a power of two */
#endif

/* One job. Accessed relaxed: a thief may read a slot while the owner overwrites it; the thief's swap of top
 * then fails. */
typedef struct quern__deque_slot {
    _Alignas(QUERN__CACHE_LINE_BYTES) void (*_Atomic run)(quern__job *job, struct quern__worker *worker);
    _Atomic(const void *) scope;
    _Atomic(void *) target;
    _Atomic uintptr_t data[QUERN__JOB_DATA_WORDS];
} quern__deque_slot;

/* The jobs have the indices top <= index < bottom, each in slot index % capacity; bottom - top <= capacity.
 * Only pop and take_at make bottom less than top, until they have found that thieves were faster. Indices
 * are signed and 64 bits wide, and never wrap. */
typedef struct quern__deque {
    /* only grows; incremented by the thread that removes the oldest job */
    _Alignas(QUERN__APART_BYTES) _Atomic int64_t top;
    _Alignas(QUERN__APART_BYTES) _Atomic int64_t bottom; /* written by the owner alone */
    int64_t known_top;                                   /* the owner's last read of top; <= top */
    bool has_no_thieves;                                 /* whether no other thread ever steals */
    _Alignas(QUERN__APART_BYTES) quern__deque_slot slots[QUERN__DEQUE_CAPACITY];
} quern__deque;

/* Initializes an empty deque. has_no_thieves promises that no other thread ever steals; pop then needs no
 * ordered store. */
void quern__deque_init(quern__deque *deque, bool has_no_thieves);

/* Steals the oldest job. Returns false if the deque is empty or another thread was faster.
 * Thread-safe. */
bool quern__deque_steal(quern__deque *deque, quern__job *out_job);

/* Copies the oldest job and leaves it in the deque. The copy is only a hint: if another thread steals the
 * job meanwhile, the copy may be mixed with a later job. Thread-safe. */
bool quern__deque_peek(quern__deque *deque, quern__job *out_job);

/* Steals the oldest job, but only if `awaited` allows it (quern__scope_allows) and it has this scope or an
 * index of at least from_index. Otherwise like quern__deque_steal. */
bool quern__deque_steal_for(quern__deque *deque, const void *scope, int64_t from_index, const void *awaited,
                            quern__job *out_job);

/* Returns whether the deque had no job a moment ago. Thread-safe. As the read of a handshake,
 * it sees each job that was pushed before the other thread's fence, unless it was
 * removed. Pairs with push and the fence of notify; see search.c. */
static inline bool quern__deque_looks_empty(const quern__deque *deque)
{
    int64_t top = atomic_load_explicit(&deque->top, QUERN__HANDSHAKE_RELAXED);
    return top >= atomic_load_explicit(&deque->bottom, QUERN__HANDSHAKE_RELAXED);
}

/* ----------------------------------------------------------------------------------- the owner's calls */

static inline quern__deque_slot *quern__deque_slot_of(quern__deque *deque, int64_t index)
{
    return &deque->slots[(uint64_t)index % QUERN__DEQUE_CAPACITY];
}

/* Returns the index of the next pushed job. Relaxed: the owner alone writes it. */
static inline int64_t quern__deque_bottom(const quern__deque *deque)
{
    return atomic_load_explicit(&deque->bottom, memory_order_relaxed);
}

/* Returns whether the deque was full at the last read of top. Does not read memory that thieves write. */
static inline bool quern__deque_was_full(const quern__deque *deque)
{
    return quern__deque_bottom(deque) - deque->known_top >= QUERN__DEQUE_CAPACITY;
}

/* Returns whether the deque is full. Acquire: pairs with the thief's swap of top, so that the thief has
 * read the slot before the owner overwrites it. */
static inline bool quern__deque_is_full(quern__deque *deque)
{
    if (!quern__deque_was_full(deque)) return false;
    deque->known_top = atomic_load_explicit(&deque->top, memory_order_acquire);
    return quern__deque_was_full(deque);
}

/* Relaxed: the release of bottom that follows publishes the slot. */
static inline void quern__deque_write_slot(quern__deque_slot *slot, const quern__job *job,
                                           uint32_t data_count)
{
    atomic_store_explicit(&slot->run, job->run, memory_order_relaxed);
    atomic_store_explicit(&slot->scope, job->scope, memory_order_relaxed);
    atomic_store_explicit(&slot->target, job->target, memory_order_relaxed);
    for (uint32_t i = 0; i < data_count; i++)
        atomic_store_explicit(&slot->data[i], job->data[i], memory_order_relaxed);
}

/* Pushes a job with the first data_count words of its data. Returns false if the deque is full. The thread
 * that removes the job sees what the owner wrote before. */
static inline bool quern__deque_push(quern__deque *deque, const quern__job *job, uint32_t data_count)
{
    if (quern__deque_is_full(deque)) return false;
    int64_t bottom = quern__deque_bottom(deque);
    quern__deque_write_slot(quern__deque_slot_of(deque, bottom), job, data_count);
    /* Release: publishes the slot and what it points to; pairs with the acquire of bottom in
     * read_oldest. */
    atomic_store_explicit(&deque->bottom, bottom + 1, QUERN__HANDSHAKE_RELEASE);
    return true;
}

/* Copies a slot. Relaxed: the caller acquired bottom before, or owns the slot. */
static inline void quern__deque_read_slot(const quern__deque_slot *slot, quern__job *out_job)
{
    out_job->run = atomic_load_explicit(&slot->run, memory_order_relaxed);
    out_job->scope = atomic_load_explicit(&slot->scope, memory_order_relaxed);
    out_job->target = atomic_load_explicit(&slot->target, memory_order_relaxed);
    for (uint32_t i = 0; i < QUERN__JOB_DATA_WORDS; i++)
        out_job->data[i] = atomic_load_explicit(&slot->data[i], memory_order_relaxed);
}

/* Claims the oldest job by incrementing top. Returns false if another thread was faster. seq_cst: one order
 * with all other swaps of top and with the loads and stores in pop and steal. As a release it pairs with
 * the acquire in quern__deque_is_full. */
static inline bool quern__deque_claim_top(quern__deque *deque, int64_t top)
{
    return atomic_compare_exchange_strong_explicit(&deque->top, &top, top + 1, memory_order_seq_cst,
                                                   memory_order_relaxed);
}

/* Removes the job at this index, which was in the deque, from between older and newer jobs, and leaves
 * `placeholder` in its place. Returns false if a thief was faster. For a moment thieves do not see the newer
 * jobs: the caller notifies sleepers afterwards. */
bool quern__deque_take_at(quern__deque *deque, int64_t index, const quern__job *placeholder,
                          quern__job *out_job);

/* Pops from a deque without thieves. Relaxed: other threads at most report the indices (describe_jobs.c). */
static inline quern__deque_slot *quern__deque_pop_alone(quern__deque *deque)
{
    int64_t bottom = quern__deque_bottom(deque);
    if (bottom == atomic_load_explicit(&deque->top, memory_order_relaxed)) return NULL;
    atomic_store_explicit(&deque->bottom, bottom - 1, memory_order_relaxed);
    return quern__deque_slot_of(deque, bottom - 1);
}

/* Pops the newest job. Returns its slot, which is valid until the owner pushes again; NULL if the deque is
 * empty. The seq_cst store and load pair with the two loads in read_oldest (deque.c). */
static inline quern__deque_slot *quern__deque_pop(quern__deque *deque)
{
    if (deque->has_no_thieves) return quern__deque_pop_alone(deque);
    int64_t bottom = quern__deque_bottom(deque) - 1;
    /* Write and read of the handshake with thieves; see deque.c. The store also releases: a thief that
     * reads this value takes a job that an earlier push published, and a relaxed store would end that
     * release sequence. */
    atomic_store_explicit(&deque->bottom, bottom, memory_order_seq_cst);
    int64_t top = atomic_load_explicit(&deque->top, memory_order_seq_cst);
    if (top < bottom) return quern__deque_slot_of(deque, bottom);
    bool taken =
        top == bottom && quern__deque_claim_top(deque, top); /* one job left: thieves may want it, too */
    /* The deque is empty. Relaxed: a thief that reads this bottom finds top equal to it and takes nothing,
     * or its swap fails. */
    atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_relaxed);
    return taken ? quern__deque_slot_of(deque, bottom) : NULL;
}

#endif
