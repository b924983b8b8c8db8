/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/archive/reseal.h"
#include "tests/core/archive/scene.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"
#include "tests/support/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sessions: many lists of entities between two worlds, with the types in the first message that needs them. */

enum { UNITS = 50 };

static scene from, to;
static quern_archive *list;
static quern_save_session *saving;
static quern_load_session *loading;
static quern_byte_buffer message;
static quern_entity units[UNITS], loaded[UNITS];

static void open_scenes(void)
{
    scene_open(&from, NULL);
    scene_open(&to, NULL);
    setup_entity(to.world);
    must(quern_archive_create(from.world, &list));
    must(quern_save_session_create(from.world, NULL, &saving));
    must(quern_load_session_create(to.world, NULL, &loading));
    for (uint32_t i = 0; i < UNITS; i++) {
        const scene_place place = {(float)i, 1};
        must(
            quern_entity_create_with(from.world, &from.place, (const void *const[]){&place}, 1, &units[i]));
    }
}

static void close_scenes(void)
{
    quern_save_session_destroy(saving);
    quern_load_session_destroy(loading);
    quern_archive_destroy(list);
    quern_byte_buffer_release(&message);
    scene_close(&to);
    scene_close(&from);
}

TestSuite(archive_session, .init = open_scenes, .fini = close_scenes);

static quern_result write_some(uint32_t first, uint32_t count)
{
    message.size_bytes = 0;
    quern_archive_clear(list);
    must(quern_archive_append(list, &units[first], count));
    return quern_save_session_write(saving, list, quern_sink_bytes(&message));
}

static quern_result read_message(quern_load_report *report)
{
    return quern_load_session_read(loading, quern_source_bytes(message.bytes, message.size_bytes), loaded,
                                   UNITS, report);
}

static void send(uint32_t first, uint32_t count)
{
    must(write_some(first, count));
    must(read_message(NULL));
}

static float x_of(uint32_t i)
{
    const scene_place *place = quern_entity_get(to.world, loaded[i], to.place);
    cr_assert_not_null(place, "%s", quern_error_message());
    return place->x;
}

Test(archive_session, later_messages_have_no_types)
{
    must(write_some(0, 1));
    const size_t first_bytes = message.size_bytes;
    must(read_message(NULL));
    must(write_some(1, 1));
    cr_assert_lt(message.size_bytes + 40, first_bytes);
    must(read_message(NULL));
    cr_assert_eq(x_of(0), 1.0f);
    send(10, 30);
    for (uint32_t i = 0; i < 30; i++)
        cr_assert_eq(x_of(i), 10.0f + (float)i);
    assert_valid(to.world);
}

Test(archive_session, new_types_are_appended)
{
    send(0, 2);
    must(quern_entity_add(from.world, units[2], from.tag, NULL));
    must(quern_entity_add(from.world, units[2], from.health, &(scene_health){.points = 7}));
    must(quern_entity_relate(from.world, units[3], from.parent, units[2]));
    must(quern_entity_set_enabled(from.world, units[2], false));
    must(quern_entity_set_component_enabled(from.world, units[2], from.health, false));
    quern_load_report report;
    must(write_some(2, 2));
    must(read_message(&report));
    cr_assert_eq(report.entity_count, 2u);
    cr_assert(quern_entity_has(to.world, loaded[0], to.tag));
    cr_assert_eq(((const scene_health *)quern_entity_get(to.world, loaded[0], to.health))->points, 7);
    cr_assert(!quern_entity_is_component_enabled(to.world, loaded[0], to.health));
    cr_assert(!quern_entity_is_enabled(to.world, loaded[1]));
    cr_assert(quern_entity_equal(quern_entity_target(to.world, loaded[1], to.parent), loaded[0]));
    send(3, 1);
    cr_assert(quern_entity_is_null(quern_entity_target(to.world, loaded[0], to.parent)));
    send(2, 2);
    cr_assert(quern_entity_equal(quern_entity_target(to.world, loaded[1], to.parent), loaded[0]));
    assert_valid(to.world);
}

