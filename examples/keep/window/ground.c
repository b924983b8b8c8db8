/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "ground.h"

#include "../game/check.h"
#include "../game/random.h"
#include "layout.h"

#include <math.h>
#include <stdlib.h>

enum { STRIDE = 4 }; /* distances to roads are computed for every fourth pixel and interpolated */

typedef struct Color {
    float r, g, b;
} Color;

static const Color meadow_dark = {20, 46, 48}, meadow_light = {34, 72, 60}, moss = {52, 88, 60};
static const Color road_dark = {96, 84, 74}, road_light = {132, 116, 98}, road_rim = {22, 28, 30};

static Color mixed(Color a, Color b, float part)
{
    const float t = fminf(fmaxf(part, 0), 1);
    return (Color){a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

static Color shaded(Color color, float light)
{
    return (Color){color.r * light, color.g * light, color.b * light};
}

/* ---------------------------------------------------------------------------------------------- noise */

static float lattice(int x, int y)
{
    return quern_random_unit(random_hash((uint64_t)(uint32_t)x, (uint32_t)y));
}

static float smooth(float t)
{
    return t * t * (3 - 2 * t);
}

static float noise(float x, float y)
{
    const int i = (int)floorf(x), j = (int)floorf(y);
    const float u = smooth(x - floorf(x)), v = smooth(y - floorf(y));
    const float upper = lattice(i, j) + (lattice(i + 1, j) - lattice(i, j)) * u;
    const float lower = lattice(i, j + 1) + (lattice(i + 1, j + 1) - lattice(i, j + 1)) * u;
    return upper + (lower - upper) * v;
}

/* Returns noise from 0 to 1, with details of three sizes. */
static float clouds(float x, float y)
{
    return (noise(x, y) * 4 + noise(x * 2.1f + 7, y * 2.1f) * 2 + noise(x * 4.3f, y * 4.3f + 5)) / 7;
}

/* ---------------------------------------------------------------------------------------------- roads */

/* Returns the distance to the nearest road; negative on a road. */
static float road_gap(const Game *game, float x, float y)
{
    float least = INFINITY;
    for (uint32_t i = 0; i < game->level.road_count; i++) {
        const Road *road = &game->roads[i];
        for (uint32_t k = 0; k < road->step_count; k += 3) {
            const float dx = road->steps[k].at.x - x, dy = road->steps[k].at.y - y;
            least = fminf(least, sqrtf(dx * dx + dy * dy) - road->width / 2);
        }
    }
    return least;
}

typedef struct Gaps {
    int columns;
    float *values;
} Gaps;

static Gaps make_gaps(const Game *game, float scale)
{
    const int columns = FIELD_WIDTH / STRIDE + 2, rows = FIELD_HEIGHT / STRIDE + 2;
    Gaps gaps = {columns, check_memory(calloc((size_t)columns * (size_t)rows, sizeof(float)))};
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++)
            gaps.values[y * columns + x] =
                road_gap(game, (float)(x * STRIDE) / scale, (float)(y * STRIDE) / scale);
    return gaps;
}

static float gap_at(const Gaps *gaps, int x, int y)
{
    const float *corner = &gaps->values[y / STRIDE * gaps->columns + x / STRIDE];
    const float u = (float)(x % STRIDE) / STRIDE, v = (float)(y % STRIDE) / STRIDE;
    const float upper = corner[0] + (corner[1] - corner[0]) * u;
    const float lower = corner[gaps->columns] + (corner[gaps->columns + 1] - corner[gaps->columns]) * u;
    return upper + (lower - upper) * v;
}

/* ---------------------------------------------------------------------------------------------- paint */

static Color meadow_at(float x, float y)
{
    const float broad = clouds(x * 0.11f, y * 0.11f), fine = noise(x * 3.1f, y * 3.1f);
    const float blades = noise(x * 14, y * 5);
    const Color grass = mixed(meadow_dark, meadow_light, (broad - 0.25f) * 1.6f + (fine - 0.5f) * 0.1f);
    return shaded(mixed(grass, moss, (clouds(x * 0.3f + 40, y * 0.3f) - 0.55f) * 2.2f),
                  0.96f + 0.08f * blades);
}

static Color road_at_gap(float x, float y, float gap)
{
    const float grain = clouds(x * 1.7f, y * 1.7f) * 0.7f + noise(x * 11, y * 11) * 0.3f;
    const float wear = fminf(-gap * 0.9f, 1); /* worn in the middle */
    return mixed(shaded(road_dark, 0.85f + 0.25f * grain), road_light, wear * (0.35f + 0.65f * grain));
}

static Color ground_at(float x, float y, float gap)
{
    const float ragged = gap + (noise(x * 2.6f, y * 2.6f) - 0.5f) * 0.5f;
    const float rim = expf(-ragged * ragged * 14), shade = fminf(fmaxf(0.62f + ragged * 0.3f, 0.55f), 1);
    const Color off = shaded(meadow_at(x, y), ragged > 0 ? shade : 1), on = road_at_gap(x, y, ragged);
    return mixed(mixed(off, on, 0.5f - ragged * 6), road_rim, rim * 0.75f);
}

/* Returns a brightness that falls towards the corners. */
static float vignette(int x, int y)
{
    const float u = (float)x / FIELD_WIDTH * 2 - 1, v = (float)y / FIELD_HEIGHT * 2 - 1;
    return 1.12f - 0.28f * (u * u + v * v);
}

static uint32_t packed(Color color)
{
    const uint32_t r = (uint32_t)fminf(fmaxf(color.r, 0), 255), g = (uint32_t)fminf(fmaxf(color.g, 0), 255),
                   b = (uint32_t)fminf(fmaxf(color.b, 0), 255);
    return r << 24 | g << 16 | b << 8 | 0xFF;
}

SDL_Texture *ground_paint(SDL_Renderer *renderer, const Game *game)
{
    const float scale = fminf(FIELD_WIDTH / game->level.width, FIELD_HEIGHT / game->level.height);
    uint32_t *pixels = check_memory(calloc((size_t)FIELD_WIDTH * FIELD_HEIGHT, sizeof *pixels));
    Gaps gaps = make_gaps(game, scale);
    for (int y = 0; y < FIELD_HEIGHT; y++)
        for (int x = 0; x < FIELD_WIDTH; x++) {
            const Color color = ground_at((float)x / scale, (float)y / scale, gap_at(&gaps, x, y));
            pixels[y * FIELD_WIDTH + x] = packed(shaded(color, vignette(x, y)));
        }
    SDL_Texture *texture = SDL_CreateTexture(renderer, SDL_PIXELFORMAT_RGBA8888, SDL_TEXTUREACCESS_STATIC,
                                             FIELD_WIDTH, FIELD_HEIGHT);
    if (texture != NULL) {
        SDL_UpdateTexture(texture, NULL, pixels, FIELD_WIDTH * (int)sizeof *pixels);
        SDL_SetTextureScaleMode(texture, SDL_ScaleModeLinear);
    }
    free(gaps.values);
    free(pixels);
    return texture;
}
