/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* From the command line to the exit status: what to measure, where results are written, and what they
 * are compared with. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness/base.h"
#include "bench/harness/compare.h"
#include "bench/harness/json.h"
#include "bench/harness/machine.h"
#include "bench/harness/measure.h"
#include "bench/harness/observe.h"
#include "bench/harness/options.h"
#include "bench/harness/suite.h"
#include "bench/harness/table.h"

typedef struct program {
    const quern_bench_suite *suite;
    quern__bench_options options;
    quern__bench_settings settings;
    quern__bench_progress progress;
    quern__bench_results results;
    quern__bench_forecasts forecasts;
    quern_hardware_source counter_source;
    quern__bench_profiles profiles;
    quern__bench_results before;          /* results from the file of --compare */
    quern__bench_comparison *comparisons; /* one for each record; NULL without --compare */
    quern__bench_output json;
    quern__bench_output csv;
    quern__bench_output report;
    quern__bench_output trace;
    bool failed;
} program;

/* -------------------------------------------------------------------------------------------- files */

/* Reads the results in a file that the command line selects. */
static bool load(const program *bench, const char *path, quern__bench_results *results)
{
    char *text = quern__bench_read_file(path);
    if (text == NULL) {
        quern__bench_note("%s: %s", path, strerror(errno));
        return false;
    }
    char message[QUERN__BENCH_JSON_MESSAGE_BYTES];
    const bool done = quern__bench_json_read(text, results, message);
    free(text);
    if (!done) {
        quern__bench_note("%s: %s", path, message);
        return false;
    }
    quern__bench_suite_rename(bench->suite, results);
    quern__bench_suite_filter(bench->suite, &bench->options, results);
    return true;
}

static uint32_t max_thread_count(const quern__bench_options *options)
{
    uint32_t most = 1;
    for (uint32_t i = 0; i < options->thread_counts.count; i++)
        if (options->thread_counts.values[i] > most) most = options->thread_counts.values[i];
    return most;
}

/* Opens all files before anything is measured, so that a wrong path is reported without delay. */
static bool open_files(program *bench)
{
    const quern__bench_options *options = &bench->options;
    return (options->compare == NULL || load(bench, options->compare, &bench->before)) &&
           quern__bench_output_open(&bench->json, options->json, true) &&
           quern__bench_output_open(&bench->csv, options->csv, true) &&
           quern__bench_output_open(&bench->report, options->report, false) &&
           quern__bench_output_open(&bench->trace, options->trace, false) &&
           (options->trace == NULL || quern__bench_tracing_open(max_thread_count(options)));
}

/* ------------------------------------------------------------------------------------------- results */

static void write_heads(const program *bench)
{
    const quern__bench_machine *machine = &bench->results.machine;
    if (bench->json.file != NULL) quern__bench_json_write_machine(bench->json.file, machine);
    if (bench->csv.file != NULL) quern__bench_csv_write_head(bench->csv.file);
    if (quern__bench_options_use_stdout(&bench->options)) return;
    quern__bench_table_write_machine(stdout, machine);
    quern__bench_table_write_head(stdout);
}

static void write_record(const program *bench, const quern__bench_record *record)
{
    const quern__bench_record *control = quern__bench_results_control(&bench->results, record);
    if (bench->json.file != NULL) quern__bench_json_write_record(bench->json.file, record, control);
    if (bench->csv.file != NULL) quern__bench_csv_write_record(bench->csv.file, record, control);
    if (!quern__bench_options_use_stdout(&bench->options))
        quern__bench_table_write_record(stdout, record, control);
}

/* Fails the program if the checksums of the record and its control differ. */
static void verify(program *bench, const quern__bench_record *record)
{
    const quern__bench_record *control = quern__bench_results_control(&bench->results, record);
    if (quern__bench_record_agrees(record, control)) return;
    char text[QUERN__BENCH_CASE_TEXT_BYTES];
    quern__bench_format_case(text, record);
    quern__bench_note("%s: the checksum %016" PRIx64 " differs from %016" PRIx64
                      " of its control %s, so they did different work",
                      text, record->checksum, control->checksum, control->subject);
    bench->failed = true;
}

static void show_records(program *bench, size_t first)
{
    for (size_t i = first; i < bench->results.record_count; i++) {
        write_record(bench, &bench->results.records[i]);
        verify(bench, &bench->results.records[i]);
    }
}

/* ----------------------------------------------------------------------------------------- measuring */

typedef void case_function(program *bench, const quern_bench_workload *workload, quern_bench_case scene);

static void count_case(program *bench, const quern_bench_workload *workload, quern_bench_case scene)
{
    (void)workload;
    (void)scene;
    bench->progress.case_count++;
}

