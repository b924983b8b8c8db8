/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "tests/sched/describe/describe_scene.h"
#include "tests/support/failing_allocator.h"

/* Descriptions of schedules as text. Whole texts are compared only if the whole text is the subject of the test. */

TestSuite(describe, .init = open_world, .fini = close_world);

/* ------------------------------------------------------------------------------------------ as text */

Test(describe, a_schedule_without_systems_has_nothing_to_do)
{
    assert_text("phase 'p0'\n"
                "  sync\n"
                "frame: nothing to do\n");
}

Test(describe, a_small_schedule_as_a_whole)
{
    const quern_component both[] = {position, velocity};
    for (uint32_t i = 0; i < ROWS; i++)
        setup_entity_with(world, both, 2);
    must_exist(health);
    add_terms("push", (quern_term[]){quern_term_write(velocity)}, 1);
    add_terms("move", (quern_term[]){quern_term_write(position), quern_term_read(velocity)}, 2);
    setup_writer(schedule, "heal", health);
    add_user("count", position, score, QUERN_ACCESS_WRITE);
    assert_text(
        "phase 'p0'\n"
        "  run: parallelism 2.4 (work 19, critical path 8, in calls)\n"
        "    pass 1: 3 systems fused, 2 lanes; 2 archetypes, 7 chunks\n"
        "      'push': write 'velocity'; lane 1\n"
        "      'move': write 'position', read 'velocity'; lane 1\n"
        "        after 'push': component 'velocity' (chunk-local)\n"
        "      'heal': write 'health'; lane 2\n"
        "    pass 2: alone, serial: writes resource 'score'; 1 archetype, 6 chunks; waits for pass 1\n"
        "      'count': read 'position', write resource 'score'\n"
        "        after 'move' of pass 1: component 'position' (chunk-local)\n"
        "  sync\n"
        "order by registration alone\n"
        "  'push' before 'move': component 'velocity'\n"
        "  'move' before 'count': component 'position'\n"
        "frame: parallelism 2.4 (work 19, critical path 8, in calls)\n");
}

Test(describe, every_kind_of_access_is_named)
{
    quern_component tag = setup_tag(world, "tag");
    quern_component kinds[6];
    static const char *const names[] = {"c0", "c1", "c2", "c3", "c4", "c5"};
    for (uint32_t i = 0; i < COUNT_OF(kinds); i++)
        kinds[i] = setup_component(world, names[i], 4, 4);
    quern_system_def def = system_def("all", idle_run);
    def.terms[0] = quern_term_read(position);
    def.terms[1] = quern_term_write(velocity);
    def.terms[2] = quern_term_with(tag);
    def.terms[3] = quern_term_without(kinds[0]);
    def.terms[4] = quern_term_optional(kinds[1], QUERN_ACCESS_NONE);
    def.terms[5] = quern_term_optional(kinds[2], QUERN_ACCESS_READ);
    def.terms[6] = quern_term_any(kinds[3], QUERN_ACCESS_NONE);
    def.terms[7] = quern_term_any(kinds[4], QUERN_ACCESS_WRITE);
    def.terms[8] = quern_term_changed(quern_term_read(kinds[5]));
    def.lookups[0].component = health;
    def.resources[0] = (quern_resource_access){score, QUERN_ACCESS_READ};
    def.resources[1] = (quern_resource_access){clock_resource, QUERN_ACCESS_WRITE_CONCURRENT};
    setup_system(schedule, &def);
    assert_line("'all': read 'position', write 'velocity', with 'tag', without 'c0', optional 'c1', "
                "optional read 'c2', any 'c3', any write 'c4', read 'c5' if changed, look up 'health', "
                "read resource 'score', write resource 'clock' concurrently");
}

