/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_CORE_REACTIONS_HOOK_H
#define QUERN_CORE_REACTIONS_HOOK_H

/* Entity hooks: functions of component types (quern_entity_hooks) that a change calls for the entities which get or lose
 * the component.
 *
 * A change has three steps for them:
 *
 *   before   on_remove, as soon as nothing can fail any more and before the first row changes. The code that changes rows
 *            knows which of them leave or lose components, so it calls quern__hooks_before_... for each.
 *   change   a reaction to ADDED and SET for each component with hooks collects rows, as all reactions do
 *   after    on_add and on_set for these rows: quern__hooks_after, at the end of each call and sync point
 *
 * So what a hook reads is the world before the change or after it, and never a part of one. The reaction of a component is
 * added with the first archetype that has the component, and stays. Archetypes with such a component have has_hooks.
 * A world without hooks has no such archetype and no such reaction, and costs one branch at the end of a sync point.
 *
 * The world is locked while a hook runs, so that calls that change it are refused. */

#include "core/reactions/reaction.h"
#include "core/world/world_internal.h"

/* Adds the reactions of the archetype's components that have hooks and no reaction yet. Called before reactions subscribe
 * to a new archetype. Errors: OUT_OF_MEMORY. */
quern_result quern__hooks_ensure(quern__storage *storage, const quern__archetype *archetype);

/* Gives the component, whose type has hooks, its reaction, which subscribes to existing archetypes. A component that has
 * its reaction keeps it. Errors: OUT_OF_MEMORY. */
quern_result quern__hooks_attach(quern_world *world, uint32_t component_index);

/* Returns whether a component that some archetype has had has hooks. */
static inline bool quern__hooks_are_used(const quern__storage *storage)
{
    return QUERN__UNLIKELY(storage->reactions->hooks.count > 0);
}

/* Calls on_remove for `count` consecutive rows of one chunk that are about to leave for `target` (NULL: the entities are
 * destroyed). Called only if the archetype has_hooks. */
void quern__hooks_call_remove(quern__storage *storage, const quern__archetype *archetype,
                              const quern__archetype *target, uintptr_t first, uint32_t count);

static inline void quern__hooks_before_leaving(quern__storage *storage, const quern__archetype *archetype,
                                               const quern__archetype *target, uintptr_t first,
                                               uint32_t count)
{
    if (QUERN__UNLIKELY(archetype->has_hooks))
        quern__hooks_call_remove(storage, archetype, target, first, count);
}

/* Calls on_remove for all rows of an archetype. target: as above. */
void quern__hooks_before_all_leave(quern__storage *storage, const quern__archetype *archetype,
                                   const quern__archetype *target);

/* Calls on_remove for all entities of the world, which is about to be destroyed. */
void quern__hooks_before_end(quern__storage *storage);

/* Returns the greatest level that the archetype's entities have in a relation. */
uint32_t quern__hooks_level(const quern__storage *storage, const quern__archetype *archetype);

/* Calls on_add and on_set for everything that changes have collected. */
void quern__hooks_call_after(quern__storage *storage);

static inline void quern__hooks_after(quern__storage *storage)
{
    if (quern__hooks_are_used(storage)) quern__hooks_call_after(storage);
}

/* Replacing all rows at once, as a history does when it restores a frame. `begin` notes the values of the world, to be
 * compared with those afterwards. Then the caller passes the handles of the rows that the frame has for each component,
 * `before` calls on_remove for the entities that are not among them, and `after` calls on_add and on_set. Nothing is noted
 * for a world without hooks. */
typedef struct quern__hooked_values {
    quern_entity *kept; /* by slot: entity with the component in the frame, or null */
    uint32_t *numbers;  /* by slot: 1 + number of the value from before; 0: none */
    char *values;       /* of entities that keep the component, in the order of rows */
    uint32_t slot_count, value_count, value_capacity;
    const quern__type *type;
} quern__hooked_values;

typedef struct quern__hooked_frame {
    quern__storage *storage;
    quern__hooked_values *items; /* one for each component with hooks */
    uint32_t count;
} quern__hooked_frame;

/* slot_count: number of slots of the frame. Errors: OUT_OF_MEMORY; then nothing is held. */
quern_result quern__hooked_frame_begin(quern__hooked_frame *frame, quern__storage *storage,
                                       uint32_t slot_count);

/* Notes that the frame has rows of an archetype's entities. */
void quern__hooked_frame_keep(const quern__hooked_frame *frame, const quern__archetype *archetype,
                              const quern_entity *handles, uint32_t count);

void quern__hooked_frame_before(quern__hooked_frame *frame);
void quern__hooked_frame_after(quern__hooked_frame *frame);

/* Releases all memory, also after an error or without a change. */
void quern__hooked_frame_release(quern__hooked_frame *frame);

#endif
