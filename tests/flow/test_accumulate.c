/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <stdio.h>
#include <string.h>

/* Tests accumulating commands: how values combine and in which order, which values are dropped for lack
 * of entity or component, and which calls fail. */

typedef struct score {
    int32_t sum;
    uint32_t count;
} score;

typedef struct mixed {
    float f;
    uint8_t b[4];
    double d;
} mixed;

static quern_schedule *schedule;
static quern_component score_type, mixed_type, plain, text, tag;
static quern_entity one, other;

static void open_world_with(const quern_world_def *def)
{
    must(quern_world_create(def, &world));
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &score_type, score, sum, count));
    must(QUERN_COMPONENT_REGISTER_FIELDS(world, &mixed_type, mixed, f, b, d));
    plain = setup_component(world, "plain", 8, 8);
    text = make_component(world, .name = "text", .size_bytes = 8,
                          .fields = {{"text", QUERN_FIELD_TEXT, .count = 8}});
    tag = setup_tag(world, "tag");
    one = setup_entity_with(world, (quern_component[]){score_type, mixed_type, plain}, 3);
    other = setup_entity_with(world, &score_type, 1);
    schedule = setup_schedule(world);
}

static void open_world(void)
{
    open_world_with(NULL);
}

TestSuite(accumulate, .init = open_world, .fini = close_world);

static score score_of(quern_entity entity)
{
    return *(const score *)quern_entity_get(world, entity, score_type);
}

static void add_callback(const char *name, quern_system_callback *callback)
{
    make_system(schedule, name, NULL, .begin = callback);
}

static void add(quern_commands *commands, quern_entity entity, int32_t sum)
{
    must(quern_commands_accumulate(commands, entity, score_type, &(score){sum, 1}, QUERN_SUM));
}

static void assert_drop(uint32_t i, quern_drop_reason reason, uint64_t count, quern_entity first)
{
    quern_dropped_command dropped;
    must(quern_schedule_get_dropped_command(schedule, i, &dropped));
    cr_assert_eq(dropped.reason, reason, "%s", quern_drop_reason_string(dropped.reason));
    cr_assert_eq(dropped.count, count);
    if (quern_entity_is_null(first))
        cr_assert(quern_entity_is_provisional(dropped.first));
    else
        cr_assert(quern_entity_equal(dropped.first, first));
}

/* ---------------------------------------------------------------------------------------- combining */

static void add_some(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (int32_t i = 0; i < 10; i++) {
        add(commands, one, i);
        add(commands, other, -i);
    }
}

Test(accumulate, sums_are_added_to_the_values_of_entities)
{
    must(quern_entity_set(world, one, score_type, &(score){100, 5}));
    add_callback("a", add_some);
    add_callback("b", add_some);
    must_run(schedule, NULL);
    cr_assert_eq(score_of(one).sum, 190);
    cr_assert_eq(score_of(one).count, 25u);
    cr_assert_eq(score_of(other).sum, -90);
    cr_assert_eq(stats_of_frame(schedule).command_count, 40u);
    cr_assert_eq(stats_of_frame(schedule).dropped_count, 0u);
}

static void least_and_most(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const mixed low = {-2, {9, 1, 9, 1}, 0.25}, high = {3, {0, 200, 0, 7}, -8};
    must(quern_commands_accumulate(commands, one, mixed_type, &low, QUERN_MIN));
    must(quern_commands_accumulate(commands, one, mixed_type, &high, QUERN_MAX));
    must(quern_commands_accumulate(commands, one, mixed_type, &low, QUERN_SUM));
    must(quern_commands_accumulate(commands, one, score_type, &(score){INT32_MAX, UINT32_MAX}, QUERN_SUM));
}

Test(accumulate, numbers_of_several_types_combine_field_by_field_and_integers_wrap)
{
    must(quern_entity_set(world, one, mixed_type, &(mixed){1, {5, 5, 5, 255}, 1}));
    must(quern_entity_set(world, one, score_type, &(score){2, 2}));
    add_callback("a", least_and_most);
    must_run(schedule, NULL);
    const mixed *value = quern_entity_get(world, one, mixed_type);
    cr_assert_eq((double)value->f, 1.0, "min -2, max 3, plus -2");
    cr_assert_eq(value->b[0], 14, "min 5, max 5, plus 9");
    cr_assert_eq(value->b[1], 201);
    cr_assert_eq(value->b[3], 8, "min 1, max 7, plus 1");
    cr_assert_eq(value->d, 0.5);
    cr_assert_eq(score_of(one).sum, INT32_MIN + 1);
    cr_assert_eq(score_of(one).count, 1u);
}

