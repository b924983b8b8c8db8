/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "tests/sched/frame/reactions_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/tracked.h"

#include <string.h>

/* Reactions in schedules: what they are shown and when, their order and rounds, and what is refused. */

TestSuite(reactions, .fini = close_valid_world);

Test(reactions, rows_added_by_calls_are_shown_once_at_next_frame_begin)
{
    open_world();
    add_note("watch", QUERN_REACT_ADDED);
    const quern_entity first = with_health(1), second = with_health(2);
    cr_assert_eq(list_count, 0);
    frame();
    cr_assert_eq(list_count, 2);
    assert_shown(0, QUERN_REACT_ADDED, first, 1);
    assert_shown(1, QUERN_REACT_ADDED, second, 2);
    frame();
    cr_assert_eq(list_count, 0);
}

static uint32_t count_when_second_phase_begins;

static void look_at_list(quern_context *context)
{
    cr_assert_eq(quern_context_reaction(context), 0);
    count_when_second_phase_begins = list_count;
}

Test(reactions, rows_added_by_commands_are_shown_after_their_sync_point)
{
    open_world();
    make_system(schedule, "create", NULL, .begin = create_with_health);
    make_system(schedule, "look", NULL, .begin = look_at_list, .phase = 1);
    add_note("watch", QUERN_REACT_ADDED);
    frame();
    cr_assert_eq(list_count, 1);
    cr_assert_eq(count_when_second_phase_begins, 1);
    cr_assert_eq(list[0].value, 7);
}

Test(reactions, rows_set_by_calls_and_commands_are_shown_but_not_view_writes)
{
    open_world();
    const quern_entity entity = with_health(1);
    add_note("watch", QUERN_REACT_SET);
    make_system(schedule, "heal", heal_all, .terms = {quern_term_write(health)});
    frame();
    cr_assert_eq(list_count, 0);
    must(quern_entity_set(world, entity, health, &(uint64_t){5}));
    must(quern_entity_set(world, entity, health, &(uint64_t){6}));
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_REACT_SET, entity, 6);
    must(quern_entity_mark_changed(world, entity, health));
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_REACT_SET, entity, 106);
    must(quern_entity_add(world, entity, damage, &(uint64_t){1}));
    frame();
    cr_assert_eq(list_count, 0, "it does not look at the damage");
}

Test(reactions, row_that_was_added_and_set_is_shown_as_added)
{
    open_world();
    add_note("watch", QUERN_REACT_ADDED | QUERN_REACT_SET);
    const quern_entity entity = with_health(1);
    must(quern_entity_set(world, entity, health, &(uint64_t){2}));
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_REACT_ADDED, entity, 2);
}

Test(reactions, removed_rows_are_shown_with_old_values_before_added_rows)
{
    open_world();
    const quern_entity first = with_health(1), second = with_health(2);
    add_note("watch", QUERN_REACT_ADDED | QUERN_REACT_REMOVED);
    const quern_entity third = with_health(3);
    must(quern_entity_destroy(world, first));
    must(quern_entity_remove(world, second, health));
    must(quern_entity_set(world, second, health, &(uint64_t){4}));
    frame();
    cr_assert_eq(list_count, 4);
    assert_shown(0, QUERN_REACT_REMOVED, first, 1);
    assert_shown(1, QUERN_REACT_REMOVED, second, 2);
    cr_assert_eq(list[2].kind, QUERN_REACT_ADDED);
    cr_assert_eq(list[3].kind, QUERN_REACT_ADDED);
    cr_assert(quern_entity_equal(list[2].entity, third) || quern_entity_equal(list[3].entity, third));
    cr_assert_not(quern_entity_is_alive(world, list[0].entity));
}

Test(reactions, rows_added_and_removed_between_rounds_are_not_shown)
{
    open_world();
    add_note("watch", QUERN_REACT_ADDED | QUERN_REACT_REMOVED);
    must(quern_entity_destroy(world, with_health(1)));
    frame();
    cr_assert_eq(list_count, 0);
}

static void write_gone(quern_context *context, const quern_view *view)
{
    if (quern_context_reaction(context) == QUERN_REACT_REMOVED)
        cr_assert(is_scratch(quern_view_write(view, 0), view->count * sizeof(uint64_t)));
}

