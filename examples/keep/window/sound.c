/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "sound.h"

#include "../game/check.h"
#include "../game/random.h"

#include <math.h>

/* A tone that falls or rises, with some noise, and fades. */
typedef struct Tone {
    float hertz, glide; /* octaves per second */
    float seconds, noise, loud;
} Tone;

static const Tone tones[CUE_KINDS] = {
    [CUE_SHOT] = {520, -9, 0.06f, 0.5f, 0.10f},    [CUE_MORTAR] = {120, -3, 0.2f, 0.4f, 0.25f},
    [CUE_BLAST] = {70, -2, 0.45f, 0.8f, 0.4f},     [CUE_BELL] = {880, -0.2f, 0.5f, 0, 0.14f},
    [CUE_DEATH] = {300, -6, 0.09f, 0.3f, 0.07f},   [CUE_LEAK] = {160, -1, 0.4f, 0.2f, 0.35f},
    [CUE_CURSE] = {240, 2, 0.4f, 0.1f, 0.2f},      [CUE_WAVE] = {196, 1.2f, 0.5f, 0, 0.3f},
    [CUE_BUILD] = {330, 2.5f, 0.15f, 0.1f, 0.25f}, [CUE_SELL] = {440, -2.5f, 0.15f, 0.1f, 0.25f},
    [CUE_WON] = {392, 1.5f, 0.5f, 0, 0.4f},        [CUE_LOST] = {130, -1, 0.5f, 0.1f, 0.4f}};

static void make_tone(const Tone *tone, float *samples)
{
    float phase = 0;
    for (uint32_t i = 0; i < SOUND_SAMPLES; i++) {
        const float seconds = (float)i / SOUND_RATE, part = seconds / tone->seconds;
        phase += 6.2831853f * tone->hertz * exp2f(tone->glide * seconds) / SOUND_RATE;
        const float wave =
            sinf(phase) * (1 - tone->noise) + quern_random_signed(random_hash(3, i)) * tone->noise;
        const float rise = fminf(seconds * 400, 1), fall = fmaxf(1 - part, 0);
        samples[i] = wave * tone->loud * rise * fall * fall;
    }
}

/* Compresses a sample: many simultaneous voices get louder only slowly, and are never cut off. */
static float softened(float sample)
{
    return sample / (1 + fabsf(sample));
}

/* Mixes voices. SDL calls it on its own thread, which holds the lock of the device. */
static void mix(void *user_data, Uint8 *stream, int bytes)
{
    Sound *sound = user_data;
    float *out = (float *)(void *)stream;
    const int count = bytes / (int)(2 * sizeof(float));
    for (int i = 0; i < count; i++, out += 2) {
        out[0] = out[1] = 0;
        for (uint32_t v = 0; v < SOUND_VOICES; v++) {
            Voice *voice = &sound->voices[v];
            if (voice->samples == NULL) continue;
            out[0] += voice->samples[voice->next] * voice->left;
            out[1] += voice->samples[voice->next] * voice->right;
            if (++voice->next == SOUND_SAMPLES) voice->samples = NULL;
        }
        out[0] = softened(out[0]);
        out[1] = softened(out[1]);
    }
}

void sound_open(Sound *sound)
{
    *sound = (Sound){.device = 0};
    for (uint32_t cue = 0; cue < CUE_KINDS; cue++)
        make_tone(&tones[cue], sound->tones[cue]);
    if (SDL_InitSubSystem(SDL_INIT_AUDIO) != 0) return;
    const SDL_AudioSpec wish = {.freq = SOUND_RATE,
                                .format = AUDIO_F32SYS,
                                .channels = 2,
                                .samples = 512,
                                .callback = mix,
                                .userdata = sound};
    sound->device = SDL_OpenAudioDevice(NULL, 0, &wish, NULL, 0);
    if (sound->device != 0) SDL_PauseAudioDevice(sound->device, 0);
}

bool sound_mute(Sound *sound, bool is_mute)
{
    sound->is_mute = is_mute;
    if (sound->device == 0) return false;
    SDL_LockAudioDevice(sound->device);
    for (uint32_t i = 0; i < SOUND_VOICES; i++)
        sound->voices[i].samples = NULL;
    SDL_UnlockAudioDevice(sound->device);
    return true;
}

void sound_close(Sound *sound)
{
    if (sound->device != 0) SDL_CloseAudioDevice(sound->device);
}

/* Collects the cues of a step. */
static void collect_cues(quern_context *context, const quern_view *view)
{
    (void)view;
    Sound *sound = quern_context_user_data(context);
    quern_event_iterator it;
    quern_context_events(context, sound->cue, &it);
    while (quern_event_next(&it)) {
        const Cue *cues = it.block.values;
        for (uint32_t i = 0; i < it.block.count; i++)
            sound->last_cues[cues[i].kind] = (LastCue){true, cues[i].x};
    }
}

void sound_attach(Sound *sound, Game *game)
{
    const quern_system_def def = {.name = "collect cues",
                                  .phase = PHASE_SHOW,
                                  .run = collect_cues,
                                  .user_data = sound,
                                  .reads_events = {game->types.cue},
                                  .flags = QUERN_SYSTEM_MAIN_THREAD};
    sound->cue = game->types.cue;
    check(quern_schedule_add_system(game->schedule, &def, NULL));
}

static void start_voice(Sound *sound, uint32_t cue, float side)
{
    SDL_LockAudioDevice(sound->device);
    sound->voices[sound->next_voice] =
        (Voice){.samples = sound->tones[cue], .left = 1 - side, .right = side};
    SDL_UnlockAudioDevice(sound->device);
    sound->next_voice = (sound->next_voice + 1) % SOUND_VOICES;
}

/* Plays at most one cue of each kind per picture: a thousand simultaneous shots would be noise. */
void sound_play(Sound *sound, const Game *game)
{
    for (uint32_t cue = 0; cue < CUE_KINDS; cue++) {
        const float side = sound->last_cues[cue].x / game->level.width;
        if (sound->last_cues[cue].is_new && sound->device != 0 && !sound->is_mute)
            start_voice(sound, cue, fminf(fmaxf(side, 0.1f), 0.9f));
        sound->last_cues[cue].is_new = false;
    }
}
