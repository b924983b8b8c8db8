/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_setup.h"
#include "tests/support/failing_allocator.h"

#include <quern/relation.h>

#include <cjson/cJSON.h>
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a schedule says of itself. Texts are compared whole where that is what the case is about. */

enum { TEXT_BYTES = 65536, ROWS = 2800 }; /* in 5.5 chunks of position and velocity */

static quern_world *world;
static quern_component position, velocity, health;
static quern_resource score, clock_resource;
static quern_schedule *schedule; /* one phase, "p0" */

static void open_world(void)
{
    world = setup_world();
    position = setup_component(world, "position", sizeof(vec3), 4);
    velocity = setup_component(world, "velocity", sizeof(vec3), 4);
    health = setup_component(world, "health", 4, 4);
    score = setup_counter(world, "score");
    clock_resource = setup_counter(world, "clock");
    schedule = setup_schedule(world);
}

static void close_world(void)
{
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}

TestSuite(describe, .init = open_world, .fini = close_world);
TestSuite(describe_reasons, .init = open_world, .fini = close_world);
TestSuite(describe_json, .init = open_world, .fini = close_world);
TestSuite(describe_dot, .init = open_world, .fini = close_world);

static void must_exist(quern_component component)
{
    setup_entity_with(world, &component, 1);
}

/* A schedule instead of the one that is there. */
static void reopen(const quern_schedule_def *def)
{
    quern_schedule_destroy(schedule);
    must(quern_schedule_create(world, def, &schedule));
}

static const char *written(quern_describe_format format)
{
    static char text[TEXT_BYTES];
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    must(quern_schedule_describe(schedule, format, quern_sink_file(file)));
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void assert_text(const char *expected)
{
    cr_assert_str_eq(written(QUERN_DESCRIBE_TEXT), expected, "described:\n%s",
                     written(QUERN_DESCRIBE_TEXT));
}

static void assert_line(const char *line)
{
    const char *text = written(QUERN_DESCRIBE_TEXT);
    const char *found = strstr(text, line);
    cr_assert_not_null(found, "no '%s' in:\n%s", line, text);
    bool is_at_start = found == text || strchr(" \n", found[-1]) != NULL;
    cr_assert(is_at_start && found[strlen(line)] == '\n', "'%s' is no line of:\n%s", line, text);
}

static void assert_no(const char *part)
{
    const char *text = written(QUERN_DESCRIBE_TEXT);
    cr_assert_null(strstr(text, part), "'%s' is in:\n%s", part, text);
}

/* ----------------------------------------------------------------------------------- more systems */

static void add_terms(const char *name, const quern_term *terms, uint32_t term_count)
{
    quern_system_def def = system_def(name, idle_run);
    for (uint32_t i = 0; i < term_count; i++)
        def.terms[i] = terms[i];
    setup_system(schedule, &def);
}

static quern_term one_term;

/* One that reads a component, to be changed further. */
static quern_system_def reader_def(const char *name, quern_component component)
{
    one_term = quern_term_read(component);
    quern_system_def def = system_def(name, idle_run);
    def.terms[0] = one_term;
    return def;
}

static void add_user(const char *name, quern_component component, quern_resource resource, quern_access how)
{
    quern_system_def def = reader_def(name, component);
    def.resources[0] = (quern_resource_access){resource, how};
    setup_system(schedule, &def);
}

static void add_looker(const char *name, quern_component read, quern_component looked_up)
{
    quern_system_def def = reader_def(name, read);
    def.lookups[0].component = looked_up;
    setup_system(schedule, &def);
}

static void add_flagged(const char *name, quern_component component, uint32_t flags)
{
    quern_system_def def = reader_def(name, component);
    def.flags = flags;
    setup_system(schedule, &def);
}

static void add_after(const char *name, quern_component component, const char *earlier)
{
    quern_system_def def = reader_def(name, component);
    def.after[0] = earlier;
    setup_system(schedule, &def);
}

static bool always(quern_context *context)
{
    (void)context;
    return true;
}

/* ------------------------------------------------------------------------------------------ as text */

Test(describe, a_schedule_without_systems_says_that_there_is_nothing_to_do)
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
    add_user("count", position, score, QUERN_WRITE);
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
    def.terms[4] = quern_term_optional(kinds[1], QUERN_NO_ACCESS);
    def.terms[5] = quern_term_optional(kinds[2], QUERN_READ);
    def.terms[6] = quern_term_any(kinds[3], QUERN_NO_ACCESS);
    def.terms[7] = quern_term_any(kinds[4], QUERN_WRITE);
    def.terms[8] = quern_term_changed(quern_term_read(kinds[5]));
    def.lookups[0].component = health;
    def.resources[0] = (quern_resource_access){score, QUERN_READ};
    def.resources[1] = (quern_resource_access){clock_resource, QUERN_WRITE_CONCURRENT};
    setup_system(schedule, &def);
    assert_line("'all': read 'position', write 'velocity', with 'tag', without 'c0', optional 'c1', "
                "optional read 'c2', any 'c3', any write 'c4', read 'c5' if changed, look up 'health', "
                "read resource 'score', write resource 'clock' concurrently");
}

