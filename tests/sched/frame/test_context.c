/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <pthread.h>
#include <string.h>

/* Contexts and recorders that are used outside of the callback to which they belong. Use on another thread
 * is only detected in builds with checks. */

static quern_component position;
static quern_resource score;
static quern_entity entity;
static captured_reports reports;

static quern_context *kept_context;
static quern_commands *kept_commands;

static void open_world(void)
{
    world = setup_world();
    position = setup_component(world, "position", sizeof(vec3), 4);
    score = setup_counter(world, "score");
    entity = setup_entity_with(world, &position, 1);
    kept_context = NULL;
    kept_commands = NULL;
    capture_reports(&reports);
}

TestSuite(context, .init = open_world, .fini = close_world);

/* Asserts that the call was reported with these words. */
static void assert_reported(const char *words)
{
    const uint32_t count = quern_has_checks() ? reports.assert_count : reports.log_count;
    cr_assert_eq(count, 1u, "%u reports for: %s", count, words);
    cr_assert_not_null(strstr(reports.last, words), "no \"%s\" in: %s", words, reports.last);
    capture_reports(&reports);
}

#define ASSERT_FOREIGN(call, nothing)                \
    do {                                             \
        cr_assert((call) == (nothing), "%s", #call); \
        assert_reported("outside of the callback");  \
    } while (0)

/* Asserts that every call returns nothing on a context of another callback, or of a finished one. */
static void assert_context_gives_nothing(quern_context *context)
{
    cr_assert_not_null(quern_context_commands(context));
    assert_reported("quern_context_commands");
    if (quern_has_checks()) {
        ASSERT_FOREIGN(quern_context_lookup(context, entity, position), NULL);
        ASSERT_FOREIGN(quern_context_has(context, entity, position), false);
        const void *value = &entity;
        ASSERT_FOREIGN(quern_context_lookup_many(context, &entity, 1, position, &value), 0);
        cr_assert_null(value);
    }
    ASSERT_FOREIGN(quern_context_is_alive(context, entity), false);
    ASSERT_FOREIGN(quern_context_resource(context, score), NULL);
    ASSERT_FOREIGN(quern_context_resource_write(context, score), NULL);
    ASSERT_FOREIGN(quern_context_partial(context), NULL);
    ASSERT_FOREIGN(quern_context_partial_count(context), 0);
    ASSERT_FOREIGN(quern_context_partial_at(context, 0), NULL);
    ASSERT_FOREIGN(quern_context_user_data(context), NULL);
    ASSERT_FOREIGN(quern_context_delta_seconds(context), 0);
    ASSERT_FOREIGN(quern_context_frame_index(context), 0);
    ASSERT_FOREIGN(quern_context_worker_index(context), 0);
    ASSERT_FOREIGN(quern_context_jobs(context), NULL);
    ASSERT_FOREIGN(quern_context_world(context), NULL);
}

/* Asserts that every call is refused on a recorder of another callback, or of a finished one. */
static void assert_commands_are_refused(quern_commands *commands)
{
    const vec3 value = {1, 2, 3};
    const quern_result code = QUERN_ERROR_INVALID_ARGUMENT;
    ASSERT_FOREIGN(record_entity(commands).bits, 0);
    ASSERT_FOREIGN(record_entity_with(commands, &position, NULL, 1).bits, 0);
    ASSERT_FOREIGN(quern_commands_create_many(commands, &position, NULL, 1, 2, NULL), code);
    ASSERT_FOREIGN(quern_commands_destroy(commands, entity), code);
    ASSERT_FOREIGN(quern_commands_add(commands, entity, position, NULL), code);
    ASSERT_FOREIGN(quern_commands_remove(commands, entity, position), code);
    ASSERT_FOREIGN(quern_commands_set(commands, entity, position, &value), code);
}

/* ------------------------------------------------------------------------------------- after the frame */

static void keep(quern_context *context)
{
    kept_context = context;
    kept_commands = quern_context_commands(context);
    cr_assert_neq(record_entity(kept_commands).bits, 0u, "in its callback it records");
}

/* Returns the schedule without destroying it, because it owns the kept context. */
static quern_schedule *run_keeper(void)
{
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "keeper", NULL, .begin = keep, .user_data = &reports);
    must_run(schedule, NULL);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
    return schedule;
}

