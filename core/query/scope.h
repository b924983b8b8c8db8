/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_QUERY_SCOPE_H
#define QUERN_CORE_QUERY_SCOPE_H

/* Refused accesses: which system asked, how often, and the scratch memory that is handed out instead of values.
 *
 * A callback that asks for something it has not declared goes on with scratch memory, so that a wrong
 * declaration is an error and no crash. Scratch memory is zeroed, belongs to one scope (one worker's context,
 * or one query that is iterated) and holds no row of the world. It is allocated when an access is refused;
 * what succeeds never comes here.
 *
 * A callback may use its view in the jobs of a parallel loop, so several threads may be refused in one scope
 * at the same time: the list of blocks only grows while callbacks run, by compare-and-swap. */

#include "core/storage/storage.h"

#include <quern/query.h>

#include <stdatomic.h>

typedef enum quern__caller {
    QUERN__CALLER_SYSTEM,
    QUERN__CALLER_PARALLEL,
    QUERN__CALLER_FILL,
    QUERN__CALLER_ITERATION
} quern__caller;

/* The source of accesses: a system during one frame, one parallel query, one fill, one iteration. Workers
 * share it. */
typedef struct quern__accessor {
    const char *name;               /* of a system; NULL otherwise */
    _Atomic uint32_t refusal_count; /* only the first refusal is logged */
} quern__accessor;

struct quern__scratch_block;

/* First member of every quern_context; a query has one for its iterations. */
typedef struct quern__scope {
    quern__accessor *accessor;
    const quern__storage *storage;
    _Atomic(struct quern__scratch_block *)
        scratch;                   /* list; NULL: nothing was refused since it was released */
    _Atomic(quern_result) refused; /* last refusal of the callback, or QUERN_OK */
    quern__caller caller;
} quern__scope;

/* Relaxed: other threads set it only in parallel loops, which have ended when the callback returns; earlier
 * reads only decide whether a message is formatted again. */
static inline quern_result quern__scope_refused(const quern__scope *scope)
{
    return atomic_load_explicit(&scope->refused, memory_order_relaxed);
}

/* Counts a refusal, which the last quern__fail described. The first one of the accessor is logged and goes
 * to the assert handler in builds with QUERN_CHECKS. scope: NULL if the access has none; then each one is.
 * Returns code. */
QUERN__SLOW_PATH quern_result quern__scope_refuse(quern__scope *scope, quern_result code);

/* quern__scope_refuse with the description, formatted as by printf. */
#define quern__refuse(scope, code, ...) quern__scope_refuse((scope), quern__fail((code), __VA_ARGS__))

/* Counts one more refusal of a callback for which a message has been written already. False: there is no
 * message yet. */
bool quern__scope_repeats(quern__scope *scope);

/* Appends "system 'x'", "a parallel query", ... to a text. */
void quern__scope_name(const quern__scope *scope, char *text, size_t text_bytes);

/* The functions below return zeroed scratch memory, or NULL without memory. It is valid until the scope is
 * reset; in an iteration, until the same view asks at other rows. size_bytes: of one value; 0 stands for the
 * size of the world's largest component. */

/* Memory for the rows of a view. Within a callback, the same column of the same rows is the same memory and
 * keeps what was written, as a real column does: jobs of a parallel loop may ask for it at the same time. */
QUERN__SLOW_PATH void *quern__scratch_column(const quern_view *view, uint32_t term, size_t size_bytes);

/* Addresses for the rows of a view, all of one value. */
QUERN__SLOW_PATH const void *const *quern__scratch_up(const quern_view *view, uint32_t term,
                                                      size_t size_bytes);

/* One value, the same one for all lookups of a callback, zeroed again each time. size_bytes is not 0. */
QUERN__SLOW_PATH void *quern__scratch_value(quern__scope *scope, size_t size_bytes);

QUERN__SLOW_PATH void quern__scratch_release(quern__scope *scope);

/* Prepares the scope for the next callback: forgets the refusal and frees the scratch memory. Call it when
 * the callback has returned. Relaxed: see quern__scope_refused. */
static inline void quern__scope_reset(quern__scope *scope)
{
    if (QUERN__LIKELY(quern__scope_refused(scope) == QUERN_OK)) return;
    atomic_store_explicit(&scope->refused, QUERN_OK, memory_order_relaxed);
    quern__scratch_release(scope);
}

#endif
