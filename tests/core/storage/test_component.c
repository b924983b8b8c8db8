/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/archive/archive_internal.h"
#include "core/world/world_internal.h"
#include "sched/replay/replay_internal.h"
#include "tests/support/fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void open_world(void)
{
    world = setup_world();
}

TestSuite(component, .init = open_world, .fini = close_world);

static quern_component_def def_of(const char *name, uint32_t size_bytes, uint32_t alignment_bytes)
{
    quern_component_def def = {.name = name, .size_bytes = size_bytes, .alignment_bytes = alignment_bytes};
    return def;
}

static quern_result try_register(quern_component_def def)
{
    quern_component component;
    return quern_component_register(world, &def, &component);
}

static quern_component must_register(quern_component_def def)
{
    quern_component component = {0};
    quern_result result = quern_component_register(world, &def, &component);
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
    return component;
}

/* -------------------------------------------------------------------------------- names and lookup */

Test(component, is_found_by_its_name)
{
    quern_component position = setup_component(world, "position", 12, 4);
    quern_component velocity = setup_component(world, "velocity", 12, 4);
    cr_assert(quern_component_equal(quern_component_find(world, "position"), position));
    cr_assert(quern_component_equal(quern_component_find(world, "velocity"), velocity));
    cr_assert_str_eq(quern_component_name(world, position), "position");
    cr_assert_not(quern_component_equal(position, velocity));
}

Test(component, an_unknown_name_finds_null)
{
    setup_component(world, "position", 12, 4);
    cr_assert(quern_component_is_null(quern_component_find(world, "Position")));
    cr_assert(quern_component_is_null(quern_component_find(world, "")));
}

Test(component, name_of_a_foreign_component_is_null)
{
    quern_component position = setup_component(world, "position", 12, 4);
    cr_assert_null(quern_component_name(world, (quern_component){0}));
    cr_assert_null(quern_component_name(world, component_unregistered(position)));
    cr_assert_null(quern_component_name(world, component_of_other_world(position)));
}

Test(component, registration_copies_the_name)
{
    char name[] = "position";
    quern_component position = setup_component(world, name, 12, 4);
    name[0] = 'X';
    cr_assert_str_eq(quern_component_name(world, position), "position");
}

Test(component, invalid_names_fail)
{
    char long_name[QUERN_MAX_NAME_BYTES + 2];
    memset(long_name, 'x', sizeof long_name);
    long_name[QUERN_MAX_NAME_BYTES + 1] = '\0';
    must_refuse(INVALID_ARGUMENT, world, try_register(def_of(long_name, 4, 4)));
    must_refuse(INVALID_ARGUMENT, world, try_register(def_of("", 4, 4)));
    must_refuse(INVALID_ARGUMENT, world, try_register(def_of(NULL, 4, 4)));
    must_refuse(INVALID_ARGUMENT, world, try_register(def_of(NULL, 1u << 20, 4)));
    long_name[QUERN_MAX_NAME_BYTES] = '\0';
    must_register(def_of(long_name, 4, 4));
}

Test(component, null_arguments_fail)
{
    quern_component_def def = def_of("position", 12, 4);
    quern_component component;
    must_refuse(NULL_ARGUMENT, world, quern_component_register(NULL, &def, &component));
    must_refuse(NULL_ARGUMENT, world, quern_component_register(world, NULL, &component));
    must_refuse(NULL_ARGUMENT, world, quern_component_register(world, &def, NULL));
    cr_assert(quern_component_is_null(quern_component_find(NULL, "position")));
    cr_assert(quern_component_is_null(quern_component_find(world, NULL)));
    cr_assert_null(quern_component_name(NULL, (quern_component){0}));
}

Test(component, alignment_defaults_to_one)
{
    quern_component first = must_register((quern_component_def){.name = "odd", .size_bytes = 3});
    cr_assert(quern_component_equal(must_register(def_of("odd", 3, 1)), first));
}

/* ------------------------------------------------------------------------------------------ layout */

