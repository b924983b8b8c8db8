/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_SYSTEMS_H
#define KEEP_SYSTEMS_H

/* Who adds which systems. Their user_data is the game. */

#include "game.h"

void waves_add(Game *game);     /* let enemies out, and say who has won */
void enemies_add(Game *game);   /* walk, thaw, die */
void towers_add(Game *game);    /* choose targets, turn, reload, are stunned */
void weapons_add(Game *game);   /* fire */
void bullets_add(Game *game);   /* fly and hit */
void particles_add(Game *game); /* burst, drift and fade */

/* Makes the blueprints of towers and enemies, below "towers" and "enemies", and prefabs of them. */
void blueprints_make(Game *game);

#endif
