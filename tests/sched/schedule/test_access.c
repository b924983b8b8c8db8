/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <string.h>

/* Which systems wait for each other, and what happens to a system that accesses what it did not declare. */

static quern_component position, velocity, tag;
static quern_entity tag_owner;
static quern_resource score, grid;

static void open_world(void)
{
    world = setup_world();
    position = setup_component(world, "position", sizeof(vec3), 4);
    velocity = setup_component(world, "velocity", sizeof(vec3), 4);
    tag = setup_tag(world, "tag");
    score = setup_counter(world, "score");
    grid = setup_counter(world, "grid");
}

TestSuite(access, .init = open_world, .fini = close_world);
TestSuite(outside, .init = open_world, .fini = close_world);
TestSuite(undeclared, .init = open_world, .fini = close_world);

static void setup_archetype(quern_component a, quern_component b)
{
    quern_component both[] = {a, b};
    setup_entity_with(world, both, quern_component_is_null(b) ? 1 : 2);
}

static const quern_component none = {0};

/* ---------------------------------------------------------------------------------- conflicts of pairs */

/* The declarations of one of two systems, in short. */
typedef struct declares {
    quern_term terms[3];
    quern_component lookup;
    quern_resource_access resource;
} declares;

static quern_system_def def_of(const declares *what, const char *name)
{
    quern_system_def def = system_def(name, idle_run);
    memcpy(def.terms, what->terms, sizeof what->terms);
    def.lookups[0].component = what->lookup;
    def.resources[0] = what->resource;
    return def;
}

static bool meet_in_order(const declares *a, const declares *b)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def def_a = def_of(a, "a"), def_b = def_of(b, "b");
    quern_system system_a = setup_system(schedule, &def_a), system_b = setup_system(schedule, &def_b);
    must(quern_schedule_compile(schedule));
    bool edge = quern_schedule_has_edge(schedule, system_a, system_b);
    cr_assert_not(quern_schedule_has_edge(schedule, system_b, system_a), "edges follow the order");
    cr_assert_eq(strstr(described(schedule), "after 'a'") != NULL, edge, "described: %s",
                 described(schedule));
    quern_schedule_destroy(schedule);
    return edge;
}

static bool meet(declares a, declares b)
{
    bool edge = meet_in_order(&a, &b);
    cr_assert_eq(meet_in_order(&b, &a), edge, "a conflict does not depend on the order");
    return edge;
}

#define TERMS(...)            ((declares){.terms = {__VA_ARGS__}})
#define LOOKS_UP(c)           ((declares){.lookup = (c)})
#define RESOURCE(r, r_access) ((declares){.resource = {(r), (r_access)}})

Test(access, write_conflicts_with_reads_and_writes_of_same_component)
{
    setup_archetype(position, velocity);
    cr_assert(meet(TERMS(quern_term_write(position)), TERMS(quern_term_write(position))));
    cr_assert(meet(TERMS(quern_term_write(position)), TERMS(quern_term_read(position))));
    cr_assert_not(meet(TERMS(quern_term_read(position)), TERMS(quern_term_read(position))));
    cr_assert_not(meet(TERMS(quern_term_write(position)), TERMS(quern_term_write(velocity))));
    cr_assert_not(meet(TERMS(quern_term_write(position)), TERMS(quern_term_with(position))));
    cr_assert_not(meet(TERMS(quern_term_write(position)), TERMS(quern_term_without(position))));
}

Test(access, systems_without_common_archetype_do_not_conflict)
{
    setup_archetype(position, tag);
    setup_archetype(position, velocity);
    declares tagged = TERMS(quern_term_write(position), quern_term_with(tag));
    declares untagged = TERMS(quern_term_write(position), quern_term_without(tag));
    cr_assert_not(meet(tagged, untagged));
    cr_assert(meet(tagged, TERMS(quern_term_write(position))));
    cr_assert(meet(untagged, TERMS(quern_term_read(position), quern_term_read(velocity))));
    cr_assert_not(meet(tagged, TERMS(quern_term_write(position), quern_term_read(velocity))));
}

