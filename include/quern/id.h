/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_ID_H
#define QUERN_ID_H

/** @file
 * Handles: small values, passed by copy.
 *
 * For each kind, all zero is null. Handles of a world carry its tag, so using one with another world is
 * refused instead of reaching a stranger. */

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An entity of one world. Bits, from the lowest: 32 index, 24 generation (never 0), 8 world tag (1 to
 * 255).
 *
 * The index follows only from what is done with the world. Tag and generation do not: when worlds of one
 * process have the same tag one after another, the generations of their slots begin at different
 * numbers. A generation goes up by one (from 16,777,215 to 1) each time another entity takes the slot,
 * and by more where quern_world_trim has given back what was known of the slot. quern_entity_life returns
 * which life of its slot an entity is, from 1; that too follows only from what is done with the world, and
 * quern_world_hash looks at index and life. A handle that you kept is not valid in any of the next million
 * worlds, as long as none of their slots comes to more than 4096 lives.
 *
 * A tag of 0 with a generation marks a *provisional* handle, made by quern_commands_create. It is valid
 * in later commands of the same stream, and inside described fields of their values, until the next sync
 * point turns it into a real one. */
typedef struct quern_entity {
    uint64_t bits; /**< Index, generation and tag; 0: null. */
} quern_entity;

/** A component type of one world. Bits, from the lowest: 16 index + 1, 8 unused, 8 world tag. */
typedef struct quern_component {
    uint32_t bits; /**< 0: null. */
} quern_component;

/** A relation of one world: a source entity points at a target entity; see <quern/relation.h>. Bits: those of
 * the relation's component, whose value is the target. */
typedef struct quern_relation {
    uint32_t bits; /**< 0: null. */
} quern_relation;

/** A resource (singleton) of one world. Bits as in quern_component. */
typedef struct quern_resource {
    uint32_t bits; /**< 0: null. */
} quern_resource;

/** An event type of one world; see <quern/event.h>. Bits as in quern_component. */
typedef struct quern_event {
    uint32_t bits; /**< 0: null. */
} quern_event;

/** A system of one schedule. The handle does not know which schedule. */
typedef struct quern_system {
    uint32_t bits; /**< Index + 1; 0: null. */
} quern_system;

/** Returns the null entity. */
static inline quern_entity quern_entity_null(void)
{
    quern_entity entity = {0};
    return entity;
}

/** Returns whether the handle is null. */
static inline bool quern_entity_is_null(quern_entity entity)
{
    return entity.bits == 0;
}

/** Returns whether both handles are the same. */
static inline bool quern_entity_equal(quern_entity a, quern_entity b)
{
    return a.bits == b.bits;
}

/** Returns the index of the entity's slot. */
static inline uint32_t quern_entity_index(quern_entity entity)
{
    return (uint32_t)entity.bits;
}

/** Returns the generation: which use of its slot the handle belongs to. */
static inline uint32_t quern_entity_generation(quern_entity entity)
{
    return (uint32_t)(entity.bits >> 32) & 0xFFFFFFu;
}

/** Returns the tag of the entity's world; 0 for provisional handles and null. */
static inline uint32_t quern_entity_world_tag(quern_entity entity)
{
    return (uint32_t)(entity.bits >> 56);
}

/** Returns whether the handle is provisional (see quern_entity). */
static inline bool quern_entity_is_provisional(quern_entity entity)
{
    return entity.bits != 0 && quern_entity_world_tag(entity) == 0;
}

/** Returns whether the handle is null. */
static inline bool quern_component_is_null(quern_component component)
{
    return component.bits == 0;
}

/** Returns whether both handles are the same. */
static inline bool quern_component_equal(quern_component a, quern_component b)
{
    return a.bits == b.bits;
}

#ifdef __cplusplus
}
#endif

#endif
