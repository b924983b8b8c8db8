/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

#include "core/base/base_internal.h"
#include "core/query/query_internal.h"
#include "core/storage/entity.h"
#include "core/world/world_internal.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <stdlib.h>
#include <string.h>

/* Lists of a world's components, resources, events, relations and entities. */

static void open_world(void)
{
    world = setup_world();
}

TestSuite(list, .init = open_world, .fini = close_world);

static void construct(void *values, uint32_t count, void *user_data)
{
    memset(values, 1, count * sizeof(vec3));
}

static quern_type_info info_of(quern_component component)
{
    quern_type_info info;
    must(quern_component_get_info(world, component, &info));
    return info;
}

static quern_type_info type_at(quern_type_kind kind, uint32_t index)
{
    quern_type_info info;
    must(quern_type_at(world, kind, index, &info));
    return info;
}

Test(list, component_info_equals_the_definition)
{
    quern_component position = make_component(
        world, QUERN_TYPE(vec3), .fields = QUERN_FIELDS(vec3, x, y, z), .hooks = {.construct = construct},
        .can_disable = true, .row_changes = true, .is_hidden = true);
    const quern_component tag = setup_tag(world, "tag");
    cr_assert_eq(quern_type_count(world, QUERN_TYPE_COMPONENT), 2u);
    cr_assert(quern_component_equal(type_at(QUERN_TYPE_COMPONENT, 0).component, position));
    cr_assert(quern_component_equal(type_at(QUERN_TYPE_COMPONENT, 1).component, tag));
    quern_type_info info = info_of(position);
    cr_assert_str_eq(info.name, "vec3");
    cr_assert_str_eq(info.type_name, "vec3");
    cr_assert(info.size_bytes == 12 && info.alignment_bytes == 4 && info.field_count == 3);
    cr_assert_str_eq(info.fields[2].name, "z");
    cr_assert(info.hooks.construct == construct && info.hooks.destroy == NULL);
    cr_assert(info.can_disable && info.row_changes && info.is_hidden && !info.is_managed &&
              !info.is_relation);
    info = info_of(tag);
    cr_assert(info.size_bytes == 0 && info.field_count == 0 && info.type_name[0] == '\0');
    cr_assert(!info.can_disable && !info.row_changes && !info.is_hidden);
}

Test(list, flags_are_listed_and_found_in_types)
{
    static const char *const lists[] = {"disabled", NULL, NULL};
    static const char *const names[] = {"can_disable", "row_changes", "is_hidden"};
    quern_component with[3];
    with[0] = make_component(world, .name = "a", .can_disable = true);
    with[1] = make_component(world, .name = "b", .row_changes = true);
    with[2] = make_component(world, .name = "c", .is_hidden = true);
    cr_assert_eq(quern_component_flag_count(), 3u);
    for (uint32_t i = 0; i < quern_component_flag_count(); i++) {
        quern_flag_info flag;
        must(quern_component_flag_get_info(i, &flag));
        cr_assert_str_eq(flag.name, names[i]);
        cr_assert(flag.with != NULL && flag.without != NULL);
        for (uint32_t k = 0; k < 3; k++) {
            const quern_type_info info = info_of(with[k]);
            cr_assert_eq(quern_type_has_flag(&info, &flag), i == k, "flag %u of type %u", i, k);
        }
        cr_assert((flag.list_name != NULL) == (lists[i] != NULL));
        cr_assert((flag.list_name != NULL) == (flag.is_listed != NULL && flag.list != NULL));
        if (flag.list_name != NULL) cr_assert_str_eq(flag.list_name, lists[i]);
    }
}

