/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */

#include "tests/sched/frame/event_scene.h"
#include "tests/support/failing_allocator.h"

#include <pthread.h>

/* Values of events: provisional handles, hooks, and several events emitted by one call. */

static captured_reports reports;

TestSuite(event_values, .init = open_world, .fini = close_world);

/* ----------------------------------------------------------------------------------- handles and hooks */

static void create_and_tell(quern_context *context, const quern_view *view)
{
    const uint64_t *numbers = quern_view_read(view, 0);
    quern_emitter *emitter = quern_context_emitter(context, hit);
    for (uint32_t i = 0; i < view->count; i++) {
        const quern_entity made = record_entity_with(quern_context_commands(context), &number,
                                                     (const void *const[]){&numbers[i]}, 1);
        cr_assert(quern_entity_is_provisional(made));
        cr_assert(quern_emit(emitter, &(Hit){.target = made, .number = numbers[i]}));
    }
}

Test(event_values, provisional_handles_in_described_fields_are_resolved)
{
    enum { ROWS = 5000 };
    add_rows(ROWS);
    for (uint32_t pool = 0; pool < POOL_COUNT; pool++) {
        quern_jobs *jobs = setup_jobs(pool_threads[pool]);
        schedule = setup_phases(world, 2);
        quern_system_def maker = system_def("maker", create_and_tell), plain = emitter_def("plain"),
                         reader = reader_def("reader", a_seen);
        maker.terms[0] = quern_term_read(number);
        maker.emits[0] = hit;
        reader.phase = 1;
        setup_system(schedule, &plain);
        setup_system(schedule, &maker);
        setup_system(schedule, &reader);
        a_seen->count = 0;
        const uint64_t before = stats_of_world(world).entity_count;
        must_run(schedule, jobs);
        cr_assert_eq(a_seen->count, 2 * before);
        cr_assert_eq(stats_of_world(world).entity_count, 2 * before);
        for (uint32_t i = 0; i < a_seen->count; i++) {
            const uint64_t *value = quern_entity_get(world, a_seen->hits[i].target, number);
            cr_assert_not_null(value, "%u: %s", i, quern_error_message());
            cr_assert_eq(*value, a_seen->hits[i].number);
        }
        must_run(schedule, jobs); /* after so many events, nothing is half applied */
        quern_schedule_destroy(schedule);
        quern_jobs_destroy(jobs);
        schedule = NULL;
        must(quern_schedule_create(world, NULL, &schedule));
        quern_schedule_destroy(schedule);
        schedule = NULL;
        if (before > ROWS) break;
    }
}

/* Events of two types. Each names an entity that the callback creates; the second type also names the first
 * entity of the view. */
static quern_event birth;

static void create_two_and_tell(quern_context *context, const quern_view *view)
{
    const uint64_t *numbers = quern_view_read(view, 0);
    quern_commands *commands = quern_context_commands(context);
    quern_emitter *hits = quern_context_emitter(context, hit),
                  *births = quern_context_emitter(context, birth);
    for (uint32_t i = 0; i < view->count; i++) {
        const uint64_t values[] = {2 * numbers[i], 2 * numbers[i] + 1};
        quern_entity made[2];
        for (uint32_t k = 0; k < 2; k++)
            made[k] = record_entity_with(commands, &number, (const void *const[]){&values[k]}, 1);
        cr_assert(quern_emit(births, &(Hit){.target = made[1], .number = values[1]}));
        cr_assert(quern_emit(hits, &(Hit){.target = made[0], .number = values[0]}));
    }
}

static void expect_real(const seen *what, uint32_t count, uint32_t odd)
{
    cr_assert_eq(what->count, count);
    for (uint32_t i = 0; i < what->count; i++) {
        const uint64_t *value = quern_entity_get(world, what->hits[i].target, number);
        cr_assert_not_null(value, "%u: %s", i, quern_error_message());
        cr_assert_eq(*value, what->hits[i].number);
        cr_assert_eq(*value % 2, odd);
    }
}

static void read_births(quern_context *context)
{
    quern_event_iterator it;
    cr_assert(quern_context_events(context, birth, &it));
    while (quern_event_next(&it))
        see(b_seen, it.block.values, it.block.count);
}

