/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "display.h"

#include "check.h"
#include "terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    STATUS_LINES = 4,
    BAR_WIDTH = 20,
    RECENT_FRAMES = 30, /* frames of the mean frame time */
    PLAIN_LINES = 10,   /* lines in a whole run */
    PLAIN_FRAMES = 300, /* frames between two lines if the number of frames is unknown */
    LINE_BYTES = 512,
    TIMES_TEXT = 42, /* columns beside the frame times */
    MOST_TIMES = 120,
};

static const uint64_t refresh_ns = 1000000000u / 15;

/* ---------------------------------------------------------------------------------- status, live */

static double recent_frame_ms(const Record *record)
{
    uint32_t count = record->frame_count < RECENT_FRAMES ? record->frame_count : RECENT_FRAMES;
    uint64_t sum_ns = 0;
    for (uint32_t i = 0; i < count; i++)
        sum_ns += record->frame_ns[record->frame_count - 1 - i];
    return (double)sum_ns / 1e6 / count;
}

static void format_progress(const Display *display, const Record *record, char *text, size_t bytes)
{
    uint32_t done = record->frame_count, all = display->frame_count;
    if (all == 0) {
        snprintf(text, bytes, " frame %" PRIu32, done);
        return;
    }
    char bar[BAR_WIDTH + 1] = {0};
    for (uint32_t i = 0; i < BAR_WIDTH; i++)
        bar[i] = (uint64_t)i * all < (uint64_t)done * BAR_WIDTH ? '#' : '-';
    double left_seconds = (double)(clock_ns() - display->start_ns) / 1e9 / done * (all - done);
    snprintf(text, bytes, " frame %" PRIu32 " of %" PRIu32 "  [%s] %3.0f %%  ETA %.0f s", done, all, bar,
             100.0 * done / all, left_seconds);
}

/* Prints a line, cut off at the width of the terminal. */
static void draw_line(uint32_t line, uint32_t columns, const char *text)
{
    terminal_go_to(line);
    printf("%.*s\033[K", (int)columns, text);
}

/* Draws the last frames as columns, the longest of them as high as the line. */
static void draw_frame_times(const Record *record, uint32_t line, uint32_t columns)
{
    static const char *const heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    uint32_t shown = columns > TIMES_TEXT ? columns - TIMES_TEXT : 0;
    if (shown > MOST_TIMES) shown = MOST_TIMES;
    if (shown > record->frame_count) shown = record->frame_count;
    const uint64_t *const times = record->frame_ns + record->frame_count - shown;
    uint64_t longest = 1;
    for (uint32_t i = 0; i < shown; i++)
        if (times[i] > longest) longest = times[i];
    terminal_go_to(line);
    printf(" %6.1f ms per frame ", recent_frame_ms(record));
    for (uint32_t i = 0; i < shown; i++)
        fputs(heights[(times[i] * 8 - 1) / longest % 8], stdout);
    printf(" longest %.1f ms\033[K", (double)longest / 1e6);
}

static void draw_status(const Display *display, Simulation *simulation, const Record *record,
                        TerminalSize size)
{
    const Census *census = simulation_census(simulation);
    char text[LINE_BYTES];
    terminal_go_to(size.lines - 4);
    map_draw_legend(&display->map, size.columns);
    draw_frame_times(record, size.lines - 3, size.columns);
    format_progress(display, record, text, sizeof text);
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
        map_draw(&display->map, simulation, size.columns, size.lines - STATUS_LINES);
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

void display_start(Display *display, const Options *options, const Simulation *simulation,
                   uint32_t thread_count)
{
    *display = (Display){
        .is_live = !options->plain && terminal_is_available(),
        .frame_count = options->frame_count,
        .thread_count = thread_count,
        .start_ns = clock_ns(),
    };
    if (!display->is_live) return;
    map_create(&display->map, simulation);
    terminal_enter();
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
    if (!display->is_live) return;
    terminal_leave();
    map_destroy(&display->map);
}
