/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/names/name_internal.h"
#include "core/world/world_internal.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------- the table */

/* The table of names alone, with distant slots, compared with a plain list. */

enum { SLOT_COUNT = 400, STRIDE = 1021, TEXT_COUNT = 60, PARENT_COUNT = 5 };

typedef struct naive_name {
    bool is_there;
    uint32_t parent;
    char text[QUERN_MAX_ENTITY_NAME_BYTES + 1];
} naive_name;

static failing_allocator *memory;
static quern_allocator allocator;
static quern__names names;
static naive_name wanted[SLOT_COUNT];

static void open_names(void)
{
    memory = failing_allocator_create();
    allocator = failing_allocator_interface(memory);
}

static void close_names(void)
{
    quern__names_release(&names, &allocator);
    failing_allocator_close(memory);
}

TestSuite(names, .init = open_names, .fini = close_names);

static uint32_t find_wanted(uint32_t parent, const char *text)
{
    for (uint32_t i = 0; i < SLOT_COUNT; i++)
        if (wanted[i].is_there && wanted[i].parent == parent && strcmp(wanted[i].text, text) == 0)
            return i * STRIDE;
    return QUERN__SLOT_NONE;
}

static void make_text(uint32_t number, char text[QUERN_MAX_ENTITY_NAME_BYTES + 1])
{
    const int bytes = snprintf(text, QUERN_MAX_ENTITY_NAME_BYTES + 1, "n%u", number);
    if (number % 7 == 0) /* maximal length */
        memset(text + bytes, 'x', (size_t)(QUERN_MAX_ENTITY_NAME_BYTES - bytes));
    if (number % 7 == 0) text[QUERN_MAX_ENTITY_NAME_BYTES] = '\0';
}

static void check_all(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SLOT_COUNT; i++) {
        const quern__name *name = quern__names_of(&names, i * STRIDE);
        cr_assert_eq(name != NULL, wanted[i].is_there, "slot %u", i * STRIDE);
        if (name == NULL) continue;
        cr_assert_str_eq(name->text, wanted[i].text);
        count++;
    }
    cr_assert_eq(names.count, count);
    for (uint32_t parent = 0; parent < PARENT_COUNT; parent++)
        for (uint32_t i = 0; i < TEXT_COUNT; i++) {
            char text[QUERN_MAX_ENTITY_NAME_BYTES + 1];
            make_text(i, text);
            cr_assert_eq(quern__names_find(&names, parent, text, (uint32_t)strlen(text)),
                         find_wanted(parent, text));
        }
}

static void put(uint32_t i, uint32_t parent, const char *text)
{
    if (wanted[i].is_there || find_wanted(parent, text) != QUERN__SLOT_NONE) return;
    while (!quern__names_reserve(&names, &allocator, i * STRIDE))
        check_all();
    quern__names_put(&names, i * STRIDE, parent, text, (uint32_t)strlen(text));
    wanted[i] = (naive_name){.is_there = true, .parent = parent};
    snprintf(wanted[i].text, sizeof wanted[i].text, "%s", text);
}

static void step(random_source *random)
{
    char text[QUERN_MAX_ENTITY_NAME_BYTES + 1];
    const uint32_t i = random_below(random, SLOT_COUNT), parent = random_below(random, PARENT_COUNT);
    make_text(random_below(random, TEXT_COUNT), text);
    const uint32_t kind = random_below(random, 100);
    if (kind < 50) {
        put(i, parent, text);
    } else if (kind < 75) {
        quern__names_drop(&names, i * STRIDE);
        wanted[i].is_there = false;
    } else if (kind < 99) {
        if (wanted[i].is_there && find_wanted(parent, wanted[i].text) != QUERN__SLOT_NONE) return;
        quern__names_move(&names, i * STRIDE, parent);
        if (wanted[i].is_there) wanted[i].parent = parent;
    } else {
        quern__names_trim(&names, &allocator);
    }
}

static void run_program(uint64_t seed)
{
    random_source random = {seed};
    memset(wanted, 0, sizeof wanted);
    for (uint32_t i = 0; i < 4000; i++) {
        step(&random);
        if (i % 100 == 0) check_all();
    }
    check_all();
}

Test(names, random_programs_agree_with_a_list)
{
    for (uint64_t seed = 1; seed < 5; seed++) {
        run_program(seed);
        quern__names_release(&names, &allocator);
    }
}

