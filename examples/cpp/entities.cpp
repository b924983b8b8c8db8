/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <iostream>
#include <quern/quern.hpp>

struct Position {
    float x;
};
struct Health {
    int points = 100;
};
struct Burning {};

int main()
{
    quern::app app;
    auto ship = app.create(Position{1}), gun = app.create(Position{2}, Health{10});
    ship.set_name("ship");
    ship.add<Health>();
    ship.set(Burning{});
    gun.set_name("gun");
    gun.set_parent(ship);

    for (auto part : ship.children())
        if (Health *health = part.try_get<Health>()) health->points -= 3;

    std::cout << app.find("ship/gun").get<Health>().points << " of " << ship.get<Health>().points << ", "
              << (ship.has<Position, Burning>() ? "burning" : "whole") << "\n";
    ship.destroy(); // and all below it
    std::cout << (gun.is_alive() ? "alive" : "gone") << "\n";
}
