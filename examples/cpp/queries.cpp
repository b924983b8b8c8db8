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
struct Frozen {};

int main()
{
    quern::app app;
    for (int i = 0; i < 100; i++)
        app.create(Position{float(i)}, Velocity{2});
    app.create(Position{500}, Velocity{2}, Frozen{});

    quern::query<Position, const Velocity> moving(app, quern::without<Frozen>{});
    for (auto [entity, position, velocity] : moving)
        position.x += velocity.x;

    float sum = 0;
    for (auto [entities, positions, velocities] : moving.chunks())
        for (const Position &position : positions)
            sum += position.x;

    quern_entity first = quern::null; // break and return may leave a loop
    for (auto [entity, position, velocity] : moving)
        if (position.x > 50) {
            first = entity;
            break;
        }
    std::cout << moving.count() << " entities, sum " << sum
              << ", first above 50: " << app.get<Position>(first)->x << "\n";
}