Test(names, out_of_memory_loses_no_name)
{
    failing_allocator_fail_often(memory, 60, 3);
    for (uint64_t seed = 11; seed < 15; seed++) {
        run_program(seed);
        quern__names_release(&names, &allocator);
    }
    cr_assert_gt(failing_allocator_failed_count(memory), 100u);
}

Test(names, text_of_a_name_never_moves)
{
    put(0, 1, "kept");
    const char *text = quern__names_of(&names, 0)->text;
    for (uint32_t i = 1; i < SLOT_COUNT; i++) {
        char other[16];
        snprintf(other, sizeof other, "other %u", i);
        put(i, 1, other);
    }
    quern__names_move(&names, 0, 2);
    for (uint32_t i = 1; i < SLOT_COUNT; i++)
        quern__names_drop(&names, i * STRIDE);
    quern__names_trim(&names, &allocator);
    cr_assert_eq(quern__names_of(&names, 0)->text, text);
    cr_assert_str_eq(text, "kept");
    cr_assert_eq(quern__names_find(&names, 2, "kept and more", 4), 0u);
}

Test(names, trim_releases_memory_without_names)
{
    put(0, 1, "first");
    quern__names_trim(&names, &allocator);
    const uint64_t for_one = quern__names_held_bytes(&names);
    for (uint32_t i = 1; i < SLOT_COUNT; i++) {
        char other[16];
        snprintf(other, sizeof other, "other %u", i);
        put(i, 1, other);
    }
    cr_assert_gt(quern__names_held_bytes(&names), 2 * for_one);
    for (uint32_t i = 1; i < SLOT_COUNT; i++)
        quern__names_drop(&names, i * STRIDE);
    quern__names_trim(&names, &allocator);
    cr_assert_eq(quern__names_held_bytes(&names), for_one);
    quern__names_drop(&names, 0);
    quern__names_trim(&names, &allocator);
    cr_assert_eq(quern__names_held_bytes(&names), 0u);
    cr_assert_eq(failing_allocator_outstanding_bytes(memory), 0u);
}

Test(names, reserved_put_needs_no_memory)
{
    put(3, 1, "a");
    cr_assert(quern__names_reserve(&names, &allocator, 4 * STRIDE));
    failing_allocator_fail_from(memory, 1);
    for (uint32_t i = 0; i < 3; i++) {
        quern__names_drop(&names, 3 * STRIDE);
        quern__names_put(&names, 3 * STRIDE, 2, "b", 1);
    }
    quern__names_put(&names, 4 * STRIDE, 2, "c", 1);
    cr_assert_eq(quern__names_find(&names, 2, "b", 1), 3u * STRIDE);
    cr_assert_eq(quern__names_find(&names, 2, "c", 1), 4u * STRIDE);
    failing_allocator_heal(memory);
}

/* -------------------------------------------------------------------------------------------- entities */

static quern_relation parent;

static void open_world(void)
{
    world = setup_world();
    parent = quern_world_parent(world);
}

TestSuite(entity_names, .init = open_world, .fini = close_world);

static quern_entity named(const char *name)
{
    const quern_entity entity = setup_entity(world);
    must(quern_entity_set_name(world, entity, name));
    return entity;
}

static quern_entity child(quern_entity target, const char *name)
{
    const quern_entity entity = setup_entity(world);
    must(quern_entity_relate(world, entity, parent, target));
    must(quern_entity_set_name(world, entity, name));
    return entity;
}

static void assert_found(const char *path, quern_entity expected)
{
    cr_assert(quern_entity_equal(quern_entity_find(world, path), expected), "%s", path);
}

static const char *path_of(quern_entity entity)
{
    static char text[4096];
    quern_text_buffer buffer = {text, sizeof text, 0};
    must(quern_entity_get_path(world, entity, quern_sink_text(&buffer)));
    return text;
}

static void assert_message_has(const char *text)
{
    cr_assert_not_null(strstr(quern_error_message(), text), "no \"%s\" in: %s", text,
                       quern_error_message());
}

/* ------------------------------------------------------------------------------------- one entity */