/* Reads a component whose changes are known by row, and one whose changes are not, where they have changed.
 */
static void add_filters(void)
{
    quern_component state;
    const quern_component_def state_def = {
        .name = "state", .size_bytes = 4, .alignment_bytes = 4, .row_changes = true};
    cr_assert_eq(quern_component_register(world, &state_def, &state), QUERN_OK);
    quern_system_def def = system_def("rows", idle_run);
    def.terms[0] = quern_term_changed(quern_term_read(state));
    def.terms[1] = quern_term_changed(quern_term_read(position));
    setup_system(schedule, &def);
}

Test(describe, filters_by_row_are_told_from_those_by_chunk)
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
    must(quern_schedule_set_enabled(schedule, rich, false));
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
    must(quern_schedule_set_enabled(schedule, off, false));
    assert_line("pass 1: 2 systems fused, 2 lanes; 1 archetype, 1 chunk");
    assert_line("frame: parallelism 1.0 (work 1, critical path 1, in calls)");
}

Test(describe, edges_that_follow_from_others_are_told_from_those_of_the_graph)
{
    static const char *const names[] = {"a", "b", "c"};
    for (uint32_t i = 0; i < 3; i++)
        add_user(names[i], position, score, QUERN_WRITE);
    assert_line("pass 2: alone, serial: writes resource 'score'; 0 archetypes, 0 chunks; waits for pass 1");
    assert_line("pass 3: alone, serial: writes resource 'score'; 0 archetypes, 0 chunks; waits for pass 2");
    assert_line("after 'a' of pass 1: resource 'score' (whole; follows from other edges)");
    assert_line("after 'b' of pass 2: resource 'score' (whole)");
}

