/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Tests the whole harness by its public call, with small workloads. */
#include "bench/harness/json.h"
#include "bench/harness/measure.h"

#include <quern/bench.h>

#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 16, PATH_BYTES = 64 };

/* ----------------------------------------------------------------------------------------- workloads */

/* The calls that the harness has made to one subject. */
typedef struct subject_diary {
    quern_bench_case scene;
    uint32_t open_count, enter_count, leave_count, checksum_count, close_count;
    uint64_t pass_count;
    bool inside;
    bool wrong_order;
} subject_diary;

static subject_diary diaries[2];
static uint32_t close_count_of_all;
static uint64_t excess; /* error of the second subject's checksum */

static void *open_first(const quern_bench_case *scene)
{
    diaries[0] = (subject_diary){.scene = *scene, .open_count = 1};
    return &diaries[0];
}

static void *open_second(const quern_bench_case *scene)
{
    diaries[1] = (subject_diary){.scene = *scene, .open_count = 1};
    return &diaries[1];
}

static void enter(void *state)
{
    subject_diary *diary = state;
    diary->wrong_order |= diary->inside;
    diary->inside = true;
    diary->enter_count++;
}

static void work(void *state, uint32_t pass_count)
{
    subject_diary *diary = state;
    diary->wrong_order |= !diary->inside;
    diary->pass_count += pass_count;
    for (volatile uint32_t i = 0; i < 1000 * pass_count; i++) {
    }
}

static void leave(void *state)
{
    subject_diary *diary = state;
    diary->wrong_order |= !diary->inside;
    diary->inside = false;
    diary->leave_count++;
}

static uint64_t checksum(void *state)
{
    subject_diary *diary = state;
    diary->wrong_order |= !diary->inside;
    diary->checksum_count++;
    return diary->pass_count;
}

static uint64_t checksum_with_excess(void *state)
{
    return checksum(state) + excess;
}

static void close_diary(void *state)
{
    subject_diary *diary = state;
    diary->close_count++;
    close_count_of_all++;
}

static uint32_t three_passes(uint32_t entity_count)
{
    return 3;
}

#define SUBJECTS                                                                        \
    {                                                                                   \
        {open_first, enter, work, leave, checksum, close_diary, NULL},                  \
            {open_second, enter, work, leave, checksum_with_excess, close_diary, NULL}, \
    }

static const quern_bench_workload plain = {.name = "plain",
                                           .alias = "simple",
                                           .summary = "passes in one run",
                                           .entity_counts = {10, 20},
                                           .pass_count = three_passes,
                                           .subjects = SUBJECTS};
static const quern_bench_workload fresh = {.name = "fresh",
                                           .summary = "a round for each pass",
                                           .entity_counts = {10},
                                           .single_thread = true,
                                           .fresh = true,
                                           .frames = true,
                                           .pass_count = three_passes,
                                           .subjects = SUBJECTS};
static const quern_bench_workload found = {.name = "found",
                                           .summary = "as many passes as are found out",
                                           .frames = true,
                                           .fixed_size = true,
                                           .entity_counts = {10},
                                           .subjects = SUBJECTS};

static void *open_nothing(const quern_bench_case *scene)
{
    return quern_bench_allocate(scene->entity_count, 1);
}

/* Allocates a megabyte and writes to it, so that it becomes resident. */
static void take_memory(void *state, uint32_t pass_count)
{
    static volatile char memory[1 << 20];
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = 1;
}

static uint64_t per_megabyte(uint32_t entity_count)
{
    return 1 << 20;
}

static const quern_bench_workload heavy = {
    .name = "heavy",
    .summary = "memory",
    .unit = "byte",
    .entity_counts = {10},
    .footprint = true,
    .operation_count = per_megabyte,
    .subjects = {{open_nothing, NULL, take_memory, NULL, NULL, free, NULL}},
    .subject_names = {"static"}};

static const quern_bench_workload *const workloads[] = {&plain, &fresh, &found, &heavy};

/* ----------------------------------------------------------------------------------------- the calls */

static char json_path[PATH_BYTES];
static char other_path[PATH_BYTES];

