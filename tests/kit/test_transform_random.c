/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/kit/transform_setup.h"
#include "tests/support/effort.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <stdlib.h>
#include <string.h>

/* Random programs on several worlds in parallel: at each thread count one world whose frames walk if possible, and one
 * that always sweeps. After each frame all worlds have the same hash, and in the first one each world component has the
 * bits that the naive algorithm computes. */

enum { WORLDS = 8, SLOTS = 600, FRAMES = 60, OPERATIONS = 14 };

static const uint32_t thread_counts[WORLDS] = {1, 2, 3, 8, 1, 2, 3, 8};

typedef struct crowd {
    transform_scene scene;
    quern_entity entities[SLOTS]; /* null: none */
    quern_component disabled;
} crowd;

/* One operation, with the same random numbers in each world. A call that fails (a cycle) fails in all worlds. */
typedef struct operation {
    uint32_t kind, slot, other;
    uint64_t seed;
} operation;

static quern_entity living(const crowd *c, uint32_t slot)
{
    const quern_entity entity = c->entities[slot];
    return quern_entity_is_alive(c->scene.world, entity) ? entity : quern_entity_null();
}

static void toggle(crowd *c, quern_entity entity, quern_component component, const void *value)
{
    quern_world *world = c->scene.world;
    const quern_result result = quern_entity_has(world, entity, component)
                                    ? quern_entity_remove(world, entity, component)
                                    : quern_entity_add(world, entity, component, value);
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
}

static void move_marked(crowd *c, quern_entity entity, const quern_local3 *local)
{
    quern_local3 *value = quern_entity_get(c->scene.world, entity, c->scene.local);
    if (value == NULL || !quern_entity_has(c->scene.world, entity, c->scene.placed)) return;
    *value = *local;
    cr_assert_eq(quern_transform_mark(c->scene.transform, entity), QUERN_OK);
}

static void perform(crowd *c, const operation *op)
{
    transform_scene *scene = &c->scene;
    const quern_local3 local = transform_some_local3(op->seed);
    const quern_entity entity = living(c, op->slot), other = living(c, op->other);
    if (quern_entity_is_null(entity)) {
        c->entities[op->slot] = transform_node3(scene, &local, other);
        return;
    }
    switch (op->kind) {
    case 0:
        quern_entity_destroy(scene->world, entity);
        break;
    case 1:
    case 2: /* fails if it would be a cycle */
        (void)quern_transform_set_parent(scene->transform, entity, other,
                                         op->kind == 1 &&
                                             quern_entity_has(scene->world, entity, scene->local));
        break;
    case 3:
        toggle(c, entity, c->disabled, NULL);
        break;
    case 4: /* its children lose their parent's world, or follow a world that no system computes */
        toggle(c, entity, op->seed % 2 ? scene->local : scene->placed,
               op->seed % 2 ? (void *)&local : NULL);
        break;
    case 5:
        if (quern_entity_has(scene->world, entity, scene->local) ||
            !quern_entity_has(scene->world, entity, scene->placed))
            break;
        {
            quern_world3 fixed;
            quern_world3_place(NULL, &local, &fixed);
            cr_assert_eq(quern_entity_set(scene->world, entity, scene->placed, &fixed), QUERN_OK);
        }
        break;
    case 6:
        if (quern_entity_has(scene->world, entity, scene->local)) transform_set3(scene, entity, &local);
        break;
    default:
        move_marked(c, entity, &local);
        break;
    }
}

/* The loss of both components is not noticed by itself, so the program marks all. */
static void mark_bare_parents(crowd *c)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        const quern_entity entity = living(c, i);
        if (quern_entity_is_null(entity) || quern_entity_has(c->scene.world, entity, c->scene.local) ||
            quern_entity_has(c->scene.world, entity, c->scene.placed))
            continue;
        const quern_local3 local = transform_some_local3(i + 1);
        cr_assert_eq(quern_entity_add(c->scene.world, entity, c->scene.local, &local), QUERN_OK);
        quern_transform_mark_all(c->scene.transform);
    }
}

static void check_worlds(crowd *c, uint64_t seed, uint32_t frame)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        const quern_entity entity = living(c, i);
        if (quern_entity_is_null(entity)) continue;
        quern_world3 expected;
        const quern_world3 *naive = transform_naive3(&c->scene, entity, &expected);
        const quern_world3 *actual = quern_entity_get(c->scene.world, entity, c->scene.placed);
        cr_assert((naive == NULL) == (actual == NULL));
        if (naive != NULL)
            cr_assert_arr_eq(actual, naive, sizeof *naive, "seed %llu, frame %u: entity %u is elsewhere",
                             (unsigned long long)seed, frame, i);
    }
}

static void run_program(uint64_t seed, uint32_t busy_percent)
{
    static crowd crowds[WORLDS];
    uint32_t walked_count = 0, swept_count = 0;
    for (uint32_t w = 0; w < WORLDS; w++) {
        crowds[w] = (crowd){
            .scene = transform_open(&(quern_transform_def){.no_walk = w >= WORLDS / 2}, thread_counts[w])};
        crowds[w].disabled = quern_world_disabled_tag(crowds[w].scene.world);
    }
    random_source random = {seed};
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        uint32_t count = frame == 0 ? SLOTS : random_below(&random, OPERATIONS);
        if (random_chance(&random, busy_percent)) count = SLOTS / 2;
        for (uint32_t i = 0; i < count; i++) {
            const operation op = {.kind = random_below(&random, 12),
                                  .slot = frame == 0 ? i : random_below(&random, SLOTS),
                                  .other = random_below(&random, frame == 0 ? i + 1 : SLOTS),
                                  .seed = random_next(&random)};
            for (uint32_t w = 0; w < WORLDS; w++)
                perform(&crowds[w], &op);
        }
        for (uint32_t w = 0; w < WORLDS; w++) {
            mark_bare_parents(&crowds[w]);
            transform_frame(&crowds[w].scene);
            cr_assert_eq(quern_world_hash(crowds[w].scene.world), quern_world_hash(crowds[0].scene.world),
                         "seed %llu, frame %u, world %u is another", (unsigned long long)seed, frame, w);
        }
        check_worlds(&crowds[0], seed, frame);
        const quern_transform_stats stats = transform_stats(&crowds[0].scene);
        walked_count += !stats.swept && stats.moved_count > 0;
        swept_count += stats.swept;
        for (uint32_t w = 1; w < WORLDS / 2; w++) {
            const quern_transform_stats others = transform_stats(&crowds[w].scene);
            cr_assert_arr_eq(&others, &stats, sizeof stats,
                             "frame %u at another thread count took another way", frame);
        }
    }
    cr_assert_gt(walked_count, 0, "no frame walked");
    cr_assert_gt(swept_count, 0, "no frame swept");
    for (uint32_t w = 0; w < WORLDS; w++)
        transform_close(&crowds[w].scene);
}

Test(transform_random, frames_with_few_changes)
{
    for (uint64_t seed = 1; seed <= effort(6, 6, 3); seed++)
        run_program(seed, 0);
}

Test(transform_random, frames_with_few_and_with_many_changes)
{
    for (uint64_t seed = 11; seed <= effort(14, 14, 12); seed++)
        run_program(seed, 30);
}
