/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Histories of worlds with several targets per source: every restored frame has the hash that it had when it was saved,
 * also after trimming, with large sets and when out of memory. test_delta_calls applies deltas of edges. */

#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

enum { ENTITIES = 400, KEPT = 8, FRAMES = 80 };

static failing_allocator *memory;
static quern_world *world;
static quern_relation likes, owns, late;
static quern_history *history;
static quern_entity entities[ENTITIES];
static uint64_t hashes[FRAMES], edge_counts[FRAMES];
static random_source dice;

static quern_relation register_many(const char *name, quern_target_policy policy)
{
    quern_relation relation = {0};
    must(quern_relation_register(
        world, &(quern_relation_def){.name = name, .on_target_destroyed = policy, .many = true},
        &relation));
    return relation;
}

static void open_history(void)
{
    memory = failing_allocator_create();
    dice = (random_source){5};
    must(quern_world_create(&(quern_world_def){.allocator = failing_allocator_interface(memory)}, &world));
    likes = register_many("likes", QUERN_TARGET_UNRELATES);
    owns = register_many("owns", QUERN_TARGET_DESTROYS_SOURCE);
    late = likes;
    must(quern_history_create(
        world, &(quern_history_def){.frame_count = KEPT, .allocator = failing_allocator_interface(memory)},
        &history));
    for (uint32_t i = 0; i < ENTITIES; i++)
        entities[i] = setup_entity(world);
}

static void close_history(void)
{
    quern_history_destroy(history);
    quern_world_destroy(world);
    failing_allocator_close(memory);
}

TestSuite(history_edges, .init = open_history, .fini = close_history);

static quern_entity *pick(void)
{
    return &entities[random_below(&dice, ENTITIES)];
}

/* Replaces entities that frames or cascades have destroyed. */
static void revive(void)
{
    for (uint32_t i = 0; i < ENTITIES; i++)
        if (!quern_entity_is_alive(world, entities[i])) must(quern_entity_create(world, &entities[i]));
}

static void change_one(void)
{
    quern_entity *source = pick(), *target = pick();
    const quern_relation relation =
        random_chance(&dice, 80) ? (random_chance(&dice, 80) ? likes : late) : owns;
    if (quern_entity_equal(*source, *target)) return;
    switch (random_below(&dice, 12)) {
    case 0:
        if (random_chance(&dice, 20)) must(quern_entity_destroy(world, *source));
        revive();
        break;
    case 1:
        (void)quern_entity_unrelate(world, *source, relation);
        break;
    case 2:
    case 3:
        (void)quern_entity_unrelate_from(world, *source, relation,
                                         quern_entity_target(world, *source, relation));
        break;
    default:
        must(quern_entity_relate(world, *source, relation, *target));
        break;
    }
}

static void save(uint64_t frame)
{
    must(quern_history_save(history, frame, NULL));
    hashes[frame] = quern_world_hash(world);
    edge_counts[frame] = stats_of_world(world).edge_count;
}

static void expect_frame(uint64_t frame)
{
    assert_valid(world);
    cr_assert_eq(quern_world_hash(world), hashes[frame]);
    cr_assert_eq(stats_of_world(world).edge_count, edge_counts[frame]);
}

/* Restores a random kept frame while allocations fail. A failed restore changes nothing. */
static void restore_one(uint64_t newest)
{
    uint64_t oldest;
    quern_result result;
    cr_assert(quern_history_get_frames(history, &oldest, NULL));
    const uint64_t frame = oldest + random_below(&dice, (uint32_t)(newest - oldest + 1));
    failing_allocator_fail_often(memory, random_below(&dice, 2) * 30, frame);
    do {
        const uint64_t hash = quern_world_hash(world);
        result = quern_history_restore(history, frame, NULL);
        if (result != QUERN_OK) cr_assert_eq(quern_world_hash(world), hash);
    } while (result == QUERN_ERROR_OUT_OF_MEMORY);
    failing_allocator_heal(memory);
    must(result);
    expect_frame(frame);
}