Test(context, context_kept_after_frame_is_reported)
{
    quern_schedule *schedule = run_keeper();
    assert_context_gives_nothing(kept_context);
    quern_schedule_destroy(schedule);
}

Test(context, commands_are_not_recorded_after_the_frame)
{
    quern_schedule *schedule = run_keeper();
    const uint64_t hash = quern_world_hash(world);
    assert_commands_are_refused(kept_commands);
    cr_assert_eq(quern_schedule_kept_command_count(schedule), 0u);
    cr_assert_eq(quern_world_hash(world), hash);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).command_count, 1u, "its own create and no other");
    quern_schedule_destroy(schedule);
}

/* ------------------------------------------------------------------------- after a query in parallel */

static void keep_of_view(quern_context *context, const quern_view *view)
{
    keep(context);
}

Test(context, what_a_parallel_query_gave_is_refused_afterwards)
{
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(position)}, 1);
    must(quern_query_parallel_for(query, NULL, keep_of_view, NULL));
    const uint64_t hash = quern_world_hash(world);
    cr_assert_eq(quern_context_commands(kept_context), kept_commands);
    assert_reported("quern_context_commands: the context was used outside of the callback");
    assert_commands_are_refused(kept_commands);
    cr_assert_eq(quern_world_hash(world), hash);
    quern_query_destroy(query);
}

/* ------------------------------------------------------------------------------- in another callback */

static void use_kept(quern_context *context)
{
    assert_commands_are_refused(kept_commands);
    quern_commands *commands = quern_context_commands(context);
    cr_assert_eq(quern_commands_destroy(commands, entity), QUERN_OK, "%s", quern_error_message());
}

/* Both callbacks have the worker's recorder, but its stream would be that of the other system. */
Test(context, recorder_is_refused_to_next_callback_until_it_asks_for_it)
{
    quern_schedule *schedule = setup_schedule(world);
    quern_system_def first = system_def("first", NULL), second = system_def("second", NULL);
    first.begin = keep;
    second.begin = use_kept;
    setup_system(schedule, &first);
    setup_system(schedule, &second);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).command_count, 2u);
}

/* ------------------------------------------------------------------------------- on another thread */

static void *use_elsewhere(void *argument)
{
    assert_context_gives_nothing(kept_context);
    assert_commands_are_refused(kept_commands);
    return NULL;
}

static void lend_to_thread(quern_context *context)
{
    keep(context);
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, use_elsewhere, NULL), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_assert_not_null(quern_context_user_data(context), "its own thread is not disturbed");
    cr_assert_eq(quern_commands_destroy(kept_commands, entity), QUERN_OK, "%s", quern_error_message());
}

Test(context, context_used_on_another_thread_is_reported)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    quern_schedule *schedule = setup_schedule(world);
    make_system(schedule, "lender", NULL, .begin = lend_to_thread, .user_data = &reports);
    must_run(schedule, NULL);
    cr_assert_eq(stats_of_frame(schedule).command_count, 2u);
}

/* -------------------------------------------------------------------------------- after workers were added */

static quern_event hit;
static quern_emitter *kept_emitter;

static void keep_all(quern_context *context)
{
    keep(context);
    kept_emitter = quern_context_emitter(context, hit);
    cr_assert_not_null(kept_emitter);
}

static void emit_nothing(quern_context *context, const quern_view *view) {}

/* Adds a system with an up-term and an event of its own, so that workers need more addresses and more
 * emitters. */
static void add_demanding_system(quern_schedule *schedule)
{
    quern_event other;
    must(quern_event_register(world, &(quern_event_def){.name = "other", .size_bytes = 8}, &other));
    make_system(schedule, "demanding", emit_nothing,
                .terms = {quern_term_up(position, quern_world_parent(world))}, .emits = {other});
}

