/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 4 of the tutorial in C++: bullets hit rocks, rocks break, and the score counts them. */
#include <iostream>
#include <quern/kit/grid.hpp>

struct Position {
    float x, y;
};
struct Velocity {
    float x, y;
};
struct Health {
    int points;
};
struct Rock {};
struct Bullet {};
struct Score {
    int rocks = 0;
};
/* An event: a rock has broken. */
struct Broken {
    quern_entity rock;
};

QUERN_DESCRIBE(Health, points); /* so that losses can be added up */

int main()
{
    quern::app app;
    app.resource<Score>();
    quern::grid<&Position::x, &Position::y> rocks(app, quern::grid_name{"rocks"}, quern::cell_size{2},
                                                  quern::with<Rock>{});
    rocks.add_systems(app);
    /* Several bullets may hit one rock in one frame: the sync point adds up the losses. */
    app.add(
        "hit",
        [&rocks](quern_entity bullet, const Position &position, quern::context context,
                 quern::commands commands) {
            const auto rock = rocks.in(context).nearest(position, 1);
            if (!rock) return;
            commands.accumulate(rock.entity, Health{-1});
            commands.destroy(bullet);
        },
        quern::with<Bullet>{}, quern::searches{rocks});
    app.add("move", [](Position &position, const Velocity &velocity, quern::seconds seconds) {
        position.x += velocity.x * seconds;
        position.y += velocity.y * seconds;
    });
    /* A reaction: it runs after a sync point, with the entities that got another health. */
    app.add(
        "bury",
        [](quern_entity entity, const Health &health, quern::commands commands,
           quern::emitter<Broken> broken) {
            if (health.points > 0) return;
            commands.destroy(entity);
            broken.emit({entity});
        },
        quern::reacts_to{QUERN_REACT_SET});
    app.add_once(
        "count_broken",
        [](quern::context context) {
            int count = 0;
            context.each_event<Broken>([&](const Broken &) { count++; });
            if (count == 0) return;
            context.resource<Score>().rocks += count;
            std::cout << "frame " << context.frame_index() << ": " << count << " broken\n";
        },
        quern::reads_events<Broken>{}, quern::writes_resource<Score>{});
    for (int i = 0; i < 4; i++) {
        const float x = 4 * static_cast<float>(i);
        app.create(Position{x, 4}, Health{1 + i / 2}, Rock{});
        app.create(Position{x, 12}, Velocity{0, -8}, Bullet{});
    }
    app.run(1.0 / 16, 32);
    std::cout << "score: " << app.resource<Score>()->rocks << "\n";
}
