/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_PLAY_H
#define KEEP_PLAY_H

/* A game that is being played or watched, with all that shows it. */

#include "../game/inputs.h"
#include "../game/rewind.h"
#include "hud.h"
#include "options.h"
#include "overlay.h"
#include "sound.h"

typedef struct Play {
    Game game;
    Rewind rewind;
    Scene scene;
    Canvas canvas;
    Hud hud;
    Overlay overlay;
    Sound sound;
    SDL_Window *window;
    Level level;
    Inputs recorded;     /* what is watched; nothing when somebody plays */
    uint32_t next_input; /* of those */
    Inputs played;       /* what the player has done */
    quern_jobs *jobs;
    float owed_steps;       /* time that was not made into steps yet */
    bool has_ended;         /* the player leaves */
    uint64_t drawing_since; /* by SDL's clock: the last picture */
} Play;

/* Begins a new game of the level. Ends the program with a message when that cannot be. */
void play_begin(Play *play);
void play_end(Play *play);

/* Makes the steps that are due after so much time. */
void play_advance(Play *play, float seconds);

/* One step, whether it is due or not. */
void play_step(Play *play);

/* Draws a picture, so many seconds after the last one; and shows it. */
void play_draw(Play *play, float seconds);
void play_show(Play *play);

/* What a key, a button or the mouse does. */
void play_handle(Play *play, const SDL_Event *event);

#endif
