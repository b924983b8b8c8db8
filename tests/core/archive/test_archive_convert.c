/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/setup.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static quern_world *from, *to;
static quern_byte_buffer memory;

static void open_worlds(void)
{
    from = setup_world();
    to = setup_world();
    memory = (quern_byte_buffer){0};
}

static void close_worlds(void)
{
    quern_world_destroy(from);
    quern_world_destroy(to);
    quern_byte_buffer_release(&memory);
}

TestSuite(archive_convert, .init = open_worlds, .fini = close_worlds);

typedef struct unit_1 {
    float x, y;
    int32_t points;
    uint8_t kind;
    bool is_loud;
    int16_t list[3];
    quern_entity target;
    float old;
    char title[8];
} unit_1;

typedef struct unit_2 {
    char title[4];
    double y, x;
    quern_entity target;
    int64_t list[2];
    uint64_t fresh;
    float points;
    int32_t is_loud;
    bool kind;
} unit_2;

static quern_component register_1(quern_world *world)
{
    quern_component component = make_component(
        world, .size_bytes = sizeof(unit_1), .alignment_bytes = _Alignof(unit_1), .name = "unit",
        .fields = {QUERN_FIELD(unit_1, x), QUERN_FIELD(unit_1, y), QUERN_FIELD(unit_1, points),
                   QUERN_FIELD(unit_1, kind), QUERN_FIELD(unit_1, is_loud), QUERN_FIELD(unit_1, list),
                   QUERN_FIELD(unit_1, target), QUERN_FIELD(unit_1, old), QUERN_TEXT(unit_1, title)});
    return component;
}

static quern_component register_2(quern_world *world)
{
    quern_component component = make_component(
        world, .size_bytes = sizeof(unit_2), .alignment_bytes = _Alignof(unit_2), .name = "unit",
        .fields = {QUERN_TEXT(unit_2, title), QUERN_FIELD(unit_2, y), QUERN_FIELD(unit_2, x),
                   QUERN_FIELD(unit_2, target), QUERN_FIELD(unit_2, list), QUERN_FIELD(unit_2, fresh),
                   QUERN_FIELD(unit_2, points), QUERN_FIELD(unit_2, is_loud), QUERN_FIELD(unit_2, kind)});
    return component;
}

static quern_result load(const quern_load_def *def, quern_load_report *report)
{
    return quern_world_load(to, quern_source_bytes(memory.bytes, memory.size_bytes), def, report);
}

static void save(const quern_save_def *def)
{
    memory.size_bytes = 0;
    must(quern_world_save(from, quern_sink_bytes(&memory), def));
}

Test(archive_convert, fields_are_matched_by_name_and_numbers_converted)
{
    const quern_component one = register_1(from), two = register_2(to);
    const quern_entity target = setup_entity(from);
    quern_entity unit, loaded[2];
    const unit_1 value = {.x = 1.5f,
                          .y = -2,
                          .points = -7,
                          .kind = 3,
                          .is_loud = true,
                          .list = {-1, 2, 3},
                          .target = target,
                          .old = 9,
                          .title = "ab\xC3\xA4xy"};
    must(quern_entity_create_with(from, &one, (const void *[]){&value}, 1, &unit));
    save(NULL);
    quern_load_report report;
    must(load(&(quern_load_def){.entities = loaded, .entity_capacity = 2}, &report));
    cr_assert_eq(report.converted_count, 1);
    cr_assert_eq(report.dropped_field_count, 1);
    const unit_2 *got = quern_entity_get(to, loaded[1], two);
    cr_assert_eq(got->x, 1.5);
    cr_assert_eq(got->y, -2);
    cr_assert_eq(got->points, -7.0f);
    cr_assert_eq(got->kind, true);
    cr_assert_eq(got->is_loud, 1);
    cr_assert_eq(got->list[0], -1);
    cr_assert_eq(got->list[1], 2);
    cr_assert_eq(got->fresh, 0);
    cr_assert(quern_entity_equal(got->target, loaded[0]));
    cr_assert_eq(memcmp(got->title, "ab\xC3\xA4", 4), 0, "four bytes have room, and no character is cut");
    assert_valid(to);
}

/* Registers a type with one number. */
static quern_component register_number(quern_world *world, quern_field_type type, uint32_t size_bytes)
{
    quern_component component =
        make_component(world, .name = "number", .size_bytes = size_bytes, .alignment_bytes = size_bytes,
                       .fields = {{.name = "value", .type = type}});
    return component;
}

