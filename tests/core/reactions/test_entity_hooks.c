/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Entity hooks: what calls them, in which order, and what they may do. tests/flow/test_hooked.c compares random programs
 * with a model. */
#include "tests/support/fixture.h"

#include <stdio.h>
#include <string.h>

typedef struct Body {
    uint64_t number;
} Body;

static quern_component body, plain;
static quern_relation parent;
static char calls[512]; /* such as "add 5, set 5, " */
static quern_result refused;

static void note(const char *call, uint64_t number)
{
    const size_t length = strlen(calls);
    (void)snprintf(calls + length, sizeof calls - length, "%s %llu, ", call, (unsigned long long)number);
}

static void expect(const char *text)
{
    cr_assert_str_eq(calls, text);
    calls[0] = '\0';
}

static void on_add(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    note("add", ((const Body *)value)->number);
}

static void on_set(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    note("set", ((const Body *)value)->number);
}

static void on_remove(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    cr_assert_eq(quern_entity_get(in, entity, body), value);
    note("remove", ((const Body *)value)->number);
}

static const quern_entity_hooks all_hooks = {.on_add = on_add, .on_set = on_set, .on_remove = on_remove};

static quern_component_def body_def(quern_entity_hooks hooks)
{
    return (quern_component_def){.name = "Body",
                                 .size_bytes = sizeof(Body),
                                 .alignment_bytes = 8,
                                 .fields = {{.name = "number", .type = QUERN_FIELD_U64}},
                                 .entity_hooks = hooks};
}

static failing_allocator *memory;

static void open_world(void)
{
    memory = open_failing_world();
    const quern_component_def def = body_def(all_hooks);
    must(quern_component_register(world, &def, &body));
    plain = setup_component(world, "plain", 8, 8);
    parent = quern_world_parent(world);
    calls[0] = '\0';
}

static quern_entity make(uint64_t number)
{
    quern_entity entity;
    must(quern_entity_create_with(world, &body, (const void *[]){&number}, 1, &entity));
    return entity;
}

TestSuite(entity_hooks, .init = open_world, .fini = close_world);

Test(entity_hooks, are_called_for_what_a_call_does)
{
    const quern_entity entity = setup_entity(world);
    void *value;
    must(quern_entity_add(world, entity, body, NULL));
    expect("add 0, set 0, ");
    must(quern_entity_set(world, entity, body, &(Body){3}));
    expect("set 3, ");
    must(quern_entity_add(world, entity, plain, NULL));
    must(quern_entity_set_enabled(world, entity, false));
    must(quern_entity_set_enabled(world, entity, true));
    must(quern_entity_relate(world, entity, parent, setup_entity(world)));
    expect("");
    must(quern_entity_mark_changed(world, entity, body));
    expect("set 3, ");
    must(quern_entity_set_text(world, entity, "Body.number", "9"));
    expect("set 9, ");
    must(quern_entity_remove(world, entity, body));
    expect("remove 9, ");
    must(quern_entity_ensure(world, entity, body, &value, NULL));
    expect("add 0, set 0, ");
    must(quern_entity_clear(world, entity));
    expect("remove 0, ");
    must(quern_entity_destroy(world, entity));
    expect("");
    must(quern_entity_destroy(world, make(4)));
    expect("add 4, set 4, remove 4, ");
}

/* The second move between two archetypes finds a cached edge. */
Test(entity_hooks, are_called_along_cached_edges)
{
    for (uint64_t i = 1; i < 4; i++) {
        const quern_entity added = setup_entity(world), set = setup_entity(world);
        must(quern_entity_add(world, added, plain, &i));
        must(quern_entity_set(world, set, plain, &i));
        calls[0] = '\0';
        must(quern_entity_add(world, added, body, &(Body){5}));
        expect("add 5, set 5, ");
        must(quern_entity_set(world, set, body, &(Body){6}));
        expect("add 6, set 6, ");
        must(quern_entity_remove(world, added, body));
        expect("remove 5, ");
    }
}

