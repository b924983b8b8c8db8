/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <quern/archive.h>
#include <quern/history.h>

#include <string.h>

/* The end of a world: values go children first, and may own queries, getters and readers of it. */

typedef struct Owner {
    quern_query *query;
    quern_getter *getter;
    quern_event_reader *reader;
    uint32_t number;
} Owner;

static uint32_t destroyed[64], destroyed_count;
static captured_reports reports;

static void destroy_owners(void *values, uint32_t count, void *user_data)
{
    const Owner *owners = values;
    for (uint32_t i = 0; i < count; i++) {
        quern_query_destroy(owners[i].query);
        quern_getter_destroy(owners[i].getter);
        quern_event_reader_destroy(owners[i].reader);
        if (owners[i].number > 0) destroyed[destroyed_count++] = owners[i].number;
    }
}

static quern_world *world;
static quern_component owner, tag;
static quern_event ping;

static void open_world(const quern_allocator *allocator)
{
    const quern_hooks hooks = {.destroy = destroy_owners};
    world = make_world(.allocator = allocator != NULL ? *allocator : (quern_allocator){0});
    owner = make_component(world, .name = "Owner", .size_bytes = sizeof(Owner),
                           .alignment_bytes = _Alignof(Owner), .hooks = hooks);
    tag = setup_component(world, "tag", 4, 4);
    ping = make_event(world, .name = "ping", .size_bytes = 4);
    destroyed_count = 0;
}

static Owner own_all(uint32_t number)
{
    Owner it = {.number = number};
    it.query = make_query(world, .terms = {quern_term_with(tag)});
    must(quern_getter_create(world, &(quern_getter_def){.component = tag}, &it.getter));
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = ping}, &it.reader));
    return it;
}

static quern_entity add_owner(Owner value)
{
    quern_entity entity;
    must(quern_entity_create_with(world, &owner, (const void *const[]){&value}, 1, &entity));
    return entity;
}

