/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "bench/harness/base.h"
#include "bench/harness/options.h"

#include <criterion/criterion.h>
#include <quern/jobs.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(bench_options, .timeout = 60);

enum { MAX_WORDS = 20, LINE_BYTES = 512 };

static const quern_bench_workload iter = {.name = "iter", .summary = "walks"};
static const quern_bench_workload destroy = {
    .name = "destroy_order", .alias = "destroy", .summary = "destroys"};
static const quern_bench_workload *const workloads[] = {&iter, &destroy};

static char line_copy[LINE_BYTES];
static char message[QUERN__BENCH_MESSAGE_BYTES];
static quern__bench_options options;

/* Parses the words of a line, separated by blanks. */
static bool parse(const char *line)
{
    static const char *const sweep[] = {"destroy_order"};
    quern_bench_suite suite = {
        .workloads = workloads, .workload_count = 2, .sweep = sweep, .sweep_count = 1};
    snprintf(line_copy, sizeof line_copy, "bench %s", line);
    char *words[MAX_WORDS + 1] = {NULL};
    int count = 0;
    for (char *word = strtok(line_copy, " "); word != NULL && count < MAX_WORDS; word = strtok(NULL, " "))
        words[count++] = word;
    return quern__bench_options_parse(&options, &suite, count, words, message);
}

static void expect_refusal(const char *line, const char *expected)
{
    cr_expect_not(parse(line), "'%s' is accepted", line);
    cr_expect(strstr(message, expected) != NULL, "'%s' gives '%s', without '%s'", line, message, expected);
}

static bool is_selected(const quern_bench_workload *workload)
{
    return quern__bench_options_select(&options, workload->name, workload->alias);
}

Test(bench_options, defaults)
{
    cr_assert(parse(""), "%s", message);
    cr_expect_eq(options.repeat_count, 9);
    cr_expect_eq(options.warm_up_count, 2);
    cr_expect_eq(options.placement_count, 3);
    cr_expect_eq(options.entity_counts.count, 0);
    cr_expect_eq(options.thread_counts.values[0], 1);
    cr_expect_eq(options.thread_counts.values[options.thread_counts.count - 1], quern_processor_count());
    cr_expect(options.json == NULL && options.csv == NULL && options.report == NULL &&
              options.load == NULL);
    cr_expect_not(options.pin || options.counters || options.frames || options.list || options.help);
    cr_expect_not(quern__bench_options_use_stdout(&options));
}

Test(bench_options, lists_of_numbers)
{
    cr_assert(parse("--threads 4,1,4,max --entities 10k,2M,7"), "%s", message);
    cr_expect_eq(options.thread_counts.values[0], 4);
    cr_expect_eq(options.thread_counts.values[1], 1);
    cr_expect_leq(options.thread_counts.count, 3u, "the second 4 is ignored");
    cr_expect_eq(options.entity_counts.count, 3);
    cr_expect_eq(options.entity_counts.values[0], 10000);
    cr_expect_eq(options.entity_counts.values[1], 2000000);
    cr_expect_eq(options.entity_counts.values[2], 7);
}

Test(bench_options, measurement_options)
{
    cr_assert(
        parse("-r 25 -s 0.5 --warm-up 0 --placements 4 --passes 5 --pin --crowd 8 --counters --frames "
              "--noise 3 --compare b"),
        "%s", message);
    cr_expect_eq(options.repeat_count, 25);
    cr_expect_eq(options.time_s, 0.5);
    cr_expect_eq(options.warm_up_count, 0);
    cr_expect_eq(options.placement_count, 4);
    cr_expect_eq(options.max_passes, 5);
    cr_expect_eq(options.crowd_count, 8);
    cr_expect(options.pin && options.counters && options.frames);
    cr_assert_float_eq(options.noise, 0.03, 1e-12);
}

Test(bench_options, passes_must_be_positive)
{
    expect_refusal("--passes 0", "--passes: '0'");
}

Test(bench_options, the_number_of_busy_threads_has_limits)
{
    expect_refusal("--crowd 0", "--crowd: '0'");
    expect_refusal("--crowd 1001", "--crowd: '1001'");
}

Test(bench_options, output_options)
{
    cr_assert(parse("--json --csv=out.csv"), "%s", message);
    cr_expect_str_eq(options.json, "-");
    cr_expect_str_eq(options.csv, "out.csv");
    cr_expect(quern__bench_options_use_stdout(&options));
    cr_assert(parse("--json=a.jsonl --report page.html"), "%s", message);
    cr_expect_not(quern__bench_options_use_stdout(&options));
    cr_expect(options.frames, "--report implies --frames");
    expect_refusal("--json --csv", "stdout");
}

Test(bench_options, traces_and_forecasts)
{
    cr_assert(parse("--trace out.json --forecast 4,64,4"), "%s", message);
    cr_expect_str_eq(options.trace, "out.json");
    cr_expect_eq(options.forecast_counts.count, 2);
    cr_expect_eq(options.forecast_counts.values[1], 64);
    expect_refusal("--forecast 257", "--forecast: '257'");
    expect_refusal("--forecast 0", "--forecast: '0'");
}

