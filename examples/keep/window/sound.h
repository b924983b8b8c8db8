/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_SOUND_H
#define KEEP_SOUND_H

/* Plays what the game's cues ask for, as short tones that are made when the program starts, mixed on a
 * thread of SDL's. Where there is no sound to be had, everything is silent. */

#include "../game/game.h"

#include <SDL2/SDL.h>

enum { SOUND_RATE = 22050, SOUND_SAMPLES = SOUND_RATE / 2, SOUND_VOICES = 24 };

typedef struct Voice {
    const float *samples; /* SOUND_SAMPLES of them; NULL: silent */
    uint32_t next;
    float left, right;
} Voice;

/* The last cue of a kind. */
typedef struct Heard {
    bool is_new;
    float x;
} Heard;

typedef struct Sound {
    SDL_AudioDeviceID device; /* 0: there is none */
    bool is_mute;
    quern_event cue;
    Heard heard[CUE_KINDS];
    uint32_t next_voice;
    Voice voices[SOUND_VOICES];
    float tones[CUE_KINDS][SOUND_SAMPLES];
} Sound;

void sound_open(Sound *sound);

/* Silence, or sound again. Returns false where there is no sound to be had. */
bool sound_mute(Sound *sound, bool is_mute);

void sound_close(Sound *sound);

/* Adds the system that listens to a game. */
void sound_follow(Sound *sound, Game *game);

/* Plays what was heard since the last call. */
void sound_play(Sound *sound, const Game *game);

#endif
