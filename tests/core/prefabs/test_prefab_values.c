/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "tests/core/prefabs/prefab_scene.h"
#include "tests/support/fixture.h"

#include <stdio.h>
#include <string.h>

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
    quern_component component =
        make_component(world, .name = name, .size_bytes = sizeof(reference), .alignment_bytes = 8,
                       .fields = {{"entity", QUERN_FIELD_ENTITY, 0, .count = 1}}, .hooks = hooks);
    return component;
}

static void open_world(void)
{
    must(quern_world_create(NULL, &world));
    plain = register_reference("plain", (quern_hooks){0});
    hooked = register_reference("hooked", (quern_hooks){.copy = copy});
}

static quern_entity empty_entity(void)
{
    const quern_entity entity = setup_entity(world);
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
    const quern_entity captured = empty_entity(), other = empty_entity();
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
    const quern_entity entity = empty_entity();
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
    const quern_entity root = empty_entity(), child = empty_entity();
    const quern_relation parent = quern_world_parent(world);
    must(quern_entity_relate(world, child, parent, root));
    must(quern_entity_set_enabled(world, root, false));
    quern_prefab prefab;
    must(quern_prefab_capture(world, root, &prefab));
    quern_entity roots[2];
    must(quern_prefab_spawn(world, prefab, NULL, &roots[0]));
    must(quern_commands_spawn(quern_world_commands(world), prefab, NULL, NULL));
    must(quern_world_flush(world));
    quern_query *query = make_query(world, .terms = {quern_term_with(quern_world_disabled_tag(world)),
                                                     quern_term_without(quern_relation_component(parent))});
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

/* ------------------------------------------------------------------------------------------- overrides */

/* Prefabs: overrides and fill callbacks of immediate spawns. */

Test(prefab_overrides, overrides_give_each_instance_values_of_its_own, .init = open_scene)
{
    const quern_entity base = make_tower(&it, quern_entity_null());
    tracked first;
    tracked_construct(&first, 1, &it.counts);
    must(
        quern_entity_set(it.world, quern_entity_first_source(it.world, base, it.parent), it.value, &first));
    tracked_destroy(&first, &it.counts);
    const quern_prefab tower = capture(&it, base);
    vec3 points[MANY];
    uint64_t numbers[MANY];
    tracked values[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        points[i] = (vec3){(float)i, 0, 0};
        numbers[i] = 1000 + i;
        tracked_construct(&values[i], 2000 + i, &it.counts);
    }
    const quern_spawn_def def = {
        .overrides = {{it.point, 0, points}, {it.number, 2, numbers}, {it.value, 1, values}}};
    const uint64_t copied = it.counts.copied_count;
    quern_entity members[4 * MANY];
    must(quern_prefab_spawn_many(it.world, tower, MANY, &def, NULL, members));
    cr_assert_eq(it.counts.copied_count, copied + MANY, "each is made once");
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_eq(((const vec3 *)quern_entity_get(it.world, members[4 * i], it.point))->x, (float)i);
        cr_assert_eq(number_of(&it, members[4 * i + 2]), 1000 + i);
        cr_assert_eq(number_of(&it, members[4 * i + 1]), 11u, "others keep what was captured");
        cr_assert_eq(((const tracked *)quern_entity_get(it.world, members[4 * i + 1], it.value))->payload,
                     2000 + i);
        tracked_destroy(&values[i], &it.counts);
    }
    close_scene(&it);
}

typedef struct filled {
    uint32_t next, call_count;
    const quern_entity *roots;
} filled;

static void fill_numbers(quern_context *context, const quern_view *view)
{
    filled *seen = quern_context_user_data(context);
    uint64_t *numbers = quern_view_write(view, 0);
    cr_assert_eq(view->fill_index, seen->next);
    for (uint32_t i = 0; i < view->count; i++) {
        cr_assert(numbers[i] == 10 || numbers[i] == 12, "values are there already");
        numbers[i] = 5000 + view->fill_index + i;
    }
    seen->next += view->count;
    seen->call_count++;
}

static void expect_filled(uint32_t member)
{
    const quern_prefab tower = capture(&it, make_tower(&it, quern_entity_null()));
    filled seen = {0};
    const quern_spawn_def def = {
        .fill = fill_numbers, .fill_member = member, .fill_components = {it.number}, .user_data = &seen};
    quern_entity members[4 * MANY];
    must(quern_prefab_spawn_many(it.world, tower, MANY, &def, NULL, members));
    cr_assert_eq(seen.next, MANY);
    for (uint32_t i = 0; i < MANY; i++)
        cr_assert_eq(number_of(&it, members[4 * i + member]), 5000 + i);
    cr_assert_eq(seen.call_count < MANY, member == 0, "siblings of one kind lie between");
    close_scene(&it);
}

