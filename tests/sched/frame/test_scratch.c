/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Scratch memory instead of values that a callback has not declared: callbacks write all of it, like the
 * column, and the world does not change. */

enum { ROWS = 5000, WORKERS = 4 };

typedef struct Place {
    double x, y, z;
} Place;

static quern_component place, weight;
static quern_resource score;
static quern_event hit;
static quern_schedule *schedule;
static failing_allocator *memory;
static captured_reports reports;
static uint64_t hash_before;
/* Callbacks run on any thread, where assertions would be lost. */
static _Atomic uint32_t wrong_count, call_count;

static void open_world(void)
{
    memory = open_failing_world();
    must(QUERN_COMPONENT_REGISTER(world, &place, Place));
    weight = setup_component(world, "weight", 4, 4);
    score = setup_counter(world, "score");
    must(quern_event_register(world, &(quern_event_def){.name = "hit", .size_bytes = 8}, &hit));
    const quern_component both[] = {place, weight};
    must(quern_entity_create_many(world, both, NULL, 2, ROWS, NULL));
    schedule = setup_schedule(world);
    hash_before = quern_world_hash(world);
    wrong_count = call_count = 0;
    capture_reports(&reports);
}

TestSuite(scratch, .init = open_world, .fini = close_world);

static void expect_scratch(const void *values, size_t bytes)
{
    wrong_count += !is_scratch(values, bytes);
}

/* Terms: place and weight, to read. */
static void write_read_columns(quern_context *context, const quern_view *view)
{
    const size_t bytes = view->count * sizeof(Place);
    Place *places = QUERN_COLUMN(view, 0, Place);
    expect_scratch(places, bytes);
    expect_scratch(quern_view_write(view, 1), bytes); /* size of the largest component */
    expect_scratch(QUERN_COLUMN(view, 1, uint64_t), view->count * sizeof(uint64_t));
    expect_scratch(QUERN_COLUMN(view, 9, Place), bytes);
    expect_scratch(QUERN_COLUMN_ROWS(view, 1, float), view->count * sizeof(float));
    for (uint32_t i = 0; i < 8; i++)
        expect_scratch(quern_context_lookup_write(context, view->entities[0], place), sizeof(Place));
    wrong_count += places != QUERN_COLUMN(view, 0, Place);
    for (size_t i = 0; i < bytes; i++)
        wrong_count += ((const unsigned char *)places)[i] != 0xA5; /* later requests have not changed it */
    const Place *real = QUERN_COLUMN(view, 0, const Place);
    for (uint32_t i = 0; i < view->count; i++)
        wrong_count += real[i].x != 0 || real[i].z != 0;
    call_count++;
}

static void write_resource(quern_context *context, const quern_view *view)
{
    expect_scratch(quern_context_resource_write(context, score), sizeof(uint64_t));
    call_count++;
}

/* Each row has one address, of a complete zeroed value. */
static void read_up(quern_context *context, const quern_view *view)
{
    const Place *const *up = QUERN_UP(view, 0, Place), zero = {0};
    for (uint32_t i = 0; i < view->count; i++)
        wrong_count += memcmp(up[i], &zero, sizeof zero) != 0;
    wrong_count += quern_view_up(view, 7) == NULL;
    call_count++;
}

static void read_events(quern_context *context, const quern_view *view)
{
    expect_scratch(QUERN_EVENTS(view, uint64_t), view->count * sizeof(uint64_t));
    expect_scratch(quern_view_events(view), view->count * sizeof(uint64_t));
    call_count++;
}

static quern_system_def offender_def(quern_view_callback *run)
{
    return (quern_system_def){
        .name = "offender", .run = run, .terms = {quern_term_read(place), quern_term_read(weight)}};
}

