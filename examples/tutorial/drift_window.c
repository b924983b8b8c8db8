/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Drift in a window, by SDL2: arrows steer, space fires, R rewinds while it is held, Escape quits. */
#include "game.h"

#include <SDL2/SDL.h>
#include <math.h>
#include <quern/kit/random.h>
#include <stdio.h>

enum { CELL = 20, FINE = 2, KEPT_FRAMES = 600, CORNERS = 8, STARS = 240 };

/* A shape: a colour, the light that it throws, and its distances from the middle to the rim, in cells: up, to the right
 * and up, and so on. */
typedef struct Shape {
    char symbol;
    SDL_Color color;
    SDL_FPoint light;
    float light_y;
    float rim[CORNERS];
} Shape;

static const Shape shapes[] = {
    {'O', {186, 168, 150, 255}, {0, 0}, 0, {.95f, .8f, .9f, .75f, .95f, .8f, .85f, .7f}},
    {'*', {255, 205, 70, 255}, {1.1f, 1.1f}, 0, {.55f, .35f, .45f, .35f, .55f, .35f, .45f, .35f}},
    {'|', {150, 230, 255, 255}, {.5f, 2.2f}, 1.2f, {.6f, .22f, .15f, .22f, .6f, .22f, .15f, .22f}},
    {'A', {130, 255, 150, 255}, {.8f, 1.6f}, 1.2f, {1.2f, .38f, .45f, 1.2f, .4f, 1.2f, .45f, .38f}},
};
static const Shape disc = {.rim = {1, 1, 1, 1, 1, 1, 1, 1}};

/* Draws triangles from the middle of a shape to its sides, from one colour to another at the rim. */
static void draw_fan(SDL_Renderer *renderer, const Shape *shape, SDL_FPoint at, SDL_FPoint size,
                     float angle, SDL_Color middle, SDL_Color rim)
{
    SDL_Vertex corners[CORNERS * 3];
    for (int i = 0; i < CORNERS * 3; i++) {
        const int corner = (i / 3 + i % 3) % CORNERS;
        const float turn = angle + 6.2831853f * (float)corner / CORNERS;
        const float far = i % 3 == 2 ? 0 : shape->rim[corner] * CELL * FINE;
        const SDL_FPoint point = {at.x * CELL * FINE + sinf(turn) * far * size.x,
                                  at.y * CELL * FINE - cosf(turn) * far * size.y};
        corners[i] = (SDL_Vertex){point, i % 3 == 2 ? middle : rim, {0, 0}};
    }
    (void)SDL_RenderGeometry(renderer, NULL, corners, CORNERS * 3, NULL, 0);
}

/* Draws a shape as a thick line around a dark middle, with its light. Rocks turn as they drift. */
static void draw_shape(SDL_Renderer *renderer, const Shape *shape, SDL_FPoint at, float angle)
{
    const SDL_Color line = shape->color, beam = {line.r, line.g, line.b, 130},
                    none = {line.r, line.g, line.b, 0};
    const SDL_Color fill = {line.r / 4, line.g / 4, line.b / 4, 255};
    draw_fan(renderer, &disc, (SDL_FPoint){at.x, at.y + shape->light_y}, shape->light, 0, beam, none);
    draw_fan(renderer, shape, at, (SDL_FPoint){1, 1}, angle, line, line);
    draw_fan(renderer, shape, at, (SDL_FPoint){.68f, .68f}, angle, line, fill);
}

static void draw_stars(SDL_Renderer *renderer)
{
    for (uint64_t i = 0; i < STARS; i++) {
        const uint64_t bits = quern_random(2, i);
        const SDL_FPoint at = {WIDTH * quern_random_unit(bits),
                               HEIGHT * quern_random_unit(quern_random(bits, 1))};
        const float size = 0.04f + 0.06f * quern_random_unit(quern_random(bits, 2));
        const SDL_Color color = {150, 165, 220, (Uint8)(size * 1800)};
        draw_fan(renderer, &disc, at, (SDL_FPoint){size, size}, 0, color, color);
    }
}

/* Draws the game into a texture of twice the size of the window and shrinks it, so that its lines are smooth. */
static void draw(SDL_Renderer *renderer, const Game *game)
{
    SDL_Texture *picture = SDL_GetRenderTarget(renderer);
    quern_query_iterator it = quern_query_iterate(game->glyphs);
    SDL_SetRenderDrawColor(renderer, 9, 10, 26, 255);
    SDL_RenderClear(renderer);
    draw_stars(renderer);
    while (quern_query_next(&it)) {
        const Position *positions = QUERN_COLUMN(&it.view, 0, const Position);
        const Glyph *glyphs = QUERN_COLUMN(&it.view, 1, const Glyph);
        for (uint32_t end = it.view.count, i = 0; i < end; i++)
            for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
                if (shapes[k].symbol == (char)glyphs[i].symbol)
                    draw_shape(renderer, &shapes[k], (SDL_FPoint){positions[i].x, positions[i].y},
                               shapes[k].symbol == 'O' ? positions[i].x : 0);
    }
    SDL_SetRenderTarget(renderer, NULL);
    SDL_RenderCopy(renderer, picture, NULL, NULL);
    SDL_RenderPresent(renderer);
    SDL_SetRenderTarget(renderer, picture);
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
    (void)SDL_SetRenderDrawBlendMode(renderer, SDL_BLENDMODE_BLEND);
    (void)SDL_SetHint(SDL_HINT_RENDER_SCALE_QUALITY, "linear");
    SDL_SetRenderTarget(renderer,
                        SDL_CreateTexture(renderer, SDL_PIXELFORMAT_ARGB8888, SDL_TEXTUREACCESS_TARGET,
                                          WIDTH * CELL * FINE, HEIGHT * CELL * FINE));
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
