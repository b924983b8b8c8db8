/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Calls of systems about relations that they declare, and about those that they do not declare. */

#include "tests/support/fixture.h"

#include <string.h>

static quern_schedule *schedule;
static quern_relation parent, owner;
static quern_entity root, a, b, dead, heir, leaf;
static uint32_t call_count;
static captured_reports reports;

static quern_entity make(void)
{
    return setup_entity_with(world, (const quern_component[]){quern_component_find(world, "number")}, 1);
}

static void open_world(void)
{
    world = setup_world();
    setup_component(world, "number", 4, 4);
    parent = quern_world_parent(world);
    cr_assert_eq(quern_relation_register(world, &(quern_relation_def){.name = "owner"}, &owner), QUERN_OK);
    root = make();
    a = make();
    b = make();
    dead = make();
    cr_assert_eq(quern_entity_relate(world, a, parent, root), QUERN_OK);
    cr_assert_eq(quern_entity_relate(world, b, parent, root), QUERN_OK);
    cr_assert_eq(quern_entity_relate(world, dead, parent, root), QUERN_OK);
    cr_assert_eq(quern_entity_destroy(world, dead), QUERN_OK);
    heir = make();
    leaf = make();
    cr_assert_eq(quern_entity_index(heir), quern_entity_index(dead));
    cr_assert_eq(quern_entity_relate(world, leaf, parent, heir), QUERN_OK);
    cr_assert_eq(quern_schedule_create(world, NULL, &schedule), QUERN_OK);
    call_count = 0;
    capture_reports(&reports);
}

TestSuite(context_relations, .init = open_world, .fini = close_world);

static void ask_all(quern_context *context, const quern_view *view)
{
    cr_assert_eq(quern_context_target(context, a, parent).bits, root.bits);
    cr_assert(quern_entity_is_null(quern_context_target(context, root, parent)));
    cr_assert_eq(quern_context_first_source(context, root, parent).bits, a.bits);
    cr_assert_eq(quern_context_next_sibling(context, a, parent).bits, b.bits);
    cr_assert(quern_entity_is_null(quern_context_next_sibling(context, b, parent)));
    cr_assert_eq(quern_context_source_count(context, root, parent), 2u);
    cr_assert_eq(quern_context_source_count(context, dead, parent), 0u);
    cr_assert(quern_entity_is_null(quern_context_target(context, dead, parent)));
    cr_assert(quern_context_has_target(context, leaf, parent, heir));
    cr_assert_not(quern_context_has_target(context, leaf, parent, dead));
    call_count++;
}

static quern_relation likes;

static void ask_edges(quern_context *context, const quern_view *view)
{
    quern_entity list[3] = {{0}};
    cr_assert_eq(quern_context_target_count(context, root, likes), 2u);
    cr_assert_eq(quern_context_target_count(context, a, likes), 0u);
    cr_assert_eq(quern_context_target_count(context, dead, likes), 0u);
    cr_assert_eq(quern_context_list_targets(context, root, likes, list, 3), 2u);
    cr_assert(list[0].bits == a.bits && list[1].bits == b.bits && list[2].bits == 0);
    cr_assert_eq(quern_context_list_targets(context, root, likes, NULL, 0), 2u);
    cr_assert_eq(quern_context_list_targets(context, root, likes, NULL, 1), 0u);
    cr_assert_eq(quern_context_list_sources(context, b, likes, list, 1), 1u);
    cr_assert_eq(list[0].bits, root.bits);
    cr_assert_eq(quern_context_list_sources(context, root, parent, list, 3), 2u);
    cr_assert(list[0].bits == a.bits && list[1].bits == b.bits);
    cr_assert_eq(quern_context_list_targets(context, a, parent, list, 3), 1u);
    cr_assert_eq(list[0].bits, root.bits);
    cr_assert_eq(quern_context_target(context, root, likes).bits, a.bits);
    cr_assert_eq(quern_context_first_source(context, a, likes).bits, root.bits);
    cr_assert_eq(quern_context_source_count(context, a, likes), 1u);
    cr_assert(quern_context_has_target(context, root, likes, b));
    cr_assert_not(quern_context_has_target(context, b, likes, root));
    cr_assert_not(quern_context_has_target(context, root, likes, dead));
    cr_assert(quern_context_has_target(context, a, parent, root));
    cr_assert_not(quern_context_has_target(context, root, owner, a)); /* not declared */
    cr_assert_eq(quern_context_target_count(context, a, parent), 1u);
    call_count++;
}

