/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_MAP_H
#define SWARM_MAP_H

/* A part of the world as a picture of characters: a dot for each place with agents, bright where prey fly as a flock, arrows
 * that show where to, and diamonds for hunters. Shades differ in lightness, and hunters in shape: the picture needs no reader
 * to tell red from green, and terminals without colours show most of it. */

#include "simulation.h"
#include "terminal.h"

/* A character of the picture. */
typedef struct MapCell {
    uint8_t dots; /* places in which agents are: bits of a braille character */
    uint32_t prey, hunters;
    float heading_x, heading_y; /* sum of the directions of prey, each of length 1 */
} MapCell;

typedef struct Map {
    quern_query *agents;
    MapCell *cells;
    size_t capacity;
    uint32_t columns, lines;
    float left, top, dot_size; /* of the window, in the world */
    float part;                /* of the world that the window shows */
} Map;

void map_create(Map *map, const Simulation *simulation);
void map_destroy(Map *map);

/* Draws a part of the world into the first `lines` lines. */
void map_draw(Map *map, Simulation *simulation, uint32_t columns, uint32_t lines);

/* Prints what the picture shows, in one line. */
void map_draw_legend(const Map *map, uint32_t columns);

#endif
