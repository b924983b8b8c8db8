/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_TRACKED_H
#define QUERN_TESTS_TRACKED_H

/* Component types that detect wrong calls of their hooks.
 *
 * A `tracked` value contains its own address. So a value that was copied as bytes instead of by its move
 * or copy hook, destroyed twice, or used before construction increments broken_count. Living values are
 * counted:
 *     live = constructed + copied - destroyed        (a move does not change the number)
 * An `owned` value has a destroy hook and no copy hook: the world takes ownership of what a given value
 * owns. */

#include <quern/component.h>
#include <quern/event.h>

#include <stdatomic.h>

typedef struct tracked_counts {
    atomic_ullong constructed_count;
    atomic_ullong copied_count;
    atomic_ullong moved_count;
    atomic_ullong destroyed_count;
    atomic_ullong broken_count; /* uses of values that were not alive */
} tracked_counts;

typedef struct tracked {
    struct tracked *self;         /* its own address while the value is alive */
    _Alignas(8) uint64_t payload; /* the only described field; registered with alignment 8 */
} tracked;

enum { TRACKED_DEFAULT = 77 }; /* payload of a value made by the construct hook */

/* Registers the type. Returns a null component if memory runs out. */
quern_component tracked_register(quern_world *world, const char *name, tracked_counts *counts);

quern_event tracked_event_register(quern_world *world, const char *name, tracked_counts *counts);

void tracked_construct(tracked *value, uint64_t payload, tracked_counts *counts);
void tracked_destroy(tracked *value, tracked_counts *counts);
bool tracked_is_live(const tracked *value);
uint64_t tracked_live_count(tracked_counts *counts);

typedef struct owned {
    uint64_t *box; /* allocated block that repeats the payload; NULL in a value of zero bytes */
    _Alignas(8) uint64_t payload; /* registered with alignment 8 */
} owned;

quern_component owned_register(quern_world *world, const char *name, atomic_llong *live_count);

void owned_construct(owned *value, uint64_t payload, atomic_llong *live_count);
void owned_destroy(owned *value, atomic_llong *live_count);
bool owned_is_intact(const owned *value);

#endif
