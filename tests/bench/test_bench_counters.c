/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/machine.h"

#include <criterion/criterion.h>

#include <math.h>
#include <string.h>

TestSuite(bench_counters, .timeout = 60);

/* A fake source of hardware counters. */
static struct {
    bool is_refused, is_unreadable;
    quern_hardware_reading reading;
    int open_count;
} made;

static quern_result open_made(void *user_data, quern_hardware_scope scope, void **out_counters)
{
    cr_expect_eq(scope, QUERN_HARDWARE_PROCESS);
    if (made.is_refused) return QUERN_ERROR_UNAVAILABLE;
    made.open_count++;
    *out_counters = &made;
    return QUERN_OK;
}

static bool read_made(void *counters, quern_hardware_reading *out_reading)
{
    cr_expect_eq(counters, &made);
    *out_reading = made.reading;
    return !made.is_unreadable;
}

static void close_made(void *counters)
{
    made.open_count--;
}

static const quern_hardware_source source = {open_made, read_made, close_made, NULL};

static void pass_by(quern_hardware_event event, uint64_t count, uint64_t enabled_ns, uint64_t running_ns)
{
    made.reading.counts[event] += count;
    made.reading.enabled_ns[event] += enabled_ns;
    made.reading.running_ns[event] += running_ns;
}

/* Counts `value` events between start and stop, while the counter was enabled and running for these times. */
static void count(quern__bench_counters *counters, quern_hardware_event event, uint64_t value,
                  uint64_t enabled_ns, uint64_t running_ns)
{
    quern__bench_counters_start(counters);
    pass_by(event, value, enabled_ns, running_ns);
    quern__bench_counters_stop(counters);
}

Test(bench_counters, counts_between_start_and_stop_add_up)
{
    quern__bench_counters counters;
    pass_by(QUERN_HARDWARE_CYCLES, 1000, 50, 50);
    quern__bench_counters_open(&counters, &source);
    count(&counters, QUERN_HARDWARE_CYCLES, 300, 10, 10);
    pass_by(QUERN_HARDWARE_CYCLES, 77, 5, 5); /* events between stop and start do not count */
    count(&counters, QUERN_HARDWARE_CYCLES, 200, 10, 10);
    cr_expect_eq(counters.totals[QUERN_HARDWARE_CYCLES], 500);
    quern__bench_counters_reset(&counters);
    count(&counters, QUERN_HARDWARE_CYCLES, 5, 1, 1);
    cr_expect_eq(counters.totals[QUERN_HARDWARE_CYCLES], 5);
    quern__bench_counters_close(&counters);
    cr_expect_eq(made.open_count, 0);
}

Test(bench_counters, multiplexed_counts_are_scaled)
{
    quern__bench_counters counters;
    quern__bench_counters_open(&counters, &source);
    count(&counters, QUERN_HARDWARE_L1_MISSES, 100, 40, 10);
    cr_expect_eq(counters.totals[QUERN_HARDWARE_L1_MISSES], 400);
    quern__bench_counters_close(&counters);
}

Test(bench_counters, event_that_never_ran_has_no_count)
{
    quern__bench_counters counters;
    quern__bench_counters_open(&counters, &source);
    quern__bench_counters_start(&counters);
    pass_by(QUERN_HARDWARE_L1_MISSES, 0, 40, 0);
    pass_by(QUERN_HARDWARE_INSTRUCTIONS, 9, 1, 1);
    quern__bench_counters_stop(&counters);
    cr_expect(isnan(counters.totals[QUERN_HARDWARE_L1_MISSES]));
    cr_expect_eq(counters.totals[QUERN_HARDWARE_INSTRUCTIONS], 9);
    quern__bench_counters_close(&counters);
}

Test(bench_counters, failed_open_or_read_gives_no_count)
{
    quern__bench_counters counters;
    quern__bench_counters_open(&counters, &source);
    made.is_unreadable = true;
    count(&counters, QUERN_HARDWARE_CYCLES, 1, 1, 1);
    cr_expect(isnan(counters.totals[QUERN_HARDWARE_CYCLES]));
    quern__bench_counters_close(&counters);
    made.is_unreadable = false;
    made.is_refused = true;
    quern__bench_counters_open(&counters, &source);
    count(&counters, QUERN_HARDWARE_CYCLES, 1, 1, 1);
    cr_expect(isnan(counters.totals[QUERN_HARDWARE_CYCLES]));
    quern__bench_counters_close(&counters);
    cr_expect_eq(made.open_count, 0);
}

Test(bench_counters, availability_check_closes_the_source)
{
    cr_expect(quern__bench_counters_available(&source));
    cr_expect_eq(made.open_count, 0);
    made.is_refused = true;
    cr_expect_not(quern__bench_counters_available(&source));
}
