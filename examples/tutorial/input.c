/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 5 of the tutorial: keys reach the systems, and the simulation has a fixed step. */
#include "game.h"

#include <stdio.h>

/* Stands for a player: fires all the time, and moves left for half a second, then right. */
static Keys press(int frame)
{
    return (Keys){.left = frame < 10, .right = frame >= 20 && frame < 40, .fire = 1};
}

int main(void)
{
    Game game;
    game_open(&game, 0);
    game_populate(&game, 30);
    game_print(&game);
    for (int frame = 0; frame < 60; frame++) {
        *game_keys(&game) = press(frame); /* between frames */
        QUERN_MUST(quern_schedule_run(game.schedule, NULL, 1.0 / 20));
    }
    puts("after three seconds:");
    game_print(&game);
    game_close(&game);
}
