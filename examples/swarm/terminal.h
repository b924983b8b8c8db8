/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#ifndef SWARM_TERMINAL_H
#define SWARM_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* Standard output as a screen, driven by ANSI escape codes. */

typedef struct TerminalSize {
    uint32_t columns, lines;
} TerminalSize;

/* Whether standard output is a terminal that understands the codes. */
bool terminal_is_available(void);

/* Switches to an empty screen of its own without a cursor. However the program exits, the user's own
 * screen and cursor come back. */
void terminal_enter(void);
void terminal_leave(void);

/* As it is now: the user may change it at any time. */
TerminalSize terminal_size(void);

/* line from 0. */
void terminal_go_to(uint32_t line);

/* One character cell that shows two pixels, in colours 0 to 255. */
void terminal_put_pixels(uint32_t upper_colour, uint32_t lower_colour);
void terminal_reset_colours(void);

#endif