static void run_case(program *bench, const quern_bench_workload *workload, quern_bench_case scene)
{
    const size_t first = bench->results.record_count;
    if (bench->options.pin && !quern__bench_pin(scene.thread_count))
        quern__bench_note("--pin: workload '%s' cannot be restricted to %" PRIu32
                          " processors; it runs without",
                          workload->name, scene.thread_count);
    if (!quern__bench_crowd_start(bench->options.crowd_count))
        quern__bench_note("--crowd: workload '%s' runs without, because the system cannot start %" PRIu32
                          " threads; ask for fewer",
                          workload->name, bench->options.crowd_count);
    quern__bench_progress_show(&bench->progress, workload->name, &scene, 0);
    quern__bench_measure(&bench->results, &bench->settings, workload, &scene);
    quern__bench_progress_step(&bench->progress);
    quern__bench_crowd_stop();
    quern__bench_unpin();
    show_records(bench, first);
}

static void for_each_size(program *bench, const quern_bench_workload *workload, uint32_t thread_count,
                          case_function *function)
{
    const quern__bench_numbers *chosen = &bench->options.entity_counts;
    const bool by_option = chosen->count > 0 && !workload->fixed_size;
    const uint32_t *sizes = by_option ? chosen->values : workload->entity_counts;
    const uint32_t limit = by_option ? chosen->count : QUERN_BENCH_MAX_SIZES;
    for (uint32_t i = 0; i < limit && (i == 0 || sizes[i] > 0); i++)
        function(bench, workload, (quern_bench_case){sizes[i], thread_count});
}

static bool can_run(const quern_bench_workload *workload, uint32_t thread_count)
{
    return !(workload->single_thread && thread_count > 1) &&
           !(workload->footprint && quern__bench_resident_bytes() == 0);
}

static void for_each_case(program *bench, case_function *function)
{
    const quern__bench_numbers *threads = &bench->options.thread_counts;
    for (uint32_t i = 0; i < bench->suite->workload_count; i++) {
        const quern_bench_workload *workload = bench->suite->workloads[i];
        if (!quern__bench_options_select(&bench->options, workload->name, workload->alias)) continue;
        for (uint32_t t = 0; t < threads->count; t++)
            if (can_run(workload, threads->values[t]))
                for_each_size(bench, workload, threads->values[t], function);
    }
}

static void note_skipped(const program *bench)
{
    const quern__bench_numbers *threads = &bench->options.thread_counts;
    for (uint32_t i = 0; i < bench->suite->workload_count; i++) {
        const quern_bench_workload *workload = bench->suite->workloads[i];
        if (!quern__bench_options_select(&bench->options, workload->name, workload->alias)) continue;
        if (workload->footprint && quern__bench_resident_bytes() == 0)
            quern__bench_note("workload '%s' is left out: the system does not report a process's memory",
                              workload->name);
        for (uint32_t t = 0; workload->single_thread && t < threads->count; t++)
            if (threads->values[t] > 1)
                quern__bench_note("workload '%s' is left out on %" PRIu32 " threads: it is single-threaded",
                                  workload->name, threads->values[t]);
    }
}

static const quern_hardware_source *find_counters(program *bench)
{
    if (!bench->options.counters) return NULL;
    bench->counter_source = quern_hardware_source_default();
    if (quern__bench_counters_available(&bench->counter_source)) return &bench->counter_source;
    quern__bench_note("--counters: %s", quern_error_message());
    return NULL;
}

static void measure_all(program *bench)
{
    const quern__bench_options *options = &bench->options;
    const quern_hardware_source *counter_source = find_counters(bench);
    if (options->profile && !quern__bench_profiles_open(&bench->profiles, counter_source))
        bench->failed = true;
    bench->settings = (quern__bench_settings){
        .suite = bench->suite,
        .repeat_count = options->repeat_count,
        .warm_up_count = options->warm_up_count,
        .placement_count = options->placement_count,
        .max_passes = options->max_passes,
        .time_s = options->time_s,
        .frames = options->frames,
        .counter_source = counter_source,
        .profiles = bench->profiles.file != NULL ? &bench->profiles : NULL,
        .forecasts = options->forecast_counts.count > 0 ? &bench->forecasts : NULL,
        .progress = &bench->progress,
    };
    bench->results.machine = quern__bench_machine_describe(bench->suite);
    note_skipped(bench);
    write_heads(bench);
    for_each_case(bench, count_case);
    quern__bench_progress_begin(&bench->progress, bench->progress.case_count);
    for_each_case(bench, run_case);
}

