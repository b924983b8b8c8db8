/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <criterion/criterion.h>

#include <stdarg.h>
#include <stdatomic.h>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

static struct standin_test *tests;
static struct standin_test **tests_end = &tests;
static struct standin_suite *suites;

/* What a test has reported so far. Members are atomic because assertions may fail on any thread. */
struct outcome {
    atomic_bool failed;
    atomic_bool skipped;
    atomic_bool ended; /* after the fixtures */
};

/* The test that runs in this process, and its outcome. Where tests are forked, they share the outcome with the parent,
 * which therefore learns of a failed assertion even if the test then ends by a call of exit, by a signal, or while
 * another thread ends it with success. */
static const struct standin_test *current;
static struct outcome own_outcome, *outcome = &own_outcome;

/* Exit code of a skipped test, and the number of skipped tests: those that call cr_skip_test, and on Windows those that
 * need signals. ./run counts the lines that begin with [SKIP], as Criterion prints them. */
enum { SKIPPED = 77 };
static unsigned skipped;

/* A forked test is ended after this time, which is a minute before ctest ends the program without the test's name. The
 * limits of the tests themselves are those of Criterion's faster builds. */
#if !defined(STANDIN_HANG_SECONDS)
#define STANDIN_HANG_SECONDS 540
#endif

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
    outcome->failed = true;
    va_list arguments;
    va_start(arguments, format);
    report(file, line, text, format, arguments);
    va_end(arguments);
}

void standin_abort(const char *file, int line, const char *text, const char *format, ...)
{
    outcome->failed = true;
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
    outcome->skipped = true;
    exit(outcome->failed ? EXIT_FAILURE : SKIPPED);
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
    outcome->ended = true;
    exit(outcome->failed ? EXIT_FAILURE : EXIT_SUCCESS);
}

static bool skip(const struct standin_test *test)
{
    fprintf(stderr, "[SKIP] %s::%s\n", test->suite, test->name);
    skipped++;
    return true;
}

#if defined(_WIN32)

/* Starts this program again, with the number of the test, and returns its exit code. A process that cannot be started
 * is tried again: under Wine, 2 of 1100 starts failed while all processors were busy. */
static DWORD run_process(unsigned number)
{
    enum { TRIES = 3, PAUSE_MS = 1000 };
    char path[MAX_PATH + 1] = "", command[MAX_PATH + 32];
    GetModuleFileNameA(NULL, path, MAX_PATH);
    snprintf(command, sizeof command, "\"%s\" --number %u", path, number);
    STARTUPINFOA startup = {.cb = sizeof startup};
    PROCESS_INFORMATION child;
    for (int i = 0; !CreateProcessA(path, command, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &child);
         i++) {
        fprintf(stderr, "[----] the process of a test could not be started: error %lu\n", GetLastError());
        if (i + 1 == TRIES) return EXIT_FAILURE;
        Sleep(PAUSE_MS);
    }
    DWORD exit_code = EXIT_FAILURE;
    WaitForSingleObject(child.hProcess, INFINITE);
    GetExitCodeProcess(child.hProcess, &exit_code);
    CloseHandle(child.hThread);
    CloseHandle(child.hProcess);
    return exit_code;
}

/* Windows has no fork(), so each test runs in a new process of this program. */
static bool passes(const struct standin_test *test, unsigned number)
{
    if (test->options.signal != 0) return skip(test);
    const DWORD exit_code = run_process(number);
    if ((int)exit_code == test->options.exit_code) return true;
    if (exit_code == SKIPPED) return skip(test);
    /* A failed assertion has printed a message and ends with EXIT_FAILURE. */
    if (exit_code != EXIT_FAILURE)
        fprintf(stderr, "[----] the process of the test ended with code 0x%lx\n", exit_code);
    return false;
}

/* Returns the number of the test that this process was started for; 0 if it is the first process. */
static unsigned number_of(int argument_count, char **arguments)
{
    const bool is_child = argument_count == 3 && strcmp(arguments[1], "--number") == 0;
    return is_child ? (unsigned)strtoul(arguments[2], NULL, 10) : 0;
}

#else

static void share_outcome(void)
{
    outcome = mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (outcome != MAP_FAILED) return;
    perror("[----] no memory could be shared with tests");
    exit(EXIT_FAILURE);
}

/* Whether the test may take longer than any test that hangs is given. */
static bool may_last(const struct standin_test *test)
{
    const double suite_s = suite_options(test->suite)->timeout;
    return (test->options.timeout != 0 ? test->options.timeout : suite_s) > STANDIN_HANG_SECONDS;
}

/* Runs a test in a child process and returns whether it passed. Under the thread sanitizer only a
 * process without threads may fork; the child may start threads. */
static bool passes(const struct standin_test *test, unsigned number)
{
    (void)number;
    fflush(NULL);
    if (outcome == &own_outcome) share_outcome();
    *outcome = (struct outcome){0};
    pid_t child = fork();
    if (child == 0) {
        alarm(may_last(test) ? 0 : STANDIN_HANG_SECONDS);
        run_here(test);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return false;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        fprintf(stderr, "[----] the test was ended after %d s\n", STANDIN_HANG_SECONDS);
    if (outcome->failed) return false;
    if (WIFSIGNALED(status)) return WTERMSIG(status) == test->options.signal;
    if (test->options.signal != 0) return false;
    const int exit_code = WEXITSTATUS(status);
    if (outcome->skipped && exit_code == SKIPPED) return skip(test);
    if (exit_code != test->options.exit_code) return false;
    /* A test that is to exit does so before its end. Any other was ended by code that it tests. */
    if (outcome->ended || exit_code != EXIT_SUCCESS) return true;
    fprintf(stderr, "[----] the process of the test ended before the test\n");
    return false;
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
    tested -= skipped;
    fprintf(stderr, "[====] Synthesis: Tested: %u | Passing: %u | Failing: %u | Crashing: 0\n", tested,
            tested - failed, failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
