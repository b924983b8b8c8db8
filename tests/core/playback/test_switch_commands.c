/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <stdio.h>
#include <string.h>

/* Commands that disable and enable trees. Random programs are recorded in one world, and called immediately, in the same
 * order, in another one: both must have the same trees and states. */

typedef struct scene {
    quern_world *world;
    quern_component number, tag;
    quern_relation parent;
} scene;

static void open_scene(scene *it, const quern_allocator *allocator)
{
    quern_world_def def = {0};
    if (allocator != NULL) def.allocator = *allocator;
    must(quern_world_create(&def, &it->world));
    it->number = setup_component(it->world, "number", 4, 4);
    it->tag = quern_world_disabled_tag(it->world);
    it->parent = quern_world_parent(it->world);
}

static quern_entity make(const scene *it, uint32_t number, quern_entity parent)
{
    quern_entity entity;
    const quern_component list[] = {it->number, quern_relation_component(it->parent)};
    const void *const values[] = {&number, &parent};
    must(quern_entity_create_with(it->world, list, values, quern_entity_is_null(parent) ? 1 : 2, &entity));
    return entity;
}

static quern_commands *recorder(const scene *it)
{
    quern_commands *commands = quern_world_commands(it->world);
    cr_assert_not_null(commands, "%s", quern_error_message());
    return commands;
}

static void close_scene(const scene *it)
{
    assert_valid(it->world);
    quern_world_destroy(it->world);
}

/* ---------------------------------------------------------------------------------------- single cases */

Test(switch_commands, a_tree_is_switched_at_the_sync_point)
{
    scene it;
    open_scene(&it, NULL);
    const quern_entity root = make(&it, 0, quern_entity_null()), child = make(&it, 1, root),
                       below = make(&it, 2, child);
    must(quern_commands_set_enabled(recorder(&it), root, false));
    cr_assert(quern_entity_is_enabled(it.world, below));
    must(quern_world_flush(it.world));
    cr_assert_not(quern_entity_is_enabled(it.world, root));
    cr_assert_not(quern_entity_is_enabled(it.world, below));
    must(quern_commands_set_enabled(recorder(&it), child, false));
    must(quern_commands_set_enabled(recorder(&it), root, true));
    must(quern_world_flush(it.world));
    cr_assert(quern_entity_is_enabled(it.world, root));
    cr_assert_not(quern_entity_is_enabled(it.world, child)); /* by itself */
    cr_assert_not(quern_entity_is_enabled(it.world, below));
    close_scene(&it);
}

Test(switch_commands, created_and_spawned_trees_are_switched)
{
    scene it;
    open_scene(&it, NULL);
    const quern_entity root = make(&it, 0, quern_entity_null());
    make(&it, 1, root);
    quern_prefab prefab;
    must(quern_prefab_capture(it.world, root, &prefab));
    quern_commands *commands = recorder(&it);
    quern_entity spawned, created = record_entity(commands);
    must(quern_commands_spawn(commands, prefab, NULL, &spawned));
    must(quern_commands_relate(commands, spawned, it.parent, created));
    must(quern_commands_set_enabled(commands, created, false));
    must(quern_world_flush(it.world));
    const quern_term off = quern_term_with(it.tag);
    quern_query *query = setup_query(it.world, &off, 1);
    cr_assert_eq(quern_query_count(query), 3);
    quern_query_destroy(query);
    close_scene(&it);
}

Test(switch_commands, wrong_calls_are_refused)
{
    quern_world *world = setup_world();
    const quern_entity entity = setup_entity(world);
    must_refuse(INVALID_ARGUMENT, world,
                quern_commands_set_enabled(quern_world_commands(world), entity, false));
    cr_assert_not_null(strstr(quern_error_message(), "quern_world_disabled_tag"));
    must_refuse(NULL_ARGUMENT, world, quern_commands_set_enabled(NULL, entity, false));
    quern_world_disabled_tag(world);
    must_refuse(NULL_ENTITY, world,
                quern_commands_set_enabled(quern_world_commands(world), quern_entity_null(), false));
    quern_world_destroy(world);
}

Test(switch_commands, commands_on_destroyed_entities_are_dropped)
{
    scene it;
    quern_flush_stats stats;
    open_scene(&it, NULL);
    const quern_entity root = make(&it, 0, quern_entity_null()), child = make(&it, 1, root);
    must(quern_commands_destroy(recorder(&it), root)); /* and the child with it */
    must(quern_commands_set_enabled(recorder(&it), child, false));
    must(quern_world_flush(it.world));
    must(quern_world_get_flush_stats(it.world, &stats));
    cr_assert_eq(stats.dropped_count, 1);
    cr_assert_eq(stats.command_count, 2);
    close_scene(&it);
}

/* Gives the entity as many components as it can have, so that it cannot have the tag. */
static void fill_up(const scene *it, quern_entity entity)
{
    uint32_t count = quern_entity_list_components(it->world, entity, NULL, 0);
    for (; count < QUERN_MAX_ENTITY_COMPONENTS; count++) {
        char name[16];
        (void)snprintf(name, sizeof name, "filler %u", count);
        must(quern_entity_add(it->world, entity, setup_tag(it->world, name), NULL));
    }
}

