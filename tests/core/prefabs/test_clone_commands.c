/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/failing_allocator.h"
#include "tests/support/fixture.h"
#include "tests/support/tracked.h"

#include <quern/enabled.h>

#include <string.h>

/* quern_commands_clone: what a copy has, which state it is of, what may be done with its handle, and what is dropped. */

typedef struct friends {
    quern_entity first;
    QUERN_LIST(quern_entity) list;
} friends;

static quern_component number, marked, friends_of, toggle, value;
static quern_relation parent, likes;
static tracked_counts counts;

static void register_all(void)
{
    number = setup_component(world, "number", 8, 8);
    marked = setup_tag(world, "marked");
    friends_of = make_component(
        world, .name = "friends", .size_bytes = sizeof(friends), .alignment_bytes = 8,
        .fields = {QUERN_FIELD(friends, first), QUERN_LIST_FIELD(friends, list, quern_entity)});
    toggle =
        make_component(world, .name = "toggle", .size_bytes = 4, .alignment_bytes = 4, .can_disable = true);
    counts = (tracked_counts){0};
    value = tracked_register(world, "value", &counts);
    parent = quern_world_parent(world);
    likes = make_relation(world, .name = "likes", .many = true);
}

static void open_world(void)
{
    world = setup_world();
    register_all();
}

static void close_all(void)
{
    close_valid_world();
    assert_at_end(counts.broken_count == 0);
    assert_at_end(tracked_live_count(&counts) == 0);
}

TestSuite(clone_commands, .init = open_world, .fini = close_all, .timeout = 60);

static quern_entity make(uint64_t of)
{
    quern_entity entity;
    must(quern_entity_create_with(world, &number, (const void *[]){&of}, 1, &entity));
    return entity;
}

static uint64_t number_of(quern_entity entity)
{
    const uint64_t *found = quern_entity_get(world, entity, number);
    cr_assert_not_null(found, "%s", quern_error_message());
    return *found;
}

static void set_value(quern_entity entity, uint64_t payload)
{
    tracked made;
    tracked_construct(&made, payload, &counts);
    must(quern_entity_set(world, entity, value, &made));
    tracked_destroy(&made, &counts);
}

/* Returns the entity with `marked`, of which there must be one. */
static quern_entity find_marked(void)
{
    quern_entity found = quern_entity_null();
    quern_query *query =
        setup_query(world,
                    (quern_term[]){quern_term_with(marked),
                                   quern_term_optional(quern_world_disabled_tag(world), QUERN_ACCESS_NONE)},
                    2);
    uint32_t count = 0;
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it)) {
        count += it.view.count;
        found = it.view.entities[0];
    }
    quern_query_destroy(query);
    cr_assert_eq(count, 1u);
    return found;
}

/* Records a clone whose copy is marked. */
static quern_entity record_clone(quern_entity entity, const quern_spawn_def *def)
{
    quern_entity root;
    quern_commands *commands = quern_world_commands(world);
    must(quern_commands_clone(commands, entity, def, &root));
    must(quern_commands_add(commands, root, marked, NULL));
    cr_assert(quern_entity_is_provisional(root));
    return root;
}

static uint64_t flush(void)
{
    quern_flush_stats stats;
    must(quern_world_flush(world));
    must(quern_world_get_flush_stats(world, &stats));
    return stats.dropped_count;
}

Test(clone_commands, copies_values_of_an_entity_without_children)
{
    const quern_entity entity = make(7), other = make(1), above = make(2);
    friends given = {.first = entity};
    must(QUERN_LIST_PUSH(&given.list, quern_entity, entity, other));
    must(quern_entity_set(world, entity, friends_of, &given));
    quern_list_free(&given.list.list);
    must(quern_entity_set(world, entity, toggle, &(uint32_t){5}));
    must(quern_entity_set_component_enabled(world, entity, toggle, false));
    must(quern_entity_set_name(world, entity, "seven"));
    must(quern_entity_relate(world, entity, parent, above));
    set_value(entity, 70);
    record_clone(entity, NULL);
    cr_assert_eq(flush(), 0u);
    const quern_entity copy = find_marked();
    cr_assert_eq(number_of(copy), 7u);
    const friends *found = quern_entity_get(world, copy, friends_of);
    cr_assert(quern_entity_equal(found->first, copy));
    cr_assert_eq(found->list.list.count, 2u);
    cr_assert(quern_entity_equal(found->list.items[0], copy));
    cr_assert(quern_entity_equal(found->list.items[1], other));
    cr_assert(!quern_entity_is_component_enabled(world, copy, toggle));
    cr_assert_eq(*(const uint32_t *)quern_entity_get(world, copy, toggle), 5u);
    cr_assert_null(quern_entity_name(world, copy));
    cr_assert(quern_entity_equal(quern_entity_target(world, copy, parent), above));
    cr_assert_eq(((const tracked *)quern_entity_get(world, copy, value))->payload, 70u);
    found = quern_entity_get(world, entity, friends_of);
    cr_assert(quern_entity_equal(found->list.items[0], entity));
}

