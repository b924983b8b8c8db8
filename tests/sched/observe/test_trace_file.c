/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* The file that a trace writes, read back by a JSON library. */
#include "sched/observe/profile_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/setup.h"

#include <cjson/cJSON.h>

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 64 };

static char path[PATH_BYTES];

static void make_path(void)
{
    snprintf(path, sizeof path, "%s/quern_trace_XXXXXX", P_tmpdir);
    const int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
}

static void remove_path(void)
{
    unlink(path);
}

TestSuite(trace_file, .timeout = 60, .init = make_path, .fini = remove_path);

static quern_trace *open_trace(uint32_t track_count, uint32_t events_per_track)
{
    quern_trace_def def = {0};
    quern_trace *trace;
    def.track_count = track_count;
    def.events_per_track = events_per_track;
    must(quern_trace_create(&def, &trace));
    return trace;
}

static uint32_t add_name(quern_trace *trace, const char *name)
{
    uint32_t number;
    must(quern_trace_add_name(trace, name, &number));
    return number;
}

static cJSON *write_and_parse(quern_trace *trace)
{
    must(quern_trace_save(trace, path));
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    static char text[1 << 20];
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    cJSON *root = cJSON_Parse(text);
    cr_assert_not_null(root, "not JSON: %s", text);
    return root;
}

static void close_trace(quern_trace *trace, cJSON *root)
{
    cJSON_Delete(root);
    quern_trace_destroy(trace);
}

static const char *text_of(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
    return text != NULL ? text : "";
}

static double number_of(const cJSON *object, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static const cJSON *events_of(const cJSON *root)
{
    const cJSON *events = cJSON_GetObjectItemCaseSensitive(root, "traceEvents");
    cr_assert(cJSON_IsArray(events));
    return events;
}

/* Returns the index-th complete event of a track, or NULL if it has fewer. */
static const cJSON *event_at(const cJSON *root, int track, int index)
{
    const cJSON *event = NULL;
    cJSON_ArrayForEach(event, events_of(root))
    {
        if (strcmp(text_of(event, "ph"), "X") != 0 || (int)number_of(event, "tid") != track + 1) continue;
        if (index-- == 0) return event;
    }
    return NULL;
}

static void record(quern_trace *trace, uint32_t track, quern__trace_kind kind, uint32_t name,
                   uint64_t offset_ns, uint64_t duration_ns)
{
    quern__trace_record(trace, track,
                        &(quern__trace_event){.begin_ns = trace->start_ns + offset_ns,
                                              .duration_ns = duration_ns,
                                              .kind = kind,
                                              .name = name,
                                              .ordinal = 3,
                                              .count = 44});
}

Test(trace_file, an_empty_trace_is_a_complete_file)
{
    quern_trace *trace = open_trace(2, 16);
    cJSON *root = write_and_parse(trace);
    cr_expect_null(event_at(root, 0, 0));
    close_trace(trace, root);
}

Test(trace_file, tracks_have_names_and_an_order)
{
    quern_trace *trace = open_trace(2, 16);
    must(quern_trace_set_track_name(trace, 1, "sound \"fx\""));
    cJSON *root = write_and_parse(trace);
    static const char *const wanted[] = {"worker 0", "sound \"fx\""};
    int found = 0;
    const cJSON *event = NULL;
    cJSON_ArrayForEach(event, events_of(root))
    {
        cr_expect_str_eq(text_of(event, "ph"), "M");
        if (strcmp(text_of(event, "name"), "thread_name") != 0) continue;
        cr_assert_lt(found, 2);
        cr_expect_str_eq(text_of(cJSON_GetObjectItem(event, "args"), "name"), wanted[found]);
        cr_expect_eq(number_of(event, "tid"), ++found);
    }
    cr_expect_eq(found, 2);
    close_trace(trace, root);
}

Test(trace_file, events_have_their_names_and_times)
{
    quern_trace *trace = open_trace(2, 16);
    const uint32_t move = add_name(trace, "move");
    quern_trace_start(trace);
    record(trace, 1, QUERN__TRACE_SYSTEM, move, 1234567, 89012);
    cJSON *root = write_and_parse(trace);
    const cJSON *event = event_at(root, 1, 0);
    cr_assert_not_null(event);
    cr_expect_str_eq(text_of(event, "name"), "move");
    cr_expect_str_eq(text_of(event, "cat"), "system");
    cr_assert_float_eq(number_of(event, "ts"), 1234.567, 1e-9);
    cr_assert_float_eq(number_of(event, "dur"), 89.012, 1e-9);
    cr_expect_null(event_at(root, 0, 0));
    close_trace(trace, root);
}

static void expect_args(const cJSON *event, const char *category, const char *name, const char *args)
{
    cr_assert_not_null(event, "%s is missing", category);
    char *found = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(event, "args"));
    cr_expect_str_eq(text_of(event, "cat"), category);
    cr_expect_str_eq(text_of(event, "name"), name);
    cr_expect_str_eq(found != NULL ? found : "", args, "%s has %s", category, found);
    free(found);
}

