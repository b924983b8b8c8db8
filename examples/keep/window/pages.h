/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_PAGES_H
#define KEEP_PAGES_H

/* Title, menu and end: large letters over the field, with choices by mouse or key. */

#include "hud.h"

typedef enum Choice {
    CHOICE_NONE,
    CHOICE_GO_ON, /* to the game */
    CHOICE_NEW_GAME,
    CHOICE_SAVE,
    CHOICE_LOAD,
    CHOICE_LESSON, /* a short level that shows how to play */
    CHOICE_TURN_BACK,
    CHOICE_SOUND,
    CHOICE_LEAVE
} Choice;

/* Returns whether a page covers the field. */
bool pages_are_up(const Hud *hud, const Keep *keep);

/* Returns the choice under the mouse. */
Choice pages_choice_at_mouse(const Hud *hud, Scene *scene);

/* Returns the choice of a key on the current page. */
Choice pages_choice_of_key(const Hud *hud, const Keep *keep, SDL_Keycode key);

void pages_draw(const Hud *hud, Scene *scene);

#endif
