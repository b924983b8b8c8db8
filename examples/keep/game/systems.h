/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_SYSTEMS_H
#define KEEP_SYSTEMS_H

/* Functions that add the systems. Their user_data is that of the schedule, the game. */

#include "game.h"

void waves_add(Game *game);     /* create enemies, and decide the end of the game */
void enemies_add(Game *game);   /* walk, thaw, die */
void towers_add(Game *game);    /* choose targets, turn, reload, and are stunned */
void weapons_add(Game *game);   /* fire */
void bullets_add(Game *game);   /* fly and hit */
void particles_add(Game *game); /* burst, drift and fade */

/* Request particles, or a sound, in a callback whose system emits such events. */
void emit_burst(quern_context *context, const Game *game, Burst burst);
void emit_cue(quern_context *context, const Game *game, CueKind kind, float x);

/* Registers the resources of orders, and adds the system that carries them out, if the game has several players. It
 * must be the first one of the schedule. */
void orders_add(Game *game);

/* Makes blueprints of towers and enemies, below "towers" and "enemies", and prefabs of them. */
void blueprints_make(Game *game);

/* Creates the fireflies of the level. */
void fireflies_make(Game *game);

/* Captures prefabs of blueprints that were loaded. Changes the world. Returns false, with the fault in message, if a
 * blueprint is missing or lacks what the game sets in its instances. */
bool blueprints_capture(Game *game, char *message, size_t message_bytes);

#endif