/* One change is the sum of its commands. */
Test(entity_hooks, are_called_once_for_a_sync_point)
{
    const quern_entity entity = make(1), other = make(2);
    quern_commands *commands = quern_world_commands(world);
    quern_entity made;
    calls[0] = '\0';
    must(quern_commands_remove(commands, entity, body));
    must(quern_commands_set(commands, entity, body, &(Body){7}));
    must(quern_commands_set(commands, other, body, &(Body){5}));
    must(quern_commands_destroy(commands, other));
    must(quern_commands_create_with(commands, &body, (const void *[]){&(Body){8}}, 1, &made));
    must(quern_commands_create_with(commands, &body, (const void *[]){&(Body){9}}, 1, &made));
    must(quern_commands_destroy(commands, made));
    must(quern_world_flush(world));
    expect("remove 2, set 7, add 8, set 8, ");
}

Test(entity_hooks, of_children_precede_those_of_parents)
{
    const quern_entity root = make(1), child = make(2), leaf = make(3);
    must(quern_entity_relate(world, child, parent, root));
    must(quern_entity_relate(world, leaf, parent, child));
    calls[0] = '\0';
    must(quern_commands_destroy(quern_world_commands(world), root));
    must(quern_world_flush(world));
    expect("remove 3, remove 2, remove 1, ");
    const quern_entity again = make(1), below = make(2);
    must(quern_entity_relate(world, below, parent, again));
    calls[0] = '\0';
    must(quern_entity_destroy_many(world, (const quern_entity[]){again, again}, 2));
    expect("remove 2, remove 1, ");
    must(quern_entity_relate(world, make(5), parent, make(6)));
    calls[0] = '\0';
    close_world();
    expect("remove 5, remove 6, ");
}

/* Without memory for a list of all entities, the order is that of levels. */
Test(entity_hooks, are_called_when_a_world_ends_without_memory)
{
    const quern_entity child = make(2);
    must(quern_entity_relate(world, child, parent, make(1)));
    calls[0] = '\0';
    failing_allocator_fail_from(memory, 1);
    quern_world_destroy(world);
    world = NULL;
    expect("remove 2, remove 1, ");
}

static void try_everything(quern_world *in, quern_entity entity, void *value, void *user_data)
{
    quern_entity other;
    cr_assert(quern_entity_has(in, entity, body));
    cr_assert(quern_entity_is_alive(in, entity));
    cr_assert(quern_entity_is_null(quern_entity_target(in, entity, parent)));
    cr_assert_null(quern_entity_name(in, entity));
    must_refuse(WORLD_LOCKED, NULL, quern_entity_create(in, &other));
    must_refuse(WORLD_LOCKED, NULL, quern_entity_destroy(in, entity));
    must_refuse(WORLD_LOCKED, NULL, quern_entity_set(in, entity, body, &(Body){1}));
    must_refuse(WORLD_LOCKED, NULL, quern_entity_remove(in, entity, body));
    must_refuse(WORLD_LOCKED, NULL, quern_entity_relate(in, entity, parent, entity));
    must_refuse(WORLD_LOCKED, NULL, quern_world_flush(in));
    cr_assert_null(quern_world_commands(in));
    ((Body *)value)->number += 100; /* the value may be written */
    refused = QUERN_ERROR_WORLD_LOCKED;
}

Test(entity_hooks, may_read_and_nothing_else)
{
    quern_component_def def =
        body_def((quern_entity_hooks){.on_add = try_everything, .on_remove = on_remove});
    must(quern_component_redefine(world, body, &def, NULL, NULL));
    const quern_entity entity = make(1);
    cr_assert_eq(refused, QUERN_ERROR_WORLD_LOCKED);
    cr_assert_eq(((const Body *)quern_entity_get(world, entity, body))->number, 101u);
    must(quern_entity_set(world, entity, body, &(Body){2})); /* the world is unlocked again */
    expect("");
}

