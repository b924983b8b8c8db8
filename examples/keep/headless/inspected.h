/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_INSPECTED_H
#define KEEP_INSPECTED_H

/* A recorded game that is shown in a browser while it is replayed. */

#include "../game/inputs.h"
#include "../inspection/inspection.h"

typedef struct InspectedOptions {
    uint32_t
        step_count; /* steps to run; 0: those of the recording, and then wait for the page until interrupted */
    uint32_t pace; /* steps per second; 0: as many as possible */
} InspectedOptions;

/* Replays the inputs. One that the game rejects is reported, and left out. */
void play_inspected(Inspection *inspection, const InspectedOptions *options, Game *game, Rewind *rewind,
                    const Inputs *inputs, quern_jobs *jobs);

#endif
