/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_OVERLAY_H
#define KEEP_OVERLAY_H

/* Where the time of the last frames went: by system, and by thread. */

#include "scene.h"

enum { OVERLAY_FRAMES = 120, OVERLAY_THREADS_MAX = 16, OVERLAY_SYSTEMS_MAX = 64 };

/* What each thread did in a frame, as parts of it. */
typedef struct OverlayFrame {
    float busy[OVERLAY_THREADS_MAX], sync[OVERLAY_THREADS_MAX];
} OverlayFrame;

typedef struct Overlay {
    bool is_on;
    uint32_t thread_count;
    uint32_t next; /* the oldest of the frames */
    OverlayFrame frames[OVERLAY_FRAMES];
    float system_ms[OVERLAY_SYSTEMS_MAX]; /* smoothed, in the order of the schedule */
    float step_ms;                        /* smoothed */
    float fill_ms, call_ms;               /* smoothed: to fill batches, and what SDL does with them */
    float least_fill_ms, least_call_ms;   /* of all pictures; 0: there was none */
    uint32_t sprite_count, call_count;    /* of the last picture */
} Overlay;

/* Switches it, and with it the profile of the schedule that makes the game's steps. */
void overlay_switch(Overlay *overlay, Game *game, bool is_on);

/* Looks at the last step. */
void overlay_note(Overlay *overlay, Game *game, quern_jobs *jobs);

/* Looks at a picture that was shown, which took so much time, from its beginning. */
void overlay_note_picture(Overlay *overlay, const Canvas *canvas, float picture_ms);

void overlay_draw(const Overlay *overlay, Scene *scene);

#endif