Test(event_values, provisional_handles_of_two_event_types_are_resolved_in_one_sync_point)
{
    enum { ROWS = 700 };
    must(quern_event_register(world,
                              &(quern_event_def){.name = "birth",
                                                 .size_bytes = sizeof(Hit),
                                                 .alignment_bytes = 8,
                                                 .fields = QUERN_FIELDS(Hit, target, number)},
                              &birth));
    add_rows(ROWS);
    for (uint32_t pool = 0; pool < 2; pool++) {
        const uint32_t before = (uint32_t)stats_of_world(world).entity_count;
        quern_jobs *jobs = setup_jobs(1 + 2 * pool);
        schedule = setup_phases(world, 2);
        quern_system_def maker = system_def("maker", create_two_and_tell),
                         reader = reader_def("reader", a_seen), births = system_def("births", NULL);
        maker.terms[0] = quern_term_read(number);
        maker.emits[0] = hit;
        maker.emits[1] = birth;
        births.begin = read_births;
        births.reads_events[0] = birth;
        reader.phase = births.phase = 1;
        setup_system(schedule, &maker);
        setup_system(schedule, &reader);
        setup_system(schedule, &births);
        a_seen->count = b_seen->count = 0;
        must_run(schedule, jobs);
        cr_assert_eq(stats_of_frame(schedule).event_count, 2u * before);
        expect_real(a_seen, before, 0);
        expect_real(b_seen, before, 1);
        quern_schedule_destroy(schedule);
        schedule = NULL;
        quern_jobs_destroy(jobs);
    }
}

static quern_entity strange_handle;

static void make_strange(quern_context *context)
{
    strange_handle = record_entity(quern_context_commands(context));
}

static void tell_strange(quern_context *context)
{
    cr_assert(quern_context_emit(context, hit, &(Hit){.target = strange_handle}, 1));
}

Test(event_values, the_provisional_handle_of_another_callback_is_reported_with_checks)
{
    schedule = setup_schedule(world);
    quern_system_def maker = system_def("maker", NULL), teller = system_def("teller", NULL);
    maker.begin = make_strange;
    teller.begin = tell_strange;
    teller.emits[0] = hit;
    setup_system(schedule, &maker);
    setup_system(schedule, &teller);
    capture_reports(&reports);
    must_run(schedule, NULL);
    cr_assert_eq(reports.assert_count, quern_has_checks() ? 1u : 0u);
    if (quern_has_checks()) cr_assert_not_null(strstr(reports.last, "'teller'"), "%s", reports.last);
}

static quern_entity own_handle;
static Hit told[2];

static void tell_strange_and_own(quern_context *context)
{
    own_handle = record_entity(quern_context_commands(context));
    cr_assert_eq(quern_entity_index(own_handle), quern_entity_index(strange_handle));
    const Hit hits[] = {{.target = strange_handle}, {.target = own_handle}};
    for (uint32_t i = 0; i < COUNT_OF(hits); i++)
        cr_assert(quern_context_emit(context, hit, &hits[i], 1));
}

static void read_told(quern_context *context)
{
    quern_event_iterator it;
    uint32_t count = 0;
    cr_assert(quern_context_events(context, hit, &it));
    while (quern_event_next(&it)) {
        cr_assert_leq(count + it.block.count, (uint32_t)COUNT_OF(told));
        memcpy(told + count, it.block.values, it.block.count * sizeof *told);
        count += it.block.count;
    }
    cr_assert_eq(count, COUNT_OF(told));
}

/* Both callbacks create an entity, so that both handles have the same number. */
Test(event_values, the_provisional_handle_of_another_callback_leads_to_no_entity)
{
    schedule = setup_phases(world, 2);
    quern_system_def maker = system_def("maker", NULL), teller = system_def("teller", NULL),
                     reader = system_def("reader", NULL);
    maker.begin = make_strange;
    teller.begin = tell_strange_and_own;
    teller.emits[0] = hit;
    reader.begin = read_told;
    reader.reads_events[0] = hit;
    reader.phase = 1;
    setup_system(schedule, &maker);
    setup_system(schedule, &teller);
    setup_system(schedule, &reader);
    capture_reports(&reports);
    must_run(schedule, NULL);
    cr_assert(quern_entity_equal(told[0].target, strange_handle));
    cr_assert_not(quern_entity_is_alive(world, told[0].target));
    cr_assert(quern_entity_is_alive(world, told[1].target));
}

static quern_event tracked_event;