/* Runs a frame that refuses accesses. The log has one line for the system, and the result has the count. */
static void assert_refused_frame(quern_jobs *jobs, uint32_t least_calls)
{
    const uint32_t calls_before = call_count;
    capture_reports(&reports);
    must_not_run(schedule, jobs, QUERN_ERROR_UNDECLARED_ACCESS);
    assert_message_has("system 'offender' was refused an access (");
    cr_assert_geq(call_count - calls_before, least_calls);
    cr_assert_eq(wrong_count, 0u);
    cr_assert_eq(reports.log_count, 1u, "%u lines", reports.log_count);
    cr_assert_eq(reports.assert_count, quern_has_checks() ? 1u : 0u);
    cr_assert_not_null(strstr(reports.last, "system 'offender'"), "%s", reports.last);
    cr_assert_eq(quern_world_hash(world), hash_before);
    assert_valid(world);
}

static const uint32_t kinds[] = {0, QUERN_SYSTEM_SERIAL, QUERN_SYSTEM_MAIN_THREAD,
                                 QUERN_SYSTEM_WHOLE_CHUNKS};
static quern_view_callback *const offenders[] = {write_read_columns, write_resource, read_up, read_events};

Test(scratch, systems_of_every_kind_write_scratch_on_any_thread_count)
{
    for (uint32_t i = 0; i < COUNT_OF(offenders); i++)
        for (uint32_t k = 0; k < COUNT_OF(kinds); k++) {
            quern_schedule_destroy(schedule);
            schedule = setup_schedule(world);
            quern_system_def def = offender_def(offenders[i]);
            def.flags = kinds[k];
            setup_system(schedule, &def);
            quern_jobs *jobs = setup_jobs((i + k) % WORKERS);
            for (uint32_t frame = 0; frame < 3; frame++)
                assert_refused_frame(jobs, 2);
            quern_jobs_destroy(jobs);
        }
}

/* --------------------------------------------------------------------------------- other callbacks */

Test(scratch, reactions_write_scratch)
{
    for (uint32_t i = 0; i < 2 * COUNT_OF(offenders); i++) {
        quern_schedule_destroy(schedule);
        schedule = setup_schedule(world);
        quern_system_def def = offender_def(offenders[i / 2]);
        def.reacts_to = QUERN_REACT_ADDED | QUERN_REACT_REMOVED;
        def.flags = i % 2 == 0 ? 0 : QUERN_SYSTEM_SERIAL;
        setup_system(schedule, &def);
        const quern_entity entity = setup_entity_with(world, (quern_component[]){place, weight}, 2);
        hash_before = quern_world_hash(world);
        assert_refused_frame(NULL, 1);
        must(quern_entity_destroy(world, entity));
        hash_before = quern_world_hash(world);
        assert_refused_frame(NULL, 1);
    }
}

/* The system has neither terms nor rows: it gets memory for one value. */
static void use_nothing(quern_context *context, const quern_view *view)
{
    expect_scratch(QUERN_COLUMN(view, 0, Place), sizeof(Place));
    expect_scratch(quern_context_lookup(context, quern_entity_null(), place), sizeof(Place));
    expect_scratch(quern_context_resource(context, (quern_resource){0}), QUERN_MAX_COMPONENT_BYTES);
    const Place *const *up = QUERN_UP(view, 0, Place);
    wrong_count += up == NULL || up[0]->z != 0;
    call_count++;
}

Test(scratch, systems_without_rows_and_exclusive_systems_write_scratch)
{
    static const uint32_t flags[] = {0, QUERN_SYSTEM_EXCLUSIVE};
    for (uint32_t i = 0; i < COUNT_OF(flags); i++) {
        quern_schedule_destroy(schedule);
        schedule = setup_schedule(world);
        make_system(schedule, "offender", use_nothing, .flags = flags[i]);
        assert_refused_frame(NULL, 1);
    }
}

static void look_in_begin(quern_context *context)
{
    const quern_entity none[2] = {{0}, {0}};
    const void *values[2] = {NULL, NULL};
    wrong_count += quern_context_lookup_many(context, none, 2, place, values) != 0;
    expect_scratch(values[1], sizeof(Place));
    wrong_count += values[0] != values[1];
    call_count++;
}

static bool agree(quern_context *context)
{
    look_in_begin(context);
    return true;
}