Test(describe, further_queries_are_named_with_their_terms)
{
    quern_system_def def = system_def("pairs", idle_run);
    def.terms[0] = quern_term_read(position);
    def.queries[0].terms[0] = quern_term_read(position);
    def.queries[0].terms[1] = quern_term_without(health);
    def.queries[1].name = "moving";
    def.queries[1].terms[0] = quern_term_read(velocity);
    def.resources[0] = (quern_resource_access){score, QUERN_ACCESS_READ};
    setup_system(schedule, &def);
    assert_line("'pairs': read 'position', query 0 (read 'position', without 'health'), "
                "query 1 'moving' (read 'velocity'), read resource 'score'");
}

Test(describe, filters_by_row_and_by_chunk_differ)
{
    add_filters();
    assert_line("'rows': read 'state' if changed, by row, read 'position' if changed");
}

Test(describe, conditions_intervals_callbacks_and_disabled_systems_are_named)
{
    quern_system_def def = reader_def("rich", position);
    def.condition = always;
    def.interval_seconds = 0.25;
    def.begin = def.end = idle_callback;
    def.partial_bytes = 8;
    quern_system rich = setup_system(schedule, &def);
    assert_line("'rich': read 'position'; condition; every 0.25 s; begin; end; partial results of 8 bytes");
    must(quern_schedule_set_system_enabled(schedule, rich, false));
    assert_line("'rich': read 'position'; condition; every 0.25 s; begin; end; partial results of 8 bytes; "
                "disabled");
}

Test(describe, an_interval_is_written_in_decimals)
{
    static const double seconds[] = {1.0 / 3, 2, 0.000000001, 1e300};
    static const char *const lines[] = {"every 0.333333333 s", "every 2 s", "every 0.000000001 s",
                                        "every 1000000000 s"};
    static const char *const names[] = {"a", "b", "c", "d"};
    for (uint32_t i = 0; i < COUNT_OF(seconds); i++) {
        quern_system_def def = reader_def(names[i], position);
        def.interval_seconds = seconds[i];
        setup_system(schedule, &def);
        assert_line(lines[i]);
    }
}

Test(describe, phases_are_named_with_their_fixed_step)
{
    quern_schedule_destroy(schedule);
    schedule = setup_phases(world, 2);
    must(quern_schedule_set_fixed_step(schedule, 1, 0.02, 4));
    assert_text("phase 'p0'\n"
                "  sync\n"
                "phase 'p1', in steps of 0.02 s, at most 4 per frame\n"
                "  sync\n"
                "frame: nothing to do\n");
}

Test(describe, a_disabled_system_is_no_work)
{
    must_exist(position);
    setup_reader(schedule, "on", position);
    quern_system off = setup_reader(schedule, "off", health);
    must_exist(health);
    assert_line("pass 1: 2 systems fused, 2 lanes; 2 archetypes, 2 chunks");
    assert_line("frame: parallelism 2.0 (work 2, critical path 1, in calls)");
    must(quern_schedule_set_system_enabled(schedule, off, false));
    assert_line("pass 1: 2 systems fused, 2 lanes; 1 archetype, 1 chunk");
    assert_line("frame: parallelism 1.0 (work 1, critical path 1, in calls)");
}

Test(describe, implied_edges_differ_from_those_of_the_graph)
{
    static const char *const names[] = {"a", "b", "c"};
    for (uint32_t i = 0; i < 3; i++)
        add_user(names[i], position, score, QUERN_ACCESS_WRITE);
    assert_line("pass 2: alone, serial: writes resource 'score'; 0 archetypes, 0 chunks; waits for pass 1");
    assert_line("pass 3: alone, serial: writes resource 'score'; 0 archetypes, 0 chunks; waits for pass 2");
    assert_line("after 'a' of pass 1: resource 'score' (whole; follows from other edges)");
    assert_line("after 'b' of pass 2: resource 'score' (whole)");
}

