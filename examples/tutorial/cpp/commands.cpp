/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
/* Chapter 2 of the tutorial in C++: a gun fires bullets, which live for a second. */
#include <cstdio>
#include <quern/quern.hpp>

struct Position {
    float x, y;
};
struct Velocity {
    float x, y;
};
struct Gun {
    int ammo;
};
struct Lifetime {
    float seconds;
};

int main()
{
    quern::app app;
    const auto ship = app.create(Position{20, 19}, Gun{5});
    app.add("move", [](Position &position, const Velocity &velocity, quern::seconds seconds) {
        position.x += velocity.x * seconds;
        position.y += velocity.y * seconds;
    });
    /* Records commands: the bullets are created at the sync point, when no system runs. */
    app.add(
        "fire",
        [](quern_entity entity, Gun &gun, const Position &position, quern::commands commands) {
            if (gun.ammo == 0) {
                commands.remove<Gun>(entity);
                return;
            }
            gun.ammo--;
            commands.create(Position{position.x, position.y - 1}, Velocity{0, -8}, Lifetime{1});
        },
        quern::interval{0.25}); /* four times a second */
    app.add("expire",
            [](quern_entity entity, Lifetime &lifetime, quern::seconds seconds, quern::commands commands) {
                lifetime.seconds -= seconds;
                if (lifetime.seconds <= 0) commands.destroy(entity);
            });
    const quern::query<const Lifetime> bullets(app);
    for (int frame = 1; frame <= 40; frame++) {
        app.run(1.0 / 16);
        if (frame % 8 == 0)
            std::printf("second %.1f: %d bullets, the ship %s\n", frame / 16.0,
                        static_cast<int>(bullets.count()), ship.has<Gun>() ? "has a gun" : "has no gun");
    }
}
