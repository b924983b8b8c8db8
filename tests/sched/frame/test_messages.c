/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <stdio.h>
#include <string.h>

/* The message of a bad call begins with the name of the call and names the object concerned. In a callback
 * of a system, it also names the system. */

static quern_component position, velocity, tag, unknown;
static quern_entity entity, dead, foreign, provisional;
static const quern_entity none;
static const vec3 value = {1, 2, 3};
static captured_reports reports;

static void open_world(void)
{
    world = setup_world();
    position = setup_component(world, "position", sizeof(vec3), 4);
    velocity = setup_component(world, "velocity", sizeof(vec3), 4);
    tag = setup_tag(world, "tag");
    unknown = component_unregistered(tag);
    entity = setup_entity_with(world, &position, 1);
    dead = setup_entity(world);
    cr_assert_eq(quern_entity_destroy(world, dead), QUERN_OK);
    foreign = entity_of_other_world(entity);
    provisional = entity_provisional(3);
    capture_reports(&reports);
}

TestSuite(messages, .init = open_world, .fini = close_world);

static void assert_begins(const char *call, const char *beginning)
{
    const char *message = quern_error_message();
    cr_expect(strncmp(message, beginning, strlen(beginning)) == 0, "%s: %s", call, message);
}

/* The call sets a message that begins like this. */
#define SAYS(call, beginning)            \
    do {                                 \
        quern_component_find(NULL, "");  \
        (void)(call);                    \
        assert_begins(#call, beginning); \
    } while (0)

/* --------------------------------------------------------------------------------- outside of systems */

static void assert_has(const char *call, const char *part)
{
    cr_expect(strstr(quern_error_message(), part) != NULL, "%s: %s", call, quern_error_message());
}

/* The call sets a message that contains this. */
#define REMEDY(call, part)       \
    do {                         \
        (void)(call);            \
        assert_has(#call, part); \
    } while (0)

Test(messages, with_remedies)
{
    quern_entity parent;
    quern_resource resource;
    REMEDY(quern_entity_add(world, dead, velocity, &value),
           "it was destroyed; test kept handles by quern_entity_is_alive");
    REMEDY(quern_entity_remove(world, foreign, position),
           "pass it to calls of its own world, or find the entity");
    REMEDY(quern_entity_set(world, provisional, position, &value), "find the entity by a query afterwards");
    REMEDY(quern_entity_add_by_name(world, entity, "positon"), "; did you mean 'position'?");
    REMEDY(quern_entity_set_text(world, entity, "positon.x", "1"), "; did you mean 'position'?");
    REMEDY(QUERN_ADD(world, entity, velocitiy), "; did you mean 'velocity'?");
    must(quern_resource_register(world, &(quern_resource_def){.name = "weather", .size_bytes = 8},
                                 &resource));
    REMEDY(quern_resource_set_text(world, "wether.wind", "1"), "; did you mean 'weather'?");
    must(quern_entity_create(world, &parent));
    must(quern_entity_relate(world, entity, quern_world_parent(world), parent));
    REMEDY(quern_entity_relate(world, parent, quern_world_parent(world), entity),
           "this would be a cycle; relate the target to another entity first, or unrelate it");
}

Test(messages, of_calls_on_one_entity)
{
    quern_entity made;
    SAYS(quern_entity_destroy(world, none), "quern_entity_destroy: the entity handle is null");
    SAYS(quern_entity_add(world, dead, velocity, &value),
         "quern_entity_add: entity 1:1 is not alive any more: it was destroyed");
    SAYS(quern_entity_add(world, entity, position, &value),
         "quern_entity_add: entity 0:1 already has 'position'");
    SAYS(quern_entity_add(world, entity, unknown, NULL), "quern_entity_add: component handle ");
    SAYS(quern_entity_remove(world, foreign, position),
         "quern_entity_remove: entity 0:1 belongs to world ");
    SAYS(quern_entity_remove(world, entity, velocity),
         "quern_entity_remove: entity 0:1 does not have 'velocity'");
    SAYS(quern_entity_set(world, provisional, position, &value),
         "quern_entity_set: the handle of a deferred create (number 3)");
    SAYS(quern_entity_set(world, entity, position, NULL), "quern_entity_set: 'value' is NULL");
    SAYS(quern_entity_get(world, dead, position),
         "quern_entity_get: entity 1:1 is not alive any more: it was destroyed");
    SAYS(quern_entity_get(world, entity, tag), "quern_entity_get: 'tag' is a tag and has no value");
    SAYS(quern_entity_has(world, none, position), "quern_entity_has: the entity handle is null");
    SAYS(quern_entity_has(world, entity, unknown), "quern_entity_has: component handle ");
    SAYS(quern_entity_mark_changed(world, entity, velocity),
         "quern_entity_mark_changed: entity 0:1 does not have 'velocity'");
    SAYS(quern_entity_create(NULL, &made), "quern_entity_create: 'world' is NULL");
    SAYS(quern_entity_create(world, NULL), "quern_entity_create: 'out_entity' is NULL");
    SAYS(quern_entity_create_with(world, &unknown, NULL, 1, &made),
         "quern_entity_create_with: component 0: component handle ");
    const quern_component twice[] = {position, velocity, position};
    SAYS(quern_entity_create_with(world, twice, NULL, 3, &made),
         "quern_entity_create_with: 'position' is listed twice");
}

static void fill_nothing(quern_context *context, const quern_view *view)
{
    SAYS(quern_view_write(view, 4),
         "quern_view_write: a fill callback asked for term 4; there are 1, from 0");
}

Test(messages, of_calls_on_many)
{
    const quern_component twice[] = {position, position};
    quern_entity list[] = {entity, dead};
    quern_term term = quern_term_read(position);
    quern_query *query = setup_query(world, &term, 1);
    SAYS(quern_entity_create_many(world, twice, NULL, 2, 5, NULL),
         "quern_entity_create_many: 'position' is listed twice");
    SAYS(quern_entity_create_filled(world, twice, 2, 5, fill_nothing, NULL, NULL),
         "quern_entity_create_filled: 'position' is listed twice");
    cr_assert_eq(quern_entity_create_filled(world, &position, 1, 1, fill_nothing, NULL, NULL), QUERN_OK);
    SAYS(quern_entity_destroy_many(world, list, 2),
         "quern_entity_destroy_many: element 1: entity 1:1 is not alive");
    SAYS(quern_entity_add_matching(query, unknown, NULL, NULL),
         "quern_entity_add_matching: component handle ");
    SAYS(quern_entity_remove_matching(query, unknown, NULL),
         "quern_entity_remove_matching: component handle ");
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    SAYS(quern_view_write(&it.view, 0),
         "quern_view_write: an iteration asked to write 'position', "
         "term 0 (declared: read position); declare the write, or ask for it "
         "to read");
    SAYS(QUERN_COLUMN(&it.view, 0, double), "QUERN_COLUMN: an iteration asked to write 'position', ");
    SAYS(QUERN_COLUMN(&it.view, 7, const double), "QUERN_COLUMN: an iteration asked for term 7; ");
    SAYS(quern_view_read(&it.view, 7),
         "quern_view_read: an iteration asked for term 7; there are 1, from 0");
    setup_entity(world);
    SAYS(quern_query_next(&it), "quern_query_next: the world changed its structure");
}

Test(messages, of_definitions)
{
    quern_component component;
    quern_resource resource;
    quern_query *query;
    quern_component_def def = {0};
    SAYS(quern_component_register(world, &def, &component),
         "quern_component_register: a component needs a name, and this one is NULL");
    def.name = "odd";
    def.size_bytes = 10;
    def.alignment_bytes = 4;
    SAYS(quern_component_register(world, &def, &component),
         "quern_component_register: component 'odd' has 10 bytes");
    def.name = "position";
    def.size_bytes = 8;
    SAYS(quern_component_register(world, &def, &component),
         "quern_component_register: component 'position' is ");
    SAYS(quern_component_name(world, unknown), "quern_component_name: component handle ");
    quern_resource_def resource_def = {.name = "empty"};
    SAYS(quern_resource_register(world, &resource_def, &resource),
         "quern_resource_register: resource 'empty' has 0 bytes: set size_bytes");
    SAYS(quern_resource_get(world, (quern_resource){77}), "quern_resource_get: resource handle 0x4d ");
    SAYS(quern_resource_get(world, (quern_resource){0}), "quern_resource_get: the resource handle is null");
    def = (quern_component_def){
        .name = "odd", .size_bytes = 4, .fields = {{"a", QUERN_FIELD_I32, 0, .count = 1}}};
    def.fields[1].type = QUERN_FIELD_I32;
    SAYS(quern_component_register(world, &def, &component),
         "quern_component_register: 'odd': field 1: a field needs a name, and this one is NULL");
    def.fields[1] = (quern_field){.name = "b", .type = 99};
    SAYS(quern_component_register(world, &def, &component),
         "quern_component_register: 'odd': field 'b' has type 99, which is none of quern_field_type");
    quern_query_def query_def = {.terms = {quern_term_read(position), quern_term_write(position)}};
    SAYS(quern_query_create(world, &query_def, &query), "quern_query_create: 'position' is in term 0");
    query_def.terms[1] = quern_term_read(unknown);
    SAYS(quern_query_create(world, &query_def, &query), "quern_query_create: term 1: component handle ");
    query_def.terms[0].access = QUERN_ACCESS_WRITE_CONCURRENT;
    SAYS(quern_query_create(world, &query_def, &query),
         "quern_query_create: term 0 ('position') has access 3; for components there are ");
    query_def.terms[0] = (quern_term){.component = position, .match = 9};
    SAYS(quern_query_create(world, &query_def, &query),
         "quern_query_create: term 0 ('position') has match 9, which is none of quern_match");
    query_def.terms[0] = quern_term_read(position);
    query_def.terms[1] = (quern_term){.match = QUERN_MATCH_NONE};
    SAYS(quern_query_create(world, &query_def, &query), "quern_query_create: term 1 names no component");
    query_def.terms[1] = (quern_term){.changed = false};
    query_def.terms[2] = quern_term_read(position);
    SAYS(quern_query_create(world, &query_def, &query),
         "quern_query_create: term 1 is zero, which ends the list, but term 2 ");
}

Test(messages, of_schedules)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def def = system_def("mover", idle_run);
    def.terms[0] = quern_term_read(position);
    def.terms[1] = quern_term_write(position);
    SAYS(quern_schedule_add_system(schedule, &def, NULL),
         "quern_schedule_add_system: system 'mover': 'position' is in term 0");
    def.terms[1] = quern_term_read((quern_component){0});
    SAYS(quern_schedule_add_system(schedule, &def, NULL),
         "quern_schedule_add_system: system 'mover': term 1 names no component: was it registered?");
    def.terms[1] = (quern_term){.changed = false};
    def.phase = 9;
    SAYS(quern_schedule_add_system(schedule, &def, NULL),
         "quern_schedule_add_system: system 'mover' is in phase 9, and the schedule has 1: give a number "
         "from 0 "
         "to 0");
    def.phase = 0;
    def.name = "";
    SAYS(quern_schedule_add_system(schedule, &def, NULL),
         "quern_schedule_add_system: a system needs a name, and this one is empty");
    def.name = "mover";
    setup_system(schedule, &def);
    SAYS(quern_schedule_add_system(schedule, &def, NULL),
         "quern_schedule_add_system: the schedule already has a system 'mover': choose another name, or "
         "replace");
    def.name = "other";
    def.after[0] = "";
    SAYS(
        quern_schedule_add_system(schedule, &def, NULL),
        "quern_schedule_add_system: system 'other': after 0: a system needs a name, and this one is empty");
    def.after[0] = NULL;
    def.lookups[0].component = unknown;
    SAYS(quern_schedule_add_system(schedule, &def, NULL),
         "quern_schedule_add_system: system 'other': lookup 0: component handle ");
    def.lookups[0].component = (quern_component){0};
    SAYS(quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(NULL)),
         "quern_schedule_describe: the sink has no function to write");
    def.before[0] = "nobody";
    setup_system(schedule, &def);
    SAYS(quern_schedule_compile(schedule),
         "quern_schedule_compile: system 'other' is to run before 'nobody'");
    SAYS(quern_schedule_run(schedule, NULL, 0),
         "quern_schedule_run: system 'other' is to run before 'nobody'");
    SAYS(quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(stderr)),
         "quern_schedule_describe: system 'other' is to run before 'nobody'");
    quern_schedule_destroy(schedule);
    const quern_schedule_def schedule_def = {.phases = {""}};
    SAYS(quern_schedule_create(world, &schedule_def, &schedule),
         "quern_schedule_create: a phase needs a name");
}

