/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Runs games of netplay of many seeds (tests/kit/netplay_simulation.h). Failing seeds are shrunk and printed. */
#include "tests/kit/netplay_simulation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: simulate COUNT [--seed FIRST] [--events MASK] [--kinds MASK] [--no-shrink] [--verbose] "
    "[--matrix]\n"
    "Runs COUNT games of netplay in virtual time, one for each seed from FIRST (default 1) on.\n"
    "\n"
    "  --events MASK  of the events of each game, only those whose bits are set; failing games print "
    "theirs\n"
    "  --kinds MASK   kinds of events: 1 death, 2 pause, 4 cut one way, 8 split, 16 burst of loss, 32 "
    "latency,\n"
    "                 64 clock jump, 128 a player that sends absurd fields,\n"
    "                 256 spectators, 512 worlds of 10 to 50 MB (default: all but the last three)\n"
    "  --matrix       print how many games had each pair of kinds and traits\n"
    "  --no-shrink    print failing games as they are\n"
    "  --verbose      print each game\n";

static uint64_t parse_number(const char *text)
{
    char *end;
    const uint64_t number = strtoull(text, &end, 0);
    if (*text != '\0' && *end == '\0') return number;
    fprintf(stderr, "simulate: '%s' is not a number\n%s", text, usage);
    exit(2);
}

/* Prints how many games had both of two traits. */
static void print_matrix(uint64_t (*games)[SIMULATION_TRAITS])
{
    printf("%-12s", "");
    for (uint32_t i = 0; i < SIMULATION_TRAITS; i++)
        printf("%12s", simulation_trait_name(i));
    for (uint32_t i = 0; i < SIMULATION_TRAITS; i++) {
        printf("\n%-12s", simulation_trait_name(i));
        for (uint32_t k = 0; k <= i; k++)
            printf("%12llu", (unsigned long long)games[i][k]);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    uint64_t count = 0, first = 1, failed_count = 0, compared_count = 0, settle_ms = 0, cancelled_count = 0;
    uint64_t join_count = 0, death_count = 0, call_count = 0, packet_count = 0, rerun_count = 0,
             sent_bytes = 0, loaded_bytes = 0, reused_bytes = 0;
    uint32_t events = UINT32_MAX, kinds = 0;
    bool shrinks = true, is_verbose = false, has_matrix = false;
    uint64_t games[SIMULATION_TRAITS][SIMULATION_TRAITS] = {{0}};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--no-shrink") == 0)
            shrinks = false;
        else if (strcmp(argv[i], "--verbose") == 0)
            is_verbose = true;
        else if (strcmp(argv[i], "--matrix") == 0)
            has_matrix = true;
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            first = parse_number(argv[++i]);
        else if (strcmp(argv[i], "--events") == 0 && i + 1 < argc)
            events = (uint32_t)parse_number(argv[++i]);
        else if (strcmp(argv[i], "--kinds") == 0 && i + 1 < argc)
            kinds = (uint32_t)parse_number(argv[++i]);
        else
            count = parse_number(argv[i]);
    }
    if (count == 0) {
        fputs(usage, stderr);
        return 2;
    }
    for (uint64_t seed = first; seed < first + count; seed++) {
        simulation_plan plan;
        simulation_result result;
        simulation_draw(seed, kinds, &plan);
        uint32_t enabled = events;
        if (is_verbose) simulation_print(&plan, enabled);
        const uint32_t traits = simulation_traits(&plan, enabled);
        for (uint32_t i = 0; i < SIMULATION_TRAITS; i++)
            for (uint32_t k = 0; k <= i; k++)
                games[i][k] += (traits >> i & 1) != 0 && (traits >> k & 1) != 0;
        simulation_run(&plan, enabled, &result);
        if (result.has_failed) {
            failed_count++;
            if (shrinks) {
                enabled = simulation_shrink(&plan, enabled);
                simulation_run(&plan, enabled, &result);
            }
            const uint32_t all = plan.event_count < 32 ? (1u << plan.event_count) - 1 : UINT32_MAX;
            printf("seed %llu fails; replay: ./run netplay --simulate 1 --seed %llu --events %#x",
                   (unsigned long long)seed, (unsigned long long)seed, enabled & all);
            if (kinds != 0) printf(" --kinds %u", kinds);
            printf("\n  %s\n", result.failure);
            if (shrinks) simulation_print(&plan, enabled);
            fflush(stdout);
        }
        compared_count += result.compared_count;
        cancelled_count += result.cancelled_count;
        join_count += result.join_count;
        death_count += result.death_count;
        call_count += result.call_count;
        packet_count += result.packet_count;
        sent_bytes += result.sent_bytes;
        loaded_bytes += result.loaded_bytes;
        reused_bytes += result.reused_bytes;
        rerun_count += result.rerun_count;
        if (!result.has_failed && result.settle_ms > settle_ms) settle_ms = result.settle_ms;
    }
    printf("%llu games, %llu failed; %llu deaths, %llu joins, %llu cancelled; %llu calls, %llu packets, "
           "%.1f bytes per player and frame, %llu frames run again, %llu hashes compared; %llu bytes of "
           "worlds "
           "loaded, %llu of them from earlier ones; longest way back %llu ms\n",
           (unsigned long long)count, (unsigned long long)failed_count, (unsigned long long)death_count,
           (unsigned long long)join_count, (unsigned long long)cancelled_count,
           (unsigned long long)call_count, (unsigned long long)packet_count,
           (double)sent_bytes / (double)call_count, (unsigned long long)rerun_count,
           (unsigned long long)compared_count, (unsigned long long)loaded_bytes,
           (unsigned long long)reused_bytes, (unsigned long long)settle_ms);
    if (has_matrix) print_matrix(games);
    return failed_count > 0;
}
