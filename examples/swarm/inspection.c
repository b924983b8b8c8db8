/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspection.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef SWARM_INSPECT

#include "check.h"
#include "record.h"
#include "simulation.h"

#include <quern/inspect.h>

#include <inttypes.h>

enum { KEPT_FRAMES = 120, TRACE_EVENTS = 4096, FRAME_NS = 1000000000 / 60 };

/* The time until the next frame belongs to the inspector. */
static void pace(quern_inspector *inspector, uint64_t *frame, uint64_t begin_ns)
{
    const uint64_t spent_ns = clock_ns() - begin_ns;
    if (spent_ns < FRAME_NS) quern_inspector_wait(inspector, frame, FRAME_NS - spent_ns);
}

/* The program around the inspector: a trace for the flame chart, a history to scrub in, and the loop. */
void inspection_run(const Options *options, const volatile sig_atomic_t *is_interrupted)
{
    Simulation simulation;
    quern_trace *trace;
    quern_jobs *jobs;
    quern_history *history;
    quern_inspector *inspector;
    uint64_t frame = 0;
    check(quern_trace_create(&(quern_trace_def){.track_count = options->thread_count != 0
                                                                   ? options->thread_count
                                                                   : quern_processor_count(),
                                                .events_per_track = TRACE_EVENTS},
                             &trace));
    simulation_create(&simulation, options->seed, options->entity_count, trace);
    check(
        quern_jobs_create(&(quern_jobs_def){.thread_count = options->thread_count, .trace = trace}, &jobs));
    check(quern_history_create(
        simulation.world,
        &(quern_history_def){.schedules = {simulation.schedule}, .frame_count = KEPT_FRAMES}, &history));
    const quern_inspector_def def = {.world = simulation.world,
                                     .schedule = simulation.schedule,
                                     .history = history,
                                     .jobs = jobs,
                                     .trace = trace,
                                     .title = "swarm"};
    check(quern_inspector_create(&def, &inspector));
    check(quern_inspector_serve(inspector, &(quern_inspect_server_def){.port = options->inspect_port}));
    printf("inspector: %s\n", quern_inspector_url(inspector));
    fflush(stdout);
    while (!*is_interrupted && (options->frame_count == 0 || frame < options->frame_count)) {
        const uint64_t begin_ns = clock_ns();
        if (!quern_inspector_update(inspector, &frame)) continue; /* paused */
        check(quern_history_save(history, frame, jobs));
        check(quern_inspector_run(inspector, simulation_frame_seconds));
        frame++;
        if (!options->has_frame_count) pace(inspector, &frame, begin_ns);
    }
    printf("  world hash: 0x%016" PRIx64 " after %" PRIu64 " frames\n", quern_world_hash(simulation.world),
           frame);
    quern_inspector_destroy(inspector);
    quern_history_destroy(history);
    quern_jobs_destroy(jobs);
    simulation_destroy(&simulation);
    quern_trace_destroy(trace);
}

#else

void inspection_run(const Options *options, const volatile sig_atomic_t *is_interrupted)
{
    (void)options;
    (void)is_interrupted;
    fputs("swarm: --inspect needs the inspector, and this program was built without it: "
          "build it on Linux or another system with POSIX\n",
          stderr);
    exit(2);
}

#endif