Test(component, registering_the_same_layout_again_returns_the_same_component)
{
    quern_component_def def = def_of("position", 12, 4);
    def.fields[0] = (quern_field){"x", QUERN_FIELD_F32, 0, .count = 1};
    def.fields[1] = (quern_field){"yz", QUERN_FIELD_F32, 4, .count = 2};
    quern_component first = must_register(def);
    cr_assert(quern_component_equal(must_register(def), first));
    cr_assert_eq(stats_of_world(world).component_count, 1u);
}

Test(component, other_fields_under_a_known_name_fail)
{
    quern_field field = {"x", QUERN_FIELD_F32, 4, .count = 2};
    quern_field others[] = {{"y", QUERN_FIELD_F32, 4, .count = 2},
                            {"x", QUERN_FIELD_U32, 4, .count = 2},
                            {"x", QUERN_FIELD_F32, 0, .count = 2},
                            {"x", QUERN_FIELD_F32, 4, .count = 1}};
    quern_component_def def = def_of("position", 12, 4);
    def.fields[0] = field;
    must_register(def);
    for (uint32_t i = 0; i < 4; i++) {
        def.fields[0] = others[i];
        must_refuse(LAYOUT_MISMATCH, world, try_register(def));
    }
}

static void destroy_nothing(void *values, uint32_t count, void *user_data) {}

static void destroy_nothing_elsewhere(void *values, uint32_t count, void *user_data) {}

/* As one C++ type in two shared libraries, and two types of one name. */
Test(component, identities_of_types_count_and_addresses_of_hooks_do_not)
{
    quern_component_def def = def_of("position", 12, 4);
    def.hooks.destroy = destroy_nothing;
    def.type_id = 71;
    def.type_name = "game::Position";
    const quern_component first = must_register(def);
    cr_assert_eq(quern__world_find_type(world, QUERN_TYPE_COMPONENT, 71), first.bits);
    def.hooks.destroy = destroy_nothing_elsewhere;
    cr_assert(quern_component_equal(must_register(def), first));
    def.size_bytes = 16;
    must_refuse(LAYOUT_MISMATCH, world, try_register(def));
    def.size_bytes = 12;
    def.type_id = 73;
    def.type_name = "other::Position";
    must_refuse(LAYOUT_MISMATCH, world, try_register(def));
    cr_assert(strstr(quern_error_message(), "'position'") != NULL &&
              strstr(quern_error_message(), "'game::Position'") != NULL &&
              strstr(quern_error_message(), "'other::Position'") != NULL);
    cr_assert_eq(quern__world_find_type(world, QUERN_TYPE_COMPONENT, 73), 0u);
    def.type_id = 0; /* C must have the same hooks */
    must_refuse(LAYOUT_MISMATCH, world, try_register(def));
    def.hooks.destroy = destroy_nothing;
    cr_assert(quern_component_equal(must_register(def), first));
}

Test(component, names_of_types_have_a_limit)
{
    char text[QUERN_MAX_NAME_BYTES + 2];
    memset(text, 'x', sizeof text);
    quern_component_def def = def_of("position", 12, 4);
    def.type_name = "";
    must_refuse(INVALID_ARGUMENT, world, try_register(def));
    def.type_name = text;
    text[QUERN_MAX_NAME_BYTES + 1] = '\0';
    must_refuse(INVALID_ARGUMENT, world, try_register(def));
    text[QUERN_MAX_NAME_BYTES] = '\0';
    must_register(def);
}

