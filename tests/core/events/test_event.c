/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/world/world_internal.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"
#include "tests/support/tracked.h"

#include <string.h>

/* Events in code between frames: registering, emitting, reading, limits, hooks. */

typedef struct Hit {
    quern_entity target;
    uint32_t damage;
    uint32_t number;
} Hit;

static quern_event hit;

static void open_world(void)
{
    world = setup_world();
    must(QUERN_EVENT_REGISTER_FIELDS(world, &hit, Hit, target, damage, number));
}

TestSuite(event, .init = open_world, .fini = close_world);

static quern_event_reader *open_reader(quern_event event, const char *name)
{
    quern_event_reader *reader = NULL;
    must(
        quern_event_reader_create(world, &(quern_event_reader_def){.event = event, .name = name}, &reader));
    return reader;
}

static quern_result emit_numbers(quern_event event, uint32_t first, uint32_t count)
{
    Hit hits[500];
    cr_assert_leq(count, 500u);
    for (uint32_t i = 0; i < count; i++)
        hits[i] = (Hit){.number = first + i};
    return quern_world_emit(world, event, hits, count);
}

/* Checks that the reader gets exactly the numbers from `first` on, in order. */
static void expect_numbers(quern_event_reader *reader, uint32_t first, uint32_t count)
{
    quern_event_block block;
    uint32_t seen = 0;
    while (quern_event_reader_next(reader, &block)) {
        const Hit *hits = block.values;
        cr_assert_gt(block.count, 0u);
        for (uint32_t i = 0; i < block.count; i++)
            cr_assert_eq(hits[i].number, first + seen + i);
        seen += block.count;
    }
    cr_assert_eq(seen, count, "%u instead of %u", seen, count);
    cr_assert_null(block.values);
    cr_assert_eq(block.count, 0u);
}

static quern_event_stats stats_of(quern_event event)
{
    quern_event_stats stats;
    must(quern_event_get_stats(world, event, &stats));
    return stats;
}

/* ---------------------------------------------------------------------------------------- registering */

Test(event, is_found_by_name)
{
    cr_assert_eq(quern_event_find(world, "Hit").bits, hit.bits);
    cr_assert_str_eq(quern_event_name(world, hit), "Hit");
    cr_assert_eq(quern_event_find(world, "Miss").bits, 0u);
    assert_refused_value(world, quern_event_find(world, NULL).bits);
    assert_refused_value(world, quern_event_find(NULL, "Hit").bits);
    assert_refused_value(world, quern_event_name(NULL, hit));
    assert_refused_value(world, quern_event_name(world, (quern_event){0}));
    assert_refused_value(world, quern_event_name(world, (quern_event){hit.bits + 1}));
    quern_component_def component = {.name = "Hit", .size_bytes = 4};
    quern_component ignored;
    must(
        quern_component_register(world, &component, &ignored)); /* events and components may share a name */
}

Test(event, registering_the_same_layout_again_returns_the_same_event)
{
    quern_event again = {0};
    must(QUERN_EVENT_REGISTER_FIELDS(world, &again, Hit, target, damage, number));
    cr_assert_eq(again.bits, hit.bits);
    must_refuse(LAYOUT_MISMATCH, world, QUERN_EVENT_REGISTER(world, &again, Hit));
    quern_event_def def = {.name = "spark", .size_bytes = 8, .limit_bytes = 1000};
    must(quern_event_register(world, &def, &again));
    def.limit_bytes = 2000;
    must_refuse(LAYOUT_MISMATCH, world, quern_event_register(world, &def, &again));
}

static void destroy_nothing(void *values, uint32_t count, void *user_data) {}