Test(entity_names, name_can_be_set_found_and_removed)
{
    const quern_entity entity = setup_entity(world);
    cr_assert_null(quern_entity_name(world, entity));
    char text[] = "tower";
    must(quern_entity_set_name(world, entity, text));
    text[0] = 'p';
    cr_assert_str_eq(quern_entity_name(world, entity), "tower");
    assert_found("tower", entity);
    assert_found("towe", quern_entity_null());
    assert_found("towers", quern_entity_null());
    must(quern_entity_set_name(world, entity, "gate"));
    assert_found("tower", quern_entity_null());
    assert_found("gate", entity);
    must(quern_entity_set_name(world, entity, ""));
    cr_assert_null(quern_entity_name(world, entity));
    assert_found("gate", quern_entity_null());
    must(quern_entity_set_name(world, entity, NULL));
    assert_valid(world);
}

Test(entity_names, name_can_be_set_again_or_from_its_own_text)
{
    const quern_entity a = named("a"), b = named("b");
    must(quern_entity_set_name(world, a, "a"));
    must(quern_entity_set_name(world, a, quern_entity_name(world, a)));
    must(quern_entity_set_name(
        world, a, quern_entity_name(world, a) + 1)); /* the empty end of its text: removes the name */
    cr_assert_null(quern_entity_name(world, a));
    must(quern_entity_set_name(world, b, "bc"));
    must(quern_entity_set_name(world, b, quern_entity_name(world, b) + 1));
    cr_assert_str_eq(quern_entity_name(world, b), "c");
}

Test(entity_names, names_of_every_length_up_to_the_limit_and_in_utf8)
{
    char text[QUERN_MAX_ENTITY_NAME_BYTES + 2];
    const quern_entity entity = setup_entity(world);
    for (uint32_t bytes = 1; bytes <= QUERN_MAX_ENTITY_NAME_BYTES; bytes++) {
        memset(text, 'n', bytes);
        text[bytes] = '\0';
        must(quern_entity_set_name(world, entity, text));
        assert_found(text, entity);
    }
    assert_valid(world);
    text[QUERN_MAX_ENTITY_NAME_BYTES] = 'n';
    text[QUERN_MAX_ENTITY_NAME_BYTES + 1] = '\0';
    must_refuse(INVALID_ARGUMENT, world, quern_entity_set_name(world, entity, text));
    assert_message_has("63 bytes");
    assert_found(text, quern_entity_null());
    must(quern_entity_set_name(world, entity, "h\xC3\xBClse \xF0\x9F\x8F\xB0"));
    assert_found("h\xC3\xBClse \xF0\x9F\x8F\xB0", entity);
}

Test(entity_names, invalid_names_are_refused)
{
    const quern_entity entity = named("gun");
    static const char *const broken[] = {"\xFF", "a\x80", "\xC3", "\xC0\x80", "\xED\xA0\x80", "ab\xE2\x82"};
    for (uint32_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        must_refuse(INVALID_ARGUMENT, world, quern_entity_set_name(world, entity, broken[i]));
        assert_message_has("UTF-8");
    }
    must_refuse(INVALID_ARGUMENT, world, quern_entity_set_name(world, entity, "a/b"));
    assert_message_has("'/'");
    must_refuse(INVALID_ARGUMENT, world, quern_entity_set_name(world, entity, "/"));
    cr_assert_str_eq(quern_entity_name(world, entity), "gun");
}

Test(entity_names, wrong_arguments_are_refused)
{
    const quern_entity entity = named("a"), dead = setup_entity(world);
    must(quern_entity_destroy(world, dead));
    must_refuse(NULL_ARGUMENT, NULL, quern_entity_set_name(NULL, entity, "b"));
    must_refuse(STALE_ENTITY, world, quern_entity_set_name(world, dead, "b"));
    must_refuse(NULL_ENTITY, world, quern_entity_set_name(world, quern_entity_null(), "b"));
    must_refuse(FOREIGN_ENTITY, world, quern_entity_set_name(world, entity_of_other_world(entity), "b"));
    assert_refused_value(world, quern_entity_name(world, dead));
    assert_refused_value(NULL, quern_entity_name(NULL, entity));
    assert_refused_value(world, quern_entity_find(world, NULL).bits);
    assert_refused_value(NULL, quern_entity_find(NULL, "a").bits);
    assert_refused_value(world, quern_entity_find_child(world, dead, "a").bits);
    assert_refused_value(world, quern_entity_find_child(world, entity, NULL).bits);
    quern_text_buffer buffer = {0};
    must_refuse(STALE_ENTITY, world, quern_entity_get_path(world, dead, quern_sink_text(&buffer)));
    must_refuse(NULL_ARGUMENT, world, quern_entity_get_path(world, entity, quern_sink_text(NULL)));
}