/* Enabled and disabled components are in different rows of a chunk, but in one column with one set of
 * bits. */
Test(access, enabled_and_disabled_terms_of_one_component_conflict)
{
    quern_component shield =
        make_component(world, .name = "shield", .size_bytes = 8, .alignment_bytes = 8, .can_disable = true);
    setup_archetype(shield, velocity);
    const quern_term written = quern_term_if_disabled(quern_term_write(shield));
    cr_assert(meet(TERMS(written), TERMS(quern_term_write(shield))));
    cr_assert(meet(TERMS(written), TERMS(quern_term_read(shield))));
    cr_assert(meet(TERMS(written), TERMS(quern_term_with(shield))), "it reads the enabled bits");
    cr_assert(meet(TERMS(written), TERMS(written)));
    cr_assert_not(
        meet(TERMS(quern_term_if_disabled(quern_term_read(shield))), TERMS(quern_term_read(shield))));
    cr_assert_not(meet(TERMS(written), TERMS(quern_term_write(velocity))));
}

Test(access, an_optional_component_counts_where_it_is_present)
{
    setup_archetype(position, tag);
    declares optional = TERMS(quern_term_with(tag), quern_term_optional(position, QUERN_ACCESS_WRITE));
    declares optional_velocity =
        TERMS(quern_term_with(tag), quern_term_optional(velocity, QUERN_ACCESS_WRITE));
    cr_assert(meet(optional, TERMS(quern_term_read(position))));
    cr_assert_not(meet(optional_velocity, optional_velocity));
    setup_archetype(velocity, tag);
    cr_assert(meet(optional_velocity, TERMS(quern_term_read(velocity))));
}

Test(access, any_terms_count_where_they_are_present)
{
    setup_archetype(position, none);
    declares either =
        TERMS(quern_term_any(position, QUERN_ACCESS_WRITE), quern_term_any(velocity, QUERN_ACCESS_WRITE));
    cr_assert(meet(either, TERMS(quern_term_read(position))));
    cr_assert_not(meet(either, TERMS(quern_term_read(velocity))));
}

Test(access, empty_world_has_no_component_conflicts)
{
    cr_assert_not(meet(TERMS(quern_term_write(position)), TERMS(quern_term_write(position))));
    cr_assert_not(meet(TERMS(quern_term_write(position)), LOOKS_UP(position)));
}

Test(access, lookup_conflicts_with_writers_that_match_an_archetype)
{
    setup_archetype(position, tag);
    cr_assert(meet(LOOKS_UP(position), TERMS(quern_term_write(position))));
    cr_assert_not(meet(LOOKS_UP(position), TERMS(quern_term_read(position))));
    cr_assert_not(meet(LOOKS_UP(position), LOOKS_UP(position)));
    cr_assert_not(meet(LOOKS_UP(velocity), TERMS(quern_term_write(position))));
    cr_assert_not(meet(LOOKS_UP(position), TERMS(quern_term_write(position), quern_term_without(tag))));
    declares both = LOOKS_UP(position);
    both.terms[0] = quern_term_read(velocity);
    cr_assert(meet(both, TERMS(quern_term_write(position))));
}

Test(access, resources_conflict_unless_both_systems_read)
{
    static const quern_access kinds[] = {QUERN_ACCESS_READ, QUERN_ACCESS_WRITE,
                                         QUERN_ACCESS_WRITE_CONCURRENT};
    for (uint32_t i = 0; i < COUNT_OF(kinds); i++)
        for (uint32_t k = 0; k < COUNT_OF(kinds); k++) {
            bool both_read = kinds[i] == QUERN_ACCESS_READ && kinds[k] == QUERN_ACCESS_READ;
            cr_assert_eq(meet(RESOURCE(score, kinds[i]), RESOURCE(score, kinds[k])), !both_read,
                         "%u and %u", i, k);
            cr_assert_not(meet(RESOURCE(score, kinds[i]), RESOURCE(grid, kinds[k])));
        }
}

/* -------------------------------------------------------------------------------- edges of a schedule */

