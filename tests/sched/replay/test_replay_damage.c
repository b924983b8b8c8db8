/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Recordings that are cut off, damaged or forged: their valid part runs, and the rest fails. */

#include "tests/sched/replay/reseal.h"
#include "tests/sched/replay/scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 2 };

typedef struct tiny_input {
    uint32_t push;
} tiny_input;

typedef struct tiny {
    quern_world *world;
    quern_schedule *schedule;
    quern_component health;
    quern_resource input;
} tiny;

static void hurt(quern_context *context, const quern_view *view)
{
    const tiny *it = quern_context_user_data(context);
    const tiny_input *in = quern_context_resource(context, it->input);
    health *all = QUERN_COLUMN(view, 0, health);
    for (uint32_t i = 0; i < view->count; i++)
        all[i].points -= (int32_t)(in->push & 0xFFFF);
}

static void open_tiny(tiny *it)
{
    const quern_schedule_def def = {.phases = {"act"}};
    must(quern_world_create(NULL, &it->world));
    must(QUERN_COMPONENT_REGISTER_FIELDS(it->world, &it->health, health, points));
    must(QUERN_RESOURCE_REGISTER_FIELDS(it->world, &it->input, tiny_input, push));
    for (int32_t i = 0; i < 2; i++)
        setup_entity_with(it->world, &it->health, 1);
    must(quern_schedule_create(it->world, &def, &it->schedule));
    must(quern_schedule_add_system(it->schedule,
                                   &(quern_system_def){.name = "hurt",
                                                       .run = hurt,
                                                       .terms = {quern_term_write(it->health)},
                                                       .resources = {{it->input, QUERN_ACCESS_READ}},
                                                       .user_data = it},
                                   NULL));
}

static void close_tiny(tiny *it)
{
    quern_schedule_destroy(it->schedule);
    quern_world_destroy(it->world);
}

static void record(quern_byte_buffer *memory, uint32_t frame_count)
{
    tiny it;
    quern_replay_recorder *recorder;
    open_tiny(&it);
    const quern_replay_recorder_def def = {.inputs = {it.input}, .detail = QUERN_REPLAY_ENTITIES};
    must(quern_replay_recorder_create(it.schedule, quern_sink_bytes(memory), &def, &recorder));
    for (uint32_t i = 0; i < frame_count; i++) {
        ((tiny_input *)quern_resource_get(it.world, it.input))->push = 10 + i;
        must(quern_replay_record(recorder, NULL, 1));
    }
    must(quern_replay_finish(recorder));
    close_tiny(&it);
}

/* The world that recordings run in. It is opened again only after a run has changed it, since opening takes longer
 * than most runs. */
static tiny kept;

static void drop_kept(void)
{
    if (kept.world != NULL) close_tiny(&kept);
    kept.world = NULL;
}

static quern_result run(const void *bytes, size_t size, quern_replay_report *report)
{
    if (kept.world == NULL) open_tiny(&kept);
    const uint64_t hash = quern_world_hash(kept.world);
    quern_error_clear();
    const quern_result result =
        quern_replay_run(kept.schedule, NULL, quern_source_bytes(bytes, size), NULL, report);
    assert_valid(kept.world);
    if (quern_world_hash(kept.world) != hash) drop_kept();
    return result;
}

static size_t read_nothing(void *user_data, void *bytes, size_t capacity_bytes)
{
    errno = EIO;
    return 0;
}

Test(replay_damage, source_that_fails_to_read_gives_its_reason)
{
    quern_replay_report report;
    open_tiny(&kept);
    cr_assert_eq(quern_replay_run(kept.schedule, NULL, (quern_source){.read = read_nothing}, NULL, &report),
                 QUERN_ERROR_BAD_ARCHIVE);
    const char *message = quern_error_message();
    cr_assert_eq(
        strstr(message, "quern_replay_run: the recording could not be read after byte 0, in block 0: "),
        message, "%s", message);
    cr_assert_not_null(strstr(message, strerror(EIO)), "%s", message);
    drop_kept();
}