/* Names, links and edges of the world must not be in the memory that a session keeps for its messages. */
Test(archive_session, names_links_and_edges_outlive_the_session)
{
    enum { COUNT = 12 };
    quern_entity arrived[3][COUNT];
    char name[16];
    for (uint32_t i = 0; i < COUNT; i++) {
        (void)snprintf(name, sizeof name, "unit %u", i);
        must(quern_entity_set_name(from.world, units[i], name));
        must(quern_entity_relate(from.world, units[i], from.owner, units[(i + 1) % COUNT]));
        if (i > 0) must(quern_entity_relate(from.world, units[i], from.parent, units[(i - 1) / 2]));
        for (uint32_t k = 0; k < COUNT; k++)
            if (k != i) must(quern_entity_relate(from.world, units[i], from.likes, units[k]));
    }
    for (uint32_t round = 0; round < 3; round++) {
        send(0, COUNT);
        memcpy(arrived[round], loaded, sizeof arrived[round]);
        must(quern_entity_set_name(to.world, loaded[0], NULL)); /* another root gets the name */
    }
    quern_load_session_destroy(loading);
    loading = NULL;
    assert_valid(to.world);
    for (uint32_t i = 0; i < 3 * COUNT; i++) {
        const quern_entity *all = arrived[i / COUNT], entity = all[i % COUNT];
        (void)snprintf(name, sizeof name, "unit %u", i % COUNT);
        if (i % COUNT > 0) cr_assert_str_eq(quern_entity_name(to.world, entity), name);
        cr_assert_eq(quern_entity_target(to.world, entity, to.owner).bits, all[(i + 1) % COUNT].bits);
        cr_assert_eq(quern_entity_target_count(to.world, entity, to.likes), COUNT - 1);
        must(quern_entity_set_name(to.world, entity, NULL));
        must(quern_entity_unrelate(to.world, entity, to.likes));
    }
    must(quern_world_trim(to.world));
    assert_valid(to.world);
}

Test(archive_session, empty_list_is_a_message)
{
    quern_load_report report;
    must(write_some(0, 0));
    must(read_message(&report));
    cr_assert_eq(report.entity_count, 0u);
    send(0, 1);
    cr_assert_eq(x_of(0), 0.0f);
}

Test(archive_session, missing_or_repeated_messages_are_rejected)
{
    must(write_some(0, 1));
    quern_byte_buffer first = message;
    message = (quern_byte_buffer){0};
    must(quern_entity_add(from.world, units[1], from.tag, NULL));
    must(write_some(1, 1));
    must_refuse(BAD_ARCHIVE, to.world, read_message(NULL));
    const quern_source source = quern_source_bytes(first.bytes, first.size_bytes);
    must_refuse(BAD_ARCHIVE, to.world, quern_world_load(to.world, source, NULL, NULL));
    must(quern_load_session_read(loading, source, NULL, 0, NULL));
    must_refuse(BAD_ARCHIVE, to.world, quern_load_session_read(loading, source, NULL, 0, NULL));
    must(read_message(NULL));
    cr_assert_eq(x_of(0), 1.0f);
    message.size_bytes = 0;
    must(quern_archive_save(list, quern_sink_bytes(&message), NULL));
    must_refuse(BAD_ARCHIVE, to.world, read_message(NULL));
    quern_byte_buffer_release(&first);
}

enum { MESSAGES = 5 };

/* Writes messages of a session with so many entities each: the first describes the only type. */
static void write_messages(quern_save_session *session, const uint32_t counts[MESSAGES],
                           quern_byte_buffer out[MESSAGES])
{
    for (uint32_t i = 0; i < MESSAGES; i++) {
        quern_archive_clear(list);
        must(quern_archive_append(list, units, counts[i]));
        out[i] = (quern_byte_buffer){0};
        must(quern_save_session_write(session, list, quern_sink_bytes(&out[i])));
    }
}

static quern_source source_of(const quern_byte_buffer *bytes)
{
    return quern_source_bytes(bytes->bytes, bytes->size_bytes);
}

static void refuse(const quern_byte_buffer *bytes, const char *words)
{
    must_refuse(BAD_ARCHIVE, to.world, quern_load_session_read(loading, source_of(bytes), NULL, 0, NULL));
    cr_assert_not_null(strstr(quern_error_message(), words), "%s", quern_error_message());
}

