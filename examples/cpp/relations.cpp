/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
#include <iostream>
#include <quern/quern.hpp>

struct Gold {
    int amount;
};
struct Income {
    int amount;
};

int main()
{
    quern::app app;
    const quern_relation serves =
        app.relation("serves", quern::on_target_destroyed{QUERN_TARGET_UNRELATES});
    const quern_relation knows =
        app.relation("knows", quern::many, quern::on_target_destroyed{QUERN_TARGET_UNRELATES});
    const auto king = app.create(Income{2}), ann = app.create(Gold{0}), bob = app.create(Gold{5});
    ann.relate(serves, king);
    bob.relate(serves, king);
    ann.relate(knows, bob);
    ann.relate(knows, king);

    // The component of the row's target: no lookup, and only rows with such a target.
    app.add(
        "pay", [](Gold &gold, quern::up<Income> lord) { gold.amount += lord->amount; },
        quern::along{serves});
    app.run(1, 3);

    int sum = 0;
    for (auto servant : king.sources(serves))
        sum += servant.get<Gold>().amount;
    for (auto friend_of_ann : ann.targets(knows))
        if (friend_of_ann != king) ann.unrelate(knows, friend_of_ann);
    king.destroy();
    std::cout << sum << " gold, ann knows " << ann.target_count(knows) << ", serves "
              << (ann.target(serves) ? "a king" : "nobody") << "\n";
}
