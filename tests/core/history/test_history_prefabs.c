/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/history/many.h"

/* Histories together with prefabs and archives: entities that these create are removed by a restore, and
 * restored by another one. */

enum { INSTANCES = 12 };

static uint64_t step(uint64_t seed)
{
    many_change(seed, 150);
    return many_hash();
}

/* ------------------------------------------------------------------------------------------ prefabs */

static quern_prefab capture_tree(void)
{
    const amount value = {7};
    quern_entity root, child;
    quern_prefab prefab;
    must(quern_entity_create_with(many_it.world, (quern_component[]){many_it.amount, many_it.tracked},
                                  (const void *const[]){&value, NULL}, 2, &root));
    for (uint32_t i = 0; i < 3; i++) {
        must(quern_entity_create_with(many_it.world, (quern_component[]){many_it.amount, many_it.wide},
                                      (const void *const[]){&value, NULL}, 2, &child));
        must(quern_entity_relate(many_it.world, child, many_it.parent, root));
    }
    must(quern_entity_set_name(many_it.world, child, "last"));
    must(quern_entity_set_component_enabled(many_it.world, child, many_it.amount, false));
    must(quern_prefab_capture(many_it.world, root, &prefab));
    return prefab;
}

/* Spawns instances by a call and by commands. */
static uint64_t spawn(quern_prefab prefab)
{
    must(quern_prefab_spawn_many(many_it.world, prefab, INSTANCES, NULL, NULL, NULL));
    quern_commands *commands = quern_world_commands(many_it.world);
    for (uint32_t i = 0; i < INSTANCES; i++)
        must(quern_commands_spawn(commands, prefab, NULL, NULL));
    must(quern_world_flush(many_it.world));
    return many_hash();
}

Test(history_prefabs, instances_of_prefabs_are_removed_and_restored)
{
    many_open_world(NULL);
    many_change(1, 200);
    const quern_prefab prefab = capture_tree();
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    const uint64_t before = many_hash();
    const uint64_t spawned = spawn(prefab);
    must(quern_history_save(many_it.history, 1, NULL));
    const uint64_t changed = step(4);
    must(quern_history_save(many_it.history, 2, NULL));
    for (uint32_t turn = 0; turn < 2; turn++) {
        must(quern_history_restore(many_it.history, 0, NULL));
        cr_assert_eq(many_hash(), before);
        cr_assert_eq(spawn(prefab), spawned);
        cr_assert_eq(step(4), changed);
        must(quern_history_restore(many_it.history, 1, NULL));
        cr_assert_eq(many_hash(), spawned);
        cr_assert_eq(step(4), changed);
        must(quern_history_restore(many_it.history, 2, NULL));
        cr_assert_eq(many_hash(), changed);
    }
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
}

Test(history_prefabs, prefabs_themselves_are_not_removed)
{
    many_open_world(NULL);
    many_change(1, 200);
    const quern_prefab first = capture_tree();
    spawn(first);
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    const uint64_t before = many_hash();
    const quern_prefab second = capture_tree();
    const uint32_t member_count = quern_prefab_member_count(many_it.world, second);
    must(quern_prefab_destroy(many_it.world, first));
    step(5);
    must(quern_history_restore(many_it.history, 0, NULL));
    cr_assert_eq(many_hash(), before); /* with the instances of the destroyed prefab */
    must_refuse(UNKNOWN_PREFAB, many_it.world, quern_prefab_spawn(many_it.world, first, NULL, NULL));
    cr_assert_eq(quern_prefab_member_count(many_it.world, second), member_count);
    const uint64_t count = stats_of_world(many_it.world).entity_count;
    spawn(second);
    cr_assert_eq(stats_of_world(many_it.world).entity_count,
                 count + 2 * (uint64_t)INSTANCES * member_count);
    must(quern_history_restore(many_it.history, 0, NULL));
    cr_assert_eq(many_hash(), before);
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
}

/* ----------------------------------------------------------------------------------------- archives */

/* Saves an archive without the components that only hooks can copy. */
static void archive(quern_byte_buffer *out_bytes)
{
    *out_bytes = (quern_byte_buffer){0};
    must(quern_world_save(many_it.world, quern_sink_bytes(out_bytes),
                          &(quern_save_def){.leave_out = {many_it.tracked}}));
}

static uint64_t load(const quern_byte_buffer *bytes)
{
    must(quern_world_load(many_it.world, quern_source_bytes(bytes->bytes, bytes->size_bytes),
                          &(quern_load_def){.drop_taken_names = true}, NULL));
    return many_hash();
}

/* Loads the archive, restores the frame before, loads it again, and restores the frame with the loaded
 * entities. */
static void load_and_take_back(const quern_byte_buffer *bytes)
{
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    const uint64_t before = many_hash();
    const uint64_t loaded = load(bytes);
    cr_assert_neq(loaded, before);
    must(quern_history_save(many_it.history, 1, NULL));
    const uint64_t changed = step(9);
    for (uint32_t turn = 0; turn < 2; turn++) {
        must(quern_history_restore(many_it.history, 0, NULL));
        cr_assert_eq(many_hash(), before);
        cr_assert_eq(load(bytes), loaded);
        cr_assert_eq(step(9), changed);
        must(quern_history_restore(many_it.history, 1, NULL));
        cr_assert_eq(many_hash(), loaded);
        cr_assert_eq(step(9), changed);
    }
}

Test(history_prefabs, loaded_entities_are_removed_by_a_restore)
{
    quern_byte_buffer bytes;
    many_open_world(NULL);
    many_change(2, 500);
    archive(&bytes);
    many_change(3, 100);
    load_and_take_back(&bytes);
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
    quern_byte_buffer_release(&bytes);
}

Test(history_prefabs, loading_into_an_empty_world_is_undone_by_a_restore)
{
    quern_byte_buffer bytes;
    many_open_world(NULL);
    many_change(2, 500);
    archive(&bytes);
    many_close_world();
    many_open_world(NULL);
    load_and_take_back(&bytes);
    many_close_world();
    cr_assert_eq(tracked_live_count(&many_it.counts), 0);
    quern_byte_buffer_release(&bytes);
}

Test(history_prefabs, a_delta_contains_the_loaded_entities)
{
    quern_byte_buffer bytes;
    quern_delta *delta;
    uint32_t count;
    uint64_t created_count = 0, destroyed_count = 0;
    many_open_world(NULL);
    many_change(2, 300);
    archive(&bytes);
    many_open_history(NULL);
    must(quern_history_save(many_it.history, 0, NULL));
    const uint64_t entity_count = stats_of_world(many_it.world).entity_count;
    load(&bytes);
    must(quern_history_save(many_it.history, 1, NULL));
    must(quern_delta_create(many_it.history, 0, 1, &delta));
    const quern_delta_batch *batches = quern_delta_batches(delta, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (batches[i].kind == QUERN_DELTA_CREATED) created_count += batches[i].count;
        destroyed_count += batches[i].kind == QUERN_DELTA_DESTROYED;
    }
    cr_assert(created_count == entity_count && destroyed_count == 0);
    quern_delta_destroy(delta);
    many_close_world();
    quern_byte_buffer_release(&bytes);
}