Test(trace_file, args_say_what_their_numbers_are)
{
    static const struct {
        const char *category, *args;
    } wanted[QUERN__TRACE_KIND_COUNT] = {
        [QUERN__TRACE_ZONE] = {"zone", ""},
        [QUERN__TRACE_FRAME] = {"frame", "{\"frame\":3,\"schedule\":44}"},
        [QUERN__TRACE_PASS] = {"pass", "{\"first_chunk\":3,\"chunks\":44}"},
        [QUERN__TRACE_SYSTEM] = {"system", "{\"view\":3,\"rows\":44}"},
        [QUERN__TRACE_BEGIN] = {"begin", ""},
        [QUERN__TRACE_END] = {"end", ""},
        [QUERN__TRACE_SYNC] = {"sync", ""},
        [QUERN__TRACE_STEAL] = {"steal", "{\"items\":44}"},
        [QUERN__TRACE_SLEEP] = {"sleep", ""},
        [QUERN__TRACE_LOOP] = {"loop", ""},
        [QUERN__TRACE_JOB] = {"job", ""},
    };
    quern_trace *trace = open_trace(1, 16);
    const uint32_t name = add_name(trace, "name");
    quern_trace_start(trace);
    for (int kind = 0; kind < QUERN__TRACE_KIND_COUNT; kind++)
        record(trace, 0, (quern__trace_kind)kind, name, (uint64_t)kind, 1);
    cJSON *root = write_and_parse(trace);
    for (int kind = 0; kind < QUERN__TRACE_KIND_COUNT; kind++)
        expect_args(event_at(root, 0, kind), wanted[kind].category, "name", wanted[kind].args);
    close_trace(trace, root);
}

/* Stages are parts of the sync point; only the sync point has the number of commands. */
Test(trace_file, a_sync_point_has_commands_and_its_stages_have_names)
{
    static const char *const names[] = {"sync", "gather", "merge", "resolve", "apply"};
    quern_trace *trace = open_trace(1, 16);
    quern_trace_start(trace);
    for (uint32_t stage = 0; stage < COUNT_OF(names); stage++)
        quern__trace_record(trace, 0,
                            &(quern__trace_event){.begin_ns = trace->start_ns + stage,
                                                  .kind = QUERN__TRACE_SYNC,
                                                  .name = QUERN__TRACE_NO_NAME,
                                                  .ordinal = stage,
                                                  .count = stage == 0 ? 77 : 0});
    cJSON *root = write_and_parse(trace);
    for (int stage = 0; stage < (int)COUNT_OF(names); stage++)
        expect_args(event_at(root, 0, stage), "sync", names[stage], stage == 0 ? "{\"commands\":77}" : "");
    close_trace(trace, root);
}

Test(trace_file, names_may_contain_any_characters)
{
    static const char *const names[] = {"a \"quoted\" \\ name", "line\nend\ttab", "\xC3\xA9t\xC3\xA9",
                                        "</script>"};
    quern_trace *trace = open_trace(1, 16);
    quern_trace_start(trace);
    for (uint32_t i = 0; i < 4; i++)
        record(trace, 0, QUERN__TRACE_ZONE, add_name(trace, names[i]), i, 1);
    cJSON *root = write_and_parse(trace);
    for (int i = 0; i < 4; i++)
        cr_expect_str_eq(text_of(event_at(root, 0, i), "name"), names[i]);
    close_trace(trace, root);
}

