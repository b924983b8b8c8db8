/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/base/base_internal.h"
#include "core/base/containers.h"
#include "core/platform/compiler.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------------------- results, messages, allocators */

Test(base, every_result_has_a_distinct_name)
{
    for (int a = 0; a <= QUERN_ERROR_DIVERGED; a++) {
        cr_assert_eq(strncmp(quern_result_string((quern_result)a), "QUERN_", 6), 0);
        for (int b = 0; b < a; b++)
            cr_assert_neq(
                strcmp(quern_result_string((quern_result)a), quern_result_string((quern_result)b)), 0);
    }
    cr_assert_str_eq(quern_result_string(QUERN_OK), "QUERN_OK");
    cr_assert_str_eq(quern_result_string(QUERN_ERROR_STALE_ENTITY), "QUERN_ERROR_STALE_ENTITY");
    cr_assert_str_eq(quern_result_string((quern_result)(QUERN_ERROR_DIVERGED + 1)), "unknown result");
    cr_assert_str_eq(quern_result_string((quern_result)444), "unknown result");
    cr_assert_str_eq(quern_result_string((quern_result)-1), "unknown result");
}

Test(base, there_is_no_message_before_the_first_failure)
{
    cr_assert_str_eq(quern_error_message(), "");
}

Test(base, a_success_keeps_the_message_of_the_last_failure)
{
    cr_assert_eq(quern__fail(QUERN_ERROR_LIMIT, "only %d left", 3), QUERN_ERROR_LIMIT);
    quern_world_destroy(setup_world());
    cr_assert_str_eq(quern_error_message(), "only 3 left");
    quern_error_clear();
    cr_assert_str_eq(quern_error_message(), "");
}

