/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The trace event format: an object with an array of events. "X" is an event with a begin and a duration in
 * microseconds; "M" names processes and threads. Viewers nest the events of a thread by time, and events
 * with the same begin by their order in the file. So events are sorted by begin, and longer ones first. */
#include "core/base/executor.h"
#include "core/base/file.h"
#include "core/base/json_printer.h"
#include "sched/observe/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { EVENTS_ALIGNMENT_BYTES = 64, LINE_DEPTH = 2 }; /* one event per line */

/* Category of each kind of event in the file, and the names of its arguments. */
static const struct {
    const char *category;
    const char *ordinal, *count; /* NULL if events of the kind have no such argument */
} kinds[QUERN__TRACE_KIND_COUNT] = {
    [QUERN__TRACE_ZONE] = {"zone", NULL, NULL},
    [QUERN__TRACE_FRAME] = {"frame", "frame", "schedule"},
    [QUERN__TRACE_PASS] = {"pass", "first_chunk", "chunks"},
    [QUERN__TRACE_SYSTEM] = {"system", "view", "rows"},
    [QUERN__TRACE_BEGIN] = {"begin", NULL, NULL},
    [QUERN__TRACE_END] = {"end", NULL, NULL},
    [QUERN__TRACE_SYNC] = {"sync", NULL, "commands"},
    [QUERN__TRACE_STEAL] = {"steal", NULL, "items"},
    [QUERN__TRACE_SLEEP] = {"sleep", NULL, NULL},
    [QUERN__TRACE_LOOP] = {"loop", NULL, NULL},
    [QUERN__TRACE_JOB] = {"job", NULL, NULL},
};

static const char *const stages[] = {
    [QUERN__STAGE_SYNC] = "sync",       [QUERN__STAGE_GATHER] = "gather", [QUERN__STAGE_MERGE] = "merge",
    [QUERN__STAGE_RESOLVE] = "resolve", [QUERN__STAGE_APPLY] = "apply",
};

typedef struct trace_writer {
    quern_trace *trace;
    quern__json json;
    quern__trace_event *events; /* room for a whole ring */
} trace_writer;

/* ------------------------------------------------------------------------------------------ sorting */

static bool comes_before(const quern__trace_event *a, const quern__trace_event *b)
{
    if (a->begin_ns != b->begin_ns) return a->begin_ns < b->begin_ns;
    return a->duration_ns > b->duration_ns;
}

static void swap_events(quern__trace_event *a, quern__trace_event *b)
{
    const quern__trace_event kept = *a;
    *a = *b;
    *b = kept;
}

/* Restores the order of a heap in which only the root may violate it. The root is the last event in order. */
static void sift_down(quern__trace_event *events, uint32_t root, uint32_t count)
{
    for (;;) {
        uint32_t child = 2 * root + 1;
        if (child >= count) return;
        if (child + 1 < count && comes_before(&events[child], &events[child + 1])) child++;
        if (!comes_before(&events[root], &events[child])) return;
        swap_events(&events[root], &events[child]);
        root = child;
    }
}

/* A heap sort, because it needs no memory; qsort may allocate outside of the trace's allocator. */
static void sort_events(quern__trace_event *events, uint32_t count)
{
    for (uint32_t root = count / 2; root > 0; root--)
        sift_down(events, root - 1, count);
    for (uint32_t end = count; end > 1; end--) {
        swap_events(&events[0], &events[end - 1]);
        sift_down(events, 0, end - 1);
    }
}

/* ------------------------------------------------------------------------------------------ writing */

static void open_event(quern__json *json, const char *phase, uint32_t track)
{
    quern__json_open(json, NULL, '{');
    quern__json_text(json, "ph", phase);
    quern__json_integer(json, "pid", 1);
    quern__json_integer(json, "tid", track + 1);
}

static void write_track_name(trace_writer *writer, uint32_t index)
{
    quern__json *json = &writer->json;
    char name[QUERN_MAX_NAME_BYTES + 1];
    quern__trace_copy_track_name(writer->trace, index, name);
    if (name[0] == '\0') snprintf(name, sizeof name, "worker %" PRIu32, index);
    open_event(json, "M", index);
    quern__json_text(json, "name", "thread_name");
    quern__json_open(json, "args", '{');
    quern__json_text(json, "name", name);
    quern__json_close(json, '}');
    quern__json_close(json, '}');
    open_event(json, "M", index);
    quern__json_text(json, "name", "thread_sort_index");
    quern__json_open(json, "args", '{');
    quern__json_integer(json, "sort_index", index);
    quern__json_close(json, '}');
    quern__json_close(json, '}');
}

/* Returns the name of an event without a name of its own. */
static const char *name_of_kind(const quern__trace_event *event)
{
    if (event->kind != QUERN__TRACE_SYNC) return kinds[event->kind].category;
    return event->ordinal < QUERN__COUNT_OF(stages) ? stages[event->ordinal] : "?";
}

static void write_name(trace_writer *writer, const quern__trace_event *event)
{
    char name[QUERN_MAX_NAME_BYTES + 1];
    if (event->name != QUERN__TRACE_NO_NAME) quern__trace_copy_name(writer->trace, event->name, name);
    quern__json_text(&writer->json, "name",
                     event->name != QUERN__TRACE_NO_NAME ? name : name_of_kind(event));
}

/* Whether the event has a count. Of the events of a sync point, only the whole sync point has one. */
static bool has_count(const quern__trace_event *event)
{
    if (event->kind == QUERN__TRACE_SYNC && event->ordinal != QUERN__STAGE_SYNC) return false;
    return kinds[event->kind].count != NULL;
}

