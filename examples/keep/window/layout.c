/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "layout.h"

#include <math.h>

/* In points of the screen; a point is several pixels on some screens. */
static const float least_unit = 0.8f;
static const float large_bar[2] = {1280, 80}, small_bar[2] = {800, 58};

static Frame centered(float left, float top, float width, float height, float inner_width,
                      float inner_height, float scale)
{
    return (Frame){left + (width - inner_width * scale) / 2, top + (height - inner_height * scale) / 2,
                   scale};
}

static float field_scale(float width, float height, bool is_title)
{
    const float across = width / FIELD_WIDTH, down = height / FIELD_HEIGHT;
    return is_title ? fmaxf(across, down) : fminf(across, down);
}

Layout layout_of(SDL_Window *window, SDL_Renderer *renderer, bool is_title)
{
    int width, height, points;
    SDL_GetRendererOutputSize(renderer, &width, &height);
    SDL_GetWindowSize(window, &points, NULL);
    Layout layout = {.width = (float)width, .height = (float)height};
    const float fitting = fminf(layout.width / WINDOW_WIDTH, layout.height / WINDOW_HEIGHT);
    layout.unit = fmaxf(fitting, least_unit * layout.width / (float)points);
    layout.is_small = layout.width < large_bar[0] * layout.unit * 0.98f;
    const float *bar = layout.is_small ? small_bar : large_bar;
    const float bar_unit = fminf(layout.unit, layout.width / bar[0]),
                rest = layout.height - (is_title ? 0 : bar[1] * bar_unit);
    layout.bar_width = bar[0];
    layout.bar_height = bar[1];
    layout.bar = (Frame){(layout.width - bar[0] * bar_unit) / 2, rest, bar_unit};
    layout.field = centered(0, 0, layout.width, rest, FIELD_WIDTH, FIELD_HEIGHT,
                            field_scale(layout.width, rest, is_title));
    if (is_title)
        layout.field.left = layout.width - FIELD_WIDTH * layout.field.scale; /* the keep is on the right */
    layout.page = centered(0, 0, layout.width, layout.height, PAGE_WIDTH, PAGE_HEIGHT,
                           0.96f * fminf(layout.width / PAGE_WIDTH, layout.height / PAGE_HEIGHT));
    return layout;
}
