/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_KIT_TRANSFORM_H
#define QUERN_KIT_TRANSFORM_H

/** @file
 * Where things are, when they hang on other things: link quern::quern_transform, and after it quern::quern.
 *
 * An entity with a *local* says where it is in the space of its parent (quern_world_parent); systems of this
 * library keep in its *world* where that is in the world. Without a parent, both are the same place.
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
 * Conventions: a point is a column, so a world times a point is the point in the world, and parent times
 * child is the child's. Worlds lie in memory row by row. A local scales first, then rotates, then moves. A
 * positive angle about an axis turns the next axis towards the one after it (x to y, y to z, z to x), seen
 * with right-handed axes as anticlockwise; with left-handed axes all is the same numbers. Nothing here
 * knows which way is up, or which unit a length has. Angles are in radians.
 *
 * A parent that is scaled differently along its axes shears a child that is rotated. A world holds that
 * exactly; a local cannot.
 *
 * docs/kit.md explains when worlds are computed, and what it costs. Threads: where a comment does not say
 * otherwise, main, between frames and in exclusive systems. */

#include <quern/quern.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------------------------------------- types */

/** Where an entity is in the space of its parent, in three dimensions. All zero is a point: see
 * quern_local3_identity. */
typedef struct quern_local3 {
    float translation[3]; /**< x, y, z of its origin. */
    /** A quaternion x, y, z, w of length 1; all zero: not rotated. Other lengths are not normalised: they
     * scale and shear. */
    float rotation[4];
    float scale[3]; /**< Along its own axes; negative mirrors, 0 flattens. */
} quern_local3;

/** Where an entity is in the world: the upper three rows of the matrix, whose fourth is 0 0 0 1. */
typedef struct quern_world3 {
    float m[3][4]; /**< m[row][column]: columns 0 to 2 are the axes of the entity, column 3 its origin. */
} quern_world3;

/** Where an entity is in the space of its parent, in two dimensions. All zero is a point. */
typedef struct quern_local2 {
    float position[2]; /**< x, y of its origin. */
    float angle;       /**< From x towards y. */
    float scale[2];    /**< Along its own axes; negative mirrors, 0 flattens. */
} quern_local2;

/** Where an entity is in the world: the upper two rows of the matrix, whose third is 0 0 1. */
typedef struct quern_world2 {
    float m[2][3]; /**< m[row][column]: columns 0 and 1 are the axes of the entity, column 2 its origin. */
} quern_world2;

/* --------------------------------------------------------------------------------------------- maths */

/* These work on plain values and know no world of entities. They may be called anywhere, by any thread;
 * pointers must not be NULL unless said, and out may be the same as an input. What is computed from finite
 * numbers that are too large is infinite, and what is computed from infinite ones and NaN spreads to
 * wherever it is used, as in plain C; nothing traps. The same input gives the same bits each time, NaN
 * included. */

/** Returns a local that is where its parent is: not moved, not rotated, scale 1. */
QUERN_API quern_local3 quern_local3_identity(void);

/** Computes the world of an entity from its parent's, which is NULL without one. */
QUERN_API void quern_world3_place(const quern_world3 *parent, const quern_local3 *local, quern_world3 *out);

/** Computes outer times inner: what inner does first, and then outer. */
QUERN_API void quern_world3_multiply(const quern_world3 *outer, const quern_world3 *inner,
                                     quern_world3 *out);

/** Computes the inverse, in double precision. Returns false, with out as it was, if there is none: the world
 * is not finite, or flat. A world is flat if it is less than about a hundred-thousandth as thick, in its thinnest
 * direction, as it is long: where an ancestor has a scale of 0, rounding leaves that much or less. */
QUERN_API bool quern_world3_invert(const quern_world3 *world, quern_world3 *out);

/** Finds the local that gives this world under a parent with that one, which is NULL without one; in double
 * precision. What no local can be, shear, is left out: the first axis keeps its direction, and the second
 * its plane with the first. What is mirrored has a negative scale along x. The rotation of what is flat is
 * such that its axes, as far as they have a length, keep their directions. Returns false, with out as it
 * was, when there is none: the parent is flat as for quern_world3_invert, or a number is not finite. */
QUERN_API bool quern_world3_split(const quern_world3 *parent, const quern_world3 *world, quern_local3 *out);

/** Computes where a point of an entity's own space is in the world. */
QUERN_API void quern_world3_point(const quern_world3 *world, const float point[3], float out[3]);

/** As quern_local3_identity, in two dimensions. */
QUERN_API quern_local2 quern_local2_identity(void);

/** As quern_world3_place, in two dimensions. Its bits are those of the C library's sinf and cosf. */
QUERN_API void quern_world2_place(const quern_world2 *parent, const quern_local2 *local, quern_world2 *out);

/** As quern_world3_multiply, in two dimensions. */
QUERN_API void quern_world2_multiply(const quern_world2 *outer, const quern_world2 *inner,
                                     quern_world2 *out);

/** As quern_world3_invert, in two dimensions. */
QUERN_API bool quern_world2_invert(const quern_world2 *world, quern_world2 *out);

/** As quern_world3_split, in two dimensions. The angle is between -pi and pi. */
QUERN_API bool quern_world2_split(const quern_world2 *parent, const quern_world2 *world, quern_local2 *out);

/** As quern_world3_point, in two dimensions. */
QUERN_API void quern_world2_point(const quern_world2 *world, const float point[2], float out[2]);

/* ------------------------------------------------------------------------------------------- entities */

/** The transforms of a world, in three dimensions or in two; see quern_transform_register. */
typedef struct quern_transform quern_transform;

