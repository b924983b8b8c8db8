/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_LAYOUT_H
#define KEEP_LAYOUT_H

/* Where the parts of the picture are, in a window of whatever size: the field as large as it can be, the
 * bar below it, pages and overlay above both. Each part is drawn in units of its own, so that letters stay
 * as large as they must be to be read where the field becomes small. */

#include "canvas.h"

enum { FIELD_WIDTH = 1280, FIELD_HEIGHT = 720 };   /* units of the field */
enum { WINDOW_WIDTH = 1280, WINDOW_HEIGHT = 800 }; /* of a new window, where a unit is a pixel */
enum { WINDOW_LEAST_WIDTH = 640, WINDOW_LEAST_HEIGHT = 360 };
enum { PAGE_WIDTH = 1000, PAGE_HEIGHT = 600 }; /* units of title, menu and end */

typedef struct Layout {
    float width, height; /* of all, in pixels */
    float unit;          /* pixels for what is 1 in a new window; it has a least size */
    bool is_small;       /* the bar leaves out what it can do without */
    float bar_width, bar_height;
    Frame field, bar, page;
} Layout;

/* is_title: there is no bar, and the field covers the window, with its sides cut off where they do not fit. */
Layout layout_of(SDL_Window *window, SDL_Renderer *renderer, bool is_title);

#endif