/* Every message but the next one is refused, also after messages that change no type, and without entities. */
Test(archive_session, each_message_is_read_once_and_in_order)
{
    quern_byte_buffer messages[MESSAGES];
    char words[80];
    write_messages(saving, (const uint32_t[MESSAGES]){0, 1, 2, 2, 0}, messages);
    for (uint32_t next = 0; next < MESSAGES; next++) {
        for (uint32_t i = 0; i < MESSAGES; i++) {
            if (i == next) continue;
            (void)snprintf(words, sizeof words,
                           "message %u of a session came, but the session expects message %u", i + 1,
                           next + 1);
            refuse(&messages[i], words);
        }
        quern_byte_buffer half = messages[next];
        half.size_bytes /= 2;
        refuse(&half, "truncated");
        must(quern_load_session_read(loading, source_of(&messages[next]), NULL, 0, NULL));
    }
    refuse(&messages[MESSAGES - 1], "message 5 of a session came, but the session expects message 6");
    cr_assert_eq(quern_world_list_entities(to.world, NULL, 0), 1u + 5u);
    for (uint32_t i = 0; i < MESSAGES; i++)
        quern_byte_buffer_release(&messages[i]);
}

Test(archive_session, messages_of_two_sessions_are_not_mixed)
{
    quern_byte_buffer messages[MESSAGES], others[MESSAGES];
    quern_save_session *other;
    must(quern_save_session_create(from.world, NULL, &other));
    write_messages(saving, (const uint32_t[MESSAGES]){0, 1, 2, 2, 0}, messages);
    write_messages(other, (const uint32_t[MESSAGES]){0, 2, 2, 2, 0}, others);
    must(quern_load_session_read(loading, source_of(&messages[0]), NULL, 0, NULL));
    must(quern_load_session_read(loading, source_of(&messages[1]), NULL, 0, NULL));
    for (uint32_t i = 2; i < MESSAGES; i++)
        refuse(&others[i], i == 2 ? "message 3 of another session" : "expects message 3");
    for (uint32_t i = 2; i < MESSAGES; i++)
        must(quern_load_session_read(loading, source_of(&messages[i]), NULL, 0, NULL));
    for (uint32_t i = 0; i < MESSAGES; i++) {
        quern_byte_buffer_release(&messages[i]);
        quern_byte_buffer_release(&others[i]);
    }
    quern_save_session_destroy(other);
}

/* The checksum covers all blocks of a message, not only the last. */
Test(archive_session, sessions_differ_by_any_block)
{
    enum { MANY = 30000 };
    static quern_entity many[MANY];
    quern_byte_buffer mine[2] = {{0}}, others[2] = {{0}};
    quern_save_session *other;
    must(quern_save_session_create(from.world, NULL, &other));
    must(quern_entity_create_many(from.world, &from.place, NULL, 1, MANY, many));
    quern_archive_clear(list);
    must(quern_archive_append(list, many, MANY));
    must(quern_save_session_write(saving, list, quern_sink_bytes(&mine[0])));
    ((scene_place *)quern_entity_get(from.world, many[0], from.place))->x = 3;
    must(quern_save_session_write(other, list, quern_sink_bytes(&others[0])));
    cr_assert_gt(mine[0].size_bytes, 2 * QUERN__ARCHIVE_BLOCK_BYTES);
    must(quern_save_session_write(saving, list, quern_sink_bytes(&mine[1])));
    must(quern_save_session_write(other, list, quern_sink_bytes(&others[1])));
    must(quern_load_session_read(loading, source_of(&mine[0]), NULL, 0, NULL));
    refuse(&others[1], "message 2 of another session");
    must(quern_load_session_read(loading, source_of(&mine[1]), NULL, 0, NULL));
    for (uint32_t i = 0; i < 2; i++) {
        quern_byte_buffer_release(&mine[i]);
        quern_byte_buffer_release(&others[i]);
    }
    quern_save_session_destroy(other);
}

Test(archive_session, messages_are_no_archives)
{
    must(write_some(0, 1));
    must_refuse(BAD_ARCHIVE, to.world, quern_world_load(to.world, source_of(&message), NULL, NULL));
    must(read_message(NULL));
    must(write_some(0, 1));
    must_refuse(BAD_ARCHIVE, to.world, quern_world_load(to.world, source_of(&message), NULL, NULL));
}

static bool reject(void *user_data, const char *text, size_t bytes)
{
    return bytes == 0;
}

