/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <iostream>
#include <quern/quern.hpp>

struct Health {
    int points;
};
struct Hit {
    quern_entity victim;
    int damage;
};
struct Spikes {};

int main()
{
    quern::app app;
    quern::event_reader<Hit> seen(app, "the screen");
    app.add(
        "sting",
        [](quern_entity entity, quern::emitter<Hit> hits) {
            hits.emit({entity, 3});
        },
        quern::with<Spikes>{});
    app.add_events(
        "hurt",
        [](const Hit &hit, quern::context context) {
            if (Health *health = context.lookup_write<Health>(hit.victim)) health->points -= hit.damage;
        },
        quern::lookup_write<Health>{}, quern::after{"sting"});
    const auto hero = app.create(Health{10}, Spikes{});
    app.run(1, 3);
    int count = 0;
    seen.each([&](const Hit &) { count++; });
    std::cout << count << " hits, " << hero.get<Health>().points << " points left\n";
}