Test(clone_commands, copies_a_tree_by_the_rules_of_prefabs)
{
    const quern_entity entity = make(1), child = make(2), grandchild = make(3), outside = make(9);
    must(quern_entity_relate(world, child, parent, entity));
    must(quern_entity_relate(world, grandchild, parent, child));
    must(quern_entity_set_name(world, child, "arm"));
    must(quern_entity_set_name(world, grandchild, "hand"));
    must(quern_entity_set(world, grandchild, friends_of, &(friends){.first = entity}));
    must(quern_entity_relate(world, entity, likes, grandchild));
    must(quern_entity_relate(world, entity, likes, outside));
    set_value(child, 20);
    record_clone(entity, &(quern_spawn_def){.parent = outside});
    cr_assert_eq(flush(), 0u);
    const quern_entity copy = find_marked(), arm = quern_entity_find_child(world, copy, "arm");
    const quern_entity hand = quern_entity_find_child(world, copy, "arm/hand");
    cr_assert_eq(number_of(copy), 1u);
    cr_assert_eq(number_of(arm), 2u);
    cr_assert_eq(number_of(hand), 3u);
    cr_assert(!quern_entity_equal(arm, child) && !quern_entity_equal(hand, grandchild));
    cr_assert(
        quern_entity_equal(((const friends *)quern_entity_get(world, hand, friends_of))->first, copy));
    cr_assert(quern_entity_equal(quern_entity_target(world, copy, parent), outside));
    cr_assert(quern_entity_has_target(world, copy, likes, hand));
    cr_assert(quern_entity_has_target(world, copy, likes, outside));
    cr_assert(!quern_entity_has_target(world, copy, likes, grandchild));
    cr_assert_eq(((const tracked *)quern_entity_get(world, arm, value))->payload, 20u);
}

Test(clone_commands, copies_what_exists_when_the_sync_point_begins)
{
    quern_commands *commands = quern_world_commands(world);
    const quern_entity entity = make(1), child = make(2);
    must(quern_entity_relate(world, child, parent, entity));
    must(quern_commands_set(commands, child, number, &(uint64_t){20}));
    must(quern_commands_set(commands, entity, number, &(uint64_t){10}));
    record_clone(entity, NULL);
    must(quern_commands_destroy(commands, entity));
    must(quern_entity_set(world, entity, number, &(uint64_t){5})); /* before the sync point */
    cr_assert_eq(flush(), 0u);
    const quern_entity copy = find_marked();
    cr_assert_eq(number_of(copy), 5u);
    cr_assert_eq(number_of(quern_entity_first_source(world, copy, parent)), 2u);
    cr_assert(!quern_entity_is_alive(world, entity));
}

Test(clone_commands, gives_its_copy_to_later_commands_of_the_callback)
{
    quern_commands *commands = quern_world_commands(world);
    const quern_entity entity = make(1), child = make(2), knower = make(3);
    quern_entity gone, below;
    must(quern_entity_relate(world, child, parent, entity));
    const quern_entity root = record_clone(entity, NULL);
    must(quern_commands_set(commands, root, number, &(uint64_t){100}));
    must(quern_commands_set(commands, knower, friends_of, &(friends){.first = root}));
    must(quern_commands_set_name(commands, root, "copy"));
    must(quern_commands_clone(commands, entity, NULL, &gone));
    must(quern_commands_destroy(commands, gone));
    below = record_entity(commands);
    must(quern_commands_relate(commands, below, parent, root));
    must(quern_commands_clone(commands, entity, &(quern_spawn_def){.parent = below}, NULL));
    cr_assert_eq(flush(), 0u);
    const quern_entity copy = find_marked();
    cr_assert_eq(number_of(copy), 100u);
    cr_assert(quern_entity_equal(quern_entity_find(world, "copy"), copy));
    cr_assert(
        quern_entity_equal(((const friends *)quern_entity_get(world, knower, friends_of))->first, copy));
    /* the three that existed, the copy with its child, the created one, and the copy of a tree of two below it */
    cr_assert_eq(stats_of_world(world).entity_count, 8u);
    cr_assert_eq(quern_entity_source_count(world, copy, parent), 2u);
}

