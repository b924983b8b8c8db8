/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 7 of the tutorial in C++: what the schedule does, and where the time goes. Tools for it have the functions of C. */
#include "game.hpp"

#include <cstdio>

int main()
{
    Game game;
    game.populate(500);
    quern_schedule *const schedule = game.app.schedule();
    quern::must(quern_schedule_set_profiling(schedule, true));
    game.app.run(1.0 / 64, 20);
    quern::must(quern_schedule_describe(schedule, QUERN_DESCRIBE_TEXT, quern_sink_file(stdout)));
    quern::must(quern_schedule_write_profile(schedule, quern_sink_file(stdout)));
    game.app.find("ship").set(Health{9});
    std::cout << "ship: Health.points = " << game.app.find("ship").get<Health>().points << std::endl;
}
