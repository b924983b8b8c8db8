/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_STANDIN_CRITERION_H
#define QUERN_STANDIN_CRITERION_H

/* The part of Criterion that this project's tests use, for builds in which Criterion cannot run (the thread
 * sanitizer) or starts slowly (the address sanitizer). Tests are registered before main and run one after another,
 * each in a child process, so that no test sees side effects of another. `.timeout` only tells which tests may last
 * longer than the nine minutes after which any other is ended. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct standin_options {
    void (*init)(void);
    void (*fini)(void);
    const char *description;
    double timeout;
    bool disabled;
    int signal;
    int exit_code;
    int sentinel; /* makes a list of options valid that may be empty */
};

struct standin_test {
    const char *suite;
    const char *name;
    void (*run)(void);
    struct standin_options options;
    struct standin_test *next;
};

struct standin_suite {
    const char *name;
    struct standin_options options;
    struct standin_suite *next;
};

void standin_register_test(struct standin_test *test);
void standin_register_suite(struct standin_suite *suite);

/* standin_note marks the test as failed and lets it continue. standin_abort and standin_skip end the
 * test's process from any thread. */
void standin_note(const char *file, int line, const char *text, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void standin_abort(const char *file, int line, const char *text, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));
void standin_skip(const char *file, int line, const char *text, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));

#define Test(...)      STANDIN_TEST(__VA_ARGS__, .sentinel = 0)
#define TestSuite(...) STANDIN_SUITE(__VA_ARGS__, .sentinel = 0)

#define STANDIN_TEST(Suite, Name, ...)                                                          \
    static void Suite##_##Name##_run(void);                                                     \
    static struct standin_test Suite##_##Name##_test = {                                        \
        .suite = #Suite, .name = #Name, .run = Suite##_##Name##_run, .options = {__VA_ARGS__}}; \
    __attribute__((constructor)) static void Suite##_##Name##_register(void)                    \
    {                                                                                           \
        standin_register_test(&Suite##_##Name##_test);                                          \
    }                                                                                           \
    static void Suite##_##Name##_run(void)

#define STANDIN_SUITE(Name, ...)                                                          \
    static struct standin_suite suite_##Name = {.name = #Name, .options = {__VA_ARGS__}}; \
    __attribute__((constructor)) static void suite_##Name##_register(void)                \
    {                                                                                     \
        standin_register_suite(&suite_##Name);                                            \
    }                                                                                     \
    struct standin_suite

/* The message is optional: with the space before it, an empty message is a valid format. */
#define STANDIN_REPORT(Outcome, Text, ...) standin_##Outcome(__FILE__, __LINE__, Text, " " __VA_ARGS__)
#define STANDIN_CHECK(Outcome, Passed, Text, ...)                  \
    do {                                                           \
        if (!(Passed)) STANDIN_REPORT(Outcome, Text, __VA_ARGS__); \
    } while (0)
#define STANDIN_COMPARE(Outcome, A, Op, B, ...) \
    STANDIN_CHECK(Outcome, (A)Op(B), #A " " #Op " " #B, __VA_ARGS__)
#define STANDIN_CLOSE(A, B, Epsilon) ((A) - (B) <= (Epsilon) && (B) - (A) <= (Epsilon))

#define cr_skip_test(...)   STANDIN_REPORT(skip, "skipped", __VA_ARGS__)
#define cr_assert_fail(...) STANDIN_REPORT(abort, "fail", __VA_ARGS__)

#define cr_assert(Condition, ...)        STANDIN_CHECK(abort, Condition, #Condition, __VA_ARGS__)
#define cr_assert_not(Condition, ...)    STANDIN_CHECK(abort, !(Condition), "!(" #Condition ")", __VA_ARGS__)
#define cr_assert_null(Pointer, ...)     STANDIN_COMPARE(abort, Pointer, ==, NULL, __VA_ARGS__)
#define cr_assert_not_null(Pointer, ...) STANDIN_COMPARE(abort, Pointer, !=, NULL, __VA_ARGS__)
#define cr_assert_eq(A, B, ...)          STANDIN_COMPARE(abort, A, ==, B, __VA_ARGS__)
#define cr_assert_neq(A, B, ...)         STANDIN_COMPARE(abort, A, !=, B, __VA_ARGS__)
#define cr_assert_lt(A, B, ...)          STANDIN_COMPARE(abort, A, <, B, __VA_ARGS__)
#define cr_assert_leq(A, B, ...)         STANDIN_COMPARE(abort, A, <=, B, __VA_ARGS__)
#define cr_assert_gt(A, B, ...)          STANDIN_COMPARE(abort, A, >, B, __VA_ARGS__)
#define cr_assert_geq(A, B, ...)         STANDIN_COMPARE(abort, A, >=, B, __VA_ARGS__)
#define cr_assert_float_eq(A, B, Epsilon, ...) \
    STANDIN_CHECK(abort, STANDIN_CLOSE(A, B, Epsilon), #A " close to " #B, __VA_ARGS__)
#define cr_assert_str_eq(A, B, ...)        STANDIN_COMPARE(abort, strcmp(A, B), ==, 0, __VA_ARGS__)
#define cr_assert_arr_eq(A, B, Bytes, ...) STANDIN_COMPARE(abort, memcmp(A, B, Bytes), ==, 0, __VA_ARGS__)

#define cr_expect(Condition, ...)        STANDIN_CHECK(note, Condition, #Condition, __VA_ARGS__)
#define cr_expect_not(Condition, ...)    STANDIN_CHECK(note, !(Condition), "!(" #Condition ")", __VA_ARGS__)
#define cr_expect_eq(A, B, ...)          STANDIN_COMPARE(note, A, ==, B, __VA_ARGS__)
#define cr_expect_neq(A, B, ...)         STANDIN_COMPARE(note, A, !=, B, __VA_ARGS__)
#define cr_expect_lt(A, B, ...)          STANDIN_COMPARE(note, A, <, B, __VA_ARGS__)
#define cr_expect_leq(A, B, ...)         STANDIN_COMPARE(note, A, <=, B, __VA_ARGS__)
#define cr_expect_gt(A, B, ...)          STANDIN_COMPARE(note, A, >, B, __VA_ARGS__)
#define cr_expect_geq(A, B, ...)         STANDIN_COMPARE(note, A, >=, B, __VA_ARGS__)
#define cr_expect_null(Pointer, ...)     STANDIN_COMPARE(note, Pointer, ==, NULL, __VA_ARGS__)
#define cr_expect_not_null(Pointer, ...) STANDIN_COMPARE(note, Pointer, !=, NULL, __VA_ARGS__)
#define cr_expect_str_eq(A, B, ...)      STANDIN_COMPARE(note, strcmp(A, B), ==, 0, __VA_ARGS__)

#endif