/* The upper halves of these identities are the same, so that all begin at one slot of the table. */
Test(component, types_are_found_by_their_identities)
{
    enum { COUNT = 100 };
    uint32_t components[COUNT], resources[COUNT], events[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        char name[16];
        quern_resource resource;
        quern_event event;
        snprintf(name, sizeof name, "type%u", i);
        quern_component_def def = def_of(name, 4, 4);
        def.type_id = 2 * i + 1;
        components[i] = must_register(def).bits;
        must(quern_resource_register(
            world, &(quern_resource_def){.name = name, .size_bytes = 4, .type_id = def.type_id},
            &resource));
        must(quern_event_register(
            world, &(quern_event_def){.name = name, .size_bytes = 4, .type_id = def.type_id}, &event));
        resources[i] = resource.bits;
        events[i] = event.bits;
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        cr_assert_eq(quern__world_find_type(world, QUERN_TYPE_COMPONENT, 2 * i + 1), components[i]);
        cr_assert_eq(quern__world_find_type(world, QUERN_TYPE_RESOURCE, 2 * i + 1), resources[i]);
        cr_assert_eq(quern__world_find_type(world, QUERN_TYPE_EVENT, 2 * i + 1), events[i]);
    }
    cr_assert_eq(quern__world_find_type(world, QUERN_TYPE_COMPONENT, 2 * COUNT + 1), 0u);
    cr_assert_eq(quern__world_find_type(world, QUERN_TYPE_COMPONENT, 0), 0u);
}

Test(component, another_layout_under_a_known_name_fails)
{
    must_register(def_of("position", 12, 4));
    quern_component_def with_field = def_of("position", 12, 4);
    with_field.fields[0] = (quern_field){"x", QUERN_FIELD_F32, 0, .count = 1};
    quern_component_def with_hook = def_of("position", 12, 4);
    with_hook.hooks.destroy = destroy_nothing;
    must_refuse(LAYOUT_MISMATCH, world, try_register(def_of("position", 16, 4)));
    must_refuse(LAYOUT_MISMATCH, world, try_register(def_of("position", 12, 2)));
    must_refuse(LAYOUT_MISMATCH, world, try_register(def_of("position", 0, 1)));
    must_refuse(LAYOUT_MISMATCH, world, try_register(with_field));
    must_refuse(LAYOUT_MISMATCH, world, try_register(with_hook));
    cr_assert_not_null(strstr(quern_error_message(), "position"));
}

/* No two flags share a bit in memory or in files, and no flag shares a bit with a role of a type. */
Test(component, flags_have_distinct_bits)
{
    uint32_t replay_bits = QUERN__REPLAY_IS_RELATION;
    uint32_t archive_bits =
        QUERN__ARCHIVED_HAS_LEVELS | QUERN__ARCHIVED_IS_ORDERED | QUERN__ARCHIVED_HAS_HOOKS;
    for (uint32_t i = 0; i < QUERN__COLUMN_FLAG_COUNT; i++) {
        const quern__column_flag *flag = &quern__column_flags[i];
        const bool is_row_flag = i < QUERN__ROW_FLAG_COUNT;
        cr_assert_eq(flag->bit, 1u << i);
        cr_assert((archive_bits & flag->archive_bit) == 0 && (replay_bits & flag->replay_bit) == 0, "%s",
                  flag->name);
        cr_assert((flag->archive_bit != 0) == is_row_flag && (flag->list_name != NULL) == is_row_flag, "%s",
                  flag->name);
        archive_bits |= flag->archive_bit;
        replay_bits |= flag->replay_bit;
    }
}

Test(component, messages_name_the_layout_flag_that_differs)
{
    quern_component_def def = def_of("toggle", 0, 1);
    must(try_register(def));
    def.row_changes = true;
    cr_assert_eq(try_register(def), QUERN_ERROR_LAYOUT_MISMATCH);
    cr_assert(strstr(quern_error_message(), "'toggle' is registered as one that has changes by chunk "
                                            "(row_changes)") != NULL);
    def = def_of("toggle", 0, 1);
    def.can_disable = true;
    cr_assert_eq(try_register(def), QUERN_ERROR_LAYOUT_MISMATCH);
    cr_assert(strstr(quern_error_message(), "'toggle' is registered as one that cannot be disabled "
                                            "(can_disable)") != NULL);
    def = def_of("toggle", 0, 1);
    def.is_hidden = true;
    must(try_register(def));
}

Test(component, alignments_must_be_powers_of_two_up_to_64)
{
    char name[16];
    for (uint32_t alignment = 1; alignment <= 256; alignment++) {
        snprintf(name, sizeof name, "align%u", alignment);
        bool good = (alignment & (alignment - 1)) == 0 && alignment <= 64;
        quern_component_def def = def_of(name, alignment, alignment);
        if (good)
            must_register(def);
        else
            must_refuse(BAD_ALIGNMENT, world, try_register(def));
    }
}

