/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_setup.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

const uint32_t pool_threads[POOL_COUNT] = {0, 1, 2, 3, 8};

quern_jobs *setup_jobs(uint32_t thread_count)
{
    if (thread_count == 0) return NULL;
    quern_jobs_def def = {.thread_count = thread_count};
    quern_jobs *jobs = NULL;
    quern_result result = quern_jobs_create(&def, &jobs);
    cr_assert_eq(result, QUERN_OK, "quern_jobs_create: %s", quern_error_message());
    return jobs;
}

/* --------------------------------------------------------------------------------------- schedules */

quern_schedule *setup_schedule(quern_world *world)
{
    return setup_phases(world, 1);
}

quern_schedule *setup_phases(quern_world *world, uint32_t phase_count)
{
    return setup_schedule_as(world, (quern_schedule_def){0}, phase_count);
}

quern_schedule *setup_schedule_as(quern_world *world, quern_schedule_def def, uint32_t phase_count)
{
    static const char *const names[] = {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"};
    cr_assert_leq(phase_count, (uint32_t)COUNT_OF(names));
    for (uint32_t i = 0; i < phase_count; i++)
        def.phases[i] = names[i];
    quern_schedule *schedule = NULL;
    quern_result result = quern_schedule_create(world, &def, &schedule);
    cr_assert_eq(result, QUERN_OK, "quern_schedule_create: %s", quern_error_message());
    return schedule;
}

quern_schedule_def schedule_style(uint32_t i)
{
    static const uint64_t shuffle_seeds[STYLE_COUNT] = {0, 0, 1, 77, 123456789, 5};
    quern_schedule_def def = {.disable_fusing = i == 1 || i == 5, .shuffle_seed = shuffle_seeds[i]};
    return def;
}

frame_setting frame_setting_at(uint32_t i, uint32_t turn)
{
    if (i < POOL_COUNT) return (frame_setting){.style = 0, .thread_count = pool_threads[i]};
    const uint32_t style = i - POOL_COUNT + 1;
    return (frame_setting){.style = style, .thread_count = pool_threads[(style + turn + 2) % POOL_COUNT]};
}

quern_system_def system_def(const char *name, quern_view_callback *run)
{
    quern_system_def def = {.name = name, .run = run};
    return def;
}

quern_system setup_system(quern_schedule *schedule, const quern_system_def *def)
{
    quern_system system = {0};
    quern_result result = quern_schedule_add_system(schedule, def, &system);
    cr_assert_eq(result, QUERN_OK, "system '%s': %s", def->name, quern_error_message());
    return system;
}

static quern_system setup_term_system(quern_schedule *schedule, const char *name, quern_term term)
{
    quern_system_def def = system_def(name, idle_run);
    def.terms[0] = term;
    return setup_system(schedule, &def);
}

quern_system setup_reader(quern_schedule *schedule, const char *name, quern_component component)
{
    return setup_term_system(schedule, name, quern_term_read(component));
}

quern_system setup_writer(quern_schedule *schedule, const char *name, quern_component component)
{
    return setup_term_system(schedule, name, quern_term_write(component));
}

void idle_run(quern_context *context, const quern_view *view) {}

void idle_callback(quern_context *context) {}

/* ------------------------------------------------------------------------------------------- types */

quern_resource setup_counter(quern_world *world, const char *name)
{
    quern_resource_def def = {.name = name,
                              .size_bytes = sizeof(uint64_t),
                              .fields = {{.name = "value", .type = QUERN_FIELD_U64}}};
    quern_resource resource = {0};
    quern_result result = quern_resource_register(world, &def, &resource);
    cr_assert_eq(result, QUERN_OK, "resource '%s': %s", name, quern_error_message());
    return resource;
}

uint64_t counter_value(quern_world *world, quern_resource resource)
{
    const uint64_t *value = quern_resource_get(world, resource);
    cr_assert_not_null(value, "%s", quern_error_message());
    return *value;
}

quern_component setup_links(quern_world *world, const char *name)
{
    quern_component_def def = {
        .name = name,
        .size_bytes = sizeof(link3),
        .alignment_bytes = _Alignof(link3),
        .fields = {{.name = "targets",
                    .type = QUERN_FIELD_ENTITY,
                    .offset_bytes = offsetof(link3, targets),
                    .count = 3},
                   {.name = "number", .type = QUERN_FIELD_U64, .offset_bytes = offsetof(link3, number)}}};
    quern_component component = {0};
    quern_result result = quern_component_register(world, &def, &component);
    cr_assert_eq(result, QUERN_OK, "registering '%s': %s", name, quern_error_message());
    return component;
}

/* ------------------------------------------------------------------------------------------ frames */

void must_run(quern_schedule *schedule, quern_jobs *jobs)
{
    quern_result result = quern_schedule_run(schedule, jobs, 0.25);
    cr_assert_eq(result, QUERN_OK, "quern_schedule_run: %s", quern_error_message());
}

void must_not_run(quern_schedule *schedule, quern_jobs *jobs, quern_result expected)
{
    refusal before = refusal_begin(NULL);
    quern_result result = quern_schedule_run(schedule, jobs, 0.25);
    cr_assert_eq(result, expected, "the frame gave %s (%s), not %s", quern_result_string(result),
                 quern_error_message(), quern_result_string(expected));
    cr_assert(refusal_has_message(&before), "a failed frame set no message");
}

quern_frame_stats run_once(quern_world *world, quern_system_callback *callback)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def def = system_def("once", NULL);
    def.begin = callback;
    setup_system(schedule, &def);
    must_run(schedule, NULL);
    quern_frame_stats stats = stats_of_frame(schedule);
    quern_schedule_destroy(schedule);
    assert_valid(world);
    return stats;
}

const char *described(quern_schedule *schedule)
{
    static char text[65536];
    quern_text_buffer buffer = {text, sizeof text, 0};
    quern_result result = quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_text(&buffer));
    cr_assert_eq(result, QUERN_OK, "quern_schedule_describe: %s", quern_error_message());
    return text;
}

void assert_message_has(const char *text)
{
    cr_assert_not_null(strstr(quern_error_message(), text), "no \"%s\" in the message: %s", text,
                       quern_error_message());
}