/* Converts a number. Returns whether it fits, and the converted number. */
static bool convert(quern_field_type from_type, uint32_t from_bytes, const void *value,
                    quern_field_type to_type, uint32_t to_bytes, void *out_value)
{
    close_worlds();
    open_worlds();
    const quern_component source = register_number(from, from_type, from_bytes);
    const quern_component target = register_number(to, to_type, to_bytes);
    quern_entity entity;
    must(quern_entity_create_with(from, &source, &value, 1, NULL));
    save(NULL);
    const quern_result result = load(&(quern_load_def){.entities = &entity, .entity_capacity = 1}, NULL);
    if (result != QUERN_OK) {
        cr_assert_eq(result, QUERN_ERROR_INVALID_ARGUMENT, "%s", quern_error_message());
        cr_assert_eq(stats_of_world(to).entity_count, 0);
        return false;
    }
    memcpy(out_value, quern_entity_get(to, entity, target), to_bytes);
    return true;
}

Test(archive_convert, numbers_that_do_not_fit_are_rejected)
{
    int8_t small;
    uint64_t natural;
    float real;
    bool is_set;
    cr_assert(convert(QUERN_FIELD_I32, 4, &(int32_t){-128}, QUERN_FIELD_I8, 1, &small) && small == -128);
    cr_assert_not(convert(QUERN_FIELD_I32, 4, &(int32_t){-129}, QUERN_FIELD_I8, 1, &small));
    cr_assert_not(convert(QUERN_FIELD_U64, 8, &(uint64_t){128}, QUERN_FIELD_I8, 1, &small));
    cr_assert(convert(QUERN_FIELD_F64, 8, &(double){-3.9}, QUERN_FIELD_I8, 1, &small) && small == -3);
    cr_assert_not(convert(QUERN_FIELD_F64, 8, &(double){NAN}, QUERN_FIELD_I8, 1, &small));
    cr_assert_not(convert(QUERN_FIELD_F32, 4, &(float){INFINITY}, QUERN_FIELD_U64, 8, &natural));
    cr_assert_not(convert(QUERN_FIELD_I64, 8, &(int64_t){-1}, QUERN_FIELD_U64, 8, &natural));
    cr_assert(convert(QUERN_FIELD_F64, 8, &(double){-0.5}, QUERN_FIELD_U64, 8, &natural) && natural == 0);
    cr_assert_not(convert(QUERN_FIELD_F64, 8, &(double){0x1p64}, QUERN_FIELD_U64, 8, &natural));
    cr_assert_not(convert(QUERN_FIELD_F64, 8, &(double){1e300}, QUERN_FIELD_F32, 4, &real));
    cr_assert(convert(QUERN_FIELD_F64, 8, &(double){-INFINITY}, QUERN_FIELD_F32, 4, &real) && isinf(real));
    cr_assert(convert(QUERN_FIELD_F64, 8, &(double){0x1.fffffep127}, QUERN_FIELD_F32, 4, &real) &&
              real == 0x1.fffffep127f);
    cr_assert(convert(QUERN_FIELD_U64, 8, &(uint64_t){1ull << 40}, QUERN_FIELD_BOOL, 1, &is_set) && is_set);
    cr_assert(convert(QUERN_FIELD_F32, 4, &(float){0.0f}, QUERN_FIELD_BOOL, 1, &is_set) && !is_set);
}

Test(archive_convert, entities_are_not_converted_to_numbers)
{
    const quern_component source = register_number(from, QUERN_FIELD_ENTITY, 8);
    register_number(to, QUERN_FIELD_U64, 8);
    must(quern_entity_create_with(from, &source, NULL, 1, NULL));
    save(NULL);
    must_refuse(LAYOUT_MISMATCH, to, load(NULL, NULL));
}

Test(archive_convert, types_without_fields_need_the_same_size)
{
    const quern_component raw = setup_component(from, "raw", 8, 8);
    setup_component(to, "raw", 16, 8);
    setup_entity_with(from, &raw, 1);
    save(NULL);
    must_refuse(LAYOUT_MISMATCH, to, load(NULL, NULL));
}

/* ------------------------------------------------------------------------------- missing ones */

