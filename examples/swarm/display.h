/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_DISPLAY_H
#define SWARM_DISPLAY_H

/* The output while the simulation runs: a map and status lines on a terminal, otherwise a line of text
 * for each tenth of the run. */

#include "map.h"
#include "options.h"
#include "record.h"

typedef struct Display {
    bool is_live;
    uint32_t frame_count; /* frames of the whole run; 0: unknown */
    uint32_t thread_count;
    uint64_t start_ns;
    uint64_t drawn_ns; /* time of the last drawing */
    Map map;           /* only if is_live */
} Display;

void display_start(Display *display, const Options *options, const Simulation *simulation,
                   uint32_t thread_count);

/* Call it after each frame. It draws only from time to time. */
void display_update(Display *display, Simulation *simulation, const Record *record);

void display_stop(Display *display);

#endif