static const quern_field_type number_types[] = {
    QUERN_FIELD_I8,  QUERN_FIELD_U8,  QUERN_FIELD_I16, QUERN_FIELD_U16, QUERN_FIELD_I32,
    QUERN_FIELD_U32, QUERN_FIELD_I64, QUERN_FIELD_U64, QUERN_FIELD_F32, QUERN_FIELD_F64};
enum { NUMBER_TYPE_COUNT = COUNT_OF(number_types), MOST_NUMBERS = 9 };

static uint32_t bytes_of(quern_field_type type)
{
    static const uint32_t bytes[] = {
        [QUERN_FIELD_I8] = 1,  [QUERN_FIELD_U8] = 1,  [QUERN_FIELD_I16] = 2, [QUERN_FIELD_U16] = 2,
        [QUERN_FIELD_I32] = 4, [QUERN_FIELD_U32] = 4, [QUERN_FIELD_I64] = 8, [QUERN_FIELD_U64] = 8,
        [QUERN_FIELD_F32] = 4, [QUERN_FIELD_F64] = 8};
    return bytes[type];
}

static void put_number(quern_field_type type, void *numbers, uint32_t i, int32_t number)
{
    if (type == QUERN_FIELD_F32)
        ((float *)numbers)[i] = (float)number;
    else if (type == QUERN_FIELD_F64)
        ((double *)numbers)[i] = number;
    else if (bytes_of(type) == 1)
        ((uint8_t *)numbers)[i] = (uint8_t)number;
    else if (bytes_of(type) == 2)
        ((uint16_t *)numbers)[i] = (uint16_t)number;
    else if (bytes_of(type) == 4)
        ((uint32_t *)numbers)[i] = (uint32_t)number;
    else
        ((uint64_t *)numbers)[i] = (uint64_t)number;
}

/* Returns small numbers, which all numeric types can represent. */
static int32_t number_of(uint32_t i, uint32_t seed)
{
    return (int32_t)((i * 7 + seed * 11) % 40);
}

static void fill(quern_field_type type, void *numbers, uint32_t count, uint32_t seed)
{
    for (uint32_t i = 0; i < count; i++)
        put_number(type, numbers, i, number_of(i, seed));
}

static quern_component numbers_type[NUMBER_TYPE_COUNT][MOST_NUMBERS];
static quern_entity with_numbers[2];

static void combine_numbers(quern_context *context)
{
    static const quern_combine combines[] = {QUERN_SUM, QUERN_MIN, QUERN_MAX};
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t seed = 1; seed <= 3; seed++)
        for (uint32_t i = 0; i < NUMBER_TYPE_COUNT * MOST_NUMBERS * 2; i++) {
            const uint32_t t = i / 2 / MOST_NUMBERS, n = i / 2 % MOST_NUMBERS;
            uint64_t value[MOST_NUMBERS];
            fill(number_types[t], value, n + 1, seed);
            must(quern_commands_accumulate(commands, with_numbers[i % 2], numbers_type[t][n], value,
                                           combines[seed - 1]));
        }
}

static int32_t combined_number(uint32_t i)
{
    int32_t number = number_of(i, 0) + number_of(i, 1);
    if (number_of(i, 2) < number) number = number_of(i, 2);
    return number_of(i, 3) > number ? number_of(i, 3) : number;
}