Test(history_edges, restored_frames_have_their_edges)
{
    for (uint64_t frame = 0; frame < FRAMES; frame++) {
        revive();
        for (uint32_t i = random_below(&dice, 200); i > 0; i--)
            change_one();
        if (random_chance(&dice, 20)) must(quern_world_trim(world));
        if (frame == 20) late = register_many("late", QUERN_TARGET_UNRELATES);
        save(frame);
        for (uint32_t i = random_below(&dice, 3); i > 0; i--) {
            revive();
            for (uint32_t k = random_below(&dice, 30); k > 0; k--)
                change_one();
            restore_one(frame);
        }
        must(quern_history_restore(history, frame, NULL));
    }
}

/* Sets with directories, and the memory of a history that changes no edge. */
Test(history_edges, unchanged_edges_are_shared)
{
    enum { FANS = 3000 };
    static quern_entity fans[FANS];
    quern_history_stats before, after;
    for (uint32_t i = 0; i < FANS; i++) {
        fans[i] = setup_entity(world);
        must(quern_entity_relate(world, fans[i], likes, entities[0]));
    }
    save(0);
    must(quern_history_get_stats(history, &before));
    save(1);
    must(quern_history_get_stats(history, &after));
    cr_assert_lt(after.used_bytes - before.used_bytes, 4096u);
    for (uint32_t i = 0; i < FANS; i += 2)
        must(quern_entity_unrelate(world, fans[i], likes));
    save(2);
    must(quern_entity_destroy(world, entities[0]));
    for (uint64_t i = 0; i < 3; i++) {
        must(quern_history_restore(history, i, NULL));
        expect_frame(i);
        cr_assert_eq(quern_entity_source_count(world, entities[0], likes), i < 2 ? FANS : FANS / 2);
    }
}

/* A save that fails leaves nothing behind: close_history counts the memory. */
Test(history_edges, saves_without_memory_change_nothing)
{
    for (uint32_t i = 1; i < ENTITIES; i++)
        must(quern_entity_relate(world, entities[i], likes, entities[i / 2]));
    const uint64_t hash = quern_world_hash(world);
    quern_result result;
    uint32_t failures = 0;
    do {
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + 1 + failures);
        result = quern_history_save(history, 0, NULL);
        failing_allocator_heal(memory);
        cr_assert_eq(quern_world_hash(world), hash);
        failures += result == QUERN_ERROR_OUT_OF_MEMORY;
    } while (result == QUERN_ERROR_OUT_OF_MEMORY);
    must(result);
    cr_assert_gt(failures, 0u);
    must(quern_entity_unrelate(world, entities[1], likes));
    must(quern_history_restore(history, 0, NULL));
    cr_assert_eq(quern_world_hash(world), hash);
}

/* Sets need memory again after all of it was given back. */
Test(history_edges, restores_without_memory_change_nothing)
{
    enum { MANY = 1100 }; /* more than a block */
    static quern_entity targets[MANY];
    uint32_t failures = 0;
    for (uint32_t i = 0; i < MANY; i++)
        targets[i] = setup_entity(world);
    for (quern_result result = QUERN_ERROR_OUT_OF_MEMORY; result != QUERN_OK; failures++) {
        for (uint32_t i = 0; i < MANY; i++)
            must(quern_entity_relate(world, entities[0], likes, targets[i]));
        must(quern_history_save(history, 1, NULL));
        const uint64_t saved = quern_world_hash(world);
        must(quern_entity_unrelate(world, entities[0], likes));
        must(quern_world_trim(world));
        const uint64_t hash = quern_world_hash(world);
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + 1 + failures);
        result = quern_history_restore(history, 1, NULL);
        failing_allocator_heal(memory);
        cr_assert_eq(quern_world_hash(world), result == QUERN_OK ? saved : hash);
        assert_valid(world);
    }
    cr_assert_gt(failures, 2u);
}