Test(event, invalid_definition_is_refused)
{
    quern_event out;
    quern_event_def def = {.name = "spark", .size_bytes = 8};
    must_refuse(NULL_ARGUMENT, world, quern_event_register(NULL, &def, &out));
    must_refuse(NULL_ARGUMENT, world, quern_event_register(world, NULL, &out));
    must_refuse(NULL_ARGUMENT, world, quern_event_register(world, &def, NULL));
    def.alignment_bytes = 3;
    must_refuse(BAD_ALIGNMENT, world, quern_event_register(world, &def, &out));
    def.alignment_bytes = 16;
    must_refuse(INVALID_ARGUMENT, world, quern_event_register(world, &def, &out));
    def = (quern_event_def){.name = "spark", .size_bytes = QUERN_MAX_COMPONENT_BYTES + 1};
    must_refuse(COMPONENT_TOO_LARGE, world, quern_event_register(world, &def, &out));
    def = (quern_event_def){.size_bytes = 4};
    must_refuse(INVALID_ARGUMENT, world, quern_event_register(world, &def, &out));
    def = (quern_event_def){.name = "spark", .hooks = {.destroy = destroy_nothing}}; /* 0 bytes */
    must_refuse(INVALID_ARGUMENT, world, quern_event_register(world, &def, &out));
}

Test(event, number_of_event_types_is_limited)
{
    char name[16];
    for (uint32_t i = 1; i < QUERN_MAX_EVENTS; i++) {
        snprintf(name, sizeof name, "e%u", i);
        quern_event event = make_event(world, .name = name);
        cr_assert_eq(quern_event_find(world, name).bits, event.bits);
    }
    quern_event one_more;
    must_refuse(LIMIT, world, quern_event_register(world, &(quern_event_def){.name = "more"}, &one_more));
    must(QUERN_EVENT_REGISTER_FIELDS(world, &one_more, Hit, target, damage, number));
}

/* --------------------------------------------------------------------------------- emitting and reading */

Test(event, is_read_once_by_each_reader_in_the_order_of_emission)
{
    quern_event_reader *a = open_reader(hit, "a");
    must(emit_numbers(hit, 0, 300));
    quern_event_reader *b = open_reader(hit, "b");
    must(emit_numbers(hit, 300, 1));
    must(emit_numbers(hit, 301, 499));
    expect_numbers(a, 0, 800);
    expect_numbers(a, 0, 0);
    expect_numbers(b, 300, 500); /* events since its creation */
    must(emit_numbers(hit, 800, 5));
    expect_numbers(b, 800, 5);
    expect_numbers(a, 800, 5);
    quern_event_reader_destroy(a);
    quern_event_reader_destroy(b);
    quern_event_reader_destroy(NULL);
}

Test(event, memory_is_freed_when_all_readers_have_seen_the_event)
{
    quern_event_reader *a = open_reader(hit, "a"), *b = open_reader(hit, "b");
    for (uint32_t i = 0; i < 100; i++) {
        must(emit_numbers(hit, i * 500, 500));
        expect_numbers(a, i * 500, 500);
    }
    cr_assert_eq(stats_of(hit).waiting_count, 50000u, "b has seen none");
    cr_assert_eq(stats_of(hit).reader_count, 2u);
    const uint64_t held_bytes = stats_of_world(world).event_bytes;
    cr_assert_geq(held_bytes, 50000 * sizeof(Hit));
    cr_assert_geq(stats_of_world(world).held_bytes, held_bytes);
    expect_numbers(b, 0, 50000);
    must(emit_numbers(hit, 50000, 1));
    cr_assert_eq(stats_of(hit).waiting_count, 1u);
    must(quern_world_trim(world));
    cr_assert_eq(stats_of_world(world).event_bytes, 65536u);
    quern_event_reader_destroy(a);
    quern_event_reader_destroy(b);
    cr_assert_eq(stats_of(hit).reader_count, 0u);
    must(quern_world_trim(world));
    cr_assert_eq(stats_of_world(world).event_bytes, 0u);
}

Test(event, memory_of_an_event_without_readers_is_freed_at_once)
{
    for (uint32_t i = 0; i < 1000; i++)
        must(emit_numbers(hit, 0, 500));
    cr_assert_eq(stats_of(hit).waiting_count, 0u);
    cr_assert_eq(stats_of(hit).waiting_bytes, 0u);
    cr_assert_leq(stats_of_world(world).event_bytes, 4 * 65536u);
}