Test(accumulate, every_number_type_and_array_size_combines)
{
    for (uint32_t i = 0; i < 2; i++)
        must(quern_entity_create(world, &with_numbers[i]));
    for (uint32_t i = 0; i < NUMBER_TYPE_COUNT * MOST_NUMBERS; i++) {
        const quern_field_type type = number_types[i / MOST_NUMBERS];
        const uint32_t count = i % MOST_NUMBERS + 1, alignment = count % 3 == 0 ? 16 : 8;
        char name[16];
        snprintf(name, sizeof name, "numbers %u", i);
        quern_component_def def = {.name = name,
                                   .alignment_bytes = bytes_of(type),
                                   .size_bytes = count * bytes_of(type),
                                   .fields = {{"numbers", type, .count = (uint16_t)count}}};
        if (def.size_bytes % alignment == 0) def.alignment_bytes = alignment;
        must(quern_component_register(world, &def, &numbers_type[i / MOST_NUMBERS][i % MOST_NUMBERS]));
        uint64_t value[MOST_NUMBERS];
        fill(type, value, count, 0);
        for (uint32_t k = 0; k < 2; k++)
            must(quern_entity_add(world, with_numbers[k], numbers_type[i / MOST_NUMBERS][i % MOST_NUMBERS],
                                  value));
    }
    add_callback("a", combine_numbers);
    must_run(schedule, NULL);
    for (uint32_t i = 0; i < NUMBER_TYPE_COUNT * MOST_NUMBERS * 2; i++) {
        const uint32_t t = i / 2 / MOST_NUMBERS, n = i / 2 % MOST_NUMBERS;
        uint64_t expected[MOST_NUMBERS];
        for (uint32_t k = 0; k <= n; k++)
            put_number(number_types[t], expected, k, combined_number(k));
        cr_assert_arr_eq(quern_entity_get(world, with_numbers[i % 2], numbers_type[t][n]), expected,
                         (n + 1) * bytes_of(number_types[t]), "type %u, %u numbers", t, n + 1);
    }
    assert_valid(world);
}

static void append_digit(void *value, const void *accumulated, void *user_data)
{
    uint64_t *number = value;
    *number = *number * *(const uint64_t *)user_data + *(const uint64_t *)accumulated;
}

static quern_combine digits;

static void give_digits(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const uint64_t begin = quern_context_frame_index(context);
    for (uint64_t i = 1; i < 5; i++)
        must(quern_commands_accumulate(commands, one, plain, &(uint64_t){begin + i}, digits));
}

Test(accumulate, custom_combines_are_called_in_order)
{
    static uint64_t base = 10;
    const quern_combine_def def = {.name = "digits", .function = append_digit, .user_data = &base};
    must(quern_combine_register(world, &def, &digits));
    add_callback("a", give_digits);
    must_run(schedule, NULL);
    must_run(schedule, NULL);
    cr_assert_eq(*(const uint64_t *)quern_entity_get(world, one, plain), 12342345u);
}

/* ------------------------------------------------------------------- together with other commands */

static void set_and_add(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    add(commands, one, 1);
    must(quern_commands_set(commands, one, score_type, &(score){1000, 0}));
    add(commands, one, 2);
    const quern_entity fresh = record_entity(commands);
    add(commands, fresh, 30);
    must(quern_commands_add(commands, fresh, score_type, &(score){7, 0}));
    must(quern_commands_add(commands, fresh, tag, NULL));
}

Test(accumulate, values_are_combined_last_and_reach_new_entities)
{
    add_callback("a", set_and_add);
    must_run(schedule, NULL);
    cr_assert_eq(score_of(one).sum, 1003);
    quern_query *query =
        setup_query(world, (quern_term[]){quern_term_read(score_type), quern_term_with(tag)}, 2);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    cr_assert_eq(((const score *)quern_view_read(&it.view, 0))->sum, 37);
}

static quern_entity stale;

static void miss(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const quern_entity fresh = record_entity(commands);
    add(commands, stale, 1);
    add(commands, stale, 1);
    add(commands, other, 1);
    add(commands, fresh, 1);
    must(quern_commands_accumulate(commands, other, mixed_type, &(mixed){.f = 0}, QUERN_SUM));
    add(commands, one, 5);
    if (quern_context_frame_index(context) == 0) return;
    must(quern_commands_destroy(commands, other));
    must(quern_commands_destroy(commands, fresh));
}

