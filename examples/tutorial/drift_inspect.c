/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 7 of the tutorial: Drift plays by itself, and a page in the browser shows it. `drift_inspect N` ends after N
 * frames. */
#include "game.h"

#include <quern/inspect.h>
#include <stdio.h>
#include <stdlib.h>

enum { FRAMES_PER_SECOND = 30, KEPT_FRAMES = 300 };

/* Runs frames until the program is ended, or has run as many as asked for. */
static void play(Game *game, quern_history *history, quern_inspector *inspector, uint64_t frame_count)
{
    for (uint64_t frame = 0; frame_count == 0 || frame < frame_count;) {
        quern_inspector_wait(inspector, &frame, 1000000000 / FRAMES_PER_SECOND);
        if (!quern_inspector_update(inspector, &frame)) continue; /* paused in the browser */
        *game_keys(game) = (Keys){.left = frame / 60 % 2 == 0, .right = frame / 60 % 2 == 1, .fire = 1};
        QUERN_MUST(quern_history_save(history, frame, NULL));
        QUERN_MUST(quern_inspector_run(inspector, 1.0 / FRAMES_PER_SECOND));
        frame++;
    }
}

int main(int argc, char **argv)
{
    Game game;
    quern_history *history;
    quern_inspector *inspector;
    game_open(&game, 0);
    game_populate(&game, 30);
    const quern_history_def kept = {.schedules = {game.schedule}, .frame_count = KEPT_FRAMES};
    QUERN_MUST(quern_history_create(game.world, &kept, &history));
    const quern_inspector_def def = {
        .world = game.world, .schedule = game.schedule, .history = history, .title = "Drift"};
    QUERN_MUST(quern_inspector_create(&def, &inspector));
    QUERN_MUST(quern_inspector_serve(inspector, NULL));
    printf("open %s\n", quern_inspector_url(inspector));
    (void)fflush(stdout);
    play(&game, history, inspector, argc > 1 ? strtoull(argv[1], NULL, 10) : 0);
    quern_inspector_destroy(inspector);
    quern_history_destroy(history);
    game_close(&game);
}
