/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "display.h"

#include "check.h"
#include "terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    STATUS_LINES = 2,
    BAR_WIDTH = 20,
    RECENT_FRAMES = 30, /* frames of the mean frame time */
    PLAIN_LINES = 10,   /* lines in a whole run */
    PLAIN_FRAMES = 300, /* frames between two lines if the number of frames is unknown */
    LINE_BYTES = 512,
};

static const uint64_t refresh_ns = 1000000000u / 15;

/* ---------------------------------------------------------------------------------------- the map */

typedef struct Map {
    uint32_t width, height; /* size in pixels; a character cell shows two pixels, one above the other */
    double prey_mean, hunter_mean;
} Map;

static void reserve_pixels(Display *display, size_t count)
{
    if (count <= display->pixel_capacity) return;
    free(display->prey_pixels);
    free(display->hunter_pixels);
    display->prey_pixels = check_memory(malloc(count * sizeof *display->prey_pixels));
    display->hunter_pixels = check_memory(malloc(count * sizeof *display->hunter_pixels));
    display->pixel_capacity = count;
}

static size_t pixel_at(const Map *map, const quern_grid_cells *cells, const float *position)
{
    float x = position[0] / (float)cells->counts[0] * (float)map->width;
    float y = position[1] / (float)cells->counts[1] * (float)map->height;
    uint32_t column = (uint32_t)x, row = (uint32_t)y;
    if (column >= map->width) column = map->width - 1;
    if (row >= map->height) row = map->height - 1;
    return (size_t)row * map->width + column;
}

static void count_pixels(Display *display, const Map *map, const quern_grid_cells *cells)
{
    size_t count = (size_t)map->width * map->height;
    for (size_t i = 0; i < count; i++)
        display->prey_pixels[i] = display->hunter_pixels[i] = 0.0f;
    for (uint32_t i = 0; i < cells->starts[cells->cell_count]; i++) {
        const quern_grid_item *agent = &cells->items[i];
        float *pixels = agent->marks & NEIGHBOUR_HUNTER ? display->hunter_pixels : display->prey_pixels;
        pixels[pixel_at(map, cells, agent->position)] += 1.0f;
    }
}

/* Blurs a row or column: each pixel keeps half and gets a quarter of each adjacent pixel. The first and
 * the last pixel count themselves as missing neighbour. */
static void blur_line(float *pixels, uint32_t count, size_t stride)
{
    float before = pixels[0];
    for (uint32_t i = 0; i < count; i++) {
        float *pixel = &pixels[i * stride];
        float here = *pixel, after = i + 1 < count ? pixel[stride] : here;
        *pixel = 0.25f * before + 0.5f * here + 0.25f * after;
        before = here;
    }
}

/* Blurs the map to remove the noise of small numbers, so that flocks are visible. */
static void blur(float *pixels, const Map *map)
{
    for (uint32_t row = 0; row < map->height; row++)
        blur_line(pixels + (size_t)row * map->width, map->width, 1);
    for (uint32_t column = 0; column < map->width; column++)
        blur_line(pixels + column, map->height, map->width);
}

/* Returns a brightness of 0 to 5; 0 up to `floor` times the average. */
static uint32_t level(float density, double mean, double floor)
{
    double scaled = 4.0 * ((double)density / (mean + 0.001) - floor);
    return scaled < 0.0 ? 0 : scaled > 4.5 ? 5 : (uint32_t)(scaled + 0.5);
}

/* Returns a colour of the 6 by 6 by 6 colour cube of terminals: prey are green, hunters red. */
static uint32_t colour_of(const Display *display, const Map *map, size_t pixel)
{
    uint32_t red = level(display->hunter_pixels[pixel], map->hunter_mean, 1.0);
    uint32_t green = level(display->prey_pixels[pixel], map->prey_mean, 0.5);
    return 16 + 36 * red + 6 * green;
}

static void draw_map(Display *display, Simulation *simulation, TerminalSize size)
{
    const quern_grid_cells *cells = quern_grid_get_cells(simulation->grid);
    const Census *census = simulation_census(simulation);
    Map map = {.width = size.columns, .height = 2 * (size.lines - STATUS_LINES)};
    double pixel_count = (double)map.width * map.height;
    map.prey_mean = (double)census->prey_count / pixel_count;
    map.hunter_mean = (double)census->hunter_count / pixel_count;
    reserve_pixels(display, (size_t)map.width * map.height);
    count_pixels(display, &map, cells);
    blur(display->prey_pixels, &map);
    blur(display->hunter_pixels, &map);
    for (uint32_t row = 0; row < map.height; row += 2) {
        terminal_go_to(row / 2);
        for (uint32_t column = 0; column < map.width; column++) {
            size_t pixel = (size_t)row * map.width + column;
            terminal_put_pixels(colour_of(display, &map, pixel),
                                colour_of(display, &map, pixel + map.width));
        }
    }
    terminal_reset_colours();
}