Test(list, flag_index_out_of_range_is_refused)
{
    quern_flag_info flag;
    cr_assert_eq(quern_component_flag_get_info(3, &flag), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_str_eq(
        quern_error_message(),
        "quern_component_flag_get_info: index 3 is out of range: component types have 3 flags");
    cr_assert_eq(quern_component_flag_get_info(0, NULL), QUERN_ERROR_NULL_ARGUMENT);
}

/* is_listed reports the state that the command of `list` has set. */
Test(list, flags_with_a_list_read_and_change_the_state_of_an_entity)
{
    quern_component toggle;
    quern_flag_info flag;
    toggle = make_component(world, .name = "toggle", .can_disable = true);
    const quern_entity entity = setup_entity(world);
    must(quern_entity_add(world, entity, toggle, NULL));
    for (uint32_t i = 0; i < quern_component_flag_count(); i++) {
        must(quern_component_flag_get_info(i, &flag));
        if (flag.list_name == NULL) continue;
        cr_assert_not(flag.is_listed(world, entity, toggle));
        must(flag.list(quern_world_commands(world), entity, toggle));
        must(quern_world_flush(world));
        cr_assert(flag.is_listed(world, entity, toggle));
    }
    cr_assert_not(quern_entity_is_component_enabled(world, entity, toggle));
}

Test(list, managed_components_are_reported_as_managed)
{
    const quern_relation parent = quern_world_parent(world);
    const quern_component disabled = quern_world_disabled_tag(world);
    quern_type_info info = info_of(quern_relation_component(parent));
    cr_assert(info.is_relation && info.is_managed && !info.is_hidden);
    cr_assert_str_eq(info.fields[0].name, "target");
    info = type_at(QUERN_TYPE_COMPONENT, 1);
    cr_assert(!info.is_relation && info.is_managed && info.is_hidden, "the tag of a level");
    info = info_of(disabled);
    cr_assert(!info.is_managed && !info.is_hidden);
    info = type_at(QUERN_TYPE_COMPONENT, quern_type_count(world, QUERN_TYPE_COMPONENT) - 1);
    cr_assert(info.is_managed && info.is_hidden, "disabled by parent");
}

Test(list, resources_events_and_relations)
{
    quern_resource score;
    quern_event hit;
    quern_relation owner, again;
    quern_type_info info;
    quern_relation_def def;
    cr_assert_eq(quern_type_count(world, QUERN_TYPE_EVENT), 0u);
    score = make_resource(world, .name = "score", .size_bytes = 8, .is_hidden = true);
    must(QUERN_EVENT_REGISTER_FIELDS(world, &hit, vec3, x));
    owner =
        make_relation(world, .name = "owner", .on_target_destroyed = QUERN_TARGET_REFUSES, .ordered = true);
    cr_assert(quern_type_count(world, QUERN_TYPE_RESOURCE) == 1 &&
              quern_type_count(world, QUERN_TYPE_EVENT) == 1 &&
              quern_type_count(world, QUERN_TYPE_RELATION) == 1);
    info = type_at(QUERN_TYPE_RESOURCE, 0);
    cr_assert_eq(info.resource.bits, score.bits);
    cr_assert(info.component.bits == 0 && info.event.bits == 0 && info.relation.bits == 0);
    info = type_at(QUERN_TYPE_EVENT, 0);
    cr_assert_eq(info.event.bits, hit.bits);
    cr_assert(info.component.bits == 0 && info.resource.bits == 0 && info.relation.bits == 0);
    info = type_at(QUERN_TYPE_RELATION, 0);
    cr_assert_eq(info.relation.bits, owner.bits);
    cr_assert_eq(info.component.bits, quern_relation_component(owner).bits);
    cr_assert_str_eq(info.name, "owner");
    cr_assert(info.is_relation);
    must(quern_resource_get_info(world, score, &info));
    cr_assert_str_eq(info.name, "score");
    cr_assert(info.size_bytes == 8 && info.is_hidden && info.field_count == 0);
    must(quern_event_get_info(world, hit, &info));
    cr_assert_str_eq(info.name, "vec3");
    cr_assert(info.size_bytes == 12 && !info.is_hidden && info.field_count == 1);
    must(quern_relation_get_def(world, owner, &def));
    cr_assert_str_eq(def.name, "owner");
    cr_assert(def.on_target_destroyed == QUERN_TARGET_REFUSES && def.ordered && !def.levels);
    cr_assert_not(def.many);
    must(quern_relation_register(world, &def, &again));
    cr_assert_eq(again.bits, owner.bits);
    quern_relation likes = make_relation(world, .name = "likes", .many = true);
    must(quern_relation_get_def(world, likes, &def));
    cr_assert(def.many && !def.levels && !def.ordered);
    must(quern_component_get_info(world, quern_relation_component(likes), &info));
    cr_assert(info.is_relation && info.is_managed && info.size_bytes == 0);
}

Test(list, entities_are_listed_by_slot_with_their_components)
{
    const quern_component b = setup_component(world, "b", 4, 4), a = setup_tag(world, "a");
    quern_entity entities[4], found[4];
    quern_component components[4] = {{0}};
    for (uint32_t i = 0; i < 4; i++)
        entities[i] = setup_entity(world);
    must(quern_entity_add(world, entities[3], a, NULL));
    must(quern_entity_add(world, entities[3], b, NULL));
    must(quern_entity_destroy(world, entities[1]));
    cr_assert_eq(quern_world_list_entities(world, NULL, 0), 3u);
    cr_assert_eq(quern_world_list_entities(world, found, 2), 3u);
    cr_assert_eq(quern_world_list_entities(world, found, 4), 3u);
    cr_assert(quern_entity_equal(found[0], entities[0]) && quern_entity_equal(found[1], entities[2]) &&
              quern_entity_equal(found[2], entities[3]));
    cr_assert_eq(quern_entity_list_components(world, entities[3], NULL, 0), 2u);
    cr_assert_eq(quern_entity_list_components(world, entities[3], components, 1), 2u);
    cr_assert(quern_component_equal(components[0], b) && components[1].bits == 0);
    cr_assert_eq(quern_entity_list_components(world, entities[3], components, 4), 2u);
    cr_assert(quern_component_equal(components[1], a));
    cr_assert_eq(quern_entity_list_components(world, entities[0], NULL, 0), 0u);
}

Test(list, entities_are_listed_after_pages_were_released)
{
    enum { COUNT = QUERN__PAGE_RECORDS + 10 };
    static quern_entity entities[COUNT];
    must(quern_entity_create_many(world, NULL, NULL, 0, COUNT, entities));
    must(quern_entity_destroy_many(world, entities, QUERN__PAGE_RECORDS));
    must(quern_world_trim(world));
    quern_entity found[16];
    cr_assert_eq(quern_world_list_entities(world, found, 16), 10u);
    cr_assert(quern_entity_equal(found[9], entities[COUNT - 1]));
}

Test(list, wrong_calls_are_refused)
{
    const quern_component tag = setup_tag(world, "tag");
    const quern_entity entity = setup_entity(world), dead = setup_entity(world);
    quern_type_info info;
    quern_relation_def def;
    must(quern_entity_destroy(world, dead));
    assert_refused_value(NULL, quern_type_count(NULL, QUERN_TYPE_COMPONENT));
    assert_refused_value(NULL, quern_type_count(NULL, QUERN_TYPE_RESOURCE));
    assert_refused_value(NULL, quern_type_count(NULL, QUERN_TYPE_EVENT));
    assert_refused_value(NULL, quern_type_count(NULL, QUERN_TYPE_RELATION));
    assert_refused_value(NULL, quern_type_count(world, (quern_type_kind)4));
    must_refuse(INVALID_ARGUMENT, NULL, quern_type_at(world, (quern_type_kind)4, 0, &info));
    must_refuse(INVALID_ARGUMENT, NULL, quern_type_at(world, QUERN_TYPE_COMPONENT, 1, &info));
    must_refuse(INVALID_ARGUMENT, NULL, quern_type_at(world, QUERN_TYPE_RESOURCE, 0, &info));
    must_refuse(INVALID_ARGUMENT, NULL, quern_type_at(world, QUERN_TYPE_EVENT, 0, &info));
    must_refuse(INVALID_ARGUMENT, NULL, quern_type_at(world, QUERN_TYPE_RELATION, 0, &info));
    cr_assert_str_eq(quern_error_message(),
                     "quern_type_at: index 0 is out of range: the world has 0 relations");
    must_refuse(NULL_ARGUMENT, NULL, quern_type_at(NULL, QUERN_TYPE_COMPONENT, 0, &info));
    must_refuse(NULL_ARGUMENT, NULL, quern_type_at(world, QUERN_TYPE_COMPONENT, 0, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_component_get_info(NULL, tag, &info));
    must_refuse(NULL_ARGUMENT, world, quern_component_get_info(world, tag, NULL));
    must_refuse(UNKNOWN_COMPONENT, world,
                quern_component_get_info(world, component_unregistered(tag), &info));
    must_refuse(UNKNOWN_RESOURCE, world, quern_resource_get_info(world, (quern_resource){0}, &info));
    must_refuse(UNKNOWN_EVENT, world, quern_event_get_info(world, (quern_event){0}, &info));
    must_refuse(INVALID_ARGUMENT, world, quern_relation_get_def(world, (quern_relation){tag.bits}, &def));
    must_refuse(NULL_ARGUMENT, world, quern_relation_get_def(world, (quern_relation){0}, NULL));
    must_refuse(NULL_ARGUMENT, world, quern_relation_get_def(NULL, (quern_relation){0}, &def));
    assert_refused_value(world, quern_world_list_entities(NULL, NULL, 0));
    assert_refused_value(world, quern_world_list_entities(world, NULL, 1));
    assert_refused_value(world, quern_entity_list_components(world, dead, NULL, 0));
    assert_refused_value(world, quern_entity_list_components(world, entity, NULL, 1));
    assert_refused_value(world, quern_entity_list_components(NULL, entity, NULL, 0));
}

/* ----------------------------------------------------------------------------------------------- pages */

/* Pages of entities and queries, names by prefix, and entities as text, each compared with a direct search in random
 * worlds. */

enum { MOST = 600, TEXT_BYTES = 8192 };

static quern_entity alive[MOST]; /* living entities that the test knows, in no order */
static uint32_t alive_count;

static void open_pages(void)
{
    world = setup_world();
    quern_world_parent(world);
    alive_count = 0;
}

TestSuite(list_pages, .init = open_pages, .fini = close_world);

/* Sets a short name, so that many entities have the same name or the same prefix. Siblings may refuse it. */
static void name_at_random(random_source *random, quern_entity entity)
{
    char name[8];
    const uint32_t bytes = 1 + random_below(random, 4);
    for (uint32_t i = 0; i < bytes; i++)
        name[i] = "ab"[random_below(random, 2)];
    memcpy(name + bytes, "\xC3\xA9", 3); /* é: its bytes are greater than all of ASCII */
    if (random_chance(random, 80)) name[bytes] = '\0';
    (void)quern_entity_set_name(world, entity, name);
}

static void change_at_random(random_source *random)
{
    if (alive_count < MOST && (alive_count == 0 || random_chance(random, 60))) {
        const quern_entity entity = setup_entity(world);
        if (alive_count > 0 && random_chance(random, 60))
            must(quern_entity_relate(world, entity, quern_world_parent(world),
                                     alive[random_below(random, alive_count)]));
        if (random_chance(random, 70)) name_at_random(random, entity);
        alive[alive_count++] = entity;
        return;
    }
    must(quern_entity_destroy(world, alive[random_below(random, alive_count)]));
    for (uint32_t i = alive_count; i-- > 0;) /* its descendants were destroyed, too */
        if (!quern_entity_is_alive(world, alive[i])) alive[i] = alive[--alive_count];
}

static void make_random_world(random_source *random, uint32_t change_count)
{
    for (uint32_t i = 0; i < change_count; i++)
        change_at_random(random);
}

static int compare_slots(const void *a, const void *b)
{
    const uint32_t slot_a = quern_entity_index(*(const quern_entity *)a);
    const uint32_t slot_b = quern_entity_index(*(const quern_entity *)b);
    return slot_a < slot_b ? -1 : slot_a > slot_b;
}

static int compare_names(const void *a, const void *b)
{
    const char *name_a = quern_entity_name(world, *(const quern_entity *)a);
    const int order = strcmp(name_a, quern_entity_name(world, *(const quern_entity *)b));
    return order != 0 ? order : compare_slots(a, b);
}

/* ------------------------------------------------------------------------------------------- pages */

Test(list_pages, pages_together_are_all_entities_by_slot)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        random_source random = {seed};
        make_random_world(&random, 400);
        qsort(alive, alive_count, sizeof *alive, compare_slots);
        quern_entity page[40];
        uint32_t cursor = 0, listed = 0;
        while (cursor != QUERN_LIST_END) {
            const uint32_t before = cursor, capacity = 1 + random_below(&random, 40);
            const uint32_t count = quern_world_list_entities_from(world, &cursor, page, capacity);
            cr_assert(count <= capacity && cursor > before, "seed %u", (unsigned)seed);
            for (uint32_t i = 0; i < count; i++)
                cr_assert(listed + i < alive_count && quern_entity_equal(page[i], alive[listed + i]),
                          "seed %u, entity %u", (unsigned)seed, listed + i);
            listed += count;
        }
        cr_assert_eq(listed, alive_count, "seed %u", (unsigned)seed);
    }
}

