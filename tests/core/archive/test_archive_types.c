/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Archives whose types the world learns from the archive itself. */

#include "tests/core/archive/reseal.h"
#include "tests/core/archive/scene.h"
#include "tests/support/effort.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/setup.h"

#include <quern/reflect.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static scene from;
static quern_world *bare;

static void open_worlds(void)
{
    scene_open(&from, NULL);
    must(quern_world_create(NULL, &bare));
}

static void close_worlds(void)
{
    scene_close(&from);
    quern_world_destroy(bare);
}

TestSuite(archive_types, .init = open_worlds, .fini = close_worlds);

static quern_result register_from(quern_world *world, const void *bytes, size_t size, uint32_t *count)
{
    return quern_world_register_archived(world, quern_source_bytes(bytes, size), count);
}

static uint32_t type_count(const quern_world *world)
{
    return quern_type_count(world, QUERN_TYPE_COMPONENT) + quern_type_count(world, QUERN_TYPE_RESOURCE);
}

Test(archive_types, a_world_without_types_becomes_the_same_world)
{
    scene_fill(&from, 500);
    quern_byte_buffer memory = scene_save(&from);
    quern_load_report report;
    uint32_t count;
    must(register_from(bare, memory.bytes, memory.size_bytes, &count));
    cr_assert_eq(count, 10); /* six components, three relations, one resource */
    must(quern_world_load(bare, quern_source_bytes(memory.bytes, memory.size_bytes), NULL, &report));
    cr_assert(report.keeps_handles);
    cr_assert_eq(report.missing_count, 0);
    cr_assert_eq(report.converted_count, 0);
    cr_assert_eq(quern_world_hash(bare), quern_world_hash(from.world));
    assert_valid(bare);
    quern_byte_buffer again = {0};
    must(quern_world_save(bare, quern_sink_bytes(&again), NULL));
    cr_assert_eq(again.size_bytes, memory.size_bytes);
    quern_byte_buffer_release(&again);
    quern_byte_buffer_release(&memory);
}

Test(archive_types, types_are_as_they_were_registered)
{
    scene_fill(&from, 0);
    quern_byte_buffer memory = scene_save(&from);
    must(register_from(bare, memory.bytes, memory.size_bytes, NULL));
    quern_type_info was, is;
    for (uint32_t i = 0; i < quern_type_count(from.world, QUERN_TYPE_COMPONENT); i++) {
        must(quern_type_at(from.world, QUERN_TYPE_COMPONENT, i, &was));
        if (was.is_hidden) continue; /* tags of levels have no names to find them by */
        const quern_component found = quern_component_find(bare, was.name);
        cr_assert_neq(found.bits, 0, "%s", was.name);
        must(quern_component_get_info(bare, found, &is));
        cr_assert(is.size_bytes == was.size_bytes && is.alignment_bytes == was.alignment_bytes &&
                      is.field_count == was.field_count && is.can_disable == was.can_disable &&
                      is.is_relation == was.is_relation && is.is_hidden == was.is_hidden,
                  "%s", was.name);
        for (uint32_t k = 0; k < was.field_count; k++)
            cr_assert(strcmp(is.fields[k].name, was.fields[k].name) == 0 &&
                          is.fields[k].type == was.fields[k].type &&
                          is.fields[k].offset_bytes == was.fields[k].offset_bytes &&
                          is.fields[k].count == was.fields[k].count,
                      "%s.%s", was.name, was.fields[k].name);
    }
    quern_relation_def owner, likes;
    must(quern_relation_get_def(bare, quern_relation_find(bare, "owner"), &owner));
    must(quern_relation_get_def(bare, quern_relation_find(bare, "likes"), &likes));
    cr_assert(owner.on_target_destroyed == QUERN_TARGET_UNRELATES && !owner.levels && !owner.many);
    cr_assert(likes.many);
    quern_byte_buffer_release(&memory);
}

