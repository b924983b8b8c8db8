/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_SCENE_H
#define KEEP_SCENE_H

/* Draws the field. A second schedule of the game's world, which changes nothing in it: its systems run on
 * the main thread, one after another, since each of them writes the resource Screen. So a game that stands
 * still is drawn as well, and one that is fast makes several steps for one picture. */

#include "../game/game.h"
#include "canvas.h"

typedef struct Scene {
    Game *game;
    Canvas *canvas;
    SDL_Texture *ground;
    quern_schedule *schedule;
    quern_resource screen; /* what all its systems write */
    float scale;           /* pixels per unit */
    float seconds;         /* since it was made, for what flickers */
} Scene;

/* Returns false when SDL refuses; SDL_GetError says why. The scene must stay where it is. */
bool scene_create(Scene *scene, Game *game, Canvas *canvas);

void scene_destroy(Scene *scene);

void scene_draw(Scene *scene, float seconds);

Point scene_to_field(const Scene *scene, float x, float y);
SDL_FPoint scene_to_canvas(const Scene *scene, Point point);

#endif
