/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "canvas.h"

#include <math.h>
#include <string.h>

/* The sprites are in the texture in several sizes, each half as large as the one before and to its right, so that a
 * small sprite is sampled from a small cell and keeps its outline. */
enum {
    CELL = 128,
    CELLS_ACROSS = 4,
    CELLS_DOWN = 5,
    SHEET_WIDTH = CELL * CELLS_ACROSS * 2,
    SHEET_HEIGHT = CELL * CELLS_DOWN
};

static int level_left(int level)
{
    return SHEET_WIDTH - (SHEET_WIDTH >> level);
}

/* ------------------------------------------------------------------------------------------- sprites */

/* Brightness and opacity of a sprite at (x, y), each -1 to 1. */
typedef struct Texel {
    float light, alpha;
} Texel;

static float clamp01(float x)
{
    return fminf(fmaxf(x, 0), 1);
}

/* Returns 1 inside and 0 outside of an edge, with a soft transition. distance: in units of the sprite. */
static float edge(float distance)
{
    return clamp01(0.5f - distance * (CELL / 2.0f) * 0.6f);
}

static float octagon(float x, float y)
{
    x = fabsf(x);
    y = fabsf(y);
    return fmaxf(fmaxf(x, y), (x + y) * 0.7071f);
}

/* Returns the distance from the centre of a square, for slab_texel. The square is narrower than its
 * cell, so that barrels extend beyond it. */
static float plate(float x, float y)
{
    return fmaxf(fmaxf(fabsf(x), fabsf(y)) * 1.22f, (fabsf(x) + fabsf(y)) * 0.72f);
}

/* Returns the distance from the centre of a triangle that points along x, for slab_texel. */
static float wedge(float x, float y)
{
    return fmaxf(-x * 1.53f, x * 0.94f + fabsf(y) * 1.56f);
}

/* Returns the distance from the centre of four discs, for slab_texel. */
static float clover(float x, float y)
{
    const float u = fmaxf(fabsf(x), fabsf(y)), v = fminf(fabsf(x), fabsf(y));
    return hypotf(u - 0.46f, v) + 0.46f;
}

/* Returns the brightness of a body with a dark outline. distance: to the outer edge, negative inside; width: of the
 * outline. */
static float outlined(float light, float distance, float width)
{
    const float ink = clamp01(1 + (distance + width) / (0.35f * width));
    return light + (0.07f - light) * ink;
}

/* Returns a slab with a light rim. distance: from the centre, 0.96 at the outer edge. */
static Texel slab_texel(float distance, float x, float y)
{
    const float rim = clamp01((distance - 0.62f) * 12);
    return (Texel){outlined(0.5f + 0.5f * rim - 0.16f * y * rim - 0.1f * (x + y), distance - 0.96f, 0.12f),
                   edge(distance - 0.96f)};
}

static Texel knob_texel(float x, float y)
{
    const float far = hypotf(x, y), lit = clamp01(1 - hypotf(x + 0.35f, y + 0.4f));
    return (Texel){outlined(0.62f + 0.5f * lit, far - 0.95f, 0.16f), edge(far - 0.95f)};
}

static Texel bar_texel(float x, float y)
{
    const float dx = fmaxf(fabsf(x) - 0.7f, 0), dy = fmaxf(fabsf(y) - 0.6f, 0), far = hypotf(dx, dy) - 0.3f;
    return (Texel){outlined(1 - 0.3f * clamp01(y), fmaxf(fabsf(x) - 1, fabsf(y) - 0.95f), 0.22f),
                   edge(far)};
}

static Texel crystal_texel(float x, float y)
{
    const float far = fabsf(x) + fabsf(y), facet = x > 0 ? (y < 0 ? 1.0f : 0.8f) : (y < 0 ? 0.9f : 0.62f);
    return (Texel){outlined(facet + 0.3f * clamp01(1 - 3 * far), far - 0.95f, 0.2f),
                   edge((far - 0.95f) * 0.7f)};
}

/* ------------------------------------------------------------------------------------------- enemies */