Test(archive_convert, missing_types_are_reported_and_left_out_on_request)
{
    const quern_component components[] = {setup_component(from, "a", 4, 4),
                                          setup_component(from, "b", 8, 8), setup_tag(from, "c")};
    quern_relation relation = make_relation(from, .name = "r", .levels = true);
    const quern_entity one = setup_entity_with(from, components, 3), two = setup_entity(from);
    must(quern_entity_relate(from, one, relation, two));
    save(NULL);
    const quern_component b = setup_component(to, "b", 8, 8);
    quern_load_report report;
    must_refuse(UNKNOWN_COMPONENT, to, load(NULL, &report));
    cr_assert_eq(report.missing_count, 3);
    cr_assert_str_eq(report.missing[0], "a");
    cr_assert_str_eq(report.missing[1], "c");
    cr_assert_str_eq(report.missing[2], "r");
    must(load(&(quern_load_def){.leave_out_missing = true}, &report));
    cr_assert_eq(report.missing_count, 3);
    cr_assert_eq(stats_of_world(to).entity_count, 2);
    quern_query *query = setup_query(to, (quern_term[]){quern_term_read(b)}, 1);
    cr_assert_eq(quern_query_count(query), 1);
    quern_query_destroy(query);
    assert_valid(to);
}

Test(archive_convert, a_relation_with_other_rules_is_rejected)
{
    quern_relation relation = make_relation(from, .name = "r", .levels = true);
    must(quern_entity_relate(from, setup_entity(from), relation, setup_entity(from)));
    save(NULL);
    (void)make_relation(to, .name = "r");
    must_refuse(LAYOUT_MISMATCH, to, load(NULL, NULL));
}

/* ---------------------------------------------------------------------------- hooks and migrations */

static void copy_hook(void *targets, const void *sources, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        ((char **)targets)[i] = strdup(((char *const *)sources)[i]);
}

static void destroy_hook(void *values, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        free(((char **)values)[i]);
}

static void construct_hook(void *values, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        ((char **)values)[i] = strdup("nothing");
}

static quern_component register_owner(quern_world *world, const char *name)
{
    quern_component component = make_component(
        world, .name = name, .size_bytes = sizeof(char *), .alignment_bytes = _Alignof(char *),
        .hooks = {.construct = construct_hook, .copy = copy_hook, .destroy = destroy_hook});
    return component;
}

Test(archive_convert, a_component_with_hooks_is_rejected_by_name_or_left_out)
{
    const quern_component owner = register_owner(from, "owner"),
                          plain = setup_component(from, "plain", 4, 4);
    setup_entity_with(from, (quern_component[]){owner, plain}, 2);
    must_refuse(INVALID_ARGUMENT, from, quern_world_save(from, quern_sink_bytes(&memory), NULL));
    cr_assert_not_null(strstr(quern_error_message(), "'owner'"));
    save(&(quern_save_def){.leave_out = {owner}});
    setup_component(to, "plain", 4, 4);
    must(load(NULL, NULL));
    cr_assert_eq(stats_of_world(to).entity_count, 1);
}

Test(archive_convert, an_archetype_without_rows_is_saved_without_its_hooks)
{
    const quern_component owner = register_owner(from, "owner");
    must(quern_entity_destroy(from, setup_entity_with(from, &owner, 1)));
    save(NULL);
    must(load(NULL, NULL));
}

static void to_text(void *user_data, void *targets, const void *sources, uint32_t count)
{
    *(uint32_t *)user_data += count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number;
        memcpy(&number, (const char *)sources + i * sizeof number, sizeof number);
        char text[16];
        snprintf(text, sizeof text, "%u", number);
        ((char **)targets)[i] = strdup(text);
    }
}

Test(archive_convert, a_migration_makes_values_of_a_component_with_hooks)
{
    enum { COUNT = 3000 };
    const quern_component number = setup_component(from, "number", 4, 4);
    for (uint32_t i = 0; i < COUNT; i++)
        must(quern_entity_create_with(from, &number, (const void *[]){&i}, 1, NULL));
    save(NULL);
    const quern_component owner = register_owner(to, "number");
    static quern_entity loaded[COUNT];
    uint32_t made_count = 0;
    must_refuse(LAYOUT_MISMATCH, to, load(NULL, NULL));
    const quern_load_def def = {.migrations = {{"number", owner, to_text, sizeof(uint32_t), &made_count}},
                                .entities = loaded,
                                .entity_capacity = COUNT};
    must(load(&def, NULL));
    cr_assert_eq(made_count, COUNT);
    cr_assert_str_eq(*(char **)quern_entity_get(to, loaded[2999], owner), "2999");
    assert_valid(to);
}

