/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Entity hooks of components that hold the values of edges: what relating, unrelating and destroying calls. */
#include "tests/support/fixture.h"

#include <stdio.h>
#include <string.h>

typedef struct Debt {
    uint64_t amount;
} Debt;

typedef struct Like {
    quern_entity target;
    uint64_t strength;
} Like;

typedef struct Likes {
    QUERN_LIST(Like) edges;
} Likes;

static failing_allocator *memory;
static quern_component debts, likings;
static quern_relation owes, likes;
static char calls[512]; /* such as "add 5, set 5, "; the number of edges for Likes */

static void note(const char *call, const void *value, const void *user_data)
{
    const size_t length = strlen(calls);
    const uint64_t number =
        user_data != NULL ? ((const Likes *)value)->edges.list.count : ((const Debt *)value)->amount;
    (void)snprintf(calls + length, sizeof calls - length, "%s %llu, ", call, (unsigned long long)number);
}

static void on_add(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    note("add", value, user_data);
}

static void on_set(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    note("set", value, user_data);
}

/* The row still has what it has before the change. */
static void on_remove(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    const quern_relation relation = user_data != NULL ? likes : owes;
    cr_assert_eq(quern_entity_get(in, entity, user_data != NULL ? likings : debts), value);
    cr_assert(quern_entity_has(in, entity, quern_relation_component(relation)));
    note("remove", value, user_data);
}

static void expect(const char *text)
{
    cr_assert_str_eq(calls, text);
    calls[0] = '\0';
}

static void open_world(void)
{
    memory = open_failing_world();
    quern_component_def def = {
        QUERN_TYPE(Debt), .fields = {QUERN_FIELD(Debt, amount)},
        .entity_hooks = {.on_add = on_add, .on_set = on_set, .on_remove = on_remove}};
    must(quern_component_register(world, &def, &debts));
    def = (quern_component_def){QUERN_TYPE(Likes),
                                .fields = {QUERN_LIST_FIELD(Likes, edges, Like, target, strength)},
                                .entity_hooks = def.entity_hooks};
    def.entity_hooks.user_data = &likings;
    must(quern_component_register(world, &def, &likings));
    const quern_relation_def owes_def = {
        .name = "owes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .levels = true, .value = debts};
    const quern_relation_def likes_def = {
        .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true, .value = likings};
    must(quern_relation_register(world, &owes_def, &owes));
    must(quern_relation_register(world, &likes_def, &likes));
    calls[0] = '\0';
}

TestSuite(edge_hooks, .init = open_world, .fini = close_valid_world);

Test(edge_hooks, are_called_by_the_call_that_changes_an_edge)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world), c = setup_entity(world);
    must(quern_entity_relate_with(world, a, owes, b, &(Debt){5}));
    expect("add 5, set 5, ");
    must(quern_entity_set_edge_value(world, a, owes, b, &(Debt){6}));
    expect("set 6, ");
    must(quern_entity_relate(world, a, owes, b));
    expect("");
    must(quern_entity_relate(world, a, owes, c));
    expect("set 0, ");
    must(quern_entity_unrelate(world, a, owes));
    expect("remove 0, ");
    must(quern_entity_relate_many(world, (const quern_entity[]){a, b}, owes, (const quern_entity[]){c, c},
                                  2));
    expect("add 0, set 0, add 0, set 0, ");
    must(quern_entity_remove(world, a, quern_relation_component(owes)));
    expect("remove 0, ");
    must(quern_entity_set_text(world, b, "owes.target", "none"));
    expect("remove 0, ");
    must(quern_entity_add(world, a, quern_relation_component(owes), &b));
    expect("add 0, set 0, ");
    must(quern_entity_unrelate_from(world, a, owes, b));
    expect("remove 0, ");
}

Test(edge_hooks, see_the_edges_of_sources_with_several_targets)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world), c = setup_entity(world);
    must(quern_entity_relate_with(world, a, likes, b, &(Like){.strength = 5}));
    expect("add 1, set 1, ");
    must(quern_entity_relate(world, a, likes, c));
    expect("set 2, ");
    must(quern_entity_unrelate_from(world, a, likes, b));
    expect("set 1, ");
    must(quern_entity_unrelate_from(world, a, likes, c));
    expect("remove 1, ");
    must(quern_entity_relate_many(world, (const quern_entity[]){a, a}, likes, (const quern_entity[]){b, c},
                                  2));
    expect("add 2, set 2, ");
    must(quern_entity_unrelate(world, a, likes));
    expect("remove 2, ");
}