/* Returns a figure that is lighter in front. distance: to the outer edge; width: of its outline. */
static Texel figure_texel(float distance, float x, float width)
{
    return (Texel){outlined(0.88f + 0.16f * x, distance, width), edge(distance)};
}

/* An egg. */
static Texel mite_texel(float x, float y)
{
    return figure_texel(hypotf(x, y * 1.2f) - 0.95f, x, 0.16f);
}

/* A dart with a notch in its back. */
static Texel runner_texel(float x, float y)
{
    const float side = fabsf(y) * 0.91f + (x - 0.95f) * 0.42f,
                back = (-0.35f - x - fabsf(y) * 0.75f) * 0.8f;
    return figure_texel(fmaxf(side, back), x, 0.15f);
}

/* A square with a belt and two eyes. */
static Texel brute_texel(float x, float y)
{
    const float dx = fmaxf(fabsf(x) - 0.55f, 0), dy = fmaxf(fabsf(y) - 0.5f, 0);
    Texel texel = figure_texel(hypotf(dx, dy) - 0.38f, x, 0.15f);
    const float eyes = clamp01((0.17f - hypotf(x - 0.42f, fabsf(y) - 0.32f)) * 16);
    texel.light *= (1 - 0.5f * clamp01((0.14f - fabsf(x + 0.25f)) * 22)) * (1 - 0.9f * eyes);
    return texel;
}

/* A star with four points around a light. */
static Texel witch_texel(float x, float y)
{
    const float u = fabsf(x), v = fabsf(y), far = sqrtf(u * u + v * v), least = fminf(u, v),
                most = fmaxf(u, v);
    Texel texel = figure_texel(fmaxf((most - 0.97f) * 0.34f + least * 0.9f, far - 0.97f), x, 0.14f);
    texel.light += 0.5f * clamp01((0.24f - far) * 8);
    return texel;
}

/* Nine spikes, a core and two eyes. */
static Texel giant_texel(float x, float y)
{
    const float far = hypotf(x, y), spike = 0.82f + 0.15f * cosf(9 * atan2f(y, x));
    Texel texel = figure_texel((far - spike) * 0.7f, x, 0.1f);
    const float eyes = clamp01((0.1f - hypotf(x - 0.36f, fabsf(y) - 0.22f)) * 20);
    texel.light = texel.light * (1 - 0.5f * clamp01(1.5f - fabsf(far - 0.56f) * 26)) + eyes;
    return texel;
}

static Texel texel_of(Sprite sprite, float x, float y)
{
    const float far = hypotf(x, y);
    switch (sprite) {
    case SPRITE_DISC:
        return (Texel){1, edge(far - 0.95f)};
    case SPRITE_GLOW:
        return (Texel){1, powf(clamp01(1 - far), 2.2f)};
    case SPRITE_SHADOW:
        return (Texel){1, powf(clamp01(1 - far * far), 1.5f)};
    case SPRITE_RING:
        return (Texel){1,
                       edge(fabsf(far - 0.9f) - 0.035f) + 0.25f * powf(clamp01(far), 6) * edge(far - 0.9f)};
    case SPRITE_LINE:
        return (Texel){1, clamp01((1 - fabsf(y)) * 1.8f)};
    case SPRITE_STROKE:
        return (Texel){1, edge(fabsf(y) - 0.95f)};
    case SPRITE_BASE:
        return slab_texel(octagon(x, y), x, y);
    case SPRITE_KNOB:
        return knob_texel(x, y);
    case SPRITE_BAR:
        return bar_texel(x, y);
    case SPRITE_CRYSTAL:
        return crystal_texel(x, y);
    case SPRITE_MITE:
        return mite_texel(x, y);
    case SPRITE_RUNNER:
        return runner_texel(x, y);
    case SPRITE_BRUTE:
        return brute_texel(x, y);
    case SPRITE_WITCH:
        return witch_texel(x, y);
    case SPRITE_GIANT:
        return giant_texel(x, y);
    case SPRITE_PLATE:
        return slab_texel(plate(x, y), x, y);
    case SPRITE_DRUM:
        return slab_texel(far, x, y);
    case SPRITE_WEDGE:
        return slab_texel(wedge(x, y), x, y);
    case SPRITE_CLOVER:
        return slab_texel(clover(x, y), x, y);
    default:
        return (Texel){1, 1};
    }
}