/* Inner zones end first and are recorded first; zones with the same begin differ in duration. */
static void run_named(void *argument, uint32_t worker_index) {}

static const cJSON *event_named(const cJSON *root, const char *name)
{
    const cJSON *event = NULL;
    cJSON_ArrayForEach(event, events_of(root)) if (strcmp(text_of(event, "name"), name) == 0) return event;
    return NULL;
}

static void submit_named(quern_jobs *jobs, const char *name)
{
    quern_counter done = {0};
    quern_cancel cancel = {0};
    const quern_job_def def = {
        .function = run_named, .counter = &done, .cancel = name != NULL ? &cancel : NULL, .name = name};
    must(quern_jobs_submit(jobs, &def));
    must(quern_jobs_wait(jobs, &done));
}

Test(trace_file, named_jobs_are_recorded)
{
    char passing[100], cut[100];
    memset(passing, 'x', sizeof passing);
    passing[sizeof passing - 1] = '\0';
    snprintf(cut, sizeof cut, "%.*s", QUERN_MAX_NAME_BYTES, passing);
    quern_jobs *jobs;
    quern_trace *trace = open_trace(1, 64);
    const quern_jobs_def def = {.thread_count = 1, .trace = trace};
    must(quern_jobs_create(&def, &jobs));
    submit_named(jobs, "before the start");
    quern_trace_start(trace);
    submit_named(jobs, NULL);
    for (int i = 0; i < 3; i++)
        submit_named(jobs, "load \"level\"");
    submit_named(jobs, passing);
    memset(passing, 'y', sizeof passing - 1); /* the trace has its own copy */
    submit_named(jobs, "");
    quern_trace_stop(trace);
    quern_jobs_destroy(jobs);
    cJSON *root = write_and_parse(trace);
    const cJSON *event = event_named(root, "load \"level\"");
    cr_assert_not_null(event);
    cr_expect_str_eq(text_of(event, "cat"), "job");
    cr_expect_str_eq(text_of(event, "ph"), "X");
    cr_expect_not_null(event_named(root, cut));
    cr_expect_not_null(event_named(root, "job")); /* the job with an empty name */
    cr_expect_null(event_named(root, "before the start"));
    cr_expect_not_null(event_at(root, 0, 4));
    /* five events: three named jobs, the one with a long name, the one with an empty name */
    cr_expect_null(event_at(root, 0, 5));
    cr_expect_eq(trace->names.count, 2u);
    close_trace(trace, root);
}

static void run_range(void *user_data, uint32_t begin, uint32_t end, uint32_t worker_index) {}

static uint32_t choose_nothing(void *user_data, uint32_t worker_index)
{
    return UINT32_MAX;
}

/* One node for each way to run: in one piece, as a loop, for the caller, by choice. */
static quern_graph *make_named_graph(void)
{
    static const quern_graph_node_def nodes[] = {
        {.function = run_range, .name = "whole"},
        {.function = run_range, .count = 64, .grain = 1, .name = "loop"},
        {.function = run_range, .on_worker = QUERN_ON_CALLER, .name = "called"},
        {.choose = choose_nothing, .name = "choice"}};
    quern_graph *graph;
    must(quern_graph_create(NULL, &graph));
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        must(quern_graph_add_node(graph, &nodes[i], NULL));
    return graph;
}

Test(trace_file, named_nodes_are_recorded)
{
    static const char *const names[] = {"whole", "loop", "called", "choice"};
    for (uint32_t thread_count = 1; thread_count <= 3; thread_count += 2) {
        quern_jobs *jobs;
        quern_trace *trace = open_trace(thread_count, 256);
        const quern_jobs_def def = {.thread_count = thread_count, .trace = trace};
        must(quern_jobs_create(&def, &jobs));
        quern_graph *graph = make_named_graph();
        quern_trace_start(trace);
        must(quern_graph_run(graph, jobs));
        must(quern_graph_run(graph, NULL)); /* without a pool the run is not recorded */
        quern_trace_stop(trace);
        quern_graph_destroy(graph);
        quern_jobs_destroy(jobs);
        cJSON *root = write_and_parse(trace);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            const cJSON *event = event_named(root, names[i]);
            cr_assert_not_null(event, "'%s' with %u threads", names[i], thread_count);
            cr_expect_str_eq(text_of(event, "cat"), "job");
        }
        close_trace(trace, root);
    }
}