/* A tool that refers to a world, its schedule and its history: none of them ends before it. */
Test(world_destroy, users_of_the_world_end_first)
{
    quern_schedule *schedule;
    quern_history *history;
    open_world(NULL);
    add_owner(own_all(1));
    must(quern_schedule_create(world, NULL, &schedule));
    must(quern_history_create(world, &(quern_history_def){.schedules = {schedule}}, &history));
    quern_world_user tool = {.name = "the tool", .schedule = schedule, .history = history},
                     other = {.name = "another tool"}, nameless = {.name = NULL};
    must(quern_world_add_user(world, &tool));
    must(quern_world_add_user(world, &other));
    must_refuse(INVALID_ARGUMENT, world, quern_world_add_user(world, &tool));
    must_refuse(NULL_ARGUMENT, world, quern_world_add_user(world, &nameless));
    must_refuse(NULL_ARGUMENT, world, quern_world_add_user(world, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_world_add_user(NULL, &tool));
    capture_reports(&reports);
    quern_history_destroy(history);
    cr_assert_not_null(strstr(reports.last, "the tool still refers to the history"), "%s", reports.last);
    quern_world_remove_user(world, &nameless);
    cr_assert_not_null(strstr(reports.last, "quern_world_remove_user: '' is not registered"), "%s",
                       reports.last);
    tool.history = NULL;
    quern_history_destroy(history);
    quern_schedule_destroy(schedule);
    cr_assert_not_null(strstr(reports.last, "the tool still refers to the schedule"), "%s", reports.last);
    tool.schedule = NULL;
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    cr_assert_not_null(strstr(reports.last, "another tool still refers to the world"), "%s", reports.last);
    cr_assert_not_null(strstr(reports.last, "nothing was changed"), "%s", reports.last);
    cr_assert_eq(destroyed_count, 0u);
    cr_assert_eq(reports.log_count, 4u);
    quern_world_remove_user(world, &other);
    quern_world_destroy(world);
    cr_assert_not_null(strstr(reports.last, "the tool still refers to the world"), "%s", reports.last);
    quern_world_remove_user(world, &tool);
    quern_world_remove_user(world, NULL);
    quern_world_remove_user(NULL, &tool);
    quern_world_destroy(world);
    cr_assert_eq(reports.log_count, 5u);
    cr_assert_eq(destroyed_count, 1u);
}

/* Nothing that reads the world to save it, or writes it from bytes, is left with a world that has ended. */
Test(world_destroy, objects_of_archives_and_deltas_end_first)
{
    static const char *const names[4] = {"quern_archive", "quern_save_session", "quern_load_session",
                                         "quern_delta_applier"};
    quern_archive *list;
    quern_save_session *writer;
    quern_load_session *reader;
    quern_delta_applier *applier;
    open_world(NULL);
    must(quern_delta_applier_create(world, &applier));
    must(quern_load_session_create(world, &(quern_load_def){.schedules = {NULL}}, &reader));
    must(quern_save_session_create(world, NULL, &writer));
    must(quern_archive_create(world, &list));
    capture_reports(&reports);
    for (uint32_t i = 0; i < 4; i++) {
        quern_world_destroy(world);
        cr_assert_not_null(strstr(reports.last, names[i]), "%s", reports.last);
        if (i == 0) quern_archive_destroy(list);
        if (i == 1) quern_save_session_destroy(writer);
        if (i == 2) quern_load_session_destroy(reader);
        if (i == 3) quern_delta_applier_destroy(applier);
    }
    cr_assert_eq(reports.log_count, 4u);
    quern_world_destroy(world);
}

/* The list of users stays whole, whichever world a user is added to or removed from. */
Test(world_destroy, a_user_belongs_to_one_world)
{
    quern_world *second;
    quern_world_user tool = {.name = "the tool"}, older = {.name = "an older tool"};
    open_world(NULL);
    must(quern_world_create(NULL, &second));
    must(quern_world_add_user(world, &older));
    must(quern_world_add_user(world, &tool));
    must_refuse(INVALID_ARGUMENT, second, quern_world_add_user(second, &tool));
    cr_assert_not_null(
        strstr(quern_error_message(),
               "quern_world_add_user: 'the tool' is registered already, in another world: remove it"),
        "%s", quern_error_message());
    must_refuse(INVALID_ARGUMENT, world, quern_world_add_user(world, &tool));
    cr_assert_not_null(strstr(quern_error_message(), "'the tool' is registered already, in this world"),
                       "%s", quern_error_message());
    capture_reports(&reports);
    quern_world_remove_user(second, &tool);
    cr_assert_not_null(
        strstr(reports.last, "quern_world_remove_user: 'the tool' is not registered in this world"), "%s",
        reports.last);
    quern_world_destroy(world);
    cr_assert_not_null(strstr(reports.last, "the tool still refers to the world, 2 objects in all"), "%s",
                       reports.last);
    quern_world_remove_user(world, &older);
    quern_world_remove_user(world, &tool);
    quern_world_remove_user(world, &tool);
    cr_assert_not_null(strstr(reports.last, "remove a user once"), "%s", reports.last);
    cr_assert_eq(reports.log_count, 3u);
    quern_world_destroy(world);
    must(quern_world_add_user(second, &tool));
    quern_world_remove_user(second, &tool);
    quern_world_destroy(second);
    cr_assert_eq(reports.log_count, 3u);
}

Test(world_destroy, components_resources_events_and_commands_may_own_users_of_the_world)
{
    quern_resource resource;
    quern_event event;
    const quern_hooks hooks = {.destroy = destroy_owners};
    open_world(NULL);
    resource = make_resource(world, .name = "Owner", .size_bytes = sizeof(Owner), .hooks = hooks);
    event = make_event(world, .name = "Owner", .size_bytes = sizeof(Owner),
                       .alignment_bytes = _Alignof(Owner), .hooks = hooks);
    quern_event_reader
        *keeper; /* events wait as long as a reader has not seen them; owned by the resource */
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = event}, &keeper));
    add_owner(own_all(1));
    add_owner(own_all(2));
    Owner value = own_all(3);
    must(quern_world_emit(world, event, &value, 1));
    value = own_all(4);
    must(quern_commands_set(quern_world_commands(world), setup_entity(world), owner, &value));
    Owner *of_world = quern_resource_get(world, resource);
    *of_world = own_all(5);
    quern_event_reader_destroy(of_world->reader);
    of_world->reader = keeper;
    quern_world_destroy(world);
    cr_assert_eq(destroyed_count, 5u);
}

