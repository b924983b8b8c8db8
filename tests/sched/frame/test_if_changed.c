/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/support/effort.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <string.h>

/* Systems that run only if a resource has changed (if_changed). */

typedef struct number {
    int32_t value;
    int32_t untold; /* not described */
} number;

static quern_schedule *schedule;
static quern_resource first, second;
static uint32_t runs;

static void count_run(quern_context *context, const quern_view *view)
{
    (void)context, (void)view;
    runs++;
}

static quern_resource add_resource(const char *name)
{
    quern_resource resource;
    must(quern_resource_register(world,
                                 &(quern_resource_def){.name = name,
                                                       .size_bytes = sizeof(number),
                                                       .fields = {QUERN_FIELD(number, value)}},
                                 &resource));
    return resource;
}

static void open_schedule(void)
{
    world = setup_world();
    first = add_resource("first");
    second = add_resource("second");
    must(quern_schedule_create(world, NULL, &schedule));
    runs = 0;
}

static quern_system add(const quern_system_def *def)
{
    quern_system system;
    must(quern_schedule_add_system(schedule, def, &system));
    return system;
}

static void set(quern_resource resource, int32_t value)
{
    ((number *)quern_resource_get(world, resource))->value = value;
}

/* Returns how often the system ran in some frames. */
static uint32_t runs_in(uint32_t frames)
{
    runs = 0;
    for (uint32_t i = 0; i < frames; i++)
        must(quern_schedule_run(schedule, NULL, 1));
    return runs;
}

TestSuite(if_changed, .init = open_schedule, .fini = close_valid_world, .timeout = 60);

Test(if_changed, runs_in_the_first_frame_and_after_changes)
{
    add(&(quern_system_def){.name = "s", .run = count_run, .if_changed = {first, second}});
    cr_assert_eq(runs_in(3), 1);
    set(first, 5);
    cr_assert_eq(runs_in(3), 1);
    set(second, 5);
    cr_assert_eq(runs_in(3), 1);
    must(quern_resource_set_text(world, "second.value", "6"));
    cr_assert_eq(runs_in(3), 1);
}

Test(if_changed, the_value_decides_and_not_the_write)
{
    add(&(quern_system_def){.name = "s", .run = count_run, .if_changed = {first}});
    (void)runs_in(1);
    set(first, 5);
    set(first, 0);
    cr_assert_eq(runs_in(2), 0);
    ((number *)quern_resource_get(world, first))->untold = 3;
    cr_assert_eq(runs_in(2), 0);
    set(first, 5);
    set(second, 7);
    cr_assert_eq(runs_in(2), 1);
}

static void write_first(quern_context *context, const quern_view *view)
{
    number *own = quern_context_resource_write(context, first);
    (void)view;
    runs++;
    if (own->value < 3) own->value++;
}

Test(if_changed, what_the_system_writes_itself_counts)
{
    add(&(quern_system_def){.name = "s",
                            .run = write_first,
                            .resources = {{first, QUERN_ACCESS_WRITE}},
                            .if_changed = {first}});
    cr_assert_eq(runs_in(10), 4);
}

static bool is_wanted;

static bool condition(quern_context *context)
{
    (void)context;
    return is_wanted;
}

Test(if_changed, a_false_condition_leaves_the_change_due)
{
    add(&(quern_system_def){.name = "s", .run = count_run, .condition = condition, .if_changed = {first}});
    is_wanted = false;
    cr_assert_eq(runs_in(3), 0);
    is_wanted = true;
    cr_assert_eq(runs_in(3), 1);
}

Test(if_changed, an_interval_leaves_the_change_due)
{
    add(&(quern_system_def){.name = "s", .run = count_run, .interval_seconds = 4, .if_changed = {first}});
    cr_assert_eq(runs_in(5), 1);
    set(first, 1);
    cr_assert_eq(runs_in(2), 0);
    cr_assert_eq(runs_in(1), 1);
}