Test(access, systems_of_different_phases_have_no_edge)
{
    setup_archetype(position, none);
    quern_schedule *schedule = setup_phases(world, 2);
    quern_system_def def = system_def("early", idle_run);
    def.terms[0] = quern_term_write(position);
    quern_system early = setup_system(schedule, &def);
    def.name = "late";
    def.phase = 1;
    quern_system late = setup_system(schedule, &def);
    must(quern_schedule_compile(schedule));
    cr_assert_not(quern_schedule_has_edge(schedule, early, late));
}

Test(access, a_declared_order_is_an_edge_and_edges_are_direct)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system c = make_system(schedule, "c", idle_run, .after = {"b"});
    quern_system b = make_system(schedule, "b", idle_run);
    quern_system a = make_system(schedule, "a", idle_run, .before = {"b"});
    cr_assert_not(quern_schedule_has_edge(schedule, a, b), "not compiled yet");
    cr_assert_not_null(strstr(described(schedule), "after 'b' of pass 2: before/after"));
    cr_assert(quern_schedule_has_edge(schedule, a, b));
    cr_assert(quern_schedule_has_edge(schedule, b, c));
    cr_assert_not(quern_schedule_has_edge(schedule, a, c));
    cr_assert_not(quern_schedule_has_edge(schedule, b, b));
}

Test(access, describe_says_why_each_system_waits)
{
    setup_archetype(position, velocity);
    quern_schedule *schedule = setup_phases(world, 2);
    setup_writer(schedule, "move", position);
    setup_reader(schedule, "draw", position);
    declares looks = LOOKS_UP(position), scores = RESOURCE(score, QUERN_ACCESS_WRITE);
    quern_system_def seek = def_of(&looks, "seek"), count = def_of(&scores, "count"),
                     again = def_of(&scores, "again"), alone = system_def("alone", idle_run);
    alone.flags = QUERN_SYSTEM_EXCLUSIVE;
    alone.phase = 1;
    quern_system_def *defs[] = {&seek, &count, &again, &alone};
    for (uint32_t i = 0; i < COUNT_OF(defs); i++)
        setup_system(schedule, defs[i]);
    const char *text = described(schedule);
    static const char *const parts[] = {"phase 'p0'",
                                        "phase 'p1'",
                                        "move",
                                        "write 'position'",
                                        "read 'position'",
                                        "look up 'position'",
                                        "after 'move': component 'position'",
                                        "after 'move' of pass 1: lookup of 'position'",
                                        "after 'count' of pass 3: resource 'score'",
                                        "exclusive"};
    for (uint32_t i = 0; i < COUNT_OF(parts); i++)
        cr_assert_not_null(strstr(text, parts[i]), "no \"%s\" in: %s", parts[i], text);
}

/* ----------------------------------------------------------------------------------- new archetypes */

enum { CROWD = 5000 };

static void create_crowd(quern_context *context)
{
    quern_component both[] = {position, velocity};
    vec3 zero = {0};
    const void *values[] = {&zero, &zero};
    for (uint32_t i = 0; i < CROWD && quern_context_frame_index(context) == 0; i++)
        cr_assert(record_entity_with(quern_context_commands(context), both, values, 2).bits);
}

static void create_crowd_at_once(quern_context *context)
{
    quern_component both[] = {position, velocity};
    for (uint32_t i = 0; i < CROWD && quern_context_frame_index(context) == 0; i++)
        setup_entity_with(quern_context_world(context), both, 2);
}

static void add_one(quern_context *context, const quern_view *view)
{
    vec3 *positions = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        positions[i].x += 1;
}

static void doubled(quern_context *context, const quern_view *view)
{
    vec3 *positions = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        positions[i].x *= 2;
}

static void assert_crowd_at(float expected)
{
    quern_term term = quern_term_read(position);
    quern_query *query = setup_query(world, &term, 1);
    cr_assert_eq(quern_query_count(query), (uint64_t)CROWD);
    for (quern_query_iterator it = quern_query_iterate(query); quern_query_next(&it);) {
        const vec3 *positions = quern_view_read(&it.view, 0);
        for (uint32_t i = 0; i < it.view.count; i++)
            cr_assert_float_eq(positions[i].x, expected, 0);
    }
    quern_query_destroy(query);
}

