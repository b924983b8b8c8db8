/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Whether the stand-in for Criterion finds failed tests. Tests whose names begin with fails_ must fail, those with skips_
 * must be skipped, and all others must pass. */

#define STANDIN_HANG_SECONDS 1
#define main                 run_tests
#include "tests/support/standin/standin.c"
#undef main

#include <pthread.h>
#include <signal.h>

/* ---------------------------------------------------------------------------------------- assertions */

Test(standin, passes)
{
    cr_assert(true);
    cr_expect(true);
}

Test(standin, fails_at_an_assertion)
{
    cr_assert(false);
}

Test(standin, fails_at_an_expectation)
{
    cr_expect_eq(1, 2);
}

static void *run_assert(void *nothing)
{
    cr_assert(false);
    return nothing;
}

static void *run_expect(void *nothing)
{
    cr_expect(false);
    return nothing;
}

static void run_thread(void *(*function)(void *))
{
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, function, NULL), 0);
    pthread_join(thread, NULL);
}

Test(standin, fails_at_an_assertion_on_a_thread)
{
    run_thread(run_assert);
}

Test(standin, fails_at_an_expectation_on_a_thread)
{
    run_thread(run_expect);
}

static void fixture(void)
{
    cr_assert(false);
}

Test(standin, fails_in_the_first_fixture, .init = fixture) {}

Test(standin, fails_in_the_last_fixture, .fini = fixture) {}

/* ---------------------------------------------------------------------------------- ends of processes */

Test(standin, fails_by_a_signal)
{
    raise(SIGKILL);
}

Test(standin, fails_if_it_aborts)
{
    abort();
}

Test(standin, passes_by_its_signal, .signal = SIGKILL)
{
    raise(SIGKILL);
}

Test(standin, fails_without_its_signal, .signal = SIGKILL) {}

Test(standin, fails_by_another_signal, .signal = SIGKILL)
{
    raise(SIGTERM);
}

Test(standin, fails_before_its_signal, .signal = SIGKILL)
{
    cr_expect(false);
    raise(SIGKILL);
}

Test(standin, passes_by_its_exit_code, .exit_code = 3)
{
    exit(3);
}

Test(standin, fails_without_its_exit_code, .exit_code = 3) {}

Test(standin, fails_before_its_exit_code, .exit_code = 3)
{
    cr_expect(false);
    _exit(3);
}

Test(standin, fails_at_an_assertion_with_its_exit_code, .exit_code = EXIT_FAILURE)
{
    cr_assert(false);
}

Test(standin, fails_if_the_process_exits_before_the_test_ends)
{
    exit(EXIT_SUCCESS);
}

Test(standin, fails_if_the_process_exits_at_once)
{
    _exit(EXIT_SUCCESS);
}

Test(standin, fails_at_an_expectation_before_it_exits)
{
    cr_expect(false);
    exit(EXIT_SUCCESS);
}

Test(standin, fails_if_it_hangs)
{
    for (;;)
        pause();
}

Test(standin, passes_if_it_may_last, .timeout = 60)
{
    sleep(2);
}

/* --------------------------------------------------------------------------------------------- skips */

Test(standin, skips)
{
    cr_skip_test("for a reason");
}

Test(standin, fails_before_it_skips)
{
    cr_expect(false);
    cr_skip_test("after a failure");
}

/* The code of skipped tests. */
Test(standin, fails_by_an_exit_code_of_its_own)
{
    exit(77);
}

/* Neither fails nor counts. */
Test(standin, passes_if_it_is_disabled, .disabled = true)
{
    cr_assert(false);
}

TestSuite(disabled, .disabled = true);

Test(disabled, passes)
{
    cr_assert(false);
}

/* ---------------------------------------------------------------------------------------- sanitizers */

#if defined(__SANITIZE_ADDRESS__)

Test(standin, fails_if_it_leaks)
{
    char *volatile lost = malloc(10);
    lost[0] = 1;
    lost = NULL;
}

Test(standin, fails_if_it_leaks_and_skips)
{
    char *volatile lost = malloc(10);
    lost[0] = 1;
    lost = NULL;
    cr_skip_test("after a leak");
}

Test(standin, fails_if_it_writes_after_the_end)
{
    volatile char *bytes = malloc(10);
    bytes[10] = 1;
    free((void *)bytes);
}

Test(standin, fails_if_it_overflows)
{
    volatile int most = 2147483647;
    most = most + 1;
}

#endif

/* ---------------------------------------------------------------------------------------------- main */

/* Whether the report has the line "[MARK] SUITE::NAME". */
static bool has_line(const char *text, const char *mark, const char *name)
{
    char line[256];
    snprintf(line, sizeof line, "[%s] %s\n", mark, name);
    return strstr(text, line) != NULL;
}

/* What the names of the tests promise, from the registered tests, and the totals in the last line. */
static unsigned count_wrong(const char *text, const struct standin_test *test)
{
    unsigned wrong = 0, tested = 0, failed = 0;
    for (; test != NULL; test = test->next) {
        const bool fails = strncmp(test->name, "fails", 5) == 0,
                   skips = strncmp(test->name, "skips", 5) == 0;
        char name[200];
        snprintf(name, sizeof name, "%s::%s", test->suite, test->name);
        const bool is_disabled = test->options.disabled || strcmp(test->suite, "disabled") == 0;
        tested += !skips && !is_disabled;
        failed += fails;
        if (has_line(text, "FAIL", name) == fails && has_line(text, "SKIP", name) == skips) continue;
        printf("%s has another outcome than its name says\n", name);
        wrong++;
    }
    char totals[128];
    snprintf(totals, sizeof totals, "Tested: %u | Passing: %u | Failing: %u |", tested, tested - failed,
             failed);
    if (strstr(text, totals) != NULL) return wrong;
    printf("the last line does not have '%s'\n", totals);
    return wrong + 1;
}

int main(int argument_count, char **arguments)
{
    static char text[1 << 20];
    FILE *file = tmpfile();
    const int console = dup(STDERR_FILENO);
    if (file == NULL || console < 0 || dup2(fileno(file), STDERR_FILENO) < 0) return EXIT_FAILURE;
    const int exit_code = run_tests(argument_count, arguments);
    dup2(console, STDERR_FILENO);
    close(console);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    unsigned wrong = count_wrong(text, tests);
    if (exit_code != EXIT_FAILURE) {
        printf("the exit code of a program with failed tests is %d\n", exit_code);
        wrong++;
    }
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
