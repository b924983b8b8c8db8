/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* live --measure: how long a reload of many.c takes in a world of many entities, without and with a changed component, and
 * how long an archive of that component takes. Prints JSON with the least and the median of several reloads. */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ENTITIES = 100000, REPEATS = 15, TYPES_PER_ENTITY = 5, KINDS = 8 };

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static void print_times(const char *name, double times[REPEATS])
{
    qsort(times, REPEATS, sizeof times[0], compare);
    printf(",\n  \"%s\": {\"least_ms\": %.3f, \"median_ms\": %.3f}", name, times[0] * 1e3,
           times[REPEATS / 2] * 1e3);
}

/* Compiles the module to a path. */
static void compile(const Host *host, const char *options, const char *library)
{
    char command[COMMAND_BYTES];
    (void)snprintf(command, sizeof command, "%s %s '%s' -o '%s'", LIVE_COMPILE_C, options, host->source,
                   library);
    if (system(command) != 0) { /* NOLINT(cert-env33-c): the command is that of the build */
        fprintf(stderr, "live: the compiler failed: %s\n", command);
        exit(1);
    }
}

static void populate(quern_world *world)
{
    for (int kind = 0; kind < KINDS; kind++) {
        quern_component types[TYPES_PER_ENTITY];
        for (int i = 0; i < TYPES_PER_ENTITY; i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "Type %d", i == 0 ? 0 : 1 + (kind * 2 + i) % 19);
            types[i] = quern_component_find(world, name);
        }
        QUERN_MUST(quern_entity_create_many(world, types, NULL, TYPES_PER_ENTITY, ENTITIES / KINDS, NULL));
    }
}

/* Saves and loads a world of as many entities with the first component alone. */
static double time_archive(const Host *host)
{
    Host one = *host, other = *host;
    host_open(&one, 1);
    host_open(&other, 1);
    QUERN_MUST(quern_live_add(one.live, host->library, "many"));
    QUERN_MUST(quern_live_add(other.live, host->library, "many"));
    const quern_component type = quern_component_find(one.world, "Type 0");
    QUERN_MUST(quern_entity_create_many(one.world, &type, NULL, 1, ENTITIES, NULL));
    quern_byte_buffer bytes = {0};
    const double before = seconds_now();
    QUERN_MUST(quern_world_save(one.world, quern_sink_bytes(&bytes), NULL));
    QUERN_MUST(quern_world_load(
        other.world, (quern_source){.memory = bytes.bytes, .memory_bytes = bytes.size_bytes}, NULL, NULL));
    const double seconds = seconds_now() - before;
    quern_byte_buffer_release(&bytes);
    host_close(&one);
    host_close(&other);
    return seconds;
}

/* Puts a library in place of another one, which host->live then loads. Returns the seconds besides those of loading it. */
static double reload(const Host *host, const char *library, double *out_load_seconds)
{
    char command[COMMAND_BYTES];
    quern_live_info info;
    uint32_t count = 0;
    (void)snprintf(command, sizeof command, "cp '%s' '%s.new' && mv '%s.new' '%s'", library, host->library,
                   host->library, host->library);
    if (system(command) != 0) exit(1); /* NOLINT(cert-env33-c): a copy in the folder of the example */
    const double before = seconds_now();
    QUERN_MUST(quern_live_update(host->live, &count));
    const double seconds = seconds_now() - before;
    QUERN_MUST(quern_live_get_info(host->live, 0, &info));
    if (count != 1) {
        fputs("live: the module was not reloaded\n", stderr);
        exit(1);
    }
    *out_load_seconds = (double)info.load_ns * 1e-9;
    return seconds - *out_load_seconds;
}

int host_measure(const char *source)
{
    Host host = {.is_cpp = false};
    char narrow[PATH_BYTES], wide[PATH_BYTES];
    double loads[REPEATS], equal[REPEATS], converted[REPEATS], archives[REPEATS];
    host_choose_paths(&host, source);
    (void)snprintf(narrow, sizeof narrow, "%.400s/narrow.so", host.folder);
    (void)snprintf(wide, sizeof wide, "%.400s/wide.so", host.folder);
    compile(&host, "", narrow);
    compile(&host, "-DWIDER", wide);
    compile(&host, "", host.library);
    host_open(&host, 1);
    QUERN_MUST(quern_live_add(host.live, host.library, "many"));
    populate(host.world);
    QUERN_MUST(quern_schedule_run(host.schedule, host.jobs, 1));
    for (int i = 0; i < REPEATS; i++) {
        double ignored;
        equal[i] = reload(&host, narrow, &loads[i]);
        archives[i] = time_archive(&host);
        converted[i] = reload(&host, wide, &ignored);
        QUERN_MUST(quern_schedule_run(host.schedule, host.jobs, 1));
        (void)reload(&host, narrow, &ignored);
        QUERN_MUST(quern_schedule_run(host.schedule, host.jobs, 1));
    }
    printf("{\"entities\": %d, \"systems\": %u, \"repeats\": %d", ENTITIES,
           quern_schedule_system_count(host.schedule), REPEATS);
    print_times("load the library", loads);
    print_times("reload", equal);
    print_times("reload with a component converted", converted);
    print_times("archive of the component", archives);
    printf("\n}\n");
    host_close(&host);
    (void)remove(narrow);
    (void)remove(wide);
    host_remove_paths(&host);
    return 0;
}