Test(accumulate, values_without_component_or_entity_are_dropped_with_reason)
{
    stale = setup_entity(world);
    must(quern_entity_destroy(world, stale));
    add_callback("a", miss);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).dropped_count, 4u);
    cr_assert_eq(quern_schedule_dropped_command_count(schedule), 2u);
    assert_drop(0, QUERN_DROP_DEAD, 2, stale);
    assert_drop(1, QUERN_DROP_NO_COMPONENT, 2, quern_entity_null());
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).dropped_count, 5u);
    cr_assert_eq(quern_schedule_dropped_command_count(schedule), 2u);
    assert_drop(0, QUERN_DROP_DEAD, 2, stale);
    assert_drop(1, QUERN_DROP_DESTROYED, 3, other);
    cr_assert_eq(score_of(one).sum, 10);
}

static uint32_t seen_rows;

static void count_rows(quern_context *context, const quern_view *view)
{
    seen_rows += view->count;
}

Test(accumulate, change_filters_see_accumulated_values)
{
    add_callback("a", add_some);
    make_system(schedule, "b", count_rows,
                .terms = {quern_term_changed(quern_term_read(score_type)), quern_term_without(plain)});
    must_run(schedule, NULL);
    seen_rows = 0;
    must_run(schedule, NULL);
    cr_assert_eq(seen_rows, 1u);
    must(quern_schedule_set_system_enabled(schedule, quern_schedule_find_system(schedule, "a"), false));
    must_run(schedule, NULL);
    seen_rows = 0;
    must_run(schedule, NULL);
    cr_assert_eq(seen_rows, 0u);
}

/* ----------------------------------------------------------------------- batches, streams and listeners */

enum { TURNS = 100 };

/* Accumulates to several components, with different combines for one of them. Each value must be
 * combined by its own combine, in the order of recording. */
static void add_in_turn(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    for (int32_t i = 0; i < TURNS; i++) {
        const score floor = {i * 37 % 90, 0};
        add(commands, one, i % 7);
        must(quern_commands_accumulate(commands, one, score_type, &floor, QUERN_MAX));
        if (i % 3 == 0)
            must(quern_commands_accumulate(commands, one, mixed_type, &(mixed){.d = 1}, QUERN_SUM));
        if (i % 5 == 0) must(quern_commands_accumulate(commands, other, score_type, &floor, QUERN_MIN));
    }
}

Test(accumulate, components_and_combines_may_alternate)
{
    int32_t most = 0, least = 0, count = 0;
    for (int32_t i = 0; i < TURNS; i++) {
        const int32_t floor = i * 37 % 90;
        most = most + i % 7 > floor ? most + i % 7 : floor;
        if (i % 5 == 0 && floor < least) least = floor;
        count += i % 3 == 0;
    }
    add_callback("a", add_in_turn);
    must_run(schedule, NULL);
    cr_assert_eq(score_of(one).sum, most);
    cr_assert_eq(score_of(one).count, (uint32_t)TURNS);
    cr_assert_eq(score_of(other).sum, least);
    cr_assert_eq(((const mixed *)quern_entity_get(world, one, mixed_type))->d, (double)count);
}

enum { PER_VIEW = 40, MANY_PLACES = 12000 };

/* Depending on the ordinal of the view: creates entities, creates entities and accumulates to them, or
 * accumulates to `one`. */
static void create_and_add(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const quern_component list[] = {score_type, tag};
    for (uint32_t i = 0; i < PER_VIEW; i++) {
        const int32_t number = (int32_t)(view->ordinal * PER_VIEW + i);
        if (view->ordinal % 3 == 2) {
            add(commands, one, number);
            continue;
        }
        const quern_entity made =
            record_entity_with(commands, list, (const void *const[]){&(score){number, 0}, NULL}, 2);
        if (view->ordinal % 3 == 1) add(commands, made, 1000 * number);
    }
}

static void expect_created(uint32_t view_count)
{
    quern_query *query =
        setup_query(world, (quern_term[]){quern_term_read(score_type), quern_term_with(tag)}, 2);
    const uint32_t only_added = view_count / 3;
    cr_assert_eq(quern_query_count(query), (uint64_t)(view_count - only_added) * PER_VIEW);
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);) {
        const score *scores = quern_view_read(&it.view, 0);
        for (uint32_t i = 0; i < it.view.count; i++) {
            if (scores[i].count == 1)
                cr_assert_eq(scores[i].sum % 1001 == 0 && scores[i].sum / 1001 / PER_VIEW % 3 == 1, true);
            else
                cr_assert_eq(scores[i].sum / PER_VIEW % 3, 0);
        }
    }
    quern_query_destroy(query);
}