/* The strongest first: it says what the edge asks for. */
Test(describe, all_causes_of_an_edge_are_named)
{
    quern_component mass = setup_component(world, "mass", 4, 4);
    const quern_component all[] = {position, velocity, health, mass};
    setup_entity_with(world, all, 4);
    quern_system_def def = system_def("a", idle_run);
    def.terms[0] = quern_term_write(position);
    def.terms[1] = quern_term_write(velocity);
    def.terms[2] = quern_term_read(health);
    def.resources[0] = (quern_resource_access){score, QUERN_READ};
    def.resources[1] = (quern_resource_access){clock_resource, QUERN_WRITE_CONCURRENT};
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

Test(describe, a_component_is_no_cause_where_no_archetype_has_it_for_both)
{
    quern_component first[] = {position, velocity}, second[] = {position, health};
    setup_entity_with(world, first, 2);
    setup_entity_with(world, second, 2);
    quern_system_def def = system_def("a", idle_run);
    def.terms[0] = quern_term_write(position);
    def.terms[1] = quern_term_read(velocity);
    def.resources[0] = (quern_resource_access){score, QUERN_WRITE_CONCURRENT};
    setup_system(schedule, &def);
    def.name = "b";
    def.terms[1] = quern_term_read(health);
    setup_system(schedule, &def);
    assert_line("after 'a' of pass 1: resource 'score' (whole)");
}

Test(describe, a_pass_waits_for_several)
{
    add_user("a", position, score, QUERN_WRITE);
    add_user("b", position, clock_resource, QUERN_WRITE);
    quern_system_def def = reader_def("c", position);
    def.resources[0] = (quern_resource_access){score, QUERN_READ};
    def.resources[1] = (quern_resource_access){clock_resource, QUERN_READ};
    setup_system(schedule, &def);
    assert_line("pass 3: 1 system; 0 archetypes, 0 chunks; waits for pass 1, 2");
}

Test(describe, segments_are_numbered_through_and_cut_at_exclusive_systems)
{
    must_exist(position);
    setup_writer(schedule, "a", position);
    quern_system_def def = system_def("x", idle_run);
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(schedule, &def);
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

/* ------------------------------------------------------------------------------- why systems are apart */

Test(describe_reasons, a_resource_that_is_written_concurrently)
{
    add_user("a", position, score, QUERN_WRITE_CONCURRENT);
    add_user("b", position, score, QUERN_READ);
    assert_line("not with 'a' in pass 1: resource 'score'");
    assert_line("after 'a' of pass 1: resource 'score' (whole)");
}

Test(describe_reasons, a_lookup_of_what_an_earlier_system_writes)
{
    must_exist(position);
    setup_writer(schedule, "a", position);
    add_looker("b", velocity, position);
    assert_line("not with 'a' in pass 1: lookup of 'position' written by 'a'");
}

Test(describe_reasons, a_lookup_of_what_a_later_system_writes)
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

Test(describe_reasons, before_and_after_of_systems_that_share_a_component_do_not_part_them)
{
    setup_writer(schedule, "a", position);
    add_after("b", position, "a");
    assert_line("pass 1: 2 systems fused; 0 archetypes, 0 chunks");
    assert_line("after 'a': before/after (chunk-local)");
    assert_no("not ");
}

Test(describe_reasons, something_that_must_come_first)
{
    must_exist(position);
    add_user("a", position, score, QUERN_WRITE_CONCURRENT);
    add_user("b", velocity, score, QUERN_READ);
    const char *after = "b";
    quern_system_def def = system_def("c", idle_run);
    def.terms[0] = quern_term_write(position);
    def.after[0] = after;
    setup_system(schedule, &def);
    assert_line("not in pass 1: 'b' of pass 2 must come first: before/after");
    assert_line("not with 'b' in pass 2: before/after");
    assert_line("after 'a' of pass 1: component 'position' (chunk-local; follows from other edges)");
}

/* What it shares decides between passes that it may join: "c" could follow "b" in its pass. */
Test(describe_reasons, the_pass_that_shares_more)
{
    add_user("a", position, score, QUERN_WRITE_CONCURRENT);
    add_user("b", velocity, score, QUERN_READ);
    setup_reader(schedule, "c", position);
    assert_line("pass 1: 2 systems fused, 2 lanes; 0 archetypes, 0 chunks");
    assert_line("not in pass 2: it shares as many components or more here");
}

/* A chain of three, and two below its end: levels 0, 1, 2 and 3 have a chunk each. */
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
        add_user("a", position, score, QUERN_WRITE_CONCURRENT);
        add_user("b", velocity, score, QUERN_READ);
        setup_reader(schedule, "c", position);
        is_found |= strstr(written(QUERN_DESCRIBE_TEXT), "not in pass 2: chosen by the shuffle") != NULL;
    }
    cr_assert(is_found, "no seed puts 'c' into pass 1");
}

Test(describe_reasons, systems_that_are_alone)
{
    setup_reader(schedule, "views", position);
    add_user("writer", position, score, QUERN_WRITE);
    add_flagged("one by one", position, QUERN_SYSTEM_SERIAL);
    add_flagged("window", position, QUERN_SYSTEM_MAIN_THREAD);
    quern_system_def def = system_def("once", idle_run);
    setup_system(schedule, &def);
    assert_line("pass 1: 1 system; 0 archetypes, 0 chunks");
    assert_line("pass 2: alone, serial: writes resource 'score'; 0 archetypes, 0 chunks");
    assert_line("pass 3: alone, serial; 0 archetypes, 0 chunks");
    assert_line("pass 4: alone, main thread; 0 archetypes, 0 chunks");
    assert_line("pass 5: alone, no terms");
    assert_no("not ");
}

Test(describe_reasons, fusing_that_is_off)
{
    quern_schedule_def def = {.no_fuse = true};
    reopen(&def);
    setup_reader(schedule, "a", position);
    setup_reader(schedule, "b", position);
    assert_line("pass 1: alone, fusing is off; 0 archetypes, 0 chunks");
    assert_line("pass 2: alone, fusing is off; 0 archetypes, 0 chunks");
    assert_no("not ");
}

/* ---------------------------------------------------------------------- order by registration alone */

Test(describe, what_before_and_after_decide_is_not_left_to_registration)
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

Test(describe, a_chain_of_before_and_after_decides)
{
    must_exist(position);
    setup_writer(schedule, "a", position);
    add_after("b", health, "a");
    quern_system_def def = system_def("c", idle_run);
    def.terms[0] = quern_term_write(position);
    def.after[0] = "b";
    def.before[0] = "d";
    setup_system(schedule, &def);
    setup_writer(schedule, "d", position);
    assert_line("after 'a' of pass 1: component 'position' (chunk-local; follows from other edges)");
    assert_no("registration");
}

Test(describe, a_sync_point_between_phases_leaves_nothing_to_registration)
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

Test(describe, systems_without_a_conflict_have_no_accidental_order)
{
    setup_reader(schedule, "a", position);
    setup_reader(schedule, "b", position);
    setup_writer(schedule, "c", velocity);
    assert_no("registration");
}

