/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_LEVEL_H
#define KEEP_LEVEL_H

/* The contents of a level file (JSON): roads, waves, and towers that exist from the start. Roads,
 * enemies and towers are named; the names are looked up in the world when the game begins (game.c). */

#include "road.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LEVEL_NAME_BYTES = 32,
    LEVEL_HINT_BYTES = 96,
    LEVEL_ROADS_MAX = 4,
    LEVEL_POINTS_MAX = 32,
    LEVEL_WAVES_MAX = 32,
    LEVEL_GROUPS_MAX = 8,
    LEVEL_TOWERS_MAX = 32
};

typedef struct LevelRoad {
    char name[LEVEL_NAME_BYTES];
    float width;
    uint32_t point_count;
    Point points[LEVEL_POINTS_MAX];
} LevelRoad;

/* Enemies of one kind that appear one after another. */
typedef struct LevelGroup {
    char enemy[LEVEL_NAME_BYTES], road[LEVEL_NAME_BYTES];
    uint32_t count;
    float after_seconds;        /* delay after the start of the wave */
    float every_seconds;        /* interval between two enemies */
    uint32_t kind, road_number; /* numbers for the names, found when the game begins */
} LevelGroup;

typedef struct LevelWave {
    uint32_t group_count;
    LevelGroup groups[LEVEL_GROUPS_MAX];
} LevelWave;

typedef struct LevelTower {
    char tower[LEVEL_NAME_BYTES];
    Point at;
} LevelTower;

typedef struct Level {
    uint64_t hash; /* of all other members, before names were looked up */
    char title[LEVEL_NAME_BYTES];
    float width, height;
    uint32_t gold, lives;
    uint32_t firefly_count;
    float rest_seconds; /* pause between waves */
    uint32_t road_count, wave_count, tower_count;
    LevelRoad roads[LEVEL_ROADS_MAX];
    LevelWave waves[LEVEL_WAVES_MAX];
    LevelTower towers[LEVEL_TOWERS_MAX];
    uint32_t hint_count; /* 0 in levels without hints */
    char hints[LEVEL_WAVES_MAX + 1]
              [LEVEL_HINT_BYTES]; /* texts for the player: before the first wave, during it, ... */
} Level;

/* Reads a level. Returns false on failure; message then has the file, the position and the fault. */
bool level_load(Level *level, const char *path, char *message, size_t message_bytes);

#endif
