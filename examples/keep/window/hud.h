/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_HUD_H
#define KEEP_HUD_H

/* What lies over the field: the bar below it with gold, lives and buttons, the place under the mouse, and
 * title, menu and end. */

#include "scene.h"

typedef enum Page { PAGE_TITLE, PAGE_GAME, PAGE_MENU } Page;

/* What the player has chosen and where the mouse is, in pixels of the canvas. */
typedef struct Hud {
    Page page;
    int chosen; /* a TowerKind; TOWER_KINDS: to sell */
    float mouse_x, mouse_y;
    uint32_t speed; /* steps per picture */
    bool is_paused, is_rewinding;
    const char *notice; /* why something could not be done, or NULL */
    float notice_seconds;
} Hud;

typedef enum HudButton {
    HUD_NOTHING,
    HUD_TOWER, /* and the kinds behind it, and selling */
    HUD_WAVE = HUD_TOWER + TOWER_KINDS + 1,
    HUD_SPEED,
    HUD_PAUSE,
    HUD_REWIND
} HudButton;

/* The button at a place of the canvas. */
HudButton hud_button_at(float x, float y);

void hud_draw(const Hud *hud, Scene *scene);

#endif
