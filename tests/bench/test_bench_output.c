/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/base.h"

#include <criterion/criterion.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATH_BYTES = 128 };

static char folder[PATH_BYTES];
static char path[PATH_BYTES + 16];
static char partial[PATH_BYTES + 32];
static char link_path[PATH_BYTES + 16];

static void write_text(const char *to, const char *text)
{
    FILE *file = fopen(to, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static void set_up(void)
{
    /* Outputs leave ignored signals ignored, and a script starts "./run test &" with SIGINT ignored. */
    signal(SIGINT, SIG_DFL);
    snprintf(folder, sizeof folder, "%s/quern_bench_output_XXXXXX", P_tmpdir);
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/results", folder);
    snprintf(partial, sizeof partial, "%s.partial", path);
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    write_text(path, "old");
}

static void tear_down(void)
{
    unlink(link_path);
    unlink(partial);
    unlink(path);
    rmdir(folder);
}

TestSuite(bench_output, .timeout = 60, .init = set_up, .fini = tear_down);

static void expect_text(const char *of, const char *expected)
{
    char *text = quern__bench_read_file(of);
    cr_assert_not_null(text);
    cr_expect_str_eq(text, expected);
    free(text);
}

static bool exists(const char *name)
{
    return access(name, F_OK) == 0;
}

Test(bench_output, close_replaces_old_file)
{
    quern__bench_output output;
    cr_assert(quern__bench_output_open(&output, path, true));
    fputs("new", output.file);
    fflush(output.file);
    expect_text(path, "old");
    cr_expect(quern__bench_output_close(&output, true));
    expect_text(path, "new");
    cr_expect_not(exists(partial));
    unlink(path);
    cr_assert(quern__bench_output_open(&output, path, true));
    fputs("first", output.file);
    cr_expect(quern__bench_output_close(&output, true));
    expect_text(path, "first");
}

Test(bench_output, close_without_keep_leaves_old_file)
{
    quern__bench_output output;
    cr_assert(quern__bench_output_open(&output, path, false));
    fputs("new", output.file);
    cr_expect(quern__bench_output_close(&output, false));
    expect_text(path, "old");
    cr_expect_not(exists(partial));
}

Test(bench_output, follows_links_and_keeps_the_mode)
{
    cr_assert_eq(symlink(path, link_path), 0);
    cr_assert_eq(chmod(path, 0640), 0);
    quern__bench_output output;
    cr_assert(quern__bench_output_open(&output, link_path, true));
    fputs("new", output.file);
    cr_expect(quern__bench_output_close(&output, true));
    expect_text(path, "new");
    struct stat status;
    cr_assert_eq(lstat(link_path, &status), 0);
    cr_expect(S_ISLNK(status.st_mode));
    cr_assert_eq(stat(path, &status), 0);
    cr_expect_eq(status.st_mode & 07777, 0640);
}

Test(bench_output, one_file_under_two_names_is_refused)
{
    cr_assert_eq(symlink(path, link_path), 0);
    quern__bench_output first;
    quern__bench_output second;
    cr_assert(quern__bench_output_open(&first, path, true));
    cr_expect_not(quern__bench_output_open(&second, link_path, true));
    cr_expect(quern__bench_output_close(&second, true), "closing an output that is not open succeeds");
    cr_expect(quern__bench_output_close(&first, false));
    expect_text(path, "old");
}

Test(bench_output, special_files_are_written_directly)
{
    quern__bench_output output;
    cr_expect_not(quern__bench_output_open(&output, folder, true));
    cr_assert(quern__bench_output_open(&output, "/dev/null", true));
    cr_expect_str_eq(quern__bench_output_path(&output), "/dev/null");
    cr_expect(quern__bench_output_close(&output, true));
    cr_expect(quern__bench_output_open(&output, NULL, true));
    cr_expect_null(output.file);
}

/* Returns the status of a process that opens an output, writes a line, and calls `end`. */
static int status_of_process(bool has_lines, void (*end)(void))
{
    fflush(NULL);
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        quern__bench_output output;
        if (!quern__bench_output_open(&output, path, has_lines)) _exit(77);
        fputs("new", output.file);
        fflush(output.file);
        end();
        _exit(78);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

static void end_by_signal(void)
{
    raise(SIGINT);
}

static void end_by_message(void)
{
    quern_bench_die("%s", "a subject failed");
}

Test(bench_output, signal_keeps_old_file_and_partial_lines)
{
    const int status = status_of_process(true, end_by_signal);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT, "%d", status);
    expect_text(path, "old");
    expect_text(partial, "new");
}

Test(bench_output, signal_removes_partial_page)
{
    const int status = status_of_process(false, end_by_signal);
    cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT, "%d", status);
    expect_text(path, "old");
    cr_expect_not(exists(partial));
}

Test(bench_output, failing_subject_keeps_old_file_and_partial_lines)
{
    const int status = status_of_process(true, end_by_message);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == QUERN_BENCH_EXIT_FAILED, "%d", status);
    expect_text(path, "old");
    expect_text(partial, "new");
}

Test(bench_output, last_close_restores_signal_actions)
{
    struct sigaction action;
    quern__bench_output output;
    cr_assert(quern__bench_output_open(&output, path, true));
    sigaction(SIGINT, NULL, &action);
    cr_expect_neq(action.sa_handler, SIG_DFL);
    cr_expect(quern__bench_output_close(&output, true));
    sigaction(SIGINT, NULL, &action);
    cr_expect_eq(action.sa_handler, SIG_DFL);
}
