/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_PLAY_H
#define KEEP_PLAY_H

/* A game that is played or watched, with its display and its sound. */

#include "../game/saves.h"
#include "../inspection/inspection.h"
#include "../net/net.h"
#include "hud.h"
#include "options.h"
#include "overlay.h"
#include "sound.h"

typedef struct Play {
    Game game;
    Rewind rewind;
    Inspection inspection; /* only of games on this machine */
    Scene scene;
    Canvas canvas;
    Hud hud;
    Overlay overlay;
    Sound sound;
    SDL_Window *window;
    char save_path[NOTICE_BYTES - 100]; /* file of the saved game; empty: there is no folder for it */
    char message[NOTICE_BYTES];         /* text of the notice, if it is not a constant */
    Level level, lesson;
    bool is_lesson;      /* whether the lesson is played instead of the level */
    uint32_t seed;       /* of the player that plays by itself; 0: a person plays */
    Net *net;            /* the game over the network; NULL: a game on this machine */
    Inputs recorded;     /* inputs of the watched game; empty while a player plays */
    uint32_t next_input; /* index in `recorded` */
    Inputs played;       /* inputs of the player */
    quern_jobs *jobs;
    float owed_steps;       /* elapsed time that was not simulated yet, in steps */
    bool has_ended;         /* the player has left */
    uint64_t drawing_since; /* start of the last picture, by the clock of SDL */
} Play;

/* Begins a new game of the level: on this machine, or, with play->net, when all players are here. Ends the program with a message on failure. */
void play_begin(Play *play);
void play_end(Play *play);

/* Waits. A page of the inspector is answered meanwhile. */
void play_wait(Play *play, uint32_t milliseconds);

/* Replaces the game by the saved one, or shows why it cannot be loaded. Returns whether it was loaded. */
bool play_load(Play *play);

/* Runs the steps that are due after `seconds`. */
void play_advance(Play *play, float seconds);

/* Runs one step, due or not. */
void play_step(Play *play);

/* play_draw draws a picture, `seconds` after the last one. play_show shows it. */
void play_draw(Play *play, float seconds);
void play_show(Play *play);

/* Handles a key, a button or the mouse. */
void play_handle(Play *play, const SDL_Event *event);

#endif
