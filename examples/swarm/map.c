/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "map.h"

#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DOT_COLUMNS = 2, /* dots of a character */
    DOT_LINES = 4,
    REACH_COLUMNS = 2, /* characters around one that decide whether it belongs to a flock */
    REACH_LINES = 1,
    FEW = 6, /* fewer prey than these are no flock */
    SHADES = 4,
    DIRECTIONS = 8,
    ARROW_PREY = 2, /* prey of a character that may be an arrow, at least */
    ARROW_DISTANCE = 5
};

static const float agents_per_dot = 0.12f;
/* How well directions agree, from 0 to 1, at the beginning of each shade but the first. */
static const float orders[SHADES - 1] = {0.5f, 0.7f, 0.85f};

/* Counterclockwise, from the right. */
static const char *const arrows[DIRECTIONS] = {"→", "↗", "↑", "↖", "←", "↙", "↓", "↘"};

/* From loners to flocks: steps of lightness of the colour map "cividis" (Nunez, Anderton, Renslow 2018). */
static const Colour shades[SHADES] = {{66, 92, 140}, {124, 123, 120}, {187, 175, 113}, {254, 232, 56}};
static const Colour hunter_colour = {255, 112, 67}, arrow_colour = {255, 255, 255}, background = {0, 0, 0};

void map_create(Map *map, const Simulation *simulation)
{
    const Types *types = &simulation->types;
    *map = (Map){.agents = NULL};
    const quern_query_def def = {.name = "map",
                                 .terms = {quern_term_read(types->position),
                                           quern_term_read(types->velocity),
                                           quern_term_optional(types->hunter, QUERN_ACCESS_NONE)}};
    check(quern_query_create(simulation->world, &def, &map->agents));
}

void map_destroy(Map *map)
{
    quern_query_destroy(map->agents);
    free(map->cells);
}

/* ------------------------------------------------------------------------------------------- counting */

static void resize(Map *map, uint32_t columns, uint32_t lines)
{
    const size_t count = (size_t)columns * lines;
    map->columns = columns;
    map->lines = lines;
    if (count > map->capacity) {
        free(map->cells);
        map->cells = check_memory(malloc(count * sizeof *map->cells));
        map->capacity = count;
    }
    memset(map->cells, 0, count * sizeof *map->cells);
}

/* Chooses the part of the world that is drawn: the middle, as much as fits with few agents per dot. */
static void choose_window(Map *map, const quern_grid_cells *world, uint64_t agent_count)
{
    const float width = (float)world->counts[0], height = (float)world->counts[1];
    const float columns = (float)(map->columns * DOT_COLUMNS), lines = (float)(map->lines * DOT_LINES);
    float size = sqrtf(agents_per_dot * width * height / (float)(agent_count > 0 ? agent_count : 1));
    if (size * columns > width) size = width / columns;
    if (size * lines > height) size = height / lines;
    map->dot_size = size;
    map->left = (width - size * columns) / 2;
    map->top = (height - size * lines) / 2;
    map->part = size * size * columns * lines / (width * height);
}