/* ---------------------------------------------------------------------------------- status, live */

static double recent_frame_ms(const Record *record)
{
    uint32_t count = record->frame_count < RECENT_FRAMES ? record->frame_count : RECENT_FRAMES;
    uint64_t sum_ns = 0;
    for (uint32_t i = 0; i < count; i++)
        sum_ns += record->frame_ns[record->frame_count - 1 - i];
    return (double)sum_ns / 1e6 / count;
}

static int format_progress(const Display *display, const Record *record, char *text, size_t bytes)
{
    uint32_t done = record->frame_count, all = display->frame_count;
    if (all == 0) return snprintf(text, bytes, " frame %" PRIu32, done);
    char bar[BAR_WIDTH + 1] = {0};
    for (uint32_t i = 0; i < BAR_WIDTH; i++)
        bar[i] = (uint64_t)i * all < (uint64_t)done * BAR_WIDTH ? '#' : '-';
    double left_seconds = (double)(clock_ns() - display->start_ns) / 1e9 / done * (all - done);
    return snprintf(text, bytes, " frame %" PRIu32 " of %" PRIu32 "  [%s] %3.0f %%  ETA %.0f s", done, all,
                    bar, 100.0 * done / all, left_seconds);
}

/* Prints a line, cut off at the width of the terminal. */
static void draw_line(uint32_t line, uint32_t columns, const char *text)
{
    terminal_go_to(line);
    printf("%.*s\033[K", (int)columns, text);
}

static void draw_status(const Display *display, Simulation *simulation, const Record *record,
                        TerminalSize size)
{
    const Census *census = simulation_census(simulation);
    char text[LINE_BYTES];
    int used = format_progress(display, record, text, sizeof text);
    snprintf(text + used, sizeof text - (size_t)used, "  %.1f ms per frame", recent_frame_ms(record));
    draw_line(size.lines - 2, size.columns, text);
    snprintf(text, sizeof text,
             " %" PRIu64 " prey  %" PRIu64 " hunters  %" PRIu64 " born  %" PRIu64 " died  %" PRIu32
             " threads  Ctrl-C ends",
             census->prey_count, census->hunter_count, record->created_count, record->destroyed_count,
             display->thread_count);
    draw_line(size.lines - 1, size.columns, text);
}

static void update_live(Display *display, Simulation *simulation, const Record *record)
{
    uint64_t now_ns = clock_ns();
    if (now_ns - display->drawn_ns < refresh_ns) return;
    TerminalSize size = terminal_size();
    if (size.lines > STATUS_LINES) {
        draw_map(display, simulation, size);
        draw_status(display, simulation, record, size);
    }
    fflush(stdout);
    display->drawn_ns = now_ns;
}

/* ----------------------------------------------------------------------------------------- plain */

static bool is_plain_due(uint32_t done, uint32_t all)
{
    if (all == 0) return done % PLAIN_FRAMES == 0;
    uint64_t tenths = (uint64_t)done * PLAIN_LINES / all;
    return tenths != (uint64_t)(done - 1) * PLAIN_LINES / all;
}

static void update_plain(const Display *display, Simulation *simulation, const Record *record)
{
    if (!is_plain_due(record->frame_count, display->frame_count)) return;
    const Census *census = simulation_census(simulation);
    printf("frame %6" PRIu32 "  %7.2f ms  %" PRIu64 " prey  %" PRIu64 " hunters\n", record->frame_count,
           recent_frame_ms(record), census->prey_count, census->hunter_count);
    fflush(stdout);
}

/* ------------------------------------------------------------------------------------------- both */

void display_start(Display *display, const Options *options, uint32_t thread_count)
{
    *display = (Display){
        .is_live = !options->plain && terminal_is_available(),
        .frame_count = options->frame_count,
        .thread_count = thread_count,
        .start_ns = clock_ns(),
    };
    if (display->is_live) terminal_enter();
}

void display_update(Display *display, Simulation *simulation, const Record *record)
{
    if (display->is_live)
        update_live(display, simulation, record);
    else
        update_plain(display, simulation, record);
}

void display_stop(Display *display)
{
    if (display->is_live) terminal_leave();
    free(display->prey_pixels);
    free(display->hunter_pixels);
}