Test(reactions, copies_of_removed_rows_are_read_only)
{
    open_world();
    const quern_entity entity = with_health(1);
    make_system(schedule, "write", write_gone, .terms = {quern_term_write(health)},
                .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_REMOVED);
    must(quern_entity_destroy(world, entity));
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_eq(reports.log_count, 1);
}

Test(reactions, present_rows_count_as_added_on_request)
{
    open_world();
    const quern_entity entity = with_health(1);
    add_note("late", QUERN_REACT_ADDED);
    add_note("present", QUERN_REACT_ADDED | QUERN_REACT_PRESENT);
    frame();
    cr_assert_eq(list_count, 1);
    assert_shown(0, QUERN_REACT_ADDED, entity, 1);
    cr_assert_str_eq(list[0].name, "present");
}

static uint64_t partial_sum;
static uint32_t partial_count, begin_count;

static void begin_partials(quern_context *context)
{
    begin_count++;
}

static void end_partials(quern_context *context)
{
    partial_count = quern_context_partial_count(context);
    for (uint32_t i = 0; i < partial_count; i++)
        partial_sum += *(const uint64_t *)quern_context_partial_at(context, i);
}

Test(reactions, runs_of_a_chunk_share_its_ordinal_and_partial_result)
{
    for (uint32_t pool = 0; pool < POOL_COUNT; pool++) {
        open_world();
        create_values(20000);
        const quern_system system = make_system(
            schedule, "sum", add_up, .terms = {quern_term_read(health)}, .reacts_to = QUERN_REACT_SET,
            .partial_bytes = sizeof(uint64_t), .begin = begin_partials, .end = end_partials);
        quern_query *query =
            setup_query(world, &(quern_term){.component = health, .access = QUERN_ACCESS_READ}, 1);
        uint64_t expected = 0;
        uint32_t chunk_count = 0, row_number = 0;
        for (quern_query_iterator iterator = quern_query_iterate(query); quern_query_next(&iterator);) {
            chunk_count++;
            for (uint32_t i = 0; i < iterator.view.count; i++, row_number++)
                if (row_number % 3 == 0) {
                    must(quern_entity_mark_changed(world, iterator.view.entities[i], health));
                    expected += ((const uint64_t *)quern_view_read(&iterator.view, 0))[i];
                }
        }
        quern_query_destroy(query);
        parallel_sum = 0;
        parallel_views = 0;
        partial_sum = partial_count = begin_count = 0;
        quern_jobs *jobs = setup_jobs(pool_threads[pool]);
        must_run(schedule, jobs);
        cr_assert_eq(parallel_sum, expected);
        cr_assert_eq(partial_sum, expected);
        cr_assert_eq(partial_count, chunk_count);
        cr_assert_gt(parallel_views, chunk_count);
        cr_assert_eq(begin_count, 1);
        quern_system_stats stats;
        must(quern_schedule_get_system_stats(schedule, system, &stats));
        cr_assert_eq(stats.view_count, chunk_count);
        cr_assert_eq(stats.entity_count, (20000 + 2) / 3);
        must_run(schedule, jobs);
        cr_assert_eq(begin_count, 1, "nothing happened");
        must(quern_schedule_get_system_stats(schedule, system, &stats));
        cr_assert_eq(stats.view_count, 0);
        cr_assert_eq(stats.entity_count, 0);
        quern_jobs_destroy(jobs);
        close_valid_world();
    }
}

static void read_up(quern_context *context, const quern_view *view)
{
    const void *const *above = quern_view_up(view, 1);
    for (uint32_t i = 0; i < view->count; i++)
        atomic_fetch_add(&parallel_sum, above[i] != NULL ? *(const uint64_t *)above[i] : 1);
}

Test(reactions, rows_that_were_added_may_read_upward)
{
    open_world();
    quern_relation parent;
    must(quern_relation_register(world, &(quern_relation_def){.name = "belongs to"}, &parent));
    make_system(schedule, "up", read_up,
                .terms = {quern_term_with(damage), quern_term_up_optional(health, parent)},
                .reacts_to = QUERN_REACT_ADDED);
    const quern_entity target = with_health(30);
    for (uint32_t i = 0; i < 3; i++) {
        const quern_entity source = setup_entity_with(world, &damage, 1);
        if (i != 1) must(quern_entity_relate(world, source, parent, target));
    }
    parallel_sum = 0;
    frame();
    cr_assert_eq(parallel_sum, 61);
}

