/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 8 of the tutorial: a game that is saved, loaded, and rewound. */
#include "game.h"

#include <stdio.h>

static void play(Game *game, quern_history *history, uint64_t from, uint64_t to)
{
    for (uint64_t frame = from; frame < to; frame++) {
        if (history != NULL) QUERN_MUST(quern_history_save(history, frame, NULL));
        *game_keys(game) = (Keys){.fire = 1, .right = frame < 8};
        QUERN_MUST(quern_schedule_run(game->schedule, NULL, 1.0 / 16));
    }
}

int main(void)
{
    Game game, loaded;
    quern_history *history;
    quern_byte_buffer archive = {0};
    game_open(&game, 0);
    game_populate(&game, 30);
    const quern_history_def def = {.schedules = {game.schedule}, .frame_count = 64};
    QUERN_MUST(quern_history_create(game.world, &def, &history));

    play(&game, history, 0, 48);
    const uint64_t hash = quern_world_hash(game.world);
    printf("after 48 frames: score %d\n", game_score(&game));
    QUERN_MUST(quern_history_restore(history, 16, NULL));
    printf("before frame 16: score %d\n", game_score(&game));
    play(&game, history, 16, 48);
    printf("played again: %s\n", quern_world_hash(game.world) == hash ? "the same" : "another world");

    QUERN_MUST(quern_world_save(game.world, quern_sink_bytes(&archive), NULL));
    game_open(&loaded, 0); /* types and systems, no entities */
    QUERN_MUST(
        quern_world_load(loaded.world, quern_source_bytes(archive.bytes, archive.size_bytes), NULL, NULL));
    printf("loaded: score %d, %d rocks\n", game_score(&loaded), game_rock_count(&loaded));
    quern_byte_buffer_release(&archive);
    quern_history_destroy(history);
    game_close(&loaded);
    game_close(&game);
}
