/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Test labels: threaded */
#include "tests/sched/frame/event_scene.h"
#include "tests/support/failing_allocator.h"

#include <pthread.h>

/* Refused emitting and reading, and events when memory is missing. */

static captured_reports reports;

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
    failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + failing_call);
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
        failing_allocator_fail_at(memory, failing_allocator_call_count(memory) + call);
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
