/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Built twice: with the configuration of the library, and with zstd if it is available. */

#include "core/archive/archive_internal.h"
#include "tests/core/archive/scene.h"
#include "tests/support/setup.h"

static const quern_save_def compressed = {.compress = true};

Test(archive_compress, a_compressed_archive_is_smaller_and_gives_the_same_world)
{
    if (!quern__archive_can_compress()) cr_skip_test("needs a build with zstd");
    scene from, to;
    scene_open(&from, NULL);
    scene_open(&to, NULL);
    scene_fill(&from, 20000);
    quern_byte_buffer plain = scene_save(&from), memory = {0};
    must(quern_world_save(from.world, quern_sink_bytes(&memory), &compressed));
    cr_assert_lt(memory.size_bytes, plain.size_bytes * 3 / 4);
    must(scene_load(&to, &memory, NULL, NULL));
    cr_assert_eq(quern_world_hash(to.world), quern_world_hash(from.world));
    assert_valid(to.world);
    quern_byte_buffer_release(&plain);
    quern_byte_buffer_release(&memory);
    scene_close(&from);
    scene_close(&to);
}

Test(archive_compress, damage_is_detected)
{
    if (!quern__archive_can_compress()) cr_skip_test("needs a build with zstd");
    scene from, to;
    scene_open(&from, NULL);
    scene_open(&to, NULL);
    scene_fill(&from, 0);
    quern_byte_buffer memory = {0};
    must(quern_world_save(from.world, quern_sink_bytes(&memory), &compressed));
    for (size_t i = 0; i < memory.size_bytes; i++) {
        ((char *)memory.bytes)[i] ^= 16;
        cr_assert_eq(scene_load(&to, &memory, NULL, NULL), QUERN_ERROR_BAD_ARCHIVE, "byte %zu", i);
        ((char *)memory.bytes)[i] ^= 16;
    }
    must(scene_load(&to, &memory, NULL, NULL));
    quern_byte_buffer_release(&memory);
    scene_close(&from);
    scene_close(&to);
}

Test(archive_compress, compressing_without_zstd_is_rejected)
{
    if (quern__archive_can_compress()) cr_skip_test("needs a build without zstd");
    scene from;
    scene_open(&from, NULL);
    quern_byte_buffer memory = {0};
    must_refuse(UNAVAILABLE, from.world,
                quern_world_save(from.world, quern_sink_bytes(&memory), &compressed));
    cr_assert_eq(memory.size_bytes, 0);
    scene_close(&from);
}