/* A message that did not reach the sink does not count: the next one has its types. */
Test(archive_session, failed_messages_do_not_count)
{
    quern_archive_clear(list);
    must(quern_archive_append(list, units, 1));
    cr_assert_eq(quern_save_session_write(saving, list, (quern_sink){.write = reject}), QUERN_ERROR_IO);
    must(quern_archive_append(list, &units[1], 1));
    must(quern_entity_destroy(from.world, units[1]));
    message.size_bytes = 0;
    cr_assert_eq(quern_save_session_write(saving, list, quern_sink_bytes(&message)),
                 QUERN_ERROR_STALE_ENTITY);
    cr_assert_eq(message.size_bytes, 0u);
    send(2, 1);
    cr_assert_eq(x_of(0), 2.0f);
    quern_archive_clear(list);
    must(quern_archive_append(list, units, 1));
    cr_assert_eq(quern_save_session_write(saving, list, (quern_sink){.write = reject}), QUERN_ERROR_IO);
    send(3, 1);
    cr_assert_eq(x_of(0), 3.0f);
}

Test(archive_session, types_of_a_failed_message_are_read_again)
{
    quern_load_session *strict;
    scene other;
    must(quern_world_create(NULL, &other.world));
    must(quern_load_session_create(other.world, NULL, &strict));
    must(write_some(0, 1));
    const quern_source source = quern_source_bytes(message.bytes, message.size_bytes);
    quern_load_report report;
    cr_assert_eq(quern_load_session_read(strict, source, NULL, 0, &report), QUERN_ERROR_UNKNOWN_COMPONENT);
    cr_assert_eq(report.missing_count, 1u);
    must(QUERN_COMPONENT_REGISTER_FIELDS(other.world, &other.place, scene_place, x, y));
    must(quern_load_session_read(strict, source, NULL, 0, NULL));
    quern_load_session_destroy(strict);
    quern_world_destroy(other.world);
}

/* ------------------------------------------------------------------------------- outside and extra */

static quern_entity outside_of[8];

static uint64_t id_of(void *user_data, quern_entity entity)
{
    uint32_t *count = user_data;
    ++*count;
    for (uint32_t i = 0; i < 8; i++)
        if (quern_entity_equal(entity, units[40 + i])) return i < 6 ? 1000 + i : 0;
    return 0;
}

static quern_entity entity_of(void *user_data, uint64_t id)
{
    uint32_t *count = user_data;
    ++*count;
    cr_assert(id >= 1000 && id < 1006);
    return outside_of[id - 1000];
}

static quern_entity aim_at(const scene *world, quern_entity entity, uint32_t which)
{
    const scene_aim *aim = quern_entity_get(world->world, entity, world->aim);
    return which == 0 ? aim->at : aim->last[which - 1];
}

