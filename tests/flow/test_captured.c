/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/frame/schedule_internal.h"
#include "sched/jobs/jobs_internal.h"
#include "sched/observe/profile_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

#include <pthread.h>
#include <string.h>

/* Tests captured frames: they have the same result as other frames, report the same division of sync
 * points at every thread count, and lose only the capture if its memory runs out. */

enum { ENTITIES = 4000, FRAMES = 4, MAX_LINKS = 64 };

static quern_schedule *schedule;
static quern_component number, wide, tag;

/* ----------------------------------------------------------------------------------------- the program */

static void count_up(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i] += 1 + quern_entity_index(view->entities[i]) % 3;
}

static void replace(quern_commands *commands, quern_entity entity, uint64_t value)
{
    const quern_component both[] = {number, wide};
    const void *const values[] = {&value, NULL};
    must(quern_commands_destroy(commands, entity));
    cr_assert_not(quern_entity_is_null(record_entity_with(commands, both, values, 2)));
}

static void change(quern_context *context, const quern_view *view)
{
    quern_commands *commands = quern_context_commands(context);
    const uint64_t *numbers = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        random_source random = {numbers[i] + quern_entity_index(view->entities[i])};
        const uint64_t value = random_next(&random);
        if (value % 5 == 0) replace(commands, view->entities[i], value);
        if (value % 5 == 1) must(quern_commands_add(commands, view->entities[i], tag, NULL));
        if (value % 5 == 2) must(quern_commands_remove(commands, view->entities[i], tag));
        if (value % 5 == 3) must(quern_commands_set(commands, view->entities[i], number, &value));
    }
}

static void add_systems(void)
{
    quern_system_def def = system_def("count", count_up);
    def.terms[0] = quern_term_write(number);
    setup_system(schedule, &def);
    def.name = "change";
    def.run = change;
    def.terms[0] = quern_term_read(number);
    setup_system(schedule, &def);
}

/* Registers a component with a described field, so that its values are part of the hash. */
static quern_component register_number(void)
{
    quern_component_def def = {0};
    quern_component component;
    def.name = "number";
    def.size_bytes = def.alignment_bytes = 8;
    def.fields[0] = (quern_field){"value", QUERN_FIELD_U64, 0, .count = 1};
    must(quern_component_register(world, &def, &component));
    return component;
}

static void open_program(void)
{
    world = setup_world();
    number = register_number();
    wide = setup_component(world, "wide", 128, 8);
    tag = setup_tag(world, "tag");
    const quern_component both[] = {number, wide};
    for (uint32_t i = 0; i < ENTITIES; i++)
        setup_entity_with(world, both, 2);
    schedule = setup_schedule(world);
    schedule->playback.parallel_command_count = 1;
    add_systems();
}

TestSuite(captured, .init = open_program, .fini = close_world, .timeout = 300);

static void start_again(void)
{
    close_world();
    open_program();
}

/* ---------------------------------------------------------------------------------------------- parts */

/* The division of a frame's sync point into serial parts (gaps) and parallel loops. */
typedef struct links {
    uint32_t part_counts[MAX_LINKS];
    bool is_gap[MAX_LINKS];
    uint32_t count;
} links;

static links links_of(const quern_frame_capture *capture)
{
    links found = {.count = 0};
    for (uint32_t i = 0; i < capture->tasks.count; i++) {
        const quern__task *task = &capture->tasks.items[i];
        if (!task->is_sync) continue;
        cr_assert_lt(found.count, MAX_LINKS);
        found.is_gap[found.count] = task->caller_only;
        found.part_counts[found.count++] = task->item_count;
    }
    return found;
}

static uint64_t sum_ns(const quern_frame_capture *capture, bool is_sync)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < capture->tasks.count; i++) {
        const quern__task *task = &capture->tasks.items[i];
        for (uint32_t k = 0; k < task->item_count && task->is_sync == is_sync; k++)
            sum += capture->items_ns.items[task->first_item + k];
    }
    return sum;
}

static uint64_t sum_of_links_ns(const quern_frame_capture *capture)
{
    return sum_ns(capture, true);
}

