/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "road.h"

#include <math.h>

enum { FINE = 64 }; /* samples between two points */

static const float step_length = 0.125f;

/* Returns a point of the Catmull-Rom curve between b and c; t from 0 to 1. */
static float curve(float a, float b, float c, float d, float t)
{
    return 0.5f * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t * t +
                   (3 * b - a - 3 * c + d) * t * t * t);
}

static Point between(const Point *points, uint32_t count, uint32_t i, float t)
{
    const Point a = points[i > 0 ? i - 1 : 0], b = points[i], c = points[i + 1];
    const Point d = points[i + 2 < count ? i + 2 : count - 1];
    return (Point){curve(a.x, b.x, c.x, d.x, t), curve(a.y, b.y, c.y, d.y, t)};
}

/* Adds steps from the last one towards a point, as long as there is room for a whole step. */
static void pave(Road *road, Point to)
{
    while (road->step_count < ROAD_STEPS_MAX) {
        const Point last = road->steps[road->step_count - 1].at;
        const float x = to.x - last.x, y = to.y - last.y, far = sqrtf(x * x + y * y);
        if (far < step_length) return;
        const Point ahead = {x / far, y / far};
        road->steps[road->step_count - 1].ahead = ahead;
        road->steps[road->step_count++] =
            (RoadStep){{last.x + ahead.x * step_length, last.y + ahead.y * step_length}, ahead};
    }
}

void road_make(Road *road, float width, const Point *points, uint32_t count)
{
    road->width = width;
    road->step_count = 1;
    road->steps[0] = (RoadStep){points[0], {1, 0}};
    for (uint32_t i = 0; i + 1 < count; i++)
        for (uint32_t fine = 1; fine <= FINE; fine++)
            pave(road, between(points, count, i, (float)fine / FINE));
    road->length = (float)(road->step_count - 1) * step_length;
}

RoadStep road_at(const Road *road, float along)
{
    const float far = fminf(fmaxf(along, 0), road->length) / step_length;
    const uint32_t i = (uint32_t)far, next = i + 1 < road->step_count ? i + 1 : i;
    const float part = far - (float)i;
    const RoadStep a = road->steps[i], b = road->steps[next];
    return (RoadStep){{a.at.x + (b.at.x - a.at.x) * part, a.at.y + (b.at.y - a.at.y) * part}, a.ahead};
}

float road_distance(const Road *road, Point point)
{
    float least = INFINITY;
    for (uint32_t i = 0; i < road->step_count; i++) {
        const float x = road->steps[i].at.x - point.x, y = road->steps[i].at.y - point.y;
        least = fminf(least, x * x + y * y);
    }
    return sqrtf(least);
}
