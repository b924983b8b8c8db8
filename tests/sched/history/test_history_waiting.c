/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "sched/frame/schedule_internal.h"
#include "tests/flow/flow_setup.h"
#include "tests/support/failing_allocator.h"
#include "tests/support/random.h"

/* Restoring also restores what waits between frames: events for slow readers, in systems and outside of them; reactions
 * to calls between frames, with values of destroyed entities; fixed steps and intervals. Everything that systems see
 * goes into resources, in order, and so into the world's hash. */

enum { FRAMES = 40, ROWS = 900, KEPT = 12 };

typedef struct number {
    uint64_t value;
} number;

typedef struct trail {
    uint64_t hash;
} trail;

typedef struct waiting {
    quern_world *world;
    quern_schedule *schedule;
    quern_component number, tag;
    quern_event note;
    quern_resource seen, reported;
    quern_event_reader *reader;
    uint64_t read; /* number of events read by code outside of systems */
} waiting;

static waiting it;
static uint64_t expected[FRAMES + 1], expected_read[FRAMES + 1];

static void mix(trail *path, uint64_t value)
{
    path->hash = (path->hash ^ value) * 0x9E3779B97F4A7C15u + 1;
}

static void emit_some(quern_context *context, const quern_view *view)
{
    const number *numbers = quern_view_read(view, 0);
    quern_emitter *emitter = quern_context_emitter(context, it.note);
    const uint64_t frame = quern_context_frame_index(context);
    for (uint32_t i = 0; i < view->count; i++)
        if ((numbers[i].value + frame) % 7 == 0) quern_emit(emitter, &numbers[i]);
}

/* A command that cannot be recorded makes the frame fail. */
static void change_some(quern_context *context, const quern_view *view)
{
    const number *numbers = quern_view_read(view, 0);
    quern_commands *commands = quern_context_commands(context);
    const uint64_t frame = quern_context_frame_index(context);
    for (uint32_t i = 0; i < view->count; i++) {
        const uint64_t choice = (numbers[i].value * 31 + frame) % 40;
        const number next = {numbers[i].value + frame + 1};
        if (choice == 0) (void)quern_commands_destroy(commands, view->entities[i]);
        if (choice == 1) record_entity_with(commands, &it.number, (const void *[]){&next}, 1);
        if (choice == 2) (void)quern_commands_set(commands, view->entities[i], it.number, &next);
        if (choice == 3) (void)quern_commands_add(commands, view->entities[i], it.tag, NULL);
        if (choice == 4) (void)quern_commands_remove(commands, view->entities[i], it.tag);
    }
}

static void read_notes(quern_context *context)
{
    trail *seen = quern_context_resource_write(context, it.seen);
    quern_event_iterator walk;
    quern_context_events(context, it.note, &walk);
    while (quern_event_next(&walk))
        for (uint32_t i = 0; i < walk.block.count; i++)
            mix(seen, ((const number *)walk.block.values)[i].value);
    mix(seen, (uint64_t)(quern_context_delta_seconds(context) * 1024));
}

static void report_values(quern_context *context, const quern_view *view)
{
    trail *reported = quern_context_resource_write(context, it.reported);
    const number *numbers = quern_view_read(view, 0);
    for (uint32_t i = 0; i < view->count; i++) {
        mix(reported, numbers[i].value);
        mix(reported, quern_entity_index(view->entities[i]));
    }
}

static void add_systems(void)
{
    quern_system_def def = system_def("emit", emit_some);
    def.terms[0] = quern_term_read(it.number);
    def.emits[0] = it.note;
    setup_system(it.schedule, &def);
    def = system_def("change", change_some);
    def.terms[0] = quern_term_read(it.number);
    setup_system(it.schedule, &def);
    def = system_def("read", NULL);
    def.begin = read_notes;
    def.reads_events[0] = it.note;
    def.resources[0] = (quern_resource_access){it.seen, QUERN_ACCESS_WRITE};
    def.interval_seconds = 0.1; /* about every third frame */
    setup_system(it.schedule, &def);
    def.name = "read in steps";
    def.interval_seconds = 0;
    def.phase = 1;
    setup_system(it.schedule, &def);
    def = system_def("reported", report_values);
    def.terms[0] = quern_term_read(it.number);
    def.terms[1] = quern_term_with(it.tag);
    def.resources[0] = (quern_resource_access){it.reported, QUERN_ACCESS_WRITE};
    def.reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED;
    setup_system(it.schedule, &def);
    must(quern_schedule_set_fixed_step(it.schedule, 1, 0.05, 4));
}