Test(component, the_size_must_be_a_multiple_of_the_alignment)
{
    must_refuse(INVALID_ARGUMENT, world, try_register(def_of("a", 6, 4)));
    must_refuse(INVALID_ARGUMENT, world, try_register(def_of("a", 32, 64)));
    must_register(def_of("a", 8, 4));
}

Test(component, components_above_the_largest_size_fail)
{
    quern_component largest = must_register(def_of("largest", QUERN_MAX_COMPONENT_BYTES, 64));
    setup_entity_with(world, &largest, 1);
    must_refuse(COMPONENT_TOO_LARGE, world,
                try_register(def_of("larger", QUERN_MAX_COMPONENT_BYTES + 1, 1)));
    cr_assert_not_null(strstr(quern_error_message(), "QUERN_MAX_COMPONENT_BYTES"));
    must_refuse(COMPONENT_TOO_LARGE, world, try_register(def_of("huge", UINT32_MAX, 1)));
}

Test(component, plain_c_types_register_in_one_line)
{
    quern_component component = {0};
    cr_assert_eq(QUERN_COMPONENT_REGISTER(world, &component, vec3), QUERN_OK);
    cr_assert_str_eq(quern_component_name(world, component), "vec3");
    quern_component again = {0};
    cr_assert_eq(QUERN_COMPONENT_REGISTER(world, &again, vec3), QUERN_OK);
    cr_assert(quern_component_equal(component, again));
    must_refuse(NULL_ARGUMENT, world, QUERN_COMPONENT_REGISTER(NULL, &component, vec3));
    must_refuse(NULL_ARGUMENT, world, QUERN_COMPONENT_REGISTER(world, NULL, vec3));
}

Test(component, the_1025th_type_fails)
{
    char name[16];
    for (uint32_t i = 0; i < QUERN_MAX_COMPONENTS; i++) {
        snprintf(name, sizeof name, "type%u", i);
        setup_component(world, name, i % 8, 1);
    }
    must_refuse(LIMIT, world, try_register(def_of("one_more", 4, 4)));
    cr_assert_not_null(strstr(quern_error_message(), "QUERN_MAX_COMPONENTS"));
    cr_assert(quern_component_is_null(quern_component_find(world, "one_more")));
    must_register(def_of("type1023", 1023 % 8, 1));
    cr_assert_eq(stats_of_world(world).component_count, (uint32_t)QUERN_MAX_COMPONENTS);
}

/* ------------------------------------------------------------------------------------------ fields */

static quern_result try_field(quern_field field)
{
    quern_component_def def = def_of("described", 16, 8);
    def.fields[0] = field;
    return try_register(def);
}

Test(component, fields_beyond_the_value_fail)
{
    must_refuse(INVALID_ARGUMENT, world, try_field((quern_field){"x", QUERN_FIELD_F32, 16, .count = 1}));
    must_refuse(INVALID_ARGUMENT, world, try_field((quern_field){"x", QUERN_FIELD_F32, 13, .count = 1}));
    must_refuse(INVALID_ARGUMENT, world, try_field((quern_field){"x", QUERN_FIELD_F32, 0, .count = 5}));
    must_refuse(INVALID_ARGUMENT, world, try_field((quern_field){"x", QUERN_FIELD_U8, 16, .count = 0}));
    must_refuse(INVALID_ARGUMENT, world,
                try_field((quern_field){"x", QUERN_FIELD_U8, UINT32_MAX, .count = 1}));
    must_refuse(INVALID_ARGUMENT, world,
                try_field((quern_field){"x", QUERN_FIELD_F64, 0, .count = 0x20000001u}));
    cr_assert_eq(try_field((quern_field){"x", QUERN_FIELD_F32, 0, .count = 4}), QUERN_OK);
}