/* A block goes to the next type that needs one, although it is not full. */
Test(event, types_of_which_events_wait_one_after_another_share_a_block)
{
    for (uint32_t i = 0; i < 10; i++) {
        const char name[] = {'e', (char)('0' + i), '\0'};
        quern_event event =
            make_event(world, .name = name, .size_bytes = sizeof(Hit), .alignment_bytes = 8);
        quern_event_reader *reader = open_reader(event, "r");
        must(emit_numbers(event, i, 1));
        expect_numbers(reader, i, 1);
        quern_event_reader_destroy(reader);
        must(emit_numbers(event, i, 1)); /* drops the first event */
        cr_assert_eq(stats_of(event).waiting_count, 0u);
    }
    cr_assert_eq(stats_of_world(world).event_bytes, 65536u);
}

Test(event, few_events_at_a_time_need_little_memory)
{
    quern_event_reader *reader = open_reader(hit, "slow");
    for (uint32_t i = 0; i < 2000; i++)
        must(emit_numbers(hit, i, 1));
    cr_assert_leq(stats_of_world(world).event_bytes, 2000 * sizeof(Hit) * 2 + 2 * 65536u);
    expect_numbers(reader, 0, 2000);
    quern_event_reader_destroy(reader);
}

Test(event, events_of_zero_bytes_are_counted)
{
    quern_event tick = make_event(world, .name = "tick");
    quern_event_reader *reader = open_reader(tick, NULL);
    must(quern_world_emit(world, tick, NULL, 100000));
    must(quern_world_emit(world, tick, NULL, 0));
    quern_event_block block;
    uint64_t count = 0;
    while (quern_event_reader_next(reader, &block))
        count += block.count;
    cr_assert_eq(count, 100000u);
    quern_event_reader_destroy(reader);
}

Test(event, values_of_any_size_and_alignment_are_aligned)
{
    random_source random = {7};
    for (uint32_t alignment = 1; alignment <= QUERN_MAX_ALIGNMENT_BYTES; alignment *= 2)
        for (uint32_t times = 1; times < 400; times = times * 3 + 1) {
            char name[32];
            const uint32_t bytes =
                alignment * times < QUERN_MAX_COMPONENT_BYTES ? alignment * times : 16256;
            snprintf(name, sizeof name, "e%u_%u", alignment, times);
            quern_event event =
                make_event(world, .name = name, .size_bytes = bytes, .alignment_bytes = alignment);
            quern_event_reader *reader = open_reader(event, name);
            const uint32_t count = 1 + random_below(&random, 70);
            char *values = malloc((size_t)count * bytes);
            for (size_t i = 0; i < (size_t)count * bytes; i++)
                values[i] = (char)random_next(&random);
            must(quern_world_emit(world, event, values, count));
            quern_event_block block;
            uint32_t seen = 0;
            for (; quern_event_reader_next(reader, &block); seen += block.count) {
                cr_assert_eq((uintptr_t)block.values % alignment, 0u);
                cr_assert_eq(
                    memcmp(block.values, values + (size_t)seen * bytes, (size_t)block.count * bytes), 0);
            }
            cr_assert_eq(seen, count);
            free(values);
            quern_event_reader_destroy(reader);
        }
}

Test(event, waiting_events_do_not_affect_the_hash)
{
    const uint64_t before = quern_world_hash(world);
    quern_event_reader *reader = open_reader(hit, "a");
    must(emit_numbers(hit, 0, 100));
    cr_assert_eq(quern_world_hash(world), before);
    quern_event_reader_destroy(reader);
}

