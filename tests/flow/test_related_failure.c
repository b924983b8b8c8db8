/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"

/* Frames and parallel queries over related entities in which each allocation fails once. Commands
 * relate, create related entities and destroy; systems run by level, read targets, and visit the
 * children of one entity. A failure must be reported and leave a valid world. With memory, the next
 * frame must have the expected result. */

enum { NODES = 60, CHAIN = 20, NEW = 1000 };

static failing_allocator *memory;
static quern_world *world;
static quern_relation parent, carrier, likes;
static quern_component number, sum, mark;
static quern_entity nodes[NODES];
static quern_schedule *schedule;
static quern_jobs *jobs;
static quern_query *sums;

/* Terms: number (read). */
static void change(quern_context *context, const quern_view *view)
{
    const uint64_t *numbers = QUERN_COLUMN(view, 0, const uint64_t);
    quern_commands *commands = quern_context_commands(context);
    const uint64_t frame = quern_context_frame_index(context);
    for (uint32_t i = 0; i < view->count; i++) {
        const quern_entity entity = view->entities[i], other = nodes[(numbers[i] * 7 + frame) % NODES];
        const quern_component components[] = {number, sum, quern_relation_component(parent)};
        const void *const values[] = {&(uint64_t){NEW}, NULL, &entity};
        quern_commands_relate(commands, entity, likes, other);
        if (numbers[i] % 4 == 0) quern_commands_unrelate(commands, other, likes);
        if (numbers[i] % 4 == 1) quern_commands_unrelate_from(commands, other, likes, entity);
        if (numbers[i] == NEW)
            quern_commands_destroy(commands, entity);
        else if (numbers[i] % 3 == 0)
            quern_commands_relate(commands, entity, parent, other);
        else if (numbers[i] % 3 == 1)
            quern_commands_relate(commands, entity, carrier, other);
        else
            record_entity_with(commands, components, values, 3);
    }
}

/* Terms: sum (write), number (read), sum of the target (optional). */
static void add_up(quern_context *context, const quern_view *view)
{
    uint64_t *sums_here = QUERN_COLUMN(view, 0, uint64_t);
    const uint64_t *numbers = QUERN_COLUMN(view, 1, const uint64_t);
    const uint64_t *const *above = QUERN_UP(view, 2, uint64_t);
    for (uint32_t i = 0; i < view->count; i++)
        sums_here[i] = numbers[i] + (above[i] != NULL ? *above[i] : 0);
}

/* Terms: mark (write). */
static void mark_rows(quern_context *context, const quern_view *view)
{
    uint64_t *marks = QUERN_COLUMN(view, 0, uint64_t);
    for (uint32_t i = 0; i < view->count; i++)
        marks[i]++;
}

/* Terms: sum (read), number of the nearest carrier. Runs in a parallel query and unrelates some rows
 * from their carriers. */
static void unrelate_some(quern_context *context, const quern_view *view)
{
    const uint64_t *const *above = QUERN_UP(view, 1, uint64_t);
    for (uint32_t i = 0; i < view->count; i++)
        if (*above[i] % 2 == 0)
            quern_commands_unrelate(quern_context_commands(context), view->entities[i], carrier);
}

static void add_systems(void)
{
    quern_system_def def = system_def("change", change);
    def.terms[0] = quern_term_read(number);
    setup_system(schedule, &def);
    def = system_def("add up", add_up);
    def.phase = 1;
    def.terms[0] = quern_term_write(sum);
    def.terms[1] = quern_term_read(number);
    def.terms[2] = quern_term_up_optional(sum, parent);
    def.levels = parent;
    setup_system(schedule, &def);
    def = system_def("mark children", mark_rows);
    def.phase = 1;
    def.terms[0] = quern_term_write(mark);
    def.terms[1] = quern_term_target(parent, nodes[0]);
    setup_system(schedule, &def);
    def.name = "mark fans";
    def.terms[1] = quern_term_target(likes, nodes[0]);
    setup_system(schedule, &def);
}