Test(trace_file, outer_events_come_before_inner_ones)
{
    quern_trace *trace = open_trace(1, 64);
    const uint32_t name = add_name(trace, "zone");
    quern_trace_start(trace);
    record(trace, 0, QUERN__TRACE_ZONE, name, 100, 10);
    record(trace, 0, QUERN__TRACE_ZONE, name, 100, 50);
    record(trace, 0, QUERN__TRACE_ZONE, name, 160, 20);
    record(trace, 0, QUERN__TRACE_ZONE, name, 100, 100);
    record(trace, 0, QUERN__TRACE_ZONE, name, 50, 20);
    cJSON *root = write_and_parse(trace);
    static const double wanted[][2] = {{50, 20}, {100, 100}, {100, 50}, {100, 10}, {160, 20}};
    for (int i = 0; i < 5; i++) {
        const cJSON *event = event_at(root, 0, i);
        cr_assert_float_eq(number_of(event, "ts") * 1000, wanted[i][0], 1e-6);
        cr_assert_float_eq(number_of(event, "dur") * 1000, wanted[i][1], 1e-6);
    }
    close_trace(trace, root);
}

/* Nests events as a viewer does: an event is inside of the last one that has not ended, or after it.
 * Returns the number of events of the track. */
static int assert_nested(const cJSON *root, int track)
{
    double ends[16] = {INFINITY};
    int depth = 0, count = 0;
    const cJSON *event;
    for (; (event = event_at(root, track, count)) != NULL; count++) {
        const double begin = number_of(event, "ts");
        const double end = begin + number_of(event, "dur");
        while (begin > ends[depth] - 1e-4)
            depth--;
        cr_assert_leq(end, ends[depth] + 1e-4, "event %d, '%s', reaches out of the one around it", count,
                      text_of(event, "name"));
        ends[++depth] = end;
    }
    return count;
}

static volatile uint32_t work_done;

static void work(uint32_t amount)
{
    for (uint32_t i = 0; i < amount; i++)
        work_done += i;
}

static void nest(quern_trace *trace, const uint32_t names[3], uint32_t depth)
{
    const quern_trace_zone zone = quern_trace_zone_begin(trace, 0, names[depth]);
    work(100);
    for (uint32_t child = 0; depth < 2 && child < 3; child++)
        nest(trace, names, depth + 1);
    work(100);
    quern_trace_zone_end(&zone);
}

static double sum_of(const cJSON *root, const char *name)
{
    double sum = 0;
    for (int i = 0; event_at(root, 0, i) != NULL; i++)
        if (strcmp(text_of(event_at(root, 0, i), "name"), name) == 0)
            sum += number_of(event_at(root, 0, i), "dur");
    return sum;
}

Test(trace_file, zones_nest_and_their_times_add_up)
{
    quern_trace *trace = open_trace(1, 64);
    const uint32_t names[3] = {add_name(trace, "outer"), add_name(trace, "middle"),
                               add_name(trace, "inner")};
    quern_trace_start(trace);
    nest(trace, names, 0);
    quern_trace_stop(trace);
    cJSON *root = write_and_parse(trace);
    cr_assert_eq(assert_nested(root, 0), 1 + 3 + 9);
    cr_expect_gt(sum_of(root, "inner"), 0);
    cr_expect_gt(sum_of(root, "middle"), sum_of(root, "inner"));
    cr_expect_gt(sum_of(root, "outer"), sum_of(root, "middle"));
    close_trace(trace, root);
}

Test(trace_file, many_events_are_sorted_and_dropped_ones_counted)
{
    quern_trace *trace = open_trace(1, 1024);
    const uint32_t name = add_name(trace, "zone");
    quern_trace_start(trace);
    for (uint32_t i = 0; i < 2000; i++)
        record(trace, 0, QUERN__TRACE_STEAL, name, i * 7919 % 2003, 1);
    cJSON *root = write_and_parse(trace);
    cr_expect_eq(number_of(cJSON_GetObjectItem(root, "otherData"), "dropped"), 2000 - 1023);
    int count = 0;
    double last = -1;
    const cJSON *event = NULL;
    cJSON_ArrayForEach(event, events_of(root))
    {
        if (strcmp(text_of(event, "ph"), "X") != 0) continue;
        cr_assert_geq(number_of(event, "ts"), last);
        last = number_of(event, "ts");
        count++;
    }
    cr_expect_eq(count, 1023);
    close_trace(trace, root);
}

