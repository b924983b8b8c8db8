/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_TRANSFORM_H
#define QUERN_KIT_TRANSFORM_H

/** @file
 * Positions of entities in a hierarchy. Link quern::quern_transform, and after it quern::quern.
 *
 * The *local* component of an entity places it relative to its parent (quern_world_parent). Systems of this library
 * compute its *world* component, the place in the world. Without a parent, local and world are the same place.
 *
 *     quern_transform *transform;
 *     quern_transform_register(world, NULL, &transform);
 *     quern_transform_add_systems(transform, schedule, phase);
 *     ...
 *     quern_local3 local = quern_local3_identity();
 *     local.translation[1] = 2;
 *     const quern_component components[] = {quern_transform_local(transform),
 *                                           quern_transform_world(transform)};
 *     const void *values[] = {&local, NULL};
 *     quern_entity_create_with(world, components, values, 2, &hat);
 *     quern_transform_set_parent(transform, hat, head, false);
 *
 * Conventions: a point is a column vector, so world times point is the point in the world, and the world of a child
 * is the world of its parent times its own local. Matrices are stored row by row. A local scales first, then
 * rotates, then translates. A positive angle about an axis rotates the next axis towards the one after it (x to y,
 * y to z, z to x): anticlockwise in right-handed axes. In left-handed axes the numbers are the same. The library
 * assumes no up direction and no unit of length. Angles are in radians.
 *
 * A parent with different scales along its axes shears a rotated child. A world represents shear exactly; a local
 * cannot.
 *
 * docs/kit.md explains when worlds are computed, and the cost. Threads: main, between frames and in exclusive
 * systems, unless a comment says otherwise. */

#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------------------------------------- types */

/** The place of an entity relative to its parent, in three dimensions. All zero is the place of the parent. */
typedef struct quern_local3 {
    float translation[3]; /**< Origin x, y, z. */
    /** A quaternion x, y, z, w of length 1; all zero: no rotation. It is not normalised: another length
     * scales and shears. */
    float rotation[4];
    /** Factors along the entity's own axes; negative mirrors, 0 flattens. All three 0: 1. A very small factor, such
     * as FLT_MIN, shrinks an entity to a point. */
    float scale[3];
} quern_local3;

/** The place of an entity in the world: the upper three rows of a 4x4 matrix with the fourth row 0 0 0 1. */
typedef struct quern_world3 {
    float m[3][4]; /**< m[row][column]: columns 0 to 2 are the entity's axes, column 3 is its origin. */
} quern_world3;

/** The place of an entity relative to its parent, in two dimensions. All zero is the place of the parent. */
typedef struct quern_local2 {
    float position[2]; /**< Origin x, y. */
    float angle;       /**< Rotation from x towards y, in radians. */
    float scale[2];    /**< Factors along the entity's own axes, as in quern_local3. */
} quern_local2;

/** The place of an entity in the world: the upper two rows of a 3x3 matrix with the third row 0 0 1. */
typedef struct quern_world2 {
    float m[2][3]; /**< m[row][column]: columns 0 and 1 are the entity's axes, column 2 is its origin. */
} quern_world2;

/* ---------------------------------------------------------------------------------------- arithmetic */

/* These functions work on plain values and need no ECS world. Any thread may call them at any time. Pointers must
 * not be NULL unless a comment allows it; out may be one of the inputs. Overflow gives infinity, and infinities
 * and NaN propagate as in plain C; nothing traps. The same input gives the same bits each time, NaN included. */

/** Returns a local at the place of its parent: no translation, no rotation, scale 1. */
QUERN_API quern_local3 quern_local3_identity(void);

/** Returns a local with this translation, no rotation, and scale 1. */
QUERN_API quern_local3 quern_local3_at(float x, float y, float z);

/** Computes the world of an entity from its parent's world and its local. parent is NULL without a parent. */
QUERN_API void quern_world3_place(const quern_world3 *parent, const quern_local3 *local, quern_world3 *out);

