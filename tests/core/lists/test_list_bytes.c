/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/core/archive/reseal.h"
#include "tests/core/lists/bag.h"
#include "tests/support/failing_allocator.h"

#include <stdlib.h>
#include <string.h>

/* Components, resources and events with lists as bytes: archives, sessions, deltas. */

enum { UNITS = 40 };

static failing_allocator *memory;
static quern_world *from, *to;
static quern_component bag_id;
static quern_resource chest;
static quern_entity units[UNITS], loaded[UNITS];
static bag_model models[UNITS + 1]; /* the last one is of the resource */
static quern_byte_buffer bytes;
static random_source source;

static quern_world *open_one(void)
{
    quern_world *world = setup_world();
    quern_resource_def def = {.name = "chest", .size_bytes = sizeof(bag), .alignment_bytes = 8};
    memcpy(def.fields, bag_def.fields, sizeof def.fields);
    bag_id = bag_register(world);
    must(quern_resource_register(world, &def, &chest));
    return world;
}

static void open_worlds(void)
{
    memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    must(quern_lists_set_allocator(&allocator));
    to = open_one();
    from = open_one();
    for (uint32_t i = 0; i < UNITS; i++) {
        units[i] = setup_entity(from);
        must(quern_entity_add(from, units[i], bag_id, NULL));
    }
    source = (random_source){1};
}

static void close_worlds(void)
{
    quern_byte_buffer_release(&bytes);
    quern_world_destroy(from);
    quern_world_destroy(to);
    failing_allocator_close(memory);
    assert_at_end(quern_lists_set_allocator(NULL) == QUERN_OK);
}

TestSuite(list_bytes, .init = open_worlds, .fini = close_worlds);

static void change(uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) {
        const uint32_t k = random_below(&source, UNITS);
        (void)bag_change(quern_entity_get(from, units[k], bag_id), &models[k], &source, units, UNITS);
        must(quern_entity_mark_changed(from, units[k], bag_id));
    }
    for (uint32_t i = 0; i < steps / 10; i++)
        (void)bag_change(quern_resource_get(from, chest), &models[UNITS], &source, units, UNITS);
}

static quern_entity to_loaded(quern_entity entity)
{
    for (uint32_t i = 0; i < UNITS; i++)
        if (units[i].bits == entity.bits) return loaded[i];
    return (quern_entity){0};
}

static quern_component bag_of_to(void)
{
    return quern_component_find(to, "bag");
}

static void assert_loaded(bool with_resource)
{
    for (uint32_t i = 0; i < UNITS; i++)
        bag_assert(quern_entity_get(to, loaded[i], bag_of_to()), &models[i], to_loaded);
    if (with_resource)
        bag_assert(quern_resource_get(to, quern_resource_find(to, "chest")), &models[UNITS], to_loaded);
}

static quern_result load(quern_world *world)
{
    const quern_load_def def = {.entities = loaded, .entity_capacity = UNITS};
    return quern_world_load(world, quern_source_bytes(bytes.bytes, bytes.size_bytes), &def, NULL);
}

Test(list_bytes, an_archive_has_all_lists)
{
    change(4000);
    must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    must(load(to));
    assert_loaded(true);
    cr_assert_eq(quern_world_hash(to), quern_world_hash(from));
    assert_valid(to);
}

Test(list_bytes, equal_worlds_have_equal_archives)
{
    change(2000);
    quern_byte_buffer again = {0};
    must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    must(load(to));
    must(quern_world_save(to, quern_sink_bytes(&again), NULL));
    must(load(from)); /* beside what is there */
    cr_assert_eq(again.size_bytes, bytes.size_bytes);
    quern_byte_buffer_release(&again);
}

Test(list_bytes, long_lists_need_several_sections)
{
    bag *it = quern_entity_get(from, units[3], bag_id);
    must(QUERN_LIST_RESIZE(&it->scores, 300000));
    QUERN_LIST_WRITE(&it->scores, float)[299999] = 5;
    for (uint32_t i = 0; i < 50; i++)
        must(quern_string_append_print(&it->label, "%8192d", (int)i));
    must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    must(load(to));
    const bag *found = quern_entity_get(to, loaded[3], bag_of_to());
    cr_assert_eq(found->scores.list.count, 300000u);
    cr_assert_eq(found->scores.items[299999], 5.0f);
    cr_assert_eq(quern_string_bytes(&found->label), 50u * 8192);
    cr_assert_str_eq(quern_string_text(&found->label), quern_string_text(&it->label));
}