Test(list_pages, entities_that_live_throughout_are_listed_once_while_others_change)
{
    static uint32_t times[MOST * 4];
    static quern_entity before[MOST];
    for (uint64_t seed = 1; seed <= 30; seed++) {
        random_source random = {seed};
        make_random_world(&random, 300);
        memset(times, 0, sizeof times);
        memcpy(before, alive, sizeof before);
        const uint32_t before_count = alive_count;
        uint32_t cursor = 0;
        while (cursor != QUERN_LIST_END) {
            quern_entity page[16];
            const uint32_t count = quern_world_list_entities_from(world, &cursor, page, 16);
            for (uint32_t i = 0; i < count; i++) {
                cr_assert(quern_entity_is_alive(world, page[i]));
                cr_assert_lt(quern_entity_index(page[i]), MOST * 4u);
                times[quern_entity_index(page[i])]++;
            }
            make_random_world(&random, 5);
        }
        for (uint32_t i = 0; i < before_count; i++)
            if (quern_entity_is_alive(world, before[i]))
                cr_assert_eq(times[quern_entity_index(before[i])], 1u, "seed %u", (unsigned)seed);
    }
}

Test(list_pages, page_begins_at_the_slot_of_an_entity)
{
    quern_entity entities[5], page[2];
    for (uint32_t i = 0; i < 5; i++)
        entities[i] = setup_entity(world);
    uint32_t cursor = quern_entity_index(entities[2]);
    cr_assert_eq(quern_world_list_entities_from(world, &cursor, page, 2), 2u);
    cr_assert(quern_entity_equal(page[0], entities[2]) && quern_entity_equal(page[1], entities[3]));
    cr_assert_eq(cursor, quern_entity_index(entities[4]));
    cr_assert_eq(quern_world_list_entities_from(world, &cursor, page, 1), 1u);
    cr_assert_eq(cursor, QUERN_LIST_END);
    cr_assert_eq(quern_world_list_entities_from(world, &cursor, page, 1), 0u);
    cr_assert_eq(cursor, QUERN_LIST_END);
}