static void paint_cell(uint32_t *pixels, Sprite sprite)
{
    const int left = (int)sprite % CELLS_ACROSS * CELL, top = (int)sprite / CELLS_ACROSS * CELL;
    for (int y = 0; y < CELL; y++)
        for (int x = 0; x < CELL; x++) {
            const float half = CELL / 2.0f;
            const Texel texel =
                texel_of(sprite, ((float)x + 0.5f) / half - 1, ((float)y + 0.5f) / half - 1);
            const uint32_t light = (uint32_t)(255 * clamp01(texel.light));
            const uint32_t alpha = (uint32_t)(255 * clamp01(texel.alpha));
            pixels[(top + y) * SHEET_WIDTH + left + x] = light << 24 | light << 16 | light << 8 | alpha;
        }
}

/* Returns the mean of four texels; their brightness counts by their opacity. */
static uint32_t mean_texel(const uint32_t *upper, const uint32_t *lower)
{
    const uint32_t texels[4] = {upper[0], upper[1], lower[0], lower[1]};
    uint32_t light = 0, alpha = 0;
    for (int i = 0; i < 4; i++) {
        light += (texels[i] >> 24) * (texels[i] & 0xFF);
        alpha += texels[i] & 0xFF;
    }
    light = alpha > 0 ? light / alpha : 255;
    return light << 24 | light << 16 | light << 8 | (alpha + 2) / 4;
}

static void shrink_level(uint32_t *pixels, int level)
{
    const int from = level_left(level - 1), left = level_left(level);
    for (int y = 0; y < SHEET_HEIGHT >> level; y++)
        for (int x = 0; x < (CELL * CELLS_ACROSS) >> level; x++) {
            const uint32_t *upper = &pixels[2 * y * SHEET_WIDTH + from + 2 * x];
            pixels[y * SHEET_WIDTH + left + x] = mean_texel(upper, upper + SHEET_WIDTH);
        }
}

static SDL_Texture *make_sprites(SDL_Renderer *renderer)
{
    static uint32_t pixels[SHEET_WIDTH * SHEET_HEIGHT];
    const int width = SHEET_WIDTH, height = SHEET_HEIGHT;
    for (uint32_t sprite = 0; sprite < SPRITE_COUNT; sprite++)
        paint_cell(pixels, (Sprite)sprite);
    for (int level = 1; level < CANVAS_LEVELS; level++)
        shrink_level(pixels, level);
    SDL_Texture *texture =
        SDL_CreateTexture(renderer, SDL_PIXELFORMAT_RGBA8888, SDL_TEXTUREACCESS_STATIC, width, height);
    if (texture == NULL) return NULL;
    SDL_UpdateTexture(texture, NULL, pixels, width * (int)sizeof *pixels);
    SDL_SetTextureScaleMode(texture, SDL_ScaleModeLinear);
    return texture;
}

/* -------------------------------------------------------------------------------------------- batches */

/* Computes the corners of the sprites in the texture. They are half a texel inside of their cells, so
 * that filtering does not blend in adjacent sprites. */
static void place_corners(Canvas *canvas)
{
    for (int i = 0; i < CANVAS_LEVELS * SPRITE_COUNT * 4; i++) {
        const int level = i / 4 / SPRITE_COUNT, sprite = i / 4 % SPRITE_COUNT, cell = CELL >> level;
        const int left = level_left(level) + sprite % CELLS_ACROSS * cell,
                  top = sprite / CELLS_ACROSS * cell;
        const float x = (float)left + (i & 1 ? (float)cell - 0.5f : 0.5f);
        const float y = (float)top + (i & 2 ? (float)cell - 0.5f : 0.5f);
        canvas->corners[level][sprite][i % 4] = (SDL_FPoint){x / SHEET_WIDTH, y / SHEET_HEIGHT};
    }
}

