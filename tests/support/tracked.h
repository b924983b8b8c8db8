/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_TRACKED_H
#define QUERN_TESTS_TRACKED_H

/* Component types that notice when their hooks are not called as they must be.
 *
 * A `tracked` value knows its own address, so one that was copied as bytes instead of with its move or
 * copy hook, destroyed twice, or used as raw memory shows up in broken_count. Those that live are counted:
 *     live = constructed + copied - destroyed        (move leaves the number as it is)
 * An `owned` value has destroy and no copy: the world takes over what a given value owns. */

#include <quern/component.h>
#include <quern/event.h>

#include <stdatomic.h>

typedef struct tracked_counts {
    atomic_ullong constructed_count;
    atomic_ullong copied_count;
    atomic_ullong moved_count;
    atomic_ullong destroyed_count;
    atomic_ullong broken_count; /* values that were not live where they had to be */
} tracked_counts;

typedef struct tracked {
    struct tracked *self;         /* its address while it lives */
    _Alignas(8) uint64_t payload; /* the only described field; registered with alignment 8 */
} tracked;

enum { TRACKED_DEFAULT = 77 }; /* payload of a constructed value */

/* Null, as any failing registration, when there is no memory. */
quern_component tracked_register(quern_world *world, const char *name, tracked_counts *counts);

quern_event tracked_event_register(quern_world *world, const char *name, tracked_counts *counts);

void tracked_construct(tracked *value, uint64_t payload, tracked_counts *counts);
void tracked_destroy(tracked *value, tracked_counts *counts);
bool tracked_is_live(const tracked *value);
uint64_t tracked_live_count(tracked_counts *counts);

typedef struct owned {
    uint64_t *box; /* from the heap, NULL in a value made of zero bytes; holds the payload again */
    _Alignas(8) uint64_t payload; /* registered with alignment 8 */
} owned;

quern_component owned_register(quern_world *world, const char *name, atomic_llong *live_count);

void owned_construct(owned *value, uint64_t payload, atomic_llong *live_count);
void owned_destroy(owned *value, atomic_llong *live_count);
bool owned_is_intact(const owned *value);

#endif