static bool part_exists(void)
{
    char part[PATH_BYTES + 8];
    struct stat status;
    snprintf(part, sizeof part, "%s.part", path);
    return stat(part, &status) == 0;
}

/* A device or a pipe receives the data and is not replaced by a file. */
Test(trace_file, devices_and_pipes_are_not_replaced)
{
    quern_trace *trace = open_trace(1, 16);
    char pipe_path[] = "/dev/shm/quern_trace_fifo";
    unlink(pipe_path);
    if (mkfifo(pipe_path, 0600) == 0) {
        int reader = open(pipe_path, O_RDONLY | O_NONBLOCK);
        must(quern_trace_save(trace, pipe_path));
        struct stat status;
        cr_assert_eq(stat(pipe_path, &status), 0);
        cr_assert(S_ISFIFO(status.st_mode), "it was replaced by a file");
        char start[1] = "";
        cr_assert_eq(read(reader, start, 1), 1);
        cr_assert_eq(start[0], '{');
        close(reader);
        unlink(pipe_path);
    }
    quern_trace_destroy(trace);
}

Test(trace_file, write_errors_are_reported)
{
    quern_trace *trace = open_trace(1, 16);
    must_refuse(IO, NULL, quern_trace_save(trace, "/nonexistent/trace.json"));
    must(quern_trace_save(trace, path));
    cr_expect_not(part_exists());
    unlink(path);
    cr_assert_eq(mkdir(path, 0700), 0);
    must_refuse(IO, NULL, quern_trace_save(trace, path));
    cr_expect_not(part_exists());
    rmdir(path);
    quern_trace_destroy(trace);
}

/* ------------------------------------------------------------------------------------------- frames */

static void count_up(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i]++;
}

/* A trace of some frames of one system over many chunks. */
static quern_trace *trace_frames(uint32_t thread_count, uint32_t frame_count)
{
    quern_trace *trace = open_trace(thread_count, 4096);
    quern_world *world = setup_world();
    const quern_component both[] = {setup_component(world, "number", 8, 8),
                                    setup_component(world, "wide", 512, 8)};
    for (uint32_t i = 0; i < 3000; i++)
        setup_entity_with(world, both, 2);
    quern_schedule_def def = {.trace = trace};
    quern_schedule *schedule = setup_schedule_as(world, def, 1);
    make_system(schedule, "count up", count_up, .terms = {quern_term_write(both[0])});
    quern_jobs *jobs = setup_jobs(thread_count);
    quern_trace_start(trace);
    for (uint32_t i = 0; i < frame_count; i++)
        must_run(schedule, jobs);
    quern_trace_stop(trace);
    quern_jobs_destroy(jobs);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    return trace;
}

static void check_frames(uint32_t thread_count)
{
    enum { FRAMES = 3 };
    quern_trace *trace = trace_frames(thread_count, FRAMES);
    cJSON *root = write_and_parse(trace);
    double frames_us = 0, jobs_us = 0;
    int frame_count = 0;
    const cJSON *event = NULL;
    cJSON_ArrayForEach(event, events_of(root))
    {
        const int track = (int)number_of(event, "tid");
        cr_assert(track >= 1 && track <= (int)thread_count);
        const cJSON *args = cJSON_GetObjectItemCaseSensitive(event, "args");
        if (strcmp(text_of(event, "cat"), "frame") == 0) {
            cr_assert_eq(track, 1);
            cr_assert_eq(number_of(args, "frame"), frame_count);
            cr_assert_eq(number_of(args, "schedule"), 0);
            frames_us += number_of(event, "dur");
            frame_count++;
        }
        if (strcmp(text_of(event, "cat"), "pass") == 0) {
            cr_assert_str_eq(text_of(event, "name"), "count up");
            jobs_us += number_of(event, "dur");
        }
    }
    cr_assert_eq(frame_count, FRAMES);
    cr_assert_gt(jobs_us, 0);
    cr_assert_leq(jobs_us, frames_us * thread_count);
    for (int track = 0; track < (int)thread_count; track++)
        assert_nested(root, track);
    close_trace(trace, root);
}