/* parent chain deeper than the levels of relations, and wider than one archetype */
Test(world_destroy, hooks_see_children_before_parents)
{
    enum { COUNT = 40 };
    quern_entity entities[COUNT];
    for (uint32_t round = 0; round < 2; round++) {
        open_world(NULL);
        const quern_relation parent = quern_world_parent(world);
        for (uint32_t i = 0; i < COUNT; i++) {
            entities[i] = add_owner((Owner){.number = i + 1});
            if (i % 3 == 0) must(quern_entity_add(world, entities[i], tag, NULL));
        }
        for (uint32_t i = 1; i < COUNT; i++)
            must(quern_entity_relate(world, entities[i], parent,
                                     entities[round == 0 ? i - 1 : (i - 1) / 2]));
        quern_world_destroy(world);
        cr_assert_eq(destroyed_count, COUNT);
        uint32_t place[COUNT + 1];
        for (uint32_t i = 0; i < COUNT; i++)
            place[destroyed[i]] = i;
        for (uint32_t i = 1; i < COUNT; i++)
            cr_assert_lt(place[i + 1], place[(round == 0 ? i - 1 : (i - 1) / 2) + 1], "entity %u", i);
    }
}

Test(world_destroy, targets_that_sources_keep_alive_do_not_refuse)
{
    open_world(NULL);
    quern_relation keeps =
        make_relation(world, .name = "keeps", .on_target_destroyed = QUERN_TARGET_REFUSES);
    const quern_entity first = add_owner(own_all(1)), second = add_owner(own_all(2));
    must(quern_entity_relate(world, first, keeps, second));
    quern_world_destroy(world);
    cr_assert_eq(destroyed_count, 2u);
}

static quern_schedule *schedule;
static quern_history *history;
static Owner kept;

static void keep_query(void)
{
    kept.query = make_query(world, .name = "seekers", .terms = {quern_term_with(tag)});
}
static void keep_getter(void)
{
    must(quern_getter_create(world, &(quern_getter_def){.component = tag}, &kept.getter));
}
static void keep_reader(void)
{
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = ping, .name = "ears"},
                                   &kept.reader));
}
static void keep_schedule(void)
{
    must(quern_schedule_create(world, NULL, &schedule));
}
static void keep_history(void)
{
    must(quern_history_create(world, NULL, &history));
}
static void release_kept(void)
{
    quern_history_destroy(history);
    quern_schedule_destroy(schedule);
    quern_query_destroy(kept.query);
    quern_getter_destroy(kept.getter);
    quern_event_reader_destroy(kept.reader);
    kept = (Owner){0};
    history = NULL;
    schedule = NULL;
}

Test(world_destroy, refusals_name_the_object)
{
    static const struct {
        void (*keep)(void);
        const char *words;
    } cases[] = {{keep_query, "query 0, 'seekers' still"},
                 {keep_getter, "a getter of component 'tag' still"},
                 {keep_reader, "reader 1, 'ears', of event 'ping' still"},
                 {keep_schedule, "a schedule (quern_world_list_schedules lists them) still"},
                 {keep_history, "a history still"}};
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (uint32_t with_owner = 0; with_owner < 2; with_owner++) {
            open_world(NULL);
            cases[i].keep();
            const quern_entity entity = with_owner ? add_owner((Owner){.number = 1}) : setup_entity(world);
            const quern_query *query = kept.query;
            capture_reports(&reports);
            quern_world_destroy(world);
            cr_assert_not_null(strstr(reports.last, cases[i].words), "%s", reports.last);
            cr_assert_not_null(strstr(reports.last, "1 objects in all"), "%s", reports.last);
            const bool is_kept = with_owner == 0 || schedule != NULL || history != NULL;
            cr_assert_eq(quern_entity_is_alive(world, entity), is_kept);
            cr_assert_eq(destroyed_count, is_kept ? 0u : 1u);
            assert_valid(world);
            cr_assert_eq(query, kept.query);
            release_kept();
            quern_world_destroy(world);
            cr_assert_eq(destroyed_count, with_owner);
        }
}

/* Without memory for the order, a world that nothing uses ends all the same, and any other is kept. */
Test(world_destroy, ends_without_memory)
{
    for (uint32_t with_user = 0; with_user < 2; with_user++) {
        failing_allocator *memory = failing_allocator_create();
        const quern_allocator allocator = failing_allocator_interface(memory);
        open_world(&allocator);
        add_owner(with_user ? own_all(1) : (Owner){.number = 1});
        failing_allocator_fail_at(memory, 1);
        capture_reports(&reports);
        quern_world_destroy(world);
        failing_allocator_heal(memory);
        cr_assert_eq(destroyed_count, 1 - with_user);
        if (with_user) {
            cr_assert_not_null(strstr(reports.last, "no memory to destroy the entities"), "%s",
                               reports.last);
            quern_world_destroy(world);
            cr_assert_eq(destroyed_count, 1u);
        }
        failing_allocator_close(memory);
    }
}