/* Reactions in descriptions, profiles and traces; refused definitions; missing memory. */

/* ------------------------------------------------------------------------- descriptions, profiles, traces */

TestSuite(reactions_seen, .fini = close_valid_world);

Test(reactions_seen, description_lists_reaction_segments_after_phases)
{
    open_world();
    quern_system_def def = note_def("watch", QUERN_REACT_ADDED | QUERN_REACT_REMOVED | QUERN_REACT_PRESENT);
    def.phase = 1;
    setup_system(schedule, &def);
    const char *text = described(schedule);
    const char *heading = strstr(text, "reactions, in at most 8 rounds after each sync point\n");
    cr_assert_not_null(heading, "%s", text);
    cr_assert_not_null(
        strstr(heading, "'watch': read 'health'; reacts to added, removed, present; of phase 'p1'"), "%s",
        text);
    static char json[65536];
    quern_text_buffer buffer = {json, sizeof json, 0};
    must(quern_schedule_describe(schedule, QUERN_DESCRIBE_JSON, quern_sink_text(&buffer)));
    cr_assert_not_null(strstr(json, "\"reactions\":"), "%s", json);
    cr_assert_not_null(strstr(json, "\"max_rounds\":"), "%s", json);
    cr_assert_not_null(strstr(json, "\"reacts_to\":"), "%s", json);
}

Test(reactions_seen, description_without_reactions_omits_them)
{
    open_world();
    setup_reader(schedule, "read", health);
    cr_assert_null(strstr(described(schedule), "reaction"));
}

Test(reactions_seen, profile_has_times_and_trace_has_views_of_reactions)
{
    quern_trace *trace;
    must(quern_trace_create(&(quern_trace_def){.track_count = 2}, &trace));
    open_as((quern_schedule_def){.trace = trace}, 1);
    const quern_system system = make_system(schedule, "sum", add_up, .terms = {quern_term_read(health)},
                                            .reacts_to = QUERN_REACT_ADDED, .partial_bytes = 8);
    quern_trace_start(trace);
    must(quern_schedule_set_profiling(schedule, true));
    quern_jobs *jobs = setup_jobs(2);
    uint64_t time_ns = 0;
    for (uint32_t i = 0; i < 20; i++) {
        create_values(20000);
        must_run(schedule, jobs);
        quern_system_stats stats;
        must(quern_schedule_get_system_stats(schedule, system, &stats));
        cr_assert_eq(stats.entity_count, 20000);
        time_ns += stats.time_ns;
    }
    cr_assert_gt(time_ns, 0u);
    quern_trace_stop(trace);
    static char text[1 << 22];
    quern_text_buffer buffer = {text, sizeof text, 0};
    must(quern_trace_write(trace, quern_sink_text(&buffer)));
    cr_assert_not_null(strstr(text, "\"cat\":\"pass\",\"name\":\"sum\""), "%.2000s", text);
    quern_jobs_destroy(jobs);
    close_valid_world();
    quern_trace_destroy(trace);
}

Test(reactions_seen, capture_has_tasks_for_removed_and_for_added_rows)
{
    open_world();
    const quern_entity entity = with_health(1);
    add_note("watch", QUERN_REACT_ADDED | QUERN_REACT_REMOVED);
    must(quern_entity_destroy(world, entity));
    create_values(5000);
    quern_frame_capture *capture;
    must(quern_frame_capture_create(NULL, &capture));
    list_count = 0;
    quern_jobs *jobs = setup_jobs(2);
    must(quern_schedule_run_captured(schedule, jobs, 0, capture));
    cr_assert_eq(list_count, 5001);
    assert_shown(0, QUERN_REACT_REMOVED, entity, 1);
    quern_jobs_destroy(jobs);
    quern_frame_capture_destroy(capture);
}

/* ---------------------------------------------------------------------------------- refused definitions */

static void must_not_add(const quern_system_def *def, const char *reason)
{
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, def, NULL));
    assert_message_has(reason);
}

