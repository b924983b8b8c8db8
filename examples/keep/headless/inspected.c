/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "inspected.h"

#include <signal.h>
#include <stdio.h>

enum { MESSAGE_BYTES = 512, NS_PER_SECOND = 1000000000, PACE_AT_END = 60 };

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    is_interrupted = 1;
}

/* A player of the page may have changed the world, so that an input is impossible: it is reported and left out. */
static void step(Inspection *inspection, Game *game, Rewind *rewind, const Inputs *inputs, quern_jobs *jobs)
{
    char message[MESSAGE_BYTES];
    uint32_t next = inputs_before(inputs, game_state(game)->step);
    for (; !inputs_replay(inputs, &next, game, message, sizeof message); next++)
        fprintf(stderr, "keep: %s\n", message);
    inspection_step(inspection, game, jobs);
    rewind_save(rewind, game, jobs);
}

/* The time until the next step belongs to the inspector. */
static void rest(Inspection *inspection, Game *game, uint32_t pace)
{
    if (pace > 0) inspection_wait(inspection, game, NS_PER_SECOND / pace);
}

/* After the last step, the page can still go back, so the program answers until it is interrupted. */
void play_inspected(Inspection *inspection, const InspectedOptions *options, Game *game, Rewind *rewind,
                    const Inputs *inputs, quern_jobs *jobs)
{
    const uint64_t end = options->step_count != 0 ? options->step_count : inputs->end;
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    inspection_open(inspection, game, rewind, jobs);
    rewind_save(rewind, game, jobs);
    while (!is_interrupted && (options->step_count == 0 || game_state(game)->step < end)) {
        if (!inspection_update(inspection, game)) continue; /* paused */
        if (game_state(game)->step < end) {
            step(inspection, game, rewind, inputs, jobs);
            rest(inspection, game, options->pace);
        } else {
            rest(inspection, game, PACE_AT_END);
        }
    }
    inspection_close(inspection);
}
