/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <iostream>
#include <quern/prefabs.hpp>

struct Position {
    float x;
};
struct Gun {
    quern_entity base;
    int range;
};

QUERN_DESCRIBE(Gun, base, range);

int main()
{
    quern::app app;
    const quern_component muzzle = app.prefab_slot("muzzle");
    quern::blueprint tower(app);
    const auto root = tower.root().set(Position{0});
    root.child("gun").set(Gun{root.handle(), 10}).slot(muzzle);
    const quern_prefab prefab = tower.create();

    const auto one = app.spawn(prefab);
    const Position places[] = {{10}, {20}, {30}};
    int range = 10;
    quern_entity towers[3];
    app.spawn_many(prefab, 3,
                   quern::instances(app).override(places).fill([&](Gun &gun) { gun.range = ++range; }, 1),
                   towers);

    const auto last = app.entity(towers[2]);
    const auto gun = last.part(muzzle);
    std::cout << last.get<Position>().x << ", range " << gun.get<Gun>().range << ", "
              << (gun.get<Gun>().base == last ? "its own base" : "another base")
              << "; the first: " << one.find("gun").get<Gun>().range << "\n";
}