Test(reactions_seen, declarations_unfit_for_reactions_are_refused)
{
    open_world();
    quern_relation parent;
    must(quern_relation_register(world, &(quern_relation_def){.name = "belongs to", .levels = true},
                                 &parent));
    quern_system_def def = note_def("wrong", QUERN_REACT_ADDED);
    def.terms[0] = (quern_term){0};
    must_not_add(&def, "no terms");
    def = note_def("wrong", 16);
    must_not_add(&def, "unknown kinds");
    def = note_def("wrong", QUERN_REACT_PRESENT | QUERN_REACT_SET);
    must_not_add(&def, "QUERN_REACT_PRESENT without QUERN_REACT_ADDED");
    def = note_def("wrong", QUERN_REACT_ADDED);
    def.interval_seconds = 1;
    must_not_add(&def, "an interval");
    def = note_def("wrong", QUERN_REACT_ADDED);
    def.levels = parent;
    must_not_add(&def, "levels");
    def = note_def("wrong", QUERN_REACT_ADDED);
    def.terms[0] = quern_term_changed(def.terms[0]);
    must_not_add(&def, "a change filter");
    def = note_def("wrong", QUERN_REACT_ADDED);
    def.terms[1] = quern_term_target(parent, (quern_entity){0});
    must_not_add(&def, "a target term");
    def = note_def("wrong", QUERN_REACT_ADDED | QUERN_REACT_REMOVED);
    def.terms[1] = quern_term_up_optional(damage, parent);
    must_not_add(&def, "an up-term");
    def = note_def("wrong", QUERN_REACT_ADDED);
    def.terms[1] = quern_term_up(damage, parent);
    must_not_add(&def, "a required up-term");
    def = note_def("wrong", QUERN_REACT_SET);
    def.terms[1] = quern_term_up_nearest(damage, parent);
    must_not_add(&def, "a required up-term");
    def = note_def("wrong", QUERN_REACT_REMOVED);
    def.terms[0] = quern_term_write(health);
    must_not_add(&def, "a term to write");
    def = note_def("wrong", QUERN_REACT_ADDED);
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    def.partial_bytes = 8;
    must_not_add(&def, "exclusive");
    def = note_def("right", QUERN_REACT_ADDED | QUERN_REACT_SET);
    def.terms[1] = quern_term_up_optional(damage, parent);
    def.terms[2] = quern_term_up_make(health, parent, QUERN_MATCH_OPTIONAL, QUERN_PATH_NEAREST);
    setup_system(schedule, &def);
}

Test(reactions_seen, components_without_copy_hook_cannot_be_shown_as_removed)
{
    open_world();
    static atomic_llong live;
    const quern_component box = owned_register(world, "box", &live);
    quern_system_def def = note_def("wrong", QUERN_REACT_REMOVED);
    def.terms[1] = quern_term_read(box);
    must_not_add(&def, "'box'");
    def.terms[1] = quern_term_with(box);
    setup_system(schedule, &def);
}

Test(reactions_seen, reactions_are_ordered_among_themselves)
{
    open_world();
    setup_reader(schedule, "plain", health);
    quern_system_def def = note_def("watch", QUERN_REACT_ADDED);
    def.after[0] = "plain";
    setup_system(schedule, &def);
    cr_assert_eq(quern_schedule_compile(schedule), QUERN_ERROR_SCHEDULE_CONFLICT);
    assert_message_has("reactions run at sync points");
}

Test(reactions_seen, before_and_after_name_reactions_of_one_phase)
{
    open_world();
    add_note("watch", QUERN_REACT_ADDED);
    quern_system_def def = note_def("late", QUERN_REACT_ADDED);
    def.phase = 1;
    def.before[0] = "watch";
    setup_system(schedule, &def);
    cr_assert_eq(quern_schedule_compile(schedule), QUERN_ERROR_SCHEDULE_CONFLICT);
}

/* ------------------------------------------------------------------------------------------ missing memory */

static _Atomic uint64_t added_count, removed_count;

static void tally(quern_context *context, const quern_view *view)
{
    const tracked *values = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        cr_assert(values == NULL || tracked_is_live(&values[i]));
    _Atomic uint64_t *count =
        quern_context_reaction(context) == QUERN_REACT_REMOVED ? &removed_count : &added_count;
    atomic_fetch_add(count, view->count);
}