Test(accumulate, each_callback_has_its_own_creates, .timeout = 60)
{
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        close_world();
        open_world();
        static quern_entity places[MANY_PLACES];
        must(quern_entity_create_many(world, &plain, NULL, 1, MANY_PLACES, places));
        quern_query *query = setup_query(world, (quern_term[]){quern_term_read(plain)}, 1);
        uint32_t view_count = 0;
        for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);)
            view_count++;
        quern_query_destroy(query);
        cr_assert_gt(view_count, 5u);
        make_system(schedule, "a", create_and_add, .terms = {quern_term_read(plain)});
        schedule->playback.parallel_command_count = 1;
        quern_jobs *jobs = setup_jobs(pool_threads[i]);
        must_run(schedule, jobs);
        quern_jobs_destroy(jobs);
        expect_created(view_count);
        assert_valid(world);
    }
}

/* A component with an entity handle. Accumulated values may contain handles of entities that the same
 * callback creates. */
static quern_component knows_type;
static quern_combine replace;

static void replace_value(void *value, const void *accumulated, void *user_data)
{
    memcpy(value, accumulated, sizeof(quern_entity));
}

static void create_a_few(quern_context *context)
{
    for (uint32_t i = 0; i < 3; i++)
        record_entity(quern_context_commands(context));
}

static void create_and_name(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    record_entity(commands);
    const quern_entity made = record_entity_with(commands, &tag, NULL, 1);
    must(quern_commands_accumulate(commands, one, knows_type, &made, replace));
}

Test(accumulate, provisional_handles_in_values_are_resolved)
{
    knows_type = make_component(world, .name = "knows", .size_bytes = 8, .alignment_bytes = 8,
                                .fields = {{"entity", QUERN_FIELD_ENTITY, .count = 1}});
    must(quern_entity_add(world, one, knows_type, NULL));
    must(quern_combine_register(world, &(quern_combine_def){.name = "replace", .function = replace_value},
                                &replace));
    add_callback("a", create_a_few);
    add_callback("b", create_and_name);
    must_run(schedule, NULL);
    const quern_entity known = *(const quern_entity *)quern_entity_get(world, one, knows_type);
    cr_assert(quern_entity_is_alive(world, known));
    cr_assert(quern_entity_has(world, known, tag));
}

static void add_to_both(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const bool is_first = quern_context_frame_index(context) % 2 == 0;
    add(commands, is_first ? one : other, 1);
    add(commands, is_first ? other : one, 1);
}

/* A change filter matches the archetype of only one of the two entities. The order of the commands for
 * both entities must make no difference. */
Test(accumulate, change_filters_see_one_of_several_archetypes)
{
    add_callback("a", add_to_both);
    make_system(schedule, "b", count_rows,
                .terms = {quern_term_changed(quern_term_read(score_type)), quern_term_with(plain)});
    must_run(schedule, NULL);
    for (uint32_t i = 0; i < 4; i++) {
        seen_rows = 0;
        must_run(schedule, NULL);
        cr_assert_eq(seen_rows, 1u, "frame %u", i);
    }
}

/* --------------------------------------------------------------------------------------- dropped values */

static void add_to_stale(quern_context *context)
{
    add(quern_context_commands(context), stale, 5);
}

Test(accumulate, dead_handle_does_not_reach_the_new_entity_of_its_slot)
{
    stale = setup_entity_with(world, &score_type, 1);
    must(quern_entity_destroy(world, stale));
    const quern_entity successor = setup_entity_with(world, &score_type, 1);
    cr_assert_eq(quern_entity_index(successor), quern_entity_index(stale));
    add_callback("a", add_to_stale);
    must_run(schedule, NULL);
    cr_assert_eq(score_of(successor).sum, 0);
    cr_assert_eq(stats_of_frame(schedule).dropped_count, 1u);
    assert_drop(0, QUERN_DROP_DEAD, 1, stale);
}