/* ------------------------------------------------------------------------------------------- as JSON */

static cJSON *parsed(void)
{
    const char *text = written(QUERN_DESCRIBE_JSON);
    cJSON *root = cJSON_Parse(text);
    cr_assert_not_null(root, "no JSON:\n%s", text);
    return root;
}

/* A member, or an item by number, that must be there. */
static const cJSON *member(const cJSON *object, const char *key)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, key);
    cr_assert_not_null(found, "no \"%s\"", key);
    return found;
}

static const cJSON *item(const cJSON *array, uint32_t index)
{
    cr_assert(cJSON_IsArray(array));
    const cJSON *found = cJSON_GetArrayItem(array, (int)index);
    cr_assert_not_null(found, "no item %u", index);
    return found;
}

static void assert_member_text(const cJSON *object, const char *key, const char *expected)
{
    const cJSON *found = member(object, key);
    cr_assert(cJSON_IsString(found), "\"%s\" is no text", key);
    cr_assert_str_eq(found->valuestring, expected, "\"%s\" is %s", key, found->valuestring);
}

static void assert_number(const cJSON *object, const char *key, double expected)
{
    const cJSON *found = member(object, key);
    cr_assert(cJSON_IsNumber(found), "\"%s\" is no number", key);
    cr_assert_float_eq(found->valuedouble, expected, 1e-9, "\"%s\" is %g", key, found->valuedouble);
}

static void assert_flag(const cJSON *object, const char *key, bool expected)
{
    const cJSON *found = member(object, key);
    cr_assert(cJSON_IsBool(found), "\"%s\" is no flag", key);
    cr_assert_eq(cJSON_IsTrue(found) != 0, expected, "\"%s\"", key);
}

static void assert_null(const cJSON *object, const char *key)
{
    cr_assert(cJSON_IsNull(member(object, key)), "\"%s\" is not null", key);
}

static void assert_count(const cJSON *object, const char *key, int expected)
{
    cr_assert_eq(cJSON_GetArraySize(member(object, key)), expected, "\"%s\"", key);
}

static const cJSON *segment_of(const cJSON *root, uint32_t phase, uint32_t segment)
{
    return item(member(item(member(root, "phases"), phase), "segments"), segment);
}

static const cJSON *pass_of(const cJSON *root, uint32_t pass)
{
    return item(member(segment_of(root, 0, 0), "passes"), pass);
}

static const cJSON *system_of(const cJSON *root, uint32_t pass, uint32_t system)
{
    return item(member(pass_of(root, pass), "systems"), system);
}

static void assert_load(const cJSON *object, double work, double critical_path, double parallelism)
{
    const cJSON *load = member(object, "load");
    assert_number(load, "work", work);
    assert_number(load, "critical_path", critical_path);
    assert_number(load, "parallelism", parallelism);
}

static void assert_pair(const cJSON *object, const char *before, const char *after)
{
    assert_member_text(object, "before", before);
    assert_member_text(object, "after", after);
}

static void assert_cause(const cJSON *object, const char *cause, const char *name)
{
    assert_member_text(object, "cause", cause);
    assert_member_text(object, "name", name);
}

Test(describe_json, an_empty_schedule)
{
    cJSON *root = parsed();
    assert_number(root, "version", 1);
    assert_flag(root, "fuse", true);
    assert_number(root, "shuffle_seed", 0);
    assert_member_text(root, "unit", "calls");
    assert_null(member(root, "load"), "parallelism");
    const cJSON *phase = item(member(root, "phases"), 0);
    assert_member_text(phase, "name", "p0");
    assert_null(phase, "fixed_step");
    assert_member_text(segment_of(root, 0, 0), "kind", "sync");
    assert_count(root, "by_registration_alone", 0);
    cJSON_Delete(root);
}