Test(component, fields_with_an_invalid_type_or_name_fail)
{
    must_refuse(INVALID_ARGUMENT, world, try_field((quern_field){NULL, QUERN_FIELD_F32, 0, .count = 1}));
    must_refuse(INVALID_ARGUMENT, world, try_field((quern_field){"", QUERN_FIELD_F32, 0, .count = 1}));
    must_refuse(INVALID_ARGUMENT, world,
                try_field((quern_field){"x", (quern_field_type)(QUERN_FIELD_LIST + 1), 0, .count = 1}));
    must_refuse(INVALID_ARGUMENT, world, try_field((quern_field){.name = "x"}));
}

static const quern_named_value moods[] = {{"calm", 0}, {"Very angry", 7}, {NULL, 0}};

Test(component, registration_copies_units_ranges_and_named_values)
{
    char unit[] = "m/s", name[] = "speed", calm[] = "calm";
    quern_named_value values[] = {{calm, -1}, {"angry", 7}, {NULL, 0}};
    quern_component_def def = def_of("mover", 16, 8);
    def.fields[0] = (quern_field){name, QUERN_FIELD_F32, .unit = unit, .minimum = -1, .maximum = 10};
    def.fields[1] = (quern_field){"mood", QUERN_FIELD_I8, 4, .values = values, .is_read_only = true};
    def.fields[2] = (quern_field){"title", QUERN_FIELD_TEXT, 5, .count = 11, .is_hidden = true};
    const uint32_t index = quern__component_index(must_register(def));
    memset(unit, 'X', sizeof unit), memset(name, 'X', sizeof name), memset(calm, 'X', sizeof calm);
    memset(values, 0, sizeof values);
    const quern__type *type = quern__components_type(&world->storage.components, index);
    cr_assert_eq(type->field_count, 3u);
    const quern_field *fields = type->fields;
    cr_assert_str_eq(fields[0].name, "speed");
    cr_assert_str_eq(fields[0].unit, "m/s");
    cr_assert(fields[0].minimum == -1 && fields[0].maximum == 10 && fields[0].count == 1);
    cr_assert_str_eq(fields[1].values[0].name, "calm");
    cr_assert_eq(fields[1].values[0].value, -1);
    cr_assert_str_eq(fields[1].values[1].name, "angry");
    cr_assert_null(fields[1].values[2].name);
    cr_assert(fields[1].is_read_only && !fields[1].is_hidden && fields[1].unit == NULL);
    cr_assert(fields[2].is_hidden && fields[2].values == NULL && fields[2].count == 11);
    def.fields[0].name = "speed", def.fields[0].unit = NULL, def.fields[0].maximum = 99;
    def.fields[1].values = moods, def.is_hidden = true;
    must_register(def);
    cr_assert_str_eq(fields[0].unit, "m/s", "what fields mean is no part of the layout");
    cr_assert_not(type->flags);
}

