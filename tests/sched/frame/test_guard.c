/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <string.h>

/* Pointers into the world that code keeps: builds with checks find writes through them, from phase to phase
 * and from frame to frame, and report no allowed write. */

enum { ENTITY_COUNT = 4000 };

static quern_component position, velocity;
static quern_entity entity;
static quern_schedule *schedule;
static captured_reports reports;

static vec3 *kept;
static int use_frame; /* the frame in which the kept pointer is used; -1: never */

static void open_world(void)
{
    world = setup_world();
    position = setup_component(world, "position", sizeof(vec3), 4);
    velocity = setup_component(world, "velocity", sizeof(vec3), 4);
    entity = setup_entity_with(world, &position, 1);
    cr_assert_eq(quern_entity_create_many(world, &position, NULL, 1, ENTITY_COUNT, NULL), QUERN_OK);
    schedule = setup_phases(world, 3);
    kept = NULL;
    use_frame = -1;
    capture_reports(&reports);
}

TestSuite(guard, .init = open_world, .fini = close_world);

static void take(quern_context *context, const quern_view *view)
{
    if (view->ordinal == 0) kept = quern_view_write(view, 0);
}

static void use(quern_context *context, const quern_view *view)
{
    if ((int)quern_context_frame_index(context) == use_frame) kept[1].x += 77;
}

static void add_system(const char *name, quern_view_callback *run, uint32_t phase, uint32_t flags)
{
    make_system(schedule, name, run, .phase = phase, .flags = flags);
}

static void add_taker(void)
{
    make_system(schedule, "take", take, .terms = {quern_term_write(position)});
}

/* Runs a frame that finds the write through the kept pointer, with these words. The next frame finds
 * nothing. */
static void assert_found(quern_jobs *jobs, const char *words)
{
    must_not_run(schedule, jobs, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_eq(reports.assert_count, 1u, "%u reports: %s", reports.assert_count, reports.last);
    cr_assert_not_null(strstr(reports.last, "'position'"), "%s", reports.last);
    cr_assert_not_null(strstr(reports.last, words), "no \"%s\" in: %s", words, reports.last);
    use_frame = -1;
    capture_reports(&reports);
    must_run(schedule, jobs);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

/* -------------------------------------------------------------------------- writes that are reported */

Test(guard, write_through_kept_pointer_in_later_phase_is_found)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    add_taker();
    add_system("use", use, 1, 0);
    must_run(schedule, NULL);
    use_frame = 1;
    assert_found(
        NULL, "changed in frame 1 while no system had a view of it: code wrote through a pointer that it "
              "kept beyond its call. The last writable view was that of system 'take' (declared: write "
              "position)");
}

Test(guard, writes_are_found_on_threads)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    quern_jobs *jobs = setup_jobs(3);
    add_taker();
    add_system("use", use, 1, 0);
    use_frame = 0;
    assert_found(jobs, "system 'take'");
    quern_jobs_destroy(jobs);
}

Test(guard, write_through_kept_pointer_between_frames_is_found)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    add_taker();
    must_run(schedule, NULL);
    kept[0].y += 1;
    assert_found(NULL,
                 "changed before frame 1 while no system had a view of it: code wrote through a pointer");
}

Test(guard, changes_of_sets_hide_no_write)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    add_taker();
    must(quern_schedule_add_set(schedule, &(quern_set_def){.name = "set"}));
    must_run(schedule, NULL);
    kept[0].y += 1;
    must(quern_schedule_replace_set(schedule, &(quern_set_def){.name = "set"}));
    must(quern_schedule_remove_set(schedule, "set"));
    assert_found(NULL, "changed before frame 1");
}

Test(guard, write_through_kept_pointer_in_exclusive_system_is_found)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    add_taker();
    add_system("use", use, 1, QUERN_SYSTEM_EXCLUSIVE);
    use_frame = 0;
    assert_found(NULL, "system 'take'");
}

/* Terms: position to write, in views of a part of a chunk. Keeps a pointer from one view and uses it in the
 * next. */