Test(archive_session, handles_outside_of_the_list_are_translated_by_ids)
{
    uint32_t saved_count = 0, loaded_count = 0;
    quern_save_session *with_ids;
    quern_load_session *with_entities;
    for (uint32_t i = 0; i < 8; i++)
        outside_of[i] = setup_entity(to.world);
    must(quern_entity_destroy(to.world, outside_of[2]));
    must(quern_save_session_create(
        from.world, &(quern_save_def){.outside_id = id_of, .user_data = &saved_count}, &with_ids));
    must(quern_load_session_create(
        to.world, &(quern_load_def){.outside_entity = entity_of, .user_data = &loaded_count},
        &with_entities));
    const scene_aim aims[] = {{units[1], {units[40], units[41]}, 0},
                              {units[40], {units[42], units[47]}, 1},
                              {units[0], {entity_of_other_world(units[3]), {0}}, 2}};
    for (uint32_t i = 0; i < 3; i++)
        must(quern_entity_add(from.world, units[i], from.aim, &aims[i]));
    for (uint32_t round = 0; round < 2; round++) {
        message.size_bytes = 0;
        quern_archive_clear(list);
        must(quern_archive_append(list, units, 3));
        must(quern_save_session_write(with_ids, list, quern_sink_bytes(&message)));
        must(quern_load_session_read(with_entities, quern_source_bytes(message.bytes, message.size_bytes),
                                     loaded, UNITS, NULL));
        cr_assert(quern_entity_equal(aim_at(&to, loaded[0], 0), loaded[1]));
        cr_assert(quern_entity_equal(aim_at(&to, loaded[0], 1), outside_of[0]));
        cr_assert(quern_entity_equal(aim_at(&to, loaded[0], 2), outside_of[1]));
        cr_assert(quern_entity_equal(aim_at(&to, loaded[1], 0), outside_of[0]));
        cr_assert(quern_entity_is_null(aim_at(&to, loaded[1], 1)), "its entity is dead");
        cr_assert(quern_entity_is_null(aim_at(&to, loaded[1], 2)), "it has no id");
        cr_assert(quern_entity_equal(aim_at(&to, loaded[2], 0), loaded[0]));
        cr_assert(quern_entity_is_null(aim_at(&to, loaded[2], 1)));
    }
    cr_assert_eq(saved_count, 2 * 4u);
    cr_assert_eq(loaded_count, 2 * 3u);
    message.size_bytes = 0;
    const quern_save_def def = {.outside_id = id_of, .user_data = &saved_count};
    must(quern_archive_save(list, quern_sink_bytes(&message), &def));
    must(quern_world_load(to.world, quern_source_bytes(message.bytes, message.size_bytes),
                          &(quern_load_def){.entities = loaded, .entity_capacity = UNITS}, NULL));
    cr_assert(quern_entity_equal(aim_at(&to, loaded[0], 0), loaded[1]));
    cr_assert(quern_entity_is_null(aim_at(&to, loaded[0], 1)), "without callback the handle is null");
    quern_save_session_destroy(with_ids);
    quern_load_session_destroy(with_entities);
    assert_valid(to.world);
}

/* The parent is in another message, or known by an id. A disabled child whose own state is enabled arrives enabled. */
Test(archive_session, an_entity_disabled_through_a_parent_outside_of_the_list_is_enabled)
{
    uint32_t count = 0;
    quern_save_session *with_ids;
    quern_load_session *with_entities;
    outside_of[0] = setup_entity(to.world);
    must(quern_save_session_create(from.world, &(quern_save_def){.outside_id = id_of, .user_data = &count},
                                   &with_ids));
    must(quern_load_session_create(
        to.world, &(quern_load_def){.outside_entity = entity_of, .user_data = &count}, &with_entities));
    for (uint32_t i = 0; i < 2; i++)
        must(quern_entity_relate(from.world, units[i], from.parent, i == 0 ? units[40] : units[0]));
    must(quern_entity_relate(from.world, units[2], from.parent, units[1]));
    must(quern_entity_set_enabled(from.world, units[2], false));
    must(quern_entity_set_enabled(from.world, units[40], false));
    must(quern_entity_set_enabled(to.world, outside_of[0], false));
    for (uint32_t round = 0; round < 2; round++) {
        message.size_bytes = 0;
        quern_archive_clear(list);
        must(quern_archive_append(list, units, 3));
        must(quern_save_session_write(round == 0 ? saving : with_ids, list, quern_sink_bytes(&message)));
        must(quern_load_session_read(round == 0 ? loading : with_entities,
                                     quern_source_bytes(message.bytes, message.size_bytes), loaded, UNITS,
                                     NULL));
        for (uint32_t i = 0; i < 3; i++)
            cr_assert_eq(quern_entity_is_enabled(to.world, loaded[i]), i < 2, "entity %u", i);
        cr_assert_eq(quern_entity_target(to.world, loaded[0], to.parent).bits,
                     round == 0 ? 0 : outside_of[0].bits);
        assert_valid(to.world);
    }
    must(quern_entity_set_enabled(to.world, outside_of[0], true));
    for (uint32_t i = 0; i < 3; i++)
        cr_assert_eq(quern_entity_is_enabled(to.world, loaded[i]), i < 2, "entity %u", i);
    quern_save_session_destroy(with_ids);
    quern_load_session_destroy(with_entities);
}

Test(archive_session, ids_are_for_lists_only)
{
    const quern_save_def def = {.outside_id = id_of};
    must_refuse(INVALID_ARGUMENT, from.world,
                quern_world_save(from.world, quern_sink_bytes(&message), &def));
}

