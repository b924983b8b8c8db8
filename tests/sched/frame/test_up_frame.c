/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <string.h>

/* Up-terms in systems: their views, the systems for which they wait, and equal results of a frame on any
 * number of threads. */

enum { TARGETS = 200, SOURCES = 4000, FRAMES = 4 };

static quern_relation parent;
static quern_component number, sum, tag;
static quern_entity targets[TARGETS], sources[SOURCES]; /* every fifth target lacks the number */
static quern_schedule *schedule;
static captured_reports reports;

static void fill_world(void)
{
    random_source random = {11};
    must(quern_relation_register(world, &(quern_relation_def){.name = "belongs to", .levels = true},
                                 &parent));
    number = setup_component(world, "number", 8, 8);
    sum = setup_component(world, "sum", 8, 8);
    tag = setup_tag(world, "tag");
    for (uint32_t i = 0; i < TARGETS; i++) {
        targets[i] = setup_entity_with(world, (quern_component[]){tag, number}, i % 5 == 4 ? 1 : 2);
        if (i % 5 != 4) must(quern_entity_set(world, targets[i], number, &(uint64_t){i}));
    }
    for (uint32_t i = 0; i < SOURCES; i++) {
        sources[i] = setup_entity_with(world, (quern_component[]){sum, number}, 1 + i % 2);
        must(quern_entity_relate(world, sources[i], parent, targets[random_below(&random, TARGETS)]));
    }
}

static void open_world(void)
{
    world = setup_world();
    fill_world();
    schedule = setup_schedule(world);
    capture_reports(&reports);
}

TestSuite(up_frame, .init = open_world, .fini = close_world);

/* Returns the number of the source's target, or 0. */
static uint64_t expected_of(uint32_t source)
{
    const uint64_t *value =
        quern_entity_get(world, quern_entity_target(world, sources[source], parent), number);
    return value != NULL ? *value : 0;
}

static uint64_t sum_of(uint32_t source)
{
    return *(const uint64_t *)quern_entity_get(world, sources[source], sum);
}

/* ----------------------------------------------------------------------------------------------- views */

static void add_up(quern_context *context, const quern_view *view)
{
    uint64_t *sums = QUERN_COLUMN(view, 0, uint64_t);
    const uint64_t *const *up = QUERN_UP(view, 1, uint64_t);
    for (uint32_t i = 0; i < view->count; i++)
        sums[i] += *up[i];
}

static quern_system_def up_def(const char *name, quern_view_callback *run)
{
    return (quern_system_def){
        .name = name, .run = run, .terms = {quern_term_write(sum), quern_term_up(number, parent)}};
}

Test(up_frame, system_reads_values_of_targets)
{
    setup_system(schedule,
                 &(quern_system_def){.name = "add up",
                                     .run = add_up,
                                     .terms = {quern_term_write(sum), quern_term_up(number, parent)}});
    must_run(schedule, NULL);
    must_run(schedule, NULL);
    for (uint32_t i = 0; i < SOURCES; i++)
        cr_assert_eq(sum_of(i), 2 * expected_of(i));
}

static void add_optional(quern_context *context, const quern_view *view)
{
    uint64_t *sums = QUERN_COLUMN(view, 0, uint64_t);
    const uint64_t *const *up = QUERN_UP(view, 1, uint64_t);
    cr_assert_eq(view->first_row, 0u, "no row is left out");
    for (uint32_t i = 0; i < view->count; i++)
        sums[i] += up[i] != NULL ? *up[i] : 1000;
}

Test(up_frame, optional_up_term_gives_null)
{
    quern_system_def def = up_def("add up", add_optional);
    def.terms[1] = quern_term_up_optional(number, parent);
    setup_system(schedule, &def);
    must_run(schedule, NULL);
    for (uint32_t i = 0; i < SOURCES; i++) {
        const bool has = quern_entity_has(world, quern_entity_target(world, sources[i], parent), number);
        cr_assert_eq(sum_of(i), has ? expected_of(i) : 1000u);
    }
}

/* What a callback saw of one chunk. */
typedef struct chunk_partial {
    uint64_t row_count, call_count;
} chunk_partial;

static uint64_t partial_rows, partial_calls;

static void count_partial(quern_context *context, const quern_view *view)
{
    chunk_partial *partial = quern_context_partial(context);
    partial->row_count += view->count;
    partial->call_count++;
}

static void end_partial(quern_context *context)
{
    partial_rows = partial_calls = 0;
    for (uint32_t i = 0; i < quern_context_partial_count(context); i++) {
        const chunk_partial *partial = quern_context_partial_at(context, i);
        partial_rows += partial->row_count;
        partial_calls += partial->call_count;
    }
}