/* The strongest cause is first: it determines the kind of the edge. */
Test(describe, all_causes_of_an_edge_are_named)
{
    quern_component mass = setup_component(world, "mass", 4, 4);
    const quern_component all[] = {position, velocity, health, mass};
    setup_entity_with(world, all, 4);
    quern_system_def def = system_def("a", idle_run);
    def.terms[0] = quern_term_write(position);
    def.terms[1] = quern_term_write(velocity);
    def.terms[2] = quern_term_read(health);
    def.resources[0] = (quern_resource_access){score, QUERN_ACCESS_READ};
    def.resources[1] = (quern_resource_access){clock_resource, QUERN_ACCESS_WRITE_CONCURRENT};
    def.lookups[0].component = mass;
    setup_system(schedule, &def);
    def.name = "b";
    def.lookups[0].component = position;
    def.terms[0] = quern_term_write(velocity);
    def.terms[1] = quern_term_read(health);
    def.terms[2] = quern_term_write(mass);
    setup_system(schedule, &def);
    assert_line("after 'a' of pass 1: resource 'clock', lookup of 'position' written by 'a', "
                "lookup of 'mass' written by 'b', component 'velocity' (whole)");
}

Test(describe, a_component_without_common_archetype_is_no_cause)
{
    quern_component first[] = {position, velocity}, second[] = {position, health};
    setup_entity_with(world, first, 2);
    setup_entity_with(world, second, 2);
    quern_system_def def = system_def("a", idle_run);
    def.terms[0] = quern_term_write(position);
    def.terms[1] = quern_term_read(velocity);
    def.resources[0] = (quern_resource_access){score, QUERN_ACCESS_WRITE_CONCURRENT};
    setup_system(schedule, &def);
    def.name = "b";
    def.terms[1] = quern_term_read(health);
    setup_system(schedule, &def);
    assert_line("after 'a' of pass 1: resource 'score' (whole)");
}

Test(describe, a_pass_waits_for_several)
{
    add_user("a", position, score, QUERN_ACCESS_WRITE);
    add_user("b", position, clock_resource, QUERN_ACCESS_WRITE);
    quern_system_def def = reader_def("c", position);
    def.resources[0] = (quern_resource_access){score, QUERN_ACCESS_READ};
    def.resources[1] = (quern_resource_access){clock_resource, QUERN_ACCESS_READ};
    setup_system(schedule, &def);
    assert_line("pass 3: 1 system; 0 archetypes, 0 chunks; waits for pass 1, 2");
}

Test(describe, segments_are_numbered_through_and_cut_at_exclusive_systems)
{
    must_exist(position);
    setup_writer(schedule, "a", position);
    make_system(schedule, "x", idle_run, .flags = QUERN_SYSTEM_EXCLUSIVE);
    setup_writer(schedule, "b", position);
    assert_text("phase 'p0'\n"
                "  run: parallelism 1.0 (work 1, critical path 1, in calls)\n"
                "    pass 1: 1 system; 1 archetype, 1 chunk\n"
                "      'a': write 'position'\n"
                "  sync\n"
                "  exclusive\n"
                "    pass 2: alone, exclusive\n"
                "      'x'\n"
                "  run: parallelism 1.0 (work 1, critical path 1, in calls)\n"
                "    pass 3: 1 system; 1 archetype, 1 chunk\n"
                "      'b': write 'position'\n"
                "  sync\n"
                "order by registration alone\n"
                "  'a' before 'x': exclusive\n"
                "  'a' before 'b': component 'position'\n"
                "  'x' before 'b': exclusive\n"
                "frame: parallelism 1.0 (work 3, critical path 3, in calls)\n");
}

Test(describe, archetypes_that_appear_are_described)
{
    setup_writer(schedule, "a", position);
    add_looker("b", velocity, position);
    assert_line("pass 1: 2 systems fused, 2 lanes; 0 archetypes, 0 chunks");
    must_exist(position);
    assert_line("pass 1: 1 system; 1 archetype, 1 chunk");
    assert_line("not with 'a' in pass 1: lookup of 'position' written by 'a'");
}

/* -------------------------------------------------------------------------------------------- failing */

Test(describe, a_format_that_does_not_exist_is_refused)
{
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_describe(schedule, (quern_describe_format)3, quern_sink_file(stderr)));
    assert_message_has("format 3 ");
}

static void describe_within(quern_context *context)
{
    cr_assert_eq(quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(stderr)),
                 QUERN_ERROR_WORLD_LOCKED);
}