/* ------------------------------------------------------------------------------------------ siblings */

Test(entity_names, siblings_cannot_share_a_name)
{
    const quern_entity arena = named("arena"), other = setup_entity(world);
    must_refuse(SIBLING_NAME_TAKEN, world, quern_entity_set_name(world, other, "arena"));
    assert_message_has("arena");
    const quern_entity tower = child(arena, "tower"), second = setup_entity(world);
    must(quern_entity_relate(world, second, parent, arena));
    must_refuse(SIBLING_NAME_TAKEN, world, quern_entity_set_name(world, second, "tower"));
    must(quern_entity_set_name(world, second, "arena")); /* no sibling has this name */
    must(quern_entity_set_name(world, other, "tower"));
    assert_found("arena/tower", tower);
    assert_found("arena/arena", second);
    assert_found("tower", other);
    assert_valid(world);
}

Test(entity_names, paths_lead_down_from_roots_and_from_parents)
{
    const quern_entity arena = named("arena"), tower = child(arena, "tower"), gun = child(tower, "gun");
    assert_found("arena", arena);
    assert_found("arena/tower", tower);
    assert_found("arena/tower/gun", gun);
    assert_found("arena/gun", quern_entity_null());
    assert_found("tower", quern_entity_null());
    static const char *const nowhere[] = {"",  "/", "/arena", "arena/", "arena//tower", "arena/tower/",
                                          "//"};
    for (uint32_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++)
        assert_found(nowhere[i], quern_entity_null());
    cr_assert(quern_entity_equal(quern_entity_find_child(world, arena, "tower/gun"), gun));
    cr_assert(quern_entity_equal(quern_entity_find_child(world, tower, "gun"), gun));
    cr_assert(quern_entity_is_null(quern_entity_find_child(world, gun, "gun")));
    cr_assert_str_eq(path_of(gun), "arena/tower/gun");
    cr_assert_str_eq(path_of(arena), "arena");
    must(quern_entity_set_name(world, tower, NULL));
    char expected[64];
    snprintf(expected, sizeof expected, "arena/#%u/gun", quern_entity_index(tower));
    cr_assert_str_eq(path_of(gun), expected);
}

Test(entity_names, name_moves_with_its_entity_to_another_parent)
{
    const quern_entity a = named("a"), b = named("b"), gun = child(a, "gun");
    must(quern_entity_relate(world, gun, parent, b));
    assert_found("a/gun", quern_entity_null());
    assert_found("b/gun", gun);
    must(quern_entity_unrelate(world, gun, parent));
    assert_found("gun", gun);
    must(quern_entity_relate(world, gun, parent, a));
    assert_found("a/gun", gun);
    must(quern_entity_relate(world, b, parent, gun));
    assert_found("a/gun/b", b);
    assert_valid(world);
}

Test(entity_names, relating_to_a_parent_where_the_name_is_taken_fails)
{
    const quern_entity a = named("a"), b = named("b"), gun = child(a, "gun"), other = child(b, "gun");
    must_refuse(SIBLING_NAME_TAKEN, world, quern_entity_relate(world, gun, parent, b));
    assert_message_has("gun");
    const quern_entity root = named("gun");
    must_refuse(SIBLING_NAME_TAKEN, world, quern_entity_unrelate(world, gun, parent));
    must_refuse(SIBLING_NAME_TAKEN, world, quern_entity_relate(world, root, parent, a));
    assert_found("a/gun", gun);
    assert_found("b/gun", other);
    assert_found("gun", root);
    must(quern_entity_set_name(world, root, NULL));
    must(quern_entity_relate(world, root, parent, a));
    must(quern_entity_relate(world, gun, parent, a)); /* its current parent */
    assert_valid(world);
}

Test(entity_names, other_relations_do_not_affect_names)
{
    quern_relation likes = make_relation(world, .name = "likes");
    const quern_entity a = named("a"), x = child(a, "x"), b = named("b"), y = child(b, "x");
    must(quern_entity_relate(world, x, likes, b));
    must(quern_entity_relate(world, y, likes, b));
    assert_found("a/x", x);
    assert_found("b/x", y);
    assert_valid(world);
}