Test(bench_options, a_sweep_chooses_what_the_line_does_not)
{
    const uint32_t processors = quern_processor_count();
    cr_assert(parse("--sweep"), "%s", message);
    cr_expect_str_eq(options.report, "sweep.html");
    cr_expect_not(options.frames);
    cr_expect_eq(options.thread_counts.values[0], 1);
    cr_expect_eq(options.thread_counts.values[options.thread_counts.count - 1], processors);
    for (uint32_t i = 0; i + 1 < options.thread_counts.count; i++)
        cr_expect_eq(options.thread_counts.values[i], UINT32_C(1) << i);
    cr_expect_eq(options.forecast_counts.count, 7);
    cr_expect_eq(options.forecast_counts.values[6], 64);
    cr_expect(is_selected(&destroy));
    cr_expect_not(is_selected(&iter), "the suite names the workloads of a sweep");
    cr_assert(parse("--sweep=s.html -t 2 --forecast 3 -w iter"), "%s", message);
    cr_expect_str_eq(options.report, "s.html");
    cr_expect_eq(options.thread_counts.count, 1);
    cr_expect_eq(options.forecast_counts.count, 1);
    cr_expect(is_selected(&iter));
    expect_refusal("--sweep --report r.html", "--sweep=r.html");
    expect_refusal("--sweep --sweep", "given twice");
    expect_refusal("--sweep=x.html --json=x.html", "cannot both go to");
}

Test(bench_options, comparison_options)
{
    cr_assert(parse("--load now.jsonl --compare before.jsonl --fail-slower -w other -t 2"), "%s", message);
    cr_expect_str_eq(options.load, "now.jsonl");
    cr_expect_str_eq(options.compare, "before.jsonl");
    cr_expect(options.fail_slower);
    cr_expect(options.threads_chosen);
    expect_refusal("--fail-slower", "--fail-slower needs --compare");
    expect_refusal("--noise 3", "--noise needs --compare");
}

Test(bench_options, measurement_options_are_refused_with_load)
{
    static const char *const refused[] = {
        "--repeat 3", "--time 1",  "--warm-up 1", "--placements 1", "--passes 1",   "--pin",  "--crowd 3",
        "--frames",   "--profile", "--counters",  "--trace t.json", "--forecast 4", "--sweep"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char line[LINE_BYTES];
        snprintf(line, sizeof line, "%s --load now.jsonl", refused[i]);
        expect_refusal(line, "has no effect with --load");
    }
    cr_expect(parse("--load now.jsonl --report page.html"), "%s", message);
}

Test(bench_options, equal_paths_are_refused)
{
    expect_refusal("--load a --load b", "--load is given twice");
    expect_refusal("--json --json=b", "--json is given twice");
    expect_refusal("--json=a --csv=a", "--json and --csv cannot both go to a");
    expect_refusal("--report a --trace a", "--report and --trace cannot both go to a");
    expect_refusal("--report - --csv", "stdout");
    expect_refusal("--trace -", "--trace needs a file");
    cr_assert(parse("--report -"), "%s", message);
    cr_expect(quern__bench_options_use_stdout(&options));
}

Test(bench_options, workloads_can_be_left_out)
{
    cr_assert(parse("-x destroy"), "%s", message);
    cr_expect(is_selected(&iter));
    cr_expect_not(is_selected(&destroy));
    cr_assert(parse("-w * --exclude it*"), "%s", message);
    cr_expect_not(is_selected(&iter));
    cr_expect(is_selected(&destroy));
    expect_refusal("-x swim", "--exclude: there is no workload 'swim'");
    expect_refusal("-x *", "--exclude leaves no workload");
}

Test(bench_options, workloads_by_name_pattern_and_alias)
{
    cr_assert(parse(""));
    cr_expect(is_selected(&destroy));
    cr_assert(parse("-w it*"), "%s", message);
    cr_expect(is_selected(&iter));
    cr_expect_not(is_selected(&destroy));
    cr_assert(parse("-w iter,destroy"), "%s", message);
    cr_expect(is_selected(&destroy));
    expect_refusal("-w swim", "there is no workload 'swim'");
    expect_refusal("-w dsetroy",
                   "there is no workload 'dsetroy'; --list shows them; did you mean 'destroy'?");
}

Test(bench_options, wrong_words_are_quoted)
{
    expect_refusal("--threads 0", "--threads: '0'");
    expect_refusal("--threads 1,,2", "--threads: ''");
    expect_refusal("--threads 257", "--threads: '257'");
    expect_refusal("--entities 5x", "--entities: '5x'");
    expect_refusal("--entities 9999M", "--entities: '9999M'");
    expect_refusal("--repeat -1", "--repeat: '-1'");
    expect_refusal("--repeat 1001", "--repeat: '1001'");
    expect_refusal("--placements 0", "--placements: '0'");
    expect_refusal("--time soon", "--time: 'soon'");
    expect_refusal("--time nan", "--time: 'nan'");
    expect_refusal("--noise -2", "--noise: '-2'");
    expect_refusal("--fast", "'--fast' is not an option");
    expect_refusal("--repaet=3", "'--repaet=3' is not an option; did you mean 'repeat'?");
    expect_refusal("-q", "'-q' is not an option");
    expect_refusal("iter", "'iter' is not an option");
    expect_refusal("--repeat", "'--repeat' needs an argument");
    expect_refusal("--pin=3", "--pin takes no argument");
    expect_refusal("--pi=3", "--pin takes no argument");
    expect_refusal("--rep 3", "'--rep' is ambiguous: write --repeat or --report");
    expect_refusal("-lq", "'-q' is not an option");
    expect_refusal("--entities 5G", "k and M");
    expect_refusal("-j out.jsonl", "--json=out.jsonl");
    expect_refusal("--csv out.csv", "--csv=out.csv");
}

Test(bench_options, long_lists_are_refused)
{
    char line[LINE_BYTES] = "--threads 1";
    for (int i = 2; i <= QUERN__BENCH_MAX_LIST + 1; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), ",%d", i);
    expect_refusal(line, "more than 64 numbers");
}

/* ---------------------------------------------------------------------------------------------- output */

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
