/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Damaged, truncated or forged archives: they are rejected without any change, or they load into a valid
 * world. */

#include "core/archive/archive_internal.h"
#include "tests/core/archive/reseal.h"
#include "tests/core/archive/scene.h"
#include "tests/support/setup.h"

#include <stdlib.h>
#include <string.h>

/* Creates few entities, so that every bit of the archive can be tested. */
static void fill_a_little(const scene *it)
{
    const scene_place place = {1, 2};
    const scene_health health = {.points = 3, .armour = 4, .is_poisoned = true};
    const quern_component components[] = {it->place, it->health};
    const void *const values[] = {&place, &health};
    quern_entity entities[6];
    for (uint32_t i = 0; i < 6; i++)
        must(quern_entity_create_with(it->world, components, values, 1 + i % 2, &entities[i]));
    must(quern_entity_relate(it->world, entities[1], it->parent, entities[0]));
    must(quern_entity_relate(it->world, entities[2], it->parent, entities[1]));
    must(quern_entity_relate(it->world, entities[4], it->parent, entities[0]));
    must(quern_entity_relate(it->world, entities[2], it->owner, entities[0]));
    must(quern_entity_set_name(it->world, entities[0], "a"));
    must(quern_entity_set_name(it->world, entities[1], "b"));
    must(quern_entity_set_component_enabled(it->world, entities[1], it->health, false));
    must(quern_entity_set_enabled(it->world, entities[4], false));
    must(quern_entity_add(it->world, entities[0], it->aim, &(scene_aim){.at = entities[2], .range = 1}));
    must(quern_entity_destroy(it->world, entities[3]));
    must(quern_entity_destroy(it->world, entities[5]));
}

static quern_byte_buffer memory;
static scene to;

static void open_scenes(void)
{
    scene from;
    scene_open(&from, NULL);
    fill_a_little(&from);
    memory = scene_save(&from);
    scene_close(&from);
    scene_open(&to, NULL);
}

static void close_scenes(void)
{
    scene_close(&to);
    quern_byte_buffer_release(&memory);
}

TestSuite(archive_damage, .init = open_scenes, .fini = close_scenes);

static quern_result load(const char *bytes, size_t size, const quern_load_def *def)
{
    return quern_world_load(to.world, quern_source_bytes(bytes, size), def, NULL);
}

Test(archive_damage, every_truncation_is_rejected)
{
    const uint64_t hash = quern_world_hash(to.world);
    for (size_t size = 0; size < memory.size_bytes; size++) {
        char *cut =
            malloc(size + 1); /* an allocation of its own, so that a sanitizer finds reads past the end */
        memcpy(cut, memory.bytes, size);
        cr_assert_eq(load(cut, size, NULL), QUERN_ERROR_BAD_ARCHIVE, "%zu bytes", size);
        free(cut);
    }
    cr_assert_eq(quern_world_hash(to.world), hash);
    assert_valid(to.world);
    must(load(memory.bytes, memory.size_bytes, NULL));
}

