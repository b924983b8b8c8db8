/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <iostream>
#include <quern/saves.hpp>

struct Position {
    float x;
};

int main()
{
    quern::app app, other;
    other.component<Position>();
    app.add("move", [](Position &position, quern::seconds dt) { position.x += dt; });
    const auto entity = app.create(Position{0});

    quern::byte_buffer bytes;
    app.save(bytes.sink());
    other.load(bytes.source());

    quern_history_def def{};
    def.schedules[0] = app.schedule();
    quern::history history(app, def);
    for (uint64_t frame = 0; frame < 4; frame++) {
        quern::must(history.save(frame, app.jobs()));
        app.run(1);
    }
    quern::must(history.save(4));
    const uint64_t hash = app.hash();
    quern::must(history.restore(1)); // frames 1 to 3 run again
    app.run(1, 3);
    std::cout << (app.hash() == hash ? "the same world" : "another world") << ", x "
              << entity.get<Position>().x << "\n";

    quern::delta delta(history, 0, 4);
    quern::delta_applier applier(other);
    bytes.clear();
    quern::must(delta.write(bytes.sink()));
    quern::must(applier.apply(bytes.source()));
    std::cout << "the other world has x " << other.get<Position>(applier.find(entity.key()))->x << "\n";
}