Test(entity_names, hierarchy_can_be_registered_later_by_name)
{
    quern_world *late = setup_world();
    const quern_entity a = setup_entity(late), b = setup_entity(late);
    must(quern_entity_set_name(late, a, "a"));
    must(quern_entity_set_name(late, b, "b"));
    quern_relation hierarchy = make_relation(late, .name = "parent", .levels = true, .ordered = true);
    must(quern_entity_relate(late, b, hierarchy, a));
    cr_assert(quern_entity_equal(quern_entity_find(late, "a/b"), b));
    cr_assert(quern_relation_equal(quern_world_parent(late), hierarchy));
    assert_valid(late);
    quern_world_destroy(late);
}

Test(entity_names, deep_paths_are_found)
{
    enum { DEPTH = 1000 };
    quern_entity entity = named("0");
    for (uint32_t i = 1; i < DEPTH; i++) {
        char text[16];
        snprintf(text, sizeof text, "%u", i % 10);
        entity = child(entity, text);
    }
    const char *path = path_of(entity);
    cr_assert_eq(strlen(path), 2u * DEPTH - 1);
    assert_found(path, entity);
}

/* ------------------------------------------------------------------------------------ what knows them */

Test(entity_names, names_affect_the_hash_only_if_there_are_some)
{
    const quern_entity entity = setup_entity(world);
    const uint64_t without = quern_world_hash(world);
    must(quern_entity_set_name(world, entity, "a"));
    const uint64_t with_a = quern_world_hash(world);
    cr_assert_neq(with_a, without);
    must(quern_entity_set_name(world, entity, "b"));
    cr_assert_neq(quern_world_hash(world), with_a);
    must(quern_entity_set_name(world, entity, "a"));
    cr_assert_eq(quern_world_hash(world), with_a);
    must(quern_entity_set_name(world, entity, NULL));
    cr_assert_eq(quern_world_hash(world), without);
}

Test(entity_names, names_are_counted_in_statistics_and_trimmed)
{
    const uint64_t before = stats_of_world(world).held_bytes;
    quern_entity entity = named("a");
    cr_assert_eq(stats_of_world(world).name_count, 1u);
    cr_assert_gt(stats_of_world(world).held_bytes, before);
    must(quern_entity_set_name(world, entity, NULL));
    must(quern_world_trim(world));
    cr_assert_eq(stats_of_world(world).name_count, 0u);
    cr_assert_eq(world->storage.names->blocks.capacity, 0u);
    entity = named("b");
    const char *lent = quern_entity_name(world, entity);
    must(quern_world_trim(world));
    cr_assert_eq(quern_entity_name(world, entity), lent);
    assert_found("b", entity);
}

Test(entity_names, validation_detects_damaged_names)
{
    const quern_entity a = named("a"), b = named("b");
    quern__names *table = world->storage.names;
    quern__name *name = quern__names_at(table, quern__names_number(table, quern_entity_index(a)));
    const quern__name kept = *name;
    name->text[0] = 'b';
    cr_assert_eq(quern_world_validate(world), QUERN_ERROR_CORRUPT);
    *name = kept;
    name->parent = quern_entity_index(b);
    cr_assert_eq(quern_world_validate(world), QUERN_ERROR_CORRUPT);
    *name = kept;
    name->slot = quern_entity_index(b);
    cr_assert_eq(quern_world_validate(world), QUERN_ERROR_CORRUPT);
    *name = kept;
    table->count++;
    cr_assert_eq(quern_world_validate(world), QUERN_ERROR_CORRUPT);
    table->count--;
    assert_valid(world);
}

/* ------------------------------------------------------------------------------------------ destroying */

Test(entity_names, name_is_free_when_its_entity_is_destroyed)
{
    const quern_entity a = named("a"), gun = child(a, "gun");
    (void)gun;
    must(quern_entity_destroy(world, a));
    assert_found("a", quern_entity_null());
    assert_found("a/gun", quern_entity_null());
    cr_assert_eq(stats_of_world(world).name_count, 0u);
    const quern_entity again = setup_entity(world);
    cr_assert_null(quern_entity_name(world, again), "a name stayed with the slot");
    must(quern_entity_set_name(world, again, "a"));
    assert_valid(world);
}