/* Asserts that gaps and loops alternate, beginning and ending with a gap. */
static void assert_alternating(const links *found)
{
    uint32_t loop_count = 0;
    cr_assert(found->count > 0 && found->is_gap[0] && found->is_gap[found->count - 1]);
    for (uint32_t i = 1; i < found->count; i++) {
        cr_assert_neq(found->is_gap[i], found->is_gap[i - 1]);
        if (!found->is_gap[i]) cr_assert_gt(found->part_counts[i], 1);
        loop_count += !found->is_gap[i];
    }
    cr_assert_geq(loop_count, 3, "streams, chunks, rows");
}

typedef struct history {
    uint64_t hashes[FRAMES];
    links parts[FRAMES];
} history;

static quern_frame_capture *open_capture(const quern_allocator *allocator)
{
    quern_frame_capture *capture;
    must(quern_frame_capture_create(allocator, &capture));
    return capture;
}

static history play_captured(uint32_t thread_count)
{
    history played = {.hashes = {0}};
    quern_jobs *jobs = setup_jobs(thread_count);
    quern_frame_capture *capture = open_capture(NULL);
    start_again();
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        must(quern_schedule_run_captured(schedule, jobs, 0, capture));
        assert_valid(world);
        played.hashes[frame] = quern_world_hash(world);
        played.parts[frame] = links_of(capture);
        assert_alternating(&played.parts[frame]);
        if (thread_count < 2)
            cr_assert_leq(sum_of_links_ns(capture) + sum_ns(capture, false), capture->segments_ns);
        cr_assert_leq(capture->segments_ns, capture->frame_ns);
        cr_assert_eq(capture->serial_ns, capture->frame_ns - capture->segments_ns);
    }
    quern_frame_capture_destroy(capture);
    quern_jobs_destroy(jobs);
    return played;
}

static void assert_same(const history *a, const history *b)
{
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        cr_assert_eq(a->hashes[frame], b->hashes[frame], "frame %u", frame);
        cr_assert_eq(a->parts[frame].count, b->parts[frame].count, "frame %u", frame);
        for (uint32_t i = 0; i < a->parts[frame].count; i++)
            cr_assert_eq(a->parts[frame].part_counts[i], b->parts[frame].part_counts[i]);
    }
}

Test(captured, sync_points_have_the_same_parts_on_every_number_of_threads)
{
    const history alone = play_captured(0);
    for (uint32_t thread_count = 1; thread_count <= 4; thread_count++) {
        const history other = play_captured(thread_count);
        assert_same(&alone, &other);
    }
}

Test(captured, captured_frames_have_the_same_result_as_others)
{
    const history captured = play_captured(0);
    start_again();
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        must_run(schedule, NULL);
        cr_assert_eq(quern_world_hash(world), captured.hashes[frame], "frame %u", frame);
    }
}

Test(captured, few_commands_are_one_serial_part)
{
    quern_frame_capture *capture = open_capture(NULL);
    schedule->playback.parallel_command_count = UINT64_MAX;
    for (uint32_t thread_count = 0; thread_count <= 2; thread_count++) {
        quern_jobs *jobs = setup_jobs(thread_count);
        must(quern_schedule_run_captured(schedule, jobs, 0, capture));
        const links found = links_of(capture);
        cr_assert_eq(found.count, 1);
        cr_assert(found.is_gap[0] && found.part_counts[0] == 1);
        quern_jobs_destroy(jobs);
    }
    quern_frame_capture_destroy(capture);
}

/* The sync point is divided into parts for the capture only; a profile alone does not divide it. */
Test(captured, stages_of_the_profile_add_up_to_the_sync_point)
{
    quern_frame_capture *capture = open_capture(NULL);
    must(quern_schedule_set_profiling(schedule, true));
    must(quern_schedule_run_captured(schedule, NULL, 0, capture));
    const quern_frame_profile frame = profile_of_frame(schedule);
    const uint64_t stages_ns = frame.gather_ns + frame.merge_ns + frame.resolve_ns + frame.apply_ns;
    cr_assert(stages_ns > 0 && stages_ns <= frame.sync_ns);
    cr_assert_leq(sum_of_links_ns(capture), frame.sync_ns);
    cr_assert_eq(frame.workers.sync_ns, frame.sync_ns, "one worker runs the sync point alone");
    quern_frame_capture_destroy(capture);
}