Test(list_bytes, an_archive_of_a_list_maps_handles)
{
    setup_entity(to); /* slots differ */
    change(3000);
    quern_archive *list;
    must(quern_archive_create(from, &list));
    must(quern_archive_append(list, units, UNITS));
    must(quern_archive_save(list, quern_sink_bytes(&bytes), NULL));
    quern_archive_destroy(list);
    must(load(to));
    assert_loaded(false);
}

Test(list_bytes, sessions_have_lists)
{
    quern_archive *list;
    quern_save_session *saving;
    quern_load_session *loading;
    must(quern_archive_create(from, &list));
    must(quern_save_session_create(from, NULL, &saving));
    must(quern_load_session_create(to, NULL, &loading));
    for (uint32_t message = 0; message < 8; message++) {
        change(300);
        bytes.size_bytes = 0;
        quern_archive_clear(list);
        must(quern_archive_append(list, units, UNITS));
        must(quern_save_session_write(saving, list, quern_sink_bytes(&bytes)));
        must(quern_load_session_read(loading, quern_source_bytes(bytes.bytes, bytes.size_bytes), loaded,
                                     UNITS, NULL));
        assert_loaded(false);
    }
    quern_load_session_destroy(loading);
    quern_save_session_destroy(saving);
    quern_archive_destroy(list);
}

/* ---------------------------------------------------------------------------------------- conversion */

typedef struct new_item {
    quern_entity owner;
    double kind;
    uint32_t weight;
} new_item;

typedef struct new_bag {
    QUERN_LIST(quern_string) names;
    QUERN_LIST(new_item) items;
    QUERN_LIST(int32_t) scores;
    quern_string note;
} new_bag;

static const quern_component_def new_def = {
    .name = "bag",
    .size_bytes = sizeof(new_bag),
    .alignment_bytes = 8,
    .fields = {QUERN_LIST_FIELD(new_bag, names, quern_string),
               QUERN_LIST_FIELD(new_bag, items, new_item, owner, kind, weight),
               QUERN_LIST_FIELD(new_bag, scores, int32_t), QUERN_FIELD(new_bag, note)}};

Test(list_bytes, elements_are_converted_by_their_fields)
{
    quern_world *world = setup_world();
    quern_component id;
    quern_load_report report;
    change(3000);
    must(quern_component_register(world, &new_def, &id));
    must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    const quern_load_def def = {.entities = loaded, .entity_capacity = UNITS, .leave_out_missing = true};
    must(quern_world_load(world, quern_source_bytes(bytes.bytes, bytes.size_bytes), &def, &report));
    cr_assert_gt(report.converted_count, 0u);
    for (uint32_t i = 0; i < UNITS; i++) {
        const new_bag *it = quern_entity_get(world, loaded[i], id);
        cr_assert_eq(it->items.list.count, models[i].item_count);
        for (uint32_t k = 0; k < models[i].item_count; k++) {
            cr_assert_eq(it->items.items[k].kind, (double)models[i].items[k].kind);
            cr_assert_eq(it->items.items[k].weight, 0u);
            cr_assert_eq(it->items.items[k].owner.bits, to_loaded(models[i].items[k].owner).bits);
        }
        cr_assert_eq(it->scores.list.count, models[i].score_count);
        for (uint32_t k = 0; k < models[i].score_count; k++)
            cr_assert_eq(it->scores.items[k], (int32_t)models[i].scores[k]);
        cr_assert_eq(it->names.list.count, models[i].name_count);
        cr_assert_str_eq(quern_string_text(&it->note), "");
    }
    quern_world_destroy(world);
}