Test(archive_types, values_can_be_read_by_name)
{
    const scene_health health = {.points = 12, .armour = 3, .is_poisoned = true};
    quern_entity entity;
    must(quern_entity_create_with(from.world, &from.health, (const void *[]){&health}, 1, &entity));
    must(quern_entity_set_name(from.world, entity, "guard"));
    quern_byte_buffer memory = scene_save(&from);
    must(register_from(bare, memory.bytes, memory.size_bytes, NULL));
    must(quern_world_load(bare, quern_source_bytes(memory.bytes, memory.size_bytes), NULL, NULL));
    char text[16];
    quern_text_buffer buffer = {.text = text, .capacity_bytes = sizeof text};
    must(quern_entity_get_text(bare, quern_entity_find(bare, "guard"), "scene_health.points",
                               quern_sink_text(&buffer)));
    cr_assert_str_eq(text, "12");
    quern_byte_buffer_release(&memory);
}

Test(archive_types, types_of_the_world_stay_and_values_are_converted)
{
    scene_fill(&from, 0);
    quern_byte_buffer memory = scene_save(&from);
    quern_load_report report;
    uint32_t count;
    make_component(bare, .name = "scene_place", .size_bytes = 8, .alignment_bytes = 8,
                   .fields = {{.name = "y", .type = QUERN_FIELD_F64}});
    must(register_from(bare, memory.bytes, memory.size_bytes, &count));
    cr_assert_eq(count, 9);
    must(register_from(bare, memory.bytes, memory.size_bytes, &count));
    cr_assert_eq(count, 0);
    must(quern_world_load(bare, quern_source_bytes(memory.bytes, memory.size_bytes), NULL, &report));
    cr_assert_eq(report.converted_count, 1);
    cr_assert_eq(report.dropped_field_count, 1);
    quern_byte_buffer_release(&memory);
}

typedef struct bag {
    quern_string label;
    QUERN_LIST(uint16_t) items;
} bag;

Test(archive_types, lists_and_values_of_edges_are_loaded)
{
    quern_component bags, debts;
    quern_relation owes;
    quern_entity debtor, creditor;
    bags = make_component(from.world, QUERN_TYPE(bag),
                          .fields = {QUERN_FIELD(bag, label), QUERN_LIST_FIELD(bag, items, uint16_t)});
    debts = setup_component(from.world, "debt", 4, 4);
    owes = make_relation(from.world, .name = "owes", .on_target_destroyed = QUERN_TARGET_UNRELATES,
                         .value = debts);
    must(quern_entity_create(from.world, &creditor));
    must(quern_entity_create_with(from.world, &bags, NULL, 1, &debtor));
    bag *value = quern_entity_get(from.world, debtor, bags);
    must(quern_string_set(&value->label, "tools"));
    must(quern_list_push(&value->items.list, sizeof(uint16_t), &(uint16_t){7}));
    must(quern_entity_relate_with(from.world, debtor, owes, creditor, &(uint32_t){50}));
    quern_byte_buffer memory = scene_save(&from);
    must(register_from(bare, memory.bytes, memory.size_bytes, NULL));
    must(quern_world_load(bare, quern_source_bytes(memory.bytes, memory.size_bytes), NULL, NULL));
    assert_valid(bare);
    quern_entity loaded[2];
    cr_assert_eq(quern_world_list_entities(bare, loaded, 2), 2);
    const bag *copy = quern_entity_get(bare, loaded[1], quern_component_find(bare, "bag"));
    cr_assert_str_eq(quern_string_text(&copy->label), "tools");
    cr_assert_eq(copy->items.list.count, 1);
    cr_assert_eq(quern_entity_target(bare, loaded[1], quern_relation_find(bare, "owes")).bits,
                 loaded[0].bits);
    const uint32_t *debt = quern_entity_get(bare, loaded[1], quern_component_find(bare, "debt"));
    cr_assert_eq(*debt, 50);
    quern_byte_buffer_release(&memory);
}

static void destroy_nothing(void *values, uint32_t count, void *user_data)
{
    (void)values, (void)count, (void)user_data;
}

Test(archive_types, components_with_hooks_are_left_out)
{
    quern_entity entity;
    quern_component owned = make_component(from.world, .name = "owned", .size_bytes = 8,
                                           .alignment_bytes = 8, .hooks = {.destroy = destroy_nothing});
    must(quern_entity_create_with(from.world, &owned, NULL, 1, &entity));
    must(quern_entity_destroy(from.world, entity));
    quern_byte_buffer memory = scene_save(&from);
    must(register_from(bare, memory.bytes, memory.size_bytes, NULL));
    cr_assert_eq(quern_component_find(bare, "owned").bits, 0);
    must(quern_world_load(bare, quern_source_bytes(memory.bytes, memory.size_bytes), NULL, NULL));
    quern_byte_buffer_release(&memory);
}

