/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_ID_H
#define QUERN_ID_H

/* Handles: small values, passed by copy. All zero is null for each of them. Those of a world carry its tag,
 * so that one used with another world is refused instead of hitting a stranger. */

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An entity. Bits, from the lowest: 32 index, 24 generation (never 0), 8 world tag (1 to 255).
 *
 * The index depends on what is done with the world alone. Tag and generation do not: a world's slots begin
 * with a generation that differs between worlds of one process which have the same tag one after the other,
 * and goes on by one (from 16,777,215 to 1) with each entity that uses the slot again. So a handle that was
 * kept is not good in any of the next million worlds, as long as none uses a slot more than 4096 times. Which life of its slot an
 * entity is, from 1, does depend on the world alone: quern_entity_life says it. quern_world_hash looks at
 * index and life.
 *
 * A tag of 0 with a generation marks a *provisional* handle, made by quern_commands_create: it is good
 * in later commands of the same stream and inside described fields of their values, until the next sync
 * point turns it into a real one. */
typedef struct quern_entity {
    uint64_t bits;
} quern_entity;

/* A component type of one world. Bits: 16 index + 1, 8 unused, 8 world tag. */
typedef struct quern_component {
    uint32_t bits;
} quern_component;

/* A resource (singleton) of one world. Bits as in quern_component. */
typedef struct quern_resource {
    uint32_t bits;
} quern_resource;

/* A system of one schedule: index + 1. It does not know which schedule. */
typedef struct quern_system {
    uint32_t bits;
} quern_system;

static inline quern_entity quern_entity_null(void)
{
    quern_entity entity = {0};
    return entity;
}

static inline bool quern_entity_is_null(quern_entity entity)
{
    return entity.bits == 0;
}

static inline bool quern_entity_equal(quern_entity a, quern_entity b)
{
    return a.bits == b.bits;
}

static inline uint32_t quern_entity_index(quern_entity entity)
{
    return (uint32_t)entity.bits;
}

static inline uint32_t quern_entity_generation(quern_entity entity)
{
    return (uint32_t)(entity.bits >> 32) & 0xFFFFFFu;
}

static inline uint32_t quern_entity_world_tag(quern_entity entity)
{
    return (uint32_t)(entity.bits >> 56);
}

static inline bool quern_entity_is_provisional(quern_entity entity)
{
    return entity.bits != 0 && quern_entity_world_tag(entity) == 0;
}

static inline bool quern_component_is_null(quern_component component)
{
    return component.bits == 0;
}

static inline bool quern_component_equal(quern_component a, quern_component b)
{
    return a.bits == b.bits;
}

#ifdef __cplusplus
}
#endif

#endif
