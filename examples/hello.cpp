/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <cstdio>
#include <quern/quern.hpp>

struct Position {
    float x;
};
struct Velocity {
    float x;
};

int main()
{
    quern::world world;
    quern::schedule schedule(world);
    quern::jobs jobs;
    schedule.add("move", [](Position &p, const Velocity &v, quern::seconds dt) { p.x += v.x * dt; });
    quern_entity last{};
    for (int i = 0; i < 1000; i++)
        last = world.create(Position{float(i)}, Velocity{1});
    for (int frame = 0; frame < 64; frame++)
        schedule.run(jobs, 1.0 / 64);
    std::printf("after one second the last of 1000 is at %g\n", double(world.get<Position>(last)->x));
}