Test(if_changed, a_disabled_system_sees_the_change_later)
{
    const quern_system system =
        add(&(quern_system_def){.name = "s", .run = count_run, .if_changed = {first}});
    (void)runs_in(1);
    must(quern_schedule_set_system_enabled(schedule, system, false));
    set(first, 1);
    cr_assert_eq(runs_in(2), 0);
    must(quern_schedule_set_system_enabled(schedule, system, true));
    cr_assert_eq(runs_in(2), 1);
}

Test(if_changed, a_replacement_goes_on_if_it_watches_the_same)
{
    const quern_system system =
        add(&(quern_system_def){.name = "s", .run = count_run, .if_changed = {first}});
    (void)runs_in(1);
    must(quern_schedule_replace_system(schedule, system,
                                       &(quern_system_def){.run = count_run, .if_changed = {first}}));
    cr_assert_eq(runs_in(2), 0);
    must(quern_schedule_replace_system(schedule, system,
                                       &(quern_system_def){.run = count_run, .if_changed = {second}}));
    cr_assert_eq(runs_in(2), 1);
}

Test(if_changed, the_order_in_which_a_replacement_lists_resources_does_not_matter)
{
    const quern_system system =
        add(&(quern_system_def){.name = "s", .run = count_run, .if_changed = {first, second}});
    (void)runs_in(1);
    must(quern_schedule_replace_system(schedule, system,
                                       &(quern_system_def){.run = count_run,
                                                           .resources = {{second, QUERN_ACCESS_READ}},
                                                           .if_changed = {second, first}}));
    cr_assert_eq(runs_in(2), 0);
    set(first, 5);
    cr_assert_eq(runs_in(2), 1);
}

/* No frame runs between the replacements, so the values are those of the last run. */
Test(if_changed, what_a_definition_without_a_resource_has_not_seen_is_due)
{
    const quern_system system =
        add(&(quern_system_def){.name = "s", .run = count_run, .if_changed = {first}});
    (void)runs_in(1);
    must(quern_schedule_replace_system(schedule, system, &(quern_system_def){.run = count_run}));
    must(quern_schedule_replace_system(schedule, system,
                                       &(quern_system_def){.run = count_run, .if_changed = {first}}));
    cr_assert_eq(runs_in(2), 1);
}

Test(if_changed, a_restored_frame_has_seen_what_it_had_seen)
{
    quern_history *history;
    add(&(quern_system_def){.name = "s", .run = count_run, .if_changed = {first}});
    must(quern_history_create(world, &(quern_history_def){.schedules = {schedule}, .frame_count = 4},
                              &history));
    (void)runs_in(1);
    set(first, 1);
    must(quern_history_save(history, 1, NULL));
    cr_assert_eq(runs_in(2), 1);
    must(quern_history_restore(history, 1, NULL));
    cr_assert_eq(runs_in(2), 1);
    set(first, 2);
    must(quern_history_restore(history, 1, NULL));
    cr_assert_eq(runs_in(2), 1);
    quern_history_destroy(history);
}

Test(if_changed, a_loaded_schedule_has_seen_what_it_had_seen)
{
    quern_byte_buffer memory = {0};
    add(&(quern_system_def){.name = "s", .run = count_run, .if_changed = {first}});
    (void)runs_in(1);
    must(quern_world_save(world, quern_sink_bytes(&memory), &(quern_save_def){.schedules = {schedule}}));
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    open_schedule();
    add(&(quern_system_def){.name = "s", .run = count_run, .if_changed = {first}});
    must(quern_world_load(world, quern_source_bytes(memory.bytes, memory.size_bytes),
                          &(quern_load_def){.schedules = {schedule}}, NULL));
    cr_assert_eq(runs_in(2), 0);
    set(first, 1);
    cr_assert_eq(runs_in(2), 1);
    quern_byte_buffer_release(&memory);
}

Test(if_changed, a_program_with_another_order_of_resources_has_seen_what_it_had_seen)
{
    quern_byte_buffer memory = {0};
    add(&(quern_system_def){.name = "s", .run = count_run, .if_changed = {first}});
    (void)runs_in(1);
    must(quern_world_save(world, quern_sink_bytes(&memory), &(quern_save_def){.schedules = {schedule}}));
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    world = setup_world();
    second = add_resource("second");
    first = add_resource("first");
    must(quern_schedule_create(world, NULL, &schedule));
    add(&(quern_system_def){.name = "s", .run = count_run, .if_changed = {first}});
    must(quern_world_load(world, quern_source_bytes(memory.bytes, memory.size_bytes),
                          &(quern_load_def){.schedules = {schedule}}, NULL));
    cr_assert_eq(runs_in(2), 0);
    quern_byte_buffer_release(&memory);
}

