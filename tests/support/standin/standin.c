/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <criterion/criterion.h>

#include <stdarg.h>
#include <stdatomic.h>

#if defined(_WIN32)
#include <process.h>
#else
#include <sys/wait.h>
#include <unistd.h>
#endif

static struct standin_test *tests;
static struct standin_test **tests_end = &tests;
static struct standin_suite *suites;

/* The test that runs in this process, and whether it has failed. Atomic because cr_expect may fail on
 * any thread. */
static const struct standin_test *current;
static atomic_bool current_failed;

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

static void report(const char *file, int line, const char *text, const char *format, va_list arguments)
{
    char message[1024];
    vsnprintf(message, sizeof message, format, arguments);
    fprintf(stderr, "[----] %s:%d: %s::%s: %s%s\n", file, line, current->suite, current->name, text,
            message);
}

void standin_note(const char *file, int line, const char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(file, line, text, format, arguments);
    va_end(arguments);
    current_failed = true;
}

void standin_abort(const char *file, int line, const char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(file, line, text, format, arguments);
    va_end(arguments);
    exit(EXIT_FAILURE);
}

void standin_skip(const char *file, int line, const char *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report(file, line, text, format, arguments);
    va_end(arguments);
    exit(EXIT_SUCCESS);
}

static const struct standin_options *suite_options(const char *name)
{
    static const struct standin_options none;
    for (const struct standin_suite *suite = suites; suite != NULL; suite = suite->next)
        if (strcmp(suite->name, name) == 0) return &suite->options;
    return &none;
}

static void call(void (*function)(void))
{
    if (function != NULL) function();
}

/* As in Criterion, the suite's fixture encloses that of the test, and an aborted test skips the end of
 * its fixtures. */
static void run_here(const struct standin_test *test)
{
    const struct standin_options *suite = suite_options(test->suite);
    current = test;
    call(suite->init);
    call(test->options.init);
    test->run();
    call(test->options.fini);
    call(suite->fini);
    exit(current_failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

#if defined(_WIN32)

static const char *program;
static unsigned unstarted; /* tests that need signals, which Windows lacks */

/* Windows has no fork(): starts this program again, with the number of the test. */
static bool passes(const struct standin_test *test, unsigned number)
{
    char text[16];
    if (test->options.signal != 0) {
        unstarted++;
        return true;
    }
    snprintf(text, sizeof text, "%u", number);
    return _spawnl(_P_WAIT, program, program, "--number", text, NULL) == test->options.exit_code;
}

/* Returns the number of the test that this process was started for; 0 if it is the first process. */
static unsigned number_of(int argument_count, char **arguments)
{
    program = arguments[0];
    const bool is_child = argument_count == 3 && strcmp(arguments[1], "--number") == 0;
    return is_child ? (unsigned)strtoul(arguments[2], NULL, 10) : 0;
}

#else

static const unsigned unstarted = 0;

/* Runs a test in a child process and returns whether it passed. Under the thread sanitizer only a
 * process without threads may fork; the child may start threads. */
static bool passes(const struct standin_test *test, unsigned number)
{
    (void)number;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) run_here(test);
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return false;
    if (WIFSIGNALED(status)) return WTERMSIG(status) == test->options.signal;
    return test->options.signal == 0 && WEXITSTATUS(status) == test->options.exit_code;
}

static unsigned number_of(int argument_count, char **arguments)
{
    (void)argument_count;
    (void)arguments;
    return 0;
}

#endif

int main(int argument_count, char **arguments)
{
    const unsigned wanted = number_of(argument_count, arguments);
    unsigned number = 0, tested = 0, failed = 0;
    for (const struct standin_test *test = tests; test != NULL; test = test->next) {
        if (test->options.disabled || suite_options(test->suite)->disabled) continue;
        number++;
        if (number == wanted) run_here(test);
        if (wanted != 0) continue;
        tested++;
        if (passes(test, number)) continue;
        failed++;
        fprintf(stderr, "[FAIL] %s::%s\n", test->suite, test->name);
    }
    tested -= unstarted;
    if (unstarted > 0) fprintf(stderr, "[SKIP] %u tests that end by a signal\n", unstarted);
    fprintf(stderr, "[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: 0\n", tested,
            tested - failed, failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