bool canvas_create(Canvas *canvas, SDL_Renderer *renderer)
{
    static const int corners[6] = {0, 1, 2, 2, 1, 3};
    canvas->renderer = renderer;
    canvas->blend = SDL_BLENDMODE_BLEND;
    canvas->quad_count = canvas->drawn_count = 0;
    for (int i = 0; i < CANVAS_QUADS * 6; i++)
        canvas->indices[i] = i / 6 * 4 + corners[i % 6];
    place_corners(canvas);
    canvas->sprites = canvas->texture = make_sprites(renderer);
    return canvas->sprites != NULL;
}

void canvas_destroy(Canvas *canvas)
{
    SDL_DestroyTexture(canvas->sprites);
}

/* --------------------------------------------------------------------------------------- calls of SDL */

static void count_call(Canvas *canvas, uint64_t start)
{
    canvas->call_count++;
    canvas->call_ticks += SDL_GetPerformanceCounter() - start;
}

void canvas_clear(Canvas *canvas, uint32_t color)
{
    const uint64_t start = SDL_GetPerformanceCounter();
    canvas->drawn_count = canvas->call_count = 0;
    canvas->call_ticks = 0;
    SDL_SetRenderDrawColor(canvas->renderer, (uint8_t)(color >> 24), (uint8_t)(color >> 16),
                           (uint8_t)(color >> 8), 255);
    SDL_RenderClear(canvas->renderer);
    count_call(canvas, start);
}

void canvas_picture(Canvas *canvas, SDL_Texture *texture, float width, float height)
{
    const Frame frame = canvas->frame;
    const SDL_FRect box = {frame.left, frame.top, width * frame.scale, height * frame.scale};
    canvas_flush(canvas);
    const uint64_t start = SDL_GetPerformanceCounter();
    SDL_RenderCopyF(canvas->renderer, texture, NULL, &box);
    count_call(canvas, start);
}

void canvas_clip(Canvas *canvas, const SDL_FRect *box)
{
    const Frame frame = canvas->frame;
    canvas_flush(canvas);
    if (box == NULL) {
        SDL_RenderSetClipRect(canvas->renderer, NULL);
        return;
    }
    const SDL_Rect pixels = {(int)lroundf(frame.left + box->x * frame.scale),
                             (int)lroundf(frame.top + box->y * frame.scale),
                             (int)lroundf(box->w * frame.scale), (int)lroundf(box->h * frame.scale)};
    SDL_RenderSetClipRect(canvas->renderer, &pixels);
}

void canvas_flush(Canvas *canvas)
{
    if (canvas->quad_count == 0) return;
    const uint64_t start = SDL_GetPerformanceCounter();
    SDL_SetTextureBlendMode(canvas->texture, canvas->blend);
    SDL_RenderGeometry(canvas->renderer, canvas->texture, canvas->vertices, (int)canvas->quad_count * 4,
                       canvas->indices, (int)canvas->quad_count * 6);
    count_call(canvas, start);
    canvas->drawn_count += canvas->quad_count;
    canvas->quad_count = 0;
}

void canvas_show(Canvas *canvas)
{
    const uint64_t start = SDL_GetPerformanceCounter();
    SDL_RenderPresent(canvas->renderer);
    count_call(canvas, start);
}

void canvas_blend(Canvas *canvas, SDL_BlendMode blend)
{
    if (blend == canvas->blend) return;
    canvas_flush(canvas);
    canvas->blend = blend;
}

/* ------------------------------------------------------------------------------------------------ quads */

/* Adds a quad of a texture. Position, sides and colour: centre and half sides in pixels. */
static void add_pixels(Canvas *canvas, SDL_Texture *texture, const SDL_FPoint from[4], SDL_FPoint at,
                       SDL_FPoint a, SDL_FPoint b, uint32_t color)
{
    if (canvas->quad_count == CANVAS_QUADS || texture != canvas->texture) canvas_flush(canvas);
    canvas->texture = texture;
    SDL_Vertex *corners = &canvas->vertices[(size_t)canvas->quad_count++ * 4];
    const SDL_Color shade = {(uint8_t)(color >> 24), (uint8_t)(color >> 16), (uint8_t)(color >> 8),
                             (uint8_t)color};
    corners[0] = (SDL_Vertex){{at.x - a.x - b.x, at.y - a.y - b.y}, shade, from[0]};
    corners[1] = (SDL_Vertex){{at.x + a.x - b.x, at.y + a.y - b.y}, shade, from[1]};
    corners[2] = (SDL_Vertex){{at.x - a.x + b.x, at.y - a.y + b.y}, shade, from[2]};
    corners[3] = (SDL_Vertex){{at.x + a.x + b.x, at.y + a.y + b.y}, shade, from[3]};
}