Test(scratch, begin_end_and_condition_write_scratch)
{
    quern_system_def def = offender_def(write_read_columns);
    def.begin = def.end = look_in_begin;
    def.condition = agree;
    setup_system(schedule, &def);
    assert_refused_frame(NULL, 5);
}

Test(scratch, parallel_queries_write_scratch)
{
    quern_query *query =
        setup_query(world, (quern_term[]){quern_term_read(place), quern_term_read(weight)}, 2);
    for (uint32_t i = 0; i < COUNT_OF(offenders) * 2; i++) {
        quern_jobs *jobs = setup_jobs(i % WORKERS);
        capture_reports(&reports);
        cr_assert_eq(quern_query_parallel_for(query, jobs, offenders[i / 2], NULL),
                     QUERN_ERROR_UNDECLARED_ACCESS);
        cr_assert_eq(reports.log_count, 1u, "%u lines", reports.log_count);
        cr_assert_eq(wrong_count, 0u);
        cr_assert_eq(quern_world_hash(world), hash_before);
        quern_jobs_destroy(jobs);
    }
}

static void fill_wrongly(quern_context *context, const quern_view *view)
{
    expect_scratch(QUERN_COLUMN(view, 1, Place), view->count * sizeof(Place));
    expect_scratch(quern_view_write(view, 2), view->count * sizeof(Place));
    expect_scratch(quern_context_resource_write(context, score), sizeof(uint64_t));
    call_count++;
}

Test(scratch, fills_write_scratch)
{
    must(quern_entity_create_filled(world, &weight, 1, ROWS, fill_wrongly, NULL, NULL));
    cr_assert_gt(call_count, 1u);
    cr_assert_eq(wrong_count, 0u);
    cr_assert_eq(reports.log_count, 1u, "%u lines", reports.log_count);
    assert_valid(world);
}

/* ------------------------------------------------------------------------------------- iterations */

/* An outer and an inner iteration of one query: both keep the memory that they were given. */
Test(scratch, nested_iterations_write_scratch)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(place)}, 1);
    for (quern_query_iterator outer = quern_query_iterate(query); quern_query_next(&outer);) {
        const size_t bytes = outer.view.count * sizeof(Place);
        Place *places = QUERN_COLUMN(&outer.view, 0, Place);
        cr_assert(is_scratch(places, bytes));
        for (quern_query_iterator inner = quern_query_iterate(query); quern_query_next(&inner);)
            cr_assert(is_scratch(QUERN_COLUMN(&inner.view, 0, Place), inner.view.count * sizeof(Place)));
        for (size_t i = 0; i < bytes; i++)
            cr_assert_eq(((const unsigned char *)places)[i], 0xA5);
    }
    cr_assert_eq(quern_world_hash(world), hash_before);
}

/* An iteration does not keep the memory of views that it has left. */
Test(scratch, iteration_frees_scratch_of_left_views)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(place)}, 1);
    uint64_t first_bytes = 0;
    quern_query_iterator it = quern_query_iterate(query);
    for (uint32_t i = 0; quern_query_next(&it); i++) {
        cr_assert(is_scratch(QUERN_COLUMN(&it.view, 0, Place), it.view.count * sizeof(Place)));
        const uint64_t bytes = failing_allocator_outstanding_bytes(memory);
        if (i == 0) first_bytes = bytes;
        cr_assert_leq(bytes, first_bytes);
    }
}

/* ----------------------------------------------------------------------------------- parallel loops */

static const quern_view *shared_view;

static void write_part(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index)
{
    Place *places = QUERN_COLUMN(shared_view, 0, Place);
    const Place *const *up = QUERN_UP(shared_view, 0, Place);
    for (uint32_t i = begin; i < end; i++) {
        wrong_count += places[i].x != 0 || up[i]->x != 0;
        places[i] = (Place){1, 2, 3};
    }
}

static void write_in_parallel(quern_context *context, const quern_view *view)
{
    shared_view = view;
    must(quern_jobs_parallel_for(quern_context_jobs(context), view->count, 16, write_part, NULL));
    call_count++;
}

