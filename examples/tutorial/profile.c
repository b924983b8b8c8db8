/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 7 of the tutorial: what the schedule does, where the time goes, and what the world contains. */
#include "game.h"

#include <stdio.h>

static void print_value(const quern_world *world, const char *path)
{
    quern_byte_buffer text = {0};
    const quern_entity ship = quern_entity_find(world, "ship");
    QUERN_MUST(quern_entity_get_text(world, ship, path, quern_sink_bytes(&text)));
    printf("ship: %s = %.*s\n", path, (int)text.size_bytes, (const char *)text.bytes);
    quern_byte_buffer_release(&text);
}

int main(void)
{
    Game game;
    game_open(&game, 0);
    game_populate(&game, 500);
    QUERN_MUST(quern_schedule_set_profiling(game.schedule, true));
    for (int frame = 0; frame < 20; frame++)
        QUERN_MUST(quern_schedule_run(game.schedule, NULL, 1.0 / 64));
    QUERN_MUST(quern_schedule_describe(game.schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(stdout)));
    QUERN_MUST(quern_schedule_write_profile(game.schedule, quern_sink_file(stdout)));
    print_value(game.world, "Health.points");
    QUERN_MUST(
        quern_entity_set_text(game.world, quern_entity_find(game.world, "ship"), "Health.points", "9"));
    print_value(game.world, "Health.points");
    game_close(&game);
}
