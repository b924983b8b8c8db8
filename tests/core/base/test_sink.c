/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "core/base/text.h"
#include "tests/support/setup.h"

#include <errno.h>
#include <stdlib.h>

/* ------------------------------------------------------------------------------------------ buffers */

static bool give(quern_sink sink, const char *text)
{
    return sink.write(sink.user_data, text, strlen(text));
}

Test(sink, text_buffer_is_terminated_and_counts_the_whole_length)
{
    for (size_t capacity_bytes = 1; capacity_bytes < 16; capacity_bytes++) {
        char text[16];
        memset(text, 'x', sizeof text);
        quern_text_buffer buffer = {text, capacity_bytes, 77};
        const quern_sink sink = quern_sink_text(&buffer);
        cr_assert_eq(buffer.length_bytes, 0u);
        cr_assert_str_eq(text, "");
        cr_assert(give(sink, "frame") && give(sink, "") && give(sink, "s run"));
        cr_assert_eq(buffer.length_bytes, 10u);
        cr_assert_eq(strlen(text), capacity_bytes > 10 ? 10 : capacity_bytes - 1);
        cr_assert_eq(memcmp(text, "frames run", strlen(text)), 0);
        for (size_t i = strlen(text) + 1; i < sizeof text; i++)
            cr_assert_eq(text[i], 'x', "it wrote behind the end");
    }
}

Test(sink, text_buffer_without_memory_only_counts)
{
    char kept = 'x';
    quern_text_buffer buffer = {NULL, SIZE_MAX, 0};
    cr_assert(give(quern_sink_text(&buffer), "12345"));
    cr_assert_eq(buffer.length_bytes, 5u);
    buffer = (quern_text_buffer){&kept, 0, 0};
    cr_assert(give(quern_sink_text(&buffer), "12345"));
    cr_assert_eq(buffer.length_bytes, 5u);
    cr_assert_eq(kept, 'x');
}

/* -------------------------------------------------------------------------------------------- files */

Test(sink, released_bytes_can_be_written_again)
{
    quern_byte_buffer buffer = {0};
    quern_byte_buffer_release(NULL);
    quern_byte_buffer_release(&buffer);
    cr_assert(give(quern_sink_bytes(&buffer), ""));
    cr_assert_null(buffer.bytes, "nothing was written");
    for (uint32_t round = 0; round < 2; round++) {
        cr_assert(give(quern_sink_bytes(&buffer), "frame") && give(quern_sink_bytes(&buffer), "s"));
        cr_assert_eq(buffer.size_bytes, 6u);
        cr_assert_eq(memcmp(buffer.bytes, "frames", 6), 0);
        quern_byte_buffer_release(&buffer);
        cr_assert(buffer.bytes == NULL && buffer.size_bytes == 0 && buffer.capacity_bytes == 0);
    }
}

Test(sink, file_receives_all_bytes_and_remains_open)
{
    FILE *file = tmpfile();
    cr_assert_not_null(file);
    const quern_sink sink = quern_sink_file(file);
    cr_assert(give(sink, "one ") && give(sink, "two") && give(sink, ""));
    char text[16] = "";
    rewind(file);
    cr_assert_eq(fread(text, 1, sizeof text, file), 7u);
    cr_assert_str_eq(text, "one two");
    fclose(file);
}

Test(sink, sink_of_null_is_empty)
{
    cr_assert_null(quern_sink_file(NULL).write);
    cr_assert_null(quern_sink_text(NULL).write);
    must_refuse(NULL_ARGUMENT, NULL, quern__check_sink(quern_sink_file(NULL), "call"));
}

/* ---------------------------------------------------------------------------------------- printers */

/* A sink that stores text, and fails once its limit is reached. */
typedef struct short_sink {
    char text[8192];
    size_t used_bytes, limit_bytes;
    uint32_t call_count, fail_count;
    int error;
} short_sink;

static bool write_short(void *user_data, const char *text, size_t bytes)
{
    short_sink *sink = user_data;
    sink->call_count++;
    if (sink->used_bytes + bytes > sink->limit_bytes || (bytes == 0 && sink->limit_bytes == 0)) {
        sink->fail_count++;
        errno = sink->error;
        return false;
    }
    memcpy(sink->text + sink->used_bytes, text, bytes);
    sink->used_bytes += bytes;
    return true;
}

static short_sink *open_sink(size_t limit_bytes)
{
    short_sink *sink = calloc(1, sizeof *sink);
    cr_assert_not_null(sink);
    sink->limit_bytes = limit_bytes;
    return sink;
}

static quern_sink interface_of(short_sink *sink)
{
    return (quern_sink){.write = write_short, .user_data = sink};
}

