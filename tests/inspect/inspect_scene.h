/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_INSPECT_SCENE_H
#define QUERN_TESTS_INSPECT_SCENE_H

/* A small program with an inspector: moving bodies, a named tree, an event, a resource, a history. */

#include "inspect/inspect.h"

#include <quern/quern.h>

typedef struct Body {
    float x, speed;
    int32_t level;
} Body;

typedef struct Bump {
    quern_entity body;
    uint32_t frame;
} Bump;

typedef struct Rules {
    float step;
} Rules;

typedef struct inspect_scene {
    quern_world *world;
    quern_schedule *schedule;
    quern_history *history;
    quern_trace *trace;
    quern_inspector *inspector;
    quern_component body, marker;
    quern_resource rules;
    quern_event bump;
    quern_relation parent;
    quern_entity root, child;
    bool destroys; /* the second system also destroys an entity, so that its other commands are dropped */
    uint64_t frame;
} inspect_scene;

/* Creates the world with `count` bodies besides the tree. allocator NULL: the default allocator, for the inspector. */
void inspect_scene_open(inspect_scene *scene, uint32_t count, const quern_allocator *allocator);
void inspect_scene_close(inspect_scene *scene);
/* The same types and systems, without entities and without an inspector: what loads an archive of the scene. */
void inspect_scene_open_empty(inspect_scene *scene);
void inspect_scene_close_empty(inspect_scene *scene);

/* What a program does: an update and, unless paused, a frame. Returns whether a frame was run. */
bool inspect_scene_turn(inspect_scene *scene);

/* Sends a request and returns the answer, which is valid until the next request. */
const char *inspect_scene_ask(inspect_scene *scene, const char *method, const char *path,
                              const char *arguments, uint32_t *out_status);
/* The same, and the answer must have this status. */
const char *inspect_get(inspect_scene *scene, const char *path, const char *arguments);
void inspect_post(inspect_scene *scene, const char *path, const char *arguments);
void inspect_scene_release_text(void);

#endif
