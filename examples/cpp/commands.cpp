/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <iostream>
#include <quern/quern.hpp>

struct Position {
    float x;
};
struct Fuse {
    float seconds;
};
struct Spark {};

int main()
{
    quern::app app;
    app.component<Spark>(); // commands alone name it
    app.add("burn", [](quern_entity entity, const Position &position, Fuse &fuse, quern::seconds dt,
                       quern::commands commands) {
        fuse.seconds -= dt;
        if (fuse.seconds > 0) return;
        commands.destroy(entity);
        for (int i = 0; i < 3; i++)
            commands.create(Position{position.x + float(i)}).add<Spark>();
    });
    app.create(Position{10}, Fuse{0.5f});
    app.create(Position{20}, Fuse{5});
    app.run(0.25, 4);
    quern::query<const Position> sparks(app, quern::with<Spark>{});
    float sum = 0;
    for (auto [entity, position] : sparks)
        sum += position.x;
    std::cout << sparks.count() << " sparks, sum " << sum << "\n";
}