Test(switch_commands, an_entity_without_room_for_the_tag_remains_enabled_with_what_is_below)
{
    scene it;
    quern_flush_stats stats;
    open_scene(&it, NULL);
    const quern_entity root = make(&it, 0, quern_entity_null()), full = make(&it, 1, root),
                       other = make(&it, 2, root), below = make(&it, 3, full);
    fill_up(&it, full);
    must(quern_commands_set_enabled(recorder(&it), root, false));
    must(quern_commands_add(recorder(&it), full, it.tag, NULL));
    cr_assert_eq(quern_world_flush(it.world), QUERN_ERROR_TOO_MANY_COMPONENTS);
    must(quern_world_get_flush_stats(it.world, &stats));
    cr_assert_not(quern_entity_is_enabled(it.world, root));
    cr_assert_not(quern_entity_is_enabled(it.world, other));
    cr_assert(quern_entity_is_enabled(it.world, full));
    cr_assert(quern_entity_is_enabled(it.world, below));
    close_scene(&it);
}

/* --------------------------------------------------------------------------------------- random programs */

enum { ENTITY_COUNT = 24, CREATE_COUNT = 3, ROUND_COUNT = 40 };

/* The same program in two worlds. `entities` of the first world are provisional while they are created by commands. */
typedef struct twin {
    scene recorded, immediate;
    quern_entity of_recorded[ENTITY_COUNT], of_immediate[ENTITY_COUNT];
} twin;

static quern_entity random_known(random_source *random, const quern_entity *entities, uint32_t *out_index)
{
    do
        *out_index = random_below(random, ENTITY_COUNT);
    while (quern_entity_is_null(entities[*out_index]));
    return entities[*out_index];
}

static void create(twin *it, random_source *random, quern_commands *commands, uint32_t i)
{
    const bool is_off = random_chance(random, 30);
    const quern_component lists[2][2] = {{it->recorded.number, it->recorded.tag},
                                         {it->immediate.number, it->immediate.tag}};
    const void *const values[] = {&i, NULL};
    it->of_recorded[i] = record_entity_with(commands, lists[0], values, 1 + is_off);
    must(quern_entity_create_with(it->immediate.world, lists[1], values, 1 + is_off, &it->of_immediate[i]));
}

static void act(twin *it, random_source *random, quern_commands *commands)
{
    uint32_t a, b;
    const quern_entity entity = random_known(random, it->of_recorded, &a);
    const quern_entity other = random_known(random, it->of_recorded, &b);
    quern_world *world = it->immediate.world;
    if (!quern_entity_is_alive(world, it->of_immediate[a]) ||
        !quern_entity_is_alive(world, it->of_immediate[b]))
        return;
    const uint32_t roll = random_below(random, 10);
    if (roll < 5) {
        const bool enables = random_chance(random, 50);
        must(quern_commands_set_enabled(commands, entity, enables));
        must(quern_entity_set_enabled(world, it->of_immediate[a], enables));
    } else if (roll < 7 && a != b) {
        must(quern_commands_relate(commands, entity, it->recorded.parent, other));
        (void)quern_entity_relate(world, it->of_immediate[a], it->immediate.parent, it->of_immediate[b]);
    } else if (roll == 7) {
        must(quern_commands_add(commands, entity, it->recorded.tag, NULL));
        (void)quern_entity_add(world, it->of_immediate[a], it->immediate.tag, NULL);
    } else if (roll == 8) {
        must(quern_commands_remove(commands, entity, it->recorded.tag));
        (void)quern_entity_remove(world, it->of_immediate[a], it->immediate.tag);
    } else if (random_chance(random, 30)) {
        must(quern_commands_destroy(commands, entity));
        must(quern_entity_destroy(world, it->of_immediate[a]));
    }
}

/* Finds the entities of the recorded world by their numbers. */
static void find_recorded(twin *it)
{
    const quern_term terms[] = {quern_term_read(it->recorded.number), quern_term_with(it->recorded.tag)};
    quern_term optional = terms[1];
    optional.match = QUERN_MATCH_OPTIONAL;
    const quern_term both[] = {terms[0], optional};
    quern_query *query = setup_query(it->recorded.world, both, 2);
    memset((void *)it->of_recorded, 0, sizeof it->of_recorded);
    for (quern_query_iterator at = quern_query_iterate(query); quern_query_next(&at);) {
        const uint32_t *numbers = quern_view_read(&at.view, 0);
        for (uint32_t i = 0; i < at.view.count; i++)
            it->of_recorded[numbers[i]] = at.view.entities[i];
    }
    quern_query_destroy(query);
}

static uint32_t number_of(const scene *it, quern_entity entity)
{
    if (quern_entity_is_null(entity)) return UINT32_MAX;
    return *(const uint32_t *)quern_entity_get(it->world, entity, it->number);
}