Test(describe, describing_is_refused_while_a_frame_runs)
{
    make_system(schedule, "asks", NULL, .begin = describe_within);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).frame_index, 0u);
    assert_message_has("frame");
}

static void assert_file_error(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);
    cr_assert_not_null(file, "%s", path);
    for (quern_describe_format format = QUERN_DESCRIBE_TEXT; format <= QUERN_DESCRIBE_PASSES; format++) {
        must_refuse(IO, world, quern_schedule_describe(schedule, format, quern_sink_file(file)));
        clearerr(file);
    }
    fclose(file);
}

Test(describe, a_file_that_cannot_be_written_is_reported)
{
    setup_zoo();
    assert_file_error("/dev/full", "w");
    assert_message_has("No space left");
    assert_file_error("/dev/null", "r");
}

/* Without memory nothing is written, and the next call succeeds. */
Test(describe, missing_memory_is_reported)
{
    close_world();
    failing_allocator *memory = failing_allocator_create();
    world = make_world(.allocator = failing_allocator_interface(memory));
    position = setup_component(world, "position", sizeof(vec3), 4);
    schedule = setup_schedule(world);
    setup_writer(schedule, "a", position);
    make_system(schedule, "b", idle_run, .after = {"a"});
    must(quern_schedule_compile(schedule));
    FILE *file = tmpfile();
    uint32_t failed_count = 0;
    for (bool failed = true; failed; failed_count += failed) {
        failing_allocator_fail_at(memory, failed_count + 1);
        quern_result result = quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(file));
        failed = result == QUERN_ERROR_OUT_OF_MEMORY;
        cr_assert(failed || result == QUERN_OK, "%s", quern_error_message());
        cr_assert_eq(ftell(file) == 0, failed);
    }
    cr_assert_geq(failed_count, 5u);
    fclose(file);
    failing_allocator_heal(memory);
    close_world();
    failing_allocator_close(memory);
    open_world();
}

/* --------------------------------------------------------------------------------------------- reasons */

/* The reasons that descriptions give for separate passes and for the order of systems. */

TestSuite(describe_order, .init = open_world, .fini = close_world);
TestSuite(describe_reasons, .init = open_world, .fini = close_world);

static void assert_no(const char *part)
{
    const char *text = written(QUERN_DESCRIBE_TEXT);
    cr_assert_null(strstr(text, part), "'%s' is in:\n%s", part, text);
}

/* ----------------------------------------------------------------------------------- more systems */

static void add_flagged(const char *name, quern_component component, uint32_t flags)
{
    quern_system_def def = reader_def(name, component);
    def.flags = flags;
    setup_system(schedule, &def);
}

/* ------------------------------------------------------------------------------- why systems are apart */

Test(describe_reasons, a_resource_that_is_written_concurrently)
{
    add_user("a", position, score, QUERN_ACCESS_WRITE_CONCURRENT);
    add_user("b", position, score, QUERN_ACCESS_READ);
    assert_line("not with 'a' in pass 1: resource 'score'");
    assert_line("after 'a' of pass 1: resource 'score' (whole)");
}

Test(describe_reasons, a_lookup_of_a_component_written_by_an_earlier_system)
{
    must_exist(position);
    setup_writer(schedule, "a", position);
    add_looker("b", velocity, position);
    assert_line("not with 'a' in pass 1: lookup of 'position' written by 'a'");
}

Test(describe_reasons, a_lookup_of_a_component_written_by_a_later_system)
{
    must_exist(position);
    add_looker("a", velocity, position);
    setup_writer(schedule, "b", position);
    assert_line("not with 'a' in pass 1: lookup of 'position' written by 'b'");
}

Test(describe_reasons, before_and_after_of_systems_that_share_nothing)
{
    setup_reader(schedule, "a", position);
    add_after("b", velocity, "a");
    assert_line("not with 'a' in pass 1: before/after");
    assert_line("after 'a' of pass 1: before/after (whole)");
}