static void destroy_what_it_adds_to(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    record_entity_with(commands, &score_type, NULL, 1);
    const quern_entity second = record_entity_with(commands, &score_type, NULL, 1);
    add(commands, second, 1);
    must(quern_commands_destroy(commands, second));
}

/* An earlier callback creates entities too, so the number of a create in its stream differs from its
 * number in the sync point. */
Test(accumulate, dropped_value_of_created_entity_is_reported_as_recorded)
{
    quern_dropped_command dropped;
    add_callback("a", create_a_few);
    add_callback("b", destroy_what_it_adds_to);
    must_run(schedule, NULL);
    assert_drop(0, QUERN_DROP_DESTROYED, 1, quern_entity_null());
    must(quern_schedule_get_dropped_command(schedule, 0, &dropped));
    cr_assert_eq(quern_entity_index(dropped.first), 1u);
    cr_assert_str_eq(dropped.system_name, "b");
}

static failing_allocator *withdrawn;

/* Combines, and makes all allocations fail from the first combined value on. */
static void combine_and_fail_allocations(void *value, const void *accumulated, void *user_data)
{
    memcpy(value, accumulated, 8);
    failing_allocator_fail_from(withdrawn, 1);
}

static quern_entity dead[3];

/* Records two values for destroyed entities, one for an entity that the sync point destroys, and one for
 * an entity that lacks the component. */
static void add_to_missing_values(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const uint32_t i = (uint32_t)(uintptr_t)quern_context_user_data(context);
    const uint64_t value = i;
    must(quern_commands_accumulate(commands, one, plain, &value, replace));
    for (uint32_t k = 0; k < 2; k++)
        must(quern_commands_accumulate(commands, dead[(i + k) % 3], plain, &value, replace));
    must(quern_commands_accumulate(commands, other, plain, &value, replace));
    const quern_entity fresh = record_entity(commands);
    must(quern_commands_accumulate(commands, fresh, plain, &value, replace));
    must(quern_commands_destroy(commands, fresh));
}

/* Which values are dropped is only known when values are combined. Memory for the report of dropped
 * commands must have been reserved before. */
Test(accumulate, reporting_drops_does_not_allocate_after_combining)
{
    static const quern_drop_reason reasons[] = {QUERN_DROP_DEAD, QUERN_DROP_NO_COMPONENT,
                                                QUERN_DROP_DESTROYED};
    close_world();
    withdrawn = failing_allocator_create();
    open_world_with(&(quern_world_def){.allocator = failing_allocator_interface(withdrawn)});
    must(quern_combine_register(
        world, &(quern_combine_def){.name = "replace", .function = combine_and_fail_allocations},
        &replace));
    for (uint32_t i = 0; i < 3; i++)
        dead[i] = setup_entity(world);
    for (uint32_t i = 0; i < 3; i++)
        must(quern_entity_destroy(world, dead[i]));
    for (uint32_t i = 0; i < 3; i++) {
        const char *const name = (const char *const[]){"x", "y", "z"}[i];
        make_system(schedule, name, NULL, .begin = add_to_missing_values,
                    .user_data = (void *)(uintptr_t)i);
    }
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).dropped_count, 12u);
    cr_assert_eq(quern_schedule_dropped_command_count(schedule), 9u);
    for (uint32_t i = 0; i < 9; i++)
        assert_drop(i, reasons[i % 3], i % 3 == 0 ? 2 : 1,
                    i % 3 == 0   ? dead[i / 3]
                    : i % 3 == 1 ? other
                                 : quern_entity_null());
    close_world();
    failing_allocator_close(withdrawn);
    open_world();
}

/* ----------------------------------------------------------------------------------- outside of systems */

static void add_in_parallel(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < view->count; i++)
        add(commands, one, 1);
}

Test(accumulate, worlds_and_parallel_queries_accumulate_too)
{
    quern_commands *commands = quern_world_commands(world);
    add(commands, one, 4);
    cr_assert_eq(score_of(one).sum, 0, "not yet");
    must(quern_world_flush(world));
    cr_assert_eq(score_of(one).sum, 4);
    add(quern_world_commands(world), one, 4);
    must_run(schedule, NULL);
    cr_assert_eq(score_of(one).sum, 8, "the frame has flushed");
    quern_query *query = setup_query(world, (quern_term[]){quern_term_with(score_type)}, 1);
    must(quern_query_parallel_for(query, NULL, add_in_parallel, NULL));
    cr_assert_eq(score_of(one).sum, 10);
    quern_flush_stats stats;
    must(quern_world_get_flush_stats(world, &stats));
    cr_assert_eq(stats.command_count, 2u);
}