Test(event, invalid_calls_are_refused)
{
    Hit one = {.number = 1};
    quern_event_reader *reader = open_reader(hit, "a"), *other;
    quern_event_block block;
    quern_event_stats stats;
    const quern_event none = {0}, unknown = {hit.bits + 1};
    must_refuse(NULL_ARGUMENT, world, quern_world_emit(NULL, hit, &one, 1));
    must_refuse(NULL_ARGUMENT, world, quern_world_emit(world, hit, NULL, 1));
    must(quern_world_emit(world, hit, NULL, 0));
    must_refuse(UNKNOWN_EVENT, world, quern_world_emit(world, none, &one, 1));
    must_refuse(UNKNOWN_EVENT, world, quern_world_emit(world, unknown, &one, 1));
    one.target = entity_provisional(3);
    must_refuse(PROVISIONAL_ENTITY, world, quern_world_emit(world, hit, &one, 1));
    cr_assert_eq(stats_of(hit).waiting_count, 0u);
    quern_event_reader_def def = {.event = none};
    must_refuse(UNKNOWN_EVENT, world, quern_event_reader_create(world, &def, &other));
    def = (quern_event_reader_def){.event = hit, .name = ""};
    must_refuse(INVALID_ARGUMENT, world, quern_event_reader_create(world, &def, &other));
    def.name = "b";
    must_refuse(NULL_ARGUMENT, world, quern_event_reader_create(NULL, &def, &other));
    must_refuse(NULL_ARGUMENT, world, quern_event_reader_create(world, NULL, &other));
    must_refuse(NULL_ARGUMENT, world, quern_event_reader_create(world, &def, NULL));
    assert_refused_value(world,
                         quern_event_reader_next(NULL, &block)); /* a reader that was never created */
    assert_refused_value(world, quern_event_reader_next(reader, NULL));
    assert_refused_value(world, quern_event_reader_lost_count(NULL));
    must_refuse(UNKNOWN_EVENT, world, quern_event_get_stats(world, none, &stats));
    must_refuse(NULL_ARGUMENT, world, quern_event_get_stats(world, hit, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_event_get_stats(NULL, hit, &stats));
    captured_reports reports;
    capture_reports(&reports);
    quern_world_destroy(world); /* fails, because a reader refers to the world */
    cr_assert_not_null(strstr(reports.last, "readers"), "%s", reports.last);
    quern_event_reader_destroy(reader);
}

/* --------------------------------------------------------------------------------------------- limits */

Test(event, oldest_events_beyond_the_limit_are_dropped_and_the_reader_is_named)
{
    quern_event spark = make_event(world, .name = "spark", .size_bytes = sizeof(Hit), .limit_bytes = 20000);
    quern_event_reader *prompt = open_reader(spark, "prompt"), *idle = open_reader(spark, "idle one");
    uint32_t emitted = 0;
    quern_result result = QUERN_OK;
    for (; result == QUERN_OK && emitted < 10000; emitted += 100) {
        result = emit_numbers(spark, emitted, 100);
        expect_numbers(prompt, emitted, 100);
    }
    cr_assert_eq(result, QUERN_ERROR_LIMIT);
    cr_assert_not_null(strstr(quern_error_message(), "'spark'"), "%s", quern_error_message());
    cr_assert_not_null(strstr(quern_error_message(), "'idle one'"), "%s", quern_error_message());
    cr_assert_not_null(strstr(quern_error_message(), "100 events"), "%s", quern_error_message());
    cr_assert_eq(emitted, 1300u, "%u", emitted); /* 12 blocks of 1632 bytes fit 20000 */
    cr_assert_eq(quern_event_reader_lost_count(idle), 100u);
    cr_assert_eq(quern_event_reader_lost_count(prompt), 0u);
    cr_assert_eq(stats_of(spark).lost_count, 100u);
    cr_assert_leq(stats_of(spark).waiting_bytes, 20000u);
    expect_numbers(idle, 100, 1200);
    must(emit_numbers(spark, 1300, 100)); /* succeeds again */
    quern_event_reader_destroy(prompt);
    quern_event_reader_destroy(idle);
}

Test(event, one_publication_may_exceed_the_limit)
{
    quern_event spark = make_event(world, .name = "spark", .size_bytes = sizeof(Hit), .limit_bytes = 1);
    quern_event_reader *reader = open_reader(spark, "a");
    must(emit_numbers(spark, 0, 500));
    expect_numbers(reader, 0, 500);
    must(emit_numbers(spark, 0, 500));
    cr_assert_eq(emit_numbers(spark, 500, 500), QUERN_ERROR_LIMIT);
    expect_numbers(reader, 500, 500);
    quern_event_reader_destroy(reader);
}

static void expect_message(const char *part)
{
    cr_assert_not_null(strstr(quern_error_message(), part), "%s", quern_error_message());
}

/* An event of 16 bytes: a block of n values costs 16 n + 32 bytes. */
static quern_event register_limited(uint64_t limit_bytes)
{
    quern_event event =
        make_event(world, .name = "spark", .size_bytes = sizeof(Hit), .limit_bytes = limit_bytes);
    return event;
}

Test(event, block_returned_to_a_reader_is_not_lost)
{
    const quern_event spark = register_limited(100 * 16 + 32 + 100); /* a block of 100, and a little */
    quern_event_reader *reader = open_reader(spark, "a"), *other = open_reader(spark, "b");
    quern_event_block block;
    must(emit_numbers(spark, 0, 100));
    cr_assert(quern_event_reader_next(reader, &block));
    cr_assert(quern_event_reader_next(other, &block));
    must(emit_numbers(spark, 100, 100));
    cr_assert_eq(stats_of(spark).waiting_count, 100u, "both readers have seen the first block");
    cr_assert(quern_event_reader_next(reader, &block));
    cr_assert_eq(emit_numbers(spark, 200, 100), QUERN_ERROR_LIMIT);
    expect_message("100 events 'spark'");
    expect_message("'b'");
    cr_assert_null(strstr(quern_error_message(), "other readers"), "%s", quern_error_message());
    cr_assert_eq(quern_event_reader_lost_count(reader), 0u);
    cr_assert_eq(quern_event_reader_lost_count(other), 100u);
    expect_numbers(reader, 200, 100);
    expect_numbers(other, 200, 100);
    quern_event_reader_destroy(reader);
    quern_event_reader_destroy(other);
}

Test(event, block_returned_to_a_reader_outlives_a_trim)
{
    quern_event_reader *reader = open_reader(hit, "a");
    quern_event_block block;
    must(emit_numbers(hit, 5, 100));
    cr_assert(quern_event_reader_next(reader, &block));
    must(quern_world_trim(world));
    cr_assert_eq(stats_of(hit).waiting_count, 100u);
    cr_assert_eq(((const Hit *)block.values)[99].number, 104u);
    cr_assert_not(quern_event_reader_next(reader, &block));
    must(quern_world_trim(world));
    cr_assert_eq(stats_of(hit).waiting_count, 0u);
    quern_event_reader_destroy(reader);
}

Test(event, each_waiting_block_costs_its_values_and_32_bytes)
{
    quern_event_reader *reader = open_reader(hit, "a");
    must(emit_numbers(hit, 0, 1));
    cr_assert_eq(stats_of(hit).waiting_bytes, sizeof(Hit) + 32);
    must(emit_numbers(hit, 0, 500));
    cr_assert_eq(stats_of(hit).waiting_bytes, 501 * sizeof(Hit) + 32, "the call extends the block");
    Hit many[2000] = {{.number = 0}};
    must(quern_world_emit(world, hit, many, 2000));
    const uint64_t fitting = 16368 / sizeof(Hit), block_count = (2000 + fitting - 1) / fitting;
    cr_assert_eq(stats_of(hit).waiting_bytes, 2501 * sizeof(Hit) + (1 + block_count) * 32);
    quern_event_block block;
    for (uint64_t left = 2501, last = 0; quern_event_reader_next(reader, &block); last++) {
        const uint64_t expected = last == 0 ? 501 : left < fitting ? left : fitting;
        cr_assert_eq(block.count, expected);
        left -= expected;
    }
    quern_event_reader_destroy(reader);
    quern_event tick = make_event(world, .name = "tick");
    reader = open_reader(tick, "a");
    must(quern_world_emit(world, tick, NULL, 10));
    cr_assert_eq(stats_of(tick).waiting_bytes, 42u);
    quern_event_reader_destroy(reader);
}

Test(event, events_up_to_the_limit_may_wait)
{
    const quern_event spark = register_limited(2 * (10 * 16 + 32));
    quern_event_reader *reader = open_reader(spark, "a");
    must(emit_numbers(spark, 0, 10));
    must(emit_numbers(spark, 10, 10));
    cr_assert_eq(stats_of(spark).waiting_bytes, 20u * 16 + 32);
    cr_assert_eq(emit_numbers(spark, 20, 10), QUERN_ERROR_LIMIT);
    cr_assert_eq(stats_of(spark).waiting_bytes, 10u * 16 + 32, "one block went");
    cr_assert_eq(quern_event_reader_lost_count(reader), 20u);
    expect_numbers(reader, 20, 10);
    must(emit_numbers(spark, 30, 1));
    cr_assert_eq(stats_of(spark).waiting_bytes, 16u + 32, "what was seen costs nothing");
    quern_event_reader_destroy(reader);
}

Test(event, message_counts_the_losses_of_other_readers)
{
    const quern_event spark = register_limited(10 * 16 + 32);
    quern_event_reader *first = open_reader(spark, "x"), *second = open_reader(spark, "y"),
                       *third = open_reader(spark, "z");
    must(emit_numbers(spark, 0, 10));
    cr_assert_eq(emit_numbers(spark, 10, 10), QUERN_ERROR_LIMIT);
    expect_message("10 events 'spark'");
    expect_message("2 times");
    cr_assert_eq(stats_of(spark).lost_count, 30u, "each event once for each reader");
    quern_event_reader_destroy(second); /* the middle one of the list */
    cr_assert_eq(stats_of(spark).reader_count, 2u);
    expect_numbers(first, 10, 10);
    expect_numbers(third, 10, 10);
    quern_event_reader_destroy(third);
    quern_event_reader_destroy(first);
    cr_assert_eq(stats_of(spark).reader_count, 0u);
    must(emit_numbers(spark, 20, 10));
    cr_assert_eq(stats_of(spark).waiting_count, 0u);
}

/* Sync points visit channels only while this number is above 0. */
Test(event, waiting_batches_are_counted)
{
    quern_event_reader *reader = open_reader(hit, "a");
    must(emit_numbers(hit, 0, 10));
    must(emit_numbers(hit, 10, 10));
    cr_assert_eq(world->waiting_event_batch_count, 1u);
    quern_event_reader *other = open_reader(hit, "b"); /* has seen the block, which is not extended then */
    must(emit_numbers(hit, 20, 10));
    cr_assert_eq(world->waiting_event_batch_count, 2u);
    quern_event_reader_destroy(other);
    expect_numbers(reader, 0, 30);
    must(emit_numbers(hit, 20, 10));
    cr_assert_eq(world->waiting_event_batch_count, 1u);
    quern_event_reader_destroy(reader);
    must(quern_world_trim(world));
    cr_assert_eq(world->waiting_event_batch_count, 0u);
}

/* ------------------------------------------------------------------------------------------- extending */

/* Reads all blocks. Returns their counts as groups of two digits: 12 and 3 are 1203. */
static uint64_t read_cuts(quern_event_reader *reader, uint64_t first)
{
    uint64_t cuts = 0;
    for (quern_event_block block; quern_event_reader_next(reader, &block);) {
        cuts = cuts * 100 + block.count;
        for (uint32_t i = 0; i < block.count; i++)
            cr_assert_eq(((const Hit *)block.values)[i].number, first++);
    }
    return cuts;
}

Test(event, call_extends_the_last_block_until_a_reader_holds_it)
{
    quern_event_reader *reader = open_reader(hit, "a");
    quern_event_block block;
    for (uint32_t i = 0; i < 5; i++)
        must(emit_numbers(hit, i, 1));
    cr_assert(quern_event_reader_next(reader, &block));
    cr_assert_eq(block.count, 5u);
    must(emit_numbers(hit, 5, 1));
    must(emit_numbers(hit, 6, 2));
    cr_assert_eq(block.count, 5u);
    cr_assert_eq(read_cuts(reader, 5), 3u);
    quern_event_reader_destroy(reader);
}

Test(event, restored_block_is_extended_like_the_saved_one)
{
    quern_history *history;
    quern_event_reader *reader = open_reader(hit, "a");
    must(emit_numbers(hit, 0, 3));
    must(emit_numbers(hit, 3, 4));
    must(quern_history_create(world, NULL, &history));
    must(quern_history_save(history, 0, NULL));
    for (uint32_t turn = 0; turn < 3; turn++) {
        must(emit_numbers(hit, 7, 2));
        must(emit_numbers(hit, 9, 1));
        cr_assert_eq(stats_of(hit).waiting_bytes, 10 * sizeof(Hit) + 32);
        cr_assert_eq(read_cuts(reader, 0), 10u);
        must(quern_history_restore(history, 0, NULL));
        cr_assert_eq(stats_of(hit).waiting_count, 7u);
    }
    must(quern_world_validate(world));
    quern_history_destroy(history);
    quern_event_reader_destroy(reader);
}

/* ---------------------------------------------------------------------------------------------- hooks */

static void construct_tracked(void *values, uint32_t count, void *user_data);

static void copy_tracked(void *targets, const void *sources, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++) {
        const tracked *source = (const tracked *)sources + i;
        tracked_counts *counts = user_data;
        if (!tracked_is_live(source)) counts->broken_count++;
        construct_tracked((tracked *)targets + i, 1, user_data);
        ((tracked *)targets)[i].payload = source->payload;
        counts->copied_count++;
        counts->constructed_count--;
    }
}