Test(describe_reasons, before_and_after_keep_sharing_systems_in_one_pass)
{
    setup_writer(schedule, "a", position);
    add_after("b", position, "a");
    assert_line("pass 1: 2 systems fused; 0 archetypes, 0 chunks");
    assert_line("after 'a': before/after (chunk-local)");
    assert_no("not ");
}

Test(describe_reasons, a_system_that_must_run_first)
{
    must_exist(position);
    add_user("a", position, score, QUERN_ACCESS_WRITE_CONCURRENT);
    add_user("b", velocity, score, QUERN_ACCESS_READ);
    const char *after = "b";
    make_system(schedule, "c", idle_run, .terms = {quern_term_write(position)}, .after = {after});
    assert_line("not in pass 1: 'b' of pass 2 must come first: before/after");
    assert_line("not with 'b' in pass 2: before/after");
    assert_line("after 'a' of pass 1: component 'position' (chunk-local; follows from other edges)");
}

/* The number of shared components decides which pass a system joins: "c" could also join the pass of "b". */
Test(describe_reasons, the_pass_that_shares_more)
{
    add_user("a", position, score, QUERN_ACCESS_WRITE_CONCURRENT);
    add_user("b", velocity, score, QUERN_ACCESS_READ);
    setup_reader(schedule, "c", position);
    assert_line("pass 1: 2 systems fused, 2 lanes; 0 archetypes, 0 chunks");
    assert_line("not in pass 2: it shares as many components or more here");
}

/* A conflict with a system of another pass, chunk by chunk, is no reason to be apart from this one. */
Test(describe_reasons, the_pass_that_shares_more_and_has_the_earlier_system)
{
    must_exist(position);
    add_user("a", position, score, QUERN_ACCESS_WRITE_CONCURRENT);
    add_user("b", velocity, score, QUERN_ACCESS_READ);
    setup_writer(schedule, "c", position);
    assert_line("not in pass 2: it shares as many components or more here");
}

/* A chain of three entities, and two below its end: levels 0 to 3 have one chunk each. */
static void setup_tree(void)
{
    const quern_relation parent = quern_world_parent(world);
    quern_entity above = {0};
    for (uint32_t i = 0; i < 5; i++) {
        const quern_entity node = setup_entity_with(world, (quern_component[]){position, velocity}, 2);
        if (i > 0) must(quern_entity_relate(world, node, parent, above));
        if (i < 3) above = node;
    }
}

Test(describe_reasons, systems_that_go_level_by_level)
{
    setup_tree();
    quern_relation second = make_relation(world, .name = "second", .levels = true);
    const quern_relation parent = quern_world_parent(world);
    quern_system_def place = system_def("place", idle_run), look = system_def("look", idle_run);
    quern_system_def other = system_def("other", idle_run), again = system_def("again", idle_run);
    place.terms[0] = quern_term_write(position);
    place.terms[1] = quern_term_up_optional(position, parent);
    place.levels = parent;
    look.terms[0] = quern_term_up(position, parent);
    look.levels = parent;
    other.terms[0] = quern_term_write(velocity);
    other.levels = second;
    again.terms[0] = quern_term_write(velocity);
    setup_system(schedule, &place);
    setup_system(schedule, &look);
    setup_system(schedule, &other);
    setup_system(schedule, &again);
    assert_text(
        "phase 'p0'\n"
        "  run: parallelism 2.1 (work 15, critical path 7, in calls)\n"
        "    pass 1: 2 systems fused; 4 archetypes, 4 chunks; levels of 'parent'\n"
        "      'place': write 'position', optional read 'position' upward by 'parent'; levels of 'parent'\n"
        "      'look': read 'position' upward by 'parent'; levels of 'parent'\n"
        "        after 'place': up-term on 'position' written by 'place' (level by level)\n"
        "    pass 2: 2 systems fused; 4 archetypes, 4 chunks; levels of 'second'\n"
        "      'other': write 'velocity'; levels of 'second'\n"
        "        not in pass 1: that goes by the levels of 'parent'\n"
        "      'again': write 'velocity'\n"
        "        after 'other': component 'velocity' (chunk-local)\n"
        "  sync\n"
        "order by registration alone\n"
        "  'place' before 'look': up-term on 'position' written by 'place'\n"
        "  'other' before 'again': component 'velocity'\n"
        "frame: parallelism 2.1 (work 15, critical path 7, in calls)\n");
    const char *json = written(QUERN_DESCRIBE_JSON);
    cr_assert_not_null(strstr(json, "\"levels\": \"parent\""), "%s", json);
    cr_assert_not_null(strstr(json, "\"reason\": \"levels\""), "%s", json);
    cr_assert_not_null(strstr(json, "\"cause\": \"level\""), "%s", json);
}