Test(clone_commands, overrides_values_of_the_root)
{
    const quern_entity entity = make(1), child = make(2);
    must(quern_entity_relate(world, child, parent, entity));
    set_value(entity, 10);
    tracked other;
    tracked_construct(&other, 11, &counts);
    record_clone(entity, &(quern_spawn_def){.overrides = {{.component = number, .column = &(uint64_t){6}},
                                                          {.component = value, .column = &other}}});
    tracked_destroy(&other, &counts);
    cr_assert_eq(flush(), 0u);
    const quern_entity copy = find_marked();
    cr_assert_eq(number_of(copy), 6u);
    cr_assert_eq(((const tracked *)quern_entity_get(world, copy, value))->payload, 11u);
    cr_assert_eq(number_of(quern_entity_first_source(world, copy, parent)), 2u);
    cr_assert_eq(number_of(entity), 1u);
}

Test(clone_commands, copies_one_entity_many_times)
{
    quern_commands *commands = quern_world_commands(world);
    const quern_entity entity = make(1), tree = make(2), child = make(3);
    must(quern_entity_relate(world, child, parent, tree));
    for (uint64_t i = 0; i < 2000; i++) {
        quern_entity root;
        must(quern_commands_clone(commands, i % 3 == 0 ? tree : entity, NULL, &root));
        must(quern_commands_set(commands, root, number, &i));
    }
    cr_assert_eq(flush(), 0u);
    cr_assert_eq(stats_of_world(world).entity_count, 3u + 2000 + 667);
    uint64_t sum = 0;
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    quern_query_iterator it = quern_query_iterate(query);
    while (quern_query_next(&it))
        for (uint32_t i = 0, end = it.view.count; i < end; i++)
            sum += QUERN_COLUMN(&it.view, 0, const uint64_t)[i];
    quern_query_destroy(query);
    cr_assert_eq(sum, 1999u * 2000 / 2 + 1 + 2 + 3 * (1 + 667u));
}

Test(clone_commands, keeps_disabled_trees_disabled)
{
    const quern_entity entity = make(1), child = make(2);
    must(quern_entity_relate(world, child, parent, entity));
    must(quern_entity_set_enabled(world, entity, false));
    record_clone(entity, NULL);
    cr_assert_eq(flush(), 0u);
    const quern_entity copy = find_marked();
    cr_assert(!quern_entity_is_enabled(world, copy));
    must(quern_entity_set_enabled(world, copy, true));
    cr_assert(quern_entity_is_enabled(world, quern_entity_first_source(world, copy, parent)));
    cr_assert(!quern_entity_is_enabled(world, child));
}

static void destroy_nothing(void *values, uint32_t count, void *user_data)
{
    (void)values, (void)count, (void)user_data;
}

static const quern_component_def uncopyable_def = {
    .name = "uncopyable", .size_bytes = 8, .alignment_bytes = 8, .hooks = {.destroy = destroy_nothing}};

Test(clone_commands, is_dropped_if_the_entity_is_dead_by_then)
{
    quern_commands *commands = quern_world_commands(world);
    const quern_entity entity = make(1), other = make(2);
    const quern_entity root = record_clone(entity, NULL);
    must(quern_commands_relate(commands, other, parent, root)); /* dropped: its target is dead */
    must(quern_commands_set_name(commands, root, "none"));
    must(quern_entity_destroy(world, entity));
    cr_assert_eq(flush(), 4u); /* the clone, the tag, the relation and the name */
    cr_assert_eq(stats_of_world(world).entity_count, 1u);
    record_clone(other, NULL); /* without relations: another path */
    must(quern_entity_destroy(world, other));
    cr_assert_eq(flush(), 2u);
    cr_assert_eq(stats_of_world(world).entity_count, 0u);
}

Test(clone_commands, is_dropped_and_logged_once_if_a_type_cannot_be_copied)
{
    quern_component uncopyable;
    must(quern_component_register(world, &uncopyable_def, &uncopyable));
    const quern_entity entity = make(1), child = make(2);
    must(quern_entity_relate(world, child, parent, entity));
    must(quern_entity_set(world, child, uncopyable, &(uint64_t){1}));
    captured_reports reports;
    capture_reports(&reports);
    for (uint32_t i = 0; i < 3; i++)
        must(quern_commands_clone(quern_world_commands(world), i < 2 ? entity : child, NULL, NULL));
    record_clone(entity, NULL);
    cr_assert_eq(flush(), 5u);
    cr_assert_eq(reports.log_count, 1u);
    cr_assert(strstr(reports.last, "quern_commands_clone") != NULL &&
                  strstr(reports.last, "'uncopyable'") != NULL,
              "%s", reports.last);
    cr_assert_eq(stats_of_world(world).entity_count, 2u);
}

