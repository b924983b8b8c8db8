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

/* Prints a character cell with two pixels, in colours 0 to 255. */
void terminal_put_pixels(uint32_t upper_colour, uint32_t lower_colour);
void terminal_reset_colours(void);

#endif
