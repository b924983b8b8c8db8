/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_SCHED_JOBS_DEQUE_H
#define QUERN_SCHED_JOBS_DEQUE_H

/* A bounded work-stealing deque (Chase and Lev 2005, in C11 atomics as by Lê and others 2013): its owner
 * pushes and pops at the bottom, last in first out; thieves take from the top, first in first out. Jobs are
 * copied in and out, one cache line each: nothing is allocated, and a slot is free again as soon as its job
 * was taken. The deque looks at a job's scope alone. See deque.c for why every job is taken once. */

#include "core/base/base_internal.h"
#include "sched/jobs/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quern__worker;
typedef struct quern__job quern__job;

/* Sizes may be set from outside, here and in the other files of the scheduler: small ones are for models
 * (tests/models), and for tests of what happens when something is full. */
#ifndef QUERN__JOB_DATA_WORDS
#define QUERN__JOB_DATA_WORDS (40 / (uint32_t)sizeof(uintptr_t)) /* QUERN_JOB_PAYLOAD_BYTES */
#endif

/* At most 64 bytes: one cache line. */
struct quern__job {
    /* job is a copy that lives on the stack of whoever runs it. */
    void (*run)(quern__job *job, struct quern__worker *worker);
    const void *scope; /* what can be waited for that this is a part of; may be NULL */
    void *target;      /* what run is about */
    /* Arguments of run. Aligned to 8 for payloads, also where words have 4 bytes. */
    _Alignas(8) uintptr_t data[QUERN__JOB_DATA_WORDS];
};

/* Member by member, as the model checker wants it; compilers make the same of it as of an assignment. */
static inline void quern__job_copy(quern__job *to, const quern__job *from)
{
    to->run = from->run;
    to->scope = from->scope;
    to->target = from->target;
    for (uint32_t i = 0; i < QUERN__JOB_DATA_WORDS; i++)
        to->data[i] = from->data[i];
}

/* A scope may be *closed*: then who waits inside a job takes jobs of it only when that scope is what
 * it waits for. Jobs of a graph are so: a node that waits must not find that its worker has run
 * another node meanwhile, for what nodes keep by worker would be changed. Closed scopes are told by an
 * address that is odd. */
static inline const void *quern__scope_close(const void *scope)
{
    return (const char *)scope + 1;
}

static inline bool quern__scope_is_closed(const void *scope)
{
    return ((uintptr_t)scope & 1) != 0;
}

/* Whether it is the same, closed or not: who waits for a counter waits for a graph that it counts. */
static inline bool quern__scope_matches(const void *scope, const void *other)
{
    return (((uintptr_t)scope ^ (uintptr_t)other) & ~(uintptr_t)1) == 0;
}

/* In place of what is awaited, where no closed job is under way on the worker. */
#define QUERN__ANY_SCOPE ((const void *)UINTPTR_MAX)

/* awaited: what the worker waits for that would run the job meanwhile. */
static inline bool quern__scope_allows(const void *scope, const void *awaited)
{
    return !quern__scope_is_closed(scope) || quern__scope_matches(scope, awaited) ||
           awaited == QUERN__ANY_SCOPE;
}

#ifndef QUERN__DEQUE_CAPACITY
#define QUERN__DEQUE_CAPACITY 512 /* jobs; a power of two */
#endif

/* Relaxed accesses: a thief may read a slot while the owner writes it, and then its swap of top fails. */
typedef struct quern__deque_slot {
    _Alignas(QUERN__CACHE_LINE_BYTES) void (*_Atomic run)(quern__job *job, struct quern__worker *worker);
    _Atomic(const void *) scope;
    _Atomic(void *) target;
    _Atomic uintptr_t data[QUERN__JOB_DATA_WORDS];
} quern__deque_slot;

/* Jobs stand at top <= index < bottom, each in slot index % capacity; bottom - top <= capacity.
 * Only pop makes bottom < top, by one, for as long as it takes to find the deque empty. Indices are signed
 * and 64 bits wide: they never wrap. */
typedef struct quern__deque {
    _Alignas(QUERN__APART_BYTES) _Atomic int64_t top;    /* only grows; moved by who takes the oldest job */
    _Alignas(QUERN__APART_BYTES) _Atomic int64_t bottom; /* written by the owner alone */
    int64_t known_top;                                   /* the owner's last look at top; <= top */
    bool has_no_thieves;                                 /* there are no thieves */
    _Alignas(QUERN__APART_BYTES) quern__deque_slot slots[QUERN__DEQUE_CAPACITY];
} quern__deque;

/* has_no_thieves promises that nobody will ever steal: pop then needs no ordered store. */
void quern__deque_init(quern__deque *deque, bool has_no_thieves);

/* Any thread. The oldest job; false when empty or when somebody else was quicker. */
bool quern__deque_steal(quern__deque *deque, quern__job *out_job);

/* Any thread. Copies the oldest job and leaves it there. The copy is only a hint: another thread may take the
 * job meanwhile, and then the copy may mix it with a later one. */
bool quern__deque_peek(quern__deque *deque, quern__job *out_job);

/* The same for who waits for `awaited`: only a job that is allowed then, and that has this scope or stands
 * at from_index or later. */