/* Handles that no system has, a phase and a set that do not exist, and a name that a set nearly has. */
Test(messages, of_what_a_schedule_does_not_have)
{
    quern_schedule *schedule;
    must(quern_schedule_create(world, &(quern_schedule_def){.phases = {"think", "draw"}}, &schedule));
    make_system(schedule, "mover", idle_run, .after = {"efects"});
    SAYS(quern_schedule_set_system_enabled(schedule, quern_schedule_find_system(schedule, "mvoer"), false),
         "quern_schedule_set_system_enabled: the system handle is null: add the system first, and check "
         "its name");
    SAYS(
        quern_schedule_remove_system(schedule, (quern_system){77}),
        "quern_schedule_remove_system: no system of this schedule has the handle 77: pass one that adding");
    SAYS(quern_schedule_set_fixed_step(schedule, 2, 0.5, 1),
         "quern_schedule_set_fixed_step: the schedule has no phase 2: give a number from 0 ('think') to 1 "
         "('draw')");
    must(quern_schedule_add_set(schedule, &(quern_set_def){.name = "effects"}));
    SAYS(quern_schedule_enable_set(schedule, "effcts", false),
         "quern_schedule_enable_set: the schedule has no set 'effcts'");
    assert_message_has("; did you mean 'effects'?");
    SAYS(quern_schedule_compile(schedule),
         "quern_schedule_compile: system 'mover' is to run after 'efects'");
    assert_message_has("; did you mean 'effects'?");
    quern_schedule_destroy(schedule);
}