static void construct_tracked(void *values, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        tracked_construct((tracked *)values + i, TRACKED_DEFAULT, user_data);
}

static void destroy_tracked(void *values, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        tracked_destroy((tracked *)values + i, user_data);
}

Test(event, values_with_hooks_are_copied_and_destroyed_once)
{
    tracked_counts counts = {0};
    quern_event event = make_event(
        world, .name = "tracked", .size_bytes = sizeof(tracked), .alignment_bytes = _Alignof(tracked),
        .hooks = {.copy = copy_tracked, .destroy = destroy_tracked, .user_data = &counts});
    tracked given[3];
    for (uint32_t i = 0; i < 3; i++)
        tracked_construct(&given[i], i, &counts);
    must(quern_world_emit(world, event, given, 3));
    cr_assert_eq(tracked_live_count(&counts), 3u, "nobody reads them");
    quern_event_reader *reader = open_reader(event, "a");
    must(quern_world_emit(world, event, given, 3));
    cr_assert_eq(tracked_live_count(&counts), 6u);
    quern_event_block block;
    uint32_t seen = 0;
    while (quern_event_reader_next(reader, &block))
        for (uint32_t i = 0; i < block.count; i++) {
            cr_assert(tracked_is_live((const tracked *)block.values + i));
            cr_assert_eq(((const tracked *)block.values)[i].payload, seen++);
        }
    cr_assert_eq(seen, 3u);
    must(quern_world_emit(world, event, given, 2));
    cr_assert_eq(tracked_live_count(&counts), 5u, "three went, two came");
    destroy_tracked(given, 3, &counts);
    quern_event_reader_destroy(reader);
    must(quern_world_trim(world));
    cr_assert_eq(tracked_live_count(&counts), 0u);
    cr_assert_eq(counts.broken_count, 0u);
}

