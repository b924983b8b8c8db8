/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* A benchmark of one's own with Quern's harness: is it worth having the cooling of a game's items done by a
 * schedule, or is a plain loop over a query as fast? own_bench --help lists what it can do. */
#include <quern/bench.h>
#include <quern/quern.h>

#include <stdlib.h>

typedef struct Heat {
    uint32_t amount;
} Heat;

typedef struct cooling_scene {
    quern_world *world;
    quern_component heat;
    quern_query *query;
    quern_jobs *jobs;
    quern_schedule *schedule;
} cooling_scene;

static void require(quern_result result)
{
    if (result != QUERN_OK) quern_bench_die("%s: %s", quern_result_string(result), quern_error_message());
}

static void cool(Heat *heats, size_t count)
{
    for (size_t i = 0; i < count; i++)
        heats[i].amount -= heats[i].amount / 16;
}

static void cool_view(quern_context *context, const quern_view *view)
{
    (void)context;
    cool(quern_view_write(view, 0), view->count);
}

/* --------------------------------------------------------------------------- what both subjects need */

static void create_items(cooling_scene *scene, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const Heat heat = {i * 2654435761u};
        const void *value = &heat;
        require(quern_entity_create_with(scene->world, &scene->heat, &value, 1, NULL));
    }
}

static void *open_world(const quern_bench_case *asked)
{
    cooling_scene *opened = quern_bench_allocate(1, sizeof *opened);
    require(quern_world_create(NULL, &opened->world));
    require(QUERN_COMPONENT_REGISTER(opened->world, Heat, &opened->heat));
    create_items(opened, asked->entity_count);
    const quern_term term = quern_term_write(opened->heat);
    quern_query_def def = quern_query_def_default();
    def.terms = &term;
    def.term_count = 1;
    require(quern_query_create(opened->world, &def, &opened->query));
    return opened;
}

/* In no order: integers add up to the same in any. */
static uint64_t checksum(void *state)
{
    cooling_scene *scene = state;
    uint64_t sum = 0;
    quern_query_iterator it = quern_query_iterate(scene->query);
    while (quern_query_next(&it)) {
        const Heat *heats = quern_view_read(&it.view, 0);
        for (uint32_t i = 0; i < it.view.count; i++)
            sum += heats[i].amount;
    }
    require(it.result);
    return sum;
}

static void close_world(void *state)
{
    cooling_scene *scene = state;
    quern_schedule_destroy(scene->schedule);
    quern_jobs_destroy(scene->jobs);
    quern_query_destroy(scene->query);
    quern_world_destroy(scene->world);
    free(scene);
}

/* ------------------------------------------------------------------------------ the control: a loop */

static void run_loop(void *state, uint32_t pass_count)
{
    cooling_scene *scene = state;
    for (uint32_t pass = 0; pass < pass_count; pass++) {
        quern_query_iterator it = quern_query_iterate(scene->query);
        while (quern_query_next(&it))
            cool(quern_view_write(&it.view, 0), it.view.count);
        require(it.result);
    }
}

/* -------------------------------------------------------------------------- the subject: a schedule */

static void *open_schedule(const quern_bench_case *asked)
{
    cooling_scene *opened = open_world(asked);
    quern_jobs_def jobs = quern_jobs_def_default();
    jobs.thread_count = asked->thread_count;
    require(quern_jobs_create(&jobs, &opened->jobs));
    require(quern_schedule_create(opened->world, NULL, &opened->schedule));
    const quern_term term = quern_term_write(opened->heat);
    quern_system_def system = quern_system_def_default();
    system.name = "cool";
    system.run = cool_view;
    system.terms = &term;
    system.term_count = 1;
    require(quern_schedule_add_system(opened->schedule, &system, NULL));
    return opened;
}

static void run_schedule(void *state, uint32_t pass_count)
{
    const cooling_scene *scene = state;
    for (uint32_t pass = 0; pass < pass_count; pass++)
        require(quern_schedule_run(scene->schedule, scene->jobs, 1.0 / 60));
}

/* ---------------------------------------------------------------------------------------- the table */

static uint64_t one_for_each(uint32_t entity_count)
{
    return entity_count;
}

static const quern_bench_workload cooling = {
    .name = "cooling",
    .summary = "every item loses a sixteenth of its heat",
    .unit = "item",
    .entity_counts = {1000, 100000},
    .frames = true,
    .bytes_per_entity = sizeof(Heat),
    .operation_count = one_for_each,
    .subjects =
        {
            {.open = open_world, .run = run_loop, .checksum = checksum, .close = close_world},
            {.open = open_schedule, .run = run_schedule, .checksum = checksum, .close = close_world},
        },
    .subject_names = {"loop", "schedule"},
};

static const quern_bench_workload *const workloads[] = {&cooling};

int main(int argc, char **argv)
{
    quern_bench_suite suite = quern_bench_suite_default();
    suite.program = "own_bench";
    suite.summary = "Measures a schedule against a plain loop over a query.";
    suite.workloads = workloads;
    suite.workload_count = sizeof workloads / sizeof workloads[0];
    return quern_bench_main(&suite, argc, argv);
}