Test(describe_reasons, a_shuffle)
{
    quern_schedule_def def = {0};
    bool is_found = false;
    for (def.shuffle_seed = 1; def.shuffle_seed <= 32; def.shuffle_seed++) {
        reopen(&def);
        add_user("a", position, score, QUERN_ACCESS_WRITE_CONCURRENT);
        add_user("b", velocity, score, QUERN_ACCESS_READ);
        setup_reader(schedule, "c", position);
        is_found |= strstr(written(QUERN_DESCRIBE_TEXT), "not in pass 2: chosen by the shuffle") != NULL;
    }
    cr_assert(is_found, "no seed puts 'c' into pass 1");
}

Test(describe_reasons, systems_that_run_alone)
{
    setup_reader(schedule, "views", position);
    add_user("writer", position, score, QUERN_ACCESS_WRITE);
    add_flagged("one by one", position, QUERN_SYSTEM_SERIAL);
    add_flagged("window", position, QUERN_SYSTEM_MAIN_THREAD);
    make_system(schedule, "once", idle_run);
    assert_line("pass 1: 1 system; 0 archetypes, 0 chunks");
    assert_line("pass 2: alone, serial: writes resource 'score'; 0 archetypes, 0 chunks");
    assert_line("pass 3: alone, serial; 0 archetypes, 0 chunks");
    assert_line("pass 4: alone, main thread; 0 archetypes, 0 chunks");
    assert_line("pass 5: alone, no terms");
    assert_no("not ");
}

Test(describe_reasons, fusing_that_is_off)
{
    quern_schedule_def def = {.disable_fusing = true};
    reopen(&def);
    setup_reader(schedule, "a", position);
    setup_reader(schedule, "b", position);
    assert_line("pass 1: alone, fusing is off; 0 archetypes, 0 chunks");
    assert_line("pass 2: alone, fusing is off; 0 archetypes, 0 chunks");
    assert_no("not ");
}

/* ---------------------------------------------------------------------- order by registration alone */

Test(describe_order, order_by_before_and_after_is_not_accidental)
{
    must_exist(position);
    setup_writer(schedule, "a", position);
    add_after("b", position, "a");
    assert_no("registration");
    setup_writer(schedule, "c", position);
    assert_line("'a' before 'c': component 'position'");
    assert_line("'b' before 'c': component 'position'");
    assert_no("'a' before 'b'");
}

Test(describe_order, a_chain_of_before_and_after_decides)
{
    must_exist(position);
    setup_writer(schedule, "a", position);
    add_after("b", health, "a");
    make_system(schedule, "c", idle_run, .terms = {quern_term_write(position)}, .after = {"b"},
                .before = {"d"});
    setup_writer(schedule, "d", position);
    assert_line("after 'a' of pass 1: component 'position' (chunk-local; follows from other edges)");
    assert_no("registration");
}

Test(describe_order, order_of_phases_is_not_accidental)
{
    quern_schedule_destroy(schedule);
    schedule = setup_phases(world, 2);
    quern_system_def def = system_def("x", idle_run);
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(schedule, &def);
    def = reader_def("a", position);
    def.phase = 1;
    setup_system(schedule, &def);
    assert_no("registration");
}

Test(describe_order, systems_without_a_conflict_have_no_accidental_order)
{
    setup_reader(schedule, "a", position);
    setup_reader(schedule, "b", position);
    setup_writer(schedule, "c", velocity);
    assert_no("registration");
}