Test(if_changed, a_system_that_watches_no_resource_any_more_is_loaded)
{
    quern_byte_buffer memory = {0};
    add(&(quern_system_def){.name = "s", .run = count_run, .if_changed = {first}});
    (void)runs_in(1);
    must(quern_world_save(world, quern_sink_bytes(&memory), &(quern_save_def){.schedules = {schedule}}));
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    open_schedule();
    add(&(quern_system_def){.name = "s", .run = count_run});
    must(quern_world_load(world, quern_source_bytes(memory.bytes, memory.size_bytes),
                          &(quern_load_def){.schedules = {schedule}}, NULL));
    cr_assert_eq(runs_in(2), 2);
    quern_byte_buffer_release(&memory);
}

Test(if_changed, is_described)
{
    add(&(quern_system_def){.name = "s", .run = count_run, .if_changed = {first, second}});
    must(quern_schedule_compile(schedule));
    char text[8192];
    quern_text_buffer buffer = {.text = text, .capacity_bytes = sizeof text};
    must(quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_text(&buffer)));
    cr_assert_not_null(strstr(text, "if changed: first, second"));
    buffer = (quern_text_buffer){.text = text, .capacity_bytes = sizeof text};
    must(quern_schedule_describe(schedule, QUERN_DESCRIBE_JSON, quern_sink_text(&buffer)));
    const char *list = strstr(text, "\"if_changed\"");
    cr_assert_not_null(list);
    const char *end = strchr(list, ']');
    cr_assert(strstr(list, "\"first\"") < end && strstr(list, "\"second\"") < end);
}

static void copy_numbers(void *targets, const void *sources, uint32_t count, void *user_data)
{
    (void)user_data;
    memcpy(targets, sources, count * sizeof(number));
}

static void destroy_numbers(void *values, uint32_t count, void *user_data)
{
    (void)values, (void)count, (void)user_data;
}

