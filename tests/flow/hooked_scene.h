/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_FLOW_HOOKED_SCENE_H
#define QUERN_TESTS_FLOW_HOOKED_SCENE_H

/* Components with entity hooks, and a model of what lives outside of the world because of them: an object for each entity
 * with the component, which knows the entity and the value that was set last. The hooks fail the test if they are called
 * for an object that exists already, or does not exist. */

#include "tests/flow/flow_setup.h"
#include "tests/support/tracked.h"

enum { HOOKED_KINDS = 3, HOOKED_SLOTS = 1 << 14 };

typedef struct outside_object {
    quern_entity entity; /* null: there is none in this slot */
    uint64_t value;
} outside_object;

struct hooked_scene;

typedef struct outside {
    struct hooked_scene *scene;
    quern_component component;
    uint32_t kind;
    uint32_t count;
    outside_object objects[HOOKED_SLOTS]; /* by slot of the entity */
} outside;

typedef struct hooked_scene {
    quern_world *world;
    quern_component plain;       /* a number without hooks */
    outside kinds[HOOKED_KINDS]; /* a number, a tag, and a value with hooks of its own */
    tracked_counts counts;       /* of the last kind */
    quern_relation parent;
    quern_component parent_component;
    uint64_t calls, log; /* number of hook calls, and a hash of all of them in their order */
} hooked_scene;

/* Opens a world with the components. The scene must not move. */
void hooked_open(hooked_scene *scene, const quern_allocator *allocator);
void hooked_register(hooked_scene *scene); /* the components again, in a world that has none */

/* Compares the objects with the world. */
void hooked_check(hooked_scene *scene);

/* Destroys the world, after which no object may exist. */
void hooked_close(hooked_scene *scene);

#endif