Test(archive_session, loaded_entities_get_extra_components)
{
    const scene_health health = {.points = 9};
    quern_load_session *ghosts;
    must(quern_load_session_create(
        to.world,
        &(quern_load_def){.extra = {to.tag, to.health, to.place}, .extra_values = {NULL, &health, NULL}},
        &ghosts));
    must(quern_entity_add(from.world, units[1], from.tag, NULL));
    must(quern_entity_add(from.world, units[1], from.health, NULL));
    must(quern_entity_set_component_enabled(from.world, units[1], from.health, false));
    must(write_some(0, 3));
    must(quern_load_session_read(ghosts, quern_source_bytes(message.bytes, message.size_bytes), loaded,
                                 UNITS, NULL));
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert(quern_entity_has(to.world, loaded[i], to.tag));
        cr_assert(quern_entity_is_component_enabled(to.world, loaded[i], to.health));
        cr_assert_eq(((const scene_health *)quern_entity_get(to.world, loaded[i], to.health))->points, 9);
        cr_assert_eq(x_of(i), 0.0f, "the archived value is replaced");
    }
    assert_valid(to.world);
    quern_load_session_destroy(ghosts);
    const quern_load_def def = {.extra = {to.tag}};
    message.size_bytes = 0;
    must(quern_archive_save(list, quern_sink_bytes(&message), NULL));
    must(quern_world_load(to.world, quern_source_bytes(message.bytes, message.size_bytes), &def, NULL));
    assert_valid(to.world);
}

Test(archive_session, wrong_extra_components_are_rejected)
{
    const quern_load_def twice = {.extra = {to.tag, to.tag}};
    const quern_load_def relation = {.extra = {quern_relation_component(to.owner)}};
    const quern_load_def disabled = {.extra = {quern_world_disabled_tag(to.world)}};
    const quern_load_def unknown = {.extra = {from.tag}};
    const scene_aim aim = {.at = entity_provisional(1)};
    const quern_load_def provisional = {.extra = {to.aim}, .extra_values = {&aim}};
    quern_load_session *session;
    must_refuse(DUPLICATE_COMPONENT, to.world, quern_load_session_create(to.world, &twice, &session));
    must_refuse(INVALID_ARGUMENT, to.world, quern_load_session_create(to.world, &relation, &session));
    must_refuse(INVALID_ARGUMENT, to.world, quern_load_session_create(to.world, &disabled, &session));
    must_refuse(UNKNOWN_COMPONENT, to.world, quern_load_session_create(to.world, &unknown, &session));
    must_refuse(PROVISIONAL_ENTITY, to.world, quern_load_session_create(to.world, &provisional, &session));
}

Test(archive_session, wrong_calls_are_rejected)
{
    quern_load_session *session;
    quern_save_session *other;
    quern_entity entities[1];
    const quern_load_def with_entities = {.entities = entities, .entity_capacity = 1};
    must_refuse(INVALID_ARGUMENT, to.world, quern_load_session_create(to.world, &with_entities, &session));
    must_refuse(NULL_ARGUMENT, to.world, quern_load_session_create(NULL, NULL, &session));
    must_refuse(NULL_ARGUMENT, to.world, quern_load_session_create(to.world, NULL, NULL));
    must_refuse(NULL_ARGUMENT, to.world, quern_save_session_create(NULL, NULL, &other));
    must_refuse(NULL_ARGUMENT, to.world, quern_save_session_create(from.world, NULL, NULL));
    must(quern_save_session_create(to.world, NULL, &other));
    must_refuse(INVALID_ARGUMENT, to.world,
                quern_save_session_write(other, list, quern_sink_bytes(&message)));
    must_refuse(NULL_ARGUMENT, to.world, quern_save_session_write(other, NULL, quern_sink_bytes(&message)));
    must_refuse(NULL_ARGUMENT, to.world, quern_save_session_write(NULL, list, quern_sink_bytes(&message)));
    must_refuse(NULL_ARGUMENT, to.world, quern_save_session_write(other, list, (quern_sink){0}));
    must_refuse(NULL_ARGUMENT, to.world,
                quern_load_session_read(NULL, quern_source_bytes("", 0), NULL, 0, NULL));
    must_refuse(NULL_ARGUMENT, to.world,
                quern_load_session_read(loading, quern_source_bytes("", 0), NULL, 1, NULL));
    quern_save_session_destroy(other);
    quern_save_session_destroy(NULL);
    quern_load_session_destroy(NULL);
}

