/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_CANVAS_H
#define KEEP_CANVAS_H

/* Draws sprites of one texture, in batches: as many as possible go to the renderer in one call. Counts
 * these calls, and how long they take, since that is SDL's part of the work and not the game's. */

#include <SDL2/SDL.h>
#include <stdbool.h>
#include <stdint.h>

enum { CANVAS_QUADS = 16384 };

/* Where things are drawn: in pixels, the place of (0, 0), and the length of 1. */
typedef struct Frame {
    float left, top, scale;
} Frame;

/* Shapes in the texture, white or grey, to be coloured. Those that have a direction look along x. */
typedef enum Sprite {
    SPRITE_SOLID,
    SPRITE_DISC,
    SPRITE_GLOW,
    SPRITE_SHADOW,
    SPRITE_RING,
    SPRITE_LINE,   /* solid along x, soft across */
    SPRITE_STROKE, /* solid along x, and as sharp across as a disc */
    SPRITE_BASE,
    SPRITE_KNOB,
    SPRITE_BAR,
    SPRITE_CRYSTAL,
    SPRITE_BUG,
    SPRITE_SPIKY,
    SPRITE_PLATE, /* the bases of the four kinds of towers */
    SPRITE_DRUM,
    SPRITE_WEDGE,
    SPRITE_CLOVER,
    SPRITE_COUNT
} Sprite;

typedef struct Canvas {
    SDL_Renderer *renderer;
    SDL_Texture *sprites;
    SDL_BlendMode blend;
    Frame frame;                      /* of all that is drawn now */
    uint32_t quad_count, drawn_count; /* waiting, and in all of this picture */
    uint32_t call_count;              /* of SDL, in this picture */
    uint64_t call_ticks;              /* that these took, of SDL's clock */
    SDL_FPoint corners[SPRITE_COUNT][4];
    SDL_Vertex vertices[CANVAS_QUADS * 4];
    int indices[CANVAS_QUADS * 6];
} Canvas;

/* Returns false when SDL refuses; SDL_GetError says why. */
bool canvas_create(Canvas *canvas, SDL_Renderer *renderer);

void canvas_destroy(Canvas *canvas);

/* Begins a picture of one colour. */
void canvas_clear(Canvas *canvas, uint32_t color);

/* A texture over all of a rectangle of the frame. */
void canvas_picture(Canvas *canvas, SDL_Texture *texture, float width, float height);

/* From here on only what is within a rectangle of the frame is drawn; NULL: all. */
void canvas_clip(Canvas *canvas, const SDL_FRect *box);

/* Draws what waits. */
void canvas_flush(Canvas *canvas);

/* Shows the picture. */
void canvas_show(Canvas *canvas);

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

/* A line with soft sides, and one with sharp sides and round ends. */
void canvas_line(Canvas *canvas, float x0, float y0, float x1, float y1, float width, uint32_t color);
void canvas_stroke(Canvas *canvas, float x0, float y0, float x1, float y1, float width, uint32_t color);

/* A point of the window, in pixels, as a point of a frame. */
static inline SDL_FPoint frame_point(Frame frame, SDL_FPoint pixel)
{
    return (SDL_FPoint){(pixel.x - frame.left) / frame.scale, (pixel.y - frame.top) / frame.scale};
}

/* 0xRRGGBBAA with another alpha, 0 to 1 times its own. */
static inline uint32_t faded(uint32_t color, float part)
{
    const float alpha = (float)(color & 0xFF) * (part < 0 ? 0 : part > 1 ? 1 : part);
    return (color & 0xFFFFFF00u) | (uint32_t)alpha;
}

#endif
