/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "bench/harness/profile.h"

#include <inttypes.h>
#include <stdlib.h>

#include "bench/harness/base.h"

#include <quern/profile.h>

static struct quern_schedule *subject_schedule;

void quern_bench_set_schedule(struct quern_schedule *schedule)
{
    subject_schedule = schedule;
}

struct quern_schedule *quern__bench_take_schedule(void)
{
    struct quern_schedule *schedule = subject_schedule;
    subject_schedule = NULL;
    return schedule;
}

bool quern__bench_profiles_open(quern__bench_profiles *profiles, const quern_hardware_source *source)
{
    *profiles = (quern__bench_profiles){.source = source};
    profiles->file = open_memstream(&profiles->text, &profiles->bytes);
    if (profiles->file == NULL) quern__bench_note("--profile: out of memory; no profile is recorded");
    return profiles->file != NULL;
}

static void require(quern_result result)
{
    if (result != QUERN_OK) quern_bench_die("--profile: %s", quern_error_message());
}

void quern__bench_profiles_start(const quern__bench_profiles *profiles, struct quern_schedule *schedule)
{
    require(quern_schedule_set_counting(schedule, profiles->source));
    require(quern_schedule_set_profiling(schedule, true));
}

void quern__bench_profiles_finish(const quern__bench_profiles *profiles, struct quern_schedule *schedule,
                                  const char *workload, const char *subject, const quern_bench_case *scene)
{
    fprintf(profiles->file, "\nProfile of %s, %" PRIu32 " entities, %" PRIu32 " thread%s, %s\n", workload,
            scene->entity_count, scene->thread_count, scene->thread_count == 1 ? "" : "s", subject);
    require(quern_schedule_write_profile(schedule, quern_sink_file(profiles->file)));
    require(quern_schedule_set_profiling(schedule, false));
    require(quern_schedule_set_counting(schedule, NULL));
}

void quern__bench_profiles_write(quern__bench_profiles *profiles, FILE *file)
{
    fflush(profiles->file);
    if (profiles->bytes == 0)
        quern__bench_note(
            "--profile: no profile, because no measured subject has called quern_bench_set_schedule");
    else
        fwrite(profiles->text, 1, profiles->bytes, file);
}

void quern__bench_profiles_close(quern__bench_profiles *profiles)
{
    if (profiles->file != NULL) fclose(profiles->file);
    free(profiles->text);
    *profiles = (quern__bench_profiles){0};
}