Test(messages, of_traces)
{
    quern_trace *trace;
    uint32_t number;
    cr_assert_eq(quern_trace_create(NULL, &trace), QUERN_OK);
    SAYS(quern_trace_add_name(trace, "", &number), "quern_trace_add_name: a zone needs a name");
    SAYS(quern_trace_set_track_name(trace, 0, ""), "quern_trace_set_track_name: a track needs a name");
    SAYS(quern_trace_save(trace, "/nowhere/at/all"),
         "quern_trace_save: cannot write the trace '/nowhere/at/all");
    quern_trace_destroy(trace);
}

/* ------------------------------------------------------------------------------------- in systems */

static void record_badly(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const quern_component twice[] = {position, position};
    SAYS(quern_commands_destroy(commands, none),
         "quern_commands_destroy: system 'once': the entity handle is null");
    SAYS(quern_commands_add(commands, dead, velocity, &value),
         "quern_commands_add: system 'once': entity 1:1 is not alive any more: it was destroyed");
    SAYS(quern_commands_remove(commands, foreign, position),
         "quern_commands_remove: system 'once': entity 0:1 belongs to world ");
    SAYS(quern_commands_set(commands, entity, unknown, &value),
         "quern_commands_set: system 'once': component handle ");
    SAYS(quern_commands_set(commands, entity, position, NULL),
         "quern_commands_set: system 'once': 'value' is NULL");
    SAYS(record_entity_with(commands, twice, NULL, 2),
         "quern_commands_create_with: system 'once': 'position' is listed twice");
    SAYS(quern_commands_create_many(commands, NULL, NULL, 2, 1, NULL),
         "quern_commands_create_many: system 'once': 'components' is NULL");
    SAYS(quern_commands_set(commands, provisional, position, &value),
         "quern_commands_set: system 'once' used the provisional handle of a deferred create (number 3)");
    assert_has("quern_commands_set", "; use it only in commands of the callback that made it");
}

