/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_GAME_H
#define KEEP_GAME_H

/* The game without a window: a world, a schedule that runs one step, and the actions of players. */

#include "components.h"
#include "level.h"

#include <quern/kit/grid.h>

enum { STEPS_PER_SECOND = 60 };

/* The phases of a step. PHASE_SHOW has no systems of the game: it is for systems that show it, such as
 * sounds. */
enum { PHASE_WAVES, PHASE_MOVE, PHASE_AIM, PHASE_FIRE, PHASE_EVENTS, PHASE_SHOW };

typedef struct Game {
    quern_world *world;
    quern_schedule *schedule;
    quern_transform *transform;
    quern_grid *grid;   /* grid of enemies */
    quern_query *bases; /* query of tower bases, for code between steps */
    quern_prefab towers[TOWER_KINDS];
    quern_prefab enemies[ENEMY_KINDS];
    Types types;
    uint32_t
        player_count; /* players that give orders over the network; 0: the game is played on one machine */
    /* A trace that records the steps; NULL: none. The caller sets it before the game is created. */
    struct quern_trace *trace;
    Level level;
    Road *roads; /* an array of level.road_count roads */
} Game;

/* Begins a level. Returns false on failure, with the fault in message; the game must not be destroyed
 * then. The game must be zeroed except for its trace, and must not move, because systems have its address as user
 * data. */
bool game_create(Game *game, const Level *level, char *message, size_t message_bytes);

/* Begins a level that several players play over the network (player_count: 2 to PLAYERS_MAX), with a resource of orders
 * and a system that carries them out. */
bool game_create_shared(Game *game, const Level *level, uint32_t player_count, char *message,
                        size_t message_bytes);

/* Creates the types and systems of a game, without entities: for a saved game, and for a machine that gets the world from
 * another one. Call game_finish_loading when the world was loaded. It changes the world; restore the world after it. It
 * returns false if the world lacks what the level needs, with the fault in message. */
void game_create_to_load(Game *game, const Level *level, uint32_t player_count);
bool game_finish_loading(Game *game, char *message, size_t message_bytes);

void game_destroy(Game *game);

/* Runs a step of 1 / STEPS_PER_SECOND, on the threads of jobs (NULL: only the caller). */
void game_step(Game *game, quern_jobs *jobs);

/* Returns the state of the game for reading. */
const Keep *game_state(Game *game);

/* --------------------------------------------------------------------------------- actions of players */

typedef enum ActionKind { ACTION_WAVE, ACTION_BUILD, ACTION_SELL } ActionKind;

typedef struct Action {
    ActionKind kind;
    TowerKind tower; /* tower to build */
    Point at;        /* position of the tower to build or sell */
} Action;

/* Returns an action as an order, which is the player's next one after `last`. */
Order game_order(const Action *action, Order last);

/* Returns the centre of the building plot that contains a point. */
Point game_plot(Point point);

/* Returns why such a tower cannot be built at this point now; NULL if it can. */
const char *game_build_error(Game *game, TowerKind tower, Point at);

/* Returns the tower at a point, or null. */
quern_entity game_tower_at(Game *game, Point at);

/* Performs an action. Returns why it cannot be done; NULL if it was done. Call it between steps. */
const char *game_act(Game *game, const Action *action);

#endif