/* The number of visited slots shows in the cursor. */
Test(list_pages, one_call_visits_a_bounded_number_of_free_slots)
{
    enum { COUNT = 1000 };
    quern_entity entities[COUNT], page[2];
    for (uint32_t i = 0; i < COUNT; i++)
        entities[i] = setup_entity(world);
    must(quern_entity_destroy_many(world, entities, COUNT - 1));
    uint32_t cursor = 0, calls = 0, listed = 0;
    for (; cursor != QUERN_LIST_END; calls++) {
        const uint32_t before = cursor;
        listed += quern_world_list_entities_from(world, &cursor, page, 2);
        cr_assert(cursor == QUERN_LIST_END || cursor - before == 128);
    }
    cr_assert(listed == 1 && calls == 8);
    cr_assert(quern_entity_equal(page[0], entities[COUNT - 1]));
}

Test(list_pages, released_pages_of_records_are_skipped)
{
    enum { COUNT = 2 * QUERN__PAGE_RECORDS + 10 };
    static quern_entity entities[COUNT];
    must(quern_entity_create_many(world, NULL, NULL, 0, COUNT, entities));
    must(quern_entity_destroy_many(world, entities, 2 * QUERN__PAGE_RECORDS));
    must(quern_world_trim(world));
    quern_entity page[16];
    uint32_t cursor = 7; /* inside of the first released page */
    cr_assert_eq(quern_world_list_entities_from(world, &cursor, page, 16), 10u);
    cr_assert_eq(cursor, QUERN_LIST_END);
    for (uint32_t i = 0; i < 10; i++)
        cr_assert(quern_entity_equal(page[i], entities[2 * QUERN__PAGE_RECORDS + i]));
}

