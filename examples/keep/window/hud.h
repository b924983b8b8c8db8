/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_HUD_H
#define KEEP_HUD_H

/* The bar below the field, with gold, lives and buttons, and the marked plot under the mouse. Title,
 * menu and end are in pages.h. */

#include "scene.h"

enum { NOTICE_BYTES = 512 }; /* longest notice, with the final 0 */

typedef enum Page { PAGE_TITLE, PAGE_GAME, PAGE_MENU } Page;

/* The selection of the player, and the mouse, in pixels of the window. */
typedef struct Hud {
    Page page;
    int chosen; /* a TowerKind; TOWER_KINDS: to sell */
    SDL_FPoint mouse;
    bool is_mouse_away; /* whether the mouse is outside of the window */
    uint32_t speed;     /* steps per picture */
    bool is_paused, is_rewinding, is_mute;
    const char *notice; /* why an action failed, or what was done; or NULL */
    bool is_good_news;  /* whether the notice is no failure */
    float notice_seconds;
} Hud;

typedef enum HudButton {
    HUD_NOTHING,
    HUD_TOWER, /* followed by the other kinds, and selling */
    HUD_WAVE = HUD_TOWER + TOWER_KINDS + 1,
    HUD_SPEED,
    HUD_PAUSE,
    HUD_REWIND
} HudButton;

/* Returns the button under the mouse; HUD_NOTHING while title or menu cover the field. */
HudButton hud_button_at(const Hud *hud, const Layout *layout);

/* Returns whether the mouse is on the field. */
bool hud_is_on_field(const Hud *hud, const Layout *layout);

/* Draws the notice above the bar, or at the top of a page, in up to four lines. */
void hud_draw_notice(const Hud *hud, Scene *scene);

/* Draws only the bar, while a page covers the field. */
void hud_draw_bar(const Hud *hud, Scene *scene);

void hud_draw(const Hud *hud, Scene *scene);

#endif