/* The bits of the eight dots of a character of Unicode's block "Braille Patterns", by line and column. */
static const uint8_t dot_bits[DOT_LINES][DOT_COLUMNS] = {
    {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

static void count_view(Map *map, const quern_view *view)
{
    const Position *positions = QUERN_COLUMN(view, 0, const Position);
    const Velocity *velocities = QUERN_COLUMN(view, 1, const Velocity);
    const bool are_hunters = quern_view_has(view, 2);
    const uint32_t agent_count = view->count;
    for (uint32_t i = 0; i < agent_count; i++) {
        const float x = (positions[i].x - map->left) / map->dot_size,
                    y = (positions[i].y - map->top) / map->dot_size;
        if (x < 0 || y < 0 || x >= (float)(map->columns * DOT_COLUMNS) ||
            y >= (float)(map->lines * DOT_LINES))
            continue;
        const uint32_t column = (uint32_t)x, line = (uint32_t)y;
        MapCell *cell = &map->cells[(size_t)(line / DOT_LINES) * map->columns + column / DOT_COLUMNS];
        cell->dots |= dot_bits[line % DOT_LINES][column % DOT_COLUMNS];
        cell->hunters += are_hunters;
        const float speed = hypotf(velocities[i].x, velocities[i].y);
        if (are_hunters || speed == 0) continue;
        cell->prey++;
        cell->heading_x += velocities[i].x / speed;
        cell->heading_y += velocities[i].y / speed;
    }
}

/* -------------------------------------------------------------------------------------------- drawing */

/* The prey in the characters around one. */
typedef struct Flock {
    uint32_t shade; /* from loners, 0, to those of one direction */
    uint32_t direction;
} Flock;

static Flock flock_at(const Map *map, uint32_t column, uint32_t line)
{
    float x = 0, y = 0;
    uint32_t count = 0, shade = 0;
    const uint32_t first_line = line > REACH_LINES ? line - REACH_LINES : 0,
                   first_column = column > REACH_COLUMNS ? column - REACH_COLUMNS : 0;
    for (uint32_t l = first_line; l <= line + REACH_LINES && l < map->lines; l++)
        for (uint32_t c = first_column; c <= column + REACH_COLUMNS && c < map->columns; c++) {
            const MapCell *cell = &map->cells[(size_t)l * map->columns + c];
            x += cell->heading_x;
            y += cell->heading_y;
            count += cell->prey;
        }
    if (count < FEW) return (Flock){.shade = 0};
    while (shade < SHADES - 1 && hypotf(x, y) >= orders[shade] * (float)count)
        shade++;
    const float turns = atan2f(-y, x) / 6.2831853f; /* lines are numbered downwards */
    return (Flock){.shade = shade, .direction = (uint32_t)lrintf((turns + 1) * DIRECTIONS) % DIRECTIONS};
}

static void draw_cell(const Map *map, uint32_t column, uint32_t line)
{
    const MapCell *cell = &map->cells[(size_t)line * map->columns + column];
    /* U+2800 and the dots, as UTF-8 */
    const char dots[] = {(char)0xE2, (char)(0xA0 | cell->dots >> 6), (char)(0x80 | (cell->dots & 0x3F)), 0};
    if (cell->hunters > 0) {
        terminal_put("◆", hunter_colour, background);
        return;
    }
    if (cell->dots == 0) {
        terminal_put(" ", background, background);
        return;
    }
    const Flock flock = flock_at(map, column, line);
    const bool is_arrow =
        flock.shade == SHADES - 1 && cell->prey >= ARROW_PREY && (column + 2 * line) % ARROW_DISTANCE == 0;
    if (is_arrow)
        terminal_put(arrows[flock.direction], arrow_colour, background);
    else
        terminal_put(dots, shades[flock.shade], background);
}

void map_draw(Map *map, Simulation *simulation, uint32_t columns, uint32_t lines)
{
    const Census *census = simulation_census(simulation);
    resize(map, columns, lines);
    choose_window(map, quern_grid_get_cells(simulation->grid), census->prey_count + census->hunter_count);
    quern_query_iterator it = quern_query_iterate(map->agents);
    while (quern_query_next(&it))
        count_view(map, &it.view);
    check(it.result);
    for (uint32_t line = 0; line < lines; line++) {
        terminal_go_to(line);
        for (uint32_t column = 0; column < columns; column++)
            draw_cell(map, column, line);
        terminal_reset_colours();
    }
}

void map_draw_legend(const Map *map, uint32_t columns)
{
    const double percent = 100 * (double)map->part;
    if (columns < 76) return;
    if (terminal_colours() == TERMINAL_NO_COLOURS) {
        printf(" ⠿ prey   → a flock, where it flies   ◆ hunter   %.*f %% of the world\033[K", percent < 10,
               percent);
        return;
    }
    terminal_put(" ⠿", shades[0], background);
    terminal_put(" prey alone  ", arrow_colour, background);
    terminal_put("⠿", shades[SHADES - 1], background);
    terminal_put(" in a flock  → where it flies  ", arrow_colour, background);
    terminal_put("◆", hunter_colour, background);
    terminal_put(" hunter", arrow_colour, background);
    terminal_reset_colours();
    printf("  %.*f %% of the world\033[K", percent < 10, percent);
}