Test(list_pages, world_without_entities_has_no_pages)
{
    quern_entity page[1];
    uint32_t cursor = 0;
    cr_assert_eq(quern_world_list_entities_from(world, &cursor, page, 1), 0u);
    cr_assert_eq(cursor, QUERN_LIST_END);
}

/* ----------------------------------------------------------------------------------------- queries */

enum { MOST_QUERIES = 24 };

static quern_query *queries[MOST_QUERIES]; /* those that exist, in the order of creation */
static uint64_t
    serials[MOST_QUERIES]; /* their numbers: another query may get the address of a destroyed one */
static uint64_t last_serial;
static uint32_t query_count;

static void add_query(quern_component tag, const char *name)
{
    queries[query_count] = make_query(world, .name = name, .terms = {quern_term_with(tag)});
    serials[query_count++] = ++last_serial;
}

static void drop_query(uint32_t i)
{
    quern_query_destroy(queries[i]);
    query_count--;
    memmove(queries + i, queries + i + 1, (query_count - i) * sizeof *queries);
    memmove(serials + i, serials + i + 1, (query_count - i) * sizeof *serials);
}

static void change_queries(random_source *random, quern_component tag)
{
    if (query_count > 0 && (query_count == MOST_QUERIES || random_chance(random, 50)))
        drop_query(random_below(random, query_count));
    else
        add_query(tag, random_chance(random, 50) ? "named" : NULL);
}

/* Lists the queries in pages of random size, and changes them between the pages. Those that exist throughout must be
 * listed once, in the order of their creation. */
static void list_changing_queries(random_source *random, quern_component tag, uint32_t changes_per_page)
{
    quern_query *listed[4 * MOST_QUERIES], *before[MOST_QUERIES];
    uint64_t serials_before[MOST_QUERIES];
    const uint32_t before_count = query_count;
    memcpy(before, queries, sizeof before);
    memcpy(serials_before, serials, sizeof serials_before);
    uint32_t cursor = 0, listed_count = 0;
    while (cursor != QUERN_LIST_END) {
        const uint32_t capacity = 1 + random_below(random, 6);
        const uint32_t count =
            quern_world_list_queries_from(world, &cursor, listed + listed_count, capacity);
        cr_assert(count <= capacity && (count == capacity || cursor == QUERN_LIST_END));
        listed_count += count;
        for (uint32_t i = 0; i < changes_per_page && cursor != QUERN_LIST_END; i++)
            change_queries(random, tag);
        cr_assert_leq(listed_count, 3u * MOST_QUERIES, "the list does not end");
    }
    uint32_t next = 0;
    for (uint32_t i = 0; i < before_count; i++) {
        bool is_kept = false;
        for (uint32_t k = 0; k < query_count; k++)
            is_kept |= serials[k] == serials_before[i];
        if (!is_kept) continue;
        uint32_t times = 0;
        for (uint32_t k = 0; k < listed_count; k++)
            times += listed[k] == before[i];
        cr_assert_eq(times, 1u, "query %u of %u is listed %u times", i, before_count, times);
        while (listed[next] != before[i])
            cr_assert_lt(++next, listed_count, "query %u of %u is out of order", i, before_count);
    }
    if (changes_per_page == 0) cr_assert_eq(listed_count, before_count);
}

static void destroy_queries(void)
{
    while (query_count > 0)
        drop_query(query_count - 1);
}

static void idle_run(quern_context *context, const quern_view *view) {}

Test(list_pages, queries_that_exist_throughout_are_listed_once_in_order)
{
    const quern_component tag = setup_tag(world, "tag");
    quern_schedule *schedule; /* its systems have queries that must not be listed */
    must(quern_schedule_create(world, NULL, &schedule));
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_source random = {seed};
        for (uint32_t i = 0; i < 40; i++)
            change_queries(&random, tag);
        char name[16];
        snprintf(name, sizeof name, "system %u", (unsigned)seed);
        const quern_system_def def = {.name = name, .run = idle_run, .terms = {quern_term_with(tag)}};
        must(quern_schedule_add_system(schedule, &def, NULL));
        list_changing_queries(&random, tag, 0);
        list_changing_queries(&random, tag, 2);
        if (seed % 20 == 0) destroy_queries();
    }
    destroy_queries();
}