/** Computes the matrix product outer times inner: applies inner first, then outer. */
QUERN_API void quern_world3_multiply(const quern_world3 *outer, const quern_world3 *inner,
                                     quern_world3 *out);

/** Computes the inverse, in double precision. Returns false and leaves out unchanged if the world is not finite or is
 * flat. A world is flat if its thickness in its thinnest direction is less than about a hundred-thousandth of its
 * length: below an ancestor with a scale of 0, rounding leaves about that much. */
QUERN_API bool quern_world3_invert(const quern_world3 *world, quern_world3 *out);

/** Computes the local that gives `world` under a parent with the world `parent` (NULL without a parent), in double
 * precision. A local cannot shear, so shear is dropped: the first axis keeps its direction, and the second axis
 * stays in its plane with the first. A mirrored world gives a negative scale along x. For a flat world, the axes with
 * a length keep their directions. Returns false and leaves out unchanged if the parent is flat (see
 * quern_world3_invert) or a number is not finite. */
QUERN_API bool quern_world3_split(const quern_world3 *parent, const quern_world3 *world, quern_local3 *out);

/** Transforms a point from the entity's own space into the world. */
QUERN_API void quern_world3_point(const quern_world3 *world, const float point[3], float out[3]);

/** Two-dimensional quern_local3_identity. */
QUERN_API quern_local2 quern_local2_identity(void);

/** Returns a local with this position, angle 0, and scale 1. */
QUERN_API quern_local2 quern_local2_at(float x, float y);

/** Two-dimensional quern_world3_place. */
QUERN_API void quern_world2_place(const quern_world2 *parent, const quern_local2 *local, quern_world2 *out);

/** Two-dimensional quern_world3_multiply. */
QUERN_API void quern_world2_multiply(const quern_world2 *outer, const quern_world2 *inner,
                                     quern_world2 *out);

/** Two-dimensional quern_world3_invert. */
QUERN_API bool quern_world2_invert(const quern_world2 *world, quern_world2 *out);

/** Two-dimensional quern_world3_split. The angle is between -pi and pi. */
QUERN_API bool quern_world2_split(const quern_world2 *parent, const quern_world2 *world, quern_local2 *out);

/** Two-dimensional quern_world3_point. */
QUERN_API void quern_world2_point(const quern_world2 *world, const float point[2], float out[2]);

/* ------------------------------------------------------------------------------------------- entities */

/** The transforms of an ECS world, in three dimensions or in two; see quern_transform_register. */
typedef struct quern_transform quern_transform;

/** Options of quern_transform_register. */
typedef struct quern_transform_def {
    /** Two dimensions: quern_local2 and quern_world2 instead of quern_local3 and quern_world3. A world may
     * register both; they are independent. */
    bool planar QUERN__ZERO;
    bool no_walk QUERN__ZERO; /**< Recompute all worlds every frame; for comparisons, same results. */
    quern_allocator allocator QUERN__ZERO; /**< All zero: quern_allocator_default(). */
} quern_transform_def;

/** Registers the components, under the names of their C types, and the hierarchy (quern_world_parent). def may be
 * NULL for the defaults. Call quern_transform_release on the result before the world is destroyed, and after the
 * schedules with its systems are. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, LAYOUT_MISMATCH, LIMIT, WORLD_LOCKED,
 * OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_transform_register(quern_world *world, const quern_transform_def *def,
                                                quern_transform **out_transform);

/** Releases the queries and the memory of the transforms. The components and their values remain in the world. NULL
 * is allowed. Threads: main, between frames. */
QUERN_API void quern_transform_release(quern_transform *transform);

/** Returns the local component, quern_local3 or quern_local2. Thread-safe. */
QUERN_API quern_component quern_transform_local(const quern_transform *transform);

/** Returns the world component, quern_world3 or quern_world2. Systems read it. If an entity also has a local, only the
 * systems of this library may write its world. Thread-safe. */
QUERN_API quern_component quern_transform_world(const quern_transform *transform);

