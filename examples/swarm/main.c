/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Swarm: a game loop on Quern. Prey flock, hunters chase them, and both breed and die: 15 systems in 5
 * phases process 100,000 agents on all processors. The result does not depend on the number of threads.
 *
 *   components   the components of an agent    systems_*    the systems of a frame
 *   simulation   the world and its schedule    neighbours   finding nearby agents
 *   display      output during the run         report       output after the run
 *   forecast     frames on more threads
 *   replay       recorded frames               rewind       restored frames
 *   inspection   the world in a browser   window       the world in a window */

#include "check.h"
#include "display.h"
#include "forecast.h"
#include "inspection.h"
#include "options.h"
#include "record.h"
#include "replay.h"
#include "report.h"
#include "rewind.h"
#include "simulation.h"
#include "window.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { COMPARED_FRAMES_MAX = 60, EXPLAINED_FRAMES = 10 };

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    is_interrupted = 1;
}

/* The first Ctrl-C ends the loop, a second one the program. */
static void catch_interrupts(void)
{
#if defined(SA_RESETHAND)
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
#else
    signal(SIGINT, interrupt); /* Windows restores the default when it calls the handler */
    signal(SIGTERM, interrupt);
#endif
}

static quern_jobs *create_jobs(uint32_t thread_count, quern_trace *trace)
{
    quern_jobs *jobs;
    quern_jobs_def def = {.thread_count = thread_count, .trace = trace};
    check(quern_jobs_create(&def, &jobs));
    return jobs;
}

/* Creates the trace of --trace, which keeps the last frames; NULL without the option. */
static quern_trace *start_trace(const Options *options)
{
    quern_trace *trace = NULL;
    if (options->trace == NULL) return NULL;
    quern_trace_def def = {.track_count = options->thread_count != 0 ? options->thread_count
                                                                     : quern_processor_count()};
    check(quern_trace_create(&def, &trace));
    quern_trace_start(trace);
    return trace;
}

/* Many machines do not permit hardware counters, in particular virtual machines. The demo then runs without
 * them. */
static void start_profile(const Options *options, quern_schedule *schedule)
{
    check(quern_schedule_set_profiling(schedule, options->profile));
    if (!options->counters) return;
    quern_hardware_source source = quern_hardware_source_default();
    if (quern_schedule_set_counting(schedule, &source) != QUERN_OK)
        fprintf(stderr, "swarm: %s\n", quern_error_message());
}

static void step(Simulation *simulation, quern_jobs *jobs, Recording *recording, Record *record)
{
    uint64_t start_ns = clock_ns();
    recording_step(recording, simulation, jobs);
    record_frame(record, simulation, clock_ns() - start_ns);
}

static uint32_t compared_frames(const Options *options)
{
    bool is_short = options->frame_count != 0 && options->frame_count < COMPARED_FRAMES_MAX;
    return is_short ? options->frame_count : COMPARED_FRAMES_MAX;
}

/* Runs the game loop. Returns the hash of the world after the frames that the baseline repeats. */
static uint64_t run(const Options *options, Simulation *simulation, quern_jobs *jobs, Record *record,
                    Rewind *rewind)
{
    uint64_t compared_hash = 0;
    Display display;
    Recording recording;
    recording_open(&recording, options, simulation);
    if (options->rewind) rewind_open(rewind, simulation, jobs);
    display_start(&display, options, simulation, quern_jobs_thread_count(jobs));
    while (!is_interrupted && (options->frame_count == 0 || record->frame_count < options->frame_count)) {
        step(simulation, jobs, &recording, record);
        rewind_after_frame(rewind, simulation, jobs);
        if (record->frame_count == compared_frames(options))
            compared_hash = quern_world_hash(simulation->world);
        display_update(&display, simulation, record);
    }
    display_stop(&display);
    rewind_close(rewind, simulation, jobs);
    recording_close(&recording);
    return compared_hash;
}