static void open_world(const quern_world_def *def)
{
    it = (waiting){.world = NULL};
    must(quern_world_create(def, &it.world));
    it.number = setup_component(it.world, "number", sizeof(number), 8);
    it.tag = setup_tag(it.world, "tag");
    it.note = make_event(it.world, QUERN_TYPE(number));
    it.seen = make_resource(it.world, .name = "seen", .size_bytes = sizeof(trail),
                            .fields = QUERN_FIELDS(trail, hash));
    it.reported = make_resource(it.world, .name = "reported", .size_bytes = sizeof(trail),
                                .fields = QUERN_FIELDS(trail, hash));
    it.schedule = setup_phases(it.world, 2);
    add_systems();
    must(quern_event_reader_create(it.world, &(quern_event_reader_def){it.note, "outside"}, &it.reader));
    for (uint64_t i = 0; i < ROWS; i++)
        must(quern_entity_create_with(it.world, (quern_component[]){it.number, it.tag},
                                      (const void *const[]){&(number){i}, NULL}, 1 + i % 2, NULL));
}

static void close_world(void)
{
    quern_event_reader_destroy(it.reader);
    quern_schedule_destroy(it.schedule);
    quern_world_destroy(it.world);
}

/* Calls between frames that reactions report, and events; some events are read outside of systems. */
static void call(uint64_t frame)
{
    quern_query *query = setup_query(it.world, (quern_term[]){quern_term_read(it.number)}, 1);
    quern_entity listed[64];
    uint32_t count = 0;
    for (quern_query_iterator walk = quern_query_iterate(query); quern_query_next(&walk);)
        for (uint32_t i = (uint32_t)frame % 13; i < walk.view.count && count < 64; i += 13)
            listed[count++] = walk.view.entities[i];
    for (uint32_t i = 0; i < count; i++)
        switch ((frame + i) % 5) {
        case 0:
            must(quern_entity_destroy(it.world, listed[i]));
            break;
        case 1:
            must(quern_entity_set(it.world, listed[i], it.number, &(number){frame * 100 + i}));
            break;
        default:
            if (!quern_entity_has(it.world, listed[i], it.tag))
                must(quern_entity_add(it.world, listed[i], it.tag, NULL));
            break;
        }
    quern_query_destroy(query);
    must(quern_world_emit(it.world, it.note, &(number){frame}, 1));
    quern_event_block block;
    for (uint32_t i = 0; i < 2 && quern_event_reader_next(it.reader, &block); i++)
        for (uint32_t k = 0; k < block.count; k++)
            it.read = it.read * 31 + ((const number *)block.values)[k].value;
}

static void run_straight(quern_jobs *jobs)
{
    open_world(NULL);
    for (uint64_t frame = 0; frame <= FRAMES; frame++) {
        call(frame);
        expected[frame] = quern_world_hash(it.world);
        expected_read[frame] = it.read;
        must(quern_schedule_run(it.schedule, jobs, 0.04));
    }
    close_world();
}

/* Runs a frame in which the n-th allocation from now fails. Returns whether the frame failed. */
static bool run_failing_frame(failing_allocator *memory, uint64_t n, quern_jobs *jobs)
{
    return runs_out_of_memory(memory, n, quern_schedule_run(it.schedule, jobs, 0.04));
}

static quern_history *open_history(void)
{
    quern_history *history;
    must(quern_history_create(
        it.world, &(quern_history_def){.schedules = {it.schedule}, .frame_count = KEPT}, &history));
    return history;
}

static void run_back_and_forth(quern_jobs *jobs, uint64_t seed)
{
    failing_allocator *memory = failing_allocator_create();
    open_world(&(quern_world_def){.allocator = failing_allocator_interface(memory)});
    random_source random = {seed};
    quern_history *history = open_history();
    uint64_t frame = 0;
    for (uint32_t turn = 0; frame <= FRAMES && turn < 300; turn++) {
        call(frame); /* before the frame runs its reactions */
        cr_assert_eq(quern_world_hash(it.world), expected[frame], "frame %llu", (unsigned long long)frame);
        cr_assert_eq(it.read, expected_read[frame]);
        must(quern_history_save(history, frame, jobs));
        while (random_below(&random, 3) == 0) {
            uint64_t oldest, newest;
            if (random_below(&random, 2) == 0)
                run_failing_frame(memory, 1 + random_below(&random, 20), jobs);
            cr_assert(quern_history_get_frames(history, &oldest, &newest));
            frame = oldest + random_below(&random, (uint32_t)(newest - oldest + 1));
            must(quern_history_restore(history, frame, jobs));
            must(quern_world_validate(it.world));
            cr_assert_eq(quern_world_hash(it.world), expected[frame], "restored %llu",
                         (unsigned long long)frame);
            it.read = expected_read[frame];
        }
        must(quern_schedule_run(it.schedule, jobs, 0.04));
        frame++;
    }
    quern_history_destroy(history);
    close_world();
    failing_allocator_close(memory);
}