Test(describe_json, passes_edges_and_loads)
{
    const quern_component both[] = {position, velocity};
    for (uint32_t i = 0; i < ROWS; i++)
        setup_entity_with(world, both, 2);
    setup_writer(schedule, "push", velocity);
    add_terms("move", (quern_term[]){quern_term_write(position), quern_term_read(velocity)}, 2);
    add_user("count", position, score, QUERN_WRITE);
    cJSON *root = parsed();
    assert_load(root, 18, 8, 2.25);
    assert_load(segment_of(root, 0, 0), 18, 8, 2.25);

    const cJSON *first = pass_of(root, 0), *second = pass_of(root, 1);
    assert_number(first, "pass", 1);
    assert_member_text(first, "kind", "chunks");
    assert_null(first, "alone");
    assert_number(first, "lanes", 1);
    assert_number(first, "archetypes", 1);
    assert_number(first, "chunks", 6);
    assert_number(first, "entities", ROWS);
    assert_count(first, "waits_for", 0);
    assert_member_text(second, "kind", "serial");
    assert_member_text(member(second, "alone"), "reason", "resource");
    assert_member_text(member(second, "alone"), "name", "score");
    cr_assert_eq(item(member(second, "waits_for"), 0)->valueint, 1);

    const cJSON *edges = member(segment_of(root, 0, 0), "edges");
    cr_assert_eq(cJSON_GetArraySize(edges), 2);
    assert_pair(item(edges, 0), "push", "move");
    assert_count(item(edges, 0), "causes", 1);
    assert_cause(item(member(item(edges, 0), "causes"), 0), "component", "velocity");
    assert_flag(item(edges, 0), "chunk_local", true);
    assert_member_text(item(edges, 0), "kept_by", "pass");
    assert_flag(item(edges, 0), "by_registration_alone", true);
    assert_pair(item(edges, 1), "move", "count");
    assert_member_text(item(edges, 1), "kept_by", "graph");
    assert_count(root, "by_registration_alone", 2);
    const cJSON *accident = item(member(root, "by_registration_alone"), 1);
    assert_pair(accident, "move", "count");
    assert_cause(accident, "component", "position");
    cJSON_Delete(root);
}

Test(describe_json, up_terms_name_their_relation)
{
    quern_relation relation;
    must(quern_relation_register(world, &(quern_relation_def){.name = "belongs to"}, &relation));
    quern_system_def def = reader_def("up", position);
    def.terms[1] = quern_term_up(velocity, relation);
    def.terms[2] = quern_term_up_nearest_optional(velocity, relation);
    setup_system(schedule, &def);
    setup_writer(schedule, "later", velocity);
    must_exist(velocity);
    cJSON *root = parsed();
    const cJSON *terms = member(system_of(root, 0, 0), "terms");
    assert_member_text(item(terms, 1), "component", "velocity");
    assert_member_text(item(terms, 1), "access", "read");
    assert_member_text(item(terms, 1), "reach", "up");
    assert_member_text(item(terms, 1), "relation", "belongs to");
    assert_member_text(item(terms, 2), "match", "optional");
    assert_member_text(item(terms, 2), "reach", "nearest");
    assert_count(system_of(root, 0, 0), "lookups", 0);
    cJSON_Delete(root);
}

Test(describe_json, filters_by_row_are_told_from_those_by_chunk)
{
    add_filters();
    cJSON *root = parsed();
    const cJSON *terms = member(system_of(root, 0, 0), "terms");
    assert_flag(item(terms, 0), "changed_by_row", true);
    assert_flag(item(terms, 1), "changed_by_row", false);
    cJSON_Delete(root);
}

Test(describe_json, a_system_with_all_it_declares)
{
    quern_term terms[] = {quern_term_changed(quern_term_read(position)), quern_term_without(velocity)};
    quern_system_def def = system_def("rich", idle_run);
    memcpy(def.terms, terms, 2 * sizeof terms[0]);
    def.lookups[0].component = health;
    def.write_lookups[0] = (quern_lookup){setup_component(world, "mass", 4, 4), .with = health};
    def.resources[0] = (quern_resource_access){score, QUERN_READ};
    def.resources[1] = (quern_resource_access){clock_resource, QUERN_WRITE_CONCURRENT};
    def.condition = always;
    def.interval_seconds = 0.125;
    def.begin = idle_callback;
    def.partial_bytes = 24;
    must_exist(position);
    must(quern_schedule_set_enabled(schedule, setup_system(schedule, &def), false));
    cJSON *root = parsed();
    const cJSON *system = system_of(root, 0, 0);
    assert_member_text(system, "name", "rich");
    assert_number(system, "lane", 1);
    assert_flag(system, "enabled", false);
    assert_flag(system, "serial", true);
    assert_flag(system, "main_thread", false);
    assert_flag(system, "exclusive", false);
    assert_flag(system, "condition", true);
    assert_number(system, "interval_seconds", 0.125);
    assert_flag(system, "begin", true);
    assert_flag(system, "end", false);
    assert_number(system, "partial_bytes", 24);
    assert_number(system, "archetypes", 1);
    assert_number(system, "chunks", 1);
    const cJSON *first = item(member(system, "terms"), 0), *second = item(member(system, "terms"), 1);
    assert_member_text(first, "component", "position");
    assert_member_text(first, "match", "all");
    assert_member_text(first, "access", "read");
    assert_flag(first, "changed", true);
    assert_flag(first, "changed_by_row", false);
    assert_member_text(first, "reach", "row");
    cr_assert(cJSON_IsNull(member(first, "relation")));
    assert_member_text(second, "match", "none");
    assert_member_text(second, "access", "none");
    assert_flag(second, "changed", false);
    cr_assert_str_eq(item(member(system, "lookups"), 0)->valuestring, "health");
    cr_assert_str_eq(item(member(system, "write_lookups"), 0)->valuestring, "mass");
    const cJSON *limit = item(member(system, "lookup_limits"), 0);
    assert_count(system, "lookup_limits", 1);
    assert_member_text(limit, "component", "mass");
    assert_member_text(limit, "with", "health");
    cr_assert(cJSON_IsNull(member(limit, "without")));
    assert_member_text(item(member(system, "resources"), 1), "resource", "clock");
    assert_member_text(item(member(system, "resources"), 1), "access", "write_concurrent");
    assert_count(system, "not_in", 0);
    cJSON_Delete(root);
}