Test(archive_convert, a_migration_renames_or_omits_a_component)
{
    const quern_component components[] = {setup_component(from, "old", 4, 4),
                                          setup_component(from, "gone", 4, 4)};
    const uint32_t values[] = {5, 6};
    must(quern_entity_create_with(from, components, (const void *[]){&values[0], &values[1]}, 2, NULL));
    save(NULL);
    const quern_component fresh = setup_component(to, "new", 4, 4);
    quern_entity loaded;
    quern_load_def def = {.migrations = {{.name = "old", .component = fresh}, {.name = "gone"}},
                          .entities = &loaded,
                          .entity_capacity = 1};
    must(load(&def, NULL));
    cr_assert_eq(*(uint32_t *)quern_entity_get(to, loaded, fresh), 5);
    def.migrations[1].component = fresh;
    must_refuse(LAYOUT_MISMATCH, to, load(&def, NULL));
    def.migrations[1] = (quern_migration){.name = "gone", .migrate = to_text};
    must_refuse(INVALID_ARGUMENT, to, load(&def, NULL));
    def.migrations[1] = (quern_migration){.name = "gone", .component = {fresh.bits + 1}};
    must_refuse(UNKNOWN_COMPONENT, to, load(&def, NULL));
    def.migrations[1] = (quern_migration){"gone", fresh, to_text, 8, NULL};
    must_refuse(INVALID_ARGUMENT, to, load(&def, NULL));
}

Test(archive_convert, disabled_components_need_the_can_disable_flag)
{
    quern_component component = make_component(from, .name = "t", .can_disable = true);
    const quern_entity entity = setup_entity_with(from, &component, 1);
    setup_tag(to, "t");
    save(NULL);
    must(load(NULL, NULL));
    must(quern_entity_set_component_enabled(from, entity, component, false));
    save(NULL);
    must_refuse(LAYOUT_MISMATCH, to, load(NULL, NULL));
}

/* -------------------------------------------------------------------------------------------- values */

/* Registers a component "v" with one field at offset 0. */
static quern_component register_field(quern_world *world, uint32_t size_bytes, quern_field field)
{
    quern_component component = make_component(world, .name = "v", .size_bytes = size_bytes,
                                               .alignment_bytes = 1, .fields = {field});
    return component;
}

static quern_resource register_text(quern_world *world, uint32_t bytes, const char *value)
{
    quern_resource resource = make_resource(
        world, .name = "player", .size_bytes = bytes, .alignment_bytes = 1,
        .fields = {{.name = "name", .type = QUERN_FIELD_TEXT, .count = bytes}}, .value = value);
    return resource;
}

Test(archive_convert, shortened_text_overwrites_the_whole_field)
{
    register_text(from, 4, "Anna");
    const quern_resource player = register_text(to, 8, "Nobody!");
    save(NULL);
    quern_load_report report;
    must(load(NULL, &report));
    cr_assert_arr_eq(quern_resource_get(to, player), "Anna\0\0\0\0", 8);
    cr_assert_eq(report.converted_count, 1, "resources count, too");
}

/* Saves a text of `bytes` bytes and loads it into a field of `fewer` bytes. */
static const char *cut(const char *text, uint32_t bytes, uint32_t fewer)
{
    static char got[16];
    close_worlds();
    open_worlds();
    const quern_component source =
        register_field(from, bytes, (quern_field){.name = "t", .type = QUERN_FIELD_TEXT, .count = bytes});
    const quern_component target =
        register_field(to, fewer, (quern_field){.name = "t", .type = QUERN_FIELD_TEXT, .count = fewer});
    quern_entity entity;
    must(quern_entity_create_with(from, &source, (const void *[]){text}, 1, NULL));
    save(NULL);
    must(load(&(quern_load_def){.entities = &entity, .entity_capacity = 1}, NULL));
    memset(got, 0, sizeof got);
    memcpy(got, quern_entity_get(to, entity, target), fewer);
    return got;
}

Test(archive_convert, shortened_text_ends_at_a_character)
{
    cr_assert_str_eq(cut("ab\xC3\xA4xy", 6, 3), "ab", "half of two bytes");
    cr_assert_str_eq(cut("ab\xC3\xA4xy", 6, 4), "ab\xC3\xA4");
    cr_assert_str_eq(cut("a\xE2\x82\xACxx", 6, 2), "a", "a third of three bytes");
    cr_assert_str_eq(cut("a\xE2\x82\xACxx", 6, 3), "a", "two thirds of three bytes");
    cr_assert_str_eq(cut("a\xF0\x9F\x98\x80", 5, 4), "a", "three of four bytes");
    cr_assert_str_eq(cut("\xF0\x9F\x98\x80z", 5, 4), "\xF0\x9F\x98\x80");
    cr_assert_str_eq(cut("a\0\x80\x80\x80", 5, 3), "a", "it ended before");
}