/** Describes what to register. */
typedef struct quern_transform_def {
    /** Two dimensions: quern_local2 and quern_world2, in place of quern_local3 and quern_world3. A world
     * may have both, which know nothing of each other. */
    bool planar QUERN__ZERO;
    bool no_walk QUERN__ZERO;              /**< Always sweeps. For comparisons: results are the same. */
    quern_allocator allocator QUERN__ZERO; /**< All zero: quern_allocator_default(). */
} quern_transform_def;

/** Registers the components, named as their C types, and the hierarchy (quern_world_parent). def may be
 * NULL for the defaults. What is returned must be released before the world is destroyed, and after the
 * schedules that have its systems. Errors: NULL_ARGUMENT, INVALID_ARGUMENT, LAYOUT_MISMATCH, LIMIT,
 * WORLD_LOCKED, OUT_OF_MEMORY. Threads: main, between frames. */
QUERN_API quern_result quern_transform_register(quern_world *world, const quern_transform_def *def,
                                                quern_transform **out_transform);

/** Releases what the world's components are kept up to date with; they and their values stay. NULL is
 * allowed. Threads: main, between frames. */
QUERN_API void quern_transform_release(quern_transform *transform);

/** Returns the component that says where entities are in the space of their parents: quern_local3 or
 * quern_local2. Threads: any. */
QUERN_API quern_component quern_transform_local(const quern_transform *transform);

/** Returns the component that says where entities are in the world: quern_world3 or quern_world2. Systems
 * read it. Nobody but the systems of this library writes the world of an entity that has a local, too.
 * Threads: any. */
QUERN_API quern_component quern_transform_world(const quern_transform *transform);

/** Adds the systems that compute the worlds of all entities with local and world, disabled ones included.
 * An entity whose target in quern_world_parent has a world is placed by that, and any other by its local
 * alone.
 *
 * They are an exclusive system and one with levels. What systems before them in the order of the phase have
 * written to locals counts in the same frame; commands that were recorded before them, too. A schedule gets
 * them once, a world by as many schedules as it likes. Errors: those of quern_schedule_add_system. Threads:
 * main, between frames. */
QUERN_API quern_result quern_transform_add_systems(quern_transform *transform, quern_schedule *schedule,
                                                   uint32_t phase);

/** Says that the local of an entity was written through a pointer from quern_entity_get, which change
 * filters do not notice. The next frame then looks at this entity, and computes what has changed.
 *
 * The cheapest way to move few of many: after quern_entity_set, and after a system that asks for the column
 * to write, all entities of the same chunk are looked at. Errors: NULL_ARGUMENT, and those of entities;
 * COMPONENT_ABSENT (it lacks local or world). */
QUERN_API quern_result quern_transform_mark(quern_transform *transform, quern_entity entity);

/** Makes the next frame compute all worlds. Only one change is not noticed otherwise: that an entity which
 * has no local, or loses it as well, has lost its world, and lives on as the parent of others. */
QUERN_API void quern_transform_mark_all(quern_transform *transform);

/** Computes where an entity is now, from the locals of it and its ancestors, and not from worlds that are as
 * old as the last frame, but for that of an ancestor that has no local. out gets a quern_world3 or
 * quern_world2, which may differ from what the next frame computes by rounding. Takes time by depth.
 * Errors: NULL_ARGUMENT, those of entities, COMPONENT_ABSENT (it has no local). */
QUERN_API quern_result quern_transform_compute(const quern_transform *transform, quern_entity entity,
                                               void *out_world);

/** Hangs an entity on another, or on none where parent is null, in quern_world_parent.
 *
 * Without keep_world its local stays as it is, so it jumps. With keep_world it stays where it is, as
 * quern_transform_compute sees it, and its local becomes what quern_world3_split or quern_world2_split
 * finds: up to rounding, and up to shear, the same world. Errors, with nothing changed: those of
 * quern_entity_relate; with keep_world also COMPONENT_ABSENT (the entity has no local) and INVALID_ARGUMENT
 * (the parent is flat, by a scale of 0 of its own or of an ancestor, or something is not finite). */
QUERN_API quern_result quern_transform_set_parent(quern_transform *transform, quern_entity entity,
                                                  quern_entity parent, bool keep_world);

/** Records the same as commands. To keep its place, give the worlds of the entity and of its new parent, as
 * terms or lookups have them; parent_world is NULL where the parent is null or has no world. With world
 * NULL its local stays as it is. Errors: those of <quern/commands.h>, and as quern_transform_set_parent. */
QUERN_API quern_result quern_transform_record_parent(const quern_transform *transform,
                                                     quern_commands *commands, quern_entity entity,
                                                     quern_entity parent, const void *world,
                                                     const void *parent_world);

/** What the systems did in the last frame. */
typedef struct quern_transform_stats {
    bool swept;             /**< All worlds were computed. Otherwise: */
    uint64_t node_count;    /**< Entities with local and world. */
    uint64_t changed_count; /**< Entities in chunks that may have changed, and marked ones. */
    uint64_t moved_count;   /**< Entities that were placed anew: changed ones and all below them. */
    /** Ancestors that were visited to find out which changed entities are below others; each counts once. */
    uint64_t climbed_count;
} quern_transform_stats;

/** Returns what the systems did in the last frame; all 0 before the first. Errors: NULL_ARGUMENT. */
QUERN_API quern_result quern_transform_get_stats(const quern_transform *transform,
                                                 quern_transform_stats *out_stats);

#ifdef __cplusplus
}
#endif

#endif