static void write_parts(quern_context *context, const quern_view *view)
{
    vec3 *positions = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        positions[i].x += 1;
    if ((int)quern_context_frame_index(context) != use_frame) return;
    if (kept != NULL) kept->x += 1;
    kept = kept == NULL ? positions : NULL;
}

/* Checks the system "parts", which has more than one view of a chunk. */
static void check_parts(quern_system_def *def)
{
    def->terms[0] = quern_term_write(position);
    const quern_system parts = setup_system(schedule, def);
    must_run(schedule, NULL);
    must_run(schedule, NULL);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
    quern_system_stats stats;
    cr_assert_eq(quern_schedule_get_system_stats(schedule, parts, &stats), QUERN_OK);
    cr_assert_gt(stats.view_count, 1u);
    use_frame = 2;
    assert_found(NULL, "system 'parts'");
}

Test(guard, write_from_view_of_one_depth_to_another_depth_is_found)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    quern_entity above = {0};
    for (uint32_t i = 0; i < QUERN_MAX_RELATION_LEVEL + 2; i++) {
        const quern_entity node =
            setup_entity_with(world, i < QUERN_MAX_RELATION_LEVEL ? &velocity : &position, 1);
        if (i > 0)
            cr_assert_eq(quern_entity_relate(world, node, quern_world_parent(world), above), QUERN_OK);
        above = node;
    }
    quern_system_def def = system_def("parts", write_parts);
    def.terms[1] = quern_term_read(quern_relation_component(quern_world_parent(world)));
    def.levels = quern_world_parent(world);
    check_parts(&def);
}

Test(guard, write_from_view_of_child_to_its_sibling_is_found)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    const quern_entity other = setup_entity_with(world, &position, 1);
    for (uint32_t i = 0; i < 5; i++)
        cr_assert_eq(quern_entity_relate(world, setup_entity_with(world, &position, 1),
                                         quern_world_parent(world), i % 2 == 0 ? entity : other),
                     QUERN_OK);
    quern_system_def def = system_def("parts", write_parts);
    def.terms[1] = quern_term_target(quern_world_parent(world), entity);
    check_parts(&def);
}

static void give_velocity(quern_context *context)
{
    const vec3 value = {1, 2, 3};
    cr_assert_eq(quern_commands_set(quern_context_commands(context), entity, velocity, &value), QUERN_OK);
}

/* The sync point changes rows, but not the row to which the pointer leads. */
Test(guard, sync_points_rebuild_guards_without_hiding_later_writes)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    entity = setup_entity(world);
    add_taker();
    make_system(schedule, "give", NULL, .begin = give_velocity);
    add_system("use", use, 1, 0);
    use_frame = 0;
    assert_found(NULL, "system 'take'");
}

static void look_up(quern_context *context)
{
    kept = (vec3 *)quern_context_lookup(context, entity, position);
    cr_assert_not_null(kept);
}

Test(guard, write_through_kept_lookup_pointer_is_found)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    quern_system_def def = system_def("look up", NULL);
    def.begin = look_up;
    def.lookups[0].component = position;
    setup_system(schedule, &def);
    add_system("use", use, 2, 0);
    use_frame = 0;
    assert_found(NULL, "no system has had one for writing");
}

/* A call that writes one component does not hide a write to another. */
Test(guard, call_renews_guards_of_its_component_only)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    const quern_component both[] = {position, velocity};
    quern_entity with_both = setup_entity_with(world, both, 2);
    const vec3 value = {1, 2, 3};
    add_taker();
    must_run(schedule, NULL);
    cr_assert_not_null(quern_entity_get(world, with_both, velocity));
    cr_assert_eq(quern_entity_set(world, with_both, velocity, &value), QUERN_OK);
    kept[0].y += 1;
    assert_found(NULL, "system 'take'");
}

/* --------------------------------------------------------------------------- writes that are allowed */