Test(archive_convert, integers_become_the_nearest_float_in_one_step)
{
    float real;
    const int64_t whole = (INT64_C(1) << 60) + (INT64_C(1) << 36) + 1;
    cr_assert(convert(QUERN_FIELD_I64, 8, &whole, QUERN_FIELD_F32, 4, &real));
    cr_assert_eq(real, 0x1.000002p60f, "through a double it would be 2 to the power of 60");
    const int64_t negative = -whole;
    cr_assert(convert(QUERN_FIELD_I64, 8, &negative, QUERN_FIELD_F32, 4, &real));
    cr_assert_eq(real, -0x1.000002p60f);
    const uint64_t large = UINT64_C(0xFFFFFF7FFFFFFFFF);
    cr_assert(convert(QUERN_FIELD_U64, 8, &large, QUERN_FIELD_F32, 4, &real));
    cr_assert_eq(real, 0x1.fffffep63f, "through a double it would be 2 to the power of 64");
}

static quern_resource register_level(quern_world *world, quern_field_type type, uint32_t size_bytes,
                                     const void *value)
{
    quern_resource resource =
        make_resource(world, .name = "level", .size_bytes = size_bytes, .alignment_bytes = size_bytes,
                      .value = value, .fields = {{.name = "number", .type = type}});
    return resource;
}

Test(archive_convert, a_resource_with_a_number_that_does_not_fit_is_rejected)
{
    const quern_resource large = register_level(from, QUERN_FIELD_I32, 4, &(int32_t){-129});
    const quern_resource small = register_level(to, QUERN_FIELD_I8, 1, &(int8_t){5});
    save(NULL);
    must_refuse(INVALID_ARGUMENT, to, load(NULL, NULL));
    cr_assert_eq(*(const int8_t *)quern_resource_get(to, small), 5);
    *(int32_t *)quern_resource_get(from, large) = -128;
    save(NULL);
    must(load(NULL, NULL));
    cr_assert_eq(*(const int8_t *)quern_resource_get(to, small), -128);
}

Test(archive_convert, resource_fields_load_into_an_undescribed_resource_of_the_same_size)
{
    typedef struct pair {
        int32_t a, b;
    } pair;
    (void)make_resource(from, .name = "rules", .size_bytes = sizeof(pair), .alignment_bytes = 4,
                        .fields = QUERN_FIELDS(pair, a, b), .value = &(pair){3, 4});
    const quern_resource resource =
        make_resource(to, .name = "rules", .size_bytes = sizeof(pair), .alignment_bytes = 4);
    save(NULL);
    must(load(NULL, NULL));
    const pair *got = quern_resource_get(to, resource);
    cr_assert_eq(got->a, 3);
    cr_assert_eq(got->b, 4);
}

static quern_resource register_owning_resource(quern_world *world, bool has_field)
{
    quern_resource resource = make_resource(world, .name = "player", .size_bytes = 8, .alignment_bytes = 8,
                                            .fields = {{.name = has_field ? "name" : NULL,
                                                        .type = has_field ? QUERN_FIELD_TEXT : 0,
                                                        .count = has_field ? 4 : 0}},
                                            .hooks = {.destroy = has_field ? NULL : destroy_hook});
    return resource;
}

Test(archive_convert, a_resource_with_hooks_and_without_fields_is_rejected)
{
    register_owning_resource(from, true);
    const quern_resource resource = register_owning_resource(to, false);
    *(char **)quern_resource_get(to, resource) = strdup("kept");
    save(NULL);
    must_refuse(LAYOUT_MISMATCH, to, load(NULL, NULL));
    cr_assert_str_eq(*(char **)quern_resource_get(to, resource), "kept");
    must(load(&(quern_load_def){.skip_resources = true}, NULL));
    cr_assert_str_eq(*(char **)quern_resource_get(to, resource), "kept");
}

/* ------------------------------------------------------------------------------------------- handles */

/* Two handles. The archive may describe only the second one. */
typedef struct owned {
    quern_entity owner, other;
} owned;

static void construct_owned(void *values, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        ((owned *)values)[i] = (owned){.owner = *(const quern_entity *)user_data};
}

static quern_component register_owned(quern_world *world, quern_entity *owner)
{
    quern_component component =
        make_component(world, .name = "v", .size_bytes = sizeof(owned), .alignment_bytes = _Alignof(owned),
                       .fields = QUERN_FIELDS(owned, owner, other),
                       .hooks = {.construct = construct_owned, .user_data = owner});
    return component;
}

