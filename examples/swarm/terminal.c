/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <sys/ioctl.h>
#include <unistd.h>
#endif

enum { NO_COLOUR = 1 << 24 };

static bool entered;
static uint32_t front_now = NO_COLOUR, back_now = NO_COLOUR;

#if defined(_WIN32)

/* Consoles of Windows 10 understand the same sequences, once a program asks for them. */
bool terminal_is_available(void)
{
    const HANDLE output = GetStdHandle(STD_OUTPUT_HANDLE);
    DWORD mode;
    return GetConsoleMode(output, &mode) &&
           SetConsoleMode(output, mode | 4 /* ENABLE_VIRTUAL_TERMINAL_PROCESSING */) &&
           SetConsoleOutputCP(CP_UTF8);
}

TerminalSize terminal_size(void)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (!GetConsoleScreenBufferInfo(GetStdHandle(STD_OUTPUT_HANDLE), &info))
        return (TerminalSize){.columns = 80, .lines = 24};
    return (TerminalSize){.columns = (uint32_t)(info.srWindow.Right - info.srWindow.Left + 1),
                          .lines = (uint32_t)(info.srWindow.Bottom - info.srWindow.Top + 1)};
}

#else

bool terminal_is_available(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) && kind != NULL && strcmp(kind, "dumb") != 0;
}

TerminalSize terminal_size(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return (TerminalSize){.columns = 80, .lines = 24};
    return (TerminalSize){.columns = size.ws_col, .lines = size.ws_row};
}

#endif

void terminal_leave(void)
{
    if (!entered) return;
    entered = false;
    fputs("\033[0m\033[?25h\033[?1049l", stdout);
    fflush(stdout);
}

void terminal_enter(void)
{
    static bool is_registered;
    if (!is_registered) atexit(terminal_leave);
    is_registered = true;
    entered = true;
    fputs("\033[?1049h\033[?25l\033[2J", stdout);
}

void terminal_go_to(uint32_t line)
{
    printf("\033[%u;1H", line + 1);
}

static TerminalColours find_colours(void)
{
    const char *none = getenv("NO_COLOR"), *more = getenv("COLORTERM"), *kind = getenv("TERM");
    if (none != NULL && none[0] != '\0') return TERMINAL_NO_COLOURS;
    if (more != NULL && (strcmp(more, "truecolor") == 0 || strcmp(more, "24bit") == 0))
        return TERMINAL_FULL;
#if !defined(_WIN32)
    if (kind == NULL || strncmp(kind, "vt", 2) == 0 || strstr(kind, "mono") != NULL)
        return TERMINAL_NO_COLOURS;
#endif
    (void)kind;
    return TERMINAL_CUBE;
}

TerminalColours terminal_colours(void)
{
    static int found = -1;
    if (found < 0) found = (int)find_colours();
    return (TerminalColours)found;
}

static uint32_t step_of(uint8_t value)
{
    /* The steps of the cube are 0, 95, 135, 175, 215 and 255. */
    return value < 48 ? 0 : value < 115 ? 1 : (value - 35u) / 40;
}

static void set_colour(uint32_t *now, Colour colour, int code)
{
    const bool is_full = terminal_colours() == TERMINAL_FULL;
    if (terminal_colours() == TERMINAL_NO_COLOURS) return;
    const uint32_t wanted =
        is_full ? (uint32_t)colour.red << 16 | (uint32_t)colour.green << 8 | colour.blue
                : 16 + 36 * step_of(colour.red) + 6 * step_of(colour.green) + step_of(colour.blue);
    if (wanted == *now) return;
    *now = wanted;
    if (is_full)
        printf("\033[%d;2;%u;%u;%um", code, colour.red, colour.green, colour.blue);
    else
        printf("\033[%d;5;%um", code, wanted);
}

/* The terminal keeps a colour until another one is set. Repeating colours would more than double the
 * output. */
void terminal_put(const char *text, Colour front, Colour back)
{
    set_colour(&front_now, front, 38);
    set_colour(&back_now, back, 48);
    fputs(text, stdout);
}

void terminal_reset_colours(void)
{
    front_now = back_now = NO_COLOUR;
    fputs("\033[0m", stdout);
}