/* ------------------------------------------------------------------------------------- the program */

/* Moves random entities between two worlds for a while; each keeps its values. */
Test(archive_session, migrating_entities_keep_their_values)
{
    random_source random = {11};
    scene worlds[2];
    quern_archive *lists[2];
    quern_save_session *out[2];
    quern_load_session *in[2];
    quern_entity at[200];
    uint32_t world_of[200];
    for (uint32_t w = 0; w < 2; w++) {
        scene_open(&worlds[w], NULL);
        must(quern_archive_create(worlds[w].world, &lists[w]));
        must(quern_save_session_create(worlds[w].world, NULL, &out[w]));
    }
    for (uint32_t w = 0; w < 2; w++)
        must(quern_load_session_create(worlds[w].world, NULL, &in[w]));
    for (uint32_t i = 0; i < 200; i++) {
        const scene *it = &worlds[world_of[i] = i % 2];
        at[i] =
            setup_entity_with(it->world, (quern_component[]){it->place, it->raw, it->health}, 1 + i % 3);
        must(quern_entity_set(it->world, at[i], it->place, &(scene_place){(float)i, 0}));
    }
    for (uint32_t round = 0; round < 60; round++) {
        const uint32_t w = round % 2;
        quern_entity arrived[200], gone[200];
        uint32_t moved[200], count = 0;
        quern_archive_clear(lists[w]);
        for (uint32_t i = 0; i < 200; i++)
            if (world_of[i] == w && random_below(&random, 4) == 0) {
                gone[count] = at[i];
                moved[count++] = i;
            }
        must(quern_archive_append(lists[w], gone, count));
        message.size_bytes = 0;
        must(quern_save_session_write(out[w], lists[w], quern_sink_bytes(&message)));
        must(quern_entity_destroy_many(worlds[w].world, gone, count));
        must(quern_load_session_read(in[!w], quern_source_bytes(message.bytes, message.size_bytes), arrived,
                                     200, NULL));
        for (uint32_t k = 0; k < count; k++) {
            at[moved[k]] = arrived[k];
            world_of[moved[k]] = !w;
        }
    }
    for (uint32_t i = 0; i < 200; i++) {
        const scene *it = &worlds[world_of[i]];
        cr_assert_eq(((const scene_place *)quern_entity_get(it->world, at[i], it->place))->x, (float)i);
        cr_assert_eq(quern_entity_has(it->world, at[i], it->health), i % 3 == 2);
    }
    for (uint32_t w = 0; w < 2; w++) {
        assert_valid(worlds[w].world);
        quern_archive_destroy(lists[w]);
        quern_save_session_destroy(out[w]);
        quern_load_session_destroy(in[w]);
        scene_close(&worlds[w]);
    }
}

/* ----------------------------------------------------------------------------------------- damage */

/* Damaged messages change neither the world nor the session. */
Test(archive_session, damaged_messages_are_rejected_or_give_a_valid_world, .timeout = 300)
{
    send(0, 2);
    must(quern_entity_add(from.world, units[2], from.aim, &(scene_aim){.at = units[2]}));
    must(write_some(2, 2));
    for (size_t size = 0; size < message.size_bytes; size++)
        cr_assert_eq(
            quern_load_session_read(loading, quern_source_bytes(message.bytes, size), NULL, 0, NULL),
            QUERN_ERROR_BAD_ARCHIVE);
    char *bytes = malloc(message.size_bytes + 1);
    for (size_t i = 0; i < message.size_bytes; i++) {
        memcpy(bytes, message.bytes, message.size_bytes);
        bytes[i] = (char)(bytes[i] ^ (i % 2 == 0 ? 1 : 0x80));
        reseal(bytes, message.size_bytes);
        quern_load_session *session;
        must(quern_load_session_create(to.world, NULL, &session));
        (void)quern_load_session_read(session, quern_source_bytes(bytes, message.size_bytes), NULL, 0,
                                      NULL);
        quern_load_session_destroy(session);
        const uint64_t hash = quern_world_hash(to.world);
        if (quern_load_session_read(loading, quern_source_bytes(bytes, message.size_bytes), NULL, 0,
                                    NULL) != QUERN_OK) {
            cr_assert_eq(quern_world_hash(to.world), hash);
            continue;
        }
        /* accepted: a session that has read the types of the message begins anew */
        quern_load_session_destroy(loading);
        must(quern_load_session_create(to.world, NULL, &loading));
        quern_save_session_destroy(saving);
        must(quern_save_session_create(from.world, NULL, &saving));
        send(0, 2);
        must(write_some(2, 2));
    }
    assert_valid(to.world);
    must(read_message(NULL));
    free(bytes);
}