/* Runs two systems that match an archetype which `creator` makes in the phase before theirs. */
static void run_with_late_archetype(const quern_system_def *creator)
{
    quern_schedule *schedule = setup_phases(world, 2);
    setup_system(schedule, creator);
    quern_system_def add = system_def("add", add_one), twice = system_def("double", doubled);
    add.terms[0] = twice.terms[0] = quern_term_write(position);
    add.terms[1] = twice.terms[1] = quern_term_with(velocity);
    add.phase = twice.phase = 1;
    quern_system a = setup_system(schedule, &add), b = setup_system(schedule, &twice);
    must(quern_schedule_compile(schedule));
    cr_assert_not(quern_schedule_has_edge(schedule, a, b), "nothing to meet on yet");
    quern_jobs *jobs = setup_jobs(4);
    must_run(schedule, jobs);
    cr_assert(quern_schedule_has_edge(schedule, a, b));
    assert_crowd_at(2);
    must_run(schedule, jobs);
    assert_crowd_at(6);
    quern_jobs_destroy(jobs);
    quern_schedule_destroy(schedule);
}

Test(access, a_sync_point_that_makes_an_archetype_makes_its_conflicts)
{
    quern_system_def creator = system_def("creator", NULL);
    creator.begin = create_crowd;
    run_with_late_archetype(&creator);
}

Test(access, an_exclusive_system_that_makes_an_archetype_makes_its_conflicts)
{
    quern_system_def creator = system_def("creator", NULL);
    creator.begin = create_crowd_at_once;
    creator.flags = QUERN_SYSTEM_EXCLUSIVE;
    run_with_late_archetype(&creator);
}

Test(access, an_archetype_made_between_frames_makes_its_conflicts)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system writer = setup_writer(schedule, "writer", position);
    quern_system reader = setup_reader(schedule, "reader", position);
    must_run(schedule, NULL);
    cr_assert_not(quern_schedule_has_edge(schedule, writer, reader));
    setup_archetype(position, none);
    must_run(schedule, NULL);
    cr_assert(quern_schedule_has_edge(schedule, writer, reader));
}

/* --------------------------------------------------------------------------------- outside of the world */

enum { DRAWERS = 6 };

static uint32_t drawn[DRAWERS], drawn_count;

static void draw(quern_context *context, const quern_view *view)
{
    drawn[drawn_count++] = *(const uint32_t *)quern_context_user_data(context);
}

/* The systems conflict only over the resource, which represents something outside of the world. */
Test(outside, writers_of_resource_for_outside_state_run_in_registration_order)
{
    uint32_t numbers[DRAWERS];
    setup_archetype(position, velocity);
    for (uint64_t seed = 0; seed < 20; seed++) {
        quern_schedule *schedule;
        must(quern_schedule_create(world, &(quern_schedule_def){.shuffle_seed = seed}, &schedule));
        for (uint32_t i = 0; i < DRAWERS; i++) {
            const char *const names[DRAWERS] = {"f", "e", "d", "c", "b", "a"};
            quern_system_def def = system_def(names[i], draw);
            numbers[i] = i;
            def.user_data = &numbers[i];
            def.flags = QUERN_SYSTEM_MAIN_THREAD;
            def.terms[0] = quern_term_read(position);
            def.resources[0] = (quern_resource_access){score, QUERN_ACCESS_WRITE};
            setup_system(schedule, &def);
        }
        drawn_count = 0;
        must(quern_schedule_run(schedule, NULL, 0));
        cr_assert_eq(drawn_count, (uint32_t)DRAWERS);
        cr_assert_arr_eq(drawn, numbers, sizeof numbers, "seed %u", (unsigned)seed);
        quern_schedule_destroy(schedule);
    }
}

/* --------------------------------------------------------------------------------- undeclared access */

static captured_reports reports;

static void write_a_read_term(quern_context *context, const quern_view *view)
{
    cr_assert(is_scratch(quern_view_write(view, 0), view->count * sizeof(vec3)));
    cr_assert_not_null(quern_view_read(view, 0), "what was declared still works");
}

