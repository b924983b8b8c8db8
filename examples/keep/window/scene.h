/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_SCENE_H
#define KEEP_SCENE_H

/* Draws the field with a second schedule of the game's world, which does not change the world. So a
 * paused game can be drawn, and a fast game can run several steps per picture. The systems run on the
 * main thread, one after another, because each of them writes the resource Screen. */

#include "../game/game.h"
#include "layout.h"

typedef struct Scene {
    Game *game;
    Canvas *canvas;
    SDL_Texture *ground;
    quern_schedule *schedule;
    quern_resource screen; /* resource that all systems of the scene write */
    Layout layout;         /* layout of the last picture */
    float scale;           /* units of the field per unit of the game */
    float seconds;         /* age of the scene, from which lights flicker */
} Scene;

/* Creates a scene. Returns false if SDL fails; SDL_GetError has the cause. The scene must not move. */
bool scene_create(Scene *scene, Game *game, Canvas *canvas);

void scene_destroy(Scene *scene);

/* Draws the field at its position in the layout. */
void scene_draw(Scene *scene, Layout layout, float seconds);

/* Return sprite and colour of the base of a kind of tower: each kind has another outline. */
Sprite scene_base_of(TowerKind kind);
uint32_t scene_base_color_of(TowerKind kind);

/* Convert a pixel of the window to a point of the game, and a point of the game to one of the field. */
Point scene_to_game(const Scene *scene, SDL_FPoint pixel);
SDL_FPoint scene_to_field(const Scene *scene, Point point);

#endif