Test(messages, of_commands)
{
    run_once(world, record_badly);
}

static void ask_badly(quern_context *context)
{
    static uint32_t turn;
    quern_resource missing = {77};
    switch (turn++) {
    case 0:
        SAYS(quern_context_lookup(context, entity, position),
             "quern_context_lookup: system 'asker' looked up 'position' without");
        break;
    case 1:
        SAYS(quern_context_has(context, entity, unknown),
             "quern_context_has: system 'asker' asked for a component with an invalid handle: component "
             "handle ");
        break;
    case 2:
        SAYS(quern_context_resource(context, missing), "quern_context_resource: system 'asker' asked for a "
                                                       "resource with an invalid handle: resource handle ");
        break;
    case 3:
        SAYS(quern_context_world(context), "quern_context_world: system 'asker' asked for the world");
        break;
    default:
        SAYS(quern_entity_set(world, entity, position, &value), "quern_entity_set: a frame, ");
        break;
    }
}

Test(messages, of_contexts)
{
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "asker", NULL, .begin = ask_badly);
    for (uint32_t i = 0; i < 4; i++) {
        SAYS(quern_schedule_run(schedule, NULL, 0), "quern_schedule_run: frame ");
        assert_message_has("system 'asker' was refused an access");
    }
    must_run(schedule, NULL);
}