Test(history_waiting, restoring_includes_events_reactions_and_steps)
{
    for (uint32_t i = 0; i < POOL_COUNT; i++) {
        quern_jobs *jobs = setup_jobs(pool_threads[i]);
        run_straight(jobs);
        run_back_and_forth(jobs, i + 3);
        quern_jobs_destroy(jobs);
    }
}

/* Whichever allocation of a frame fails, the frame can be undone, and runs again as if it had never failed. */
Test(history_waiting, a_frame_that_failed_at_any_allocation_is_restored)
{
    failing_allocator *memory = failing_allocator_create();
    const quern_world_def def = {.allocator = failing_allocator_interface(memory)};
    uint32_t failed_count = 0, unpublished_count = 0;
    bool reaches_allocation = true;
    run_straight(NULL);
    for (uint64_t n = 1; reaches_allocation; n++) {
        open_world(&def);
        quern_history *history = open_history();
        call(0);
        must(quern_history_save(history, 0, NULL));
        const uint64_t calls = failing_allocator_call_count(memory);
        failed_count += run_failing_frame(memory, n, NULL);
        reaches_allocation = failing_allocator_call_count(memory) >= calls + n;
        unpublished_count += atomic_load(&it.schedule->has_emitted);
        must(quern_history_restore(history, 0, NULL));
        must(quern_world_validate(it.world));
        cr_assert_eq(quern_world_hash(it.world), expected[0]);
        for (uint64_t frame = 1; frame < 4; frame++) {
            must(quern_schedule_run(it.schedule, NULL, 0.04));
            call(frame);
            cr_assert_eq(quern_world_hash(it.world), expected[frame]);
            cr_assert_eq(it.read, expected_read[frame]);
        }
        quern_history_destroy(history);
        close_world();
    }
    cr_assert(failed_count > 10 && unpublished_count > 3, "%u, %u", failed_count, unpublished_count);
    failing_allocator_close(memory);
}

/* --------------------------------------------------------------------------------- in exclusive systems */

static quern_history *history_of_others;
static uint32_t refused_count;

/* Emits before and after the calls that are refused, with emitters of two types. */
static void save_and_restore(quern_context *context)
{
    quern_world *world = quern_context_world(context);
    quern_byte_buffer bytes = {.allocator = quern_allocator_default()};
    const quern_save_def with_schedule = {.schedules = {it.schedule}};
    cr_assert(quern_context_emit(context, it.note, &(number){1}, 1));
    const quern_result results[] = {
        quern_history_save(history_of_others, 2, NULL),
        quern_history_restore(history_of_others, 1, NULL),
        quern_world_save(world, quern_sink_bytes(&bytes), &with_schedule),
    };
    for (uint32_t i = 0; i < COUNT_OF(results); i++)
        refused_count += results[i] == QUERN_ERROR_WORLD_LOCKED;
    quern_byte_buffer_release(&bytes);
    cr_assert(quern_context_emit(context, it.note, &(number){2}, 1));
}

/* A frame that runs has commands, events and rows that no saved state has, also if the history lacks its schedule. */
Test(history_waiting, exclusive_systems_save_and_restore_nothing, .timeout = 60)
{
    quern_world *world = setup_world();
    it = (waiting){.world = world, .schedule = setup_schedule(world)};
    quern_schedule *other = setup_schedule(world);
    must(quern_event_register(
        world, &(quern_event_def){.name = "note", .size_bytes = 8, .alignment_bytes = 8}, &it.note));
    make_system(it.schedule, "exclusive", NULL, .begin = save_and_restore, .flags = QUERN_SYSTEM_EXCLUSIVE,
                .emits = {it.note});
    for (uint32_t i = 0; i < 2; i++) {
        const quern_history_def def = {.schedules = {i == 0 ? it.schedule : other}};
        must(quern_history_create(world, &def, &history_of_others));
        must(quern_history_save(history_of_others, 1, NULL));
        refused_count = 0;
        must_run(it.schedule, NULL);
        cr_assert_eq(refused_count, 3u);
        cr_assert_eq(stats_of_frame(it.schedule).event_count, 2u);
        must(quern_history_restore(history_of_others, 1, NULL));
        quern_history_destroy(history_of_others);
    }
    assert_valid(world);
    quern_schedule_destroy(other);
    quern_schedule_destroy(it.schedule);
    quern_world_destroy(world);
}
