/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/prefabs/prefab_scene.h"

#include <stdio.h>
#include <string.h>

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