Test(replay_damage, recordings_cut_off_at_any_byte_run_to_the_cut)
{
    quern_byte_buffer memory = {0};
    quern_replay_report report;
    record(&memory, FRAMES);
    uint64_t most = 0;
    for (size_t size = 0; size < memory.size_bytes; size++) {
        cr_assert_eq(run(memory.bytes, size, &report), QUERN_ERROR_BAD_ARCHIVE, "%zu", size);
        cr_assert(strstr(quern_error_message(), "quern_replay_run: the recording is cut off at byte ") ==
                      quern_error_message(),
                  "%s", quern_error_message());
        cr_assert_geq(report.frame_count, most);
        cr_assert_eq(report.difference, QUERN_REPLAY_NONE);
        most = report.frame_count;
    }
    cr_assert_eq(most, FRAMES);
    must(run(memory.bytes, memory.size_bytes, &report));
    drop_kept();
    quern_byte_buffer_release(&memory);
}

Test(replay_damage, every_flipped_bit_is_noticed)
{
    quern_byte_buffer memory = {0};
    quern_replay_report report;
    record(&memory, 1);
    unsigned char *bytes = memory.bytes;
    for (size_t bit = 0; bit < 8 * memory.size_bytes; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        cr_assert_eq(run(bytes, memory.size_bytes, &report), QUERN_ERROR_BAD_ARCHIVE, "bit %zu", bit);
        cr_assert_eq(report.difference, QUERN_REPLAY_NONE);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    drop_kept();
    quern_byte_buffer_release(&memory);
}

/* With corrected checksums, the contents must be checked or be harmless. */
Test(replay_damage, forged_bytes_do_no_harm)
{
    static const unsigned char changes[] = {0x01, 0x10, 0x80, 0xFF};
    quern_byte_buffer memory = {0};
    quern_replay_report report;
    record(&memory, 1);
    unsigned char *copy = malloc(memory.size_bytes);
    uint32_t refused = 0, parted = 0;
    for (size_t at = 0; at < memory.size_bytes; at++)
        for (uint32_t i = 0; i < sizeof changes; i++) {
            memcpy(copy, memory.bytes, memory.size_bytes);
            copy[at] ^= changes[i];
            replay_reseal(copy, memory.size_bytes);
            const quern_result result = run(copy, memory.size_bytes, &report);
            refused += result == QUERN_ERROR_BAD_ARCHIVE;
            parted += result == QUERN_ERROR_DIVERGED;
            cr_assert(result == QUERN_OK || result == QUERN_ERROR_BAD_ARCHIVE ||
                          result == QUERN_ERROR_DIVERGED || result == QUERN_ERROR_LAYOUT_MISMATCH ||
                          result == QUERN_ERROR_UNKNOWN_COMPONENT || result == QUERN_ERROR_UNKNOWN_RESOURCE,
                      "byte %zu: %s", at, quern_error_message());
            cr_assert(result != QUERN_OK || report.difference == QUERN_REPLAY_NONE);
        }
    cr_assert_gt(refused, 100);
    cr_assert_gt(parted, 100);
    free(copy);
    drop_kept();
    quern_byte_buffer_release(&memory);
}

/* The frame in which a program crashed has its inputs, and no state after it. */
Test(replay_damage, the_last_inputs_run_without_a_state)
{
    quern_byte_buffer memory = {0};
    tiny it;
    quern_replay_report report;
    record(&memory, FRAMES);
    const size_t size = replay_find_block(memory.bytes, memory.size_bytes, QUERN__REPLAY_STATE, 2);
    open_tiny(&it);
    cr_assert_eq(quern_replay_run(it.schedule, NULL, quern_source_bytes(memory.bytes, size), NULL, &report),
                 QUERN_ERROR_BAD_ARCHIVE);
    cr_assert_eq(report.frame_count, 1);
    cr_assert_eq(stats_of_frame(it.schedule).frame_index, 1, "the second ran");
    cr_assert_eq(((tiny_input *)quern_resource_get(it.world, it.input))->push, 11);
    close_tiny(&it);
    quern_byte_buffer_release(&memory);
}

Test(replay_damage, a_frame_out_of_turn_is_refused)
{
    quern_byte_buffer memory = {0};
    quern_replay_report report;
    record(&memory, FRAMES);
    unsigned char *bytes = (unsigned char *)memory.bytes;
    const size_t second = replay_find_block(bytes, memory.size_bytes, QUERN__REPLAY_FRAME, 2);
    cr_assert_eq(bytes[second + sizeof(replay_block)], 1, "frames are numbered from 0");
    bytes[second + sizeof(replay_block)] = 2;
    replay_reseal(bytes, memory.size_bytes);
    cr_assert_eq(run(bytes, memory.size_bytes, &report), QUERN_ERROR_BAD_ARCHIVE);
    cr_assert_eq(report.frame_count, 1);
    cr_assert_not_null(strstr(quern_error_message(), "FRAME block of the next frame"), "%s",
                       quern_error_message());
    drop_kept();
    quern_byte_buffer_release(&memory);
}

typedef struct forgery {
    uint32_t block, count; /* the count-th block of this kind */
    size_t offset;         /* of the changed byte, from the block's first one */
    unsigned char byte;
    const char *words; /* of the message */
} forgery;

Test(replay_damage, blocks_out_of_place_are_named)
{
    enum { PAYLOAD = sizeof(replay_block) };
    static const forgery forgeries[] = {
        {QUERN__REPLAY_BEGIN, 1, 0, QUERN__REPLAY_END, "a BEGIN block was expected"},
        {QUERN__REPLAY_START, 1, 0, QUERN__REPLAY_STATE, "a START block was expected"},
        {QUERN__REPLAY_STATE, 2, 0, QUERN__REPLAY_START, "a STATE block was expected"},
        {QUERN__REPLAY_STATE, 2, PAYLOAD, 2, "it belongs to another frame"},
        {QUERN__REPLAY_FRAME, 2, PAYLOAD + 15, 0xbf, "the frame before it has an invalid time step"},
        {QUERN__REPLAY_END, 1, 0, QUERN__REPLAY_BEGIN, "a FRAME or END block was expected"},
        {QUERN__REPLAY_END, 1, PAYLOAD, FRAMES + 1, "a FRAME or END block was expected"},
    };
    for (uint32_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
        const forgery *forged = &forgeries[i];
        quern_byte_buffer memory = {0};
        quern_replay_report report;
        record(&memory, FRAMES);
        unsigned char *bytes = (unsigned char *)memory.bytes;
        const size_t at = replay_find_block(bytes, memory.size_bytes, forged->block, forged->count);
        cr_assert_lt(at, memory.size_bytes);
        cr_assert_neq(bytes[at + forged->offset], forged->byte);
        bytes[at + forged->offset] = forged->byte;
        replay_reseal(bytes, memory.size_bytes);
        cr_assert_eq(run(bytes, memory.size_bytes, &report), QUERN_ERROR_BAD_ARCHIVE, "forgery %u", i);
        cr_assert_not_null(strstr(quern_error_message(), forged->words), "forgery %u: %s", i,
                           quern_error_message());
        drop_kept();
        quern_byte_buffer_release(&memory);
    }
}

Test(replay_damage, other_files_are_refused)
{
    quern_replay_report report;
    static const char text[] = "This is a letter, and no recording.";
    cr_assert_eq(run(text, sizeof text, &report), QUERN_ERROR_BAD_ARCHIVE);
    cr_assert_str_eq(quern_error_message(),
                     "quern_replay_run: the source is not a recording: it does not begin with 'QUERNRPL'");
    static const char later[16] = "QUERNRPL\7";
    cr_assert_eq(run(later, sizeof later, &report), QUERN_ERROR_BAD_ARCHIVE);
    cr_assert(strstr(quern_error_message(), "the recording has version 7") != NULL);
    drop_kept();
}