static void make_path(char path[PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s/quern_bench_test_XXXXXX", P_tmpdir);
    const int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
}

static void set_up(void)
{
    excess = 0;
    close_count_of_all = 0;
    make_path(json_path);
    make_path(other_path);
}

static void tear_down(void)
{
    unlink(json_path);
    unlink(other_path);
}

TestSuite(bench_main, .timeout = 120, .init = set_up, .fini = tear_down);

/* Calls quern_bench_main with the words of a line. @ means the path of the JSON file, % the path of the
 * other file. Returns the exit status. */
static int call(const char *line)
{
    char copy[256];
    size_t length = 0;
    for (; *line != '\0'; line++) {
        const char *path = *line == '@' ? json_path : *line == '%' ? other_path : NULL;
        length += (size_t)snprintf(copy + length, sizeof copy - length, path != NULL ? "%s" : "%.1s",
                                   path != NULL ? path : line);
    }
    char *words[MAX_WORDS + 2] = {"bench"};
    int count = 1;
    for (char *word = strtok(copy, " "); word != NULL && count <= MAX_WORDS; word = strtok(NULL, " "))
        words[count++] = word;
    quern_bench_suite suite = {.workloads = workloads,
                               .workload_count = sizeof workloads / sizeof workloads[0]};
    return quern_bench_main(&suite, count, words);
}

static quern__bench_results read_results(const char *path)
{
    quern__bench_results results;
    char message[QUERN__BENCH_JSON_MESSAGE_BYTES];
    char *text = quern__bench_read_file(path);
    cr_assert_not_null(text);
    cr_assert(quern__bench_json_read(text, &results, message), "%s: %s", message, text);
    free(text);
    return results;
}

static char *read_text(const char *path)
{
    char *text = quern__bench_read_file(path);
    cr_assert_not_null(text);
    return text;
}

static void expect_diaries_agree(uint64_t pass_count, uint32_t round_count)
{
    for (int i = 0; i < 2; i++) {
        const subject_diary *diary = &diaries[i];
        cr_expect_eq(diary->pass_count, pass_count, "%d: %lu passes", i, (unsigned long)diary->pass_count);
        cr_expect_eq(diary->enter_count, round_count, "%d: %u rounds", i, diary->enter_count);
        cr_expect_eq(diary->leave_count, round_count);
        cr_expect(diary->checksum_count == 1 && diary->close_count == 1 && diary->open_count == 1);
        cr_expect_not(diary->wrong_order);
    }
}

/* ------------------------------------------------------------------------------------------ measuring */

Test(bench_main, a_sample_is_one_round_of_passes)
{
    cr_expect_eq(call("-w plain -t 1 -n 7 -r 5 --warm-up 2 --placements 1 --json=@"), QUERN_BENCH_EXIT_OK);
    expect_diaries_agree(3 * (5 + 2), 5 + 2);
    cr_expect_eq(diaries[1].scene.entity_count, 7);
    quern__bench_results results = read_results(json_path);
    cr_expect_eq(results.record_count, 2);
    cr_expect_eq(results.records[1].sample_count, 5);
    cr_expect_eq(results.records[1].checksum, 21);
    cr_expect_str_eq(results.records[1].control, "control");
    cr_expect_str_eq(results.records[1].unit, "pass");
    cr_expect_gt(results.records[1].summary.min, 0);
    quern__bench_results_close(&results);
}

/* After the call, the diaries are those of the third placement, which has a third of the samples. */
Test(bench_main, a_case_is_set_up_several_times)
{
    cr_expect_eq(call("-w plain -t 1 -n 7 -r 7 --warm-up 1 --placements 3 --json=@"), QUERN_BENCH_EXIT_OK);
    expect_diaries_agree(3 * (3 + 1), 3 + 1);
    cr_expect_eq(close_count_of_all, 2 * 3);
    quern__bench_results results = read_results(json_path);
    cr_expect_eq(results.records[0].sample_count, 7);
    cr_expect_eq(results.records[1].sample_count, 7);
    quern__bench_results_close(&results);
    cr_expect_eq(call("-w plain -t 1 -n 7 -r 2 --placements 3 --json=@"), QUERN_BENCH_EXIT_OK);
    cr_expect_eq(close_count_of_all, 2 * 3 + 2 * 2, "no placement without a sample");
}

/* Returns a wrong checksum in one placement, which is not the last. */
static uint64_t checksum_once_wrong(void *state)
{
    return checksum(state) + (close_count_of_all == 0 ? 1 : 0);
}

Test(bench_main, a_wrong_checksum_of_any_placement_fails)
{
    quern_bench_workload sometimes = plain;
    sometimes.subjects[1].checksum = checksum_once_wrong;
    const quern_bench_workload *list[] = {&sometimes};
    quern_bench_suite suite = {.workloads = list, .workload_count = 1};
    char options[][16] = {"bench", "--threads=1", "--repeat=3"};
    char *words[] = {options[0], options[1], options[2], NULL};
    cr_expect_eq(quern_bench_main(&suite, 3, words), QUERN_BENCH_EXIT_FAILED);
}

Test(bench_main, a_fresh_workload_has_a_round_for_each_pass)
{
    cr_expect_eq(call("-w fresh -t 1 -r 4 --warm-up 1 --placements 1 --json=@"), QUERN_BENCH_EXIT_OK);
    expect_diaries_agree(3 * 5, 3 * 5);
}

Test(bench_main, chosen_pass_count_is_equal_for_all_subjects)
{
    cr_expect_eq(call("-w found -t 1 -r 3 --warm-up 0 --json=@"), QUERN_BENCH_EXIT_OK);
    cr_expect_eq(diaries[0].pass_count, diaries[1].pass_count);
    cr_expect_gt(diaries[0].pass_count, 3u);
    cr_expect_not(diaries[0].wrong_order || diaries[1].wrong_order);
}

Test(bench_main, passes_may_be_limited)
{
    cr_expect_eq(call("-w plain -t 1 -r 4 --warm-up 1 --placements 1 --passes 2 --json=@"),
                 QUERN_BENCH_EXIT_OK);
    expect_diaries_agree(2 * 5, 5);
    cr_expect_eq(call("-w fresh -t 1 -r 4 --warm-up 1 --placements 1 --passes 2 --json=@"),
                 QUERN_BENCH_EXIT_OK);
    expect_diaries_agree(2 * 5, 2 * 5);
    cr_expect_eq(call("-w found -t 1 -r 3 --warm-up 0 --placements 1 --passes 2 --json=@"),
                 QUERN_BENCH_EXIT_OK);
    cr_expect_eq(diaries[0].pass_count, 1u + 2u + 3u * 2u,
                 "one trial with one pass, one with two, then three samples");
}

Test(bench_main, option_frames_times_single_frames)
{
    cr_expect_eq(call("-w found -t 1 -r 3 --frames --json=@"), QUERN_BENCH_EXIT_OK);
    quern__bench_results results = read_results(json_path);
    cr_expect_geq(results.records[0].frame_count, 20u);
    cr_expect_eq(results.records[0].frame_count, results.records[1].frame_count);
    cr_expect_eq(results.records[0].checksum, results.records[1].checksum);
    quern__bench_results_close(&results);
}

Test(bench_main, frames_of_a_fresh_workload_are_the_passes_of_its_samples)
{
    cr_expect_eq(call("-w fresh -t 1 -r 4 --warm-up 1 --placements 1 --frames --json=@"),
                 QUERN_BENCH_EXIT_OK);
    expect_diaries_agree(3 * 5, 3 * 5);
    quern__bench_results results = read_results(json_path);
    cr_expect_eq(results.records[0].frame_count, 3u * 4u);
    cr_expect_eq(results.records[1].frame_count, 3u * 4u);
    quern__bench_results_close(&results);
}

/* Without quern_bench_keep, an optimising compiler would know the value. */
Test(bench_main, keep_makes_compiler_reload_memory)
{
    uint32_t value = 1;
    quern_bench_keep(&value);
    cr_expect_eq(value, 1);
    cr_expect_eq(__builtin_constant_p(value), 0);
}

Test(bench_main, samples_below_clock_resolution_are_too_short)
{
    cr_expect(quern__bench_is_too_short(20, 1));
    cr_expect(quern__bench_is_too_short(5000, 100), "each round has 50 ns");
    cr_expect_not(quern__bench_is_too_short(5000000, 1));
    cr_expect_not(quern__bench_is_too_short(5000000, 100));
}

Test(bench_main, option_time_takes_more_samples)
{
    cr_expect_eq(call("-w plain -t 1 -n 7 -r 2 --time 0.05 --json=@"), QUERN_BENCH_EXIT_OK);
    quern__bench_results results = read_results(json_path);
    cr_expect_gt(results.records[0].sample_count, 2u);
    cr_expect_eq(results.records[0].sample_count, results.records[1].sample_count);
    quern__bench_results_close(&results);
}

Test(bench_main, each_size_and_thread_count_is_a_case)
{
    cr_expect_eq(call("-w plain,fresh,found -t 1,2 -r 1 --json=@"), QUERN_BENCH_EXIT_OK);
    quern__bench_results results = read_results(json_path);
    cr_expect_eq(results.record_count, 2u * (2 * 2 + 1 + 2),
                 "plain has two sizes, fresh runs on one thread");
    quern__bench_results_close(&results);
}

Test(bench_main, chosen_sizes_do_not_apply_to_fixed_ones)
{
    cr_expect_eq(call("-w plain,found -t 1 -n 5,6,7 -r 1 --json=@"), QUERN_BENCH_EXIT_OK);
    quern__bench_results results = read_results(json_path);
    cr_expect_eq(results.record_count, 2u * (3 + 1));
    cr_expect_eq(results.records[results.record_count - 1].entity_count, 10);
    quern__bench_results_close(&results);
}

Test(bench_main, memory_is_measured_in_separate_process)
{
    cr_expect_eq(call("-w heavy -t 1 --json=@"), QUERN_BENCH_EXIT_OK);
    quern__bench_results results = read_results(json_path);
    cr_expect(results.records[0].is_bytes);
    cr_expect_str_eq(results.records[0].subject, "static");
    cr_expect(results.records[0].summary.median > 0.9 && results.records[0].summary.median < 2, "%g",
              results.records[0].summary.median);
    quern__bench_results_close(&results);
}

Test(bench_main, results_have_name_instead_of_alias)
{
    cr_expect_eq(call("-w sim* -t 1 -n 7 -r 1 --json=@"), QUERN_BENCH_EXIT_OK);
    quern__bench_results results = read_results(json_path);
    cr_expect_str_eq(results.records[0].workload, "plain");
    quern__bench_results_close(&results);
}

Test(bench_main, a_wrong_checksum_fails)
{
    excess = 1;
    cr_expect_eq(call("-w plain -t 1 -n 7 -r 1 --json=@"), QUERN_BENCH_EXIT_FAILED);
}

Test(bench_main, option_counters_works_with_and_without_counters)
{
    cr_expect_eq(call("-w plain -t 1 -n 7 -r 1 --counters --pin --json=@"), QUERN_BENCH_EXIT_OK);
    cr_expect_eq(diaries[0].pass_count, diaries[1].pass_count);
}

/* -------------------------------------------------------------------------------- results and comparing */

static void write_results(const char *path, double scale)
{
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs("{\"type\":\"machine\",\"processor\":\"p\"}\n", file);
    for (int subject = 0; subject < 2; subject++) {
        fprintf(file,
                "{\"type\":\"result\",\"workload\":\"plain\",\"subject\":\"%s\",%s\"entities\":7,"
                "\"threads\":1,",
                subject == 0 ? "control" : "subject", subject == 0 ? "" : "\"control\":\"control\",");
        fputs("\"unit\":\"pass\",\"samples\":[", file);
        for (int i = 0; i < 9; i++)
            fprintf(file, "%s%g", i > 0 ? "," : "",
                    (subject == 0 ? 1 : scale) * (1 + 0.001 * ((i * 4) % 9)));
        fputs("],\"checksum\":\"01\"}\n", file);
    }
    fclose(file);
}

Test(bench_main, fail_slower_changes_exit_status)
{
    write_results(json_path, 1.5);
    write_results(other_path, 2);
    cr_expect_eq(call("--load % --compare @"), QUERN_BENCH_EXIT_OK);
    cr_expect_eq(call("--load % --compare @ --fail-slower"), QUERN_BENCH_EXIT_SLOWER);
    cr_expect_eq(call("--load @ --compare % --fail-slower"), QUERN_BENCH_EXIT_OK);
    cr_expect_eq(call("--load % --compare @ --fail-slower --noise 40"), QUERN_BENCH_EXIT_OK);
}

Test(bench_main, fail_slower_fails_if_nothing_was_compared)
{
    write_results(json_path, 1.5);
    cr_expect_eq(call("-w fresh -t 1 -r 5 --compare @"), QUERN_BENCH_EXIT_OK);
    cr_expect_eq(call("-w fresh -t 1 -r 5 --compare @ --fail-slower"), QUERN_BENCH_EXIT_FAILED,
                 "all are new");
    write_results(other_path, 1.5);
    FILE *file = fopen(other_path, "a");
    fputs("{\"type\":\"result\",\"workload\":\"more\",\"subject\":\"s\",\"samples\":[1]}\n", file);
    fclose(file);
    cr_expect_eq(call("--load % --compare @ --fail-slower"), QUERN_BENCH_EXIT_OK,
                 "some results were compared");
}

Test(bench_main, measured_results_can_be_compared)
{
    cr_expect_eq(call("-w plain -t 1 -r 5 --json=@"), QUERN_BENCH_EXIT_OK);
    cr_expect_eq(call("-w plain -t 1 -r 5 --compare @"), QUERN_BENCH_EXIT_OK);
}

Test(bench_main, report_escapes_results)
{
    write_results(json_path, 1.5);
    char *json = read_text(json_path);
    FILE *file = fopen(json_path, "w");
    fputs("{\"type\":\"machine\",\"processor\":\"</script>\"}\n", file);
    fputs(strchr(json, '\n') + 1, file);
    fclose(file);
    free(json);
    cr_expect_eq(call("--load @ --compare @ --report %"), QUERN_BENCH_EXIT_OK);
    char *page = read_text(other_path);
    cr_expect(strncmp(page, "<!DOCTYPE html>", 15) == 0);
    cr_expect(strstr(page, "\"processor\":\"\\u003c/script>\"") != NULL);
    cr_expect(strstr(page, "\"verdict\":\"within noise\"") != NULL);
    cr_expect(strstr(page, "Chart.js v4") != NULL);
    cr_expect(strstr(page, "@data@") == NULL && strstr(page, "@charts@") == NULL);
    cr_expect(strstr(page, "src=") == NULL && strstr(page, "<link") == NULL,
              "the page refers to other files");
    free(page);
}

/* -------------------------------------------------------------------------------------------- failing */

Test(bench_main, wrong_command_lines_measure_nothing)
{
    diaries[0].open_count = 0;
    cr_expect_eq(call("--repeat never"), QUERN_BENCH_EXIT_USAGE);
    cr_expect_eq(call("--workload nothing"), QUERN_BENCH_EXIT_USAGE);
    cr_expect_eq(diaries[0].open_count, 0);
    cr_expect_eq(call("--help"), QUERN_BENCH_EXIT_OK);
    cr_expect_eq(call("--list"), QUERN_BENCH_EXIT_OK);
    cr_expect_eq(call("--info"), QUERN_BENCH_EXIT_OK);
    cr_expect_eq(diaries[0].open_count, 0);
}

Test(bench_main, files_that_cannot_be_used_fail_before_measuring)
{
    diaries[0].open_count = 0;
    cr_expect_eq(call("-w plain -r 1 --compare /nonexistent/before"), QUERN_BENCH_EXIT_FAILED);
    cr_expect_eq(call("-w plain -r 1 --report /nonexistent/page"), QUERN_BENCH_EXIT_FAILED);
    cr_expect_eq(call("-w plain -r 1 --trace /nonexistent/trace"), QUERN_BENCH_EXIT_FAILED);
    cr_expect_eq(call("--load /nonexistent/now"), QUERN_BENCH_EXIT_FAILED);
    cr_expect_eq(call("-w plain -r 1 --compare @"), QUERN_BENCH_EXIT_FAILED, "an empty file");
    cr_expect_eq(diaries[0].open_count, 0);
}

Test(bench_main, full_disk_fails)
{
    if (access("/dev/full", W_OK) != 0) cr_skip_test("there is no /dev/full");
    write_results(json_path, 1.5);
    cr_expect_eq(call("--load @ --report /dev/full"), QUERN_BENCH_EXIT_FAILED);
}

/* Returns the exit status of a process that runs the call with a full disk as its stdout. */
static int call_with_full_stdout(const char *line)
{
    fflush(stdout);
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) _exit(freopen("/dev/full", "w", stdout) != NULL ? call(line) : QUERN_BENCH_EXIT_OK);
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(bench_main, results_that_cannot_be_printed_fail)
{
    if (access("/dev/full", W_OK) != 0) cr_skip_test("there is no /dev/full");
    write_results(json_path, 1.5);
    cr_expect_eq(call("--load @"), QUERN_BENCH_EXIT_OK);
    cr_expect_eq(call_with_full_stdout("--load @"), QUERN_BENCH_EXIT_FAILED);
    cr_expect_eq(call_with_full_stdout("--load @ --json"), QUERN_BENCH_EXIT_FAILED);
    cr_expect_eq(call_with_full_stdout("--help"), QUERN_BENCH_EXIT_FAILED);
}

Test(bench_main, a_run_that_fails_leaves_earlier_results)
{
    write_results(json_path, 1.5);
    char *before = read_text(json_path);
    cr_expect_eq(call("-w plain -r 1 --json=@ --trace /nonexistent/trace"), QUERN_BENCH_EXIT_FAILED);
    cr_expect_eq(call("--load /nonexistent/now --json=@"), QUERN_BENCH_EXIT_FAILED);
    cr_expect_eq(call("-w plain -r 1 --json=@ --csv=@"), QUERN_BENCH_EXIT_USAGE);
    char *after = read_text(json_path);
    cr_expect_str_eq(after, before);
    free(before);
    free(after);
}

static uint32_t loaded_record_count(const char *line)
{
    cr_expect_eq(call(line), QUERN_BENCH_EXIT_OK, "%s", line);
    quern__bench_results results = read_results(other_path);
    const uint32_t count = (uint32_t)results.record_count;
    quern__bench_results_close(&results);
    return count;
}

Test(bench_main, options_select_from_loaded_results)
{
    cr_expect_eq(call("-w plain,fresh,found -t 1,2 -r 1 --json=@"), QUERN_BENCH_EXIT_OK);
    cr_expect_eq(loaded_record_count("--load @ --json=%"), 14);
    cr_expect_eq(loaded_record_count("--load @ --json=% -w simple"), 8);
    cr_expect_eq(loaded_record_count("--load @ --json=% -x plain"), 6);
    cr_expect_eq(loaded_record_count("--load @ --json=% -t 2"), 6);
    cr_expect_eq(loaded_record_count("--load @ --json=% -n 20"), 2 * (2 + 2),
                 "workloads of a fixed size stay");
    cr_expect_eq(call("--load @ --json=% -w other"), QUERN_BENCH_EXIT_FAILED);
}

Test(bench_main, alias_in_file_means_workload)
{
    write_results(json_path, 1.5);
    char *text = read_text(json_path);
    FILE *file = fopen(other_path, "w");
    const char *rest = text;
    for (const char *place; (place = strstr(rest, "\"plain\"")) != NULL; rest = place + strlen("\"plain\""))
        fprintf(file, "%.*s\"simple\"", (int)(place - rest), rest);
    fputs(rest, file);
    fclose(file);
    free(text);
    cr_expect_eq(call("--load @ --compare % --fail-slower"), QUERN_BENCH_EXIT_OK,
                 "the alias is found, so nothing is new");
}

Test(bench_main, incomplete_suites_are_refused)
{
    char *words[] = {"bench", NULL};
    quern_bench_suite suite = {0};
    cr_expect_eq(quern_bench_main(NULL, 1, words), QUERN_BENCH_EXIT_USAGE);
    cr_expect_eq(quern_bench_main(&suite, 1, words), QUERN_BENCH_EXIT_USAGE, "no workloads");
    const quern_bench_workload nameless = {.summary = "?", .subjects = {{.run = work}}};
    const quern_bench_workload idle = {.name = "idle", .summary = "?"};
    const quern_bench_workload twins = {.name = "twins",
                                        .summary = "?",
                                        .subjects = {{.run = work}, {.run = work}},
                                        .subject_names = {"a", "a"}};
    const quern_bench_workload *const faulty[] = {&nameless, &idle, &twins};
    for (int i = 0; i < 3; i++) {
        suite.workloads = &faulty[i];
        suite.workload_count = 1;
        cr_expect_eq(quern_bench_main(&suite, 1, words), QUERN_BENCH_EXIT_USAGE);
    }
    const quern_bench_workload *const twice[] = {&plain, &fresh, &plain};
    suite.workloads = twice;
    suite.workload_count = 3;
    cr_expect_eq(quern_bench_main(&suite, 1, words), QUERN_BENCH_EXIT_USAGE, "two workloads with one name");
}
