/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sched/jobs/jobs_internal.h"

/* Cancel requests. A request is one word that jobs, loops and graphs read before they begin a part of
 * their work. So the requesting thread needs no list of what it cancels. */

/* Release: pairs with the acquire in quern__cancel_is_requested. */
void quern_cancel_request(quern_cancel *cancel)
{
    if (cancel != NULL) atomic_store_explicit(&cancel->is_requested, 1, memory_order_release);
}

bool quern_cancel_is_requested(const quern_cancel *cancel)
{
    return quern__cancel_is_requested(cancel);
}

/* Relaxed: the caller resets a request only while no running work reads it; submitting work publishes the
 * reset. */
void quern_cancel_reset(quern_cancel *cancel)
{
    if (cancel != NULL) atomic_store_explicit(&cancel->is_requested, 0, memory_order_relaxed);
}
