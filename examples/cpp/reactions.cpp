/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <iostream>
#include <quern/quern.hpp>

struct Health {
    int points;
};
struct Log {
    int born = 0, hurt = 0, lost = 0;
};

int main()
{
    quern::app app;
    app.resource<Log>();
    app.add(
        "note births", [](const Health &, quern::context context) { context.resource<Log>().born++; },
        quern::reacts_to{QUERN_REACT_ADDED}, quern::writes_resource<Log>{});
    app.add(
        "note wounds",
        [](const Health &now, quern::old<Health> before, quern::context context) {
            if (before && now.points < before->points) {
                context.resource<Log>().hurt++;
                context.resource<Log>().lost += before->points - now.points;
            }
        },
        quern::reacts_to{QUERN_REACT_SET}, quern::writes_resource<Log>{});
    const auto hero = app.create(Health{10});
    app.create(Health{20});
    app.react();
    hero.set(Health{7});
    app.react();
    const Log &log = *app.resource<Log>();
    std::cout << log.born << " born, " << log.hurt << " hurt, " << log.lost << " points lost\n";
}