/* ------------------------------------------------------------------------------------- further texts */

static void destroy_nothing(void *values, uint32_t count, void *user_data) {}

static void copy_bytes(void *targets, const void *sources, uint32_t count, void *user_data)
{
    memcpy(targets, sources, count * sizeof(vec3));
}

static void move_bytes(void *targets, void *sources, uint32_t count, void *user_data)
{
    copy_bytes(targets, sources, count, user_data);
}

static const quern_hooks uncopied = {.move = move_bytes, .destroy = destroy_nothing};

Test(messages, of_components_that_the_world_manages)
{
    const quern_component parent = quern_relation_component(quern_world_parent(world));
    quern_component component;
    const quern_component_def def = {.name = "hooked tag", .hooks = uncopied};
    SAYS(quern_component_register(world, &def, &component),
         "quern_component_register: component 'hooked tag' is a tag (0 bytes) with hooks, which would "
         "never run: "
         "remove the hooks");
    const quern_save_def save = {.leave_out = {parent}};
    SAYS(quern_world_save(world, quern_sink_file(stderr), &save),
         "quern_world_save: 'parent' cannot be left out, because the world manages it itself");
    assert_message_has(": remove it from leave_out");
}

static void accumulate_badly(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const quern_component parent = *(const quern_component *)quern_context_user_data(context);
    SAYS(quern_commands_accumulate(commands, entity, parent, &entity, QUERN_SUM),
         "quern_commands_accumulate: system 'summer': the world manages 'parent' itself: relate and "
         "unrelate");
    SAYS(quern_commands_accumulate(commands, entity, tag, &entity, QUERN_SUM),
         "quern_commands_accumulate: system 'summer': 'tag' is a tag and has no value to combine: ");
}

Test(messages, of_accumulated_values)
{
    quern_component parent = quern_relation_component(quern_world_parent(world));
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "summer", NULL, .begin = accumulate_badly, .user_data = &parent);
    must_run(schedule, NULL);
}

static void emit_badly(quern_context *context)
{
    const quern_event *event = quern_context_user_data(context);
    quern_emitter *emitter = quern_context_emitter(context, *event);
    if (quern_context_frame_index(context) % 2 == 0)
        SAYS(quern_context_emit(context, *event, NULL, 2),
             "quern_context_emit: system 'emitter' emitted 2 events 'moved'; 'values' is NULL");
    else
        SAYS(quern_emit(emitter, &(vec3){1, 2, 3}),
             "quern_emit: system 'emitter' emitted 'moved', which has a "
             "copy hook: use quern_context_emit to copy the value");
}

Test(messages, of_emitted_values)
{
    quern_event event;
    const quern_event_def event_def = {
        .name = "moved",
        .size_bytes = sizeof(vec3),
        .alignment_bytes = 4,
        .hooks = {.copy = copy_bytes, .move = move_bytes, .destroy = destroy_nothing}};
    cr_assert_eq(quern_event_register(world, &event_def, &event), QUERN_OK);
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "emitter", NULL, .begin = emit_badly, .user_data = &event, .emits = {event});
    for (uint32_t i = 0; i < 2; i++)
        SAYS(quern_schedule_run(schedule, NULL, 0), "quern_schedule_run: frame ");
}

Test(messages, of_histories)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_world *other = setup_world();
    quern_schedule *foreign_schedule = setup_schedule(other);
    quern_history *history;
    quern_history_def def = {.schedules = {schedule, foreign_schedule}};
    SAYS(quern_history_create(world, &def, &history),
         "quern_history_create: schedule 1 of the list belongs to another world: list schedules of ");
    def.schedules[1] = NULL;
    cr_assert_eq(quern_history_create(world, &def, &history), QUERN_OK);
    cr_assert_eq(quern_history_save(history, 1, NULL), QUERN_OK);
    SAYS(quern_history_restore(history, 2, NULL),
         "quern_history_restore: frame 2 is not kept: the history ");
    quern_resource resource;
    const quern_resource_def resource_def = {.name = "file", .size_bytes = 8, .hooks = uncopied};
    cr_assert_eq(quern_resource_register(world, &resource_def, &resource), QUERN_OK);
    SAYS(quern_history_save(history, 2, NULL),
         "quern_history_save: resource 'file' has a move or destroy hook and no copy hook, so ");
    assert_message_has(": add a copy hook");
    quern_history_destroy(history);
    quern_schedule_destroy(schedule);
    quern_schedule_destroy(foreign_schedule);
    quern_world_destroy(other);
}

