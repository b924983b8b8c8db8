/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <criterion/criterion.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

static struct standin_test *tests;
static struct standin_test **tests_end = &tests;
static struct standin_suite *suites;

static pthread_t main_thread;
static jmp_buf test_exit;
static const struct standin_test *current;

/* Atomic because cr_expect may fail on any thread. */
static _Atomic(unsigned) current_failures;

void standin_register_test(struct standin_test *test)
{
    *tests_end = test;
    tests_end = &test->next;
}

void standin_register_suite(struct standin_suite *suite)
{
    suite->next = suites;
    suites = suite;
}

void standin_report(enum standin_outcome outcome, const char *file, int line, const char *text,
                    const char *format, ...)
{
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (outcome != STANDIN_SKIP) current_failures++;
    fprintf(stderr, "[----] %s:%d: %s/%s: %s%s\n", file, line, current->suite, current->name, text,
            message);
    if (outcome == STANDIN_CONTINUE) return;
    if (!pthread_equal(pthread_self(), main_thread)) exit(EXIT_FAILURE);
    longjmp(test_exit, 1);
}

static const struct standin_options *suite_options(const char *name)
{
    static const struct standin_options none;
    for (const struct standin_suite *suite = suites; suite != NULL; suite = suite->next)
        if (strcmp(suite->name, name) == 0) return &suite->options;
    return &none;
}

static bool is_runnable(const struct standin_test *test)
{
    const struct standin_options *options = &test->options;
    return !options->disabled && !suite_options(test->suite)->disabled && options->signal == 0 &&
           options->exit_code == 0;
}

static void call(void (*function)(void))
{
    if (function != NULL) function();
}

/* As in Criterion, the suite's fixture surrounds the test's, and a failed test is not finished up. */
static void run_test(const struct standin_test *test)
{
    const struct standin_options *suite = suite_options(test->suite);
    if (setjmp(test_exit) != 0) return;
    call(suite->init);
    call(test->options.init);
    test->run();
    call(test->options.fini);
    call(suite->fini);
}

int main(void)
{
    unsigned tested = 0, failed = 0;
    main_thread = pthread_self();
    for (current = tests; current != NULL; current = current->next) {
        if (!is_runnable(current)) continue;
        current_failures = 0;
        run_test(current);
        tested++;
        if (current_failures == 0) continue;
        failed++;
        fprintf(stderr, "[FAIL] %s::%s\n", current->suite, current->name);
    }
    fprintf(stderr, "[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: 0\n", tested,
            tested - failed, failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
