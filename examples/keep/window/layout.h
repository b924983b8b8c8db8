/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_LAYOUT_H
#define KEEP_LAYOUT_H

/* The positions of the parts of the picture, in a window of any size: the field as large as possible,
 * the bar below it, pages and overlay above both. Each part is drawn in units of its own, so that text
 * remains readable if the field becomes small. */

#include "canvas.h"

enum { FIELD_WIDTH = 1280, FIELD_HEIGHT = 720 };   /* units of the field */
enum { WINDOW_WIDTH = 1280, WINDOW_HEIGHT = 800 }; /* size of a new window, in which a unit is a pixel */
enum { WINDOW_LEAST_WIDTH = 640, WINDOW_LEAST_HEIGHT = 360 };
enum { PAGE_WIDTH = 1000, PAGE_HEIGHT = 600 }; /* units of title, menu and end */

typedef struct Layout {
    float width, height; /* size of the window, in pixels */
    float unit;          /* size of a unit in pixels, with a minimum; 1 in a new window */
    bool is_small;       /* the bar shows only what it needs */
    float bar_width, bar_height;
    Frame field, bar, page;
} Layout;

/* Computes the layout. is_title: no bar, and the field covers the window, with its left or lower side cut
 * off if necessary. */
Layout layout_of(SDL_Window *window, SDL_Renderer *renderer, bool is_title);

#endif