Test(archive_convert, handles_from_a_construct_hook_are_not_remapped)
{
    static quern_entity owner;
    const quern_component source =
        register_field(from, 8, (quern_field){.name = "other", .type = QUERN_FIELD_ENTITY});
    const quern_component target = register_owned(to, &owner);
    const quern_entity first = setup_entity(from);
    must(quern_entity_create_with(from, &source, (const void *[]){&first}, 1, NULL));
    owner = setup_entity(to);
    save(NULL);
    quern_entity loaded[2];
    must(load(&(quern_load_def){.entities = loaded, .entity_capacity = 2}, NULL));
    const owned *got = quern_entity_get(to, loaded[1], target);
    cr_assert(quern_entity_equal(got->owner, owner));
    cr_assert(quern_entity_equal(got->other, loaded[0]), "handles of the archive are");
}

Test(archive_convert, array_elements_in_both_types_are_remapped)
{
    const quern_component source =
        register_field(from, 24, (quern_field){.name = "e", .type = QUERN_FIELD_ENTITY, .count = 3});
    const quern_component target =
        register_field(to, 16, (quern_field){.name = "e", .type = QUERN_FIELD_ENTITY, .count = 2});
    const quern_entity first = setup_entity(from), value[3] = {first, first, first};
    must(quern_entity_create_with(from, &source, (const void *[]){value}, 1, NULL));
    setup_entity(to);
    save(NULL);
    quern_entity loaded[2];
    must(load(&(quern_load_def){.entities = loaded, .entity_capacity = 2}, NULL));
    const quern_entity expected[] = {loaded[0], loaded[0]};
    cr_assert_arr_eq(quern_entity_get(to, loaded[1], target), expected, sizeof expected);
}

Test(archive_convert, bytes_without_fields_are_never_remapped)
{
    const quern_component raw = setup_component(from, "v", 8, 1);
    setup_entity_with(from, &raw, 1);
    register_field(to, 8, (quern_field){.name = "e", .type = QUERN_FIELD_ENTITY});
    save(NULL);
    must_refuse(LAYOUT_MISMATCH, to, load(NULL, NULL));
}

Test(archive_convert, handles_are_remapped_if_only_the_archive_describes_them)
{
    const quern_component source =
        register_field(from, 8, (quern_field){.name = "e", .type = QUERN_FIELD_ENTITY});
    const quern_component target = setup_component(to, "v", 8, 1);
    const quern_entity first = setup_entity(from);
    must(quern_entity_create_with(from, &source, (const void *[]){&first}, 1, NULL));
    setup_entity(to);
    save(NULL);
    quern_entity loaded[2];
    must(load(&(quern_load_def){.entities = loaded, .entity_capacity = 2}, NULL));
    cr_assert_arr_eq(quern_entity_get(to, loaded[1], target), &loaded[0], sizeof loaded[0]);
}

/* ------------------------------------------------------------------------- what migrations may do */

static void copy_8_bytes(void *user_data, void *targets, const void *sources, uint32_t count)
{
    if (user_data != NULL) *(bool *)user_data &= (uintptr_t)sources % 8 == 0;
    memcpy(targets, sources, (size_t)count * 8);
}

Test(archive_convert, sources_of_a_migration_are_aligned)
{
    const quern_component odd = setup_component(from, "odd", 1, 1),
                          source = setup_component(from, "old", 8, 8);
    for (uint64_t i = 0; i < 7; i++) {
        const void *const values[] = {NULL, &i};
        must(quern_entity_create_with(from, (quern_component[]){odd, source}, values, 2, NULL));
    }
    save(NULL);
    setup_component(to, "odd", 1, 1);
    const quern_component target = setup_component(to, "new", 8, 8);
    quern_entity loaded[7];
    bool are_aligned = true;
    must(load(&(quern_load_def){.migrations = {{"old", target, copy_8_bytes, 8, &are_aligned}},
                                .entities = loaded,
                                .entity_capacity = 7},
              NULL));
    cr_assert(are_aligned);
    cr_assert_eq(*(uint64_t *)quern_entity_get(to, loaded[6], target), 6);
}

/* A migration makes values without described fields from handles. The values are not remapped, because
 * nothing says that they contain handles. */
static void copy_first_byte(void *user_data, void *targets, const void *sources, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        memcpy((char *)targets + i, (const char *)sources + (size_t)8 * i, 1);
}