static void read_an_untouched_term(quern_context *context, const quern_view *view)
{
    cr_assert(is_scratch(quern_view_read(view, 1), view->count * sizeof(vec3)));
}

static void write_a_missing_term(quern_context *context, const quern_view *view)
{
    cr_assert(is_scratch(quern_view_write(view, UINT32_MAX), view->count * sizeof(vec3)));
}

static void look_up_a_tag(quern_context *context, const quern_view *view)
{
    cr_assert(is_scratch(quern_context_lookup(context, tag_owner, tag), QUERN_MAX_COMPONENT_BYTES));
    cr_assert(quern_context_has(context, tag_owner, tag));
    cr_assert_not(quern_context_has(context, view->entities[0], tag));
    cr_assert_not(quern_context_has(context, (quern_entity){0}, tag));
}

static void look_up_a_tag_of_nobody(quern_context *context, const quern_view *view)
{
    cr_assert(is_scratch(quern_context_lookup(context, (quern_entity){0}, tag), 1));
}

static void look_up_many(quern_context *context, quern_component component)
{
    const quern_entity list[] = {tag_owner, {0}};
    const void *values[] = {list, list};
    cr_assert_eq(quern_context_lookup_many(context, list, 2, component, values), 0u);
    cr_assert(is_scratch(values[0], sizeof(vec3)) && values[0] == values[1]);
}

static void look_up_many_tags(quern_context *context, const quern_view *view)
{
    look_up_many(context, tag);
}

static void look_up_many_undeclared(quern_context *context, const quern_view *view)
{
    look_up_many(context, velocity);
}

static void look_up_many_of_nothing(quern_context *context, const quern_view *view)
{
    look_up_many(context, (quern_component){0});
}

static void ask_whether(quern_context *context, const quern_view *view)
{
    cr_assert_not(quern_context_has(context, view->entities[0], velocity));
}

static void read_a_missing_term(quern_context *context, const quern_view *view)
{
    cr_assert(is_scratch(quern_view_read(view, 2), view->count * sizeof(vec3)));
    cr_assert_not(quern_view_has(view, 2));
}

static void look_up(quern_context *context, const quern_view *view)
{
    for (uint32_t i = 0; i < view->count; i++)
        cr_assert(is_scratch(quern_context_lookup(context, view->entities[i], velocity), sizeof(vec3)));
}

static void look_up_own_term(quern_context *context, const quern_view *view)
{
    for (uint32_t i = 0; i < view->count; i++)
        cr_assert(is_scratch(quern_context_lookup(context, view->entities[i], position), sizeof(vec3)));
}

static void read_resource(quern_context *context, const quern_view *view)
{
    cr_assert(is_scratch(quern_context_resource(context, grid), sizeof(uint64_t)));
}

static void write_read_resource(quern_context *context, const quern_view *view)
{
    cr_assert_not_null(quern_context_resource(context, score));
    cr_assert(is_scratch(quern_context_resource_write(context, score), sizeof(uint64_t)));
}

static void ask_for_world(quern_context *context, const quern_view *view)
{
    cr_assert_null(quern_context_world(context));
}

static void cast_const_away(quern_context *context, const quern_view *view)
{
    vec3 *positions = (vec3 *)(uintptr_t)quern_view_read(view, 0);
    positions[view->count - 1].z += 1;
}

typedef struct offence {
    quern_view_callback *run;
    const char *what; /* named in the message, together with the system */
} offence;

