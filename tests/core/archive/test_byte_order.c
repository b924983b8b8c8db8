/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/support/fixture.h"

#include <stdint.h>

/* Archives and deltas are little-endian. A big-endian machine refuses to write and read them; a little-endian one does
 * both. */

static void open(void)
{
    world = setup_world();
    setup_entity(world);
}

TestSuite(byte_order, .init = open, .fini = close_world);

static bool is_big_endian(void)
{
    const uint16_t one = 1;
    return *(const unsigned char *)&one == 0;
}

/* Asserts that a call succeeds, or, on a big-endian machine, that it is refused and changes nothing. */
#define expect_little_endian(call)                   \
    do {                                             \
        if (is_big_endian())                         \
            must_refuse(UNAVAILABLE, world, (call)); \
        else                                         \
            must(call);                              \
    } while (0)

Test(byte_order, archives_need_a_little_endian_machine)
{
    quern_byte_buffer bytes = {0};
    quern_archive *list;
    quern_save_session *session = NULL;
    expect_little_endian(quern_world_save(world, quern_sink_bytes(&bytes), NULL));
    must(quern_archive_create(world, &list));
    expect_little_endian(quern_archive_save(list, quern_sink_bytes(&bytes), NULL));
    expect_little_endian(quern_save_session_create(world, NULL, &session));
    cr_assert_eq(bytes.size_bytes == 0, is_big_endian());
    quern_save_session_destroy(session);
    quern_archive_destroy(list);
    quern_byte_buffer_release(&bytes);
}

Test(byte_order, a_big_endian_machine_loads_no_archive)
{
    static const char archive[256] = "any bytes";
    const quern_result expected = is_big_endian() ? QUERN_ERROR_UNAVAILABLE : QUERN_ERROR_BAD_ARCHIVE;
    assert_refused(world, expected,
                   quern_world_load(world, quern_source_bytes(archive, sizeof archive), NULL, NULL));
}

Test(byte_order, deltas_need_a_little_endian_machine)
{
    static const char delta_bytes[256] = "any bytes";
    const quern_result expected = is_big_endian() ? QUERN_ERROR_UNAVAILABLE : QUERN_ERROR_BAD_ARCHIVE;
    quern_byte_buffer bytes = {0};
    quern_history *history;
    quern_delta *delta;
    quern_delta_applier *applier;
    must(quern_history_create(world, NULL, &history));
    must(quern_history_save(history, 0, NULL));
    setup_entity(world);
    must(quern_history_save(history, 1, NULL));
    must(quern_delta_create(history, 0, 1, &delta));
    expect_little_endian(quern_delta_write(delta, NULL, quern_sink_bytes(&bytes)));
    must(quern_delta_applier_create(world, &applier));
    assert_refused(world, expected,
                   quern_delta_apply(applier, quern_source_bytes(delta_bytes, sizeof delta_bytes)));
    quern_delta_applier_destroy(applier);
    quern_delta_destroy(delta);
    quern_history_destroy(history);
    quern_byte_buffer_release(&bytes);
}