static quern_commands *kept;

static void keep(quern_context *context)
{
    kept = quern_context_commands(context);
    add(kept, one, 1);
}

static quern_result refused_result;

static void accumulate_wrongly(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const uint64_t value = 1;
    const struct {
        quern_entity entity;
        quern_component component;
        const void *value;
        quern_combine combine;
        quern_result result;
    } wrong[] = {
        {quern_entity_null(), score_type, &value, QUERN_SUM, QUERN_ERROR_NULL_ENTITY},
        {entity_of_other_world(one), score_type, &value, QUERN_SUM, QUERN_ERROR_FOREIGN_ENTITY},
        {one, score_type, NULL, QUERN_SUM, QUERN_ERROR_NULL_ARGUMENT},
        {one, component_unregistered(score_type), &value, QUERN_SUM, QUERN_ERROR_UNKNOWN_COMPONENT},
        {one, plain, &value, QUERN_SUM, QUERN_ERROR_INVALID_ARGUMENT},
        {one, text, &value, QUERN_SUM, QUERN_ERROR_INVALID_ARGUMENT},
        {one, tag, &value, QUERN_SUM, QUERN_ERROR_INVALID_ARGUMENT},
        {one, score_type, &value, (quern_combine){0}, QUERN_ERROR_INVALID_ARGUMENT},
        {one, score_type, &value, (quern_combine){4}, QUERN_ERROR_INVALID_ARGUMENT},
    };
    for (uint32_t i = 0; i < COUNT_OF(wrong); i++) {
        refused_result = quern_commands_accumulate(commands, wrong[i].entity, wrong[i].component,
                                                   wrong[i].value, wrong[i].combine);
        cr_assert_eq(refused_result, wrong[i].result, "%u: %s", i, quern_error_message());
        assert_message_has("quern_commands_accumulate");
    }
}

Test(accumulate, invalid_calls_are_refused_and_record_nothing)
{
    captured_reports reports;
    capture_reports(&reports);
    quern_combine combine;
    const quern_combine_def def = {.name = "digits", .function = append_digit};
    add_callback("a", accumulate_wrongly);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).command_count, 0u);
    must(quern_combine_register(world, &def, &combine));
    must_refuse(DUPLICATE_NAME, world, quern_combine_register(world, &def, &combine));
    must_refuse(NULL_ARGUMENT, world, quern_combine_register(world, &def, NULL));
    must_refuse(NULL_ARGUMENT, world,
                quern_combine_register(world, &(quern_combine_def){.name = "none"}, &combine));
    must_refuse(NULL_ARGUMENT, NULL,
                quern_commands_accumulate(NULL, one, score_type, &(score){0, 0}, QUERN_SUM));
    add_callback("b", keep);
    must_run(schedule, NULL);
    must_refuse(INVALID_ARGUMENT, world,
                quern_commands_accumulate(kept, one, score_type, &(score){0, 0}, QUERN_SUM));
    quern_log_set_handler(NULL, NULL);
    quern_assert_set_handler(NULL, NULL);
}

/* -------------------------------------------------------------------------- threads, and missing memory */

enum { MANY = 3000 };

static void hit_many(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const quern_entity *entities = quern_context_user_data(context);
    for (uint32_t i = 0; i < view->count; i++) {
        const uint32_t index = quern_entity_index(view->entities[i]) * 7919 % MANY;
        const mixed value = {1.0f / (float)(i + 1), {1, 2, 3, 4}, 1.0 / (double)(index + 3)};
        const quern_result result =
            quern_commands_accumulate(commands, entities[index], mixed_type, &value, QUERN_SUM);
        if (result == QUERN_OK && index % 10 == 0)
            quern_commands_remove(commands, entities[index], index % 20 == 0 ? plain : mixed_type);
    }
}

static quern_entity many[MANY];