Test(list_pages, queries_are_numbered_anew_before_numbers_end)
{
    const quern_component tag = setup_tag(world, "tag");
    for (uint32_t i = 0; i < 5; i++)
        add_query(tag, NULL);
    world->storage.first_query->number = QUERN_LIST_END - 2; /* the newest one */
    for (uint32_t i = 0; i < 5; i++)
        add_query(tag, NULL);
    cr_assert_eq(world->storage.first_query->number, 9u);
    random_source random = {1};
    list_changing_queries(&random, tag, 0);
    destroy_queries();
}

Test(list_pages, query_tells_its_definition)
{
    const quern_entity first = setup_entity(world), second = setup_entity(world);
    const quern_component tag = setup_tag(world, "tag"), other = setup_tag(world, "other");
    char name[] = "hunters";
    quern_query_def read;
    quern_query *query = make_query(world, .name = name,
                                    .terms = {quern_term_with(tag), quern_term_without(other),
                                              quern_term_target(quern_world_parent(world), first)},
                                    .whole_chunks = true);
    name[0] = 'p';
    must(quern_query_set_target(query, second));
    must(quern_query_get_def(query, &read));
    cr_assert_str_eq(read.name, "hunters");
    cr_assert(read.whole_chunks && quern_entity_equal(read.terms[2].target, second));
    cr_assert(quern_component_equal(read.terms[0].component, tag) && read.terms[2].by_target);
    cr_assert(read.terms[1].match == QUERN_MATCH_NONE && quern_component_is_null(read.terms[3].component));
    quern_query *again;
    must(quern_query_create(world, &read, &again));
    quern_query_destroy(query);
    must(quern_query_get_def(again, &read));
    cr_assert_str_eq(read.name, "hunters");
    quern_query_destroy(again);
    add_query(tag, NULL);
    must(quern_query_get_def(queries[0], &read));
    cr_assert(read.name == NULL && !read.whole_chunks);
    destroy_queries();
}

Test(list_pages, names_of_queries_are_checked_and_their_memory_is_returned)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_world_def world_def = {.allocator = failing_allocator_interface(allocator)};
    quern_world *other;
    quern_query *query = NULL;
    must(quern_world_create(&world_def, &other));
    quern_query_def def = {.name = "a name of 63 bytes, which is as long as a name is allowed to be",
                           .terms = {quern_term_with(setup_tag(other, "tag"))}};
    cr_assert_eq(strlen(def.name), (size_t)QUERN_MAX_NAME_BYTES);
    uint64_t failures = 0;
    for (uint64_t call = 1; query == NULL; call++, failures++) {
        (void)runs_out_of_memory(allocator, call, quern_query_create(other, &def, &query));
        quern_query *page[1];
        uint32_t cursor = 0;
        cr_assert_eq(quern_world_list_queries_from(other, &cursor, page, 1), query != NULL ? 1u : 0u);
    }
    cr_assert_gt(failures, 1u);
    quern_query_destroy(query);
    def.name = "";
    must_refuse(INVALID_ARGUMENT, other, quern_query_create(other, &def, &query));
    def.name = "a name of 64 bytes, which is one more than a name is allowed to h";
    must_refuse(INVALID_ARGUMENT, other, quern_query_create(other, &def, &query));
    quern_world_destroy(other);
    failing_allocator_close(allocator);
}

/* ------------------------------------------------------------------------------------------- names */

/* Compares a list with a search through all entities. parent: null for the roots; by_parent: whether only its children
 * match. */
static void assert_named(const char *query, const char *prefix, bool by_parent, quern_entity parent,
                         uint32_t capacity)
{
    static quern_entity expected[MOST], found[MOST];
    uint32_t count = 0;
    for (uint32_t i = 0; i < alive_count; i++) {
        const char *name = quern_entity_name(world, alive[i]);
        if (name == NULL || strncmp(name, prefix, strlen(prefix)) != 0) continue;
        const quern_entity above = quern_entity_target(world, alive[i], quern_world_parent(world));
        if (!by_parent || quern_entity_equal(above, parent)) expected[count++] = alive[i];
    }
    qsort(expected, count, sizeof *expected, compare_names);
    memset(found, 0, sizeof found);
    cr_assert_eq(quern_world_list_named(world, query, found, capacity), count, "prefix '%s'", query);
    for (uint32_t i = 0; i < MOST; i++)
        cr_assert_eq(found[i].bits, i < count && i < capacity ? expected[i].bits : 0,
                     "prefix '%s', capacity %u, match %u of %u", query, capacity, i, count);
}

static const char *text_of(quern_entity entity, char *text)
{
    quern_text_buffer buffer = {text, TEXT_BYTES, 0};
    must(quern_entity_to_text(world, entity, quern_sink_text(&buffer)));
    cr_assert_lt(buffer.length_bytes, (size_t)TEXT_BYTES);
    return text;
}

