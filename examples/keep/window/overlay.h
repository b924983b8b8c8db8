/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_OVERLAY_H
#define KEEP_OVERLAY_H

/* The overlay shows where the time of the last frames was spent, by system and by thread. */

#include "scene.h"

enum { OVERLAY_FRAMES = 120, OVERLAY_THREADS_MAX = 16, OVERLAY_SYSTEMS_MAX = 64 };

/* The activity of each thread in a frame, as fractions of the frame. */
typedef struct OverlayFrame {
    float busy[OVERLAY_THREADS_MAX], sync[OVERLAY_THREADS_MAX];
} OverlayFrame;

typedef struct Overlay {
    bool is_on;
    uint32_t thread_count;
    uint32_t next; /* index of the oldest frame */
    OverlayFrame frames[OVERLAY_FRAMES];
    float system_ms[OVERLAY_SYSTEMS_MAX]; /* smoothed, in the order of the schedule */
    float step_ms;                        /* smoothed */
    float fill_ms, call_ms;               /* smoothed: filling batches, and SDL drawing them */
    float least_fill_ms, least_call_ms;   /* minimum of all pictures; 0: no picture yet */
    uint32_t sprite_count, call_count;    /* of the last picture */
} Overlay;

/* Shows or hides the overlay, and enables or disables the profile of the schedule of the game. */
void overlay_switch(Overlay *overlay, Game *game, bool is_on);

/* Adds the last step. */
void overlay_add_step(Overlay *overlay, Game *game, quern_jobs *jobs);

/* Adds a picture that was shown. picture_ms: its duration from the beginning. */
void overlay_add_picture(Overlay *overlay, const Canvas *canvas, float picture_ms);

void overlay_draw(const Overlay *overlay, Scene *scene);

#endif
