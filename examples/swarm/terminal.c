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

enum { NO_COLOUR = 256 };

static bool entered;
static uint32_t upper_now = NO_COLOUR, lower_now = NO_COLOUR;

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

/* The terminal keeps a colour until another one is set. Repeating colours would more than double the
 * output. */
void terminal_put_pixels(uint32_t upper_colour, uint32_t lower_colour)
{
    if (upper_colour != upper_now) printf("\033[38;5;%um", upper_colour);
    if (lower_colour != lower_now) printf("\033[48;5;%um", lower_colour);
    upper_now = upper_colour;
    lower_now = lower_colour;
    fputs("\xE2\x96\x80", stdout); /* upper half block */
}

void terminal_reset_colours(void)
{
    upper_now = lower_now = NO_COLOUR;
    fputs("\033[0m", stdout);
}