Test(list_pages, names_with_a_prefix_are_found_in_order)
{
    static const char *const prefixes[] = {"", "a", "b", "ab", "ba", "aab", "a\xC3", "abababab", "c"};
    for (uint64_t seed = 1; seed <= 20; seed++) {
        random_source random = {seed};
        make_random_world(&random, 400);
        for (uint32_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
            assert_named(prefixes[i], prefixes[i], false, quern_entity_null(), MOST);
            assert_named(prefixes[i], prefixes[i], false, quern_entity_null(), random_below(&random, 12));
        }
    }
}

Test(list_pages, names_are_completed_below_a_path)
{
    static const char *const prefixes[] = {"", "a", "b", "ba"};
    static char text[TEXT_BYTES + 8];
    uint32_t below_count = 0;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        random_source random = {seed};
        make_random_world(&random, 400);
        for (uint32_t i = 0; i < 4; i++) {
            snprintf(text, sizeof text, "/%s", prefixes[i]);
            assert_named(text, prefixes[i], true, quern_entity_null(), MOST);
        }
        for (uint32_t k = 0; k < alive_count; k++) {
            const char *prefix = prefixes[random_below(&random, 4)];
            if (text_of(alive[k], text)[0] != '/') continue;
            const size_t bytes = strlen(text);
            snprintf(text + bytes, sizeof text - bytes, "/%s", prefix);
            assert_named(text, prefix, true, alive[k], 1 + random_below(&random, 5));
            below_count++;
        }
    }
    cr_assert_gt(below_count, 100u, "too few entities have a path: the test shows nothing");
}

Test(list_pages, prefix_that_leads_nowhere_matches_nothing)
{
    const quern_entity arena = setup_entity(world);
    must(quern_entity_set_name(world, arena, "arena"));
    quern_entity found[1];
    cr_assert_eq(quern_world_list_named(world, "/arena", found, 1), 1u);
    cr_assert_eq(quern_world_list_named(world, "arena", NULL, 0), 1u);
    cr_assert_eq(quern_world_list_named(world, "/arena/", found, 1), 0u);
    cr_assert_eq(quern_world_list_named(world, "/nowhere/", found, 1), 0u);
    cr_assert_eq(quern_world_list_named(world, "//", found, 1), 0u);
    cr_assert_eq(quern_world_list_named(world, "arena/", found, 1), 0u);
    must(quern_entity_set_name(world, arena, NULL));
    cr_assert_eq(quern_world_list_named(world, "", found, 1), 0u);
}

/* -------------------------------------------------------------------------------------------- text */

Test(list_pages, text_of_random_entities_is_read_as_the_same_entity)
{
    static char text[TEXT_BYTES];
    uint32_t path_count = 0, number_count = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        random_source random = {seed};
        make_random_world(&random, 300);
        for (uint32_t i = 0; i < alive_count; i++) {
            quern_entity read = {0};
            text_of(alive[i], text);
            must(quern_entity_from_text(world, text, &read));
            cr_assert(quern_entity_equal(read, alive[i]), "'%s'", text);
            *(text[0] == '/' ? &path_count : &number_count) += 1;
            if (text[0] != '/') continue;
            cr_assert(quern_entity_equal(quern_entity_find(world, text + 1), alive[i]), "'%s'", text);
        }
    }
    cr_assert(path_count > 100 && number_count > 100);
}

Test(list_pages, text_has_one_form_for_each_kind_of_handle)
{
    static char text[TEXT_BYTES], expected[64];
    const quern_entity arena = setup_entity(world), gun = setup_entity(world), dead = setup_entity(world);
    must(quern_entity_relate(world, gun, quern_world_parent(world), arena));
    must(quern_entity_set_name(world, gun, "gun"));
    must(quern_entity_destroy(world, dead));
    snprintf(expected, sizeof expected, "%u:%u", quern_entity_index(gun), quern_entity_generation(gun));
    cr_assert_str_eq(text_of(gun, text), expected, "the parent has no name");
    must(quern_entity_set_name(world, arena, "arena"));
    cr_assert_str_eq(text_of(gun, text), "/arena/gun");
    cr_assert_str_eq(text_of(quern_entity_null(), text), "none");
    const quern_entity others[] = {quern_entity_null(), dead, entity_of_other_world(gun),
                                   entity_provisional(5)};
    for (uint32_t i = 0; i < 4; i++) {
        quern_entity read = {1};
        must(quern_entity_from_text(world, text_of(others[i], text), &read));
        cr_assert_eq(read.bits, others[i].bits, "'%s'", text);
        cr_assert_eq(strncmp(text, "0x", 2) == 0, i >= 2, "'%s'", text);
        cr_assert_eq(strlen(text) == 18, i >= 2, "'%s'", text);
    }
    must(quern_entity_set_name(world, arena, "hall"));
    quern_entity read;
    must(quern_entity_from_text(world, "/hall/gun", &read));
    cr_assert(quern_entity_equal(read, gun));
}

