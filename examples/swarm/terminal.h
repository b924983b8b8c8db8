/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_TERMINAL_H
#define SWARM_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* Standard output as a screen, by ANSI escape codes. */

typedef struct TerminalSize {
    uint32_t columns, lines;
} TerminalSize;

/* Returns whether standard output is a terminal that understands the codes. */
bool terminal_is_available(void);

/* Switches to an empty screen without a cursor. When the program exits in any way, the user's screen and
 * cursor are restored. */
void terminal_enter(void);
void terminal_leave(void);

/* Returns the current size, which the user may change at any time. */
TerminalSize terminal_size(void);

/* Moves to a line, from 0. */
void terminal_go_to(uint32_t line);

typedef struct Colour {
    uint8_t red, green, blue;
} Colour;

typedef enum TerminalColours {
    TERMINAL_NO_COLOURS,
    TERMINAL_CUBE, /* 6 steps of red, green and blue each */
    TERMINAL_FULL  /* 24 bits */
} TerminalColours;

/* Returns what the environment says about colours: none if NO_COLOR is set or TERM names a terminal without them, all if
 * COLORTERM says so. */
TerminalColours terminal_colours(void);

/* Prints a text, UTF-8, in the nearest colours that the terminal has. */
void terminal_put(const char *text, Colour front, Colour back);
void terminal_reset_colours(void);

#endif