Test(clone_commands, loses_a_parent_that_is_destroyed_before_it)
{
    quern_commands *commands = quern_world_commands(world);
    const quern_entity above = make(1), entity = make(2);
    must(quern_entity_relate(world, entity, parent, above));
    must(quern_commands_destroy(commands, above));
    record_clone(entity, NULL);
    cr_assert_eq(flush(), 1u);
    cr_assert(quern_entity_is_null(quern_entity_target(world, find_marked(), parent)));
    cr_assert_eq(stats_of_world(world).entity_count, 1u);
}

Test(clone_commands, ends_with_a_parent_that_is_destroyed_after_it)
{
    const quern_entity above = make(1), entity = make(2);
    must(quern_entity_relate(world, entity, parent, above));
    must(quern_commands_clone(quern_world_commands(world), entity, NULL, NULL));
    must(quern_commands_destroy(quern_world_commands(world), above));
    cr_assert_eq(flush(), 0u);
    cr_assert_eq(stats_of_world(world).entity_count, 0u);
}

Test(clone_commands, is_kept_and_restored_by_a_history)
{
    quern_history *history;
    must(quern_history_create(world, &(quern_history_def){.frame_count = 2}, &history));
    const quern_entity entity = make(1), child = make(2);
    must(quern_entity_relate(world, child, parent, entity));
    record_clone(entity, NULL);
    must(quern_commands_clone(quern_world_commands(world), child, NULL, NULL));
    must(quern_history_save(history, 1, NULL));
    cr_assert_eq(flush(), 0u);
    const uint64_t hash = quern_world_hash(world);
    cr_assert_eq(stats_of_world(world).entity_count, 5u);
    must(quern_history_restore(history, 1, NULL));
    cr_assert_eq(stats_of_world(world).entity_count, 2u);
    cr_assert_eq(flush(), 0u);
    cr_assert_eq(quern_world_hash(world), hash);
    quern_history_destroy(history);
}

/* The path of destroys and creates: nothing is merged. */
Test(clone_commands, goes_with_creates_and_destroys)
{
    quern_commands *commands = quern_world_commands(world);
    const quern_entity entity = make(1), other = make(2);
    quern_entity copies[3], created[3];
    for (uint64_t i = 0; i < 3; i++) {
        must(quern_commands_clone(commands, i == 1 ? other : entity, NULL, &copies[i]));
        const friends knows = {.first = copies[i]};
        created[i] = record_entity_with(commands, (quern_component[]){number, friends_of},
                                        (const void *[]){&(uint64_t){10 + i}, &knows}, 2);
        cr_assert(!quern_entity_is_null(created[i]));
        if (i == 1) must(quern_commands_destroy(commands, other));
    }
    cr_assert_eq(flush(), 0u);
    cr_assert_eq(stats_of_world(world).entity_count, 1u + 3 + 3);
    quern_query *query =
        setup_query(world, (quern_term[]){quern_term_read(number), quern_term_read(friends_of)}, 2);
    quern_query_iterator it = quern_query_iterate(query);
    uint32_t count = 0;
    while (quern_query_next(&it))
        for (uint32_t i = 0, end = it.view.count; i < end; i++, count++) {
            const uint64_t of = QUERN_COLUMN(&it.view, 0, const uint64_t)[i];
            const quern_entity copy = QUERN_COLUMN(&it.view, 1, const friends)[i].first;
            cr_assert_eq(number_of(copy), of == 11 ? 2u : 1u);
            cr_assert(!quern_entity_equal(copy, entity));
        }
    quern_query_destroy(query);
    cr_assert_eq(count, 3u);
}

static uint32_t added_count, removed_count;
static uint64_t added_sum;

static void on_add(quern_world *of, quern_entity entity, void *body, void *user_data)
{
    (void)of, (void)entity, (void)user_data;
    added_count++;
    added_sum += *(const uint64_t *)body;
}

/* Releases what the value stands for, as a hook of a physics body does. */
static void on_remove(quern_world *of, quern_entity entity, void *body, void *user_data)
{
    (void)of, (void)entity, (void)user_data;
    removed_count++;
    *(uint64_t *)body = 0;
}