static void compare(const twin *it, uint64_t seed)
{
    for (uint32_t i = 0; i < ENTITY_COUNT; i++) {
        const quern_entity a = it->of_recorded[i], b = it->of_immediate[i];
        const bool is_alive = quern_entity_is_alive(it->immediate.world, b);
        cr_assert_eq(!quern_entity_is_null(a), is_alive, "seed %llu: entity %u", (unsigned long long)seed,
                     i);
        if (!is_alive) continue;
        const quern_entity parent_a = quern_entity_target(it->recorded.world, a, it->recorded.parent);
        const quern_entity parent_b = quern_entity_target(it->immediate.world, b, it->immediate.parent);
        cr_assert_eq(number_of(&it->recorded, parent_a), number_of(&it->immediate, parent_b));
        cr_assert_eq(quern_entity_is_enabled(it->recorded.world, a),
                     quern_entity_is_enabled(it->immediate.world, b), "seed %llu: entity %u",
                     (unsigned long long)seed, i);
        cr_assert_eq(quern_entity_list_components(it->recorded.world, a, NULL, 0),
                     quern_entity_list_components(it->immediate.world, b, NULL, 0),
                     "seed %llu: hidden tag of entity %u", (unsigned long long)seed, i);
    }
}

static void play(uint64_t seed)
{
    twin it;
    random_source random = {seed};
    memset((void *)&it, 0, sizeof it);
    open_scene(&it.recorded, NULL);
    open_scene(&it.immediate, NULL);
    for (uint32_t i = 0; i < ENTITY_COUNT / 2; i++) {
        const uint32_t above = i == 0 || random_chance(&random, 20) ? i : random_below(&random, i);
        it.of_recorded[i] = make(&it.recorded, i, above == i ? quern_entity_null() : it.of_recorded[above]);
        it.of_immediate[i] =
            make(&it.immediate, i, above == i ? quern_entity_null() : it.of_immediate[above]);
    }
    for (uint32_t round = 0, next = ENTITY_COUNT / 2; round < ROUND_COUNT; round++) {
        quern_commands *commands = recorder(&it.recorded);
        for (uint32_t i = 0; i < 12; i++) {
            if (i % 4 == 0 && next < ENTITY_COUNT) create(&it, &random, commands, next++);
            act(&it, &random, commands);
        }
        must(quern_world_flush(it.recorded.world));
        assert_valid(it.recorded.world);
        find_recorded(&it);
        compare(&it, seed);
        bool has_any = false;
        for (uint32_t i = 0; i < ENTITY_COUNT; i++)
            has_any |= !quern_entity_is_null(it.of_recorded[i]);
        if (!has_any) break;
    }
    close_scene(&it.recorded);
    close_scene(&it.immediate);
}

Test(switch_commands, random_programs_equal_immediate_calls)
{
    for (uint64_t seed = 1; seed <= 60; seed++)
        play(seed);
}

/* ---------------------------------------------------------------------------------- memory and histories */

static void record_all(const scene *it, quern_entity root, quern_entity child)
{
    quern_commands *commands = recorder(it);
    const quern_entity created = record_entity(commands);
    must(quern_commands_relate(commands, created, it->parent, child));
    must(quern_commands_set_enabled(commands, root, false));
    must(quern_commands_remove(commands, child, it->tag));
    must(quern_commands_set_enabled(commands, child, true));
}

Test(switch_commands, failed_sync_points_change_nothing_and_can_be_repeated)
{
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint64_t call = 1; result != QUERN_OK; call++) {
        scene it;
        failing_allocator *allocator = failing_allocator_create();
        const quern_allocator interface = failing_allocator_interface(allocator);
        open_scene(&it, &interface);
        const quern_entity root = make(&it, 0, quern_entity_null()), child = make(&it, 1, root);
        make(&it, 2, child);
        record_all(&it, root, child);
        const uint64_t before = quern_world_hash(it.world);
        failing_allocator_fail_at(allocator, call);
        result = quern_world_flush(it.world);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        if (result != QUERN_OK) cr_assert_eq(quern_world_hash(it.world), before);
        failing_allocator_heal(allocator);
        must(quern_world_flush(it.world));
        cr_assert_not(quern_entity_is_enabled(it.world, root));
        cr_assert_not(quern_entity_is_enabled(it.world, child));
        close_scene(&it);
        failing_allocator_close(allocator);
    }
}

Test(switch_commands, histories_keep_waiting_commands)
{
    scene it;
    quern_history *history;
    open_scene(&it, NULL);
    const quern_entity root = make(&it, 0, quern_entity_null()), child = make(&it, 1, root);
    record_all(&it, root, child);
    must(quern_history_create(it.world, &(quern_history_def){.frame_count = 4}, &history));
    must(quern_history_save(history, 1, NULL));
    must(quern_world_flush(it.world));
    const uint64_t after = quern_world_hash(it.world);
    must(quern_history_restore(history, 1, NULL));
    cr_assert(quern_entity_is_enabled(it.world, child));
    must(quern_world_flush(it.world));
    cr_assert_eq(quern_world_hash(it.world), after);
    quern_history_destroy(history);
    close_scene(&it);
}
