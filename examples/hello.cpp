/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <iostream>
#include <quern/quern.hpp>

struct Position {
    float x;
};
struct Velocity {
    float x;
};

int main()
{
    quern::app app;
    app.add("move", [](Position &p, const Velocity &v, quern::seconds dt) { p.x += v.x * dt; });
    quern_entity last{};
    for (int i = 0; i < 1000; i++)
        last = app.create(Position{float(i)}, Velocity{1});
    app.run(1.0 / 64, 64);
    std::cout << "after one second the last of 1000 is at " << app.get<Position>(last)->x << "\n";
}