/* The memory of the first worker keeps its address, whatever later frames need. */
Test(context, kept_context_is_reported_after_schedule_has_more_workers)
{
    const uint64_t value = 1;
    quern_schedule *schedule = setup_schedule(world);
    quern_jobs *jobs;
    must(quern_event_register(world, &(quern_event_def){.name = "hit", .size_bytes = 8}, &hit));
    const quern_system keeper =
        make_system(schedule, "keeper", NULL, .begin = keep_all, .emits = {hit}, .user_data = &reports);
    must_run(schedule, NULL);
    quern_context *context = kept_context;
    quern_commands *commands = kept_commands;
    quern_emitter *emitter = kept_emitter;
    must(quern_schedule_set_system_enabled(schedule, keeper, false));
    add_demanding_system(schedule);
    must(quern_jobs_create(&(quern_jobs_def){.thread_count = 4}, &jobs));
    must_run(schedule, jobs);
    assert_context_gives_nothing(context);
    assert_commands_are_refused(commands);
    ASSERT_FOREIGN(quern_emit(emitter, &value), false);
    must(quern_schedule_set_system_enabled(schedule, keeper, true));
    must_run(schedule, NULL);
    cr_assert_eq(kept_context, context);
    cr_assert_eq(kept_commands, commands);
    cr_assert_eq(kept_emitter, emitter);
    quern_schedule_destroy(schedule);
    quern_jobs_destroy(jobs);
}

static void keep_of_query(quern_context *context, const quern_view *view)
{
    if (kept_context == NULL) keep(context);
}

Test(context, context_of_parallel_query_is_reported_after_query_with_more_workers)
{
    const quern_term term = quern_term_read(position);
    quern_query *query = setup_query(world, &term, 1);
    quern_jobs *jobs;
    must(quern_query_parallel_for(query, NULL, keep_of_query, NULL));
    quern_context *context = kept_context;
    quern_commands *commands = kept_commands;
    must(quern_jobs_create(&(quern_jobs_def){.thread_count = 4}, &jobs));
    must(quern_query_parallel_for(query, jobs, keep_of_query, NULL));
    ASSERT_FOREIGN(quern_context_user_data(context), NULL);
    assert_commands_are_refused(commands);
    kept_context = NULL;
    must(quern_query_parallel_for(query, NULL, keep_of_query, NULL));
    cr_assert_eq(kept_context, context);
    cr_assert_eq(kept_commands, commands);
    quern_jobs_destroy(jobs);
}

/* ------------------------------------------------------------------------------------------- relations */

/* Calls of systems about relations that they declare, and about those that they do not declare. */

static quern_schedule *schedule;
static quern_relation parent, owner;
static quern_entity root, a, b, dead, heir, leaf;
static uint32_t call_count;

static quern_entity make(void)
{
    return setup_entity_with(world, (const quern_component[]){quern_component_find(world, "number")}, 1);
}

static void open_relations(void)
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

TestSuite(context_relations, .init = open_relations, .fini = close_world);

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

/* -------------------------------------------------------------------------------- provisional entities */

/* Provisional handles in fields that are not described, so that they are not replaced. Builds with checks
 * find them at the sync point. */

typedef struct leash {
    uint32_t length, unused;
    quern_entity holder;
} leash;

static quern_component plain, linked, number, packed;
static quern_entity entity, kept;

static quern_component setup_leash(const char *name, uint32_t alignment_bytes, quern_field_type type)
{
    const quern_field fields[] = {{"length", QUERN_FIELD_U32, offsetof(leash, length), .count = 1},
                                  {"holder", type, offsetof(leash, holder), .count = 1}};
    quern_component_def def = {
        .name = name, .size_bytes = sizeof(leash), .alignment_bytes = alignment_bytes};
    memcpy(def.fields, fields, (type != QUERN_FIELD_BOOL ? 2 : 0) * sizeof fields[0]);
    quern_component component;
    cr_assert_eq(quern_component_register(world, &def, &component), QUERN_OK, "%s", quern_error_message());
    return component;
}

static void open_leashes(void)
{
    world = setup_world();
    plain = setup_leash("plain", 8, QUERN_FIELD_BOOL); /* a type without described fields */
    packed = setup_leash("packed", 2, QUERN_FIELD_BOOL);
    linked = setup_leash("linked", 8, QUERN_FIELD_ENTITY);
    number = setup_leash("number", 8, QUERN_FIELD_U64);
    entity = setup_entity(world);
    kept = quern_entity_null();
    capture_reports(&reports);
}