/* Describes the schedule after some frames, so that the description has measured times. */
static void explain(const Options *options)
{
    Simulation simulation;
    simulation_create(&simulation, options->seed, options->entity_count, NULL);
    quern_jobs *jobs = create_jobs(options->thread_count, NULL);
    for (uint32_t i = 0; i < EXPLAINED_FRAMES; i++)
        simulation_step(&simulation, jobs);
    check(quern_schedule_describe(simulation.schedule, options->explain_format, quern_sink_file(stdout)));
    quern_jobs_destroy(jobs);
    simulation_destroy(&simulation);
}

/* Runs the same world again, from the start, on one thread. */
static Comparison compare(const Options *options, const Record *record, uint64_t compared_hash)
{
    Simulation simulation;
    Record baseline;
    Recording none = {.recorder = NULL};
    uint32_t frame_count = compared_frames(options);
    printf("again, %u frames on 1 thread ...\n", frame_count);
    fflush(stdout);
    simulation_create(&simulation, options->seed, options->entity_count, NULL);
    record_create(&baseline, &simulation);
    while (!is_interrupted && baseline.frame_count < frame_count)
        step(&simulation, NULL, &none, &baseline);
    Comparison comparison = {.made = !is_interrupted, .frame_count = frame_count};
    if (comparison.made) {
        comparison.same_hash = quern_world_hash(simulation.world) == compared_hash;
        comparison.speedup = (double)record_percentile_ns(&baseline, frame_count, 50) /
                             (double)record_percentile_ns(record, frame_count, 50);
    }
    record_destroy(&baseline);
    simulation_destroy(&simulation);
    return comparison;
}

static void print_outcome(const Options *options, const Record *record, const Outcome *outcome)
{
    report_print(options, record, outcome);
    if (options->json) report_print_json(options, record, outcome);
}

/* Returns whether all frames agree. */
static bool replay(const Options *options)
{
    Simulation simulation;
    simulation_create(&simulation, options->seed, options->entity_count, NULL);
    quern_jobs *jobs = create_jobs(options->thread_count, NULL);
    const bool agrees = replay_run(options, &simulation, jobs, &is_interrupted);
    quern_jobs_destroy(jobs);
    simulation_destroy(&simulation);
    return agrees;
}

int main(int argc, char **argv)
{
    Options options = options_parse(argc, argv);
    if (options.explain) {
        explain(&options);
        return EXIT_SUCCESS;
    }
    catch_interrupts();
    if (options.replay != NULL) return replay(&options) ? EXIT_SUCCESS : EXIT_FAILURE;
    if (options.window || options.picture != NULL) {
        window_run(&options, &is_interrupted);
        return EXIT_SUCCESS;
    }
    if (options.inspect) {
        inspection_run(&options, &is_interrupted);
        return EXIT_SUCCESS;
    }
    Simulation simulation;
    Record record;
    Rewind rewind = {.history = NULL};
    quern_trace *trace = start_trace(&options);
    simulation_create(&simulation, options.seed, options.entity_count, trace);
    start_profile(&options, simulation.schedule);
    record_create(&record, &simulation);
    quern_jobs *jobs = create_jobs(options.thread_count, trace);
    uint64_t compared_hash = run(&options, &simulation, jobs, &record, &rewind);

    Outcome outcome = {
        .thread_count = quern_jobs_thread_count(jobs),
        .hash = quern_world_hash(simulation.world),
        .census = *simulation_census(&simulation),
    };
    quern_trace_stop(trace);
    quern_jobs_destroy(jobs);
    if (options.profile) check(quern_schedule_write_profile(simulation.schedule, quern_sink_file(stdout)));
    simulation_destroy(&simulation);
    if (trace != NULL) check(quern_trace_save(trace, options.trace));
    quern_trace_destroy(trace);
    if (options.baseline && outcome.thread_count > 1 && !is_interrupted)
        outcome.comparison = compare(&options, &record, compared_hash);
    if (options.forecast_count > 0 && !is_interrupted)
        forecast_print(&options, outcome.thread_count, compared_frames(&options), &is_interrupted);
    if (options.rewind) rewind_print(&rewind);
    print_outcome(&options, &record, &outcome);
    record_destroy(&record);
    bool differs = rewind.differs || (outcome.comparison.made && !outcome.comparison.same_hash);
    return differs ? EXIT_FAILURE : EXIT_SUCCESS;
}
