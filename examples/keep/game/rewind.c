/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include "rewind.h"

#include "check.h"

#include <quern/history.h>

void rewind_create(Rewind *rewind, Game *game, uint32_t stride, uint32_t save_count)
{
    const quern_history_def def = {.schedules = {game->schedule}, .frame_count = save_count};
    rewind->stride = stride;
    check(quern_history_create(game->world, &def, &rewind->history));
}

void rewind_destroy(Rewind *rewind)
{
    quern_history_destroy(rewind->history);
}

void rewind_save(Rewind *rewind, Game *game, quern_jobs *jobs)
{
    const uint64_t step = game_state(game)->step;
    if (step % rewind->stride == 0) check(quern_history_save(rewind->history, step, jobs));
}

bool rewind_restore(Rewind *rewind, Game *game, quern_jobs *jobs)
{
    uint64_t oldest;
    const uint64_t step = game_state(game)->step;
    if (step == 0 || !quern_history_get_frames(rewind->history, &oldest, NULL)) return false;
    const uint64_t back = (step - 1) / rewind->stride * rewind->stride;
    if (back < oldest) return false;
    check(quern_history_restore(rewind->history, back, jobs));
    return true;
}
