/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspection.h"

#include "../game/check.h"

#include <stdio.h>
#include <stdlib.h>

void inspection_create_history(const Inspection *inspection, Rewind *rewind, Game *game)
{
    if (inspection->is_on)
        rewind_create(rewind, game, 1, INSPECTED_STEPS);
    else
        rewind_create(rewind, game, REWIND_STRIDE, REWIND_SECONDS * STEPS_PER_SECOND / REWIND_STRIDE);
}

#ifdef KEEP_INSPECT

#include <quern/inspect.h>

enum { TRACE_EVENTS = 8192 };

void inspection_create(Inspection *inspection, uint16_t port, uint32_t thread_count)
{
    const quern_trace_def def = {.track_count = thread_count != 0 ? thread_count : quern_processor_count(),
                                 .events_per_track = TRACE_EVENTS};
    *inspection = (Inspection){.is_on = true, .port = port};
    check(quern_trace_create(&def, &inspection->trace));
}

static void serve(Inspection *inspection)
{
    const bool is_first = inspection->token[0] == '\0';
    const quern_inspect_server_def def = {.port = inspection->port,
                                          .token = is_first ? NULL : inspection->token};
    check(quern_inspector_serve(inspection->inspector, &def));
    if (!is_first) return;
    const char *url = quern_inspector_url(inspection->inspector);
    if (sscanf(url, "http://127.0.0.1:%hu/%79[0-9a-zA-Z]", &inspection->port, inspection->token) != 2)
        inspection->token[0] = '\0';
    printf("inspector: %s\n", url);
    fflush(stdout);
}

void inspection_open(Inspection *inspection, Game *game, Rewind *rewind, quern_jobs *jobs)
{
    if (!inspection->is_on) return;
    const quern_inspector_def def = {.world = game->world,
                                     .schedule = game->schedule,
                                     .history = rewind->history,
                                     .jobs = jobs,
                                     .trace = inspection->trace,
                                     .title = "keep"};
    check(quern_inspector_create(&def, &inspection->inspector));
    serve(inspection);
}

void inspection_close(Inspection *inspection)
{
    quern_inspector_destroy(inspection->inspector);
    inspection->inspector = NULL;
}

void inspection_destroy(Inspection *inspection)
{
    quern_trace_destroy(inspection->trace);
    inspection->trace = NULL;
}

/* The number of the step is part of the world, so it is right again after a restore. */
bool inspection_update(Inspection *inspection, Game *game)
{
    uint64_t step = game_state(game)->step;
    return quern_inspector_update(inspection->inspector, &step);
}

void inspection_wait(Inspection *inspection, Game *game, uint64_t nanoseconds)
{
    uint64_t step = game_state(game)->step;
    quern_inspector_wait(inspection->inspector, &step, nanoseconds);
}

void inspection_step(Inspection *inspection, Game *game, quern_jobs *jobs)
{
    if (inspection->inspector != NULL)
        check(quern_inspector_run(inspection->inspector, 1.0 / STEPS_PER_SECOND));
    else
        game_step(game, jobs);
}

#else

void inspection_create(Inspection *inspection, uint16_t port, uint32_t thread_count)
{
    (void)inspection;
    (void)port;
    (void)thread_count;
    fputs("keep: --inspect needs the inspector, and this program was built without it: "
          "build it on Linux or another system with POSIX\n",
          stderr);
    exit(2);
}

void inspection_open(Inspection *inspection, Game *game, Rewind *rewind, quern_jobs *jobs)
{
    (void)inspection;
    (void)game;
    (void)rewind;
    (void)jobs;
}

void inspection_close(Inspection *inspection)
{
    (void)inspection;
}

void inspection_destroy(Inspection *inspection)
{
    (void)inspection;
}

bool inspection_update(Inspection *inspection, Game *game)
{
    (void)inspection;
    (void)game;
    return true;
}

void inspection_wait(Inspection *inspection, Game *game, uint64_t nanoseconds)
{
    (void)inspection;
    (void)game;
    (void)nanoseconds;
}

void inspection_step(Inspection *inspection, Game *game, quern_jobs *jobs)
{
    (void)inspection;
    game_step(game, jobs);
}

#endif