/* -------------------------------------------------------------------------------------------- memory */

static failing_allocator *memory;

static void assert_nothing_captured(const quern_frame_capture *capture)
{
    quern_forecast forecast;
    must_refuse(INVALID_ARGUMENT, world, quern_frame_capture_forecast(capture, NULL, 2, &forecast));
}

static void refuse_next(uint64_t call)
{
    failing_allocator_fail_at(memory, call);
}

/* Runs a first frame in which the call-th allocation of the capture fails, then another frame that is
 * captured. Returns false if the first frame made fewer allocations. */
static bool capture_with_failure(uint64_t call, quern_jobs *jobs, const uint64_t *hashes)
{
    memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    quern_frame_capture *capture = open_capture(&allocator);
    start_again();
    refuse_next(call);
    const refusal before = refusal_begin(NULL);
    const quern_result result = quern_schedule_run_captured(schedule, jobs, 0, capture);
    const bool reached = failing_allocator_failed_count(memory) > 0;
    cr_assert_eq(quern_world_hash(world), hashes[0], "the frame has run, whatever was captured");
    cr_assert_eq(result, reached ? QUERN_ERROR_OUT_OF_MEMORY : QUERN_OK);
    cr_assert_eq(refusal_has_message(&before), reached);
    if (reached) assert_nothing_captured(capture);
    failing_allocator_heal(memory);
    must(quern_schedule_run_captured(schedule, jobs, 0, capture));
    cr_assert_eq(quern_world_hash(world), hashes[1]);
    const links found = links_of(capture);
    assert_alternating(&found);
    quern_frame_capture_destroy(capture);
    failing_allocator_close(memory);
    return reached;
}

static void capture_with_every_failure(uint32_t thread_count)
{
    const history expected = play_captured(thread_count);
    quern_jobs *jobs = setup_jobs(thread_count);
    uint64_t call = 1;
    while (capture_with_failure(call, jobs, expected.hashes))
        call++;
    cr_assert_gt(call, 4u, "sections, tasks, items and waits ask for memory");
    quern_jobs_destroy(jobs);
}

Test(captured, refused_allocation_loses_only_the_capture)
{
    capture_with_every_failure(0);
}

Test(captured, refused_allocation_loses_only_the_capture_on_several_threads)
{
    capture_with_every_failure(3);
}

static quern_jobs *busy_jobs;
static pthread_barrier_t has_entered, may_leave;

static void *stay_inside(void *argument)
{
    must(quern__jobs_enter(busy_jobs, "test"));
    pthread_barrier_wait(&has_entered);
    pthread_barrier_wait(&may_leave);
    quern__jobs_leave(busy_jobs);
    return argument;
}

/* The errors are those of quern_schedule_run, but name quern_schedule_run_captured. */
Test(captured, misuse_of_a_captured_run_names_it)
{
    quern_frame_capture *capture;
    must(quern_frame_capture_create(NULL, &capture));
    quern_jobs *jobs = busy_jobs = setup_jobs(2);
    pthread_t thread;
    pthread_barrier_init(&has_entered, NULL, 2);
    pthread_barrier_init(&may_leave, NULL, 2);
    cr_assert_eq(pthread_create(&thread, NULL, stay_inside, NULL), 0);
    pthread_barrier_wait(&has_entered);
    must_refuse(NULL_ARGUMENT, world, quern_schedule_run_captured(schedule, jobs, 0, NULL));
    assert_message_has("quern_schedule_run_captured: 'capture' is NULL");
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_run_captured(schedule, NULL, -1, capture));
    assert_message_has("quern_schedule_run_captured: delta_seconds");
    must_refuse(POOL_BUSY, world, quern_schedule_run_captured(schedule, jobs, 0, capture));
    assert_message_has("quern_schedule_run_captured: all 1 external slots");
    must_refuse(POOL_BUSY, world, quern_schedule_run(schedule, jobs, 0));
    assert_message_has("quern_schedule_run: all 1 external slots");
    pthread_barrier_wait(&may_leave);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&has_entered);
    pthread_barrier_destroy(&may_leave);
    quern_jobs_destroy(jobs);
    quern_frame_capture_destroy(capture);
}

