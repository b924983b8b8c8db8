/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <iostream>
#include <quern/quern.hpp>

struct Gravity {
    float y = -10;
};
struct Counter {
    int frames = 0;
};
struct Velocity {
    float y;
};

int main()
{
    quern::app app;
    app.resource<Gravity>(); // default constructed
    app.resource(Counter{40});
    app.add(
        "fall",
        [](Velocity &velocity, quern::seconds dt, quern::context context) {
            velocity.y += context.resource<const Gravity>().y * dt;
        },
        quern::reads_resource<Gravity>{});
    app.add_once(
        "count", [](quern::context context) { context.resource<Counter>().frames++; },
        quern::writes_resource<Counter>{});
    const auto stone = app.create(Velocity{0});
    app.run(0.5, 2);
    std::cout << "frame " << app.resource<Counter>()->frames << ", velocity " << stone.get<Velocity>().y
              << "\n";
}