Test(archive_damage, every_flipped_bit_is_rejected)
{
    uint8_t *bytes = memory.bytes;
    const uint64_t hash = quern_world_hash(to.world);
    for (size_t i = 0; i < 8 * memory.size_bytes; i++) {
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        cr_assert_eq(load(memory.bytes, memory.size_bytes, NULL), QUERN_ERROR_BAD_ARCHIVE, "bit %zu", i);
        bytes[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    cr_assert_eq(quern_world_hash(to.world), hash);
    assert_valid(to.world);
    must(load(memory.bytes, memory.size_bytes, NULL));
}

/* Loads into an empty world and into a filled one. */
static void load_forged(const char *bytes, size_t size, const quern_load_def *def)
{
    const uint64_t hash = quern_world_hash(to.world);
    if (load(bytes, size, def) != QUERN_OK) {
        cr_assert_eq(quern_world_hash(to.world), hash);
        return;
    }
    assert_valid(to.world);
    if (stats_of_world(to.world).entity_count < 100) return;
    scene_close(&to);
    scene_open(&to, NULL);
}

Test(archive_damage, random_sections_are_rejected_or_give_a_valid_world)
{
    static const quern_load_def lenient = {.leave_out_missing = true, .drop_taken_names = true};
    static const uint8_t patterns[] = {1, 4, 16, 0x80};
    char *bytes = malloc(memory.size_bytes);
    for (size_t i = 0; i < memory.size_bytes; i++)
        for (uint32_t k = 0; k < sizeof patterns; k++) {
            memcpy(bytes, memory.bytes, memory.size_bytes);
            ((uint8_t *)bytes)[i] ^= patterns[k];
            reseal(bytes, memory.size_bytes);
            load_forged(bytes, memory.size_bytes, k % 2 == 0 ? NULL : &lenient);
        }
    assert_valid(to.world);
    free(bytes);
}

Test(archive_damage, forged_counts_allocate_no_memory)
{
    char *bytes = malloc(memory.size_bytes);
    for (size_t i = 0; i + 4 <= memory.size_bytes; i += 4) {
        static const uint32_t large[] = {0xFFFFFFFF, 0x7FFFFFFF, 0x10000};
        for (uint32_t k = 0; k < 3; k++) {
            memcpy(bytes, memory.bytes, memory.size_bytes);
            memcpy(bytes + i, &large[k], sizeof large[k]);
            reseal(bytes, memory.size_bytes);
            load_forged(bytes, memory.size_bytes, NULL);
        }
    }
    assert_valid(to.world);
    free(bytes);
}

/* ---------------------------------------------------------------------------------------------- forged */

/* Archives with correct checksums that violate one rule. Each is rejected, and the world is unchanged. */

enum { CHAIN_COUNT = 20, FREE_COUNT = 2 };
static char *bytes; /* a copy of the archive that tests change */
static quern_entity chain[CHAIN_COUNT];

/* Creates a chain that is deeper than the highest level, two twins in another archetype, free slots,
 * names and a disabled component. */
static void fill(const scene *it)
{
    const quern_component twin[] = {it->place, it->health};
    quern_entity twins[2], gone[FREE_COUNT];
    for (uint32_t i = 0; i < FREE_COUNT; i++)
        must(quern_entity_create(it->world, &gone[i]));
    for (uint32_t i = 0; i < CHAIN_COUNT; i++) {
        must(quern_entity_create(it->world, &chain[i]));
        if (i > 0) must(quern_entity_relate(it->world, chain[i], it->parent, chain[i - 1]));
    }
    for (uint32_t i = 0; i < 2; i++)
        must(quern_entity_create_with(it->world, twin, NULL, 2, &twins[i]));
    must(quern_entity_set_component_enabled(it->world, twins[0], it->health, false));
    must(quern_entity_set_name(it->world, twins[0], "a"));
    must(quern_entity_set_name(it->world, twins[1], "b"));
    for (uint32_t i = 0; i < FREE_COUNT; i++)
        must(quern_entity_destroy(it->world, gone[i]));
}

static void open_forged(void)
{
    scene from;
    scene_open(&from, NULL);
    fill(&from);
    memory = scene_save(&from);
    scene_close(&from);
    scene_open(&to, NULL);
    bytes = malloc(memory.size_bytes);
    memcpy(bytes, memory.bytes, memory.size_bytes);
}

static void close_forged(void)
{
    scene_close(&to);
    quern_byte_buffer_release(&memory);
    free(bytes);
}

TestSuite(archive_forged, .init = open_forged, .fini = close_forged);

/* Returns the payload of the n-th section (from 0) of a kind. The archive has one block. */
static char *find_section(quern__section_kind kind, uint32_t n)
{
    char *at = bytes + sizeof(quern__archive_head) + sizeof(quern__archive_block_head);
    while (at < bytes + memory.size_bytes) {
        quern__section_head head;
        memcpy(&head, at, sizeof head);
        at += sizeof head;
        if (head.kind == (uint32_t)kind && n-- == 0) return at;
        at += (head.bytes + 7) / 8 * 8;
    }
    cr_assert(false, "section %d is not there", (int)kind);
    return NULL;
}

static uint32_t get(const char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static quern_result load_resealed(void)
{
    reseal(bytes, memory.size_bytes);
    const quern_result result =
        quern_world_load(to.world, quern_source_bytes(bytes, memory.size_bytes), NULL, NULL);
    memcpy(bytes, memory.bytes, memory.size_bytes);
    return result;
}

#define assert_forged() must_refuse(BAD_ARCHIVE, to.world, load_resealed())

/* Writes a 32-bit number, checks that the archive is rejected, and restores the bytes. */
static void assert_cannot_be(char *at, uint32_t value)
{
    cr_assert_neq(get(at), value);
    memcpy(at, &value, sizeof value);
    assert_forged();
}

#define member(type, section, name) ((section) + offsetof(type, name))

Test(archive_forged, the_unchanged_archive_is_loaded)
{
    must(load_resealed());
    assert_valid(to.world);
}

Test(archive_forged, slot_counts_add_up)
{
    char *world = find_section(QUERN__SECTION_WORLD, 0);
    const uint32_t slot_count = get(member(quern__world_section, world, slot_count));
    assert_cannot_be(member(quern__world_section, world, slot_count), slot_count + 1);
    assert_cannot_be(member(quern__world_section, world, row_count), slot_count);
    assert_cannot_be(member(quern__world_section, world, first_handle_high), 1);
    assert_cannot_be(member(quern__world_section, world, first_handle_high), 1u << 24);
}

/* The sum is correct, but the sections differ from the counts. */
Test(archive_forged, slot_counts_match_the_sections)
{
    char *world = find_section(QUERN__SECTION_WORLD, 0);
    const uint32_t row_count = get(member(quern__world_section, world, row_count)), more = row_count + 1;
    const uint32_t free_count = get(member(quern__world_section, world, free_count)),
                   fewer = free_count - 1;
    memcpy(member(quern__world_section, world, row_count), &more, sizeof more);
    assert_cannot_be(member(quern__world_section, world, free_count), fewer);
    world = find_section(QUERN__SECTION_WORLD, 0);
    memcpy(member(quern__world_section, world, free_count), &fewer, sizeof fewer);
    assert_cannot_be(member(quern__world_section, world, retired_count), 1);
}

Test(archive_forged, a_free_slot_is_unique_and_has_a_use_count)
{
    char *slot = find_section(QUERN__SECTION_FREE, 0);
    const uint32_t other = get(slot + sizeof(quern__free_section));
    assert_cannot_be(slot, other);
    assert_cannot_be(slot, quern_entity_index(chain[0]));
    assert_cannot_be(slot, CHAIN_COUNT + FREE_COUNT + 2);
    assert_cannot_be(slot + 4, 0);
    assert_cannot_be(slot + 4, 1u << 24);
}

Test(archive_forged, an_archetype_has_a_possible_layout)
{
    char *first = find_section(QUERN__SECTION_ARCHETYPE, 1);
    cr_assert_eq(get(member(quern__archetype_section, first, layout_index)), 1);
    assert_cannot_be(member(quern__archetype_section, first, layout_index), 0);
    assert_cannot_be(member(quern__archetype_section, first, layout_index), QUERN_MAX_ARCHETYPES);
    assert_cannot_be(member(quern__archetype_section, first, zero), 1);
    char *second = find_section(QUERN__SECTION_ARCHETYPE, 2);
    assert_cannot_be(member(quern__archetype_section, second, layout_index), 1);
    memcpy(member(quern__archetype_section, second, layout_index), &(uint32_t){QUERN_MAX_ARCHETYPES - 1},
           4);
    must(load_resealed());
    assert_valid(to.world);
}

Test(archive_forged, an_archetype_has_known_types_and_one_level)
{
    char *of_children = find_section(QUERN__SECTION_ARCHETYPE, 2) + sizeof(quern__archetype_section);
    const uint32_t relation = get(of_children), level = get(of_children + 4);
    assert_cannot_be(of_children, 1000);
    memcpy(of_children, &level, sizeof level);
    must_refuse(LAYOUT_MISMATCH, to.world, load_resealed());
    memcpy(of_children + 4, &relation, sizeof relation);
    must_refuse(LAYOUT_MISMATCH, to.world, load_resealed());
    char *other = find_section(QUERN__SECTION_ARCHETYPE, 3) + sizeof(quern__archetype_section);
    assert_cannot_be(of_children + 4, get(other + 4)); /* the level of its children */
}

Test(archive_forged, row_counts_match_the_archetype)
{
    char *rows = find_section(QUERN__SECTION_ROWS, 1);
    assert_cannot_be(rows, 0);
    assert_cannot_be(rows, 2);
    assert_cannot_be(member(quern__rows_section, rows, zero), 1);
    char *archetype = find_section(QUERN__SECTION_ARCHETYPE, 2);
    assert_cannot_be(member(quern__archetype_section, archetype, row_count), 2);
}

Test(archive_forged, handles_of_rows_are_distinct_and_have_slots)
{
    char *handle = find_section(QUERN__SECTION_ROWS, 1) + sizeof(quern__rows_section);
    assert_cannot_be(handle, quern_entity_index(chain[2]));
    assert_cannot_be(handle, CHAIN_COUNT + FREE_COUNT + 2);
    assert_cannot_be(handle + 4, get(handle + 4) ^ 1u << 24);   /* a handle of another world */
    assert_cannot_be(handle + 4, get(handle + 4) & ~0xFFFFFFu); /* generation 0 */
}

/* Two entities at the highest level become each other's parents, in rows and in links. */
Test(archive_forged, the_highest_level_has_no_cycle)
{
    const quern_entity child = chain[17], target = chain[18];
    uint32_t found_count = 0;
    for (uint32_t n = 0; n < CHAIN_COUNT - 1; n++) {
        char *links = find_section(QUERN__SECTION_LINKS, n) + sizeof(quern__links_section);
        if (get(links + 8) != quern_entity_index(child)) continue;
        memcpy(links, &(uint32_t){quern_entity_index(target)}, 4);
        found_count++;
    }
    for (uint32_t n = 1; n < QUERN_MAX_RELATION_LEVEL + 2 && found_count == 1; n++) {
        char *rows = find_section(QUERN__SECTION_ROWS, n);
        const uint32_t row_count = get(rows);
        char *handles = rows + sizeof(quern__rows_section), *targets = handles + row_count * 8;
        for (uint32_t i = 0; i < row_count; i++) {
            if (get(handles + i * 8) != quern_entity_index(child)) continue;
            memcpy(targets + i * 8, &(uint32_t){quern_entity_index(target)}, 4);
            found_count++;
        }
    }
    cr_assert_eq(found_count, 2);
    assert_forged();
}

Test(archive_forged, links_agree_with_rows)
{
    char *links = find_section(QUERN__SECTION_LINKS, 0);
    const uint32_t target = get(links + 8), child = get(links + 16);
    assert_cannot_be(links, 0); /* not a relation */
    assert_cannot_be(links, 1000);
    assert_cannot_be(links + 4, 1);
    assert_cannot_be(links + 8, child); /* its own child */
    assert_cannot_be(links + 8, 1000);
    assert_cannot_be(links + 8, quern_entity_index(chain[5]));
    assert_cannot_be(links + 12, 0);
    assert_cannot_be(links + 12, 2);
    assert_cannot_be(links + 16, target);
    assert_cannot_be(links + 16, 1000);
    assert_cannot_be(links + 16, quern_entity_index(chain[2])); /* has another parent already */
    assert_cannot_be(links + 16, 0);                            /* a free slot */
}

Test(archive_forged, only_existing_rows_are_disabled)
{
    /* handles, positions, points and other values of the twins; then the bit count and the bits */
    const size_t values_bytes = 2 * (sizeof(quern_entity) + sizeof(scene_place) + sizeof(scene_health));
    uint32_t n = 0;
    while (get(find_section(QUERN__SECTION_ROWS, n)) != 2)
        n++;
    char *bit_column = find_section(QUERN__SECTION_ROWS, n) + sizeof(quern__rows_section) + values_bytes;
    cr_assert_eq(get(bit_column), 1);
    cr_assert_eq(get(bit_column + 8), 1);
    assert_cannot_be(bit_column, 2);
    assert_cannot_be(bit_column + 8, 4);
    assert_cannot_be(bit_column, 0);
    memcpy(bit_column + 8, &(uint32_t){2}, 4); /* the bit of the other twin, which exists */
    must(load_resealed());
    assert_valid(to.world);
}

Test(archive_forged, names_belong_to_alive_entities_and_are_unique)
{
    char *first = find_section(QUERN__SECTION_NAMES, 0), *second = find_section(QUERN__SECTION_NAMES, 1);
    assert_cannot_be(first, get(second));
    assert_cannot_be(first, 0); /* a free slot */
    assert_cannot_be(first, 1000);
    first[5] = '/';
    assert_forged();
    first[4] = 0;
    assert_forged();
    first[5] = 'b'; /* the name of the other root */
    must_refuse(SIBLING_NAME_TAKEN, to.world, load_resealed());
}

Test(archive_forged, values_of_a_component_with_hooks_are_rejected)
{
    char *type = find_section(QUERN__SECTION_TYPE, 0);
    const uint32_t flags = get(member(quern__type_section, type, flags));
    assert_cannot_be(member(quern__type_section, type, flags), flags | QUERN__ARCHIVED_HAS_HOOKS);
}

Test(archive_forged, types_satisfy_the_rules_of_registration)
{
    char *type = find_section(QUERN__SECTION_TYPE, 0);
    assert_cannot_be(member(quern__type_section, type, size_bytes), QUERN_MAX_COMPONENT_BYTES + 1);
    assert_cannot_be(member(quern__type_section, type, alignment_bytes), 3);
    assert_cannot_be(member(quern__type_section, type, role), QUERN__ROLE_COUNT);
    assert_cannot_be(member(quern__type_section, type, role), QUERN__ROLE_RELATION);
    assert_cannot_be(member(quern__type_section, type, role), QUERN__ROLE_LEVEL);
    assert_cannot_be(member(quern__type_section, type, role), QUERN__ROLE_DISABLED);
    assert_cannot_be(member(quern__type_section, type, field_count), QUERN_MAX_FIELDS + 1);
}

Test(archive_forged, levels_belong_to_a_relation_with_levels)
{
    uint32_t n = 0;
    while (get(member(quern__type_section, find_section(QUERN__SECTION_TYPE, n), role)) !=
           QUERN__ROLE_LEVEL)
        n++;
    char *level = find_section(QUERN__SECTION_TYPE, n),
         *relation = find_section(QUERN__SECTION_TYPE, n - 1);
    assert_cannot_be(member(quern__type_section, level, level), 0);
    assert_cannot_be(member(quern__type_section, level, level), QUERN_MAX_RELATION_LEVEL + 1);
    assert_cannot_be(member(quern__type_section, level, level), 3); /* its rows have another level */
    assert_cannot_be(member(quern__type_section, level, relation), 0);
    assert_cannot_be(member(quern__type_section, level, relation), 1000);
    assert_cannot_be(member(quern__type_section, relation, policy), QUERN_TARGET_REFUSES + 1);
}

Test(archive_forged, a_resource_has_as_many_bytes_as_its_size)
{
    char *resource = find_section(QUERN__SECTION_RESOURCE, 0);
    const uint32_t size_bytes = get(member(quern__type_section, resource, size_bytes));
    assert_cannot_be(member(quern__type_section, resource, size_bytes), size_bytes + 8);
    assert_cannot_be(member(quern__type_section, resource, size_bytes), size_bytes - 8);
    assert_cannot_be(member(quern__type_section, resource, size_bytes), 0x7FFFFFFF);
}

/* Exchanges adjacent sections. */
Test(archive_forged, sections_are_in_order)
{
    static const quern__section_kind kinds[] = {QUERN__SECTION_WORLD, QUERN__SECTION_TYPE,
                                                QUERN__SECTION_LINKS, QUERN__SECTION_ARCHETYPE,
                                                QUERN__SECTION_FREE,  QUERN__SECTION_NAMES};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint32_t other = 0; other <= QUERN__SECTION_END + 1; other++) {
            /* ids of outside entities precede names, and are ignored without a callback */
            if (other == (uint32_t)kinds[i] ||
                (kinds[i] == QUERN__SECTION_NAMES && other == QUERN__SECTION_OUTSIDE))
                continue;
            char *head = find_section(kinds[i], 0) - sizeof(quern__section_head);
            assert_cannot_be(head, other);
        }
}
