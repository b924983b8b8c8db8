/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/sched/describe/describe_scene.h"

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
    quern_relation second;
    must(quern_relation_register(world, &(quern_relation_def){.name = "second", .levels = true}, &second));
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