Test(component, inconsistent_fields_fail)
{
    char long_unit[QUERN_MAX_NAME_BYTES + 2];
    memset(long_unit, 'x', sizeof long_unit);
    long_unit[QUERN_MAX_NAME_BYTES + 1] = '\0';
    quern_named_value endless[QUERN_MAX_NAMED_VALUES + 1];
    for (uint32_t i = 0; i < QUERN__COUNT_OF(endless); i++)
        endless[i] = (quern_named_value){"x", 0};
    const quern_named_value large[] = {{"large", 128}, {NULL, 0}}, small[] = {{"small", -1}, {NULL, 0}},
                            twice[] = {{"a", 1}, {"a", 2}, {NULL, 0}};
    const struct {
        quern_field field;
        const char *said;
    } cases[] = {
        {{"x", QUERN_FIELD_F32, .values = moods}, "'described': field 'x': it has named values, but is no"},
        {{"x", QUERN_FIELD_BOOL, .values = moods}, "but is no integer"},
        {{"x", QUERN_FIELD_I8, .values = large}, "its value 'large' is 128, which its type cannot hold"},
        {{"x", QUERN_FIELD_U16, .values = small}, "its value 'small' is -1"},
        {{"x", QUERN_FIELD_I32, .values = twice}, "two of its values are named 'a'"},
        {{"x", QUERN_FIELD_I32, .values = endless}, "QUERN_MAX_NAMED_VALUES"},
        {{"x", QUERN_FIELD_F32, .unit = long_unit}, "its unit has 64 bytes"},
        {{"x", QUERN_FIELD_F32, .minimum = 2, .maximum = 1}, "its range is empty: from 2 to 1"},
        {{"x", QUERN_FIELD_F32, .minimum = 0, .maximum = (double)NAN}, "its range is empty"},
        {{"x", QUERN_FIELD_ENTITY, .maximum = 1}, "it has a range, but is no number"},
        {{"x", QUERN_FIELD_TEXT, .minimum = -1}, "it has a range, but is no number"},
    };
    for (uint32_t i = 0; i < QUERN__COUNT_OF(cases); i++) {
        must_refuse(INVALID_ARGUMENT, world, try_field(cases[i].field));
        cr_assert_not_null(strstr(quern_error_message(), cases[i].said), "%s", quern_error_message());
    }
    static const char *const bad_names[] = {"", "7up", " a", "a ", "a,b", "a]", "[a", "a\n", "-a", "\x7F"};
    for (uint32_t i = 0; i < QUERN__COUNT_OF(bad_names); i++) {
        const quern_named_value values[] = {{"fine", 1}, {bad_names[i], 2}, {NULL, 0}};
        must_refuse(INVALID_ARGUMENT, world,
                    try_field((quern_field){"x", QUERN_FIELD_U64, .values = values}));
    }
}

Test(component, a_list_of_64_fields_needs_no_terminator)
{
    char names[QUERN_MAX_FIELDS][8];
    quern_component_def def = def_of("many", 128, 1);
    for (uint32_t i = 0; i < QUERN_MAX_FIELDS; i++) {
        snprintf(names[i], sizeof names[i], "f%u", i);
        def.fields[i] = (quern_field){names[i], QUERN_FIELD_U8, i, .count = 1};
    }
    const quern_component many = must_register(def);
    cr_assert_eq(
        quern__components_type(&world->storage.components, quern__component_index(many))->field_count,
        (uint32_t)QUERN_MAX_FIELDS);
}

Test(component, a_field_after_the_terminator_fails)
{
    quern_component_def def = def_of("described", 16, 8);
    def.fields[1] = (quern_field){"x", QUERN_FIELD_F32, 0, .count = 1};
    must_refuse(INVALID_ARGUMENT, world, try_register(def));
    cr_assert_not_null(strstr(quern_error_message(), "'described': field 0 is zero, which ends the list, "
                                                     "but field 1 is set: leave no gap"));
}

/* --------------------------------------------------------------------------------------- resources */

static quern_resource_def resource_def_of(const char *name, uint32_t size_bytes)
{
    quern_resource_def def = {.name = name, .size_bytes = size_bytes};
    return def;
}

static quern_result try_resource(quern_resource_def def)
{
    quern_resource resource;
    return quern_resource_register(world, &def, &resource);
}

static quern_resource must_resource(quern_resource_def def)
{
    quern_resource resource = {0};
    quern_result result = quern_resource_register(world, &def, &resource);
    cr_assert_eq(result, QUERN_OK, "%s", quern_error_message());
    return resource;
}

Test(component, a_resource_starts_from_its_value_or_from_zero_bytes)
{
    uint32_t score = 42;
    quern_resource_def def = resource_def_of("score", sizeof score);
    def.value = &score;
    def.alignment_bytes = 4;
    uint32_t *with_value = quern_resource_get(world, must_resource(def));
    uint64_t *without = quern_resource_get(world, must_resource(resource_def_of("time", 8)));
    score = 7;
    cr_assert_eq(*with_value, 42u);
    cr_assert_eq(*without, 0u);
}