/* The value goes with the target, though the source stays. */
Test(edge_hooks, are_called_if_a_target_is_destroyed)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world), c = setup_entity(world);
    must(quern_entity_relate_with(world, a, owes, b, &(Debt){5}));
    must(quern_entity_relate(world, a, likes, b));
    must(quern_entity_relate(world, c, likes, b));
    must(quern_entity_relate(world, c, likes, a));
    calls[0] = '\0';
    must(quern_entity_destroy(world, b));
    expect("remove 5, remove 1, set 1, ");
    must(quern_entity_relate_with(world, a, owes, c, &(Debt){6}));
    calls[0] = '\0';
    quern_query *query = setup_query(world, &(quern_term){.component = likings}, 1);
    must(quern_entity_destroy_matching(query, NULL));
    quern_query_destroy(query);
    expect("remove 6, remove 1, ");
}

/* Rows of sources below move too, with their values. */
Test(edge_hooks, are_called_for_the_source_alone_if_it_has_sources)
{
    const quern_entity a = setup_entity(world), b = setup_entity(world), c = setup_entity(world);
    must(quern_entity_relate_with(world, c, owes, b, &(Debt){3}));
    calls[0] = '\0';
    must(quern_entity_relate_with(world, b, owes, a, &(Debt){2}));
    expect("add 2, set 2, ");
    must(quern_entity_unrelate(world, b, owes));
    expect("remove 2, ");
}

static quern_entity failing_source, failing_target;

static quern_result relate(void)
{
    return quern_entity_relate_with(world, failing_source, owes, failing_target, &(Debt){1});
}

static quern_result unrelate(void)
{
    return quern_entity_unrelate(world, failing_source, owes);
}

static quern_result destroy_target(void)
{
    return quern_entity_destroy(world, failing_target);
}

static quern_result relate_many(void)
{
    return quern_entity_relate_many(world, (const quern_entity[]){failing_source, failing_target}, likes,
                                    (const quern_entity[]){failing_target, failing_source}, 2);
}

Test(edge_hooks, are_not_called_by_calls_without_memory)
{
    failing_source = setup_entity(world);
    failing_target = setup_entity(world);
    quern_result (*const functions[])(void) = {relate, unrelate, relate, relate_many, destroy_target};
    const char *const texts[] = {"add 1, set 1, ", "remove 1, ", "add 1, set 1, ",
                                 "add 1, set 1, add 1, set 1, ", "remove 1, remove 1, remove 1, "};
    for (uint32_t i = 0; i < 5; i++) {
        quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
        for (uint64_t n = 1; result != QUERN_OK; n++) {
            expect("");
            failing_allocator_fail_at(memory, n);
            result = functions[i]();
            failing_allocator_heal(memory);
            must(quern_world_validate(world));
            cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
        }
        expect(texts[i]);
    }
}

/* A relation already has the targets that a sync point will create: in a slot that was in use before, and in a new one. */
static void climb_to_new_target(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    const quern_relation parent = quern_world_parent(in);
    const quern_entity target = quern_entity_target(in, entity, parent);
    cr_assert(!quern_entity_is_alive(in, target));
    cr_assert_eq(quern_entity_world_tag(target), quern_entity_world_tag(entity));
    cr_assert(quern_entity_is_null(quern_entity_nearest(in, entity, parent, debts)));
    note("climb", &(Debt){1}, NULL);
}

Test(edge_hooks, climb_past_entities_that_do_not_exist_yet)
{
    const quern_component_def def = {.name = "Leaf", .entity_hooks = {.on_remove = climb_to_new_target}};
    const quern_relation parent = quern_world_parent(world);
    quern_commands *commands = quern_world_commands(world);
    quern_component leaf;
    must(quern_component_register(world, &def, &leaf));
    const quern_entity used = setup_entity(world);
    const quern_entity entities[2] = {setup_entity(world), setup_entity(world)};
    must(quern_entity_destroy(world, used));
    for (uint32_t i = 0; i < 2; i++) {
        quern_entity made;
        must(quern_entity_add(world, entities[i], leaf, NULL));
        must(quern_commands_create(commands, &made));
        must(quern_commands_relate(commands, entities[i], parent, made));
        must(quern_commands_remove(commands, entities[i], leaf));
    }
    must(quern_world_flush(world));
    expect("climb 1, climb 1, ");
}