Test(base, suggestions_name_what_is_close)
{
    static const struct {
        const char *wanted;
        const char *names[4];
        const char *expected; /* NULL: no name is close */
    } cases[] = {
        {"Positon", {"Velocity", "Position"}, "Position"}, /* a letter is missing */
        {"Possition", {"Position"}, "Position"},           /* one is too many */
        {"Pasition", {"Position"}, "Position"},            /* another */
        {"Psoition", {"Position"}, "Position"},            /* two are swapped, which is one edit */
        {"psn", {"Pns", "Position"}, "Pns"},               /* one edit of three letters, and a capital */
        {"HEALTH", {"Wealth", "Health"}, "Health"},        /* capitals do not count */
        {"speeed", {"speedy", "speed", "spede"}, "speed"}, /* the closest */
        {"cat", {"bat", "cap"}, "bat"},                    /* the first of two that are as close */
        {"abcdef", {"abxyef", "abxxxf"}, "abxyef"},        /* two edits of six letters */
        {"abcde", {"abxye"}, NULL},                        /* two of five */
        {"ab", {"ac", "ba", "a"}, NULL},                   /* one of two */
        {"Nothing", {"Position", "Velocity", "Health"}, NULL},
        {"", {"a", ""}, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        quern_suggestion suggestion = {0};
        char expected[128] = "";
        for (size_t k = 0; k < 4 && cases[i].names[k] != NULL; k++)
            quern_suggestion_offer(&suggestion, cases[i].wanted, strlen(cases[i].wanted),
                                   cases[i].names[k]);
        if (cases[i].expected != NULL)
            snprintf(expected, sizeof expected, "; did you mean '%s'?", cases[i].expected);
        cr_expect_str_eq(suggestion.text, expected, "%s", cases[i].wanted);
    }
}

Test(base, suggestions_read_no_more_than_the_wanted_bytes)
{
    quern_suggestion suggestion = {0};
    char name[QUERN_MAX_NAME_BYTES + 2];
    quern_suggestion_offer(&suggestion, "Positon.x", 7, "Position");
    cr_expect_str_eq(suggestion.text, "; did you mean 'Position'?");
    memset(name, 'n', sizeof name);
    name[QUERN_MAX_NAME_BYTES] = '\0';
    suggestion = (quern_suggestion){0};
    quern_suggestion_offer(&suggestion, name, QUERN_MAX_NAME_BYTES - 1, name);
    cr_expect_eq(strlen(suggestion.text), strlen("; did you mean ''?") + QUERN_MAX_NAME_BYTES);
    name[QUERN_MAX_NAME_BYTES] = 'n';
    name[QUERN_MAX_NAME_BYTES + 1] = '\0';
    suggestion = (quern_suggestion){0};
    quern_suggestion_offer(&suggestion, name, QUERN_MAX_NAME_BYTES, name); /* too long a name */
    quern_suggestion_offer(&suggestion, name, QUERN_MAX_NAME_BYTES + 1, "nnn");
    quern_suggestion_offer(&suggestion, NULL, 0, "a");
    quern_suggestion_offer(&suggestion, "a", 1, NULL);
    quern_suggestion_offer(NULL, "a", 1, "a");
    cr_expect_str_eq(suggestion.text, "");
}

/* A precision and the end of a message cut between characters. */
Test(base, messages_consist_of_whole_characters)
{
    static const struct {
        const char *text;
        int precision;
        const char *expected;
    } cases[] = {{"h\xC3\xA4user", 2, "h"},
                 {"h\xC3\xA4user", 3, "h\xC3\xA4"},
                 {"\xE2\x82\xAC!", 1, ""},
                 {"\xE2\x82\xAC!", 2, ""},
                 {"\xE2\x82\xAC!", 4, "\xE2\x82\xAC!"},
                 {"\xF0\x9F\x98\x80", 3, ""},
                 {"\xF0\x9F\x98\x80", 4, "\xF0\x9F\x98\x80"},
                 {"\xF4\x8F\xBF\xBF", 3, ""}, /* the last character that there is */
                 {"\xF4\x8F\xBF\xBF", 4, "\xF4\x8F\xBF\xBF"},
                 {"\xC2\x80", 1, ""},
                 {"\xFFx\x80", 3, "\xFFx\x80"}}; /* no UTF-8 */
    char expected[600];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        quern_error_set(QUERN_ERROR_LIMIT, "call: '%.*s': end", cases[i].precision, cases[i].text);
        snprintf(expected, sizeof expected, "call: '%s': end", cases[i].expected);
        cr_assert_str_eq(quern_error_message(), expected);
    }
    for (size_t before = 0; before < 3; before++) {
        snprintf(expected, sizeof expected, "%.*s%0*d\xE2\x82\xAC", (int)before, "abc", (int)(510 - before),
                 0);
        quern_error_set(QUERN_ERROR_LIMIT, "%s", expected);
        cr_assert_eq(strlen(quern_error_message()), 510);
    }
}

Test(base, libraries_can_set_their_own_messages)
{
    cr_assert_eq(quern_error_set(QUERN_ERROR_LIMIT, "kit_call: only %d left", 3), QUERN_ERROR_LIMIT);
    cr_assert_str_eq(quern_error_message(), "kit_call: only 3 left");
    quern_error_clear();
}

Test(base, long_messages_are_truncated)
{
    static char text[4096];
    memset(text, 'x', sizeof text - 1);
    (void)quern__fail(QUERN_ERROR_LIMIT, "%s", text);
    cr_assert_gt(strlen(quern_error_message()), 100u);
    cr_assert_lt(strlen(quern_error_message()), 4095u);
}

Test(base, log_messages_are_passed_to_the_handler)
{
    captured_reports reports;
    capture_reports(&reports);
    quern__log(QUERN_LOG_WARNING, "%d of %d", 3, 4);
    cr_assert_eq(reports.log_count, 1u);
    cr_assert_str_eq(reports.last, "3 of 4");
    quern_log_set_handler(NULL, NULL);
    quern__log(QUERN_LOG_INFO, "not for standard error");
    cr_assert_eq(reports.log_count, 1u);
}

