/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_GROUND_H
#define KEEP_GROUND_H

/* The empty field, painted once: meadows at night, and the roads of the level. */

#include "../game/game.h"

#include <SDL2/SDL.h>

/* Paints the field. Returns NULL if SDL fails; SDL_GetError has the cause. */
SDL_Texture *ground_paint(SDL_Renderer *renderer, const Game *game);

#endif
