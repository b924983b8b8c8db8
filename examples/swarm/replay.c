/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "replay.h"

#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static FILE *open_file(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);
    if (file != NULL) return file;
    fprintf(stderr, "swarm: %s: %s\n", path, strerror(errno));
    exit(EXIT_FAILURE);
}

/* Begins a recording if the options ask for one. The resource with the rules is its only input. */
void recording_open(Recording *recording, const Options *options, Simulation *simulation)
{
    *recording = (Recording){.recorder = NULL};
    if (options->record == NULL) return;
    const quern_replay_recorder_def def = {.inputs = {simulation->types.rules}};
    recording->file = open_file(options->record, "wb");
    check(quern_replay_recorder_create(simulation->schedule, quern_sink_file(recording->file), &def,
                                       &recording->recorder));
}

void recording_close(Recording *recording)
{
    if (recording->recorder == NULL) return;
    check(quern_replay_finish(recording->recorder));
    fclose(recording->file); /* the sink has flushed it */
}

void recording_step(Recording *recording, Simulation *simulation, quern_jobs *jobs)
{
    if (recording->recorder == NULL)
        simulation_step(simulation, jobs);
    else
        check(quern_replay_record(recording->recorder, jobs, simulation_frame_seconds));
}

static bool should_continue(void *user_data, uint64_t frame)
{
    const volatile sig_atomic_t *is_interrupted = user_data;
    (void)frame;
    return !*is_interrupted;
}

bool replay_run(const Options *options, Simulation *simulation, quern_jobs *jobs,
                const volatile sig_atomic_t *is_interrupted)
{
    quern_replay_report report;
    const quern_replay_run_def def = {.after_frame = should_continue,
                                      .user_data = (void *)(uintptr_t)is_interrupted};
    FILE *file = open_file(options->replay, "rb");
    const quern_result result =
        quern_replay_run(simulation->schedule, jobs, quern_source_file(file), &def, &report);
    fclose(file);
    printf("replay: %" PRIu64 " frames agree", report.frame_count);
    if (result == QUERN_OK || result == QUERN_ERROR_CANCELLED)
        printf("%s, world hash: 0x%016" PRIx64 "\n", result == QUERN_OK ? "" : ", then it was interrupted",
               quern_world_hash(simulation->world));
    else if (result == QUERN_ERROR_DIVERGED)
        printf(", then they diverge\n%s\n", report.text);
    else
        printf("; %s: %s\n", quern_result_string(result), quern_error_message());
    return result == QUERN_OK || result == QUERN_ERROR_CANCELLED;
}
