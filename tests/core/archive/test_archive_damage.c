/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Damaged, truncated or forged archives: they are rejected without any change, or they load into a valid
 * world. */

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