Test(clone_commands, calls_entity_hooks_for_copies_and_copies_what_was_there_before_them)
{
    quern_component body = make_component(world, .name = "body", .size_bytes = 8, .alignment_bytes = 8,
                                          .entity_hooks = {.on_add = on_add, .on_remove = on_remove});
    const quern_entity leaf = make(1), tree = make(2), child = make(3);
    must(quern_entity_relate(world, child, parent, tree));
    must(quern_entity_set(world, leaf, body, &(uint64_t){10}));
    must(quern_entity_set(world, child, body, &(uint64_t){100}));
    added_count = removed_count = 0;
    added_sum = 0;
    quern_commands *commands = quern_world_commands(world);
    must(quern_commands_destroy(commands, leaf));
    must(quern_commands_destroy(commands, tree));
    must(quern_commands_clone(commands, leaf, NULL, NULL));
    must(quern_commands_clone(commands, tree, NULL, NULL));
    cr_assert_eq(flush(), 0u);
    cr_assert_eq(removed_count, 2u);
    cr_assert_eq(added_count, 2u);
    cr_assert_eq(added_sum, 110u);
    cr_assert_eq(stats_of_world(world).entity_count, 3u);
}

Test(clone_commands, refuses_wrong_calls)
{
    quern_entity root = make(1);
    quern_commands *commands = quern_world_commands(world);
    const quern_entity entity = make(1), dead = make(2), created = record_entity(commands);
    must(quern_entity_destroy(world, dead));
    struct {
        quern_entity entity;
        quern_spawn_def def;
        quern_result expected;
        const char *text;
    } cases[] = {
        {quern_entity_null(), {.parent = {0}}, QUERN_ERROR_NULL_ENTITY, "null"},
        {dead, {.parent = {0}}, QUERN_ERROR_STALE_ENTITY, "destroyed"},
        {entity_of_other_world(entity), {.parent = {0}}, QUERN_ERROR_FOREIGN_ENTITY, "world"},
        {created, {.parent = {0}}, QUERN_ERROR_PROVISIONAL_ENTITY, "create it twice"},
        {entity, {.parent = dead}, QUERN_ERROR_STALE_ENTITY, "the target"},
        {entity, {.fill_components = {number}}, QUERN_ERROR_INVALID_ARGUMENT, "use overrides"},
        {entity,
         {.overrides = {{.component = number, .member = 1, .column = &entity}}},
         QUERN_ERROR_INVALID_ARGUMENT,
         "only the root"},
        {entity, {.overrides = {{.component = number}}}, QUERN_ERROR_INVALID_ARGUMENT, "column is NULL"},
        {entity,
         {.overrides = {{.component = marked, .column = &entity}}},
         QUERN_ERROR_INVALID_ARGUMENT,
         "'marked' is a tag"},
        {entity,
         {.overrides = {{.component = toggle, .column = &entity}}},
         QUERN_ERROR_COMPONENT_ABSENT,
         "no 'toggle'"},
        {entity,
         {.overrides = {{.component = number, .column = &entity},
                        {.component = number, .column = &entity}}},
         QUERN_ERROR_DUPLICATE_COMPONENT,
         "override 0"},
    };
    cr_assert_eq(quern_commands_clone(NULL, entity, NULL, NULL), QUERN_ERROR_NULL_ARGUMENT);
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const quern_entity before = root;
        cr_assert_eq(quern_commands_clone(commands, cases[i].entity, &cases[i].def, &root),
                     cases[i].expected, "case %u: %s", i, quern_error_message());
        cr_assert(strstr(quern_error_message(), cases[i].text) != NULL, "case %u: %s", i,
                  quern_error_message());
        cr_assert(strstr(quern_error_message(), "quern_commands_clone") != NULL);
        cr_assert(quern_entity_equal(root, before));
    }
    quern_world_discard_commands(world);
}

Test(clone_commands, refuses_values_with_handles_of_discarded_creates)
{
    const quern_entity entity = make(1), created = record_entity(quern_world_commands(world));
    quern_world_discard_commands(world);
    friends own = {.first = entity};
    must(quern_entity_set(world, entity, friends_of, &own));
    own.first = created;
    captured_reports reports;
    capture_reports(&reports);
    quern_commands *commands = quern_world_commands(world);
    const quern_spawn_def def = {.overrides = {{.component = friends_of, .column = &own}}};
    cr_assert_eq(quern_commands_clone(commands, entity, &def, NULL), QUERN_ERROR_PROVISIONAL_ENTITY, "%s",
                 quern_error_message());
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
    own.first = record_entity(commands);
    must(quern_commands_clone(commands, entity, &def, NULL));
    cr_assert_eq(flush(), 0u);
}

