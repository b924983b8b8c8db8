/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/base/base_internal.h"
#include "core/storage/entity.h"
#include "tests/support/fixture.h"

#include <string.h>

/* Lists of a world's components, resources, events, relations and entities. */

static void open_world(void)
{
    world = setup_world();
}

TestSuite(list, .init = open_world, .fini = close_world);

static void construct(void *values, uint32_t count, void *user_data)
{
    memset(values, 1, count * sizeof(vec3));
}

static quern_type_info info_of(quern_component component)
{
    quern_type_info info;
    must(quern_component_get_info(world, component, &info));
    return info;
}

static quern_type_info type_at(quern_type_kind kind, uint32_t index)
{
    quern_type_info info;
    must(quern_type_at(world, kind, index, &info));
    return info;
}

Test(list, component_info_equals_the_definition)
{
    quern_component position;
    const quern_component_def def = {QUERN_TYPE(vec3),
                                     .fields = QUERN_FIELDS(vec3, x, y, z),
                                     .hooks = {.construct = construct},
                                     .can_disable = true,
                                     .row_changes = true,
                                     .is_hidden = true};
    must(quern_component_register(world, &def, &position));
    const quern_component tag = setup_tag(world, "tag");
    cr_assert_eq(quern_type_count(world, QUERN_TYPE_COMPONENT), 2u);
    cr_assert(quern_component_equal(type_at(QUERN_TYPE_COMPONENT, 0).component, position));
    cr_assert(quern_component_equal(type_at(QUERN_TYPE_COMPONENT, 1).component, tag));
    quern_type_info info = info_of(position);
    cr_assert_str_eq(info.name, "vec3");
    cr_assert_str_eq(info.type_name, "vec3");
    cr_assert(info.size_bytes == 12 && info.alignment_bytes == 4 && info.field_count == 3);
    cr_assert_str_eq(info.fields[2].name, "z");
    cr_assert(info.hooks.construct == construct && info.hooks.destroy == NULL);
    cr_assert(info.can_disable && info.row_changes && info.is_hidden && !info.is_managed &&
              !info.is_relation);
    info = info_of(tag);
    cr_assert(info.size_bytes == 0 && info.field_count == 0 && info.type_name[0] == '\0');
    cr_assert(!info.can_disable && !info.row_changes && !info.is_hidden);
}

Test(list, flags_are_listed_and_found_in_types)
{
    static const char *const lists[] = {"disabled", NULL, NULL};
    static const char *const names[] = {"can_disable", "row_changes", "is_hidden"};
    quern_component with[3];
    must(quern_component_register(world, &(quern_component_def){.name = "a", .can_disable = true},
                                  &with[0]));
    must(quern_component_register(world, &(quern_component_def){.name = "b", .row_changes = true},
                                  &with[1]));
    must(quern_component_register(world, &(quern_component_def){.name = "c", .is_hidden = true}, &with[2]));
    cr_assert_eq(quern_component_flag_count(), 3u);
    for (uint32_t i = 0; i < quern_component_flag_count(); i++) {
        quern_flag_info flag;
        must(quern_component_flag_get_info(i, &flag));
        cr_assert_str_eq(flag.name, names[i]);
        cr_assert(flag.with != NULL && flag.without != NULL);
        for (uint32_t k = 0; k < 3; k++) {
            const quern_type_info info = info_of(with[k]);
            cr_assert_eq(quern_type_has_flag(&info, &flag), i == k, "flag %u of type %u", i, k);
        }
        cr_assert((flag.list_name != NULL) == (lists[i] != NULL));
        cr_assert((flag.list_name != NULL) == (flag.is_listed != NULL && flag.list != NULL));
        if (flag.list_name != NULL) cr_assert_str_eq(flag.list_name, lists[i]);
    }
}