static void assert_nothing_found(void)
{
    must_run(schedule, NULL);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

/* The pointer is valid until the structure changes, for as many frames as run until then. */
Test(guard, pointer_from_call_between_frames_is_valid_until_structure_changes)
{
    add_taker();
    vec3 *value = quern_entity_get(world, entity, position);
    for (uint32_t i = 0; i < 4; i++) {
        value->x += 1;
        assert_nothing_found();
    }
}

Test(guard, every_call_between_frames_may_write)
{
    quern_term terms[] = {quern_term_write(position)};
    quern_query *query = setup_query(world, terms, 1);
    add_taker();
    assert_nothing_found();
    const vec3 value = {1, 2, 3};
    cr_assert_eq(quern_entity_set(world, entity, position, &value), QUERN_OK);
    assert_nothing_found();
    cr_assert_eq(quern_entity_set(world, entity, position, &(vec3){4, 5, 6}), QUERN_OK);
    assert_nothing_found();
    cr_assert_eq(quern_entity_add(world, entity, velocity, &value), QUERN_OK);
    assert_nothing_found();
    cr_assert_eq(quern_entity_create_many(world, &position, NULL, 1, 3 * ENTITY_COUNT, NULL), QUERN_OK);
    assert_nothing_found();
    cr_assert_eq(quern_entity_add_matching(query, velocity, &value, NULL), QUERN_OK);
    assert_nothing_found();
    cr_assert_eq(quern_entity_remove_matching(query, velocity, NULL), QUERN_OK);
    cr_assert_eq(quern_world_remove_empty_archetypes(world, NULL), QUERN_OK);
    assert_nothing_found();
    cr_assert_eq(quern_entity_destroy(world, entity), QUERN_OK);
    cr_assert_eq(quern_world_trim(world), QUERN_OK);
    assert_nothing_found();
}

static void write_view(quern_context *context, const quern_view *view)
{
    ((vec3 *)quern_view_write(view, 0))[0].z += 1;
}

/* A frame that runs in the middle of an iteration leaves the iteration's view valid. */
Test(guard, query_iterations_are_not_reported)
{
    quern_term term = quern_term_write(position);
    quern_query *query = setup_query(world, &term, 1);
    add_taker();
    for (uint32_t i = 0; i < 3; i++) {
        quern_query_iterator it = quern_query_iterate(query);
        while (quern_query_next(&it)) {
            vec3 *values = quern_view_write(&it.view, 0);
            values[0].x += 1;
            if (it.view.ordinal == 1) assert_nothing_found();
            values[0].y += 1;
        }
        cr_assert_eq(it.result, QUERN_OK);
        assert_nothing_found();
        cr_assert_eq(quern_query_parallel_for(query, NULL, write_view, NULL), QUERN_OK);
        assert_nothing_found();
    }
}

static void write_one(quern_context *context, const quern_view *view)
{
    ((vec3 *)quern_view_write(view, 0))[0].x += 1;
}

Test(guard, frames_of_other_schedules_are_not_reported)
{
    quern_schedule *other = setup_schedule(world);
    make_system(other, "other", write_one, .terms = {quern_term_write(position)});
    add_taker();
    for (uint32_t i = 0; i < 3; i++) {
        assert_nothing_found();
        must_run(other, NULL);
    }
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

static quern_schedule *inner;

static void write_by_right(quern_context *context, const quern_view *view)
{
    const uint64_t frame = quern_context_frame_index(context);
    quern_world *whole = quern_context_world(context);
    if (frame == 0) cr_assert_eq(quern_entity_set(whole, entity, position, &(vec3){7, 8, 9}), QUERN_OK);
    if (frame == 1) ((vec3 *)quern_entity_get(whole, entity, position))->x = 10;
    if (frame == 2) must_run(inner, NULL);
    if (frame == 3) cr_assert_eq(quern_entity_add(whole, entity, velocity, NULL), QUERN_OK);
}

Test(guard, exclusive_systems_and_their_frames_are_not_reported)
{
    inner = setup_schedule(world);
    make_system(inner, "inner", write_one, .terms = {quern_term_write(position)});
    add_taker();
    add_system("exclusive", write_by_right, 1, QUERN_SYSTEM_EXCLUSIVE);
    setup_reader(schedule, "reader", position);
    for (uint32_t i = 0; i < 5; i++)
        assert_nothing_found();
}

static void command(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const vec3 value = {1, 2, (float)quern_context_frame_index(context)};
    if (view->ordinal > 0) return;
    cr_assert_eq(quern_commands_set(commands, entity, position, &value), QUERN_OK);
    if (quern_context_frame_index(context) < 2) return;
    record_entity_with(commands, &velocity, NULL, 1);
    cr_assert_eq(quern_commands_destroy(commands, view->entities[view->count - 1]), QUERN_OK);
}

/* Systems that are added later have components that no system had before. */
Test(guard, commands_and_later_systems_are_not_reported)
{
    quern_system_def def = system_def("command", command);
    def.terms[0] = quern_term_write(position);
    def.phase = 1;
    add_taker();
    setup_system(schedule, &def);
    for (uint32_t i = 0; i < 4; i++)
        assert_nothing_found();
    def = system_def("late", write_one);
    def.terms[0] = quern_term_write(velocity);
    setup_system(schedule, &def);
    for (uint32_t i = 0; i < 3; i++)
        assert_nothing_found();
}

enum { PASSING_COUNT = 5 };

/* Sync points remove archetypes, even if they apply no command. */
Test(guard, removed_archetypes_are_not_reported)
{
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    quern_world_def def = {.empty_archetype_checks_per_sync = 1};
    cr_assert_eq(quern_world_create(&def, &world), QUERN_OK);
    static const char *const names[PASSING_COUNT] = {"a", "b", "c", "d", "e"};
    for (uint32_t i = 0; i < PASSING_COUNT; i++) {
        quern_component passing = setup_component(world, names[i], 4, 4);
        cr_assert_eq(quern_entity_destroy(world, setup_entity_with(world, &passing, 1)), QUERN_OK);
    }
    position = setup_component(world, "position", sizeof(vec3), 4);
    entity = setup_entity_with(world, &position, 1);
    schedule = setup_phases(world, 3);
    add_taker();
    add_system("use", use, 2, 0);
    const uint32_t before = stats_of_world(world).archetype_count;
    for (uint32_t i = 0; i < 60; i++)
        assert_nothing_found();
    cr_assert_eq(stats_of_world(world).archetype_count, before - PASSING_COUNT);
}

/* Writes the velocity of the view's first entity by lookup. */
static void write_by_lookup(quern_context *context, const quern_view *view)
{
    vec3 *value = quern_context_lookup_write(context, entity, velocity);
    cr_assert(value != NULL && view->count > 0);
    value->x += 1;
}

/* Covers every kind of reaction, with and without up-terms, each in every way to run. */
Test(guard, reactions_that_write_by_lookup_are_not_reported)
{
    static const uint32_t flags[] = {0, QUERN_SYSTEM_MAIN_THREAD, QUERN_SYSTEM_WHOLE_CHUNKS};
    const quern_entity parent = setup_entity_with(world, &velocity, 1);
    const vec3 value = {1, 2, 3};
    must(quern_entity_add(world, entity, velocity, NULL));
    must(quern_entity_relate(world, entity, quern_world_parent(world), parent));
    quern_schedule_destroy(schedule);
    for (uint32_t i = 0; i < 2 * COUNT_OF(flags); i++) {
        quern_system_def def = system_def("react", write_by_lookup);
        const quern_entity fresh = setup_entity_with(world, &position, 1);
        schedule = setup_phases(world, 1);
        def.terms[0] = quern_term_read(position);
        if (i % 2 == 1) def.terms[1] = quern_term_up_optional(velocity, quern_world_parent(world));
        def.reacts_to = QUERN_REACT_SET | QUERN_REACT_ADDED | (i % 2 == 0 ? QUERN_REACT_REMOVED : 0);
        def.flags = flags[i / 2];
        def.write_lookups[0].component = velocity;
        setup_system(schedule, &def);
        must(quern_entity_set(world, entity, position, &value));
        must(quern_entity_set(world, setup_entity_with(world, &position, 1), position, &value));
        must(quern_entity_destroy(world, fresh));
        assert_nothing_found();
        assert_nothing_found();
        quern_schedule_destroy(schedule);
    }
    schedule = setup_phases(world, 1);
}