Test(list_bytes, a_number_that_does_not_fit_is_refused)
{
    quern_world *world = setup_world();
    quern_component id;
    must(QUERN_LIST_PUSH(&((bag *)quern_entity_get(from, units[0], bag_id))->scores, float, 1e30f));
    must(quern_component_register(world, &new_def, &id));
    must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    must_refuse(INVALID_ARGUMENT, world,
                quern_world_load(world, quern_source_bytes(bytes.bytes, bytes.size_bytes),
                                 &(quern_load_def){.leave_out_missing = true}, NULL));
    quern_world_destroy(world);
}

typedef struct short_item {
    uint8_t kind;
} short_item;

typedef struct short_bag {
    QUERN_LIST(short_item) items;
} short_bag;

Test(list_bytes, an_element_that_does_not_fit_is_refused_with_its_list)
{
    const quern_component_def def = {.name = "bag",
                                     .size_bytes = sizeof(short_bag),
                                     .alignment_bytes = 8,
                                     .fields = {QUERN_LIST_FIELD(short_bag, items, short_item, kind)}};
    quern_world *world = setup_world();
    quern_component id;
    const bag_item item = {.kind = 300};
    must(QUERN_LIST_PUSH(&((bag *)quern_entity_get(from, units[0], bag_id))->items, bag_item, item));
    must(quern_component_register(world, &def, &id));
    must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    must_refuse(INVALID_ARGUMENT, world,
                quern_world_load(world, quern_source_bytes(bytes.bytes, bytes.size_bytes),
                                 &(quern_load_def){.leave_out_missing = true}, NULL));
    cr_assert(strstr(quern_error_message(), "field 'kind' of 'items'") != NULL, "%s",
              quern_error_message());
    quern_world_destroy(world);
}

typedef struct team {
    uint32_t number;
    QUERN_LIST(quern_entity) members[2];
} team;

/* Registers a resource and a component with some lists of handles. */
static void register_teams(quern_world *world, uint32_t list_count, const team *usual,
                           quern_resource *out_resource, quern_component *out_component)
{
    static const quern_element handle = {.type = QUERN_FIELD_ENTITY};
    const quern_field fields[] = {
        QUERN_FIELD(team, number),
        {.name = "members",
         .type = QUERN_FIELD_LIST,
         .offset_bytes = offsetof(team, members),
         .count = list_count,
         .element = &handle},
    };
    quern_resource_def resource = {
        .name = "team", .size_bytes = sizeof(team), .alignment_bytes = 8, .value = usual};
    quern_component_def component = {
        .name = "team", .size_bytes = sizeof(team), .alignment_bytes = 8, .default_value = usual};
    memcpy(resource.fields, fields, sizeof fields);
    memcpy(component.fields, fields, sizeof fields);
    must(quern_resource_register(world, &resource, out_resource));
    must(quern_component_register(world, &component, out_component));
}

Test(list_bytes, lists_that_the_archive_does_not_have_keep_their_handles)
{
    quern_resource resource;
    quern_component component;
    const quern_entity known = setup_entity(to);
    team usual = {0}, saved = {0};
    must(QUERN_LIST_PUSH(&usual.members[1], quern_entity, known));
    must(QUERN_LIST_PUSH(&saved.members[0], quern_entity, units[3]));
    register_teams(from, 1, NULL, &resource, &component);
    quern_list_copy(&((team *)quern_resource_get(from, resource))->members[0].list, &saved.members[0].list);
    must(quern_entity_add(from, units[5], component, &saved));
    register_teams(to, 2, &usual, &resource, &component);
    must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    must(load(to));
    const team *found[] = {quern_resource_get(to, resource), quern_entity_get(to, loaded[5], component)};
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(found[i]->members[0].items[0].bits, loaded[3].bits);
        cr_assert_eq(found[i]->members[1].items[0].bits, known.bits, "of value %u", i);
    }
    quern_list_free(&usual.members[1].list);
    quern_list_free(&saved.members[0].list);
}

static void migrate_bags(void *user_data, void *targets, const void *sources, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        new_bag *it = (new_bag *)targets + i;
        const bag *old = (const bag *)sources + i;
        *it = (new_bag){0};
        quern_list_copy(&it->names.list, &old->names.list);
        quern_string_copy(&it->note, &old->label);
        if (QUERN_LIST_PUSH(&it->items, new_item, {.owner = old->friends.items[0]}) != QUERN_OK) abort();
    }
    ++*(uint32_t *)user_data;
}