/* Records all that allocates: a tree, leaves in two archetypes, a set of the copy. */
static quern_result record_all(quern_entity tree, quern_entity leaf, quern_entity below)
{
    quern_entity root;
    quern_commands *commands = quern_world_commands(world);
    if (commands == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    quern_result result = quern_commands_clone(
        commands, tree, &(quern_spawn_def){.overrides = {{.component = number, .column = &(uint64_t){8}}}},
        &root);
    if (result == QUERN_OK) result = quern_commands_clone(commands, leaf, NULL, NULL);
    if (result == QUERN_OK) result = quern_commands_clone(commands, below, NULL, NULL);
    if (result == QUERN_OK)
        result = quern_commands_clone(commands, leaf, &(quern_spawn_def){.parent = below}, NULL);
    return result;
}

static void assert_unchanged(quern_result result, uint64_t hash)
{
    cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
    assert_valid(world);
    cr_assert_eq(quern_world_hash(world), hash);
}

Test(clone_commands_memory, changes_nothing_if_memory_is_exhausted_and_can_be_tried_again, .timeout = 120)
{
    bool is_done = false;
    for (uint64_t n = 1; !is_done; n++) {
        failing_allocator *memory = open_failing_world();
        register_all();
        const quern_entity tree = make(1), child = make(2), leaf = make(3), below = make(4);
        must(quern_entity_relate(world, child, parent, tree));
        must(quern_entity_relate(world, below, parent, leaf));
        must(quern_entity_relate(world, tree, likes, leaf));
        set_value(child, 20);
        const uint64_t hash = quern_world_hash(world);
        failing_allocator_fail_at(memory, n);
        quern_result result = record_all(tree, child, below);
        is_done = result == QUERN_OK;
        if (is_done) {
            result = quern_world_flush(world);
            is_done = result == QUERN_OK;
            failing_allocator_fail_at(memory, 0);
            if (!is_done) {
                assert_unchanged(result, hash);
                must(quern_world_flush(world)); /* the commands were kept */
            }
        } else {
            failing_allocator_fail_at(memory, 0);
            assert_unchanged(result, hash);
            quern_world_discard_commands(world);
            must(record_all(tree, child, below));
            must(quern_world_flush(world));
        }
        cr_assert_eq(stats_of_world(world).entity_count, 4u + 5);
        close_all();
    }
}

/* A handle in a list needs memory to be replaced, so a clone without that memory waits for the next sync point. */
Test(clone_commands, handles_in_lists_are_replaced_or_the_clone_waits)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    must(quern_lists_set_allocator(&allocator));
    const quern_entity source = make(5);
    friends own = {.first = source};
    quern_entity copy;
    must(QUERN_LIST_PUSH(&own.list, quern_entity, source));
    must(quern_entity_set(world, source, friends_of, &own));
    quern_list_free(&own.list.list);
    must(quern_commands_clone(quern_world_commands(world), source, NULL, &copy));
    must(quern_commands_add(quern_world_commands(world), copy, marked, NULL));
    failing_allocator_fail_from(memory, 0);
    cr_assert_eq(quern_world_flush(world), QUERN_ERROR_OUT_OF_MEMORY);
    failing_allocator_heal(memory);
    must(quern_world_flush(world));
    quern_query *query =
        setup_query(world, (const quern_term[]){quern_term_read(friends_of), quern_term_with(marked)}, 2);
    uint32_t count = 0;
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it); count++) {
        const friends *found = quern_view_read(&it.view, 0);
        cr_assert(quern_entity_equal(found->first, it.view.entities[0]));
        cr_assert(quern_entity_equal(found->list.items[0], it.view.entities[0]));
    }
    cr_assert_eq(count, 1);
    quern_query_destroy(query);
    close_valid_world();
    world = setup_world(); /* for the end of the suite */
    failing_allocator_close(memory);
    must(quern_lists_set_allocator(NULL));
}

Test(clone_commands, a_member_to_fill_must_exist_in_leaves_too)
{
    const quern_entity leaf = make(1);
    const quern_spawn_def def = {.fill_member = 3};
    must_refuse(INVALID_ARGUMENT, world, quern_entity_clone(world, leaf, &def, NULL));
}
