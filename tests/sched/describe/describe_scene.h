/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef QUERN_TESTS_SCHED_DESCRIBE_DESCRIBE_SCENE_H
#define QUERN_TESTS_SCHED_DESCRIBE_DESCRIBE_SCENE_H

/* A world, a schedule of systems, and its description as text, for tests of descriptions. */

#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 65536, ROWS = 2800 }; /* 2800 rows fill 5.5 chunks of position and velocity */

static quern_component position, velocity, health;
static quern_resource score, clock_resource;
static quern_schedule *schedule; /* one phase, "p0" */

static inline void open_world(void)
{
    world = setup_world();
    position = setup_component(world, "position", sizeof(vec3), 4);
    velocity = setup_component(world, "velocity", sizeof(vec3), 4);
    health = setup_component(world, "health", 4, 4);
    score = setup_counter(world, "score");
    clock_resource = setup_counter(world, "clock");
    schedule = setup_schedule(world);
}

static inline void must_exist(quern_component component)
{
    setup_entity_with(world, &component, 1);
}

/* Replaces the schedule by another one. */
static inline void reopen(const quern_schedule_def *def)
{
    quern_schedule_destroy(schedule);
    must(quern_schedule_create(world, def, &schedule));
}

static inline const char *written(quern_describe_format format)
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

static inline void assert_text(const char *expected)
{
    cr_assert_str_eq(written(QUERN_DESCRIBE_TEXT), expected, "described:\n%s",
                     written(QUERN_DESCRIBE_TEXT));
}

static inline void assert_line(const char *line)
{
    const char *text = written(QUERN_DESCRIBE_TEXT);
    const char *found = strstr(text, line);
    cr_assert_not_null(found, "no '%s' in:\n%s", line, text);
    bool is_at_start = found == text || strchr(" \n", found[-1]) != NULL;
    cr_assert(is_at_start && found[strlen(line)] == '\n', "'%s' is no line of:\n%s", line, text);
}

static inline void add_terms(const char *name, const quern_term *terms, uint32_t term_count)
{
    quern_system_def def = system_def(name, idle_run);
    for (uint32_t i = 0; i < term_count; i++)
        def.terms[i] = terms[i];
    setup_system(schedule, &def);
}

static quern_term one_term;

/* Returns a definition that reads a component; tests change it further. */
static inline quern_system_def reader_def(const char *name, quern_component component)
{
    one_term = quern_term_read(component);
    return (quern_system_def){.name = name, .run = idle_run, .terms = {one_term}};
}

static inline void add_user(const char *name, quern_component component, quern_resource resource,
                            quern_access how)
{
    quern_system_def def = reader_def(name, component);
    def.resources[0] = (quern_resource_access){resource, how};
    setup_system(schedule, &def);
}

static inline void add_looker(const char *name, quern_component read, quern_component looked_up)
{
    quern_system_def def = reader_def(name, read);
    def.lookups[0].component = looked_up;
    setup_system(schedule, &def);
}

static inline void add_after(const char *name, quern_component component, const char *earlier)
{
    quern_system_def def = reader_def(name, component);
    def.after[0] = earlier;
    setup_system(schedule, &def);
}

static inline bool always(quern_context *context)
{
    return true;
}

/* Reads two components if changed, one with change tracking by row and one by chunk. */
static inline void add_filters(void)
{
    quern_component state =
        make_component(world, .name = "state", .size_bytes = 4, .alignment_bytes = 4, .row_changes = true);
    make_system(schedule, "rows", idle_run,
                .terms = {quern_term_changed(quern_term_read(state)),
                          quern_term_changed(quern_term_read(position))});
}

/* Adds systems of every kind, with names that have to be escaped. */
static inline void setup_zoo(void)
{
    const quern_component both[] = {position, velocity};
    setup_entity_with(world, both, 2);
    setup_writer(schedule, "a \"quoted\" \\ & name\n", position);
    add_looker("b", velocity, position);
    add_user("c", position, score, QUERN_ACCESS_WRITE);
    add_user("d", position, score, QUERN_ACCESS_WRITE);
    add_user("e", position, score, QUERN_ACCESS_WRITE);
    quern_system_def def = system_def("x", idle_run);
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(schedule, &def);
    def = system_def("y", idle_run);
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    must(quern_schedule_set_system_enabled(schedule, setup_system(schedule, &def), false));
    setup_writer(schedule, "z", velocity);
}

#endif
