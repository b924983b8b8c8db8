/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/fixture.h"

/* Prefabs: handles in values with hooks and in overrides, and members with managed tags. */

typedef struct reference {
    quern_entity entity;
} reference;

static quern_component plain, hooked;

static void copy(void *targets, const void *sources, uint32_t count, void *user_data)
{
    memcpy(targets, sources, count * sizeof(reference));
}

static quern_component register_reference(const char *name, quern_hooks hooks)
{
    quern_component component;
    must(quern_component_register(
        world,
        &(quern_component_def){.name = name,
                               .size_bytes = sizeof(reference),
                               .alignment_bytes = 8,
                               .fields = {{"entity", QUERN_FIELD_ENTITY, 0, .count = 1}},
                               .hooks = hooks},
        &component));
    return component;
}

static void open_world(void)
{
    must(quern_world_create(NULL, &world));
    plain = register_reference("plain", (quern_hooks){0});
    hooked = register_reference("hooked", (quern_hooks){.copy = copy});
}

static quern_entity make(void)
{
    quern_entity entity;
    must(quern_entity_create(world, &entity));
    return entity;
}

static void expect_reference(quern_entity entity, quern_component component, quern_entity expected)
{
    const reference *value = quern_entity_get(world, entity, component);
    cr_assert_not_null(value, "%s", quern_error_message());
    cr_assert_eq(value->entity.bits, expected.bits);
}

Test(prefab_values, handles_in_overrides_are_not_remapped_even_if_a_hook_copies_them, .init = open_world,
     .fini = close_valid_world)
{
    const quern_entity captured = make(), other = make();
    const quern_component components[] = {plain, hooked};
    for (uint32_t i = 0; i < 2; i++)
        must(quern_entity_set(world, captured, components[i], &(reference){captured}));
    quern_prefab prefab;
    must(quern_prefab_capture(world, captured, &prefab));
    const reference values[] = {{captured}, {other}};
    for (uint32_t i = 0; i < 2; i++) {
        const quern_spawn_def def = {.overrides = {{components[i], 0, values}}};
        quern_entity roots[2];
        must(quern_prefab_spawn_many(world, prefab, 2, &def, roots, NULL));
        for (uint32_t k = 0; k < 2; k++) {
            expect_reference(roots[k], components[i], values[k].entity);
            expect_reference(roots[k], components[1 - i], roots[k]);
        }
    }
}

Test(prefab_values, tree_with_a_provisional_handle_is_refused, .init = open_world,
     .fini = close_valid_world)
{
    const quern_entity entity = make();
    const quern_entity provisional = record_entity(quern_world_commands(world));
    must(quern_world_flush(world));
    must(quern_entity_set(world, entity, plain, &(reference){entity}));
    ((reference *)quern_entity_get(world, entity, plain))->entity =
        provisional; /* written through a pointer, so no call checks it */
    quern_prefab prefab;
    must_refuse(PROVISIONAL_ENTITY, world, quern_prefab_capture(world, entity, &prefab));
    must(quern_entity_set(world, entity, plain, &(reference){entity}));
    must(quern_prefab_capture(world, entity, &prefab));
}

Test(prefab_values, disabled_trees_are_spawned_disabled, .init = open_world, .fini = close_valid_world)
{
    const quern_entity root = make(), child = make();
    const quern_relation parent = quern_world_parent(world);
    must(quern_entity_relate(world, child, parent, root));
    must(quern_entity_set_enabled(world, root, false));
    quern_prefab prefab;
    must(quern_prefab_capture(world, root, &prefab));
    quern_entity roots[2];
    must(quern_prefab_spawn(world, prefab, NULL, &roots[0]));
    must(quern_commands_spawn(quern_world_commands(world), prefab, NULL, NULL));
    must(quern_world_flush(world));
    const quern_query_def def = {.terms = {quern_term_with(quern_world_disabled_tag(world)),
                                           quern_term_without(quern_relation_component(parent))}};
    quern_query *query;
    must(quern_query_create(world, &def, &query));
    cr_assert_eq(quern_query_count(query), 3u);
    quern_query_iterator iterator = quern_query_iterate(query);
    cr_assert(quern_query_next(&iterator));
    cr_assert_eq(iterator.view.count, 3u);
    roots[1] = iterator.view.entities[2];
    quern_query_destroy(query);
    for (uint32_t i = 0; i < 2; i++) {
        const quern_entity below = quern_entity_first_source(world, roots[i], parent);
        cr_assert_not(quern_entity_is_enabled(world, below));
        must(quern_entity_set_enabled(world, roots[i], true));
        cr_assert(quern_entity_is_enabled(world, below), "it was off because of its parent");
    }
}
