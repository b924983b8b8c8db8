/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_CANVAS_H
#define KEEP_CANVAS_H

/* Draws sprites of one texture, in batches: as many as possible go to the renderer in one call. */

#include <SDL2/SDL.h>
#include <stdbool.h>
#include <stdint.h>

enum { CANVAS_WIDTH = 1280, CANVAS_HEIGHT = 800, FIELD_HEIGHT = 720 }; /* what SDL scales to the window */

enum { CANVAS_QUADS = 8192 };

/* Shapes in the texture, white or grey, to be coloured. Those that have a direction look along x. */
typedef enum Sprite {
    SPRITE_SOLID,
    SPRITE_DISC,
    SPRITE_GLOW,
    SPRITE_SHADOW,
    SPRITE_RING,
    SPRITE_LINE, /* solid along x, soft across */
    SPRITE_BASE,
    SPRITE_KNOB,
    SPRITE_BAR,
    SPRITE_CRYSTAL,
    SPRITE_BUG,
    SPRITE_SPIKY,
    SPRITE_COUNT
} Sprite;

typedef struct Canvas {
    SDL_Renderer *renderer;
    SDL_Texture *sprites;
    SDL_BlendMode blend;
    uint32_t quad_count, drawn_count; /* waiting, and in all of this picture */
    SDL_Vertex vertices[CANVAS_QUADS * 4];
    int indices[CANVAS_QUADS * 6];
} Canvas;

/* Returns false when SDL refuses; SDL_GetError says why. */
bool canvas_create(Canvas *canvas, SDL_Renderer *renderer);

void canvas_destroy(Canvas *canvas);

/* Draws what waits. */
void canvas_flush(Canvas *canvas);

/* How what follows meets what is there: SDL_BLENDMODE_BLEND, or ADD for light. */
void canvas_blend(Canvas *canvas, SDL_BlendMode blend);

/* A sprite around (x, y), whose own axes are half of (along_x, along_y) and of its normal, width to
 * length. */
void canvas_turned(Canvas *canvas, Sprite sprite, float x, float y, float along_x, float along_y,
                   float length, float width, uint32_t color);

/* A sprite around (x, y), not turned. */
void canvas_sprite(Canvas *canvas, Sprite sprite, float x, float y, float width, float height,
                   uint32_t color);

/* A rectangle with its left upper corner at (x, y). */
void canvas_box(Canvas *canvas, float x, float y, float width, float height, uint32_t color);

void canvas_line(Canvas *canvas, float x0, float y0, float x1, float y1, float width, uint32_t color);

/* 0xRRGGBBAA with another alpha, 0 to 1 times its own. */
static inline uint32_t faded(uint32_t color, float part)
{
    const float alpha = (float)(color & 0xFF) * (part < 0 ? 0 : part > 1 ? 1 : part);
    return (color & 0xFFFFFF00u) | (uint32_t)alpha;
}

#endif