static void copy_tracked(void *targets, const void *sources, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++) {
        tracked_construct((tracked *)targets + i, ((const tracked *)sources)[i].payload, &counts);
        if (!tracked_is_live((const tracked *)sources + i)) counts.broken_count++;
    }
}

static void destroy_tracked(void *values, uint32_t count, void *user_data)
{
    for (uint32_t i = 0; i < count; i++)
        tracked_destroy((tracked *)values + i, &counts);
}

static void emit_tracked(quern_context *context, const quern_view *view)
{
    quern_emitter *emitter = quern_context_emitter(context, tracked_event);
    for (uint32_t i = 0; i < view->count; i++) {
        tracked value;
        tracked_construct(&value, i, &counts);
        cr_assert(quern_context_emit(context, tracked_event, &value, 1));
        tracked_destroy(&value, &counts);
        tracked *place = QUERN_EMIT(emitter, tracked);
        tracked_construct(place, i, &counts); /* constructed in place, as if the value were moved there */
        uint32_t count;
        tracked *places = QUERN_EMIT_SOME(emitter, 3, &count, tracked);
        for (uint32_t k = 0; k < count; k++)
            tracked_construct(&places[k], i, &counts);
    }
}

Test(event_values, values_with_hooks_are_destroyed_after_they_were_read)
{
    add_rows(3000);
    must(quern_event_register(
        world,
        &(quern_event_def){.name = "tracked",
                           .size_bytes = sizeof(tracked),
                           .alignment_bytes = _Alignof(tracked),
                           .type_name = "tracked",
                           .hooks = {.copy = copy_tracked, .destroy = destroy_tracked}},
        &tracked_event));
    quern_jobs *jobs = setup_jobs(3);
    schedule = setup_phases(world, 2);
    quern_system_def emitter = system_def("emitter", emit_tracked),
                     reader = system_def("reader", read_tracked);
    emitter.terms[0] = quern_term_read(number);
    emitter.emits[0] = tracked_event;
    reader.items = tracked_event;
    reader.phase = 1;
    setup_system(schedule, &emitter);
    setup_system(schedule, &reader);
    for (uint32_t i = 0; i < 3; i++)
        must_run(schedule, jobs);
    cr_assert_leq(tracked_live_count(&counts), 15000u);
    quern_schedule_destroy(schedule);
    schedule = NULL;
    quern_jobs_destroy(jobs);
    must(quern_world_trim(world));
    cr_assert_eq(tracked_live_count(&counts), 0u);
    cr_assert_eq(counts.broken_count, 0u);
}

/* ------------------------------------------------------------------------------------ several at a time */

enum { MANY_EVENTS = 5000 };

static void emit_singly(quern_context *context)
{
    quern_emitter *emitter = quern_context_emitter(context, hit);
    for (uint64_t i = 0; i < MANY_EVENTS; i++)
        cr_assert(quern_emit(emitter, &(Hit){.number = i}));
}

static void emit_together(quern_context *context)
{
    quern_emitter *emitter = quern_context_emitter(context, hit);
    uint32_t count = 1;
    cr_assert_null(QUERN_EMIT_SOME(emitter, 0, &count, Hit));
    cr_assert_eq(count, 0u);
    for (uint64_t i = 0; i < MANY_EVENTS; i += count) {
        Hit *places = QUERN_EMIT_SOME(emitter, (uint32_t)(MANY_EVENTS - i), &count, Hit);
        cr_assert_not_null(places);
        for (uint64_t k = 0; k < count; k++)
            places[k] = (Hit){.number = i + k};
    }
}

/* Returns a hash over the events of one frame in order, and over the ends of their blocks. */
static uint64_t hash_of_events(quern_system_callback *emit)
{
    quern_event_reader *reader;
    quern_event_block block;
    uint64_t hash = 0;
    quern_system_def def = system_def("emitter", NULL);
    def.begin = emit;
    def.emits[0] = hit;
    schedule = setup_schedule(world);
    setup_system(schedule, &def);
    must(quern_event_reader_create(world, &(quern_event_reader_def){.event = hit}, &reader));
    must_run(schedule, NULL);
    uint32_t count = 0;
    for (; quern_event_reader_next(reader, &block); count += block.count) {
        for (uint32_t i = 0; i < block.count; i++)
            cr_assert_eq(((const Hit *)block.values)[i].number, count + i);
        hash = hash * 31 + block.count;
    }
    cr_assert_eq(count, (uint32_t)MANY_EVENTS);
    quern_event_reader_destroy(reader);
    quern_schedule_destroy(schedule);
    schedule = NULL;
    return hash;
}