Test(up_frame, the_runs_of_a_chunk_share_a_partial_result)
{
    quern_system_def def = up_def("count", count_partial);
    def.end = end_partial;
    def.partial_bytes = sizeof(chunk_partial);
    const quern_system system = setup_system(schedule, &def);
    must_run(schedule, NULL);
    quern_query *query =
        setup_query(world, (quern_term[]){quern_term_with(sum), quern_term_up(number, parent)}, 2);
    cr_assert_eq(partial_rows, quern_query_count(query));
    cr_assert_lt(partial_rows, (uint64_t)SOURCES);
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, system, &stats));
    cr_assert_gt(partial_calls, stats.view_count, "chunks with unselected rows give several views");
}

/* ------------------------------------------------------------------------------------------- determinism */

/* Creates one entity per row, and one per view. The handles and the drops depend on the order of the
 * streams. */
static void record(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const uint64_t *const *up = QUERN_UP(view, 1, uint64_t);
    for (uint32_t i = 0; i < view->count; i++) {
        const uint64_t value = *up[i] + view->ordinal;
        const void *const values[] = {&value};
        cr_assert_not(quern_entity_is_null(record_entity_with(commands, &number, values, 1)));
        if (*up[i] % 3 == 0) must(quern_commands_add(commands, view->entities[i], tag, NULL));
        if (*up[i] % 7 == 1) must(quern_commands_remove(commands, view->entities[i], sum));
    }
}

static void advance_numbers(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = QUERN_COLUMN(view, 0, uint64_t);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i] = numbers[i] * 5 + 1;
}

static void mark(quern_context *context, const quern_view *view)
{
    uint64_t *sums = QUERN_COLUMN(view, 0, uint64_t);
    for (uint32_t i = 0; i < view->count; i++)
        sums[i] ^= i;
}

static uint64_t hash_after(const quern_schedule_def *style, uint32_t thread_count)
{
    quern_world *const outer = world;
    world = setup_world();
    fill_world();
    quern_schedule *frames = setup_schedule_as(world, *style, 1);
    quern_system_def def = up_def("add up", add_up);
    setup_system(frames, &def);
    def = system_def("mark", mark);
    def.terms[0] = quern_term_write(sum);
    setup_system(frames, &def);
    def = up_def("record", record);
    def.terms[0] = quern_term_read(sum);
    setup_system(frames, &def);
    def = system_def("advance", advance_numbers);
    def.terms[0] = quern_term_write(number);
    setup_system(frames, &def);
    quern_jobs *jobs = setup_jobs(thread_count);
    for (uint32_t i = 0; i < FRAMES; i++)
        must_run(frames, jobs);
    must(quern_world_validate(world));
    const uint64_t hash = quern_world_hash(world);
    quern_jobs_destroy(jobs);
    quern_schedule_destroy(frames);
    quern_world_destroy(world);
    world = outer;
    return hash;
}

Test(up_frame, frames_are_the_same_on_any_number_of_threads_fused_or_not)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < SETTING_COUNT; i++) {
        const frame_setting setting = frame_setting_at(i, 0);
        const quern_schedule_def def = schedule_style(setting.style);
        const uint64_t found = hash_after(&def, setting.thread_count);
        if (hash == 0) hash = found;
        cr_assert_eq(found, hash, "style %u on %u threads", setting.style, setting.thread_count);
    }
}

/* --------------------------------------------------------------------------------------------- conflicts */

Test(up_frame, reader_of_up_term_waits_for_writers_and_shares_no_pass_with_them)
{
    const quern_system writer = setup_writer(schedule, "writer", number);
    quern_system_def def = up_def("up", add_up);
    const quern_system up = setup_system(schedule, &def);
    const quern_system later = setup_writer(schedule, "later", number);
    const quern_system reader = setup_reader(schedule, "reader", number);
    const quern_system fellow = setup_writer(schedule, "fellow", sum);
    must(quern_schedule_compile(schedule));
    cr_assert(quern_schedule_has_edge(schedule, writer, up));
    cr_assert(quern_schedule_has_edge(schedule, up, later));
    cr_assert_not(quern_schedule_has_edge(schedule, up, reader));
    cr_assert_not(quern_schedule_are_fused(schedule, writer, up));
    cr_assert_not(quern_schedule_are_fused(schedule, up, later));
    cr_assert(quern_schedule_are_fused(schedule, up, fellow));
}