/* Measures, or reads the results of --load. Returns false, with a note, if they cannot be read. */
static bool get_results(program *bench)
{
    if (bench->options.load == NULL) {
        measure_all(bench);
        return true;
    }
    if (!load(bench, bench->options.load, &bench->results)) return false;
    if (bench->results.record_count == 0) {
        quern__bench_note("--load: %s has no results that -w, -x, -n and -t select", bench->options.load);
        return false;
    }
    write_heads(bench);
    show_records(bench, 0);
    return true;
}

/* ------------------------------------------------------------------------------------------- the end */

/* Closes all files. If the results are incomplete, the files of earlier runs stay as they are. */
static void close_files(program *bench, bool complete)
{
    quern__bench_output *outputs[] = {&bench->json, &bench->csv, &bench->report, &bench->trace};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
        if (!quern__bench_output_close(outputs[i], complete)) bench->failed = true;
    if (!quern__bench_stdout_check()) bench->failed = true;
}

/* Writes what follows the records. Texts go to stderr if stdout contains JSON, CSV or HTML. */
static void finish(program *bench)
{
    const quern__bench_options *options = &bench->options;
    FILE *file = quern__bench_options_use_stdout(options) ? stderr : stdout;
    quern__bench_table_write_trust(file, &bench->results);
    if (bench->json.file != NULL) quern__bench_json_write_trust(bench->json.file, &bench->results);
    if (options->compare != NULL) {
        bench->comparisons = quern__bench_compare_all(&bench->before, &bench->results, options->noise);
        quern__bench_write_comparisons(file, bench->comparisons, &bench->before, &bench->results,
                                       options->compare, options->noise);
    }
    const bool forecasts = options->forecast_counts.count > 0;
    if (forecasts && !quern__bench_forecasts_compute(&bench->forecasts, options)) bench->failed = true;
    const quern__bench_page page = {
        .program = bench->suite->program,
        .results = &bench->results,
        .comparisons = bench->comparisons,
        .before = &bench->before,
        .before_path = options->compare,
        .noise = options->noise,
        .forecasts = &bench->forecasts,
    };
    if (bench->report.file != NULL) quern__bench_page_write(bench->report.file, &page);
    if (forecasts) quern__bench_forecasts_write(file, &bench->forecasts, &bench->results);
    if (bench->profiles.file != NULL) quern__bench_profiles_write(&bench->profiles, file);
    if (options->trace != NULL && !quern__bench_tracing_write(quern__bench_output_path(&bench->trace))) {
        quern__bench_output_close(&bench->trace, false);
        bench->failed = true;
    }
}

static void run(program *bench)
{
    const bool complete = open_files(bench) && get_results(bench);
    if (complete)
        finish(bench);
    else
        bench->failed = true;
    close_files(bench, complete);
    quern__bench_tracing_close();
}

/* Prints what an option requests instead of measurements. Returns false if there is no such option. */
static bool print_only(const quern__bench_options *options, const quern_bench_suite *suite)
{
    if (options->help)
        quern__bench_options_print_help(suite);
    else if (options->list)
        quern__bench_suite_list(suite);
    else if (options->info) {
        quern__bench_machine machine = quern__bench_machine_describe(suite);
        quern__bench_table_write_machine(stdout, &machine);
        quern__bench_machine_close(&machine);
    }
    return options->help || options->list || options->info;
}

int quern_bench_main(const quern_bench_suite *given, int argc, char **argv)
{
    if (given == NULL) {
        quern__bench_note("quern_bench_main: suite is NULL");
        return QUERN_BENCH_EXIT_USAGE;
    }
    const quern_bench_suite suite = quern__bench_suite_fill(given);
    char message[QUERN__BENCH_MESSAGE_BYTES];
    if (!quern__bench_suite_check(&suite, message)) {
        quern__bench_note("quern_bench_main: %s", message);
        return QUERN_BENCH_EXIT_USAGE;
    }
    quern__bench_set_program(suite.program);
    program bench = {.suite = &suite};
    if (!quern__bench_options_parse(&bench.options, &suite, argc, argv, message)) {
        quern__bench_note("%s\nTry '%s --help'.", message, suite.program);
        return QUERN_BENCH_EXIT_USAGE;
    }
    if (print_only(&bench.options, &suite))
        return quern__bench_stdout_check() ? QUERN_BENCH_EXIT_OK : QUERN_BENCH_EXIT_FAILED;
    run(&bench);
    int status = QUERN_BENCH_EXIT_OK;
    if (bench.failed)
        status = QUERN_BENCH_EXIT_FAILED;
    else if (bench.options.fail_slower)
        status = quern__bench_gate(bench.comparisons, &bench.before, &bench.results);
    free(bench.comparisons);
    quern__bench_forecasts_close(&bench.forecasts);
    quern__bench_profiles_close(&bench.profiles);
    quern__bench_results_close(&bench.results);
    quern__bench_results_close(&bench.before);
    return status;
}