/* The world knows the archetype of the list from the first create. */
Test(entity_hooks, that_come_later_are_called_for_creates_by_a_known_list)
{
    const quern_component late = setup_component(world, "late", 8, 8);
    const uint64_t value = 5;
    quern_entity entity;
    must(quern_entity_create_with(world, &late, (const void *[]){&value}, 1, &entity));
    quern_component_def def = {.size_bytes = 8, .alignment_bytes = 8};
    def.entity_hooks = (quern_entity_hooks){.on_add = on_add, .on_set = on_set};
    must(quern_component_redefine(world, late, &def, NULL, NULL));
    must(quern_entity_create_with(world, &late, (const void *[]){&value}, 1, &entity));
    expect("add 5, set 5, ");
}

Test(entity_hooks, are_replaced_with_the_definition)
{
    quern_component late = setup_component(world, "late", 8, 8);
    quern_component_def def = {.name = "late", .size_bytes = 8, .alignment_bytes = 8};
    const quern_entity entity = setup_entity(world);
    must(quern_entity_set(world, entity, plain, &(uint64_t){1}));
    must(quern_entity_add(world, entity, late, &(uint64_t){6}));
    must(quern_entity_remove(world, entity, late)); /* an edge between archetypes is cached now */
    must(quern_entity_add(world, entity, late, &(uint64_t){6}));
    def.entity_hooks = (quern_entity_hooks){.on_add = on_add, .on_set = on_set};
    must_refuse(LAYOUT_MISMATCH, world, quern_component_register(world, &def, &late));
    must(quern_component_redefine(world, late, &def, NULL, NULL));
    expect("");
    must(quern_entity_remove(world, entity, late));
    must(quern_entity_add(world, entity, late, &(uint64_t){8}));
    expect("add 8, set 8, ");
    must(quern_component_redefine(
        world, late, &(quern_component_def){.size_bytes = 8, .alignment_bytes = 8}, NULL, NULL));
    must(quern_entity_set(world, entity, late, &(uint64_t){9}));
    expect("");
    const quern_component_def same = body_def(all_hooks),
                              without = body_def((quern_entity_hooks){.on_add = NULL});
    quern_component again;
    must(quern_component_register(world, &same, &again));
    must(quern_component_register(world, &without, &again)); /* those that it has stay */
    (void)make(3);
    expect("add 3, set 3, ");
    const quern_component_def tag = {.name = "tag", .entity_hooks = {.on_set = on_set}};
    must_refuse(INVALID_ARGUMENT, world, quern_component_register(world, &tag, &again));
}

Test(entity_hooks, follow_a_restored_frame)
{
    quern_history *history;
    must(quern_history_create(world, NULL, &history));
    const quern_entity kept = make(1), lost = make(2), same = make(3);
    must(quern_history_save(history, 1, NULL));
    must(quern_entity_set(world, kept, body, &(Body){4}));
    must(quern_entity_destroy(world, lost));
    const quern_entity late = make(5);
    calls[0] = '\0';
    must(quern_history_restore(history, 1, NULL));
    expect("remove 5, set 1, add 2, set 2, ");
    cr_assert(quern_entity_is_alive(world, same) && !quern_entity_is_alive(world, late));
    must(quern_history_restore(history, 1, NULL));
    expect("");
    /* what a hook writes during a restore belongs to the next frame */
    quern_component_def def = body_def((quern_entity_hooks){.on_add = try_everything});
    must(quern_entity_destroy(world, lost));
    must(quern_component_redefine(world, body, &def, NULL, NULL));
    must(quern_history_restore(history, 1, NULL));
    cr_assert_eq(((const Body *)quern_entity_get(world, lost, body))->number, 102u);
    must(quern_history_save(history, 2, NULL));
    must(quern_entity_destroy(world, kept));
    must(quern_history_restore(history, 2, NULL));
    cr_assert_eq(((const Body *)quern_entity_get(world, lost, body))->number, 102u);
    quern_history_destroy(history);
}