/* ------------------------------------------------------------------------------------------ failures */

static size_t call_world(void *user_data, void *bytes, size_t capacity_bytes)
{
    (void)bytes, (void)capacity_bytes;
    cr_assert_eq(quern_world_register_archived(bare, (quern_source){.read = call_world}, NULL),
                 QUERN_ERROR_WORLD_LOCKED);
    ++*(uint32_t *)user_data;
    return 0;
}

Test(archive_types, wrong_calls_are_refused)
{
    uint32_t count = 7, calls = 0;
    must_refuse(NULL_ARGUMENT, bare,
                quern_world_register_archived(NULL, quern_source_bytes("", 0), &count));
    must_refuse(NULL_ARGUMENT, bare, quern_world_register_archived(bare, (quern_source){0}, &count));
    must_refuse(BAD_ARCHIVE, bare, register_from(bare, "not an archive", 14, &count));
    cr_assert_eq(count, 0);
    cr_assert_eq(
        quern_world_register_archived(bare, (quern_source){.read = call_world, .user_data = &calls}, NULL),
        QUERN_ERROR_BAD_ARCHIVE);
    cr_assert_eq(calls, 1);
    make_component(bare, .name = "owner");
    scene_fill(&from, 0);
    quern_byte_buffer memory = scene_save(&from);
    must(register_from(bare, memory.bytes, memory.size_bytes,
                       &count)); /* owner is a component, and stays one */
    cr_assert_eq(count, 9);
    cr_assert_eq(quern_world_load(bare, quern_source_bytes(memory.bytes, memory.size_bytes), NULL, NULL),
                 QUERN_ERROR_LAYOUT_MISMATCH);
    quern_byte_buffer_release(&memory);
}