Test(entity_names, bulk_calls_free_names_too)
{
    const quern_component tag = setup_tag(world, "tag");
    quern_entity list[40];
    for (uint32_t i = 0; i < 40; i++) {
        char text[16];
        snprintf(text, sizeof text, "e%u", i);
        list[i] = setup_entity_with(world, &tag, 1);
        must(quern_entity_set_name(world, list[i], text));
    }
    must(quern_entity_destroy_many(world, list, 20));
    cr_assert_eq(stats_of_world(world).name_count, 20u);
    assert_valid(world);
    const quern_term terms[] = {quern_term_with(tag)};
    quern_query *query = setup_query(world, terms, 1);
    must(quern_entity_destroy_matching(query, NULL));
    quern_query_destroy(query);
    cr_assert_eq(stats_of_world(world).name_count, 0u);
    assert_valid(world);
}

Test(entity_names, bulk_unrelate_moves_names_or_changes_nothing)
{
    const quern_component tag = setup_tag(world, "tag");
    const quern_entity a = named("a"), b = named("b"), x = child(a, "x"), y = child(a, "y"),
                       other = child(b, "x");
    must(quern_entity_add(world, x, tag, NULL));
    must(quern_entity_add(world, y, tag, NULL));
    must(quern_entity_add(world, other, tag, NULL));
    const quern_term terms[] = {quern_term_with(tag)};
    quern_query *query = setup_query(world, terms, 1);
    must_refuse(SIBLING_NAME_TAKEN, world,
                quern_entity_remove_matching(query, quern_relation_component(parent), NULL));
    assert_found("a/x", x);
    assert_found("a/y", y);
    assert_found("b/x", other);
    assert_valid(world);
    must(quern_entity_set_name(world, other, "z"));
    must(quern_entity_remove_matching(query, quern_relation_component(parent), NULL));
    assert_found("x", x);
    assert_found("y", y);
    assert_found("z", other);
    assert_valid(world);
}

Test(entity_names, commands_that_destroy_free_names_too)
{
    const quern_entity a = named("a"), b = named("b");
    quern_commands_destroy(quern_world_commands(world), a);
    must(quern_world_flush(world));
    assert_found("a", quern_entity_null());
    assert_found("b", b);
    assert_valid(world);
    cr_assert_null(quern_entity_name(world, setup_entity(world)));
}

/* ------------------------------------------------------------------------------------- out of memory */

Test(entity_names, setting_a_name_without_memory_changes_nothing)
{
    failing_allocator *poor_memory = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(poor_memory)};
    quern_world *poor = NULL;
    must(quern_world_create(&def, &poor));
    uint32_t refused_count = 0;
    for (uint32_t i = 0; i < 200; i++) {
        char text[16];
        snprintf(text, sizeof text, "e%u", i);
        quern_entity entity = setup_entity(poor);
        quern_result result = QUERN_ERROR_OUT_OF_MEMORY;
        for (uint32_t call = 1; result != QUERN_OK; call++) {
            const uint64_t hash = quern_world_hash(poor);
            failing_allocator_fail_at(poor_memory, call);
            result = quern_entity_set_name(poor, entity, text);
            failing_allocator_heal(poor_memory);
            if (result == QUERN_OK) break;
            cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY);
            cr_assert_eq(quern_world_hash(poor), hash);
            assert_valid(poor);
            refused_count++;
        }
    }
    cr_assert_gt(refused_count, 5u);
    quern_world_destroy(poor);
    failing_allocator_close(poor_memory);
}

Test(entity_names, deep_path_takes_memory_only_while_it_is_written)
{
    failing_allocator *poor_memory = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(poor_memory)};
    quern_world *poor = NULL;
    must(quern_world_create(&def, &poor));
    quern_entity entity = setup_entity(poor);
    for (uint32_t i = 0; i < 100; i++) {
        const quern_entity below = setup_entity(poor);
        must(quern_entity_relate(poor, below, quern_world_parent(poor), entity));
        must(quern_entity_set_name(poor, below, "a"));
        entity = below;
    }
    char text[1000];
    quern_text_buffer buffer = {.text = text, .capacity_bytes = sizeof text};
    failing_allocator_fail_at(poor_memory, 1);
    cr_assert_eq(quern_entity_get_path(poor, entity, quern_sink_text(&buffer)), QUERN_ERROR_OUT_OF_MEMORY);
    failing_allocator_heal(poor_memory);
    must(quern_entity_get_path(poor, entity, quern_sink_text(&buffer)));
    cr_assert(strstr(text, "/a/a/a") != NULL, "%s", text);
    quern_world_destroy(poor);
    failing_allocator_close(poor_memory);
}