Test(entity_hooks, follow_a_delta)
{
    quern_history *history;
    quern_delta *delta;
    quern_delta_applier *applier;
    quern_byte_buffer bytes = {0};
    quern_world *other = setup_world();
    const quern_component_def def = body_def((quern_entity_hooks){.on_add = NULL});
    quern_component sent;
    must(quern_component_register(other, &def, &sent));
    must(quern_history_create(other, NULL, &history));
    must(quern_history_save(history, 1, NULL));
    quern_entity entity;
    must(quern_entity_create_with(other, &sent, (const void *[]){&(Body){5}}, 1, &entity));
    must(quern_history_save(history, 2, NULL));
    must(quern_entity_set(other, entity, sent, &(Body){6}));
    must(quern_history_save(history, 3, NULL));
    must(quern_entity_destroy(other, entity));
    must(quern_history_save(history, 4, NULL));
    must(quern_delta_applier_create(world, &applier));
    static const char *const expected[] = {"add 5, set 5, ", "set 6, ", "remove 6, "};
    for (uint64_t i = 0; i < 3; i++) {
        bytes.size_bytes = 0;
        must(quern_delta_create(history, i + 1, i + 2, &delta));
        must(quern_delta_write(delta, NULL, quern_sink_bytes(&bytes)));
        must(quern_delta_apply(applier, quern_source_bytes(bytes.bytes, bytes.size_bytes)));
        expect(expected[i]);
        quern_delta_destroy(delta);
    }
    quern_delta_applier_destroy(applier);
    quern_byte_buffer_release(&bytes);
    quern_history_destroy(history);
    quern_world_destroy(other);
}

/* Each allocation of a program fails in turn. A call that fails calls no hooks. */
static quern_result play(quern_history *history)
{
    quern_entity entity;
    quern_query *query;
    const char *before;
#define CALL(...)                                                           \
    do {                                                                    \
        before = calls + strlen(calls);                                     \
        const quern_result result = (__VA_ARGS__);                          \
        if (result != QUERN_OK) cr_assert_str_eq(before, "", #__VA_ARGS__); \
        if (result != QUERN_OK) return result;                              \
    } while (0)
    calls[0] = '\0';
    CALL(quern_entity_create_with(world, &body, (const void *[]){&(Body){1}}, 1, &entity));
    CALL(quern_entity_add(world, entity, plain, NULL));
    CALL(quern_entity_remove(world, entity, body));
    CALL(quern_entity_set(world, entity, body, &(Body){2}));
    CALL(quern_history_restore(history, 1, NULL));
    CALL(quern_entity_create_many(world, &body, NULL, 1, 3, NULL));
    const quern_query_def def = {.terms = {quern_term_with(body)}};
    CALL(quern_query_create(world, &def, &query));
    const quern_result result = quern_entity_destroy_matching(query, NULL);
    quern_query_destroy(query);
    return result;
#undef CALL
}

Test(entity_hooks, are_not_called_if_a_call_fails)
{
    quern_history *history;
    must(quern_history_create(world, NULL, &history));
    must(quern_history_save(history, 1, NULL));
    for (uint64_t call = 1;; call++) {
        failing_allocator_fail_at(memory, call);
        const uint64_t failed = failing_allocator_failed_count(memory);
        const quern_result result = play(history);
        const bool has_failed = failing_allocator_failed_count(memory) > failed;
        failing_allocator_heal(memory);
        must(quern_history_restore(history, 1, NULL));
        if (result == QUERN_OK && !has_failed) break;
        quern_world_trim(world);
    }
    quern_history_destroy(history);
}

/* The reaction of a component is added with its first archetype, and may be the first one of the world. */
Test(entity_hooks, leave_no_memory_to_a_world_without_archetypes)
{
    const uint64_t bytes = failing_allocator_outstanding_bytes(memory);
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    for (uint64_t n = 1; result != QUERN_OK; n++) {
        const quern_world_def def = {.allocator = failing_allocator_interface(memory)};
        const quern_component_def hooked = body_def((quern_entity_hooks){.on_add = on_add});
        quern_world *other;
        quern_component component;
        quern_entity entity;
        must(quern_world_create(&def, &other));
        must(quern_component_register(other, &hooked, &component));
        failing_allocator_fail_at(memory, n);
        result = quern_entity_create_with(other, &component, NULL, 1, &entity);
        failing_allocator_heal(memory);
        quern_world_destroy(other);
        cr_assert_eq(failing_allocator_outstanding_bytes(memory), bytes);
    }
}