/* Pieces of all lengths up to more than the size of a printer's buffer. */
Test(sink, printer_writes_pieces_of_any_length)
{
    short_sink *sink = open_sink(SIZE_MAX);
    quern__printer printer;
    char piece[2 * QUERN__PRINTER_BYTES], expected[8192];
    memset(piece, '-', sizeof piece);
    size_t expected_bytes = 0;
    quern__printer_open(&printer, interface_of(sink));
    for (size_t bytes = 0; bytes < sizeof piece && expected_bytes + bytes + 8 < sizeof expected;
         bytes += 61) {
        quern__print_bytes(&printer, piece, bytes);
        memset(expected + expected_bytes, '-', bytes);
        expected_bytes += bytes;
        quern__print(&printer, "%05zu,", bytes);
        expected_bytes += (size_t)snprintf(expected + expected_bytes, 8, "%05zu,", bytes);
    }
    must(quern__printer_close(&printer, "call"));
    cr_assert_eq(sink->used_bytes, expected_bytes);
    cr_assert_eq(memcmp(sink->text, expected, expected_bytes), 0);
    free(sink);
}

Test(sink, printer_stops_at_the_first_failed_write_and_reports_it)
{
    for (size_t limit_bytes = 0; limit_bytes < 3 * QUERN__PRINTER_BYTES; limit_bytes += 97) {
        short_sink *sink = open_sink(limit_bytes);
        sink->error = limit_bytes % 2 != 0 ? ENOSPC : 0;
        quern__printer printer;
        quern__printer_open(&printer, interface_of(sink));
        for (int i = 0; i < 500; i++)
            quern__print(&printer, "%d, ", i);
        must_refuse(IO, NULL, quern__printer_close(&printer, "some_call"));
        cr_assert_eq(strncmp(quern_error_message(), "some_call: ", 11), 0);
        cr_assert_eq(strstr(quern_error_message(), strerror(ENOSPC)) != NULL, limit_bytes % 2 != 0);
        cr_assert_eq(sink->fail_count, 1u, "it was called again after it had failed");
        free(sink);
    }
}

/* Any call that writes text: first to an unlimited sink, then to sinks that fail earlier and earlier. */
typedef quern_result write_call(void *subject, quern_sink sink);

static void assert_write_call(write_call *call, void *subject)
{
    short_sink *whole = open_sink(sizeof whole->text);
    must(call(subject, interface_of(whole)));
    cr_assert_gt(whole->used_bytes, 40u);
    for (size_t limit_bytes = 0; limit_bytes < whole->used_bytes; limit_bytes += 13) {
        short_sink *sink = open_sink(limit_bytes);
        must_refuse(IO, NULL, call(subject, interface_of(sink)));
        cr_assert_eq(memcmp(sink->text, whole->text, sink->used_bytes), 0);
        cr_assert_eq(sink->fail_count, 1u);
        free(sink);
    }
    free(whole);
}

static quern_result describe_text(void *subject, quern_sink sink)
{
    return quern_schedule_describe(subject, QUERN_DESCRIBE_TEXT, sink);
}

static quern_result describe_json(void *subject, quern_sink sink)
{
    return quern_schedule_describe(subject, QUERN_DESCRIBE_JSON, sink);
}

static quern_result write_profile(void *subject, quern_sink sink)
{
    return quern_schedule_write_profile(subject, sink);
}

static quern_result describe_jobs(void *subject, quern_sink sink)
{
    return quern_jobs_describe(subject, sink);
}

static quern_result write_trace(void *subject, quern_sink sink)
{
    return quern_trace_write(subject, sink);
}

static void do_nothing(quern_context *context, const quern_view *view) {}

Test(sink, everything_that_writes_reports_a_sink_that_fails)
{
    quern_world *world = setup_world();
    quern_schedule *schedule;
    must(quern_schedule_create(world, NULL, &schedule));
    const quern_system_def def = {.name = "nothing", .run = do_nothing};
    must(quern_schedule_add_system(schedule, &def, NULL));
    assert_write_call(describe_text, schedule);
    assert_write_call(describe_json, schedule);
    must(quern_schedule_set_profiling(schedule, true));
    must(quern_schedule_run(schedule, NULL, 0));
    assert_write_call(write_profile, schedule);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);

    quern_jobs *jobs;
    must(quern_jobs_create(NULL, &jobs));
    assert_write_call(describe_jobs, jobs);
    quern_jobs_destroy(jobs);

    quern_trace *trace;
    must(quern_trace_create(NULL, &trace));
    assert_write_call(write_trace, trace);
    quern_trace_destroy(trace);
}
