/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_SCOPE_H
#define QUERN_CORE_QUERY_SCOPE_H

/* Refused accesses: the system that made them, their number, and the scratch memory returned instead of values.
 *
 * A callback that accesses something it has not declared continues with scratch memory, so that a wrong
 * declaration causes an error instead of a crash. Scratch memory is zeroed, belongs to one scope (one worker's
 * context, or one query that is iterated) and contains no row of the world. It is allocated when an access is
 * refused; accesses that succeed do not use this file.
 *
 * A callback may use its view in the jobs of a parallel loop, so several threads may be refused in one scope
 * at the same time. While callbacks run, the list of blocks therefore only grows, by compare-and-swap. */

#include "core/storage/storage.h"

#include <quern/query.h>

#include <stdatomic.h>

typedef enum quern__caller {
    QUERN__CALLER_SYSTEM,
    QUERN__CALLER_PARALLEL,
    QUERN__CALLER_FILL,
    QUERN__CALLER_ITERATION
} quern__caller;

/* The source of accesses: a system during one frame, one parallel query, one fill, or one iteration. All
 * workers that run its callbacks share it. */
typedef struct quern__accessor {
    const char *name;               /* name of the system; NULL otherwise */
    _Atomic uint32_t refusal_count; /* only the first refusal is logged */
} quern__accessor;

struct quern__scratch_block;

/* First member of every quern_context; a query has one for its iterations. */
typedef struct quern__scope {
    quern__accessor *accessor;
    const quern__storage *storage;
    /* List of scratch blocks; NULL if nothing was refused since the last release. */
    _Atomic(struct quern__scratch_block *) scratch;
    _Atomic(quern_result) refused; /* last refusal of the callback, or QUERN_OK */
    quern__caller caller;
} quern__scope;

/* Returns the last refusal of the callback, or QUERN_OK. Relaxed: other threads set it only in parallel loops,
 * which have ended when the callback returns. Earlier reads only decide whether a message is formatted again. */
static inline quern_result quern__scope_refused(const quern__scope *scope)
{
    return atomic_load_explicit(&scope->refused, memory_order_relaxed);
}

/* Counts a refusal that the last quern__fail described, and returns `code`. The accessor's first refusal is
 * logged and, in builds with QUERN_CHECKS, passed to the assert handler. scope: NULL if the access has none;
 * then every refusal is reported in this way. */
QUERN__SLOW_PATH quern_result quern__scope_refuse(quern__scope *scope, quern_result code);

/* Describes a refusal, formatted as by printf, and counts it (quern__scope_refuse). */
#define quern__refuse(scope, code, ...) quern__scope_refuse((scope), quern__fail((code), __VA_ARGS__))

/* Counts a refusal if the callback already has one with a message. Returns false, without counting, if it has
 * none yet; the caller must then write the message. */
bool quern__scope_count_repeated(quern__scope *scope);

/* Appends a description of the caller to `text`: "system 'x'", "a parallel query", ... */
void quern__scope_describe(const quern__scope *scope, char *text, size_t text_bytes);

/* The functions below return zeroed scratch memory, or NULL if out of memory. It is valid until the scope is
 * reset; in an iteration, until the same view is refused at other rows. size_bytes: size of one value, or 0 for
 * the size of the world's largest component. */

/* Returns memory for one column of the rows of a view. Within a callback, repeated calls for one column and
 * the same rows return the same memory, with what was written to it, as a real column would. Thread-safe for
 * the jobs of a parallel loop in one callback. */
QUERN__SLOW_PATH void *quern__scratch_column(const quern_view *view, uint32_t term, size_t size_bytes);

/* Returns an address for each row of a view; all addresses are those of one scratch value. */
QUERN__SLOW_PATH const void *const *quern__scratch_up(const quern_view *view, uint32_t term,
                                                      size_t size_bytes);

/* Returns one value for a lookup. All lookups of a callback with one size share it; each call zeroes it again.
 * Precondition: size_bytes > 0. */
QUERN__SLOW_PATH void *quern__scratch_value(quern__scope *scope, size_t size_bytes);

/* Frees the scratch memory. No callback of the scope may run. */
QUERN__SLOW_PATH void quern__scratch_release(quern__scope *scope);

/* Prepares the scope for the next callback: clears the refusal and frees the scratch memory. Must be called
 * after the callback has returned. Relaxed: see quern__scope_refused. */
static inline void quern__scope_reset(quern__scope *scope)
{
    if (QUERN__LIKELY(quern__scope_refused(scope) == QUERN_OK)) return;
    atomic_store_explicit(&scope->refused, QUERN_OK, memory_order_relaxed);
    quern__scratch_release(scope);
}

#endif
