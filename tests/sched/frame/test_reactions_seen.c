/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/sched/frame/reactions_scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/tracked.h"

#include <string.h>

/* Reactions in descriptions, profiles and traces; refused definitions; missing memory. */

/* ------------------------------------------------------------------------- descriptions, profiles, traces */

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
    close_valid_world();
}

Test(reactions_seen, description_without_reactions_omits_them)
{
    open_world();
    setup_reader(schedule, "read", health);
    cr_assert_null(strstr(described(schedule), "reaction"));
    close_valid_world();
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
    close_valid_world();
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
    close_valid_world();
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
    close_valid_world();
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
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
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
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
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
    const uint64_t start = failing_allocator_call_count(memory);
    failing_allocator_fail_at(memory, start + failing_call);
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
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
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