Test(list_bytes, a_migration_gets_the_lists)
{
    quern_world *world = setup_world();
    quern_component id;
    uint32_t call_count = 0;
    for (uint32_t i = 0; i < UNITS; i++) {
        bag *it = quern_entity_get(from, units[i], bag_id);
        must(QUERN_LIST_PUSH(&it->friends, quern_entity, units[(i + 1) % UNITS]));
        must(quern_string_print(&it->label, "%d", (int)i));
    }
    must(quern_component_register(world, &new_def, &id));
    must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    const quern_load_def def = {.entities = loaded,
                                .entity_capacity = UNITS,
                                .leave_out_missing = true,
                                .migrations = {{.name = "bag",
                                                .component = id,
                                                .migrate = migrate_bags,
                                                .source_bytes = sizeof(bag),
                                                .user_data = &call_count}}};
    must(quern_world_load(world, quern_source_bytes(bytes.bytes, bytes.size_bytes), &def, NULL));
    cr_assert_gt(call_count, 0u);
    for (uint32_t i = 0; i < UNITS; i++) {
        const new_bag *it = quern_entity_get(world, loaded[i], id);
        cr_assert_eq(atoi(quern_string_text(&it->note)), (int)i);
        cr_assert_eq(it->items.items[0].owner.bits, loaded[(i + 1) % UNITS].bits);
    }
    quern_world_destroy(world);
}

/* ------------------------------------------------------------------------------------------- deltas */

Test(list_bytes, a_replica_follows_by_deltas)
{
    quern_history *history;
    quern_delta_applier *applier;
    must(quern_history_create(from, &(quern_history_def){.frame_count = 4}, &history));
    must(quern_delta_applier_create(to, &applier));
    must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    must(load(to));
    must(quern_history_save(history, 0, NULL));
    for (uint64_t frame = 1; frame <= 30; frame++) {
        quern_delta *delta;
        change(100);
        must(quern_history_save(history, frame, NULL));
        must(quern_delta_create(history, frame - 1, frame, &delta));
        bytes.size_bytes = 0;
        must(quern_delta_write(delta, NULL, quern_sink_bytes(&bytes)));
        quern_delta_destroy(delta);
        must(quern_delta_apply(applier, quern_source_bytes(bytes.bytes, bytes.size_bytes)));
        assert_loaded(true);
        cr_assert_eq(quern_world_hash(to), quern_world_hash(from));
    }
    quern_delta_applier_destroy(applier);
    quern_history_destroy(history);
}

Test(list_bytes, equal_lists_make_no_delta)
{
    quern_history *history;
    quern_delta *delta;
    must(quern_history_create(from, &(quern_history_def){.frame_count = 4}, &history));
    bag *it = quern_entity_get(from, units[0], bag_id);
    must(quern_string_set(&it->label, "same"));
    must(quern_entity_mark_changed(from, units[0], bag_id));
    must(quern_history_save(history, 0, NULL));
    quern_string_free(&it->label);
    must(quern_string_set(&it->label, "same"));
    must(quern_entity_mark_changed(from, units[0], bag_id));
    must(quern_history_save(history, 1, NULL));
    must(quern_delta_create(history, 0, 1, &delta));
    uint32_t batch_count;
    (void)quern_delta_batches(delta, &batch_count);
    cr_assert_eq(batch_count, 0u);
    quern_delta_destroy(delta);
    quern_history_destroy(history);
}

/* ------------------------------------------------------------------------------------ damaged, forged */

/* Loads or applies bytes with changes at random. Errors are expected, crashes and leaks are not. */
Test(list_bytes, forged_archives_do_no_harm)
{
    change(600);
    must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    char *copy = malloc(bytes.size_bytes);
    cr_assert_not_null(copy);
    uint32_t loaded_count = 0;
    for (uint32_t i = 0; i < 1500; i++) {
        quern_world *world = open_one();
        size_t size = bytes.size_bytes;
        memcpy(copy, bytes.bytes, size);
        for (uint32_t k = 0; k <= random_below(&source, 3); k++) {
            const size_t at = random_below(&source, (uint32_t)size);
            copy[at] =
                (char)(random_below(&source, 2) == 0 ? (int)random_below(&source, 256) : copy[at] + 1);
        }
        reseal(copy, size);
        loaded_count += quern_world_load(world, quern_source_bytes(copy, size), NULL, NULL) == QUERN_OK;
        assert_valid(world);
        quern_world_destroy(world);
    }
    free(copy);
    cr_assert_gt(loaded_count, 100u); /* the checks behind the checksums were reached */
    bag_id = quern_component_find(from, "bag");
}