static void ask_undeclared(quern_context *context, const quern_view *view)
{
    cr_assert(quern_entity_is_null(quern_context_target(context, a, owner)));
    cr_assert(quern_entity_is_null(quern_context_first_source(context, root, owner)));
    cr_assert_eq(quern_context_source_count(context, root, owner), 0u);
    call_count++;
}

static quern_system_def define(quern_view_callback *run)
{
    return (quern_system_def){.name = "asker",
                              .run = run,
                              .terms = {quern_term_read(quern_component_find(world, "number"))},
                              .relations = {parent},
                              .flags = QUERN_SYSTEM_SERIAL};
}

Test(context_relations, declared_relations_give_targets_and_sources)
{
    const quern_system_def def = define(ask_all);
    quern_system system;
    cr_assert_eq(quern_schedule_add_system(schedule, &def, &system), QUERN_OK, "%s", quern_error_message());
    cr_assert_eq(quern_schedule_run(schedule, NULL, 0), QUERN_OK, "%s", quern_error_message());
    cr_assert_gt(call_count, 0u);
    cr_assert_eq(reports.log_count, 0u);
}

Test(context_relations, several_targets_are_listed)
{
    cr_assert_eq(
        quern_relation_register(world, &(quern_relation_def){.name = "likes", .many = true}, &likes),
        QUERN_OK);
    cr_assert_eq(quern_entity_relate(world, root, likes, b), QUERN_OK);
    cr_assert_eq(quern_entity_relate(world, root, likes, a), QUERN_OK);
    quern_system_def def = define(ask_edges);
    def.relations[1] = likes;
    quern_system system;
    cr_assert_eq(quern_schedule_add_system(schedule, &def, &system), QUERN_OK, "%s", quern_error_message());
    cr_assert_eq(quern_schedule_run(schedule, NULL, 0), QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_gt(call_count, 0u);
    cr_assert_not_null(strstr(reports.last, "quern_context_has_target"));
}

static void ask_sibling(quern_context *context, const quern_view *view)
{
    cr_assert(
        quern_entity_is_null(quern_context_next_sibling(context, dead, likes))); /* no message: not alive */
    if (call_count == 0) cr_assert_eq(reports.assert_count, 0u);
    cr_assert(quern_entity_is_null(quern_context_next_sibling(context, root, likes)));
    call_count++;
}

Test(context_relations, siblings_of_a_source_with_several_targets_are_refused)
{
    cr_assert_eq(
        quern_relation_register(world, &(quern_relation_def){.name = "likes", .many = true}, &likes),
        QUERN_OK);
    cr_assert_eq(quern_entity_relate(world, root, likes, b), QUERN_OK);
    quern_system_def def = define(ask_sibling);
    def.relations[1] = likes;
    quern_system system;
    cr_assert_eq(quern_schedule_add_system(schedule, &def, &system), QUERN_OK, "%s", quern_error_message());
    cr_assert_eq(quern_schedule_run(schedule, NULL, 0), QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_gt(call_count, 0u);
    cr_assert_not_null(strstr(reports.last, "quern_context_list_sources"));
    cr_assert_not_null(strstr(reports.last, "'likes'"));
}

Test(context_relations, undeclared_relations_are_refused_by_name)
{
    const quern_system_def def = define(ask_undeclared);
    quern_system system;
    cr_assert_eq(quern_schedule_add_system(schedule, &def, &system), QUERN_OK);
    cr_assert_eq(quern_schedule_run(schedule, NULL, 0), QUERN_ERROR_UNDECLARED_ACCESS);
    cr_assert_gt(call_count, 0u);
    cr_assert_not_null(strstr(reports.last, "quern_context_target"));
    cr_assert_not_null(strstr(reports.last, "'owner'"));
    cr_assert_not_null(strstr(reports.last, "'parent'"));
}

Test(context_relations, bad_declarations_are_refused)
{
    quern_system system;
    quern_system_def def = define(ask_all);
    def.relations[1] = parent;
    must_refuse(DUPLICATE_COMPONENT, world, quern_schedule_add_system(schedule, &def, &system));
    def.relations[1] = (quern_relation){quern_component_find(world, "number").bits};
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, &system));
}