Test(list_pages, text_that_is_no_entity_is_refused)
{
    static const char *const texts[] = {"",
                                        "x",
                                        "/",
                                        "/gun",
                                        "gun",
                                        "/arena/",
                                        "/arena/gun",
                                        "1",
                                        "1:",
                                        ":1",
                                        "1:0",
                                        "-1:1",
                                        "1:1 ",
                                        " 1:1",
                                        "None",
                                        "none ",
                                        "1:1:1",
                                        "0x",
                                        "0xg",
                                        "//arena",
                                        "arena",
                                        "0x11111111111111111",
                                        "4294967296:1",
                                        "1:16777216"};
    const quern_entity arena = setup_entity(world);
    must(quern_entity_set_name(world, arena, "arena"));
    for (uint32_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        quern_entity read = arena;
        must_refuse(INVALID_ARGUMENT, world, quern_entity_from_text(world, texts[i], &read));
        cr_assert(quern_entity_equal(read, arena), "'%s'", texts[i]);
    }
    quern_entity read;
    cr_assert_eq(quern_entity_from_text(world, "/arena/gun", &read), QUERN_ERROR_INVALID_ARGUMENT);
    cr_assert_str_eq(quern_error_message(), "quern_entity_from_text: no entity has the path '/arena/gun': "
                                            "check the names, from the root down");
}

/* ------------------------------------------------------------------------------------------ errors */

static bool fail_to_write(void *user_data, const char *text, size_t bytes)
{
    return bytes == 0;
}

Test(list_pages, wrong_calls_are_refused)
{
    quern_entity entity = setup_entity(world);
    char text[8];
    quern_text_buffer buffer = {text, sizeof text, 0};
    uint32_t cursor = 0;
    assert_refused_value(world, quern_world_list_entities_from(world, NULL, &entity, 1));
    assert_refused_value(world, quern_world_list_entities_from(NULL, &cursor, &entity, 1));
    cr_assert_eq(cursor, QUERN_LIST_END);
    cursor = 0;
    assert_refused_value(world, quern_world_list_entities_from(world, &cursor, NULL, 1));
    cr_assert_eq(cursor, QUERN_LIST_END);
    cursor = 0;
    assert_refused_value(world, quern_world_list_entities_from(world, &cursor, &entity, 0));
    cr_assert_eq(cursor, QUERN_LIST_END);
    quern_query *query;
    quern_query_def def;
    cursor = 0;
    assert_refused_value(world, quern_world_list_queries_from(world, &cursor, &query, 0));
    cr_assert_eq(cursor, QUERN_LIST_END);
    assert_refused_value(world, quern_world_list_queries_from(NULL, &cursor, &query, 1));
    assert_refused_value(world, quern_world_list_queries_from(world, &cursor, NULL, 1));
    assert_refused_value(world, quern_world_list_queries_from(world, NULL, &query, 1));
    must_refuse(NULL_ARGUMENT, world, quern_query_get_def(NULL, &def));
    add_query(setup_tag(world, "tag"), NULL);
    must_refuse(NULL_ARGUMENT, world, quern_query_get_def(queries[0], NULL));
    destroy_queries();
    assert_refused_value(world, quern_world_list_named(NULL, "", &entity, 1));
    assert_refused_value(world, quern_world_list_named(world, NULL, &entity, 1));
    assert_refused_value(world, quern_world_list_named(world, "", NULL, 1));
    must_refuse(NULL_ARGUMENT, world, quern_entity_to_text(NULL, entity, quern_sink_text(&buffer)));
    must_refuse(NULL_ARGUMENT, world, quern_entity_to_text(world, entity, (quern_sink){0}));
    must_refuse(IO, world, quern_entity_to_text(world, entity, (quern_sink){.write = fail_to_write}));
    must_refuse(NULL_ARGUMENT, world, quern_entity_from_text(NULL, "none", &entity));
    must_refuse(NULL_ARGUMENT, world, quern_entity_from_text(world, NULL, &entity));
    must_refuse(NULL_ARGUMENT, world, quern_entity_from_text(world, "none", NULL));
}

Test(list_pages, lists_and_text_allocate_nothing)
{
    failing_allocator *allocator = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(allocator)};
    quern_world *other;
    quern_entity entities[20], found[20], read;
    char text[32];
    quern_text_buffer buffer = {text, sizeof text, 0};
    must(quern_world_create(&def, &other));
    for (uint32_t i = 0; i < 20; i++) {
        must(quern_entity_create(other, &entities[i]));
        snprintf(text, sizeof text, "name %u", i);
        must(quern_entity_set_name(other, entities[i], text));
    }
    failing_allocator_fail_from(allocator, 1);
    uint32_t cursor = 0;
    cr_assert_eq(quern_world_list_entities_from(other, &cursor, found, 20), 20u);
    cr_assert_eq(quern_world_list_named(other, "name 1", found, 3), 11u);
    cr_assert(quern_entity_equal(found[1], entities[10]));
    must(quern_entity_to_text(other, entities[3], quern_sink_text(&buffer)));
    cr_assert_str_eq(text, "/name 3");
    must(quern_entity_from_text(other, text, &read));
    cr_assert(quern_entity_equal(read, entities[3]));
    cr_assert_eq(failing_allocator_failed_count(allocator), 0u);
    quern_world_destroy(other);
    failing_allocator_close(allocator);
}
