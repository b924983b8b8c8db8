/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <quern/quern.hpp>

#include <cstdio>

struct Position {
    float x;
};
struct Velocity {
    float x;
};

/* A frame with a system from a lambda. */
int main()
{
    quern::world world;
    quern::schedule schedule(world);
    schedule.add("move", [](Position &p, const Velocity &v, quern::seconds dt) { p.x += v.x * dt; });
    const quern_entity entity = world.create(Position{1}, Velocity{2});
    const quern_result result = schedule.run(nullptr, 1);
    const Position *position = world.get<Position>(entity);
    const bool passed = result == QUERN_OK && position != nullptr && position->x > 2.9F;
    if (!passed) std::fprintf(stderr, "consumer: %s\n", quern_error_message());
    return passed ? 0 : 1;
}
