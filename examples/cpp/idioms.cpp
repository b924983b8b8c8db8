/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */

/* The idioms of docs/coming-from-entt.md and docs/coming-from-flecs.md in C++. */

#include <iostream>
#include <quern/prefabs.hpp>
#include <quern/saves.hpp>

struct Position {
    float x, y;
};
struct Velocity {
    float x, y;
};
struct Health {
    int points;
};
struct Gravity {
    float y;
};
struct Hit {
    quern_entity victim;
};
struct Knight {};
struct Ghost {};

static void add_systems(quern::app &app)
{
    app.add("move", [](Position &p, const Velocity &v, quern::seconds dt) {
        p.x += v.x * dt;
        p.y += v.y * dt;
    });

    app.resource(Gravity{-9.8f});
    app.add(
        "fall",
        [](Velocity &v, quern::seconds dt, quern::context context) {
            v.y += context.resource<const Gravity>().y * dt;
        },
        quern::reads_resource<Gravity>{}, quern::before{"move"});

    app.component<Ghost>(); // commands alone name it
    app.add("die", [](quern_entity entity, const Health &health, quern::commands commands) {
        if (health.points > 0) return;
        commands.create(Position{0, 0}).add<Ghost>();
        commands.destroy(entity); // at the next sync point
    });

    app.add(
        "welcome",
        [](quern_entity entity, const Health &) {
            std::cout << "entity " << quern_entity_index(entity) << " has got a health\n";
        },
        quern::reacts_to{QUERN_REACT_ADDED}, quern::flags{QUERN_SYSTEM_SERIAL});

    app.event<Hit>();
    app.add_events("count hits", [](const Hit &) { std::cout << "a hit\n"; }); // one call per event

    app.add(
        "draw moved", [](const Position &p) { std::cout << "draw at " << p.x << "\n"; },
        quern::changed<Position>{}, quern::flags{QUERN_SYSTEM_SERIAL}, quern::phase{1});
}

static void copy_world(quern::app &from, quern::app &to)
{
    quern::byte_buffer bytes;
    from.save(bytes.sink()); // or quern_sink_file
    to.load(bytes.source());
}

int main()
{
    quern::app app; // a world, a schedule, and a thread for each processor
    quern::must(app.schedule().set_phases({"simulation", "display"}));
    quern::must(app.schedule().set_fixed_step(0, 1.0 / 60, 8));
    add_systems(app);

    auto knight = app.create(Position{1, 2}, Velocity{3, 4});
    knight.add<Knight>();
    knight.set(Health{100});
    knight.get<Health>().points -= 10;

    app.emit(Hit{knight});
    app.run(1.0 / 60, 3); // three frames, on all threads

    app.add(
        "fall", [](Velocity &v) { v.y = 0; }, quern::replaces); // keeps its place and state
    app.remove_system(app.schedule().find("fall"));

    quern::query<const Position, const Health *> living(app, quern::without<Ghost>{});
    for (auto [entity, p, health] : living)
        std::cout << "at " << p.x << ", " << (health ? "mortal" : "immortal") << "\n";

    auto horse = app.create(Position{5, 5}), saddle = app.create(Position{5, 6});
    saddle.set_parent(horse);
    for (auto child : horse.children())
        std::cout << "child " << child.get<Position>().y << "\n";
    horse.set_name("horse");
    const auto found = app.find("horse");

    const quern_relation likes = app.relation("likes");
    knight.relate(likes, horse);
    quern::query<const Position> liking(app, quern::target{likes, horse}); // all that like the horse

    const quern_prefab stable = app.prefab(found); // the entity and all its descendants
    quern_entity copies[10];
    app.spawn_many(stable, 10, {}, copies);

    knight.set_enabled(false); // with all its descendants
    knight.set_enabled(true);

    quern::app other; // in a game, another program that registers the same types
    other.component<Position>();
    other.component<Velocity>();
    other.component<Health>();
    other.component<Knight>();
    other.relation("likes");
    copy_world(app, other);
    std::cout << liking.count() << " likes the horse; a copy has "
              << app.entity(copies[9]).source_count(app.parent()) << " child\n";
}
