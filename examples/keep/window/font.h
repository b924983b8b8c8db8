/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_FONT_H
#define KEEP_FONT_H

/* Text in Jost (jost/), by SDL2_ttf. In builds without SDL2_ttf letters are strokes: capital letters, digits and some
 * signs. Small letters then look like capitals. */

#include "canvas.h"

typedef enum Align { ALIGN_LEFT, ALIGN_CENTER, ALIGN_RIGHT } Align;

/* Loads the typeface. Without it, text is drawn in strokes. */
void font_open(Canvas *canvas);
void font_close(Canvas *canvas);

/* Returns the width of a text; size is the height of a capital letter. */
float font_width(Canvas *canvas, float size, const char *text);

/* Draws text with the upper edge of its capital letters at y. */
void font_draw(Canvas *canvas, float x, float y, float size, Align align, uint32_t color, const char *text);

/* Draws text that is formatted as by printf. */
__attribute__((format(printf, 7, 8))) void font_print(Canvas *canvas, float x, float y, float size,
                                                      Align align, uint32_t color, const char *format, ...);

#endif
