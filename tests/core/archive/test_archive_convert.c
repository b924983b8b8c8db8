/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/setup.h"

#include <quern/archive.h>
#include <quern/relation.h>

#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

static quern_world *from, *to;
static quern_memory memory;

static void open_worlds(void)
{
    from = setup_world();
    to = setup_world();
    memory = (quern_memory){0};
}

static void close_worlds(void)
{
    quern_world_destroy(from);
    quern_world_destroy(to);
    quern_memory_release(&memory);
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
    quern_component component;
    must(quern_component_register(
        world,
        &(quern_component_def){
            .size_bytes = sizeof(unit_1),
            .alignment_bytes = _Alignof(unit_1),
            .name = "unit",
            .fields = {QUERN_FIELD(unit_1, x), QUERN_FIELD(unit_1, y), QUERN_FIELD(unit_1, points),
                       QUERN_FIELD(unit_1, kind), QUERN_FIELD(unit_1, is_loud), QUERN_FIELD(unit_1, list),
                       QUERN_FIELD(unit_1, target), QUERN_FIELD(unit_1, old), QUERN_TEXT(unit_1, title)}},
        &component));
    return component;
}

static quern_component register_2(quern_world *world)
{
    quern_component component;
    must(quern_component_register(
        world,
        &(quern_component_def){.size_bytes = sizeof(unit_2),
                               .alignment_bytes = _Alignof(unit_2),
                               .name = "unit",
                               .fields = {QUERN_TEXT(unit_2, title), QUERN_FIELD(unit_2, y),
                                          QUERN_FIELD(unit_2, x), QUERN_FIELD(unit_2, target),
                                          QUERN_FIELD(unit_2, list), QUERN_FIELD(unit_2, fresh),
                                          QUERN_FIELD(unit_2, points), QUERN_FIELD(unit_2, is_loud),
                                          QUERN_FIELD(unit_2, kind)}},
        &component));
    return component;
}

static quern_result load(const quern_load_def *def, quern_load_report *report)
{
    return quern_world_load(to, quern_source_memory(memory.bytes, memory.size_bytes), def, report);
}

static void save(const quern_save_def *def)
{
    memory.size_bytes = 0;
    must(quern_world_save(from, quern_sink_memory(&memory), def));
}

Test(archive_convert, fields_are_found_by_name_and_numbers_converted)
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

/* Two types of one number each. */
static quern_component register_number(quern_world *world, quern_field_type type, uint32_t size_bytes)
{
    quern_component component;
    must(quern_component_register(world,
                                  &(quern_component_def){.name = "number",
                                                         .size_bytes = size_bytes,
                                                         .alignment_bytes = size_bytes,
                                                         .fields = {{.name = "value", .type = type}}},
                                  &component));
    return component;
}

/* Whether the number comes through, and as what. */
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

Test(archive_convert, numbers_that_do_not_fit_are_refused)
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

Test(archive_convert, an_entity_is_no_number)
{
    const quern_component source = register_number(from, QUERN_FIELD_ENTITY, 8);
    register_number(to, QUERN_FIELD_U64, 8);
    must(quern_entity_create_with(from, &source, NULL, 1, NULL));
    save(NULL);
    assert_refused(to, QUERN_ERROR_LAYOUT_MISMATCH, load(NULL, NULL));
}

Test(archive_convert, without_fields_the_size_must_be_the_same)
{
    const quern_component raw = setup_component(from, "raw", 8, 8);
    setup_component(to, "raw", 16, 8);
    setup_entity_with(from, &raw, 1);
    save(NULL);
    assert_refused(to, QUERN_ERROR_LAYOUT_MISMATCH, load(NULL, NULL));
}

/* ------------------------------------------------------------------------------- missing ones */