static uint32_t refused_count;

static void capture_within(quern_context *context, const quern_view *view)
{
    quern_frame_capture *capture;
    must(quern_frame_capture_create(NULL, &capture));
    const quern_result result =
        quern_schedule_run_captured(quern_context_user_data(context), NULL, 0, capture);
    cr_assert_eq(result, QUERN_ERROR_WORLD_LOCKED);
    assert_message_has("quern_schedule_run_captured: ");
    refused_count++;
    quern_frame_capture_destroy(capture);
}

/* A captured run fails while the world is locked, whichever schedule it is for. An exclusive system
 * cannot run its own schedule. */
Test(captured, misuse_within_a_frame_names_it)
{
    quern_schedule *outer = setup_schedule(world);
    quern_system_def def = system_def("of another", capture_within);
    def.user_data = schedule;
    setup_system(outer, &def);
    def = system_def("of its own", capture_within);
    def.user_data = outer;
    setup_system(outer, &def);
    def.name = "exclusive";
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    setup_system(outer, &def);
    refused_count = 0;
    must_run(outer, NULL);
    cr_assert_eq(refused_count, 3);
}

static quern_frame_capture *outer_capture;

static void capture_again(quern_context *context)
{
    captured_reports reports;
    quern_schedule *inner = quern_context_user_data(context);
    must_refuse(INVALID_ARGUMENT, world,
                quern_schedule_run_captured(inner, quern_context_jobs(context), 0, outer_capture));
    assert_message_has("quern_schedule_run_captured: a running frame uses the capture");
    capture_reports(&reports);
    quern_frame_capture_destroy(outer_capture);
    assert_message_has("quern_frame_capture_destroy: ");
    refused_count++;
}

/* Frames may run within frames, but a capture is in use until its frame has ended. */
Test(captured, capture_is_used_by_one_frame_at_a_time)
{
    quern_schedule *outer = setup_schedule(world);
    setup_system(outer, &(quern_system_def){.name = "captures",
                                            .begin = capture_again,
                                            .user_data = schedule,
                                            .flags = QUERN_SYSTEM_EXCLUSIVE});
    setup_writer(outer, "writes", number);
    must(quern_frame_capture_create(NULL, &outer_capture));
    refused_count = 0;
    for (int i = 0; i < 2; i++) {
        quern_forecast forecast;
        must(quern_schedule_run_captured(outer, NULL, 0, outer_capture));
        must(quern_frame_capture_forecast(outer_capture, NULL, 2, &forecast));
    }
    cr_assert_eq(refused_count, 2);
    quern_frame_capture_destroy(outer_capture);
}

Test(captured, creating_and_forecasting_fail_without_side_effects)
{
    memory = failing_allocator_create();
    const quern_allocator allocator = failing_allocator_interface(memory);
    quern_frame_capture *capture = NULL;
    quern_forecast forecast = {.thread_count = 77};
    refuse_next(1);
    must_refuse(OUT_OF_MEMORY, NULL, quern_frame_capture_create(&allocator, &capture));
    cr_assert_null(capture);
    must(quern_frame_capture_create(&allocator, &capture));
    must(quern_schedule_run_captured(schedule, NULL, 0, capture));
    refuse_next(1);
    must_refuse(OUT_OF_MEMORY, world, quern_frame_capture_forecast(capture, NULL, 2, &forecast));
    cr_assert_eq(forecast.thread_count, 77);
    must(quern_frame_capture_forecast(capture, NULL, 2, &forecast));
    quern_frame_capture_destroy(capture);
    failing_allocator_close(memory);
}

