/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <iostream>
#include <quern/kit/grid.hpp>

struct Place {
    float x, y;
};
struct Sheep {};
struct Wolf {
    int seen = 0;
};

int main()
{
    quern::app app;
    for (int i = 0; i < 100; i++)
        app.create(Place{float(i % 10), float(i / 10)}, Sheep{});
    const auto grey = app.create(Place{4.5f, 4.5f}, Wolf{});

    quern::grid<&Place::x, &Place::y> flock(app, quern::cell_size{2}, quern::with<Sheep>{});
    flock.add_systems(app);
    app.add(
        "look",
        [&flock](const Place &place, Wolf &wolf, quern::context context) {
            for (auto sheep : flock.in(context).radius(place, 2))
                wolf.seen += context.is_alive(sheep.entity);
        },
        quern::searches{flock});
    app.run(1);

    const auto nearest = flock.nearest({-3, 2}, 10); // between frames
    int close = 0;
    quern::must(flock.pairs(nullptr, 1, [&](const quern_grid_pair &) { close++; }));
    std::cout << grey.get<Wolf>().seen << " sheep near the wolf; one at " << nearest.item->position[0]
              << ", " << nearest.item->position[1] << "; " << close << " pairs\n";
}
