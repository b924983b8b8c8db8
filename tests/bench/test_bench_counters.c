/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/counters.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

TestSuite(bench_counters, .timeout = 60);

/* A processor made by hand: handles are the events' numbers plus ten. */
static struct {
    int errors[QUERN__BENCH_COUNTER_COUNT]; /* 0: the event is there */
    quern__bench_reading readings[QUERN__BENCH_COUNTER_COUNT];
    bool enabled[QUERN__BENCH_COUNTER_COUNT];
    bool unreadable;
    int open_count;
} made;

static int open_made(quern__bench_counter counter)
{
    if (made.errors[counter] != 0) return -made.errors[counter];
    made.open_count++;
    return (int)counter + 10;
}

static void enable_made(int handle, bool enabled)
{
    made.enabled[handle - 10] = enabled;
}

static bool read_made(int handle, quern__bench_reading *reading)
{
    *reading = made.readings[handle - 10];
    return !made.unreadable;
}

static void close_made(int handle)
{
    (void)handle;
    made.open_count--;
}

static const quern__bench_counter_source source = {open_made, enable_made, read_made, close_made};

/* Between start and stop: so many events while the counter ran for part of the time it was on. */
static void count(quern__bench_counters *counters, quern__bench_counter counter, uint64_t value,
                  uint64_t enabled_ns, uint64_t running_ns)
{
    quern__bench_counters_start(counters);
    cr_expect(made.enabled[counter]);
    made.readings[counter].value += value;
    made.readings[counter].enabled_ns += enabled_ns;
    made.readings[counter].running_ns += running_ns;
    quern__bench_counters_stop(counters);
    cr_expect_not(made.enabled[counter]);
}

Test(bench_counters, counts_between_start_and_stop_add_up)
{
    quern__bench_counters counters;
    made.readings[QUERN__BENCH_CYCLES] = (quern__bench_reading){1000, 50, 50};
    quern__bench_counters_open(&counters, &source);
    count(&counters, QUERN__BENCH_CYCLES, 300, 10, 10);
    made.readings[QUERN__BENCH_CYCLES].value += 77; /* of somebody else, in between */
    count(&counters, QUERN__BENCH_CYCLES, 200, 10, 10);
    cr_expect_eq(counters.totals[QUERN__BENCH_CYCLES], 500);
    quern__bench_counters_reset(&counters);
    count(&counters, QUERN__BENCH_CYCLES, 5, 1, 1);
    cr_expect_eq(counters.totals[QUERN__BENCH_CYCLES], 5);
    quern__bench_counters_close(&counters);
    cr_expect_eq(made.open_count, 0);
}

Test(bench_counters, counts_of_events_that_took_turns_are_scaled)
{
    quern__bench_counters counters;
    quern__bench_counters_open(&counters, &source);
    count(&counters, QUERN__BENCH_L1_MISSES, 100, 40, 10);
    cr_expect_eq(counters.totals[QUERN__BENCH_L1_MISSES], 400);
    quern__bench_counters_close(&counters);
}

Test(bench_counters, an_event_that_never_had_its_turn_has_no_count)
{
    quern__bench_counters counters;
    quern__bench_counters_open(&counters, &source);
    count(&counters, QUERN__BENCH_L1_MISSES, 0, 40, 0);
    cr_expect(isnan(counters.totals[QUERN__BENCH_L1_MISSES]));
    quern__bench_counters_close(&counters);
}

Test(bench_counters, a_missing_event_takes_no_other_with_it)
{
    quern__bench_counters counters;
    char reason[128] = "";
    made.errors[QUERN__BENCH_CYCLES] = ENOENT;
    quern__bench_counters_open(&counters, &source);
    count(&counters, QUERN__BENCH_INSTRUCTIONS, 9, 1, 1);
    cr_expect(isnan(counters.totals[QUERN__BENCH_CYCLES]));
    cr_expect_eq(counters.totals[QUERN__BENCH_INSTRUCTIONS], 9);
    quern__bench_counters_close(&counters);
    cr_expect(quern__bench_counters_available(&source, reason, sizeof reason));
    cr_expect_eq(made.open_count, 0);
}

Test(bench_counters, what_cannot_be_read_has_no_count)
{
    quern__bench_counters counters;
    quern__bench_counters_open(&counters, &source);
    made.unreadable = true;
    count(&counters, QUERN__BENCH_CYCLES, 1, 1, 1);
    cr_expect(isnan(counters.totals[QUERN__BENCH_CYCLES]));
    quern__bench_counters_close(&counters);
}

static void expect_reason(int error, const char *expected)
{
    char reason[256] = "";
    for (int i = 0; i < QUERN__BENCH_COUNTER_COUNT; i++)
        made.errors[i] = error;
    cr_expect_not(quern__bench_counters_available(&source, reason, sizeof reason));
    cr_expect(strstr(reason, "hardware counters are not available") != NULL, "%s", reason);
    cr_expect(strstr(reason, expected) != NULL, "%s", reason);
}

Test(bench_counters, a_refusal_is_explained)
{
    expect_reason(EACCES, "perf_event_paranoid");
    expect_reason(EPERM, "perf_event_paranoid");
    expect_reason(ENOENT, "virtual machine");
    expect_reason(EOPNOTSUPP, "virtual machine");
    expect_reason(ENOSYS, "perf_event_open");
    expect_reason(EMFILE, strerror(EMFILE));
}

static volatile uint64_t sink;

/* On this machine, whatever it allows: either counts that can be right, or a reason. */
Test(bench_counters, the_system_counts_or_says_why_not)
{
    quern__bench_counters counters;
    char reason[256] = "";
    if (!quern__bench_counters_available(&quern__bench_system_counters, reason, sizeof reason)) {
        cr_expect(strstr(reason, "not available") != NULL);
        return;
    }
    quern__bench_counters_open(&counters, &quern__bench_system_counters);
    quern__bench_counters_start(&counters);
    for (uint64_t i = 0; i < 1000000; i++)
        sink += i;
    quern__bench_counters_stop(&counters);
    const double instructions = counters.totals[QUERN__BENCH_INSTRUCTIONS];
    cr_expect(isnan(instructions) || instructions >= 1000000, "%g instructions", instructions);
    quern__bench_counters_close(&counters);
}
