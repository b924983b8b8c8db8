/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* demo: frames of examples/swarm, a flock of agents and its hunters, from its start on. There is no control. */

#include "bench/pool.h"
#include "bench/workloads.h"

#include "examples/swarm/simulation.h"

#include <stdlib.h>

enum { SEED = 1 };

typedef struct demo_scene {
    Simulation simulation;
    quern_jobs *jobs;
} demo_scene;

static uint32_t pass_count(uint32_t entity_count)
{
    return 10;
}

static void *open_demo(const bench_case *scene)
{
    demo_scene *demo = bench_allocate(1, sizeof *demo);
    demo->simulation = (Simulation){0};
    simulation_create(&demo->simulation, SEED, scene->entity_count, NULL);
    quern_bench_set_schedule(demo->simulation.schedule);
    demo->jobs = bench_jobs_create(scene->thread_count);
    return demo;
}

static void enter_demo(void *state)
{
    const demo_scene *demo = state;
    bench_jobs_wake(demo->jobs);
}

static void run_demo(void *state, uint32_t frame_count)
{
    demo_scene *demo = state;
    for (uint32_t frame = 0; frame < frame_count; frame++)
        simulation_step(&demo->simulation, demo->jobs);
}

static quern_result capture_demo(void *state, struct quern_frame_capture *capture)
{
    demo_scene *demo = state;
    simulation_capture(&demo->simulation, demo->jobs, capture);
    return QUERN_OK;
}

static uint64_t checksum_demo(void *state)
{
    const demo_scene *demo = state;
    return quern_world_hash(demo->simulation.world);
}

static void close_demo(void *state)
{
    demo_scene *demo = state;
    quern_jobs_destroy(demo->jobs);
    simulation_destroy(&demo->simulation);
    free(demo);
}

const bench_workload workload_demo = {
    .name = "demo",
    .summary = "frames of the demo, a flock and its hunters (examples/swarm)",
    .unit = "frame",
    .entity_counts = {100000},
    .frames = true,
    .pass_count = pass_count,
    .operation_count = bench_operations_per_frame,
    .subjects = {{open_demo, enter_demo, run_demo, NULL, checksum_demo, close_demo, capture_demo}},
    .subject_names = {"quern"},
};