static void write_args(quern__json *json, const quern__trace_event *event)
{
    if (!has_count(event)) return;
    quern__json_open(json, "args", '{');
    const char *ordinal = kinds[event->kind].ordinal;
    if (ordinal != NULL) quern__json_integer(json, ordinal, event->ordinal);
    quern__json_integer(json, kinds[event->kind].count, event->count);
    quern__json_close(json, '}');
}

/* Writes an event; times are in microseconds with three decimals. The start is read with relaxed order: it
 * changes only while the trace does not run. */
static void write_event(trace_writer *writer, uint32_t track, const quern__trace_event *event)
{
    quern__json *json = &writer->json;
    const quern_trace *trace = writer->trace;
    const uint64_t start_ns = atomic_load_explicit(&trace->start_ns, memory_order_relaxed);
    open_event(json, "X", track);
    quern__json_text(json, "cat", kinds[event->kind].category);
    write_name(writer, event);
    quern__json_decimal(json, "ts", event->begin_ns > start_ns ? event->begin_ns - start_ns : 0, 3);
    quern__json_decimal(json, "dur", event->duration_ns, 3);
    write_args(json, event);
    quern__json_close(json, '}');
}

static void write_tracks(trace_writer *writer)
{
    for (uint32_t track = 0; track < writer->trace->track_count; track++) {
        write_track_name(writer, track);
        const uint32_t count = quern__trace_read(writer->trace, track, writer->events);
        sort_events(writer->events, count);
        for (uint32_t i = 0; i < count; i++)
            write_event(writer, track, &writer->events[i]);
    }
}

/* Allocates memory in which the events of one track are sorted. */
static quern__trace_event *allocate_events(const quern_trace *trace, const char *function)
{
    quern__trace_event *events = quern__allocate(
        &trace->allocator, trace->capacity * sizeof(quern__trace_event), EVENTS_ALIGNMENT_BYTES);
    if (events == NULL)
        quern__fail(QUERN_ERROR_OUT_OF_MEMORY, "%s: out of memory for %u events per track", function,
                    trace->capacity);
    return events;
}

static void release_events(const quern_trace *trace, quern__trace_event *events)
{
    quern__release(&trace->allocator, events, trace->capacity * sizeof(quern__trace_event),
                   EVENTS_ALIGNMENT_BYTES);
}

static quern_result write_trace(trace_writer *writer, const char *function)
{
    quern_trace_stats stats;
    (void)quern_trace_get_stats(writer->trace, &stats);
    quern__json *json = &writer->json;
    quern__json_open(json, NULL, '{');
    quern__json_text(json, "displayTimeUnit", "ns");
    quern__json_open(json, "otherData", '{');
    quern__json_integer(json, "dropped", stats.dropped_count);
    quern__json_close(json, '}');
    quern__json_open(json, "traceEvents", '[');
    write_tracks(writer);
    quern__json_close(json, ']');
    quern__json_close(json, '}');
    return quern__printer_close(json->printer, function);
}

quern_result quern_trace_write(quern_trace *trace, quern_sink sink)
{
    if (trace == NULL) return quern__fail_null("quern_trace_write", "trace");
    quern_result result = quern__check_sink(sink, "quern_trace_write");
    if (result != QUERN_OK) return result;
    quern__printer printer;
    quern__printer_open(&printer, sink);
    trace_writer writer = {.trace = trace,
                           .json = {.printer = &printer, .line_depth = LINE_DEPTH},
                           .events = allocate_events(trace, "quern_trace_write")};
    if (writer.events == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    result = write_trace(&writer, "quern_trace_write");
    release_events(trace, writer.events);
    return result;
}

/* ------------------------------------------------------------------------------------------- saving */

static quern_result fail_file(const char *path, int error)
{
    return quern__fail(QUERN_ERROR_IO, "quern_trace_save: cannot write the trace '%s': %s", path,
                       strerror(error));
}

typedef struct trace_text {
    quern_trace *trace;
    quern__trace_event *events;
} trace_text;

static int write_text(void *user_data, quern_sink sink)
{
    const trace_text *text = user_data;
    quern__printer printer;
    quern__printer_open(&printer, sink);
    trace_writer writer = {.trace = text->trace,
                           .json = {.printer = &printer, .line_depth = LINE_DEPTH},
                           .events = text->events};
    if (write_trace(&writer, "quern_trace_save") == QUERN_OK) return 0;
    return printer.sink.error != 0 ? printer.sink.error : EIO;
}

quern_result quern_trace_save(quern_trace *trace, const char *path)
{
    if (trace == NULL) return quern__fail_null("quern_trace_save", "trace");
    if (path == NULL) return quern__fail_null("quern_trace_save", "path");
    trace_text text = {.trace = trace, .events = allocate_events(trace, "quern_trace_save")};
    if (text.events == NULL) return QUERN_ERROR_OUT_OF_MEMORY;
    const size_t path_bytes = strlen(path) + sizeof QUERN__TEMPORARY_SUFFIX;
    char *temporary_path = quern__allocate(&trace->allocator, path_bytes, EVENTS_ALIGNMENT_BYTES);
    quern_result result = QUERN_OK;
    if (temporary_path == NULL) {
        result = quern__fail(QUERN_ERROR_OUT_OF_MEMORY,
                             "quern_trace_save: out of memory for the name of the temporary file");
    } else {
        const int error = quern__file_write(path, temporary_path, write_text, &text);
        if (error != 0) result = fail_file(path, error);
    }
    release_events(trace, text.events);
    quern__release(&trace->allocator, temporary_path, path_bytes, EVENTS_ALIGNMENT_BYTES);
    return result;
}
