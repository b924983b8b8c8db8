/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* Keep in a window: SDL's renderer, sound if available, mouse and keys. */

#include "../game/check.h"
#include "../game/kinds.h"
#include "font.h"
#include "play.h"

#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 512, TIMED_PICTURES = 30 };

static _Noreturn void fail(const char *message)
{
    fprintf(stderr, "keep: %s\n", message);
    exit(EXIT_FAILURE);
}

/* Ends the program with a message and the error text of SDL. */
static _Noreturn void fail_by_sdl(const char *what)
{
    fprintf(stderr, "keep: %s: %s\n", what, SDL_GetError());
    exit(EXIT_FAILURE);
}

static void load(Play *play, const Options *options)
{
    char message[MESSAGE_BYTES];
    if (!level_load(&play->level, options->level, message, sizeof message) ||
        !level_load(&play->lesson, KEEP_LEVELS "/lesson.json", message, sizeof message))
        fail(message);
    if (options->input != NULL && !inputs_load(&play->recorded, options->input, message, sizeof message))
        fail(message);
}

/* Finds the file of the saved game. SDL makes the folder if it is not there. */
static void find_save(Play *play, const Options *options)
{
    char *folder = options->save == NULL ? SDL_GetPrefPath(NULL, "keep") : NULL;
    const char *name = options->save != NULL ? options->save : "saved.keep";
    if (options->save == NULL && folder == NULL) return;
    const int length =
        snprintf(play->save_path, sizeof play->save_path, "%s%s", folder != NULL ? folder : "", name);
    SDL_free(folder);
    if (length < 0 || (size_t)length >= sizeof play->save_path) fail("--save: the name is too long");
}

static void open_net(Play *play, const Options *options)
{
    if (!options->is_shared) return;
    play->net = check_memory(calloc(1, sizeof *play->net));
    play->seed = options->seed;
    if (!net_open(play->net, &options->net, &play->level)) fail(play->net->message);
    if (options->net.hosts) printf("waiting for the other players\n");
    play->hud.page = PAGE_GAME;
}

static void open_window(Play *play)
{
    const uint32_t flags = SDL_WINDOW_RESIZABLE | SDL_WINDOW_ALLOW_HIGHDPI;
    SDL_SetHint(SDL_HINT_RENDER_SCALE_QUALITY, "linear");
    play->window = SDL_CreateWindow("Keep", SDL_WINDOWPOS_CENTERED, SDL_WINDOWPOS_CENTERED, WINDOW_WIDTH,
                                    WINDOW_HEIGHT, flags);
    if (play->window == NULL) fail_by_sdl("no window can be opened");
    SDL_SetWindowMinimumSize(play->window, WINDOW_LEAST_WIDTH, WINDOW_LEAST_HEIGHT);
    SDL_Renderer *renderer = SDL_CreateRenderer(play->window, -1, SDL_RENDERER_PRESENTVSYNC);
    if (renderer == NULL || !canvas_create(&play->canvas, renderer))
        fail_by_sdl("drawing in the window cannot be set up");
    font_open(&play->canvas);
}

static void close_window(Play *play)
{
    SDL_Renderer *renderer = play->canvas.renderer;
    font_close(&play->canvas);
    canvas_destroy(&play->canvas);
    SDL_DestroyRenderer(renderer);
    SDL_DestroyWindow(play->window);
    SDL_Quit();
}

/* Runs the game loop. Draws at the rate of the screen, or 250 times a second if the rate is unknown. */
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
        play_show(play);
        if (seconds < 0.004f) play_wait(play, 4);
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
        fail_by_sdl("the picture cannot be saved");
    SDL_FreeSurface(surface);
}

/* Runs steps of a recorded game without drawing them, then draws a picture many times to measure the
 * duration, and saves it. */
static void take_picture(Play *play, const Options *options)
{
    const Overlay *overlay = &play->overlay;
    play->hud.page = options->title ? PAGE_TITLE : options->menu ? PAGE_MENU : PAGE_GAME;
    for (uint32_t i = 0; i < options->frame_count && play->net == NULL; i++)
        play_step(play);
    while (play->net != NULL && !play->has_ended) { /* until all machines have run the last step */
        play_step(play);
        SDL_Delay(1000 / STEPS_PER_SECOND);
    }
    for (uint32_t i = 0; i < TIMED_PICTURES; i++) {
        play_draw(play, 1.0f / STEPS_PER_SECOND);
        play_show(play);
    }
    quern_world_stats stats;
    check(quern_world_get_stats(play->game.world, &stats));
    printf("%u entities, %u sprites in %u calls of SDL: %.2f ms to fill them, and %.2f ms for SDL to draw "
           "them "
           "(the minimum of %d pictures)\n",
           (uint32_t)stats.entity_count, overlay->sprite_count, overlay->call_count,
           (double)overlay->least_fill_ms, (double)overlay->least_call_ms, TIMED_PICTURES);
    play_draw(play, 1.0f / STEPS_PER_SECOND);
    save_picture(play->canvas.renderer, options->screenshot);
}

static void save_record(const Play *play, const char *path)
{
    char message[MESSAGE_BYTES];
    if (!inputs_save(&play->played, path, message, sizeof message)) fail(message);
}

int main(int argc, char **argv)
{
    const Options options = options_parse(argc, argv);
    Play *play = check_memory(calloc(1, sizeof *play));
    load(play, &options);
    if (options.record != NULL)
        save_record(
            play, options.record); /* reports a file that cannot be written before the game, not after it */
    if (SDL_Init(SDL_INIT_VIDEO) != 0) fail_by_sdl("no screen is available");
    if (options.inspect) inspection_create(&play->inspection, options.inspect_port, options.thread_count);
    play->game.trace = play->inspection.trace;
    check(quern_jobs_create(
        &(quern_jobs_def){.thread_count = options.thread_count, .trace = play->inspection.trace},
        &play->jobs));
    open_net(play, &options);
    open_window(play);
    if (options.screenshot == NULL) sound_open(&play->sound);
    play->hud.is_mouse_away = true;
    play->overlay.is_on = options.overlay;
    find_save(play, &options);
    play_begin(play);
    if (options.loads && !play_load(play)) fail(play->hud.notice);
    if (options.screenshot != NULL)
        take_picture(play, &options);
    else
        run(play);
    if (options.record != NULL) save_record(play, options.record);
    play_end(play);
    if (play->net != NULL) net_close(play->net);
    free(play->net);
    sound_close(&play->sound);
    inputs_free(&play->recorded);
    inputs_free(&play->played);
    quern_jobs_destroy(play->jobs);
    inspection_destroy(&play->inspection);
    close_window(play);
    free(play);
    return EXIT_SUCCESS;
}