Test(describe_json, why_systems_are_apart)
{
    add_user("a", position, score, QUERN_WRITE_CONCURRENT);
    add_user("b", velocity, score, QUERN_READ);
    setup_reader(schedule, "c", position);
    add_after("d", health, "b");
    cJSON *root = parsed();
    const cJSON *b = item(member(system_of(root, 1, 0), "not_in"), 0);
    assert_number(b, "pass", 1);
    assert_member_text(b, "reason", "conflict");
    assert_member_text(b, "system", "a");
    assert_member_text(b, "cause", "resource");
    assert_member_text(b, "name", "score");
    const cJSON *c = item(member(system_of(root, 0, 1), "not_in"), 0);
    assert_number(c, "pass", 2);
    assert_member_text(c, "reason", "choice");
    const cJSON *d = item(member(system_of(root, 2, 0), "not_in"), 0);
    assert_number(d, "pass", 1);
    assert_member_text(d, "reason", "order");
    assert_member_text(d, "system", "b");
    assert_member_text(d, "cause", "before_after");
    assert_null(d, "name");
    cJSON_Delete(root);
}

Test(describe_json, exclusive_segments_and_fixed_steps)
{
    must(quern_schedule_set_fixed_step(schedule, 0, 0.5, 3));
    quern_system_def def = system_def("x", idle_run);
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(schedule, &def);
    cJSON *root = parsed();
    const cJSON *fixed = member(item(member(root, "phases"), 0), "fixed_step");
    assert_number(fixed, "seconds", 0.5);
    assert_number(fixed, "max_count", 3);
    assert_member_text(segment_of(root, 0, 0), "kind", "sync");
    const cJSON *segment = segment_of(root, 0, 1);
    assert_member_text(segment, "kind", "exclusive");
    assert_load(segment, 1, 1, 1);
    const cJSON *pass = item(member(segment, "passes"), 0);
    assert_member_text(pass, "kind", "once");
    assert_member_text(member(pass, "alone"), "reason", "exclusive");
    assert_null(member(pass, "alone"), "name");
    cJSON_Delete(root);
}

/* The replacement character, and two of them. */
#define BAD "\xEF\xBF\xBD"
#define TWO BAD BAD

/* A name may hold any bytes; what is no UTF-8 is replaced. */
Test(describe_json, names_are_escaped)
{
    static const char *const names[] = {
        "a \"quoted\" \\ name",
        "line\nbreak\ttab\x7F",
        "gr\xC3\xB6\xC3\x9Fte \xE2\x82\xAC \xF0\x9F\x90\x9D",
        "no start \xFF\x80, no end \xC3 \xE2\x82",
        "too long \xC0\x80 \xE0\x9F\xBF \xF0\x8F\xBF\xBF",
        "too far \xF4\x90\x80\x80 \xF5\x80",
        "half a pair \xED\xA0\x80",
        "not too long \xC2\x80\xE0\xA0\x80\xF0\x90\x80\x80, not too far \xF4\x8F\xBF\xBF\xED\x9F\xBF",
    };
    static const char *const read[] = {
        "a \"quoted\" \\ name",
        "line\nbreak\ttab\x7F",
        "gr\xC3\xB6\xC3\x9Fte \xE2\x82\xAC \xF0\x9F\x90\x9D",
        "no start " TWO ", no end " BAD " " TWO,
        "too long " TWO " " TWO BAD " " TWO TWO,
        "too far " TWO TWO " " TWO,
        "half a pair " TWO BAD,
        "not too long \xC2\x80\xE0\xA0\x80\xF0\x90\x80\x80, not too far \xF4\x8F\xBF\xBF\xED\x9F\xBF",
    };
    for (uint32_t i = 0; i < COUNT_OF(names); i++)
        setup_reader(schedule, names[i], position);
    cJSON *root = parsed();
    for (uint32_t i = 0; i < COUNT_OF(names); i++)
        assert_member_text(system_of(root, 0, i), "name", read[i]);
    cJSON_Delete(root);
    assert_line("'line\\x0Abreak\\x09tab\\x7F': read 'position'; lane 2");
}