Test(event, waiting_values_are_destroyed_with_the_world)
{
    quern_world *short_lived = setup_world();
    tracked_counts counts = {0};
    quern_event event = make_event(
        short_lived, .name = "tracked", .size_bytes = sizeof(tracked), .alignment_bytes = _Alignof(tracked),
        .hooks = {.copy = copy_tracked, .destroy = destroy_tracked, .user_data = &counts});
    quern_event_reader *reader;
    must(quern_event_reader_create(short_lived, &(quern_event_reader_def){.event = event}, &reader));
    tracked given;
    tracked_construct(&given, 1, &counts);
    must(quern_world_emit(short_lived, event, &given, 1));
    tracked_destroy(&given, &counts);
    cr_assert_eq(tracked_live_count(&counts), 1u);
    quern_event_reader_destroy(reader);
    quern_world_destroy(short_lived);
    cr_assert_eq(tracked_live_count(&counts), 0u);
}

Test(event, waiting_values_are_destroyed_before_a_refused_end_of_the_world)
{
    quern_world *kept = setup_world();
    tracked_counts counts = {0};
    const quern_event event = tracked_event_register(kept, "tracked", &counts);
    quern_event_reader *reader;
    must(quern_event_reader_create(kept, &(quern_event_reader_def){.event = event}, &reader));
    tracked given;
    tracked_construct(&given, 1, &counts);
    must(quern_world_emit(kept, event, &given, 1));
    tracked_destroy(&given, &counts);
    captured_reports reports;
    capture_reports(&reports);
    quern_world_destroy(kept); /* the reader is an object of the world */
    cr_assert_not_null(strstr(reports.last, "values with destroy hooks were destroyed"), "%s",
                       reports.last);
    cr_assert_eq(tracked_live_count(&counts), 0u);
    quern_event_reader_destroy(reader);
    quern_world_destroy(kept);
}