/* ---------------------------------------------------------------------------------- lack of memory */

static failing_allocator *memory;

/* A world of its own, for calls that lack memory. */
static quern_world *world_of_memory(void)
{
    memory = failing_allocator_create();
    quern_world *made;
    const quern_world_def def = {.allocator = failing_allocator_interface(memory)};
    cr_assert_eq(quern_world_create(&def, &made), QUERN_OK);
    return made;
}

static void destroy_world_of_memory(quern_world *made)
{
    failing_allocator_heal(memory);
    quern_world_destroy(made);
    failing_allocator_close(memory);
}

/* Refuses the first, the second, ... request of memory in turn until the call succeeds. One of the messages must begin
 * like this, and each names the call. */
#define SAYS_WITHOUT_MEMORY(call, function, beginning)                               \
    do {                                                                             \
        bool is_found = false;                                                       \
        quern_result failed = QUERN_ERROR_OUT_OF_MEMORY;                             \
        for (uint64_t request = 1; failed == QUERN_ERROR_OUT_OF_MEMORY; request++) { \
            failing_allocator_fail_at(memory, request);                              \
            failed = (call);                                                         \
            if (failed == QUERN_OK) break;                                           \
            assert_begins(#call, function ": ");                                     \
            is_found |= strncmp(quern_error_message(), function ": " beginning,      \
                                sizeof function ": " beginning - 1) == 0;            \
        }                                                                            \
        failing_allocator_heal(memory);                                              \
        cr_expect_eq(failed, QUERN_OK);                                              \
        cr_expect(is_found, "%s never says '%s'", #call, beginning);                 \
    } while (0)

Test(messages, of_relations_and_queries_without_memory)
{
    quern_world *made = world_of_memory();
    quern_relation relation;
    quern_history *history; /* while there is one, relations mark what changes */
    cr_assert_eq(quern_history_create(made, NULL, &history), QUERN_OK);
    const quern_relation_def def = {.name = "near"};
    SAYS_WITHOUT_MEMORY(quern_relation_register(made, &def, &relation), "quern_relation_register",
                        "relation 'near': no memory to mark changes");
    quern_query *query;
    const quern_query_def query_def = {.terms = {quern_term_target(relation, (quern_entity){0})}};
    SAYS_WITHOUT_MEMORY(quern_query_create(made, &query_def, &query), "quern_query_create",
                        "no memory for the target term of a query");
    quern_query_destroy(query);
    quern_history_destroy(history);
    destroy_world_of_memory(made);
}

Test(messages, of_lists_without_memory)
{
    quern_world *made = world_of_memory();
    quern_archive *archive;
    SAYS_WITHOUT_MEMORY(quern_archive_create(made, &archive), "quern_archive_create",
                        "out of memory for a list of entities");
    quern_archive_destroy(archive);
    destroy_world_of_memory(made);
}

Test(messages, of_paths_without_memory)
{
    quern_world *made = world_of_memory();
    const quern_relation parent = quern_world_parent(made);
    quern_entity below = setup_entity(made);
    for (uint32_t i = 0; i < 500; i++) {
        const quern_entity child = setup_entity(made);
        cr_assert_eq(quern_entity_relate(made, child, parent, below), QUERN_OK);
        below = child;
    }
    char path[8192];
    quern_text_buffer buffer = {path, sizeof path, 0};
    SAYS_WITHOUT_MEMORY(quern_entity_get_path(made, below, quern_sink_text(&buffer)),
                        "quern_entity_get_path", "no memory for a path of 501 names");
    destroy_world_of_memory(made);
}

Test(messages, of_archives_without_memory)
{
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    cr_assert_eq(quern_world_save(world, quern_sink_file(file), NULL), QUERN_OK);
    quern_world *made = world_of_memory();
    setup_component(made, "position", sizeof(vec3), 4);
    SAYS_WITHOUT_MEMORY((rewind(file), quern_world_load(made, quern_source_file(file), NULL, NULL)),
                        "quern_world_load", "out of memory for a block of ");
    fclose(file);
    destroy_world_of_memory(made);
}

typedef struct emission {
    quern_event event;
    bool has_failed;
} emission;

static void emit_without_memory(quern_context *context)
{
    emission *it = quern_context_user_data(context);
    failing_allocator_fail_from(memory, 1);
    it->has_failed = !quern_context_emit(context, it->event, &value, 1);
    failing_allocator_heal(memory);
    assert_begins("quern_context_emit",
                  "quern_context_emit: system 'emitter': no memory for 1 events 'moved'");
}

Test(messages, of_events_without_memory)
{
    quern_world *made = world_of_memory();
    emission it = {.has_failed = false};
    const quern_event_def event_def = {.name = "moved", .size_bytes = sizeof(vec3), .alignment_bytes = 4};
    cr_assert_eq(quern_event_register(made, &event_def, &it.event), QUERN_OK);
    quern_schedule *schedule = setup_schedule(made);
    make_system(schedule, "emitter", NULL, .begin = emit_without_memory, .user_data = &it,
                .emits = {it.event});
    SAYS(quern_schedule_run(schedule, NULL, 0), "quern_schedule_run: ");
    assert_message_has("no memory to emit an event; the others were published");
    cr_expect(it.has_failed);
    quern_schedule_destroy(schedule);
    destroy_world_of_memory(made);
}

/* --------------------------------------------------------------------------- prefabs and reactions */

static void spawn_without_parents(quern_context *context)
{
    const quern_prefab *prefab = quern_context_user_data(context);
    const quern_spawn_def def = {.parent = entity};
    SAYS(quern_commands_spawn(quern_context_commands(context), *prefab, &def, NULL),
         "quern_commands_spawn: system 'spawner': the world has no parent relation: call "
         "quern_world_parent ");
}

Test(messages, of_spawning_in_a_world_without_parents)
{
    quern_prefab prefab;
    cr_assert_eq(quern_prefab_capture(world, entity, &prefab), QUERN_OK);
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "spawner", NULL, .begin = spawn_without_parents, .user_data = &prefab);
    must_run(schedule, NULL);
}

Test(messages, of_prefabs_of_too_many_entities)
{
    const quern_relation parent = quern_world_parent(world);
    for (uint32_t i = 0; i < QUERN_MAX_PREFAB_MEMBERS; i++)
        cr_assert_eq(quern_entity_relate(world, setup_entity(world), parent, entity), QUERN_OK);
    quern_prefab prefab;
    SAYS(quern_prefab_capture(world, entity, &prefab),
         "quern_prefab_capture: the tree has more than 65536 entities (QUERN_MAX_PREFAB_MEMBERS): capture "
         "parts ");
}

static void ignore_rows(quern_context *context, const quern_view *view) {}

Test(messages, of_removed_rows_that_wait_for_a_reaction)
{
    quern_component owner;
    const quern_component_def component_def = {
        .name = "owner",
        .size_bytes = sizeof(vec3),
        .alignment_bytes = 4,
        .hooks = {.copy = copy_bytes, .move = move_bytes, .destroy = destroy_nothing}};
    cr_assert_eq(quern_component_register(world, &component_def, &owner), QUERN_OK);
    quern_schedule *schedule = setup_schedule(world);
    const quern_system_def def = {.name = "mourn",
                                  .run = ignore_rows,
                                  .terms = {quern_term_read(owner)},
                                  .reacts_to = QUERN_REACT_REMOVED};
    setup_system(schedule, &def);
    quern_history *history;
    const quern_history_def history_def = {.schedules = {schedule}};
    cr_assert_eq(quern_history_create(world, &history_def, &history), QUERN_OK);
    const quern_entity owning = setup_entity_with(world, &owner, 1);
    cr_assert_eq(quern_entity_destroy(world, owning), QUERN_OK);
    SAYS(quern_history_save(history, 1, NULL),
         "quern_history_save: removed rows are pending for reactions, and their values have hooks, so a ");
    assert_message_has(": run the reactions first (quern_world_react, or run a frame)");
    quern_history_destroy(history);
}

Test(messages, of_graphs_of_too_many_nodes)
{
    quern_graph *graph;
    cr_assert_eq(quern_graph_create(NULL, &graph), QUERN_OK);
    const quern_graph_node_def def = {0};
    for (uint32_t i = 0; i < QUERN_MAX_GRAPH_NODES; i++)
        cr_assert_eq(quern_graph_add_node(graph, &def, NULL), QUERN_OK);
    SAYS(quern_graph_add_node(graph, &def, NULL), "quern_graph_add_node: a graph has at most 1048576 "
                                                  "nodes: split the graph, and add one part as a node");
    quern_graph_destroy(graph);
}
