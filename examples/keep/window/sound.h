/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_SOUND_H
#define KEEP_SOUND_H

/* Plays the cues of the game as short tones, which are computed at the start of the program and mixed on
 * a thread of SDL. Without an audio device, everything is silent. */

#include "../game/game.h"

#include <SDL2/SDL.h>

enum { SOUND_RATE = 22050, SOUND_SAMPLES = SOUND_RATE / 2, SOUND_VOICES = 24 };

typedef struct Voice {
    const float *samples; /* an array of SOUND_SAMPLES; NULL: silent */
    uint32_t next;
    float left, right;
} Voice;

/* The last cue of a kind. */
typedef struct LastCue {
    bool is_new; /* whether it was emitted after the last call of sound_play */
    float x;     /* position in the field, for left and right */
} LastCue;

typedef struct Sound {
    SDL_AudioDeviceID device; /* 0: none */
    bool is_mute;
    quern_event cue;
    LastCue last_cues[CUE_KINDS]; /* by kind */
    uint32_t next_voice;
    Voice voices[SOUND_VOICES];
    float tones[CUE_KINDS][SOUND_SAMPLES];
} Sound;

void sound_open(Sound *sound);

/* Mutes or unmutes. Returns false without an audio device. */
bool sound_mute(Sound *sound, bool is_mute);

void sound_close(Sound *sound);

/* Adds the system that collects the cues of a game. */
void sound_attach(Sound *sound, Game *game);

/* Plays the cues since the last call. */
void sound_play(Sound *sound, const Game *game);

#endif