static const offence offences[] = {
    {write_a_read_term, "'position', term 0 (declared: read position, match velocity)"},
    {read_an_untouched_term, "'velocity', term 1"},
    {read_a_missing_term, "quern_view_read: system 'offender' asked for term 2; there are 2, from 0"},
    {write_a_missing_term, "quern_view_write: system 'offender' asked for term 4294967295; there are 2"},
    {look_up_a_tag, "quern_context_lookup: system 'offender' looked up 'tag', a tag, which has no value"},
    {look_up_a_tag_of_nobody, "quern_context_lookup: system 'offender' looked up 'tag', a tag"},
    {look_up_many_tags,
     "quern_context_lookup_many: system 'offender' looked up 'tag', a tag, which has no"},
    {look_up_many_undeclared, "quern_context_lookup_many: system 'offender' looked up 'velocity' without"},
    {look_up_many_of_nothing, "invalid handle: the component handle is null: register it first"},
    {ask_whether, "quern_context_has: system 'offender' looked up 'velocity' without declaring it"},
    {look_up, "'velocity' without declaring it (its lookups: 'tag')"},
    {look_up_own_term, "'position' without declaring it (its lookups: 'tag')"},
    {read_resource, "read resource 'grid' without declaring it (its resources: read 'score')"},
    {write_read_resource, "write resource 'score' without declaring it (its resources: read 'score')"},
    {ask_for_world, "world"},
};

static quern_system add_offender(quern_schedule *schedule, quern_view_callback *run)
{
    quern_system_def def = system_def("offender", run);
    def.terms[0] = quern_term_read(position);
    def.terms[1] = quern_term_with(velocity);
    def.resources[0] = (quern_resource_access){score, QUERN_ACCESS_READ};
    def.lookups[0].component = tag;
    return setup_system(schedule, &def);
}

/* Runs one frame with an offending system between two systems without errors. */
static void assert_offence(quern_view_callback *run, const char *what)
{
    quern_schedule *schedule = setup_schedule(world);
    setup_reader(schedule, "earlier", position);
    quern_system offender = add_offender(schedule, run);
    setup_reader(schedule, "later", position);
    capture_reports(&reports);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    assert_message_has("'offender'");
    cr_assert_geq(reports.log_count, 1u);
    if (quern_has_checks()) cr_assert_geq(reports.assert_count, 1u, "the assert handler was not called");
    cr_assert_not_null(strstr(reports.last, "'offender'"), "%s", reports.last);
    cr_assert_not_null(strstr(reports.last, what), "no \"%s\" in: %s", what, reports.last);
    must(quern_schedule_set_system_enabled(schedule, offender, false));
    must_run(schedule, NULL);
    quern_schedule_destroy(schedule);
}

Test(undeclared, access_of_every_kind_is_refused_with_the_names_of_system_and_object)
{
    setup_archetype(position, velocity);
    tag_owner = setup_entity_with(world, &tag, 1);
    for (uint32_t i = 0; i < COUNT_OF(offences); i++)
        assert_offence(offences[i].run, offences[i].what);
}

Test(undeclared, write_through_cast_pointer_is_reported_with_checks)
{
    setup_archetype(position, velocity);
    if (quern_has_checks()) assert_offence(cast_const_away, "position");
}

/* ------------------------------------------------------------------------------------ kept pointers */

static vec3 *kept; /* points into another chunk than that of the view */

/* Keeps a pointer into the first chunk, and writes through it during the call on the last chunk. */
static void keep_and_write(quern_context *context, const quern_view *view)
{
    vec3 *positions = quern_view_write(view, 0);
    if (view->ordinal == 0) kept = positions;
    if (view->ordinal > 0) kept[0].x += 1;
}

/* Writes without a view of its own, where another system had one. */
static void write_late(quern_context *context)
{
    if (kept != NULL) kept[0].y += 1;
}

static quern_result run_keepers(const quern_system_def *second, bool fuse)
{
    kept = NULL;
    capture_reports(&reports);
    quern_schedule_def schedule_def = {.disable_fusing = !fuse};
    quern_schedule *schedule;
    must(quern_schedule_create(world, &schedule_def, &schedule));
    make_system(schedule, "keeper", keep_and_write, .terms = {quern_term_write(position)});
    if (second != NULL) setup_system(schedule, second);
    quern_result result = quern_schedule_run(schedule, NULL, 0);
    quern_schedule_destroy(schedule);
    return result;
}

static void assert_keeper_is_named(quern_result result)
{
    cr_assert_eq(result, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_not_null(strstr(reports.last, "'position'"), "%s", reports.last);
    cr_assert_not_null(strstr(reports.last, "'keeper' (declared: write position)"), "%s", reports.last);
}

Test(undeclared, write_through_kept_pointer_is_reported_with_checks)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    for (uint32_t i = 0; i < 4000; i++)
        setup_entity_with(world, &position, 1);
    assert_keeper_is_named(run_keepers(NULL, true));
    assert_keeper_is_named(run_keepers(NULL, false));
}

