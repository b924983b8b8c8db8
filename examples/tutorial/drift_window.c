/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Drift in a window, by SDL2: arrows steer, space fires, R rewinds while it is held, Escape quits. */
#include "game.h"

#include <SDL2/SDL.h>
#include <stdio.h>

enum { CELL = 20, KEPT_FRAMES = 600 };

static void draw_cell(SDL_Renderer *renderer, int x, int y, char symbol)
{
    static const struct {
        char symbol;
        Uint8 red, green, blue;
    } colours[] = {{'O', 150, 140, 130}, {'*', 240, 200, 60}, {'|', 120, 220, 255}, {'A', 120, 255, 120}};
    for (size_t i = 0; i < sizeof colours / sizeof colours[0]; i++) {
        if (colours[i].symbol != symbol) continue;
        const int margin = symbol == '|' ? CELL / 3 : 2;
        SDL_SetRenderDrawColor(renderer, colours[i].red, colours[i].green, colours[i].blue, 255);
        SDL_RenderFillRect(renderer,
                           &(SDL_Rect){x * CELL + margin, y * CELL + 2, CELL - 2 * margin, CELL - 4});
    }
}

static void draw(SDL_Renderer *renderer, const Game *game)
{
    char field[HEIGHT][WIDTH + 1];
    game_draw(game, field);
    SDL_SetRenderDrawColor(renderer, 10, 10, 30, 255);
    SDL_RenderClear(renderer);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            draw_cell(renderer, x, y, field[y][x]);
    SDL_RenderPresent(renderer);
}

/* Reads the keyboard into the resource. Returns false when the player quits. */
static bool read_keys(Keys *keys)
{
    SDL_Event event;
    while (SDL_PollEvent(&event))
        if (event.type == SDL_QUIT) return false;
    const Uint8 *down = SDL_GetKeyboardState(NULL);
    *keys = (Keys){.left = down[SDL_SCANCODE_LEFT],
                   .right = down[SDL_SCANCODE_RIGHT],
                   .up = down[SDL_SCANCODE_UP],
                   .down = down[SDL_SCANCODE_DOWN],
                   .fire = down[SDL_SCANCODE_SPACE]};
    return !down[SDL_SCANCODE_ESCAPE];
}

static void play(Game *game, quern_history *history, quern_jobs *jobs, SDL_Renderer *renderer)
{
    Uint64 before = SDL_GetPerformanceCounter();
    uint64_t oldest, newest, frame = 0;
    while (read_keys(game_keys(game))) {
        const Uint64 now = SDL_GetPerformanceCounter();
        const double seconds = (double)(now - before) / (double)SDL_GetPerformanceFrequency();
        before = now;
        if (SDL_GetKeyboardState(NULL)[SDL_SCANCODE_R]) {
            if (quern_history_get_frames(history, &oldest, &newest) && frame > oldest)
                QUERN_MUST(quern_history_restore(history, --frame, NULL));
        } else {
            QUERN_MUST(quern_history_save(history, frame++, NULL));
            QUERN_MUST(quern_schedule_run(game->schedule, jobs, seconds));
        }
        draw(renderer, game);
    }
}

int main(int argc, char **argv)
{
    Game game;
    quern_history *history;
    quern_jobs *jobs;
    SDL_Window *window;
    SDL_Renderer *renderer;
    (void)argc, (void)argv;
    if (SDL_Init(SDL_INIT_VIDEO) != 0 ||
        SDL_CreateWindowAndRenderer(WIDTH * CELL, HEIGHT * CELL, 0, &window, &renderer) != 0) {
        (void)fprintf(stderr, "drift_window: %s\n", SDL_GetError());
        return 1;
    }
    (void)SDL_RenderSetVSync(renderer, 1);
    QUERN_MUST(quern_jobs_create(NULL, &jobs));
    game_open(&game, 0);
    game_populate(&game, 30);
    const quern_history_def def = {.schedules = {game.schedule}, .frame_count = KEPT_FRAMES};
    QUERN_MUST(quern_history_create(game.world, &def, &history));
    play(&game, history, jobs, renderer);
    quern_history_destroy(history);
    game_close(&game);
    quern_jobs_destroy(jobs);
    SDL_Quit();
    return 0;
}