Test(event_values, emitting_many_makes_same_blocks_as_single_emits)
{
    cr_assert_eq(hash_of_events(emit_together), hash_of_events(emit_singly));
}

TestSuite(event_misuse, .init = open_world, .fini = close_world);

/* --------------------------------------------------------------------------------------------- misuse */

static void assert_reported(const char *words)
{
    const uint32_t count = quern_has_checks() ? reports.assert_count : reports.log_count;
    cr_assert_eq(count, 1u, "%u reports for: %s (%s)", count, words, reports.last);
    cr_assert_not_null(strstr(reports.last, words), "no \"%s\" in: %s", words, reports.last);
}

/* Runs a frame in which one callback is refused with these words. */
static void expect_refusal(quern_system_callback *begin, const quern_system_def *as, const char *words)
{
    quern_system_def def = as != NULL ? *as : system_def("culprit", NULL);
    def.begin = begin;
    schedule = setup_schedule(world);
    setup_system(schedule, &def);
    capture_reports(&reports);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    assert_message_has("'culprit'");
    assert_reported(words);
    quern_schedule_destroy(schedule);
    schedule = NULL;
}

static void emit_undeclared(quern_context *context)
{
    cr_assert_null(quern_context_emitter(context, hit));
    cr_assert_not(quern_context_emit(context, hit, &(Hit){.number = 1}, 1));
    cr_assert_not(quern_emit((quern_emitter *)NULL, &(Hit){.number = 1}));
    cr_assert_null(QUERN_EMIT((quern_emitter *)NULL, Hit));
    uint32_t count = 1;
    cr_assert_null(QUERN_EMIT_SOME((quern_emitter *)NULL, 1, &count, Hit));
    cr_assert_eq(count, 0u);
}

static void read_undeclared(quern_context *context)
{
    quern_event_iterator it;
    cr_assert_not(quern_context_events(context, hit, &it));
    cr_assert_not(quern_event_next(&it));
    cr_assert_eq(quern_context_event_count(context, hit), 0u);
}

static void loop_over_undeclared(quern_context *context)
{
    QUERN_EACH_EVENT(context, hit, it, Hit) cr_assert(it->number > 0 && false);
}

static void loop_over_another_type(quern_context *context)
{
    QUERN_EACH_EVENT(context, hit, it, uint32_t) cr_assert(*it > 0 && false);
}

static void emit_unknown(quern_context *context)
{
    cr_assert_null(quern_context_emitter(context, (quern_event){0}));
}

static void emit_null(quern_context *context)
{
    cr_assert_not(quern_context_emit(context, hit, NULL, 1));
    cr_assert(quern_context_emit(context, hit, NULL, 0));
}

static void emit_uncounted(quern_context *context)
{
    cr_assert_null(QUERN_EMIT_SOME(quern_context_emitter(context, hit), 1, NULL, Hit));
}

static void emit_as_another_type(quern_context *context)
{
    cr_assert_null(QUERN_EMIT(quern_context_emitter(context, hit), uint32_t));
}

Test(event_misuse, undeclared_events_are_refused)
{
    quern_system_def other_def = system_def("culprit", NULL);
    other_def.emits[0] = other;
    other_def.reads_events[0] = other;
    expect_refusal(emit_undeclared, &other_def, "its emits: 'other'");
    expect_refusal(read_undeclared, &other_def, "what it reads: 'other'");
    expect_refusal(loop_over_undeclared, &other_def, "QUERN_EACH_EVENT");
    expect_refusal(emit_undeclared, NULL, "its emits: none");
    expect_refusal(emit_unknown, NULL, "the event handle is null");
    quern_system_def right = system_def("culprit", NULL);
    right.emits[0] = hit;
    expect_refusal(emit_null, &right, "'values' is NULL");
    expect_refusal(emit_uncounted, &right, "system 'culprit' emitted 'Hit', and 'out_count' is NULL");
    expect_refusal(emit_as_another_type, &right, "as uint32_t of 4");
    right.reads_events[0] = hit;
    expect_refusal(loop_over_another_type, &right,
                   "QUERN_EACH_EVENT: system 'culprit' asked for events 'Hit'");
}

static quern_emitter *kept_emitter;

static void keep_emitter(quern_context *context)
{
    kept_emitter = quern_context_emitter(context, hit);
    cr_assert(quern_emit(kept_emitter, &(Hit){.number = 1}));
}