TestSuite(provisional, .init = open_leashes, .fini = close_world);

/* Asserts that the frame reported this once in builds with checks, and nothing in others. */
static void assert_found(const char *words)
{
    cr_assert_eq(reports.log_count, quern_has_checks() ? 1u : 0u, "%s", reports.last);
    if (quern_has_checks())
        cr_assert_not_null(strstr(reports.last, words), "no \"%s\" in: %s", words, reports.last);
    assert_valid(world);
}

static void set_plain(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    record_entity(commands);
    const leash value = {.holder = record_entity(commands)};
    cr_assert_eq(quern_commands_set(commands, entity, plain, &value), QUERN_OK);
    cr_assert_eq(quern_commands_set(commands, entity, plain, &value), QUERN_OK);
}

Test(provisional, handle_set_without_described_field_is_found)
{
    run_once(world, set_plain);
    assert_found(
        "system 'once' gave 'plain' the provisional handle of a deferred create (number 1) at byte 8, "
        "where no field is described");
    if (quern_has_checks()) cr_assert_not_null(strstr(reports.last, "(2 such handles"), "%s", reports.last);
}

static quern_component hooked;

static void copy_leashes(void *targets, const void *sources, uint32_t count, void *user_data)
{
    (void)user_data;
    memcpy(targets, sources, count * sizeof(leash));
}

static void set_hooked(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const leash value = {.holder = record_entity(commands)};
    cr_assert_eq(quern_commands_set(commands, entity, hooked, &value), QUERN_OK);
}

/* The buffer of a short string in C++ has bytes that nothing wrote, and that were a handle before. */
Test(provisional, unwritten_bytes_of_types_with_hooks_are_no_handles)
{
    const quern_component_def def = {.name = "hooked",
                                     .size_bytes = sizeof(leash),
                                     .alignment_bytes = 8,
                                     .hooks = {.copy = copy_leashes}};
    cr_assert_eq(quern_component_register(world, &def, &hooked), QUERN_OK);
    run_once(world, set_hooked);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
}

static void create_with_plain(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    const leash values[] = {{.length = 1}, {.holder = record_entity(commands)}};
    const void *columns[] = {values};
    cr_assert_eq(quern_commands_create_many(commands, &plain, columns, 1, 2, NULL), QUERN_OK);
}

Test(provisional, handle_in_value_of_create_is_found)
{
    run_once(world, create_with_plain);
    assert_found("system 'once' gave 'plain' the provisional handle of a deferred create (number 0)");
}

static void keep_created(quern_context *context)
{
    kept = record_entity(quern_context_commands(context));
}

static void give_kept(quern_context *context)
{
    const leash value = {.holder = kept};
    cr_assert_eq(quern_commands_set(quern_context_commands(context), entity, plain, &value), QUERN_OK);
}

Test(provisional, handle_of_another_system_is_found)
{
    quern_schedule *pair = setup_schedule(world);
    quern_system_def first = system_def("first", NULL), second = system_def("second", NULL);
    first.begin = keep_created;
    second.begin = give_kept;
    setup_system(pair, &first);
    setup_system(pair, &second);
    must_run(pair, NULL);
    assert_found("system 'second' gave 'plain'");
}

/* Values that are not reported: described, described as a number, in memory that cannot hold a handle, or
 * no handle of this sync point. */
static void give_others(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    leash value = {.holder = record_entity(commands)};
    cr_assert_eq(quern_commands_set(commands, entity, linked, &value), QUERN_OK);
    cr_assert_eq(quern_commands_set(commands, entity, number, &value), QUERN_OK);
    cr_assert_eq(quern_commands_set(commands, entity, packed, &value), QUERN_OK);
    value.holder.bits++;
    cr_assert_eq(quern_commands_set(commands, entity, plain, &value), QUERN_OK);
}

Test(provisional, values_that_may_be_numbers_are_not_reported)
{
    run_once(world, give_others);
    cr_assert_eq(reports.log_count, 0u, "%s", reports.last);
    const leash *value = quern_entity_get(world, entity, linked);
    cr_assert(quern_entity_is_alive(world, value->holder));
}
