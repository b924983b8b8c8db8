/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "canvas.h"

#include <math.h>
#include <string.h>

enum { CELL = 128, CELLS_ACROSS = 4, CELLS_DOWN = 5 };

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

/* Returns a slab with a light rim. distance: from the centre, 0.92 at the outline. */
static Texel slab_texel(float distance, float x, float y)
{
    const float rim = clamp01((distance - 0.68f) * 12) * clamp01((0.92f - distance) * 12);
    return (Texel){0.62f + 0.5f * rim - 0.16f * y * rim - 0.1f * (x + y), edge(distance - 0.92f)};
}

static Texel knob_texel(float x, float y)
{
    const float far = hypotf(x, y), lit = clamp01(1 - hypotf(x + 0.35f, y + 0.4f));
    return (Texel){0.55f + 0.55f * lit - 0.25f * clamp01((far - 0.72f) * 6), edge(far - 0.92f)};
}

static Texel bar_texel(float x, float y)
{
    const float dx = fmaxf(fabsf(x) - 0.62f, 0), dy = fmaxf(fabsf(y) - 0.5f, 0);
    const float band = clamp01((x - 0.5f) * 20) * clamp01((0.85f - x) * 20);
    return (Texel){0.95f - 0.55f * fabsf(y + 0.25f) - 0.25f * band, edge(hypotf(dx, dy) - 0.3f)};
}

static Texel crystal_texel(float x, float y)
{
    const float far = fabsf(x) + fabsf(y), facet = x > 0 ? (y < 0 ? 1.0f : 0.75f) : (y < 0 ? 0.85f : 0.55f);
    return (Texel){facet + 0.3f * clamp01(1 - 3 * far), edge((far - 0.92f) * 0.7f)};
}

/* Returns a drop with a round front and a pointed back, with a dark rim and light on top. */
static Texel bug_texel(float x, float y)
{
    const float half = x > 0 ? 0.62f : 0.62f * (1 - 0.72f * x * x);
    const float far = hypotf(x * 0.98f, y / fmaxf(half, 0.05f));
    const float eyes = clamp01((0.14f - hypotf(x - 0.5f, fabsf(y) - 0.26f)) * 20);
    return (Texel){1 - 0.55f * clamp01((far - 0.55f) * 2.4f) + 0.5f * eyes, edge((far - 0.9f) * half)};
}

static Texel spiky_texel(float x, float y)
{
    const float far = hypotf(x, y), spike = 0.74f + 0.18f * cosf(9 * atan2f(y, x));
    const float core = clamp01((0.3f - far) * 8);
    return (Texel){0.95f - 0.6f * clamp01((far - 0.35f) * 2) + 0.4f * core, edge((far - spike) * 0.7f)};
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
    case SPRITE_BUG:
        return bug_texel(x, y);
    case SPRITE_SPIKY:
        return spiky_texel(x, y);
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
            pixels[(top + y) * CELL * CELLS_ACROSS + left + x] =
                light << 24 | light << 16 | light << 8 | alpha;
        }
}

static SDL_Texture *make_sprites(SDL_Renderer *renderer)
{
    static uint32_t pixels[CELL * CELLS_ACROSS * CELL * CELLS_DOWN];
    const int width = CELL * CELLS_ACROSS, height = CELL * CELLS_DOWN;
    for (uint32_t sprite = 0; sprite < SPRITE_COUNT; sprite++)
        paint_cell(pixels, (Sprite)sprite);
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
    const float in = 0.5f / CELL;
    for (int i = 0; i < SPRITE_COUNT * 4; i++) {
        const int sprite = i / 4, column = sprite % CELLS_ACROSS, row = sprite / CELLS_ACROSS;
        const float x = (float)column + (i & 1 ? 1 - in : in), y = (float)row + (i & 2 ? 1 - in : in);
        canvas->corners[sprite][i % 4] = (SDL_FPoint){x / CELLS_ACROSS, y / CELLS_DOWN};
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
    canvas->sprites = make_sprites(renderer);
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
    SDL_SetTextureBlendMode(canvas->sprites, canvas->blend);
    SDL_RenderGeometry(canvas->renderer, canvas->sprites, canvas->vertices, (int)canvas->quad_count * 4,
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

/* Adds a quad. (ax, ay) and (bx, by) lead from the centre to the right and to the lower side. */
static void add_quad(Canvas *canvas, Sprite sprite, float x, float y, float ax, float ay, float bx,
                     float by, uint32_t color)
{
    if (canvas->quad_count == CANVAS_QUADS) canvas_flush(canvas);
    SDL_Vertex *corners = &canvas->vertices[(size_t)canvas->quad_count++ * 4];
    const SDL_FPoint *from = canvas->corners[sprite];
    const Frame frame = canvas->frame;
    const SDL_Color shade = {(uint8_t)(color >> 24), (uint8_t)(color >> 16), (uint8_t)(color >> 8),
                             (uint8_t)color};
    x = frame.left + x * frame.scale;
    y = frame.top + y * frame.scale;
    ax *= frame.scale, ay *= frame.scale, bx *= frame.scale, by *= frame.scale;
    corners[0] = (SDL_Vertex){{x - ax - bx, y - ay - by}, shade, from[0]};
    corners[1] = (SDL_Vertex){{x + ax - bx, y + ay - by}, shade, from[1]};
    corners[2] = (SDL_Vertex){{x - ax + bx, y - ay + by}, shade, from[2]};
    corners[3] = (SDL_Vertex){{x + ax + bx, y + ay + by}, shade, from[3]};
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
