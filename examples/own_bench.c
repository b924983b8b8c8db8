/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A user's benchmark with Quern's harness. In each frame of a game, items cool and wear out. The
 * benchmark measures the frame as a schedule and, for comparison, as a plain loop over a query.
 * own_bench --help lists the options: --trace records the frames of the schedule, --forecast prints
 * their expected duration on more threads. docs/benchmarks/using.md explains it. */
#include <quern/bench.h>
#include <quern/profile.h>
#include <quern/quern.h>

#include <stdlib.h>

typedef uint32_t Heat;
typedef uint32_t Wear;

typedef struct Scene {
    quern_world *world;
    quern_component heat, wear;
    quern_query *query;
    quern_jobs *jobs;
    quern_schedule *schedule;
} Scene;

static void require(quern_result result)
{
    if (result != QUERN_OK) quern_bench_die("%s: %s", quern_result_string(result), quern_error_message());
}

/* ----------------------------------------------------------------- systems and world of both subjects */

static void cool(quern_context *context, const quern_view *view)
{
    (void)context;
    Heat *heats = QUERN_COLUMN(view, 0, Heat);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        heats[i] -= heats[i] / 16;
}

static void wear_out(quern_context *context, const quern_view *view)
{
    (void)context;
    const Heat *heats = QUERN_COLUMN(view, 0, const Heat);
    Wear *wears = QUERN_COLUMN(view, 1, Wear);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++)
        wears[i] += heats[i] >> 20;
}

static void *open_world(const quern_bench_case *bench_case)
{
    Scene *scene = quern_bench_allocate(1, sizeof *scene);
    require(quern_world_create(NULL, &scene->world));
    require(QUERN_COMPONENT_REGISTER(scene->world, &scene->heat, Heat));
    require(QUERN_COMPONENT_REGISTER(scene->world, &scene->wear, Wear));
    const quern_component components[] = {scene->heat, scene->wear};
    for (uint32_t i = 0; i < bench_case->entity_count; i++) {
        const Heat heat = i * 2654435761u;
        require(quern_entity_create_with(scene->world, components, (const void *[]){&heat, NULL}, 2, NULL));
    }
    const quern_query_def def = {.terms = {quern_term_write(scene->heat), quern_term_write(scene->wear)}};
    require(quern_query_create(scene->world, &def, &scene->query));
    return scene;
}

/* Returns a checksum of the world, which must be equal for both subjects. Sums of integers do not depend
 * on the order of items. Wear is a sum of heat, so the sum of all wear covers both components. */
static uint64_t checksum(void *state)
{
    const Scene *scene = state;
    uint64_t sum = 0;
    quern_query_iterator it = quern_query_iterate(scene->query);
    while (quern_query_next(&it)) {
        const Wear *wears = QUERN_COLUMN(&it.view, 1, const Wear);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            sum += wears[i];
    }
    require(it.result);
    return sum;
}

static void close_world(void *state)
{
    Scene *scene = state;
    quern_schedule_destroy(scene->schedule);
    quern_jobs_destroy(scene->jobs);
    quern_query_destroy(scene->query);
    quern_world_destroy(scene->world);
    free(scene);
}

/* ------------------------------------------------------------------------ subject for comparison: loop */

static void run_loop(void *state, uint32_t pass_count)
{
    const Scene *scene = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        quern_query_iterator it = quern_query_iterate(scene->query);
        while (quern_query_next(&it)) {
            cool(NULL, &it.view);
            wear_out(NULL, &it.view);
        }
        require(it.result);
    }
}

/* ------------------------------------------------------------------------------------ subject: schedule */

/* The pool and the schedule write to the trace of the harness, which is NULL without --trace. */
static void *open_schedule(const quern_bench_case *bench_case)
{
    Scene *scene = open_world(bench_case);
    quern_jobs_def jobs = {.thread_count = bench_case->thread_count, .trace = quern_bench_trace()};
    require(quern_jobs_create(&jobs, &scene->jobs));
    const quern_schedule_def def = {.trace = quern_bench_trace()};
    require(quern_schedule_create(scene->world, &def, &scene->schedule));
    quern_bench_set_schedule(scene->schedule);
    const quern_system_def systems[] = {
        {.name = "cool", .run = cool, .terms = {quern_term_write(scene->heat)}},
        {.name = "wear out",
         .run = wear_out,
         .terms = {quern_term_read(scene->heat), quern_term_write(scene->wear)}},
    };
    for (uint32_t i = 0; i < 2; i++)
        require(quern_schedule_add_system(scene->schedule, &systems[i], NULL));
    return scene;
}

static void run_schedule(void *state, uint32_t pass_count)
{
    const Scene *scene = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        require(quern_schedule_run(scene->schedule, scene->jobs, 1.0 / 60));
}

/* Runs one pass and captures it, for --forecast. */
static quern_result capture_schedule(void *state, quern_frame_capture *capture)
{
    const Scene *scene = state;
    return quern_schedule_run_captured(scene->schedule, scene->jobs, 1.0 / 60, capture);
}

/* ------------------------------------------------------------------------------------------- workload */

/* Returns the number of operations in a pass: one per item. */
static uint64_t count_operations(uint32_t entity_count)
{
    return entity_count;
}

static const quern_bench_workload items = {
    .name = "items",
    .summary = "a frame in which every item cools, and wears out by its heat",
    .unit = "item",
    .entity_counts = {1000, 100000},
    .frames = true,
    .bytes_per_entity = sizeof(Heat) + sizeof(Wear),
    .operation_count = count_operations,
    .subjects = {{open_world, NULL, run_loop, NULL, checksum, close_world, NULL},
                 {open_schedule, NULL, run_schedule, NULL, checksum, close_world, capture_schedule}},
    .subject_names = {"loop", "schedule"},
};

int main(int argc, char **argv)
{
    static const quern_bench_workload *const workloads[] = {&items};
    const quern_bench_suite suite = {.program = "own_bench",
                                     .summary = "Compares a schedule with a plain loop over a query.",
                                     .workloads = workloads,
                                     .workload_count = sizeof workloads / sizeof workloads[0]};
    return quern_bench_main(&suite, argc, argv);
}
