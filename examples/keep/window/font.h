/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_FONT_H
#define KEEP_FONT_H

/* Letters of soft lines: capital letters, digits and some signs. Small letters look like capitals. */

#include "canvas.h"

typedef enum Align { ALIGN_LEFT, ALIGN_CENTER, ALIGN_RIGHT } Align;

/* Draws text with its upper edge at y; size is the height of a letter. */
void font_draw(Canvas *canvas, float x, float y, float size, Align align, uint32_t color, const char *text);

/* Draws text that is formatted as by printf. */
__attribute__((format(printf, 7, 8))) void font_print(Canvas *canvas, float x, float y, float size,
                                                      Align align, uint32_t color, const char *format, ...);

#endif