Test(archive_convert, what_the_world_lacks_is_named_and_left_out_on_request)
{
    const quern_component components[] = {setup_component(from, "a", 4, 4),
                                          setup_component(from, "b", 8, 8), setup_tag(from, "c")};
    quern_relation relation;
    must(quern_relation_register(from, &(quern_relation_def){.name = "r", .levels = true}, &relation));
    const quern_entity one = setup_entity_with(from, components, 3), two = setup_entity(from);
    must(quern_entity_relate(from, one, relation, two));
    save(NULL);
    const quern_component b = setup_component(to, "b", 8, 8);
    quern_load_report report;
    assert_refused(to, QUERN_ERROR_UNKNOWN_COMPONENT, load(NULL, &report));
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

Test(archive_convert, a_relation_with_other_rules_is_refused)
{
    quern_relation relation;
    must(quern_relation_register(from, &(quern_relation_def){.name = "r", .levels = true}, &relation));
    must(quern_entity_relate(from, setup_entity(from), relation, setup_entity(from)));
    save(NULL);
    must(quern_relation_register(to, &(quern_relation_def){.name = "r"}, &relation));
    assert_refused(to, QUERN_ERROR_LAYOUT_MISMATCH, load(NULL, NULL));
}

/* ---------------------------------------------------------------------------- hooks and migrations */

static void copy_hook(void *targets, const void *sources, uint32_t count, void *user_data)
{
    (void)user_data;
    for (uint32_t i = 0; i < count; i++)
        ((char **)targets)[i] = strdup(((char *const *)sources)[i]);
}

static void destroy_hook(void *values, uint32_t count, void *user_data)
{
    (void)user_data;
    for (uint32_t i = 0; i < count; i++)
        free(((char **)values)[i]);
}

static void construct_hook(void *values, uint32_t count, void *user_data)
{
    (void)user_data;
    for (uint32_t i = 0; i < count; i++)
        ((char **)values)[i] = strdup("nothing");
}

static quern_component register_owner(quern_world *world, const char *name)
{
    quern_component component;
    const quern_component_def def = {
        .name = name,
        .size_bytes = sizeof(char *),
        .alignment_bytes = _Alignof(char *),
        .hooks = {.construct = construct_hook, .copy = copy_hook, .destroy = destroy_hook}};
    must(quern_component_register(world, &def, &component));
    return component;
}

Test(archive_convert, a_component_with_hooks_is_refused_by_name_or_left_out)
{
    const quern_component owner = register_owner(from, "owner"),
                          plain = setup_component(from, "plain", 4, 4);
    setup_entity_with(from, (quern_component[]){owner, plain}, 2);
    assert_refused(from, QUERN_ERROR_INVALID_ARGUMENT,
                   quern_world_save(from, quern_sink_memory(&memory), NULL));
    cr_assert_not_null(strstr(quern_error_message(), "'owner'"));
    save(&(quern_save_def){.leave_out = {owner}});
    setup_component(to, "plain", 4, 4);
    must(load(NULL, NULL));
    cr_assert_eq(stats_of_world(to).entity_count, 1);
}

Test(archive_convert, an_archetype_that_nobody_has_is_saved_without_its_hooks)
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

Test(archive_convert, a_migration_makes_the_values_of_what_has_hooks)
{
    enum { COUNT = 3000 };
    const quern_component number = setup_component(from, "number", 4, 4);
    for (uint32_t i = 0; i < COUNT; i++)
        must(quern_entity_create_with(from, &number, (const void *[]){&i}, 1, NULL));
    save(NULL);
    const quern_component owner = register_owner(to, "number");
    static quern_entity loaded[COUNT];
    uint32_t made_count = 0;
    assert_refused(to, QUERN_ERROR_LAYOUT_MISMATCH, load(NULL, NULL));
    const quern_load_def def = {.migrations = {{"number", owner, to_text, sizeof(uint32_t), &made_count}},
                                .entities = loaded,
                                .entity_capacity = COUNT};
    must(load(&def, NULL));
    cr_assert_eq(made_count, COUNT);
    cr_assert_str_eq(*(char **)quern_entity_get(to, loaded[2999], owner), "2999");
    assert_valid(to);
}

Test(archive_convert, a_migration_gives_another_name_or_leaves_out)
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
    assert_refused(to, QUERN_ERROR_LAYOUT_MISMATCH, load(&def, NULL));
    def.migrations[1] = (quern_migration){.name = "gone", .migrate = to_text};
    assert_refused(to, QUERN_ERROR_INVALID_ARGUMENT, load(&def, NULL));
    def.migrations[1] = (quern_migration){.name = "gone", .component = {fresh.bits + 1}};
    assert_refused(to, QUERN_ERROR_UNKNOWN_COMPONENT, load(&def, NULL));
    def.migrations[1] = (quern_migration){"gone", fresh, to_text, 8, NULL};
    assert_refused(to, QUERN_ERROR_INVALID_ARGUMENT, load(&def, NULL));
}

Test(archive_convert, what_was_disabled_needs_a_component_that_can_be)
{
    quern_component component;
    must(quern_component_register(from, &(quern_component_def){.name = "t", .can_disable = true},
                                  &component));
    const quern_entity entity = setup_entity_with(from, &component, 1);
    setup_tag(to, "t");
    save(NULL);
    must(load(NULL, NULL));
    must(quern_entity_enable(from, entity, component, false));
    save(NULL);
    assert_refused(to, QUERN_ERROR_LAYOUT_MISMATCH, load(NULL, NULL));
}
