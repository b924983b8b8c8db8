/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "core/base/base_internal.h"
#include "tests/support/setup.h"

#include <stdio.h>
#include <string.h>

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