static void work(quern_context *context, const quern_view *view)
{
    volatile uint64_t *sum = quern_context_user_data(context);
    quern_commands_destroy(quern_context_commands(context), view->entities[0]);
    for (uint32_t i = 0; i < view->count; i++)
        *sum += i;
}

/* With times, the unit is theirs, and no path is longer than all work together. */
static void assert_times(const cJSON *object)
{
    const cJSON *load = member(object, "load");
    double all = member(load, "work")->valuedouble, path = member(load, "critical_path")->valuedouble;
    cr_assert_gt(path, 0.0);
    cr_assert_leq(path, all);
    assert_number(load, "parallelism", (double)(uint64_t)(all * 1000 / path + 0.5) / 1000);
}

Test(describe_json, measured_times_are_used_where_there_are_some)
{
    static uint64_t sum;
    quern_schedule_def def = {.timing = true};
    reopen(&def);
    for (uint32_t i = 0; i < ROWS; i++)
        must_exist(position);
    quern_system_def timed = reader_def("timed", position);
    timed.run = work;
    timed.user_data = &sum;
    timed.flags = QUERN_SYSTEM_SERIAL;
    setup_system(schedule, &timed);
    cJSON *root = parsed();
    assert_member_text(root, "unit", "calls");
    cJSON_Delete(root);
    must_run(schedule, NULL);
    root = parsed();
    assert_member_text(root, "unit", "ns");
    assert_times(root);
    assert_times(segment_of(root, 0, 0));
    quern_system_stats stats;
    must(quern_schedule_get_system_stats(schedule, quern_schedule_find_system(schedule, "timed"), &stats));
    assert_load(segment_of(root, 0, 0), (double)stats.time_ns, (double)stats.time_ns, 1);
    double frame_ns = (double)(stats.time_ns + stats_of_frame(schedule).sync_ns);
    assert_load(root, frame_ns, frame_ns, 1);
    cJSON_Delete(root);
    cr_assert_not_null(strstr(written(QUERN_DESCRIBE_TEXT), " us, critical path "));
}

Test(describe_json, without_timing_calls_are_counted_after_a_frame_too)
{
    must_exist(position);
    setup_reader(schedule, "a", position);
    must_run(schedule, NULL);
    cJSON *root = parsed();
    assert_member_text(root, "unit", "calls");
    assert_load(root, 1, 1, 1);
    cJSON_Delete(root);
}

/* ---------------------------------------------------------------------------------------- as a picture */

/* Systems of every kind, and names that have to be escaped. */
static void setup_zoo(void)
{
    const quern_component both[] = {position, velocity};
    setup_entity_with(world, both, 2);
    setup_writer(schedule, "a \"quoted\" \\ & name\n", position);
    add_looker("b", velocity, position);
    add_user("c", position, score, QUERN_WRITE);
    add_user("d", position, score, QUERN_WRITE);
    add_user("e", position, score, QUERN_WRITE);
    quern_system_def def = system_def("x", idle_run);
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(schedule, &def);
    def = system_def("y", idle_run);
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    must(quern_schedule_set_enabled(schedule, setup_system(schedule, &def), false));
    setup_writer(schedule, "z", velocity);
}

/* What scripts/schedule_dot.py makes of the JSON. */
static const char *drawn(void)
{
    static char text[TEXT_BYTES];
    if (system("python3 --version >/dev/null 2>&1") != 0) cr_skip_test("Python 3 is not installed");
    char path[] = "/tmp/test_describe_XXXXXX", command[512];
    int descriptor = mkstemp(path);
    cr_assert_geq(descriptor, 0);
    FILE *file = fdopen(descriptor, "w");
    must(quern_schedule_describe(schedule, QUERN_DESCRIBE_JSON, quern_sink_file(file)));
    fclose(file);
    snprintf(command, sizeof command, "python3 '" QUERN_SCRIPTS "/schedule_dot.py' %s", path);
    FILE *script = popen(command, "r");
    cr_assert_not_null(script);
    text[fread(text, 1, sizeof text - 1, script)] = '\0';
    remove(path);
    cr_assert_eq(pclose(script), 0, "%s", command);
    return text;
}