/* Lets each allocation of a message fail in turn. extra_count: entities in the message besides one with handles. */
static void fail_each_allocation(uint32_t extra_count)
{
    enum { MOST = 4000 };
    static quern_entity extra[MOST];
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    uint32_t count = 0;
    bool has_succeeded = false;
    for (uint64_t call = 1; !has_succeeded; call++) {
        scene world;
        quern_archive *of;
        quern_save_session *out;
        quern_load_session *in;
        quern_byte_buffer bytes = {0};
        scene_open(&world, &allocator);
        scene_fill(&world, 3);
        const quern_entity entity =
            setup_entity_with(world.world, (quern_component[]){world.aim, world.health}, 2);
        const quern_entity other = setup_entity_with(world.world, &world.place, 1);
        ((scene_aim *)quern_entity_get(world.world, entity, world.aim))->at = other;
        must(quern_archive_create(world.world, &of));
        must(quern_archive_append(of, &entity, 1));
        must(quern_entity_create_many(world.world, &world.place, NULL, 1, extra_count, extra));
        must(quern_archive_append(of, extra, extra_count));
        must(quern_save_session_create(world.world,
                                       &(quern_save_def){.outside_id = id_of, .user_data = &count}, &out));
        must(quern_load_session_create(
            world.world, &(quern_load_def){.outside_entity = entity_of, .user_data = &count}, &in));
        const uint64_t hash = quern_world_hash(world.world);
        failing_allocator_fail_at(memory, call);
        quern_result result = quern_save_session_write(out, of, quern_sink_bytes(&bytes));
        if (result == QUERN_OK)
            result = quern_load_session_read(in, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, 0,
                                             NULL);
        failing_allocator_heal(memory);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        if (result != QUERN_OK) cr_assert_eq(quern_world_hash(world.world), hash);
        has_succeeded = result == QUERN_OK;
        if (result != QUERN_OK) {
            bytes.size_bytes = 0;
            quern_save_session *again;
            must(quern_save_session_create(world.world, NULL, &again));
            must(quern_save_session_write(again, of, quern_sink_bytes(&bytes)));
            must(quern_load_session_read(in, quern_source_bytes(bytes.bytes, bytes.size_bytes), NULL, 0,
                                         NULL));
            quern_save_session_destroy(again);
        }
        assert_valid(world.world);
        quern_byte_buffer_release(&bytes);
        quern_save_session_destroy(out);
        quern_load_session_destroy(in);
        quern_archive_destroy(of);
        scene_close(&world);
    }
    failing_allocator_close(memory);
}

Test(archive_session, every_failed_allocation_changes_nothing)
{
    fail_each_allocation(0);
}

/* Large messages do not fit into the memory that sessions keep. */
Test(archive_session, every_failed_allocation_of_a_large_message_changes_nothing)
{
    fail_each_allocation(4000);
}

Test(archive_session, creating_a_session_needs_memory)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    scene world;
    scene_open(&world, &allocator);
    uint32_t done_count = 0;
    for (uint64_t call = 1; done_count < 2; call++) {
        quern_save_session *out = NULL;
        quern_load_session *in = NULL;
        failing_allocator_fail_at(memory, call);
        const quern_result saves = quern_save_session_create(world.world, NULL, &out);
        const quern_result loads = quern_load_session_create(world.world, NULL, &in);
        failing_allocator_heal(memory);
        cr_assert(saves == QUERN_OK || (saves == QUERN_ERROR_OUT_OF_MEMORY && out == NULL));
        cr_assert(loads == QUERN_OK || (loads == QUERN_ERROR_OUT_OF_MEMORY && in == NULL));
        done_count = (uint32_t)(saves == QUERN_OK) + (uint32_t)(loads == QUERN_OK);
        quern_save_session_destroy(out);
        quern_load_session_destroy(in);
    }
    scene_close(&world);
    failing_allocator_close(memory);
}
