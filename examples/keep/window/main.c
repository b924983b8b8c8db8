/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Keep in a window: SDL's renderer, sound if there is any, mouse and keys. */

#include "../game/check.h"
#include "../game/kinds.h"
#include "play.h"

#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 512 };

static _Noreturn void stop(const char *message)
{
    fprintf(stderr, "keep: %s\n", message);
    exit(EXIT_FAILURE);
}

static void load(Play *play, const Options *options)
{
    char message[MESSAGE_BYTES];
    if (!level_load(&play->level, options->level, message, sizeof message)) stop(message);
    if (options->input != NULL && !inputs_load(&play->recorded, options->input, message, sizeof message))
        stop(message);
}

/* The picture is CANVAS_WIDTH by CANVAS_HEIGHT; SDL scales it to the window, and mouse places back. */
static SDL_Window *open_window(Play *play)
{
    const uint32_t flags = SDL_WINDOW_RESIZABLE | SDL_WINDOW_ALLOW_HIGHDPI;
    SDL_SetHint(SDL_HINT_RENDER_SCALE_QUALITY, "linear");
    SDL_Window *window = SDL_CreateWindow("Keep", SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED,
                                          CANVAS_WIDTH, CANVAS_HEIGHT, flags);
    if (window == NULL) stop(SDL_GetError());
    SDL_Renderer *renderer = SDL_CreateRenderer(window, -1, SDL_RENDERER_PRESENTVSYNC);
    if (renderer == NULL) stop(SDL_GetError());
    SDL_RenderSetLogicalSize(renderer, CANVAS_WIDTH, CANVAS_HEIGHT);
    if (!canvas_create(&play->canvas, renderer)) stop(SDL_GetError());
    return window;
}

static void close_window(Play *play, SDL_Window *window)
{
    SDL_Renderer *renderer = play->canvas.renderer;
    canvas_destroy(&play->canvas);
    SDL_DestroyRenderer(renderer);
    SDL_DestroyWindow(window);
    SDL_Quit();
}

/* The game loop. Pictures come as often as the screen shows them, or 250 times a second where it does not
 * say. */
static void run(Play *play)
{
    uint64_t last = SDL_GetPerformanceCounter();
    while (!play->has_ended) {
        SDL_Event event;
        while (SDL_PollEvent(&event))
            play_handle(play, &event);
        const uint64_t now = SDL_GetPerformanceCounter();
        const float seconds = (float)((double)(now - last) / (double)SDL_GetPerformanceFrequency());
        last = now;
        play_advance(play, seconds);
        play_draw(play, seconds);
        SDL_RenderPresent(play->canvas.renderer);
        if (seconds < 0.004f) SDL_Delay(4);
    }
}

static void save_picture(SDL_Renderer *renderer, const char *path)
{
    int width, height;
    SDL_GetRendererOutputSize(renderer, &width, &height);
    SDL_Surface *surface = SDL_CreateRGBSurfaceWithFormat(0, width, height, 32, SDL_PIXELFORMAT_ARGB8888);
    if (surface == NULL ||
        SDL_RenderReadPixels(renderer, NULL, SDL_PIXELFORMAT_ARGB8888, surface->pixels, surface->pitch) !=
            0 ||
        SDL_SaveBMP(surface, path) != 0)
        stop(SDL_GetError());
    SDL_FreeSurface(surface);
}

/* A picture of a recorded game; on the way steps are made without drawing them. */
static void take_picture(Play *play, const Options *options)
{
    play->hud.page = options->title ? PAGE_TITLE : PAGE_GAME;
    for (uint32_t i = 0; i < options->frame_count; i++)
        play_step(play);
    play_draw(play, 1.0f / STEPS_PER_SECOND);
    save_picture(play->canvas.renderer, options->screenshot);
}

static void save_record(const Play *play, const char *path)
{
    char message[MESSAGE_BYTES];
    if (!inputs_save(&play->played, path, message, sizeof message)) stop(message);
}

int main(int argc, char **argv)
{
    const Options options = options_parse(argc, argv);
    Play *play = check_memory(calloc(1, sizeof *play));
    load(play, &options);
    if (SDL_Init(SDL_INIT_VIDEO) != 0) stop(SDL_GetError());
    check(quern_jobs_create(&(quern_jobs_def){.thread_count = options.thread_count}, &play->jobs));
    SDL_Window *window = open_window(play);
    sound_open(&play->sound);
    play->hud.mouse_y = CANVAS_HEIGHT;
    play->overlay.is_on = options.overlay;
    play_begin(play);
    if (options.screenshot != NULL)
        take_picture(play, &options);
    else
        run(play);
    if (options.record != NULL) save_record(play, options.record);
    play_end(play);
    sound_close(&play->sound);
    inputs_free(&play->recorded);
    inputs_free(&play->played);
    quern_jobs_destroy(play->jobs);
    close_window(play, window);
    free(play);
    return EXIT_SUCCESS;
}