static void use_kept_emitter(quern_context *context)
{
    cr_assert_not(quern_emit(kept_emitter, &(Hit){.number = 2}));
}

Test(event_misuse, kept_emitter_is_reported)
{
    schedule = setup_phases(world, 2);
    quern_system_def keeper = system_def("keeper", NULL), user = system_def("user", NULL),
                     reader = reader_def("reader", a_seen);
    keeper.begin = keep_emitter;
    keeper.emits[0] = hit;
    user.begin = use_kept_emitter;
    reader.phase = 1;
    setup_system(schedule, &keeper);
    setup_system(schedule, &user);
    setup_system(schedule, &reader);
    capture_reports(&reports);
    must_run(schedule, NULL);
    assert_reported("outside of the callback");
    cr_assert_eq(a_seen->count, 1u);
    capture_reports(&reports);
    cr_assert_not(quern_emit(kept_emitter, &(Hit){.number = 3}));
    assert_reported("outside of the callback");
    capture_reports(&reports);
    cr_assert_null(QUERN_EMIT_SOME(kept_emitter, 1, NULL, Hit));
    assert_reported("outside of the callback");
    cr_assert_null(QUERN_EMIT_SOME(NULL, 1, NULL, Hit));
}

static void *emit_on_thread(void *argument)
{
    cr_assert_not(quern_emit(kept_emitter, &(Hit){.number = 4}));
    return NULL;
}

static void lend_emitter(quern_context *context)
{
    pthread_t thread;
    kept_emitter = quern_context_emitter(context, hit);
    cr_assert_eq(pthread_create(&thread, NULL, emit_on_thread, NULL), 0);
    pthread_join(thread, NULL);
}

Test(event_misuse, emitting_on_another_thread_is_reported_with_checks)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    schedule = setup_schedule(world);
    make_system(schedule, "lender", NULL, .begin = lend_emitter, .emits = {hit});
    capture_reports(&reports);
    must_run(schedule, NULL);
    assert_reported("another thread");
}

static void write_events(quern_context *context, const quern_view *view)
{
    Hit *hits = (Hit *)(uintptr_t)quern_view_events(view);
    hits[0].number++;
}

Test(event_misuse, writing_events_is_reported_with_checks)
{
    if (!quern_has_checks()) cr_skip_test("needs a build with QUERN_CHECKS");
    schedule = setup_schedule(world);
    quern_system_def writer = system_def("writer", write_events);
    writer.items = hit;
    setup_system(schedule, &writer);
    must(quern_world_emit(world, hit, &(Hit){.number = 1}, 1));
    capture_reports(&reports);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    assert_reported("'writer' wrote events 'Hit'");
}

static void ask_for_events(quern_context *context, const quern_view *view)
{
    cr_assert(is_scratch(QUERN_EVENTS(view, Hit), view->count * sizeof(Hit)));
}

static void emit_in_query(quern_context *context, const quern_view *view)
{
    cr_assert_null(quern_context_emitter(context, hit));
}

Test(event_misuse, views_without_items_have_no_events)
{
    add_rows(1);
    schedule = setup_schedule(world);
    make_system(schedule, "culprit", ask_for_events, .terms = {quern_term_read(number)});
    capture_reports(&reports);
    must_not_run(schedule, NULL, QUERN_ERROR_UNDECLARED_ACCESS);
    assert_reported("without declaring items");
    quern_query *query = setup_query(world, (quern_term[]){quern_term_read(number)}, 1);
    capture_reports(&reports);
    cr_assert_eq(quern_query_parallel_for(query, NULL, emit_in_query, NULL), QUERN_ERROR_UNDECLARED_ACCESS);
    assert_reported("which only systems can declare");
    capture_reports(&reports);
    quern_query_iterator it = quern_query_iterate(query);
    cr_assert(quern_query_next(&it));
    cr_assert(is_scratch(QUERN_EVENTS(&it.view, Hit), it.view.count * sizeof(Hit)));
    assert_reported("an iteration");
    cr_assert_not(quern_query_next(&it));
    quern_query_destroy(query);
}

