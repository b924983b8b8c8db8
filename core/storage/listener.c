/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/storage/listener.h"

#include "core/storage/storage.h"

/* Updates the flags of an archetype after a listener was added or removed, and drops its cached edges, because these may
 * need a reservation now, or need none any more. */
static void update_flags(quern__archetype *archetype)
{
    archetype->has_fast_leave = archetype->is_plain;
    for (const quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next)
        if (listener->needs_room) archetype->has_fast_leave = false;
    memset(archetype->edges, 0, sizeof archetype->edges);
    quern__archetype_update_tracking(archetype);
}

void quern__row_listener_add(quern__row_listener *listener)
{
    quern__row_listener **link = &listener->archetype->first_listener;
    while (*link != NULL && (*link)->position < listener->position)
        link = &(*link)->next;
    listener->next = *link;
    *link = listener;
    update_flags(listener->archetype);
}

void quern__row_listener_remove(quern__row_listener *listener)
{
    quern__row_listener **link = &listener->archetype->first_listener;
    while (*link != listener)
        link = &(*link)->next;
    *link = listener->next;
    update_flags(listener->archetype);
}

void quern__row_listeners_release(quern__archetype *archetype, const quern_allocator *allocator)
{
    while (archetype->first_listener != NULL) {
        quern__row_listener *listener = archetype->first_listener;
        archetype->first_listener = listener->next;
        listener->events->release(listener, allocator);
    }
}

bool quern__row_listeners_hold(const quern__archetype *archetype, const quern_allocator *allocator,
                               uint32_t chunk_count)
{
    for (quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next)
        if (listener->keeps_row_data && !listener->events->hold(listener, allocator, chunk_count))
            return false;
    return true;
}

bool quern__row_listeners_call_hooks(const quern__archetype *archetype)
{
    for (const quern__row_listener *listener = archetype->first_listener; listener != NULL;
         listener = listener->next)
        if (listener->needs_room && listener->calls_hooks) return true;
    return false;
}
