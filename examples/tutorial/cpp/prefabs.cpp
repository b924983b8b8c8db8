/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 3 of the tutorial in C++: rocks with ore on them, all copies of one prefab. */
#include <iostream>
#include <quern/prefabs.hpp>

struct Position {
    float x, y;
};
struct Velocity {
    float x, y;
};
struct Offset {
    float x, y; /* from the parent */
};

int main()
{
    quern::app app;
    quern::blueprint plan(app);
    plan.root().set(Position{0, 0}).set(Velocity{0, 1}).child("ore").set(Position{0, 0}).set(Offset{1, 0});
    const quern_prefab rock = plan.create();
    const Position places[] = {{10, 0}, {20, 2}, {30, 4}}; /* one for each instance */
    quern_entity rocks[3];
    app.spawn_many(rock, 3, quern::instances(app).override(places), rocks);

    app.add("move", [](Position &position, const Velocity &velocity, quern::seconds seconds) {
        position.x += velocity.x * seconds;
        position.y += velocity.y * seconds;
    });
    /* quern::up reads the position of the parent; levels puts parents before their children. */
    app.add(
        "follow",
        [](Position &position, const Offset &offset, quern::up<Position> parent) {
            position = {parent->x + offset.x, parent->y + offset.y};
        },
        quern::after{"move"}, quern::levels{app.parent()});
    app.run(1.0 / 16, 16);
    for (int i = 0; i < 3; i++)
        for (auto ore : app.entity(rocks[i]).children()) {
            const Position &at = ore.get<Position>();
            std::cout << "rock " << i << ": " << ore.name() << " at " << at.x << ", " << at.y << "\n";
        }
    const auto ore = app.find(rocks[1], "ore");
    app.destroy(rocks[1]);
    std::cout << "its ore is " << (ore.is_alive() ? "alive" : "gone, too") << "\n";
}
