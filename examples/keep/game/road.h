/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef KEEP_ROAD_H
#define KEEP_ROAD_H

/* A road: a smooth curve through the points of the level, as a table in steps of equal length. */

#include <stdint.h>

enum { ROAD_STEPS_MAX = 2048 };

typedef struct Point {
    float x, y;
} Point;

/* A point of a road, and the direction there, of length 1. */
typedef struct RoadStep {
    Point at, ahead;
} RoadStep;

typedef struct Road {
    float width;
    float length;
    uint32_t step_count;
    RoadStep steps[ROAD_STEPS_MAX];
} Road;

/* Computes a road through `count` points, at least two. */
void road_make(Road *road, float width, const Point *points, uint32_t count);

/* Returns the step at a distance along the road, from 0 to its length. */
RoadStep road_at(const Road *road, float along);

/* Returns the distance of a point from the middle of the road. */
float road_distance(const Road *road, Point point);

#endif