static void open_many(void)
{
    must(quern_entity_create_many(world, (quern_component[]){mixed_type, plain}, NULL, 2, MANY, many));
    make_system(schedule, "hit", hit_many, .terms = {quern_term_with(mixed_type)}, .user_data = many);
    schedule->playback.parallel_command_count = 1;
}

Test(accumulate, sums_of_floats_are_the_same_at_every_number_of_threads, .timeout = 60)
{
    uint64_t expected = 0;
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        close_world();
        open_world();
        open_many();
        quern_jobs *jobs = setup_jobs(pool_threads[i]);
        for (uint32_t frame = 0; frame < 3; frame++)
            must_run(schedule, jobs);
        quern_jobs_destroy(jobs);
        const quern_drop_reason reason = QUERN_DROP_NO_COMPONENT;
        quern_dropped_command dropped;
        must(quern_schedule_get_dropped_command(schedule, 0, &dropped));
        cr_assert_eq(dropped.reason, reason);
        if (i == 0) expected = quern_world_hash(world);
        cr_assert_eq(quern_world_hash(world), expected, "%u threads", pool_threads[i]);
        assert_valid(world);
    }
}

/* The first sync point resolves a dead handle and then fails. The next sync point must report the dead
 * entity with its handle as recorded. */
Test(accumulate, dead_entities_are_reported_by_a_repeated_sync_point, .timeout = 120)
{
    close_world();
    uint32_t kept_count = 0;
    bool is_done = false;
    for (uint64_t call = 1; !is_done; call++) {
        failing_allocator *memory = failing_allocator_create();
        open_world_with(&(quern_world_def){.allocator = failing_allocator_interface(memory)});
        stale = setup_entity(world);
        must(quern_entity_destroy(world, stale));
        add_callback("a", miss);
        must_run(schedule, NULL);
        failing_allocator_fail_at(memory, call);
        const quern_result result = quern_schedule_run(schedule, NULL, 0);
        is_done = failing_allocator_failed_count(memory) == 0;
        if (result != QUERN_OK && quern_schedule_kept_command_count(schedule) == 9) {
            must(quern_schedule_set_system_enabled(schedule, quern_schedule_find_system(schedule, "a"),
                                                   false));
            failing_allocator_heal(memory);
            must_run(schedule, NULL);
            cr_assert_eq(quern_schedule_dropped_command_count(schedule), 2u);
            assert_drop(0, QUERN_DROP_DEAD, 2, stale);
            assert_drop(1, QUERN_DROP_DESTROYED, 3, other);
            kept_count++;
        }
        assert_valid(world);
        close_world();
        failing_allocator_close(memory);
    }
    cr_assert_gt(kept_count, 0u);
    open_world();
}

/* A sync point applies all commands or none. */
Test(accumulate, failed_sync_point_is_repeated_by_the_next_frame, .timeout = 120)
{
    close_world();
    uint64_t expected = 0;
    uint32_t kept_count = 0;
    bool is_done = false;
    for (uint64_t call = 0; !is_done; call++) {
        failing_allocator *memory = failing_allocator_create();
        const quern_allocator allocator = failing_allocator_interface(memory);
        open_world_with(&(quern_world_def){.allocator = allocator});
        open_many();
        must(quern_schedule_compile(schedule));
        const uint64_t before = quern_world_hash(world);
        if (call > 0) failing_allocator_fail_at(memory, call);
        const quern_result result = quern_schedule_run(schedule, NULL, 0);
        is_done = call > 0 && failing_allocator_failed_count(memory) == 0;
        const uint64_t waiting = quern_schedule_kept_command_count(schedule);
        if (result != QUERN_OK && waiting >= MANY) {
            cr_assert_eq(quern_world_hash(world), before, "call %llu", (unsigned long long)call);
            must(quern_schedule_set_system_enabled(schedule, quern_schedule_find_system(schedule, "hit"),
                                                   false));
            failing_allocator_heal(memory);
            must_run(schedule, NULL);
            cr_assert_eq(quern_world_hash(world), expected, "call %llu", (unsigned long long)call);
            kept_count++;
        }
        if (call == 0) expected = quern_world_hash(world);
        assert_valid(world);
        close_world();
        failing_allocator_close(memory);
    }
    cr_assert_gt(kept_count, 3u);
    open_world();
}
