/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Drift, the game of the tutorial: a ship in a field of rocks. Chapters 5 to 8 build on it. */
#ifndef DRIFT_GAME_H
#define DRIFT_GAME_H

#include <quern/kit/grid.h>
#include <quern/quern.h>

enum { WIDTH = 48, HEIGHT = 12 };

typedef struct Position {
    float x, y;
} Position;

typedef struct Velocity {
    float x, y; /* cells per second */
} Velocity;

typedef struct Offset {
    float x, y; /* from the parent */
} Offset;

typedef struct Glyph {
    int32_t symbol;
} Glyph;

typedef struct Lifetime {
    float seconds;
} Lifetime;

typedef struct Health {
    int32_t points;
} Health;

typedef struct Gun {
    float wait_seconds; /* until the next shot */
} Gun;

/* Resources: what the player presses, and the score. */
typedef struct Keys {
    int32_t left, right, up, down, fire;
} Keys;

typedef struct Score {
    int32_t rocks;
} Score;

/* An event: a rock has broken. */
typedef struct Broken {
    quern_entity rock;
} Broken;

typedef struct Game {
    quern_world *world;
    quern_schedule *schedule;
    quern_query *glyphs, *rocks;
    quern_grid *grid; /* the rocks by their position */
    quern_component health;
    quern_resource keys, score, grid_resource;
    quern_event broken;
} Game;

/* Creates world and schedule without entities. shuffle_seed: 0, or a seed for random orders of work. */
void game_open(Game *game, uint64_t shuffle_seed);

/* Creates a ship and rocks. */
void game_populate(Game *game, int rock_count);

void game_close(Game *game);

/* The keys that the next frame reads. */
Keys *game_keys(const Game *game);

int game_score(const Game *game);
int game_rock_count(const Game *game);

/* Whether the ship is alive. */
bool game_is_on(const Game *game);

/* Fills lines of text with the field; each ends with a zero. */
void game_draw(const Game *game, char field[HEIGHT][WIDTH + 1]);

/* Prints the field and the score. */
void game_print(const Game *game);

#endif