Test(undeclared, write_after_system_has_run_is_reported)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    setup_entity_with(world, &position, 1);
    quern_system_def late = system_def("late", NULL);
    late.begin = write_late;
    late.after[0] = "keeper";
    assert_keeper_is_named(run_keepers(&late, true));
}

static void write_from_outside(quern_context *context)
{
    kept[0].y += 1;
}

/* No system has had the column for writing, so the message names none. */
Test(undeclared, write_through_pointer_from_outside_frame_is_reported)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    quern_entity entity = setup_entity_with(world, &position, 1);
    kept = quern_entity_get(world, entity, position);
    quern_schedule *schedule = setup_schedule(world);
    setup_reader(schedule, "reader", position);
    make_system(schedule, "writer", NULL, .begin = write_from_outside);
    capture_reports(&reports);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    assert_message_has("a pointer into the world that code outside of systems kept");
    cr_assert_not_null(strstr(reports.last, "component 'position' was changed in frame 0"), "%s",
                       reports.last);
}

static void refused_in_begin(quern_context *context)
{
    cr_assert(is_scratch(quern_context_resource(context, grid), sizeof(uint64_t)));
    cr_assert_not_null(strstr(reports.last, "(its resources: none)"), "%s", reports.last);
    cr_assert_null(quern_context_world(context));
}

static void add_score(quern_context *context)
{
    ++*(uint64_t *)quern_context_resource_write(context, score);
}

Test(undeclared, rest_of_frame_runs_after_refused_access)
{
    quern_schedule *schedule = setup_phases(world, 2);
    quern_system_def bad = system_def("bad", NULL), good = system_def("good", NULL);
    bad.begin = refused_in_begin;
    good.end = add_score;
    good.resources[0] = (quern_resource_access){score, QUERN_ACCESS_WRITE};
    good.phase = 1;
    setup_system(schedule, &bad);
    setup_system(schedule, &good);
    capture_reports(&reports);
    quern_jobs *jobs = setup_jobs(2);
    must_not_run(schedule, jobs, QUERN_ERROR_UNDECLARED_ACCESS);
    assert_message_has("'bad'");
    assert_message_has("(2 in this frame)");
    cr_assert_eq(reports.log_count, 1u, "one message for each system and frame");
    cr_assert_eq(counter_value(world, score), 1u);
    quern_jobs_destroy(jobs);
}

static void use_unknown_objects(quern_context *context, const quern_view *view)
{
    quern_entity entity = view->entities[0];
    const void *value = quern_context_lookup(context, entity, component_unregistered(position));
    cr_assert(is_scratch(value, QUERN_MAX_COMPONENT_BYTES));
    cr_assert(is_scratch(quern_context_resource(context, (quern_resource){0}), QUERN_MAX_COMPONENT_BYTES));
    value = quern_context_resource_write(context, (quern_resource){score.bits + 100});
    cr_assert(is_scratch(value, QUERN_MAX_COMPONENT_BYTES));
}