Test(archive_convert, migrated_values_without_fields_are_not_remapped)
{
    const quern_component source =
        register_field(from, 8, (quern_field){.name = "e", .type = QUERN_FIELD_ENTITY});
    const quern_entity first = {.bits = setup_entity(from).bits + 0x5A};
    quern_entity loaded[21];
    for (uint32_t i = 0; i < 20; i++)
        must(quern_entity_create_with(from, &source, (const void *[]){&first}, 1, NULL));
    save(NULL);
    const quern_component target = setup_component(to, "new", 1, 1);
    must(load(&(quern_load_def){.migrations = {{"v", target, copy_first_byte, 8, NULL}},
                                .entities = loaded,
                                .entity_capacity = 21},
              NULL));
    for (uint32_t i = 1; i < 21; i++)
        cr_assert_eq(*(char *)quern_entity_get(to, loaded[i], target), 0x5A, "entity %u", i);
}

Test(archive_convert, two_migrations_of_one_name_are_rejected)
{
    const quern_component a = setup_component(to, "a", 4, 4);
    setup_entity(from);
    save(NULL);
    const quern_load_def def = {
        .migrations = {{.name = "x", .component = a}, {.name = "y"}, {.name = "x"}}};
    must_refuse(INVALID_ARGUMENT, to, load(&def, NULL));
    cr_assert_not_null(strstr(quern_error_message(), "'x'"));
}

/* Calls functions that would change the world during a load. */
static void call_in(quern_world *world)
{
    quern_entity entity;
    cr_assert_eq(quern_entity_create(world, &entity), QUERN_ERROR_WORLD_LOCKED);
    cr_assert_eq(quern_world_remove_empty_archetypes(world, NULL), QUERN_ERROR_WORLD_LOCKED);
}

static void migrate_and_call_in(void *user_data, void *targets, const void *sources, uint32_t count)
{
    call_in(user_data);
    copy_8_bytes(NULL, targets, sources, count);
}

Test(archive_convert, a_migration_must_not_change_the_world)
{
    const quern_component source = setup_component(from, "old", 8, 8);
    setup_entity_with(from, &source, 1);
    save(NULL);
    const quern_component target = setup_component(to, "new", 8, 8);
    must(load(&(quern_load_def){.migrations = {{"old", target, migrate_and_call_in, 8, to}}}, NULL));
    cr_assert_eq(stats_of_world(to).entity_count, 1);
    assert_valid(to);
    setup_entity(to); /* the world is unlocked again */
}

/* ------------------------------------------------------------------------------------------ relations */

static quern_relation register_relation(quern_world *world, const char *name, bool levels)
{
    quern_relation relation =
        make_relation(world, .name = name, .levels = levels, .on_target_destroyed = QUERN_TARGET_UNRELATES);
    return relation;
}

/* Saves a chain of entities: each is a child of the previous one. */
static void save_chain(uint32_t count, bool levels)
{
    const quern_relation in = register_relation(from, "in", levels);
    quern_entity last = setup_entity(from);
    for (uint32_t i = 1; i < count; i++) {
        const quern_entity next = setup_entity(from);
        must(quern_entity_relate(from, next, in, last));
        last = next;
    }
    save(NULL);
}

static void load_chain(quern_entity loaded[20], quern_component component)
{
    const quern_load_def def = {
        .migrations = {{.name = "in", .component = component}}, .entities = loaded, .entity_capacity = 20};
    must(load(&def, NULL));
    assert_valid(to);
}

Test(archive_convert, a_migration_omits_a_relation)
{
    quern_entity loaded[20];
    save_chain(20, true);
    const quern_relation in = register_relation(to, "in", true);
    load_chain(loaded, (quern_component){0});
    for (uint32_t i = 0; i < 20; i++)
        cr_assert_eq(quern_entity_target(to, loaded[i], in).bits, 0);
}

Test(archive_convert, without_the_hierarchy_entities_are_disabled_by_themselves)
{
    const quern_entity root = setup_entity(from), child = setup_entity(from), twin = setup_entity(from);
    must(quern_entity_relate(from, child, quern_world_parent(from), root));
    must(quern_entity_set_name(from, child, "gun"));
    must(quern_entity_set_name(from, twin, "gun"));
    must(quern_entity_set_enabled(from, root, false));
    save(NULL);
    quern_entity loaded[3];
    quern_load_report report;
    quern_load_def def = {.migrations = {{.name = "parent"}},
                          .entities = loaded,
                          .entity_capacity = 3,
                          .drop_taken_names = true};
    must(load(&def, &report));
    assert_valid(to);
    cr_assert_eq(report.dropped_name_count, 1, "two roots had one name");
    cr_assert_eq(quern_entity_source_count(to, loaded[0], quern_world_parent(to)), 0);
    cr_assert_not(quern_entity_is_enabled(to, loaded[1]));
    must(quern_entity_set_enabled(to, loaded[0], true));
    cr_assert_not(quern_entity_is_enabled(to, loaded[1]), "nobody else switches it");
    must(quern_entity_set_enabled(to, loaded[1], true));
    cr_assert(quern_entity_is_enabled(to, loaded[1]));
}