/* Finds the elements of the last list in the archive, its count and one handle, and returns their address. */
static char *find_last_list(void)
{
    char wanted[4 + sizeof(quern_entity)] = {1};
    memcpy(wanted + 4, &units[5], sizeof units[5]);
    char *memory_of = bytes.bytes;
    for (size_t at = 0; at + sizeof wanted <= bytes.size_bytes; at++)
        if (memcmp(memory_of + at, wanted, sizeof wanted) == 0) return memory_of + at;
    cr_assert_fail("the list is not in the archive");
    return NULL;
}

Test(list_bytes, elements_must_be_as_many_as_the_counts_say)
{
    must(QUERN_LIST_PUSH(&((bag *)quern_entity_get(from, units[UNITS - 1], bag_id))->friends, quern_entity,
                         units[5]));
    must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    static const char counts[] = {0, 2, 127};
    for (size_t i = 0; i < sizeof counts; i++) {
        *find_last_list() = counts[i];
        reseal(bytes.bytes, bytes.size_bytes);
        must_refuse(BAD_ARCHIVE, to, load(to));
        bytes.size_bytes = 0;
        must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    }
    must(load(to));
}

enum { MODEST_BYTES = 16 << 20 };

/* Allocates like the default allocator, but no large block. */
static void *allocate_modestly(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    const quern_allocator usual = quern_allocator_default();
    (void)user_data;
    return size_bytes <= MODEST_BYTES ? usual.allocate(usual.user_data, size_bytes, alignment_bytes) : NULL;
}

/* Finds a text in the archive, where it is last, and returns its address. */
static char *find_text(const char *text)
{
    for (size_t at = bytes.size_bytes - strlen(text); at > 0; at--)
        if (memcmp((char *)bytes.bytes + at, text, strlen(text)) == 0) return (char *)bytes.bytes + at;
    cr_assert_fail("the text '%s' is not in the archive", text);
    return NULL;
}

Test(list_bytes, a_resource_has_no_more_lists_than_the_archive_can_have)
{
    const quern_allocator usual = quern_allocator_default();
    quern_world *world = make_world(.allocator = {allocate_modestly, usual.release, usual.user_data});
    must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    const uint32_t count = 0x0FFFFFF0, size_bytes = 0xFFFFFFF8;
    char *name = find_text("\5chest"), *field = find_text("friends") + strlen("friends");
    cr_assert_gt(field, name);
    memcpy(name - sizeof(quern__type_section) + offsetof(quern__type_section, size_bytes), &size_bytes,
           sizeof size_bytes);
    memcpy(field + 2 * sizeof(uint32_t), &count, sizeof count); /* after its type and offset */
    reseal(bytes.bytes, bytes.size_bytes);
    must_refuse(BAD_ARCHIVE, world, load(world));
    quern_world_destroy(world);
}

Test(list_bytes, failing_memory_changes_nothing)
{
    change(600);
    must(quern_world_save(from, quern_sink_bytes(&bytes), NULL));
    uint32_t failed_count = 0;
    for (uint64_t call = 1;; call += 7) {
        quern_world *world = open_one();
        const uint64_t before = failing_allocator_outstanding_bytes(memory);
        const quern_source input = quern_source_bytes(bytes.bytes, bytes.size_bytes);
        const bool has_failed =
            runs_out_of_memory(memory, call, quern_world_load(world, input, NULL, NULL));
        if (has_failed) cr_assert_eq(failing_allocator_outstanding_bytes(memory), before);
        quern_world_destroy(world);
        if (!has_failed) break;
        failed_count++;
    }
    cr_assert_gt(failed_count, 20u);
    bag_id = quern_component_find(from, "bag");
}