Test(up_frame, writing_own_up_term_component_is_refused_unless_serial)
{
    quern_system_def def = up_def("down", add_up);
    def.terms[0] = quern_term_write(number);
    must_refuse(SCHEDULE_CONFLICT, world, quern_schedule_add_system(schedule, &def, NULL));
    cr_assert_not_null(strstr(quern_error_message(), "system 'down' reads 'number' upward by 'belongs to'"),
                       "%s", quern_error_message());
    cr_assert_not_null(strstr(quern_error_message(), ".levels"), "%s", quern_error_message());
    def.flags = QUERN_SYSTEM_SERIAL;
    setup_system(schedule, &def);
    must_run(schedule, NULL);
}

static void look_up(quern_context *context, const quern_view *view)
{
    cr_assert(is_scratch(quern_context_lookup(context, view->entities[0], number), sizeof(uint64_t)));
}

Test(up_frame, up_term_does_not_permit_lookups)
{
    quern_system_def def = up_def("look up", look_up);
    setup_system(schedule, &def);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_not_null(strstr(reports.last, "looked up 'number' without declaring it"), "%s", reports.last);
}

/* ---------------------------------------------------------------- filters, descriptions, permissions */

static uint32_t filtered_calls;

static void count_calls(quern_context *context, const quern_view *view)
{
    filtered_calls += view->count > 0;
}

Test(up_frame, filters_on_the_rows_own_components_leave_chunks_out)
{
    quern_system_def def = up_def("filtered", count_calls);
    def.terms[0] = quern_term_changed(quern_term_read(sum));
    setup_system(schedule, &def);
    filtered_calls = 0;
    must_run(schedule, NULL);
    cr_assert_gt(filtered_calls, 0u);
    filtered_calls = 0;
    must_run(schedule, NULL);
    cr_assert_eq(filtered_calls, 0u);
    must(quern_entity_mark_changed(world, sources[0], sum));
    must_run(schedule, NULL);
    cr_assert_gt(filtered_calls, 0u);
}

static void write_upward(quern_context *context, const quern_view *view)
{
    const uint64_t *const *up = QUERN_UP(view, 1, uint64_t);
    if (view->ordinal == 0) ++*(uint64_t *)(uintptr_t)up[0];
}

Test(up_frame, builds_with_checks_report_writes_to_up_term_values)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    quern_system_def def = up_def("write upward", write_upward);
    setup_system(schedule, &def);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_not_null(strstr(reports.last, "component 'number' was changed in frame 0"), "%s",
                       reports.last);
}

Test(up_frame, descriptions_name_up_terms)
{
    setup_writer(schedule, "writer", number);
    quern_system_def def = up_def("up", add_up);
    def.terms[2] = quern_term_up_make(sum, parent, QUERN_MATCH_OPTIONAL, QUERN_PATH_NEAREST);
    def.flags = QUERN_SYSTEM_SERIAL;
    setup_system(schedule, &def);
    const char *text = described(schedule);
    cr_assert_not_null(strstr(text,
                              "write 'sum', read 'number' upward by 'belongs to', optional read 'sum' "
                              "of the nearest ancestor by 'belongs to'"),
                       "%s", text);
    cr_assert_not_null(strstr(text, "up-term on 'number' written by 'writer' (whole)"), "%s", text);
}

Test(up_frame, missing_memory_for_addresses_refuses_frame)
{
    failing_allocator *memory = failing_allocator_create();
    quern_world *const outer = world;
    must(quern_world_create(&(quern_world_def){.allocator = failing_allocator_interface(memory)}, &world));
    fill_world();
    quern_schedule *frames = setup_schedule(world);
    setup_writer(frames, "writer", number);
    must_run(frames, NULL);
    const quern_system_def def = up_def("up", add_up);
    quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
    uint64_t call = 0;
    for (; result != QUERN_OK; call++) {
        failing_allocator_fail_at(memory, call + 1);
        result = quern_schedule_add_system(frames, &def, NULL);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
    }
    result = QUERN_ERROR_OUT_OF_MEMORY;
    uint64_t refused_count = 0;
    for (call = 0; result != QUERN_OK; call++) {
        failing_allocator_fail_at(memory, call + 1);
        result = quern_schedule_run(frames, NULL, 0);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY);
        refused_count += result != QUERN_OK;
    }
    cr_assert_gt(refused_count, 0u);
    for (uint32_t i = 0; i < SOURCES; i++)
        cr_assert_eq(sum_of(i), expected_of(i), "refused frames called no system");
    failing_allocator_heal(memory);
    quern_schedule_destroy(frames);
    quern_world_destroy(world);
    world = outer;
    failing_allocator_close(memory);
}