Test(if_changed, wrong_definitions_are_refused)
{
    quern_resource owner;
    must(quern_resource_register(
        world,
        &(quern_resource_def){.name = "owner",
                              .size_bytes = sizeof(number),
                              .hooks = {.copy = copy_numbers, .destroy = destroy_numbers}},
        &owner));
    quern_component tag = setup_tag(world, "tag");
    const quern_resource unknown = {.bits = first.bits + 7};
    const struct {
        quern_result expected;
        quern_system_def def;
    } wrong[] = {
        {QUERN_ERROR_UNKNOWN_RESOURCE, {.name = "s", .run = count_run, .if_changed = {unknown}}},
        {QUERN_ERROR_INVALID_ARGUMENT, {.name = "s", .run = count_run, .if_changed = {first, first}}},
        {QUERN_ERROR_INVALID_ARGUMENT, {.name = "s", .run = count_run, .if_changed = {owner}}},
        {QUERN_ERROR_INVALID_ARGUMENT,
         {.name = "s",
          .run = count_run,
          .terms = {quern_term_with(tag)},
          .reacts_to = QUERN_REACT_ADDED,
          .if_changed = {first}}},
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refused(world, wrong[i].expected, quern_schedule_add_system(schedule, &wrong[i].def, NULL));
}

/* --------------------------------------------------------------------------------------- random programs */

enum { RESOURCES = 4, SYSTEMS = 10 };

/* A system adds to one resource what it reads of another, or nothing. */
typedef struct worker {
    quern_resource reads, writes;
    uint32_t read_index, write_index;
    uint32_t watched; /* bits of resources */
    bool only_reads;
    uint32_t run_count;
} worker;

static void work(quern_context *context, const quern_view *view)
{
    worker *own = quern_context_user_data(context);
    (void)view;
    own->run_count++;
    const number *source = quern_context_resource(context, own->reads);
    if (own->only_reads) return;
    number *target = quern_context_resource_write(context, own->writes);
    target->value = (int32_t)((uint32_t)target->value + (uint32_t)source->value % 3);
}

static void run_program(uint64_t seed, uint32_t threads, bool is_fused, uint64_t shuffle_seed)
{
    random_source random = {seed};
    quern_jobs *jobs = NULL;
    quern_resource resources[RESOURCES];
    worker workers[SYSTEMS] = {{.run_count = 0}};
    int32_t values[RESOURCES] = {0};
    int32_t seen[SYSTEMS][RESOURCES];
    uint32_t expected_runs[SYSTEMS] = {0};
    world = setup_world();
    if (threads > 0) must(quern_jobs_create(&(quern_jobs_def){.thread_count = threads}, &jobs));
    must(quern_schedule_create(
        world, &(quern_schedule_def){.disable_fusing = !is_fused, .shuffle_seed = shuffle_seed},
        &schedule));
    for (uint32_t r = 0; r < RESOURCES; r++) {
        char name[8];
        snprintf(name, sizeof name, "r%u", (unsigned)r);
        resources[r] = add_resource(name);
    }
    for (uint32_t i = 0; i < SYSTEMS; i++) {
        char name[8];
        worker *w = &workers[i];
        w->read_index = random_below(&random, RESOURCES);
        w->write_index = (w->read_index + 1 + random_below(&random, RESOURCES - 1)) % RESOURCES;
        w->reads = resources[w->read_index];
        w->writes = resources[w->write_index];
        w->only_reads = random_chance(&random, 40);
        w->watched = random_below(&random, 1u << RESOURCES);
        snprintf(name, sizeof name, "s%u", (unsigned)i);
        quern_system_def def = {
            .name = name, .run = work, .user_data = w, .resources = {{w->reads, QUERN_ACCESS_READ}}};
        if (!w->only_reads) def.resources[1] = (quern_resource_access){w->writes, QUERN_ACCESS_WRITE};
        for (uint32_t r = 0, count = 0; r < RESOURCES; r++)
            if ((w->watched >> r & 1) != 0) def.if_changed[count++] = resources[r];
        (void)add(&def);
    }
    for (uint32_t f = 0; f < 40; f++) {
        if (random_chance(&random, 50)) {
            const uint32_t r = random_below(&random, RESOURCES);
            values[r] = (int32_t)random_below(&random, 4);
            set(resources[r], values[r]);
        }
        must(quern_schedule_run(schedule, jobs, 1));
        for (uint32_t i = 0; i < SYSTEMS; i++) {
            const worker *w = &workers[i];
            bool runs_now = expected_runs[i] == 0 || w->watched == 0;
            for (uint32_t r = 0; r < RESOURCES && !runs_now; r++)
                runs_now = (w->watched >> r & 1) != 0 && seen[i][r] != values[r];
            if (!runs_now) continue;
            expected_runs[i]++;
            memcpy(seen[i], values, sizeof values);
            if (!w->only_reads)
                values[w->write_index] =
                    (int32_t)((uint32_t)values[w->write_index] + (uint32_t)values[w->read_index] % 3);
        }
        for (uint32_t i = 0; i < SYSTEMS; i++)
            cr_assert_eq(workers[i].run_count, expected_runs[i],
                         "seed %llu, %u threads, frame %u, system %u", (unsigned long long)seed,
                         (unsigned)threads, (unsigned)f, (unsigned)i);
        for (uint32_t r = 0; r < RESOURCES; r++)
            cr_assert_eq(((const number *)quern_resource_get(world, resources[r]))->value, values[r]);
    }
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
    quern_world_destroy(world);
}

Test(if_changed_random, agree_with_the_model_at_every_thread_count)
{
    static const uint32_t thread_counts[] = {0, 1, 2, 3, 8};
    const uint64_t seeds = effort(60, 15, 8);
    for (uint64_t seed = 1; seed <= seeds; seed++)
        for (uint32_t i = 0; i < sizeof thread_counts / sizeof *thread_counts; i++)
            run_program(seed, thread_counts[i], (seed + i) % 2 == 0, i == 0 ? 0 : seed);
}
