/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_GAME_H
#define KEEP_GAME_H

/* The game without a window: a world, a schedule that makes one step of it, and what players may do. */

#include "components.h"
#include "level.h"

#include <quern/kit/grid.h>

enum { STEPS_PER_SECOND = 60 };

/* The last one is for those who show the game: nothing of it happens there. */
enum { PHASE_LEAD, PHASE_MOVE, PHASE_AIM, PHASE_FIRE, PHASE_TELL, PHASE_HEAR };

typedef struct Game {
    quern_world *world;
    quern_schedule *schedule;
    quern_transform *transform;
    quern_grid *grid;   /* of enemies */
    quern_query *bases; /* of towers, for whoever asks between steps */
    quern_prefab towers[TOWER_KINDS];
    quern_prefab enemies[ENEMY_KINDS];
    Types types;
    Level level;
    Road *roads; /* level.road_count of them */
} Game;

/* Begins a level. Returns false, and says in message what is wrong with it; then there is nothing to
 * destroy. The game must stay where it is: systems have its address. */
bool game_create(Game *game, const Level *level, char *message, size_t message_bytes);

void game_destroy(Game *game);

/* One step of 1 / STEPS_PER_SECOND, on the threads of jobs (NULL: only the caller). */
void game_step(Game *game, quern_jobs *jobs);

/* How it stands, to be read. */
const Keep *game_state(Game *game);

/* ------------------------------------------------------------------------------------ what players do */

typedef enum ActionKind { ACTION_WAVE, ACTION_BUILD, ACTION_SELL } ActionKind;

typedef struct Action {
    ActionKind kind;
    TowerKind tower; /* to build */
    Point at;        /* to build or sell */
} Action;

/* The middle of the building place that a point is in. */
Point game_plot(Point point);

/* Says why no such tower can be built there now; NULL: it can. */
const char *game_why_not(Game *game, TowerKind tower, Point at);

/* The tower that stands there, or null. */
quern_entity game_tower_at(Game *game, Point at);

/* Does it, or says why not; NULL: done. Between steps. */
const char *game_act(Game *game, const Action *action);

#endif
