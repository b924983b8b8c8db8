/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/sched/frame/reactions_scene.h"

#include <string.h>

/* Old terms of systems: their columns, and wrong definitions. */

TestSuite(reactions_old, .init = open_world);

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
    close_valid_world();
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
    close_valid_world();
}