Test(base, violation_is_logged_and_passed_to_the_assert_handler_in_builds_with_checks)
{
    captured_reports reports;
    capture_reports(&reports);
    cr_assert_eq(quern__report_violation(QUERN_ERROR_UNDECLARED_ACCESS, "'%s'", "move"),
                 QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_str_eq(quern_error_message(), "'move'");
    cr_assert_str_eq(reports.last, "'move'");
    cr_assert_eq(reports.log_count, 1u);
    cr_assert_eq(reports.assert_count, quern_has_checks() ? 1u : 0u);
}

Test(base, the_default_allocator_aligns)
{
    quern_allocator allocator = quern_allocator_default();
    for (size_t alignment = 8; alignment <= 2u << 20; alignment *= 2) {
        void *pointer = quern__allocate(&allocator, 3, alignment);
        cr_assert_not_null(pointer);
        cr_assert_eq((uintptr_t)pointer % alignment, 0u);
        quern__release(&allocator, pointer, 3, alignment);
    }
    quern__release(&allocator, NULL, 3, 8);
}

/* ------------------------------------------------------------------------------------------ registries */

enum { MOST_THINGS = 3 };

typedef struct thing {
    uint32_t number;
    struct {
        char name[8];
    } type;
} thing;

static const quern__registry things =
    QUERN__REGISTRY_OF_ITEMS("thing", "box", MOST_THINGS, QUERN_ERROR_UNKNOWN_EVENT, thing, type.name);
static const quern__registry pointers =
    QUERN__REGISTRY_OF_POINTERS("thing", "box", MOST_THINGS, QUERN_ERROR_UNKNOWN_EVENT, thing, type.name);

static thing items[] = {{1, {"one"}}, {2, {"two"}}, {3, {"one"}}};
static thing *const item_pointers[] = {&items[0], &items[1], &items[2]};

static void assert_found(const quern__registry *registry, const void *list)
{
    cr_assert_eq(quern__registry_find(registry, list, 0, 3, "one"), 0u);
    cr_assert_eq(quern__registry_find(registry, list, 0, 3, "two"), 1u);
    cr_assert_eq(quern__registry_find(registry, list, 1, 3, "one"), 2u, "from 1 on");
    cr_assert_eq(quern__registry_find(registry, list, 1, 2, "one"), 2u, "the third is beyond the count");
    cr_assert_eq(quern__registry_find(registry, list, 0, 3, "tw"), 3u);
    cr_assert_eq(quern__registry_find(registry, list, 0, 3, ""), 3u);
    cr_assert_eq(quern__registry_find(registry, NULL, 0, 0, "one"), 0u, "nothing is registered");
}

Test(registry, items_and_pointers_to_items_are_found_by_name)
{
    assert_found(&things, items);
    assert_found(&pointers, item_pointers);
}

Test(registry, a_new_name_is_neither_empty_nor_taken)
{
    must(quern__registry_check_new(&things, items, 3, "three"));
    must(quern__registry_check_new(&things, items, 1, "two"));
    cr_assert_eq(quern__registry_check_new(&things, items, 3, NULL), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_eq(quern__registry_check_new(&things, items, 3, ""), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_str_eq(quern_error_message(), "a thing needs a name, and this one is empty: set a name");
    cr_assert_eq(quern__registry_check_new(&things, items, 3, "two"), QUERN_ERROR_DUPLICATE_NAME);
    cr_assert_str_eq(quern_error_message(), "the box already has a thing 'two': choose another name");
}

Test(registry, reserving_fails_at_the_limit_and_without_memory)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    QUERN__ARRAY(thing) list = {0};
    failing_allocator_fail_from(memory, 1);
    cr_assert_eq(quern__registry_reserve(&things, &allocator, &list, "one"), QUERN_ERROR_OUT_OF_MEMORY);
    cr_assert_str_eq(quern_error_message(), "thing 'one': no memory to register it");
    cr_assert_null(list.items);
    failing_allocator_heal(memory);
    for (; list.count < MOST_THINGS; list.count++)
        must(quern__registry_reserve(&things, &allocator, &list, "one"));
    cr_assert_geq(list.capacity, (uint32_t)MOST_THINGS);
    cr_assert_eq(quern__registry_reserve(&things, &allocator, &list, "four"), QUERN_ERROR_LIMIT);
    cr_assert_str_eq(quern_error_message(),
                     "thing 'four': the box has 3 already (MOST_THINGS): register fewer");
    quern__array_release(&allocator, &list);
    failing_allocator_close(memory);
}

Test(registry, messages_distinguish_null_and_foreign_handles)
{
    cr_assert_eq(quern__registry_fail_unknown(&things, 0, 7), QUERN_ERROR_UNKNOWN_EVENT);
    cr_assert_str_eq(quern_error_message(),
                     "the thing handle is null: register it first, or check its name (a search for an "
                     "unknown name returns null)");
    cr_assert_eq(quern__registry_fail_unknown(&things, 0x5000001, 7), QUERN_ERROR_UNKNOWN_EVENT);
    cr_assert_str_eq(
        quern_error_message(),
        "thing handle 0x5000001 is not of this world (tag 7): register the thing in this world");
}

/* --------------------------------------------------------------------------------------------- sorting */

enum { MAX_COUNT = 300 };

static quern__sort_item sorted[MAX_COUNT + 1], scratch[MAX_COUNT + 1];

/* Fills the items with few distinct keys, so that many are equal. Pointers are input positions, to check stability. */
static void fill(uint32_t count, uint64_t seed)
{
    random_source random = {seed};
    for (uint32_t i = 0; i <= MAX_COUNT; i++) {
        sorted[i] = (quern__sort_item){.key = (uint64_t)random_below(&random, count + 1) << 40 | 7,
                                       .pointer = (void *)(uintptr_t)(i + 1)};
        scratch[i] = (quern__sort_item){0};
    }
}

Test(sort, items_are_sorted_by_key_and_stable)
{
    for (uint32_t count = 0; count <= MAX_COUNT; count++) {
        fill(count, count);
        uint64_t sum = 0, expected_sum = 0;
        for (uint32_t i = 0; i < count; i++)
            expected_sum += sorted[i].key * (uintptr_t)sorted[i].pointer;
        quern__sort_item behind = sorted[count];
        quern__sort(sorted, scratch, count);
        for (uint32_t i = 0; i < count; i++) {
            sum += sorted[i].key * (uintptr_t)sorted[i].pointer;
            if (i == 0) continue;
            cr_assert_leq(sorted[i - 1].key, sorted[i].key, "count %u, item %u", count, i);
            if (sorted[i - 1].key == sorted[i].key) cr_assert_lt(sorted[i - 1].pointer, sorted[i].pointer);
        }
        cr_assert_eq(sum, expected_sum, "count %u: other items than before", count);
        cr_assert_eq(sorted[count].pointer, behind.pointer, "count %u: an item behind them", count);
        cr_assert_null(scratch[count].pointer);
    }
}

Test(sort, sorted_input_is_unchanged)
{
    for (uint32_t i = 0; i < MAX_COUNT; i++)
        sorted[i] = (quern__sort_item){.key = i / 3, .pointer = (void *)(uintptr_t)i};
    quern__sort(sorted, NULL, MAX_COUNT); /* sorted input needs no scratch memory */
    for (uint32_t i = 0; i < MAX_COUNT; i++)
        cr_assert_eq((uintptr_t)sorted[i].pointer, i);
}

/* -------------------------------------------------------------------------------- the memory of a call */

static failing_allocator *memory;
static quern_allocator allocator;
static quern__call_memory block;

static void open_block(void)
{
    memory = failing_allocator_create();
    const quern_allocator backing = failing_allocator_interface(memory);
    cr_assert(quern__call_memory_init(&block, &backing));
    allocator = quern__call_memory_allocator(&block);
}

static void close_block(void)
{
    quern__call_memory_release(&block);
    failing_allocator_close(memory); /* asserts that nothing is left */
}

TestSuite(call_memory, .init = open_block, .fini = close_block);

/* Whether the next allocation of the size needs the allocator behind the block. */
static bool needs_backing(size_t size_bytes, size_t alignment_bytes)
{
    const uint64_t before = failing_allocator_call_count(memory);
    void *bytes = quern__allocate(&allocator, size_bytes, alignment_bytes);
    cr_assert_not_null(bytes);
    cr_assert_eq((uintptr_t)bytes % alignment_bytes, 0u);
    memset(bytes, 1, size_bytes);
    quern__release(&allocator, bytes, size_bytes, alignment_bytes);
    return failing_allocator_call_count(memory) != before;
}

Test(call_memory, only_large_parts_need_the_allocator_behind_it)
{
    if (QUERN__IS_ADDRESS_SANITIZED) cr_skip_test("the address sanitizer keeps no call memory");
    cr_assert_not(needs_backing(QUERN__CALL_MEMORY_BYTES, 64));
    cr_assert(needs_backing(QUERN__CALL_MEMORY_BYTES + 1, 64));
    cr_assert(needs_backing(8, 128));
    void *first = quern__allocate(&allocator, 1, 8);
    cr_assert_not(needs_backing(QUERN__CALL_MEMORY_BYTES - 8, 8));
    cr_assert_not(needs_backing(QUERN__CALL_MEMORY_BYTES - 8, 8), "the last part was released");
    cr_assert(needs_backing(QUERN__CALL_MEMORY_BYTES - 7, 8));
    quern__release(&allocator, first, 1, 8);
}

Test(call_memory, it_is_empty_when_all_parts_are_released)
{
    void *parts[3];
    if (QUERN__IS_ADDRESS_SANITIZED) cr_skip_test("the address sanitizer keeps no call memory");
    for (uint32_t i = 0; i < 3; i++)
        parts[i] = quern__allocate(&allocator, 10000, 64);
    cr_assert(needs_backing(10000, 64));
    quern__release(&allocator, parts[0], 10000, 64);
    quern__release(&allocator, parts[1], 10000, 64);
    cr_assert(needs_backing(10000, 64));
    quern__release(&allocator, parts[2], 10000, 64);
    cr_assert_not(needs_backing(QUERN__CALL_MEMORY_BYTES, 8));
}

Test(call_memory, parts_do_not_overlap)
{
    enum { PARTS = 40 };
    unsigned char *parts[PARTS] = {0};
    size_t sizes[PARTS];
    random_source random = {1};
    for (uint32_t round = 0; round < 20000; round++) {
        const uint32_t i = random_below(&random, PARTS);
        const size_t alignment = (size_t)8 << i % 4;
        if (parts[i] == NULL) {
            sizes[i] = 1 + random_below(&random, 2000);
            parts[i] = quern__allocate(&allocator, sizes[i], alignment);
            cr_assert_eq((uintptr_t)parts[i] % alignment, 0u);
            memset(parts[i], (int)i, sizes[i]);
        } else {
            for (size_t k = 0; k < sizes[i]; k++)
                if (parts[i][k] != i) cr_assert_fail("part %u was overwritten", i);
            quern__release(&allocator, parts[i], sizes[i], alignment);
            parts[i] = NULL;
        }
    }
    for (uint32_t i = 0; i < PARTS; i++)
        if (parts[i] != NULL) quern__release(&allocator, parts[i], sizes[i], (size_t)8 << i % 4);
}

Test(call_memory, exhausted_memory_is_reported)
{
    quern__call_memory other;
    const quern_allocator backing = failing_allocator_interface(memory);
    failing_allocator_fail_at(memory, 1);
    cr_assert_not(quern__call_memory_init(&other, &backing));
    failing_allocator_heal(memory);
    failing_allocator_fail_at(memory, 1);
    cr_assert_null(quern__allocate(&allocator, 2 * QUERN__CALL_MEMORY_BYTES, 8));
    failing_allocator_heal(memory);
}