Test(component, a_resource_keeps_its_address)
{
    quern_resource first = must_resource(resource_def_of("first", 64));
    void *address = quern_resource_get(world, first);
    char name[16];
    for (uint32_t i = 1; i < QUERN_MAX_RESOURCES; i++) {
        snprintf(name, sizeof name, "resource%u", i);
        must_resource(resource_def_of(name, i));
    }
    cr_assert_eq(quern_resource_get(world, first), address);
    must_refuse(LIMIT, world, try_resource(resource_def_of("one_more", 4)));
    cr_assert_not_null(strstr(quern_error_message(), "QUERN_MAX_RESOURCES"));
}

Test(component, a_resource_is_found_by_its_name_apart_from_components)
{
    quern_component component = setup_component(world, "wind", 4, 4);
    quern_resource resource = must_resource(resource_def_of("wind", 4));
    cr_assert_eq(quern_resource_find(world, "wind").bits, resource.bits);
    cr_assert_eq(quern_resource_find(world, "rain").bits, 0u);
    cr_assert(quern_component_equal(quern_component_find(world, "wind"), component));
    cr_assert_eq(quern_resource_find(world, NULL).bits, 0u);
    cr_assert_eq(quern_resource_find(NULL, "wind").bits, 0u);
}

Test(component, registering_a_resource_again_gives_the_same_and_keeps_its_value)
{
    const uint32_t first = 5, second = 6;
    quern_resource_def def = resource_def_of("score", 4);
    def.value = &first;
    const quern_resource score = must_resource(def);
    const uint32_t count = quern_type_count(world, QUERN_TYPE_RESOURCE);
    def.value = &second;
    cr_assert_eq(must_resource(def).bits, score.bits);
    cr_assert_eq(quern_type_count(world, QUERN_TYPE_RESOURCE), count);
    cr_assert_eq(*(const uint32_t *)quern_resource_get(world, score), 5u);
    def.alignment_bytes = 4;
    must_refuse(LAYOUT_MISMATCH, world, try_resource(def));
    cr_assert_not_null(strstr(quern_error_message(), "'score'"));
    def.alignment_bytes = 0;
    def.fields[0] = (quern_field){.name = "points", .type = QUERN_FIELD_U32};
    must_refuse(LAYOUT_MISMATCH, world, try_resource(def));
}

Test(component, invalid_resources_fail)
{
    must_resource(resource_def_of("score", 4));
    quern_resource_def misaligned = resource_def_of("grid", 64);
    misaligned.alignment_bytes = 24;
    quern_resource_def over_aligned = resource_def_of("grid", 128);
    over_aligned.alignment_bytes = 128;
    must_refuse(LAYOUT_MISMATCH, world, try_resource(resource_def_of("score", 8)));
    must_refuse(INVALID_ARGUMENT, world, try_resource(resource_def_of("score", 0)));
    must_refuse(INVALID_ARGUMENT, world, try_resource(resource_def_of("grid", 0)));
    must_refuse(INVALID_ARGUMENT, world, try_resource(resource_def_of("", 4)));
    must_refuse(BAD_ALIGNMENT, world, try_resource(misaligned));
    must_refuse(BAD_ALIGNMENT, world, try_resource(over_aligned));
    must_refuse(NULL_ARGUMENT, world, quern_resource_register(world, NULL, NULL));
}

Test(component, resources_of_all_alignments_are_aligned)
{
    char name[16];
    for (uint32_t alignment = 1; alignment <= 64; alignment *= 2) {
        snprintf(name, sizeof name, "align%u", alignment);
        quern_resource_def def = resource_def_of(name, 200);
        def.alignment_bytes = alignment;
        cr_assert_eq((uintptr_t)quern_resource_get(world, must_resource(def)) % alignment, 0u);
    }
}

Test(component, a_foreign_resource_fails)
{
    quern_resource score = must_resource(resource_def_of("score", 4));
    quern_resource foreign = {component_of_other_world((quern_component){score.bits}).bits};
    quern_resource unregistered = {component_unregistered((quern_component){score.bits}).bits};
    assert_refused_value(world, quern_resource_get(world, foreign));
    assert_refused_value(world, quern_resource_get(world, unregistered));
    assert_refused_value(world, quern_resource_get(world, (quern_resource){0}));
    assert_refused_value(world, quern_resource_get(NULL, score));
}