/* Returns the smallest size of the sprites that has enough texels for a size in pixels. */
static int level_of(float size)
{
    int level = 0;
    while (level + 1 < CANVAS_LEVELS && (float)(CELL >> (level + 1)) >= size * 0.9f)
        level++;
    return level;
}

/* Adds a sprite. (ax, ay) and (bx, by) lead from the centre to the right and to the lower side. */
static void add_quad(Canvas *canvas, Sprite sprite, float x, float y, float ax, float ay, float bx,
                     float by, uint32_t color)
{
    const Frame frame = canvas->frame;
    const SDL_FPoint a = {ax * frame.scale, ay * frame.scale}, b = {bx * frame.scale, by * frame.scale};
    const float across = 2 * (fabsf(b.x) + fabsf(b.y)), along = 2 * (fabsf(a.x) + fabsf(a.y));
    const bool is_line = sprite == SPRITE_LINE || sprite == SPRITE_STROKE;
    add_pixels(canvas, canvas->sprites,
               canvas->corners[level_of(is_line ? across : fmaxf(across, along))][sprite],
               (SDL_FPoint){frame.left + x * frame.scale, frame.top + y * frame.scale}, a, b, color);
}

void canvas_glyph(Canvas *canvas, SDL_Texture *texture, SDL_FRect part, SDL_FRect pixels, uint32_t color)
{
    const SDL_FPoint from[4] = {{part.x, part.y},
                                {part.x + part.w, part.y},
                                {part.x, part.y + part.h},
                                {part.x + part.w, part.y + part.h}};
    const SDL_FPoint half = {pixels.w / 2, pixels.h / 2};
    add_pixels(canvas, texture, from, (SDL_FPoint){pixels.x + half.x, pixels.y + half.y},
               (SDL_FPoint){half.x, 0}, (SDL_FPoint){0, half.y}, color);
}

void canvas_turned(Canvas *canvas, Sprite sprite, float x, float y, float along_x, float along_y,
                   float length, float width, uint32_t color)
{
    const float a = length / 2, b = width / 2;
    add_quad(canvas, sprite, x, y, along_x * a, along_y * a, -along_y * b, along_x * b, color);
}

void canvas_sprite(Canvas *canvas, Sprite sprite, float x, float y, float width, float height,
                   uint32_t color)
{
    add_quad(canvas, sprite, x, y, width / 2, 0, 0, height / 2, color);
}

void canvas_box(Canvas *canvas, float x, float y, float width, float height, uint32_t color)
{
    add_quad(canvas, SPRITE_SOLID, x + width / 2, y + height / 2, width / 2, 0, 0, height / 2, color);
}

void canvas_line(Canvas *canvas, float x0, float y0, float x1, float y1, float width, uint32_t color)
{
    const float dx = x1 - x0, dy = y1 - y0, far = fmaxf(sqrtf(dx * dx + dy * dy), 0.001f);
    canvas_turned(canvas, SPRITE_LINE, (x0 + x1) / 2, (y0 + y1) / 2, dx / far, dy / far,
                  width < 6 ? far + width * 0.5f : far, width, color);
}

void canvas_stroke(Canvas *canvas, float x0, float y0, float x1, float y1, float width, uint32_t color)
{
    const float dx = x1 - x0, dy = y1 - y0, far = fmaxf(sqrtf(dx * dx + dy * dy), 0.001f);
    canvas_turned(canvas, SPRITE_STROKE, (x0 + x1) / 2, (y0 + y1) / 2, dx / far, dy / far, far, width,
                  color);
    canvas_sprite(canvas, SPRITE_DISC, x0, y0, width, width, color);
    canvas_sprite(canvas, SPRITE_DISC, x1, y1, width, width, color);
}