static void open_nodes(uint32_t thread_count)
{
    memory = failing_allocator_create();
    world = make_world(.allocator = failing_allocator_interface(memory));
    parent = quern_world_parent(world);
    carrier = make_relation(world, .name = "carrier", .on_target_destroyed = QUERN_TARGET_UNRELATES);
    likes =
        make_relation(world, .name = "likes", .on_target_destroyed = QUERN_TARGET_UNRELATES, .many = true);
    number = setup_component(world, "number", 8, 8);
    sum = setup_component(world, "sum", 8, 8);
    mark = setup_component(world, "mark", 8, 8);
    for (uint64_t i = 0; i < NODES; i++) {
        nodes[i] = setup_entity_with(world, (quern_component[]){number, sum, mark}, i % 2 == 0 ? 3 : 2);
        must(quern_entity_set(world, nodes[i], number, &i));
        if (i > 0) must(quern_entity_relate(world, nodes[i], parent, nodes[i < CHAIN ? i - 1 : i / 3]));
        if (i % 7 == 3) must(quern_entity_relate(world, nodes[i], likes, nodes[0]));
        if (i % 5 == 1) must(quern_entity_relate(world, nodes[i], carrier, nodes[i - 1]));
    }
    const quern_term terms[] = {quern_term_read(sum), quern_term_up_nearest(number, carrier)};
    sums = setup_query(world, terms, 2);
    schedule = setup_phases(world, 2);
    add_systems();
    jobs = setup_jobs(thread_count);
}

static void close_nodes(void)
{
    quern_query_destroy(sums);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
    failing_allocator_close(memory);
}

static void check_sums(void)
{
    quern_query *all = setup_query(world, (quern_term[]){quern_term_read(number), quern_term_read(sum)}, 2);
    quern_query_iterator it = quern_query_iterate(all);
    while (quern_query_next(&it)) {
        const uint64_t *numbers = QUERN_COLUMN(&it.view, 0, const uint64_t);
        const uint64_t *found = QUERN_COLUMN(&it.view, 1, const uint64_t);
        for (uint32_t i = 0; i < it.view.count; i++) {
            const quern_entity above = quern_entity_target(world, it.view.entities[i], parent);
            const uint64_t *value =
                quern_entity_is_null(above) ? NULL : quern_entity_get(world, above, sum);
            cr_assert_eq(found[i], numbers[i] + (value != NULL ? *value : 0));
        }
    }
    must(it.result);
    quern_query_destroy(all);
}

static quern_result run_frame(void)
{
    return quern_schedule_run(schedule, jobs, 0.25);
}

static quern_result run_parallel(void)
{
    return quern_query_parallel_for(sums, jobs, unrelate_some, NULL);
}

/* Makes each allocation of a call fail once, each time in a new world in which some frames have run.
 * Returns the number of allocations. */
static uint64_t refuse_each(quern_result (*call)(void), uint32_t frame_count, uint32_t thread_count)
{
    for (uint64_t refused = 1;; refused++) {
        open_nodes(thread_count);
        for (uint32_t i = 0; i < frame_count; i++)
            must(run_frame());
        failing_allocator_fail_at(memory, refused);
        const quern_result result = call();
        const bool has_failed = failing_allocator_failed_count(memory) > 0;
        failing_allocator_heal(memory);
        assert_valid(world);
        cr_assert(result == QUERN_OK || (has_failed && result == QUERN_ERROR_OUT_OF_MEMORY), "%llu: %s",
                  (unsigned long long)refused, quern_error_message());
        must(run_parallel());
        must(run_frame());
        assert_valid(world);
        check_sums();
        close_nodes();
        if (!has_failed) return refused - 1;
    }
}

Test(related_failure, first_frame_survives_each_refused_allocation, .timeout = 300)
{
    runs_on_one_thread();
    cr_assert_gt(refuse_each(run_frame, 0, 0), 60u);
}

Test(related_failure, later_frame_on_threads_survives_each_refused_allocation, .timeout = 300)
{
    cr_assert_gt(refuse_each(run_frame, 2, 3), 5u);
}

Test(related_failure, parallel_query_reports_a_refused_allocation_and_can_be_repeated, .timeout = 300)
{
    cr_assert_gt(refuse_each(run_parallel, 1, 2), 5u);
}