Test(prefab_overrides, fill_writes_the_rows_of_one_member, .init = open_scene)
{
    expect_filled(0);
}

Test(prefab_overrides, fill_is_called_per_row_if_rows_are_not_adjacent, .init = open_scene)
{
    expect_filled(2);
}

static void refuse_override(quern_prefab prefab, quern_result expected, quern_spawn_override override)
{
    const quern_spawn_def def = {.overrides = {override}};
    assert_refused(it.world, expected, quern_prefab_spawn(it.world, prefab, &def, NULL));
    cr_assert_not_null(strstr(quern_error_message(), "override 0"), "%s", quern_error_message());
}

Test(prefab_overrides, bad_overrides_and_fills_are_refused, .init = open_scene)
{
    const quern_prefab tower = capture(&it, make_tower(&it, quern_entity_null()));
    const uint64_t number = 1;
    const quern_component parent = quern_relation_component(it.parent);
    refuse_override(tower, QUERN_ERROR_INVALID_ARGUMENT, (quern_spawn_override){it.number, 4, &number});
    refuse_override(tower, QUERN_ERROR_COMPONENT_ABSENT, (quern_spawn_override){it.point, 1, &number});
    refuse_override(tower, QUERN_ERROR_INVALID_ARGUMENT, (quern_spawn_override){it.frozen, 3, &number});
    refuse_override(tower, QUERN_ERROR_INVALID_ARGUMENT, (quern_spawn_override){it.number, 1, NULL});
    refuse_override(tower, QUERN_ERROR_INVALID_ARGUMENT, (quern_spawn_override){parent, 1, &number});
    refuse_override(tower, QUERN_ERROR_UNKNOWN_COMPONENT,
                    (quern_spawn_override){component_unregistered(it.number), 1, &number});
    quern_spawn_def def = {
        .overrides = {{it.number, 1, &number}, {it.number, 2, &number}, {it.number, 1, &number}}};
    must_refuse(DUPLICATE_COMPONENT, it.world, quern_prefab_spawn(it.world, tower, &def, NULL));
    def = (quern_spawn_def){.fill_components = {it.number}};
    must_refuse(INVALID_ARGUMENT, it.world, quern_prefab_spawn(it.world, tower, &def, NULL));
    def = (quern_spawn_def){.fill = fill_numbers, .fill_member = 4};
    must_refuse(INVALID_ARGUMENT, it.world, quern_prefab_spawn(it.world, tower, &def, NULL));
    def = (quern_spawn_def){.fill = fill_numbers, .fill_member = 1, .fill_components = {it.point}};
    must_refuse(COMPONENT_ABSENT, it.world, quern_prefab_spawn(it.world, tower, &def, NULL));
    close_scene(&it);
}

/* The tags that Quern maintains, "disabled by parent" and those of levels, are no relations, and the message says so. */
Test(prefab_overrides, overrides_of_hidden_tags_are_refused_as_tags, .init = open_scene)
{
    const quern_entity root = make_tower(&it, quern_entity_null());
    must(quern_entity_set_enabled(it.world, root, false));
    const quern_prefab tower = capture(&it, root);
    uint32_t hidden_count = 0;
    for (uint32_t i = 0; i < quern_type_count(it.world, QUERN_TYPE_COMPONENT); i++) {
        quern_type_info info;
        must(quern_type_at(it.world, QUERN_TYPE_COMPONENT, i, &info));
        if (!info.is_managed || info.is_relation) continue;
        char said[128];
        snprintf(said, sizeof said, "override 0: '%s' is a tag that Quern maintains", info.name);
        refuse_override(tower, QUERN_ERROR_INVALID_ARGUMENT,
                        (quern_spawn_override){info.component, 1, said});
        cr_assert_not_null(strstr(quern_error_message(), said), "%s", quern_error_message());
        hidden_count += strcmp(info.name, "disabled by parent") == 0 ? 100 : 1;
    }
    cr_assert_geq(hidden_count, 101u);
    refuse_override(tower, QUERN_ERROR_INVALID_ARGUMENT,
                    (quern_spawn_override){quern_relation_component(it.parent), 1, &hidden_count});
    cr_assert_not_null(strstr(quern_error_message(), "'parent' is a relation"), "%s",
                       quern_error_message());
    close_scene(&it);
}
