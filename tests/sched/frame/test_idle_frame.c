/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "tests/flow/flow_setup.h"
#include "tests/support/fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

/* What a frame with nothing to do must not do: format text, allocate memory, or read a clock more often
 * than its statistics need. This could cost more than the rest of such a frame, and no result would show
 * it. The linker redirects the library's calls to this file (--wrap; see the list of tests). */

static uint64_t text_count, clock_count;

/* NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the linker's names */
int __real_vsnprintf(char *text, size_t bytes, const char *format, va_list arguments);
int __real_clock_gettime(clockid_t clock, struct timespec *out_time);
int __wrap_vsnprintf(char *text, size_t bytes, const char *format, va_list arguments);
int __wrap_snprintf(char *text, size_t bytes, const char *format, ...);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out_time);

int __wrap_vsnprintf(char *text, size_t bytes, const char *format, va_list arguments)
{
    text_count++;
    return __real_vsnprintf(text, bytes, format, arguments);
}

int __wrap_snprintf(char *text, size_t bytes, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = __wrap_vsnprintf(text, bytes, format, arguments);
    va_end(arguments);
    return length;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out_time)
{
    clock_count++;
    return __real_clock_gettime(clock, out_time);
}
/* NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming) */

enum { WARM_FRAMES = 3, FRAMES = 10, PHASES = 2 };

static failing_allocator *memory;
static quern_schedule *schedule;
static quern_component number, absent;
static quern_event spark;

static void add_one(quern_context *context, const quern_view *view)
{
    uint64_t *numbers = quern_view_write(view, 0);
    for (uint32_t i = 0; i < view->count; i++)
        numbers[i]++;
}

static void see_nothing(quern_context *context, const quern_view *view)
{
    cr_assert(false, "there is nothing to see");
}

static bool is_due(quern_context *context)
{
    return quern_context_frame_index(context) % 2 == 0;
}

/* Adds systems of each kind, most of which match nothing, and one that records nothing. */
static void open_world(void)
{
    memory = open_failing_world();
    number = setup_component(world, "number", 8, 8);
    absent = setup_component(world, "absent", 8, 8);
    must(quern_event_register(world, &(quern_event_def){.name = "spark", .size_bytes = 8}, &spark));
    setup_entity_with(world, &number, 1);
    schedule = setup_phases(world, PHASES);
    quern_system_def writer = system_def("writer", add_one), nobody = system_def("nobody", see_nothing),
                     reader = system_def("reader", see_nothing),
                     reaction = system_def("reaction", see_nothing);
    writer.terms[0] = quern_term_write(number);
    writer.condition = is_due;
    nobody.terms[0] = quern_term_read(absent);
    nobody.emits[0] = spark;
    reader.items = spark;
    reader.phase = 1;
    reaction.terms[0] = quern_term_read(absent);
    reaction.reacts_to = QUERN_REACT_ADDED | QUERN_REACT_SET | QUERN_REACT_REMOVED;
    setup_system(schedule, &writer);
    setup_system(schedule, &nobody);
    setup_system(schedule, &reader);
    setup_system(schedule, &reaction);
    for (uint32_t i = 0; i < WARM_FRAMES; i++)
        must_run(schedule, NULL);
}

TestSuite(idle_frame, .init = open_world, .fini = close_world);

Test(idle_frame, formats_no_text_allocates_nothing_and_reads_clock_twice)
{
    const uint64_t texts = text_count, clocks = clock_count, calls = failing_allocator_call_count(memory);
    for (uint32_t i = 0; i < FRAMES; i++)
        must_run(schedule, NULL);
    cr_assert_eq(text_count, texts, "%llu texts", (unsigned long long)(text_count - texts));
    cr_assert_eq(clock_count - clocks, 2u * FRAMES, "%llu looks",
                 (unsigned long long)(clock_count - clocks));
    cr_assert_eq(failing_allocator_call_count(memory), calls);
}

Test(idle_frame, test_detects_text_allocations_and_clock_reads)
{
    const uint64_t texts = text_count, clocks = clock_count, calls = failing_allocator_call_count(memory);
    cr_assert_null(quern_entity_get(world, quern_entity_null(), number));
    cr_assert_gt(text_count, texts, "messages are texts");
    must(quern_schedule_set_profiling(schedule, true));
    must_run(schedule, NULL);
    cr_assert_gt(clock_count, clocks + 2, "profiles read a clock");
    cr_assert_gt(failing_allocator_call_count(memory), calls, "they need memory");
}