Test(archive_convert, a_migration_changes_name_policy_order_and_omits_levels_of_a_relation)
{
    quern_entity loaded[20];
    save_chain(20, true);
    quern_relation other =
        make_relation(to, .name = "in", .on_target_destroyed = QUERN_TARGET_REFUSES, .ordered = true);
    must_refuse(LAYOUT_MISMATCH, to, load(NULL, NULL));
    cr_assert_not_null(strstr(quern_error_message(), "quern_relation_component"));
    load_chain(loaded, quern_relation_component(other));
    for (uint32_t i = 1; i < 20; i++)
        cr_assert(quern_entity_equal(quern_entity_target(to, loaded[i], other), loaded[i - 1]));
    cr_assert_eq(quern_entity_destroy(to, loaded[18]), QUERN_ERROR_TARGET_IN_USE);
    must(quern_entity_destroy(to, loaded[19]));
    must(quern_entity_destroy(to, loaded[18]));
}

Test(archive_convert, a_migration_keeps_the_levels_of_a_relation)
{
    quern_entity loaded[20];
    save_chain(20, true);
    const quern_relation other = register_relation(to, "other", true);
    load_chain(loaded, quern_relation_component(other));
    must(quern_entity_unrelate(to, loaded[1], other));
    assert_valid(to);
}

Test(archive_convert, a_migration_to_a_relation_with_levels_or_a_function_is_rejected)
{
    save_chain(3, false);
    const quern_relation other = register_relation(to, "other", true),
                         flat = register_relation(to, "flat", false);
    quern_load_def def = {.migrations = {{.name = "in", .component = quern_relation_component(other)}}};
    must_refuse(LAYOUT_MISMATCH, to, load(&def, NULL));
    def.migrations[0] = (quern_migration){"in", quern_relation_component(flat), copy_8_bytes, 8, NULL};
    must_refuse(INVALID_ARGUMENT, to, load(&def, NULL));
}

Test(archive_convert, two_relations_are_not_loaded_as_one)
{
    const quern_relation a = register_relation(from, "a", true), b = register_relation(from, "b", true);
    const quern_entity one = setup_entity(from), two = setup_entity(from);
    must(quern_entity_relate(from, one, a, two));
    must(quern_entity_relate(from, two, b, one)); /* in one relation, these links would form a cycle */
    save(NULL);
    const quern_component c = quern_relation_component(register_relation(to, "c", true));
    const quern_load_def def = {
        .migrations = {{.name = "a", .component = c}, {.name = "b", .component = c}}};
    must_refuse(LAYOUT_MISMATCH, to, load(&def, NULL));
}

Test(archive_convert, a_relation_migrates_to_a_component_by_field_or_function)
{
    quern_entity loaded[20];
    save_chain(20, true);
    setup_entity(to);
    const quern_component plain =
        register_field(to, 8, (quern_field){.name = "target", .type = QUERN_FIELD_ENTITY});
    load_chain(loaded, plain);
    for (uint32_t i = 1; i < 20; i++)
        cr_assert_arr_eq(quern_entity_get(to, loaded[i], plain), &loaded[i - 1], sizeof loaded[0]);
    cr_assert_not(quern_entity_has(to, loaded[0], plain));
    quern_load_def def = {
        .migrations = {{"in", plain, copy_8_bytes, 8, NULL}}, .entities = loaded, .entity_capacity = 20};
    must(load(&def, NULL));
    cr_assert_arr_eq(quern_entity_get(to, loaded[5], plain), &loaded[4], sizeof loaded[0]);
}

Test(archive_convert, a_component_does_not_migrate_to_a_relation)
{
    const quern_component source =
        register_field(from, 8, (quern_field){.name = "target", .type = QUERN_FIELD_ENTITY});
    setup_entity_with(from, &source, 1);
    save(NULL);
    const quern_relation v = register_relation(to, "v", false);
    must_refuse(LAYOUT_MISMATCH, to, load(NULL, NULL));
    quern_load_def def = {.migrations = {{.name = "v", .component = quern_relation_component(v)}}};
    must_refuse(LAYOUT_MISMATCH, to, load(&def, NULL));
    def.migrations[0].component = (quern_component){0};
    must(load(&def, NULL));
}
