/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_ID_H
#define QUERN_ID_H

/** @file
 * Handles: small values that are passed by copy.
 *
 * All bits zero is the null handle of each kind. Handles of a world contain the world's tag, so that using
 * one with another world is an error and never affects an unrelated object. */

#include <stdbool.h>
#include <stdint.h>

/* Internal: a conversion without a cast that C++ calls old. */
#ifdef __cplusplus
#define QUERN__CAST(type, value) static_cast<type>(value)
#else
#define QUERN__CAST(type, value) ((type)(value))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** An entity of one world. Bits, from the lowest: 32 index of its slot, 24 generation (never 0), 8 world
 * tag (1 to 255).
 *
 * Each slot counts its entities: the first has use count 1 (quern_entity_use_count), the next 2, and so on up
 * to 16,777,215. Index and use count depend only on the operations applied to the world, so they are the
 * same in every process; quern_world_hash contains them. Tag and generation depend on the process: the
 * generation is the use count plus an offset of the world, wrapping around from 16,777,215 to 1. Later
 * worlds with the same tag have other offsets. quern_world_trim may skip some use counts.
 *
 * Because of the offsets, a handle kept from a destroyed world is not valid in any of the next million
 * worlds, as long as no slot of them exceeds a use count of 4096.
 *
 * A handle with a generation and tag 0 is *provisional*: quern_commands_create has made it. It is
 * valid in later commands of the same stream, and inside described fields of their values, until the next
 * sync point replaces it by a final handle. */
typedef struct quern_entity {
    uint64_t bits; /**< Index, generation and tag; 0: null. */
} quern_entity;

/** A component type of one world. Bits, from the lowest: 16 index + 1, 8 unused, 8 world tag. */
typedef struct quern_component {
    uint32_t bits; /**< 0: null. */
} quern_component;

/** A relation of one world, from source entities to target entities; see <quern/relation.h>. Bits: those
 * of the relation's component, which stores the target. */
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

/** A prefab of one world; see <quern/prefab.h>. Bits, from the lowest: 32 index, 24 generation, 8 world tag. */
typedef struct quern_prefab {
    uint64_t bits; /**< 0: null. */
} quern_prefab;

/** A system of one schedule. The handle does not identify the schedule. After the system was removed, calls refuse the
 * handle; no other system gets it. Bits, from the lowest: 16 number + 1, 16 generation. */
typedef struct quern_system {
    uint32_t bits; /**< 0: null. */
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
    return QUERN__CAST(uint32_t, entity.bits);
}

/** Returns the generation of the handle: a number that distinguishes the entities of one slot. It depends
 * on the process; see quern_entity_use_count. */
static inline uint32_t quern_entity_generation(quern_entity entity)
{
    return QUERN__CAST(uint32_t, entity.bits >> 32) & 0xFFFFFFu;
}

/** Returns the tag of the entity's world; 0 for provisional handles and null. */
static inline uint32_t quern_entity_world_tag(quern_entity entity)
{
    return QUERN__CAST(uint32_t, entity.bits >> 56);
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