bool quern__deque_steal_for(quern__deque *deque, const void *scope, int64_t from_index, const void *awaited,
                            quern__job *out_job);

/* Any thread: whether a job was there a moment ago. As the read of a handshake (sched/jobs/atomic.h), it
 * does not miss a job pushed before the other side's fence, unless somebody took it. Pairs with push and
 * the fence of notify, see search.c. */
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

/* Where the next job goes. Relaxed: the owner alone writes it. */
static inline int64_t quern__deque_bottom(const quern__deque *deque)
{
    return atomic_load_explicit(&deque->bottom, memory_order_relaxed);
}

/* Whether it was when top was last looked at; reads nothing that thieves write. */
static inline bool quern__deque_was_full(const quern__deque *deque)
{
    return quern__deque_bottom(deque) - deque->known_top >= QUERN__DEQUE_CAPACITY;
}

/* Acquire pairs with the thief's swap of top: it has read the slot before we write it again. */
static inline bool quern__deque_is_full(quern__deque *deque)
{
    if (!quern__deque_was_full(deque)) return false;
    deque->known_top = atomic_load_explicit(&deque->top, memory_order_acquire);
    return quern__deque_was_full(deque);
}

/* Copies the first data_count words of data. False when full. What the owner wrote before is visible to
 * whoever takes the job. Slots are written relaxed: the release of bottom publishes them. */
static inline bool quern__deque_push(quern__deque *deque, const quern__job *job, uint32_t data_count)
{
    if (quern__deque_is_full(deque)) return false;
    int64_t bottom = quern__deque_bottom(deque);
    quern__deque_slot *slot = quern__deque_slot_of(deque, bottom);
    atomic_store_explicit(&slot->run, job->run, memory_order_relaxed);
    atomic_store_explicit(&slot->scope, job->scope, memory_order_relaxed);
    atomic_store_explicit(&slot->target, job->target, memory_order_relaxed);
    for (uint32_t i = 0; i < data_count; i++)
        atomic_store_explicit(&slot->data[i], job->data[i], memory_order_relaxed);
    /* Release: publishes the slot and what it points to; pairs with the acquire of bottom in steal. */
    atomic_store_explicit(&deque->bottom, bottom + 1, QUERN__HANDSHAKE_RELEASE);
    return true;
}

/* Relaxed: the acquire of bottom came before, or the slot is the owner's. */
static inline void quern__deque_read_slot(const quern__deque_slot *slot, quern__job *out_job)
{
    out_job->run = atomic_load_explicit(&slot->run, memory_order_relaxed);
    out_job->scope = atomic_load_explicit(&slot->scope, memory_order_relaxed);
    out_job->target = atomic_load_explicit(&slot->target, memory_order_relaxed);
    for (uint32_t i = 0; i < QUERN__JOB_DATA_WORDS; i++)
        out_job->data[i] = atomic_load_explicit(&slot->data[i], memory_order_relaxed);
}

/* Takes the oldest job unless somebody else does. seq_cst: in one order with the other takers' swaps and
 * the accesses of pop and steal. It releases, too: see is_full. Pairs with all other swaps, and as a
 * release with the acquire in is_full. */
static inline bool quern__deque_claim_top(quern__deque *deque, int64_t top)
{
    return atomic_compare_exchange_strong_explicit(&deque->top, &top, top + 1, memory_order_seq_cst,
                                                   memory_order_relaxed);
}

/* Without thieves there is nothing to agree on, so relaxed order is enough. */
static inline quern__deque_slot *quern__deque_pop_alone(quern__deque *deque)
{
    int64_t bottom = quern__deque_bottom(deque);
    if (bottom == atomic_load_explicit(&deque->top, memory_order_relaxed)) return NULL;
    atomic_store_explicit(&deque->bottom, bottom - 1, memory_order_relaxed);
    return quern__deque_slot_of(deque, bottom - 1);
}

/* The slot of the newest job, which is the owner's until it pushes again; NULL when empty. The seq_cst
 * store and load pair with the two loads in read_oldest (deque.c). */
static inline quern__deque_slot *quern__deque_pop(quern__deque *deque)
{
    if (deque->has_no_thieves) return quern__deque_pop_alone(deque);
    int64_t bottom = quern__deque_bottom(deque) - 1;
    /* The write and the read of the agreement with thieves, see deque.c. The store releases as well: a
     * thief that reads this value takes a job that an earlier push published, and a relaxed store of the
     * same thread would end that release sequence. */
    atomic_store_explicit(&deque->bottom, bottom, memory_order_seq_cst);
    int64_t top = atomic_load_explicit(&deque->top, memory_order_seq_cst);
    if (top < bottom) return quern__deque_slot_of(deque, bottom);
    bool taken =
        top == bottom && quern__deque_claim_top(deque, top); /* the last one: thieves may want it */
    /* The deque is empty. Relaxed: a thief that reads this bottom takes nothing, since top stands there, or
     * its swap fails. */
    atomic_store_explicit(&deque->bottom, bottom + 1, memory_order_relaxed);
    return taken ? quern__deque_slot_of(deque, bottom) : NULL;
}

#endif
