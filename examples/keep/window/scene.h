/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_SCENE_H
#define KEEP_SCENE_H

/* Draws the field. A second schedule of the game's world, which changes nothing in it: its systems run on
 * the main thread, one after another, since each of them writes the resource Screen. So a game that stands
 * still is drawn as well, and one that is fast makes several steps for one picture. */

#include "../game/game.h"
#include "layout.h"

typedef struct Scene {
    Game *game;
    Canvas *canvas;
    SDL_Texture *ground;
    quern_schedule *schedule;
    quern_resource screen; /* what all its systems write */
    Layout layout;         /* of the last picture */
    float scale;           /* units of the field for one of the game */
    float seconds;         /* since it was made, for what flickers */
} Scene;

/* Returns false when SDL refuses; SDL_GetError says why. The scene must stay where it is. */
bool scene_create(Scene *scene, Game *game, Canvas *canvas);

void scene_destroy(Scene *scene);

/* Draws the field where the layout has it. */
void scene_draw(Scene *scene, Layout layout, float seconds);

/* The base of a kind of tower: each kind has another outline. */
Sprite scene_base_of(TowerKind kind);

/* A point of the game for a pixel of the window, and where a point of the game is on the field. */
Point scene_to_game(const Scene *scene, SDL_FPoint pixel);
SDL_FPoint scene_to_field(const Scene *scene, Point point);

#endif