Test(trace_file, frames_are_written_with_their_jobs)
{
    check_frames(1);
    check_frames(3);
}

static uint32_t count_passes(const cJSON *root, const char *name)
{
    uint32_t count = 0;
    const cJSON *event = NULL;
    cJSON_ArrayForEach(event, events_of(root)) count +=
        strcmp(text_of(event, "cat"), "pass") == 0 && strcmp(text_of(event, "name"), name) == 0;
    return count;
}

Test(trace_file, a_pass_has_another_name_once_it_has_another_system)
{
    quern_trace *trace = open_trace(1, 4096);
    quern_world *world = setup_world();
    const quern_component number = setup_component(world, "number", 8, 8);
    for (uint32_t i = 0; i < 3000; i++)
        setup_entity_with(world, &number, 1);
    quern_schedule *schedule = setup_schedule_as(world, (quern_schedule_def){.trace = trace}, 1);
    quern_trace_start(trace);
    const quern_system first =
        make_system(schedule, "first", count_up, .terms = {quern_term_write(number)});
    must_run(schedule, NULL);
    must(quern_schedule_remove_system(schedule, first));
    make_system(schedule, "second", count_up, .terms = {quern_term_write(number)});
    must_run(schedule, NULL);
    quern_trace_stop(trace);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    cJSON *root = write_and_parse(trace);
    cr_assert_gt(count_passes(root, "first"), 0u);
    cr_assert_eq(count_passes(root, "second"), count_passes(root, "first"));
    close_trace(trace, root);
}

static void remove_wide(quern_context *context, const quern_view *view)
{
    const quern_component wide = *(const quern_component *)quern_context_user_data(context);
    quern_commands *commands = quern_context_commands(context);
    for (uint32_t i = 0; i < view->count; i++)
        must(quern_commands_remove(commands, view->entities[i], wide));
}

static uint32_t count_events(const cJSON *root, int track, const char *category, const char *name)
{
    uint32_t count = 0;
    const cJSON *event = NULL;
    cJSON_ArrayForEach(event, events_of(root)) count += strcmp(text_of(event, "cat"), category) == 0 &&
                                                        strcmp(text_of(event, "name"), name) == 0 &&
                                                        (int)number_of(event, "tid") == track + 1;
    return count;
}

/* What the caller does of a stage is not shown beside the stage, and neither are the items of a captured frame, nor all
 * begin callbacks of a pass together beside each of them. */
Test(trace_file, a_sync_point_is_shown_once)
{
    static const char *const names[] = {"sync", "gather", "merge", "resolve", "apply"};
    quern_trace *trace = open_trace(1, 4096);
    quern_world *world = setup_world();
    quern_component both[] = {setup_component(world, "number", 8, 8), setup_component(world, "wide", 8, 8)};
    for (uint32_t i = 0; i < 30000; i++)
        setup_entity_with(world, both, 2);
    quern_schedule *schedule = setup_schedule_as(world, (quern_schedule_def){.trace = trace}, 1);
    make_system(schedule, "remove", remove_wide, .begin = idle_callback, .user_data = &both[1],
                .terms = {quern_term_write(both[0]), quern_term_with(both[1])});
    quern_jobs *jobs = setup_jobs(1);
    quern_frame_capture *capture;
    must(quern_frame_capture_create(NULL, &capture));
    quern_trace_start(trace);
    must(quern_schedule_run_captured(schedule, jobs, 0, capture));
    quern_trace_stop(trace);
    quern_frame_capture_destroy(capture);
    quern_jobs_destroy(jobs);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
    cJSON *root = write_and_parse(trace);
    for (uint32_t i = 0; i < COUNT_OF(names); i++)
        cr_expect_eq(count_events(root, 0, "sync", names[i]), 1u, "%s: %u", names[i],
                     count_events(root, 0, "sync", names[i]));
    cr_expect_eq(count_events(root, 0, "begin", "remove"), 1u);
    close_trace(trace, root);
}