Test(list, flag_index_out_of_range_is_refused)
{
    quern_flag_info flag;
    cr_assert_eq(quern_component_flag_get_info(3, &flag), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_str_eq(
        quern_error_message(),
        "quern_component_flag_get_info: index 3 is out of range: component types have 3 flags");
    cr_assert_eq(quern_component_flag_get_info(0, NULL), QUERN_ERROR_NULL_ARGUMENT);
}

/* is_listed reports the state that the command of `list` has set. */
Test(list, flags_with_a_list_read_and_change_the_state_of_an_entity)
{
    const quern_component_def def = {.name = "toggle", .can_disable = true};
    quern_component toggle;
    quern_entity entity;
    quern_flag_info flag;
    must(quern_component_register(world, &def, &toggle));
    must(quern_entity_create(world, &entity));
    must(quern_entity_add(world, entity, toggle, NULL));
    for (uint32_t i = 0; i < quern_component_flag_count(); i++) {
        must(quern_component_flag_get_info(i, &flag));
        if (flag.list_name == NULL) continue;
        cr_assert_not(flag.is_listed(world, entity, toggle));
        must(flag.list(quern_world_commands(world), entity, toggle));
        must(quern_world_flush(world));
        cr_assert(flag.is_listed(world, entity, toggle));
    }
    cr_assert_not(quern_entity_is_component_enabled(world, entity, toggle));
}

Test(list, managed_components_are_reported_as_managed)
{
    const quern_relation parent = quern_world_parent(world);
    const quern_component disabled = quern_world_disabled_tag(world);
    quern_type_info info = info_of(quern_relation_component(parent));
    cr_assert(info.is_relation && info.is_managed && !info.is_hidden);
    cr_assert_str_eq(info.fields[0].name, "target");
    info = type_at(QUERN_TYPE_COMPONENT, 1);
    cr_assert(!info.is_relation && info.is_managed && info.is_hidden, "the tag of a level");
    info = info_of(disabled);
    cr_assert(!info.is_managed && !info.is_hidden);
    info = type_at(QUERN_TYPE_COMPONENT, quern_type_count(world, QUERN_TYPE_COMPONENT) - 1);
    cr_assert(info.is_managed && info.is_hidden, "disabled by parent");
}

Test(list, resources_events_and_relations)
{
    quern_resource score;
    quern_event hit;
    quern_relation owner, again;
    quern_type_info info;
    quern_relation_def def;
    cr_assert_eq(quern_type_count(world, QUERN_TYPE_EVENT), 0u);
    const quern_resource_def score_def = {.name = "score", .size_bytes = 8, .is_hidden = true};
    must(quern_resource_register(world, &score_def, &score));
    must(QUERN_EVENT_REGISTER_FIELDS(world, &hit, vec3, x));
    must(quern_relation_register(world,
                                 &(quern_relation_def){.name = "owner",
                                                       .on_target_destroyed = QUERN_TARGET_REFUSES,
                                                       .ordered = true},
                                 &owner));
    cr_assert(quern_type_count(world, QUERN_TYPE_RESOURCE) == 1 &&
              quern_type_count(world, QUERN_TYPE_EVENT) == 1 &&
              quern_type_count(world, QUERN_TYPE_RELATION) == 1);
    info = type_at(QUERN_TYPE_RESOURCE, 0);
    cr_assert_eq(info.resource.bits, score.bits);
    cr_assert(info.component.bits == 0 && info.event.bits == 0 && info.relation.bits == 0);
    info = type_at(QUERN_TYPE_EVENT, 0);
    cr_assert_eq(info.event.bits, hit.bits);
    cr_assert(info.component.bits == 0 && info.resource.bits == 0 && info.relation.bits == 0);
    info = type_at(QUERN_TYPE_RELATION, 0);
    cr_assert_eq(info.relation.bits, owner.bits);
    cr_assert_eq(info.component.bits, quern_relation_component(owner).bits);
    cr_assert_str_eq(info.name, "owner");
    cr_assert(info.is_relation);
    must(quern_resource_get_info(world, score, &info));
    cr_assert_str_eq(info.name, "score");
    cr_assert(info.size_bytes == 8 && info.is_hidden && info.field_count == 0);
    must(quern_event_get_info(world, hit, &info));
    cr_assert_str_eq(info.name, "vec3");
    cr_assert(info.size_bytes == 12 && !info.is_hidden && info.field_count == 1);
    must(quern_relation_get_def(world, owner, &def));
    cr_assert_str_eq(def.name, "owner");
    cr_assert(def.on_target_destroyed == QUERN_TARGET_REFUSES && def.ordered && !def.levels);
    cr_assert_not(def.many);
    must(quern_relation_register(world, &def, &again));
    cr_assert_eq(again.bits, owner.bits);
    quern_relation likes;
    must(quern_relation_register(world, &(quern_relation_def){.name = "likes", .many = true}, &likes));
    must(quern_relation_get_def(world, likes, &def));
    cr_assert(def.many && !def.levels && !def.ordered);
    must(quern_component_get_info(world, quern_relation_component(likes), &info));
    cr_assert(info.is_relation && info.is_managed && info.size_bytes == 0);
}

Test(list, entities_are_listed_by_slot_with_their_components)
{
    const quern_component b = setup_component(world, "b", 4, 4), a = setup_tag(world, "a");
    quern_entity entities[4], found[4];
    quern_component components[4] = {{0}};
    for (uint32_t i = 0; i < 4; i++)
        entities[i] = setup_entity(world);
    must(quern_entity_add(world, entities[3], a, NULL));
    must(quern_entity_add(world, entities[3], b, NULL));
    must(quern_entity_destroy(world, entities[1]));
    cr_assert_eq(quern_world_list_entities(world, NULL, 0), 3u);
    cr_assert_eq(quern_world_list_entities(world, found, 2), 3u);
    cr_assert_eq(quern_world_list_entities(world, found, 4), 3u);
    cr_assert(quern_entity_equal(found[0], entities[0]) && quern_entity_equal(found[1], entities[2]) &&
              quern_entity_equal(found[2], entities[3]));
    cr_assert_eq(quern_entity_list_components(world, entities[3], NULL, 0), 2u);
    cr_assert_eq(quern_entity_list_components(world, entities[3], components, 1), 2u);
    cr_assert(quern_component_equal(components[0], b) && components[1].bits == 0);
    cr_assert_eq(quern_entity_list_components(world, entities[3], components, 4), 2u);
    cr_assert(quern_component_equal(components[1], a));
    cr_assert_eq(quern_entity_list_components(world, entities[0], NULL, 0), 0u);
}

Test(list, entities_are_listed_after_pages_were_released)
{
    enum { COUNT = QUERN__PAGE_RECORDS + 10 };
    static quern_entity entities[COUNT];
    must(quern_entity_create_many(world, NULL, NULL, 0, COUNT, entities));
    must(quern_entity_destroy_many(world, entities, QUERN__PAGE_RECORDS));
    must(quern_world_trim(world));
    quern_entity found[16];
    cr_assert_eq(quern_world_list_entities(world, found, 16), 10u);
    cr_assert(quern_entity_equal(found[9], entities[COUNT - 1]));
}

Test(list, wrong_calls_are_refused)
{
    const quern_component tag = setup_tag(world, "tag");
    const quern_entity entity = setup_entity(world), dead = setup_entity(world);
    quern_type_info info;
    quern_relation_def def;
    must(quern_entity_destroy(world, dead));
    assert_refused_value(NULL, quern_type_count(NULL, QUERN_TYPE_COMPONENT));
    assert_refused_value(NULL, quern_type_count(NULL, QUERN_TYPE_RESOURCE));
    assert_refused_value(NULL, quern_type_count(NULL, QUERN_TYPE_EVENT));
    assert_refused_value(NULL, quern_type_count(NULL, QUERN_TYPE_RELATION));
    assert_refused_value(NULL, quern_type_count(world, (quern_type_kind)4));
    must_refuse(INVALID_ARGUMENT, NULL, quern_type_at(world, (quern_type_kind)4, 0, &info));
    must_refuse(INVALID_ARGUMENT, NULL, quern_type_at(world, QUERN_TYPE_COMPONENT, 1, &info));
    must_refuse(INVALID_ARGUMENT, NULL, quern_type_at(world, QUERN_TYPE_RESOURCE, 0, &info));
    must_refuse(INVALID_ARGUMENT, NULL, quern_type_at(world, QUERN_TYPE_EVENT, 0, &info));
    must_refuse(INVALID_ARGUMENT, NULL, quern_type_at(world, QUERN_TYPE_RELATION, 0, &info));
    cr_assert_str_eq(quern_error_message(),
                     "quern_type_at: index 0 is out of range: the world has 0 relations");
    must_refuse(NULL_ARGUMENT, NULL, quern_type_at(NULL, QUERN_TYPE_COMPONENT, 0, &info));
    must_refuse(NULL_ARGUMENT, NULL, quern_type_at(world, QUERN_TYPE_COMPONENT, 0, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_component_get_info(NULL, tag, &info));
    must_refuse(NULL_ARGUMENT, world, quern_component_get_info(world, tag, NULL));
    must_refuse(UNKNOWN_COMPONENT, world,
                quern_component_get_info(world, component_unregistered(tag), &info));
    must_refuse(UNKNOWN_RESOURCE, world, quern_resource_get_info(world, (quern_resource){0}, &info));
    must_refuse(UNKNOWN_EVENT, world, quern_event_get_info(world, (quern_event){0}, &info));
    must_refuse(INVALID_ARGUMENT, world, quern_relation_get_def(world, (quern_relation){tag.bits}, &def));
    must_refuse(NULL_ARGUMENT, world, quern_relation_get_def(world, (quern_relation){0}, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_relation_get_def(NULL, (quern_relation){0}, &def));
    assert_refused_value(world, quern_world_list_entities(NULL, NULL, 0));
    assert_refused_value(world, quern_world_list_entities(world, NULL, 1));
    assert_refused_value(world, quern_entity_list_components(world, dead, NULL, 0));
    assert_refused_value(world, quern_entity_list_components(world, entity, NULL, 1));
    assert_refused_value(world, quern_entity_list_components(NULL, entity, NULL, 0));
}