/** Adds the systems that compute the worlds of all entities with local and world, disabled entities included. If the
 * parent of an entity (quern_world_parent) has a world, the entity is placed relative to it; otherwise its local
 * alone gives its world.
 *
 * One system is exclusive and one has levels. They see the locals that earlier systems of the phase wrote in the
 * same frame, and the effects of commands recorded before them. Call this once per schedule; several schedules may
 * share a world. Errors: those of quern_schedule_add_system. Threads: main, between frames. */
QUERN_API quern_result quern_transform_add_systems(quern_transform *transform, quern_schedule *schedule,
                                                   uint32_t phase);

/** Marks the local of an entity as written. Needed after writing through a pointer from quern_entity_get, which change
 * filters do not notice. The next frame checks this entity and recomputes what has changed.
 *
 * This is the cheapest way to move few entities of many: after quern_entity_set, and after a system that requests the
 * column for writing, the next frame checks all entities of the same chunk. Errors: NULL_ARGUMENT, those of calls on
 * entities; COMPONENT_ABSENT (it lacks local or world). */
QUERN_API quern_result quern_transform_mark(quern_transform *transform, quern_entity entity);

/** Makes the next frame compute all worlds. Only one change needs this call: an entity that stays alive as a parent
 * of others lost its world, and had no local or lost that as well. */
QUERN_API void quern_transform_mark_all(quern_transform *transform);

/** Computes the current world of an entity from its own local and those of its ancestors, up to an ancestor without a
 * local; the world of that ancestor is used. Worlds computed in the last frame are not used. out_world receives a
 * quern_world3 or quern_world2, which may differ by rounding from the result of the next frame. The cost is
 * proportional to the depth. Errors: NULL_ARGUMENT, those of calls on entities, COMPONENT_ABSENT (the entity has no
 * local). */
QUERN_API quern_result quern_transform_compute(const quern_transform *transform, quern_entity entity,
                                               void *out_world);

/** Changes the parent of an entity in quern_world_parent; a null parent makes it a root.
 *
 * Without keep_world, the local stays and the entity moves in the world. With keep_world, the entity keeps its place
 * in the world, as computed by quern_transform_compute, and gets the local that quern_world3_split or
 * quern_world2_split computes: the same world except for rounding and shear. Errors, with nothing changed: those of
 * quern_entity_relate; with keep_world also COMPONENT_ABSENT (the entity has no local) and INVALID_ARGUMENT (the
 * parent is flat by a scale of 0 of its own or of an ancestor, or a number is not finite). */
QUERN_API quern_result quern_transform_set_parent(quern_transform *transform, quern_entity entity,
                                                  quern_entity parent, bool keep_world);

/** Records the change of parent as commands. To keep the place in the world, pass the worlds of the entity and of its
 * new parent, read through terms or lookups; parent_world is NULL if the parent is null or has no world. If world is
 * NULL, the local stays. Errors: those of <quern/commands.h> and of quern_transform_set_parent. */
QUERN_API quern_result quern_transform_record_parent(const quern_transform *transform,
                                                     quern_commands *commands, quern_entity entity,
                                                     quern_entity parent, const void *world,
                                                     const void *parent_world);

/** Statistics of the systems in the last frame. */
typedef struct quern_transform_stats {
    /** Whether the frame computed all worlds instead of only changed ones; then only node_count is exact. */
    bool swept;
    uint64_t node_count;    /**< Entities with local and world. */
    uint64_t changed_count; /**< Entities in chunks that may have changed, and marked entities. */
    uint64_t moved_count;   /**< Entities that were placed again: changed ones and all their descendants. */
    /** Ancestors visited to find which changed entities are below other changed ones; each counts once. */
    uint64_t climbed_count;
} quern_transform_stats;

/** Returns the statistics of the last frame; all 0 before the first frame. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_transform_get_stats(const quern_transform *transform,
                                                 quern_transform_stats *out_stats);

#ifdef __cplusplus
}
#endif

#endif
