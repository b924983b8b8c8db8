/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 1 of the tutorial: rocks drift across a field. */
#include <quern/quern.h>

#include <stdio.h>
#include <string.h>

enum { WIDTH = 40, HEIGHT = 5 };

typedef struct Position {
    float x, y;
} Position;

typedef struct Velocity {
    float x, y; /* cells per second */
} Velocity;

typedef struct Glyph {
    int32_t symbol;
} Glyph;

QUERN_SYSTEM(move, (Position, position), (const Velocity, velocity))
{
    const float seconds = (float)quern_context_delta_seconds(context);
    QUERN_ROWS(i)
    {
        position[i].x += velocity[i].x * seconds;
        position[i].y += velocity[i].y * seconds;
    }
}

/* An entity that leaves the field at one side enters at the other. */
QUERN_SYSTEM(wrap, (Position, position))
{
    QUERN_ROWS(i)
    {
        if (position[i].x < 0) position[i].x += WIDTH;
        if (position[i].x >= WIDTH) position[i].x -= WIDTH;
        if (position[i].y < 0) position[i].y += HEIGHT;
        if (position[i].y >= HEIGHT) position[i].y -= HEIGHT;
    }
}

static void draw(quern_query *glyphs)
{
    char field[HEIGHT][WIDTH + 1];
    memset(field, '.', sizeof field);
    quern_query_iterator it = quern_query_iterate(glyphs);
    while (quern_query_next(&it)) {
        const Position *positions = QUERN_COLUMN(&it.view, 0, const Position);
        const Glyph *shapes = QUERN_COLUMN(&it.view, 1, const Glyph);
        const uint32_t count = it.view.count;
        for (uint32_t i = 0; i < count; i++)
            field[(int)positions[i].y][(int)positions[i].x] = (char)shapes[i].symbol;
    }
    for (int y = 0; y < HEIGHT; y++) {
        field[y][WIDTH] = '\0';
        puts(field[y]);
    }
}

int main(void)
{
    quern_world *world;
    quern_schedule *schedule;
    quern_query *glyphs;
    QUERN_MUST(quern_world_create(NULL, &world));
    QUERN_MUST(QUERN_REGISTER(world, Position, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Velocity, x, y));
    QUERN_MUST(QUERN_REGISTER(world, Glyph, symbol));
    for (int i = 0; i < 5; i++)
        QUERN_MUST(QUERN_CREATE(world, NULL, QUERN_VALUE(Position, 8.0f * (float)i, (float)i),
                                QUERN_VALUE(Velocity, (float)i - 1.5f, 0), QUERN_VALUE(Glyph, 'O')));
    QUERN_MUST(quern_schedule_create(world, NULL, &schedule));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, move));
    QUERN_MUST(QUERN_ADD_SYSTEM(schedule, wrap, .after = {"move"}));
    const quern_query_def shown = {
        .terms = {quern_term_read(QUERN_ID(world, Position)), quern_term_read(QUERN_ID(world, Glyph))}};
    QUERN_MUST(quern_query_create(world, &shown, &glyphs));
    draw(glyphs);
    for (int frame = 0; frame < 64; frame++)
        QUERN_MUST(quern_schedule_run(schedule, NULL, 1.0 / 16));
    puts("after four seconds:");
    draw(glyphs);
    quern_query_destroy(glyphs);
    quern_schedule_destroy(schedule);
    quern_world_destroy(world);
}
