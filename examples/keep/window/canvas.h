/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_CANVAS_H
#define KEEP_CANVAS_H

/* Draws sprites of one texture in batches: one call of the renderer draws as many sprites as possible.
 * Counts and times these calls, so that the overlay can show the time of SDL separately from that of the
 * game. */

#include <SDL2/SDL.h>
#include <stdbool.h>
#include <stdint.h>

enum { CANVAS_QUADS = 16384, CANVAS_LEVELS = 4 /* sizes of the sprites in the texture */ };

/* A coordinate system: position of (0, 0) and length of 1, in pixels. */
typedef struct Frame {
    float left, top, scale;
} Frame;

/* Shapes in the texture. They are white or grey, and coloured when they are drawn. Shapes with a
 * direction point along x. */
typedef enum Sprite {
    SPRITE_SOLID,
    SPRITE_DISC,
    SPRITE_GLOW,
    SPRITE_SHADOW,
    SPRITE_RING,
    SPRITE_LINE,   /* solid along x, soft across */
    SPRITE_STROKE, /* solid along x, across as sharp as a disc */
    SPRITE_BASE,
    SPRITE_KNOB,
    SPRITE_BAR,
    SPRITE_CRYSTAL,
    SPRITE_MITE, /* the five kinds of enemies */
    SPRITE_RUNNER,
    SPRITE_BRUTE,
    SPRITE_WITCH,
    SPRITE_GIANT,
    SPRITE_PLATE, /* the bases of the four kinds of towers */
    SPRITE_DRUM,
    SPRITE_WEDGE,
    SPRITE_CLOVER,
    SPRITE_COUNT
} Sprite;

typedef struct Canvas {
    SDL_Renderer *renderer;
    SDL_Texture *sprites;
    SDL_Texture *texture; /* texture of the batch: sprites, or letters */
    struct Font *font;    /* letters (font.h) */
    SDL_BlendMode blend;
    Frame frame;                      /* frame of the current drawing */
    uint32_t quad_count, drawn_count; /* quads in the batch, and in the whole picture */
    uint32_t call_count;              /* calls of SDL in this picture */
    uint64_t call_ticks;              /* duration of these calls, by the clock of SDL */
    SDL_FPoint corners[CANVAS_LEVELS][SPRITE_COUNT][4];
    SDL_Vertex vertices[CANVAS_QUADS * 4];
    int indices[CANVAS_QUADS * 6];
} Canvas;

/* Creates a canvas. Returns false if SDL fails; SDL_GetError has the cause. */
bool canvas_create(Canvas *canvas, SDL_Renderer *renderer);

void canvas_destroy(Canvas *canvas);

/* Begins a picture with one colour. */
void canvas_clear(Canvas *canvas, uint32_t color);

/* Draws a texture over a rectangle of the frame. */
void canvas_picture(Canvas *canvas, SDL_Texture *texture, float width, float height);

/* Limits drawing to a rectangle of the frame; NULL: no limit. */
void canvas_clip(Canvas *canvas, const SDL_FRect *box);

/* Draws the current batch. */
void canvas_flush(Canvas *canvas);

/* Shows the picture. */
void canvas_show(Canvas *canvas);

/* Sets how sprites blend with the picture: SDL_BLENDMODE_BLEND, or ADD for light. */
void canvas_blend(Canvas *canvas, SDL_BlendMode blend);

/* Draws a sprite around (x, y). Half of its length is along (along_x, along_y), half of its width along
 * the normal. */
void canvas_turned(Canvas *canvas, Sprite sprite, float x, float y, float along_x, float along_y,
                   float length, float width, uint32_t color);

/* Draws a sprite around (x, y), not rotated. */
void canvas_sprite(Canvas *canvas, Sprite sprite, float x, float y, float width, float height,
                   uint32_t color);

/* Draws a part of a texture, in fractions of its size, at a rectangle in pixels. */
void canvas_glyph(Canvas *canvas, SDL_Texture *texture, SDL_FRect part, SDL_FRect pixels, uint32_t color);

/* Draws a rectangle with its left upper corner at (x, y). */
void canvas_box(Canvas *canvas, float x, float y, float width, float height, uint32_t color);

/* Draw a line with soft sides, and one with sharp sides and round ends. */
void canvas_line(Canvas *canvas, float x0, float y0, float x1, float y1, float width, uint32_t color);
void canvas_stroke(Canvas *canvas, float x0, float y0, float x1, float y1, float width, uint32_t color);

/* Converts a point of the window, in pixels, to a point of a frame. */
static inline SDL_FPoint frame_point(Frame frame, SDL_FPoint pixel)
{
    return (SDL_FPoint){(pixel.x - frame.left) / frame.scale, (pixel.y - frame.top) / frame.scale};
}

/* Returns a colour with its alpha multiplied by `part`, 0 to 1. */
static inline uint32_t faded(uint32_t color, float part)
{
    const float alpha = (float)(color & 0xFF) * (part < 0 ? 0 : part > 1 ? 1 : part);
    return (color & 0xFFFFFF00u) | (uint32_t)alpha;
}

#endif