Test(event_misuse, invalid_event_declarations_are_refused)
{
    schedule = setup_schedule(world);
    quern_system_def def = system_def("a", idle_run);
    def.emits[0] = def.emits[1] = hit;
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", idle_run);
    def.reads_events[0] = def.items = hit;
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", idle_run);
    def.emits[1] = hit;
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", idle_run);
    def.items = hit;
    def.terms[0] = quern_term_read(number);
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", idle_run);
    def.items = hit;
    def.flags = QUERN_SYSTEM_EXCLUSIVE;
    must_refuse(INVALID_ARGUMENT, world, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", NULL);
    def.items = hit;
    def.begin = idle_callback;
    must_refuse(NULL_ARGUMENT, world, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", idle_run);
    def.emits[0] = (quern_event){hit.bits + 10};
    must_refuse(UNKNOWN_EVENT, world, quern_schedule_add_system(schedule, &def, NULL));
    def = system_def("a", idle_run);
    def.reads_events[0] = (quern_event){hit.bits + 10};
    must_refuse(UNKNOWN_EVENT, world, quern_schedule_add_system(schedule, &def, NULL));
    quern_event_stats stats;
    must(quern_event_get_stats(world, hit, &stats));
    cr_assert_eq(stats.reader_count, 0u, "what was refused holds nothing");
}

/* --------------------------------------------------------------------------------------------- memory */

static uint32_t emitted_count;

static void emit_what_fits(quern_context *context, const quern_view *view)
{
    quern_emitter *emitter = quern_context_emitter(context, hit);
    Hit many[2000] = {{.number = 0}};
    for (uint32_t i = 0; i < 2000; i++)
        if (quern_emit(emitter, &many[i])) emitted_count++;
    if (quern_context_emit(context, hit, many, 2000)) emitted_count += 2000;
}

/* Fails each allocation of two frames once. Every emitted event is read eventually; the frame reports
 * events that could not be emitted. */
static void run_script(failing_allocator *memory, uint64_t failing_call)
{
    quern_world *small;
    must(quern_world_create(&(quern_world_def){.allocator = failing_allocator_interface(memory)}, &small));
    must(QUERN_EVENT_REGISTER_FIELDS(small, &hit, Hit, target, number));
    quern_schedule *own = setup_phases(small, 2);
    quern_system_def emitter = system_def("emitter", emit_what_fits), reader = reader_def("reader", a_seen);
    emitter.emits[0] = hit;
    reader.phase = 1;
    setup_system(own, &emitter);
    setup_system(own, &reader);
    failing_allocator_fail_at(memory, failing_call);
    a_seen->count = emitted_count = 0;
    uint32_t failed_count = 0;
    for (uint32_t i = 0; i < 4; i++) {
        const quern_result result = quern_schedule_run(own, NULL, 0);
        cr_assert(result == QUERN_OK || result == QUERN_ERROR_OUT_OF_MEMORY, "%s", quern_error_message());
        failed_count += result != QUERN_OK;
    }
    cr_assert_eq(failed_count, failing_allocator_failed_count(memory));
    cr_assert_eq(a_seen->count, emitted_count);
    quern_schedule_destroy(own);
    quern_world_destroy(small);
}

Test(event_misuse, emitted_events_survive_failed_allocations)
{
    for (uint64_t call = 1, failed = 1; failed > 0; call++) {
        failing_allocator *memory = failing_allocator_create();
        run_script(memory, call);
        failed = failing_allocator_failed_count(memory);
        failing_allocator_close(memory);
        cr_assert_lt(call, 200u);
    }
}

Test(event_misuse, a_system_without_memory_for_its_readers_is_not_added)
{
    for (uint64_t call = 1, failed = 1; failed > 0; call++) {
        failing_allocator *memory = failing_allocator_create();
        quern_world *small;
        must(quern_world_create(&(quern_world_def){.allocator = failing_allocator_interface(memory)},
                                &small));
        must(QUERN_EVENT_REGISTER_FIELDS(small, &hit, Hit, target, number));
        quern_schedule *own = setup_schedule(small);
        quern_system_def def = system_def("a", idle_run);
        def.emits[0] = def.reads_events[0] = hit;
        failing_allocator_fail_at(memory, call);
        while (quern_schedule_add_system(own, &def, NULL) != QUERN_OK) {
            quern_event_stats stats;
            must(quern_event_get_stats(small, hit, &stats));
            cr_assert_eq(stats.reader_count, 0u);
        }
        failed = failing_allocator_failed_count(memory);
        quern_schedule_destroy(own);
        quern_world_destroy(small);
        failing_allocator_close(memory);
    }
}