/* --------------------------------------------------------------------------------------------- memory */

/* Runs a script in which one allocation fails. The failing call changes nothing, and succeeds when it is repeated. */
static void run_script(failing_allocator *memory, uint64_t failing_call)
{
    quern_world *small = make_world(.allocator = failing_allocator_interface(memory));
    failing_allocator_fail_at(memory, failing_call);
    quern_event event = {0};
    quern_event_reader *reader = NULL;
    while (QUERN_EVENT_REGISTER_FIELDS(small, &event, Hit, target, damage, number) != QUERN_OK)
        cr_assert_eq(event.bits, 0u);
    while (quern_event_reader_create(small, &(quern_event_reader_def){.event = event}, &reader) != QUERN_OK)
        cr_assert_null(reader);
    Hit hits[3000];
    for (uint32_t i = 0; i < 3000; i++)
        hits[i] = (Hit){.number = i};
    for (uint32_t round = 0; round < 3; round++) {
        quern_result result;
        while ((result = quern_world_emit(small, event, hits, 3000)) != QUERN_OK) {
            quern_event_stats stats;
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            must(quern_event_get_stats(small, event, &stats));
            cr_assert_eq(stats.waiting_count, 3000u * round);
        }
    }
    quern_event_block block;
    uint32_t seen = 0;
    for (; quern_event_reader_next(reader, &block); seen += block.count)
        cr_assert_eq(((const Hit *)block.values)->number, seen % 3000);
    cr_assert_eq(seen, 9000u);
    quern_event_reader_destroy(reader);
    quern_world_destroy(small);
}