Test(archive_types, truncated_and_damaged_archives_register_nothing)
{
    setup_entity_with(from.world, &from.place, 1);
    quern_byte_buffer memory = scene_save(&from);
    const uint32_t types = type_count(bare);
    uint8_t *bytes = memory.bytes;
    for (size_t size = 0; size < memory.size_bytes; size++)
        cr_assert_eq(register_from(bare, bytes, size, NULL), QUERN_ERROR_BAD_ARCHIVE, "%zu bytes", size);
    for (size_t i = 0; i < 8 * memory.size_bytes; i += effort(1, 13, 13)) {
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        cr_assert_eq(register_from(bare, bytes, memory.size_bytes, NULL), QUERN_ERROR_BAD_ARCHIVE,
                     "bit %zu", i);
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    cr_assert_eq(type_count(bare), types);
    quern_byte_buffer_release(&memory);
}

Test(archive_types, forged_archives_register_valid_types_or_nothing)
{
    static const uint8_t patterns[] = {1, 4, 16, 0x80};
    scene_fill(&from, 0);
    quern_byte_buffer memory = scene_save(&from);
    char *bytes = malloc(memory.size_bytes);
    for (size_t i = 0; i < memory.size_bytes && i < 4096; i += effort(1, 5, 5))
        for (uint32_t k = 0; k < sizeof patterns; k++) {
            quern_world *world;
            must(quern_world_create(NULL, &world));
            memcpy(bytes, memory.bytes, memory.size_bytes);
            ((uint8_t *)bytes)[i] ^= patterns[k];
            reseal(bytes, memory.size_bytes);
            const uint32_t types = type_count(world);
            const quern_result result = register_from(world, bytes, memory.size_bytes, NULL);
            if (result == QUERN_ERROR_BAD_ARCHIVE)
                cr_assert_eq(type_count(world), types);
            else
                cr_assert(result == QUERN_OK || result == QUERN_ERROR_DUPLICATE_NAME ||
                              result == QUERN_ERROR_LIMIT || result == QUERN_ERROR_UNAVAILABLE,
                          "byte %zu: %s", i, quern_error_message());
            if (result == QUERN_OK)
                (void)quern_world_load(world, quern_source_bytes(bytes, memory.size_bytes), NULL, NULL);
            assert_valid(world);
            quern_world_destroy(world);
        }
    free(bytes);
    quern_byte_buffer_release(&memory);
}

/* Allocates at most a slab at once. */
static void *allocate_little(void *user_data, size_t size_bytes, size_t alignment_bytes)
{
    const quern_allocator normal = quern_allocator_default();
    cr_assert_leq(size_bytes, 4u << 20);
    return normal.allocate(user_data, size_bytes, alignment_bytes);
}

Test(archive_types, forged_sizes_allocate_no_memory)
{
    static const uint32_t large[] = {0xFFFFFFFF, 0x7FFFFFF8, 0x1000000};
    const quern_world_def def = {
        .allocator = {.allocate = allocate_little, .release = quern_allocator_default().release}};
    scene_fill(&from, 0);
    quern_byte_buffer memory = scene_save(&from);
    char *bytes = malloc(memory.size_bytes);
    for (size_t i = 0; i + 4 <= memory.size_bytes && i < 4096; i += effort(4, 20, 20))
        for (uint32_t k = 0; k < 3; k++) {
            quern_world *world;
            must(quern_world_create(&def, &world));
            memcpy(bytes, memory.bytes, memory.size_bytes);
            memcpy(bytes + i, &large[k], sizeof large[k]);
            reseal(bytes, memory.size_bytes);
            (void)register_from(world, bytes, memory.size_bytes, NULL);
            assert_valid(world);
            quern_world_destroy(world);
        }
    free(bytes);
    quern_byte_buffer_release(&memory);
}

/* Each resource alone would fit in the archive. */
Test(archive_types, many_forged_resources_are_not_larger_than_the_archive)
{
    enum { COUNT = 200, FORGED_BYTES = 8192 };
    typedef struct number {
        uint64_t value;
    } number;
    for (uint32_t i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "number %u", i);

        make_resource(bare, .name = name, .size_bytes = sizeof(number), .alignment_bytes = _Alignof(number),
                      .fields = {QUERN_FIELD(number, value)});
    }
    quern_byte_buffer memory = {0};
    must(quern_world_save(bare, quern_sink_bytes(&memory), NULL));
    char *bytes = memory.bytes;
    uint32_t forged = 0;
    for (size_t i = 0; i + sizeof(quern__type_section) < memory.size_bytes - 8; i += 4) {
        quern__section_head head;
        quern__type_section section;
        memcpy(&head, bytes + i, sizeof head);
        memcpy(&section, bytes + i + sizeof head, sizeof section);
        if (head.kind != QUERN__SECTION_RESOURCE || section.size_bytes != sizeof(number)) continue;
        section.size_bytes = FORGED_BYTES;
        memcpy(bytes + i + sizeof head, &section, sizeof section);
        forged++;
    }
    cr_assert_eq(forged, COUNT);
    reseal(bytes, memory.size_bytes);
    quern_world *world;
    uint32_t count;
    must(quern_world_create(NULL, &world));
    cr_assert_eq(register_from(world, bytes, memory.size_bytes, &count), QUERN_ERROR_BAD_ARCHIVE);
    cr_assert_eq(count, 0);
    quern_world_destroy(world);
    quern_byte_buffer_release(&memory);
}

Test(archive_types, what_was_registered_before_memory_ends_stays)
{
    scene_fill(&from, 50);
    quern_byte_buffer archive = scene_save(&from);
    failing_allocator *memory = failing_allocator_create();
    quern_world *world = make_world(.allocator = failing_allocator_interface(memory));
    uint32_t total = 0, count;
    for (uint64_t call = 1;; call++) {
        failing_allocator_fail_at(memory, call);
        const quern_result result = register_from(world, archive.bytes, archive.size_bytes, &count);
        total += count;
        if (result == QUERN_OK) break;
        cr_assert_eq(result, QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        assert_valid(world);
    }
    failing_allocator_heal(memory);
    cr_assert_eq(total, 10);
    must(quern_world_load(world, quern_source_bytes(archive.bytes, archive.size_bytes), NULL, NULL));
    cr_assert_eq(quern_world_hash(world), quern_world_hash(from.world));
    quern_world_destroy(world);
    failing_allocator_close(memory);
    quern_byte_buffer_release(&archive);
}