Test(undeclared, invalid_handles_are_refused_with_message)
{
    setup_archetype(position, velocity);
    quern_schedule *schedule = setup_schedule(world);
    add_offender(schedule, use_unknown_objects);
    refusal before = refusal_begin(NULL);
    capture_reports(&reports);
    cr_assert_eq(quern_schedule_run(schedule, NULL, 0), QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_not_null(strstr(reports.last, "invalid handle"), "%s", reports.last);
    cr_assert(refusal_has_message(&before));
}

static void look_up_wrong_handles(quern_context *context, const quern_view *view)
{
    quern_entity entity = view->entities[0];
    quern_entity wrong[] = {quern_entity_null(),
                            entity_of_other_world(entity),
                            entity_provisional(0),
                            {entity.bits + (1ull << 32)},
                            {entity.bits + 1000}};
    cr_assert_not_null(quern_context_lookup(context, entity, position));
    cr_assert_null(quern_context_lookup(context, entity, velocity), "it has none");
    for (uint32_t i = 0; i < COUNT_OF(wrong); i++) {
        cr_assert_null(quern_context_lookup(context, wrong[i], position));
        cr_assert_not(quern_context_is_alive(context, wrong[i]));
        cr_assert_not(quern_context_has(context, wrong[i], position));
    }
    const void *values[COUNT_OF(wrong)];
    cr_assert_eq(quern_context_lookup_many(context, wrong, COUNT_OF(wrong), position, values), 0u);
    for (uint32_t i = 0; i < COUNT_OF(wrong); i++)
        cr_assert_null(values[i]);
    cr_assert_eq(quern_context_lookup_many(context, view->entities, 1, velocity, values), 0u);
    cr_assert_null(values[0]);
    cr_assert_eq(quern_context_lookup_many(context, NULL, 0, position, NULL), 0u);
}

enum { MANY_COUNT = 1000 };

static quern_entity many[MANY_COUNT];

static void look_up_many_at_once(quern_context *context, const quern_view *view)
{
    static const void *values[MANY_COUNT];
    for (uint32_t count = 0; count <= MANY_COUNT; count = count < 40 ? count + 1 : count + 320) {
        uint32_t expected_count = 0;
        const uint32_t found_count = quern_context_lookup_many(context, many, count, position, values);
        for (uint32_t i = 0; i < count; i++) {
            const void *value = quern_context_lookup(context, many[i], position);
            cr_assert_eq(values[i], value, "%u of %u", i, count);
            cr_assert_eq(quern_context_has(context, many[i], position), value != NULL);
            expected_count += value != NULL;
        }
        cr_assert_eq(found_count, expected_count);
    }
}

Test(access, many_lookups_at_once_find_what_each_finds)
{
    const quern_component both[] = {velocity, position};
    for (uint32_t i = 0; i < MANY_COUNT; i++) {
        many[i * 7 % MANY_COUNT] = setup_entity_with(world, both, 1 + i % 3 / 2);
        if (i % 5 == 0) must(quern_entity_destroy(world, many[i * 7 % MANY_COUNT]));
    }
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def def = system_def("seek", look_up_many_at_once);
    def.lookups[0].component = position;
    setup_system(schedule, &def);
    must_run(schedule, NULL);
}

static void look_up_in_no_list(quern_context *context, const quern_view *view)
{
    const void *values[] = {view};
    cr_assert_eq(quern_context_lookup_many(context, NULL, 1, position, values), 0u);
    cr_assert(is_scratch(values[0], sizeof(vec3)));
}

static void look_up_into_no_list(quern_context *context, const quern_view *view)
{
    cr_assert_eq(quern_context_lookup_many(context, view->entities, view->count, position, NULL), 0u);
}

static void assert_list_refused(quern_view_callback *run, const char *what)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def def = system_def("seek", run);
    def.terms[0] = quern_term_read(position);
    def.lookups[0].component = position;
    setup_system(schedule, &def);
    capture_reports(&reports);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_not_null(strstr(reports.last, what), "no \"%s\" in: %s", what, reports.last);
    quern_schedule_destroy(schedule);
}

Test(access, many_lookups_at_once_without_a_list_are_refused)
{
    setup_archetype(position, none);
    static const char *const call = "quern_context_lookup_many: system 'seek' looked up 1 entities; '";
    char what[128];
    snprintf(what, sizeof what, "%sentities' is NULL", call);
    assert_list_refused(look_up_in_no_list, what);
    snprintf(what, sizeof what, "%sout_values' is NULL", call);
    assert_list_refused(look_up_into_no_list, what);
}

Test(access, lookup_of_invalid_handle_or_absent_component_is_null_without_report)
{
    setup_archetype(position, none);
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def def = system_def("seek", look_up_wrong_handles);
    def.terms[0] = quern_term_read(position);
    def.lookups[0].component = position;
    def.lookups[1].component = velocity;
    setup_system(schedule, &def);
    must_run(schedule, NULL);
}