Test(event, out_of_memory_leaves_no_partial_change)
{
    for (uint64_t call = 1, failed = 1; failed > 0; call++) {
        failing_allocator *memory = failing_allocator_create();
        run_script(memory, call);
        failed = failing_allocator_failed_count(memory);
        failing_allocator_close(memory);
        cr_assert_lt(call, 200u);
    }
}

Test(event, the_next_emission_without_readers_leaves_nothing_waiting)
{
    for (uint32_t reads = 0; reads < 2; reads++) {
        quern_event_reader *reader = open_reader(hit, "leaving");
        must(emit_numbers(hit, 0, 3));
        if (reads == 1) expect_numbers(reader, 0, 3);
        quern_event_reader_destroy(reader);
        cr_assert_eq(stats_of(hit).waiting_count, 3u);
        must(emit_numbers(hit, 3, 1));
        cr_assert_eq(stats_of(hit).waiting_count, 0u);
        cr_assert_eq(stats_of(hit).waiting_bytes, 0u);
        must(emit_numbers(hit, 4, 1));
        cr_assert_eq(stats_of(hit).waiting_count, 0u);
    }
    quern_event_reader *reader = open_reader(hit, "late");
    must(emit_numbers(hit, 5, 2));
    expect_numbers(reader, 5, 2);
    quern_event_reader_destroy(reader);
}