/* Fails every allocation of a program once: pending changes are shown later, exactly once. */
static bool play_with_failure(uint64_t failing_call, quern_jobs *jobs)
{
    static tracked_counts counts;
    memset((void *)&counts, 0, sizeof counts);
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator interface = failing_allocator_interface(memory);
    const quern_world_def world_def = {.allocator = interface};
    must(quern_world_create(&world_def, &world));
    const quern_component type = tracked_register(world, "tracked", &counts);
    const quern_component other = setup_component(world, "other", 8, 8);
    schedule = setup_schedule(world);
    added_count = removed_count = 0;
    quern_system_def def = system_def("tally", tally);
    def.terms[0] = quern_term_read(type);
    def.reacts_to = QUERN_REACT_ADDED | QUERN_REACT_REMOVED;
    def.partial_bytes = 8;
    failing_allocator_fail_at(memory, failing_call);
    quern_system first, second;
    while (quern_schedule_add_system(schedule, &def, &first) == QUERN_ERROR_OUT_OF_MEMORY)
        ;
    def.name = "tally too";
    while (quern_schedule_add_system(schedule, &def, &second) == QUERN_ERROR_OUT_OF_MEMORY)
        ;
    enum { COUNT = 700 };
    quern_entity entities[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        const quern_component components[] = {type, other};
        while (quern_entity_create_with(world, components, NULL, 1 + i % 2, &entities[i]) ==
               QUERN_ERROR_OUT_OF_MEMORY)
            ;
    }
    while (quern_schedule_run(schedule, jobs, 0) == QUERN_ERROR_OUT_OF_MEMORY)
        ;
    cr_assert_eq(added_count, 2 * COUNT);
    for (uint32_t i = 0; i < COUNT; i += 2)
        while (quern_entity_destroy(world, entities[i]) == QUERN_ERROR_OUT_OF_MEMORY)
            ;
    for (uint32_t i = 1; i < COUNT; i += 2)
        while (quern_entity_remove(world, entities[i], type) == QUERN_ERROR_OUT_OF_MEMORY)
            ;
    while (quern_schedule_run(schedule, jobs, 0) == QUERN_ERROR_OUT_OF_MEMORY)
        ;
    cr_assert_eq(added_count, 2 * COUNT);
    cr_assert_eq(removed_count, 2 * COUNT);
    assert_valid(world);
    const bool has_failed = failing_allocator_failed_count(memory) > 0;
    close_world();
    cr_assert_eq(tracked_live_count(&counts), 0);
    cr_assert_eq(atomic_load(&counts.broken_count), 0);
    failing_allocator_close(memory);
    return has_failed;
}

Test(reactions_seen, changes_are_shown_once_whatever_allocation_fails, .timeout = 300)
{
    quern_jobs *jobs = setup_jobs(2);
    uint64_t failing_call = 1;
    while (play_with_failure(failing_call, failing_call % 2 == 0 ? jobs : NULL))
        failing_call++;
    cr_assert_gt(failing_call, 20u);
    quern_jobs_destroy(jobs);
}

/* ------------------------------------------------------------------------------------------ old values */

/* Old terms of systems: their columns, and wrong definitions. */

TestSuite(reactions_old, .init = open_world, .fini = close_valid_world);

typedef struct seen_row {
    uint32_t kind;
    uint64_t now, old; /* old: UINT64_MAX if the column is NULL */
} seen_row;

static seen_row seen[16];
static uint32_t seen_count;

static void compare_with_old(quern_context *context, const quern_view *view)
{
    const uint64_t *now = QUERN_COLUMN(view, 1, const uint64_t);
    const uint64_t *old = QUERN_COLUMN(view, 0, const uint64_t);
    cr_assert_eq((const void *)old, quern_view_read(view, 0));
    for (uint32_t i = 0; i < view->count; i++)
        seen[seen_count++] = (seen_row){.kind = quern_context_reaction(context),
                                        .now = now[i],
                                        .old = old != NULL ? old[i] : UINT64_MAX};
}

static quern_system_def old_def(void)
{
    return (quern_system_def){.name = "compare",
                              .run = compare_with_old,
                              .terms = {quern_term_old(health), quern_term_read(health)},
                              .reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED,
                              .flags = QUERN_SYSTEM_SERIAL};
}

static void expect_seen(uint32_t i, uint32_t kind, uint64_t now, uint64_t old)
{
    cr_assert_lt(i, seen_count);
    cr_assert_eq(seen[i].kind, kind);
    cr_assert_eq(seen[i].now, now);
    cr_assert_eq(seen[i].old, old, "%llu", (unsigned long long)seen[i].old);
}