static void assert_in(const char *text, const char *part)
{
    cr_assert_not_null(strstr(text, part), "no '%s' in:\n%s", part, text);
}

Test(describe_dot, systems_passes_and_edges_are_there)
{
    setup_zoo();
    const char *text = drawn();
    assert_in(text, "digraph schedule {\n");
    assert_in(text, "label=\"phase 'p0'\"");
    assert_in(text, "label=\"pass 1\\n1 chunk, parallel\"");
    assert_in(text, "s0 [label=\"a \\\"quoted\\\" \\\\ &amp; name\\\\x0A\"]");
    assert_in(text, "s2 -> s3 [label=\"resource 'score'\", style=solid, color=orangered]");
    assert_in(text,
              "s2 -> s4 [label=\"resource 'score'\", style=dotted, constraint=false, color=orangered]");
    assert_in(text, "s6 [label=\"y\", style=dashed]");
    assert_in(text, "frame -> s0 [color=gray]");
    assert_in(text, "g1 -> s5 [color=gray]");
    assert_in(text, "s7 -> g6 [color=gray]");
    cr_assert_null(strstr(text, "frame -> g1"), "passes stand in between");
}

Test(describe_dot, graphviz_accepts_it)
{
    if (system("dot -V 2>/dev/null") != 0) cr_skip_test("Graphviz is not installed");
    setup_zoo();
    const char *text = drawn();
    FILE *dot = popen("dot -Tsvg 2>&1 >/dev/null | grep . && exit 1 || exit 0", "w");
    cr_assert_not_null(dot);
    fputs(text, dot);
    cr_assert_eq(pclose(dot), 0, "dot has something to say about:\n%s", text);
}

/* Nothing is drawn of what is no schedule, or of one that is cut off. */
Test(describe_dot, what_is_no_schedule_is_refused)
{
    if (system("python3 --version >/dev/null 2>&1") != 0) cr_skip_test("Python 3 is not installed");
    static const char *const texts[] = {"", "[1, 2]", "{\"version\": 2}",
                                        "{\"version\": 1, \"phases\": [{\"steps\": []}]}"};
    for (uint32_t i = 0; i < COUNT_OF(texts); i++) {
        char command[1024], output[512];
        snprintf(command, sizeof command, "echo '%s' | python3 '" QUERN_SCRIPTS "/schedule_dot.py' 2>&1",
                 texts[i]);
        FILE *script = popen(command, "r");
        cr_assert_not_null(script);
        output[fread(output, 1, sizeof output - 1, script)] = '\0';
        cr_assert_neq(pclose(script), 0, "%s", command);
        const char *message = "schedule_dot.py: standard input is not the JSON of quern_schedule_describe";
        cr_assert_eq(strncmp(output, message, strlen(message)), 0, "%s", output);
    }
}

/* -------------------------------------------------------------------------------------------- failing */

Test(describe, a_format_that_does_not_exist_is_refused)
{
    assert_refused(world, QUERN_ERROR_INVALID_ARGUMENT,
                   quern_schedule_describe(schedule, (quern_describe_format)2, quern_sink_file(stderr)));
    assert_message_has("format 2 ");
}

static void describe_within(quern_context *context)
{
    (void)context;
    cr_assert_eq(quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(stderr)),
                 QUERN_ERROR_WORLD_LOCKED);
}

Test(describe, it_is_refused_while_a_frame_runs)
{
    quern_system_def def = system_def("asks", NULL);
    def.begin = describe_within;
    setup_system(schedule, &def);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).frame_index, 0u);
    assert_message_has("frame");
}

static void assert_file_error(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);
    cr_assert_not_null(file, "%s", path);
    for (quern_describe_format format = QUERN_DESCRIBE_TEXT; format <= QUERN_DESCRIBE_JSON; format++) {
        assert_refused(world, QUERN_ERROR_FILE,
                       quern_schedule_describe(schedule, format, quern_sink_file(file)));
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

/* Refused memory: nothing is written, and the next call does it. */
Test(describe, missing_memory_is_reported)
{
    close_world();
    failing_allocator *memory = failing_allocator_create();
    quern_world_def def = {.allocator = failing_allocator_interface(memory)};
    must(quern_world_create(&def, &world));
    position = setup_component(world, "position", sizeof(vec3), 4);
    schedule = setup_schedule(world);
    setup_writer(schedule, "a", position);
    must(quern_schedule_compile(schedule));
    FILE *file = tmpfile();
    uint32_t failed_count = 0;
    for (bool failed = true; failed; failed_count += failed) {
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + failed_count + 1);
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