/* Measuring costs allocates memory from the pool's allocator. */
Test(captured, measuring_costs_uses_the_allocator_of_the_pool)
{
    memory = failing_allocator_create();
    quern_jobs_def def = {.thread_count = 2, .allocator = failing_allocator_interface(memory)};
    quern_jobs *jobs;
    must(quern_jobs_create(&def, &jobs));
    quern_forecast_costs costs = {.steal_ns = 77};
    const uint64_t held_bytes = failing_allocator_outstanding_bytes(memory);
    refuse_next(1);
    must_refuse(OUT_OF_MEMORY, NULL, quern_forecast_measure_costs(jobs, &costs));
    cr_assert_eq(costs.steal_ns, 77);
    must(quern_forecast_measure_costs(jobs, &costs));
    cr_assert_eq(failing_allocator_outstanding_bytes(memory), held_bytes);
    quern_jobs_destroy(jobs);
    failing_allocator_destroy(memory);
}

/* ------------------------------------------------------------------------------- profiles and traces */

/* Runs a first frame that is profiled and traced, in which the call-th allocation of the world fails.
 * Returns false if there are fewer allocations. */
static bool profile_with_failure(uint64_t call, quern_trace *trace)
{
    memory = failing_allocator_create();
    world = make_world(.allocator = failing_allocator_interface(memory));
    number = register_number();
    for (uint32_t i = 0; i < 100; i++)
        setup_entity_with(world, &number, 1);
    quern_schedule_def def = {.trace = trace};
    must(quern_schedule_create(world, &def, &schedule));
    quern_system_def system = system_def("count", count_up);
    system.terms[0] = quern_term_write(number);
    setup_system(schedule, &system);
    refuse_next(call);
    must(quern_schedule_set_profiling(schedule, true));
    const uint64_t hash = quern_world_hash(world);
    const quern_result result = quern_schedule_run(schedule, NULL, 0);
    const bool reached = failing_allocator_failed_count(memory) > 0;
    cr_assert_eq(result, reached ? QUERN_ERROR_OUT_OF_MEMORY : QUERN_OK, "%s", quern_error_message());
    if (reached) cr_assert_eq(quern_world_hash(world), hash, "no system has run");
    failing_allocator_heal(memory);
    must_run(schedule, NULL);
    cr_assert_gt(profile_of_frame(schedule).time_ns, 0);
    close_world();
    failing_allocator_close(memory);
    return reached;
}

static quern_trace *open_trace(failing_allocator *of_trace)
{
    quern_trace_def def = {0};
    quern_trace *trace;
    def.allocator = failing_allocator_interface(of_trace);
    def.events_per_track = 64;
    must(quern_trace_create(&def, &trace));
    quern_trace_start(trace);
    return trace;
}

Test(captured, first_profiled_frame_fails_without_side_effects)
{
    failing_allocator *of_trace = failing_allocator_create();
    quern_trace *trace = open_trace(of_trace);
    close_world();
    uint64_t call = 1;
    while (profile_with_failure(call, trace))
        call++;
    cr_assert_gt(call, 1u);
    quern_trace_destroy(trace);
    failing_allocator_destroy(of_trace);
    open_program();
}

/* If the trace has no memory for the names of passes, the frame ends before its first system. */
Test(captured, a_trace_without_memory_for_names_ends_the_frame_early)
{
    failing_allocator *of_trace = failing_allocator_create();
    quern_trace *trace = open_trace(of_trace);
    quern_schedule_destroy(schedule);
    quern_schedule_def def = {.trace = trace};
    must(quern_schedule_create(world, &def, &schedule));
    add_systems();
    failing_allocator_fail_at(of_trace, 1);
    must_refuse(OUT_OF_MEMORY, world, quern_schedule_run(schedule, NULL, 0));
    must_run(schedule, NULL);
    cr_assert_gt(stats_of_trace(trace).event_count, 0u);
    quern_schedule_destroy(schedule);
    quern_trace_destroy(trace);
    failing_allocator_destroy(of_trace);
    schedule = setup_schedule(world);
}