Test(reactions_old, columns_are_old_in_views_of_set_rows_alone)
{
    const quern_system_def def = old_def();
    setup_system(schedule, &def);
    quern_entity entities[4];
    for (uint64_t i = 0; i < 4; i++)
        entities[i] = with_health(i);
    must(quern_world_react(world, NULL));
    cr_assert_eq(seen_count, 4u);
    for (uint32_t i = 0; i < 4; i++)
        expect_seen(i, QUERN_REACT_ADDED, i, UINT64_MAX);
    seen_count = 0;
    must(quern_entity_set(world, entities[1], health, &(uint64_t){11}));
    must(quern_entity_set(world, entities[3], health, &(uint64_t){13}));
    must(quern_entity_destroy(world, entities[0]));
    must(quern_world_react(world, NULL));
    cr_assert_eq(seen_count, 3u);
    expect_seen(0, QUERN_REACT_REMOVED, 0, UINT64_MAX);
    expect_seen(1, QUERN_REACT_SET, 13, 3); /* moved to the first row */
    expect_seen(2, QUERN_REACT_SET, 11, 1);
}

static void ask_wrongly(quern_context *context, const quern_view *view)
{
    uint64_t *values = quern_view_write(view, 0);
    cr_assert_not_null(values);
    *values = 99;
}

static void ask_for_another_type(quern_context *context, const quern_view *view)
{
    const uint32_t *values = QUERN_COLUMN(view, 0, const uint32_t);
    cr_assert_not_null(values);
    cr_assert_eq(*values, 0u);
}

static void expect_refused(quern_view_callback *run, const char *message)
{
    quern_system_def def = old_def();
    def.run = run;
    def.reacts_to = QUERN_REACT_SET;
    setup_system(schedule, &def);
    const quern_entity entity = with_health(1);
    must(quern_entity_set(world, entity, health, &(uint64_t){2}));
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_not_null(strstr(reports.last, message), "no \"%s\" in: %s", message, reports.last);
    cr_assert_eq(*(const uint64_t *)quern_entity_get(world, entity, health), 2u);
    close_valid_world();
}

Test(reactions_old, old_values_cannot_be_written)
{
    expect_refused(ask_wrongly, "old values are to read");
}

Test(reactions_old, the_type_of_the_column_is_checked)
{
    expect_refused(ask_for_another_type, "4 bytes");
}

static void expect_wrong(const quern_system_def *def, const char *message)
{
    quern_system system;
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, def, &system));
    cr_assert_not_null(strstr(quern_error_message(), message), "%s", quern_error_message());
}

static void keep(void *values, uint32_t count, void *user_data) {}

Test(reactions_old, wrong_definitions_are_refused)
{
    quern_system_def def = old_def();
    def.reacts_to = QUERN_REACT_ADDED | QUERN_REACT_REMOVED;
    expect_wrong(&def, "QUERN_REACT_SET");
    def.reacts_to = 0;
    expect_wrong(&def, "QUERN_REACT_SET");
    def = old_def();
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    expect_wrong(&def, "exclusive");
    def = old_def();
    def.terms[0] = quern_term_old(dead);
    expect_wrong(&def, "a tag");
    def.terms[0] = quern_term_old(health);
    def.terms[0].access = QUERN_ACCESS_READ;
    expect_wrong(&def, "quern_term_old");
    def.terms[0] = quern_term_old(health);
    def.terms[0].match = QUERN_MATCH_OPTIONAL;
    expect_wrong(&def, "quern_term_old");
    quern_component hooked;
    must(quern_component_register(
        world,
        &(quern_component_def){
            .name = "hooked", .size_bytes = 8, .alignment_bytes = 8, .hooks = {.destroy = keep}},
        &hooked));
    def.terms[0] = quern_term_old(hooked);
    expect_wrong(&def, "'hooked'");
    def = old_def();
    def.terms[1] = quern_term_old(health);
    quern_system system;
    must_refuse(DUPLICATE_COMPONENT, world, quern_schedule_add_system(schedule, &def, &system));
    quern_query_def query_def = {.terms = {quern_term_old(health)}};
    quern_query *query;
    must_refuse(INVALID_ARGUMENT, world, quern_query_create(world, &query_def, &query));
    cr_assert_not_null(strstr(quern_error_message(), "reactions"));
}
