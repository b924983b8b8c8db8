/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_TRANSFORM_SETUP_H
#define QUERN_TESTS_TRANSFORM_SETUP_H

/* A world with transforms and a schedule, and a naive algorithm that computes worlds. */

#include "kit/transform.h"

typedef struct transform_scene {
    quern_world *world;
    quern_transform *transform;
    quern_schedule *schedule;
    quern_jobs *jobs; /* NULL: only the calling thread */
    quern_component local, placed;
    quern_relation parent;
} transform_scene;

/* These functions fail the test on an error. thread_count 0: without a pool. def may be NULL. */
transform_scene transform_open(const quern_transform_def *def, uint32_t thread_count);
void transform_close(transform_scene *scene);
void transform_frame(transform_scene *scene);
quern_transform_stats transform_stats(const transform_scene *scene);

/* Creates an entity with local and world; parent may be null. */
quern_entity transform_node3(transform_scene *scene, const quern_local3 *local, quern_entity parent);
void transform_set3(transform_scene *scene, quern_entity entity, const quern_local3 *local);
/* Returns the statistics of the last frame. */
quern_world3 transform_world3(transform_scene *scene, quern_entity entity);

void transform_must(quern_result result);
/* Asserts that the world of an entity has the bits that the naive algorithm computes. */
void transform_assert_right(transform_scene *scene, quern_entity entity);
/* Asserts that the last frame walked and placed so many nodes. */
void transform_assert_moved(const transform_scene *scene, uint64_t count);

/* Computes the world of an entity recursively from its ancestors, with the exact bits. NULL: it is not placed. */
const quern_world3 *transform_naive3(transform_scene *scene, quern_entity entity, quern_world3 *out);

/* Returns a local that differs for each seed: translated, rotated, scaled differently along the axes. */
quern_local3 transform_some_local3(uint64_t seed);

#endif
