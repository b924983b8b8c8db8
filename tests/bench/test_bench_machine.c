/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/machine.h"
#include "bench/harness/measure.h"
#include "bench/harness/table.h"

#include <quern/jobs.h>

#include <criterion/criterion.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

TestSuite(bench_machine, .timeout = 60);

Test(bench_machine, describes_this_machine)
{
    quern_bench_suite suite = {.flags = "-O9"};
    quern__bench_machine machine = quern__bench_machine_describe(&suite);
    cr_expect_eq(machine.processor_count, quern_processor_count());
    cr_expect_str_eq(machine.flags, "-O9");
    cr_expect_gt(strlen(machine.processor), 0u);
    cr_expect_str_eq(machine.commit, "unknown", "the suite does not set it");
    cr_expect_eq(machine.date[10], 'T');
    cr_expect_eq(machine.checks, quern_has_checks());
    const quern_cache_sizes caches = quern_processor_caches();
    cr_assert_eq(machine.cache_count, 2);
    cr_expect_str_eq(machine.caches[0].name, "own");
    cr_expect_eq(machine.caches[0].bytes, caches.own_bytes);
    cr_expect_str_eq(machine.caches[1].name, "shared");
    cr_expect_eq(machine.caches[1].bytes, caches.shared_bytes);
    static const char *const sources[] = {"assumed", "sysconf", "kernel files"};
    cr_expect_str_eq(machine.caches[0].source, sources[caches.own_source]);
    cr_expect_str_eq(machine.caches[1].source, sources[caches.shared_source]);
    quern__bench_machine_close(&machine);
    cr_expect_null(machine.processor);
}

Test(bench_machine, sizes_and_figures_are_short)
{
    char text[QUERN__BENCH_SIZE_TEXT_BYTES];
    quern__bench_format_bytes(text, 512);
    cr_expect_str_eq(text, "512 bytes");
    quern__bench_format_bytes(text, 1536);
    cr_expect_str_eq(text, "1.5 KiB");
    quern__bench_format_bytes(text, (uint64_t)3 << 40);
    cr_expect_str_eq(text, "3 TiB");
    char figure[QUERN__BENCH_FIGURE_BYTES];
    quern__bench_format_figure(figure, 0.12345);
    cr_expect_str_eq(figure, "0.123");
    quern__bench_format_figure(figure, 123456.7);
    cr_expect_str_eq(figure, "123457");
}

Test(bench_machine, remaining_time_has_suitable_unit)
{
    char text[QUERN__BENCH_LEFT_TEXT_BYTES];
    quern__bench_format_left(text, 0.001, 5);
    cr_expect_str_eq(text, "", "no estimate after so little time");
    quern__bench_format_left(text, 0.5, 20);
    cr_expect_str_eq(text, "about 20 s left");
    quern__bench_format_left(text, 0.25, 100);
    cr_expect_str_eq(text, "about 5 min left");
    quern__bench_format_left(text, 0.5, 7200);
    cr_expect_str_eq(text, "about 2.0 h left");
}

#if defined(__linux__)
static uint32_t count_threads(void)
{
    uint32_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    cr_assert_not_null(tasks);
    for (const struct dirent *each; (each = readdir(tasks)) != NULL;)
        count += each->d_name[0] != '.';
    closedir(tasks);
    return count;
}

Test(bench_machine, a_crowd_begins_and_ends)
{
    const uint32_t before = count_threads();
    for (uint32_t round = 0; round < 2; round++) {
        cr_assert(quern__bench_crowd_start(3));
        cr_expect_eq(count_threads(), before + 3);
        quern__bench_crowd_stop();
        for (uint32_t look = 0; look < 20000 && count_threads() != before; look++)
            usleep(1000); /* a joined thread may be listed for a moment */
        cr_expect_eq(count_threads(), before);
    }
}

Test(bench_machine, pinning_is_undone)
{
    const uint32_t all = quern_processor_count();
    cr_expect_not(quern__bench_pin(all + 1), "more processors than there are");
    cr_expect_eq(quern_processor_count(), all);
    cr_assert(quern__bench_pin(1));
    cr_expect_eq(quern_processor_count(), 1);
    cr_assert(quern__bench_pin(all), "the processors of the process count, not the pinned ones");
    cr_expect_eq(quern_processor_count(), all);
    cr_assert(quern__bench_pin(1));
    quern__bench_unpin();
    cr_expect_eq(quern_processor_count(), all);
}
#endif