Test(scratch, jobs_of_parallel_loop_in_callback_write_scratch)
{
    quern_system_def def = offender_def(write_in_parallel);
    def.flags = QUERN_SYSTEM_SERIAL;
    setup_system(schedule, &def);
    quern_jobs *jobs = setup_jobs(WORKERS);
    for (uint32_t i = 0; i < 20; i++)
        assert_refused_frame(jobs, 2);
    quern_jobs_destroy(jobs);
}

/* ------------------------------------------------------------------------------------ counts and ends */

static uint32_t look_count;

static void look_often(quern_context *context)
{
    for (uint32_t i = 0; i < look_count; i++)
        (void)quern_context_lookup(context, quern_entity_null(), place);
}

Test(scratch, result_counts_refused_accesses_of_this_frame)
{
    quern_system_def innocent = system_def("innocent", NULL), def = system_def("offender", NULL),
                     other = system_def("other", NULL);
    innocent.begin = idle_callback;
    def.begin = other.end = look_often;
    setup_system(schedule, &innocent);
    setup_system(schedule, &def);
    const quern_system second = setup_system(schedule, &other);
    for (look_count = 1; look_count < 200; look_count *= 3) {
        char words[128];
        snprintf(words, sizeof words,
                 "'offender' was refused an access (%u in this frame), as were 1 other", look_count);
        capture_reports(&reports);
        must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
        assert_message_has(words);
        cr_assert_eq(reports.log_count, 2u, "one line for each system");
    }
    must(quern_schedule_set_system_enabled(schedule, second, false));
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_null(strstr(quern_error_message(), "other"), "%s", quern_error_message());
    look_count = 0;
    must_run(schedule, NULL);
}

static void look_many_times(quern_context *context)
{
    const uint64_t bytes = failing_allocator_outstanding_bytes(memory);
    (void)quern_context_lookup(context, quern_entity_null(), (quern_component){0});
    const uint64_t more_bytes = failing_allocator_outstanding_bytes(memory);
    cr_assert_gt(more_bytes, bytes);
    for (uint32_t i = 0; i < 1000; i++)
        (void)quern_context_lookup(context, quern_entity_null(), (quern_component){0});
    cr_assert_eq(failing_allocator_outstanding_bytes(memory), more_bytes, "lookups share one value");
}

Test(scratch, scratch_is_freed_when_callback_returns)
{
    make_system(schedule, "offender", NULL, .begin = look_many_times);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    const uint64_t bytes = failing_allocator_outstanding_bytes(memory);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_eq(failing_allocator_outstanding_bytes(memory), bytes);
}

static void ask_without_memory(quern_context *context, const quern_view *view)
{
    failing_allocator_fail_from(memory, 1);
    wrong_count += QUERN_COLUMN(view, 0, Place) != NULL;
    wrong_count += quern_view_up(view, 0) != NULL;
    wrong_count += quern_context_lookup(context, view->entities[0], place) != NULL;
    wrong_count += quern_context_resource(context, score) != NULL;
    failing_allocator_heal(memory);
    call_count++;
}

Test(scratch, scratch_is_null_without_memory)
{
    const quern_system_def def = offender_def(ask_without_memory);
    setup_system(schedule, &def);
    assert_refused_frame(NULL, 2);
}

static void write_undeclared(quern_context *context, const quern_view *view)
{
    QUERN_COLUMN(view, 0, Place)[0].x = 1;
}

/* Runs in a child process, like a program without handlers. */
static int run_in_child(void)
{
    int status = 0;
    const pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        quern_log_set_handler(NULL, NULL);
        quern_assert_set_handler(NULL, NULL);
        _exit(quern_schedule_run(schedule, NULL, 0) == QUERN_ERROR_UNDECLARED_ACCESS ? 42 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

Test(scratch, builds_with_checks_stop_and_others_continue)
{
    const quern_system_def def = offender_def(write_undeclared);
    setup_system(schedule, &def);
    const int status = run_in_child();
    if (quern_has_checks())
        cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    else
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}
